"""Proximal gradient steps of `princomp.solvers.regression_reduced` where B has few nonzeros: zeros cost nothing.

Matrices with one row for each component, so that rows of S and SS are added to rows. Twins: S @ B, and
`ReducedObjective.descend`.
"""

from typing import NamedTuple

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array


class Descent(NamedTuple):
    """The objective, and how to go down."""

    alpha: Array  # (k,)
    on_fit: float
    on_ridge: float
    steps: int
    slow: float  # a step that gains less, relatively, is slow
    slow_steps: int  # in a row, after which it is enough
    rank: float
    least: float  # size of a step that is always safe
    caution: float
    growth: float


@compiled
def _add_rows(S: Array, T: Array, B: Array, SB: Array, TB: Array) -> None:
    """Add B S to SB and B T to TB."""
    for a in range(B.shape[0]):
        for i in range(B.shape[1]):
            b = B[a, i]
            if b != 0.0:
                for j in range(S.shape[0]):
                    SB[a, j] += b * S[i, j]
                    TB[a, j] += b * T[i, j]


@compiled
def _evaluate(B: Array, SB: Array, TB: Array, how: Descent, SA: Array) -> float:
    """Return the objective; put S A into SA."""
    k, w = B.shape
    G = np.zeros((k, k))
    for a in range(k):
        for b in range(k):
            total = 0.0
            for i in range(w):
                if B[a, i] != 0.0:
                    total += B[a, i] * TB[b, i]
            G[a, b] = total
    values, Q = np.linalg.eigh((G + G.T) / 2)
    inverse = np.zeros((k, k))
    value = 0.0
    for c in range(k):
        s = np.sqrt(max(values[c], 0.0))
        value -= 2.0 * s
        if values[c] > how.rank * values[k - 1] and s > 0.0:
            for a in range(k):
                for b in range(k):
                    inverse[a, b] += Q[a, c] * Q[b, c] / s
    for a in range(k):
        quadratic, length, penalty = 0.0, 0.0, 0.0
        for i in range(w):
            b = B[a, i]
            if b != 0.0:
                quadratic += b * SB[a, i]
                length += b * b
                penalty += abs(b)
        value += how.on_fit * quadratic + how.on_ridge * length + how.alpha[a] * penalty
    SA[:] = 0.0
    for a in range(k):
        for b in range(k):
            share = inverse[a, b]
            for i in range(w):
                SA[a, i] += share * TB[b, i]
    return value


@compiled
def _proximal(B: Array, SB: Array, SA: Array, how: Descent, step: float, new: Array) -> None:
    for a in range(B.shape[0]):
        threshold = step * how.alpha[a]
        for i in range(B.shape[1]):
            v = B[a, i] - 2.0 * step * (how.on_fit * SB[a, i] - SA[a, i] + how.on_ridge * B[a, i])
            new[a, i] = v - min(max(v, -threshold), threshold)


@compiled
def _bend(B: Array, new: Array, SB: Array, S_new: Array) -> tuple[float, float]:
    """Return <D, S D> and |D|^2, D = new - B."""
    bend, square = 0.0, 0.0
    for a in range(B.shape[0]):
        for i in range(B.shape[1]):
            d = new[a, i] - B[a, i]
            if d != 0.0:
                bend += d * (S_new[a, i] - SB[a, i])
                square += d * d
    return bend, square


@compiled
def _descend(S: Array, T: Array, B: Array, how: Descent) -> tuple[Array, bool]:
    here, S_here, T_here = B, np.zeros_like(B), np.zeros_like(B)
    _add_rows(S, T, here, S_here, T_here)
    SA = np.empty_like(B)
    value = _evaluate(here, S_here, T_here, how, SA)
    before, S_before, T_before = here, S_here, T_here
    weight, step, few = 1.0, how.least, 0
    for _ in range(how.steps):
        following = (1.0 + np.sqrt(1.0 + 4.0 * weight * weight)) / 2.0
        push = (weight - 1.0) / following
        weight = following
        there = np.empty_like(B)
        while True:
            if push > 0.0:
                start = ((1.0 + push) * here - push * before).astype(B.dtype)
                S_start = ((1.0 + push) * S_here - push * S_before).astype(B.dtype)
                T_start = ((1.0 + push) * T_here - push * T_before).astype(B.dtype)
                _evaluate(start, S_start, T_start, how, SA)
            else:
                start, S_start = here, S_here
                _evaluate(here, S_here, T_here, how, SA)
            _proximal(start, S_start, SA, how, step, there)
            S_there, T_there = np.zeros_like(B), np.zeros_like(B)
            _add_rows(S, T, there, S_there, T_there)
            bend, length = _bend(start, there, S_start, S_there)
            curvature = 2.0 * (how.on_fit * bend / length + how.on_ridge) if length > 0.0 else 0.0
            if step * curvature > 1.0 and step > how.least:
                step = max(how.caution / curvature, how.least)
                continue
            reached = _evaluate(there, S_there, T_there, how, SA)
            if reached > value and push > 0.0:
                push, weight = 0.0, 1.0
                continue
            break
        if push > 0.0:
            turn = 0.0
            for a in range(B.shape[0]):
                for i in range(B.shape[1]):
                    turn += (start[a, i] - there[a, i]) * (there[a, i] - here[a, i])
            if turn > 0.0:
                weight = 1.0
        before, S_before, T_before = here, S_here, T_here
        gain = value - reached
        here, S_here, T_here, value = there, S_there, T_there, reached
        if curvature > 0.0:
            step = min(how.growth * step, max(how.caution / curvature, how.least))
        few = few + 1 if gain <= how.slow * abs(value) else 0
        if few >= how.slow_steps:
            return here, True
    return here, False


def descend(S: Array, T: Array, B: Array, how: Descent) -> tuple[Array, bool]:
    """Return B (w, k) after some steps, and whether the last one gained little."""
    across = np.ascontiguousarray(B.T.astype(S.dtype))
    found, settled = _descend(S, T, across, how._replace(alpha=np.ascontiguousarray(how.alpha, np.float64)))
    return found.T, settled


def two_products(S: Array, T: Array, B: Array) -> tuple[Array, Array]:
    """Return S B and T B, for symmetric S and T (p, p) and B (p, k) of one type."""
    across = np.ascontiguousarray(B.T)
    SB, TB = np.zeros_like(across), np.zeros_like(across)
    _add_rows(S, T, across, SB, TB)
    return SB.T, TB.T


def warm_up() -> None:
    """Compile."""
    how = Descent(np.zeros(2), 1.0, 1.0, 2, 0.0, 1, 0.0, 0.1, 0.9, 1.1)
    for dtype in (np.float32, np.float64):
        square = np.eye(2, dtype=dtype)
        two_products(square, square, square)
        descend(square, square, square, how)
