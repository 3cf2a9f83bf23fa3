"""Swaps of features, two at a time in one plane: what exchanges gain of components of many features, in little time.

With v a unit vector on the features I, A the deflated S and a = Av, take feature i out of v, w = (v - v_i e_i) / |.|,
and look for the best vector in the plane of w and e_j, j outside I:

    w'Aw = (v'Av - 2 v_i a_i + v_i^2 A_ii) / (1 - v_i^2),    w'A e_j = (a_j - v_i A_ij) / sqrt(1 - v_i^2).

The larger eigenvalue of that 2 x 2 problem is what the swap reaches at least. Of the smallest loadings and the largest
entries of a outside I the best pair is swapped as long as one helps, with rows and columns of A for these alone; then
power steps on the features at hand let all loadings follow, and others are looked at. An exchange judged exactly
(`exchange`) costs the square of the number of features times p.
"""

from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.solvers.deflation import Deflated
from princomp.solvers.exchange import HELPS, Units, two_dimensional

# Sets of 50 to 1250 features of noise (200 x 1000 to 200 x 3000) took 10 to 300 swaps, and then gained up to 0.05 %
# from exchanges judged exactly, for a hundred times the time.
PAIRS = 32  # smallest loadings, and largest entries outside, that are looked at
TURN = 20  # swaps between power steps
FOLLOWING = 3  # power steps at a turn
SWAP_WORK = 5e8  # multiplications that the swaps from one start may take


class _Point(NamedTuple):
    v: Array  # of unit length
    a: Array  # A v
    value: float  # v'Av


def swapped(A: Deflated, units: Units, chosen: Array, v: Array) -> tuple[Array, Array, float, float]:
    """Return (chosen, v, v'Av, work) after swaps until none helps, or the work is done: no less than before."""
    chosen, point = chosen.copy(), _at(A, v)
    products, parts = (2 + FOLLOWING) * A.product(int(chosen.sum())), A.scatter.effort * (2 * PAIRS) ** 2
    work, turn = 0.0, products + parts
    while work < SWAP_WORK and not chosen.all():
        work += turn
        following, v = _turned(A, chosen, chosen & ~units.forced, point)
        if v is point.v:
            break
        chosen, point = following, _followed(A, following, v)
    return chosen, point.v, point.value, work


def _at(A: Deflated, v: Array) -> _Point:
    a = A.times(v[None])[0]
    return _Point(v, a, float(v @ a))


def _followed(A: Deflated, chosen: Array, v: Array) -> _Point:
    """Return the point after power steps on the features chosen."""
    point = _at(A, v)
    for _ in range(FOLLOWING):
        w = np.where(chosen, point.a + A.shift * point.v, 0.0)
        after = _at(A, w / max(float(np.linalg.norm(w)), 1e-300))
        if after.value <= point.value:
            break
        point = after
    return point


def _turned(A: Deflated, chosen: Array, removable: Array, point: _Point) -> tuple[Array, Array]:
    """Return (chosen, v) after the best swaps among a few features; v itself, if none helps."""
    inside, outside = np.flatnonzero(removable), np.flatnonzero(~chosen)
    few = np.append(inside[_smallest(np.abs(point.v[inside]))], outside[_smallest(-np.abs(point.a[outside]))])
    B, w, b, value = A.part(few, few), point.v[few], point.a[few], point.value
    used, own = chosen[few], np.diag(B)
    scale, swaps = 1.0, 0  # what all other loadings are multiplied by
    for _ in range(TURN):
        out, into = np.flatnonzero(used), np.flatnonzero(~used)
        if not len(out):
            break
        left = np.maximum(1 - w[out] ** 2, 1e-300)[:, None]
        without = (value - 2 * w[out] * b[out] + w[out] ** 2 * own[out])[:, None] / left
        across = (b[into] - w[out][:, None] * B[np.ix_(out, into)]) / np.sqrt(left)
        reach = two_dimensional(without, own[into], across**2)
        e, q = divmod(int(np.argmax(reach)), len(into))
        if not reach[e, q] > value + HELPS * abs(value):
            break
        i, j = out[e], into[q]
        along, new = np.linalg.eigh([[without[e, 0], across[e, q]], [across[e, q], own[j]]])[1][:, 1]
        shrink = along / np.sqrt(left[e, 0])
        b = shrink * (b - w[i] * B[i]) + new * B[j]
        w[i], used[i] = 0.0, False
        w *= shrink
        w[j], used[j] = new, True
        scale, value, swaps = scale * shrink, float(reach[e, q]), swaps + 1
    if not swaps:
        return chosen, point.v
    v, following = scale * point.v, chosen.copy()
    v[few], following[few] = w, used
    return following, v


def _smallest(numbers: Array) -> Array:
    """Return where the smallest numbers are."""
    return np.argpartition(numbers, PAIRS)[:PAIRS] if len(numbers) > PAIRS else np.arange(len(numbers))
