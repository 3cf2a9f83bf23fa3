"""Manifold proximal steps, and sparse canonical vectors: how far these are from a stationary point.

The step from A on a manifold, for a smooth H and a penalty f, is

    D = argmin <grad H, D> + f(A + D) + |D|^2 / (2 t)  over the tangent space at A.

It is zero if and only if A is stationary (Chen, Ma, So & Zhang, SIAM J. Optim. 2020).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.manifolds import Euclidean, Manifold, Stiefel
from princomp.penalties import Penalty, RowNorms, Zero

FARTHEST = 10.0  # that a row may be shortened by in a step; rows are about as long as 1
SHRINKAGE = 1e-4  # of the covariances, divided by n - 1: they are singular where there are more features than samples
# The multiplier of the tangent space. Six fits of sides 80 x 60 and 80 x 80 took 559 steps to 1e-5, whatever these are:
# NEWTON_STEPS from 5 to 200, MAX_BACKTRACKS from 5 on, NEWTON_TOL from 1e-14 to 1e-8.
MAX_BACKTRACKS = 40
DIGITS_OF_STEP = 1e-14  # of D, and of the dual, relatively: what is smaller is rounding
NEWTON_STEPS = 50
NEWTON_TOL = 1e-12
REGULARISATION = (0.2, 0.1, 1e-11)
ARMIJO = 1e-3


@dataclass(frozen=True)
class Side:
    """One of the two variables: where it lives, what is added to H, and the step size."""

    manifold: Manifold
    penalty: Penalty
    step: float


def canonical_stationarity(
    X: Array, Y: Array, A: Array, B: Array, *, alpha_x: float = 0.0, alpha_y: float = 0.0
) -> float:
    """Return how far A and B are from stationary canonical vectors with few features on each side.

    The objective is -tr(A'X'YB) / (n - 1) + alpha_x sum_i |A_i| + alpha_y sum_i |B_i|, norms of rows, with A'MA = I for
    the covariance M of X, shrunk by a little towards I (`Covariance`), and the same for B and Y. The number is the
    larger one of sqrt(|D_A / t_x|^2 + |D_B / t_y|^2), D the manifold proximal steps and t = min(1, 10 / alpha), and of
    the entries of A'MA - I and of B's.

    Parameters
    ----------
    X, Y : (n, p) and (n, q) arrays
        The data, centred, and scaled if A and B are for scaled columns.
    A, B : (p, k) and (q, k) arrays
        The answer.
    alpha_x, alpha_y : float
        Weights of the row norms.

    Returns
    -------
    float
        In units of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import SparseCCA
    >>> from princomp.certificates import canonical_stationarity
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 5)), rng.normal(size=(100, 6))
    >>> X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    >>> cca = SparseCCA(scale=False, alpha_x=0.1, alpha_y=0.1).fit(X, Y)
    >>> canonical_stationarity(X, Y, cca.x_weights_, cca.y_weights_, alpha_x=0.1, alpha_y=0.1) <= cca.tol
    True
    """
    freedom, metrics = len(X) - 1, (Covariance(X), Covariance(Y))
    sides = [canonical_side(metric, alpha) for metric, alpha in zip(metrics, (alpha_x, alpha_y))]
    slopes = -(X.T @ (Y @ B)) / freedom, -(Y.T @ (X @ A)) / freedom
    steps = [tangent_step(side, W, slope) for side, W, slope in zip(sides, (A, B), slopes)]
    wrong = [np.abs(W.T @ (metric @ W) - np.eye(W.shape[1])).max() for metric, W in zip(metrics, (A, B))]
    return max(step_length(sides, steps), *map(float, wrong))


@dataclass(frozen=True, eq=False)
class Covariance:
    """The covariance of centred X (n, p), (1 - s) X'X / (n - 1) + s I with s = 1e-4 / (n - 1), by its products."""

    X: Array

    def __matmul__(self, V: Array) -> Array:
        """Return the product with V (p, k), without the matrix itself."""
        share = self.share
        product: Array = (1 - share) * (self.X.T @ (self.X @ V)) / (len(self.X) - 1) + share * V
        return product

    @property
    def share(self) -> float:
        """How much it is shrunk towards I."""
        return min(SHRINKAGE / (len(self.X) - 1), 0.5)

    def matrix(self) -> Array:
        """Return the matrix (p, p)."""
        matrix: Array = (1 - self.share) * (self.X.T @ self.X) / (len(self.X) - 1)
        return matrix + self.share * np.eye(self.X.shape[1])


