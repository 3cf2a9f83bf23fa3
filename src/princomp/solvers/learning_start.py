"""Atoms to begin with: rows of the data, normalised."""

from __future__ import annotations

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.solvers.learning_atoms import Atoms

MORE = 2  # times as many rows as atoms are looked at: some are zero, or alike
TWIN = 0.99
WILD = 3.0
TOGETHER = 256  # rows that are compared with the atoms before them at a time


def start(rows: Rows, K: int, atoms: Atoms, rng: np.random.Generator, *, tame: bool = False) -> Array:
    """Return K atoms (K, p): rows drawn at random, no two of them parallel; directions at random where rows are few.

    With ``tame``, wild cells, those more than `WILD` sd of their column from its median, are brought back to there.
    """
    n, p = rows.shape
    numbers = rng.permutation(n)[: MORE * K]
    found = statistics.take(Centered(rows), numbers)[np.argsort(np.argsort(numbers))]
    if tame:
        found = tamed(found)
    D = new_directions(np.nan_to_num(found), np.empty((0, p)), K, atoms)
    D = new_directions(rng.standard_normal((K, p)), D, K, atoms)
    if len(D) < K:  # of one or two columns there are no more directions
        more = rng.standard_normal((K - len(D), p))
        more = np.abs(more) if atoms.nonnegative else more
        D = np.vstack([D, more / np.linalg.norm(more, axis=1, keepdims=True)])
    return atoms.allowed(D)


def new_directions(found: Array, D: Array, K: int, atoms: Atoms) -> Array:
    """Return D and, after its atoms, up to K in all, those rows, normalised, that are parallel to none before them."""
    parts = [D]
    for begin in range(0, len(found), TOGETHER):
        lacking = K - sum(map(len, parts))
        if not lacking:
            break
        some = found[begin : begin + TOGETHER]
        if atoms.nonnegative:
            some = np.where((some > 0).any(axis=1, keepdims=True), np.maximum(some, 0.0), np.abs(some))
        length = np.linalg.norm(some, axis=1)
        some, length = some[(length > 0) & (length < np.inf)], length[(length > 0) & (length < np.inf)]
        some = some / length[:, None]
        before = np.max([np.abs(some @ part.T).max(axis=1, initial=0.0) for part in parts], axis=0)
        cosines, taken = np.abs(some @ some.T), list[int]()
        for i in np.flatnonzero(before <= TWIN):
            if len(taken) < lacking and cosines[i, taken].max(initial=0.0) <= TWIN:
                taken.append(int(i))
        parts.append(some[taken])
    return np.vstack(parts)


def tamed(X: Array) -> Array:
    """Return rows with wild cells brought back; the sd is that of normal numbers with the same median deviation."""
    there = np.ma.masked_invalid(X)
    middle = np.ma.median(there, axis=0)
    reach = WILD * 1.4826 * np.ma.median(np.ma.abs(there - middle), axis=0)
    low, high = (np.ma.filled(bound, 0.0) for bound in (middle - reach, middle + reach))
    return np.clip(X, low, high)
