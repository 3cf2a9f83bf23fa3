"""Interior-point steps and block descent for the prox of overlapping groups; see `princomp.penalties.interior`.

Groups that are not live and features where w is 0 take no part; parts are 0 there.
"""

from typing import Any

import numpy as np

from princomp._compiled import compiled_or_itself
from princomp._compiled.group_layout import Layout, Point, lay_out
from princomp._typing import Array

BACK_OFF = 0.99  # share of the way to the wall that is gone
LEAST = 1e-4  # factor by which a step may lower the mean of scale times slack
PINNED = 1e-8  # slack, relative to bound^2, below which the difference bound^2 - |u|^2 has too few digits
STALLED = 1e-8  # length of a step that leads nowhere


@compiled_or_itself
def _by_feature(layout: Layout, live: Array, entries: Array) -> Array:
    """Return sums of entries over the live groups of each feature, (p,)."""
    sums = np.zeros(len(layout.starts) - 1)
    for g in np.flatnonzero(live):
        for e in range(layout.first[g], layout.first[g + 1]):
            sums[layout.indices[e]] += entries[e]
    return sums


@compiled_or_itself
def _by_group(layout: Layout, live: Array, entries: Array) -> Array:
    """Return sums of entries over each live group, (G,)."""
    sums = np.zeros(len(live))
    for g in np.flatnonzero(live):
        for e in range(layout.first[g], layout.first[g + 1]):
            sums[g] += entries[e]
    return sums


@compiled_or_itself
def _system(layout: Layout, live: Array, point: Point, share: Array, inverse: Array) -> Array:
    """Return the matrix of the equations for the change of scale.

    It is diag(slack / scale) and, for each feature, diag(u^2 / scale) - (u / scale)(u / scale)' / share over its
    groups, where u are its parts.
    """
    rows, last, starts, owner, (parts, scale, slack) = layout.rows, layout.last, layout.starts, layout.owner, point
    matrix, scaled = np.zeros(rows[-1] + last[-1] + 1), parts * inverse
    for g in range(len(live)):
        matrix[rows[g] + g] = slack[g] / scale[g] if live[g] else 1.0
    for i in range(len(starts) - 1):
        for a in range(starts[i], starts[i + 1]):
            e = layout.by_feature[a]
            g, factor = owner[e], scaled[e] / share[i]
            if factor != 0.0:
                # The difference is 1 at the least, but for rounding.
                matrix[rows[g] + g] += factor * parts[e] * max(share[i] - inverse[e], 1.0)
                for b in range(a + 1, starts[i + 1]):
                    other = layout.by_feature[b]
                    matrix[rows[g] + owner[other]] -= factor * scaled[other]
    return matrix


@compiled_or_itself
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


@compiled_or_itself
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


@compiled_or_itself
def _direction(
    layout: Layout, live: Array, point: Point, factor: Array, share: Array, inverse: Array, lacking: Array, rest: Any
) -> Point:
    """Return the step (du, dscale, dslack), the solution of these equations, with (squares, target) the ``rest``.

    scale du + u dscale - dz = -lacking, dz = -sum du, slack + dslack + u'du = squares,
    scale dslack + slack dscale = target - scale slack.
    """
    indices, first, (parts, scale, slack), (squares, target) = layout.indices, layout.first, point, rest
    images, step, right, some = np.zeros(len(share)), np.zeros(len(parts)), np.zeros(len(live)), np.flatnonzero(live)
    for g in some:
        for e in range(first[g], first[g + 1]):
            images[indices[e]] += lacking[e] * inverse[e]
    images /= share
    for g in some:
        for e in range(first[g], first[g + 1]):
            right[g] += parts[e] * (images[indices[e]] - lacking[e])
        right[g] = (target[g] + right[g]) / scale[g] - squares[g]
    change = _solve(layout, factor, right)
    for g in some:
        for e in range(first[g], first[g + 1]):
            images[indices[e]] += parts[e] * change[g] * inverse[e] / share[indices[e]]
    for g in some:
        for e in range(first[g], first[g + 1]):
            step[e] = (images[indices[e]] - parts[e] * change[g] - lacking[e]) * inverse[e]
    return Point(step, change, np.where(live, (target - slack * change) / scale - slack, 0.0))


