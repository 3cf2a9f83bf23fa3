"""Probabilistic PCA by expectation maximisation with missing cells (Tipping & Bishop, J. R. Statist. Soc. B 1999).

Objective: the log-likelihood L of the observed cells over W (p, k), mean (p,) and noise (see `probabilistic`), less
(prior / 2) log |W'W|, which is what Bishop's relevance prior (NIPS 1998), of weights prior / |w_i|^2, comes to.

E-step: the posterior of each row given its observed cells, summed (`probabilistic.Sums`). M-step: for each feature j,
from what the present W and mean leave, the change of (w_j, mean_j) solves

    [[A_j, s_j], [s_j', n_j]] change = [sum r_j z - A_j w_j, sum r_j - s_j'w_j],   A_j = sum E[z z'], s_j = sum z

over the n_j rows that have j; noise is the mean of what is left then. The right-hand side over noise is the gradient
of L. Parameter expansion (Liu, Rubin & Wu, Biometrika 1998) gives the scores back their mean 0 and covariance I, which
plain EM takes long to do. Anderson extrapolation (Walker & Ni, SIAM J. Numer. Anal. 2011) is taken where it does not
lower the objective, else the plain step, which never does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.result import State, Value
from princomp.solvers import probabilistic
from princomp.solvers.extrapolation import anderson, remember
from princomp.solvers.leading import leading_roughly
from princomp.solvers.probabilistic import Sums, unpacked

TILE_BYTES = 2**21  # 20,000 x 100, a tenth missing, ten components: 2^18, 2^20 and 2^23 take a sixth longer
TILE_ROWS = (64, 4096)
SOLVE_BYTES = 2**24  # of the systems of some features, solved together: 2^18 and 2^28 take as long (900 x 60)
# The gain that the extrapolation promises is a part of what is there; the largest of the last WINDOW, times SAFETY.
# Three fits, 300 x 40 to 1000 x 60, a tenth to 0.4 missing, took 21 steps; with a window of 1, 15, and they ended 8e-6
# lower together; with 6, 30, to gain 1e-9.
SAFETY = 5.0
WINDOW = 3
LEAST_PROMISE = 1e-11  # promises below this, for each cell, are rounding, whatever their sign
LOST = 1e-10  # of the objective may be rounding
# Noise below this share of the mean variance is taken for none: the likelihood must stay finite.
LEAST_NOISE = 1e-13
# The start needs no more digits than these; more save no step (5000 x 200 to 300 x 40, a fifth of the cells missing).
START_TOL = 1e-3
START_STEPS = 50


class Model(NamedTuple):
    """W, the mean less a fixed point, and the noise."""

    W: Array  # (p, k)
    shift: Array  # (p,)
    noise: float

    def named(self) -> dict[str, Array]:
        """Return the parameters for a solver's value."""
        return {"W": self.W, "shift": self.shift, "noise": np.array(self.noise)}

    def flat(self) -> Array:
        """Return all parameters in one vector."""
        return np.concatenate([self.W.ravel(), self.shift, [np.log(self.noise)]])

    @classmethod
    def of(cls, flat: Array, p: int, floor: float) -> Model:
        """Return the model of a vector, its noise not below ``floor``."""
        W = flat[: -p - 1].reshape(p, -1)
        return cls(W, flat[-p - 1 : -1], max(float(np.exp(np.minimum(flat[-1], 700.0))), floor))


