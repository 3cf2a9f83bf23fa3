"""Kernel PCA (Schoelkopf, Smola & Mueller, Neural Computation 1998) by the eigenproblem of the centred kernel matrix.

Objective: maximise tr(V' Kc V) over orthonormal V (n, k), Kc = (I - uu') K (I - uu') as `KernelMatrix` has it. Small
matrices, those of kernels that are not positive semidefinite, and many components: LAPACK on the whole matrix, or
ARPACK for very few components of small ones; else block Krylov iteration on products with it, which needs no matrix in
memory (`princomp.solvers.leading`).

Only positive eigenvalues belong to components. Where some are negative, their share of all is told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from princomp import certificates
from princomp._typing import Array
from princomp.certificates.principal import MATRIX_ROUNDING
from princomp.result import Certificate, Result, Status, run
from princomp.solvers.eigh import leading_eigenpairs
from princomp.solvers.kernel_matrix import KernelMatrix
from princomp.solvers.krylov import GROWTH
from princomp.solvers.leading import Operator, leading

DENSE = 1000  # rows up to which LAPACK, or ARPACK, is as fast for any number of components
TINY = 100  # rows up to which to find all eigenvalues costs nothing
VERY_FEW = 0.05  # of the rows: components up to which ARPACK is faster
LATE = 0.1  # of tol, at which ARPACK ends: what it takes for the residual is not relative to each value
FEW = 0.2  # of the rows: components that are few, whose eigenvalues alone are found by LAPACK
MOST = 0.3  # of the rows: components so many that all eigenvectors are certified at once in less time
MANY = 0.125  # of the rows: components that are many
ALONG = 1e-8  # of u in a vector of length 1: what its square takes off lengths and angles is rounding
UNITLESS = (1e-100, 1e100)  # entries of K whose squares float64 holds
COSTLY = 3000  # rows from which a product costs so much that the iteration may look at what it has after each


@dataclass(frozen=True)
class KernelSpectrum:
    """Leading eigenpairs of a centred kernel matrix."""

    values: Array  # (k,), descending, none below 0
    V: Array  # (n, k)
    total: float  # the trace
    result: Result
    positive: float = 0.0  # the sum of the positive eigenvalues: the trace, if none is negative
    negative: float | None = None  # sum of the negative eigenvalues over that of all, in magnitude; None if not known

    @property
    def certificate(self) -> Certificate:
        """How good they are."""
        return self.result.certificate


def solve(
    K: KernelMatrix,
    k: int | None,
    *,
    tol: float,
    max_iter: int,
    rng: np.random.Generator,
    drive: Callable[..., Result] = run,
) -> KernelSpectrum:
    """Return the k leading eigenpairs, or, if k is None, those of all positive eigenvalues."""
    if k is None or takes_whole(K.n, k, psd=K.psd):
        return by_eigh(K, k, tol=tol)
    return by_krylov(K, k, tol=tol, max_iter=max_iter, rng=rng, drive=drive)


def takes_whole(n: int, k: int | None, *, psd: bool) -> bool:
    """Tell whether the whole matrix of n rows is formed, for k components of a kernel."""
    return k is None or not psd or n <= DENSE or k > MANY * n


def by_eigh(K: KernelMatrix, k: int | None, *, tol: float) -> KernelSpectrum:
    """Solve by LAPACK; all eigenvalues are known, but for few components of a positive semidefinite matrix.

    Very few are found by ARPACK, in a third of the time, and kept if they are certified.
    """
    S = K.centred_whole()
    few = K.psd and k is not None and K.n > TINY and k <= FEW * K.n
    if few and k is not None and k <= VERY_FEW * K.n:
        quick = _by_arpack(S, k, tol)
        if quick is not None:
            found = _spectrum(K, S, *quick, k, tol)
            if found.certificate.holds:
                status = Status("converged", f"Converged: {found.certificate}")
                return replace(found, result=replace(found.result, status=status))
    return _spectrum(K, S, *leading_eigenpairs(S, k if few and k is not None else K.n), k, tol)


def _by_arpack(S: Array, k: int, tol: float) -> tuple[Array, Array] | None:
    """Return the k leading eigenvalues and vectors, or None if there is no end to it."""
    from scipy.sparse.linalg import ArpackError, eigsh

    start = np.random.default_rng(0).standard_normal(len(S))
    try:
        values, vectors = eigsh(S, k, tol=LATE * tol, v0=start)
    except ArpackError:
        return None
    return values[::-1], np.linalg.qr(vectors[:, ::-1])[0]  # orthonormal to the last digit


def _spectrum(K: KernelMatrix, S: Array, every: Array, vectors: Array, k: int | None, tol: float) -> KernelSpectrum:
    """Return what is known of the components from all, or the leading, eigenpairs of the centred matrix S."""
    floor = _floor(K, every)
    positive = every > floor
    if k is None:
        k = max(int(positive.sum()), 1)
    values, V = np.where(positive, every, 0.0)[:k], _within(K, vectors[:, :k])
    certificate = _certified(K, S, V, values, every, vectors, floor, tol)
    below = float(-every[every < -floor].sum())
    negative = below / float(np.abs(every).sum()) if below > 0 else 0.0
    certificate = replace(certificate, details={**certificate.details, "negative": negative})
    status = Status("exact", "Solved exactly, up to rounding.")
    # The trace of K itself is a difference of larger numbers where K is nearly constant.
    above = float(every[positive].sum()) if len(every) == K.n else max(float(np.trace(S)), float(values.sum()))
    total = K.centred_trace if negative else above
    result = Result({"V": V, "values": values}, max(total - float(values.sum()), 0.0), certificate, status)
    return KernelSpectrum(values, V, total, result, above, negative)


def _certified(
    K: KernelMatrix, S: Array, V: Array, values: Array, every: Array, vectors: Array, floor: Array, tol: float
) -> Certificate:
    """Certify the components that there are; those asked for beyond them have no variance and nothing to be wrong.

    ``every`` and ``vectors`` are all eigenpairs of S that are known, (m,) and (n, m).
    """
    k, there = len(values), int((values > 0).sum())
    if there == 0:
        return Certificate(0.0, tol, "global", True, {"residuals": np.zeros(k), "floor": floor[:k]})
    certificate = None
    if there >= MOST * K.n and len(every) == K.n:
        # Those of no variance are left out: V has been turned away from u, which is one of them.
        m = int((np.abs(every) > floor).sum())
        whole = V[:, :there] if m == there else np.hstack([V[:, :there], vectors[:, there:]])
        certificate = certificates.certify_all(S, whole, every, there, tol=tol, floor=float(floor[0]))
    if certificate is None or not certificate.holds:
        first, last = V[:, :there], float(floor[there - 1])
        if len(every) == K.n:
            left_out = certificates.left_out_of_values(every[there:])
        else:  # one Cholesky factorisation tells
            left_out = certificates.left_out_of_matrix(S, first, values[:there], tol, last)
        measured = certificates.images_by_product(K.centred_product, first)
        certificate = certificates.certify(first, values[:there], measured, left_out, tol=tol, floor=floor[:there])
    more = {"residuals": 0.0, "floor": floor[0], "error": floor[0], "known": np.inf}
    longer = {name: np.append(certificate.details[name], np.full(k - there, by)) for name, by in more.items()}
    return replace(certificate, details={**certificate.details, **longer})


def by_krylov(
    K: KernelMatrix, k: int, *, tol: float, max_iter: int, rng: np.random.Generator, drive: Callable[..., Result] = run
) -> KernelSpectrum:
    """Solve by block Krylov iteration; K is positive semidefinite."""
    unit = _unit(K.trace / K.n)
    total = K.centred_trace
    rough = K.centred_product_in_single if K.may_begin_in_single else None
    growth = 0.0 if K.n >= COSTLY else GROWTH
    # What is certified, and returned, has nothing of u.
    how: dict[str, Any] = {"in_single": rough, "growth": growth, "to_vectors": partial(_within, K)}
    S = Operator(
        lambda V: K.centred_product(V) / unit, K.n, total / unit, lambda values: _floor(K, values * unit) / unit, **how
    )
    found = leading(S, k, tol=tol, max_iter=max_iter, rng=rng, drive=drive)
    values = found.values * unit
    values = np.where(values > _floor(K, values), values, 0.0)
    total = max(total, float(values.sum()))
    left = total - float(values.sum())
    certificate = certificates.in_units(found.result.certificate, 1 / unit)
    result = replace(found.result, value={"V": found.V, "values": values}, objective=left, certificate=certificate)
    return KernelSpectrum(values, found.V, total, result, total, 0.0)


def _unit(size: float) -> float:
    """Return a power of 4 by which numbers of this size are divided if their squares would over- or underflow."""
    return 1.0 if UNITLESS[0] < size < UNITLESS[1] or not 0 < size < np.inf else 4.0 ** (np.frexp(size)[1] // 2)


def _within(K: KernelMatrix, V: Array) -> Array:
    """Return orthonormal vectors at right angles to u, which rounding mixes into those of eigenvalues near 0."""
    along = K.trivial @ V
    V = V - np.outer(K.trivial, along)
    if np.abs(along).max(initial=0.0) <= ALONG:
        return V
    Q, R = np.linalg.qr(V)
    return np.asarray(Q * np.where(np.diag(R) < 0, -1.0, 1.0))


def _floor(K: KernelMatrix, values: Array) -> Array:
    """Return what rounding leaves unknown of eigenvalues: in units of the largest one, and of what centring takes off.

    Entries of K are rounded in units of K itself: a constant in it that is larger than all the rest costs digits.
    """
    error = MATRIX_ROUNDING * np.finfo(float).eps * K.size_taken_out
    return certificates.floor_of_matrix(K.n, np.abs(values), error)
