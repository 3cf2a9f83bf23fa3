"""From points in feature space back to rows: which way is taken, what it needs of a fit, and how blocks go it.

The point that scores z stand for is q = F'(mean + C z) whatever the fit: with F(x) = k(x, x_i) over training rows or
landmarks, the mean of the training rows and the components are sums of the phi(x_i), with ``mean`` and the columns of C
as weights; with Fourier features they are vectors of features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.estimators.kernel_fit import as_given
from princomp.kernels import Gaussian, Kernel, Linear
from princomp.kernels.base import dense, moved
from princomp.solvers.feature_maps import Columns, Fourier
from princomp.solvers.preimage import Examples, Radial, Waves, preimages
from princomp.solvers.preimage_ridge import Ridge, fit_ridge

PREIMAGES = ("fixed-point", "ridge")
BEGINNINGS = 1000  # rows of the basis, evenly picked, from which a fixed point may begin
# Rows, evenly picked, that a regression learns from: 256 columns take 0.4 s of 1000, 2 s of 2000, 16 s of 4000.
RIDGE_ROWS = 2000


def resolve_preimage(asked: str | None, kernel: Kernel | None) -> str:
    """Return the way back that is meant: "closed-form", "fixed-point" or "ridge"."""
    if asked is not None:
        return asked
    if isinstance(kernel, Linear):
        return "closed-form"
    return "fixed-point" if isinstance(kernel, Gaussian) else "ridge"


def check_preimage(asked: Any, kernel: Any) -> None:
    """Refuse a way back that does not go with the kernel, an object or what the user calls it."""
    if asked not in (*PREIMAGES, None):
        raise ValueError(f"preimage must be one of {', '.join(PREIMAGES)}, or None; got {asked!r}.")
    named = isinstance(kernel, str) and kernel == "rbf"
    if asked == "fixed-point" and not (named or isinstance(kernel, Gaussian)):
        raise ValueError('preimage="fixed-point" is for kernel="rbf". Use "ridge" or None.')


def kept_examples(rows: Rows, approximation: str, width: int, way: str, *, asked: bool) -> Array | None:
    """Return training rows that a way back will need, evenly picked; None where the basis of the fit will do.

    An exact fit keeps all rows anyway, and landmarks are rows; frequencies are none.
    """
    if approximation == "exact" or (approximation != "fourier" and not asked):
        return None
    n = rows.shape[0]
    most = min(most_examples(width, way, asked=asked), n)
    return statistics.take(Centered(rows), np.linspace(0, n - 1, most).astype(int))


def most_examples(width: int, way: str, *, asked: bool) -> int:
    """Return how many rows are kept: as many as features, or as a regression can use if it is asked for."""
    return RIDGE_ROWS if asked and way == "ridge" else width


def feature_map(
    approximation: str, kernel: Kernel | None, basis: Array | None, about: Array | None
) -> Callable[[Any], Array]:
    """Return the feature map of a fit."""
    if basis is None or kernel is None:
        return as_given
    if approximation == "fourier":
        return Fourier(basis.T, about)
    return Columns.of(kernel.on(basis), basis, about)


@dataclass(frozen=True)
class Model:
    """What a fit has found, as `princomp.estimators.kernel_fit.Found` says."""

    features: Callable[[Any], Array]  # F
    coefficients: Array  # (w, k), C
    offset: Array  # (k,)
    mean: Array  # (w,)
    about: Array | None  # (p,)
    rows: Array | None  # (e, p), training rows that are known

    def scores(self, values: Array) -> Array:
        """Return scores from features."""
        return values @ self.coefficients - self.offset

    def picked(self, most: int) -> Array:
        """Return some of the rows that are known, evenly picked; the origin if none are."""
        if self.rows is None:
            p = self.features.frequencies.shape[0] if isinstance(self.features, Fourier) else 0
            return (np.zeros(p) if self.about is None else self.about)[None]
        n = len(self.rows)
        return self.rows[np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))]


@dataclass(frozen=True)
class Straight:
    """The way back of the linear kernel: phi(z) = z, less what rows are taken about."""

    back: Array  # (k, p)
    mean: Array  # (p,)

    def __call__(self, z: Array, start: Array | None) -> tuple[Array, Array]:
        """Return rows for scores z (b, k), and their residuals, (b, p) and (b, 1)."""
        return z @ self.back + self.mean, np.zeros((len(z), 1))


@dataclass(frozen=True)
class Regression:
    """The way back that a regression has learnt."""

    ridge: Ridge

    def __call__(self, z: Array, start: Array | None) -> tuple[Array, Array]:
        """Return rows for scores z (b, k), and their residuals, (b, p) and (b, 1)."""
        return self.ridge(z), np.zeros((len(z), 1))


@dataclass(frozen=True)
class FixedPoint:
    """The way back of the Gaussian kernel, from ``start`` or from the best examples."""

    model: Model
    gamma: float
    examples: Examples

    def __call__(self, z: Array, start: Array | None) -> tuple[Array, Array]:
        """Return rows for scores z (b, k), and their residuals, (b, p) and (b, 1)."""
        features, about = self.model.features, self.model.about
        weights = z @ self.model.coefficients.T + self.model.mean
        f: Radial | Waves
        if isinstance(features, Fourier):
            f = Waves(features.frequencies, weights)
        elif isinstance(features, Columns) and isinstance(features.kernel, Gaussian):
            f = Radial(features.kernel, features.points, weights)
        else:
            raise TypeError(f"There is no fixed point for {features!r}.")
        start = None if start is None else dense(moved(start, about))
        with np.errstate(over="ignore", invalid="ignore"):
            found, residuals = preimages(f, self.gamma, start, self.examples.best(z))
        return found if about is None else found + about, residuals[:, None]


Way = Straight | Regression | FixedPoint


def way_back(way: str, model: Model, kernel: Kernel | None, *, ridge_rows: int | None = None) -> Way:
    """Return the way back, "closed-form", "fixed-point" or "ridge", of a fit."""
    if way == "closed-form" and isinstance(model.features, Columns):
        points = dense(model.features.points[0])
        mean = model.mean @ points
        return Straight(model.coefficients.T @ points, mean if model.about is None else mean + model.about)
    if way == "fixed-point" and isinstance(kernel, Gaussian):
        rows = model.picked(BEGINNINGS)
        values = model.features(rows)
        known = Examples(dense(moved(rows, model.about)), values @ model.coefficients, values @ model.mean)
        return FixedPoint(model, kernel.gamma, known)
    if model.rows is None:
        raise ValueError(
            'This fit keeps no rows for preimage="ridge" to learn from. Fit it again, with preimage="ridge".'
        )
    rows = model.picked(ridge_rows or RIDGE_ROWS)
    return Regression(fit_ridge(model.scores(model.features(rows)), rows))


# What is sent to the blocks.


def numbers(block: Any) -> Array:
    """Return a block of scores."""
    return dense(block).astype(np.float64)


def restored(z: Array, rows: slice, way: Way) -> tuple[Array, Array]:
    """Return the rows that scores stand for, and the residuals of these; NaN for scores that are no numbers."""
    return _known(z, *way(z, None))


def itself(block: Any) -> Any:
    """Return a block of rows, as it is."""
    return block


def denoised(block: Any, rows: slice, features: Callable[[Any], Array], model: Model, way: Way) -> tuple[Array, Array]:
    """Return the rows that the scores of rows stand for, begun at these, and the residuals."""
    z = model.scores(features(block))
    return _known(z, *way(z, block.astype(np.float64, copy=False)))


def _known(z: Array, found: Array, residuals: Array) -> tuple[Array, Array]:
    found[~np.isfinite(z).all(axis=1)] = np.nan
    return found, residuals
