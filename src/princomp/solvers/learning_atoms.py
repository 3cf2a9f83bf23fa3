"""Atoms from statistics, one after the other (Mairal, Bach, Ponce & Sapiro, JMLR 2010, algorithm 2).

With A = 1/n sum a'a and B = 1/n sum a'x, minimise over the rows d_k of D

    1/2 <D, A D> - <D, B> + sum_k g(d_k),

g the constraint: 0 where an atom is allowed, infinity elsewhere, or any penalty. In one atom, the others fixed, this is
A_kk / 2 |d - v|^2 + g(d) with v = d_k + (B_k - A_k D) / A_kk, so that its prox gives the exact minimiser: no step ever
makes the objective larger. Where cells have weights of their own A is (K, K, p), and each cell of |d - v|^2 has one: in
the ball and on the sphere that is minimised, too (`nearest`); for any other g a step with the largest weight takes its
place, which does not make it larger either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from princomp._compiled import loops
from princomp._typing import Array

FLOOR = 1e-12  # as in the compiled loops
UNUSED = 1e-12  # of the largest A_kk: of an atom used so little rounding would make anything
LARGE = 300  # exponents of 2: sums beyond are brought to about 1
NOT_POSITIVE = (
    "positive_dict=True goes with constraints whose prox leaves no entry negative where none was; that of {!r} does. "
    "Let its own prox see to the signs."
)


@dataclass(frozen=True)
class Atoms:
    """Where atoms may be: in the unit ball or on the unit sphere, nonnegative or not; or what a penalty makes of them.

    Parameters
    ----------
    kind : {"ball", "sphere"} or Penalty
        The constraint, or an object with ``value`` and ``prox``, as in `princomp.penalties`.
    nonnegative : bool
        Whether no entry may be below 0, too.
    """

    kind: Any = "ball"
    nonnegative: bool = False

    @property
    def named(self) -> bool:
        """Whether it is one of the words, for which loops are compiled."""
        return isinstance(self.kind, str)

    @property
    def symmetric(self) -> bool:
        """Whether d and -d are as good as each other, as far as is known."""
        return self.named and not self.nonnegative

    def value(self, D: Array) -> float:
        """Return the sum of g over atoms, which are taken to be allowed ones where g is a constraint."""
        if self.named:
            return 0.0
        total = float(sum(self.kind.value(d) for d in D))
        return total if np.isfinite(total) else 0.0  # a constraint, met but for rounding: atoms come from its prox

    def prox(self, v: Array, step: float, old: Array) -> Array:
        """Return the minimiser of 1/2 |d - v|^2 + step g(d); ``old`` where the sphere has no such direction."""
        return self.prox_each(v[None], np.array([step]), old[None])[0]

    def prox_each(self, V: Array, steps: Array, old: Array) -> Array:
        """Return the `prox` of each row of V, with a step for each."""
        V = np.maximum(V, 0.0) if self.nonnegative else V
        if not self.named:
            found = np.array([self.kind.prox(v, float(step)) for v, step in zip(V, steps, strict=True)])
            if self.nonnegative and (found < 0).any():
                raise ValueError(NOT_POSITIVE.format(self.kind))
            return found.reshape(V.shape)
        length = np.linalg.norm(V, axis=1, keepdims=True)
        if self.kind == "sphere":
            return np.where(length > 0, V / np.where(length > 0, length, 1.0), old)
        return V / np.maximum(length, 1.0)

    def allowed(self, D: Array) -> Array:
        """Return atoms near these that are allowed: the prox of each, with as small a step as makes sense."""
        return self.prox_each(D, np.full(len(D), 1e-12), D)


def least_use(A: Array) -> float:
    """Return the A_kk up to which an atom counts as not used."""
    return UNUSED * float(own_weights(A).max(initial=0.0))


def own_weights(A: Array) -> Array:
    """Return A_kk of each atom, (K,): where cells have weights the largest of them."""
    own = np.einsum("kk...->k...", A)
    return own if own.ndim == 1 else own.max(axis=1)


def improved(D: Array, A: Array, B: Array, atoms: Atoms) -> Array:
    """Return the atoms after one sweep over them.

    Further sweeps with the same codes gain less than new codes do, and may lead astray: with five of them 20000 patches
    of images were coded worse, after the same time, and fewer planted atoms were found.
    """
    D = np.array(D, dtype=np.float64, order="C")
    if atoms.named:  # for which only A and B relative to each other matter: squares of sums must not overflow or vanish
        exponent = int(np.frexp(own_weights(A).max(initial=0.0))[1])
        if abs(exponent) > LARGE:
            A, B = np.ldexp(A, -exponent), np.ldexp(B, -exponent)
    compiled = loops("learning_sums") if atoms.named else None
    if compiled is None:
        sweep_one_by_one(D, A, B, least_use(A), atoms)
    else:
        sweep = compiled.sweep if A.ndim == 2 else compiled.sweep_cells
        how = {"nonnegative": atoms.nonnegative, "sphere": atoms.kind == "sphere"}
        sweep(D, np.ascontiguousarray(A), np.ascontiguousarray(B), least_use(A), **how)
    return D


def sweep_one_by_one(D: Array, A: Array, B: Array, least: float, atoms: Atoms) -> None:
    """Improve each atom in turn, in place: any constraint, and the slow twin of the compiled sweep."""
    for k, weight in enumerate(own_weights(A)):
        if weight > least:
            down, found = B[k] - _product(A[k], D), None
            if A.ndim == 3 and atoms.named:
                weights = np.maximum(A[k, k], FLOOR * weight)
                v = D[k] + down / weights
                found = nearest(np.maximum(v, 0.0) if atoms.nonnegative else v, weights, sphere=atoms.kind == "sphere")
            D[k] = atoms.prox(D[k] + down / weight, 1.0 / weight, D[k]) if found is None else found


def nearest(v: Array, weights: Array, *, sphere: bool) -> Array | None:
    """Return what minimises sum_j w_j (d_j - v_j)^2 in the unit ball or on the sphere; None if no shift gives it.

    It is d_j = w_j v_j / (w_j + shift): in the ball v itself, or else with the shift at which |d| = 1.
    """
    least = int(np.argmin(weights))
    inside = float(np.linalg.norm(v)) <= 1.0
    if inside and not sphere:
        return v
    if inside and v[least] == 0.0:
        return None
    low = weights[least] * (abs(v[least]) - 1.0) if inside else 0.0
    high = float(np.linalg.norm(weights * v))

    def excess(shift: float) -> float:
        return float(np.linalg.norm(weights * v / (weights + shift))) - 1.0

    shift = brentq(excess, low, high, xtol=1e-300, rtol=1e-15) if excess(low) > 0 > excess(high) else low
    d = weights * v / (weights + shift)
    return np.asarray(d / np.linalg.norm(d))


def _product(a: Array, D: Array) -> Array:
    """Return A_k D, (p,), of a row A_k (K,), or (K, p) where cells have weights."""
    return a @ D if a.ndim == 1 else np.einsum("lj,lj->j", a, D)


def slopes(D: Array, A: Array, B: Array) -> Array:
    """Return the gradient A D - B, (K, p)."""
    return (A @ D if A.ndim == 2 else np.einsum("klj,lj->kj", A, D)) - B
