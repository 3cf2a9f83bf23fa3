"""The regression formulation: tr(B'SB) - 2 tr(A'SB) + ridge |B|^2 + sum_j alpha_j |B_j|_1, A'A = I."""

from functools import partial
from typing import Any

import numpy as np

from princomp._threads import single_blas_thread
from princomp._typing import Array
from princomp.certificates import regression_stationarity
from princomp.estimators.sparse.penalised import weigh_and_fit
from princomp.estimators.sparse.problem import SparseFound, SparseProblem
from princomp.result import Result, measured
from princomp.solvers import amanpg, one_shot, regression
from princomp.solvers.scatter import Data, of_array

STEPS = 10  # of A-ManPG to a state
# Iterations of a search for nonzeros, at the most. Searches that led to them took 34 to 75, those that did not 480.
BUDGET = {"block": 300, "amanpg": 10_000, "one-shot": 10_000}
RIDGE = 1e-6  # of the leading eigenvalue, if nothing else is asked for


def solve(problem: SparseProblem) -> SparseFound:
    """Return what the regression formulation finds."""
    given, square = problem.parameters, problem.unit_squared
    S = problem.scatter
    if isinstance(S, Data):  # many products will be made
        S = of_array(S.X)
    values, V = leading = S.leading(problem.k, problem.rng)
    ridge = RIDGE * float(values[0]) if given["ridge"] is None else float(given["ridge"]) * square
    if not ridge >= 0:
        raise ValueError(f"ridge must be a number of at least 0, or infinity; got {given['ridge']!r}.")
    # At these weights and above, B = 0 is best for A = V, where every fit begins.
    largest = 2.0 * float(np.abs(S.apply(V)).max())

    solver = given["solver"] or "block"
    if solver not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}; got {given['solver']!r}.")

    fixed = solver == "one-shot"

    def fit(alpha: Array, before: Result | None, **limits: Any) -> tuple[Array, Result]:
        if fixed:
            value = one_shot.start(S, problem.k, problem.rng)
        elif before is None:
            how: dict[str, Any] = {"n_init": int(given["n_init"]), "rng": problem.rng, "leading": leading}
            value = regression.start(S, problem.k, alpha=alpha, ridge=ridge, **how, turns=solver == "block")
        else:
            value = regression.begin_at(S, before.value["A"], before.value["B"], float(before.value["largest"]))
        result = problem.drive(partial(SOLVERS[solver], S, alpha=alpha, ridge=ridge), value, **limits)
        return result.value["B"], result

    with single_blas_thread():  # many small products: threads would wait for each other most of the time
        alpha, result = weigh_and_fit(problem, largest, square, fit, warm=not fixed, budget=BUDGET[solver])
    A, B, as_given = result.value["A"], result.value["B"], problem.squares_as_given
    searched = given["nonzeros"] is not None and np.ndim(given["nonzeros"]) == 0  # for no component in particular
    if not alpha.any() and not fixed:
        A, B = _rotated(A, B, S.apply(B))
    elif solver == "block" and (searched or (alpha == alpha[0]).all()):
        # Their order is free: most variance first.
        order = np.argsort(-np.einsum("ij,ij->j", A, S.apply(B)), kind="stable")
        A, B, alpha = A[:, order], B[:, order], alpha[order]
    SA, SB = np.hsplit(problem.measure(np.hstack([A, B])), 2)
    result = measured(result, regression_stationarity(A, B, SA, SB, alpha=alpha, ridge=ridge, fixed=fixed))
    if np.isinf(ridge):  # B carries the units of S here
        B_given, objective = as_given(B), as_given(as_given(result.objective))
        return SparseFound(B, {"A": A, "B": B_given}, float(objective), result, as_given(alpha))
    return SparseFound(B, {"A": A, "B": B}, float(as_given(result.objective)), result, as_given(alpha))


def _rotated(A: Array, B: Array, SB: Array) -> tuple[Array, Array]:
    """Return A and B turned to principal axes: without a penalty any rotation of both is as good."""
    _, Q = np.linalg.eigh(-(B.T @ SB))
    return A @ Q, B @ Q


SOLVERS: dict[str, Any] = {
    "block": regression.block,
    "amanpg": partial(amanpg.sparse_pca, steps=STEPS),
    "one-shot": one_shot.one_shot,
}
