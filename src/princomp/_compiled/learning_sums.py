"""Sums over sparse codes, and sweeps over atoms, for dictionary learning.

A = sum a a' and B = sum a x' from codes of few nonzeros cost their number times what they are multiplied with, where a
product of dense matrices costs all atoms. Twins: `princomp.solvers.learning_statistics.sums_of_dense`,
`princomp.solvers.learning_cells.sums_of_dense_cells`, `princomp.solvers.learning_atoms.sweep_one_by_one` and `nearest`
there.
"""

import numpy as np

from princomp._compiled import compiled, part
from princomp._typing import Array

Sums = tuple[Array, Array, Array]

WORK = 2e8  # multiplications in a call, at the most: a call cannot be interrupted
FLOOR = 1e-12  # of the largest weight of an atom: cells that count for less would overflow
MOST, CLOSE = 50, 1e-14  # steps to a length of 1, and how near it is


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


@part
def _within(v: Array, weights: Array, shift: float) -> tuple[float, float]:
    """Return |d|^2 and sum_j d_j^2 / (w_j + shift) of d_j = w_j v_j / (w_j + shift)."""
    square, bent = 0.0, 0.0
    for j in range(len(v)):
        below = weights[j] + shift
        d = weights[j] * v[j] / below if v[j] != 0.0 else 0.0
        square += d * d
        bent += d * d / below if d != 0.0 else 0.0
    return square, bent


@compiled
def nearest(v: Array, weights: Array, sphere: bool) -> bool:
    """Replace v by what minimises sum_j w_j (d_j - v_j)^2 in the ball or on the sphere; False if that is not found.

    d_j = w_j v_j / (w_j + shift), with the shift at which |d| = 1: Newton's steps on 1 / |d|, which come from the left
    and stay there (More & Sorensen, SIAM J. Sci. Stat. Comput. 1983).
    """
    square, bent = _within(v, weights, 0.0)
    if square <= 1.0 and not sphere:
        return True
    shift = 0.0
    if square < 1.0:
        least = np.argmin(weights)
        if v[least] == 0.0:
            return False
        shift = weights[least] * (abs(v[least]) - 1.0)
    for _ in range(MOST):
        square, bent = _within(v, weights, shift)
        length = np.sqrt(square)
        if not abs(length - 1.0) > CLOSE:
            break
        shift += square / bent * (length - 1.0)
    for j in range(len(v)):
        v[j] = weights[j] * v[j] / (weights[j] + shift) / length
    return length > 0.5  # what did not converge is no minimiser


@compiled
def _sweep_cells(
    D: Array, A: Array, B: Array, least: float, nonnegative: bool, sphere: bool, first: int, last: int
) -> None:
    K, p = D.shape
    v, u, weights = np.empty(p), np.empty(p), np.empty(p)
    for k in range(first, last):
        own = A[k, k].max()
        if not own > least:
            continue
        for j in range(p):
            weights[j] = max(A[k, k, j], FLOOR * own)
            u[j] = B[k, j]
        for other in range(K):
            for j in range(p):
                u[j] -= A[k, other, j] * D[other, j]
        for j in range(p):
            v[j] = D[k, j] + u[j] / weights[j]
            v[j] = max(v[j], 0.0) if nonnegative else v[j]
        if not nearest(v, weights, sphere):  # a step as long as the largest weight allows leads down as well
            square = 0.0
            for j in range(p):
                v[j] = D[k, j] + u[j] / own
                v[j] = max(v[j], 0.0) if nonnegative else v[j]
                square += v[j] * v[j]
            length = np.sqrt(square)
            if length == 0.0:
                continue
            v /= length if sphere else max(length, 1.0)
        D[k] = v


def sweep_cells(D: Array, A: Array, B: Array, least: float, *, nonnegative: bool, sphere: bool) -> None:
    """Do what `sweep` does where cells have weights of their own, A (K, K, p): each step is the exact minimiser."""
    K, p = D.shape
    atoms = max(int(WORK / (K * p)), 1)
    for first in range(0, K, atoms):
        _sweep_cells(D, A, B, least, nonnegative, sphere, first, min(first + atoms, K))


def warm_up() -> None:
    """Compile."""
    codes = (np.array([0, 1], np.int32), np.zeros(1, np.int32), np.ones(1))
    one = np.ones((1, 1))
    add_codes(codes, one, one, one, (one.copy(), one.copy(), np.ones(1)))
    add_cells(codes, one, one, np.ones((1, 1, 1)), one.copy())
    sweep(one.copy(), one, one, 0.0, nonnegative=False, sphere=False)
    sweep_cells(one.copy(), np.ones((1, 1, 1)), one, 0.0, nonnegative=False, sphere=False)
