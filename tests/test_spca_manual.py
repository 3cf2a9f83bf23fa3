"""`spca` and `normalize` do what the A-ManPG manual means; each defect of its packages is a test here."""

import inspect

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning

from princomp.certificates import regression_stationarity
from princomp.datasets import load_pitprops
from princomp.manual import normalize, spca

PITPROPS = load_pitprops().correlation
LAMBDA1 = [0.06, 0.16, 0.1, 0.5, 0.5, 0.5]


def random_data(n=60, p=20, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)) + 5


def test_signature_defaults_and_keys():
    parameters = {name: one.default for name, one in inspect.signature(spca).parameters.items()}
    empty = inspect.Parameter.empty
    assert parameters == {
        "z": empty,
        "lambda1": empty,
        "lambda2": empty,
        "x0": None,
        "y0": None,
        "k": 0,
        "gamma": 0.5,
        "type": 0,
        "maxiter": 1e4,
        "tol": 1e-5,
        "f_palm": 1e5,
        "normalize": True,
        "verbose": False,
    }
    assert list(parameters)[:3] == ["z", "lambda1", "lambda2"]
    found = spca(random_data(), 0.1, 1.0, k=2)
    assert list(found) == ["loadings", "f_manpg", "x", "iter", "sparsity", "time"]


def test_normalize_works_on_columns_and_keeps_its_input():
    x = random_data()
    x[:, 3] = 7.0
    before = x.copy()
    z = normalize(x)
    assert (x == before).all()
    assert np.allclose(z.mean(axis=0), 0)
    assert np.allclose(np.delete(np.linalg.norm(z, axis=0), 3), 1)
    assert not z[:, 3].any()
    assert np.allclose(normalize(x, center=False, scale=False), x)
    assert np.allclose(np.linalg.norm(normalize(x, center=False), axis=0), 1)


def test_default_start_is_the_leading_right_singular_vectors():
    """The peer takes columns of V', and ends at -8.98 on pitprops and at -2.306 on the random problem."""
    found = spca(PITPROPS, LAMBDA1, 1e-6, k=6, type=1, tol=1e-11)
    assert found["f_manpg"] == pytest.approx(-9.110125982, abs=1e-6)
    Z = np.random.RandomState(10).randn(1000, 500)
    Z -= Z.mean(axis=0)
    Z /= np.linalg.norm(Z, axis=0).max()
    found = spca(Z, 0.3, np.inf, k=4, normalize=False, tol=1e-9)
    assert found["f_manpg"] == pytest.approx(-4.85415805, abs=1e-4)


@pytest.mark.parametrize("lambda2", [1.0, np.inf])
def test_a_covariance_is_neither_squared_nor_centred(lambda2):
    z = normalize(random_data())
    data = spca(z, 0.1, lambda2, k=3, normalize=False, tol=1e-12)
    covariance = spca(z.T @ z, 0.1, lambda2, k=3, type=1, tol=1e-12)  # normalize=True is the default
    assert covariance["f_manpg"] == pytest.approx(data["f_manpg"], abs=1e-8)
    assert np.allclose(np.abs(covariance["loadings"]), np.abs(data["loadings"]), atol=1e-4)


def test_inputs_are_not_changed():
    z, x0 = random_data(), np.eye(20, 3)
    before = z.copy()
    spca(z, 0.1, 1.0, x0=x0, y0=x0, k=3)
    assert (z == before).all()
    assert (x0 == np.eye(20, 3)).all()
    covariance = PITPROPS.copy()
    spca(covariance, 0.1, 1.0, k=2, type=1)
    assert (covariance == PITPROPS).all()


@pytest.mark.parametrize("lambda2", [1e-6, 1.0, np.inf])
def test_x_stays_orthonormal_and_f_is_that_of_the_answer(lambda2):
    """The peer drifts to |A'A - I| = 3.6e-4, and reports an F below the minimum."""
    found = spca(PITPROPS, LAMBDA1, lambda2, k=6, type=1, tol=1e-10)
    A = found["x"]
    assert np.abs(A.T @ A - np.eye(6)).max() < 1e-12
    lowest = {1e-6: -9.110125982, 1.0: -6.302189283, np.inf: -25.717683258}[lambda2]
    assert lowest - 1e-8 <= found["f_manpg"] <= lowest + 1e-5


