"""Upper bounds on the variance of a component with at most k units (features, or groups of them).

The strongest bound here is a semidefinite one. For a unit vector x on a support Z of k units write X = xx' and
u_gh = |x_g|^2 [h in Z], g and h being units. Then |X_gh| <= sqrt(u_gh u_hg), sum_h u_gh = k |x_g|^2,
u_gh <= |x_g|^2 and sum_g u_gh = [h in Z]. Maximising <S, X> under these convex conditions gives at least the optimum.
They imply, for single features, sum_j X_ij^2 <= X_ii z_i and (sum_j |X_ij|)^2 <= k X_ii z_i (Li & Xie) as well as
|X_ij| <= z_i / 2 (Bertsimas, Cory-Wright & Pauphilet, JMLR 23, 2022). The dual, for ANY weights a (m, m) and shifts
b (m,), with D_gh the block S_gh divided by its norm (the sign, for single features), is the bound

    lambda_max(S - [a_gh a_hg D_gh] + diag(h)) + (sum of the k largest b),
    h_g = -b_g + (sum of the k - 1 largest a_gh^2 - b_h, h other than g).

a = b = 0 gives lambda_max, a_gh^2 = |S_gh| the row sums of Gershgorin, a_gh^2 = rho the dual of the l1-penalised
relaxation. `improve` lowers it by limited-memory quasi-Newton steps on a smoothed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.certificates import remainder
from princomp.solvers import limited_memory

# Times the size of a matrix and its norm: more than LAPACK loses, twice, as whoever rechecks a bound loses as much.
ROUNDING = 2 * remainder.ROUNDING
DIRECTED = 1e-10  # of the largest entry of S: a block between units that is smaller has a direction made by rounding
MEMORY_BYTES = 2**26  # that steps and changes of gradients may take
PARTIAL = 80  # features from which only the leading eigenvectors are computed: for 60 and 120, 40 took as long
# On the problems of `branch_and_bound`: 41 nodes with stages of 20 steps, 28 with 150; 35 and 21 with 2 and 15 steps
# between bounds; 35 and 21 with 0.1 and 0.002 for SETTLED; 25 to 31 with FALL from 0.1 to 0.6, FIRST_MU from 0.02 to
# 0.5, FLOOR from 0.001 to 0.1; in 0.6 to 1.2 s, as in 1.
STAGE = 60  # steps for one smoothing
CHECK = 6  # steps between two exact bounds
FIRST_MU, LAST_MU, FALL = 0.1, 1e-7, 0.3  # smoothing, in units of the largest variance
SETTLED = 0.02  # of the smoothing: a fall by less, between two exact bounds, ends a stage
FLOOR = 0.01  # of the largest loading: smaller ones count as this in the scale of steps


class Dual(NamedTuple):
    """A point at which the dual bound is evaluated."""

    weights: Array  # (m, m), zero diagonal
    shift: Array  # (m,)

    def restricted(self, keep: Array) -> Dual:
        """Return the point for some of the units, in this order."""
        return Dual(self.weights[np.ix_(keep, keep)], self.shift[keep])


@dataclass(frozen=True)
class Block:
    """The problem on m units, of which the first ``forced`` are in and ``count`` of the others are to be chosen."""

    S: Array  # (f, f), features sorted by unit
    direction: Array  # (f, f): blocks of S divided by their norm, zero inside a unit
    owner: Array | None  # (f,) unit of a feature; None if each unit is one feature
    raised: Array | None  # (m, m) bool: pairs whose entry may be raised at no cost, in nonnegative problems
    forced: int
    count: int

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.S) if self.owner is None else int(self.owner[-1]) + 1

    def spread(self, of_units: Array) -> Array:
        """Return a value of each unit, or pair of units, for each feature or pair."""
        if self.owner is None:
            return of_units
        return of_units[self.owner] if of_units.ndim == 1 else of_units[np.ix_(self.owner, self.owner)]

    def gathered(self, of_features: Array) -> Array:
        """Return sums over the features of each unit, along every axis."""
        if self.owner is None:
            return of_features
        return by_unit(np.add, of_features, self.owner)


def by_unit(reduce: np.ufunc, of_features: Array, owner: Array) -> Array:
    """Return a ufunc such as np.add over the features of each unit, along every axis; ``owner`` is ascending."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    for axis in range(of_features.ndim):
        of_features = reduce.reduceat(of_features, starts, axis=axis)
    return of_features


def directions(S: Array, owner: Array | None) -> Array:
    """Return S with each block between two units divided by its Frobenius norm, and zeros inside units."""
    if owner is None:
        D = np.where(S < 0, -1.0, 1.0)
        np.fill_diagonal(D, 0.0)
        return D
    # The blocks are scaled before squaring, so that nothing underflows.
    largest = by_unit(np.maximum, np.abs(S), owner)
    scaled = S / np.where(largest > 0, largest, 1.0)[np.ix_(owner, owner)]
    norm = np.sqrt(by_unit(np.add, scaled**2, owner))
    D = scaled / (np.where(norm > 0, norm, 1.0) * (1 + 1e-14))[np.ix_(owner, owner)]
    D[(largest <= DIRECTED * largest.max())[np.ix_(owner, owner)]] = 0.0
    D[owner[:, None] == owner] = 0.0
    return D


