"""Exchange of features, by which sparse components ascend until no exchange helps (Li & Xie, INFORMS J. Comput. 2024).

A component on the features I has at best the variance lambda = lambda_max(A_II), A the deflated S. With v the leading
eigenvector of A_II, N the sum of u u' / (lambda - lambda_u) over the others, s = A_Ij and a = v's, the features I
without i, but with j, have more variance if and only if

    A_jj - lambda + s'Ns - 2 a (Ns)_i / v_i + a^2 N_ii / v_i^2 > 0,

which is the secular equation of the bordered matrix at lambda. So two products judge all exchanges exactly; of those
that help, the one is made that is best by the two-dimensional problem in v without i and the unit vector of j.

Where units are groups of features, or loadings may not be negative, there is no such test: there the exchanges that
are best by the two-dimensional problem are tried in full, best first, until one helps. Loadings that may not be
negative have local maxima even on given features: they are looked for from each feature, too.
"""

from dataclasses import dataclass

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.solvers.deflation import Deflated

HELPS = 1e-10  # of the variance: an exchange that gains less is left
SMALL = 1e-8  # a loading below this is judged as if it were this
MOST_COMPILED = 64  # features of a component: the compiled search takes 4 ms for BLAS's 6 (of 400), for 128 16 for 15
TRIED = 64  # exchanges tried in full, where there is no exact test: 4 and 500 found as much (40 to 150 features)
# Two components of 6 to 10 features, 40 x 26 to 200 x 100, had the same variance with 3 and 30 steps, 10 turns, 8 and
# 500 starts, 1 and 16 of them followed up; 3 steps took two thirds of the time, 30 half as much again.
NONNEGATIVE_STEPS, NONNEGATIVE_TURNS = 10, 100
NONNEGATIVE_STARTS, NONNEGATIVE_POLISHED = 64, 4  # points from which local maxima are looked for; those followed up


@dataclass(frozen=True)
class Units:
    """What is counted: features, or groups of them."""

    of: Array | None  # (p,) of int, the unit of each feature; None if each is its own
    forced: Array  # (units,) of bool, those that must be chosen
    nonnegative: bool = False  # whether loadings may not be negative

    @property
    def simple(self) -> bool:
        """Whether units are features and loadings have any sign."""
        return self.of is None and not self.nonnegative

    def total(self, numbers: Array) -> Array:
        """Return sums over the features of each unit, (m, units), of numbers (m, p)."""
        if self.of is None:
            return numbers
        sums = np.zeros((len(self.forced), len(numbers)))
        np.add.at(sums, self.of, numbers.T)
        return sums.T

    def features(self, chosen: Array) -> Array:
        """Return the features, (..., p), of chosen units, (..., units), both as masks."""
        return chosen if self.of is None else chosen[..., self.of]

    def truncated(self, Y: Array, count: int) -> tuple[Array, Array]:
        """Return (chosen, V): for each row of Y (m, p) the ``count`` largest units, and Y there, of unit length."""
        Y = np.maximum(Y, 0.0) if self.nonnegative else Y
        sizes = np.abs(Y) if self.of is None else self.total(Y**2)
        sizes = np.where(self.forced, np.inf, sizes)
        largest = np.argpartition(sizes, -count, axis=1)[:, -count:]
        chosen = np.zeros(sizes.shape, dtype=bool)
        np.put_along_axis(chosen, largest, True, axis=1)
        V = np.where(self.features(chosen), Y, 0.0)
        return chosen, _unit_rows(V)


def _unit_rows(V: Array) -> Array:
    """Return V with rows of length 1, zero rows left alone."""
    lengths = np.linalg.norm(V, axis=1, keepdims=True)
    return np.divide(V, lengths, out=np.zeros_like(V), where=lengths > 0)


def improved(A: Deflated, units: Units, chosen: Array, rounds: int) -> tuple[Array, Array, float, bool, int]:
    """Return (chosen, v, v'Av, settled, made): a component on chosen units (mask) after up to ``rounds`` exchanges.

    ``settled`` tells that no exchange helps, ``made`` how many did.
    """
    p = len(A.diagonal)
    if not units.simple:
        return _tried(A, units, chosen, rounds)
    which = np.flatnonzero(chosen)
    small = A.matrix is not None and len(which) <= MOST_COMPILED
    compiled = loops("cardinality_search") if small else None
    if compiled is not None:
        how = {"rounds": rounds, "helps": HELPS, "small": SMALL}
        value, which, loadings, settled, made = compiled.improve(A.matrix, which, units.forced, **how)
    else:
        value, which, loadings, settled, made = exchanged(A, units, which, rounds)
    mask, v = np.zeros(p, dtype=bool), np.zeros(p)
    mask[which], v[which] = True, loadings
    return mask, v, value, settled, made


