"""RankOneDictionary beside a slow twin: its pairs, what it says of them, the flaws of the old code, the edges."""

import contextlib
import os
import pickle
import random
import warnings
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import slow_pairs
from helpers import data_with_spectrum, fitted_attributes, orthonormal, signs_follow_the_rule
from princomp import RankOneDictionary
from princomp.data import as_rows
from slow_pairs import largest, largest_signed, planted, recovered
from storages import STORAGES, as_array

pytestmark = pytest.mark.filterwarnings("ignore:Nearly all squares of X")  # of offsets, which are meant
NOTHING_LEFT = r"zero|nothing|rank"  # in the sentence of a warning
SMALL = {"n": 100, "p": 1000, "k": 8, "r": 70}  # of the planted problem


def table(n=40, p=12, seed=0):
    """Nothing special: each entry its own."""
    return np.random.default_rng(seed).standard_normal((n, p)) * np.linspace(2, 1, p)


def blocks(n=30, sizes=(9.0, 6.0, 4.0), r=5, noise=0.01, seed=0):
    """Pairs whose u's are orthogonal and whose v's have r entries each, none in common."""
    rng = np.random.default_rng(seed)
    V = (
        np.kron(np.eye(len(sizes)), np.ones(r))
        * rng.choice([-1, 1], r * len(sizes))
        * rng.uniform(0.8, 1.2, r * len(sizes))
    )
    V *= np.asarray(sizes)[:, None] / np.sqrt(r)
    X = orthonormal(rng, n, len(sizes)) @ V
    return X + noise * rng.standard_normal(X.shape), V


def fit(X, k=None, *, limit=5000, **how):
    """A fit that has the steps it needs."""
    return RankOneDictionary(k, **{"random_state": 0, "max_iter": limit, **how}).fit(X)


def fit_quietly(X, k=None, **how):
    """A fit that may end before it has converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(X, k, **how)


def refit_quietly(model, X):
    """The same, of a model that is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def residual(X, model):
    return X - model.atoms_.astype(float) @ model.components_.astype(float)


def share(X, model):
    return float((residual(X, model) ** 2).sum() / (X**2).sum())


def assert_same_pairs(model, other, atol=1e-8):
    np.testing.assert_allclose(model.atoms_, other.atoms_, rtol=0, atol=atol)
    np.testing.assert_allclose(
        model.components_, other.components_, rtol=0, atol=atol * np.abs(other.components_).max()
    )


