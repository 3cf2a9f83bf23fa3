"""RankOneDictionary where a start, a sum or a threshold could mislead it; and on data with a baseline."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from helpers import orthonormal
from princomp import RankOneDictionary, load, save
from princomp.certificates.rank_one import Measured, pair_residuals
from storages import STORAGES


def scan(offset=1000.0, n=80, p=120, seed=0):
    """Two networks over a baseline of each voxel."""
    rng = np.random.default_rng(seed)
    V = np.zeros((2, p))
    V[0, 10:30], V[1, 60:80] = 3.0, -2.0
    return rng.standard_normal((n, 2)) @ V + rng.standard_normal((n, p)) + offset * rng.uniform(0.5, 1.5, p), V


# --- baselines ------------------------------------------------------------------------------------


def test_a_baseline_that_rules_is_warned_of_and_taken_away():
    X, V = scan()
    with pytest.warns(UserWarning, match=r"Nearly all squares of X are those of the means .* center=True"):
        RankOneDictionary(2, nonzeros=20, random_state=0).fit(X)
    model = RankOneDictionary(2, nonzeros=20, center=True, random_state=0).fit(X)  # without a word
    assert sorted(tuple(np.flatnonzero(v)) for v in model.components_) == [tuple(np.flatnonzero(v)) for v in V]
    assert model.certificate_.holds


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("storage", ["array", "fortran", "csr", "shards"])
def test_centred_and_scaled_it_is_a_fit_of_centred_and_scaled_data(storage, scale, tmp_path):
    X, _ = scan(offset=3.0)
    how = {"nonzeros": 20, "tol": 1e-10, "max_iter": 5000, "random_state": 0}
    deviation = X.std(axis=0, ddof=1) if scale else np.ones(X.shape[1])
    by_hand = RankOneDictionary(2, **how).fit((X - X.mean(axis=0)) / deviation)
    model = RankOneDictionary(2, center=True, scale=scale, **how).fit(STORAGES[storage](X, tmp_path))
    np.testing.assert_allclose(model.components_, by_hand.components_, atol=1e-8)
    np.testing.assert_allclose(model.atoms_, by_hand.atoms_, atol=1e-8)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), rtol=1e-12)
    scores = model.transform(X)
    np.testing.assert_allclose(scores, by_hand.transform((X - X.mean(axis=0)) / deviation), atol=1e-8)
    back = model.inverse_transform(scores)
    np.testing.assert_allclose(back, scores @ model.components_ * deviation + X.mean(axis=0), rtol=1e-10)
    left = ((X - back) / deviation) ** 2
    total = ((X - X.mean(axis=0)) / deviation) ** 2
    assert model.score(X) == pytest.approx(1 - left.sum() / total.sum(), abs=1e-10)
    save(model, tmp_path / "model.princomp")
    np.testing.assert_array_equal(load(tmp_path / "model.princomp").transform(X), scores)


def test_single_precision_finds_the_networks_over_a_baseline_too():
    X, _ = scan(n=60, p=4000)  # wide: by passes in single precision
    double = RankOneDictionary(2, nonzeros=20, center=True, random_state=0).fit(X.astype(np.float32).astype(float))
    single = RankOneDictionary(2, nonzeros=20, center=True, random_state=0).fit(X.astype(np.float32))
    np.testing.assert_allclose(single.components_, double.components_, atol=1e-3)
    assert single.certificate_.holds


# --- what is left ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("tol", "size"), [(1e-2, 0.3), (1e-2, 0.1), (1e-6, 1e-4), (1e-6, 1e-5)])
def test_a_random_start_that_hardly_sees_what_is_left_is_not_believed(tol, size):
    """Of rank one, what is left is seen by a random v as little as one pleases."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = orthonormal(rng, 60, 3) * [1.0, 0.9, size] @ orthonormal(rng, 40, 3).T
        model = RankOneDictionary(3, nonzeros=40, tol=tol, random_state=seed, max_iter=1000).fit(X)
        assert model.components_.any(axis=1).all(), seed


