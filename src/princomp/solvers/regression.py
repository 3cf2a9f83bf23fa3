"""Sparse PCA as a regression (Zou, Hastie & Tibshirani, J. Comput. Graph. Statist. 2006), by blocks and Newton steps.

Objective, over A (p, k) with A'A = I and B (p, k), S = X'X:

    F(A, B) = tr(B'SB) - 2 tr(A'SB) + ridge |B|^2 + sum_j alpha_j |B_j|_1,

and, for infinite ridge (B rescaled), F(A, B) = -2 tr(A'SB) + |B|^2 + sum_j alpha_j |B_j|_1.

For given B the best A is polar(SB), the orthonormal polar factor. That leaves a function of B alone, smooth where signs
and zeros of B are fixed. It is lowered by proximal gradient steps, and, once these gain little, by truncated Newton
steps on the entries that are not zero, with a line search that may set further ones to zero. Proximal steps alone would
be slow, because a rotation of A and B together changes F by very little; Newton steps see that curvature. All but one
step in many touch few rows of B alone (`princomp.solvers.regression_reduced`): A is formed once for each state.

F has many local minima that differ by such rotations. With A'A = I it is a sum over components,
F = sum_j b_j'S b_j - 2 a_j'S b_j + ridge |b_j|^2 + alpha_j |b_j|_1. So, before the Newton steps, a minimum has rivals:
the half of the components that lower F least is rotated at random, and what that leads to is taken if it is lower. On
small data there are several starts in place of rivals (`princomp.solvers.regression_starts`).
"""

from collections.abc import Iterator

import numpy as np

from princomp._typing import Array
from princomp.certificates.regression import soft, stationarity, weights
from princomp.result import State, Value, settled
from princomp.solvers.regression_reduced import RANK, SHRINK, ReducedObjective
from princomp.solvers.regression_starts import best_rotation, pays
from princomp.solvers.scatter import Part, Scatter

# Five components of 80 x 40, 200 x 100 and 40 x 120, two weights, took 38 states: 36 to 41, to the same minima, with
# one of PLAIN_STEPS, NEWTON_STEPS, EASE, MARGIN, MOST, WASTE, or of SLOW to SHORTEST in `regression_reduced`, changed:
# shares to 0.3 or 1, the others by a factor of two to ten either way (GROWTH to 1 and 1.5).
PLAIN_STEPS = 100  # proximal steps to a state, at the most
NEWTON_STEPS = 8  # Newton steps to a state, at the most
EASE = 0.1  # what a state's Newton steps leave of the residual, at the least
# Residuals above which steps, and the states themselves, may be made in single precision, which has some 6e-8: if ten
# times smaller, the variance is the same to 1e-5 there; steps in single up to 2e-4 led once to another minimum.
STEPS_IN_SINGLE, STATES_IN_SINGLE = 2e-5, 1e-3
# Below so many features single precision saves nothing, and where S B has not full rank F goes up and down in it: of
# squares known to 6e-8 the smallest roots, which F sums, are known to 2e-4 of the largest.
SINGLE = 256
MARGIN = 0.95  # rows are at hand whose gradient is at least this share of what makes them differ from zero
MOST = 0.8  # from this share of all rows on, take them all
WASTE = 1.2  # rows at hand may be this many times those wanted
LARGER = 1 + 1e-6  # the largest eigenvalue is known this well
# Several starts are compared when their residuals are this, or after so many states. With 1e-2 and 1e-5, 10 and 200,
# the variance is the same to 1e-4; with 1e-2 there are 30 states afterwards, with 1e-5 11, in place of 23.
SCREEN_TOL = 1e-3
SCREEN_STEPS = 40
ROTATED = 1e-4  # about the residual that `best_rotation` leaves: the first Newton steps end at a tenth of it
RIVALS = 2  # none and one led to the same minima there, five to lower ones, in twice the time


def objective(A: Array, B: Array, SB: Array, alpha: Array, ridge: float) -> float:
    """Return F(A, B), with SB = S B."""
    on_fit, on_ridge = weights(ridge)
    penalty = float((alpha * np.abs(B).sum(axis=0)).sum())
    return on_fit * float(np.vdot(B, SB)) - 2 * float(np.vdot(A, SB)) + on_ridge * float(np.vdot(B, B)) + penalty


def safe_step(largest: float, ridge: float) -> float:
    """Return the size of a proximal step in B: one over the curvature, S having this largest eigenvalue."""
    on_fit, on_ridge = weights(ridge)
    return 1 / max(2 * on_fit * LARGER * largest + 2 * on_ridge, np.finfo(float).tiny)


