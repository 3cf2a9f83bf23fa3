"""What attributes must be: types that the code declares, shapes that go together, numbers in their range.

Classes declare it of their own attributes, and model files hold nothing else: an estimator in ``_fitted`` of what a fit
leaves, a dataclass in ``_kinds`` what its annotations do not say. Those that they are derived from have their say too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin

import numpy as np

from princomp._typing import Array


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


# Ranges


@dataclass(frozen=True)
class Range:
    """Numbers from ``least`` to ``most``, both included."""

    words: str  # that go on after "must be"
    least: float
    most: float
    nan: bool = False  # whether NaN is let in, too

    def fault(self, numbers: Array) -> str | None:
        """Say what is wrong with numbers, None if nothing is."""
        stray = self.stray(numbers)
        return None if stray is None else f"must be {self.words}, but holds {stray:.3g}"

    def stray(self, numbers: Array) -> float | None:
        """Return a number that is out of the range, None if there is none."""
        if not numbers.size:
            return None
        smaller, larger = (np.fmin, np.fmax) if self.nan else (np.minimum, np.maximum)  # which let NaN through
        for extreme in (float(smaller.reduce(numbers, axis=None)), float(larger.reduce(numbers, axis=None))):
            if not (self.least <= extreme <= self.most or (self.nan and np.isnan(extreme))):
                return extreme
        return None


LARGEST = float(np.finfo(np.float64).max)
INF = float("inf")
# What rounding, in float32 too, puts beyond a bound that holds in exact arithmetic: some 1e-7 for each of the numbers
# that are summed.
SLACK = 1e-3
ROUNDED = 1e-2  # of squared lengths: a file may have been made by hand, with few digits

ANY = Range("a number", -INF, INF, nan=True)
FINITE = Range("finite", -LARGEST, LARGEST)
SQUARABLE = Range("so small that its square is finite", -(LARGEST**0.5), LARGEST**0.5)
MODERATE = Range("at most 1e150 in size, so that its squares add up", -1e150, 1e150)
NONNEGATIVE = Range("finite and at least 0", 0.0, LARGEST)
POSITIVE = Range("finite and above 0, as its reciprocal", 1 / LARGEST, LARGEST)
VARIANCE = Range("at least 0", 0.0, INF)  # given as inf where it overflowed
ERROR = Range("at least 0", 0.0, INF, nan=True)  # NaN is within no bound
SHARE = Range("from 0 to 1", -SLACK, 1 + SLACK)
CORRELATION = Range("from -1 to 1", -1 - SLACK, 1 + SLACK)


# Kinds of attributes

MISFIT = "has the wrong type or shape"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What a value must be."""

    or_none: bool = False
    optional: bool = False  # whether it may be absent: not every fit leaves it, or files of older versions lack it
    rounds: str | None = None  # the attribute that this one is in lower precision

    def fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        """Say in words what is wrong with a value, None if nothing is; learn the lengths of its axes."""
        return None if value is None and self.or_none else self._fault(value, lengths)

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        raise NotImplementedError


@dataclass(frozen=True)
class Of(Kind):
    """What an annotation names."""

    hint: Any

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        return None if matches(value, self.hint) else MISFIT


@dataclass(frozen=True)
class Number(Kind):
    """A float, in a range."""

    range: Range = FINITE

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        if not isinstance(value, Real) or isinstance(value, bool):
            return MISFIT
        return self.range.fault(np.array(float(value)))


@dataclass(frozen=True)
class Numbers(Kind):
    """An array of floats with named axes, in a range: axes of one name have one length."""

    axes: str | None  # "k p"; None for any shape
    range: Range = FINITE
    dtypes: str = "f"  # kinds of them

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.dtypes:
            return MISFIT
        if self.axes is not None and not agree(self.axes, value.shape, lengths):
            return MISFIT
        return self.range.fault(value)


