"""Pairs u v' of rank one: how far each is from the best u for its v, and the best v for its u.

With R what other pairs leave of X (those before it, or all others), a pair that is done has u = Rv/|Rv|, and for v the
entries of R'u of largest magnitude: then neither step lowers |R - uv'|^2.
"""

from dataclasses import dataclass

import numpy as np

from princomp._typing import Array

ROUNDING = 16.0  # times eps: what rounding of stored pairs, and of products with them, may do


@dataclass(frozen=True)
class PairResiduals:
    """How far pairs are from staying where they are."""

    directions: Array  # (k,) |u - Rv/|Rv||
    loadings: Array  # (k,) |v - the v-step of u|, relative to |v|

    @property
    def each(self) -> Array:
        """The larger of the two, of each pair."""
        return np.maximum(self.directions, self.loadings)


@dataclass(frozen=True)
class Measured:
    """What is asked of the data about pairs U (n, k) and V (k, p)."""

    XV: Array  # (n, k)
    XU: Array  # (p, k)
    squares: Array  # (p,) of the columns of X
    left: float  # |X - UV|^2
    error: float = 0.0  # of that, where it was not summed up itself


def pair_residuals(
    found: Measured, U: Array, V: Array, counts: Array, *, nonnegative: bool, alone: bool, tol: float, eps: float
) -> PairResiduals:
    """Measure pairs U (n, k), V (k, p), stored with a relative error of ``eps``.

    ``alone``: each pair stands on what those before it leave, else on what all others leave. Of entries that tie, up to
    rounding, any may be kept. A pair of zeros is right where no more is left than rounding, or u's off by ``tol``.
    """
    of_v, of_u = V @ V.T, U.T @ U
    others_v, others_u = (np.triu(of, 1) if alone else of - np.diag(np.diag(of)) for of in (of_v, of_u))
    ahead, back = found.XV - U @ others_v, found.XU - V.T @ others_u  # (n, k) the Rv's, (p, k) the R'u's
    slack = ROUNDING * eps * np.sqrt(found.squares)  # (p,) of R'u: a u that is rounded moves it by so much
    nothing = max((ROUNDING * eps) ** 2, tol**2) * float(found.squares.sum()) + found.error
    directions, loadings = np.zeros(len(V)), np.zeros(len(V))
    for j, (u, v, count) in enumerate(zip(U.T, V, counts)):
        if not (u.any() and v.any()):
            loadings[j] = float(found.left > nothing)
            continue
        length, size = float(np.linalg.norm(ahead[:, j])), float(np.linalg.norm(v))
        directions[j] = np.linalg.norm(u - ahead[:, j] / length) if length else 1.0
        loadings[j] = np.linalg.norm(v - _v_step(back[:, j], v, int(count), slack, nonnegative)) / size
    return PairResiduals(directions, loadings)


def _v_step(b: Array, v: Array, count: int, slack: Array, nonnegative: bool) -> Array:
    """Return the entries of b that are largest in magnitude, the others zero; of those that tie, those of v."""
    b = np.maximum(b, 0.0) if nonnegative else b
    sizes = np.abs(b) + slack * (v != 0)
    kept = np.argpartition(sizes, len(b) - count)[len(b) - count :]
    out = np.zeros_like(b)
    out[kept] = b[kept]
    return out
