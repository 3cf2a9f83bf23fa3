"""A bounded loss of cells: hyperbolic tangent (Hampel, Rousseeuw & Ronchetti, JASA 1981), and scales that go with it.

Objective: for each row x and one orthonormal V (p, k), a local minimum over z of

    sum_j (sigma_j t)^2 rho((x_j - v_j'z) / (sigma_j t)) + t^2 z'Pz / 2,    j over the cells that are there.

rho(r) is r^2 / 2 up to ``WHOLE``, and the same from ``NONE`` on: such cells do not count, the others as least squares
have it, and those between by a weight that falls from 1 to 0. P = mean(sigma^2) S^-1 makes scores those of
probabilistic PCA with covariance S. It is the minimum that iteratively reweighted least squares lead to from least
absolute deviations. t is 1, unless errors are large throughout: more than ``WILD`` scales by their median, in least
absolute deviations. Such a row has a scale of its own, larger by as much, and counts for 1 / t^2 where rows are summed.
`bounded_scores` has no P, two starts, and a t only where errors of the lower minimum are large; it is their median.

The scale of errors e (Rousseeuw & Yohai, 1984) is the one at which chi(e / sigma), biweight, is half of 1 on average:
that many errors may be as large as they like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.solvers.robust.deviations import (
    LIMIT,
    NORMAL,
    CleanScores,
    Grams,
    gram_maker,
    least_deviations,
    least_errors,
    least_squares,
    middle_size,
    null_of,
    rounding,
    row_scales,
    tiles,
    told,
    untold,
)

WHOLE, NONE = 1.5, 4.0  # scales up to which a cell counts, and from which on it does not: 95 % as good as least squares
BEND = 0.8622731  # of the hyperbolic tangent, at which its asymptotic variance is least for these two
HEIGHT = WHOLE / float(np.tanh(BEND * (NONE - WHOLE)))
CHI = 1.547644980928226  # at this chi(e / sigma) of normal errors is half of 1 on average
WILD = 2.0
NEAR_TOL = 1e-2  # of least absolute deviations, which are where the iteration begins
MOST_ROUNDS = 100  # of least squares: 8 to 15 as a rule, of which a few rows need more
RIDGE = 1e-12  # of the diagonal, where there is no prior: what the cells that count do not tell stays as it is
SETTLED = 1e-12  # of the largest score, or of the noise: a change of scores below it is none


Solve = Callable[[Array, Array, Array], Array]  # matrices, slopes, and rows that they are of, to changes of scores


class Spreads(NamedTuple):
    """What columns are made of."""

    noise: Array  # (p,) scales of errors
    whole: Array  # (p,) standard deviations of good cells, components and errors together


class Judged(NamedTuple):
    """What the loss makes of rows."""

    Z: Array  # (m, k) scores
    doubt: Array  # (m, k, k) covariance of what the rows' scores may be, given their cells
    left: Array  # (m, p) residuals, 0 where cells are missing
    weights: Array  # (m, p) of cells, from 0 to 1; 0 where they are missing
    there: Array  # (m, p) bool
    scales: Array  # (m,) of rows, 1 or more


def judge(X: Array, V: Array, noise: Array, prior: Array, rounds: int = MOST_ROUNDS) -> Judged:
    """Return scores, residuals and weights of rows X (m, p), NaN missing, along V (p, k), orthonormal.

    Parameters
    ----------
    X : (m, p) array
        Rows, less the centre.
    V : (p, k) array
        Orthonormal columns.
    noise : (p,) array
        Scales of the columns' errors, none of them 0.
    prior : (k, k) array
        P, positive definite.
    rounds : int
        Of least squares, at the most.
    """
    there, k, grams = ~np.isnan(X), V.shape[1], gram_maker(V)
    full = np.where(there, X, 0.0)
    alive = _above_the_noise(V, prior)
    Z = least_deviations(X, alive, NEAR_TOL).Z @ (alive.T @ V)
    sizes = np.abs(full - Z @ V.T) / noise
    scales = np.maximum(NORMAL * middle_size(sizes, there, k) / WILD, 1.0)
    units, priors = scales[:, None] * noise, (scales**2)[:, None, None] * prior

    def solve(G: Array, slopes: Array, rest: Array) -> Array:
        pull = np.einsum("ikl,il->ik", priors[rest], Z[rest])
        return np.asarray(np.linalg.solve(G + priors[rest], (slopes - pull)[:, :, None])[:, :, 0])

    _descend(full, there, V, grams, units, Z, solve, rounds)
    left = np.where(there, full - Z @ V.T, 0.0)
    weights = there * cell_weights(left / units)
    doubt = np.mean(noise**2) * (scales**2)[:, None, None] * np.linalg.inv(grams(weights) + priors)
    return Judged(Z, doubt, left, weights, there, scales)


def _descend(
    full: Array, there: Array, V: Array, grams: Grams, units: Array, Z: Array, solve: Solve, rounds: int = MOST_ROUNDS
) -> None:
    """Move scores Z (m, k) to where iteratively reweighted least squares lead."""
    rest, settled = np.arange(len(Z)), SETTLED * np.linalg.norm(units, axis=1)
    for _ in range(rounds):
        left = full[rest] - Z[rest] @ V.T
        weights = there[rest] * cell_weights(left / units[rest])
        change = solve(grams(weights), (weights * left) @ V, rest)
        Z[rest] += change
        most = SETTLED * np.abs(Z[rest]).max(axis=1, initial=0.0) + settled[rest]
        rest = rest[np.abs(change).max(axis=1, initial=0.0) > most]
        if not len(rest):
            break


def bounded_scores(X: Array, V: Array, spreads: Spreads, limit: float = LIMIT) -> CleanScores:
    """Return scores of rows X (n, p), NaN missing, along V (p, k), orthonormal, by the loss alone, without a prior.

    The lower one of two minima: that from least absolute deviations, and that from least squares on cells that are
    drawn in as far as they are far out in their columns. Where columns are few, either may begin among wild cells.

    A row whose errors are larger than the noise throughout is judged by its own scale for the score; but ``residuals``
    and ``clean``, those within ``limit``, are said in the scales given.

    Parameters
    ----------
    X : (n, p) array
        Rows, less the centre.
    V : (p, k) array
        Orthonormal columns.
    spreads : Spreads
        Of columns.
    limit : float
        In scales.
    """
    n, (p, k) = len(X), V.shape
    Z, scales, residuals, grams = np.zeros((n, k)), np.zeros(n), np.empty((n, p)), gram_maker(V)
    for tile in tiles(n, p, k):
        rows = np.asarray(X[tile], dtype=np.float64)
        Z[tile], residuals[tile], scales[tile] = _bounded(rows, V, grams, spreads, rounding(X))
    return CleanScores(Z, residuals, np.abs(residuals) <= limit, scales)


def _bounded(X: Array, V: Array, grams: Grams, spreads: Spreads, known: float) -> tuple[Array, Array, Array]:
    """Return scores, residuals in scales, and the rows' scales, of rows that are few."""
    k, there = V.shape[1], ~np.isnan(X)
    full, near = np.where(there, X, 0.0), least_deviations(X, V).Z
    least = least_errors(full, near @ V.T, known)[:, None]
    noise, whole = (np.maximum(part, least) for part in spreads)
    null, inner = untold(there, grams, k), there * cell_weights(full / whole)
    drawn = least_squares(full, V, grams, inner, np.zeros_like(near), null)

    def lower(rows: Array, units: Array) -> Array:
        """Return the lower one of both minima."""
        one, other, of_rows = near[rows], drawn[rows], null_of(null, rows)

        def solve(G: Array, slopes: Array, rest: Array) -> Array:
            G = told(G, null_of(of_rows, rest)) + RIDGE * np.eye(k)
            return np.asarray(np.linalg.solve(G, slopes[:, :, None])[:, :, 0])

        for Z in (one, other):
            _descend(full[rows], there[rows], V, grams, units, Z, solve)
        losses = (
            (there[rows] * cell_losses((full[rows] - Z @ V.T) / units) * units**2).sum(axis=1) for Z in (one, other)
        )
        return np.where(np.less_equal(*losses)[:, None], one, other)

    Z, scales = lower(np.arange(len(X)), noise), np.ones(len(X))
    large = np.flatnonzero(row_scales(np.abs(full - Z @ V.T) / noise, there, k, exact=False) > WILD)
    if len(large):
        errors = (np.abs(full[large] - at[large] @ V.T) / noise[large] for at in (near, Z))
        found = (row_scales(sizes, there[large], k, exact=exact) for sizes, exact in zip(errors, (True, False)))
        scales[large] = np.maximum(np.minimum(*found), 1.0)
        Z[large] = lower(large, scales[large, None] * noise[large])
    return Z, (X - Z @ V.T) / noise, scales


