"""The bound of a leaf of a proof, computed again from S: each kind of `princomp.certificates.proof` on its own."""

from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from princomp._typing import Array
from princomp.certificates.nonnegative import EXACT_NONNEGATIVE, nonnegative_bound, nonnegative_value
from princomp.certificates.proof import CardinalityCertificate, Kind, Leaves, units_of
from princomp.certificates.reading import require
from princomp.certificates.remainder import ROUNDING

MANY = 10_000  # supports that a leaf may ask to enumerate
COLUMNS = 256  # of S made at a time, where it is given by data


class UnitMatrix:
    """S by units: whole, or a part at a time where only data are given."""

    def __init__(self, given: Array, certificate: CardinalityCertificate, data: bool) -> None:
        self.given, self.data = given, data
        self.p = given.shape[1]
        self.unit_of = units_of(certificate.groups, self.p)
        self.units = int(self.unit_of.max()) + 1
        self.single = self.units == self.p
        self.allowed = np.ones(self.p, dtype=bool)
        self.allowed[list(certificate.exclude)] = False
        self.k, self.nonnegative = certificate.nonzeros, certificate.nonnegative
        loadings = certificate.leaves.loadings
        self.loadings = np.ones(self.units) if loadings is None else loadings

    def features(self, units: Array) -> Array:
        """Return the features of some units, unit by unit."""
        if self.single:
            return np.asarray(units)[self.allowed[units]]
        members = [np.flatnonzero((self.unit_of == unit) & self.allowed) for unit in units]
        return np.concatenate([*members, np.zeros(0, dtype=int)]).astype(int)

    def part(self, rows: Array, columns: Array) -> Array:
        """Return a part of S."""
        if self.data:
            return self.given[:, rows].T @ self.given[:, columns]
        return self.given[np.ix_(rows, columns)]

    def variances(self) -> Array:
        """Return the diagonal of S."""
        return np.einsum("ij,ij->j", self.given, self.given) if self.data else self.given.diagonal()

    def norms(self, columns: Array) -> Array:
        """Return |S_gh| x_h / x_g (Frobenius norms, x the loadings) for all units g and some units h."""
        balance = self.loadings[columns] / self.loadings[:, None]
        if self.single:
            S = self.given.T @ self.given[:, columns] if self.data else self.given[:, columns]
            return np.abs(S) * (self.allowed[:, None] & self.allowed[columns]) * balance
        everything, chosen = self.features(np.arange(self.units)), self.features(columns)
        place = np.empty(self.units, dtype=int)
        place[columns] = np.arange(len(columns))
        sums = np.zeros((self.units, len(columns)))
        squares = self.part(everything, chosen) ** 2
        np.add.at(sums, (self.unit_of[everything][:, None], place[self.unit_of[chosen]][None, :]), squares)
        return np.sqrt(sums) * balance

    def own(self) -> Array:
        """Return the leading eigenvalue of each unit's own block."""
        if self.single:
            return np.where(self.allowed, self.variances(), -np.inf)
        out = np.full(self.units, -np.inf)
        for unit in range(self.units):
            here = self.features(np.array([unit]))
            if here.size:
                out[unit] = np.linalg.eigvalsh(self.part(here, here))[-1]
        return out

    def traces(self) -> Array:
        """Return the sum of variances of each unit."""
        return np.bincount(self.unit_of, np.where(self.allowed, self.variances(), 0.0))

    @cached_property
    def least_eigenvalue(self) -> float:
        """The least eigenvalue of S, or less; 0 for data."""
        here = self.features(np.arange(self.units))
        block = np.zeros((1, 1)) if self.data else self.part(here, here)
        return -largest_eigenvalue(-block)

    @cached_property
    def rows(self) -> Array:
        """For each unit own + the sum of its c largest `norms` among all allowed units, c = 0 .. k - 1."""
        largest = np.zeros((self.units, 0))
        for begin in range(0, self.units, COLUMNS):
            columns = np.arange(begin, min(begin + COLUMNS, self.units))
            norms = self.norms(columns)
            norms[columns, np.arange(len(columns))] = 0.0
            largest = np.concatenate([largest, norms], axis=1)
            keep = min(self.k - 1, largest.shape[1])
            largest = -np.partition(-largest, max(keep - 1, 0), axis=1)[:, :keep]
        sums = np.zeros((self.units, self.k))
        sums[:, 1 : 1 + largest.shape[1]] = -np.sort(-largest, axis=1)
        return self.own()[:, None] + np.cumsum(sums, axis=1)


def leaf_bound(matrix: UnitMatrix, tree: Leaves, node: int, chosen: Array, free: Array) -> float:
    """Return the bound of a leaf, over the supports that have all ``chosen`` units, and of the ``free`` ones any."""
    count = min(matrix.k - len(chosen), len(free))
    if count == 0:
        free = free[:0]
    kind = int(tree.kind[node])
    if kind == Kind.EXACT:
        require(count == len(free), "A leaf claims to be a single support, but leaves a choice.")
        return _exact(matrix, np.concatenate([chosen, free]))
    if kind == Kind.ENUMERATED:
        return _enumerated(matrix, chosen, free, count)
    if kind == Kind.ROWS:
        return _rows(matrix, chosen, free)
    if kind == Kind.TRACE:
        traces = matrix.traces()
        total = float(traces[chosen].sum() + np.sort(traces[free])[len(free) - count :].sum())
        # The leading eigenvalue is the trace less the others: each of these may be negative.
        others = matrix.p * max(0.0, -matrix.least_eigenvalue)
        return total + others + ROUNDING * (len(chosen) + len(free)) * abs(total)
    if kind == Kind.EIGENVALUE:
        here = matrix.features(np.concatenate([chosen, free]))
        return largest_eigenvalue(matrix.part(here, here))
    require(kind in (Kind.DUAL, Kind.SIGNED), f"A leaf has a bound of the unknown kind {kind}.")
    require(kind == Kind.DUAL or matrix.single, "Weights with signs are for single features.")
    require(0 <= tree.dual[node] < len(tree.points), "A leaf names a dual point that is not there.")
    return _dual(matrix, tree.points[int(tree.dual[node])], chosen, free, count, kind == Kind.SIGNED)


