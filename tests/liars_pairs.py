"""Rank-one pairs on the liars' bench (tests/liars.py): tables made to make the certificate of a dictionary lie.

A certificate that holds says: for its v each u is the best there is, and for its u each v, to within the residual that
is stated. The judge has both steps in long double, from the data and the pairs alone, the data rewritten at each
deflation (tests/slow_pairs.py). Which of several entries that tie is kept is nobody's fault.
"""

import functools
from dataclasses import dataclass, field

import numpy as np

import slow_pairs
from liars_parts import FLOOR_LIMIT, FORMS, drawn

TOL = 1e-6
UNIT = 1e-8  # by which |u| may differ from 1, but for its rounding
NUMBERS = 1e-6  # relative error of shares, and of what is left
FORM_SHARES = {"array": 0.45, "columns": 0.05, "float32": 0.2, "csr": 0.15, "shards": 0.1, "dask": 0.05}
STEPS = 1000  # of a pair; some problems have fewer, so that fits end early


# --- the judge ------------------------------------------------------------------------------------


@dataclass
class PairsProblem:
    """A table, what is asked of it, and the form in which it is given."""

    family: str
    seed: int
    X: np.ndarray  # (n, p), dense, as stored
    k: int
    how: dict = field(default_factory=dict)
    form: str = "array"
    ordinary: bool = False

    @property
    def solver(self):
        return "swept" if self.how.get("refine") else "greedy"

    @property
    def name(self):
        how = ", ".join(f"{key}={value!r}" for key, value in self.how.items())
        return f"{self.form} {self.X.shape[0]}x{self.X.shape[1]}, RankOneDictionary({self.k}, {how})"

    @property
    def nonzeros(self):
        return np.broadcast_to(self.how["nonzeros"], self.k)

    def fit(self):
        from princomp import RankOneDictionary

        given = FORMS[self.form](self.X, np.random.default_rng(self.seed))
        return RankOneDictionary(self.k, tol=TOL, random_state=self.seed, **self.how).fit(given)

    def holds(self, model):
        return bool(model.certificate_.holds)

    def claims(self, model):
        """Units, numbers of entries and shares are stated whether or not the certificate holds."""
        return True

    def vague(self, model):
        return False

    def faults(self, model):
        return pair_faults(self, model)


def pair_faults(posed, model):
    """What is wrong with fitted pairs and with what is stated of them, as sentences; none if it is right."""
    U, V = np.asarray(model.atoms_), np.asarray(model.components_)
    n, p = posed.X.shape
    if U.shape != (n, posed.k) or V.shape != (posed.k, p):
        return [f"atoms {U.shape} and components {V.shape} of {posed.k} pairs in {posed.X.shape}"]
    if not (np.isfinite(U).all() and np.isfinite(V).all()):
        return ["pairs that are not finite"]
    return form_faults(posed, U, V) + zero_faults(posed, U, V) + number_faults(posed, model) + step_faults(posed, model)


def form_faults(posed, U, V):
    """Of lengths, numbers of entries and signs."""
    lengths, there = np.sqrt((U.astype(float) ** 2).sum(axis=0)), V.any(axis=1)
    many = np.count_nonzero(V, axis=1)
    rounding = np.finfo(U.dtype).eps
    negative = bool(posed.how.get("nonnegative"))
    trials = {
        f"|u| = {lengths}": np.any(np.abs(lengths[there] - 1) > UNIT + rounding),
        "a u without a v": np.any(lengths[~there] > 0),
        f"{many} entries, not {posed.nonzeros}": np.any(many > posed.nonzeros),
        "entries that are negative": negative and np.any(V < 0),
        "the largest entry is negative": not negative and not _turned(V),
    }
    return [sentence for sentence, wrong in trials.items() if wrong]


def _turned(V):
    """Whether the entry of largest magnitude is positive; either of two that tie up to rounding will do."""
    return np.all(V.max(axis=1) >= (1 - 100 * np.finfo(V.dtype).eps) * np.abs(V).max(axis=1))


def zero_faults(posed, U, V):
    """Of pairs of zeros: they say that nothing was left, but for what a variance is not known to, either."""
    X, U, V = (a.astype(np.longdouble) for a in (posed.X, U, V))
    total, swept, found = (X * X).sum(), bool(posed.how.get("refine")), []
    for j in np.flatnonzero(~V.any(axis=1)):
        R = slow_pairs.others(X, U, V, j, swept=swept)
        left = (R * R).sum()
        if left > FLOOR_LIMIT * total:
            found.append(f"pair {j + 1} is zero, but {float(left / total):.1e} of |X|^2 was left")
    return found


