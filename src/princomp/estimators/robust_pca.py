"""Robust PCA: components that bad cells, bad rows and missing cells do not bend, and which cells and rows are bad."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from princomp._kinds import NONNEGATIVE, POSITIVE, SHARE, VARIANCE, Count, Kind, Number, Numbers
from princomp._typing import Array
from princomp.data import Centered, Rows
from princomp.estimators.base import Projection
from princomp.estimators.checks import check_choice, check_count, check_values, count_components
from princomp.estimators.description import Cells, Description, Scores
from princomp.estimators.robust import cells, online
from princomp.estimators.robust.distances import distances, orthogonal_limit, robust_distances, score_limit
from princomp.estimators.robust.problem import RobustFound, RobustProblem, open_problem
from princomp.estimators.robust.scores import robust_scores
from princomp.estimators.robust_description import (
    describe_robust,
    describe_robust_cells,
    describe_robust_fit,
    describe_robust_scores,
)
from princomp.estimators.standardise import SAFE_TOTAL, as_given, safe_unit
from princomp.progress import Tell
from princomp.result import State
from princomp.solvers.robust.bounded import Spreads
from princomp.solvers.robust.deviations import LIMIT

# Each method, and the file in `princomp.estimators.robust` that has its ``solve``.
METHODS = {
    "pcp": "pcp",
    "cellwise": "cellwise",
    "outlier-pursuit": "outlier_pursuit",
    "robpca": "robpca",
    "spherical": "spherical",
    "online": "online",
}
BY_CELLS = ("pcp", "cellwise", "online")  # methods for bad cells and missing ones, which must not bend scores
SAFE_SIZE = SAFE_TOTAL[0] ** 0.5, SAFE_TOTAL[1] ** 0.25  # of deviations, whose squares are summed
# Times tol, of the size of cells: what components leave of good cells where there is no noise, since steps end there.
UNSURE = 10.0
# Parameters that some methods alone have, and their defaults.
OWN = {
    "alpha": (("pcp", "outlier-pursuit"), None),
    "solver": (("pcp",), "auto"),
    "coverage": (("robpca",), 0.75),
    "scale": (("cellwise", "robpca"), False),
    "batch_size": (("online",), 100),
}


class RobustPCA(Projection):
    r"""Principal components that bad cells, bad rows and missing cells do not bend, and which cells and rows are bad.

    ``method`` says what is thought to be wrong with the data:

    ``"pcp"``
        some cells, grossly, in data that are of low rank otherwise, without noise: a video of a still camera.
        Principal component pursuit (Candès, Li, Ma & Wright, J. ACM 2011) finds

        .. math:: \min \|L\|_* + \alpha \|S\|_1 \quad \text{such that} \quad X = L + S.

    ``"cellwise"``
        some cells, some rows, and cells that are missing, in noisy data: cellPCA (Centofanti, Hubert & Rousseeuw 2024),
        a bounded loss of cells within a bounded loss of rows.
    ``"outlier-pursuit"``
        whole rows, in data that are of low rank otherwise (Xu, Caramanis & Sanghavi, IEEE Trans. Inf. Theory 2012):

        .. math:: \min \|L\|_* + \alpha \sum_i \|S_i\| \quad \text{such that} \quad X = L + S.

    ``"robpca"``
        whole rows, up to a quarter of them, in noisy data (Hubert, Rousseeuw & Vanden Branden, Technometrics 2005).
    ``"spherical"``
        whole rows, or heavy tails, on any storage (Locantore et al., Test 1999): PCA of directions from the centre.
    ``"online"``
        some cells, in rows that come as a stream, on any storage: see `partial_fit`.

    Parameters
    ----------
    n_components : int, optional
        Number of components. By default, for ``"pcp"`` and ``"outlier-pursuit"`` the rank of ``low_rank_``; for
        ``"online"`` 10, or as many as there are features; for others the fewest that hold 80 % of the variance, 10 at
        the most, none of them below a thousandth of the first.
    method : {"pcp", "cellwise", "outlier-pursuit", "robpca", "spherical", "online"}, default "pcp"
        See above.
    alpha : float, optional
        What a unit of the sparse part costs, for ``"pcp"`` (by default 1 / sqrt(max(n, p))) and
        ``"outlier-pursuit"`` (by default 1 / sqrt(n / 10), which bears a tenth of the rows being bad, among rows of a
        rank well below 10). The larger, the fewer cells or rows are bad.
    solver : {"auto", "convex", "alternating"}, default "auto"
        For ``"pcp"``. "auto" is "convex", which finds the minimum. "alternating" takes fewer steps where the rank is
        small, known, and given as ``n_components``; its answer is verified, and where it is not the minimum, "convex"
        takes over, with a warning.
    coverage : float, default 0.75
        For ``"robpca"``: the share of rows, from 0.5 to 1, that are thought to be good.
    scale : bool, default False
        Whether columns are divided by robust scales first, for ``"cellwise"`` and ``"robpca"``.
    scores : {"robust", "projection"}, optional
        How `transform` finds scores: "robust" by least absolute deviations, then least squares on the cells that are
        not bad, of "cellwise" and "online" by their bounded loss, which no bad cell bends and which allows missing
        cells; "projection" by a product. By default "robust" for methods that deal with cells ("pcp", "cellwise",
        "online").
    batch_size : int, default 100
        For ``"online"``: rows that are looked at together.
    tol : float, default 1e-6
        Bound on the residual of the certificate.
    max_iter : int, default 1000
        Bound on the number of iterations.
    random_state : int or RandomState, optional
        Seed of directions and starts.
    verbose, callback, checkpoint
        As in `PCA`.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so.

    Attributes
    ----------
    components_ : (k, p) array
        Directions of largest variance, unit rows.
    mean_, scale_ : (p,) array
        The centre, and what columns are divided by; None unless ``scale``.
    explained_variance_, explained_variance_ratio_ : (k,) array
        Robust variances along the components, and their shares of the variance in all directions.
    rank_ : int
        Of ``low_rank_``; for other methods, of the data that were found good, k at the most.
    outliers_ : (n,) array of bool
        Rows that are bad: beyond either limit; for ``"outlier-pursuit"`` those that are not zero in ``sparse_``, for
        ``"pcp"`` those with more than half of their cells bad, for ``"cellwise"`` those of small weight.
    score_distances_, orthogonal_distances_ : (n,) array
        How far rows lie from the centre within the span of the components, in standard deviations, and how far from
        that span. See `score_distance` and `orthogonal_distance`.
    score_limit_, orthogonal_limit_ : float
        What 97.5 % of good rows are expected to be within.
    low_rank_, sparse_ : (n, p) array
        L and S, of ``"pcp"`` and ``"outlier-pursuit"``. Missing cells are filled in L, and 0 in S.
    alpha_ : float
        The cost in force, of these.
    outlying_cells_ : (n, p) array of bool
        Cells that are bad, of ``"pcp"`` and ``"cellwise"``. Of ``"pcp"`` they are those of S that stand out of the
        noise: beyond 2.58 standard deviations of X - L, by the median of its magnitudes, of whole numbers at least what
        rounding leaves. Without noise, or if L is 0: that are not 0.
    cell_weights_, row_weights_ : (n, p) and (n,) array
        What cells and rows count, from 0 to 1, of ``"cellwise"``.
    cell_scale_ : (p,) array or None
        Scales of what is left of good cells, of ``"cellwise"`` and ``"online"``.
    n_components_, n_features_in_, n_samples_, n_iter_ : int
        Counts.
    result_ : Result
        ``value``, ``objective``, ``certificate``, ``status``, ``history``.
    certificate_ : Certificate
        How good the answer is, measured on the data after the fit: for ``"pcp"`` and ``"outlier-pursuit"`` the gap
        between primal and dual objective, so that no better answer exists; for others how far it is from one that no
        small step improves.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA, RobustPCA
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 50))
    >>> X = truth + np.where(rng.random((100, 50)) < 0.05, 20.0, 0.0)  # one cell in twenty is wrong
    >>> model = RobustPCA().fit(X)
    >>> model.rank_
    2
    >>> bool(np.abs(model.low_rank_ - truth).max() < 1e-4)
    True
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "n_samples_": Count(1, or_none=True),
        "rank_": Count(),
        "outliers_": Numbers("n", dtypes="b"),
        "score_distances_": Numbers("n", VARIANCE),
        "orthogonal_distances_": Numbers("n", VARIANCE),
        "score_limit_": Number(NONNEGATIVE),
        "orthogonal_limit_": Number(VARIANCE),
        "cell_scale_": Numbers("p", NONNEGATIVE, or_none=True, rounds="_noise"),
        "_noise": Numbers("p", NONNEGATIVE, or_none=True),
        "_scale": Numbers("p", POSITIVE, or_none=True),
        "_deviation": Numbers("k", NONNEGATIVE),
        "_rest": Number(NONNEGATIVE, optional=True),  # scale of what L leaves of good cells; 0 if it is below tol
        "_row_limit": Number(NONNEGATIVE, optional=True),  # of the lengths of rows whose weight is not small
        "alpha_": Number(VARIANCE, optional=True),
        "row_weights_": Numbers("n", SHARE, optional=True),
        "low_rank_": Numbers("n p", optional=True),
        "sparse_": Numbers("n p", optional=True),
        "outlying_cells_": Numbers("n p", dtypes="b", optional=True),
        "cell_weights_": Numbers("n p", SHARE, optional=True),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        method: str = "pcp",
        alpha: float | None = None,
        solver: str = "auto",
        coverage: float = 0.75,
        scale: bool = False,
        scores: str | None = None,
        batch_size: int = 100,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.alpha = alpha
        self.solver = solver
        self.coverage = coverage
        self.scale = scale
        self.scores = scores
        self.batch_size = batch_size
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    # Fitting

    @property
    def _missing_allowed(self) -> bool:  # type: ignore[override]
        return self.method in BY_CELLS

    def _fit(self, X: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        problem = self._problem(rows, min(*rows.shape), tell)
        found = import_module(f"princomp.estimators.robust.{METHODS[self.method]}").solve(problem)
        self._keep(found, problem)

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Go on with further rows, with method="online": ``partial_fit(X, y=None)`` returns self.

        Rows are taken in mini-batches of ``batch_size``, in the order in which they come, each of them once. The start
        is made of the first rows (300, or 20 for each component): as long as there are no more, they are all kept, and
        it is made anew. Later calls, or one after `fit`, go on from what is there, older rows fading: a plane that
        turns slowly is followed, one that is another from one row to the next is not, since all its rows look bad:
        `fit` begins anew. Distances,
        ``outliers_`` and the certificate are those of the rows of the last call. `princomp.save` keeps what is needed
        to go on.

        Parameters
        ----------
        X : as in `fit`
            Some rows; one is enough.
        y : None
            Ignored.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from princomp import RobustPCA
        >>> rng = np.random.default_rng(0)
        >>> V = np.linalg.qr(rng.normal(size=(20, 2)))[0]
        >>> model = RobustPCA(2, method="online", random_state=0)
        >>> for _ in range(10):
        ...     X = 5 * rng.normal(size=(100, 2)) @ V.T + 0.1 * rng.normal(size=(100, 20))
        ...     X[rng.random(X.shape) < 0.1] = 20.0  # one cell in ten is wrong
        ...     model = model.partial_fit(X)
        >>> model.n_samples_
        1000
        >>> bool(np.linalg.norm(V - model.components_.T @ (model.components_ @ V), 2) < 0.01)
        True
        """
        if self.method != "online":
            raise AttributeError(f'partial_fit goes with method="online", not with {self.method!r}.')
        return self._partial_fit

    def _partial_fit(self, X: Any, y: Any = None) -> Self:
        return self._all_or_nothing(self._go_on, X)

    def _go_on(self, X: Any, tell: Tell) -> None:
        if self.checkpoint is not None:
            raise ValueError("checkpoint is for fit: after each call of partial_fit the model itself can be saved.")
        before = getattr(self, "result_", None)
        if before is not None and "held" not in before.value:
            raise ValueError('The model was fitted by another method than "online". Call fit first.')
        rows = self._open(X, reset=before is None)
        problem = self._problem(rows, rows.width, tell)
        self._keep(online.go_on(problem, before), problem)

    def _problem(self, rows: Rows, most: int, tell: Tell) -> RobustProblem:
        self._check_parameters()
        count_components(self.n_components, most)
        return open_problem(
            rows,
            self._missing_allowed,
            asked=self.n_components,
            parameters=self.get_params(),
            rng=self._generator(),
            drive=self._drive(tell, rows),
            tell=tell,
            names=self._names,
        )

    def _check_parameters(self) -> None:
        """Complain about parameters that mean nothing, by themselves or with this method."""
        self._check_limits()
        check_choice("method", self.method, tuple(METHODS))
        for name, (methods, default) in OWN.items():
            if self.method not in methods and getattr(self, name) != default:
                those = " and ".join(f'"{method}"' for method in methods)
                raise ValueError(f'{name} is for method {those} only, not for "{self.method}".')
        check_choice("solver", self.solver, ("auto", "convex", "alternating"))
        if self.solver == "alternating" and self.n_components is None:
            raise ValueError('solver="alternating" needs the rank: give n_components.')
        if self.scores is not None:
            check_choice("scores", self.scores, ("robust", "projection"))
        check_count("batch_size", self.batch_size)
        if not (isinstance(self.coverage, Real) and 0.5 <= self.coverage <= 1):
            raise ValueError(f"coverage must be a share from 0.5 to 1, got {self.coverage!r}.")
        if self.alpha is not None and not (isinstance(self.alpha, Real) and 0 < self.alpha < np.inf):
            raise ValueError(f"alpha must be a finite number above 0, or None; got {self.alpha!r}.")

    def _keep(self, found: RobustFound, problem: RobustProblem) -> None:
        """Derive all attributes, in the units of the user: the one place."""
        rows, unit, dtype = problem.rows, problem.unit, problem.rows.dtype
        scale = None if found.scale is None else found.scale / unit
        inner = unit if scale is None else 1.0  # units of standardised columns
        self._forget()
        with np.errstate(over="ignore"):
            variances = as_given(found.variances, inner)
        ratio = found.variances / found.total if found.total > 0 else np.zeros(len(found.variances))
        self._keep_directions(found.V, variances, ratio, found.mean / unit, scale, dtype)
        self._scale = scale
        self._deviation = np.sqrt(found.variances) / inner
        self._noise = None if found.noise is None else found.noise / inner
        self.cell_scale_ = None if self._noise is None else self._noise.astype(dtype)
        self.n_samples_, self.rank_ = rows.shape[0] if found.seen is None else found.seen, int(found.rank)
        for name, value in found.in_units.items():
            setattr(self, name, (value / unit).astype(dtype))
        for name, scalar in found.own.items():
            setattr(self, name, float(scalar / inner))
        for name, value in found.more.items():
            setattr(self, name, value)
        self._keep_result(found.result)
        self._keep_distances(rows, found, unit)

    def _forget(self) -> None:
        """Drop what a fit by another method left."""
        for name, kind in type(self)._fitted.items():
            if kind.optional:
                self.__dict__.pop(name, None)

    def _keep_distances(self, rows: Rows, found: RobustFound, unit: float) -> None:
        known = found.distances
        both = self._distances(rows, gather=True) if known is None else known / np.array([1.0, unit])
        self.score_limit_, self.orthogonal_limit_ = score_limit(self.n_components_), orthogonal_limit(both[:, 1])
        within = (both[:, 0] <= self.score_limit_) & (both[:, 1] <= self.orthogonal_limit_)
        self.outliers_ = ~within if found.outliers is None else found.outliers
        self.score_distances_, self.orthogonal_distances_ = both.astype(rows.dtype).T.copy()

    def _describe(self) -> Description:
        return describe_robust(self)

    def _describe_scores(self, X: Any, y: Any, values: Any) -> Scores:
        return describe_robust_scores(self, X, values)

    def _describe_fit_scores(self, X: Any, y: Any) -> Scores:
        return describe_robust_fit(self, X)

    def _describe_cells(self, X: Any) -> Cells | None:
        return describe_robust_cells(self, X)

    # Using the fit

    def transform(self, X: Any) -> Any:
        """Return the scores of X: where its rows lie along the components, however bad some of their cells are.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns; NaN marks missing cells where ``scores`` are robust.

        Returns
        -------
        (n, k) array
            In the kind of X: a Dask array stays lazy.
        """
        if not self._robust_scores():
            return super().transform(X)
        rows = self._open(X, reset=False)
        X, unit, spreads = self._standardised(rows)
        how = {"width": self.n_components_, "dtype": np.float64 if unit != 1 else rows.dtype}
        scores = X.in_dense_tiles().map(robust_scores, self._basis(), spreads, **how)
        return self._finite(rows, scores if unit == 1 else (scores / unit).astype(rows.dtype))

    def _robust_scores(self) -> bool:
        return self.scores == "robust" if self.scores is not None else self.method in BY_CELLS

    def _basis(self) -> Array:
        return self.components_.astype(np.float64).T

    _to_scores = _basis

    def _from_scores(self) -> Array:
        return self.components_.astype(np.float64)

    def _standardised(self, rows: Rows) -> tuple[Centered, float, Spreads | None]:
        """Return rows as the components see them, times a unit in which squares are safe; that unit; and spreads."""
        unit = self._unit()
        factor = np.full(rows.width, unit) if self._scale is None else unit / self._scale
        mean = self._mean if self._mean.any() else None
        return Centered(rows, mean, factor if np.any(factor != 1) else None), unit, self._spreads(unit)

    def _unit(self) -> float:
        """Return what (scaled) columns are multiplied by so that squares of deviations are safe."""
        size = max(float(self._deviation.max(initial=0.0)), float(self._noise.max()) if self._noise is not None else 0)
        safe = size == 0 or SAFE_SIZE[0] < size < SAFE_SIZE[1]
        return 1.0 if safe else float(safe_unit(size))

    def _spreads(self, unit: float) -> Spreads | None:
        if self._noise is None:
            return None
        noise = self._noise * unit
        return Spreads(noise, np.sqrt((self._basis() ** 2) @ (self._deviation * unit) ** 2 + noise**2))

    def score_distance(self, X: Any) -> Any:
        """Return how far rows lie from the centre within the span of the components, in standard deviations.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n,) array
            In the kind of X. Beyond ``score_limit_`` a row is extreme among those that follow the components.
        """
        return self._distances(self._open(X, reset=False))[:, 0]

    def orthogonal_distance(self, X: Any) -> Any:
        """Return how far rows lie from the span of the components; of rows with missing cells, from what is there.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n,) array
            In the kind of X, in the units of the (scaled) data. Beyond ``orthogonal_limit_`` a row does not follow the
            components.
        """
        return self._distances(self._open(X, reset=False))[:, 1]

    def _distances(self, rows: Rows, gather: bool = False) -> Any:
        X, unit, spreads = self._standardised(rows)
        variances, eps = (self._deviation * unit) ** 2, float(np.finfo(rows.dtype).eps)
        offset = 0.0 if X.mean is None else float(np.linalg.norm(X.mean * (1.0 if X.factor is None else X.factor)))
        state: tuple[Any, ...] = (self._basis(), variances, offset, eps)
        fn: Callable[..., Array] = distances
        if self._robust_scores():
            X, fn, state = X.in_dense_tiles(), robust_distances, (state[0], spreads, *state[1:])
        with np.errstate(over="ignore", invalid="ignore"):
            both = (X.gather if gather else X.map)(fn, *state, width=2, dtype=np.float64)
            return self._finite(rows, both if unit == 1 else both / np.array([1.0, unit]))

    def cell_residuals(self, X: Any) -> Any:
        """Return what the components leave of each cell, in standard deviations of what they leave of good cells.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n, p) array
            In the kind of X; NaN where a cell is missing. Where a method knows of no noise (``"pcp"``; columns whose
            ``cell_scale_`` is 0), in standard deviations of the column along the components.
        """
        rows = self._open_cells(X)
        centred, unit, spreads = self._standardised(rows)
        state = (self._basis(), spreads, self._cell_unit() * unit)
        found = centred.in_dense_tiles().map(cells.residuals, *state, width=rows.width, dtype=rows.dtype)
        if isinstance(found, np.ndarray) and not np.isfinite(found).all():  # cells that are missing, or infinite
            check_values(rows, self._names, missing=True)
        return found

    def _count_bad_cells(self, rows: Rows) -> Any:
        """Return how many cells of each row are bad, and how many there are, (n, 2)."""
        X, unit, spreads = self._standardised(rows)
        least = max(self._unsure(), LIMIT * self._left())
        state = (self._basis(), spreads, self._cell_unit() * unit, least * unit)
        return X.in_dense_tiles().map(cells.bad_cells, *state, width=2, dtype=np.int64)

    def _find_outliers(self, rows: Rows, both: Array, bad: Array | None) -> Array:
        """Return which rows are bad (n,), as ``outliers_`` says of those of the fit.

        Their distances (n, 2) are given, and, where cells are judged, how many are bad and how many there are (n, 2).
        """
        if self.method == "pcp" and bad is not None:
            return np.asarray(bad[:, 0] > cells.MOSTLY * bad[:, 1])
        if hasattr(self, "_row_limit") and bad is not None:
            X, unit, spreads = self._standardised(rows)
            lengths = X.in_dense_tiles().map(cells.row_lengths, self._basis(), spreads, width=1, dtype=np.float64)
            return np.asarray(lengths)[:, 0] > self._row_limit * unit
        return np.asarray((both[:, 0] > self.score_limit_) | (both[:, 1] > self.orthogonal_limit_))

    def impute(self, X: Any) -> Any:
        """Return X with missing cells filled by what the other cells of the row, and the components, say of them.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n, p) array
            In the kind of X. Cells that are there are as they were.
        """
        return self._refilled(X, outlying=False)

    def clean(self, X: Any) -> Any:
        """Return X with missing cells filled, and bad cells replaced, by what the components say of them.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n, p) array
            In the kind of X. Cells that are good are as they were.
        """
        return self._refilled(X, outlying=True)

    def _refilled(self, X: Any, *, outlying: bool) -> Any:
        rows = self._open_cells(X)
        unit = self._unit()
        scale = (np.ones(rows.width) if self._scale is None else self._scale) / unit
        state = (self._basis(), self._spreads(unit), self._mean, scale, self._unsure(), outlying)
        return self._finite(rows, rows.map(cells.refilled, *state, width=rows.width, dtype=rows.dtype))

    def _open_cells(self, X: Any) -> Rows:
        rows = self._open(X, reset=False)
        if not self._robust_scores():
            raise ValueError(
                f'Cells are not judged by method="{self.method}", which judges rows. Set scores="robust", or take '
                'method="cellwise".'
            )
        return rows

    def _unsure(self) -> float:
        """Return what components that are found up to tol leave of cells without noise, of a column in the middle."""
        if self._noise is not None:
            return 0.0
        spread = self._cell_spread() * (1.0 if self._scale is None else self._scale)
        return UNSURE * float(self.certificate_.tol) * float(np.median(np.hypot(self._mean, spread)))

    def _cell_unit(self) -> Array:
        spread = np.maximum(self._cell_spread(), self._left())
        known = spread if self._noise is None else np.where(self._noise > 0, self._noise, spread)
        return np.where(known > 0, known, 1.0)

    def _left(self) -> float:
        """Return the scale of what a pursuit left of good cells, 0 if that is nothing, or not known."""
        return float(getattr(self, "_rest", 0.0))  # a file of an older version has none

    def _cell_spread(self) -> Array:
        """Return the standard deviation along the components of each (scaled) column."""
        unit = self._unit()
        return np.asarray(np.linalg.norm(self._basis() * (self._deviation * unit), axis=1)) / unit
