"""HDF5 files: opened so that nothing outside of them is read, and no more memory is taken than they declare."""

import itertools
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from princomp._text import listed, shown
from princomp._typing import Array
from princomp.data.arrays import check_matrix, picked
from princomp.data.chunked import rows_of
from princomp.data.reading import DataError, File, Request, brief
from princomp.data.rows import Rows

MOST_LINKS = 16  # soft links followed on the way to one dataset: HDF5's own limit
DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALE_OFFSET, LZF = 1, 2, 3, 4, 5, 6, 32000
# What HDF5 and h5py bring along. Another filter is a library that HDF5 would load because a file asks for it.
KNOWN_FILTERS = (DEFLATE, SHUFFLE, FLETCHER32, SZIP, NBIT, SCALE_OFFSET, LZF)
MOST_OBJECTS = 10_000  # looked at to find the only matrix
MOST_SEEN = 10**6  # chunks remembered as looked at
PACKING = 4096  # bytes by which packing may make a chunk longer, beyond an eighth


def need_h5py() -> None:
    """Say how to install what HDF5 files are read with, if it is missing."""
    try:
        import h5py  # noqa: F401
    except ImportError as error:
        raise ImportError('HDF5 files are read with h5py, which is missing: pip install "princomp[hdf5]"') from error


@contextmanager
def opened(file: File) -> Iterator[Any]:
    """Yield a file as h5py reads it; raise DataError if it is damaged, or does not stay what it was.

    It is given to HDF5 as an open file, not by name: so it is the file that is watched, and nothing is locked, which
    fails on media that cannot be written to.
    """
    need_h5py()
    import h5py

    with file.open() as stream, errors(file.name), h5py.File(_Whole(stream), "r") as h5:
        yield h5


class _Whole:
    """An open file that gives as many bytes as it is asked for: h5py does not look how many came."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.seek, self.tell, self.read = stream.seek, stream.tell, stream.read

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; the system may do so piece by piece."""
        left = memoryview(buffer)
        while len(left):
            count = self._stream.readinto(left)
            if not count:
                raise EOFError("it is cut off")
            left = left[count:]
        return len(buffer)


@contextmanager
def errors(name: str) -> Iterator[None]:
    """Turn what h5py raises on a damaged file into a DataError that names it."""
    try:
        yield
    except DataError:
        raise
    except (OSError, EOFError, RuntimeError, ValueError, ArithmeticError, LookupError, TypeError) as error:
        raise DataError(f"{name} cannot be read as HDF5 ({brief(error)}): write it again.") from error


def member(h5: Any, path: str, name: str) -> Any:
    """Return the dataset or group at a path inside of the file (or group) ``h5``; ``name`` is the file's, for messages.

    Links are followed one by one: those that lead out of the file are refused, and so are datasets whose numbers lie
    outside of it or are packed in a way that asks for a library from elsewhere.
    """
    import h5py

    trail: list[str] = []
    found, left, links = h5, _parts(path), 0
    while left:
        part, *left = left
        if not isinstance(found, h5py.Group):
            raise DataError(f"{name} has no {shown(path)}: {shown('/'.join(trail))} is no group.")
        what = f"{name}, {shown('/'.join([*trail, part]))},"
        target = _target(found, part, what)
        if target is None:
            found = found[_encoded(part)]
            trail.append(part)
            check_object(found, what)
            continue
        links += 1
        if links > MOST_LINKS:
            raise DataError(f"{name}: the soft links at {shown(path)} lead in a circle: name the dataset itself.")
        if target.startswith("/"):
            found, trail = found.file, []
        left = _parts(target) + left
    return found


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _encoded(part: str) -> bytes:
    return part.encode("utf-8", "surrogateescape")  # bytes that are not UTF-8 come from a command line so, too


def _target(group: Any, part: str, what: str) -> str | None:
    """Return where a soft link leads to, None for what is there itself; refuse all else, without following it."""
    import h5py

    links = group.id.links
    if not links.exists(_encoded(part)):
        raise DataError(f"{what} is not there: its group holds {listed(list(group)) or 'nothing'}.")
    kind = links.get_info(_encoded(part)).type
    if kind == h5py.h5l.TYPE_HARD:
        return None
    if kind == h5py.h5l.TYPE_SOFT:
        return links.get_val(_encoded(part)).decode("utf-8", "surrogateescape")
    if kind == h5py.h5l.TYPE_EXTERNAL:
        other = shown(links.get_val(_encoded(part))[0].decode("utf-8", "surrogateescape"), 200)
        raise DataError(f"{what} is a link to another file ({other}), which is not followed: read that file itself.")
    raise DataError(f"{what} is a link of an unknown kind, which is not followed: copy what it leads to into the file.")


