"""Probabilistic PCA (Tipping & Bishop, J. R. Statist. Soc. B 1999): the model, its closed form, and its posterior.

Model: x = W z + mean + e, z ~ N(0, I_k), e ~ N(0, noise I_p), so that x ~ N(mean, W W' + noise I).
Objective: the log-likelihood of the observed cells. With l the eigenvalues of the covariance of N rows (divisor N) and
U its eigenvectors, it is largest for

    noise = mean of l_{k+1} ... l_p,   W = U_k (L_k - noise I)^{1/2} R,   R any rotation,

where it is -N/2 (p log 2 pi + sum_{j <= k} log l_j + (p - k) log noise + p).

A row that observes the cells o has, with r = x_o - mean_o and M = W_o'W_o + noise I,

    z | x_o ~ N(M^-1 W_o' r, noise M^-1),
    log p(x_o) = -1/2 (|o| log 2 pi + (|o| - k) log noise + log |M| + |r - W_o z|^2 / noise + |z|^2).
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array

# Rows per pattern from which on small loops for each row are not worth the import of numba: up to there they take a
# third of the time of a product for each pattern, or less, and with 64 rows still a half (3 to 60 components).
ROWS_PER_PATTERN = 8


def log_likelihood(values: Array, noise: float, count: float, p: int, found: Array, left: float) -> float:
    """Return the log-likelihood of N = ``count`` rows for a model with ``values`` (k,) along its components.

    ``found`` (k,) are the variances of the data there, ``left`` is what they leave of the total: at the maximum the
    same, and (p - k) noise, unless noise had to be kept off 0.
    """
    k = len(values)
    logarithms = float(np.log(values).sum()) + (p - k) * np.log(noise)
    return float(-count / 2 * (p * np.log(2 * np.pi) + logarithms + float((found / values).sum()) + left / noise))


def weights(values: Array, U: Array, noise: float, rotation: Array | None = None) -> Array:
    """Return W (p, k) = U (L - noise I)^{1/2} R."""
    W = U * np.sqrt(np.maximum(values - noise, 0.0))
    return W if rotation is None else W @ rotation


class Patterns(NamedTuple):
    """The rows of a tile, put in the order of which cells they miss."""

    order: Array | None  # (b,) places of the rows in the tile; None if they stay where they are
    which: Array  # (b,) ascending, the pattern of each row
    observed: Array  # (u, p) 1.0 where a pattern has a cell, 0.0 where it misses it

    def weights(self, weight: Array | None) -> Array:
        """Return the weights (b,) of the rows of the tile in the order of the patterns; ones for None."""
        if weight is None:
            return np.ones(len(self.which))
        return weight if self.order is None else weight[self.order]


class Posterior(NamedTuple):
    """What a tile's rows say about their latent scores, in the order of ``patterns``."""

    patterns: Patterns
    filled: Array  # (b, p) the rows less the mean, 0 in missing cells
    scores: Array  # (b, k)
    residual: Array  # (b, p) r - W_o z, 0 in missing cells
    left: Array  # (b,) |r - W_o z|^2
    covariance: Array  # (u, k (k + 1) / 2) lower triangles, one for each pattern
    log_likelihood: Array  # (b,)

    def in_order(self, rows: Array) -> Array:
        """Return something that has one entry for each row in the order of the tile."""
        if self.patterns.order is None:
            return rows
        out = np.empty_like(rows)
        out[self.patterns.order] = rows
        return out


def group(missing: Array, dtype: Any = np.float64) -> Patterns:
    """Return the patterns of missing cells (b, p) of a tile, each once, unless nearly all differ."""
    b = len(missing)
    if not missing.any():
        return Patterns(None, np.zeros(b, np.intp), np.ones((1, missing.shape[1]), dtype))
    bits = np.packbits(missing, axis=1)
    keys = bits.view(np.dtype((np.void, bits.shape[1])))[:, 0]
    order = np.argsort(keys, kind="stable")
    new = np.append(True, keys[order][1:] != keys[order][:-1])
    if 2 * np.count_nonzero(new) > b:
        return Patterns(None, np.arange(b), (~missing).astype(dtype))
    return Patterns(order, np.cumsum(new) - 1, (~missing[order[new]]).astype(dtype))


@cache
def triangle(k: int) -> tuple[Array, Array]:
    """Return rows and columns of the entries of a lower triangle, row by row; not to be written to."""
    return np.tril_indices(k)


def unpacked(T: Array, k: int) -> Array:
    """Return symmetric matrices (u, k, k) of their lower triangles (u, k (k + 1) / 2)."""
    out = np.empty((len(T), k, k), T.dtype)
    i, j = triangle(k)
    out[:, i, j] = out[:, j, i] = T
    return out


