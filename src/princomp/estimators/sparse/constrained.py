"""The constrained formulation: most variance with |v|_2 = 1 and |v|_1 <= bound, one component after the other."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.estimators.sparse.penalised import COLD_FITS, counts, warn_if_missed
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
        V, result = fit(bounds)
    else:
        bounds, (V, result) = _search(fit, counts(given["nonzeros"], k, p), p)
    return Found(V, {"V": V}, result.objective / problem.unit**2, result, bounds)


def _search(fit: Callable[[Array], tuple[Array, Result]], target: Array, p: int) -> tuple[Array, tuple[Array, Result]]:
    """Return bounds that leave so many nonzeros, and the fit with them."""

    def bounds(alpha: Array) -> Array:
        return 1.0 + (np.sqrt(p) - 1.0) * (1.0 - alpha)  # from no bound to one feature, as alpha goes from 0 to 1

    def count(alpha: Array, _: Any) -> tuple[Array, tuple[Array, Result]]:
        found = fit(bounds(alpha))
        return (found[0] != 0).sum(axis=0), found

    found = bisect_alpha(count, target, 1.0, max_fits=COLD_FITS)
    warn_if_missed(found, target)
    return bounds(found.alpha), found.start
