"""`Centered`: rows less their mean, times a factor, seen by block functions without a centred copy of the data."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data.memory import MemoryRows
from princomp.data.outputs import Outputs, Together
from princomp.data.rows import Function, Merge, Rows, add, centre
from princomp.data.sparse import CenteredSparse
from princomp.data.wrapped import Change, of_changed

# A tile of a product should stay in the second-level cache, but a tile of a few rows would waste BLAS (4 to 20 columns,
# 300 to 20,000 columns of X, in both precisions).
PRODUCT_BYTES = 2**20
PRODUCT_ROWS = 128
WIDE_BYTES = 2**21  # unless rows are so long that this is more
LEAST_ROWS = 16
# Factors of columns between which numbers that are multiplied by them instead of the data neither overflow nor vanish.
UNITS = (1e-100, 1e100)
UNITS_SINGLE = (1e-12, 1e12)
# A Gram matrix adds p x p numbers for each tile: more rows to a tile make that cheap. Of narrow data a tile has more
# still, but no more than sums in single precision may have.
GRAM_ROWS = 1024
GRAM_BYTES = 2**19
MOST_GRAM_ROWS = 8192


class Centered:
    """The matrix (X - 1 mean') diag(factor), for X in `Rows`.

    Dense blocks are centred tile by tile into one small float64 buffer, which is exact at any offset and, for tall
    matrices, faster than BLAS on a centred copy; sparse blocks are centred implicitly, by correcting products, which
    costs a relative error of (mean / standard deviation)^2 eps, or, with ``dense_tiles``, in dense tiles as well.

    Parameters
    ----------
    rows : Rows
        The data.
    mean : (p,) array or None
        What to subtract; None for nothing.
    factor : (p,) array or None
        What to multiply columns by afterwards; None for nothing.
    dense_tiles : bool
        For sparse data: make tiles of it dense one at a time, because some column's mean dwarfs its deviation.
    single : bool
        Hand tiles over in single precision (after centring in double): twice as fast, for a first approximation.
    """

    def __init__(
        self,
        rows: Rows,
        mean: Array | None = None,
        factor: Array | None = None,
        *,
        dense_tiles: bool = False,
        single: bool = False,
    ) -> None:
        self.rows, self.mean, self.factor = rows, mean, factor
        self.dense_tiles, self.single = dense_tiles, single
        self.changes: tuple[tuple[Change, tuple[Any, ...]], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p), asked for only when needed: rows that are elsewhere may have to be counted."""
        return self.rows.shape

    def implicit(self, block: Any) -> CenteredSparse:
        """Return a sparse block of these rows, centred implicitly."""
        return next(_tiles(block, slice(0, block.shape[0]), self._view()))[0]

    def in_dense_tiles(self) -> Centered:
        """Return the same matrix, sparse blocks handed over in dense tiles."""
        return self._but(dense_tiles=True)

    def in_single(self) -> Centered:
        """Return the same matrix in single precision."""
        rows, centred = self.rows.in_single(self.mean, self.factor)
        known: dict[str, Any] = {"mean": None, "factor": None, "dense_tiles": False} if centred else {}
        return self._but(rows=rows, single=True, **known)

    def kept(self) -> Centered:
        """Return the same matrix, centred and scaled once and for all if it is an array here, of a block at the most.

        A copy of what is that small costs less than to centre it anew in every pass.
        """
        rows, (n, p) = self.rows, self.shape
        small = isinstance(rows, MemoryRows) and not rows.changeable and len(rows.offsets) == 2
        if not small or self.changes or (self.mean is None and self.factor is None):
            return self
        with np.errstate(over="ignore", invalid="ignore"):
            copy = centre(rows.block(0), self.mean, self.factor, np.empty((n, p)))
        return Centered(MemoryRows(copy), single=self.single)

    def on(self, rows: Rows) -> Centered:
        """Return the same of other rows."""
        return self._but(rows=rows)

    def apart(self) -> tuple[Centered, Array | None, Array | float]:
        """Return these rows, a mean to take off tiles, and a factor, (p, 1) or 1, for what is multiplied by columns.

        So a tile need not be centred before it is in the cache, nor scaled at all. The mean is None, and the factor 1,
        of rows that see to both themselves: sparse ones, those that are changed, and those in units that are extreme.
        """
        if self.rows.sparse or self.changes:
            return self, None, 1.0
        if self.factor is None:
            return self._but(mean=None), self.mean, 1.0
        low, high = UNITS_SINGLE if self.single else UNITS
        if not low < self.factor.min() <= self.factor.max() < high:
            return self, None, 1.0
        return self._but(mean=None, factor=None), self.mean, self.factor[:, None]

    def changed(self, change: Change, *how: Any) -> Centered:
        """Return this matrix with ``change(tile, rows, *how)`` for each tile: weights, or cells that are hidden.

        Tiles are dense. As of all block functions, the work is done where the rows are.
        """
        return self._but(dense_tiles=True, changes=((change, how), *self.changes))

    def _but(self, **other: Any) -> Centered:
        new = copy(self)
        new.__dict__.update(other)
        return new

    def _of_changed(self, fn: Function, state: tuple[Any, ...]) -> tuple[Function, tuple[Any, ...]]:
        """Return a function of tiles as they are, and its state, that gives what ``fn`` gives of changed ones."""
        for change, how in self.changes:  # the last one, which is called last, first
            fn, state = of_changed, (how, change, fn, *state)
        return fn, state

    def reduce(
        self, fn: Function, *state: Any, combine: Merge = add, tile_rows: int | None = None, **blocks: Any
    ) -> Any:
        """Return the sum of ``fn(tile, rows, *state)`` over all centred tiles (see `Rows.reduce`)."""
        view = self._view(tile_rows)
        fn, state = self._of_changed(fn, state)
        return self.rows.reduce(_reduce_tiles, view, fn, combine, state, combine=combine, **blocks)

    def map(self, fn: Function, *state: Any, **outputs: Any) -> Any:
        """Return ``fn(tile, rows, *state)`` row by row over all centred tiles (see `Rows.map`)."""
        fn, state = self._of_changed(fn, state)
        return self.rows.map(_map_tiles, self._view(), fn, state, Outputs(**outputs), **outputs)

    def gather(self, fn: Function, *state: Any, width: int, dtype: Any = np.float64) -> Array:
        """Return what `map` does as a NumPy array here, whatever the storage (see `Rows.gather`)."""
        fn, state = self._of_changed(fn, state)
        how = (self._view(), fn, state, Outputs(width, dtype))
        return self.rows.gather(_map_tiles, *how, width=width, dtype=dtype)

    def tile_rows(self, columns: int = 1) -> int:
        """Return the number of rows of a tile for products with so many columns: many are worth a larger buffer."""
        row = max(self.rows.width, 1) * (4 if self.single else 8)
        wide = WIDE_BYTES * max(columns // 16, 1)
        return int(max(PRODUCT_BYTES // row, min(PRODUCT_ROWS, wide // row), LEAST_ROWS))

    def gram_rows(self) -> int:
        """Return the number of rows of a tile for a product with itself."""
        return int(min(max(GRAM_BYTES // (8 * max(self.rows.width, 1)), GRAM_ROWS), MOST_GRAM_ROWS))

    def _view(self, tile_rows: int | None = None) -> View:
        dtype = np.dtype("f4" if self.single else "f8")
        rows = tile_rows or self.tile_rows()
        return View(self.mean, self.factor, self.dense_tiles, dtype, rows, tile_rows or max(rows, PRODUCT_ROWS))


class View(NamedTuple):
    """How a block is to be seen; sent to workers with the block function."""

    mean: Array | None
    factor: Array | None
    dense_tiles: bool
    dtype: np.dtype[Any]
    tile_rows: int
    rows_as_they_are: int  # of a tile that needs no buffer


def _tiles(block: Any, rows: slice, view: View) -> Iterator[tuple[Any, slice]]:
    """Yield (centred tile, global rows) over a block; a tile lives only until the next one is asked for."""
    n, p = block.shape
    sparse = not isinstance(block, np.ndarray)
    if sparse and not view.dense_tiles:
        mean = np.zeros(p) if view.mean is None else view.mean
        factor = np.ones(p) if view.factor is None else view.factor
        yield CenteredSparse(block.astype(view.dtype, copy=False), mean, factor), rows
        return
    untouched = view.mean is None and view.factor is None and not sparse
    as_it_is = untouched and block.dtype == view.dtype and block.flags.c_contiguous
    size = view.rows_as_they_are if as_it_is else view.tile_rows
    buffer = None if as_it_is else np.empty((min(size, n), p), view.dtype)
    for begin in range(0, n, size):
        part = block[begin : begin + size]
        where = slice(rows.start + begin, rows.start + begin + part.shape[0])
        if buffer is None:
            yield part, where
        else:
            tile = buffer[: part.shape[0]]
            yield centre(part.toarray() if sparse else part, view.mean, view.factor, tile), where


def _reduce_tiles(block: Any, rows: slice, view: View, fn: Function, combine: Merge, state: Any) -> Any:
    total = None
    # What is not finite shows in the sums, and is then looked for: no warnings on the way.
    with np.errstate(over="ignore", invalid="ignore"):
        for tile, where in _tiles(block, rows, view):
            part = fn(tile, where, *state)
            total = part if total is None else combine(total, part)
    return total


def _map_tiles(block: Any, rows: slice, view: View, fn: Function, state: Any, wanted: Outputs) -> Any:
    out = Together(block.shape[0], wanted)
    with np.errstate(over="ignore", invalid="ignore"):
        for tile, where in _tiles(block, rows, view):
            out.put(slice(where.start - rows.start, where.stop - rows.start), fn(tile, where, *state))
    return out.answer()