def posterior(block: Array, W: Array, noise: float) -> Posterior:
    """Return the posterior of the rows of a tile, less the mean, NaN = missing.

    A tile in single precision has its large products in it, and its scores; what is made of W'W is in double.
    """
    k, W = W.shape[1], W.astype(block.dtype, copy=False)
    missing = np.isnan(block)
    patterns = group(missing, block.dtype)
    R = np.where(missing, 0.0, block)
    if patterns.order is not None:
        R = R[patterns.order]
    i, j = triangle(k)
    G = patterns.observed @ (W[:, i] * W[:, j])
    B = (R @ W).astype(np.float64, copy=False)
    compiled = loops("missing_em") if ROWS_PER_PATTERN * len(G) > len(B) else None
    solve = posteriors if compiled is None else compiled.posteriors
    Z, C, logdet = solve(G.astype(np.float64, copy=False), noise, patterns.which, B)
    Z = Z.astype(block.dtype, copy=False)
    residual = Z @ W.T
    np.subtract(R, residual, out=residual)  # in place: fresh memory of this size costs more than the product
    if len(patterns.observed) == len(block):
        residual *= patterns.observed
    else:
        for u, rows in _runs(patterns.which):
            residual[rows] *= patterns.observed[u]
    cells = patterns.observed.sum(axis=1)
    constant = cells * np.log(2 * np.pi) + (cells - k) * np.log(noise) + logdet
    left = np.einsum("ij,ij->i", residual, residual)
    fit = left / noise + np.einsum("ij,ij->i", Z, Z)
    return Posterior(patterns, R, Z, residual, left, C, -0.5 * (constant[patterns.which] + fit))


def posteriors(G: Array, noise: float, which: Array, B: Array) -> tuple[Array, Array, Array]:
    """Return scores (b, k), packed covariances (u, k (k + 1) / 2) and log |M| (u,), pattern by pattern."""
    k = B.shape[1]
    i, j = triangle(k)
    values, V = np.linalg.eigh(unpacked(G, k))
    values = np.maximum(values, 0.0) + noise
    inverse = (V / values[:, None, :]) @ V.transpose(0, 2, 1)
    if len(G) == len(B):
        Z = np.einsum("bij,bj->bi", inverse, B)
    else:
        Z = np.empty_like(B)
        for u, rows in _runs(which):
            Z[rows] = B[rows] @ inverse[u]
    return Z, noise * inverse[:, i, j], np.log(values).sum(axis=1)


def _runs(which: Array) -> Iterator[tuple[int, slice]]:
    """Yield each pattern with the rows that have it."""
    ends = np.append(np.flatnonzero(np.diff(which)) + 1, len(which))
    begin = 0
    for end in ends.tolist():
        yield int(which[begin]), slice(begin, end)
        begin = end


class Sums(NamedTuple):
    """What an M-step needs of all rows: sums over rows, each times its weight. Additive over any split of rows.

    r is a row less the mean, e = r - W z what the model leaves of it, both 0 in missing cells; o is 1 in observed ones.
    """

    second: Array  # (p, k (k + 1) / 2) sum of o_j E[z z']
    first: Array  # (p, k) sum of o_j z
    counts: Array  # (p,) sum of o_j
    cross: Array  # (p, k) sum of r_j z
    sums: Array  # (p,) sum of r_j
    latent: Array  # (k, k) sum of E[z z'], of all rows
    centre: Array  # (k,) sum of z, of all rows
    total: Array  # () sum of weights, of all rows
    left: Array  # () sum of |e|^2
    spread: Array  # () sum of tr(W_o'W_o C) / noise = sum of k - tr C, C the covariance of z
    log_likelihood: Array  # ()


def sums(found: Posterior, weight: Array | None = None) -> Sums:
    """Return the sums over the rows of a tile; ``weight`` (b,) defaults to ones."""
    (_, which, observed), Z = found.patterns, found.scores
    k, weight = Z.shape[1], found.patterns.weights(weight)
    weighted = Z * weight[:, None]
    i, j = triangle(k)
    payload = np.empty((len(observed), len(i) + k + 1))
    if len(observed) == len(Z):
        np.multiply(found.covariance, weight[:, None], out=payload[:, : len(i)])
        for a in range(k):  # row by row of the triangle: far faster than to gather all its entries
            begin = a * (a + 1) // 2
            payload[:, begin : begin + a + 1] += weighted[:, a : a + 1] * Z[:, : a + 1]
        payload[:, len(i) : -1], payload[:, -1] = weighted, weight
    else:
        for u, rows in _runs(which):
            total = weight[rows].sum()
            products = weighted[rows].T @ Z[rows]
            payload[u] = np.concatenate(
                [total * found.covariance[u] + products[i, j], weighted[rows].sum(axis=0), [total]]
            )
    by_feature = observed.T @ payload
    second, first, count = np.split(by_feature, [len(i), len(i) + k], axis=1)
    of_patterns = np.bincount(which, weight, len(observed))
    spread = k * of_patterns.sum() - of_patterns @ found.covariance[:, i == j].sum(axis=1)
    return Sums(
        second,
        first,
        count[:, 0],
        found.filled.T @ weighted,
        weight @ found.filled,
        weighted.T @ Z + unpacked((of_patterns @ found.covariance)[None], k)[0],
        weighted.sum(axis=0),
        np.asarray(weight.sum()),
        np.asarray(weight @ found.left),
        np.asarray(spread),
        np.asarray(weight @ found.log_likelihood),
    )


# Predictions


def predict(block: Array, W: Array, noise: float) -> tuple[Array, Array]:
    """Return mean and variance (b, p) of each cell of a tile, less the mean, given the observed cells of its row."""
    found = posterior(block, W, noise)
    i, j = triangle(W.shape[1])
    products = W[:, i] * W[:, j] * np.where(i == j, 1.0, 2.0)
    variance = noise + found.covariance @ products.T
    return found.in_order(found.scores) @ W.T, found.in_order(variance[found.patterns.which])
