"""Losses of a residual: small frozen dataclasses with a ``value`` and a ``gradient``; `Loss` says what they provide.

The squared loss is r^2, without 1/2; codes and dictionaries minimise half the sum of the loss, 1/2 sum rho(x - a D), so
that theirs is 1/2 |x - a D|^2, and Huber's and powers' are half of what is written here.

A loss for robust codes has more to say, all entry by entry: ``values``, rho itself, and ``weights``, w = rho' / (2 r).
rho must be a concave function of r^2, so that rho(s) <= rho(r) + w(r) (s^2 - r^2) for all s: squares with such weights
lie above rho and touch it at r (iteratively reweighted least squares).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from princomp._typing import Array

DESCENT = 2.15568275  # of `HyperbolicTangent`: the argument of the tangent where the descent begins


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

    def values(self, residual: Array) -> Array:
        """Return r^2 entry by entry."""
        return residual * residual

    def weights(self, residual: Array) -> Array:
        """Return 1 for each entry."""
        return np.ones_like(residual)


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
        return float(self.values(residual).sum())

    def values(self, residual: Array) -> Array:
        """Return rho entry by entry."""
        size = np.abs(residual)
        inside = np.minimum(size, self.delta)
        return inside * (2.0 * size - inside)

    def weights(self, residual: Array) -> Array:
        """Return min(1, delta / |r|)."""
        return self.delta / np.maximum(np.abs(residual), self.delta)

    def gradient(self, residual: Array) -> Array:
        """Return 2 r, cut off at +-2 delta."""
        return 2.0 * np.clip(residual, -self.delta, self.delta)

    def in_units(self, unit: float) -> Huber:
        """Return the loss that turns linear at unit * delta."""
        return Huber(unit * self.delta)


@dataclass(frozen=True)
class HyperbolicTangent:
    """rho(r) = r^2 up to ``bend``, from ``end`` on a constant: a cell that is far off counts no more, however far.

    Between them rho' descends as a hyperbolic tangent does (Hampel, Rousseeuw & Ronchetti, JASA 1981), by the shape
    that Raymaekers & Rousseeuw (Technometrics 2021) have from 1.5 to 4.

    Parameters
    ----------
    bend, end : float
        Where the loss leaves the parabola, and where it is level, 0 < bend < end, in the units of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.losses import HyperbolicTangent
    >>> HyperbolicTangent(1.5, 4.0).values(np.array([1.0, 4.0, 1e9])).round(3).tolist()
    [1.0, 7.524, 7.524]
    """

    bend: float
    end: float

    def __post_init__(self) -> None:
        """Refuse what is no interval."""
        if not 0 < self.bend < self.end < np.inf:
            raise ValueError(f"bend and end must be finite, 0 < bend < end; got {self.bend!r} and {self.end!r}.")

    @property
    def _steepness(self) -> float:
        return DESCENT / (self.end - self.bend)

    @property
    def level(self) -> float:
        """The largest value there is."""
        return float(self.values(np.array(self.end)))

    def value(self, residual: Array) -> float:
        """Return the sum of rho over all entries."""
        return float(self.values(residual).sum())

    def values(self, residual: Array) -> Array:
        """Return rho entry by entry."""
        size = np.abs(residual)
        rho = np.asarray(np.minimum(size, self.bend) ** 2)
        beyond = size > self.bend
        left = self._steepness * np.maximum(self.end - size[beyond], 0.0)
        slope = 2 * self.bend / (np.tanh(DESCENT) * self._steepness)
        rho[beyond] += slope * (np.log(np.cosh(DESCENT)) - np.log(np.cosh(left)))
        return rho

    def weights(self, residual: Array) -> Array:
        """Return 1 up to ``bend``, 0 from ``end`` on, falling between them."""
        size = np.abs(residual)
        weights = np.ones_like(size)
        beyond = size > self.bend
        far = size[beyond]
        left = self._steepness * np.maximum(self.end - far, 0.0)
        weights[beyond] = self.bend / np.tanh(DESCENT) * np.tanh(left) / far
        return weights

    def gradient(self, residual: Array) -> Array:
        """Return rho' entry by entry."""
        return 2.0 * residual * self.weights(residual)

    def in_units(self, unit: float) -> HyperbolicTangent:
        """Return the loss for residuals multiplied by ``unit``, unit^2 times this one."""
        return HyperbolicTangent(unit * self.bend, unit * self.end)


