"""The one view of S = X'X: a matrix, data, passes over rows, some features of them, and X' say the same of it."""

import numpy as np
import pytest
import scipy.sparse as sp

from princomp.data import Centered, as_rows, statistics
from princomp.solvers import scatter
from princomp.solvers.deflation import deflated
from princomp.solvers.scatter import Data, Factored, Matrix, Passes
from princomp.solvers.scatter_sparse import SparseData
from storages import STORAGES


def centred(n, p, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, p)) * np.linspace(3, 1, p)
    return X - X.mean(axis=0)


def passes(X):
    rows = as_rows(X)
    return Passes(statistics.moments(rows).centered(rows))


def sparse_data(X):
    """The view of sparse rows of other columns, by other units: what they are in X again."""
    rows = as_rows(sp.csr_array(X * np.arange(1, X.shape[1] + 1)))
    return SparseData(statistics.moments(rows).centered(rows, 1.0 / np.arange(1, X.shape[1] + 1)), rows.matrix)


# Views of X'X, by what they are made of.
VIEWS = {
    "matrix": lambda X: Matrix(X.T @ X),
    "data": Data,
    "passes": passes,
    "passes over sparse rows": lambda X: passes(sp.csr_array(X)),
    "sparse data": sparse_data,
    "factor": lambda X: scatter.factor(X.T @ X),
    "transposed data": lambda X: Data(np.ascontiguousarray(X.T)).T,
    "transposed passes": lambda X: passes(X).T.T,
}
SHAPES = [(40, 12), (12, 12), (10, 25), (6, 40)]  # tall, square, p near n, wide


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_says_the_same(view, shape):
    X = centred(*shape)
    S, V = X.T @ X, np.random.default_rng(1).standard_normal((shape[1], 3))
    found, J = VIEWS[view](X), np.array([1, 4, 7, 9])
    assert found.features == shape[1]
    assert found.total == pytest.approx(np.trace(S))
    for roughly, tolerance in ((False, 1e-11), (True, 1e-4)):
        size = tolerance * np.linalg.norm(S)
        np.testing.assert_allclose(found.apply(V, roughly=roughly), S @ V, atol=size)
        np.testing.assert_allclose(found.combine(J, V[J].T, roughly=roughly), V[J].T @ S[J], atol=size)
        np.testing.assert_allclose(found.rows(J), S[J], atol=size)
        once, twice = found.restrict(J, roughly=roughly)(V[J])
        np.testing.assert_allclose(once, S[np.ix_(J, J)] @ V[J], atol=size)
        np.testing.assert_allclose(twice, (S @ S)[np.ix_(J, J)] @ V[J], atol=size * np.linalg.norm(S))
    np.testing.assert_allclose(found.diagonal, np.diag(S), atol=1e-11)
    np.testing.assert_allclose(found.part(J, J[:2]), S[np.ix_(J, J[:2])], atol=1e-11)
    values, vectors = found.leading(4, np.random.default_rng(0))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(S)[::-1][:4], atol=1e-7 * np.linalg.norm(S))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-10)


@pytest.mark.parametrize("view", VIEWS)
def test_some_features_of_every_view(view):
    X, J = centred(15, 20), np.array([19, 0, 3, 11])
    S, some = X.T @ X, VIEWS[view](X).among(J)
    W = np.random.default_rng(0).standard_normal((2, 3))
    assert some.features == 4
    np.testing.assert_allclose(some.diagonal, np.diag(S)[J], atol=1e-11)
    np.testing.assert_allclose(some.apply(np.eye(4)), S[np.ix_(J, J)], atol=1e-11)
    np.testing.assert_allclose(some.combine(np.array([0, 1, 3]), W), W @ S[np.ix_(J[[0, 1, 3]], J)], atol=1e-11)
    again = some.among(np.array([2, 1]))
    np.testing.assert_allclose(again.apply(np.eye(2)), S[np.ix_([3, 0], [3, 0])], atol=1e-11)


@pytest.mark.parametrize(
    "view", ["data", "passes", "passes over sparse rows", "sparse data", "transposed data", "transposed passes"]
)
def test_products_with_X_and_with_its_transpose(view):
    X, rng = centred(9, 14), np.random.default_rng(0)
    found, V, U = VIEWS[view](X), rng.standard_normal((14, 2)), rng.standard_normal((9, 2))
    assert isinstance(found, Factored)
    for one, A, B, C in ((found, X, V, U), (found.T, X.T, U, V)):
        assert one.shape == A.shape
        np.testing.assert_allclose(one.times(B), A @ B, atol=1e-12)
        np.testing.assert_allclose(one.transpose_times(C), A.T @ C, atol=1e-12)
        np.testing.assert_allclose(one.apply(B), A.T @ (A @ B), atol=1e-11)
        np.testing.assert_allclose(one.diagonal, (A**2).sum(axis=0), atol=1e-11)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", ["schur", "projection", "generalised", "hotelling"])
