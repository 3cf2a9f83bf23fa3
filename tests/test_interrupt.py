"""Ctrl-C at random moments, and fits that go on from a checkpoint (P1)."""

import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import princomp
from helpers import data_with_spectrum, fitted_attributes, only_user_warnings, value_or_error
from princomp import PCA

X = data_with_spectrum(400, 60, np.linspace(3, 2, 60), offset=4.0)

# One process for all moments: starting Python and importing costs more than the fits.
CHILD = """
import json, signal, sys, threading, time
from functools import partial
import numpy as np
import threadpoolctl
from princomp import PCA

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would ignore it
rng = np.random.default_rng(0)
wide = rng.normal(size=(3000, 1500))

seen = set()

def slow_block(i):
    # quick when the shards are opened, slow when they are read
    time.sleep(0.1 if i in seen else 0)
    seen.add(i)
    return np.random.default_rng(i).normal(size=(100, 300))

FITS = {
    "krylov": (PCA(10, solver="krylov", tol=0, max_iter=10**9, random_state=0), wide),
    "optimize": (PCA(3, solver="optimize", tol=0, max_iter=10**9, random_state=0), wide),
    "eigh of shards": (PCA(10, solver="eigh"), [partial(slow_block, i) for i in range(200)]),
    "svd of shards": (PCA(10, solver="svd"), [partial(slow_block, i) for i in range(200)]),
    "one long LAPACK call": (PCA(solver="svd"), rng.normal(size=(2500, 2500))),
}
PCA(2).fit(wide[:50, :5])  # first-call costs
def limits():
    return sorted((pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info())
before = limits()

for name in sys.argv[1:]:
    pca, X = FITS[name]
    seen.clear()
    print("ready", flush=True)
    try:
        pca.fit(X)
        outcome = "finished"
    except KeyboardInterrupt:
        outcome = "KeyboardInterrupt"
    print(json.dumps(outcome), flush=True)
    left = [key for key in vars(pca) if key.endswith("_")]
    again = PCA(2, random_state=0).fit(wide[:50, :5]).explained_variance_.tolist()
    print(json.dumps({"left": left, "limits": limits() == before, "again": again}), flush=True)
deadline = time.monotonic() + 2
while time.monotonic() < deadline and any(t.name.startswith("princomp_") for t in threading.enumerate()):
    time.sleep(0.05)
print(json.dumps([t.name for t in threading.enumerate() if t.name.startswith("princomp_")]), flush=True)
"""


