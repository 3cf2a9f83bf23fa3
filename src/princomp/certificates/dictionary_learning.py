"""When atoms are stationary: the projected gradient of the objective in them, the codes being minimisers.

Objective: the mean over rows x of f(x, D) + sum_k g(d_k), f(x, D) = min_a 1/2 |x - a D|^2 + h(a). Where codes are
unique f has the gradient a'(a D - x) in D (Danskin), so that with A = 1/n sum a'a and B = 1/n sum a'x the whole has
A D - B. An atom is stationary if the prox of g leaves it in its place after a step against the gradient.
"""

from collections.abc import Callable

import numpy as np

from princomp._typing import Array

Prox = Callable[[Array, Array, Array], Array]  # of points, a step for each, and the atoms that are there


def projected_gradient(D: Array, slopes: Array, weights: Array, prox: Prox) -> Array:
    """Return by how much each atom would move in a step of length 1 / weight, times the weight, (K, p).

    ``slopes`` (K, p) is the gradient A D - B, ``weights`` (K,) the curvature A_kk of each atom: with g = 0 the answer
    is the gradient itself. An atom that no code uses has none.
    """
    moved, used = np.zeros_like(slopes), weights > 0
    own = weights[used, None]
    moved[used] = own * (D[used] - prox(D[used] - slopes[used] / own, 1.0 / weights[used], D[used]))
    return moved


def relative_gradient(D: Array, slopes: Array, weights: Array, B: Array, prox: Prox) -> float:
    """Return the norm of the `projected_gradient` relative to that of B: 0 where atoms are stationary."""
    moved, unit = projected_gradient(D, slopes, weights, prox), float(np.abs(B).max(initial=0.0))
    if not (np.isfinite(unit) and np.isfinite(moved).all()):
        return np.inf  # what overflowed is the gradient of nothing
    if unit == 0:
        return 0.0
    # In units of the largest entry no square overflows or vanishes.
    return float(np.linalg.norm(moved / unit)) / float(np.linalg.norm(B / unit))
