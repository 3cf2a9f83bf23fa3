"""Mixtures of probabilistic PCA by expectation maximisation (Tipping & Bishop, Neural Computation 1999).

Model: a row belongs to cluster c with probability ``share_c`` and is then x = W_c z + mean_c + e, z ~ N(0, I_k),
e ~ N(0, noise_c I_p). Objective: the log-likelihood of the observed cells,

    L = sum_n log sum_c share_c N(x_n; mean_c, W_c W_c' + noise_c I).

E-step: responsibilities, r_nc = share_c N(x_n; c) / sum_c' share_c' N(x_n; c'), and for each cluster the sums of
`probabilistic` with rows weighted by them. M-step: share_c = mean of r_nc, and that of `probabilistic_em` for each
cluster. Neither lowers L. What L still has to gain is estimated from the ratio of its last two gains (Aitken), and not
as less than the last of them.

L has no bound where a cluster shrinks to k + 1 rows, or to rows of one subspace: noise is kept above what its cluster's
own variance resolves, a cluster of so few rows stays as it is, and starts that lead there are taken last.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data import Centered
from princomp.result import State, Value, settled
from princomp.solvers.probabilistic import Posterior, Sums, posterior, sums
from princomp.solvers.probabilistic_em import LEAST_NOISE, Model, at_floor, maximise, tile_rows
from princomp.solvers.signs import signs

SLOWEST = 0.999  # ratio of gains, above which none is believed: 0.9 and 0.99999 took as many steps (80 x 40)
# Of four clusters of 60 rows in 15 features, six draws, a single try led to -27.48 for a row, 5 rounds to -26.11;
# these, and 30 tries, 3 directions, 3 or 30 steps, to -25.54.
LEADING = 10  # principal directions that a start is mixed of
ROUNDS = 50  # of rows going to the nearest subspace
TRIES = 10  # random subspaces, of which the nearest to the rows are a start
SHORT = 10  # steps from each start before the best is chosen


class Mixture(NamedTuple):
    """Parameters of m clusters; means are less a fixed point."""

    share: Array  # (m,)
    W: Array  # (m, p, k)
    shift: Array  # (m, p)
    noise: Array  # (m,)

    @classmethod
    def of(cls, value: Value, suffix: str = "") -> Mixture:
        """Return the mixture in a solver's value."""
        return cls(*(value[f"{name}{suffix}"] for name in cls._fields))

    def named(self, suffix: str = "") -> dict[str, Array]:
        """Return the parameters for a solver's value."""
        return {f"{name}{suffix}": array for name, array in zip(self._fields, self)}


class Responsibilities(NamedTuple):
    """What a tile's rows say about their clusters."""

    clusters: list[Posterior]
    share: Array  # (b, m)
    log_likelihood: Array  # (b,)


def responsibilities(block: Array, mixture: Mixture) -> Responsibilities:
    """Return the posterior of the rows of a tile, less the fixed point, NaN = missing."""
    clusters = [
        posterior(block - shift, W, float(noise)) for W, shift, noise in zip(mixture.W, mixture.shift, mixture.noise)
    ]
    with np.errstate(divide="ignore"):
        joint = np.column_stack([found.in_order(found.log_likelihood) for found in clusters]) + np.log(mixture.share)
    most = joint.max(axis=1, keepdims=True)
    likelihood = np.exp(joint - most)
    total = likelihood.sum(axis=1, keepdims=True)
    return Responsibilities(clusters, likelihood / total, (most + np.log(total))[:, 0])


def _expect(block: Array, rows: slice, mixture: Mixture, weight: Array | None) -> tuple[Array, ...]:
    """Return the sums of each cluster, one after the other, and the log-likelihood."""
    found = responsibilities(block, mixture)
    weights = found.share if weight is None else found.share * weight[rows, None]
    out: list[Array] = []
    for cluster, weight_of_rows in zip(found.clusters, weights.T):
        out += sums(cluster, weight_of_rows)
    total = found.log_likelihood.sum() if weight is None else weight[rows] @ found.log_likelihood
    return (*out, np.asarray(total))


