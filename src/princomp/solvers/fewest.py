"""Which numbers of units are searched for, where the fewest are wanted that have enough variance (`cardinality`).

A search from the first starts alone costs little, so such ones find the count first: by the power of the count with
which the variance grows, then one by one. Searches from all starts follow. The first is for the count found; where it
has variance to spare, fewer units are searched for, as long as the work allows.

A state holds "low", too few as far as is known, "high", enough, "least", proved to be needed, "target", what is enough
(NaN where the count was given), "power", "count", of the present search, "whole", whether it is from all starts,
"tried", "spent", "allowed", multiplications, and "best", found with ``high`` units, with "height" if from all starts.
"""

import numpy as np

from princomp._typing import Array
from princomp.result import Value

# Two components of noise 60 x 80 to 200 x 5000 and of ten real tables took 2 to 6 searches each.
MOST_TRIED = 6  # searches that follow the power; others halve what is left
MORE_WORK = 0.3  # of the work until the first search from all starts is done: more searches may take as much
LEAST_WORK = 3e7  # multiplications that they may always take
POWERS = 0.05, 2.0  # between which the power lies


def start(p: int) -> dict[str, Array]:
    """Return the state of a search that has not begun."""
    return {
        **{name: np.array(-1) for name in ("low", "high", "least", "count")},
        **{name: np.array(np.nan) for name in ("target", "height")},
        "power": np.array(1.0),
        "whole": np.array(False),
        "best": np.zeros(p),
        "tried": np.array(0),
        "spent": np.array(0.0),
        "allowed": np.array(np.inf),
    }


def of_count(count: int) -> dict[str, Array]:
    """Return the state of a search for so many units: there is one, from all starts."""
    numbers = {"low": count - 1, "high": count, "least": count, "count": count, "whole": True}
    return {name: np.array(number) for name, number in numbers.items()}


def of_share(target: float, least: int, high: int, power: float) -> dict[str, Array]:
    """Return the state of a search for the fewest that have the target, from ``least`` to ``high``."""
    numbers = {"low": least - 1, "high": high, "least": least, "count": high, "target": target}
    return {name: np.array(number) for name, number in numbers.items()} | {"power": np.clip(power, *POWERS)}


def judged(value: Value, v: Array, height: float, work: float, units: int) -> dict[str, Array]:
    """Return what a search that found v changes: bounds on the count, and what to search for next.

    All ``units`` there are are enough, whatever rounding says.
    """
    count, whole, target = int(value["count"]), bool(value["whole"]), float(value["target"])
    low, high, least = int(value["low"]), int(value["high"]), int(value["least"])
    spent = float(value["spent"]) + work
    changes: Value = {"spent": np.array(spent), "tried": value["tried"] + 1}
    first = whole and np.isnan(value["height"])
    if height < target and count < units:
        low = count
        high = max(high, low + 1)
    else:
        high, changes["best"] = count, v
        if whole:
            changes["height"] = np.array(height)
        if first:  # what searches from some starts have not found counts no longer
            low = least - 1
            changes["allowed"] = np.array(spent + max(MORE_WORK * spent, LEAST_WORK) - work)
    changes |= {"low": np.array(low), "high": np.array(high)}
    if high - low == 1:  # known, but for what searches from all starts find
        return changes | {"count": np.array(high), "whole": np.array(True)}
    guess = count * (target / max(height, 1e-300)) ** (1 / float(value["power"]))
    following = int(np.ceil(guess)) if int(changes["tried"]) <= MOST_TRIED else (low + high) // 2
    return changes | {"count": np.array(np.clip(following, low + 1, high - 1))}


def is_found(value: Value) -> bool:
    """Tell whether the search is at its end: nothing is left between the bounds, or no work."""
    if np.isnan(value["height"]):
        return False
    return int(value["high"]) - int(value["low"]) == 1 or was_cut(value)


def was_cut(value: Value) -> bool:
    """Tell whether fewer units were left untried for want of work."""
    between = int(value["high"]) - int(value["low"]) > 1
    return between and float(value["spent"]) >= float(value["allowed"])
