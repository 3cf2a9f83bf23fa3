"""Robust PCA of rows: the answer is what its regular rows say, and these would be chosen again.

ROBPCA (Hubert, Rousseeuw & Vanden Branden, Technometrics 2005) has no objective of its own. What its answer, a mean, V
(p, k) and variances, must fulfil, given which rows it rests on, is measured here:

- V spans the leading eigenvectors of the covariance of the rows that span the plane;
- in it, the scores of the regular rows are uncorrelated, about the mean, with variances in proportion to those given;
- the h rows of least determinant are the h nearest to their own mean, in the metric of their own covariance: a C-step
  exchanges none of them. That is a local minimum; another subset may have a smaller determinant.

For spherical PCA both parts, the spatial median and the components of unit rows, are global (`spherical_certificate`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.principal import spectral
from princomp.result import Certificate

TIES = 1e-9  # of a distance: rows that lie as far out as the last of the h, any of which may be among them
FLAT = 1e-12  # of the largest variance of a direction: less may be rounding
REGULAR = "the rows that it calls regular give these components, and would be chosen again"


@dataclass(frozen=True)
class RowsResidual:
    """How far an answer of ROBPCA is from what its own rows say."""

    plane: float  # the part of SV outside the span of V, relative, S being the covariance of the spanning rows
    dominant: bool | None  # whether nothing larger was left out of it
    axes: float  # correlations of the scores of regular rows, and their variances against those given
    mean: float  # off the mean of regular rows, in the plane, and of spanning rows, off it; in standard deviations
    exchanged: float  # the share of the h rows that a C-step exchanges

    @property
    def largest(self) -> float:
        """The largest of them."""
        return max(self.plane, self.axes, self.mean, self.exchanged)

    def details(self) -> Mapping[str, Any]:
        """Return them by name."""
        names = ("plane", "axes", "mean", "exchanged")
        return {name: getattr(self, name) for name in names} | {"meaning": REGULAR}


def rows_residual(
    X: Array,
    V: Array,
    variances: Array,
    mean: Array,
    *,
    spanning: Array,
    regular: Array,
    subset: Array,
    all_columns: bool = False,
    tol: float,
) -> RowsResidual:
    """Measure an answer of ROBPCA for X (n, p), standardised; which rows it rests on are three masks (n,) of bool.

    The determinant is that of scores, or of ``all_columns``.
    """
    some = X[spanning]
    middle = some.mean(axis=0)
    some = some - middle
    freedom = max(len(some) - 1, 1)
    scores = some @ V
    values, Q = np.linalg.eigh(scores.T @ scores / freedom)
    leading = float(values[-1]) if len(values) else 0.0
    if leading <= 0:  # all of them are one point
        away = float(np.abs(mean - middle).max(initial=0.0))
        return RowsResidual(0.0, None, float(variances.max(initial=0.0) > 0), away, 0.0)
    order = np.argsort(values)[::-1]
    plane = spectral(lambda W: some.T @ (some @ W) / freedom, V @ Q[:, order], np.maximum(values[order], 0.0), tol)
    off = mean - middle
    apart = float(np.linalg.norm(off - V @ (V.T @ off)))
    inside = (X - mean) @ V
    axes, centre = _axes(inside[regular], variances)
    exchanged = _exchanged(X if all_columns else inside, subset) if subset.any() else 0.0
    return RowsResidual(plane.residual, plane.dominant, axes, max(centre, apart / np.sqrt(leading)), exchanged)


def _axes(scores: Array, variances: Array) -> tuple[float, float]:
    """Return correlations of scores, and variances that are not in proportion; and their mean, in deviations."""
    largest = float(variances.max(initial=0.0))
    if largest <= 0 or len(scores) < 2:
        return 0.0, 0.0
    known = np.sqrt(np.maximum(variances, FLAT * largest))
    middle = scores.mean(axis=0)
    centred = (scores - middle) / known
    gram = centred.T @ centred
    diagonal = np.diag(gram)
    factor = float(diagonal[variances == largest][0])
    gram = gram / factor
    wanted = np.where(variances > FLAT * largest, 1.0, 0.0)
    wrong = np.abs(gram - np.diag(wanted))
    rounding = variances <= FLAT * largest  # held to no more than that they are small
    wrong[rounding] = wrong[:, rounding] = 0.0
    return float(wrong.max(initial=0.0)), float(np.abs(middle / known).max(initial=0.0))


def _exchanged(scores: Array, subset: Array) -> float:
    """Return the share of a subset's rows that are not among the nearest to its mean, as many as it has."""
    h = int(subset.sum())
    apart = scores - scores[subset].mean(axis=0)
    # In units of the subset, or, where that has no extent beyond rounding, of the row farthest out, unless that is
    # rounding, too: of rows on a line, all of whose other coordinates are, these say nothing.
    spread, half = np.sqrt(np.mean(apart[subset] ** 2, axis=0)), np.median(np.abs(apart), axis=0)
    extends = spread > np.maximum(np.sqrt(FLAT) * half, FLAT * spread.max(initial=0.0))
    whole = np.abs(apart).max(axis=0)
    apart = apart / np.where(extends, spread, np.where(whole > FLAT * spread.max(), whole, np.inf))
    values, E = np.linalg.eigh(apart[subset].T @ apart[subset] / h)
    lengths = (((apart @ E) ** 2) / np.maximum(values, FLAT)).sum(axis=1)
    last = np.partition(lengths, h - 1)[h - 1]
    return float((lengths[subset] > last * (1 + TIES)).sum() / h)


def spherical_certificate(components: Certificate, slope: float) -> Certificate:
    """Return the certificate of spherical PCA: that of components of unit rows, and the slope at the spatial median.

    The mean distance from a point is convex: where it has no slope it is least.
    """
    residual = max(components.residual, slope)
    about = {"about": "the rows brought to one distance from their spatial median"}
    near = {"near": "variances are those of the rows themselves, by the MAD of their scores"}
    return replace(
        components, residual=residual, details={**components.details, "slope at the median": slope, **about, **near}
    )
