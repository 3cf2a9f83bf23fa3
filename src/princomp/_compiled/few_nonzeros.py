"""Products of two symmetric matrices with a matrix that is mostly zeros but not stored so: zeros cost nothing.

Twin: S @ B, T @ B.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._compiled import kernel

Array = NDArray[Any]


@kernel
def _add_rows(S: Array, T: Array, B: Array, SB: Array, TB: Array) -> None:
    for a in range(B.shape[0]):
        for i in range(B.shape[1]):
            b = B[a, i]
            if b != 0.0:
                for j in range(S.shape[0]):
                    SB[a, j] += b * S[i, j]
                    TB[a, j] += b * T[i, j]


def two_products(S: Array, T: Array, B: Array) -> tuple[Array, Array]:
    """Return S B and T B, for symmetric S and T (p, p) and B (p, k) of one type."""
    across = np.ascontiguousarray(B.T)
    SB, TB = np.zeros_like(across), np.zeros_like(across)
    _add_rows(S, T, across, SB, TB)
    return SB.T, TB.T


def warm_up() -> None:
    """Compile."""
    for dtype in (np.float32, np.float64):
        square = np.eye(2, dtype=dtype)
        two_products(square, square, square)
