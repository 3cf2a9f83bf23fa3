"""The driver of all iterative methods: why a run ended, by code; `tol=0`; what is on disk while it runs."""

import io
import re
import sys
import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture, SparseCCA, SparsePCA
from princomp._compiled import loops, told
from princomp.checkpoint import Checkpoint
from princomp.progress import COMPILING
from princomp.result import Certificate, Deadline, Result, State, Status, measured, run

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 40))
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)

FITS = {
    "krylov": lambda **how: PCA(3, solver="krylov", random_state=0, **how).fit(X),
    "optimize": lambda **how: PCA(1, solver="optimize", random_state=0, **how).fit(X),
    "dictionary": lambda **how: SparsePCA(3, formulation="dictionary", random_state=0, **how).fit(X),
    "regression": lambda **how: SparsePCA(3, formulation="regression", random_state=0, **how).fit(X),
    "one-shot": lambda **how: SparsePCA(3, formulation="regression", solver="one-shot", random_state=0, **how).fit(X),
    "amanpg": lambda **how: SparsePCA(3, formulation="regression", solver="amanpg", random_state=0, **how).fit(X),
    "constrained": lambda **how: SparsePCA(3, formulation="constrained", random_state=0, **how).fit(X),
    "probabilistic": lambda **how: ProbabilisticPCA(3, random_state=0, **how).fit(GAPS),
    "mixture": lambda **how: ProbabilisticPCAMixture(2, n_init=1, random_state=0, **how).fit(GAPS),
    "canonical": lambda **how: SparseCCA(1, **how).fit(X[:, :10], X[:, 8:14]),
}
every_fit = pytest.mark.parametrize("fit", FITS.values(), ids=FITS)


def steps(value, last=10**9):
    """A solver whose residual is one over the number of steps, which ends after ``last`` of them."""
    for i in range(int(value["i"]) + 1, last + 1):
        yield State({"i": np.array(i)}, -float(i), 1 / i, i)


BEGIN = {"i": np.array(0)}


# --- why it ended -------------------------------------------------------------------------------


def test_a_run_ends_at_the_first_state_past_its_deadline_and_says_so():
    late = Deadline(1e-9)
    with pytest.warns(ConvergenceWarning, match="Ended by time_limit=1e-09 seconds, after an iteration"):
        found = run(steps, BEGIN, tol=1e-3, max_iter=50, deadline=late)
    assert (found.status.code, found.n_iter, bool(found.status)) == ("time limit", 1, False)
    assert found.status.cut_short
    assert late.over
    assert not Deadline(None).over
    assert run(steps, BEGIN, tol=1.0, max_iter=50, deadline=late).status.code == "converged"


SEARCHES = {
    "regression": lambda **how: SparsePCA(2, formulation="regression", nonzeros=5, random_state=0, **how).fit(X),
    "dictionary": lambda **how: SparsePCA(2, formulation="dictionary", nonzeros=5, random_state=0, **how).fit(X),
    "constrained": lambda **how: SparsePCA(2, formulation="constrained", nonzeros=5, random_state=0, **how).fit(X),
    "bic": lambda **how: ProbabilisticPCA("bic", random_state=0, **how).fit(GAPS),
    "ard": lambda **how: ProbabilisticPCA("ard", random_state=0, **how).fit(GAPS),
    "held-out": lambda **how: ProbabilisticPCA("held-out", random_state=0, **how).fit(GAPS),
    "starts": lambda **how: ProbabilisticPCAMixture(2, n_init=50, random_state=0, **how).fit(GAPS),
}


@pytest.mark.filterwarnings("ignore:n_components=")
@pytest.mark.parametrize("fit", SEARCHES.values(), ids=SEARCHES)
def test_a_time_limit_is_for_the_whole_search(fit):
    begin = time.monotonic()
    with pytest.warns(ConvergenceWarning, match="time_limit=0.001 seconds"):
        model = fit(time_limit=1e-3, tol=1e-14)
    assert time.monotonic() - begin < 5.0  # some of it to compile
    assert model.result_.status.code == "time limit"
    assert not model.certificate_.holds


