"""Robust PCA of cells and rows: what the objective is at a point, and how far weighted least squares would move it.

Of the problem: minimise over a centre m (p,), directions V (p, k) and scores Z (n, k), with r = X - m - ZV' on the
cells that are there, n_i of them in row i,

    F = sum_i n_i s^2 rho2(t_i / s),    t_i^2 = 1/n_i sum_j s_j^2 rho1(r_ij / s_j),

where the scales s_j and s are given. Its slope along a cell of the fit is -2 w_ij r_ij, with w_ij = w1(r_ij / s_j)
w2(t_i / s): it vanishes along Z if V'(w_i r_i) = 0 for each row, along V and m if (Z, 1)'(w_j r_j) = 0 for each column.
Both losses are concave as functions of squares, so that squares with these weights lie above F and touch it: what they
lose by least squares, for each row and for each column, F loses at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from princomp._typing import Array
from princomp.losses import HyperbolicTangent

RIDGE = 1e-10  # of the diagonal: what cells do not tell stays as it is
TILE_BYTES = 2**24
PAIR_BYTES = 2**25  # of products of pairs of columns, from which on each matrix is made by itself


@dataclass(frozen=True)
class CellwiseProblem:
    """The table, its scales, and the losses of cells and rows."""

    X: Array  # (n, p), 0 where cells are missing
    there: Array  # (n, p) of bool
    scales: Array  # (p,) of cells, above 0
    row_scale: float  # above 0
    of_cells: HyperbolicTangent
    of_rows: HyperbolicTangent

    @cached_property
    def counts(self) -> Array:
        """How many cells each row has, (n,)."""
        return self.there.sum(axis=1)

    def at(self, mean: Array, V: Array, Z: Array) -> CellwisePoint:
        """Return what the objective is at a point."""
        R = self.remainder(mean, V, Z)
        t = self.lengths(R) / self.row_scale
        value = float(self.counts @ self.of_rows.values(t)) * self.row_scale**2
        cells = self.of_cells.weights(R / self.scales) * self.there
        return CellwisePoint(value, R, cells, self.of_rows.weights(t), self.scales)

    def remainder(self, mean: Array, V: Array, Z: Array) -> Array:
        """Return what a point leaves of cells, (n, p), 0 where they are missing."""
        return np.where(self.there, self.X - mean - Z @ V.T, 0.0)

    def lengths(self, R: Array) -> Array:
        """Return t (n,) of rows with residuals R: the root of their mean bounded square."""
        return np.sqrt(self.of_cells.values(R / self.scales) @ self.scales**2 / np.maximum(self.counts, 1))


@dataclass(frozen=True)
class CellwisePoint:
    """The objective at a point, what is left of cells there, and what they and the rows count."""

    value: float
    R: Array  # (n, p) residuals, 0 where cells are missing
    cells: Array  # (n, p) weights, 0 where they are missing
    rows: Array  # (n,) weights
    scales: Array  # (p,) of cells

    @cached_property
    def weights(self) -> Array:
        """What cells count after all, (n, p)."""
        return self.cells * self.rows[:, None]

    @property
    def noise(self) -> float:
        """The weighted sum of squares of noise that the scales stand for, which losses are compared with."""
        return float(self.weights.sum(axis=0) @ self.scales**2)


def residual(point: CellwisePoint, gains: float) -> float:
    """Return the root of what least squares would lose, relative to the squares of noise."""
    return float(np.sqrt(gains / point.noise)) if gains > 0 and point.noise > 0 else 0.0


def weighted_steps(A: Array, W: Array, R: Array) -> tuple[Array, Array]:
    """Return steps (b, q) that lead to the least sum_j W_ij (R_ij - a_j's_i)^2, and what each sum loses (b,).

    A has a row a_j (q,) for each column of W and R (b, m).
    """
    (b, m), q = W.shape, A.shape[1]
    steps, gains = np.zeros((b, q)), np.zeros(b)
    upper, lower = np.triu_indices(q)
    few = 8 * m * len(upper) <= PAIR_BYTES
    place = np.empty((q, q), dtype=np.intp)
    place[upper, lower] = place[lower, upper] = np.arange(len(upper))
    pairs = A[:, upper] * A[:, lower] if few else None
    size = max(TILE_BYTES // (8 * max(q * q, 1 if few else q * m)), 1)
    for begin in range(0, b, size):
        tile = slice(begin, begin + size)
        weights = W[tile]
        G = (weights @ pairs)[:, place] if pairs is not None else np.matmul(weights[:, None, :] * A.T, A)
        slopes = (weights * R[tile]) @ A
        diagonal = np.einsum("bii->bi", G)
        diagonal += np.where(diagonal > 0, RIDGE * diagonal, 1.0)
        steps[tile] = np.linalg.solve(G, slopes[:, :, None])[:, :, 0]
        gains[tile] = np.einsum("bi,bi->b", steps[tile], slopes)
    return steps, gains


def cellwise_residual(problem: CellwiseProblem, mean: Array, V: Array, Z: Array) -> float:
    """Measure how far a point is from one that least squares with its own weights leave where it is."""
    point = problem.at(mean, V, Z)
    _, of_rows = weighted_steps(V, point.cells, point.R)
    _, of_columns = weighted_steps(np.column_stack([Z, np.ones(len(Z))]), point.weights.T, point.R.T)
    return residual(point, float(point.rows @ of_rows + of_columns.sum()))
