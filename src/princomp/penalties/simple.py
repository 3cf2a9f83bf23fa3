"""Penalties of single entries: none, l1, and not negative on top of another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

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

    def value(self, w: Array) -> float:
        """Return 0."""
        return 0.0

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

    alpha: float

    def __post_init__(self) -> None:
        check_weight(self.alpha)

    def value(self, w: Array) -> float:
        """Return alpha |w|_1."""
        return float(self.alpha * np.abs(w).sum())

    def prox(self, w: Array, step: Step) -> Array:
        """Return the soft threshold sign(w) max(|w| - step alpha, 0)."""
        return soft(w, step * self.alpha)

    def times(self, number: float) -> L1:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return L1(min(number * self.alpha, LARGEST))


@dataclass(frozen=True)
class NonNegative:
    """h(w) + 0 where w >= 0, infinity elsewhere, for a penalty h that depends on |w_i| alone and grows with each.

    All penalties here are of that kind. The prox is then that of h at max(w, 0): entries below zero are better off
    at zero, and those above stay above.

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

    def value(self, w: Array) -> float:
        """Return h(w), or infinity if some entry is below 0."""
        return self.penalty.value(w) if (w >= 0).all() else np.inf

    def prox(self, w: Array, step: Step) -> Array:
        """Return the prox of h at max(w, 0)."""
        return self.penalty.prox(np.maximum(w, 0.0), step)

    def times(self, number: float) -> NonNegative:
        """Return number * h, where w >= 0."""
        return NonNegative(self.penalty.times(number))


def soft(w: Array, threshold: Step) -> Array:
    """Return sign(w) max(|w| - threshold, 0)."""
    return w - np.clip(w, -threshold, threshold)


def check_weight(alpha: float) -> None:
    """Refuse a weight that is no weight."""
    if not (np.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha must be a finite number of at least 0, got {alpha!r}.")
