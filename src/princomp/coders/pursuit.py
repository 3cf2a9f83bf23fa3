"""Greedy pursuit: atoms are taken one after the other, all coefficients fitted anew by least squares each time.

    min |x - a D|^2,    at most so many nonzeros in a,    or as few as make |x - a D| <= error, nearly so.

Chen, Billings and Luo, Int. J. Control 50, 1989 (orthogonal least squares, "ols"); Pati, Rezaiifar and Krishnaprasad,
Asilomar 1993 ("omp"); on the Gram matrix, Rubinstein, Zibulevsky and Elad, Technion CS-2008-08.

Both are one recursion. Let unit atoms be u_k, and after j of them were taken, r the residual and v_k what is left of
u_k, both orthogonal to those j. It keeps c_k = <u_k, r>, left_k = |v_k|^2 and, for the direction v / |v| of each atom
that was taken, its products with all u_k, a row of Q:

    q = (<u_k, u_.> - sum_j Q_jk Q_j.) / sqrt(left_k),    b = c_k / sqrt(left_k),    c -= b q,    left -= q^2.

Taking k lowers |r|^2 by c_k^2 / left_k. "ols" takes the atom that lowers it most, "omp" the one with the largest |c_k|,
the angle with r: both go by directions, so the norms of the atoms do not matter. At the end R a = b, R the columns of Q
of the support, and a is refined until c - G a on the support is rounding.

Rounding. An atom is not taken where left_k cannot be told from 0 (zero atoms, twins, atoms in the span of those
taken), nor where c_k cannot be told from 0: so fewer than `nonzeros` are taken where more would fit nothing. As the fit
becomes exact |x|^2 - |b|^2 loses its digits, so once it is small enough the residual is computed from a, and it has to
be small enough by more than rounding may hide. An error below about 1e-7 |x| (single precision: 2e-3 |x|) cannot be
seen in the Gram matrix; atoms are then taken until nothing is left that correlates. The Gram matrix also squares the
condition of the atoms: where they are nearly dependent, an error that all of them could reach may not be reached.

With `nonnegative`, only atoms with c_k > 0 are taken. Where the least-squares solution on the support turns negative,
atoms are dropped as Lawson and Hanson do (1974): on the way from the old coefficients to the new, the first to become
zero goes, until none does. The residual falls with each atom taken all the same.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array

# In units of the precision, for unit atoms; sums of some thousand products are off by less, in practice.
FLOOR = 64.0  # of left_k, times (1 + |w|_1)^2, w the coefficients of u_k on the atoms taken: errors of G count so much
LOOK = 1e3  # w is looked at where left_k is below so much times FLOOR over the smallest that was taken, or rather small
NOISE = 16.0  # of c_k, times |x|, over the root of the smallest left_k that was taken
MARGIN = 16.0  # of |x - a D|^2, times |x|^2 + |a|^2
SMALLEST = 2.0**-1000  # a square with all its digits
SELECTIONS = ("ols", "omp")


@dataclass(frozen=True)
class Pursuit:
    """Codes with few nonzeros, atom by atom.

    Parameters
    ----------
    nonzeros : int, optional
        The number of atoms, at the most. Fewer are taken where more would not fit anything.
    error : float, optional
        The norm |x - a D|, in the units of x, that is small enough; no atom is taken where |x| itself is. With both,
        what comes first ends it. One of them must be given.
    selection : {"ols", "omp"}
        Take the atom that lowers the residual most, or the one most correlated with it.
    nonnegative : bool
        No coefficient is below 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.coders.pursuit import Pursuit
    >>> D = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])
    >>> X = np.array([[3.0, 4.0, 0.0], [0.0, -2.0, 0.1]])
    >>> Pursuit(nonzeros=1).code((D @ D.T)[None], X @ D.T, (X**2).sum(axis=1)).toarray().tolist()
    [[0.0, 0.0, 5.0], [0.0, -2.0, 0.0]]
    """

    nonzeros: int | None = None
    error: float | None = None
    selection: str = "ols"
    nonnegative: bool = False

    def __post_init__(self) -> None:
        if self.nonzeros is None and self.error is None:
            raise ValueError("A pursuit needs an end: give nonzeros, error, or both.")
        whole = isinstance(self.nonzeros, int | np.integer) and not isinstance(self.nonzeros, bool)
        if self.nonzeros is not None and not (whole and self.nonzeros >= 1):
            raise ValueError(f"nonzeros must be a whole number of at least 1, got {self.nonzeros!r}.")
        if self.error is not None and not (np.isfinite(self.error) and self.error >= 0):
            raise ValueError(f"error must be a finite number of at least 0, got {self.error!r}.")
        if self.selection not in SELECTIONS:
            raise ValueError(f"selection must be 'ols' or 'omp', got {self.selection!r}.")

    @property
    def optimal(self) -> bool:
        """No: fewer or other atoms may do as well."""
        return False

    def code(self, gram: Array, correlations: Array, squares: Array, start: Any = None) -> Any:
        """Return the codes of m rows, CSR (m, K); ``start`` is not used."""
        from scipy.sparse import csr_array

        m, K = correlations.shape
        if correlations.dtype not in (np.float32, np.float64):
            correlations = correlations.astype(np.float64)
        fast = loops("coding_pursuit")
        eps = float(np.finfo(correlations.dtype).eps)
        limit = K if self.nonzeros is None else min(self.nonzeros, K)
        error = -1.0 if self.error is None else float(self.error)
        numbers = (FLOOR * eps, NOISE * eps, MARGIN * eps)
        how = (limit, error, self.selection == "ols", bool(self.nonnegative), *numbers)
        if fast is not None:
            indptr, indices, data = fast.pursue(gram, correlations, squares, fast.Rule(*how))
        else:
            indptr, indices, data = pursue(gram, correlations, squares, *how)
        return csr_array((data, indices, indptr), shape=(m, K))

    def penalties(self, codes: Any) -> Array:
        """Return 0 for each row: the number of nonzeros is a rule, not a price."""
        return np.zeros(codes.shape[0])


class _Taken:
    """The atoms taken, in order, and what the recursion keeps of them; for `pursue`, the slow twin."""

    def __init__(self, unit: Array, given: Array) -> None:
        self.unit, self.given = unit, given
        self.again([])

    def again(self, support: list[int]) -> None:
        """Begin anew with these atoms."""
        self.c, self.left = self.given.copy(), np.diag(self.unit).copy()
        self.support: list[int] = []
        self.b: list[float] = []
        self.Q = np.empty((0, len(self.given)))
        for k in support:
            self.take(k)

    def take(self, k: int) -> None:
        length = np.sqrt(self.left[k])
        q = (self.unit[k] - self.Q[:, k] @ self.Q) / length
        b = self.c[k] / length
        self.c -= b * q
        self.left -= q**2
        self.support.append(k)
        self.b.append(float(b))
        self.Q = np.vstack([self.Q, q])

    def best(self, ols: bool, nonnegative: bool, floor: float, noise: float) -> int:
        """Return the atom to take next, -1 if there is none."""
        size = self.c if nonnegative else np.abs(self.c)
        may = (self.left > floor) & (size > noise)
        gain = np.where(may, self.c**2 / np.where(may & ols, self.left, 1.0), 0.0)
        k = int(gain.argmax())
        return k if gain[k] > 0 else -1

    def dependent(self, k: int, floor: float) -> bool:
        """Whether what is left of atom k may be rounding; it is then never taken."""
        from scipy.linalg import solve_triangular

        w = solve_triangular(self.Q[:, self.support], self.Q[:, k])
        if self.left[k] > floor * (1.0 + np.abs(w).sum()) ** 2:
            return False
        self.left[k] = 0.0
        return True

    def solve(self) -> Array:
        """Return the least-squares coefficients on the support."""
        from scipy.linalg import cho_solve, solve_triangular

        R = self.Q[:, self.support]
        a = solve_triangular(R, np.array(self.b))
        return a + cho_solve((R, False), self.slope(a))

    def slope(self, a: Array) -> Array:
        """Return c - G a on the support."""
        return self.given[self.support] - self.unit[np.ix_(self.support, self.support)] @ a

    def stay_nonnegative(self, before: Array) -> Array:
        """Drop atoms until the least-squares coefficients are positive, and return these; ``before``: the old ones."""
        while True:
            a = self.solve() if self.support else np.empty(0)
            down = a <= 0
            if not down.any():
                return a
            part = np.where(down, before / np.where(down & (before > 0), before - a, 1.0), np.inf)
            first = int(part.argmin())
            before = before + part[first] * (a - before)
            before[first] = 0.0
            self.again([k for k, value in zip(self.support, before) if value > 0])
            before = before[before > 0]


def pursue(
    grams: Array,
    correlations: Array,
    squares: Array,
    limit: int,
    error: float,
    ols: bool,
    nonnegative: bool,
    floor: float,
    noise: float,
    margin: float,
) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of the codes: what the compiled loop does, in double precision."""
    codes = []
    for i, (correlation, square) in enumerate(zip(correlations, squares)):
        G = grams[i if len(grams) > 1 else 0].astype(np.float64)
        norms = np.sqrt(np.diag(G))
        inverse = np.divide(1.0, norms, out=np.zeros(len(G)), where=norms > 0)
        given = correlation * inverse
        size = np.sqrt(square) if SMALLEST < square < np.inf else np.abs(given).max(initial=0.0)
        scale = 2.0 ** (1 - int(np.frexp(size)[1])) if 0 < size < np.inf else 1.0
        taken = _Taken(G * inverse[:, None] * inverse, given * scale)
        most = (error * scale) ** 2 if error >= 0 else -1.0
        a = _pursue_row(taken, square * scale * scale, most, limit, ols, nonnegative, floor, noise, margin)
        values = (a * inverse[taken.support] / scale).astype(correlations.dtype)
        codes.append(sorted((k, value) for k, value in zip(taken.support, values) if value != 0))
    indptr = np.cumsum([0, *(len(code) for code in codes)])
    indices = np.array([k for code in codes for k, _ in code], np.int32)
    return indptr, indices, np.array([value for code in codes for _, value in code], correlations.dtype)


def _pursue_row(
    taken: _Taken,
    square: float,
    most: float,
    limit: int,
    ols: bool,
    nonnegative: bool,
    floor: float,
    noise: float,
    margin: float,
) -> Array:
    a, least = np.empty(0), 1.0
    for _ in range(3 * limit):
        if square - np.square(taken.b).sum() <= most:
            left = square - a @ (taken.given[taken.support] + taken.slope(a)) if len(a) else square
            if left + (margin * (square + a @ a) if len(a) else 0.0) <= most:
                break
        if len(a) == limit:
            break
        k = taken.best(ols, nonnegative, floor, noise / np.sqrt(least))
        while k >= 0 and taken.left[k] <= max(floor**0.25, LOOK * floor / least) and taken.dependent(k, floor):
            k = taken.best(ols, nonnegative, floor, noise / np.sqrt(least))
        if k < 0:
            break
        least = min(least, taken.left[k])
        taken.take(k)
        a = taken.stay_nonnegative(np.append(a, 0.0)) if nonnegative else taken.solve()
    return np.maximum(a, 0.0) if nonnegative else a
