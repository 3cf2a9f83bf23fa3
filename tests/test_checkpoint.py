"""Checkpoints go on with their own data only, whoever reads them; a damaged one, or a place for none, is said."""

from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture, SparseCCA, SparsePCA
from princomp.data import as_rows
from princomp.result import State, run

FITS = {
    "krylov": PCA(3, solver="krylov"),
    "krylov, not centred": PCA(3, solver="krylov", center=False),
    "optimize": PCA(3, solver="optimize"),
    "sparse, by number": SparsePCA(3, nonzeros=4),
    "sparse, dictionary": SparsePCA(3, formulation="dictionary", alpha=0.1),
    "sparse, regression": SparsePCA(3, formulation="regression", alpha_share=0.01, tol=1e-8),
    "sparse, constrained": SparsePCA(3, formulation="constrained"),
    "probabilistic, closed form": ProbabilisticPCA(3),
    "probabilistic, EM": ProbabilisticPCA(3, method="em"),
    "mixture": ProbabilisticPCAMixture(2, n_clusters=2),
    "canonical": SparseCCA(2, alpha_x=0.02, alpha_y=0.02),
}
MISSING_TAKEN = ("probabilistic, EM", "mixture")


@pytest.fixture(params=FITS)
def name(request):
    return request.param


@pytest.fixture
def model(name, tmp_path, monkeypatch):
    """An estimator with a checkpoint and a seed, whose solver iterates."""
    monkeypatch.setattr("princomp.estimators.probabilistic_fit.choose_solver", lambda *shape: "krylov")
    return clone(FITS[name]).set_params(checkpoint=tmp_path / "state.npz", random_state=0)


def data(seed=0, n=60, p=12):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + 5.0


def look_alike(X):
    """Other data of the same mean, and the same in eight rows, evenly spaced: a sample does not tell them apart."""
    Z = X.copy()
    rest = np.setdiff1d(np.arange(len(X)), np.linspace(0, len(X) - 1, 8).astype(int))
    for j in range(X.shape[1]):
        Z[rest, j] = X[np.roll(rest, j), j]
    return Z


class Interrupted(Exception):
    pass


def raise_interrupted(state):
    raise Interrupted


def arguments(model, X):
    return (X, data(7, n=len(X))[:, :5] + X[:, :5]) if isinstance(model, SparseCCA) else (X,)


def interrupt(model, *given, **how):
    with pytest.raises(Interrupted):
        clone(model).set_params(callback=raise_interrupted).fit(*given, **how)
    assert Path(model.checkpoint).exists()


def assert_refused(model, *given, **how):
    before = Path(model.checkpoint).read_bytes()
    with pytest.raises(ValueError, match=r"state\.npz belongs to another fit"):
        clone(model).fit(*given, **how)
    assert Path(model.checkpoint).read_bytes() == before


# --- other data -----------------------------------------------------------------------------------


def test_data_that_a_sample_does_not_tell_apart_are_refused(model):
    X = np.rint(10 * data(n=64))  # so that the mean is the same to the last digit
    Z = look_alike(X)
    assert np.array_equal(Z.mean(axis=0), X.mean(axis=0))
    interrupt(model, *arguments(model, X))
    assert_refused(model, *arguments(model, Z))


@pytest.mark.parametrize("size", [1.0, 1e-120, 1e140])
def test_one_cell_or_one_offset_more_is_refused(model, size):
    X = data() * size
    if isinstance(model, SparseCCA) and size != 1.0:
        size, X = 1.0, data()  # it takes data of ordinary size
    interrupt(model, *arguments(model, X))
    changed = X.copy()
    changed[33, 4] += 1e-6 * size
    assert_refused(model, *arguments(model, changed))
    changed = X.copy()
    changed[:, 4] += 1e-6 * size
    assert_refused(model, *arguments(model, changed))


