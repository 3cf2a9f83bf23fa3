"""Delimited text, cut into cells, and what cells mean: a few megabytes at a time, so that each cell's line is known."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data.reading import DataError, naming, plural

PIECE_BYTES = 4 * 2**20
NEWLINE, QUOTE = 10, 34

_WORDS = ("NA", "N/A", "#N/A", "<NA>", "NaN", "null", "None")
MISSING = ("", "?", "-", *dict.fromkeys(form for word in _WORDS for form in (word, word.lower(), word.upper())))
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?i:inf|infinity|nan)"
SPACE_ONLY = re.compile(rb"^[ \t]+$", re.MULTILINE)
NO_NUMBER = "!"  # stands for a point where numbers have a decimal comma
# Numbers as people write them: 1,234 and 1.234,5 and 1_000 and 5%.
LIKE_NUMBER = (
    r"\s*[+-]?(?:\d+|\d{1,3}(?:[.,_' \x{a0}\x{202f}]\d{3})+)(?:[.,]\d*)?(?:[eE][+-]?\d+)?[ \x{a0}\x{202f}]?%?\s*"
)


class Piece(NamedTuple):
    """Some whole records of a file."""

    text: bytes
    ends: Array  # where cells end: places of delimiters and newlines that are not inside quotes
    line: int  # number of the first line

    def line_of(self, place: int) -> int:
        """Return the number of the line that holds byte ``place``."""
        return self.line + self.text.count(b"\n", 0, place)

    def after(self, place: int) -> Piece:
        """Return what begins at byte ``place``."""
        return Piece(self.text[place:], self.ends[np.searchsorted(self.ends, place) :] - place, self.line_of(place))


def plain(stream: Any) -> Any:
    """Return the stream, unpacked if it begins as gzip does, whatever the file is called."""
    packed = stream.read(2) == b"\x1f\x8b"
    stream.seek(0)
    return gzip.GzipFile(fileobj=stream, mode="rb") if packed else stream


def pieces(stream: IO[bytes], name: str, delimiter: bytes, longest: int) -> Iterator[Piece]:
    """Yield the records of a text file in pieces of some megabytes; no record may be longer than ``longest``."""
    line, rest = 1, b""
    for block in _blocks(stream, name, min(PIECE_BYTES, longest // 2)):
        rest += block
        if b"\n" in block:
            ends = cell_ends(rest, delimiter)
            breaks = ends[np.frombuffer(rest, np.uint8)[ends] == NEWLINE]
            if len(breaks):
                cut = int(breaks[-1]) + 1
                text, rest = rest[:cut], rest[cut:]
                _check_encoding(text, name, line)
                yield Piece(text, ends[: np.searchsorted(ends, cut)], line)
                line += text.count(b"\n")
        if len(rest) > longest:
            if b'"' in rest:
                raise DataError(f"{name}, line {line}: a quote is opened and not closed within {longest >> 20} MiB.")
            raise MemoryError(f"{name}, line {line} is longer than {longest >> 20} MiB: raise memory_limit to read it.")
    if rest:
        raise DataError(f"{name}, line {line}: a quote is opened and never closed.")


def _blocks(stream: IO[bytes], name: str, size: int) -> Iterator[bytes]:
    """Yield the text as it comes, without byte order mark, each line ended by a newline, whatever ended it before."""
    line, held, last, first = 1, b"", b"\n", True
    block = b"-"
    while block:
        with naming(name):
            block = stream.read(size)
        if first and block.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(f"{name} is in UTF-16: save it as UTF-8.")
        text = held + (block.removeprefix(b"\xef\xbb\xbf") if first else block)
        held, first = b"", False
        if b"\r" in text:
            if block and text.endswith(b"\r"):  # a newline may follow in the next block
                text, held = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if (place := text.find(b"\0")) >= 0:
            line += text.count(b"\n", 0, place)
            raise DataError(f"{name}, line {line}: there is a NUL byte, so this is not a text file.")
        if text:
            line, last = line + text.count(b"\n"), text[-1:]
            yield text
    if last != b"\n":
        yield b"\n"


def _check_encoding(text: bytes, name: str, line: int) -> None:
    if text.isascii():
        return
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line += text.count(b"\n", 0, error.start)
        raise DataError(
            f"{name}, line {line}: the byte 0x{text[error.start]:02x} is not UTF-8; save the file as UTF-8 "
            "(for example: iconv -f latin1 -t utf-8)."
        ) from None


def cell_ends(text: bytes, delimiter: bytes) -> Array:
    """Return the places of all delimiters and newlines that are not inside quotes, up to a quote left open."""
    codes = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero((codes == delimiter[0]) | (codes == NEWLINE))
    if b'"' not in text:
        return ends
    quotes = np.flatnonzero(codes == QUOTE)
    before = codes[np.maximum(quotes[::2] - 1, 0)]
    # Every other quote opens a cell (or follows another one, which so stands for itself): inside is where their
    # number is odd.
    if ((before == delimiter[0]) | (before == NEWLINE) | (before == QUOTE)).all():
        return ends[np.searchsorted(quotes, ends) % 2 == 0]
    # There are quotes in the middle of cells, which mean nothing.
    begins = rb"(?:\A|(?<=[\n" + re.escape(delimiter) + rb']))"'
    masked = re.sub(begins + rb'[^"]*+(?:""[^"]*+)*+"', lambda found: b"x" * len(found[0]), text)
    left_open = re.search(begins, masked)
    codes = np.frombuffer(masked[: left_open.start()] if left_open else masked, np.uint8)
    return np.flatnonzero((codes == delimiter[0]) | (codes == NEWLINE))


def records(piece: Piece) -> tuple[Array, Array]:
    """Return where the cells of a piece end, and how many each record has; blank lines are left out."""
    text, ends, _ = piece
    last = np.flatnonzero(np.frombuffer(text, np.uint8)[ends] == NEWLINE)
    counts = np.diff(last, prepend=-1)
    begin = np.concatenate([[0], ends[:-1] + 1])
    blank = (counts == 1) & (begin[last] == ends[last])
    if b" \n" in text or b"\t\n" in text:
        blank |= (counts == 1) & np.isin(begin[last], [found.start() for found in SPACE_ONLY.finditer(text)])
    return np.delete(ends, last[blank]), counts[~blank]


def rectangle(piece: Piece, width: int, name: str) -> Array:
    """Return where the cells of a piece end, after checking that each record has ``width`` of them."""
    ends = piece.ends
    is_break = np.frombuffer(piece.text, np.uint8)[ends] == NEWLINE
    if width > 1 and np.count_nonzero(is_break) * width == len(ends) and is_break[width - 1 :: width].all():
        return ends
    ends, counts = records(piece)
    wrong = np.flatnonzero(counts != width)
    if len(wrong):
        found = int(counts[wrong[0]])
        line = piece.line_of(int(ends[counts[: wrong[0]].sum()]))
        raise DataError(f"{name}, line {line} has {plural(found, 'cell')}, but the first line has {width}.")
    return ends


def strings(text: bytes, ends: Array, delimiter: bytes) -> Any:
    """Return the cells that end there as an Arrow array, without the space around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = np.zeros(len(ends) + 1, np.int32)
    np.add(ends, 1, out=offsets[1:], casting="unsafe")
    cells = pa.StringArray.from_buffers(len(ends), pa.py_buffer(offsets), pa.py_buffer(text))
    return pc.ascii_trim(cells, characters=delimiter.decode() + " \t\n")


