"""Smoothed sums of the largest entries of each row: the inner loop of bounds on sparse components.

Row i of Q (m, m) takes its entries in the first ``forced`` columns whole, and of the other columns the ``count``
largest (one fewer where i is such a column itself), never its own. The choice y is softened: it maximises
<y, q> - mu/2 |y|^2 over 0 <= y <= 1, sum y = count. Twin: `princomp.solvers.cardinality_bounds.row_sums_twin`.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array


@compiled
def _threshold(q: Array, size: int, count: int, mu: float) -> float:
    """Return t with sum of clip((q - t)/mu, 0, 1) = count, by Newton steps inside a bracket."""
    low, high = q[0], q[0]
    for j in range(1, size):
        low, high = min(low, q[j]), max(high, q[j])
    low -= mu
    t = 0.5 * (low + high)
    for _ in range(100):
        total, slope = 0.0, 0.0
        for j in range(size):
            v = (q[j] - t) / mu
            if v >= 1.0:
                total += 1.0
            elif v > 0.0:
                total += v
                slope += 1.0
        excess = total - count
        if abs(excess) <= 1e-12 * count or high - low <= 1e-15 * (abs(low) + abs(high)):
            break
        if excess > 0.0:
            low = t
        else:
            high = t
        step = t + excess * mu / slope if slope > 0.0 else low - 1.0
        t = step if low < step < high else 0.5 * (low + high)
    return t


@compiled
def _row_sums(Q: Array, forced: int, count: int, mu: float, Y: Array, sums: Array) -> None:
    m = Q.shape[0]
    q = np.empty(m)
    for i in range(m):
        total = 0.0
        for j in range(forced):
            Y[i, j] = 0.0 if j == i else 1.0
            total += 0.0 if j == i else Q[i, j]
        size = 0
        for j in range(forced, m):
            if j != i:
                q[size] = Q[i, j]
                size += 1
        wanted = count if i < forced else count - 1
        choice = 0 < wanted < size
        t, all_or_none = _threshold(q, size, wanted, mu) if choice else 0.0, 1.0 if wanted > 0 else 0.0
        for j in range(forced, m):
            y = min(max((Q[i, j] - t) / mu, 0.0), 1.0) if choice else all_or_none
            y = 0.0 if j == i else y
            Y[i, j] = y
            total += y * Q[i, j] - 0.5 * mu * y * y
        sums[i] = total


def row_sums(Q: Array, forced: int, count: int, mu: float) -> tuple[Array, Array]:
    """Return the sums (m,) and the choices Y (m, m)."""
    Y, sums = np.empty(Q.shape), np.empty(len(Q))
    _row_sums(np.ascontiguousarray(Q, dtype=np.float64), forced, count, float(mu), Y, sums)
    return sums, Y


def warm_up() -> None:
    """Compile."""
    row_sums(np.eye(3), 1, 1, 0.1)
