"""From rows to a spectrum: which solver, in which units, and what it certifies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp import certificates
from princomp.data import Centered, Rows, budget, statistics
from princomp.estimators.spectrum import Spectrum
from princomp.estimators.standardise import standardise
from princomp.losses import Loss, Squared
from princomp.penalties import Penalty, Zero
from princomp.result import Certificate, Result, run
from princomp.solvers import eigh, krylov, optimize, svd

Array = NDArray[Any]

# How often Krylov may look again for what it has missed, and by how many products that is found out.
RETRIES = 10
DOMINANCE_STEPS = 4


def choose_solver(n: int, p: int, k: int) -> str:
    """Return the solver that ``"auto"`` means.

    ===================================  =========  =================================================
    data (n, p), k components            solver     because
    ===================================  =========  =================================================
    n and p at most 500                  svd        exact to the last digit, and costs nothing
    the smaller side at most 1000        eigh       one pass and a small eigenproblem
    k above an eighth of that side       eigh       few vectors are no saving any more
    otherwise                            krylov     a few passes with k / 2 vectors each
    ===================================  =========  =================================================
    """
    if max(n, p) <= 500:
        return "svd"
    side = min(n, p)
    return "eigh" if side <= 1000 or k > side / 8 else "krylov"


@dataclass(frozen=True)
class Problem:
    """Find k leading eigenpairs of X'X."""

    X: Centered
    k: int
    total: float  # trace of X'X
    tol: float
    rng: np.random.Generator
    max_iter: int
    drive: Callable[..., Result]  # `run`, with the user's callback and checkpoint
    loss: Loss
    penalty: Penalty


def decompose(
    rows: Rows,
    k: int,
    solver: str,
    *,
    center: bool,
    scale: bool,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    drive: Callable[..., Result],
    loss: Loss | None = None,
    penalty: Penalty | None = None,
    names: Any = None,
) -> Spectrum:
    """Return k leading eigenpairs of X'X, X centred and scaled as asked, with a certificate."""
    n, p = rows.shape
    in_scatter = solver == "eigh" and n >= p
    if in_scatter:
        budget.require(24.0 * p * p, f"The {p} x {p} matrix X'X", 'Use solver="krylov".')
    found = standardise(rows, center=center, scale=scale, scatter=in_scatter, names=names)
    if found.scatter is not None:
        spectrum = by_eigh_of_scatter(found.scatter, k, found.total, tol)
    else:
        size = found.unit
        loss, penalty = (loss or Squared()).in_units(size), (penalty or Zero()).times(size).times(size)
        problem = Problem(found.X, k, found.total, tol, rng, max_iter, drive, loss, penalty)
        spectrum = SOLVERS[solver](problem) if found.total > 0 else _nothing_varies(solver, problem)
    return replace(spectrum, count=n, freedom=n - 1.0, mean=found.mean, scale=found.scale, unit=found.unit)


def decompose_covariance(S: Array, k: int, n_samples: int | None, *, scale: bool, tol: float) -> Spectrum:
    """Return k leading eigenpairs of a covariance matrix, as of a scatter matrix of n_samples - 1 (or 1) times it."""
    freedom = 1.0 if n_samples is None else n_samples - 1.0
    deviation = None
    if scale:
        deviation = np.sqrt(np.where(np.diag(S) > 0, np.diag(S), 1.0))
        S = S / np.outer(deviation, deviation)
    spectrum = by_eigh_of_scatter(S, k, float(np.trace(S)), tol)
    return replace(
        spectrum,
        values=spectrum.values * freedom,
        total=spectrum.total * freedom,
        count=n_samples or 0,
        freedom=freedom,
        mean=np.zeros(len(S)),
        scale=deviation,
    )


def _nothing_varies(solver: str, problem: Problem) -> Spectrum:
    """Return any orthonormal vectors: they all are principal components of data that do not vary."""
    V = np.eye(problem.X.shape[1], problem.k)
    return Spectrum(solver, np.zeros(problem.k), V, 0.0, Certificate(0.0, problem.tol, "global", True))


def by_eigh_of_scatter(S: Array, k: int, total: float, tol: float) -> Spectrum:
    """Solve by the eigenproblem of a scatter matrix (p, p)."""
    values, V = eigh.leading_eigenpairs(S, k)
    certificate = certificates.spectral(lambda W: S @ W, V, values, tol)
    return Spectrum("eigh", np.maximum(values, 0.0), V, total, certificate)


def by_eigh(problem: Problem) -> Spectrum:
    """Solve by the eigenproblem of the smaller side, X'X (p, p) or XX' (n, n)."""
    n, p = problem.X.shape
    if n >= p:
        return by_eigh_of_scatter(statistics.scatter(problem.X), problem.k, problem.total, problem.tol)
    return _certified("eigh", problem, *eigh.eigh_of_rows(problem.X, problem.k))


