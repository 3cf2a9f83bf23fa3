"""The k leading eigenpairs of S = X'X, certified: Krylov iteration, measured, and taken up again where it falls short.

Objective: maximise tr(V'SV) over orthonormal V (p, k). An attempt ends by the residual that block Lanczos iteration
reckons (`princomp.solvers.krylov`). Then one pass over the data measures its vectors, a probe from fresh random vectors
looks at what they leave out (`princomp.certificates`), and the next attempt goes on with what was found:

- vectors whose residual is too large, with the products that the pass has made;
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
from numpy.typing import NDArray

from princomp import certificates
from princomp.certificates.left_out import BLOCK, MISS, SPARSE_BLOCK
from princomp.data import Centered, statistics
from princomp.result import Certificate, Result, Status, Value, warn
from princomp.solvers import krylov
from princomp.solvers.eigh import leading_eigenpairs, svd_of_projection

Array = NDArray[Any]

ATTEMPTS = 20
TIE = 1e-6  # values this close, relatively, count as copies of one
LATE = 0.5  # of tol: components of a smaller residual need no further products
STALE = 0.5  # an attempt that leaves this much of the residual has led nowhere
PATIENCE = 3  # such attempts in a row
MIXED = 1e-2  # a residual from which single precision is enough for the corrections: their errors are that much smaller


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


def leading(
    X: Centered,
    k: int,
    *,
    total: float,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    drive: Callable[..., Result],
    measure: Callable[[Array], certificates.Images],
    start: Array | None = None,
) -> Leading:
    """Return the k leading eigenpairs of X'X, whose trace is ``total``; ``start`` (p, k) are vectors to begin with.

    ``drive`` is `princomp.result.run` with the user's callback and checkpoint; ``measure`` is the pass over the data.
    """
    n, p = X.shape
    rough = krylov.may_begin_roughly(n, p, total, certificates.taken_off(X))
    side = _Side(X, by_rows=p > krylov.WIDE * n, rough=rough)
    if start is None:
        begin = krylov.start(side.size, k, rng, rough=side.single is not None, sparse=X.rows.sparse)
    else:
        begin = krylov.again(side.own(start), np.zeros((side.size, 0)))
    steps = partial(krylov.krylov, side.apply, k=k, total=total, rough=side.apply_in_single)
    seed, residual, captured, stale = int(rng.integers(2**31)), np.inf, 0.0, 0
    before: Result | None = None
    for attempt in range(ATTEMPTS):
        before = result = drive(steps, begin, tol=tol, max_iter=max_iter, scope="global", warns=False).after(before)
        iteration = result.n_iter
        rng = np.random.default_rng([seed, iteration])  # the same after a restart
        found = _measured(X, measure, _complete(side.columns(result.value), k, rng)).leading(k)
        certificate, fresh = _certified(found, side, total, tol, rng, MISS / 2 ** (attempt + 1))
        if certificate.holds and found.values.sum() > (1 + TIE) * captured and k < side.size:
            captured = float(found.values.sum())
            fresh = _for_ties(found.values, krylov.block_size(k, side.size, sparse=X.rows.sparse), side.size, rng)
        stale = stale + 1 if certificate.dominant is None and certificate.residual > STALE * residual else 0
        if not result.status or (certificate.holds and fresh is None) or stale > PATIENCE:
            break
        residual = min(certificate.residual, residual) if certificate.dominant is None else np.inf
        begin = _next(found, side, certificate, fresh, iteration, in_double=stale > 0)
    status = _status(result.status, certificate)
    return Leading(found.values, found.V, certificate, replace(result, certificate=certificate, status=status))


class _Side:
    """The side on which the iteration lives: columns, vectors of length p, or rows, of length n, if they are fewer."""

    def __init__(self, X: Centered, *, by_rows: bool, rough: bool) -> None:
        self.X, self.by_rows = X, by_rows
        self.single = X.in_single() if rough else None
        self.size = X.shape[0 if by_rows else 1]
        self.apply = partial(_apply, X, by_rows)
        self.apply_in_single = None if self.single is None else partial(_apply, self.single, by_rows)

    def columns(self, value: Value) -> Array:
        """Return orthonormal vectors (p, m) of a state."""
        W = krylov.vectors(value)
        if value["locked"].shape[1]:
            W = np.linalg.qr(np.hstack([value["locked"], W]))[0]
        return svd_of_projection(statistics.apply_transpose(self.X, W))[1] if self.by_rows else W

    def own(self, V: Array) -> Array:
        """Return vectors (p, m), orthonormal, as orthonormal directions of this side."""
        return np.linalg.qr(np.asarray(statistics.apply(self.X, V)))[0] if self.by_rows else V


def _apply(X: Centered, by_rows: bool, V: Array) -> Array:
    """Return X'X V, or XX' V."""
    if by_rows:
        product = np.asarray(statistics.apply(X, statistics.apply_transpose(X, V)))
        return product
    return statistics.gram_apply(X, V)


def _complete(V: Array, k: int, rng: np.random.Generator) -> Array:
    """Return k vectors or more, random ones after those that there are: an attempt that was stopped may have fewer."""
    if V.shape[1] >= k:
        return V
    return np.hstack([V, krylov.orthonormal(rng.standard_normal((len(V), k - V.shape[1])), V)])


def _measured(X: Centered, measure: Callable[[Array], certificates.Images], V: Array) -> _Found:
    """Return what the vectors span, in the basis in which their scores are uncorrelated."""
    measured = measure(V)
    Q = uncorrelated(measured.gram)
    V, R = np.linalg.qr(V @ Q)  # orthonormal to the last digit
    V = V * np.where(np.diag(R) < 0, -1.0, 1.0)
    measured = measured.rotated(Q)
    values = np.maximum(np.diag(measured.gram), 0.0)
    return _Found(V, values, measured, certificates.floor_of_data(X, values))


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
    found: _Found, side: _Side, total: float, tol: float, rng: np.random.Generator, miss: float
) -> tuple[Certificate, Array | None]:
    """Return the certificate and, if something larger was left out, directions of it.

    ``miss`` is the probability that this probe may miss something: those of all attempts add up to what is stated.
    """
    certificate = certificates.certify(found.V, found.values, found.measured, tol=tol, floor=found.floor)
    if not certificate.holds:
        return certificate, None
    left_out = certificates.probe(
        side.apply,
        side.own(found.V),
        found.values,
        tol,
        rng,
        floor=float(found.floor[-1]),
        rough=side.apply_in_single,
        left=total - float(found.values.sum()) + float(found.floor.max()),
        miss=miss,
        block=SPARSE_BLOCK if side.X.rows.sparse else BLOCK,
    )
    certificate = certificates.and_dominance(certificate, found.values, left_out)
    return certificate, None if certificate.holds else left_out.vectors


def _for_ties(values: Array, block: int, size: int, rng: np.random.Generator) -> Array | None:
    """Return random directions, if as many values tie as a block has vectors, and smaller ones were kept after them."""
    tied = values[: max(len(values) - block, 0)] <= values[block - 1 : -1] * (1 + TIE)
    smaller = values[-1] * (1 + TIE) < values[block - 1 : -1]
    return rng.standard_normal((size, block)) if (tied & smaller).any() else None


def _next(
    found: _Found, side: _Side, certificate: Certificate, fresh: Array | None, iteration: int, *, in_double: bool
) -> Value:
    """Return where the next attempt begins."""
    residuals, tol = np.asarray(certificate.details["residuals"]), certificate.tol
    good = residuals <= _needed(found, tol)
    q = _to_lock(found.values, good)
    V, outside, late = found.V, found.outside, ~good[q:]
    new = np.zeros((side.size, 0)) if fresh is None else fresh
    extra = int(certificate.holds and len(found.values) < side.size)
    distance = float(found.floor[0]) / np.sqrt(max(found.values[0], np.finfo(float).tiny))
    how: dict[str, Any] = {"least": distance**2 / tol if tol > 0 else 0.0, "extra": extra, "iteration": iteration}
    if side.by_rows:
        U = side.own(V)
        return krylov.again(np.hstack([U[:, q:], new]), U[:, :q], **how)
    rough = side.single is not None and not in_double and q == 0 and bool(residuals.max() < MIXED)
    if not (late.any() or new.shape[1]):  # all that is left to do is to lock: there must be something to multiply
        late[:] = True
    return krylov.go_on(V[:, q:], found.values[q:], outside[:, q:][:, late], new, locked=V[:, :q], rough=rough, **how)


def _needed(found: _Found, tol: float) -> Array:
    """Return the residuals (k,) that are small enough to be left alone.

    What is missing of a leading vector appears in its complement with the square of its residual times its value,
    beside which the last component must still be seen; down to what can be measured.
    """
    values = np.maximum(found.values, np.finfo(float).tiny)
    seen = np.sqrt(LATE * tol * values[-1] / values)
    return np.minimum(LATE * tol, np.maximum(seen, found.floor / values))


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
        status = Status("stopped", f"No step leads further: {certificate} Accept this accuracy with a larger tol.")
    warn(status)
    return status
