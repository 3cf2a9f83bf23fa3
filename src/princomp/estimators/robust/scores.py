"""Scores that wild cells do not bend, and what they say about cells: block functions, for `Centered.map`.

Blocks are rows less the centre, over the scale, if there is one; NaN is missing; sparse rows come as dense tiles
(`Centered.in_dense_tiles`). V (p, k) is orthonormal, ``spreads`` what columns are made of, in the same units: then
scores are those of a bounded loss. Of a `Pursuit` they are those of its low-rank part. Where nothing is known of
errors, it is None, and each row is judged by its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.solvers.robust.bounded import Spreads, bounded_scores
from princomp.solvers.robust.deviations import LIMIT, CleanScores, Pull, clean_scores, least_deviations


class Pursuit(NamedTuple):
    r"""What a principal component pursuit of data with noise makes of rows, its components given.

    For L = WV' the nuclear norm is the least of (tr W'AW + tr A^-1) / 2 over A, at A = (L'L)^(-1/2) in terms of V, so
    that each row of L is where alpha ||x - Vw||_1 + w'Aw / 2 is least. Least absolute deviations alone are elsewhere:
    with noise, the norm draws rows towards 0, by more than they vary where they hardly do.
    """

    noise: float  # standard deviation of what L leaves of good cells
    pull: Pull

    @staticmethod
    def of(V: Array, deviations: Array, mean: Array, n: int, alpha: float, noise: float) -> Pursuit:
        """Return it from components V (p, k) of n rows of L, their deviations along these, and their mean."""
        R = np.linalg.qr(np.column_stack([V, mean]), mode="r")
        along, centre = R[:, :-1], R[:, -1]
        squares, E = np.linalg.eigh((n - 1) * (along * deviations**2) @ along.T + n * np.outer(centre, centre))
        there = squares > RANK * squares.max(initial=0.0)
        A = (E[:, there] / np.sqrt(squares[there])) @ E[:, there].T / alpha
        P = along.T @ A @ along
        return Pursuit(noise, Pull(P, np.linalg.lstsq(P, along.T @ A @ centre, rcond=None)[0]))

    def scores(self, X: Array, V: Array, limit: float) -> CleanScores:
        """Return scores of rows, and what they make of cells."""
        Z = least_deviations(X, V, pull=self.pull).Z
        residuals = (X - Z @ V.T) / self.noise
        return CleanScores(Z, residuals, np.abs(residuals) <= limit, np.full(len(X), self.noise))


Errors = Spreads | Pursuit | None  # what is known of them
RANK = 1e-14  # of the largest eigenvalue: those below are 0, in rounding


def judged(X: Array, V: Array, spreads: Errors, limit: float = LIMIT) -> CleanScores:
    """Return scores of rows as an array, and what they make of cells."""
    if spreads is None:
        return clean_scores(X, V, limit)
    if isinstance(spreads, Pursuit):
        return spreads.scores(X, V, limit)
    return bounded_scores(X, V, spreads, limit)


def robust_scores(block: Any, rows: slice, V: Array, spreads: Errors = None, limit: float = LIMIT) -> Array:
    """Return scores (m, k)."""
    return judged(dense(block), V, spreads, limit).Z


def clean_cells(
    block: Any, rows: slice, V: Array, spreads: Errors = None, limit: float = LIMIT
) -> tuple[Array, Array, Array]:
    """Return scores (m, k), residuals in scales (m, p), NaN where cells are missing, and which cells are clean (m, p).

    For `Centered.map` with ``width=(k, p, p)`` and ``dtype=(float, float, bool)``.
    """
    found = judged(dense(block), V, spreads, limit)
    return found.Z, found.residuals, found.clean


def cell_residuals(block: Any, rows: slice, V: Array, spreads: Errors = None, limit: float = LIMIT) -> Array:
    """Return residuals in scales (m, p), NaN where cells are missing."""
    return judged(dense(block), V, spreads, limit).residuals


def filled(
    block: Any, rows: slice, V: Array, spreads: Errors = None, limit: float = LIMIT, outlying: bool = False
) -> Array:
    """Return the block (m, p) with the fit in place of its missing cells, and of its outlying ones if asked to."""
    X = dense(block)
    found = judged(X, V, spreads, limit)
    kept = found.clean if outlying else ~np.isnan(X)
    return np.where(kept, X, found.Z @ V.T)


def dense(block: Any) -> Array:
    """Return a block as an array."""
    return np.asarray(block.toarray() if hasattr(block, "toarray") else block)