def test_the_other_side_of_a_pair_is_looked_at_too(tmp_path):
    model = clone(FITS["canonical"]).set_params(checkpoint=tmp_path / "state.npz")
    X, Y = np.rint(10 * data(n=64)), np.rint(10 * data(7, n=64))
    interrupt(model, X, Y)
    assert_refused(model, X, look_alike(Y))


@pytest.mark.parametrize("name", MISSING_TAKEN)
def test_other_missing_cells_and_other_weights_are_refused(model):
    X, weight = data(), np.linspace(1, 2, 60)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    row, column = np.argwhere(~np.isnan(X))[50]
    interrupt(model, X, sample_weight=weight)
    assert_refused(model, X, sample_weight=weight[::-1])
    for other in (np.nan, X[row, column] + 1e-6):
        changed = X.copy()
        changed[row, column] = other
        assert_refused(model, changed, sample_weight=weight)
    # An empty cell that is filled with what empty cells are counted as, in whatever way that is done.
    for other in (0.0, np.nanmean(X[:, 0]), np.nan_to_num(X[:, 0]).mean()):
        changed = X.copy()
        changed[np.argmax(np.isnan(X[:, 0])), 0] = other
        assert_refused(model, changed, sample_weight=weight)
    clone(model).fit(X, sample_weight=weight)
    assert not Path(model.checkpoint).exists()


def test_arrays_among_the_parameters_are_looked_at_to_the_last_digit(tmp_path):
    alpha = np.array([0.1, 0.2])
    model = SparsePCA(2, formulation="dictionary", alpha=alpha, checkpoint=tmp_path / "state.npz", random_state=0)
    interrupt(model, data())
    assert_refused(model.set_params(alpha=alpha * [1.0, 1.0 + 1e-12]), data())


def test_long_arrays_among_the_parameters_are_looked_at_in_the_middle_too(tmp_path):
    """NumPy prints three numbers at each end of them."""
    groups = np.arange(1200) // 2
    model = SparsePCA(1, nonzeros=2, groups=groups, checkpoint=tmp_path / "state.npz", random_state=0)
    X = np.random.default_rng(0).standard_normal((20, 1200))
    interrupt(model, X)
    assert_refused(model.set_params(groups=np.where(groups == 300, 299, groups)), X)


@pytest.mark.parametrize("name", MISSING_TAKEN)
def test_one_offset_more_is_refused_where_cells_are_missing_elsewhere(model):
    X = data()
    X[::7, 2] = np.nan
    interrupt(model, X)
    X[:, 4] += 1e-6
    assert_refused(model, X)


# --- the same data --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1.0, 1e140])
def test_the_same_data_in_other_blocks_go_on(name, model, size):
    if name == "canonical" and size != 1.0:
        size = 1.0
    X = data() * size
    interrupt(model, *(as_rows(part, block_rows=7) for part in arguments(model, X)))
    seen = []
    with threadpoolctl.threadpool_limits(1):
        resumed = clone(model).set_params(callback=lambda state: seen.append(state.iteration)).fit(*arguments(model, X))
    assert not Path(model.checkpoint).exists()
    assert not seen or seen[0] > 1
    direct = clone(model).set_params(checkpoint=None).fit(*arguments(model, X))
    which = "components_" if hasattr(direct, "components_") else "weights_"
    scale = np.abs(getattr(direct, which)).max()
    assert np.allclose(getattr(resumed, which), getattr(direct, which), atol=1e-3 * scale)


def test_a_generator_that_is_another_object_goes_on(tmp_path):
    """As it is in another process; it prints its address."""
    path, seeds = tmp_path / "state.npz", [np.random.RandomState(0) for _ in range(2)]
    with pytest.raises(Interrupted):
        PCA(3, solver="krylov", checkpoint=path, random_state=seeds[0], callback=raise_interrupted).fit(data())
    assert path.exists()
    PCA(3, solver="krylov", checkpoint=path, random_state=seeds[1]).fit(data())
    assert not path.exists()


# --- damaged files --------------------------------------------------------------------------------


