"""Groups of similar patches: found, gathered, and put back into sums. Twins: `princomp.images.groups`."""

import numpy as np

from princomp._compiled import compiled, part
from princomp._typing import Array

# Squares may be summed in any order, several at a time; comparisons are left as they are.
ANY_ORDER = {"reassoc", "contract", "nsz"}


def _apart(image: Array, top: int, left: int, patch: Array, enough: float) -> float:
    """Return the squared distance of a patch, or, once it is that large, of its first rows."""
    total = image[0, 0] * 0
    for y in range(patch.shape[0]):
        for x in range(patch.shape[1]):
            t = image[top + y, left + x] - patch[y, x]
            total += t * t
        if total >= enough:
            break
    return total


_apart = compiled(_apart, fastmath=ANY_ORDER)


@part
def _sift_down(apart: Array, places: Array, count: int) -> None:
    """Put the first of a heap, largest first, where it belongs; of equal ones the later place is the larger."""
    k = 0
    while True:
        child = 2 * k + 1
        if child >= count:
            return
        other = child + 1
        if other < count and (
            apart[other] > apart[child] or (apart[other] == apart[child] and places[other] > places[child])
        ):
            child = other
        if apart[child] < apart[k] or (apart[child] == apart[k] and places[child] < places[k]):
            return
        apart[child], apart[k] = apart[k], apart[child]
        places[child], places[k] = places[k], places[child]
        k = child


@part
def _sift_up(apart: Array, places: Array, k: int) -> None:
    """Put the last of a heap where it belongs; it came after the others, so of equal ones it is the larger."""
    while k > 0:
        parent = (k - 1) // 2
        if apart[parent] > apart[k]:
            return
        apart[parent], apart[k] = apart[k], apart[parent]
        places[parent], places[k] = places[k], places[parent]
        k = parent


@compiled
def nearest(image: Array, tops: Array, lefts: Array, tall: int, wide: int, reach: int, count: int) -> Array:
    """Return the places, top * width + left, of the patches most like those that begin at these tops and lefts."""
    height, width = image.shape
    rows, columns = height - tall + 1, width - wide + 1
    found = np.empty((len(tops), count), np.int64)
    apart = np.empty(count, image.dtype)
    for g in range(len(tops)):
        top, left = tops[g], lefts[g]
        patch = image[top : top + tall, left : left + wide].copy()
        first = max(0, min(top - reach, rows - 2 * reach - 1))
        begin = max(0, min(left - reach, columns - 2 * reach - 1))
        places = found[g]
        apart[0], places[0], held = -1.0, top * width + left, 1  # itself in any case
        worst = np.inf if held < count else -1.0
        for i in range(first, min(first + 2 * reach + 1, rows)):
            for j in range(begin, min(begin + 2 * reach + 1, columns)):
                if i == top and j == left:
                    continue
                d = _apart(image, i, j, patch, worst)
                if d >= worst:
                    continue
                if held < count:
                    apart[held], places[held] = d, i * width + j
                    _sift_up(apart, places, held)
                    held += 1
                else:
                    apart[0], places[0] = d, i * width + j
                    _sift_down(apart, places, count)
                if held == count:
                    worst = apart[0]
        places.sort()
    return found


@compiled
def gather(image: Array, places: Array, tall: int, wide: int) -> Array:
    """Return the patches (groups, patches, tall * wide) at these places."""
    width = image.shape[1]
    groups, count = places.shape
    patches = np.empty((groups, count, tall * wide), image.dtype)
    for g in range(groups):
        for k in range(count):
            top, left = places[g, k] // width, places[g, k] % width
            for y in range(tall):
                for x in range(wide):
                    patches[g, k, y * wide + x] = image[top + y, left + x]
    return patches


@compiled
def scatter(patches: Array, places: Array, tall: int, wide: int, weights: Array, sums: Array, totals: Array) -> None:
    """Add patches to an image of sums, each group with its weight, and the weights to one of totals."""
    width = sums.shape[1]
    for g in range(places.shape[0]):
        weight = weights[g]
        for k in range(places.shape[1]):
            top, left = places[g, k] // width, places[g, k] % width
            for y in range(tall):
                for x in range(wide):
                    sums[top + y, left + x] += weight * patches[g, k, y * wide + x]
                    totals[top + y, left + x] += weight


def warm_up() -> None:
    """Compile."""
    image, zero, one = np.zeros((3, 3)), np.zeros(1, np.int64), np.ones(1)
    places = nearest(image, zero, zero, 2, 2, 1, 2)
    scatter(gather(image, places, 2, 2), places, 2, 2, one, np.zeros((3, 3)), np.zeros((3, 3)))
