"""scikit-learn's common checks, with no expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from princomp import PCA, SparsePCA
from princomp.penalties import L1

ESTIMATORS = [
    PCA(),
    PCA(1),
    PCA(0.9),
    PCA(solver="eigh"),
    PCA(solver="svd"),
    PCA(solver="krylov"),
    PCA(solver="optimize"),
    PCA(1, solver="optimize", penalty=L1(0.1)),
    PCA(scale=True),
    PCA(whiten=True),
    PCA(center=False),
    SparsePCA(1, formulation="cardinality"),
    SparsePCA(1, nonzeros=1),
]


@parametrize_with_checks(ESTIMATORS)
def test_common_checks(estimator, check):
    check(estimator)
