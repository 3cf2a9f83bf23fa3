"""Numbers: agreement between solvers, storages, precisions, seeds; certificates; published values.

Codes N2 to N14. Subspaces are compared by the sine of the largest principal angle.
"""

import warnings

import hypothesis
import numpy as np
import pytest
import scipy.sparse
import threadpoolctl
from hypothesis import strategies as st

from helpers import (
    data_with_spectrum,
    eigenvalues_longdouble,
    eigenvectors_reference,
    error_of_largest,
    orthonormal,
    orthonormality_error,
    relative_error,
    shards,
    signs_follow_the_rule,
    subspace_sine,
)
from princomp import PCA
from princomp.certificates import principal_components
from princomp.data import as_rows

EPS = np.finfo(float).eps
EXACT = ("eigh", "svd")
SOLVERS = ("eigh", "svd", "krylov", "optimize")


def gapped(n=300, p=12, seed=0):
    """Variances 16^2, 15^2, 14^2, then 4, 3.5, ...: a clear gap after the third component."""
    tail = np.linspace(2, 0.5, min(n - 1, p) - 3)
    return data_with_spectrum(n, p, np.r_[16, 15, 14, tail], seed=seed, offset=2.0)


# --- N2, N3: precisions, solvers, engines ---------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(300, 12), (12, 300)])
def test_N2_float32_against_float64(solver, shape):
    X = gapped(*shape).astype(np.float32)
    single = PCA(3, solver=solver, random_state=0).fit(X)
    double = PCA(3, solver=solver, random_state=0).fit(X.astype(float))
    assert subspace_sine(single.components_, double.components_) <= 1e-4
    assert relative_error(single.explained_variance_, double.explained_variance_) <= 1e-5
    fitted = (
        single.components_,
        single.mean_,
        single.explained_variance_,
        single.explained_variance_ratio_,
        single.singular_values_,
        single.loadings_,
        single.transform(X),
    )
    assert {array.dtype for array in fitted} == {np.dtype(np.float32)}
    assert double.transform(X.astype(float)).dtype == np.float64


@pytest.mark.parametrize("solver", ["auto", *EXACT])
@pytest.mark.parametrize("shape", [(300, 12), (12, 300)])
def test_N3a_solvers_and_shards_agree(solver, shape):
    X = gapped(*shape)
    expected = eigenvectors_reference(X, 3)
    for given in (X, np.asfortranarray(X), shards(X), as_rows(X, block_rows=5)):
        assert subspace_sine(PCA(3, solver=solver).fit(given).components_, expected) <= 1e-8


