from . import certificates, data, datasets, losses, penalties
from .estimators import PCA

__version__: str
__all__ = ["PCA", "certificates", "data", "datasets", "losses", "penalties"]
