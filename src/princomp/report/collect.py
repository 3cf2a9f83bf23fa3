"""What a report shows, as plain numbers and words: what a model says of itself, cut to the size of a page."""

import datetime
import itertools
import math
import platform
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from numbers import Real
from pathlib import PurePath
from typing import Any

import numpy as np

from princomp._text import count
from princomp._typing import Array
from princomp._version import __version__
from princomp.data.layout import ImageLayout, Layout
from princomp.data.rows import Rows
from princomp.estimators import description
from princomp.estimators.description import (
    Cells,
    Description,
    Distances,
    Groups,
    Parameter,
    Scores,
    Table,
    describe,
    describe_cells,
    describe_scores,
)
from princomp.images.residual_cells import WORDS as CELLS_TEXT
from princomp.images.residual_cells import ResidualCells, residual_cells
from princomp.images.shades import SCALES, shades
from princomp.images.slices import SCALES as MAPS_TEXT
from princomp.images.slices import slices

# These bound the size of the page, whatever the size of the data.
ROWS = 100  # of a chart, and of its table
COMPONENTS = 10  # to choose from for scores and loadings
POINTS = 20_000  # drawn one by one; more are counted in cells
CELLS = 80  # each way
FARTHEST = 5  # samples that are named in the outlier map
CELL_ROWS, CELL_COLUMNS = 200, 100  # of a map of single cells; of more, neighbours are put together
CELL_NAMES = 2000  # of rows, and of columns, that are told; of more, their numbers
PAIRS = 45  # of axes to count cells for: all of COMPONENTS, or fewer in each of several panels
BARS = 15  # features shown for one component
FEATURES = 60  # in the heat map
ATOMS = 400  # side by side
PLACES = 1000  # of a line over features
NUMBERS = 300_000  # of all atoms together
MAPS = 20  # of voxels
CATEGORIES = 12  # with a colour of their own
LONGEST_SAMPLE = 40  # characters of a sample's name
LONGEST = 120  # of any other

# What would be invisible or break a line, turn the reading direction, or cannot be written as UTF-8.
UNSHOWABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


@dataclass(frozen=True)
class Certificate:
    """Whether the answer is certified, and what that means."""

    holds: bool
    open_ended: bool  # it does not hold, which is how the method ends
    verdict: str
    sentences: tuple[str, ...]


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

    text: str
    axes: tuple[str, ...]
    columns: Array  # (axes, n)
    names: tuple[str, ...] | None
    labels: Labels | None
    panels: Groups | None  # samples that are drawn apart; those of no panel are not drawn
    title: str = "Scores"
    name = "scores"


@dataclass(frozen=True)
class Density:
    """Scores counted in cells, for each panel and pair of axes."""

    text: str
    axes: tuple[str, ...]
    low: Array  # (axes,)
    high: Array  # (axes,)
    counts: Array  # (panels, pairs, CELLS, CELLS), in the order of itertools.combinations; last axis = first of a pair
    n_samples: int
    has_labels: bool
    panels: Groups | None
    title: str = "Scores"
    name = "scores"


@dataclass(frozen=True)
class Loadings:
    """Weights of the features that matter most, in the order of the data's columns."""

    name: str
    title: str
    text: str
    features: tuple[str, ...]
    weights: Array  # (features, components)
    in_heat_map: Array  # positions in ``features``
    n_features: int
    components: tuple[str, ...]  # names of those to choose from
    marks: tuple[str, ...]
    axis: str


@dataclass(frozen=True)
class Atoms:
    """Components as small pictures side by side: images, or lines over the features."""

    name: str
    title: str
    text: str
    values: Array  # (atoms, places) of float32; of images uint8, the levels of their pixels
    shape: tuple[int, ...] | None  # of an image
    features: tuple[str, ...]  # by place; none of images
    components: tuple[str, ...]
    marks: tuple[str, ...]
    axis: str
    left_out: int  # atoms
    places: str = "Feature"  # what lines go along


@dataclass(frozen=True)
class OutlierMap:
    """How far samples lie out, those that were left out aside."""

    text: str
    title: str
    score: Array  # (n,)
    orthogonal: Array  # (n,)
    limits: tuple[float, float]
    numbers: Array  # (n,) of the samples, from 0
    names: tuple[str, ...] | None
    outliers: Array  # (n,) of bool
    farthest: tuple[int, ...]  # places in these arrays: outliers to be named
    n_samples: int
    name = "distances"


@dataclass(frozen=True)
class CellMap:
    """What components leave of each cell."""

    text: str
    title: str
    found: ResidualCells
    features: tuple[str, ...] | None
    samples: tuple[str, ...] | None
    name = "cells"