def by_svd(problem: Problem) -> Spectrum:
    """Solve by the singular value decomposition."""
    return _certified("svd", problem, *svd.svd(problem.X, problem.k))


def _certified(solver: str, problem: Problem, values: Array, V: Array) -> Spectrum:
    apply = partial(statistics.gram_apply, problem.X)
    certificate = certificates.spectral(apply, V, values, problem.tol)
    return Spectrum(solver, values, V, problem.total, certificate)


def by_krylov(problem: Problem) -> Spectrum:
    """Solve by block Krylov iteration, among columns, or among rows if there are far fewer of them."""
    X, k, total = problem.X, problem.k, problem.total
    n, p = X.shape
    by_rows = p > krylov.WIDE * n
    rough = krylov.may_begin_roughly(n, p, total)
    begin = krylov.start(n if by_rows else p, k, problem.rng, rough=rough, sparse=X.rows.sparse)
    apply = partial(_scatter_apply, X, by_rows=by_rows)
    in_single = partial(_scatter_apply, X.in_single(), by_rows=by_rows) if rough else None
    steps = partial(krylov.krylov, apply, k=k, total=total, rough=in_single)
    for _ in range(RETRIES):
        result = problem.drive(steps, begin, tol=problem.tol, max_iter=problem.max_iter, scope="global")
        values, V = result.value["values"], krylov.vectors(result.value)
        # More equal eigenvalues than vectors in a block: some copies are missed. It shows as something larger left out.
        norm = certificates.deflated_norm(in_single or apply, V, steps=DOMINANCE_STEPS)
        dominant = bool(norm <= values[-1] + float(result.value["residuals"].max()) + krylov.SINGLE * values[0])
        if dominant or not result.status:
            break
        begin = krylov.start_again(V, result.n_iter, problem.rng)
    if by_rows:
        values, V = eigh.svd_of_projection(statistics.apply_transpose(X, V))
    # Some eigenvalue lies within each residual, and rounding adds a little.
    rounding = 50 * np.finfo(float).eps * values[0] + _rounding_of_mean(X)
    error = result.value["residuals"] + rounding
    details = {"error": error, "deflated norm": max(norm, float(result.value["next"]))}
    certificate = replace(
        result.certificate, dominant=dominant, scope="global" if dominant else "local", details=details
    )
    return Spectrum("krylov", np.maximum(values, 0.0), V, total, certificate, result)


def _rounding_of_mean(X: Centered) -> float:
    """Return what eigenvalues gain because the mean is a rounded number: visible from offsets of 1e10 on."""
    if X.mean is None:
        return 0.0
    rounded = np.finfo(float).eps * X.mean * (1.0 if X.factor is None else X.factor)
    return float(X.shape[0] * (rounded @ rounded))


def _scatter_apply(X: Centered, V: Array, *, by_rows: bool) -> Array:
    """Return X'X V, or XX' V."""
    if by_rows:
        product: Array = statistics.apply(X, statistics.apply_transpose(X, V))
        return product
    return statistics.gram_apply(X, V)


def by_optimize(problem: Problem) -> Spectrum:
    """Solve by minimising the reconstruction error, one component after the other."""
    X, k, loss, penalty = problem.X, problem.k, problem.loss, problem.penalty
    squared, plain = isinstance(loss, Squared), isinstance(penalty, Zero)
    apply = partial(statistics.gram_apply, X)
    evaluate = optimize.squared_loss(apply, problem.total) if squared else optimize.any_loss(X, loss)
    if plain:
        starts = problem.rng.standard_normal((k, X.shape[1]))
    else:
        # A penalised objective has many local minima: begin at the plain components.
        undisturbed = replace(problem, drive=run, tol=1e-3, max_iter=100)
        starts = SOLVERS[choose_solver(*X.shape, k)](undisturbed).V.T
    steps = partial(
        optimize.optimize,
        evaluate,
        penalty=penalty,
        concave=squared,
        tol=problem.tol,
        total=problem.total,
    )
    begin, limit = optimize.start(starts), k * problem.max_iter
    result = problem.drive(steps, begin, tol=problem.tol, max_iter=limit, keep=("w", "component"))
    V = optimize.components(result.value, k).T
    values = np.maximum(optimize.captured(apply, V), 0.0)
    certificate = result.certificate
    if squared and plain:
        certificate = certificates.spectral(apply, V, values, problem.tol)
    return Spectrum("optimize", values, V, problem.total, certificate, result)


SOLVERS: dict[str, Callable[[Problem], Spectrum]] = {
    "eigh": by_eigh,
    "svd": by_svd,
    "krylov": by_krylov,
    "optimize": by_optimize,
}
