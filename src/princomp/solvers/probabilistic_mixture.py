"""Mixtures of probabilistic PCA by expectation maximisation (Tipping & Bishop, Neural Computation 1999).

Model: a row belongs to cluster c with probability ``share_c`` and is then x = W_c z + mean_c + e, z ~ N(0, I_k),
e ~ N(0, noise_c I_p). Objective: the log-likelihood of the observed cells,

    L = sum_n log sum_c share_c N(x_n; mean_c, W_c W_c' + noise_c I).

E-step: responsibilities, r_nc = share_c N(x_n; c) / sum_c' share_c' N(x_n; c'), and for each cluster the sums of
`probabilistic` with rows weighted by them. M-step: share_c = mean of r_nc, and that of `probabilistic_em` for each
cluster. Neither lowers L. What L still has to gain is estimated from the ratio of its last two gains (Aitken).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from princomp.data import Centered
from princomp.result import State, Value
from princomp.solvers.probabilistic import Posterior, Sums, posterior, sums
from princomp.solvers.probabilistic_em import Model, maximise, tile_rows

Array = NDArray[Any]

SLOWEST = 0.999  # ratio of gains, above which none is believed
LEADING = 10  # principal directions that a start is mixed of
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
    for c, (W, noise) in enumerate(zip(mixture.W, mixture.noise)):
        out += sums(block, W, float(noise), weights[:, c], found.clusters[c])
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


def em(X: Centered, value: Value, *, weight: Array | None, floor: float, cells: float) -> Iterator[State]:
    """Yield states along which the log-likelihood never falls.

    Parameters
    ----------
    X : Centered
        Rows less a fixed point, NaN = missing.
    value : mapping
        From `start`, or of an earlier state: the parameters, by name, whose objective the state has, and those after
        the next step ("_next").
    weight : (n,) array or None
        Of rows.
    floor : float
        That no noise goes below: else a cluster could shrink to a point, where the likelihood has no bound.
    cells : float
        Number of observed cells, which residuals are relative to.

    Yields
    ------
    State
        ``residual`` is the gain that is estimated to be left, per observed cell.
    """
    last, gain, iteration = float(value["objective"]), float(value["gain"]), int(value["iteration"])
    mixture = Mixture.of(value, "_next")
    while True:
        found, objective = expect(X, mixture, weight)
        ratio = min(max((objective - last) / gain, 0.0), SLOWEST) if np.isfinite(gain) and gain > 0 else SLOWEST
        gain = objective - last
        residual = max(gain, 0.0) * ratio / (1 - ratio) / cells if np.isfinite(gain) else np.inf
        last, iteration = objective, iteration + 1
        following = _maximise(found, mixture, floor)
        named = {"objective": np.array(objective), "gain": np.array(gain), "iteration": np.array(iteration)}
        yield State(mixture.named() | following.named("_next") | named, objective, residual, iteration)
        mixture = following


def _maximise(found: list[Sums], mixture: Mixture, floor: float) -> Mixture:
    """Return the M-step; a cluster to which no row belongs stays where it is."""
    totals = np.array([float(each.total) for each in found])
    after = []
    for each, W, shift, noise in zip(found, mixture.W, mixture.shift, mixture.noise):
        model = Model(W, shift, float(noise))
        # Fewer rows than parameters of a feature: its equations would be singular.
        enough = float(each.total) > W.shape[1] + 1
        after.append(maximise(each, model, prior=0.0, floor=floor).plain if enough else model)
    return Mixture(
        totals / totals.sum(),
        np.array([model.W for model in after]),
        np.array([model.shift for model in after]),
        np.array([model.noise for model in after]),
    )


def guess(sample: Array, weight: Array, m: int, k: int, floor: float, rng: np.random.Generator | None) -> Mixture:
    """Return a mixture to start from: clusters of some rows by k-means, the leading directions of each.

    The means of k-means begin side by side along the leading principal direction, or a random one that favours
    leading ones: a row of weight 2 counts as two rows, as it would not if rows were drawn.
    """
    from scipy.stats import norm
    from sklearn.cluster import KMeans

    filled = np.where(np.isnan(sample), 0.0, sample)  # the fixed point is near the mean
    centre, values, V = _axes(filled, weight)
    mix = np.eye(1, LEADING)[0] if rng is None else rng.standard_normal(LEADING)
    direction = V[:, :LEADING] @ (mix[: len(values)] * np.sqrt(values[:LEADING]))
    places = norm.ppf((np.arange(m) + 0.5) / m)[:, None]
    if m < len(sample):
        means = KMeans(m, init=centre + places * direction, n_init=1, tol=0.0)
        label = means.fit_predict(filled, sample_weight=weight)
    else:
        label = np.arange(len(sample)) % m
    parts = []
    for c in range(m):
        mine = label == c if np.any(label == c) else np.full(len(label), True)
        centre, values, V = _axes(filled[mine], weight[mine])
        p = len(V)
        noise = max(float(values[k:].sum()) / max(p - k, 1), floor)
        W = np.zeros((p, k))
        lengths = np.sqrt(np.maximum(values[:k] - noise, noise))
        W[:, : len(lengths)] = V[:, :k] * lengths
        parts.append((float(weight[mine].sum()), W, centre, noise))
    share, W_all, shift, noise_all = (np.array(part) for part in zip(*parts))
    return Mixture(share / share.sum(), W_all, shift, noise_all)


def _axes(X: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return mean, variances along the principal axes, and these as columns, of rows with weights."""
    total = weight.sum()
    centre = weight @ X / total
    _, s, Vt = np.linalg.svd((X - centre) * np.sqrt(weight / total)[:, None], full_matrices=False)
    largest = Vt[np.arange(len(Vt)), np.abs(Vt).argmax(axis=1)]
    return centre, s**2, Vt.T * np.where(largest < 0, -1.0, 1.0)


def best_of(X: Centered, starts: list[Mixture], *, weight: Array | None, floor: float, cells: float) -> Value:
    """Return where the start that leads highest in a few steps has led."""
    if len(starts) == 1:
        return start(starts[0])
    reached = []
    for mixture in starts:
        for state in em(X, start(mixture), weight=weight, floor=floor, cells=cells):
            if state.iteration >= SHORT:
                break
        reached.append(state)
    best = max(reached, key=lambda state: state.objective)
    return {**best.value, "iteration": np.array(0)}
