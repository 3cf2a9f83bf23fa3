"""Slope and curvature of the log-likelihood of probabilistic PCA with missing cells, summed over rows.

Objective: L(W, mean, log noise), the log-likelihood of the observed cells (see `probabilistic`). With e = r - W_o z, C
the covariance of z and a dot for the derivative along a direction (D, m, t), r and e being 0 in missing cells,

    gradient:  (sum e z' - sum_o C w_j) / noise,   sum e / noise,   1/2 (sum |e|^2 / noise + sum (k - tr C) - cells)
    z. = M^-1 (D'e - W_o'(D z + m) - noise t z),   e. = -(D z + m + W z.) in observed cells,
    M. = D_o'W_o + W_o'D_o + noise t I,            C. = t C - C M. C / noise,

and the product of the Hessian with the direction is the derivative of the gradient by these. The metric is the
information of complete data whose scores have covariance I: c_j / noise for w_j and mean_j, seen c_j times, and
cells / 2 for log noise. Turns W R of the components, which change nothing, are projected away. Stretches W S and shifts
W c, which scores can nearly undo, are known less well, with x = |w|^2 / noise of components a and b by the factors
1 / (1 + 1 / (1 / x_a + 1 / x_b)) and 1 / (1 + x); so their metric is smaller by as much. In it curvatures are between
about -1 and 0, and far from 0 where cells are plenty.
"""

from functools import cached_property, reduce
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data.rows import add
from princomp.solvers import probabilistic
from princomp.solvers.probabilistic import Posterior, Sums, triangle, unpacked
from princomp.solvers.probabilistic_em import Data, Model, maximise, tile_rows

FIRST = "Gradient and likelihood come with the first product."
# Products are in single precision, if so many cells are observed, and noise has this share of the largest component:
# curvature is then known to some four digits.
SINGLE_CELLS = 2**15
SINGLE_NOISE = 1e-4
# Of what the first product finds of the rows, which is kept for the others: with it they take half as long. Fits of
# 1000 x 100 and 5000 x 200 took 0.9 and 0.95 times as long. It is never more than a block of rows.
KEPT_BYTES = 2**25
BATCH_BYTES = 2**22  # of the directions that go through the rows together: 2^18 and 2^25 take as long (900 x 60)


