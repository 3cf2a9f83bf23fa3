"""NIfTI images: rows are volumes, columns the voxels inside a mask.

Whatever a header claims is compared with the size of the file, and with the memory there is, before anything is
unpacked.
"""

from __future__ import annotations

import gzip
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from princomp._text import shown
from princomp._typing import Array
from princomp.data.cells import plain
from princomp.data.layout import VoxelLayout
from princomp.data.memory import working_dtype
from princomp.data.reading import DataError, File, Request, brief, naming, natural
from princomp.data.rows import Rows, offsets_of_parts
from princomp.data.stored import Sink, require_room

RUN_BYTES = 8 * 2**20  # of volumes, read at a time
TIGHTEST = 1032  # times smaller than its content no deflated file can be
PLACE_BYTES = 48  # for a voxel: where it lies, as it is found and kept; and its number, scaled
MAGIC = {348: (344, b"n+1\0", b"ni1\0"), 540: (4, b"n+2\0", b"ni2\0")}  # by size: where the kind is said, one file, two


def need_nibabel() -> Any:
    """Return nibabel, or say how to install it."""
    try:
        import nibabel
    except ImportError as error:
        raise ImportError('NIfTI images are read with nibabel: pip install "princomp[neuro]"') from error
    return nibabel


@dataclass(frozen=True)
class Volumes:
    """Volumes that lie one after the other in a file."""

    file: File
    packed: bool  # by gzip
    place: int  # of the first number
    shape: tuple[int, int, int]
    count: int
    stored: np.dtype[Any]
    scaling: tuple[float, float]  # slope and intercept
    affine: Array
    space: int

    @property
    def size(self) -> int:
        """Bytes of one volume."""
        return math.prod(self.shape) * self.stored.itemsize

    def scaled(self, content: bytes) -> Array:
        """Return whole volumes, (m, voxels), as nibabel gives them; the first axis of a volume is the fastest."""
        from nibabel.arrayproxy import ArrayProxy

        shape = (math.prod(self.shape), len(content) // self.size)
        return np.asarray(ArrayProxy(io.BytesIO(content), (shape, self.stored, 0, *self.scaling))).T

    @property
    def dtype(self) -> np.dtype[Any]:
        """What `scaled` gives, no wider than float64."""
        one = (1, 1, 1)
        single = Volumes(self.file, False, 0, one, 1, self.stored, self.scaling, self.affine, self.space)
        found = single.scaled(bytes(self.stored.itemsize)).dtype.newbyteorder("=")
        return found if found.itemsize <= 8 else np.dtype(np.float64)

    def runs(self, start: int, stop: int) -> Iterator[Array]:
        """Yield these volumes, a few megabytes at a time."""
        step = max(1, RUN_BYTES // self.size)
        with self.file.open() as raw, naming(self.file.name):
            stream = plain(raw) if self.packed else raw
            stream.seek(self.place + start * self.size)
            for first in range(start, stop, step):
                yield self.scaled(_exactly(stream, (min(first + step, stop) - first) * self.size))
            if self.packed and stop == self.count:
                stream.read(1)  # compares the checksum, if the file ends here


def _exactly(stream: BinaryIO, size: int) -> bytes:
    parts = []
    while size:
        part = stream.read(size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


# --- reading ------------------------------------------------------------------------------------------


def read_nifti(files: Sequence[File], request: Request) -> Rows:
    """Read NIfTI files of one grid, one after the other: a row for each volume."""
    need_nibabel()
    parts = [located(file, request) for file in sorted(files, key=lambda file: natural(file.path))]
    layout = _layout(parts[0], request)
    for part in parts[1:]:
        if how := layout.differs(part.shape, part.affine):
            raise DataError(f"{part.file.name} is on another grid than {parts[0].file.name}: {how}. Resample it first.")
    still = _Still(layout.size) if request.mask is None else None
    rows = _rows(parts, layout, request, still)
    rows.layout, rows.notes = layout, () if still is None else still.notes()
    return _named(rows, parts)


def _rows(parts: Sequence[Volumes], layout: VoxelLayout, request: Request, still: _Still | None) -> Rows:
    """Return all volumes, in memory if they are small; large ones stay where they are, unless they are packed there."""
    where, dtype = _places(layout), np.result_type(*(part.dtype for part in parts))
    size = sum(part.count for part in parts) * layout.size * dtype.itemsize
    stay = size > request.kept and not any(part.packed for part in parts)
    if size > request.kept and not stay:
        require_room(size)
    sink = Sink(layout.size, dtype, request.kept)
    for part in parts if still or not stay else ():
        for run in part.runs(0, part.count):
            inside = run[:, where]
            if still:
                still.see(inside)
            if not stay:
                sink.append(inside)
    return VolumeRows(parts, where, dtype, request.blocks) if stay else sink.finish(request.blocks)


def _named(rows: Rows, parts: Sequence[Volumes]) -> Rows:
    """Return rows with the names of their files: as names if each is one volume, else as labels."""
    names = [shown(os.path.basename(part.file.path), None) for part in parts]
    if len(parts) > 1 and all(part.count == 1 for part in parts):
        rows.sample_names = tuple(names)
    elif len(parts) > 1:
        rows.labels = {"file": np.repeat(np.array(names, object), [part.count for part in parts])}
    return rows


def located(file: File, request: Request) -> Volumes:
    """Return where the volumes of a file lie, after comparing header, size and memory."""
    with file.open() as raw, naming(file.name):
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        head = plain(raw).read(540)
    header, least = _header(head, file)
    place, shape, stored, scaling, affine = _said(header, least, file)
    space = int(header["sform_code"]) or int(header["qform_code"])
    while len(shape) > 3 and shape[-1] == 1:
        shape = shape[:-1]
    if len(shape) not in (3, 4) or min(shape) < 1:
        raise DataError(
            f"{file.name} has the shape {' x '.join(map(str, shape))}: expected volumes of three dimensions, one after "
            "the other."
        )
    count = shape[3] if len(shape) == 4 else 1
    found = Volumes(file, packed, place, (shape[0], shape[1], shape[2]), count, stored, scaling, affine, space)
    needed = place + count * found.size
    if needed > file.size * (TIGHTEST if packed else 1):
        has = f"it has {file.size}{' compressed' if packed else ''}"
        raise DataError(f"{file.name} is cut off, or its header wrong: that asks for {needed} bytes, {has}.")
    request.require(math.prod(found.shape) * (stored.itemsize + PLACE_BYTES), f"{file.name}, one volume of it,")
    return found


def _header(head: bytes, file: File) -> tuple[Any, int]:
    """Return the header as nibabel reads it, and where data may begin."""
    import nibabel as nib

    said = (int.from_bytes(head[:4], "little"), int.from_bytes(head[:4], "big"))
    size = next((size for size in MAGIC if size in said), 0)
    if not size or len(head) < size:
        raise DataError(f"{file.name} is not a NIfTI image.")
    place, one, two = MAGIC[size]
    kind = head[place : place + 4]
    if kind == two:
        raise DataError(f"{file.name} is one of two files, .hdr and .img: save the image as one .nii file.")
    if kind != one:
        raise DataError(f"{file.name} is not a NIfTI image.")
    made = nib.Nifti1Header if size == 348 else nib.Nifti2Header
    return made(head[:size], check=False), size + 4


def _said(
    header: Any, least: int, file: File
) -> tuple[int, tuple[int, ...], np.dtype[Any], tuple[float, float], Array]:
    """Return place, shape, type, scaling and affine that a header gives."""
    from nibabel.spatialimages import HeaderDataError

    try:
        if not 1 <= int(header["dim"][0]) <= 7:
            raise ValueError(f"{int(header['dim'][0])} dimensions")
        shape = tuple(int(side) for side in header.get_data_shape())
        stored = header.get_data_dtype()
        slope, inter = header.get_slope_inter()
        with np.errstate(all="ignore"):
            place, affine = int(header["vox_offset"]) or least, np.array(header.get_best_affine(), np.float64)
    except KeyError as error:
        raise DataError(f"{file.name} holds numbers of an unknown kind ({brief(error)}).") from error
    except (HeaderDataError, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{file.name} has a damaged header ({brief(error)}).") from error
    if stored.kind not in "fiu" or stored.hasobject:
        raise DataError(f"{file.name} holds {stored}, not real numbers.")
    if place < least or not np.isfinite(affine).all():
        raise DataError(
            f"{file.name} has a damaged header: it does not say where {'data' if place < least else 'voxels'} are."
        )
    scaling = (1.0 if slope is None else float(slope), 0.0 if inter is None else float(inter))
    return place, shape, stored, scaling, affine


def _layout(part: Volumes, request: Request) -> VoxelLayout:
    """Return the voxels that are features: those of the mask, or all."""
    whole = VoxelLayout(np.ones(part.shape, bool), part.affine, part.space)
    if request.mask is None:
        return whole
    mask = located(File(request.mask), request)
    if how := whole.differs(mask.shape, mask.affine):
        raise DataError(
            f"The mask {mask.file.name} is on another grid than {part.file.name}: {how}. Resample it first."
        )
    if mask.count != 1:
        raise DataError(f"The mask {mask.file.name} has {mask.count} volumes: a mask is one, not 0 inside.")
    (values,) = (run[0].reshape(mask.shape, order="F") for run in mask.runs(0, 1))
    inside = (values != 0) & ~np.isnan(values)
    if not inside.any():
        raise DataError(f"The mask {mask.file.name} has no voxel inside: all are 0.")
    return VoxelLayout(inside, part.affine, part.space)


def _places(layout: VoxelLayout) -> Array:
    """Return where the voxels inside lie in a volume whose first axis is the fastest."""
    return np.ravel_multi_index(np.nonzero(layout.mask), layout.mask.shape, order="F")


class _Still:
    """Finds the voxels that are the same in all volumes."""

    def __init__(self, size: int) -> None:
        self._same, self._first, self._count = np.ones(size, bool), np.empty(0), 0

    def see(self, run: Array) -> None:
        """Take some volumes, (m, voxels)."""
        if not self._count:
            self._first = run[0].copy()
        self._count += len(run)
        for volume in run:
            self._same &= (volume == self._first) | (np.isnan(volume) & np.isnan(self._first))

    def notes(self) -> tuple[str, ...]:
        """Say how many there are."""
        many = int(np.count_nonzero(self._same))
        if self._count < 2 or not many:
            return ()
        return (f"{many} of {len(self._same)} voxels are the same in all volumes, outside of the head most likely: "
                "a mask leaves them out.",)  # fmt: skip


class VolumeRows(Rows):
    """Volumes in files, read a block at a time, each time anew."""

    changeable = True

    def __init__(self, parts: Sequence[Volumes], where: Array, dtype: np.dtype[Any], blocks: dict[str, Any]) -> None:
        lengths = [part.count for part in parts]
        self._parts, self._columns, self._dtype = parts, where, dtype
        self.shape, self.dtype = (sum(lengths), len(where)), working_dtype(dtype)
        self.offsets, self._where = offsets_of_parts(lengths, len(where), **blocks)

    def block(self, i: int) -> Array:
        """Return block i, read now."""
        part, start = self._where[i]
        rows = self.rows(i)
        out, done = np.empty((rows.stop - rows.start, self.shape[1]), self._dtype), 0
        for run in self._parts[part].runs(start, start + len(out)):
            out[done : done + len(run)] = run[:, self._columns]
            done += len(run)
        return out


# --- writing ------------------------------------------------------------------------------------------


def write_volumes(file: BinaryIO, layout: VoxelLayout, values: Any, dtype: Any, says: str) -> None:
    """Write rows of values, (k, voxels) in all, as a compressed NIfTI image: a volume each, 0 outside of the mask."""
    nib = need_nibabel()
    shape = (*layout.mask.shape, *([len(values)] if len(values) > 1 else []))
    header = (nib.Nifti1Header if max(shape) < 2**15 else nib.Nifti2Header)()
    header.set_data_dtype(dtype)
    header.set_data_shape(shape)
    header.set_sform(layout.affine, layout.space or 1)
    header.set_qform(layout.affine, layout.space or 1, strip_shears=True)
    header.set_xyzt_units("mm")
    header["vox_offset"] = int(header["sizeof_hdr"]) + 4
    header["scl_slope"], header["scl_inter"] = 1.0, 0.0
    header["descrip"] = says.encode("ascii", "replace")[:79]
    # Without name and time in it, the same maps give the same file.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        header.write_to(packed)  # and that no extensions follow
        for row in values:
            packed.write(layout.volume(np.asarray(row, dtype)).tobytes("F"))
