"""Feature-sign search: Lee, Battle, Raina, Ng, "Efficient sparse coding algorithms", NIPS 2006; and nonnegative codes.

    minimise 1/2 |x - a D|^2 + alpha sum_k w_k |a_k| + l2/2 |a|^2     (a >= 0)

An atom whose slope exceeds its limit, |d_k.r| > alpha w_k, enters. Its code moves away from 0, the others follow so
that their slopes stay at their limits, and those that get to 0 on the way leave. Each entry is exact (the inverse of
the Gram matrix of the support is kept up to date) and lowers the objective, so no support comes twice. It ends when
the duality gap (see `princomp.certificates.coding_gaps`) is below ``tol`` times 1/2 |x|^2. Where some atom has no
limit (alpha = 0 or a weight of 0) the residual is no dual point; then no slope may exceed its limit by more than
``FREE tol sqrt(|d_k|^2 + l2) |x|``. What rounding keeps from getting there (supports that are nearly dependent) is left
to coordinate descent, and warned of if that fails too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._compiled.coding_terms import SLACK, VANISHING, Terms
from princomp._typing import Array
from princomp._warn import warn

FINEST = 1e-14  # no gap is asked to be smaller: sums of float64 have no more digits
FREE = 1e-3  # by so much slopes are closer than gaps: a gap is about a slope times a code, which may be large
FINEST_SLOPE = 1e-12  # but not finer than this, unless tol is: slopes have fewer digits than gaps
DEPENDENT = 1e-11  # as in the compiled loops
SWEEPS = 1000


@dataclass(frozen=True, eq=False)
class Lasso:
    """h(a) = alpha sum_k w_k |a_k| + l2/2 |a|^2, and a >= 0 if ``nonnegative``.

    Parameters
    ----------
    alpha : float
        Weight of the l1 norm. With 0, the code is a least squares solution of few atoms.
    l2 : float, default 0
        Weight of the squared norm (elastic net).
    weights : (K,) array, optional
        Of each atom's absolute value; 0 for atoms that cost nothing. All 1 by default.
    nonnegative : bool, default False
        Whether codes must not be negative.
    tol : float, default 1e-6
        Bound on the duality gap, relative to 1/2 |x|^2.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.coders.lasso import Lasso
    >>> Lasso(0.5).code(np.eye(2)[None], np.array([[2.0, 0.3]]), np.array([4.09])).toarray().tolist()
    [[1.5, 0.0]]
    """

    alpha: float
    l2: float = 0.0
    weights: Array | None = None
    nonnegative: bool = False
    tol: float = 1e-6

    optimal = True

    def __post_init__(self) -> None:
        for name in ("alpha", "l2", "tol"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
        if self.weights is not None:
            weights = np.array(self.weights, dtype=np.float64)
            if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
                raise ValueError("weights must be finite numbers of at least 0, one for each atom.")
            object.__setattr__(self, "weights", weights)

    def code(self, gram: Array, correlations: Array, squares: Array, start: Any = None) -> Any:
        """Return the codes of m rows (see `princomp.coders.base.Coder`)."""
        import scipy.sparse as sp

        m, K = correlations.shape
        gram, slopes, squares = (np.ascontiguousarray(part, np.float64) for part in (gram, correlations, squares))
        if self.l2:  # of the augmented problem, rows (x, 0) and atoms (d_k, sqrt(l2) e_k)
            gram = gram.copy()
            gram[:, np.arange(K), np.arange(K)] += self.l2
        begins, atoms = np.zeros(m + 1, np.int32), np.zeros(0, np.int32)
        if start is not None:
            begins, atoms = (part.astype(np.int32, copy=False) for part in (start.indptr, start.indices))
        given = (gram, slopes, squares, self._terms(gram), begins, atoms)
        compiled = loops("coding_lasso")
        data, indices, indptr, settled = slow_codes(*given) if compiled is None else compiled.lasso_codes(*given)
        if not settled.all():
            from sklearn.exceptions import ConvergenceWarning

            warn(f"{m - settled.sum()} of {m} codes are not as close as tol={self.tol:g} asks.", ConvergenceWarning)
        return sp.csr_array((data.astype(correlations.dtype, copy=False), indices, indptr), shape=(m, K))

    def penalties(self, codes: Any) -> Array:
        """Return h(a) of each row of a CSR array, (m,), float64."""
        values = codes.data.astype(np.float64)
        weights = 1.0 if self.weights is None else self.weights[codes.indices]
        costs = self.alpha * weights * np.abs(values) + self.l2 / 2 * values**2
        if self.nonnegative:
            costs[values < 0] = np.inf
        rows = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
        return np.bincount(rows, costs, codes.shape[0])

    def _terms(self, gram: Array) -> Terms:
        K = gram.shape[1]
        limits = np.full(K, float(self.alpha)) if self.weights is None else self.alpha * self.weights
        if len(limits) != K:
            raise ValueError(f"There are {K} atoms, but {len(limits)} weights.")
        both, tol = 0.0 if self.nonnegative else -1.0, max(self.tol, FINEST)
        with np.errstate(divide="ignore", over="ignore"):
            factors = 1.0 / limits
        if np.isfinite(factors).all():
            return Terms(limits, factors, -np.ones(K), both, tol, True)
        norms = np.sqrt(np.diagonal(gram, axis1=1, axis2=2).max(axis=0))
        factors = np.divide(1.0, norms, out=np.zeros(K), where=norms > 0)
        within = max(FREE * tol, min(tol, FINEST_SLOPE))
        return Terms(limits, factors, -limits * factors, both, within, False)


def slow_codes(
    grams: Array, correlations: Array, squares: Array, terms: Terms, begins: Array, starts: Array
) -> tuple[Array, Array, Array, Array]:
    """Return data, indices, indptr of the codes, and which rows are as good as asked: the twin of compiled loops.

    Where to start from makes no difference to where this ends; it begins with no atoms.
    """
    m, K = correlations.shape
    codes, settled = np.zeros((m, K)), np.zeros(m, bool)
    for i in range(m):
        G, given = grams[i if len(grams) > 1 else 0], (correlations[i], squares[i], terms)
        settled[i] = _search(G, codes[i], *given) or _descend(G, codes[i], *given)
    places = np.nonzero(codes)
    indptr = np.append(0, np.cumsum(np.count_nonzero(codes, axis=1))).astype(np.int32)
    return codes[places], places[1].astype(np.int32), indptr, settled


def _search(G: Array, code: Array, c: Array, square: float, terms: Terms) -> bool:
    """Let atoms enter ``code``, worst first; say whether it is as good as asked."""
    in_span = np.zeros(len(c), bool)
    for _ in range(10 * len(c) + 100):
        slopes = c - code @ G
        violations = np.maximum(slopes, terms.both * slopes) * terms.factors + terms.shifts
        if _small(code, slopes, violations, c, square, terms):
            return True
        k = int(np.where((code == 0) & ~in_span, violations, 0.0).argmax())
        if code[k] != 0 or in_span[k] or violations[k] <= 0:
            return False
        in_span[k] = not _enter(G, code, k, float(slopes[k]), terms)
    return False


def _enter(G: Array, code: Array, k: int, slope: float, terms: Terms) -> bool:
    """Move ``code[k]`` away from 0 until its slope is at its limit, the others following; say whether it could."""
    sign, excess = np.sign(slope), abs(slope) - terms.limits[k]
    while True:
        support = np.flatnonzero(code)
        support = support[support != k]
        along = np.linalg.lstsq(G[np.ix_(support, support)], G[support, k], rcond=None)[0]
        rest = G[k, k] - G[support, k] @ along
        step = excess / rest if rest > DEPENDENT * G[k, k] else np.inf
        limited = (terms.limits[support] > 0) | (terms.both == 0)
        toward = np.where(limited, sign * np.sign(code[support]) * along, 0.0)
        steps = np.divide(np.abs(code[support]), toward, out=np.full(len(support), np.inf), where=toward > 0)
        first = int(steps.argmin()) if len(steps) else -1
        leaves = first >= 0 and bool(steps[first] < step)
        step = float(steps[first]) if leaves else step
        if np.isinf(step):  # only rounding can say that an atom of the span would help
            return bool(code[k])
        moved = code[support] - sign * step * along
        code[support] = np.where(
            limited & (moved * code[support] < 0), 0.0, moved
        )  # two at 0 at once, but for rounding
        code[k] += sign * step
        if not leaves:
            return True
        code[support[first]] = 0.0
        excess -= step * max(rest, 0.0)


def _descend(G: Array, code: Array, c: Array, square: float, terms: Terms) -> bool:
    """Improve ``code`` by coordinate descent; say whether it is as good as asked."""
    for _ in range(SWEEPS):
        for k in np.flatnonzero(np.diagonal(G) > 0):
            target = c[k] - code @ G[:, k] + G[k, k] * code[k]
            beyond = max(target, terms.both * target) - terms.limits[k]
            code[k] = np.sign(target) * max(beyond, 0.0) / G[k, k]
        slopes = c - code @ G
        violations = np.maximum(slopes, terms.both * slopes) * terms.factors + terms.shifts
        if _small(code, slopes, violations, c, square, terms):
            return True
    return False


def _small(code: Array, slopes: Array, violations: Array, c: Array, square: float, terms: Terms) -> bool:
    """Say whether the duality gap, or the largest violation, is small enough."""
    top = max(float(violations.max(initial=0.0)), 0.0)
    if not terms.by_gap or square < VANISHING:
        off = np.abs(slopes - np.sign(code) * terms.limits) * terms.factors
        enough = SLACK if terms.by_gap else terms.tol * np.sqrt(square)
        return bool(max(top, off[code != 0].max(initial=0.0)) <= enough)
    scale, inside = 1.0 / (1.0 + top), code @ slopes
    left = max(square - code @ c - inside, 0.0)
    gap = (1.0 - scale) ** 2 * left + 2.0 * (terms.limits @ np.abs(code) - scale * inside)
    return bool(gap <= terms.tol * square)
