"""Whether values have the types that the code declares, and shapes that go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def matches(value: Any, hint: Any) -> bool:
    """Tell whether a value is of the type that an annotation names, as far as files need it.

    An integer will do for a float or a bool, and NumPy's numbers for Python's.
    """
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if hasattr(origin, "__value__"):  # an alias, as NDArray is since NumPy 2.5
        return matches(value, origin.__value__)
    if origin in (Union, UnionType):
        return any(matches(value, each) for each in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is list:
        return isinstance(value, list) and all(matches(item, inside[0]) for item in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(matches(item, inside[1]) for item in value.values())
    if hint in (bool, int, float):
        return isinstance(value, np.bool_ | (Real if hint is float else Integral))
    if isinstance(hint, type) and Protocol in hint.__mro__:
        return all(hasattr(value, name) for name in vars(hint) if not name.startswith("_"))
    return isinstance(value, origin or hint)


@dataclass(frozen=True)
class Numbers:
    """An array of floats with named axes: axes of one name have one length."""

    axes: str  # "k p"
    finite: bool = True  # otherwise it may overflow to inf; NaN never
    or_none: bool = False

    def fits(self, value: Any, lengths: dict[str, int]) -> bool:
        """Tell whether it is one, and learn the lengths of its axes."""
        if value is None:
            return self.or_none
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not agree(self.axes, value.shape, lengths):
            return False
        return bool(np.isfinite(value).all() if self.finite else not np.isnan(value).any())


@dataclass(frozen=True)
class Length:
    """An integer that is the length of an axis."""

    axis: str

    def fits(self, value: Any, lengths: dict[str, int]) -> bool:
        """Tell whether it is."""
        return isinstance(value, Integral) and agree(self.axis, (int(value),), lengths)


@dataclass(frozen=True)
class Names:
    """An array of strings, one for each place on an axis."""

    axis: str

    def fits(self, value: Any, lengths: dict[str, int]) -> bool:
        """Tell whether it is one."""
        return isinstance(value, np.ndarray) and value.dtype == object and agree(self.axis, value.shape, lengths)


def agree(axes: str, shape: tuple[int, ...], lengths: dict[str, int]) -> bool:
    """Tell whether a shape agrees with the lengths known so far, none of them 0; add those that are new."""
    names = axes.split()
    return len(names) == len(shape) and all(
        length > 0 and lengths.setdefault(name, length) == length for name, length in zip(names, shape)
    )


def fits(value: Any, kind: Any, lengths: dict[str, int]) -> bool:
    """Tell whether a value is of a kind: one of the classes above, or an annotation."""
    if isinstance(kind, Numbers | Length | Names):
        return kind.fits(value, lengths)
    return matches(value, kind)
