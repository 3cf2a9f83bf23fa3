"""PCA as an optimisation: how far each component is from a stationary point, given those before it.

A component minimises F(w) = f(w) + h(w) over unit w, f(w) = sum rho(Z - Z w w') with rho the loss, h the penalty, and Z
what the components W before it leave of X, Z = X (I - w_1 w_1') (I - w_2 w_2') ... On the sphere f is majorised at w by
a linear function, f(w) + (g - L w)'(v - w), g the gradient and L large enough (0, for the squared loss: f is concave
there). The unit vector that minimises its sum with h is prox_h(L w - g), normalised. It is w itself if and only if w is
stationary.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from princomp._typing import Array
from princomp.certificates.constrained import deflated_images
from princomp.data import Centered, statistics
from princomp.losses import Loss, Squared
from princomp.penalties import Penalty

MAX_TRIES = 60  # of L
NEARBY = 0.1  # what counts as a small step
LEAST = 1e-3  # L relative to the gradient, at the least
# A step shorter than tol means an angle to the optimum of tol over the relative gap; allow for a gap of one percent.
GAP = 0.01
# Below this share of |X|^2 a gradient is rounding: nothing is left to find.
NOTHING = 1e-13


class Smooth(NamedTuple):
    """f at a point: its value and its gradient."""

    value: float
    gradient: Array


Evaluate = Callable[[Array, Array], Smooth]  # (w, components found before) -> f at w


def reconstruction_steps(X: Centered, V: Array, *, loss: Loss, penalty: Penalty, total: float) -> Array:
    """Return the length of the next majorised step from each component, given those before it.

    For the squared loss it is divided by 0.01: a step is as much shorter than the way to the optimum as the gap to the
    next best is small.

    Parameters
    ----------
    X : Centered
        The data: one pass for the squared loss, else some for each component.
    V : (p, k) array
        The answer.
    loss, penalty : Loss, Penalty
        rho and h, in the units of X.
    total : float
        |X|^2, to tell a gradient from rounding.

    Returns
    -------
    (k,) array
        Beside a component's own length of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import reconstruction_steps
    >>> from princomp.data import Centered, as_rows
    >>> from princomp.losses import Squared
    >>> from princomp.penalties import L1
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> rows = Centered(as_rows(X), None)
    >>> reconstruction_steps(rows, np.eye(3, 2), loss=Squared(), penalty=L1(0.5), total=14.0).tolist()
    [0.0, 0.0]
    """
    concave, evaluate = isinstance(loss, Squared), any_loss(X, loss)
    if concave:
        images = deflated_images(partial(statistics.gram_apply, X), V, "projection")[0]
        there = [Smooth(np.nan, -2.0 * image) for image in images.T]
    else:
        there = [evaluate(v, V[:, :j].T) for j, v in enumerate(V.T)]
    lengths = []
    for j, (here, v) in enumerate(zip(there, V.T)):
        image, _ = majorise(evaluate, here, v, V[:, :j].T, penalty, total, concave=concave)
        lengths.append(max(step_residual(image, v, concave=concave), abs(float(v @ v) - 1.0)))
    return np.array(lengths)


def majorise(
    evaluate: Evaluate,
    here: Smooth,
    w: Array,
    W: Array,
    penalty: Penalty,
    total: float,
    *,
    concave: bool,
    L: float | None = None,
) -> tuple[Array, float]:
    """Return the minimiser of the majoriser of F at w, and the L that made it one; ``here`` is f at w.

    L is the first that will do of L, 2L, 4L ... or, if none is given, of 1e-3 |g|, 4e-3 |g| ... that leads nearby: far
    away any linear function may happen to lie above f.
    """
    slope = float(np.linalg.norm(here.gradient))
    if concave:
        return _sphere_prox(-here.gradient if slope > NOTHING * total else np.zeros_like(w), penalty, w), 0.0
    growth, farthest = (4.0, NEARBY) if L is None else (2.0, np.inf)
    L = max(L or 0.0, LEAST * slope, NOTHING * total)  # other losses have no slope along w: it may be 0
    for _ in range(MAX_TRIES):
        new = _sphere_prox(L * w - here.gradient, penalty, w)
        step = new - w
        bound = here.value + float(here.gradient @ step) + 0.5 * L * float(step @ step)
        near = float(np.linalg.norm(step)) <= farthest
        if near and evaluate(new, W).value <= bound + 4 * np.finfo(float).eps * abs(here.value):
            return new, L
        L *= growth
    return w, L


def step_residual(image: Array, w: Array, *, concave: bool) -> float:
    """Return the length of a step, as it counts: a concave f has the longest there are, which are short beside ties."""
    return float(np.linalg.norm(image - w)) / (GAP if concave else 1.0)


def _sphere_prox(z: Array, penalty: Penalty, w: Array) -> Array:
    """Return the unit vector that minimises -z'v + h(v): the prox, normalised.

    If the penalty takes everything away, the best unit vector is a coordinate axis: that of the largest |z| (or, with
    nothing to go by, of the largest |w|).
    """
    v = penalty.prox(z, 1.0)
    size = float(np.linalg.norm(v))
    if size > 0:
        return v / size
    guide = z if z.any() else w
    axis = np.zeros_like(z)
    j = int(np.argmax(np.abs(guide)))
    axis[j] = 1.0 if guide[j] >= 0 else -1.0
    return axis if penalty.value(axis) < penalty.value(w) or z.any() else w


def any_loss(X: Centered, loss: Loss) -> Evaluate:
    """Return f(w; W) = sum rho(Z - Z w w') for any loss, by a pass over the data."""
    dense = X.in_dense_tiles()

    def evaluate(w: Array, W: Array) -> Smooth:
        value, gradient = dense.reduce(_loss_and_gradient, loss, w, W)
        return Smooth(float(value), gradient)

    return evaluate


def _loss_and_gradient(Z: Array, rows: slice, loss: Loss, w: Array, W: Array) -> tuple[Array, Array]:
    for found in W:
        Z = Z - np.outer(Z @ found, found)
    scores = Z @ w
    residual = Z - np.outer(scores, w)
    slope = loss.gradient(residual)
    return np.asarray(loss.value(residual)), -(Z.T @ (slope @ w)) - slope.T @ scores
