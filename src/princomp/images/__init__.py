"""Images: without noise, without gaps, as rows of small patches and back again, and dictionaries of patches.

An image is an array (height, width) or (height, width, channels). A patch is a row of numbers, as
``image[top : top + height, left : left + width].ravel()`` has them: rows of pixels one after the other, channels last.
Atoms of dictionaries are rows alike.
"""

from princomp.images.denoising import denoise
from princomp.images.dictionaries import dct_dictionary, haar_dictionary
from princomp.images.inpainting import inpaint
from princomp.images.noise import estimate_noise
from princomp.images.patch_rows import patch_rows
from princomp.images.patches import assemble, extract_patches, patch_positions

__all__ = [
    "assemble",
    "dct_dictionary",
    "denoise",
    "estimate_noise",
    "extract_patches",
    "haar_dictionary",
    "inpaint",
    "patch_positions",
    "patch_rows",
]
