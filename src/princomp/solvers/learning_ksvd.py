"""K-SVD (Aharon, Elad & Bruckstein, IEEE Trans. Signal Processing 2006), approximate (Rubinstein et al., CS-2008-08).

Objective: the mean over rows x of 1/2 |x - a D|^2, |d_k| = 1, a with few nonzeros. With E_k what the other atoms leave
of the rows that use atom k, the exact step takes the leading singular vector of E_k; the approximate one a step of the
power method, d_k <- E_k'a_k / |E_k'a_k|. Since E_k'a_k = B_k - A_k D + A_kk d_k, that is the sweep of `learning_atoms`
on the sphere: A and B are all that is needed of the rows, wherever they are, and codes are found anew in the next turn.

Now and then atoms that do not pay give way (`learning_replacement`), and those that stand for two are split
(`learning_split`): of planted atoms a median of 95 % was found without splits, all with them.

A state has the objective of the codes as they were found, and of the atoms as they have been improved since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace as with_

import numpy as np

from princomp.data import Centered, Rows, statistics
from princomp.result import State, Value
from princomp.solvers.ksvd_sweeps import sweep
from princomp.solvers.learning_atoms import Atoms, improved, own_weights
from princomp.solvers.learning_coded import WORST, Task
from princomp.solvers.learning_replacement import replaced
from princomp.solvers.learning_split import split
from princomp.solvers.learning_state import as_value, residual, together
from princomp.solvers.learning_statistics import code_all

# Atoms are replaced in the first turns of every ten, and settle in the others; after the fortieth turn no more.
PERIOD, REPLACES, LAST = 10, 7, 40
IN_MEMORY = 'Use update="approximate", which needs sums over rows alone.'
HARDLY = 0.4  # see `learning_replacement`: planted atoms, of which a median of 95 % was found with 0.1, all with 0.4


def ksvd(value: Value, rows: Rows, task: Task, atoms: Atoms, *, replace: bool, exact: bool = False) -> Iterator[State]:
    """Yield states after each turn; ``value`` holds D, or all of an earlier state."""
    D, turn, count = value["D"], int(value.get("iteration", 0)), int(value.get("replaced", 0))
    X = statistics.whole(Centered(rows), IN_MEMORY) if exact else None
    while True:
        coded = code_all(rows, with_(task, D=D, worst=WORST if replace else 0, keep=exact))
        slope = residual(D, coded, atoms)
        if X is None:
            D = improved(D, coded.A / coded.count, coded.B / coded.count, atoms)
            objective = coded.objective_of(D) + atoms.value(D)
        else:
            D, codes = sweep(X, together(coded.codes), D, exact=True)
            objective = 0.5 * float(np.square(X - codes @ D).sum()) / len(X)
        if replace and turn % PERIOD < REPLACES and turn < LAST:
            D, which = replaced(D, own_weights(coded.A), coded.worst, atoms, HARDLY)
            if turn % PERIOD == REPLACES - 1:
                D, parted = split(D, rows, task, atoms)
                which = np.append(which, parted)
            count += len(which)
            slope = np.inf if len(which) else slope
        turn += 1
        sums = as_value(with_(coded, codes=()))
        value = {"D": D, **sums, "iteration": np.array(turn), "replaced": np.array(count)}
        yield State(value, objective, slope, turn)
