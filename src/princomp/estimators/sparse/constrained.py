"""The constrained formulation: most variance with |v|_2 = 1 and |v|_1 <= bound, one component after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.estimators.sparse.penalised import counts
from princomp.estimators.sparse.problem import Found, Problem
from princomp.result import Result
from princomp.solvers import constrained
from princomp.solvers.nonzeros import bisect_alpha

Array = NDArray[Any]


def solve(problem: Problem) -> Found:
    """Return what the constrained formulation finds."""
    given, p, k = problem.parameters, problem.width, problem.k
    if given["nonzeros"] is not None and given["bound"] is not None:
        raise ValueError("Give bound or nonzeros, not both: nonzeros looks for the bound.")

    def fit(bounds: Array) -> tuple[Array, Result]:
        steps = partial(
            constrained.constrained,
            problem.gram_apply,
            bounds=bounds,
            squares=problem.squares,
            tol=given["tol"],
            kind=given["deflation"],
        )
        result = problem.drive(steps, constrained.start(p), tol=given["tol"])
        return constrained.components(result.value, k), result

    if given["nonzeros"] is None:
        bounds = problem.weights(max(1.0, 0.4 * np.sqrt(p)) if given["bound"] is None else given["bound"])
        if (bounds < 1).any():
            raise ValueError(f"bound must be at least 1 (one feature); sqrt(p) = {np.sqrt(p):.3g} is no bound at all.")
    else:
        bounds = _search(fit, counts(given["nonzeros"], k, p), p)
    V, result = fit(bounds)
    return Found(V, {"V": V}, result.objective / problem.unit**2, result, bounds)


def _search(fit: Callable[[Array], tuple[Array, Result]], target: Array, p: int) -> Array:
    """Return bounds that leave so many nonzeros."""

    def bounds(alpha: Array) -> Array:
        return 1.0 + (np.sqrt(p) - 1.0) * (1.0 - alpha)  # from no bound to one feature, as alpha goes from 0 to 1

    found = bisect_alpha(lambda alpha, _: ((fit(bounds(alpha))[0] != 0).sum(axis=0), None), target, 1.0)
    return bounds(found.alpha)