def test_what_components_leave_is_the_same_in_every_view(view, kind):
    X = centred(15, 10)
    found, twin = deflated(VIEWS[view](X), kind), deflated(Matrix(X.T @ X), kind)
    for j in (2, 5):
        x = np.where(np.arange(10) % j == 0, 1.0, 0.0)
        found, twin = found.without(x / np.linalg.norm(x)), twin.without(x / np.linalg.norm(x))
    assert found.shift == pytest.approx(twin.shift, abs=1e-10)
    np.testing.assert_allclose(found.diagonal, np.diag(twin.matrix), atol=1e-10)
    np.testing.assert_allclose(found.rows(np.arange(10)), twin.matrix, atol=1e-10)
    np.testing.assert_allclose(found.apply(np.eye(10)), twin.matrix, atol=1e-10)
    np.testing.assert_allclose(found.times(np.eye(10)[[3, 4]]), twin.matrix[[3, 4]], atol=1e-10)


def test_a_copy_is_made_only_where_it_may_be(monkeypatch):
    X = centred(30, 5)
    rows = as_rows(X)
    assert isinstance(scatter.of_rows(statistics.moments(rows).centered(rows)), Data)
    rows.local = False
    assert isinstance(scatter.of_rows(statistics.moments(rows).centered(rows)), Passes)
    rows.local = True
    monkeypatch.setattr(scatter.budget, "available_bytes", lambda: 8 * 30 * 5 / scatter.COPIED - 1)
    assert isinstance(scatter.of_rows(statistics.moments(rows).centered(rows)), Passes)
    sparse = as_rows(sp.csr_array(X))
    assert isinstance(scatter.of_rows(statistics.moments(sparse).centered(sparse)), Passes)


def test_sparse_rows_stay_sparse_where_that_is_quicker_and_costs_no_digits():
    rng = np.random.default_rng(0)
    for density, offset, expected in ((0.1, 0.0, SparseData), (0.6, 0.0, Data), (0.1, 1e3, Data)):
        X = rng.standard_normal((200, 30)) * (rng.random((200, 30)) < density)
        X[:, 0] += offset
        rows = as_rows(sp.csr_array(X))
        assert type(scatter.of_rows(statistics.moments(rows, by_column=True).centered(rows))) is expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("starts", [1, 3])
@pytest.mark.parametrize("scaled", ["not", "usual units", "extreme units"])
@pytest.mark.parametrize("storage", ["array", "fortran", "memmap", "shards", "csr"])
def test_images_of_data_that_are_centred_and_scaled_on_the_way(storage, scaled, starts, dtype, tmp_path, monkeypatch):
    """Beside sums in long double of the numbers as stored; tiles end within blocks, blocks of many rows are cut."""
    monkeypatch.setattr(statistics, "FUSED_BYTES", 8 * 30 * 16)
    monkeypatch.setattr(statistics, "GRAM_ROWS", 50)
    rng, (n, p) = np.random.default_rng(0), (120, 30)
    sizes = np.geomspace(*{"not": (1, 1), "usual units": (1e-4, 1e4), "extreme units": (1e-18, 1e18)}[scaled], p)
    X = ((rng.standard_normal((n, p)) + 300 * rng.uniform(-1, 1, p)) * sizes).astype(dtype)
    rows = as_rows(STORAGES[storage](X, tmp_path))
    mean, factor = X.mean(axis=0, dtype=np.float64), None if scaled == "not" else 1 / sizes
    Z, other = rng.standard_normal((2, p, starts))
    exact = (X.astype(np.longdouble) - mean) * (1 if factor is None else factor)
    single = dtype == np.float32 and storage != "csr"
    of = Centered(rows, mean, factor, dense_tiles=storage == "csr", single=single)
    for each in (of, of.in_single() if single else of):
        images, squares = Passes(each).images(Z, other)
        assert images.dtype == squares.dtype == np.float64
        tol = (1e-6 if single else 1e-14) * float(np.linalg.norm(exact) ** 2)
        np.testing.assert_allclose(images, (exact.T @ (exact @ Z)).astype(float), rtol=0, atol=tol)
        sums = [((exact @ V) ** 2).sum(axis=0).astype(float) for V in (Z, other)]
        np.testing.assert_allclose(squares, sums, rtol=1e-5 if single else 1e-13)


@pytest.mark.parametrize("factor", [None, 2.0])
def test_what_is_in_single_precision_row_by_row_is_not_copied(factor):
    X = np.random.default_rng(0).standard_normal((40, 7)).astype(np.float32)
    factors = None if factor is None else np.full(7, factor)
    kept, _ = as_rows(X).in_single(None, factors)
    assert np.shares_memory(kept.block(0), X) == (factor is None)
    turned, _ = as_rows(np.asfortranarray(X)).in_single(None, factors)
    assert turned.block(0).flags.c_contiguous
