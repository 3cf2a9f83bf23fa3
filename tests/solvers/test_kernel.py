"""The kernel matrix as solvers see it, and its leading eigenpairs: against LAPACK on the matrix itself."""

import numpy as np
import pytest
from scipy import sparse

from princomp.certificates import principal
from princomp.data import budget
from princomp.kernels import Gaussian, Linear, NearestNeighbors, Normalized, Polynomial, Sigmoid
from princomp.solvers import kernel, kernel_matrix
from princomp.solvers.kernel_matrix import GivenMatrix, KernelMatrix

TILE = 64
N = 2 * TILE + 40
X = np.random.default_rng(0).normal(size=(N, 3)) + 3 * np.random.default_rng(1).integers(0, 3, (N, 1))
V = np.random.default_rng(2).normal(size=(N, 4))
ONE_PASS = TILE**2 * 3 + 40 * (2 * TILE + 40)  # the tiles on and below the diagonal
KERNELS = {
    "gaussian": Gaussian(0.1),
    "polynomial": Polynomial(0.1, 2),
    "sigmoid": Sigmoid(0.01, 0.0),
    "neighbours": NearestNeighbors(0.1, 5).on(X),
    "normalized": Normalized(Gaussian(0.1)).on(X),
    "normalized neighbours": Normalized(NearestNeighbors(0.1, 20)).on(X),
}
every_kernel = pytest.mark.parametrize("k", KERNELS.values(), ids=KERNELS)
POSITIVE = {name: k for name, k in KERNELS.items() if k.psd}
every_positive_kernel = pytest.mark.parametrize("k", POSITIVE.values(), ids=POSITIVE)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Small matrices go the way of large ones."""
    monkeypatch.setattr(kernel_matrix, "TILE", TILE)
    monkeypatch.setattr(kernel_matrix, "SMALL", 100)
    monkeypatch.setattr(kernel, "DENSE", 100)


def projected(k, rows=X):
    """The matrix that is decomposed, by its definition."""
    K = k.evaluate(rows)
    u = np.ones(len(K)) if k.centred else np.sqrt(k.affinity.evaluate(rows).sum(axis=1))
    P = np.eye(len(K)) - np.outer(u, u) / (u @ u)
    return P @ K @ P


def fit(K, count, tol=1e-8, **how):
    return kernel.solve(K, count, tol=tol, max_iter=500, rng=np.random.default_rng(0), **how)


# --- the matrix ---------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_products_rows_and_traces(k, keep, kind):
    K = KernelMatrix(k, kind(X), keep=keep)
    whole, centred = k.evaluate(X), projected(k)
    size = np.abs(whole).max()
    np.testing.assert_allclose(K.rows(np.array([3, 160, 5])), whole[[3, 160, 5]], atol=1e-12 * size)
    np.testing.assert_allclose(K.product(V), whole @ V, atol=1e-10 * size)
    np.testing.assert_allclose(K.centred_product(V), centred @ V, atol=1e-10 * size)
    np.testing.assert_allclose(K.means, whole.mean(axis=1), atol=1e-12 * size)
    np.testing.assert_allclose(K.diagonal, np.diag(whole), atol=1e-12 * size)
    assert K.centred_trace == pytest.approx(np.trace(centred), rel=1e-9)
    np.testing.assert_allclose(K.centred_whole(), centred, atol=1e-11 * size)


def test_entries_are_counted():
    kept, made = (KernelMatrix(Gaussian(0.1), X, keep=keep) for keep in (True, False))
    for K in (kept, made):
        K.rows(np.arange(5))
        assert K.entries == 5 * N
        assert K.diagonal.shape == (N,)
        assert K.entries == 6 * N
        for _ in range(3):
            K.product(V)
    assert kept.entries == 6 * N + ONE_PASS
    assert made.entries == 6 * N + 3 * ONE_PASS
    kept.product_in_single(V)
    kept.whole()  # of tiles that are there
    kept.rows(np.arange(5))
    assert kept.entries == 6 * N + ONE_PASS
    made.product_in_single(V)
    assert made.entries == 6 * N + 4 * ONE_PASS


def test_a_matrix_kept_in_single_precision_alone_is_made_anew_for_double():
    K = KernelMatrix(Gaussian(0.1), X)
    K.kept = (np.float32,)
    for _ in range(3):
        np.testing.assert_allclose(K.product(V), Gaussian(0.1).evaluate(X) @ V, atol=1e-11)
    assert K.entries == 3 * ONE_PASS
    for _ in range(3):
        K.product_in_single(V)
    assert K.entries == 3 * ONE_PASS


def test_a_small_matrix_is_made_once():
    K = KernelMatrix(Gaussian(0.1), X[:90])
    for _ in range(3):
        np.testing.assert_allclose(K.product(V[:90]), Gaussian(0.1).evaluate(X[:90]) @ V[:90], atol=1e-11)
    assert K.entries == TILE**2 + 26 * 90


def test_a_matrix_is_kept_where_memory_allows():
    n = 800
    rows, entries = np.random.default_rng(3).normal(size=(n, 2)), n * (n + TILE) / 2
    for share, kept in ((13, (np.float64, np.float32)), (11, (np.float32,)), (5, (np.float32,)), (3, ())):
        with budget.limited(int(share * entries / kernel_matrix.KEEP_SHARE)):
            K = KernelMatrix(Gaussian(0.1), rows)
            assert K.kept == kept
            assert fit(K, 3).certificate.holds
            assert set(K._lower) == set(kept)
    with budget.limited(8 * n * n), pytest.raises(MemoryError, match=r"needs 0\.0 GiB.*approximation="):
        K.centred_whole()


@every_kernel
@pytest.mark.parametrize("keep", [True, False])
def test_products_in_single_precision(k, keep):
    K = KernelMatrix(k, X, keep=keep)
    size = np.abs(k.evaluate(X) @ V).max()
    np.testing.assert_allclose(K.product_in_single(V), K.product(V), atol=2e-6 * size)
    np.testing.assert_allclose(K.centred_product_in_single(V), K.centred_product(V), atol=2e-6 * size)
    assert set(K._lower) == ({np.float64, np.float32} if keep else set())


@every_positive_kernel
def test_a_beginning_in_single_precision_ends_where_double_precision_does(k, monkeypatch):
    K = KernelMatrix(k, X)
    assert K.may_begin_in_single
    begun = fit(K, 5, tol=1e-6)
    assert begun.certificate.holds
    monkeypatch.setattr(kernel_matrix, "SMALL", N)
    assert not K.may_begin_in_single
    np.testing.assert_allclose(begun.values, fit(KernelMatrix(k, X), 5, tol=1e-6).values, rtol=1e-9)


@every_positive_kernel
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
def test_the_iteration_certifies_what_it_returns(k, tol):
    """Vectors with nothing of the one that is taken out, and their residuals, measured anew."""
    K = KernelMatrix(k, X)
    found = kernel.by_krylov(K, 5, tol=tol, max_iter=500, rng=np.random.default_rng(0))
    assert np.abs(K.trivial @ found.V).max() < 1e-13
    again = principal.certify(
        found.V,
        found.values,
        principal.images_by_product(K.centred_product, found.V),
        tol=tol,
        floor=found.certificate.details["floor"],
    )
    assert again.residual == pytest.approx(found.certificate.residual, rel=1e-2, abs=1e-14)


@pytest.mark.parametrize(
    "rows_and_kernel",
    [(1e12 * X, Linear()), (1e-12 * X, Linear()), (X, Gaussian(1e-5)), (1e8 + X, Polynomial(0.1, 2))],
    ids=["large", "tiny", "nearly constant", "far from the origin"],
)
def test_single_precision_is_left_alone_where_it_has_no_digits(rows_and_kernel):
    rows, k = rows_and_kernel
    K = KernelMatrix(k, rows)
    assert not K.may_begin_in_single
    assert fit(K, 3, tol=1e-6).certificate.residual < 1e-6


def test_single_precision_rows_make_a_matrix_in_double():
    rows = X.astype(np.float32)
    np.testing.assert_allclose(
        KernelMatrix(Gaussian(0.1), rows).whole(), Gaussian(0.1).evaluate(rows.astype(np.float64)), atol=1e-14
    )


def test_a_given_matrix():
    given, made = GivenMatrix(Gaussian(0.1).evaluate(X)), KernelMatrix(Gaussian(0.1), X)
    np.testing.assert_allclose(given.centred_product(V), made.centred_product(V), atol=1e-11)
    assert given.entries == 0
    assert given.centred_trace == pytest.approx(made.centred_trace)
    assert not given.psd


# --- eigenpairs ---------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("count", [1, 7, 80, None])
def test_leading_eigenpairs(k, count):
    K = KernelMatrix(k, X)
    found, expected = fit(K, count), np.linalg.eigvalsh(projected(k))[::-1]
    assert found.certificate.holds, str(found.certificate)
    m = len(found.values)
    floor = 1e-11 * max(expected[0], K.taken_out)
    assert m == count if count else np.all(expected[m:] < floor)
    np.testing.assert_allclose(found.values, np.maximum(expected[:m], 0), rtol=1e-8, atol=floor)
    np.testing.assert_allclose(found.V.T @ found.V, np.eye(m), atol=1e-12)
    assert found.total == pytest.approx(expected.sum(), rel=1e-9)
    negative = -expected[expected < -floor].sum() / np.abs(expected).sum()
    assert found.negative == pytest.approx(negative, abs=1e-10)


def test_negative_eigenvalues_are_told():
    assert fit(KernelMatrix(KERNELS["neighbours"], X), 3).negative > 0.01
    assert fit(KernelMatrix(KERNELS["sigmoid"], X), 3).certificate.details["negative"] > 0
    assert fit(KernelMatrix(Gaussian(0.1), X), None).negative == 0


@pytest.mark.parametrize("keep", [True, False])
def test_the_certificate_is_that_of_products_with_the_matrix(keep):
    K = KernelMatrix(Gaussian(0.1), X, keep=keep)
    found = kernel.by_krylov(K, 5, tol=1e-8, max_iter=200, rng=np.random.default_rng(0))
    again = principal.spectral(K.centred_product, found.V, found.values, 1e-8)
    assert again.holds
    assert found.certificate.residual == pytest.approx(again.residual, rel=0.2)
    wrong = principal.spectral(K.centred_product, found.V[:, 1:], found.values[1:], 1e-8)
    assert not wrong.holds
    both = kernel.by_eigh(K, 5, tol=1e-8)
    np.testing.assert_allclose(found.values, both.values, rtol=1e-12)


@every_kernel
def test_all_components_at_once_are_bounded_by_what_is_measured_of_each(k):
    """A bound, in a fifth of the time: it is no less than the slow measure, and turns down what that turns down."""
    K = KernelMatrix(k, X)
    S = K.centred_whole()
    every, vectors = (array[..., ::-1] for array in np.linalg.eigh(S))
    floor = float(principal.floor_of_matrix(N, every)[0])
    for count in (60, int((every > floor).sum())):
        how = {"tol": 1e-6, "floor": floor}
        bound = principal.certify_all(S, vectors, every, count, **how)
        measured = principal.images_by_product(K.centred_product, vectors[:, :count])
        slow = principal.certify(vectors[:, :count], every[:count], measured, tol=1e-6, floor=np.full(count, floor))
        assert bound.holds
        assert (slow.details["residuals"] <= bound.details["residuals"] + 1e-15).all()
        for column, off in ((0, 1e-3), (count - 1, 1e-3)):
            turned = vectors.copy()
            turned[:, column] += off * vectors[:, (column + 1) % N]
            assert not principal.certify_all(S, turned, every, count, **how).holds
        wrong = every.copy()
        wrong[2] *= 1 + 1e-4
        assert not principal.certify_all(S, vectors, wrong, count, **how).holds
        swapped = np.roll(every, -10), np.roll(vectors, -10, axis=1)
        assert not principal.certify_all(S, swapped[1], swapped[0], 60, **how).holds


@pytest.mark.parametrize("count", [2, 8])
def test_few_components_are_those_of_lapack(count, monkeypatch):
    """By ARPACK if they are very few; where it misses copies of a value, that is seen, and LAPACK has its say."""
    monkeypatch.setattr(kernel, "DENSE", 400)
    for rows in (X, np.vstack([X[:60]] * 3)):
        K = KernelMatrix(Gaussian(0.1), rows)
        found = fit(K, count)
        assert found.certificate.holds
        assert found.certificate.scope == "global"
        every = np.linalg.eigvalsh(projected(Gaussian(0.1), rows))[::-1]
        np.testing.assert_allclose(found.values, every[:count], rtol=1e-8)
        assert found.total == pytest.approx(every.sum(), rel=1e-9)
    ties = KernelMatrix(Gaussian(1e9), X)  # all values are 1
    np.testing.assert_allclose(fit(ties, count).values, 1.0, rtol=1e-10)


def test_what_arpack_gets_wrong_is_found_by_lapack(monkeypatch):
    monkeypatch.setattr(kernel, "DENSE", 400)
    K = KernelMatrix(Gaussian(0.1), X)
    right = fit(K, 3)
    assert right.result.status.code == "converged"
    S = K.centred_whole()
    every, vectors = (array[..., ::-1] for array in np.linalg.eigh(S))
    for wrong in (None, (every[1:4], vectors[:, 1:4]), (every[:3] * (1 + 1e-4), vectors[:, :3])):
        monkeypatch.setattr(kernel, "_by_arpack", lambda *_, wrong=wrong: wrong)
        again = fit(K, 3)
        assert again.result.status.code == "exact"
        np.testing.assert_allclose(again.values, right.values, rtol=1e-10)


def test_a_large_matrix_is_kept_in_double_precision_from_the_third_pass_on(monkeypatch):
    monkeypatch.setattr(kernel_matrix, "LARGE", 0)
    K = KernelMatrix(Gaussian(0.1), X)
    for _ in range(5):
        K.product_in_single(V)
    assert K.entries == ONE_PASS
    assert set(K._lower) == {np.float32}
    for _ in range(5):
        np.testing.assert_allclose(K.product(V), Gaussian(0.1).evaluate(X) @ V, atol=1e-11)
    assert K.entries == 3 * ONE_PASS
    assert set(K._lower) == {np.float32, np.float64}


def test_a_matrix_of_tiles_takes_memory_for_a_few_columns_only():
    K = KernelMatrix(Gaussian(0.1), X, keep=False)
    found = fit(K, 4)
    assert K._whole is None
    assert not K._lower
    assert K.entries % ONE_PASS == N % ONE_PASS  # the diagonal, and passes
    assert found.result.n_iter + 10 > K.entries // ONE_PASS


def test_the_linear_kernel_at_an_offset():
    A = np.round(X * 2**20) / 2**20
    near, far = (KernelMatrix(Linear(), A + c, A.mean(axis=0) + c) for c in (0.0, 1e8))
    np.testing.assert_allclose(fit(far, 3).values, fit(near, 3).values, rtol=1e-12)
    squares = np.linalg.svd(A - A.mean(axis=0), compute_uv=False) ** 2
    np.testing.assert_allclose(fit(near, 3).values, squares, rtol=1e-10)


@pytest.mark.parametrize("rows", [np.ones((30, 2)), np.ones((200, 2)), X[:1]])
def test_constant_rows_have_no_components(rows):
    found = fit(KernelMatrix(Gaussian(0.5), rows), 1)
    np.testing.assert_array_equal(found.values, [0.0])
    assert found.certificate.residual <= 1e-8


def test_duplicate_rows():
    twice = np.vstack([X[:200], X[:200]])
    once = fit(KernelMatrix(Gaussian(0.1), X[:200]), 5).values
    np.testing.assert_allclose(fit(KernelMatrix(Gaussian(0.1), twice), 5).values, 2 * once, rtol=1e-10)


def test_a_huge_gamma_knows_only_itself():
    """Kc = I - 11'/n: all values tie."""
    found = fit(KernelMatrix(Gaussian(1e12), X[:100]), 4)
    np.testing.assert_allclose(found.values, 1.0, rtol=1e-12)
