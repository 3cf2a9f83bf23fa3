"""Dictionary learning on trial: what each method promises, asked from outside.

Sweeps over atoms, K-SVD and the objective are written down here anew from their formulae. Data are planted: atoms that
are known, signals of few of them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import princomp
from helpers import fitted_attributes, only_user_warnings, shards
from princomp import DictionaryLearning, sparse_encode
from princomp.coders.choice import as_coder
from princomp.losses import Huber
from princomp.penalties import L1, Box, ElasticNetBall, Groups, L1Ball, L2Ball, Lp, NonNegative, Sphere, Tree

# --- planted dictionaries -------------------------------------------------------------------------


def planted(seed, K=50, p=20, n=1500, nonzeros=3):
    """(truth, X): unit Gaussian atoms, signals of few of them with Gaussian coefficients, noise 20 dB below."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((K, p))
    truth /= np.linalg.norm(truth, axis=1, keepdims=True)
    codes = np.zeros((n, K))
    for row in codes:
        row[rng.choice(K, nonzeros, replace=False)] = rng.standard_normal(nonzeros)
    X = codes @ truth
    noise = rng.standard_normal(X.shape)
    return truth, X + noise * 0.1 * np.linalg.norm(X) / np.linalg.norm(noise)


def small(seed=0):
    return planted(seed, K=16, p=12, n=500, nonzeros=2)


def cosines(truth, D):
    """The largest |cosine| of each true atom with any that was found."""
    unit = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) for rows in (truth, D)]
    return np.abs(unit[0] @ unit[1].T).max(axis=1)


def found(truth, D):
    return float((cosines(truth, D) > 0.99).mean())


def degrees(truth, D):
    return np.degrees(np.arccos(np.minimum(cosines(truth, D), 1.0)))


def start(X, K, seed=0):
    """Unit rows of the data."""
    rows = X[np.random.default_rng(seed).choice(len(X), K, replace=False)]
    rows = np.nan_to_num(rows)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def steps(count, **how):
    """An estimator that makes so many iterations and stops."""
    return DictionaryLearning(**{"tol": 0.0, "max_iter": count, "random_state": 0} | how)


# --- one sweep, by its formula --------------------------------------------------------------------


def swept(D, codes, X, positive=False, sphere=False):
    """d_k <- project(d_k + (B_k - sum_l A_kl d_l) / A_kk), one atom after the other; A = a'a, B = a'x."""
    D, A, B = D.copy(), codes.T @ codes, codes.T @ X
    for k in range(len(D)):
        if A[k, k] > 0:
            d = D[k] + (B[k] - A[k] @ D) / A[k, k]
            d = np.maximum(d, 0) if positive else d
            norm = np.linalg.norm(d)
            D[k] = d / norm if sphere else d / max(norm, 1.0)
    return D


def assert_swept(atoms, D, codes, X, **how):
    """These atoms are what some number of sweeps, from 1 on, make of D."""
    apart = []
    for _ in range(50):
        D = swept(D, codes, X, **how)
        apart.append(np.abs(atoms - D).max())
    assert min(apart) < 1e-3, apart[:10]


LEARNT = {
    "l1": {"alpha": 0.15},
    "elastic net": {"penalty": "elastic-net", "alpha": 0.1, "l2": 0.1},
    "not negative": {"alpha": 0.1, "positive_code": True},
    "ols": {"nonzeros": 2},
    "omp": {"nonzeros": 2, "selection": "omp"},
}


def coding(how):
    """The same for `sparse_encode`."""
    return {{"positive_code": "positive"}.get(name, name): value for name, value in how.items()}


@pytest.mark.parametrize("how", LEARNT.values(), ids=LEARNT)
def test_one_batch_iteration_is_a_coding_and_some_sweeps(how):
    X = small()[1]
    D = start(X, 16)
    codes = sparse_encode(X, D, tol=1e-10, **coding(how)).toarray()
    model = steps(1, method="batch", dict_init=D, replace=False, **how).fit(X)
    assert_swept(model.components_, D, codes, X)


@pytest.mark.parametrize("how", LEARNT.values(), ids=LEARNT)
def test_one_online_step_of_all_rows_is_one_batch_sweep(how):
    X = small()[1]
    D = start(X, 16)
    batch = steps(1, method="batch", dict_init=D, replace=False, **how).fit(X)
    online = steps(1, method="online", batch_size=len(X), dict_init=D, replace=False, **how).fit(X)
    np.testing.assert_allclose(online.components_, batch.components_, atol=1e-8)


def test_positive_atoms_and_atoms_on_the_sphere_are_swept_so():
    X = np.abs(small()[1])
    D = start(X, 8)
    codes = sparse_encode(X, D, alpha=0.15, tol=1e-10).toarray()
    model = steps(1, method="batch", dict_init=D, replace=False, alpha=0.15, positive_dict=True).fit(X)
    assert_swept(model.components_, D, codes, X, positive=True)
    model = steps(1, method="batch", dict_init=D, replace=False, alpha=0.15, constraint="sphere").fit(X)
    assert_swept(model.components_, D, codes, X, sphere=True)


# --- K-SVD ----------------------------------------------------------------------------------------


