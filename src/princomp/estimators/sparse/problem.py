"""What a formulation of sparse PCA is given, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, statistics
from princomp.estimators.standardise import as_given
from princomp.progress import Tell
from princomp.result import Result, State
from princomp.solvers.scatter import MATRIX_SIDE, Data, Matrix, Passes, Scatter, of_rows


class Listener(Tell):
    """The user's callback and clock, and whether to stop: a search among many fits ends then, not the fit alone."""

    def __init__(self, tell: Tell) -> None:
        super().__init__([tell], tell.deadline)
        self.asked = False

    def __call__(self, state: State) -> bool:
        """Tell the user where a fit stands."""
        stop = super().__call__(state)
        self.asked |= stop
        return stop

    @property
    def stopped(self) -> bool:
        """Whether the callback has asked to stop, or time is up."""
        return self.asked or self.deadline.over


@dataclass(frozen=True)
class SparseProblem:
    """Sparse PCA of centred rows ``X``, or of a scatter matrix ``S`` = X'X alone.

    Both are in units in which squares are safe: ``unit`` times those of the user, whose penalties must follow.
    """

    k: int
    total: float  # tr X'X
    unit: float
    freedom: float  # what X'X is divided by to be a covariance
    parameters: dict[str, Any]  # of the estimator
    rng: np.random.Generator
    drive: Callable[..., Result]  # `run`, with the user's callback, checkpoint and limits
    tell: Listener  # the user's callback, for whoever runs something of their own, or many things
    names: Array | None = None  # of the features, if they have any
    X: Centered | None = None
    S: Array | None = None
    known: Array | None = None  # X'X, if it came with the mean

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.S) if self.X is None and self.S is not None else self.rows.shape[1]

    @property
    def rows(self) -> Centered:
        """The data; a scatter matrix has none."""
        if self.X is None:
            raise RuntimeError("There are no rows, only a scatter matrix.")
        return self.X

    @cached_property
    def scatter(self) -> Scatter:
        """X'X: as it was given; made, once, if it is smaller than X and quickly made; else by X."""
        if self.S is not None:
            return Matrix(self.S)
        n, p = self.rows.shape
        return self.squared if self.known is not None or p <= min(n, MATRIX_SIDE) else self.by_rows

    @cached_property
    def squared(self) -> Matrix:
        """X'X, made by one pass over the data, unless it is known."""
        return Matrix(statistics.scatter(self.rows) if self.known is None else self.known)

    @cached_property
    def by_rows(self) -> Data | Passes:
        """X'X by products with X, which is copied if there is room and it may be."""
        return of_rows(self.rows)

    def measure(self, V: Array) -> Array:
        """Return X'X V by a pass over the data as they are stored, or with the matrix given: for certificates."""
        return self.S @ V if self.S is not None else statistics.gram_apply(self.rows, V)

    def images(self, V: Array) -> Array:
        """Return X'X V, with X'X if that is there already."""
        known = self.__dict__.get("squared")
        return self.measure(V) if known is None else known.apply(V)

    @property
    def unit_squared(self) -> float:
        """What squares in the units of the user are multiplied by; infinite for the smallest."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.float64(self.unit) ** 2)

    def squares_as_given(self, numbers: Any) -> Any:
        """Return squares, or a variance, in the units of the user; infinite where these are too small for it."""
        return as_given(numbers, self.unit)

    def weights(self, name: str, alpha: Any, least: float = 0) -> Array:
        """Return a weight for each component: one for all, or one each; ``name`` is the parameter's."""
        weights = np.asarray(alpha)
        fits = weights.dtype.kind in "fiu" and weights.shape in ((), (self.k,))
        if not fits or not np.isfinite(weights).all() or (weights < least).any():
            raise ValueError(
                f"{name} must be a finite number of at least {least}, or a list of {self.k} of them; got {alpha!r}."
            )
        return np.broadcast_to(weights, (self.k,)).astype(np.float64)


@dataclass(frozen=True)
class SparseFound:
    """What a formulation found, in the units of the user but for the loadings' lengths."""

    loadings: Array  # (p, k), of any length
    value: dict[str, Array]  # the raw factors, by name
    objective: float
    run: Result  # with status, history and certificate
    alpha: Any = None  # penalties in force
