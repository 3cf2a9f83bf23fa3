"""`read`: any supported file, or several, as `Rows`."""

import glob
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Real
from os import PathLike
from typing import IO, Any

from princomp._text import listed, shown
from princomp.data.arrays import read_npy, read_npz
from princomp.data.budget import available_bytes
from princomp.data.delimited import read_delimited
from princomp.data.h5ad import read_h5ad
from princomp.data.hdf5 import read_hdf5
from princomp.data.images import KINDS, SVG, images_in, read_images
from princomp.data.matrix_market import read_mtx
from princomp.data.nifti import read_nifti
from princomp.data.parquet import read_parquet
from princomp.data.reading import DataError, File, Folder, Request, Spooled
from princomp.data.rows import BLOCK_BYTES, Rows
from princomp.data.spreadsheets import read_xlsx
from princomp.data.zarr import read_zarr

FORMATS: dict[str, Callable[..., Rows]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".mtx.gz": read_mtx,
    ".csv": read_delimited,
    ".csv.gz": read_delimited,
    ".tsv": partial(read_delimited, delimiter="\t"),
    ".tsv.gz": partial(read_delimited, delimiter="\t"),
    ".txt": read_delimited,
    ".txt.gz": read_delimited,
    ".parquet": read_parquet,
    ".h5ad": read_h5ad,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".zarr": read_zarr,
    ".zarr.zip": read_zarr,
    ".xlsx": read_xlsx,
    ".nii": read_nifti,
    ".nii.gz": read_nifti,
    **dict.fromkeys(KINDS, read_images),
}
FOLDERS = (".zarr",)  # these are folders, not files
DELIMITED = (".csv", ".tsv", ".txt")
TABLES = (*DELIMITED, ".parquet", ".xlsx")  # these have named columns
MEMBERS = (".npz", ".h5", ".hdf5", ".zarr", ".zarr.zip")  # these may hold several arrays: ``file.npz::name`` picks one
# Options that some kinds of file alone understand: options, kinds, and what is said of a file of another kind.
FOR_SOME = (
    (("label",), (*TABLES, ".h5ad"), "has no named columns"),
    (("drop", "index"), TABLES, "is no table"),
    (("layer", "mask_var", "normalize", "log1p"), (".h5ad",), "holds no AnnData"),
    (("decimal", "delimiter"), DELIMITED, "is not delimited text"),
    (("header",), (*DELIMITED, ".xlsx"), "has no line of names"),
    (("sheet",), (".xlsx",), "has no sheets"),
    (("mask",), (".nii",), "has no voxels"),
)


