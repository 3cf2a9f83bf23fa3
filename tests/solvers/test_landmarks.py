"""Landmarks and feature maps: the law of what is chosen, what features leave of K, and intervals that hold."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from helpers import smile, three_clouds
from princomp.data import as_rows, statistics
from princomp.data.wrapped import mapped
from princomp.kernels import Gaussian, Laplacian, Linear, Polynomial
from princomp.solvers import kernel
from princomp.solvers.feature_maps import Columns, fourier, intervals, nystroem
from princomp.solvers.kernel_matrix import KernelMatrix
from princomp.solvers.landmarks import Fixed, PivotedCholesky, Uniform, pivoted_cholesky

X = np.random.default_rng(0).normal(size=(120, 3)) + 3 * np.random.default_rng(1).integers(0, 3, (120, 1))


# --- selectors ----------------------------------------------------------------------------------


def test_selectors_choose_different_rows():
    K, rng = KernelMatrix(Gaussian(0.1), X), np.random.default_rng(0)
    assert Fixed([7, 3, 7]).select(K, rng).tolist() == [3, 7]
    for selector in (Uniform(20), PivotedCholesky(20), PivotedCholesky(20, block=1)):
        numbers = selector.select(K, rng)
        assert len(set(numbers.tolist())) == 20
    assert len(Uniform(500).select(K, rng)) == 120


@pytest.mark.parametrize("numbers", [[120], [-1], [0.5], [[1, 2]], []])
def test_landmarks_that_are_no_row_numbers(numbers):
    with pytest.raises(ValueError, match="landmarks must be row numbers"):
        Fixed(numbers).select(KernelMatrix(Gaussian(0.1), X), np.random.default_rng(0))


@pytest.mark.parametrize("block", [1, 7, None])
def test_the_factor_is_the_matrix_projected_on_the_rows_chosen(block):
    K = KernelMatrix(Polynomial(0.1, 2), X)
    numbers, G = pivoted_cholesky(K, 8, np.random.default_rng(0), block=block)
    whole = K.kernel.evaluate(X)
    S = whole[numbers]
    np.testing.assert_allclose(G.T @ G, S.T @ np.linalg.solve(S[:, numbers], S), atol=1e-9 * np.abs(whole).max())


def test_a_matrix_of_low_rank_is_exhausted():
    numbers, G = pivoted_cholesky(KernelMatrix(Linear(), X), 50, np.random.default_rng(0))
    assert len(numbers) == 3
    np.testing.assert_allclose(G.T @ G, X @ X.T, atol=1e-12 * np.abs(X @ X.T).max())
    numbers, _ = pivoted_cholesky(
        KernelMatrix(Gaussian(0.1), np.repeat(X[:5], 8, axis=0)), 30, np.random.default_rng(0)
    )
    assert len(numbers) == 5


def test_entries_asked_for():
    K = KernelMatrix(Gaussian(0.1), X, keep=False)
    pivoted_cholesky(K, 20, np.random.default_rng(0), block=1)
    rows = 21 * 120
    assert rows <= K.entries <= rows + 60  # and one for each candidate
    K = KernelMatrix(Gaussian(0.1), X, keep=False)
    pivoted_cholesky(K, 20, np.random.default_rng(0), block=10)
    assert rows <= K.entries <= rows + 10 * 100


def test_candidates_that_are_rejected_leave_the_law_as_it_is():
    """Pairs of four rows, drawn many times: as often as the product of their probabilities says."""
    rows = np.array([[0.0], [0.3], [1.5], [4.0]])
    whole = Gaussian(0.5).evaluate(rows)
    exact = {}
    for i, j in itertools.permutations(range(4), 2):
        left = np.diag(whole - np.outer(whole[i], whole[i]))
        exact[i, j] = left[j] / left.sum() / 4
    drawn = dict.fromkeys(exact, 0)
    K, rng, draws = KernelMatrix(Gaussian(0.5), rows, keep=True), np.random.default_rng(0), 1500
    K.whole()
    for _ in range(draws):
        drawn[tuple(pivoted_cholesky(K, 2, rng, block=5)[0].tolist())] += 1
    for pair, probability in exact.items():
        spread = np.sqrt(probability * (1 - probability) / draws)
        assert abs(drawn[pair] / draws - probability) < 4.5 * spread, pair


@pytest.mark.parametrize(("rank", "published"), [(100, 1.3e-7), (150, 5.5e-12)])
def test_the_smile(rank, published):
    """The relative trace error, median of five, as the authors' method has it on this set."""
    K = KernelMatrix(Gaussian(1 / 8), smile(10_000), keep=False)
    errors = []
    for seed in range(5):
        _, G = pivoted_cholesky(K, rank, np.random.default_rng(seed))
        errors.append((K.trace - np.einsum("ij,ij->", G, G)) / K.trace)
    print(f"rank {rank}: {np.median(errors):.1e}, published {published:.1e}")
    assert np.median(errors) < 3 * published