def signed(block: Block, dual: Dual) -> Dual:
    """Return the point with weights that need no directions: the product of two is what is moved between their units.

    Between groups there is still a direction, but nothing is moved where it would be rounding.
    """
    weights = dual.weights
    if block.owner is not None:
        somewhere = by_unit(np.logical_or, block.direction != 0, block.owner)
        return Dual(np.where(somewhere, weights, 0.0), dual.shift)
    upwards = np.triu(np.ones(weights.shape, dtype=bool))
    carried = np.where(upwards, weights * block.direction, weights)
    if block.raised is not None:
        raising = np.sqrt(np.maximum(weights * weights.T, 0.0))
        carried = np.where(block.raised, np.where(upwards, -raising, raising), carried)
    np.fill_diagonal(carried, 0.0)
    return Dual(carried, dual.shift)


def largest_sum(values: Array, count: int) -> Array:
    """Return the sum of the ``count`` largest values along the last axis (of all, if there are fewer)."""
    size = values.shape[-1]
    if count <= 0:
        return np.zeros(values.shape[:-1])
    if count < size:
        values = np.partition(values, size - count, axis=-1)[..., size - count :]
    return values.sum(axis=-1)


def row_sums(Q: Array, forced: int, count: int) -> Array:
    """Return for each row its entries in forced columns plus the largest others, never its own."""
    m = len(Q)
    Q = Q.copy()
    np.fill_diagonal(Q, 0.0)
    sums = Q[:, :forced].sum(axis=1)
    sums[:forced] += largest_sum(Q[:forced, forced:], count)
    np.fill_diagonal(Q, -np.inf)
    if m > forced and count > 1:
        sums[forced:] += largest_sum(Q[forced:, forced:], min(count, m - forced) - 1)
    return sums


def row_sums_twin(Q: Array, forced: int, count: int, mu: float) -> tuple[Array, Array]:
    """Return smoothed row sums (m,) and choices (m, m): NumPy twin of the compiled loop."""
    m = len(Q)
    Y = np.zeros((m, m))
    Y[:, :forced] = 1.0
    for i in range(m):
        others = np.arange(forced, m)
        others = others[others != i]
        wanted = count if i < forced else count - 1
        Y[i, others] = _soft_choice(Q[i, others], wanted, mu)
    np.fill_diagonal(Y, 0.0)
    soft = Y[:, forced:]
    return np.sum(np.where(Y > 0, Q, 0.0) * Y, axis=1) - 0.5 * mu * np.sum(soft**2, axis=1), Y


def _soft_choice(q: Array, count: int, mu: float) -> Array:
    """Return the y in [0, 1] with sum ``count`` that maximises <y, q> - mu/2 |y|^2."""
    if count <= 0 or count >= q.size:
        return np.full(q.size, 1.0 if count > 0 else 0.0)
    ends = np.sort(np.concatenate([q, q - mu]))  # where the total, falling with t, has its corners
    totals = np.clip((q - ends[:, None]) / mu, 0.0, 1.0).sum(axis=1)
    right = int(np.searchsorted(-totals, -count))
    left = max(right - 1, 0)
    share = (totals[left] - count) / (totals[left] - totals[right]) if totals[left] > totals[right] else 0.0
    return np.clip((q - ends[left] - share * (ends[right] - ends[left])) / mu, 0.0, 1.0)


def dual_bound(block: Block, dual: Dual) -> float:
    """Return the bound at a point, rounding included."""
    weights, shift = dual
    A = weights**2
    if block.raised is not None:  # only what lowers an entry has a cost
        A = np.where(block.raised | (weights * weights.T <= 0), 0.0, A)
    h = row_sums(A - shift, block.forced, block.count) - shift
    M = _matrix(block, dual, h)
    ends = shift[: block.forced].sum() + float(largest_sum(shift[block.forced :], block.count))
    noise = ROUNDING * len(M) * (float(np.linalg.norm(M)) + float(np.abs(shift).sum()))
    return float(np.linalg.eigvalsh(M)[-1]) + float(ends) + noise


def _matrix(block: Block, dual: Dual, h: Array) -> Array:
    moved = dual.weights * dual.weights.T
    if block.raised is not None:
        moved = np.where(block.raised, np.maximum(moved, 0.0), moved)
    M: Array = block.S - block.spread(moved) * block.direction
    M[np.diag_indices_from(M)] += block.spread(h)
    return M


class Slope(NamedTuple):
    """The smoothed bound at a point."""

    value: float
    weights: Array  # gradient
    shift: Array  # gradient
    share: Array  # (m,) of each unit in the relaxed vector: sums to 1
    chosen: Array  # (m,) how far each unit is in the relaxed support: sums to forced + count


