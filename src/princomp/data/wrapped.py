"""Other rows, changed on the way to whoever reads them: some columns, some rows, other units, functions of them.

The change is made where the blocks are: what a block function is given by wrapped rows it is given by the rows beneath,
block by block, on their own threads or workers, and what it returns is all that moves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from princomp._text import listed
from princomp._typing import Array
from princomp.data.rows import Function, Rows, add

Change = Callable[..., tuple[Any, slice]]  # change(block, rows, *how): the block to hand on, and its row numbers


class Wrapped(Rows):
    """Rows of which each block is another's, changed; all else is as it is there unless it is set anew.

    ``change`` is importable and pure, as block functions are; ``how`` is sent to whoever holds the blocks.
    """

    def __init__(self, rows: Rows, change: Change, *how: Any) -> None:
        self._rows, self._change, self._how = rows, change, how
        for name in Rows.__annotations__:
            setattr(self, name, getattr(rows, name))

    def block(self, i: int) -> Any:
        """Return block i, changed."""
        return self._change(self._rows.block(i), self._rows.rows(i), *self._how)[0]

    def reduce(self, fn: Function, *state: Any, **how: Any) -> Any:
        """Return the sum of ``fn`` over changed blocks, taken where the rows beneath are (see `Rows.reduce`)."""
        return self._rows.reduce(of_changed, self._how, self._change, fn, *state, **how)

    def map(self, fn: Function, *state: Any, **outputs: Any) -> Any:
        """Return ``fn`` of changed blocks, row by row, in the kind of the rows beneath (see `Rows.map`)."""
        return self._rows.map(of_changed, self._how, self._change, fn, *state, **outputs)


def of_changed(block: Any, rows: slice, how: Any, change: Change, fn: Function, *state: Any) -> Any:
    """Return what a block function makes of a changed block.

    ``how`` comes before ``change``: a tuple that begins with a function is a task to Dask 2025.3, which calls it.
    """
    return fn(*change(block, rows, *how), *state)


def columns(rows: Rows, names: Sequence[str]) -> Rows:
    """Return the columns of ``rows`` that have these names, in this order; ValueError lists those that are missing."""
    names = tuple(names)
    if rows.names is None:
        raise ValueError(f"The data have no column names, but these columns are needed: {listed(names)}.")
    if rows.names == names:
        return rows
    missing = [name for name in names if name not in set(rows.names)]
    if missing:
        text = [name for name in missing if name in rows.labels]
        why = f" ({listed(text)} is there, but holds text)" if text else ""
        raise ValueError(f"These columns are needed but missing: {listed(missing)}{why}.")
    place = {name: j for j, name in enumerate(rows.names)}
    some = Wrapped(rows, _columns, np.array([place[name] for name in names], dtype=np.intp))
    some.names, some.shape, some.layout = names, (rows.shape[0], len(names)), None
    return some


def _columns(block: Any, rows: slice, places: Any) -> tuple[Any, slice]:
    return block[:, places], rows


def scaled(rows: Rows, shift: Array, scale: Array) -> Rows:
    """Return rows less a shift, divided by a scale; NaN stays NaN. Sparse rows, which would not stay so, are not moved.

    Without the shift a large offset would cost digits.
    """
    return Wrapped(rows, _scaled, shift, scale)


def _scaled(block: Any, rows: slice, shift: Array, scale: Array) -> tuple[Any, slice]:
    if isinstance(block, np.ndarray):
        return (block - shift) / scale, rows
    return block.multiply(1 / scale).tocsr(), rows


def subset(rows: Rows, wanted: Array) -> Rows:
    """Return the rows with these numbers, in the order of the data; they are numbered anew, from 0 on."""
    return _Subset(rows, np.unique(wanted))


class _Subset(Wrapped):
    def __init__(self, rows: Rows, wanted: Array) -> None:
        if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < rows.shape[0]:
            raise ValueError(f"Rows are numbered from 0 to {rows.shape[0] - 1}, got {wanted[0]} to {wanted[-1]}.")
        super().__init__(rows, _picked, wanted)
        self.shape = (len(wanted), rows.shape[1])
        self.offsets = np.searchsorted(wanted, rows.offsets)
        if rows.sample_names is not None:
            self.sample_names = tuple(rows.sample_names[i] for i in wanted)
        self.labels = {name: text[wanted] for name, text in rows.labels.items()}

    def reduce(self, fn: Function, *state: Any, blocks: Iterable[int] | None = None, **how: Any) -> Any:
        """Return the sum of ``fn`` over the blocks that have rows left."""
        some = range(len(self.offsets) - 1) if blocks is None else blocks
        return super().reduce(fn, *state, blocks=[i for i in some if self.offsets[i] < self.offsets[i + 1]], **how)

    def map(self, fn: Function, *state: Any, **outputs: Any) -> Any:
        """Return ``fn`` of the rows that are left of each block."""
        return super().map(fn, *state, **{"lengths": np.diff(self.offsets), **outputs})


def _picked(block: Any, rows: slice, wanted: Array) -> tuple[Any, slice]:
    first, last = np.searchsorted(wanted, [rows.start, rows.stop]).tolist()
    return block[wanted[first:last] - rows.start], slice(first, last)


# Of the rows that a function makes at a time: those beneath may have few columns, and so many rows to a block.
PIECE_BYTES = 2**23
PIECE_ROWS = 64


def mapped(rows: Rows, fn: Callable[..., Array], *how: Any, width: int) -> Rows:
    """Return rows that are a function of those beneath, each of its own: ``fn(block, *how)``, (m, width) in float64.

    No block of them is made as a whole: a few rows are, and handed on.
    """
    return _Mapped(rows, fn, how, width)


class _Mapped(Wrapped):
    def __init__(self, rows: Rows, fn: Callable[..., Array], how: tuple[Any, ...], width: int) -> None:
        super().__init__(rows, _whole, fn, how)
        self.shape = (rows.shape[0], width)
        self.dtype, self.sparse, self.names, self.layout = np.dtype(np.float64), False, None, None

    def reduce(self, fn: Callable[..., Any], *state: Any, combine: Callable[[Any, Any], Any] = add, **how: Any) -> Any:
        """Return the sum of ``fn`` over pieces (see `Rows.reduce`)."""
        given = (self.shape[1], *self._how, fn, combine)
        return self._rows.reduce(_reduce_pieces, given, *state, combine=combine, **how)

    def map(self, fn: Callable[..., Any], *state: Any, **outputs: Any) -> Any:
        """Return ``fn`` of pieces, one after the other (see `Rows.map`); one array, dense."""
        return self._rows.map(map_pieces, (self.shape[1], *self._how, fn), *state, **outputs)


def _whole(block: Any, rows: slice, fn: Callable[..., Array], how: tuple[Any, ...]) -> tuple[Array, slice]:
    return fn(block, *how), rows


def _pieces(block: Any, rows: slice, make: Any, how: Any, width: int) -> Iterator[tuple[Array, slice]]:
    step, n = max(PIECE_ROWS, PIECE_BYTES // (8 * width)), block.shape[0]
    for begin in range(0, max(n, 1), step):
        end = min(begin + step, n)
        yield make(block[begin:end], *how), slice(rows.start + begin, rows.start + end)


def _reduce_pieces(block: Any, rows: slice, given: Any, *state: Any) -> Any:
    width, make, how, fn, combine = given
    pieces = _pieces(block, rows, make, how, width)
    total = fn(*next(pieces), *state)
    for piece in pieces:
        total = combine(total, fn(*piece, *state))
    return total


def map_pieces(block: Any, rows: slice, given: Any, *state: Any) -> Any:
    """Return ``fn(piece, rows, *state)`` of what ``make`` makes of a block, ``given`` = (width, make, how, fn).

    One array, or as many as ``fn`` returns. The number comes first: Dask, before 2025.4, calls a tuple that begins with
    something callable.
    """
    width, make, how, fn = given
    parts = [fn(*piece, *state) for piece in _pieces(block, rows, make, how, width)]
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return np.concatenate(parts)
