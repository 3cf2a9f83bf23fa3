"""Dictionary learning's parts: sums over coded rows, sweeps over atoms, mini-batches, states that go on bit for bit."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from helpers import shards
from princomp._compiled import loops
from princomp.certificates.dictionary_learning import relative_gradient
from princomp.coders.lasso import Lasso
from princomp.coders.pursuit import Pursuit
from princomp.data import as_rows
from princomp.losses import Absolute, Huber
from princomp.penalties import L2Ball
from princomp.solvers import learning_atoms, learning_cells, learning_statistics
from princomp.solvers.learning_atoms import Atoms, improved
from princomp.solvers.learning_batch import batch
from princomp.solvers.learning_coded import Task, Worst
from princomp.solvers.learning_ksvd import ksvd
from princomp.solvers.learning_online import online
from princomp.solvers.learning_replacement import replaced
from princomp.solvers.learning_rows import Batches, turns
from princomp.solvers.learning_split import leading, split
from princomp.solvers.learning_start import TOGETHER, start
from princomp.solvers.learning_state import together
from princomp.solvers.learning_statistics import code_all, code_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 7)) @ RNG.normal(size=(7, 10))
D = X[:6] / np.linalg.norm(X[:6], axis=1, keepdims=True)
HOLES = np.where(RNG.random(X.shape) < 0.2, np.nan, X)


def summed(rows, **how):
    return code_all(as_rows(rows), Task(D, Lasso(0.5), worst=5, keep=True, **how))


# --- sums -----------------------------------------------------------------------------------------


def test_sums_are_those_of_the_codes():
    coded = summed(X)
    codes = together(coded.codes).toarray()
    np.testing.assert_allclose(coded.A, codes.T @ codes, atol=1e-10)
    np.testing.assert_allclose(coded.B, codes.T @ X, atol=1e-10)
    errors = ((X - codes @ D) ** 2).sum(axis=1)
    assert coded.objective == pytest.approx((errors.sum() / 2 + 0.5 * np.abs(codes).sum()) / 90, rel=1e-12)
    assert coded.objective_of(D) == pytest.approx(coded.objective, rel=1e-12)
    np.testing.assert_array_equal(coded.used, (codes != 0).sum(axis=0))
    assert set(coded.worst.numbers) == set(np.argsort(-errors)[:5])
    np.testing.assert_array_equal(coded.worst.rows, X[coded.worst.numbers])


@pytest.mark.parametrize("rows", [shards(X, (1, 30, 7)), scipy.sparse.csr_array(X)], ids=["shards", "csr"])
def test_sums_do_not_depend_on_blocks_or_storage(rows):
    one, other = summed(X), summed(rows)
    for name in ("A", "B", "squares", "errors", "penalties", "used"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), atol=1e-9)
    np.testing.assert_array_equal(other.worst.numbers[:5], one.worst.numbers[:5])


def test_compiled_sums_are_those_of_dense_products():
    gram, c, squares = D @ D.T, X @ D.T, (X**2).sum(axis=1)
    codes = Lasso(0.5).code(gram[None], c, squares)
    fast = learning_statistics.sums(codes, X, gram, c, squares)
    for one, other in zip(fast, learning_statistics.sums_of_dense(codes, X, gram, c, squares), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    omega = RNG.random(X.shape)
    fast = learning_cells.sums_by_cell(codes, X, omega)
    for one, other in zip(fast, learning_cells.sums_of_dense_cells(codes, X, omega), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_cells_that_are_all_there_give_what_rows_give():
    plain, by_cell = summed(X), summed(X, by_cell=True)
    assert by_cell.A.shape == (6, 6, 10)
    np.testing.assert_allclose(by_cell.A, np.repeat(plain.A[:, :, None], 10, axis=2), atol=1e-9)
    np.testing.assert_allclose(by_cell.B, plain.B, atol=1e-9)
    assert by_cell.objective == pytest.approx(plain.objective, rel=1e-10)
    np.testing.assert_allclose(
        improved(D, by_cell.A, by_cell.B, Atoms()), improved(D, plain.A, plain.B, Atoms()), atol=1e-9
    )


@pytest.mark.parametrize("loss", [None, Huber(0.5)], ids=["missing", "huber"])
def test_weighted_sums_touch_the_objective_and_lie_above(loss):
    coded = code_all(as_rows(HOLES), Task(D, Lasso(0.5), by_cell=True, loss=loss, keep=True))
    codes = together(coded.codes).toarray()
    rho = (lambda r: r**2) if loss is None else loss.values

    def true(atoms):
        return (np.nansum(rho(HOLES - codes @ atoms)) / 2 + 0.5 * np.abs(codes).sum()) / 90

    assert coded.objective_of(D) == pytest.approx(true(D), rel=1e-10)
    for _ in range(5):
        other = D + 0.1 * RNG.normal(size=D.shape)
        assert coded.objective_of(other) >= true(other) - 1e-10


# --- sweeps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("atoms", [Atoms(), Atoms("sphere"), Atoms("ball", True), Atoms("sphere", True)], ids=str)
def test_compiled_sweeps_are_those_of_one_atom_at_a_time(atoms):
    coded, start = summed(X), atoms.allowed(np.abs(D) if atoms.nonnegative else D)
    slow = start.copy()
    learning_atoms.sweep_one_by_one(slow, coded.A, coded.B, 0.0, atoms)
    np.testing.assert_allclose(improved(start, coded.A, coded.B, atoms), slow, atol=1e-12)


@pytest.mark.parametrize("atoms", [Atoms(), Atoms("sphere"), Atoms("ball", True), Atoms("sphere", True)], ids=str)
@pytest.mark.parametrize("loss", [None, Huber(0.5), Absolute(1e-3)], ids=["missing", "huber", "l1"])
def test_compiled_sweeps_with_weights_of_cells_are_those_of_one_atom_at_a_time(atoms, loss):
    start = atoms.allowed(np.abs(D) if atoms.nonnegative else D)
    coded = code_all(as_rows(HOLES), Task(start, Lasso(0.5), by_cell=True, loss=loss))
    slow = start.copy()
    learning_atoms.sweep_one_by_one(slow, coded.A, coded.B, 0.0, atoms)
    fast = improved(start, coded.A, coded.B, atoms)
    np.testing.assert_allclose(fast, slow, atol=1e-9)
    assert coded.objective_of(fast) <= coded.objective_of(start) * (1 + 1e-12)


@pytest.mark.parametrize("sphere", [False, True], ids=["ball", "sphere"])
@pytest.mark.parametrize("length", [0.1, 0.9, 3.0])
def test_the_nearest_atom_by_weights_is_nearer_than_any_other(sphere, length):
    rng = np.random.default_rng(4)
    for _ in range(20):
        v, weights = rng.normal(size=3), rng.uniform(0.01, 10, size=3)
        v *= length / np.linalg.norm(v)
        others = rng.normal(size=(20_000, 3))
        others /= np.linalg.norm(others, axis=1, keepdims=True)
        if not sphere:
            others = np.vstack([others, others * rng.random((20_000, 1))])
        found = v.copy()
        assert loops("learning_sums").nearest(found, weights, sphere)
        np.testing.assert_allclose(found, learning_atoms.nearest(v, weights, sphere=sphere), atol=1e-10)
        assert np.linalg.norm(found) <= 1 + 1e-12
        assert weights @ (found - v) ** 2 <= ((others - v) ** 2 @ weights).min() + 1e-12


def test_atoms_of_which_a_cell_never_counts_are_swept_over_all_the_same():
    coded = code_all(as_rows(np.where(np.arange(10) == 3, np.nan, X)), Task(D, Lasso(0.5), by_cell=True))
    for atoms in (Atoms(), Atoms("sphere")):
        fast, slow = improved(D, coded.A, coded.B, atoms), D.copy()
        learning_atoms.sweep_one_by_one(slow, coded.A, coded.B, 0.0, atoms)
        assert np.isfinite(fast).all()
        np.testing.assert_allclose(fast, slow, atol=1e-9)


def test_a_ball_by_object_is_the_ball_by_name():
    coded = summed(X)
    named, given = (improved(D, coded.A, coded.B, Atoms(kind)) for kind in ("ball", L2Ball(1.0)))
    np.testing.assert_allclose(given, named, atol=1e-12)


@pytest.mark.parametrize("atoms", [Atoms(), Atoms("sphere"), Atoms("ball", True)], ids=str)
def test_a_sweep_lowers_the_objective_and_ends_where_nothing_moves(atoms):
    coded, atom = summed(X), atoms.allowed(np.abs(D))
    before = coded.objective_of(atom)
    for _ in range(3000):
        atom = improved(atom, coded.A, coded.B, atoms)
        after = coded.objective_of(atom)
        assert after <= before + 1e-12 * abs(before)
        before = after
    slopes = learning_atoms.slopes(atom, coded.A, coded.B)
    assert relative_gradient(atom, slopes, np.diag(coded.A), coded.B, atoms.prox_each) < 1e-8


def test_an_atom_that_no_row_uses_stays():
    coded = summed(X)
    A, B = coded.A.copy(), coded.B.copy()
    A[2], A[:, 2], B[2] = 0.0, 0.0, 0.0
    np.testing.assert_array_equal(improved(D, A, B, Atoms())[2], D[2])


# --- mini-batches ---------------------------------------------------------------------------------


def test_every_row_has_its_turn_once_in_an_epoch():
    numbers = np.arange(10_000)
    for key in (None, 5, 6):
        counts = np.bincount(turns(numbers, 7, key, 10_000), minlength=7)
        assert counts.sum() == 10_000
        assert counts.min() > 1200
    assert not np.array_equal(turns(numbers, 7, 5, 10_000), turns(numbers, 7, 6, 10_000))


def test_mini_batches_are_the_same_whatever_is_held_at_a_time(monkeypatch):
    task = Task(D, Lasso(0.5))
    whole = Batches(as_rows(X), 16, 3)
    expected = [whole.coded(step, task).B for step in range(12)]
    monkeypatch.setattr("princomp.solvers.learning_rows.CHUNK_BYTES", 8 * 10 * 40)
    chunks = Batches(as_rows(shards(X, (13, 40))), 16, 3)
    for step, B in enumerate(expected):
        np.testing.assert_allclose(chunks.coded(step, task).B, B, atol=1e-10)
    np.testing.assert_allclose(sum(expected[:6]), summed(X).B, atol=1e-9)


# --- states ---------------------------------------------------------------------------------------

TASK = Task(D, Lasso(0.5))
GREEDY = Task(D, Pursuit(2))
ROBUST = Task(D, Lasso(0.5), by_cell=True, loss=Huber(0.5))
LACKING = Task(D, Lasso(0.5), by_cell=True)
SPHERE = Atoms("sphere")
MEAN = {"forgetting": None, "replace": True}
RUNS = {
    "batch": lambda value: batch(value, as_rows(X), TASK, Atoms(), replace=True),
    "batch, greedy": lambda value: batch(value, as_rows(X), GREEDY, Atoms(), replace=True),
    "batch, huber": lambda value: batch(value, as_rows(X), ROBUST, Atoms(), replace=True),
    "ksvd": lambda value: ksvd(value, as_rows(X), GREEDY, SPHERE, replace=True),
    "ksvd, exact": lambda value: ksvd(value, as_rows(X), GREEDY, SPHERE, replace=True, exact=True),
    "online": lambda value: online(value, Batches(as_rows(X), 4, 1), TASK, Atoms(), **MEAN),
    "online, missing": lambda value: online(value, Batches(as_rows(HOLES), 4, 1), LACKING, Atoms(), **MEAN),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_run_goes_on_bit_for_bit_from_each_state(run):
    states = list(itertools.islice(run({"D": D}), 5))
    for i, state in enumerate(states[:-1]):
        again = next(run(dict(state.value)))
        assert again.objective == states[i + 1].objective
        assert again.residual == states[i + 1].residual
        for name, array in states[i + 1].value.items():
            np.testing.assert_array_equal(again.value[name], array)


@pytest.mark.parametrize("name", [name for name in RUNS if "batch" in name])
def test_turns_never_raise_the_objective(name):
    objective = [state.objective for state in itertools.islice(RUNS[name]({"D": D}), 25)]
    assert np.all(np.diff(objective) <= 1e-10 * objective[0])


# --- replacement ----------------------------------------------------------------------------------


def test_dead_atoms_and_twins_give_way_to_the_worst_rows():
    atoms = np.eye(10)[:6]
    atoms[1] = atoms[0]
    rows = np.eye(10)[7:] * [[3.0], [2.0], [1.0]]
    worst = Worst(np.array([9.0, 4.0, 1.0]), np.arange(3), rows)
    weights = np.array([50.0, 40.0, 60.0, 0.0, 80.0, 70.0])
    new, which = replaced(atoms, weights, worst, Atoms())
    assert len(which) == 1, "not more than a tenth of the atoms at a time, but one"
    new, more = replaced(new, np.where(np.arange(6) == which[0], 50.0, weights), worst, Atoms())
    assert {*which, *more} <= {0, 1, 3}
    np.testing.assert_allclose(np.abs(new[which[0]]), np.eye(10)[7])


def test_atoms_that_serve_stay():
    worst = Worst(np.array([9.0]), np.arange(1), np.eye(10)[9:])
    assert not len(replaced(np.eye(10)[:6], np.full(6, 50.0), worst, Atoms())[1])


def near_twins(seed=0):
    """Signals of two atoms 40 degrees apart, and of three others, one at a time."""
    rng = np.random.default_rng(seed)
    angle = np.deg2rad(20)
    truth = np.eye(8)[:5]
    truth[:2] = [[np.cos(angle), np.sin(angle)] + [0.0] * 6, [np.cos(angle), -np.sin(angle)] + [0.0] * 6]
    return rng.normal(size=(300, 1)) * truth[rng.integers(0, 5, 300)], truth


def test_an_atom_that_stands_for_two_is_split_and_a_useless_one_gives_its_place():
    signals, truth = near_twins()
    atoms = np.vstack([np.eye(8)[0], np.eye(8)[7], truth[2:]])  # one between the two, one that no signal has
    new, which = split(atoms, as_rows(signals), Task(atoms, Pursuit(1)), Atoms("sphere"))
    assert set(which) == {0, 1}
    np.testing.assert_array_equal(new[2:], atoms[2:])
    assert (np.abs(new @ truth.T).max(axis=0) > 0.99).all()
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), 1.0)


def test_atoms_that_are_right_are_not_split():
    signals, truth = near_twins()
    assert not len(split(truth, as_rows(signals), Task(truth, Pursuit(1)), Atoms("sphere"))[1])


@pytest.mark.parametrize("how", [{"by_cell": True}, {"by_cell": True, "loss": Huber(0.1)}], ids=["missing", "huber"])
def test_cells_that_are_missing_or_wild_do_not_mislead_a_split(how):
    signals, truth = near_twins()
    rng = np.random.default_rng(1)
    signals[:, :7][rng.random((300, 7)) < 0.05] = np.nan if "loss" not in how else 30.0
    atoms = np.vstack([np.eye(8)[0], np.eye(8)[7], truth[2:]])
    new, which = split(atoms, as_rows(signals), Task(atoms, Pursuit(1), **how), Atoms("sphere"))
    assert set(which) == {0, 1}
    apart = new[0] - new[1]
    assert abs(apart[1]) > 0.99 * np.linalg.norm(apart), "along what parts the two"


def test_directions_of_residuals_are_those_of_the_slow_twin():
    rng = np.random.default_rng(0)
    left = rng.normal(size=(200, 21)) * np.linspace(3, 1, 21)
    left[:3] = 0.0
    used = scipy.sparse.random_array((200, 12), density=0.2, rng=rng).tocsc()
    used = scipy.sparse.hstack([used, scipy.sparse.csc_array((200, 1))], format="csc")  # an atom that no row uses
    how = (left, used.indptr, used.indices, 4, 20)
    gains, directions = loops("ksvd_pairs").leading(*how)
    slow_gains, slow_directions = leading(*how)
    np.testing.assert_allclose(gains, slow_gains, rtol=1e-12)
    np.testing.assert_allclose(directions, slow_directions, atol=1e-12)
    assert gains[:12].all()
    assert not gains[12]


def test_splits_do_not_depend_on_blocks():
    signals, truth = near_twins()
    atoms = np.vstack([np.eye(8)[0], np.eye(8)[7], truth[2:]])
    one, other = (
        split(atoms, as_rows(rows), Task(atoms, Pursuit(1)), Atoms("sphere"))[0]
        for rows in (signals, shards(signals, (1, 100, 199)))
    )
    np.testing.assert_array_equal(one, other)


def test_no_rows_are_coded_as_nothing():
    coded = code_rows(X[:0], np.arange(0), TASK)
    assert coded.count == 0
    assert not coded.A.any()


def test_no_two_atoms_of_a_start_are_parallel_however_many_are_compared_at_a_time():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(TOGETHER + 50, 6))
    X[1::2] = -3 * X[::2]
    X[4] = 0.0
    D = start(as_rows(X), TOGETHER, Atoms(), np.random.default_rng(1))
    cosines = np.abs(D @ D.T) - np.eye(len(D))
    assert D.shape == (TOGETHER, 6)
    assert cosines.max() <= 0.99 + 1e-12
    units = X[np.linalg.norm(X, axis=1) > 0]
    units = units / np.linalg.norm(units, axis=1, keepdims=True)
    assert (np.abs(D @ units.T).max(axis=1) > 1 - 1e-12).sum() >= 100  # rows come first
