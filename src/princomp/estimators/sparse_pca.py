"""Sparse principal component analysis."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from princomp.data import Centered
from princomp.estimators.base import Estimator
from princomp.estimators.explained import Kind, explained_variance
from princomp.estimators.sparse.problem import Found, Problem
from princomp.estimators.spectrum import signs
from princomp.estimators.standardise import standardise
from princomp.progress import watch, with_callbacks
from princomp.result import Certificate, History, Result, State, Status

Array = NDArray[Any]

FORMULATIONS = ("dictionary", "regression", "constrained")
SCORES = ("projection", "least-squares")
# Factors that go with the loadings: when a component changes its sign, so do these.
COMPANIONS = {"D": "Y", "B": "A"}


class SparsePCA(Estimator):
    r"""Sparse PCA: components that use few features.

    For PCA most variance and least reconstruction error are one problem; with sparse components they are not, and so
    there are several formulations. With X centred and :math:`S = X^\top X`:

    ==============  ==================================================================================================
    formulation     problem
    ==============  ==================================================================================================
    dictionary      :math:`\min \frac12 \|X - Y D^\top\|^2 + \alpha \|D\|_1`, columns of Y in a ball: the objective of
                    scikit-learn's SparsePCA
    regression      :math:`\min \mathrm{tr}(B^\top S B) - 2\,\mathrm{tr}(A^\top S B) + \rho \|B\|^2 + \sum_j \alpha_j
                    \|B_j\|_1` over :math:`A^\top A = I`: Zou, Hastie and Tibshirani
    constrained     :math:`\max v^\top S v`, :math:`\|v\|_2 = 1`, :math:`\|v\|_1 \le` ``bound``, one after the other:
                    SCoTLASS, penalised matrix decomposition
    ==============  ==================================================================================================

    Parameters
    ----------
    n_components : int or None, default None
        How many; None for min(n, p). "dictionary" allows more than features.
    formulation : {"auto", "dictionary", "regression", "constrained"}, default "auto"
        As above; "auto" is "constrained" if ``bound`` is given, "regression" if ``ridge`` or ``solver`` is, else
        "dictionary".
    alpha : float or (k,) array, optional
        Weight of the l1 norm. It refers to X'X, not to a covariance: twice the rows want twice the alpha ("regression")
        or 1.4 times ("dictionary").
    alpha_share : float, optional
        The same as a share of the alpha from which on nothing is left; 0.1 when neither is given.
    nonzeros : int or list of int, optional
        Instead: how many features each component should use. The alpha is looked for.
    ridge : float, optional
        For "regression", from 0 to infinity; by default 1e-6 of the leading eigenvalue.
    radius : float, default 1
        For "dictionary": of the ball.
    code_alpha : float, optional
        For "dictionary": weight of \|Y\|_1. Without alpha the ball is then D's; with it, there is none.
    bound : float, optional
        For "constrained": from 1 (one feature) to sqrt(p) (no bound); by default 0.4 sqrt(p), at least 1.
    groups : list of lists of int, or (p,) labels, optional
        For "dictionary": features that enter together; disjoint, nested or overlapping.
    nonnegative : bool, default False
        For "dictionary": no negative loadings.
    solver : {"block", "amanpg", "one-shot"}, optional
        For "regression": "block" by default.
    deflation : {"schur", "projection", "generalised", "hotelling"}, default "schur"
        For "constrained": what is left for the next component.
    n_init : int, default 1
        Starts, of which the best is kept.
    scores : {"projection", "least-squares"}, optional
        What `transform` gives: X times loadings, or the least-squares coefficients of X in the loadings (the default
        of "dictionary").
    center, scale : bool
        As in `PCA`.
    tol : float, default 1e-5
        Bound on the relative residual of the optimality conditions.
    max_iter : int, default 1000
        Bound on iterations.
    random_state, verbose, callback, checkpoint
        As in `PCA`.

    Attributes
    ----------
    components_ : (k, p) array
        Unit rows; the entry of largest magnitude is positive. A row of zeros means that nothing was worth its penalty.
    nonzeros_ : (k,) array of int
        Features that each component uses.
    alpha_ : array or None
        The weights in force, or the bounds of "constrained".
    explained_variance_, explained_variance_ratio_ : (k,) array
        What each component adds to those before it (Zou's adjusted variance); see `explained_variance`.
    mean_, scale_, n_components_, n_samples_, n_features_in_, n_iter_ :
        As in `PCA`.
    formulation_ : str
        The formulation in force.
    result_ : Result
        ``value`` with the raw factors (Y and D, A and B, or V), ``objective`` of the formula above, ``certificate``,
        ``status``, ``history``.
    certificate_ : Certificate
        Residual of the optimality conditions. These problems are not convex: it certifies that no small step helps.

    Examples
    --------
    >>> from princomp import SparsePCA
    >>> from princomp.datasets import load_wine
    >>> wine = load_wine()
    >>> sparse = SparsePCA(3, formulation="regression", nonzeros=4, scale=True, random_state=0).fit(wine.X)
    >>> sparse.nonzeros_
    array([4, 4, 4])
    >>> bool(sparse.certificate_.holds)
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        formulation: str = "auto",
        alpha: Any = None,
        alpha_share: Any = None,
        nonzeros: int | Sequence[int] | None = None,
        ridge: float | None = None,
        radius: float = 1.0,
        code_alpha: float | None = None,
        bound: float | None = None,
        groups: Any = None,
        nonnegative: bool = False,
        solver: str | None = None,
        deflation: str = "schur",
        n_init: int = 1,
        scores: str | None = None,
        center: bool = True,
        scale: bool = False,
        tol: float = 1e-5,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_components = n_components
        self.formulation = formulation
        self.alpha = alpha
        self.alpha_share = alpha_share
        self.nonzeros = nonzeros
        self.ridge = ridge
        self.radius = radius
        self.code_alpha = code_alpha
        self.bound = bound
        self.groups = groups
        self.nonnegative = nonnegative
        self.solver = solver
        self.deflation = deflation
        self.n_init = n_init
        self.scores = scores
        self.center = center
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    # Fitting

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find sparse components of X.

        Parameters
        ----------
        X : as in `PCA.fit`
            The data, rows are samples.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._fit(X)
        return self

    def fit_covariance(self, S: Any, n_samples: int | None = None) -> Self:
        """Find sparse components from a covariance (or correlation) matrix instead of data.

        Parameters
        ----------
        S : (p, p) array-like or frame
            Symmetric. It is not squared, not centred, not changed.
        n_samples : int, optional
            Penalties refer to (n_samples - 1) S; without it, to S itself.

        Returns
        -------
        self
            With ``mean_`` = 0.
        """
        with self._all_or_nothing():
            self._fit_covariance(S, n_samples)
        return self

    @with_callbacks
    def _fit(self, X: Any) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        formulation = self._check_parameters()
        k = self._count(min(rows.shape), formulation)
        names = getattr(self, "feature_names_in_", None)
        found = standardise(rows, center=self.center, scale=self.scale, names=names)
        with watch(self, X) as tell:
            drive = partial(self._run, rows, tell, max_iter=self.max_iter)
            problem = self._problem(found.X, None, k, found.total, found.unit, drive)
            answer = self._solve(formulation, problem)
        freedom = rows.shape[0] - 1.0
        self.n_samples_: int | None = rows.shape[0]
        self._keep(formulation, problem, answer, freedom, found.mean, found.scale, rows.dtype)

    def _fit_covariance(self, S: Any, n_samples: int | None) -> None:
        matrix, dtype = self._open_covariance(S, n_samples)
        formulation = self._check_parameters()
        p = len(matrix)
        k = self._count(p, formulation)
        deviation = None
        if self.scale:
            deviation = np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
            matrix = matrix / np.outer(deviation, deviation)
        freedom = 1.0 if n_samples is None else n_samples - 1.0
        matrix = freedom * (matrix + matrix.T) / 2
        with watch(self, S) as tell:
            drive = partial(self._run_without_checkpoint, tell)
            problem = self._problem(None, matrix, k, float(np.trace(matrix)), 1.0, drive)
            answer = self._solve(formulation, problem)
        self.n_samples_ = n_samples
        self._keep(formulation, problem, answer, freedom, np.zeros(p), deviation, dtype)

    def _run_without_checkpoint(self, tell: Any, *args: Any, **kwargs: Any) -> Result:
        from princomp.result import run

        if self.checkpoint is not None:
            raise ValueError("checkpoint is for fit, not for fit_covariance.")
        return run(*args, callback=tell, max_iter=self.max_iter, **kwargs)

    def _problem(
        self, X: Centered | None, S: Array | None, k: int, total: float, unit: float, drive: Callable[..., Result]
    ) -> Problem:
        return Problem(X, S, k, total, unit, self.get_params(deep=False), self._generator(), drive)

    def _solve(self, formulation: str, problem: Problem) -> Found:
        if problem.total <= 0:
            return _nothing_varies(problem)
        answer: Found = import_module(f"princomp.estimators.sparse.{formulation}").solve(problem)
        return answer

    def _check_parameters(self) -> str:
        """Return the formulation in force; complain about parameters that mean nothing."""
        if self.formulation not in ("auto", *FORMULATIONS):
            raise ValueError(f"formulation must be one of auto, {', '.join(FORMULATIONS)}; got {self.formulation!r}.")
        if self.scores not in (None, *SCORES):
            raise ValueError(f"scores must be one of {', '.join(SCORES)}; got {self.scores!r}.")
        if not (isinstance(self.n_init, Integral) and self.n_init >= 1):
            raise ValueError(f"n_init must be an integer of at least 1, got {self.n_init!r}.")
        if not (isinstance(self.radius, Real) and self.radius > 0):
            raise ValueError(f"radius must be a number above 0, got {self.radius!r}.")
        self._check_limits()
        formulation = self.formulation
        if formulation == "auto":
            regression = self.ridge is not None or self.solver is not None
            formulation = "constrained" if self.bound is not None else "regression" if regression else "dictionary"
        only = {
            "dictionary": {"code_alpha": None, "groups": None, "nonnegative": False, "radius": 1.0},
            "regression": {"ridge": None, "solver": None},
            "constrained": {"bound": None, "deflation": "schur"},
        }
        for owner, parameters in only.items():
            for name, default in parameters.items():
                value = getattr(self, name)
                if owner != formulation and not (value is default or value == default):
                    raise ValueError(f'{name} is for formulation="{owner}", but this fit is "{formulation}".')
        if formulation == "constrained" and (self.alpha is not None or self.alpha_share is not None):
            raise ValueError('formulation="constrained" has a bound, not an alpha.')
        return formulation

    def _count(self, most: int, formulation: str) -> int:
        k = self.n_components
        if k is None:
            return most
        limit = np.inf if formulation == "dictionary" else most
        if isinstance(k, bool) or not isinstance(k, Integral) or not 1 <= k <= limit:
            upper = "" if formulation == "dictionary" else f" and at most min(n, p) = {most}"
            raise ValueError(f"n_components must be an integer of at least 1{upper}, or None; got {k!r}.")
        return int(k)

    def _keep(
        self, formulation: str, problem: Problem, found: Found, freedom: float, mean: Array, scale: Any, dtype: Any
    ) -> None:
        """Derive all attributes: the one place."""
        size = np.linalg.norm(found.loadings, axis=0)
        V = np.divide(found.loadings, size, out=np.zeros_like(found.loadings), where=size > 0)
        sign = signs(V)
        V = V * sign
        self.formulation_ = formulation
        self.n_components_ = problem.k
        self.mean_ = mean.astype(dtype)
        self._mean = mean
        self.scale_ = None if scale is None else scale.astype(dtype)
        self.components_ = np.ascontiguousarray(V.T).astype(dtype)
        self.nonzeros_ = (V != 0).sum(axis=0)
        self.alpha_ = found.alpha
        # S V, S the covariance in safe units: all kinds of variance follow.
        self._images, self._unit = problem.gram_apply(V) / freedom, problem.unit
        with np.errstate(over="ignore"):
            self.explained_variance_ = self.explained_variance().astype(dtype)
        share = explained_variance(self._images, V) / (problem.total / freedom if problem.total > 0 else 1.0)
        self.explained_variance_ratio_ = share.astype(dtype)
        value = {name: array * sign for name, array in found.value.items()}
        self.result_ = replace(found.run, value=value, objective=found.objective)
        self.certificate_ = self.result_.certificate
        self.n_iter_ = max(self.result_.n_iter, 1)
        empty = int((self.nonzeros_ == 0).sum())
        if empty and problem.total > 0 and self.result_.status:
            warnings.warn(
                f"{empty} of {problem.k} components are zero: nothing was worth the penalty. Lower alpha, or ask for "
                "fewer components.",
                UserWarning,
                stacklevel=4,
            )

    # Using the fit

    def explained_variance(self, kind: Kind = "adjusted") -> Array:
        """Return the variance that each component adds to those before it, by name.

        Parameters
        ----------
        kind : {"adjusted", "subspace", "reconstruction"}
            Zou's, by QR of the scores; Shen and Huang's, of the projection on the loadings; or that of the best
            reconstruction from the scores. For orthogonal components all are the same.

        Returns
        -------
        (k,) array
            They add up to the variance explained; divide by the total variance for shares.
        """
        check_is_fitted(self, "components_")
        in_safe_units = explained_variance(self._images, self.components_.astype(np.float64).T, kind)
        with np.errstate(over="ignore"):
            return in_safe_units / self._unit / self._unit

    @property
    def loadings_(self) -> Array:
        """Components times the square root of their variances, (k, p)."""
        check_is_fitted(self)
        return self.components_ * np.sqrt(self.explained_variance_)[:, None]

    def transform(self, X: Any) -> Any:
        """Return the scores of X, as ``scores`` says.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n, k) array
            In the kind of X.
        """
        check_is_fitted(self)
        V = self.components_.astype(np.float64).T
        return self._project(X, np.linalg.pinv(V).T if self._least_squares() else V)

    def inverse_transform(self, X: Any) -> Any:
        """Return the data that scores stand for: the best in the span of the components.

        Parameters
        ----------
        X : (n, k) array-like
            Scores, as `transform` gives them.

        Returns
        -------
        (n, p) array
            In the kind of X.
        """
        check_is_fitted(self)
        V = self.components_.astype(np.float64).T
        return self._unproject(X, V.T if self._least_squares() else np.linalg.pinv(V))

    def _least_squares(self) -> bool:
        if self.scores is None:
            return bool(self.formulation_ == "dictionary")
        return self.scores == "least-squares"


def _nothing_varies(problem: Problem) -> Found:
    """Return components of zeros: nothing can be explained."""
    warnings.warn("X does not vary (all rows are equal): all components are zero.", UserWarning, stacklevel=6)
    V = np.zeros((problem.width, problem.k))
    certificate = Certificate(0.0, problem.parameters["tol"], "global")
    result = Result({"V": V}, 0.0, certificate, Status("exact", "Nothing varies."), 1, History())
    return Found(V, {"V": V}, 0.0, result)
