"""Sparse PCA as a regression (Zou, Hastie & Tibshirani, J. Comput. Graph. Statist. 2006), by blocks and Newton steps.

Objective, over A (p, k) with A'A = I and B (p, k), S = X'X:

    F(A, B) = tr(B'SB) - 2 tr(A'SB) + ridge |B|^2 + sum_j alpha_j |B_j|_1,

and, for infinite ridge (B rescaled), F(A, B) = -2 tr(A'SB) + |B|^2 + sum_j alpha_j |B_j|_1.

For given B the best A is polar(SB), the orthonormal polar factor. That leaves a function of B alone,
tr(B'SB) + ridge |B|^2 - 2 |SB|_* + sum_j alpha_j |B_j|_1, smooth where signs and zeros of B are fixed. It is lowered by
proximal gradient steps, and, once these gain little, by truncated Newton steps on the entries that are not zero, with
a line search that may set further ones to zero. Proximal steps alone would be slow, because a rotation of A and B
together changes F by very little; Newton steps see that curvature. All but one step in many touch the nonzero rows of
B alone, by products with those rows and columns of S and SS: A is formed once for each state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.result import State, Value
from princomp.solvers.scatter import Part, Scatter

Array = NDArray[Any]

# Newton steps taken too early end in worse minima: first proximal steps, so many to a state, until one gains less than
# this share of F.
PLAIN_STEPS = 100
SLOW = 1e-5
NEWTON_STEPS = 3  # to a state
ROUGH = 2e-5  # residual above which single precision will do
WASTE = 1.5  # rows at hand may be this many times those needed
LARGER = 1 + 1e-6  # the largest eigenvalue is known this well
CONJUGATE_STEPS = 15  # products with the Hessian in one Newton step, at the most
FORCING = 0.3  # what a Newton step leaves of the gradient, at the most
HALVINGS = 8
DECREASE = 1e-4  # share of the expected decrease that a step must achieve
ROUNDING = 1e-14
RANK = 1e-10  # singular values below this share of the largest count as zero
# Several starts are compared when their residuals are this, or after so many steps.
SCREEN_TOL = 1e-3
SCREEN_STEPS = 12


def objective(A: Array, B: Array, SB: Array, alpha: Array, ridge: float) -> float:
    """Return F(A, B), with SB = S B."""
    square, own = _weights(ridge)
    penalty = float((alpha * np.abs(B).sum(axis=0)).sum())
    return square * float(np.vdot(B, SB)) - 2 * float(np.vdot(A, SB)) + own * float(np.vdot(B, B)) + penalty


def stationarity(A: Array, B: Array, SA: Array, SB: Array, alpha: Array, ridge: float) -> float:
    """Return how far (A, B) is from stationary: sqrt(|D_A / t1|^2 / |2SB|^2 + |D_B / t2|^2 / |2SA|^2).

    D_A and D_B are the manifold proximal steps of A-ManPG from (A, B). D_A / t1 is the gradient -2SB less its part
    normal to the Stiefel manifold, for any t1; t2 = 1 / (2 max_j |S A_j| + 2 ridge), or 1/2 for infinite ridge. Each
    is measured against the linear part of its gradient, so that X, alpha and ridge may be given in any units: for c X,
    c^2 alpha, c^2 ridge the number is the same.
    """
    A_size, B_size = 2 * float(np.linalg.norm(SB)), 2 * float(np.linalg.norm(SA))
    product = A.T @ SB
    A_part = 2 * float(np.linalg.norm(SB - A @ (product + product.T) / 2))
    square, own = _weights(ridge)
    step = 1 / (2 * square * float(np.linalg.norm(SA, axis=0).max()) + 2 * own) if B_size > 0 or own > 0 else 1.0
    D_B = soft(B - 2 * step * (square * SB - SA + own * B), step * alpha) - B
    B_part = float(np.linalg.norm(D_B)) / step
    return float(np.hypot(A_part / A_size if A_size > 0 else 0.0, B_part / B_size if B_size > 0 else B_part))


def soft(V: Array, threshold: Array) -> Array:
    """Return sign(V) max(|V| - threshold, 0)."""
    return V - np.clip(V, -threshold, threshold)


def polar(M: Array, near: Array) -> Array:
    """Return the orthonormal polar factor of M (p, k); where M has no rank, the part of ``near`` orthogonal to it."""
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    live = s > RANK * s[0] if s[0] > 0 else np.zeros(len(s), bool)
    if not live.all():
        U1 = U[:, live]
        rest = near @ Vt[~live].T
        for _ in range(2):
            rest = rest - U1 @ (U1.T @ rest)
            rest = np.linalg.qr(np.hstack([rest, U[:, ~live]]))[0][:, : rest.shape[1]]
        U[:, ~live] = rest
    A = U @ Vt
    return A @ (1.5 * np.eye(len(s)) - 0.5 * (A.T @ A))  # orthonormal to the last digit


def start(
    scatter: Scatter, k: int, *, alpha: Array, ridge: float, n_init: int = 1, rng: np.random.Generator
) -> dict[str, Array]:
    """Return the value before the first step: A and B are the leading eigenvectors of S.

    With ``n_init`` above 1, as many starts less one, polar(S G) of Gaussian G, are tried too, each until its zeros
    have settled, and the lowest objective is continued.

    Parameters
    ----------
    scatter : Scatter
        S = X'X.
    k : int
        Number of components, at most p.
    alpha : (k,) array
        Weights of the l1 norms.
    ridge : float
        From 0 to infinity.
    n_init : int
        Number of starts.
    rng : Generator
        For the starts beyond the first.

    Returns
    -------
    dict
        "A", "B", "SA", "SB" (p, k); "rows", where B may differ from zero; "settled", whether zeros have settled;
        "largest" eigenvalue of S; "residual"; "iteration".
    """
    values, V = scatter.leading(k, rng)
    largest = max(float(values[0]), 0.0)
    first = begin_at(scatter, V, V, largest)
    if n_init == 1:
        return first
    ends = [_screen(scatter, first, alpha, ridge)]
    for _ in range(n_init - 1):
        A = polar(scatter.apply(rng.standard_normal(V.shape)), V)
        ends.append(_screen(scatter, begin_at(scatter, A, A, largest), alpha, ridge))
    best = min(ends, key=lambda state: state.objective)
    return dict(best.value) | {"iteration": np.array(0)}


def begin_at(scatter: Scatter, A: Array, B: Array, largest: float) -> dict[str, Array]:
    """Return the value for given A and B, and the largest eigenvalue of S."""
    SB = scatter.apply(B)
    return {
        "A": A,
        "B": B,
        "SA": SB if A is B else scatter.apply(A),
        "SB": SB,
        "rows": np.zeros(0, np.intp),
        "settled": np.array(False),
        "residual": np.array(np.inf),
        "largest": np.array(largest),
        "iteration": np.array(0),
    }


def _screen(scatter: Scatter, value: Value, alpha: Array, ridge: float) -> State:
    """Return the first state of residual at most SCREEN_TOL, or the last of SCREEN_STEPS."""
    states = islice(block(scatter, value, alpha=alpha, ridge=ridge), SCREEN_STEPS)
    state = next(states)
    while state.residual > SCREEN_TOL:
        following = next(states, None)
        if following is None:
            break
        state = following
    return state


def block(scatter: Scatter, value: Value, *, alpha: Array, ridge: float) -> Iterator[State]:
    """Yield states of falling F, each with A = polar(S B).

    Parameters
    ----------
    scatter : Scatter
        S = X'X.
    value : mapping
        From `start`, `begin_at`, or of an earlier state.
    alpha : (k,) array
        Weights of the l1 norms.
    ridge : float
        From 0 to infinity.

    Yields
    ------
    State
        ``value`` as `start` returns it; ``residual`` is `stationarity`. ``iteration`` counts states: each stands for
        one Newton step or for many proximal ones.
    """
    square, own = _weights(ridge)
    A, B, SA, SB, rows = (value[name] for name in ("A", "B", "SA", "SB", "rows"))
    iteration, settled = int(value["iteration"]), bool(value["settled"])
    step = 1 / max(2 * square * LARGER * float(value["largest"]) + 2 * own, np.finfo(float).tiny)
    residual = float(value["residual"])
    roughly = residual > ROUGH
    part = scatter.restrict(rows, roughly=roughly) if len(rows) else None
    while True:
        new = soft(B - 2 * step * (square * SB - SA + own * B), step * alpha)
        needed, columns = np.flatnonzero(new.any(axis=1)), np.flatnonzero(new.any(axis=0))
        before, roughly = roughly, residual > ROUGH
        serves = part is not None and _serves(rows, needed)
        if len(needed) and not (serves and roughly == before):
            rows = rows if serves else needed
            part = scatter.restrict(rows, roughly=roughly)
        B = np.zeros_like(new)
        if part is not None and len(needed):
            face = _Face(part, alpha[columns], square, own, step)
            here = face.at(new[np.ix_(rows, columns)])
            steps = min(PLAIN_STEPS, 10 * 2**iteration)
            here, settled = (face.polish(here), settled) if settled else face.descend(here, steps)
            B[np.ix_(rows, columns)] = here.B
        inside = B[rows]
        SB = scatter.apply_rows(rows, inside) if inside.any() else np.zeros_like(B)
        A = polar(SB, A)
        SA = scatter.apply(A)
        iteration += 1
        found = {"A": A, "B": B, "SA": SA, "SB": SB, "rows": rows, "settled": np.array(settled)}
        residual = stationarity(A, B, SA, SB, alpha, ridge)
        found |= {"largest": value["largest"], "residual": np.array(residual), "iteration": np.array(iteration)}
        yield State(found, objective(A, B, SB, alpha, ridge), residual, iteration)


def _serves(rows: Array, needed: Array) -> bool:
    """Tell whether the rows at hand hold those needed, and not too many more."""
    return len(rows) <= WASTE * len(needed) and bool(np.isin(needed, rows, assume_unique=True).all())


def _weights(ridge: float) -> tuple[float, float]:
    """Return the weights of tr(B'SB) and of |B|^2."""
    return (0.0, 1.0) if np.isinf(ridge) else (1.0, float(ridge))


@dataclass(frozen=True)
class _Point:
    """B on the face, and what follows from it; SB = A P with P = Q diag(s) Q'."""

    B: Array
    SB: Array
    SA: Array
    s: Array
    Q: Array
    inverse: Array  # of P
    value: float


@dataclass(frozen=True)
class _Face:
    """The objective, A eliminated, for some rows and columns of B, the others being zero."""

    part: Part
    alpha: Array
    square: float
    own: float
    step: float

    def at(self, B: Array) -> _Point:
        """Evaluate at B."""
        SB, SSB = self.part.pair(B)
        squares, Q = np.linalg.eigh(B.T @ SSB)
        s = np.sqrt(np.maximum(squares, 0.0))
        live = s > np.sqrt(RANK) * s[-1]
        inverse = (Q * np.divide(1.0, s, out=np.zeros_like(s), where=live)) @ Q.T
        smooth = self.square * float(np.vdot(B, SB)) - 2 * float(s.sum()) + self.own * float(np.vdot(B, B))
        penalty = float(self.alpha @ np.abs(B).sum(axis=0))
        return _Point(B, SB, SSB @ inverse, s, Q, inverse, smooth + penalty)

    def gradient(self, here: _Point) -> Array:
        """Return the gradient of all but the penalty."""
        return 2 * (self.square * here.SB - here.SA + self.own * here.B)

    def curvature(self, here: _Point, D: Array) -> Array:
        """Return the Hessian times D.

        With M = SB = A P, dM = S D and C = A'dM, dA = A T + (dM - A C) P^-1, where T P + P T = C - C'.
        """
        SD, SSD = self.part.pair(D)
        C = here.SA.T @ D
        sums = here.s[:, None] + here.s
        turn = here.Q @ ((here.Q.T @ (C - C.T) @ here.Q) / np.where(sums > 0, sums, 1.0)) @ here.Q.T
        S_dA = here.SA @ turn + (SSD - here.SA @ C) @ here.inverse
        return 2 * (self.square * SD - S_dA + self.own * D)

    def proximal(self, here: _Point) -> _Point:
        """Return the point after one proximal gradient step."""
        return self.at(soft(here.B - self.step * self.gradient(here), self.step * self.alpha))

    def descend(self, here: _Point, steps: int) -> tuple[_Point, bool]:
        """Return the point after many proximal gradient steps, and whether the last one gained little."""
        for _ in range(steps):
            before = here.value
            here = self.proximal(here)
            if before - here.value <= SLOW * abs(here.value):
                return here, True
        return here, False

    def polish(self, here: _Point) -> _Point:
        """Return the point after a few Newton steps, each but the first after a proximal one."""
        here = self.newton(here)
        for _ in range(NEWTON_STEPS - 1):
            here = self.newton(self.proximal(here))
        return here

    def newton(self, here: _Point) -> _Point:
        """Return the point after one Newton step, or ``here`` if that leads no lower."""
        sign = np.sign(here.B)
        gradient = np.where(sign != 0, self.gradient(here) + self.alpha * sign, 0.0)
        direction = self._solve(here, gradient, sign != 0)
        slope = float(np.vdot(gradient, direction))
        size = 1.0
        for _ in range(HALVINGS):
            B = here.B + size * direction
            there = self.at(np.where(B * sign > 0, B, 0.0))  # who would change sign stops at zero
            if there.value <= here.value + DECREASE * size * slope + ROUNDING * abs(here.value):
                return there
            size /= 4
        return here

    def _solve(self, here: _Point, gradient: Array, free: Array) -> Array:
        """Return the Newton direction by conjugate gradients, cut short where the curvature is not positive."""
        x, r = np.zeros_like(gradient), -gradient
        d, rr = r, float(np.vdot(r, r))
        scale = 2 * float(np.linalg.norm(here.SA))
        if rr == 0 or scale == 0:
            return x
        target = rr * min(FORCING, np.sqrt(np.sqrt(rr) / scale)) ** 2
        for j in range(CONJUGATE_STEPS):
            Hd = np.where(free, self.curvature(here, d), 0.0)
            bend = float(np.vdot(d, Hd))
            if bend <= ROUNDING * float(np.vdot(d, d)) / self.step:
                return x if j else self.step * d
            x = x + (rr / bend) * d
            r = r - (rr / bend) * Hd
            before, rr = rr, float(np.vdot(r, r))
            if rr <= target:
                break
            d = r + (rr / before) * d
        return x
