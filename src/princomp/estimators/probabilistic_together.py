"""Columns that no row has both of: how these vary together is not in the data."""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import statistics
from princomp.estimators.checks import column
from princomp.solvers.probabilistic_em import Data

SOME = 128  # rows that are looked at first: with cells missing at random they have all pairs
MOST = 4000  # columns for which pairs are counted; of more, as many, evenly spread, stand for all
NAMED = 3  # pairs


def never_together(data: Data, names: Any) -> str | None:
    """Return a sentence that names columns which no row has both of, or None if there are none."""
    n, p = data.rows.shape
    columns = np.unique(np.linspace(0, p - 1, min(p, MOST)).astype(int))
    rows = np.arange(n) if data.weight is None else np.flatnonzero(data.weight)
    some = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), SOME)).astype(int))]
    seen = ~np.isnan(statistics.take(data.around(), some)[:, columns])
    if _met(seen).all():
        return None
    met = data.around().reduce(_pairs, columns, data.weight)
    apart = np.argwhere(np.triu(met == 0, 1))
    if not len(apart):
        return None
    named = ", ".join(f"{column(names, columns[i])} and {column(names, columns[j])}" for i, j in apart[:NAMED])
    more = f" (and {len(apart) - NAMED} more pairs)" if len(apart) > NAMED else ""
    looked = f", of {len(columns)} columns that were looked at," if len(columns) < p else ""
    return (
        f"No row has both of the columns {named}{more}{looked}: how these vary together is not in the data. Their "
        "covariance in the model is a guess from the other columns, or arbitrary."
    )


def _met(seen: Array) -> Array:
    """Return how many rows have both of two columns, (p, p)."""
    cells = seen.astype(np.float32)  # counts of a tile are exact
    return cells.T @ cells


def _pairs(block: Array, rows: slice, columns: Array, weight: Array | None) -> Array:
    seen = ~np.isnan(block[:, columns])
    return _met(seen if weight is None else seen[weight[rows] > 0])