@pytest.fixture
def child(tmp_path):
    """start(names): the process above, in an empty folder with an empty folder for temporary files."""
    started = []
    for name in ("work", "temporary"):
        (tmp_path / name).mkdir()

    def start(names):
        source = Path(princomp.__file__).parents[1]  # found from another folder, too
        environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(source)}
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", CHILD, *names],
                cwd=tmp_path / "work",
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        return started[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def interrupt_each(process, names, moments):
    """Interrupt each fit at its moment; return for each the delay and what the child said."""
    reports = []
    for name, moment in zip(names, moments, strict=True):
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(moment)
        sent = time.perf_counter()
        process.send_signal(signal.SIGINT)
        outcome = json.loads(process.stdout.readline())
        delay = time.perf_counter() - sent
        reports.append(
            {"fit": name, "moment": moment, "outcome": outcome, "delay": delay, **json.loads(process.stdout.readline())}
        )
    return reports


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to a child on Windows")
def test_P1_interrupt_at_ten_random_moments(child, tmp_path, observe):
    names = ["krylov", "optimize", "eigh of shards"] * 3 + ["one long LAPACK call"]
    draw = random.Random(0)
    process = child(names)
    reports = interrupt_each(process, names, [draw.uniform(0.02, 0.5) for _ in names])
    threads_left = json.loads(process.stdout.readline())
    worst = max(reports, key=lambda report: report["delay"])
    observe("P1", "SIGINT at ten random moments", f"slowest {worst['delay']:.2f} s ({worst['fit']})")
    assert [r for r in reports if r["outcome"] != "KeyboardInterrupt"] == []
    assert [r for r in reports if r["delay"] > 1] == []
    assert [r for r in reports if r["left"]] == []  # unfitted, as before
    assert [r for r in reports if not r["limits"]] == []  # BLAS threads as before
    assert len({tuple(r["again"]) for r in reports}) == 1  # the next fit works
    assert threads_left == []
    assert [file for folder in ("work", "temporary") for file in (tmp_path / folder).iterdir()] == []


@pytest.mark.soak
@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to a child on Windows")
def test_P1_interrupt_at_a_hundred_random_moments(child):
    names = ["krylov", "optimize", "eigh of shards", "svd of shards"] * 25
    moments = [random.uniform(0, 1.5) for _ in names]
    reports = interrupt_each(child(names), names, moments)
    bad = [r for r in reports if r["outcome"] != "KeyboardInterrupt" or r["delay"] > 1 or r["left"] or not r["limits"]]
    assert bad == []


# --- what an interrupted estimator looks like -------------------------------------------------------


class InterruptAfter:
    """A callback that is a Ctrl-C after so many states."""

    def __init__(self, states):
        self.states, self.seen = states, 0

    def __call__(self, state):
        self.seen += 1
        if self.seen == self.states:
            raise KeyboardInterrupt


@pytest.mark.parametrize("solver", ["krylov", "optimize"])
@pytest.mark.parametrize("states", [1, 3])
def test_P1_an_interrupted_estimator_is_unfitted(solver, states):
    from sklearn.exceptions import NotFittedError

    pca = PCA(4, solver=solver, callback=InterruptAfter(states), random_state=0)
    with pytest.raises(KeyboardInterrupt):
        pca.fit(X)
    assert fitted_attributes(pca) == []
    with pytest.raises(NotFittedError):
        pca.transform(X)


@pytest.mark.parametrize("solver", ["krylov", "optimize"])
def test_P1_an_interrupted_second_fit_does_not_mix_with_the_first(solver):
    pca = PCA(4, solver=solver, random_state=0).fit(X)
    old = pca.components_.copy()
    with pytest.raises(KeyboardInterrupt):
        pca.set_params(callback=InterruptAfter(2)).fit(X[:, :30])
    # either nothing, or the whole first fit: never 30 features with components for 60
    if fitted_attributes(pca):
        assert np.array_equal(pca.components_, old)
        assert pca.n_features_in_ == 60
        assert pca.transform(X).shape == (400, 4)


def test_P1_other_errors_leave_it_unfitted_too():
    pca = PCA(4)
    bad = X.copy()
    bad[3, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        pca.fit(bad)
    assert fitted_attributes(pca) == []


# --- checkpoints ------------------------------------------------------------------------------------


def options(solver, path=None, callback=None):
    # optimize runs many short steps, krylov few long ones
    return {"n_components": 4, "solver": solver, "random_state": 0, "checkpoint": path, "callback": callback}


def count_states(solver, given=X, **changes):
    counter = InterruptAfter(-1)
    return PCA(**{**options(solver, callback=counter), **changes}).fit(given), counter.seen


@pytest.mark.parametrize("solver", ["krylov", "optimize"])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.9])
def test_P1_a_fit_goes_on_from_its_checkpoint(solver, share, tmp_path):
    path = tmp_path / "state.npz"
    expected, total = count_states(solver)
    at = max(1, int(share * total))
    assert total >= 2
    interrupted = PCA(**options(solver, path, InterruptAfter(at)))
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(X)
    assert list(tmp_path.iterdir()) == [path]  # the file, whole, and nothing beside it
    assert fitted_attributes(interrupted) == []

    counter = InterruptAfter(-1)
    resumed = PCA(**options(solver, path, counter)).fit(X)
    assert counter.seen == total - at  # it went on, it did not begin again
    for name in ("components_", "explained_variance_", "mean_", "noise_variance_", "n_iter_"):
        assert np.array_equal(getattr(resumed, name), getattr(expected, name)), name
    assert resumed.certificate_.residual == expected.certificate_.residual
    assert list(tmp_path.iterdir()) == []  # done: removed


