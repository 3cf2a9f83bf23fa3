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
    if solver == "krylov":
        assert found.certificate_.details["floor"].max() <= 1e-12 * (1 + offset / 10) * true[0]
