"""`solver="alternating"`: low rank plus sparse cells for a rank that is known, if the gap proves them."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp._warn import warn
from princomp.estimators.robust.low_rank import Pair, judged, told
from princomp.estimators.robust.problem import RobustProblem
from princomp.result import Result, run
from princomp.solvers.robust import alternating
from princomp.solvers.robust.least_squares_dual import least_squares_dual
from princomp.solvers.robust.pursuit import Cells

MOST_STEPS = 60  # seven where it is fast, forty with a third of all cells bad
FINER = 0.1  # times tol: what good cells may leave, so that the gap is within tol
SMALL = 10.0  # times tol and the largest singular value, or cell of L: what is below is what the last step has left


def alternated(problem: RobustProblem, parts: Cells, alpha: float) -> Pair | None:
    """Return the pair of this rank if it is the minimum, up to the gap that is allowed; else None, with a warning."""
    k = min(problem.count(np.ones(1)), *parts.X.shape)
    begin = alternating.start(parts.X, k, problem.rng)
    steps = partial(alternating.alternating, parts.X, alpha=alpha)
    most = min(MOST_STEPS, problem.max_iter)
    tol = FINER * problem.tol
    limits: dict[str, Any] = {"tol": tol, "max_iter": most, "deadline": problem.tell.deadline}
    result = run(steps, begin, **limits, callback=problem.tell, scope="global", warns=False)
    result = replace(result, certificate=replace(result.certificate, tol=problem.tol))
    pair = _measured(parts, result, alpha)
    if pair.result.certificate.holds or result.status.cut_short:
        return told(pair)
    warn(
        f'solver="alternating" found nothing of rank {k} that is proved to be the minimum, so "convex" took over. '
        "The rank may be another one, or too many cells may be bad, or noisy."
    )
    return None


def _measured(parts: Cells, result: Result, alpha: float) -> Pair:
    """Return the pair that alternating projections have found, with the gap that a dual point of its own proves."""
    value, tol = result.value, result.certificate.tol
    W, values, Qt = np.linalg.svd(value["B"] @ value["V"])
    some = values > SMALL * tol * values.max(initial=0.0)
    U, V = value["U"] @ W[:, some], value["V"] @ Qt[some].T
    L = (U * values[some], V.T)
    R = np.nan_to_num(parts.X - L[0] @ L[1])
    bound = max(float(value["bound"]), SMALL * tol * float(np.abs(L[0] @ L[1]).max()))
    S: Array = np.where(np.abs(R) > bound, R, 0.0)
    Y = least_squares_dual(parts.X, U, V, S, alpha=alpha, tol=FINER * tol)
    return judged(parts, L, S, Y, alpha, result)
