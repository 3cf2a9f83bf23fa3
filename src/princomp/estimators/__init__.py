"""Estimators: thin scikit-learn classes that validate, wrap, solve and store; the loops are in solvers."""

from princomp.estimators.dictionary_learning import DictionaryLearning
from princomp.estimators.kernel_pca import KernelPCA
from princomp.estimators.pca import PCA
from princomp.estimators.probabilistic_mixture import ProbabilisticPCAMixture
from princomp.estimators.probabilistic_pca import ProbabilisticPCA
from princomp.estimators.rank_one_dictionary import RankOneDictionary
from princomp.estimators.robust_pca import RobustPCA
from princomp.estimators.sparse_cca import SparseCCA
from princomp.estimators.sparse_pca import SparsePCA

__all__ = [
    "PCA",
    "DictionaryLearning",
    "KernelPCA",
    "ProbabilisticPCA",
    "ProbabilisticPCAMixture",
    "RankOneDictionary",
    "RobustPCA",
    "SparseCCA",
    "SparsePCA",
]
