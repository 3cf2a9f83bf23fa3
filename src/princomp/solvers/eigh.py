"""PCA by a symmetric eigenproblem (Jolliffe, Principal Component Analysis, 2nd ed. 2002, chapter 3).

Objective: maximise tr(V' S V) over orthonormal V (p, k), S = X'X of the centred data. The eigenproblem is that of the
smaller side: of X'X (p, p), or of XX' (n, n), which has the same nonzero eigenvalues. With weights D of the rows S is
X'DX, X less its weighted mean, and the other side D^1/2 XX' D^1/2.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from princomp._threads import interruptible
from princomp._typing import Array
from princomp.data import Centered, budget, statistics

# LAPACK finds a few eigenvectors faster one by one, many faster by divide and conquer: of 300, 5 in 3 ms and 60 in 10,
# all in 8; of 600, 120 in 31 ms and 180 in 42, all in 36; of 2000, 400 in 565 and 800 in 844, all in 958.
FEW = 0.25
SMALL = 300


def leading_eigenpairs(S: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of S, in descending order, and their vectors (p, k)."""
    p = len(S)
    solve: Callable[[], tuple[Any, Any]] = partial(np.linalg.eigh, S)
    if k < FEW * p and p > SMALL:
        from scipy.linalg import eigh

        solve = partial(eigh, S, subset_by_index=[p - k, p - 1], check_finite=False)
    values, vectors = interruptible(solve, flops=4 * p**3)
    return values[::-1][:k], vectors[:, ::-1][:, :k]


def eigh_of_rows(
    X: Centered,
    k: int,
    solve: Callable[[Array, int], tuple[Array, Array]] = leading_eigenpairs,
    *,
    single: bool = False,
) -> tuple[Array, Array, Array, Array, float]:
    """Return eigenvalues of X'X, descending, vectors V (p, k), XX' (n, n), its vectors (n, k), its error: for n < p.

    ``single``: XX' is made of products in single precision, with the error that is found; V is not.
    """
    n = X.shape[0]
    budget.require(32.0 * n * n, f"The {n} x {n} matrix XX'", 'Use solver="krylov".')
    K, error = statistics.row_gram_of_columns(X, single=True) if single else (statistics.row_gram(X), 0.0)
    _, U = solve(K, k)
    return *svd_of_projection(statistics.apply_transpose(X, U)), K, U, error


def weighted_eigenpairs(X: Centered, weight: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of X'DX, descending, and their vectors (p, k)."""
    n, p = X.shape
    side = min(n, p)
    budget.require(24.0 * side * side, f"A {side} x {side} matrix", "Leave sample_weight out, or give fewer columns.")
    root = np.sqrt(weight)
    if n >= p:
        return leading_eigenpairs(statistics.scatter(X.changed(_weighted, root)), k)
    _, U = leading_eigenpairs(statistics.row_gram(X) * np.outer(root, root), k)
    return svd_of_projection(statistics.apply_transpose(X, root[:, None] * U))


def weighted_gram_apply(X: Centered, weight: Array, V: Array) -> Array:
    """Return X'DX V, (p, b)."""
    return statistics.gram_apply(X.changed(_weighted, np.sqrt(weight)), V)


def _weighted(block: Array, rows: slice, root: Array) -> tuple[Array, slice]:
    return block * root[rows, None], rows


def svd_of_projection(W: Array) -> tuple[Array, Array]:
    """Return squared singular values, descending, and left singular vectors of a thin W = X'U (p, k).

    The eigenvalues of XX' have lost half of their digits where they are small; the singular values of X'U have not.
    """
    from scipy.linalg import qr

    Q, R = qr(W, mode="economic", check_finite=False, overwrite_a=True)
    P, s, _ = np.linalg.svd(R)
    return s**2, Q @ P
