"""Limited-memory BFGS directions (Nocedal & Wright, Numerical Optimization, 2nd ed. 2006, algorithm 7.4)."""

from collections.abc import Sequence

import numpy as np

from princomp._typing import Array


def useful(step: Array, change: Array) -> bool:
    """Tell whether a step and the change of the gradient along it show curvature upwards."""
    return float(np.vdot(step, change)) > 1e-10 * float(np.linalg.norm(step)) * float(np.linalg.norm(change))


def direction(gradient: Array, pairs: Sequence[tuple[Array, Array]], scale: Array | float) -> Array:
    """Return minus the inverse Hessian, as far as known, times the gradient.

    ``pairs`` of (step, change of gradient), all `useful`, stand with the oldest first; ``scale`` is a diagonal inverse
    Hessian to begin with, but for its size.
    """
    out = -gradient
    products = []
    for step, change in reversed(pairs):
        rho = 1.0 / float(np.vdot(step, change))
        weight = rho * float(np.vdot(step, out))
        products.append((rho, weight))
        out -= weight * change
    if pairs:
        step, change = pairs[-1]
        bend = float(np.vdot(change, scale * change))  # zero where the scale is, in columns that take no part
        out *= scale * (float(np.vdot(step, change)) / bend if bend > 0 else 1.0)
    else:
        out *= scale
    for (step, change), (rho, weight) in zip(pairs, reversed(products), strict=True):
        out += (weight - rho * float(np.vdot(change, out))) * step
    return out
