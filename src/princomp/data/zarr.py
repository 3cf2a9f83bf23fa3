"""Zarr arrays of formats 2 and 3, in folders and zip files.

The files of a block are read here, from the folder and nowhere else, looked at, and given to zarr in memory to unpack.
"""

import itertools
import json
import math
import os
import stat
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from princomp._text import listed, shown
from princomp._typing import Array
from princomp.data.arrays import check_matrix, picked
from princomp.data.chunked import rows_of
from princomp.data.reading import DataError, File, Folder, Request, brief, naming
from princomp.data.rows import Rows
from princomp.data.zarr_chunks import Layout, check_chunk, layout

METADATA = ("zarr.json", ".zarray")  # of formats 3 and 2
MOST_METADATA = 16 * 2**20  # bytes of one file: those of a root may hold all others
MOST_ARRAYS = 10_000  # looked at to find the only matrix
FEWEST_CHUNKS = 2000  # one chunk in so many must be there

Get = Callable[[str, int], bytes | None]  # the file with a name, if it is there and not longer than so many bytes


def need_zarr() -> None:
    """Say how to install what Zarr arrays are read with, if it is missing."""
    try:
        import zarr  # noqa: F401
    except ImportError as error:
        raise ImportError('Zarr arrays are read with zarr, which is missing: pip install "princomp[zarr]"') from error


# --- where the files are ----------------------------------------------------------------------------------


class Store(Protocol):
    """Files by their names, with / between folders."""

    name: str  # fit to be shown

    def open(self) -> Any:
        """Return a context manager that yields `Get`."""

    def below(self, path: str) -> Iterator[str]:
        """Yield the names of folders in a folder."""

    def place(self, path: str) -> str:
        """Return where a folder lies: two paths may lead to one."""

    def files(self, path: str) -> Iterator[str]:
        """Yield the names of files in a folder, and in those below."""


class InFolder:
    """Files in a folder: none outside of it is read, and none may change once it was read."""

    def __init__(self, folder: Folder) -> None:
        self.name, self._root = folder.name, os.path.realpath(folder.path)
        self._seen: dict[str, int] = {}

    @contextmanager
    def open(self) -> Iterator[Get]:
        """Yield a function that returns a file."""
        yield self._get

    def _path(self, name: str) -> str:
        path = os.path.realpath(os.path.join(self._root, name))
        if os.path.commonpath([path, self._root]) != self._root:
            raise DataError(f"{self.name}: {shown(name)} lies outside of the folder, and is not read: copy it into it.")
        return path

    def _get(self, name: str, most: int) -> bytes | None:
        path = self._path(name)
        try:
            with naming(f"{self.name}, {shown(name)},"), open(path, "rb", 0, opener=_at_once) as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise DataError(f"{self.name}, {shown(name)}, is not a regular file: it is not read.")
                if found.st_size > most:
                    raise DataError(f"{self.name}, {shown(name)}, is longer than it may be: it is damaged.")
                content = file.read(found.st_size) or b""
                self._compare(name, os.fstat(file.fileno()) if len(content) == found.st_size else None)
                return content
        except DataError as error:
            if not isinstance(error.__cause__, FileNotFoundError | NotADirectoryError | IsADirectoryError):
                raise
            self._compare(name, None)
            return None

    def _compare(self, name: str, found: os.stat_result | None) -> None:
        now = hash((found.st_ino, found.st_size, found.st_mtime_ns) if found else ())
        if self._seen.setdefault(name, now) != now:
            raise DataError(f"{self.name} changed while it was read: wait until it is complete, then read it again.")

    def below(self, path: str) -> Iterator[str]:
        """Yield the names of folders in a folder."""
        with naming(self.name):
            inside = sorted(entry.name for entry in os.scandir(self._path(path)) if entry.is_dir())
        return iter(inside)

    def place(self, path: str) -> str:
        """Return where a folder lies: two paths may lead to one."""
        return self._path(path)

    def files(self, path: str) -> Iterator[str]:
        """Yield the names of files in a folder, and in those below."""
        for _, _, names in os.walk(self._path(path)):
            yield from names


