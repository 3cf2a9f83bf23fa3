"""`solver(state.value)` continues exactly after that state: each later state is bit-equal.

This is how an interrupted fit resumes, so values also make a round trip through the checkpoint file.
"""

import itertools
from functools import partial

import numpy as np
import pytest

from helpers import data_with_spectrum, for_each_component
from princomp.checkpoint import Checkpoint
from princomp.data import as_rows, statistics
from princomp.datasets import load_pitprops
from princomp.losses import Huber
from princomp.manifolds import Stiefel
from princomp.penalties import L1, Groups, RowNorms, Zero
from princomp.result import State
from princomp.solvers import amanpg, constrained, dictionary_start, krylov, one_shot, optimize, regression, scatter
from princomp.solvers.dictionary import dictionary
from princomp.solvers.dictionary_blocks import Terms
from princomp.solvers.robust import alternating, pursuit

SHORT = 25  # states per run
FEW = 8  # of solvers whose states are many steps


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


def dictionary_run(k=3, **how):
    X = scatter.Data(data_with_spectrum(30, 12, np.linspace(3, 1, 12)))
    terms = Terms(**for_each_component(k, **{"alpha": 0.3} | how))
    begin = dictionary_start.start(X, k, terms, np.random.default_rng(0)) | {"sweeps": np.array(12)}  # both phases
    return lambda: partial(dictionary, X, terms=terms), begin


def regression_run(solver, ridge):
    X = data_with_spectrum(40, 70, np.linspace(0.3, 0.1, 30))
    alpha, rng = np.full(3, 0.3), np.random.default_rng(0)
    if solver is one_shot.one_shot:
        begin = one_shot.start(scatter.of_array(X), 3, rng)
    else:
        begin = regression.start(scatter.of_array(X), 3, alpha=alpha, ridge=ridge, rng=rng)
    return lambda: partial(solver, scatter.of_array(X), alpha=alpha, ridge=ridge), begin


def constrained_run(kind):
    S = load_pitprops().correlation
    how = {"bounds": np.array([2.2, 1.6, 1.4]), "tol": 1e-9, "deflation": kind}
    return lambda: partial(constrained.constrained, scatter.Matrix(S), **how), constrained.start(13)


def canonical_run():
    """A-ManPG with a penalty on both Stiefel manifolds, as in sparse CCA: Newton steps for the multipliers."""
    rng = np.random.default_rng(0)
    C = rng.normal(size=(10, 12)) / 10
    sides = [amanpg.Side(Stiefel(np.diag(np.linspace(1, 2, d))), RowNorms(0.05), 1.0) for d in C.shape]
    A, B = (side.manifold.retract(np.eye(d, 2), np.zeros((d, 2))) for side, d in zip(sides, C.shape, strict=True))
    smooth = amanpg.Smooth(lambda A, B: -np.vdot(A, C @ B), lambda A, B: -C @ B, lambda A, B: -C.T @ A)
    return lambda: partial(amanpg.alternate, smooth, sides=tuple(sides), gamma=0.5), amanpg.start(A, B)


def pursuit_run(missing=0.0, rows=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) @ rng.normal(size=(4, 80))
    X += 10 * (rng.random(X.shape) < 0.05)
    X[rng.random(X.shape) < missing] = np.nan
    parts = pursuit.Rows(X) if rows else pursuit.Cells(X)
    return lambda: partial(pursuit.pursuit, parts, alpha=0.5 if rows else 0.1, tol=1e-9), pursuit.start(parts, 3)


def alternating_run():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 50)) + 10 * (rng.random((60, 50)) < 0.05)
    X[3, 4] = np.nan
    return lambda: partial(alternating.alternating, X, alpha=0.1), alternating.start(X, 3, rng)


RUNS = {
    "krylov": lambda: krylov_run(300, 100, np.linspace(3, 2, 100), 4),
    "krylov, space exhausted": lambda: krylov_run(300, 30, np.linspace(3, 2, 30), 4),
    "krylov, rank below k": lambda: krylov_run(100, 40, [3, 2, 1], 6),
    "optimize": lambda: optimize_run(None, Zero()),
    "optimize, L1": lambda: optimize_run(None, L1(30.0)),
    "optimize, Huber": lambda: optimize_run(Huber(1.0), Zero()),
    "optimize, Huber and L1": lambda: optimize_run(Huber(1.0), L1(10.0)),
    "dictionary": lambda: dictionary_run(),
    "dictionary, more components than features": lambda: dictionary_run(14),
    "dictionary, nonnegative": lambda: dictionary_run(nonnegative=True),
    "dictionary, nonnegative codes": lambda: dictionary_run(nonnegative_codes=True),
    "dictionary, penalised codes too": lambda: dictionary_run(14, code_alpha=0.5),
    "dictionary, penalised codes": lambda: dictionary_run(alpha=0.0, code_alpha=0.5),
    "dictionary, groups": lambda: dictionary_run(penalty=Groups(0.5, [[0, 1], [2]])),
    "regression, block": lambda: regression_run(regression.block, 1.0),
    "regression, block, infinite ridge": lambda: regression_run(regression.block, np.inf),
    "regression, A-ManPG": lambda: regression_run(amanpg.sparse_pca, 1.0),
    "regression, A-ManPG, infinite ridge": lambda: regression_run(amanpg.sparse_pca, np.inf),
    "regression, A-ManPG, ten steps to a state": lambda: regression_run(partial(amanpg.sparse_pca, steps=10), 1.0),
    "regression, one shot": lambda: regression_run(one_shot.one_shot, 1.0),
    "regression, one shot, infinite ridge": lambda: regression_run(one_shot.one_shot, np.inf),
    "constrained, schur": lambda: constrained_run("schur"),
    "constrained, hotelling": lambda: constrained_run("hotelling"),
    "constrained, projection": lambda: constrained_run("projection"),
    "constrained, generalised": lambda: constrained_run("generalised"),
    "A-ManPG, both sides penalised": lambda: canonical_run(),
    "pursuit of cells": lambda: pursuit_run(),
    "pursuit of cells, some missing": lambda: pursuit_run(0.1),
    "pursuit of rows": lambda: pursuit_run(rows=True),
    "alternating projections": lambda: alternating_run(),
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
    many_steps = request.param.startswith(("dictionary", "regression", "A-ManPG"))
    return solver, begin, short_run(solver(), begin, FEW if many_steps else SHORT)


def test_a_run_is_long_enough_to_mean_something(run):
    assert len(run[2]) >= 2


def test_the_same_start_gives_the_same_states(run):
    solver, begin, states = run
    assert_same_states(short_run(solver(), begin, len(states)), states)


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
