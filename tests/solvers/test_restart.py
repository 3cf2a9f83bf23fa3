"""`solver(state.value)` continues exactly after that state: each later state is bit-equal.

This is how an interrupted fit resumes, so values also make a round trip through the checkpoint file.
"""

import itertools
from functools import partial

import numpy as np
import pytest

from helpers import data_with_spectrum
from princomp.checkpoint import Checkpoint
from princomp.data import as_rows, statistics
from princomp.losses import Huber
from princomp.penalties import L1, Zero
from princomp.result import State
from princomp.solvers import krylov, optimize

SHORT = 25  # states per run


def centred(X):
    rows = as_rows(X)
    moments = statistics.moments(rows)
    return moments.centered(rows), moments.total


def krylov_run(n, p, deviations, k):
    X, total = centred(data_with_spectrum(n, p, deviations, offset=3.0))
    begin = krylov.start(p, k, np.random.default_rng(0))
    return lambda: partial(krylov.krylov, partial(statistics.gram_apply, X), k=k, total=total), begin


def optimize_run(loss, penalty):
    X, total = centred(data_with_spectrum(60, 8, np.linspace(5, 1, 8), offset=3.0))
    begin = optimize.start(np.random.default_rng(0).normal(size=(3, 8)))

    def solver():
        # made anew for each restart, as a new process would: nothing may be remembered outside the value
        apply = partial(statistics.gram_apply, X)
        evaluate = optimize.squared_loss(apply, total) if loss is None else optimize.any_loss(X, loss)
        return partial(optimize.optimize, evaluate, penalty=penalty, concave=loss is None, tol=1e-8, total=total)

    return solver, begin


RUNS = {
    "krylov": lambda: krylov_run(300, 100, np.linspace(3, 2, 100), 4),
    "krylov, space exhausted": lambda: krylov_run(300, 30, np.linspace(3, 2, 30), 4),
    "krylov, rank below k": lambda: krylov_run(100, 40, [3, 2, 1], 6),
    "optimize": lambda: optimize_run(None, Zero()),
    "optimize, L1": lambda: optimize_run(None, L1(30.0)),
    "optimize, Huber": lambda: optimize_run(Huber(1.0), Zero()),
    "optimize, Huber and L1": lambda: optimize_run(Huber(1.0), L1(10.0)),
}


def copied(state):
    return {name: np.array(array, order="K") for name, array in state.value.items()}


def short_run(solver, value, count):
    """States, with copies of their values taken at once: a later step must not reach back into them."""
    return [(state, copied(state)) for state in itertools.islice(solver(value), count)]


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_same_states(found, expected):
    assert len(found) == len(expected)
    for (state, value), (state0, value0) in zip(found, expected, strict=True):
        assert (state.iteration, state.objective, state.residual) == (
            state0.iteration,
            state0.objective,
            state0.residual,
        )
        assert value.keys() == value0.keys()
        assert not [name for name in value if not same_bits(value[name], value0[name])]


def through_a_file(value, folder):
    store = Checkpoint(folder / "state", "fingerprint")
    store.save(State(value, 0.0, 1.0, 1))
    return store.load()[0]


@pytest.fixture(params=RUNS)
def run(request, monkeypatch):
    monkeypatch.setattr(krylov, "BASIS_COLUMNS", 40)  # so that the short run also holds thick restarts
    solver, begin = RUNS[request.param]()
    return solver, begin, short_run(solver(), begin, SHORT)


def test_a_run_is_long_enough_to_mean_something(run):
    assert len(run[2]) >= 2


def test_the_same_start_gives_the_same_states(run):
    solver, begin, states = run
    assert_same_states(short_run(solver(), begin, SHORT), states)


def test_states_are_not_changed_by_later_steps(run):
    for state, value in run[2]:
        assert not [name for name in value if not same_bits(np.asarray(state.value[name]), value[name])]


@pytest.mark.parametrize("way", ["memory", "file"])
def test_restart_from_every_state(run, way, tmp_path):
    solver, _, states = run
    for i, (_, value) in enumerate(states):
        given = through_a_file(value, tmp_path) if way == "file" else value
        before = {name: array.copy() for name, array in given.items()}
        assert_same_states(short_run(solver(), given, len(states) - 1 - i), states[i + 1 :])
        assert not [name for name in before if not same_bits(before[name], given[name])]  # the start is not mutated
