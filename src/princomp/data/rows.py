"""`Rows`: the one data abstraction, an immutable, re-readable (n, p) matrix in blocks of rows."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Any

import numpy as np

from princomp._threads import ordered_map
from princomp._typing import Array
from princomp.data.layout import Layout
from princomp.data.outputs import Outputs, Together

# Large enough that Python's cost per block vanishes, small enough that several fit in memory at once.
BLOCK_BYTES = 32 * 2**20
LEAST_ROWS = 32  # of very long rows: a product with fewer would be larger than the block itself

Function = Callable[..., Any]  # of a block, its row numbers and some state
Merge = Callable[[Any, Any], Any]  # of two parts of a sum


def add(total: Any, part: Any) -> Any:
    """Add an array, or a tuple of arrays, into ``total`` in place."""
    if isinstance(total, tuple):
        return tuple(add(a, b) for a, b in zip(total, part, strict=True))
    if isinstance(total, np.ndarray) and total.ndim:
        total += part
        return total
    return total + part


def centre(block: Array, mean: Array | None, factor: Array | None, out: Array) -> Array:
    """Return (block - 1 mean') diag(factor), put into ``out``."""
    # "unsafe" lets wider numbers come down to the precision of ``out``, after the subtraction.
    np.subtract(block, 0.0 if mean is None else mean, out=out, casting="unsafe")
    if factor is not None:
        np.multiply(out, factor, out=out, casting="unsafe")
    return out


def block_length(p: int, block_rows: int | None = None, block_bytes: int = BLOCK_BYTES) -> int:
    """Return how many rows of p numbers a block has: ``block_rows``, or as many as take about ``block_bytes``."""
    if block_rows is None:
        return max(LEAST_ROWS, block_bytes // (8 * max(p, 1)))
    if block_rows < 1:
        raise ValueError(f"block_rows must be at least 1, got {block_rows}.")
    return block_rows


def block_offsets(n: int, p: int, block_rows: int | None = None, block_bytes: int = BLOCK_BYTES) -> Array:
    """Return the row numbers at which blocks of `block_length` begin, and n."""
    return np.append(np.arange(0, n, block_length(p, block_rows, block_bytes)), n)


def offsets_of_parts(lengths: Sequence[int], p: int, **blocks: Any) -> tuple[Array, list[tuple[int, int]]]:
    """Return `block_offsets` of parts of these lengths, no block in two of them; and (part, row in it) of each."""
    begin = np.cumsum([0, *lengths])
    inside = [block_offsets(length, p, **blocks)[:-1] for length in lengths]
    offsets = np.concatenate([first + starts for first, starts in zip(begin, inside)] + [begin[-1:]])
    return offsets, [(part, int(start)) for part, starts in enumerate(inside) for start in starts]


def itself(block: Any, rows: slice) -> Any:
    """Return a block as it is."""
    return block


def listed_part(block: Any, rows: slice, fn: Function, *state: Any) -> list[Array]:
    """Return a list of one part: lists are put together without copying what is in them."""
    return [fn(block, rows, *state)]


class Rows(ABC):
    """An immutable, re-readable (n, p) matrix in row blocks (ndarray or CSR; NaN = missing).

    A new storage gives the attributes and `block`; an engine with workers of its own gives `reduce` and `map` too.
    ``**blocks`` of a storage say how it is cut, as in `block_offsets`.

    Attributes
    ----------
    shape : tuple of int
        (n, p).
    dtype : dtype
        float32 for float32 data, else float64: the precision of results. Sums are always taken in float64.
    names : tuple of str or None
        Names of the features.
    sample_names : tuple of str or None
        Names of the rows.
    labels : mapping of str to array of str
        Text that came with the rows, by column name; not part of the matrix.
    notes : tuple of str
        Sentences to show the user: what was left out, or taken in another way than expected.
    layout : ImageLayout, VoxelLayout or None
        Where the columns lie, if they are pixels or voxels.
    sparse : bool
        Whether blocks are CSR arrays.
    density : float
        Share of the cells that are stored, as far as it is known.
    local : bool
        Whether a whole copy of the data may be made here; not of data that live on workers.
    pass_seconds : float
        What a pass costs however little it does: nothing here, planning and messages on a cluster.
    changeable : bool
        Whether blocks are fetched from outside each time they are read, so that they may not be what they were.
    offsets : ndarray of int
        Block i holds rows ``offsets[i]:offsets[i + 1]``.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    labels: Mapping[str, Array] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    layout: Layout | None = None
    sparse: bool = False
    density: float = 1.0
    local: bool = True
    pass_seconds: float = 0.0
    changeable: bool = False
    offsets: Array

    @property
    def width(self) -> int:
        """Number of columns, known without counting rows that are elsewhere."""
        return self.shape[1]

    @abstractmethod
    def block(self, i: int) -> Any:
        """Return block i: an ndarray or a SciPy CSR array, never written to."""

    def reduce(self, fn: Function, *state: Any, blocks: Iterable[int] | None = None, combine: Merge = add) -> Any:
        """Return the sum of ``fn(block, rows, *state)`` over all blocks, or those listed, in a fixed order.

        ``fn`` is importable and pure; ``rows`` is the slice of global row numbers; it returns a fresh array or tuple
        of arrays, additive over any split of rows (``combine`` may be another associative merge of two parts).
        """
        todo = list(range(len(self.offsets) - 1) if blocks is None else blocks)
        with closing(ordered_map(lambda i: fn(self.block(i), self.rows(i), *state), todo)) as parts:
            total = next(parts)
            for part in parts:
                total = combine(total, part)
        return total

    def map(
        self,
        fn: Function,
        *state: Any,
        width: int | tuple[int, ...],
        dtype: Any,
        sparse: bool | tuple[bool, ...] = False,
        lengths: Array | None = None,
    ) -> Any:
        """Return ``fn(block, rows, *state)``, (rows, width) each, row by row, in the input's own kind.

        ``fn`` is importable and pure, ``rows`` is the slice of global row numbers, as in `reduce`, on every
        storage but Spark, whose rows have none once they are lazy again.

        Parameters
        ----------
        fn : callable
            It returns an array (rows, width), or, if ``width`` is a tuple, a tuple of as many arrays.
        *state : object
            Sent to whoever holds the blocks.
        width : int or tuple of int
            Columns of the answer. With a tuple of widths the answer is a tuple of arrays, in one go over the data.
        dtype : dtype or tuple of dtype
            Of the answer: one for all, or one each.
        sparse : bool or tuple of bool
            Whether ``fn`` returns CSR arrays, and so does this: one for all, or one each.
        lengths : (blocks,) array of int, optional
            How many rows ``fn`` returns of each block, where that is not as many as the block has. Given by rows that
            hold some of the rows of others (`princomp.data.wrapped`), and by nobody else.

        Returns
        -------
        array, or tuple of arrays
            NumPy arrays and CSR arrays; of data on workers what is lazy there (Dask: a Dask array, of CSR blocks if
            ``sparse``). Several lazy answers, computed together, are computed in one go.
        """
        offsets = self.offsets if lengths is None else np.append(0, np.cumsum(lengths))
        out = Together(int(offsets[-1]), Outputs(width, dtype, sparse))

        def fill(i: int) -> None:
            out.put(slice(offsets[i], offsets[i + 1]), fn(self.block(i), self.rows(i), *state))

        with closing(ordered_map(fill, range(len(offsets) - 1))) as parts:
            for _ in parts:
                pass
        return out.answer()

    def gather(self, fn: Function, *state: Any, width: int, dtype: Any) -> Array:
        """Return what `map` does as a NumPy array here, whatever the storage: for answers that are small."""
        if self.local:
            return self.map(fn, *state, width=width, dtype=dtype)
        return np.concatenate(self.reduce(listed_part, fn, *state, combine=operator.add)).astype(dtype, copy=False)

    def in_single(self, mean: Array | None, factor: Array | None) -> tuple[Rows, bool]:
        """Return rows for work in single precision, and whether they are centred and scaled already.

        A storage that can keep a smaller copy of itself does so here; others are converted tile by tile, each time.
        """
        return self, False

    def rows(self, i: int) -> slice:
        """Return the global row numbers of block i."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def __repr__(self) -> str:
        n, p = self.shape
        return f"<{type(self).__name__} {n} x {p} {self.dtype} in {len(self.offsets) - 1} blocks>"
