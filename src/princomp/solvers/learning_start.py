"""Atoms to begin with: rows of the data, normalised."""

from __future__ import annotations

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.solvers.learning_atoms import Atoms

MORE = 2  # times as many rows as atoms are looked at: some are zero, or alike
TWIN = 0.99


def start(rows: Rows, K: int, atoms: Atoms, rng: np.random.Generator) -> Array:
    """Return K atoms (K, p): rows drawn at random, no two of them parallel; directions at random where rows are few."""
    n, p = rows.shape
    numbers = rng.permutation(n)[: MORE * K]
    found = statistics.take(Centered(rows), numbers)[np.argsort(np.argsort(numbers))]
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