class Curvature:
    """Slope and curvature at a model, in units in which a unit step is about one standard error.

    Vectors are those of `Model.flat`, times the root of the metric. Rows are read once for each product, or, if what
    is found of them is small, for the first alone; that reading gives the gradient too.
    """

    def __init__(self, data: Data, model: Model) -> None:
        # Components turned so that their inner products vanish: then turns are easily told from stretches.
        counts = data.moments.counts
        _, V = np.linalg.eigh(model.W.T @ (counts[:, None] * model.W))
        self.data, self.model = data, model._replace(W=model.W @ V)
        p, k = model.W.shape
        by_feature = np.sqrt(counts / model.noise)
        self.root = np.concatenate([np.repeat(by_feature, k), by_feature, [np.sqrt(data.moments.cells / 2)]])
        self.dimension = len(self.root) - k * (k - 1) // 2  # without turns
        self._sums: Sums | None = None
        self._covariances = np.empty((p, k, k))  # sums of C over the rows that have a feature
        self._kept: list[tuple[Posterior, slice]] = []

    @cached_property
    def gradient(self) -> Array:
        """The slope, (d,), after a first product."""
        return self._balanced((self._flat_gradient / self.root)[:, None])[:, 0]

    def apply(self, V: Array) -> Array:
        """Return the curvature times vectors (d, b)."""
        size = max(1, BATCH_BYTES // (8 * len(V)))
        balanced = self._balanced(V)
        parts = [self._apply(balanced[:, first : first + size]) for first in range(0, V.shape[1], size)]
        return self._balanced(np.hstack(parts))

    def moved(self, step: Array) -> Model:
        """Return the model after a step (d,)."""
        flat = self.model.flat() + self._balanced(step[:, None])[:, 0] / self.root
        return Model.of(flat, len(self.model.W), self.data.floor)

    def gain(self, step: Array) -> float:
        """Return what the log-likelihood gains by a step (d,)."""
        if self._sums is None:
            raise RuntimeError(FIRST)
        return float(self.data.sums(self.moved(step)).log_likelihood - self._sums.log_likelihood)

    def random(self, rng: np.random.Generator) -> Array:
        """Return a random vector (d,) without turns, all other directions alike."""
        return self._balanced(rng.standard_normal((len(self.root), 1)), plain=True)[:, 0]

    def _balanced(self, V: Array, *, plain: bool = False) -> Array:
        """Return vectors (d, b) less their part along turns and, unless ``plain``, longer along stretches and shifts.

        Along B K, B the components in units of the metric and s their squares, a turn has K_ab = -K_ba; orthogonal to
        it are stretches, s_a K_ab = s_b K_ba.
        """
        p, k = self.model.W.shape
        B = self.root[: p * k].reshape(p, k) * self.model.W
        tiny = np.finfo(np.float64).tiny
        squares = np.maximum(np.einsum("jk,jk->k", B, B), tiny)
        x = squares / self.data.moments.total * (not plain)
        stretch = np.sqrt(1 + np.outer(x, x) / np.maximum(x[:, None] + x, tiny)) - 1
        shift = np.sqrt(1 + x) - 1
        out = V.copy()
        for column in out.T:
            Y, by_mean = column[: p * k].reshape(p, k), column[p * k : -1]
            inner = B.T @ Y
            turn = (inner - inner.T) / (squares[:, None] + squares)
            along = (squares * inner + squares[:, None] * inner.T) / (squares[:, None] + squares)
            column[: p * k] += (B @ (stretch * along / squares[:, None] - turn)).ravel()
            column[p * k : -1] += B @ (shift * (B.T @ by_mean) / squares)
        return out

    def _single(self) -> bool:
        """Tell whether products may be in single precision: noise shows in it, and there is time to gain."""
        largest = float(np.einsum("jk,jk->k", self.model.W, self.model.W).max())
        return self.data.moments.cells >= SINGLE_CELLS and self.model.noise >= SINGLE_NOISE * largest

    def _may_keep(self) -> bool:
        """Tell whether what is found of the rows, residuals and covariances above all, is small and theirs to keep."""
        (n, p), k = self.data.rows.shape, self.model.W.shape[1]
        return self.data.rows.local and n * (2 * (4 if self._single() else 8) * p + 4 * k * k) <= KEPT_BYTES

    @cached_property
    def _flat_gradient(self) -> Array:
        if self._sums is None:
            raise RuntimeError(FIRST)
        return maximise(self._sums, self.model, prior=0.0, floor=0.0).gradient

    def _apply(self, V: Array) -> Array:
        (W, shift, noise), (p, k), b = self.model, self.model.W.shape, V.shape[1]
        flat = V.T / self.root
        D, m, t = flat[:, : p * k].reshape(b, p, k), flat[:, p * k : -1], flat[:, -1]
        state = (W, noise, D, m, t, self.data.weight)
        size = max(tile_rows(p, k) // 2, 1)  # there are more arrays of a tile's size than for sums alone
        if self._sums is None:
            how = (self._single(), self._may_keep())
            found = self.data.around(shift).reduce(_first, *how, *state, tile_rows=size)
            *sums, covariances, self._kept, by_weights, by_mean, by_noise = found
            self._sums, self._covariances = Sums(*sums), unpacked(covariances, k)
        elif self._kept:
            parts = (_along(found, rows, *state) for found, rows in self._kept)
            by_weights, by_mean, by_noise = reduce(add, parts)
        else:
            X = self.data.around(shift, single=self._single())
            by_weights, by_mean, by_noise = X.reduce(_further, *state, tile_rows=size)
        by_weights -= np.einsum("jab,djb->dja", self._covariances, D)
        out = np.concatenate([by_weights.reshape(b, -1) / noise, by_mean / noise, by_noise[:, None]], axis=1)
        out[:, :-1] -= t[:, None] * self._flat_gradient[:-1]
        out[:, -1] -= t * float(self._sums.left) / (2 * noise)
        return (out / self.root).T


def _first(block: Array, rows: slice, single: bool, keep: bool, W: Array, noise: float, *state: Any) -> tuple[Any, ...]:
    """Return the sums of an E-step, those of the covariances (p, k (k + 1) / 2), a list, and what `_further` returns.

    The list has what `_along` needs of the rows, if that is to be kept.
    """
    found, weight = probabilistic.posterior(block, W, noise), state[-1]
    here = None if weight is None else weight[rows]
    sums = probabilistic.sums(found, here)
    (_, which, observed), Z = found.patterns, found.scores
    of_patterns = np.bincount(which, found.patterns.weights(here), len(observed))
    covariances = observed.T @ (of_patterns[:, None] * found.covariance)
    if single:
        narrow = found.patterns._replace(observed=observed.astype(np.float32))
        E = found.residual.astype(np.float32)
        found = found._replace(patterns=narrow, scores=Z.astype(np.float32), residual=E)
    kept = [(found._replace(filled=found.filled[:0]), rows)] if keep else []
    return (*sums, covariances, kept, *_along(found, rows, W, noise, *state))


def _further(block: Array, rows: slice, W: Array, noise: float, *state: Any) -> tuple[Array, Array, Array]:
    return _along(probabilistic.posterior(block, W, noise), rows, W, noise, *state)


def _along(
    found: Posterior, rows: slice, W: Array, noise: float, D: Array, m: Array, t: Array, weight: Array | None
) -> tuple[Array, Array, Array]:
    """Return what rows add to the products with directions D (b, p, k), m (b, p), t (b,), but for sums known already.

    Those by W and mean are times noise; they lack the derivative of 1 / noise and, by W, that of W in C W.
    """
    k, dtype = W.shape[1], found.scores.dtype
    (_, which, observed), Z, E = found.patterns, found.scores, found.residual
    single = len(observed) == len(Z)  # rows in each pattern
    weights = found.patterns.weights(None if weight is None else weight[rows]).astype(dtype, copy=False)
    mask, C = observed if single else observed[which], unpacked(found.covariance.astype(dtype, copy=False), k)
    of_patterns = np.bincount(which, weights, len(observed)).astype(dtype, copy=False)
    i, j = triangle(k)
    by_weights, by_mean, by_noise = np.empty_like(D), np.empty_like(m), np.empty_like(t)
    W = W.astype(dtype, copy=False)
    for d, (D_d, m_d, t_d) in enumerate(zip(D.astype(dtype, copy=False), m.astype(dtype, copy=False), t.tolist())):
        M_dot = unpacked(observed @ (W[:, i] * D_d[:, j] + D_d[:, i] * W[:, j]), k)
        M_dot += noise * t_d * np.eye(k, dtype=dtype)
        C_dot = t_d * C - C @ M_dot @ C / noise
        moved = Z @ D_d.T
        moved += m_d
        moved *= mask
        slope = E @ D_d - moved @ W - noise * t_d * Z
        Z_dot = np.einsum("bij,bj->bi", C if single else C[which], slope) / noise
        E_dot = Z_dot @ W.T
        E_dot *= mask
        E_dot += moved  # with the other sign
        C_dots = unpacked(observed.T @ (of_patterns[:, None] * C_dot[:, i, j]), k)
        by_weights[d] = E.T @ (Z_dot * weights[:, None]) - E_dot.T @ (Z * weights[:, None])
        by_weights[d] -= np.einsum("jab,jb->ja", C_dots, W)
        by_mean[d] = -(weights @ E_dot)
        by_noise[d] = -(weights @ np.einsum("ij,ij->i", E, E_dot)) / noise
        by_noise[d] -= 0.5 * of_patterns @ np.trace(C_dot, axis1=1, axis2=2)
    return by_weights, by_mean, by_noise
