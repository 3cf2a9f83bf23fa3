"""Accelerated proximal gradient for any penalty: Beck & Teboulle, SIAM J. Imaging Sci. 2009 (FISTA, monotone form).

    min F(a) = 1/2 |x - a D|^2 + h(a),    h any penalty with a value and a prox: groups, trees, powers, sets, one's own.

Many rows at once, as columns (K, m) of codes A; Y is A extrapolated, and one product with the Gram matrix G a step
gives the gradient and the objective, since that of Y follows from those of the last two A:

    new = prox(Y - (G Y - c) / L, 1 / L),    L so large that (new - Y)' G (new - Y) <= L |new - Y|^2,

with an L of each row's own, from the largest |d_k|^2 on and doubled where it is too small: codes with few nonzeros need
far less than the largest eigenvalue of G. A new code is taken only if F does not rise; if it would, or if the step
turns back (O'Donoghue & Candes, Found. Comput. Math. 2015), extrapolation starts afresh. Rows that are done leave.

When is a row done? ``g`` = L (Y - new) - G (Y - new) is a subgradient of F at the new code. With |x|^2 / 2 as unit,

- a norm (``homogeneous``, with ``polar``): the duality gap, F - its smallest value, is at most ``tol``. The residual
  r = x - a D, divided by 1 + polar(g), is a dual point: c - a G is a subgradient of h less g;
- convex, no norm: |g| |a| <= tol, which bounds F - F(b) for every b no farther from a than 0 is;
- not convex: |g| <= tol |c| after a step without extrapolation, so that a is fixed under steps of its L (which is less
  than twice the largest eigenvalue of G), as near as can be seen: what is called local here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp._warn import warn
from princomp.coders import entries, nested
from princomp.penalties import Penalty, column_values, is_convex, is_penalty

TILE = 1 << 17  # numbers in an array of codes: 1 MB, so that the dozen arrays of a step stay in the cache
LOOK = 5  # steps between looks whether rows are done
CROWDED = 0.8  # of a tile's rows: those done leave when fewer than this are at work
FINEST = 1e-14  # no gap is asked to be smaller: sums of float64 have no more digits


@dataclass(frozen=True)
class Proximal:
    """Codes for any penalty, by accelerated proximal gradient steps; for `L0` and `Lp` by greedy coordinate descent.

    With a penalty that is not convex codes are local: no step changes them, or, with `L0` and `Lp`, no change of a
    single entry lowers the objective (`princomp.coders.entries`). It is never above that of ``start``.

    Parameters
    ----------
    penalty : Penalty
        h: anything with ``value(w)`` and ``prox(w, step)``, see `princomp.penalties`.
    tol : float, default 1e-6
        How good codes are: the duality gap in units of 1/2 |x|^2, or what stands in for it, see above.
    max_iter : int, default 10000
        Proximal gradient steps of each row; a warning is given where they do not suffice. (Descent along entries and
        working sets have limits of their own.)

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.coders.proximal import Proximal
    >>> from princomp.penalties import Groups
    >>> coder = Proximal(Groups(1.0, [[0, 1], [2]], [2.5, 2.0]))
    >>> coder.code(np.eye(3)[None], np.array([[3.0, 4.0, 1.0]]), np.array([26.0])).toarray().round(3).tolist()
    [[1.5, 2.0, 0.0]]
    """

    penalty: Penalty
    tol: float = 1e-6
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        if not is_penalty(self.penalty):
            raise TypeError(f"penalty must be an object such as those in princomp.penalties, got {self.penalty!r}.")
        if not (np.isfinite(self.tol) and self.tol >= 0):
            raise ValueError(f"tol must be a finite number of at least 0, got {self.tol!r}.")
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter!r}.")

    @property
    def optimal(self) -> bool:
        """Whether codes are minimisers: they are if the penalty is convex."""
        return is_convex(self.penalty)

    def code(self, gram: Array, correlations: Array, squares: Array, start: Any = None) -> Any:
        """Return the codes of m rows (see `princomp.coders.base.Coder`)."""
        import scipy.sparse as sp

        m, K = correlations.shape
        gram = np.asarray(gram, dtype=np.float64)
        tile, done, unsettled = max(1, TILE // max(K, 1)), [sp.csr_array((0, K), dtype=correlations.dtype)], 0
        for first in range(0, m, tile):
            rows = slice(first, first + tile)
            own = gram if len(gram) == 1 else gram[rows]
            begin = None if start is None else start[rows].toarray()
            codes, settled = self._tile(own, correlations[rows], squares[rows], begin)
            unsettled += int((~settled).sum())
            done.append(sp.csr_array(codes.astype(correlations.dtype)))
        if unsettled:
            from sklearn.exceptions import ConvergenceWarning

            more = "" if self.optimal else ", and are not sure to be local minima"
            warn(f"{unsettled} of {m} codes are not as close as tol={self.tol:g} asks{more}.", ConvergenceWarning)
        return sp.vstack(done, format="csr")

    def _tile(self, gram: Array, correlations: Array, squares: Array, start: Array | None) -> tuple[Array, Array]:
        """Return codes (m, K), and which of them are as good as asked, by what suits the penalty."""
        tol, price = max(self.tol, FINEST), entries.price_of(self.penalty)
        if price is not None:
            return entries.descend(price, gram, correlations, squares, start, tol)
        nest = nested.nest_of(self.penalty, correlations.shape[1])
        if nest is not None:
            return nested.search(nest, gram, correlations, squares, start, tol)
        work = _Columns(self.penalty, gram, correlations, squares, None if start is None else start.T)
        codes, settled = work.minimise(tol, self.max_iter)
        return np.ascontiguousarray(codes.T), settled

    def penalties(self, codes: Any) -> Array:
        """Return h(a) of each row of a CSR array, (m,), float64."""
        tile = max(1, TILE // max(codes.shape[1], 1))
        parts = [
            column_values(self.penalty, codes[first : first + tile].toarray().T.astype(np.float64))
            for first in range(0, codes.shape[0], tile)
        ]
        return np.concatenate([np.zeros(0), *parts])


class _Columns:
    """Rows at work, as columns, and where each of them is."""

    # What is one column, or one number, for each row at work.
    MOVING = ("c", "squares", "at", "A", "GA", "Y", "GY", "F", "L", "t", "done")

    def __init__(self, penalty: Any, gram: Array, correlations: Array, squares: Array, start: Array | None) -> None:
        self.penalty, self.gram, self.shared = penalty, gram, len(gram) == 1
        self.convex = is_convex(penalty)
        self.c = np.ascontiguousarray(correlations.T, dtype=np.float64)
        self.squares = np.asarray(squares, dtype=np.float64)
        K, m = self.c.shape
        self.at = np.arange(m)  # where the rows at work stand
        self.A = np.zeros((K, m)) if start is None else np.ascontiguousarray(start, dtype=np.float64)
        self.GA = self.product(self.A)
        self.Y, self.GY = self.A, self.GA
        self.F = self.objective(self.A, self.GA)
        diagonal = np.diagonal(gram, axis1=1, axis2=2).max(axis=1, initial=0.0)
        self.L = np.broadcast_to(np.where(diagonal > 0, diagonal, 1.0), m).astype(np.float64)
        self.t, self.done = np.ones(m), np.zeros(m, dtype=bool)
        polar = getattr(penalty, "polar", None)
        self.polar = polar if polar is not None and np.isfinite(polar(np.ones((K, 1)))).all() else None

    def minimise(self, tol: float, max_iter: int) -> tuple[Array, Array]:
        """Return the codes (K, m), and which of them are as good as asked."""
        codes, settled = np.empty_like(self.A), np.zeros(self.A.shape[1], dtype=bool)
        for i in range(1, max_iter + 1):
            self.step(tol, look=i % LOOK == 0 or i < LOOK)
            at_work = ~self.done
            if at_work.sum() <= CROWDED * len(self.at):
                left = self.at[self.done]
                codes[:, left], settled[left] = self.A[:, self.done], True
                self.keep(at_work)
            if not len(self.at):
                break
        codes[:, self.at], settled[self.at] = self.A, self.done
        return codes, settled

    def step(self, tol: float, *, look: bool) -> None:
        """Make a step from Y, take what is no worse, and say which rows are done."""
        new = self.penalty.prox(self.Y - (self.GY - self.c) / self.L, 1.0 / self.L)
        Gnew = self.product(new)
        moved, Gmoved = new - self.Y, Gnew - self.GY
        length = _dot(moved, moved)
        long = (_dot(moved, Gmoved) > self.L * length * (1 + 1e-10)) & (length > 1e-28 * _dot(new, new))
        F = self.objective(new, Gnew)
        taken = ~long & (F <= self.F)
        plain = self.t == 1.0
        back = _dot(moved, new - self.A) < 0
        if look or not self.convex:
            close = taken & (self.measure(new, Gnew, Gmoved - self.L * moved, length, F) <= tol)
            self.done |= close & (plain | self.convex)
            back |= close  # where not convex, a plain step must say so
        self.done |= plain & ~taken & ~long  # a plain step falls, but for rounding
        t = (1 + np.sqrt(1 + 4 * self.t**2)) / 2
        share = np.where(taken & ~back, (self.t - 1) / t, 0.0)
        A, GA = np.where(taken, new, self.A), np.where(taken, Gnew, self.GA)
        self.Y, self.GY = A + share * (A - self.A), GA + share * (GA - self.GA)
        self.A, self.GA, self.F = A, GA, np.where(taken, F, self.F)
        self.t = np.where(taken & ~back, t, 1.0)
        self.L = np.where(long, 2 * self.L, self.L)

    def measure(self, new: Array, Gnew: Array, slope: Array, length: Array, F: Array) -> Array:
        """Return how good the codes are, by their subgradients: see the top."""
        along, unit = _dot(self.c, new), np.maximum(self.squares / 2, np.finfo(float).tiny)
        if self.polar is not None:
            share = 1.0 / (1.0 + self.polar(-slope))
            residual = np.maximum(self.squares - 2 * along + _dot(new, Gnew), 0.0)
            return np.asarray((F - share * (self.squares - along) + share**2 / 2 * residual) / unit)
        size = np.sqrt(_dot(slope, slope))
        if self.convex:
            return np.asarray(size * (np.sqrt(_dot(new, new)) + np.sqrt(length)) / unit)
        return np.asarray(size / np.maximum(np.sqrt(_dot(self.c, self.c)), np.finfo(float).tiny))

    def objective(self, A: Array, GA: Array) -> Array:
        """Return F of each column."""
        return np.asarray(self.squares / 2 + _dot(A, GA / 2 - self.c) + column_values(self.penalty, A))

    def product(self, A: Array) -> Array:
        """Return G times each column, with the Gram matrix of its row."""
        if self.shared:
            return np.asarray(self.gram[0] @ A)
        return np.ascontiguousarray(np.matmul(self.gram, A.T[:, :, None])[:, :, 0].T)

    def keep(self, those: Array) -> None:
        """Let only those rows stay at work."""
        for name in self.MOVING:
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[..., those]))
        if not self.shared:
            self.gram = self.gram[those]


def _dot(A: Array, B: Array) -> Array:
    """Return the product of each column with its own."""
    return np.einsum("km,km->m", A, B)
