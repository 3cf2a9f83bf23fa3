"""Online dictionary learning (Mairal, Bach, Ponce & Sapiro, JMLR 2010): mini-batches, statistics that forget, atoms.

Objective: the mean over rows x of 1/2 |x - a D|^2 + h(a), plus sum_k g(d_k), as far as rows have been seen. Each
mini-batch is coded with the atoms as they are; its A and B are added to those before, which count for less by a factor
beta; atoms are swept over once. With all rows in one mini-batch a first step is that of `learning_batch`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.dictionary_learning import relative_gradient
from princomp.result import State, Value
from princomp.solvers.learning_atoms import Atoms, improved, own_weights, slopes
from princomp.solvers.learning_coded import WORST, Coded, Task, Worst
from princomp.solvers.learning_replacement import replaced
from princomp.solvers.learning_rows import Batches
from princomp.solvers.learning_state import as_coded, as_value

STEPS_PER_STATE = 16  # looking at a state costs about as much as a sweep over atoms
MEMORY = 0.3  # of 0.1 to 2: best for 1500 planted signals, and for 20000 patches of images, 100 and 256 atoms
ROWS_KEPT, SHARE_KEPT = 30, 0.05
REPLACE = range(1, 25)  # epochs after which atoms may be replaced; later ones settle
WINDOW = 20  # rows for each atom, of a stream


def beta(step: int, batches: Batches, seen: float, K: int, forgetting: float | None) -> float:
    """Return by what the past is multiplied before the next mini-batch is added.

    By default the smaller of two. One is that of the paper's algorithm 3: the t-th mini-batch counts for t at first,
    and later the past fades slowly. The other is exp(-rows of a mini-batch / memory). Where rows come again the memory
    is `MEMORY` epochs; in a stream it is `ROWS_KEPT` rows for each atom, and a share of what has been ``seen``.
    """
    if forgetting is not None:
        return 1.0 - forgetting
    size = batches.asked
    theta = (step + 1) * size if step < size - 1 else size**2 + step + 1 - size
    n = batches.rows.shape[0]
    memory = ROWS_KEPT * K + SHARE_KEPT * seen if batches.seed is None else MEMORY * n
    return min((theta + 1 - size) / (theta + 1), float(np.exp(-n / batches.steps / memory)))


def online(
    value: Value, batches: Batches, task: Task, atoms: Atoms, *, forgetting: float | None, replace: bool
) -> Iterator[State]:
    """Yield states every few steps, and at the end of each epoch, which is an iteration; ``value`` holds D, or more.

    In a stream, batches without a seed, rows do not come again: it ends when they have been gone through, and atoms may
    be replaced whenever as many rows have been seen as `WINDOW` says.
    """
    D, count = value["D"], int(value.get("replaced", 0))
    K, p = D.shape
    past = as_coded(value) if "A" in value else Coded.nothing(K, p, by_cell=task.by_cell)
    epoch = Epoch.read(value) if "epoch_slopes" in value else Epoch.nothing(D)
    # What another method leaves has sums, but no steps: they count for as many as their rows would have made.
    step = int(value.get("step", -(-past.count // batches.asked)))
    stream, seen = batches.seed is None, float(value.get("seen", past.count))
    first = step if stream else 0
    while not (stream and step == first + batches.steps):
        new = batches.coded(step - first, with_(task, D=D, worst=WORST if replace else 0))
        epoch = epoch.and_of(D, new)
        fade = beta(step, batches, seen, K, forgetting)
        seen += new.count
        past = past.times(fade).and_of(with_(new, worst=Worst.nothing(p)))
        D = improved(D, past.A / past.count, past.B / past.count, atoms)
        step += 1
        ended = (step - first) % batches.steps == 0
        residual = epoch.residual(atoms) if ended else np.inf
        if epoch.count >= WINDOW * K if stream else ended:
            if replace and (stream or step // batches.steps in REPLACE):
                D, which = replaced(D, epoch.weights, epoch.worst, atoms)
                past, count = forgotten(past, which), count + len(which)
                residual = np.inf if len(which) else residual
            epoch = Epoch.nothing(D)
        if ended or step % STEPS_PER_STATE == 0:
            value = {"D": D, **as_value(past), **epoch.value(), "step": np.array(step), "replaced": np.array(count)}
            value["seen"] = np.array(seen)
            objective = past.objective_of(D) + atoms.value(D)
            yield State(value, objective, residual, (step - first) // batches.steps)


def forgotten(past: Coded, which: Array) -> Coded:
    """Return sums from which what some atoms had is taken away: those in their place begin with nothing."""
    if not len(which):
        return past
    A, B = past.A.copy(), past.B.copy()
    A[which], A[:, which], B[which] = 0.0, 0.0, 0.0
    return with_(past, A=A, B=B)


@dataclass(frozen=True)
class Epoch:
    """What an epoch has shown so far: the gradient at the atoms as they were, uses, and the rows coded worst."""

    count: float
    slopes: Array  # (K, p) sum over mini-batches of A D - B
    B: Array  # (K, p), or what takes its place where there is a loss
    weights: Array  # (K,) A_kk
    used: Array  # (K,)
    worst: Worst
    D: Array  # (K, p) the atoms that the last mini-batch was coded with

    @classmethod
    def nothing(cls, D: Array) -> Epoch:
        """Return what is known before it begins."""
        K, p = D.shape
        return cls(0.0, np.zeros((K, p)), np.zeros((K, p)), np.zeros(K), np.zeros(K), Worst.nothing(p), D)

    def and_of(self, D: Array, coded: Coded) -> Epoch:
        """Return what is known after a mini-batch that was coded with D."""
        return Epoch(
            self.count + coded.count,
            self.slopes + slopes(D, coded.A, coded.B),
            self.B + coded.reference,
            self.weights + own_weights(coded.A),
            self.used + coded.used,
            self.worst.and_of(coded.worst, WORST),
            D,
        )

    def residual(self, atoms: Atoms) -> float:
        """Return the relative projected gradient, on average over the epoch: noise of few rows evens out."""
        n = self.count
        return relative_gradient(self.D, self.slopes / n, self.weights / n, self.B / n, atoms.prox_each)

    def value(self) -> dict[str, Array]:
        """Return it as arrays by name."""
        parts = {name: np.array(getattr(self, name)) for name in EPOCH}
        worst = {f"worst_{name}": getattr(self.worst, name) for name in ("errors", "numbers", "rows")}
        return {f"epoch_{name}": array for name, array in (parts | worst).items()}

    @classmethod
    def read(cls, value: Value) -> Epoch:
        """Return what `value` made arrays of."""
        worst = Worst(*(value[f"epoch_worst_{name}"] for name in ("errors", "numbers", "rows")))
        parts: dict[str, Any] = {name: value[f"epoch_{name}"] for name in EPOCH}
        return cls(**parts | {"count": float(parts["count"])}, worst=worst)


EPOCH = ("count", "slopes", "B", "weights", "used", "D")