def exchanged(A: Deflated, units: Units, which: Array, rounds: int) -> tuple[float, Array, Array, bool, int]:
    """Return (value, features, loadings, settled, made) after up to ``rounds`` exchanges: the compiled one's twin."""
    value, loadings, before, G = -np.inf, np.zeros(len(which)), which, np.zeros((0, 0))
    for turn in range(rounds + 1):
        if turn == rounds and turn == 0:
            values, vectors = _eigh(A.part(which, which))
            return float(values[-1]), which, vectors[:, -1], False, 0
        G = _rows(A, which, before, G)  # (k, p)
        values, vectors = _eigh(G[:, which])
        if not values[-1] > value:  # rounding: the exchange did not help
            return value, before, loadings, True, turn - 1
        value, loadings = float(values[-1]), vectors[:, -1]
        if turn == rounds:
            break
        reach = _reach(A, units, which, G, values, vectors)
        out, into = np.unravel_index(np.argmax(reach), reach.shape)
        if not np.isfinite(reach[out, into]):
            return value, which, loadings, True, turn
        before, which = which, which.copy()
        which[out] = into
    return value, which, loadings, False, rounds


def _rows(A: Deflated, which: Array, before: Array, G: Array) -> Array:
    """Return rows of A, of which those that are as before are at hand."""
    if len(G) == 0 or A.matrix is not None:
        return A.rows(which)
    new = which != before
    G[new] = A.rows(which[new])
    return G


def _reach(A: Deflated, units: Units, which: Array, G: Array, values: Array, vectors: Array) -> Array:
    """Return (k, p): for each exchange that helps, the value that it reaches at least; else minus infinity."""
    top, v, rest = values[-1], vectors[:, -1:], vectors[:, :-1]
    N = (rest / np.maximum(top - values[:-1], 1e-14 * abs(top) + 1e-300)) @ rest.T
    NG, a = N @ G, v.T @ G
    share = a / np.where(np.abs(v) < SMALL, np.copysign(SMALL, v), v)
    test = A.diagonal - top + np.einsum("kp,kp->p", NG, G) + share * (share * np.diag(N)[:, None] - 2 * NG)
    without, across = np.zeros((1, 1)), np.zeros((1, 1))
    if len(which) > 1:
        left = np.maximum(1 - v**2, 1e-300)
        without = (top * (1 - 2 * v**2) + v**2 * A.diagonal[which][:, None]) / left
        across = (a - v * G) ** 2 / left
    reach = np.where(test > HELPS * abs(top), two_dimensional(without, A.diagonal, across), -np.inf)
    reach[:, which] = -np.inf
    reach[units.forced[which]] = -np.inf
    return reach


def two_dimensional(a: Array, b: Array, c_squared: Array) -> Array:
    """Return the larger eigenvalue of [[a, c], [c, b]]."""
    half = (a - b) / 2
    return a - half + np.sqrt(half**2 + c_squared)


def _eigh(B: Array) -> tuple[Array, Array]:
    return np.linalg.eigh((B + B.T) / 2)


# Groups, and loadings that may not be negative


def _tried(A: Deflated, units: Units, chosen: Array, rounds: int) -> tuple[Array, Array, float, bool, int]:
    v, value = _best(A, units, chosen, None)
    for made in range(rounds):
        found = _helpful(A, units, chosen, v, value)
        if found is None:
            again, height = _best(A, units, chosen, None)  # from everywhere, not from v alone
            if height <= value + HELPS * abs(value):
                return chosen, v, value, True, made
            found = chosen, again, height
        chosen, v, value = found
    return chosen, v, value, False, rounds


