"""Gram matrices of atoms under weights of cells, G = D diag(omega) D', one for each row.

Twin: `princomp.coders.cells.gram_of`.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array

WORK = 2e8  # multiplications in a call, at the most: a call cannot be interrupted


@compiled
def _add(columns: Array, omega: Array, full: Array, out: Array) -> None:
    m, p = omega.shape
    K = columns.shape[1]
    for i in range(m):
        differ, there = 0, 0
        for j in range(p):
            differ += omega[i, j] != 1.0
            there += omega[i, j] > 0.0
        from_full = 2 * differ < p or there == p  # else differences would leave rounding where little is left
        for k in range(K):
            for other in range(k, K):
                out[i, k, other] = full[k, other] if from_full else 0.0
        for j in range(p):
            weight = omega[i, j] - 1.0 if from_full else omega[i, j]
            if weight != 0.0:
                for k in range(K):
                    a = weight * columns[j, k]
                    for other in range(k, K):
                        out[i, k, other] += a * columns[j, other]
        for k in range(K):
            for other in range(k + 1, K):
                out[i, other, k] = out[i, k, other]


def grams(atoms: Array, omega: Array, full: Array) -> Array:
    """Return D diag(omega_i) D' for each row of weights omega (m, p): (m, K, K); ``full`` is D D'."""
    (K, p), m = atoms.shape, len(omega)
    out = np.empty((m, K, K))
    columns, rows = np.ascontiguousarray(atoms.T), max(int(WORK / (p * K * K)), 1)
    for begin in range(0, m, rows):
        here = slice(begin, begin + rows)
        _add(columns, omega[here], full, out[here])
    return out


def warm_up() -> None:
    """Compile."""
    grams(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)))
