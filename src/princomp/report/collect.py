"""What a report shows, as plain numbers and words: read from a fitted estimator's public attributes.

An estimator that lacks an attribute gets a page without the part that needs it.
"""

from __future__ import annotations

import datetime
import inspect
import itertools
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._version import __version__
from princomp.report import words
from princomp.report.words import shown

# These bound the size of the page, whatever the size of the data.
VARIANCES = 100  # components in the scree chart and in its table
COMPONENTS = 10  # to choose from for scores and loadings
POINTS = 20_000  # drawn one by one; more are counted in cells
CELLS = 80  # each way
BARS = 15  # features shown for one component
FEATURES = 60  # in the heat map
CATEGORIES = 12  # with a colour of their own
LONGEST_SAMPLE = 40  # characters of a sample's name

Array = NDArray[Any]


@dataclass(frozen=True)
class Certificate:
    """Whether the answer is certified, and what that means."""

    holds: bool
    verdict: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Variance:
    """Variances of the first components, and their share of the total."""

    variance: Array  # (k,)
    ratio: Array  # (k,)
    cumulative: Array  # (k,)
    n_components: int  # in all; k of them are shown


@dataclass(frozen=True)
class Labels:
    """What points are coloured by: numbers, or codes of categories."""

    name: str
    values: Array  # (n,) numbers, NaN = missing; or codes
    categories: tuple[str, ...] | None = None
    n_coloured: int = 0  # the first categories; what follows ("other", "missing") is grey


@dataclass(frozen=True)
class Points:
    """Scores drawn one by one."""

    axes: tuple[str, ...]
    columns: Array  # (axes, n)
    names: tuple[str, ...] | None
    labels: Labels | None


@dataclass(frozen=True)
class Density:
    """Scores counted in cells, for each pair of axes."""

    axes: tuple[str, ...]
    low: Array  # (axes,)
    high: Array  # (axes,)
    counts: Array  # (pairs, CELLS, CELLS), in the order of itertools.combinations; second axis = first of the pair
    n_samples: int
    has_labels: bool


@dataclass(frozen=True)
class Loadings:
    """Weights of the features that matter most, in the order of the data's columns."""

    features: tuple[str, ...]
    weights: Array  # (features, components)
    in_heat_map: Array  # positions in ``features``
    n_features: int


@dataclass(frozen=True)
class Parameter:
    """A parameter of the estimator."""

    name: str
    value: str
    changed: bool  # from its default


@dataclass(frozen=True)
class Content:
    """All that a report shows."""

    title: str
    method: str
    source: str | None
    summary: str
    notes: tuple[str, ...]
    tiles: tuple[tuple[str, str], ...]  # (what, how much)
    certificate: Certificate | None
    variance: Variance | None
    scores: Points | Density | None
    loadings: Loadings | None
    components: tuple[str, ...]  # names of those to choose from
    computation: tuple[str, ...]  # sentences
    parameters: tuple[Parameter, ...]
    versions: tuple[tuple[str, str], ...]
    written: str


