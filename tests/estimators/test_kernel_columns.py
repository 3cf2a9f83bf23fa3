"""Landmarks by columns of the kernel matrix: as by features, which are its slow twin, and intervals that hold."""

import numpy as np
import pytest
from scipy import sparse

from princomp import KernelPCA
from princomp.data import as_rows
from princomp.estimators import kernel_columns, kernel_fit
from princomp.estimators.kernel_columns import column_sums, decompose_columns, factor
from princomp.kernels import Cosine, Gaussian, Laplacian, Linear, Polynomial
from princomp.solvers.feature_maps import Columns

RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 4)) + 3 * RNG.integers(0, 3, (700, 1))
NEW = RNG.normal(size=(20, 4)) + 1
CHOSEN = np.arange(0, 700, 14)
KERNELS = {"gaussian": Gaussian(0.3), "laplacian": Laplacian(0.2), "cosine": Gaussian(0.3) + Cosine()}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Few rows take several tiles."""
    monkeypatch.setattr(kernel_columns, "TILE", 32)
    monkeypatch.setattr(kernel_columns, "TILES", 3)


def by_features(monkeypatch):
    """Let nothing be decided from columns."""
    monkeypatch.setattr(kernel_fit, "decompose_columns", lambda *_: None)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, np.float32], ids=["dense", "sparse", "single"])
@pytest.mark.parametrize("k", [6, None])
def test_columns_give_what_features_give(kernel, kind, k, monkeypatch):
    how = {"kernel": kernel, "approximation": "nystroem", "landmarks": CHOSEN}
    rows = kind(X)
    quick = KernelPCA(k, **how).fit(rows)
    by_features(monkeypatch)
    slow = KernelPCA(k, **how).fit(rows)
    assert quick.certificate_.holds
    rtol = 1e-6 if rows.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(quick.eigenvalues_, slow.eigenvalues_, rtol=rtol)
    np.testing.assert_allclose(quick.explained_variance_ratio_, slow.explained_variance_ratio_, rtol=rtol)
    np.testing.assert_allclose(quick.eigenvalue_intervals_, slow.eigenvalue_intervals_, rtol=1e-6)
    np.testing.assert_allclose(quick.transform(NEW), slow.transform(NEW), atol=1e-6)
    np.testing.assert_allclose(quick.novelty(NEW), slow.novelty(NEW), atol=1e-8)


def test_sums_are_those_of_the_columns():
    columns = Columns.of(Gaussian(0.3), X[CHOSEN], None)
    C = Gaussian(0.3).evaluate(X, X[CHOSEN])
    for rows in (as_rows(X), as_rows(X, block_rows=100), as_rows(sparse.csr_array(X))):
        sums = column_sums(rows, columns, C[0])
        np.testing.assert_allclose(sums.mean, C.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(sums.scatter, 700 * np.cov(C, rowvar=False, bias=True), atol=1e-11)
        assert np.abs(sums.discrepancy).max() < 1e-9
    assert column_sums(as_rows(X), columns, C.mean(axis=0) + 1e3) is None  # so far that digits are lost


def test_what_rounding_makes_of_it_is_bounded():
    """Beside features, whose eigenvalues are right to the last digits: for landmarks from few to nearly alike."""
    for gamma in (10.0, 1.0, 0.3, 0.1, 0.05, 0.03):
        columns = Columns.of(Gaussian(gamma), X[CHOSEN], X.mean(axis=0))
        found = decompose_columns(as_rows(X), columns, 5, 1e-6)
        if found is None:
            assert gamma < 0.1
            continue
        features, spectrum, error = found
        F = features(X)
        exact = np.linalg.svd(F - F.mean(axis=0), compute_uv=False)[:5] ** 2
        assert np.abs(spectrum.values - exact).max() <= error
        assert error < 1e-8 * len(X)


@pytest.mark.parametrize(
    ("kernel", "rows"),
    [
        (Linear(), X),
        (Polynomial(1.0, 2), X),
        (Gaussian(1e-4), X),
        (Gaussian(0.3), np.vstack([X[CHOSEN], X])[np.sort(np.append(CHOSEN, CHOSEN + 1))]),
        (Polynomial(1e30, 3), X),
    ],
    ids=["few columns", "low rank", "wide", "twins", "huge"],
)
def test_landmarks_too_much_alike_are_left_to_features(kernel, rows):
    repeated = np.vstack([rows[:40], rows[:40]])
    assert factor(Columns.of(kernel, repeated, None)) is None
    assert decompose_columns(as_rows(rows), Columns.of(kernel, repeated, None), 3, 1e-6) is None


def test_components_within_rounding_are_left_to_features():
    columns = Columns.of(Gaussian(0.3), X[CHOSEN], None)
    assert decompose_columns(as_rows(X), columns, 5, 1e-6) is not None
    assert decompose_columns(as_rows(X), columns, 5, 1e-15) is None


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_an_offset_costs_no_digits(offset):
    A = np.round(X * 2**20) / 2**20
    how = {"gamma": 0.3, "approximation": "nystroem", "landmarks": CHOSEN}
    near, far = (KernelPCA(4, **how).fit(rows) for rows in (A, A + offset))
    np.testing.assert_allclose(far.eigenvalues_, near.eigenvalues_, rtol=1e-10)


def three_clouds(n, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 20)) + 3 * rng.integers(0, 3, (n, 1))


@pytest.mark.parametrize("approximation", ["nystroem", "rpcholesky"])
def test_intervals_of_the_default_call_hold(approximation):
    rows = three_clouds(1500, 0)
    exact = KernelPCA(10, gamma=0.02).fit(rows)
    for seed in range(5):
        model = KernelPCA(10, gamma=0.02, approximation=approximation, random_state=seed).fit(rows)
        assert len(model._basis) == 720
        lower, upper = model.eigenvalue_intervals_.T
        assert (lower <= exact.eigenvalues_).all()
        assert (exact.eigenvalues_ <= upper).all()
        lower, upper = model.ratio_intervals_.T
        assert (lower <= exact.explained_variance_ratio_).all()
        assert (exact.explained_variance_ratio_ <= upper).all()
