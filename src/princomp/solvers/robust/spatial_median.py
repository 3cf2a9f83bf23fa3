"""The spatial median (Weiszfeld, Tohoku Math. J. 1937; Vardi & Zhang, PNAS 2000), in passes over rows on any storage.

Objective: minimise sum_i |x_i - m| over m (p,). With u_i = (x_i - m) / |x_i - m|, R their sum, W that of 1/|x_i - m|
over rows that are not at m, and e the rows that are there, m is the median if and only if |R| <= e, and else the step

    m + (1 - e/|R|) R / W

lowers the objective. Steps are extrapolated (`princomp.solvers.extrapolation`); a point that lowers nothing is given up
for the plain step. Where one row is so near that it holds half of W, it is tried itself: steps towards a row that is
the median never arrive.

A value holds "median" (p,), the best point; "plain" (p,), the step from there; "next" (p,), the point to look at;
"points" and "images" (m, p), the last points and their steps; "tried" (p,), the last row that was tried; "objective",
"residual" and "iteration".
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered
from princomp.result import State, Value
from princomp.solvers.extrapolation import anderson, remember

HELD = 0.5  # of W, by one row: then it is tried
ROUNDING = 1e-14  # of the objective: a change that is no more is none
LINE = 1e-12  # of the first singular value: with a second one below it, rows lie on a line

Pull = tuple[float, Array, float, int, float, Array]


def pull(block: Any, rows: slice) -> Pull:
    """Return W, R, the sum of distances, e, and how far away the nearest row is, and where, of rows less m."""
    if isinstance(block, np.ndarray):
        distances = np.sqrt(np.einsum("ij,ij->i", block, block))
    else:
        distances = np.sqrt(block.row_squares())
    apart = distances > 0
    inverse = np.divide(1.0, distances, out=np.zeros(len(distances)), where=apart)
    both = np.zeros((2, len(distances)))
    both[0] = inverse
    nearest = int(np.argmax(inverse))
    both[1, nearest] = 1.0
    towards, where = both @ block
    away = float(distances[nearest]) if apart.any() else np.inf
    return float(inverse.sum()), towards, float(distances.sum()), int((~apart).sum()), away, where


def add_pulls(one: Pull, other: Pull) -> Pull:
    """Return that of the rows of both."""
    nearer = one if one[4] <= other[4] else other
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3], nearer[4], nearer[5]


def excess(pulled: Pull, n: int, m: Array) -> float:
    """Return max(|R| - e, 0) / n, the slope of the mean distance: from 0, at the median, to 1.

    Less what rounding of m may do to it: a median far from 0 is not known any better.
    """
    rounding = float(np.finfo(np.float64).eps) * float(np.linalg.norm(m)) * pulled[0]
    return max(float(np.linalg.norm(pulled[1])) - pulled[3] - rounding, 0.0) / n


def start(m: Array) -> Value:
    """Return the value before the first pass, which looks at m."""
    nothing = np.full(len(m), np.nan)
    return {
        "median": m,
        "plain": m,
        "next": m,
        "points": np.zeros((0, len(m))),
        "images": np.zeros((0, len(m))),
        "tried": nothing,
        "objective": np.array(np.inf),
        "residual": np.array(np.inf),
        "iteration": np.array(0),
    }


def spatial_median(less: Callable[[Array], Centered], value: Value) -> Iterator[State]:
    """Yield states that converge to the spatial median; ``less(m)`` are the rows less m."""
    while True:
        m, iteration = value["next"], int(value["iteration"]) + 1
        X = less(m)
        pulled: Pull = X.reduce(pull, combine=add_pulls)
        plainly = np.array_equal(m, value["plain"])
        slope = excess(pulled, X.shape[0], m)
        lower = _is_lower(value, pulled[2], slope)
        if lower:
            value = _accepted(value, m, pulled, slope)
        else:  # the plain step, and nothing is remembered of what led here
            value = value | {"next": value["plain"], "points": value["points"][:0], "images": value["images"][:0]}
        value = value | {"iteration": np.array(iteration)}
        yield State(value, float(value["objective"]), float(value["residual"]), iteration)
        if (plainly and not lower) or float(value["residual"]) == 0:
            return


def _is_lower(value: Value, objective: float, slope: float) -> bool:
    """Tell whether a point is better: by the objective, or, where rounding is all that differs, by the slope."""
    before = float(value["objective"])
    if not np.isfinite(before):
        return True
    change = (objective - before) / before if before else 0.0
    return change < -ROUNDING or (change <= ROUNDING and slope < float(value["residual"]))


def _accepted(value: Value, m: Array, pulled: Pull, residual: float) -> Value:
    inverse, towards, total, here, away, nearest = pulled
    length = float(np.linalg.norm(towards))
    step = max(1 - here / length, 0.0) / inverse * towards if length > 0 else np.zeros_like(m)
    plain = m + step
    points, images = remember(value["points"], m), remember(value["images"], plain)
    beyond = anderson(points, images)
    following, tried = plain if beyond is None else beyond, value["tried"]
    if HELD * inverse * away <= 1.0 and not np.array_equal(m + nearest, tried):
        following = tried = m + nearest
    return {
        "median": m,
        "plain": plain,
        "next": following,
        "points": points,
        "images": images,
        "tried": tried,
        "objective": np.array(total),
        "residual": np.array(residual),
    }


def on_a_line(some: Array) -> Array | None:
    """Return the direction (p,) of the line that all these rows lie on, or None: then the median is that of places."""
    apart = some - np.median(some, axis=0)
    apart = apart - apart[0]
    _, lengths, V = np.linalg.svd(apart, full_matrices=False)
    return V[0] if len(lengths) < 2 or lengths[1] <= LINE * lengths[0] else None
