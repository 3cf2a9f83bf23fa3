"""What is known of rows that have been coded: `Coded`, sums over them, and the rows that are coded worst.

With codes a (1, K) of rows x (1, p) on atoms D (K, p), the mean over n rows of 1/2 |x - a D|^2 + h(a) is

    1/(2n) sum |x|^2 - <D, B> + 1/2 <D, A D> + 1/n sum h(a),    A = 1/n sum a'a (K, K),  B = 1/n sum a'x (K, p):

as a function of D all that matters is A and B (Mairal, Bach, Ponce & Sapiro, JMLR 2010), which add up over rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.solvers.learning_atoms import slopes

WORST = 64  # rows that are kept to be atoms, at the most


@dataclass(frozen=True)
class Task:
    """What rows are coded with: sent to whoever holds them."""

    D: Array  # (K, p)
    coder: Coder
    worst: int = 0  # how many of the worst-coded rows to keep
    codes: Any = None  # those that a row has already, CSR (n, K): kept where they are better than new ones
    keep: bool = False  # whether codes are returned, too
    by_cell: bool = False  # whether cells count differently: some are missing, or there is a loss
    loss: Any = None  # another one than the square

    @property
    def gram(self) -> Array:
        """D D', (K, K)."""
        return self.D @ self.D.T

    @property
    def optimal(self) -> bool:
        """Whether a new code is never worse than an old one."""
        return self.coder.optimal and self.loss is None


@dataclass(frozen=True)
class Worst:
    """The rows that atoms describe worst: squared errors (m,), row numbers (m,), and the rows (m, p)."""

    errors: Array
    numbers: Array
    rows: Array

    @classmethod
    def nothing(cls, p: int) -> Worst:
        """Return none of p columns."""
        return cls(np.empty(0), np.empty(0, np.int64), np.empty((0, p)))

    def and_of(self, other: Worst, most: int) -> Worst:
        """Return the worst of both, by error and then by number: the order in which they come does not matter."""
        errors, numbers = np.append(self.errors, other.errors), np.append(self.numbers, other.numbers)
        first = np.lexsort((numbers, -errors))[:most]
        return Worst(errors[first], numbers[first], np.vstack([self.rows, other.rows])[first])


@dataclass(frozen=True)
class Coded:
    """Sums over rows that have been coded."""

    count: float  # of rows
    A: Array  # (K, K) sum of a'a; where cells have weights (K, K, p)
    B: Array  # (K, p) sum of a'x
    squares: float  # sum of |x|^2
    errors: float  # sum of |x - a D|^2
    penalties: float  # sum of h(a)
    used: Array  # (K,) rows that use each atom
    worst: Worst
    offset: float = 0.0  # by how much errors are more than weighted squares of residuals, where there is a loss
    pull: Array | None = None  # (K, p) sum of a' rho'(x) / 2, where there is a loss: what B is to squares
    codes: tuple[Any, ...] = field(default=())

    @classmethod
    def nothing(cls, K: int, p: int, *, by_cell: bool = False) -> Coded:
        """Return the sums over no rows."""
        return cls(
            0.0,
            np.zeros((K, K, p) if by_cell else (K, K)),
            np.zeros((K, p)),
            0.0,
            0.0,
            0.0,
            np.zeros(K),
            Worst.nothing(p),
        )

    @property
    def reference(self) -> Array:
        """The gradient at atoms of 0, (K, p), that others are measured by."""
        return self.B if self.pull is None else self.pull

    @property
    def objective(self) -> float:
        """The mean over rows of 1/2 |x - a D|^2 + h(a), for the D that they were coded with."""
        return (0.5 * self.errors + self.penalties) / self.count

    def objective_of(self, D: Array) -> float:
        """Return the mean over rows of 1/2 |x - a D|^2 + h(a) with these codes and other atoms."""
        quadratic = 0.5 * np.vdot(D, slopes(D, self.A, self.B) - self.B)
        return float((0.5 * (self.squares + self.offset) + quadratic + self.penalties) / self.count)

    def and_of(self, other: Coded) -> Coded:
        """Return the sums over the rows of both, those of ``other`` after these."""
        return replace(
            self,
            count=self.count + other.count,
            A=self.A + other.A,
            B=self.B + other.B,
            squares=self.squares + other.squares,
            errors=self.errors + other.errors,
            penalties=self.penalties + other.penalties,
            used=self.used + other.used,
            worst=self.worst.and_of(other.worst, WORST),
            offset=self.offset + other.offset,
            pull=other.pull if self.pull is None or other.pull is None else self.pull + other.pull,
            codes=self.codes + other.codes,
        )

    def times(self, weight: float) -> Coded:
        """Return what each row counts for ``weight`` rows; uses and worst rows stay."""
        names = ("count", "A", "B", "squares", "errors", "penalties", "offset")
        pull = None if self.pull is None else weight * self.pull
        return replace(self, pull=pull, **{name: weight * getattr(self, name) for name in names})


def merge(total: Coded, part: Coded) -> Coded:
    """Add up two parts."""
    return total.and_of(part)


def worst_of(errors: Array, numbers: Array, X: Any, most: int) -> Worst:
    """Return the ``most`` rows with the largest errors, of those that have any."""
    if not most:
        return Worst.nothing(X.shape[1])
    first = np.argsort(-errors, kind="stable")[:most]
    first = first[errors[first] > 0]
    picked = X[first] if isinstance(X, np.ndarray) else X[first].toarray()
    return Worst(errors[first], numbers[first], picked)