@pytest.mark.parametrize("k", [13, 40])
def test_pairs_of_rounding_are_no_pairs(k):
    """A feature each: after twelve nothing is left of twelve columns."""
    X = np.random.default_rng(0).normal(size=(30, 12))
    with pytest.warns(UserWarning, match=r"Nothing is left of X after 12 pairs.*n_components=12"):
        model = RankOneDictionary(k, random_state=0).fit(X)
    assert not model.components_[12:].any()
    assert model.certificate_.holds


@pytest.mark.filterwarnings("ignore:Nothing is left")
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_data_of_low_rank_are_certified_sparse_or_dense(make):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 12))
    for tol in (1e-6, 1e-9, 1e-10):
        model = RankOneDictionary(4, nonzeros=12, tol=tol, max_iter=1000, random_state=0).fit(make(A))
        assert model.certificate_.holds, tol


# --- warm starts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [0, 1000])
@pytest.mark.parametrize("n_init", [1, 3])
def test_a_warm_start_where_the_new_data_are_zero_begins_anew(n_init, refine):
    rng = np.random.default_rng(0)
    one, other = np.zeros((2, 30, 10))
    one[:, :5], other[:, 5:] = rng.normal(size=(2, 30, 5))
    how = {"nonzeros": 3, "random_state": 0, "n_init": n_init, "max_iter": 1000, "refine": refine}
    warm = RankOneDictionary(2, warm_start=True, **how).fit(one).fit(other)
    cold = RankOneDictionary(2, **how).fit(other)
    assert warm.certificate_.holds
    assert warm.residual_share_ == pytest.approx(cold.residual_share_, abs=1e-6)


# --- scores of whole data ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-170, 1.0, 1e170])
def test_the_share_that_is_held_does_not_depend_on_units(size):
    X, _ = scan(offset=0.0)
    model = RankOneDictionary(2, nonzeros=20, random_state=0).fit(X)
    held = 1 - ((X - model.transform(X) @ model.components_) ** 2).sum() / (X**2).sum()
    assert model.score(X * size) == pytest.approx(held, rel=1e-10)
    assert RankOneDictionary(2, nonzeros=20, random_state=0).fit(X * size).score(X * size) == pytest.approx(held)


def test_scores_of_sparse_data_never_make_them_dense(monkeypatch):
    A = sp.random_array((400, 300), density=0.02, format="csr", rng=0)
    model = RankOneDictionary(3, nonzeros=10, random_state=0).fit(A)
    expected = model.score(A.toarray())
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sp.csr_array, name, lambda *args, **how: pytest.fail("made dense"))
    assert model.score(A) == pytest.approx(expected, rel=1e-10)


# --- the certificate ------------------------------------------------------------------------------


def test_single_precision_excuses_no_wrong_feature():
    """A large column is rounded coarsely; others are not excused by it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2000)).astype(np.float32).astype(float)
    X[:, 0] = 1e4
    U = np.zeros((200, 2))
    U[:, 0] = 1 / np.sqrt(200)
    V = np.zeros((2, 2000))
    V[0, 0] = 1e4 * np.sqrt(200)
    R = X - U @ V
    U[:, 1] = np.linalg.svd(R, full_matrices=False)[0][:, 0]
    b = R.T @ U[:, 1]
    order = np.argsort(-np.abs(b))
    places = np.r_[order[:17], order[20:23]]  # three of twenty are not the largest
    V[1, places] = b[places]
    found = Measured(X @ V.T, X.T @ U, (X**2).sum(axis=0), float(((X - U @ V) ** 2).sum()))
    how = {"nonnegative": False, "alone": True, "tol": 1e-6, "eps": float(np.finfo(np.float32).eps)}
    assert pair_residuals(found, U, V, np.array([1, 20]), **how).loadings[1] > 0.1


@pytest.mark.filterwarnings("ignore:Nearly all squares")
def test_rounding_is_called_rounding():
    """Stored in single precision, pairs beside a large offset are not what steps of them would give."""
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(60, 200)) + 1000.0).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="would still move by .*: rounding, as a rule"):
        model = RankOneDictionary(1, nonzeros=200, tol=1e-9, random_state=1, max_iter=4000).fit(X)
    assert model.result_.status.code == "no progress"
