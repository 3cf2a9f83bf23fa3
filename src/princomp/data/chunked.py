"""Matrices that lie in chunks, in HDF5 and Zarr: blocks that fit the chunks, read one by one from where they are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from princomp._typing import Array
from princomp.data.arrays import same_width
from princomp.data.memory import checked
from princomp.data.reading import Request
from princomp.data.rows import BLOCK_BYTES, Rows, block_length
from princomp.data.stored import FileRows, Part

MOST_LARGER = 4  # times the size asked for that a block may have so that it holds whole chunks
LIMIT_SHARE = 8  # of the memory that may be used, so much is for one block, unless rows or chunks are very large
BLOCK_COST = 256  # bytes that it takes to know where a block lies


class Matrix(Part, Protocol):
    """A part that lies in chunks."""

    @property
    def what(self) -> str:
        """Return what to call it in a sentence: the file, and where in it."""

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Return rows and columns of a chunk; None if the numbers lie one after the other."""

    @property
    def packed(self) -> bool:
        """Return whether a chunk must be unpacked as a whole."""


def rows_of(parts: Sequence[Matrix], request: Request) -> Rows:
    """Return matrices of files, one after the other: in memory if small, else in blocks."""
    same_width([part.source for part in parts], parts)
    size = sum(math.prod(part.shape) * part.dtype.itemsize for part in parts)
    block_bytes = min(request.blocks["block_bytes"], request.limit // LIMIT_SHARE)
    length = _length(parts[0], request.blocks["block_rows"], block_bytes)
    for part in parts:
        n, p = part.shape
        chunk = math.prod(part.chunks or ()) * part.dtype.itemsize if part.packed else 0
        request.require(min(n, length) * p * part.dtype.itemsize + chunk, f"One block of {part.what}")
        request.require(n // length * BLOCK_COST, f"{part.what} with {n} rows, in blocks of {length},")
    rows = FileRows(parts, block_rows=length)
    if size <= request.kept:
        return rows.in_memory(**request.blocks)
    rows.notes = tuple(_slow(part, length) for part in parts if _is_slow(part, length))[:1]
    return rows


def _length(part: Any, block_rows: int | None = None, block_bytes: int = BLOCK_BYTES) -> int:
    """Return how many rows a block has: as told, or so that it holds whole chunks unless these are far too large."""
    length = block_length(part.shape[1], block_rows, block_bytes)
    if block_rows is None and part.chunks is not None:
        step = part.chunks[0]
        return length // step * step or (step if step <= MOST_LARGER * length else length)
    return length


def _is_slow(part: Matrix, length: int) -> bool:
    return part.packed and part.chunks is not None and part.chunks[0] > MOST_LARGER * length


def _slow(part: Matrix, length: int) -> str:
    rows = part.chunks[0] if part.chunks else 0
    return (
        f"{part.what} is packed in chunks of {rows} rows, all of which are unpacked for each block of {length}: chunks "
        "of fewer rows, and more columns, are read faster."
    )


# --- arrays that the user opened --------------------------------------------------------------------------

LIBRARIES = ("h5py", "zarr")


@dataclass(frozen=True)
class Opened:
    """A matrix that the user opened: a dataset of h5py, an array of zarr."""

    array: Any
    source: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, p)."""
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of its numbers."""
        return self.array.dtype

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Return rows and columns of a chunk, or of what chunks are packed into together."""
        return getattr(self.array, "shards", None) or self.array.chunks

    def rows(self, start: int, stop: int) -> Array:
        """Return some rows, read into a fresh array."""
        return np.asarray(self.array[start:stop])


def is_opened(X: Any) -> bool:
    """Tell a dataset of h5py or an array of zarr, or a list of such."""
    if isinstance(X, list | tuple):
        return bool(X) and all(not isinstance(each, list | tuple) and is_opened(each) for each in X)
    return type(X).__module__.partition(".")[0] in LIBRARIES and hasattr(X, "shape") and hasattr(X, "chunks")


def opened_rows(X: Any, **blocks: Any) -> Rows:
    """Return what `is_opened` as rows, read in blocks of about whole chunks."""
    parts = [Opened(each) for each in (X if isinstance(X, list | tuple) else [X])]
    for part in parts:
        if len(part.shape) != 2 or part.dtype.kind not in "fiub":
            checked(np.empty((1,) * len(part.shape), part.dtype))  # says what is wrong
    if len({part.shape[1] for part in parts}) > 1:
        widths = sorted({part.shape[1] for part in parts})
        raise ValueError(f"All shards must have the same number of columns, found {widths}.")
    return FileRows(parts, block_rows=_length(parts[0], **blocks))
