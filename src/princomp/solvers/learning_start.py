"""Atoms to begin with: rows of the data, normalised."""

from __future__ import annotations

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.solvers.learning_atoms import Atoms

MORE = 2  # times as many rows as atoms are looked at: some are zero, or alike
TWIN = 0.99
WILD = 3.0


def start(rows: Rows, K: int, atoms: Atoms, rng: np.random.Generator, *, tame: bool = False) -> Array:
    """Return K atoms (K, p): rows drawn at random, no two of them parallel; directions at random where rows are few.

    With ``tame``, wild cells, those more than `WILD` sd of their column from its median, are brought back to there.
    """
    n, p = rows.shape
    numbers = rng.permutation(n)[: MORE * K]
    found = statistics.take(Centered(rows), numbers)[np.argsort(np.argsort(numbers))]
    if tame:
        found = tamed(found)
    D = np.empty((0, p))
    for row in (*np.nan_to_num(found), *rng.standard_normal((K, p))):
        if len(D) == K:
            break
        if atoms.nonnegative:
            row = np.maximum(row, 0.0) if (row > 0).any() else np.abs(row)
        length = float(np.linalg.norm(row))
        if 0 < length < np.inf and np.abs(D @ row).max(initial=0.0) <= TWIN * length:
            D = np.vstack([D, row / length])
    if len(D) < K:  # of one or two columns there are no more directions
        more = rng.standard_normal((K - len(D), p))
        more = np.abs(more) if atoms.nonnegative else more
        D = np.vstack([D, more / np.linalg.norm(more, axis=1, keepdims=True)])
    return atoms.allowed(D)


def tamed(X: Array) -> Array:
    """Return rows with wild cells brought back; the sd is that of normal numbers with the same median deviation."""
    there = np.ma.masked_invalid(X)
    middle = np.ma.median(there, axis=0)
    reach = WILD * 1.4826 * np.ma.median(np.ma.abs(there - middle), axis=0)
    low, high = (np.ma.filled(bound, 0.0) for bound in (middle - reach, middle + reach))
    return np.clip(X, low, high)
