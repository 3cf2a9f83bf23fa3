"""Principal component pursuit (Candès, Li, Ma & Wright, J. ACM 2011) by augmented Lagrangian (Lin, Chen & Ma 2010).

Objective: minimise |L|_* + alpha |S| over L + S = X on the cells that are observed, where |S| sums up magnitudes of
cells (`Cells`), or norms of rows (`Rows`: outlier pursuit, Xu, Caramanis & Sanghavi, IEEE Trans. Inf. Theory 2012).

With a multiplier Y and a weight mu, a step is

    L = the values of X - S + Y/mu above 1/mu, each less 1/mu,
    S = shrink(X - L + Y/mu, alpha/mu),
    Y += mu (X - L - S),

where X - L is relaxed in the last two (Eckstein & Bertsekas 1992): relax (X - L) + (1 - relax) S. All of S and Y is in
M = X - L + Y/mu, of which S is what lies beyond alpha/mu, and Y/mu the rest: no other array as large as X is kept, and
Y never leaves its bounds. On cells that are missing Y = 0, and S is whatever L leaves.

mu grows by a factor up to a weight at which multipliers still move: one that grows on would end at some L and S, with
no Y that proves them. Singular vectors of X - S + Y/mu are found from those of the step before, by one pass there and
back (subspace iteration), as many as were above 1/mu and some more; where that is a large part of all, by X'X.

A value holds "M" (n, p), "U" (n, r), "values" (r,) and "V" (p, b): L = U diag(values) V[:, :r]'; "mu", that of M, and
"cap", up to which it grows, "factor", by which that changes, and "turn", the sense in which it did; "block", how many
vectors the next step asks for, and "exact", whether it wants all; "share", of |X - L - S|, by which mu the spectral
norm of Y was beyond 1 when it was looked at, "norm", what it was then; "seed" and "iteration".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.certificates.pursuit import norm_bound
from princomp.result import State, Value

# Tuned on L of rank .05 n and S of +-1 on 5 and 10 % of cells, n = 300 and 500, seed 0: growth 1.5 to 2 and relax 1.2
# to 1.4 need 16 or 17 steps up to a gap of 1e-6, relax 1 needs 20, and growth 3 lets the rank rise first.
GROWTH = 1.5
RELAX = 1.3
BEGIN = 1.25  # times 1/|X|: mu at first
CAP = 0.25  # divided by the mean of |X|: where mu stays at first, the weight of Candès et al.
# How far L + S is from X, relative to the smaller of L and S, over how far S has moved, relative to Y/mu: between these
# mu is well chosen. Tuned on synthetic video with and without noise, pure noise, an offset of 1000, a column of numbers
# 1e6 to 4e8, where one mu for all would need thousands of steps, and tall tables with noise, 4000 x 24 and 5000 x 20:
# these need 400 to 600 steps, and twice as many between 0.1 and 3, where mu stays too small.
SLACK, TIGHT = 1.5, 0.03
EVERY = 5  # steps: how often that is looked at
WHOLE = 64  # singular values, up to which all are found
LARGE = 0.4  # of all singular vectors: more are found by X'X
MORE, SPARE = 0.1, 8  # vectors beyond those above 1/mu: a share of them, and so many
FIRST = 0.1  # of all: vectors of the first steps
WELL = 1e-3  # smallest eigenvalue of a Gram matrix with ones on its diagonal by which vectors are orthogonalised
SQUARES = 1e-6  # of the largest singular value: those below are not known from squares
NOTHING = 1e-13  # of the largest singular value: those below are rounding
LOOK, AGAIN = 2.0, 10  # times tol, and steps: where the spectral norm of Y is looked at
LITTLE = 1e-3  # the least share that is believed
MARGIN = 0.1  # of tol, by which a norm that products tell is taken for larger


@dataclass(frozen=True)
class Cells:
    """|S| = the sum of magnitudes of cells, of which missing ones (NaN in X) cost nothing."""

    X: Array

    def split(self, M: Array, bound: float) -> tuple[Array, Array]:
        """Return Z and S with M = Z + S: what lies within the bound, and what lies beyond."""
        Z = np.where(np.isnan(self.X), 0.0, np.clip(M, -bound, bound))
        return Z, M - Z

    def penalty(self, S: Array) -> float:
        """Return |S|, of observed cells."""
        return float(np.abs(np.where(np.isnan(self.X), 0.0, S)).sum())

    def sizes(self, R: Array) -> Array:
        """Return what of R is large or small as one: magnitudes of cells (n, p)."""
        return np.abs(R)

    def fill(self, M: Array, bound: float, ratio: float, out: Array) -> None:
        """Put X - S + ratio Z into ``out``."""
        if compiled := loops("pursuit_cells"):
            compiled.fill(self.X, M, bound, ratio, out)
        else:
            _fill(self, M, bound, ratio, out)

    def dual(self, M: Array, bound: float, mu: float, out: Array) -> None:
        """Put Y = mu Z into ``out``."""
        if compiled := loops("pursuit_cells"):
            compiled.dual(self.X, M, bound, mu, out)
        else:
            out[...] = mu * self.split(M, bound)[0]

    def move(self, L: Array, M: Array, before: float, ratio: float, bound: float) -> tuple[Array, Array]:
        """Return the next M and sums over observed cells.

        They are |X - L - S|^2, |X - L|, <X, Z>, |S - S before|^2, |S|^2, |Z|^2.
        """
        if compiled := loops("pursuit_cells"):
            M, sums = compiled.move(self.X, L, M, before, ratio, RELAX, bound)
            return M, sums
        return _move(self, L, M, before, ratio, bound)


@dataclass(frozen=True)
class Rows:
    """|S| = the sum of norms of rows; no cell is missing."""

    X: Array

    def split(self, M: Array, bound: float) -> tuple[Array, Array]:
        """Return Z and S with M = Z + S: rows shortened to the bound, and what lies beyond."""
        norms = np.linalg.norm(M, axis=1, keepdims=True)
        within = np.minimum(1.0, bound / np.where(norms > 0, norms, bound))
        return M * within, M * (1.0 - within)

    def penalty(self, S: Array) -> float:
        """Return |S|."""
        return float(np.linalg.norm(S, axis=1).sum())

    def sizes(self, R: Array) -> Array:
        """Return what of R is large or small as one: norms of rows (n, 1)."""
        return np.asarray(np.linalg.norm(R, axis=1, keepdims=True))

    def fill(self, M: Array, bound: float, ratio: float, out: Array) -> None:
        """Put X - S + ratio Z into ``out``."""
        _fill(self, M, bound, ratio, out)

    def dual(self, M: Array, bound: float, mu: float, out: Array) -> None:
        """Put Y = mu Z into ``out``."""
        out[...] = mu * self.split(M, bound)[0]

    def move(self, L: Array, M: Array, before: float, ratio: float, bound: float) -> tuple[Array, Array]:
        """Return the next M and sums: |X - L - S|^2, |X - L|, <X, Z>, |S - S before|^2, |S|^2, |Z|^2."""
        return _move(self, L, M, before, ratio, bound)


Parts = Cells | Rows


def _fill(parts: Parts, M: Array, bound: float, ratio: float, out: Array) -> None:
    Z, S = parts.split(M, bound)
    out[...] = np.nan_to_num(parts.X) - S + ratio * Z


def _move(parts: Parts, L: Array, M: Array, before: float, ratio: float, bound: float) -> tuple[Array, Array]:
    X, seen = np.nan_to_num(parts.X), ~np.isnan(parts.X)
    Z, S = parts.split(M, before)
    moved = RELAX * (X - L) + (1 - RELAX) * S + ratio * Z
    Z, new = parts.split(moved, bound)
    apart, change, kept = (part * seen for part in (X - L - new, new - S, new))
    squares = [float(np.vdot(part, part)) for part in (apart, change, kept, Z)]
    return moved, np.array([squares[0], parts.penalty(X - L), np.vdot(X, Z), *squares[1:]])


# The value


def start(parts: Parts, seed: int) -> dict[str, Array]:
    """Return the value before the first step: L = 0."""
    X, (n, p), seen = parts.X, parts.X.shape, parts.X.size
    if not np.isfinite(np.vdot(X, X)):
        X, seen = np.nan_to_num(X), int((~np.isnan(X)).sum())
    top = _norm(X, np.random.default_rng(seed).standard_normal((p, 4)), 4)
    mean = float(np.abs(X).sum()) / max(seen, 1)
    first = BEGIN / top if top else 1.0
    return {
        "M": np.array(X),
        "U": np.zeros((n, 0)),
        "values": np.zeros(0),
        "V": np.zeros((p, 0)),
        "mu": np.array(first),
        "cap": np.array(max(CAP / mean, first) if top else first),
        "factor": np.array(2.0),
        "turn": np.array(0),
        "block": np.array(min(max(SPARE, round(FIRST * min(n, p))), n, p)),
        "exact": np.array(False),
        "share": np.array(1.0 / np.sqrt(min(n, p))),
        "norm": np.array(1.0),
        "seed": np.array(seed),
        "iteration": np.array(0),
    }


def low_rank(value: Value) -> tuple[Array, Array]:
    """Return the factors of L, (n, r) and (r, p), of which the rows of the second are orthonormal."""
    return value["U"] * value["values"], value["V"][:, : len(value["values"])].T


def dual_point(parts: Parts, value: Value, alpha: float) -> Array:
    """Return Y (n, p), within its bounds as far as the spectral norm was known when it was looked at."""
    Y, mu = np.empty_like(parts.X), float(value["mu"])
    parts.dual(value["M"], alpha / mu, mu / max(1.0, float(value["norm"])), Y)
    return Y


# Steps


def pursuit(parts: Parts, value: Value, *, alpha: float, tol: float) -> Iterator[State]:
    """Yield states; the residual is the larger of the relative gap, as far as it is known, and of |X - L - S| / |X|."""
    size, A = float(np.sqrt(np.nansum(np.square(parts.X)))) or 1.0, np.empty_like(parts.X)
    while True:
        before, mu = float(value["mu"]), min(GROWTH * float(value["mu"]), float(value["cap"]))
        parts.fill(value["M"], alpha / before, before / mu, A)
        value = {**value, **leading(A, value, 1.0 / mu, grows=bool(mu < value["cap"]))}
        left, right = low_rank(value)
        np.matmul(left, right, out=A)
        M, sums = parts.move(A, value["M"], alpha / before, before / mu, alpha / mu)
        value |= {"M": M, "mu": np.array(mu), "iteration": value["iteration"] + 1}
        value |= _balanced(value, sums)
        apart = float(np.sqrt(sums[0]))
        primal, dual = float(value["values"].sum()) + alpha * float(sums[1]), mu * float(sums[2])
        residual = 0.0
        if primal:
            known = max(abs(primal - dual) / primal, apart / size)
            value |= _norm_of_dual(parts, value, alpha, mu * apart, known, tol, A)
            norm = max(1.0, float(value["norm"]))
            # Of Y beyond its bounds <X, Y> may be above primal, by just as much as a norm that is only foretold takes
            # away: so the norm itself has to be within tol, which one that is foretold is not.
            residual = max(known, abs(primal - dual / norm) / primal, norm - 1.0)
        yield State(value, primal, residual, int(value["iteration"]))


def _balanced(value: Value, sums: Array) -> dict[str, Array]:
    """Return another cap of mu where L + S stays further from X than S moves, or the other way round."""
    if value["iteration"] % EVERY or value["mu"] < value["cap"]:
        return {}
    apart, moved, S, Z = np.sqrt(sums[[0, 3, 4, 5]])
    smaller = min(S, np.linalg.norm(value["values"]))
    # Products, not ratios: S, or its move, may be zero.
    turn = int(apart * Z > SLACK * moved * smaller) - int(apart * Z < TIGHT * moved * smaller)
    if not turn:
        return {}
    factor = float(value["factor"])
    if turn * int(value["turn"]) < 0:
        factor = np.sqrt(factor)  # so that it comes to rest
    return {"cap": value["cap"] * factor**turn, "factor": np.array(factor), "turn": np.array(turn)}


def _norm_of_dual(
    parts: Parts, value: Value, alpha: float, moved: float, known: float, tol: float, Y: Array
) -> dict[str, Array]:
    """Return what the spectral norm of Y is, of which mu |X - L - S| = ``moved`` foretells something; Y is overwritten.

    It is looked at where all else is within ``tol``: by products with the vectors at hand, then, if these find it
    small enough, for sure. If that finds more, these vectors have missed something: all are asked for from then on.
    """
    beyond, mu = moved * float(value["share"]), float(value["mu"])
    now_and_then = value["iteration"] % AGAIN == 0
    if known > tol or not (beyond <= LOOK * tol or now_and_then):
        return {"norm": np.array(1.0 + max(beyond, LOOK * tol))}
    parts.dual(value["M"], alpha / mu, mu, Y)
    V = value["V"] if value["V"].shape[1] else np.ones((Y.shape[1], 1))
    norm, exact = _norm(Y, V, 1), value["exact"]
    if norm <= 1 + tol:
        Y /= max(norm, 1.0) * (1 + MARGIN * tol)
        more = norm_bound(Y)
        exact = exact | (more > 1)
        norm = max(norm, 1.0) * (1 + MARGIN * tol) * more
    share = max((norm - 1) / moved, LITTLE) if moved else LITTLE
    return {"norm": np.array(norm), "share": np.array(share), "exact": exact}


def _norm(X: Array, V: Array, rounds: int) -> float:
    """Return about the spectral norm of X, from below: power iteration from V (p, b), and the best of what it spans."""
    for _ in range(rounds):
        V = orthogonal(X.T @ (X @ V))
    return float(np.linalg.norm(X @ V, 2))


def leading(A: Array, value: Value, above: float, *, grows: bool) -> dict[str, Array]:
    """Return singular vectors of A of values above so much, less that, and what the next step begins with."""
    n, p = A.shape
    side, block = min(n, p), int(value["block"])
    if side <= WHOLE or block > LARGE * side or value["exact"]:
        U, values, V = of_all(A, above)
    else:
        U, values, V = of_some(A, _begun(value, p, block), above)
    kept = int((values > above).sum())
    needed = kept + max(SPARE, round(MORE * kept))
    if kept == len(values) < side:  # there may be more
        block = max(2 * block, needed)
    else:
        block = max(block, needed) if grows else needed
    block = min(block, side)
    return {"U": U[:, :kept], "values": values[:kept] - above, "V": V[:, :block], "block": np.array(block)}


def _begun(value: Value, p: int, block: int) -> Array:
    """Return the vectors (p, block) to begin with: those of the step before, and random ones."""
    V = value["V"][:, :block]
    if V.shape[1] == block:
        return V
    rng = np.random.default_rng([int(value["seed"]), int(value["iteration"])])
    return np.hstack([V, rng.standard_normal((p, block - V.shape[1])) / np.sqrt(p)])


def of_some(A: Array, V: Array, above: float) -> tuple[Array, Array, Array]:
    """Return singular vectors and values of A within the span of A V: one pass there and back."""
    Q = orthogonal(A @ V)
    U, values, V = of_all(Q.T @ A, above)
    return Q @ U, values, V


def of_all(A: Array, above: float) -> tuple[Array, Array, Array]:
    """Return singular vectors and values of A, falling: by the smaller of A'A and AA' where it knows enough digits."""
    if A.shape[0] < A.shape[1]:
        V, values, U = of_all(A.T, above)
        return U, values, V
    squares, V = np.linalg.eigh(A.T @ A)
    values, V = np.sqrt(np.maximum(squares[::-1], 0.0)), V[:, ::-1]
    if above < SQUARES * values[0]:
        U, values, Vt = np.linalg.svd(A, full_matrices=False)
        some = values > NOTHING * values[0]
        return U[:, some], values[some], Vt[some].T
    some = values > SQUARES * values[0]
    values, V = values[some], V[:, some]
    return (A @ V) / values, values, V


def orthogonal(W: Array) -> Array:
    """Return an orthonormal basis (n, b) of the columns of W: by W'W where they are nearly so."""
    norms = np.linalg.norm(W, axis=0)
    if norms.all():
        squares, E = np.linalg.eigh((W.T @ W) / np.outer(norms, norms))
        if squares[0] > WELL:
            return np.asarray(W @ (E / np.sqrt(squares) / norms[:, None]))
    return np.linalg.qr(W)[0]
