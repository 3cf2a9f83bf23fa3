"""The approximate step of K-SVD for one atom and the rows that use it. Twin: `princomp.solvers.ksvd_sweeps.pair`."""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array


@compiled
def _pair(R: Array, rows: Array, a: Array, d: Array, new: Array) -> None:
    p = R.shape[1]
    unit, own = np.abs(a).max(), 0.0  # a in units in which its squares can be written, and so the direction, below
    new[:] = 0.0
    for i in range(len(rows)):
        share = a[i] / unit
        own += share * a[i]
        for j in range(p):
            new[j] += share * R[rows[i], j]
    for j in range(p):
        new[j] += own * d[j]
    unit, length = np.abs(new).max(), 0.0
    for j in range(p):
        new[j] /= unit
        length += new[j] * new[j]
    length = np.sqrt(length)
    if not length > 0.0:
        return
    along = 0.0
    for j in range(p):
        new[j] /= length
        along += d[j] * new[j]
    for i in range(len(rows)):
        row = rows[i]
        parts = np.zeros(8)
        whole = p // 8 * 8
        for begin in range(0, whole, 8):  # eight sums, so that the loop is one of vectors
            for j in range(8):
                parts[j] += R[row, begin + j] * new[begin + j]
        value = a[i] * along
        for j in range(whole, p):
            value += R[row, j] * new[j]
        for j in range(8):
            value += parts[j]
        for j in range(p):
            R[row, j] += a[i] * d[j] - value * new[j]
        a[i] = value
    for j in range(p):
        d[j] = new[j]


def pair(R: Array, rows: Array, a: Array, d: Array) -> None:
    """Improve an atom d (p,) and its coefficients a (m,) in ``rows`` (m,) of R (n, p), all of them in place."""
    _pair(R, rows, a, d, np.empty_like(d))


def warm_up() -> None:
    """Compile."""
    pair(np.eye(2), np.zeros(1, np.int64), np.ones(1), np.ones(2))
