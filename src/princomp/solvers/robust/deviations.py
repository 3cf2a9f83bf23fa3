"""Least absolute deviations of many rows, by Frisch-Newton steps (Portnoy & Koenker, Statistical Science 1997).

Objective: for each row x and one orthonormal V (p, k), minimise sum_j |x_j - v_j'z| over z, j over the cells that are
there. The dual is: maximise x'y over |y_j| <= 1 with V'y = 0, so that x'y of such a y bounds the sum from below.

With x - Vz = u - w, u and w > 0, and y strictly between -1 and 1, a step is Newton's on

    u (1 - y) = mu,  w (1 + y) = mu,  V'y = 0,    mu -> 0,

predicted and corrected as Mehrotra does. It needs V'QV of each row, Q = diag(q) of its own: the products of pairs of
columns of V, taken once, make all of them one product of matrices, q (n, p) times (p, k (k + 1) / 2). Six to twenty
steps lead to ten digits: where there is no noise, and few enough cells are wild, of the score itself.

Absolute deviations waste a third of what clean cells say about noise. `clean_scores` takes least squares on the cells
that are clean: within ``LIMIT`` scales of the fit, until these no longer change.

Of rows that have too few cells to tell all k scores, the answer is that of least norm; of those with no cell at all, 0.

With a `Pull` the sum has (z + c)'P(z + c) / 2 besides: V'y is P(z + c) then, and V'QV + P takes the place of V'QV.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from princomp._typing import Array

Grams = Callable[[Array], Array]  # weights of cells (m, p) to matrices (m, k, k)

TILE_BYTES = 2**19  # of one array: a step reads and writes some twenty, which should be near
PAIR_BYTES = 2**25  # of products of pairs of columns, from which on each row makes its matrix by itself
GRAM_BYTES = 2**24  # of matrices at a time
NEAR = 0.99995  # of the way to where the first u, w or 1 -+ y would be 0
MOST_STEPS = 80  # seven without noise, some 15 with it, 20 with cells of 1e10
DEVIATIONS_TOL = 1e-11
FEASIBLE = 1e-8
NULL = 1e-10  # of the largest eigenvalue of V'V on the cells that are there: what is less is not told by them
TINY = 1e-15  # of the trace, added to the diagonal: a matrix that rounding has made singular is solved all the same
LIMIT = 2.5758293035489004  # scales within which 99 % of normal errors are
NORMAL = 1.482602218505602  # times the median of |errors|, normal ones, is their standard deviation
MOST_ROUNDS = 30  # of least squares: sets of clean cells have settled by the fifth, as a rule; some swing for ever
ROUNDING = 64.0  # times eps and the largest cell of the fit: errors below are rounding


class Pull(NamedTuple):
    """What scores z cost by themselves: (z + c)'P(z + c) / 2, as many times a unit of absolute deviations."""

    P: Array  # (k, k)
    c: Array  # (k,)


@dataclass(frozen=True)
class Deviations:
    """Where the sums of absolute deviations are least."""

    Z: Array  # (n, k)
    Y: Array  # (n, p) dual points, 0 where cells are missing
    steps: int


@dataclass(frozen=True)
class CleanScores:
    """Least squares on the clean cells of each row."""

    Z: Array  # (n, k)
    residuals: Array  # (n, p) in scales, NaN where cells are missing
    clean: Array  # (n, p) bool: within the limit; False where cells are missing
    scales: Array  # (n,) of the rows' errors; of columns of known noise, in units of it