def smoothed(block: Block, dual: Dual, mu: float) -> Slope:
    """Return the smoothed bound, below the exact one by no more than a multiple of ``mu``, and its gradient."""
    weights, shift = dual
    nu = FALL * mu
    compiled = loops("cardinality_nodes")
    sum_rows = row_sums_twin if compiled is None else compiled.row_sums
    cost = None if block.raised is None else ~block.raised
    A = weights**2 if cost is None else cost * weights**2
    sums, Y = sum_rows(A - shift, block.forced, block.count, nu)
    values, vectors = _leading(_matrix(block, dual, sums - shift), mu)
    mix = _soft_choice(values, 1, mu)
    top = _soft_choice(shift[block.forced :], block.count, nu)
    y = np.concatenate([np.ones(block.forced), top])
    value = float(mix @ values - 0.5 * mu * mix @ mix + y @ shift - 0.5 * nu * top @ top)
    X = (vectors * mix) @ vectors.T
    share = block.gathered(X.diagonal())
    moved = block.gathered(X * block.direction)
    rows = share[:, None] * Y
    if cost is not None:
        moved = np.where(cost | (weights * weights.T > 0), moved, 0.0)
    of_weights = 2 * ((rows if cost is None else cost * rows) * weights - moved * weights.T)
    return Slope(value, of_weights, y - share - rows.sum(axis=0), share, share + rows.sum(axis=0))


def _leading(M: Array, width: float) -> tuple[Array, Array]:
    """Return the eigenvalues within ``width`` of the largest (at least), and their vectors."""
    size = len(M)
    if size >= PARTIAL:
        from scipy.linalg import eigh

        for count in (8, 24):
            values, vectors = eigh(M, subset_by_index=[size - count, size - 1], check_finite=False)
            if values[0] < values[-1] - width:
                return values, vectors
    values, vectors = np.linalg.eigh(M)
    return values, vectors


class Improved(NamedTuple):
    """The best point found, its bound, and what the relaxed solution looks like."""

    dual: Dual
    bound: float
    share: Array
    chosen: Array


def improve(
    block: Block, dual: Dual, target: float, *, mu: float, steps: int, over: Callable[[], bool] = lambda: False
) -> Improved:
    """Lower the bound from a given point until it is at most ``target``, for so many ``steps``, or until time is over.

    ``mu`` is the smoothing to begin with.
    """
    best = Improved(dual, dual_bound(block, dual), *smoothed(block, dual, mu)[3:])
    smallest = LAST_MU * float(np.abs(block.S.diagonal()).max())
    taken = 0
    while best.bound > target and taken < steps and mu > smallest and not over():
        walk = _Walk(block, dual, mu)
        before = walk.slope.value
        for i in range(1, min(STAGE, steps - taken) + 1):
            moved = walk.step()
            taken += 1
            if i % CHECK and moved and not over():
                continue
            bound = dual_bound(block, walk.dual)
            if bound < best.bound:
                best = Improved(walk.dual, bound, walk.slope.share, walk.slope.chosen)
            if not moved or bound <= target or before - walk.slope.value < SETTLED * mu or over():
                break
            before = walk.slope.value
        if walk.slope.value > target:  # the smoothed bound is the lower one: there is no hope
            break
        dual = walk.dual
        mu *= FALL
    return best


class _Walk:
    """Quasi-Newton steps on the smoothed bound."""

    def __init__(self, block: Block, dual: Dual, mu: float) -> None:
        self.block, self.dual, self.mu = block, dual, mu
        self.slope = smoothed(block, dual, mu)
        # The curvature along a weight of unit g is the square of its loading.
        loadings = np.sqrt(self.slope.share / (float(self.slope.share.max()) or 1.0))
        weights = np.broadcast_to(1.0 / np.maximum(loadings, FLOOR)[:, None], dual.weights.shape)
        self.scale = _flat(weights, np.ones(block.size))
        self.pairs: list[tuple[Array, Array]] = []
        self.kept = int(np.clip(MEMORY_BYTES // (16 * block.size**2), 2, 20))

    def step(self) -> bool:
        """Take a step that lowers the value; tell whether there was one."""
        m = self.block.size
        gradient = _flat(self.slope.weights, self.slope.shift)
        way = limited_memory.direction(gradient, self.pairs, self.scale)
        if float(gradient @ way) >= 0.0:
            way, self.pairs = -self.scale * gradient, []
        fall = float(gradient @ way)
        length = 1.0 if self.pairs else min(1.0, 0.1 / (np.sqrt(-fall) or 1.0))
        for _ in range(12):
            dual = Dual(
                self.dual.weights + length * way[: m * m].reshape(m, m), self.dual.shift + length * way[m * m :]
            )
            slope = smoothed(self.block, dual, self.mu)
            if slope.value <= self.slope.value + 1e-4 * length * fall:
                pair = length * way, _flat(slope.weights, slope.shift) - gradient
                if limited_memory.useful(*pair):
                    self.pairs = [*self.pairs, pair][-self.kept :]
                self.dual, self.slope = dual, slope
                return True
            length *= 0.5
        return False


def _flat(weights: Array, shift: Array) -> Array:
    return np.concatenate([weights.ravel(), shift])
