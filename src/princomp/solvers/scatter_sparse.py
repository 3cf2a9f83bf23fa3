"""The scatter matrix S = X'X of sparse rows in memory: products read the nonzeros of X alone, X is centred implicitly.

With Y the rows as they are stored, times the factors, and m their mean, X = Y - 1 m' and S[J] = Y[:, J]'Y - n m_J m'.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered
from princomp.data.sparse import CenteredSparse
from princomp.solvers.scatter import Passes

# Up to so many rows, fewer than columns, eigenpairs are those of XX': 3 of 150 x 6000 in a sixth of the time.
FEW_ROWS = 500
# A number of a product of two sparse matrices takes as long as so many of a dense one.
BETWEEN_SPARSE = 20.0


class SparseData(Passes):
    """X (n, p), sparse and centred implicitly, in memory: as it is stored, and its transpose."""

    def __init__(self, X: Centered, matrix: Any) -> None:
        super().__init__(X)
        p = self.features
        self._mean = np.zeros(p) if X.mean is None else X.mean
        self._Y = matrix.astype(np.float64, copy=False)
        if X.factor is not None:
            self._mean = self._mean * X.factor
            self._Y = self._Y.copy()
            self._Y.data = self._Y.data * X.factor[self._Y.indices]
        self._YT = self._Y.T.tocsr()
        rows = np.diff(self._Y.indptr).astype(np.float64)
        self.effort = 1.0 + BETWEEN_SPARSE * float(rows @ rows) / p**2

    @cached_property
    def diagonal(self) -> Array:
        return self._implicit.square_sums()

    @property
    def _implicit(self) -> CenteredSparse:
        return CenteredSparse(self._Y, self._mean, np.ones(self.features))

    def times(self, V: Array) -> Array:
        product: Array = self._Y @ V
        product -= self._mean @ V
        return product

    def transpose_times(self, U: Array) -> Array:
        product: Array = self._YT @ U
        product -= np.outer(self._mean, U.sum(axis=0))
        return product

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        return self.transpose_times(self.times(V))

    def images(self, Z: Array, *others: Array, likely: Array | None = None) -> tuple[Array, Array]:
        scores = self.times(np.hstack([Z, *others]))
        squares = np.einsum("ij,ij->j", scores, scores).reshape(-1, Z.shape[1])
        return self.transpose_times(scores[:, : Z.shape[1]]), squares

    def combine(self, J: Array, W: Array, *, roughly: bool = False) -> Array:
        scores = self._YT[J].T @ W.T
        scores -= W @ self._mean[J]
        return np.ascontiguousarray(self.transpose_times(scores).T)

    def rows(self, J: Array) -> Array:
        rows: Array = (self._YT[J] @ self._Y).toarray()
        rows -= np.outer(self.shape[0] * self._mean[J], self._mean)
        return rows

    def part(self, rows: Array, columns: Array) -> Array:
        part: Array = (self._YT[rows] @ self._YT[columns].T).toarray()
        part -= np.outer(self.shape[0] * self._mean[rows], self._mean[columns])
        return part

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        n = self.shape[0]
        if n >= self.features or n > FEW_ROWS:
            return super().leading(k, rng)
        return self.leading_by_rows(self._implicit.cross(self._implicit), k)