def number_faults(posed, model):
    """Of the shares, and of what is left, in long double and in units in which no square is lost."""
    size = np.abs(posed.X).max(initial=0.0).astype(np.longdouble) or np.longdouble(1)
    X, V = (np.asarray(a).astype(np.longdouble) / size for a in (posed.X, model.components_))
    total = (X * X).sum() or np.longdouble(1)
    shares = (V * V).sum(axis=1) / total
    R = X - model.atoms_.astype(np.longdouble) @ V
    left = float((R * R).sum() / total)
    rounding = 8 * (posed.k + 1) * float(np.finfo(posed.X.dtype).eps)
    lost = 8 * (posed.k + 1) * float(np.finfo(float).eps)  # of |X|^2, what shares of it are sums of
    off = abs(model.residual_share_ - left)
    wrong = {
        f"shares {model.shares_}, they are {shares.astype(float)}": not np.allclose(
            model.shares_, shares.astype(float), rtol=NUMBERS + rounding, atol=lost
        ),
        f"{model.residual_share_:.9g} is left, it is {left:.9g}": not off <= NUMBERS * left + lost,
    }
    return [sentence for sentence, is_wrong in wrong.items() if is_wrong]


def doubts(posed, model):
    """(k,): what rounding of the stored pairs and of the products with them does to the steps, relative to |v|."""
    V = np.asarray(model.components_).astype(np.longdouble)
    sizes = np.sqrt((V * V).sum(axis=1))
    X = posed.X.astype(np.longdouble)
    total = np.sqrt((X * X).sum() + (sizes * sizes).sum())
    rounding = 8 * (posed.k + 2) * float(np.finfo(posed.X.dtype).eps)
    return np.array([float(rounding * total / size) if size > 0 else 0.0 for size in sizes])


def step_faults(posed, model):
    """Of a certificate: pairs that are farther from a step than is stated, and rounding explains."""
    stated = float(model.certificate_.residual)
    if np.isnan(stated) or stated < 0:
        return [f"a residual of {stated}"]
    doubt = doubts(posed, model)
    found = slow_pairs.errors(
        posed.X,
        model.atoms_,
        model.components_,
        posed.nonzeros,
        swept=bool(posed.how.get("refine")),
        nonnegative=bool(posed.how.get("nonnegative")),
        ties=1e-9 + doubt,
    )
    allowed = 1.05 * stated + doubt
    words = ("u", "v")
    return [
        f"pair {j + 1}: a residual of {stated:.2e} is stated, {word} is {found[j, i]:.2e} from its step"
        for j in range(posed.k)
        for i, word in enumerate(words)
        if not found[j, i] <= allowed[j]
    ]


# --- problems -------------------------------------------------------------------------------------
# Each makes a table X and, where it matters, what is asked of it.


def _shape(rng):
    return int(rng.integers(2, 40)), int(rng.integers(1, 30))


def _sum_of_pairs(rng, n, p, sizes, r):
    """Orthonormal u's, v's of r entries at places of their own."""
    k = len(sizes)
    U = np.linalg.qr(rng.standard_normal((n, k)))[0]
    V = np.zeros((k, p))
    for j in range(k):
        V[j, j * r : (j + 1) * r] = sizes[j] * slow_pairs.unit(rng.choice([-1, 1], r) * rng.uniform(0.5, 1.5, r))
    return U @ V


def apart(rng):
    """Pairs that nobody could take for another: ordinary."""
    k, r = int(rng.integers(1, 5)), int(rng.integers(1, 6))
    n, p = int(rng.integers(k + 5, 40)), k * r + int(rng.integers(0, 10))
    sizes = 10.0 ** rng.uniform(-1, 1) * 0.7 ** np.arange(k)
    X = _sum_of_pairs(rng, n, p, sizes, r)
    X += 0.01 * sizes[-1] / np.sqrt(n * p) * rng.standard_normal(X.shape)
    return {"X": X, "k": k, "how": {"nonzeros": r}, "ordinary": True}


def noise(rng):
    return {"X": rng.standard_normal(_shape(rng))}


def near_equal(rng):
    """Pairs whose sizes differ in late digits only, or not at all: u's turn for ever."""
    k, r = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    n, p = int(rng.integers(k + 2, 30)), k * r + int(rng.integers(0, 5))
    sizes = 1 + np.arange(k) * float(rng.choice([0, 1e-15, 1e-12, 1e-8, 1e-4]))
    X = _sum_of_pairs(rng, n, p, sizes, r)
    U, W = (np.linalg.qr(rng.standard_normal((m, m)))[0] for m in (n, p))
    return {
        "X": X if rng.random() < 0.5 else U[:, :n] @ X @ W,
        "k": k,
        "how": {"nonzeros": int(rng.integers(r, p + 1))},
    }