@pytest.mark.parametrize("fit", SEARCHES.values(), ids=SEARCHES)
def test_a_time_limit_that_is_not_reached_changes_nothing(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(fit(time_limit=600.0).components_, fit().components_)


def test_codes_tell_the_callback_from_a_solver_that_gets_no_further():
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback after 3"):
        asked = run(steps, BEGIN, tol=1e-3, max_iter=50, callback=lambda state: state.iteration == 3)
    with pytest.warns(ConvergenceWarning, match="No step leads further after 5"):
        stuck = run(lambda value: steps(value, last=5), BEGIN, tol=1e-3, max_iter=50)
    with pytest.warns(ConvergenceWarning, match="Not converged after max_iter=7"):
        limited = run(steps, BEGIN, tol=1e-3, max_iter=7)
    done = run(steps, BEGIN, tol=0.1, max_iter=50)
    codes = [found.status.code for found in (asked, stuck, limited, done)]
    assert codes == ["stopped", "no progress", "iteration limit", "converged"]
    assert [bool(found.status) for found in (asked, stuck, limited, done)] == [False, False, False, True]
    assert [found.n_iter for found in (asked, stuck, limited, done)] == [3, 5, 7, 10]


def test_who_asks_to_stop_a_run_that_has_converged_is_too_late():
    found = run(steps, BEGIN, tol=0.1, max_iter=50, callback=lambda state: state.iteration == 10)
    assert found.status.code == "converged"


def test_an_answer_that_is_worse_than_its_solver_said_has_made_no_progress():
    said = Result(BEGIN, 0.0, Certificate(1e-9, 1e-6, "local"), Status("converged", "Converged."))
    with pytest.warns(ConvergenceWarning, match="residual of the answer is 1.0e-03, above tol 1e-06"):
        found = measured(said, 1e-3)
    assert found.status.code == "no progress"


@pytest.mark.parametrize("max_iter", [7, 8, 9])
def test_the_accuracy_that_may_be_accepted_is_one_that_was_reached(max_iter):
    """It is told with one digit: that of 1/7 would be too small."""
    with pytest.warns(ConvergenceWarning, match="accept this accuracy") as told:
        run(steps, BEGIN, tol=1e-3, max_iter=max_iter)
    advised = float(re.search(r"with tol=(.*)\.$", str(told[0].message))[1])
    assert run(steps, BEGIN, tol=advised, max_iter=max_iter).status.code == "converged"


# --- tol = 0 ------------------------------------------------------------------------------------


@every_fit
def test_tol_0_makes_max_iter_steps_and_does_not_warn(fit):
    """Who asks for a number of steps has got them: warnings are errors here."""
    fitted = fit(tol=0, max_iter=2)
    status = fitted.result_.status
    assert status.code == "iteration limit"
    assert "as tol=0 asks" in status.sentence
    assert not status  # no certificate holds
    assert fitted.certificate_.residual > 0


def test_tol_0_tells_of_a_callback_that_stopped():
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        run(steps, BEGIN, tol=0, max_iter=50, callback=lambda state: True)


def test_tol_0_ends_where_no_step_leads_further():
    assert run(lambda value: steps(value, last=5), BEGIN, tol=0, max_iter=50).status.code == "no progress"


# --- what is kept of the way --------------------------------------------------------------------


@pytest.mark.parametrize("count", [3, 4, 5, 20])
def test_values_that_take_too_much_room_are_kept_of_every_second_entry_and_so_on(count, monkeypatch):
    monkeypatch.setattr("princomp.result.KEPT_BYTES", 4 * 8)
    history = run(steps, BEGIN, tol=1 / count, max_iter=50, keep=("i",)).history
    assert history.stride == {3: 1, 4: 1, 5: 2, 20: 8}[count]
    assert history.kept["i"] == history.iteration[:: history.stride]
    assert history.iteration == list(range(1, count + 1))


# --- what is on disk while it runs --------------------------------------------------------------


@pytest.mark.parametrize(("every", "expected"), [(0.0, [None, 1, 2, 3]), (1000.0, [None] * 4)])
def test_a_run_saves_its_state_now_and_then(tmp_path, every, expected):
    """So that a process that is killed, and can write nothing any more, has lost little."""
    store, on_disk = Checkpoint(tmp_path / "state.npz", every=every), []

    def look(state):
        saved = store.load()
        on_disk.append(None if saved is None else saved[3])

    run(steps, BEGIN, tol=0.25, max_iter=50, callback=look, checkpoint=store)
    assert on_disk == expected
    assert not (tmp_path / "state.npz").exists()


def test_a_solver_that_makes_no_step_is_an_error():
    with pytest.raises(RuntimeError, match="made no step"):
        run(lambda value: steps(value, last=0), BEGIN, tol=0.1, max_iter=50)


# --- who is told ----------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize("verbose", [0, 1, 2])
@pytest.mark.parametrize("ci", [False, True])
def test_a_line_on_a_terminal_tells_how_far_a_fit_is(monkeypatch, verbose, ci):
    """It is taken away at the end, unless much is to be said; in a log of automatic tests there is none."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("CI", "1") if ci else monkeypatch.delenv("CI", raising=False)
    fitted = SparsePCA(2, formulation="regression", alpha=5.0, random_state=0, verbose=verbose).fit(X)
    written = terminal.getvalue()
    assert bool(written) == (verbose > 0 and not ci)
    if written:
        last = f"SparsePCA: iteration {fitted.n_iter_}  objective {fitted.result_.history.objective[-1]:.6g}  residual"
        assert last in written
        assert "(tol 1e-05)" in written
        assert written.rstrip().endswith("\x1b[2K") == (verbose == 1)  # the line is cleared
    assert fitted.result_.status  # and no one has asked to stop


def test_the_line_says_when_loops_are_compiled(monkeypatch):
    """For seconds nothing else would be said, at the first fit on a computer."""
    import numba

    assert loops("sparse_gram") is not None
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CI", raising=False)
    how = {"formulation": "regression", "alpha": 5.0, "random_state": 0, "verbose": 1}
    SparsePCA(2, **how).fit(X)
    assert COMPILING not in terminal.getvalue()
    fresh = numba.njit(lambda x: x + 1.0)
    SparsePCA(2, callback=lambda state: fresh(1.0), **how).fit(X)
    assert f"SparsePCA: {COMPILING}" in terminal.getvalue()
    assert told == []


def test_the_command_shows_that_it_is_busy_on_a_terminal_alone(monkeypatch):
    from princomp.cli.show import Log

    for quiet, ci, shown in ((False, False, True), (True, False, False), (False, True, False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("CI", "1") if ci else monkeypatch.delenv("CI", raising=False)
        with Log(quiet=quiet).busy("Fitting"):
            pass
        assert ("Fitting" in terminal.getvalue()) == shown
