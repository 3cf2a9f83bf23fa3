"""Dictionary learning by turns (Engan, Aase & Husoy 1999; Mairal, Bach, Ponce & Sapiro, JMLR 2010): codes, then atoms.

Objective: the mean over rows x of 1/2 |x - a D|^2 + h(a), plus sum_k g(d_k). With D fixed every row gets its code, with
codes fixed every atom its place. Neither makes the objective larger: codes that minimise cannot, a greedy search keeps
the code that a row had where the new one is worse, and an atom that takes another's place (`learning_replacement`)
stays only if the objective is then no larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace as with_
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Rows
from princomp.result import State, Value
from princomp.solvers.learning_atoms import Atoms, improved, own_weights
from princomp.solvers.learning_coded import WORST, Coded, Task
from princomp.solvers.learning_replacement import replaced
from princomp.solvers.learning_state import as_coded, as_value, residual, together
from princomp.solvers.learning_statistics import code_all


def batch(value: Value, rows: Rows, task: Task, atoms: Atoms, *, replace: bool) -> Iterator[State]:
    """Yield states after each turn; ``value`` holds D, or all of an earlier state."""
    D, turn, count = value["D"], int(value.get("iteration", 0)), int(value.get("replaced", 0))
    keeps = not task.optimal
    worst = WORST if replace else 0

    def code(D: Array, codes: Any) -> Coded:
        return code_all(rows, with_(task, D=D, worst=worst, codes=codes if keeps else None, keep=keeps))

    coded = as_coded(value) if "A" in value else code(D, None)
    while True:
        codes = together(coded.codes) if keeps else None
        before = coded.objective + atoms.value(D)
        better = improved(D, coded.A / coded.count, coded.B / coded.count, atoms)
        D, coded, new = _recoded(better, coded, codes, code, atoms, before, replace)
        turn, count = turn + 1, count + new
        value = {"D": D, **as_value(coded), "iteration": np.array(turn), "replaced": np.array(count)}
        yield State(value, coded.objective + atoms.value(D), residual(D, coded, atoms), turn)


def _recoded(
    D: Array, coded: Coded, codes: Any, code: Callable[[Array, Any], Coded], atoms: Atoms, before: float, replace: bool
) -> tuple[Array, Coded, int]:
    """Return atoms, some replaced if that makes the objective no larger than it was, their sums, and how many were."""
    if replace:
        other, which = replaced(D, own_weights(coded.A), coded.worst, atoms)
        if len(which):
            again = code(other, None if codes is None else without(codes, which))
            if again.objective + atoms.value(other) <= before:
                return other, again, len(which)
    return D, code(D, codes), 0


def without(codes: Any, which: Array) -> Any:
    """Return codes that do not use these atoms."""
    keep = np.ones(codes.shape[1])
    keep[which] = 0.0
    left = codes.copy()
    left.data = codes.data * keep[codes.indices]
    left.eliminate_zeros()
    return left
