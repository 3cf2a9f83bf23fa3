"""The prox of overlapping groups by an interior-point method: the dual problem, solved to a small duality gap.

Problem, over parts u_g that are zero outside their group:

    min 1/2 |z|^2,    z = w - sum_g u_g,    |u_g| <= bound_g.

Its answer z minimises 1/2 |z - w|^2 + sum_g bound_g |z_g|. Conditions of optimality: z_g = scale_g u_g and
scale_g slack_g = 0, with scale_g >= 0 and slack_g = (bound_g^2 - |u_g|^2) / 2 >= 0. Steps with a predictor and a
corrector (Mehrotra, SIAM J. Optim. 1992) keep |u_g| < bound_g; the equations come down to one unknown for each group,
and groups that share no feature have nothing in common in them. Near the end it shows which groups are zero; the rest,
where nothing is about to vanish, converges quadratically. The answer is believed by its duality gap alone:

    1/2 |z - prox|^2 <= gap = sum_g bound_g |z_g| - u_g'z_g.
"""

from collections.abc import Iterator

import numpy as np

from princomp._compiled.group_layout import Layout, Point
from princomp._typing import Array

CLOSE = 1e-10  # of |w|: how close z shall come
# Means of scale times slack at which to look which groups are zero; z is near to about their square root.
LOOKS = (1e-13, 1e-16, 1e-19, 1e-22)
FINAL = 1e-24  # the mean for groups that are not zero
MOST_STEPS = 100
MOST_SWEEPS = 100  # to take up what rounding left of groups that are zero
UNSEEN = 1e-17  # of |w|: a bound that makes no difference
WORK = 2e8  # multiplications in a call of a compiled loop, which cannot be interrupted


def solve(layout: Layout, w: Array, bounds: Array) -> tuple[Array, float]:
    """Return the prox z at w (p,), and a bound on its distance from the true one, relative to |w|.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp._compiled.group_layout import lay_out
    >>> from princomp.penalties.interior import solve
    >>> z, error = solve(lay_out([[0, 1], [1, 2]], 3), np.array([3.0, 4.0, 0.0]), np.array([1.0, 0.0]))
    >>> z.round(9).tolist(), error < 1e-9
    ([2.4, 3.2, 0.0], True)
    """
    largest = float(np.abs(w).max(initial=0.0))
    if largest == 0:
        return np.zeros_like(w), 0.0
    size = largest * float(np.linalg.norm(w / largest))
    with np.errstate(over="ignore"):
        w, bounds = w / size, np.minimum(bounds / size, 2.0)  # all above 1 are the same
    live, w = _screened(layout, w, bounds)
    if not live.any():
        return w * size, 0.0
    found = [(w, np.inf)]
    for z, gap in _attempts(layout, w, bounds, live):
        found.append((z, error := float(np.sqrt(2 * gap))))
        if error <= CLOSE:
            break
    z, error = min(found, key=lambda answer: answer[1])
    # Groups are zero or not: what is no larger than the error is its trace.
    vanished = live & (_norms(layout, z) <= max(error, CLOSE))
    return np.where(_features(layout, vanished), 0.0, z) * size, error


def _screened(layout: Layout, w: Array, bounds: Array) -> tuple[Array, Array]:
    """Return which groups are left, and w without those that are zero for certain: |w_g| <= bound_g is enough."""
    live, w = bounds > UNSEEN, w.copy()
    while True:
        zero = live & (_norms(layout, w) <= bounds)
        if not zero.any():
            return live, w
        live &= ~zero
        w[_features(layout, zero)] = 0.0


def _attempts(layout: Layout, w: Array, bounds: Array, live: Array) -> Iterator[tuple[Array, float]]:
    """Yield answers z and their gaps, of smaller and smaller means of scale times slack."""
    from princomp._compiled import group_prox  # here: numba takes long to load

    widths = (layout.last - np.arange(len(live)) + 1).astype(np.float64)
    at_once = max(1, int(WORK / float(widths @ widths + 1)))

    def reach(w: Array, live: Array, point: Point, mean: float) -> tuple[Array, Array, float, Array]:
        left = MOST_STEPS
        while left > 0 and not group_prox.advance(layout, w, bounds, live, point, mean, min(at_once, left)):
            left -= at_once
        parts = point.parts.copy()
        return *group_prox.answer(layout, w, bounds, live, parts), parts

    point = _start(layout, w, bounds, live)
    for look in LOOKS:
        z, outside, gap, parts = reach(w, live, point, look)
        yield z, gap
        # Groups inside their bounds look like zero: can their parts alone make up all of w there?
        zero = live & ~outside
        dead = _features(layout, zero)
        parts, made = np.where(zero[layout.owner], parts, 0.0), np.where(dead, w, 0.0)
        if any(not group_prox.sweep(layout, made, bounds, zero, parts)[0].any() for _ in range(MOST_SWEEPS)):
            rest = np.where(dead, 0.0, w)
            alive = live & (_norms(layout, rest) > 0)
            parts = np.where(alive[layout.owner] & ~dead[layout.indices], point.parts, 0.0)
            z, _, gap, _ = reach(rest, alive, Point(parts, point.scale.copy(), point.slack.copy()), FINAL)
            yield z, gap


def _start(layout: Layout, w: Array, bounds: Array, live: Array) -> Point:
    """Return parts well inside their bounds, and what goes with them."""
    scale = np.where(live, _norms(layout, w) / np.where(live, bounds, 1.0), 1.0)
    shares = np.bincount(layout.indices, weights=(live / scale)[layout.owner], minlength=len(w))
    parts = (w / (1.0 + shares))[layout.indices] * (live / scale)[layout.owner]
    slack = (bounds**2 - np.add.reduceat(parts**2, layout.first[:-1])) / 2
    return Point(parts, scale, np.where(live, slack, 1.0))


def _features(layout: Layout, groups: Array) -> Array:
    """Return which features are in one of the groups, (p,)."""
    features = np.zeros(len(layout.starts) - 1, dtype=bool)
    features[layout.indices[groups[layout.owner]]] = True
    return features


def _norms(layout: Layout, w: Array) -> Array:
    """Return the norm of each group, (G,)."""
    norms: Array = np.sqrt(np.add.reduceat(w[layout.indices] ** 2, layout.first[:-1]))
    return norms
