"""Online robust PCA of rows with bad cells (after Feng, Xu & Yan, NIPS 2013), with a bounded loss in place of l1.

Objective: a mean m (p,), orthonormal V (p, k), a covariance S (k, k) of scores and scales sigma (p,) of errors, so that

- scores z of a row x minimise, at a local minimum, sum_j (sigma_j t)^2 rho((x_j - m_j - v_j'z) / (sigma_j t)) / t^2
  + mean(sigma^2) z'S^-1 z / 2, j over the cells that are there; rho, t and weights w_ij of cells are those of
  `princomp.solvers.robust.bounded`;
- the regression of each column on scores, by weights, lies in the plane: the sum over rows of w_ij (x_j - L_j h)^2,
  h = (z, 1), is least, over L_j, where L = (VK, m) for some K. Scores are known up to the inverse of their weighted
  Gram matrix, as in EM for probabilistic PCA, which this is where all weights are 1 and all sigma the same;
- S is the covariance of scores, rows far out left out, and m their centre;
- the mean over rows of chi(e_j / sigma_j) is that of normal errors, of whose variance scores have taken k/p.

Feng, Xu & Yan have soft(x - Vz, lambda) for what is wrong with the cells of a row, which is Huber's loss once that is
minimised over, and shrink z and V. A bounded loss leaves no bias where cells are wild, and needs a good start: the
leading directions of the first rows, in which cells far from the median of their column are replaced by it. S keeps
components that are not there from following the wild cells of a column.

Of the rows so far, weighted least squares need, by column, A_j = sum_i w_ij h_i h_i' only, w_ij being weights of cells
at the time: what L leaves of the rows before them is orthogonal to these by then, so that a mini-batch changes L_j by
A_j^-1 sum_i w_ij e_ij h_i, i over its rows. Older rows fade. With all rows in one mini-batch, and nothing before it,
this is a step of iteratively reweighted least squares, of which `passes` takes one after the other, extrapolated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, as_rows
from princomp.result import State, Value
from princomp.solvers.extrapolation import anderson, remember
from princomp.solvers.robust.bounded import MOST_ROUNDS, cell_losses, excess_and_slope, expected_excess, judge
from princomp.solvers.robust.univariate import NORMAL, limit, mad, median

Less = Callable[[Array], Centered]  # the rows less a mean

FIRST_ROWS, ROWS_EACH, FIRST_CELLS = 300, 20, 2**22  # for the start: so many, or for each component; but for memory
FAR = 3.0  # deviations from the median, of cells that are replaced by it
SWEEPS, ENOUGH = 10, 1e-3  # over the first rows
MEMORY = 0.5  # of the rows so far: what fades to 1/e; 0.2 to 1 end within 10 % of each other
ROUNDS = 10  # of least squares, for scores of rows that are looked at once
ROUNDING = 16.0  # times eps, of the size of a column's cells: scales below are none
TINY = 1e-14  # of the trace, added to the diagonals of matrices that may be singular
EMPTY = 1e-60  # scale of columns in which all is 0
EPS = float(np.finfo(np.float64).eps)
EXACT, ROOT = 1e-6, 1 / 16  # of errors, by the mean of such roots: what is smaller is none
FLAT = 1e-3  # for each cell: a slope below it tells no step
STRIDE = 1.0  # of the logarithm of a scale, in one step
NEGLIGIBLE = 1e-3  # of the variance of the noise
LEAST = 1e-12  # of the trace of a covariance: variances below it are known no better
BEYOND = 2.0  # times the 97.5 % point of squared distances: rows beyond count for nothing in the covariance of scores
GROWTH = 2.0  # of the residual, by extrapolation: it begins again
NEAR = 1e-4  # residual from which on steps are extrapolated: before, the scales go their own way
PATIENCE = 100  # passes in which the residual may have come no further


@dataclass(frozen=True)
class Model:
    """What is known of rows."""

    V: Array  # (p, k) orthonormal
    mean: Array  # (p,)
    noise: Array  # (p,) scales of errors, none 0
    scatter: Array  # (k, k) robust covariance of scores

    @property
    def total(self) -> float:
        """Variance in all directions."""
        return float(np.trace(self.scatter) + (self.noise**2).sum())

    def floor(self, eps: float) -> Array:
        """Return scales (p,) of what rounding leaves of cells known up to eps."""
        spread = np.sqrt(np.maximum(np.einsum("jk,kl,jl->j", self.V, self.scatter, self.V), 0.0))
        return ROUNDING * eps * (np.abs(self.mean) + spread + np.sqrt(np.trace(self.scatter) / len(spread))) + EMPTY


class Sums(NamedTuple):
    """What rows add up to, as a model judges them; (z, 1) has k + 1 numbers."""

    A: Array  # (p, k+1, k+1) by column, weighted products of (z, 1), as far as is known of z
    G: Array  # (p, k+1) of errors and (z, 1)
    C: Array  # (k+1, k+1) of (z, 1), rows far out left out
    doubt: Array  # (k, k) what is not known of z, of these rows
    chi: Array  # (p,) and
    slope: Array  # (p,) that by which it falls with the logarithm of the scale
    cells: Array  # (p,) weights of the rows that have this column
    loss: Array  # ()
    roots: Array  # (2,) of the sizes of errors, and how many they are
    number: Array  # () of rows


class Past(NamedTuple):
    """What is kept of rows before: of `Sums`, and how many they were before they faded."""

    A: Array
    C: Array
    doubt: Array
    slope: Array
    seen: Array

    def value(self) -> dict[str, Array]:
        """Return it as arrays by name."""
        return {name: np.asarray(array) for name, array in self._asdict().items()}

    def times(self, fade: float) -> Past:
        """Return it, counting for less."""
        return Past(fade * self.A, fade * self.C, fade * self.doubt, fade * self.slope, self.seen)

    @classmethod
    def nothing(cls, p: int, k: int) -> Past:
        """Return what is kept of no rows."""
        more = np.zeros((k + 1, k + 1)), np.zeros((k, k)), np.zeros(p), np.zeros(())
        return cls(np.zeros((p, k + 1, k + 1)), *more)

    @classmethod
    def of(cls, new: Sums) -> Past:
        """Return what is kept of rows and nothing before them."""
        return cls(new.A, new.C, new.doubt, new.slope, new.number)


def sums(block: Array, rows: slice, V: Array, noise: Array, scatter: Array, rounds: int = MOST_ROUNDS) -> Sums:
    """Return what rows, less the mean, add up to: a block function."""
    k = V.shape[1]
    known = _inverse(scatter, noise)
    found = judge(block, V, noise, np.mean(noise**2) * known, rounds)
    H = np.column_stack([found.Z, np.ones(len(found.Z))])
    counts = found.there.any(axis=1) / found.scales**2
    w = found.weights * counts[:, None]
    A, doubts = _products(w, H), (w.T @ found.doubt.reshape(len(H), k * k)).reshape(-1, k, k)
    G = (w * found.left).T @ H
    A[:, :k, :k] += doubts
    G[:, :k] -= np.einsum("jkl,jl->jk", doubts, V)
    held = counts * _inside(np.einsum("ij,jk,ik->i", found.Z, known, found.Z), k)
    errors = found.left / (found.scales[:, None] * noise)
    chi, slope = (found.there * part * counts[:, None] for part in excess_and_slope(errors))
    return Sums(
        A,
        G,
        _products(held[:, None], H)[0],
        np.einsum("i,ikl->kl", held, found.doubt),
        chi.sum(axis=0),
        slope.sum(axis=0),
        counts @ found.there,
        np.asarray((found.there * cell_losses(errors) * noise**2).sum()),
        np.array([(np.abs(found.left) ** ROOT).sum(), found.there.sum()]),
        np.asarray(float(len(H))),
    )


def _products(w: Array, H: Array) -> Array:
    """Return sum_i w_ij h_i h_i' for each column of w (m, p): (p, q, q)."""
    upper, lower = np.triu_indices(H.shape[1])
    A = np.empty((w.shape[1], H.shape[1], H.shape[1]))
    A[:, upper, lower] = A[:, lower, upper] = w.T @ (H[:, upper] * H[:, lower])
    return A


