"""Leading directions of the rows that use an atom: the approximate step of K-SVD, and what remains beside the atom.

Twins: `princomp.solvers.ksvd_sweeps.pair`, `princomp.solvers.learning_split.leading`.
"""

import numpy as np

from princomp._compiled import compiled, part
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


@part
def _moment_times(left: Array, rows: Array, e: Array, new: Array) -> float:
    """Put sum r (r'e) over rows into ``new``; return sum (r'e)^2."""
    new[:] = 0.0
    total, whole = 0.0, len(e) // 8 * 8
    for row in rows:
        parts = np.zeros(8)
        for begin in range(0, whole, 8):  # eight sums, so that the loop is one of vectors
            for j in range(8):
                parts[j] += left[row, begin + j] * e[begin + j]
        along = parts.sum()
        for j in range(whole, len(e)):
            along += left[row, j] * e[j]
        total += along * along
        for j in range(len(e)):
            new[j] += along * left[row, j]
    return total


@compiled
def _leading(left: Array, indptr: Array, indices: Array, fewest: int, steps: int, gains: Array, E: Array) -> None:
    p = left.shape[1]
    new = np.empty(p)
    for k in range(len(gains)):
        rows = indices[indptr[k] : indptr[k + 1]]
        if len(rows) < fewest:
            continue
        longest, most = rows[0], -1.0
        for row in rows:
            length = 0.0
            for j in range(p):
                length += left[row, j] * left[row, j]
            if length > most:
                longest, most = row, length
        e = E[k]
        e[:] = left[longest]
        for _ in range(steps):
            gains[k] = _moment_times(left, rows, e, new)
            length = 0.0
            for j in range(p):
                length += new[j] * new[j]
            length = np.sqrt(length) if length > 0.0 else 1.0
            for j in range(p):
                e[j] = new[j] / length
        gains[k] = _moment_times(left, rows, e, new)


def leading(left: Array, indptr: Array, indices: Array, fewest: int, steps: int) -> tuple[Array, Array]:
    """Return lambda and e of second moments of rows of left (n, p), for each atom those at its part of ``indices``."""
    K = len(indptr) - 1
    gains, E = np.zeros(K), np.zeros((K, left.shape[1]))
    _leading(left, indptr, indices, fewest, steps, gains, E)
    return gains, E


def warm_up() -> None:
    """Compile."""
    leading(np.eye(2), np.array([0, 1], np.int32), np.zeros(1, np.int32), 1, 1)
    pair(np.eye(2), np.zeros(1, np.int64), np.ones(1), np.ones(2))