def ksvd_sweep(D, codes, X):
    """Aharon 2006: for each atom the leading singular pair of what the rows that use it leave without it."""
    D, codes = D.copy(), codes.copy()
    for j in range(len(D)):
        rows = np.flatnonzero(codes[:, j])
        if len(rows):
            E = X[rows] - codes[rows] @ D + np.outer(codes[rows, j], D[j])
            U, values, V = np.linalg.svd(E, full_matrices=False)
            D[j], codes[rows, j] = V[0], values[0] * U[:, 0]
    return D, codes


def test_exact_ksvd_is_that_of_the_definition():
    X = small()[1]
    D = start(X, 16)
    codes = sparse_encode(X, D, nonzeros=2).toarray()
    expected = ksvd_sweep(D, codes, X)[0]
    model = steps(1, method="ksvd", update="exact", nonzeros=2, dict_init=D, replace=False).fit(X)
    np.testing.assert_allclose(np.abs((model.components_ * expected).sum(axis=1)), 1, atol=1e-6)


@pytest.mark.parametrize("update", ["exact", "approximate"])
def test_ksvd_never_raises_the_error(update):
    X = small(1)[1]
    model = steps(15, method="ksvd", update=update, nonzeros=2, dict_init=start(X, 16), replace=False).fit(X)
    objective = np.array(model.result_.history.objective)
    assert np.all(np.diff(objective) <= 1e-9 * objective[0])
    assert objective[-1] < 0.5 * objective[0]
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("update", ["exact", "approximate"])
def test_ksvd_sees_negative_coefficients(update):
    """Rows that use an atom are those whose coefficient is not zero, of either sign."""
    rng = np.random.default_rng(0)
    d, e = np.linalg.qr(rng.standard_normal((8, 2)))[0].T
    X = np.outer(-rng.uniform(1, 2, 60), d) + 0.02 * rng.standard_normal((60, 8))
    nearby = d + 0.4 * e
    model = steps(3, method="ksvd", update=update, nonzeros=1, dict_init=[nearby / np.linalg.norm(nearby)]).fit(X)
    assert abs(model.components_[0] @ d) > 0.999
    assert model.transform(X).max() * np.sign(model.components_[0] @ d) < 0


# --- the objective never rises --------------------------------------------------------------------

BLOCKS = [[0, 1], [2, 3], [4]]
CODINGS = {
    "l1": {"alpha": 0.1},
    "l1, heavy": {"alpha": 5.0},
    "elastic net": {"penalty": "elastic-net", "alpha": 0.1, "l2": 0.2},
    "not negative": {"alpha": 0.1, "positive_code": True},
    "count": {"nonzeros": 2},
    "count, omp": {"nonzeros": 1, "selection": "omp"},
    "error": {"error": 0.5},
    "count and error": {"nonzeros": 2, "error": 0.1},
    "groups": {"penalty": Groups(0.1, BLOCKS)},
    "tree": {"penalty": Tree(0.1, [[0, 1, 2, 3, 4], [1, 2], [4]])},
    "lp": {"penalty": Lp(0.1, 0.5)},
    "l0": {"penalty": "l0", "alpha": 0.05},
}
CONSTRAINTS = {
    "ball": "ball",
    "sphere": "sphere",
    "another ball": L2Ball(0.5),
    "not negative": NonNegative(L2Ball(1.0)),
    "l1 ball": L1Ball(1.0),
    "elastic net": ElasticNetBall(0.5),
    "box": Box(-0.3, 0.4),
}
LOSSES = {"l2": "l2", "huber": "huber", "huber by object": Huber(0.5), "l1": "l1"}


def assert_never_rises(model, X):
    """But for rounding, of which 1/2 |x|^2, from which it is taken away, has its share."""
    objective = np.array(model.result_.history.objective)
    rounding = 1e-8 * np.abs(objective[:-1]) + 1e-14 * np.nansum(X**2) / len(X)
    assert np.isfinite(objective).all()
    assert np.all(np.diff(objective) <= rounding), objective


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    shape=st.tuples(st.integers(2, 40), st.integers(1, 8)),
    how=st.sampled_from(list(CODINGS)),
    constraint=st.sampled_from(list(CONSTRAINTS)),
    missing=st.sampled_from([0.0, 0.0, 0.3]),
    replace=st.booleans(),
)
@example(seed=34, shape=(34, 2), how="l1, heavy", constraint="ball", missing=0.0, replace=False)  # codes by a gap
def test_the_batch_objective_never_rises(seed, shape, how, constraint, missing, replace):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * 10 ** rng.uniform(-0.5, 0.5)
    X[rng.random(shape) < missing] = np.nan
    model = steps(
        6, n_components=5, method="batch", constraint=CONSTRAINTS[constraint], replace=replace, **CODINGS[how]
    )
    with only_user_warnings():
        model.fit(X)
    assert_never_rises(model, X)


@settings(deadline=None, max_examples=8)
@given(
    seed=st.integers(0, 2**31),
    how=st.sampled_from(["l1", "not negative", "count", "groups"]),
    loss=st.sampled_from(list(LOSSES)[1:]),
    missing=st.sampled_from([0.0, 0.2]),
)
def test_the_batch_objective_of_other_losses_never_rises(seed, how, loss, missing):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 6))
    X[rng.random(X.shape) < 0.05] *= 20
    X[rng.random(X.shape) < missing] = np.nan
    with only_user_warnings():
        model = steps(5, n_components=5, method="batch", loss=LOSSES[loss], **CODINGS[how]).fit(X)
    assert_never_rises(model, X)


