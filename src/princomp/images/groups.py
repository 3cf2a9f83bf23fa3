"""Groups of similar patches of an image: where they are, what they hold, and their way back into it.

A patch is compared with all that begin up to `reach` pixels from it (at a border the window is moved inwards, so that
all windows hold as many), by squared differences. Each group has its own patch, and of equal ones those that come
first. Loops are compiled; the NumPy twins below do the same.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from princomp._compiled import loops
from princomp._typing import Array

Pair = tuple[int, int]


def nearest(image: Array, tops: Array, lefts: Array, size: Pair, reach: int, count: int) -> Array:
    """Return the places (groups, count), top * width + left, of the patches most like each of these.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.groups import nearest
    >>> image = np.array([[0.0, 9.0, 1.0, 5.0, 0.0]])
    >>> nearest(image, np.array([0]), np.array([2]), (1, 1), 2, 3)
    array([[0, 2, 4]])
    """
    count = min(count, candidates((image.shape[0], image.shape[1]), size, reach))
    compiled = loops("image_groups")
    if compiled is not None:
        return np.asarray(compiled.nearest(image, tops, lefts, *size, reach, count))
    windows = sliding_window_view(image, size)
    found = np.empty((len(tops), count), np.int64)
    for g, (top, left) in enumerate(zip(tops, lefts, strict=True)):
        i, j = (
            np.arange(max(0, min(at - reach, many - 2 * reach - 1)), many)[: 2 * reach + 1]
            for at, many in zip((top, left), windows.shape[:2], strict=True)
        )
        apart = np.square(windows[i[0] : i[-1] + 1, j[0] : j[-1] + 1] - windows[top, left]).sum(axis=(2, 3))
        apart[top - i[0], left - j[0]] = -1.0  # itself in any case
        places = (i[:, None] * image.shape[1] + j).ravel()
        found[g] = np.sort(places[np.argsort(apart.ravel(), kind="stable")[:count]])
    return found


def candidates(shape: Pair, size: Pair, reach: int) -> int:
    """Return how many patches a window holds."""
    down, across = (min(2 * reach + 1, length - side + 1) for length, side in zip(shape, size, strict=True))
    return down * across


def gather(image: Array, places: Array, size: Pair) -> Array:
    """Return the patches (groups, patches, numbers) at these places."""
    compiled = loops("image_groups")
    if compiled is not None:
        return np.asarray(compiled.gather(image, places, *size))
    return image.ravel()[places[..., None] + _offsets(image.shape[1], size)]


def scatter(patches: Array, places: Array, size: Pair, weights: Array, sums: Array, totals: Array) -> None:
    """Add patches (groups, patches, numbers), each group with its weight, to ``sums``, the weights to ``totals``."""
    compiled = loops("image_groups")
    if compiled is not None:
        compiled.scatter(patches, places, *size, weights, sums, totals)
        return
    where = places[..., None] + _offsets(sums.shape[1], size)
    np.add.at(sums.reshape(-1), where, weights[:, None, None] * patches)
    np.add.at(totals.reshape(-1), where, np.broadcast_to(weights[:, None, None], where.shape))


def _offsets(width: int, size: Pair) -> Array:
    """Return where the numbers of a patch are, from its first one on, in an image row by row."""
    return (np.arange(size[0])[:, None] * width + np.arange(size[1])).ravel()
