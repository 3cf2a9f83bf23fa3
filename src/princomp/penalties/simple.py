"""Penalties of single entries: none, l1, and not negative on top of another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np

from princomp._typing import Array

Step = float | Array

LARGEST = float(np.finfo(np.float64).max)


class Penalty(Protocol):
    """What solvers ask of a penalty."""

    def value(self, w: Array) -> float:
        """Return h(w)."""

    def prox(self, w: Array, step: Step) -> Array:
        """Return the minimiser of 1/2 |z - w|^2 + step h(z)."""

    def times(self, number: float) -> Penalty:
        """Return the penalty number * h."""


@dataclass(frozen=True)
class Zero:
    """No penalty: h(w) = 0."""

    convex: ClassVar[bool] = True

    def value(self, w: Array) -> float:
        """Return 0."""
        return 0.0

    def values(self, w: Array) -> Array:
        """Return 0 for each column."""
        return np.zeros(np.shape(w)[1:])

    def prox(self, w: Array, step: Step) -> Array:
        """Return ``w`` itself."""
        return w

    def times(self, number: float) -> Zero:
        """Return no penalty."""
        return self


@dataclass(frozen=True)
class L1:
    """h(w) = alpha sum |w_i|, which sets small entries to zero.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import L1
    >>> L1(0.5).prox(np.array([2.0, -0.3, -1.0]), 1.0).tolist()
    [1.5, 0.0, -0.5]
    """

    convex: ClassVar[bool] = True

    alpha: float

    def __post_init__(self) -> None:
        check_weight(self.alpha)

    def value(self, w: Array) -> float:
        """Return alpha |w|_1."""
        return float(self.alpha * np.abs(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        sums: Array = self.alpha * np.abs(w).sum(axis=0, dtype=np.float64)
        return sums

    def polar(self, v: Array) -> Array:
        """Return the smallest b with v'a <= b h(a) for all a, for each column."""
        largest = np.abs(v).max(axis=0, initial=0.0)
        if self.alpha == 0:
            return np.where(largest > 0, np.inf, 0.0)
        return np.asarray(largest / self.alpha)

    def prox(self, w: Array, step: Step) -> Array:
        """Return the soft threshold sign(w) max(|w| - step alpha, 0)."""
        return soft(w, step * self.alpha)

    def times(self, number: float) -> L1:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return L1(min(number * self.alpha, LARGEST))


@dataclass(frozen=True)
class NonNegative:
    """h(w) + 0 where w >= 0, infinity elsewhere, for a penalty h that depends on |w_i| alone and grows with each.

    The prox is then that of h at max(w, 0): entries below zero are better off at zero, and those above stay above.
    All penalties here are of that kind, but `Sphere`, which has a rule of its own (``prox_nonnegative``), and `Box`,
    for which this is right where the box has a point that is not negative.

    Parameters
    ----------
    penalty : Penalty
        h; none by default.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import L1, NonNegative
    >>> NonNegative(L1(0.5)).prox(np.array([2.0, -3.0, 0.2]), 1.0).tolist()
    [1.5, 0.0, 0.0]
    """

    penalty: Penalty = field(default_factory=Zero)

    def __post_init__(self) -> None:
        if not getattr(self.penalty, "high", 0.0) >= 0:
            raise ValueError(f"Nothing in {self.penalty} is at least 0.")

    @property
    def convex(self) -> bool:
        """Whether h is convex: False if it does not say."""
        return is_convex(self.penalty)

    @property
    def homogeneous(self) -> bool:
        """Whether h(t w) = t h(w) for t > 0, as far as h says."""
        return bool(getattr(self.penalty, "homogeneous", True))

    def value(self, w: Array) -> float:
        """Return h(w), or infinity if some entry is below 0."""
        return self.penalty.value(w) if (w >= 0).all() else np.inf

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        return np.where((w >= 0).all(axis=0), column_values(self.penalty, w), np.inf)

    @property
    def polar(self) -> Any:
        """What h has, at max(v, 0); None if it has nothing."""
        own = getattr(self.penalty, "polar", None)
        return None if own is None else lambda v: own(np.maximum(v, 0.0))

    def prox(self, w: Array, step: Step) -> Array:
        """Return the prox of h at max(w, 0), or what h itself has for this."""
        own = getattr(self.penalty, "prox_nonnegative", None)
        if own is not None:
            nearest: Array = own(w, step)
            return nearest
        return self.penalty.prox(np.maximum(w, 0.0), step)

    def times(self, number: float) -> NonNegative:
        """Return number * h, where w >= 0."""
        return NonNegative(self.penalty.times(number))


def is_penalty(penalty: Any) -> bool:
    """Tell whether an object has what solvers ask of a penalty; a class is none yet."""
    has = all(callable(getattr(penalty, name, None)) for name in ("value", "prox"))
    return has and not isinstance(penalty, type)


def is_convex(penalty: Any) -> bool:
    """Tell whether a penalty says that it is convex: it has ``convex = True``."""
    return bool(getattr(penalty, "convex", False))


def column_values(penalty: Any, w: Array) -> Array:
    """Return h of each column of w, in one call of ``values`` if the penalty has it."""
    if hasattr(penalty, "values"):
        values: Array = penalty.values(w)
        return values
    if np.ndim(w) == 1:
        return np.asarray(penalty.value(w), dtype=np.float64)
    return np.array([penalty.value(column) for column in np.ascontiguousarray(w.T)], dtype=np.float64)


def soft(w: Array, threshold: Step) -> Array:
    """Return sign(w) max(|w| - threshold, 0)."""
    return w - np.clip(w, -threshold, threshold)


def floats(w: Array) -> Array:
    """Return an array of floats: of the precision of w, or of float64."""
    return np.asarray(w, dtype=np.result_type(w, np.float32))


def check_weight(alpha: float, name: str = "alpha") -> None:
    """Refuse a weight that is no weight."""
    if not (np.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"{name} must be a finite number of at least 0, got {alpha!r}.")
