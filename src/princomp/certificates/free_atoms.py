"""Atoms for which nothing is paid: codes near given ones whose residual is orthogonal to them, as dual points must be.

Where atom k has no limit a dual point u must have u.d_k = 0 (u.d_k <= 0 if codes must not be negative). The residual of
a code has that once its free entries are fitted by least squares, the others kept: `FreeAtoms.settled` returns such
codes. They only serve as dual points, and need not be codes themselves, so entries may have any sign.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from princomp._typing import Array

ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of |d| (|x| + sum_k |a_k| |d_k|): a slope below is rounding
ROUNDS = 4  # of atoms that come to those of the code, as their slopes are not what they must be
STACK_BYTES = 2**24


def free_rounding(x: Array, D: Array, a: Array, l2: float) -> Array:
    """Return by how much slopes, (m, K), are known to be wrong."""
    lengths = np.sqrt(np.einsum("ij,ij->i", D, D) + l2)
    sizes = np.sqrt(np.einsum("ij,ij->i", x, x)) + np.abs(a) @ lengths
    return ROUNDING * sizes[:, None] * lengths


@dataclass(frozen=True)
class FreeAtoms:
    """The atoms of D (K, p) for which nothing is paid: their numbers, and how to settle codes on them."""

    D: Array
    numbers: Array  # (f,) of int
    l2: float
    nonnegative: bool

    @cached_property
    def lengths(self) -> Array:
        """Lengths of these atoms, (f,), of the augmented problem."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.D[self.numbers], self.D[self.numbers]) + self.l2)
        return np.where(lengths > 0, lengths, 1.0)

    @cached_property
    def atoms(self) -> Array:
        """These atoms, of length 1, (f, p), or those of the augmented problem, (f, p + f)."""
        F = self.D[self.numbers] / self.lengths[:, None]
        return np.column_stack([F, np.diag(np.sqrt(self.l2) / self.lengths)]) if self.l2 else F

    @cached_property
    def inverse(self) -> Array:
        """The pseudo-inverse of these atoms, by which residuals are fitted, (p, f) or (p + f, f)."""
        return np.linalg.pinv(self.atoms)

    def settled(self, x: Array, seen: Array, a: Array) -> Array:
        """Return codes (m, K) like ``a``, but with free entries for which the slopes of free atoms are as they must be.

        Cells that are not ``seen`` are left out. It need not succeed for rows whose codes are far from optimal.
        """
        a = a.copy()
        fitted = a[:, self.numbers] != 0
        for _ in range(ROUNDS):
            r = self._residual(x, seen, a)
            slopes = r @ self.atoms.T
            sizes = np.where(fitted, np.abs(slopes), slopes) if self.nonnegative else np.abs(slopes)
            wrong = sizes > free_rounding(x, self.D, a, self.l2)[:, self.numbers] / self.lengths
            rows = np.flatnonzero(wrong.any(axis=1))
            if not len(rows):
                break
            if not self.nonnegative and seen.all():
                a[:, self.numbers] += r @ self.inverse / self.lengths
                continue
            fitted |= wrong
            step = max(1, STACK_BYTES // (8 * self.atoms.size))
            for some in (rows[begin : begin + step] for begin in range(0, len(rows), step)):
                a[np.ix_(some, self.numbers)] += self._fit(r[some], seen[some], fitted[some])
        return a

    def _residual(self, x: Array, seen: Array, a: Array) -> Array:
        r = np.where(seen, x - a @ self.D, 0.0)
        return np.column_stack([r, -np.sqrt(self.l2) * a[:, self.numbers]]) if self.l2 else r

    def _fit(self, r: Array, seen: Array, fitted: Array) -> Array:
        """Return the least squares solution for r (m, p) by the atoms of each row that are ``fitted``, (m, f)."""
        cells = np.column_stack([seen, np.ones(fitted.shape, bool)]) if self.l2 else seen
        most = int(fitted.sum(axis=1).max())
        atoms = np.argsort(~fitted, axis=1, kind="stable")[:, :most]  # those to be fitted, and others to fill up with
        kept = np.take_along_axis(fitted, atoms, axis=1)
        stack = np.where(kept[:, :, None] & cells[:, None, :], self.atoms[atoms], 0.0)
        steps = np.zeros(fitted.shape)
        found = np.einsum("ij,ijk->ik", r, np.linalg.pinv(stack)) / self.lengths[atoms]
        np.put_along_axis(steps, atoms, np.where(kept, found, 0.0), axis=1)
        return steps