def expect(X: Centered, mixture: Mixture, weight: Array | None) -> tuple[list[Sums], float]:
    """Return the sums of each cluster and the log-likelihood, of rows less the fixed point."""
    m, p, k = mixture.W.shape
    *found, total = X.reduce(_expect, mixture, weight, tile_rows=tile_rows(p, k))
    width = len(Sums._fields)
    return [Sums(*found[width * c : width * (c + 1)]) for c in range(m)], float(total)


def start(mixture: Mixture) -> Value:
    """Return the value before the first step."""
    return {
        **mixture.named(),
        **mixture.named("_next"),
        "objective": np.array(-np.inf),
        "gain": np.array(np.inf),
        "iteration": np.array(0),
    }


class Limits(NamedTuple):
    """What the data resolve."""

    floor: float  # that no noise goes below, whatever its cluster
    cells: float  # number of observed cells, which residuals are relative to
    total: float  # sum of the weights of all rows
    single: float  # what one row weighs, at least

    def floors(self, mixture: Mixture) -> Array:
        """Return the least noise of each cluster: a share of its own variance, or what the numbers resolve."""
        own = np.einsum("mpk,mpk->m", mixture.W, mixture.W) / mixture.W.shape[1] + mixture.noise
        return np.maximum(LEAST_NOISE * own, self.floor)

    def collapsed(self, mixture: Mixture) -> Array:
        """Tell of each cluster whether it has no noise, or no more rows than fix a subspace."""
        bare = [at_floor(noise, least) for noise, least in zip(mixture.noise, self.floors(mixture))]
        return np.array(bare) | (mixture.share * self.total <= (mixture.W.shape[2] + 1) * self.single)


def em(X: Centered, value: Value, *, weight: Array | None, limits: Limits) -> Iterator[State]:
    """Yield states along which the log-likelihood never falls, but for clusters whose noise is the least there may be.

    ``X`` has rows less a fixed point, NaN = missing, ``weight`` (n,) is theirs. A value has the parameters, by name,
    whose objective the state has, and those after the next step ("_next"). Without ``limits`` a cluster could shrink to
    a point, where the likelihood has no bound. ``residual`` is the gain estimated to be left, for each observed cell.
    """
    last, gain, iteration = float(value["objective"]), float(value["gain"]), int(value["iteration"])
    mixture = Mixture.of(value, "_next")
    while True:
        found, objective = expect(X, mixture, weight)
        ratio = min(max((objective - last) / gain, 0.0), SLOWEST) if np.isfinite(gain) and gain > 0 else SLOWEST
        gain = objective - last
        # Gains fall by about the same ratio each time only near the end; early on the next may be as large as the last.
        residual = max(gain, 0.0) * max(ratio / (1 - ratio), 1.0) / limits.cells if np.isfinite(gain) else np.inf
        last, iteration = objective, iteration + 1
        following = maximise_all(found, mixture, limits)
        named = {"objective": np.array(objective), "gain": np.array(gain), "iteration": np.array(iteration)}
        yield State(mixture.named() | following.named("_next") | named, objective, residual, iteration)
        mixture = following


def maximise_all(found: list[Sums], mixture: Mixture, limits: Limits) -> Mixture:
    """Return the M-step; a cluster to which hardly a row belongs stays where it is."""
    totals = np.array([float(each.total) for each in found])
    after = []
    for each, floor, W, shift, noise in zip(found, limits.floors(mixture), *mixture[1:]):
        model = Model(W, shift, float(noise))
        # Fewer rows than parameters of a feature: its equations would be singular.
        enough = float(each.total) > (W.shape[1] + 1) * limits.single
        after.append(maximise(each, model, prior=0.0, floor=float(floor)).plain if enough else model)
    return Mixture(totals / totals.sum(), *(np.array(parameter) for parameter in zip(*after)))


# Where to begin


