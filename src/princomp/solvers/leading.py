"""The k leading eigenpairs of any symmetric positive semidefinite S, known by products with it (`Operator`).

Objective: maximise tr(V'SV) over orthonormal V (p, k). `leading_roughly` is one run of block Lanczos iteration
(`princomp.solvers.krylov`), for where to begin. `leading` certifies what it returns: an attempt ends by the residual
that the iteration reckons; then one product measures its vectors, a probe from fresh random vectors looks at what they
leave out (`princomp.certificates`), and the next attempt goes on with what was found:

- vectors whose residual is too large, with the products that were measured;
- components far below the leading ones, once those are locked: the rounding of the leading ones hides them;
- directions that the probe has found larger than the last one kept;
- random ones, where as many values tie as there are vectors in a block: it cannot hold more copies of a value. One
  eigenpair more than asked for is then looked for, so that the attempt does not end before these have had their say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from princomp import certificates
from princomp._typing import Array
from princomp.certificates.left_out import BLOCK, MISS, SPARSE_BLOCK
from princomp.data import Centered, budget, statistics
from princomp.data.sparse import SparseRows
from princomp.result import Certificate, Result, Status, Value, run, settled, warn
from princomp.solvers import krylov
from princomp.solvers.eigh import leading_eigenpairs, svd_of_projection

ATTEMPTS = 20
# Fits to 1e-9 of 600 x 300, of 400 x 400 over eight digits, and of ties took 32 products in all, whatever these are:
# LATE from 0.1 to 0.95, STALE from 0.1 to 0.9, PATIENCE from 1 to 10, MIXED from 1e-6 to 0.5, TIE from 1e-9 to 1e-3.
TIE = 1e-6  # values this close, relatively, count as copies of one
LATE = 0.5  # of tol: components of a smaller residual need no further products
STALE = 0.5  # an attempt that leaves this much of the residual has led nowhere
PATIENCE = 3  # such attempts in a row
# Of a matrix in memory: ten to thirty eigenvectors of 300 to 2500 took LAPACK so many seconds times p^3, and a step of
# Krylov iteration so many, and so many times p^2. Where values fall fast, ten to twenty steps do.
LAPACK_SECONDS = 4.5e-11
STEP_SECONDS = (2.5e-4, 5.5e-10)
STEPS_BEYOND = 8  # those that hold k vectors, as a rule
MARGIN = 1.5
FEW = 0.05  # of the side: with more components the basis is what takes the time
ENOUGH = 1e-10  # of a residual: the last steps gain several digits each
MEAN_APART = 10.0  # times the squares: so large may those of a mean be that is taken off products with sparse data
COPIED = 0.1  # of free memory, at the most, for the columns of sparse data as rows
MIXED = 1e-2  # a residual from which single precision is enough for the corrections: their errors are that much smaller


@dataclass(frozen=True)
class Operator:
    """A symmetric positive semidefinite S (p, p), known by products with it.

    Where ``apply`` is not S but another operator with its eigenvalues, XX' in place of X'X, ``to_vectors`` and
    ``to_directions`` go between orthonormal vectors of the two, and ``size`` is that of the other one.
    """

    apply: Callable[[Array], Array]  # V (p, b) -> S V
    size: int  # p
    trace: float  # of S
    floor: Callable[[Array], Array] | None = None  # eigenvalues (k,) -> what rounding hides of each; None: of a matrix
    measure: Callable[[Array], certificates.Images] | None = None  # V (p, k) -> S V, V'SV; None: by a product
    in_single: Callable[[Array], Array] | None = None  # V (p, b) -> S V in single precision, for a beginning
    sparse: bool = False  # whether products with few vectors at a time are cheap
    to_vectors: Callable[[Array], Array] | None = None
    to_directions: Callable[[Array], Array] | None = None
    growth: float = krylov.GROWTH  # of the basis, between two looks at it

    def vectors(self, value: Value) -> Array:
        """Return orthonormal vectors (p, m) of a state."""
        W = krylov.vectors(value)
        if value["locked"].shape[1]:
            W = np.linalg.qr(np.hstack([value["locked"], W]))[0]
        return W if self.to_vectors is None else self.to_vectors(W)

    def directions(self, V: Array) -> Array:
        """Return vectors (p, m), orthonormal, as orthonormal vectors that ``apply`` takes."""
        return V if self.to_directions is None else self.to_directions(V)

    def measured(self, V: Array) -> _Found:
        """Return what vectors span, in the basis in which their scores are uncorrelated."""
        measured = (self.measure or partial(certificates.images_by_product, self.apply))(V)
        Q = uncorrelated(measured.gram)
        V, R = np.linalg.qr(V @ Q)  # orthonormal to the last digit
        V = V * np.where(np.diag(R) < 0, -1.0, 1.0)
        measured = measured.rotated(Q)
        values = np.maximum(np.diag(measured.gram), 0.0)
        floor = certificates.floor_of_matrix(self.size, values) if self.floor is None else self.floor(values)
        return _Found(V, values, measured, floor)


def of_data(X: Centered, total: float, measure: Callable[[Array], certificates.Images]) -> Operator:
    """Return X'X, or, where X is much wider than long, XX'; ``measure`` is a pass over the data, ``total`` is |X|^2."""
    n, p = X.shape
    taken_off = certificates.taken_off(X)
    rough = krylov.may_begin_roughly(n, p, total, taken_off)
    kept = X if rough else X.kept()  # few products are in double precision then: there is a copy in single for others
    by_rows = p > krylov.WIDE * n
    apply = partial(_apply, kept, by_rows)
    in_single = partial(_apply, X.in_single(), by_rows) if rough else None
    turned = _turned(X) if n < p and taken_off <= MEAN_APART * total else None
    if turned is not None:
        by_rows, apply = True, partial(_apply_turned, turned)
        in_single = partial(_apply_turned, turned.in_single()) if rough else None
    return Operator(
        apply,
        n if by_rows else p,
        total,
        partial(certificates.floor_of_data, X),
        measure,
        in_single,
        X.rows.sparse,
        (lambda U: svd_of_projection(statistics.apply_transpose(X, U))[1]) if by_rows else None,
        (lambda V: np.linalg.qr(statistics.scores(X, V))[0]) if by_rows else None,
    )


def _apply(X: Centered, by_rows: bool, V: Array) -> Array:
    """Return X'X V, or XX' V."""
    if by_rows:
        return statistics.scores(X, statistics.apply_transpose(X, V))
    return statistics.gram_apply(X, V)


def _turned(X: Centered) -> Centered | None:
    """Return X', not centred, of sparse data here: products with XX' then read the data once, as those with X'X do."""
    if not isinstance(X.rows, SparseRows) or X.dense_tiles or X.factor is not None:
        return None
    return Centered(X.rows.transposed()) if X.rows.nbytes <= COPIED * budget.available_bytes() else None