def assert_same_bits(model, other):
    for name in ("atoms_", "components_", "shares_", "residual_share_", "n_iter_", "n_components_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))


# --- the slow twin --------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [0, 1, 3])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("shape", [(40, 12), (8, 30)])
def test_step_by_step_it_is_the_slow_twin(shape, nonnegative, refine):
    """From the same v's, after a few steps, long before anything has converged; data rewritten there, not here."""
    first, X, r, k = table(*shape, seed=1), table(*shape), 4, 5
    how = {"nonzeros": r, "nonnegative": nonnegative, "tol": 0.0}
    model = RankOneDictionary(k, warm_start=True, random_state=0, max_iter=2, **how).fit(first)
    starts = model.components_.copy()
    model.components_ = np.concatenate([starts, starts[:1]])  # another number of pairs: found one by one before sweeps
    for steps in (1, 3):
        again = pickle.loads(pickle.dumps(model)).set_params(max_iter=steps, refine=refine).fit(X)
        rule = partial(largest, nonnegative=nonnegative)
        U, V = slow_pairs.fit(X, starts, [r] * k, steps=steps, refine=refine, rule=rule)
        np.testing.assert_allclose(again.components_, V, rtol=0, atol=1e-10)
        np.testing.assert_allclose(again.atoms_, U, rtol=0, atol=1e-10)
        assert again.n_iter_ == k * (steps + refine)


def test_pairs_that_stand_apart_are_found_from_anywhere():
    X, V = blocks()
    U, W = slow_pairs.fit(X, V, [5, 5, 5], steps=200)
    for seed in range(5):
        model = fit(X, 3, nonzeros=5, tol=1e-12, n_init=20, random_state=seed)
        np.testing.assert_allclose(model.components_, W, rtol=0, atol=1e-10)
        np.testing.assert_allclose(model.atoms_, U, rtol=0, atol=1e-10)


@pytest.mark.parametrize("refine", [0, 400])
def test_a_converged_fit_stays_where_it_is_under_the_steps_of_the_twin(refine):
    X, nonzeros = blocks(noise=0.3)[0], [5, 4, 6]
    model = fit_quietly(X, 3, nonzeros=nonzeros, tol=1e-12, refine=refine)
    errors = slow_pairs.errors(X, model.atoms_, model.components_, nonzeros, swept=bool(refine))
    assert errors.max() <= 1e-10


# --- the truncated SVD ----------------------------------------------------------------------------


def falling(n, p, seed=0):
    """Singular values that fall by 10 % each."""
    rng, k = np.random.default_rng(seed), min(n, p)
    return orthonormal(rng, n, k) * 0.9 ** np.arange(k) @ orthonormal(rng, p, k).T


def assert_is_the_svd(X, k, max_iter):
    model = RankOneDictionary(k, nonzeros=X.shape[1], tol=0.0, max_iter=max_iter, random_state=0).fit(X)
    U, values, rows = np.linalg.svd(X, full_matrices=False)
    lengths = np.linalg.norm(model.components_, axis=1)
    np.testing.assert_allclose(lengths, values[:k], rtol=0, atol=1e-8)
    directions = model.components_ / lengths[:, None]
    signs = np.sign((directions * rows[:k]).sum(axis=1))
    np.testing.assert_allclose(directions, rows[:k] * signs[:, None], rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.atoms_, U[:, :k] * signs, rtol=0, atol=1e-8)
    assert model.n_iter_ <= k * max_iter, "fewer only where u does not move any more, by any digit"
    assert model.shares_.sum() == pytest.approx((values[:k] ** 2).sum() / (values**2).sum(), rel=1e-10)


@pytest.mark.parametrize("shape", [(30, 20), (20, 50)])
def test_with_all_entries_it_is_the_truncated_svd(shape):
    assert_is_the_svd(falling(*shape), 8, 400)


@pytest.mark.soak
@pytest.mark.parametrize("shape", [(30, 20), (20, 50)])
def test_with_all_entries_and_all_pairs_it_is_the_svd(shape):
    assert_is_the_svd(falling(*shape), 20, 5000)


# --- planted pairs --------------------------------------------------------------------------------


def medians_of_planted(seeds, **size):
    """(recovered, residual / noise floor) by the old signed rule, greedily, and after 20 sweeps: medians of seeds."""
    rows = []
    for seed in range(seeds):
        X, V, floor = planted(seed, **size)
        k, r = len(V), size.get("r", 350)
        starts = np.random.default_rng(seed).standard_normal(V.shape)
        old = slow_pairs.fit(X, starts, [r] * k, steps=40, rule=largest_signed)
        greedy, swept = (fit_quietly(X, k, nonzeros=r, limit=100, refine=n, random_state=seed) for n in (0, 20))
        found = [old, (greedy.atoms_, greedy.components_), (swept.atoms_, swept.components_)]
        left = [((X - U @ W) ** 2).sum() / (X**2).sum() / floor for U, W in found]
        rows.append([value for (_, W), rest in zip(found, left) for value in (recovered(V, W), rest)])
        assert swept.residual_share_ == pytest.approx(left[2] * floor, rel=1e-9)
    return np.median(rows, axis=0)


def test_planted_pairs_are_found_by_sweeps_and_hardly_any_by_the_signed_rule(observe):
    old, old_left, greedy, left, swept, swept_left = medians_of_planted(5, **SMALL)
    observe("R1DL", "planted, 100 x 1000", f"signed {old:.0%}, greedy {greedy:.0%}, swept {swept:.0%}")
    assert old <= 0.15
    assert greedy >= 0.25
    assert swept >= 0.95
    assert old_left > 1.5 * left > 1.5 * swept_left
    assert swept_left <= 1.02


@pytest.mark.soak
def test_planted_pairs_at_full_size(observe):
    old, old_left, greedy, left, swept, swept_left = medians_of_planted(8)
    seen = f"signed {old:.0%} ({old_left:.2f} of the floor), greedy {greedy:.0%} ({left:.2f})"
    observe("R1DL", "planted, 200 x 5000", f"{seen}, swept {swept:.0%} ({swept_left:.4f})")
    assert old <= 0.10
    assert greedy >= 0.35
    assert swept >= 0.95
    assert swept_left <= 1.02


def test_pairs_of_the_public_test_case_are_its_own():
    """One entry of each v, all columns of length 1: they tie, so pairs come in any order. The file has six decimals."""
    path = Path(os.environ.get("PRINCOMP_DATA", "")) / "r1dl_groundtruth.npz"
    if not path.is_file():
        pytest.skip("PRINCOMP_DATA is not a folder with r1dl_groundtruth.npz")
    with np.load(path) as held:
        X, U, V = held["t1_S_norm"], held["t1_D_groundtruth"], held["t1_z_groundtruth"]
    expected = np.einsum("jn,jp->jnp", U, V)
    for seed in range(5):
        model = RankOneDictionary(5, nonzeros=0.2, tol=0.01, random_state=seed).fit(X)
        found = np.einsum("nj,jp->jnp", model.atoms_, model.components_)  # a product has no sign to choose
        apart = np.abs(expected[:, None] - found[None]).max(axis=(2, 3))
        assert sorted(apart.argmin(axis=1)) == list(range(5))
        assert apart.min(axis=1).max() < 1e-6
        assert model.residual_share_ < 1e-12


# --- what was wrong with the old code -------------------------------------------------------------


def test_negative_loadings_are_kept():
    rng = np.random.default_rng(0)
    v = np.zeros(20)
    v[:6] = [5.0, -9.0, -8.0, 7.0, -6.0, 4.0]
    X = np.outer(rng.standard_normal(30), v) + 0.01 * rng.standard_normal((30, 20))
    found = fit(X, 1, nonzeros=6).components_[0]
    assert set(np.flatnonzero(found)) == set(range(6))
    np.testing.assert_allclose(found / found.max(), -v / 9, atol=0.01)
    old = slow_pairs.fit(X, v[None], [6], steps=50, rule=largest_signed)[1][0]
    assert set(np.flatnonzero(old)) != set(range(6)), "by their sign the negative ones are lost"


@pytest.mark.parametrize(
    ("given", "expected"),
    [(0.25, 5), (0.01, 1), (1.0, 20), (0.07, 1), (np.float32(0.5), 10), (np.array(0.25), 5), (np.array(3), 3)],
)
def test_a_share_of_features_is_a_whole_number_of_entries(given, expected):
    model = fit_quietly(table(30, 20), 2, nonzeros=given, limit=20)
    assert (np.count_nonzero(model.components_, axis=1) == expected).all()
    assert_same_bits(model, fit_quietly(table(30, 20), 2, nonzeros=expected, limit=20))


def test_seven_in_a_hundred_features_unless_said_otherwise():
    model = fit_quietly(table(20, 100), 2, limit=20)
    assert (np.count_nonzero(model.components_, axis=1) == 7).all()


def test_the_global_random_state_is_not_touched_and_a_seed_gives_the_same_bits():
    X = table()
    np.random.seed(12345)  # noqa: NPY002
    before = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    one, other = (fit_quietly(X, 3, nonzeros=4, n_init=3, refine=2, random_state=7) for _ in range(2))
    np.testing.assert_equal((np.random.get_state(legacy=False), random.getstate()), before)  # noqa: NPY002
    assert_same_bits(one, other)


@pytest.mark.parametrize("storage", [name for name in STORAGES if name not in ("array", "dask", "spark")])
@pytest.mark.parametrize("shape", [(60, 12), (12, 40)])
def test_the_same_parameters_give_the_same_pairs_on_every_storage_here(shape, storage, tmp_path):
    X = np.where(np.random.default_rng(1).random(shape) < 0.4, table(*shape), 0.0)
    how = {"nonzeros": 4, "tol": 0.0, "limit": 15, "refine": 2, "n_init": 3}
    expected, found = fit(X, 3, **how), fit(STORAGES[storage](X, tmp_path), 3, **how)
    assert_same_pairs(found, expected, atol=1e-10)
    assert found.residual_share_ == pytest.approx(expected.residual_share_, rel=1e-10)
    scores = as_array(found.transform(STORAGES[storage](X, tmp_path)))
    np.testing.assert_allclose(scores, expected.transform(X), rtol=0, atol=1e-9)


def test_a_limit_of_steps_is_for_each_pair_and_said():
    X = table(50, 30)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RankOneDictionary(3, nonzeros=5, max_iter=2, tol=1e-9, random_state=0).fit(X)
    assert model.n_iter_ <= 6
    assert model.result_.status.code == "iteration limit"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RankOneDictionary(3, nonzeros=5, max_iter=2, tol=0.0, random_state=0).fit(X)
    assert model.n_iter_ == 6


# --- how good a pair is ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_no_choice_of_entries_and_no_other_u_is_better(seed):
    X, r = table(10, 8, seed), 3
    model = fit(X, 3, nonzeros=r, tol=1e-11)
    for j, (u, v) in enumerate(zip(model.atoms_.T, model.components_)):
        R = slow_pairs.others(X, model.atoms_, model.components_, j, swept=False)
        error = ((R - np.outer(u, v)) ** 2).sum()
        for kept in map(list, combinations(range(8), r)):
            best = np.zeros(8)
            best[kept] = R[:, kept].T @ u
            assert error <= ((R - np.outer(u, best)) ** 2).sum() * (1 + 1e-12)
        rng = np.random.default_rng(seed)
        for size in (1e-6, 1e-3, 1e-1, 10.0):
            near = slow_pairs.unit(u + size * rng.standard_normal(10))
            assert error <= ((R - np.outer(near, v)) ** 2).sum()
        assert ((R - np.outer(R @ v / np.linalg.norm(R @ v), v)) ** 2).sum() == pytest.approx(error, rel=1e-12)


def test_many_starts_find_the_best_pair_there_is():
    best, found = [], []
    for seed in range(12):
        X = table(12, 8, seed)
        best.append(slow_pairs.best_of_all(X, 3))
        model = fit(X, 1, nonzeros=3, n_init=40, tol=1e-9)
        found.append((model.components_**2).sum())
    assert (np.array(found) <= np.array(best) * (1 + 1e-12)).all()
    assert np.isclose(found, best, rtol=1e-9).mean() >= 0.9


def test_more_starts_are_never_worse_for_the_first_pair():
    for seed in range(8):
        shares = [fit(table(15, 20, seed), 1, nonzeros=4, tol=1e-8, n_init=n).shares_[0] for n in (1, 5, 20)]
        assert shares[0] <= shares[1] * (1 + 1e-9)
        assert shares[1] <= shares[2] * (1 + 1e-9)


@pytest.mark.parametrize("how", [{}, {"n_init": 4}, {"refine": 10}, {"refine": 5, "nonnegative": True}], ids=str)
def test_the_objective_never_rises(how):
    X = table(30, 20, seed=2)
    model = fit_quietly(X, 5, nonzeros=4, tol=1e-9, limit=60, **how)
    objective, total = np.array(model.result_.history.objective), (X**2).sum()
    assert len(objective) >= 10
    assert (np.diff(objective) <= 1e-12 * total).all()
    assert objective[0] <= total * (1 + 1e-12)
    assert model.result_.objective <= objective[-1] * (1 + 1e-12), "a last v-step of each pair comes after the steps"
    assert model.result_.objective == pytest.approx(objective[-1], rel=1e-2)


def test_sweeps_gain():
    X = planted(0, **SMALL)[0]
    left = [fit_quietly(X, 8, nonzeros=70, limit=30, tol=1e-4, refine=n).residual_share_ for n in (0, 1, 5)]
    assert left[0] > left[1] > left[2]


def test_sweeps_end_when_no_u_moves():
    X, _ = blocks(noise=0.001)
    model = fit(X, 3, nonzeros=5, refine=1000, n_init=10, tol=1e-9)
    assert model.n_iter_ < 1000
    assert model.certificate_.holds


# --- what a fit says of itself --------------------------------------------------------------------


@pytest.mark.parametrize("refine", [0, 3])
def test_shares_and_what_is_left_are_those_of_the_data(refine):
    X = table(30, 15) + 2.0
    model = fit_quietly(X, 4, nonzeros=6, refine=refine, limit=20)
    total = (X**2).sum()
    np.testing.assert_allclose(model.shares_, (model.components_**2).sum(axis=1) / total, rtol=1e-12)
    assert model.residual_share_ == pytest.approx(share(X, model), rel=1e-10)
    assert model.result_.objective == pytest.approx((residual(X, model) ** 2).sum(), rel=1e-10)
    assert model.n_components_ == 4
    assert model.n_samples_ == 30
    assert model.result_.n_iter == model.n_iter_
    if not refine:
        assert model.shares_.sum() + model.residual_share_ == pytest.approx(1, rel=1e-12)


def test_what_is_left_keeps_its_digits_where_hardly_anything_is():
    X, _ = blocks(noise=1e-5)
    model = fit(X, 3, nonzeros=5, n_init=10)
    assert model.residual_share_ == pytest.approx(share(X, model), rel=1e-4)
    assert 0 < model.residual_share_ < 1e-9


@pytest.mark.parametrize("refine", [0, 2])
def test_atoms_are_unit_and_components_are_sparse_with_their_largest_entry_positive(refine):
    model = fit_quietly(table(30, 15), 5, nonzeros=4, refine=refine, limit=15)
    np.testing.assert_allclose(np.linalg.norm(model.atoms_, axis=0), 1, rtol=1e-14)
    assert (np.count_nonzero(model.components_, axis=1) <= 4).all()
    assert signs_follow_the_rule(model.components_)


@pytest.mark.parametrize("steps", [1, 4, 30])
def test_the_certificate_is_the_twins_of_what_came_out(steps):
    X, nonzeros = table(40, 25, seed=4), [6, 5, 4]
    model = fit_quietly(X, 3, nonzeros=nonzeros, limit=steps)
    errors = slow_pairs.errors(X, model.atoms_, model.components_, nonzeros)
    assert errors[:, 1].max() <= 1e-13, "a pair ends with a v-step"
    assert model.certificate_.scope == "local"
    assert model.certificate_.residual == pytest.approx(errors.max(), rel=1e-3, abs=1e-13)
    assert model.certificate_.holds == (errors.max() <= 1e-6)


@pytest.mark.parametrize("sweeps", [1, 3, 400])
def test_the_certificate_after_sweeps_is_about_all_pairs_together(sweeps):
    X = table(40, 25, seed=4)
    model = fit_quietly(X, 3, nonzeros=5, refine=sweeps)
    errors = slow_pairs.errors(X, model.atoms_, model.components_, [5] * 3, swept=True)
    assert model.certificate_.residual == pytest.approx(errors.max(), rel=0.5, abs=1e-12)
    assert model.certificate_.holds == (model.certificate_.residual <= 1e-6)
    assert errors.max() <= 1e-5 or sweeps < 400


@pytest.mark.parametrize("refine", [0, 1])
def test_a_fit_that_ends_early_does_not_claim_anything(refine):
    X = table(50, 40)
    # As many sweeps as were asked for are no reason to warn: who takes a few does not expect to see them converge.
    with contextlib.nullcontext() if refine else pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = RankOneDictionary(4, nonzeros=6, max_iter=1, tol=1e-6, refine=refine, random_state=0).fit(X)
    assert slow_pairs.errors(X, model.atoms_, model.components_, [6] * 4, swept=bool(refine)).max() > 1e-4
    assert not model.certificate_.holds
    assert not model.result_.status


def test_a_converged_fit_says_so():
    model = fit(table(), 3, nonzeros=4)
    assert model.certificate_.holds
    assert model.result_.status.code == "converged"


# --- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nonzeros",
    [
        *[0, -1, 13, 0.0, -0.1, 1.5, np.nan, np.inf, True, "many", None],
        *[[4, 4], [4, 4, 4, 4], [4, 0, 4], [4, 13, 4], [4, np.nan, 4], [4, True, 4], []],
    ],
    ids=str,
)
def test_a_number_of_entries_that_means_nothing_is_refused_in_a_sentence(nonzeros):
    model = RankOneDictionary(3, nonzeros=nonzeros)
    with pytest.raises(ValueError, match=r"nonzeros.*\.$"):
        model.fit(table())
    assert not fitted_attributes(model)


