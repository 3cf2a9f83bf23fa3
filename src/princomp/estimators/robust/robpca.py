"""`method="robpca"`: components of the rows that belong together, found by outlyingness and by MCD."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from princomp._typing import Array
from princomp._warn import warn
from princomp.certificates.robust_rows import rows_residual
from princomp.estimators.robust.problem import MOST, RobustFound, RobustProblem
from princomp.result import Certificate, Result, Status, measured
from princomp.solvers.krylov import orthonormal
from princomp.solvers.robust import covariance, robpca
from princomp.solvers.robust.covariance import Mcd
from princomp.solvers.robust.univariate import column_scales, length_limit, median, subset_size
from princomp.solvers.signs import signs

ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of the length of a row
ROWS_FOR_COVARIANCE = 2  # for each component: with fewer, the rows that span the plane are taken as they are


@dataclass(frozen=True)
class _Plane:
    """An affine subspace, and the rows that span it."""

    V: Array  # (p, q)
    mean: Array  # (p,)
    rows: Array | None  # (m,), or None: all columns
    k: int | None  # how many components are kept, once that is known
    rest: float  # variance off it
    first: tuple[Array, ...] = ()  # subsets to begin with


def solve(problem: RobustProblem) -> RobustFound:
    """Return ROBPCA of all rows, in memory."""
    X = problem.X
    n, p = X.shape
    coverage = float(problem.parameters["coverage"])
    scale = None
    if problem.parameters["scale"]:
        scale = column_scales(X, subset_size(n, 1, coverage))
    middle = median(X)
    Y = X - middle if scale is None else (X - middle) / scale
    # The cells are rounded numbers: what they are known by, as they stand.
    rounding = ROUNDING * np.linalg.norm(X if scale is None else X / scale, axis=1)
    plane = _all_columns(p) if robpca.by_covariance(n, p) else _spanned(problem, Y, rounding, coverage)
    scores = (Y - plane.mean) @ plane.V
    result, found = _covariance(problem, scores, plane, coverage)
    variances, E = robpca.axes(scores, found) if scores.shape[1] else (np.zeros(0), np.zeros((0, 0)))
    k = problem.count(variances) if plane.k is None else plane.k
    rest = plane.rest + float(variances[k:].sum())
    V, variances = _completed((plane.V @ E)[:, :k], variances[:k], k)
    V = V * signs(V)
    mean = plane.mean + plane.V @ found.mean
    spanning = found.regular if plane.rows is None else _mask(n, plane.rows)
    masks = {"spanning": spanning, "regular": found.regular, "subset": found.subset}
    residual = rows_residual(Y, V, variances, mean, **masks, all_columns=plane.rows is None, tol=problem.tol)
    result = measured(result, residual.largest, residual.details())
    certificate = replace(result.certificate, dominant=residual.dominant)
    result = replace(result, value={"V": V, "variances": variances, **masks}, certificate=certificate)
    return RobustFound(
        V=V,
        variances=variances,
        total=float(variances.sum()) + rest,
        mean=middle + (mean if scale is None else scale * mean),
        scale=scale,
        result=result,
        rank=int((variances > 0).sum()),
    )


def _all_columns(p: int) -> _Plane:
    return _Plane(np.eye(p), np.zeros(p), None, None, 0.0)


def _spanned(problem: RobustProblem, Y: Array, rounding: Array, coverage: float) -> _Plane:
    """Return the plane of the rows that are not far from the plane of the h least outlying ones."""
    Z = robpca.coordinates(Y)
    n, r = Z.shape
    h = subset_size(n, min(MOST, r), coverage)
    inner = robpca.least_outlying(Z, h, problem.rng, rounding)
    k = None if problem.asked is None else problem.count(np.ones(1))
    first = robpca.plane(Z, inner, k, rounding)
    k = problem.count(first.values)
    if k >= h - 1 and h < n:
        warn(
            f"{k} components pass through any {h} rows, which is what coverage={coverage:g} leaves of {n}: all others "
            "will look like outliers. Ask for fewer components, or raise coverage."
        )
    orthogonal = first.orthogonal(Z, k, rounding)
    good = np.flatnonzero(orthogonal <= length_limit(orthogonal))
    second = robpca.plane(Z, good, k, rounding)
    V, mean = second.directions(Y, k), Y[good].mean(axis=0)
    left = Y[good] - mean
    rest = float(np.square(left).sum() - np.square(left @ V).sum()) / max(len(good) - 1, 1)
    return _Plane(V, mean, good, k, max(rest, 0.0), (inner,))


def _covariance(problem: RobustProblem, scores: Array, plane: _Plane, coverage: float) -> tuple[Result, Mcd]:
    """Return the reweighted MCD of scores (n, q), and how it was found."""
    n, q = scores.shape
    if q == 0 or (plane.rows is not None and n <= ROWS_FOR_COVARIANCE * q):
        some = np.arange(n) if plane.rows is None else plane.rows
        return _as_they_are(problem, scores, some)
    h = subset_size(n, q, coverage)
    Z = covariance.standardised(scores, h)
    begin = covariance.start(Z, h, problem.rng, plane.first)
    result = problem.drive(partial(covariance.concentrate, Z), begin, scope="local")
    return result, covariance.reweighted(scores, result.value["subsets"][0])


def _as_they_are(problem: RobustProblem, scores: Array, rows: Array) -> tuple[Result, Mcd]:
    """Return mean and covariance of the rows that span the plane: of so few no part can be taken, or nothing varies."""
    some, mask = scores[rows], _mask(len(scores), rows)
    mean = some.mean(axis=0)
    S = (some - mean).T @ (some - mean) / max(len(rows) - 1, 1)
    status = Status("exact", "Exact: of so few rows the covariance is that of those which span the plane.")
    result = Result({}, 0.0, Certificate(0.0, problem.tol, "local"), status)
    return result, Mcd(mean, S, mask, np.zeros_like(mask), mean, S, 1.0, min(len(mean), len(rows) - 1))


def _mask(n: int, rows: Array) -> Array:
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask


def _completed(V: Array, variances: Array, k: int) -> tuple[Array, Array]:
    """Return k directions, those that are missing at right angles to all others, without variance."""
    missing = k - V.shape[1]
    if missing <= 0:
        return V, variances
    others = orthonormal(np.random.default_rng(0).standard_normal((len(V), missing)), V)
    return np.hstack([V, others]), np.append(variances, np.zeros(missing))
