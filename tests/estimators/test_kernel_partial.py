"""partial_fit of kernel PCA by Fourier features: the answer of a fit to all rows, however they are cut."""

import numpy as np
import pytest
from scipy import sparse

import princomp
from princomp import KernelPCA
from princomp.data import as_rows
from princomp.data.running import Running
from princomp.estimators.kernel_partial import evenly_ranked
from princomp.kernels import Gaussian, Laplacian

X = np.random.default_rng(0).normal(size=(240, 4)) + 2 * np.random.default_rng(1).integers(0, 3, (240, 1))
HOW = {"gamma": 0.1, "approximation": "fourier", "rank": 40, "random_state": 3}
CUTS = {"halves": [120], "a few first": [2, 3, 4, 60], "one at the end": [239], "thirds": [80, 160]}


def in_batches(batches, n_components=3, **how):
    model = KernelPCA(n_components, **HOW | how)
    for batch in batches:
        assert model.partial_fit(batch) is model
    return model


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_batches_have_the_answer_of_all_rows(kernel, cuts, offset):
    rows = np.round(X * 2**20) / 2**20 + offset
    whole = KernelPCA(3, kernel=kernel, **HOW).fit(rows)
    parts = in_batches(np.split(rows, cuts), kernel=kernel)
    # About another point angles round otherwise: by eps of the offset times a frequency, at the most.
    atol = 1e-10 if offset == 0 else 1e-6
    for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10)
    new = rows[::7] + 0.25
    np.testing.assert_allclose(np.abs(parts.transform(new)), np.abs(whole.transform(new)), atol=atol)
    np.testing.assert_allclose(parts.novelty(new), whole.novelty(new), atol=atol)
    if offset == 0:
        np.testing.assert_allclose(parts.transform(new), whole.transform(new), atol=1e-10)
    assert parts.n_samples_seen_ == parts.n_samples_ == whole.n_samples_seen_ == 240
    assert parts.certificate_.holds
    assert "not of the kernel matrix itself" in str(parts.certificate_)


def test_each_call_leaves_the_model_of_the_rows_so_far():
    model = KernelPCA(3, **HOW)
    for end in (60, 100, 240):
        model.partial_fit(X[model.n_samples_seen_ if end > 60 else 0 : end])
        expected = KernelPCA(3, **HOW).fit(X[:end])
        np.testing.assert_allclose(model.transform(X), expected.transform(X), atol=1e-10)


def test_batches_of_any_storage():
    whole = KernelPCA(3, **HOW).fit(X)
    shards, columns = [X[:30], X[30:90]], np.asfortranarray(X[90:150])
    model = in_batches([shards, columns, sparse.csr_array(X[150:])])
    np.testing.assert_allclose(model.transform(X), whole.transform(X), atol=1e-10)


def test_fewer_rows_than_components_are_a_beginning():
    """No warning: more rows will come."""
    model = KernelPCA(5, **HOW).partial_fit(X[:3])
    assert int((model.eigenvalues_ > 0).sum()) == 2
    assert model.certificate_.holds
    model.partial_fit(X[3:])
    np.testing.assert_allclose(model.eigenvalues_, KernelPCA(5, **HOW).fit(X).eigenvalues_, rtol=1e-10)


def test_rows_that_are_all_alike_are_a_beginning_too():
    model = KernelPCA(2, **HOW)
    with pytest.warns(UserWarning, match="every eigenvalue is 0"):
        model.partial_fit(np.ones((5, 4)))
    model.partial_fit(X)
    expected = KernelPCA(2, **HOW).fit(np.vstack([np.ones((5, 4)), X]))
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)


