"""From rows to a model of probabilistic PCA: closed form or EM, how many components, of columns scaled or not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from princomp import certificates
from princomp._typing import Array
from princomp._warn import warn
from princomp.data import Rows, budget, statistics
from princomp.data.signature import require_unchanged
from princomp.data.wrapped import scaled
from princomp.estimators.checks import check_values, column
from princomp.estimators.costs import choose_solver
from princomp.estimators.covariance import Covariance
from princomp.estimators.decompose import decompose, decompose_covariance
from princomp.estimators.probabilistic_maximum import maximum
from princomp.estimators.probabilistic_together import never_together
from princomp.estimators.spectrum import Spectrum, minka_count
from princomp.estimators.standardise import SAFE_TOTAL, as_given, check_scale, safe_unit
from princomp.result import Deadline, History, Result, State, Status
from princomp.solvers import eigh, probabilistic, probabilistic_choice, probabilistic_em, probabilistic_starts
from princomp.solvers.probabilistic_em import LEAST_NOISE, Data, Hidden, Model
from princomp.solvers.signs import signs

CHOICES = ("ard", "bic", "evidence", "held-out")
MOST = 50  # components that a choice tries, unless told otherwise
HELD_OUT = 0.1  # of the cells
SMALLEST = 1e6  # of the smallest number with all digits: the noise of such a variance may still be held
# For each parameter. Of 120 tables of 20 to 400 rows with a third to two thirds of the cells missing, one start ended
# below the best of eight in 8 of 57 with fewer cells, and in 1 of 60 with more.
FEW_CELLS = 20
# Within 0.1 of the best of twenty: one start in 88, five in 95, ten in 96 of 100 tables of 20 to 60 rows.
FEW_CELLS_STARTS = 5
CHOICE_TOL = 1e-5  # is enough to compare numbers of components


@dataclass(frozen=True)
class Asked:
    """How many components a model is to have."""

    k: int  # components asked for, or the most to choose from
    choice: str | None = None
    most: int = MOST  # that a choice may take
    up_to_rank: bool = False  # whether there may be fewer


@dataclass(frozen=True)
class ModelProblem:
    """What to fit."""

    rows: Rows
    weight: Array | None
    asked: Asked
    method: str  # "auto", "closed-form" or "em"
    scale: bool  # whether to divide columns by their standard deviations
    tol: float
    max_iter: int
    rng: np.random.Generator
    n_init: int | None  # starts; None: chosen by the number of cells
    drive: Callable[..., Result]  # `run`, with the user's callback and checkpoint
    deadline: Deadline  # of the whole fit
    names: Any = None


class ModelFound(NamedTuple):
    """A fitted model, in the basis of its components."""

    method: str
    values: Array  # (k,) variances along the components, descending
    V: Array  # (p, k)
    noise: float
    mean: Array  # (p,)
    total: float  # variance of the data
    noiseless: bool  # whether the noise is not that of the data, but the least there may be
    chosen: int  # components, before at least one was kept
    log_likelihood: float | None
    n_samples: int | None
    result: Result
    apart: str | None = None  # a sentence about columns that no row has both of
    most: int | None = None  # components that a choice could judge, missing cells being so many
    scale: Array | None = None  # (p,) what columns are divided by; mean and likelihood are those of X all the same


def fit(problem: ModelProblem) -> ModelFound:
    """Return the model of largest likelihood."""
    return _fit_scaled(problem) if problem.scale else _fit(problem)


def _fit(problem: ModelProblem) -> ModelFound:
    missing, asked, method = statistics.has_nan(problem.rows), problem.asked, problem.method
    if missing and method == "closed-form":
        raise ValueError('X has missing cells (NaN), for which there is no closed form: use method="em" or "auto".')
    if missing and asked.choice == "evidence":
        raise ValueError('n_components="evidence" needs complete data: use "ard", "bic" or "held-out".')
    if missing or method == "em" or asked.choice == "held-out":
        data = observed(problem.rows, problem.weight, problem.names)
        most = asked.most if asked.choice is None else probabilistic_choice.most_to_judge(data, asked.most)
        bound = most if most < asked.most else None
        k, near = _chosen_by_em(problem, data, most)
        if asked.choice is not None and problem.deadline.over:
            warn(
                f"n_components={asked.choice!r} was ended by time_limit={problem.deadline.seconds:g} seconds: {k} is "
                "the best number of those that it came to. Raise time_limit, or lower max_components."
            )
        if missing and asked.up_to_rank:
            # A row that misses cells has a dimension of its own, with them at the mean; and one is left for the noise.
            k = min(k, probabilistic_em.filled_rank(data, problem.rng) - 1)
        problem = replace(problem, asked=Asked(max(k, 1)))
        if missing or method == "em":
            found = _by_em(problem, data, near if k == problem.asked.k else None)
            check_unchanged(data, problem.names)
            return found._replace(chosen=k, most=bound)
    return _closed_form(problem)


def fit_covariance(covariance: Covariance, asked: Asked, tol: float, *, scale: bool) -> ModelFound:
    """Return the model of largest likelihood for a covariance matrix (divisor n), or for its correlations."""
    if scale:
        correlations, deviation = covariance.scaled()
        found = fit_covariance(correlations, asked, tol, scale=False)
        logarithms = float((covariance.n_samples or 1) * np.log(deviation).sum())
        return _as_of_data(found, np.zeros_like(deviation), deviation, logarithms)
    k = asked.k if asked.choice is None else len(covariance.matrix)
    spectrum = decompose_covariance(covariance, k, scale=False, tol=tol)
    return _of_spectrum(spectrum, covariance.n_samples, float(covariance.n_samples or 1), asked)


# Columns divided by their standard deviations, with likelihoods of the columns as they are


def _fit_scaled(problem: ModelProblem) -> ModelFound:
    """Return the model of the divided rows.

    The scale is the standard deviation (divisor n) of the observed cells of a column, 1 if they are all equal.
    """
    data = observed(problem.rows, problem.weight, problem.names)
    moments, unit = data.moments, np.full(problem.rows.shape[1], data.unit)
    if not moments.squares.all():  # of constant columns, and of those whose squares vanish: each in units of its own
        unit = safe_unit(statistics.column_faults(problem.rows)[2])
        moments = statistics.observed_moments(problem.rows, problem.weight, unit)
    counts, mean = moments.counts, moments.mean
    deviation = np.sqrt(np.maximum(moments.squares, 0.0) / counts) / unit
    # What is left of a constant column is rounding of its mean.
    scale = np.where(deviation > 8 * np.finfo(np.float64).eps * np.abs(mean), deviation, 1.0)
    check_scale(scale, problem.names)
    shift = np.zeros_like(mean) if problem.rows.sparse else mean
    found = _fit(replace(problem, rows=scaled(problem.rows, shift, scale)))
    check_unchanged(data, problem.names)
    return _as_of_data(found, shift, scale, float(counts @ np.log(scale)))


def _as_of_data(found: ModelFound, shift: Array, scale: Array, logarithms: float) -> ModelFound:
    """Return the model with the mean and the density of X, not of the divided X."""
    result, mean = of_data(found.result, -logarithms), shift + found.mean * scale
    result = replace(result, value={**result.value, "mean": mean})
    likelihood = None if found.log_likelihood is None else found.log_likelihood - logarithms
    return found._replace(mean=mean, log_likelihood=likelihood, result=result, scale=scale)


# Closed form


def _closed_form(problem: ModelProblem) -> ModelFound:
    rows, asked = problem.rows, problem.asked
    k = asked.k if asked.choice is None else min(rows.shape)
    if problem.weight is None:
        solver = choose_solver(*rows.shape, k, rows.pass_seconds)
        if asked.choice is not None and solver == "krylov":
            solver = "eigh"
        spectrum = decompose(
            rows,
            k,
            solver,
            center=True,
            scale=False,
            tol=problem.tol,
            max_iter=problem.max_iter,
            generator=lambda: problem.rng,
            drive=problem.drive,
            names=problem.names,
        )
        spectrum, count = replace(spectrum, freedom=float(rows.shape[0])), float(rows.shape[0])
    else:
        spectrum, count = _weighted(problem, k)
    return _of_spectrum(spectrum, rows.shape[0], count, asked)


def _weighted(problem: ModelProblem, k: int) -> tuple[Spectrum, float]:
    """Return the spectrum of rows with weights, and the sum of these."""
    data = observed(problem.rows, problem.weight, problem.names)
    X, weight, moments = data.around(), np.asarray(data.weight), data.moments
    values, V = eigh.weighted_eigenpairs(X, weight, k)
    apply = partial(eigh.weighted_gram_apply, X, weight)
    check_unchanged(data, problem.names)
    spectrum = Spectrum(
        "eigh",
        np.maximum(values, 0.0),
        V,
        float(moments.squares.sum()),
        certificates.spectral(apply, V, values, problem.tol),
        count=data.rows_with_weight,
        freedom=moments.total,
        mean=moments.mean,
        unit=data.unit,
    )
    return spectrum, moments.total


def _of_spectrum(spectrum: Spectrum, n_samples: int | None, count: float, asked: Asked) -> ModelFound:
    total = float(as_given(spectrum.total / spectrum.freedom, spectrum.unit))
    check_variance(total, spectrum.total, np.dtype(np.float64))
    if asked.choice is not None:
        # Weights that sum to less than one for each row are relative.
        chosen = _chosen_by_spectrum(spectrum, total, max(count, float(spectrum.count)), asked.choice, asked.most)
    else:
        chosen = min(asked.k, max(spectrum.rank, 1)) if asked.up_to_rank else asked.k
    kept = spectrum.leading(max(chosen, 1))
    values, noise, log_likelihood = _largest_likelihood(kept, total, count)
    value = {
        "W": probabilistic.weights(values, kept.V, noise),
        "mean": spectrum.mean,
        "noise": np.array(noise),
        "total": np.array(count),
    }
    history = History()
    history.record(State(value, log_likelihood, kept.certificate.residual, 1), 0.0, ())
    status = Status("exact", "Solved exactly, up to rounding.") if kept.run is None else kept.run.status
    n_iter = 1 if kept.run is None else kept.run.n_iter
    result = Result(value, log_likelihood, kept.certificate, status, n_iter, history)
    return ModelFound(
        "closed-form",
        values,
        kept.V,
        noise,
        spectrum.mean,
        total,
        noise > kept.noise_variance,
        chosen,
        None if n_samples is None else log_likelihood,
        n_samples,
        result,
    )


def _largest_likelihood(kept: Spectrum, total: float, count: float) -> tuple[Array, float, float]:
    """Return variances along the components, noise, and the log-likelihood, kept finite where there is no noise."""
    p = len(kept.V)
    noise = max(kept.noise_variance, LEAST_NOISE * total / p, np.finfo(np.float64).tiny)
    values = np.maximum(kept.variances, noise)
    return values, noise, probabilistic.log_likelihood(values, noise, count, p, kept.variances, kept.left)


def _chosen_by_spectrum(spectrum: Spectrum, total: float, count: float, choice: str, most: int) -> int:
    """Return how many components to keep, from all eigenvalues."""
    p = len(spectrum.V)
    if choice == "evidence":
        if spectrum.count < p:
            raise ValueError(
                f'n_components="evidence" needs at least as many samples as features, got {spectrum.count} and {p}: '
                'use "ard", "bic" or "held-out".'
            )
        return min(minka_count(spectrum), most)
    if choice == "ard":
        return probabilistic_choice.relevant_count(spectrum.variances[:most], total, count, p)

    def criterion(k: int) -> float:
        leading = spectrum.leading(k)
        _, noise, best = _largest_likelihood(leading, total, count)
        if noise > leading.noise_variance:
            return probabilistic_choice.noiseless(k, spectrum.count or np.inf, p)
        return probabilistic_choice.bic(best, k, p, count)

    return probabilistic_choice.climb(criterion, most)[0]


# EM


def observed(rows: Rows, weight: Array | None, names: Any) -> Data:
    """Return rows with their moments, in units in which squares are safe; complain about what cannot be fitted."""
    unit = 1.0
    moments = statistics.observed_moments(rows, weight)
    if not SAFE_TOTAL[0] < moments.variance < SAFE_TOTAL[1]:
        unit = float(safe_unit(check_values(rows, names, missing=True).max()))
        moments = statistics.observed_moments(rows, weight, unit)
    empty = np.flatnonzero(moments.counts <= 0)
    if len(empty):
        where = "" if weight is None or weight.all() else " in rows with a weight"
        if len(empty) == len(moments.counts):
            raise ValueError(f"X has no observed cell{where}: all are NaN.")
        more = f" (and {len(empty) - 1} more)" if len(empty) > 1 else ""
        raise ValueError(f"Column {column(names, int(empty[0]))}{more} has no observed cell{where}: leave it out.")
    return Data(rows, moments, unit, weight)


def check_unchanged(data: Data, names: Any) -> None:
    """Raise ValueError if the cells, read once more, are not what they were; those in memory are not read again."""
    if data.rows.changeable:
        require_unchanged(data.moments.signature, statistics.observed_sums(data.around()), names)


def total_variance(data: Data) -> float:
    """Return the variance of X, found to be one that float64 holds."""
    in_units = data.moments.variance * data.rows.shape[1]
    total = float(as_given(in_units, data.unit))
    check_variance(total, in_units, np.dtype(np.float64))
    return total


def check_variance(total: float, in_units: float, dtype: Any) -> None:
    """Raise ValueError if the variance of X is out of the range of a dtype; ``in_units`` tells whether there is any."""
    kind = np.finfo(dtype)
    other = ", or give it as float64" if dtype != np.float64 else ""
    if not total <= float(kind.max):
        raise ValueError(f"The variance of X is more than {dtype} holds. Divide X by a constant first{other}.")
    if in_units > 0 and total < SMALLEST * float(kind.tiny):
        raise ValueError(f"The variance of X is too small for {dtype}. Multiply X by a constant first{other}.")


def _chosen_by_em(problem: ModelProblem, data: Data, most: int) -> tuple[int, Model | None]:
    """Return how many components to fit, and a model of so many that is near the best, if one is known."""
    limits: dict[str, Any] = {"tol": max(problem.tol, CHOICE_TOL), "max_iter": problem.max_iter}
    limits["deadline"] = problem.deadline
    choice = problem.asked.choice
    if choice == "ard":
        return int(probabilistic_choice.relevant(data, most, problem.rng, **limits).W.shape[1]), None
    if choice == "bic":
        return probabilistic_choice.most_informative(data, most, problem.rng, **limits)
    if choice == "held-out":
        part = replace(data, hidden=Hidden(int(problem.rng.integers(2**31)), HELD_OUT))
        score = partial(probabilistic_choice.held_out, part, rng=problem.rng, **limits)
        return probabilistic_choice.climb(score, most, problem.deadline)[0], None
    return problem.asked.k, None


def _starts(problem: ModelProblem, data: Data) -> int:
    """Return how many starts to make: the number asked for, or a few where cells are too few for one to be enough."""
    if problem.n_init is not None:
        return problem.n_init
    p, k = data.rows.shape[1], problem.asked.k
    few = data.moments.cells < FEW_CELLS * (p * k - k * (k - 1) // 2 + p + 1)
    return FEW_CELLS_STARTS if few and not data.complete else 1


def of_data(result: Result, logarithms: float) -> Result:
    """Return the result with the log-likelihoods of X, which are those of the X that was fitted plus ``logarithms``."""
    details = dict(result.certificate.details)
    if "likelihoods" in details:
        details["likelihoods"] = details["likelihoods"] + logarithms
    return replace(
        result,
        objective=result.objective + logarithms,
        certificate=replace(result.certificate, details=details),
        history=replace(result.history, objective=[value + logarithms for value in result.history.objective]),
    )


def _by_em(problem: ModelProblem, data: Data, near: Model | None) -> ModelFound:
    p, k = problem.rows.shape[1], problem.asked.k
    # Sums for each pair of components and each feature, in a few copies.
    budget.require(16.0 * p * k * (k + 1), f"EM with {p} features and {k} components", "Take fewer components.")
    begins = probabilistic_starts.models(data, k, _starts(problem, data), problem.rng)
    if near is not None:
        begins[0] = near
    total = total_variance(data)
    # Where components pass through all cells of any data, a model without noise says nothing.
    bounded = len(begins) == 1 or probabilistic_choice.freedom(data.rows_by_cells(), k) > 0
    result = maximum(data, begins, problem.drive, tol=problem.tol, max_iter=problem.max_iter, bounded=bounded)
    model, unit = probabilistic_em.model_of(result.value), data.unit
    V, sizes, _ = np.linalg.svd(model.W / unit, full_matrices=False)
    noise = model.noise / unit / unit
    mean = data.moments.mean + model.shift / unit
    V = V * signs(V)
    result = of_data(result, data.moments.cells * np.log(unit))
    value = {"W": V * sizes, "mean": mean, "noise": np.array(noise), "total": np.array(data.moments.total)}
    return ModelFound(
        "em",
        sizes**2 + noise,
        V,
        noise,
        mean,
        total,
        probabilistic_em.at_floor(model.noise, data.floor),
        k,
        result.objective,
        problem.rows.shape[0],
        replace(result, value=value),
        None if data.complete else never_together(data, problem.names),
    )
