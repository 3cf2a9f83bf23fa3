"""X centred, scaled, and in units in which squares neither overflow nor vanish."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.data.signature import Signature, require_unchanged
from princomp.data.statistics import Moments
from princomp.estimators.checks import check_values, column

# Squares are safe from overflow and underflow while their sum lies between these; outside, X is multiplied by a power
# of two first, which is exact.
SAFE_TOTAL = (1e-100, 1e100)
SAFE_IN_SINGLE = (1e-20, 1e20)  # of a row, in single precision


@dataclass(frozen=True)
class Standardised:
    """What `standardise` returns."""

    X: Centered  # centred, scaled and times ``unit``
    total: float  # the sum of squares of X
    mean: Array  # (p,), of the data as they are
    scale: Array | None  # (p,), what columns are divided by, or None
    unit: float  # what X was multiplied by
    scatter: Array | None  # X'X, if it was asked for
    error: float  # of that, measured
    signature: Signature  # of X, from the pass that measured it

    def require_unchanged(self, names: Any = None) -> None:
        """Raise ValueError if the data, read once more, are not what they were; those in memory are not read again."""
        if self.X.rows.changeable:
            require_unchanged(self.signature, statistics.weighted_sums(self.X), names)


def standardise(rows: Rows, *, center: bool, scale: bool, scatter: bool = False, names: Any = None) -> Standardised:
    """Return rows less their mean, divided by their standard deviations (n - 1) if ``scale``, in safe units.

    ``scatter`` asks for X'X too, from the same pass. ValueError names a column that holds NaN or inf.
    """
    n, p = rows.shape
    found, unit = _measure(rows, names, by_column=scale, center=center, scatter=scatter)
    deviation, total, S = None, found.total, found.scatter
    if scale and found.squares is not None:
        spread = np.sqrt(np.maximum(found.squares, 0.0) / (n - 1))
        # What is left of a constant column is rounding of its mean.
        rounding = 8 * np.finfo(np.float64).eps * np.abs(found.mean * unit)
        varies = spread > rounding
        deviation = np.where(varies, spread, 1.0)
        total = float((n - 1) * varies.sum())
        S = None if S is None else S * np.outer(varies / deviation, varies / deviation)
        check_scale(deviation / unit, names)
    factor = None
    if np.any(unit != 1.0) or deviation is not None:
        factor = np.full(p, unit) * (1.0 if deviation is None else varies / deviation)
    return Standardised(
        X=found.centered(rows, factor),
        total=total,
        mean=found.mean,
        scale=None if deviation is None else deviation / unit,
        unit=float(unit) if deviation is None else 1.0,
        scatter=S,
        error=_error(found, deviation),
        signature=found.signature if deviation is None else found.signature.times(varies / deviation),
    )


def _error(found: Moments, deviation: Array | None) -> float:
    """Return the norm of what X'X does to a random vector, less what X does to it twice, per unit of its length."""
    if found.discrepancy is None:
        return 0.0
    trial, scale = statistics.trial_vector(len(found.mean)), 1.0 if deviation is None else deviation
    length = np.linalg.norm(trial * scale) / np.sqrt(len(trial))
    return float(np.linalg.norm(found.discrepancy / scale) / length)


def as_given(squares: Any, unit: Any) -> Any:
    """Return squares, or a variance, in the units of the user; infinite, or 0, where these do not hold them."""
    with np.errstate(over="ignore", under="ignore"):
        return np.float64(squares) / unit / unit


def safe_unit(largest: Any) -> Any:
    """Return a power of two (for each number) that brings it near 1; 1 for 0."""
    return np.ldexp(1.0, -np.clip(np.frexp(largest)[1], -1000, 1000))


def check_scale(scale: Array, names: Any = None) -> None:
    """Raise ValueError if a column is to be divided by a number so small that float64 has not all of its digits."""
    tiny = np.flatnonzero(scale < np.finfo(np.float64).tiny)
    if len(tiny):
        raise ValueError(
            f"Column {column(names, tiny[0])} varies by {scale[tiny[0]]:.0e}, too little to be divided by: float64 has "
            "not all digits of such numbers. Multiply the column by a constant first, or leave it out."
        )


def _measure(rows: Rows, names: Any, *, by_column: bool, **how: Any) -> tuple[Moments, Any]:
    """Return moments of X times a power of two in which squares neither overflow nor vanish, and that power.

    One power for all columns, or, ``by_column``, one for each.
    """
    found = statistics.moments(rows, by_column=by_column, **how)
    sizes = found.spread if by_column else np.array(found.total)
    safe = (SAFE_TOTAL[0] < sizes) & (sizes < SAFE_TOTAL[1])
    if safe.all():
        return found, 1.0
    largest = check_values(rows, names, center=how["center"])
    largest = largest if by_column else largest.max()
    unit = np.where(safe, 1.0, safe_unit(largest))  # a constant column needs no other units, and so no other pass
    if np.all(unit == 1.0):
        return found, 1.0
    return statistics.moments(rows, by_column=by_column, factor=np.full(rows.shape[1], unit), **how), unit
