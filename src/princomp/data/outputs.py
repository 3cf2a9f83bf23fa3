"""What `Rows.map` gives back: one (n, width) array, or several, dense or CSR, put together from those of blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Output(NamedTuple):
    """One array that a block function returns, (rows, width)."""

    width: int
    dtype: Any
    sparse: bool

    def empty(self) -> Any:
        """Return one of this kind without rows."""
        if not self.sparse:
            return np.empty((0, self.width), self.dtype)
        import scipy.sparse as sp

        return sp.csr_array((0, self.width), dtype=self.dtype)


class Outputs(NamedTuple):
    """All arrays that a block function returns: a tuple of them if ``width`` is a tuple, else one.

    ``dtype`` and ``sparse`` are tuples too, or one for all.
    """

    width: int | tuple[int, ...]
    dtype: Any
    sparse: bool | tuple[bool, ...] = False

    def each(self) -> tuple[Output, ...]:
        """Return them one by one."""
        widths = self.width if isinstance(self.width, tuple) else (self.width,)
        dtypes, sparse = (
            given if isinstance(given, tuple) else (given,) * len(widths) for given in (self.dtype, self.sparse)
        )
        return tuple(Output(*one) for one in zip(widths, dtypes, sparse, strict=True))


class Together:
    """Answers of a block function, put together row by row: arrays are filled in place, CSR parts stacked at the end.

    Threads may put parts in any order; each row comes once.
    """

    def __init__(self, n: int, wanted: Outputs) -> None:
        self._wanted = wanted
        # An array, or CSR parts by their rows.
        self._held: list[Any] = [{} if one.sparse else np.empty((n, one.width), one.dtype) for one in wanted.each()]

    def put(self, rows: slice, answer: Any) -> None:
        """Take the answer for these rows."""
        parts = answer if isinstance(self._wanted.width, tuple) else (answer,)
        for held, part in zip(self._held, parts, strict=True):
            held[(rows.start, rows.stop) if isinstance(held, dict) else rows] = part

    def answer(self) -> Any:
        """Return one array, or a tuple of them."""
        found = tuple(
            _stacked([held[rows] for rows in sorted(held)], one) if isinstance(held, dict) else held
            for held, one in zip(self._held, self._wanted.each())
        )
        return found if isinstance(self._wanted.width, tuple) else found[0]


def _stacked(parts: list[Any], kind: Output) -> Any:
    """Return CSR parts as one."""
    import scipy.sparse as sp

    return sp.vstack([kind.empty(), *parts], format="csr", dtype=kind.dtype)
