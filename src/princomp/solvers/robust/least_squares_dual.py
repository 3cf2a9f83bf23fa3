"""A point of the dual problem for a given pair, by least squares (Candès, Li, Ma & Wright, J. ACM 2011, section 2.5).

Objective: minimise |Y| such that Y = alpha sign(S) where S is not 0, Y = 0 on missing cells, U'Y = V' and YV = U, where
L = U diag(values) V'. If also |Y|_2 <= 1 and no cell of Y is beyond alpha, L and S have the least |L|_* + alpha |S|
of all that sum up to X. Cells beyond alpha are held within it, and the rest is sought again.

With P the projection on matrices UA' + BV', and Z zero on all cells that are not known, Y = UV' + Z - P(Z), where

    Z - P(Z) = what is known - UV'   on the cells that are known,

by conjugate gradients, in single precision; what they leave is measured in double precision, and sought again.
"""

from __future__ import annotations

import numpy as np

from princomp._typing import Array

INSIDE = 0.95  # times alpha: where cells are held that were beyond it
ROUNDS = 8
STEPS, SHARE = 12, 1e-3  # of conjugate gradients in a round at the most, and how much they need not find


def least_squares_dual(X: Array, U: Array, V: Array, S: Array, *, alpha: float, tol: float) -> Array:
    """Return Y (n, p), within alpha, for U (n, k) and V (p, k), orthonormal, and S (n, p); NaN in X is missing.

    Y is as near to what is asked of known cells as ``tol`` (relative), or as ``ROUNDS`` come.
    """
    known = (S != 0) | np.isnan(X)
    target, straight = alpha * np.sign(S), U @ V.T
    Z, Y, single = np.zeros_like(S), straight, (U.astype(np.float32), V.astype(np.float32))
    for _ in range(ROUNDS):
        beyond = (np.abs(Y) > alpha) & ~known
        target[beyond] = INSIDE * alpha * np.sign(Y[beyond])
        known |= beyond
        left = np.where(known, target - Y, 0.0)
        if not np.linalg.norm(left) > tol * np.linalg.norm(straight):
            break
        Z += _solved(*single, known, left.astype(np.float32))
        Y = straight + Z
        Y -= _projected(Z, U, V)
    return np.where(known, target, np.clip(Y, -alpha, alpha))


def _projected(Z: Array, U: Array, V: Array) -> Array:
    """Return the nearest UA' + BV' to Z."""
    left, right = Z @ V, U.T @ Z
    return np.hstack([U, left - U @ (right @ V)]) @ np.vstack([right, V.T])


def _solved(U: Array, V: Array, known: Array, residual: Array) -> Array:
    """Return Z, zero where nothing is known, with about Z - P(Z) = ``residual`` (overwritten) on known cells."""
    Z, direction = np.zeros_like(residual), residual.copy()
    begin = square = float(np.vdot(residual, residual))
    for _ in range(STEPS):
        image = direction - _projected(direction, U, V)
        image *= known
        curved = float(np.vdot(direction, image))
        if not curved > 0:
            break
        length = np.float32(square / curved)
        Z += length * direction
        residual -= length * image
        before, square = square, float(np.vdot(residual, residual))
        if square <= SHARE**2 * begin:
            break
        direction *= np.float32(square / before)
        direction += residual
    return Z
