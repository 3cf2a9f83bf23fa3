"""The scatter matrix S = X'X of a centred X (n, p): the one view of it that solvers and formulations have.

What they ask of a `Scatter`, and who does:

=================  ============================================================================================
``apply``          S V: all
``combine``        W S[J], with a few rows of S: cardinality, regression
``rows``           S[J], a few rows of S themselves: cardinality, regression
``part``           S[rows, columns]: proofs
``diagonal``       the variances: constrained, cardinality, proofs, dictionary
``images``         S Z, and the squares of the columns of X Z: pairs of rank one
``restrict``       (S V)[J] and (S S V)[J] for a V that is zero but for the rows J: regression
``leading``        the k largest eigenvalues and their vectors: where to begin
``among``          S for some features alone: cardinality
``matrix, data``   S, or X, itself, if it is in memory: compiled searches, proofs
=================  ============================================================================================

There are four: a `Matrix` in memory; `Data` in memory; sparse rows in memory (`princomp.solvers.scatter_sparse`); and
`Passes` over data wherever they are. All but the first know X as well: ``times`` is X V, ``transpose_times`` X'U, and
``T`` the same view of X', which is what the dictionary form asks. What components leave of S is a low-rank correction
on top (`princomp.solvers.deflation`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._threads import interruptible
from princomp._typing import Array
from princomp.data import Centered, budget, statistics
from princomp.data.sparse import SparseRows
from princomp.solvers.eigh import leading_eigenpairs, svd_of_projection
from princomp.solvers.krylov import orthonormal
from princomp.solvers.leading import leading_roughly

# Up to this many features S, of 128 MB then, is made in place of X, where it is smaller: it takes as long as 5 products
# with eight vectors at 3000 x 1000, as 11 at 6000 x 2000, and fits make more than that.
MATRIX_SIDE = 4000
COPIED = 0.25  # of free memory, at the most, for a dense copy of the data: with it, products need no pass over them
# Up to this share of nonzeros products with sparse rows took less time than with dense ones: at .1 half of it, for one
# vector and for 64, at 3000 x 2000 and 300 x 8000.
SPARSE_CELLS = 0.2
# With p up to so many times n, products with some rows and columns of S and SS are made in place of those with X: with
# a fifth of them they are 4 times as fast, or more, five vectors at a time (n = 300 and 1000). To make S and SS takes
# 0.6 s at 1000 x 3000, 3 s at 1000 x 6000.
NEAR = 3
# The start needs no more digits than these.
LEADING_TOL = 1e-8
LEADING_STEPS = 500
# Products with more than this share of the columns are made with all of them. To pick them would pay, by less than a
# factor of two, up to a half (300 x 3000, 1000 x 3000, 100 x 5000, five vectors at a time).
PAD = 0.2
# So many rows of S, and this share of free memory, at the most, are made by one pass over data that are not in memory.
# At 6000 x 2000, 100 rows take as long as 5 products by two passes, 1000 as 31; a fit makes hundreds.
ONE_PASS = 1000
SHARE = 0.25
# Compiled products are worth the import of numba from this many features on. They pay from so many rows on, if no more
# than this share of B differs from zero: five vectors took less time than by BLAS up to a fifth with 300 rows (0.4: 1.4
# times as long), up to 0.6 with 1000 (0.4: half as long), and never with 100.
LARGE = 1000
MANY = 300
SPARSE = 0.4


# What solvers ask of some rows and columns J of S: (S V)[J] and (S S V)[J] for the V that is B on the rows J and zero
# elsewhere, for a given B.
Part = Callable[[Array], tuple[Array, Array]]


class Scatter(ABC):
    """S (p, p). In single precision, if that is faster, where ``roughly`` will do."""

    features: int  # p
    matrix: Array | None = None  # S itself
    data: Array | None = None  # X itself, (n, p)
    effort: float = 1.0  # multiplications that a number of S takes
    quicker: Factored | None = None  # X, where products with many features are quicker with it than with S in memory
    fast_parts: bool = False  # whether products with a few rows and columns of S, and of SS, are made with these alone

    @property
    @abstractmethod
    def diagonal(self) -> Array:
        """The diagonal of S, (p,)."""

    @cached_property
    def total(self) -> float:
        """The trace of S: the sum of all squares of X."""
        return float(self.diagonal.sum())

    @abstractmethod
    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        """Return S V, (p, b)."""

    def combine(self, J: Array, W: Array, *, roughly: bool = False) -> Array:
        """Return W S[J], (m, p), for W (m, |J|)."""
        return self.apply(_padded(J, W.T, self.features)).T

    def rows(self, J: Array) -> Array:
        """Return S[J], (|J|, p)."""
        return self.combine(J, np.eye(len(J)))

    def images(self, Z: Array, *others: Array, likely: Array | None = None) -> tuple[Array, Array]:
        """Return S Z, (p, m), and the squares of the columns of X Z, and of X D for each other D, (1 + others, m).

        ``likely`` (m,) are squares of X Z that are no larger than these will be, as a rule: no more than a hint.
        """
        every = np.hstack([Z, *others])
        images = self.apply(every)
        squares = np.einsum("ij,ij->j", every, images).reshape(-1, Z.shape[1])
        return images[:, : Z.shape[1]], np.maximum(squares, 0.0)

    def part(self, rows: Array, columns: Array) -> Array:
        """Return S[rows, columns]."""
        return self.rows(rows)[:, columns]

    def restrict(self, J: Array, *, roughly: bool = False) -> Part:
        """Return the rows and columns J of S and SS: made by one pass if J is short, else by two for each product."""
        if len(J) <= ONE_PASS and 24.0 * self.features * len(J) <= SHARE * budget.available_bytes():
            return Squares.of(self.rows(J), J)

        def by_two_passes(B: Array) -> tuple[Array, Array]:
            once = self.combine(J, B.T).T
            return once[J], self.apply(once)[J]

        return by_two_passes

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return eigenpairs of S by block Krylov iteration."""
        p = self.features
        return _complete(*leading_roughly(self.apply, p, min(k, p), rng, tol=LEADING_TOL, most=LEADING_STEPS), k, p)

    def among(self, J: Array) -> Scatter:
        """Return the view of some features, by products with all of them."""
        return _Among(self, J)