@dataclass(frozen=True)
class Directions(Kind):
    """An array of unit vectors along its last axis."""

    axes: str
    or_zero: bool = False  # vectors of zeros, too

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        wrong = Numbers(self.axes, CORRELATION).fault(value, lengths)
        if wrong is not None:
            return wrong
        unit = np.abs(np.einsum("...i,...i->...", value, value) - 1) <= ROUNDED
        if (unit | ~value.any(axis=-1) if self.or_zero else unit).all():
            return None
        return f"must hold vectors of length 1{' or 0' if self.or_zero else ''}"


@dataclass(frozen=True)
class Shares(Kind):
    """An array of probabilities that add up to 1."""

    axis: str

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        wrong = Numbers(self.axis, Range("from 0 to 1", 0.0, 1 + SLACK)).fault(value, lengths)
        if wrong is None and abs(float(value.sum(dtype=np.float64)) - 1) > SLACK:
            return f"must add up to 1, but adds up to {float(value.sum(dtype=np.float64)):.3g}"
        return wrong


@dataclass(frozen=True)
class Series(Kind):
    """A list of numbers, one for each place on an axis, which may be empty."""

    axis: str
    range: Range = ANY

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        if lengths.setdefault(self.axis, len(value)) != len(value):
            return f"has {len(value)} entries where {lengths[self.axis]} are expected"
        return self.range.fault(np.array(value, dtype=np.float64))


@dataclass(frozen=True)
class Count(Kind):
    """An integer that counts something."""

    least: int = 0

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        if not isinstance(value, Integral) or isinstance(value, bool):
            return MISFIT
        if not self.least <= int(value) < 2**63:
            return f"must be an integer from {self.least} to 2^63 - 1, but is {int(value)!s:.50}"
        return None


@dataclass(frozen=True)
class Length(Kind):
    """An integer that is the length of an axis."""

    axis: str

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        return None if isinstance(value, Integral) and agree(self.axis, (int(value),), lengths) else MISFIT


@dataclass(frozen=True)
class Names(Kind):
    """An array of strings, one for each place on an axis."""

    axis: str

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        text = isinstance(value, np.ndarray) and value.dtype == object and agree(self.axis, value.shape, lengths)
        return None if text else MISFIT


@dataclass(frozen=True)
class Word(Kind):
    """One of a few words."""

    choices: tuple[str, ...]

    def _fault(self, value: Any, lengths: dict[str, int]) -> str | None:
        if not isinstance(value, str):
            return MISFIT
        return None if value in self.choices else f"must be one of {', '.join(self.choices)}, but is {value!r:.50}"


def declared(kind: type, name: str) -> dict[str, Kind]:
    """Return what a class, and those that it is derived from, say under a name of its attributes, by their names."""
    found: dict[str, Kind] = {}
    for each in kind.__mro__:
        for attribute, what in vars(each).get(name, {}).items():
            found.setdefault(attribute, what)
    return found


def faults(values: Mapping[str, Any], kinds: Mapping[str, Kind]) -> Iterator[tuple[str, str]]:
    """Yield the name of each value that is not of its kind, and what is wrong with it: also lengths that differ."""
    known, lengths = [name for name in kinds if name in values], dict[str, int]()
    for name in known:
        wrong = kinds[name].fault(values[name], lengths)
        if wrong is not None:
            yield name, wrong
    for name in known:
        precise = kinds[name].rounds
        if precise is not None and precise in values and not rounds_to(values[precise], values[name]):
            yield name, f"is not what {precise} rounds to"


def rounds_to(precise: Any, rounded: Any) -> bool:
    """Tell whether a number or an array, or None, is another one in lower precision."""
    if precise is None or rounded is None:
        return precise is rounded
    with np.errstate(over="ignore"):
        return bool(np.array_equal(np.asarray(precise).astype(np.asarray(rounded).dtype), rounded))


def agree(axes: str, shape: tuple[int, ...], lengths: dict[str, int]) -> bool:
    """Tell whether a shape agrees with the lengths known so far, none of them 0; add those that are new."""
    names = axes.split()
    return len(names) == len(shape) and all(
        length > 0 and lengths.setdefault(name, length) == length for name, length in zip(names, shape)
    )