class Hidden(NamedTuple):
    """A share of the cells, chosen by seed, row and column, and so by nothing else."""

    seed: int
    share: float

    def cells(self, rows: slice, p: int) -> Array:
        """Return which cells of these rows are hidden, (rows, p)."""
        x: Array = np.arange(rows.start, rows.stop, dtype=np.uint64)[:, None] * np.uint64(p) + np.arange(
            p, dtype=np.uint64
        )
        # Vigna's splitmix64: each bit of the result depends on all bits of the place.
        x += np.uint64((self.seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        return x < np.uint64(self.share * 2.0**64)


@dataclass(frozen=True)
class Data:
    """Rows less a point near their mean, times a number, NaN = missing; with their moments and weights."""

    rows: Rows
    moments: statistics.ObservedMoments
    unit: float = 1.0
    weight: Array | None = None  # (n,)
    hidden: Hidden | None = None  # cells to leave out

    @property
    def floor(self) -> float:
        """The least noise."""
        return max(LEAST_NOISE * self.moments.variance, np.finfo(np.float64).tiny)

    @property
    def share(self) -> float:
        """The share of cells that are observed."""
        return min(self.moments.cells / (self.moments.total * self.rows.shape[1]), 1.0)

    @property
    def complete(self) -> bool:
        """Whether each row has all its cells."""
        return self.hidden is None and bool((self.moments.counts >= self.moments.total * (1 - 1e-12)).all())

    @property
    def rows_with_weight(self) -> int:
        """How many rows have a weight."""
        return self.rows.shape[0] if self.weight is None else int(np.count_nonzero(self.weight))

    @property
    def count(self) -> float:
        """How many rows there are for a choice: weights that sum to less than one for each row are relative."""
        return max(self.moments.total, float(self.rows_with_weight))

    def around(self, shift: Array | float = 0.0, *, single: bool = False) -> Centered:
        """Return the rows less their mean and ``shift``, in dense tiles; hidden cells are missing too."""
        factor = None if self.unit == 1.0 else np.full(self.rows.shape[1], self.unit)
        X = Centered(self.rows, self.moments.mean + shift / self.unit, factor, dense_tiles=True, single=single)
        return X if self.hidden is None else X.changed(without, self.hidden)

    def rows_by_cells(self) -> Array:
        """Return how many rows with a weight have 0, 1, ... p observed cells."""
        return self.around().reduce(_rows_by_cells, self.weight)

    def sums(self, model: Model) -> Sums:
        """Return the sums of an E-step."""
        state = (model.W, model.noise, self.weight)
        return Sums(*self.around(model.shift).reduce(_sums, *state, tile_rows=tile_rows(*model.W.shape)))


def tile_rows(p: int, k: int) -> int:
    """Return how many rows to sum at a time: enough for BLAS, and few enough for the cache."""
    return min(max(TILE_BYTES // (8 * max(p, k * (k + 1) // 2)), TILE_ROWS[0]), TILE_ROWS[1])


def without(block: Array, rows: slice, hidden: Hidden) -> tuple[Array, slice]:
    """Return a tile in which hidden cells are missing too."""
    return np.where(hidden.cells(rows, block.shape[1]), np.nan, block), rows


def _sums(block: Array, rows: slice, W: Array, noise: float, weight: Array | None) -> tuple[Array, ...]:
    return probabilistic.sums(probabilistic.posterior(block, W, noise), None if weight is None else weight[rows])


def _rows_by_cells(block: Array, rows: slice, weight: Array | None) -> Array:
    observed = (~np.isnan(block)).sum(axis=1)
    return np.bincount(observed if weight is None else observed[weight[rows] > 0], minlength=block.shape[1] + 1)


# Where to begin


def begin(data: Data, k: int, rng: np.random.Generator) -> Model:
    """Return a model to start from: the closed form for the covariance of the rows with missing cells at the mean.

    A share q of the cells being observed, that covariance is q^2 times the true one off the diagonal, q times on it.
    """
    p, q, variance = data.rows.shape[1], data.share, data.moments.variance
    values, V = _leading_filled(data, k, rng, START_TOL)
    values = values / (data.moments.total * q**2) - (1 - q) / q * variance
    noise = (p * variance - float(values.sum())) / max(p - k, 1)
    noise = max(noise, 0.1 * (1 - q) * variance, data.floor)
    return Model(V * np.sqrt(np.maximum(values - noise, 0.01 * noise)), np.zeros(p), noise)


def filled_rank(data: Data, rng: np.random.Generator) -> int:
    """Return the rank of the rows less their mean, with missing cells at the mean."""
    values, _ = _leading_filled(data, min(data.rows.shape), rng, 1e-6)
    bound = 10 * max(data.rows.shape) * np.finfo(np.float64).eps
    return int((values > bound * values[0]).sum())


def _leading_filled(data: Data, k: int, rng: np.random.Generator, tol: float) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of X'X, X having zeros for missing cells, and their vectors (p, k)."""
    X = data.around()

    def apply(V: Array) -> Array:
        return X.reduce(_filled_gram_apply, V, data.weight)

    values, V = leading_roughly(apply, X.shape[1], k, rng, tol=tol, most=START_STEPS)
    return np.maximum(values, 0.0), V


def _filled_gram_apply(block: Array, rows: slice, V: Array, weight: Array | None) -> Array:
    filled = np.where(np.isnan(block), 0.0, block)
    scores = filled @ V
    if weight is not None:
        scores *= weight[rows, None]
    return filled.T @ scores


# The M-step


class Step(NamedTuple):
    """What the sums at a model lead to."""

    plain: Model  # after the M-step
    gradient: Array  # of the objective at the model, in the order of `Model.flat`


def maximise(sums: Sums, model: Model, *, prior: float, floor: float) -> Step:
    """Return the M-step, and the gradient at the model."""
    W, shift, noise = model
    p, k = W.shape
    precision = np.zeros((k, k))
    if prior:
        sizes, V = _sizes(W, floor)
        precision = noise * prior * (V / sizes) @ V.T
    change, gradient = np.empty((p, k + 1)), np.empty((p, k + 1))
    left = float(sums.left + noise * sums.spread)
    slope = 0.5 * (left / noise - float(sums.counts.sum()))
    size = max(1, SOLVE_BYTES // (8 * (k + 1) ** 2))
    for first in range(0, p, size):
        some = slice(first, first + size)
        N, right = _systems(sums, W, some)
        pulled = right.copy()
        pulled[:, :k] -= W[some] @ precision
        system = N.copy()
        system[:, :k, :k] += precision
        system[sums.counts[some] <= 0] = np.eye(k + 1)  # a feature that nobody has stays where it is
        change[some] = np.linalg.solve(system, pulled[:, :, None])[:, :, 0]
        gradient[some] = pulled / noise
        left += float(np.einsum("ja,jab,jb->", change[some], N, change[some], optimize=True))
        left -= 2 * float(np.vdot(right, change[some]))
    if at_floor(noise, floor):
        slope = max(slope, 0.0)
    new_noise = max(left / float(sums.counts.sum()), floor)
    plain = _expanded(sums, Model(W + change[:, :k], shift + change[:, k], new_noise), prior)
    return Step(plain, np.concatenate([gradient[:, :k].ravel(), gradient[:, k], [slope]]))


def at_floor(noise: float, floor: float) -> bool:
    """Tell whether noise is the least there may be, up to rounding."""
    return noise <= floor * (1 + 1e-9)


def _sizes(W: Array, floor: float) -> tuple[Array, Array]:
    """Return eigenvalues of W'W, kept off zero, and its eigenvectors."""
    values, V = np.linalg.eigh(W.T @ W)
    return np.maximum(values, floor), V


def _systems(sums: Sums, W: Array, some: slice) -> tuple[Array, Array]:
    """Return matrices (features, k + 1, k + 1) and right-hand sides of the systems of some features."""
    k = W.shape[1]
    N = np.empty((len(W[some]), k + 1, k + 1))
    N[:, :k, :k] = unpacked(sums.second[some], k)
    N[:, :k, k] = N[:, k, :k] = sums.first[some]
    N[:, k, k] = sums.counts[some]
    right = np.column_stack([sums.cross[some], sums.sums[some]])
    right -= np.einsum("jab,jb->ja", N[:, :, :k], W[some])
    return N, right


def _expanded(sums: Sums, model: Model, prior: float) -> Model:
    """Return the model whose scores have mean 0 and covariance I, in place of one whose scores were found to differ.

    By the symmetric root, so that a rotation of W rotates the answer and does nothing else.
    """
    centre = sums.centre / sums.total
    covariance = (sums.latent - np.outer(sums.centre, centre)) / (sums.total + prior)
    values, V = np.linalg.eigh(covariance)
    root = (V * np.sqrt(np.maximum(values, 0.0))) @ V.T
    return Model(model.W @ root, model.shift + model.W @ centre, model.noise)


# The iteration


def start(model: Model) -> Value:
    """Return the value before the first step."""
    flat = model.flat()
    return {
        **model.named(),
        "objective": np.array(-np.inf),
        "plain": flat,  # where to go
        "bold": np.zeros(0),  # where to go if it is no worse
        "points": np.zeros((0, len(flat))),
        "images": np.zeros((0, len(flat))),
        "promised": np.full(WINDOW, np.inf),
        "iteration": np.array(0),
    }


def model_of(value: Value) -> Model:
    """Return the model of a state."""
    return Model(value["W"], value["shift"], float(value["noise"]))


def em(data: Data, value: Value, *, prior: float = 0.0) -> Iterator[State]:
    """Yield states along which the objective never falls; no more where rounding hides all gains.

    ``objective`` is the log-likelihood, less ``prior`` / 2 log |W'W|, of `model_of` the value (prior 0 is for maximum
    likelihood, p for relevance); ``residual`` the estimated gain that is left, for each observed cell, infinite at a
    saddle.
    """
    value = dict(value)
    while True:
        model, sums, objective = _best(data, value, prior)
        if objective < value["objective"] - LOST * (1 + abs(objective)):
            return  # a plain step leads up, but for rounding: no further step can be told from it
        step = maximise(sums, model, prior=prior, floor=data.floor)
        points, images = remember(value["points"], model.flat()), remember(value["images"], step.plain.flat())
        bold, promise = _extrapolate(points, images, step.gradient, model, float(sums.counts.sum()))
        promised = np.append(value["promised"][1:], promise)
        if data.complete and at_floor(model.noise, data.floor) and at_floor(step.plain.noise, data.floor):
            promised = np.zeros(WINDOW)  # nothing is left of complete rows: slopes, over such a noise, are rounding
        value |= {
            **model.named(),
            "objective": np.array(objective),
            "plain": images[-1],
            "bold": bold,
            "points": points,
            "images": images,
            "promised": promised,
            "iteration": value["iteration"] + 1,
        }
        yield State(dict(value), objective, SAFETY * float(promised.max()), int(value["iteration"]))


def _best(data: Data, value: Value, prior: float) -> tuple[Model, Sums, float]:
    """Return the extrapolated model if it is no worse than the present one, else that of the plain step."""
    for name in ("bold", "plain"):
        if value[name].size:
            model = Model.of(value[name], len(value["shift"]), data.floor)
            sums = data.sums(model)
            objective = float(sums.log_likelihood)
            if prior:
                objective -= 0.5 * prior * float(np.log(_sizes(model.W, data.floor)[0]).sum())
            if name == "plain" or objective >= value["objective"]:
                break
    return model, sums, objective


def _extrapolate(points: Array, images: Array, gradient: Array, model: Model, cells: float) -> tuple[Array, float]:
    """Return Anderson's combination of the last images, and the gain for each cell that it promises.

    Half of slope times step is what a quadratic objective has left, if the step leads to its maximum. A step that leads
    down leads to a saddle: the opposite one is taken, and nothing can be said about what is left.
    """
    here, plain = points[-1], images[-1]
    least = 0.5 * float(gradient @ (plain - here)) / cells
    metric = np.full(len(here), 1 / np.sqrt(model.noise))
    metric[-1] = np.sqrt(len(model.shift) / 2)
    combined = anderson(points, images, metric)
    if combined is None:
        return np.zeros(0), np.inf
    step = combined - here
    promise = 0.5 * float(gradient @ step) / cells
    if promise >= -LEAST_PROMISE:
        return here + step, max(promise, least, 0.0)
    return here - step, np.inf