class Matrix(Scatter):
    """S (p, p) in memory."""

    fast_parts = True

    def __init__(self, S: Array) -> None:
        self.S = self.matrix = S
        self.features = len(S)

    @cached_property
    def diagonal(self) -> Array:
        return np.diag(self.S).copy()

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        return self.S @ V

    def combine(self, J: Array, W: Array, *, roughly: bool = False) -> Array:
        return W @ np.take(self.S, J, axis=0)

    def rows(self, J: Array) -> Array:
        return np.take(self.S, J, axis=0)

    def part(self, rows: Array, columns: Array) -> Array:
        return self.S[np.ix_(rows, columns)]

    def restrict(self, J: Array, *, roughly: bool = False) -> Part:
        return Squares.of(np.take(self.S, J, axis=0), J)

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        return leading_eigenpairs(self.S, k)

    def among(self, J: Array) -> Matrix:
        return Matrix(self.part(J, J))


class Factored(Scatter):
    """S = X'X by products with X alone."""

    shape: tuple[int, int]  # of X

    @abstractmethod
    def times(self, V: Array) -> Array:
        """Return X V, (n, b)."""

    @abstractmethod
    def transpose_times(self, U: Array) -> Array:
        """Return X'U, (p, b)."""

    @property
    @abstractmethod
    def T(self) -> Factored:
        """The view of XX', products with X' taking the place of those with X."""

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        return self.transpose_times(self.times(V))

    def leading_by_rows(self, K: Array, k: int) -> tuple[Array, Array]:
        """Return eigenpairs of S by those of K = XX'; beyond the rank, eigenvalues are 0 and vectors arbitrary."""
        _, U = leading_eigenpairs(K, min(k, len(K)))
        return _complete(*svd_of_projection(self.transpose_times(U)), k, self.features)