def test_a_tight_tolerance_is_reached():
    """The peer is not there after 9999 iterations on 13 variables."""
    assert spca(PITPROPS, LAMBDA1, 1e-6, k=6, type=1, tol=1e-12)["iter"] < 5000


@pytest.mark.parametrize("lambda1", [[0.1, 0.2], (0.1, 0.2), np.array([0.1, 0.2]), np.array([[0.1], [0.2]])])
def test_lambda1_in_any_form(lambda1):
    expected = spca(random_data(), np.array([0.1, 0.2]), 1.0, k=2)["f_manpg"]
    assert spca(random_data(), lambda1, 1.0, k=2)["f_manpg"] == expected


def test_lambda1_belongs_to_its_component():
    """One that kills a component kills that one (the R package spreads the weights over rows)."""
    loadings = spca(random_data(), [0.01, 100.0, 0.01], 1.0, k=3)["loadings"]
    assert loadings.any(axis=0).tolist() == [True, False, True]


def test_all_components_by_default():
    assert spca(random_data(8, 20), 0.1, 1.0)["loadings"].shape == (20, 7)
    assert spca(random_data(60, 5), 0.1, 1.0)["loadings"].shape == (5, 5)


def test_many_features_need_no_square_matrix():
    """8 GB would be needed for one of p x p."""
    found = spca(random_data(10, 30_000), 0.5, 1.0, k=2, maxiter=1e4, tol=1e-2)
    assert found["loadings"].shape == (30_000, 2)


def test_loadings_have_unit_length_and_sparsity_counts_zeros():
    found = spca(random_data(), 0.3, 1.0, k=3)
    length = np.linalg.norm(found["loadings"], axis=0)
    assert np.allclose(length[length > 0], 1)
    assert found["sparsity"] == np.mean(found["loadings"] == 0) > 0.1
    assert found["time"] > 0


@pytest.mark.parametrize(
    ("load", "lambda2", "value"),
    [
        (load_breast_cancer, 1.0, -20.32283093),
        (load_breast_cancer, np.inf, -212.25678848),
        (load_digits, 1.0, -19.12158176),
        (load_digits, np.inf, -125.27781512),
    ],
)
def test_no_higher_than_the_peer_from_the_better_of_two_starts(load, lambda2, value):
    """The singular vectors are a saddle, or near one, of the first and the last: other starts lead lower."""
    z = normalize(load().data)
    found = spca(z, 0.1, lambda2, k=5, normalize=False)
    assert found["f_manpg"] <= value
    B, A = found["loadings"], found["x"]
    linear = 2 * ((z @ A) * (z @ B)).sum(axis=0) - 0.1 * np.abs(B).sum(axis=0)
    square = 1.0 if np.isinf(lambda2) else ((z @ B) ** 2).sum(axis=0) + lambda2  # unit columns, as long as is best
    assert found["f_manpg"] == pytest.approx(-(linear**2 / (4 * square)).sum(), rel=1e-6)


@pytest.mark.parametrize("lambda2", [1.0, np.inf])
def test_many_features_take_few_iterations_to_a_stationary_point(lambda2):
    """Plain steps would take thousands: a turn of A and B together changes F by very little."""
    rng = np.random.default_rng(0)
    z = normalize(rng.normal(size=(40, 4)) @ rng.normal(size=(4, 1500)) + rng.normal(size=(40, 1500)))
    found = spca(z, 0.1, lambda2, k=4, normalize=False)
    assert found["iter"] < 60
    A, B = found["x"], found["loadings"]
    linear = ((z @ A) * (z @ B)).sum(axis=0) - 0.05 * np.abs(B).sum(axis=0)
    B = B * (linear / (1.0 if np.isinf(lambda2) else ((z @ B) ** 2).sum(axis=0) + lambda2))
    assert regression_stationarity(A, B, z.T @ (z @ A), z.T @ (z @ B), alpha=0.1, ridge=lambda2) < 1e-4


def test_a_start_is_where_it_begins():
    """From an answer there is nowhere to go; without a start the signs of singular vectors make no difference."""
    z = normalize(random_data(200, 30))
    found = spca(z, 0.3, np.inf, k=3, normalize=False, tol=1e-10)
    A = found["x"]
    B = np.sign(z.T @ (z @ A)) * np.maximum(np.abs(z.T @ (z @ A)) - 0.15, 0)
    again = spca(z, 0.3, np.inf, x0=A, y0=B, k=3, normalize=False, tol=1e-10)
    assert again["f_manpg"] == pytest.approx(found["f_manpg"], rel=1e-9)
    assert np.allclose(again["loadings"], found["loadings"], atol=1e-4)


