"""Randomised block Krylov iteration (Musco & Musco, NeurIPS 2015) as block Lanczos with thick restarts.

Objective: maximise tr(V' S V) over orthonormal V (p, k), S = X'X, using only products with S. References: block
Lanczos, Golub & Underwood 1977; thick restart, Wu & Simon, SIAM J. Matrix Anal. Appl. 2000. With the basis B, its
images satisfy S B = B T + Q C E', Q orthonormal to B and E the last columns; a Ritz pair (t, B y) of T therefore has
the residual |S B y - t B y| = |C y_last|, known without another product, and some eigenvalue lies that close to t.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.result import State, Value

Array = NDArray[Any]

# Few vectors per pass waste memory traffic, many waste the polynomial degree on which convergence rests.
LEAST_BLOCK = 8
# With p above this many times n the basis lives among rows, not columns: it is that much smaller.
WIDE = 8
# The small eigenproblem is solved again when the basis has grown by this share: else it would cost more than products.
GROWTH = 0.15
# Basis size at which to restart, unless k asks for more.
BASIS_COLUMNS = 600


def block_size(k: int, side: int) -> int:
    """Return how many vectors to multiply at a time for k eigenvectors of a matrix of this side."""
    return min(max(LEAST_BLOCK, -(-k // 2)), side)


def start(side: int, k: int, rng: np.random.Generator) -> Value:
    """Return the value before the first step: an empty basis and a random block."""
    Q, _ = np.linalg.qr(rng.standard_normal((side, block_size(k, side))))
    empty = np.zeros((side, 0))
    return {
        "basis": empty,
        "projected": np.zeros((0, 0)),
        "block": Q,
        "vectors": empty,
        "values": np.zeros(0),
        "residuals": np.zeros(0),
        "iteration": np.array(0),
    }


def krylov(apply: Callable[[Array], Array], value: Value, *, k: int, total: float) -> Iterator[State]:
    """Yield states that converge to the k leading eigenpairs of S.

    Parameters
    ----------
    apply : callable
        V (side, b) -> S V.
    value : mapping
        From `start`, or of an earlier state.
    k : int
        Number of eigenpairs.
    total : float
        Trace of S: the objective is what the k eigenvalues leave of it.

    Yields
    ------
    State
        ``value["vectors"]`` (side, k), ``["values"]`` (k,) descending, ``["residuals"]`` (k,).
    """
    B, T, Q = value["basis"], value["projected"], value["block"]
    iteration, side = int(value["iteration"]), len(Q)
    capacity = min(side, max(BASIS_COLUMNS, 6 * k))
    store = _store(B, capacity)
    checked = B.shape[1]
    while True:
        if B.shape[1] + Q.shape[1] > capacity and B.shape[1] > 0:
            B, T = _restart(B, T, k + Q.shape[1])
            store = _store(B, capacity)
            checked = B.shape[1]
            B = store[:, : B.shape[1]]
        m, b = B.shape[1], Q.shape[1]
        image = apply(Q)
        store[:, m : m + b] = Q
        B = store[:, : m + b]
        T, Q, coupling = _extend(B, T, image, iteration)
        iteration += 1
        m = B.shape[1]
        exhausted = Q.shape[1] == 0
        if exhausted or m >= max(k, checked * (1 + GROWTH)):
            checked = m
            ritz, Y = np.linalg.eigh(T)
            kept = slice(-1, -min(k, m) - 1, -1)
            values, Y = ritz[kept], Y[:, kept]
            residuals = np.linalg.norm(coupling @ Y[m - b :], axis=0) if not exhausted else np.zeros(len(values))
            state = {
                "basis": B,
                "projected": T,
                "block": Q,
                "vectors": B @ Y,
                "values": values,
                "residuals": residuals,
                "iteration": np.array(iteration),
            }
            largest = max(float(values[0]), np.finfo(float).tiny)
            worst = float(residuals.max()) / largest if len(values) == k else np.inf
            yield State(state, max(total - float(values.sum()), 0.0), worst, iteration)
            if exhausted:
                return


def _store(B: Array, capacity: int) -> Array:
    """Return room for the basis, column by column, with B in front."""
    store = np.empty((len(B), capacity), order="F")
    store[:, : B.shape[1]] = B
    return store


def _extend(B: Array, T: Array, image: Array, iteration: int) -> tuple[Array, Array, Array]:
    """Return (T of the grown basis, next block, its coupling) from S times the last columns of B."""
    m, b = B.shape[1], image.shape[1]
    inside = B.T @ image
    image = image - B @ inside
    correction = B.T @ image
    image -= B @ correction
    inside += correction
    grown = np.empty((m, m))
    grown[: m - b, : m - b] = T
    grown[:, m - b :] = inside
    grown[m - b :, : m - b] = inside[: m - b].T
    corner = inside[m - b :]
    grown[m - b :, m - b :] = (corner + corner.T) / 2
    return grown, *_next_block(B, image, float(np.abs(grown).max()), iteration)


def _next_block(B: Array, image: Array, size: float, iteration: int) -> tuple[Array, Array]:
    """Return orthonormal Q, orthogonal to B, and C with image = Q C."""
    Q, C = np.linalg.qr(image)
    left = len(B) - B.shape[1]  # directions that are left at all
    negligible = 1e-12 * max(size, np.finfo(float).tiny)
    if left >= image.shape[1] and (np.abs(np.diag(C)) > negligible).all():
        return Q, C
    # The Krylov space is exhausted in some directions: put random ones, orthogonal to B, in their place.
    from scipy.linalg import qr

    Q, C, order = qr(image, mode="economic", pivoting=True)
    C = C[:, np.argsort(order)]
    strong = int((np.linalg.norm(C, axis=1) > negligible).sum())
    fresh = np.random.default_rng(iteration).standard_normal((len(B), image.shape[1] - strong))
    Q = np.concatenate([Q[:, :strong], fresh], axis=1)[:, : min(left, image.shape[1])]
    for _ in range(2):
        Q, R = np.linalg.qr(Q - B @ (B.T @ Q))
        Q *= np.sign(np.diag(R))  # so that the strong columns stay what they were
    coupling = np.zeros((Q.shape[1], image.shape[1]))
    coupling[:strong] = C[:strong]
    return Q, coupling


def _restart(B: Array, T: Array, keep: int) -> tuple[Array, Array]:
    """Return the basis of the leading Ritz vectors and its projected matrix."""
    ritz, Y = np.linalg.eigh(T)
    leading = slice(-1, -min(keep, len(ritz)) - 1, -1)
    return np.asfortranarray(B @ Y[:, leading]), np.diag(ritz[leading])
