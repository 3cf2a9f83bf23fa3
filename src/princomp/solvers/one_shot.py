"""Elastic-net regression of fixed principal component scores (Zou, Hastie & Tibshirani 2006, section 3.1).

Objective, V (p, k) the principal axes and S = X'X: for each component j

    |X V_j - X b|^2 + ridge |b|^2 + alpha_j |b|_1,

that is `princomp.solvers.regression`'s objective for A = V, never improved upon: convex, one regression for each
component. Without the l1 norm b is parallel to V_j (ridge regression of scores gives the component back). Solved by
accelerated proximal gradient steps with restarts (Beck & Teboulle, SIAM J. Imaging Sci. 2009; O'Donoghue & Candes,
Found. Comput. Math. 2015).
"""

from collections.abc import Iterator

import numpy as np

from princomp._typing import Array
from princomp.certificates.regression import soft, step_of_loadings, weights
from princomp.result import State, Value
from princomp.solvers.regression import objective, safe_step
from princomp.solvers.scatter import Scatter

STEPS = 10  # to a state: three fits took 195 with 1, 210 with 10, 250 with 50


def start(scatter: Scatter, k: int, rng: np.random.Generator) -> Value:
    """Return the value before the first step: A = B = V."""
    values, V = scatter.leading(k, rng)
    SV = scatter.apply(V)
    begin = {"A": V, "SA": SV, "B": V, "SB": SV, "before": V, "S before": SV}
    return begin | {"momentum": np.ones(k), "largest": np.array(max(float(values[0]), 0.0)), "iteration": np.array(0)}


def one_shot(scatter: Scatter, value: Value, *, alpha: Array, ridge: float) -> Iterator[State]:
    """Yield states that converge to the regressions, all components at once.

    The parameters are those of `princomp.solvers.regression.block`; a value has A = V, B, their products with S, and
    the point before, with the momentum of each column.
    """
    on_fit, on_ridge = weights(ridge)
    A, SA, B, SB, before, S_before, momentum = (
        value[name] for name in ("A", "SA", "B", "SB", "before", "S before", "momentum")
    )
    iteration = int(value["iteration"])
    step = safe_step(float(value["largest"]), ridge)
    while True:
        for _ in range(STEPS):
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            push = (momentum - 1) / following
            Y, SY = B + push * (B - before), SB + push * (SB - S_before)
            new = soft(Y - 2 * step * (on_fit * SY - SA + on_ridge * Y), step * alpha)
            uphill = ((Y - new) * (new - B)).sum(axis=0) > 0  # the momentum of these columns leads the wrong way
            before, S_before, momentum = B, SB, np.where(uphill, 1.0, following)
            B, SB = new, scatter.apply(new)
        iteration += 1
        found = {"A": A, "SA": SA, "B": B, "SB": SB, "before": before, "S before": S_before, "momentum": momentum}
        found |= {"largest": value["largest"], "iteration": np.array(iteration)}
        residual = step_of_loadings(B, SA, SB, alpha, ridge)
        yield State(found, objective(A, B, SB, alpha, ridge), residual, iteration)
