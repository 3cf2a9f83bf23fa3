"""Choosing a kernel by name, and its gamma from the data."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, as_rows, statistics
from princomp.kernels.base import Kernel
from princomp.kernels.simple import (
    Cosine,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    Polynomial,
    Sigmoid,
    check_gamma,
    squared_distances,
)
from princomp.kernels.trained import NearestNeighbors, Normalized

NAMES = ("linear", "rbf", "laplacian", "polynomial", "poly", "cosine", "sigmoid", "knn-rbf", "normalized-rbf")
WITHOUT_GAMMA = ("linear", "cosine")
MEDIAN_ROWS = 2000  # of which the median distance is taken
NEIGHBORS = 10  # unless told otherwise


def resolve(
    kernel: Any,
    X: Any,
    *,
    gamma: float | str | None = None,
    degree: int = 3,
    coef0: float = 1.0,
    n_neighbors: int | None = None,
    kernel_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Return the kernel that is meant.

    Parameters
    ----------
    kernel : str, callable or Kernel
        One of `NAMES`, a function of two rows, or a kernel, which is returned as it is.
    X : array-like or Rows
        Training data, for gamma alone: kernels that ask the training rows still need their ``on(X)``.
    gamma : float, "scale", "median" or None
        As in `bandwidth`.
    degree, coef0 : int, float
        Of the polynomial kernel; ``coef0`` of the sigmoid one, too.
    n_neighbors : int, optional
        Of "knn-rbf", 10 if not given; "normalized-rbf" takes all rows, or so many neighbours.
    kernel_params : mapping, optional
        What else a callable is called with.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import resolve
    >>> resolve("rbf", np.zeros((3, 4)))
    Gaussian(gamma=0.25)
    """
    if kernel_params and (isinstance(kernel, str | Kernel) or not callable(kernel)):
        raise ValueError("kernel_params go with a callable kernel. Use gamma, degree, coef0 or n_neighbors.")
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return Function(kernel, dict(kernel_params or {}))
    if not isinstance(kernel, str) or kernel not in NAMES:
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, NAMES))}, a function of two rows, or an object of "
            f"princomp.kernels, got {kernel!r}."
        )
    if kernel in WITHOUT_GAMMA:
        return Linear() if kernel == "linear" else Cosine()
    width = bandwidth(gamma, as_rows(X))
    match kernel:
        case "rbf":
            return Gaussian(width)
        case "laplacian":
            return Laplacian(width)
        case "sigmoid":
            return Sigmoid(width, coef0)
        case "knn-rbf":
            return NearestNeighbors(width, NEIGHBORS if n_neighbors is None else n_neighbors)
        case "normalized-rbf":
            return Normalized(Gaussian(width) if n_neighbors is None else NearestNeighbors(width, n_neighbors))
    return Polynomial(width, degree, coef0)


def bandwidth(gamma: float | str | None, X: Any) -> float:
    """Return the gamma that is meant.

    Parameters
    ----------
    gamma : float, "scale", "median" or None
        A number; None for 1 / p; "scale" for 1 / (p v), v the variance of all cells; "median" for 1 / (2 m), m the
        median of |x - y|^2 over pairs of at most 2000 rows, evenly picked. Where nothing varies both are 1.
    X : (n, p) data
        As in `princomp.KernelPCA.fit`.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.kernels import bandwidth
    >>> bandwidth("median", np.array([[0.0, 1.0], [2.0, 1.0]]))
    0.125
    """
    rows = as_rows(X)
    n, p = rows.shape
    if gamma is None:
        return 1.0 / p
    if isinstance(gamma, str):
        if gamma == "scale":
            return one_over(p * _variance(rows))
        if gamma == "median":
            wanted = np.unique(np.linspace(0, n - 1, min(n, MEDIAN_ROWS)).astype(int))
            sample = statistics.take(Centered(rows, statistics.shift(rows)), wanted)
            return one_over(2.0 * median_square(sample))
        raise ValueError(f'gamma must be a number, "scale", "median" or None, got {gamma!r}.')
    if not isinstance(gamma, Real):
        raise ValueError(f'gamma must be a number, "scale", "median" or None, got {gamma!r}.')
    check_gamma(gamma)
    return float(gamma)


def one_over(size: float) -> float:
    """Return 1 / size, or 1 if that is no width."""
    return 1.0 / size if 0 < size < np.inf else 1.0


def _variance(rows: Rows) -> float:
    """Return the variance of all cells together."""
    n, p = rows.shape
    found = statistics.moments(rows)
    apart = found.mean - found.mean.mean()
    return float((found.total + n * (apart @ apart)) / (n * p))


def median_square(sample: Array) -> float:
    """Return the median of |x - y|^2 over pairs, or, if that is 0, over pairs that differ; 0 if none do."""
    squares = squared_distances(sample, sample)[np.triu_indices(len(sample), 1)]
    median = float(np.median(squares)) if len(squares) else 0.0
    if median > 0:
        return median
    return float(np.median(squares[squares > 0])) if (squares > 0).any() else 0.0
