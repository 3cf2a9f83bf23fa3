"""Losses of a residual: small frozen dataclasses with a ``value`` and a ``gradient``; `Loss` says what they provide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from princomp._typing import Array


class Loss(Protocol):
    """What solvers ask of a loss, for a residual array of any shape."""

    def value(self, residual: Array) -> float:
        """Return the sum of rho over all entries."""

    def gradient(self, residual: Array) -> Array:
        """Return rho' entry by entry, an array like the residual."""

    def in_units(self, unit: float) -> Loss:
        """Return the loss for residuals multiplied by ``unit``, such that it is unit^2 times this one."""


@dataclass(frozen=True)
class Squared:
    """rho(r) = r^2: reconstruction error, and so PCA."""

    def value(self, residual: Array) -> float:
        """Return |r|^2."""
        return float(np.vdot(residual, residual))

    def gradient(self, residual: Array) -> Array:
        """Return 2 r."""
        return 2.0 * residual

    def in_units(self, unit: float) -> Squared:
        """Return the same loss."""
        return self


@dataclass(frozen=True)
class Huber:
    """rho(r) = r^2 up to ``delta``, then delta (2 |r| - delta): a wild cell counts by its size, not its square.

    Parameters
    ----------
    delta : float
        Where the loss turns from quadratic to linear, above 0, in the units of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.losses import Huber
    >>> Huber(1.0).value(np.array([0.5, -3.0]))
    5.25
    """

    delta: float

    def __post_init__(self) -> None:
        """Refuse a width that is no width."""
        if not (np.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"delta must be a finite number above 0, got {self.delta!r}.")

    def value(self, residual: Array) -> float:
        """Return the sum of rho over all entries."""
        size = np.abs(residual)
        inside = np.minimum(size, self.delta)
        return float((inside * (2.0 * size - inside)).sum())

    def gradient(self, residual: Array) -> Array:
        """Return 2 r, cut off at +-2 delta."""
        return 2.0 * np.clip(residual, -self.delta, self.delta)

    def in_units(self, unit: float) -> Huber:
        """Return the loss that turns linear at unit * delta."""
        return Huber(unit * self.delta)