def test_a_model_file_goes_on(tmp_path):
    model = in_batches([X[:100]])
    princomp.save(model, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    for each in (model, again):
        each.partial_fit(X[100:])
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert again.n_samples_seen_ == 240


def test_a_batch_that_is_refused_leaves_the_model_as_it_was():
    model = in_batches([X[:100]])
    before = model.transform(X)
    for batch, words in ((X[:, :3], "3 features"), (np.where(X > 3, np.nan, X), "NaN in column")):
        with pytest.raises(ValueError, match=words):
            model.partial_fit(batch)
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.n_samples_seen_ == 100


def test_the_way_back_starts_from_rows_of_all_batches():
    model = in_batches(np.split(X, 4), n_components=10, rank=200)
    restored = model.inverse_transform(model.transform(X))
    assert np.square(restored - X).mean() < 0.2 * X.var()
    assert len(model._examples) <= 200


def along_a_line(n=2000):
    return np.c_[np.linspace(0, 10, n), np.zeros(n)] + 0.05 * np.random.default_rng(0).normal(size=(n, 2))


LINE = {"gamma": 0.5, "rank": 60, "random_state": 0}


@pytest.mark.parametrize("size", [7, 10, 64, 700])
def test_the_way_back_is_as_good_in_small_batches(size):
    rows = along_a_line()
    batches = [rows[:2], *(rows[start : start + size] for start in range(2, 2000, size))]
    model = in_batches(batches, n_components=6, **LINE)
    assert np.square(model.inverse_transform(model.transform(rows)) - rows).mean() < 0.05
    at_once = in_batches([rows], n_components=6, **LINE)
    np.testing.assert_array_equal(model._examples, at_once._examples)
    assert len(model._examples) == 60


@pytest.mark.parametrize("size", [10, 700])
def test_the_way_back_goes_on_from_the_rows_that_fit_has_picked(size):
    rows = along_a_line()
    model = KernelPCA(6, **HOW | LINE).fit(rows[:1000])
    for start in range(1000, 2000, size):
        model.partial_fit(rows[start : start + size])
    assert np.square(model.inverse_transform(model.transform(rows)) - rows).mean() < 0.05
    assert len(model._examples) == 60
    assert np.diff(model._examples[:, 0]).max() < 4 * 10 / 60


def test_a_model_of_an_older_version_without_rows_keeps_those_to_come():
    model = in_batches([X[:100]])
    del model._examples
    model.partial_fit(X[100:170])
    assert set(map(tuple, model._examples)) <= set(map(tuple, X[100:170]))
    assert len(model._examples) == len(model.partial_fit(X[170:])._examples) == 40


@pytest.mark.parametrize("n", [1, 2, 3, 4, 8, 9, 20, 21, 22, 1000, 4180, 4181, 4182])
def test_rows_are_kept_in_the_order_of_multiples_of_the_golden_ratio(n):
    keys = np.arange(n) * ((5**0.5 - 1) / 2) % 1.0
    for most in (1, 2, 7, 60, 999, 5000):
        np.testing.assert_array_equal(evenly_ranked(n, most), np.argsort(keys)[:most])


def test_rows_that_alternate_are_kept_alike():
    numbers = evenly_ranked(10**9, 1000)
    assert len(numbers) == 1000
    assert np.diff(np.sort(numbers)).max() < 3 * 10**6
    for period in (2, 3, 10, 64):
        assert np.bincount(numbers % period, minlength=period).min() > 0.7 * 1000 / period


def test_a_regression_learns_from_as_many_rows_as_after_fit():
    rows = along_a_line(2500)
    model = in_batches(np.split(rows, 5), n_components=6, **LINE | {"preimage": "ridge"})
    assert len(model._examples) == len(KernelPCA(6, **HOW | LINE, preimage="ridge").fit(rows)._examples) == 2000


def test_a_way_back_that_is_asked_for_later_has_an_even_sample_too():
    """Rows that were dropped do not come again, so that those to come are kept as seldom as those so far."""
    rows = along_a_line()
    model = in_batches([rows[:1000]], n_components=6, **LINE).set_params(preimage="ridge").partial_fit(rows[1000:])
    assert len(model._examples) == pytest.approx(120, abs=5)
    assert np.median(model._examples[:, 0]) == pytest.approx(5, abs=0.3)
    model.set_params(preimage=None).partial_fit(rows[:1])
    assert len(model._examples) == 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gamma": 0.2}, r"kernel .*gamma=0\.1.*gamma=0\.2.*fit begins anew"),
        ({"gamma": None}, r"gamma=0\.1.*gamma=0\.25.*fit begins anew"),
        ({"kernel": "laplacian"}, "Gaussian.*Laplacian.*fit begins anew"),
        ({"kernel": Gaussian(0.3)}, r"gamma=0\.1.*gamma=0\.3.*fit begins anew"),
        ({"kernel": "cosine"}, "Gaussian.*Cosine.*fit begins anew"),
        ({"rank": 20}, "40 features, and rank=20 asks for 20.*fit begins anew"),
    ],
)
def test_another_kernel_or_rank_needs_a_fit_that_begins_anew(change, words):
    model = in_batches([X[:100]]).set_params(**change)
    before = model.transform(X)
    with pytest.raises(ValueError, match=words):
        model.partial_fit(X[100:])
    np.testing.assert_array_equal(model.transform(X), before)
    assert model.n_samples_seen_ == 100


