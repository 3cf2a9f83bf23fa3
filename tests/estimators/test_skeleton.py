"""What all estimators have from one skeleton: counts that are refused in words, warnings that point at the user."""

import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import princomp
from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture, SparseCCA, SparsePCA

ESTIMATORS = [PCA, ProbabilisticPCA, ProbabilisticPCAMixture, SparseCCA, SparsePCA]
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 6)), RNG.normal(size=(40, 5))
HOLED = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
SPLIT = np.where(np.arange(40)[:, None] % 2 == np.arange(6) // 3, np.nan, X)  # no row has columns 0 and 5
TWINS = np.repeat(X[:, :2], 2, axis=1)  # columns that come and go together
EQUAL = np.ones((20, 4))


# --- warnings -------------------------------------------------------------------------------------

WARNERS = {
    "PCA of equal rows": (PCA(2), EQUAL),
    "PCA, cut off": (PCA(2, solver="krylov", max_iter=1, tol=1e-14, random_state=0), RNG.normal(size=(60, 50))),
    "PCA by optimisation, cut off": (PCA(2, solver="optimize", max_iter=1, random_state=0), X),
    "PPCA of equal rows": (ProbabilisticPCA(2), EQUAL),
    "PPCA, cut off": (ProbabilisticPCA(2, max_iter=2, random_state=0), HOLED),
    "PPCA, scaled, of columns apart": (ProbabilisticPCA(1, scale=True, random_state=0), SPLIT),
    "mixture, cut off": (ProbabilisticPCAMixture(1, max_iter=1, random_state=0), X),
    "mixture of columns apart": (ProbabilisticPCAMixture(1, n_clusters=1, random_state=0), SPLIT),
    "sparse PCA of equal rows": (SparsePCA(2), EQUAL),
    "sparse PCA of nothing": (SparsePCA(2, formulation="dictionary", alpha_share=1.0, random_state=0), X),
    "sparse PCA, cut off": (SparsePCA(2, formulation="regression", max_iter=1, random_state=0), X),
    "sparse PCA, nonzeros missed": (SparsePCA(1, formulation="regression", nonzeros=1, scale=True), TWINS),
    "sparse CCA, cut off": (SparseCCA(1, max_iter=1), X),
}


def assert_warns_of(call):
    """A function of one line warns, and each warning is said to be of that line."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        call()
    assert {(each.filename, each.lineno) for each in warned} == {(__file__, call.__code__.co_firstlineno)}


@pytest.mark.parametrize("name", WARNERS)
def test_a_warning_points_at_the_line_that_called(name):
    estimator, data = WARNERS[name]
    assert_warns_of(lambda: estimator.fit(data, Y))


@pytest.mark.parametrize("name", ["PCA of equal rows", "sparse PCA, cut off", "mixture, cut off"])
def test_also_through_scikit_learn(name):
    estimator, data = WARNERS[name]
    assert_warns_of(lambda: make_pipeline(estimator).fit_transform(data))


@pytest.mark.parametrize("kind", [PCA, ProbabilisticPCA, SparsePCA])
def test_also_from_a_covariance(kind):
    assert_warns_of(lambda: kind(2).fit_covariance(np.zeros((4, 4))))


def test_every_estimator_warns_here():
    assert {type(estimator) for estimator, _ in WARNERS.values()} == set(ESTIMATORS)
    assert {each.__name__ for each in ESTIMATORS} == set(princomp.estimators.__all__)
