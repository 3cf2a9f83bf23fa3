"""The one view of S = X'X: a matrix, data, passes over rows, some features of them, and X' say the same of it."""

import numpy as np
import pytest
import scipy.sparse as sp

from princomp.data import as_rows, statistics
from princomp.solvers import scatter
from princomp.solvers.deflation import deflated
from princomp.solvers.scatter import Data, Factored, Matrix, Passes


def centred(n, p, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, p)) * np.linspace(3, 1, p)
    return X - X.mean(axis=0)


def passes(X):
    rows = as_rows(X)
    return Passes(statistics.moments(rows).centered(rows))


# Views of X'X, by what they are made of.
VIEWS = {
    "matrix": lambda X: Matrix(X.T @ X),
    "data": Data,
    "passes": passes,
    "passes over sparse rows": lambda X: passes(sp.csr_array(X)),
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


@pytest.mark.parametrize("view", ["data", "passes", "passes over sparse rows", "transposed data", "transposed passes"])
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