Section = Table | Points | Density | Loadings | Atoms | OutlierMap | CellMap


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
    sections: tuple[Section, ...]  # in order
    computation: tuple[str, ...]  # sentences
    parameters: tuple[Parameter, ...]
    versions: tuple[tuple[str, str], ...]
    written: str

    def section(self, name: str) -> Any:
        """Return the section of this name, or None."""
        return next((section for section in self.sections if section.name == name), None)


def collect(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    title: str | None = None,
    labels: Any = None,
    label_name: str | None = None,
    sample_names: Iterable[Any] | None = None,
    scores: Any = None,
    notes: Sequence[str] = (),
    source: Any = None,
    image_shape: tuple[int, ...] | None = None,
    background: Any = None,
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
    said = describe(estimator)
    if title is None:
        title = f"{said.model} report" if source is None else f"{said.model} of {PurePath(str(source)).name or source}"
    found = scores if isinstance(scores, Scores) else describe_scores(estimator, X, y, scores)
    n = len(found.values)
    if said.n_samples not in (None, n):
        notes = (*notes, f"The components were found on {count(said.n_samples, 'sample')}, not on those shown here.")
    certificate = None
    if said.certificate is not None:
        sentences = tuple(shown(sentence, 1000) for sentence in said.assurance)
        certificate = Certificate(said.certificate.holds, said.open_ended, shown(said.verdict, 1000), sentences)
    names = None if sample_names is None else list(sample_names)
    of_samples: dict[str, Any] = {"scores": _scores(found, names, labels, label_name)}
    if found.distances is not None:
        of_samples["distances"] = _outlier_map(found.distances, names)
        if "cells" in said.sections and (cells := describe_cells(estimator, X)) is not None:
            of_samples["cells"] = _cell_map(cells, names)
    layout = X.layout if isinstance(X, Rows) and image_shape is None else None
    sections = [
        of_samples.get(part) if isinstance(part, str) else _placed(part, layout, background) or _cut(part, image_shape)
        for part in said.sections
    ]
    return Content(
        title=shown(title, 200),
        method=said.model,
        source=None if source is None else shown(source, 300),
        summary=f"{_size(n, said)}. {said.summary}".strip(),
        notes=tuple(shown(note, 500) for note in (*notes, *said.notes)),
        tiles=(("samples", count(n)), *said.counts),
        certificate=certificate,
        sections=tuple(section for section in sections if section is not None),
        computation=tuple(shown(sentence, 500) for sentence in said.computation),
        parameters=tuple(replace(each, value=shown(repr(each.value))) for each in said.parameters),
        versions=_versions(),
        written=f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
    )


# Words


def shown(text: Any, longest: int = LONGEST) -> str:
    r"""Return the text as the page shows it: shortened in the middle, control characters written out.

    >>> shown("a\u202eb"), shown("x" * 1000, 9), shown("")
    ('a\\u202eb', 'xxxxxx…xxx', '(empty)')
    """
    text = str(text)
    if len(text) > longest:
        tail = longest // 3
        text = f"{text[: longest - tail]}…{text[-tail:]}"
    return UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if text.strip() else "(empty)"


def _size(n: int, said: Description) -> str:
    features = [len(side.features) for side in said.sides if side.features]
    each = " and ".join([*map(count, features[:-1]), *(count(number, "feature") for number in features[-1:])])
    return f"{count(n, 'sample')} of {each}" if features else count(n, "sample")


def _versions() -> tuple[tuple[str, str], ...]:
    libraries = (("NumPy", "numpy"), ("SciPy", "scipy"), ("scikit-learn", "scikit-learn"))
    own = (("princomp", __version__), ("Python", platform.python_version()))
    return (*own, *((name, version(package)) for name, package in libraries))


# Numbers


def _placed(part: Table | description.Loadings, layout: Layout | None, background: Any) -> Atoms | None:
    """Return weights of pixels or voxels as pictures, if they are that."""
    if layout is None or isinstance(part, Table) or part.weights.shape[1] != layout.size:
        return None
    k = min(len(part.weights), MAPS)
    if isinstance(layout, ImageLayout):
        weights = np.asarray(part.weights[:ATOMS]).reshape(-1, *layout.shape)
        step = max(1, math.ceil(math.sqrt(weights.size / NUMBERS)))
        fewer = weights[:, ::step, ::step]
        thinned = f" Of rows and columns of pixels, one of {step} is drawn." if step > 1 else ""
        small = replace(part, weights=fewer.reshape(len(fewer), -1), text=part.text + thinned)
        return replace(_atoms(small, fewer.shape[1:]), left_out=len(part.weights) - len(fewer))
    seen = [slices(layout, row, background=background, count=4).colours for row in part.weights[:k]]
    tiles = np.array([_two_by_two(colours) for colours in seen])
    step = max(1, math.ceil(math.sqrt(tiles.size / (2 * NUMBERS))))
    levels = np.round(255 * tiles[:, ::step, ::step]).astype(np.uint8)
    return Atoms(
        part.name,
        part.title,
        f"{part.text} {MAPS_TEXT}",
        levels.reshape(k, -1),
        levels.shape[1:],
        (),
        part.components[:k],
        part.marks[:k],
        part.axis,
        len(part.weights) - k,
    )


def _two_by_two(images: Array) -> Array:
    """Return up to four images, (count, height, width, 3), as one, with white where there are fewer."""
    four = np.concatenate([images, np.ones((4 - len(images), *images.shape[1:]))]) if len(images) < 4 else images
    return np.vstack([np.hstack(list(four[:2])), np.hstack(list(four[2:]))])


def _cut(part: Table | description.Loadings, image_shape: tuple[int, ...] | None) -> Table | Loadings | Atoms:
    if isinstance(part, description.Courses):
        return _atoms(part, None)
    if not isinstance(part, Table):
        as_pictures = image_shape is not None or isinstance(part, description.Atoms)
        return _atoms(part, image_shape) if as_pictures else _loadings(part)
    columns = tuple(replace(column, values=np.asarray(column.values)[:ROWS]) for column in part.columns)
    return replace(part, columns=columns, left_out=max(len(part.columns[0].values) - ROWS, 0))


def _loadings(found: description.Loadings) -> Loadings:
    k = len(found.weights) // found.groups
    few = min(k, max(COMPONENTS // found.groups, 1))  # of each group
    chosen = [j for j in range(len(found.weights)) if j % k < few][:COMPONENTS]
    weights = found.weights[chosen]
    ranked = np.argsort(-np.abs(weights), axis=1, kind="stable")[:, :FEATURES]  # largest weights first
    # In turn the largest weight of each component, the second largest of each ...
    in_turn = list(dict.fromkeys(ranked.T.ravel().tolist()))
    heat_map = sorted(in_turn[:FEATURES])
    kept = sorted({*heat_map, *ranked[:, :BARS].ravel().tolist()})
    text = found.text
    if found.groups > 1 and len(chosen) < len(found.weights):
        text += f" Only {len(chosen)} of {len(found.weights)} components are shown, the first of each group."
    return Loadings(
        found.name,
        found.title,
        text,
        tuple(shown(found.features[j]) for j in kept),
        weights[:, kept].T,
        np.searchsorted(kept, heat_map),
        len(found.features),
        tuple(found.components[j] for j in chosen),
        tuple(found.marks[j] for j in chosen),
        found.axis,
    )


def _atoms(found: description.Loadings, shape: tuple[int, ...] | None) -> Atoms:
    K, p = found.weights.shape
    if shape is not None and (math.prod(shape) != p or len(shape) not in (2, 3) or shape[2:] not in ((), (3,))):
        raise ValueError(
            f"image_shape must be (height, width), or (height, width, 3) for colours, of {p} numbers; got {shape}."
        )
    text, places = found.text if shape is None else f"{found.text} {SCALES}", np.arange(p)
    weights = np.asarray(found.weights[: min(ATOMS, max(NUMBERS // min(p, PLACES if shape is None else p), 1))])
    if shape is None and p > PLACES:
        weights, places = _thinned(weights, PLACES)
        what = "samples" if isinstance(found, description.Courses) else "features"
        text += f" Of {count(p)} {what}, {count(len(places))} are drawn: of neighbours the one with the largest value."
    return Atoms(
        found.name,
        found.title,
        text,
        weights.astype(np.float32) if shape is None else np.round(127.5 + 127.5 * shades(weights)).astype(np.uint8),
        shape,
        tuple(shown(found.features[j]) for j in places) if shape is None else (),
        found.components[: len(weights)],
        found.marks[: len(weights)],
        found.axis,
        K - len(weights),
        "Sample" if isinstance(found, description.Courses) else "Feature",
    )


def _thinned(weights: Array, most: int) -> tuple[Array, Array]:
    """Return the largest of each run of neighbours, over all atoms, so many in all, and where these are."""
    largest = np.abs(weights).max(axis=0)
    runs = np.array_split(np.arange(len(largest)), most)
    places = np.array([run[np.argmax(largest[run])] for run in runs])
    return weights[:, places], places


def _scores(found: Scores, names: Sequence[Any] | None, labels: Any, label_name: str | None) -> Points | Density | None:
    n, k = found.values.shape
    values = None if labels is None else _as_column(labels)
    for what, given in (("sample_names", names), ("labels", values)):
        if given is not None and len(given) != n:
            raise ValueError(f"{what} must have one entry per sample, {n} in all, got {len(given)}.")
    if not k:
        return None
    axes, columns = found.axes[:COMPONENTS], found.values[:, :COMPONENTS].T.astype(np.float64)
    if k == 1:  # there is nothing to draw it against but the order of the samples
        columns, axes = np.stack([np.arange(1.0, n + 1), columns[0]]), ("Sample number", *axes)
    panels = None if found.groups is None else _panels(found.groups)
    text = found.text
    if found.groups is not None and len(found.groups.names) > CATEGORIES:
        text += f" Of {len(found.groups.names)} groups, the first {CATEGORIES} are shown."
    if n > POINTS:
        return replace(_density(text, columns, axes, panels, has_labels=labels is not None), title=found.title)
    colours = None if found.groups is None else _groups(found.groups)
    if values is not None:
        colours = _labels(values, shown(label_name or "label"))
    shortened = None if names is None else tuple(shown(name, LONGEST_SAMPLE) for name in names)
    return Points(text, axes, columns, shortened, colours, panels, found.title)


def _outlier_map(found: Distances, names: Sequence[Any] | None) -> OutlierMap:
    """Return all samples, or of very many the farthest, in their order."""
    far = np.maximum(found.score / (found.score_limit or 1.0), found.orthogonal / (found.orthogonal_limit or 1.0))
    n = len(far)
    # The farthest, outliers before all others.
    first = np.lexsort((-far, ~found.outliers))
    numbers = np.arange(n) if n <= POINTS else np.sort(first[:POINTS])
    text = found.text
    if n > POINTS:
        text += f" Of {count(n)} samples, the {count(POINTS)} that lie farthest out are drawn."
    named = [i for i in first[:FARTHEST] if found.outliers[i]]
    return OutlierMap(
        text,
        found.title,
        found.score[numbers].astype(np.float64),
        found.orthogonal[numbers].astype(np.float64),
        (found.score_limit, found.orthogonal_limit),
        numbers,
        None if names is None else tuple(shown(names[i], LONGEST_SAMPLE) for i in numbers),
        found.outliers[numbers],
        tuple(int(i) for i in np.searchsorted(numbers, named)),
        n,
    )


def _cell_map(found: Cells, names: Sequence[Any] | None) -> CellMap:
    n, p = found.residuals.shape
    blocks = residual_cells(found.residuals, (CELL_ROWS, CELL_COLUMNS))
    text, (rows, columns) = CELLS_TEXT, blocks.shades.shape
    if n > rows or p > columns:
        text += (
            f" Of {count(n)} rows and {count(p)} columns, {count(rows)} and {count(columns)} are drawn, each of which "
            "stands for neighbours: the stronger its colour, the more of their cells are bad."
        )
    samples = None if names is None or n > CELL_NAMES else tuple(shown(name, LONGEST_SAMPLE) for name in names)
    features = None if p > CELL_NAMES else tuple(shown(name) for name in found.features)
    return CellMap(text, found.title, blocks, features, samples)


def _panels(groups: Groups) -> Groups:
    counts = np.bincount(groups.codes, minlength=len(groups.names))
    names = (f"{name}: {count(int(many), 'sample')}" for name, many in zip(groups.names, counts))
    return replace(groups, names=tuple(itertools.islice(names, CATEGORIES)))


def _density(text: str, columns: Array, axes: tuple[str, ...], panels: Groups | None, *, has_labels: bool) -> Density:
    """Count points in cells, for each panel and pair of axes; of many panels, for fewer axes."""
    n_panels = 1 if panels is None else len(panels.names)
    fewer = next(a for a in range(len(axes), 1, -1) if a == 2 or n_panels * a * (a - 1) // 2 <= PAIRS)
    finite = np.isfinite(columns).all(axis=0)
    codes = np.zeros(finite.sum(), np.intp) if panels is None else panels.codes[finite]
    columns = columns[:fewer, finite]
    low, high = columns.min(axis=1), columns.max(axis=1)
    flat = low == high
    low, high = np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high)
    cells = ((columns - low[:, None]) * (CELLS / (high - low))[:, None]).astype(np.int32)
    np.minimum(cells, CELLS - 1, out=cells)  # the largest value belongs to the last cell
    counts = [
        [
            np.bincount(inside[j] * CELLS + inside[i], minlength=CELLS**2).reshape(CELLS, CELLS)
            for i, j in itertools.combinations(range(fewer), 2)
        ]
        for inside in (cells[:, codes == panel] for panel in range(n_panels))
    ]
    return Density(text, axes[:fewer], low, high, np.array(counts), columns.shape[1], has_labels, panels)


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


def _groups(groups: Groups) -> Labels:
    """Return groups as categories: in their order, the last of too many as "other"."""
    most = len(groups.names) if len(groups.names) <= CATEGORIES else CATEGORIES - 1
    names = (*groups.names[:most], *["other"] * (len(groups.names) > most))
    return Labels(groups.name, np.minimum(groups.codes, most).astype(np.uint8), names, most)


def _is_missing(value: Any) -> bool:
    """Tell whether a label is None, NaN or a frame library's NA (whose comparisons have no truth value)."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True
