"""Pre-images by regression (Bakir, Weston & Schoelkopf, NIPS 2003): kernel ridge from scores to rows.

Objective: with m rows x_i of mean a, their scores z_i, and l(z, z') = exp(-g |z - z'|^2) over *scores*,

    minimise sum_i |x_i - a - A'l(z_i)|^2 + alpha tr(A'LA) over A (m, p),    A = (L + alpha I)^-1 (X - 1a').

The pre-image of scores z is a + A'l(z): among scores unlike any seen it is the mean. 1 / g is twice the median of
|z_i - z_j|^2, which has nothing to do with the width of the kernel of the rows. alpha has the least error when each row
is left out in turn, which one eigendecomposition L = U diag(s) U' tells of all alphas: with H = L (L + alpha I)^-1, the
row i that was left out is missed by (x_i - a - fitted_i) / (1 - H_ii). a is that of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from princomp._typing import Array
from princomp.kernels import Gaussian
from princomp.kernels.choice import median_square, one_over

# L has ones on its diagonal. Below the least alpha rounding is all that changes; above the largest all is the mean.
ALPHAS = np.geomspace(1e-10, 1e2, 13)


@dataclass(frozen=True)
class Ridge:
    """The regression, solved."""

    kernel: Gaussian  # of scores
    scores: Array  # (m, k)
    dual: Array  # (m, p), A
    mean: Array  # (p,)
    alpha: float

    def __call__(self, scores: Array) -> Array:
        """Return rows for scores (b, k)."""
        near = self.kernel.between(self.kernel.points(scores), self.kernel.points(self.scores))
        return near @ self.dual + self.mean


def fit_ridge(scores: Array, rows: Array, alphas: Array = ALPHAS) -> Ridge:
    """Return the regression of rows (m, p) on their scores (m, k)."""
    origin = rows[0]
    apart = rows - origin  # a plain mean of numbers near 1e10 costs digits
    shift = apart.mean(axis=0)
    kernel = Gaussian(one_over(2.0 * median_square(scores)))
    points = kernel.points(scores)
    s, U = np.linalg.eigh(kernel.between(points, points))
    s = np.maximum(s, 0.0)
    along = U.T @ (apart - shift)
    errors = [left_out_error(s, U, along, float(alpha)) for alpha in alphas]
    alpha = float(alphas[int(np.argmin(errors))])
    return Ridge(kernel, scores, U @ (along / (s + alpha)[:, None]), origin + shift, alpha)


def left_out_error(s: Array, U: Array, along: Array, alpha: float) -> float:
    """Return the mean square of what rows are missed by when each is left out, from L = U diag(s) U' and U'X."""
    left = alpha / (s + alpha)
    missed = U @ (left[:, None] * along)
    own = np.einsum("ij,j,ij->i", U, left, U)  # 1 - H_ii
    missed /= np.maximum(own, np.finfo(float).tiny)[:, None]
    return float(np.einsum("ij,ij->", missed, missed) / along.size)