def canonical_side(metric: Any, alpha: float) -> Side:
    """Return the side of the problem that has this covariance and this weight."""
    return Side(Stiefel(metric), RowNorms(alpha), FARTHEST / max(alpha, FARTHEST))


def step_length(sides: Sequence[Side], steps: Sequence[Array]) -> float:
    """Return sqrt(|D_A / t_A|^2 + |D_B / t_B|^2)."""
    return float(np.linalg.norm([np.linalg.norm(D) / side.step for side, D in zip(sides, steps)]))


def tangent_step(side: Side, A: Array, gradient: Array) -> Array:
    """Return the minimiser of <gradient, D> + f(A + D) + |D|^2 / (2 t) over the tangent space at A."""
    t = side.step
    if isinstance(side.penalty, Zero):
        return -t * side.manifold.project(A, gradient)
    if isinstance(side.manifold, Euclidean):
        return side.penalty.prox(A - t * gradient, t) - A
    return _newton(side, A, gradient)


def _newton(side: Side, A: Array, gradient: Array) -> Array:
    """Return D(L) = prox(A - t (gradient - N(L))) - A for the multiplier L that makes it tangent.

    N is the adjoint of the map E that is zero for tangent matrices, so E(D(L)) is the monotone gradient of a convex
    dual function, which the line search goes by: where the prox leaves nothing, E is constant and the dual still falls.
    The generalised Jacobian of E is found by differences, a column for each of the few multipliers.
    """
    t, manifold, penalty = side.step, side.manifold, side.penalty
    basis = manifold.basis(A).reshape(-1, A.size)  # once: a metric makes its product with A dear

    def trial(L: Array) -> tuple[Array, Array, float]:
        slope = gradient - (L @ basis).reshape(A.shape)
        new = penalty.prox(A - t * slope, t)
        D = new - A
        dual = -float(np.vdot(slope, D)) - penalty.value(new) - float(np.vdot(D, D)) / (2 * t)
        return D, basis @ D.ravel(), dual

    # Where the penalty is not there, the multiplier makes the gradient tangent: a good beginning.
    gram = basis @ basis.T
    L = np.linalg.solve(gram, basis @ gradient.ravel())
    D, E, dual = trial(L)
    share, most, least = REGULARISATION
    least_goal, spread = NEWTON_TOL * max(float(np.linalg.norm(A)), 1.0), t * float(np.sqrt(np.trace(gram)))
    for _ in range(NEWTON_STEPS):
        size = float(np.linalg.norm(E))
        goal = max(least_goal, DIGITS_OF_STEP * spread * float(np.linalg.norm(L @ basis)))  # the digits that D has
        if size <= goal:
            break
        width = 1e-7 * (1 + float(np.abs(L).max()))
        jacobian = np.stack([(trial(L + width * axis)[1] - E) / width for axis in np.eye(len(L))], axis=1)
        scale = max(float(np.trace(jacobian)) / len(L), t * float(np.diag(gram).mean()) * 1e-3)
        direction = -np.linalg.solve(jacobian + share * max(min(size, most), least) * scale * np.eye(len(L)), E)
        fall, a = float(E @ direction), 1.0
        for _ in range(MAX_BACKTRACKS):
            D, E, new = trial(L + a * direction)
            if new <= dual + ARMIJO * a * fall + DIGITS_OF_STEP * abs(dual):
                break
            a /= 2
        L, dual = L + a * direction, new
    return manifold.project(A, D) if np.linalg.norm(E) > 1e3 * goal else D
