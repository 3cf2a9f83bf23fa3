"""Principal components: an invariant subspace, and the leading one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.data import as_rows, statistics
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
