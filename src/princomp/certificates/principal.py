"""Principal components: orthonormal, an invariant subspace, and the leading one.

Let S = X'X, V (p, k) orthonormal, L the values claimed, Z = XV the scores, D the diagonal of Z'Z, and F the part of
SV = X'Z outside the span of V. Four numbers are measured, each against the component's *own* value:

- V'V - I;
- |L - D| / D: the values are the variances of the scores;
- the correlations of the scores, D^-1/2 Z'Z D^-1/2 - I;
- |F_j| / D_j.

S is congruent to the block diagonal matrix of Z'Z and of what V leaves out (its Schur complement), the congruence being
the identity plus F'(Z'Z)^-1. By Ostrowski's theorem its eigenvalues are those of the two blocks up to a *relative*
error of twice the norm of that, and those of Z'Z are D up to the norm of the correlations (Demmel & Veselic, SIAM J.
Matrix Anal. Appl. 1992). So small components are held to their own size, however large the leading one is, down to what
rounding leaves: `floor_of_data`, `floor_of_matrix`. That the block left out has nothing larger than the last of L is
the second half: `LeftOut`, by all values, by a Cholesky factorisation, or by a probe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from princomp._typing import Array
from princomp.certificates.left_out import LeftOut, Operator, left_out_of_values, probe
from princomp.data import Centered, as_rows, statistics
from princomp.result import Certificate

# Rounding, in units of eps and of the square root of the longer side: several times the largest error seen on random,
# graded and tied matrices of sides 5 to 3000, by products with X and by a matrix.
DATA_ROUNDING = 4.0
MATRIX_ROUNDING = 12.0
NOTHING_KNOWN = 1e200  # a floor as high as this, in units in which data spread by about 1, need not be higher


@dataclass(frozen=True)
class Images:
    """What a pass over the data tells of directions V (p, k)."""

    images: Array  # (p, k), X'(XV)
    gram: Array  # (k, k), (XV)'(XV)

    def rotated(self, Q: Array) -> Images:
        """Return the same for VQ."""
        return Images(self.images @ Q, Q.T @ self.gram @ Q)


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

    With S the covariance (divisor n - 1), V the components as columns and L their variances: V must be orthonormal, L
    the variances of the scores, the scores uncorrelated, and S V in the span of V, each relative to the component's own
    variance. That only says that V spans *an* invariant subspace; what it leaves out is then probed, from random
    vectors, for anything larger than the smallest variance kept.

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
        Seed of the probe.

    Returns
    -------
    Certificate
        ``dominant`` is the second check. ``details``: ``"residuals"`` (k,), each relative to its own variance;
        ``"floor"`` (k,), what rounding leaves unknown of a variance, and ``"known"``, the same relative to it;
        ``"error"`` (k,), what it is off by at the most; ``"left out"``, how much larger than the last kept variance one
        that was left out may be, relative to it; and ``"miss"``, the probability that there is a larger one all the
        same.

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
    order = np.argsort(np.asarray(variances))[::-1]
    V, values = np.asarray(components, np.float64)[order].T, freedom * np.asarray(variances, np.float64)[order]
    images, gram, _ = statistics.gram_apply_and_scores(centered, V)
    floor, rng = floor_of_data(centered, values), np.random.default_rng(random_state)
    left_out = probe(partial(statistics.gram_apply, centered), V, values, tol, rng, floor=float(floor[-1]))
    certificate = certify(V, values, Images(images, (gram + gram.T) / 2), left_out, tol=tol, floor=floor)
    return in_units(certificate, freedom)


def images_by_product(apply: Operator, V: Array) -> Images:
    """Return SV and V'SV, by a product with S."""
    images = apply(V)
    gram = V.T @ images
    return Images(images, (gram + gram.T) / 2)


def floor_of_data(X: Centered, values: Array) -> Array:
    """Return what rounding leaves unknown of eigenvalues (k,) of X'X that are measured by products with X.

    Scores are known to some eps of the largest singular value s_1, so that a value s^2 is known to 2 s d + d^2 with d =
    some eps s_1; where a mean is taken off scores of sparse data, d has some eps of that, too. The mean is a rounded
    number itself: that counts from offsets of 1e10 on.
    """
    largest = np.sqrt(max(X.shape) * max(values.max(initial=0.0), 0.0)) + np.sqrt(taken_off(X))
    distance = DATA_ROUNDING * np.finfo(float).eps * largest
    floor: Array = 2 * np.sqrt(np.maximum(values, 0.0)) * distance + distance**2
    if X.mean is not None:
        numbers = np.finfo(float)
        with np.errstate(over="ignore"):
            rounded = np.maximum(numbers.eps * np.abs(X.mean), numbers.smallest_subnormal)
            rounded *= 1.0 if X.factor is None else X.factor
            floor = np.minimum(floor + X.shape[0] * float(rounded @ rounded), NOTHING_KNOWN)
    return floor


def taken_off(X: Centered) -> float:
    """Return the sum of squares of the mean, where it is taken off scores only afterwards: of sparse data."""
    if X.mean is None or not X.rows.sparse or X.dense_tiles:
        return 0.0
    mean = X.mean * (1.0 if X.factor is None else X.factor)
    return X.shape[0] * float(mean @ mean)


def error_of_row_gram(X: Centered) -> float:
    """Return what rounding leaves unknown of XX', beside eps of its norm: the squares of a mean cancel in it."""
    return MATRIX_ROUNDING * np.finfo(float).eps * taken_off(X)


def floor_of_matrix(size: int, values: Array, error: float = 0.0) -> Array:
    """Return what rounding leaves unknown of eigenvalues (k,) of a matrix of this size, which is known to ``error``."""
    leading = max(float(values.max(initial=0.0)), 0.0)
    return np.full(len(values), MATRIX_ROUNDING * np.sqrt(size) * np.finfo(float).eps * leading + error)


