"""What `Rows.map` gives back: one (n, width) array, or several, dense or CSR, put together from those of blocks."""

from typing import Any, NamedTuple

import numpy as np


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

    @property
    def several(self) -> bool:
        """Whether a tuple of arrays is returned."""
        return isinstance(self.width, tuple)

    def each(self) -> tuple[Output, ...]:
        """Return them one by one."""
        if not isinstance(self.width, tuple):
            return (Output(self.width, self.dtype, bool(self.sparse)),)
        dtypes, sparse = (
            given if isinstance(given, tuple) else (given,) * len(self.width) for given in (self.dtype, self.sparse)
        )
        return tuple(Output(*one) for one in zip(self.width, dtypes, sparse, strict=True))


class Together:
    """Answers of a block function, put together row by row: arrays are filled in place, CSR parts stacked at the end.

    Threads may put parts in any order; each row comes once.
    """

    def __init__(self, n: int, wanted: Outputs) -> None:
        self._several, self._kinds = wanted.several, wanted.each()
        # An array, or CSR parts by their rows.
        self._held: list[Any] = [{} if one.sparse else np.empty((n, one.width), one.dtype) for one in self._kinds]

    def put(self, rows: slice, answer: Any) -> None:
        """Take the answer for these rows."""
        for held, part in zip(self._held, answer if self._several else (answer,), strict=True):
            held[(rows.start, rows.stop) if isinstance(held, dict) else rows] = part

    def answer(self) -> Any:
        """Return one array, or a tuple of them."""
        found = [_stacked(*pair) if isinstance(pair[0], dict) else pair[0] for pair in zip(self._held, self._kinds)]
        return tuple(found) if self._several else found[0]


def _stacked(parts: dict[tuple[int, int], Any], kind: Output) -> Any:
    import scipy.sparse as sp

    return sp.vstack([kind.empty(), *(parts[rows] for rows in sorted(parts))], format="csr", dtype=kind.dtype)