@pytest.mark.parametrize("k", [None, 0.5])
def test_a_list_of_numbers_needs_a_number_of_pairs(k):
    with pytest.raises(ValueError, match="nonzeros"):
        RankOneDictionary(k, nonzeros=[4, 4, 4]).fit(table())


@pytest.mark.parametrize(
    "how",
    [
        *[{"refine": -1}, {"refine": 1.5}, {"refine": True}, {"n_init": 0}, {"n_init": 2.0}, {"max_iter": 0}],
        *[{"tol": -1.0}, {"tol": np.nan}, {"n_components": 0.0}, {"n_components": -2}, {"n_components": np.nan}],
    ],
    ids=str,
)
def test_parameters_that_mean_nothing_are_refused_by_name(how):
    with pytest.raises(ValueError, match=next(iter(how))):
        RankOneDictionary(**{"n_components": 2, "nonzeros": 3, **how}).fit(table())


@pytest.mark.parametrize("refine", [0, 2])
def test_each_pair_may_have_a_number_of_entries_of_its_own(refine):
    model = fit_quietly(table(30, 20), 4, nonzeros=[7, 0.1, 1, 1.0], refine=refine, limit=20)
    assert np.count_nonzero(model.components_, axis=1).tolist() == [7, 2, 1, 20]
    as_array = fit_quietly(table(30, 20), 4, nonzeros=np.array([7, 2, 1, 20]), refine=refine, limit=20)
    assert_same_bits(model, as_array)


