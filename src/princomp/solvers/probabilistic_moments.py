"""Expectation maximisation in which cells are hidden and scores are not: the M-step is the closed form.

Objective: the log-likelihood of the observed cells, as in `probabilistic`. With S = W W' + noise I and P its inverse, a
row that misses the cells m has, r being the row less the mean with zeros for what is missing,

    x_m | x_o ~ N(-P_mm^-1 (P r)_m, P_mm^-1),   log |S_oo| = log |S| + log |P_mm|.

E-step: first and second moments of the filled rows, with the covariance of what is missing. M-step: the closed form of
`probabilistic` for these moments (Tipping & Bishop, J. R. Statist. Soc. B 1999, appendix A). A step gains more than one
that hides the scores too, the more so the more components there are: of complete rows of one cluster it is the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.probabilistic import Patterns, group
from princomp.solvers.probabilistic_em import LEAST_NOISE, Data, Model, tile_rows

# What steps cost for a row, in units of p^2 / 3 flops of a product of large matrices: an inverse of m x m numbers; the
# decompositions of a step; what each cell of steps that hide scores is read and written. Measured on 150 to 10,000 rows
# of 4 to 500 features, 2 to 60 components, with up to .3 of the cells missing.
INVERSE = 30.0
DECOMPOSED = 12.0
TOUCHED = 140.0
SLOWEST = 0.999  # ratio of gains, above which none is believed
FEWER = 2.0  # steps that hide the scores too, for one that does not, at least


def cells_alone(rows: float, p: int, k: int, missing: float) -> bool:
    """Tell whether steps that hide cells alone are the faster ones, for so many rows with ``missing`` cells each."""
    mine = 3 * p**2 + INVERSE * missing**3 + DECOMPOSED * p**3 / rows
    return mine <= FEWER * (p * k**2 + k**3 + TOUCHED * p)


class Moments(NamedTuple):
    """What an M-step needs of all rows: sums over rows, each times its weight. Additive over any split of rows."""

    total: Array  # () sum of weights
    first: Array  # (p,) sum of x
    second: Array  # (p, p) sum of E[x x']


class Tile(NamedTuple):
    """The rows of a tile in the order of their patterns, which cells they miss, and those by their number."""

    patterns: Patterns
    rows: Array  # (b, p) 0 in missing cells
    observed: Array | None  # (b, p) which cells are there; None: all
    # Of the patterns that miss m cells: which they are (g,), the cells (g, m), their rows (r,), the pattern of each.
    groups: list[tuple[Array, Array, Array, Array]]

    @classmethod
    def of(cls, block: Array) -> Tile:
        """Return a tile, NaN = missing."""
        missing = np.isnan(block)
        patterns = group(missing)
        if not missing.any():
            return cls(patterns, block, None, [])
        rows = np.where(missing, 0.0, block)
        if patterns.order is not None:
            rows = rows[patterns.order]
        gone = (patterns.observed == 0).sum(axis=1)
        groups = []
        for m in np.unique(gone[gone > 0]).tolist():
            some = np.flatnonzero(gone == m)
            cells = np.nonzero(patterns.observed[some] == 0)[1].reshape(-1, m)
            of_rows = np.flatnonzero(gone[patterns.which] == m)
            groups.append((some, cells, of_rows, np.searchsorted(some, patterns.which[of_rows])))
        return cls(patterns, rows, patterns.observed[patterns.which], groups)


class Filled(NamedTuple):
    """What a tile's rows say about their missing cells, in the order of its patterns."""

    rows: Array  # (b, p) less the mean, missing cells as expected
    covariances: list[Array]  # (g, m, m) of the missing cells of each group
    log_likelihood: Array  # (b,)


def root_of_precision(model: Model) -> tuple[Array, float]:
    """Return A (p, p) with A A' = (W W' + noise I)^-1, and log |W W' + noise I|.

    By Cholesky's factor of the correlations: columns in units of their own are resolved each in its own.
    """
    S = model.W @ model.W.T
    S.flat[:: len(S) + 1] += model.noise
    deviation = np.sqrt(np.diag(S))
    S /= np.outer(deviation, deviation)
    L = np.linalg.cholesky(S)
    A = np.linalg.inv(L).T / deviation[:, None]
    return A, 2 * float(np.log(np.diag(L)).sum() + np.log(deviation).sum())


