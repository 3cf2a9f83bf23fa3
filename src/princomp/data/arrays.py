"""Files that hold one matrix: NumPy's ``.npy`` and ``.npz``, and SciPy's sparse ``.npz``.

Whatever a header claims is compared with the size of the file, and with the memory there is, before anything is read.
"""

import math
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy

from princomp._text import listed, shown
from princomp._typing import Array
from princomp.data.memory import MemoryRows
from princomp.data.reading import DataError, File, Folder, Request, brief, naming
from princomp.data.rows import Rows
from princomp.data.shards import ShardRows
from princomp.data.stored import FileRows, Numbers

SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia")
ENTRY_BYTES = 32  # one sparse entry with its indices, and again as CSR


# --- .npy ---------------------------------------------------------------------------------------------


def read_npy(files: Sequence[File], request: Request) -> Rows:
    """Read ``.npy`` files, one after the other: in memory if small, else in blocks."""
    parts = [_located(file) for file in files]
    same_width(files, parts)
    rows = FileRows(parts, **request.blocks)
    size = sum(math.prod(part.shape) * part.dtype.itemsize for part in parts)
    return rows.in_memory(**request.blocks) if size <= request.kept else rows


def _located(file: File) -> Numbers:
    """Return where the numbers of a ``.npy`` file lie, after comparing header and size."""
    with file.open() as stream:
        shape, by_column, dtype = _header(stream, file.name)
        place = stream.tell()
    check_matrix(shape, dtype, file.name)
    size = place + math.prod(shape) * dtype.itemsize
    if size != file.size:
        what = "is cut off" if file.size < size else "has more in it than one array"
        raise DataError(f"{file.name} {what}: its header asks for {size} bytes, it has {file.size}.")
    return Numbers(file, place, (shape[0], shape[1]), dtype, by_column)


def _header(stream: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return (shape, whether in Fortran order, dtype) from the beginning of a ``.npy`` stream."""
    try:
        version = npy.read_magic(stream)
        return (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(stream)
    except (ValueError, EOFError, SyntaxError, TokenError) as error:
        raise DataError(f"{name} is not a NumPy array file ({brief(error)}).") from error


def check_matrix(shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> None:
    """Raise DataError unless an array is a matrix of real numbers."""
    if dtype.kind not in "fiub":
        what = "Python objects, which are never loaded" if dtype.hasobject else f"{dtype}, not real numbers"
        raise DataError(f"{name} holds {what}: save a numeric array.")
    if len(shape) != 2:
        raise DataError(f"{name} holds an array of shape {shape}: expected two dimensions, rows and columns.")
    if min(shape) < 0:
        raise DataError(f"{name} claims the shape {shape}.")


# --- .npz ---------------------------------------------------------------------------------------------


def read_npz(files: Sequence[File], request: Request) -> Rows:
    """Read the one matrix, dense or sparse, of each ``.npz`` file (or the member asked for)."""
    return joined(files, request, _matrix_of_npz)


def _matrix_of_npz(file: File, request: Request) -> Any:
    member = request.member
    with file.open() as stream:
        try:
            with zipfile.ZipFile(stream) as archive, naming(file.name):
                members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
                headers = {info.filename.removesuffix(".npy"): _member(archive, info, file) for info in members}
                if member is None and {"format", "shape", "data"} <= headers.keys():
                    return _sparse(archive, headers, file, request)
                name = picked(headers, member, file)
                shape, dtype = headers[name]
                request.require(math.prod(shape) * dtype.itemsize, f"{file.name}, array {shown(name)},")
                return _load(archive, name, file)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted, unknown packing
            raise DataError(f"{file.name} is not a whole .npz file ({brief(error)}).") from error


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, file: File) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of a member, after comparing its header with the size in the zip directory."""
    with archive.open(info) as stream:
        shape, _, dtype = _header(stream, f"{file.name}, member {shown(info.filename)},")
        size = stream.tell() + math.prod(shape) * dtype.itemsize
    if not dtype.hasobject and size != info.file_size:
        raise DataError(f"{file.name}: the sizes given for the array {shown(info.filename)} contradict each other.")
    return shape, dtype


def _load(archive: zipfile.ZipFile, name: str, file: File) -> Array:
    with archive.open(f"{name}.npy") as stream:
        try:
            return npy.read_array(stream, allow_pickle=False)
        except ValueError as error:
            raise DataError(f"{file.name}, array {shown(name)}: {brief(error)}.") from error


def picked(headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]], member: str | None, file: File | Folder) -> str:
    """Return the name of the array to read: the one asked for, or the only matrix of numbers."""
    matrices = [name for name, (shape, dtype) in headers.items() if len(shape) == 2 and dtype.kind in "fiub"]
    if member is not None:
        if member not in headers:
            raise DataError(f"{file.name} has no array {shown(member)}; it has {listed(list(headers))}.")
        check_matrix(*headers[member], f"{file.name}, array {shown(member)},")
        return member
    if not matrices:
        there = [f"{name} of shape {shape}" if len(shape) != 2 else name for name, (shape, _) in headers.items()]
        raise DataError(f"{file.name} holds no matrix of numbers (it holds {listed(there) or 'nothing'}).")
    if len(matrices) > 1:
        example = f"{file.name}::{shown(matrices[0])}"
        raise DataError(f"{file.name} holds several matrices ({listed(matrices)}): pick one, as in {example}.")
    return matrices[0]


