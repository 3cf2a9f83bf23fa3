"""Principal component pursuit and outlier pursuit, slow and plain: full decompositions, and no thought of speed.

    min |L|_nuclear + alpha penalty(S),   L + S = X in the cells that are seen, S = 0 in the others,

where the penalty is the sum of |S_ij| or, of whole rows, of |s_i|. Its dual, of which any feasible point bounds the
optimum from below, is

    max <Y, X>,   |Y|_2 <= 1,   |Y_ij| <= alpha or |y_i| <= alpha,   Y = 0 in cells that are not seen.

Nothing here imports princomp: a reference that uses the code under test proves nothing.
"""

from dataclasses import dataclass

import numpy as np

# --- the two norms ------------------------------------------------------------------------------------


def soft(A, t):
    """The prox of t times the sum of magnitudes."""
    return np.sign(A) * np.maximum(np.abs(A) - t, 0)


def soft_rows(A, t):
    """The prox of t times the sum of lengths of rows."""
    lengths = np.sqrt((A * A).sum(axis=1, keepdims=True))
    return A * np.maximum(1 - t / np.where(lengths > 0, lengths, 1), 0)


def soft_values(A, t):
    """The prox of t times the nuclear norm."""
    U, s, V = np.linalg.svd(A, full_matrices=False)
    return U * np.maximum(s - t, 0) @ V


def nuclear(A):
    return float(np.linalg.svd(A, compute_uv=False).sum())


def magnitudes(S, rows=False):
    return float(np.sqrt((S * S).sum(axis=1)).sum() if rows else np.abs(S).sum())


def objective(L, S, alpha, rows=False):
    return nuclear(L) + alpha * magnitudes(S, rows)


# --- bounds from above and below --------------------------------------------------------------------


def upper_bound(X, L, alpha, rows=False):
    """The objective of L, with all that it leaves of the cells that are seen in S."""
    return objective(L, np.where(np.isnan(X), 0.0, X - L), alpha, rows)


def lower_bound(X, Y, alpha, rows=False):
    """The dual objective of the nearest feasible point to Y by shrinking it: cells or rows first, then all of it."""
    seen = ~np.isnan(X)
    Y = np.where(seen, Y, 0.0)
    if rows:
        lengths = np.sqrt((Y * Y).sum(axis=1, keepdims=True))
        Y = Y * np.minimum(1, alpha / np.where(lengths > 0, lengths, 1))
    else:
        Y = np.clip(Y, -alpha, alpha)
    Y = Y / max(1.0, np.linalg.norm(Y, 2) * (1 + 1e-14))
    return float((Y * np.where(seen, X, 0.0)).sum())


@dataclass
class Bounds:
    """What is known of the optimum, and the best L that was seen."""

    upper: float
    lower: float
    L: np.ndarray

    @property
    def gap(self):
        return (self.upper - self.lower) / max(self.upper, np.finfo(float).tiny)


STEP = 0.03  # of |X|_2: of twelve small problems 0.01, 0.1 and 0.3 take longer


def steps(X, alpha, rows=False, every=10):
    """Bounds after every ten steps of Douglas & Rachford (Lions & Mercier, SIAM J. Numer. Anal. 1979), without end.

    f(L) = |L|_nuclear and g(L) = alpha penalty(X - L in cells that are seen); it converges for any step t.
    """
    seen = ~np.isnan(X)
    given = np.where(seen, X, 0.0)
    shrink = soft_rows if rows else soft
    t = STEP * float(np.linalg.norm(given, 2)) or 1.0
    Z = given.copy()
    best = Bounds(upper_bound(X, 0 * given, alpha, rows), 0.0, 0 * given)
    number = 0
    while True:
        L = soft_values(Z, t)
        Y = (Z - L) / t  # a subgradient of the nuclear norm at L, and once both agree one of g, turned around
        R = 2 * L - Z
        M = np.where(seen, given - shrink(np.where(seen, given - R, 0.0), t * alpha), R)
        Z = Z + M - L
        number += 1
        if number % every == 0:
            for point in (L, M):
                value = upper_bound(X, point, alpha, rows)
                if value < best.upper:
                    best = Bounds(value, best.lower, point)
            best = Bounds(best.upper, max(best.lower, lower_bound(X, Y, alpha, rows)), best.L)
            yield best


def solve(X, alpha, *, rows=False, tol=1e-9, limit=20_000):
    """Bounds that are within tol of each other, or as near as so many steps bring them."""
    for number, found in enumerate(steps(X, alpha, rows)):
        if found.gap <= tol or 10 * number >= limit:
            return found
    return None


# --- the textbook -----------------------------------------------------------------------------------


def textbook(X, alpha=None, *, tol=1e-7, growth=1.5, limit=1000):
    """L and S by the inexact augmented Lagrangian (Lin, Chen & Ma, arXiv 1009.5055), line by line; and the steps."""
    alpha = 1 / np.sqrt(max(X.shape)) if alpha is None else alpha
    size, largest = np.linalg.norm(X), np.linalg.norm(X, 2)
    Y = X / max(largest, np.abs(X).max() / alpha)
    L, mu = np.zeros_like(X), 1.25 / largest
    most = 1e7 * mu
    number, left = 0, X
    while number < limit and np.linalg.norm(left) >= tol * size:
        number += 1
        S = soft(X - L + Y / mu, alpha / mu)
        L = soft_values(X - S + Y / mu, 1 / mu)
        left = X - L - S
        Y, mu = Y + mu * left, min(growth * mu, most)
    return L, S, number
