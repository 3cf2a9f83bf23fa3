"""How far rows lie out, and what is too far (Hubert, Rousseeuw & Vanden Branden, Technometrics 2005).

The score distance sqrt(sum_j t_j^2 / variance_j) is taken in the subspace, from the centre; the orthogonal distance
|x - mean - Vt| is that from the subspace. What a row has along a component of variance 0 counts among the latter: rows
that are regular have nothing there.
"""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.estimators.robust.scores import Errors, robust_scores
from princomp.solvers.robust.univariate import length_limit, limit

ROUNDING = 64.0  # times eps, of the length of a row and of the mean: an orthogonal distance below it is none
EPS = float(np.finfo(np.float64).eps)


def distances(block: Any, rows: slice, V: Array, variances: Array, offset: float = 0.0, eps: float = EPS) -> Array:
    """Return score and orthogonal distances (m, 2) of rows less the mean, standardised: a block function.

    ``offset`` is the length of the mean that was taken off, in the same units, and ``eps`` that of the data.
    """
    varies = variances > 0
    V = V[:, varies]
    scores = np.asarray(block @ V, dtype=np.float64)
    if isinstance(block, np.ndarray):
        squares, known = np.einsum("ij,ij->i", block, block), ROUNDING * eps
        apart = block - scores @ V.T
        left = np.einsum("ij,ij->i", apart, apart)
    else:  # as a difference of squares, half of whose digits are those of the distance
        squares, known = block.row_squares(), np.sqrt(ROUNDING * eps)
        left = np.maximum(squares - (scores**2).sum(axis=1), 0.0)
    return _both(scores, variances[varies], left, known * (np.sqrt(squares) + offset))


def robust_distances(
    block: Array, rows: slice, V: Array, spreads: Errors, variances: Array, offset: float, eps: float
) -> Array:
    """Return the same of robust scores, which bad cells do not bend; of rows with missing cells, from what is there.

    The squares of the cells that are there stand for those of all p.
    """
    varies = variances > 0
    scores = robust_scores(block, rows, V, spreads)[:, varies]
    apart = block - scores @ V[:, varies].T
    there = ~np.isnan(apart)
    more = V.shape[0] / np.maximum(there.sum(axis=1), 1)
    squares, left = (np.square(np.where(there, cells, 0.0)).sum(axis=1) * more for cells in (block, apart))
    return _both(scores, variances[varies], left, ROUNDING * eps * (np.sqrt(squares) + offset))


def _both(scores: Array, variances: Array, left: Array, rounding: Array) -> Array:
    apart = np.sqrt(left)
    return np.column_stack([np.sqrt((scores**2 / variances).sum(axis=1)), np.where(apart > rounding, apart, 0.0)])


def score_limit(k: int) -> float:
    """Return the limit of score distances, which 97.5 % of normal rows are within; of components of some variance."""
    return float(np.sqrt(limit(k))) if k else 0.0


def orthogonal_limit(orthogonal: Array) -> float:
    """Return the limit of orthogonal distances, from those of the rows of a fit; 0 if half of them or more are 0."""
    return length_limit(orthogonal)
