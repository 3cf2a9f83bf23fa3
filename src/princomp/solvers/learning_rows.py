"""Rows in mini-batches, in an order that a seed decides and blocks do not.

Here an epoch goes through a permutation of all row numbers, and as much of it as fits into some memory is read in one
pass. On workers, where a pass is dear, a step is a pass: whoever holds a block codes those of its rows whose turn it
is, and the sums come back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.solvers.learning_coded import Coded, Task, merge
from princomp.solvers.learning_statistics import code_block, code_rows

CHUNK_BYTES = 2**28  # of rows that are held at a time, dense in float64
# On workers a step should have rows enough to be worth a pass: so many for each second that a pass costs anyway.
ROWS_PER_SECOND = 20_000


class Batches:
    """Mini-batches of rows, for `coded`.

    Parameters
    ----------
    rows : Rows
        The data.
    size : int
        Rows of a mini-batch. On workers they may be more, and are not exactly as many.
    seed : int or None
        Decides the order, together with the number of the epoch; None for the order in which rows come.
    """

    def __init__(self, rows: Rows, size: int, seed: int | None) -> None:
        self.rows, self.asked, self.seed = rows, size, seed
        n, p = rows.shape
        self.remote = rows.pass_seconds > 0
        if self.remote:
            size = max(size, int(ROWS_PER_SECOND * rows.pass_seconds))
        self.size = min(size, n)
        self.steps = -(-n // self.size)  # in an epoch
        self._in_chunk = max(CHUNK_BYTES // (8 * p * self.size), 1)  # steps, of rows that are held at a time
        self._epoch: int | None = None
        self._order = np.arange(n)
        self._chunk: tuple[int, int] | None = None
        self._numbers, self._held = np.empty(0, np.int64), np.empty((0, p))

    def coded(self, step: int, task: Task) -> Coded:
        """Code the mini-batch of a step, counted from the first epoch on."""
        epoch, place = divmod(step, self.steps)
        if self.remote:
            how = (task, place, self.steps, self._key(epoch), self.rows.shape[0])
            coded: Coded = self.rows.reduce(code_turn, *how, combine=merge)
            return coded
        wanted = self._row_numbers(epoch)[place * self.size : (place + 1) * self.size]
        self._hold(epoch, place // self._in_chunk)
        return code_rows(self._held[np.searchsorted(self._numbers, wanted)], wanted, task)

    def _key(self, epoch: int) -> int | None:
        """Return what decides whose turn it is in an epoch."""
        return None if self.seed is None else int(np.random.default_rng([self.seed, epoch]).integers(2**63))

    def _row_numbers(self, epoch: int) -> Array:
        """Return all row numbers in the order of this epoch."""
        if self._epoch != epoch and self.seed is not None:
            self._order = np.random.default_rng([self.seed, epoch]).permutation(self.rows.shape[0])
        self._epoch = epoch
        return self._order

    def _hold(self, epoch: int, chunk: int) -> None:
        """Read the rows of some steps of an epoch, unless they are held: all rows, if they are few enough."""
        everything = self._in_chunk >= self.steps
        which = (0, 0) if everything else (epoch, chunk)
        if self._chunk == which:
            return
        size = self._in_chunk * self.size
        self._numbers = np.sort(self._order[chunk * size : (chunk + 1) * size])
        self._held = np.empty((0, 0))  # the rows before are let go first
        self._held = statistics.take(Centered(self.rows), self._numbers)
        self._chunk = which


def code_turn(block: Any, rows: slice, task: Task, turn: int, steps: int, key: int | None, n: int) -> Coded:
    """Code those rows of a block whose turn it is."""
    numbers = np.arange(rows.start, rows.stop)
    mine = np.flatnonzero(turns(numbers, steps, key, n) == turn)
    if len(mine) == len(numbers):
        return code_block(block, rows, task)
    return code_rows(block[mine], numbers[mine], task)


def turns(numbers: Array, steps: int, key: int | None, n: int) -> Array:
    """Return at which of an epoch's steps it is each row's turn: pseudo-random (splitmix64), or in their order."""
    if key is None:
        return numbers * steps // n
    z = (numbers.astype(np.uint64) + np.uint64(key)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) % np.uint64(steps)).astype(np.int64)
