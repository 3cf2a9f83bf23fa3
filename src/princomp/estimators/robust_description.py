"""What a robust PCA says of itself: which samples lie out, how far, and what the components leave of each cell."""

from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import count, percent
from princomp._typing import Array
from princomp.data import as_rows
from princomp.estimators.description import (
    Cells,
    Description,
    Distances,
    Scores,
    Table,
    usual_description,
    usual_scores,
)
from princomp.estimators.robust.cells import MOSTLY

MAP = "Outlier map"
MAP_TEXT = (
    "How far each sample lies from the centre along the components, in standard deviations, and how far from what the "
    "components span. 97.5 % of good samples are expected within each of the lines. Samples beyond the upright line "
    "alone are extreme, but follow the components; those above the level line do not follow them; those beyond both "
    "would turn the components of plain PCA the most. Outliers are named, the farthest ones."
)
NOT_BY_LINES = {
    "pcp": "samples more than half of whose cells are bad",
    "cellwise": "samples that count for less than half",
}
WILD = " One wild cell takes a sample beyond the level line, and makes it no outlier."
CELLS = "Cell map"
MOST_CELLS = 20_000_000  # of which residuals are found for a page
HIGH_RANK = 0.5  # of the smaller side of the data: a low-rank part that is not low


def describe_robust(model: Any) -> Description:
    """Return what is said of a robust PCA."""
    found, out = usual_description(model), int(np.count_nonzero(model.outliers_))
    facts = {
        "robust_method": model.method,
        "rank": int(model.rank_),
        "outliers": out,
        "score_limit": float(model.score_limit_),
        "orthogonal_limit": float(model.orthogonal_limit_),
    }
    if hasattr(model, "alpha_"):
        facts["alpha"] = float(model.alpha_)
    sections = [part for part in found.sections if part != "scores"]
    first = [part for part in sections if isinstance(part, Table)]
    return replace(
        found,
        facts={**found.facts, **facts},
        computation=(_how(model), *found.computation),
        counts=(*found.counts, ("outliers", count(out))),
        summary=f"{found.summary} {_outliers(out, len(model.outliers_))}".strip(),
        below=_outliers(out, len(model.outliers_)),
        notes=(*(_beyond_noise(model) if model.method == "online" else found.notes), *_noise(model)),
        sections=(*first, "distances", "cells", "scores", *sections[len(first) :]),
    )


def describe_robust_scores(model: Any, X: Any, values: Any) -> Scores:
    """Return scores with both distances and a verdict; values that are given already come alone: X may not be there."""
    found = usual_scores(model, X, values)
    if values is not None:
        return found
    rows = as_rows(X)
    both = np.asarray(model._distances(rows))
    bad = np.asarray(model._count_bad_cells(rows)) if model._robust_scores() else None
    more: dict[str, Any] = {"score_distance": both[:, 0], "orthogonal_distance": both[:, 1]}
    if bad is not None:
        more["bad_cells"] = bad[:, 0]
    outlier = model._find_outliers(rows, both, bad)
    distances = _map(model, both[:, 0], both[:, 1], outlier)
    return replace(found, columns={**found.columns, **more, "outlier": outlier}, distances=distances)


def describe_robust_fit(model: Any, X: Any) -> Scores:
    """Return scores with the distances that the fit found, which need not be those of new rows."""
    found = _map(model, model.score_distances_, model.orthogonal_distances_, model.outliers_)
    return replace(usual_scores(model, X), distances=found)


def _map(model: Any, score: Array, orthogonal: Array, outliers: Array) -> Distances:
    text = MAP_TEXT
    if (those := NOT_BY_LINES.get(model.method)) is not None:
        text += f" Of this method these are {those}, wherever the lines are.{WILD}"
    limits = float(model.score_limit_), float(model.orthogonal_limit_)
    return Distances(score, orthogonal, *limits, outliers, MAP, text)


def describe_robust_cells(model: Any, X: Any) -> Cells | None:
    """Return what components leave of each cell, of a method that judges cells; not of pixels, nor of huge data."""
    rows = as_rows(X)
    if not model._robust_scores() or rows.layout is not None or rows.shape[0] * rows.shape[1] > MOST_CELLS:
        return None
    return Cells(np.asarray(model.cell_residuals(rows)), usual_description(model).sides[0].features, CELLS)


def _outliers(out: int, n: int) -> str:
    if not out:
        return f"None of {count(n, 'sample')} is an outlier."
    return (
        f"{count(out)} of {count(n, 'sample')} ({percent(out / n)}) {'is an outlier' if out == 1 else 'are outliers'}."
    )


def _how(model: Any) -> str:
    """Say by which method, with what in force."""
    cost = f", a unit of the sparse part costs {float(model.alpha_):.4g}" if hasattr(model, "alpha_") else ""
    return f"Method “{model.method}”{cost}."


def _beyond_noise(model: Any) -> tuple[str, ...]:
    """Say which components of a stream are no more than noise shows: its rank is what stands out of that."""
    k, rank = model.n_components_, int(model.rank_)
    if rank >= k:
        return ()
    those = f"component {k} is" if rank == k - 1 else f"components {rank + 1} to {k} are"
    stand = "stands" if rank == 1 else "stand"
    return (f"{count(rank, 'component')} {stand} out: {those} noise or rounding, and arbitrary.",)


def _noise(model: Any) -> tuple[str, ...]:
    """Say if a low-rank part is not of low rank, or a sparse one not sparse, as happens to noisy data."""
    if model.method == "outlier-pursuit" and np.count_nonzero(model.outliers_) > MOSTLY * len(model.outliers_):
        return (
            "Most rows are called bad: that is a sign of noise, of which “outlier-pursuit” knows nothing, or of an "
            "alpha that is too small. Of noisy rows take “robpca”.",
        )
    smaller = min(model.n_samples_, model.n_features_in_)
    if model.method not in ("pcp", "outlier-pursuit") or model.rank_ < max(3, HIGH_RANK * smaller):
        return ()
    return (
        f"The low-rank part has rank {model.rank_}, of {smaller} at most: that is not low. “{model.method}” is for "
        "data without noise; of noisy ones take “cellwise” for bad cells, “robpca” for bad rows.",
    )
