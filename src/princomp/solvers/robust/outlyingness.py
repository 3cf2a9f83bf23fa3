"""Stahel-Donoho outlyingness (Stahel, 1981; Donoho, 1982), with univariate MCD (Hubert et al., Technometrics 2005).

Objective: for each row x of X (n, p) the largest |x'b - location(Xb)| / scale(Xb) over directions b, here through pairs
of rows: all of them, or so many drawn at random.
"""

import numpy as np

from princomp._typing import Array
from princomp.solvers.robust.univariate import univariate_mcd

DIRECTIONS = 250  # as Hubert, Rousseeuw & Vanden Branden have it
DRAWS = 4  # times that many pairs are drawn at the most, where rows repeat
ROUNDING = 1e-12  # of the longest row: a pair no farther apart has no direction, a row no farther out is not out
TILE_BYTES = 2**24


def outlyingness(X: Array, h: int, rng: np.random.Generator, directions: int = DIRECTIONS) -> Array:
    """Return the outlyingness (n,) of rows of X, which lie about 0; infinite off a hyperplane that has h rows or more.

    It is 0 where all pairs that were drawn are of equal rows.
    """
    n = len(X)
    B = _directions(X, rng, directions)
    out = np.zeros(n)
    step = max(TILE_BYTES // (8 * n), 1)
    for begin in range(0, B.shape[1], step):
        scores = X @ B[:, begin : begin + step]
        location, scale = univariate_mcd(scores, h)
        apart = np.abs(scores - location)
        rounding = ROUNDING * np.abs(scores - np.median(scores, axis=0)).max(axis=0)
        flat = scale <= rounding
        apart /= np.where(flat, 1.0, scale)
        apart[:, flat] = np.where(apart[:, flat] > rounding[flat], np.inf, 0.0)
        np.maximum(out, apart.max(axis=1, initial=0.0), out=out)
    return out


def _directions(X: Array, rng: np.random.Generator, wanted: int) -> Array:
    """Return unit vectors (p, m) through pairs of rows that are apart."""
    n = len(X)
    if n * (n - 1) // 2 <= wanted:
        first, second = np.triu_indices(n, 1)
    else:
        first = rng.integers(n, size=DRAWS * wanted)
        second = (first + rng.integers(1, n, size=DRAWS * wanted)) % n
    long = ROUNDING * float(np.linalg.norm(X, axis=1).max())
    B: list[Array] = []
    # As many as are wanted are drawn at a time: pairs of rows that repeat are left out, and others drawn for them.
    for begin in range(0, len(first), wanted):
        some = slice(begin, begin + wanted)
        apart = X[first[some]] - X[second[some]]
        lengths = np.linalg.norm(apart, axis=1)
        B.extend((apart / np.where(lengths > 0, lengths, 1.0)[:, None])[lengths > long])
        if len(B) >= wanted:
            break
    return np.stack(B[:wanted], axis=1) if B else np.zeros((X.shape[1], 0))
