"""Atoms that stand for two directions are split (Linde, Buzo & Gray, IEEE Trans. Communications 1980).

Where one atom d serves for two that are near each other, the residuals of the rows that use it vary along a direction
e, the leading eigenvector of their second moments sum r'r, lambda its eigenvalue: about what two atoms in place of one
gain. They are d +- t e, t^2 = lambda / A_dd, normalised, so that they spread as codes and residuals say; one takes the
place of d, the other that of the atom which is worth least (`learning_replacement`), if that is less than lambda.

Second moments of each atom would be K p^2 numbers, so a sample of rows must do: `ROWS` for each atom.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.solvers.learning_atoms import Atoms, own_weights
from princomp.solvers.learning_coded import Task
from princomp.solvers.learning_replacement import worth
from princomp.solvers.learning_state import together
from princomp.solvers.learning_statistics import code_rows

ROWS = 30  # for each atom, in the sample
AT_ONCE = 0.05  # share of the atoms, at the most, but one at least
FEWEST = 4  # rows that use an atom: fewer tell nothing of a direction
STEPS = 20  # of the power method


def split(D: Array, rows: Rows, task: Task, atoms: Atoms) -> tuple[Array, Array]:
    """Return atoms, some split, each into itself and an atom that was worth little, and the numbers of all of these."""
    n = rows.shape[0]
    numbers = np.unique(np.linspace(0, n - 1, min(n, ROWS * len(D))).astype(np.intp))
    X = statistics.take(Centered(rows), numbers)
    coded = code_rows(X, numbers, replace(task, D=D, worst=0, codes=None, keep=True))
    codes = together(coded.codes).astype(np.float64)
    left = np.nan_to_num(X - codes @ D)
    if task.loss is not None:
        left *= task.loss.weights(left)  # what is wild in a row is no direction
    by_atom, fast = codes.tocsc(), loops("ksvd_pairs")
    find = leading if fast is None else fast.leading
    gains, directions = find(np.ascontiguousarray(left), by_atom.indptr, by_atom.indices, FEWEST, STEPS)
    weights = own_weights(coded.A)
    costs = worth(D, weights)
    D, done = D.copy(), list[int]()
    for k in np.argsort(-gains)[: max(int(AT_ONCE * len(D)), 1)]:
        costs[[k, *done]] = np.inf
        other = int(np.argmin(costs))
        if k in done or not costs[other] < gains[k]:
            break
        step = np.sqrt(gains[k] / weights[k]) * directions[k]
        D[[k, other]] = atoms.allowed(_unit(np.stack([D[k] + step, D[k] - step])))
        done += [int(k), other]
    return D, np.array(done, dtype=np.intp)


def leading(left: Array, indptr: Array, indices: Array, fewest: int, steps: int) -> tuple[Array, Array]:
    """Return, for each atom, lambda and e, (K,) and (K, p), of residuals (n, p) of rows that use it: the slow twin.

    ``indptr`` and ``indices`` tell which rows these are; where they are fewer than ``fewest``, both are 0.
    """
    K = len(indptr) - 1
    gains, directions = np.zeros(K), np.zeros((K, left.shape[1]))
    for k in np.flatnonzero(np.diff(indptr) >= fewest):
        some = left[indices[indptr[k] : indptr[k + 1]]]
        e = some[int(np.einsum("ij,ij->i", some, some).argmax())]
        for _ in range(steps):
            e = (some @ e) @ some
            e /= sqrt(e @ e) or 1.0
        gains[k], directions[k] = float(np.square(some @ e).sum()), e
    return gains, directions


def _unit(rows: Array) -> Array:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)
