"""The dictionary form of sparse PCA: how far from a stationary point."""

import numpy as np

from princomp._typing import Array
from princomp.penalties import Penalty


def dictionary_kkt(
    XtY: Array,
    XD: Array,
    Y: Array,
    D: Array,
    *,
    alpha: Array | float = 0.0,
    code_alpha: Array | float | None = None,
    radius: float = 1.0,
    nonnegative: bool = False,
    nonnegative_codes: bool = False,
    penalty: Penalty | None = None,
) -> tuple[float, float]:
    """Return how far Y and D are from a stationary point of the dictionary form of sparse PCA.

    The objective is 1/2 |X - YD'|^2 + sum_j alpha_j |D_j|_1 with |Y_j| <= radius, or, with ``code_alpha``, plus
    sum_j code_alpha_j |Y_j|_1 without the ball. With G = X'Y - DY'Y, a penalised block is stationary if G = alpha
    sign(D) where D is not zero and |G| <= alpha where it is; its residual is the largest violation, relative to alpha
    (or to what can be resolved, if alpha is far below the largest |X'Y|; to that itself, if alpha is 0).
    That of a block in the ball is the largest |D_j|^2 |Y_j - projection(Y_j + H_j / |D_j|^2)|, H = XD - YD'D, relative
    to the largest |XD_j|. With a penalty on the codes alone the ball is that of D: exchange XtY and XD, Y and D.

    Parameters
    ----------
    XtY, XD : (p, k) and (n, k) arrays
        X'Y and XD: all that is needed of the data.
    Y, D : (n, k) and (p, k) arrays
        The answer.
    alpha, code_alpha : float or (k,) array
        Weights of the penalties.
    radius : float, default 1
        Of the ball.
    nonnegative, nonnegative_codes : bool
        Whether D, Y must be nonnegative.
    penalty : Penalty, optional
        Of a column of D, in place of alpha |D_j|_1: the residual is |D_j - prox(D_j + G_j / q, 1 / q)| q, q = |Y_j|^2,
        relative to the largest |X'Y|.

    Returns
    -------
    tuple of float
        Relative residuals of D and of Y.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import dictionary_kkt
    >>> X = np.diag([3.0, 2.0])
    >>> Y, D = np.eye(2), np.diag([2.0, 1.0])
    >>> dictionary_kkt(X.T @ Y, X @ D, Y, D, alpha=1.0)
    (0.0, 0.0)
    """
    G, Q = XtY - D @ (Y.T @ Y), D.T @ D
    if penalty is None:
        of_loadings = _l1_violation(G, D, np.broadcast_to(alpha, D.shape[1]), nonnegative, XtY)
    else:
        of_loadings = _prox_violation(G, D, penalty, nonnegative, np.einsum("ij,ij->j", Y, Y), XtY)
    if code_alpha is None:
        of_codes = _ball_violation(XD, Y, Q, radius, nonnegative_codes)
    else:
        of_codes = _l1_violation(XD - Y @ Q, Y, np.broadcast_to(code_alpha, Y.shape[1]), nonnegative_codes, XD)
    return of_loadings, of_codes


def slope_scale(alpha: Array, slopes: Array) -> Array:
    """Return what a violation is relative to, (k,): alpha, unless it is too small beside the slopes to be resolved."""
    return np.where(alpha > 0, np.maximum(alpha, 1e-6 * np.abs(slopes).max()), np.abs(slopes).max())


def _l1_violation(G: Array, D: Array, alpha: Array, nonnegative: bool, slopes: Array) -> float:
    if nonnegative and (D < 0).any():
        return np.inf
    outside = np.maximum((G if nonnegative else np.abs(G)) - alpha, 0.0)
    violation = np.where(D == 0, outside, np.abs(G - alpha * np.sign(D)))
    return float(_ratios(violation.max(axis=0), slope_scale(alpha, slopes)).max())


def _prox_violation(G: Array, D: Array, penalty: Penalty, nonnegative: bool, curvature: Array, slopes: Array) -> float:
    largest = 0.0
    for j in np.flatnonzero(curvature > 0):
        v = D[:, j] + G[:, j] / curvature[j]
        nearest = penalty.prox(np.maximum(v, 0.0) if nonnegative else v, 1.0 / float(curvature[j]))
        largest = max(largest, float(curvature[j] * np.abs(D[:, j] - nearest).max()))
    return _ratio(largest, float(np.abs(slopes).max()))


def _ball_violation(XD: Array, Y: Array, Q: Array, radius: float, nonnegative: bool) -> float:
    curvature = np.diag(Q)
    target = XD - Y @ (Q - np.diag(curvature))  # Y |D_j|^2 + H; there may be many rows, so few copies of them
    if nonnegative:
        np.maximum(target, 0.0, out=target)
    target *= np.minimum(1.0, _ratios(radius * curvature, _lengths(target)))
    target -= Y * curvature
    return _ratio(float(_lengths(target).max()), float(_lengths(XD).max()))


def _lengths(A: Array) -> Array:
    return np.sqrt(np.einsum("ij,ij->j", A, A))


def _ratios(a: Array, b: Array) -> Array:
    """Return a / b, 0 where both are 0."""
    return np.divide(a, b, out=np.where(a > 0, np.inf, 0.0), where=b > 0)


def _ratio(a: float, b: float) -> float:
    return float(_ratios(np.asarray(a), np.asarray(b)))
