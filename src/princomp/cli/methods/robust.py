"""Robust PCA on the command line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from princomp._text import count, percent, shown
from princomp.cli.frames import FILES as FRAMES
from princomp.cli.frames import TAKEN_APART, are_images, write_frames
from princomp.cli.methods import Method
from princomp.cli.options import IMAGE_SHAPE, MAX_ITER, TIME_LIMIT, TOL, as_images
from princomp.cli.tables import sample_column

if TYPE_CHECKING:
    from princomp._typing import Array

METHODS = ("pcp", "cellwise", "outlier-pursuit", "robpca", "spherical", "online")
# Options that have a use with some methods only, and which.
NEEDS = {
    "alpha": ("pcp", "outlier-pursuit"),
    "solver": ("pcp",),
    "coverage": ("robpca",),
    "scale": ("cellwise", "robpca"),
    "batch_size": ("online",),
}
BY_CELLS = ("pcp", "cellwise", "online")
TELL_CELLS = ("pcp", "cellwise")  # methods that leave which cells of the fit are bad
OUTLIERS, CELLS, CLEANED, LOW_RANK, SPARSE = TABLES = (
    "outliers.csv",
    "cells.csv",
    "cleaned.csv",
    "low_rank.csv",
    "sparse.csv",
)
ROUNDED = 1e-3  # tol for images of whole numbers: smaller ones change no pixel, and take up to twenty times as long
MANY = 0.2  # of the cells: with more of them bad, data were not what `pcp` is for
TOO_MANY = (
    "That many are a sign of noise, or of columns in different units, of which pcp knows nothing: for tables take "
    "--robust-method cellwise --scale, or robpca for whole rows."
)
UNSCALED = (
    "That many in one column are a sign of columns in different units: components follow the one of most variance, and "
    "what they leave of it counts for nothing. Take --scale."
)
MOST = 0.95  # of the variance along the components, in one column
ONE_COLUMN = (
    "{share} of the variance along the components is in the column {name}, which is a sign of columns in different "
    "units: components and outliers are those of this column. Take "
)
SCALED = "--robust-method robpca --scale or cellwise --scale, or divide the columns by scales of your own first."
NAMED = 5  # samples in a note


@dataclass(frozen=True)
class Robust(Method):
    """A method whose options may clash."""

    def make(self, options: dict[str, Any]) -> Any:
        """Return the estimator; options that mean nothing together are no fault of the data."""
        wrong = clash(options)
        if wrong is not None:
            raise click.UsageError(wrong)
        return super().make(options)


def clash(given: Mapping[str, Any]) -> str | None:
    """Return what is wrong with options together, in a sentence; None if nothing is."""
    method = given["robust_method"] or METHODS[0]
    for name, methods in NEEDS.items():
        if given[name] is not None and method not in methods:
            wrong = f"--{name.replace('_', '-')} has no use without --robust-method {' or '.join(methods)}."
            return f"{wrong} For {method} divide the columns by scales of your own first." if name == "scale" else wrong
    if given["solver"] == "alternating" and given["n_components"] is None:
        return "--solver alternating needs the rank: give -k."
    return None


def suits(rows: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tol for images of whole numbers: what they were rounded by is noise, of which `pcp` cannot be rid."""
    return {"tol": ROUNDED} if parameters["robust_method"] in (None, "pcp") and _are_rounded(rows) else {}


def _are_rounded(rows: Any) -> bool:
    import numpy as np

    return are_images(rows) and np.asarray(rows.block(0)).dtype.kind in "iu"


# What is written


