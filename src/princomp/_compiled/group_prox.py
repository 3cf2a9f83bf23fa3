"""Interior-point steps and block descent for the prox of overlapping groups; see `princomp.penalties.overlapping`.

Groups that are not live and features where w is 0 take no part; parts are 0 there. Twins: `advance` and `sweep` of
`princomp.penalties.interior`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._compiled import kernel
from princomp._compiled.group_layout import BACK_OFF, LEAST, PINNED, STALLED, Layout, Point, lay_out

Array = NDArray[Any]


@kernel
def _residuals(layout: Layout, w: Array, live: Array, point: Point) -> Any:
    """Return 1 + sum_g 1 / scale_g for each feature, and scale u - z for each entry."""
    indices, first, (parts, scale, _) = layout.indices, layout.first, point
    share, z, lacking = np.ones(len(w)), w.copy(), np.zeros(len(parts))
    for g in np.flatnonzero(live):
        for e in range(first[g], first[g + 1]):
            share[indices[e]] += 1.0 / scale[g]
            z[indices[e]] -= parts[e]
    for g in np.flatnonzero(live):
        for e in range(first[g], first[g + 1]):
            if w[indices[e]] != 0.0:
                lacking[e] = scale[g] * parts[e] - z[indices[e]]
    return share, lacking


@kernel
def _system(layout: Layout, live: Array, point: Point, share: Array) -> Array:
    """Return the matrix of the equations for the change of scale.

    It is diag(slack / scale) and, for each feature, diag(u^2 / scale) - (u / scale)(u / scale)' / share over its
    groups, where u are its parts.
    """
    rows, last, starts, owner, (parts, scale, slack) = layout.rows, layout.last, layout.starts, layout.owner, point
    matrix = np.zeros(rows[-1] + last[-1] + 1)
    for g in range(len(live)):
        matrix[rows[g] + g] = slack[g] / scale[g] if live[g] else 1.0
    for i in range(len(starts) - 1):
        for a in range(starts[i], starts[i + 1]):
            e = layout.by_feature[a]
            g = owner[e]
            if parts[e] != 0.0:
                factor = parts[e] / (scale[g] * share[i])
                # The difference is 1 at the least, but for rounding.
                matrix[rows[g] + g] += factor * parts[e] * max(share[i] - 1.0 / scale[g], 1.0)
                for b in range(a + 1, starts[i + 1]):
                    other = layout.by_feature[b]
                    matrix[rows[g] + owner[other]] -= factor * parts[other] / scale[owner[other]]
    return matrix


@kernel
def _factorise(layout: Layout, matrix: Array) -> bool:
    """Replace the matrix by U, with U'U the matrix; False if it is not positive definite."""
    rows, last = layout.rows, layout.last
    for k in range(len(last)):
        origin, end = rows[k], last[k] + 1
        if not matrix[origin + k] > 0.0:
            return False
        root = np.sqrt(matrix[origin + k])
        for h in range(k, end):
            matrix[origin + h] /= root
        for g in range(k + 1, end):
            factor, here = matrix[origin + g], rows[g]
            if factor != 0.0:
                for h in range(g, end):
                    matrix[here + h] -= factor * matrix[origin + h]
    return True


@kernel
def _solve(layout: Layout, factor: Array, x: Array) -> Array:
    """Return the solution y of U'U y = x."""
    rows, last, y = layout.rows, layout.last, x.copy()
    for k in range(len(y)):
        y[k] /= factor[rows[k] + k]
        for h in range(k + 1, last[k] + 1):
            y[h] -= factor[rows[k] + h] * y[k]
    for k in range(len(y) - 1, -1, -1):
        for h in range(k + 1, last[k] + 1):
            y[k] -= factor[rows[k] + h] * y[h]
        y[k] /= factor[rows[k] + k]
    return y


@kernel
def _direction(
    layout: Layout, w: Array, live: Array, point: Point, factor: Array, share: Array, lacking: Array, rest: Any
) -> Point:
    """Return the step (du, dscale, dslack), the solution of these equations, with (squares, target) the ``rest``.

    scale du + u dscale - dz = -lacking, dz = -sum du, slack + dslack + u'du = squares,
    scale dslack + slack dscale = target - scale slack.
    """
    indices, first, (parts, scale, slack), (squares, target) = layout.indices, layout.first, point, rest
    images, step, right = np.zeros(len(w)), np.zeros(len(parts)), np.zeros(len(live))
    for g in np.flatnonzero(live):
        for e in range(first[g], first[g + 1]):
            images[indices[e]] += lacking[e] / scale[g]
    images /= share
    for g in np.flatnonzero(live):
        right[g] = target[g] / scale[g] - squares[g]
        for e in range(first[g], first[g + 1]):
            right[g] += parts[e] * (images[indices[e]] - lacking[e]) / scale[g]
    change = _solve(layout, factor, right)
    for g in np.flatnonzero(live):
        for e in range(first[g], first[g + 1]):
            images[indices[e]] += parts[e] * change[g] / (scale[g] * share[indices[e]])
    for g in np.flatnonzero(live):
        for e in range(first[g], first[g + 1]):
            if w[indices[e]] != 0.0:
                step[e] = (images[indices[e]] - parts[e] * change[g] - lacking[e]) / scale[g]
    return Point(step, change, np.where(live, (target - slack * change) / scale - slack, 0.0))