def _inverse(S: Array, noise: Array) -> Array:
    """Return the inverse of a covariance of scores, to which what means nothing beside the noise is added."""
    least = NEGLIGIBLE * float(np.mean(noise**2)) + LEAST * float(np.trace(S))
    return np.linalg.inv(S + least * np.eye(len(S)))


def _inside(squares: Array, k: int) -> Array:
    """Return what rows count for the covariance of scores, by their squared distance: biweight."""
    return np.square(np.maximum(1 - squares / (BEYOND * limit(k)), 0.0))


@cache
def _consistency(k: int) -> float:
    """Return what such a covariance finds of that of normal scores: E u d^2 / (k E u)."""
    from scipy.special import gammainc, gammaln

    bound = BEYOND * limit(k)
    m = [np.exp(gammaln(k / 2 + j) - gammaln(k / 2)) * gammainc(k / 2 + j, bound / 2) * 2.0**j for j in range(4)]
    weight, square = m[0] - 2 * m[1] / bound + m[2] / bound**2, m[1] - 2 * m[2] / bound + m[3] / bound**2
    return float(square / (k * weight))


def sums_of(X: Centered, model: Model) -> Sums:
    """Return the sums over all rows, in a pass."""
    return Sums(*X.in_dense_tiles().reduce(sums, model.V, model.noise, model.scatter, combine=add))


