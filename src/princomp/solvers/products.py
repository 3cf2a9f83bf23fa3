"""`Products`: all that a solver asks of the data: X V, X'U and sums of squares, for any storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.data import Centered, statistics

Array = NDArray[Any]


@dataclass(frozen=True)
class Products:
    """Products with X (n, p).

    Attributes
    ----------
    shape : tuple of int
        (n, p).
    apply, apply_transpose : callable
        V (p, k) -> XV (n, k) and U (n, k) -> X'U (p, k), as NumPy arrays.
    squares_by_column, squares_by_row : callable
        () -> (p,) and () -> (n,): sums of squares.
    """

    shape: tuple[int, int]
    apply: Callable[[Array], Array]
    apply_transpose: Callable[[Array], Array]
    squares_by_column: Callable[[], Array]
    squares_by_row: Callable[[], Array]

    @classmethod
    def of(cls, X: Array | Centered) -> Products:
        """Make products of an array, or of centred rows in any storage."""
        if isinstance(X, np.ndarray):
            return cls(
                X.shape,
                partial(np.matmul, X),
                partial(np.matmul, X.T),
                partial(np.einsum, "ij,ij->j", X, X),
                partial(np.einsum, "ij,ij->i", X, X),
            )
        dense = X.in_dense_tiles()
        return cls(
            X.shape,
            lambda V: np.asarray(statistics.apply(X, V)),
            lambda U: np.ascontiguousarray(statistics.apply_transpose(X, U)),
            lambda: np.asarray(dense.reduce(_squares_by_column)),
            lambda: np.asarray(dense.map(_squares_by_row, width=1, dtype=np.float64))[:, 0],
        )

    @cached_property
    def squares(self) -> Array:
        """Sums of squares by column, (p,)."""
        return self.squares_by_column()

    @cached_property
    def total(self) -> float:
        """Sum of all squares."""
        return float(self.squares.sum())

    @property
    def T(self) -> Products:
        """The same for X'."""
        n, p = self.shape
        return Products((p, n), self.apply_transpose, self.apply, self.squares_by_row, self.squares_by_column)


def _squares_by_column(block: Array, rows: slice) -> Array:
    return np.asarray(np.einsum("ij,ij->j", block, block))


def _squares_by_row(block: Array, rows: slice) -> Array:
    return np.asarray(np.einsum("ij,ij->i", block, block))[:, None]
