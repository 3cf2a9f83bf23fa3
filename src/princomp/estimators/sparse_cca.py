"""Sparse canonical correlation analysis (Chen, Ma, Xue & Zou, INFORMS J. Optimization 2020)."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from princomp._kinds import CORRELATION, NONNEGATIVE, POSITIVE, Count, Kind, Names, Number, Numbers
from princomp._threads import single_blas_thread
from princomp._typing import Array
from princomp.data import Centered, Rows, as_rows, budget, statistics
from princomp.data.shards import is_shards
from princomp.data.signature import require_unchanged, row_weights
from princomp.estimators.base import Estimator, first_difference
from princomp.estimators.canonical_description import describe_canonical, scores_of_sides
from princomp.estimators.checks import check_values, count_components
from princomp.estimators.description import Description, Scores
from princomp.estimators.standardise import as_given, standardise
from princomp.progress import Tell
from princomp.result import State
from princomp.solvers.canonical import sparse_cca

DEFAULT_SHARE = 0.8  # alpha as a multiple of sqrt((k + log p) / n)


class SparseCCA(Estimator):
    r"""Canonical correlation analysis with few features on each side.

    With the sample covariances :math:`S_x, S_y, S_{xy}` of centred (and scaled) X and Y, it minimises

    .. math:: -\mathrm{tr}(A^\top S_{xy} B) + \alpha_x \sum_i \|A_i\| + \alpha_y \sum_i \|B_i\|,
              \quad A^\top S_x A = B^\top S_y B = I,

    by the alternating manifold proximal gradient method; the norms are those of rows, so that a feature is in all
    canonical vectors or in none.

    Parameters
    ----------
    n_components : int, default 1
        Number of pairs of canonical vectors.
    alpha_x, alpha_y : float, optional
        Weights of the row norms; by default 0.8 sqrt((k + log p) / n), p the number of features of that side. From
        some alpha on, often near 1 if columns are scaled, k features are left, which the constraint needs: larger ones
        have no further effect.
    scale : bool, default True
        Divide columns by their standard deviation.
    tol : float, default 1e-5
        Bound on the manifold proximal step, sqrt(\|D_A / t_x\|^2 + \|D_B / t_y\|^2), t = min(1, 10 / alpha) its size.
    max_iter : int, default 1000
        Bound on iterations.
    verbose, callback, checkpoint
        As in `PCA`.
    random_state : None
        Not used: the fit is deterministic.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so.

    Attributes
    ----------
    x_weights_ : (p, k) array
        A, largest correlation first, in units of the scaled columns of X.
    y_weights_ : (q, k) array
        B, in units of the scaled columns of Y.
    components_ : (k, p) array
        ``x_weights_`` transposed.
    correlations_ : (k,) array
        Correlations of the pairs of scores on the data of the fit: too high for few samples; see `score`.
    x_mean_, y_mean_, x_scale_, y_scale_ : array
        What is subtracted from columns, and what they are divided by.
    alpha_x_, alpha_y_ : float
        The weights used.
    n_components_, n_features_in_, n_samples_, n_iter_ : int
        Counts.
    result_ : Result
        ``value`` ("A", "B"), ``objective``, ``certificate``, ``status``, ``history``.
    certificate_ : Certificate
        That no small step improves the answer.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.estimators.sparse_cca import SparseCCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 20)), rng.normal(size=(100, 30))
    >>> Y[:, 7] += 2 * X[:, 3]
    >>> cca = SparseCCA().fit(X, Y)
    >>> np.flatnonzero(cca.x_weights_).tolist(), np.flatnonzero(cca.y_weights_).tolist()
    ([3], [7])
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "x_weights_": Numbers("p k"),
        "y_weights_": Numbers("q k"),
        "components_": Numbers("k p"),
        "correlations_": Numbers("k", CORRELATION),
        "x_mean_": Numbers("p"),
        "y_mean_": Numbers("q"),
        "x_scale_": Numbers("p", POSITIVE),
        "y_scale_": Numbers("q", POSITIVE),
        "alpha_x_": Number(NONNEGATIVE),
        "alpha_y_": Number(NONNEGATIVE),
        "n_samples_": Count(1),
        "_y_names": Names("q", optional=True),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        alpha_x: float | None = None,
        alpha_y: float | None = None,
        scale: bool = True,
        tol: float = 1e-5,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.alpha_x = alpha_x
        self.alpha_y = alpha_y
        self.scale = scale
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the canonical vectors.

        Parameters
        ----------
        X : (n, p) array-like, sparse or frame
            One side, rows are samples.
        y : (n, q) array-like, sparse or frame
            The other side, Y (named in scikit-learn's way).

        Returns
        -------
        self
        """
        return self._all_or_nothing(self._fit, X, y)

    def _fit(self, X: Any, Y: Any, tell: Tell) -> None:
        if Y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        x_rows = self._open(X, reset=True, least_rows=2)
        n = x_rows.shape[0]
        y_rows = _open_other(Y, n)
        self.__dict__.pop("_y_names", None)  # of an earlier fit
        if y_rows.names is not None:
            self._y_names = np.array(y_rows.names, dtype=object)
        k = self._check_parameters(min(n, x_rows.shape[1], y_rows.shape[1]))
        U, self.x_mean_, self.x_scale_ = _standardised(x_rows, self.scale, x_rows.names)
        V, self.y_mean_, self.y_scale_ = _standardised(y_rows, self.scale, y_rows.names)
        self.alpha_x_ = _weight(self.alpha_x, k, U)
        self.alpha_y_ = _weight(self.alpha_y, k, V)
        with single_blas_thread():
            result = sparse_cca(U, V, k, self.alpha_x_, self.alpha_y_, self._drive(tell, x_rows, y_rows))
        A, B = result.value["A"], result.value["B"]
        self.x_weights_, self.y_weights_ = A.astype(x_rows.dtype), B.astype(y_rows.dtype)
        self.components_ = self.x_weights_.T
        self.correlations_ = _correlations(U @ A, V @ B)
        self.n_components_, self.n_samples_ = k, n
        self._keep_result(result)

    def _describe(self) -> Description:
        return describe_canonical(self)

    def _describe_scores(self, X: Any, y: Any, values: Any) -> Scores:
        return scores_of_sides(self.transform(X, y) if values is None else values)

    def _check_parameters(self, most: int) -> int:
        self._check_limits()
        for name in ("alpha_x", "alpha_y"):
            alpha = getattr(self, name)
            if alpha is not None and not (np.isfinite(alpha) and alpha >= 0):
                raise ValueError(f"{name} must be None or a finite number of at least 0, got {alpha!r}.")
        return count_components(self.n_components, most, of=", the smallest side of X and Y", or_none=False)

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return scores: of X, or, if Y is given too, the pair of both sides' scores.

        Parameters
        ----------
        X : (n, p) array-like, sparse or frame
            One side.
        y : (n, q) array-like, sparse or frame, optional
            The other.

        Returns
        -------
        (n, k) array, or two of them
        """
        rows = self._open(X, reset=False)
        scores = self._scores(rows, self.x_mean_, self.x_scale_, self.x_weights_)
        if y is None:
            return scores
        others = _open_other(y, rows.shape[0])
        if others.shape[1] != len(self.y_mean_):
            raise ValueError(f"Y has {others.shape[1]} features, but was fitted with {len(self.y_mean_)}.")
        difference = first_difference(others.names, getattr(self, "_y_names", None))
        if difference:
            raise ValueError(f"The feature names of Y should match those that were passed during fit. {difference}")
        return scores, self._scores(others, self.y_mean_, self.y_scale_, self.y_weights_)

    def score(self, X: Any, y: Any) -> float:
        """Return the mean correlation of the pairs of scores, on data that the fit may not have seen.

        Parameters
        ----------
        X : (n, p) array-like, sparse or frame
            One side.
        y : (n, q) array-like, sparse or frame
            The other.

        Returns
        -------
        float
        """
        return float(_correlations(*self.transform(X, y)).mean())

    @staticmethod
    def _scores(rows: Rows, mean: Array, scale: Array, weights: Array) -> Array:
        centered = Centered(rows, mean, 1 / scale, dense_tiles=rows.sparse)
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        scores = statistics.scores(centered, weights, dtype)
        if not np.isfinite(scores).all():
            check_values(rows)
        return scores


def _correlations(scores: Array, others: Array) -> Array:
    """Return the correlation of each pair of columns."""
    scores, others = scores - scores.mean(axis=0), others - others.mean(axis=0)
    size = np.linalg.norm(scores, axis=0) * np.linalg.norm(others, axis=0)
    return (scores * others).sum(axis=0) / np.where(size > 0, size, 1.0)


def _open_other(Y: Any, n: int) -> Rows:
    """Return Y as rows, as many as the n of X."""
    rows = as_rows(_as_columns(Y))
    if rows.shape[0] != n:
        raise ValueError(f"X and Y must have as many rows: found {n} and {rows.shape[0]}.")
    return rows


def _as_columns(Y: Any) -> Any:
    """Return Y, a vector as one column."""
    if is_shards(Y) or len(getattr(Y, "shape", (0,))) != 1:
        return Y
    vector = np.asarray(Y)
    return vector.reshape(-1, 1) if vector.ndim == 1 else Y


def _standardised(rows: Rows, scale: bool, names: Any) -> tuple[Array, Array, Array]:
    """Return the centred and scaled data in memory, the mean and what columns were divided by."""
    rows = statistics.here(rows)
    n, p = rows.shape
    budget.require(8.0 * (n * p + 2 * p * p), f"The {p} x {p} covariance", "Select fewer features first.")
    found = standardise(rows, center=True, scale=scale, names=names)
    if found.total > 0 and not np.finfo(np.float64).tiny < as_given(found.total, found.unit) < np.inf:
        raise ValueError("Squares of X or Y are out of the range of float64. Use scale=True, or other units.")
    divisor = np.ones(p) if found.scale is None else found.scale
    X = statistics.whole(Centered(rows, found.mean, 1 / divisor))
    require_unchanged(found.signature.times(1 / found.unit), row_weights(slice(0, n)) @ X, names)
    return X, found.mean, divisor


def _weight(alpha: float | None, k: int, W: Array) -> float:
    n, p = W.shape
    return DEFAULT_SHARE * float(np.sqrt((k + np.log(p)) / n)) if alpha is None else float(alpha)
