"""The cells of principal component pursuit, in two passes for a step: see `princomp.solvers.robust.pursuit`.

Twin: `princomp.solvers.robust.pursuit.Cells`, with NumPy.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array

# Sums may be taken in any order, so that they take several numbers at a time; nothing else is left to the compiler.
ANY_ORDER = {"reassoc", "nsz"}
ROWS = 64  # of a call to a loop that sums up: sums of few numbers lose few digits


@compiled
def _fill(X: Array, M: Array, bound: float, ratio: float, A: Array) -> None:
    n, p = X.shape
    for i in range(n):
        for j in range(p):
            x, m = X[i, j], M[i, j]
            there = x == x
            z = min(max(m, -bound), bound)
            z = z if there else 0.0
            x = x if there else 0.0
            A[i, j] = (x - (m - z)) + ratio * z


@compiled
def _dual(X: Array, M: Array, bound: float, mu: float, Y: Array) -> None:
    n, p = X.shape
    for i in range(n):
        for j in range(p):
            there = X[i, j] == X[i, j]
            z = min(max(M[i, j], -bound), bound)
            Y[i, j] = mu * z if there else 0.0


@compiled
def _move(X: Array, L: Array, M: Array, before: float, ratio: float, relax: float, out: Array) -> None:
    n, p = X.shape
    for i in range(n):
        for j in range(p):
            x, m = X[i, j], M[i, j]
            there = x == x
            z = min(max(m, -before), before)
            z = z if there else 0.0
            x = x if there else 0.0
            out[i, j] = (relax * (x - L[i, j]) + (1.0 - relax) * (m - z)) + ratio * z


def _sum(X: Array, L: Array, M: Array, new: Array, before: float, bound: float, sums: Array) -> None:
    n, p = X.shape
    apart, price, inner, moved, sparse, inside = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        for j in range(p):
            x = X[i, j]
            there = x == x
            x = x if there else 0.0
            left = x - L[i, j] if there else 0.0
            m = new[i, j] if there else 0.0
            was = M[i, j] if there else 0.0
            z = min(max(m, -bound), bound)
            s = m - z
            was -= min(max(was, -before), before)
            apart += (left - s) * (left - s)
            price += abs(left)
            inner += x * z
            moved += (s - was) * (s - was)
            sparse += s * s
            inside += z * z
    sums[0] += apart
    sums[1] += price
    sums[2] += inner
    sums[3] += moved
    sums[4] += sparse
    sums[5] += inside


_sum = compiled(_sum, fastmath=ANY_ORDER)


def fill(X: Array, M: Array, bound: float, ratio: float, out: Array) -> None:
    """Put X - S + ratio Z into ``out``, for M = S + Z with |Z| <= bound: L is the nearest of small nuclear norm."""
    _fill(X, M, bound, ratio, out)


def dual(X: Array, M: Array, bound: float, mu: float, out: Array) -> None:
    """Put Y = mu Z into ``out``."""
    _dual(X, M, bound, mu, out)


def move(X: Array, L: Array, M: Array, before: float, ratio: float, relax: float, bound: float) -> tuple[Array, Array]:
    """Return the next M and sums over observed cells.

    They are |X - L - S|^2, |X - L|, <X, Z>, |S - S before|^2, |S|^2, |Z|^2.
    """
    out, sums = np.empty_like(M), np.zeros(6)
    for begin in range(0, len(X), ROWS):
        rows = slice(begin, begin + ROWS)
        _move(X[rows], L[rows], M[rows], before, ratio, relax, out[rows])
        _sum(X[rows], L[rows], M[rows], out[rows], before, bound, sums)
    return out, sums


def warm_up() -> None:
    """Compile."""
    X, out = np.eye(2), np.empty((2, 2))
    fill(X, X, 1.0, 1.0, out)
    dual(X, X, 1.0, 1.0, out)
    move(X, X, X, 1.0, 1.0, 1.0, 1.0)
