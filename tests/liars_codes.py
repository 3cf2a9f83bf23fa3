"""Sparse codes on the liars' bench (tests/liars.py): dictionaries made to make the gap of a code lie.

A code a of a row x by atoms D states a duality gap: by no more than this is 1/2 |x - a D|^2 + h(a) above its minimum,
as a share of 1/2 |x|^2. The judge has the objective in long double, from (x, D, a) alone, and climbs down from a by a
solver of its own. What it gains must not be more than was stated. Some answers are spoilt before they are measured: the
gap is about what it is given, not about what a solver would have returned.
"""

import functools
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse

from liars_parts import FORMS, drawn

TOL = 1e-6  # of the gaps that hold
EPS = float(np.finfo(float).eps)
FORM_SHARES = {"array": 0.6, "columns": 0.05, "float32": 0.2, "shards": 0.1, "dask": 0.05}
ORDINARY_NORMS = (1e-3, 1e3)  # of atoms, relative to one another
ORDINARY_COHERENCE = 0.999  # the largest |cosine| of two atoms
ORDINARY_ALPHA = (1e-4, 1.0)  # of the least weight at which all codes are zero
# In float32 a code's rounding moves slopes by 2^-24 of |x| |d|, and the dual point by this as a share of the weight.
ORDINARY_ALPHA_FLOAT32, ORDINARY_SPREAD_FLOAT32 = (3e-2, 1.0), 10.0


# --- the penalties, as the judge has them ---------------------------------------------------------


@dataclass
class Penalty:
    """h(a) = sum_k bound_k |a_k| + l2/2 |a|^2, or sum_g bound_g |a_g|; a >= 0 if asked for."""

    bounds: np.ndarray  # (K,), or with groups (g,)
    l2: float = 0.0
    nonnegative: bool = False
    groups: list | None = None

    def value(self, a):
        a = a.astype(np.longdouble)
        if self.nonnegative and np.any(a < 0):
            return np.longdouble(np.inf)
        bounds = self.bounds.astype(np.longdouble)
        if self.groups is not None:
            sizes = np.array([np.sqrt((a[group] ** 2).sum()) for group in self.groups])
        else:
            sizes = np.abs(a)
        return (bounds * sizes).sum() + np.longdouble(self.l2) / 2 * (a * a).sum()

    def prox(self, b, step):
        b = np.maximum(b, 0) if self.nonnegative else b.copy()
        if self.groups is None:
            b = np.sign(b) * np.maximum(np.abs(b) - step * self.bounds, 0)
        else:
            for group, bound in zip(self.groups, self.bounds):
                size = np.sqrt((b[group] ** 2).sum())
                b[group] *= max(0.0, 1 - step * bound / size) if size > 0 else 0.0
        return b / (1 + step * self.l2)


def objective(x, D, a, penalty):
    """1/2 |x - a D|^2 + h(a) in long double; cells of x that are NaN are left out."""
    seen = np.isfinite(x)
    x, D = x[seen].astype(np.longdouble), D[:, seen].astype(np.longdouble)
    residual = x - (a.astype(np.longdouble)[:, None] * D).sum(axis=0)
    return (residual * residual).sum() / 2 + penalty.value(a)


def dual_bound(x, D, a, penalty):
    """A number no larger than the minimum, in long double: of the residual made feasible; -inf where it cannot be.

    With l2 > 0 any theta will do: x.theta - |theta|^2/2 - sum (|d_k.theta| - bound_k)_+^2 / (2 l2).
    """
    seen = np.isfinite(x)
    x, D = x[seen].astype(np.longdouble), D[:, seen].astype(np.longdouble)
    theta = x - (a.astype(np.longdouble)[:, None] * D).sum(axis=0)
    bounds = penalty.bounds.astype(np.longdouble)

    def excess(theta):
        c = (D * theta).sum(axis=1)
        c = np.maximum(c, 0) if penalty.nonnegative else c
        if penalty.groups is not None:
            return np.array([np.sqrt((c[group] ** 2).sum()) for group in penalty.groups])
        return np.abs(c)

    if penalty.l2 > 0 and penalty.groups is None:
        over = np.maximum(excess(theta) - bounds, 0)
        return (x * theta).sum() - (theta * theta).sum() / 2 - (over * over).sum() / (2 * np.longdouble(penalty.l2))
    sizes, square = excess(theta), (theta * theta).sum()
    if np.any((sizes > 0) & (bounds == 0)):
        return np.longdouble(-np.inf)
    limit = min([np.longdouble(np.inf), *(bounds[sizes > 0] / sizes[sizes > 0])])
    scale = min(limit, (x * theta).sum() / square) if square > 0 else np.longdouble(0)
    scale = max(scale, np.longdouble(0))
    return scale * (x * theta).sum() - scale * scale * square / 2


