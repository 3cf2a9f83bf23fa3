"""What dictionary learning needs to know of the data, given atoms: sums over rows that are coded tile by tile.

With codes a (1, K) of rows x (1, p) on atoms D (K, p), the mean over n rows of 1/2 |x - a D|^2 + h(a) is

    1/(2n) sum |x|^2 - <D, B> + 1/2 <D, A D> + 1/n sum h(a),    A = 1/n sum a'a (K, K),  B = 1/n sum a'x (K, p):

as a function of D all that matters is A and B (Mairal, Bach, Ponce & Sapiro, JMLR 2010), which add up over rows. So
whoever holds the rows codes them and returns `Coded`: the same on every storage, at any split into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.coders.blocks import tiles
from princomp.data import Rows

WORST = 64  # rows that are kept to be atoms, at the most


@dataclass(frozen=True)
class Task:
    """What rows are coded with: sent to whoever holds them."""

    D: Array  # (K, p)
    coder: Coder
    worst: int = 0  # how many of the worst-coded rows to keep
    codes: Any = None  # those that a row has already, CSR (n, K): kept where they are better than new ones
    keep: bool = False  # whether codes are returned, too

    @property
    def gram(self) -> Array:
        """D D', (K, K)."""
        return self.D @ self.D.T


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
    A: Array  # (K, K) sum of a'a
    B: Array  # (K, p) sum of a'x
    squares: float  # sum of |x|^2
    errors: float  # sum of |x - a D|^2
    penalties: float  # sum of h(a)
    used: Array  # (K,) rows that use each atom
    worst: Worst
    codes: tuple[Any, ...] = field(default=())

    @classmethod
    def nothing(cls, K: int, p: int) -> Coded:
        """Return the sums over no rows."""
        return cls(0.0, np.zeros((K, K)), np.zeros((K, p)), 0.0, 0.0, 0.0, np.zeros(K), Worst.nothing(p))

    @property
    def objective(self) -> float:
        """The mean over rows of 1/2 |x - a D|^2 + h(a), for the D that they were coded with."""
        return (0.5 * self.errors + self.penalties) / self.count

    def objective_of(self, D: Array) -> float:
        """Return the mean over rows of 1/2 |x - a D|^2 + h(a) with these codes and other atoms."""
        quadratic = 0.5 * np.vdot(D, self.A @ D) - np.vdot(D, self.B)
        return float((0.5 * self.squares + quadratic + self.penalties) / self.count)

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
            codes=self.codes + other.codes,
        )

    def times(self, weight: float) -> Coded:
        """Return what each row counts for ``weight`` rows; uses and worst rows stay."""
        numbers = {name: weight * getattr(self, name) for name in ("count", "A", "B", "squares", "errors", "penalties")}
        return replace(self, **numbers) if weight != 1.0 else self


def merge(total: Coded, part: Coded) -> Coded:
    """Add up two parts."""
    return total.and_of(part)


def code_all(rows: Rows, task: Task) -> Coded:
    """Code all rows, wherever they are, and return the sums."""
    coded: Coded = rows.reduce(code_block, task, combine=merge)
    return coded


def code_block(block: Any, rows: slice, task: Task) -> Coded:
    """Code a block of rows, dense or CSR."""
    return code_rows(block, np.arange(rows.start, rows.stop), task)


def code_rows(X: Any, numbers: Array, task: Task) -> Coded:
    """Code rows (m, p) that have these numbers, dense or CSR, tile by tile."""
    gram, total = task.gram, Coded.nothing(*task.D.shape)
    for here, tile, correlations, squares in tiles(X, task.D):
        part = code_tile(tile, numbers[here], task, gram, correlations, squares)
        total = total.and_of(part) if total.count else part
    return total


def code_tile(X: Any, numbers: Array, task: Task, gram: Array, correlations: Array, squares: Array) -> Coded:
    """Code rows (m, p), float64, dense or CSR, with these row numbers, products X D' and |x|^2."""
    old = None if task.codes is None else task.codes[numbers]
    codes = task.coder.code(gram[None], correlations, squares, old)
    A, B, errors = sums(codes, X, gram, correlations, squares)
    penalties = task.coder.penalties(codes)
    if old is not None and not task.coder.optimal:
        codes, some = better(old, codes, 0.5 * errors + penalties, task.coder, gram, correlations, squares)
        if some:
            A, B, errors = sums(codes, X, gram, correlations, squares)
            penalties = task.coder.penalties(codes)
    return Coded(
        float(len(numbers)),
        A,
        B,
        float(squares.sum()),
        float(errors.sum()),
        float(penalties.sum()),
        np.bincount(codes.indices, minlength=len(gram)).astype(np.float64),
        worst_of(errors, numbers, X, task.worst),
        (codes,) if task.keep else (),
    )


def worst_of(errors: Array, numbers: Array, X: Any, most: int) -> Worst:
    """Return the ``most`` rows with the largest errors, of those that have any."""
    if not most:
        return Worst.nothing(X.shape[1])
    first = np.argsort(-errors, kind="stable")[:most]
    first = first[errors[first] > 0]
    picked = X[first] if isinstance(X, np.ndarray) else X[first].toarray()
    return Worst(errors[first], numbers[first], picked)


def better(
    old: Any, new: Any, objectives: Array, coder: Coder, gram: Array, correlations: Array, squares: Array
) -> tuple[Any, bool]:
    """Return, row by row, the new code or the old one, whichever has the smaller objective; and whether some are old.

    A greedy search may well find a code that is worse than the one it had found with other atoms.
    """
    from scipy.sparse import vstack

    before = 0.5 * code_errors(old, gram, correlations, squares) + coder.penalties(old)
    keep = before < objectives
    if not keep.any():
        return new, False
    both = vstack([new, old], format="csr")
    return both[np.arange(len(keep)) + np.where(keep, len(keep), 0)], True


def code_errors(codes: Any, gram: Array, correlations: Array, squares: Array) -> Array:
    """Return |x - a D|^2 of each row, (m,), from a alone."""
    dense = codes.toarray()
    return np.maximum(squares + np.einsum("ij,ij->i", dense, dense @ gram - 2.0 * correlations), 0.0)


def sums(codes: Any, X: Any, gram: Array, correlations: Array, squares: Array) -> tuple[Array, Array, Array]:
    """Return sum a'a (K, K), sum a'x (K, p) and |x - a D|^2 of each row, (m,)."""
    compiled = loops("learning_sums")
    if compiled is None:
        return sums_of_dense(codes, X, gram, correlations, squares)
    K, p = len(gram), X.shape[1]
    dense = isinstance(X, np.ndarray)
    A, B, errors = np.zeros((K, K)), np.zeros((K, p if dense else 0)), squares.copy()
    data = codes.data.astype(np.float64, copy=False)
    rows = np.ascontiguousarray(X) if dense else np.empty((X.shape[0], 0))
    compiled.add_codes((codes.indptr, codes.indices, data), rows, gram, correlations, (A, B, errors))
    return A, B if dense else (codes.T @ X).toarray(), np.maximum(errors, 0.0)


def sums_of_dense(codes: Any, X: Any, gram: Array, correlations: Array, squares: Array) -> tuple[Array, Array, Array]:
    """Do what `sums` does by products of dense matrices: the slow twin."""
    dense = codes.toarray().astype(np.float64, copy=False)
    return dense.T @ dense, np.asarray((X.T @ dense).T), code_errors(codes, gram, correlations, squares)
