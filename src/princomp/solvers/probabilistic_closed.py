"""Eigenpairs of a weighted covariance, for the closed form of probabilistic PCA (Tipping & Bishop 1999).

Objective: maximise tr(V' X'D X V) over orthonormal V (p, k), D the weights of the rows, X less its weighted mean. The
eigenproblem is that of the smaller side, X'DX (p, p) or D^1/2 XX' D^1/2 (n, n).
"""

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, budget, statistics
from princomp.solvers.eigh import leading_eigenpairs, svd_of_projection


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
