"""Pairs u v' of rank one: how far each is from the best u for its v, and the best v for its u.

With R what other pairs leave of X (those before it, or all others), a pair that is done has u = Rv/|Rv|, and for v the
entries of R'u of largest magnitude: then neither step lowers |R - uv'|^2.
"""

from dataclasses import dataclass

import numpy as np

from princomp._typing import Array


@dataclass(frozen=True)
class PairResiduals:
    """How far pairs are from staying where they are, and what they leave of X."""

    directions: Array  # (k,) |u - Rv/|Rv||
    loadings: Array  # (k,) by how much the entries of v are not those of R'u, relative to |v|
    missed: Array  # (k,) share of the squares that v could hold with its number of nonzeros, and does not
    left: float  # |X - sum u v'|^2, relative to |X|^2

    @property
    def largest(self) -> float:
        """The largest of them all."""
        every = np.concatenate([self.directions, self.loadings, self.missed])
        return float(every.max(initial=0.0))


def pair_residuals(
    products: tuple[Array, Array, float], U: Array, V: Array, counts: Array, *, nonnegative: bool, alone: bool
) -> PairResiduals:
    """Measure pairs U (n, k), V (k, p), from ``products`` = (XV', (n, k), X'U, (p, k), and |X|^2).

    ``alone``: each pair stands on what those before it leave, else on what all others leave. A pair of zeros is right
    where nothing is left for it.
    """
    XV, XU, total = products
    of_v, of_u = V @ V.T, U.T @ U
    kept = 1 if alone else None
    others_v, others_u = (np.triu(of, 1) if kept else of - np.diag(np.diag(of)) for of in (of_v, of_u))
    ahead, back = XV - U @ others_v, XU - V.T @ others_u  # (n, k) the Rv's, (p, k) the R'u's
    left = max(total - 2 * float(np.vdot(V.T, XU)) + float(np.vdot(of_v, of_u)), 0.0) / (total or 1.0)
    k = len(V)
    directions, loadings, missed = np.zeros(k), np.zeros(k), np.zeros(k)
    for j, (u, v) in enumerate(zip(U.T, V)):
        if not (u.any() and v.any()):
            missed[j] = left
            continue
        length = float(np.linalg.norm(ahead[:, j]))
        directions[j] = np.linalg.norm(u - ahead[:, j] / length) if length else 1.0
        b, there = back[:, j], v != 0
        sizes = np.maximum(b, 0.0) ** 2 if nonnegative else b**2
        best = float(np.partition(sizes, -int(counts[j]))[-int(counts[j]) :].sum())
        loadings[j] = np.linalg.norm(v[there] - b[there]) / np.linalg.norm(v)
        missed[j] = max(best - float(sizes[there].sum()), 0.0) / (best or 1.0)
        if int(there.sum()) > int(counts[j]) or (nonnegative and (v < 0).any()):
            missed[j] = 1.0  # not a v that is allowed
    return PairResiduals(directions, loadings, missed, left)
