"""What all kernels have: evaluation of two sets of rows, sums and products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array

Points = tuple[Any, ...]  # what a kernel keeps of rows: arrays and CSR arrays with one entry per row, or such tuples


def some(points: Points, index: Any) -> Points:
    """Return the points of some rows, by slice or by numbers."""
    return tuple(some(part, index) if isinstance(part, tuple) else part[index] for part in points)


class Kernel(ABC):
    """A symmetric function k(x, y) of two rows."""

    invariant = False  # whether k(x + c, y + c) = k(x, y)
    psd = False  # whether every matrix of it is positive semidefinite
    asks_training = False  # whether `on` is to be called first
    centred = True  # whether kernel PCA centres its matrix; if not, `trivial` is taken out of it instead

    @abstractmethod
    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return what is kept of rows A (n, p).

        ``about`` (p,) is a point near the data. Rows may be taken about it where that changes no *centred* matrix: then
        an offset of the data, however large, costs no digits. Kernels that depend on x - y alone do so, and so does the
        linear one, whose matrix changes by what centring takes off.
        """

    @abstractmethod
    def between(self, P: Points, Q: Points) -> Array:
        """Return k of each pair, (n1, n2)."""

    @abstractmethod
    def own(self, P: Points) -> Array:
        """Return k(x, x), (n,)."""

    def on(self, X: Any) -> Kernel:
        """Return the kernel that knows the training rows X (n, p)."""
        return self

    def evaluate(self, A: Any, B: Any | None = None) -> Array:
        """Return k of each row of A with each of B, (n1, n2); of A with itself without B.

        Parameters
        ----------
        A, B : (n1, p), (n2, p) array or CSR
            Rows, in float32 or float64: the answer has their precision.
        """
        about = middle(A) if self.invariant else None
        P = self.points(A, about)
        return self.between(P, P if B is None else self.points(B, about))

    def diagonal(self, A: Any) -> Array:
        """Return k of each row of A with itself, (n,)."""
        return self.own(self.points(A, middle(A) if self.invariant else None))

    def __add__(self, other: Kernel) -> Sum:
        """Return the kernel k(x, y) + l(x, y)."""
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Kernel) -> Product:
        """Return the kernel k(x, y) l(x, y)."""
        return Product(self, other) if isinstance(other, Kernel) else NotImplemented


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels of the same rows."""

    first: Kernel
    second: Kernel

    def __post_init__(self) -> None:
        """Refuse a kernel that is not centred: kernel PCA of a sum with it would have no meaning."""
        for kernel in (self.first, self.second):
            if not kernel.centred:
                raise ValueError(f"{type(kernel).__name__} stands alone: it cannot be added or multiplied.")

    @property
    def invariant(self) -> bool:  # type: ignore[override]
        """Whether both are."""
        return self.first.invariant and self.second.invariant

    @property
    def asks_training(self) -> bool:  # type: ignore[override]
        """Whether one does."""
        return self.first.asks_training or self.second.asks_training

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether both are: sums are then, and so, by Schur's theorem, are products."""
        return self.first.psd and self.second.psd

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the points of both."""
        return self.first.points(A, about), self.second.points(A, about)


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, y) = k1(x, y) + k2(x, y).

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Gaussian, Linear
    >>> (Linear() + Gaussian(1.0)).diagonal(np.array([[2.0], [3.0]])).tolist()
    [5.0, 10.0]
    """

    def between(self, P: Points, Q: Points) -> Array:
        """Return the sum of both, pair by pair."""
        return self.first.between(P[0], Q[0]) + self.second.between(P[1], Q[1])

    def own(self, P: Points) -> Array:
        """Return k1(x, x) + k2(x, x)."""
        return self.first.own(P[0]) + self.second.own(P[1])

    def on(self, X: Any) -> Kernel:
        """Return the sum of both, knowing X."""
        return Sum(self.first.on(X), self.second.on(X))


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, y) = k1(x, y) k2(x, y).

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Gaussian, Linear
    >>> (Linear() * Gaussian(1.0)).diagonal(np.array([[2.0], [3.0]])).tolist()
    [4.0, 9.0]
    """

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the points of both; only those that do not change may be taken about another origin."""
        return tuple(part.points(A, about if part.invariant else None) for part in (self.first, self.second))

    def between(self, P: Points, Q: Points) -> Array:
        """Return the product of both, pair by pair."""
        return self.first.between(P[0], Q[0]) * self.second.between(P[1], Q[1])

    def own(self, P: Points) -> Array:
        """Return k1(x, x) k2(x, x)."""
        return self.first.own(P[0]) * self.second.own(P[1])

    def on(self, X: Any) -> Kernel:
        """Return the product of both, knowing X."""
        return Product(self.first.on(X), self.second.on(X))


def middle(A: Any) -> Array | None:
    """Return a point near the rows, or None of sparse ones, which are not moved."""
    if not isinstance(A, np.ndarray) or len(A) == 0:
        return None
    first = A[0].astype(np.float64)
    near: Array = first + (A - first).mean(axis=0)  # about a row: a plain mean of numbers near 1e10 costs digits
    return near


def dense(A: Any) -> Array:
    """Return rows as an array."""
    return A if isinstance(A, np.ndarray) else np.asarray(A.toarray())


def moved(A: Any, about: Array | None) -> Any:
    """Return rows less ``about``, subtracted in float64 and kept in their own precision: dense then."""
    precision = A.dtype if A.dtype in (np.float32, np.float64) else np.float64
    return (A if about is None else dense(A) - about).astype(precision, copy=False)


def products(A: Any, B: Any) -> Array:
    """Return x'y of each pair, (n1, n2), a fresh array."""
    cross = A @ B.T
    return cross if isinstance(cross, np.ndarray) else np.asarray(cross.toarray())


def square_sums(A: Any) -> Array:
    """Return |x|^2 of each row, (n,), in float64."""
    if isinstance(A, np.ndarray):
        return np.einsum("ij,ij->i", A, A, dtype=np.float64)
    return np.asarray(A.multiply(A).sum(axis=1, dtype=np.float64)).reshape(-1)