def polar(M: Array, near: Array) -> Array:
    """Return the orthonormal polar factor of M (p, k); where M has no rank, the part of ``near`` orthogonal to it."""
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    live = s > RANK * s[0] if s[0] > 0 else np.zeros(len(s), bool)
    if not live.all():
        U1 = U[:, live]
        rest = near @ Vt[~live].T
        for _ in range(2):
            rest = rest - U1 @ (U1.T @ rest)
            rest = np.linalg.qr(np.hstack([rest, U[:, ~live]]))[0][:, : rest.shape[1]]
        U[:, ~live] = rest
    A = U @ Vt
    return A @ (1.5 * np.eye(len(s)) - 0.5 * (A.T @ A))  # orthonormal to the last digit


def start(
    scatter: Scatter,
    k: int,
    *,
    alpha: Array,
    ridge: float,
    n_init: int = 1,
    rng: np.random.Generator,
    leading: tuple[Array, Array] | None = None,
    turns: bool = True,
) -> dict[str, Array]:
    """Return the value before the first step: A and B are the leading eigenvectors of S, or where their turns led.

    With ``n_init`` above 1, as many starts less one, polar(S G) of Gaussian G, are tried too, each until its zeros
    have settled, and the lowest objective is continued.

    ``leading`` are the k leading eigenpairs of S, if they are known; with one start and no ``turns`` they are where it
    begins. A value has "A", "B", "SA", "SB" (p, k); "rows", where B may differ from zero; "settled", whether zeros have
    settled; "rivals", how many are still to be tried; "largest" eigenvalue of S; "residual"; "iteration".
    """
    values, V = scatter.leading(k, rng) if leading is None else leading
    largest = max(float(values[0]), 0.0)
    alike = alpha[0] > 0 and bool((alpha == alpha[0]).all())
    # Where p is many times n, and S is not made, rivals were seen to end in the same minimum.
    more = {"rivals": np.array(RIVALS if alike and k > 1 and scatter.fast_parts else 0)}
    if turns and n_init == 1 and more["rivals"] and pays(scatter, k):
        B = best_rotation(scatter, V, float(alpha[0]), ridge, safe_step(largest, ridge))
        ended = {"settled": np.array(True), "residual": np.array(ROTATED)}
        return begin_at(scatter, polar(scatter.apply(B), V), B, largest) | ended
    first = begin_at(scatter, V, V, largest)
    if n_init == 1:
        return first | more
    ends = [_screen(scatter, first, alpha, ridge)]
    for _ in range(n_init - 1):
        A = polar(scatter.apply(rng.standard_normal(V.shape)), V)
        ends.append(_screen(scatter, begin_at(scatter, A, A, largest), alpha, ridge))
    best = min(ends, key=lambda state: state.objective)
    return dict(best.value) | more | {"iteration": np.array(0)}


def begin_at(scatter: Scatter, A: Array, B: Array, largest: float) -> dict[str, Array]:
    """Return the value for given A and B, and the largest eigenvalue of S; it has no rivals."""
    SB = scatter.apply(B)
    return {
        "A": A,
        "B": B,
        "SA": SB if A is B else scatter.apply(A),
        "SB": SB,
        "rows": np.zeros(0, np.intp),
        "settled": np.array(False),
        "rivals": np.array(0),
        "residual": np.array(np.inf),
        "largest": np.array(largest),
        "iteration": np.array(0),
    }


def _screen(scatter: Scatter, value: Value, alpha: Array, ridge: float) -> State:
    return settled(block(scatter, value, alpha=alpha, ridge=ridge), tol=SCREEN_TOL, max_iter=SCREEN_STEPS)


def turned(scatter: Scatter, value: Value, *, alpha: Array, ridge: float, seed: int) -> dict[str, Array]:
    """Return the value to begin at where the half of the components that lower F least is rotated at random."""
    A, B, SB = value["A"].copy(), value["B"], value["SB"]
    on_fit, on_ridge = weights(ridge)
    parts = on_fit * (B * SB).sum(axis=0) + on_ridge * (B * B).sum(axis=0) - 2 * (A * SB).sum(axis=0)
    parts += alpha * np.abs(B).sum(axis=0)
    worst = np.argsort(parts)[-max(2, (len(parts) + 1) // 2) :]
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(worst), len(worst))))[0]
    A[:, worst] = A[:, worst] @ turn
    B = B.copy()
    B[:, worst] = A[:, worst]
    return begin_at(scatter, A, B, float(value["largest"]))


