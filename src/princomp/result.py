"""`State`, `Result`, `Status`, `Certificate`, and `run`: the only loop that stops, records, calls back, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np

from princomp import _warn
from princomp._kinds import ERROR, VARIANCE, Count, Kind, Number, Series
from princomp._typing import Array
from princomp.checkpoint import Checkpoint

KEPT_BYTES = 2**23  # that a history may take

Value = Mapping[str, Array]


@dataclass(frozen=True)
class State:
    """Where an iterative solver stands.

    ``value`` holds *everything* the next step reads: ``solver(state.value)`` continues exactly after this state.
    ``objective`` and ``residual`` are those of this value, not of the one before.
    """

    value: Value
    objective: float
    residual: float
    iteration: int


@dataclass(frozen=True)
class Status:
    """Why a fit ended: a code for programs, a sentence for people.

    "stopped" is what the callback asked for, "no progress" what rounding is to blame for, as a rule: no step leads
    further. (In older model files "stopped" may be either.)
    """

    code: Literal["exact", "converged", "iteration limit", "time limit", "stopped", "no progress"]
    sentence: str

    @property
    def cut_short(self) -> bool:
        """Whether someone, or the clock, ended the fit between two steps: what is left to do is not to be begun."""
        return self.code in ("stopped", "time limit")

    def __bool__(self) -> bool:
        """Tell whether the fit ended as it should."""
        return self.code in ("exact", "converged")

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Certificate:
    """How good an answer is, measured from the data and the answer, after the solver has ended.

    Attributes
    ----------
    residual : float
        What ``tol`` bounds, relative.
    tol : float
        The bound asked for.
    scope : {"global", "local"}
        Whether a small residual means the best answer, or one that no small step improves.
    dominant : bool or None
        For principal components: nothing left out is larger than what was kept; None where it was not checked.
    details : dict
        Further numbers, by name. Where ``"about"`` is there, all is said of that, and ``"near"`` says how near it comes
        to what was asked.
    """

    residual: float
    tol: float
    scope: Literal["global", "local"]
    dominant: bool | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    _kinds: ClassVar[Mapping[str, Kind]] = {"residual": Number(ERROR), "tol": Number(VARIANCE)}

    @property
    def holds(self) -> bool:
        """Whether the residual is within ``tol`` and nothing larger was left out."""
        return bool(self.residual <= self.tol) and self.dominant is not False

    def __str__(self) -> str:
        size = f"residual {self.residual:.1e}, {'within' if self.residual <= self.tol else 'above'} tol {self.tol:.0e}"
        if "meaning" in self.details:
            return f"{size}; {self.details['meaning']}."
        if "about" in self.details:  # of another problem than the one that was posed
            size = f"{size}, of {self.details['about']}"
        if self.residual > self.tol and self.dominant is not False:
            return f"{size}."
        if self.dominant is None:
            meaning = "no small step improves it" if self.scope == "local" else "the best answer"
        elif self.dominant:
            meaning = _left_out(self.details)
        else:
            meaning = "something larger was left out: these are not the leading components"
        near = f"; {self.details['near']}" if "near" in self.details else ""
        return f"{size}; {meaning}{_digits(self.details, self.tol)}{near}."

    def facts(self) -> dict[str, Any]:
        """Return what a program would like to know."""
        names = ("residual", "tol", "scope", "dominant", "holds")
        return {name: getattr(self, name) for name in names} | {"sentence": str(self)}

    def verdict(self) -> str:
        """Say in one line whether the answer is certified."""
        if self.dominant is False:
            return "Not certified: something larger was left out."
        if not self.holds:
            return "Not certified: the residual is above the bound."
        if self.dominant:
            about = f" of {self.details['about']}" if "about" in self.details else ""
            return f"Certified: these are the leading components{about}."
        if self.scope == "global":
            return "Certified: no better answer exists."
        return "Certified as a local answer: no small step improves it."

    def assurance(self) -> list[str]:
        """Say what the numbers mean."""
        size = f"The residual is {self.residual:.1e}; up to {self.tol:.0e} was allowed."
        said = [f"{size} {_residual(self.dominant)}", _meaning(self.dominant, self.scope)]
        if "about" in self.details:
            said.append(f"All this is said of {self.details['about']}: {self.details['near']}.")
        return said


def _left_out(details: Mapping[str, Any]) -> str:
    """Say what may have been left out, and how sure that is."""
    miss = details.get("miss", 0.0)
    if miss == 0:
        return "nothing larger was left out"
    more = max(np.ceil(1000 * details["left out"]), 1) / 10  # a bound is rounded up
    return f"nothing more than {more:g} % larger was left out, but for a chance of {miss:.0e}"


def _digits(details: Mapping[str, Any], tol: float) -> str:
    """Name components that lie so far below the leading one that rounding leaves fewer digits than ``tol`` asks for."""
    known = np.asarray(details.get("known", ()))
    below = np.flatnonzero(~(known <= tol))
    if not len(below):
        return ""
    digits = int(-np.log10(min(1.0, float(known[below].max()))))  # none where it is NaN
    first, last = below[0] + 1, below[-1] + 1
    which = f"component {first} is" if first == last else f"components {first} to {last} are"
    how = f"known to {digits} digit{'s' if digits > 1 else ''} only" if digits else "not known"
    return f"; {which} {how}, beside the rounding of the first one"


def _residual(dominant: bool | None) -> str:
    if dominant is None:
        return "It says how far the answer is from the conditions that a best answer fulfils; 0 is exact."
    return (
        "It is the largest error in the equation S v = λ v that defines a component v with variance λ (S is the "
        "covariance matrix, or the kernel's), relative to λ: around 1e-15 is as exact as double precision gets."
    )


def _meaning(dominant: bool | None, scope: str) -> str:
    if dominant:
        return (
            "Nothing larger was left out: no direction at right angles to these components holds more variance than "
            "the last one kept."
        )
    if dominant is False:
        return (
            "Something larger was left out: a direction at right angles to these components holds more variance than "
            'the last one kept. Fit again with solver="svd", or with more iterations.'
        )
    if scope == "global":
        return "For this problem a small residual means that no better answer exists."
    return (
        "For this problem a small residual means that no small step improves the answer; a better one far away is not "
        "ruled out."
    )


@dataclass
class History:
    """What happened on the way: one entry per recorded state."""

    iteration: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    residual: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    kept: dict[str, list[Array]] = field(default_factory=dict)  # values, of every stride-th entry
    stride: int = 1

    _kinds: ClassVar[Mapping[str, Kind]] = {
        **dict.fromkeys(("iteration", "objective", "residual", "seconds"), Series("n")),
        "stride": Count(1),
    }

    def record(self, state: State, seconds: float, keep: tuple[str, ...]) -> None:
        """Add a state; values are kept of all entries, or, when that grows too large, of every second, fourth ..."""
        if keep and len(self) % self.stride == 0:
            for name in keep:
                self.kept.setdefault(name, []).append(np.array(state.value[name]))
            if sum(arrays[0].nbytes * len(arrays) for arrays in self.kept.values()) > KEPT_BYTES:
                self.kept = {name: arrays[::2] for name, arrays in self.kept.items()}
                self.stride *= 2
        self.iteration.append(state.iteration)
        self.objective.append(float(state.objective))
        self.residual.append(float(state.residual))
        self.seconds.append(seconds)

    def __len__(self) -> int:
        return len(self.iteration)


@dataclass(frozen=True)
class Result:
    """What every fit leaves behind as ``result_``."""

    value: Value  # the raw factors, by name
    objective: float
    certificate: Certificate
    status: Status
    n_iter: int = 1
    history: History = field(default_factory=History)

    _kinds: ClassVar[Mapping[str, Kind]] = {"n_iter": Count()}

    def after(self, before: Result | None) -> Result:
        """Return this result of a run that took up what another one left, with the history of both (without values)."""
        if before is None:
            return self
        one, other = before.history, self.history
        begin = one.seconds[-1] if len(one) else 0.0
        history = History(
            one.iteration + other.iteration,
            one.objective + other.objective,
            one.residual + other.residual,
            one.seconds + [begin + seconds for seconds in other.seconds],
        )
        return replace(self, history=history)


Callback = Callable[[State], Any]


class Deadline:
    """A clock that runs from its making on, for a whole fit and all that this consists of; None never ends."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self._begin = time.monotonic()

    @property
    def left(self) -> float:
        """Seconds that are left, 0 at least."""
        return np.inf if self.seconds is None else max(self._begin + self.seconds - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether time is up."""
        return self.left <= 0


def run(
    solver: Callable[[Value], Iterator[State]],
    start: Value,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
    fingerprint: str = "",
    keep: tuple[str, ...] = (),
    scope: Literal["global", "local"] = "local",
    warns: bool = True,
    deadline: Deadline | None = None,
) -> Result:
    """Step a solver until its residual is within ``tol``, or for ``max_iter`` iterations.

    Parameters
    ----------
    solver : callable
        ``solver(value)`` yields `State` after `State`, beginning after ``value``.
    start : mapping
        The value to start from.
    tol : float
        Bound on ``State.residual``; 0 asks for ``max_iter`` iterations.
    max_iter : int
        Bound on ``State.iteration``.
    callback : callable, optional
        Called with each `State`; returning True asks to stop.
    checkpoint : path or Checkpoint, optional
        Where to keep the state of an unfinished run; a later run with the same ``fingerprint`` goes on from there.
    fingerprint : str
        Identifies solver, parameters and data.
    keep : tuple of str
        Names in ``State.value`` to keep in the history.
    scope : {"global", "local"}
        What a small residual means, for the certificate.
    warns : bool
        Whether to warn of a run that ends early; whoever goes on from it has the last word.
    deadline : Deadline, optional
        When to end, after the state that is then made.

    Returns
    -------
    Result
        With the last state's value, objective and residual. A run that ends early warns with ConvergenceWarning,
        unless ``tol`` is 0.
    """
    store = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint, fingerprint)
    history = History()
    begin = time.monotonic()
    loaded = store.load()
    state = None if loaded is None else State(*loaded)  # the answer, if the solver has nothing left to do
    status = None if state is None else _converged(state, tol)  # a run may be interrupted after its last step
    steps = solver(start if state is None else state.value) if status is None else ()
    try:
        for state in steps:
            history.record(state, time.monotonic() - begin, keep)
            status = _converged(state, tol)
            if status is None and state.iteration >= max_iter:
                status = _iteration_limit(state, tol, max_iter)
            if callback is not None and asks_to_stop(callback(state)) and status is None:
                status = Status(
                    "stopped",
                    f"Stopped by the callback after {state.iteration} iterations, with residual "
                    f"{state.residual:.1e}, above tol {tol:.0e}.",
                )
            if status is None and deadline is not None and deadline.over:
                status = _time_limit(state, tol, deadline)
            if status is not None:
                break
            store.save_now_and_then(state)
    except BaseException:
        if state is not None:
            store.save(state)
        raise
    if state is None:
        raise RuntimeError("The solver made no step.")
    if status is None:
        status = Status(
            "no progress",
            f"No step leads further after {state.iteration} iterations: residual {state.residual:.1e} is above tol "
            f"{tol:.0e}. Accept this accuracy with a larger tol.",
        )
    if status:
        store.remove()
    else:
        store.save(state)
        if warns:
            warn(status, tol)
    certificate = Certificate(state.residual, tol, scope)
    return Result(state.value, state.objective, certificate, status, state.iteration, history)


def settled(states: Iterator[State], *, tol: float, max_iter: int, deadline: Deadline | None = None) -> State:
    """Return the first state within ``tol``, of so many iterations or past the deadline, or the last."""
    for state in states:
        if state.residual <= tol or state.iteration >= max_iter or (deadline is not None and deadline.over):
            break
    return state


def measured(result: Result, residual: float, details: Mapping[str, Any] | None = None) -> Result:
    """Return the result with the residual that was measured of its answer, after the solver has ended.

    A solver that took its answer for converged, which the measurement does not bear out, has not converged: the status
    says so, with a warning.
    """
    certificate = replace(result.certificate, residual=residual, details=dict(details or {}))
    status, tol = result.status, certificate.tol
    if status.code == "converged" and certificate.holds:
        status = Status("converged", f"Converged: residual {residual:.1e} is within tol {tol:.0e}.")
    elif status.code == "converged":
        status = Status(
            "no progress",
            f"No step leads further: the residual of the answer is {residual:.1e}, above tol {tol:.0e}, though the "
            "solver's own is not: rounding, as a rule. Accept this accuracy with a larger tol, or choose other units.",
        )
        warn(status, tol)
    return replace(result, certificate=certificate, status=status)


def asks_to_stop(answer: Any) -> bool:
    """Tell whether a callback's answer is True, Python's or NumPy's (any other answer is none)."""
    return isinstance(answer, bool | np.bool_) and bool(answer)


def _converged(state: State, tol: float) -> Status | None:
    if not state.residual <= tol:  # nor if it is NaN
        return None
    return Status("converged", f"Converged: residual {state.residual:.1e} is within tol {tol:.0e}.")


def _iteration_limit(state: State, tol: float, max_iter: int) -> Status:
    if tol == 0:
        sentence = f"Made max_iter={max_iter} iterations, as tol=0 asks: residual {state.residual:.1e}."
        return Status("iteration limit", sentence)
    accept = f", or accept this accuracy with tol={2 * state.residual:.0e}" if np.isfinite(state.residual) else ""
    return Status(
        "iteration limit",
        f"Not converged after max_iter={max_iter} iterations: residual {state.residual:.1e} is above tol {tol:.0e}. "
        f"Raise max_iter{accept}.",
    )


def _time_limit(state: State, tol: float, deadline: Deadline) -> Status:
    steps = "an iteration" if state.iteration == 1 else f"{state.iteration} iterations"
    return Status(
        "time limit",
        f"Ended by time_limit={deadline.seconds:g} seconds, after {steps}: residual {state.residual:.1e} is above tol "
        f"{tol:.0e}. This is the best answer so far. Raise time_limit, or accept this accuracy with a larger tol.",
    )


def warn(status: Status, tol: float) -> None:
    """Warn that a fit did not end as it should; at ``tol`` 0 it should go on for as long as it may, and has."""
    if tol == 0 and not status.cut_short:
        return
    from sklearn.exceptions import ConvergenceWarning

    _warn.warn(status.sentence, ConvergenceWarning)