@pytest.mark.parametrize("solver", ["auto", *EXACT, "krylov"])
@pytest.mark.parametrize("shape", [(300, 12), (12, 300), (42, 131)])
def test_N3a_dask_agrees(solver, shape, dask_client):
    array = pytest.importorskip("dask.array")
    X = gapped(*shape)
    pca = PCA(3, solver=solver, tol=1e-11, random_state=0).fit(
        array.from_array(X, chunks=(max(shape[0] // 4, 5), shape[1]))
    )
    assert pca.certificate_.holds
    # What is measured is not left to Dask: no part of the answer is lazy.
    assert all(isinstance(part, np.ndarray | float) for part in pca.certificate_.details.values())
    assert subspace_sine(pca.components_, eigenvectors_reference(X, 3)) <= 1e-8
    assert relative_error(pca.explained_variance_, eigenvalues_longdouble(X)[:3]) <= 1e-12


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(500, 200), (200, 500)])
def test_N3c_krylov_against_full(shape, seed):
    X = data_with_spectrum(*shape, 1 / np.arange(1, 151), seed=seed)
    found = PCA(10, solver="krylov", random_state=seed).fit(X)
    assert subspace_sine(found.components_, eigenvectors_reference(X, 10)) <= 1e-3


# --- N4: blocks and threads -----------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(1100, 12), (12, 1100)], ids=["tall", "wide"])
@pytest.mark.parametrize("block", [1, 7, 1000, None])
@pytest.mark.parametrize("threads", [1, 2])
def test_N4_block_size_and_threads(solver, shape, block, threads):
    X = gapped(*shape)
    with threadpoolctl.threadpool_limits(1):
        expected = PCA(3, solver=solver, random_state=0).fit(X)
    with threadpoolctl.threadpool_limits(threads):
        found = PCA(3, solver=solver, random_state=0).fit(as_rows(X, block_rows=block or len(X)))
    assert relative_error(found.explained_variance_, expected.explained_variance_) <= 1e-12
    assert relative_error(found.mean_, expected.mean_) <= 1e-12
    # "optimize" stops at tol: where the last step falls depends on rounding, so its vectors agree to tol only
    bound = 1e-6 if solver == "optimize" else 1e-12
    assert np.abs(found.components_ - expected.components_).max() <= bound
    assert error_of_largest(found.transform(X), expected.transform(X)) <= 10 * bound


@pytest.mark.parametrize("solver", ["eigh", "krylov"])
@pytest.mark.parametrize("block", [1, 7, 1000])
def test_N4_block_size_of_sparse_rows(solver, block):
    X = scipy.sparse.random_array((1100, 12), density=0.3, format="csr", rng=0)
    X = X @ scipy.sparse.diags_array(np.r_[16, 15, 14, np.linspace(2, 0.5, 9)])
    expected = PCA(3, solver=solver, random_state=0).fit(X)
    found = PCA(3, solver=solver, random_state=0).fit(as_rows(X, block_rows=block))
    assert relative_error(found.explained_variance_, expected.explained_variance_) <= 1e-12
    assert np.abs(found.components_ - expected.components_).max() <= 1e-12


# --- N6, N7, N9: repeatability, signs, transforms -------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("seed", [0, 7])
def test_N6_same_seed_is_bit_equal(solver, seed):
    X = gapped()
    first, second = (PCA(3, solver=solver, random_state=seed).fit(X) for _ in range(2))
    for name in ("components_", "explained_variance_", "mean_", "singular_values_", "noise_variance_"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert first.certificate_.residual == second.certificate_.residual


@pytest.mark.parametrize("solver", SOLVERS)
def test_N7_signs_do_not_depend_on_the_order_of_rows(solver):
    X = gapped()
    shuffled = X[np.random.default_rng(0).permutation(len(X))]
    found, again = (PCA(3, solver=solver, random_state=0).fit(Y).components_ for Y in (X, shuffled))
    assert signs_follow_the_rule(found)
    assert np.allclose(found, again, atol=1e-8 if solver in EXACT else 1e-4)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize(
    "options", [{}, {"whiten": True}, {"scale": True}, {"center": False}, {"scale": True, "whiten": True}]
)
def test_N9a_transform_against_fit_transform(solver, options):
    X = gapped()
    pca = PCA(3, solver=solver, **options)
    at_once = pca.fit_transform(X)
    assert error_of_largest(at_once, pca.transform(X)) <= 1e-12
    rows = np.vstack([pca.transform(X[[i]]) for i in range(5)])
    assert error_of_largest(rows, at_once[:5]) <= 1e-12  # transform(row) = transform(all)[row]


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("k", [1, 3, 12])
def test_N9b_inverse_transform_loses_the_discarded_variance(solver, whiten, k):
    X = gapped()
    pca = PCA(k, solver=solver, whiten=whiten).fit(X)
    lost = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (len(X) - 1)
    discarded = eigenvalues_longdouble(X)[k:].sum()
    assert abs(lost - discarded) <= 1e-10 * eigenvalues_longdouble(X).sum()
    assert abs(pca.result_.objective - discarded) <= 1e-10 * eigenvalues_longdouble(X).sum()
    if k < 12:
        assert abs(pca.noise_variance_ - discarded / (12 - k)) <= 1e-10 * eigenvalues_longdouble(X).sum()


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True)
@hypothesis.given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    p=st.integers(1, 12),
    k=st.integers(1, 12),
    spread=st.sampled_from([1.0, 1e3, 1e8]),
    offset=st.sampled_from([0.0, 10.0, 1e6]),
    solver=st.sampled_from(EXACT),
)
def test_residual_error_is_the_sum_of_discarded_eigenvalues(seed, n, p, k, spread, offset, solver):
    rng = np.random.default_rng(seed)
    k = min(k, n - 1, p)
    X = rng.normal(size=(n, p)) * spread ** -rng.random(p) + offset
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has numerical rank", UserWarning)  # as some draws do, at a large offset
        pca = PCA(k, solver=solver).fit(X)
    eigenvalues = eigenvalues_longdouble(X)
    # A mean is rounded like a stored value, by offset * eps per cell: variances are about that mean.
    about = 2 * p * (offset * EPS) ** 2
    rounding = n * about + offset * EPS * np.sqrt(n * p * eigenvalues.sum())
    lost = ((X - pca.inverse_transform(pca.transform(X))) ** 2).sum() / (n - 1)
    left = eigenvalues[k:].sum()
    assert abs(lost - left) <= 1e-12 * eigenvalues.sum() + rounding
    assert abs(pca.result_.objective - left) <= 1e-12 * eigenvalues.sum() + about
    assert abs(eigenvalues.sum() - pca.explained_variance_.sum() - left) <= 1e-12 * eigenvalues.sum() + about


