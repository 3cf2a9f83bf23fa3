"""The container of a model file: a zip of ``manifest.json``, its digest, and one ``.npy`` member per array.

Reading trusts nothing. All that can be checked before the next byte is read is checked first: the size of the
directory, names and declared sizes of members, the manifest's digest, size and nesting, each array's type, shape and
length. Headers of arrays are compared with those expected, never interpreted.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate, islice
from os import PathLike
from typing import Any, Literal

import numpy as np

from princomp._atomic import atomic_file
from princomp._kinds import matches
from princomp._text import printable
from princomp._typing import Array

MANIFEST, DIGEST = "manifest.json", "manifest.sha256"
ENTRY: dict[str, Any] = {  # what the manifest says of an array
    "dtype": Literal["<f4", "<f8", "<i4", "<i8", "|b1"],
    "shape": list[int],
    "order": Literal["C", "F"],  # of rows, or of columns, after each other
    "bytes": int,  # of the .npy member
    "sha256": str,  # of the .npy member
}

# Limits. A file that breaks one is neither written nor read.
PIECE = 2**18  # bytes read at once, and so the longest directory of members: some 2500 arrays
MANIFEST_BYTES = 2**26
NESTING = 64
OBJECTS = 10**5  # JSON objects and lists in the manifest
KEYS = 10**5  # of all objects
VALUES = 2 * 10**6  # of all objects and lists: such as a million names of features, and their groups
# Members that were compressed by someone may be this much larger than the file, once they are larger than that.
EXPANSION, EXPANSION_FROM = 100, 2**24

MEMBER = re.compile(r"manifest\.json|manifest\.sha256|arrays/([A-Za-z0-9_][A-Za-z0-9_.-]*)\.npy")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # on Windows, with any extension
STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+'  # text that is not closed goes on to the end
# Up to the next bracket outside text, and up to so many colons or commas: one for each key, and between two values.
BRACKET = re.compile(rb'(?:[^"\[\]{}]++|%b)*+(?:([\[\]{}])|\Z)' % STRING, re.DOTALL)
TOO_MANY = {
    what: (mark, most, re.compile(rb'(?:(?:[^"%b]++|%b)*+%b){%d}+' % (mark, STRING, mark, most + 1), re.DOTALL))
    for what, mark, most in (("keys", b":", KEYS), ("values", b",", VALUES))
}


class ModelFileError(ValueError):
    """A model file that cannot be loaded or saved; the message names it and says why."""


@contextmanager
def naming(path: str | PathLike[str], verb: str) -> Iterator[None]:
    """Make what goes wrong with a file a `ModelFileError` that names it; errors of the system keep their class."""
    begin = printable(f"The model file {os.fspath(path)} cannot be {verb}")
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{begin}: {printable(error)}.") from None
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # EINVAL: a place outside the file
            raise OSError(error.errno, f"{error.strerror}, the model is not {verb}", os.fspath(path)) from error
        if verb != "loaded":
            raise
        raise ModelFileError(f"{begin}: it is damaged, or no model file ({printable(error)}).") from error


# Writing


def write(path: str | PathLike[str], manifest: dict[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write manifest and arrays, whole or not at all; the same content gives the same bytes."""
    members: list[tuple[str, list[Any]]] = []
    table = manifest["arrays"] = {}
    for name, array in sorted(arrays.items()):
        order: Literal["C", "F"] = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        header, numbers = npy_header(array.dtype.str, array.shape, order), array.ravel(order=order).view(np.uint8).data
        digest = hashlib.sha256(header)
        digest.update(numbers)
        size = len(header) + len(numbers)
        table[name] = dict(zip(ENTRY, (array.dtype.str, list(array.shape), order, size, digest.hexdigest())))
        members.append((f"arrays/{name}.npy", [header, numbers]))
    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    check_json(text)
    members = [(MANIFEST, [text]), (DIGEST, [_digest_line(text)]), *members]
    if sum(46 + 28 + len(name) for name, _ in members) > PIECE:  # an entry of the directory, for a large file
        raise ModelFileError(f"it would hold {len(arrays)} arrays, which are too many")
    with atomic_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)  # dated 1980, so that time does not show
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.file_size = sum(map(len, content))
            with archive.open(info, "w") as member:
                for piece in content:
                    member.write(piece)


