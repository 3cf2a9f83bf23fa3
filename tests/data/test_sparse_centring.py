"""Sparse data are centred without being filled in: what that costs in digits, and what certificates say of it."""

import numpy as np
import pytest
import scipy.sparse as sp

from princomp import PCA
from princomp.certificates import floor_of_data, taken_off
from princomp.data import Centered, as_rows, statistics

EPS = np.finfo(float).eps


def far_from_zero(n, p, offset, seed=0):
    """Return a dense table that is about ``offset`` everywhere and varies by one, and the same exactly centred."""
    X = np.random.default_rng(seed).standard_normal((n, p)) + offset
    exact = X.astype(np.longdouble)
    return X, exact - exact.mean(axis=0)


@pytest.mark.parametrize("offset", [3.0, 300.0, 3000.0])
def test_a_mean_costs_its_own_size_in_digits_and_not_its_square(offset):
    X, exact = far_from_zero(400, 30, offset)
    rows = as_rows(sp.csr_array(X))
    centred = Centered(rows, X.mean(axis=0))
    assert taken_off(centred) > 0, "the problem is one of implicit centring"
    V = np.linalg.qr(np.random.default_rng(1).standard_normal((30, 5)))[0]
    images, gram, _ = statistics.gram_apply_and_scores(centred, V)
    Z = exact @ V
    wrong = np.abs(images - exact.T @ Z).max() / np.abs(exact.T @ Z).max()
    assert wrong <= 20 * EPS * (1 + offset)
    assert np.abs(np.diag(gram) - (Z * Z).sum(axis=0)).max() <= floor_of_data(centred, np.diag(gram)).min()


@pytest.mark.parametrize("shape", [(168, 70), (70, 168)])
@pytest.mark.parametrize("solver", ["krylov", "eigh", "svd"])
@pytest.mark.parametrize("offset", [10.0, 1000.0])
def test_errors_stated_for_sparse_data_far_from_zero_are_no_smaller_than_they_are(shape, solver, offset):
    X, exact = far_from_zero(*shape, offset)
    found = PCA(4, solver=solver, random_state=0).fit(sp.csr_array(X))
    true = np.linalg.svd(exact.astype(float), compute_uv=False)[:4] ** 2 / (shape[0] - 1)
    assert found.certificate_.holds
    assert (np.abs(found.explained_variance_ - true) <= found.certificate_.details["error"] + 8 * EPS * true).all()
    if solver == "krylov" or shape[0] < shape[1]:
        assert found.certificate_.details["floor"].max() <= 1e-12 * (1 + offset / 10) * true[0]


# --- one column whose mean dwarfs its deviation ---------------------------------------------------


