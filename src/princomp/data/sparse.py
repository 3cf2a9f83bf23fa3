"""Rows of a SciPy sparse matrix or array, kept sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.data.memory import checked, working_dtype
from princomp.data.rows import BLOCK_BYTES, Rows, block_offsets

# From this many nonzeros in a block on, compiled products save more than numba costs to import.
COMPILED_NONZEROS = 1_000_000
ROW_ROUNDING = 1e-14  # of squares: where a row is its mean, so much is left of it


class SparseRows(Rows):
    """Rows of one sparse matrix, as CSR; blocks share its memory."""

    sparse = True

    def __init__(self, matrix: Any, *, block_rows: int | None = None, block_bytes: int = BLOCK_BYTES) -> None:
        import scipy.sparse as sp

        csr = sp.csr_array(matrix)  # shares memory when it is CSR already
        data = checked(csr.data[None, :]).reshape(-1)
        if not np.shares_memory(data, csr.data) or not csr.has_canonical_format:
            csr = sp.csr_array((data, csr.indices, csr.indptr), shape=csr.shape, copy=True)
            csr.sum_duplicates()
        self._csr = csr
        self.shape = csr.shape
        self.density = csr.nnz / max(csr.shape[0] * csr.shape[1], 1)
        self.dtype = working_dtype(data.dtype)
        if block_rows is not None:
            self.offsets = block_offsets(*self.shape, block_rows, block_bytes)
        else:
            self.offsets = equal_work(csr.indptr, block_bytes)
        self._blocks: dict[int, Any] = {}

    @property
    def matrix(self) -> Any:
        """All rows, as they are, as one CSR array; do not write to it."""
        return self._csr

    def block(self, i: int) -> Any:
        """Return block i as a CSR array over the same memory."""
        import scipy.sparse as sp

        if i not in self._blocks:
            rows = self.rows(i)
            begin, end = self._csr.indptr[rows.start], self._csr.indptr[rows.stop]
            # Filled in later: a new matrix that is given its parts copies those that are small parts of larger arrays.
            block = sp.csr_array((rows.stop - rows.start, self.shape[1]), dtype=self._csr.dtype)
            block.data, block.indices = self._csr.data[begin:end], self._csr.indices[begin:end]
            block.indptr = self._csr.indptr[rows.start : rows.stop + 1] - begin
            block.has_canonical_format = True
            self._blocks[i] = block
        return self._blocks[i]

    def in_single(self, mean: Array | None, factor: Array | None) -> tuple[Rows, bool]:
        """Return the same matrix with its numbers in single precision; nothing else is copied."""
        import scipy.sparse as sp

        csr = self._csr
        single = SparseRows(
            sp.csr_array((csr.data.astype(np.float32, copy=False), csr.indices, csr.indptr), shape=csr.shape)
        )
        # Sums of fewer numbers lose fewer digits: blocks are as small as compiled products take them.
        nonzeros = max(int(csr.nnz), 1)
        parts = max(nonzeros // (COMPILED_NONZEROS + COMPILED_NONZEROS // 8), 1)
        single.offsets = equal_work(csr.indptr, -(-12 * nonzeros // parts))
        return single, False

    @property
    def nbytes(self) -> int:
        """Memory of the nonzeros and their places."""
        return int(self._csr.data.nbytes + self._csr.indices.nbytes)

    def transposed(self) -> SparseRows:
        """Return the columns as rows, in a copy."""
        return SparseRows(self._csr.tocsc().T)


def equal_work(indptr: Array, block_bytes: int) -> Array:
    """Return offsets of blocks that hold about ``block_bytes`` of nonzeros (12 bytes each)."""
    n = len(indptr) - 1
    wanted = np.arange(1, max(1, round(12 * int(indptr[-1]) / block_bytes))) * (block_bytes // 12)
    return np.unique(np.concatenate([[0], np.searchsorted(indptr, wanted), [n]])) if n else np.array([0])


class CenteredSparse:
    """(X - 1 mean') diag(factor) for a sparse block X, never formed: only its products are.

    It answers what block functions ask of a block: ``shape``, ``@`` from both sides, ``.T @``, `square_sums`.
    """

    __array_ufunc__ = None  # so that NumPy leaves ``array @ self`` to `__rmatmul__`

    def __init__(self, block: Any, mean: Array, factor: Array) -> None:
        self._block, self._mean, self._factor = block, mean, factor
        self.shape = block.shape

    def __matmul__(self, V: Array) -> Array:
        scaled = np.multiply(self._factor[:, None] if V.ndim == 2 else self._factor, V, order="C")
        product: Array = self._block @ scaled.astype(V.dtype, copy=False)
        product -= (self._mean @ scaled).astype(V.dtype)
        return product

    def gram_apply(self, V: Array, scores: Array | None = None) -> Array:
        """Return this block's part of X'X V; ``scores`` (n, k), if given, receives its scores X V.

        The mean is taken off the scores, not off the product: a mean m times as large as the spread costs m eps, where
        X'X V less n mean (mean' V) would cost m^2 eps.
        """
        mean, factor = self._mean.astype(V.dtype), self._factor[:, None].astype(V.dtype)
        scaled = np.multiply(factor, V, order="C")
        block, along = self._block, mean @ scaled
        fast = loops("sparse_gram") if block.nnz >= COMPILED_NONZEROS and block.dtype == scaled.dtype else None
        if fast is not None:
            product, sums = fast.sparse_gram(block, scaled, along, scores)
        else:
            found = block @ scaled
            found -= along
            if scores is not None:
                scores[:] = found
            product, sums = block.T @ found, found.sum(axis=0)
        product -= np.outer(mean, sums)
        product *= factor
        return product

    def cross(self, other: CenteredSparse) -> Array:
        """Return this centred block times the transpose of another one."""
        (A, mean), (B, _) = self._scaled(), other._scaled()
        product = np.asarray((A @ B.T).todense(), dtype=np.float64)
        return product - (A @ mean)[:, None] - (B @ mean) + mean @ mean

    @property
    def T(self) -> _Transposed:
        """Return the transpose, good for products only."""
        return _Transposed(self)

    def __rmatmul__(self, weights: Array) -> Array:
        """Return ``weights`` (m, rows) times the centred block, (m, p)."""
        return (self.T @ weights.T).T

    def square_sums(self) -> Array:
        """Return the column sums of squares."""
        block, mean = self._scaled()
        data = block.data.astype(np.float64)
        squares, sums = (np.bincount(block.indices, x, self.shape[1]) for x in (data * data, data))
        return squares - mean * (2 * sums - self.shape[0] * mean)

    def row_squares(self) -> Array:
        """Return the sums of squares (m,) of rows; 0 where they are no more than rounding of what they are made of."""
        block, mean = self._scaled()
        own = np.asarray(block.power(2).sum(axis=1), dtype=np.float64).reshape(-1)
        centre = float(mean @ mean)
        squares = own - 2 * (block @ mean) + centre
        return np.where(squares > ROW_ROUNDING * (own + centre), squares, 0.0)

    def gram(self) -> Array:
        """Return the centred block's X'X."""
        block, mean = self._scaled()
        sums = np.asarray(block.sum(axis=0), dtype=np.float64).reshape(-1)
        cross = np.outer(sums - 0.5 * self.shape[0] * mean, mean)
        return np.asarray((block.T @ block).todense(), dtype=np.float64) - cross - cross.T

    def _scaled(self) -> tuple[Any, Array]:
        """Return block and mean times the factor: before squaring, where it matters to overflow."""
        if (self._factor == 1.0).all():
            return self._block, self._mean
        block = self._block.copy()
        block.data = block.data * self._factor[block.indices]
        return block, self._mean * self._factor


class _Transposed:
    """The transpose of a `CenteredSparse`."""

    def __init__(self, of: CenteredSparse) -> None:
        self._of = of

    def __matmul__(self, other: Any) -> Array:
        if other is self._of:
            return self._of.gram()
        block, mean, factor = self._of._block, self._of._mean, self._of._factor
        product = block.T @ other
        if other.ndim == 2:
            return factor[:, None] * (product - np.outer(mean, other.sum(axis=0)))
        return factor * (product - mean * other.sum())