def _helpful(A: Deflated, units: Units, chosen: Array, v: Array, value: float) -> tuple[Array, Array, float] | None:
    """Return (chosen, v, value) after an exchange that helps, or None."""
    removable = np.flatnonzero(chosen & ~units.forced)
    free = np.flatnonzero(~chosen)
    if not len(removable) or not len(free):
        return None
    masks = np.repeat(chosen[None], len(removable), axis=0)
    masks[np.arange(len(removable)), removable] = False
    W = _unit_rows(np.where(units.features(masks), v, 0.0))  # v without each of them
    images = A.times(W)
    heights = np.einsum("ij,ij->i", W, images)
    pull = np.maximum(images, 0.0) if units.nonnegative else images
    own = units.total(A.diagonal[None])[0] / units.total(np.ones((1, len(v))))[0]
    reach = two_dimensional(heights[:, None], own, units.total(pull**2))[:, free]
    for flat in np.argsort(-reach, axis=None, kind="stable")[:TRIED]:
        out, into = divmod(int(flat), len(free))
        mask = masks[out].copy()
        mask[free[into]] = True
        begin = W[out] + units.features(mask & ~masks[out]) * pull[out] / max(float(np.abs(pull[out]).max()), 1e-300)
        loadings, height = _best(A, units, mask, begin)
        if height > value + HELPS * abs(value):
            return mask, loadings, height
    return None


def _best(A: Deflated, units: Units, chosen: Array, begin: Array | None) -> tuple[Array, float]:
    """Return the best loadings on chosen units, (p,), and their variance; nonnegative ones near ``begin``, if given."""
    inside = np.flatnonzero(units.features(chosen))
    B = A.rows(inside)[:, inside]
    if units.nonnegative:
        shifted = B + A.shift * np.eye(len(B))
        loadings = nonnegative_from_everywhere(shifted) if begin is None else _nonnegative(shifted, begin[inside])
    else:
        loadings = _eigh(B)[1][:, -1]
    v = np.zeros(len(A.diagonal))
    v[inside] = loadings
    return v, float(loadings @ B @ loadings)


def nonnegative_from_everywhere(B: Array) -> Array:
    """Return x >= 0, |x| = 1, of large x'Bx: the best of the local maxima near features, and near eigenvectors."""
    lead = _eigh(B)[1][:, -1]
    columns = np.argsort(-np.diag(B), kind="stable")[:NONNEGATIVE_STARTS]
    starts = np.vstack([B[columns], np.eye(len(B))[columns], lead, -lead, np.ones(len(B))])
    X = np.maximum(starts, 0.0)
    for _ in range(NONNEGATIVE_STEPS):
        X = np.maximum(_unit_rows(X) @ B, 0.0)
    heights = np.linalg.norm(X, axis=1)
    ends = [_nonnegative(B, X[i]) for i in np.argsort(-heights, kind="stable")[:NONNEGATIVE_POLISHED]]
    return max(ends, key=lambda x: float(x @ B @ x))


def _nonnegative(B: Array, x: Array) -> Array:
    """Return x >= 0, |x| = 1, at which no small step raises x'Bx, B positive semidefinite.

    Where x > 0 it is the leading eigenvector of that block of B; power steps, cut off at zero, find out where.
    """
    x = np.maximum(x, 0.0) if (x > 0).any() else np.eye(len(B))[int(np.argmax(np.diag(B)))]
    x = x / np.linalg.norm(x)
    for _ in range(NONNEGATIVE_TURNS):
        for _ in range(NONNEGATIVE_STEPS):
            y = np.maximum(B @ x, 0.0)
            length = float(np.linalg.norm(y))
            if length == 0:
                return x
            x = y / length
        x = _leading_where_positive(B, x)
        used, slope = x > 0, B @ x
        if (slope[~used] <= 1e-9 * float(x @ slope)).all():
            return x
    return x


def _leading_where_positive(B: Array, x: Array) -> Array:
    """Return x >= 0, |x| = 1, the leading eigenvector of B where it is positive, at least as high as x >= 0.

    On the way from x to the leading eigenvector x'Bx rises: x goes there until an entry is zero, and that one stays so.
    """
    used = np.flatnonzero(x > 1e-9)
    inside = x[used] / np.linalg.norm(x[used])
    while True:
        lead = _eigh(B[np.ix_(used, used)])[1][:, -1]
        lead = lead if float(lead @ inside) >= 0 else -lead
        if (lead >= -1e-12).all():
            break
        falling = np.flatnonzero(lead < 0)
        shares = inside[falling] / (inside[falling] - lead[falling])  # of the way at which entries are zero
        inside = inside + shares.min() * (lead - inside)
        inside[falling[int(np.argmin(shares))]] = 0.0
        kept = inside > 0
        used, inside = used[kept], inside[kept] / np.linalg.norm(inside[kept])
    reached = np.zeros_like(x)
    reached[used] = np.maximum(lead, 0.0)
    return reached / float(np.linalg.norm(reached))
