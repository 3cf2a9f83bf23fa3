"""Stahel-Donoho outlyingness (Stahel, 1981; Donoho, 1982), with univariate MCD (Hubert et al., Technometrics 2005).

Objective: for each row x of X (n, p) the largest |x'b - location(Xb)| / scale(Xb) over directions b, here through pairs
of rows: all of them, or so many drawn at random.
"""

import numpy as np

from princomp._typing import Array
from princomp.solvers.robust.univariate import univariate_mcd

DIRECTIONS = 250  # as Hubert, Rousseeuw & Vanden Branden have it
DRAWS = 4  # times that many pairs are drawn at the most, where rows repeat
TILE_BYTES = 2**24


def outlyingness(X: Array, h: int, rng: np.random.Generator, rounding: Array, directions: int = DIRECTIONS) -> Array:
    """Return the outlyingness (n,) of rows of X, known up to ``rounding`` (n,).

    It is infinite off a hyperplane that h rows lie on, and 0 where all pairs that were drawn are of equal rows.
    """
    n = len(X)
    B = _directions(X, rng, rounding, directions)
    out = np.zeros(n)
    step = max(TILE_BYTES // (8 * n), 1)
    for begin in range(0, B.shape[1], step):
        scores = X @ B[:, begin : begin + step]
        location, scale = univariate_mcd(scores, h)
        apart = np.abs(scores - location)
        flat = scale <= np.median(rounding)
        apart /= np.where(flat, 1.0, scale)
        apart[:, flat] = np.where(apart[:, flat] > rounding[:, None], np.inf, 0.0)
        np.maximum(out, apart.max(axis=1, initial=0.0), out=out)
    return out


def _directions(X: Array, rng: np.random.Generator, rounding: Array, wanted: int) -> Array:
    """Return unit vectors (p, m) through pairs of rows that are apart."""
    n = len(X)
    if n * (n - 1) // 2 <= wanted:
        first, second = np.triu_indices(n, 1)
    else:
        first = rng.integers(n, size=DRAWS * wanted)
        second = (first + rng.integers(1, n, size=DRAWS * wanted)) % n
    B: list[Array] = []
    # As many as are wanted are drawn at a time: pairs of rows that repeat are left out, and others drawn for them.
    for begin in range(0, len(first), wanted):
        some = slice(begin, begin + wanted)
        apart = X[first[some]] - X[second[some]]
        lengths = np.linalg.norm(apart, axis=1)
        long = lengths > rounding[first[some]] + rounding[second[some]]
        B.extend(apart[long] / lengths[long, None])
        if len(B) >= wanted:
            break
    return np.stack(B[:wanted], axis=1) if B else np.zeros((X.shape[1], 0))