def check_object(found: Any, what: str) -> None:
    """Raise DataError unless this is a group, or a dataset that lies in its own file, packed in a known way."""
    import h5py

    if isinstance(found, h5py.Group):
        return
    if not isinstance(found, h5py.Dataset):
        raise DataError(f"{what} is neither a dataset nor a group.")
    plan = found.id.get_create_plist()  # asked for before the shape: of a virtual dataset that opens other files
    if plan.get_layout() == h5py.h5d.VIRTUAL:
        raise DataError(f"{what} is a virtual dataset, made of others, which are not opened: read those by a pattern.")
    if plan.get_external_count():
        raise DataError(f"{what} has its numbers in another file, which is not opened: copy it with h5repack.")
    for code, values, title in _filters(plan):
        packed = f"{what} is packed by the filter {code} ({title or 'without a name'})"
        if code not in KNOWN_FILTERS:
            raise DataError(
                f"{packed}, which is not part of HDF5 and is not loaded: unpack it with h5repack -f NONE, or pack it "
                "with gzip."
            )
        if not h5py.h5z.filter_avail(code):
            raise DataError(f"{packed}, which this h5py lacks: unpack it with h5repack -f NONE, or pack it with gzip.")
        size = {LZF: chunk_bytes(found), NBIT: math.prod(found.chunks), SCALE_OFFSET: math.prod(found.chunks)}
        if found.dtype.hasobject:
            del size[LZF]  # of texts it has no settings
        if code in size and values[2:3] != (size[code],):  # that much memory is taken, and believed to be filled
            raise DataError(f"{packed}, whose settings do not fit its chunks: it is damaged. Write it again.")


def _filters(plan: Any) -> list[tuple[int, tuple[int, ...], str]]:
    """Return the filters that chunks went through when they were written, in that order: code, settings and name."""
    found = (plan.get_filter(i) for i in range(plan.get_nfilters()))
    return [(code, values, shown(title.decode("utf-8", "replace"))) for code, _, values, title in found]


# --- numbers --------------------------------------------------------------------------------------------


def chunk_bytes(dataset: Any) -> int:
    """Return the memory that one chunk takes (0 if the dataset is not cut into chunks)."""
    # Of a text of any length a chunk holds where it lies: its length, an address and a number.
    size = 16 if dataset.dtype.hasobject else dataset.id.get_type().get_size()
    return math.prod(dataset.chunks) * size if dataset.chunks else 0


def is_packed(dataset: Any) -> bool:
    """Return whether a chunk must be unpacked as a whole."""
    return bool(dataset.id.get_create_plist().get_nfilters())


def check_size(dataset: Any, request: Request, what: str) -> None:
    """Raise MemoryError if one chunk is over the limit, DataError if far more is declared than can be stored."""
    if is_packed(dataset):  # else parts of a chunk are read
        request.require(chunk_bytes(dataset), f"{what} whose chunks are {dataset.chunks},")
    declared, stored = math.prod(dataset.shape) * dataset.id.get_type().get_size(), dataset.id.get_storage_size()
    # Deflate packs 1032 bytes into one at most: so most chunks were never written, and would be read as a fill value.
    if declared > request.kept and declared > 2000 * stored:
        raise DataError(f"{what} claims the shape {dataset.shape}, but only {stored} bytes of it are in the file.")


def part_of(dataset: Any, start: int, stop: int, what: str, seen: set[tuple[int, ...]] | None = None) -> Array:
    """Return rows ``start`` to ``stop`` of a dataset (along its first axis), after a look at the chunks they lie in.

    ``seen``, kept by the caller, holds the chunks that were looked at: once is enough for a file that does not change.
    """
    filters = [code for code, _, _ in _filters(dataset.id.get_create_plist())]
    for place in _places(dataset, start, stop) if filters else ():
        if seen is None or place not in seen:
            _check_chunk(dataset, place, filters, what)
            if seen is not None and len(seen) < MOST_SEEN:
                seen.add(place)
    found: Array = dataset[start:stop]
    return found


