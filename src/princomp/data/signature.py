"""A signature of data: the rows summed with fixed pseudo-random weights, by which other data are known as such.

A weighted sum costs next to nothing in a pass that is made anyway, and does not depend on how rows are cut into blocks
or who adds them up. Two data sets have the same one, beyond rounding, only if somebody makes them for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array

PERIOD = 8191  # rows after which the table of weights begins again, times another number: 64 KiB stay in the cache
GOLDEN = (5**0.5 - 1) / 2  # multiples of it modulo 1 never repeat, and lie evenly
SEED = 20_240_229
EPS = float(np.finfo(np.float64).eps)
# Of sqrt(n * squares), which bounds a sum of n products by Cauchy and Schwarz: what rounding may change. Sums in
# different orders were seen to differ by 4e-16 of it at most (n from 7 to 10 million, p from 1 to 4000, blocks of one
# to all rows, dense and sparse, offsets up to 1e8, sorted columns).
SUM_ROUNDING = 1e-12


# Weights of 0.5 to 1.5 with random signs: real numbers, so that changes do not cancel as signs let them.
_rng = np.random.default_rng(SEED)
_TABLE = _rng.uniform(0.5, 1.5, PERIOD) * _rng.choice([-1.0, 1.0], PERIOD)
_SUMS = np.concatenate([[0.0], np.cumsum(_TABLE)])  # of the first 0, 1, ... weights


def _factor(period: Any) -> Any:
    """Return what the table is multiplied by the so-many-eth time: from 0.75 to 1.25, with either sign."""
    place = period * GOLDEN % 1.0 - 0.5
    return place + 1.5 * (place > 0) - 0.75


def row_weights(rows: slice) -> Array:
    """Return the weights (m,) of these rows: a function of the row number alone, about 1 in size and 0 on average."""
    out = np.empty(rows.stop - rows.start)
    for period in range(rows.start // PERIOD, -(-rows.stop // PERIOD)):
        first = period * PERIOD
        start, stop = max(rows.start, first), min(rows.stop, first + PERIOD)
        here = out[start - rows.start : stop - rows.start]
        np.multiply(_TABLE[start - first : stop - first], _factor(period), out=here)
    return out


def ones_and_weights(rows: slice) -> Array:
    """Return (2, m): ones and weights. A product with both costs little more than one with either."""
    both = np.ones((2, rows.stop - rows.start))
    both[1] = row_weights(rows)
    return both


def total_weight(n: int) -> float:
    """Return the sum of the weights of rows 0 to n - 1: a few hundred at most, however many they are."""
    periods, rest = divmod(n, PERIOD)
    whole = float(_factor(np.arange(periods)).sum()) if periods else 0.0
    return whole * float(_SUMS[-1]) + float(_factor(periods)) * float(_SUMS[rest])


@dataclass(frozen=True)
class Signature:
    """Weighted sums over rows, and by how much rounding alone may change them."""

    sums: Array  # (p,), or (m, p) for several numbers by column
    slack: Array  # the same

    @classmethod
    def about(cls, mean: Array, sums: Array, squares: Any, n: int) -> Signature:
        """Return the signature of n deviations from a mean: their weighted ``sums``, given their ``squares``.

        ``squares`` are by column, or one number, the sum over all columns, and ``mean`` is in the same units.

        Rounding in other orders of summation (other blocks, threads, machines) is within `SUM_ROUNDING` of the largest
        that the sum can be. The mean itself is a rounded number, whose last digit counts once for each unit of weight.
        A cell that changes by more than about ``SUM_ROUNDING * n`` standard deviations of its column is seen.
        """
        largest = np.sqrt(n * np.maximum(squares, 0.0))
        return cls(sums, SUM_ROUNDING * largest + max(abs(total_weight(n)), 1.0) * _last_digits(mean))

    @classmethod
    def of_mean(cls, mean: Array, squares: Any, n: int) -> Signature:
        """Return the signature that is the mean itself: `about` does not see a column that is moved as a whole."""
        return cls(mean, SUM_ROUNDING * np.sqrt(np.maximum(squares, 0.0) / n) + _last_digits(mean))

    def times(self, factor: Any) -> Signature:
        """Return the signature of the data with columns multiplied by a positive ``factor``."""
        return Signature(self.sums * factor, self.slack * factor)

    def and_of(self, other: Signature) -> Signature:
        """Return one signature that holds both, for columns one after the other."""
        return Signature(np.append(self.sums, other.sums), np.append(self.slack, other.slack))

    def agrees(self, sums: Array) -> bool:
        """Tell whether sums taken another time are those of the same data."""
        return self.sums.shape == np.shape(sums) and bool((np.abs(self.sums - sums) <= self.slack).all())


def _last_digits(mean: Array) -> Array:
    """Return what a few roundings make of numbers of this size."""
    return 8 * EPS * np.abs(mean)


def require_unchanged(before: Signature, sums: Array, names: Any = None) -> None:
    """Raise ValueError if sums over a later reading of the data are not what they were."""
    if before.agrees(sums):
        return
    same = np.abs(before.sums - sums) <= before.slack
    changed = np.flatnonzero(~same.reshape(-1, same.shape[-1]).all(axis=0))
    column = str(changed[0]) if names is None else repr(names[changed[0]])
    more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
    raise ValueError(
        f"The data changed between two readings, in column {column}{more}. A fit reads them more than once: let files "
        "alone and have functions return the same rows each time, or load the data into memory first (a Spark "
        "DataFrame: .persist() or .localCheckpoint())."
    )
