"""Kernel PCA with landmarks from columns of the kernel matrix, where landmarks differ enough: no features are made.

With C = k(X, S), W = k(S, S) = LL' and J the centring, Nystroem's features are F = C L^-T (any square root of W^-1 will
do), and F'JF = L^-1 (C'JC) L^-T: one pass over the rows sums C'JC, half the work of making F and summing F'JF. Rounding
of C'JC grows by |W^-1| then. Where that is too much, as where landmarks are nearly alike, there is None: features made
of the eigenvectors of W, row by row, keep the digits (`princomp.solvers.feature_maps`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Rows, statistics
from princomp.data.statistics import SHIFT_TOLERANCE
from princomp.estimators.decompose import by_eigh_of_scatter
from princomp.estimators.spectrum import Spectrum
from princomp.estimators.standardise import SAFE_TOTAL
from princomp.solvers.feature_maps import Columns, Nystroem

ERROR = 1e-9  # of the trace of K, that rounding may change
UNITS = 4.0  # of rounding, of the sum of all squares in C: several times what was seen on 100 to 1000 landmarks
# Rows of C that are made at a time, and that are then multiplied with themselves at a time: of 10000 rows and 720
# landmarks, 256 and 2048 take 0.15 s, 1024 and 1024 0.18 s.
TILE, TILES = 256, 8


@dataclass(frozen=True)
class Factor:
    """W = LL' of landmarks."""

    L: Array  # (m, m), lower
    root: Array  # (m, m), L^-T
    middle: Array  # (m,), the means of W: near those of C
    error: float  # what rounding makes of F'JF, in units of the trace of K


@dataclass(frozen=True)
class ColumnSums:
    """Mean and squares of the columns C of a kernel matrix."""

    mean: Array  # (m,)
    scatter: Array  # (m, m), C'JC
    discrepancy: Array  # (m,), C'JC w less C'J(Cw) for the trial vector w


def factor(columns: Columns) -> Factor | None:
    """Return the factor, or None if landmarks are too much alike, or their kernel too large or small to be squared."""
    from scipy.linalg.lapack import dpocon, dpotrf, dtrtri

    W = columns.kernel.between(columns.points, columns.points)
    trace, squares = float(np.trace(W)), float(np.vdot(W, W))
    if not SAFE_TOTAL[0] < squares < SAFE_TOTAL[1]:
        return None
    L, failed = dpotrf(W, lower=1, clean=1)
    norm = float(np.abs(W).sum(axis=0).max())
    if failed or not (condition := float(dpocon(L, norm, uplo="L")[0])) > 0:
        return None
    error = UNITS * np.finfo(float).eps * squares / (norm * condition) / trace
    if not error <= ERROR:
        return None
    return Factor(L, dtrtri(L, lower=1)[0].T, W.mean(axis=0), error)


def column_sums(rows: Rows, columns: Columns, about: Array) -> ColumnSums | None:
    """Return the sums over all rows, taken about a point near the mean of C; None if it proves not to be near."""
    n, w = rows.shape[0], statistics.trial_vector(len(about))
    with np.errstate(over="ignore", invalid="ignore"):
        sums, product, lower = rows.reduce(_sums, columns, about, w)
        scatter = lower + np.tril(lower, -1).T
        away = sums / n
        lost = n * away**2
        scatter -= np.outer(n * away, away)
        product = product - n * away * (away @ w)
    if not np.isfinite(scatter).all() or np.any(lost > SHIFT_TOLERANCE**2 * np.diag(scatter)):
        return None
    return ColumnSums(about + away, scatter, scatter @ w - product)


def _sums(block: Any, rows: slice, columns: Columns, about: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return 1'C, C'(Cw) and the lower half of C'C, for C less ``about``."""
    from scipy.linalg.blas import dsyrk

    m, step = len(about), TILE * TILES
    sums, lower = np.zeros((2, m)), np.zeros((m, m), order="F")
    C = np.empty((min(step, block.shape[0]), m))
    for begin in range(0, block.shape[0], step):
        piece = block[begin : begin + step]
        held = C[: piece.shape[0]]
        for first in range(0, piece.shape[0], TILE):
            tile = held[first : first + TILE]
            np.subtract(columns(piece[first : first + TILE]), about, out=tile)
            sums += np.stack([np.ones(len(tile)), tile @ w]) @ tile
        lower = dsyrk(1.0, held.T, beta=1.0, c=lower, lower=1, overwrite_c=1)
    return sums[0], sums[1], np.tril(lower)


def decompose_columns(rows: Rows, columns: Columns, k: int, tol: float) -> tuple[Nystroem, Spectrum, float] | None:
    """Return features, their k leading components, and what rounding leaves unknown of their eigenvalues.

    None where that is more than ``tol`` of the last one.
    """
    found = factor(columns)
    sums = None if found is None else column_sums(rows, columns, found.middle)
    if found is None or sums is None:
        return None
    n, L, root = rows.shape[0], found.L, found.root
    S, mean = _congruent(sums.scatter, L), root.T @ sums.mean
    total = float(np.trace(S))
    # The trial vector w of the pass is L'w in features: what F'JF does to it, less what F does to it twice.
    trial = L.T @ statistics.trial_vector(len(L))
    measured = float(np.linalg.norm(root.T @ sums.discrepancy) / np.linalg.norm(trial)) * np.sqrt(len(L))
    error = measured + found.error * (total + n * float(mean @ mean))
    if not total > error:
        return None
    spectrum = by_eigh_of_scatter(S, k, total, tol, error)
    if error > tol * spectrum.values[-1]:
        return None
    return Nystroem(columns, root), replace(spectrum, count=n, freedom=n - 1.0, centred=True, mean=mean), error


def _congruent(S: Array, L: Array) -> Array:
    """Return L^-1 S L^-T."""
    from scipy.linalg.lapack import dsygst

    lower = np.tril(dsygst(S, L, itype=1, lower=1)[0])
    return np.asarray(lower + np.tril(lower, -1).T)
