"""How many components probabilistic PCA should have: relevance, information, held-out cells.

Bishop (Bayesian PCA, NIPS 1998): each column of W has a prior N(0, I / a_i), a_i = p / |w_i|^2 learnt with it. For
complete data with eigenvalues l (divisor N) the columns stay along the eigenvectors, with t = |w_i|^2 a root of

    N t (l - t - noise) = p (t + noise)^2.

A real root exists where l / noise >= (sqrt(c) + sqrt(1 + c))^2, c = p / N; then the larger one has
t >= noise sqrt(c / (1 + c)). Below that a column shrinks to nothing: it is taken out at once.

Schwarz (Ann. Statist. 1978): BIC = L - m / 2 log N, with m = p k - k (k - 1) / 2 + p + 1 parameters.

It takes each row to tell about as much of a parameter, whatever the noise. With missing cells, L has no bound where the
noise vanishes, which it can as soon as k components pass through all cells that are there (`freedom`). On the way there
each row tells ever more: of the turn of component i towards the direction j > i (Minka, NIPS 2000)

    (l_i - l_j)^2 / (l_i l_j),   l the variances of the model, those after the k-th being the noise.

Where cells are missing half its logarithm, if it is positive, is charged too.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from princomp._typing import Array
from princomp.result import settled
from princomp.solvers import probabilistic, probabilistic_em
from princomp.solvers.probabilistic_em import Data, Hidden, Model

# Five components of 150 x 20, complete or a seventh missing, are found with a patience of 1 to 8, with 1 to 16 rows for
# each column, with 1 to 20 steps to settle; a patience of 8 takes twice as long.
PATIENCE = 3  # a path ends after this many steps without a new best
ROWS_PER_COLUMN = 4  # that relevance begins with
SETTLE = 5  # steps before a column may be judged
ROUNDS = 1000


def relevant_count(values: Array, total: float, count: float, p: int) -> int:
    """Return how many components are relevant, from the eigenvalues (divisor N) that may be kept, and their total.

    From no component on: the noise falls as components come in, until none of those left stands out.
    """
    c = p / count
    least = probabilistic_em.LEAST_NOISE * total / p
    k, noise = 0, total / p
    for _ in range(ROUNDS):
        bound = noise * (np.sqrt(c) + np.sqrt(1 + c)) ** 2
        kept = min(int((values > bound).sum()), p - 1)
        slack = values[:kept] - noise * (1 + 2 * c)
        size = (slack + np.sqrt(np.maximum(slack**2 - 4 * (1 + c) * c * noise**2, 0.0))) / (2 * (1 + c))
        freedom = p - kept - noise * c * float((1 / size).sum())
        new = max(total - float(values[:kept].sum()), 0.0) / max(freedom, 1.0)
        if kept == k and abs(max(new, least) - noise) <= 1e-12 * noise:
            break
        k, noise = kept, min(max(new, least), noise)
    return k


def relevant(data: Data, most: int, rng: np.random.Generator, *, tol: float, max_iter: int) -> Model:
    """Return the model with the relevant columns alone, found by EM with the relevance prior.

    It begins with a column for some rows, and with more if all prove relevant: as many columns as rows would leave no
    noise to be judged by.
    """
    tried = max(int(data.rows_with_weight * data.share / ROWS_PER_COLUMN), 1)
    while True:
        tried = min(tried, most)
        model = prune(data, probabilistic_em.begin(data, tried, rng), tol=tol, max_iter=max_iter)
        if model.W.shape[1] < tried or tried == most:
            return model
        tried *= 2


def prune(data: Data, model: Model, *, tol: float, max_iter: int) -> Model:
    """Return the model less the columns that the relevance prior takes away."""
    p = len(model.W)
    least = np.sqrt(p / (p + data.count * data.share))
    prior = p * data.moments.total / data.count
    steps = 0
    while model.W.shape[1]:
        for state in probabilistic_em.em(data, probabilistic_em.start(model), prior=prior):
            model, steps = probabilistic_em.model_of(state.value), steps + 1
            U, sizes, _ = np.linalg.svd(model.W, full_matrices=False)
            kept = sizes**2 >= least * model.noise
            if not kept.all() and (state.iteration >= SETTLE or state.residual <= tol):
                model = model._replace(W=U[:, kept] * sizes[kept])
                break
            if state.residual <= tol or steps >= max_iter:
                return model
        else:
            return model
    return model


def bic(log_likelihood: float, k: int, p: int, count: float) -> float:
    """Return the Bayesian information criterion of k components, larger is better."""
    return log_likelihood - 0.5 * (p * k - k * (k - 1) / 2 + p + 1) * np.log(count)


def climb(criterion: Callable[[int], float], most: int) -> tuple[int, list[float]]:
    """Return the k in 1 ... most of the largest criterion, and its values; the path ends when it goes down for long."""
    values: list[float] = []
    for k in range(1, most + 1):
        values.append(criterion(k))
        if k - int(np.argmax(values)) > PATIENCE or values[-1] == np.inf:
            break
    return int(np.argmax(values)) + 1, values


def noiseless(k: int, rows: float, p: int) -> float:
    """Return the criterion of k components that leave no noise of so many complete rows of p features.

    Any k + 1 rows lie in k dimensions, which says nothing: out of the question. More rows than that do so because they
    have no more dimensions: the first such k is the answer.
    """
    return -np.inf if k >= min(rows - 1, p) else np.inf


def freedom(cells: Array, k: int) -> int:
    """Return how many cells are left to tell the noise by, once k components and the mean have been fitted.

    ``cells`` (p + 1,) counts rows by their number of observed cells. A row gives k of its cells to its scores, and a
    row of fewer says nothing about noise; subspace and mean have (k + 1) (p - k) parameters. If none is left, k
    components pass through all cells of any data.
    """
    p = len(cells) - 1
    return int(cells[k:] @ np.arange(p + 1 - k)) - (k + 1) * (p - k)


def can_be_judged(cells: Array, k: int) -> bool:
    """Tell whether k components leave at least as many cells to tell the noise by as they have parameters."""
    return freedom(cells, k) >= (k + 1) * (len(cells) - 1 - k) > 0


def most_to_judge(data: Data, most: int) -> int:
    """Return the largest number of components, up to ``most``, that the cells there are can judge; 1 at least."""
    if data.complete:
        return most
    cells = data.rows_by_cells()
    return max((k for k in range(1, most + 1) if can_be_judged(cells, k)), default=1)


def information(data: Data, k: int, rng: np.random.Generator, *, tol: float, max_iter: int) -> float:
    """Return the BIC of the largest log-likelihood of k components."""
    p = data.rows.shape[1]
    begin = probabilistic_em.start(probabilistic_em.begin(data, k, rng))
    state = settled(probabilistic_em.em(data, begin), tol=tol, max_iter=max_iter)
    if probabilistic_em.at_floor(float(state.value["noise"]), data.floor):
        return np.inf if can_be_judged(data.rows_by_cells(), k) else -np.inf
    count = data.count
    criterion = bic(state.objective * count / data.moments.total, k, p, count)
    return criterion if data.complete else criterion - sharpness(probabilistic_em.model_of(state.value))


def sharpness(model: Model) -> float:
    """Return half the log-information of a row about the components, not counting turns of which it tells little."""
    p, k = model.W.shape
    values = np.full(p, model.noise)
    values[:k] += np.linalg.svd(model.W, compute_uv=False) ** 2
    i, j = np.triu_indices(k, 1, p)
    told = (values[i] - values[j]) ** 2 / (values[i] * values[j])
    return 0.5 * float(np.log(np.maximum(told, 1.0)).sum())


def held_out(data: Data, k: int, rng: np.random.Generator, *, tol: float, max_iter: int) -> float:
    """Return the mean log density of the hidden cells, given the others, for the model fitted to the others."""
    begin = probabilistic_em.start(probabilistic_em.begin(data, k, rng))
    model = probabilistic_em.model_of(settled(probabilistic_em.em(data, begin), tol=tol, max_iter=max_iter).value)
    everything = replace(data, hidden=None).around(model.shift)
    total, cells = everything.reduce(_density, model.W, model.noise, data.weight, data.hidden)
    return float(total / cells) if cells > 0 else -np.inf


def _density(
    block: Array, rows: slice, W: Array, noise: float, weight: Array | None, hidden: Hidden
) -> tuple[Array, Array]:
    mean, variance = probabilistic.predict(probabilistic_em.without(block, rows, hidden)[0], W, noise)
    asked = hidden.cells(rows, block.shape[1]) & ~np.isnan(block)
    density = -0.5 * (np.log(2 * np.pi * variance) + (block - mean) ** 2 / variance)
    weights = np.ones(len(block)) if weight is None else weight[rows]
    return np.asarray(weights @ np.where(asked, density, 0.0).sum(axis=1)), np.asarray(weights @ asked.sum(axis=1))
