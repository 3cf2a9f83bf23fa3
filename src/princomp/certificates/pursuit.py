"""Low rank plus sparse: how far a pair L, S is from the best, by a point of the dual problem.

Of the problem: minimise |L|_* + alpha |S| over L + S = X on observed cells, where |S| sums up magnitudes of cells, or
norms of rows, the dual is: maximise <X, Y> over |Y|_2 <= 1 and |Y_ij| <= alpha, or |Y_i| <= alpha for rows, and Y = 0
on missing cells. Any Y within these bounds is worth no more than any L with S = X - L: their difference, the gap,
bounds how much better than this L another could be. A Y beyond a bound proves nothing, until it is divided by as much.
So |Y|_2 is bounded from above, where products with a few vectors (Lanczos, power iteration) would bound it from below:
Cholesky's factorisation of 1 - Y'Y tells whether it is at most 1 (Rump, BIT 2006, with what rounding may do), and all
eigenvalues of Y'Y tell how large it is else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Gap:
    """What a pair costs, what a dual point proves, and what the pair leaves of X."""

    primal: float  # |L|_* + alpha |X - L|, of observed cells
    dual: float  # <X, Y>, of Y divided by the largest of its excesses
    excess: float  # what Y was divided by: 1 where it was within its bounds
    apart: float  # |X - L - S| / |X|, of observed cells

    @property
    def relative(self) -> float:
        """The gap, relative to what the pair costs."""
        return max(self.primal - self.dual, 0.0) / self.primal if self.primal > 0 else 0.0

    @property
    def residual(self) -> float:
        """The larger of the gap and of what the pair leaves."""
        return max(self.relative, self.apart)

    def details(self) -> dict[str, Any]:
        """Return the numbers by name."""
        return {"primal": self.primal, "dual": self.dual, "gap": self.relative, "apart": self.apart}


def pursuit_gap(X: Array, L: tuple[Array, Array], S: Array, Y: Array, *, alpha: float, rows: bool = False) -> Gap:
    """Measure L = left @ right, (n, r) and (r, p), and S (n, p), by a dual point Y (n, p); X has NaN where cells miss.

    Whatever Y is on missing cells, it is taken for zero there.
    """
    left, right = L
    R = X - left @ right
    seen = None if np.isfinite(np.vdot(X, X)) else ~np.isnan(X)
    if seen is not None:
        R[~seen], Y = 0.0, np.where(seen, Y, 0.0)
        X, S = np.where(seen, X, 0.0), np.where(seen, S, 0.0)
    nuclear = float(np.linalg.svd(_triangle(left) @ _triangle(right.T).T, compute_uv=False).sum())
    penalty, largest = (_row_norms(R).sum(), _row_norms(Y).max()) if rows else (np.abs(R).sum(), _largest(Y))
    R -= S
    size = float(np.linalg.norm(X))
    # An infinite or missing number in Y proves nothing at all.
    excess = max(1.0, float(largest) / alpha * (1 + 4 * EPS), norm_bound(Y)) if np.isfinite(largest) else np.inf
    dual = float(np.vdot(X, Y)) / excess if np.isfinite(excess) else 0.0
    return Gap(float(nuclear + alpha * penalty), dual, excess, float(np.linalg.norm(R)) / (size or 1.0))


def _triangle(left: Array) -> Array:
    return np.asarray(np.linalg.qr(left, mode="r"))


def _row_norms(R: Array) -> Array:
    return np.asarray(np.linalg.norm(R, axis=1))


def _largest(Y: Array) -> float:
    return float(max(Y.max(), -Y.min()))  # without a copy; NaN stays


def norm_bound(Y: Array) -> float:
    """Return a bound on the spectral norm of Y, from above: 1 if that is one, else as near as rounding allows.

    In units of eps, with Y (m, s) and s its shorter side: rounding of Y'Y moves eigenvalues by m |Y|^2 at the most, and
    a factorisation that runs to its end proves an eigenvalue to be above -(s + 2) times the trace.
    """
    m, s = max(Y.shape), min(Y.shape)
    G = Y.T @ Y if Y.shape[1] == s else Y @ Y.T
    trace = float(np.trace(G))
    if not np.isfinite(trace):
        return np.inf
    slack = EPS * (m * trace + (s + 2.0) * s)
    rest = -G
    rest[np.diag_indices(s)] += 1.0 - 2.0 * slack
    if slack < 0.25 and _definite(rest):
        return 1.0
    top = max(float(np.linalg.eigvalsh(G)[-1]), 0.0)
    return float(np.sqrt(top + EPS * (m * trace + s * s * top)))


def _definite(A: Array) -> bool:
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True
