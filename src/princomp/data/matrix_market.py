"""Matrix Market files, ``.mtx``, read with NumPy: damaged ones make SciPy's own reader crash."""

import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from princomp._text import shown
from princomp._typing import Array
from princomp.data.arrays import joined
from princomp.data.cells import NEWLINE, NUMBER, Piece, cell_ends, pieces, plain, strings
from princomp.data.reading import DataError, File, Request, plural
from princomp.data.rows import Rows

ENTRY_BYTES = 64  # one entry with its place as read, and again in a sparse array


class Header(NamedTuple):
    """The first lines of a ``.mtx`` file."""

    coordinate: bool  # whether entries come with their places
    pattern: bool  # whether all entries are 1
    symmetry: str
    shape: tuple[int, int]
    entries: int  # in the file

    @property
    def width(self) -> int:
        """Return the number of numbers in a line."""
        return (3 - self.pattern) if self.coordinate else 1

    @property
    def bytes(self) -> int:
        """Return the memory that the matrix takes while it is made."""
        rows, columns = self.shape
        if not self.coordinate:
            return 16 * rows * columns
        return (1 if self.symmetry == "general" else 2) * ENTRY_BYTES * self.entries + 16 * rows


def read_mtx(files: Sequence[File], request: Request) -> Rows:
    """Read Matrix Market files, plain or compressed."""
    return joined(files, request, _matrix_of_mtx)


def _matrix_of_mtx(file: File, request: Request) -> Any:
    header, values, found = None, np.empty((0, 0)), 0
    with file.open() as raw:
        for piece in pieces(plain(raw), file.name, b"\n", request.longest_line):
            if header is None:
                header, piece = _header(piece, file.name)
                request.require(header.bytes, file.name)
                values = np.empty((header.entries, header.width))
            part = _entries(piece, header, file.name)
            if found + len(part) > header.entries:
                raise DataError(f"{file.name} has more entries than its header gives.")
            values[found : found + len(part)] = part
            found += len(part)
        if header is None or found < header.entries:
            raise DataError(f"{file.name} is cut off: it has fewer entries than its header gives.")
    return _matrix(values, header, file.name)


def _header(piece: Piece, name: str) -> tuple[Header, Piece]:
    banner = piece.text[: piece.text.find(b"\n")].lower().split()
    data = re.search(rb"^[ \t]*[^%\s]", piece.text, re.MULTILINE)  # after comments and blank lines
    begin = data.start() if data else 0
    size = re.match(rb"[ \t]*(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+(\d{1,18}))?[ \t]*\n", piece.text[begin:])
    if banner[:2] != [b"%%matrixmarket", b"matrix"] or len(banner) != 5 or size is None:
        raise DataError(f"{name} is not a Matrix Market file: it does not begin with %%MatrixMarket matrix and a size.")
    layout, field, symmetry = (word.decode() for word in banner[2:])
    known = layout in ("coordinate", "array") and field in ("real", "double", "integer", "pattern")
    if not known or symmetry not in ("general", "symmetric", "skew-symmetric"):
        raise DataError(
            f"{name} holds a matrix of a kind that is not read: {shown(layout)} {shown(field)} {shown(symmetry)}."
        )
    rows, columns = int(size[1]), int(size[2])
    coordinate = layout == "coordinate"
    if coordinate != (size[3] is not None) or (symmetry != "general" and rows != columns):
        raise DataError(f"{name}: the size of its matrix does not fit its kind.")
    if coordinate:
        entries = int(size[3])
    elif symmetry == "general":
        entries = rows * columns
    else:
        entries = rows * (rows + (1 if symmetry == "symmetric" else -1)) // 2
    header = Header(coordinate, field == "pattern", symmetry, (rows, columns), entries)
    return header, piece.after(begin + size.end())


def _entries(piece: Piece, header: Header, name: str) -> Array:
    if not piece.text.strip():
        return np.empty((0, header.width))
    plainly = _plain_entries(piece.text, header.width)
    if plainly is not None:
        return plainly
    try:
        values = np.loadtxt(io.BytesIO(piece.text), comments=None, ndmin=2)
        if values.shape[1] == header.width:
            return values
    except ValueError:
        pass
    for k, line in enumerate(piece.text.split(b"\n")):
        words = line.split()
        if words and not (len(words) == header.width and all(re.fullmatch(NUMBER.encode(), word) for word in words)):
            raise DataError(f"{name}, line {piece.line + k}: expected {plural(header.width, 'number')}.")
    raise DataError(f"{name}, line {piece.line}: there is something else than numbers from here on.")


def _plain_entries(text: bytes, width: int) -> Array | None:
    """Return lines of numbers with one space between them, four times as fast, if pyarrow is there; else None."""
    try:
        import pyarrow as pa
        import pyarrow.compute as pc
    except ImportError:
        return None
    ends = cell_ends(text, b" ")
    lines = np.flatnonzero(np.frombuffer(text, np.uint8)[ends] == NEWLINE)
    if not np.array_equal(lines, np.arange(width - 1, len(ends), width)):
        return None
    try:
        values: Array = pc.cast(strings(text, ends, b" "), pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return values.reshape(-1, width)


def _matrix(values: Array, header: Header, name: str) -> Any:
    import scipy.sparse as sp

    (rows, columns), sign = header.shape, -1.0 if header.symmetry == "skew-symmetric" else 1.0
    if not header.coordinate:
        if header.symmetry == "general":
            return values.reshape(columns, rows).T
        lower = np.zeros(header.shape)
        lower.T[np.triu_indices(rows, k=1 if sign < 0 else 0)] = values[:, 0]
        return np.tril(lower) + sign * np.tril(lower, -1).T
    with np.errstate(invalid="ignore"):
        where = values[:, :2].astype(np.int64).T - 1
    if not np.array_equal(where.T + 1, values[:, :2]) or (len(values) and (where.min(axis=1) < 0).any()):
        raise DataError(f"{name} has an entry whose place is not a whole number from 1 on.")
    if len(values) and (where.max(axis=1) >= header.shape).any():
        raise DataError(f"{name} has an entry outside its {rows} rows and {columns} columns.")
    cells = np.ones(len(values)) if header.pattern else values[:, 2]
    if header.symmetry != "general":
        off = where[0] != where[1]
        where = np.concatenate([where, where[::-1, off]], axis=1)
        cells = np.concatenate([cells, sign * cells[off]])
    return sp.coo_array((cells, tuple(where)), shape=header.shape)
