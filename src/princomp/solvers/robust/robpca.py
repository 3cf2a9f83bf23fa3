"""ROBPCA (Hubert, Rousseeuw & Vanden Branden, Technometrics 2005): components of the rows that belong together.

Objective: a subspace of k dimensions, its centre and the variances along it, of h or more of the n rows of X (n, p):

- the h rows of least outlyingness (`princomp.solvers.robust.outlyingness`) have a mean and a covariance, whose leading
  eigenvectors span a first subspace, and whose eigenvalues tell how many are kept;
- all rows no farther from that than the limit of orthogonal distances span the second one;
- in it the reweighted MCD of scores (`princomp.solvers.robust.covariance`) turns the axes.

Where columns are few (`by_covariance`) the reweighted MCD of X itself is taken, and its leading eigenvectors. Data with
more columns than rows are first turned into their own span, by a QR decomposition of X': n coordinates for each row.
"""

from dataclasses import dataclass

import numpy as np

from princomp._threads import interruptible
from princomp._typing import Array
from princomp.solvers.eigh import leading_eigenpairs
from princomp.solvers.robust.covariance import Mcd
from princomp.solvers.robust.outlyingness import outlyingness

FEW_COLUMNS, ROWS_EACH = 10, 5  # up to so many columns, with so many rows for each, the MCD of X itself is taken
SQUARED, DIRECT = 1e-14, 1e-24  # of the largest variance: less is none, where rows were squared, and where not
FEW, MANY = 1 / 8, 300  # directions, of so many: by the matrix of squares


def by_covariance(n: int, p: int) -> bool:
    """Tell whether the MCD of all columns is taken, as Todorov & Filzmoser (J. Stat. Softw. 2009) do."""
    return p <= min(n // ROWS_EACH, FEW_COLUMNS)


def coordinates(X: Array) -> Array:
    """Return rows in an orthonormal basis of their span, (n, min(n, p)): distances and angles stay as they are."""
    n, p = X.shape
    if n >= p:
        return X
    return np.ascontiguousarray(interruptible(lambda: np.linalg.qr(X.T, mode="r"), flops=2.0 * p * n * n).T)


@dataclass(frozen=True)
class Plane:
    """The mean of some rows, and what their covariance has of variances and directions, in the basis of these rows."""

    rows: Array  # (m,) their numbers
    mean: Array  # (r,)
    values: Array  # (q,) falling; 0 where no more than rounding
    U: Array  # (m, q) orthonormal: (rows - mean)'U are the directions times their lengths

    def orthogonal(self, Z: Array, k: int, rounding: Array) -> Array:
        """Return the distances (n,) of rows from the plane of the first k directions; 0 if no more than rounding."""
        apart = Z - self.mean
        V = self.directions(Z, k)
        distances = np.linalg.norm(apart - (apart @ V) @ V.T, axis=1)
        return np.where(distances > rounding, distances, 0.0)

    def directions(self, X: Array, k: int) -> Array:
        """Return the first k directions, orthonormal, in the basis of X, of which these are rows; fewer if there are.

        X need not be in the basis in which they were found: they are combinations of the rows.
        """
        some = X[self.rows]
        k = min(k, int((self.values > 0).sum()))
        V, _ = np.linalg.qr((some - some.mean(axis=0)).T @ self.U[:, :k])
        return V


def plane(Z: Array, rows: Array, k: int | None, rounding: Array) -> Plane:
    """Return the mean and the first k (or all) directions of some rows of Z (n, r), known up to ``rounding`` (n,)."""
    some = Z[rows]
    mean = some.mean(axis=0)
    some = some - mean
    m, r = some.shape
    k = min(m, r) if k is None else min(k, m, r)
    freedom = max(m - 1, 1)
    few = k < FEW * min(m, r) and min(m, r) > MANY
    if few:
        tall = m >= r
        values, E = leading_eigenpairs(some.T @ some if tall else some @ some.T, k)
        lengths = np.sqrt(np.maximum(values, 0.0))
        U = some @ E / np.where(lengths > 0, lengths, 1.0) if tall else E
    else:
        U, lengths, _ = interruptible(lambda: np.linalg.svd(some, full_matrices=False), flops=20.0 * m * r * min(m, r))
    values = lengths[:k] ** 2 / freedom
    known = max((SQUARED if few else DIRECT) * values.max(initial=0.0), float(np.median(rounding[rows])) ** 2)
    values = np.where(values > known, values, 0.0)
    return Plane(rows, mean, values, U[:, :k])


def least_outlying(Z: Array, h: int, rng: np.random.Generator, rounding: Array) -> Array:
    """Return the h rows (h,) that lie farthest in."""
    return np.sort(np.argsort(outlyingness(Z, h, rng, rounding), kind="stable")[:h])


def axes(scores: Array, found: Mcd) -> tuple[Array, Array]:
    """Return variances, falling, and axes (q, q) of a robust covariance of scores (n, q), from the regular rows.

    Not from the matrix: variances far below the first one keep their digits.
    """
    some = scores[found.regular] - found.mean
    m, q = some.shape
    _, lengths, E = np.linalg.svd(np.vstack([some, np.zeros((max(q - m, 0), q))]), full_matrices=False)
    values = found.factor * lengths**2 / max(m - 1, 1)
    values[found.rank :] = 0.0
    return values, E.T
