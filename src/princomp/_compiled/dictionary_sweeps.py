"""Coordinate descent for many lasso problems that share their Gram matrix: one row of D after the other.

Row i minimises 1/2 d'Q d - p_i'd + sum_j alpha_j |d_j|. A row stays in registers while it is swept, stops when it is
done, and a coordinate that stays zero costs nothing. Twin: `princomp.solvers.dictionary_blocks.column_sweeps`.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array

WORK = 2e8  # multiplications in a call, at the most: a call cannot be interrupted


@compiled
def _sweep(P: Array, Q: Array, D: Array, alpha: Array, nonnegative: bool, enough: Array, sweeps: int) -> None:
    k = P.shape[1]
    slope = np.empty(k)
    for i in range(P.shape[0]):
        slope[:] = P[i]
        for j in range(k):
            if D[i, j] != 0.0:
                for other in range(k):
                    slope[other] -= D[i, j] * Q[j, other]
        for _ in range(sweeps):
            done = True
            for j in range(k):
                old, new = D[i, j], 0.0
                if Q[j, j] > 0.0:
                    target = slope[j] + Q[j, j] * old
                    if target > alpha[j]:
                        new = (target - alpha[j]) / Q[j, j]
                    elif target < -alpha[j] and not nonnegative:
                        new = (target + alpha[j]) / Q[j, j]
                change = new - old
                if change != 0.0:
                    D[i, j] = new
                    for other in range(k):
                        slope[other] -= change * Q[j, other]
                    if abs(change) * Q[j, j] > enough[j]:
                        done = False
            if done:
                break


def lasso_rows(P: Array, Q: Array, D: Array, alpha: Array, *, nonnegative: bool, enough: Array, sweeps: int) -> Array:
    """Return D (p, k) after up to ``sweeps`` sweeps over each row, or until no slope moves by more than ``enough``."""
    P, Q, D = np.ascontiguousarray(P), np.ascontiguousarray(Q), np.array(D, order="C")
    rows = max(1, int(WORK / (sweeps * len(Q) ** 2)))
    for begin in range(0, len(P), rows):
        here = slice(begin, begin + rows)
        _sweep(P[here], Q, D[here], alpha, nonnegative, enough, sweeps)
    return D


def warm_up() -> None:
    """Compile."""
    lasso_rows(np.eye(2), np.eye(2), np.zeros((2, 2)), np.ones(2), nonnegative=False, enough=np.zeros(2), sweeps=1)
