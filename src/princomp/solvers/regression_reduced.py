"""Steps of `princomp.solvers.regression` on a few rows and columns of B, the others being zero.

There A is eliminated: for given B the best A is polar(SB), which leaves

    F(B) = tr(B'SB) + ridge |B|^2 - 2 |SB|_* + sum_j alpha_j |B_j|_1,

|SB|_* the sum of the singular values, that is of the roots of the eigenvalues of B'SSB (k, k). So all that is needed
are products of B with those rows and columns of S and of SS.
"""

from dataclasses import dataclass

import numpy as np

from princomp._typing import Array
from princomp.certificates.regression import soft
from princomp.solvers.scatter import Part, Squares

# Newton steps taken too early end in worse minima: first proximal steps, until one gains less than this share of F.
SLOW = 3e-6
SLOW_STEPS = 3  # in a row
CAUTION = 0.9  # the next step is as long as the curvature along the last one allows, times this
GROWTH = 1.1  # and at the most this many times as long as the last one
CONJUGATE_STEPS = 8  # products with the Hessian in one Newton step, at the most
FORCING = 0.3  # what a Newton step leaves of the gradient, at the most
FAR = 0.1  # share of |B| to go along a direction whose curvature is not positive
SHRINK, SHORTEST = 0.25, 4.0**-8  # a Newton step that leads too high is shortened, so far at the most
DECREASE = 1e-4  # share of the expected decrease that a step must achieve
OBJECTIVE_ROUNDING = 1e-14  # of F, relatively; a curvature below this share of the largest counts as none
RANK = 1e-10  # singular values below this share of the largest count as zero


@dataclass(frozen=True)
class Point:
    """B on the reduced, and what follows from it; SB = A P with P = Q diag(s) Q'."""

    B: Array
    SB: Array
    SSB: Array
    SA: Array
    s: Array
    Q: Array
    inverse: Array  # of P
    value: float


