"""Sums over sparse codes, and sweeps over atoms, for dictionary learning.

A = sum a a' and B = sum a x' from codes of few nonzeros cost their number times what they are multiplied with, where a
product of dense matrices costs all atoms. Twins: `princomp.solvers.learning_statistics.sums_of_dense`,
`princomp.solvers.learning_cells.sums_of_dense_cells` and `princomp.solvers.learning_atoms.sweep_one_by_one`.
"""

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array

Sums = tuple[Array, Array, Array]

WORK = 2e8  # multiplications in a call, at the most: a call cannot be interrupted


@compiled
def _add(
    indptr: Array, indices: Array, data: Array, X: Array, gram: Array, correlations: Array, A: Array, B: Array, E: Array
) -> None:
    for i in range(len(indptr) - 1):
        first, last = indptr[i], indptr[i + 1]
        error = 0.0
        for s in range(first, last):
            k, a = indices[s], data[s]
            inside = 0.0
            for t in range(first, last):
                both = a * data[t]
                A[k, indices[t]] += both
                inside += data[t] * gram[k, indices[t]]
            error += a * (inside - 2.0 * correlations[i, k])
            for j in range(X.shape[1]):
                B[k, j] += a * X[i, j]
        E[i] += error


def add_codes(codes: tuple[Array, Array, Array], X: Array, gram: Array, correlations: Array, sums: Sums) -> None:
    """Add a a' and a x' of each row into A (K, K) and B (K, p), and a G a' - 2 a.c into the errors (m,).

    ``codes`` are indptr, indices and data of a CSR array, ``sums`` are A, B and the errors.
    """
    indptr, indices, data = codes
    A, B, errors = sums
    p = X.shape[1]
    each = max(len(data) / max(len(errors), 1), 1.0)
    rows = max(int(WORK / (each * (p + each))), 1)
    for begin in range(0, len(errors), rows):
        here = slice(begin, begin + rows)
        _add(indptr[begin : begin + rows + 1], indices, data, X[here], gram, correlations[here], A, B, errors[here])


@compiled
def _add_cells(indptr: Array, indices: Array, data: Array, X: Array, omega: Array, A: Array, B: Array) -> None:
    for i in range(len(indptr) - 1):
        first, last = indptr[i], indptr[i + 1]
        for s in range(first, last):
            k, a = indices[s], data[s]
            for j in range(X.shape[1]):
                B[k, j] += a * omega[i, j] * X[i, j]
            for t in range(first, last):
                both = a * data[t]
                for j in range(X.shape[1]):
                    A[k, indices[t], j] += both * omega[i, j]


def add_cells(codes: tuple[Array, Array, Array], X: Array, omega: Array, A: Array, B: Array) -> None:
    """Add a a' omega and a x' omega of each row into A (K, K, p) and B (K, p), omega (m, p) the weights of cells."""
    indptr, indices, data = codes
    each = max(len(data) / max(len(X), 1), 1.0)
    rows = max(int(WORK / (each**2 * X.shape[1])), 1)
    for begin in range(0, len(X), rows):
        here = slice(begin, begin + rows)
        _add_cells(indptr[begin : begin + rows + 1], indices, data, X[here], omega[here], A, B)


@compiled
def _sweep(D: Array, A: Array, B: Array, least: float, nonnegative: bool, sphere: bool, first: int, last: int) -> None:
    K, p = D.shape
    u = np.empty(p)
    for k in range(first, last):
        own = A[k, k]
        if not own > least:
            continue
        for j in range(p):
            u[j] = B[k, j] + own * D[k, j]
        for other in range(K):
            a = A[k, other]
            if a != 0.0:
                for j in range(p):
                    u[j] -= a * D[other, j]
        square = 0.0
        for j in range(p):
            u[j] = max(u[j], 0.0) if nonnegative else u[j]
            square += u[j] * u[j]
        length = np.sqrt(square)  # times own; of an atom without a direction the old one is kept
        if sphere:
            if length > 0.0:
                for j in range(p):
                    D[k, j] = u[j] / length
        else:
            divisor = max(own, length)
            for j in range(p):
                D[k, j] = u[j] / divisor


def sweep(D: Array, A: Array, B: Array, least: float, *, nonnegative: bool, sphere: bool) -> None:
    """Improve each atom of D in turn, in place; those with A_kk up to ``least`` stay as they are."""
    K, p = D.shape
    atoms = max(int(WORK / (K * p)), 1)
    for first in range(0, K, atoms):
        _sweep(D, A, B, least, nonnegative, sphere, first, min(first + atoms, K))


def warm_up() -> None:
    """Compile."""
    codes = (np.array([0, 1], np.int32), np.zeros(1, np.int32), np.ones(1))
    one = np.ones((1, 1))
    add_codes(codes, one, one, one, (one.copy(), one.copy(), np.ones(1)))
    add_cells(codes, one, one, np.ones((1, 1, 1)), one.copy())
    sweep(one.copy(), one, one, 0.0, nonnegative=False, sphere=False)
