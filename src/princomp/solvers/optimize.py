"""PCA as an optimisation, one component at a time with deflation, by majorisation (Journee et al., JMLR 2010).

Objective, for unit w: F(w) = sum rho(X - X w w') + h(w), rho the loss and h the penalty; then X <- X - X w w'.
With rho(r) = r^2 and h = 0 this is PCA; with h = alpha |w|_1 it is PCA with a sparsity penalty.

On the sphere |w - v|^2 = 2 - 2 w'v is linear in w, so a smooth f is majorised at v by a linear function,
f(v) + (g - L v)'(w - v), with g the gradient and L at least its Lipschitz constant (for the squared loss f is concave
there and L = 0 will do). Its sum with h is minimised in closed form, w = prox_h(L v - g) normalised: F never rises.
Anderson extrapolation (Walker & Ni, SIAM J. Numer. Anal. 2011) is taken when it lowers F further.
"""

from collections.abc import Callable, Iterator

import numpy as np

from princomp._typing import Array
from princomp.certificates.reconstruction import Evaluate, Smooth, majorise, step_residual
from princomp.certificates.reconstruction import any_loss as any_loss  # beside `squared_loss`
from princomp.penalties import Penalty, Zero
from princomp.result import State, Value
from princomp.solvers.extrapolation import anderson, remember

MAX_STEPS = 1000  # after which a component is left where it is, so that the next can be found
# F itself is known to this share of |X|^2.
OBJECTIVE_ROUNDING = 2 * np.finfo(np.float64).eps


def squared_loss(apply: Callable[[Array], Array], total: float) -> Evaluate:
    """Return f(w; W) = |Z - Z w w'|^2 = |Z|^2 - w'Z'Zw, Z = X deflated by W (j, p), from products with S = X'X."""
    taken: list[float] = []  # by each component found; they never change

    def evaluate(w: Array, W: Array) -> Smooth:
        taken.extend(float(_deflated(apply, W[:i], W[i]) @ W[i]) for i in range(len(taken), len(W)))
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


def start(starts: Array) -> Value:
    """Return the value before the first step; ``starts`` (k, p) holds a starting direction for each component."""
    starts = starts / np.linalg.norm(starts, axis=1, keepdims=True)
    return {
        "starts": starts,
        "found": np.zeros((0, starts.shape[1])),  # components that are done
        "w": starts[0],  # where the component under way stands
        "next": starts[0],  # where it goes
        "done": np.array(False),
        "steps": np.array(0),  # of this component
        "worst": np.array(0.0),  # residual of those done
        **_forget(starts.shape[1]),
        "iteration": np.array(0),
        "component": np.array(0),
    }


def _forget(p: int) -> Value:
    """Return the memory of a component that has just begun."""
    return {"points": np.zeros((0, p)), "images": np.zeros((0, p)), "lipschitz": np.array(0.0)}


def components(value: Value, k: int) -> Array:
    """Return the components, (k, p); those not begun are where they would start."""
    known = np.vstack([value["found"], value["w"]])
    return np.vstack([known, value["starts"][len(known) :]])[:k]


def optimize(
    evaluate: Evaluate, value: Value, *, penalty: Penalty, concave: bool, tol: float, total: float
) -> Iterator[State]:
    """Yield states that descend, component after component.

    ``evaluate(w, components found before)`` is f, ``concave`` tells whether it is so on the sphere, so that L = 0
    majorises it. ``total`` is |X|^2, to tell a gradient from rounding. A component whose residual is within ``tol`` is
    done; ``objective`` is F of the one under way, and ``residual`` is infinite until that is the last: the answer as a
    whole is not there before.
    """
    value = dict(value)
    k, p = value["starts"].shape
    plain = isinstance(penalty, Zero) and concave
    while True:
        if value["done"]:
            component = len(value["found"]) + 1
            if component == k:
                return
            found = np.vstack([value["found"], value["w"]])
            begin = value["starts"][component]
            value |= {"found": found, "next": _outside(begin, found) if plain else begin, **_forget(p)}
            value |= {"component": np.array(component), "steps": np.array(0)}
        W, w = value["found"], value["next"]
        here = evaluate(w, W)
        objective = here.value + penalty.value(w)
        image, L = majorise(evaluate, here, w, W, penalty, total, concave=concave, L=float(value["lipschitz"]))
        complete = len(W) == k - 1
        residual = step_residual(image, w, concave=concave)
        if residual <= tol and not concave:  # L has a past here; the certificate's has none
            image_anew, _ = majorise(evaluate, here, w, W, penalty, total, concave=concave)
            residual = max(residual, step_residual(image_anew, w, concave=concave))
        points, images = remember(value["points"], w), remember(value["images"], image)
        # A step that changes F by less than its rounding must not end the descent (a concave f never rises).
        highest = np.inf if concave else objective + OBJECTIVE_ROUNDING * total
        following = _best(evaluate, penalty, W, w, highest, image, _extrapolate(points, images))
        value |= {
            "w": w,
            "next": following,
            # Done, or no step leads lower, in the digits that there are, or it takes too long.
            "done": np.array(residual <= tol or following is w or value["steps"] + 1 >= MAX_STEPS),
            "steps": value["steps"] + 1,
            "points": points,
            "images": images,
            "lipschitz": np.array(L / 2),
            "iteration": value["iteration"] + 1,
        }
        worst = max(residual, float(value["worst"]))
        if value["done"]:
            value["worst"] = np.array(worst)
        yield State(dict(value), objective, worst if complete else np.inf, int(value["iteration"]))


def _outside(w: Array, W: Array) -> Array:
    """Return w made orthogonal to the rows of W, of unit length."""
    for _ in range(2):
        w = w - W.T @ (W @ w)
        w = w / np.linalg.norm(w)
    return w


def _best(
    evaluate: Evaluate, penalty: Penalty, W: Array, w: Array, highest: float, plain: Array, bold: Array | None
) -> Array:
    """Return the bold step if it leads lower than the plain one; w itself if that leads above ``highest``."""
    value = _value(evaluate, penalty, plain, W)
    if bold is not None and _value(evaluate, penalty, bold, W) < min(value, highest):
        return bold
    return plain if value <= highest else w


def _value(evaluate: Evaluate, penalty: Penalty, w: Array, W: Array) -> float:
    return evaluate(w, W).value + penalty.value(w)


def _extrapolate(points: Array, images: Array) -> Array | None:
    """Return Anderson's combination of the last images, on the sphere; None if there is none."""
    combined = anderson(points, images)
    size = 0.0 if combined is None else float(np.linalg.norm(combined))
    return combined / size if combined is not None and 0 < size < np.inf else None
