"""What a fitted model says of itself, as plain data: for the command line, the report, and whatever else shows models.

`describe` and `describe_scores` are the way in. The usual attributes speak for most estimators; one whose fit is
something else (groups of samples, two sides) overrides `_describe` and `_describe_scores`. Whoever shows a model asks
for nothing else, so that a new method is shown everywhere as soon as it is there.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._text import count, percent
from princomp._typing import Array
from princomp.data.reading import natural
from princomp.result import Certificate, Status

SAMPLES_LIE = (
    "Where the samples lie along two components: samples close to each other are alike in what these components "
    "describe."
)
WEIGHTS = (
    "The weight of each feature in a component. Features with weights of the same sign rise together along it, those "
    "of opposite sign move against each other."
)


# Data


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    values: Sequence[Any] | Array
    kind: Literal["number", "share", "count"] = "number"
    heading: str = ""  # on a page, if it is not the name


@dataclass(frozen=True)
class Table:
    """Numbers of each component, pair or group.

    A page draws one column as bars, and may draw one as a line, and two as the ends of whiskers on the bars.
    """

    name: str  # of the file
    title: str
    text: str
    columns: tuple[Column, ...]  # the first one counts the rows, and says what they are
    bars: str  # which column
    axis: str  # what the bars show
    line: str = ""
    between: tuple[str, str] | tuple[()] = ()  # the columns between which the bars' numbers lie for sure
    left_out: int = 0  # rows

    def column(self, name: str) -> Column:
        """Return the column of this name."""
        return next(column for column in self.columns if column.name == name)


@dataclass(frozen=True)
class Loadings:
    """Weights of features in components."""

    name: str  # of the file
    title: str
    text: str
    features: tuple[str, ...]
    weights: Array  # (components, features)
    components: tuple[str, ...]  # names
    marks: tuple[str, ...]  # the same where there is little room: "1", "2"
    axis: str = "Component"  # what the marks count
    groups: int = 1  # that components belong to, those of the first group first

    def in_order(self) -> Self:
        """Return the same in the order of the marks, which is the model's own: a page may show the most used first."""
        order = sorted(range(len(self.marks)), key=lambda j: natural(self.marks[j]))
        names, marks = (tuple(texts[j] for j in order) for texts in (self.components, self.marks))
        return replace(self, weights=self.weights[order], components=names, marks=marks)


@dataclass(frozen=True)
class Curve(Table):
    """A table of which a page draws one column as a line, over the first one: how something went on."""


@dataclass(frozen=True)
class Atoms(Loadings):
    """Weights of features in so many components that a page draws them small, side by side: as lines, or as images."""


@dataclass(frozen=True)
class Courses(Atoms):
    """The same over samples, in their order, in place of features: lines, never images."""


@dataclass(frozen=True)
class Distances:
    """How far samples lie out: within the span of the components, and from it, and what good samples are within."""

    score: Array  # (n,)
    orthogonal: Array  # (n,)
    score_limit: float
    orthogonal_limit: float
    outliers: Array  # (n,) of bool: which are outliers, by whatever the method judges
    title: str
    text: str


@dataclass(frozen=True)
class Cells:
    """What components leave of each cell of some data, in standard deviations; NaN where it is missing."""

    residuals: Array  # (n, p)
    features: tuple[str, ...]
    title: str


@dataclass(frozen=True)
class Groups:
    """Samples that are shown apart, since scores in different groups cannot be compared."""

    name: str
    names: tuple[str, ...]
    codes: Array  # (n,) of int


@dataclass(frozen=True)
class Scores:
    """Where samples lie."""

    columns: Mapping[str, Array]  # of a file
    axes: tuple[str, ...]
    values: Array  # (n, axes)
    text: str = SAMPLES_LIE
    groups: Groups | None = None
    title: str = "Scores"
    file: str = "scores"  # its name, without the ending
    rows: Array | None = None  # which sample each line of the file is about, if there is not one line for each
    distances: Distances | None = None  # of the samples, where the method judges them by these