def noise_in(M: Array, more: float = 0.0) -> float:
    """Return what rounding may hide of an eigenvalue."""
    return ROUNDING * len(M) * (float(np.linalg.norm(M)) + more)


def largest_eigenvalue(M: Array, more: float = 0.0) -> float:
    """Return the largest eigenvalue, and what rounding may have hidden."""
    return float(np.linalg.eigvalsh(M)[-1]) + noise_in(M, more)


def _exact(matrix: UnitMatrix, units: Array) -> float:
    here = matrix.features(units)
    block = matrix.part(here, here)
    if not matrix.nonnegative:
        return largest_eigenvalue(block)
    few = len(here) <= EXACT_NONNEGATIVE
    return (nonnegative_value(block)[0] if few else nonnegative_bound(block)) + noise_in(block)


def _enumerated(matrix: UnitMatrix, chosen: Array, free: Array, count: int) -> float:
    require(matrix.single and not matrix.nonnegative, "Only supports of single features can be enumerated.")
    require(comb(len(free), count) <= MANY, "A leaf has too many supports to be enumerated.")
    live = np.concatenate([chosen, free])
    S = matrix.part(live, live)
    largest = -np.inf
    for more in combinations(range(len(chosen), len(live)), count):
        at = [*range(len(chosen)), *more]
        largest = max(largest, float(np.linalg.eigvalsh(S[np.ix_(at, at)])[-1]))
    return largest + noise_in(S)


def _rows(matrix: UnitMatrix, chosen: Array, free: Array) -> float:
    sums, t = matrix.rows, len(chosen)
    live = np.concatenate([chosen, free])
    inside = matrix.norms(chosen)[live]
    np.fill_diagonal(inside[:t], 0.0)
    left = matrix.k - 1 - t + (np.arange(len(live)) < t)  # those who may join a unit, beside the chosen ones
    totals = sums[live, np.maximum(left, 0)] + inside.sum(axis=1)
    # Of a negative variance and its covariances little may be left: rounding is that of what was added up.
    totals += ROUNDING * matrix.p * (np.abs(totals) + 2 * np.abs(np.minimum(sums[live, 0], 0.0)))
    return float(totals[left >= 0].max(initial=-np.inf))


def _dual(
    matrix: UnitMatrix, point: tuple[Array, Array, Array], chosen: Array, free: Array, count: int, signed: bool
) -> float:
    live = np.concatenate([chosen, free])
    place = _places(point[0])
    require(set(live.tolist()) <= place.keys(), "A dual point lacks units of its leaf.")
    at = [place[unit] for unit in live.tolist()]
    a, b = point[1][np.ix_(at, at)], point[2][at]
    here, position = matrix.features(live), _places(live)
    S = matrix.part(here, here)
    owner = np.array([position[unit] for unit in matrix.unit_of[here].tolist()])
    D = 1.0 - np.eye(len(S)) if signed else _unit_blocks(S, owner, len(live))
    cost, moved = a * a, a * a.T
    if matrix.nonnegative and signed:  # entries may be raised at no cost
        cost = np.where(moved > 0, cost, 0.0)
    elif matrix.nonnegative and matrix.single:  # those below zero
        negative = S < 0
        cost, moved = np.where(negative, 0.0, cost), np.where(negative, np.maximum(moved, 0.0), moved)
    gains = cost - b
    t = len(chosen)
    h = np.empty(len(live))
    for g in range(len(live)):
        others = np.sort(np.delete(gains[g, t:], g - t) if g >= t else gains[g, t:])
        wanted = count if g < t else count - 1
        inside = gains[g, :t].sum() - (gains[g, g] if g < t else 0.0)
        h[g] = inside + others[len(others) - wanted :].sum() - b[g]
    M = S - moved[np.ix_(owner, owner)] * D + np.diag(h[owner])
    ends = float(b[:t].sum() + np.sort(b[t:])[len(b) - t - count :].sum())
    return largest_eigenvalue(M, float(np.abs(b).sum())) + ends


def _places(units: Array) -> dict[int, int]:
    return {unit: i for i, unit in enumerate(units.tolist())}


def _unit_blocks(S: Array, owner: Array, size: int) -> Array:
    """Return S with the block of each pair of units divided by its norm, zero inside units."""
    if size == len(S):
        D = np.where(S < 0, -1.0, 1.0)
        np.fill_diagonal(D, 0.0)
        return D
    D = np.zeros_like(S)
    members = [np.flatnonzero(owner == g) for g in range(size)]
    for g in range(size):
        for h in range(size):
            block = S[np.ix_(members[g], members[h])]
            largest = float(np.abs(block).max())
            if g != h and largest > 0:
                block = block / largest
                D[np.ix_(members[g], members[h])] = block / (float(np.linalg.norm(block)) * (1 + 1e-14))
    return D
