"""The search for a sparse component on a matrix A (p, p): truncated power steps, then exchanges until none helps.

Twins: `princomp.solvers.exchange.Units.truncated` with products, and `princomp.solvers.exchange.exchanged`.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array

WORK = 2e8  # multiplications in a call, at the most: a call cannot be interrupted


@compiled
def _largest(y: Array, forced: Array, chosen: Array, sizes: Array) -> None:
    """Put the places of the largest |y| into ``chosen``, largest first; of equal ones the first."""
    k, count = len(chosen), 0
    for j in range(len(y)):
        size = np.inf if forced[j] else abs(y[j])
        if count == k and size <= sizes[k - 1]:
            continue
        at = min(count, k - 1)
        while at > 0 and sizes[at - 1] < size:
            sizes[at], chosen[at] = sizes[at - 1], chosen[at - 1]
            at -= 1
        sizes[at], chosen[at] = size, j
        count = min(count + 1, k)


@compiled
def _combine(A: Array, weights: Array, which: Array, y: Array) -> None:
    y[:] = 0.0
    for e in range(len(which)):
        weight, row = weights[e], A[which[e]]
        for j in range(len(y)):
            y[j] += weight * row[j]


@compiled
def _power(
    A: Array, begin: Array, forced: Array, shift: float, steps: int, rise: float, chosen: Array, V: Array, values: Array
) -> None:
    p, k = len(A), chosen.shape[1]
    y, sizes, inside = np.empty(p), np.empty(k), np.zeros(p, np.bool_)
    before, weights = np.empty(k, np.int64), np.empty(k)
    for i in range(len(begin)):
        y[:] = begin[i]
        settled = False
        inside[:] = False
        values[i] = -np.inf
        for _ in range(steps + 1):
            before[:] = chosen[i]
            _largest(y, forced, chosen[i], sizes)
            length, same = 0.0, True
            for e in range(k):
                weights[e] = y[chosen[i, e]]
                length += weights[e] ** 2
                same = same and inside[chosen[i, e]]
            length = np.sqrt(length)
            if length == 0.0:
                V[i], values[i] = 0.0, shift
                break
            if same and settled:
                chosen[i] = before  # in the order of V
                break
            for e in range(k):
                if before[e] >= 0:
                    inside[before[e]] = False
            weights /= length
            V[i] = weights
            _combine(A, weights, chosen[i], y)
            value = 0.0
            for e in range(k):
                inside[chosen[i, e]] = True
                y[chosen[i, e]] += shift * weights[e]
                value += weights[e] * y[chosen[i, e]]
            settled = not value > values[i] + rise * abs(value)
            values[i] = value


@compiled
def _improve(
    A: Array, chosen: Array, forced: Array, rounds: int, helps: float, small: float
) -> tuple[float, Array, bool, int]:
    """Exchange in place; return value, loadings, whether no exchange helps, and how many did."""
    p, k = len(A), len(chosen)
    G, NG = np.empty((k, p)), np.empty((k, p))
    a, quadratic = np.empty(p), np.empty(p)
    inside = np.zeros(p, np.bool_)
    for e in range(k):
        inside[chosen[e]] = True
    value, v = -np.inf, np.zeros(k)
    out, into = -1, -1
    for turn in range(rounds + 1):
        B = np.empty((k, k))
        for e in range(k):
            for q in range(k):
                B[e, q] = A[chosen[e], chosen[q]]
        values, vectors = np.linalg.eigh(B)
        if out >= 0 and not values[k - 1] > value:  # rounding: take it back
            inside[chosen[out]], inside[into] = False, True
            chosen[out] = into
            return value, v, True, turn - 1
        value, v = values[k - 1], np.ascontiguousarray(vectors[:, k - 1])
        if turn == rounds:
            return value, v, False, turn
        N = np.zeros((k, k))
        for u in range(k - 1):
            gap = max(value - values[u], 1e-14 * abs(value) + 1e-300)
            for e in range(k):
                for q in range(k):
                    N[e, q] += vectors[e, u] * vectors[q, u] / gap
        for e in range(k):
            G[e] = A[chosen[e]]
        _combine(A, v, chosen, a)
        quadratic[:] = 0.0
        for e in range(k):
            _combine(A, N[e], chosen, NG[e])
            for j in range(p):
                quadratic[j] += NG[e, j] * G[e, j]
        best, out, into = -np.inf, -1, -1
        for e in range(k):
            if forced[chosen[e]]:
                continue
            known = v[e] if abs(v[e]) >= small else np.copysign(small, v[e])
            left = max(1.0 - v[e] ** 2, 1e-300)
            without = (value * (1.0 - 2.0 * v[e] ** 2) + v[e] ** 2 * B[e, e]) / left if k > 1 else 0.0
            for j in range(p):
                share = a[j] / known
                test = A[j, j] - value + quadratic[j] + share * (share * N[e, e] - 2.0 * NG[e, j])
                if test > helps * abs(value) and not inside[j]:
                    across = (a[j] - v[e] * G[e, j]) ** 2 / left if k > 1 else 0.0
                    half = (without - A[j, j]) / 2.0
                    reach = without - half + np.sqrt(half**2 + across)
                    if reach > best:
                        best, out, into = reach, e, j
        if out < 0:
            return value, v, True, turn
        # ``into`` remembers what was there, should rounding have it back.
        inside[chosen[out]], inside[into] = False, True
        chosen[out], into = into, chosen[out]
    return value, v, False, rounds


def power(
    A: Array, begin: Array, count: int, forced: Array, *, shift: float, steps: int, rise: float
) -> tuple[Array, Array, Array]:
    """Return (features, loadings, variances), (m, count) twice and (m,), of truncated power steps from rows (m, p)."""
    m = len(begin)
    chosen, loadings, values = np.full((m, count), -1), np.zeros((m, count)), np.zeros(m)
    several = max(1, int(WORK / (steps * count * len(A))))
    for first in range(0, m, several):
        here = slice(first, first + several)
        _power(A, begin[here], forced, shift, steps, rise, chosen[here], loadings[here], values[here])
    return chosen, loadings, values - shift


def improve(
    A: Array, chosen: Array, forced: Array, *, rounds: int, helps: float, small: float
) -> tuple[float, Array, Array, bool, int]:
    """Return (value, features, loadings, whether no exchange helps, how many did) after up to ``rounds`` exchanges."""
    chosen = np.array(chosen, dtype=np.int64)
    value, v, settled, made = _improve(A, chosen, forced, rounds, helps, small)
    return float(value), chosen, v, bool(settled), int(made)


def warm_up() -> None:
    """Compile."""
    A, none = np.eye(3), np.zeros(3, dtype=bool)
    chosen, *_ = power(A, A, 2, none, shift=0.0, steps=2, rise=0.0)
    improve(A, chosen[0], none, rounds=1, helps=0.0, small=1e-8)
