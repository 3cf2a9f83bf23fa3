"""A covariance matrix in place of data: of any precision and any size, and nothing but a covariance matrix."""

import numpy as np
import pytest

from princomp import PCA, ProbabilisticPCA, SparsePCA

ESTIMATORS = {
    "PCA": PCA(2),
    "PCA, scaled": PCA(2, scale=True),
    "SparsePCA": SparsePCA(2, nonzeros=2),
    "SparsePCA, scaled": SparsePCA(2, nonzeros=2, scale=True),
    "ProbabilisticPCA": ProbabilisticPCA(2),
    "ProbabilisticPCA, scaled": ProbabilisticPCA(2, scale=True),
}


@pytest.fixture(params=ESTIMATORS)
def model(request):
    return ESTIMATORS[request.param]


def low_rank(n, p, dtype):
    rng = np.random.default_rng(0)
    return (rng.standard_normal((n, 3)) @ rng.standard_normal((3, p))).astype(dtype)


@pytest.mark.parametrize("shape", [(100_000, 50), (1000, 1000), (20, 200), (3, 30)])
def test_a_covariance_computed_in_single_precision_may_lack_rank(shape):
    X = low_rank(*shape, np.float32)
    pca = PCA(2).fit_covariance(np.cov(X, rowvar=False, dtype=np.float32), n_samples=len(X))
    assert pca.components_.dtype == np.float32
    assert pca.certificate_.holds
    assert np.allclose(pca.explained_variance_ratio_, PCA(2).fit(X).explained_variance_ratio_, rtol=1e-5)


def test_every_estimator_takes_it(model):
    S = np.cov(low_rank(100_000, 50, np.float32), rowvar=False, dtype=np.float32)
    assert np.linalg.eigvalsh(S.astype(float))[0] < -1e-8 * np.linalg.norm(S)
    model.fit_covariance(S)


def with_eigenvalue(value, p=50):
    V = np.linalg.qr(np.random.default_rng(0).standard_normal((p, p)))[0]
    S = (V * np.r_[np.linspace(1, 0.5, p - 1), value]) @ V.T
    return (S + S.T) / 2


@pytest.mark.parametrize(
    ("dtype", "least"), [(np.float64, 1e-7), (np.float32, 1e-4)], ids=["double precision", "single precision"]
)
def test_what_rounding_does_not_explain_is_still_refused(model, dtype, least):
    with pytest.raises(ValueError, match="has no negative eigenvalue"):
        model.fit_covariance(with_eigenvalue(-least).astype(dtype))
    skew = with_eigenvalue(0.5)
    skew[3, 4] += least
    with pytest.raises(ValueError, match="is symmetric; this one is not"):
        model.fit_covariance(skew.astype(dtype))


def test_single_precision_is_symmetric_up_to_its_rounding(model):
    S = with_eigenvalue(0.5).astype(np.float32)
    S[3, 4] += 2 * np.finfo(np.float32).eps * S.max()
    assert S[3, 4] != S[4, 3]
    model.fit_covariance(S)
    with pytest.raises(ValueError, match="is symmetric; this one is not"):
        model.fit_covariance(S.astype(np.float64))


# --- sizes ----------------------------------------------------------------------------------------

SIZES = [4e307, 1e150, 1e-200, 1e-300]


@pytest.mark.parametrize("size", [*SIZES, 1e-310])
@pytest.mark.parametrize("n_samples", [None, 100])
def test_variances_may_be_as_large_or_small_as_float64_holds(size, n_samples):
    S = np.diag([4.0, 2.0, 1.0])
    pca = PCA().fit_covariance(S * size, n_samples=n_samples)
    assert np.allclose(pca.explained_variance_ratio_, [4 / 7, 2 / 7, 1 / 7], rtol=1e-14)
    assert np.allclose(pca.explained_variance_ / size, [4, 2, 1], rtol=1e-10)
    assert pca.certificate_.holds
    half = PCA(1).fit_covariance(S * size, n_samples=n_samples)
    assert np.isclose(half.noise_variance_ / size, 1.5, rtol=1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_the_size_of_a_covariance_changes_nothing_but_the_size(model, size):
    if isinstance(model, ProbabilisticPCA) and not model.scale and size == 4e307:
        with pytest.raises(ValueError, match="variance of X is more than float64 holds"):
            model.fit_covariance(np.diag([4.0, 2.0, 1.0]) * size)
        return
    S = np.array([[2.0, 0.6, 0.2], [0.6, 1.0, 0.1], [0.2, 0.1, 0.5]])
    ratio = model.fit_covariance(S).explained_variance_ratio_
    scale = np.ones(3) if model.scale_ is None else model.scale_
    found = model.fit_covariance(S * size)
    assert np.allclose(found.explained_variance_ratio_, ratio, rtol=1e-10)
    if found.scale_ is not None:
        assert np.allclose(found.scale_ / np.sqrt(size), scale, rtol=1e-12)


def test_a_negative_eigenvalue_is_told_in_the_units_given():
    with pytest.raises(ValueError, match=r"this one has -1e\+200, the largest being 4e\+200"):
        PCA(2).fit_covariance(np.diag([4e200, -1e200, 1e200]))


# --- what is none -----------------------------------------------------------------------------------


def test_what_is_no_square_or_holds_no_numbers_is_refused(model):
    with pytest.raises(ValueError, match=r"A covariance matrix is square, got shape \(3, 4\)\. For data, call fit\."):
        model.fit_covariance(np.ones((3, 4)))
    S = np.eye(4)
    S[1, 2] = S[2, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN in column 1 "):
        model.fit_covariance(S)
    S[1, 2] = S[2, 1] = np.inf
    with pytest.raises(ValueError, match="contains inf in column 1 "):
        model.fit_covariance(S)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (PCA("mle"), 'n_components="mle" needs n_samples'),
        (PCA(2, solver="svd"), "fit_covariance uses solver=\"eigh\" only, got 'svd'"),
        (SparsePCA(2, formulation="regression", checkpoint="x"), "checkpoint is for fit, not for fit_covariance"),
        (SparsePCA(2, code_alpha=1.0), "A penalty on the codes needs data: call fit, not fit_covariance"),
    ],
)
def test_what_needs_data_is_refused(asked, words):
    with pytest.raises(ValueError, match=words):
        asked.fit_covariance(np.diag([4.0, 3.0, 2.0, 1.0]))
