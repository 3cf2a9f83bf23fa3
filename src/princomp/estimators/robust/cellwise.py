"""`method="cellwise"`: cellPCA of all rows in memory, with missing cells, and what it says of cells and rows.

The plane, and what cells and rows count, are those of the objective (`princomp.solvers.robust.cellwise`). It leaves
open where in the plane the centre is and how axes are turned: these, and variances, are those of the reweighted MCD of
the scores of rows that count (`princomp.solvers.robust.covariance`), as ROBPCA has them.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from princomp._typing import Array
from princomp.certificates.cellwise import CellwisePoint, CellwiseProblem, cellwise_residual
from princomp.estimators.checks import column
from princomp.estimators.robust.problem import MOST, RobustFound, RobustProblem
from princomp.result import measured, settled
from princomp.solvers.robust import covariance, robpca
from princomp.solvers.robust.cellwise import cellwise, packed, parts, start
from princomp.solvers.robust.cellwise_start import ROUNDING, Plane, Table, begin, spherical
from princomp.solvers.robust.deviations import LIMIT
from princomp.solvers.robust.univariate import mad, mean_square, median_of, subset_size
from princomp.solvers.signs import signs

SMALL = 0.5  # weights of rows below are small: these are bad
LONGEST = 1e3  # of rows, in their scale, far beyond where weights end
COVERAGE = 0.75  # of the MCD of scores
ROWS_FOR_COVARIANCE = 2  # for each component: with fewer, all rows that count are taken as they are


def solve(problem: RobustProblem) -> RobustFound:
    """Return cellPCA of all rows, in memory."""
    X, (n, p) = problem.X, problem.X.shape
    there = ~np.isnan(X)
    _check_columns(problem, there)
    middle = median_of(X, there)
    known = ROUNDING * np.abs(middle)
    scale = _column_scales(X - middle, known) if problem.parameters["scale"] else None
    Y = X - middle if scale is None else (X - middle) / scale
    table = Table.of(Y, known if scale is None else known / scale)
    plane = _start(problem, table)
    posed = table.problem(plane, regular=True)
    result = problem.drive(partial(cellwise, posed), start(packed(*plane)), scope="local", warns=True)
    mean, V, Z = parts(result.value["point"], n, p)
    V, lengths, turn = np.linalg.svd(V, full_matrices=False)
    Z = Z @ (turn.T * lengths)
    point = posed.at(mean, V, Z)
    bad = point.rows < SMALL
    centre, variances, E = _axes(problem, Z, ~bad & (posed.counts > 0))
    V, Z, mean = V @ E, (Z - centre) @ E, mean + V @ centre
    turned = signs(V)
    V, Z = V * turned, Z * turned
    answer = {"V": V, "mean": mean, "scores": Z, "scales": posed.scales, "row_scale": np.array(posed.row_scale)}
    result = replace(result, value=answer)
    result = measured(result, cellwise_residual(posed, mean, V, Z), {"meaning": MEANING})
    rest = float((posed.scales**2).sum()) * max(1 - V.shape[1] / p, 0.0)
    return RobustFound(
        V=V,
        variances=variances,
        total=float(variances.sum()) + rest,
        mean=middle + (mean if scale is None else scale * mean),
        scale=scale,
        result=result,
        rank=int((variances > 0).sum()),
        outliers=bad,
        noise=posed.scales,
        own={"_row_limit": posed.row_scale * _reach(posed)},
        more=_said(posed, point, bad),
    )


MEANING = "least squares with the weights of its own cells and rows leave the plane where it is"


def _said(posed: CellwiseProblem, point: CellwisePoint, bad: Array) -> dict[str, Array]:
    outlying = np.abs(point.R) > LIMIT * posed.scales
    cells = np.where(posed.there, point.cells, 0.0)
    return {"outlying_cells_": outlying, "cell_weights_": cells, "row_weights_": point.rows}


def _reach(posed: CellwiseProblem) -> float:
    """Return how long rows may be, in their scale, to have a weight that is not small: weights fall."""
    low, high = 0.0, LONGEST
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if posed.of_rows.weights(np.array([middle]))[0] >= SMALL else (low, middle)
    return low


def _check_columns(problem: RobustProblem, there: Array) -> None:
    empty = np.flatnonzero(~there.any(axis=0))
    if len(empty):
        which = column(problem.names, int(empty[0]))
        raise ValueError(f"There is no value at all in column {which}, of which nothing can be said: leave it out.")


def _column_scales(X: Array, known: Array) -> Array:
    """Return robust scales (p,) to divide columns by; 1 where nothing varies."""
    spread = Table.of(X, known).spread
    return np.where(spread > 0, spread, 1.0)


def _start(problem: RobustProblem, table: Table) -> Plane:
    """Return the plane to begin with; where the rule tells how many directions it has, by those of a first one."""
    if problem.asked is not None:
        return begin(table, problem.count(np.ones(1)), problem.rng)
    n, p = table.X.shape
    most = min(n, p, MOST)
    Y, _ = table.wrapped
    V = spherical(Y, most)
    scores = Y @ V
    variances = np.sort(mad(scores) ** 2)[::-1]
    rest = mean_square(np.linalg.norm(Y - scores @ V.T, axis=1)) if most == MOST else 0.0
    k = problem.count(np.append(variances, rest))
    while True:  # what is left of clean cells is less than what is left of those that are drawn in
        plane = begin(table, k, problem.rng)
        rest = float((table.scales(plane) ** 2).sum()) * (1 - k / p)
        variances, V = _variances(plane)
        fewer = problem.count(np.append(variances, rest)[: MOST if k == MOST else None])
        if fewer >= k:
            return plane
        k = fewer


def _variances(plane: Plane) -> tuple[Array, Array]:
    """Return variances along a plane's own axes, falling, and these axes (k, k)."""
    _, _, Z = plane
    centred = Z - np.median(Z, axis=0)
    lengths = np.linalg.norm(centred, axis=1)
    _, _, E = np.linalg.svd(centred / np.where(lengths > 0, lengths, 1.0)[:, None], full_matrices=False)
    variances = mad(centred @ E.T) ** 2
    order = np.argsort(-variances, kind="stable")
    return variances[order], E.T[:, order]


def _axes(problem: RobustProblem, Z: Array, counted: Array) -> tuple[Array, Array, Array]:
    """Return centre (k,), variances (k,), falling, and axes (k, k) of the scores of rows that count."""
    some = Z[counted]
    n, k = some.shape
    if n <= ROWS_FOR_COVARIANCE * k:
        mean = some.mean(axis=0)
        _, lengths, E = np.linalg.svd(np.vstack([some - mean, np.zeros((k, k))]), full_matrices=False)
        return mean, lengths**2 / max(n - 1, 1), E.T
    h = subset_size(n, k, COVERAGE)
    standard = covariance.standardised(some, h)
    steps = covariance.concentrate(standard, covariance.start(standard, h, problem.rng))
    found = covariance.reweighted(some, settled(steps, tol=0.0, max_iter=problem.max_iter).value["subsets"][0])
    variances, E = robpca.axes(some, found)
    return found.mean, variances, E