class Data(Factored):
    """X (n, p), centred, in memory; what is made of it is made when it is asked for."""

    def __init__(self, X: Array) -> None:
        self.X = self.data = X
        self.shape, self.features = X.shape, X.shape[1]
        self.effort = float(len(X))
        self.fast_parts = len(X) < self.features <= NEAR * len(X)

    @cached_property
    def diagonal(self) -> Array:
        return np.asarray(np.einsum("ij,ij->j", self.X, self.X))

    @cached_property
    def K(self) -> Array:
        """XX', (n, n)."""
        n, p = self.shape
        return interruptible(lambda: self.X @ self.X.T, flops=n * n * p)

    @cached_property
    def _in_single(self) -> tuple[Array, Array]:
        """S and SS in single precision, for steps that need not be exact."""
        (n, p), X = self.shape, self.X.astype(np.float32)
        S = interruptible(lambda: X.T @ X, flops=n * p * p)
        return S, interruptible(lambda: S @ S.T, flops=p * p * p)  # S' is S; so BLAS knows the product as symmetric

    @property
    def T(self) -> Data:
        return Data(self.X.T)

    def times(self, V: Array) -> Array:
        return self.X @ V

    def transpose_times(self, U: Array) -> Array:
        return self.X.T @ U

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        if roughly and self.fast_parts:
            return (self._in_single[0] @ V.astype(np.float32)).astype(np.float64)
        return ((self.X @ V).T @ self.X).T

    def combine(self, J: Array, W: Array, *, roughly: bool = False) -> Array:
        if roughly and self.fast_parts:
            return (W.astype(np.float32) @ np.take(self._in_single[0], J, axis=0)).astype(np.float64)
        if len(J) > PAD * self.features:
            return super().combine(J, W)
        return (np.take(self.X, J, axis=1) @ W.T).T @ self.X

    def rows(self, J: Array) -> Array:
        return np.take(self.X, J, axis=1).T @ self.X

    def part(self, rows: Array, columns: Array) -> Array:
        return self.X[:, rows].T @ self.X[:, columns]

    def restrict(self, J: Array, *, roughly: bool = False) -> Part:
        if roughly and self.fast_parts:
            S, SS = self._in_single
            if len(J) < self.features:
                S, SS = (np.take(np.take(square, J, axis=0), J, axis=1) for square in (S, SS))
            return Squares(S, SS, self.features)
        dtype = np.float32 if roughly else np.float64
        X, K = np.take(self.X, J, axis=1).astype(dtype), self.K.astype(dtype)

        def by_columns(B: Array) -> tuple[Array, Array]:
            Z = X @ B.astype(dtype, copy=False)
            both = np.hstack([Z, K @ Z]).T @ X
            return both[: B.shape[1]].T, both[B.shape[1] :].T

        return by_columns

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        return super().leading(k, rng) if self.shape[0] >= self.features else self.leading_by_rows(self.K, k)

    def among(self, J: Array) -> Data:
        return Data(self.X[:, J])


class Passes(Factored):
    """X known by passes over the data alone, whatever stores them."""

    def __init__(self, X: Centered) -> None:
        self.X, self.shape, self.features = X, X.shape, X.shape[1]
        self.effort = float(self.shape[0])

    @cached_property
    def diagonal(self) -> Array:
        return np.asarray(self.X.in_dense_tiles().reduce(_squares_by_column))

    @property
    def T(self) -> Factored:
        return _Transposed(self)

    def times(self, V: Array) -> Array:
        return statistics.scores(self.X, V)

    def transpose_times(self, U: Array) -> Array:
        return np.ascontiguousarray(statistics.apply_transpose(self.X, U))

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        return statistics.gram_apply(self.X, V)

    def images(self, Z: Array, *others: Array, likely: Array | None = None) -> tuple[Array, Array]:
        return statistics.images_and_squares(self.X, Z, *others)


class Guarded(Scatter):
    """S by quick products, and by exact ones where the rounding of the quick ones would show: ``images`` alone.

    ``least`` is a share of tr S: a z of length 1 with squares |Xz|^2 below is multiplied once more; or by exact ones at
    once where that is likely, so that a step there is one pass, too.
    """

    def __init__(self, quick: Scatter, exact: Scatter, total: float, least: float) -> None:
        self.quick, self.exact, self.least = quick, exact, least * total
        self.features = quick.features

    @property
    def diagonal(self) -> Array:
        return self.exact.diagonal

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        return (self.quick if roughly else self.exact).apply(V)

    def images(self, Z: Array, *others: Array, likely: Array | None = None) -> tuple[Array, Array]:
        least = self.least * np.einsum("ij,ij->j", Z, Z)
        if likely is None or (likely >= least).all():
            images, squares = self.quick.images(Z, *others)
            if (squares[0] >= least).all():
                return images, squares
        return self.exact.images(Z, *others)