# --- N12: certificates ----------------------------------------------------------------------------


def eigenvectors_of(X):
    """All eigenpairs of the covariance, decreasing: vectors as rows."""
    values, vectors = np.linalg.eigh(np.cov(X.T))
    return vectors[:, ::-1].T, values[::-1]


@pytest.mark.parametrize("storage", ["dense", "csr", "shards"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_N12_recomputed_certificate_equals_the_reported_one(solver, storage):
    X = gapped()
    given = {"dense": X, "csr": scipy.sparse.csr_array(X), "shards": shards(X)}[storage]
    pca = PCA(3, solver=solver, random_state=0).fit(given)
    again = principal_components(given, pca.components_, pca.explained_variance_)
    # below p * eps a residual is rounding, of one computation or the other
    reported, recomputed = (max(c.residual, 12 * EPS) for c in (pca.certificate_, again))
    assert recomputed <= 10 * reported
    assert reported <= 10 * recomputed
    assert pca.certificate_.residual <= pca.certificate_.tol == 1e-6
    assert pca.certificate_.dominant
    assert again.dominant
    assert pca.certificate_.scope == again.scope == "global"


@pytest.mark.parametrize("options", [{"scale": True}, {"center": False}])
def test_N12_certificate_of_scaled_or_uncentred_fits(options):
    X = gapped()
    pca = PCA(3, solver="eigh", **options).fit(X)
    again = principal_components(
        X, pca.components_, pca.explained_variance_, center=options.get("center", True), scale=pca.scale_
    )
    assert again.residual <= 1e-13
    assert again.dominant


@pytest.mark.parametrize("random_state", range(10))
def test_N12_dominance_tells_the_leading_eigenvectors_from_others(random_state):
    # a 20 x 20 covariance with a slow decay, as in the worked numbers: 28.4 ... 20.1, 18.4, ... 14.4 ... 0.92
    X = data_with_spectrum(200, 20, np.sqrt(np.linspace(28.4, 0.9, 20)), seed=random_state)
    vectors, values = eigenvectors_of(X)
    picks = {
        "top three": [0, 1, 2],
        "bottom three": [17, 18, 19],
        "top two and a lower one": [0, 1, 5],
        "all but the first": range(1, 20),
    }
    for name, pick in picks.items():
        pick = list(pick)
        certificate = principal_components(X, vectors[pick], values[pick], random_state=random_state)
        assert certificate.residual <= 1e-13, name  # all are invariant subspaces: the residual is blind
        assert certificate.dominant == (name == "top three"), name
        assert (certificate.scope == "global") == (name == "top three"), name
        assert str(certificate)


@pytest.mark.parametrize("kept", [1, 3, 10, 19, 20])
def test_N12_dominance_accepts_every_leading_set(kept):
    X = data_with_spectrum(200, 20, np.sqrt(np.linspace(28.4, 0.9, 20)))
    vectors, values = eigenvectors_of(X)
    assert principal_components(X, vectors[:kept], values[:kept]).dominant


def test_N12_dominance_accepts_ties():
    X = data_with_spectrum(200, 20, np.r_[3, 2, 2, np.linspace(1, 0.1, 17)])
    vectors, values = eigenvectors_of(X)
    for kept in (1, 2, 3):
        assert principal_components(X, vectors[:kept], values[:kept]).dominant


def test_N12_wrong_answers_have_a_large_residual():
    X = data_with_spectrum(200, 20, np.sqrt(np.linspace(28.4, 0.9, 20)))
    vectors, values = eigenvectors_of(X)
    mixed = np.linalg.qr(vectors[:3].T + 1e-3 * vectors[3:6].T)[0].T
    assert principal_components(X, mixed, values[:3]).residual > 1e-5
    assert principal_components(X, vectors[:3], values[:3] * 1.01).residual > 1e-3
    assert principal_components(X, vectors[:3], values[[1, 0, 2]]).residual > 1e-3


def test_N12_the_same_vector_twice_is_no_answer():
    # each copy is an eigenvector and nothing left out is larger than it, but the span is one-dimensional
    X = data_with_spectrum(200, 20, np.sqrt(np.linspace(28.4, 0.9, 20)))
    vectors, values = eigenvectors_of(X)
    certificate = principal_components(X, vectors[[0, 0]], values[[0, 0]])
    assert certificate.residual > 1e-6 or not certificate.dominant


SPECTRA = {
    "slow decay": np.linspace(3, 2, 150),
    "flat": np.ones(150),
    "1 / i": 1 / np.arange(1, 151),
    "tied": np.r_[np.full(10, 3.0), np.linspace(2, 1, 140)],
    "spiked": np.r_[30, 20, 10, 5, 4, np.linspace(1, 0.5, 145)],
}


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("shape", [(600, 160), (160, 600)])
def test_N12_krylov_error_bounds_hold_and_are_as_tight_as_tol(shape, spectrum, tol):
    X = data_with_spectrum(*shape, SPECTRA[spectrum], offset=5.0)
    # double precision is enough of a reference for bounds down to 1e-6
    expected = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[:5] ** 2 / (shape[0] - 1)
    pca = PCA(5, solver="krylov", tol=tol, random_state=0).fit(X)
    bound = np.asarray(pca.certificate_.details["error"])
    assert np.all(np.abs(pca.explained_variance_ - expected) <= bound)
    assert bound.max() <= (2 * tol + 1e-12) * expected[0]


def test_N12_certificate_needs_no_large_offset_allowance():
    X = data_with_spectrum(500, 20, np.linspace(10, 1, 20), offset=1e8)
    pca = PCA(3).fit(X)
    again = principal_components(X, pca.components_, pca.explained_variance_)
    assert again.residual <= 1e-12
    assert again.dominant


# --- N14: properties ------------------------------------------------------------------------------

CASES = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(5, 40),
    "p": st.integers(4, 12),
    "solver": st.sampled_from(EXACT),
    "power": st.integers(-20, 20),
    "shift": st.sampled_from([1.0, 1e3, 1e6]),
}


def components(X, solver, k=2):
    return PCA(k, solver=solver).fit(X).components_


@hypothesis.settings(max_examples=50, deadline=None, derandomize=True)
@hypothesis.given(**CASES)
def test_N14_translation_rotation_scale_permutation(seed, n, p, solver, power, shift):
    rng = np.random.default_rng(seed)
    X = data_with_spectrum(n, p, np.r_[4, 3, rng.uniform(0, 1, min(n - 1, p) - 2)], seed=seed)
    V, rotation = components(X, solver), orthonormal(rng, p, p)
    assert subspace_sine(components(X + shift * rng.normal(size=p), solver), V) <= 1e-8
    assert subspace_sine(components(X @ rotation, solver), V @ rotation) <= 1e-8
    assert subspace_sine(components(X * 10.0**power, solver), V) <= 1e-8
    assert subspace_sine(components(X[rng.permutation(n)], solver), V) <= 1e-8
    order = rng.permutation(p)
    assert subspace_sine(components(X[:, order], solver), V[:, order]) <= 1e-8


@hypothesis.settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(seed=st.integers(0, 10**6), solver=st.sampled_from(EXACT))
def test_N14_repeated_rows_keep_subspace_and_population_variance(seed, solver):
    rng = np.random.default_rng(seed)
    X = data_with_spectrum(20, 6, [4, 3, 1, 0.5], seed=seed)
    times = int(rng.integers(2, 6))
    once, many = (PCA(2, solver=solver).fit(Y) for Y in (X, np.tile(X, (times, 1))))
    assert subspace_sine(once.components_, many.components_) <= 1e-8
    assert (
        relative_error(once.explained_variance_ * 19 / 20, many.explained_variance_ * (1 - 1 / (20 * times))) <= 1e-12
    )


@hypothesis.settings(max_examples=30, deadline=None, derandomize=True)
@hypothesis.given(seed=st.integers(0, 10**6), solver=st.sampled_from(SOLVERS))
def test_N14_every_fit_is_orthonormal_sorted_and_signed(seed, solver):
    X = data_with_spectrum(30, 8, [4, 3, 2, 1, 0.5], seed=seed, offset=10.0)
    pca = PCA(3, solver=solver, random_state=seed).fit(X)
    assert orthonormality_error(pca.components_) <= 1e-13
    assert np.all(np.diff(pca.explained_variance_) <= 0)
    assert signs_follow_the_rule(pca.components_)
    assert np.allclose(pca.loadings_, pca.components_ * np.sqrt(pca.explained_variance_)[:, None], atol=1e-12)


# --- fits from a covariance -----------------------------------------------------------------------


def test_fit_covariance_equals_the_fit_of_the_data():
    X = gapped()
    S = np.cov(X.T)
    before = S.copy()
    found, expected = PCA(3).fit_covariance(S, n_samples=len(X)), PCA(3).fit(X)
    assert relative_error(found.explained_variance_, expected.explained_variance_) <= 1e-12
    assert subspace_sine(found.components_, expected.components_) <= 1e-8
    assert np.array_equal(found.mean_, np.zeros(12))
    assert np.array_equal(S, before)


# --- N13: published numbers -------------------------------------------------------------------------


def digits(published):
    """Half a unit of the last published digit."""
    return {"rtol": 0, "atol": 0.5001 * 10.0**-published}


@pytest.mark.parametrize("solver", EXACT)
def test_N13_iris_as_in_r(solver):
    X = pytest.importorskip("sklearn.datasets").load_iris().data
    plain, scaled = PCA(solver=solver).fit(X), PCA(scale=True, solver=solver).fit(X)
    # R: prcomp(iris[1:4]) and prcomp(iris[1:4], scale. = TRUE)
    assert np.allclose(np.sqrt(plain.explained_variance_), [2.0562689, 0.4926162, 0.2796596, 0.1543862], **digits(7))
    assert np.allclose(np.sqrt(scaled.explained_variance_), [1.7083611, 0.9560494, 0.3830886, 0.1439265], **digits(7))
    assert np.allclose(plain.explained_variance_ratio_[:3], [0.92461872, 0.05306648, 0.01710261], **digits(8))
    assert np.allclose(plain.components_[0, :2], [0.36138659, -0.08452251], **digits(8))
    assert np.allclose(np.abs(scaled.components_[0, :2]), [0.5210659, 0.2693474], **digits(7))


def test_N13_pitprops_shares_of_variance():
    from princomp.datasets import load_pitprops

    data = load_pitprops()
    pca = PCA(6).fit_covariance(data.correlation, n_samples=data.n_samples)
    # Zou, Hastie and Tibshirani 2006, table 1: 32.4 18.3 14.4 8.5 7.0 6.3 (they cut 32.45 to 32.4)
    assert np.allclose(100 * pca.explained_variance_ratio_, [32.4, 18.3, 14.4, 8.5, 7.0, 6.3], rtol=0, atol=0.06)
    assert np.isclose(np.trace(data.correlation), 13)
