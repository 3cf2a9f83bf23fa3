"""Several starts of `princomp.solvers.regression` at once, for components that are weighted alike.

F(A, B) has many local minima that differ by a rotation of A and B together. Each start is a rotation of the leading
eigenvectors of S, and goes down by the proximal gradient steps of `princomp.solvers.regression_reduced`, with momentum
that is given up where it leads back (O'Donoghue & Candes, Found. Comput. Math. 2015). They go side by side: on small
data a step takes NumPy hardly longer for six starts than for one. Which of them ends lowest shows late: so each goes on
until all gain little, or it gains too little to overtake the first.
"""

import numpy as np

from princomp._typing import Array
from princomp.certificates.regression import weights
from princomp.solvers.regression_reduced import CAUTION, GROWTH, RANK
from princomp.solvers.scatter import Scatter
from princomp.solvers.signs import signs

# Of 72 problems, breast cancer, digits, wine, pitprops and noise, 82 % ended in the lowest of 25 minima, all of them in
# the mean .05 % above it; with five starts .11 %, with three .13 %, with rivals for starts .28 %, with one start .33 %.
STARTS = 6
# Multiplications of a step, at the most: with more, the arithmetic takes longer than the calls, and what are called
# rivals in `princomp.solvers.regression`, which leave rows out that are zero, are quicker.
SMALL = 2e6
STEPS = 100  # at the most
LOOK = 5  # steps, after which it is seen what they have gained
SLOW = 1.5e-4  # they are slow if they gain less than this share of F; with a tenth of it the same start was ahead
AHEAD = 2  # times what a few steps have gained of late that may still be made up for
FORGET = 0.33  # of that, in as many steps


def pays(scatter: Scatter, k: int) -> bool:
    """Tell whether the data are so small that several starts take hardly longer than one."""
    return STARTS * k * scatter.features**2 <= SMALL


def best_rotation(scatter: Scatter, V: Array, alpha: float, ridge: float, safe: float) -> Array:
    """Return B (p, k), not far from the lowest of the minima to which rotations of V lead.

    ``alpha`` is the weight of each component; ``safe`` the size of a step that is always short enough.
    """
    (p, k), V = V.shape, V * signs(V)  # so that they are turned alike everywhere
    turns = np.linalg.qr(np.random.default_rng(0).standard_normal((STARTS, k, k)))[0]
    turns[0] = np.eye(k)
    every = np.arange(p)
    side = _SideBySide(scatter.part(every, every), alpha, ridge, safe)
    here = side.products(turns @ V.T)
    moved, momentum, size = np.zeros_like(here), np.ones(STARTS), np.full(STARTS, safe)
    lowest, pace = np.zeros(STARTS), np.zeros(STARTS)  # F is 0 where B is
    for number in range(1, STEPS + 1):
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        push, momentum = (momentum - 1) / following, following
        ahead = here + push[:, None, None] * moved
        SA, slope = side.slope(ahead)
        there = side.proximal(ahead, slope, size)
        moved, here = there - here, there
        step = there[..., :-p] - ahead[..., :-p]
        momentum[_products(step[..., :p], moved[..., :p]) < 0] = 1.0
        size = side.longest(step, size)
        if number % LOOK == 0:
            value = side.value(ahead, SA, slope)
            slow = lowest - value <= SLOW * np.abs(value)
            pace, lowest = np.maximum(lowest - value, FORGET * pace), np.minimum(lowest, value)
            near = lowest - lowest.min() <= AHEAD * pace
            near[lowest.argmin()] = True
            if slow[near].all():
                break
            state = (here, moved, momentum, size, lowest, pace)
            here, moved, momentum, size, lowest, pace = (each[near] for each in state)
    return np.ascontiguousarray(here[lowest.argmin(), :, :p].T)


class _SideBySide:
    """The objective of some B at once, A eliminated; each is B' (k, p), then B'S if that matters, then B'SS."""

    def __init__(self, S: Array, alpha: float, ridge: float, safe: float) -> None:
        self.p, self.alpha, self.safe = len(S), alpha, safe
        self.on_fit, self.on_ridge = weights(ridge)
        self.matrices = np.hstack([S, S @ S]) if self.on_fit else S @ S

    def products(self, B: Array) -> Array:
        starts, k, p = B.shape
        return np.concatenate([B, (B.reshape(starts * k, p) @ self.matrices).reshape(starts, k, -1)], axis=2)

    def slope(self, here: Array) -> tuple[Array, Array]:
        """Return (S A)' and half the gradient."""
        B, SSB = here[..., : self.p], here[..., -self.p :]
        squares, Q = np.linalg.eigh(B @ SSB.transpose(0, 2, 1))
        s = np.sqrt(np.maximum(squares, 0.0))
        inverse = np.divide(1.0, s, out=np.zeros_like(s), where=s > np.sqrt(RANK) * s[:, -1:])
        SA = ((Q * inverse[:, None]) @ Q.transpose(0, 2, 1)) @ SSB
        slope = self.on_ridge * B - SA
        if self.on_fit:
            slope += here[..., self.p : -self.p]
        return SA, slope

    def value(self, here: Array, SA: Array, slope: Array) -> Array:
        """Return the objective."""
        B = here[..., : self.p]
        return _products(slope - SA, B) + self.alpha * np.abs(B).sum(axis=(1, 2))

    def proximal(self, here: Array, slope: Array, size: Array) -> Array:
        """Return the points after a proximal step."""
        moved = here[..., : self.p] - (2 * size)[:, None, None] * slope
        threshold = (self.alpha * size)[:, None, None]
        return self.products(moved - np.minimum(np.maximum(moved, -threshold), threshold))

    def longest(self, step: Array, size: Array) -> Array:
        """Return how long the next step may be, by the curvature of tr(B'SB) + ridge |B|^2 along this one."""
        if not self.on_fit:
            return size  # which is exact
        D, SD = step[..., : self.p], step[..., self.p :]
        square, bend = _products(D, D), _products(D, SD)
        curvature = 2 * (bend + self.on_ridge * square)
        longest = CAUTION * np.divide(square, curvature, out=np.zeros_like(square), where=bend > 0)
        return np.maximum(np.minimum(GROWTH * size, longest), self.safe)


def _products(A: Array, B: Array) -> Array:
    return np.asarray(np.einsum("mkp,mkp->m", A, B))
