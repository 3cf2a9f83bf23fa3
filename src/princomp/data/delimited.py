"""CSV and its kin: which columns are numbers is known only at the end, so a second reading is made if a guess fails."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from princomp._text import listed, shown
from princomp._typing import Array
from princomp.data import tables
from princomp.data.cells import (
    MISSING,
    NEWLINE,
    NO_NUMBER,
    NUMBER,
    Piece,
    as_numbers,
    as_truths,
    cell_ends,
    of_columns,
    pieces,
    plain,
    records,
    rectangle,
    strings,
    unquoted,
)
from princomp.data.reading import DataError, Request, Source, naming, plural, quoted
from princomp.data.rows import Rows
from princomp.data.stored import Sink

NUMBERS, TRUTHS, TEXT = 0, 1, 2  # kinds of columns; one with nothing in it counts as numbers

MOST_NOTES = 10
FEWEST_COUNTED = 10  # rows from which on a column that counts them is no coincidence
FILLED_CELLS = 2**18  # made at a time, of rows of empty cells
SNIFFED_BYTES = 2**18
SNIFFED_LINES = 20
DELIMITERS = (b"\t", b";", b",", b"|")  # the first that fits is taken
SEP_LINE = re.compile(rb'"?sep=([,;|\t:^~ ])"?\n')  # Excel's own first line
# A number that shows the decimal mark of its table; 12,345 shows that only if something else does.
MARKED = re.compile(
    rb"[+-]?(?:(?P<either>[1-9]\d{0,2},\d{3})"
    rb"|(?P<comma>(?:\d*|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d+)?)"
    rb"|(?P<point>(?:(?:\d*|\d{1,3}(?:,\d{3})+)\.\d+|\d+\.)(?:[eE][+-]?\d+)?))"
)


def read_delimited(sources: Sequence[Source], request: Request, delimiter: str | None = None) -> Rows:
    """Read delimited text, one file after the other; by default the delimiter is sniffed from the first."""
    tables.need_pyarrow()
    table = _Table(sources, request, delimiter)
    while not table.read_through():
        pass
    return table.rows()


class _Table:
    """One or several files of delimited text with the same columns."""

    def __init__(self, sources: Sequence[Source], request: Request, delimiter: str | None) -> None:
        self.sources, self.request = sources, request
        self.notes: list[str] = []
        self.kind_says = delimiter is not None and request.delimiter is None  # what separates cells
        self.delimiter, self.short = _layout(sources[0], request, delimiter)
        self.decimal_comma = (request.decimal or _decimal_mark(sources, self.delimiter)) == ","
        if self.decimal_comma and request.decimal is None:
            self.notes.append("Numbers were read with a decimal comma.")
        self.header, width = self._header(sources[0])
        self._name_columns(width)
        tables.check_names(self.names, self.request, sources[0])
        where = {name: j for j, name in enumerate(self.names)}
        self.kinds = np.full(width, NUMBERS, np.int8)
        self.asked = {*self.request.label, self.request.index}
        self.unwanted = {where[name] for name in request.drop}
        self.kinds[[where[name] for name in self.asked if name is not None] + list(self.unwanted)] = TEXT
        self.nearly: dict[int, str] = {}  # columns of text that are nearly numbers: a sentence about each
        self.empty: set[int] = set()  # columns without name and cells

    def _name_columns(self, width: int) -> None:
        guessed = self.request.header is None
        if self.header is None:
            self.names = [str(j) for j in range(width)]
            if guessed:
                self.notes.append(
                    "The first line holds numbers only, so it was read as data; columns are numbered from 0."
                )
            return
        self.names = tables.unique_names(self.header)
        if not self.header[0] and self.request.index is None and self.names[0] not in self.request.drop:
            self.request = replace(self.request, index=self.names[0])
            self.notes.append("The first column has no name, so it was read as sample names.")
        if guessed and _counts(self.header):
            self.notes.append("The first line only counts, 0, 1, 2 ..., so it was read as column names.")

    # --- reading ------------------------------------------------------------------------------------

    def read_through(self) -> bool:
        """Read all files; return whether the kinds of columns assumed at the first row held to the last."""
        self.count, self.held = 0, True
        self.waiting = self.skipped = 0  # rows of empty cells: not yet known to be at the end, and at the end
        self.numbers = np.zeros(len(self.names), np.int64)
        self.sink, self.texts = Sink(0, np.float64, 0), tables.Texts([], None, 0)
        for source in self.sources:
            with source.open() as raw:
                for piece in self._pieces(raw, source):
                    self._take(piece, source)
            self.skipped += self.waiting
            self.waiting = 0
        nameless = np.array([self.header is None or not cell for cell in self.header or self.names], bool)
        empty = np.flatnonzero(nameless & (self.kinds == NUMBERS) & (self.numbers == 0))
        if len(empty) and self.count:  # a delimiter at the end of each line, most likely
            self.empty |= set(empty.tolist())
            self.kinds[empty] = TEXT
            self.held = False
        return self.held

    def rows(self) -> Rows:
        """Return what was read."""
        skipped = {*self.nearly, *self.empty, *self.unwanted}
        left_out = [j for j in np.flatnonzero(self.kinds == TEXT).tolist() if j not in skipped]
        notes = [*self.notes, *self.nearly.values()]
        if self.header is not None:
            named = {j for j in (0, *self.empty) if j or self.names[0] == self.request.index}
            notes += tables.name_notes(self.header, self.names, named | self.unwanted)
        notes += tables.text_notes([self.names[j] for j in left_out if self.names[j] not in self.asked], self.texts)
        if self.empty:
            notes.append(f"Left out {plural(len(self.empty), 'column')} without a name and without a number.")
        if self.skipped:
            notes.append(f"Skipped {plural(self.skipped, 'row')} of empty cells at the end.")
        features = [self.names[j] for j in self._features().tolist()]
        if self.count >= FEWEST_COUNTED:
            for name in [features[k] for k in self.counting[:MOST_NOTES]]:
                names_rows = f"if it names the rows, give index={quoted(name)}"
                notes.append(f"Column {shown(name)} counts up by one: {names_rows}.")
        names = None if self.header is None else features
        return tables.described(self.sink, self.request, self.sources[0], names=names, texts=self.texts, notes=notes)

    def _features(self) -> Array:
        return np.flatnonzero(self.kinds != TEXT)

    def _pieces(self, raw: Any, source: Source) -> Iterator[Piece]:
        first = True
        for piece in self._all_pieces(raw, source):
            if first and len(records(piece)[1]):
                first = False
                header, _, end = self._header_of(piece)
                tables.check_same(self.sources[0], self.header, source, header)
                if header is not None:
                    piece = piece.after(end + 1)
            yield piece

    def _all_pieces(self, raw: Any, source: Source) -> Iterator[Piece]:
        """Yield the records of one file, its header too, but not the line that tells Excel the delimiter."""
        for piece in pieces(plain(raw), source.name, self.delimiter, self.request.longest_line):
            said = SEP_LINE.match(piece.text) if piece.line == 1 else None
            yield piece.after(said.end()) if said else piece

    def _header(self, source: Source) -> tuple[list[str] | None, int]:
        with source.open() as raw:
            for piece in self._all_pieces(raw, source):
                if len(records(piece)[1]):
                    return self._header_of(piece)[:2]
        raise DataError(f"{source.name} holds blank lines only.")

    def _header_of(self, piece: Piece) -> tuple[list[str] | None, int, int]:
        """Return the header that a piece begins with, the number of columns, and where the first record ends."""
        ends, counts = records(piece)
        cells = unquoted(strings(piece.text, ends[: counts[0]], self.delimiter)).to_pylist()
        end = int(ends[counts[0] - 1])
        asked = self.request.header
        if asked is False or (asked is None and _is_data(cells, self.decimal_comma)):
            return None, len(cells), end
        if self.short:
            cells.insert(0, "")
        return cells, len(cells), end

    # --- one piece ------------------------------------------------------------------------------------

    def _take(self, piece: Piece, source: Source) -> None:
        width = len(self.names)
        ends = rectangle(piece, width, source.name)
        if not len(ends):
            return
        cells = strings(piece.text, ends, self.delimiter)
        full = _filled_rows(cells, width)
        last_empty = len(cells) // width - full
        if not full:
            self.waiting += last_empty
            return
        cells = cells.slice(0, full * width)
        values = self._values(cells, lambda cell: (source, piece.line_of(int(ends[cell]))))
        if not self.count:
            self._begin()
        while self.waiting:
            count = min(self.waiting, max(1, FILLED_CELLS // width))
            self._keep(np.full((count, values.shape[1]), np.nan), lambda _: _empty_strings(count))  # noqa: B023
            self.waiting -= count
        self._keep(values, lambda name: unquoted(of_columns(cells, [self.where[name]], width)))
        self.waiting = last_empty

    def _keep(self, values: Array, text_of: Callable[[str], Any]) -> None:
        if self.held:
            self._count_up(values)
            self.sink.append(values)
            for name in self.texts.wanted():
                self.texts.add(name, text_of(name))
        self.count += len(values)

    def _count_up(self, values: Array) -> None:
        """Learn which features still count up by one from row to row."""
        if not self.count:
            self.start = values[0].copy()
            exact = np.abs(self.start) < 2**53  # above, adding one may change nothing
            self.counting = np.flatnonzero(exact & (self.start == np.floor(self.start)))
        row = np.arange(self.count, self.count + len(values), dtype=np.float64)
        few = values[:FEWEST_COUNTED, self.counting]
        likely = self.counting[(few == self.start[self.counting] + row[: len(few), None]).all(axis=0)]
        kept = [k for k in likely.tolist() if np.array_equal(values[:, k], self.start[k] + row)]
        self.counting = np.array(kept, np.int64)

    def _begin(self) -> None:
        """Make room for the columns as they were found in the first piece."""
        features = self._features()
        if not len(features):
            found = "" if self.kind_says else f", separated by {quoted(self.delimiter.decode())},"
            raise DataError(
                f"{self.sources[0].name} has no column of numbers; its columns{found} are {listed(self.names)}."
            )
        self.sink = Sink(len(features), np.float64, self.request.kept)
        unwanted = self.empty | self.unwanted
        text = [j for j in np.flatnonzero(self.kinds == TEXT).tolist() if j not in unwanted]
        text.sort(key=lambda j: self.names[j] not in self.asked)  # those asked for first
        self.where = {self.names[j]: j for j in text}
        self.texts = tables.Texts(list(self.where), self.request.index, self.request.kept)

    def _values(self, cells: Any, where: Any) -> Array:
        """Return the numbers of a piece, (rows, features), after learning from it which columns are numbers."""
        width = len(self.names)
        columns = np.flatnonzero(self.kinds == NUMBERS)
        flat, odd = as_numbers(of_columns(cells, columns, width), self.decimal_comma)
        values = flat.reshape(len(cells) // width, len(columns))
        if len(odd):
            self._learn(cells, columns, values, odd, where)
            still = self.kinds[columns] == NUMBERS
            columns, values = columns[still], values[:, still]
        self.numbers[columns] += len(values) - np.count_nonzero(np.isnan(values), axis=0)
        found = {}
        for j in np.flatnonzero(self.kinds == TRUTHS).tolist():
            truths = as_truths(unquoted(of_columns(cells, [j], width)))
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
        first_words = unquoted(cells.take(pa.array(place[first]))).to_pylist()
        for i, cell, word in zip(which.tolist(), place[first].tolist(), first_words):
            if len(self.nearly) == MOST_NOTES:
                return
            hint = self._hint(word)
            if nearly[i] or hint:
                source, line = where(cell)
                though = ", though most of it is numbers" if nearly[i] else ""
                found = f"{source.name}, line {line} holds {quoted(word)}{hint}"
                self.nearly[int(columns[i])] = f"Left out the column {shown(self.names[columns[i]])}{though}: {found}."

    def _hint(self, word: str) -> str:
        """Say so if a cell is a number with the other decimal mark."""
        marked = MARKED.fullmatch(word.strip().encode())
        kind = marked.lastgroup if marked else None
        if kind == "point" and self.decimal_comma:
            return ", but the file uses decimal commas"
        # Among commas as delimiters, "1,2" is rather a list.
        if kind == "comma" and not self.decimal_comma and self.request.decimal is None and self.delimiter != b",":
            return ", which looks like a decimal comma: give decimal=','"
        return ""

    def _become_text(self, columns: Array) -> None:
        self.kinds[columns] = TEXT
        if self.count and len(columns):
            self.held = False


# --- single lines -------------------------------------------------------------------------------------


def _is_data(cells: list[str], decimal_comma: bool) -> bool:
    """Tell a first line of numbers from a header."""
    if not cells[0] or _counts(cells):  # a name left out, or names given, by the program that wrote the file
        return False
    bare = [cell.strip() for cell in cells]
    if decimal_comma:
        bare = [cell.replace(".", NO_NUMBER).replace(",", ".") for cell in bare]
    return all(re.fullmatch(NUMBER, cell) or cell in MISSING for cell in bare) and not all(c in MISSING for c in bare)


def _counts(cells: list[str]) -> bool:
    """Tell the header 0, 1, 2 ... that pandas writes for columns without names."""
    return len(cells) > 2 and cells == [str(j) for j in range(len(cells))]


def _filled_rows(cells: Any, width: int) -> int:
    """Return the number of rows up to the last one that has anything in it."""
    import pyarrow.compute as pc

    if pc.sum(pc.binary_length(cells.slice(len(cells) - width))).as_py():
        return len(cells) // width
    filled = pc.binary_length(cells).to_numpy().reshape(-1, width).any(axis=1)
    return int(np.flatnonzero(filled)[-1]) + 1 if filled.any() else 0


def _empty_strings(count: int) -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([""]))


# --- how a table is written -----------------------------------------------------------------------------


def _layout(source: Source, request: Request, usual: str | None) -> tuple[bytes, bool]:
    """Return the delimiter, and whether the header lacks the name of the first column, as R writes it."""
    text = _head(source)
    said = SEP_LINE.match(text)
    given = request.delimiter.encode() if request.delimiter else said[1] if said else usual.encode() if usual else None
    signs = [given] if given else DELIMITERS
    widths = {sign: [len(cells) for _, cells in _first_cells(text, sign)] for sign in signs}
    regular = [sign for sign, found in widths.items() if found[0] > 1 and len(set(found)) == 1]
    short = [sign for sign, found in widths.items() if set(found[1:]) == {found[0] + 1}]
    if regular:
        return regular[0], False
    if short:
        return short[0], True
    return max(widths, key=lambda sign: (widths[sign][0], sign == b",")), False


def _decimal_mark(sources: Sequence[Source], delimiter: bytes) -> str:
    """Return the decimal mark that the numbers in the first lines of all files show; raise DataError if in doubt."""
    if delimiter == b",":
        return "."
    found: dict[str | None, tuple[Source, int, str]] = {}
    for source in sources:
        for line, cells in _first_cells(_head(source), delimiter):
            for cell in cells:
                bare = cell.strip(b' "')
                if marked := MARKED.fullmatch(bare):
                    found.setdefault(marked.lastgroup, (source, line, bare.decode()))
    comma, point = found.get("comma") or found.get("either"), found.get("point")
    if comma is None:
        return "."
    source, line, word = comma
    holds = f"{source.name}, line {line} holds {quoted(word)}"
    if point is not None:
        other = f"line {point[1]}" if point[0] is source else f"{point[0].name}, line {point[1]}"
        raise DataError(f'{holds}, but {other} holds {quoted(point[2])}: give decimal="," or decimal=".".')
    if "comma" not in found:
        meanings = f"{word.replace(',', '')} or {word.replace(',', '.')}"
        raise DataError(f'{holds}, which may mean {meanings}: give decimal="," or decimal=".".')
    return ","


def _head(source: Source) -> bytes:
    """Return the beginning of a file, each line ended by a newline."""
    with source.open() as raw, naming(source.name):
        text: bytes = plain(raw).read(SNIFFED_BYTES)
    whole = len(text) < SNIFFED_BYTES
    text = text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text + b"\n" if whole else text


def _first_cells(text: bytes, delimiter: bytes) -> list[tuple[int, list[bytes]]]:
    """Return line number and raw cells of the first whole records of a text (of half a one, if none is whole)."""
    found: list[tuple[int, list[bytes]]] = []
    cells: list[bytes] = []
    line, begin = 1, 0
    if said := SEP_LINE.match(text):
        line, text = 2, text[said.end() :]
    for end in cell_ends(text, delimiter).tolist():
        cells.append(text[begin:end])
        begin = end + 1
        if text[end] == NEWLINE:
            if len(cells) > 1 or cells[0].strip():
                found.append((line, cells))
            line += 1 + sum(cell.count(b"\n") for cell in cells)
            cells = []
            if len(found) == SNIFFED_LINES:
                return found
    return found or [(line, [*cells, text[begin:]])]