def with_one_mean(deviations, n=300, p=12, column=7, seed=0):
    """Sparse columns with a variance of one, but for one full column, whose mean is so many standard deviations."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.2)
    full = rng.standard_normal(n)
    X[:, column] = 3.0 * ((full - full.mean()) / full.std() + deviations)
    return X


@pytest.mark.parametrize("form", ["by_column", "scatter"])
@pytest.mark.parametrize("size", [1.0, 2.0**300, 2.0**-300])
@pytest.mark.parametrize("deviations", [9.0, 11.0, -11.0, 1e6])
def test_one_mean_of_more_than_ten_deviations_makes_tiles_dense(deviations, size, form):
    """In whatever units: ``factor`` puts the squares right, and the mean is looked at in the same units."""
    X = with_one_mean(deviations)
    factor = np.full(12, 1 / size)
    found = statistics.moments(as_rows(sp.csr_array(X * size)), factor=factor, **{form: True})
    assert found.dense_tiles == (abs(deviations) > 10)
    exact = X.astype(np.longdouble)
    exact = exact - exact.mean(axis=0)
    np.testing.assert_allclose(found.squares, (exact**2).sum(axis=0).astype(float), rtol=1e-8)
    rows = as_rows(sp.csr_array(X))
    for centred in (found.centered(rows), statistics.dense_enough(Centered(rows, X.mean(axis=0)))):  # a fit, scores
        assert centred.dense_tiles == found.dense_tiles


@pytest.mark.parametrize("factor", [[1.0, 1.0, 1.0], [1.0, 2.0, 0.5]])
def test_columns_are_multiplied_where_one_of_them_is_not(factor):
    X = np.random.default_rng(0).standard_normal((20, 3)) + 1.0
    centred = Centered(as_rows(sp.csr_array(X)), X.mean(axis=0), np.array(factor))
    right = (X - X.mean(axis=0)) * factor
    np.testing.assert_allclose(statistics.scatter(centred), right.T @ right, rtol=1e-12)
    np.testing.assert_allclose(statistics.row_gram(centred), right @ right.T, atol=1e-12)


@pytest.mark.parametrize("deviations", [10.0, 40.0])
def test_a_mean_is_held_against_the_spread_of_all_columns_where_theirs_are_not_known(deviations):
    """So that one column of twelve may be further from zero before tiles are made dense."""
    X = with_one_mean(deviations)
    share = X[:, 7].var() / X.var(axis=0).sum()
    found = statistics.moments(as_rows(sp.csr_array(X)))
    assert found.squares is None
    assert found.dense_tiles == (deviations**2 * share > 100)
    assert np.isclose(found.total, ((X - X.mean(axis=0)) ** 2).sum(), rtol=1e-9)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("solver", ["eigh", "svd", "krylov"])
def test_components_beside_one_huge_mean_are_those_of_dense_data(solver, scale):
    """The smallest of all columns has the huge mean: its component is there, and so are its scores."""
    X = with_one_mean(1e7)
    X[:, 7] /= 30
    dense = PCA(12, solver="svd", scale=scale).fit(X)
    sparse = PCA(12, solver=solver, scale=scale, tol=1e-9, random_state=0).fit(sp.csr_array(X))
    np.testing.assert_allclose(sparse.explained_variance_, dense.explained_variance_, rtol=1e-6)
    last = 11 if not scale else int(np.abs(dense.components_[:, 7]).argmax())
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X))[:, last], dense.transform(X)[:, last], atol=1e-5)
    assert sparse.certificate_.holds


def test_blocks_share_the_memory_of_the_matrix():
    """Also where SciPy would copy them, since they are small parts of it."""
    X = sp.random(400, 30, density=0.3, format="csr", rng=0)
    rows = as_rows(X, block_rows=50)
    single, _ = as_rows(X.astype(np.float32)).in_single(None, None)
    assert len(rows.offsets) == 9
    for i in range(8):
        block = rows.block(i)
        assert np.shares_memory(block.data, X.data)
        assert np.shares_memory(block.indices, X.indices)
        np.testing.assert_array_equal(block.toarray(), X[rows.rows(i)].toarray())
    assert single.block(0).dtype == np.float32


# --- constant columns -----------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1.0, np.pi, 1e9])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("solver", ["eigh", "krylov"])
def test_a_constant_column_is_no_reason_to_make_tiles_dense(value, scale, solver, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30)) * (rng.random((400, 30)) < 0.1)
    more = np.hstack([X, np.full((400, 1), value)])
    plain = PCA(3, solver=solver, scale=scale, random_state=0).fit(X)
    rows = as_rows(sp.csr_array(more))
    found = statistics.moments(rows, by_column=True)
    assert not found.dense_tiles
    assert found.squares[30] == 0
    assert found.mean[30] == value
    pca = PCA(3, solver=solver, scale=scale, random_state=0).fit(sp.csr_array(more))
    np.testing.assert_allclose(pca.explained_variance_, plain.explained_variance_, rtol=1e-9 + 1e-14 * value)
    assert np.abs(pca.components_[:, 30]).max() <= 1e-12 * value


def test_a_column_that_hardly_varies_is_one():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 30)) * (rng.random((400, 30)) < 0.1)
    X[:, 7] = 1.0
    X[11, 7] += 1e-6
    assert statistics.moments(as_rows(sp.csr_array(X)), by_column=True).dense_tiles
