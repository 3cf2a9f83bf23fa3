"""Rows laid out in several shards: arrays, frames, ``.npy`` files, or callables that return an array or a frame."""

from collections.abc import Hashable, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np

from princomp._text import listed
from princomp._typing import Array
from princomp.data.frames import frame_to_array, is_frame, labels
from princomp.data.memory import checked, working_dtype
from princomp.data.rows import Rows, offsets_of_parts

Labels = Sequence[Hashable]


def is_shards(X: Any) -> bool:
    """Tell a list of shards from a list of lists of numbers."""
    return (
        isinstance(X, list | tuple)
        and len(X) > 0
        and all(_is_outside(item) or is_frame(item) or np.ndim(item) == 2 for item in X)
        and not all(isinstance(item, list | tuple) for item in X)
    )


def _is_outside(shard: Any) -> bool:
    """Tell a shard that is fetched each time it is read."""
    return isinstance(shard, PathLike | str) or callable(shard)


def _open(shard: Any) -> tuple[Array, Labels | None]:
    """Return the array of one shard and the labels of its columns; a file is mapped, not read."""
    if isinstance(shard, PathLike | str):
        return checked(np.load(shard, mmap_mode="r", allow_pickle=False), f"the file {fspath(shard)}"), None
    table = shard() if callable(shard) else shard
    if is_frame(table):
        return frame_to_array(table)[0], labels(table)
    return checked(table, "a shard"), None


def _in_order(array: Array, found: Labels | None, wanted: Labels | None, shard: int) -> Array:
    """Return an array with its columns in the order wanted, found by label; complain if there are others."""
    if found is None and wanted is None:
        return array
    if found is None or wanted is None:
        frame, other = (0, shard) if found is None else (shard, 0)
        raise TypeError(
            f"Shard {frame} is a frame with labelled columns, but shard {other} is an array, of which it cannot be "
            "known which column is which. Give frames only, or arrays only."
        )
    if list(found) == list(wanted):
        return array
    missing, new = ([label for label in a if label not in set(b)] for a, b in ((wanted, found), (found, wanted)))
    if missing or new:
        lacks = f"; it lacks {listed(missing)}" if missing else ""
        has = f"; it has {listed(new)}, which the first has not" if new else ""
        raise ValueError(f"All shards must have the columns of the first, but shard {shard} has not{lacks}{has}.")
    place = {label: j for j, label in enumerate(found)}
    return array[:, [place[label] for label in wanted]]


class ShardRows(Rows):
    """Rows of a list of shards; a block never spans two of them.

    Columns of frames are put into the order of the first one's, by label. A frame in memory is made an array once, in
    the beginning. A callable is called once for its shape and then once for each of its blocks in each pass: it must
    return the same rows each time, and should return something cheap to slice.
    """

    def __init__(self, shards: Sequence[Any], **blocks: Any) -> None:
        self._shards: list[Any] = []  # arrays, paths and callables
        self._labels: Labels | None = None
        shapes, dtypes = [], []
        for i, shard in enumerate(shards):
            array, found = _open(shard)
            if i == 0:
                self._labels = found
            array = _in_order(array, found, self._labels, i)
            self._shards.append(shard if _is_outside(shard) else array)
            shapes.append(array.shape)
            dtypes.append(array.dtype)
        widths = {width for _, width in shapes}
        if len(widths) > 1:
            raise ValueError(f"All shards must have the same number of columns, found {sorted(widths)}.")
        if self._labels is not None and all(isinstance(label, str) for label in self._labels):
            self.names = tuple(str(label) for label in self._labels)
        lengths = [length for length, _ in shapes]
        self.shape = (sum(lengths), widths.pop())
        self.dtype = working_dtype(np.result_type(*dtypes))
        self.offsets, self._where = offsets_of_parts(lengths, self.shape[1], **blocks)
        self._lengths = lengths
        self.changeable = any(map(_is_outside, self._shards))

    def block(self, i: int) -> Array:
        """Return block i as a view of its shard."""
        number, first = self._where[i]
        shard = self._shards[number]
        array = _in_order(*_open(shard), self._labels, number) if _is_outside(shard) else shard
        if array.shape != (self._lengths[number], self.shape[1]):
            raise ValueError(
                f"Shard {number} has shape {array.shape} now, but had ({self._lengths[number]}, {self.shape[1]}) "
                "when the fit began: shards must not change while they are read."
            )
        rows = self.rows(i)
        return array[first : first + rows.stop - rows.start]
