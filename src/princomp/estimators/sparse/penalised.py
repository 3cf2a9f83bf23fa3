"""The weight of a penalty: given, as a share of the largest that does anything, or by the number of nonzeros.

And what ``nonzeros`` counts: features, or, where they enter in groups that do not meet, these.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from princomp._typing import Array
from princomp._warn import warn
from princomp.estimators.sparse.problem import Listener, SparseProblem
from princomp.penalties.groups import as_groups, disjoint
from princomp.result import Result, Status
from princomp.solvers.nonzeros import loosest_alpha

SHARE = 0.1  # of alpha_max, if nothing else is asked for
# In the search for a number of nonzeros; a fit that starts from another costs a fifth.
COLD_FITS, WARM_FITS = 30, 75
LEAST = 20  # iterations that a fit of a search may make, however little of its budget is left


def weigh_and_fit(
    problem: SparseProblem,
    alpha_max: float,
    user: float,
    fit: Callable[..., tuple[Array, Result]],
    *,
    warm: bool,
    budget: int,
) -> tuple[Array, Result]:
    """Return the weights in force, in the units of the problem, and the fit with them.

    ``alpha_max`` is in those units, ``user`` what the user's alpha is multiplied by to be; ``fit(alpha, before)``
    returns (loadings, result), and, if it can be ``warm``, starts from an earlier result; it takes limits of `run`,
    too. A search for weights may make ``budget`` iterations, in all its fits together.
    """
    given = problem.parameters
    if given["nonzeros"] is None:
        asked = given["alpha"]
        alpha = _share(problem) * alpha_max if asked is None else problem.weights("alpha", asked) * user
        return alpha, fit(alpha, None)[1]
    refuse_checkpoint(given)
    group, one = labels(given["groups"], problem.width), given["groups"] is not None
    target = counts(given["nonzeros"], problem.k, problem.width if group is None else int(group.max()) + 1)
    if one:  # groups have one weight for all components: the component that uses most decides
        if (target != target[0]).any():
            raise ValueError("With groups, nonzeros must be one number: all components have the same weight.")
        target = target[:1]

    trials = _Trials(problem, fit, group, one, warm, budget)
    try:
        found = loosest_alpha(
            trials, target, alpha_max, max_fits=WARM_FITS if warm else COLD_FITS, work=lambda: trials.spent / budget
        )
        alpha, many, result = found.alpha, found.nonzeros, found.start
        if not result.status:  # a fit of a search is cut short, and says nothing of it: this one is not
            many, ended = trials.fitted(alpha, result)
            result = ended.after(result)
    except StoppedError as stopped:
        return np.array(stopped.alpha), stopped_search(stopped.result, trials.fits, problem.tell)
    warn_if_missed(many, target, found.jumps, trials.budget_used())
    return np.array(np.broadcast_to(alpha, problem.k)), result


@dataclass
class _Trials:
    """The fits of a search for weights."""

    problem: SparseProblem
    fit: Callable[..., tuple[Array, Result]]
    group: Array | None  # of each feature
    one: bool  # number for all components
    warm: bool
    budget: int
    fits: int = 0
    spent: int = 0  # iterations

    def __call__(self, alpha: Array, before: Result | None) -> tuple[Array, Result]:
        """Return the numbers of nonzeros with these weights, after what is left of the budget, and the fit."""
        most = min(int(self.problem.parameters["max_iter"]), max(self.budget - self.spent, LEAST))
        return self.fitted(alpha, before, max_iter=most, warns=False)

    def fitted(self, alpha: Array, before: Result | None, **limits: Any) -> tuple[Array, Result]:
        alpha = np.broadcast_to(alpha, self.problem.k)
        loadings, result = self.fit(alpha, before if self.warm else None, **limits)
        self.fits, self.spent = self.fits + 1, self.spent + result.n_iter
        if self.problem.tell.stopped:
            raise StoppedError(alpha, result)
        many = used(loadings, self.group)
        return many.max(keepdims=True) if self.one else many, result

    def budget_used(self) -> str:
        """Say so if the search has ended for that reason."""
        if self.spent < self.budget:
            return ""
        return f" The search ended with its budget of {self.budget} iterations, after {self.fits} fits."


class StoppedError(Exception):
    """The callback has asked to stop within one of the fits of a search, or time was up."""

    def __init__(self, alpha: Array, result: Result) -> None:
        super().__init__(result.status.sentence)
        self.alpha, self.result = alpha, result


def stopped_search(result: Result, fits: int, tell: Listener) -> Result:
    """Return the fit in which a search was stopped, which says so whether or not the fit itself had come to its end."""
    by = "Stopped by the callback" if tell.asked else f"Ended by time_limit={tell.deadline.seconds:g} seconds"
    sentence = (
        f"{by} in fit {fits} of the search for nonzeros, after {result.n_iter} iterations of it: "
        "the numbers of nonzeros need not be those asked for."
    )
    warn(sentence, ConvergenceWarning)
    return replace(result, status=Status("stopped" if tell.asked else "time limit", sentence))


def _share(problem: SparseProblem) -> Array:
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


def warn_if_missed(nonzeros: Array, target: Array, jumps: Array, more: str = "") -> None:
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
        f"{nonzeros.tolist()}. {reason}{more} Another formulation may come closer."
    )


def counts(nonzeros: Any, k: int, p: int) -> NDArray[np.int64]:
    """Return how many nonzeros each component may have."""
    many = np.asarray(nonzeros)
    whole = isinstance(nonzeros, Integral) or many.dtype.kind in "iu"
    if not whole or many.shape not in ((), (k,)) or (many < 1).any() or (many > p).any():
        raise ValueError(f"nonzeros must be an integer from 1 to {p}, or a list of {k} of them; got {nonzeros!r}.")
    return np.broadcast_to(many, (k,)).astype(np.int64)


def labels(groups: Any, p: int) -> Array | None:
    """Return the group of each feature, as a number; features in no group are groups of their own.

    None if there are no groups, or if they share features: then features are what can be counted.

    Examples
    --------
    >>> from princomp.estimators.sparse.penalised import labels
    >>> labels([[0, 2], [3]], 5).tolist()
    [0, 2, 0, 1, 3]
    >>> labels([[0, 1], [1, 2]], 5) is None
    True
    """
    if groups is None:
        return None
    sets = as_groups(groups)
    members = np.concatenate([np.asarray(each, dtype=int) for each in sets])
    if members.min() < 0 or members.max() >= p:
        raise ValueError(f"groups must hold features from 0 to {p - 1}, got {members[(members < 0) | (members >= p)]}.")
    if not disjoint(sets):
        return None
    found = np.arange(p) + len(sets)
    for label, each in enumerate(sets):
        found[list(each)] = label
    numbers: Array = np.unique(found, return_inverse=True)[1]
    return numbers


def used(loadings: Array, of: Array | None) -> Array:
    """Return how many features, or groups of them, each column of loadings uses."""
    nonzero = loadings != 0
    if of is None:
        return np.asarray(nonzero.sum(axis=0))
    return np.array([len(np.unique(of[column])) for column in nonzero.T])
