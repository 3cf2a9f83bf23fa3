"""Penalties of single entries that are not l1: the number of nonzeros, powers below 1, the elastic net, and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from princomp._typing import Array
from princomp.penalties.simple import LARGEST, Step, check_weight, floats, soft

MOST_STEPS = 100  # of Newton's method, which takes 3 to 8; near p = 1 up to 20


@dataclass(frozen=True)
class L0:
    """h(w) = alpha times the number of entries that are not zero. Not convex.

    The prox keeps the entries above sqrt(2 step alpha) in size as they are, and sets others to zero (one that is
    exactly as large, too: both are minimisers).

    Parameters
    ----------
    alpha : float
        Price of a nonzero entry, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import L0
    >>> L0(0.5).prox(np.array([2.0, -0.9, -1.1]), 1.0).tolist()
    [2.0, 0.0, -1.1]
    """

    convex: ClassVar[bool] = False
    homogeneous: ClassVar[bool] = False

    alpha: float

    def __post_init__(self) -> None:
        check_weight(self.alpha)

    def value(self, w: Array) -> float:
        """Return alpha times the number of nonzero entries."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        return self.alpha * np.count_nonzero(w, axis=0).astype(np.float64)

    def prox(self, w: Array, step: Step) -> Array:
        """Return w with entries of at most sqrt(2 step alpha) in size set to zero."""
        w = floats(w)
        return np.where(np.abs(w) <= np.sqrt(2.0 * step * self.alpha), w.dtype.type(0), w)

    def times(self, number: float) -> L0:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return L0(min(number * self.alpha, LARGEST))


@dataclass(frozen=True)
class Lp:
    """h(w) = alpha sum |w_i|^p with 0 < p < 1: between l0 and l1. Not convex.

    The prox of an entry v >= 0 is 0 up to a threshold, and jumps there: with t = step alpha,

        0 if v <= (2 - p) / (2 - 2p) (2t (1 - p))^(1 / (2 - p)),    else the larger root z of z + t p z^(p - 1) = v,

    by Newton's method from z = v, from where it descends to the root (Marjanovic & Solo, IEEE Trans. Signal Process.
    2012). It is the global minimiser; at the threshold there are two, and 0 is taken.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    p : float
        The power, between 0 and 1, both excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import Lp
    >>> Lp(1.0, 0.5).prox(np.array([1.4, -2.0]), 1.0).round(3).tolist()
    [0.0, -1.605]
    """

    convex: ClassVar[bool] = False
    homogeneous: ClassVar[bool] = False

    alpha: float
    p: float = 0.5

    def __post_init__(self) -> None:
        check_weight(self.alpha)
        if not 0 < self.p < 1:
            raise ValueError(f"p must be above 0 and below 1 (L0 and L1 are the ends), got {self.p!r}.")

    def value(self, w: Array) -> float:
        """Return alpha sum |w_i|^p."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        powers: Array = self.alpha * (np.abs(w) ** self.p).sum(axis=0, dtype=np.float64)
        return powers

    def prox(self, w: Array, step: Step) -> Array:
        """Return the global minimiser, entry by entry."""
        w = floats(w)
        size = np.abs(w, dtype=np.float64)
        # In units of t^(1 / (2 - p)), weights are 1.
        unit = np.broadcast_to(np.asarray(step * self.alpha, dtype=np.float64) ** (1 / (2 - self.p)), w.shape)
        threshold = (2 - self.p) / (2 - 2 * self.p) * (2 - 2 * self.p) ** (1 / (2 - self.p))
        outer = ~(size <= threshold * unit)  # NaN stays NaN
        z = np.zeros(w.shape)
        with np.errstate(divide="ignore", over="ignore"):
            z[outer] = self._root(size[outer] / unit[outer]) * size[outer]
        return np.copysign(z, w).astype(w.dtype)

    def _root(self, v: Array) -> Array:
        """Return z / v for the larger root of z + p z^(p - 1) = v, for v above the threshold."""
        near = v < 1e18  # beyond, nothing is taken away that can be seen
        start = z = v[near]
        for _ in range(MOST_STEPS):
            pull = self.p * z ** (self.p - 2)
            change = ((1.0 + pull) * z - start) / (1.0 - (1 - self.p) * pull)
            z = z - change
            if not (change > 4 * np.finfo(float).eps * z).any():
                break
        share = np.where(np.isnan(v), np.nan, 1.0)
        share[near] = z / start
        return share

    def times(self, number: float) -> Lp:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return Lp(min(number * self.alpha, LARGEST), self.p)


@dataclass(frozen=True)
class ElasticNet:
    """h(w) = alpha sum |w_i| + l2 / 2 sum w_i^2 (Zou & Hastie, J. R. Stat. Soc. B 2005).

    The prox is the soft threshold, divided by 1 + step l2.

    Parameters
    ----------
    alpha, l2 : float
        Weights, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import ElasticNet
    >>> ElasticNet(0.5, 1.0).prox(np.array([2.0, -0.3, -1.0]), 1.0).tolist()
    [0.75, 0.0, -0.25]
    """

    convex: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = False

    alpha: float
    l2: float

    def __post_init__(self) -> None:
        check_weight(self.alpha)
        check_weight(self.l2, "l2")

    def value(self, w: Array) -> float:
        """Return alpha |w|_1 + l2 / 2 |w|^2."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        squares = np.square(w, dtype=np.float64).sum(axis=0)
        sums: Array = self.alpha * np.abs(w).sum(axis=0, dtype=np.float64) + self.l2 / 2 * squares
        return sums

    def prox(self, w: Array, step: Step) -> Array:
        """Return the soft threshold divided by 1 + step l2."""
        w = floats(w)
        shrunk = soft(w, step * self.alpha) / (1.0 + step * self.l2)
        return shrunk.astype(w.dtype, copy=False)

    def times(self, number: float) -> ElasticNet:
        """Return the penalty of weights number * alpha and number * l2 (or the largest there are)."""
        return ElasticNet(min(number * self.alpha, LARGEST), min(number * self.l2, LARGEST))


@dataclass(frozen=True)
class Box:
    """h(w) = 0 where low <= w_i <= high for all i, infinity elsewhere. The prox is the nearest point.

    Parameters
    ----------
    low, high : float
        Bounds, low <= high; -inf and inf are none.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import Box
    >>> Box(-1.0, 2.0).prox(np.array([3.0, -3.0, 0.5]), 1.0).tolist()
    [2.0, -1.0, 0.5]
    """

    convex: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = False

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (self.low <= self.high and self.low < np.inf and self.high > -np.inf):
            raise ValueError(f"Box needs low <= high, got {self.low!r} and {self.high!r}.")

    def value(self, w: Array) -> float:
        """Return 0 inside, infinity outside. Bounds are kept exactly: there is no rounding to allow for."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        low, high = np.asarray(self._bounds(w))
        return np.where(((w >= low) & (w <= high)).all(axis=0), 0.0, np.inf)

    def prox(self, w: Array, step: Step) -> Array:
        """Return the nearest point of the box."""
        w = floats(w)
        return np.clip(w, *self._bounds(w))

    def _bounds(self, w: Array) -> tuple[Array, Array]:
        """Return the bounds in the precision of w, in which it is compared with them."""
        kind = np.result_type(w, np.float32).type
        return kind(self.low), kind(self.high)

    def times(self, number: float) -> Box:
        """Return the same: infinity stays infinity."""
        return self
