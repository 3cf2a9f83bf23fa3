"""Numbers of a certificate that comes from elsewhere, as what they claim to be, or a reason to reject it.

Integers that wrap and complex numbers whose squares are negative would make false proofs.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


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
