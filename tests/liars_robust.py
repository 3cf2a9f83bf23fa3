"""Principal component pursuit on the liars' bench (tests/liars.py): tables made to make a duality gap lie.

A certificate that holds says: L + S is X in the cells that are seen, and no other such pair has an objective that is
lower by more than the residual that is stated, relative to it. The judge has bounds of the optimum from both sides by a
slow solver of its own (tests/slow_pursuit.py), which goes on until they decide.
"""

import functools
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

import slow_pursuit
from helpers import shards
from liars_parts import drawn

TOL = 1e-6
UNDECIDED = 3000  # steps of ten of the judge, after which it has no opinion
NUMBERS = 1e-6  # relative error of the objective that is stated
FORM_SHARES = {"array": 0.6, "columns": 0.1, "float32": 0.2, "shards": 0.1}
METHOD = {False: "pcp", True: "outlier-pursuit"}


# --- the judge ------------------------------------------------------------------------------------


@dataclass
class PursuitProblem:
    """A table, NaN = missing, and how it is to be taken apart."""

    family: str
    seed: int
    X: np.ndarray  # (n, p), as stored
    alpha: float | None
    rows: bool = False  # whole rows are bad, and not cells
    form: str = "array"
    ordinary: bool = False
    how: dict = field(default_factory=dict)

    @property
    def solver(self):
        return METHOD[self.rows]

    @property
    def name(self):
        missing = f", {np.isnan(self.X).mean():.0%} missing" if np.isnan(self.X).any() else ""
        return f"{self.form} {self.X.shape[0]}x{self.X.shape[1]}{missing}, {self.solver}, alpha={self.alpha}"

    def fit(self):
        from princomp import RobustPCA

        given = {"columns": np.asfortranarray, "shards": lambda X: shards(X, sizes=(1, 3, 50))}
        model = RobustPCA(1, method=self.solver, alpha=self.alpha, tol=TOL, random_state=self.seed, **self.how)
        return model.fit(given.get(self.form, np.asarray)(self.X))

    def holds(self, model):
        return bool(model.certificate_.holds)

    def claims(self, model):
        """The parts, their rank and their objective are stated whether or not the certificate holds."""
        return True

    def vague(self, model):
        return False

    def faults(self, model):
        return pursuit_faults(self, model)

    # In units in which no square is lost

    @cached_property
    def unit(self):
        return float(2.0 ** -np.floor(np.log2(np.nanmax(np.abs(self.X), initial=0.0) or 1.0)))

    @cached_property
    def table(self):
        return self.X.astype(float) * self.unit

    @cached_property
    def seen(self):
        return ~np.isnan(self.X)


def pursuit_faults(posed, model):
    """What is wrong with the parts and with what is stated of them, as sentences; none if it is right."""
    L, S = np.asarray(model.low_rank_), np.asarray(model.sparse_)
    if L.shape != posed.X.shape or S.shape != posed.X.shape:
        return [f"parts {L.shape} and {S.shape} of {posed.X.shape}"]
    if not (np.isfinite(L).all() and np.isfinite(S).all()):
        return ["parts that are not finite"]
    L, S = L.astype(float) * posed.unit, S.astype(float) * posed.unit
    found = form_faults(posed, model, L, S)
    stated = float(model.certificate_.residual)
    if np.isnan(stated) or stated < 0:
        return [*found, f"a residual of {stated}"]
    return found + sum_faults(posed, L, S, stated) + objective_faults(posed, model, L, S, stated)


def doubt(posed, L, S):
    """What storing the parts in few digits does to the objective, at most."""
    eps, side = float(np.finfo(posed.X.dtype).eps), min(posed.X.shape)
    sizes = np.sqrt(side) * np.linalg.norm(L) + _alpha(posed) * np.abs(S).sum()
    return 4 * (eps + 16 * np.finfo(float).eps) * sizes


def _alpha(posed, model=None):
    if posed.alpha is not None:
        return posed.alpha
    return 1 / np.sqrt(max(posed.X.shape)) if model is None or not posed.rows else float(model.alpha_)


