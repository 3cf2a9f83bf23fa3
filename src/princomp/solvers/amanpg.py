"""Alternating manifold proximal gradient method (Chen, Ma, Xue & Zou, INFORMS J. Optimization 2020).

Objective: F(A, B) = H(A, B) + f(A) + g(B) over A on one manifold and B on another; H smooth, f and g with a prox. For
A, and then, with the new A, for B:

    D = argmin <grad H, D> + f(A + D) + |D|^2 / (2 t)  over the tangent space at A,
    a = 1; while F(retract(a D)) > F - a |D|^2 / (2 t): a = gamma a;   A = retract(a D).

The step sizes t are at most 1 / L, L the Lipschitz constants of the partial gradients. A point with
|D_A / t1|^2 + |D_B / t2|^2 <= eps^2 is eps-stationary; it is reached after at most
2 (F0 - F*) / ((gamma a1 t1 + gamma a2 t2) eps^2) steps, a1 and a2 the smallest a that no search goes below.
Without f, or on a Euclidean space, D is closed form; else its multiplier is found by a semismooth Newton method
(`princomp.certificates.canonical`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike

import numpy as np

from princomp._typing import Array
from princomp.certificates.canonical import Side, step_length, tangent_step
from princomp.certificates.regression import stationarity, weights
from princomp.manifolds import Euclidean, Manifold, Stiefel
from princomp.penalties import ColumnL1, Penalty, Zero
from princomp.result import Callback, Result, State, Value, run
from princomp.solvers.regression import safe_step
from princomp.solvers.scatter import Scatter

MAX_BACKTRACKS = 40
OBJECTIVE_ROUNDING = 1e-14  # of F, relatively: a step that raises it by less has not failed
A_STEP = 2.0  # of sparse PCA, for A, over the largest eigenvalue: 0.5 took 222 states in place of 206, 8 as many


@dataclass(frozen=True)
class Smooth:
    """H: its value and its two partial gradients, each a function of (A, B)."""

    value: Callable[[Array, Array], float]
    gradient_a: Callable[[Array, Array], Array]
    gradient_b: Callable[[Array, Array], Array]


def amanpg(
    smooth: Smooth,
    A: Array,
    B: Array,
    *,
    steps: tuple[float, float],
    manifolds: tuple[Manifold, Manifold] = (Euclidean(), Euclidean()),
    penalties: tuple[Penalty, Penalty] = (Zero(), Zero()),
    gamma: float = 0.5,
    tol: float = 1e-5,
    max_iter: int = 10_000,
    callback: Callback | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> Result:
    """Minimise H(A, B) + f(A) + g(B) over two manifolds by alternating manifold proximal gradient steps.

    Parameters
    ----------
    smooth : Smooth
        H: ``value(A, B)``, ``gradient_a(A, B)``, ``gradient_b(A, B)``.
    A, B : array
        Where to start; points of the manifolds.
    steps : (float, float)
        Step sizes t1 and t2, at most 1 / L of the partial gradients; larger ones are cut by the line search.
    manifolds : pair of Manifold
        From `princomp.manifolds`.
    penalties : pair of Penalty
        f and g, from `princomp.penalties`.
    gamma : float, default 0.5
        By what a step that leads too high is multiplied.
    tol : float, default 1e-5
        Stop at an eps-stationary point: sqrt(|D_A / t1|^2 + |D_B / t2|^2) <= tol.
    max_iter : int, default 10000
        Bound on steps.
    callback : callable, optional
        Called with each `State`; returning True stops.
    checkpoint : path, optional
        Where to keep an unfinished run.

    Returns
    -------
    Result
        ``value["A"]``, ``value["B"]``, ``objective``, ``certificate``, ``status``, ``history``.

    Examples
    --------
    The leading eigenvector of a matrix, half of it on each side:

    >>> import numpy as np
    >>> from princomp.manifolds import Sphere
    >>> from princomp.solvers.amanpg import Smooth, amanpg
    >>> S = np.diag([3.0, 1.0])
    >>> smooth = Smooth(lambda a, b: -a @ S @ b, lambda a, b: -S @ b, lambda a, b: -S @ a)
    >>> begin = np.array([0.6, 0.8])
    >>> found = amanpg(smooth, begin, begin, steps=(0.3, 0.3), manifolds=(Sphere(), Sphere()))
    >>> found.value["A"].round(4).tolist(), round(found.objective, 4)
    ([1.0, 0.0], -3.0)
    """
    sides = tuple(Side(*side) for side in zip(manifolds, penalties, steps))
    solver = partial(alternate, smooth, sides=(sides[0], sides[1]), gamma=gamma)
    begin = start(np.array(A, float), np.array(B, float))
    return run(solver, begin, tol=tol, max_iter=max_iter, callback=callback, checkpoint=checkpoint)


def start(A: Array, B: Array) -> Value:
    """Return the value before the first step."""
    return {"A": A, "B": B, "lowest": np.ones(2), "iteration": np.array(0)}


def alternate(
    smooth: Smooth,
    value: Value,
    *,
    sides: tuple[Side, Side],
    gamma: float,
    measure: Callable[[Array, Array], float] | None = None,
    turn: Callable[[Array, Array], Array] | None = None,
    steps: int = 1,
) -> Iterator[State]:
    """Yield states of falling F, each with the residual of its own (A, B); ``iteration`` counts them.

    ``value`` is from `start`, or of an earlier state, "lowest" in it being the smallest a of either side's searches,
    the constants of the bound on steps. ``measure(A, B)``, if given, is the residual, instead of the absolute one of
    the module's docstring; ``turn(A, B)`` an A at which F is no higher, taken after each step; a state is ``steps``
    steps.
    """
    A, B, lowest, iteration = value["A"], value["B"], value["lowest"], int(value["iteration"])
    left, right = sides

    def total(A: Array, B: Array) -> float:
        return float(smooth.value(A, B)) + left.penalty.value(A) + right.penalty.value(B)

    D = tangent_step(left, A, smooth.gradient_a(A, B))
    while True:
        for _ in range(steps):
            A, first = _search(left, A, D, lambda A, B=B: total(A, B), gamma)  # type: ignore[misc]
            D = tangent_step(right, B, smooth.gradient_b(A, B))
            B, second = _search(right, B, D, lambda B, A=A: total(A, B), gamma)  # type: ignore[misc]
            lowest = np.minimum(lowest, [first, second])
            A = A if turn is None else turn(A, B)
            D = tangent_step(left, A, smooth.gradient_a(A, B))
        iteration += 1
        if measure is None:
            residual = step_length(sides, (D, tangent_step(right, B, smooth.gradient_b(A, B))))
        else:
            residual = measure(A, B)
        found = {"A": A, "B": B, "lowest": lowest, "iteration": np.array(iteration)}
        yield State(found, total(A, B), residual, iteration)


def _search(side: Side, A: Array, D: Array, total: Callable[[Array], float], gamma: float) -> tuple[Array, float]:
    """Return the point after the line search, and the a that it ended with."""
    here, square, a = total(A), float(np.vdot(D, D)), 1.0
    for _ in range(MAX_BACKTRACKS):
        new = side.manifold.retract(A, a * D)
        if total(new) <= here - a * square / (2 * side.step) + OBJECTIVE_ROUNDING * abs(here):
            return new, a
        a *= gamma
    return A, 1.0  # nothing gained, in the digits that there are


def sparse_pca(
    scatter: Scatter, value: Value, *, alpha: Array, ridge: float, gamma: float = 0.5, steps: int = 1
) -> Iterator[State]:
    """Yield states of `alternate` for `princomp.solvers.regression`'s objective, with its relative residual.

    Both sub-problems are closed form. The step size for B is 1 / L of the quadratic, 1/2 for infinite ridge, where it
    is exact. H is linear in A; the step for A is one over the size of its gradient where B is about as large as the
    answer.

    ``scatter``, ``value``, ``alpha`` and ``ridge`` are those of `princomp.solvers.regression.block`.
    """
    on_fit, on_ridge = weights(ridge)
    largest = max(float(value["largest"]), np.finfo(float).tiny)
    left = Side(Stiefel(), Zero(), A_STEP / (largest if on_fit else largest**2))
    right = Side(Euclidean(), ColumnL1(alpha), safe_step(largest, ridge))
    times_a, times_b = _remembering(scatter.apply), _remembering(scatter.apply)
    smooth = Smooth(
        lambda A, B: on_fit * np.vdot(B, times_b(B)) - 2 * np.vdot(A, times_b(B)) + on_ridge * np.vdot(B, B),
        lambda A, B: -2 * times_b(B),
        lambda A, B: 2 * (on_fit * times_b(B) - times_a(A) + on_ridge * B),
    )

    def measure(A: Array, B: Array) -> float:
        return stationarity(A, B, times_a(A), times_b(B), alpha, ridge)

    begin = {"lowest": np.ones(2)} | dict(value)
    for state in alternate(smooth, begin, sides=(left, right), gamma=gamma, measure=measure, steps=steps):
        yield replace(state, value={**state.value, "largest": value["largest"]})


def _remembering(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function that keeps its last answers: H and its gradients ask for the same products."""
    last: list[tuple[Array, Array]] = []

    def answer(V: Array) -> Array:
        for known, product in last:
            if known is V:
                return product
        last.insert(0, (V, apply(V)))
        del last[2:]
        return last[0][1]

    return answer