Part = Literal["scores", "distances", "cells"]  # sections of a page that are about its samples


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator."""

    name: str
    value: Any
    changed: bool  # from its default


@dataclass(frozen=True)
class Side:
    """Columns of the data that a model takes: all of them, or one of two sides."""

    features: tuple[str, ...]
    named: bool  # or counted: x0, x1 ...


@dataclass(frozen=True)
class Description:
    """What a fitted model says of itself."""

    model: str
    parameters: tuple[Parameter, ...]
    n_samples: int | None  # None if it was fitted to a covariance, or does not say
    sides: tuple[Side, ...]
    computation: tuple[str, ...]  # sentences
    certificate: Certificate | None
    verdict: str  # of the certificate
    assurance: tuple[str, ...]  # what its numbers mean, in sentences
    status: Status | None
    facts: Mapping[str, Any]  # for programs: ready for JSON
    counts: tuple[tuple[str, str], ...] = ()  # (what, how much)
    summary: str = ""
    notes: tuple[str, ...] = ()  # what a reader would otherwise take for granted
    sections: tuple[Table | Loadings | Part, ...] = ("scores",)  # of a page, in order
    lines: tuple[Column, ...] = ()  # a table of few characters; its rows are those of all `Loadings` in ``sections``
    open_ended: bool = False  # whether the method ends without a certificate as a rule: that is a fact, and no fault
    below: str = ""  # said below that table, of all rows together
    loadings: Mapping[str, Any] = field(default_factory=dict)  # columns of a file
    loadings_file: str = "loadings.csv"


class Described:
    """An estimator that can say what it found. The usual attributes speak for it, unless it overrides this."""

    def _describe(self) -> Description:
        return usual_description(self)

    def _describe_scores(self, X: Any, y: Any, values: Any) -> Scores:
        """Return the scores of X (and y); ``values`` are those of `transform`, if they are there already."""
        return usual_scores(self, X, values)

    def _describe_fit_scores(self, X: Any, y: Any) -> Scores:
        """Return the scores of the rows of the fit, of which it may have said the rest already."""
        return self._describe_scores(X, y, None)

    def _describe_cells(self, X: Any) -> Cells | None:
        """Return what the model says of the cells of X, if it says anything of single cells."""
        return None


def describe(estimator: Any) -> Description:
    """Return what a fitted estimator says of itself, as plain data.

    Parameters
    ----------
    estimator : estimator
        Fitted. One from elsewhere, of the scikit-learn kind, is judged by its attributes.

    Returns
    -------
    Description

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA
    >>> from princomp.estimators.description import describe
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5, 2, 1]
    >>> found = describe(PCA(2).fit(X))
    >>> found.model, found.n_samples, found.sides[0].features
    ('PCA', 100, ('x0', 'x1', 'x2'))
    """
    check_is_fitted(estimator)
    return estimator._describe() if isinstance(estimator, Described) else usual_description(estimator)


def describe_scores(estimator: Any, X: Any, y: Any = None, values: Any = None) -> Scores:
    """Return where samples lie in a fitted model, with names: of a mixture, in their most probable groups.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    X : as in ``fit``
        The data; not read if ``values`` are given.
    y : as in ``fit``, optional
        The other side, of an estimator that has two.
    values : array, optional
        What ``estimator.transform`` gives, if it is there already.

    Returns
    -------
    Scores
    """
    check_is_fitted(estimator)
    if isinstance(estimator, Described):
        return estimator._describe_scores(X, y, values)
    return usual_scores(estimator, X, values)


def describe_fit_scores(estimator: Any, X: Any, y: Any = None) -> Scores:
    """Return the same of the data of the fit, as it judged them."""
    check_is_fitted(estimator)
    return estimator._describe_fit_scores(X, y) if isinstance(estimator, Described) else usual_scores(estimator, X)


def describe_cells(estimator: Any, X: Any) -> Cells | None:
    """Return what a fitted model says of the cells of X, one by one; None if it says nothing of single cells.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    X : as in ``fit``
        The data.

    Returns
    -------
    Cells or None
    """
    check_is_fitted(estimator)
    return estimator._describe_cells(X) if isinstance(estimator, Described) else None


# The usual parts


def basics(estimator: Any, **facts: Any) -> Description:
    """Return what is the same for all methods; ``facts`` are numbers or arrays of a method's own, None is left out."""
    certificate, result = getattr(estimator, "certificate_", None), getattr(estimator, "result_", None)
    status, steps = getattr(result, "status", None), getattr(estimator, "n_iter_", None)
    side = side_of(getattr(estimator, "feature_names_in_", None), getattr(estimator, "n_features_in_", 0))
    n = getattr(estimator, "n_samples_", None)
    counts = {"n_samples": n, "n_features": len(side.features), "n_components": getattr(estimator, "n_components_", 0)}
    return Description(
        model=type(estimator).__name__,
        parameters=_parameters(estimator),
        n_samples=None if n is None else int(n),
        sides=(side,),
        computation=_computation(estimator, steps, status),
        certificate=certificate,
        verdict="" if certificate is None else certificate.verdict(),
        assurance=() if certificate is None else tuple(certificate.assurance()),
        status=status,
        facts={
            **{name: None if number is None else int(number) for name, number in counts.items()},
            **{name: in_json(value) for name, value in facts.items() if value is not None},
            **({} if certificate is None else {"certificate": in_json(certificate.facts())}),
            **({} if status is None else {"status": {"code": status.code, "sentence": status.sentence}}),
            **({"n_iter": int(steps)} if isinstance(steps, Integral) else {}),
        },
    )