class _Powers:
    """rho(r) = scale |r|^q for |r| > smoothing, and below a parabola that goes on from there with the same slope."""

    def __post_init__(self: Any) -> None:
        if not 1 <= self.q < 2:
            raise ValueError(f"q must be at least 1 and below 2 (Squared is the end), got {self.q!r}.")
        for name in ("smoothing", "scale"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a finite number above 0, got {getattr(self, name)!r}.")

    def value(self: Any, residual: Array) -> float:
        """Return the sum of rho over all entries."""
        return float(self.values(residual).sum())

    def values(self: Any, residual: Array) -> Array:
        """Return rho entry by entry."""
        size = np.abs(residual)
        outside = np.maximum(size, self.smoothing) ** self.q - (1 - self.q / 2) * self.smoothing**self.q
        inside = self.q / 2 * self.smoothing ** (self.q - 2) * size**2
        return np.asarray(self.scale * np.where(size > self.smoothing, outside, inside))

    def gradient(self: Any, residual: Array) -> Array:
        """Return rho' entry by entry."""
        return 2.0 * residual * self.weights(residual)

    def weights(self: Any, residual: Array) -> Array:
        """Return scale q / 2 max(|r|, smoothing)^(q - 2)."""
        sizes = np.maximum(np.abs(residual), self.smoothing)
        return np.asarray(self.scale * self.q / 2 * sizes ** (self.q - 2))

    def in_units(self: Any, unit: float) -> Any:
        """Return the loss of residuals times ``unit``, unit^2 times this one."""
        return replace(self, smoothing=unit * self.smoothing, scale=unit ** (2 - self.q) * self.scale)


@dataclass(frozen=True)
class Power(_Powers):
    """rho(r) = |r|^q with 1 <= q < 2, smooth near 0: a wild cell counts less the smaller q is.

    Up to ``smoothing`` it is the parabola q / 2 smoothing^(q - 2) r^2, and beyond |r|^q less (1 - q / 2) smoothing^q,
    so that it has a slope everywhere, differs from |r|^q by no more than that, and is concave in r^2.

    Parameters
    ----------
    q : float
        The power, at least 1 and below 2.
    smoothing : float, default 1e-3
        Where the parabola ends, above 0, in the units of the data: choose it small beside residuals that matter.
    scale : float, default 1
        A factor.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.losses import Power
    >>> Power(1.5).value(np.array([4.0, -1.0]))
    9.0
    """

    q: float
    smoothing: float = 1e-3
    scale: float = 1.0


@dataclass(frozen=True)
class Absolute(_Powers):
    """rho(r) = |r|, smooth near 0: `Power` with q = 1.

    Parameters
    ----------
    smoothing, scale : float
        As in `Power`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.losses import Absolute
    >>> Absolute().value(np.array([4.0, -1.0]))
    4.999
    """

    q: ClassVar[float] = 1.0

    smoothing: float = 1e-3
    scale: float = 1.0


HUBER_WIDTH = 1.345  # sd of the errors: 95 % as efficient as squares where they are normal (Holland & Welsch 1977)
NAMES = ("l2", "huber", "l1")


def as_loss(loss: Any, unit: float = 1.0) -> Any:
    """Return the loss that is meant: itself, or by its name for cells with errors of sd ``unit``.

    "l2" is `Squared`, "huber" `Huber` with delta = 1.345 unit, "l1" `Absolute` with smoothing = 1e-3 unit.

    Examples
    --------
    >>> from princomp.losses import as_loss
    >>> as_loss("huber", 2.0)
    Huber(delta=2.69)
    """
    if isinstance(loss, str):
        if loss not in NAMES:
            raise ValueError(f"loss must be one of {', '.join(map(repr, NAMES))} or an object, got {loss!r}.")
        if loss == "l2":
            return Squared()
        return Huber(HUBER_WIDTH * unit) if loss == "huber" else Absolute(1e-3 * unit)
    if not all(callable(getattr(loss, name, None)) for name in ("value", "gradient")):
        raise TypeError(f"loss must be an object such as those in princomp.losses, got {loss!r}.")
    return loss
