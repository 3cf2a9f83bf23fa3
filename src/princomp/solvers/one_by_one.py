"""One component after the other: find the next in what those before it leave of S, take it away, begin again.

A value holds "found" (p, j), the components that are done; "left", "right" and "basis", the deflation by them;
"captured" (j,), the variance of each on the S it was found on; "worst", their largest residual; "iteration"; and what
the search for the next one needs, which begins anew for each.
"""

from collections.abc import Callable, Iterator

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.deflation import Deflated, deflated
from princomp.solvers.scatter import Scatter

# (what is left of S, value) -> (what changes, variance of the component under way, its residual or infinity)
Step = Callable[[Deflated, Value], tuple[Value, float, float]]


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


def one_by_one(scatter: Scatter, value: Value, step: Step, *, k: int, deflation: str) -> Iterator[State]:
    """Yield states that ascend, component after component.

    ``objective`` is tr S less the variances found, each on the S it was found on; ``residual`` is the largest, infinite
    until the last component is under way and can tell its own.
    """
    total, A, before = float(scatter.diagonal.sum()), None, -1
    while (component := value["found"].shape[1]) < k:
        # In one memory order, on which the last digits of products depend: a restart begins here.
        value = {name: np.array(array, order="C") for name, array in value.items()}
        if A is None or before != component:
            A, before = deflated(scatter, deflation, value), component
        changes, variance, residual = step(A, value)
        value |= {**changes, "iteration": value["iteration"] + 1}
        if value["found"].shape[1] > component:
            variance = residual = 0.0
        worst = max(residual, float(value["worst"])) if component == k - 1 else np.inf
        yield State(dict(value), float(total - value["captured"].sum() - variance), worst, int(value["iteration"]))