@dataclass(frozen=True)
class ReducedObjective:
    """The objective, A eliminated, for some rows and columns of B, the others being zero.

    ``part`` gives products, ``rough`` those with the Hessian, whose last digits do not matter; tr(B'SB) has the weight
    ``on_fit``, |B|^2 ``on_ridge``; ``step`` is the size of a proximal step; a Newton step that leads too high is
    multiplied by ``shrink``.
    """

    part: Part
    rough: Part
    alpha: Array
    on_fit: float
    on_ridge: float
    step: float
    shrink: float = SHRINK

    def at(self, B: Array) -> Point:
        """Evaluate at B."""
        return self._point(B, *self.part(B))

    def _point(self, B: Array, SB: Array, SSB: Array) -> Point:
        squares, Q = np.linalg.eigh(B.T @ SSB)
        s = np.sqrt(np.maximum(squares, 0.0))
        live = s > np.sqrt(RANK) * s[-1]
        inverse = (Q * np.divide(1.0, s, out=np.zeros_like(s), where=live)) @ Q.T
        smooth = self.on_fit * float(np.vdot(B, SB)) - 2 * float(s.sum()) + self.on_ridge * float(np.vdot(B, B))
        penalty = float(self.alpha @ np.abs(B).sum(axis=0))
        return Point(B, SB, SSB, SSB @ inverse, s, Q, inverse, smooth + penalty)

    def beyond(self, before: Point, here: Point, push: float) -> Point:
        """Evaluate at here + push (here - before), without a product."""
        if push == 0:
            return here
        names = ("B", "SB", "SSB")
        return self._point(*((1 + push) * getattr(here, name) - push * getattr(before, name) for name in names))

    def gradient(self, here: Point) -> Array:
        """Return the gradient of all but the penalty."""
        return 2 * (self.on_fit * here.SB - here.SA + self.on_ridge * here.B)

    def residual(self, here: Point) -> float:
        """Return what the residual is if nothing but these rows and columns matters."""
        size = 2 * float(np.linalg.norm(here.SA))
        if size == 0:
            return 0.0
        step = 1 / (2 * self.on_fit * float(np.linalg.norm(here.SA, axis=0).max()) + 2 * self.on_ridge)
        moved = soft(here.B - step * self.gradient(here), step * self.alpha) - here.B
        return float(np.linalg.norm(moved)) / (step * size)

    def curvature(self, here: Point, D: Array) -> Array:
        """Return the Hessian times D.

        With M = SB = A P, dM = S D and C = A'dM, dA = A T + (dM - A C) P^-1, where T P + P T = C - C'.
        """
        SD, SSD = self.rough(D)
        C = here.SA.T @ D
        sums = here.s[:, None] + here.s
        turn = here.Q @ ((here.Q.T @ (C - C.T) @ here.Q) / np.where(sums > 0, sums, 1.0)) @ here.Q.T
        S_dA = here.SA @ (turn - C @ here.inverse) + SSD @ here.inverse
        return 2 * (self.on_fit * SD - S_dA + self.on_ridge * D)

    def proximal(self, here: Point, step: float = 0.0) -> Point:
        """Return the point after one proximal gradient step, by default of a size that is always safe."""
        step = step or self.step
        return self.at(soft(here.B - step * self.gradient(here), step * self.alpha))

    def descend(self, here: Point, steps: int) -> tuple[Point, bool]:
        """Return the point after many proximal gradient steps, and whether the last one gained little.

        Momentum is given up where it leads upwards (O'Donoghue & Candes, Found. Comput. Math. 2015). All but
        tr(B'SB) + ridge |B|^2 is concave, so a step is short enough if it suits the curvature of these along it.
        """
        if isinstance(self.part, Squares) and (compiled := self.part.compiled(here.B)) is not None:
            terms, limits = (self.alpha, self.on_fit, self.on_ridge), (steps, SLOW, SLOW_STEPS, RANK)
            how = compiled.Descent(*terms, *limits, self.step, CAUTION, GROWTH)
            B, settled = compiled.descend(self.part.S, self.part.T, here.B, how)
            return self.at(B.astype(here.B.dtype)), settled
        before, weight, step, slow = here, 1.0, self.step, 0
        for _ in range(steps):
            following = (1 + np.sqrt(1 + 4 * weight**2)) / 2
            ahead, weight = self.beyond(before, here, (weight - 1) / following), following
            while True:
                there = self.proximal(ahead, step)
                curvature = self._along(ahead, there)
                if step * curvature > 1 and step > self.step:
                    step = max(CAUTION / curvature, self.step)
                elif there.value > here.value and ahead is not here:
                    ahead, weight = here, 1.0
                else:
                    break
            if np.vdot(ahead.B - there.B, there.B - here.B) > 0:
                weight = 1.0
            before, here = here, there
            if curvature > 0:
                step = min(GROWTH * step, max(CAUTION / curvature, self.step))
            slow = slow + 1 if before.value - here.value <= SLOW * abs(here.value) else 0
            if slow >= SLOW_STEPS:
                return here, True
        return here, False

    def _along(self, here: Point, there: Point) -> float:
        """Return the curvature of tr(B'SB) + ridge |B|^2 along a step."""
        D = there.B - here.B
        square = float(np.vdot(D, D))
        return 2 * (self.on_fit * float(np.vdot(D, there.SB - here.SB)) / square + self.on_ridge) if square > 0 else 0.0

    def polish(self, here: Point, steps: int, enough: float) -> Point:
        """Return the point after Newton steps, each but the first after a proximal one, until the residual is small."""
        here = self.newton(here)
        for _ in range(steps - 1):
            if self.residual(here) <= enough:
                break
            here = self.newton(self.proximal(here))
        return here

    def newton(self, here: Point) -> Point:
        """Return the point after one Newton step, or ``here`` if that leads no lower."""
        sign = np.sign(here.B)
        gradient = np.where(sign != 0, self.gradient(here) + self.alpha * sign, 0.0)
        direction = self._solve(here, gradient, sign != 0)
        slope = float(np.vdot(gradient, direction))
        size = 1.0
        while size > SHORTEST:
            B = here.B + size * direction
            there = self.at(np.where(B * sign > 0, B, 0.0))  # who would change sign stops at zero
            if there.value <= here.value + DECREASE * size * slope + OBJECTIVE_ROUNDING * abs(here.value):
                return there
            size *= self.shrink
        return here

    def _solve(self, here: Point, gradient: Array, free: Array) -> Array:
        """Return the Newton direction by conjugate gradients, which end where the curvature is not positive."""
        x, r = np.zeros_like(gradient), -gradient
        d, rr = r, float(np.vdot(r, r))
        scale = 2 * float(np.linalg.norm(here.SA))
        if rr == 0 or scale == 0:
            return x
        target = rr * min(FORCING, np.sqrt(np.sqrt(rr) / scale)) ** 2
        for _ in range(CONJUGATE_STEPS):
            Hd = np.where(free, self.curvature(here, d), 0.0)
            bend = float(np.vdot(d, Hd))
            square = float(np.vdot(d, d))
            if bend <= OBJECTIVE_ROUNDING * square / self.step:
                # Downhill, ever more so: far, the line search makes it less.
                return x + max(self.step, FAR * float(np.linalg.norm(here.B)) / np.sqrt(square)) * d
            x = x + (rr / bend) * d
            r = r - (rr / bend) * Hd
            before, rr = rr, float(np.vdot(r, r))
            if rr <= target:
                break
            d = r + (rr / before) * d
        return x
