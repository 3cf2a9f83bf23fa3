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

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.result import Deadline, State, settled
from princomp.solvers import probabilistic, probabilistic_em, probabilistic_moments
from princomp.solvers.probabilistic_em import Data, Hidden, Model

# Five components of 150 x 20, complete or a seventh missing, are found with a patience of 1 to 8, with 1 to 16 rows for
# each column, with 1 to 20 steps to settle; a patience of 8 takes twice as long.
PATIENCE = 3  # a path ends after this many steps without a new best
ROWS_PER_COLUMN = 4  # that relevance begins with
SETTLE = 5  # steps before a column may be judged
ROUNDS = 1000
FINISH = 60  # steps, at most, with the number that was chosen
ROUGH, FURTHER = 8, 32  # steps with each number of components, and with those that may still be the best


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


def relevant(
    data: Data, most: int, rng: np.random.Generator, *, tol: float, max_iter: int, deadline: Deadline | None = None
) -> Model:
    """Return the model with the relevant columns alone, found by EM with the relevance prior.

    It begins with a column for some rows, and with more if all prove relevant: as many columns as rows would leave no
    noise to be judged by.
    """
    tried = max(int(data.rows_with_weight * data.share / ROWS_PER_COLUMN), 1)
    while True:
        tried = min(tried, most)
        model = prune(data, probabilistic_em.begin(data, tried, rng), tol=tol, max_iter=max_iter, deadline=deadline)
        if model.W.shape[1] < tried or tried == most or _over(deadline):
            return model
        tried *= 2


def prune(data: Data, model: Model, *, tol: float, max_iter: int, deadline: Deadline | None = None) -> Model:
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
            if state.residual <= tol or steps >= max_iter or _over(deadline):
                return model
        else:
            return model
    return model


def bic(log_likelihood: float, k: int, p: int, count: float) -> float:
    """Return the Bayesian information criterion of k components, larger is better."""
    return log_likelihood - 0.5 * (p * k - k * (k - 1) / 2 + p + 1) * np.log(count)


def climb(criterion: Callable[[int], float], most: int, deadline: Deadline | None = None) -> tuple[int, list[float]]:
    """Return the k in 1 ... most of the largest criterion, and its values; the path ends when it goes down for long."""
    values: list[float] = []
    for k in range(1, most + 1):
        values.append(criterion(k))
        if k - int(np.argmax(values)) > PATIENCE or values[-1] == np.inf or _over(deadline):
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


def _over(deadline: Deadline | None) -> bool:
    return deadline is not None and deadline.over


class Path:
    """Models of 1, 2, ... components, by expectation maximisation, each as far as it was asked to go.

    Where steps that hide cells alone are the faster ones each begins where the one before has come, with one more
    component: that is a few steps.
    """

    def __init__(
        self, data: Data, rng: np.random.Generator, *, tol: float, max_iter: int, deadline: Deadline | None
    ) -> None:
        self.deadline = deadline
        self.data, self.rng, self.tol, self.max_iter = data, rng, tol, max_iter
        self.criteria: dict[int, float] = {}
        self._reached: dict[int, State] = {}
        self._states: dict[int, Iterator[State]] = {}  # of those that may go on

    def advance(self, k: int, steps: int) -> float:
        """Make some steps with k components, up to the tolerance; return the criterion there."""
        if k not in self.criteria:
            self._states[k] = self._begin(k)
        states, state = self._states.pop(k), self._reached.get(k)
        for state in islice(states, steps):
            if state.residual <= self.tol or state.iteration >= self.max_iter or _over(self.deadline):
                break
        else:
            self._states[k] = states
        if state is self._reached.get(k):
            self._states.pop(k, None)  # rounding hides all gains
        elif state is not None:
            self._reached[k], self.criteria[k] = state, information(self.data, state)
        return self.criteria[k]

    def rivals(self) -> list[int]:
        """Return the best number of components, and those that may become better than it; none if none may."""
        best = max(self.criteria, key=lambda k: self.criteria[k])
        cells = self.data.moments.cells * self.data.count / self.data.moments.total
        able = [
            k
            for k in self._states
            if k != best and self.criteria[k] + self._reached[k].residual * cells >= self.criteria[best]
        ]
        if _over(self.deadline):
            return []
        return able + [best] * (best in self._states) if able else []

    def finished(self, k: int) -> Model:
        """Return the better of the models that the path and a start of its own lead to."""
        reached = probabilistic_em.model_of(self._reached[k].value)
        if not self._by_cells(k) or _over(self.deadline):
            return reached
        starts = [reached, probabilistic_em.begin(self.data, k, self.rng)]
        how: dict[str, Any] = {"tol": self.tol, "max_iter": min(FINISH, self.max_iter), "deadline": self.deadline}
        ends = [settled(probabilistic_moments.em(self.data, start), **how) for start in starts]
        return probabilistic_em.model_of(max(ends, key=lambda state: state.objective).value)

    def _by_cells(self, k: int) -> bool:
        p = self.data.rows.shape[1]
        return probabilistic_moments.cells_alone(self.data.rows_with_weight, p, k, p * (1 - self.data.share))

    def _begin(self, k: int) -> Iterator[State]:
        data, before = self.data, self._reached.get(k - 1)
        if not self._by_cells(k):
            return probabilistic_em.em(data, probabilistic_em.start(probabilistic_em.begin(data, k, self.rng)))
        if before is None or "second" not in before.value:
            return probabilistic_moments.em(data, probabilistic_em.begin(data, k, self.rng))
        return probabilistic_moments.em(data, probabilistic_moments.following(data, before.value, k))


def most_informative(
    data: Data, most: int, rng: np.random.Generator, *, tol: float, max_iter: int, deadline: Deadline | None = None
) -> tuple[int, Model]:
    """Return the number of components with the largest BIC, and their model, as far as that had to be known.

    All go a few steps; then those alone go on that may still become the best one.
    """
    path = Path(data, rng, tol=tol, max_iter=max_iter, deadline=deadline)
    climb(lambda k: path.advance(k, ROUGH), most, deadline)
    while rivals := path.rivals():
        for k in rivals:
            path.advance(k, FURTHER)
    k = max(path.criteria, key=lambda k: path.criteria[k])
    return k, path.finished(k)


def information(data: Data, state: State) -> float:
    """Return the BIC of a model with its log-likelihood."""
    model, count = probabilistic_em.model_of(state.value), data.count
    p, k = model.W.shape
    if probabilistic_em.at_floor(model.noise, data.floor):
        return np.inf if can_be_judged(data.rows_by_cells(), k) else -np.inf
    criterion = bic(state.objective * count / data.moments.total, k, p, count)
    return criterion if data.complete else criterion - sharpness(model)


def sharpness(model: Model) -> float:
    """Return half the log-information of a row about the components, not counting turns of which it tells little."""
    p, k = model.W.shape
    values = np.full(p, model.noise)
    values[:k] += np.linalg.svd(model.W, compute_uv=False) ** 2
    i, j = np.triu_indices(k, 1, p)
    told = (values[i] - values[j]) ** 2 / (values[i] * values[j])
    return 0.5 * float(np.log(np.maximum(told, 1.0)).sum())


def held_out(
    data: Data, k: int, rng: np.random.Generator, *, tol: float, max_iter: int, deadline: Deadline | None = None
) -> float:
    """Return the mean log density of the hidden cells, given the others, for the model fitted to the others."""
    begin = probabilistic_em.start(probabilistic_em.begin(data, k, rng))
    states = probabilistic_em.em(data, begin)
    model = probabilistic_em.model_of(settled(states, tol=tol, max_iter=max_iter, deadline=deadline).value)
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
