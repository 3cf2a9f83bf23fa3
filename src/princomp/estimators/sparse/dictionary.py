"""The dictionary formulation: 1/2 |X - Y D'|^2 + alpha |D|_1, the columns of Y in a ball."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.estimators.sparse.penalised import weigh_and_fit
from princomp.estimators.sparse.problem import SparseFound, SparseProblem
from princomp.penalties import as_penalty
from princomp.result import Result, measured
from princomp.solvers import dictionary_start as begin
from princomp.solvers.dictionary import dictionary
from princomp.solvers.dictionary_blocks import Terms
from princomp.solvers.scatter import MATRIX_SIDE, Data, Factored, Passes, factor

# Iterations of a search for nonzeros, at the most. Most that led to them took 450 to 710; of 178 wines, five components
# of ten features each, more than 3000.
BUDGET = 6000


def solve(problem: SparseProblem) -> SparseFound:
    """Return what the dictionary formulation finds."""
    given, unit = problem.parameters, problem.unit
    radius = float(given["radius"])
    # For c X the same Y and c D are best with c alpha, and with c^2 times the penalty on Y.
    codes = None
    if given["code_alpha"] is not None:
        codes = problem.weights("code_alpha", given["code_alpha"]) * problem.unit_squared
    on_loadings = any(given[name] is not None for name in ("alpha", "alpha_share", "nonzeros"))
    only_codes = False
    if codes is not None and not on_loadings:
        # Nothing on D but the ball, which holds D in the user's units.
        only_codes, codes = True, codes / unit
    stands_for_X = _factor(problem, only_the_ball=codes is None)
    X = stands_for_X or problem.by_rows
    largest = _largest(problem, X, radius)

    def fit(alpha: Array, before: Result | None, **limits: Any) -> tuple[Array, Result]:
        terms = _terms(problem, alpha, codes, radius)
        known = {} if before is None else {name: before.value[name] for name in ("Y", "D")}
        value = begin.start(X, problem.k, terms, problem.rng, **known)
        result = problem.drive(partial(dictionary, X, terms=terms), value, **limits)
        return result.value["D"], result

    if only_codes:
        alpha, result = np.zeros(problem.k), fit(np.zeros(problem.k), None)[1]
    else:
        alpha, result = weigh_and_fit(problem, largest, unit, fit, warm=True, budget=BUDGET)
    Y, D = result.value["Y"], result.value["D"]
    if stands_for_X is not None and problem.X is not None:
        Y = begin.recover(Passes(problem.rows), stands_for_X.X, Y, radius)
    result = measured(result, _residual(problem, _terms(problem, alpha, codes, radius), stands_for_X, Y, D))
    value = {"Y": Y / unit if only_codes else Y, "D": D if only_codes else D / unit}
    return SparseFound(
        D, value, float(problem.squares_as_given(result.objective)), result, None if only_codes else alpha / unit
    )


def _residual(problem: SparseProblem, terms: Terms, stands_for_X: Data | None, Y: Array, D: Array) -> float:
    """Return the residual of the answer, from products with the data as they are stored.

    Of a matrix S = R'R alone the codes are those of R; then R'RD must be SD, too.
    """
    if problem.S is None or stands_for_X is None:
        X = Passes(problem.rows)
        return terms.residual(X.transpose_times(Y), X.times(D), Y, D)
    R = stands_for_X.X
    RD, SD = R @ D, problem.S @ D
    size = float(np.linalg.norm(SD))
    wrong = float(np.linalg.norm(R.T @ RD - SD)) / size if size > 0 else 0.0
    return max(terms.residual(R.T @ Y, RD, Y, D), wrong)


def _largest(problem: SparseProblem, X: Factored, radius: float) -> float:
    """Return the weight from which on nothing is left."""
    given = problem.parameters
    if given["groups"] is None:
        return begin.alpha_max(X, radius)
    penalty = as_penalty(1.0, groups=given["groups"], nonnegative=bool(given["nonnegative"]))
    return begin.alpha_max_of(X, penalty, radius)


def _terms(problem: SparseProblem, alpha: Array, codes: Array | None, radius: float) -> Terms:
    given = problem.parameters
    terms = Terms(alpha, codes, radius, nonnegative=bool(given["nonnegative"]))
    if given["groups"] is None:
        return terms
    if not (alpha == alpha[0]).all():
        raise ValueError("With groups, alpha (or alpha_share) must be one number for all components.")
    penalty = as_penalty(float(alpha[0]), groups=given["groups"], nonnegative=bool(given["nonnegative"]))
    return replace(terms, penalty=penalty)


def _factor(problem: SparseProblem, *, only_the_ball: bool) -> Data | None:
    """Return a smaller R that may stand for X, R'R = X'X, if that pays, or X is not at hand."""
    if problem.S is not None:
        if not only_the_ball:
            raise ValueError("A penalty on the codes needs data: call fit, not fit_covariance.")
        return factor(problem.S)
    n, p = problem.rows.shape
    if not only_the_ball or p > min(n, MATRIX_SIDE):
        return None
    pays = begin.factor_pays(n, p, problem.k) or problem.by_rows.data is None
    return factor(problem.squared.S) if pays else None