def test_the_objective_is_the_one_of_the_formula():
    """1/2 |x - a D|^2 + alpha |a|_1, with the best codes: lower with every iteration, as measured from outside."""
    X = small(2)[1]
    D = start(X, 16)

    def worth(atoms):
        codes = sparse_encode(X, atoms, alpha=0.15, tol=1e-9).toarray()
        return ((X - codes @ atoms) ** 2).sum() / 2 + 0.15 * np.abs(codes).sum()

    models = [steps(count, method="batch", dict_init=D, alpha=0.15, replace=False).fit(X) for count in (1, 2, 4, 8)]
    measured = [worth(D), *(worth(model.components_) for model in models)]
    assert np.all(np.diff(measured) < 0)
    stated = models[-1].result_.objective
    assert min(abs(stated / measured[-1] - 1), abs(stated * len(X) / measured[-1] - 1)) < 0.05


# --- atoms that are found -------------------------------------------------------------------------

WAYS = {
    "ksvd": {"method": "ksvd", "nonzeros": 3},
    "ksvd, exact": {"method": "ksvd", "nonzeros": 3, "update": "exact"},
    "online": {"method": "online", "alpha": 0.15},
    "batch": {"method": "batch", "alpha": 0.15},
}


@pytest.mark.parametrize("way", ["ksvd", "online"])
def test_planted_atoms_are_found(way):
    how = WAYS[way] | ({"nonzeros": 2} if "nonzeros" in WAYS[way] else {})
    shares = []
    for seed in range(3):
        truth, X = small(seed)
        with only_user_warnings():
            shares.append(found(truth, DictionaryLearning(16, random_state=seed, **how).fit(X).components_))
    assert np.median(shares) >= 0.9, shares


@pytest.mark.soak
@pytest.mark.parametrize("way", ["ksvd", "online"])
def test_96_of_100_planted_atoms_are_found_in_the_median(way):
    shares = []
    for seed in range(10):
        truth, X = planted(seed)
        with only_user_warnings():
            shares.append(found(truth, DictionaryLearning(50, random_state=seed, **WAYS[way]).fit(X).components_))
    assert np.median(shares) >= 0.96, shares


def _corrupted(X, seed):
    rng = np.random.default_rng(seed)
    cells = rng.random(X.shape) < 0.05
    return np.where(cells, X + rng.choice([-1, 1], X.shape) * 10 * X.std(), X)


def _found_with_corrupted_cells(loss, seed, make, **how):
    truth, X = make(seed)
    with only_user_warnings():
        model = DictionaryLearning(len(truth), loss=loss, random_state=seed, **how).fit(_corrupted(X, seed))
    return found(truth, model.components_)


def test_huber_resists_wild_cells_where_squares_do_not():
    how = {"method": "batch", "alpha": 0.15, "max_iter": 40}
    robust, plain = (_found_with_corrupted_cells(loss, 0, small, **how) for loss in ("huber", "l2"))
    assert robust >= 0.75
    assert plain <= robust - 0.25


@pytest.mark.soak
def test_huber_resists_wild_cells_on_the_planted_problem():
    how = {"method": "online", "alpha": 0.15}
    robust, plain = (
        [_found_with_corrupted_cells(loss, s, planted, **how) for s in range(5)] for loss in ("huber", "l2")
    )
    assert np.median(robust) >= 0.8, robust
    assert np.median(plain) <= 0.5, plain


def _turned_by_missing_cells(make, seed, **how):
    """Degrees between the atoms of complete data and those of data with 20 % of the cells missing."""
    truth, X = make(seed)
    holes = np.where(np.random.default_rng(seed).random(X.shape) < 0.2, np.nan, X)
    with only_user_warnings():
        complete, missing = (
            DictionaryLearning(len(truth), random_state=seed, **how).fit(rows).components_ for rows in (X, holes)
        )
    return float(np.median(degrees(complete, missing)))


@pytest.mark.parametrize(
    "how",
    [{"method": "batch", "alpha": 0.15, "max_iter": 100}, {"method": "online", "alpha": 0.15}, {"nonzeros": 2}],
    ids=["batch", "online", "online, count"],
)
def test_missing_cells_turn_atoms_by_a_few_degrees(how):
    assert np.median([_turned_by_missing_cells(small, seed, **how) for seed in range(2)]) <= 5


@pytest.mark.soak
@pytest.mark.parametrize("way", [way for way in WAYS if "exact" not in way])
def test_a_fifth_of_cells_missing_turns_the_planted_atoms_by_5_degrees_at_most(way):
    assert np.median([_turned_by_missing_cells(planted, seed, **WAYS[way]) for seed in range(5)]) <= 5


def test_exact_steps_of_ksvd_ask_for_complete_data():
    holes = np.where(np.arange(12) == 3, np.nan, small(0)[1])
    with pytest.raises(ValueError, match="is for complete data"):
        DictionaryLearning(4, **WAYS["ksvd, exact"]).fit(holes)