def _apply_turned(turned: Centered, V: Array) -> Array:
    """Return XX' V of centred X: the mean is what XX' has along the ones, on both sides."""
    image = statistics.gram_apply(turned, V - V.mean(axis=0))
    return image - image.mean(axis=0)


@dataclass(frozen=True)
class Leading:
    """What was found, and how good it is."""

    values: Array  # (k,), descending
    V: Array  # (p, k)
    certificate: Certificate
    result: Result


@dataclass(frozen=True)
class _Found:
    """Vectors of an attempt, in the basis in which their scores are uncorrelated."""

    V: Array  # (p, k)
    values: Array  # (k,), sums of squares of the scores, descending
    measured: certificates.Images
    floor: Array  # (k,)

    def leading(self, k: int) -> _Found:
        """Return the first k."""
        images = certificates.Images(self.measured.images[:, :k], self.measured.gram[:k, :k])
        return _Found(self.V[:, :k], self.values[:k], images, self.floor[:k])

    @property
    def outside(self) -> Array:
        """The part of SV outside the span of V, (p, k)."""
        return self.measured.images - self.V @ (self.V.T @ self.measured.images)


def leading_roughly(
    apply: Callable[[Array], Array], size: int, k: int, rng: np.random.Generator, *, tol: float, most: int
) -> tuple[Array, Array]:
    """Return up to k leading eigenvalues, descending, and their vectors (size, k), for where to begin: not certified.

    The residual that the iteration reckons is at most ``tol``, unless that takes more than some ``most`` products.
    """
    begin = krylov.start(size, k, rng)
    columns = min(krylov.BASIS_COLUMNS, (most + 1) * begin["block"].shape[1])  # there will be no more
    steps = krylov.krylov(apply, begin, k=k, total=0.0, columns=columns)
    value = settled(steps, tol=tol, max_iter=most).value
    return value["values"], krylov.vectors(value)


