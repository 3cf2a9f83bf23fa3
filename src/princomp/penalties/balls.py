"""Sets as penalties: zero inside, infinity outside, and the prox is the nearest point, whatever the step.

Columns are projected one by one. ``value`` allows for rounding: a column is inside if its norm is at most
1 + 64 eps times what it may be, with eps that of its own precision (1e-14 or 8e-6 in all).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from princomp._typing import Array
from princomp.penalties.simple import Step, floats

ROUNDING = 64  # times eps


@dataclass(frozen=True)
class L2Ball:
    """h(w) = 0 where |w| <= radius, infinity elsewhere.

    Parameters
    ----------
    radius : float
        Above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import L2Ball
    >>> L2Ball(1.0).prox(np.array([3.0, 4.0]), 1.0).round(9).tolist()
    [0.6, 0.8]
    """

    convex: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = False

    radius: float = 1.0

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def value(self, w: Array) -> float:
        """Return 0 inside, infinity outside."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        return np.where(norms(w) <= self.radius * (1 + rounding(w)), 0.0, np.inf)

    def prox(self, w: Array, step: Step) -> Array:
        """Return w, shortened to the radius if it is longer."""
        w = floats(w)
        size = norms(w)
        factor = np.where(size > self.radius, self.radius / np.maximum(size, self.radius), 1.0)
        return (w * factor).astype(w.dtype, copy=False)

    def times(self, number: float) -> L2Ball:
        """Return the same: infinity stays infinity."""
        return self


@dataclass(frozen=True)
class Sphere:
    """h(w) = 0 where |w| = radius, infinity elsewhere. Not convex.

    The nearest point to w = 0 is any: the first coordinate vector, times the radius, is taken. Not negative
    (`NonNegative`), the nearest point is max(w, 0) made as long as the radius; where no entry is above 0, it is the
    coordinate vector of the largest entry, the first of equals.

    Parameters
    ----------
    radius : float
        Above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import NonNegative, Sphere
    >>> Sphere(2.0).prox(np.array([0.3, -0.4]), 1.0).round(9).tolist()
    [1.2, -1.6]
    >>> NonNegative(Sphere(2.0)).prox(np.array([-0.3, -0.1]), 1.0).tolist()
    [0.0, 2.0]
    """

    convex: ClassVar[bool] = False
    homogeneous: ClassVar[bool] = False

    radius: float = 1.0

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def value(self, w: Array) -> float:
        """Return 0 on the sphere, infinity elsewhere."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        return np.where(np.abs(norms(w) - self.radius) <= self.radius * rounding(w), 0.0, np.inf)

    def prox(self, w: Array, step: Step) -> Array:
        """Return w made as long as the radius."""
        w = floats(w)
        return self._scaled(w, np.zeros(w.shape[1:], dtype=np.intp))

    def prox_nonnegative(self, w: Array, step: Step) -> Array:
        """Return the nearest point without entries below 0."""
        w = floats(w)
        return self._scaled(np.maximum(w, 0.0), np.argmax(w, axis=0))

    def _scaled(self, w: Array, otherwise: Array) -> Array:
        """Return columns as long as the radius; in place of zero the coordinate vectors ``otherwise``."""
        largest = np.abs(w).max(axis=0)
        w = w / np.where(largest > 0, largest, 1.0)  # also what is so small that its square is 0
        axes = np.zeros_like(w)
        np.put_along_axis(axes, np.expand_dims(otherwise, 0), 1.0, axis=0)
        w = np.where(largest == 0, axes, w)
        return (w * (self.radius / norms(w))).astype(w.dtype, copy=False)

    def times(self, number: float) -> Sphere:
        """Return the same: infinity stays infinity."""
        return self


@dataclass(frozen=True)
class L1Ball:
    """h(w) = 0 where |w|_1 <= radius, infinity elsewhere.

    The nearest point is the soft threshold at the level that makes it as long as the radius, from sorted sizes
    (Held, Wolfe & Crowder, Math. Program. 1974).

    Parameters
    ----------
    radius : float
        Above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import L1Ball
    >>> L1Ball(1.0).prox(np.array([1.0, -0.5, 0.1]), 1.0).tolist()
    [0.75, -0.25, 0.0]
    """

    convex: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = False

    radius: float = 1.0

    def __post_init__(self) -> None:
        check_radius(self.radius)

    def value(self, w: Array) -> float:
        """Return 0 inside, infinity outside."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        inside = np.abs(w).sum(axis=0, dtype=np.float64) <= self.radius * (1 + rounding(w))
        return np.where(inside, 0.0, np.inf)

    def prox(self, w: Array, step: Step) -> Array:
        """Return the nearest point of the ball."""
        w = floats(w)
        sizes = np.abs(w, dtype=np.float64)
        sums = np.cumsum(ordered := -np.sort(-sizes, axis=0), axis=0)
        counts = _counts(w)
        kept = np.maximum((ordered * counts > sums - self.radius).sum(axis=0, keepdims=True), 1)
        level = (np.take_along_axis(sums, kept - 1, axis=0) - self.radius) / kept
        found = np.maximum(sizes - level, 0.0)
        found *= self.radius / np.maximum(found.sum(axis=0), np.finfo(float).tiny)  # rounding in large sizes
        return np.where(sums[-1] <= self.radius, w, np.copysign(found, w)).astype(w.dtype, copy=False)

    def times(self, number: float) -> L1Ball:
        """Return the same: infinity stays infinity."""
        return self