# --- single precision -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        {"method": "batch", "alpha": 0.15},
        {"method": "online", "alpha": 0.15, "batch_size": 100},
        {"method": "ksvd", "nonzeros": 2},
    ],
    ids=lambda how: how["method"],
)
def test_single_precision_finds_the_same_objective(how):
    X = small(3)[1]
    D = start(X, 16)
    worth = []
    for dtype in (np.float32, np.float64):
        model = steps(10, dict_init=D.astype(dtype), **how).fit(X.astype(dtype))
        assert model.components_.dtype == dtype
        atoms = model.components_.astype(float)
        rest = {name: value for name, value in how.items() if name in ("alpha", "nonzeros")}
        codes = sparse_encode(X, atoms, **rest).toarray()
        price = how.get("alpha", 0.0) * np.abs(codes).sum()
        worth.append(((X - codes @ atoms) ** 2).sum() / 2 + price)
    assert worth[0] == pytest.approx(worth[1], rel=1e-4)


# --- streams --------------------------------------------------------------------------------------


def test_partial_fit_makes_one_step_for_each_batch():
    """One call with one batch is one step, not a loop of its own."""
    X = small(4)[1][:200]
    D = start(X, 16)
    once = DictionaryLearning(16, alpha=0.15, batch_size=200, dict_init=D, replace=False, random_state=0)
    once.partial_fit(X)
    step = steps(1, alpha=0.15, batch_size=200, dict_init=D, replace=False).fit(X)
    np.testing.assert_allclose(once.components_, step.components_, atol=1e-10)
    assert once.n_iter_ == 1
    codes = sparse_encode(X, D, alpha=0.15, tol=1e-10).toarray()
    assert_swept(once.components_, D, codes, X)


def test_a_stream_learns():
    truth, X = planted(5, K=16, p=12, n=4000, nonzeros=2)
    model = DictionaryLearning(16, alpha=0.15, random_state=0)
    shares = []
    for _ in range(3):
        for at in range(0, len(X), 100):
            model.partial_fit(X[at : at + 100])
        shares.append(found(truth, model.components_))
    assert shares[-1] >= 0.85, shares
    assert model.transform(X[:3]).shape == (3, 16)


def test_a_stream_may_have_fewer_rows_than_atoms_at_a_time():
    X = small(6)[1]
    model = DictionaryLearning(16, alpha=0.15, random_state=0)
    for at in range(0, 120, 3):
        model.partial_fit(X[at : at + 3])
    assert model.components_.shape == (16, 12)
    assert np.isfinite(model.components_).all()
    assert np.linalg.norm(model.components_, axis=1).max() <= 1 + 1e-12
    with pytest.raises(ValueError, match="12"):
        model.partial_fit(X[:3, :5])


def test_fit_begins_anew_and_partial_fit_goes_on():
    X = small(7)[1]
    model = steps(3, n_components=16, alpha=0.15, batch_size=100).fit(X)
    first = model.components_.copy()
    model.partial_fit(X[:100])
    assert not np.array_equal(first, model.components_)
    np.testing.assert_array_equal(model.fit(X).components_, first)


@pytest.mark.parametrize("method", ["online", "batch", "ksvd"])
@pytest.mark.parametrize("sizes", [(1, 3, 500), (100,), (37, 64)], ids=str)
def test_batches_are_independent_of_how_rows_are_stored(method, sizes):
    X = small(8)[1]
    how = {"nonzeros": 2} if method == "ksvd" else {"alpha": 0.15}
    model = steps(4, n_components=16, method=method, batch_size=64, **how)
    whole, cut = clone(model).fit(X), clone(model).fit(shards(X, sizes))
    np.testing.assert_allclose(cut.components_, whole.components_, atol=1e-8)


def test_batch_size_and_forgetting_change_what_is_learnt():
    X = small(9)[1]
    plain = steps(4, n_components=16, alpha=0.15, batch_size=64).fit(X).components_
    assert not np.allclose(plain, steps(4, n_components=16, alpha=0.15, batch_size=32).fit(X).components_)


def test_the_same_seed_gives_the_same_atoms():
    X = small(10)[1]
    for method in ("online", "batch", "ksvd"):
        first, again = (steps(4, n_components=16, method=method, nonzeros=2).fit(X).components_ for _ in range(2))
        np.testing.assert_array_equal(first, again)


def test_a_time_budget_ends_a_fit_that_would_go_on_forever():
    X = small(11)[1]
    begin = time.monotonic()

    def guard(state):
        assert time.monotonic() - begin < 60

    for method in ("online", "batch", "ksvd"):
        begin = time.monotonic()
        model = steps(10**9, n_components=16, method=method, nonzeros=2, max_seconds=0.2, callback=guard)
        with only_user_warnings():
            model.fit(X)
        assert model.components_.shape == (16, 12)


# --- interrupted ----------------------------------------------------------------------------------


class Interrupted(Exception):
    pass


class After:
    def __init__(self, states):
        self.states, self.seen = states, 0

    def __call__(self, state):
        self.seen += 1
        if self.seen == self.states:
            raise Interrupted


RESUMED = {
    "online": {"method": "online", "alpha": 0.15, "batch_size": 64},
    "online, missing": {"method": "online", "alpha": 0.15, "batch_size": 64},
    "batch": {"method": "batch", "alpha": 0.15},
    "batch, count": {"method": "batch", "nonzeros": 2},
    "ksvd": {"method": "ksvd", "nonzeros": 2},
    "ksvd, exact": {"method": "ksvd", "nonzeros": 2, "update": "exact"},
}


