"""From rows to a spectrum: which solver, in which units, and what it certifies."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from princomp import certificates
from princomp._typing import Array
from princomp.data import Centered, Rows, budget, statistics
from princomp.data.signature import Signature, require_unchanged
from princomp.estimators.costs import FETCHED, choose_solver
from princomp.estimators.covariance import Covariance
from princomp.estimators.spectrum import Spectrum
from princomp.estimators.standardise import SAFE_IN_SINGLE, standardise
from princomp.losses import Loss, Squared
from princomp.penalties import Penalty, Zero
from princomp.result import Certificate, Result, measured, run
from princomp.solvers import eigh, leading, optimize, svd
from princomp.solvers.signs import signs

# What products of tiles in single precision, added up in double, may be off by: in units of its eps, beside so many
# times the error that was measured. That is at least 1.7 times the largest error of an eigenvalue seen (noise, spikes,
# heavy tails, giant columns, counts, sorted columns, offsets; 500 x 10 to 100,000 x 20 and 3000 x 1000).
SINGLE_ROUNDING = 4.0
SINGLE_SAFETY = 2.0
DENSE_SHARE = 0.1  # of free memory, that rows with a large mean may take when they are filled in
SVD_WORK = 2e10  # multiplications that a singular value decomposition may take where "eigh" loses digits: some seconds


@dataclass(frozen=True)
class Eigenproblem:
    """Find k leading eigenpairs of X'X."""

    X: Centered
    k: int
    total: float  # trace of X'X
    tol: float
    generator: Callable[[], np.random.Generator]  # called by solvers that start at random
    max_iter: int
    drive: Callable[..., Result]  # `run`, with the user's callback and checkpoint
    loss: Loss
    penalty: Penalty
    signature: Signature  # of X, when its moments were taken
    names: Any = None  # of the features

    def measure(self, V: Array) -> certificates.Images:
        """Return what a pass over the data tells of directions V; complain if the data are not what they were."""
        images, gram, sums = statistics.gram_apply_and_scores(self.X, V)
        require_unchanged(self.signature, sums, self.names)
        return certificates.Images(images, (gram + gram.T) / 2)


def decompose(
    rows: Rows,
    k: int,
    solver: str,
    *,
    all_digits: bool = False,
    center: bool,
    scale: bool,
    tol: float,
    max_iter: int,
    generator: Callable[[], np.random.Generator],
    drive: Callable[..., Result],
    loss: Loss | None = None,
    penalty: Penalty | None = None,
    names: Any = None,
) -> Spectrum:
    """Return k leading eigenpairs of X'X, X centred and scaled as asked, with a certificate.

    ``all_digits``: where "eigh" hides components in the rounding of the leading one, another solver is taken.
    """
    n, p = rows.shape
    in_scatter = solver == "eigh" and n >= p
    if (n < p and solver in ("eigh", "svd")) or (solver == "svd" and n <= FETCHED):
        rows = statistics.here(rows)  # pairs of rows take many passes, and data for "svd" are sent as soon as sums are
    if in_scatter:
        budget.require(24.0 * p * p, f"The {p} x {p} matrix X'X", 'Use solver="krylov".')
    how: dict[str, Any] = {"center": center, "scale": scale, "names": names}
    found, spectrum = standardise(rows, scatter=in_scatter, **how), None
    if found.scatter is not None:
        spectrum = by_eigh_of_scatter(found.scatter, k, found.total, tol, found.error)
    size = found.unit
    loss, penalty = (loss or Squared()).in_units(size), (penalty or Zero()).times(size).times(size)
    problem = Eigenproblem(
        found.X, k, found.total, tol, generator, max_iter, drive, loss, penalty, found.signature, names
    )
    if spectrum is None:
        spectrum = SOLVERS[solver](problem) if found.total > 0 else _nothing_varies(solver, problem)
    if all_digits and spectrum.solver == "eigh":
        known = spectrum.certificate.details.get("known", 0.0)
        if np.max(known) > tol:  # some drown in the rounding of the leading component
            spectrum = _with_all_digits(problem)
    units: dict[str, Any] = {"mean": found.mean, "scale": found.scale, "unit": found.unit}
    return replace(spectrum, count=n, freedom=n - 1.0, centred=center, **units)


