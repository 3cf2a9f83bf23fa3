"""Rows of a Dask array or frame: block functions run where the chunks are, and one sum of them comes back."""

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data.memory import checked, working_dtype
from princomp.data.outputs import Outputs
from princomp.data.rows import Function, Merge, Rows, add

FAN_IN = 8  # parts that a worker puts together at a time: not all of them come to one place
# A sum over 400 x 30 numbers in two persisted chunks took 0.03 to 0.23 s, in the median of 20 0.04 s (two worker
# processes, two busy cores).
PASS_SECONDS = 0.05


def _call(block: Any, rows: slice, fn: Function, state: tuple[Any, ...]) -> Any:
    block = checked(block, "a Dask block")
    if isinstance(block, np.ndarray) and not block.flags.aligned:
        block = block.copy()  # from a network buffer: BLAS would copy it too, once for each side, and round otherwise
    return fn(block, rows, *state)


def _call_rows(block: Any, fn: Function, state: tuple[Any, ...], block_info: Any = None) -> Any:
    # Dask tells where the block lies.
    return _call(block, slice(*block_info[0]["array-location"][0]), fn, state)


def _one_of(answers: Any, i: int) -> Any:
    return answers[i]


class DaskRows(Rows):
    """Rows of a Dask array (chunks of whole rows) or frame.

    A pass sends ``state`` to the workers and brings one sum back. They add it up in the order of the rows, a few parts
    at a time: the answer does not depend on which worker did what. Data never move.
    """

    changeable = True
    local = False
    pass_seconds = PASS_SECONDS

    def __init__(self, X: Any) -> None:
        if hasattr(X, "to_dask_array"):
            self.names = tuple(X.columns) if all(isinstance(name, str) for name in X.columns) else None
            X = X.to_dask_array(lengths=True)
        if X.ndim != 2:
            checked(np.empty((1,) * X.ndim))  # says what is wrong
        if np.isnan(X.shape[0]):
            X = X.compute_chunk_sizes()
        if X.dtype.kind in "cOSUMm":
            checked(np.empty((1, 1), X.dtype))
        self._array = X.rechunk({1: -1}) if X.shape[1] else X
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = working_dtype(X.dtype)
        self.offsets = np.concatenate([[0], np.cumsum(self._array.chunks[0])]).astype(int)

    def block(self, i: int) -> Array:
        """Return block i, computed and brought here."""
        return self._array.blocks[i].compute()

    def reduce(self, fn: Function, *state: Any, blocks: Iterable[int] | None = None, combine: Merge = add) -> Any:
        """Return the sum of ``fn`` over blocks (see `Rows.reduce`); each block's part is computed on a worker."""
        import dask

        chunks = self._array.to_delayed().ravel()
        shared = dask.delayed(state, traverse=False)
        call = dask.delayed(_call, pure=True)
        wanted = range(len(chunks)) if blocks is None else blocks
        todo = [i for i in wanted if self.offsets[i + 1] > self.offsets[i]]  # a filter leaves empty chunks
        parts = [call(chunks[i], self.rows(i), fn, shared) for i in todo]
        merge = dask.delayed(_merged, pure=True)
        while len(parts) > 1:
            parts = [merge(parts[i : i + FAN_IN], combine) for i in range(0, len(parts), FAN_IN)]
        return _writable(parts[0].compute())

    def map(self, fn: Function, *state: Any, lengths: Array | None = None, **outputs: Any) -> Any:
        """Return a lazy Dask array of ``fn`` over blocks, or several, which share the work if computed together."""
        import dask

        rows = self._array.chunks[0] if lengths is None else tuple(int(length) for length in lengths)
        wanted = Outputs(**outputs)
        found = [{"dtype": one.dtype, "chunks": (rows, (one.width,)), "meta": one.empty()} for one in wanted.each()]
        answers = self._array.map_blocks(_call_rows, fn, dask.delayed(state, traverse=False), **found[0])
        if not wanted.several:
            return answers
        # Blocks that are tuples of arrays: nobody sees them but who takes them apart.
        return tuple(answers.map_blocks(_one_of, i, **how) for i, how in enumerate(found))


def _merged(parts: list[Any], combine: Merge) -> Any:
    return reduce(combine, parts[1:], _writable(parts[0]))


def _writable(part: Any) -> Any:
    """Copy the first part, which may be a read-only view of a network buffer, so that others can be added to it."""
    if isinstance(part, tuple):
        return tuple(_writable(item) for item in part)
    return np.array(part) if isinstance(part, np.ndarray) else part
