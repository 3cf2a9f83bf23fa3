"""Cells that are judged one by one: what components leave of them, and what they say in place of bad ones."""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.estimators.robust.scores import judged
from princomp.solvers.robust.bounded import Spreads
from princomp.solvers.robust.cellwise_start import OF_CELLS
from princomp.solvers.robust.deviations import LIMIT

MOSTLY = 0.5  # of the cells of a row: with more of them bad, it is the row that is


def residuals(block: Array, rows: slice, V: Array, spreads: Spreads | None, unit: Array) -> Array:
    """Return what components V (p, k) leave of each cell of centred and scaled rows, over ``unit`` (p,)."""
    return (block - judged(block, V, spreads).Z @ V.T) / unit


def bad_cells(block: Array, rows: slice, V: Array, spreads: Spreads | None, unit: Array, least: float) -> Array:
    """Return how many cells of each row have residuals beyond ``LIMIT``, and how many are there, (m, 2).

    Where nothing is known of errors, a cell is bad that stands out of what the row's others leave, and is further than
    ``least`` from what components say; and any that is beyond the limit in ``unit``.
    """
    found = judged(block, V, spreads)
    left, limits = np.abs(block - found.Z @ V.T), LIMIT * unit
    if spreads is None:
        limits = np.minimum(np.maximum(LIMIT * found.scales[:, None], least), limits)
    return np.column_stack([(left > limits).sum(axis=1), (~np.isnan(left)).sum(axis=1)])


def row_lengths(block: Array, rows: slice, V: Array, spreads: Spreads) -> Array:
    """Return t of each row (m, 1), whose weight in cellPCA is that of its length: 0 where it has no cell."""
    found = judged(block, V, spreads)
    there = ~np.isnan(block)
    left = np.where(there, block - found.Z @ V.T, 0.0)
    noise = spreads.noise
    squares = OF_CELLS.values(left / np.where(noise > 0, noise, 1.0)) @ noise**2
    return np.sqrt(squares / np.maximum(there.sum(axis=1), 1))[:, None]


def refilled(
    block: Any, rows: slice, V: Array, spreads: Spreads | None, mean: Array, scale: Array, least: float, outlying: bool
) -> Array:
    """Return rows as they are, with missing cells, and ``outlying`` ones if asked for, as components V say.

    Cells that are no further than ``least`` from that are good, however well other cells of the row fit.
    """
    given = np.asarray(block.toarray() if hasattr(block, "toarray") else block)
    found = judged((given - mean) / scale, V, spreads)
    said = found.Z @ V.T * scale + mean
    kept = found.clean | (np.abs(given - said) <= least) if outlying else ~np.isnan(given)
    return np.where(kept, given, said)
