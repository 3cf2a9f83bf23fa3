"""Kernels that know the training rows: each row carries one number more, its radius or its degree among them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Self

import numpy as np

from princomp._threads import ordered_map
from princomp._typing import Array
from princomp.kernels.base import Kernel, Points, dense, middle, moved, some
from princomp.kernels.simple import Gaussian, check_gamma, squared_distances

TILE = 512  # rows that meet so many others at a time: a tile of float64 stays in the cache


@dataclass(frozen=True)
class NearestNeighbors(Kernel):
    """k(x, y) = exp(-gamma |x - y|^2) if |x - y| <= max(r(x), r(y)), else 0: radial, among neighbours.

    r(x) is the distance to the n_neighbors-th nearest training row, not counting *one* training row at distance 0: a
    training row's own. So a training row has the same radius when it comes back as a new one, and gets its row of the
    training matrix; so does one of several equal rows, of which the others count as neighbours at distance 0.
    The kernel is not positive semidefinite: some eigenvalues are negative.

    Parameters
    ----------
    gamma : float
        At least 0.
    n_neighbors : int, default 10
        At least 1, and less than the number of training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import NearestNeighbors
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> NearestNeighbors(0.0, n_neighbors=1).on(X).evaluate(X).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """

    gamma: float
    n_neighbors: int = 10
    training: Array | None = field(default=None, repr=False, compare=False)  # (n, p)
    invariant = True
    asks_training = True

    def __post_init__(self) -> None:
        """Refuse numbers without a meaning."""
        check_gamma(self.gamma)
        if not (isinstance(self.n_neighbors, Integral) and self.n_neighbors >= 1):
            raise ValueError(f"n_neighbors must be a whole number of at least 1, got {self.n_neighbors!r}.")

    def on(self, X: Any) -> Self:
        """Return the kernel that looks for neighbours among the rows of X."""
        if X.shape[0] <= self.n_neighbors:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} needs more than {self.n_neighbors} training rows, got {X.shape[0]}. "
                "Ask for fewer neighbours."
            )
        return replace(self, training=dense(moved(X, None)))

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows, and the square of the radius of each."""
        training = known(self, self.training)
        # Differences are taken cell by cell: all that is compared below comes out the same, whichever rows it is among.
        rows = dense(moved(A, None))
        return rows, _by_tiles(lambda tile: self._square_radius(tile[0], training), (rows,))

    def _square_radius(self, tile: Array, training: Array) -> Array:
        distances = squared_distances(tile, training)
        m = int(self.n_neighbors)
        ordered = np.partition(distances, [0, m - 1, m], axis=1)
        return np.where(ordered[:, 0] == 0, ordered[:, m], ordered[:, m - 1])

    def between(self, P: Points, Q: Points) -> Array:
        """Return exp(-gamma |x - y|^2) of neighbours."""
        (A, a), (B, b) = P, Q
        distances = squared_distances(A, B)
        far = distances > np.maximum(a[:, None], b)
        values = np.where(far, 0.0, np.exp(-self.gamma * distances))
        return values.astype(np.result_type(A.dtype, B.dtype), copy=False)

    def own(self, P: Points) -> Array:
        """Return ones."""
        return np.ones(len(P[0]), P[0].dtype)


@dataclass(frozen=True)
class Normalized(Kernel):
    """k(x, y) = A(x, y) / sqrt(d(x) d(y)) of a radial kernel A, d(x) the sum of A(x, x_i) over the training rows.

    Its matrix is D^-1/2 A D^-1/2, and I less it the normalised graph Laplacian. Eigenvalues are at most 1, which is
    that of D^1/2 1: this trivial vector is taken out, and nothing is centred. A row so far from all others that d(x) is
    0 is like none of them.

    Parameters
    ----------
    affinity : Gaussian or NearestNeighbors
        A.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Gaussian, Normalized
    >>> X = np.array([[0.0], [0.0]])
    >>> Normalized(Gaussian(1.0)).on(X).evaluate(X).round(3).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    affinity: Gaussian | NearestNeighbors
    training: Points | None = field(default=None, repr=False, compare=False)
    about: Array | None = field(default=None, repr=False, compare=False)
    invariant = True
    asks_training = True
    centred = False

    def __post_init__(self) -> None:
        """Refuse other kernels: degrees must be positive."""
        if not isinstance(self.affinity, Gaussian | NearestNeighbors):
            raise ValueError(f"affinity must be Gaussian or NearestNeighbors, got {self.affinity!r}.")

    @property
    def gamma(self) -> float:
        """That of the radial kernel."""
        return self.affinity.gamma

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether it is positive semidefinite: if the radial kernel is."""
        return self.affinity.psd

    def on(self, X: Any) -> Self:
        """Return the kernel with degrees over the rows of X."""
        about = middle(X)
        affinity: Any = self.affinity.on(X)
        return replace(self, affinity=affinity, training=affinity.points(X, about), about=about)

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the points of A, and one over the square root of the degree of each."""
        training = known(self, self.training)
        inside = self.affinity.points(A, self.about)
        degree = _by_tiles(lambda tile: self._degree(tile, training), inside)
        return inside, np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)

    def _degree(self, tile: Points, training: Points) -> Array:
        total: Array = np.zeros(tile[0].shape[0])
        for begin in range(0, training[0].shape[0], TILE):
            part = self.affinity.between(tile, some(training, slice(begin, begin + TILE)))
            total += part.sum(axis=1, dtype=np.float64)
        return total

    def between(self, P: Points, Q: Points) -> Array:
        """Return A(x, y) / sqrt(d(x) d(y))."""
        values = self.affinity.between(P[0], Q[0])
        values *= P[1][:, None].astype(values.dtype)
        values *= Q[1].astype(values.dtype)
        return values

    def own(self, P: Points) -> Array:
        """Return A(x, x) / d(x)."""
        values = self.affinity.own(P[0])
        return values * (P[1] ** 2).astype(values.dtype)

    def trivial(self, P: Points) -> Array:
        """Return the vector D^1/2 1 of training points, of length 1: the eigenvector that says nothing."""
        root = np.divide(1.0, P[1], out=np.zeros_like(P[1]), where=P[1] > 0)
        return np.asarray(root / np.linalg.norm(root))


def known(kernel: Kernel, training: Any) -> Any:
    """Return the training rows, or say that there are none."""
    if training is None:
        raise ValueError(f"{type(kernel).__name__} asks the training rows: call its on(X) first.")
    return training


def _by_tiles(fn: Callable[[Points], Array], points: Points) -> Array:
    """Return ``fn`` of all points, (n,), found tile by tile."""
    parts = [slice(begin, begin + TILE) for begin in range(0, points[0].shape[0], TILE)]
    return np.concatenate([np.zeros(0), *ordered_map(lambda part: fn(some(points, part)), parts)])
