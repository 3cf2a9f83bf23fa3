"""A covariance matrix in place of data: found to be one, in units in which nothing overflows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.estimators.checks import check_count, check_values
from princomp.estimators.standardise import SAFE_TOTAL

# How far from symmetric and definite, relative to the largest entry or eigenvalue, a matrix may be that was printed
# with nine digits; or, in eps sqrt(p) of its numbers, one that was computed in lower precision (seen: at most 0.1, in
# float32, of 3 to 100 000 rows and 5 to 1000 columns; sums in a worse order may lose more).
PRINTED = 1e-8
ROUNDINGS = 10


class Covariance(NamedTuple):
    """A covariance matrix times ``unit`` squared, a power of two."""

    matrix: Array  # (p, p), symmetric
    unit: float
    dtype: Any  # of results
    n_samples: int | None

    @property
    def freedom(self) -> float:
        """What the matrix is multiplied by to be a scatter matrix X'X: 1 if the number of samples is not known."""
        return 1.0 if self.n_samples is None else self.n_samples - 1.0

    def scaled(self) -> tuple[Covariance, Array]:
        """Return the correlations, which have no unit, and what columns are divided by."""
        variances = np.diag(self.matrix)
        deviation = np.sqrt(np.where(variances > 0, variances, 1.0))
        correlations = self.matrix / np.outer(deviation, deviation)
        return self._replace(matrix=correlations, unit=1.0), deviation / self.unit


def open_covariance(rows: Rows, n_samples: int | None, names: Any = None) -> Covariance:
    """Return a covariance matrix; complain if it is none."""
    p = rows.shape[1]
    if rows.shape[0] != p:
        raise ValueError(f"A covariance matrix is square, got shape {rows.shape}. For data, call fit.")
    if n_samples is not None:
        check_count("n_samples", n_samples, least=2)
    matrix = statistics.whole(Centered(rows))
    if not np.isfinite(matrix).all():
        check_values(rows, names)
    matrix, unit = in_safe_units(matrix)
    given = rows.block(0).dtype
    precision = float(np.finfo(given).eps) if given.kind == "f" else 0.0
    tolerance = max(PRINTED, ROUNDINGS * np.sqrt(p) * precision)
    if np.abs(matrix - matrix.T).max() > tolerance * np.abs(matrix).max():
        raise ValueError("A covariance matrix is symmetric; this one is not.")
    matrix = (matrix + matrix.T) / 2
    spectrum = np.linalg.eigvalsh(matrix)
    if spectrum[0] < -tolerance * max(spectrum[-1], 0.0):
        least, largest = spectrum[[0, -1]] / unit / unit
        raise ValueError(
            f"A covariance matrix has no negative eigenvalue; this one has {least:.3g}, the largest being "
            f"{largest:.3g}."
        )
    return Covariance(matrix, unit, rows.dtype, n_samples)


def in_safe_units(S: Array) -> tuple[Array, float]:
    """Return (S unit^2, unit), unit a power of two, so that squares of S neither overflow nor vanish."""
    largest = float(np.abs(S).max())
    if largest == 0 or SAFE_TOTAL[0] < largest < SAFE_TOTAL[1]:
        return S, 1.0
    exponent = int(np.frexp(largest)[1]) // 2
    return np.ldexp(S, -2 * exponent), float(np.ldexp(1.0, -exponent))