def _sparse(archive: zipfile.ZipFile, headers: dict[str, Any], file: File, request: Request) -> Any:
    """Return the matrix that `scipy.sparse.save_npz` wrote, its indices checked: a wrong one would crash products."""
    import scipy.sparse as sp

    entries = max(math.prod(headers["data"][0]), *(math.prod(shape) for shape, _ in headers.values()))
    request.require(ENTRY_BYTES * entries, file.name)
    parts = {name: _load(archive, name, file) for name, (_, dtype) in headers.items() if not dtype.hasobject}
    kind, shape = parts["format"].item(), tuple(parts["shape"].tolist())
    kind = kind.decode() if isinstance(kind, bytes) else str(kind)
    if kind not in SPARSE_FORMATS or len(shape) != 2:
        raise DataError(f"{file.name} holds a sparse array of the unknown kind {shown(kind)} and shape {shape}.")
    check_matrix(shape, parts["data"].dtype, file.name)
    request.require(16 * (shape[0] + 1), f"{file.name}, {shape[0]} x {shape[1]},")
    make = getattr(sp, f"{kind}_array")
    try:
        if kind == "coo":
            where = parts["coords"] if "coords" in parts else (parts["row"], parts["col"])
            matrix = make((parts["data"], tuple(where)), shape=shape)
        elif kind == "dia":
            matrix = make((parts["data"], parts["offsets"]), shape=shape)
        else:
            matrix = make((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise DataError(f"{file.name} is not a valid sparse matrix ({brief(error)}).") from error
    return matrix


# --- several --------------------------------------------------------------------------------------------


def joined(files: Sequence[File], request: Request, load: Callable[[File, Request], Any]) -> Rows:
    """Return matrices in memory, all dense or all sparse, as rows one after the other."""
    parts: list[Any] = []
    left = request
    for file in files:
        part = load(file, left)
        size = part.nbytes if isinstance(part, np.ndarray) else 16 * part.nnz
        left = replace(left, limit=left.limit - size)
        parts.append(part)
    same_width(files, parts)
    for file, part in zip(files, parts):
        if isinstance(part, np.ndarray) != isinstance(parts[0], np.ndarray):
            raise DataError(f"{file.name} and {files[0].name} differ: one is sparse, the other dense.")
    if isinstance(parts[0], np.ndarray):
        return MemoryRows(parts[0], **request.blocks) if len(parts) == 1 else ShardRows(parts, **request.blocks)
    import scipy.sparse as sp

    from princomp.data.sparse import SparseRows

    return SparseRows(parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr"), **request.blocks)


def same_width(files: Sequence[File], parts: Sequence[Any]) -> None:
    """Raise DataError, naming the file, if one has another number of columns than the first."""
    for file, part in zip(files, parts):
        if part.shape[1] != parts[0].shape[1]:
            raise DataError(f"{file.name} has {part.shape[1]} columns, but {files[0].name} has {parts[0].shape[1]}.")
