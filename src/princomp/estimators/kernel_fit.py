"""How a kernel PCA is found: exactly, or as PCA of features, and what the estimator keeps of either."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates import in_units
from princomp.data import Centered, Rows, budget, statistics
from princomp.data.rows import itself
from princomp.data.running import Running
from princomp.data.signature import require_unchanged
from princomp.data.statistics import Moments
from princomp.data.wrapped import mapped
from princomp.estimators.checks import check_values
from princomp.estimators.decompose import by_eigh_of_scatter, decompose
from princomp.estimators.kernel_columns import decompose_columns
from princomp.estimators.spectrum import Spectrum
from princomp.kernels import Kernel, resolve
from princomp.kernels.base import dense
from princomp.result import Certificate, Result, Status
from princomp.solvers import kernel as exact
from princomp.solvers.feature_maps import Columns, Fourier, Nystroem, fourier, intervals, nystroem
from princomp.solvers.kernel import MANY
from princomp.solvers.kernel_matrix import KEEP_SHARE, GivenMatrix, KernelMatrix, kept_precisions, require_whole
from princomp.solvers.landmarks import Fixed, PivotedCholesky, Selector, Uniform
from princomp.solvers.signs import signs

APPROXIMATIONS = ("nystroem", "rpcholesky", "fourier")
# Landmarks, unless told otherwise: at least, and for each component. Of 10000 rows of 20, ten components fall short of
# the exact ones by 0.33 % of their variance with 200 landmarks, 0.03 % with 500 and 0.01 % with 720, in 0.1, 0.17 and
# 0.23 s.
LEAST_RANK, RANK = 720, 10
RANK_BYTES = 48.0  # for each pair of landmarks, or features: matrices of that size
# Landmarks are chosen among these many rows at the most, evenly picked, so that the choice takes bounded memory.
SAMPLE_ROWS, SAMPLE_BYTES = 30_000, 2**28
# Rows up to which "auto" is exact, for few components, and for all: ten components of 20,000 and of 40,000 rows of 20
# take 9 and 37 s on one core, landmarks 1 to 2 s; time for all grows with the cube, 0.8 s of 1,500 rows.
EXACT_ROWS, ALL_ROWS = 20_000, 5_000
# Of the cells of rows that stay sparse: products of sparse rows take as long as those of full ones from 0.1 on.
SPARSE = 0.1
ASYMMETRY = 1e-8  # of the largest entry: more is no rounding


@dataclass(frozen=True)
class Question:
    """What is asked of a fit."""

    k: int | None
    kernel: Any
    kernel_options: Mapping[str, Any]
    approximation: str | None
    rank: int | None
    landmarks: Any
    tol: float
    max_iter: int
    generator: Callable[[], np.random.Generator]
    drive: Callable[..., Result]
    names: Any


@dataclass(frozen=True)
class Found:
    """What a fit leaves: scores of x are F(x) coefficients - offset, F(x) being kernel values or features."""

    approximation: str
    kernel: Kernel | None
    values: Array  # (k,)
    ratio: Array  # (k,)
    coefficients: Array  # (w, k)
    offset: Array  # (k,)
    mean: Array  # (w,), F(x) times this is the mean of k(x, x_i), or, of a kernel not centred, the trivial score
    mean_square: float  # of all k(x_i, x_j)
    result: Result
    basis: Array | None = None  # (m, p)
    about: Array | None = None  # (p,)
    value_intervals: Array | None = None  # (k, 2)
    ratio_intervals: Array | None = None  # (k, 2)
    negative: float | None = None
    scatter: Array | None = None  # (w, w), of Fourier features, whose mean is ``mean``: rows may be added to it
    looked_at: Moments | None = None  # of the rows, when they were first read


def find(rows: Rows, asked: Question) -> Found:
    """Return the components of rows."""
    if isinstance(asked.kernel, str) and asked.kernel == "precomputed":
        return _of_matrix(rows, asked)
    rows = statistics.here(rows)
    about, moments = first_look(rows, asked.names)
    kernel = resolve(asked.kernel, rows, **asked.kernel_options)
    approximation = asked.approximation
    if approximation == "auto":
        approximation = choose_approximation(rows, kernel, asked.k)
    if approximation is None:
        found = _exact(rows, kernel, about, asked)
    else:
        found = _by_features(rows, kernel, about, approximation, asked)
    return replace(found, looked_at=moments)


def choose_approximation(rows: Rows, kernel: Kernel, k: int | None) -> str | None:
    """Return the approximation that ``"auto"`` means, for k components, or all.

    =====================================================  ============  ===========================================
    data (n, p)                                            means         because
    =====================================================  ============  ===========================================
    n at most 20,000, or 5,000 for all components or more  None          some seconds, where the matrix fits into
    than n / 8                                                           0.4 of the memory left
    a kernel not positive semidefinite, or not of two      None          landmarks would prove nothing, or have no
    rows alone                                                           meaning (refused if memory is too small)
    otherwise, and data on workers                         "rpcholesky"  about a second, where the exact way takes a
                                                                         minute; intervals tell how close it comes
    =====================================================  ============  ===========================================
    """
    n = rows.shape[0]
    few = k is not None and k <= MANY * n
    fits = rows.local and n <= (EXACT_ROWS if few else ALL_ROWS) and bool(kept_precisions(n))
    return None if fits or not kernel.psd or not kernel.centred else "rpcholesky"


def default_rank(k: int) -> int:
    """Return how many landmarks, or features, there are for k components unless told otherwise: as memory allows."""
    room = int(np.sqrt(KEEP_SHARE * budget.available_bytes() / RANK_BYTES))
    return max(min(LEAST_RANK, room), RANK * k)


def first_look(rows: Rows, names: Any) -> tuple[Array | None, Moments]:
    """Return the mean, about which rows are taken (None if they are sparse), and moments; complain about no numbers."""
    found = statistics.moments(rows)
    if not np.isfinite(found.total):
        check_values(rows, names)
    return None if rows.sparse else found.mean, found


def last_look(rows: Rows, first: Moments | None, names: Any) -> None:
    """Raise ValueError if rows that could change are not those of the first look any more."""
    if first is not None and rows.changeable:
        require_unchanged(first.signature, statistics.weighted_sums(first.centered(rows)), names)


def _exact(rows: Rows, kernel: Kernel, about: Array | None, asked: Question) -> Found:
    """Solve the eigenproblem of the kernel matrix itself."""
    if exact.takes_whole(rows.shape[0], asked.k, psd=kernel.psd):
        require_whole(rows.shape[0], _instead(kernel))
    X = _training(rows)
    K = KernelMatrix(kernel.on(X), X, about)
    return replace(_of_spectrum(K, asked), kernel=kernel, basis=dense(X), about=about)


def _training(rows: Rows) -> Any:
    """Return all rows, (n, p), as an array, or as CSR if most of their cells are 0."""
    n, p = rows.shape
    budget.require(16.0 * n * p, f"A copy of the {n} x {p} data", 'Use approximation="rpcholesky".')
    if rows.sparse and rows.local:
        X = rows.map(itself, width=p, dtype=np.float64, sparse=True)
        return X if X.nnz <= SPARSE * n * p else X.toarray()
    return statistics.whole(Centered(rows), 'Use approximation="rpcholesky".')


def _instead(kernel: Kernel) -> str:
    """Say what to do where the kernel matrix is larger than memory."""
    if kernel.asks_training:
        return "Use fewer rows."
    if not kernel.psd:
        return 'Use approximation="nystroem", or fewer rows.'
    return 'Use approximation="rpcholesky", fewer components, or fewer rows.'


def _of_matrix(rows: Rows, asked: Question) -> Found:
    """Solve the eigenproblem of a matrix that is given."""
    n, p = rows.shape
    if n != p:
        raise ValueError(f'kernel="precomputed" needs a square matrix, k of each row with each, got {n} x {p}.')
    if asked.approximation in APPROXIMATIONS:
        raise ValueError('kernel="precomputed" is solved exactly: use approximation=None.')
    check_values(rows, asked.names)
    K = rows.gather(_dense, width=p, dtype=np.float64)
    size = np.abs(K).max()
    if np.abs(K - K.T).max() > ASYMMETRY * size:
        raise ValueError('kernel="precomputed" needs a symmetric matrix. If only rounding differs, pass (K + K.T) / 2.')
    unit = 4.0 ** (np.frexp(size)[1] // 2)  # in which no square over- or underflows
    return _in_units(_of_spectrum(GivenMatrix((K / unit + K.T / unit) / 2), asked), unit)


def _dense(block: Any, rows: slice) -> Array:
    return as_given(block)


def _in_units(found: Found, unit: float) -> Found:
    """Return what a fit of K leaves, given that of K / unit."""
    value = {**found.result.value, "values": found.values * unit}
    certificate = in_units(found.result.certificate, 1.0 / unit)
    return replace(
        found,
        values=value["values"],
        coefficients=found.coefficients / np.sqrt(unit),
        offset=found.offset * np.sqrt(unit),
        mean_square=found.mean_square * unit,
        result=replace(found.result, value=value, objective=found.result.objective * unit, certificate=certificate),
    )


def _of_spectrum(K: KernelMatrix, asked: Question) -> Found:
    """Return what the estimator keeps of an exact solution."""
    with np.errstate(over="ignore", invalid="ignore"):
        _check_finite(K.taken_out if K.psd else float(np.abs(K.whole()).sum()), K.trace)
    how: dict[str, Any] = {"tol": asked.tol, "max_iter": asked.max_iter, "drive": asked.drive}
    found = exact.solve(K, asked.k, rng=asked.generator(), **how)
    V = found.V * signs(found.V)
    root = np.sqrt(found.values)
    coefficients = np.divide(V, root, out=np.zeros_like(V), where=root > 0)
    result = replace(found.result, value={**found.result.value, "V": V})
    # Where some are negative, positive eigenvalues are all that components can have.
    total = found.total if not found.negative else found.positive
    return Found(
        approximation="exact",
        kernel=None,
        values=found.values,
        ratio=_share(found.values, total),
        coefficients=coefficients,
        offset=K.means @ coefficients if K.centred else np.zeros(len(root)),
        mean=np.full(K.n, 1.0 / K.n) if K.centred else K.trivial,
        mean_square=float(K.means.mean()) if K.centred else 0.0,
        result=result,
        negative=found.negative,
    )


def _by_features(rows: Rows, kernel: Kernel, about: Array | None, approximation: str, asked: Question) -> Found:
    """Solve as PCA of features, which a pass over the rows makes and forgets."""
    if kernel.asks_training:
        raise ValueError(
            f'approximation="{approximation}" is for kernels of two rows alone. Use approximation=None with '
            f"{type(kernel).__name__}."
        )
    n = rows.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        trace = float(rows.reduce(_own, kernel, about))
    _check_finite(trace)
    rank = min(asked.rank or default_rank(asked.k or 0), n)
    made_of, basis = _features(rows, kernel, about, approximation, rank, asked)
    if isinstance(made_of, Fourier):
        return of_moments(made_of, moments_of(made_of, rows), kernel, asked)
    features, found, error = _decomposed(rows, made_of, asked)
    return of_features(features, found, kernel, approximation, k=asked.k, trace=trace, error=error, basis=basis)


def moments_of(features: Fourier, rows: Rows, before: Running | None = None) -> Running:
    """Return count, mean and scatter matrix of the features of rows, and of those before them."""
    w = features.width
    budget.require(24.0 * w * w, f"The {w} x {w} scatter matrix of the features", "Use a smaller rank.")
    return (before or Running.nothing(w)).and_of(mapped(rows, features, width=w))


def of_moments(features: Fourier, moments: Running, kernel: Kernel, asked: Question) -> Found:
    """Return the components of Fourier features, of which these moments are known."""
    w, n = features.width, moments.count
    k = min(asked.k or w, w, n)
    if moments.total > 0:
        found = by_eigh_of_scatter(moments.scatter, k, moments.total, asked.tol)
    else:
        found = Spectrum("eigh", np.zeros(k), np.eye(w, k), 0.0, Certificate(0.0, asked.tol, "global", True))
    found = replace(found, count=n, freedom=n - 1.0, centred=True, mean=moments.mean)
    answer = of_features(features, found, kernel, "fourier", k=asked.k, trace=float(n))
    return replace(answer, scatter=moments.scatter)


def of_features(
    features: Nystroem | Fourier,
    found: Spectrum,
    kernel: Kernel,
    approximation: str,
    *,
    k: int | None,
    trace: float,
    error: float = 0.0,
    basis: Array | None = None,
) -> Found:
    """Return what the estimator keeps of a PCA of features; ``trace`` is tr(K), ``basis`` are landmarks."""
    total = float(found.total / found.unit / found.unit)
    root = features.root if isinstance(features, Nystroem) else np.eye(features.width)
    found = _as_known(found, features.rounding(root @ found.V, trace))
    values = np.where(found.values > found.certificate.details["floor"], found.values, 0.0)
    V = np.where(values > 0, found.V, 0.0)
    sign = signs(root @ V if isinstance(features, Nystroem) else features.along_mean(V, found.mean))
    kept = slice(max(int((values > 0).sum()), 1) if k is None else None)
    V, values = (V * sign)[:, kept], values[kept]
    mean = found.mean
    answer = Found(
        approximation=approximation,
        kernel=kernel,
        values=values,
        ratio=_share(values, total),
        coefficients=root @ V,
        offset=mean @ V,
        mean=root @ mean,
        mean_square=float(mean @ mean),
        result=_result_of_features(found.certificate, V, values, total),
        basis=features.basis if isinstance(features, Fourier) else basis,
        about=features.about if isinstance(features, Fourier) else features.columns.about,
        negative=0.0 if kernel.psd else None,
    )
    answer = _padded(answer, k or 0)
    if isinstance(features, Nystroem):
        left = trace - total - found.count * answer.mean_square
        # Below 0 it is rounding, which may have raised eigenvalues by as much.
        return _with_intervals(answer, total, trace, max(left, 0.0), error + max(-left, 0.0))
    return _approximate(answer, "random features", "how near it comes to that is not known")


def _decomposed(rows: Rows, columns: Columns, asked: Question) -> tuple[Nystroem, Spectrum, float]:
    """Return features, their components, and what rounding leaves unknown of their eigenvalues beyond the usual."""
    k = min(asked.k or columns.width, columns.width, rows.shape[0])
    quick = decompose_columns(rows, columns, k, asked.tol)
    if quick is not None:
        return quick
    features = nystroem(columns)
    how: dict[str, Any] = {"tol": asked.tol, "max_iter": asked.max_iter, "drive": asked.drive}
    made = mapped(rows, features, width=features.width)
    k = min(k, features.width)
    found = decompose(made, k, "eigh", center=True, scale=False, generator=asked.generator, **how)
    return features, found, 0.0


def _features(
    rows: Rows, kernel: Kernel, about: Array | None, approximation: str, rank: int, asked: Question
) -> tuple[Columns | Fourier, Array]:
    """Return the feature map, or columns to make it of, and their landmarks (m, p), or frequencies (m, p)."""
    rng = asked.generator()
    if approximation == "fourier":
        made = fourier(kernel, rows.shape[1], rank, rng, about)
        return made, made.basis
    if approximation == "rpcholesky" and not kernel.psd:
        raise ValueError(
            'approximation="rpcholesky" needs a kernel that is known to be positive semidefinite, which '
            f'{type(kernel).__name__} is not. Use "nystroem" or None.'
        )
    given = None if asked.landmarks is None else np.asarray(asked.landmarks)
    if given is not None and given.ndim == 2:
        shape = len(given) > 0 and given.shape[1] == rows.shape[1]
        if not shape or given.dtype.kind not in "fiu" or not np.isfinite(given).all():
            raise ValueError(f"landmarks must be row numbers, or finite rows of {rows.shape[1]} columns.")
        landmarks = given.astype(np.float64)
    elif given is not None:
        landmarks = statistics.take(Centered(rows), Fixed(given).among(rows.shape[0]))
    else:
        selector: Selector = PivotedCholesky(rank) if approximation == "rpcholesky" else Uniform(rank)
        landmarks = _chosen(rows, kernel, about, rank, selector, rng)
    return Columns.of(kernel, landmarks, about), landmarks


def _chosen(
    rows: Rows, kernel: Kernel, about: Array | None, rank: int, selector: Selector, rng: np.random.Generator
) -> Array:
    """Return landmarks, chosen among evenly picked rows."""
    n, p = rows.shape
    most = min(n, max(rank, min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * p))))
    sample = statistics.take(Centered(rows), np.linspace(0, n - 1, most).astype(int))
    return sample[selector.select(KernelMatrix(kernel, sample, about, keep=False), rng)]


def _own(block: Any, rows: slice, kernel: Kernel, about: Array | None) -> Array:
    return np.asarray(kernel.own(kernel.points(block.astype(np.float64, copy=False), about)).sum())


def _with_intervals(found: Found, total: float, trace: float, left: float, error: float) -> Found:
    """Return the same, with all that is known of the matrix itself from what landmarks leave of its trace.

    ``error`` is what rounding may have made of that trace, and of the eigenvalues.
    """
    ratio = _share(found.values, total + left)
    if found.kernel is None or not found.kernel.psd:
        words = "how near it comes to that, which may have negative eigenvalues, is not known"
        return _approximate(replace(found, ratio=ratio), "landmarks", words)
    hidden = np.where(found.values > 0, 0.0, found.result.certificate.details["floor"])
    _check_finite(total, left, error, *found.values, *hidden)
    known = intervals(found.values, total, trace, left, error, hidden)
    share = left / trace if trace > 0 else 0.0
    words = f"it leaves {share:.1e} of the trace of that out, whose eigenvalues are at most {left:.1e} larger"
    return replace(
        _approximate(found, "landmarks", words),
        ratio=ratio,
        value_intervals=np.column_stack([known.lower, known.upper]),
        ratio_intervals=np.column_stack([known.ratio_lower, known.ratio_upper]),
    )


def _as_known(found: Spectrum, error: Array) -> Spectrum:
    """Return eigenvalues, and what is known of them, in the units of the features.

    ``error`` (k,) is the length of what rounding changes of the scores, beside that of their eigenproblem.
    """
    values = found.values / found.unit / found.unit
    certificate = in_units(found.certificate, found.unit, found.unit)
    floor = np.broadcast_to(certificate.details.get("floor", 0.0), values.shape)
    floor = floor + 2 * np.sqrt(np.maximum(values, 0.0)) * error + error**2
    known = np.divide(floor, values, out=np.full(len(values), np.inf), where=values > floor)
    details = {**certificate.details, "floor": floor, "known": known}
    return replace(found, values=values, certificate=replace(certificate, details=details))


def _result_of_features(certificate: Certificate, V: Array, values: Array, total: float) -> Result:
    """Return the result of a PCA of features."""
    details = {
        name: part[: len(values)] if isinstance(part, np.ndarray) else part
        for name, part in certificate.details.items()
    }
    left = max(total - float(values.sum()), 0.0)
    status = Status("exact", "The eigenproblem of the features was solved exactly, up to rounding.")
    return Result({"V": V, "values": values}, left, replace(certificate, details=details), status)


def _approximate(found: Found, by: str, words: str) -> Found:
    """Return the same with a certificate that says of what these are eigenvectors: not of the kernel matrix."""
    certificate = found.result.certificate
    details = {
        **certificate.details,
        "about": f"an approximation by {by}, not of the kernel matrix itself",
        "near": words,
    }
    return replace(found, result=replace(found.result, certificate=replace(certificate, details=details)))


def _padded(found: Found, k: int) -> Found:
    """Return k components, where there are fewer: those without variance have no scores."""
    more = k - len(found.values)
    if more <= 0:
        return found

    def longer(array: Array, by: float = 0.0) -> Array:
        return np.concatenate([array, np.full((more, *array.shape[1:]), by)])

    details = dict(found.result.certificate.details)
    for name, by in {"residuals": 0.0, "floor": None, "error": None, "known": np.inf}.items():
        if name in details:
            details[name] = longer(details[name], float(details["floor"][-1]) if by is None else by)
    result = replace(
        found.result,
        value={"V": longer(found.result.value["V"].T).T, "values": longer(found.result.value["values"])},
        certificate=replace(found.result.certificate, details=details),
    )
    return replace(
        found,
        values=longer(found.values),
        ratio=longer(found.ratio),
        coefficients=longer(found.coefficients.T).T,
        offset=longer(found.offset),
        result=result,
    )


def _check_finite(*sums: float) -> None:
    if not np.isfinite(sums).all():
        raise ValueError(
            "The kernel of these rows is not finite: it overflows, or is NaN, or has no digits so near 0. Divide X by "
            "a constant, or take a smaller gamma, or degree."
        )


def _share(values: Array, total: float) -> Array:
    return values / total if total > 0 else np.zeros_like(values)


# What `transform` sends to the blocks.


@dataclass(frozen=True)
class Features:
    """F(x) of rows, then k(x, x) if asked for; NaN of rows that are not finite, which some kernels would hide."""

    features: Callable[[Any], Array]
    kernel: Kernel | None = None  # of k(x, x)
    about: Array | None = None

    def __call__(self, block: Any) -> Array:
        """Return them, (n, w) or (n, w + 1)."""
        with np.errstate(over="ignore", invalid="ignore"):
            values = self.features(block)
            if self.kernel is not None:
                own = self.kernel.own(self.kernel.points(block.astype(np.float64, copy=False), self.about))
                values = np.column_stack([values, own])
        cells = block if isinstance(block, np.ndarray) else block.data
        if not np.isfinite(cells).all():
            values[~np.isfinite(dense(block)).all(axis=1)] = np.nan
        return values


def as_given(block: Any) -> Array:
    """Return kernel values that are given."""
    return dense(block).astype(np.float64)


def scores(values: Array, rows: slice, coefficients: Array, offset: Array) -> Array:
    """Return scores of rows from their features."""
    return values @ coefficients - offset


def novelty(
    values: Array, rows: slice, coefficients: Array, offset: Array, mean: Array, square: float, centred: bool
) -> Array:
    """Return k(x, x), less what centring takes, less the squares of the scores, from features and k(x, x)."""
    features, own = values[:, :-1], values[:, -1]
    along = features @ mean
    own = own - 2 * along + square if centred else own - along**2
    z = features @ coefficients - offset
    return np.asarray(own - np.einsum("ij,ij->i", z, z))[:, None]
