"""PCA of float32 data: products in single precision where they do, and answers that say what they hide."""

import numpy as np
import pytest

from princomp import PCA
from princomp.data import as_rows, statistics
from princomp.datasets import make_spiked
from princomp.solvers.eigh import leading_eigenpairs
from princomp.solvers.leading import leading_of_matrix

RNG = np.random.default_rng(0)
KINDS = {
    "noise": lambda n, p: RNG.standard_normal((n, p)),
    "spikes": lambda n, p: make_spiked(n, p, rank=5, random_state=0).X,
    "a giant column": lambda n, p: RNG.standard_normal((n, p)) * np.where(np.arange(p) == 3, 100, 1),
    "counts": lambda n, p: RNG.integers(0, 5, (n, p)),
    "heavy tails": lambda n, p: np.exp(2 * RNG.standard_normal((n, p))),
    "sorted columns": lambda n, p: np.sort(RNG.standard_normal((n, p)), axis=0),
    "far from zero": lambda n, p: RNG.standard_normal((n, p)) + 1e3,
}


def variances(X):
    """All variances of the cells as they are stored, in double precision."""
    X = X.astype(np.float64)
    return np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2 / (len(X) - 1)


@pytest.fixture
def made(monkeypatch):
    """Count how often XX' is made in either precision."""
    counts = {True: 0, False: 0}
    of_rows = statistics.row_gram_of_columns

    def rows(X, *, single=False):
        counts[single] += 1
        return of_rows(X, single=single)

    monkeypatch.setattr(statistics, "row_gram_of_columns", rows)
    return counts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(900, 40), (5000, 12), (40, 900)])
def test_stated_errors_are_no_smaller_than_they_are(kind, shape):
    X = KINDS[kind](*shape).astype(np.float32)
    found = PCA(4, solver="eigh").fit(X)
    wrong = np.abs(found.explained_variance_ - variances(X)[:4])
    assert found.certificate_.holds
    assert (wrong <= found.certificate_.details["error"] * (1 + 1e-6)).all()
    assert (wrong <= 1e-6 * variances(X)[:4]).all()


def test_one_product_in_single_precision_is_enough(made):
    X = make_spiked(40, 900, rank=5, random_state=0).X.astype(np.float32)
    PCA(3, solver="eigh").fit(X)
    assert made == {True: 1, False: 0}


def test_what_single_precision_would_hide_is_found_in_double(made):
    side = 40
    left, right = (np.linalg.qr(RNG.standard_normal((size, side)))[0] for size in (40, 900))
    X = ((left * 10.0 ** -np.linspace(0, 4, side)) @ right.T).astype(np.float32)
    found = PCA(side // 2, solver="eigh").fit(X)
    assert made[False] == 1
    np.testing.assert_allclose(found.explained_variance_, variances(X)[: side // 2], rtol=1e-4)


def test_squares_that_single_precision_does_not_hold(made):
    X = (1e15 * RNG.standard_normal((10, 300))).astype(np.float32)
    np.testing.assert_allclose(PCA(3, solver="eigh").fit(X).explained_variance_, variances(X)[:3], rtol=1e-6)
    assert made[False] == 1


def test_a_tolerance_that_single_precision_cannot_reach(made):
    X = make_spiked(40, 900, rank=5, random_state=0).X.astype(np.float32)
    found = PCA(3, solver="eigh", tol=1e-12).fit(X)
    assert found.certificate_.residual <= 1e-12


@pytest.mark.parametrize("single", [False, True])
def test_products_of_tiles_of_columns(single):
    X = RNG.standard_normal((30, 1100)).astype(np.float32) + 5
    rows = as_rows(X)
    centered = statistics.moments(rows).centered(rows, np.linspace(1, 2, 1100))
    exact = (X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)) * np.linspace(1, 2, 1100)
    K, error = statistics.row_gram_of_columns(centered, single=single)
    wrong = np.abs(K - exact @ exact.T).max() / np.abs(K).max()
    assert wrong <= (1e-6 if single else 1e-13)
    assert error >= wrong or not single


@pytest.mark.parametrize("decay", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("p", "k"), [(100, 5), (700, 10), (1000, 3), (1000, 200)])
def test_few_eigenvectors_of_a_matrix(decay, p, k):
    """Whichever way it goes, by Krylov iteration or by LAPACK, the answer is that of LAPACK."""
    X = RNG.standard_normal((p + 50, p)) * np.arange(1, p + 1) ** -decay
    S = X.T @ X
    values, V = leading_of_matrix(S, k)
    np.testing.assert_allclose(values, leading_eigenpairs(S, k)[0], rtol=1e-10, atol=1e-13 * values[0])
    assert np.linalg.norm(S @ V - V * values) <= 1e-8 * values[0]
    np.testing.assert_allclose(V.T @ V, np.eye(k), atol=1e-12)
