"""Probabilistic PCA with missing cells from several starts, one after the other (EM of `probabilistic_em`).

With missing cells the likelihood may have several maxima. The first start is `probabilistic_em.begin`; the others are
random: w_j ~ N(0, v_j / (2 k) I) with v_j the variance of feature j, and half of the mean variance for noise. A start
ends where EM does, or as soon as the gain that it still promises does not lead to the best one before. The best is that
of the largest likelihood; where components pass through all cells of any data, of those in which noise is left, if any.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers import probabilistic_em
from princomp.solvers.probabilistic_em import SAFETY, Data, Model

COLLAPSED = 1e-8  # noise of this share of the variance is on its way to none
# Steps of a later start: so many, or so many times those of the first. Eight starts for 30 x 10, half of it missing,
# five draws, led to the same maxima with (10, 1) and (1000, 20).
PATIENCE = (100, 4)


def models(data: Data, k: int, count: int, rng: np.random.Generator) -> list[Model]:
    """Return models to start from."""
    p, moments = data.rows.shape[1], data.moments
    deviations = np.sqrt(moments.squares / moments.counts / (2 * k))
    noise = max(0.5 * moments.variance, data.floor)
    first = probabilistic_em.begin(data, k, rng)
    return [first] + [
        Model(deviations[:, None] * rng.standard_normal((p, k)), np.zeros(p), noise) for _ in range(count - 1)
    ]


def start(begins: Sequence[Model]) -> Value:
    """Return the value before the first step."""
    return {
        **probabilistic_em.start(begins[0]),
        "attempt": np.array(0),
        "since": np.array(0),  # the iteration after which the present start began
        "patience": np.array(np.inf),  # the steps that it may take
        "likelihoods": np.full(len(begins), np.nan),  # that starts have led to
        "kept": np.zeros(0),  # the best model that a start has ended in
        # Its objective and residual, the iterations between which it was found, and the number of its start.
        "kept_numbers": np.full(5, np.nan),
    }


def em(
    data: Data, value: Value, *, begins: Sequence[Model], tol: float, max_iter: int, bounded: bool = True
) -> Iterator[State]:
    """Yield the states of all starts, and last the best one that a start has ended in.

    They are those of `probabilistic_em.em`, the residual being infinite where a start ends and another one begins. A
    start ends within ``tol``; ``max_iter`` bounds the iterations of all, and once they are spent no further one is
    made. ``bounded`` tells whether the likelihood of such cells has a bound, as noise vanishes.
    """
    value = dict(value)
    while True:
        state: State | None = None
        for state in probabilistic_em.em(data, value):
            value = dict(state.value)
            if state.residual <= tol or state.iteration >= max_iter or _leads_nowhere(state, data):
                break
            yield state
        else:
            state = None  # rounding hides all gains from here on, and what there is was yielded
        attempt, ended = int(value["attempt"]), state is None or state.residual <= tol
        if ended:
            value |= _kept(value, data, tol, bounded)
        here = np.arange(len(begins)) == attempt
        value["likelihoods"] = np.where(here, value["objective"], value["likelihoods"])
        if value["iteration"] >= max_iter or not np.isnan(value["likelihoods"]).any():
            break
        value |= _next(value, begins[attempt + 1])
        if state is not None:
            yield State(dict(value), state.objective, np.inf, state.iteration)
    # A start that has not ended is the answer if there is no other, or if it is the best one, come from a saddle.
    if state is not None and not ended and (not value["kept"].size or attempt == value["kept_numbers"][4]):
        yield State(value, state.objective, state.residual, state.iteration)
    elif state is not None or len(begins) > 1:
        yield best(value, data)


def best(value: Value, data: Data) -> State:
    """Return the state of the best model that a start has ended in."""
    objective, residual = (float(number) for number in value["kept_numbers"][:2])
    model = Model.of(value["kept"], data.rows.shape[1], data.floor)
    found = {**value, **model.named(), "objective": np.array(objective)}
    return State(found, objective, residual, int(value["iteration"]))


def again(value: Value, model: Model, steps: int) -> Value:
    """Return the value from which the best start, which took ``steps`` so far, goes on at a model after all others."""
    now = {
        "iteration": value["iteration"],
        "attempt": np.array(int(value["kept_numbers"][4])),
        "since": value["iteration"] - steps,
        "patience": np.array(np.inf),
    }
    return {**value, **probabilistic_em.start(model), **now}


def _leads_nowhere(state: State, data: Data) -> bool:
    """Tell whether a later start takes too long, or will not reach the best one before."""
    value = state.value
    if not value["kept"].size or value["attempt"] == value["kept_numbers"][4]:
        return False
    promised = state.objective + state.residual * data.moments.cells
    return bool(promised < value["kept_numbers"][0] or state.iteration - value["since"] >= value["patience"])


def _kept(value: Value, data: Data, tol: float, bounded: bool) -> dict[str, Array]:
    """Return what is to be kept, now that a start has ended: the earlier of two that differ by no more than ``tol``."""
    model, objective = probabilistic_em.model_of(value), float(value["objective"])
    if value["kept"].size:
        before = Model.of(value["kept"], len(model.W), data.floor)
        least = 0.0 if bounded else COLLAPSED * data.moments.variance
        known = float(value["kept_numbers"][0]) + tol * data.moments.cells * (
            value["attempt"] != value["kept_numbers"][4]
        )
        if (model.noise > least, objective) <= (before.noise > least, known):
            return {}
    residual = SAFETY * float(value["promised"].max())
    numbers = np.array([objective, residual, value["since"], value["iteration"], value["attempt"]])
    return {"kept": model.flat(), "kept_numbers": numbers}


def _next(value: Value, model: Model) -> dict[str, Array]:
    """Return what the next start changes; the model stays that of the state."""
    fresh = {name: value[name] for name in ("W", "shift", "noise", "iteration")}
    patience = max(PATIENCE[0], PATIENCE[1] * int(value["iteration"])) if value["attempt"] == 0 else value["patience"]
    now = {"attempt": value["attempt"] + 1, "since": value["iteration"], "patience": np.array(float(patience))}
    return {**probabilistic_em.start(model), **fresh, **now}
