"""Sparse canonical correlation: planted supports, invariants, scikit-learn's conventions."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cross_decomposition import CCA
from sklearn.exceptions import ConvergenceWarning

from princomp.estimators.sparse_cca import SparseCCA

ROWS = [0, 5, 10, 15, 20]
CORRELATIONS = np.array([0.9, 0.8])


def planted(seed, n=200, p=300, q=600):
    """Identity covariances, two pairs of canonical vectors on five features of each side; and test data."""
    rng = np.random.default_rng(seed)

    def vectors(d):
        while True:
            M = rng.integers(-2, 3, (5, 2)).astype(float)
            if M.any(axis=1).all() and np.linalg.matrix_rank(M) == 2:
                break
        U = np.zeros((d, 2))
        U[ROWS] = np.linalg.qr(M)[0]
        return U

    U, V = vectors(p), vectors(q)

    def draw(n):
        X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
        own = Y @ V
        return X, Y + ((X @ U) * CORRELATIONS + own * (np.sqrt(1 - CORRELATIONS**2) - 1)) @ V.T

    return draw(n), draw(2000)


def found_rows(weights):
    return set(np.flatnonzero(np.linalg.norm(weights, axis=1) > 1e-8))


def test_planted_supports_are_found_and_correlations_hold_on_new_data():
    right, wrong, ours, theirs = [], [], [], []
    for seed in range(3):
        (X, Y), (X_test, Y_test) = planted(seed)
        cca = SparseCCA(2).fit(X, Y)
        assert cca.certificate_.holds
        x, y = found_rows(cca.x_weights_), found_rows(cca.y_weights_)
        right.append(len(x & set(ROWS)) + len(y & set(ROWS)))
        wrong.append(len(x - set(ROWS)) + len(y - set(ROWS)))
        ours.append(cca.score(X_test, Y_test))
        peer = CCA(2).fit(X, Y)
        a, b = peer.transform(X_test, Y_test)
        theirs.append(np.mean([abs(np.corrcoef(a[:, j], b[:, j])[0, 1]) for j in range(2)]))
    assert np.median(right) >= 9
    assert np.median(wrong) <= 5
    assert np.mean(ours) >= 0.9 * CORRELATIONS.mean()
    assert np.mean(ours) > np.mean(theirs) + 0.3


def small(seed=0):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(80, 12)) * np.linspace(1, 50, 12) + 9, rng.normal(size=(80, 15))
    Y[:, :3] += 0.2 * X[:, 9:]
    return X, Y


def test_constraints_objective_and_signs():
    X, Y = small()
    cca = SparseCCA(2).fit(X, Y)
    A, B = cca.result_.value["A"], cca.result_.value["B"]
    U, V = (X - X.mean(0)) / X.std(0, ddof=1), (Y - Y.mean(0)) / Y.std(0, ddof=1)
    n = len(X)
    assert np.allclose(A.T @ (U.T @ U) @ A / (n - 1), np.eye(2), atol=1e-4)
    assert np.allclose(B.T @ (V.T @ V) @ B / (n - 1), np.eye(2), atol=1e-4)
    rows = cca.alpha_x_ * np.linalg.norm(A, axis=1).sum() + cca.alpha_y_ * np.linalg.norm(B, axis=1).sum()
    assert cca.result_.objective == pytest.approx(-np.trace(A.T @ U.T @ V @ B) / (n - 1) + rows)
    assert (A[np.abs(A).argmax(0), [0, 1]] > 0).all()
    assert (np.diff(cca.correlations_) <= 0).all()


def test_units_do_not_matter_and_data_are_not_changed():
    X, Y = small()
    before = X.copy(), Y.copy()
    one = SparseCCA(2).fit(X, Y)
    assert (before[0] == X).all()
    assert (before[1] == Y).all()
    other = SparseCCA(2).fit(X * 2.0**20, Y * 2.0**-30)
    assert np.allclose(one.x_weights_, other.x_weights_, atol=1e-6)
    assert np.allclose(one.transform(X), other.transform(X * 2.0**20), atol=1e-6)


def test_transform_of_one_row_and_of_both_sides():
    X, Y = small()
    cca = SparseCCA(2).fit(X, Y)
    x, y = cca.transform(X, Y)
    assert np.allclose(cca.transform(X[5:6]), x[5:6])
    assert np.allclose([np.corrcoef(x[:, j], y[:, j])[0, 1] for j in range(2)], cca.correlations_)
    assert cca.score(X, Y) == pytest.approx(cca.correlations_.mean())


def test_sparse_input_gives_the_same():
    X, Y = small()
    X[np.abs(X) < 10] = 0
    one, other = SparseCCA(1).fit(X, Y), SparseCCA(1).fit(sp.csr_array(X), sp.csr_array(Y))
    assert np.allclose(one.x_weights_, other.x_weights_, atol=1e-6)
    assert np.allclose(one.transform(X), other.transform(sp.csr_array(X)), atol=1e-6)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"n_components": 0}, "n_components"), ({"alpha_x": -1}, "alpha_x"), ({"alpha_y": np.inf}, "alpha_y")],
)
def test_wrong_parameters_are_named(parameters, words):
    with pytest.raises(ValueError, match=words):
        SparseCCA(**parameters).fit(*small())


def test_rows_must_match():
    X, Y = small()
    with pytest.raises(ValueError, match="as many rows"):
        SparseCCA().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="SparseCCA requires y to be passed, but the target y is None"):
        SparseCCA().fit(X)


@pytest.mark.parametrize("factor", [1e-170, 1e170])
def test_squares_that_float64_does_not_hold_need_scaling(factor):
    X, Y = small()
    for pair in ((X * factor, Y), (X, Y * factor)):
        with pytest.raises(ValueError, match=r"Squares of X or Y are out of the range of float64\. Use scale=True"):
            SparseCCA(scale=False).fit(*pair)
        assert SparseCCA().fit(*pair).score(*pair) == pytest.approx(SparseCCA().fit(X, Y).score(X, Y))


def two_factors(seed, n=200, p=30, q=40):
    """Two pairs of correlated groups, of 3 and 4 features, and noise."""
    rng = np.random.default_rng(seed)
    z, X, Y = rng.normal(size=(n, 2)), rng.normal(size=(n, p)), rng.normal(size=(n, q))
    for j, strength in enumerate((2, 1.5)):
        X[:, 3 * j : 3 * j + 3] += strength * z[:, [j]]
        Y[:, 4 * j : 4 * j + 4] += strength * z[:, [j]]
    return X, Y


@pytest.mark.parametrize(("seed", "shape"), [(0, (200, 30, 40)), (1, (240, 36, 48)), (2, (160, 24, 32))])
@pytest.mark.parametrize("k", [1, 2])
def test_a_larger_alpha_leaves_fewer_features_down_to_one_for_each_pair(k, seed, shape):
    X, Y = two_factors(seed, *shape)
    counts = []
    for alpha in (0.02, 0.3, 10.0, 100.0, 1e6):
        cca = SparseCCA(k, alpha_x=alpha, alpha_y=alpha, max_iter=200).fit(X, Y)
        assert cca.certificate_.holds
        assert cca.certificate_.residual <= cca.tol
        counts.append((len(found_rows(cca.x_weights_)), len(found_rows(cca.y_weights_))))
        if alpha >= 10:
            assert counts[-1] == (k, k)
            assert cca.n_iter_ <= 20
    assert (np.diff(counts, axis=0) <= 0).all()
    assert min(counts[0]) > k


def test_the_objective_of_one_feature_on_each_side():
    """With one pair and a large alpha the objective is that of two columns: 2 alpha less their correlation."""
    X, Y = two_factors(0)
    cca = SparseCCA(alpha_x=100.0, alpha_y=100.0).fit(X, Y)
    i, j = np.flatnonzero(cca.x_weights_)[0], np.flatnonzero(cca.y_weights_)[0]
    correlations = np.abs(np.corrcoef(X.T, Y.T)[: X.shape[1], X.shape[1] :])
    assert cca.result_.objective == pytest.approx(200 - correlations[i, j], abs=1e-4)
    assert correlations[i, j] > 0.7


@pytest.mark.needs("pandas")
def test_columns_of_the_other_side_must_be_those_of_the_fit():
    import pandas as pd

    X, Y = small()
    dx, dy = pd.DataFrame(X).add_prefix("x"), pd.DataFrame(Y).add_prefix("y")
    cca = SparseCCA().fit(dx, dy)
    for other in (dy[dy.columns[::-1]], dy.rename(columns={"y0": "z"})):
        with pytest.raises(ValueError, match=r"names of Y .* column 0 is '(y14|z)', but was 'y0'"):
            cca.score(dx, other)
        with pytest.raises(ValueError, match="names of Y"):
            cca.transform(dx, other)
    assert cca.score(dx, dy) == cca.score(dx, Y) == pytest.approx(cca.correlations_.mean())
    assert np.isfinite(cca.fit(dx, Y).score(dx, dy[dy.columns[::-1]]))  # fitted without names: none to compare


@pytest.mark.parametrize("method", ["score", "transform"])
def test_rows_must_match_after_the_fit(method):
    X, Y = small()
    cca = SparseCCA().fit(X, Y)
    with pytest.raises(ValueError, match="as many rows: found 80 and 79"):
        getattr(cca, method)(X, Y[:-1])
    with pytest.raises(ValueError, match=f"Y has {Y.shape[1] - 1} features, but was fitted with {Y.shape[1]}"):
        getattr(cca, method)(X, Y[:, 1:])


def test_callback_stops_and_checkpoint_resumes_for_the_same_data_only(tmp_path):
    X, Y = small()
    path = tmp_path / "state"
    weights = {"alpha_x": 0.02, "alpha_y": 0.02}  # the default ones take fewer steps than this stops after
    seen = []

    def stop(state):
        seen.append(state.objective)
        return len(seen) == 3

    with pytest.warns(ConvergenceWarning, match="Stopped by the callback after 3"):
        SparseCCA(2, **weights, callback=stop, checkpoint=path).fit(X, Y)
    assert len(seen) == 3
    stored = path.read_bytes()
    other = SparseCCA(2, **weights, checkpoint=path)
    with pytest.raises(ValueError, match="another"):
        other.fit(X, Y[::-1])
    assert path.read_bytes() == stored
    resumed = SparseCCA(2, **weights, checkpoint=path).fit(X, Y)
    direct = SparseCCA(2, **weights).fit(X, Y)
    assert not path.exists()
    assert (resumed.x_weights_ == direct.x_weights_).all()
    assert (resumed.y_weights_ == direct.y_weights_).all()
    assert resumed.n_iter_ == direct.n_iter_ > 3
