"""Scores that wild cells do not bend, and what they say about cells: block functions, for `Centered.map`.

Blocks are rows less the centre, over the scale, if there is one; NaN is missing; sparse rows come as dense tiles
(`Centered.in_dense_tiles`). V (p, k) is orthonormal, ``noise`` (p,) the scales of the columns' errors in the same
units, or None: then each row is judged by its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.solvers.robust.deviations import LIMIT, clean_scores


def robust_scores(block: Any, rows: slice, V: Array, noise: Array | None = None, limit: float = LIMIT) -> Array:
    """Return scores (m, k): least absolute deviations, then least squares on the cells that are clean."""
    return clean_scores(dense(block), V, noise, limit).Z


def clean_cells(
    block: Any, rows: slice, V: Array, noise: Array | None = None, limit: float = LIMIT
) -> tuple[Array, Array, Array]:
    """Return scores (m, k), residuals in scales (m, p), NaN where cells are missing, and which cells are clean (m, p).

    For `Centered.map` with ``width=(k, p, p)`` and ``dtype=(float, float, bool)``.
    """
    found = clean_scores(dense(block), V, noise, limit)
    return found.Z, found.residuals, found.clean


def cell_residuals(block: Any, rows: slice, V: Array, noise: Array | None = None, limit: float = LIMIT) -> Array:
    """Return residuals in scales (m, p), NaN where cells are missing."""
    return clean_scores(dense(block), V, noise, limit).residuals


def filled(
    block: Any, rows: slice, V: Array, noise: Array | None = None, limit: float = LIMIT, outlying: bool = False
) -> Array:
    """Return the block (m, p) with the fit in place of its missing cells, and of its outlying ones if asked to."""
    X = dense(block)
    found = clean_scores(X, V, noise, limit)
    kept = found.clean if outlying else ~np.isnan(X)
    return np.where(kept, X, found.Z @ V.T)


def dense(block: Any) -> Array:
    """Return a block as an array."""
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)
