"""PCA by the singular value decomposition; tall data by the QR of tiles (Demmel et al., SIAM J. Sci. Comput. 2012).

Objective: minimise |X - XVV'|^2 over orthonormal V (p, k), X the centred data. X is never squared, so small
components keep their digits.
"""

import numpy as np

from princomp._threads import interruptible
from princomp._typing import Array
from princomp.data import Centered, budget, statistics

QR_ROWS = 1024  # of a tile: as fast as 4096 at 40,000 x 100, and 128 takes twice, 16,384 half as long again


def svd(X: Centered, k: int) -> tuple[Array, Array, Array]:
    """Return the k largest squared singular values of X, descending, their right vectors V (p, k), and the rest."""
    n, p = X.shape
    if n > p:
        budget.require(40.0 * p * p, f"The {p} x {p} triangle of X", 'Use solver="krylov".')
        R = triangle(X)
    else:
        budget.require(32.0 * n * p, f"A centred copy of X ({n} x {p}) and its factors", 'Use solver="krylov".')
        R = statistics.whole(X, 'Use solver="krylov".')
    _, s, Vt = interruptible(lambda: np.linalg.svd(R, full_matrices=False), flops=20.0 * n * p * min(n, p))
    return s[:k] ** 2, Vt[:k].T, s[k:] ** 2


def triangle(X: Centered) -> Array:
    """Return R of X = QR, (p, p), one tile at a time."""
    return X.in_dense_tiles().reduce(_triangle, combine=_stack_triangles, tile_rows=max(QR_ROWS, 2 * X.shape[1]))


def _triangle(block: Array, rows: slice) -> Array:
    return np.asarray(np.linalg.qr(block, mode="r"))


def _stack_triangles(above: Array, below: Array) -> Array:
    return _triangle(np.concatenate([above, below]), slice(0, 0))
