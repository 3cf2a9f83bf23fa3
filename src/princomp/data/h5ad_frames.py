"""The tables of an AnnData file, ``obs`` and ``var``: names, columns of texts, of categories, of true and false."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from princomp._text import listed, shown
from princomp._typing import Array
from princomp.data.hdf5 import check_size, member, part_of
from princomp.data.reading import DataError, File, Request, quoted
from princomp.data.tables import MOST_LABELS, NAME_BYTES

TEXTS = 4096  # read at a time: a text may have any length


class Labels(Mapping[str, Array]):
    """Texts by column name, each made an array of str when it is asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Array]]) -> None:
        self._makers = makers

    def __getitem__(self, name: str) -> Array:
        return self._makers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"<Labels {listed(list(self))}>"


def joined(parts: Sequence[Mapping[str, Array]]) -> Labels:
    """Return the texts of several tables, one after the other: the columns that all of them have."""
    common = [name for name in parts[0] if all(name in part for part in parts)]
    return Labels({name: partial(_together, parts, name) for name in common})


def _together(parts: Sequence[Mapping[str, Array]], name: str) -> Array:
    return np.concatenate([part[name] for part in parts])


def of_codes(words: Sequence[str], codes: Array) -> Array:
    """Return the word of each code; -1 is a missing one, and empty."""
    return np.array([*words, ""], dtype=object)[codes]


def renewal(file: File) -> DataError:
    """Say how a file from before the layout that is read here becomes one of today."""
    return DataError(
        f'{file.name} was written by an anndata older than 0.7. Renew it: python -c "import anndata; '
        "anndata.read_h5ad('old.h5ad').write_h5ad('new.h5ad')\""
    )


class Frame:
    """A table of an open file, at a path in it."""

    def __init__(self, h5: Any, path: str, file: File, request: Request) -> None:
        self._h5, self._path, self._file, self._request = h5, path, file, request
        self._group = self._member(h5, path)
        if hasattr(self._group, "dtype") or "_index" not in self._group.attrs:
            raise renewal(file)
        self._index = _word(self._group.attrs["_index"])
        self.columns = [_word(name) for name in self._group.attrs.get("column-order", ())]
        index = self._member(self._group, self._index)
        self.length = int((index if hasattr(index, "dtype") else self._member(index, "values")).shape[0])

    def _member(self, group: Any, path: str) -> Any:
        return member(self._h5, f"{group.name}/{path}", self._file.name)  # in full, for messages

    def names(self) -> list[str]:
        """Return the names of the lines."""
        return self._texts(self._member(self._group, self._index))

    def truth(self, name: str) -> Array:
        """Return a column of true and false that is asked for, (length,) of bool."""
        if name not in self.columns:
            close = difflib.get_close_matches(name, self.columns) or self.columns
            raise DataError(
                f"{self._file.name}: {self._path} has no column {quoted(name)}; it has {listed(close) or 'none'}."
            )
        found = self.marked(name)
        if found is None or not found.any():
            what = "does not hold true and false" if found is None else "is true for nothing"
            raise DataError(
                f"{self._file.name}: {self._path}/{shown(name)} {what}: it cannot say which columns to keep."
            )
        return found

    def marked(self, name: str) -> Array | None:
        """Return a column of true and false, what is missing being false; None if there is none of this name."""
        if name not in self.columns:
            return None
        column = values = self._member(self._group, name)
        nullable = _encoding(column) == "nullable-boolean"
        if nullable:
            values = self._member(column, "values")
        if not hasattr(values, "dtype") or values.dtype != bool:
            return None
        found = self._numbers(values)
        return found & ~self._numbers(self._member(column, "mask")).astype(bool) if nullable else found

    def labels(self, asked: Sequence[str]) -> tuple[Labels, list[str]]:
        """Return the columns of texts and categories, and those that are ``asked`` for; and what was not kept."""
        makers: dict[str, Callable[[], Array]] = {}
        dropped, left = [], self._request.kept
        for name in dict.fromkeys([*asked, *self.columns]):
            column = self._member(self._group, name)
            cost = self._cost(column, name in asked)
            if cost is None:
                continue
            if len(makers) == MOST_LABELS or cost > left:
                dropped.append(name)
                continue
            left -= cost
            makers[name] = self._maker(column)
        return Labels(makers), dropped

    def _cost(self, column: Any, asked: bool) -> int | None:
        """Return about how many bytes the texts of a column take; None if it holds no text and is not asked for."""
        if _encoding(column) == "categorical" or "categories" in column.attrs:
            return 8 * self.length
        text = _encoding(column) == "nullable-string-array" or (hasattr(column, "dtype") and _is_text(column))
        return NAME_BYTES * self.length if text or asked else None

    def _maker(self, column: Any) -> Callable[[], Array]:
        """Return what makes the texts of a column, from what is read of it now."""
        if _encoding(column) == "categorical":
            words, codes = self._member(column, "categories"), self._member(column, "codes")
        elif hasattr(column, "dtype") and "categories" in column.attrs:  # by anndata before 0.8
            name = column.name.rpartition("/")[2]
            words, codes = self._member(self._group, f"__categories/{name}"), column
        else:
            return partial(np.array, self._texts(column), dtype=object)
        known, found = self._texts(words, None), self._numbers(codes)
        if found.dtype.kind not in "iu" or (len(found) and not -1 <= found.min() <= found.max() < len(known)):
            raise DataError(
                f"{self._file.name}: {shown(column.name)} is damaged: it names a category that is not there."
            )
        return partial(of_codes, known, found)

    def _texts(self, column: Any, length: int | None = -1) -> list[str]:
        """Return the cells of a column as texts, what is missing as an empty one; ``length`` None: however many."""
        missing = None
        if not hasattr(column, "dtype"):
            if not _encoding(column).startswith("nullable-"):
                raise DataError(f"{self._file.name}: {shown(column.name)} is of a kind that is not read as text.")
            column, missing = self._member(column, "values"), self._numbers(self._member(column, "mask"))
        length = self.length if length == -1 else None
        if column.ndim != 1 or (length is not None and len(column) != length):
            raise self._contradicts(column)
        what, size = f"{self._file.name}, {shown(column.name)},", 0
        texts: list[str] = []
        check_size(column, self._request, what)
        self._request.require(NAME_BYTES * len(column), what)
        for start in range(0, len(column), TEXTS):
            cells = part_of(column, start, min(start + TEXTS, len(column)), what).tolist()
            texts += map(_word, cells)
            size += sum(len(text) for text in texts[start:])
            self._request.require(size, what)
        return texts if missing is None else ["" if gone else text for text, gone in zip(texts, missing)]

    def _numbers(self, column: Any) -> Array:
        if column.ndim != 1 or len(column) != self.length or column.dtype.kind not in "fiub":
            raise self._contradicts(column)
        what = f"{self._file.name}, {shown(column.name)},"
        check_size(column, self._request, what)
        self._request.require(column.dtype.itemsize * len(column), what)
        return part_of(column, 0, len(column), what)

    def _contradicts(self, column: Any) -> DataError:
        has = f"has shape {column.shape}, but {self._path} has {self.length} rows"
        return DataError(f"{self._file.name}: {shown(column.name)} {has}. Write it again.")


def _encoding(found: Any) -> str:
    """Return the kind that a group or dataset says it is of."""
    return _word(found.attrs.get("encoding-type", ""))


def _is_text(dataset: Any) -> bool:
    import h5py

    return h5py.check_string_dtype(dataset.dtype) is not None


def _word(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
