"""Sparse principal component analysis."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from princomp import _kinds as kinds
from princomp._kinds import Directions, Number, Numbers, Of, Word
from princomp._typing import Array
from princomp._warn import warn
from princomp.certificates.remainder import remainder
from princomp.data import Rows
from princomp.estimators.base import FromCovariance, Projection
from princomp.estimators.checks import check_choice, check_count, count_components
from princomp.estimators.covariance import Covariance
from princomp.estimators.explained import Kind, explained_variance
from princomp.estimators.sparse.certificate import SparseCertificate
from princomp.estimators.sparse.clashes import clash, formulation_of
from princomp.estimators.sparse.problem import Listener, SparseFound, SparseProblem
from princomp.estimators.standardise import as_given, standardise
from princomp.progress import Tell
from princomp.result import Certificate, History, Result, State, Status
from princomp.solvers.deflation import Deflation
from princomp.solvers.scatter import MATRIX_SIDE
from princomp.solvers.signs import signs

FORMULATIONS = ("cardinality", "dictionary", "regression", "constrained")
SCORES = ("projection", "least-squares")
ONE_BY_ONE = ("cardinality", "constrained")  # each component from what those before it left


class SparsePCA(FromCovariance, Projection):
    r"""Sparse PCA: components that use few features.

    For PCA most variance and least reconstruction error are one problem; with sparse components they are not, and so
    there are several formulations. With X centred and :math:`S = X^\top X`:

    ==============  ==================================================================================================
    formulation     problem
    ==============  ==================================================================================================
    cardinality     :math:`\max v^\top S v`, :math:`\|v\|_2 = 1`, at most ``nonzeros`` features, one after the other,
                    with a bound on what could be better (``certificate_``)
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
    formulation : {"auto", "cardinality", "dictionary", "regression", "constrained"}, default "auto"
        As above; "auto" is "constrained" if ``bound`` is given, "regression" if ``ridge`` or ``solver`` is,
        "dictionary" if ``alpha``, ``alpha_share``, ``code_alpha`` or ``radius`` is, else "cardinality".
    alpha : float or (k,) array, optional
        Weight of the l1 norm. It refers to X'X, not to a covariance: twice the rows want twice the alpha ("regression")
        or 1.4 times ("dictionary").
    alpha_share : float, optional
        The same as a share, from 0 to 1, of the alpha from which on nothing is left; 0.1 when neither is given.
    nonzeros : int or list of int, optional
        Instead: how many features each component may use; disjoint ``groups`` count as one each, of others the
        features are counted. The penalised formulations look for the smallest alpha that leaves so many, of
        "constrained" for the largest bound. With groups all components have the same alpha, and the one that uses
        most has that many.
    retain : float, default 0.9
        For "cardinality" without ``nonzeros``: the fewest features are looked for with which a component has this
        share of the largest variance there is, the leading eigenvalue of the deflated S. The search has a budget:
        where it ends with that, ``result_.status`` says so, and somewhat fewer may do.
    certify : bool, default False
        For "cardinality": prove by branch and bound how good each component is, given those before it, and replace it
        if a better one turns up. Without it there is a bound too, a cheap one.
    node_limit : int, optional
        For ``certify``: subproblems for the proof of each component. Cut off, it still is a proof, of a larger gap. A
        node limit gives the same answer on every computer; ``time_limit`` does not.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so. With ``certify`` it ends the proofs, each of which has an equal share of what is
        left, and not the search before them.
    include, exclude : list of int or str, optional
        For "cardinality": features, by number or name, that are forced into the features of each component (they
        count, and their loadings may still be 0), and that none may use.
    ridge : float, optional
        For "regression", from 0 to infinity; by default 1e-6 of the leading eigenvalue.
    radius : float, default 1
        For "dictionary": of the ball.
    code_alpha : float, optional
        For "dictionary": weight of \|Y\|_1. Without alpha the ball is then D's; with it, there is none.
    bound : float, optional
        For "constrained": from 1 (one feature) to sqrt(p) (no bound); by default 0.4 sqrt(p), at least 1.
    groups : list of lists of int or str, or (p,) labels, optional
        Features, by number or name, that enter together: for "dictionary" disjoint, nested or overlapping; for
        "cardinality" disjoint.
    nonnegative : bool, default False
        For "dictionary" and "cardinality": no negative loadings.
    solver : {"block", "amanpg", "one-shot"}, optional
        For "regression": "block" by default.
    deflation : {"schur", "projection", "generalised", "hotelling"}, default "schur"
        For "constrained" and "cardinality": what is left for the next component.
    n_init : int, default 1
        Starts, of which the best is kept ("regression"; "cardinality" always has many).
    scores : {"projection", "least-squares"}, optional
        What `transform` gives: X times loadings, or the least-squares coefficients of X in the loadings (the default
        of "dictionary"). With either, `inverse_transform` gives the projection of X on the span of the components,
        and what that explains of X is ``explained_variance("subspace")``.
    center, scale : bool
        As in `PCA`.
    tol : float, default 1e-5
        Bound on the relative residual of the optimality conditions.
    max_iter : int, default 1000
        Bound on iterations; for "cardinality" on those of each component.
    random_state, verbose, callback, checkpoint
        As in `PCA`.

    Attributes
    ----------
    components_ : (k, p) array
        Unit rows; the entry of largest magnitude is positive. A row of zeros means that nothing was worth its penalty,
        or that nothing was left.
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
    deflation_ : str or None
        The deflation in force; None where components are found together.
    result_ : Result
        ``value`` with the raw factors (Y and D, A and B, or V), ``objective`` of the formula above, ``certificate``,
        ``status``, ``history``.
    certificate_ : Certificate
        Residual of the optimality conditions. These problems are not convex: it certifies that no small step helps.
        For "cardinality" it has an entry per component of ``lower`` (its variance, as those before it left it),
        ``upper`` (no component of as many features has more), ``gap`` = (upper - lower) / upper, ``proved``, ``nodes``
        and ``seconds``, and the ``proofs`` (none without ``certify``). The other formulations have none of these.

    Examples
    --------
    >>> from princomp import SparsePCA
    >>> from princomp.datasets import load_wine
    >>> wine = load_wine()
    >>> sparse = SparsePCA(3, nonzeros=4, scale=True, certify=True).fit(wine.X)
    >>> sparse.nonzeros_
    array([4, 4, 4])
    >>> print(sparse.certificate_)
    All 3 components are proved best, each given those before it.
    >>> penalised = SparsePCA(3, formulation="regression", nonzeros=4, scale=True, random_state=0).fit(wine.X)
    >>> bool(penalised.explained_variance_.sum() < sparse.explained_variance_.sum())
    True
    """

    _fitted: ClassVar[Mapping[str, kinds.Kind]] = {
        "components_": Directions("k p", or_zero=True),
        "_scale": Numbers("p", kinds.POSITIVE, or_none=True, optional=True),
        "deflation_": Word(get_args(Deflation), or_none=True, optional=True),
        "_images": Numbers("p k", kinds.SQUARABLE),
        "_unit": Number(kinds.POSITIVE),
        "nonzeros_": Numbers("k", kinds.NONNEGATIVE, dtypes="i"),
        "alpha_": Numbers(None, kinds.VARIANCE, or_none=True, dtypes="fi"),
        "formulation_": Word(FORMULATIONS),
        "certificate_": Of(Certificate | SparseCertificate),
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        formulation: str = "auto",
        alpha: Any = None,
        alpha_share: Any = None,
        nonzeros: int | Sequence[int] | None = None,
        retain: float = 0.9,
        certify: bool = False,
        node_limit: int | None = None,
        time_limit: float | None = None,
        include: Any = None,
        exclude: Any = None,
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
        self.retain = retain
        self.certify = certify
        self.node_limit = node_limit
        self.include = include
        self.exclude = exclude
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
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    # Fitting

    def _fit(self, X: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        formulation = self._check_parameters()
        k = self._count(min(rows.shape), formulation)
        # A pass over data on workers is dear: X'X comes with the mean, and no other is needed.
        at_once = formulation == "cardinality" and not rows.local and rows.shape[1] <= MATRIX_SIDE
        standard = standardise(rows, center=self.center, scale=self.scale, scatter=at_once, names=self._names)
        size = {"k": k, "total": standard.total, "unit": standard.unit, "freedom": rows.shape[0] - 1.0}
        problem = self._problem(tell, rows, X=standard.X, known=standard.scatter, **size)
        found = _solve(formulation, problem)
        self._keep(found, formulation, problem, standard.mean, standard.scale, rows.dtype)
        self.n_samples_: int | None = rows.shape[0]
        if standard.scatter is None:  # else the data were read once
            standard.require_unchanged(self._names)

    def _fit_covariance(self, covariance: Covariance, tell: Tell) -> None:
        formulation, p = self._check_parameters(), len(covariance.matrix)
        k = self._count(p, formulation)
        scaled, scale = covariance.scaled() if self.scale else (covariance, None)
        S = covariance.freedom * scaled.matrix
        size = {"k": k, "total": float(np.trace(S)), "unit": scaled.unit, "freedom": covariance.freedom}
        problem = self._problem(tell, S=S, **size)
        self._keep(_solve(formulation, problem), formulation, problem, np.zeros(p), scale, covariance.dtype)
        self.n_samples_ = covariance.n_samples

    def _problem(self, tell: Tell, *rows: Rows, **data: Any) -> SparseProblem:
        """Return what to solve: the data, and what is the same for rows and for a matrix."""
        listener = Listener(tell)
        return SparseProblem(
            parameters=self._parameters_by_number(),
            rng=self._generator(),
            drive=self._drive(listener, *rows),
            tell=listener,
            names=self._names,
            **data,
        )

    def _parameters_by_number(self) -> dict[str, Any]:
        """Return the parameters, features by number."""
        parameters = self._parameters()
        for name in ("include", "exclude"):
            if parameters[name] is not None:
                parameters[name] = self._numbers(parameters[name], name)
        if isinstance(self.groups, list | tuple):
            parameters["groups"] = [
                self._numbers(group, "groups") if _holds_names(group) else group for group in self.groups
            ]
        return parameters

    def _parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in SparsePCA._get_param_names()}  # not those of a subclass

    def _numbers(self, features: Any, parameter: str) -> list[int]:
        """Return features given by number or name as numbers."""
        names = self._names
        known = {} if names is None else {name: j for j, name in enumerate(names)}
        numbers = []
        for feature in [features] if isinstance(features, str | Integral) else features:
            number: Any = feature
            if isinstance(feature, str):
                number = known.get(feature, int(feature) if feature.isdecimal() else None)
            whole = isinstance(number, Integral) and not isinstance(number, bool)
            if not whole or not 0 <= int(number) < self.n_features_in_:
                hint = "features have no names here" if names is None else "see feature_names_in_"
                raise ValueError(
                    f"{parameter} names the feature {feature!r}, which is none: give numbers from 0 to "
                    f"{self.n_features_in_ - 1}, or names ({hint})."
                )
            numbers.append(int(number))
        return sorted(set(numbers))

    def _check_parameters(self) -> str:
        """Return the formulation in force; complain about parameters that mean nothing."""
        check_choice("formulation", self.formulation, ("auto", *FORMULATIONS))
        if self.scores is not None:
            check_choice("scores", self.scores, SCORES)
        check_count("n_init", self.n_init)
        if not (isinstance(self.radius, Real) and self.radius > 0):
            raise ValueError(f"radius must be a number above 0, got {self.radius!r}.")
        self._check_limits()
        self._check_kinds()
        check_count("node_limit", self.node_limit, or_none=True)
        parameters = self._parameters()
        wrong = clash(parameters)
        if wrong is not None:
            raise ValueError(wrong)
        return formulation_of(parameters)

    def _check_kinds(self) -> None:
        """Complain about values of the wrong kind that would be taken for others."""
        for name in ("certify", "nonnegative", "center", "scale"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}.")
        if isinstance(self.nonzeros, bool | np.bool_):
            raise ValueError(f"nonzeros must be an integer, or a list of them; got {self.nonzeros!r}.")
        if isinstance(self.retain, bool | np.bool_) or not isinstance(self.retain, Real):
            raise ValueError(f"retain must be a number above 0, up to 1, got {self.retain!r}.")
        groups = list(self.groups) if np.iterable(self.groups) else []
        if groups and isinstance(groups[0], Integral) and len(groups) != self.n_features_in_:
            raise ValueError(
                f"groups must hold one label for each of the {self.n_features_in_} features, got {len(groups)} labels; "
                "or give lists of features."
            )

    def _count(self, most: int, formulation: str) -> int:
        return count_components(self.n_components, most, more=formulation == "dictionary")

    def _keep(
        self, found: SparseFound, formulation: str, problem: SparseProblem, mean: Array, scale: Any, dtype: Any
    ) -> None:
        """Derive all attributes from what was found: the one place."""
        freedom = problem.freedom
        size = np.linalg.norm(found.loadings, axis=0)
        V = np.divide(found.loadings, size, out=np.zeros_like(found.loadings), where=size > 0)
        sign = signs(V)
        V = V * sign + 0.0  # no -0.0
        # S V, S the covariance in safe units: all kinds of variance follow.
        self._images, self._unit = problem.images(V) / freedom, problem.unit
        returned = np.ascontiguousarray(V.T).astype(dtype).astype(np.float64).T
        variances = as_given(explained_variance(self._images, returned), self._unit)
        share = explained_variance(self._images, V) / (problem.total / freedom if problem.total > 0 else 1.0)
        self._keep_directions(V, variances, share, mean, scale, dtype)
        self._scale = scale  # in full precision
        self.formulation_ = formulation
        self.deflation_ = self.deflation if formulation in ONE_BY_ONE else None
        self.nonzeros_ = (V != 0).sum(axis=0)
        self.alpha_ = found.alpha
        value = {name: array * sign for name, array in found.value.items()}
        self._keep_result(replace(found.run, value=value, objective=found.objective))
        self.n_iter_ = max(self.n_iter_, 1)
        empty = int((self.nonzeros_ == 0).sum())
        if empty and problem.total > 0 and self.result_.status:
            why = "the others leave nothing" if formulation == "cardinality" else "nothing was worth the penalty"
            advice = "Ask" if formulation == "cardinality" else "Lower alpha, or ask"
            warn(f"{empty} of {problem.k} components are zero: {why}. {advice} for fewer components.")

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
        return as_given(explained_variance(self._images, self.components_.astype(np.float64).T, kind), self._unit)

    def deflated_covariance(self, S: Any, component: int) -> Array:
        """Return what the components before left of a covariance matrix: what a proof in ``certificate_`` is about.

        Parameters
        ----------
        S : (p, p) array
            The covariance of the data (n - 1), or the matrix given to `fit_covariance`. With ``scale=True`` not the
            correlations: it is scaled here.
        component : int
            The number of the component, from 0; the number of components for what all of them left.

        Returns
        -------
        (p, p) array
            For `princomp.certificates.verify`.

        Examples
        --------
        >>> from princomp import SparsePCA, certificates
        >>> from princomp.datasets import load_pitprops
        >>> S = load_pitprops().correlation
        >>> sparse = SparsePCA(2, nonzeros=5, certify=True).fit_covariance(S)
        >>> bool(certificates.verify(sparse.deflated_covariance(S, 1), sparse.certificate_.proofs[1]))
        True
        """
        check_is_fitted(self, "components_")
        if self.formulation_ not in ONE_BY_ONE:
            raise ValueError(f'formulation="{self.formulation_}" finds its components together: nothing is deflated.')
        matrix, p, k = np.asarray(S, dtype=np.float64), self.n_features_in_, self.n_components_
        if matrix.shape != (p, p):
            raise ValueError(
                f"S must be the ({p}, {p}) covariance of the features of the fit, got shape {matrix.shape}."
            )
        check_count("component", component, k, least=0)
        # Files of earlier versions have neither the scale in full precision nor the deflation of the fit.
        scale = getattr(self, "_scale", self.scale_)
        if scale is not None:
            if np.allclose(np.diag(matrix), 1.0) and not np.allclose(scale, 1.0):
                raise ValueError(
                    "S is a correlation matrix, but this fit has scale=True and scales S itself: give the covariance, "
                    "np.cov(X.T)."
                )
            matrix = matrix / np.outer(scale, scale)
        kind = getattr(self, "deflation_", None) or self.deflation
        return remainder(matrix, self.result_.value["V"][:, : int(component)], kind)[0]

    def _to_scores(self) -> Array:
        V = self.components_.astype(np.float64).T
        return np.linalg.pinv(V).T if self._least_squares() else V

    def _from_scores(self) -> Array:
        V = self.components_.astype(np.float64).T
        return V.T if self._least_squares() else np.linalg.pinv(V)

    def _least_squares(self) -> bool:
        if self.scores is None:
            return bool(self.formulation_ == "dictionary")
        return self.scores == "least-squares"


def _holds_names(group: Any) -> bool:
    return isinstance(group, list | tuple) and any(isinstance(feature, str) for feature in group)


def _solve(formulation: str, problem: SparseProblem) -> SparseFound:
    """Return what a formulation finds: each has a file of its name, imported when it is used."""
    if not problem.total > 0:
        return _nothing_varies(problem, formulation)
    found: SparseFound = import_module(f"princomp.estimators.sparse.{formulation}").solve(problem)
    return found


def _nothing_varies(problem: SparseProblem, formulation: str) -> SparseFound:
    """Return components of zeros: nothing can be explained."""
    warn("X does not vary (all rows are equal): all components are zero.")
    V = np.zeros((problem.width, problem.k))
    if formulation == "cardinality":
        from princomp.estimators.sparse.cardinality import certificate_of_nothing

        certificate: Certificate = certificate_of_nothing(problem)
    else:
        certificate = Certificate(0.0, problem.parameters["tol"], "global")
    result = Result({"V": V}, 0.0, certificate, Status("exact", "Nothing varies."), 1, History())
    return SparseFound(V, {"V": V}, 0.0, result)