@pytest.mark.parametrize(("n", "p"), [(6, 10), (10, 6)])
def test_as_many_pairs_as_rows_or_features_unless_said_otherwise(n, p):
    model = fit_quietly(table(n, p), nonzeros=3, limit=10)
    assert model.n_components_ == 6
    assert model.atoms_.shape == (n, 6)
    assert model.components_.shape == (6, p)


@pytest.mark.parametrize("wanted", [0.3, 0.9, 0.999])
def test_pairs_until_they_hold_a_share_of_the_squares(wanted):
    X = falling(30, 20)
    model = fit(X, wanted, nonzeros=1.0, tol=1e-8)
    assert model.shares_.sum() >= wanted > model.shares_[:-1].sum()
    values = np.cumsum(np.linalg.svd(X, compute_uv=False) ** 2) / (X**2).sum()
    assert model.n_components_ == np.searchsorted(values, wanted) + 1
    assert model.atoms_.shape == (30, model.n_components_)
    assert model.components_.shape == (model.n_components_, 20)
    first = fit(X, model.n_components_, nonzeros=1.0, tol=1e-8)
    assert_same_pairs(model, first, atol=1e-12)


@pytest.mark.parametrize("refine", [0, 5])
def test_no_entry_is_negative_where_none_may_be(refine):
    X = table(30, 15)
    model = fit_quietly(X, 4, nonzeros=5, nonnegative=True, refine=refine, tol=1e-9)
    assert (model.components_ >= 0).all()
    assert model.components_.any(axis=1).all()
    errors = slow_pairs.errors(X, model.atoms_, model.components_, [5] * 4, swept=bool(refine), nonnegative=True)
    assert errors.max() <= (1e-6 if not refine else 1)
    assert model.residual_share_ >= 0


