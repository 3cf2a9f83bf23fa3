"""Cells that are judged one by one: what components leave of them, and what they say in place of bad ones."""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.estimators.robust.scores import judged
from princomp.solvers.robust.bounded import Spreads
from princomp.solvers.robust.deviations import LIMIT


def residuals(block: Array, rows: slice, V: Array, spreads: Spreads | None, unit: Array) -> Array:
    """Return what components V (p, k) leave of each cell of centred and scaled rows, over ``unit`` (p,)."""
    return (block - judged(block, V, spreads).Z @ V.T) / unit


def bad_cells(block: Array, rows: slice, V: Array, spreads: Spreads | None, unit: Array) -> Array:
    """Return how many cells of each row have residuals beyond ``LIMIT``, and how many are there, (m, 2)."""
    found = np.abs(residuals(block, rows, V, spreads, unit))
    return np.column_stack([(found > LIMIT).sum(axis=1), (~np.isnan(found)).sum(axis=1)])


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