@kernel
def _reach(layout: Layout, bounds: Array, live: Array, point: Point, step: Point) -> float:
    """Return how many steps lead to where the first scale or slack is 0."""
    reach = np.inf
    for g in np.flatnonzero(live):
        slack, other, change = point.slack[g], step.slack[g], step.scale[g]
        if change < 0.0:
            reach = min(reach, -point.scale[g] / change)
        if slack <= PINNED * bounds[g] ** 2:
            reach = min(reach, -slack / other) if other < 0.0 else reach
            continue
        square, along = 0.0, 0.0
        for e in range(layout.first[g], layout.first[g + 1]):
            square += step.parts[e] ** 2
            along += step.parts[e] * point.parts[e]
        root = np.sqrt(along**2 + 2 * square * slack)
        if square > 0.0:
            reach = min(reach, 2 * slack / (along + root) if along > 0.0 else (root - along) / square)
    return reach


@kernel
def _go(layout: Layout, bounds: Array, live: Array, point: Point, step: Point, length: float) -> None:
    """Go along a step, in place; the slack is computed from the parts where that has the digits."""
    point.parts[:] += length * step.parts
    point.scale[:] += length * step.scale
    for g in np.flatnonzero(live):
        if point.slack[g] <= PINNED * bounds[g] ** 2:
            point.slack[g] += length * step.slack[g]
        else:
            point.slack[g] = bounds[g] ** 2 / 2
            for e in range(layout.first[g], layout.first[g + 1]):
                point.slack[g] -= point.parts[e] ** 2 / 2


@kernel
def advance(layout: Layout, w: Array, bounds: Array, live: Array, point: Point, until: float, steps: int) -> bool:
    """Make up to ``steps`` steps, in place; True if it has gone as far as it should, or can."""
    parts, scale, slack = point
    members, squares = max(1, live.sum()), np.zeros(len(live))
    for _ in range(steps):
        mean = np.where(live, scale * slack, 0.0).sum() / members
        if mean <= until:
            return True
        share, lacking = _residuals(layout, w, live, point)
        factor = _system(layout, live, point, share)
        if not _factorise(layout, factor):
            return True
        for g in np.flatnonzero(live):
            squares[g] = bounds[g] ** 2 / 2
            for e in range(layout.first[g], layout.first[g + 1]):
                squares[g] -= parts[e] ** 2 / 2
        ahead = _direction(layout, w, live, point, factor, share, lacking, (squares, np.zeros(len(live))))
        length = min(1.0, _reach(layout, bounds, live, point, ahead))
        there = (scale + length * ahead.scale) * np.maximum(slack + length * ahead.slack, 0.0)
        lower = max((np.where(live, there, 0.0).sum() / members / mean) ** 3, LEAST)
        for g in np.flatnonzero(live):  # terms of the second order, as that step shows them
            for e in range(layout.first[g], layout.first[g + 1]):
                squares[g] -= ahead.parts[e] ** 2 / 2
                lacking[e] += ahead.parts[e] * ahead.scale[g]
        target = lower * mean - ahead.scale * ahead.slack
        step = _direction(layout, w, live, point, factor, share, lacking, (squares, target))
        length = min(1.0, BACK_OFF * _reach(layout, bounds, live, point, step))
        _go(layout, bounds, live, point, step, length)
        if not length > STALLED:
            return True
    return False


@kernel
def sweep(layout: Layout, w: Array, bounds: Array, live: Array, parts: Array) -> Any:
    """Minimise over the parts of one live group after the other, in place; return z, who is not zero, and the gap."""
    indices, first = layout.indices, layout.first
    z, outside, gap = w.copy(), np.zeros(len(live), dtype=np.bool_), 0.0
    for e in range(len(parts)):
        z[indices[e]] -= parts[e]
    for g in np.flatnonzero(live):
        square = 0.0
        for e in range(first[g], first[g + 1]):
            square += (z[indices[e]] + parts[e]) ** 2
        outside[g] = square > bounds[g] ** 2
        factor = bounds[g] / np.sqrt(square) if outside[g] else 1.0
        for e in range(first[g], first[g + 1]):
            whole = z[indices[e]] + parts[e]
            parts[e] = factor * whole
            z[indices[e]] = (1.0 - factor) * whole
    for g in np.flatnonzero(live):
        left, size, apart = 0.0, 0.0, 0.0
        for e in range(first[g], first[g + 1]):
            left += z[indices[e]] ** 2
            size += parts[e] ** 2
        left, size = np.sqrt(left), bounds[g] if outside[g] else np.sqrt(size)
        if left > 0.0:
            for e in range(first[g], first[g + 1]):
                direction = parts[e] / size if size > 0.0 else 0.0
                apart += (z[indices[e]] / left - direction) ** 2
            gap += left * (max(bounds[g] - size, 0.0) + size * apart / 2)
    return z, outside, gap


def warm_up() -> None:
    """Compile."""
    layout, w, bounds, live = lay_out([[0, 1], [1, 2]], 3), np.ones(3), np.full(2, 0.1), np.ones(2, dtype=np.bool_)
    advance(layout, w, bounds, live, Point(np.full(4, 0.05), np.ones(2), np.full(2, 0.0025)), 1.0, 1)
    sweep(layout, w, bounds, live, np.zeros(4))
