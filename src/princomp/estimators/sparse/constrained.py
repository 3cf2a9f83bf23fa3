"""The constrained formulation: most variance with |v|_2 = 1 and |v|_1 <= bound, one component after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp import certificates
from princomp.estimators.sparse.penalised import counts, refuse_checkpoint, stopped_search, warn_if_missed
from princomp.estimators.sparse.problem import Found, Listener, Problem
from princomp.result import Result, Value, measured
from princomp.solvers import constrained

Array = NDArray[Any]

# In the search for a number of nonzeros, for each component.
MOST_FITS = 30
NARROW = 1e-6  # relative width at which the number jumps over the target
CLOSE = 0.02  # once the number is right: width at which a looser bound is not worth looking for


def solve(problem: Problem) -> Found:
    """Return what the constrained formulation finds."""
    given, p, k = problem.parameters, problem.width, problem.k

    def fit(bounds: Array, value: Value) -> Result:
        steps = partial(
            constrained.constrained,
            problem.scatter,
            bounds=bounds,
            tol=given["tol"],
            kind=given["deflation"],
        )
        return problem.drive(steps, value, tol=given["tol"])

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
    return Found(V, {"V": V}, float(problem.squares_as_given(result.objective)), result, bounds)


def _search(fit: Callable[[Array, Value], Result], target: Array, p: int, tell: Listener) -> tuple[Array, Result]:
    """Return the loosest bounds that leave so many nonzeros, and the fit: one component after the other, by bisection.

    With t nonzeros |v|_1 is at most sqrt(t), so that the bound lies between 1 and that. A search that is stopped
    returns the fit it was in, of fewer components; their bounds are the largest there could be.
    """
    value, bounds, counted, fits = constrained.start(p), np.zeros(0), [], 0
    for wanted in target:
        low, high = 1.0, float(np.sqrt(wanted))
        best: tuple[int, float, Result] | None = None
        trial = high
        for _ in range(MOST_FITS):
            result, fits = fit(np.append(bounds, trial), value), fits + 1
            if tell.stopped:
                begun = np.append(bounds, trial)
                return np.append(begun, np.sqrt(target[len(begun) :])), stopped_search(result, fits)
            many = int((constrained.components(result.value, len(bounds) + 1)[:, -1] != 0).sum())
            # What is right replaces what was: trials go up from it.
            if best is None or many == wanted or abs(many - wanted) < abs(best[0] - wanted):
                best = many, trial, result
            low, high = (low, trial) if many > wanted else (trial, high)
            if high - low <= (CLOSE if best[0] == wanted else NARROW) * high:
                break
            trial = (low + high) / 2
        assert best is not None  # noqa: S101 - one fit at least is made
        many, bound, result = best
        counted.append(many)
        bounds, value = np.append(bounds, bound), {**result.value, "iteration": np.array(0)}
    found = np.array(counted)
    warn_if_missed(found, target, found != target)
    return bounds, result
