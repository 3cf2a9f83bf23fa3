"""Before and after the dictionary form of sparse PCA: a start, a smaller matrix that stands for X, the way back.

Where Y carries nothing but the ball, only X'X matters: any R with R'R = X'X may stand for X. `dictionary` then runs on
R, of at most p rows, and `recover` gives the codes of X.
"""

import numpy as np

from princomp._typing import Array
from princomp.penalties import Penalty
from princomp.result import Value
from princomp.solvers.dictionary import SWEEPS, transposed
from princomp.solvers.dictionary_blocks import Terms, on_spheres
from princomp.solvers.leading import leading_roughly
from princomp.solvers.scatter import Factored

START_TOL = 1e-4  # of the singular vectors to start from: 1e-9 led to the same minima, 0.1 to lower ones (80 x 40 on)
START_ITERATIONS = 200
NOTHING = 1e-10  # singular values this small beside the first are rounding
WARM_SWEEPS = 5  # block sweeps from a start that was given: it is near a minimum (1 and 20 led to the same ones)
EXPECTED_STEPS = 300  # of a fit
ASCENT = 1e-3  # relative accuracy of the largest weight of a penalty
HUGE = 1e30  # a step that leaves nothing that is penalised


def start(
    X: Factored, k: int, terms: Terms, rng: np.random.Generator, *, Y: Array | None = None, D: Array | None = None
) -> Value:
    """Return the value before the first step, at Y (n, k) and D (p, k), or at the leading singular vectors.

    Columns beyond the rank begin empty and are filled from what the others leave.
    """
    if terms.swapped:
        return transposed(start(X.T, k, terms.swap(), rng, Y=D, D=Y))
    sweeps = WARM_SWEEPS
    if Y is None or D is None:
        Y, D = _singular_vectors(X, k, rng)
        sweeps = SWEEPS
    Y, D = terms.balanced(*_feasible(Y, D, terms))
    return {
        "Y": np.array(Y, dtype=np.float64, order="C"),
        "D": np.array(D, dtype=np.float64, order="C"),
        "XtY": X.transpose_times(Y),
        "XD": X.times(D),
        "residual": np.array(1.0),
        "objective": np.array(np.inf),
        "sweeps": np.array(sweeps),  # to be made before the second phase; negative in it
        "pairs": np.array(0),  # remembered, in step0, change0, step1 ...
        "iteration": np.array(0),
    }


def _singular_vectors(X: Factored, k: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return U sqrt(s) and V sqrt(s), (n, k) and (p, k), of the leading singular triplets; zeros beyond the rank."""
    n, p = X.shape
    count = min(k, n, p)
    if n < p:
        V, U = _singular_vectors(X.T, k, rng)
        return U, V
    _, V = leading_roughly(lambda V: X.transpose_times(X.times(V)), p, count, rng, tol=START_TOL, most=START_ITERATIONS)
    U = X.times(V)
    s = np.linalg.norm(U, axis=0)
    root = np.sqrt(np.where(s > NOTHING * s.max(initial=0.0), s, 0.0))
    out_U, out_V = np.zeros((n, k)), np.zeros((p, k))
    out_U[:, :count] = np.divide(U, root, out=np.zeros_like(U), where=root > 0)
    out_V[:, :count] = V * root
    return out_U, out_V


def _feasible(Y: Array, D: Array, terms: Terms) -> tuple[Array, Array]:
    """Return Y and D, of the better sign and cut off where they must not be negative."""
    if terms.nonnegative or terms.nonnegative_codes:
        signs = np.where(_kept(Y, D, terms) >= _kept(-Y, -D, terms), 1.0, -1.0)
        Y, D = _cut(Y * signs, terms.nonnegative_codes), _cut(D * signs, terms.nonnegative)
    return Y, D


def _kept(Y: Array, D: Array, terms: Terms) -> Array:
    Y, D = _cut(Y, terms.nonnegative_codes), _cut(D, terms.nonnegative)
    return np.asarray(np.linalg.norm(Y, axis=0) + np.linalg.norm(D, axis=0))


def _cut(A: Array, nonnegative: bool) -> Array:
    return np.maximum(A, 0.0) if nonnegative else A


def alpha_max(X: Factored, radius: float = 1.0) -> float:
    """Return the least alpha of |D|_1 from which on D = 0 is best: radius times the largest column norm of X.

    For a penalty on the codes alone, ask with ``X.T``.
    """
    return radius * float(np.sqrt(X.diagonal.max()))


def alpha_max_of(X: Factored, penalty: Penalty, radius: float = 1.0) -> float:
    """Return the weight of a penalty of columns from which on D = 0 is best, to 0.1 %, as far as ascent finds it.

    It is the largest dual norm of X'y over codes y in the ball: ascent from the largest feature that is penalised,
    y <- X d for the d that attains the dual norm.
    """
    axis = np.zeros((X.shape[1], 1))
    penalised = penalty.prox(np.ones(len(axis)), HUGE) == 0
    axis[np.argmax(np.where(penalised, X.diagonal, -1.0))] = 1.0
    best, d = 0.0, axis
    while True:
        weight, d = _dual_norm(X.transpose_times(on_spheres(X.times(d), radius))[:, 0], penalty)
        if weight <= best * (1 + ASCENT):
            return max(weight, best)
        best = weight


def _dual_norm(u: Array, penalty: Penalty) -> tuple[float, Array]:
    """Return the least step with prox(u, step) = 0, and the prox (p, 1) just below it."""
    high = float(np.abs(u).max())
    u = u - penalty.prox(u, HUGE * high)  # without what is not penalised
    if not u.any():
        return 0.0, u[:, None]
    while penalty.prox(u, high).any():
        high *= 2
    low, below = 0.0, u
    while high - low > ASCENT * high:
        middle = (low + high) / 2 if low > 0 else high / 4
        d = penalty.prox(u, middle)
        if d.any():
            low, below = middle, d
        else:
            high = middle
    return high, below[:, None]


def factor_pays(n: int, p: int, k: int) -> bool:
    """Tell whether a triangular factor of X (n, p) costs less than it saves."""
    return n > p and 2.0 * n * p * p < EXPECTED_STEPS * 4.0 * (n - p) * p * k


def recover(X: Factored, R: Array, Y: Array, radius: float) -> Array:
    """Return the codes of X (n, k) from those of its factor R, R'R = X'X: one pass over X.

    Y = RW is in the span of R, since all steps stay there: the answer is XW, of the same norms and products.
    """
    from scipy.linalg import solve_triangular

    size = np.abs(np.diag(R))
    if R.shape[0] == R.shape[1] and not np.tril(R, -1).any() and size.min() > 1e-10 * size.max():
        W = solve_triangular(R, Y)
    else:
        W = np.linalg.lstsq(R, Y, rcond=1e-10)[0]
    codes = X.times(W)
    return codes / np.maximum(np.linalg.norm(codes, axis=0) / radius, 1.0)
