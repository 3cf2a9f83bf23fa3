"""Scores that wild cells do not bend, and what they say about cells: block functions, for `Centered.map`.

Blocks are rows less the centre, over the scale, if there is one; NaN is missing; sparse rows come as dense tiles
(`Centered.in_dense_tiles`). V (p, k) is orthonormal, ``spreads`` what columns are made of, in the same units: then
scores are those of a bounded loss. Where nothing is known of errors, it is None, and each row is judged by its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.solvers.robust.bounded import Spreads, bounded_scores
from princomp.solvers.robust.deviations import LIMIT, CleanScores, clean_scores


def judged(X: Array, V: Array, spreads: Spreads | None, limit: float = LIMIT) -> CleanScores:
    """Return scores of rows as an array, and what they make of cells."""
    return clean_scores(X, V, limit) if spreads is None else bounded_scores(X, V, spreads, limit)


def robust_scores(block: Any, rows: slice, V: Array, spreads: Spreads | None = None, limit: float = LIMIT) -> Array:
    """Return scores (m, k)."""
    return judged(dense(block), V, spreads, limit).Z


def clean_cells(
    block: Any, rows: slice, V: Array, spreads: Spreads | None = None, limit: float = LIMIT
) -> tuple[Array, Array, Array]:
    """Return scores (m, k), residuals in scales (m, p), NaN where cells are missing, and which cells are clean (m, p).

    For `Centered.map` with ``width=(k, p, p)`` and ``dtype=(float, float, bool)``.
    """
    found = judged(dense(block), V, spreads, limit)
    return found.Z, found.residuals, found.clean


def cell_residuals(block: Any, rows: slice, V: Array, spreads: Spreads | None = None, limit: float = LIMIT) -> Array:
    """Return residuals in scales (m, p), NaN where cells are missing."""
    return judged(dense(block), V, spreads, limit).residuals


def filled(
    block: Any, rows: slice, V: Array, spreads: Spreads | None = None, limit: float = LIMIT, outlying: bool = False
) -> Array:
    """Return the block (m, p) with the fit in place of its missing cells, and of its outlying ones if asked to."""
    X = dense(block)
    found = judged(X, V, spreads, limit)
    kept = found.clean if outlying else ~np.isnan(X)
    return np.where(kept, X, found.Z @ V.T)


def dense(block: Any) -> Array:
    """Return a block as an array."""
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)
