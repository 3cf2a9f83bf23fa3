"""CSV and its kin: which columns are numbers is known only at the end, so a second reading is made if a guess fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._text import listed, shown
from princomp.data.cells import (
    LEAST_LINE,
    LONGEST_LINE,
    NEWLINE,
    Piece,
    cell_ends,
    pieces,
    plain,
    records,
    rectangle,
    strings,
    unquoted,
)
from princomp.data.reading import DataError, Request, Source, naming, plural
from princomp.data.rows import Rows
from princomp.data.stored import Sink
from princomp.data.tables import (
    Texts,
    check_names,
    check_same,
    described,
    name_notes,
    need_pyarrow,
    text_notes,
    unique_names,
)

Array = NDArray[Any]

_WORDS = ("NA", "N/A", "#N/A", "<NA>", "NaN", "null", "None")
MISSING = ("", "?", "-", *dict.fromkeys(form for word in _WORDS for form in (word, word.lower(), word.upper())))
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?i:inf|infinity|nan)"

NUMBERS, TRUTHS, TEXT = 0, 1, 2  # kinds of columns; one with nothing in it counts as numbers

MOST_NOTES = 10
SNIFFED_BYTES = 2**18
SNIFFED_LINES = 20


def read_delimited(sources: Sequence[Source], request: Request, delimiter: str | None = None) -> Rows:
    """Read delimited text, one file after the other; by default the delimiter is sniffed from the first."""
    need_pyarrow()
    table = _Table(sources, request, delimiter)
    while not table.read_through():
        pass
    return table.rows()


class _Table:
    """One or several files of delimited text with the same columns."""

    def __init__(self, sources: Sequence[Source], request: Request, delimiter: str | None) -> None:
        self.sources, self.request = sources, request
        self.longest = max(LEAST_LINE, min(LONGEST_LINE, request.limit // 32))
        self.delimiter, self.decimal_comma, self.notes = _sniffed(sources[0], delimiter)
        self.header, width = self._header(sources[0])
        if self.header is None:
            self.names = [str(j) for j in range(width)]
            self.notes.append("The first line holds numbers only, so it was read as data; columns are numbered from 0.")
        else:
            self.names = unique_names(self.header)
            if not self.header[0] and request.index is None:
                self.request = request = replace(request, index=self.names[0])
                self.notes.append("The first column has no name, so it was read as sample names.")
            if _counts(self.header):
                self.notes.append("The first line only counts, 0, 1, 2 ..., so it was read as column names.")
        check_names(self.names, request, sources[0])
        where = {name: j for j, name in enumerate(self.names)}
        self.kinds = np.full(width, NUMBERS, np.int8)
        self.asked = {*request.label, request.index}
        self.kinds[[where[name] for name in self.asked if name is not None]] = TEXT
        self.nearly: dict[int, str] = {}  # columns of text that are nearly numbers: a sentence about each
        self.empty: set[int] = set()  # columns without name and cells

    # --- reading ------------------------------------------------------------------------------------

    def read_through(self) -> bool:
        """Read all files; return whether the kinds of columns assumed at the first row held to the last."""
        self.count, self.held = 0, True
        self.numbers = np.zeros(len(self.names), np.int64)
        self.sink, self.texts = Sink(0, np.float64, 0), Texts([], None, 0)
        for source in self.sources:
            with source.open() as raw:
                for piece in self._pieces(raw, source):
                    self._take(piece, source)
        nameless = np.array([self.header is None or not cell for cell in self.header or self.names], bool)
        empty = np.flatnonzero(nameless & (self.kinds == NUMBERS) & (self.numbers == 0))
        if len(empty) and self.count:  # a delimiter at the end of each line, most likely
            self.empty |= set(empty.tolist())
            self.kinds[empty] = TEXT
            self.held = False
        return self.held

    def rows(self) -> Rows:
        """Return what was read."""
        skipped = {*self.nearly, *self.empty}
        left_out = [j for j in np.flatnonzero(self.kinds == TEXT).tolist() if j not in skipped]
        notes = [*self.notes, *self.nearly.values()]
        if self.header is not None:
            named = {j for j in (0, *self.empty) if j or self.names[0] == self.request.index}
            notes += name_notes(self.header, self.names, named)
        notes += text_notes([self.names[j] for j in left_out if self.names[j] not in self.asked], self.texts)
        if self.empty:
            notes.append(f"Left out {plural(len(self.empty), 'column')} without a name and without a number.")
        names = None if self.header is None else [self.names[j] for j in self._features().tolist()]
        return described(self.sink, self.request, self.sources[0], names=names, texts=self.texts, notes=notes)

    def _features(self) -> Array:
        return np.flatnonzero(self.kinds != TEXT)

    def _pieces(self, raw: Any, source: Source) -> Iterator[Piece]:
        """Yield the records of one file after its header."""
        first = True
        for piece in pieces(plain(raw), source.name, self.delimiter, self.longest):
            if first and len(records(piece)[1]):
                first = False
                header, width = self._header_of(piece)
                check_same(self.sources[0], self.header, source, header)
                if header is not None:
                    piece = piece.after(int(piece.ends[_blank_lines(piece) + width - 1]) + 1)
            yield piece

    def _header(self, source: Source) -> tuple[list[str] | None, int]:
        """Return the header of a file (None without one) and the number of columns."""
        with source.open() as raw:
            for piece in pieces(plain(raw), source.name, self.delimiter, self.longest):
                if len(records(piece)[1]):
                    return self._header_of(piece)
        raise DataError(f"{source.name} holds blank lines only.")

    def _header_of(self, piece: Piece) -> tuple[list[str] | None, int]:
        ends, counts = records(piece)
        cells = unquoted(strings(piece.text, ends[: counts[0]], self.delimiter)).to_pylist()
        return (None if _is_data(cells, self.decimal_comma) else cells), len(cells)

    # --- one piece ------------------------------------------------------------------------------------

    def _take(self, piece: Piece, source: Source) -> None:
        """Take the records of a piece: numbers to the sink, text to the texts."""
        width = len(self.names)
        ends = rectangle(piece, width, source.name)
        if not len(ends):
            return
        cells = strings(piece.text, ends, self.delimiter)
        values = self._values(cells, lambda cell: (source, piece.line_of(int(ends[cell]))))
        if not self.count:
            self._begin()
        self.count += len(values)
        if self.held:
            self.sink.append(values)
            for name in self.texts.wanted():
                self.texts.add(name, unquoted(_columns(cells, [self.where[name]], width)))

    def _begin(self) -> None:
        """Make room for the columns as they were found in the first piece."""
        features = self._features()
        if not len(features):
            raise DataError(
                f"{self.sources[0].name} has no column of numbers; its columns, separated by "
                f"{shown(self.delimiter.decode())!r}, are {listed(self.names)}."
            )
        self.sink = Sink(len(features), np.float64, self.request.kept)
        text = [j for j in np.flatnonzero(self.kinds == TEXT).tolist() if j not in self.empty]
        text.sort(key=lambda j: self.names[j] not in self.asked)  # those asked for first
        self.where = {self.names[j]: j for j in text}
        self.texts = Texts(list(self.where), self.request.index, self.request.kept)

    def _values(self, cells: Any, where: Any) -> Array:
        """Return the numbers of a piece, (rows, features), after learning from it which columns are numbers."""
        width = len(self.names)
        columns = np.flatnonzero(self.kinds == NUMBERS)
        flat, odd = _numbers(_columns(cells, columns, width), self.decimal_comma)
        values = flat.reshape(len(cells) // width, len(columns))
        if len(odd):
            self._learn(cells, columns, values, odd, where)
            still = self.kinds[columns] == NUMBERS
            columns, values = columns[still], values[:, still]
        self.numbers[columns] += len(values) - np.count_nonzero(np.isnan(values), axis=0)
        found = {}
        for j in np.flatnonzero(self.kinds == TRUTHS).tolist():
            truths = _truths(unquoted(_columns(cells, [j], width)))
            if truths is None:
                self._become_text(np.array([j]))
            else:
                found[j] = truths
        if not found:
            return values
        order = np.argsort([*columns, *found])
        return np.column_stack([values, *found.values()])[:, order]

    def _learn(self, cells: Any, columns: Array, values: Array, odd: Array, where: Any) -> None:
        """Make columns that hold something odd, in the cells ``odd`` of theirs, truths or text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        row, k = np.divmod(odd, len(columns))
        place = row * len(self.names) + columns[k]  # among all cells
        words = pc.utf8_lower(unquoted(cells.take(pa.array(place))))
        truth = pc.is_in(words, value_set=pa.array(["true", "false"])).to_numpy(zero_copy_only=False)
        numbers = len(values) - np.count_nonzero(np.isnan(values), axis=0) + self.numbers[columns]
        text = np.zeros(len(columns), bool)
        text[k[~truth]] = True
        text[k[numbers[k] > 0]] = True
        self.kinds[columns[k]] = TRUTHS
        self._become_text(columns[text])
        nearly = text & (2 * numbers > self.count + len(values))
        which, first = np.unique(k, return_index=True)
        for i, cell in zip(which.tolist(), place[first].tolist()):
            if nearly[i] and len(self.nearly) < MOST_NOTES:
                source, line = where(cell)
                name, word = shown(self.names[columns[i]]), shown(unquoted(cells.slice(cell, 1))[0].as_py())
                found = f"{source.name}, line {line} holds {word!r}"
                self.nearly[int(columns[i])] = f"Left out the column {name}, though most of it is numbers: {found}."

    def _become_text(self, columns: Array) -> None:
        self.kinds[columns] = TEXT
        if self.count and len(columns):
            self.held = False