def add(one: tuple[Array, ...], other: tuple[Array, ...]) -> Sums:
    """Return the sums over the rows of both; what comes from workers are bare tuples."""
    return Sums(*(a + b for a, b in zip(one, other, strict=True)))


@dataclass(frozen=True)
class Step:
    """Where rows lead a model, and how far that is."""

    model: Model
    past: Past
    plane: float  # how far fitted rows move, and
    noise: float  # how far scales of errors do, in standard deviations of the data; and
    scatter: float  # how far the covariance of scores does, relative to what variances along components are in all

    @property
    def residual(self) -> float:
        """The largest of them."""
        return max(self.plane, self.noise, self.scatter)

    def details(self) -> dict[str, float]:
        """Return them by name."""
        return {name: getattr(self, name) for name in ("plane", "noise", "scatter")}


def step(model: Model, past: Past, new: Sums, eps: float) -> Step:
    """Return where the sums over new rows, beside what is kept of others, lead."""
    p, k = model.V.shape
    A, C, doubt, slope = past.A + new.A, past.C + new.C, past.doubt + new.doubt, past.slope + new.slope
    seen = past.seen + new.number
    if not C[k, k] > 0:  # rows of no cells, or none but wild ones
        return Step(model, Past(A, C, doubt, slope, seen), 0.0, 0.0, 0.0)
    change = np.linalg.solve(_solvable(A), new.G[:, :, None])[:, :, 0]
    wanted = expected_excess(max(1 - k / p, 0.5 / p)) * new.cells
    turn = np.clip(
        (new.chi - wanted) / np.where(slope > FLAT * new.cells, slope, np.maximum(FLAT * new.cells, FLAT)),
        -STRIDE,
        STRIDE,
    )
    centre = C[k, :k] / C[k, k]
    scatter = (C[:k, :k] / C[k, k] - np.outer(centre, centre)) / _consistency(k) + doubt / C[k, k]
    # In new coordinates: V orthonormal again, turned no more than it has to be, scores W (z - centre).
    L = model.V + change[:, :k]
    V = _nearest(np.linalg.qr(L)[0], model.V)
    W = V.T @ L
    T = np.zeros((k + 1, k + 1))
    T[:k, :k], T[:k, k], T[k, k] = W, -W @ centre, 1.0
    found = Model(V, model.mean + change[:, k] + L @ centre, model.noise * np.exp(turn), W @ scatter @ W.T)
    found = replace(found, noise=np.maximum(found.noise, found.floor(eps)))
    little = least_size(new)
    size = np.sqrt(model.total + little**2)
    off = change[:, :k] - model.V @ (model.V.T @ change[:, :k])  # within the plane, only coordinates change
    # A mean far from 0 is known no better than it can be written down.
    away = np.maximum(np.abs(found.mean - model.mean) - 4 * EPS * np.abs(model.mean), 0.0)
    moved = np.einsum("ja,ab,jb->", off, scatter, off) + np.sum(away**2)
    explained = float(np.trace(model.scatter)) + k * float(np.mean(model.noise**2))
    return Step(
        found,
        Past(T @ A @ T.T, T @ C @ T.T, W @ doubt @ W.T, slope, seen),
        _relative(float(np.sqrt(max(moved, 0.0))), size),
        _relative(float(np.linalg.norm(found.noise - model.noise)), size),
        _relative(float(np.linalg.norm(found.scatter - model.scatter)), explained + little**2),
    )


