"""What all readers of files share: the request, errors that name the file, and files that must stay as they are."""

import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from princomp._text import shown

# Data of this size are kept in memory (or of a quarter of the memory that may be used, if that is less).
KEPT_BYTES = 256 * 2**20
LONGEST_LINE = 64 * 2**20  # or a 32nd of the memory that may be used: cells of one digit take that much more
LEAST_LINE = 2**16  # but this is always read


class DataError(ValueError):
    """A file cannot be read as data; the message names it and says why."""


@dataclass(frozen=True)
class Request:
    """What the caller of `read` asked for."""

    label: tuple[str, ...]  # columns kept as text, though they may hold numbers
    index: str | None  # the column of sample names
    drop: tuple[str, ...]  # columns left out entirely
    decimal: str | None  # the decimal mark of delimited text
    delimiter: str | None  # what separates its cells
    header: bool | None  # whether its first line names the columns
    blocks: dict[str, Any]  # block_rows and block_bytes
    limit: int  # bytes of memory that reading may take
    member: str | None = None  # which array of a file that holds several
    # Of counts of single cells:
    layer: str | None = None  # which matrix, if not X
    mask_var: str | None = None  # the column of var that says which genes are kept
    normalize: float | None = None  # the total of each cell; True for their median
    log1p: bool | None = None
    mask: str | None = None  # the file that says which voxels are features
    sheet: str | None = None  # of a spreadsheet

    @property
    def kept(self) -> int:
        """Return how many bytes of data may stay in memory."""
        return min(KEPT_BYTES, self.limit // 4)

    @property
    def longest_line(self) -> int:
        """Return how many bytes one line of text may have."""
        return max(LEAST_LINE, min(LONGEST_LINE, self.limit // 32))

    def require(self, size: int, what: str) -> None:
        """Raise MemoryError if ``size`` bytes for ``what`` are over the limit."""
        if size > self.limit:
            raise MemoryError(
                f"{what} needs {size / 2**30:.3g} GiB of memory, but {self.limit / 2**30:.3g} GiB may be used: "
                "raise memory_limit, or store the data as .npy, which is read in blocks."
            )


class Source(Protocol):
    """Something that can be opened as a file, again and again, and is the same each time."""

    name: str  # fit to be shown

    def open(self) -> Any:
        """Return a context manager that yields a binary file."""


class File:
    """A file on disk that must not change from now on."""

    def __init__(self, path: str) -> None:
        self.path, self.name = path, shown(path, None)
        with naming(self.name):
            found = os.stat(path)
        if stat.S_ISDIR(found.st_mode):
            raise DataError(f"{self.name} is a folder: name a file, or several by a pattern such as {self.name}/*.csv.")
        if not stat.S_ISREG(found.st_mode):
            raise DataError(f"{self.name} is not a regular file: send it to standard input and read '-' instead.")
        if not found.st_size:
            raise DataError(f"{self.name} is empty.")
        self.size = found.st_size
        self._signature = _signature(found)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Yield the file; raise DataError if it is not, or does not stay, what it was."""
        with naming(self.name):
            file = open(self.path, "rb", buffering=0)  # noqa: SIM115  closed below
        with file:
            self._compare(file)
            try:
                yield file
            except DataError:
                self._compare(file)  # half a line, say: that the file changed is the better explanation
                raise
            self._compare(file)

    def _compare(self, file: BinaryIO) -> None:
        if _signature(os.fstat(file.fileno())) != self._signature:
            raise DataError(f"{self.name} changed while it was read: wait until it is complete, then read it again.")


class Folder:
    """A folder on disk that holds one set of data; who reads it looks that what was read once stays as it is."""

    def __init__(self, path: str) -> None:
        self.path, self.name = path, shown(path, None)
        with naming(self.name):
            found = os.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise DataError(f"{self.name} is not a folder.")


def _signature(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


class Spooled:
    """A stream that comes only once, copied so that it can be read again: in memory if small, else on disk."""

    def __init__(self, stream: Any, name: str, kept: int) -> None:
        self.name = name
        self._file = tempfile.SpooledTemporaryFile(kept, dir=spill_folder())  # noqa: SIM115  closed with us
        while block := self._next(stream):
            self._file.write(block)
        if not self._file.tell():
            raise DataError(f"{name} is empty.")

    def _next(self, stream: Any) -> bytes:
        with naming(self.name):
            block = stream.read(2**20)
        if not isinstance(block, bytes):
            raise DataError(f"{self.name} gives text, not bytes: open it in binary mode ('rb').")
        return block

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Yield the copy, from its beginning."""
        self._file.seek(0)
        yield self._file

    def __del__(self) -> None:
        self._file.close()


def spill_folder() -> str:
    """Return the folder for large temporary files: TMPDIR if set, else /var/tmp, because /tmp may be in memory."""
    for folder in (*map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/var/tmp"):  # noqa: S108  files have no name there
        if folder and os.path.isdir(folder) and os.access(folder, os.W_OK):
            return folder
    return tempfile.gettempdir()


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn what may go wrong inside, while a file is opened or read, into a DataError that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{name}: there is no such file.") from error
    except EOFError as error:
        raise DataError(f"{name} is cut off: it ends before its data do.") from error
    except (zlib.error, OSError) as error:
        raise DataError(f"{name} cannot be read ({getattr(error, 'strerror', None) or brief(error)}).") from error


def natural(path: str) -> list[tuple[int, str]]:
    """Return what sorts names by the numbers in them: frame2 before frame10.

    >>> sorted(["frame10.png", "frame2.png"], key=natural)
    ['frame2.png', 'frame10.png']
    """
    return [(int(part), "") if i % 2 else (-1, part) for i, part in enumerate(re.split(r"([0-9]+)", path))]


def brief(error: Exception) -> str:
    """Return what somebody else's error says, in one line that ends without a full stop."""
    return shown(" ".join(str(error).split()), 200).rstrip(".")


def quoted(text: str) -> str:
    """Return text that comes with data, in quotes; what cannot be printed is escaped once."""
    return f"'{shown(text)}'"


def plural(count: int, what: str) -> str:
    """Return a count with its noun."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
