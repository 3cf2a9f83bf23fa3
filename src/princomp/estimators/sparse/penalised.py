"""The weight of a penalty: given, as a share of the largest that does anything, or by the number of nonzeros."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from princomp._typing import Array
from princomp._warn import warn
from princomp.estimators.sparse.grouping import labels, used
from princomp.estimators.sparse.problem import Problem
from princomp.result import Result, Status
from princomp.solvers.nonzeros import loosest_alpha

SHARE = 0.1  # of alpha_max, if nothing else is asked for
# In the search for a number of nonzeros; a fit that starts from another costs a fifth.
COLD_FITS, WARM_FITS = 30, 75


def weigh_and_fit(
    problem: Problem,
    alpha_max: float,
    user: float,
    fit: Callable[[Array, float], tuple[Array, Result]],
    again: Callable[[Array, float, Result], tuple[Array, Result]] | None = None,
) -> tuple[Array, Result]:
    """Return the weights in force, in the units of the problem, and the fit with them.

    ``alpha_max`` is in those units, ``user`` what the user's alpha is multiplied by to be; ``fit(alpha, tol)``
    returns (loadings, result), and so does ``again``, which starts from an earlier result.
    """
    given = problem.parameters
    if given["nonzeros"] is None:
        asked = given["alpha"]
        alpha = _share(problem) * alpha_max if asked is None else problem.weights("alpha", asked) * user
        return alpha, fit(alpha, given["tol"])[1]
    refuse_checkpoint(given)
    group, one = labels(given["groups"], problem.width), given["groups"] is not None
    target = counts(given["nonzeros"], problem.k, problem.width if group is None else int(group.max()) + 1)
    if one:  # groups have one weight for all components: the component that uses most decides
        if (target != target[0]).any():
            raise ValueError("With groups, nonzeros must be one number: all components have the same weight.")
        target = target[:1]

    fits = 0

    def count(alpha: Array, before: Result | None) -> tuple[Array, Result]:
        nonlocal fits
        fits += 1
        alpha = np.broadcast_to(alpha, problem.k)
        if before is None or again is None:
            loadings, result = fit(alpha, given["tol"])
        else:
            loadings, result = again(alpha, given["tol"], before)
        if problem.tell.stopped:
            raise StoppedError(alpha, result)
        many = used(loadings, group)
        return many.max(keepdims=True) if one else many, result

    most = COLD_FITS if again is None else WARM_FITS
    try:
        found = loosest_alpha(count, target, alpha_max, max_fits=most)
    except StoppedError as stopped:
        return np.array(stopped.alpha), stopped_search(stopped.result, fits)
    warn_if_missed(found.nonzeros, target, found.jumps)
    return np.array(np.broadcast_to(found.alpha, problem.k)), found.start


class StoppedError(Exception):
    """The callback has asked to stop within one of the fits of a search."""

    def __init__(self, alpha: Array, result: Result) -> None:
        super().__init__(result.status.sentence)
        self.alpha, self.result = alpha, result


def stopped_search(result: Result, fits: int) -> Result:
    """Return the fit in which a search was stopped, which says so whether or not the fit itself had come to its end."""
    sentence = (
        f"Stopped by the callback in fit {fits} of the search for nonzeros, after {result.n_iter} iterations of it: "
        "the numbers of nonzeros need not be those asked for."
    )
    if result.status.code != "stopped":  # else a warning was given
        warn(sentence, ConvergenceWarning)
    return replace(result, status=Status("stopped", sentence))


def _share(problem: Problem) -> Array:
    """Return the weights as shares of the largest."""
    asked = problem.parameters["alpha_share"]
    share = problem.weights("alpha_share", SHARE if asked is None else asked)
    if (share > 1).any():
        raise ValueError(f"alpha_share must be from 0 to 1, from where on nothing is left; got {asked!r}.")
    return share


def refuse_checkpoint(given: dict[str, Any]) -> None:
    """Complain about a checkpoint where many fits are made: it would not know which one it belongs to."""
    if given["checkpoint"] is not None:
        raise ValueError("checkpoint is for one fit, and nonzeros makes many: give none, or the weight itself.")


def warn_if_missed(nonzeros: Array, target: Array, jumps: Array) -> None:
    """Say so if the search has not led to the numbers asked for, and why."""
    if (nonzeros == target).all():
        return
    reason = "Strong components give way to weaker ones of smaller weight."
    if jumps.any():
        where = ", ".join(map(str, np.flatnonzero(jumps)))
        reason = (
            f"In component {where} (counted from 0) the number jumps over the target: features come and go together."
        )
    warn(
        f"No weights were found that leave {target.tolist()} nonzeros: the closest ones leave "
        f"{nonzeros.tolist()}. {reason} Another formulation may come closer."
    )


def counts(nonzeros: Any, k: int, p: int) -> NDArray[np.int64]:
    """Return how many nonzeros each component may have."""
    many = np.asarray(nonzeros)
    whole = isinstance(nonzeros, Integral) or many.dtype.kind in "iu"
    if not whole or many.shape not in ((), (k,)) or (many < 1).any() or (many > p).any():
        raise ValueError(f"nonzeros must be an integer from 1 to {p}, or a list of {k} of them; got {nonzeros!r}.")
    return np.broadcast_to(many, (k,)).astype(np.int64)
