"""What other packages of sparse PCA get wrong, each as a test of ours.

More of these are where the numbers are: the published table of pitprops and the optimum beside it, and agreement of
data and covariance, in test_regression.py and test_sparse_pca.py; those of the A-ManPG packages in test_spca_manual.py.
"""

import warnings

import numpy as np
import pytest
from sklearn.decomposition import MiniBatchSparsePCA
from sklearn.exceptions import ConvergenceWarning

from helpers import Allocated
from princomp import SparsePCA
from princomp.datasets import load_pitprops, load_wine

ZOU = [0.06, 0.16, 0.1, 0.5, 0.5, 0.5]
FITS = {
    "dictionary": {"formulation": "dictionary", "alpha_share": 0.2},
    "regression": {"formulation": "regression", "alpha_share": 0.2},
    "one-shot": {"formulation": "regression", "solver": "one-shot", "alpha_share": 0.2},
    "constrained": {"formulation": "constrained"},
}
every_fit = pytest.mark.parametrize("how", FITS.values(), ids=FITS)


def spiked(n, p, size=20, seed=0):
    """Four blocks of equal loadings, strong beside the noise; and the loadings."""
    rng = np.random.default_rng(seed)
    V = np.zeros((4, p))
    for j in range(4):
        V[j, size * j : size * (j + 1)] = 1 / np.sqrt(size)
    return (rng.standard_normal((n, 4)) * [10, 8, 6, 5]) @ V + rng.standard_normal((n, p)), V


def one_factor(n, p, seed=0):
    """Noise, and a strong factor in the first ten columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :10] += 5 * rng.standard_normal((n, 1))
    return X


# --- PyPI sparsepca: the start, the input, the memory -------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_fits_begin_at_the_leading_right_singular_vectors(seed):
    """Not at columns of V', from which it ends at a higher objective: without a penalty the start is the answer."""
    X = one_factor(80, 30, seed)
    X -= X.mean(axis=0)
    V = np.linalg.svd(X)[2][:3]
    states = []
    SparsePCA(3, formulation="regression", alpha=0.0, callback=states.append, random_state=0).fit(X)
    A = states[0].value["A"]
    assert np.abs(A @ A.T - V.T @ V).max() <= 1e-6
    pitprops = SparsePCA(6, alpha=ZOU, ridge=1e-6).fit_covariance(load_pitprops().correlation)
    assert pitprops.result_.objective == pytest.approx(-9.110125982, abs=1e-4)


@every_fit
def test_what_is_given_is_never_written_to(how):
    X = spiked(60, 25, size=5)[0]
    S = np.cov(X.T)
    X.flags.writeable = S.flags.writeable = False
    before = X.tobytes(), S.tobytes()
    for scale in (False, True):
        SparsePCA(2, scale=scale, random_state=0, **how).fit(X)
        SparsePCA(2, scale=scale, random_state=0, **how).fit_covariance(S, n_samples=len(X))
    assert before == (X.tobytes(), S.tobytes())


def test_a_tight_tolerance_is_reached_within_the_default_limit():
    sparse = SparsePCA(6, alpha=ZOU, ridge=1e-6, tol=1e-10).fit_covariance(load_pitprops().correlation)
    assert sparse.result_.status.code == "converged"
    A = sparse.result_.value["A"]
    assert np.abs(A.T @ A - np.eye(6)).max() <= 1e-12
    assert sparse.result_.objective >= -9.110125983  # not below the minimum, by a drift from A'A = I


@every_fit
def test_many_features_need_no_square_matrix(how):
    n, p, k = 20, 20_000, 2
    X = np.random.default_rng(0).standard_normal((n, p))
    SparsePCA(k, random_state=0, **how).fit(X[:, :500])  # imports, compilation
    with Allocated() as memory, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        SparsePCA(k, random_state=0, max_iter=3, **how).fit(X)
    assert memory.peak <= 0.1 * 8 * p * p