def read(
    path: str | PathLike[str] | IO[bytes],
    *,
    label: str | Sequence[str] | None = None,
    index: str | None = None,
    drop: str | Sequence[str] | None = None,
    decimal: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    layer: str | None = None,
    mask_var: str | None = None,
    normalize: float | bool | None = None,
    log1p: bool | None = None,
    sheet: str | None = None,
    mask: str | PathLike[str] | None = None,
    block_rows: int | None = None,
    block_bytes: int = BLOCK_BYTES,
    memory_limit: int | None = None,
) -> Rows:
    r"""Return a file, or several with the same columns, as `Rows`, which every estimator takes in place of an array.

    =====================================  ======================================================================
    file                                   read as
    =====================================  ======================================================================
    ``.npy``                               the matrix in it
    ``.npz``                               a SciPy sparse matrix, or the only matrix in it; ``file.npz::name`` picks
    ``.mtx``, ``.mtx.gz``                  Matrix Market: sparse or dense
    ``.csv``, ``.csv.gz``                  a table separated by commas, semicolons, tabs or bars
    ``.txt``, ``.txt.gz``                  the same
    ``.tsv``, ``.tsv.gz``                  a table separated by tabs
    ``.parquet``                           a table
    ``.h5ad``                              AnnData: X or a layer, sparse or dense; cells are rows, genes are columns
    ``.h5``, ``.hdf5``                     HDF5: the only matrix in it; ``file.h5::group/name`` picks
    ``.zarr`` (a folder), ``.zarr.zip``    Zarr, formats 2 and 3: the same
    ``.xlsx``                              a sheet of it, as a table
    ``.nii``, ``.nii.gz``                  NIfTI: a row for each volume, a column for each voxel (of a mask)
    ``.png``, ``.jpg``, ``.tif`` ...       a row of pixels, with the others of a pattern or folder
    =====================================  ======================================================================

    Columns of text are no features: they are found in ``labels``, and a sentence in ``notes`` says so. Data up to
    256 MiB (or a quarter of the memory that may be used) are kept in memory; larger ones are read in blocks, from the
    file itself (``.npy``, HDF5, Zarr) or from a temporary file without a name.

    Parameters
    ----------
    path : str, path or binary file
        A file; a pattern such as ``"part-*.csv"``, for files of one kind one after the other, sorted by name; a
        folder, for all images in it; or ``"-"``, or an open binary file, for a CSV that comes from there.
    label : str or list of str, optional
        Columns of a table to keep as labels, though they may hold numbers.
    index : str, optional
        The column of a table that names the samples.
    drop : str or list of str, optional
        Columns of a table to leave out entirely.
    decimal : {".", ","}, optional
        The decimal mark of delimited text; by default that of the numbers in its first lines. A number with the other
        mark, or with marks between thousands, is text.
    delimiter : str, optional
        The character between the cells of delimited text; by default found from its first lines.
    header : bool, optional
        Whether the first line of delimited text, or row of a sheet, names the columns; by default, unless it holds
        numbers only.
    layer : str, optional
        The layer of an AnnData file to read in place of X; ``"raw"``, if no layer is called so, its ``raw``.
    mask_var : str, optional
        A column of ``var`` of an AnnData file that is true for the genes to keep, such as ``"highly_variable"``.
        Totals are those of all genes.
    normalize : float or True, optional
        Divide each cell of an AnnData file so that its total is this; True: the median of the totals above 0.
    log1p : bool, optional
        Take log(1 + x) of an AnnData file, after ``normalize``.
    sheet : str, optional
        Which sheet of an ``.xlsx`` file; by default the first.
    mask : str or path, optional
        A NIfTI image of the same grid: voxels where it is not 0 are the features. By default all are.
    block_rows : int, optional
        Rows per block; by default as many as fit ``block_bytes``.
    block_bytes : int, default 32 MiB
        Memory of one block as float64.
    memory_limit : int, optional
        Bytes of memory that reading may take; by default what the computer has left.

    Returns
    -------
    Rows
        The data. Besides ``names``, a table brings ``sample_names``, ``labels`` and ``notes``; of images and volumes
        ``layout`` says where columns lie.

    Raises
    ------
    DataError
        If a file is missing, damaged, of an unknown kind, or changes while it is read. The message names it, and the
        line if that is known. It is a ValueError.
    MemoryError
        If something in a file needs more memory than may be used.

    Examples
    --------
    >>> import io
    >>> from princomp.data import read
    >>> rows = read(io.BytesIO(b"height,weight,sex\n1.62,55,f\n1.81,,m\n1.75,72,m\n"))
    >>> rows.shape, rows.names
    ((3, 2), ('height', 'weight'))
    >>> rows.labels["sex"]
    array(['f', 'm', 'm'], dtype=object)
    >>> rows.notes
    ('Left out 1 text column: sex.',)
    """
    if memory_limit is not None and memory_limit < 1:
        raise ValueError(f"memory_limit must be at least 1 byte, got {memory_limit}.")
    limit = memory_limit or available_bytes()
    _check_layout(decimal, delimiter, header)
    labels, dropped = _names(label), _names(drop)
    if both := {*labels, index} & {*dropped}:
        raise ValueError(f"drop names {listed(sorted(map(str, both)))}, which label or index asks for.")
    blocks = {"block_rows": block_rows, "block_bytes": block_bytes}
    for option, name in (("layer", layer), ("mask_var", mask_var), ("sheet", sheet)):
        if not isinstance(name, str | None):
            raise TypeError(f"{option} must be a name, a str, got {name!r}.")
    if log1p not in (None, True, False):
        raise ValueError(f"log1p must be True or False, got {log1p!r}.")
    counts = (layer, mask_var, _total(normalize), log1p or None)
    if not isinstance(mask, str | PathLike | None):
        raise TypeError(f"mask must be the path of a NIfTI image, not 0 inside, got {type(mask).__name__}.")
    inside = None if mask is None else os.fsdecode(mask)
    request = Request(
        labels, index, dropped, decimal, delimiter, header, blocks, limit, None, *counts, mask=inside, sheet=sheet
    )
    stream = sys.stdin.buffer if path == "-" else path
    if isinstance(stream, str | PathLike):
        return _read_files(os.fsdecode(stream), request)
    return read_delimited([Spooled(stream, _name_of(stream), request.kept)], request)


