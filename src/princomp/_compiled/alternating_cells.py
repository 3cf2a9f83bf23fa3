"""The cells of alternating projections, in one pass for a step: see `princomp.solvers.robust.alternating`.

Twin: `princomp.solvers.robust.alternating._filled`, with NumPy.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._compiled.pursuit_cells import ANY_ORDER, ROWS
from princomp._typing import Array


def _fill(X: Array, L: Array, bound: float, relax: float, A: Array, sums: Array) -> None:
    n, p = X.shape
    good, bad = 0.0, 0.0
    for i in range(n):
        for j in range(p):
            x = X[i, j]
            left = x - L[i, j] if x == x else 0.0
            size = abs(left)
            near = size <= bound
            good += size if near else 0.0
            bad += 0.0 if near else size
            A[i, j] = L[i, j] + (relax * left if near else 0.0)
    sums[0] += good
    sums[1] += bad


_fill = compiled(_fill, fastmath=ANY_ORDER)


def filled(X: Array, L: Array, bound: float, relax: float) -> tuple[Array, Array]:
    """Return L + relax (X - L) on good cells, L on others; and the sums of |X - L| of good cells and of bad ones."""
    A, sums = np.empty_like(L), np.zeros(2)
    for begin in range(0, len(X), ROWS):
        rows = slice(begin, begin + ROWS)
        _fill(X[rows], L[rows], bound, relax, A[rows], sums)
    return A, sums