def _at_once(path: str, flags: int) -> int:
    """Open a file without waiting: a pipe, which is refused, may have nobody who writes into it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


class InZip:
    """Files in a zip file."""

    def __init__(self, file: File) -> None:
        self.name, self._file = file.name, file

    @contextmanager
    def open(self) -> Iterator[Get]:
        """Yield a function that returns a file."""
        with self._archive() as archive:
            there = set(archive.namelist())

            def get(name: str, most: int) -> bytes | None:
                if name not in there:
                    return None
                info = archive.getinfo(name)
                if info.file_size > most:
                    raise DataError(f"{self.name}, {shown(name)}, is longer than it may be: it is damaged.")
                with archive.open(info) as stream:
                    return stream.read(most + 1)[:most]

            yield get

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with self._file.open() as stream:
            try:
                with zipfile.ZipFile(stream) as archive, naming(self.name):
                    yield archive
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted, unknown
                raise DataError(f"{self.name} is not a whole zip file ({brief(error)}).") from error

    def below(self, path: str) -> Iterator[str]:
        """Yield the names of folders in a folder."""
        begin, inside = f"{path}/" if path else "", []
        at = bisect_left(self._names, begin)
        while at < len(self._names) and self._names[at].startswith(begin):
            child, slash, _ = self._names[at].removeprefix(begin).partition("/")
            if slash:
                inside.append(child)
                at = bisect_left(self._names, f"{begin}{child}0", at)  # behind all that is in it: "0" follows "/"
            else:
                at += 1
        return iter(sorted(inside))

    def place(self, path: str) -> str:
        """Return where a folder lies: there are no links."""
        return path

    def files(self, path: str) -> Iterator[str]:
        """Yield the names of files in a folder, and in those below."""
        begin = f"{path}/" if path else ""
        return itertools.takewhile(lambda name: name.startswith(begin), self._names[bisect_left(self._names, begin) :])

    @cached_property
    def _names(self) -> list[str]:
        """All names, in order: there may be too many to go through them for every folder."""
        with self._archive() as archive:
            return sorted(archive.namelist())


# --- the matrix -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ZarrMatrix:
    """A two-dimensional array: the files of a block are read together, and forgotten."""

    source: File | Folder
    store: Store
    path: str
    metadata: str  # name of the file
    plan: Layout

    @property
    def what(self) -> str:
        """Return file and array."""
        return _what(self.store, self.path)

    @property
    def shape(self) -> tuple[int, int]:
        """Return (n, p)."""
        return self.plan.shape[0], self.plan.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of its numbers."""
        return self.plan.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """Return rows and columns of what is in one file."""
        return self.plan.chunks

    @property
    def packed(self) -> bool:
        """Return True: files are read as a whole."""
        return True

    def rows(self, start: int, stop: int) -> Array:
        """Return some rows, read into a fresh array."""
        with self.store.open() as get:
            content = get(_joined(self.path, self.metadata), MOST_METADATA)
            if content is None:
                raise DataError(f"{self.what} is not there any more.")
            files = {self.metadata: content}
            with _errors(self.what):
                key = _opened(files).metadata.encode_chunk_key
            for place in self._places(start, stop):
                name = key(place)
                stored = get(_joined(self.path, name), self.plan.most_stored)
                if stored is not None:  # else the fill value
                    check_chunk(stored, self.plan, self.what)
                    files[name] = stored
        with _errors(self.what):
            return np.asarray(_opened(files)[start:stop])

    def _places(self, start: int, stop: int) -> Iterator[tuple[int, ...]]:
        """Yield the numbers of the chunks that hold some rows."""
        (_, p), (step, width) = self.shape, self.chunks
        return itertools.product(range(start // step, -(-stop // step)), range(-(-p // width)))


def _what(store: Store, path: str) -> str:
    return f"{store.name}, array {shown(path)}," if path else store.name


def _joined(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _opened(files: dict[str, bytes]) -> Any:
    """Return files in memory as zarr reads them."""
    import zarr
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import MemoryStore

    make = default_buffer_prototype().buffer.from_bytes
    store = MemoryStore({name: make(content) for name, content in files.items()}, read_only=True)
    return zarr.open_array(store=store, mode="r", zarr_format=3 if METADATA[0] in files else 2)


@contextmanager
def _errors(what: str) -> Iterator[None]:
    """Turn what zarr raises on damaged files into a DataError that names them."""
    try:
        yield
    except (
        OSError,
        EOFError,
        RuntimeError,
        ValueError,
        ArithmeticError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        raise DataError(f"{what} cannot be read as Zarr ({brief(error)}): write it again.") from error


def read_zarr(files: Sequence[File | Folder], request: Request) -> Rows:
    """Read the one matrix of each Zarr folder or zip file (or the array asked for), one after the other."""
    need_zarr()
    return rows_of([_matrix(file, request) for file in files], request)


def _matrix(file: File | Folder, request: Request) -> ZarrMatrix:
    store: Store = InFolder(file) if isinstance(file, Folder) else InZip(file)
    path = "/".join(part for part in (request.member or "").split("/") if part not in ("", "."))
    with store.open() as get:
        name, said = _described(get, path, store)
        if name is None:
            if path and not said and get(_joined(path, ".zgroup"), MOST_METADATA) is None:
                there = listed(list(store.below(""))) or "nothing"
                raise DataError(f"{store.name} has no array or group {shown(path)}; it holds {there}.")
            path = _only(get, path, store, file)
            name, said = _described(get, path, store)
    what = _what(store, path)
    plan = layout(said, what)
    check_matrix(plan.shape, plan.dtype, what)
    if len(plan.chunks) != 2:
        raise DataError(f"{what} has chunks of {len(plan.chunks)} dimensions, but two itself: write it again.")
    _check_size(store, path, plan, request, what)
    return ZarrMatrix(file, store, path, name or "", plan)


def _described(get: Get, path: str, store: Store) -> tuple[str | None, dict[str, Any]]:
    """Return the name of the file that describes an array, and what it says; (None, ...) if there is no array here."""
    for name in METADATA:
        content = get(_joined(path, name), MOST_METADATA)
        if content is not None:
            try:
                said = json.loads(content)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{store.name}, {shown(_joined(path, name))}, is not JSON: write it again.") from error
            if not isinstance(said, dict):
                raise DataError(
                    f"{_what(store, path)} has metadata that are not those of a Zarr array: write it again."
                )
            return (None if said.get("node_type") == "group" else name), said
    return None, {}


def _only(get: Get, path: str, store: Store, file: File | Folder) -> str:
    """Return the path of the only matrix of numbers in a group, and in the groups in it."""
    headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
    refused: list[DataError] = []
    todo, seen, places = [path], 0, {store.place(path)}
    while todo:
        above = todo.pop(0)
        for each in store.below(above):
            place = _joined(above, each)
            seen += 1
            if seen > MOST_ARRAYS:
                more = f"{store.name} holds more than {MOST_ARRAYS} arrays and groups"
                raise DataError(f"{more}: name the array, as in {store.name}::group/name.")
            try:
                name, said = _described(get, place, store)
                if (where := store.place(place)) in places:  # a link, which may lead in a circle
                    continue
                places.add(where)
                if name is None:
                    todo.append(place)
                else:
                    plan = layout(said, _what(store, place))
                    headers[place] = plan.shape, plan.dtype
            except DataError as error:
                refused.append(error)
    if refused and not any(len(shape) == 2 for shape, _ in headers.values()):
        raise refused[0]
    return picked(headers, None, file)


def _check_size(store: Store, path: str, plan: Layout, request: Request, what: str) -> None:
    """Raise MemoryError if one chunk is over the limit, DataError if nearly all chunks are missing."""
    request.require(plan.chunk_bytes, f"{what} whose chunks are {plan.chunks},")
    if math.prod(plan.shape) * plan.dtype.itemsize > request.kept:
        chunks = math.prod(-(-length // width) for length, width in zip(plan.shape, plan.chunks))
        need = -(-chunks // FEWEST_CHUNKS) + 1  # and the metadata
        if sum(1 for _ in itertools.islice(store.files(path), need)) < need:
            raise DataError(f"{what} claims the shape {plan.shape}, but nearly all of its {chunks} chunks are missing.")