def tables(estimator: Any, rows: Any, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return outliers.csv; where cells are judged, and are no pixels, cells.csv and cleaned.csv; parts if asked for."""
    found = {OUTLIERS: _outliers(estimator, rows)}
    if estimator.method in BY_CELLS and rows.layout is None:
        X, fitted, residuals, bad = _cells(estimator, rows)
        import numpy as np

        found[CELLS] = _cells_table(rows, X, fitted, residuals, bad)
        found[CLEANED] = _as_data(rows, np.where(bad | np.isnan(X), fitted, X))
    if options["parts"] and estimator.method in TAKEN_APART:
        found |= {LOW_RANK: _as_data(rows, estimator.low_rank_), SPARSE: _as_data(rows, estimator.sparse_)}
    return found


def _outliers(estimator: Any, rows: Any) -> dict[str, Any]:
    """Return a line for each sample: how far it lies out, and why it is an outlier if it is one."""
    score, orthogonal = estimator.score_distances_, estimator.orthogonal_distances_
    columns = sample_column(rows) | {
        "score_distance": score,
        "orthogonal_distance": orthogonal,
        "beyond_score_limit": score > estimator.score_limit_,
        "beyond_orthogonal_limit": orthogonal > estimator.orthogonal_limit_,
    }
    if estimator.method == "cellwise":
        columns["weight"] = estimator.row_weights_
    if estimator.method in BY_CELLS:
        columns["bad_cells"] = _count_bad(estimator, rows)
    return columns | {"outlier": estimator.outliers_}


def _count_bad(estimator: Any, rows: Any) -> "Array":
    """Return how many cells of each sample are bad."""
    import numpy as np

    if estimator.method in TELL_CELLS:
        return np.asarray(estimator.outlying_cells_.sum(axis=1))
    return np.asarray(estimator._count_bad_cells(rows))[:, 0]


def _bad_by_column(estimator: Any, rows: Any) -> "Array":
    import numpy as np

    from princomp.images.residual_cells import LIMIT

    if estimator.method in TELL_CELLS:
        return np.asarray(estimator.outlying_cells_.sum(axis=0))
    return (np.abs(np.asarray(estimator.cell_residuals(rows))) > LIMIT).sum(axis=0)


def _cells(estimator: Any, rows: Any) -> "tuple[Array, Array, Array, Array]":
    """Return the data, what the fit says they should be, the residuals in standard deviations, and which are bad."""
    import numpy as np

    from princomp.data import Centered, statistics
    from princomp.images.residual_cells import LIMIT

    X = statistics.whole(Centered(rows))
    residuals = np.asarray(estimator.cell_residuals(rows))
    apart, told = estimator.method in TAKEN_APART, estimator.method in TELL_CELLS
    fitted = estimator.low_rank_ if apart else np.asarray(estimator.inverse_transform(estimator.transform(rows)))
    return X, fitted, residuals, estimator.outlying_cells_ if told else np.abs(residuals) > LIMIT


def _cells_table(rows: Any, X: "Array", fitted: "Array", residuals: "Array", bad: "Array") -> dict[str, Any]:
    """Return a line for each bad cell, the worst first."""
    import numpy as np

    i, j = np.nonzero(bad)
    worst = np.argsort(-np.abs(residuals[i, j]), kind="stable")
    i, j = i[worst], j[worst]
    ((name, samples),) = sample_column(rows).items()
    return {
        name: np.asarray(samples)[i],
        "column": np.asarray(_names(rows))[j],
        "value": X[i, j],
        "expected": fitted[i, j],
        "residual": residuals[i, j],
    }


def _as_data(rows: Any, values: "Array") -> dict[str, Any]:
    """Return a table of all cells, as the data are."""
    columns = sample_column(rows)
    return columns | {
        f"{name} (column)" if name in columns else name: values[:, j] for j, name in enumerate(_names(rows))
    }


def _names(rows: Any) -> list[str]:
    return [f"x{j}" for j in range(rows.shape[1])] if rows.names is None else list(rows.names)


# What is said


def notes(estimator: Any, rows: Any) -> list[str]:
    """Say how many cells are missing, which samples lie farthest out, how many cells are bad, and where to read on."""
    said = [*_missing(rows), *_far_out(estimator, rows), *_bad_cells(estimator, rows), *_one_column(estimator, rows)]
    if are_images(rows):
        said.append("Background and foreground of each image are in the folders of these names, some in strip.png.")
    if estimator.method == "pcp" and _are_rounded(rows) and estimator.tol == ROUNDED:
        said.append("Pixels are whole numbers, so that tol is 0.001, if not asked otherwise: --tol.")
    return said


def _missing(rows: Any) -> list[str]:
    from princomp.data import statistics

    missing, cells = int(statistics.column_faults(rows, center=False)[0].sum()), rows.shape[0] * rows.shape[1]
    if not missing:
        return []
    where = f" What the fit says of them is in {CLEANED}." if rows.layout is None else ""
    return [f"{missing} of {cells} cells ({missing / cells:.1%}) are missing: the fit uses the others.{where}"]


def _far_out(estimator: Any, rows: Any) -> list[str]:
    import numpy as np

    out = np.flatnonzero(estimator.outliers_)
    n = len(estimator.outliers_)
    if not len(out):
        return [f"None of {count(n, 'sample')} is an outlier."]
    limits = [max(limit, np.finfo(float).tiny) for limit in (estimator.score_limit_, estimator.orthogonal_limit_)]
    beyond = np.maximum(estimator.score_distances_ / limits[0], estimator.orthogonal_distances_ / limits[1])
    worst = out[np.argsort(-beyond[out], kind="stable")]
    names = next(iter(sample_column(rows).values()))
    farthest = ", the farthest first" if 1 < len(out) <= NAMED else ", the farthest" if len(out) > NAMED else ""
    are, which = "is an outlier" if len(out) == 1 else "are outliers", ", ".join(shown(names[i]) for i in worst[:NAMED])
    return [f"{len(out)} of {count(n, 'sample')} ({len(out) / n:.1%}) {are}{farthest}: {which}. See {OUTLIERS}."]


def _bad_cells(estimator: Any, rows: Any) -> list[str]:
    if estimator.method not in BY_CELLS:
        return []
    n, p = rows.shape
    total = int(_count_bad(estimator, rows).sum())
    if not total:
        return ["No cell is bad."]
    said = f"{total} of {n * p} cells ({total / (n * p):.1%}) {'is' if total == 1 else 'are'} bad"
    if rows.layout is not None:
        return [f"{said}."]
    per_column = _bad_by_column(estimator, rows)
    most = int(per_column.argmax())
    many = [TOO_MANY] if estimator.method == "pcp" and total >= MANY * n * p else []
    if estimator.method == "cellwise" and not estimator.scale and per_column[most] >= MANY * n:
        many = [UNSCALED]
    share = percent(float(per_column[most]) / n).replace("\xa0", " ")
    where = f"most of them in the column {shown(_names(rows)[most])} ({share} of it)"
    return [f"{said}, {where}. See {CELLS} and {CLEANED}.", *many]


def _one_column(estimator: Any, rows: Any) -> list[str]:
    """Say, of methods that tell of no cell, if what varies is one column, and how to scale."""
    import numpy as np

    if estimator.method in TELL_CELLS or estimator.scale or rows.layout is not None or rows.shape[1] == 1:
        return []
    V, deviations = np.asarray(estimator.components_, float), np.sqrt(np.asarray(estimator.explained_variance_, float))
    lengths = np.linalg.norm(V * (deviations / max(deviations.max(initial=0.0), np.finfo(float).tiny))[:, None], axis=0)
    most, total = int(lengths.argmax()), float(np.square(lengths).sum())
    if total == 0 or lengths[most] ** 2 < MOST * total:
        return []
    share = percent(float(lengths[most] ** 2 / total)).replace("\xa0", " ")
    way = "--scale." if estimator.method == "robpca" else SCALED
    return [ONE_COLUMN.format(share=share, name=shown(_names(rows)[most])) + way]


METHOD = Robust(
    name="robust",
    estimator="RobustPCA",
    summary="components that bad cells, bad rows and missing cells do not bend, and which these are",
    options=(
        click.Option(
            ["--robust-method"],
            type=click.Choice(METHODS),
            help="Against bad cells without noise (a video), bad and missing cells and rows in noise, whole rows "
            "without noise, whole rows in noise, whole rows of large data, or cells in a stream. [default: pcp]",
        ),
        click.Option(
            ["--alpha"],
            type=click.FloatRange(min=0, min_open=True),
            help="What a unit of the sparse part costs. [default for pcp: 1/sqrt(max(rows, columns))]",
        ),
        click.Option(
            ["--solver"],
            type=click.Choice(["auto", "convex", "alternating"]),
            help="Of pcp; alternating is fast where the rank is known: -k.",
        ),
        click.Option(
            ["--coverage"], type=click.FloatRange(0.5, 1), help="Of robpca: share of good rows. [default: 0.75]"
        ),
        click.Option(["--scale"], is_flag=True, default=None, help="Divide columns by robust scales."),
        click.Option(["--batch-size"], type=click.IntRange(min=1), help="Of online: rows at a time. [default: 100]"),
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    components=None,
    reading=(
        click.Option(
            ["--parts"],
            is_flag=True,
            default=None,
            help="Keep what is as large as the data: low_rank.csv and sparse.csv, and such arrays in the model file.",
        ),
        IMAGE_SHAPE,
    ),
    sides=as_images,
    renamed={"robust_method": "method"},  # --method is taken
    files=(*TABLES, *FRAMES),
    suits=suits,
    tables=tables,
    pictures=write_frames,
    notes=notes,
)