DAMAGES = {
    "an array cut": lambda value: value.reshape(-1)[:-1] if value.size > 1 else np.zeros(3),
    "another shape": lambda value: value[None],
    "another type": lambda value: value.astype(complex),
    "not a number": lambda value: np.full(value.shape, np.nan),
    "one number changed": lambda value: np.where(np.cumsum(np.isfinite(value)).reshape(value.shape) == 1, 0.123, value),
    "left out": None,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_checkpoint_whose_arrays_are_damaged_cannot_be_read(model, damage):
    X = data()
    interrupt(model, *arguments(model, X))
    path = Path(model.checkpoint)
    with np.load(path) as file:
        whole = dict(file)
    change = DAMAGES[damage]
    for array in (name for name in whole if not name.startswith("_") and np.isfinite(whole[name]).any()):
        damaged = {name: value for name, value in whole.items() if name != array}
        if change is not None:
            damaged[array] = change(whole[array])
        np.savez(path, **damaged)
        with pytest.raises(ValueError, match=r"state\.npz cannot be read .*Delete it to start afresh"):
            clone(model).fit(*arguments(model, X))


def test_a_checkpoint_without_its_checksum_cannot_be_read(tmp_path):
    model = clone(FITS["krylov"]).set_params(checkpoint=tmp_path / "state.npz", random_state=0)
    interrupt(model, data())
    with np.load(model.checkpoint) as file:
        rest = {name: array for name, array in file.items() if name != "_checksum"}
    np.savez(model.checkpoint, **rest)
    with pytest.raises(ValueError, match=r"state\.npz cannot be read .*not those that were saved"):
        clone(model).fit(data())


# --- where there is no place for one --------------------------------------------------------------


PLACES = {
    "missing/state.npz": "cannot be written.*Make that folder first",
    "file/state.npz": "cannot be written",
    "/proc/state.npz": "cannot be written",
    ".": "is a folder: give the path of a file in it",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_checkpoint_that_cannot_be_written_is_said_before_work_starts(model, place, tmp_path):
    (tmp_path / "file").touch()
    read = []

    def shard():
        read.append(True)
        return data()

    model.set_params(checkpoint=tmp_path / place)
    with pytest.raises(ValueError, match=PLACES[place]):
        model.fit(*([shard] for _ in arguments(model, data())))
    assert not read


def test_a_checkpoint_is_a_path(model):
    with pytest.raises(TypeError, match="checkpoint must be the path of a file, or None, got 3"):
        model.set_params(checkpoint=3).fit(*arguments(model, data()))


def test_run_says_so_too(tmp_path):
    def solver(value):
        yield State(value, 0.0, 0.0, 1)

    with pytest.raises(ValueError, match="cannot be written"):
        run(solver, {}, tol=1.0, max_iter=1, checkpoint=tmp_path / "missing" / "state.npz")


def halving(value):
    """A solver whose residual halves at each step; it has no step left once that is small."""
    x = float(value["x"])
    while x > 1e-3:
        x /= 2
        yield State({"x": np.array(x)}, x, x, int(-np.log2(x)))


def test_a_run_interrupted_after_its_last_step_has_converged(tmp_path):
    def interrupt(state):
        if state.residual <= 0.3:
            raise KeyboardInterrupt

    start, how = {"x": np.array(1.0)}, {"tol": 0.3, "max_iter": 9, "checkpoint": tmp_path / "state"}
    with pytest.raises(KeyboardInterrupt):
        run(halving, start, callback=interrupt, **how)
    found = run(halving, start, **how)
    assert (found.status.code, found.n_iter) == ("converged", 2)  # and no further step, of which there may be none
    assert not (tmp_path / "state").exists()


def test_a_residual_that_is_no_number_is_no_convergence():
    def lost(value):
        yield State(value, 0.0, np.nan, 1)

    with pytest.warns(ConvergenceWarning):
        assert not run(lost, {"x": np.array(1.0)}, tol=1.0, max_iter=5).status
