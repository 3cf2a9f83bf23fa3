"""Maxima of a likelihood: what slope and curvature at a point say about the gain that steps from it may bring.

Near the point, L is L_0 + g'x + x'A x / 2. Where A has no positive eigenvalue, the gain is g'(-A)^-1 g / 2; where it has
one, the point is a saddle and the eigenvector leads up. A is known by its products with vectors alone.

Lanczos' process from a random unit vector v gives polynomials p_i, orthonormal for the measure that v has on the
eigenvalues of A. Such a measure has at most 1 / sum_i p_i(t)^2 at t (Christoffel), and that of an eigenvector in d
dimensions is less than x with a probability of at most sqrt(2 d x / pi). So the probability that an eigenvalue of t or
more has been missed is known, for this A; Kuczynski & Wozniakowski (SIAM J. Matrix Anal. Appl. 1992) have it for the
worst one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Operator = Callable[[Array], Array]  # V (d, b) -> A V (d, b)

MISS = 1e-3  # the probability of a missed eigenvalue that is allowed
STEPS = 80  # products with A, at most
LANCZOS_BYTES = 2**27  # that the vectors may take
SETTLED = 0.1  # what changes by less than this share from one step to the next is believed
FLAT = 1e-6  # curvature that is not told from none
EXHAUSTED = 1e-12  # a remainder of this share is rounding


class Curved(NamedTuple):
    """What is known of the eigenvalues of A."""

    largest: float  # eigenvalue found
    bound: float  # above which there is none, but for a probability of MISS
    miss: float  # the probability that there is one above the level asked for
    upward: Array  # (d, u) unit vectors along which A curves upwards by more than that level, the most first


def curvature(apply: Operator, start: Array, dimension: int, level: float) -> Curved:
    """Return what Lanczos' process tells, ended when an eigenvalue above ``level`` is known, or known not to be there.

    ``start`` (d,) is a random vector in the space of ``dimension`` dimensions that A acts on.
    """
    before = -np.inf
    for Q, T in _lanczos(apply, start):
        values, vectors = np.linalg.eigh(_square(T))
        found, miss = float(values[-1]), miss_probability(T, level, dimension)
        if miss <= MISS or (level < found and found - before <= SETTLED * found):
            break
        before = found
    upward = Q[:, : len(values)] @ vectors[:, values > level][:, ::-1]
    return Curved(found, _bound(T, found, level, dimension), miss, upward)


def miss_probability(T: Array, t: float, dimension: int) -> float:
    """Return how probably a random start has hidden an eigenvalue of at least t from Lanczos' diagonals T (2, steps)."""
    if t <= np.linalg.eigvalsh(_square(T))[-1]:
        return 1.0
    before, here, total = 0.0, 1.0, 1.0
    for i in range(T.shape[1]):
        if T[1, i] == 0:  # there is nothing but what was found
            return 0.0
        before, here = here, ((t - T[0, i]) * here - (T[1, i - 1] * before if i else 0.0)) / T[1, i]
        total += here * here
        if not np.isfinite(total):
            return 0.0
    return min(1.0, float(np.sqrt(2 * dimension / (np.pi * total))))


def slope_gain(apply: Operator, gradient: Array, bound: float, enough: float) -> float:
    """Return the gain g'(-A)^-1 g / 2 that the slope promises.

    No eigenvalue of A being larger than ``bound`` < 0, it is at most |g|^2 / (-2 bound): if that is at most ``enough``,
    no product is needed. Else by Lanczos' process from g, until it has settled.
    """
    square = float(gradient @ gradient)
    if square == 0 or (bound < 0 and square <= -2 * bound * enough):
        return 0.5 * square / -bound if square else 0.0
    gain = 0.0
    for _, T in _lanczos(apply, gradient):
        values, vectors = np.linalg.eigh(_square(T))
        before, gain = gain, 0.5 * square * float((vectors[0] ** 2 / np.maximum(np.abs(values), FLAT)).sum())
        if abs(gain - before) <= SETTLED * max(gain, enough):
            break
    return gain


def _lanczos(apply: Operator, start: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the basis (d, steps) and the diagonals T (2, steps) of Lanczos' process, after each product."""
    d = len(start)
    steps = min(STEPS, d, max(4, LANCZOS_BYTES // (8 * d)))
    Q, T = np.empty((d, steps + 1), order="F"), np.zeros((2, steps))
    Q[:, 0] = start / np.linalg.norm(start)
    size = 0.0
    for j in range(steps):
        q = apply(Q[:, j : j + 1])[:, 0]
        size = max(size, float(np.linalg.norm(q)))
        T[0, j] = Q[:, j] @ q
        for _ in range(2):  # twice is enough
            q = q - Q[:, : j + 1] @ (Q[:, : j + 1].T @ q)
        length = float(np.linalg.norm(q))
        T[1, j] = length if length > EXHAUSTED * size else 0.0
        yield Q, T[:, : j + 1]
        if T[1, j] == 0:
            return
        Q[:, j + 1] = q / length


def _square(T: Array) -> Array:
    """Return the tridiagonal matrix of the diagonals."""
    return np.diag(T[0]) + np.diag(T[1, :-1], 1) + np.diag(T[1, :-1], -1)


def _bound(T: Array, largest: float, level: float, dimension: int) -> float:
    """Return the level above which there is no eigenvalue, but for a probability of MISS."""
    low, high = largest, max(level, largest)
    while miss_probability(T, high, dimension) > MISS:
        low, high = high, high + max(abs(high), abs(largest), FLAT)
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if miss_probability(T, middle, dimension) > MISS else (low, middle)
    return high
