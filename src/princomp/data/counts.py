"""Counts of single cells on their way to a model: normalised, their logarithms taken, some genes left out.

What a block function is given is made of the rows beneath, block by block: no changed copy of the data exists, and
sparse blocks stay sparse.
"""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data.memory import working_dtype
from princomp.data.reading import DataError
from princomp.data.rows import Rows
from princomp.data.wrapped import Wrapped


def prepared(rows: Rows, name: str, *, target: float | None, log1p: bool, keep: Array | None) -> Rows:
    """Return rows with the total ``target`` each, then log(1 + x) of them, then the columns to ``keep`` (p,) of bool.

    Totals are those of all columns. A row whose total is 0 stays as it is. ``name`` is said in errors.
    """
    if target is None and not log1p and keep is None:
        return rows
    places = None if keep is None else np.flatnonzero(keep)
    changed = Wrapped(rows, _prepared, name, target, log1p, places)
    if places is not None:
        changed.shape = (rows.shape[0], len(places))
        changed.names = None if rows.names is None else tuple(rows.names[j] for j in places)
    return changed


def _prepared(
    block: Any, rows: slice, name: str, target: float | None, log1p: bool, places: Array | None
) -> tuple[Any, slice]:
    totals = None if target is None else row_totals(block, rows)[:, 0]
    if places is not None:  # before the logarithms, of which it saves most; the result is the same
        block = block[:, places]
    values = block if isinstance(block, np.ndarray) else block.data
    dtype = working_dtype(values.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is the estimator's to tell
        if totals is not None:
            factor = np.where(totals == 0.0, 1.0, totals / target).astype(dtype)
            by = factor[:, None] if values is block else np.repeat(factor, np.diff(block.indptr))
            values = np.divide(values, by, dtype=dtype)
        if log1p:
            if values.size and values.min() <= -1:
                raise DataError(
                    f"{name} holds numbers of -1 or less, which have no log1p: they are no counts. Read the layer "
                    "that holds these, or leave log1p out."
                )
            values = np.log1p(values, dtype=dtype)
    if isinstance(block, np.ndarray):
        return values, rows
    return _with_data(block, values), rows


def _with_data(block: Any, data: Array) -> Any:
    """Return a CSR array with the nonzeros of another and other numbers in their places."""
    import scipy.sparse as sp

    other = sp.csr_array((data, block.indices, block.indptr), shape=block.shape)
    other.has_canonical_format = True  # as the other is
    return other


def row_totals(block: Any, rows: slice) -> Array:
    """Return the sums of rows in float64, (m, 1)."""
    return np.asarray(block @ np.ones((block.shape[1], 1)))


def median_total(rows: Rows, name: str) -> float:
    """Return the median of the totals of rows that have one above 0."""
    totals = rows.gather(row_totals, width=1, dtype=np.float64)
    if not (totals > 0).any():
        raise DataError(f"{name} has no row whose total is above 0: it cannot be normalised to their median.")
    return float(np.median(totals[totals > 0]))