# --- a solver of the judge's own ------------------------------------------------------------------


def climbed(x, D, a, penalty, steps=1500):
    """The least objective found on the way down from a: accelerated proximal steps, then an exact solve on the support.

    In units in which atoms have norm 1, but for groups, whose norms would not be the same there.
    """
    seen = np.isfinite(x)
    D64, x64 = D[:, seen].astype(float), x[seen].astype(float)
    norms = np.linalg.norm(D64, axis=1)
    unit = np.where(norms > 0, norms, 1.0) if penalty.groups is None else np.ones(len(D))
    used = norms > 0
    U = D64 / unit[:, None]
    scaled = penalty
    if penalty.groups is None:
        scaled = _Scaled(penalty.bounds / unit, penalty.l2 / unit**2, penalty.nonnegative)
    G, c = U @ U.T, U @ x64
    largest = float(np.linalg.eigvalsh(G)[-1]) * 1.0001
    b = np.where(used, a.astype(float) * unit, 0.0)
    best = min(objective(x, D, a, penalty), objective(x, D, b / unit, penalty))
    if not largest > 0:
        return min(best, objective(x, D, 0 * b, penalty))
    v, momentum = b, 1.0
    for step in range(steps):
        ahead = scaled.prox(v - (G @ v - c) / largest, 1 / largest)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if (v - ahead) @ (ahead - b) > 0:
            following = momentum = 1.0
        settled = np.abs(ahead - b).max() <= EPS * np.abs(ahead).max()
        b, v, momentum = ahead, ahead + (momentum - 1) / following * (ahead - b), following
        if settled or step % 300 == 299:
            best = min(best, objective(x, D, b / unit, penalty))
            if penalty.groups is None:
                best = min(best, _on_support(x, D, b, unit, G, c, scaled, penalty))
        if settled:
            break
    return best


@dataclass
class _Scaled:
    """The penalty of codes times norms: each entry has an l2 of its own."""

    bounds: np.ndarray
    l2: np.ndarray
    nonnegative: bool

    def prox(self, b, step):
        b = np.maximum(b, 0) if self.nonnegative else b
        with np.errstate(over="ignore"):
            return np.sign(b) * np.maximum(np.abs(b) - step * self.bounds, 0) / (1 + step * self.l2)


def _on_support(x, D, b, unit, G, c, scaled, penalty):
    """The objective of the least-squares solution with the support and the signs of b, where it keeps the signs."""
    support = np.flatnonzero(b)
    if not len(support):
        return objective(x, D, 0 * b, penalty)
    signs = np.sign(b[support])
    M = G[np.ix_(support, support)] + np.diag(scaled.l2[support])
    found = np.zeros_like(b)
    found[support] = np.linalg.lstsq(M, c[support] - scaled.bounds[support] * signs, rcond=None)[0]
    if penalty.nonnegative and np.any(found < 0):
        return np.longdouble(np.inf)
    return objective(x, D, found / unit, penalty)


# --- the judge ------------------------------------------------------------------------------------


