"""`method="outlier-pursuit"`: low rank plus whole rows, in memory."""

from dataclasses import replace

import numpy as np

from princomp.estimators.robust.low_rank import decomposed, found
from princomp.estimators.robust.problem import RobustFound, RobustProblem
from princomp.solvers.robust.pursuit import Rows

# alpha where none is given: 1 / sqrt(a tenth of the rows). m bad rows are found wherever they lie, even all in one
# place, if alpha <= 1 / sqrt(m); good rows are not taken for bad if alpha is above the lengths of the rows of U, where
# L = U diag(values) V', which are sqrt(rank / n) on average. So up to a tenth may be bad, of ranks below 10.
BAD = 0.1


def solve(problem: RobustProblem) -> RobustFound:
    """Return L and S of all rows, and components of L."""
    given = problem.parameters["alpha"]
    alpha = 1.0 / np.sqrt(BAD * len(problem.X)) if given is None else float(given)
    pair = decomposed(problem, Rows(problem.X), alpha)
    return replace(found(problem, pair, alpha), outliers=(pair.S != 0).any(axis=1))