# --- features -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_nystroem_features(kind):
    chosen = np.arange(0, 120, 7)
    features = nystroem(Columns.of(Gaussian(0.1), kind(X[chosen]), None))
    F, whole = features(kind(X)), Gaussian(0.1).evaluate(X)
    projected = whole[:, chosen] @ np.linalg.solve(whole[np.ix_(chosen, chosen)], whole[chosen])
    np.testing.assert_allclose(F @ F.T, projected, atol=1e-10)
    assert np.linalg.eigvalsh(whole - F @ F.T)[0] > -1e-10
    np.testing.assert_allclose((F @ F.T)[chosen], whole[chosen], atol=1e-10)


def test_landmarks_that_are_alike_leave_fewer_features():
    twice = nystroem(Columns.of(Gaussian(0.1), np.vstack([X[:9], X[:9]]), None))
    assert twice.width == 9
    once = nystroem(Columns.of(Gaussian(0.1), X[:9], None))
    np.testing.assert_allclose(twice(X) @ twice(X).T, once(X) @ once(X).T, atol=1e-9)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_fourier_features_have_variance_two_gamma(orthogonal):
    """For exp(-|d|^2 / (2 s^2)), gamma = 1 / (2 s^2): the frequencies have variance 1 / s^2, and not 2 / s^2."""
    rng, s = np.random.default_rng(0), 1.3
    pair = np.stack([np.zeros(5), rng.normal(size=5)])
    pair[1] *= np.sqrt(2 * s**2 * -np.log(0.3659)) / np.linalg.norm(pair[1])
    right, wrong = Gaussian(1 / (2 * s**2)), Gaussian(2 / (2 * s**2))
    assert right.evaluate(pair)[0, 1] == pytest.approx(0.3659)
    near, far = (
        np.prod(fourier(k, 5, 400_000, rng, orthogonal=orthogonal)(pair), axis=0).sum() for k in (right, wrong)
    )
    assert near == pytest.approx(0.3659, abs=5e-3)
    assert far == pytest.approx(0.1339, abs=5e-3)


def test_fourier_features_of_the_laplacian_kernel():
    F = fourier(Laplacian(0.4), 3, 40_000, np.random.default_rng(0))(X[:20])
    assert np.abs(F @ F.T - Laplacian(0.4).evaluate(X[:20])).max() < 0.03


def test_orthogonal_frequencies_are_better():
    rows, k = np.random.default_rng(0).normal(size=(60, 16)), Gaussian(0.03)

    def error(orthogonal, seed):
        F = fourier(k, 16, 64, np.random.default_rng(seed), orthogonal=orthogonal)(rows)
        return np.square(F @ F.T - k.evaluate(rows)).mean()

    plain, better = (np.mean([error(orthogonal, seed) for seed in range(10)]) for orthogonal in (False, True))
    assert better < 0.7 * plain


