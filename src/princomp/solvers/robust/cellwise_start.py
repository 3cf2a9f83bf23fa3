"""Where cellPCA begins: planes that few rows or bounded cells suggest, of which the one with the least scales is taken.

Objective: minimise sum_j s_j^2 over planes, s_j being the median absolute residual of column j (Boente &
Salibian-Barrera, J. Am. Stat. Assoc. 2015, minimise such sums of M-scales).

Cells far from the median of their column are drawn in, those very far to the median (wrapping, Raymaekers & Rousseeuw,
Technometrics 2021). Planes are those of small random sets of such rows, some of which have no bad row, and that of all
rows at one distance from the centre (Locantore et al., Test 1999). A few steps of reweighted least squares, with scales
that are taken anew before each, make each of them better; the best go on. Where rows are many, planes are looked for
among some of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from princomp._typing import Array
from princomp.certificates.cellwise import CellwiseProblem, weighted_steps
from princomp.losses import HyperbolicTangent
from princomp.solvers.robust.cellwise import step
from princomp.solvers.robust.deviations import least_deviations
from princomp.solvers.robust.univariate import NORMAL, length_limit, limit, median_of

OF_CELLS = HyperbolicTangent(1.5, 4.0)  # as Raymaekers & Rousseeuw and the authors of cellPCA have it
# Of rows, lengths over their median: the bend is where 97.5 % of regular ones are within, as far as their middle half
# tells, but not below the first of these, which good rows with bad cells reach, nor, if rows have cells enough, above
# the second, which rows reach most of whose cells are bad. The end is half as far again. Planes are looked for with the
# first: at 100 x 20 and 100 x 200, with 20 % of cells and 20 % of rows bad, a bend of 1.5 let too many bad rows in.
BEND, MOST_BEND, END = 1.2, 1.8, 1.5
FLAT = 1e-9  # of the spread of a column: what is left of cells counts as at least that
ROUNDING = 64 * float(np.finfo(np.float64).eps)
CELLS = 2**15  # of the rows among which planes are looked for
WORK = 5e6  # cells looked at by the first steps, all of them
SETS = (12, 30)  # of rows, at least and at most
MORE_ROWS = 2  # than twice the components are in a set
FIRST_STEPS, STEPS = 5, 12
BEST = 3  # planes that go on
SCORES_TOL = 1e-3  # of least absolute deviations, which weights soon make better

Plane = tuple[Array, Array, Array]  # m, V, Z


@dataclass(frozen=True)
class Table:
    """Rows less the medians of columns, and what is known of cells before there is a plane."""

    X: Array  # (n, p), 0 where cells are missing
    there: Array  # (n, p) of bool
    known: Array  # (p,) what cells are known up to, in rounding
    spread: Array  # (p,) robust scales; where half of the cells are the same, of the others; 0 if there are none
    varying: Array  # (n, p) of bool: cells that scales are taken of

    @staticmethod
    def of(X: Array, known: Array) -> Table:
        """Return the table of X (n, p), NaN where cells are missing, medians 0, known up to ``known`` (p,)."""
        there = ~np.isnan(X)
        X = np.where(there, X, 0.0)
        sizes = np.abs(X)
        spread = NORMAL * median_of(sizes, there)
        still = spread <= known
        varying = there & ((sizes > known) | ~still)
        spread = np.where(still, NORMAL * median_of(sizes, varying), spread)
        return Table(X, there, known, spread, varying)

    def rows(self, some: Array) -> Table:
        """Return some of the rows."""
        return Table(self.X[some], self.there[some], self.known, self.spread, self.varying[some])

    @cached_property
    def wrapped(self) -> tuple[Array, Array]:
        """Cells drawn in, and how much of each was left (0 where it is missing), (n, p) both."""
        weights = OF_CELLS.weights(self.X / np.where(self.spread > 0, self.spread, 1.0)) * self.there
        return self.X * weights, weights

    @cached_property
    def _least(self) -> Array:
        least = np.maximum(FLAT * self.spread, self.known)
        whole = float(least.max(initial=0.0))
        return np.where(least > 0, least, whole if whole > 0 else 1.0)

    def scales(self, plane: Plane) -> Array:
        """Return the scales (p,) of what a plane leaves of columns, those of normal errors."""
        mean, V, Z = plane
        n, (p, k) = len(Z), V.shape
        sizes = np.abs(self.X - mean - Z @ V.T)
        left = max((1 - k / p) * (1 - (k + 1) / n), 1 / (n * p))  # of errors: the plane takes the others
        return np.maximum(NORMAL * median_of(sizes, self.varying) / np.sqrt(left), self._least)

    def total(self, plane: Plane) -> float:
        """Return the sum of squared scales: what planes are chosen by."""
        return float((self.scales(plane) ** 2).sum())

    def problem(self, plane: Plane, *, regular: bool = False) -> CellwiseProblem:
        """Return the problem with the scales that a plane has, and, if asked for, the bend that regular rows have."""
        scales = self.scales(plane)
        free = max(int(np.median(self.there.sum(axis=1))) - plane[1].shape[1], 1)
        first = CellwiseProblem(self.X, self.there, scales, 1.0, OF_CELLS, OF_CELLS)
        lengths = first.lengths(first.remainder(*plane))[first.counts > 0]
        least = float(np.sqrt(np.mean(self._least**2)))
        row_scale = max(float(np.median(lengths)), least) if len(lengths) else 1.0
        bend = max(BEND, float(np.sqrt(limit(free) / limit(free, 0.5))))
        if regular and len(lengths):
            bend = max(bend, min(length_limit(lengths) / row_scale, MOST_BEND))
        return replace(first, row_scale=row_scale, of_rows=HyperbolicTangent(bend, END * bend))


def begin(table: Table, k: int, rng: np.random.Generator) -> Plane:
    """Return the plane of k directions to begin from, with the scores of all rows."""
    n, p = table.X.shape
    few = min(n, max(CELLS // p, 20 * (k + 1)))
    some = table if few == n else table.rows(np.sort(rng.choice(n, few, replace=False)))
    tried = [_refined(some, plane, FIRST_STEPS) for plane in _planes(some, k, rng)]
    # The last one, of all rows, goes on in any case.
    tried = [*sorted(tried[:-1], key=some.total)[:BEST], tried[-1]]
    best = min((_refined(some, plane, STEPS) for plane in tried), key=some.total)
    if some is table:
        return best
    mean, V, _ = best
    return _refined(table, (mean, V, _deviations(table, mean, V)), STEPS)


def _planes(table: Table, k: int, rng: np.random.Generator) -> Iterator[Plane]:
    """Yield planes to try."""
    Y, weights = table.wrapped
    (n, p), m = Y.shape, 2 * k + MORE_ROWS
    if n > m:
        for _ in range(int(np.clip(WORK / (n * p * FIRST_STEPS), *SETS))):
            rows = Y[rng.choice(n, m, replace=False)]
            mean = np.median(rows, axis=0)
            V = directions(rows - mean, k)
            yield mean, V, weighted_steps(V, weights, table.X - mean)[0]
    V, mean = spherical(Y, k), np.zeros(p)
    yield mean, V, _deviations(table, mean, V)


def spherical(Y: Array, k: int) -> Array:
    """Return the first k directions (p, k) of rows about 0 brought to one distance from there."""
    lengths = np.linalg.norm(Y, axis=1)
    return directions(Y / np.where(lengths > 0, lengths, 1.0)[:, None], k)


def directions(Y: Array, k: int) -> Array:
    """Return the first k right singular vectors (p, k) of rows, and more at right angles if there are not so many."""
    rows, p = Y.shape
    V = np.linalg.svd(Y, full_matrices=False)[2][:k].T
    return V if rows >= k else np.linalg.qr(np.hstack([V, np.eye(p, k)]))[0][:, :k]


def _deviations(table: Table, mean: Array, V: Array) -> Array:
    return least_deviations(np.where(table.there, table.X - mean, np.nan), V, SCORES_TOL).Z


def _refined(table: Table, plane: Plane, steps: int) -> Plane:
    """Return where steps of reweighted least squares lead, each with the scales of the plane before it."""
    for _ in range(steps):
        problem = table.problem(plane)
        plane = step(problem, problem.at(*plane), *plane)[:3]
    return plane
