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
from princomp.data import Rows, budget, statistics
from princomp.estimators.checks import check_values
from princomp.estimators.errors_unit import unit_of_errors
from princomp.losses import Squared, as_loss
from princomp.progress import Tell
from princomp.result import Result, State, Status, Value, run, warn
from princomp.solvers.learning_atoms import Atoms
from princomp.solvers.learning_batch import batch
from princomp.solvers.learning_coded import Coded, Task
from princomp.solvers.learning_ksvd import ksvd
from princomp.solvers.learning_online import online
from princomp.solvers.learning_rows import Batches
from princomp.solvers.learning_start import start
from princomp.solvers.learning_state import residual, together
from princomp.solvers.learning_statistics import code_all
from princomp.solvers.learning_statistics import code_block as code_and_sum
from princomp.solvers.signs import signs

KEPT = (
    "D",
    "A",
    "B",
    "count",
    "squares",
    "errors",
    "penalties",
    "offset",
    "used",
    "step",
    "replaced",
    "seen",
    "unit",
    "pull",
)  # of a solver's value
KEPT_TOO = ("worst_", "epoch_")
ROWS_SEEN = 200_000  # by "online", as a rule
ITERATIONS = {"batch": 200, "ksvd": 50}
EPOCHS = (2, 30)
MONOTONE = 1e-10  # gap of codes, relative to 1/2 |x|^2, for which the objective does not rise but by rounding
COPIES = 5  # of the statistics, at a time
GREEDY_ON_WORKERS = (
    'method="batch" with a greedy coder, or a loss, keeps the code of every row, for which workers have no place. Use '
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
    loss: Any = "l2"
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
    missing = survey(rows, asked.names)
    D = first_atoms(rows, asked, rng)
    first = {
        "D": D,
        "seed": np.array(int(rng.integers(2**31))),
        "unit": np.array(unit_of_errors(rows, asked.loss, D, asked.coder, asked.atoms)),
    }
    posed(rows, asked, first, missing)  # complains before there is anything to wait for
    most = asked.iterations(rows.shape[0])
    begin = time.monotonic()
    result = drive(
        lambda value: solver(value, rows, asked, posed(rows, asked, value, missing)),
        first,
        max_iter=most,
        callback=partial(_tell, tell, begin, asked.max_seconds),
        warns=False,
    )
    late = _late(begin, asked.max_seconds)
    found = concluded(rows, asked, posed(rows, asked, result.value, missing), result, most, late=late)
    return found if asked.D is not None else replace(found, result=with_signs(found.result, asked))


def go_on(rows: Rows, asked: Question, before: Result | None, tell: Tell, rng: np.random.Generator) -> Learnt:
    """Return what was found after these rows, too, that is, after their mini-batches in their order."""
    rows = statistics.here(rows)
    missing = survey(rows, asked.names)
    if before is None:
        D = first_atoms(rows, asked, rng)
        value: Value = {"D": D, "unit": np.array(unit_of_errors(rows, asked.loss, D, asked.coder, asked.atoms))}
    else:
        value = before.value
        if len(value["D"]) != asked.K:
            raise ValueError(
                f"The model has {len(value['D'])} atoms, but n_components={asked.K}. partial_fit goes on with those "
                "that are there; fit begins anew."
            )
        missing = missing or value["A"].ndim == 3
    task = posed(rows, asked, value, missing)
    if before is not None and task.by_cell and value["A"].ndim == 2:  # rows so far lacked nothing
        value = {**value, "A": np.repeat(value["A"][:, :, None], rows.shape[1], axis=2)}
    begin = time.monotonic()
    result = run(
        partial(solver, rows=rows, asked=asked, task=task),
        value,
        tol=0.0,
        max_iter=1,
        deadline=tell.deadline,
        callback=partial(_tell, tell, begin, asked.max_seconds),
        warns=False,
    )
    result = replace(result, certificate=replace(result.certificate, tol=asked.tol))
    found = concluded(rows, asked, task, result, 1, late=_late(begin, asked.max_seconds))
    calls = 1 + (0 if before is None else before.n_iter)
    return replace(found, result=replace(found.result, n_iter=calls).after(before))


def solver(value: Value, rows: Rows, asked: Question, task: Task) -> Iterator[State]:
    """Return the states of the method that is asked for; each holds what was drawn and measured at the start, too."""
    atoms = asked.atoms
    kept = {name: value[name] for name in ("seed", "unit") if name in value}
    if asked.method == "batch":
        if isinstance(task.coder, Lasso):  # a new code may be worse than the old one by its gap, and must not
            task = replace(task, coder=replace(task.coder, tol=min(task.coder.tol, MONOTONE)))
        states = batch(value, rows, task, atoms, replace=asked.replace)
    elif asked.method == "ksvd":
        states = ksvd(value, rows, task, atoms, replace=asked.replace, exact=asked.exact)
    else:
        batches = Batches(rows, asked.batch_size, int(value["seed"]) if "seed" in value else None)
        states = online(value, batches, task, atoms, forgetting=asked.forgetting, replace=asked.replace)
    for state in states:
        yield replace(state, value={**state.value, **kept})


def posed(rows: Rows, asked: Question, value: Value, missing: bool) -> Task:
    """Return how rows are coded; complain about what cannot be done with them."""
    loss = as_loss(asked.loss, float(value["unit"]))
    by_cell = missing or not isinstance(loss, Squared)
    K, p = value["D"].shape
    plain = not by_cell and asked.atoms == Atoms("sphere") and not getattr(asked.coder, "nonnegative", False)
    if asked.method == "ksvd" and asked.exact and not plain:
        raise ValueError(
            'update="exact" is for complete data, loss="l2", and atoms and codes of either sign. Use '
            'update="approximate".'
        )
    if by_cell:
        budget.require(
            COPIES * 8.0 * p * K * K,
            f"Learning {K} atoms of {p} columns where cells are missing, or with a loss,",
            "Take fewer atoms, or fill missing cells first.",
        )
    task = Task(value["D"], asked.coder, by_cell=by_cell, loss=None if isinstance(loss, Squared) else loss)
    if asked.method == "batch" and not task.optimal and not rows.local:
        raise ValueError(GREEDY_ON_WORKERS)
    return task


def survey(rows: Rows, names: Any) -> bool:
    """Tell whether cells are missing; complain about infinite ones, and about squares that are out of range."""
    squares = float(rows.reduce(_squares))
    if np.isfinite(squares):
        return False
    check_values(rows, names, missing=True)
    squares, missing = rows.reduce(_squares_of_what_is_there)
    if missing == np.prod(rows.shape, dtype=np.float64):
        raise ValueError("X has no cell that is not missing: there is nothing to learn from.")
    if not np.isfinite(squares):
        raise ValueError("Squares of X are out of the range of float64. Divide X, alpha and error by a constant.")
    return bool(missing)


def _squares(block: Any, rows: slice) -> Array:
    cells = block if isinstance(block, np.ndarray) else block.data[None]
    return np.asarray(np.einsum("ij,ij->", cells, cells, dtype=np.float64, casting="unsafe"))


def _squares_of_what_is_there(block: Any, rows: slice) -> tuple[Array, Array]:
    cells = np.asarray(block if isinstance(block, np.ndarray) else block.data, dtype=np.float64)
    with np.errstate(over="ignore"):
        return np.asarray(np.nansum(np.square(cells))), np.asarray(np.isnan(cells).sum())


def _tell(tell: Tell, begin: float, seconds: float | None, state: State) -> bool:
    """Tell everyone, and ask to stop if time is over."""
    stops = tell(state)
    return stops or _late(begin, seconds)


def _late(begin: float, seconds: float | None) -> bool:
    return seconds is not None and time.monotonic() - begin >= seconds


def first_atoms(rows: Rows, asked: Question, rng: np.random.Generator) -> Array:
    """Return the atoms to begin with: those given, brought to where they may be, or rows."""
    if asked.D is None:
        tame = not isinstance(as_loss(asked.loss), Squared)
        return start(rows, asked.K, asked.atoms, rng, tame=tame)
    return asked.atoms.allowed(asked.D)


# After the solver


def concluded(rows: Rows, asked: Question, task: Task, result: Result, most: int, *, late: bool) -> Learnt:
    """Return the result as measured on the data, with what its end means for this method."""
    D = result.value["D"]
    coded, gap = measure(rows, replace(task, D=D))
    objective = coded.objective + asked.atoms.value(D)
    slope = residual(D, coded, asked.atoms)
    if gap is not None and not gap <= task.coder.tol:  # type: ignore[attr-defined]
        slope = np.inf  # with codes that are not what they should be it is the gradient of nothing
    details = {"objective": objective} | ({} if gap is None else {"coding gap": gap})
    certificate = replace(result.certificate, residual=slope, details=details)
    status = _status(result.status, asked, slope, certificate.holds, most, late=late)
    if (asked.method == "batch" or status.code == "time limit") and not status and not late:
        warn(status, asked.tol)
    value = {name: array for name, array in result.value.items() if name in KEPT or name.startswith(KEPT_TOO)}
    result = replace(result, value=value, objective=objective, certificate=certificate, status=status)
    return Learnt(result, coded)


def _status(before: Status, asked: Question, slope: float, holds: bool, most: int, *, late: bool) -> Status:
    size = f"the relative projected gradient of the atoms is {slope:.1e}"
    if holds and not before.cut_short:
        return Status("converged", f"Converged: {size}, within tol {asked.tol:.0e}.")
    if late:
        return Status("stopped", f"Ended after max_seconds={asked.max_seconds:g}, as asked: {size}.")
    if before.code == "iteration limit" and asked.method != "batch":
        passes = "a pass over the rows" if most == 1 else f"{most} passes over the rows"
        return Status("iteration limit", f"Ended after {passes}, as {asked.method} learning does: {size}.")
    if before.code == "converged":
        return Status(
            "no progress",
            f"No step leads further: {size}, above tol {asked.tol:.0e}, though the solver's own is not. Accept this "
            "accuracy with a larger tol.",
        )
    return before


def measure(rows: Rows, task: Task) -> tuple[Coded, float | None]:
    """Code all rows once more; return the sums, and the largest duality gap of a code where there is one."""
    if task.by_cell or not isinstance(task.coder, Lasso):
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


def mean_objective(rows: Rows, asked: Question, D: Array, unit: float) -> float:
    """Return the mean over rows of the objective, and what a penalty of atoms adds."""
    missing = survey(rows, asked.names)
    task = posed(rows, replace(asked, method="online", exact=False), {"D": D, "unit": np.array(unit)}, missing)
    return code_all(rows, task).objective + asked.atoms.value(D)


def with_signs(result: Result, asked: Question) -> Result:
    """Return the same with the sign of each atom such that its largest entry is positive, where both are as good."""
    if not asked.atoms.symmetric or getattr(asked.coder, "nonnegative", True):
        return result
    D = result.value["D"]
    sign = signs(D.T)
    value = dict(result.value) | {"D": sign[:, None] * D, "B": sign[:, None] * result.value["B"]}
    A = result.value["A"]
    value["A"] = A * np.outer(sign, sign).reshape(len(D), len(D), *(1,) * (A.ndim - 2))
    return replace(result, value=value)


# Codes


def coded_rows(rows: Rows, D: Array, coder: Coder, loss: Any, *, sparse: bool) -> Any:
    """Return the codes of rows, dense or CSR, in their own kind."""
    how = (D, (D @ D.T)[None], coder, None, rows.dtype, None if isinstance(loss, Squared) else loss)
    outputs: dict[str, Any] = {"width": len(D), "dtype": rows.dtype}
    return rows.map(code_block, *how, **outputs, sparse=True) if sparse else rows.map(_dense_codes, *how, **outputs)


def _dense_codes(block: Any, rows: slice, *how: Any) -> Array:
    return np.asarray(code_block(block, rows, *how).toarray())
