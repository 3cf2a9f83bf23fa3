"""Rows of one NumPy array: any numeric dtype, order and strides, read-only or memory-mapped."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.data.budget import available_bytes
from princomp.data.rows import BLOCK_BYTES, Rows, block_offsets, centre

Array = NDArray[Any]

SINGLE_SHARE = 0.1  # of the memory that is left may go into a copy in single precision


def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the precision of results: float32 stays float32, everything else becomes float64."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def checked(array: Any, what: str = "X") -> Array:
    """Return ``array`` as a 2-D array of real numbers, as it lies; say what is wrong with anything else."""
    if isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise TypeError(
                f"{what} is a masked array with masked cells, which would be silently read as data. "
                "Fill them, or drop their rows, first."
            )
        array = array.data
    if isinstance(array, np.matrix):
        raise TypeError(f"{what} is a np.matrix, whose products differ from an array's: pass np.asarray({what}).")
    if hasattr(array, "tocsr"):
        raise TypeError(f"{what} is a sparse matrix, which is not taken here: put sparse parts together with vstack.")
    array = np.asarray(array)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} has dtype {array.dtype}.")
    if array.dtype.kind == "O":
        array = _numbers(array, what)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} must hold numbers, but its dtype is {array.dtype}. Convert it, or leave those out.")
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. Reshape your data using {what}.reshape(-1, 1) if "
            f"it has a single feature or {what}.reshape(1, -1) if it is a single sample."
        )
    return array


def _numbers(array: Array, what: str) -> Array:
    """Return an object array of numbers as float64; text that happens to read as a number is refused."""
    if np.frompyfunc(lambda cell: isinstance(cell, str | bytes), 1, 1)(array).any():
        raise TypeError(f"{what} holds text. Convert it to numbers first, so that nothing is guessed.")
    if np.frompyfunc(lambda cell: isinstance(cell, complex), 1, 1)(array).any():
        raise ValueError(f"Complex data not supported: {what} holds complex numbers.")
    try:
        return array.astype(np.float64)
    except TypeError as error:
        raise TypeError(f"{what} must hold numbers: {error}") from error


class MemoryRows(Rows):
    """Rows of one array in memory (or mapped into it): blocks are views."""

    def __init__(
        self,
        array: Any,
        *,
        names: tuple[str, ...] | None = None,
        block_rows: int | None = None,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self._mapped = isinstance(array, np.memmap)  # np.asarray forgets it
        self._array = checked(array)
        self.shape = self._array.shape
        self.dtype = working_dtype(self._array.dtype)
        self.names = names
        self.offsets = block_offsets(*self.shape, block_rows, block_bytes)

    def block(self, i: int) -> Array:
        """Return a view of block i."""
        view: Array = self._array[self.rows(i)]
        return view

    def in_single(self, mean: Array | None, factor: Array | None) -> tuple[Rows, bool]:
        """Return a centred copy of half the size, if it is small beside the memory that is left."""
        n, p = self.shape
        if self._mapped or 4 * n * p > SINGLE_SHARE * available_bytes():
            return self, False
        copy = np.empty((n, p), np.float32)
        for i in range(len(self.offsets) - 1):
            centre(self.block(i), mean, factor, copy[self.rows(i)])
        rows = MemoryRows(copy)
        rows.offsets = self.offsets
        return rows, True
