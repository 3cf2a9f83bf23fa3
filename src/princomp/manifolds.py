"""Manifolds: small frozen dataclasses with a ``project`` and a ``retract``; `Manifold` says what they provide."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from princomp._typing import Array


class Manifold(Protocol):
    """What solvers ask of a manifold, for a point ``A`` on it and a matrix ``D`` like it."""

    def project(self, A: Array, D: Array) -> Array:
        """Return the matrix nearest to D in the tangent space at A."""

    def retract(self, A: Array, D: Array) -> Array:
        """Return a point of the manifold near A + D, for a tangent D."""

    def basis(self, A: Array) -> Array:
        """Return matrices, stacked, that span what is normal at A: D is tangent if its product with each is zero.

        There are none where every D is tangent.
        """


@dataclass(frozen=True)
class Euclidean:
    """All matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.manifolds import Euclidean
    >>> Euclidean().retract(np.ones(2), np.array([1.0, 2.0])).tolist()
    [2.0, 3.0]
    """

    def project(self, A: Array, D: Array) -> Array:
        """Return D."""
        return D

    def retract(self, A: Array, D: Array) -> Array:
        """Return A + D."""
        return A + D

    def basis(self, A: Array) -> Array:
        """Return nothing."""
        return np.zeros((0, *A.shape))


@dataclass(frozen=True)
class Sphere:
    """Matrices of Frobenius norm ``radius``.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.manifolds import Sphere
    >>> Sphere(2.0).project(np.array([2.0, 0.0]), np.array([3.0, 4.0])).tolist()
    [0.0, 4.0]
    """

    radius: float = 1.0

    def project(self, A: Array, D: Array) -> Array:
        """Return D less its part along A."""
        return D - A * (float(np.vdot(A, D)) / self.radius**2)

    def retract(self, A: Array, D: Array) -> Array:
        """Return A + D, scaled to the radius."""
        new = A + D
        return new * (self.radius / float(np.linalg.norm(new)))

    def basis(self, A: Array) -> Array:
        """Return A alone."""
        return A[None]


@dataclass(frozen=True, eq=False)
class Stiefel:
    """Matrices A (p, k) with A'A = I, or A'MA = I for a positive definite ``metric`` M (p, p).

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.manifolds import Stiefel
    >>> A = Stiefel().retract(np.eye(3, 2), np.array([[0.0, 1.0], [-1.0, 0.0], [2.0, 2.0]]))
    >>> np.allclose(A.T @ A, np.eye(2))
    True
    """

    metric: Any = None  # an array, or what can be multiplied like one

    def _times(self, A: Array) -> Array:
        return A if self.metric is None else self.metric @ A

    def project(self, A: Array, D: Array) -> Array:
        """Return D less MA L, with the symmetric L for which the rest is tangent."""
        N = self._times(A)
        product = N.T @ D
        excess = product + product.T
        if self.metric is None:
            return D - A @ (excess / 2)
        # L solves (N'N) L + L (N'N) = excess.
        values, Q = np.linalg.eigh(N.T @ N)
        return D - N @ (Q @ ((Q.T @ excess @ Q) / (values[:, None] + values)) @ Q.T)

    def retract(self, A: Array, D: Array) -> Array:
        """Return the polar factor of A + D: with Y = A + D, Y (Y'MY)^(-1/2)."""
        new = A + D
        if self.metric is None:
            U, _, Vt = np.linalg.svd(new, full_matrices=False)
            return U @ Vt
        for _ in range(2):  # twice, to the last digit
            values, Q = np.linalg.eigh(new.T @ self._times(new))
            new = new @ (Q / np.sqrt(values)) @ Q.T
        return new

    def basis(self, A: Array) -> Array:
        """Return, for each i <= j, MA with column i moved to j, plus MA with column j moved to i."""
        N, (rows, columns) = self._times(A), np.triu_indices(A.shape[1])
        normals, each = np.zeros((len(rows), *A.shape)), np.arange(len(rows))
        normals[each, :, columns] += N[:, rows].T
        normals[each, :, rows] += N[:, columns].T
        return normals
