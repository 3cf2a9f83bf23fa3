"""`Centered`: rows less their mean, times a factor, seen by block functions without a centred copy of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.data.rows import Rows, add
from princomp.data.sparse import CenteredSparse

Array = NDArray[Any]

# A tile of a product should stay in the second-level cache, but a tile of a few rows would waste BLAS.
PRODUCT_BYTES = 2**19
PRODUCT_ROWS = 128
# A Gram matrix adds p x p numbers for each tile: more rows to a tile make that cheap.
GRAM_ROWS = 1024


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
    """

    def __init__(
        self, rows: Rows, mean: Array | None = None, factor: Array | None = None, *, dense_tiles: bool = False
    ) -> None:
        self.rows, self.mean, self.factor, self.dense_tiles = rows, mean, factor, dense_tiles
        self.shape = rows.shape
        self.dtype = rows.dtype

    def reduce(
        self,
        fn: Callable[..., Any],
        *state: Any,
        blocks: Iterable[int] | None = None,
        combine: Callable[[Any, Any], Any] = add,
        tile_rows: int | None = None,
    ) -> Any:
        """Return the sum of ``fn(tile, rows, *state)`` over all centred tiles (see `Rows.reduce`)."""
        view = (self.mean, self.factor, self.dense_tiles, tile_rows or self._product_rows())
        return self.rows.reduce(_reduce_tiles, view, fn, combine, state, blocks=blocks, combine=combine)

    def map(self, fn: Callable[..., Any], *state: Any, width: int, dtype: Any) -> Any:
        """Return ``fn(tile, rows, *state)`` row by row over all centred tiles (see `Rows.map`)."""
        view = (self.mean, self.factor, self.dense_tiles, self._product_rows())
        return self.rows.map(_map_tiles, view, fn, state, width, dtype, width=width, dtype=dtype)

    def _product_rows(self) -> int:
        return max(PRODUCT_BYTES // (8 * max(self.shape[1], 1)), PRODUCT_ROWS)


View = tuple[Array | None, Array | None, bool, int]


def _tiles(block: Any, rows: slice, view: View) -> Iterator[tuple[Any, slice]]:
    """Yield (centred tile, global rows) over a block; a tile lives only until the next one is asked for."""
    mean, factor, dense_tiles, tile_rows = view
    n, p = block.shape
    sparse = not isinstance(block, np.ndarray)
    if sparse and not dense_tiles:
        yield (
            CenteredSparse(
                block, np.zeros(p) if mean is None else mean, np.ones(p) if factor is None else factor
            ),
            rows,
        )
        return
    if not sparse and mean is None and factor is None and block.dtype == np.float64 and block.flags.c_contiguous:
        yield block, rows
        return
    buffer = np.empty((min(tile_rows, n), p))
    subtract: Any = 0.0 if mean is None else mean
    for begin in range(0, n, tile_rows):
        part = block[begin : begin + tile_rows]
        tile = buffer[: part.shape[0]]
        # "unsafe" lets long double come down to double, after the subtraction.
        np.subtract(part.toarray() if sparse else part, subtract, out=tile, casting="unsafe")
        if factor is not None:
            tile *= factor
        yield tile, slice(rows.start + begin, rows.start + begin + len(tile))


def _reduce_tiles(
    block: Any, rows: slice, view: View, fn: Callable[..., Any], combine: Callable[[Any, Any], Any], state: Any
) -> Any:
    total = None
    for tile, where in _tiles(block, rows, view):
        part = fn(tile, where, *state)
        total = part if total is None else combine(total, part)
    return total


def _map_tiles(
    block: Any, rows: slice, view: View, fn: Callable[..., Any], state: Any, width: int, dtype: Any
) -> Array:
    out = np.empty((block.shape[0], width), dtype)
    for tile, where in _tiles(block, rows, view):
        out[where.start - rows.start : where.stop - rows.start] = fn(tile, where, *state)
    return out