def guesses(sample: Array, weight: Array, m: int, k: int, floor: float, rng: np.random.Generator) -> Iterator[Mixture]:
    """Yield mixtures to start from, without end: clusters of some rows, and the leading directions of each.

    By turns clusters around points (k-means) and around subspaces, which finds clusters that cross. Points and
    subspaces begin at random, but for the first points, side by side along the leading direction: a row of weight 2
    counts as two rows, as it would not if rows were drawn.
    """
    from scipy.stats import norm

    filled = np.where(np.isnan(sample), 0.0, sample)  # the fixed point is near the mean
    centre, values, V = _axes(filled, weight)
    kept = LEADING + m * (k + 1)  # directions: those of all clusters are among the leading ones
    rows, size = (filled - centre) @ V[:, :kept], np.sqrt(values[:kept])
    places = norm.ppf((np.arange(m) + 0.5) / m)[:, None]
    mix = np.eye(1, LEADING)[0]
    while True:
        direction = np.zeros(len(size))
        direction[:LEADING] = mix[: len(size)] * size[:LEADING]
        yield _of_parts(filled, weight, _nearest(rows, weight, places * direction, 0)[0], m, k, floor)
        tries = []
        for _ in range(TRIES):
            points, *axes = rng.standard_normal((k + 1, m, kept))[:, :, : len(size)] * size
            tries.append(_nearest(rows, weight, points, min(k, len(size)), np.array(axes).transpose(1, 2, 0)))
        yield _of_parts(filled, weight, min(tries, key=lambda found: found[1])[0], m, k, floor)
        mix = rng.standard_normal(LEADING)


def _nearest(rows: Array, weight: Array, points: Array, d: int, axes: Array | None = None) -> tuple[Array, float]:
    """Return to which of m subspaces of d dimensions each row goes, and the squares left: rows and subspaces by turns.

    Subspaces begin through ``points`` (m, q), along ``axes`` (m, q, d or more); those of 0 dimensions are points.
    """
    m, q = points.shape
    points = points.copy()
    bases = np.zeros((m, q, 0)) if axes is None else np.linalg.qr(axes)[0][:, :, :d]
    label = np.full(len(rows), -1)
    for _ in range(ROUNDS):
        away = [rows - point for point in points]
        left = np.column_stack([(A**2).sum(axis=1) - ((A @ B) ** 2).sum(axis=1) for A, B in zip(away, bases)])
        before, label = label, left.argmin(axis=1)
        if np.array_equal(before, label):
            break
        for c in range(m):
            mine = label == c
            if mine.any():
                points[c] = weight[mine] @ rows[mine] / weight[mine].sum()
                if d:
                    A = (rows[mine] - points[c]) * np.sqrt(weight[mine])[:, None]
                    bases[c] = np.linalg.eigh(A.T @ A)[1][:, : -d - 1 : -1]
    return label, float(weight @ left.min(axis=1))


def _of_parts(filled: Array, weight: Array, label: Array, m: int, k: int, floor: float) -> Mixture:
    """Return the mixture whose clusters are those of the rows; one without rows is that of all rows."""
    parts = []
    for c in range(m):
        mine = label == c if np.any(label == c) else np.full(len(label), True)
        centre, values, V = _axes(filled[mine], weight[mine])
        p = len(V)
        noise = max(float(values[k:].sum()) / max(p - k, 1), LEAST_NOISE * float(values.sum()) / p, floor)
        W = np.zeros((p, k))
        lengths = np.sqrt(np.maximum(values[:k] - noise, noise))
        W[:, : len(lengths)] = V[:, :k] * lengths
        parts.append((float(weight[mine].sum()), W, centre, noise))
    share, *others = (np.array(part) for part in zip(*parts))
    return Mixture(share / share.sum(), *others)


def _axes(X: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return mean, variances along the principal axes, and these as columns, of rows with weights."""
    total = weight.sum()
    centre = weight @ X / total
    _, s, Vt = np.linalg.svd((X - centre) * np.sqrt(weight / total)[:, None], full_matrices=False)
    return centre, s**2, Vt.T * signs(Vt.T)


def best_of(X: Centered, starts: list[Mixture], *, weight: Array | None, limits: Limits) -> Value:
    """Return where the start that leads highest in a few steps has led, of those without a collapsed cluster if any."""
    if len(starts) == 1:
        return start(starts[0])
    tried = (em(X, start(mixture), weight=weight, limits=limits) for mixture in starts)
    reached = [settled(states, tol=-np.inf, max_iter=SHORT) for states in tried]
    best = max(reached, key=lambda state: (-limits.collapsed(Mixture.of(state.value)).sum(), state.objective))
    return {**best.value, "iteration": np.array(0)}