# --- what cells mean ----------------------------------------------------------------------------------


def _columns(cells: Any, columns: Any, width: int) -> Any:
    """Return the cells of some columns, row by row."""
    import pyarrow as pa

    if len(columns) == width:
        return cells
    rows = np.arange(0, len(cells), width)
    return cells.take(pa.array((rows[:, None] + np.asarray(columns, np.int64)).ravel()))


def _numbers(cells: Any, decimal_comma: bool) -> tuple[Array, Array]:
    """Return cells as float64, and the places of those that are neither numbers nor missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    nothing = np.empty(0, np.int64)
    if decimal_comma:
        cells = pc.replace_substring(cells, ",", ".")
    try:
        return pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False), nothing
    except pa.ArrowInvalid:
        cells = unquoted(cells)
        cells = pc.if_else(pc.is_in(cells, value_set=pa.array(MISSING)), None, cells)
    try:
        return pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False), nothing
    except pa.ArrowInvalid:
        fine = pc.match_substring_regex(cells, f"^(?:{NUMBER})$")
        odd = np.flatnonzero(~pc.fill_null(fine, True).to_numpy(zero_copy_only=False))
        cells = pc.if_else(fine, cells, None)
    return pc.cast(cells, pa.float64()).to_numpy(zero_copy_only=False), odd


def _truths(cells: Any) -> Array | None:
    """Return true, false and missing cells as 1, 0 and NaN; None if there is anything else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.utf8_lower(cells)
    true = pc.equal(words, "true").to_numpy(zero_copy_only=False)
    false = pc.equal(words, "false").to_numpy(zero_copy_only=False)
    missing = pc.is_in(cells, value_set=pa.array(MISSING)).to_numpy(zero_copy_only=False)
    if not (true | false | missing).all():
        return None
    return np.where(missing, np.nan, true)


