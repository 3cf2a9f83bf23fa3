"""Codes with any penalty: how far from optimal, or from staying where they are; from rows, atoms and codes alone.

Objective: P(a) = 1/2 |x - a D|^2 + h(a). With r = x - a D, slopes c = D r, and the step z = prox(a + c / L, 1 / L),
L the largest eigenvalue of D D':

- h a norm (it has ``polar``, with v'b <= polar(v) h(b) for all b): any u with polar(D u) <= 1 bounds the least P from
  below by x.u - 1/2 |u|^2. By Moreau's decomposition polar(c - L (z - a)) <= 1, so polar(c) <= 1 + polar(L (z - a)),
  and u = s r will do for all s up to one over that: gap = P(a) - s x.r + s^2/2 |r|^2 bounds P(a) - min P;
- any h: a is stationary if z = a. For a convex h it is then optimal. For others a smaller step, 1 / (2L), is made: what
  it does not change is a local minimum of P plus a square, L/2 |b - a|^2, at the least.

Cells of x that are NaN are missing: they are left out of |x - a D|^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.penalties import Penalty, column_values, is_convex

TILE_BYTES = 2**20


def penalty_gaps(X: Any, dictionary: Array, codes: Any, penalty: Penalty) -> Array:
    """Return the duality gap of each code, relative to 1/2 |x|^2; infinity where the penalty gives no bound.

    Parameters
    ----------
    X : (n, p) array or CSR array
        The rows; NaN is missing.
    dictionary : (K, p) array
        The atoms.
    codes : (n, K) array or CSR array
        The codes.
    penalty : Penalty
        h: L1, Groups, Tree, OverlappingGroups, also NonNegative, or one's own with ``polar``.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import penalty_gaps
    >>> from princomp.penalties import Groups
    >>> X, groups = np.array([[3.0, 4.0]]), Groups(1.0, [[0, 1]], [2.5])
    >>> penalty_gaps(X, np.eye(2), np.array([[1.5, 2.0]]), groups).round(9).tolist()
    [0.0]
    >>> penalty_gaps(X, np.eye(2), np.array([[0.0, 0.0]]), groups).round(9).tolist()
    [0.25]
    """
    polar = getattr(penalty, "polar", None)
    parts = [np.zeros(0)]
    for x, a, r, slopes, step in _tiles(X, np.asarray(dictionary, dtype=np.float64), codes, penalty, 1.0):
        if polar is None:
            parts.append(np.full(len(x), np.inf))
            continue
        largest = np.minimum(1.0 + polar(step.T), polar(slopes.T))
        with np.errstate(divide="ignore"):
            most = 1.0 / largest
        along, length, square = (np.einsum("ij,ij->i", *pair) for pair in ((x, r), (r, r), (x, x)))
        s = np.clip(np.divide(along, length, out=np.zeros(len(x)), where=length > 0), 0.0, most)
        gap = np.maximum(length / 2 + column_values(penalty, a.T) - s * along + s**2 / 2 * length, 0.0)
        gap = np.where(np.isfinite(largest), gap, np.inf)
        parts.append(np.divide(2 * gap, square, out=np.where(gap > 0, np.inf, 0.0), where=square > 0))
    return np.concatenate(parts)


def penalty_steps(X: Any, dictionary: Array, codes: Any, penalty: Penalty) -> Array:
    """Return how far a proximal gradient step leads from each code, times L, relative to |D x|: 0 if it is stationary.

    L is the largest eigenvalue of D D', twice that where the penalty is not convex. A code where h is infinite is
    infinitely far.

    Parameters
    ----------
    X, dictionary, codes
        As in `penalty_gaps`.
    penalty : Penalty
        h: anything with ``value`` and ``prox``.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import penalty_steps
    >>> from princomp.penalties import L0
    >>> penalty_steps(np.array([[3.0, 0.1]]), np.eye(2), np.array([[3.0, 0.0]]), L0(0.5)).tolist()
    [0.0]
    """
    factor = 1.0 if is_convex(penalty) else 2.0
    D, parts = np.asarray(dictionary, dtype=np.float64), [np.zeros(0)]
    for x, a, _, _, step in _tiles(X, D, codes, penalty, factor):
        size, unit = np.linalg.norm(step, axis=1), np.linalg.norm(x @ D.T, axis=1)
        length = np.divide(size, unit, out=np.where(size > 0, np.inf, 0.0), where=unit > 0)
        parts.append(np.where(np.isfinite(column_values(penalty, a.T)), length, np.inf))
    return np.concatenate(parts)


def _tiles(
    X: Any, D: Array, codes: Any, penalty: Penalty, factor: float
) -> Iterator[tuple[Array, Array, Array, Array, Array]]:
    """Yield rows x (0 where cells are missing), codes, residuals, slopes, and steps times L, tile by tile."""
    L = factor * float(np.linalg.norm(D, 2)) ** 2 or 1.0
    tile = max(16, TILE_BYTES // (8 * max(D.shape)))
    for begin in range(0, codes.shape[0], tile):
        x, a = (_dense(whole[begin : begin + tile]) for whole in (X, codes))
        there = ~np.isnan(x)
        r = np.where(there, x - a @ D, 0.0)
        slopes = r @ D.T
        yield np.where(there, x, 0.0), a, r, slopes, L * (penalty.prox((a + slopes / L).T, 1.0 / L).T - a)


def _dense(tile: Any) -> Array:
    return np.asarray(tile if isinstance(tile, np.ndarray) else tile.toarray(), dtype=np.float64)