def _places(dataset: Any, start: int, stop: int) -> Iterator[tuple[int, ...]]:
    """Yield where the chunks begin that hold some rows."""
    step = dataset.chunks[0]
    rows = range(start // step * step, stop, step)
    others = (range(0, length, width) for length, width in zip(dataset.shape[1:], dataset.chunks[1:]))
    return itertools.product(rows, *others)


def _check_chunk(dataset: Any, place: tuple[int, ...], filters: list[int], what: str) -> None:
    """Raise DataError unless a chunk unpacks to the size it should have.

    HDF5 takes whatever comes out: of a longer one memory without bound, of a shorter one what lies behind it in memory.
    """
    from h5py._objects import phil

    size = chunk_bytes(dataset)
    with phil:  # h5py's own lock, which it takes everywhere but around these two
        stored = dataset.id.get_chunk_info_by_coord(place)
        there, fits = stored.byte_offset is not None, stored.size <= size + size // 8 + PACKING
        masked, packed = dataset.id.read_direct_chunk(place) if there and fits else (0, b"")
    if not there:  # never written: the fill value
        return
    if not fits:
        raise DataError(f"{what} is damaged: a chunk of {size} bytes takes {stored.size} in the file. Write it again.")
    applied = [code for i, code in enumerate(filters) if not masked >> i & 1]
    try:
        unpacked = _unpacked(packed, applied, size, texts=dataset.dtype.hasobject)
    except zlib.error as error:
        raise DataError(f"{what} is damaged ({brief(error)}): write it again.") from error
    if unpacked != size:
        raise DataError(f"{what} is damaged: one of its chunks has another size than the others. Write it again.")


def _unpacked(packed: bytes, applied: list[int], size: int, *, texts: bool) -> int:
    """Return how many bytes come out of filters; ``size``, if that is what their settings say (see `check_object`)."""
    for code in reversed(applied):
        if code == FLETCHER32:
            packed = packed[:-4]
        elif code == DEFLATE:
            packed = zlib.decompressobj().decompress(packed, size + PACKING)
        elif code == SZIP:
            return int.from_bytes(packed[:4], "little")
        elif code == LZF and texts:  # has no settings
            return _lzf_length(packed)
        elif code in (NBIT, SCALE_OFFSET, LZF):
            return size
    return len(packed)


def _lzf_length(packed: bytes) -> int:
    """Return how many bytes LZF makes of these: runs of bytes as they are, and runs copied from before."""
    at = length = 0
    while at < len(packed):
        run = packed[at] >> 5
        if run == 0:
            length += packed[at] + 1
            at += packed[at] + 2
        else:
            longer = run == 7
            length += run + 2 + (int.from_bytes(packed[at + 1 : at + 2]) if longer else 0)
            at += 2 + longer
    return length


# --- the matrix of a file -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hdf5Matrix:
    """A two-dimensional dataset: the file is opened for each block, so that no handle stays behind."""

    source: File
    path: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...] | None
    packed: bool
    _seen: set[tuple[int, ...]] = field(default_factory=set, repr=False)

    @property
    def what(self) -> str:
        """Return file and dataset."""
        return _what(self.source, self.path)

    def rows(self, start: int, stop: int) -> Array:
        """Return some rows, read into a fresh array."""
        with opened(self.source) as h5:
            return part_of(member(h5, self.path, self.source.name), start, stop, self.what, self._seen)


def _what(file: File, path: str) -> str:
    return f"{file.name}, dataset {shown(path)},"


def read_hdf5(files: Sequence[File], request: Request) -> Rows:
    """Read the one matrix of each HDF5 file (or the dataset asked for), one after the other."""
    return rows_of([_matrix(file, request) for file in files], request)


def _matrix(file: File, request: Request) -> Hdf5Matrix:
    with opened(file) as h5:
        path = "/".join(_parts(request.member or ""))
        found = member(h5, path, file.name)
        if hasattr(found, "keys"):  # a group: of those in it, the only one
            path = _only(found, path, file)
            found = member(h5, path, file.name)
        what = _what(file, path)
        if found.shape is None:
            raise DataError(f"{what} is empty.")
        check_matrix(found.shape, found.dtype, what)
        check_size(found, request, what)
        return Hdf5Matrix(file, path, found.shape, found.dtype, found.chunks, is_packed(found))


def _only(group: Any, path: str, file: File) -> str:
    """Return the path of the only matrix of numbers in a group, and in the groups in it."""
    headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
    refused: list[DataError] = []
    seen, todo = set(), [(path, group)]
    while todo:
        above, here = todo.pop(0)
        if "pandas_type" in here.attrs:
            raise DataError(f"{file.name} holds a frame as pandas lays it out: write it with to_parquet and read that.")
        for name, found in _children(here, file.name, refused):
            address = _address(found)
            if address in seen:  # by another name
                continue
            seen.add(address)
            if len(seen) > MOST_OBJECTS:
                more = f"{file.name} holds more than {MOST_OBJECTS} objects"
                raise DataError(f"{more}: name the dataset, as in {file.name}::group/name.")
            place = f"{above}/{name}" if above else name
            if hasattr(found, "keys"):
                todo.append((place, found))
            elif found.shape is not None:
                headers[place] = (found.shape, found.dtype)
    if refused and not any(len(shape) == 2 and dtype.kind in "fiub" for shape, dtype in headers.values()):
        raise refused[0]
    return picked(headers, None, file)


def _children(group: Any, file: str, refused: list[DataError]) -> Iterator[tuple[str, Any]]:
    """Yield what is in a group, with its name; why something cannot be taken is put into ``refused``.

    Soft links need not be followed: what they lead to is in the file by another name.
    """
    for each in group:
        name = each.decode("utf-8", "surrogateescape") if isinstance(each, bytes) else each
        try:
            if _target(group, name, f"{file}, {shown(name)},") is None:
                yield name, member(group, name, file)
        except DataError as error:
            refused.append(error)


def _address(found: Any) -> int:
    import h5py

    return h5py.h5o.get_info(found.id).addr
