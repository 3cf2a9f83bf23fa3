"""Penalties: small frozen dataclasses with a ``value`` and a ``prox``.

What a penalty must provide, for an array ``w`` of any shape:

``value(w)``
    h(w), a float.
``prox(w, step)``
    the minimiser of 1/2 |z - w|^2 + step h(z) over z, an array like ``w``.
``times(number)``
    the penalty number * h.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Penalty(Protocol):
    """What solvers ask of a penalty."""

    def value(self, w: Array) -> float:
        """Return h(w)."""

    def prox(self, w: Array, step: float) -> Array:
        """Return the minimiser of 1/2 |z - w|^2 + step h(z)."""

    def times(self, number: float) -> Penalty:
        """Return the penalty number * h."""


@dataclass(frozen=True)
class Zero:
    """No penalty: h(w) = 0."""

    def value(self, w: Array) -> float:
        """Return 0."""
        return 0.0

    def prox(self, w: Array, step: float) -> Array:
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
        """Refuse a weight that is no weight."""
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha must be a finite number of at least 0, got {self.alpha!r}.")

    def value(self, w: Array) -> float:
        """Return alpha |w|_1."""
        return float(self.alpha * np.abs(w).sum())

    def prox(self, w: Array, step: float) -> Array:
        """Return the soft threshold sign(w) max(|w| - step alpha, 0)."""
        size = np.maximum(np.abs(w) - step * self.alpha, 0.0)
        return np.where(size > 0, np.copysign(size, w), 0.0)

    def times(self, number: float) -> L1:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return L1(min(number * self.alpha, float(np.finfo(np.float64).max)))
