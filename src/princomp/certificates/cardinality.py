"""Proofs that no component with at most k features has more variance than so much, and the recheck of one.

A proof is a tree. Its root stands for all supports of k units (features, or groups of them); a branch splits them into
those with and those without one unit; each leaf has a bound on v'Sv over its supports, of one of these kinds:

==========  ==========================================================================================================
EXACT       the support is determined: the leading eigenvalue there (nonnegative: see `nonnegative_value`)
ENUMERATED  the same, over all supports that are left (few)
ROWS        largest row (Gershgorin): own variance, then, with stored loadings x > 0, |S_gh| x_h / x_g summed over
            the units in, and the largest of all others
TRACE       sum of the variances of the units in and of the largest others, and what negative eigenvalues may add
EIGENVALUE  leading eigenvalue of S on all units that are left
DUAL        for stored weights a and shifts b (any will do), D_gh = S_gh / |S_gh|, k the units to choose:
            lambda_max(S - [a_gh a_hg D_gh] + diag(h)) + (sum of the largest b, units in first),
            h_g = -b_g + (sum over h of a_gh^2 - b_h, units in first, then the largest, k - 1 in all)
SIGNED      the same for single features, D_gh = 1: the weights carry the signs, as those of covariances that are 0
            but for rounding are not the same on every computer
==========  ==========================================================================================================

The last holds because, for a unit vector x on the support Z, a_gh a_hg |x_g||x_h| is at most half of
a_gh^2 |x_g|^2 + a_hg^2 |x_h|^2, and b summed over Z is sum_g |x_g|^2 sum_{h in Z} b_h. If x may not be negative, what
raises an entry of S (a_gh a_hg D_gh < 0) costs nothing.

S may be what other components left (`remainder`), known but for rounding. Then ``upper`` is raised, and ``lower``
lowered, by as much (and more: whoever rechecks has rounding too). No bound is for semidefinite matrices only: what
"hotelling" leaves is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._threads import single_blas_thread
from princomp.certificates.reading import WrongError, distinct, integer, number, real, require, whole
from princomp.certificates.remainder import ROUNDING

Array = NDArray[Any]

PROVED = 1e-6  # a relative gap within this counts as closed
AGREE = 1e-9  # relative difference between a number claimed and the same recomputed, here or on another computer
EXACT_NONNEGATIVE = 16  # features of a support up to which the best nonnegative vector is searched for exhaustively
MANY = 10_000  # supports that a leaf may ask to enumerate
SAFE_EXPONENT = 150  # of two, of a standard deviation: up to this squares of variances are safe
BALANCED = 1000  # loadings by which rows are balanced differ by as much, and so then does rounding in them
COLUMNS = 256  # of S made at a time, where it is given by data


class Kind(IntEnum):
    """How the bound of a leaf was found."""

    EXACT = 0
    ROWS = 1
    TRACE = 2
    EIGENVALUE = 3
    DUAL = 4
    ENUMERATED = 5
    SIGNED = 6


@dataclass(frozen=True)
class Leaves:
    """A tree of supports, with a bound for each leaf, as flat arrays: entry i is node i, node 0 the root.

    Attributes
    ----------
    unit : (nodes,) array of int
        The unit that a branch decides on; -1 at leaves.
    inside, outside : (nodes,) array of int
        The nodes with and without it; -1 at leaves.
    kind, dual : (nodes,) array of int
        At leaves the `Kind` of bound, and for DUAL and SIGNED the number of its point.
    bound : (nodes,) array
        At leaves the bound.
    points : tuple of (units, weights, shift)
        The dual points: the units (m,) that each has weights (m, m) and shifts (m,) for.
    loadings : (units,) array or None
        Positive numbers by which bounds by ROWS are balanced.
    """

    unit: Array
    inside: Array
    outside: Array
    kind: Array
    dual: Array
    bound: Array
    points: tuple[tuple[Array, Array, Array], ...] = ()
    loadings: Array | None = None

    def __len__(self) -> int:
        """Return the number of leaves."""
        return int(np.sum(self.unit < 0))


def relative_gap(lower: float, upper: float) -> float:
    """Return (upper - lower) / |upper|, 0 if there is none."""
    if upper <= lower:
        return 0.0
    return (upper - lower) / abs(upper) if upper else float("inf")


@dataclass(frozen=True)
class CardinalityCertificate:
    """What is known of the best component with at most ``nonzeros`` units.

    Attributes
    ----------
    lower, upper : float
        The value v'Sv of ``vector``, and a bound that no vector exceeds, both moved apart by ``rounding``.
    vector : (p,) array
        Unit vector, zero outside ``support``.
    support : tuple of int
        The features it may use.
    nonzeros : int
        How many units (features, or groups) it may use.
    leaves : Leaves
        The proof, for `verify`.
    include, exclude : tuple of int
        Features forced into the support (their loadings may still be 0), and out of it.
    nonnegative : bool
        Whether only nonnegative vectors count.
    groups : tuple or None
        Group of each feature; a group counts as one.
    nodes : int
        Subproblems looked into.
    seconds : float
        Time taken.
    certifies : str
        What S was, in words.
    rounding : float
        By how much S may differ, in the spectral norm, from the matrix that the bounds are for.
    """

    lower: float
    upper: float
    vector: Array
    support: tuple[int, ...]
    nonzeros: int
    leaves: Leaves
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    nonnegative: bool = False
    groups: tuple[Any, ...] | None = None
    nodes: int = 0
    seconds: float = 0.0
    certifies: str = "the best component"
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """(upper - lower) / upper."""
        return relative_gap(self.lower, self.upper)

    @property
    def proved(self) -> bool:
        """Whether the gap is closed, but for rounding."""
        return self.gap <= PROVED

    def __str__(self) -> str:
        """Return a sentence."""
        words = restriction(self.include, self.exclude, self.nonnegative, self.groups is not None)
        among = f" among components {words}" if words else ""
        if self.proved:
            largest = f"proved to be the largest{among}"
            return f"{self.certifies.capitalize()}: {self.lower:.6g}, {largest} ({self.nodes} nodes)."
        return (
            f"{self.certifies.capitalize()}: {self.lower:.6g}; no other{among} exceeds {self.upper:.6g}, so that at "
            f"most {100 * self.gap:.2g} % are missing ({self.nodes} nodes)."
        )


def restriction(
    include: Sequence[Any], exclude: Sequence[Any], nonnegative: bool, grouped: bool, *, plural: bool = True
) -> str:
    """Return in words what components a bound is about, to follow "components", or "component"; nothing if all.

    Examples
    --------
    >>> from princomp.certificates.cardinality import restriction
    >>> restriction([2], ["ash", "hue"], False, False)
    'that include feature 2, without ash and hue'
    >>> restriction([], range(9), True, True, plural=False)
    'of whole groups, without features 0, 1, 2, 3, 4 and 4 others, without negative loadings'
    """
    parts = [
        "of whole groups" if grouped else "",
        f"that include{'' if plural else 's'} {_listed(include)}" if len(include) else "",
        f"without {_listed(exclude)}" if len(exclude) else "",
        "without negative loadings" if nonnegative else "",
    ]
    return ", ".join(part for part in parts if part)


def _listed(features: Sequence[Any], most: int = 5) -> str:
    """Return features, by number or name, as a list of a few."""
    shown = [str(feature) if str(feature).isprintable() else repr(feature) for feature in features[:most]]
    if len(features) > most:
        shown.append(f"{len(features) - most} others" if len(features) > most + 1 else str(features[most]))
    what = "" if isinstance(features[0], str) else f"feature{'' if len(features) == 1 else 's'} "
    return what + (shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}")


def recheck(given: Array, certificate: Any, data: bool, rounding: float = 0.0) -> CardinalityCertificate:
    """Return the certificate as read, if it holds for all matrices within ``rounding`` of the one given."""
    with single_blas_thread(), np.errstate(all="ignore"):  # the matrices are small; what overflows is rejected
        read = _read(certificate)
        given, claimed, rounding = _in_safe_units(given, read, data, rounding)
        _check_matrix(given, claimed, data)
        matrix = _Matrix(given, claimed, data)
        _check_vector(matrix, claimed, rounding)
        found, largest = _check_leaves(matrix, claimed)
    largest = max(claimed.lower, largest + claimed.rounding)
    enough = found + rounding <= claimed.upper + AGREE * max(abs(claimed.upper), abs(found))
    require(enough, f"upper is {claimed.upper:.10g}, but a leaf has the bound {found + rounding:.10g}.")
    # A bound too small to be a number is the smallest one there is.
    smallest = float(np.finfo(np.float64).tiny)
    if not (read.upper == smallest and claimed.upper >= largest):
        same(claimed.upper, largest, "upper is {claimed:.10g}, but the largest bound of a leaf is {found:.10g}.")
    return read


def read_matrix(S: Any, data: bool) -> Array:
    """Return a matrix of finite numbers, square unless it is data."""
    given = real(S, "entries of the matrix")
    require(given.ndim == 2 and given.size, "The matrix is not an array of two dimensions.")
    require(np.isfinite(given).all(), "The matrix has entries that are not finite.")
    require(data or given.shape[0] == given.shape[1], "The matrix is not square; for data give data=True.")
    return given


def _read(c: CardinalityCertificate) -> CardinalityCertificate:
    """Return a certificate all of whose numbers are of the kind that they should be."""
    require(isinstance(c, CardinalityCertificate), f"A {type(c).__name__} is no certificate of sparse PCA.")
    require(isinstance(c.leaves, Leaves), "The certificate has no leaves.")
    require(isinstance(c.nonnegative, bool | np.bool_), "nonnegative is neither true nor false.")
    vector = real(c.vector, "entries of the vector")
    require(vector.ndim == 1 and np.isfinite(vector).all(), "The vector is not one of finite numbers.")
    p = len(vector)
    groups = None if c.groups is None else tuple(c.groups)
    require(groups is None or np.shape(groups) == (p,), "There is not one group for each feature.")
    names = ("support", "include", "exclude")
    support, include, exclude = (tuple(distinct(getattr(c, name), f"features of {name}", p).tolist()) for name in names)
    require(not set(include) & set(exclude), "A feature is forced in and out.")
    return replace(
        c,
        lower=number(c.lower, "lower"),
        upper=number(c.upper, "upper"),
        rounding=_not_negative(c.rounding),
        vector=vector,
        nonzeros=integer(c.nonzeros, "nonzeros", p),
        leaves=_read_leaves(c.leaves),
        groups=groups,
        support=support,
        include=include,
        exclude=exclude,
    )


def _not_negative(rounding: Any) -> float:
    found = number(rounding, "rounding")
    require(found >= 0, "rounding is negative.")
    return found


def _read_leaves(leaves: Leaves) -> Leaves:
    names = ("unit", "inside", "outside", "kind", "dual")
    numbers = {name: whole(getattr(leaves, name), f"numbers {name} of the tree") for name in names}
    bound = real(leaves.bound, "bounds of leaves")
    require({array.shape for array in numbers.values()} == {bound.shape}, "The arrays of the tree differ in length.")
    require(len(bound), "The tree has no nodes.")
    points = []
    for units, weights, shift in leaves.points:
        point = whole(units, "units of a dual point"), real(weights, "weights"), real(shift, "shifts")
        m = len(point[0])
        require(point[1].shape == (m, m) and point[2].shape == (m,), "The arrays of a dual point do not fit.")
        require(np.isfinite(point[1]).all() and np.isfinite(point[2]).all(), "A dual point is not finite.")
        points.append(point)
    loadings = None if leaves.loadings is None else real(leaves.loadings, "loadings")
    return Leaves(**numbers, bound=bound, points=tuple(points), loadings=loadings)


def _in_safe_units(
    given: Array, c: CardinalityCertificate, data: bool, rounding: float
) -> tuple[Array, CardinalityCertificate, float]:
    """Return matrix, certificate and rounding, divided by a power of four where squares could overflow or vanish."""
    exponent = int(np.frexp(np.abs(given).max())[1]) // (1 if data else 2)
    if abs(exponent) <= SAFE_EXPONENT:
        return given, c, rounding
    scaled_rounding = float(np.ldexp(rounding, -2 * exponent))
    return np.ldexp(given, -exponent if data else -2 * exponent), scaled(c, -exponent), scaled_rounding


def scaled(c: CardinalityCertificate, exponent: int) -> CardinalityCertificate:
    """Return the certificate for S times 4**exponent, or X times 2**exponent: exact unless it overflows or vanishes."""
    twice, leaves = 2 * exponent, c.leaves
    points = tuple(
        (units, np.ldexp(weights, exponent), np.ldexp(shift, twice)) for units, weights, shift in leaves.points
    )
    return replace(
        c,
        lower=float(np.ldexp(c.lower, twice)),
        upper=float(np.ldexp(c.upper, twice)),
        rounding=float(np.ldexp(c.rounding, twice)),
        leaves=replace(leaves, bound=np.ldexp(leaves.bound, twice), points=points),
    )


def same(claimed: float, found: float, sentence: str, more: float = 0.0) -> None:
    """Reject the certificate unless two numbers agree to nine digits, or differ by no more than ``more`` beyond."""
    if not abs(claimed - found) <= AGREE * max(abs(claimed), abs(found)) + more:
        raise WrongError(sentence.format(claimed=claimed, found=found))


def units_of(groups: Sequence[Any] | None, p: int) -> Array:
    """Return the unit of each feature: units that are single features have their numbers, whatever their labels."""
    if groups is None:
        return np.arange(p)
    units: Array = np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.arange(p) if units.max() + 1 == p else units


class _Matrix:
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
        self._rows: Array | None = None
        self._least: float | None = None

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
        out = np.full(self.units, -np.inf)
        if self.single:
            return np.where(self.allowed, self.variances(), -np.inf)
        for unit in range(self.units):
            here = self.features(np.array([unit]))
            if here.size:
                out[unit] = np.linalg.eigvalsh(self.part(here, here))[-1]
        return out

    def traces(self) -> Array:
        """Return the sum of variances of each unit."""
        return np.bincount(self.unit_of, np.where(self.allowed, self.variances(), 0.0))

    def least_eigenvalue(self) -> float:
        """Return the least eigenvalue of S, or less; 0 for data."""
        if self._least is None:
            here = self.features(np.arange(self.units))
            block = np.zeros((1, 1)) if self.data else self.part(here, here)
            self._least = -largest_eigenvalue(-block)
        return self._least

    def rows(self) -> Array:
        """Return for each unit own + the sum of its c largest `norms` among all allowed units, c = 0 .. k - 1."""
        if self._rows is None:
            largest = np.zeros((self.units, 0))
            for begin in range(0, self.units, COLUMNS):
                columns = np.arange(begin, min(begin + COLUMNS, self.units))
                norms = self.norms(columns)
                norms[columns, np.arange(len(columns))] = 0.0
                largest = np.concatenate([largest, norms], axis=1)
                keep = min(self.k - 1, largest.shape[1])
                largest = -np.partition(-largest, max(keep - 1, 0), axis=1)[:, :keep]
            largest = -np.sort(-largest, axis=1)
            padded = np.zeros((self.units, self.k - 1))
            padded[:, : largest.shape[1]] = largest
            first = np.zeros((self.units, 1))
            self._rows = self.own()[:, None] + np.cumsum(np.concatenate([first, padded], axis=1), axis=1)
        return self._rows


def _check_matrix(given: Array, c: CardinalityCertificate, data: bool) -> None:
    p = len(c.vector)
    require(given.shape[1] == p, f"The certificate is about {p} features, the matrix is not.")
    if not data:
        asymmetry = np.abs(given - given.T).max()
        require(asymmetry <= AGREE * np.abs(given).max(), "The matrix is not symmetric.")


def _check_vector(matrix: _Matrix, c: CardinalityCertificate, rounding: float) -> None:
    v, support = c.vector, np.array(c.support, dtype=int)
    require(abs(float(v @ v) - 1) <= AGREE, "The vector is not of unit length.")
    outside = np.ones(matrix.p, dtype=bool)
    outside[support] = False
    require(not v[outside].any(), "The vector is not zero outside its support.")
    require(len(set(matrix.unit_of[support])) <= c.nonzeros, f"The support has more than {c.nonzeros} units.")
    require(matrix.allowed[support].all(), "The support uses a feature that is forced out.")
    missing = set(matrix.unit_of[list(c.include)]) - set(matrix.unit_of[support])
    require(not missing, "The support lacks a feature that is forced in.")
    require(not c.nonnegative or (v >= 0).all(), "The vector has negative entries.")
    used = np.flatnonzero(v)
    block = matrix.part(used, used)
    value, noise = float(v[used] @ block @ v[used]) / float(v @ v), noise_in(block)
    sentence = "The vector's value is {found:.10g}, not the claimed {claimed:.10g}."
    same(c.lower, value, sentence, 2 * c.rounding + noise)
    same(c.lower, min(c.lower, value - rounding), sentence, noise)  # rounding that is claimed raises no value


def _check_leaves(matrix: _Matrix, c: CardinalityCertificate) -> tuple[float, float]:
    """Walk through the tree; return the largest bound of a leaf as it is found, and as it is claimed to be."""
    tree = c.leaves
    count = len(tree.unit)
    x = matrix.loadings
    require(x.shape == (matrix.units,) and np.isfinite(x).all() and (x > 0).all(), "The loadings are not positive.")
    size = float(np.abs(matrix.variances() if matrix.data else matrix.given).max())
    available = np.unique(matrix.unit_of[matrix.allowed])
    forced = tuple(np.unique(matrix.unit_of[list(c.include)])) if c.include else ()
    largest, found, seen = -np.inf, -np.inf, 0
    todo: list[tuple[int, tuple[int, ...], Array]] = [(0, forced, np.setdiff1d(available, forced))]
    while todo:
        node, chosen, free = todo.pop()
        require(0 <= node < count and seen < count, "The tree lacks a node: its leaves do not cover every support.")
        seen += 1
        unit = int(tree.unit[node])
        if unit >= 0:
            rest = free[free != unit]
            require(len(rest) == len(free) - 1, f"A branch decides on unit {unit}, which was decided before.")
            todo += [(int(tree.outside[node]), chosen, rest), (int(tree.inside[node]), (*chosen, unit), rest)]
            continue
        if len(chosen) > c.nonzeros:
            continue  # no support is left
        bound, claimed = _leaf_bound(matrix, tree, node, np.array(chosen, dtype=int), free), float(tree.bound[node])
        sentence = "The bound of a leaf is {found:.10g}, not the claimed {claimed:.10g}."
        # These are the numbers that it is from; what upper must be follows from the bound that is found.
        same(claimed, bound, sentence, AGREE * size + BALANCED * c.rounding)
        largest, found = max(largest, claimed), max(found, bound)
    require(seen == count, "The tree has nodes that hang nowhere.")
    return found, largest


def _leaf_bound(matrix: _Matrix, tree: Leaves, node: int, chosen: Array, free: Array) -> float:
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
        others = matrix.p * max(0.0, -matrix.least_eigenvalue())
        return total + others + ROUNDING * (len(chosen) + len(free)) * abs(total)
    if kind == Kind.EIGENVALUE:
        here = matrix.features(np.concatenate([chosen, free]))
        return largest_eigenvalue(matrix.part(here, here))
    require(kind in (Kind.DUAL, Kind.SIGNED), f"A leaf has a bound of the unknown kind {kind}.")
    require(kind == Kind.DUAL or matrix.single, "Weights with signs are for single features.")
    require(0 <= tree.dual[node] < len(tree.points), "A leaf names a dual point that is not there.")
    signed = kind == Kind.SIGNED
    return _dual(matrix, tree.points[int(tree.dual[node])], chosen, free, count, signed)


def noise_in(M: Array, more: float = 0.0) -> float:
    """Return what rounding may hide of an eigenvalue."""
    return ROUNDING * len(M) * (float(np.linalg.norm(M)) + more)


def largest_eigenvalue(M: Array, more: float = 0.0) -> float:
    """Return the largest eigenvalue, and what rounding may have hidden."""
    return float(np.linalg.eigvalsh(M)[-1]) + noise_in(M, more)


def _exact(matrix: _Matrix, units: Array) -> float:
    here = matrix.features(units)
    block = matrix.part(here, here)
    if not matrix.nonnegative:
        return largest_eigenvalue(block)
    few = len(here) <= EXACT_NONNEGATIVE
    return (nonnegative_value(block)[0] if few else nonnegative_bound(block)) + noise_in(block)


def _enumerated(matrix: _Matrix, chosen: Array, free: Array, count: int) -> float:
    require(matrix.single and not matrix.nonnegative, "Only supports of single features can be enumerated.")
    require(comb(len(free), count) <= MANY, "A leaf has too many supports to be enumerated.")
    live = np.concatenate([chosen, free])
    S = matrix.part(live, live)
    largest = -np.inf
    for more in combinations(range(len(chosen), len(live)), count):
        at = [*range(len(chosen)), *more]
        largest = max(largest, float(np.linalg.eigvalsh(S[np.ix_(at, at)])[-1]))
    return largest + noise_in(S)


def _rows(matrix: _Matrix, chosen: Array, free: Array) -> float:
    sums = matrix.rows()
    live = np.concatenate([chosen, free])
    inside = matrix.norms(chosen)[live] if len(chosen) else np.zeros((len(live), 0))
    own = np.zeros(len(live), dtype=bool)
    own[: len(chosen)] = True
    for i in range(len(chosen)):
        inside[i, i] = 0.0
    left = matrix.k - 1 - len(chosen) + own
    totals = sums[live, np.maximum(left, 0)] + inside.sum(axis=1)
    # Of a negative variance and its covariances little may be left: rounding is that of what was added up.
    totals += ROUNDING * matrix.p * (np.abs(totals) + 2 * np.abs(np.minimum(sums[live, 0], 0.0)))
    return float(totals[left >= 0].max(initial=-np.inf))


def _dual(
    matrix: _Matrix, point: tuple[Array, Array, Array], chosen: Array, free: Array, count: int, signed: bool = False
) -> float:
    units, weights, shift = point
    live = np.concatenate([chosen, free])
    place = {int(unit): i for i, unit in enumerate(units)}
    require(all(int(unit) in place for unit in live), "A dual point lacks units of its leaf.")
    at = np.array([place[int(unit)] for unit in live])
    a, b = weights[np.ix_(at, at)], shift[at]
    here = matrix.features(live)
    S = matrix.part(here, here)
    position = {int(unit): i for i, unit in enumerate(live)}
    owner = np.array([position[int(unit)] for unit in matrix.unit_of[here]])
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


def nonnegative_value(S: Array) -> tuple[float, Array]:
    """Return the largest v'Sv over nonnegative unit vectors, and such a vector, by exhaustion.

    The best vector is, on the features it uses, a leading eigenvector there. So either the leading eigenvector of S
    has one sign, or some feature is not used: all subsets are tried, but those whose `nonnegative_bound` is too small.

    Parameters
    ----------
    S : (m, m) array
        Symmetric; m up to about sixteen.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import nonnegative_value
    >>> value, v = nonnegative_value(np.array([[2.0, -1.0], [-1.0, 1.0]]))
    >>> value, v.tolist()
    (2.0, [1.0, 0.0])
    """
    m = len(S)
    first = int(np.argmax(S.diagonal()))
    best, vector = float(S[first, first]), np.eye(m)[first]
    todo, seen = [tuple(range(m))], set()
    while todo:
        here = todo.pop()
        if here in seen or not here:
            continue
        seen.add(here)
        block = S[np.ix_(here, here)]
        if nonnegative_bound(block) <= best:
            continue
        values, vectors = np.linalg.eigh(block)
        v = vectors[:, -1] * np.sign(vectors[np.argmax(np.abs(vectors[:, -1])), -1])
        if (v >= 0).all() and values[-1] > best:
            best, vector = float(values[-1]), np.zeros(m)
            vector[list(here)] = v
        else:
            todo += [here[:i] + here[i + 1 :] for i in np.argsort(-v)]  # the most negative one is dropped first
    return best, vector


def nonnegative_bound(S: Array) -> float:
    """Return a bound on v'Sv for nonnegative unit vectors: negative covariances can only lower it."""
    raised = np.maximum(S, 0.0)
    np.fill_diagonal(raised, S.diagonal())
    return min(float(np.linalg.eigvalsh(S)[-1]), float(np.linalg.eigvalsh(raised)[-1]))