def collect(
    estimator: Any,
    X: Any,
    *,
    title: str | None = None,
    labels: Any = None,
    label_name: str | None = None,
    sample_names: Iterable[Any] | None = None,
    scores: Any = None,
    notes: Sequence[str] = (),
    source: Any = None,
) -> Content:
    r"""Return what a report on the estimator and X shows; parameters as in `princomp.report.write`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA
    >>> from princomp.report.collect import collect
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5, 2, 1]
    >>> collect(PCA().fit(X), X).summary
    '100 samples of 3 features. 1 component holds 86\xa0% of the variance, 2 hold 97\xa0%.'
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    scores = np.asarray(estimator.transform(X) if scores is None else scores)
    if scores.ndim != 2:
        raise ValueError(f"Scores must be a table, (samples, components), got shape {scores.shape}.")
    n = len(scores)
    method = type(estimator).__name__
    n_features = getattr(estimator, "n_features_in_", None)
    variance = _variance(estimator)
    named = _component_names(scores.shape[1], variance)
    ratio = getattr(estimator, "explained_variance_ratio_", None)
    return Content(
        title=shown(title if title is not None else _title(method, source), 200),
        method=method,
        source=None if source is None else shown(source, 300),
        summary=words.summary(n, n_features, ratio),
        notes=(*(shown(note, 500) for note in notes), *_own_notes(estimator, n)),
        tiles=_tiles(n, n_features, scores.shape[1], ratio),
        certificate=_certificate(estimator),
        variance=variance,
        scores=_scores(scores, named, sample_names, labels, label_name),
        loadings=_loadings(estimator),
        components=named,
        computation=_computation(estimator),
        parameters=_parameters(estimator),
        versions=_versions(),
        written=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
    )


# Words


def _title(method: str, source: Any) -> str:
    return f"{method} report" if source is None else f"{method} of {PurePath(str(source)).name or source}"


def _own_notes(estimator: Any, n: int) -> list[str]:
    """Say what the reader would otherwise take for granted."""
    notes = []
    fitted = getattr(estimator, "n_samples_", None)
    if fitted is not None and fitted != n:
        notes.append(f"The components were found on {words.count(fitted, 'sample')}, not on those shown here.")
    k, rank = getattr(estimator, "n_components_", None), getattr(estimator, "rank_", None)
    if (shares := getattr(estimator, "shares_", None)) is not None:
        notes.append(words.clusters(shares.tolist(), estimator.n_components_))
    if k is not None and rank is not None and rank < k:
        what = f"Component {k} is" if rank == k - 1 else f"Components {rank + 1} to {k} are"
        notes.append(f"The data have rank {rank}: {what} rounding, and arbitrary.")
    return notes


def _tiles(n: int, p: int | None, k: int, ratio: Array | None) -> tuple[tuple[str, str], ...]:
    tiles = [("samples", words.count(n)), ("components", words.count(k))]
    if p is not None:
        tiles.insert(1, ("features", words.count(p)))
    if ratio is not None and len(ratio):
        tiles.append(("of the variance", words.percent(float(np.sum(ratio, dtype=np.float64)))))
    return tuple(tiles)


def _certificate(estimator: Any) -> Certificate | None:
    found = getattr(estimator, "certificate_", None)
    if found is None:
        return None
    return Certificate(found.holds, words.verdict(found), tuple(shown(text, 1000) for text in words.assurance(found)))


def _computation(estimator: Any) -> tuple[str, ...]:
    """Return sentences on how the answer was found."""
    sentences = []
    steps = getattr(estimator, "n_iter_", None)
    for what in ("solver", "method"):
        if (name := getattr(estimator, f"{what}_", None)) is not None:
            taken = f", {words.count(int(steps), 'step')}" if isinstance(steps, Integral) else ""
            sentences.append(f"{what.capitalize()} “{shown(name)}”{taken}.")
    if (result := getattr(estimator, "result_", None)) is not None:
        sentences.append(shown(result.status, 500))
    fit, noise = getattr(estimator, "log_likelihood_", None), getattr(estimator, "noise_variance_", None)
    if fit is not None and noise is not None and np.ndim(noise) == 0:  # a mixture has one for each cluster
        sentences.append(words.likelihood(float(fit), float(noise)))
    return tuple(sentences)


def _parameters(estimator: Any) -> tuple[Parameter, ...]:
    defaults = inspect.signature(type(estimator)).parameters
    return tuple(
        Parameter(name, shown(repr(value)), name in defaults and repr(value) != repr(defaults[name].default))
        for name, value in estimator.get_params(deep=False).items()
    )


def _versions() -> tuple[tuple[str, str], ...]:
    libraries = (("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn"))
    own = (("princomp", __version__), ("Python", platform.python_version()))
    return (*own, *((name, version(package)) for name, package in libraries))


# Numbers


def _variance(estimator: Any) -> Variance | None:
    variance = getattr(estimator, "explained_variance_", None)
    ratio = getattr(estimator, "explained_variance_ratio_", None)
    if variance is None or ratio is None or not len(ratio):
        return None
    cumulative = np.cumsum(ratio, dtype=np.float64)
    return Variance(variance[:VARIANCES], ratio[:VARIANCES], cumulative[:VARIANCES], len(ratio))


def _component_names(k: int, variance: Variance | None) -> tuple[str, ...]:
    names = [f"Component {j + 1}" for j in range(min(k, COMPONENTS))]
    if variance is not None:
        names = [f"{name} ({words.percent(share)})" for name, share in zip(names, variance.ratio)]
    return tuple(names)


def _loadings(estimator: Any) -> Loadings | None:
    components = getattr(estimator, "components_", None)
    if components is None or not components.size:
        return None
    p = components.shape[-1]
    weights = components.reshape(-1, p)[:COMPONENTS]  # a mixture has some for each cluster, one cluster after the other
    ranked = np.argsort(-np.abs(weights), axis=1, kind="stable")[:, :FEATURES]  # largest weights first
    # In turn the largest weight of each component, the second largest of each ...
    in_turn = list(dict.fromkeys(ranked.T.ravel().tolist()))
    heat_map = sorted(in_turn[:FEATURES])
    kept = sorted({*heat_map, *ranked[:, :BARS].ravel().tolist()})
    names = getattr(estimator, "feature_names_in_", None)
    return Loadings(
        tuple(f"x{j}" if names is None else shown(names[j]) for j in kept),
        weights[:, kept].T,
        np.searchsorted(kept, heat_map),
        p,
    )


def _scores(
    scores: Array, named: tuple[str, ...], sample_names: Iterable[Any] | None, labels: Any, label_name: str | None
) -> Points | Density | None:
    n, k = scores.shape
    names = None if sample_names is None else list(sample_names)
    values = None if labels is None else _as_column(labels)
    for what, given in (("sample_names", names), ("labels", values)):
        if given is not None and len(given) != n:
            raise ValueError(f"{what} must have one entry per sample, {n} in all, got {len(given)}.")
    if not k:
        return None
    columns = scores[:, :COMPONENTS].T.astype(np.float64)
    if k == 1:  # there is nothing to draw it against but the order of the samples
        columns, named = np.stack([np.arange(1.0, n + 1), columns[0]]), ("Sample number", *named)
    if n > POINTS:
        return _density(columns, named, has_labels=labels is not None)
    return Points(
        named,
        columns,
        None if names is None else tuple(shown(name, LONGEST_SAMPLE) for name in names),
        None if values is None else _labels(values, shown(label_name or "label")),
    )


def _density(columns: Array, axes: tuple[str, ...], *, has_labels: bool) -> Density:
    """Count points in cells, for each pair of axes."""
    columns = columns[:, np.isfinite(columns).all(axis=0)]
    low, high = columns.min(axis=1), columns.max(axis=1)
    flat = low == high
    low, high = np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high)
    cells = ((columns - low[:, None]) * (CELLS / (high - low))[:, None]).astype(np.int32)
    np.minimum(cells, CELLS - 1, out=cells)  # the largest value belongs to the last cell
    counts = [
        np.bincount(cells[j] * CELLS + cells[i], minlength=CELLS**2).reshape(CELLS, CELLS)
        for i, j in itertools.combinations(range(len(cells)), 2)
    ]
    return Density(axes, low, high, np.array(counts), columns.shape[1], has_labels)


# Labels


def _as_column(labels: Any) -> Array:
    """Return labels as an array; a list as objects, because one long string would make all entries as long."""
    column = np.asarray(labels if hasattr(labels, "__array__") else np.array(list(labels), dtype=object))
    if column.ndim != 1:
        raise ValueError(f"labels must be one column, got shape {column.shape}.")
    return column


def _labels(column: Array, name: str) -> Labels:
    missing = np.array([_is_missing(value) for value in column.tolist()], dtype=bool)
    present = column[~missing].tolist()
    if present and all(isinstance(value, Real) and not isinstance(value, bool) for value in present):
        numbers = np.full(len(column), np.nan)
        numbers[~missing] = present
        return Labels(name, numbers)
    texts = [None if gone else str(value) for value, gone in zip(column.tolist(), missing)]
    frequent = Counter(text for text in texts if text is not None).most_common()
    most = CATEGORIES if len(frequent) <= CATEGORIES else CATEGORIES - 1
    coloured = sorted(text for text, _ in frequent[:most])
    grey = ["other"] * (len(frequent) > most) + ["missing"] * bool(missing.any())
    code: dict[str | None, int] = {text: i for i, text in enumerate(coloured)} | {None: len(coloured) + len(grey) - 1}
    codes = np.array([code.get(text, len(coloured)) for text in texts], dtype=np.uint8)
    return Labels(name, codes, (*(shown(text) for text in coloured), *grey), len(coloured))


def _is_missing(value: Any) -> bool:
    """Tell whether a label is None, NaN or a frame library's NA (whose comparisons have no truth value)."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
