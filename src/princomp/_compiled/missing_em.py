"""Posteriors of latent scores where rows miss different cells: one small Cholesky factorisation for each pattern.

M = W_o'W_o + noise I comes as its lower triangle, row by row. Twin: `princomp.solvers.probabilistic.posteriors`.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array


@compiled
def _factor(G: Array, noise: float, L: Array, inverse: Array) -> float:
    """Put the Cholesky factor of M into L and its inverse, transposed, into ``inverse``; return log |M|."""
    k, at, logdet = len(L), 0, 0.0
    for i in range(k):
        for j in range(i + 1):
            value = G[at]
            at += 1
            if i == j:
                value += noise
                for m in range(j):
                    value -= L[i, m] * L[i, m]
                value = max(value, noise * 2.0**-52)  # rounding must not take a variance away
                logdet += np.log(value)
                L[i, i] = np.sqrt(value)
            else:
                for m in range(j):
                    value -= L[i, m] * L[j, m]
                L[i, j] = value / L[j, j]
    for j in range(k):
        inverse[j, j] = 1.0 / L[j, j]
        for i in range(j + 1, k):
            value = 0.0
            for m in range(j, i):
                value -= L[i, m] * inverse[j, m]
            inverse[j, i] = value / L[i, i]
    return logdet


@compiled
def _posteriors(G: Array, noise: float, which: Array, B: Array, Z: Array, C: Array, logdet: Array) -> None:
    k, row = B.shape[1], 0
    L, inverse, half = np.zeros((k, k)), np.zeros((k, k)), np.zeros(k)
    for u in range(len(G)):
        logdet[u] = _factor(G[u], noise, L, inverse)
        at = 0
        for i in range(k):
            for j in range(i + 1):
                value = 0.0
                for m in range(i, k):
                    value += inverse[i, m] * inverse[j, m]
                C[u, at] = noise * value
                at += 1
        while row < len(which) and which[row] == u:
            for i in range(k):
                half[i] = 0.0
                for m in range(i + 1):
                    half[i] += inverse[m, i] * B[row, m]
            for i in range(k):
                Z[row, i] = 0.0
                for m in range(i, k):
                    Z[row, i] += inverse[i, m] * half[m]
            row += 1


def posteriors(G: Array, noise: float, which: Array, B: Array) -> tuple[Array, Array, Array]:
    """Return scores Z (b, k), covariances C (u, k (k + 1) / 2) and log |M| (u,).

    ``G`` (u, k (k + 1) / 2) holds W_o'W_o for each pattern, ``B`` (b, k) W_o'x for each row, and ``which`` (b,),
    ascending, the pattern of each row.
    """
    Z, C, logdet = np.empty_like(B), np.empty_like(G), np.empty(len(G))
    _posteriors(np.ascontiguousarray(G), float(noise), which, np.ascontiguousarray(B), Z, C, logdet)
    return Z, C, logdet


def warm_up() -> None:
    """Compile."""
    posteriors(np.ones((1, 1)), 1.0, np.zeros(1, np.intp), np.ones((1, 1)))