def _above_the_noise(V: Array, prior: Array) -> Array:
    """Return the directions of V along which scores vary more than noise: least absolute deviations have no prior."""
    values, E = np.linalg.eigh(prior)
    return np.asarray(V @ E[:, values < 1.0])


def cell_weights(errors: Array) -> Array:
    """Return what cells count whose errors are so large, in scales: psi(r) / r."""
    sizes = np.abs(errors)
    between = HEIGHT * np.tanh(BEND * (NONE - np.minimum(sizes, NONE))) / np.maximum(sizes, WHOLE)
    return np.where(sizes <= WHOLE, 1.0, between)


def cell_losses(errors: Array) -> Array:
    """Return rho of errors in scales."""
    sizes = np.minimum(np.abs(errors), NONE)
    fall = np.log(np.cosh(BEND * (NONE - WHOLE))) - np.log(np.cosh(BEND * (NONE - np.maximum(sizes, WHOLE))))
    return np.where(sizes <= WHOLE, sizes**2 / 2, WHOLE**2 / 2 + HEIGHT / BEND * fall)


def excess_and_slope(errors: Array) -> tuple[Array, Array]:
    """Return chi of errors in scales, and minus its derivative by the logarithm of the scale."""
    squares = np.minimum((errors / CHI) ** 2, 1.0)
    return squares * (3 - 3 * squares + squares**2), 6 * squares * (1 - squares) ** 2


@cache
def expected_excess(share: float) -> float:
    """Return what chi is on average of normal errors of which so large a share of the variance is left: 1/2 of all."""
    from scipy.special import gammainc

    ratio, edge = share / CHI**2, CHI**2 / share / 2
    second, fourth, sixth = (m * gammainc(j + 0.5, edge) for j, m in ((1, 1), (2, 3), (3, 15)))
    return float(3 * ratio * second - 3 * ratio**2 * fourth + ratio**3 * sixth + 1 - gammainc(0.5, edge))
