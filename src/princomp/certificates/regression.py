"""Sparse PCA as a regression: how far from a stationary point.

The objective, over A (p, k) with A'A = I and B (p, k), S = X'X, is

    F(A, B) = tr(B'SB) - 2 tr(A'SB) + ridge |B|^2 + sum_j alpha_j |B_j|_1,

and, for infinite ridge (B rescaled), F(A, B) = -2 tr(A'SB) + |B|^2 + sum_j alpha_j |B_j|_1.
"""

import numpy as np

from princomp._typing import Array
from princomp.penalties.simple import soft as soft  # which solvers of this objective need, too


def regression_stationarity(
    A: Array, B: Array, SA: Array, SB: Array, *, alpha: Array | float, ridge: float, fixed: bool = False
) -> float:
    """Return how far A and B are from a stationary point of sparse PCA as a regression.

    It is the largest of `stationarity` and of the entries of A'A - I. With ``fixed``, A must be principal axes, which B
    is no reason to turn: then it is the largest of `step_of_loadings`, A'A - I and |SA - A diag(A'SA)| / |SA|.

    Parameters
    ----------
    A, B : (p, k) arrays
        The answer.
    SA, SB : (p, k) arrays
        X'XA and X'XB: all that is needed of the data.
    alpha : float or (k,) array
        Weights of the l1 norms.
    ridge : float
        From 0 to infinity.
    fixed : bool, default False
        Whether scores of principal components were regressed, once (``solver="one-shot"``).

    Returns
    -------
    float
        Relative: for c X, c^2 alpha and c^2 ridge it is the same.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import regression_stationarity
    >>> S, A = np.diag([4.0, 1.0]), np.array([[1.0], [0.0]])
    >>> B = A * 0.75  # the minimiser of 4 b^2 - 8 b + 2 |b|
    >>> regression_stationarity(A, B, S @ A, S @ B, alpha=2.0, ridge=0.0)
    0.0
    """
    alpha = np.broadcast_to(alpha, B.shape[1])
    orthonormality = float(np.abs(A.T @ A - np.eye(A.shape[1])).max())
    if not fixed:
        return max(stationarity(A, B, SA, SB, alpha, ridge), orthonormality)
    size = float(np.linalg.norm(SA))
    outside = float(np.linalg.norm(SA - A * np.einsum("ij,ij->j", A, SA)))
    return max(step_of_loadings(B, SA, SB, alpha, ridge), outside / size if size > 0 else 0.0, orthonormality)


def stationarity(A: Array, B: Array, SA: Array, SB: Array, alpha: Array, ridge: float) -> float:
    """Return how far (A, B), A'A = I, is from stationary: sqrt(|D_A / t1|^2 / |2SB|^2 + |D_B / t2|^2 / |2SA|^2).

    D_A and D_B are the manifold proximal steps of A-ManPG from (A, B). D_A / t1 is the gradient -2SB less its part
    normal to the Stiefel manifold, for any t1; t2 = 1 / (2 max_j |S A_j| + 2 ridge), or 1/2 for infinite ridge. Each
    is measured against the linear part of its gradient, so that X, alpha and ridge may be given in any units: for c X,
    c^2 alpha, c^2 ridge the number is the same.
    """
    size = 2 * float(np.linalg.norm(SB))
    product = A.T @ SB
    A_part = 2 * float(np.linalg.norm(SB - A @ (product + product.T) / 2))
    return float(np.hypot(A_part / size if size > 0 else 0.0, step_of_loadings(B, SA, SB, alpha, ridge)))


def step_of_loadings(B: Array, SA: Array, SB: Array, alpha: Array, ridge: float) -> float:
    """Return |D_B / t2| / |2SA|, the part of `stationarity` that is B's."""
    on_fit, on_ridge = weights(ridge)
    size, largest = 2 * float(np.linalg.norm(SA)), float(np.linalg.norm(SA, axis=0).max())
    step = 1 / (2 * on_fit * largest + 2 * on_ridge) if size > 0 or on_ridge > 0 else 1.0
    D_B = soft(B - 2 * step * (on_fit * SB - SA + on_ridge * B), step * alpha) - B
    part = float(np.linalg.norm(D_B)) / step
    return part / size if size > 0 else part


def weights(ridge: float) -> tuple[float, float]:
    """Return the weights of tr(B'SB) and of |B|^2."""
    return (0.0, 1.0) if np.isinf(ridge) else (1.0, float(ridge))
