"""Mixtures of probabilistic PCA: groups of samples, each with a subspace of its own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp._kinds import NONNEGATIVE, POSITIVE, SQUARABLE, Count, Directions, Kind, Number, Numbers, Shares
from princomp._typing import Array
from princomp._warn import warn
from princomp.certificates.likelihood import step_gain
from princomp.data import Centered, Rows, statistics
from princomp.estimators.checks import check_count, checked_weight, count_components
from princomp.estimators.density import CellDensity
from princomp.estimators.description import Description, Scores, as_table
from princomp.estimators.mixture_description import describe_mixture, scores_in_groups, scores_times_probabilities
from princomp.estimators.probabilistic_fit import check_unchanged, check_variance, observed, of_data, total_variance
from princomp.estimators.probabilistic_together import never_together
from princomp.progress import Tell
from princomp.result import Result, State, measured
from princomp.solvers import probabilistic, probabilistic_mixture
from princomp.solvers.probabilistic_em import Data
from princomp.solvers.probabilistic_mixture import Limits, Mixture, responsibilities
from princomp.solvers.signs import signs

SAMPLE = 5000  # rows from which the starts are guessed
ESTIMATED = "as estimated from the last steps; whether it is a maximum was not looked at"
MEASURED = "the gain of one further step, for each cell; whether it is a maximum was not looked at"
RESOLVED = (8 * np.finfo(np.float64).eps) ** 2  # of the square of the data: variance below this is rounding


class ProbabilisticPCAMixture(CellDensity):
    r"""A mixture of probabilistic PCA models: clusters, each with principal axes of its own.

    A row belongs to cluster c with probability :math:`\pi_c` and is then :math:`x = W_c z + \mu_c + e` with
    :math:`z \sim N(0, I_k)` and :math:`e \sim N(0, \sigma_c^2 I_p)`. All parameters are those of largest likelihood of
    the observed cells (NaN = missing at random), by expectation maximisation from several starts.

    Parameters
    ----------
    n_components : int, default 1
        Dimension k of each cluster's subspace.
    n_clusters : int, default 2
        Number of clusters.
    n_init : int, default 10
        Starts, by turns of clusters around points (k-means) and around subspaces, which finds clusters that cross (of
        more than half of the dimensions every fourth). All make a few steps, the better half some more, and the best
        one goes on to the end.
    tol : float, default 1e-6
        Bound on the estimated gain of the log-likelihood that is left, for each observed cell.
    max_iter : int, default 1000
        Bound on iterations.
    random_state : int, RandomState or None, default None
        Seed of the starts and of `sample`.
    verbose, callback, checkpoint
        As in `PCA`.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so.

    Attributes
    ----------
    shares_ : (m,) array
        Probabilities of the clusters, largest first.
    means_ : (m, p) array
        Their means.
    weights_ : (m, p, k) array
        Their W.
    components_ : (m, k, p) array
        Their principal axes: orthonormal rows, largest variance first; the entry of largest magnitude is positive.
    noise_variance_ : (m,) array
        Their :math:`\sigma^2`. Each is at least 1e-13 of its own cluster's mean variance: rows that lie in a subspace
        have a likelihood without bound. A warning says so if a cluster is there.
    log_likelihood_ : float
        Of the observed cells of all rows.
    n_components_, n_samples_, n_features_in_, n_iter_ : int
        Counts.
    result_ : Result
        ``value`` ("share", "W", "mean", "noise"), ``objective`` (the log-likelihood), ``certificate``, ``status``, and
        in ``history.objective`` the log-likelihood after each step.
    certificate_ : Certificate
        The gain of one further step, for each observed cell, measured on the model that is returned (if EM was ended
        early, the gain left as estimated from its last steps; it is in ``details["estimated gain"]``, too). A mixture's
        likelihood has many maxima and saddles: this is one of them, and which of the two it is was not looked at.

    See Also
    --------
    ProbabilisticPCA : One cluster.

    Examples
    --------
    >>> from princomp import ProbabilisticPCAMixture
    >>> from princomp.datasets import make_height_weight
    >>> people = make_height_weight(random_state=0)
    >>> mixture = ProbabilisticPCAMixture(1, n_clusters=2, random_state=0).fit(people.X)
    >>> first = mixture.predict(people.X)
    >>> share = (first == people.groups).mean()
    >>> bool(max(share, 1 - share) > 0.98)  # clusters have no names
    True
    >>> bool((mixture.components_ > 0).all())  # in each group the taller are heavier
    True
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "shares_": Shares("m"),
        "means_": Numbers("m p", SQUARABLE, rounds="_means"),
        "_means": Numbers("m p", SQUARABLE),
        "weights_": Numbers("m p k", SQUARABLE),
        "components_": Directions("m k p"),
        "noise_variance_": Numbers("m", NONNEGATIVE, rounds="_noise"),
        "_noise": Numbers("m", POSITIVE),
        "log_likelihood_": Number(),
        "n_samples_": Count(1),
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        n_clusters: int = 2,
        n_init: int = 10,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_clusters = n_clusters
        self.n_init = n_init
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    # Fitting

    def _fit(self, X: Any, sample_weight: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        n, p = rows.shape
        check_count("n_clusters", self.n_clusters, n)
        count_components(self.n_components, p, of="", or_none=False)
        check_count("n_init", self.n_init)
        self._check_limits()
        weight = checked_weight(sample_weight, n)
        data = observed(rows, weight, self._names)
        total = total_variance(data)
        check_variance(total, total, rows.dtype)
        limits = _limits(data)
        how: dict[str, Any] = {"weight": weight, "limits": limits}
        solver = partial(probabilistic_mixture.em, data.around(), **how)
        starts = self._starts(data.around(), weight, limits.floor)
        begin = probabilistic_mixture.best_of(data.around(), starts, **how, tol=self.tol, deadline=tell.deadline)
        result = self._drive(tell, rows, weight=weight)(solver, begin)
        apart = None if data.complete else never_together(data, self._names)
        if apart is not None:
            warn(apart)
        collapsed = int(limits.collapsed(Mixture.of(result.value)).sum())
        if collapsed:
            warn(
                f"{collapsed} of {self.n_clusters} clusters have no noise left, or no more rows than fix a subspace: "
                "the likelihood has no bound there, and says nothing. Take fewer clusters or components."
            )
        result = of_data(result, data.moments.cells * np.log(data.unit))
        self._keep(result, data.moments.mean, data.unit, rows.dtype)
        self._keep_result(self._certified(self.result_, data, limits))
        check_unchanged(data, self._names)
        self.n_samples_ = n

    def _starts(self, X: Centered, weight: Array | None, floor: float) -> list[Mixture]:
        """Return mixtures to start from, guessed from some of the rows."""
        rng, n = self._generator(), X.shape[0]
        some = np.arange(n) if n <= SAMPLE else np.sort(rng.choice(n, SAMPLE, replace=False))
        sample = statistics.take(X, some)
        counts = np.ones(len(sample)) if weight is None else weight[some]
        if not counts.any():
            counts = np.ones(len(sample))
        sample, counts = sample[counts > 0], counts[counts > 0]
        all_of_them = probabilistic_mixture.guesses(sample, counts, self.n_clusters, self.n_components, floor, rng)
        return list(islice(all_of_them, self.n_init))

    def _keep(self, result: Result, about: Array, unit: float, dtype: Any) -> None:
        """Derive all attributes: the one place."""
        found = Mixture.of(result.value)
        order = np.argsort(-found.share, kind="stable")
        share, W, shift, noise = (array[order] for array in found)
        axes, sizes, _ = np.linalg.svd(W / unit, full_matrices=False)
        axes = axes * np.array([signs(each) for each in axes])[:, None, :]
        noise = noise / unit / unit
        self._means, self._noise = about + shift / unit, noise  # in full precision
        self.n_components_ = W.shape[2]
        self.shares_ = share.astype(dtype)
        self.means_ = self._means.astype(dtype)
        self.weights_ = (axes * sizes[:, None, :]).astype(dtype)
        self.components_ = np.ascontiguousarray(axes.transpose(0, 2, 1)).astype(dtype)
        self.noise_variance_ = noise.astype(dtype)
        self.log_likelihood_ = result.objective
        value = {"share": share, "W": axes * sizes[:, None, :], "mean": self._means, "noise": noise}
        self.result_ = replace(result, value=value)

    def _certified(self, result: Result, data: Data, limits: Limits) -> Result:
        """Return the result with what one further step gains, measured if EM ended by itself, from its own model."""
        unit, about = data.unit, data.moments.mean
        share, W, means, noise = (result.value[name] for name in ("share", "W", "mean", "noise"))
        if result.status:
            model = Mixture(share, W * unit, (means - about) * unit, noise * unit * unit)
            expect = partial(probabilistic_mixture.expect, data.around(), weight=data.weight, limits=limits)
            maximise = partial(probabilistic_mixture.maximise_all, limits=limits)
            gain = step_gain(expect, maximise, model, cells=limits.cells)
            return measured(result, gain, {"meaning": MEASURED, "estimated gain": result.certificate.residual})
        return replace(result, certificate=replace(result.certificate, details={"meaning": ESTIMATED}))

    def _describe(self) -> Description:
        return describe_mixture(self)

    def _describe_scores(self, X: Any, y: Any, values: Any) -> Scores:
        m = len(self.shares_)
        if values is not None:
            return scores_times_probabilities(as_table(values), m)
        both = np.asarray(self._map(X, _in_its_cluster, width=m + self.n_components_))
        return scores_in_groups(both[:, :m], both[:, m:])

    # Using the fit

    def responsibilities(self, X: Any) -> Any:
        """Return the probability of each cluster, given the observed cells of each row.

        Parameters
        ----------
        X : as in `fit`
            Data; NaN = missing.

        Returns
        -------
        (n, m) array
            In the kind of X. A row without any cell gets ``shares_``.
        """
        check_is_fitted(self)
        return self._map(X, _shares, width=len(self.shares_))

    def predict(self, X: Any) -> Any:
        """Return the most probable cluster of each row.

        Parameters
        ----------
        X : as in `fit`
            Data; NaN = missing.

        Returns
        -------
        (n,) array of int
        """
        return self._map(X, _clusters, width=1, dtype=np.intp)[:, 0]

    def transform(self, X: Any) -> Any:
        """Return the posterior means of the latent scores in each cluster, times the cluster's probability.

        Parameters
        ----------
        X : as in `fit`
            Data; NaN = missing.

        Returns
        -------
        (n, m k) array
            The k scores of the first cluster, then those of the next. A row that surely belongs to one has zeros for
            the others.
        """
        check_is_fitted(self)
        return self._map(X, _scores, width=self._n_features_out)

    def _imputed(self, X: Any, return_std: bool) -> Any:
        return self._map(X, _imputed, self._means[0], width=2 * self.n_features_in_, as_it_is=True)

    def _score_samples(self, X: Any) -> Any:
        return self._map(X, _log_likelihoods, width=1, dtype=np.float64)[:, 0]

    def _sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        share = self.shares_.astype(np.float64)
        cluster = rng.choice(len(share), n, p=share / share.sum())
        W, p = self.weights_.astype(np.float64)[cluster], self.n_features_in_
        drawn = np.einsum("npk,nk->np", W, rng.standard_normal((n, self.n_components_))) + self._means[cluster]
        drawn += np.sqrt(self._noise[cluster])[:, None] * rng.standard_normal((n, p))
        return drawn.astype(self.weights_.dtype), cluster

    def _model(self) -> tuple[Mixture]:
        """Return the mixture, its means less the first one."""
        shares, W = self.shares_.astype(np.float64), self.weights_.astype(np.float64)
        return (Mixture(shares, W, self._means - self._means[0], self._noise),)

    def _centered(self, rows: Rows) -> Centered:
        return Centered(rows, self._means[0], dense_tiles=True)

    @property
    def _n_features_out(self) -> int:
        return len(self.shares_) * self.n_components_


def _limits(data: Data) -> Limits:
    """Return what the data resolve, in their units."""
    p, moments = data.rows.shape[1], data.moments
    size = float(np.max(np.abs(moments.mean * data.unit))) ** 2 + p * moments.variance
    single = 1.0 if data.weight is None else min(1.0, float(data.weight[data.weight > 0].min()))
    return Limits(max(RESOLVED * size, np.finfo(np.float64).tiny), moments.cells, moments.total, single)


# Functions of tiles less the first mean, row by row.


def _shares(block: Array, rows: slice, mixture: Mixture) -> Array:
    return responsibilities(block, mixture).share


def _clusters(block: Array, rows: slice, mixture: Mixture) -> Array:
    return responsibilities(block, mixture).share.argmax(axis=1)[:, None]


def _scores(block: Array, rows: slice, mixture: Mixture) -> Array:
    found = responsibilities(block, mixture)
    each = zip(found.clusters, found.share.T)
    return np.hstack([cluster.in_order(cluster.scores) * share[:, None] for cluster, share in each])


def _in_its_cluster(block: Array, rows: slice, mixture: Mixture) -> Array:
    """Return the probabilities of all clusters, then the scores in the most probable one."""
    found = responsibilities(block, mixture)
    scores = np.stack([cluster.in_order(cluster.scores) for cluster in found.clusters])
    return np.hstack([found.share, scores[found.share.argmax(axis=1), np.arange(len(block))]])


def _log_likelihoods(block: Array, rows: slice, mixture: Mixture) -> Array:
    return responsibilities(block, mixture).log_likelihood[:, None]


def _imputed(block: Array, rows: slice, mixture: Mixture, mean: Array) -> Array:
    """Return cells and their standard deviations side by side: of the mixture of the clusters' predictions.

    The tile comes as it is: observed cells stay the same to the last bit.
    """
    centred = block - mean
    share = responsibilities(centred, mixture).share
    found = []
    for W, shift, noise in zip(mixture.W, mixture.shift, mixture.noise):
        of_cluster, variance = probabilistic.predict(centred - shift, W, float(noise))
        found.append((of_cluster + shift, variance))
    expected = sum((share[:, c, None] * each for c, (each, _) in enumerate(found)), np.zeros_like(block))
    # Squares of differences, and not differences of squares: clusters may be far apart.
    parts = (
        share[:, c, None] * (each_variance + (each - expected) ** 2) for c, (each, each_variance) in enumerate(found)
    )
    missing, deviation = np.isnan(block), np.sqrt(sum(parts, np.zeros_like(block)))
    return np.hstack([np.where(missing, expected + mean, block), np.where(missing, deviation, 0.0)])
