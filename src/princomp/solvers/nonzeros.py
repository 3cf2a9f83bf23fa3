"""The loosest penalty weight for each component that leaves a given number of nonzeros, by fits with warm starts.

The number of nonzeros falls with alpha, as a rule, but not always, and that of one component depends on the weights of
the others. So all weights move together, without brackets: each that is not right takes a step towards fewer or more
nonzeros, half as long whenever it has passed the target. Fits begin at the best one before. From a fit far away, or
from the usual start, components may change places: a component of smaller weight takes over what a stronger one holds.
Where one way does not lead to the target, another beginning may.

There may be no weights that lead there, and fits may be slow: whoever asks says how much work is too much.

Of all weights that leave as many nonzeros the smallest keep the most variance: they are found by bisection of all
weights side by side. The numbers depend on all weights, so that only a fit with all of them right counts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from princomp._typing import Array

Fit = Callable[[Array, Any], tuple[Array, Any]]
Work = Callable[[], float]  # that has been done, as a share of what may be done

# Of 24 numbers of nonzeros, 80 x 40 to 200 x 100, these miss 4 in all; a STEP of 0.3, 4, and 1.5, none; LONGEST 0.7, 2;
# LONGER 1, 2, and 2, 22; SHORTER 0.3, 2, and 0.8, 3.
BEGINNINGS = (0.125, 0.02, 0.4)  # shares of the largest weight
STEP, LONGEST = 0.7, 2.0  # in log alpha: at first, at the most
LONGER, SHORTER = 1.2, 0.5
NARROW = 1e-4  # a step this short is not worth it
JUMP = 0.01  # weights this close, relative, with too many and with too few nonzeros have nothing between them
SMALLEST = 1e-9  # share of the largest weight below which it may as well be 0
# The loosest weights. Six searches, 80 x 40 to 40 x 120, kept 3.760 of the variance: 3.761, in a fifth more time,
# with 0.005 for CLOSE, 3.750 with 0.1; 3.759 to 3.760 with LOOSER_FITS 0 to 12, LOWER 0.1 to 0.7, NARROW 1e-2 to 1e-6.
CLOSE = 0.02  # relative width at which a bracket is narrow enough: the variance hardly changes within it
LOOSER_FITS = 4  # and half as many as the search took: it is not to cost much more
LOOSER = 1.5  # times the work that the search may take, for both together, if the target was reached
LOWER = 0.35  # of a weight below which none was tried
BETWEEN = 1e-6  # relative width of a bracket at which the number jumps over the target


class Found(NamedTuple):
    """The best fit of a search."""

    alpha: Array  # (k,)
    nonzeros: Array  # (k,)
    start: Any  # what the fit left for the next
    fits: int  # how many were made
    jumps: Array  # (k,) whether the number of nonzeros was seen to jump over the target


def none(*_: Any) -> float:
    """Return that no work has been done, whatever was done."""
    return 0.0


def loosest_alpha(fit: Fit, target: Any, alpha_max: Any, *, max_fits: int = 75, work: Work = none) -> Found:
    """Return weights as small as leave the target number of nonzeros, or what comes closest to it.

    The parameters are those of `bisect_alpha`, which goes first; then there are half as many fits, and four, and half
    as much work, at the most.
    """
    tried: list[tuple[Array, Array]] = []

    def recorded(alpha: Array, start: Any) -> tuple[Array, Any]:
        nonzeros, following = fit(alpha, start)
        tried.append((alpha, nonzeros))
        return nonzeros, following

    best = bisect_alpha(recorded, target, alpha_max, max_fits=max_fits, work=work)
    reached, loose = best.nonzeros, np.zeros(len(best.alpha))
    for alpha, nonzeros in tried:
        loose = np.where((nonzeros > reached) & (alpha < best.alpha), np.maximum(alpha, loose), loose)
    moves, trial = np.ones(len(reached), bool), best.alpha
    most = LOOSER if (reached == np.asarray(target)).all() else 1.0
    for _ in range(LOOSER_FITS + best.fits // 2):
        wide = (best.alpha > (1 + CLOSE) * loose) & (reached > 0)
        if not wide.any() or work() >= most:
            break
        middle = np.where(loose > 0, np.sqrt(best.alpha * loose), LOWER * best.alpha)
        trial = np.where(moves, np.where(wide, middle, best.alpha), trial)
        nonzeros, following = fit(trial, best.start)
        best = best._replace(fits=best.fits + 1)
        wrong = nonzeros != reached
        moves = np.ones(len(reached), bool)
        if not wrong.any():
            best = best._replace(alpha=trial, start=following)
            continue
        if (wrong & wide).any():
            moves = wrong & wide  # the others wait where they are right
        loose = np.where(moves, np.maximum(trial, loose), loose)
    return best


def loosest_bound(
    fit: Callable[[float], tuple[int, Any]],
    target: int,
    low: float,
    high: float,
    *,
    max_fits: int = 30,
    work: Work = none,
) -> tuple[float, int, Any]:
    """Return the largest bound that leaves a number of nonzeros, or comes closest; their number; what the fit left.

    The number rises with the bound, ``high`` leaves as many at the least, and is tried first. When ``work()``, asked
    after each fit, is 1 or more, it ends.
    """
    best, trial = None, high
    for _ in range(max_fits):
        nonzeros, left = fit(trial)
        # What is right replaces what was: trials go up from it.
        if best is None or nonzeros == target or abs(nonzeros - target) < abs(best[1] - target):
            best = trial, nonzeros, left
        low, high = (low, trial) if nonzeros > target else (trial, high)
        if high - low <= (CLOSE if best[1] == target else BETWEEN) * high or work() >= 1:
            break
        trial = (low + high) / 2
    if best is None:
        raise ValueError(f"max_fits must be at least 1, got {max_fits}.")
    return best


def bisect_alpha(
    fit: Fit, target: Any, alpha_max: Any, *, start: Any = None, max_fits: int = 75, work: Work = none
) -> Found:
    """Return weights, one per component, whose fit has the target number of nonzeros, or comes closest.

    ``fit(alpha, start) -> (nonzeros, start for the next)`` has alpha and nonzeros (k,); at ``alpha_max`` nothing is
    left. ``start`` is for the first fit of each beginning. A later one starts from the best before that left no
    component empty: from an empty one there may be no way back. When ``work()``, asked after each fit, is 1 or more,
    the search ends with the best so far.

    Of the fits with the fewest empty components it is the one with the least sum of |nonzeros - target|; of several
    the one with the fewest nonzeros.
    """
    if max_fits < 1:
        raise ValueError(f"max_fits must be at least 1, got {max_fits}.")
    target = np.asarray(target)
    most = np.broadcast_to(np.asarray(alpha_max, dtype=np.float64), target.shape)
    found: list[Found] = []
    for i, share in enumerate(BEGINNINGS):
        left = (max_fits - sum(each.fits for each in found)) // (len(BEGINNINGS) - i)
        if left > 0 or not found:
            found.append(_search(fit, target, most, share, start, max(left, 1), work))
        if (found[-1].nonzeros == target).all() or work() >= 1:
            break
    best = min(found, key=lambda each: _rank(each.nonzeros, target))
    return best._replace(fits=sum(each.fits for each in found))


def _search(fit: Fit, target: Array, most: Array, share: float, start: Any, max_fits: int, work: Work) -> Found:
    """Return the best fit on the way from this share of the largest weights."""
    alpha, low, high = share * most, np.zeros(len(target)), most
    step, side = np.full(len(target), STEP), np.zeros(len(target))
    best: Found | None = None
    rank_of_start = (np.inf, np.inf, np.inf)
    for fits in range(1, max_fits + 1):
        nonzeros, following = fit(alpha, start)
        nonzeros = np.asarray(nonzeros)
        rank = _rank(nonzeros, target)
        if best is None or rank <= _rank(best.nonzeros, target):
            best = Found(alpha, nonzeros, following, fits, np.zeros(len(target), bool))
        if nonzeros.all() and rank <= rank_of_start:
            start, rank_of_start = following, rank
        now = np.sign(nonzeros - target)
        low, high = np.where(now > 0, np.maximum(alpha, low), low), np.where(now < 0, np.minimum(alpha, high), high)
        step = np.where(now * side < 0, SHORTER * step, np.where(now * side > 0, LONGER * step, step))
        step, side = np.minimum(step, LONGEST), np.where(now != 0, now, side)
        moved = np.minimum(alpha * np.exp(now * step), most)
        moved = np.where(moved > SMALLEST * most, moved, 0.0)
        narrow = step < NARROW
        if not ((moved != alpha) & ~narrow).any() or work() >= 1:
            break
        alpha = np.where(narrow, alpha, moved)
    assert best is not None  # noqa: S101 - one fit at least is made
    return best._replace(fits=fits, jumps=(high < (1 + JUMP) * low) & (best.nonzeros != target))


def _rank(nonzeros: Array, target: Array) -> tuple[float, float, float]:
    """Return what is better when smaller: first of all, no component may be empty."""
    return int((nonzeros == 0).sum()), int(np.abs(nonzeros - target).sum()), int(nonzeros.sum())