def form_faults(posed, model, L, S):
    """Of cells that were not seen, and of the rank."""
    values = np.linalg.svd(L, compute_uv=False)
    digits = 4 * max(posed.X.shape) * np.finfo(float).eps
    certain = int((values > 1e-4 * values.max(initial=0.0)).sum())
    # What is stored in single precision has the rank of its rounding.
    possible = len(values) if posed.X.dtype == np.float32 else int((values > digits * values.max(initial=0.0)).sum())
    trials = {
        "a sparse part where nothing was seen": np.any(S[~posed.seen] != 0),
        f"rank {model.rank_}, it is {certain} to {possible}": not certain <= model.rank_ <= possible,
    }
    if posed.alpha is None and not posed.rows:
        trials[f"alpha {model.alpha_}"] = abs(model.alpha_ * np.sqrt(max(posed.X.shape)) - 1) > 1e-6
    return [sentence for sentence, wrong in trials.items() if wrong]


def sum_faults(posed, L, S, stated):
    """Of parts that do not add up, if it is stated that they do."""
    if stated > TOL:
        return []
    off = np.linalg.norm((posed.table - L - S)[posed.seen])
    size = np.linalg.norm(posed.table[posed.seen])
    rounding = 8 * float(np.finfo(posed.X.dtype).eps) * (np.linalg.norm(L) + np.linalg.norm(S))
    return [] if off <= TOL * size + rounding else [f"L + S is {off / size:.1e} from X"]


def objective_faults(posed, model, L, S, stated):
    """Of the objective that is stated, and of one that is farther from the optimum than is stated."""
    alpha = _alpha(posed, model)
    value = slow_pursuit.objective(L, S, alpha, posed.rows)
    rounding = doubt(posed, L, S)
    said = float(model.result_.objective) * posed.unit
    found = []
    if not abs(said - value) <= (NUMBERS + stated) * value + rounding:
        found.append(f"an objective of {said:.9g} is stated, it is {value:.9g}")
    allowed = 1.05 * min(stated, 1.0) * value + rounding
    if stated <= 1 and lower_than(posed.table, alpha, posed.rows, value - allowed):
        found.append(f"a gap of {stated:.1e} is stated, but there is an objective lower by more than that")
    return found


def lower_than(X, alpha, rows, value):
    """Whether the optimum is below a value: decided by bounds from both sides; False where they do not decide."""
    if not value > 0:
        return False
    for number, bounds in enumerate(slow_pursuit.steps(X, alpha, rows)):
        if bounds.upper < value:
            return True
        if bounds.lower >= value or number >= UNDECIDED:
            return False
    return False


# --- problems -------------------------------------------------------------------------------------
# Each makes a table X and, where it matters, an alpha.


def _shape(rng):
    return int(rng.integers(2, 30)), int(rng.integers(1, 24))


def _low_rank(rng, n, p, rank=None):
    rank = int(rng.integers(1, 4)) if rank is None else rank
    return rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))


def _corrupted(rng, X, share=None, size=10.0):
    share = float(rng.choice([0.02, 0.1, 0.3])) if share is None else share
    bad = rng.random(X.shape) < share
    return np.where(bad, X + size * rng.choice([-1.0, 1.0], X.shape), X)


def planted(rng):
    """As people have it: few bad cells in a table of low rank."""
    n, p = int(rng.integers(40, 60)), int(rng.integers(40, 60))
    return {"X": _corrupted(rng, _low_rank(rng, n, p, 2), 0.04), "ordinary": True}


def noisy(rng):
    """Nothing is recovered: the penalties balance, and the optimum is not at a corner."""
    n, p = _shape(rng)
    return {"X": _corrupted(rng, _low_rank(rng, n, p) + 0.3 * rng.standard_normal((n, p)))}


def noise(rng):
    return {"X": rng.standard_normal(_shape(rng))}


def missing(rng):
    X = _corrupted(rng, _low_rank(rng, *_shape(rng)))
    X[rng.random(X.shape) < float(rng.choice([0.05, 0.3, 0.7]))] = np.nan
    if not (~np.isnan(X)).any(axis=0).all():
        X[0] = 1.0  # each column is seen once
    return {"X": X, "rows": False}