class _Transposed(Factored):
    def __init__(self, of: Passes) -> None:
        self._of, self.shape, self.features = of, of.shape[::-1], of.shape[0]

    @cached_property
    def diagonal(self) -> Array:
        rows = self._of.X.in_dense_tiles()
        return rows.gather(_squares_by_row, width=1)[:, 0]

    @property
    def T(self) -> Factored:
        return self._of

    def times(self, V: Array) -> Array:
        return self._of.transpose_times(V)

    def transpose_times(self, U: Array) -> Array:
        return self._of.times(U)


class _Among(Scatter):
    def __init__(self, whole: Scatter, J: Array) -> None:
        self._whole, self._J, self.features, self.effort = whole, J, len(J), whole.effort

    @property
    def diagonal(self) -> Array:
        return self._whole.diagonal[self._J]

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        return self._whole.apply(_padded(self._J, V, self._whole.features), roughly=roughly)[self._J]


@dataclass(frozen=True)
class Squares:
    """Rows and columns J of S and SS as matrices."""

    S: Array  # S[J, J]
    T: Array  # (S S)[J, J]
    features: int  # of all of S

    @classmethod
    def of(cls, some: Array, J: Array) -> Squares:
        """Return those of the rows J of S, (|J|, p)."""
        return cls(np.take(some, J, axis=1), some @ some.T, some.shape[1])

    def __call__(self, B: Array) -> tuple[Array, Array]:
        B = B.astype(self.S.dtype, copy=False)
        compiled = self.compiled(B)
        if compiled is not None:
            SB, TB = compiled.two_products(self.S, self.T, B)
            return SB, TB
        return self.S @ B, self.T @ B

    def compiled(self, B: Array) -> Any:
        """Return the compiled loops, if they pay for a B like this one."""
        pays = self.features >= LARGE and len(B) >= MANY and np.count_nonzero(B) <= SPARSE * B.size
        return loops("regression_descent") if pays else None


def of_array(X: Array) -> Matrix | Data:
    """Return the view of a centred array X (n, p) for many products: by X'X, or, for n < p, by X."""
    n, p = X.shape
    return Data(X) if n < p else Matrix(interruptible(lambda: X.T @ X, flops=n * p * p))


def of_rows(X: Centered) -> Data | Passes:
    """Return the view by X: of data that are here, in one array, if there is room; sparse, if they are; else by passes.

    Sparse rows are an array where products with that are quicker, or digits need it.
    """
    from princomp.solvers.scatter_sparse import SparseData

    (n, p), matrix = X.shape, X.rows.matrix if isinstance(X.rows, SparseRows) and not X.changes else None
    sparse = X.rows.sparse if matrix is None else not X.dense_tiles and matrix.nnz <= SPARSE_CELLS * n * p
    if X.rows.local and not sparse and 8.0 * n * p <= COPIED * budget.available_bytes():
        return Data(statistics.whole(X))
    return Passes(X) if matrix is None or X.dense_tiles else SparseData(X, matrix)


def factor(S: Array) -> Data:
    """Return the view of S (p, p) by an R of at most p rows, R'R = S."""
    try:
        return Data(np.ascontiguousarray(np.linalg.cholesky(S).T))
    except np.linalg.LinAlgError:  # singular: the square root of what there is
        values, V = leading_eigenpairs(S, len(S))
        present = values > np.finfo(np.float64).eps * len(S) * max(float(values[0]), 0.0)
        return Data(np.ascontiguousarray((V[:, present] * np.sqrt(values[present])).T))


def _squares_by_column(block: Array, rows: slice) -> Array:
    return np.asarray(np.einsum("ij,ij->j", block, block))


def _squares_by_row(block: Array, rows: slice) -> Array:
    return np.asarray(np.einsum("ij,ij->i", block, block))[:, None]


def _padded(J: Array, B: Array, p: int) -> Array:
    """Return V (p, b) that is B on the rows J and zero elsewhere."""
    V = np.zeros((p, B.shape[1]))
    V[J] = B
    return V


def _complete(values: Array, V: Array, k: int, p: int) -> tuple[Array, Array]:
    """Return k eigenpairs, those missing with value 0 and vectors orthonormal to the others."""
    missing = k - V.shape[1]
    if missing <= 0:
        return values, V
    return np.append(values, np.zeros(missing)), np.hstack([V, orthonormal(np.eye(p, missing), V)])
