"""Tables with named columns, of whatever file: names, text kept beside the numbers, and notes to the user."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from princomp._text import listed, shown
from princomp._typing import Array
from princomp.data.cells import LIKE_NUMBER, MISSING, NUMBER
from princomp.data.reading import DataError, Request, Source, plural, quoted
from princomp.data.rows import Rows
from princomp.data.stored import Sink

MOST_LABELS = 100  # text columns kept: each costs some memory in each part of a file
MOST_ALIKE = 10  # text columns named because they look like numbers
NAME_BYTES = 64  # that Python takes for a short text, beyond its characters


def need_pyarrow() -> None:
    """Say how to install what tables are read with, if it is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError('Tables are read with pyarrow, which is missing: pip install "princomp[io]"') from error


class Texts:
    """Text columns, gathered part by part; what would take too much memory is let go of."""

    def __init__(self, names: Sequence[str], index: str | None, budget: int) -> None:
        self.dropped = list(names[MOST_LABELS:])
        self._parts: dict[str, list[Any]] = {name: [] for name in names[:MOST_LABELS]}
        self._sizes = dict.fromkeys(self._parts, 0)
        self._index, self._budget = index, budget

    def wanted(self) -> list[str]:
        """Return the names of the columns that are still gathered."""
        return list(self._parts)

    def add(self, name: str, strings: Any) -> None:
        """Take the next cells of a column, an Arrow array of strings."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not pa.types.is_dictionary(strings.type):
            strings = pc.dictionary_encode(pc.fill_null(strings, ""))
        self._parts[name].append(strings)
        self._sizes[name] += strings.nbytes + (NAME_BYTES * len(strings) if name == self._index else 0)
        while sum(self._sizes.values()) > self._budget:
            largest = max(self._sizes, key=lambda each: self._sizes[each])
            del self._parts[largest], self._sizes[largest]
            self.dropped.append(largest)

    def like_number(self, name: str) -> str | None:
        """Return a cell that looks like a number but is not read as one, if all cells of a column are so or numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        first = None
        for part in self._parts.get(name, []):
            number = pc.match_substring_regex(part.dictionary, f"^(?:{NUMBER})$")
            missing = pc.is_in(part.dictionary, value_set=pa.array(MISSING))
            words = part.dictionary.filter(pc.invert(pc.or_(number, missing)))
            alike = pc.match_substring_regex(words, f"^(?:{LIKE_NUMBER})$")
            if not pc.all(alike, min_count=0).as_py():
                return None
            first = first or (words[0].as_py() if len(words) else None)
        return first

    def labels(self) -> Labels:
        """Return what was gathered."""
        return Labels(self._parts)


class Labels(Mapping[str, Array]):
    """Text by column name, held as codes; a column is made an array of str when asked for."""

    def __init__(self, parts: dict[str, list[Any]]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Array:
        pieces = []
        for part in self._parts[name]:
            words = np.array(["" if word is None else word for word in part.dictionary.to_pylist()] + [""], object)
            codes = part.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False)
            pieces.append(words[codes])
        return np.concatenate(pieces) if pieces else np.empty(0, object)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"<Labels {listed(list(self))}>"


def unique_names(cells: Sequence[str]) -> list[str]:
    """Return a name for each column, no two alike and none empty."""
    names: list[str] = []
    taken, seen = set(cells), set()
    next_number: dict[str, int] = {}
    for j, cell in enumerate(cells):
        name = cell or f"column {j}"
        if cell in seen if cell else name in taken:
            k = next_number.get(name, 1)
            while f"{name}.{k}" in taken:
                k += 1
            next_number[name] = k + 1
            name = f"{name}.{k}"
        seen.add(cell)
        taken.add(name)
        names.append(name)
    return names


def name_notes(cells: Sequence[str], names: Sequence[str], skip: set[int]) -> list[str]:
    """Return notes on columns whose names `unique_names` made, but for those in ``skip``."""
    made = [(cell, name) for j, (cell, name) in enumerate(zip(cells, names)) if cell != name and j not in skip]
    empty = [name for cell, name in made if not cell]
    repeated = [name for cell, name in made if cell]
    notes = []
    if empty:
        notes.append(f"Named {plural(len(empty), 'column')} without a name: {listed(empty)}.")
    if repeated:
        notes.append(f"Renamed {plural(len(repeated), 'column')} whose name came before: {listed(repeated)}.")
    return notes


def check_names(names: Sequence[str], request: Request, source: Source) -> None:
    """Raise DataError if a column asked for is not there, with the names that come close."""
    there = set(names)
    for name in [*request.label, *request.drop, *([request.index] if request.index is not None else [])]:
        if name not in there:
            hint = f"its columns are {listed(list(names))}."
            if close := difflib.get_close_matches(name, names[:10_000]):
                hint = f"did you mean {' or '.join(map(shown, close))}?"
            raise DataError(f"{source.name} has no column {quoted(name)}: {hint}")


def check_same(first: Source, names: Sequence[str] | None, source: Source, others: Sequence[str] | None) -> None:
    """Raise DataError unless another file has the same columns as the first."""
    if names == others:
        return
    if names is None or others is None:
        with_, without = (source, first) if names is None else (first, source)
        raise DataError(
            f"{source.name} differs from {first.name}: {with_.name} has column names, {without.name} has not."
        )
    if len(names) != len(others):
        raise DataError(f"{source.name} has {len(others)} columns, but {first.name} has {len(names)}.")
    j = next(j for j in range(len(names)) if names[j] != others[j])
    differs = f"column {j} is {quoted(others[j])}, not {quoted(names[j])}"
    raise DataError(f"{source.name} has other columns than {first.name}: {differs}.")


def text_notes(left_out: Sequence[str], texts: Texts) -> list[str]:
    """Return notes on text columns: which are no features, and which are not even kept."""
    notes = []
    if left_out:
        alike = [(name, cell) for name in left_out if (cell := texts.like_number(name))][:MOST_ALIKE]
        hints = "".join(f"; {shown(name)} looks like numbers ({quoted(cell)})" for name, cell in alike)
        notes.append(f"Left out {plural(len(left_out), 'text column')}: {listed(list(left_out))}{hints}.")
    if texts.dropped:
        notes.append(
            f"Did not keep the text of {plural(len(texts.dropped), 'column')}, to save memory: {listed(texts.dropped)}."
        )
    return notes


def described(
    sink: Sink, request: Request, source: Source, *, names: Sequence[str] | None, texts: Texts, notes: Sequence[str]
) -> Rows:
    """Return the rows of a table with its names, labels and notes."""
    if not sink.count:
        raise DataError(f"{source.name} has no rows of data.")
    rows = sink.finish(request.blocks)
    labels = texts.labels()
    rows.names = None if names is None else tuple(names)
    if request.index is not None and request.index in labels:
        rows.sample_names = tuple(labels[request.index].tolist())
    if request.index is not None and request.index not in request.label:
        labels = Labels({name: labels._parts[name] for name in labels if name != request.index})
    rows.labels, rows.notes = labels, tuple(notes)
    return rows
