from . import certificates, data, datasets, losses, penalties, report
from .data import read
from .estimators import PCA
from .persistence import load, save

__version__: str
__all__ = ["PCA", "certificates", "data", "datasets", "load", "losses", "penalties", "read", "report", "save"]