@dataclass
class CodingProblem:
    """Rows, atoms and a penalty; the form in which the rows are given; and what is done to the codes, if anything."""

    family: str
    seed: int
    X: np.ndarray  # (m, p), NaN = missing
    D: np.ndarray  # (K, p)
    how: dict = field(default_factory=dict)
    form: str = "array"
    spoil: str = ""
    solver: str = "codes"

    @property
    def name(self):
        words = {key: value if np.isscalar(value) else "..." for key, value in self.how.items()}
        how = ", ".join(f"{key}={value!r}" for key, value in words.items())
        spoilt = f", {self.spoil}" if self.spoil else ""
        return f"{self.form} {self.X.shape[0]}x{self.X.shape[1]}, {len(self.D)} atoms, {how}{spoilt}"

    @cached_property
    def penalty(self):
        K, alpha = len(self.D), self.how.get("alpha", 1.0)
        groups = self.how.get("groups")
        if groups is not None:
            return Penalty(alpha * np.sqrt([float(len(group)) for group in groups]), groups=groups)
        weights = np.ones(K) if self.how.get("weights") is None else self.how["weights"]
        return Penalty(alpha * weights, self.how.get("l2", 0.0), self.how.get("positive", False))

    @cached_property
    def ordinary(self):
        """No missing cells, atoms of like norms that are told apart, a weight at which some codes are not zero."""
        norms = np.linalg.norm(self.D.astype(float), axis=1)
        if self.spoil or np.isnan(self.X).any() or not norms.min() > 0:
            return False
        single = self.X.dtype == np.float32
        spread, alphas = ORDINARY_NORMS[1] / ORDINARY_NORMS[0], ORDINARY_ALPHA
        if single:
            spread, alphas = ORDINARY_SPREAD_FLOAT32, ORDINARY_ALPHA_FLOAT32
        if not norms.max() / norms.min() < spread:
            return False
        cosines = np.abs((self.D / norms[:, None]) @ (self.D / norms[:, None]).T) - np.eye(len(self.D))
        least = np.abs(self.X.astype(float) @ self.D.T.astype(float)).max()
        share = self.how.get("alpha", 1.0) / max(least, np.finfo(float).tiny)
        weights = self.how.get("weights")
        return bool(
            cosines.max() < ORDINARY_COHERENCE
            and alphas[0] < share < alphas[1]
            and (weights is None or (not single and weights.min() > 1e-3 and weights.max() < 1e3))
            and 1e-3 < np.abs(self.X).max() < 1e3
        )

    def fit(self):
        """The codes and what is stated of them."""
        from princomp import sparse_encode

        given = FORMS[self.form](self.X, np.random.default_rng(self.seed))
        codes = sparse_encode(given, self.D, **self.arguments())
        codes = codes.compute() if self.form == "dask" else codes
        codes = spoilt(scipy.sparse.csr_array(codes).toarray(), self.spoil, np.random.default_rng(self.seed))
        return Coded(codes, self.stated(codes))

    def arguments(self):
        from princomp import penalties

        if "groups" in self.how:
            return {"penalty": penalties.Groups(self.how["alpha"], self.how["groups"])}
        l2 = {"penalty": "elastic-net"} if self.how.get("l2") else {}
        return l2 | self.how

    def stated(self, codes):
        """The gap of each row, as princomp measures it of codes from anywhere."""
        from princomp.certificates import coding_gaps, penalty_gaps

        if "groups" in self.how:
            return np.asarray(penalty_gaps(self.X, self.D, codes, self.arguments()["penalty"]), float)
        words = {"positive": "nonnegative"}
        how = {words.get(name, name): value for name, value in self.how.items()}
        return np.asarray(coding_gaps(self.X, self.D, scipy.sparse.csr_array(codes), **how), float)

    def holds(self, coded):
        return bool(np.all(coded.gaps <= TOL))

    def claims(self, coded):
        """Any finite gap claims something."""
        return bool(np.any(np.isfinite(coded.gaps)))

    def vague(self, coded):
        return False

    def faults(self, coded):
        return coding_faults(self, coded)


@dataclass
class Coded:
    codes: np.ndarray  # (m, K)
    gaps: np.ndarray  # (m,)


def coding_faults(posed, coded):
    """What is wrong with codes and stated gaps, as sentences; none if it is right."""
    codes, gaps = coded.codes, coded.gaps
    if codes.shape != (len(posed.X), len(posed.D)) or gaps.shape != (len(posed.X),):
        return [f"codes {codes.shape} and gaps {gaps.shape} of {len(posed.X)} rows and {len(posed.D)} atoms"]
    if not np.isfinite(codes).all():
        return ["codes that are not finite"]
    found = []
    for i, (x, a, gap) in enumerate(zip(posed.X, codes, gaps)):
        found += [f"row {i}: {fault}" for fault in row_faults(x, posed.D, a, float(gap), posed.penalty)]
    return found


