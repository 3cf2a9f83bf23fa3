"""`spca` and `normalize` do what the A-ManPG manual means; each defect of its packages is a test here."""

import inspect

import numpy as np
import pytest

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
    ],
)
def test_wrong_arguments_are_named(change, words):
    arguments = {"z": random_data(), "lambda1": 0.1, "lambda2": 1.0, "k": 2} | change
    with pytest.raises(ValueError, match=words):
        spca(**arguments)