def least_deviations(X: Array, V: Array, tol: float = DEVIATIONS_TOL, pull: Pull | None = None) -> Deviations:
    """Return z of each row x of X (n, p) for which sum_j |x_j - v_j'z| is least, over the cells that are not NaN.

    Parameters
    ----------
    X : (n, p) array
        Rows; NaN is missing.
    V : (p, k) array
        Orthonormal columns.
    tol : float
        What the sum may be above the least one, per cell, relative to the median of the row's |cells| but zeros.
    pull : Pull, optional
        What scores cost besides. Rows that fit to the last digit stay as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.solvers.robust.deviations import least_deviations
    >>> V = np.full((5, 1), 5**-0.5)
    >>> z = least_deviations(np.array([[1.0, 2.0, 3.0, np.nan, 900.0], [3.0, 1.0, 2.0, 0.0, 50.0]]), V).Z
    >>> (z @ V.T)[1].round(6).tolist()  # the median
    [2.0, 2.0, 2.0, 2.0, 2.0]
    """
    n, (p, k) = len(X), V.shape
    Z, Y, steps = np.zeros((n, k)), np.zeros((n, p)), 0
    grams = gram_maker(V)
    for tile in tiles(n, p, k):
        Z[tile], Y[tile], needed = _deviations(np.asarray(X[tile], dtype=np.float64), V, grams, tol, pull)
        steps = max(steps, needed)
    return Deviations(Z, Y, steps)


def clean_scores(X: Array, V: Array, limit: float = LIMIT) -> CleanScores:
    """Return the least squares scores of rows X (n, p), NaN missing, on their clean cells.

    A cell is clean if its residual is within ``limit`` scales, which are the row's own, from the median of its
    |residuals|: 0.67 of the sd of normal errors.

    Parameters
    ----------
    X : (n, p) array
        Rows, less the centre.
    V : (p, k) array
        Orthonormal columns.
    limit : float
        In scales.
    """
    n, (p, k) = len(X), V.shape
    Z, scales = np.zeros((n, k)), np.zeros(n)
    residuals, clean = np.empty((n, p)), np.empty((n, p), dtype=bool)
    grams, known = gram_maker(V), rounding(X)
    for tile in tiles(n, p, k):
        Z[tile], residuals[tile], clean[tile], scales[tile] = _clean(
            np.asarray(X[tile], dtype=np.float64), V, grams, limit, known
        )
    return CleanScores(Z, residuals, clean, scales)


