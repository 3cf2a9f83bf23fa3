"""Certificates: how good an answer is, measured from data and answer alone, whichever solver gave it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.data import as_rows, statistics
from princomp.penalties import Penalty
from princomp.result import Certificate

Array = NDArray[Any]
LANCZOS_BYTES = 2**25  # that the norm estimate may take, as long as it can do four steps

Operator = Callable[[Array], Array]  # V (p, k) -> S V (p, k)


def principal_components(
    X: Any,
    components: Array,
    variances: Array,
    *,
    center: bool = True,
    scale: Array | None = None,
    tol: float = 1e-6,
    random_state: int = 0,
) -> Certificate:
    """Certify principal components of X: invariant subspace, and the leading one.

    With S the covariance (divisor n - 1), V the components as columns and L their variances, the residual is
    max_j |S v_j - l_j v_j| / l_1 (or |V'V - I|, if that is larger). It only says that V spans *an* invariant
    subspace; the second check estimates the norm of S deflated by V, which must not exceed the smallest variance kept.

    Parameters
    ----------
    X : array-like or Rows
        The data.
    components : (k, p) array
        Unit vectors.
    variances : (k,) array
        Their variances, largest first.
    center : bool, default True
        Whether the mean was subtracted.
    scale : (p,) array, optional
        What columns were divided by.
    tol : float, default 1e-6
        The bound to compare with.
    random_state : int, default 0
        Seed of the norm estimate's start.

    Returns
    -------
    Certificate
        ``dominant`` is the second check; ``details["deflated norm"]`` its number.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA, certificates
    >>> X = np.random.default_rng(0).normal(size=(50, 5)) * [5, 4, 3, 2, 1]
    >>> pca = PCA(2).fit(X)
    >>> certificates.principal_components(X, pca.components_, pca.explained_variance_).holds
    True
    """
    rows = as_rows(X)
    found = statistics.moments(rows, center=center)
    centered = found.centered(rows, None if scale is None else 1.0 / scale)
    freedom = max(rows.shape[0] - 1, 1)
    V = np.asarray(components, dtype=np.float64).T
    return spectral(
        lambda V: statistics.gram_apply(centered, V) / freedom, V, np.asarray(variances, np.float64), tol, random_state
    )


def spectral(apply: Operator, V: Array, values: Array, tol: float, random_state: int = 0) -> Certificate:
    """Certify eigenvectors V (p, k) with eigenvalues ``values`` of the symmetric operator ``apply``."""
    largest, smallest = float(values.max()), float(values.min())
    orthonormality = float(np.abs(V.T @ V - np.eye(V.shape[1])).max())
    if largest <= 0:
        return Certificate(orthonormality, tol, "global", True, {"deflated norm": 0.0})
    residuals = np.linalg.norm(apply(V) - V * values, axis=0) / largest
    norm = deflated_norm(apply, V, random_state)
    # Eigenvalues are known no better than the residual; ties must pass.
    dominant = bool(norm <= smallest + largest * (residuals.max() + 1e-10))
    return Certificate(
        max(float(residuals.max()), orthonormality),
        tol,
        "global" if dominant else "local",
        dominant,
        {"residuals": residuals, "deflated norm": norm},
    )


def deflated_norm(apply: Operator, V: Array, random_state: int = 0, steps: int = 12) -> float:
    """Estimate the norm of (I - VV') S (I - VV') by a few Lanczos steps: a lower bound, close with high probability."""
    p, k = V.shape
    steps = min(steps, p - k, max(4, LANCZOS_BYTES // (8 * p)))
    if steps < 1:
        return 0.0
    basis = np.empty((p, steps), order="F")
    small = np.zeros((steps, steps))
    q: Array = np.random.default_rng(random_state).standard_normal((p,))
    for j in range(steps):
        for _ in range(2):  # twice is enough
            q = q - V @ (V.T @ q)
            q = q - basis[:, :j] @ (basis[:, :j].T @ q)
        length = float(np.linalg.norm(q))
        if length == 0:
            break
        basis[:, j] = q / length
        q = apply(basis[:, j : j + 1])[:, 0]
        small[: j + 1, j] = basis[:, : j + 1].T @ q
    return float(np.linalg.eigvalsh(small, UPLO="U")[-1])


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
    G, H = XtY - D @ (Y.T @ Y), XD - Y @ (D.T @ D)
    if penalty is None:
        of_loadings = _l1_violation(G, D, np.broadcast_to(alpha, D.shape[1]), nonnegative, XtY)
    else:
        of_loadings = _prox_violation(G, D, penalty, nonnegative, np.einsum("ij,ij->j", Y, Y), XtY)
    if code_alpha is None:
        of_codes = _ball_violation(H, Y, radius, nonnegative_codes, np.einsum("ij,ij->j", D, D), XD)
    else:
        of_codes = _l1_violation(H, Y, np.broadcast_to(code_alpha, Y.shape[1]), nonnegative_codes, XD)
    return of_loadings, of_codes


def slope_scale(alpha: Array, slopes: Array) -> Array:
    """Return what a violation is relative to, (k,): alpha, unless it is too small beside the slopes to be resolved."""
    return np.where(alpha > 0, np.maximum(alpha, 1e-6 * np.abs(slopes).max()), np.abs(slopes).max())


def _l1_violation(G: Array, D: Array, alpha: Array, nonnegative: bool, slopes: Array) -> float:
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


def _ball_violation(H: Array, Y: Array, radius: float, nonnegative: bool, curvature: Array, images: Array) -> float:
    target = Y * curvature + H
    if nonnegative:
        target = np.maximum(target, 0.0)
    inside = np.minimum(1.0, _ratios(radius * curvature, np.linalg.norm(target, axis=0)))
    step = np.linalg.norm(Y * curvature - target * inside, axis=0)
    return _ratio(float(step.max()), float(np.linalg.norm(images, axis=0).max()))


def _ratios(a: Array, b: Array) -> Array:
    """Return a / b, 0 where both are 0."""
    return np.divide(a, b, out=np.where(a > 0, np.inf, 0.0), where=b > 0)


def _ratio(a: float, b: float) -> float:
    return float(_ratios(np.asarray(a), np.asarray(b)))
