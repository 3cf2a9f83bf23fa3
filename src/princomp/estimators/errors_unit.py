"""How large the error of a cell is, for a loss that is given by its name: its width goes by that."""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.data import Centered, Rows, statistics
from princomp.losses import Squared, as_loss
from princomp.solvers.learning_atoms import Atoms, improved
from princomp.solvers.learning_coded import Task
from princomp.solvers.learning_state import together
from princomp.solvers.learning_statistics import code_rows

SAMPLE, TURNS = 1000, 10  # rows that are looked at, and turns
SMOOTHED = 30.0  # for "l1", of the size of a cell: errors below 3 % of it count by their squares


def unit_of_errors(rows: Rows, loss: Any, D: Array, coder: Coder, atoms: Atoms | None = None) -> float:
    """Return the size of a cell's error, of some rows, after a few turns of coding, and of learning if atoms may move.

    It is 1.4826 times the median of what codes leave, the sd of normal errors, which wild cells do not rule. Each turn
    has the loss that the last one's errors ask for: those of the first atoms are too large by far. Absolute errors
    would leave most cells without any, and atoms could hardly move: for them it goes by the cells themselves.
    """
    if not isinstance(loss, str) or isinstance(as_loss(loss), Squared):
        return 1.0
    some = np.unique(np.linspace(0, rows.shape[0] - 1, SAMPLE).astype(int))
    X = statistics.take(Centered(rows), some)
    unit = _median_size(X)
    if loss == "l1":
        return SMOOTHED * unit
    for _ in range(TURNS):
        task = Task(D, coder, by_cell=True, loss=as_loss(loss, unit), keep=True)
        coded = code_rows(X, np.arange(len(X)), task)
        unit = _median_size(X - together(coded.codes) @ D) or unit
        if atoms is not None:
            D = improved(D, coded.A / coded.count, coded.B / coded.count, atoms)
    return unit


def _median_size(cells: Array) -> float:
    """Return 1.4826 times the median of |cells| that are there, of those that are not 0 if most are; or else 1."""
    size = np.abs(cells[~np.isnan(cells)])
    middle = float(np.median(size)) if len(size) else 0.0
    return 1.4826 * middle or float(size[size > 0].mean() if (size > 0).any() else 1.0)
