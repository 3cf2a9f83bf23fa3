"""Packed chunks of Zarr arrays: what they unpack to is known, and compared with what it should be, before they do."""

import math
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._text import shown
from princomp.data.reading import DataError

NUMBERS = [np.dtype(kind) for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")]
SAME_SIZE = ("bytes", "transpose", "shuffle")  # codecs that only move bytes about
OVERHEAD = 4096  # bytes by which packing may make a chunk longer, beyond an eighth
NOT_THERE = 2**64 - 1  # in the index of a shard
ZSTD_BLOCK = 2**17  # bytes that one block of zstd unpacks to at most
MOST_OVER = 8  # times the size of a chunk that its blocks may claim, where their sizes are not given
INDEX_CODECS = ["bytes", "crc32c"]


@dataclass(frozen=True)
class Layout:
    """What the metadata of an array say, checked."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]  # one file each
    codecs: tuple[str, ...]  # in the order in which they were applied
    inner: tuple[int, ...] | None = None  # the chunks that a file is made of, if it is a shard
    index_first: bool = False  # whether the index of a shard comes before its chunks

    @property
    def chunk_bytes(self) -> int:
        """Return the memory that what is in one file takes."""
        return math.prod(self.chunks) * self.dtype.itemsize

    @property
    def most_stored(self) -> int:
        """Return the size that the file of a chunk may have."""
        pieces = math.prod(self.chunks) // math.prod(self.inner) if self.inner else 1
        return self.chunk_bytes + self.chunk_bytes // 8 + OVERHEAD * pieces

    @property
    def packed(self) -> bool:
        """Return whether chunks are packed, or in shards."""
        return self.inner is not None or any(codec not in SAME_SIZE for codec in self.codecs)


def layout(said: dict[str, Any], what: str) -> Layout:
    """Return the layout that metadata of format 2 or 3 describe; refuse what is not plainly chunks of numbers."""
    try:
        return _layout_2(said, what) if said.get("zarr_format") == 2 else _layout_3(said, what)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise DataError(f"{what} has metadata that are not those of a Zarr array: write it again.") from error


def _layout_2(said: dict[str, Any], what: str) -> Layout:
    dtype = said["dtype"]
    if not isinstance(dtype, str) or dtype[1:] not in (
        "b1",
        *(f"{k}{n}" for k in "iu" for n in "1248"),
        "f2",
        "f4",
        "f8",
    ):
        raise _no_numbers(dtype, what)
    codecs = [*(said.get("filters") or []), *([said["compressor"]] if said["compressor"] else [])]
    names = _known([codec["id"] for codec in codecs], ("shuffle",), what)
    return Layout(_sizes(said["shape"], 0), np.dtype(dtype), _sizes(said["chunks"], 1), names)


def _layout_3(said: dict[str, Any], what: str) -> Layout:
    if said["data_type"] not in [each.name for each in NUMBERS]:
        raise _no_numbers(said["data_type"], what)
    if said["chunk_grid"]["name"] != "regular" or said.get("storage_transformers"):
        raise DataError(f"{what} has chunks of a kind that is not read: write it in chunks of one size.")
    shape, dtype = _sizes(said["shape"], 0), np.dtype(said["data_type"])
    chunks = _sizes(said["chunk_grid"]["configuration"]["chunk_shape"], 1)
    names, codecs = _names(said["codecs"]), said["codecs"]
    if names != ["sharding_indexed"]:
        return Layout(shape, dtype, chunks, _known(names, ("bytes", "transpose", "crc32c"), what))
    how = codecs[0]["configuration"]
    inner, first = _sizes(how["chunk_shape"], 1), how.get("index_location", "end") == "start"
    if _names(how["index_codecs"]) != INDEX_CODECS or len(inner) != len(chunks):
        raise DataError(f"{what} has shards of a kind that is not read: write it without shards.")
    inside = _known(_names(how["codecs"]), ("bytes", "transpose", "crc32c"), what)
    return Layout(shape, dtype, chunks, inside, inner, first)


def _names(codecs: list[Any]) -> list[str]:
    return [codec if isinstance(codec, str) else codec["name"] for codec in codecs]


def _sizes(numbers: Any, least: int) -> tuple[int, ...]:
    if not all(type(number) is int and least <= number < 2**63 for number in numbers):
        raise TypeError
    return tuple(numbers)


def _no_numbers(dtype: Any, what: str) -> DataError:
    return DataError(f"{what} holds {shown(dtype)}, not real numbers: save a numeric array.")


def _known(names: list[str], others: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Return the names of codecs; raise DataError if there is one that is not read, or a second that packs."""
    for name in names:
        if name not in (*UNPACKED, *others):
            raise DataError(f"{what} is packed by {shown(name)}, which is not read: write it packed by zstd or blosc.")
    if sum(name in UNPACKED for name in names) > 1:
        raise DataError(f"{what} is packed twice, which is not read: write it packed by zstd or blosc.")
    return tuple(names)


# --- sizes ------------------------------------------------------------------------------------------------


def check_chunk(stored: bytes, plan: Layout, what: str) -> None:
    """Raise DataError unless what was stored for one chunk, or shard, unpacks to the size that it should have."""
    if plan.inner is None:
        pieces, size = iter([stored]), plan.chunk_bytes
    else:
        pieces, size = _of_shard(stored, plan, what), math.prod(plan.inner) * plan.dtype.itemsize
    for piece in pieces:
        found = _unpacked(piece, plan.codecs, size)
        if not found or (found[0] != size if found[1] else found[0] > MOST_OVER * size + MOST_OVER * ZSTD_BLOCK):
            raise DataError(
                f"{what} is damaged: a chunk does not have the {size} bytes that it should. Write it again."
            )


def _of_shard(stored: bytes, plan: Layout, what: str) -> Iterator[bytes]:
    count = math.prod(-(-outer // inner) for outer, inner in zip(plan.chunks, plan.inner or ()))
    index = stored[: 16 * count] if plan.index_first else stored[-16 * count - 4 : -4]
    if len(index) != 16 * count:
        raise DataError(f"{what} is damaged: a shard is cut off. Write it again.")
    for start, size in struct.iter_unpack("<QQ", index):
        if size != NOT_THERE:
            yield stored[start : start + size]


def _unpacked(stored: bytes, codecs: tuple[str, ...], size: int) -> tuple[int, bool] | None:
    """Return how many bytes come out, and whether that is exact or a bound; None if it cannot be told."""
    for codec in reversed(codecs):
        if codec == "crc32c":
            stored = stored[:-4]
        elif codec in UNPACKED:
            return UNPACKED[codec](stored, size)
    return len(stored), True


def _inflated(stored: bytes, size: int) -> tuple[int, bool] | None:
    """Count what comes out of gzip or zlib, member by member, until it is too much."""
    found = 0
    try:
        while stored and found <= size:
            unpack = zlib.decompressobj(wbits=47)  # either of the two
            found += len(unpack.decompress(stored, size + 1))
            stored = unpack.unused_data
    except zlib.error:
        return None
    return found, True


def _in_header(place: int) -> Callable[[bytes, int], tuple[int, bool] | None]:
    def found(stored: bytes, size: int) -> tuple[int, bool] | None:
        return (int.from_bytes(stored[place : place + 4], "little"), True) if len(stored) >= place + 4 else None

    return found


def _zstd(stored: bytes, size: int) -> tuple[int, bool] | None:
    """Add up what the frames of zstd unpack to: by the header of each or, if it does not say, by its blocks."""
    place, found, exact = 0, 0, True
    while place < len(stored) and found <= MOST_OVER * size:
        if stored[place : place + 4] != b"\x28\xb5\x2f\xfd" or place + 6 > len(stored):
            return None
        head = stored[place + 4]
        single = head >> 5 & 1
        place += 5 + (not single) + (0, 1, 2, 4)[head & 3]
        width = (single, 2, 4, 8)[head >> 6]
        said = int.from_bytes(stored[place : place + width], "little") + (256 if width == 2 else 0)
        blocks, place = _zstd_blocks(stored, place + width)
        place += 4 * (head >> 2 & 1)  # a checksum
        found += said if width else blocks * ZSTD_BLOCK
        exact = exact and width > 0
    return found, exact


def _zstd_blocks(stored: bytes, place: int) -> tuple[int, int]:
    """Return the number of blocks from a place on, and where the last one ends."""
    blocks, last = 0, 0
    while not last and place < len(stored):
        head = int.from_bytes(stored[place : place + 3], "little")
        last, kind, length = head & 1, head >> 1 & 3, head >> 3
        place += 3 + (1 if kind == 1 else length)
        blocks += 1
    return blocks, place


# What the codecs that pack unpack to.
UNPACKED: dict[str, Callable[[bytes, int], tuple[int, bool] | None]] = {
    "blosc": _in_header(4),
    "gzip": _inflated,
    "lz4": _in_header(0),
    "zlib": _inflated,
    "zstd": _zstd,
}