def certify(
    V: Array, values: Array, measured: Images, left_out: LeftOut | None = None, *, tol: float, floor: Array
) -> Certificate:
    """Certify eigenvectors V (p, k) with eigenvalues ``values``, descending, from what was measured of them.

    Unless it is known what was left out, nothing is said of it yet: ``dominant`` is None, until `and_dominance`.
    """
    known = np.maximum(values, floor / tol if tol > 0 else floor)  # below that, rounding is all there is to see
    known = np.where(known > 0, known, 1.0)
    # Scores are known to a distance that is one for all; a correlation with scores shorter than that is rounding.
    distance = float(floor[0]) / np.sqrt(known[0])
    size = np.maximum(np.sqrt(known), distance / tol if tol > 0 else distance)
    inside = V.T @ measured.images
    outside = np.linalg.norm(measured.images - V @ inside, axis=0) / known
    correlations = measured.gram / np.outer(size, size)
    wrong = np.abs(np.diag(measured.gram) - values) / known
    np.fill_diagonal(correlations, 0.0)
    related = np.linalg.norm(correlations, axis=0)
    orthonormality = float(np.abs(V.T @ V - np.eye(V.shape[1])).max())
    residuals = np.maximum(np.maximum(outside, related), wrong)
    # Some eigenvalue lies as close as the residual is long; or, where that has much of larger ones in it, by Ostrowski.
    length = np.linalg.norm(measured.images - V * values, axis=0)
    error = np.minimum(length, values * (2 * float(np.linalg.norm(outside)) + related + wrong)) + floor
    residual = max(float(residuals.max(initial=0.0)), orthonormality)
    details = {
        "residuals": residuals,
        "floor": floor,
        "error": error,
        "known": np.divide(floor, values, out=np.full(len(values), np.inf), where=values > floor),
    }
    certificate = Certificate(residual, tol, "local", None, details)
    return certificate if left_out is None else and_dominance(certificate, values, left_out)


def certify_all(S: Array, V: Array, values: Array, k: int, *, tol: float, floor: float) -> Certificate:
    """Certify the first k of *all* eigenvectors V (n, m) of a matrix S, with eigenvalues ``values`` (n,), descending.

    Those of values near 0 may be left out of V, at the end.

    What `certify` measures is bounded here, in a fifth of the time. With E = S - V diag(values) V', D = V'V - I, d a
    column of it, and L the largest value in magnitude, the residual S v - v l of a component is not longer than
    (|E| + L |d|)(1 + |D|), by Frobenius norms; with that go the four numbers of a component.
    """
    known = np.maximum(values[:k], floor / tol if tol > 0 else floor)
    known = np.where(known > 0, known, 1.0)
    V = np.ascontiguousarray(V)
    apart = V.T @ V
    apart[np.diag_indices_from(apart)] -= 1.0
    orthonormality, columns = float(np.abs(apart).max()), np.linalg.norm(apart, axis=0)
    rest, there = S.copy(), values[: V.shape[1]]
    root = np.sqrt(np.abs(there))
    for sign, kept in ((-1.0, there > 0), (1.0, there < 0)):
        if kept.any():
            half = V[:, kept] * root[kept]
            rest += sign * (half @ half.T)
    largest, longer = float(np.abs(values).max(initial=0.0)), 1 + float(np.linalg.norm(columns))
    length = (float(np.linalg.norm(rest)) + largest * columns[:k]) * longer
    related = (length + values[:k] * columns[:k]) / np.sqrt(known * known.min(initial=np.inf))
    residuals = np.maximum(length / known, related)
    details = {
        "residuals": residuals,
        "floor": np.full(k, floor),
        "error": length + floor,
        "known": np.divide(floor, values[:k], out=np.full(k, np.inf), where=values[:k] > floor),
    }
    residual = max(float(residuals.max(initial=0.0)), orthonormality)
    certificate = Certificate(residual, tol, "local", None, details)
    return and_dominance(certificate, values[:k], left_out_of_values(values[k:]))


def and_dominance(certificate: Certificate, values: Array, left_out: LeftOut) -> Certificate:
    """Return the certificate of ``values``, descending, with what is known of those left out."""
    last, floor = float(values[-1]), float(certificate.details["floor"][-1])
    dominant = left_out.dominated_by(last, certificate.tol, floor)
    more = {
        "deflated norm": left_out.found,
        "left out": max((left_out.bound - floor) / last - 1.0, 0.0) if last > 0 else 0.0,
        "miss": left_out.miss,
    }
    scope: Literal["global", "local"] = "global" if dominant else "local"
    return replace(certificate, scope=scope, dominant=dominant, details={**certificate.details, **more})


def in_units(certificate: Certificate, *divisors: float) -> Certificate:
    """Return the certificate of the same components if all eigenvalues are divided by these, one after the other."""
    details = dict(certificate.details)
    with np.errstate(over="ignore"):
        for name in {"floor", "error", "deflated norm"} & details.keys():
            for divisor in divisors:
                details[name] = details[name] / np.float64(divisor)
    return replace(certificate, details=details)


def spectral(apply: Operator, V: Array, values: Array, tol: float) -> Certificate:
    """Certify eigenvectors V (p, k) with eigenvalues ``values``, descending, of an operator known by its products."""
    floor = floor_of_matrix(len(V), values)
    left_out = probe(apply, V, values, tol, np.random.default_rng(0), floor=float(floor[-1]))
    return certify(V, values, images_by_product(apply, V), left_out, tol=tol, floor=floor)
