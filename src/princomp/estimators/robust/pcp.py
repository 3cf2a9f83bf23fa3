"""`method="pcp"`: principal component pursuit, low rank plus sparse cells, in memory."""

from dataclasses import replace

import numpy as np

from princomp._typing import Array
from princomp.estimators.robust.cells import MOSTLY
from princomp.estimators.robust.known_rank import alternated
from princomp.estimators.robust.low_rank import Pair, decomposed, found
from princomp.estimators.robust.problem import RobustFound, RobustProblem
from princomp.solvers.robust.deviations import LIMIT, NORMAL
from princomp.solvers.robust.pursuit import Cells

ROUNDING = 12.0**-0.5  # standard deviation of what rounding to whole numbers leaves


def solve(problem: RobustProblem) -> RobustFound:
    """Return L and S of all rows, and components of L."""
    X, given = problem.X, problem.parameters["alpha"]
    alpha = 1.0 / np.sqrt(max(X.shape)) if given is None else float(given)
    seen = ~np.isnan(X)
    rows, columns = seen.any(axis=1), seen.any(axis=0)
    if not rows.any():
        raise ValueError("All cells of X are missing: there is nothing to fit.")
    some = X if rows.all() and columns.all() else X[np.ix_(rows, columns)]
    pair = None
    if problem.parameters["solver"] == "alternating":
        pair = alternated(problem, Cells(some), alpha)
    if pair is None:
        pair = decomposed(problem, Cells(some), alpha)
    if some is not X:
        pair = _among_all(pair, rows, columns)
    answer = found(problem, pair, alpha)
    noise = _noise(X, pair, problem.unit)
    bad = np.abs(pair.S) > LIMIT * noise
    # L is found up to tol: what it leaves below that is not known to be noise.
    known = problem.tol * float(np.sqrt(np.mean(np.square(X[seen]))))
    return replace(
        answer,
        outliers=bad.sum(axis=1) > MOSTLY * seen.sum(axis=1),
        distances=_distances(X, pair, answer),
        own={"_rest": noise if noise > known else 0.0},
        more={**answer.more, "outlying_cells_": bad},
    )


def _noise(X: Array, pair: Pair, unit: float) -> float:
    """Return the standard deviation of what L leaves of good cells: of data with noise, many cells of S are not 0.

    L = 0 leaves X itself, which is no noise. Of whole numbers most may have been rounded to the same, and the median of
    what is left be 0, but all have been rounded.
    """
    if not len(pair.right):
        return 0.0
    cells = X[~np.isnan(X)]
    least = ROUNDING * unit if np.array_equal(cells, np.rint(cells / unit) * unit) else 0.0
    return max(NORMAL * float(np.nanmedian(np.abs(X - pair.left @ pair.right))), least)


def _among_all(pair: Pair, rows: Array, columns: Array) -> Pair:
    """Return the pair with rows and columns without any cell, where the least cost is that of zeros."""
    left, right = np.zeros((len(rows), pair.left.shape[1])), np.zeros((len(pair.right), len(columns)))
    S = np.zeros((len(rows), len(columns)))
    left[rows], right[:, columns], S[np.ix_(rows, columns)] = pair.left, pair.right, pair.S
    value = {**pair.result.value, "U": np.zeros_like(left), "V": right.T.copy()}
    value["U"][rows] = pair.result.value["U"]
    return Pair(left, right, S, replace(pair.result, value=value))


def _distances(X: Array, pair: Pair, answer: RobustFound) -> Array:
    """Return how far rows of L lie from the centre, in standard deviations, and how far rows of X from their scores."""
    scores = (pair.left @ pair.right - answer.mean) @ answer.V
    varies = answer.variances > 0
    apart = X - answer.mean - scores @ answer.V.T
    there = ~np.isnan(X)
    scores[~there.any(axis=1)] = 0.0
    more = X.shape[1] / np.maximum(there.sum(axis=1), 1)
    squares = np.square(np.where(there, apart, 0.0)).sum(axis=1) * more
    return np.column_stack([np.sqrt((scores[:, varies] ** 2 / answer.variances[varies]).sum(axis=1)), np.sqrt(squares)])
