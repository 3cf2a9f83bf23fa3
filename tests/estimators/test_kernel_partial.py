"""partial_fit of kernel PCA by Fourier features: the answer of a fit to all rows, however they are cut."""

import numpy as np
import pytest
from scipy import sparse

import princomp
from princomp import KernelPCA
from princomp.data import as_rows
from princomp.data.running import Running

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
