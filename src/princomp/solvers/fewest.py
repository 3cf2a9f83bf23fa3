"""Which numbers of units are searched for, where the fewest are wanted that have enough variance (`cardinality`).

A search from the first starts alone costs little, so such ones find the count first, by the power of it with which the
variance grows. Then the component is searched for from all starts. Where it has variance to spare, fewer units are
searched for in the same way, as long as the work allows.

A state holds "low", too few as far as is known, "high", enough, "least", proved to be needed, "target", what is enough
(NaN where the count was given), "power", "count", of the present search, "whole", whether it is from all starts,
"tried", how many there were, "begun", multiplications for the starts, "spent" and "allowed", those of searches from all
of them, "best", found with ``high`` units, with "height", if from all starts, and "done".
"""

import numpy as np

from princomp._typing import Array
from princomp.result import Value

# Two components of noise 60 x 80 to 200 x 5000 and of ten real tables took 2 to 5 searches each.
MOST_TRIED = 6  # searches from the first starts; and those, from all, that follow the power: others halve what is left
NEAR = 500  # from all starts is searched where the count is found up to such a part of it
MORE_WORK = 0.2  # of the work for a count that is given: more searches may take as much
LEAST_WORK = 2e6  # multiplications that they may always take
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
        **{name: np.array(0.0) for name in ("begun", "spent", "allowed")},
        "done": np.array(False),
    }


def of_count(count: int) -> dict[str, Array]:
    """Return the state of a search for so many units: there is one, from all starts."""
    numbers = {"low": count - 1, "high": count, "least": count, "count": count, "whole": True}
    return {name: np.array(number) for name, number in numbers.items()}


def of_share(target: float, least: int, high: int, power: float, height: float) -> dict[str, Array]:
    """Return the state of a search for the fewest that have the target, from ``least`` to ``high``, of this height."""
    power = float(np.clip(power, *POWERS))
    count = int(np.clip(_guess(high, height, target, power), least, high))
    numbers = {"low": least - 1, "high": high, "least": least, "count": count, "target": target, "power": power}
    return {name: np.array(number) for name, number in numbers.items()}


def _guess(count: int, height: float, target: float, power: float) -> int:
    """Return how many units have the target, if so many have this height."""
    return int(np.rint(count * min(target / max(height, 1e-300), 1e9) ** (1 / power)))


def judged(value: Value, v: Array, height: float, work: float, units: int) -> dict[str, Array]:
    """Return what a search that found v changes: bounds on the count, and what to search for next.

    All ``units`` there are are enough, whatever rounding says.
    """
    count, whole, target = int(value["count"]), bool(value["whole"]), float(value["target"])
    low, high, least = int(value["low"]), int(value["high"]), int(value["least"])
    changes: dict[str, Array] = {"tried": value["tried"] + 1}
    if height < target and count < units:
        low, high = count, max(high, count + 1)
    else:
        high, changes["best"] = count, v
    first = whole and high == count and np.isnan(value["height"])
    if first:  # what searches from some starts have not found counts no longer
        low = least - 1
    if whole and high == count:
        changes["height"] = np.array(height)
    changes |= {"low": np.array(low), "high": np.array(high)}
    guess = _guess(count, height, target, float(value["power"])) if not np.isnan(target) else count
    if not whole:
        finds = high - low == 1 or guess >= high - high // NEAR or changes["tried"] >= MOST_TRIED
        following = high if finds else int(np.clip(guess, low + 1, high - 1))
        return changes | {"count": np.array(following), "whole": np.array(finds)}
    spent = float(value["spent"]) + work
    allowed = max(MORE_WORK * (float(value["begun"]) + work), LEAST_WORK) + work if first else float(value["allowed"])
    changes |= {"spent": np.array(spent), "allowed": np.array(allowed)}
    if not np.isnan(changes.get("height", value["height"])):
        hopeless = guess >= high and spent > LEAST_WORK  # as far as the power tells
        changes["done"] = np.array(high - low == 1 or spent + work > allowed or (high == count and hopeless))
    following = guess if int(changes["tried"]) < 2 * MOST_TRIED else (low + high) // 2
    return changes | {"count": np.array(np.clip(following, low + 1, max(high - 1, low + 1)))}


def was_cut(value: Value) -> bool:
    """Tell whether fewer units were not searched for from all starts, for want of work, or of hope."""
    return int(value["high"]) - int(value["low"]) > 1
