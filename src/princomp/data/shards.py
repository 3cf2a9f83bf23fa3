"""Rows laid out in several shards: arrays, ``.npy`` files, or callables that return an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.data.memory import checked, working_dtype
from princomp.data.rows import BLOCK_BYTES, Rows, block_offsets

Array = NDArray[Any]


def is_shards(X: Any) -> bool:
    """Tell a list of shards from a list of lists of numbers."""
    return (
        isinstance(X, list | tuple)
        and len(X) > 0
        and all(isinstance(item, PathLike | str) or callable(item) or np.ndim(item) == 2 for item in X)
        and not all(isinstance(item, list | tuple) for item in X)
    )


def _open(shard: Any) -> Array:
    """Return the array of one shard; a file is mapped, not read."""
    if isinstance(shard, PathLike | str):
        return checked(np.load(shard, mmap_mode="r", allow_pickle=False), f"the file {fspath(shard)}")
    if callable(shard):
        return checked(shard(), "a shard")
    return checked(shard, "a shard")


class ShardRows(Rows):
    """Rows of a list of shards; a block never spans two of them.

    A callable is called once for its shape and then once for each of its blocks in each pass: it must return the
    same rows each time, and should return something cheap to slice.
    """

    def __init__(
        self,
        shards: Sequence[Array | str | PathLike[str] | Callable[[], Array]],
        *,
        block_rows: int | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._shards = list(shards)
        opened = [(shard.shape, shard.dtype) for shard in map(_open, self._shards)]
        widths = {shape[1] for shape, _ in opened}
        if len(widths) > 1:
            raise ValueError(f"All shards must have the same number of columns, found {sorted(widths)}.")
        lengths = [shape[0] for shape, _ in opened]
        self.shape = (sum(lengths), widths.pop())
        self.dtype = working_dtype(np.result_type(*(dtype for _, dtype in opened)))
        begin = np.concatenate([[0], np.cumsum(lengths)])
        parts = [block_offsets(length, self.shape[1], block_rows, block_bytes)[:-1] for length in lengths]
        self.offsets = np.concatenate([b + part for b, part in zip(begin, parts, strict=False)] + [begin[-1:]])
        self._where = [(i, int(a)) for i, part in enumerate(parts) for a in part]  # block -> (shard, first row in it)
        self._lengths = lengths

    def block(self, i: int) -> Array:
        """Return block i as a view of its shard."""
        shard, first = self._where[i]
        array = _open(self._shards[shard])
        if array.shape != (self._lengths[shard], self.shape[1]):
            raise ValueError(
                f"Shard {shard} has shape {array.shape} now, but had ({self._lengths[shard]}, {self.shape[1]}) "
                "when the fit began: shards must not change while they are read."
            )
        rows = self.rows(i)
        return array[first : first + rows.stop - rows.start]
