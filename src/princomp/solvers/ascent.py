"""Many small smooth maximisations at once, by L-BFGS (Nocedal, Math. Comp. 1980), each row of an array its own.

Objective: maximise f_i(z) over z (p,), for rows i = 1 ... b that have nothing to do with each other. All rows take
their steps together, so that values and gradients are a few large products.

A step of a row is taken only if its value grows enough (Armijo); else a shorter one is tried in the next round. So the
value of no row ever falls. A row ends, and is not looked at again, when its residual

    r = |gradient f(z)| / (sqrt(c) f(z))

is at most ``tol``, when no step makes its value grow, or after ``most`` rounds. c is a curvature: near a maximum of
about f the Hessian is about -c f I, so that gradient / (c f) is the first step of a row, and r is its length in units
of 1 / sqrt(c).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np

from princomp._typing import Array

MEMORY = 6  # steps that a direction is made of
ARMIJO = 1e-4
SHORTEST = 1e-9  # of a step: if that is no way up, the slope is rounding


class Objective(Protocol):
    """Functions f_i of one point each."""

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Return values (b,) and gradients (b, p) at points (b, p)."""

    def of(self, some: Array) -> Self:
        """Return the functions of some rows, by mask."""


@dataclass(frozen=True)
class Ascent:
    """Where rows ended."""

    points: Array  # (b, p)
    values: Array  # (b,)
    residuals: Array  # (b,)


@dataclass
class _Climb:
    """Rows that are on their way."""

    number: Array  # (b,), of the row
    point: Array  # (b, p)
    value: Array  # (b,)
    gradient: Array  # (b, p)
    direction: Array  # (b, p)
    slope: Array  # (b,), along the direction
    step: Array  # (b,), the next one to try
    moves: Array  # (b, MEMORY, p), steps taken, the latest last
    turns: Array  # (b, MEMORY, p), how much the gradient fell by them; 0 for none

    def of(self, some: Array) -> _Climb:
        """Return some rows, by mask."""
        return _Climb(*(getattr(self, each.name)[some] for each in fields(self)))


def ascend(f: Any, start: Array, curvature: float, *, tol: float, most: int) -> Ascent:
    """Return points of no slope, each reached uphill from its start (b, p); ``f`` is an `Objective`."""
    points = start.copy()
    values, gradients = f(points)
    residuals = residual(values, gradients, curvature)
    climb = _begin(points, values, gradients, curvature)
    going = residuals > tol
    for _ in range(most):
        if not going.all():
            climb, f = climb.of(going), f.of(going)
        if not len(climb.number):
            break
        going = _round(f, climb, curvature)
        points[climb.number], values[climb.number] = climb.point, climb.value
        residuals[climb.number] = residual(climb.value, climb.gradient, curvature)
        going &= residuals[climb.number] > tol
    return Ascent(points, values, residuals)


def residual(values: Array, gradients: Array, curvature: float) -> Array:
    """Return r of each row: 0 where there is no slope, inf where there is one and the value is not positive."""
    length = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
    out = np.where(length > 0, np.inf, 0.0)
    up = (values > 0) & (length > 0)
    with np.errstate(over="ignore"):
        out[up] = length[up] / values[up] / np.sqrt(curvature)
    return out


def _begin(points: Array, values: Array, gradients: Array, curvature: float) -> _Climb:
    b, p = points.shape
    memory = np.zeros((b, MEMORY, p))
    climb = _Climb(
        *(np.arange(b), points.copy(), values.copy(), gradients.copy()),
        *(np.zeros((b, p)), np.zeros(b), np.ones(b), memory, memory.copy()),
    )
    _aim(climb, np.ones(b, bool), curvature)
    return climb


def _round(f: Any, climb: _Climb, curvature: float) -> Array:
    """Try a step of each row, in place; return which rows can go on."""
    trial = climb.point + climb.step[:, None] * climb.direction
    with np.errstate(over="ignore", invalid="ignore"):
        value, gradient = f(trial)
        hoped = climb.step * climb.slope
        gain = value - climb.value
        taken = (gain >= ARMIJO * hoped) & np.isfinite(gradient).all(axis=1)
    _remember(climb, taken, trial, gradient)
    climb.point[taken], climb.value[taken], climb.gradient[taken] = trial[taken], value[taken], gradient[taken]
    # The peak of the parabola through what is known, within bounds.
    gain = np.where(np.isfinite(gain), gain, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        shorter = np.nan_to_num(hoped / (2 * (hoped - gain)), nan=0.1)
    climb.step = np.where(taken, 1.0, climb.step * np.clip(shorter, 0.1, 0.5))
    _aim(climb, taken, curvature)
    return climb.step >= SHORTEST


def _remember(climb: _Climb, taken: Array, trial: Array, gradient: Array) -> None:
    """Add the step of rows that take one to their memory."""
    for memory, last in ((climb.moves, trial - climb.point), (climb.turns, climb.gradient - gradient)):
        memory[taken, :-1] = memory[taken, 1:]
        memory[taken, -1] = last[taken]


def _aim(climb: _Climb, some: Array, curvature: float) -> None:
    """Set the direction of some rows, from gradient and memory: the two loops of L-BFGS.

    Of the memory, steps count along which the slope fell.
    """
    d, moves, turns = climb.gradient[some], climb.moves[some], climb.turns[some]
    bends = np.einsum("ijk,ijk->ij", moves, turns)
    weight = np.divide(1.0, bends, out=np.zeros_like(bends), where=bends > 0)
    shares = np.zeros_like(weight)
    for j in reversed(range(MEMORY)):
        shares[:, j] = weight[:, j] * np.einsum("ij,ij->i", moves[:, j], d)
        d -= shares[:, j, None] * turns[:, j]
    squares = np.einsum("ij,ij->i", turns[:, -1], turns[:, -1])
    known = (squares > 0) & (bends[:, -1] > 0)
    size = _first_step(climb.value[some], climb.gradient[some], curvature)
    size[known] = bends[known, -1] / squares[known]
    d *= size[:, None]
    for j in range(MEMORY):
        d += (shares[:, j] - weight[:, j] * np.einsum("ij,ij->i", turns[:, j], d))[:, None] * moves[:, j]
    climb.direction[some] = d
    climb.slope[some] = np.einsum("ij,ij->i", d, climb.gradient[some])


def _first_step(values: Array, gradients: Array, curvature: float) -> Array:
    """Return what gradients are multiplied by: 1 / (c f), or, where f is not positive, to be 1 / sqrt(c) in length."""
    length = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
    unit = np.divide(1.0, np.sqrt(curvature) * length, out=np.zeros_like(length), where=length > 0)
    with np.errstate(divide="ignore", over="ignore"):
        size = np.where(values > 0, 1 / (curvature * values), np.inf)
    return np.where(np.isfinite(size * length), size, unit)