def extremes(rng):
    """An alpha with which one of the parts vanishes, or nearly."""
    X = _corrupted(rng, _low_rank(rng, *_shape(rng)) + 0.1)
    edge = 1 / np.linalg.norm(np.sign(X), 2)
    near = float(rng.choice([0.5, 0.999999, 1.0, 1.000001, 1.5]))
    return {"X": X, "alpha": float(near * rng.choice([edge, 1.0])), "rows": False}


def ties(rng):
    """Entries of few values: singular values and magnitudes come many times."""
    n, p = _shape(rng)
    return {"X": rng.integers(-1, 2, (n, p)).astype(float)}


def twins(rng):
    """Orthogonal rows of one length: all singular values are the same, so that a start may miss any of them."""
    n = int(2 ** rng.integers(1, 5))
    H = np.ones((1, 1))
    while len(H) < n:
        H = np.block([[H, H], [H, -H]])
    return {"X": _corrupted(rng, H * float(rng.choice([1.0, 7.0])), 0.05)}


def hidden(rng):
    """A direction that few rows have, beside large ones: what a short search of the dual's norm does not see."""
    n, p = int(rng.integers(10, 30)), int(rng.integers(10, 24))
    X = _low_rank(rng, n, p, 1) * 10.0 ** float(rng.choice([1, 3, 5]))
    X[:, -1], X[-1] = 0.0, 0.0
    X[-1, -1] = 10.0 ** rng.uniform(-3, 1)
    return {"X": X}


def scales(rng):
    """Columns or rows of sizes that have nothing to do with each other."""
    n, p = _shape(rng)
    X = _corrupted(rng, _low_rank(rng, n, p) + 0.1 * rng.standard_normal((n, p)))
    spread = float(rng.choice([2, 5]))
    X = (
        X * 10.0 ** (spread * rng.uniform(-1, 1, p))
        if rng.random() < 0.5
        else X * 10.0 ** (spread * rng.uniform(-1, 1, (n, 1)))
    )
    return {"X": X}


def units(rng):
    """In units in which squares are out of the range of numbers."""
    unit = 10.0 ** float(rng.choice([-200, -160, -100, 100, 150]))
    return {"X": _corrupted(rng, _low_rank(rng, *_shape(rng))) * unit, "form": "array"}


def offsets(rng):
    """All entries near one large number: one direction takes nearly all."""
    return {"X": _corrupted(rng, rng.standard_normal(_shape(rng))) + 10.0 ** rng.uniform(1, 5)}


def mostly_zeros(rng):
    n, p = _shape(rng)
    return {"X": rng.standard_normal((n, p)) * (rng.random((n, p)) < rng.choice([0.0, 0.05, 0.3]))}


def one_column(rng):
    X = rng.standard_normal((int(rng.integers(2, 30)), 1)) * 10.0 ** rng.uniform(-3, 3)
    return {"X": X if rng.random() < 0.5 else X.T.repeat(2, axis=0)}


def stopped(rng):
    """Fits that end long before they have converged."""
    return {"X": _corrupted(rng, _low_rank(rng, *_shape(rng))), "how": {"max_iter": int(rng.integers(1, 12))}}


MAKERS = (
    planted,
    noisy,
    noise,
    missing,
    extremes,
    ties,
    twins,
    hidden,
    scales,
    units,
    offsets,
    mostly_zeros,
    one_column,
    stopped,
)


def _problem(make, family, seed, rng):
    made = make(rng)
    X, ordinary = made["X"], made.get("ordinary", False)
    rows = bool(made.get("rows", not ordinary and rng.random() < 0.25))
    alpha = made.get("alpha")
    if alpha is None and (rows or (not ordinary and rng.random() < 0.5)):
        alpha = float(10.0 ** rng.uniform(-0.7, 0.7) / np.sqrt(max(X.shape)) * (2 if rows else 1))
    form = made.get("form") or drawn(rng, FORM_SHARES)
    if form == "float32":
        X = X.astype(np.float32)
    return PursuitProblem(
        family, seed, X, alpha, rows, form, ordinary and form != "float32", {"max_iter": 20_000} | made.get("how", {})
    )


FAMILIES = {f"pursuit {make.__name__.replace('_', ' ')}": functools.partial(_problem, make) for make in MAKERS}
