"""Patches of an image as rows that are never all there at once: each block is cut when it is read."""

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from princomp._typing import Array
from princomp.data.layout import ImageLayout
from princomp.data.rows import Rows, block_offsets
from princomp.images.patches import Pair, checked_image, patch_grid


class PatchRows(Rows):
    """The rows of `extract_patches`, of an image (height, width, channels)."""

    def __init__(self, pixels: Array, size: Pair, tops: Array, lefts: Array) -> None:
        tall, wide = size
        self._windows = sliding_window_view(pixels, (tall, wide, pixels.shape[2]))[:, :, 0]  # a view of the image
        self._tops, self._lefts = tops, lefts
        self.shape = (len(tops) * len(lefts), tall * wide * pixels.shape[2])
        self.dtype = pixels.dtype
        self.offsets = block_offsets(*self.shape)
        if pixels.shape[2] in (1, 3):
            self.layout = ImageLayout((tall, wide, 3)[: 2 + (pixels.shape[2] == 3)])

    def block(self, i: int) -> Array:
        """Return patches of block i, cut anew."""
        which = np.arange(self.offsets[i], self.offsets[i + 1])
        down, across = np.divmod(which, len(self._lefts))
        return np.asarray(self._windows[self._tops[down], self._lefts[across]].reshape(len(which), -1))


def patch_rows(image: Any, size: int | Pair, *, stride: int | Pair = 1) -> PatchRows:
    """Return the patches of an image as data for any estimator, without copying them all.

    A photograph of 12 million pixels has as many patches: of 8 x 8 pixels they would take 6 GB. These are cut block by
    block, as often as an estimator reads them. What is drawn of components or atoms is drawn as patches.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array-like
        Grey or colour, of any range; NaN = missing. It must not change while it is in use.
    size : int or (int, int)
        Side of a square patch, or height and width.
    stride : int or (int, int), default 1
        Steps from patch to patch: down and across, if two are given.

    Returns
    -------
    Rows
        (n, size * size * channels), in the order of `extract_patches`.

    See Also
    --------
    extract_patches : The same as one array.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA
    >>> from princomp.images import patch_rows
    >>> image = np.add.outer(np.sin(np.arange(200) / 5), np.cos(np.arange(300) / 7))
    >>> rows = patch_rows(image, 8)
    >>> rows.shape
    (56549, 64)
    >>> bool(PCA(4).fit(rows).explained_variance_ratio_.sum() > 0.99)
    True
    """
    pixels = checked_image(image)
    size, tops, lefts = patch_grid(pixels.shape, size, stride)
    return PatchRows(pixels, size, tops, lefts)
