"""Kernel principal component analysis."""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from princomp._kinds import NONNEGATIVE, SHARE, SQUARABLE, VARIANCE, Count, Kind, Number, Numbers, Of, Word
from princomp._typing import Array
from princomp._warn import warn
from princomp.data import Rows, as_rows, statistics
from princomp.data.running import Running
from princomp.data.wrapped import map_pieces
from princomp.estimators.base import Estimator
from princomp.estimators.checks import check_choice, check_count, check_values, count_components
from princomp.estimators.description import Description, Scores, usual_scores
from princomp.estimators.kernel_choice import HELD_OUT, Wish, choose
from princomp.estimators.kernel_description import NEGLIGIBLE, describe_kernel, scores_and_novelty, scores_with_novelty
from princomp.estimators.kernel_fit import (
    APPROXIMATIONS,
    Features,
    Found,
    Question,
    find,
    first_look,
    last_look,
    novelty,
    scores,
)
from princomp.estimators.kernel_partial import (
    ONLY_FOURIER,
    Seen,
    begin,
    check_unchanged,
    components,
    go_on,
    more_examples,
)
from princomp.estimators.kernel_preimage import (
    Model,
    Way,
    check_preimage,
    denoised,
    feature_map,
    itself,
    kept_examples,
    most_examples,
    numbers,
    resolve_preimage,
    restored,
    way_back,
)
from princomp.kernels import Function, Kernel
from princomp.progress import Tell
from princomp.result import State
from princomp.solvers.preimage import STEPS, TOL

# The way back of models, with the coefficients it was made for: found when it is first gone, from what the model holds.
_ways: WeakKeyDictionary[Any, tuple[Array, str, Way]] = WeakKeyDictionary()

MUCH = 0.5  # of the standard deviation of cells: noise as large leaves little to restore


