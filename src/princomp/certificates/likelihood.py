"""Maxima of a likelihood: what slope and curvature at a point say about the gain that steps from it may bring.

Near the point, L is L_0 + g'x + x'A x / 2. Where A has no positive eigenvalue, the gain is g'(-A)^-1 g / 2; where it
has one, the point is a saddle and the eigenvector leads up. A is known by its products with vectors alone.

Lanczos' process from a random unit vector v gives polynomials p_i, orthonormal for the measure that v has on the
eigenvalues of A. Such a measure has at most 1 / sum_i p_i(t)^2 at t (Christoffel), and that of an eigenvector in d
dimensions is less than x with a probability of at most sqrt(2 d x / pi). So the probability that an eigenvalue of t or
more has been missed is known, for this A; Kuczynski & Wozniakowski (SIAM J. Matrix Anal. Appl. 1992) have it for the
worst one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from princomp._typing import Array
from princomp.result import Certificate

Operator = Callable[[Array], Array]  # V (d, b) -> A V (d, b)

MISS = 1e-3  # the probability of a missed eigenvalue that is allowed
STEPS = 80  # products with A, at most: five tables, 60 x 15 to 1000 x 100, a fifth missing, took up to 6
LANCZOS_BYTES = 2**27  # that the vectors may take
SETTLED = 0.1  # what changes by less than this share from one step to the next is believed
FLAT = 1e-6  # curvature that is not told from none
EXHAUSTED = 1e-12  # a remainder of this share is rounding


UPWARD = 3  # directions that are followed at a saddle
REACH = (2.0, 1.0, 0.5, 0.25, 0.0625)  # how far, relative to where the gain should be largest
STRONGEST = 0.5  # curvature that is always looked for, however large the tolerance


class Surface(Protocol):
    """A log-likelihood around a point, in units of about a standard error, so that A is about -I."""

    dimension: int  # of the space of steps; vectors (d,) may be longer

    @property
    def gradient(self) -> Array:
        """The slope g, (d,); asked for after a first product alone."""

    def apply(self, V: Array) -> Array:
        """Return A V, (d, b)."""

    def random(self, rng: np.random.Generator) -> Array:
        """Return a random step (d,), all directions alike."""

    def gain(self, step: Array) -> float:
        """Return what the log-likelihood gains by a step (d,)."""


def step_gain(
    expect: Callable[[Any], tuple[Any, float]], maximise: Callable[[Any, Any], Any], model: Any, *, cells: float
) -> float:
    """Return what one step of expectation maximisation gains from a model, for each observed cell.

    ``expect(model)`` returns what the M-step needs, and the log-likelihood of the model, by a pass over the rows;
    ``maximise(what the E-step found, model)`` the model after the step. Where there is a slope the step gains, so that
    none is left where it gains nothing. It is no bound: a slope along which steps are short gains little each time, and
    a saddle gains nothing. ``cells`` are observed; the answer is at least 0.

    Examples
    --------
    The mean of three numbers, and a model that has another one:

    >>> from princomp.certificates.likelihood import step_gain
    >>> rows = [1.0, 2.0, 6.0]
    >>> def expect(mean):
    ...     return sum(rows), -0.5 * sum((x - mean) ** 2 for x in rows)
    >>> [step_gain(expect, lambda total, mean: total / 3, mean, cells=3) for mean in (3.0, 4.0)]
    [0.0, 0.5]
    """
    found, before = expect(model)
    _, after = expect(maximise(found, model))
    return max(after - before, 0.0) / cells


def local_maximum(
    surface: Surface, *, cells: float, rows: float, tol: float, random_state: int = 0
) -> tuple[Certificate, Array | None]:
    """Certify that no small step gains more than ``tol`` for each cell.

    ``surface`` is made from data and point alone; ``cells`` and ``rows`` are how many are observed. Curvature of c
    gains about n c^2 / 4 with n rows, as a component of probabilistic PCA does that was left out, of c noise more
    variance than noise. Curvature that so gains less than ``tol`` is not looked for.

    The certificate's ``residual`` is the gain for each cell that is left: found along directions that curve upwards,
    promised by the slope, or that of curvature that could not be excluded. ``details`` has these, and what is known of
    curvature. Where it does not hold for one of the first two reasons, a step (d,) is returned, too, to go on from.
    """
    rng, enough = np.random.default_rng(random_state), tol * cells
    level, gain, step = min(2 * float(np.sqrt(enough / rows)), STRONGEST), 0.0, None
    while True:
        curved = curvature(surface.apply, surface.random(rng), surface.dimension, level)
        if not curved.upward.size:
            break
        gain, step = max((gain, step), _followed(surface, curved, rows, enough), key=lambda found: found[0])
        if gain > enough:
            break
        level = 1.5 * curved.largest  # what was found is weak; is there more?
    slope = slope_gain(surface.apply, surface.gradient, curved, enough)
    unseen = rows * curved.bound**2 / 4 if curved.miss > MISS and gain <= enough else 0.0
    details = {
        "meaning": _meaning(curved, gain, slope, unseen, enough),
        "largest curvature": curved.largest,
        "largest curvature that may be": curved.bound,
        "probability of a miss": curved.miss,
        "gain along curvature": gain,
        "gain along the slope": slope,
    }
    certificate = Certificate(max(gain, slope, unseen) / cells, tol, "local", details=details)
    if gain <= enough:
        step = np.zeros_like(surface.gradient) if slope > enough else None
    return certificate, step


def _meaning(curved: Curved, gain: float, slope: float, unseen: float, enough: float) -> str:
    """Return what the numbers say."""
    if gain > enough:
        return f"a saddle: a step along its curvature gains {gain:.2g}"
    if slope > enough:
        return f"not yet a maximum: its slope promises a gain of {slope:.2g}"
    if unseen > enough:
        return f"perhaps a saddle: upward curvature of up to {curved.bound:.2g} could not be excluded"
    return f"a local maximum, unless a saddle was missed, which has a probability below {MISS:g}"


def _followed(surface: Surface, curved: Curved, rows: float, enough: float) -> tuple[float, Array]:
    """Return the largest gain that is found along the directions that curve upwards, and the step to it."""
    size = np.sqrt(rows * curved.largest)  # where a component that was left out gains most
    best, step = 0.0, np.zeros(len(curved.upward))
    for direction in curved.upward.T[:UPWARD]:
        forth = 1.0 if surface.gradient @ direction >= 0 else -1.0
        for sign in (forth, -forth):
            for reach in REACH:
                tried = sign * reach * size * direction
                gain = surface.gain(tried)
                if gain > best:
                    best, step = gain, tried
            if best > enough:
                return best, step
    return best, step


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
    for basis, T in _lanczos(apply, start):
        values, vectors = np.linalg.eigh(_square(T))
        found, miss = float(values[-1]), miss_probability(T, level, dimension)
        upward = basis @ vectors[:, values > level][:, ::-1]
        if miss <= MISS or (level < found and found - before <= SETTLED * found):
            break
        before = found
    return Curved(found, _bound(T, found, level, dimension), miss, upward)


def miss_probability(T: Array, t: float, dimension: int) -> float:
    """Return how probably a random start hid an eigenvalue of at least t from Lanczos' diagonals T (2, steps)."""
    before, here, total = 0.0, 1.0, 1.0
    for i, (diagonal, beside) in enumerate(T.T.tolist()):
        ahead = (t - diagonal) * here - (T[1, i - 1] * before if i else 0.0)
        if ahead <= 0:  # t is not above all eigenvalues found
            return 1.0
        if beside == 0:  # there are none but these
            return 0.0
        before, here = here, ahead / beside
        total += here * here
        if not np.isfinite(total):
            return 0.0
    return min(1.0, float(np.sqrt(2 * dimension / (np.pi * total))))


def slope_gain(apply: Operator, gradient: Array, curved: Curved, enough: float) -> float:
    """Return the gain g'(-A)^-1 g / 2 that the slope promises, or somewhat more.

    No eigenvalue of A being larger than ``curved.bound`` < 0, it is at most |g|^2 / (-2 bound): if that is at most
    ``enough``, no product is needed. Else by Lanczos' process from g; what slope that leaves may be as flat as the
    flattest direction found.
    """
    square = float(gradient @ gradient)
    if square == 0 or (curved.bound < 0 and square <= -2 * curved.bound * enough):
        return 0.5 * square / -curved.bound if square else 0.0
    for _, T in _lanczos(apply, gradient):
        values, vectors = np.linalg.eigh(_square(T))
        curvatures = np.maximum(np.abs(values), FLAT)
        gain = 0.5 * square * float((vectors[0] ** 2 / curvatures).sum())
        left = square * float(T[1, -1] * (vectors[-1] * vectors[0] / curvatures).sum()) ** 2
        rest = 0.5 * left / max(min(-curved.largest, float(curvatures.min())), FLAT)
        if rest <= SETTLED * max(gain, enough):
            break
    return gain + rest


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
        yield Q[:, : j + 1], T[:, : j + 1]
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