def usual_description(estimator: Any, **facts: Any) -> Description:
    """Return what components and their variances say; parts that an estimator lacks are left out."""
    own = ("explained_variance", "explained_variance_ratio", "components")
    variance, ratio, components = (getattr(estimator, f"{name}_", None) for name in own)
    found = basics(estimator, explained_variance=variance, explained_variance_ratio=ratio, **facts)
    features, k = found.sides[0].features, _width(estimator, components)
    counts = [("features", count(len(features)))] if features else []
    counts += [] if k is None else [("components", count(k))]
    sections: list[Table | Loadings | Part] = ["scores"]
    lines: tuple[Column, ...] = () if k is None else (Column("component", np.arange(1, k + 1), "count"),)
    summary = ""
    if variance is not None and ratio is not None and len(ratio):
        summary = _held(ratio)
        counts.append(("of the variance", percent(float(np.sum(ratio, dtype=np.float64)))))
        table, lines = _variances(variance, ratio)
        sections.insert(0, table)
    if components is not None and components.size:
        features = features or side_of(None, components.shape[1]).features
        names = _named(len(components), ratio)
        sections.append(Loadings("loadings", "Loadings", WEIGHTS, features, components, names, marks(len(components))))
    return replace(
        found,
        counts=tuple(counts),
        summary=summary,
        notes=_arbitrary(getattr(estimator, "n_components_", None), getattr(estimator, "rank_", None)),
        sections=tuple(sections),
        lines=lines,
        loadings={} if components is None else {"feature": features, **numbered(components)},
    )


def usual_scores(estimator: Any, X: Any, values: Any = None) -> Scores:
    """Return the columns of ``transform``, one for each component."""
    values = as_table(estimator.transform(X) if values is None else values)
    ratio = getattr(estimator, "explained_variance_ratio_", None)
    return Scores(numbered(values.T), _named(values.shape[1], ratio), values)


def side_of(names: Any, n_features: int, letter: str = "x") -> Side:
    """Return the features by name, or x0, x1 ... where the data had no names."""
    if names is None:
        return Side(tuple(f"{letter}{j}" for j in range(n_features)), named=False)
    return Side(tuple(str(name) for name in names), named=True)


def numbered(rows: Any) -> dict[str, Array]:
    """Return rows as columns of a file by name: component_1, component_2 ..."""
    return {f"component_{j + 1}": row for j, row in enumerate(rows)}


def marks(k: int) -> tuple[str, ...]:
    """Return the shortest names of k components."""
    return tuple(str(j + 1) for j in range(k))


