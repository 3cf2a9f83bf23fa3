"""Rows stored as plain numbers in files, and a sink that keeps rows in memory while they are few, else in a file."""

import errno
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import numpy as np

from princomp._text import shown
from princomp._typing import Array
from princomp.data.memory import MemoryRows, working_dtype
from princomp.data.reading import Source, naming, spill_folder
from princomp.data.rows import Rows, itself, offsets_of_parts

SPARE_SHARE = 0.05  # of a disk is left free, whatever a file expands to
_seeking = threading.Lock()  # only where the system cannot read at a place


def _read_at(file: BinaryIO, out: Array, place: int) -> None:
    """Fill ``out``, contiguous, from ``place`` on: many threads may do so at once."""
    left = memoryview(out.reshape(-1, order="A").view(np.uint8).data)
    while len(left):
        if hasattr(os, "preadv"):
            count = os.preadv(file.fileno(), [left], place)
        else:
            with _seeking:
                file.seek(place)
                count = file.readinto(left)  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        left, place = left[count:], place + count


class Part(Protocol):
    """An (n, p) array that lies somewhere else than in memory, and is read some rows at a time."""

    @property
    def source(self) -> Any:
        """Return what it is read from."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, p)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of its numbers."""

    def rows(self, start: int, stop: int) -> Array:
        """Return some rows, read into a fresh array."""


@dataclass(frozen=True)
class Numbers:
    """An (n, p) array that lies in a file, not in memory."""

    source: Source
    place: int  # of the first number
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    by_column: bool = False  # Fortran order

    def rows(self, start: int, stop: int) -> Array:
        """Return some rows, read into a fresh array."""
        n, p = self.shape
        size = self.dtype.itemsize
        out = np.empty((stop - start, p), self.dtype, order="F" if self.by_column else "C")
        with self.source.open() as file, naming(self.source.name):
            if not self.by_column:
                _read_at(file, out, self.place + start * p * size)
            elif stop - start == n:
                _read_at(file, out, self.place)
            else:
                for j in range(p):
                    _read_at(file, out[:, j], self.place + (j * n + start) * size)
        return out


class FileRows(Rows):
    """Rows of arrays in files, one after the other: blocks are read, each time, into fresh arrays.

    Not mapped: so memory stays bounded, and a file that is cut off meanwhile is an error, not the end of the process.
    """

    def __init__(self, parts: Sequence[Part], **blocks: Any) -> None:
        p = parts[0].shape[1]
        lengths = [part.shape[0] for part in parts]
        self._parts, self.shape = parts, (sum(lengths), p)
        self.dtype = working_dtype(np.result_type(*(part.dtype for part in parts)))
        self.offsets, self._where = offsets_of_parts(lengths, p, **blocks)
        self.changeable = not all(isinstance(part.source, Spill) for part in parts)

    def block(self, i: int) -> Array:
        """Return block i, read now."""
        part, start = self._where[i]
        rows = self.rows(i)
        return self._parts[part].rows(start, start + rows.stop - rows.start)

    def in_memory(self, **blocks: Any) -> MemoryRows:
        """Return the same rows, read into one array."""
        if len(self._where) == 1:
            return MemoryRows(self.block(0), **blocks)
        dtype = np.result_type(*(part.dtype for part in self._parts))
        return MemoryRows(self.map(itself, width=self.shape[1], dtype=dtype), **blocks)


def require_room(size: int) -> None:
    """Raise OSError if so many bytes more would fill the disk of temporary files."""
    folder = spill_folder()
    disk = shutil.disk_usage(folder)
    if disk.free - size < SPARE_SHARE * disk.total:
        raise OSError(
            errno.ENOSPC,
            f"{shown(folder, None)} has too little room for a temporary file: set TMPDIR to a folder on a larger disk",
        )


class Spill:
    """A temporary file without a name: the system takes it away with the last one who holds it, whatever happens."""

    name = "the temporary file"

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(dir=spill_folder(), buffering=0)  # noqa: SIM115  closed with us

    def write(self, rows: Array) -> None:
        """Append rows; raise OSError before the disk is full."""
        require_room(rows.nbytes)
        left = memoryview(rows.reshape(-1).view(np.uint8).data)
        while len(left):
            left = left[self._file.write(left) :]

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Yield the file."""
        yield self._file

    def __del__(self) -> None:
        self._file.close()


class Sink:
    """Takes rows as they come; keeps them in one array while they are small, else in a `Spill`."""

    def __init__(self, width: int, dtype: Any, kept: int) -> None:
        self._array = np.empty((0, width), dtype)
        self._kept = kept
        self._spill: Spill | None = None
        self.count = 0

    def append(self, rows: Array) -> None:
        """Take (m, width) rows."""
        rows = np.ascontiguousarray(rows, self._array.dtype)
        count, width = self.count + len(rows), rows.shape[1]
        most = self._kept // (rows.itemsize * width)
        if self._spill is None and count > most:
            self._spill = Spill()
            self._spill.write(self._array[: self.count])
            self._array = np.empty((0, width), rows.dtype)
        if self._spill is not None:
            self._spill.write(rows)
        else:
            if count > len(self._array):  # grown in place, by the system's own means: no second copy in memory
                self._array.resize((max(count, min(2 * len(self._array), most)), width), refcheck=False)
            self._array[self.count : count] = rows
        self.count = count

    def finish(self, blocks: dict[str, Any]) -> Rows:
        """Return what was taken."""
        if self._spill is not None:
            return FileRows([Numbers(self._spill, 0, (self.count, self._array.shape[1]), self._array.dtype)], **blocks)
        self._array.resize((self.count, self._array.shape[1]), refcheck=False)
        return MemoryRows(self._array, **blocks)
