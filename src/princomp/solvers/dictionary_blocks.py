"""The two convex blocks of the dictionary form: all loadings D for given codes Y, all codes for given loadings.

With the other columns fixed, the fit is isotropic in one column: its curvature is |Y_j|^2 in D_j and |D_j|^2 in Y_j. A
soft threshold, a prox or a projection on the ball of the unconstrained minimiser is then the exact minimiser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from princomp import certificates
from princomp._compiled import loops
from princomp._typing import Array
from princomp.penalties import L1, NonNegative, Penalty

MAX_SWEEPS = 100  # over fixed products; the rest comes in the next step (5 and 1000 took as many: 80 x 40 to 200 x 100)


@dataclass(frozen=True)
class Terms:
    """What the dictionary form adds to the fit.

    With penalties on both D and Y there is no ball; with one on Y alone, the ball is D's.
    """

    alpha: Array  # (k,) weights of |D_j|_1; zeros for none
    code_alpha: Array | None = None  # (k,) weights of |Y_j|_1
    radius: float = 1.0  # of the ball in which each column of Y must lie
    nonnegative: bool = False  # D
    nonnegative_codes: bool = False  # Y
    penalty: Penalty | None = None  # of a column of D, in place of alpha |D_j|_1

    @property
    def swapped(self) -> bool:
        """Whether only the codes are penalised: the same problem for X', with D and Y exchanged."""
        return self.code_alpha is not None and self.penalty is None and not self.alpha.any()

    @property
    def smooth(self) -> bool:
        """Whether Y carries nothing but the ball: the least objective for given Y is then smooth on spheres."""
        return self.code_alpha is None and not self.nonnegative_codes

    def swap(self) -> Terms:
        """Return the terms of the problem for X'."""
        return Terms(np.asarray(self.code_alpha), None, self.radius, self.nonnegative_codes, self.nonnegative)

    def cost(self, Y: Array, D: Array) -> float:
        """Return the penalties."""
        if self.penalty is None:
            on_loadings = float(np.abs(D).sum(axis=0) @ self.alpha)
        else:
            on_loadings = sum(self.penalty.value(column) for column in D.T)
        on_codes = 0.0 if self.code_alpha is None else float(np.abs(Y).sum(axis=0) @ self.code_alpha)
        return on_loadings + on_codes

    def loadings(self, P: Array, Q: Array, D: Array, accuracy: float) -> Array:
        """Return the best D for P = X'Y and Q = Y'Y, from D on, up to ``accuracy`` of the KKT residual."""
        if self.penalty is None:
            return lasso(P, Q, D, self.alpha, nonnegative=self.nonnegative, accuracy=accuracy)
        penalty = NonNegative(self.penalty) if self.nonnegative else self.penalty
        enough = np.full(len(Q), accuracy * float(np.abs(P).max(initial=0.0)))
        return column_sweeps(P, Q, D, [penalty] * len(Q), enough=enough, sweeps=MAX_SWEEPS)

    def codes(self, T: Array, Q: Array, Y: Array, accuracy: float) -> Array:
        """Return better Y for T = XD and Q = D'D: one sweep in the ball, or the best if penalised."""
        if self.code_alpha is not None:
            return lasso(T, Q, Y, self.code_alpha, nonnegative=self.nonnegative_codes, accuracy=accuracy)
        Y = Y.copy()
        for j in np.flatnonzero(np.diag(Q) > 0):
            z = T[:, j] - Y @ Q[:, j] + Q[j, j] * Y[:, j]
            if self.nonnegative_codes:
                z = np.maximum(z, 0.0)
            Y[:, j] = z / max(Q[j, j], float(np.linalg.norm(z)) / self.radius)
        return Y

    def balanced(self, Y: Array, D: Array) -> tuple[Array, Array]:
        """Return Y, D that fit as well and cost less: on the sphere, or with both penalties equal."""
        if self.code_alpha is None:
            size = np.linalg.norm(Y, axis=0) / self.radius
        elif self.penalty is None:
            size = np.sqrt(self.code_alpha * np.abs(Y).sum(axis=0))
            size = np.divide(size, np.sqrt(self.alpha * np.abs(D).sum(axis=0)), out=size, where=D.any(axis=0))
        else:
            return Y, D
        size = np.where((size > 0) & np.isfinite(size), size, 1.0)
        return Y / size, D * size

    def gradient(self, T: Array, Q: Array, Y: Array) -> Array:
        """Return the slope, in Y, of the objective that the best D leaves, for T = XD and Q = D'D.

        On the spheres; codes that are zero and have to be penalised or nonnegative are held there.
        """
        slope = Y @ Q - T
        if self.code_alpha is not None:
            return np.where(Y == 0, 0.0, slope + self.code_alpha * np.sign(Y))
        if self.nonnegative_codes:
            slope = np.where(Y == 0, 0.0, slope)
        return slope - Y * (np.einsum("ij,ij->j", Y, slope) / self.radius**2)

    def retract(self, Z: Array, Y: Array) -> Array:
        """Return Z brought back to where Y lives: its spheres, or its signs."""
        if self.code_alpha is not None:
            return np.where(Z * Y > 0, Z, 0.0)
        if self.nonnegative_codes:
            Z = np.where(Y > 0, np.maximum(Z, 0.0), 0.0)
        return on_spheres(Z, self.radius)

    def residual(self, P: Array, T: Array, Y: Array, D: Array) -> float:
        """Return the relative KKT residual of both blocks, for P = X'Y and T = XD."""
        if self.swapped:
            return self.swap().residual(T, P, D, Y)
        return max(certificates.dictionary_kkt(P, T, Y, D, **vars(self)))  # what it asks for are our fields


def lasso(P: Array, Q: Array, D: Array, alpha: Array, *, nonnegative: bool, accuracy: float) -> Array:
    """Return D that minimises 1/2 tr(D Q D') - tr(P'D) + sum_j alpha_j |D_j|_1, from D on."""
    enough = accuracy * certificates.slope_scale(alpha, P)
    compiled = loops("dictionary_sweeps")
    if compiled is not None:
        return compiled.lasso_rows(P, Q, D, alpha, nonnegative=nonnegative, enough=enough, sweeps=MAX_SWEEPS)
    each = [NonNegative(L1(float(weight))) if nonnegative else L1(float(weight)) for weight in alpha]
    return column_sweeps(P, Q, D, each, enough=enough, sweeps=MAX_SWEEPS)


def column_sweeps(P: Array, Q: Array, D: Array, penalties: Sequence[Penalty], *, enough: Array, sweeps: int) -> Array:
    """Return D after up to ``sweeps`` sweeps over its columns, or until no slope moves by more than ``enough``."""
    D = np.array(D)
    for _ in range(sweeps):
        done = True
        for j, curvature in enumerate(np.diag(Q)):
            if curvature > 0:
                new = penalties[j].prox(D[:, j] + (P[:, j] - D @ Q[:, j]) / curvature, 1.0 / float(curvature))
            else:
                new = np.zeros(len(D))  # a code that is zero: what it multiplies can only cost
            done = done and float(np.abs(new - D[:, j]).max()) * curvature <= enough[j]
            D[:, j] = new
        if done:
            break
    return D


def on_spheres(Y: Array, radius: float) -> Array:
    """Return Y with columns of length ``radius``, zero columns left alone."""
    size = np.linalg.norm(Y, axis=0)
    return Y * (radius / np.where(size > 0, size, radius))
