"""The spatial median (Weiszfeld, Tohoku Math. J. 1937; Vardi & Zhang, PNAS 2000), in passes over rows on any storage.

Objective: minimise sum_i |x_i - m| over m (p,). With u_i = (x_i - m) / |x_i - m|, R their sum, W that of 1/|x_i - m|
over rows that are not at m, and e the rows that are there, m is the median if and only if |R| <= e, and else the step

    m + (1 - e/|R|) R / W

lowers the objective. Steps are extrapolated (`princomp.solvers.extrapolation`); a point that lowers nothing is given up
for the plain step. Where rows are so near that they hold half of W, or nothing else leads further, the nearest is
tried itself: steps towards a row that is the median never arrive.

A value holds "median" (p,), the best point; "plain" (p,), the step from there, and "nearest" (p,), the row nearest to
it; "next" (p,), the point to look at; "points" and "images" (m, p), the last points and their steps; "tried" (p,), the
last row that was tried; "objective", "residual" and "iteration".
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data import Centered
from princomp.result import State, Value
from princomp.solvers.extrapolation import anderson, remember

HELD = 0.5  # of W, by rows at one place: then it is tried
PLACE = 1e-3  # of a distance: rows as far away as the nearest count as being where it is
ROUNDING = 1e-14  # of the objective: a change that is no more is none
LINE = 1e-13  # of the largest: rows that leave a line by no more lie on it


class Pull(NamedTuple):
    """What a pass tells of a point m."""

    weight: float  # W
    towards: Array  # (p,) R
    total: float  # the sum of distances
    here: int  # e
    away: float  # how far the nearest row is that is not at m
    held: float  # what rows at that distance have of W
    nearest: Array  # (p,) where it is, from m


def pull(block: Any, rows: slice) -> Pull:
    """Return how rows less m pull: a block function."""
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
    held = float(inverse[distances <= (1 + PLACE) * away].sum())
    return Pull(float(inverse.sum()), towards, float(distances.sum()), int((~apart).sum()), away, held, where)


def add_pulls(one: tuple[Any, ...], other: tuple[Any, ...]) -> Pull:
    """Return that of the rows of both; what comes from workers are bare tuples."""
    one, other = Pull(*one), Pull(*other)
    near, far = (one, other) if one.away <= other.away else (other, one)
    held = near.held + (far.held if far.away <= (1 + PLACE) * near.away else 0.0)
    return Pull(
        one.weight + other.weight,
        one.towards + other.towards,
        one.total + other.total,
        one.here + other.here,
        near.away,
        held,
        near.nearest,
    )


def excess(pulled: Pull, n: int, m: Array) -> float:
    """Return max(|R| - e, 0) / n, the slope of the mean distance: from 0, at the median, to 1.

    Less what rounding of m may do to it: a median far from 0 is not known any better.
    """
    rounding = float(np.finfo(np.float64).eps) * float(np.linalg.norm(m)) * pulled.weight
    return max(float(np.linalg.norm(pulled.towards)) - pulled.here - rounding, 0.0) / n


def start(m: Array) -> Value:
    """Return the value before the first pass, which looks at m."""
    nothing = np.full(len(m), np.nan)
    return {
        "median": m,
        "plain": m,
        "next": m,
        "nearest": nothing,
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
        pulled = Pull(*X.reduce(pull, combine=add_pulls))
        plainly = np.array_equal(m, value["plain"])
        slope = excess(pulled, X.shape[0], m)
        lower = _is_lower(value, pulled.total, slope)
        untried = not np.array_equal(value["nearest"], value["tried"])
        if lower:
            value = _accepted(value, m, pulled, slope)
        elif plainly and untried:  # the last thing to try
            value = {**value, "next": value["nearest"], "tried": value["nearest"]}
        else:  # the plain step, and nothing is remembered of what led here
            value = {**value, "next": value["plain"], "points": value["points"][:0], "images": value["images"][:0]}
        value = {**value, "iteration": np.array(iteration)}
        yield State(value, float(value["objective"]), float(value["residual"]), iteration)
        if (not lower and plainly and not untried) or float(value["residual"]) == 0:
            return


def _is_lower(value: Value, objective: float, slope: float) -> bool:
    """Tell whether a point is better: by the objective, or, where rounding is all that differs, by the slope.

    A row far out hides in its distance what all others do.
    """
    before = float(value["objective"])
    if not np.isfinite(before):
        return True
    change = (objective - before) / before if before else 0.0
    return change < -ROUNDING or (change <= ROUNDING and slope < float(value["residual"]))


def _accepted(value: Value, m: Array, pulled: Pull, residual: float) -> Value:
    length = float(np.linalg.norm(pulled.towards))
    step = max(1 - pulled.here / length, 0.0) / pulled.weight * pulled.towards if length > 0 else np.zeros_like(m)
    plain, nearest, tried = m + step, m + pulled.nearest, value["tried"]
    points, images = remember(value["points"], m), remember(value["images"], plain)
    beyond = anderson(points, images)
    following = plain if beyond is None else beyond
    if pulled.held >= HELD * pulled.weight and not np.array_equal(nearest, tried):
        following = tried = nearest
    return {
        "median": m,
        "plain": plain,
        "next": following,
        "nearest": nearest,
        "points": points,
        "images": images,
        "tried": tried,
        "objective": np.array(pulled.total),
        "residual": np.array(residual),
    }


def on_a_line(some: Array) -> Array | None:
    """Return the direction (p,) of the line that all these rows lie on, or None.

    Of rows on a line the median is one of them, or lies between two, and steps would not find it.
    """
    apart = some - some[0]
    _, lengths, V = np.linalg.svd(apart, full_matrices=False)
    known = LINE * max(float(np.abs(some).max(initial=0.0)), float(lengths[0]))
    return V[0] if len(lengths) < 2 or lengths[1] <= known else None
