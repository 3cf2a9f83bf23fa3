"""The right PCA for your data: the PCA family in one small library, with certified answers."""

import lazy_loader as lazy

from princomp._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)

del lazy
