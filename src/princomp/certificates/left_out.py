"""What was left out: nothing larger than what was kept, exactly or but for a small, stated probability.

Operators that can only be multiplied with are probed by block Lanczos iteration from fresh random vectors (Kuczynski &
Wozniakowski, SIAM J. Matrix Anal. Appl. 1992). Let A be positive semidefinite of order d, l its largest eigenvalue, and
x the largest Ritz value after m products with b random vectors. With cosh(h) = 2 l / x - 1, a Chebyshev polynomial of
the fourth kind shows: if the leading eigenvector lies in the span of the b vectors up to an angle whose squared cosine
is more than 1 / cosh((m - 1/2) h)^2, then the Ritz value is larger than x. That squared cosine has the distribution
Beta(b / 2, (d - b) / 2). So to a small probability belongs a cosine, to that an h, and to x the bound
l <= x (1 + cosh(h)) / 2.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from princomp._typing import Array

Operator = Callable[[Array], Array]  # V (p, k) -> S V (p, k)

MISS = 1e-3  # the probability of a miss that is stated
LEFT_OUT = 0.1  # how much larger than the last one kept what was left out may be
# Random vectors at a time: of dense data, more need fewer products, each of which costs more than that saves; products
# with sparse data cost no more for eight.
BLOCK, SPARSE_BLOCK = 4, 8
# Directions left out up to which one product with all of them tells exactly: fits of 2000 x 20 to 200 000 x 60 took
# 0.82 to 0.9 times as long as by Lanczos iteration, which sees most of them, too; 20 000 x 100 with 90 left out 1.05.
ALL_AT_ONCE = 64
STEPS = 30  # more than any bound of LEFT_OUT takes
LOST = 1e-10  # of a column, when the rest is taken away: no digits of it are left
ROUGH_ERROR = 5e-6  # of a product in single precision, relative to the leading value
ROUGH_SHARE = 1e-2  # of the last value kept that such an error may be


@dataclass(frozen=True)
class LeftOut:
    """The largest eigenvalue of what was left out."""

    found: float  # it is at least this large
    bound: float  # and at most this
    miss: float = 0.0  # but for this probability
    vectors: Array | None = None  # (p, b), the directions of the largest that were found

    def dominated_by(self, last: float, tol: float, floor: float) -> bool:
        """Tell whether nothing larger than the last value kept was left out, its relative accuracy being ``tol``."""
        seen = self.found <= last * (1 + tol) + floor
        return bool(seen and self.bound <= last * (1 + max(LEFT_OUT, tol)) + floor and self.miss <= MISS)


def left_out_of_values(rest: Array) -> LeftOut:
    """Return what is left out if all eigenvalues are known."""
    largest = max(float(rest.max(initial=0.0)), 0.0)
    return LeftOut(largest, largest)


def left_out_of_matrix(S: Array, V: Array, values: Array, tol: float, floor: float) -> LeftOut:
    """Return what eigenvectors V (p, k) leave out of a matrix S (p, p): one Cholesky factorisation tells.

    t - S, without the part of S along V, is positive definite if and only if nothing as large as t was left out.
    """
    from scipy.linalg.lapack import dpotrf

    if V.shape[1] == len(V):
        return LeftOut(0.0, 0.0)
    bound = float(values[-1]) * (1 + tol) + floor
    rest = (V * values) @ V.T
    rest -= S
    rest[np.diag_indices_from(rest)] += bound
    if bound > 0 and dpotrf(rest, overwrite_a=True, clean=False)[1] == 0:
        return LeftOut(0.0, bound)
    largest, vectors = np.linalg.eigh(S - (V * values) @ V.T)
    return LeftOut(float(largest[-1]), float(largest[-1]), vectors=vectors[:, ::-1][:, :BLOCK])


def probe(
    apply: Operator,
    V: Array,
    values: Array,
    tol: float,
    rng: np.random.Generator,
    *,
    floor: float = 0.0,
    rough: Operator | None = None,
    left: float = np.inf,
    miss: float = MISS,
    block: int = BLOCK,
) -> LeftOut:
    """Look for what V (p, k), with ``values``, leaves out of the positive semidefinite operator ``apply``.

    ``rough`` is the same operator in single precision, ``left`` the sum of all eigenvalues left out, where it is known.
    The probability of a miss is at most ``miss``, if that is below MISS: MISS is stated, for all probes of a fit.
    """
    leading, last = max(float(values[0]), 0.0), max(float(values[-1]), 0.0)
    room = len(V) - V.shape[1]
    limit = last * (1 + tol) + floor
    if room == 0 or left <= limit:
        return LeftOut(0.0, max(left, 0.0) if room else 0.0)
    error = ROUGH_ERROR * leading
    if rough is None or error > ROUGH_SHARE * last:
        return _lanczos(apply, V, last, limit, floor, rng, miss, block)
    answer = _lanczos(rough, V, last, limit - error, floor, rng, miss, block, error)
    if answer.found <= limit - error or answer.vectors is None:
        return answer
    # Perhaps something larger: single precision cannot tell.
    W = answer.vectors
    sure = float(np.linalg.eigvalsh(W.T @ apply(W))[-1])
    if sure > limit:
        return replace(answer, found=sure)
    return _lanczos(apply, V, last, limit, floor, rng, miss, block)


def _lanczos(
    apply: Operator,
    V: Array,
    last: float,
    limit: float,
    floor: float,
    rng: np.random.Generator,
    miss: float,
    block: int,
    error: float = 0.0,
) -> LeftOut:
    """Multiply until something above ``limit`` is found, or is known not to be there."""
    p, room = len(V), len(V) - V.shape[1]
    b = room if room <= ALL_AT_ONCE else block
    basis, projected, most = np.zeros((p, 0)), np.zeros((0, 0)), last * (1 + LEFT_OUT) + floor
    Q = _orthonormal(rng.standard_normal((p, b)), V, basis)
    for step in range(1, STEPS + 1):
        image = apply(Q).astype(np.float64, copy=False)
        basis = np.hstack([basis, Q])
        column = basis.T @ image
        m = len(column)
        grown = np.zeros((m, m))
        grown[: m - b, : m - b] = projected
        grown[:, m - b :], grown[m - b :, :] = column, column.T
        projected = (grown + grown.T) / 2
        following, excess = min(b, room - m), _excess(room, Q.shape[1], step, miss) if room > m else 1.0
        surely = float(np.diag(projected).max())  # a value is at least this
        if surely > limit or surely * excess + error <= most or following == 0 or step == STEPS:
            largest, Y = np.linalg.eigh(projected)
            found, vectors = float(largest[-1]), basis @ Y[:, ::-1][:, :block]
            if found > limit:
                return LeftOut(found, np.inf, 1.0, vectors)
            if following == 0:
                return LeftOut(found, found + error)
            if found * excess + error <= most or step == STEPS:
                return LeftOut(found, found * excess + error, MISS, vectors)
        b = following
        Q = _orthonormal(image[:, :b], V, basis)
    raise AssertionError("the last step returns")


def _excess(room: int, b: int, steps: int, miss: float) -> float:
    """Return by what factor the largest eigenvalue may exceed the largest Ritz value, but for the probability."""
    from scipy.special import betaincinv

    part = float(betaincinv(b / 2, (room - b) / 2, min(miss, MISS)))
    angle = np.arccosh(max(part, 1e-300) ** -0.5) / (steps - 0.5)
    return float((1 + np.cosh(min(angle, 300.0))) / 2)


def _orthonormal(W: Array, V: Array, basis: Array) -> Array:
    """Return an orthonormal basis of W, orthogonal to V and to the basis."""
    known = np.hstack([V, basis])
    for _ in range(3):
        before = np.linalg.norm(W, axis=0)
        for _ in range(2):  # twice is enough
            W = W - known @ (known.T @ W)
        W, R = np.linalg.qr(W)
        if (np.abs(np.diag(R)) > LOST * before).all():
            break  # else QR had to make up a column out of rounding, which need not be orthogonal
    return W