@pytest.mark.parametrize(
    ("how", "change"),
    [
        ({}, {"kernel": Gaussian(0.1)}),
        ({"gamma": None}, {"gamma": 0.25}),
        ({"kernel": "laplacian"}, {"kernel": Laplacian(0.1), "gamma": None}),
        ({"rank": 41}, {"rank": 40}),
        ({"rank": 1}, {"rank": 2}),
        ({}, {"rank": None}),
    ],
)
def test_the_same_kernel_and_rank_by_another_name_go_on(how, change):
    model = in_batches([X[:100]], n_components=1, **how).set_params(**change).partial_fit(X[100:])
    np.testing.assert_array_equal(model.transform(X), in_batches([X[:100], X[100:]], 1, **how).transform(X))


def test_a_width_that_fit_has_found_goes_on():
    model = KernelPCA(3, **HOW | {"gamma": "median"}).fit(X[:200])
    gamma = model.gamma_
    assert model.partial_fit(X[200:]).gamma_ == gamma
    with pytest.raises(ValueError, match="fit begins anew"):
        model.set_params(kernel="laplacian").partial_fit(X)


def test_a_rank_that_fit_held_to_its_rows_goes_on():
    model = KernelPCA(3, **HOW).fit(X[:30])
    assert model.partial_fit(X[30:]).n_samples_seen_ == 240
    assert len(model.partial_fit(X)._mean) == 30


def test_fit_begins_anew_and_partial_fit_goes_on():
    model = in_batches([X[:100] + 5]).fit(X[:200])
    np.testing.assert_array_equal(model.transform(X), KernelPCA(3, **HOW).fit(X[:200]).transform(X))
    np.testing.assert_allclose(model.partial_fit(X[200:]).transform(X), in_batches([X]).transform(X), atol=1e-10)


def test_a_model_that_was_fitted_otherwise_cannot_go_on():
    model = KernelPCA(2, approximation="rpcholesky").fit(X).set_params(approximation="fourier")
    with pytest.raises(ValueError, match="no moments of features to go on with"):
        model.partial_fit(X)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"gamma": "scale"}, '"scale" would be that of the first batch alone'),
        ({"gamma": "median"}, '"median" would be that of the first batch alone'),
        ({"n_components": "held-out"}, '"held-out" needs all rows at once'),
        ({"kernel": "poly"}, 'Use "nystroem"'),
        ({"n_components": 0}, "n_components"),
    ],
)
def test_refusals_say_what_to_do(how, words):
    with pytest.raises(ValueError, match=words):
        KernelPCA(**HOW | how).partial_fit(X)


@pytest.mark.parametrize("approximation", ["auto", None, "nystroem", "rpcholesky"])
def test_the_other_approximations_need_all_rows_at_once(approximation):
    model = KernelPCA(2, approximation=approximation)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match='goes with approximation="fourier"'):
        model.partial_fit(X)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_moments_of_batches_are_those_of_all_rows(offset, kind):
    plain = np.round(X * 2**20) / 2**20
    found = Running.nothing(4, plain[0] + offset if offset else None)
    for batch in np.split(plain + offset, [1, 2, 50, 51, 200]):
        found = found.and_of(as_rows(kind(batch)))
    assert found.count == 240
    about = plain[0] if offset else 0.0
    np.testing.assert_allclose(found.mean + about, plain.mean(axis=0), atol=1e-13)
    expected = np.cov(plain.T) * 239
    np.testing.assert_allclose(found.scatter, expected, atol=1e-12 * np.trace(expected))
    assert found.total == pytest.approx(np.trace(expected), rel=1e-12)