def as_table(values: Any) -> Array:
    """Return scores as an array; complain if it is no table."""
    found = np.asarray(values)
    if found.ndim != 2:
        raise ValueError(f"Scores must be a table, (samples, components), got shape {found.shape}.")
    return found


def in_json(value: Any) -> Any:
    """Return numbers, arrays of them and mappings for JSON, which has no infinity: that is None."""
    if isinstance(value, Mapping):
        return {name: in_json(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [in_json(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _named(k: int, ratio: Array | None) -> tuple[str, ...]:
    """Return names of components, with their share of the variance where it is known."""
    names = [f"Component {j + 1}" for j in range(k)]
    if ratio is not None and len(ratio) == k:
        names = [f"{name} ({percent(share)})" for name, share in zip(names, ratio, strict=True)]
    return tuple(names)


def _width(estimator: Any, components: Array | None) -> int | None:
    """Return how many columns scores have, if that is known."""
    if components is not None:
        return len(components)
    return len(estimator.get_feature_names_out()) if hasattr(estimator, "get_feature_names_out") else None


def _variances(variance: Array, ratio: Array) -> tuple[Table, tuple[Column, ...]]:
    """Return the variances as a page and as a terminal show them."""
    number, cumulative = np.arange(1, len(ratio) + 1), np.cumsum(ratio, dtype=np.float64)
    table = Table(
        "variance",
        "Variance",
        "How much of the variance each component holds, and how much the first ones hold together.",
        (
            Column("component", number, "count", "No."),
            Column("variance", variance, "number", "Variance"),
            Column("share", ratio, "share", "Share"),
            Column("cumulative share", cumulative, "share", "Cumulative"),
        ),
        bars="share",
        axis="Share of variance",
        line="cumulative share",
    )
    return table, (*table.columns[:3], Column("together", cumulative, "share"))


def _held(ratio: Any) -> str:
    r"""Say how many components hold how much of the variance.

    >>> _held(np.array([0.5, 0.3]))
    '2 components hold 80\xa0% of the variance.'
    """
    if not ratio.any():
        return "The data do not vary: every variance is 0, and the components are arbitrary."
    cumulative = np.cumsum(ratio, dtype=np.float64)
    held = [(number, percent(cumulative[number - 1])) for number in _milestones(cumulative)]
    number, share = held[0]
    first = f"{count(number, 'component')} hold{'s' if number == 1 else ''} {share} of the variance"
    return f"{', '.join([first, *(f'{number} hold {share}' for number, share in held[1:])])}."


def _milestones(cumulative: Array) -> list[int]:
    """Return numbers of components worth a word: two (what a scatter shows), those that reach 80 % and 95 %, or all."""
    k = len(cumulative)
    reach = [int(np.searchsorted(cumulative, share - 1e-9)) + 1 for share in (0.8, 0.95)]
    return sorted({min(2, k), *(min(number, k) for number in reach)})


def _arbitrary(k: int | None, rank: int | None) -> tuple[str, ...]:
    if k is None or rank is None or rank >= k:
        return ()
    what = f"Component {k} is" if rank == k - 1 else f"Components {rank + 1} to {k} are"
    return (f"The data have rank {rank}: {what} rounding, and arbitrary.",)


def _computation(estimator: Any, steps: Any, status: Status | None) -> tuple[str, ...]:
    """Return sentences on how the answer was found."""
    found = {
        what: getattr(estimator, f"{what}_", None) for what in ("formulation", "approximation", "solver", "method")
    }
    ways = [f"{what} “{name}”" for what, name in found.items() if name is not None]
    if ways and isinstance(steps, Integral):
        ways.append(count(int(steps), "step"))
    sentence = ", ".join(ways)
    return (*([f"{sentence[0].upper()}{sentence[1:]}."] if ways else []), *(() if status is None else (str(status),)))


def _parameters(estimator: Any) -> tuple[Parameter, ...]:
    defaults = inspect.signature(type(estimator)).parameters
    # By what they look like: arrays have no truth value.
    return tuple(
        Parameter(name, value, name in defaults and repr(value) != repr(defaults[name].default))
        for name, value in estimator.get_params(deep=False).items()
    )
