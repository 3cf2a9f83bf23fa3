"""The constrained formulation: most variance with |v|_2 = 1 and |v|_1 <= bound, one component after the other."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from princomp import certificates
from princomp._typing import Array
from princomp.estimators.sparse.penalised import StoppedError, counts, refuse_checkpoint, stopped_search, warn_if_missed
from princomp.estimators.sparse.problem import Listener, SparseFound, SparseProblem
from princomp.result import Result, Value, measured, warn
from princomp.solvers import constrained
from princomp.solvers.nonzeros import loosest_bound

# Iterations of a search for nonzeros, at the most, for each component: 42 to 108 were seen.
BUDGET = 1000


def solve(problem: SparseProblem) -> SparseFound:
    """Return what the constrained formulation finds."""
    given, p, k = problem.parameters, problem.width, problem.k

    def fit(bounds: Array, value: Value, **limits: Any) -> Result:
        steps = partial(
            constrained.constrained, problem.scatter, bounds=bounds, tol=given["tol"], deflation=given["deflation"]
        )
        return problem.drive(steps, value, **limits)

    if given["nonzeros"] is None:
        asked = max(1.0, 0.4 * np.sqrt(p)) if given["bound"] is None else given["bound"]
        bounds = problem.weights("bound", asked, least=1)
        result = fit(bounds, constrained.start(p))
    else:
        refuse_checkpoint(given)
        bounds, result = _search(fit, counts(given["nonzeros"], k, p), p, problem.tell)
    V = constrained.components(result.value, k)
    lengths = certificates.constrained_stationarity(
        problem.measure, V, bounds=bounds, squares=problem.scatter.diagonal, kind=given["deflation"]
    )
    result = measured(result, float(lengths.max()))
    return SparseFound(V, {"V": V}, float(problem.squares_as_given(result.objective)), result, bounds)


def _search(fit: Callable[..., Result], target: Array, p: int, tell: Listener) -> tuple[Array, Result]:
    """Return the loosest bounds that leave so many nonzeros, and the fit: one component after the other, by bisection.

    With t nonzeros |v|_1 is at most sqrt(t), so that the bound lies between 1 and that. A search that is stopped
    returns the fit it was in, of fewer components; their bounds are the largest there could be.
    """
    value, bounds, fits, spent, more = constrained.start(p), np.zeros(0), 0, 0, ""
    counted: list[int] = []

    def count(bound: float) -> tuple[int, Result]:
        nonlocal fits, spent
        begun = np.append(bounds, bound)
        result = fit(begun, value, warns=False)
        fits, spent = fits + 1, spent + result.n_iter
        if tell.stopped:
            raise StoppedError(begun, result)
        return int((constrained.components(result.value, len(begun))[:, -1] != 0).sum()), result

    def work() -> float:
        return spent / BUDGET

    for wanted in target:
        spent = 0
        try:
            most = float(np.sqrt(wanted))
            bound, many, result = loosest_bound(count, int(wanted), 1.0, most, work=work)
        except StoppedError as stopped:
            begun = stopped.alpha
            return np.append(begun, np.sqrt(target[len(begun) :])), stopped_search(stopped.result, fits, tell)
        if spent >= BUDGET:
            more = f" The search for component {len(counted)} ended with its budget of {BUDGET} iterations."
        counted.append(many)
        bounds, value = np.append(bounds, bound), {**result.value, "iteration": np.array(0)}
    found = np.array(counted)
    warn_if_missed(found, target, found != target, more)
    if not result.status:
        warn(result.status, result.certificate.tol)
    return bounds, result