def ties(rng):
    """Entries of few values: many sums are the same, and which entries are kept is a toss."""
    n, p = _shape(rng)
    return {"X": rng.integers(-1, 2, (n, p)).astype(float)}


def twins(rng):
    """Columns that come again, the same or turned around."""
    X = rng.standard_normal(_shape(rng))
    again = X[:, rng.integers(0, X.shape[1], int(rng.integers(1, 10)))]
    return {"X": np.column_stack([X, again * rng.choice([1.0, -1.0], again.shape[1])])}


def near_twins(rng):
    X = rng.standard_normal(_shape(rng))
    again = X[:, rng.integers(0, X.shape[1], int(rng.integers(1, 10)))]
    return {"X": np.column_stack([X, again + 10.0 ** -rng.uniform(3, 15) * rng.standard_normal(again.shape)])}


def low_rank(rng):
    """More pairs than there is rank, to the last digit or nearly."""
    n, p = int(rng.integers(4, 30)), int(rng.integers(4, 20))
    rank = int(rng.integers(1, 4))
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    X += float(rng.choice([0, 1e-15, 1e-13, 1e-9])) * rng.standard_normal((n, p))
    return {"X": X, "k": int(min(n, p, rank + rng.integers(0, 4))), "how": {"nonzeros": int(rng.choice([p, p // 2]))}}


def units(rng):
    """In units in which squares are out of the range of numbers."""
    unit = 10.0 ** float(rng.choice([-200, -160, -100, 100, 150, 153]))
    return {"X": rng.standard_normal(_shape(rng)) * unit, "form": str(rng.choice(["array", "csr", "shards"]))}


def scales(rng):
    """Columns, or pairs, of sizes that have nothing to do with each other."""
    n, p = _shape(rng)
    return {"X": rng.standard_normal((n, p)) * 10.0 ** (float(rng.choice([2, 6, 12])) * rng.uniform(-1, 1, p))}


def offsets(rng):
    """All entries near one large number: the first pair takes nearly all, the next are what it leaves."""
    return {"X": rng.standard_normal(_shape(rng)) + 10.0 ** rng.uniform(2, 9)}


def mostly_zeros(rng):
    """Rows and columns without anything, down to nothing at all."""
    n, p = _shape(rng)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < rng.choice([0.0, 0.05, 0.3]))
    return {"X": X, "form": str(rng.choice(["csr", "array", "shards"]))}


def one_column(rng):
    X = rng.standard_normal((int(rng.integers(2, 30)), 1)) * 10.0 ** rng.uniform(-3, 3)
    return {"X": X, "k": 1, "how": {"nonzeros": 1}}


def negative(rng):
    """Nothing above zero, and no entry of v may be below."""
    n, p = _shape(rng)
    return {"X": -np.abs(rng.standard_normal((n, p))), "how": {"nonnegative": True}}


def stopped(rng):
    """Fits that end long before they have converged."""
    return {"X": rng.standard_normal(_shape(rng)), "how": {"max_iter": int(rng.integers(1, 8))}}


MAKERS = (
    apart,
    noise,
    near_equal,
    ties,
    twins,
    near_twins,
    low_rank,
    units,
    scales,
    offsets,
    mostly_zeros,
    one_column,
    negative,
    stopped,
)


def _problem(make, family, seed, rng):
    made = make(rng)
    X, ordinary = made["X"], made.get("ordinary", False)
    n, p = X.shape
    k = made.get("k") or int(rng.integers(1, min(n, p, 5) + 1))
    how = {"nonzeros": int(rng.integers(1, p + 1)), "max_iter": STEPS} | made.get("how", {})
    form = made.get("form") or drawn(rng, FORM_SHARES)
    if not ordinary:
        how |= {"refine": int(rng.choice([0, 0, 1, 20])), "n_init": int(rng.choice([1, 1, 4]))}
        how.setdefault("nonnegative", bool(rng.random() < 0.25))
    if form == "float32":
        X = X.astype(np.float32)
    return PairsProblem(family, seed, X, k, how, form, ordinary and form != "float32")


FAMILIES = {f"pairs {make.__name__.replace('_', ' ')}": functools.partial(_problem, make) for make in MAKERS}
