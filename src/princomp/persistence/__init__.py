"""Model files: a fitted estimator in a zip of JSON and ``.npy`` arrays, without pickle."""

from princomp.persistence.archive import ModelFileError
from princomp.persistence.models import load, save

__all__ = ["ModelFileError", "load", "save"]
