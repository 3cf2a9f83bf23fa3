"""Kernels of two rows alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.kernels.base import Kernel, Points, dense, moved, products, square_sums

# What rounding may change of gamma |x - y|^2. Beyond it distances come from differences of rows, cell by cell, not from
# |x|^2 + |y|^2 - 2 x'y, which is faster but rounds in units of |x|^2.
EXPONENT_ERROR = 1e-13


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, y) = x'y: kernel PCA is PCA then.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Linear
    >>> Linear().evaluate(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [5.0, 6.0]])).tolist()
    [[11.0, 17.0]]
    """

    psd = True

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows, less ``about``."""
        return (moved(A, about),)

    def between(self, P: Points, Q: Points) -> Array:
        """Return x'y."""
        return products(P[0], Q[0])

    def own(self, P: Points) -> Array:
        """Return |x|^2."""
        return square_sums(P[0]).astype(P[0].dtype, copy=False)


@dataclass(frozen=True)
class Gaussian(Kernel):
    """k(x, y) = exp(-gamma |x - y|^2), the radial kernel, "rbf".

    With a width s: gamma = 1 / (2 s^2) where the kernel is written exp(-|x - y|^2 / (2 s^2)).

    Parameters
    ----------
    gamma : float
        At least 0; with 0 all rows are alike.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Gaussian
    >>> Gaussian(0.5).evaluate(np.array([[0.0], [2.0]])).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """

    gamma: float
    psd = True
    invariant = True

    def __post_init__(self) -> None:
        """Refuse a gamma that is none."""
        check_gamma(self.gamma)

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows, less ``about``, and their squares."""
        rows = moved(A, about)
        return rows, square_sums(rows)

    def between(self, P: Points, Q: Points) -> Array:
        """Return exp(-gamma |x - y|^2)."""
        (A, a), (B, b) = P, Q
        precision = np.result_type(A.dtype, B.dtype)
        largest = float(a.max(initial=0.0) + b.max(initial=0.0))
        if self.gamma * largest * np.finfo(precision).eps > _allowed(precision):
            exponent = squared_distances(A, B).astype(precision, copy=False)
        else:
            exponent = products(A, B)
            exponent *= -2
            exponent += a[:, None].astype(precision)
            exponent += b.astype(precision)
            np.maximum(exponent, 0, out=exponent)
        exponent *= -self.gamma
        return np.exp(exponent, out=exponent)

    def own(self, P: Points) -> Array:
        """Return ones."""
        return np.ones(P[0].shape[0], P[0].dtype)


def _allowed(precision: Any) -> float:
    """Return what rounding may change of an exponent: in float32 a few units of it, or nothing would be fast."""
    return max(EXPONENT_ERROR, 8 * float(np.finfo(precision).eps) if precision == np.float32 else 0.0)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """k(x, y) = exp(-gamma |x - y|_1), by the sum of absolute differences.

    Parameters
    ----------
    gamma : float
        At least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Laplacian
    >>> Laplacian(0.5).evaluate(np.array([[0.0, 0.0], [1.0, -1.0]])).round(3).tolist()
    [[1.0, 0.368], [0.368, 1.0]]
    """

    gamma: float
    psd = True
    invariant = True

    def __post_init__(self) -> None:
        """Refuse a gamma that is none."""
        check_gamma(self.gamma)

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows, as they are: differences cell by cell need no other origin."""
        return (moved(A, None),)

    def between(self, P: Points, Q: Points) -> Array:
        """Return exp(-gamma |x - y|_1)."""
        exponent = _absolute_distances(P[0], Q[0])
        exponent *= -self.gamma
        return np.exp(exponent, out=exponent).astype(np.result_type(P[0].dtype, Q[0].dtype), copy=False)

    def own(self, P: Points) -> Array:
        """Return ones."""
        return np.ones(P[0].shape[0], P[0].dtype)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, y) = (gamma x'y + coef0)^degree.

    Parameters
    ----------
    gamma : float
        At least 0.
    degree : int, default 3
        At least 1.
    coef0 : float, default 1
        With a positive one lower powers are in it too.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Polynomial
    >>> Polynomial(1.0, degree=2).evaluate(np.array([[1.0], [2.0]])).tolist()
    [[4.0, 9.0], [9.0, 25.0]]
    """

    gamma: float
    degree: int = 3
    coef0: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers without a meaning."""
        check_gamma(self.gamma)
        check_finite("coef0", self.coef0)
        if not (isinstance(self.degree, Integral) and not isinstance(self.degree, bool) and self.degree >= 1):
            raise ValueError(f"degree must be a whole number of at least 1, got {self.degree!r}.")

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether it is positive semidefinite: with coef0 >= 0."""
        return self.coef0 >= 0

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows."""
        return (moved(A, None),)

    def between(self, P: Points, Q: Points) -> Array:
        """Return (gamma x'y + coef0)^degree."""
        return self._power(products(P[0], Q[0]))

    def own(self, P: Points) -> Array:
        """Return (gamma |x|^2 + coef0)^degree."""
        return self._power(square_sums(P[0])).astype(P[0].dtype, copy=False)

    def _power(self, products: Array) -> Array:
        products *= self.gamma
        products += self.coef0
        products **= int(self.degree)
        return products


@dataclass(frozen=True)
class Cosine(Kernel):
    """k(x, y) = x'y / (|x| |y|), and 0 if a row is all zero.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Cosine
    >>> Cosine().evaluate(np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])).tolist()
    [[1.0, 0.8, 0.0], [0.8, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """

    psd = True

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows, divided by their length."""
        rows = moved(A, None)
        largest = np.abs(rows).max(axis=1) if isinstance(rows, np.ndarray) else abs(rows).max(axis=1).toarray()
        # First in units in which squares neither over- nor underflow.
        limit = np.finfo(rows.dtype).maxexp - 4
        unit = np.ldexp(np.ones(rows.shape[0], rows.dtype), np.clip(-np.frexp(largest.reshape(-1))[1], -limit, limit))
        rows = _times(rows, unit)
        length = np.sqrt(square_sums(rows))
        factor = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
        return _times(rows, factor.astype(rows.dtype)), length > 0

    def between(self, P: Points, Q: Points) -> Array:
        """Return the product of rows of length 1."""
        return products(P[0], Q[0])

    def own(self, P: Points) -> Array:
        """Return 1 of each row that is not all zero."""
        return P[1].astype(P[0].dtype)


@dataclass(frozen=True)
class Sigmoid(Kernel):
    """k(x, y) = tanh(gamma x'y + coef0). It is not positive semidefinite: some eigenvalues are negative.

    Parameters
    ----------
    gamma : float
        At least 0.
    coef0 : float, default 1

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Sigmoid
    >>> Sigmoid(1.0, coef0=0.0).evaluate(np.array([[1.0], [2.0]])).round(3).tolist()
    [[0.762, 0.964], [0.964, 0.999]]
    """

    gamma: float
    coef0: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers without a meaning."""
        check_gamma(self.gamma)
        check_finite("coef0", self.coef0)

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows."""
        return (moved(A, None),)

    def between(self, P: Points, Q: Points) -> Array:
        """Return tanh(gamma x'y + coef0)."""
        return self._bent(products(P[0], Q[0]))

    def own(self, P: Points) -> Array:
        """Return tanh(gamma |x|^2 + coef0)."""
        return self._bent(square_sums(P[0])).astype(P[0].dtype, copy=False)

    def _bent(self, products: Array) -> Array:
        products *= self.gamma
        products += self.coef0
        return np.tanh(products, out=products)


@dataclass(frozen=True)
class Function(Kernel):
    """k(x, y) = ``callable(x, y, **params)``, called with two rows, each an array (p,).

    It must be symmetric. Whether it is positive semidefinite nobody knows, so that it is taken as if it were not.

    Parameters
    ----------
    callable : callable
        A function of two arrays (p,) that returns a number.
    params : mapping, optional
        What else it is called with, by name.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import Function
    >>> Function(lambda x, y, power: float(x @ y) ** power, {"power": 2}).evaluate(np.array([[1.0], [2.0]])).tolist()
    [[1.0, 4.0], [4.0, 16.0]]
    """

    callable: Callable[..., float]
    params: Mapping[str, Any] = field(default_factory=dict)

    def points(self, A: Any, about: Array | None = None) -> Points:
        """Return the rows, dense."""
        return (dense(moved(A, None)),)

    def between(self, P: Points, Q: Points) -> Array:
        """Return what the function says of each pair."""
        pairs = [[self._number(x, y) for y in Q[0]] for x in P[0]]
        return np.array(pairs, np.result_type(P[0].dtype, Q[0].dtype)).reshape(len(P[0]), len(Q[0]))

    def own(self, P: Points) -> Array:
        """Return what the function says of each row with itself."""
        return np.array([self._number(x, x) for x in P[0]], P[0].dtype)

    def _number(self, x: Array, y: Array) -> float:
        value = np.asarray(self.callable(x, y, **self.params))
        if value.size != 1:
            raise ValueError(
                f"A kernel is called with two rows and returns one number; this one returned shape {value.shape}."
            )
        return float(value.reshape(()))


def _times(rows: Any, factors: Array) -> Any:
    """Return rows, each times its factor."""
    return rows * factors[:, None] if isinstance(rows, np.ndarray) else rows.multiply(factors[:, None]).tocsr()


def squared_distances(A: Any, B: Any) -> Array:
    """Return |x - y|^2 of each pair from their differences, in float64: 0 for equal rows, the same both ways."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(dense(A), dense(B), "sqeuclidean"))


def _absolute_distances(A: Any, B: Any) -> Array:
    """Return |x - y|_1 of each pair, in float64."""
    if isinstance(A, np.ndarray) and isinstance(B, np.ndarray):
        from scipy.spatial.distance import cdist

        return np.asarray(cdist(A, B, "cityblock"))
    from sklearn.metrics.pairwise import manhattan_distances

    return np.asarray(manhattan_distances(A, B), np.float64)


def check_gamma(gamma: Any) -> None:
    """Refuse a gamma that is none."""
    if not (isinstance(gamma, Real) and not isinstance(gamma, bool) and 0 <= float(gamma) < np.inf):
        raise ValueError(f"gamma must be a finite number of at least 0, got {gamma!r}.")


def check_finite(name: str, value: Any) -> None:
    """Refuse what is no finite number."""
    if not (isinstance(value, Real) and np.isfinite(float(value))):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
