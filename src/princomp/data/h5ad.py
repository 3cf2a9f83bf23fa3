"""AnnData files, ``.h5ad``: a matrix of cells and genes in HDF5, dense or CSR, read in blocks of rows.

Read by the layout on disk that anndata documents, without anndata itself. What a file says of its shape, and every
index of a sparse block, is checked before it is used: a wrong one would crash products.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from princomp._text import listed, shown
from princomp._threads import ordered_map
from princomp._typing import Array
from princomp.data.budget import available_bytes
from princomp.data.chunked import LIMIT_SHARE
from princomp.data.counts import median_total, prepared
from princomp.data.h5ad_frames import Frame, joined, renewal
from princomp.data.hdf5 import check_size, member, opened, part_of
from princomp.data.memory import MemoryRows, working_dtype
from princomp.data.reading import DataError, File, Request, plural
from princomp.data.rows import Rows, block_offsets, itself
from princomp.data.sparse import SparseRows, equal_work
from princomp.data.tables import NAME_BYTES, check_names, check_same, name_notes, unique_names

ENTRY_BYTES = 32  # one entry of a matrix by columns, with its indices, and again as CSR
VARIABLE = "highly_variable"  # the column of var in which scanpy marks genes


def read_h5ad(files: Sequence[File], request: Request) -> Rows:
    """Read AnnData files with the same genes, one after the other: in memory if small, else in blocks."""
    found = [_contents(file, request) for file in files]
    first, name = found[0], files[0].name
    for file, each in zip(files, found):
        check_same(files[0], first.genes, file, each.genes)
        if first.keep is not None and each.keep is not None and (first.keep != each.keep).any():
            column = shown(str(request.mask_var))
            raise DataError(f"{file.name} marks other genes in {column} than {name} does: mark the same ones in all.")
    block_bytes = min(request.blocks["block_bytes"], request.limit // LIMIT_SHARE)
    rows: Rows = H5adRows([each.matrix for each in found], request.blocks["block_rows"], block_bytes)
    names = unique_names(first.genes)
    rows.names, rows.labels = tuple(names), joined([each.labels for each in found])
    if all(each.cells is not None for each in found):
        rows.sample_names = tuple(cell for each in found for cell in each.cells or ())
    notes = [*name_notes(first.genes, names, set()), *first.notes]
    target = request.normalize
    if target is True:
        target = median_total(rows, name)
        notes.append(
            f"Normalised to the median total of these cells, {target!r}: other cells, for the same model, need "
            f"normalize={target!r}."
        )
    rows = prepared(rows, name, target=target, log1p=bool(request.log1p), keep=first.keep)
    rows.notes = tuple(notes)
    return _in_memory(rows, found, request)


def genes_of(file: File) -> tuple[list[str], Array | None]:
    """Return the names that the columns of X have when it is read; and those that scanpy marked (p,), if it did."""
    request = Request((), None, (), None, None, None, {}, available_bytes())
    with opened(file) as h5:
        var = Frame(h5, "var", file, request)
        return unique_names(var.names()), var.marked(VARIABLE)


# --- the matrix -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Matrix:
    """Where a matrix lies in a file, checked as far as its headers tell."""

    source: File
    path: str  # in the file
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    indptr: Array | None = None  # of a sparse one
    csr: Any = None  # all of it, if it had to be read
    seen: dict[str, set[tuple[int, ...]]] = field(default_factory=lambda: {"": set(), "data": set(), "indices": set()})

    @property
    def stored(self) -> int:
        """Return how many numbers it has."""
        return self.shape[0] * self.shape[1] if self.indptr is None else int(self.indptr[-1])

    def rows(self, start: int, stop: int) -> Any:
        """Return some rows, read now: an array, or a CSR array."""
        if self.csr is not None:
            return self.csr[start:stop]
        name = self.source.name
        what = f"{name}, {shown(self.path)},"
        with opened(self.source) as h5:
            found = member(h5, self.path, name)
            if self.indptr is None:
                return part_of(found, start, stop, what, self.seen[""])
            begin, end = int(self.indptr[start]), int(self.indptr[stop])
            data, indices = (
                part_of(member(found, each, name), begin, end, what, self.seen[each]) for each in ("data", "indices")
            )
        return checked_csr(data, indices, self.indptr[start : stop + 1] - begin, self.shape[1], what)


def checked_csr(data: Array, indices: Array, indptr: Array, width: int, what: str) -> Any:
    """Return a CSR array, each row in order and no place twice, of arrays that come from elsewhere."""
    import scipy.sparse as sp

    if len(indices) and not 0 <= indices.min() <= indices.max() < width:
        raise DataError(f"{what} is damaged: an entry lies outside of its {width} columns. Write it again.")
    index = np.int32 if max(width, len(data)) < 2**31 else np.int64
    parts = (data.astype(working_dtype(data.dtype), copy=False), indices.astype(index), indptr.astype(index))
    csr = sp.csr_array(parts, shape=(len(indptr) - 1, width))
    csr.sum_duplicates()  # sorts, too; as a rule there is nothing to do
    return csr


class H5adRows(Rows):
    """Rows of matrices in files, one after the other; blocks are read, each time, into fresh arrays."""

    changeable = True

    def __init__(self, parts: Sequence[_Matrix], block_rows: int | None, block_bytes: int) -> None:
        self.sparse = parts[0].indptr is not None
        self._parts = parts
        self._where: list[tuple[int, int]] = []  # of each block: the part, and the row in it
        begin, offsets = 0, [np.array([0])]
        for number, part in enumerate(parts):
            if (part.indptr is not None) != self.sparse:
                raise DataError(
                    f"{part.source.name} and {parts[0].source.name} differ: one is sparse, the other dense."
                )
            if part.indptr is None or block_rows is not None:
                cuts = block_offsets(*part.shape, block_rows, block_bytes)
            else:
                cuts = equal_work(part.indptr, block_bytes)
            self._where += [(number, int(start)) for start in cuts[:-1]]
            offsets.append(begin + cuts[1:])
            begin += part.shape[0]
        self.offsets, self.shape = np.concatenate(offsets), (begin, parts[0].shape[1])
        self.dtype = working_dtype(np.result_type(*(part.dtype for part in parts)))

    def block(self, i: int) -> Any:
        """Return block i, read now."""
        part, start = self._where[i]
        rows = self.rows(i)
        return self._parts[part].rows(start, start + rows.stop - rows.start)


# --- what is in a file ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Contents:
    """What is taken of a file."""

    matrix: _Matrix
    genes: list[str]  # as they are there
    cells: list[str] | None  # None if they are too many to be kept
    labels: Mapping[str, Array]  # of cells
    keep: Array | None  # which genes are asked for
    notes: list[str]


def _contents(file: File, request: Request) -> _Contents:
    with opened(file) as h5:
        path, table = _place(h5, request.layer, file)
        var, obs = Frame(h5, table, file, request), Frame(h5, "obs", file, request)
        check_names(obs.columns, request, file)
        matrix = _matrix(h5, path, (obs.length, var.length), file, request)
        keep = None if request.mask_var is None else var.truth(request.mask_var)
        cells = obs.names() if NAME_BYTES * obs.length <= request.kept else None
        labels, dropped = obs.labels(request.label)
        notes = []
        marked = var.marked(VARIABLE) if keep is None else None
        if marked is not None and marked.any():
            share = f"{marked.sum()} of {plural(var.length, 'gene')}"
            notes.append(f"{VARIABLE} marks {share}: mask_var={VARIABLE!r} would take these alone.")
        if request.log1p and path == "X" and _has(h5, "uns") and _has(member(h5, "uns", file.name), "log1p"):
            notes.append("The file says that X holds logarithms already (uns/log1p): they were taken once more.")
        if cells is None:
            notes.append(f"Did not keep the names of {obs.length} cells, to save memory.")
        if dropped:
            notes.append(
                f"Did not keep the text of {plural(len(dropped), 'column')}, to save memory: {listed(dropped)}."
            )
        return _Contents(matrix, var.names(), cells, labels, keep, notes)


def _has(group: Any, name: str) -> bool:
    """Tell whether there is a link of this name, without following it."""
    return hasattr(group, "id") and bool(group.id.links.exists(name.encode()))


def _place(h5: Any, layer: str | None, file: File) -> tuple[str, str]:
    """Return the paths of the matrix that is asked for, and of the table of its columns."""
    layers = member(h5, "layers", file.name) if _has(h5, "layers") else {}
    if layer is None:
        if len(layers) and not _has(h5, "X"):
            raise DataError(f"{file.name} has no X; its layers are {listed(list(layers))}: name one of them as layer.")
        return "X", "var"
    if layer in list(layers):
        return f"layers/{layer}", "var"
    if layer == "raw" and _has(h5, "raw"):
        return "raw/X", "raw/var"
    raise DataError(f"{file.name} has no layer {shown(layer)}; its layers are {listed(list(layers)) or 'none'}.")


def _matrix(h5: Any, path: str, shape: tuple[int, int], file: File, request: Request) -> _Matrix:
    """Return the matrix at a path, if it is one of ``shape``."""
    found, what = member(h5, path, file.name), f"{file.name}, {shown(path)},"
    if "h5sparse_format" in found.attrs:
        raise renewal(file)
    if not min(shape):
        raise DataError(f"{file.name} has {plural(shape[0], 'cell')} and {plural(shape[1], 'gene')}: nothing to read.")
    if hasattr(found, "dtype"):
        _check_shape(found.shape, shape, what)
        _check_numbers(found, request, what)
        return _Matrix(file, path, shape, found.dtype)
    kind = str(found.attrs.get("encoding-type", "a group"))
    if kind not in ("csr_matrix", "csc_matrix"):
        raise DataError(
            f"{what} is stored as {shown(kind)}, which is not read: expected array, csr_matrix or csc_matrix."
        )
    _check_shape(tuple(np.ravel(found.attrs["shape"]).tolist()), shape, what)
    data, indices, indptr = (member(h5, f"{path}/{name}", file.name) for name in ("data", "indices", "indptr"))
    by_column = kind == "csc_matrix"
    for part in (data, indices, indptr):
        _check_numbers(part, request, what)
    places = _places(indptr, shape[by_column], data, indices, request, what)
    if not by_column:
        return _Matrix(file, path, shape, data.dtype, places)
    return _by_row(_Matrix(file, path, shape[::-1], data.dtype, places), h5, request)


def _check_shape(found: tuple[int, ...], shape: tuple[int, int], what: str) -> None:
    if found != shape:
        raise DataError(
            f"{what} has shape {found}, but obs and var have {shape[0]} and {shape[1]} lines. Write it again."
        )


def _check_numbers(dataset: Any, request: Request, what: str) -> None:
    if not hasattr(dataset, "dtype") or dataset.dtype.kind not in "fiub":
        raise DataError(f"{what} does not hold real numbers.")
    check_size(dataset, request, what)


def _places(indptr: Any, lines: int, data: Any, indices: Any, request: Request, what: str) -> Array:
    """Return where the entries of each line begin, and their number."""
    request.require(8 * (lines + 1), what)
    if indptr.shape == (lines + 1,) and data.shape == indices.shape == (data.size,) and indices.dtype.kind in "iu":
        found = part_of(indptr, 0, lines + 1, what).astype(np.int64)
        if found[0] == 0 and found[-1] == data.size and (np.diff(found) >= 0).all():
            return found
    raise DataError(f"{what} is damaged: its indices do not say where the entries of a line begin. Write it again.")


def _by_row(by_column: _Matrix, h5: Any, request: Request) -> _Matrix:
    """Return a matrix that is stored by columns, in memory by rows; refuse one that is too large for that."""
    file, path = by_column.source, by_column.path
    if ENTRY_BYTES * by_column.stored > request.limit:
        of, at = ".raw.to_adata()" if path == "raw/X" else "", "X"
        if path.startswith("layers/"):
            at = f"layers[{shown(path.partition('/')[2])!r}]"
        raise MemoryError(
            f"{file.name}, {shown(path)}, is stored by columns (CSC), with too many entries to turn it in "
            f"{request.limit / 2**30:.3g} GiB of memory. Store it by rows: a = anndata.read_h5ad('cells.h5ad'){of}; "
            f"a.{at} = a.{at}.tocsr(); a.write_h5ad('by_rows.h5ad')"
        )
    csr = by_column.rows(0, by_column.shape[0]).T.tocsr()
    return _Matrix(file, path, csr.shape, by_column.dtype, csr.indptr.astype(np.int64), csr)


# --- in memory ------------------------------------------------------------------------------------------


def _in_memory(rows: Rows, found: Sequence[_Contents], request: Request) -> Rows:
    """Return the rows with their blocks in memory, if a quarter of what may be used holds them; else as they are.

    Not 256 MiB at most, as of other files: to read HDF5 again takes longer than most passes over sparse rows.
    """
    (n, width), size, budget = rows.shape, rows.dtype.itemsize, request.limit // 4
    kept: Rows
    if rows.sparse:
        stored, most = sum(each.matrix.stored for each in found), budget // (size + 4)
        # Which of them are in columns that are left is seen only when they are read.
        csr = None if stored > most and found[0].keep is None else _gathered(rows, min(stored, most))
        if csr is None:
            return rows
        kept = SparseRows(csr, **request.blocks)
    elif n * width * size > budget:
        return rows
    else:
        kept = MemoryRows(rows.map(itself, width=width, dtype=rows.dtype), **request.blocks)
    for name in ("names", "sample_names", "labels", "notes"):
        setattr(kept, name, getattr(rows, name))
    return kept


def _gathered(rows: Rows, most: int) -> Any:
    """Return sparse rows as one CSR array; None as soon as they are seen to have more than ``most`` numbers."""
    import scipy.sparse as sp

    data, indices = np.empty(most, rows.dtype), np.empty(most, np.int64 if rows.shape[1] > 2**31 else np.int32)
    indptr, end = np.zeros(rows.shape[0] + 1, np.int64), 0  # memory is taken when they are filled
    with closing(ordered_map(rows.block, range(len(rows.offsets) - 1))) as blocks:
        for i, block in enumerate(blocks):
            begin, end = end, end + block.nnz
            if end > most:
                return None
            data[begin:end], indices[begin:end] = block.data, block.indices
            indptr[rows.offsets[i] + 1 : rows.offsets[i + 1] + 1] = begin + block.indptr[1:]
    data.resize(end, refcheck=False)
    indices.resize(end, refcheck=False)
    return sp.csr_array((data, indices, indptr.astype(np.int32 if end < 2**31 else np.int64)), shape=rows.shape)
