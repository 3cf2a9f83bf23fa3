"""The sparse component problem by units (features, or groups of them), and its cheapest bound: row sums.

S is given whole, or by data X with S = X'X, of which a few columns are made at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.leaf_bounds import COLUMNS
from princomp.certificates.nonnegative import EXACT_NONNEGATIVE, nonnegative_bound, nonnegative_value
from princomp.certificates.proof import units_of
from princomp.solvers.cardinality_bounds import ROUNDING, largest_sum
from princomp.solvers.exchange import nonnegative_from_everywhere
from princomp.solvers.scatter import Data, Matrix, Scatter


@dataclass(frozen=True)
class SupportProblem:
    """The problem by units, divided by a power of four so that variances are about 1."""

    scatter: Scatter  # as given
    scale: float
    unit_of: Array  # (p,)
    allowed: Array  # (p,) bool
    forced: tuple[int, ...]  # units
    k: int
    nonnegative: bool
    single: bool  # whether each unit is one feature

    @classmethod
    def of(
        cls,
        S: Any,
        k: int,
        groups: Sequence[Any] | None,
        include: Sequence[int],
        exclude: Sequence[int],
        nonnegative: bool,
        data: bool,
    ) -> SupportProblem:
        """Check what is given, and return it by units."""
        given = np.asarray(S, dtype=np.float64)
        if given.ndim != 2 or (not data and given.shape[0] != given.shape[1]):
            raise ValueError(f"S must be square, got shape {given.shape}; give X with data=True.")
        if not np.isfinite(given).all():
            raise ValueError("S has entries that are not finite; remove or replace them.")
        p, scatter = given.shape[1], Data(given) if data else Matrix(given)
        if groups is not None and len(groups) != p:
            raise ValueError(f"groups must have one label per feature, {p}, got {len(groups)}.")
        unit_of = units_of(groups, p)
        allowed = np.ones(p, dtype=bool)
        allowed[list(exclude)] = False
        forced = tuple(int(unit) for unit in np.unique(unit_of[np.asarray(include, dtype=int)]))
        if not allowed[list(include)].all():
            raise ValueError("include and exclude share a feature; a feature cannot be forced in and out.")
        if not 1 <= k <= p or len(forced) > k:
            raise ValueError(f"nonzeros must be between {max(1, len(forced))} and {p}, got {k}.")
        if not allowed.any():
            raise ValueError("exclude leaves no feature; force fewer out.")
        # What "hotelling" leaves may have covariances larger than variances.
        sizes = scatter.diagonal[allowed] if data else np.abs(given[np.ix_(allowed, allowed)])
        largest = float(sizes.max())
        scale = 4.0 ** np.round(np.log2(largest) / 2) if largest > 0 else 1.0
        single = len(np.unique(unit_of)) == p
        return cls(scatter, float(scale), unit_of, allowed, forced, int(k), bool(nonnegative), single)

    @property
    def by_data(self) -> bool:
        """Whether X was given, and S has no negative eigenvalues."""
        return self.scatter.data is not None

    @property
    def count(self) -> int:
        """How many units there are."""
        return int(self.unit_of.max()) + 1

    @property
    def available(self) -> Array:
        """Units that have features left."""
        return np.unique(self.unit_of[self.allowed])

    def features(self, units: Array) -> Array:
        """Return the features of some units, unit by unit."""
        units = np.asarray(units, dtype=int)
        if self.single:
            return units[self.allowed[units]]
        members = [np.flatnonzero((self.unit_of == unit) & self.allowed) for unit in units]
        return np.concatenate([*members, np.zeros(0, dtype=int)]).astype(int)

    def part(self, rows: Array, columns: Array) -> Array:
        """Return a part of S, scaled."""
        return self.scatter.part(rows, columns) / self.scale

    def diagonal(self, features: Array) -> Array:
        """Return variances of some features, scaled."""
        return self.scatter.diagonal[features] / self.scale

    def trace(self, chosen: Sequence[int], free: Array) -> float:
        """Return the scaled variances of the units in and of the largest free ones: a bound if S is definite."""
        here = np.flatnonzero(self.allowed)
        traces = np.bincount(self.unit_of[here], self.diagonal(here))
        largest = float(largest_sum(traces[free], self.k - len(chosen)))
        return (float(traces[list(chosen)].sum()) + largest) * (1 + ROUNDING * (len(chosen) + len(free)))

    def value(self, vector: Array) -> float:
        """Return v'Sv, not scaled."""
        used = np.flatnonzero(vector)
        return float(vector[used] @ self.part(used, used) @ vector[used]) * self.scale

    def lengths(self, vector: Array) -> Array:
        """Return the length of each unit's part of Sv (nonnegative: of its positive entries), scaled."""
        used = np.flatnonzero(vector)
        image = self.scatter.combine(used, vector[None, used])[0] / self.scale
        image = np.where(self.allowed, np.maximum(image, 0.0) if self.nonnegative else image, 0.0)
        return np.sqrt(np.bincount(self.unit_of, image**2))

    def exact(self, units: Array) -> float:
        """Return the largest scaled value on some units, rounding included (nonnegative, many features: a bound)."""
        here = self.features(units)
        S = self.part(here, here)
        if not self.nonnegative:
            value = float(np.linalg.eigvalsh(S)[-1])
        else:
            value = nonnegative_value(S)[0] if len(here) <= EXACT_NONNEGATIVE else nonnegative_bound(S)
        return value + ROUNDING * len(S) * float(np.linalg.norm(S))

    def best_vector(self, units: Array) -> tuple[float, Array]:
        """Return the best vector on some units (nonnegative, many features: a good one), and its scaled value."""
        here = self.features(units)
        S, vector = self.part(here, here), np.zeros(len(self.unit_of))
        if not self.nonnegative:
            vector[here] = np.linalg.eigh(S)[1][:, -1]
        elif len(here) <= EXACT_NONNEGATIVE:
            vector[here] = nonnegative_value(S)[1]
        else:
            shift = max(0.0, -float(np.linalg.eigvalsh(S)[0]))
            vector[here] = nonnegative_from_everywhere(S + shift * np.eye(len(S)))
        return float(vector[here] @ S @ vector[here]), vector