@pytest.mark.parametrize("seed", range(5))
def test_negative_data_have_nonnegative_pairs_too(seed):
    """u takes the sign: a start that points the other way is turned, not lost."""
    rng = np.random.default_rng(seed)
    X = -np.outer(rng.uniform(1, 2, 20), rng.uniform(1, 2, 6))
    model = fit(X, 1, nonzeros=6, nonnegative=True, random_state=seed)
    assert model.residual_share_ <= 1e-15
    assert (model.components_ > 0).all()
    assert (model.atoms_ < 0).all()


def test_nonnegative_pairs_of_nonnegative_data_are_the_ordinary_first_pair():
    X = np.abs(table())
    one, other = (fit(X, 1, nonzeros=5, tol=1e-10, nonnegative=nonnegative, n_init=20) for nonnegative in (False, True))
    assert_same_pairs(one, other)


# --- again, on and on -----------------------------------------------------------------------------


def test_a_second_fit_begins_where_the_first_ended():
    X = table(40, 30, seed=5)
    model = RankOneDictionary(4, nonzeros=6, warm_start=True, random_state=0, max_iter=5000, tol=1e-9).fit(X)
    first, components = model.n_iter_, model.components_.copy()
    again = model.fit(X)
    assert again.n_iter_ <= min(3 * 4, first)
    np.testing.assert_allclose(again.components_, components, rtol=0, atol=1e-7)
    cold = clone(model).set_params(warm_start=False).fit(X)
    assert cold.n_iter_ == first


def test_a_warm_start_with_other_numbers_still_keeps_to_them():
    X = table(40, 30, seed=5)
    model = RankOneDictionary(4, nonzeros=6, warm_start=True, random_state=0, max_iter=5000).fit(X)
    model.set_params(nonzeros=3).fit(X)
    assert (np.count_nonzero(model.components_, axis=1) == 3).all()
    model.set_params(n_components=5).fit(X)
    assert model.components_.shape == (5, 30)
    assert model.components_.any(axis=1).all()


@pytest.mark.parametrize("exponent", [0, -500, 500])
@pytest.mark.parametrize("how", [{}, {"center": True, "scale": True}, {"nonnegative": True}], ids=str)
@pytest.mark.parametrize("shape", [(40, 30), (30, 90)])
def test_sweeps_begin_at_the_pairs_of_the_last_fit(shape, how, exponent):
    X = table(*shape, seed=5) * 2.0**exponent
    model = RankOneDictionary(4, nonzeros=6, refine=400, warm_start=True, random_state=0, max_iter=5000, **how).fit(X)
    first, components, left = model.n_iter_, model.components_.copy(), model.residual_share_
    again = model.fit(X)
    assert again.n_iter_ <= 1 + 2 * 4 < first  # a pass for all u's, and sweeps that see that nothing moves
    assert again.certificate_.holds
    np.testing.assert_allclose(again.components_, components, rtol=0, atol=1e-5 * np.abs(components).max())
    assert again.residual_share_ == pytest.approx(left, rel=1e-9)
    cold = clone(model).set_params(warm_start=False).fit(X)
    assert cold.n_iter_ == first


def test_sweeps_of_more_rows_begin_where_those_of_some_ended():
    X, _, _ = planted(0, **SMALL)
    model = RankOneDictionary(8, nonzeros=70, refine=60, warm_start=True, random_state=0).fit(X[:80])
    seen = []
    model.set_params(callback=lambda state: seen.append(state.objective)).fit(3 * X)  # of another size, too
    cold = RankOneDictionary(8, nonzeros=70, refine=60, random_state=0).fit(3 * X)
    assert model.n_iter_ < cold.n_iter_ / 2
    assert model.residual_share_ <= cold.residual_share_ + 1e-6
    assert (np.diff(seen) <= 1e-12 * (9 * X**2).sum()).all()


def test_sweeps_after_a_fit_without_them_begin_at_its_pairs():
    X = table(40, 30, seed=5)
    model = RankOneDictionary(4, nonzeros=6, warm_start=True, random_state=0, max_iter=5000).fit(X)
    left = model.residual_share_
    refit_quietly(model.set_params(refine=1), X)
    assert model.n_iter_ == 1 + 4
    assert model.residual_share_ <= left