def leading_of_matrix(S: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues of a matrix S, in descending order, and their vectors (p, k): not certified.

    By Krylov iteration, to ENOUGH, where that is likely to take less time than LAPACK; by LAPACK if it does not.
    """
    p = len(S)
    most = LAPACK_SECONDS * p**3 / (STEP_SECONDS[0] + STEP_SECONDS[1] * p**2)  # steps that take as long as LAPACK
    block = krylov.block_size(k, p)
    if k > FEW * p or most * block < MARGIN * (k + STEPS_BEYOND * block):
        return leading_eigenpairs(S, k)
    begin, before = krylov.start(p, k, np.random.default_rng(p)), (0, np.inf)
    for state in krylov.krylov(S.__matmul__, begin, k=k, total=0.0):
        if state.residual <= ENOUGH:
            return state.value["values"], krylov.vectors(state.value)
        needed = state.iteration
        if state.residual < before[1] < np.inf:  # if it goes on falling as it does
            pace = (state.iteration - before[0]) / np.log(before[1] / state.residual)
            needed += pace * np.log(state.residual / ENOUGH)
        if state.iteration > most or (state.iteration * block > k + STEPS_BEYOND * block and needed > most):
            break
        before = (state.iteration, state.residual)
    return leading_eigenpairs(S, k)


def leading(
    S: Operator,
    k: int,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    drive: Callable[..., Result] = run,
    start: Array | None = None,
) -> Leading:
    """Return the k leading eigenpairs of S; ``start`` (p, k) are vectors to begin with.

    ``drive`` is `princomp.result.run`, if need be with the user's callback and checkpoint.
    """
    if start is None:
        begin = krylov.start(S.size, k, rng, rough=S.in_single is not None, sparse=S.sparse)
    else:
        begin = krylov.again(S.directions(start), np.zeros((S.size, 0)))
    steps = partial(krylov.krylov, S.apply, k=k, total=S.trace, rough=S.in_single, growth=S.growth)
    seed, residual, captured, stale = int(rng.integers(2**31)), np.inf, 0.0, 0
    before: Result | None = None
    for attempt in range(ATTEMPTS):
        before = result = drive(steps, begin, tol=tol, max_iter=max_iter, scope="global", warns=False).after(before)
        iteration = result.n_iter
        rng = np.random.default_rng([seed, iteration])  # the same after a restart
        found = S.measured(_complete(S.vectors(result.value), k, rng)).leading(k)
        certificate, fresh = _certified(found, S, tol, rng, MISS / 2 ** (attempt + 1))
        if certificate.holds and found.values.sum() > (1 + TIE) * captured and k < S.size:
            captured = float(found.values.sum())
            fresh = _for_ties(found.values, krylov.block_size(k, S.size, sparse=S.sparse), S.size, rng)
        stale = stale + 1 if certificate.dominant is None and certificate.residual > STALE * residual else 0
        if not result.status or (certificate.holds and fresh is None) or stale > PATIENCE:
            break
        residual = min(certificate.residual, residual) if certificate.dominant is None else np.inf
        begin = _next(found, S, certificate, fresh, iteration, in_double=stale > 0)
    status = _status(result.status, certificate)
    return Leading(found.values, found.V, certificate, replace(result, certificate=certificate, status=status))


def _complete(V: Array, k: int, rng: np.random.Generator) -> Array:
    """Return k vectors or more, random ones after those that there are: an attempt that was stopped may have fewer."""
    if V.shape[1] >= k:
        return V
    return np.hstack([V, krylov.orthonormal(rng.standard_normal((len(V), k - V.shape[1])), V)])


def uncorrelated(gram: Array) -> Array:
    """Return eigenvectors (k, k) of a Gram matrix, largest first, small ones to their own digits.

    Its eigenvalues may differ by more than float64 has digits. Those of the matrix in units of its diagonal do not:
    one-sided Jacobi rotations of its Cholesky factor (Drmac & Veselic, SIAM J. Matrix Anal. Appl. 2008) keep them.
    """
    from scipy.linalg.lapack import dgejsv, dpotrf

    diagonal = np.diag(gram)
    if diagonal.min(initial=np.inf) < 1e-6 * diagonal.max(initial=0.0):
        order = np.argsort(diagonal)[::-1]
        factor, info = dpotrf(gram[np.ix_(order, order)], clean=True)
        if info == 0:
            _, _, W, _, _, info = dgejsv(factor, joba=0, jobu=3, jobv=0)
            if info == 0:
                return np.asarray(W[np.argsort(order)])
    return leading_eigenpairs(gram, len(gram))[1]


def _certified(
    found: _Found, S: Operator, tol: float, rng: np.random.Generator, miss: float
) -> tuple[Certificate, Array | None]:
    """Return the certificate and, if something larger was left out, directions of it.

    ``miss`` is the probability that this probe may miss something: those of all attempts add up to what is stated.
    """
    certificate = certificates.certify(found.V, found.values, found.measured, tol=tol, floor=found.floor)
    if not certificate.holds:
        return certificate, None
    left = S.trace - float(found.values.sum()) + float(found.floor.max())
    how: dict[str, Any] = {"floor": float(found.floor[-1]), "left": left, "miss": miss, "rough": S.in_single}
    how["block"] = SPARSE_BLOCK if S.sparse else BLOCK
    left_out = certificates.probe(S.apply, S.directions(found.V), found.values, tol, rng, **how)
    certificate = certificates.and_dominance(certificate, found.values, left_out)
    return certificate, None if certificate.holds else left_out.vectors


def _for_ties(values: Array, block: int, size: int, rng: np.random.Generator) -> Array | None:
    """Return random directions, if as many values tie as a block has vectors, and smaller ones were kept after them."""
    tied = values[: max(len(values) - block, 0)] <= values[block - 1 : -1] * (1 + TIE)
    smaller = values[-1] * (1 + TIE) < values[block - 1 : -1]
    return rng.standard_normal((size, block)) if (tied & smaller).any() else None


def _next(
    found: _Found, S: Operator, certificate: Certificate, fresh: Array | None, iteration: int, *, in_double: bool
) -> Value:
    """Return where the next attempt begins."""
    residuals, tol = np.asarray(certificate.details["residuals"]), certificate.tol
    good = residuals <= _needed(found, tol)
    q = _to_lock(found.values, good)
    V, outside, late = found.V, found.outside, ~good[q:]
    new = np.zeros((S.size, 0)) if fresh is None else fresh
    extra = int(certificate.holds and len(found.values) < S.size)
    distance = float(found.floor[0]) / np.sqrt(max(found.values[0], np.finfo(float).tiny))
    how: dict[str, Any] = {"least": distance**2 / tol if tol > 0 else 0.0, "extra": extra, "iteration": iteration}
    if S.to_directions is not None:
        U = S.directions(V)
        return krylov.again(np.hstack([U[:, q:], new]), U[:, :q], **how)
    rough = S.in_single is not None and not in_double and q == 0 and bool(residuals.max() < MIXED)
    if not (late.any() or new.shape[1]):  # all that is left to do is to lock: there must be something to multiply
        late[:] = True
    vectors, known = np.hstack([outside[:, q:][:, late], new]), (V[:, q:], found.values[q:])
    return krylov.again(vectors, V[:, :q], known, rough=rough, **how)


def _needed(found: _Found, tol: float) -> Array:
    """Return the residuals (k,) that are small enough to be left alone.

    What is missing of a leading vector appears in its complement with the square of its residual times its value,
    beside which the last component must still be seen; down to what can be measured.
    """
    values = np.maximum(found.values, np.finfo(float).tiny)
    seen = np.sqrt(LATE * tol * values[-1] / values)
    hidden = np.divide(found.floor, values, out=np.ones(len(values)), where=found.floor < values)
    return np.minimum(LATE * tol, np.maximum(seen, hidden))


def _to_lock(values: Array, good: Array) -> int:
    """Return how many leading components are found for good, if others lie so far below that they hide them."""
    if values[-1] >= krylov.GRADE * values[0]:
        return 0
    return int(np.cumprod(good[:-1]).sum())


def _status(status: Status, certificate: Certificate) -> Status:
    """Return why the fit ended, by what was measured."""
    if certificate.holds:
        return Status("converged", f"Converged: {certificate}")
    if status:
        status = Status("no progress", f"No step leads further: {certificate} Accept this accuracy with a larger tol.")
    warn(status, certificate.tol)
    return status
