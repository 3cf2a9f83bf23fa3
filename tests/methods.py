"""The methods, listed once, each with a small problem: what all of them promise is tested over this list.

A method is an estimator with the parameters that make it work in one way. A new one is one entry here; all tests that
go over the list then ask of it what they ask of all: `test_methods.py`, scikit-learn's checks, model files,
descriptions and whatever else imports `METHODS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import princomp
from helpers import data_with_spectrum
from princomp.penalties import L1

K = 2
TABLE = data_with_spectrum(60, 12, np.geomspace(9, 0.5, 12), seed=3, offset=3.0)
OTHER = TABLE[:, [1, 4, 5]] @ np.diag([1.0, -2.0, 0.5]) + np.random.default_rng(5).normal(size=(60, 3))


@dataclass(frozen=True)
class Method:
    """A way to use an estimator.

    ``tight`` are parameters that give ten digits, ``one_feature`` those for data that have no more; ``refuses`` has, by
    storage, what the sentence says where a method does not work there.
    """

    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tight: Mapping[str, Any] = field(default_factory=dict)
    one_feature: Mapping[str, Any] = field(default_factory=dict)
    allows_missing: bool = False
    iterates: bool = True  # has steps: calls back, can be stopped, leaves checkpoints
    two_tables: bool = False
    from_covariance: bool = True
    divisor: int = 1  # of the covariance: n less this
    found: str = "components_"  # the attribute that is compared, the features along its last axis
    ignores_offset: bool = True
    by_feature: bool = True  # whether what is compared has a number for each feature
    at_most_rank: bool = True  # has no more components than rows or features
    up_to_rows: bool = False  # may have as many components as rows, however few features there are
    refuses: Mapping[str, str] = field(default_factory=dict)

    def make(self, **more):
        """The estimator, not fitted."""
        return getattr(princomp, self.estimator)(K, **{"random_state": 0, **self.parameters, **more})

    def fit(self, X, **more):
        """The estimator, fitted to X."""
        return self.make(**more).fit(*self.tables(X))

    def tables(self, X, n=None):
        """What ``fit`` is given: X, and the first n rows, or all, of the other table if there are two."""
        return (X, OTHER[:n]) if self.two_tables else (X,)

    def answer(self, model):
        """What was found, as numbers that can be compared."""
        return getattr(model, self.found)


KERNEL = {"iterates": False, "from_covariance": False, "found": "eigenvalues_", "by_feature": False, "up_to_rows": True}

METHODS = {
    "pca, eigh": Method("PCA", {"solver": "eigh"}, iterates=False),
    "pca, svd": Method("PCA", {"solver": "svd"}, iterates=False, from_covariance=False),
    "pca, krylov": Method("PCA", {"solver": "krylov"}, {"tol": 1e-10}, from_covariance=False),
    "pca, optimize": Method("PCA", {"solver": "optimize"}, {"tol": 1e-10}, from_covariance=False),
    "probabilistic, closed form": Method("ProbabilisticPCA", {"method": "closed-form"}, iterates=False, divisor=0),
    "probabilistic, em": Method(
        "ProbabilisticPCA", {"method": "em"}, {"tol": 1e-14}, allows_missing=True, from_covariance=False
    ),
    "mixture": Method(
        "ProbabilisticPCAMixture",
        {"n_clusters": 2},
        {"tol": 1e-12, "max_iter": 20_000},
        allows_missing=True,
        from_covariance=False,
    ),
    "sparse, cardinality": Method("SparsePCA", {"nonzeros": 3}, one_feature={"nonzeros": 1}),
    "sparse, regression": Method("SparsePCA", {"formulation": "regression", "alpha": 20.0}, {"tol": 1e-10}),
    "sparse, dictionary": Method(
        "SparsePCA", {"formulation": "dictionary", "alpha": 2.0}, {"tol": 1e-10}, at_most_rank=False
    ),
    "sparse, constrained": Method("SparsePCA", {"formulation": "constrained", "bound": 1.5}, {"tol": 1e-10}),
    "kernel, exact": Method("KernelPCA", {"gamma": 0.02, "approximation": None}, **KERNEL),
    "kernel, nystroem": Method("KernelPCA", {"gamma": 0.02, "approximation": "nystroem", "rank": 20}, **KERNEL),
    "kernel, rpcholesky": Method("KernelPCA", {"gamma": 0.02, "approximation": "rpcholesky", "rank": 20}, **KERNEL),
    "kernel, fourier": Method("KernelPCA", {"gamma": 0.02, "approximation": "fourier", "rank": 50}, **KERNEL),
    "cca": Method(
        "SparseCCA", {"alpha_x": 0.05, "alpha_y": 0.05}, {"tol": 1e-10}, two_tables=True, from_covariance=False
    ),
}

DICTIONARY = {
    "allows_missing": True,
    "from_covariance": False,
    "ignores_offset": False,
    "by_feature": False,
    "at_most_rank": False,
}
METHODS |= {
    "dictionary, online": Method(
        "DictionaryLearning", {"alpha": 0.5, "batch_size": 100}, {"tol": 1e-10, "max_iter": 5000}, **DICTIONARY
    ),
    "dictionary, batch": Method(
        "DictionaryLearning", {"method": "batch", "alpha": 0.5}, {"tol": 1e-10, "max_iter": 5000}, **DICTIONARY
    ),
    "dictionary, ksvd": Method(
        "DictionaryLearning", {"method": "ksvd", "nonzeros": 1}, {"tol": 1e-10, "max_iter": 5000}, **DICTIONARY
    ),
}

PAIRS = {
    "from_covariance": False,
    "ignores_offset": False,
    "by_feature": False,
    "at_most_rank": False,
    "one_feature": {"nonzeros": 1},
}
METHODS |= {
    "rank one": Method("RankOneDictionary", {"nonzeros": 4}, {"tol": 1e-11, "max_iter": 5000}, **PAIRS),
    "rank one, refined": Method(
        "RankOneDictionary", {"nonzeros": 4, "refine": 5000}, {"tol": 1e-11, "max_iter": 5000}, **PAIRS
    ),
}

ROBUST = {"from_covariance": False}
METHODS |= {
    # The low-rank part of a column that does not vary does vary: its variance is made of what others lack.
    "robust, pcp": Method(
        "RobustPCA", {}, {"tol": 1e-10}, allows_missing=True, ignores_offset=False, by_feature=False, **ROBUST
    ),
    "robust, cellwise": Method("RobustPCA", {"method": "cellwise"}, {"tol": 1e-10}, allows_missing=True, **ROBUST),
    "robust, outlier pursuit": Method(
        "RobustPCA", {"method": "outlier-pursuit"}, {"tol": 1e-10}, ignores_offset=False, by_feature=False, **ROBUST
    ),
    "robust, robpca": Method("RobustPCA", {"method": "robpca"}, **ROBUST),
    "robust, spherical": Method("RobustPCA", {"method": "spherical"}, {"tol": 1e-12}, **ROBUST),
    "robust, online": Method("RobustPCA", {"method": "online"}, {"tol": 1e-10}, allows_missing=True, **ROBUST),
}

# Other parameters that decide what is computed, for scikit-learn's checks: (estimator, parameters). They are asked of
# every estimator as it comes, too.
FORMS = [
    ("PCA", {"n_components": 0.9}),
    ("PCA", {"solver": "eigh"}),
    ("PCA", {"solver": "krylov"}),
    ("PCA", {"solver": "optimize"}),
    ("PCA", {"n_components": 1, "solver": "optimize", "penalty": L1(0.1)}),
    ("PCA", {"scale": True}),
    ("PCA", {"whiten": True}),
    ("PCA", {"center": False}),
    ("SparsePCA", {"n_components": 1, "formulation": "dictionary"}),
    ("SparsePCA", {"n_components": 1, "formulation": "regression"}),
    ("SparsePCA", {"n_components": 1, "formulation": "constrained"}),
    ("ProbabilisticPCA", {"n_components": "ard", "random_state": 0}),
    ("ProbabilisticPCAMixture", {"n_components": 1, "n_clusters": 3}),
    ("KernelPCA", {"n_components": 1, "kernel": "linear"}),
    ("KernelPCA", {"n_components": 1, "kernel": "cosine"}),
    ("KernelPCA", {"n_components": 1, "kernel": "normalized-rbf"}),
    ("DictionaryLearning", {"n_components": 2, "method": "batch", "max_iter": 5, "tol": 0.0}),
    ("DictionaryLearning", {"n_components": 2, "method": "ksvd", "nonzeros": 1}),
    ("RankOneDictionary", {"n_components": 1, "nonzeros": 1, "refine": 2}),
    ("RankOneDictionary", {"n_components": 0.5, "nonnegative": True}),
]