@pytest.mark.parametrize("name", RESUMED)
@pytest.mark.parametrize("after", [1, 4])
def test_an_interrupted_fit_goes_on_bit_for_bit(name, after, tmp_path):
    X = small(12)[1]
    if "missing" in name:
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    model = steps(8, n_components=16, **RESUMED[name])
    direct = clone(model).fit(X)
    path = tmp_path / "state.npz"
    with pytest.raises(Interrupted):
        clone(model).set_params(checkpoint=path, callback=After(after)).fit(X)
    assert path.exists()
    seen = After(-1)
    resumed = clone(model).set_params(checkpoint=path, callback=seen).fit(X)
    np.testing.assert_array_equal(resumed.components_, direct.components_)
    assert 0 < seen.seen <= 8 - after


def test_an_interrupted_estimator_is_unfitted():
    for method in ("online", "batch", "ksvd"):
        model = steps(8, n_components=16, method=method, nonzeros=2, callback=After(2))
        with pytest.raises(Interrupted):
            model.fit(small()[1])
        assert fitted_attributes(model) == []


CHILD = """
import json, signal, sys
import numpy as np
from princomp import DictionaryLearning, sparse_encode

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would ignore it
rng = np.random.default_rng(0)
X = rng.standard_normal((60_000, 64))
D = rng.standard_normal((256, 64))
forever = {"tol": 0.0, "max_iter": 10**9, "random_state": 0}
JOBS = {
    "online": lambda X: DictionaryLearning(256, alpha=0.5, **forever).fit(X),
    "batch": lambda X: DictionaryLearning(256, method="batch", alpha=0.5, **forever).fit(X),
    "ksvd": lambda X: DictionaryLearning(256, method="ksvd", nonzeros=8, **forever).fit(X),
    "lasso": lambda X: [sparse_encode(X, D, alpha=1e-2) for _ in range(1000)],
    "pursuit": lambda X: [sparse_encode(X, D, nonzeros=40) for _ in range(1000)],
}
for how in ({"alpha": 0.5}, {"method": "batch", "alpha": 0.5}, {"method": "ksvd", "nonzeros": 2}):
    DictionaryLearning(4, tol=0.0, max_iter=2, **how).fit(X[:50])  # what is compiled is compiled
sparse_encode(X[:5], D, alpha=1e-2), sparse_encode(X[:5], D, nonzeros=4)
for name in sys.argv[1:]:
    print("ready", flush=True)
    try:
        JOBS[name](X)
        print(json.dumps("finished"), flush=True)
    except KeyboardInterrupt:
        print(json.dumps("KeyboardInterrupt"), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to a child on Windows")
def test_ctrl_c_ends_learning_and_coding_within_a_second():
    names = ["online", "batch", "ksvd", "lasso", "pursuit"]
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, *names],
        env=os.environ | {"PYTHONPATH": str(Path(princomp.__file__).parents[1])},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    delays = {}
    try:
        for name in names:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
            time.sleep(0.5)
            sent = time.perf_counter()
            process.send_signal(signal.SIGINT)
            assert json.loads(process.stdout.readline()) == "KeyboardInterrupt", name
            delays[name] = time.perf_counter() - sent
    finally:
        process.kill()
        process.communicate()
    assert max(delays.values()) < 1, delays


# --- what is given is honoured --------------------------------------------------------------------


@pytest.mark.parametrize("method", ["online", "batch", "ksvd"])
def test_a_dictionary_to_begin_with_is_honoured_and_never_changed(method):
    truth, X = small(13)
    how = {"nonzeros": 2} if method == "ksvd" else {"alpha": 0.05}
    given = truth.copy()
    given.flags.writeable = False
    model = steps(1, method=method, dict_init=given, batch_size=500, **how).fit(X)
    np.testing.assert_array_equal(given, truth)
    assert model.components_.shape == truth.shape
    assert np.diag(model.components_ @ truth.T).min() > 0.95  # the same atoms in the same places
    assert model.dict_init is given


def test_a_dictionary_to_begin_with_says_how_many_atoms_there_are():
    truth, X = small(13)
    assert steps(2, alpha=0.1, dict_init=truth[:7]).fit(X).components_.shape == (7, 12)
    with pytest.raises(ValueError, match="dict_init"):
        DictionaryLearning(5, dict_init=truth).fit(X)
    with pytest.raises(ValueError, match="dict_init"):
        DictionaryLearning(dict_init=truth[:, :4]).fit(X)
    spoilt = truth.copy()
    spoilt[2, 2] = np.nan
    with pytest.raises(ValueError, match="dict_init"):
        DictionaryLearning(dict_init=spoilt).fit(X)


def test_a_dictionary_outside_of_the_constraint_is_brought_inside():
    truth, X = small(13)
    model = steps(1, method="batch", alpha=0.1, dict_init=7 * truth).fit(X)
    assert np.linalg.norm(model.components_, axis=1).max() <= 1 + 1e-12


@dataclass(frozen=True)
class Halves:
    """A constraint of one's own: the second half of each atom is zero, and no atom is longer than 1."""

    def value(self, w):
        return 0.0 if not np.any(w[len(w) // 2 :]) and np.all((w**2).sum(axis=0) <= 1 + 1e-9) else np.inf

    def prox(self, w, step):
        z = np.where((np.arange(len(w)) < len(w) // 2).reshape(-1, *[1] * (w.ndim - 1)), w, 0.0)
        return z / np.maximum(np.sqrt((z**2).sum(axis=0)), 1.0)

    def times(self, number):
        return self


ATOMS = {  # what is asked for, what all atoms must then be
    "ball": ({"constraint": "ball"}, lambda D: np.linalg.norm(D, axis=1).max() <= 1 + 1e-12),
    "sphere": ({"constraint": "sphere"}, lambda D: np.allclose(np.linalg.norm(D, axis=1), 1, atol=1e-9)),
    "sphere, by object": ({"constraint": Sphere(2.0)}, lambda D: np.allclose(np.linalg.norm(D, axis=1), 2, atol=1e-9)),
    "not negative": ({"positive_dict": True}, lambda D: D.min() >= 0 and np.linalg.norm(D, axis=1).max() <= 1 + 1e-12),
    "not negative, by object": ({"constraint": NonNegative(L2Ball(1.0))}, lambda D: D.min() >= 0),
    "l1 ball": ({"constraint": L1Ball(1.0)}, lambda D: np.abs(D).sum(axis=1).max() <= 1 + 1e-9 and np.any(D == 0)),
    "elastic-net ball": (
        {"constraint": ElasticNetBall(0.7)},
        lambda D: ((D**2).sum(axis=1) + 0.7 * np.abs(D).sum(axis=1)).max() <= 1 + 1e-9 and np.any(D == 0),
    ),
    "box": ({"constraint": Box(-0.2, 0.3)}, lambda D: D.min() >= -0.2 and D.max() <= 0.3),
    "one's own": ({"constraint": Halves()}, lambda D: not D[:, 6:].any() and D[:, :6].any()),
}


@pytest.mark.parametrize("method", ["online", "batch"])
@pytest.mark.parametrize(("how", "kept"), ATOMS.values(), ids=ATOMS)
def test_constraints_on_atoms_are_kept(method, how, kept):
    X = small(14)[1]
    model = steps(5, n_components=10, method=method, alpha=0.1, batch_size=100, **how).fit(X)
    assert kept(model.components_), model.components_
    assert model.components_.any()


@pytest.mark.parametrize("constraint", ["cube", 3.0])
def test_what_is_no_constraint_is_refused(constraint):
    with pytest.raises((ValueError, TypeError), match="constraint"):
        DictionaryLearning(4, constraint=constraint).fit(small()[1])


@pytest.mark.parametrize("method", ["online", "batch"])
@pytest.mark.parametrize("name", [name for name in CODINGS if "heavy" not in name])
def test_any_coder_serves_inside_a_fit(method, name):
    """The objective of what was learnt is lower; with a bound on the error, what exceeds it."""
    X, how = small(15)[1], CODINGS[name]
    D = start(X, 5)
    model = steps(4, n_components=5, method=method, dict_init=D, batch_size=250, **how).fit(X)

    def worth(atoms):
        codes = sparse_encode(X, atoms, **coding(how))
        squares = ((X - codes @ atoms) ** 2).sum(axis=1)
        excess = np.maximum(squares - how.get("error", 0.0) ** 2, 0)
        return excess.sum() / 2 + as_coder(**coding(how)).penalties(codes).sum()

    assert worth(model.components_) < worth(D)
    codes = sparse_encode(X[:9], model.components_, **coding(how)).toarray()
    np.testing.assert_allclose(model.transform(X[:9]), codes, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("method", ["online", "batch"])
def test_any_loss_serves_inside_a_fit(loss, method):
    X = small(16)[1]
    model = steps(3, n_components=8, method=method, loss=loss, alpha=0.1).fit(X)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.transform(X)).all()


# --- codes of new rows ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learnt():
    return steps(5, n_components=16, alpha=0.15, batch_size=100).fit(small(17)[1])


def test_transform_codes_as_the_fit_did(learnt):
    X = small(18)[1][:20]
    codes = learnt.transform(X)
    assert isinstance(codes, np.ndarray)
    np.testing.assert_allclose(codes, sparse_encode(X, learnt.components_, alpha=0.15).toarray(), atol=1e-5)
    np.testing.assert_allclose(learnt.inverse_transform(codes), codes @ learnt.components_, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"transform_alpha": 0.5}, {"alpha": 0.5}),
        ({"transform_nonzeros": 3}, {"nonzeros": 3}),
        ({"transform_error": 0.4}, {"error": 0.4}),
        ({"transform_penalty": L1(0.3)}, {"penalty": L1(0.3)}),
        ({"transform_penalty": Lp(0.1, 0.5)}, {"penalty": Lp(0.1, 0.5)}),
        ({"transform_penalty": L1(0.3), "transform_nonzeros": 2}, {"nonzeros": 2}),
    ],
    ids=str,
)
def test_transform_may_code_in_another_way(learnt, given, expected):
    X = small(18)[1][:20]
    model = clone(learnt).set_params(**given).fit(small(17)[1])
    np.testing.assert_allclose(model.components_, learnt.components_, atol=1e-12)  # the fit does not see it
    codes = sparse_encode(X, model.components_, **expected).toarray()
    np.testing.assert_allclose(model.transform(X), codes, atol=1e-5)


def test_counts_come_before_penalties_in_the_fit_too():
    X = small(19)[1]
    count = steps(4, n_components=16, nonzeros=2).fit(X)
    both = steps(4, n_components=16, nonzeros=2, penalty=L1(9.0), alpha=7.0).fit(X)
    np.testing.assert_array_equal(count.components_, both.components_)
    assert np.count_nonzero(both.transform(X), axis=1).max() <= 2
    a_name = steps(4, n_components=16, penalty="l1", alpha=0.2).fit(X)
    an_object = steps(4, n_components=16, penalty=L1(0.2), alpha=77.0).fit(X)
    np.testing.assert_allclose(an_object.components_, a_name.components_, atol=1e-3)


def test_codes_may_be_sparse(learnt):
    X = small(18)[1][:20]
    codes = clone(learnt).set_params(sparse_output=True).fit(small(17)[1]).transform(X)
    assert scipy.sparse.issparse(codes)
    assert codes.format == "csr"
    np.testing.assert_allclose(codes.toarray(), learnt.transform(X), atol=1e-12)


def test_positive_codes_of_a_fit_are_positive_and_right():
    X = np.abs(small(20)[1])
    model = steps(5, n_components=8, alpha=0.1, positive_code=True, positive_dict=True).fit(X)
    codes = model.transform(X)
    assert codes.min() >= 0
    slopes = (X - codes @ model.components_) @ model.components_.T
    assert slopes.max() <= 0.1 + 1e-2
    assert np.abs(slopes[codes > 0] - 0.1).max() <= 1e-2


def test_saved_models_code_as_before(learnt, tmp_path):
    X = small(18)[1][:20]
    princomp.save(learnt, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    np.testing.assert_array_equal(again.components_, learnt.components_)
    np.testing.assert_array_equal(again.transform(X), learnt.transform(X))
    assert again.get_params()["alpha"] == 0.15


@pytest.mark.parametrize("penalty", [Lp(0.1, 0.5), Groups(0.1, BLOCKS), "l0"], ids=str)
def test_saved_models_keep_penalties_and_constraints(penalty, tmp_path):
    X = small(18)[1]
    model = steps(2, n_components=5, penalty=penalty, alpha=0.1, constraint=L1Ball(1.0), dict_init=start(X, 5)).fit(X)
    princomp.save(model, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    assert again.penalty == penalty
    assert again.constraint == L1Ball(1.0)
    np.testing.assert_array_equal(again.transform(X[:9]), model.transform(X[:9]))


# --- dead atoms and twins -------------------------------------------------------------------------


def largest_cosine(D):
    unit = D / np.linalg.norm(D, axis=1, keepdims=True)
    return np.abs(unit @ unit.T - np.eye(len(D))).max()


@pytest.mark.parametrize("method", ["online", "batch", "ksvd"])
def test_dead_atoms_and_twins_are_replaced_and_reported(method):
    X = small(21)[1]
    X[:, -1] = 0
    D = start(X, 16)
    D[3] = np.eye(12)[-1]  # nothing in the data looks this way: no row will use it
    D[5] = D[4]
    D[7] = -D[6]
    how = {"nonzeros": 2} if method == "ksvd" else {"alpha": 0.15}
    model = steps(8, method=method, dict_init=D, batch_size=500, **how).fit(X)
    codes = model.transform(X)
    assert np.all((codes != 0).any(axis=0))
    assert largest_cosine(model.components_) < 0.999
    assert model.n_replaced_ >= 3
    kept = steps(8, method=method, dict_init=D, batch_size=500, replace=False, **how).fit(X)
    assert kept.n_replaced_ == 0
    np.testing.assert_allclose(np.abs(kept.components_[3]), np.abs(D[3]), atol=1e-12)


def test_an_atom_of_zeros_to_begin_with_is_no_end():
    X = small(22)[1]
    D = start(X, 16)
    D[2] = 0
    for method, how in {"online": {"alpha": 0.15}, "batch": {"alpha": 0.15}, "ksvd": {"nonzeros": 2}}.items():
        model = steps(6, method=method, dict_init=D, **how).fit(X)
        assert np.isfinite(model.components_).all()
        assert model.components_[2].any()


# --- stated results -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["online", "batch", "ksvd"])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_fewer_rows_than_atoms(method, n):
    """As many atoms as asked for, all finite and in the ball; rows that are atoms are coded well."""
    X = small(23)[1][:n]
    how = {"nonzeros": 2} if method == "ksvd" else {"alpha": 0.01}
    with only_user_warnings():
        model = steps(5, n_components=16, method=method, **how).fit(X)
    assert model.components_.shape == (16, 12)
    assert np.isfinite(model.components_).all()
    assert np.linalg.norm(model.components_, axis=1).max() <= 1 + 1e-9
    left = ((X - model.transform(X) @ model.components_) ** 2).sum()
    assert left < 0.2 * (X**2).sum()


def test_one_row_is_too_few_for_a_fit_and_enough_for_a_stream():
    X = small(23)[1][:1]
    with pytest.raises(ValueError, match=r"row|sample"):
        DictionaryLearning(4).fit(X)
    assert DictionaryLearning(4, alpha=0.01, random_state=0).partial_fit(X).components_.shape == (4, 12)


@pytest.mark.parametrize("method", ["online", "batch", "ksvd"])
def test_rows_of_nothing_teach_nothing(method):
    """All-missing rows and zero rows change no atom: the fit is that of the others."""
    X = small(24)[1][:200]
    D = start(X, 8)
    how = {"nonzeros": 2} if method == "ksvd" else {"alpha": 0.15}
    plain = steps(2, method=method, dict_init=D, batch_size=400, **how).fit(X)
    with only_user_warnings():
        more = steps(2, method=method, dict_init=D, batch_size=400, **how).fit(np.vstack([X, np.zeros((2, 12))]))
        missing = steps(2, method=method, dict_init=D, batch_size=400, **how).fit(
            np.vstack([X, np.full((2, 12), np.nan)])
        )
    np.testing.assert_allclose(more.components_, plain.components_, atol=1e-6)
    np.testing.assert_allclose(missing.components_, plain.components_, atol=1e-5)
    codes = missing.transform(np.vstack([np.full(12, np.nan), np.zeros(12)]))
    assert not codes.any()


@pytest.mark.parametrize("method", ["online", "batch", "ksvd"])
@pytest.mark.parametrize("X", [np.zeros((20, 5)), np.full((20, 5), 3.0)], ids=["zeros", "constant"])
def test_data_without_anything_to_learn(method, X):
    how = {"nonzeros": 1} if method == "ksvd" else {"alpha": 0.1}
    with only_user_warnings():
        model = steps(4, n_components=3, method=method, **how).fit(X)
    assert np.isfinite(model.components_).all()
    codes = model.transform(X)
    assert np.isfinite(codes).all()
    if X.any():
        cosine = cosines(np.full((1, 5), 1 / np.sqrt(5)), model.components_)[0]
        assert cosine > 0.999
    else:
        assert not codes.any()


@pytest.mark.parametrize("alpha", [0.0, 1e6])
@pytest.mark.parametrize("method", ["online", "batch"])
def test_no_weight_and_a_huge_one(alpha, method):
    X = small(25)[1]
    with only_user_warnings():
        model = steps(3, n_components=6, method=method, alpha=alpha).fit(X)
    assert np.isfinite(model.components_).all()
    codes = model.transform(X)
    if alpha:
        assert not codes.any()
    else:
        left = X - X @ np.linalg.pinv(model.components_) @ model.components_
        assert ((X - codes @ model.components_) ** 2).sum() <= (left**2).sum() + 1e-4 * (X**2).sum()


def test_more_nonzeros_than_columns():
    X = small(26)[1]
    with only_user_warnings():
        model = steps(3, n_components=20, method="ksvd", nonzeros=15).fit(X)
    assert np.isfinite(model.components_).all()
    codes = model.transform(X)
    assert np.count_nonzero(codes, axis=1).max() <= 12


@pytest.mark.parametrize("method", ["online", "batch", "ksvd"])
def test_a_read_only_memory_map_is_learnt_from(method, tmp_path):
    X = small(27)[1]
    np.save(tmp_path / "x.npy", X)
    model = steps(3, n_components=8, method=method, nonzeros=2)
    mapped = clone(model).fit(np.load(tmp_path / "x.npy", mmap_mode="r"))
    np.testing.assert_allclose(mapped.components_, clone(model).fit(X).components_, atol=1e-12)
    mapped.transform(np.load(tmp_path / "x.npy", mmap_mode="r"))


def test_iterations_asked_for_are_iterations_made():
    X = small(28)[1]
    for method in ("online", "batch", "ksvd"):
        for count in (1, 3, 7):
            model = steps(count, n_components=8, method=method, nonzeros=2, batch_size=500).fit(X)
            assert model.n_iter_ == count
            assert len(model.result_.history) == count


@pytest.mark.parametrize(
    ("how", "word"),
    [
        ({"method": "lars"}, "method"),
        ({"alpha": -1.0}, "alpha"),
        ({"nonzeros": 0}, "nonzeros"),
        ({"error": -1.0}, "error"),
        ({"loss": "hinge"}, "loss"),
        ({"batch_size": 0}, "batch_size"),
        ({"n_components": 0}, "n_components"),
        ({"selection": "lars", "nonzeros": 2}, "selection"),
        ({"method": "ksvd", "nonzeros": 2, "update": "none"}, "update"),
        ({"forgetting": 2.0}, "forgetting"),
        ({"transform_nonzeros": -3}, "transform_nonzeros|nonzeros"),
        ({"max_seconds": -1.0}, "max_seconds"),
    ],
    ids=str,
)
def test_what_is_refused_is_named(how, word):
    with pytest.raises((ValueError, TypeError), match=word):
        DictionaryLearning(**{"n_components": 4} | how).fit(small()[1])


def test_infinite_cells_are_refused():
    X = small()[1]
    X[3, 3] = np.inf
    with pytest.raises(ValueError, match="inf"):
        DictionaryLearning(4).fit(X)


def test_the_certificate_is_of_the_answer():
    """A fit that went on until nothing moves holds; the same fit after one step says that it does not."""
    X = small(29)[1][:200]
    D = start(X, 6)
    model = DictionaryLearning(method="batch", alpha=0.3, dict_init=D, tol=1e-4, max_iter=3000, random_state=0).fit(X)
    assert model.certificate_.holds
    assert model.certificate_.scope == "local"
    early = steps(1, method="batch", alpha=0.3, dict_init=D).fit(X)
    assert early.certificate_.residual > 10 * model.certificate_.residual