def npy_header(dtype: str, shape: tuple[int, ...], order: str) -> bytes:
    """Return what precedes the numbers in a ``.npy`` file (format 1.0)."""
    text = f"{{'descr': {dtype!r}, 'fortran_order': {order == 'F'}, 'shape': {shape!r}, }}"
    length = -(-(10 + len(text) + 1) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + f"{text:<{length - 1}}\n".encode()


def _digest_line(text: bytes) -> bytes:
    """Return what ``sha256sum manifest.json`` prints."""
    return f"{hashlib.sha256(text).hexdigest()}  {MANIFEST}\n".encode()


# Reading


@contextmanager
def opened(path: str | PathLike[str], max_bytes: int) -> Iterator[Archive]:
    """Yield the model file, its members and its manifest checked."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError("it is no file")
    with _ShortReads(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
        yield Archive(archive, status.st_size, max_bytes)


class _ShortReads(io.BufferedReader):
    """A file that is never read in large pieces, such as a directory of 10^5 members."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read, if it is a little."""
        if size is not None and size > PIECE:
            raise ModelFileError("it has too many members")
        return super().read(size)


class Archive:
    """An open model file. Its manifest is JSON with a valid digest; what it says is not checked here."""

    def __init__(self, archive: zipfile.ZipFile, size: int, max_bytes: int) -> None:
        self._archive = archive
        self._members = checked_members(archive, size, max_bytes)
        for name, limit in ((MANIFEST, MANIFEST_BYTES), (DIGEST, 100)):
            if name not in self._members:
                raise ModelFileError(f"it is damaged, or no model file (it has no member {name})")
            if self._members[name].file_size > limit:
                raise ModelFileError(f"its {name} is longer than {limit} bytes")
        text = b"".join(self._pieces(MANIFEST))
        if b"".join(self._pieces(DIGEST)) != _digest_line(text):
            raise ModelFileError("its manifest was changed after it was saved (the SHA-256 differs)")
        self.manifest = parsed(text)

    def _pieces(self, name: str, first: int = PIECE) -> Iterator[bytes]:
        """Yield a member's content, as much as declared and no more; zipfile compares the CRC at the end."""
        left, length = self._members[name].file_size, first
        with self._archive.open(self._members[name]) as member:
            while left > 0:
                piece = member.read(min(length, left))
                if not piece:
                    raise ModelFileError(f"its member {name} ends too early")
                left, length = left - len(piece), PIECE
                yield piece

    def arrays(self, table: Mapping[str, Any]) -> dict[str, Array]:
        """Return all arrays, as the manifest's table describes them."""
        expected = {f"arrays/{name}.npy": name for name in table}
        for member in sorted(self._members.keys() ^ (expected.keys() | {MANIFEST, DIGEST})):
            raise ModelFileError(f"{member!r:.80} is a member or is in the manifest, but not both")
        return {name: self._array(member, table[name]) for member, name in expected.items()}

    def _array(self, member: str, entry: Any) -> Array:
        keys = entry.keys() if isinstance(entry, dict) else set()
        if keys != ENTRY.keys() or not all(matches(entry[key], hint) for key, hint in ENTRY.items()):
            raise ModelFileError(f"its manifest does not describe {member} as it should")
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        header = npy_header(entry["dtype"], shape, entry["order"])
        size = math.prod(shape) * dtype.itemsize
        sizes = {len(header) + size, entry["bytes"], self._members[member].file_size}
        if min(shape, default=0) < 0 or len(sizes) > 1:
            raise ModelFileError(f"its member {member} is not as long as its shape {shape!r:.80} says")
        pieces = self._pieces(member, len(header))
        if next(pieces) != header:
            raise ModelFileError(f"its member {member} does not begin like an array of {dtype.str} {shape!r:.80}")
        digest, numbers, filled = hashlib.sha256(header), np.empty(size, np.uint8), 0
        for piece in pieces:
            digest.update(piece)
            numbers[filled : filled + len(piece)] = np.frombuffer(piece, np.uint8)
            filled += len(piece)
        if digest.hexdigest() != entry["sha256"]:
            raise ModelFileError(f"its member {member} was changed after it was saved (the SHA-256 differs)")
        if dtype == np.bool_ and numbers.max(initial=0) > 1:
            raise ModelFileError(f"its member {member} holds bytes that are neither true nor false")
        return numbers.view(dtype).reshape(shape, order=entry["order"])


def checked_members(archive: zipfile.ZipFile, size: int, max_bytes: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, or say which of them no model file has."""
    members: dict[str, zipfile.ZipInfo] = {}
    seen: set[str] = set()
    free = 0  # from here on
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = info.orig_filename
        found = MEMBER.fullmatch(name)
        if name != info.filename or found is None or RESERVED.fullmatch(found[1] or ""):
            raise ModelFileError(f"it has a member named {name!r:.80}, which no model file has")
        if name.lower() in seen:
            raise ModelFileError(f"it has two members named {name!r:.80}")
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise ModelFileError(f"its member {name} is a link or another special file")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ModelFileError(f"its member {name} is encrypted or compressed in an unknown way")
        if info.header_offset < free:
            raise ModelFileError(f"its member {name} overlaps another one")
        free = info.header_offset + 30 + len(name) + info.compress_size
        seen.add(name.lower())
        members[name] = info
    total = sum(info.file_size for info in members.values())
    if total > max_bytes:
        raise ModelFileError(
            f"it holds {total} bytes, more than max_bytes={max_bytes}. Give a larger one if that is right"
        )
    if total > max(EXPANSION * size, EXPANSION_FROM):
        raise ModelFileError(f"its {size} bytes would expand to {total}, as no model's do")
    return members


# JSON


def check_json(text: bytes) -> None:
    """Refuse JSON that is too long, nested too deeply, or of too many parts, without interpreting it."""
    if len(text) > MANIFEST_BYTES:
        raise ModelFileError(f"its manifest is longer than {MANIFEST_BYTES} bytes")
    for what, (mark, most, more) in TOO_MANY.items():
        if text.count(mark) > most and more.match(text):  # counted first wherever they stand, which is faster
            raise ModelFileError(f"its manifest has more than {most} {what}")
    brackets = b"".join(found[1] or b"" for found in islice(BRACKET.finditer(text), 2 * OBJECTS + 1))
    if max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0) > NESTING:
        raise ModelFileError(f"its manifest is nested more than {NESTING} deep")
    if len(brackets) > 2 * OBJECTS:
        raise ModelFileError(f"its manifest has more than {OBJECTS} objects and lists")


def parsed(text: bytes) -> Any:
    """Return what JSON says, if it is short, flat, without repeated keys, and its numbers are numbers."""
    check_json(text)
    return json.loads(
        text.decode("utf-8", "surrogatepass"),
        object_pairs_hook=_without_repeats,
        parse_constant=_finite,
        parse_float=_finite,
    )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ModelFileError(f"its manifest has the key {key!r:.50} twice in one object")
        found[key] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ModelFileError(f"its manifest holds {text:.50}, which is no number in JSON")
    return number
