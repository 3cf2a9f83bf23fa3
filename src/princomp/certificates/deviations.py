"""How far sums of absolute deviations are above the least ones: by a dual point, whoever found it."""

from __future__ import annotations

import numpy as np

from princomp._typing import Array


def deviations_gap(X: Array, V: Array, Z: Array, Y: Array) -> Array:
    """Return an upper bound (n,) of how much sum_j |x_j - v_j'z| is above its least value, for each row.

    Any y with |y_j| <= 1 and V'y = 0 bounds the sum from below, by x'y. The y's given are made so: what they have in
    the columns of V is taken away, on the cells that are there, and they are shortened. What rounding leaves of V'y is
    charged as it would be if the best z were no longer than twice this one.

    Parameters
    ----------
    X : (n, p) array
        Rows; NaN is missing.
    V : (p, k) array
        Columns.
    Z : (n, k) array
        Scores.
    Y : (n, p) array
        Dual points, about.
    """
    there = ~np.isnan(X)
    gaps = np.empty(len(X))
    for i, (x, z, y, cells) in enumerate(zip(X, Z, Y, there)):
        x, of, y = x[cells], V[cells], y[cells]
        for _ in range(2):
            y = y - of @ np.linalg.lstsq(of, y, rcond=None)[0] if len(y) else y
        y = y / max(1.0, float(np.abs(y).max(initial=0.0)))
        charged = 3.0 * float(np.linalg.norm(of.T @ y) * np.linalg.norm(z))
        gaps[i] = np.abs(x - of @ z).sum() - x @ y + charged
    return gaps
