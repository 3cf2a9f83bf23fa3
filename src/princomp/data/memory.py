"""Rows of one NumPy array: any numeric dtype, order and strides, read-only or memory-mapped."""

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data.budget import available_bytes
from princomp.data.rows import Rows, block_offsets, centre

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
    given = array
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{what} cannot be read as an array; have its rows the same length? ({error})") from error
    if array.ndim == 0 and array.dtype.kind not in "fiubc":
        named = "None" if given is None else f"a {type(given).__name__}"
        raise TypeError(f"{what} is {named}, not a table of numbers. {_instead(given, what)}")
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


def _instead(given: Any, what: str) -> str:
    if isinstance(given, str | PathLike):
        return f"Read a file with princomp.read({what})."
    if isinstance(given, Iterator):
        return f"It can be gone through only once: pass list({what}), or a list of functions that return the parts."
    if hasattr(given, "collect"):
        return f"Pass {what}.collect()."
    if isinstance(given, Mapping):
        return f"If it holds columns, pass pandas.DataFrame({what})."
    return "Pass a 2-D array, a data frame, a sparse matrix, or a list of shards."


# What NumPy would turn into numbers without a word.
NO_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)


def _numbers(array: Array, what: str) -> Array:
    """Return an object array of numbers as float64 (`Decimal` and `Fraction` too; None is NaN); refuse what is none.

    Text that happens to read as a number is refused as well.
    """
    for kind in {type(cell) for cell in array.reshape(-1)}:
        if issubclass(kind, complex | np.complexfloating):
            raise ValueError(f"Complex data not supported: {what} holds complex numbers.")
        if issubclass(kind, NO_NUMBERS):
            held = "text" if issubclass(kind, str | bytes) else f"cells of type {kind.__name__}"
            raise TypeError(f"{what} holds {held}. Convert it to numbers first, so that nothing is guessed.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must hold numbers: {error}") from error
    except OverflowError as error:
        raise ValueError(f"{what} holds numbers that float64 cannot ({error}). Divide it by a constant.") from error


class MemoryRows(Rows):
    """Rows of one array in memory (or mapped into it): blocks are views."""

    def __init__(self, array: Any, *, names: tuple[str, ...] | None = None, **blocks: Any) -> None:
        self.changeable = isinstance(array, np.memmap)  # np.asarray forgets it
        self._array = checked(array)
        self.shape = self._array.shape
        self.dtype = working_dtype(self._array.dtype)
        self.names = names
        self.offsets = block_offsets(*self.shape, **blocks)

    def block(self, i: int) -> Array:
        """Return a view of block i."""
        return self._array[self.rows(i)]

    def columns(self, some: slice) -> Array:
        """Return a view of some columns."""
        return self._array[:, some]

    def in_single(self, mean: Array | None, factor: Array | None) -> tuple[Rows, bool]:
        """Return a centred copy in single precision, row by row, if it is small beside the memory that is left."""
        n, p = self.shape
        if mean is None and factor is None and self._array.dtype == np.float32 and self._array.flags.c_contiguous:
            return self, False  # as it would be
        if self.changeable or 4 * n * p > SINGLE_SHARE * available_bytes():
            return self, False
        copy = np.empty((n, p), np.float32)
        for i in range(len(self.offsets) - 1):
            centre(self.block(i), mean, factor, copy[self.rows(i)])
        rows = MemoryRows(copy)
        rows.offsets = self.offsets
        return rows, True
