"""Probabilistic PCA of columns divided by their standard deviations, with likelihoods of the columns as they are."""

from dataclasses import replace

import numpy as np

from princomp._typing import Array
from princomp.data import statistics
from princomp.data.wrapped import scaled
from princomp.estimators.covariance import Covariance
from princomp.estimators.probabilistic_fit import (
    Asked,
    Found,
    Problem,
    check_unchanged,
    fit,
    fit_covariance,
    observed,
    of_data,
)
from princomp.estimators.standardise import check_scale, safe_unit


def fit_scaled(problem: Problem, method: str) -> tuple[Found, Array]:
    """Return the model of the divided rows, but for its mean and likelihood, which are those of X; and the scale (p,).

    The scale is the standard deviation (divisor n) of the observed cells of a column, 1 if they are all equal.
    """
    data = observed(problem.rows, problem.weight, problem.names)
    moments, unit = data.moments, np.full(problem.rows.shape[1], data.unit)
    if not moments.squares.all():  # of constant columns, and of those whose squares vanish: each in units of its own
        unit = safe_unit(statistics.column_faults(problem.rows)[2])
        moments = statistics.observed_moments(problem.rows, problem.weight, unit)
    counts, mean = moments.counts, moments.mean
    deviation = np.sqrt(np.maximum(moments.squares, 0.0) / counts) / unit
    # What is left of a constant column is rounding of its mean.
    scale = np.where(deviation > 8 * np.finfo(np.float64).eps * np.abs(mean), deviation, 1.0)
    check_scale(scale, problem.names)
    shift = np.zeros_like(mean) if problem.rows.sparse else mean
    found = fit(replace(problem, rows=scaled(problem.rows, shift, scale)), method)
    check_unchanged(data, problem.names)
    return _of_data(found, shift, scale, float(counts @ np.log(scale))), scale


def fit_scaled_covariance(covariance: Covariance, asked: Asked, tol: float) -> tuple[Found, Array]:
    """Return the same for a covariance matrix: the model of the correlations, and the scale."""
    correlations, scale = covariance.scaled()
    found = fit_covariance(correlations, asked, tol)
    logarithms = float((covariance.n_samples or 1) * np.log(scale).sum())
    return _of_data(found, np.zeros_like(scale), scale, logarithms), scale


def _of_data(found: Found, shift: Array, scale: Array, logarithms: float) -> Found:
    """Return the model with the mean and the density of X, not of the divided X."""
    result, mean = of_data(found.result, -logarithms), shift + found.mean * scale
    result = replace(result, value={**result.value, "mean": mean})
    likelihood = None if found.log_likelihood is None else found.log_likelihood - logarithms
    return found._replace(mean=mean, log_likelihood=likelihood, result=result)