@pytest.mark.parametrize("k", [3, 5])
def test_another_number_of_pairs_is_found_one_by_one_before_sweeps(k):
    X = table(40, 30, seed=5)
    model = RankOneDictionary(4, nonzeros=6, refine=400, warm_start=True, random_state=0, max_iter=5000).fit(X)
    model.set_params(n_components=k).fit(X)
    assert model.components_.shape == (k, 30)
    assert model.components_.any(axis=1).all()
    assert model.certificate_.holds


def test_pairs_that_repeat_each_other_are_a_beginning_too():
    X = table(40, 30, seed=5)
    model = RankOneDictionary(4, nonzeros=6, refine=400, warm_start=True, random_state=0, max_iter=5000).fit(X)
    model.components_ = model.components_[[0, 0, 1, 2]]
    model.fit(X)
    assert model.certificate_.holds
    assert np.isfinite(model.components_).all()


@pytest.mark.parametrize("stop", [1, 3, 7])
def test_a_callback_stops_a_fit_and_the_rest_is_finite(stop):
    X = table()
    model = fit_quietly(X, 3, nonzeros=4, tol=1e-12, callback=lambda state: state.iteration >= stop)
    assert model.n_iter_ == stop
    assert model.result_.status.code == "stopped"
    assert not model.certificate_.holds
    assert np.isfinite(model.transform(X)).all()
    assert model.residual_share_ == pytest.approx(share(X, model), rel=1e-10)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize(
    "how",
    [{}, {"refine": 3}, {"n_init": 4, "refine": 1}, {"n_components": 0.5}, {"refine": 3, "warm_start": True}],
    ids=str,
)
def test_an_interrupted_fit_goes_on_to_the_same_bits(how, tmp_path):
    X, path = table(20, 16, seed=6), tmp_path / "state.npz"
    how = {"n_components": 3, "nonzeros": 5, "max_iter": 12, "tol": 1e-7, "random_state": 0, **how}

    def ended(**more):
        model = RankOneDictionary(**how)
        if model.warm_start:
            refit_quietly(model, table(20, 16, seed=7))
        return refit_quietly(model.set_params(**more), X)

    expected = ended()
    for at in sorted({1, 2, expected.n_iter_ // 2, expected.n_iter_ - 1}):

        def interrupt(state, at=at):
            if state.iteration >= at:
                raise Interrupted

        with pytest.raises(Interrupted):
            ended(checkpoint=path, callback=interrupt)
        seen = []
        found = ended(checkpoint=path, callback=lambda state, seen=seen: seen.append(state.iteration))
        assert all(iteration > at for iteration in seen), "it goes on, and does not begin again"
        assert_same_bits(found, expected)
        assert found.certificate_.residual == expected.certificate_.residual
        path.unlink(missing_ok=True)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    X, path = table(), tmp_path / "state.npz"
    model = RankOneDictionary(3, nonzeros=4, random_state=0, checkpoint=path)

    def interrupt(state):
        raise Interrupted

    with pytest.raises(Interrupted):
        clone(model).set_params(callback=interrupt).fit(X)
    changed = X.copy()
    changed[3, 3] += 1e-6
    for other, data in (({"nonzeros": 5}, X), ({"nonnegative": True}, X), ({"refine": 1}, X), ({}, changed)):
        with pytest.raises(ValueError, match="belongs to another fit"):
            clone(model).set_params(**other).fit(data)
    assert Path(path).exists()


# --- edges ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("nonzeros", [6, 3])
def test_more_pairs_than_there_is_rank_are_zero_and_said(nonzeros):
    rng = np.random.default_rng(0)
    V = np.kron(np.eye(2), [1.0, 2.0, -3.0]) if nonzeros == 3 else rng.standard_normal((2, 6))
    X = orthonormal(rng, 12, 2) * [3.0, 1.0] @ V
    with pytest.warns(UserWarning, match=NOTHING_LEFT):
        model = fit(X, 4, nonzeros=nonzeros, n_init=10)
    assert not model.atoms_[:, 2:].any()
    assert not model.components_[2:].any()
    assert not model.shares_[2:].any()
    np.testing.assert_allclose(np.linalg.norm(model.atoms_[:, :2], axis=0), 1, rtol=1e-14)
    assert model.residual_share_ <= 1e-15
    scores = model.transform(X)
    np.testing.assert_allclose(scores @ model.components_, X, atol=1e-8)
    assert np.isfinite(model.certificate_.residual)


def test_nothing_at_all_has_pairs_of_zeros():
    X = np.zeros((5, 4))
    with pytest.warns(UserWarning, match=NOTHING_LEFT):
        model = fit(X, 2, nonzeros=2)
    assert not model.atoms_.any()
    assert not model.components_.any()
    assert np.isfinite(model.shares_).all()
    assert np.isfinite(model.residual_share_)
    assert not model.transform(X).any()
    assert np.isfinite(model.score(table(5, 4)))


def test_one_feature_is_one_pair():
    x = np.random.default_rng(0).standard_normal((20, 1))
    model = fit(x, 1, nonzeros=1)
    assert model.components_[0, 0] == pytest.approx(np.linalg.norm(x), rel=1e-14)
    np.testing.assert_allclose(model.atoms_, x / np.linalg.norm(x), atol=1e-15)
    assert model.residual_share_ <= 1e-30
    np.testing.assert_allclose(model.transform(x), model.atoms_, atol=1e-14)


def test_one_entry_is_the_longest_column_whatever_the_others_are():
    X = table(30, 10) * np.linspace(3, 1, 10)
    model = fit(X, 3, nonzeros=1, n_init=30)
    lengths = np.linalg.norm(X, axis=0)
    assert model.components_.argmax(axis=1).tolist() == np.argsort(-lengths)[:3].tolist()
    np.testing.assert_allclose(model.components_.max(axis=1), np.sort(lengths)[::-1][:3], rtol=1e-13)


def test_columns_that_are_constant_zero_or_the_same_are_columns_like_any_other():
    X = table(30, 8)
    X = np.column_stack([X, np.full(30, 7.0), np.zeros(30), X[:, 0], X[:, 0]])
    model = fit(X, 3, nonzeros=3)
    assert model.components_[0, 8] > 30, "nothing is centred"
    assert not model.components_[:, 9].any()
    assert model.residual_share_ == pytest.approx(share(X, model), rel=1e-10)
    errors = slow_pairs.errors(X, model.atoms_, model.components_, [3] * 3)
    assert errors.max() <= 1e-5


@pytest.mark.parametrize("refine", [0, 2])
@pytest.mark.parametrize("exponent", [-500, 500])
def test_a_fit_does_not_depend_on_units(exponent, refine):
    X = table(30, 15)
    how = {"nonzeros": 5, "refine": refine, "limit": 20}
    model, other = (fit_quietly(np.ldexp(X, e), 4, **how) for e in (0, exponent))
    assert ((other.components_ != 0) == (model.components_ != 0)).all()
    np.testing.assert_allclose(np.ldexp(other.components_, -exponent), model.components_, rtol=1e-8)
    np.testing.assert_allclose(other.atoms_, model.atoms_, atol=1e-9)
    np.testing.assert_allclose(other.shares_, model.shares_, rtol=1e-9)
    assert other.residual_share_ == pytest.approx(model.residual_share_, rel=1e-9)
    assert other.certificate_.residual == pytest.approx(model.certificate_.residual, rel=1e-3, abs=1e-12)
    np.testing.assert_allclose(other.transform(np.ldexp(X, exponent)), model.transform(X), atol=1e-9)
    assert other.score(np.ldexp(X, exponent)) == pytest.approx(model.score(X), rel=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_cell_that_is_no_number_is_refused_by_its_column(value):
    X = table()
    X[7, 2] = value
    model = RankOneDictionary(2, nonzeros=3)
    with pytest.raises(ValueError, match=r"NaN in column 2" if np.isnan(value) else "inf"):
        model.fit(X)
    assert not fitted_attributes(model)
    model.fit(table())
    with pytest.raises(ValueError, match=r"NaN|inf"):
        model.transform(X)


@pytest.mark.parametrize("refine", [0, 3])
def test_single_precision_comes_out_as_it_went_in(refine):
    X = table(60, 20).astype(np.float32)
    how = {"nonzeros": 5, "refine": refine, "tol": 1e-4}
    single, double = fit_quietly(X, 3, **how), fit_quietly(X.astype(float), 3, **how)
    assert single.atoms_.dtype == single.components_.dtype == single.transform(X).dtype == np.float32
    assert single.inverse_transform(single.transform(X)).dtype == np.float32
    assert_same_pairs(single, double, atol=1e-3)
    assert single.residual_share_ == pytest.approx(share(X.astype(float), single), rel=1e-5)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_sums_over_many_rows_in_single_precision_keep_their_digits(offset):
    """Products are single, sums over blocks double: half a million rows do not wear the answer down."""
    rng = np.random.default_rng(0)
    X = np.outer(rng.standard_normal(300_000), [3.0, -2.0, 0, 0]) + 0.1 * rng.standard_normal((300_000, 4)) + offset
    X = X.astype(np.float32)
    single = fit(X, 1, nonzeros=2)
    double = fit(X.astype(float), 1, nonzeros=2)
    np.testing.assert_allclose(single.components_, double.components_, rtol=1e-5)
    assert single.residual_share_ == pytest.approx(double.residual_share_, rel=1e-4)


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 3e4), (np.float64, 1e6)])
def test_what_is_left_beside_a_large_offset_is_not_taken_for_nothing(dtype, offset):
    """Nothing is centred: the first pair holds all but a billionth, or less, of which many digits are in the data."""
    for seed in range(6):
        X = (offset + np.random.default_rng(seed).standard_normal((40, 300))).astype(dtype)
        model = fit_quietly(X, 3, nonzeros=1.0, limit=100, random_state=seed)
        assert model.components_.any(axis=1).all()