@pytest.mark.parametrize("solver", ["krylov", "optimize"])
def test_P1_interrupted_again_and_again(solver, tmp_path):
    path = tmp_path / "state.npz"
    expected, total = count_states(solver)
    step = max(1, total // 5)
    for _ in range((total - 1) // step):  # always before the last state
        with pytest.raises(KeyboardInterrupt):
            PCA(**options(solver, path, InterruptAfter(step))).fit(X)
    resumed = PCA(**options(solver, path)).fit(X)
    assert np.array_equal(resumed.components_, expected.components_)
    assert resumed.n_iter_ == expected.n_iter_


def test_P1_a_resumed_optimisation_still_has_one_trace_per_component(tmp_path):
    path = tmp_path / "state.npz"
    expected, total = count_states("optimize")
    with pytest.raises(KeyboardInterrupt):
        PCA(**options("optimize", path, InterruptAfter(int(0.9 * total)))).fit(X)
    resumed = PCA(**options("optimize", path)).fit(X)
    assert len(resumed.trace_) == len(expected.trace_) == 4


@pytest.mark.parametrize("solver", ["krylov", "optimize"])
def test_P1_a_stopped_or_limited_fit_can_be_continued(solver, tmp_path):
    from sklearn.exceptions import ConvergenceWarning

    path = tmp_path / "state.npz"
    expected, _ = count_states(solver)
    with only_user_warnings():  # who stops a fit need not be told
        stopped = PCA(**options(solver, path, lambda state: True)).fit(X)
    assert stopped.result_.status.code == "stopped"
    assert not stopped.result_.status
    assert path.exists()
    assert np.array_equal(PCA(**options(solver, path)).fit(X).components_, expected.components_)
    with pytest.warns(ConvergenceWarning):
        PCA(**options(solver, path), max_iter=2).fit(X)
    assert np.array_equal(PCA(**options(solver, path)).fit(X).components_, expected.components_)


def assert_refused_or_equal(pca, given, path):
    """The fit refuses, naming the file, or gives what it gives without a checkpoint."""
    outcome = value_or_error(pca.fit, given)
    if isinstance(outcome, ValueError):
        assert str(path) in str(outcome)
    else:
        fresh = PCA(**{**pca.get_params(), "checkpoint": None}).fit(given)
        assert np.array_equal(outcome.components_, fresh.components_)


def other_data():
    """Data that differ from X in ways a careless fingerprint misses."""
    half = np.random.default_rng(0).integers(-9, 10, size=(200, 60)).astype(float) * np.arange(1, 61)
    symmetric = np.vstack([half, -half])  # mean exactly zero
    return {
        "another array": (X, X + np.random.default_rng(0).normal(size=X.shape)),
        "one cell changed": (X, np.where(np.arange(X.size).reshape(X.shape) == 777, X + 1, X)),
        "columns reversed, same mean and total": (symmetric, symmetric[:, ::-1].copy()),
    }


@pytest.mark.parametrize("solver", ["krylov", "optimize"])
@pytest.mark.parametrize("change", ["another array", "one cell changed", "columns reversed, same mean and total"])
def test_P1_a_checkpoint_of_other_data_is_never_used(solver, change, tmp_path):
    path = tmp_path / "state.npz"
    given, other = other_data()[change]
    with pytest.raises(KeyboardInterrupt):
        PCA(**options(solver, path, InterruptAfter(2))).fit(given)
    assert_refused_or_equal(PCA(**options(solver, path)), other, path)


@pytest.mark.parametrize("change", [{"n_components": 3}, {"scale": True}, {"center": False}, {"random_state": 1}])
@pytest.mark.parametrize("solver", ["krylov", "optimize"])
def test_P1_a_checkpoint_of_other_parameters_is_never_used(solver, change, tmp_path):
    path = tmp_path / "state.npz"
    with pytest.raises(KeyboardInterrupt):
        PCA(**options(solver, path, InterruptAfter(2))).fit(X)
    assert_refused_or_equal(PCA(**{**options(solver, path), **change}), X, path)


@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage"])
def test_P1_a_damaged_checkpoint_is_said_or_ignored(damage, tmp_path):
    path = tmp_path / "state.npz"
    with pytest.raises(KeyboardInterrupt):
        PCA(**options("krylov", path, InterruptAfter(2))).fit(X)
    whole = path.read_bytes()
    path.write_bytes({"truncated": whole[: len(whole) // 2], "empty": b"", "garbage": b"x" * len(whole)}[damage])
    assert_refused_or_equal(PCA(**options("krylov", path)), X, path)
    gc.collect()  # a file left open is said here, not in some later test


def test_P1_two_fits_in_two_threads_leave_the_blas_limit_as_it_was():
    import threadpoolctl

    def limits():
        return sorted((pool["filepath"], pool["num_threads"]) for pool in threadpoolctl.threadpool_info())

    PCA(2).fit(X)
    before = limits()
    threads = [threading.Thread(target=lambda: PCA(4, solver="krylov", random_state=0).fit(X)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert limits() == before
