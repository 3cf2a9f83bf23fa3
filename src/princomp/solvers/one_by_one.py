"""One component after the other: find the next in what those before it leave, take it away, begin again.

A value holds "captured" (j,), what each component that is done took away: its variance on the S it was found on;
"worst", their largest residual; "iteration"; what those that are done leave, as the caller of `in_turn` keeps it; and
what the search for the next one needs, which begins anew for each. Where S = X'X is deflated by them
(`princomp.solvers.deflation`) the components are "found" (p, j), and "left", "right" and "basis" say how.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.deflation import Deflated, deflated
from princomp.solvers.scatter import Scatter

Left = TypeVar("Left")  # what is left
# (what is left, value) -> (what changes, what the component under way would take, its residual or infinity)
Step = Callable[[Left, Value], tuple[Value, float, float]]


def start(p: int, search: Value) -> Value:
    """Return the value before the first step, with that of a search that has not begun."""
    empty = np.zeros((p, 0))
    done = {"found": empty, "left": empty, "right": empty, "basis": empty, "captured": np.zeros(0)}
    return {**done, "worst": np.array(0.0), "iteration": np.array(0), **search}


def components(value: Value, k: int, under_way: Array | None) -> Array:
    """Return the components, (p, k); those that are not begun, or for which nothing was left, are zero."""
    V = np.zeros((len(value["found"]), k))
    done = value["found"].shape[1]
    V[:, :done] = value["found"]
    if under_way is not None and done < k:
        V[:, done] = under_way
    return V


def finished(A: Deflated, value: Value, v: Array, variance: float, residual: float, search: Value) -> dict[str, Array]:
    """Return what changes when v is done, and a search that has not begun takes the place of the one that found it."""
    after = A.without(v)
    return {
        "found": np.column_stack([value["found"], v]),
        "captured": np.append(value["captured"], variance),
        "worst": np.array(max(residual, float(value["worst"]))),
        "left": after.left,
        "right": after.right,
        "basis": after.basis,
        **search,
    }


def one_by_one(scatter: Scatter, value: Value, step: Step[Deflated], *, k: int, deflation: str) -> Iterator[State]:
    """Yield states that ascend, component after component, each found on what those before leave of S.

    ``objective`` is tr S less the variances found, each on the S it was found on.
    """
    leave = partial(deflated, scatter, deflation)
    return in_turn(value, step, leave, k=k, total=float(scatter.diagonal.sum()))


def in_turn(value: Value, step: Step[Left], leave: Callable[[Value], Left], *, k: int, total: float) -> Iterator[State]:
    """Yield states that ascend, component after component; ``leave(value)`` is what those that are done leave.

    ``objective`` is ``total`` less what was captured; ``residual`` is the largest, infinite until the last component is
    under way and can tell its own.
    """
    left, before = None, -1
    while (component := len(value["captured"])) < k:
        # In one memory order, on which the last digits of products depend: a restart begins here.
        value = {name: np.asarray(array, order="C") for name, array in value.items()}
        if left is None or before != component:
            left, before = leave(value), component
        changes, captured, residual = step(left, value)
        value |= {**changes, "iteration": value["iteration"] + 1}
        if len(value["captured"]) > component:
            captured = residual = 0.0
        worst = max(residual, float(value["worst"])) if component == k - 1 else np.inf
        yield State(dict(value), float(total - value["captured"].sum() - captured), worst, int(value["iteration"]))
