"""Proofs that no component with at most k features has more variance than so much, and their recheck.

A proof is a tree. Its root stands for all supports of k units (features, or groups of them); a branch splits them into
those with and those without one unit; each leaf has a bound on v'Sv over its supports, of one of these kinds:

==========  ==========================================================================================================
EXACT       the support is determined: the leading eigenvalue there (nonnegative: see `nonnegative_value`)
ENUMERATED  the same, over all supports that are left (few)
ROWS        largest row (Gershgorin): own variance, then, with stored loadings x > 0, |S_gh| x_h / x_g summed over
            the units in, and the largest of all others
TRACE       sum of the variances of the units in and of the largest others (S positive semidefinite)
EIGENVALUE  leading eigenvalue of S on all units that are left
DUAL        for stored weights a and shifts b (any will do), D_gh = S_gh / |S_gh|, k the units to choose:
            lambda_max(S - [a_gh a_hg D_gh] + diag(h)) + (sum of the largest b, units in first),
            h_g = -b_g + (sum over h of a_gh^2 - b_h, units in first, then the largest, k - 1 in all)
==========  ==========================================================================================================

The last holds because, for a unit vector x on the support Z, a_gh a_hg |x_g||x_h| is at most half of
a_gh^2 |x_g|^2 + a_hg^2 |x_h|^2, and b summed over Z is sum_g |x_g|^2 sum_{h in Z} b_h.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._threads import single_blas_thread
from princomp.certificates.reading import WrongError, distinct, integer, number, real, require, whole

Array = NDArray[Any]

PROVED = 1e-6  # a relative gap within this counts as closed
AGREE = 1e-9  # relative difference between a number claimed and the same recomputed, here or on another computer
ROUNDING = 4 * float(np.finfo(np.float64).eps)  # times the size of a matrix and its norm: more than LAPACK loses
EXACT_NONNEGATIVE = 16  # features of a support up to which the best nonnegative vector is searched for exhaustively
MANY = 10_000  # supports that a leaf may ask to enumerate
SAFE_EXPONENT = 150  # of two, of a standard deviation: up to this squares of variances are safe
COLUMNS = 256  # of S made at a time, where it is given by data


class Kind(IntEnum):
    """How the bound of a leaf was found."""

    EXACT = 0
    ROWS = 1
    TRACE = 2
    EIGENVALUE = 3
    DUAL = 4
    ENUMERATED = 5


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
        At leaves the `Kind` of bound, and for DUAL the number of its point.
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
        The value v'Sv of ``vector``, and a bound that no vector exceeds.
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
        if self.proved:
            return f"{self.certifies.capitalize()}: {self.lower:.6g}, proved to be the largest ({self.nodes} nodes)."
        return (
            f"{self.certifies.capitalize()}: {self.lower:.6g}; no other exceeds {self.upper:.6g}, so that at most "
            f"{100 * self.gap:.2g} % are missing ({self.nodes} nodes)."
        )


@dataclass(frozen=True)
class Verification:
    """The outcome of a recheck: true or false, and why."""

    holds: bool
    reason: str

    def __bool__(self) -> bool:
        """Tell whether the certificate holds."""
        return self.holds

    def __str__(self) -> str:
        """Return the sentence."""
        return self.reason


def verify(S: Any, certificate: Any, *, data: bool = False) -> Verification:
    """Recheck a certificate of sparse PCA from the matrix alone, without the solver.

    Checked are: the vector (unit, few entries, as constrained, its value), the tree (its leaves cover every support),
    each leaf's bound (computed again from S and the stored numbers), and that ``upper`` is the largest of them.

    Parameters
    ----------
    S : (p, p) array
        The matrix that the certificate is about, or with ``data`` the (n, p) matrix X, S = X'X.
    certificate : CardinalityCertificate, or the ``certificate_`` of a SparsePCA
        What is claimed of one component, or of all: then S is the covariance that was fitted, and each component is
        checked on what those before it leave.
    data : bool, default False
        Whether X is given in place of S.

    Returns
    -------
    Verification
        True or false, with a sentence.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from princomp import certificates, datasets
    >>> from princomp.solvers.branch_and_bound import prove
    >>> S = datasets.load_pitprops().correlation
    >>> proof = prove(S, 5, support=[0, 1, 6, 8, 9])
    >>> bool(certificates.verify(S, proof)), round(proof.upper, 6)
    (True, 3.406155)
    >>> print(certificates.verify(S, replace(proof, upper=3.3, lower=3.3)))
    The vector's value is 3.406..., not the claimed 3.3.
    """
    if hasattr(certificate, "proofs"):
        return _verify_all(S, certificate, data)
    try:
        with single_blas_thread(), np.errstate(all="ignore"):  # the matrices are small; what overflows is rejected
            given, claimed = _in_safe_units(_read_matrix(S, data), _read(certificate), data)
            _check_matrix(given, claimed, data)
            matrix = _Matrix(given, claimed, data)
            _check_vector(matrix, claimed)
            found = max(claimed.lower, _check_leaves(matrix, claimed))
        _same(claimed.upper, found, "upper is {claimed:.10g}, but the largest bound of a leaf is {found:.10g}.")
    except WrongError as wrong:
        return Verification(False, str(wrong))
    except (IndexError, ValueError, TypeError, OverflowError, np.linalg.LinAlgError) as error:
        return Verification(False, f"The certificate cannot be read: {error}.")
    return Verification(True, f"The certificate holds: all {len(claimed.leaves)} leaves were rechecked.")


def _verify_all(S: Any, certificate: Any, data: bool) -> Verification:
    """Recheck component after component, S being deflated by those that were."""
    proofs = certificate.proofs
    if not proofs or any(proof is None for proof in proofs):
        return Verification(False, "Not every component has a proof: fit with certify=True.")
    try:
        left, lower, upper = S, real(certificate.lower, "lower"), real(certificate.upper, "upper")
        require(lower.shape == upper.shape == (len(proofs),), "There are not as many bounds as proofs.")
        basis: list[Array] = []
        for j, proof in enumerate(proofs):
            said = verify(left, proof, data=data)
            if not said:
                return Verification(False, f"Component {j + 1}: {said}")
            _same(lower[j], proof.lower, "lower is {claimed:.10g}, but its proof says {found:.10g}.")
            _same(upper[j], proof.upper, "upper is {claimed:.10g}, but its proof says {found:.10g}.")
            if j + 1 < len(proofs):
                given = _read_matrix(left, data)
                left, data = given.T @ given if data else given, False
                left = _deflated(left, np.asarray(proof.vector, dtype=np.float64), certificate.deflation, basis)
    except WrongError as wrong:
        return Verification(False, str(wrong))
    return Verification(True, f"The certificate holds: the proofs of all {len(proofs)} components were rechecked.")


def _deflated(S: Array, x: Array, kind: Any, basis: list[Array]) -> Array:
    """Return what the unit vector x leaves of S (Mackey, NIPS 2008); ``basis`` grows by "generalised"."""
    if kind == "generalised":
        for q in basis:
            x = x - q * (q @ x)
        size = float(np.linalg.norm(x))
        x = x / size if size > 0 else x
        basis.append(x)
    y = S @ x
    c = float(x @ y)
    if kind == "schur":
        left = S - np.outer(y, y / c) if c > 0 else S
    elif kind == "hotelling":
        left = S - c * np.outer(x, x)
    else:
        require(kind in ("projection", "generalised"), f"{kind!r} is no deflation.")
        left = S - np.outer(x, y) - np.outer(y, x) + c * np.outer(x, x)
    symmetric: Array = (left + left.T) / 2
    return symmetric


def _read_matrix(S: Any, data: bool) -> Array:
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
    return replace(
        c,
        lower=number(c.lower, "lower"),
        upper=number(c.upper, "upper"),
        vector=vector,
        nonzeros=integer(c.nonzeros, "nonzeros", p),
        leaves=_read_leaves(c.leaves),
        groups=groups,
        support=support,
        include=include,
        exclude=exclude,
    )


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


def _in_safe_units(given: Array, c: CardinalityCertificate, data: bool) -> tuple[Array, CardinalityCertificate]:
    """Return matrix and certificate, divided by a power of four where squares could overflow or vanish."""
    exponent = int(np.frexp(np.abs(given).max())[1]) // (1 if data else 2)
    if abs(exponent) <= SAFE_EXPONENT:
        return given, c
    return np.ldexp(given, -exponent if data else -2 * exponent), scaled(c, -exponent)


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
        leaves=replace(leaves, bound=np.ldexp(leaves.bound, twice), points=points),
    )


def _same(claimed: float, found: float, sentence: str, scale: float = 0.0) -> None:
    if not abs(claimed - found) <= AGREE * max(abs(claimed), abs(found), scale):
        raise WrongError(sentence.format(claimed=claimed, found=found))


class _Matrix:
    """S by units: whole, or a part at a time where only data are given."""

    def __init__(self, given: Array, certificate: CardinalityCertificate, data: bool) -> None:
        self.given, self.data = given, data
        self.p = given.shape[1]
        labels = np.arange(self.p) if certificate.groups is None else np.asarray(certificate.groups)
        self.unit_of = np.unique(labels, return_inverse=True)[1]
        self.units = int(self.unit_of.max()) + 1
        self.single = self.units == self.p
        self.allowed = np.ones(self.p, dtype=bool)
        self.allowed[list(certificate.exclude)] = False
        self.k, self.nonnegative = certificate.nonzeros, certificate.nonnegative
        loadings = certificate.leaves.loadings
        self.loadings = np.ones(self.units) if loadings is None else loadings
        self._rows: Array | None = None
        self._definite: bool | None = None

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

    def definite(self) -> bool:
        """Whether S is positive semidefinite, but for rounding."""
        if self._definite is None:
            here = self.features(np.arange(self.units))
            values = np.zeros(1) if self.data else np.linalg.eigvalsh(self.part(here, here))
            self._definite = bool(values[0] >= -1e-12 * max(len(here), 1) * np.abs(values).max())
        return self._definite

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


def _check_vector(matrix: _Matrix, c: CardinalityCertificate) -> None:
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
    value, scale = float(v[used] @ block @ v[used]), float(np.abs(block).max())
    _same(c.lower, value, "The vector's value is {found:.10g}, not the claimed {claimed:.10g}.", scale)


def _check_leaves(matrix: _Matrix, c: CardinalityCertificate) -> float:
    """Walk through the tree; return the largest bound of a leaf."""
    tree = c.leaves
    count = len(tree.unit)
    x = matrix.loadings
    require(x.shape == (matrix.units,) and np.isfinite(x).all() and (x > 0).all(), "The loadings are not positive.")
    available = np.unique(matrix.unit_of[matrix.allowed])
    forced = tuple(np.unique(matrix.unit_of[list(c.include)])) if c.include else ()
    largest, seen = -np.inf, 0
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
        found = _leaf_bound(matrix, tree, node, np.array(chosen, dtype=int), free)
        _same(float(tree.bound[node]), found, "The bound of a leaf is {found:.10g}, not the claimed {claimed:.10g}.")
        largest = max(largest, float(tree.bound[node]))
    require(seen == count, "The tree has nodes that hang nowhere.")
    return largest


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
        require(matrix.definite(), "A bound by the trace needs a positive semidefinite matrix.")
        traces = matrix.traces()
        total = float(traces[chosen].sum() + np.sort(traces[free])[len(free) - count :].sum())
        return total * (1 + ROUNDING * (len(chosen) + len(free)))
    if kind == Kind.EIGENVALUE:
        here = matrix.features(np.concatenate([chosen, free]))
        return _largest_eigenvalue(matrix.part(here, here))
    require(kind == Kind.DUAL, f"A leaf has a bound of the unknown kind {kind}.")
    require(0 <= tree.dual[node] < len(tree.points), "A leaf names a dual point that is not there.")
    return _dual(matrix, tree.points[int(tree.dual[node])], chosen, free, count)


def _largest_eigenvalue(M: Array, more: float = 0.0) -> float:
    """Return the largest eigenvalue, and what rounding may have hidden."""
    noise = ROUNDING * len(M) * (float(np.linalg.norm(M)) + more)
    return float(np.linalg.eigvalsh(M)[-1]) + noise


def _exact(matrix: _Matrix, units: Array) -> float:
    here = matrix.features(units)
    block = matrix.part(here, here)
    noise = ROUNDING * len(block) * float(np.linalg.norm(block))
    if not matrix.nonnegative:
        return float(np.linalg.eigvalsh(block)[-1]) + noise
    return (nonnegative_value(block)[0] if len(here) <= EXACT_NONNEGATIVE else nonnegative_bound(block)) + noise


def _enumerated(matrix: _Matrix, chosen: Array, free: Array, count: int) -> float:
    require(matrix.single and not matrix.nonnegative, "Only supports of single features can be enumerated.")
    require(comb(len(free), count) <= MANY, "A leaf has too many supports to be enumerated.")
    live = np.concatenate([chosen, free])
    S = matrix.part(live, live)
    largest = -np.inf
    for more in combinations(range(len(chosen), len(live)), count):
        at = [*range(len(chosen)), *more]
        largest = max(largest, float(np.linalg.eigvalsh(S[np.ix_(at, at)])[-1]))
    return largest + ROUNDING * len(S) * float(np.linalg.norm(S))


def _rows(matrix: _Matrix, chosen: Array, free: Array) -> float:
    sums = matrix.rows()
    live = np.concatenate([chosen, free])
    inside = matrix.norms(chosen)[live] if len(chosen) else np.zeros((len(live), 0))
    own = np.zeros(len(live), dtype=bool)
    own[: len(chosen)] = True
    for i in range(len(chosen)):
        inside[i, i] = 0.0
    left = matrix.k - 1 - len(chosen) + own
    totals = np.where(left >= 0, sums[live, np.maximum(left, 0)] + inside.sum(axis=1), -np.inf)
    return float(totals.max()) * (1 + ROUNDING * matrix.p)


def _dual(matrix: _Matrix, point: tuple[Array, Array, Array], chosen: Array, free: Array, count: int) -> float:
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
    D = _unit_blocks(S, owner, len(live))
    cost, moved = a * a, a * a.T
    if matrix.nonnegative and matrix.single:  # entries below zero may be raised at no cost
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
    return _largest_eigenvalue(M, float(np.abs(b).sum())) + ends


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
