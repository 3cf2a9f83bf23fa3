"""A penalty weight for each component that leaves a given number of nonzeros, by bisection with warm starts.

The number of nonzeros falls with alpha, as a rule, but not always, and that of one component depends on the weights of
the others. So all weights are bisected together, a bracket that proves wrong is opened again, and the best fit is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Fit = Callable[[Array, Any], tuple[Array, Any]]

SMALLEST = 1e-9  # share of the largest weight below which it may as well be 0
FIRST = 0.125  # share of the upper end to try while nothing is known below it
NARROW = 1e-5  # relative width at which a bracket is closed
STREAK = 3  # counts in a row on one side of the target, after which the other end of the bracket is in doubt


class Found(NamedTuple):
    """The best fit of a search."""

    alpha: Array  # (k,)
    nonzeros: Array  # (k,)
    start: Any  # what the fit left for the next
    fits: int  # how many were made


def bisect_alpha(fit: Fit, target: Any, alpha_max: Any, *, start: Any = None, max_fits: int = 30) -> Found:
    """Return weights, one per component, whose fit has the target number of nonzeros, or comes closest.

    Parameters
    ----------
    fit : callable
        ``fit(alpha, start) -> (nonzeros, start for the next)``, alpha and nonzeros being (k,) arrays.
    target : (k,) array of int
        Number of nonzeros wanted in each component.
    alpha_max : float or (k,) array
        Weights at which nothing is left.
    start : object
        For the first fit. A later one starts from the last fit that left no component empty: from an empty one there
        may be no way back.
    max_fits : int
        Bound on the number of fits.

    Returns
    -------
    Found
        The fit with the least sum of |nonzeros - target|; of several the one with the fewest nonzeros.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.solvers.nonzeros import bisect_alpha
    >>> sizes = np.array([[5.0, 4.0, 3.0, 2.0, 1.0], [9.0, 8.0, 7.0, 1.0, 1.0]]).T  # entries above alpha stay
    >>> found = bisect_alpha(lambda alpha, start: ((sizes > alpha).sum(axis=0), None), [2, 3], 10.0)
    >>> found.nonzeros.tolist(), found.fits
    ([2, 3], 2)
    """
    target = np.asarray(target)
    high = np.broadcast_to(np.asarray(alpha_max, dtype=np.float64), target.shape).copy()
    most, low = high.copy(), np.zeros_like(high)
    alpha, streak = FIRST * high, np.zeros(len(high), dtype=int)  # of counts too large, or, negative, too small
    best: Found | None = None
    for fits in range(1, max_fits + 1):
        nonzeros, following = fit(alpha, start)
        nonzeros = np.asarray(nonzeros)
        if best is None or _rank(nonzeros, target) < _rank(best.nonzeros, target):
            best = Found(alpha, nonzeros, following, fits)
        if nonzeros.all():
            start = following
        many, few = nonzeros > target, nonzeros < target
        low, high = np.where(many, alpha, low), np.where(few, alpha, high)
        streak = np.where(many, np.maximum(streak, 0) + 1, np.where(few, np.minimum(streak, 0) - 1, 0))
        width = high - low
        high = np.where(streak >= STREAK, np.minimum(high + width, most), high)
        low = np.where(streak <= -STREAK, np.maximum(low - width, 0.0), low)
        # Where nothing is left to try between the ends, the count jumps over the target.
        open_still = (many | few) & (high - low > NARROW * high) & ~(few & (alpha == 0))
        if not open_still.any():
            break
        alpha = np.where(open_still, _between(low, high, most), alpha)
    if best is None:
        raise ValueError(f"max_fits must be at least 1, got {max_fits}.")
    return best._replace(fits=fits)


def _between(low: Array, high: Array, most: Array) -> Array:
    """Return the next weights to try: the geometric mean, or a share of the upper end while the lower one is 0."""
    middle = np.where(low > 0, np.sqrt(low * high), FIRST * high)
    return np.where(middle > SMALLEST * most, middle, 0.0)


def _rank(nonzeros: Array, target: Array) -> tuple[int, int]:
    return int(np.abs(nonzeros - target).sum()), int(nonzeros.sum())