def _names(asked: str | Sequence[str] | None) -> tuple[str, ...]:
    return (asked,) if isinstance(asked, str) else tuple(asked or ())


def _total(asked: float | bool | None) -> float | bool | None:
    """Return what cells are normalised to: None for nothing, True for their median."""
    if asked is None or asked is False or asked is True:
        return asked or None
    if not (isinstance(asked, Real) and 0 < asked < math.inf):
        raise ValueError(f"normalize must be True or a number above 0, the total of each row, got {asked!r}.")
    return float(asked)


def _check_layout(decimal: str | None, delimiter: str | None, header: bool | None) -> None:
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    if header not in (None, True, False):
        raise ValueError(f"header must be True, False or None, got {header!r}.")
    # Not a letter, digit or sign, which are parts of numbers.
    if delimiter is not None and not re.fullmatch(r"[\t !#-*,/:;<-@\[-`{-~]", delimiter):
        raise ValueError(
            f"delimiter must be one character, such as ';' or '|', and no part of a number: {delimiter!r}."
        )


def _read_files(path: str, request: Request) -> Rows:
    path, member = _member(path)
    folder = os.path.isdir(path) and not path.lower().rstrip("/").endswith(tuple(FORMATS))
    paths, notes = images_in(path) if folder else (_matches(path), ())
    kinds = [_kind(each) for each in paths]
    files = [Folder(each) if kind in FOLDERS else File(each) for each, kind in zip(paths, kinds)]
    for file, kind in zip(files, kinds):
        if _group(kind) != _group(kinds[0]):
            raise DataError(f"{file.name} is not a {kinds[0]} file as {files[0].name} is: files must be of one kind.")
    for options, takers, lacks in FOR_SOME:
        asked = any(getattr(request, option) not in (None, ()) for option in options)
        if asked and not kinds[0].startswith(takers):
            *others, last = options
            are = f"{', '.join(others)} and {last} are" if others else f"{last} is"
            raise DataError(f"{files[0].name} {lacks}: {are} for {', '.join(takers)}.")
    rows = FORMATS[kinds[0]](files, request if member is None else replace(request, member=member))
    rows.notes = (*notes, *rows.notes)
    return rows


def _group(kind: str) -> str:
    """Return what files must have in common to be read one after the other."""
    return "image" if kind in KINDS else kind.removesuffix(".gz")


def _member(path: str) -> tuple[str, str | None]:
    """Split ``file.npz::name``."""
    before, _, name = path.rpartition("::")
    return (before, name) if before.lower().endswith(MEMBERS) and not os.path.exists(path) else (path, None)


def _matches(path: str) -> list[str]:
    """Return the files that a pattern matches, sorted; a path that is there, or is no pattern, is itself."""
    if not glob.has_magic(path) or os.path.lexists(path):
        return [path]
    found = sorted(glob.glob(path))
    if not found:
        raise DataError(f"{shown(path, None)}: no file matches this pattern.")
    return found


def _kind(path: str) -> str:
    """Return the key of FORMATS that a path ends with; the file need not be there."""
    lower = path.lower().rstrip("/")  # of a folder
    for kind in FORMATS:
        if lower.endswith(kind):
            return kind
    if lower.endswith((".svg", ".svgz")):
        raise DataError(f"{shown(path, None)} {SVG}")
    if os.path.lexists(path) and not os.path.isdir(path):
        raise DataError(f"{shown(path, None)} is of no kind that can be read: {', '.join(FORMATS)}.")
    File(path)  # says what is wrong: missing, or a folder
    raise AssertionError


def _name_of(stream: Any) -> str:
    if not hasattr(stream, "read"):
        raise TypeError(f"path must be a path or a binary file, got {type(stream).__name__}.")
    if stream is sys.stdin.buffer:
        return "standard input"
    name = getattr(stream, "name", None)
    return shown(name, None) if isinstance(name, str) else "the stream"
