from . import certificates
from . import data
from . import datasets
from . import losses
from . import penalties
from .estimators import PCA

__version__: str
__all__ = ["PCA", "certificates", "data", "datasets", "losses", "penalties"]