def row_faults(x, D, a, gap, penalty):
    """Of one row. What float64 cannot know of the objective is held against no one."""
    if np.isnan(gap):
        return ["the gap is NaN"]
    if gap < 0:
        return [f"a gap of {gap:.1e}"]
    if not np.isfinite(gap):
        return []  # nothing is claimed
    if penalty.nonnegative and np.any(a < 0):
        return [f"a code of {a.min():.1e} where none may be negative"]
    seen = np.isfinite(x)
    square = float((x[seen].astype(np.longdouble) ** 2).sum()) / 2
    worth = objective(x, D, a, penalty)
    if square == 0:
        return [] if worth == 0 else [f"a row without anything has a code worth {float(worth):.1e}"]
    sizes = float((np.abs(a.astype(float)) * np.linalg.norm(D[:, seen].astype(float), axis=1)).sum())
    doubt = 1e-12 + 16 * EPS * ((1 + sizes / np.sqrt(2 * square)) ** 2 + gap)
    if (worth - dual_bound(x, D, a, penalty)) / square <= gap + doubt:
        return []
    gained = float((worth - climbed(x, D, a, penalty)) / square)
    if gained > gap + doubt:
        return [f"a gap of {gap:.2e} is stated, {gained:.2e} was gained"]
    return []


def spoilt(codes, spoil, rng):
    """Codes as no solver should return them."""
    codes = codes.copy()
    if spoil == "scaled":
        codes *= codes.dtype.type(1 + 10.0 ** rng.uniform(-6, -1))
    elif spoil == "one entry dropped":
        for row in codes:
            if row.any():
                row[rng.choice(np.flatnonzero(row))] = 0
    elif spoil == "one entry too many":
        for row in codes:
            row[rng.integers(len(row))] += 10.0 ** rng.uniform(-4, 0)
    elif spoil == "nothing":
        codes[:] = 0
    elif spoil == "anything":
        codes[:] = np.abs(rng.standard_normal(codes.shape)) * (rng.random(codes.shape) < 0.3)
    return codes


# --- problems -------------------------------------------------------------------------------------
# Each makes rows X and atoms D, and, where it matters, what is asked of them.

SPOILS = {
    "": 0.75,
    "scaled": 0.05,
    "one entry dropped": 0.05,
    "one entry too many": 0.05,
    "nothing": 0.05,
    "anything": 0.05,
}


def _atoms(rng, K, p):
    D = rng.standard_normal((K, p))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def _rows(rng, D, m=None):
    """Rows of few atoms, with noise."""
    m = m or int(rng.integers(1, 7))
    codes = rng.standard_normal((m, len(D))) * (rng.random((m, len(D))) < min(1.0, 4 / len(D)))
    return codes @ D + 10.0 ** rng.uniform(-3, 0) * rng.standard_normal((m, D.shape[1]))


def _sizes(rng):
    return int(rng.integers(1, 40)), int(rng.integers(2, 25))


def plain(rng):
    D = _atoms(rng, *_sizes(rng))
    return {"X": _rows(rng, D), "D": D}


def twins(rng):
    """Atoms that come twice: the same, turned around, or longer."""
    D = _atoms(rng, *_sizes(rng))
    again = D[rng.integers(0, len(D), int(rng.integers(1, 12)))]
    D = np.vstack([D, again * rng.choice([1.0, -1.0, 2.0, 0.1], (len(again), 1))])
    return {"X": _rows(rng, D), "D": rng.permutation(D)}


def near_twins(rng):
    D = _atoms(rng, *_sizes(rng))
    again = D[rng.integers(0, len(D), int(rng.integers(1, 12)))]
    D = np.vstack([D, again + 10.0 ** -rng.uniform(2, 14) * rng.standard_normal(again.shape)])
    return {"X": _rows(rng, D), "D": rng.permutation(D)}


def zero_atoms(rng):
    D = _atoms(rng, *_sizes(rng))
    X = _rows(rng, D)
    D[rng.random(len(D)) < rng.choice([0.2, 0.6, 1.0])] = 0
    return {"X": X, "D": D}


def norms(rng):
    """Atoms of tiny and of huge norms, side by side."""
    D = _atoms(rng, *_sizes(rng))
    X = _rows(rng, D)
    return {"X": X, "D": D * 10.0 ** (rng.choice([1, 3, 8]) * rng.uniform(-1, 1, (len(D), 1)))}


def many_atoms(rng):
    D = _atoms(rng, int(rng.integers(60, 250)), int(rng.integers(2, 9)))
    return {"X": _rows(rng, D), "D": D}


def one_column(rng):
    D = rng.standard_normal((int(rng.integers(1, 20)), 1)) * 10.0 ** rng.uniform(-2, 2)
    return {"X": rng.standard_normal((int(rng.integers(1, 7)), 1)), "D": D}


def low_rank(rng):
    """Atoms within a plane or so; rows within, or not."""
    K, p = _sizes(rng)
    rank = int(rng.integers(1, 4))
    D = rng.standard_normal((K, rank)) @ rng.standard_normal((rank, p))
    X = _rows(rng, D)
    return {"X": X - rng.choice([0, 1]) * rng.standard_normal(p), "D": D}