def least_size(new: Sums) -> float:
    """Return what is small beside what is left of cells, where most are fitted exactly; wild ones hardly count."""
    return EXACT * float((new.roots[0] / max(float(new.roots[1]), 1.0)) ** (1 / ROOT))


def _solvable(A: Array) -> Array:
    k = A.shape[-1]
    size = np.trace(A, axis1=1, axis2=2)
    return A + np.where(size > 0, TINY * size, 1.0)[:, None, None] * np.eye(k)


def _nearest(V: Array, near: Array) -> Array:
    """Return the orthonormal matrix of the span of V that is nearest to another matrix."""
    U, _, W = np.linalg.svd(V.T @ near)
    return np.asarray(V @ (U @ W))


def _relative(moved: float, size: float) -> float:
    return moved / size if moved > 0 and size > 0 else float(moved > 0)


# The start


def first_rows(p: int, k: int) -> int:
    """Return how many rows the start is made of, if there are as many."""
    return max(min(max(FIRST_ROWS, ROWS_EACH * k), FIRST_CELLS // p), 2 * k, 2)


def start(X: Array, k: int, eps: float) -> tuple[Model, Past]:
    """Return a model of some rows X (m, p), NaN missing, and what is kept of them."""
    there = ~np.isnan(X)
    mean = np.zeros(X.shape[1])
    seen = there.any(axis=0)
    mean[seen] = np.nanmedian(X[:, seen], axis=0)
    away = np.where(there, X - mean, 0.0)
    spread = np.zeros_like(mean)
    spread[seen] = NORMAL * np.nanmedian(np.abs(X[:, seen] - mean[seen]), axis=0)
    tame = np.where(np.abs(away) <= FAR * spread, away, 0.0)
    V = _leading(tame, k)
    Z = tame @ V
    left = np.where(there, tame - Z @ V.T, np.nan)
    mean = mean + V @ median(Z)
    noise = np.zeros(len(mean))
    noise[seen] = NORMAL * np.nanmedian(np.abs(left[:, seen]), axis=0)
    # By columns, as robust as can be: what a few cells alone span has no variance.
    model = Model(V, mean, noise, np.diag(mad(Z) ** 2))
    model = replace(model, noise=np.maximum(noise, model.floor(eps)))
    past = Past.nothing(*V.shape)
    rows = as_rows(X)
    for _ in range(SWEEPS):
        found = step(model, Past.nothing(*V.shape), sums_of(Centered(rows, model.mean), model), eps)
        model, past = found.model, found.past
        if found.residual <= ENOUGH:
            break
    return model, past


def _leading(X: Array, k: int) -> Array:
    """Return k leading right singular vectors of X, others at right angles where there are not as many."""
    p = X.shape[1]
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    V = Vt[: min(k, int((s > TINY * s.max(initial=0.0)).sum()))].T
    more = k - V.shape[1]
    if not more:
        return np.ascontiguousarray(V)
    # The columns that have least of them, so that those in which nothing varies, if there are others, stay out of it.
    order = np.argsort((V**2).sum(axis=1) - X.any(axis=0), kind="stable")[:more]
    return np.linalg.qr(np.hstack([V, np.eye(p)[:, order]]))[0]


# Rows as they come


def follow(model: Model, past: Past, X: Array, batch_size: int, eps: float) -> tuple[Model, Past, float]:
    """Return the model and what is kept after rows X (m, p), in mini-batches in their order; and their mean loss."""
    loss = 0.0
    for begin in range(0, len(X), batch_size):
        batch = X[begin : begin + batch_size]
        with np.errstate(over="ignore"):
            where = slice(begin, begin + len(batch))
            new = sums(batch - model.mean, where, model.V, model.noise, model.scatter, ROUNDS)
        fade = float(np.exp(-len(batch) / (MEMORY * max(float(past.seen), 1.0))))
        found = step(model, past.times(fade), new, eps)
        model, past, loss = found.model, found.past, loss + float(new.loss)
    return model, past, loss / max(len(X), 1)


# Passes over all rows


def passes(value: Value, less: Less, eps: float) -> Iterator[State]:
    """Yield states, each after a pass over all rows that `less` a mean has; ``value`` holds a model, or a state."""
    model, iteration = as_model(value), int(value.get("iteration", 0))
    size = len(_vector(model, model))
    points, images = (np.asarray(value.get(name, np.empty((0, size)))) for name in ("points", "images"))
    best, since = float(value.get("best", np.inf)), int(value.get("since", 0))
    while since < PATIENCE:
        new = sums_of(less(model.mean), model)
        found = step(model, Past.nothing(*model.V.shape), new, eps)
        iteration += 1
        if found.residual > GROWTH * best and len(points):
            points, images = points[:0], images[:0]
        since = 0 if found.residual < best / 2 else since + 1
        best = found.residual if since == 0 else best
        points, images = remember(points, _vector(model, model)), remember(images, _vector(found.model, model))
        combined = anderson(points, images) if found.residual < NEAR else None
        following = found.model if combined is None else _model(combined, found.model, model, eps)
        more = {"points": points, "images": images, "best": np.array(best), "since": np.array(since)}
        answer = {f"answer_{name}": array for name, array in as_value(model).items()}
        value = {**as_value(following), **answer, **more, "iteration": np.array(iteration)}
        yield State(value, float(new.loss) / max(float(new.number), 1.0), found.residual, iteration)
        model = following


def as_value(model: Model) -> dict[str, Array]:
    """Return a model as arrays by name."""
    return {"V": model.V, "mean": model.mean, "noise": model.noise, "scatter": model.scatter}


def as_model(value: Value, prefix: str = "") -> Model:
    """Return what `as_value` made arrays of."""
    return Model(*(value[prefix + name] for name in ("V", "mean", "noise", "scatter")))


def as_past(value: Value) -> Past:
    """Return what is kept of rows, of arrays by name."""
    return Past(*(value[name] for name in Past._fields))


def turned(model: Model, past: Past, R: Array) -> tuple[Model, Past]:
    """Return both in coordinates turned by R (k, k), orthonormal: of scores R'z."""
    T = np.eye(len(R) + 1)
    T[:-1, :-1] = R.T
    moved = Model(model.V @ R, model.mean, model.noise, R.T @ model.scatter @ R)
    return moved, past._replace(A=T @ past.A @ T.T, C=T @ past.C @ T.T, doubt=R.T @ past.doubt @ R)


def by_axes(model: Model, past: Past) -> tuple[Model, Past]:
    """Return both in coordinates in which scores are uncorrelated, and their variances fall."""
    return turned(model, past, np.linalg.eigh(model.scatter)[1][:, ::-1])


def _vector(model: Model, units: Model) -> Array:
    spread = np.sqrt(max(float(np.trace(units.scatter)) / max(units.V.shape[1], 1), 0.0))
    return np.concatenate([(spread * model.V).ravel(), model.mean, model.noise])


def _model(vector: Array, image: Model, units: Model, eps: float) -> Model:
    """Return the model of an extrapolated vector; the image, where that is none."""
    p, k = image.V.shape
    spread = np.sqrt(max(float(np.trace(units.scatter)) / max(k, 1), 0.0))
    if not spread > 0:
        return image
    L, mean, noise = vector[: p * k].reshape(p, k) / spread, vector[p * k : -p], vector[-p:]
    noise = np.clip(noise, image.noise / np.e, image.noise * np.e)
    found = Model(_nearest(np.linalg.qr(L)[0], image.V), mean, noise, image.scatter)
    return replace(found, noise=np.maximum(noise, found.floor(eps)))
