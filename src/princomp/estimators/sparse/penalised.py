"""The weight of a penalty: given, as a share of the largest that does anything, or by the number of nonzeros."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.estimators.sparse.problem import Problem
from princomp.result import Result
from princomp.solvers.nonzeros import bisect_alpha

Array = NDArray[Any]

SHARE = 0.1  # of alpha_max, if nothing else is asked for


def weigh_and_fit(
    problem: Problem,
    alpha_max: float,
    user: float,
    fit: Callable[[Array, float], tuple[Array, Result]],
) -> tuple[Array, Result]:
    """Return the weights in force, in the units of the problem, and the fit with them.

    ``alpha_max`` is in those units, ``user`` what the user's alpha is multiplied by to be; ``fit(alpha, tol)``
    returns (loadings, result).
    """
    given = problem.parameters
    if given["nonzeros"] is not None and given["alpha"] is not None:
        raise ValueError("Give alpha or nonzeros, not both: nonzeros looks for the alpha.")
    if given["nonzeros"] is None:
        if given["alpha"] is not None and given["alpha_share"] is not None:
            raise ValueError("Give alpha or alpha_share, not both.")
        share = SHARE if given["alpha_share"] is None else given["alpha_share"]
        alpha = problem.weights(share) * alpha_max if given["alpha"] is None else problem.weights(given["alpha"]) * user
        return alpha, fit(alpha, given["tol"])[1]
    target = counts(given["nonzeros"], problem.k, problem.width)
    results: dict[tuple[float, ...], Result] = {}

    def count(alpha: Array, _: Any) -> tuple[Array, Any]:
        # Each from the usual start: from the last fit, components change places, and the search loses its way.
        loadings, results[tuple(alpha)] = fit(alpha, given["tol"])
        return (loadings != 0).sum(axis=0), None

    found = bisect_alpha(count, target, alpha_max)
    if (found.nonzeros != target).any():
        warnings.warn(
            f"No weights leave {target.tolist()} nonzeros: the closest ones leave {found.nonzeros.tolist()}. "
            "Another formulation may come closer.",
            UserWarning,
            stacklevel=8,
        )
    return found.alpha, results[tuple(found.alpha)]


def counts(nonzeros: Any, k: int, p: int) -> NDArray[np.int64]:
    """Return how many nonzeros each component may have."""
    many = np.asarray(nonzeros)
    whole = isinstance(nonzeros, Integral) or many.dtype.kind in "iu"
    if not whole or many.shape not in ((), (k,)) or (many < 1).any() or (many > p).any():
        raise ValueError(f"nonzeros must be an integer from 1 to {p}, or a list of {k} of them; got {nonzeros!r}.")
    return np.broadcast_to(many, (k,)).astype(np.int64)
