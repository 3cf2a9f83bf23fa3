"""Patches of an image as rows, and the image from its patches: the average where they overlap."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from princomp._typing import Array
from princomp.estimators.checks import check_count

Pair = tuple[int, int]
LARGEST = 1e300  # of which 1e8 can be summed


def extract_patches(image: Any, size: int | Pair, *, stride: int | Pair = 1) -> Array:
    """Return the patches of an image as the rows of a matrix.

    Along each side patches begin at 0, ``stride``, 2 ``stride``, ... as long as they lie inside; where the last of
    them does not end at the border one more does, so that every pixel up to the border is in a patch (of those between
    patches, if ``stride`` exceeds ``size``, no one is). Patches are ordered row by row; `patch_positions` lists where
    they begin.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array-like
        Grey or colour, of any range; NaN = missing.
    size : int or (int, int)
        Side of a square patch, or height and width.
    stride : int or (int, int), default 1
        Steps from patch to patch: down and across, if two are given.

    Returns
    -------
    (n, size * size * channels) array
        float32 if the image is, else float64; values are those of the image, neither scaled nor cut. Each row is
        ``image[top : top + size, left : left + size].ravel()``.

    See Also
    --------
    assemble : The way back.
    patch_rows : The same block by block, where all of them would not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images import extract_patches
    >>> image = np.arange(20.0).reshape(4, 5)
    >>> extract_patches(image, 2, stride=2)
    array([[ 0.,  1.,  5.,  6.],
           [ 2.,  3.,  7.,  8.],
           [ 3.,  4.,  8.,  9.],
           [10., 11., 15., 16.],
           [12., 13., 17., 18.],
           [13., 14., 18., 19.]])
    >>> extract_patches(np.zeros((32, 32, 3)), 8).shape
    (625, 192)
    """
    pixels = checked_image(image)
    (tall, wide), tops, lefts = patch_grid(pixels.shape, size, stride)
    windows = sliding_window_view(pixels, (tall, wide, pixels.shape[2]))[:, :, 0]  # a view, nothing is copied
    return np.asarray(windows[tops[:, None], lefts].reshape(len(tops) * len(lefts), -1))


def assemble(patches: Any, shape: tuple[int, ...], size: int | Pair, *, stride: int | Pair = 1) -> Array:
    """Return the image whose patches these are, or nearly so: where patches overlap, their average.

    Of all images it is the one whose patches are nearest to the given ones in squares. Patches that
    `extract_patches` took give the image back, up to rounding.

    Parameters
    ----------
    patches : (n, size * size * channels) array-like
        In the order of `extract_patches`.
    shape : (height, width) or (height, width, channels)
        Shape of the image.
    size, stride : int or (int, int)
        As `extract_patches` was given them; ``stride`` at most ``size``, since a pixel in no patch has no value.

    Returns
    -------
    array of the given shape
        float32 if the patches are (sums are taken in float64), else float64; nothing is cut off.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images import assemble, extract_patches
    >>> image = np.random.default_rng(0).normal(size=(30, 41))
    >>> patches = extract_patches(image, 8, stride=3)
    >>> bool(np.allclose(assemble(patches, image.shape, 8, stride=3), image, rtol=1e-14))
    True
    """
    height, width, channels = _checked_shape(shape)
    (tall, wide), tops, lefts = patch_grid((height, width), size, stride, covered=True)
    rows = _floats(np.asarray(patches), "patches")
    expected = (len(tops) * len(lefts), tall * wide * channels)
    if rows.shape != expected:
        raise ValueError(
            f"An image of shape {tuple(shape)} has patches of shape {expected} at this size and stride, "
            f"got {rows.shape}."
        )
    across = sliding_window_view(np.arange(tall * width * channels).reshape(tall, width, channels), wide, axis=1)
    cells = across[:, lefts].transpose(1, 0, 3, 2).ravel()  # where in a band each number of a row of patches goes
    sums = np.zeros((height, width * channels))
    for top, band in zip(tops, rows.reshape(len(tops), -1), strict=True):
        # In bands, so that places of one band are held and not of all patches.
        sums[top : top + tall] += np.bincount(cells, band, tall * width * channels).reshape(tall, -1)
    counts = np.outer(_times_covered(tops, tall, height), np.repeat(_times_covered(lefts, wide, width), channels))
    return (sums / counts).astype(rows.dtype, copy=False).reshape(shape)


def patch_positions(shape: tuple[int, ...], size: int | Pair, *, stride: int | Pair = 1) -> Array:
    """Return where the patches of `extract_patches` begin: top and left of each, (n, 2).

    Parameters
    ----------
    shape : (height, width) or (height, width, channels)
        Shape of the image.
    size, stride : int or (int, int)
        As in `extract_patches`.

    Returns
    -------
    (n, 2) array of int

    Examples
    --------
    >>> from princomp.images import patch_positions
    >>> patch_positions((4, 5), 2, stride=2).tolist()
    [[0, 0], [0, 2], [0, 3], [2, 0], [2, 2], [2, 3]]
    """
    _, tops, lefts = patch_grid(_checked_shape(shape), size, stride)
    return np.column_stack([np.repeat(tops, len(lefts)), np.tile(lefts, len(tops))])


def patch_grid(
    shape: tuple[int, ...], size: int | Pair, stride: int | Pair, *, covered: bool = False
) -> tuple[Pair, Array, Array]:
    """Return height and width of patches, their tops and their lefts; complain of what does not fit.

    With ``covered`` no pixel may lie between patches.
    """
    size, steps = _checked_size(size, shape), _pair("stride", stride)
    if covered and (steps[0] > size[0] or steps[1] > size[1]):
        raise ValueError(
            f"Pixels between patches of size {size} have no value at a stride of {steps}: the stride may be as large "
            f"as the size, not larger."
        )
    down, across = (_starts(*each) for each in zip(shape[:2], size, steps, strict=True))
    return size, down, across


def _starts(length: int, size: int, stride: int) -> Array:
    """Places 0, stride, 2 stride, ... of what lies inside, and the last place of all."""
    starts = np.arange(0, length - size + 1, stride)
    return starts if starts[-1] == length - size else np.append(starts, length - size)


def _times_covered(starts: Array, size: int, length: int) -> Array:
    """In how many patches each place along a side is."""
    return np.bincount((starts[:, None] + np.arange(size)).ravel(), minlength=length)


def _pair(name: str, value: Any) -> Pair:
    down, across = value if isinstance(value, tuple | list) and len(value) == 2 else (value, value)
    check_count(name, down)
    check_count(name, across)
    return int(down), int(across)


def _checked_size(size: Any, shape: tuple[int, ...]) -> Pair:
    tall, wide = _pair("size", size)
    if tall > shape[0] or wide > shape[1]:
        raise ValueError(
            f"Patches of {tall} x {wide} pixels do not fit into an image of {shape[0]} x {shape[1]}: take smaller ones."
        )
    return tall, wide


def _checked_shape(shape: Any) -> tuple[int, int, int]:
    """Height, width, and channels, which are 1 of a grey image."""
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"An image has a shape (height, width) or (height, width, channels), none of them 0, got {tuple(shape)}."
        )
    height, width, channels = (*shape, 1)[:3]
    return int(height), int(width), int(channels)


def checked_image(image: Any) -> Array:
    """(height, width, channels), float32 or float64; no copy if it is that."""
    if np.ma.is_masked(image):
        raise TypeError(
            "image is a masked array with masked pixels, which would be silently read as data: fill them first, with "
            "inpaint(image.data, image.mask)."
        )
    if isinstance(image, str | PathLike):
        raise TypeError(
            f"image must be an array of pixels, got the path {image!r}: read the file first, with "
            "numpy.asarray(PIL.Image.open(path)) say."
        )
    pixels = np.asarray(image)
    return _floats(pixels.reshape(_checked_shape(pixels.shape)), "image")


def finite_image(image: Any) -> Array:
    """(height, width, channels), float32 or float64, without NaN and infinity."""
    pixels = checked_image(image)
    if np.isnan(pixels).any():
        raise ValueError(
            "The image has NaN pixels: fill them first, with inpaint(image, mask), mask True where they are."
        )
    if np.isinf(pixels).any():
        raise ValueError("The image has infinite pixels: replace them, or fill them with inpaint(image, mask) first.")
    largest(pixels)
    return pixels


def largest(pixels: Array) -> float:
    """Return the largest magnitude; complain if sums of such pixels would overflow."""
    found = max(float(pixels.max()), -float(pixels.min()))
    if found > LARGEST:
        raise ValueError(f"The image has pixels beyond {LARGEST:g}, whose sums overflow: divide it by {LARGEST:g}.")
    return found


def _floats(given: Array, what: str) -> Array:
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{what} must hold real numbers, got {given.dtype}.")
    return given if given.dtype in (np.float32, np.float64) else given.astype(np.float64)