class KernelPCA(Estimator):
    """Principal components in the feature space of a kernel: curved directions in which the data vary.

    With K the kernel matrix of the training rows and Kc the same, centred: Kc V = V diag(l). The scores of the training
    rows are V sqrt(l), those of a new row x are kc(x)' V / sqrt(l), kc(x) its kernel values with the training rows,
    centred by the means of *these*.

    Parameters
    ----------
    n_components : int, "held-out" or None, default None
        How many components; None for all with positive eigenvalues. "held-out": those that restore rows best which
        were left out of a fit and to which noise was added, a fifth of the rows, 300 at the most, of 4000 at the most.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "rbf", "laplacian", "polynomial" (or "poly"), "cosine", "sigmoid", "knn-rbf" (radial among
        neighbours), "normalized-rbf" (the normalised graph Laplacian), "precomputed" (X is the kernel matrix itself), a
        function of two rows, or an object of `princomp.kernels`.
    gamma : float, "scale", "median", "held-out" or None, default None
        The kernel's width: None is 1 / n_features; see `princomp.kernels.bandwidth`. "held-out": as for
        ``n_components``, from "median" on by factors of 2.
    degree : int, default 3
        Of the polynomial kernel.
    coef0 : float, default 1
        Of the polynomial and the sigmoid kernel.
    n_neighbors : int, optional
        Of "knn-rbf" (10 if not given) and "normalized-rbf" (all rows if not given).
    kernel_params : mapping, optional
        What else a callable is called with.
    approximation : {"auto", "nystroem", "rpcholesky", "fourier"} or None, default "auto"
        None solves exactly, without the matrix in memory if need be. "nystroem" takes some rows as landmarks at random,
        "rpcholesky" by randomly pivoted Cholesky, "fourier" random features of "rbf" and "laplacian". "auto" is exact
        up to 20,000 rows (5,000 for all components) while the kernel matrix fits into memory, and "rpcholesky" beyond,
        where that is the difference between a second and a minute; kernels that landmarks prove nothing of are exact.
    rank : int, optional
        How many landmarks, or Fourier features; max(720, 10 n_components) if not given, and at most n_samples, or as
        many as memory allows. Time grows with n_samples times its square.
    landmarks : array of int, or (m, p) array, optional
        Row numbers, or rows, that are the landmarks of "nystroem".
    preimage : {"fixed-point", "ridge"} or None, default None
        How `inverse_transform` and `denoise` find rows: "fixed-point" is the row whose image is nearest, for "rbf"
        alone; "ridge" is a regression of rows on their scores, learnt from 2000 training rows at the most, evenly
        picked, of exact fits, and of others if it is asked for here; else from the landmarks, or as many rows. None is
        the nearest row for "rbf" and "linear", and "ridge" for all other kernels.
    noise : float, optional
        For "held-out": the standard deviation of the noise that is to be taken off. With a number rows count as clean,
        and what is restored is compared with them. Without, they have noise already, as much as there is along their
        median principal component; a row x is then restored from x + e and compared with x - e, e being as much noise
        again, so that nothing is gained by keeping any.
    tol : float, default 1e-6
        Bound on the certificate: the residual of each eigenvector, relative to its own eigenvalue.
    max_iter : int, default 1000
        Of the iteration for large exact problems.
    random_state : int, RandomState or None
        Seed of landmarks, features and iterations.
    verbose : int, default 0
        Whether to show progress.
    callback : callable, optional
        Called with each state of an iteration; a true answer stops it.
    checkpoint : path, optional
        Where the state of an unfinished fit is kept.
    time_limit : float, optional
        Seconds for the whole fit. Then it ends at its next state with the best answer so far, a warning, and
        ``result_.status`` to say so. A kernel matrix that is decomposed as a whole is so to its end.

    Attributes
    ----------
    eigenvalues_ : (k,) array
        Of the centred kernel matrix, or of its approximation; not divided by the number of rows.
    explained_variance_ : (k,) array
        Variances of the training scores: eigenvalues over n_samples - 1.
    explained_variance_ratio_ : (k,) array
        Eigenvalues over the trace of the centred matrix. Where some are negative, over the sum of the positive ones;
        with landmarks, over the trace of the approximation plus all that it leaves out.
    eigenvalue_intervals_, ratio_intervals_ : (k, 2) arrays or None
        With landmarks and a positive semidefinite kernel: where eigenvalues of the exact matrix, and their shares,
        lie for sure. None for other fits.
    negative_share_ : float or None
        Sum of the negative eigenvalues over that of all, in magnitude; None where it is not known.
    kernel_ : Kernel or None
        The kernel that was used; None if the matrix was given.
    gamma_ : float or None
        Its width.
    approximation_ : str
        "exact", "nystroem", "rpcholesky" or "fourier".
    held_out_ : (m, 3) array or None
        For "held-out": gamma (0 if the kernel has none), number of components and mean squared error of each model
        tried. See `princomp.plots.held_out_errors`.
    noise_ : float or None
        For "held-out": the standard deviation of the noise that was added.
    n_components_, n_features_in_, n_samples_, n_iter_ : int
        Counts.
    certificate_ : Certificate
        How good the eigenvectors are.
    result_ : Result
        Status, history, and V with its eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import KernelPCA
    >>> from princomp.datasets import make_circles
    >>> data = make_circles(200, random_state=0)
    >>> scores = KernelPCA(2, gamma=2.0).fit_transform(data.X)
    >>> scores.shape
    (200, 2)
    """

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "eigenvalues_": Numbers("k", NONNEGATIVE),
        "explained_variance_": Numbers("k", VARIANCE),
        "explained_variance_ratio_": Numbers("k", SHARE),
        "eigenvalue_intervals_": Numbers("k two", NONNEGATIVE, or_none=True),
        "ratio_intervals_": Numbers("k two", SHARE, or_none=True),
        "negative_share_": Number(SHARE, or_none=True),
        "kernel_": Of(Kernel, or_none=True),
        "gamma_": Number(NONNEGATIVE, or_none=True),
        "approximation_": Word(("exact", *APPROXIMATIONS)),
        "n_samples_": Count(2),
        # F(x) has w entries: kernel values with the basis (training rows or landmarks; None if the matrix was given),
        # or cosines and sines for a basis of frequencies.
        "_basis": Numbers("m p", or_none=True),
        "_about": Numbers("p", or_none=True),
        "_coefficients": Numbers("w k", SQUARABLE),  # scores are F(x) times these, less the offset
        "_offset": Numbers("k", SQUARABLE),
        "_mean": Numbers("w", SQUARABLE),  # F(x) times this is the mean of k(x, x_i), or the trivial score
        "_mean_square": Number(),  # of k(x_i, x_j), over all training rows
        "held_out_": Numbers("tried three", NONNEGATIVE, or_none=True, optional=True),
        "noise_": Number(NONNEGATIVE, or_none=True, optional=True),
        "_scatter": Numbers("w w", or_none=True, optional=True),  # of the features, for `partial_fit` to go on with
        "_examples": Numbers("e p", or_none=True, optional=True),  # training rows, for the way back
    }

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        kernel: str | Kernel | Callable[..., float] = "rbf",
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_neighbors: int | None = None,
        kernel_params: Mapping[str, Any] | None = None,
        approximation: str | None = "auto",
        rank: int | None = None,
        landmarks: Any = None,
        preimage: str | None = None,
        noise: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        time_limit: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_neighbors = n_neighbors
        self.kernel_params = kernel_params
        self.approximation = approximation
        self.rank = rank
        self.landmarks = landmarks
        self.preimage = preimage
        self.noise = noise
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint, time_limit)

    # Fitting

    def _fit(self, X: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        self._check_parameters(rows)
        wish = Wish(_is_held_out(self.gamma), _is_held_out(self.n_components), self.preimage, self.noise)
        asked = self._question(rows, tell, "median" if wish.gamma else self.gamma)
        chosen = choose(statistics.here(rows), asked, wish) if wish.gamma or wish.k else None
        found = find(rows, asked if chosen is None else chosen.asked)
        self._keep(found, rows.dtype, rows.shape[0])
        self.held_out_ = None if chosen is None else chosen.tried
        self.noise_ = None if chosen is None else chosen.noise
        way = resolve_preimage(self.preimage, found.kernel)
        how = {"asked": self.preimage is not None}
        self._examples = kept_examples(rows, found.approximation, len(found.coefficients), way, **how)
        last_look(rows, found.looked_at, self._names)
        if self.noise is None and self.noise_ is not None and found.looked_at is not None:
            _warn_of_noise(self.noise_, found.looked_at.total / (rows.shape[0] * rows.shape[1]))

    def _question(self, rows: Rows, tell: Tell, gamma: Any) -> Question:
        return Question(
            k=None if isinstance(self.n_components, str | None) else int(self.n_components),
            kernel=self.kernel,
            kernel_options={
                "gamma": gamma,
                "degree": self.degree,
                "coef0": self.coef0,
                "n_neighbors": self.n_neighbors,
                "kernel_params": self.kernel_params,
            },
            approximation=self.approximation,
            rank=self.rank,
            landmarks=self.landmarks,
            tol=self.tol,
            max_iter=self.max_iter,
            generator=self._generator,
            drive=self._drive(tell, rows),
            names=self._names,
        )

    @property
    def partial_fit(self) -> Callable[..., Self]:
        """Fit the model to further rows, with approximation="fourier": ``partial_fit(X, y=None)`` returns self.

        Frequencies are drawn at the first call, of at least 2 rows, or by `fit`. Of all rows count, mean and scatter
        matrix of their features are kept, so that after each call the model is that of a fit to all rows so far,
        whatever the batches (with as many features: ``rank`` is not held to the number of rows). ``gamma`` must be a
        number or None. Kernel, ``gamma`` and ``rank`` must stay what they were: `fit` begins anew. `princomp.save`
        keeps what is needed to go on.

        Parameters
        ----------
        X : as in `fit`
            Some rows.
        y : None
            Ignored.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from princomp import KernelPCA
        >>> X = np.random.default_rng(0).normal(size=(300, 3))
        >>> model = KernelPCA(2, approximation="fourier", random_state=0)
        >>> for batch in np.split(X, 3):
        ...     model = model.partial_fit(batch)
        >>> model.n_samples_seen_
        300
        """
        if self.approximation != "fourier":
            raise AttributeError(ONLY_FOURIER)
        return self._partial_fit

    def _partial_fit(self, X: Any, y: Any = None) -> Self:
        return self._all_or_nothing(self._fit_more, X)

    def _fit_more(self, X: Any, tell: Tell) -> None:
        first = not hasattr(self, "result_")
        before = None if first else self._seen()
        rows = self._open(X, reset=first, least_rows=2 if first else 1)
        if _is_held_out(self.n_components):
            raise ValueError('partial_fit needs n_components as a number, or None: "held-out" needs all rows at once.')
        self._check_parameters(rows, partial=True)
        asked, rows = self._question(rows, tell, self.gamma), statistics.here(rows)
        if before is not None:
            check_unchanged(before, rows, asked)
        about, looked_at = first_look(rows, self._names)
        seen = (before or begin(rows, asked, about)).and_of(rows)
        found = components(seen, asked)
        # Files of older versions have no examples.
        examples = (None, 0) if before is None else (getattr(self, "_examples", None), before.moments.count)
        self._keep(found, rows.dtype, seen.moments.count, more=True)
        self.held_out_ = self.noise_ = None
        way = resolve_preimage(self.preimage, found.kernel)
        most = most_examples(len(found.coefficients), way, asked=self.preimage is not None)
        self._examples = more_examples(*examples, rows, most)
        last_look(rows, looked_at, self._names)

    def _seen(self) -> Seen:
        """Return what `partial_fit` goes on with."""
        scatter = getattr(self, "_scatter", None)  # files of older versions have none
        moments = None if scatter is None else Running(self.n_samples_, self._mean, scatter)
        return go_on(self.kernel_, self._basis, self._about, moments)

    @property
    def n_samples_seen_(self) -> int:
        """How many rows `partial_fit` was given in all, or `fit`."""
        check_is_fitted(self)
        return int(self.n_samples_)

    def _check_parameters(self, rows: Rows, *, partial: bool = False) -> None:
        """Complain about parameters that mean nothing."""
        self._check_limits()
        # Rows that are still to come may have more components than these.
        most = np.iinfo(int).max if partial else rows.shape[0]
        count_components(self.n_components, most, of=" (= n)", words=(HELD_OUT,))
        if self.noise is not None and not (isinstance(self.noise, Real) and 0 < float(self.noise) < np.inf):
            raise ValueError(f"noise must be a finite number above 0, or None; got {self.noise!r}.")
        if self.approximation is not None:
            check_choice("approximation", self.approximation, ("auto", *APPROXIMATIONS))
        check_count("rank", self.rank, or_none=True)
        check_preimage(self.preimage, self.kernel)
        if self.landmarks is not None and (self.approximation != "nystroem" or self.rank is not None):
            raise ValueError('landmarks go with approximation="nystroem", and without rank.')

    def _keep(self, found: Found, dtype: Any, n: int, *, more: bool = False) -> None:
        """Derive all attributes: the one place. ``more``: rows may be to come, and components with them."""
        if found.values.max(initial=0.0) > np.finfo(dtype).max:
            raise ValueError(
                f"An eigenvalue is larger than {dtype} holds: give X as float64, or divide it by a constant."
            )
        self.n_samples_, self.n_components_ = n, len(found.values)
        self.approximation_ = found.approximation
        self.kernel_, self.gamma_ = found.kernel, getattr(found.kernel, "gamma", None)
        self.eigenvalues_ = found.values.astype(dtype)
        self.explained_variance_ = (found.values / (n - 1)).astype(dtype)
        self.explained_variance_ratio_ = found.ratio.astype(dtype)
        self.eigenvalue_intervals_, self.ratio_intervals_ = found.value_intervals, found.ratio_intervals
        self.negative_share_ = found.negative
        self._basis, self._about = found.basis, found.about
        self._coefficients, self._offset = found.coefficients, found.offset
        self._mean, self._mean_square = found.mean, found.mean_square
        self._scatter = found.scatter
        self._keep_result(found.result)
        _warn_of(found, asked=not more and isinstance(self.n_components, Integral))

    # Using the fit

    def transform(self, X: Any) -> Any:
        """Return the scores of X: kernel values with the training rows, centred by their means, times coefficients.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns; with kernel="precomputed", kernel values with the training rows.

        Returns
        -------
        (n, k) array
            In the kind of X: a Dask array stays lazy.
        """
        rows = self._open(X, reset=False)
        return self._of_features(rows, scores, self._coefficients, self._offset, width=self.n_components_)

    def novelty(self, X: Any) -> Any:
        """Return what the components leave of each row, squared, in feature space: large for rows unlike any seen.

        It is kc(x, x) - |z|^2, z the scores and kc(x, x) the squared distance of x from the mean of the training rows;
        of "normalized-rbf", what the trivial vector and the components leave of k(x, x).

        Parameters
        ----------
        X : as in `transform`
            New data.

        Returns
        -------
        (n,) array
            At least 0, but for rounding, if the kernel is positive semidefinite.
        """
        rows = self._open(X, reset=False)
        if self.kernel_ is None:
            raise ValueError('novelty needs k(x, x) of new rows, which kernel="precomputed" does not give.')
        return self._of_features(rows, novelty, *self._state(), width=1, own=True)[:, 0]

    def _describe(self) -> Description:
        return describe_kernel(self)

    def _describe_scores(self, X: Any, y: Any, values: Any) -> Scores:
        if values is not None or self.kernel_ is None:
            return usual_scores(self, X, values)
        how: dict[str, Any] = {"width": self.n_components_ + 1, "own": True}
        both = self._of_features(self._open(X, reset=False), scores_and_novelty, *self._state(), **how)
        return scores_with_novelty(self, np.asarray(both))

    def _state(self) -> tuple[Any, ...]:
        """Return what `novelty` of features needs."""
        centred = self.kernel_ is None or self.kernel_.centred
        return self._coefficients, self._offset, self._mean, self._mean_square, centred

    def inverse_transform(self, X: Any) -> Any:
        """Return a row for each of the scores: one whose image in feature space is near the point that they stand for.

        With "rbf" the nearest one, found from the best of up to 1000 training rows or landmarks (`preimage`): the
        residual of the fixed point is at most 1e-6 of the kernel's width, or a warning says of how many rows it is not.

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
        rows = as_rows(X)
        if rows.width != self.n_components_:
            raise ValueError(f"Scores must have {self.n_components_} columns, one per component, got {rows.width}.")
        return self._nearest(rows, None, numbers, restored, self._way())

    def denoise(self, X: Any) -> Any:
        """Return each row as the components leave it: what is not along them is taken off in feature space.

        It is the row for its scores, as `inverse_transform` finds it, but begun at the row itself.

        Parameters
        ----------
        X : as in `fit`
            Data, with the same columns.

        Returns
        -------
        (n, p) array
            In the kind of X.

        Examples
        --------
        >>> import numpy as np
        >>> from princomp import KernelPCA
        >>> from princomp.datasets import make_circles
        >>> clean = np.hstack([make_circles(200, noise=0.0, random_state=0).X, np.zeros((200, 8))])
        >>> noisy = clean + 0.1 * np.random.default_rng(0).normal(size=clean.shape)
        >>> model = KernelPCA(4, gamma=0.1).fit(noisy)
        >>> before, after = (((rows - clean) ** 2).mean() for rows in (noisy, model.denoise(noisy)))
        >>> bool(after < 0.5 * before)
        True
        """
        rows = self._open(X, reset=False)
        way = self._way()
        return self._nearest(rows, self._names, itself, denoised, Features(self._map()), self._model(), way)

    def _nearest(self, rows: Rows, names: Any, make: Any, fn: Callable[..., Any], *state: Any) -> Any:
        """Return rows that a way back has found for those given, and warn of those that it has not; lazy ones later."""
        given = (max(len(self._coefficients), self.n_features_in_), make, (), fn)
        found, residuals = rows.map(
            map_pieces, given, *state, width=(self.n_features_in_, 1), dtype=(rows.dtype, np.float64)
        )
        if isinstance(found, np.ndarray) and not np.isfinite(found).all():
            check_values(rows, names)
        if isinstance(residuals, np.ndarray) and not (residuals <= TOL).all():
            warn(
                f"{int((~(residuals <= TOL)).sum())} of {len(residuals)} pre-images are not found within {STEPS} "
                f"steps: the fixed point is missed by up to {residuals.max():.1e} of the kernel's width.",
                ConvergenceWarning,
            )
        return found

    def _way(self) -> Way:
        """Return the way from scores to rows, remembered until there is another fit."""
        check_preimage(self.preimage, self.kernel_)
        if self.kernel_ is None:
            raise ValueError('Pre-images are rows, which kernel="precomputed" does not give.')
        meant = resolve_preimage(self.preimage, self.kernel_)
        coefficients, asked, way = _ways.get(self, (None, None, None))
        if way is None or coefficients is not self._coefficients or asked != meant:
            way = way_back(meant, self._model(), self.kernel_)
            _ways[self] = (self._coefficients, meant, way)
        return way

    def _model(self) -> Model:
        rows = getattr(self, "_examples", None)  # files of older versions have none
        if rows is None and self.approximation_ != "fourier":
            rows = self._basis
        return Model(self._map(), self._coefficients, self._offset, self._mean, self._about, rows)

    def _of_features(self, rows: Rows, fn: Callable[..., Array], *state: Any, width: int, own: bool = False) -> Any:
        """Return ``fn(features, rows, *state)`` of each row, its own kernel value after the features if asked for."""
        asked = self.kernel_ if own else None
        features = Features(self._map(), asked and asked.on(self._basis), self._about)
        given = (len(self._coefficients), features, (), fn)
        return self._finite(rows, rows.map(map_pieces, given, *state, width=width, dtype=rows.dtype))

    def _map(self) -> Callable[[Any], Array]:
        """Return the feature map of the fit."""
        return feature_map(self.approximation_, self.kernel_, self._basis, self._about)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _is_held_out(value: Any) -> bool:
    return isinstance(value, str) and value == HELD_OUT


def _warn_of_noise(noise: float, variance: float) -> None:
    """Warn if what was taken for noise may be what the data are about, as with few columns."""
    if noise > MUCH * np.sqrt(variance):
        warn(
            f"Noise was taken to have a standard deviation of {noise:.2g}, that along the median principal component, "
            f"where cells have {np.sqrt(variance):.2g}: what was chosen may take off what the data are about. Give "
            "noise= as it is."
        )


def _warn_of(found: Found, *, asked: bool) -> None:
    """Warn of what makes the answer less than the user expects; one warning at the most."""
    rank, k = int((found.values > 0).sum()), len(found.values)
    surprising = found.kernel is None or isinstance(found.kernel, Function)  # the other kernels say so in their docs
    dropped = ""
    if surprising and (found.negative or 0.0) > NEGLIGIBLE:
        dropped = f"negative eigenvalues, {found.negative:.2g} of all in magnitude, are dropped (negative_share_)."
    if rank == 0 and found.negative:
        warn("No eigenvalue of this kernel matrix is positive: there are no components, and every score is 0.")
    elif rank == 0:
        warn("All rows are alike to this kernel: every eigenvalue is 0, and so is every score.")
    elif asked and rank < k:
        what = "The kernel matrix has" if found.approximation == "exact" else "Features of this rank have"
        few = f"{what} {rank} positive eigenvalues: scores of the components beyond are 0."
        warn(f"{few} Its {dropped}" if dropped else few)
    elif dropped:
        warn(f"This kernel is not positive semidefinite: its {dropped}")
