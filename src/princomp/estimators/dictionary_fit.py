"""What a fit of `DictionaryLearning` does before, around and after a solver: start, limits, measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates import coding_gaps
from princomp.coders.base import Coder
from princomp.coders.blocks import code_block
from princomp.coders.lasso import Lasso
from princomp.data import Rows, statistics
from princomp.estimators.checks import check_values
from princomp.progress import Tell
from princomp.result import Result, State, Status, Value, run, warn
from princomp.solvers.learning_atoms import Atoms
from princomp.solvers.learning_batch import batch
from princomp.solvers.learning_ksvd import ksvd
from princomp.solvers.learning_online import online
from princomp.solvers.learning_rows import Batches
from princomp.solvers.learning_start import start
from princomp.solvers.learning_state import residual, together
from princomp.solvers.learning_statistics import Coded, Task, code_all
from princomp.solvers.learning_statistics import code_block as code_and_sum
from princomp.solvers.signs import signs

KEPT = ("D", "A", "B", "count", "squares", "errors", "penalties", "used", "step", "replaced")  # of a solver's value
KEPT_TOO = ("worst_", "epoch_")
ROWS_SEEN = 200_000  # by "online", as a rule
ITERATIONS = {"batch": 200, "ksvd": 50}
EPOCHS = (2, 30)
GREEDY_ON_WORKERS = (
    'method="batch" with a greedy coder keeps every row\'s code, which rows that live on workers have no place for. Use '
    'method="ksvd" or "online", or load the data into memory.'
)


@dataclass(frozen=True)
class Question:
    """What is asked of a fit."""

    K: int
    method: str
    coder: Coder
    atoms: Atoms
    D: Array | None  # atoms to begin with
    batch_size: int
    forgetting: float | None
    exact: bool
    replace: bool
    tol: float
    max_iter: int | None
    max_seconds: float | None
    names: Any = None

    def iterations(self, n: int) -> int:
        """Return the bound on passes over n rows."""
        if self.max_iter is not None:
            return int(self.max_iter)
        return ITERATIONS.get(self.method) or int(np.clip(-(-ROWS_SEEN // n), *EPOCHS))


@dataclass(frozen=True)
class Learnt:
    """What was found, and the sums over rows that were coded afterwards."""

    result: Result
    coded: Coded


def learn(rows: Rows, asked: Question, drive: Callable[..., Result], tell: Tell, rng: np.random.Generator) -> Learnt:
    """Return what was found, measured on the data."""
    rows = statistics.here(rows)
    n = rows.shape[0]
    if asked.method == "batch" and not asked.coder.optimal and not rows.local:
        raise ValueError(GREEDY_ON_WORKERS)
    D = first_atoms(rows, asked, rng)
    seed = int(rng.integers(2**31))
    most = asked.iterations(n)
    begin = time.monotonic()
    ends = partial(_tell, tell, begin, asked.max_seconds)
    result = drive(
        lambda value: solver(value, rows, asked, int(value["seed"])),
        {"D": D, "seed": np.array(seed)},
        max_iter=most,
        callback=ends,
        warns=False,
    )
    late = asked.max_seconds is not None and time.monotonic() - begin >= asked.max_seconds
    found = concluded(rows, asked, result, most, late=late)
    return found if asked.D is not None else replace(found, result=with_signs(found.result, asked))


def go_on(rows: Rows, asked: Question, before: Result | None, tell: Tell, rng: np.random.Generator) -> Learnt:
    """Return what was found after these rows, too, that is, after their mini-batches in their order."""
    rows = statistics.here(rows)
    value = dict(before.value) if before is not None else {"D": first_atoms(rows, asked, rng)}
    batches = Batches(rows, asked.batch_size, None)
    how = {"forgetting": asked.forgetting, "replace": asked.replace}
    steps = partial(online, batches=batches, coder=asked.coder, atoms=asked.atoms, **how)
    result = run(steps, value, tol=0.0, max_iter=1, callback=tell, warns=False)
    result = replace(result, certificate=replace(result.certificate, tol=asked.tol))
    found = concluded(rows, asked, result, 1, late=False)
    calls = 1 + (0 if before is None else before.n_iter)
    return replace(found, result=replace(found.result, n_iter=calls).after(before))


def solver(value: Value, rows: Rows, asked: Question, seed: int) -> Iterator[State]:
    """Return the states of the method that is asked for; each holds the seed, too."""
    coder, atoms = asked.coder, asked.atoms
    if asked.method == "batch":
        states = batch(value, rows, coder, atoms, replace=asked.replace)
    elif asked.method == "ksvd":
        states = ksvd(value, rows, coder, atoms, replace=asked.replace)
    else:
        batches = Batches(rows, asked.batch_size, seed)
        states = online(value, batches, coder, atoms, forgetting=asked.forgetting, replace=asked.replace)
    for state in states:
        yield replace(state, value={**state.value, "seed": np.array(seed)})


def _tell(tell: Tell, begin: float, seconds: float | None, state: State) -> bool:
    """Tell everyone, and ask to stop if time is over."""
    stops = tell(state)
    return stops or (seconds is not None and time.monotonic() - begin >= seconds)


def first_atoms(rows: Rows, asked: Question, rng: np.random.Generator) -> Array:
    """Return the atoms to begin with: those given, brought to where they may be, or rows."""
    if asked.D is None:
        return start(rows, asked.K, asked.atoms, rng)
    return asked.atoms.allowed(asked.D)


# After the solver


def concluded(rows: Rows, asked: Question, result: Result, most: int, *, late: bool) -> Learnt:
    """Return the result as measured on the data, with what its end means for this method."""
    D = result.value["D"]
    coded, gap = measure(rows, asked, D)
    objective = coded.objective + asked.atoms.value(D)
    if not (np.isfinite(objective) and np.isfinite(D).all()):
        check_values(rows, asked.names, missing=True)
        raise ValueError("Squares of X are out of the range of float64. Divide X, alpha and error by a constant.")
    slope = residual(D, coded, asked.atoms)
    details = {"objective": objective} | ({} if gap is None else {"coding gap": gap})
    certificate = replace(result.certificate, residual=slope, details=details)
    status = _status(result.status, asked, slope, certificate.holds, most, late=late)
    if asked.method == "batch" and not status and not late:
        warn(status, asked.tol)
    value = {name: array for name, array in result.value.items() if name in KEPT or name.startswith(KEPT_TOO)}
    result = replace(result, value=value, objective=objective, certificate=certificate, status=status)
    return Learnt(result, coded)


def _status(before: Status, asked: Question, slope: float, holds: bool, most: int, *, late: bool) -> Status:
    size = f"the relative projected gradient of the atoms is {slope:.1e}"
    if holds and before.code != "stopped":
        return Status("converged", f"Converged: {size}, within tol {asked.tol:.0e}.")
    if late:
        return Status("stopped", f"Ended after max_seconds={asked.max_seconds:g}, as asked: {size}.")
    if before.code == "iteration limit" and asked.method != "batch":
        passes = "pass over the rows" if most == 1 else f"{most} passes over the rows"
        return Status("iteration limit", f"Ended after {passes}, as {asked.method} learning does: {size}.")
    if before.code == "converged":
        return Status(
            "no progress",
            f"No step leads further: {size}, above tol {asked.tol:.0e}, though the solver's own is not. Accept this "
            "accuracy with a larger tol.",
        )
    return before


def measure(rows: Rows, asked: Question, D: Array) -> tuple[Coded, float | None]:
    """Code all rows once more; return the sums, and the largest duality gap of a code where there is one."""
    task = Task(D, asked.coder)
    if not isinstance(asked.coder, Lasso):
        return code_all(rows, task), None
    found, gap = rows.reduce(_measured, replace(task, keep=True), combine=_merge_measured)
    return found, float(gap)


def _measured(block: Any, rows: slice, task: Task) -> tuple[Coded, float]:
    coded = code_and_sum(block, rows, task)
    coder: Any = task.coder
    how = {"alpha": coder.alpha, "l2": coder.l2, "weights": coder.weights, "nonnegative": coder.nonnegative}
    gaps = coding_gaps(block, task.D, together(coded.codes), **how)
    return replace(coded, codes=()), float(gaps.max(initial=0.0))


def _merge_measured(total: Any, part: Any) -> Any:
    return total[0].and_of(part[0]), max(total[1], part[1])


def mean_objective(rows: Rows, asked: Question, D: Array) -> float:
    """Return the mean over rows of the objective, and what a penalty of atoms adds."""
    objective = code_all(rows, Task(D, asked.coder)).objective
    if not np.isfinite(objective):
        check_values(rows, asked.names, missing=True)
    return objective + asked.atoms.value(D)


def with_signs(result: Result, asked: Question) -> Result:
    """Return the same with the sign of each atom such that its largest entry is positive, where both are as good."""
    if not asked.atoms.symmetric or getattr(asked.coder, "nonnegative", True):
        return result
    D = result.value["D"]
    sign = signs(D.T)
    value = dict(result.value) | {"D": sign[:, None] * D, "B": sign[:, None] * result.value["B"]}
    value["A"] = sign[:, None] * result.value["A"] * sign
    return replace(result, value=value)


# Codes


def coded_rows(rows: Rows, D: Array, coder: Coder, *, sparse: bool, names: Any) -> Any:
    """Return the codes of rows, dense or CSR, in their own kind."""
    gram = (D @ D.T)[None]
    how = (D, gram, coder, None, rows.dtype)
    outputs = {"width": len(D), "dtype": rows.dtype}
    return rows.map(code_block, *how, **outputs, sparse=True) if sparse else rows.map(_dense_codes, *how, **outputs)


def _dense_codes(block: Any, rows: slice, *how: Any) -> Array:
    return np.asarray(code_block(block, rows, *how).toarray())
