"""Deflation: what S is without the components found, as S less a low-rank matrix (Mackey, NIPS 2008).

What each kind leaves is written in `princomp.certificates.remainder`, with the same x, the unit component just found,
y = S x and c = x'Sx, S the matrix it was found on. Only products with the first S are needed, seen as a `Scatter`, so
that nothing is (p, p) unless S is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, cast, get_args

import numpy as np
from scipy.linalg import norm

from princomp._typing import Array
from princomp.certificates.remainder import NOTHING
from princomp.solvers.scatter import Scatter

Deflation = Literal["hotelling", "projection", "schur", "generalised"]


@dataclass(frozen=True)
class Deflated:
    """A (p, p) = S - left right': whole where S is in memory, else by a few rows at a time."""

    scatter: Scatter  # S
    kind: Deflation
    left: Array  # (p, r)
    right: Array  # (p, r)
    basis: Array  # (p, j) the q's of "generalised", otherwise empty

    @cached_property
    def matrix(self) -> Array | None:
        """A itself, symmetric to the last bit, if S is in memory."""
        if self.scatter.matrix is None:
            return None
        A = self.scatter.matrix - self.left @ self.right.T
        return np.ascontiguousarray((A + A.T) / 2)

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of A, (p,)."""
        return self.scatter.diagonal - np.einsum("ij,ij->i", self.left, self.right)

    @cached_property
    def shift(self) -> float:
        """What makes A positive semidefinite when added to its diagonal."""
        if self.kind != "hotelling" or not self.left.shape[1]:
            return 0.0
        # S - sum c_i x_i x_i' has no eigenvalue below minus the largest of the sum.
        return max(float(np.linalg.eigvals(self.right.T @ self.left).real.max()), 0.0)

    def apply(self, V: Array) -> Array:
        """Return A V, for V (p, m)."""
        return self.scatter.apply(V) - self.left @ (self.right.T @ V)

    def times(self, V: Array) -> Array:
        """Return V A, for V (m, p) with few nonzero columns."""
        used = np.flatnonzero(V.any(axis=0))
        return self.combine(used, V[:, used])

    def rows(self, which: Array) -> Array:
        """Return rows of A."""
        if self.matrix is not None:
            return self.matrix[which]
        rows = np.ascontiguousarray(self.scatter.rows(which))  # they will be looked through
        return rows - self.right[which] @ self.left.T if self.left.shape[1] else rows

    def product(self, used: int) -> float:
        """Return about how many multiplications A v takes for a v with so many nonzeros."""
        by_rows = 2 * (self.scatter if self.scatter.quicker is None else self.scatter.quicker).effort
        return len(self.diagonal) * (float(used) if self.scatter.matrix is not None else by_rows)

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of A, ascending, and their vectors."""
        p = len(self.diagonal)
        values, vectors = np.linalg.eigh(self.rows(np.arange(p)) if self.matrix is None else self.matrix)
        return values, vectors

    def part(self, rows: Array, columns: Array) -> Array:
        """Return A[rows, columns]."""
        if self.matrix is not None:
            return self.matrix[np.ix_(rows, columns)]
        return self.scatter.part(rows, columns) - self.left[rows] @ self.right[columns].T

    def combine(self, which: Array, W: Array) -> Array:
        """Return W A[which]."""
        quicker = self.scatter.quicker
        if self.matrix is not None and (quicker is None or len(which) <= 2 * quicker.shape[0]):
            return W @ self.matrix[which]
        product = np.ascontiguousarray((quicker or self.scatter).combine(which, W))  # its rows will be looked through
        return product - (W @ self.right[which]) @ self.left.T if self.left.shape[1] else product

    def without(self, x: Array) -> Deflated:
        """Return A after one more component x (p,), of unit length, or zero, which changes nothing."""
        basis = self.basis
        if self.kind == "generalised":
            for _ in range(2):  # once leaves what rounding put back
                x = x - basis @ (basis.T @ x)
            length = float(np.linalg.norm(x))
            x = x / length if length > NOTHING else np.zeros_like(x)
            basis = np.column_stack([basis, x])
        used = np.flatnonzero(x)
        image = self.scatter.combine(used, x[None, used])[0]
        y = image - self.left @ (self.right.T @ x)
        c = float(x @ y)
        if self.kind == "hotelling":
            left, right = c * x[:, None], x[:, None]
        elif self.kind == "schur":
            # The norm is SciPy's: where squares would overflow, it does not.
            left = y[:, None] / c if c > NOTHING * float(norm(image)) else np.zeros((len(x), 1))
            right = y[:, None]
        else:
            half = y - c / 2 * x  # S - x y' - y x' + c x x'
            left, right = np.column_stack([x, half]), np.column_stack([half, x])
        return replace(self, left=np.hstack([self.left, left]), right=np.hstack([self.right, right]), basis=basis)


def deflated(scatter: Scatter, kind: str, value: Mapping[str, Array] | None = None) -> Deflated:
    """Return S itself, or what it is without the components of a solver's value ("left", "right", "basis")."""
    if kind not in get_args(Deflation):
        raise ValueError(f"The deflation must be one of {', '.join(get_args(Deflation))}; got {kind!r}.")
    empty = np.zeros((scatter.features, 0))
    factors = [empty] * 3 if value is None else [value[name] for name in ("left", "right", "basis")]
    return Deflated(scatter, cast(Deflation, kind), *factors)