def empty_rows(rng):
    """Rows of zeros, and rows that no atom sees, among others."""
    D = _atoms(rng, int(rng.integers(1, 15)), int(rng.integers(4, 25)))
    D[:, :2] = 0
    X = _rows(rng, D, 6)
    X[rng.random(6) < 0.5] = 0
    X[0, 2:] = 0
    return {"X": X, "D": D}


def offsets(rng):
    """Rows far from zero, with or without an atom for it."""
    D = _atoms(rng, *_sizes(rng))
    X = _rows(rng, D) + 10.0 ** rng.uniform(2, 9)
    if rng.random() < 0.6:
        D[0] = 1 / np.sqrt(D.shape[1])
    if rng.random() < 0.2:
        D = D + 10.0 ** rng.uniform(0, 5)
    return {"X": X, "D": D}


def edges(rng):
    """Weights of 0, next to 0, at the least that makes all codes zero, to the last digit, and beyond."""
    D = _atoms(rng, *_sizes(rng))
    X = _rows(rng, D)
    least = np.abs(X @ D.T).max()
    alpha = float(rng.choice([0.0, 1e-12, 1e-8, 1 - 1e-9, 1 - EPS, 1.0, 1 + EPS, 10.0, 1e6])) * least
    return {"X": X, "D": D, "how": {"alpha": alpha}}


def weights(rng):
    D = _atoms(rng, *_sizes(rng))
    weight = 10.0 ** rng.uniform(-3, 3, len(D))
    weight[rng.random(len(D)) < rng.choice([0.0, 0.3])] = 0
    return {"X": _rows(rng, D), "D": D, "how": {"alpha": 10.0 ** rng.uniform(-3, 0), "weights": weight}}


def units(rng):
    """All in units in which squares come near the ends of what there is."""
    D = _atoms(rng, *_sizes(rng))
    X, unit = _rows(rng, D), 10.0 ** float(rng.choice([-140, -100, -20, 20, 100, 140]))
    alpha = float(np.abs(X @ D.T).max() * 10.0 ** rng.uniform(-3, 0))
    return {"X": X * unit, "D": D, "how": {"alpha": alpha * unit}, "form": "array"}


def gaps(rng):
    """Cells that are missing: some, nearly all of a row, all of it."""
    D = _atoms(rng, int(rng.integers(1, 40)), int(rng.integers(3, 25)))
    X = _rows(rng, D, 6)
    X[rng.random(X.shape) < rng.choice([0.1, 0.5, 0.9])] = np.nan
    X[0] = np.nan
    return {"X": X, "D": D, "form": str(rng.choice(["array", "float32", "shards"]))}


def groups(rng):
    D = _atoms(rng, *_sizes(rng))
    label = rng.integers(0, max(len(D) // 3, 1), len(D))
    parts = [np.flatnonzero(label == name).tolist() for name in np.unique(label)]
    X = _rows(rng, D)
    return {
        "X": X,
        "D": D,
        "how": {"alpha": float(np.abs(X @ D.T).max() * 10.0 ** rng.uniform(-2, 0)), "groups": parts},
    }


MAKERS = (
    plain,
    twins,
    near_twins,
    zero_atoms,
    norms,
    many_atoms,
    one_column,
    low_rank,
    empty_rows,
    offsets,
    edges,
    weights,
    units,
    gaps,
    groups,
)


def _problem(make, family, seed, rng):
    made = make(rng)
    X, D, how = made["X"], made["D"], dict(made.get("how", {}))
    form = made.get("form") or drawn(rng, FORM_SHARES)
    if "alpha" not in how:
        least = np.abs(np.nan_to_num(X) @ D.T).max()
        how["alpha"] = float(least * 10.0 ** rng.uniform(-4, 0)) if least > 0 else 1.0
    if "groups" not in how:
        how["positive"] = bool(rng.random() < 0.3)
        if rng.random() < 0.25:
            how["l2"] = float(10.0 ** rng.uniform(-4, 1) * np.median((D**2).sum(axis=1)))
    if form == "float32":
        X, D = X.astype(np.float32), D.astype(np.float32)
    return CodingProblem(family, seed, X, D, how, form, drawn(rng, SPOILS))


FAMILIES = {f"codes {make.__name__.replace('_', ' ')}": functools.partial(_problem, make) for make in MAKERS}
