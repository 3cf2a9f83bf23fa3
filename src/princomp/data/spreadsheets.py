"""Excel's ``.xlsx``: a sheet is written as delimited text, so that it is understood as a CSV is.

A workbook is a ZIP archive of XML: the sizes that it claims, which unpacking never goes beyond, are compared with the
memory there is first.
"""

import datetime
import itertools
import tempfile
import warnings
import zipfile
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import ParseError

from princomp._text import listed
from princomp.data.delimited import read_delimited
from princomp.data.reading import DataError, File, Request, Spooled, brief, naming, plural, quoted, spill_folder
from princomp.data.rows import Rows

# Bytes of memory for a byte of a part, by how its name begins; the last is for all other XML, kept as objects.
WEIGHTS = (("xl/sharedStrings", 8), ("xl/worksheets/sheet", 1), ("xl/pivotCache/pivotCacheRecords", 0), ("", 40))
LINE_BREAKS = str.maketrans({"\r": " ", "\n": " ", "\0": " "})  # so that lines are counted as rows are
LOOKED_AT = 100  # rows, for formulae
FAULTS = (zipfile.BadZipFile, ParseError, KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError,
          RuntimeError, NotImplementedError, SyntaxError)  # fmt: skip


def need_openpyxl() -> Any:
    """Return openpyxl, or say how to install it."""
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError('Excel files are read with openpyxl: pip install "princomp[io]"') from error
    return openpyxl


def read_xlsx(files: Sequence[File], request: Request) -> Rows:
    """Read one sheet of each file, all with the same columns, one after the other."""
    need_openpyxl()
    sheets = [_Sheet(file, request) for file in files]
    texts = [Spooled(sheet, sheet.name, request.kept) for sheet in sheets]
    rows = read_delimited(texts, replace(request, decimal="."), delimiter=",")
    rows.notes = (*(note for sheet in sheets for note in sheet.notes()), *rows.notes)
    return rows


class _Sheet:
    """A sheet as delimited text, line by line: a stream to be read once."""

    def __init__(self, file: File, request: Request) -> None:
        self.name, self._file, self._request = file.name, file, request
        self._begun, self._errors, self._counts = False, 0, array("L")  # cells of errors; and the cells of each row
        self._rough = tempfile.SpooledTemporaryFile(request.kept, dir=spill_folder())  # noqa: SIM115  closed with us
        with self._opened(values=True) as (sheet, others):
            self.title, self._others = sheet.title, others
            for row in sheet.iter_rows(values_only=True):
                self._take(row)
        while self._counts and not self._counts[-1]:
            self._counts.pop()
        if not self._counts:
            raise DataError(f"{file.name}, sheet {quoted(self.title)} is empty.")
        self._width = max(self._counts)
        self._rough.seek(0)
        self._lines = zip(self._counts, self._rough)

    def __del__(self) -> None:
        self._rough.close()

    def _take(self, row: tuple[Any, ...]) -> None:
        cells = [self._text(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        self._counts.append(len(cells))
        # Rows are made as long as the longest one: a few cells far out would be a large table of nothing.
        self._request.require(8 * len(self._counts) * max(len(cells), 1), f"{self.name}, the table in it,")
        self._rough.write(",".join(cells).encode("utf-8", "backslashreplace") + b"\n")

    def _text(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            return repr(value)
        if isinstance(value, datetime.datetime) and value.time() == datetime.time():
            value = value.date()
        text = str(value).translate(LINE_BREAKS)
        if text.startswith("#") and text in ERRORS:
            self._errors += 1
            return ""
        return '"' + text.replace('"', '""') + '"'

    def read(self, size: int) -> bytes:
        """Return the next lines, all as long as the longest; nothing at the end."""
        lines = itertools.islice(self._lines, max(1, size // (8 * self._width)))
        return b"".join(self._whole(count, line) for count, line in lines)

    def _whole(self, count: int, line: bytes) -> bytes:
        self._begun = self._begun or bool(count)
        if not self._begun:
            return b"\n"  # empty rows above a table are no part of it
        empty = b'""' if count == 0 and self._width == 1 else b""  # a blank line would be passed over
        return line[:-1] + empty + b"," * (self._width - max(count, 1)) + b"\n"

    def notes(self) -> Iterator[str]:
        """Yield what the user should know."""
        if self._others and self._request.sheet is None:
            others = listed(self._others)
            yield f"Read the first sheet of {self.name}, {quoted(self.title)}; sheet= picks another one: {others}."
        if self._errors:
            yield f"{self.name}: {plural(self._errors, 'cell')} of errors, such as #N/A or #DIV/0!, read as missing."
        if self._lacks_values():
            yield (f"{self.name} has formulae without values, which were read as missing: open it in a spreadsheet "
                   "program and save it.")  # fmt: skip

    def _lacks_values(self) -> bool:
        """Tell whether one of the first rows has a formula where no value was stored with it."""
        with self._opened(values=False) as (sheet, _):
            told = [list(row) for row in itertools.islice(sheet.iter_rows(values_only=True), LOOKED_AT)]
        if not any(isinstance(cell, str) and cell.startswith("=") for row in told for cell in row):
            return False
        with self._opened(values=True) as (sheet, _):
            pairs = zip(told, sheet.iter_rows(values_only=True))
            return any(
                value is None and isinstance(cell, str) and cell.startswith("=")
                for row, values in pairs
                for cell, value in itertools.zip_longest(row, values)
            )

    @contextmanager
    def _opened(self, *, values: bool) -> Iterator[tuple[Any, list[str]]]:
        """Yield the sheet asked for, its cells as values or formulae, and the names of the others."""
        openpyxl, name = need_openpyxl(), self.name
        with self._file.open() as raw, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # styles and extensions that openpyxl does not know
            try:
                with naming(name):
                    self._check_sizes(raw)
                    book = openpyxl.load_workbook(raw, read_only=True, data_only=values, keep_links=False)
                    with closing(book):
                        sheet, others = self._picked(book)
                        sheet.reset_dimensions()  # what a sheet claims to be, which rows are filled up to
                        yield sheet, others
            except (DataError, MemoryError):
                raise
            except FAULTS as error:
                raise DataError(f"{name} cannot be read as an Excel file ({brief(error)}).") from error

    def _check_sizes(self, raw: Any) -> None:
        """Raise MemoryError if the parts of a workbook, unpacked, would take too much."""
        with zipfile.ZipFile(raw) as archive:
            needed = sum(_weight(part.filename) * part.file_size for part in archive.infolist())
        self._request.require(needed, f"{self.name}, unpacked,")

    def _picked(self, book: Any) -> tuple[Any, list[str]]:
        titles = [sheet.title for sheet in book.worksheets]
        wanted = self._request.sheet
        if not titles or (wanted is not None and wanted not in titles):
            what = "no sheet of cells" if wanted is None else f"no sheet {quoted(wanted)}"
            raise DataError(f"{self.name} has {what}; it has {listed(titles) or 'none'}.")
        place = 0 if wanted is None else titles.index(wanted)
        return book.worksheets[place], [title for title in titles if title != titles[place]]


def _weight(part: str) -> int:
    """Return how much memory a byte of a part may take; pictures and the like are never opened."""
    if not part.endswith((".xml", ".rels")):
        return 0
    return next(weight for begins, weight in WEIGHTS if part.startswith(begins))


ERRORS = ("#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#GETTING_DATA", "#SPILL!", "#CALC!")
