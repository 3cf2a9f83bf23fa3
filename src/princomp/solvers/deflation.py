"""Deflation: what S is without the components found, as S less a low-rank matrix (Mackey, NIPS 2008).

With x the unit component just found, S the matrix it was found on, y = S x and c = x'Sx, the next matrix is

============  ==========================================  =========================================================
kind          next matrix                                 remark
============  ==========================================  =========================================================
hotelling     S - c x x'                                  may become indefinite when x is no eigenvector
projection    (I - x x') S (I - x x')                     that of PMD, X - X x x'
schur         S - y y' / c                                what X leaves when regressed on the score X x
generalised   (I - q q') S (I - q q')                     q = x less its part in the q's before it, of unit length
============  ==========================================  =========================================================

Only products with the first S are needed, so that nothing is (p, p) unless S is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import norm

from princomp.solvers.scatter import Scatter

Array = NDArray[Any]
Operator = Callable[[Array], Array]
Kind = Literal["hotelling", "projection", "schur", "generalised"]

NOTHING = 1e-13  # of a length or of a variance: this share is rounding


@dataclass(frozen=True)
class Deflation:
    """The matrix S - left right', for S given elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.solvers.deflation import deflation
    >>> S = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> after = deflation("schur", 2).without(lambda V: S @ V, np.array([1.0, 0.0]))
    >>> after.matrix(S).tolist()
    [[0.0, 0.0], [0.0, 1.5]]
    >>> after.apply(lambda V: S @ V, np.eye(2)).tolist()
    [[0.0, 0.0], [0.0, 1.5]]
    """

    kind: Kind
    left: Array  # (p, r)
    right: Array  # (p, r)
    basis: Array  # (p, j) the q's of "generalised", otherwise empty

    def apply(self, gram: Operator, V: Array) -> Array:
        """Return the deflated S times V (p, m), from gram(V) = S V."""
        return gram(V) - self.left @ (self.right.T @ V)

    def diagonal(self, squares: Array) -> Array:
        """Return the diagonal of the deflated S from that of S, (p,)."""
        diagonal: Array = squares - np.einsum("ij,ij->i", self.left, self.right)
        return diagonal

    def matrix(self, S: Array) -> Array:
        """Return the deflated S, (p, p), symmetric to the last bit."""
        deflated = S - self.left @ self.right.T
        return (deflated + deflated.T) / 2

    def without(self, gram: Operator, x: Array) -> Deflation:
        """Return the deflation after one more component x (p,), of unit length, or zero, which changes nothing."""
        basis = self.basis
        if self.kind == "generalised":
            for _ in range(2):  # once leaves what rounding put back
                x = x - basis @ (basis.T @ x)
            length = float(np.linalg.norm(x))
            x = x / length if length > NOTHING else np.zeros_like(x)
            basis = np.column_stack([basis, x])
        y = self.apply(gram, x[:, None])[:, 0]
        c = float(x @ y)
        if self.kind == "hotelling":
            left, right = c * x[:, None], x[:, None]
        elif self.kind == "schur":
            whole = float(norm(gram(x[:, None])[:, 0]))  # of SciPy: where squares would overflow, this does not
            left = y[:, None] / c if c > NOTHING * whole else np.zeros((len(x), 1))
            right = y[:, None]
        else:
            half = y - c / 2 * x  # S - x y' - y x' + c x x'
            left, right = np.column_stack([x, half]), np.column_stack([half, x])
        return replace(self, left=np.hstack([self.left, left]), right=np.hstack([self.right, right]), basis=basis)


def deflation(kind: str, p: int) -> Deflation:
    """Return the deflation of this kind before the first component: nothing is taken away."""
    if kind not in get_args(Kind):
        raise ValueError(f"The deflation must be one of {', '.join(get_args(Kind))}; got {kind!r}.")
    nothing = np.zeros((p, 0))
    return Deflation(cast(Kind, kind), nothing, nothing, nothing)


@dataclass(frozen=True)
class Deflated:
    """A (p, p) = S - left right', with S seen as a `Scatter`: whole where S is at hand, else by a few rows at a time.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.solvers.deflation import Deflated, deflation
    >>> from princomp.solvers.scatter import Matrix
    >>> A = Deflated(Matrix(np.array([[2.0, 1.0], [1.0, 2.0]])), deflation("schur", 2))
    >>> A.without(np.array([1.0, 0.0])).diagonal.tolist()
    [0.0, 1.5]
    """

    scatter: Scatter
    by: Deflation

    @cached_property
    def shift(self) -> float:
        """What makes A positive semidefinite when added to its diagonal."""
        if self.by.kind != "hotelling" or not self.by.left.shape[1]:
            return 0.0
        # S - sum c_i x_i x_i' has no eigenvalue below minus the largest of the sum.
        return max(float(np.linalg.eigvals(self.by.right.T @ self.by.left).real.max()), 0.0)

    @cached_property
    def matrix(self) -> Array | None:
        """A itself, if S is in memory."""
        S = self.scatter.matrix
        return None if S is None else np.ascontiguousarray(self.by.matrix(S))

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of A, (p,)."""
        return self.by.diagonal(self.scatter.diagonal) if self.matrix is None else np.diag(self.matrix).copy()

    def apply(self, V: Array) -> Array:
        """Return A V, for V (p, m)."""
        return self.by.apply(self.scatter.apply, V)

    def times(self, V: Array) -> Array:
        """Return V A, for V (m, p) with few nonzero columns."""
        used = np.flatnonzero(V.any(axis=0))
        return self.combine(used, V[:, used])

    def rows(self, which: Array) -> Array:
        """Return rows of A."""
        return self.matrix[which] if self.matrix is not None else self.combine(which, np.eye(len(which)))

    def combine(self, which: Array, W: Array) -> Array:
        """Return W A[which]."""
        if self.matrix is not None:
            return W @ self.matrix[which]
        left, right = self.by.left, self.by.right
        product = np.ascontiguousarray(self.scatter.combine(which, W))  # its rows will be looked through
        return product - (W @ right[which]) @ left.T if left.shape[1] else product

    def without(self, x: Array) -> Deflated:
        """Return A less one more component x (p,), of few nonzeros, of unit length, or zero, which changes nothing."""
        return replace(self, by=self.by.without(self._few, x))

    def _few(self, V: Array) -> Array:
        """Return S V, for V (p, m) with few nonzero rows."""
        used = np.flatnonzero(V.any(axis=1))
        return self.scatter.combine(used, V[used].T).T


def deflated(scatter: Scatter, kind: str, value: Mapping[str, Array]) -> Deflated:
    """Return what S is without the components of a solver's value, which holds "left", "right" and "basis"."""
    nothing = deflation(kind, scatter.features)
    return Deflated(scatter, replace(nothing, left=value["left"], right=value["right"], basis=value["basis"]))