@compiled_or_itself
def _reach(layout: Layout, bounds: Array, live: Array, point: Point, step: Point) -> float:
    """Return how many steps lead to where the first scale or slack is 0."""
    reach = np.inf
    for g in np.flatnonzero(live):
        slack, square, along = point.slack[g], 0.0, 0.0
        if step.scale[g] < 0.0:
            reach = min(reach, -point.scale[g] / step.scale[g])
        if slack <= PINNED * bounds[g] ** 2:
            reach = min(reach, -slack / step.slack[g]) if step.slack[g] < 0.0 else reach
            continue
        for e in range(layout.first[g], layout.first[g + 1]):
            square += step.parts[e] ** 2
            along += step.parts[e] * point.parts[e]
        root = np.sqrt(along**2 + 2 * square * slack)
        if square > 0.0:
            reach = min(reach, 2 * slack / (along + root) if along > 0.0 else (root - along) / square)
    return reach


@compiled_or_itself
def advance(layout: Layout, w: Array, bounds: Array, live: Array, point: Point, until: float, steps: int) -> bool:
    """Make up to ``steps`` steps, in place; True if it has gone as far as it should, or can."""
    (parts, scale, slack), indices, owner, members = point, layout.indices, layout.owner, max(1, live.sum())
    exact = (bounds**2 - _by_group(layout, live, parts**2)) / 2
    for _ in range(steps):
        mean = np.where(live, scale * slack, 0.0).sum() / members
        if mean <= until:
            return True
        inverse = np.where(live, 1.0 / scale, 0.0)[owner] * (w[indices] != 0.0)
        share = 1.0 + _by_feature(layout, live, inverse)
        z = w - _by_feature(layout, live, parts)
        lacking = np.where(inverse > 0.0, scale[owner] * parts - z[indices], 0.0)
        factor = _system(layout, live, point, share, inverse)
        if not _factorise(layout, factor):
            return True
        ahead = _direction(layout, live, point, factor, share, inverse, lacking, (exact, np.zeros(len(live))))
        length = min(1.0, _reach(layout, bounds, live, point, ahead))
        there = (scale + length * ahead.scale) * np.maximum(slack + length * ahead.slack, 0.0)
        target = max((np.where(live, there, 0.0).sum() / members / mean) ** 3, LEAST) * mean - ahead.scale * ahead.slack
        # Terms of the second order, as that step shows them.
        squares = exact - _by_group(layout, live, ahead.parts**2) / 2
        lacking += ahead.parts * ahead.scale[owner]
        step = _direction(layout, live, point, factor, share, inverse, lacking, (squares, target))
        length = min(1.0, BACK_OFF * _reach(layout, bounds, live, point, step))
        parts += length * step.parts
        scale += length * step.scale
        # The slack is computed from the parts where that has the digits.
        exact = (bounds**2 - _by_group(layout, live, parts**2)) / 2
        moved = np.where(slack <= PINNED * bounds**2, slack + length * step.slack, exact)
        slack[:] = np.where(live, moved, slack)
        if not length > STALLED:
            return True
    return False


@compiled_or_itself
def sweep(layout: Layout, w: Array, bounds: Array, live: Array, parts: Array) -> tuple[Array, Array]:
    """Minimise over the parts of one live group after the other, in place; return z, and which groups are not zero."""
    indices, first = layout.indices, layout.first
    z, outside = w - _by_feature(layout, live, parts), np.zeros(len(live), dtype=np.bool_)
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
    return z, outside


@compiled_or_itself
def answer(layout: Layout, w: Array, bounds: Array, live: Array, parts: Array) -> Any:
    """Return what `sweep` does, and the duality gap: a sum of terms that are not negative, or rounding would be all."""
    z, outside = sweep(layout, w, bounds, live, parts)
    rest, owner = z[layout.indices], layout.owner
    left = np.sqrt(_by_group(layout, live, rest**2))
    size = np.where(outside, bounds, np.sqrt(_by_group(layout, live, parts**2)))
    apart = rest / np.where(left > 0.0, left, 1.0)[owner] - parts / np.where(size > 0.0, size, 1.0)[owner]
    gaps = left * (np.maximum(bounds - size, 0.0) + size * _by_group(layout, live, apart**2) / 2)
    return z, outside, np.where(live, gaps, 0.0).sum()


def warm_up() -> None:
    """Compile."""
    layout, w, bounds, live = lay_out([[0, 1], [1, 2]], 3), np.ones(3), np.full(2, 0.1), np.ones(2, dtype=np.bool_)
    advance(layout, w, bounds, live, Point(np.full(4, 0.05), np.ones(2), np.full(2, 0.0025)), 1.0, 1)
    for loop in (sweep, answer):
        loop(layout, w, bounds, live, np.zeros(4))