def test_fourier_features_at_an_offset():
    A = np.round(X * 2**20) / 2**20
    near, far = (fourier(Gaussian(0.3), 3, 50, np.random.default_rng(0), A[0] + c)(A + c) for c in (0.0, 1e8))
    np.testing.assert_allclose(near, far, atol=1e-12)


def test_fourier_features_of_single_precision_are_those_of_the_numbers_it_holds():
    """Frequencies may be large, as those of the Laplacian kernel are: a row that is rounded would be another one."""
    A = X.astype(np.float32)
    features = fourier(Laplacian(8.0), 3, 200, np.random.default_rng(0), A.mean(axis=0, dtype=float))
    np.testing.assert_array_equal(features(A), features(A.astype(float)))


def test_other_kernels_have_no_fourier_features():
    with pytest.raises(ValueError, match='Use "nystroem"'):
        fourier(Linear(), 3, 10, np.random.default_rng(0))


# --- features as rows ---------------------------------------------------------------------------


def double(block, factor):
    return np.hstack([block, block * factor])


@pytest.mark.parametrize("block_rows", [None, 17])
def test_mapped_rows(block_rows, monkeypatch):
    monkeypatch.setattr("princomp.data.wrapped.PIECE_ROWS", 5)
    monkeypatch.setattr("princomp.data.wrapped.PIECE_BYTES", 1)
    rows, expected = mapped(as_rows(X, block_rows=block_rows), double, 2.0, width=6), np.hstack([X, 2 * X])
    assert rows.shape == (120, 6)
    np.testing.assert_array_equal(np.vstack([rows.block(i) for i in range(len(rows.offsets) - 1)]), expected)
    found = statistics.moments(rows, scatter=True)
    np.testing.assert_allclose(found.mean, expected.mean(axis=0))
    np.testing.assert_allclose(found.scatter, np.cov(expected.T) * 119, rtol=1e-12)
    V = np.eye(6)[:, :2]
    np.testing.assert_array_equal(statistics.apply(found.centered(rows), V).shape, (120, 2))
    np.testing.assert_allclose(statistics.apply(found.centered(rows), V), (expected - found.mean) @ V, atol=1e-14)


# --- intervals ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1000, pytest.param(6000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("name", "gamma", "rank"), [("smile", 1 / 8, 60), ("three clouds", 0.02, 100)])
def test_every_eigenvalue_lies_in_its_interval(name, gamma, rank, size):
    rows = {"smile": smile, "three clouds": three_clouds}[name](size)
    k, about, n = Gaussian(gamma), rows.mean(axis=0), 10
    K = KernelMatrix(k, rows, about)
    exact = kernel.solve(K, n, tol=1e-10, max_iter=500, rng=np.random.default_rng(0))
    ratios, widths = exact.values / exact.total, []
    for seed in range(20):
        selector = (PivotedCholesky(rank), Uniform(rank))[seed % 2]
        chosen = selector.select(KernelMatrix(k, rows, about, keep=False), np.random.default_rng(seed))
        features = nystroem(Columns.of(k, rows[chosen], about))
        found = statistics.moments(mapped(as_rows(rows), features, width=features.width), scatter=True)
        values = np.linalg.eigvalsh(found.scatter)[::-1][:n]
        left = len(rows) - found.total - len(rows) * found.mean @ found.mean
        known = intervals(values, found.total, float(len(rows)), left)
        assert (known.lower <= exact.values).all()
        assert (exact.values <= known.upper).all()
        assert (known.ratio_lower <= ratios).all()
        assert (ratios <= known.ratio_upper).all()
        widths.append((known.upper - known.lower).mean() / exact.values[0])
    print(
        f"{name}: mean width {np.mean(widths[::2]):.1e} (pivoted), {np.mean(widths[1::2]):.1e} (uniform) of the first"
    )
