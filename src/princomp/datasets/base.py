"""What all data sets share: a readable repr, and checks of arguments."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
RandomState = int | np.random.Generator | None


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Base of the results: named fields, arrays shown by their shape."""

    def __repr__(self) -> str:
        shown = (f"{f.name}={_show(getattr(self, f.name))}" for f in fields(self))
        return f"{type(self).__name__}({', '.join(shown)})"


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{' x '.join(map(str, value.shape))} {value.dtype}>"
    if isinstance(value, tuple) and len(value) > 4:
        return f"<{len(value)} items>"
    return repr(value)


def at_least(least: int, **sizes: int) -> None:
    """Raise ValueError for the first size below `least`."""
    for name, size in sizes.items():
        if size < least:
            raise ValueError(f"{name} must be at least {least}, got {size}")


def not_negative(**numbers: float) -> None:
    """Raise ValueError for the first number that is negative, NaN or infinite."""
    for name, number in numbers.items():
        if not (np.isfinite(number) and number >= 0):
            raise ValueError(f"{name} must be finite and not negative, got {number}")