@every_fit
def test_all_components_means_as_many_as_there_can_be(how):
    X = np.random.default_rng(0).standard_normal((8, 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert SparsePCA(max_iter=3, random_state=0, **how).fit(X).components_.shape == (8, 20)


# --- R amanpg: weights, variance ----------------------------------------------------------------------


@pytest.mark.parametrize("formulation", ["dictionary", "regression"])
@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_weight_belongs_to_its_component(formulation, kind):
    """Weights spread over rows would hit the wrong entries."""
    X = one_factor(60, 20)
    for j in range(3):
        weights = [0.1, 0.1, 0.1]
        weights[j] = 1e6
        with pytest.warns(UserWarning, match="1 of 3 components are zero"):
            sparse = SparsePCA(3, formulation=formulation, alpha=kind(weights), random_state=0).fit(X)
        assert sparse.components_.any(axis=1).tolist() == [i != j for i in range(3)]
        assert sparse.alpha_.tolist() == weights


@every_fit
def test_explained_variance_is_that_of_the_scores(how):
    """Of the sparse loadings, not of the orthonormal companion that nobody projects on."""
    X = load_wine().X / load_wine().X.std(axis=0)
    sparse = SparsePCA(3, random_state=0, **how).fit(X)
    R = np.linalg.qr((X - X.mean(axis=0)) @ sparse.components_.T)[1]
    assert np.allclose(sparse.explained_variance_, np.diag(R) ** 2 / (len(X) - 1), rtol=1e-9)


# --- abess: fewer rows than columns -------------------------------------------------------------------


@pytest.mark.parametrize("formulation", ["dictionary", "regression", "constrained"])
@pytest.mark.parametrize("shape", [(49, 50), (60, 100), (200, 500), (100, 50)])
def test_the_number_of_nonzeros_is_kept_with_fewer_rows_than_columns(formulation, shape):
    X = one_factor(*shape)
    sparse = SparsePCA(1, formulation=formulation, nonzeros=10, random_state=0).fit(X)
    assert np.flatnonzero(sparse.components_[0]).tolist() == list(range(10))
    v = np.linalg.eigh(np.cov(X[:, :10].T))[1][:, -1]  # the best there is on the right columns
    best = np.var(X[:, :10] @ v, ddof=1)
    assert sparse.explained_variance_[0] >= 0.5 * best  # less than all: the penalty also shortens loadings


def test_groups_may_be_in_any_order():
    X = load_wine().X / load_wine().X.std(axis=0)
    order = np.random.default_rng(0).permutation(13)
    labels = np.repeat([0, 1, 2], [4, 4, 5])
    usual = SparsePCA(2, alpha=4.0, groups=labels, tol=1e-9, random_state=0).fit(X)
    mixed = SparsePCA(2, alpha=4.0, groups=labels[order], tol=1e-9, random_state=0).fit(X[:, order])
    assert np.allclose(np.abs(mixed.components_), np.abs(usual.components_[:, order]), atol=1e-6)


@every_fit
def test_a_covariance_with_rounding_in_it_is_taken(how):
    """Of rank 19, so that rounding makes eigenvalues negative; and not symmetric in the last digit."""
    X = spiked(20, 40, size=5)[0]
    S = np.cov(X.T)
    S[3, 7] *= 1 + 1e-15
    assert np.linalg.eigvalsh(S)[0] < 0
    found = SparsePCA(2, tol=1e-8, random_state=0, **how).fit_covariance(S, n_samples=20)
    data = SparsePCA(2, tol=1e-8, random_state=0, **how).fit(X)
    assert np.abs(found.components_ - data.components_).max() <= 1e-5


# --- PMA: the mean ------------------------------------------------------------------------------------


@every_fit
def test_columns_are_centred_each_by_its_own_mean(how):
    """By neither the mean of all cells nor those of rows: offsets of columns change nothing."""
    X = spiked(60, 20, size=5)[0]
    offsets = np.linspace(-100, 100, 20)
    usual = SparsePCA(2, tol=1e-8, random_state=0, **how).fit(X)
    moved = SparsePCA(2, tol=1e-8, random_state=0, **how).fit(X + offsets)
    assert np.abs(usual.components_ - moved.components_).max() <= 1e-6
    assert np.allclose(moved.mean_, X.mean(axis=0) + offsets)
    assert np.allclose(moved.transform(X + offsets), usual.transform(X), atol=1e-4)


# --- scikit-learn: supports, scale --------------------------------------------------------------------


def test_supports_are_right_where_mini_batches_are_wrong():
    X, V = spiked(300, 400)
    alpha = 4.0
    sparse = SparsePCA(4, alpha=alpha, random_state=0).fit(X)
    supports = {tuple(np.flatnonzero(component)) for component in sparse.components_}
    assert supports == {tuple(np.flatnonzero(v)) for v in V}
    theirs = MiniBatchSparsePCA(4, alpha=alpha, random_state=0).fit(X).components_
    assert {tuple(np.flatnonzero(component)) for component in theirs} != supports


@pytest.mark.parametrize("formulation", ["dictionary", "regression"])
def test_a_share_of_the_largest_penalty_has_no_scale(formulation):
    X = spiked(60, 20, size=5)[0]
    usual = SparsePCA(2, formulation=formulation, alpha_share=0.3, random_state=0).fit(X)
    larger = SparsePCA(2, formulation=formulation, alpha_share=0.3, random_state=0).fit(1024.0 * X)
    assert np.abs(usual.components_ - larger.components_).max() <= 1e-9
    power = 1 if formulation == "dictionary" else 2
    assert np.allclose(larger.alpha_, 1024.0**power * usual.alpha_, rtol=1e-9)