def _with_all_digits(problem: Eigenproblem) -> Spectrum:
    """Solve without squaring X: by Krylov iteration for a few components, or by a singular value decomposition."""
    n, p = problem.X.shape
    affordable = n * p * min(n, p) <= SVD_WORK
    if not affordable or problem.k <= min(n, p) / 8:
        with warnings.catch_warnings():
            if affordable:
                warnings.simplefilter("ignore")  # there is another way
            spectrum = by_krylov(problem)
        if spectrum.certificate.holds or not affordable:
            return spectrum
    return by_svd(problem)


def decompose_covariance(covariance: Covariance, k: int, *, scale: bool, tol: float) -> Spectrum:
    """Return k leading eigenpairs of a covariance matrix, as of a scatter matrix of n_samples - 1 (or 1) times it."""
    (S, unit, _, n_samples), deviation = covariance.scaled() if scale else (covariance, None)
    freedom = covariance.freedom
    spectrum = by_eigh_of_scatter(S, k, float(np.trace(S)), tol)
    return replace(
        spectrum,
        values=spectrum.values * freedom,
        certificate=certificates.in_units(spectrum.certificate, 1.0 / freedom),
        total=spectrum.total * freedom,
        count=n_samples or 0,
        freedom=freedom,
        mean=np.zeros(len(S)),
        scale=deviation,
        unit=unit,
    )


def _nothing_varies(solver: str, problem: Eigenproblem) -> Spectrum:
    """Return any orthonormal vectors: they all are principal components of data that do not vary."""
    V = np.eye(problem.X.shape[1], problem.k)
    return Spectrum(solver, np.zeros(problem.k), V, 0.0, Certificate(0.0, problem.tol, "global", True))


def by_eigh_of_scatter(S: Array, k: int, total: float, tol: float, error: float = 0.0) -> Spectrum:
    """Solve by the eigenproblem of a scatter matrix (p, p), which is known up to ``error``."""
    values, V = leading.leading_of_matrix(S, k)
    floor = certificates.floor_of_matrix(len(S), values, error)
    left_out = certificates.left_out_of_matrix(S, V, values, tol, float(floor[-1]))
    measured = certificates.images_by_product(partial(np.matmul, S), V)
    certificate = certificates.certify(V, values, measured, left_out, tol=tol, floor=floor)
    if error > tol * values[0]:  # then X'X is not that of the data
        certificate = replace(certificate, residual=max(certificate.residual, error / values[0]))
    return Spectrum("eigh", np.maximum(values, 0.0), V, total, certificate)


def by_eigh(problem: Eigenproblem) -> Spectrum:
    """Solve by the eigenproblem of the smaller side, X'X (p, p) or XX' (n, n)."""
    X, k = problem.X, problem.k
    n, p = X.shape
    if n >= p:
        return by_eigh_of_scatter(statistics.scatter(X), k, problem.total, problem.tol)
    if certificates.taken_off(X) > problem.total and 8.0 * n * p <= DENSE_SHARE * budget.available_bytes():
        X = X.in_dense_tiles()  # in XX' the squares of such a mean would cancel; few cells of it are 0
    if X.rows.dtype == np.float32 and statistics.in_columns(X) and _holds_squares(problem):
        spectrum = _by_rows(replace(problem, X=X), single=True)
        if spectrum.certificate.holds:
            return spectrum
    return _by_rows(replace(problem, X=X))


def _by_rows(problem: Eigenproblem, *, single: bool = False) -> Spectrum:
    """Solve by the eigenproblem of XX', ``single``: of products in single precision; a pass measures the answer."""
    X = problem.X
    values, V, K, U, error = eigh.eigh_of_rows(X, problem.k, leading.leading_of_matrix, single=single)
    p = X.shape[1]
    floor = certificates.floor_of_matrix(p, values, certificates.error_of_row_gram(X))
    # XX' has the eigenvalues of X'X: no more than k of them are larger than what it leaves of any k vectors.
    unsure = float(floor[-1])
    if single:
        unsure += SINGLE_ROUNDING * float(np.finfo(np.float32).eps * values[0]) + SINGLE_SAFETY * error
    left_out = certificates.left_out_of_matrix(K, U, values, problem.tol, unsure)
    return _certified("eigh", problem, values, V, left_out, floor=floor)