# --- scores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("refine", [0, 3])
def test_scores_are_least_squares_on_the_components(refine):
    X, new = table(30, 15), table(9, 15, seed=9)
    model = fit_quietly(X, 4, nonzeros=6, refine=refine, limit=20)
    for rows in (X, new):
        expected = np.linalg.lstsq(model.components_.T, rows.T, rcond=None)[0].T
        np.testing.assert_allclose(model.transform(rows), expected, rtol=0, atol=1e-11)
        left = rows - expected @ model.components_
        assert model.score(rows) == pytest.approx(1 - (left**2).sum() / (rows**2).sum(), rel=1e-10)
    np.testing.assert_array_equal(model.inverse_transform(expected), expected @ model.components_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        at_once = clone(model).fit_transform(X)
    np.testing.assert_allclose(at_once, model.transform(X), rtol=0, atol=1e-12)
    assert model.score(X) >= 1 - model.residual_share_ - 1e-12, "free scores are no worse than the atoms"


def test_scores_on_one_pair_after_the_other_are_its_atoms():
    """Disjoint v's: least squares on all of them is what each had alone."""
    X, _ = blocks()
    model = fit(X, 3, nonzeros=5, n_init=10, tol=1e-11)
    np.testing.assert_allclose(model.transform(X), model.atoms_, atol=1e-9)


def test_scores_on_components_that_nearly_repeat_are_finite():
    rng = np.random.default_rng(0)
    v = np.r_[rng.standard_normal(5), np.zeros(5)]
    X = np.outer(rng.standard_normal(20), v) + 1e-5 * rng.standard_normal((20, 10))
    model = fit_quietly(X, 4, nonzeros=5, limit=200)
    assert np.isfinite(model.transform(X)).all()
    np.testing.assert_allclose(model.transform(X) @ model.components_, X, atol=1e-3)


# --- workers --------------------------------------------------------------------------------------

ON_WORKERS = {"nonzeros": 5, "tol": 0.0, "random_state": 0}


def counted(cls, monkeypatch):
    """Passes over the rows of a storage, counted in a list."""
    passes = []

    def count(method):
        def counting(rows, *args, **how):
            passes.append(1)
            return method(rows, *args, **how)

        return counting

    for name in ("reduce", "map"):
        monkeypatch.setattr(cls, name, count(getattr(cls, name)))
    return passes


def unbroken(rows, i):
    raise AssertionError("A block came to the driver.")


@pytest.mark.needs("dask")
@pytest.mark.parametrize("how", [{"max_iter": 10}, {"max_iter": 4, "refine": 2, "n_init": 3}], ids=str)
@pytest.mark.parametrize("n", [400, 12])
def test_dask_workers_find_the_same_pairs_in_a_pass_for_each_step(n, how, dask_client, monkeypatch, observe):
    """Tall data, of which X'X may be made in one pass, and wide ones, where each step goes to the data."""
    from princomp.data.dask import DaskRows

    X = blocks(n=n, noise=0.3)[0]
    expected = RankOneDictionary(3, **ON_WORKERS, **how).fit(X)
    passes = counted(DaskRows, monkeypatch)
    monkeypatch.setattr(DaskRows, "block", unbroken)
    found = RankOneDictionary(3, **ON_WORKERS, **how).fit(STORAGES["dask"](X, None))
    observe("passes", f"rank-one pairs, {n} rows, {how}", f"{len(passes)} for {found.n_iter_} steps")
    assert len(passes) <= found.n_iter_ + 3
    assert_same_pairs(found, expected)
    assert found.certificate_.residual == pytest.approx(expected.certificate_.residual, rel=1e-3, abs=1e-10)


@pytest.mark.needs("pyspark", "java", "pyarrow")
def test_spark_finds_the_same_pairs_in_a_pass_for_each_step(spark, monkeypatch, observe):
    from princomp.data.spark import SparkRows

    X = blocks(n=12, noise=0.3)[0]  # wide: each step goes to the data
    how = {"max_iter": 2}
    expected = RankOneDictionary(2, **ON_WORKERS, **how).fit(X)
    frame = STORAGES["spark"](X, None)
    passes = counted(SparkRows, monkeypatch)
    found = RankOneDictionary(2, **ON_WORKERS, **how).fit(frame)
    observe("passes", "rank-one pairs, Spark", f"{len(passes)} for {found.n_iter_} steps")
    assert len(passes) <= found.n_iter_ + 3
    assert_same_pairs(found, expected)


@pytest.mark.parametrize("storage", ["array", "csr", "memmap"])
@pytest.mark.parametrize("shape", [(50, 20), (20, 50)])
def test_a_step_is_one_pass_here_too(shape, storage, tmp_path, monkeypatch):
    X = STORAGES[storage](table(*shape), tmp_path)
    passes = counted(type(as_rows(X)), monkeypatch)
    model = fit(X, 3, nonzeros=5, tol=0.0, limit=10, refine=2)
    assert model.n_iter_ == 36
    assert len(passes) <= model.n_iter_ + 3


@pytest.mark.parametrize("how", [{}, {"refine": 2}, {"n_init": 2}], ids=str)
def test_beside_a_large_offset_a_step_in_single_precision_is_one_pass_too(how, monkeypatch):
    """There products in single precision say too little, once the first pair, of the offset, is done."""
    X = (np.random.default_rng(0).standard_normal((40, 300)) + 1e3).astype(np.float32)
    passes = counted(type(as_rows(X)), monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the means rule
        model = RankOneDictionary(4, nonzeros=300, max_iter=30, tol=1e-6, random_state=0, **how).fit(X)
    assert model.n_iter_ > 90
    assert len(passes) <= model.n_iter_ + 3 + 1, "one at which it was seen"


# --- at the size it was made for ------------------------------------------------------------------


@pytest.mark.soak
def test_a_brain_of_voxels_from_a_file(tmp_path):
    """300 x 100000 in single precision from a memmap: blocks of voxels with time courses of their own."""
    rng = np.random.default_rng(0)
    n, p, k, r = 300, 100_000, 10, 5000
    U = orthonormal(rng, n, k)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(n, p))
    X[:] = 0.02 * rng.standard_normal((n, p), dtype=np.float32)
    for j in range(k):
        X[:, j * r : (j + 1) * r] += (U[:, j : j + 1] * rng.uniform(1, 2, r)).astype(np.float32)
    X.flush()
    model = fit(np.load(tmp_path / "X.npy", mmap_mode="r"), k, nonzeros=r, limit=100, tol=1e-4, refine=3)
    maps = np.array([np.bincount(np.flatnonzero(v) // r, minlength=20)[:k] for v in model.components_])
    assert sorted(maps.argmax(axis=1)) == list(range(k))
    assert (maps.max(axis=1) >= 0.95 * r).all()
    np.testing.assert_allclose(np.abs(model.atoms_.T @ U).max(axis=1), 1, atol=0.01)


def test_data_with_a_spectrum_have_shares_that_fall():
    X = data_with_spectrum(60, 12, np.geomspace(9, 0.5, 12), seed=3)
    shares = fit(X, 6, nonzeros=1.0).shares_
    assert (np.diff(shares) < 0).all()
