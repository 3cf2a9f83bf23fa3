"""`method="online"`: components of rows that come as a stream, some of whose cells are bad."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from princomp._typing import Array
from princomp._warn import warn
from princomp.data import Centered, budget, statistics
from princomp.estimators.robust.problem import MOST, RobustFound, RobustProblem
from princomp.result import Certificate, Result, State, Status, Value, measured
from princomp.solvers.robust import online
from princomp.solvers.robust.online import Model, Past, Step, Sums
from princomp.solvers.signs import signs

CHUNK_BYTES = 2**25  # of rows that are read at a time, dense in float64
COPIES = 6  # of the sums that are kept by column, at a time
NONE = 10.0  # times the scale of rounding: components whose standard deviation is below have none
WILD = 1e-9  # of cells: fewer that do not count are none
MEANING = "one more pass over the rows moves components, centre, scales and variances by no more than that"
FOLLOWED = (
    "each row was looked at once, as it came, and one more look at those of the last call moves the answer so far"
)


def solve(problem: RobustProblem) -> RobustFound:
    """Return what a pass through all rows finds, as they come, and further passes make of it."""
    k = _count(problem, min(*problem.rows.shape))
    problem = replace(problem, rows=statistics.here(problem.rows))
    result = problem.drive(partial(_states, problem=problem), _start(problem, k), scope="local")
    value, eps = result.value, _eps(problem)
    model = online.as_model(value, "answer_" if "answer_V" in value else "")
    last, new = _measured(problem, model)
    result = measured(result, last.residual, last.details() | {"meaning": MEANING})
    return _told(_found(model, Past.of(new), new, result, problem, eps), new)


def go_on(problem: RobustProblem, before: Result | None) -> RobustFound:
    """Return what was found after these rows, too."""
    k, p, eps = _count(problem, problem.rows.width), problem.rows.width, _eps(problem)
    value: Value = {} if before is None else before.value
    if before is None:
        value = {"held": np.empty((0, p)), "unit": np.array(problem.unit)}
    elif value["V"].shape[1] != k:
        raise ValueError(
            f"The model has {value['V'].shape[1]} components, but n_components={k}. partial_fit goes on with those "
            "that are there; fit begins anew."
        )
    problem = replace(problem, unit=float(value["unit"]))
    held, loss, first = value["held"], 0.0, online.first_rows(p, k)
    if begun := "A" in value:
        model, past = online.as_model(value), online.as_past(value)
    for X in _chunks(problem, 0):
        if not begun or len(held):  # the start is made of more rows than there were
            rows = np.concatenate([held, X])
            model, past = online.start(rows[:first], k, eps)
            begun, held, X = True, rows if len(rows) < first else rows[:0], rows[first:]
        model, past, loss = online.follow(model, past, X, int(problem.parameters["batch_size"]), eps)
    last, new = _measured(problem, model)
    calls = 1 + (0 if before is None else before.n_iter)
    status = Status("iteration limit", f"Followed {int(past.seen)} rows, in {calls} calls of partial_fit or fit.")
    certificate = Certificate(last.residual, problem.tol, "local", details=last.details() | {"meaning": FOLLOWED})
    result = Result({}, loss, certificate, status, calls)
    return _told(_found(model, past, new, result, problem, eps, held), new)


def _count(problem: RobustProblem, most: int) -> int:
    k = min(MOST, most) if problem.asked is None else int(problem.asked)
    p = problem.rows.width
    size = COPIES * 8.0 * p * (k + 1) ** 2
    budget.require(size, f"Online robust PCA of {p} columns with {k} components", "Take fewer components.")
    return k


def _eps(problem: RobustProblem) -> float:
    return float(np.finfo(problem.rows.dtype).eps)


def _less(problem: RobustProblem, mean: Array) -> Centered:
    return problem.moved(mean / problem.unit)


def _start(problem: RobustProblem, k: int) -> dict[str, Array]:
    n, p = problem.rows.shape
    m = min(n, online.first_rows(p, k))
    some = statistics.take(problem.moved(None), np.sort(problem.rng.choice(n, m, replace=False)))
    model, past = online.start(some, k, _eps(problem))
    return {**online.as_value(model), **past.value(), "position": np.array(0 if n > m else n)}


def _states(value: Value, problem: RobustProblem) -> Iterator[State]:
    """Yield states of a pass through the rows, in mini-batches as they come, then of passes over all of them."""
    n, eps, size = problem.rows.shape[0], _eps(problem), int(problem.parameters["batch_size"])
    position = int(value.get("position", n))
    if position < n and not problem.rows.local:  # on workers a pass is dear: all rows are one mini-batch
        new = online.sums_of(_less(problem, value["mean"]), online.as_model(value))
        found = online.step(online.as_model(value), Past.nothing(*value["V"].shape), new, eps)
        value = {**online.as_value(found.model), "iteration": np.array(1)}
        yield State(value, float(new.loss) / n, np.inf, 1)
    elif position < n:
        model, past = online.as_model(value), online.as_past(value)
        for X in _chunks(problem, position):
            model, past, loss = online.follow(model, past, X, size, eps)
            position += len(X)
            value = {**online.as_value(model), **past.value(), "position": np.array(position)}
            value |= {"iteration": np.array(int(position == n))}
            yield State(value, loss, np.inf, int(position == n))
    yield from online.passes(value, partial(_less, problem), eps)


def _chunks(problem: RobustProblem, position: int) -> Iterator[Array]:
    """Yield rows (m, p) from one on, as they come: whole mini-batches, but for the last ones."""
    n, p = problem.rows.shape
    size = int(problem.parameters["batch_size"])
    size *= max(CHUNK_BYTES // (8 * p * size), 1)
    for begin in range(position, n, size):
        yield statistics.take(problem.moved(None), np.arange(begin, min(begin + size, n)))


def _measured(problem: RobustProblem, model: Model) -> tuple[Step, Sums]:
    """Return where a pass over all rows leads, and what they add up to."""
    new = online.sums_of(_less(problem, model.mean), model)
    return online.step(model, Past.nothing(*model.V.shape), new, _eps(problem)), new


def _told(found: RobustFound, new: Sums) -> RobustFound:
    """Return what was found, after a warning where nothing of the data is in it, but all that varies is called bad."""
    counted = new.A[:, -1, -1]
    if not found.variances.any() and counted.sum() < (1 - WILD) * new.cells.sum():
        warn(
            'Most cells of each column are the same, and by method="online" all others are wild, so that no component '
            'is left. Of sparse data take method="spherical", or "cellwise" where they fit into memory.'
        )
    return found


def _found(
    model: Model, past: Past, new: Sums, result: Result, problem: RobustProblem, eps: float, held: Array | None = None
) -> RobustFound:
    model, past = online.by_axes(model, past)
    turn = signs(model.V)
    model, past = online.turned(model, past, np.diag(turn))
    floor = model.floor(eps)
    noise = np.where(model.noise > floor, model.noise, 0.0)
    rest = float(np.mean(noise**2))
    signal = np.maximum(np.diag(model.scatter), 0.0)
    least = np.maximum((model.V**2).T @ (NONE * floor) ** 2, online.least_size(new) ** 2)
    some = signal + rest > least
    signal, variances = np.where(some, signal, 0.0), np.where(some, signal + rest, 0.0)
    held = np.empty((0, len(noise))) if held is None else held
    kept = {"held": held, "unit": np.array(problem.unit)}
    return RobustFound(
        V=model.V,
        variances=variances,
        total=float(signal.sum() + (noise**2).sum()),
        mean=model.mean,
        scale=None,
        result=replace(result, value={**online.as_value(model), **past.value(), **kept}),
        rank=int((signal > _most_by_chance(past, rest) + online.LEAST * signal.sum()).sum()),
        noise=noise,
        seen=int(past.seen),
    )


def _most_by_chance(past: Past, rest: float) -> float:
    """Return what variance above that of the noise so many rows of noise alone show (Marchenko & Pastur, 1967)."""
    rows = max(float(past.C[-1, -1]), 1.0)
    return rest * ((1 + np.sqrt(len(past.A) / rows)) ** 2 - 1)