@pytest.mark.parametrize("maxiter", [1, 2])
@pytest.mark.parametrize("size", [20, 500])
def test_maxiter_bounds_the_iterations(maxiter, size):
    with pytest.warns(ConvergenceWarning, match=f"max_iter={maxiter}"):
        assert spca(random_data(100, size), 0.1, 1.0, k=4, maxiter=maxiter, f_palm=-1e9)["iter"] == maxiter


@pytest.mark.parametrize("gamma", [0.01, 0.9, 0.99])
def test_any_gamma_leads_there(gamma):
    found = spca(PITPROPS, LAMBDA1, 1e-6, k=6, type=1, tol=1e-11, gamma=gamma)
    assert found["f_manpg"] == pytest.approx(-9.110125982, abs=1e-6)


def test_f_palm_delays_the_stop():
    loose = spca(PITPROPS, LAMBDA1, 1e-6, k=6, type=1, tol=1e-2)
    held = spca(PITPROPS, LAMBDA1, 1e-6, k=6, type=1, tol=1e-2, f_palm=-9.1)
    assert loose["f_manpg"] > -9.1 > held["f_manpg"]


def test_verbose_prints(capsys):
    spca(random_data(), 0.1, 1.0, k=2)
    assert not capsys.readouterr().out
    found = spca(random_data(), 0.1, 1.0, k=2, verbose=True)
    assert len(capsys.readouterr().out.splitlines()) == found["iter"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lambda1": [0.1, 0.1, 0.1]}, "lambda1"),
        ({"lambda1": -1.0}, "lambda1"),
        ({"lambda2": -1.0}, "lambda2"),
        ({"k": 21}, "k must be"),
        ({"x0": np.eye(3)}, "x0 must have shape"),
        ({"type": 1}, "symmetric"),
        ({"z": np.full((4, 20), np.nan)}, "NaN"),
        ({"z": np.ones(20)}, r"z must be a matrix, got 1 dimension\(s\)"),
        ({"z": np.ones((1, 20))}, r"z has 1 row\(s\).*at least two"),
        ({"lambda1": np.nan}, "lambda1"),
        ({"lambda1": [0.1, -0.1]}, "lambda1"),
        ({"lambda2": np.nan}, "lambda2"),
        ({"k": -1}, "k must be"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"gamma": 0}, "gamma must lie between 0 and 1"),
        ({"gamma": 1}, "gamma must lie between 0 and 1"),
        ({"gamma": -0.5}, "gamma must lie between 0 and 1"),
        ({"gamma": np.nan}, "gamma must lie between 0 and 1"),
        ({"maxiter": 0}, "maxiter must be at least 1"),
        ({"maxiter": np.nan}, "maxiter must be at least 1"),
        ({"maxiter": np.inf}, "maxiter must be at least 1, and finite"),
        ({"tol": -1.0}, "tol must be at least 0"),
        ({"f_palm": np.nan}, "f_palm is NaN"),
        ({"x0": np.full((20, 2), np.nan)}, "x0 contains NaN"),
        ({"y0": np.full((20, 2), np.inf)}, "y0 contains NaN or infinite"),
        ({"y0": np.ones(20)}, r"y0 must have shape \(20, 2\)"),
        ({"y0": np.ones((20, 3))}, r"y0 must have shape \(20, 2\), a column for each component"),
    ],
)
def test_wrong_arguments_are_named(change, words):
    arguments = {"z": random_data(), "lambda1": 0.1, "lambda2": 1.0, "k": 2} | change
    with pytest.raises(ValueError, match=words):
        spca(**arguments)


@pytest.mark.parametrize("name", ["csr_array", "csc_array", "csr_matrix"])
def test_sparse_matrices_are_referred_to_the_estimator(name):
    z = getattr(scipy.sparse, name)(np.eye(5))
    for call in (lambda: spca(z, 0.1, 1.0, k=2), lambda: normalize(z)):
        with pytest.raises(TypeError, match=r"sparse matrix.*toarray\(\).*SparsePCA"):
            call()
