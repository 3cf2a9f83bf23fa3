"""Mixtures of probabilistic PCA by expectation maximisation (Tipping & Bishop, Neural Computation 1999).

Model: a row belongs to cluster c with probability ``share_c`` and is then x = W_c z + mean_c + e, z ~ N(0, I_k),
e ~ N(0, noise_c I_p). Objective: the log-likelihood of the observed cells,

    L = sum_n log sum_c share_c N(x_n; mean_c, W_c W_c' + noise_c I).

E-step: responsibilities, r_nc = share_c N(x_n; c) / sum_c' share_c' N(x_n; c'), and for each cluster the sums of
`probabilistic` or of `probabilistic_moments`, whichever is the faster, with rows weighted by them. M-step: share_c =
mean of r_nc, and for each cluster that of `probabilistic_em`, or the closed form. Neither lowers L. What L still has to
gain is estimated from the ratio of its last two gains (Aitken), and not as less than the last of them.

L has no bound where a cluster shrinks to k + 1 rows, or to rows of one subspace: noise is kept above what its cluster's
own variance resolves, a cluster of so few rows stays as it is, and starts that lead there are taken last.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data import Centered
from princomp.result import Deadline, State, Value, settled
from princomp.solvers.probabilistic import Posterior, Sums, posterior, sums
from princomp.solvers.probabilistic_em import LEAST_NOISE, Model, at_floor, maximise, tile_rows
from princomp.solvers.probabilistic_moments import Moments, Tile, cells_alone, fill, moments, root_of_precision
from princomp.solvers.probabilistic_moments import maximise as closed_form
from princomp.solvers.signs import signs

SLOWEST = 0.999  # ratio of gains, above which none is believed: 0.9 and 0.99999 took as many steps (80 x 40)
# Of four clusters of 60 rows in 15 features, six draws, a single try led to -27.48 for a row, 5 rounds to -26.11;
# these, and 30 tries, 3 directions, 3 or 30 steps, to -25.54.
LEADING = 10  # principal directions that starts are looked for in, besides one for each of all clusters
ROUNDS = (5, 10, 35)  # of rows going to the nearest subspace, before those that are nearer to theirs go on
RARELY = 4  # every so many starts are of subspaces where these have most of the dimensions: few rows are far from any
DRAWS = 3  # of each of the points that are far apart
TRIES = 10  # random subspaces, of which the nearest to the rows are a start
FINER = 1e-4  # of the tolerance: starts end there that have come to their end
SHORT = (3, 8)  # steps from each start before the better half goes on, and before the best does


class Mixture(NamedTuple):
    """Parameters of m clusters; means are less a fixed point."""

    share: Array  # (m,)
    W: Array  # (m, p, k)
    shift: Array  # (m, p)
    noise: Array  # (m,)

    def models(self) -> list[Model]:
        """Return the models of the clusters."""
        return [Model(W, shift, float(noise)) for W, shift, noise in zip(self.W, self.shift, self.noise)]

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
    return Responsibilities(
        clusters, *_shared([found.in_order(found.log_likelihood) for found in clusters], mixture.share)
    )


def _shared(log_likelihoods: list[Array], share: Array) -> tuple[Array, Array]:
    """Return the probabilities of the clusters (b, m) and the log-likelihoods of the rows (b,)."""
    with np.errstate(divide="ignore"):
        joint = np.column_stack(log_likelihoods) + np.log(share)
    most = joint.max(axis=1, keepdims=True)
    likelihood = np.exp(joint - most)
    total = likelihood.sum(axis=1, keepdims=True)
    return likelihood / total, (most + np.log(total))[:, 0]


def _expect_scores(block: Array, rows: slice, mixture: Mixture, weight: Array | None) -> tuple[Array, ...]:
    """Return the sums of each cluster, one after the other, and the log-likelihood."""
    found = responsibilities(block, mixture)
    weights = found.share if weight is None else found.share * weight[rows, None]
    out: list[Array] = []
    for cluster, weight_of_rows in zip(found.clusters, weights.T):
        out += sums(cluster, weight_of_rows)
    total = found.log_likelihood.sum() if weight is None else weight[rows] @ found.log_likelihood
    return (*out, np.asarray(total))


def _expect_cells(
    block: Array, rows: slice, mixture: Mixture, roots: list[tuple[Array, float]], weight: Array | None
) -> tuple[Array, ...]:
    """Return the moments of each cluster, one after the other, and the log-likelihood."""
    tile = Tile.of(block)
    clusters = [fill(tile, shift, *root) for shift, root in zip(mixture.shift, roots)]
    share, likelihood = _shared([found.log_likelihood for found in clusters], mixture.share)
    here = tile.patterns.weights(None if weight is None else weight[rows])
    out: list[Array] = []
    for found, of_cluster in zip(clusters, share.T):
        out += moments(tile, found, of_cluster * here)
    return (*out, np.asarray(here @ likelihood))


def expect(X: Centered, mixture: Mixture, weight: Array | None, limits: Limits) -> tuple[list[Any], float]:
    """Return what the M-step needs of each cluster, and the log-likelihood, of rows less the fixed point."""
    m, p, k = mixture.W.shape
    by_cells = cells_alone(limits.total / m, p, k, p - limits.cells / limits.total)
    kind: Any = Moments if by_cells else Sums
    if by_cells:
        roots = [root_of_precision(model) for model in mixture.models()]
        *found, total = X.reduce(_expect_cells, mixture, roots, weight, tile_rows=tile_rows(p, 1))
    else:
        *found, total = X.reduce(_expect_scores, mixture, weight, tile_rows=tile_rows(p, k))
    width = len(kind._fields)
    return [kind(*found[width * c : width * (c + 1)]) for c in range(m)], float(total)


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
        found, objective = expect(X, mixture, weight, limits)
        ratio = min(max((objective - last) / gain, 0.0), SLOWEST) if np.isfinite(gain) and gain > 0 else SLOWEST
        gain = objective - last
        # Gains fall by about the same ratio each time only near the end; early on the next may be as large as the last.
        residual = max(gain, 0.0) * max(ratio / (1 - ratio), 1.0) / limits.cells if np.isfinite(gain) else np.inf
        last, iteration = objective, iteration + 1
        following = maximise_all(found, mixture, limits)
        named = {"objective": np.array(objective), "gain": np.array(gain), "iteration": np.array(iteration)}
        yield State(mixture.named() | following.named("_next") | named, objective, residual, iteration)
        mixture = following


def maximise_all(found: list[Any], mixture: Mixture, limits: Limits) -> Mixture:
    """Return the M-step; a cluster to which hardly a row belongs stays where it is."""
    totals = np.array([float(each.total) for each in found])
    after = []
    for each, floor, model in zip(found, limits.floors(mixture).tolist(), mixture.models()):
        # Fewer rows than parameters of a feature: its equations would be singular.
        if not float(each.total) > (model.W.shape[1] + 1) * limits.single:
            after.append(model)
        elif isinstance(each, Moments):
            after.append(closed_form(each, model, floor=floor))
        else:
            after.append(maximise(each, model, prior=0.0, floor=floor).plain)
    return Mixture(totals / totals.sum(), *(np.array(parameter) for parameter in zip(*after)))


# Where to begin


def guesses(sample: Array, weight: Array, m: int, k: int, floor: float, rng: np.random.Generator) -> Iterator[Mixture]:
    """Yield mixtures to start from, without end: clusters of some rows, and the leading directions of each.

    By turns clusters around points (k-means) and around subspaces, which finds clusters that cross. Points and
    subspaces begin at random, but for the first points, side by side along the leading direction. A row of weight 2
    counts as two rows, wherever these are.
    """
    from scipy.stats import norm

    filled = np.where(np.isnan(sample), 0.0, sample)  # the fixed point is near the mean
    centre, values, V = _axes(filled, weight)
    kept = LEADING + m * (k + 1)  # directions: those of all clusters are among the leading ones
    rows, size = (filled - centre) @ V[:, :kept], np.sqrt(values[:kept])
    places = norm.ppf((np.arange(m) + 0.5) / m)[:, None]
    d, nothing = min(k, len(size) - 1), np.zeros((m, len(size), 0))
    tries = [Planes(places * np.eye(1, len(size)) * size[0], nothing, 0)]
    for turn in count(1):
        yield _of_parts(filled, weight, _nearest(rows, weight, tries), m, k, floor)
        if turn % (2 if 2 * d <= len(size) else RARELY) != 1:
            tries = [Planes(_far_apart(rows, weight, m, rng), nothing, 0)]
            continue
        tries = []
        for _ in range(TRIES if 2 * d <= len(size) else 1):
            points, *axes = rng.standard_normal((k + 1, m, kept))[:, :, : len(size)] * size
            tries.append(Planes.along(points, np.array(axes).transpose(1, 2, 0), d))


def _far_apart(rows: Array, weight: Array, m: int, rng: np.random.Generator) -> Array:
    """Return m of the rows, each drawn by its squared distance from those before (k-means++), the best of a few draws.

    They are drawn by their place along the first direction, and not by their number.
    """
    order = np.argsort(rows[:, 0], kind="stable")
    rows, weight = rows[order], weight[order]
    away, points = np.ones(len(rows)), np.empty((m, rows.shape[1]))
    for c in range(m):
        share = np.cumsum(away * weight)
        drawn = rng.random(DRAWS) * share[-1]
        tried = rows[np.minimum(np.searchsorted(share, drawn, side="right"), len(rows) - 1)]
        left = np.array([np.einsum("bq,bq->b", *[rows - point] * 2) for point in tried])
        left = left if c == 0 else np.minimum(left, away)
        best = int(np.argmin(left @ weight))
        points[c], away = tried[best], left[best]
    return points


class Planes(NamedTuple):
    """Subspaces of d dimensions of a space of q, each by those of its directions or of all others that are fewer."""

    points: Array  # (m, q) through which they go
    bases: Array  # (m, q, d or q - d)
    d: int

    @classmethod
    def along(cls, points: Array, axes: Array, d: int) -> Planes:
        """Return those through points along axes (m, q, d or more)."""
        q = points.shape[1]
        complete = np.linalg.qr(axes[:, :, :d], mode="complete")[0]
        return cls(points, complete[:, :, :d] if 2 * d <= q else complete[:, :, d:], d)

    def left(self, rows: Array, squares: Array) -> Array:
        """Return the squares of the distances of rows (b, q), whose own squares are known, from each (b, m)."""
        m, q, e = self.bases.shape
        along = rows @ self.bases.transpose(1, 0, 2).reshape(q, m * e)
        along -= np.einsum("mq,mqe->me", self.points, self.bases).ravel()
        along = np.einsum("bme,bme->bm", *[along.reshape(len(rows), m, e)] * 2)
        if 2 * self.d > q:
            return along
        out: Array = rows @ (-2 * self.points.T)
        out += squares[:, None]
        out += np.einsum("mq,mq->m", self.points, self.points)
        out -= along
        return out

    def moved(self, rows: Array, weight: Array, label: Array) -> Planes:
        """Return those that are nearest to the rows of each; one without rows stays where it is."""
        (points, bases, d), q = self, self.points.shape[1]
        points, bases = points.copy(), bases.copy()
        for c in range(len(points)):
            mine = np.flatnonzero(label == c)
            if len(mine):
                A, here = rows[mine], weight[mine]
                points[c] = here @ A / here.sum()
                if bases.shape[2]:
                    A -= points[c]
                    A *= np.sqrt(here)[:, None]
                    V = np.linalg.eigh(A.T @ A)[1]
                    bases[c] = V[:, q - d :] if 2 * d <= q else V[:, : q - d]
        return Planes(points, bases, d)


def _nearest(rows: Array, weight: Array, tries: list[Planes]) -> Array:
    """Return to which subspaces rows go, where these move to the rows that they have, and so by turns.

    All tries make a few rounds, the better third of them more, and so on: those whose squared distances sum up to less.
    """
    squares = np.einsum("bq,bq->b", rows, rows)

    def settle(planes: Planes, rounds: int) -> tuple[Array, float, Planes]:
        label = np.full(len(rows), -1)
        for _ in range(rounds):
            left = planes.left(rows, squares)
            before, label = label, left.argmin(axis=1)
            if np.array_equal(before, label):
                break
            planes = planes.moved(rows, weight, label)
        return label, float(weight @ left[np.arange(len(left)), label]), planes

    for rounds in ROUNDS:
        reached = sorted((settle(planes, rounds) for planes in tries), key=lambda found: found[1])
        tries = [planes for _, _, planes in reached[: -(-len(reached) // 3)]]
    return reached[0][0]


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


def best_of(
    X: Centered,
    starts: list[Mixture],
    *,
    weight: Array | None,
    limits: Limits,
    tol: float,
    deadline: Deadline | None = None,
) -> Value:
    """Return where the start that leads highest in a few steps has led, of those without a collapsed cluster if any."""
    if len(starts) == 1:
        return start(starts[0])
    tried = [em(X, start(mixture), weight=weight, limits=limits) for mixture in starts]
    tol = FINER * tol
    for rounds in SHORT:
        reached = [(settled(states, tol=tol, max_iter=rounds, deadline=deadline), states) for states in tried]
        reached.sort(key=lambda found: _promise(found[0], limits), reverse=True)
        tried = [states for state, states in reached[: -(-len(reached) // 2)] if not state.residual <= tol]
        if not tried or reached[0][0].residual <= tol:
            break
    return {**reached[0][0].value, "iteration": np.array(0)}


def _promise(state: State, limits: Limits) -> tuple[int, float]:
    """Return by what starts are compared: one with a collapsed cluster is taken last."""
    return -int(limits.collapsed(Mixture.of(state.value)).sum()), state.objective
