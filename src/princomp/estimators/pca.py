"""Principal component analysis."""

from collections.abc import Callable, Mapping
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._kinds import VARIANCE, Count, Kind, Number, Numbers, Of, Word
from princomp._typing import Array
from princomp._warn import warn
from princomp.data import Centered
from princomp.estimators.base import FromCovariance, Projection
from princomp.estimators.checks import check_choice, count_components
from princomp.estimators.costs import choose_solver
from princomp.estimators.covariance import Covariance
from princomp.estimators.decompose import SOLVERS, decompose, decompose_covariance
from princomp.estimators.density import Density, precision
from princomp.estimators.spectrum import Spectrum
from princomp.losses import Loss
from princomp.penalties import Penalty
from princomp.progress import Tell
from princomp.result import Result, State


class PCA(Density, FromCovariance, Projection):
    r"""Principal component analysis: the orthogonal directions of largest variance.

    With X centred, PCA maximises the variance :math:`\mathrm{tr}(V^\top S V)`, :math:`S = X^\top X / (n - 1)`, over
    orthonormal V, and so minimises the reconstruction error :math:`\|X - X V V^\top\|^2`.

    Parameters
    ----------
    n_components : int, float, "mle" or None, default None
        How many components: None for min(n, p); an int; a share in (0, 1] of the variance to reach (1.0 means all);
        "mle" for Minka's evidence (n >= p).
    solver : {"auto", "eigh", "svd", "krylov", "optimize"}, default "auto"
        "eigh": eigenproblem of the smaller side. "svd": singular value decomposition, best for small components.
        "krylov": randomised block Krylov, for few components of large data. "optimize": reconstruction error
        minimised one component at a time, with any ``loss`` and ``penalty``. "auto": by the shape of the data.
    center : bool, default True
        Subtract the mean.
    scale : bool, default False
        Divide columns by their standard deviation (n - 1), so that units do not matter.
    whiten : bool, default False
        Divide scores by their standard deviation.
    loss : Loss, optional
        For "optimize": `princomp.losses.Squared` (default) or `princomp.losses.Huber`.
    penalty : Penalty, optional
        For "optimize": for example ``princomp.penalties.L1(alpha)``, which minimises
        :math:`\|X - X w w^\top\|^2 + \alpha \|w\|_1` over unit w, one component after the other.
    tol : float, default 1e-6
        Bound on the eigen-residual, of each component relative to its own variance (exact solvers end far below).
    max_iter : int, default 1000
        Bound on iterations: products with X of "krylov"; for "optimize" k times as many steps, for all components
        together.
    random_state : int, RandomState or None, default None
        Seed of the random starts of "krylov" and "optimize".
    verbose : int, default 0
        1: a progress line on a terminal; 2: which stays. Never anything when there is no terminal.
    callback : callable, optional
        Called with each `State` of "krylov" and "optimize"; returning True stops the fit.
    checkpoint : path, optional
        Where "krylov" and "optimize" keep the state of an unfinished fit; the same fit, run again, goes on from it.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so. "eigh" and "svd" make no states: they end when they are done.

    Attributes
    ----------
    components_ : (k, p) array
        Unit vectors, largest variance first; the entry of largest magnitude is positive.
    mean_ : (p,) array
        What is subtracted from X.
    scale_ : (p,) array or None
        What columns are divided by.
    explained_variance_ : (k,) array
        Variance of each component, divisor n - 1; of a penalised one, what it adds to those before it.
    explained_variance_ratio_ : (k,) array
        The same as a share of the total.
    singular_values_ : (k,) array
        Euclidean norms of the columns of scores.
    noise_variance_ : float
        Mean variance of the p - k directions left out.
    loadings_ : (k, p) array
        Components times the square root of their variances.
    rank_ : int
        Numerical rank, as far as the k components show it: those beyond it are orthonormal but arbitrary.
    n_components_, n_samples_, n_features_in_, n_iter_ : int
        Counts.
    solver_ : str
        The solver that ran.
    result_ : Result
        ``value`` ("V", "variances"), ``objective`` (variance left out), ``certificate``, ``status``, ``history``.
    certificate_ : Certificate
        Eigen-residual, and whether anything larger was left out.
    trace_ : list of dict
        Only "optimize": for each component the ``"loss"`` and the ``"parameters"`` after every step (or, once these
        would take more than 8 MiB, after every second, fourth ... step).

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import PCA
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5, 2, 1] + 1e8
    >>> pca = PCA(n_components=2).fit(X)
    >>> pca.explained_variance_ratio_.round(2)
    array([0.86, 0.11])
    >>> print(pca.certificate_.dominant)
    True
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "_deviation": Numbers("k", VARIANCE),
        "singular_values_": Numbers("k", VARIANCE),
        "noise_variance_": Number(VARIANCE),
        "rank_": Count(),
        "solver_": Word(tuple(SOLVERS)),
        "trace_": Of(list[dict[str, Array]], optional=True),
    }

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        solver: str = "auto",
        center: bool = True,
        scale: bool = False,
        whiten: bool = False,
        loss: Loss | None = None,
        penalty: Penalty | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.solver = solver
        self.center = center
        self.scale = scale
        self.whiten = whiten
        self.loss = loss
        self.penalty = penalty
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    # Fitting

    def _fit(self, X: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        n, p = rows.shape
        k = self._check_parameters(min(n, p))
        how: dict[str, Any] = {"density": rows.density, "single": rows.dtype == np.float32}
        solver = choose_solver(n, p, k, rows.pass_seconds, **how) if self.solver == "auto" else self.solver
        if solver in ("krylov", "optimize") and not isinstance(self.n_components, Integral | None):
            raise ValueError(
                f'n_components={self.n_components!r} needs all variances, which solver="{solver}" does not compute. '
                'Use solver="eigh" or "svd", or give a number.'
            )
        found = decompose(
            rows,
            k,
            solver,
            all_digits=self.solver == "auto" and isinstance(self.n_components, Integral),
            center=self.center,
            scale=self.scale,
            tol=self.tol,
            max_iter=self.max_iter,
            generator=self._generator,
            drive=self._drive(tell, rows),
            loss=self.loss,
            penalty=self.penalty,
            names=self._names,
        )
        self._keep(found, rows.dtype)

    def _fit_covariance(self, covariance: Covariance, tell: Tell) -> None:
        k = self._check_parameters(len(covariance.matrix))
        if covariance.n_samples is None and self.n_components == "mle":
            raise ValueError('n_components="mle" needs n_samples.')
        if self.solver not in ("auto", "eigh"):
            raise ValueError(f'fit_covariance uses solver="eigh" only, got {self.solver!r}.')
        self._keep(decompose_covariance(covariance, k, scale=self.scale, tol=self.tol), covariance.dtype)

    def _check_parameters(self, most: int) -> int:
        """Return how many components to compute, at the most ``most``; complain about parameters that mean nothing."""
        check_choice("solver", self.solver, ("auto", *SOLVERS))
        if self.solver != "optimize" and (self.loss is not None or self.penalty is not None):
            raise ValueError('loss and penalty are for solver="optimize" only.')
        for name, value, needs in (("loss", self.loss, "gradient"), ("penalty", self.penalty, "prox")):
            if value is not None and not hasattr(value, needs):
                where = {"loss": "princomp.losses", "penalty": "princomp.penalties"}[name]
                raise TypeError(f"{name} must be an object such as those in {where}, got {value!r}.")
        if not getattr(self.penalty, "homogeneous", True):
            raise ValueError(
                f"penalty must grow in proportion to w, as L1 and the group penalties do; {self.penalty!r} does not."
            )
        self._check_limits()
        return count_components(self.n_components, most, share=True, words=("mle",))

    def _keep(self, found: Spectrum, dtype: Any) -> None:
        """Derive all attributes: the one place."""
        k = found.count_kept(self.n_components)
        kept = found.leading(k)
        _warn_of(kept, asked=isinstance(self.n_components, Integral), dtype=dtype)
        self.solver_ = found.solver
        self.n_samples_ = found.count or None
        self.rank_ = kept.rank
        self._keep_directions(kept.V, kept.variances, kept.ratio, found.mean, found.scale, dtype)
        self._deviation = kept.singular_values / np.sqrt(found.freedom)  # of the scores; variances may overflow
        with np.errstate(over="ignore"):
            self.noise_variance_ = dtype.type(kept.noise_variance)
            self.singular_values_ = kept.singular_values.astype(dtype)
        self._keep_result(kept.result(dtype))
        self.__dict__.pop("trace_", None)
        if found.solver == "optimize":
            self.trace_ = _trace(self.result_, k)

    # Using the fit

    def _to_scores(self) -> Array:
        V = self.components_.astype(np.float64).T
        return V / self._deviations() if self.whiten else V

    def _from_scores(self) -> Array:
        back = self.components_.astype(np.float64)
        return self._deviations()[:, None] * back if self.whiten else back

    def _deviations(self) -> Array:
        """Return standard deviations of the scores to whiten by; a component without variance is left alone."""
        floor = np.sqrt(np.finfo(self.components_.dtype).eps) * 1e-3 * self._deviation.max(initial=0.0)
        return np.where(self._deviation > floor, self._deviation, 1.0)

    # The Gaussian model behind it

    def get_covariance(self) -> Array:
        """Return the covariance of the model: that of the components, plus noise in all directions, (p, p)."""
        self._check_model()
        noise = float(self.noise_variance_)
        V = self.components_.T
        covariance = (V * (self.explained_variance_ - noise)) @ V.T
        covariance[np.diag_indices_from(covariance)] += noise
        return covariance if self.scale_ is None else covariance * np.outer(self.scale_, self.scale_)

    def get_precision(self) -> Array:
        """Return the inverse of `get_covariance`, (p, p), without inverting it.

        A model without noise has no inverse unless k = p; noise is then kept just off zero.
        """
        self._check_model()
        return precision(self.components_.T, *self._floored(), self.scale_)

    def _check_model(self) -> None:
        """Refuse what only makes sense for orthonormal components."""
        check_is_fitted(self)
        V = self.components_
        if np.abs(V @ V.T - np.eye(len(V))).max() > 1e-4:
            raise ValueError("Penalised components are not orthogonal, so that there is no Gaussian model behind them.")

    def _floored(self) -> tuple[Array, float]:
        """Return variances and noise for the likelihood, kept off zero: a model without noise has no density."""
        variances = self.explained_variance_.astype(np.float64)
        floor = max(float(variances.max(initial=0.0)) * np.finfo(np.float64).eps, np.finfo(np.float64).tiny)
        return np.maximum(variances, floor), max(float(self.noise_variance_), floor)

    def _score_samples(self, X: Any) -> Any:
        self._check_model()
        rows = self._open(X, reset=False)
        variances, noise = self._floored()
        k, p = self.components_.shape
        factor = None if self.scale_ is None else 1.0 / self.scale_.astype(np.float64)
        dense = Centered(rows, self._mean, factor, dense_tiles=True)
        V = self.components_.astype(np.float64).T
        distance = self._finite(rows, dense.map(_mahalanobis, V, variances, noise, width=1, dtype=np.float64))[:, 0]
        constant = p * np.log(2 * np.pi) + np.log(variances).sum() + (p - k) * np.log(noise)
        if factor is not None:
            constant -= 2 * np.log(factor).sum()
        return -0.5 * (constant + distance)


def _mahalanobis(block: Array, rows: slice, V: Array, variances: Array, noise: float) -> Array:
    scores = block @ V
    outside = block - scores @ V.T  # formed, not subtracted as squares, which would cancel
    distance: Array = (scores**2 / variances).sum(axis=1) + np.einsum("ij,ij->i", outside, outside) / noise
    return distance[:, None]


def _warn_of(kept: Spectrum, *, asked: bool, dtype: Any) -> None:
    """Warn of what makes the answer less than the user expects; one warning at the most."""
    k = len(kept.values)
    with np.errstate(over="ignore"):
        overflow = not np.isfinite(kept.variances.astype(dtype)).all()
    if kept.total <= 0:
        message = "X does not vary (all rows are equal): every variance is 0 and the components are arbitrary."
    elif overflow:
        message = f"A variance is larger than {dtype} holds and is given as inf. Divide X by a constant to avoid it."
    elif asked and kept.rank < k:
        those = f"component {k} is" if kept.rank == k - 1 else f"components {kept.rank + 1} to {k} are"
        message = (
            f"X has numerical rank {kept.rank}: {those} rounding, and arbitrary. "
            "If columns differ in scale by many orders of magnitude, scale=True gives each its say."
        )
    else:
        return
    warn(message)


def _trace(result: Result, k: int) -> list[dict[str, Array]]:
    """Return losses and parameters after every step, component by component."""
    if not len(result.history):  # nothing varies: there was nothing to do
        return [{"loss": np.zeros(0), "parameters": np.zeros((0, len(result.value["V"])))} for _ in range(k)]
    history = result.history
    component, parameters = np.array(history.kept["component"]), np.array(history.kept["w"])
    losses = np.array(history.objective[:: history.stride])
    return [{"loss": losses[component == j], "parameters": parameters[component == j]} for j in range(k)]
