from . import certificates, data, datasets, images, kernels, losses, manifolds, penalties, plots, report
from .data import read
from .estimators import (
    PCA,
    DictionaryLearning,
    KernelPCA,
    ProbabilisticPCA,
    ProbabilisticPCAMixture,
    RankOneDictionary,
    RobustPCA,
    SparseCCA,
    SparsePCA,
)
from .estimators.sparse_coding import sparse_encode
from .manual import normalize, spca
from .persistence import load, save
from .single_cell import annotate
from .solvers.amanpg import amanpg

__version__: str
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
    "amanpg",
    "annotate",
    "certificates",
    "data",
    "datasets",
    "images",
    "kernels",
    "load",
    "losses",
    "manifolds",
    "normalize",
    "penalties",
    "plots",
    "read",
    "report",
    "save",
    "sparse_encode",
    "spca",
]
