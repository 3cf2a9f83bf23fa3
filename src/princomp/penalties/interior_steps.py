"""Interior-point steps and block descent for the prox of overlapping groups: the slow twin of the compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._compiled.group_layout import BACK_OFF, LEAST, PINNED, STALLED, Layout, Point

Array = NDArray[Any]


def advance(layout: Layout, w: Array, bounds: Array, live: Array, point: Point, until: float, steps: int) -> bool:
    """Make up to ``steps`` steps, in place; True if it has gone as far as it should, or can."""
    for _ in range(steps):
        parts, scale, slack = point
        mean = float((scale * slack)[live].mean())
        if mean <= until:
            return True
        direction, lacking = _equations(layout, w, live, point)
        squares = (bounds**2 - _squares(layout, parts)) / 2
        ahead = direction(lacking, squares, np.zeros(len(live)))
        length = min(1.0, _reach(layout, bounds, live, point, ahead))
        there = (scale + length * ahead.scale) * np.maximum(slack + length * ahead.slack, 0.0)
        target = max((float(there[live].mean()) / mean) ** 3, LEAST) * mean
        step = direction(  # with terms of the second order, as the first step shows them
            lacking + ahead.parts * ahead.scale[layout.owner],
            squares - _squares(layout, ahead.parts) / 2,
            target - ahead.scale * ahead.slack,
        )
        length = min(1.0, BACK_OFF * _reach(layout, bounds, live, point, step))
        pinned = slack <= PINNED * bounds**2
        parts += length * step.parts
        scale += length * step.scale
        exact = (bounds**2 - _squares(layout, parts)) / 2
        slack[live] = np.where(pinned, slack + length * step.slack, exact)[live]
        if not length > STALLED:
            return True
    return False


def _equations(layout: Layout, w: Array, live: Array, point: Point) -> tuple[Callable[..., Point], Array]:
    """Return a function (lacking, squares, target) -> (du, dscale, dslack), and scale u - z for each entry.

    The function solves scale du + u dscale - dz = -lacking, dz = -sum du, slack + dslack + u'du = squares and
    scale dslack + slack dscale = target - scale slack, for the change of scale first.
    """
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import splu

    (parts, scale, slack), indices, owner = point, layout.indices, layout.owner
    takes_part = live[owner] & (w[indices] != 0)
    share = 1.0 + _by_feature(layout, live[owner] / scale[owner])
    across = csr_array((parts / scale[owner], indices, layout.first), shape=(len(live), len(w)))
    own = np.add.reduceat(parts**2 / scale[owner], layout.first[:-1])
    matrix = diags_array(np.where(live, own + slack / scale, 1.0)) - across @ diags_array(1.0 / share) @ across.T
    solve = splu(matrix.tocsc()).solve
    z = w - _by_feature(layout, parts)

    def direction(lacking: Array, squares: Array, target: Array) -> Point:
        images = _by_feature(layout, lacking / scale[owner]) / share
        along = np.add.reduceat(parts * (images[indices] - lacking), layout.first[:-1])
        change = solve(np.where(live, (target + along) / scale - squares, 0.0))
        images += _by_feature(layout, parts * (change / scale)[owner]) / share
        step = np.where(takes_part, (images[indices] - parts * change[owner] - lacking) / scale[owner], 0.0)
        return Point(step, change, np.where(live, (target - slack * change) / scale - slack, 0.0))

    return direction, np.where(takes_part, scale[owner] * parts - z[indices], 0.0)


def _reach(layout: Layout, bounds: Array, live: Array, point: Point, step: Point) -> float:
    """Return how many steps lead to where the first scale or slack is 0."""
    pinned = point.slack <= PINNED * bounds**2
    square, along = _squares(layout, step.parts), np.add.reduceat(step.parts * point.parts, layout.first[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        of_scale = np.where(step.scale < 0, -point.scale / step.scale, np.inf)
        of_slack = np.where(step.slack < 0, -point.slack / step.slack, np.inf)
        root = np.sqrt(along**2 + 2 * square * point.slack)
        in_ball = np.where(along > 0, 2 * point.slack / (along + root), (root - along) / square)
    reach = np.minimum(of_scale, np.where(pinned, of_slack, np.where(square > 0, in_ball, np.inf)))
    return float(reach[live].min())


def sweep(layout: Layout, w: Array, bounds: Array, live: Array, parts: Array) -> tuple[Array, Array, float]:
    """Minimise over the parts of one live group after the other, in place; return z, who is not zero, and the gap."""
    z, outside, gap = w - _by_feature(layout, parts), np.zeros(len(live), dtype=bool), 0.0
    entries = [slice(a, b) for a, b in zip(layout.first, layout.first[1:])]
    for g in np.flatnonzero(live):
        here = layout.indices[entries[g]]
        whole = z[here] + parts[entries[g]]
        square = float(whole @ whole)
        outside[g] = square > bounds[g] ** 2
        factor = bounds[g] / np.sqrt(square) if outside[g] else 1.0
        parts[entries[g]], z[here] = factor * whole, (1.0 - factor) * whole
    for g in np.flatnonzero(live):
        rest, part = z[layout.indices[entries[g]]], parts[entries[g]]
        left, size = float(np.linalg.norm(rest)), float(bounds[g] if outside[g] else np.linalg.norm(part))
        if left > 0:
            # A sum of terms that are not negative: the plain difference would be lost in rounding.
            apart = rest / left - (part / size if size > 0 else 0.0)
            gap += left * (max(bounds[g] - size, 0.0) + size * float(apart @ apart) / 2)
    return z, outside, gap


def _by_feature(layout: Layout, entries: Array) -> Array:
    """Return sums of entries over the groups of each feature, (p,)."""
    return np.bincount(layout.indices, weights=entries, minlength=len(layout.starts) - 1)


def _squares(layout: Layout, entries: Array) -> Array:
    """Return the squared norm of each group, (G,)."""
    squares: Array = np.add.reduceat(entries**2, layout.first[:-1])
    return squares
