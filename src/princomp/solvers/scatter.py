"""The scatter matrix S = X'X as sparse solvers see it: products with all of it, and with a few of its rows and columns.

What a `Scatter` must provide: ``apply(V)`` is S V; ``apply_rows(J, B)`` is S V for a V that is zero but for V[J] = B;
``restrict(J)`` is a `Part`, whose ``pair(B)`` is (S V)[J] and (S S V)[J]; ``leading(k, rng)`` are the k largest
eigenvalues of S and their vectors (p, k). For p > n S itself is never formed, only the part of it that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from princomp._compiled import kernels
from princomp._threads import interruptible
from princomp.data import Centered, budget, statistics
from princomp.solvers.eigh import leading_eigenpairs, svd_of_projection
from princomp.solvers.leading import roughly

Array = NDArray[Any]

MATRIX_SIDE = 4000  # up to this many features S itself is made of data that are not one array in memory
# With p up to so many times n, products with a few rows and columns of S and SS are faster than products with X.
NEAR = 3
# The start needs no more digits than these.
LEADING_TOL = 1e-8
LEADING_STEPS = 500
PAD = 0.2  # products with more than this share of the columns are made with all of them
# So many rows of S, and this share of free memory, at the most, are made by one pass over data that are not in memory.
ONE_PASS = 1000
SHARE = 0.25
# Compiled products are worth the import of numba from this many features on. They pay from so many rows on, if no more
# than this share of B differs from zero.
LARGE = 1000
MANY = 300
SPARSE = 0.4


class Part(Protocol):
    """What solvers ask of some rows and columns J of S."""

    def pair(self, B: Array) -> tuple[Array, Array]:
        """Return (S V)[J] and (S S V)[J] for the V that is B on the rows J and zero elsewhere."""


class Scatter(Protocol):
    """What solvers ask of S = X'X."""

    @property
    def at_hand(self) -> bool:
        """Whether S itself is in memory."""

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        """Return S V, (p, b), in single precision if that is faster and ``roughly`` will do."""

    def apply_rows(self, J: Array, B: Array, *, roughly: bool = False) -> Array:
        """Return S V, (p, b), for the V that is B on the rows J and zero elsewhere."""

    def restrict(self, J: Array, *, roughly: bool = False) -> Part:
        """Return the rows and columns J."""

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return the k largest eigenvalues of S, descending, and their vectors (p, k)."""


@dataclass(frozen=True)
class Matrix:
    """S (p, p) in memory."""

    S: Array
    at_hand = True

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        """Return S V."""
        return self.S @ V

    def apply_rows(self, J: Array, B: Array, *, roughly: bool = False) -> Array:
        """Return S[:, J] B."""
        return (B.T @ np.take(self.S, J, axis=0)).T

    def restrict(self, J: Array, *, roughly: bool = False) -> Part:
        """Return S[J, J] and (S S)[J, J]."""
        some = np.take(self.S, J, axis=0)
        return Squares(np.take(some, J, axis=1), some @ some.T, len(self.S))

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return eigenpairs of S."""
        return leading_eigenpairs(self.S, k)


