from . import certificates, data, datasets, losses, manifolds, penalties, report
from .data import read
from .estimators import PCA, SparseCCA, SparsePCA
from .manual import normalize, spca
from .persistence import load, save
from .solvers.amanpg import amanpg

__version__: str
__all__ = [
    "PCA",
    "SparseCCA",
    "SparsePCA",
    "amanpg",
    "certificates",
    "data",
    "datasets",
    "load",
    "losses",
    "manifolds",
    "normalize",
    "penalties",
    "read",
    "report",
    "save",
    "spca",
]
