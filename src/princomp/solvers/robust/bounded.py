"""A bounded loss of cells: hyperbolic tangent (Hampel, Rousseeuw & Ronchetti, JASA 1981), and scales that go with it.

Objective: for each row x and one orthonormal V (p, k), a local minimum over z of

    sum_j (sigma_j t)^2 rho((x_j - v_j'z) / (sigma_j t)) + t^2 z'Pz / 2,    j over the cells that are there.

rho(r) is r^2 / 2 up to ``WHOLE``, and the same from ``NONE`` on: such cells do not count, the others as least squares
have it, and those between by a weight that falls from 1 to 0. P = mean(sigma^2) S^-1 makes scores those of
probabilistic PCA with covariance S. It is the minimum that iteratively reweighted least squares lead to from least
absolute deviations. t is 1, unless errors are large throughout: more than ``WILD`` scales by their median, in least
absolute deviations. Such a row has a scale of its own, larger by as much, and counts for 1 / t^2 where rows are summed.

The scale of errors e (Rousseeuw & Yohai, 1984) is the one at which chi(e / sigma), biweight, is half of 1 on average:
that many errors may be as large as they like.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.solvers.robust.deviations import NORMAL, gram_maker, least_deviations, middle_size

WHOLE, NONE = 1.5, 4.0  # scales up to which a cell counts, and from which on it does not: 95 % as good as least squares
BEND = 0.8622731  # of the hyperbolic tangent, at which its asymptotic variance is least for these two
HEIGHT = WHOLE / float(np.tanh(BEND * (NONE - WHOLE)))
CHI = 1.547644980928226  # at this chi(e / sigma) of normal errors is half of 1 on average
WILD = 2.0
NEAR_TOL = 1e-2  # of least absolute deviations, which are where the iteration begins
MOST_ROUNDS = 100  # of least squares: 8 to 15 as a rule, of which a few rows need more
SETTLED = 1e-12  # of the largest score, or of the noise: a change of scores below it is none


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
    settled, rest = SETTLED * np.linalg.norm(noise), np.arange(len(X))
    for _ in range(rounds):
        left = full[rest] - Z[rest] @ V.T
        weights = there[rest] * cell_weights(left / units[rest])
        G, pull = grams(weights) + priors[rest], np.einsum("ikl,il->ik", priors[rest], Z[rest])
        change = np.linalg.solve(G, ((weights * left) @ V - pull)[:, :, None])[:, :, 0]
        Z[rest] += change
        rest = rest[np.abs(change).max(axis=1) > SETTLED * np.abs(Z[rest]).max(axis=1) + settled]
        if not len(rest):
            break
    left = np.where(there, full - Z @ V.T, 0.0)
    weights = there * cell_weights(left / units)
    doubt = np.mean(noise**2) * (scales**2)[:, None, None] * np.linalg.inv(grams(weights) + priors)
    return Judged(Z, doubt, left, weights, there, scales)


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
