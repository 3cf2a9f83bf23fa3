"""`method="spherical"`: components of rows brought to one distance from their spatial median, on all storages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.robust_rows import spherical_certificate
from princomp.data import Centered, as_rows, statistics
from princomp.data.signature import Signature
from princomp.estimators.costs import choose_solver
from princomp.estimators.decompose import SOLVERS, Eigenproblem
from princomp.estimators.robust.distances import EPS, distances
from princomp.estimators.robust.problem import MOST, RobustFound, RobustProblem
from princomp.losses import Squared
from princomp.penalties import Zero
from princomp.result import Certificate, Status, run, settled, warn
from princomp.solvers import leading
from princomp.solvers.robust import spatial_median, spherical
from princomp.solvers.robust.univariate import mad, mean_square, median
from princomp.solvers.signs import signs

SAMPLE_ROWS, SAMPLE_CELLS = 1000, 2**20  # of which a first median is found, in memory
ROUNDING = 4.0  # times eps, of the length of rows
DENSE_WORK = 1e9  # multiplications of a scatter matrix up to which sparse rows are made dense, tile by tile


def solve(problem: RobustProblem) -> RobustFound:
    """Return spherical PCA, in passes over the rows."""
    if problem.parameters.get("scale"):
        raise ValueError(
            'method="spherical" takes columns as they are: scale=True is for method="robpca" and method="cellwise". '
            "Divide the columns by numbers of your own first."
        )
    less = partial(_less, problem, _dense_tiles(problem))
    begin = spatial_median.start(_first(problem, less))
    result = problem.drive(partial(spatial_median.spatial_median, less), begin, scope="global", warns=False)
    centre = result.value["median"]
    X = less(centre)
    pulled = spatial_median.Pull(*X.reduce(spatial_median.pull, combine=spatial_median.add_pulls))
    n = problem.rows.shape[0]
    k = problem.count(np.ones(1)) if problem.asked is not None else min(*problem.rows.shape, MOST)
    V, components = _components(problem, X, k, n - pulled.here)
    found = X.gather(_scores_and_rest, V, width=k + 1)
    middle, deviations = median(found[:, :k]), mad(found[:, :k])
    deviations = np.where(deviations > _known(problem, centre, found), deviations, 0.0)
    # In the plane, the middle of the scores, about which they deviate: rows on one side have drawn the spatial median.
    mean = centre + V @ middle
    order = np.argsort(-deviations, kind="stable")
    V, variances = V[:, order], deviations[order] ** 2
    rest = mean_square(found[:, k])
    if problem.asked is None:
        most = k
        k = problem.count(np.append(variances, rest if k == MOST else []))
        rest += float(variances[k:most].sum())
        V, variances = V[:, :k], variances[:k]
    V = V * signs(V)
    certificate = spherical_certificate(components, spatial_median.excess(pulled, n, centre))
    result = replace(
        result,
        value={"V": V, "variances": variances, "median": centre},
        certificate=certificate,
        status=_status(result.status, certificate),
    )
    return RobustFound(
        V=V,
        variances=variances,
        total=float(variances.sum()) + rest,
        mean=mean,
        scale=None,
        result=result,
        rank=int((variances > 0).sum()),
    )


def _less(problem: RobustProblem, dense_tiles: bool, centre: Array) -> Centered:
    X = problem.moved(centre / problem.unit)
    return X.in_dense_tiles() if dense_tiles else X


def _dense_tiles(problem: RobustProblem) -> bool:
    """Tell whether sparse rows are so far from zero that distances from a centre would lose their digits."""
    return problem.rows.sparse and statistics.moments(problem.rows, by_column=True).dense_tiles


def _first(problem: RobustProblem, less: Callable[[Array], Centered]) -> Array:
    """Return where to begin: the spatial median of some rows; of rows on a line, the one in the middle."""
    n, p = problem.rows.shape
    m = min(n, SAMPLE_ROWS, max(SAMPLE_CELLS // p, 32))
    wanted = np.sort(problem.rng.choice(n, m, replace=False))
    some = statistics.take(problem.moved(None), wanted)
    line, begin = spatial_median.on_a_line(some), median(some)
    if line is not None:
        order = np.argsort(statistics.scores(less(some[0]), line[:, None])[:, 0])
        return statistics.take(problem.moved(None), order[[(n - 1) // 2, n // 2]]).mean(axis=0)
    sample = as_rows(some)
    steps = spatial_median.spatial_median(partial(Centered, sample), spatial_median.start(begin))
    limits: dict[str, Any] = {"max_iter": problem.max_iter, "deadline": problem.tell.deadline}
    return settled(steps, tol=0.1 * problem.tol, **limits).value["median"]


def _components(problem: RobustProblem, X: Centered, k: int, count: int) -> tuple[Array, Certificate]:
    """Return the k leading eigenvectors of unit rows, of which ``count`` are not at the centre."""
    n, p = X.shape
    drive: Callable[..., Any] = partial(run, callback=problem.tell, deadline=problem.tell.deadline)
    if X.rows.sparse and not X.dense_tiles and count and float(n) * p * p > DENSE_WORK:
        operator = spherical.operator(X, count)
        how: dict[str, Any] = {"tol": problem.tol, "max_iter": problem.max_iter, "rng": problem.rng, "drive": drive}
        found = leading.leading(operator, k, **how)
        return found.V, found.certificate
    unit = spherical.on_sphere(X)
    solver = choose_solver(n, p, k, X.rows.pass_seconds)
    if solver == "eigh" and n < p:  # pairs of rows are not made of rows that are changed
        solver = "krylov" if k <= n / 8 else "svd"
    eigen = Eigenproblem(
        unit,
        k,
        float(count),
        problem.tol,
        lambda: problem.rng,
        problem.max_iter,
        drive,
        Squared(),
        Zero(),
        Signature.about(np.zeros(p), statistics.weighted_sums(unit), float(n), n),
        problem.names,
    )
    if not count:  # all rows are one
        return np.eye(p, k), Certificate(0.0, problem.tol, "global", True)
    spectrum = SOLVERS[solver](eigen)
    return spectrum.V, spectrum.certificate


def _scores_and_rest(block: Any, rows: slice, V: Array) -> Array:
    """Return scores, and what they leave of the length of each row: a block function."""
    rest = distances(block, rows, V, np.ones(V.shape[1]))[:, 1:]
    return np.hstack([np.asarray(block @ V, dtype=np.float64), rest])


def _known(problem: RobustProblem, centre: Array, found: Array) -> float:
    """Return what scores are known by: rounding of the cells, and of sums over them."""
    size = float(median(np.linalg.norm(found, axis=1))) + float(np.linalg.norm(centre))
    return ROUNDING * (float(np.finfo(problem.rows.dtype).eps) + EPS) * size


def _status(before: Status, certificate: Certificate) -> Status:
    """Return why the fit ended, by what was measured."""
    if certificate.holds:
        return Status("converged", f"Converged: {certificate}")
    if before:
        before = Status("no progress", f"No step leads further: {certificate} Accept this accuracy with a larger tol.")
    warn(before, certificate.tol)
    return before
