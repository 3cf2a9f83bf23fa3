"""The loosest weights that leave as many nonzeros as the first ones found: of all these they keep the most variance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp.solvers.nonzeros import Fit, Found

Array = NDArray[Any]

CLOSE = 0.02  # relative width at which a bracket is narrow enough: the variance hardly changes within it
FITS = 4  # and half as many as the search took: it is not to cost much more
LOWER = 0.35  # of a weight below which none was tried


def recording(fit: Fit, tried: list[tuple[Array, Array]]) -> Fit:
    """Return a fit that adds weights and numbers of nonzeros to those tried."""

    def recorded(alpha: Array, start: Any) -> tuple[Array, Any]:
        nonzeros, following = fit(alpha, start)
        tried.append((alpha, nonzeros))
        return nonzeros, following

    return recorded


def loosest(fit: Fit, found: Found, tried: list[tuple[Array, Array]]) -> Found:
    """Return a fit with weights as small as leave the nonzeros found, by bisection of all weights side by side.

    ``tried`` holds (weights, nonzeros) of earlier fits, for the brackets. The numbers depend on all weights, so that
    only a fit with all of them right counts.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.estimators.sparse.loosest import loosest
    >>> from princomp.solvers.nonzeros import Found
    >>> sizes = np.array([[5.0, 4.0, 3.0, 2.0, 1.0]]).T  # entries above alpha stay
    >>> first = Found(np.array([3.9]), np.array([2]), None, 6, np.array([False]))
    >>> found = loosest(lambda alpha, start: ((sizes > alpha).sum(axis=0), None), first, [])
    >>> found.nonzeros.tolist(), bool(3.0 <= found.alpha[0] <= 3.06)
    ([2], True)
    """
    target, best = found.nonzeros, found
    loose = np.zeros(len(target))
    for alpha, nonzeros in tried:
        loose = np.where((nonzeros > target) & (alpha < best.alpha), np.maximum(alpha, loose), loose)
    moves, trial = np.ones(len(target), bool), best.alpha
    for _ in range(FITS + found.fits // 2):
        wide = (best.alpha > (1 + CLOSE) * loose) & (target > 0)
        if not wide.any():
            break
        middle = np.where(loose > 0, np.sqrt(best.alpha * loose), LOWER * best.alpha)
        trial = np.where(moves, np.where(wide, middle, best.alpha), trial)
        nonzeros, following = fit(trial, best.start)
        best = best._replace(fits=best.fits + 1)
        wrong = nonzeros != target
        moves = np.ones(len(target), bool)
        if not wrong.any():
            best = best._replace(alpha=trial, start=following)
            continue
        if (wrong & wide).any():
            moves = wrong & wide  # the others wait where they are right
        loose = np.where(moves, np.maximum(trial, loose), loose)
    return best