@dataclass(frozen=True)
class Data:
    """S = X'X of a centred X (n, p) in memory, n < p, and K = XX'; S and SS too, in single precision, if p is near n.

    The single ones serve for steps that need not be exact; what is yielded comes from ``apply`` and ``apply_rows``.
    """

    X: Array
    K: Array  # (n, n), smaller than X
    S: Array | None = None
    SS: Array | None = None

    @property
    def at_hand(self) -> bool:
        """If p is near n."""
        return self.S is not None

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        """Return X'(X V)."""
        if roughly and self.S is not None:
            return (self.S @ V.astype(np.float32)).astype(np.float64)
        return ((self.X @ V).T @ self.X).T

    def apply_rows(self, J: Array, B: Array, *, roughly: bool = False) -> Array:
        """Return X'(X[:, J] B)."""
        if roughly and self.S is not None:
            return (B.T.astype(np.float32) @ np.take(self.S, J, axis=0)).T.astype(np.float64)
        if len(J) > PAD * self.X.shape[1]:  # to pick so many columns takes longer than to multiply with all
            return self.apply(_padded(J, B, self.X.shape[1]))
        return ((np.take(self.X, J, axis=1) @ B).T @ self.X).T

    def restrict(self, J: Array, *, roughly: bool = False) -> Part:
        """Return the columns J of X, or S[J, J] and (S S)[J, J]."""
        if not roughly or self.S is None or self.SS is None:
            dtype = np.float32 if roughly else np.float64
            return _Columns(np.take(self.X, J, axis=1).astype(dtype), self.K.astype(dtype))
        if len(J) == len(self.S):
            return Squares(self.S, self.SS, len(J))
        S, T = (np.take(np.take(square, J, axis=0), J, axis=1) for square in (self.S, self.SS))
        return Squares(S, T, len(self.S))

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return eigenpairs of S by those of K; beyond the rank, eigenvalues are 0 and vectors arbitrary."""
        n, p = self.X.shape
        _, U = leading_eigenpairs(self.K, min(k, n))
        return _complete(*svd_of_projection((U.T @ self.X).T), k, p)


@dataclass(frozen=True)
class Passes:
    """S = X'X known by passes over the data alone, whatever stores them."""

    X: Centered
    at_hand = False

    def apply(self, V: Array, *, roughly: bool = False) -> Array:
        """Return X'(X V)."""
        return statistics.gram_apply(self.X, V)

    def apply_rows(self, J: Array, B: Array, *, roughly: bool = False) -> Array:
        """Return S V."""
        return self.apply(_padded(J, B, self.X.shape[1]))

    def restrict(self, J: Array, *, roughly: bool = False) -> Part:
        """Return S[J, J] and (S S)[J, J], by one pass, if J is short, else what makes two passes for each product."""
        if len(J) > ONE_PASS or 24.0 * self.X.shape[1] * len(J) > SHARE * budget.available_bytes():
            return _TwoPasses(self, J)
        some = self.apply_rows(J, np.eye(len(J))).T
        return Squares(np.take(some, J, axis=1), some @ some.T, self.X.shape[1])

    def leading(self, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return eigenpairs of S by block Krylov iteration."""
        p = self.X.shape[1]
        return _complete(*roughly(self.apply, p, min(k, p), rng, tol=LEADING_TOL, most=LEADING_STEPS), k, p)


@dataclass(frozen=True)
class Squares:
    """Rows and columns J of S and SS as matrices."""

    S: Array  # S[J, J]
    T: Array  # (S S)[J, J]
    features: int  # of all of S

    def pair(self, B: Array) -> tuple[Array, Array]:
        """Return (S V)[J] and (S S V)[J]."""
        B = B.astype(self.S.dtype, copy=False)
        compiled = self.compiled(B)
        if compiled is not None:
            SB, TB = compiled.two_products(self.S, self.T, B)
            return SB, TB
        return self.S @ B, self.T @ B

    def compiled(self, B: Array) -> Any:
        """Return the kernels, if they pay for a B like this one."""
        pays = self.features >= LARGE and len(B) >= MANY and np.count_nonzero(B) <= SPARSE * B.size
        return kernels("regression_descent") if pays else None


@dataclass(frozen=True)
class _Columns:
    X: Array  # (n, |J|)
    K: Array

    def pair(self, B: Array) -> tuple[Array, Array]:
        Z = self.X @ B.astype(self.X.dtype, copy=False)
        both = np.hstack([Z, self.K @ Z]).T @ self.X
        return both[: B.shape[1]].T, both[B.shape[1] :].T


@dataclass(frozen=True)
class _TwoPasses:
    scatter: Passes
    J: Array

    def pair(self, B: Array) -> tuple[Array, Array]:
        once = self.scatter.apply_rows(self.J, B)
        return once[self.J], self.scatter.apply(once)[self.J]


def of_array(X: Array) -> Matrix | Data:
    """Return the scatter of a centred array X (n, p): of X'X, or, for n < p, of X and XX'."""
    n, p = X.shape
    if n < p:
        K = interruptible(lambda: X @ X.T, flops=n * n * p)
        if p > NEAR * n:
            return Data(X, K)
        single = X.astype(np.float32)
        S = interruptible(lambda: single.T @ single, flops=n * p * p)
        SS = interruptible(lambda: S @ S.T, flops=p * p * p)  # S' is S; so BLAS knows that the product is symmetric
        return Data(X, K, S, SS)
    return Matrix(interruptible(lambda: X.T @ X, flops=n * p * p))


def of_rows(X: Centered) -> Matrix | Passes:
    """Return the scatter of any data: of X'X where p is moderate and n is not small, else by passes alone."""
    n, p = X.shape
    return Matrix(statistics.scatter(X)) if p <= min(n, MATRIX_SIDE) else Passes(X)


def _padded(J: Array, B: Array, p: int) -> Array:
    """Return V (p, b) that is B on the rows J and zero elsewhere."""
    V = np.zeros((p, B.shape[1]))
    V[J] = B
    return V


def _complete(values: Array, V: Array, k: int, p: int) -> tuple[Array, Array]:
    """Return k eigenpairs, those missing with value 0 and vectors orthonormal to the others."""
    found = V.shape[1]
    if found >= k:
        return values, V
    axes = np.eye(p, min(p, k + found))
    Q, _, _ = np.linalg.svd(axes - V @ (V.T @ axes), full_matrices=False)
    return np.concatenate([values, np.zeros(k - found)]), np.hstack([V, Q[:, : k - found]])
