"""Rows of which cells are missing, or count by a loss other than the square, coded, and the sums over them.

Objective of a row: 1/2 sum_j rho(x_j - (a D)_j) + h(a) over the cells that are there. With the weights omega_j =
rho'(r_j) / (2 r_j) at the residuals r of its code, 1/2 sum_j omega_j (x_j - (a D)_j)^2 lies above, up to a constant,
and touches there (Holland & Welsch 1977); a missing cell has the weight 0. So atoms that lower the weighted squares
lower the objective, and what matters of the rows is A (K, K, p) with A_kl = sum a_k a_l omega, and B_k = sum a_k
omega x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.coders.cells import code_cells
from princomp.coders.robust import code_robust, objectives
from princomp.losses import Squared
from princomp.solvers.learning_coded import Coded, Task, worst_of

# Of codes between sweeps over atoms: they are found again, or gone on with, after the next one.
TOL, ROUNDS = 1e-4, 20


def code_cells_of_tile(X: Any, numbers: Array, task: Task) -> Coded:
    """Code rows (m, p), float64, dense or CSR, NaN being missing, with these row numbers."""
    from scipy.sparse import csr_array

    X = np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray())
    loss = Squared() if task.loss is None else task.loss
    old = None if task.codes is None else task.codes[numbers]
    if task.loss is not None:
        # From nothing, what is wild in a row is cut off at once; from a code by least squares it has to be unlearnt.
        begin = csr_array((len(X), len(task.D))) if old is None else old
        codes = code_robust(X, task.D, task.coder, loss, begin, tol=TOL, rounds=ROUNDS)
    else:
        codes = code_cells(X, task.D, task.coder, start=old)
    if task.loss is None and old is not None and not task.optimal:
        codes = _better(X, task, old, codes)
    there = ~np.isnan(X)
    residual = np.where(there, X - codes @ task.D, 0.0)
    omega = np.where(there, loss.weights(residual), 0.0)
    fitted, X = codes @ task.D, np.where(there, X, 0.0)
    errors = np.where(there, loss.values(residual), 0.0).sum(axis=1)
    A, B = sums_by_cell(codes, X, omega)
    return Coded(
        float(len(X)),
        A,
        B,
        float((omega * X**2).sum()),
        float(errors.sum()),
        float(task.coder.penalties(codes).sum()),
        np.bincount(codes.indices, minlength=len(task.D)).astype(np.float64),
        worst_of(errors, numbers, fitted + omega * residual, task.worst),  # without what is wild in them
        float(errors.sum() - (omega * residual**2).sum()),
        None if task.loss is None else codes.T @ np.where(there, loss.weights(X) * X, 0.0),
        (codes,) if task.keep else (),
    )


def _better(X: Array, task: Task, old: Any, new: Any) -> Any:
    """Return, row by row, the new code or the old one, whichever is better."""
    from scipy.sparse import vstack

    before, after = (objectives(X, task.D, codes, task.coder, Squared()) for codes in (old, new))
    return vstack([new, old], format="csr")[np.arange(len(X)) + np.where(before < after, len(X), 0)]


def sums_by_cell(codes: Any, X: Array, omega: Array) -> tuple[Array, Array]:
    """Return sum a_k a_l omega (K, K, p) and sum a_k omega x (K, p)."""
    compiled = loops("learning_sums")
    if compiled is None:
        return sums_of_dense_cells(codes, X, omega)
    K, p = codes.shape[1], X.shape[1]
    A, B = np.zeros((K, K, p)), np.zeros((K, p))
    compiled.add_cells((codes.indptr, codes.indices, codes.data.astype(np.float64, copy=False)), X, omega, A, B)
    return A, B


def sums_of_dense_cells(codes: Any, X: Array, omega: Array) -> tuple[Array, Array]:
    """Do what `sums_by_cell` does by products of dense matrices, column by column: the slow twin."""
    dense = codes.toarray().astype(np.float64, copy=False)
    A = np.stack([dense.T @ (dense * weights[:, None]) for weights in omega.T], axis=2)
    return A, dense.T @ (omega * X)
