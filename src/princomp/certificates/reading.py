"""What a certificate that comes from elsewhere claims, as what it should be, or a reason to reject it.

Integers that wrap and complex numbers whose squares are negative would make false proofs.
"""

from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.proof import CardinalityCertificate, Leaves

AGREE = 1e-9  # relative difference between a number claimed and the same recomputed, here or on another computer


class WrongError(Exception):
    """What is wrong with a certificate."""


def require(condition: Any, sentence: str) -> None:
    """Reject the certificate unless the condition holds."""
    if not bool(condition):
        raise WrongError(sentence)


def real(numbers: Any, what: str) -> Array:
    """Return real numbers in double precision.

    >>> real([1, 2], "a").tolist()
    [1.0, 2.0]
    """
    array = np.asarray(numbers)
    require(array.dtype.kind in "fiu", f"The {what} are not real numbers.")
    return array.astype(np.float64)


def whole(numbers: Any, what: str) -> Array:
    """Return whole numbers."""
    array = np.asarray(numbers)
    require(array.ndim == 1 and (array.dtype.kind in "iu" or not array.size), f"The {what} are not whole numbers.")
    limits = np.iinfo(np.int64)
    require(not array.size or array.max() <= limits.max, f"The {what} are too large.")
    return array.astype(np.int64)


def distinct(numbers: Any, what: str, count: int) -> Array:
    """Return different whole numbers from 0 to count - 1."""
    array = whole(numbers, what)
    require(((array >= 0) & (array < count)).all(), f"The {what} are not numbers from 0 to {count - 1}.")
    require(len(np.unique(array)) == len(array), f"The {what} name one twice.")
    return array


def number(given: Any, what: str) -> float:
    """Return a finite number."""
    found = float(given) if isinstance(given, Real) and not isinstance(given, bool) else np.nan
    require(np.isfinite(found), f"{what} is not a finite number.")
    return found


def integer(given: Any, what: str, most: int) -> int:
    """Return an integer from 1 to ``most``."""
    require(isinstance(given, Integral) and not isinstance(given, bool), f"{what} is not an integer.")
    require(1 <= given <= most, f"{what} is not from 1 to {most}.")
    return int(given)


def same(claimed: float, found: float, sentence: str, more: float = 0.0) -> None:
    """Reject the certificate unless two numbers agree to nine digits, or differ by no more than ``more`` beyond."""
    if not abs(claimed - found) <= AGREE * max(abs(claimed), abs(found)) + more:
        raise WrongError(sentence.format(claimed=claimed, found=found))


def read_matrix(S: Any, data: bool) -> Array:
    """Return a matrix of finite numbers, square unless it is data."""
    given = real(S, "entries of the matrix")
    require(given.ndim == 2 and given.size, "The matrix is not an array of two dimensions.")
    require(np.isfinite(given).all(), "The matrix has entries that are not finite.")
    require(data or given.shape[0] == given.shape[1], "The matrix is not square; for data give data=True.")
    return given


def read_certificate(c: CardinalityCertificate) -> CardinalityCertificate:
    """Return a certificate all of whose numbers are of the kind that they should be."""
    require(isinstance(c, CardinalityCertificate), f"A {type(c).__name__} is no certificate of sparse PCA.")
    require(isinstance(c.leaves, Leaves), "The certificate has no leaves.")
    require(isinstance(c.nonnegative, bool | np.bool_), "nonnegative is neither true nor false.")
    vector = real(c.vector, "entries of the vector")
    require(vector.ndim == 1 and np.isfinite(vector).all(), "The vector is not one of finite numbers.")
    p = len(vector)
    groups = None if c.groups is None else tuple(c.groups)
    require(groups is None or np.shape(groups) == (p,), "There is not one group for each feature.")
    names = ("support", "include", "exclude")
    support, include, exclude = (tuple(distinct(getattr(c, name), f"features of {name}", p).tolist()) for name in names)
    require(not set(include) & set(exclude), "A feature is forced in and out.")
    rounding = number(c.rounding, "rounding")
    require(rounding >= 0, "rounding is negative.")
    return replace(
        c,
        lower=number(c.lower, "lower"),
        upper=number(c.upper, "upper"),
        rounding=rounding,
        vector=vector,
        nonzeros=integer(c.nonzeros, "nonzeros", p),
        leaves=_read_leaves(c.leaves),
        groups=groups,
        support=support,
        include=include,
        exclude=exclude,
    )


def _read_leaves(leaves: Leaves) -> Leaves:
    names = ("unit", "inside", "outside", "kind", "dual")
    numbers = {name: whole(getattr(leaves, name), f"numbers {name} of the tree") for name in names}
    bound = real(leaves.bound, "bounds of leaves")
    require({array.shape for array in numbers.values()} == {bound.shape}, "The arrays of the tree differ in length.")
    require(len(bound), "The tree has no nodes.")
    points = []
    for units, weights, shift in leaves.points:
        point = whole(units, "units of a dual point"), real(weights, "weights"), real(shift, "shifts")
        m = len(point[0])
        require(point[1].shape == (m, m) and point[2].shape == (m,), "The arrays of a dual point do not fit.")
        require(np.isfinite(point[1]).all() and np.isfinite(point[2]).all(), "A dual point is not finite.")
        points.append(point)
    loadings = None if leaves.loadings is None else real(leaves.loadings, "loadings")
    return Leaves(**numbers, bound=bound, points=tuple(points), loadings=loadings)