def _holds_squares(problem: Eigenproblem) -> bool:
    """Tell whether single precision holds the squares of the data."""
    low, high = SAFE_IN_SINGLE
    return low < problem.total / problem.X.shape[0] < high


def by_svd(problem: Eigenproblem) -> Spectrum:
    """Solve by the singular value decomposition."""
    values, V, rest = svd.svd(problem.X, problem.k)
    return _certified("svd", problem, values, V, certificates.left_out_of_values(rest))


def _certified(
    solver: str,
    problem: Eigenproblem,
    values: Array,
    V: Array,
    left_out: certificates.LeftOut,
    *,
    floor: Array | None = None,
    result: Result | None = None,
) -> Spectrum:
    """Return a spectrum with what one pass over the data measures of it."""
    if floor is None:
        floor = certificates.floor_of_data(problem.X, values)
    certificate = certificates.certify(V, values, problem.measure(V), left_out, tol=problem.tol, floor=floor)
    return Spectrum(solver, values, V, problem.total, certificate, result)


def by_krylov(problem: Eigenproblem, start: Array | None = None) -> Spectrum:
    """Solve by block Krylov iteration."""
    found = leading.leading(
        leading.of_data(problem.X, problem.total, problem.measure),
        problem.k,
        tol=problem.tol,
        max_iter=problem.max_iter,
        rng=problem.generator(),
        drive=problem.drive,
        start=start,
    )
    return Spectrum("krylov", found.values, found.V, problem.total, found.certificate, found.result)


def by_optimize(problem: Eigenproblem) -> Spectrum:
    """Solve by minimising the reconstruction error, one component after the other."""
    X, k, loss, penalty = problem.X, problem.k, problem.loss, problem.penalty
    squared, plain, rng = isinstance(loss, Squared), isinstance(penalty, Zero), problem.generator()
    apply = partial(statistics.gram_apply, X)
    evaluate = optimize.squared_loss(apply, problem.total) if squared else optimize.any_loss(X, loss)
    if plain:
        starts = rng.standard_normal((k, X.shape[1]))
    else:
        # A penalised objective has many local minima: begin at the plain components.
        undisturbed = replace(problem, drive=run, tol=1e-3, max_iter=100)
        starts = SOLVERS[choose_solver(*X.shape, k, X.rows.pass_seconds)](undisturbed).V.T
    steps = partial(optimize.optimize, evaluate, penalty=penalty, concave=squared, tol=problem.tol, total=problem.total)
    begin, limit = optimize.start(starts), k * problem.max_iter
    result = problem.drive(steps, begin, tol=problem.tol, max_iter=limit, keep=("w", "component"))
    V = optimize.components(result.value, k).T
    values = np.maximum(optimize.captured(apply, V), 0.0)
    if not (squared and plain):
        V = V * signs(V)  # as they are returned: a penalty may tell w from -w
        lengths = certificates.reconstruction_steps(X, V, loss=loss, penalty=penalty, total=problem.total)
        result = measured(result, float(lengths.max()), {"residuals": lengths})
        return Spectrum("optimize", values, V, problem.total, result.certificate, result)
    order = np.argsort(values)[::-1]
    V, values = V[:, order], values[order]
    floor = certificates.floor_of_data(X, values)
    left = problem.total - float(values.sum()) + float(floor.max())
    left_out = certificates.probe(apply, V, values, problem.tol, rng, floor=float(floor[-1]), left=left)
    spectrum = _certified("optimize", problem, values, V, left_out, floor=floor, result=result)
    if result.status and not spectrum.certificate.holds:
        # Close values, whose vectors the descent mixes, or finds in another order.
        spectrum = replace(by_krylov(replace(problem, drive=run), V), solver="optimize", run=result)
    return spectrum


SOLVERS: dict[str, Callable[[Eigenproblem], Spectrum]] = {
    "eigh": by_eigh,
    "svd": by_svd,
    "krylov": by_krylov,
    "optimize": by_optimize,
}