def fill(tile: Tile, shift: Array, A: Array, logdet: float) -> Filled:
    """Return the rows less the mean, with missing cells as a model expects them that has this `root_of_precision`."""
    patterns, R = tile.patterns, tile.rows - shift
    covariances, constant = [], patterns.observed.sum(axis=1) * np.log(2 * np.pi) + logdet
    if tile.observed is not None:
        R *= tile.observed
        P = A @ A.T
        pulled = R @ P
        for some, cells, rows, which in tile.groups:
            of_cells = P[cells[:, :, None], cells[:, None, :]]
            constant[some] += np.linalg.slogdet(of_cells)[1]
            C = np.linalg.inv(of_cells)
            places = rows[:, None], cells[which]
            R[places] = -np.einsum("bij,bj->bi", C[which], pulled[places])
            covariances.append(C)
    Y = R @ A
    return Filled(R, covariances, -0.5 * (constant[patterns.which] + np.einsum("ij,ij->i", Y, Y)))


def moments(tile: Tile, found: Filled, weight: Array) -> Moments:
    """Return the sums over the rows of a tile; ``weight`` (b,) in the order of its patterns, as all that was found."""
    p = found.rows.shape[1]
    half = found.rows * np.sqrt(weight)[:, None]
    second = half.T @ half
    of_patterns = np.bincount(tile.patterns.which, weight, len(tile.patterns.observed))
    for (some, cells, _, _), C in zip(tile.groups, found.covariances):
        places = cells[:, :, None] * p + cells[:, None, :]
        second += np.bincount(places.ravel(), (C * of_patterns[some, None, None]).ravel(), p * p).reshape(p, p)
    return Moments(np.asarray(weight.sum()), weight @ found.rows, second)


def maximise(found: Moments, model: Model, *, floor: float, k: int | None = None) -> Model:
    """Return the M-step: the closed form for the moments, with as many components, or ``k``."""
    p, k = len(model.W), model.W.shape[1] if k is None else k
    mean = found.first / found.total
    values, V = np.linalg.eigh(found.second / found.total - np.outer(mean, mean))
    values, V = np.maximum(values[::-1], 0.0), V[:, ::-1]
    noise = max(float(values[k:].sum()) / max(p - k, 1), LEAST_NOISE * float(values.sum()) / p, floor)
    return Model(V[:, :k] * np.sqrt(np.maximum(values[:k] - noise, 0.0)), model.shift + mean, noise)


def em(data: Data, model: Model) -> Iterator[State]:
    """Yield states from a model on, along which the log-likelihood never falls; no more where rounding hides all gains.

    A value has the model, and the moments found there, by name. ``residual`` is the gain estimated to be left for each
    observed cell, as in `probabilistic_mixture`.
    """
    last, gain, iteration = -np.inf, np.inf, 0
    while True:
        found, objective = expect(data, model)
        before, gain = gain, objective - last
        if gain < 0:
            return
        ratio = min(gain / before, SLOWEST) if np.isfinite(before) and before > 0 else SLOWEST
        residual = gain * max(ratio / (1 - ratio), 1.0) / data.moments.cells
        last, iteration = objective, iteration + 1
        yield State(model.named() | found._asdict(), objective, residual, iteration)
        model = maximise(found, model, floor=data.floor)


def following(data: Data, value: Value, k: int) -> Model:
    """Return the model of k components that the moments in a value lead to."""
    found = Moments(*(value[name] for name in Moments._fields))
    return maximise(found, Model(value["W"], value["shift"], float(value["noise"])), floor=data.floor, k=k)


def expect(data: Data, model: Model) -> tuple[Moments, float]:
    """Return the moments of all rows, and the log-likelihood."""
    root, p = root_of_precision(model), len(model.W)
    *found, objective = data.around(model.shift).reduce(_expect, *root, data.weight, tile_rows=tile_rows(p, 1))
    return Moments(*found), float(objective)


def _expect(block: Array, rows: slice, A: Array, logdet: float, weight: Array | None) -> tuple[Array, ...]:
    tile = Tile.of(block)
    found = fill(tile, np.zeros(len(A)), A, logdet)
    here = tile.patterns.weights(None if weight is None else weight[rows])
    return (*moments(tile, found, here), np.asarray(here @ found.log_likelihood))
