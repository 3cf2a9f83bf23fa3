"""An image from estimates of all its patches, band by band: no more than a few thousand patches are there at once."""

from collections.abc import Callable
from functools import partial

import numpy as np

from princomp._typing import Array
from princomp.images.patches import Pair, assemble, extract_patches, patch_positions

BAND_BYTES = 2**25  # of patches in float64


def from_patches(
    image: Array,
    size: Pair,
    estimate: Callable[[Array], Array],
    *,
    own: float = 0.0,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Array:
    """Return the average over all patches, stride 1, of ``estimate(patches)``, each at its place.

    ``own`` is the weight of the image (height, width) itself, where each patch has 1. ``tell`` hears how many rows of
    patches are done.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.bands import from_patches
    >>> from_patches(np.arange(6.0).reshape(2, 3), (1, 2), lambda patches: 2 * patches).tolist()
    [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    """
    height, width = image.shape
    rows, columns = height - size[0] + 1, width - size[1] + 1
    sums, counts = own * image.astype(np.float64), np.full(image.shape, float(own))
    step = max(1, BAND_BYTES // (8 * columns * size[0] * size[1]))
    for top in range(0, rows, step):
        band = slice(top, min(top + step, rows) + size[0] - 1)
        shape = image[band].shape
        found = estimate(extract_patches(image[band], size))
        covered = np.outer(*map(partial(_covered, shape), (0, 1), size))
        sums[band] += assemble(found, shape, size) * covered
        counts[band] += covered
        tell(min(top + step, rows), rows)
    return sums / counts


def some_patches(image: Array, size: Pair, most: int, rng: np.random.Generator) -> Array:
    """Return that many patches (n, numbers), drawn at random, or all if there are not so many."""
    positions = patch_positions(image.shape, size)
    if len(positions) > most:
        positions = positions[np.sort(rng.choice(len(positions), most, replace=False))]
    return patches_at(image, size, positions)


def patches_at(image: Array, size: Pair, positions: Array) -> Array:
    """Return the patches (n, numbers) that begin at these places (n, 2)."""
    windows = np.lib.stride_tricks.sliding_window_view(image, size)
    return windows[positions[:, 0], positions[:, 1]].reshape(len(positions), -1)


def _covered(shape: tuple[int, ...], axis: int, side: int) -> Array:
    """In how many patches each place along a side is."""
    at = np.arange(shape[axis])
    return np.minimum(np.minimum(at, at[::-1]) + 1, min(side, shape[axis] - side + 1))
