"""Codes by a lasso: how far from optimal, from rows, atoms and codes alone.

With r = x - a D, the objective P(a) = 1/2 |r|^2 + l2/2 |a|^2 + sum_k limit_k |a_k| is that of the augmented problem
with rows (x, 0) and atoms (d_k, sqrt(l2) e_k), whose residual r~ = (r, -sqrt(l2) a) has slopes q = D r - l2 a. Any u
with |u.d~_k| <= limit_k for all k (u.d~_k <= limit_k if codes must not be negative) bounds the least P from below by
x~.u - 1/2 |u|^2. The best u along r~ is s r~, with s the x~.r~ / |r~|^2 brought into what is allowed, so

    gap = P(a) - s x.r + s^2/2 |r~|^2     bounds     P(a) - min P.

Where limits are 0 r~ is that of another code, to which these atoms are orthogonal (`free_atoms`).
"""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.free_atoms import FreeAtoms, free_rounding

TILE_BYTES = 2**20


def coding_gaps(
    X: Any,
    dictionary: Array,
    codes: Any,
    *,
    alpha: float = 1.0,
    l2: float = 0.0,
    weights: Array | None = None,
    nonnegative: bool = False,
) -> Array:
    """Return the duality gap of each code, relative to 1/2 |x|^2.

    The objective is 1/2 |x - a D|^2 + alpha sum_k w_k |a_k| + l2/2 |a|^2, with a >= 0 if ``nonnegative``. The gap is at
    least what the objective of a code exceeds the least one by. A negative code that must not be is infinitely far.

    Parameters
    ----------
    X : (n, p) array or CSR array
        The rows; NaN is missing, and left out of |x - a D|^2 and |x|^2.
    dictionary : (K, p) array
        The atoms.
    codes : (n, K) array or CSR array
        The codes.
    alpha, l2 : float
        Weights of |a|_1 and of 1/2 |a|^2.
    weights : (K,) array, optional
        Of the atoms' absolute values.
    nonnegative : bool, default False
        Whether codes must not be negative.

    Returns
    -------
    (n,) array
        Relative gaps, 0 for a row that is 0 and has the code 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import coding_gaps
    >>> coding_gaps(np.array([[2.0, 0.5]]), np.eye(2), np.array([[1.0, 0.0]]), alpha=1.0).tolist()
    [0.0]
    >>> coding_gaps(np.array([[2.0, 0.0]]), np.eye(2), np.array([[0.0, 0.0]]), alpha=1.0).tolist()
    [0.25]
    """
    D = np.asarray(dictionary, dtype=np.float64)
    n, K = codes.shape
    limits = alpha * (np.ones(K) if weights is None else np.asarray(weights, dtype=np.float64))
    free = FreeAtoms(D, np.flatnonzero(limits == 0), l2, nonnegative)
    step = max(16, TILE_BYTES // (8 * max(D.shape)))
    parts = [np.zeros(0)]
    for begin in range(0, n, step):
        x, a = (_dense(whole[begin : begin + step]) for whole in (X, codes))
        seen = ~np.isnan(x)
        x = np.where(seen, x, 0.0)
        size = _powers_of_two(x)  # in units of its own, no row's square overflows or vanishes
        parts.append(_relative(x / size, seen, D, a / size, limits / size, free))
    return np.concatenate(parts)


def _dense(tile: Any) -> Array:
    return np.asarray(tile if isinstance(tile, np.ndarray) else tile.toarray(), dtype=np.float64)


def _powers_of_two(x: Array) -> Array:
    """Return a power of two near the largest entry of each row, (m, 1); 1 for rows of zeros."""
    largest = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    return np.where(largest > 0, np.ldexp(1.0, np.clip(np.frexp(largest)[1], -1000, 1000)), 1.0)


def _relative(x: Array, seen: Array, D: Array, a: Array, limits: Array, free: FreeAtoms) -> Array:
    square = np.einsum("ij,ij->i", x, x)
    r = np.where(seen, x - a @ D, 0.0)
    length = np.einsum("ij,ij->i", r, r) + free.l2 * np.einsum("ij,ij->i", a, a)
    value = length / 2 + (np.abs(a) * limits).sum(axis=1)
    error = 2 * np.maximum(value - _least(x, seen, D, a, limits, free), 0.0)
    if free.nonnegative:
        error = np.where((a < 0).any(axis=1), np.inf, error)
    return np.divide(error, square, out=np.where(error > 0, np.inf, 0.0), where=square > 0)


def _least(x: Array, seen: Array, D: Array, a: Array, limits: Array, free: FreeAtoms) -> Array:
    """Return a number that no objective is below, (m,): that of the best dual point along a residual."""
    l2, nonnegative = free.l2, free.nonnegative
    if len(free.numbers):
        a = free.settled(x, seen, a)
    r = np.where(seen, x - a @ D, 0.0)  # slopes are then those of the cells that are there
    slopes = r @ D.T - l2 * a
    sizes = slopes if nonnegative else np.abs(slopes)
    if len(free.numbers):  # what is left of slopes that must be 0 is rounding, and must stay so
        limits = np.where(limits > 0, limits, free_rounding(x, D, a, l2))
    largest = np.divide(sizes, limits, out=np.zeros_like(sizes), where=limits > 0).max(axis=1)
    most = np.divide(1.0, largest, out=np.full(len(x), np.inf), where=largest > 0)
    along = np.einsum("ij,ij->i", x, r)
    length = np.einsum("ij,ij->i", r, r) + l2 * np.einsum("ij,ij->i", a, a)
    wanted = np.divide(along, length, out=np.zeros(len(x)), where=length > 0)
    s = np.clip(wanted, 0.0 if nonnegative else -most, most)
    return s * along - s**2 / 2 * length
