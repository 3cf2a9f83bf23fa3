"""PCA as an optimisation, one component at a time with deflation, by majorisation (Journee et al., JMLR 2010).

Objective, for unit w: F(w) = sum rho(X - X w w') + h(w), rho the loss and h the penalty; then X <- X - X w w'.
With rho(r) = r^2 and h = 0 this is PCA; with h = alpha |w|_1 it is PCA with a sparsity penalty.

On the sphere |w - v|^2 = 2 - 2 w'v is linear in w, so a smooth f is majorised at v by a linear function,
f(v) + (g - L v)'(w - v), with g the gradient and L at least its Lipschitz constant (for the squared loss f is concave
there and L = 0 will do). Its sum with h is minimised in closed form, w = prox_h(L v - g) normalised: F never rises.
Anderson extrapolation (Walker & Ni, SIAM J. Numer. Anal. 2011) is taken when it lowers F further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from princomp.data import Centered
from princomp.losses import Loss
from princomp.penalties import Penalty
from princomp.result import State, Value

Array = NDArray[Any]

MEMORY = 6  # steps that the extrapolation looks back on
MAX_DOUBLINGS = 60


class Smooth(NamedTuple):
    """f at a point: its value and its gradient."""

    value: float
    gradient: Array


def squared_loss(apply: Callable[[Array], Array], total: float) -> Callable[[Array, Array], Smooth]:
    """Return f(w; W) = |Z - Z w w'|^2 = |Z|^2 - w'Z'Zw, Z = X deflated by W (j, p), from products with S = X'X."""

    taken: list[float] = []  # by each component found; they never change

    def evaluate(w: Array, W: Array) -> Smooth:
        for i in range(len(taken), len(W)):
            taken.append(float(_deflated(apply, W[:i], W[i]) @ W[i]))
        image = _deflated(apply, W, w)
        return Smooth(total - sum(taken[: len(W)]) - float(w @ image), -2.0 * image)

    return evaluate


def _deflated(apply: Callable[[Array], Array], W: Array, w: Array) -> Array:
    """Return Z'Z w for Z = X (I - w_1 w_1') (I - w_2 w_2') ..."""
    for found in W[::-1]:
        w = w - found * (found @ w)
    image = apply(w[:, None])[:, 0]
    for found in W:
        image = image - found * (found @ image)
    return image


def captured(apply: Callable[[Array], Array], V: Array) -> Array:
    """Return what each column of V takes out of |X|^2, given those before it, (k,)."""
    return np.array([_deflated(apply, V[:, :j].T, V[:, j]) @ V[:, j] for j in range(V.shape[1])])


def any_loss(X: Centered, loss: Loss) -> Callable[[Array, Array], Smooth]:
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


def start(starts: Array) -> Value:
    """Return the value before the first step; ``starts`` (k, p) holds a starting direction for each component."""
    k, p = starts.shape
    return {
        "components": np.zeros((0, p)),
        "w": starts[0] / np.linalg.norm(starts[0]),
        "starts": starts,
        "points": np.zeros((0, p)),
        "images": np.zeros((0, p)),
        "lipschitz": np.array(0.0),
        "objectives": np.zeros(0),
        "residuals": np.zeros(0),
        "iteration": np.array(0),
        "component": np.array(0),
    }


def optimize(
    evaluate: Callable[[Array, Array], Smooth], value: Value, *, penalty: Penalty, concave: bool, tol: float
) -> Iterator[State]:
    """Yield states that descend, component after component.

    Parameters
    ----------
    evaluate : callable
        (w, components found before) -> `Smooth`.
    value : mapping
        From `start`, or of an earlier state.
    penalty : Penalty
        h.
    concave : bool
        Whether f is concave on the sphere, so that L = 0 majorises it.
    tol : float
        A component whose residual is within ``tol`` is done.

    Yields
    ------
    State
        ``value["w"]`` is the present direction of component ``value["component"]``; ``objective`` is F of it;
        ``residual`` is infinite until the last component is under way: the answer as a whole is not there before.
    """
    value = dict(value)
    k = len(value["starts"])
    while True:
        W, w, iteration = value["components"], value["w"], int(value["iteration"])
        here = evaluate(w, W)
        objective = here.value + penalty.value(w)
        new, L = _majorise(evaluate, penalty, here, w, W, objective, float(value["lipschitz"]), concave)
        scale = max(float(np.linalg.norm(here.gradient)), np.finfo(float).tiny)
        residual = float(np.linalg.norm(new - w)) * float(np.linalg.norm(L * w - here.gradient)) / scale
        last = len(W) == k - 1
        yield State(
            {**value, "lipschitz": np.array(L), "current residual": np.array(residual)},
            objective,
            residual if last else np.inf,
            iteration,
        )
        points, images = _remember(value["points"], w), _remember(value["images"], new)
        better = _extrapolate(points, images)
        if better is not None and _value(evaluate, penalty, better, W) >= _value(evaluate, penalty, new, W):
            better = None
        value |= {
            "w": new if better is None else better,
            "points": points,
            "images": images,
            "lipschitz": np.array(L / 2),
            "iteration": np.array(iteration + 1),
        }
        if residual <= tol:
            if last:
                return
            value |= _next_component(value, w, objective, residual)


def _next_component(value: Value, w: Array, objective: float, residual: float) -> Value:
    """Return the changes that finish a component and begin the next."""
    component = len(value["components"]) + 1
    direction = value["starts"][component]
    return {
        "components": np.vstack([value["components"], w]),
        "objectives": np.append(value["objectives"], objective),
        "residuals": np.append(value["residuals"], residual),
        "w": direction / np.linalg.norm(direction),
        "points": np.zeros((0, len(w))),
        "images": np.zeros((0, len(w))),
        "lipschitz": np.array(0.0),
        "component": np.array(component),
    }


def _value(evaluate: Callable[[Array, Array], Smooth], penalty: Penalty, w: Array, W: Array) -> float:
    return evaluate(w, W).value + penalty.value(w)


def _majorise(
    evaluate: Callable[[Array, Array], Smooth],
    penalty: Penalty,
    here: Smooth,
    w: Array,
    W: Array,
    objective: float,
    L: float,
    concave: bool,
) -> tuple[Array, float]:
    """Return the minimiser of the majoriser at w, and the L that made it one."""
    if concave:
        return _sphere_prox(-here.gradient, penalty, w), 0.0
    L = max(L, 1e-3 * float(np.linalg.norm(here.gradient)))
    for _ in range(MAX_DOUBLINGS):
        new = _sphere_prox(L * w - here.gradient, penalty, w)
        step = new - w
        bound = here.value + float(here.gradient @ step) + 0.5 * L * float(step @ step)
        if evaluate(new, W).value <= bound + 1e-14 * abs(objective):
            return new, L
        L *= 2
    return w, L


def _sphere_prox(z: Array, penalty: Penalty, w: Array) -> Array:
    """Return the unit vector that minimises -z'v + h(v): the prox, normalised.

    If the penalty takes everything away, the best unit vector is a coordinate axis: that of the largest |z|.
    """
    v = penalty.prox(z, 1.0)
    size = float(np.linalg.norm(v))
    if size > 0:
        return v / size
    if not z.any():
        return w
    axis = np.zeros_like(z)
    j = int(np.argmax(np.abs(z)))
    axis[j] = 1.0 if z[j] >= 0 else -1.0
    return axis


def _remember(past: Array, item: Array) -> Array:
    return np.vstack([past, item])[-MEMORY:]


def _extrapolate(points: Array, images: Array) -> Array | None:
    """Return Anderson's combination of the last images, on the sphere; None while there is nothing to combine."""
    if len(points) < 2:
        return None
    moves = images - points
    differences = np.diff(moves, axis=0).T  # (p, memory - 1)
    weights, *_ = np.linalg.lstsq(differences, moves[-1], rcond=1e-10)
    combined = images[-1] - np.diff(images, axis=0).T @ weights
    size = float(np.linalg.norm(combined))
    return combined / size if np.isfinite(size) and size > 0 else None
