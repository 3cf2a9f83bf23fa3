"""Pre-images under the Gaussian kernel (Mika et al., NIPS 1998): the row whose image is nearest to a given point.

Objective: minimise |phi(z) - q|^2 over z, q = sum_i h_i phi(x_i). As k(z, z) = 1, that is to maximise

    f(z) = sum_i h_i k(z, x_i),    gradient f(z) = 2 gamma f(z) (T(z) - z),
    T(z) = sum_i h_i k(z, x_i) x_i / f(z).

Mika's fixed point is z <- T(z): a step of length 1 / (2 gamma f(z)) along the gradient. It is the first step of
`princomp.solvers.ascent`, which shortens it where f would fall, as it may with negative h, and takes the later ones
from memory. Its residual is |T(z) - z| in units of the kernel's width, 1 / sqrt(2 gamma).

With Fourier features F(z) of length 1 in place of phi: maximise f(z) = F(z)'q, in the same steps.

f has more than one maximum, and none far from all rows, where f vanishes. So there is a row to begin with, and there
are examples, training rows with their values f. An answer that is worse than the best example is thrown away for what
is found from there: none is worse than any of the examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from princomp._typing import Array
from princomp.kernels import Gaussian, Points
from princomp.solvers.ascent import Ascent, ascend, residual

TOL = 1e-6  # of the residual
STEPS = 300  # at the most; 300 digits of 8 x 8 and 16 x 16 with noise of 0.5 take 6 to 85, the narrower the more
ROUNDING = 8 * np.finfo(float).eps


@dataclass(frozen=True)
class Radial:
    """f(z) = sum_i h_i exp(-gamma |z - x_i|^2), one h for each row."""

    kernel: Gaussian
    basis: Points  # of the x_i, m rows
    weights: Array  # (b, m), the h_i

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Return values (b,) and gradients (b, p)."""
        K = self.kernel.between(self.kernel.points(points), self.basis)
        K *= self.weights
        values = K.sum(axis=1)
        return values, 2 * self.kernel.gamma * (K @ self.basis[0] - values[:, None] * points)

    def of(self, some: Array) -> Self:
        """Return those of some rows."""
        return type(self)(self.kernel, self.basis, self.weights[some])

    def rounding(self, points: Array) -> Array:
        """Return what rounding may make of the length of gradients, (b,)."""
        K = self.kernel.between(self.kernel.points(points), self.basis)
        K *= np.abs(self.weights)
        sizes = np.sqrt(self.basis[1])
        own = np.sqrt(np.einsum("ij,ij->i", points, points))
        exponent = 1 + self.kernel.gamma * (sizes.max(initial=0.0) + own) ** 2
        return np.asarray(2 * self.kernel.gamma * ROUNDING * exponent * (K @ sizes + K.sum(axis=1) * own))


@dataclass(frozen=True)
class Waves:
    """f(z) = [cos(w'z), sin(w'z)] q / sqrt(m) over m frequencies w, one q for each row."""

    frequencies: Array  # (p, m)
    weights: Array  # (b, 2 m), the q

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Return values (b,) and gradients (b, p)."""
        m = self.frequencies.shape[1]
        angles = points @ self.frequencies
        cosine, sine = np.cos(angles), np.sin(angles)
        even, odd = self.weights[:, :m] / np.sqrt(m), self.weights[:, m:] / np.sqrt(m)
        values = np.einsum("ij,ij->i", even, cosine) + np.einsum("ij,ij->i", odd, sine)
        return values, (odd * cosine - even * sine) @ self.frequencies.T

    def of(self, some: Array) -> Self:
        """Return those of some rows."""
        return type(self)(self.frequencies, self.weights[some])

    def rounding(self, points: Array) -> Array:
        """Return what rounding may make of the length of gradients, (b,)."""
        lengths = np.sqrt(np.einsum("ij,ij->j", self.frequencies, self.frequencies))
        m = len(lengths)
        size = (np.abs(self.weights[:, :m]) + np.abs(self.weights[:, m:])) @ lengths / np.sqrt(m)
        own = np.sqrt(np.einsum("ij,ij->i", points, points))
        return np.asarray(ROUNDING * size * (1 + own * lengths.max(initial=0.0)))


@dataclass(frozen=True)
class Examples:
    """Rows at which f is known for any point q: f(x_i) = offsets_i + scores_i'z, for the scores z of q."""

    rows: Array  # (e, p)
    scores: Array  # (e, k)
    offsets: Array  # (e,)

    def best(self, z: Array) -> tuple[Array, Array]:
        """Return the row with the largest value of each of the scores z (b, k), and that value: (b, p) and (b,)."""
        values = z @ self.scores.T + self.offsets
        number = values.argmax(axis=1)
        return self.rows[number], values[np.arange(len(z)), number]


def preimages(f: Any, gamma: float, start: Array | None, best: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the pre-images of b points, and their residuals, where these stand above rounding: (b, p) and (b,).

    Parameters
    ----------
    f : Radial or Waves
        What is maximised.
    gamma : float
        Of the kernel.
    start : (b, p) array or None
        Where rows begin; if None, at the best examples.
    best : (b, p) array, (b,) array
        These, and their values.
    """
    rows, reached = best
    begin = rows if start is None else start
    if gamma == 0:  # all rows are alike to the kernel
        return begin.copy(), np.zeros(len(begin))
    found = ascend(f, begin, 2 * gamma, tol=TOL, most=STEPS)
    poor = found.values < reached
    if poor.any():
        again = ascend(f.of(poor), rows[poor], 2 * gamma, tol=TOL, most=STEPS)
        for kept, new in ((found.points, again.points), (found.values, again.values)):
            kept[poor] = new
    return found.points, certified(f, gamma, found)


def certified(f: Any, gamma: float, found: Ascent) -> Array:
    """Return the residuals of an answer, measured at it; 0 in place of those that rounding may have made, (b,)."""
    values, gradients = f(found.points)
    out = residual(values, gradients, 2 * gamma)
    high = ~(out <= TOL)
    if high.any():
        length = np.sqrt(np.einsum("ij,ij->i", gradients[high], gradients[high]))
        out[high] = np.where(length <= f.of(high).rounding(found.points[high]), 0.0, out[high])
    return out