def block(scatter: Scatter, value: Value, *, alpha: Array, ridge: float, gamma: float = SHRINK) -> Iterator[State]:
    """Yield states of falling F, each with A = polar(S B); ``alpha`` (k,), ``ridge`` from 0 to infinity.

    ``gamma`` is what a Newton step that leads too high is multiplied by.

    ``value`` is from `start` or `begin_at`, or of an earlier state; ``residual`` is that of
    `certificates.regression.stationarity`. ``iteration`` counts states: each stands for a few Newton steps, for many
    proximal ones, or for a rival that was tried.
    """
    walk = _Walk(scatter, alpha, ridge, float(value["largest"]), gamma)
    while True:
        if int(value["rivals"]) and bool(value["settled"]):
            value = walk.rival(value)
        else:
            value = walk.step(value)
        F = objective(value["A"], value["B"], value["SB"], alpha, ridge)
        yield State(value, F, float(value["residual"]), int(value["iteration"]))


class _Walk:
    """The steps of `block`, with the rows and columns of S that the last one was made with."""

    def __init__(self, scatter: Scatter, alpha: Array, ridge: float, largest: float, gamma: float) -> None:
        self.scatter, self.alpha, self.ridge, self.gamma = scatter, alpha, ridge, gamma
        self.on_fit, self.on_ridge = weights(ridge)
        self.size = safe_step(largest, ridge)
        self.single = scatter.features >= SINGLE
        self._parts: dict[bool, tuple[Array, Part]] = {}

    def step(self, value: Value) -> Value:
        """Return the value after some steps on the rows and columns that matter."""
        B, SA, SB, rows = (value[name] for name in ("B", "SA", "SB", "rows"))
        ahead = B - 2 * self.size * (self.on_fit * SB - SA + self.on_ridge * B)
        new = soft(ahead, self.size * self.alpha)
        settled, residual = bool(value["settled"]), float(value["residual"])
        B = np.zeros_like(new)
        if new.any():
            columns = np.flatnonzero(new.any(axis=0))
            rows = _rows(rows, new, np.abs(ahead) >= MARGIN * self.size * self.alpha)
            here = np.ix_(rows, columns)
            rough = self._part(rows, self.single)
            part = rough if residual > STEPS_IN_SINGLE else self._part(rows, False)
            terms = (self.alpha[columns], self.on_fit, self.on_ridge)
            reduced = ReducedObjective(part, rough, *terms, self.size, self.gamma)
            point = reduced.at(new[here])
            if settled:
                point = reduced.polish(point, NEWTON_STEPS, EASE * residual)
            else:
                steps = min(PLAIN_STEPS, 10 * 2 ** int(value["iteration"]))
                point, settled = reduced.descend(point, steps)
            B[here] = point.B
        roughly = self.single and residual > STATES_IN_SINGLE
        SB = self.scatter.combine(rows, B[rows].T, roughly=roughly).T if B.any() else np.zeros_like(B)
        A = polar(SB, value["A"])
        SA = self.scatter.apply(A, roughly=roughly)
        residual = stationarity(A, B, SA, SB, self.alpha, self.ridge)
        found = {"A": A, "SA": SA, "B": B, "SB": SB, "rows": rows, "settled": np.array(settled)}
        return {**value, **found, "residual": np.array(residual), "iteration": value["iteration"] + 1}

    def rival(self, value: Value) -> Value:
        """Return the better of where we are and of where a rotation of the worst half of the components leads."""
        left = int(value["rivals"]) - 1
        rival: Value = turned(self.scatter, value, alpha=self.alpha, ridge=self.ridge, seed=left)
        for _ in range(SCREEN_STEPS):
            rival = self.step(rival)
            if bool(rival["settled"]):
                break
        F, other = (objective(each["A"], each["B"], each["SB"], self.alpha, self.ridge) for each in (value, rival))
        best = rival if other < F else value
        return dict(best) | {"rivals": np.array(left), "iteration": value["iteration"] + 1}

    def _part(self, rows: Array, roughly: bool) -> Part:
        known = self._parts.get(roughly)
        if known is None or not np.array_equal(known[0], rows):
            known = self._parts[roughly] = (rows, self.scatter.restrict(rows, roughly=roughly))
        return known[1]


def _rows(rows: Array, new: Array, near: Array) -> Array:
    """Return the rows to work with: those at hand, if they hold all that are needed and not too many more."""
    wanted = np.flatnonzero(near.any(axis=1) | new.any(axis=1))
    needed = np.flatnonzero(new.any(axis=1))
    if len(rows) <= WASTE * len(wanted) and bool(np.isin(needed, rows, assume_unique=True).all()):
        return rows
    return np.arange(len(new)) if len(wanted) > MOST * len(new) else wanted