def tiles(n: int, p: int, k: int) -> list[slice]:
    """Return slices of rows, of which neither the cells nor the matrices take too much at a time."""
    size = max(1, min(TILE_BYTES // (8 * max(p, 1)), GRAM_BYTES // (8 * max(k, 1) ** 2)))
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def gram_maker(V: Array) -> Grams:
    """Return the function that makes V' diag(q) V (m, k, k) of weights q (m, p)."""
    p, k = V.shape
    upper, lower = np.triu_indices(k)
    if 8 * p * len(upper) > PAIR_BYTES:
        return lambda q: _one_by_one(q, V)
    pairs = V[:, upper] * V[:, lower]
    place = np.empty((k, k), dtype=np.intp)
    place[upper, lower] = place[lower, upper] = np.arange(len(upper))
    return lambda q: np.take(q @ pairs, place, axis=1)


def _one_by_one(q: Array, V: Array) -> Array:
    p, k = V.shape
    out, some = np.empty((len(q), k, k)), max(1, GRAM_BYTES // (8 * p * k))
    for begin in range(0, len(q), some):
        part = q[begin : begin + some]
        np.matmul(part[:, None, :] * V.T, V, out=out[begin : begin + some])
    return out


def _solve(G: Array, b: Array) -> Array:
    """Return G^-1 b of each row, of matrices that may be singular in rounding."""
    k = G.shape[-1]
    G = G + (TINY * np.trace(G, axis1=1, axis2=2) + np.finfo(np.float64).tiny)[:, None, None] * np.eye(k)
    return np.asarray(np.linalg.solve(G, b[:, :, None])[:, :, 0])


def untold(there: Array, grams: Grams, k: int) -> Array | float:
    """Return projectors (n, k, k) on scores of which the cells that are there tell nothing; 0. if they tell of all."""
    if there.all():
        return 0.0
    values, vectors = np.linalg.eigh(grams(there.astype(np.float64)))
    untold = values <= NULL * values[:, -1:].clip(0.0)
    if not untold.any():
        return 0.0
    kept = vectors * untold[:, None, :]
    return np.asarray(kept @ kept.transpose(0, 2, 1))


def null_of(null: Array | float, rows: Array) -> Array | float:
    """Return such projectors of some rows."""
    return null[rows] if isinstance(null, np.ndarray) else null


def told(G: Array, null: Array | float) -> Array:
    """Return matrices that can be solved where cells do not tell of all scores: of those, solutions have nothing."""
    return G + null * np.trace(G, axis1=1, axis2=2)[:, None, None] if isinstance(null, np.ndarray) else G


def least_squares(X: Array, V: Array, grams: Grams, weights: Array, Z: Array, null: Array | float) -> Array:
    """Return scores of weighted least squares, from Z (n, k), which stays what it is where cells tell nothing."""
    G = told(grams(weights), null)
    for _ in range(2):  # the second one takes away what the first one lost by its condition
        Z = Z + _solve(G, (weights * (X - Z @ V.T)) @ V)
    return Z


def _deviations(X: Array, V: Array, grams: Grams, tol: float, pull: Pull | None = None) -> tuple[Array, Array, int]:
    """Return scores (n, k), dual points (n, p) and how many steps they took, of rows that are few."""
    (n, p), k = X.shape, V.shape[1]
    there = ~np.isnan(X)
    omega = there.astype(np.float64)
    X = np.where(there, X, 0.0)
    largest = np.abs(X).max(axis=1, initial=0.0)
    unit = middle_size(np.abs(X), X != 0, 0)
    unit[unit == 0] = 1.0  # rows of zeros, or of nothing
    X = X / unit[:, None]
    null = untold(there, grams, k)
    Z = least_squares(X, V, grams, omega, np.zeros((n, k)), null)
    out_Z, out_Y = Z.copy(), np.zeros((n, p))
    left = omega * (X - Z @ V.T)
    enough = tol * omega.sum(axis=1)
    rest = np.flatnonzero(np.abs(left).sum(axis=1) > np.maximum(enough, 8 * np.finfo(np.float64).eps * largest / unit))
    pulls = None if pull is None else _Pulls.of(pull, unit[rest])
    at = _Interior.begin(X[rest], Z[rest], left[rest], omega[rest], null_of(null, rest), pulls)
    for step in range(MOST_STEPS + 1):
        if not len(rest):
            return out_Z * unit[:, None], out_Y, step
        done = (at.gap <= enough[rest]) & at.feasible(V) | (step == MOST_STEPS)
        if done.any():
            out_Z[rest[done]], out_Y[rest[done]] = at.Z[done], (at.omega * (at.t - at.s) / 2)[done]
            at, rest = at.of(~done), rest[~done]
        if len(rest):
            at = at.step(V, grams)
    return out_Z * unit[:, None], out_Y, MOST_STEPS


class _Pulls(NamedTuple):
    """A `Pull` on rows that are each in a unit of its own."""

    P: Array  # (m, k, k)
    c: Array  # (m, k)

    @staticmethod
    def of(pull: Pull, unit: Array) -> _Pulls:
        """Return it for rows over ``unit`` (m,)."""
        return _Pulls(unit[:, None, None] * pull.P, pull.c / unit[:, None])

    def slope(self, Z: Array) -> Array:
        """Return P(z + c)."""
        return np.asarray(np.einsum("ikl,il->ik", self.P, Z + self.c))


@dataclass(frozen=True)
class _Interior:
    """Where the interior point method stands, of rows that are not done."""

    X: Array  # (m, p)
    Z: Array  # (m, k)
    u: Array  # (m, p)
    w: Array  # (m, p)
    s: Array  # (m, p) 1 - y, and
    t: Array  # (m, p) 1 + y, by themselves: what is near 0 keeps its digits
    omega: Array  # (m, p) 1 where a cell is, else 0; u and w are idle there, and y is 0
    null: Array | float
    pulls: _Pulls | None

    @staticmethod
    def begin(X: Array, Z: Array, left: Array, omega: Array, null: Array | float, pulls: _Pulls | None) -> _Interior:
        """Return the start from residuals: both sides feasible, y = 0."""
        size = np.abs(left).sum(axis=1, keepdims=True) / np.maximum(omega.sum(axis=1, keepdims=True), 1.0)
        u, w = np.maximum(left, 0.0) + size, np.maximum(-left, 0.0) + size
        return _Interior(X, Z, u, w, np.ones_like(X), np.ones_like(X), omega, null, pulls)

    def of(self, rows: Array) -> _Interior:
        """Return these rows of it."""
        X, Z, u, w, s, t, omega = (part[rows] for part in (self.X, self.Z, self.u, self.w, self.s, self.t, self.omega))
        pulls = None if self.pulls is None else _Pulls(*(part[rows] for part in self.pulls))
        return _Interior(X, Z, u, w, s, t, omega, null_of(self.null, rows), pulls)

    @property
    def gap(self) -> Array:
        """The sum of u + w, an upper bound of the sum of absolute deviations, less x'y: (m,)."""
        return _sums(self.omega, self.u * self.s + self.w * self.t)

    def feasible(self, V: Array) -> Array | bool:
        """Tell where V'y is P(z + c), nearly (m,): without a pull it is 0 from the start."""
        if self.pulls is None:
            return True
        most = np.sqrt(self.omega.sum(axis=1))  # of the length of V'y
        return np.asarray(np.linalg.norm(self._astray(V), axis=1) <= FEASIBLE * most)

    def _astray(self, V: Array) -> Array:
        """Return V'y, 0 but for rounding; with a pull, less what that is to be."""
        product = (self.omega * (self.t - self.s)) @ V / 2
        if self.pulls is None:
            return np.asarray(product)
        rest = product - self.pulls.slope(self.Z)
        # Where cells tell nothing, scores stay what they are.
        return rest - np.einsum("ikl,il->ik", self.null, rest) if isinstance(self.null, np.ndarray) else rest

    def step(self, V: Array, grams: Grams) -> _Interior:
        """Return where a step leads."""
        q = self.omega / (self.u / self.s + self.w / self.t)
        G = told(grams(q), self.null)
        if self.pulls is not None:
            G = G + self.pulls.P
        left, astray = self.X - self.Z @ V.T, self._astray(V)
        du, dw, dy, dz = self._direction(V, q, G, left, astray, 0.0, 0.0)
        primal, dual = self._lengths(du, dw, dy)
        ahead = (self.u + primal * du) * (self.s - dual * dy) + (self.w + primal * dw) * (self.t + dual * dy)
        gap = self.gap
        mean = gap / (2.0 * np.maximum(self.omega.sum(axis=1), 1.0))
        mu = ((np.maximum(_sums(self.omega, ahead), 0.0) / gap) ** 3 * mean)[:, None]
        du, dw, dy, dz = self._direction(V, q, G, left, astray, (mu + du * dy) / self.s, (mu - dw * dy) / self.t)
        primal, dual = self._lengths(du, dw, dy)
        return replace(
            self,
            Z=self.Z + primal * dz,
            u=self.u + primal * du,
            w=self.w + primal * dw,
            s=self.s - dual * dy,
            t=self.t + dual * dy,
        )

    def _direction(
        self, V: Array, q: Array, G: Array, left: Array, astray: Array, up: Array | float, down: Array | float
    ) -> tuple[Array, Array, Array, Array]:
        """Return du, dw, dy, dz that solve the linearised conditions, with their constants ``up`` and ``down``."""
        aim = left - (up - down)
        dz = _solve(G, (q * aim) @ V + astray)
        dy = q * (aim - dz @ V.T)
        return up - self.u + self.u * dy / self.s, down - self.w - self.w * dy / self.t, dy, dz

    def _lengths(self, du: Array, dw: Array, dy: Array) -> tuple[Array, Array]:
        """Return how far to go, (m, 1) each: up to 1, and not quite to where something would be 0."""
        primal = np.maximum((-du / self.u).max(axis=1), (-dw / self.w).max(axis=1))
        dual = np.maximum((dy / self.s).max(axis=1), (-dy / self.t).max(axis=1))
        if self.pulls is not None:  # which tie y to z
            primal = dual = np.maximum(primal, dual)
        return _within(primal), _within(dual)


def _within(most: Array) -> Array:
    return np.asarray(NEAR / np.maximum(most, NEAR))[:, None]


def _sums(omega: Array, of: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", omega, of))


def middle_size(sizes: Array, there: Array, k: int) -> Array:
    """Return, of each row, the median of its sizes but the k least, of the cells that are there; 0 where none is."""
    counts = there.sum(axis=1)
    ordered = np.sort(np.where(there, sizes, np.inf), axis=1)
    least = np.minimum(k, np.maximum(counts - 1, 0))
    low, high = (least + counts - 1) // 2, (least + counts) // 2
    rows = np.arange(len(sizes))
    found = (ordered[rows, np.clip(low, 0, None)] + ordered[rows, np.minimum(high, np.maximum(counts - 1, 0))]) / 2
    return np.where(counts > 0, found, 0.0)


def rounding(X: Array) -> float:
    """Return what cells of the fit are known up to, relative to the largest of them."""
    return ROUNDING * float(np.finfo(X.dtype if X.dtype.kind == "f" else np.float64).eps)


def least_errors(X: Array, fitted: Array, known: float) -> Array:
    """Return what errors (n,) are below which they are rounding, of rows X (n, p) without gaps.

    That is rounding of the fit; if that is 0, of the wildest cell's: no error is infinite in scales.
    """
    floor = known * np.abs(fitted).max(axis=1, initial=0.0) + known**2 * np.abs(X).max(axis=1, initial=0.0)
    return np.maximum(floor, np.finfo(np.float64).tiny)


def _clean(X: Array, V: Array, grams: Grams, limit: float, known: float) -> tuple[Array, Array, Array, Array]:
    """Return scores, residuals in scales, which cells are clean, and the rows' scales, of rows that are few."""
    k, there = V.shape[1], ~np.isnan(X)
    Z = _deviations(X, V, grams, DEVIATIONS_TOL)[0]
    full, null = np.where(there, X, 0.0), untold(there, grams, k)
    least = least_errors(full, Z @ V.T, known)
    scales, used = least.copy(), there.copy()
    rest = np.arange(len(X))
    for turn in range(MOST_ROUNDS):
        sizes = np.abs(full[rest] - Z[rest] @ V.T)
        scales[rest] = np.maximum(row_scales(sizes, there[rest], k, exact=turn == 0), least[rest])
        now = there[rest] & (sizes <= limit * scales[rest, None])
        moved = (now != used[rest]).any(axis=1) | (turn == 0)
        used[rest] = now
        rest, now = rest[moved], now[moved]
        if not len(rest):
            break
        Z[rest] = least_squares(full[rest], V, grams, now.astype(np.float64), Z[rest], null_of(null, rest))
    residuals = (X - Z @ V.T) / scales[:, None]
    return Z, residuals, np.abs(residuals) <= limit, scales


def row_scales(sizes: Array, there: Array, k: int, *, exact: bool) -> Array:
    """Return the scale of each row's |residuals|: ``exact`` if k of them are 0, else those of least squares."""
    middle = NORMAL * middle_size(sizes, there, k if exact else 0)
    counts = there.sum(axis=1)
    return middle if exact else middle * np.sqrt(counts / np.maximum(counts - k, 1))  # as much do k scores take
