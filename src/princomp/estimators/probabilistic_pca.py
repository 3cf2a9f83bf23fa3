"""Probabilistic PCA: a likelihood, a posterior, and an exact treatment of missing cells."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._kinds import NONNEGATIVE, POSITIVE, SQUARABLE, Kind, Number, Numbers, Word
from princomp._typing import Array
from princomp._warn import warn
from princomp.data import Centered, Rows
from princomp.estimators.base import Components, FromCovariance
from princomp.estimators.checks import check_choice, check_count, checked_weight, count_components
from princomp.estimators.covariance import Covariance
from princomp.estimators.density import CellDensity, precision
from princomp.estimators.description import Description, usual_description
from princomp.estimators.probabilistic_fit import (
    CHOICES,
    MOST,
    Asked,
    ModelFound,
    ModelProblem,
    check_variance,
    fit,
    fit_covariance,
)
from princomp.progress import Tell
from princomp.result import State
from princomp.solvers import probabilistic
from princomp.solvers.probabilistic import unpacked

METHODS = ("auto", "closed-form", "em")


class Posterior(NamedTuple):
    """What rows say about their latent scores: normal distributions."""

    mean: Any  # (n, k)
    covariance: Any  # (n, k, k)


class ProbabilisticPCA(CellDensity, FromCovariance, Components):
    r"""Probabilistic PCA: a Gaussian model of the data, with missing cells treated exactly.

    The model is :math:`x = W z + \mu + e` with :math:`z \sim N(0, I_k)`, :math:`e \sim N(0, \sigma^2 I_p)`, so that
    :math:`x \sim N(\mu, W W^\top + \sigma^2 I)`. It is fitted by maximum likelihood of the observed cells (NaN =
    missing at random). With l the eigenvalues and U the eigenvectors of the covariance with divisor n (not n - 1),

    .. math:: \sigma^2 = \frac{1}{p - k} \sum_{j > k} l_j, \qquad W = U_k (\Lambda_k - \sigma^2 I)^{1/2} R

    for complete data; with missing cells by expectation maximisation.

    Parameters
    ----------
    n_components : int, "ard", "bic", "evidence", "held-out" or None, default None
        How many components: an int; or None for min(n, p), or the rank of complete data if that is less, and with
        missing cells one less than the rank of the data filled with means, so that noise is left; or chosen from the
        data. "ard": those that Bishop's relevance prior (Bayesian PCA) leaves. "bic": the best Bayesian information
        criterion, which with missing cells also charges what a small noise tells of the components. "evidence": Minka's
        evidence (complete data, n >= p). "held-out": the best prediction of a tenth of the cells, left out of the fit.
        The model is then fitted by maximum likelihood with that many.
    method : {"auto", "closed-form", "em"}, default "auto"
        "closed-form" is for complete data; "auto" takes it there, and "em" where cells are missing.
    max_components : int, optional
        The most that a choice may take; by default min(n, p) - 1, at most 50.
    scale : bool, default False
        Divide columns by the standard deviation of their observed cells (divisor n), so that units do not matter: the
        noise is then the same share of each column. The model is that of the divided columns; means, imputed cells and
        their deviations, samples, likelihoods and `get_covariance` are those of X.
    rotation : (k, k) array, optional
        The orthogonal R above. The likelihood does not depend on it; by default I.
    n_init : int, optional
        Starts of "em", of which the one of largest likelihood is kept: the first from the covariance of the data filled
        with means, the others random. By default 5 if fewer than 20 cells are observed for each parameter, where the
        likelihood often has several maxima, else 1.
    tol : float, default 1e-6
        For "em": bound on the estimated gain of the log-likelihood that is left, for each observed cell. For
        "closed-form": on the eigen-residual, as in `PCA`.
    max_iter : int, default 1000
        Bound on iterations, of all starts together.
    random_state : int, RandomState or None, default None
        Seed of the starts, of "held-out" and of `sample`.
    verbose, callback, checkpoint
        As in `PCA`, for "em".
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so. "closed-form" makes no states: it ends when it is done.

    Attributes
    ----------
    weights_ : (p, k) array
        W.
    noise_variance_ : float
        sigma^2. Of data without noise it is a rounding error above 0, so that all that follows stays finite. With k = p
        and missing cells it is not determined: W W' + sigma^2 I is, and any smaller sigma^2 has a W for it.
    components_ : (k, p) array
        Orthonormal: the left singular vectors of W, largest first; the entry of largest magnitude is positive.
    mean_ : (p,) array
        mu.
    scale_ : (p,) array or None
        What columns are divided by.
    explained_variance_ : (k,) array
        Variance of the model along each component, divisor n: with complete data the eigenvalues l.
    explained_variance_ratio_ : (k,) array
        The same as a share of the total variance of the model.
    log_likelihood_ : float
        Of the observed cells of all rows; None after `fit_covariance` without ``n_samples``.
    n_components_, n_samples_, n_features_in_, n_iter_ : int
        Counts; of iterations those of the start that was kept.
    method_ : str
        The method that ran.
    result_ : Result
        ``value`` ("W", "mean", "noise", and "total", the sum of weights), ``objective`` (the log-likelihood),
        ``certificate``, ``status``, and in ``history.objective`` the log-likelihood after each step.
    certificate_ : Certificate
        "closed-form": the eigen-residual. "em": the gain that is left for each cell, measured from slope and curvature
        of the likelihood at the model. If it holds, the model is a local maximum; ``details`` has the largest curvature
        found, the probability that a saddle was missed, and the likelihood that each start has led to.

    See Also
    --------
    PCA : The same subspace; its variances have divisor n - 1.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import ProbabilisticPCA
    >>> from princomp.datasets import load_tobamovirus
    >>> X = load_tobamovirus().X
    >>> model = ProbabilisticPCA(2).fit(X)
    >>> round(float(model.noise_variance_), 4), round(model.log_likelihood_, 2)
    (1.6269, -1245.93)
    >>> X[0, 3] = np.nan
    >>> filled, deviation = model.impute(X[:1], return_std=True)
    >>> print(f"{filled[0, 3]:.1f} +- {deviation[0, 3]:.1f}")
    16.8 +- 1.8
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "weights_": Numbers("p k", SQUARABLE),
        "_noise": Number(POSITIVE),
        "scale_": Numbers("p", POSITIVE, or_none=True, optional=True, rounds="_scale"),
        "_scale": Numbers("p", POSITIVE, or_none=True, optional=True),
        "noise_variance_": Number(NONNEGATIVE, rounds="_noise"),
        "explained_variance_": Numbers("k", NONNEGATIVE),
        "log_likelihood_": Number(or_none=True),
        "method_": Word(METHODS[1:]),  # not "auto"
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        method: str = "auto",
        max_components: int | None = None,
        scale: bool = False,
        rotation: Array | None = None,
        n_init: int | None = None,
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
        self.max_components = max_components
        self.scale = scale
        self.rotation = rotation
        self.n_init = n_init
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    # Fitting

    def _fit(self, X: Any, sample_weight: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        asked = self._check_parameters(*rows.shape)
        weight = checked_weight(sample_weight, rows.shape[0])
        problem = ModelProblem(
            rows=rows,
            weight=weight,
            asked=asked,
            method=self.method,
            scale=self.scale,
            tol=self.tol,
            max_iter=self.max_iter,
            rng=self._generator(),
            n_init=self.n_init,
            drive=self._drive(tell, rows, weight=weight),
            names=self._names,
            deadline=tell.deadline,
        )
        rows_with_weight = rows.shape[0] if weight is None else int(np.count_nonzero(weight))
        self._keep(fit(problem), rows.dtype, asked, rows_with_weight)

    def _fit_covariance(self, covariance: Covariance, tell: Tell) -> None:
        n_samples, p = covariance.n_samples, len(covariance.matrix)
        asked = self._check_parameters(n_samples or p, p)
        if self.method == "em" or asked.choice == "held-out":
            raise ValueError('fit_covariance has no cells: method="em" and n_components="held-out" need data.')
        if asked.choice is not None and n_samples is None:
            raise ValueError(f"n_components={asked.choice!r} needs n_samples.")
        found = fit_covariance(covariance, asked, self.tol, scale=self.scale)
        self._keep(found, covariance.dtype, asked, n_samples)

    def _check_parameters(self, n: int, p: int) -> Asked:
        """Return how many components are asked for; complain about parameters that mean nothing."""
        check_choice("method", self.method, METHODS)
        self._check_limits()
        if self.n_init is not None:
            check_count("n_init", self.n_init)
        side = min(n, p)
        most = max(min(side - 1, MOST), 1)
        if self.max_components is not None:
            check_count("max_components", self.max_components, side)
            most = int(self.max_components)
        k = count_components(self.n_components, side, words=CHOICES)
        if isinstance(self.n_components, str):
            return Asked(most, self.n_components, most)
        return Asked(k, most=most, up_to_rank=self.n_components is None)

    def _keep(self, found: ModelFound, dtype: Any, asked: Asked, rows: int | None) -> None:
        """Derive all attributes: the one place."""
        k = len(found.values)
        R = _checked_rotation(self.rotation, k)
        check_variance(found.total, found.total, dtype)
        messages = _warnings(found, self.n_components, k, asked.most, self.max_components, rows)
        for message in messages + ([] if found.apart is None else [found.apart]):
            warn(message)
        self.method_ = found.method
        self.n_samples_ = found.n_samples
        total = float(found.values.sum()) + (len(found.mean) - k) * found.noise
        self._keep_directions(found.V, found.values, found.values / total, found.mean, found.scale, dtype)
        self._noise, self._scale = found.noise, found.scale  # in full precision
        self.noise_variance_ = dtype.type(found.noise)
        W = probabilistic.weights(found.values, found.V, found.noise, R)
        self.weights_ = W.astype(dtype)
        self.log_likelihood_ = found.log_likelihood
        self._keep_result(replace(found.result, value={**found.result.value, "W": W}))

    def _describe(self) -> Description:
        """Add what a model with a likelihood says; a covariance of nobody knows how many samples has none."""
        if self.log_likelihood_ is None:
            return usual_description(self)
        found = usual_description(self, log_likelihood=self.log_likelihood_, noise_variance=self.noise_variance_)
        said = likelihood_in_words(self.log_likelihood_, float(self.noise_variance_))
        return replace(found, computation=(*found.computation, said))

    # Using the fit

    @property
    def total_weight_(self) -> float | None:
        """Sum of the weights of the rows: without weights their number; None if that is not known."""
        check_is_fitted(self)
        # Model files of old versions do not have it.
        return None if self.n_samples_ is None else float(self.result_.value.get("total", self.n_samples_))

    def transform(self, X: Any) -> Any:
        """Return the posterior means of the latent scores, given the observed cells of each row.

        They are shrunk towards 0, most where noise is large or cells are missing; as the noise vanishes they tend to
        the *whitened* scores of PCA. A row without any cell is at 0.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns; NaN = missing.

        Returns
        -------
        (n, k) array
            In the kind of X: a Dask array stays lazy.
        """
        check_is_fitted(self)
        return self._map(X, _scores, width=self.n_components_)

    def posterior(self, X: Any) -> Posterior:
        """Return means and covariances of the latent scores, given the observed cells of each row.

        Parameters
        ----------
        X : as in `fit`
            Data; NaN = missing.

        Returns
        -------
        Posterior
            ``mean`` (n, k) and ``covariance`` (n, k, k).
        """
        check_is_fitted(self)
        k = self.n_components_
        both = self._map(X, _scores_and_covariances, width=k + k * k)
        return Posterior(both[:, :k], both[:, k:].reshape((both.shape[0], k, k)))

    def inverse_transform(self, X: Any, *, shrunk: bool = True) -> Any:
        """Return the data that scores stand for.

        Parameters
        ----------
        X : (n, k) array-like
            Scores.
        shrunk : bool, default True
            True: W z + mean, the expected data. False: W (W'W)^-1 M z + mean, M = W'W + noise I, which undoes the
            shrinkage of the scores of complete rows: their projection on the components, as PCA has it.

        Returns
        -------
        (n, p) array
            In the kind of X.
        """
        check_is_fitted(self)
        W = self.weights_.astype(np.float64)
        if not shrunk:
            W = W + self._noise * np.linalg.pinv(W.T)
        return self._unproject(X, W.T * self._factor())

    def _imputed(self, X: Any, return_std: bool) -> Any:
        fn, p = _imputed_with_deviations if return_std else _imputed, self.n_features_in_
        return self._map(X, fn, self._mean, self._factor(), width=2 * p if return_std else p, as_it_is=True)

    def _sample(self, n: int, rng: np.random.Generator) -> Array:
        p, k = self.weights_.shape
        Z, E = rng.standard_normal((n, k)), rng.standard_normal((n, p))
        drawn = (Z @ self.weights_.astype(np.float64).T + np.sqrt(self._noise) * E) * self._factor() + self._mean
        return drawn.astype(self.weights_.dtype)

    # The Gaussian model

    def get_covariance(self) -> Array:
        """Return the covariance of the model, W W' + noise I, in the units of X, (p, p)."""
        check_is_fitted(self)
        W, factor = self.weights_, self._factor().astype(self.weights_.dtype)
        return (W @ W.T + self.noise_variance_ * np.eye(len(W), dtype=W.dtype)) * np.outer(factor, factor)

    def get_precision(self) -> Array:
        """Return the inverse of `get_covariance`, (p, p), by Woodbury's formula: nothing of that size is inverted."""
        check_is_fitted(self)
        V, dtype = self.components_.astype(np.float64).T, self.components_.dtype
        variances = np.maximum(self.explained_variance_.astype(np.float64), self._noise)
        return precision(V, variances, self._noise, self._factor()).astype(dtype)

    def _score_samples(self, X: Any) -> Any:
        return self._map(X, _log_likelihoods, np.log(self._factor()), width=1, dtype=np.float64)[:, 0]

    def _factor(self) -> Array:
        """Return what columns were divided by, ones if by nothing."""
        scale: Array | None = getattr(self, "_scale", None)  # model files of old versions do not have it
        return np.ones(len(self._mean)) if scale is None else scale

    def _centered(self, rows: Rows) -> Centered:
        factor = None if getattr(self, "_scale", None) is None else 1 / self._factor()
        return Centered(rows, self._mean, factor, dense_tiles=True)

    def _model(self) -> tuple[Array, float]:
        return self.weights_.astype(np.float64), self._noise


# Functions of tiles less the mean, row by row.


def _scores(block: Array, rows: slice, W: Array, noise: float) -> Array:
    found = probabilistic.posterior(block, W, noise)
    return found.in_order(found.scores)


def _scores_and_covariances(block: Array, rows: slice, W: Array, noise: float) -> Array:
    found, k = probabilistic.posterior(block, W, noise), W.shape[1]
    covariances = unpacked(found.covariance, k).reshape(-1, k * k)[found.patterns.which]
    return found.in_order(np.hstack([found.scores, covariances]))


def _log_likelihoods(block: Array, rows: slice, W: Array, noise: float, logarithms: Array) -> Array:
    found = probabilistic.posterior(block, W, noise)
    # The density of X, not of the scaled X.
    return (found.in_order(found.log_likelihood) - ~np.isnan(block) @ logarithms)[:, None]


# Of tiles as they are: observed cells stay the same to the last bit.


def _imputed(block: Array, rows: slice, W: Array, noise: float, mean: Array, scale: Array) -> Array:
    expected = _scores((block - mean) / scale, rows, W, noise) @ W.T
    return np.where(np.isnan(block), expected * scale + mean, block)


def _imputed_with_deviations(block: Array, rows: slice, W: Array, noise: float, mean: Array, scale: Array) -> Array:
    expected, variance = probabilistic.predict((block - mean) / scale, W, noise)
    missing = np.isnan(block)
    deviation = np.where(missing, np.sqrt(variance) * scale, 0.0)
    return np.hstack([np.where(missing, expected * scale + mean, block), deviation])


# What users give.


def _checked_rotation(rotation: Any, k: int) -> Array | None:
    """Return R as an array, found to be orthogonal."""
    if rotation is None:
        return None
    R = np.asarray(rotation, dtype=np.float64)
    if R.shape != (k, k):
        raise ValueError(f"rotation must be an orthogonal matrix of shape ({k}, {k}), got one of shape {R.shape}.")
    away = float(np.abs(R @ R.T - np.eye(k)).max()) if np.isfinite(R).all() else np.nan
    if not away <= 1e-6:
        raise ValueError(f"rotation must be an orthogonal matrix, R R' = I; this R R' differs from I by {away:.1g}.")
    return R


def _warnings(found: ModelFound, asked: Any, k: int, most: int, limit: int | None, rows: int | None) -> list[str]:
    """Return sentences about what makes the answer less than the user expects."""
    p = len(found.mean)
    if found.total <= 0:
        return ["X does not vary (all rows are equal): the noise is 0 and the components are arbitrary."]
    if isinstance(asked, str) and found.chosen == 0:
        return [f"n_components={asked!r} found nothing that stands out of the noise; one component is kept."]
    if isinstance(asked, str) and k == most and limit is None and most == MOST:
        return [f"n_components={asked!r} chose {k}, the most that was tried. Raise max_components to try more."]
    noiseless = k < p and found.noiseless
    if noiseless and (asked is not None or found.method == "em"):
        what = "component leaves" if k == 1 else "components leave"
        return [
            f"{k} {what} nothing of X: its noise is 0, which is given as {found.noise:.0e} so that the likelihood "
            "stays finite. Take fewer components."
        ]
    if found.most == k:
        return [
            f"n_components={asked!r} chose {k}, the most that could be judged: so many cells are missing that more "
            "components pass close to all the others, with hardly any noise left. Intervals of imputed cells may be "
            "too narrow."
        ]
    if isinstance(asked, str) and rows is not None and k > 1 and rows - 2 <= k < p:
        return [
            f"n_components={asked!r} chose {k} for {rows} rows, nearly as many as these have dimensions: hardly any "
            'noise is left to judge by. "ard" is better for few rows.'
        ]
    return []


def likelihood_in_words(log_likelihood: float, noise_variance: float) -> str:
    """Say how well a Gaussian model fits, and what it leaves to noise.

    >>> likelihood_in_words(-1245.9312, 1.6269)
    'Log-likelihood -1245.93, of all cells that are there; noise of standard deviation 1.275 in every feature.'
    """
    return (
        f"Log-likelihood {log_likelihood:.2f}, of all cells that are there; noise of standard deviation "
        f"{noise_variance**0.5:.4g} in every feature."
    )