def _is_data(cells: list[str], decimal_comma: bool) -> bool:
    """Tell a first line of numbers from a header."""
    if not cells[0] or _counts(cells):  # a name left out, or names given, by the program that wrote the file
        return False
    bare = [cell.replace(",", ".") for cell in cells] if decimal_comma else cells
    return all(re.fullmatch(NUMBER, cell) or cell in MISSING for cell in bare) and not all(c in MISSING for c in bare)


def _counts(cells: list[str]) -> bool:
    """Tell the header 0, 1, 2 ... that pandas writes for columns without names."""
    return len(cells) > 2 and cells == [str(j) for j in range(len(cells))]


def _blank_lines(piece: Piece) -> int:
    """Return the number of blank lines before the first record."""
    return len(piece.text) - len(piece.text.lstrip(b"\n"))


def _sniffed(source: Source, delimiter: str | None) -> tuple[bytes, bool, list[str]]:
    """Return delimiter, whether numbers have a decimal comma, and notes, from the first lines of a file."""
    with source.open() as raw, naming(source.name):
        text = plain(raw).read(SNIFFED_BYTES)
    text = text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if len(text) < SNIFFED_BYTES:
        text += b"\n"
    tables = {sign: _first_cells(text, sign) for sign in ([delimiter.encode()] if delimiter else [b"\t", b";", b","])}
    widths = {sign: [len(line) for line in lines] for sign, lines in tables.items()}
    regular = [sign for sign, found in widths.items() if found[0] > 1 and len(set(found)) == 1]
    chosen = regular[0] if regular else max(reversed(widths), key=lambda sign: widths[sign][0])
    if chosen == b",":
        return chosen, False, []
    cells = [cell.strip(b' "') for line in tables[chosen] for cell in line]
    comma, point = (any(re.fullmatch(rb"[+-]?\d*" + sign + rb"\d+", cell) for cell in cells) for sign in (b",", rb"\."))
    if comma and not point:
        return chosen, True, ["Numbers were read with a decimal comma."]
    return chosen, False, []


def _first_cells(text: bytes, delimiter: bytes) -> list[list[bytes]]:
    """Return the raw cells of the first whole records of a text (of half a record, if there is no whole one)."""
    lines: list[list[bytes]] = []
    line: list[bytes] = []
    begin = 0
    for end in cell_ends(text, delimiter).tolist():
        line.append(text[begin:end])
        begin = end + 1
        if text[end] == NEWLINE:
            lines += [line] if line != [b""] else []
            line = []
            if len(lines) == SNIFFED_LINES:
                return lines
    return lines or [[*line, text[begin:]]]