@dataclass(frozen=True)
class ElasticNetBall:
    """h(w) = 0 where |w|^2 + gamma |w|_1 <= radius, infinity elsewhere: atoms with few nonzeros.

    Mairal, Bach, Ponce & Sapiro, JMLR 2010. With b_i = |w_i| + gamma / 2 the nearest point is, for some m <= 1,

        |z_i| = max(m b_i - gamma / 2, 0),    |z|^2 + gamma |z|_1 = sum_i max(m^2 b_i^2 - gamma^2 / 4, 0):

    piecewise linear in m^2, so that m comes from sorted sizes without iteration.

    Parameters
    ----------
    gamma : float
        Weight of the l1 norm, at least 0.
    radius : float
        What |w|^2 + gamma |w|_1 may be, above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import ElasticNetBall
    >>> ElasticNetBall(1.0, 2.0).prox(np.array([3.0, 0.5]), 1.0).tolist()
    [1.0, 0.0]
    """

    convex: ClassVar[bool] = True
    homogeneous: ClassVar[bool] = False

    gamma: float
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_radius(self.radius)
        if not (np.isfinite(self.gamma) and self.gamma >= 0):
            raise ValueError(f"gamma must be a finite number of at least 0, got {self.gamma!r}.")

    def value(self, w: Array) -> float:
        """Return 0 inside, infinity outside."""
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        sizes = np.abs(w, dtype=np.float64)
        return np.where((sizes * (sizes + self.gamma)).sum(axis=0) <= self.radius * (1 + rounding(w)), 0.0, np.inf)

    def prox(self, w: Array, step: Step) -> Array:
        """Return the nearest point of the set."""
        w = floats(w)
        unit = self.radius**0.5  # in which the radius is 1
        sizes, gamma = np.abs(w, dtype=np.float64) / unit, self.gamma / unit
        ordered = -np.sort(-sizes, axis=0)
        parts = ordered * (ordered + gamma)  # b^2 - gamma^2 / 4, without the digits that this difference loses
        sums, counts, square = np.cumsum(parts, axis=0), _counts(w), gamma**2 / 4
        kept = np.maximum((parts * (1.0 + counts * square) > square * (sums - 1.0)).sum(axis=0, keepdims=True), 1)
        total = np.maximum(np.take_along_axis(sums, kept - 1, axis=0), 1.0)
        m = np.sqrt((1.0 + kept * square) / (total + kept * square))
        lost = (total - 1.0) / (total + kept * square) / (1.0 + m)  # 1 - m
        found = np.maximum(sizes * m - gamma / 2 * lost, 0.0)
        # Rounding in large sizes leaves it nearby: on the rim, t^2 |z|^2 + t gamma |z|_1 = 1.
        half = gamma / 2 * found.sum(axis=0)
        found /= np.maximum(half + np.sqrt(half**2 + (found * found).sum(axis=0)), np.finfo(float).tiny)
        return np.where(sums[-1] <= 1.0, w, np.copysign(unit * found, w)).astype(w.dtype, copy=False)

    def times(self, number: float) -> ElasticNetBall:
        """Return the same: infinity stays infinity."""
        return self


def norms(w: Array) -> Array:
    """Return the Euclidean norm of each column, in float64, whatever its size."""
    largest = np.abs(w).max(axis=0, initial=0.0).astype(np.float64)
    unit = np.where((largest > 1e-100) & (largest < 1e100), 1.0, np.where(largest > 0, largest, 1.0))
    scaled = np.asarray(w, dtype=np.float64) / unit
    sizes: Array = unit * np.sqrt((scaled * scaled).sum(axis=0))
    return sizes


def rounding(w: Array) -> float:
    """Return by how much a norm may be too large, relative to what it may be."""
    return float(ROUNDING * np.finfo(np.result_type(w, np.float32)).eps)


def check_radius(radius: float) -> None:
    """Refuse what is no radius."""
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"radius must be a finite number above 0, got {radius!r}.")


def _counts(w: Array) -> Array:
    """Return 1, 2, ... down each column."""
    return np.arange(1.0, len(w) + 1).reshape(-1, *(1 for _ in w.shape[1:]))