class RowSums:
    """Row sums of all units, made a few columns at a time."""

    def __init__(self, problem: SupportProblem, loadings: Array) -> None:
        self.problem, self.loadings = problem, loadings
        self.everything = problem.features(problem.available)
        self.count = problem.count
        self.starts = np.flatnonzero(np.diff(problem.unit_of[self.everything], prepend=-1))
        self.sums = np.zeros((self.count, problem.k))  # own, and the c largest others, c = 0 .. k - 1
        forced = np.array(problem.forced, dtype=int)
        norms = self.norms(forced)
        norms[forced, np.arange(len(forced))] = 0.0
        self.inside = norms.sum(axis=1)

    @classmethod
    def made(cls, problem: SupportProblem, loadings: Array, over: Callable[[], bool]) -> RowSums | None:
        """Return the sums, or None if time runs out."""
        rows = cls(problem, loadings)
        largest = np.zeros((rows.count, 0))
        for begin in range(0, len(problem.available), COLUMNS):
            if over():
                return None
            columns = problem.available[begin : begin + COLUMNS]
            norms = rows.norms(columns)
            norms[columns, np.arange(len(columns))] = 0.0
            largest = np.concatenate([largest, norms], axis=1)
            keep = min(problem.k - 1, largest.shape[1])
            largest = -np.partition(-largest, max(keep - 1, 0), axis=1)[:, :keep]
        found = largest.shape[1]
        rows.sums[:, 1 : 1 + found] = np.cumsum(-np.sort(-largest, axis=1), axis=1)
        rows.sums[:, 1 + found :] = rows.sums[:, [found]]
        rows.sums += rows.own()[:, None]
        return rows

    def own(self) -> Array:
        """Return the leading eigenvalue of each unit's own block."""
        own = np.full(self.count, -np.inf)
        if self.problem.single:
            own[self.everything] = self.problem.diagonal(self.everything)
            return own
        for unit in self.problem.available:
            here = self.problem.features(np.array([unit]))
            own[unit] = float(np.linalg.eigvalsh(self.problem.part(here, here))[-1])
        return own

    def norms(self, columns: Array) -> Array:
        """Return |S_gh| x_h / x_g for all units g and some units h, x the loadings: (units, columns)."""
        problem = self.problem
        here = problem.features(columns)
        part = np.abs(problem.part(self.everything, here))
        out = np.zeros((self.count, len(columns)))
        if problem.single:
            out[self.everything] = part
        else:
            starts = np.flatnonzero(np.diff(problem.unit_of[here], prepend=-1))
            squares = np.add.reduceat(np.add.reduceat(part**2, self.starts, axis=0), starts, axis=1)
            out[problem.available] = np.sqrt(squares)
        return out * (self.loadings[columns] / self.loadings[:, None])

    def bound(self, live: Array, unit: int = -1, column: Array | None = None) -> float:
        """Return the largest row among live units, for the units forced in and, if given, one more, with its column."""
        left = np.full(self.count, self.problem.k - 1 - len(self.problem.forced))
        left[list(self.problem.forced)] += 1
        inside = self.inside
        if column is not None:
            left -= 1
            left[unit] += 1
            inside = inside + np.where(np.arange(self.count) == unit, 0.0, column)
        live = live[left[live] >= 0]
        totals = self.sums[live, left[live]] + inside[live]
        # Of a negative variance and its covariances little may be left: rounding is that of what was added up.
        size = np.abs(totals) + 2 * np.abs(np.minimum(self.sums[live, 0], 0.0))
        return float((totals + ROUNDING * len(self.problem.unit_of) * size).max(initial=-np.inf))