def unquoted(cells: Any) -> Any:
    """Return cells without the quotes around some of them."""
    import pyarrow.compute as pc

    quoted = pc.and_(pc.starts_with(cells, '"'), pc.ends_with(cells, '"'))
    if not pc.any(quoted).as_py():
        return cells
    bare = pc.replace_substring(pc.utf8_slice_codeunits(cells, 1, -1), '""', '"')
    return pc.if_else(quoted, bare, cells)


# --- what cells mean ----------------------------------------------------------------------------------


def of_columns(cells: Any, columns: Any, width: int) -> Any:
    """Return the cells of some columns, row by row."""
    import pyarrow as pa

    if len(columns) == width:
        return cells
    rows = np.arange(0, len(cells), width)
    return cells.take(pa.array((rows[:, None] + np.asarray(columns, np.int64)).ravel()))


def as_numbers(cells: Any, decimal_comma: bool) -> tuple[Array, Array]:
    """Return cells as float64, and the places of those that are neither numbers nor missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nothing = np.empty(0, np.int64)
    if decimal_comma:
        cells = pc.replace_substring(pc.replace_substring(cells, ".", NO_NUMBER), ",", ".")
    try:
        return pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False), nothing
    except pa.ArrowInvalid:
        cells = pc.ascii_trim_whitespace(unquoted(cells))
        cells = pc.if_else(pc.is_in(cells, value_set=pa.array(MISSING)), None, cells)
    try:
        return pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False), nothing
    except pa.ArrowInvalid:
        fine = pc.match_substring_regex(cells, f"^(?:{NUMBER})$")
        odd = np.flatnonzero(~pc.fill_null(fine, True).to_numpy(zero_copy_only=False))
        cells = pc.if_else(fine, cells, None)
    return pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False), odd


def as_truths(cells: Any) -> Array | None:
    """Return true, false and missing cells as 1, 0 and NaN; None if there is anything else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = pc.ascii_trim_whitespace(cells)
    words = pc.utf8_lower(cells)
    true = pc.equal(words, "true").to_numpy(zero_copy_only=False)
    false = pc.equal(words, "false").to_numpy(zero_copy_only=False)
    missing = pc.is_in(cells, value_set=pa.array(MISSING)).to_numpy(zero_copy_only=False)
    if not (true | false | missing).all():
        return None
    return np.where(missing, np.nan, true)
