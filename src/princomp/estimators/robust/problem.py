"""What a method of robust PCA is given, and what it gives back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, budget, statistics
from princomp.estimators.checks import check_values, count_components
from princomp.estimators.standardise import SAFE_TOTAL, safe_unit
from princomp.progress import Tell
from princomp.result import Result

# Where n_components is None, the fewest components are kept that hold this share of the variance, up to so many, and
# none below so small a share of the first one: the rule of Hubert, Rousseeuw & Vanden Branden (Technometrics 2005).
SHARE, MOST, LEAST = 0.8, 10, 1e-3


@dataclass(frozen=True)
class RobustProblem:
    """Robust PCA of ``rows``, in units in which squares are safe: ``unit`` times those of the user."""

    rows: Rows
    asked: int | None  # n_components
    parameters: dict[str, Any]  # of the estimator
    rng: np.random.Generator
    drive: Callable[..., Result]  # `run`, with the user's callback, checkpoint and limits
    tell: Tell  # the user's callback, for whoever runs something of their own
    unit: float
    missing: bool  # whether cells are NaN
    names: Array | None = None

    @property
    def tol(self) -> float:
        """What the certificate's residual is asked to be within."""
        return float(self.parameters["tol"])

    @property
    def max_iter(self) -> int:
        """How many iterations there may be."""
        return int(self.parameters["max_iter"])

    @cached_property
    def X(self) -> Array:
        """All rows as one float64 array of the method's own, times ``unit``; missing cells are NaN."""
        n, p = self.rows.shape
        budget.require(COPIES * 8.0 * n * p, f"Robust PCA of {n} rows with {p} columns", IN_BLOCKS)
        return statistics.whole(self.moved(None), IN_BLOCKS)

    def moved(self, mean: Array | None) -> Centered:
        """Return the rows less a mean (in the units of the user), times ``unit``, in blocks wherever they are."""
        factor = None if self.unit == 1.0 else np.full(self.rows.width, self.unit)
        return Centered(self.rows, mean, factor)

    def count(self, variances: Array) -> int:
        """Return how many components are kept, of variances that fall: those asked for, or by the rule above."""
        most = min(*self.rows.shape)
        if self.asked is not None:
            return count_components(self.asked, most)
        values = np.maximum(np.asarray(variances, dtype=np.float64)[: min(most, MOST)], 0.0)
        if not values.any():
            return 1
        held = np.cumsum(values) / max(float(np.maximum(variances, 0.0).sum()), values.sum())
        enough = int(np.searchsorted(held, SHARE - 1e-9)) + 1
        return max(1, min(enough, len(values), int((values >= LEAST * values[0]).sum())))


COPIES = 6  # of X that the methods which need all of it in memory have at a time, about
IN_BLOCKS = 'method="spherical" and method="online" take the rows in blocks, wherever they are.'


@dataclass(frozen=True)
class RobustFound:
    """What a method found, in the units of `RobustProblem.X`."""

    V: Array  # (p, k) orthonormal
    variances: Array  # (k,) along them, falling
    total: float  # variance in all directions, of which each holds its share
    mean: Array  # (p,)
    scale: Array | None  # (p,) what columns were divided by before V was found, or None
    result: Result
    rank: int
    outliers: Array | None = None  # (n,) of bool; None: by distances and their limits
    scores: Array | None = None  # (n, k) of the rows of the fit, where they are not those of `transform`
    distances: Array | None = None  # (n, 2) of these rows, in the units of X; None: those which new rows would have
    noise: Array | None = None  # (p,) scales of residuals, of standardised columns, where cells are judged
    own: Mapping[str, float] = field(default_factory=dict)  # further ones, as attributes of the estimator by name
    seen: int | None = None  # rows, where they are more than those given last
    # Further attributes by name, which `RobustPCA._fitted` declares; arrays in the units of X where ``in_units`` has
    # them, else as they are.
    more: Mapping[str, Any] = field(default_factory=dict)
    in_units: Mapping[str, Array] = field(default_factory=dict)


def open_problem(rows: Rows, missing_allowed: bool, **what: Any) -> RobustProblem:
    """Return the problem that rows pose; ValueError names a column with NaN that may not be, or inf."""
    nan, inf, largest = statistics.column_faults(rows, center=False)
    if inf.any() or (nan.any() and not missing_allowed):
        check_values(rows, what.get("names"), center=False, missing=missing_allowed)
    top = float(largest.max(initial=0.0))
    safe = top == 0 or SAFE_TOTAL[0] ** 0.5 < top < SAFE_TOTAL[1] ** 0.5 / np.sqrt(max(rows.shape))
    return RobustProblem(rows=rows, unit=1.0 if safe else float(safe_unit(top)), missing=bool(nan.any()), **what)
