"""Estimators: thin scikit-learn classes that validate, wrap, solve and store; the loops are in solvers."""

from princomp.estimators.pca import PCA

__all__ = ["PCA"]
