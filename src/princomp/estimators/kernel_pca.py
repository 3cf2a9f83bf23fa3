"""Kernel principal component analysis."""

from collections.abc import Callable, Mapping
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar

import numpy as np

from princomp._kinds import NONNEGATIVE, SHARE, SQUARABLE, VARIANCE, Count, Kind, Number, Numbers, Of, Word
from princomp._typing import Array
from princomp._warn import warn
from princomp.data import Rows
from princomp.data.wrapped import map_pieces
from princomp.estimators.base import Estimator
from princomp.estimators.checks import check_choice, check_count, count_components
from princomp.estimators.kernel_fit import APPROXIMATIONS, Features, Found, Question, as_given, find, novelty, scores
from princomp.kernels import Function, Kernel
from princomp.progress import Tell
from princomp.result import State
from princomp.solvers.feature_maps import Columns, Fourier

NEGLIGIBLE = 1e-6  # of all eigenvalues: as many negative ones are the rounding of a matrix that was stored in float32


class KernelPCA(Estimator):
    """Principal components in the feature space of a kernel: curved directions in which the data vary.

    With K the kernel matrix of the training rows and Kc the same, centred: Kc V = V diag(l). The scores of the training
    rows are V sqrt(l), those of a new row x are kc(x)' V / sqrt(l), kc(x) its kernel values with the training rows,
    centred by the means of *these*.

    Parameters
    ----------
    n_components : int or None, default None
        How many components; None for all with positive eigenvalues.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "rbf", "laplacian", "polynomial" (or "poly"), "cosine", "sigmoid", "knn-rbf" (radial among
        neighbours), "normalized-rbf" (the normalised graph Laplacian), "precomputed" (X is the kernel matrix itself), a
        function of two rows, or an object of `princomp.kernels`.
    gamma : float, "scale", "median" or None, default None
        The kernel's width: None is 1 / n_features; see `princomp.kernels.bandwidth`.
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
        while the kernel matrix fits into memory, and "rpcholesky" beyond.
    rank : int, optional
        How many landmarks, or Fourier features; max(200, 10 n_components) if not given, and at most n_samples.
    landmarks : array of int, or (m, p) array, optional
        Row numbers, or rows, that are the landmarks of "nystroem".
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
    }

    def __init__(
        self,
        n_components: int | None = None,
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
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[State], Any] | None = None,
        checkpoint: str | PathLike[str] | None = None,
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
        super().__init__(tol, max_iter, random_state, verbose, callback, checkpoint)

    # Fitting

    def _fit(self, X: Any, tell: Tell) -> None:
        rows = self._open(X, reset=True, least_rows=2)
        self._check_parameters(rows)
        asked = Question(
            k=None if self.n_components is None else int(self.n_components),
            kernel=self.kernel,
            kernel_options={
                "gamma": self.gamma,
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
        self._keep(find(rows, asked), rows)

    def _check_parameters(self, rows: Rows) -> None:
        """Complain about parameters that mean nothing."""
        self._check_limits()
        count_components(self.n_components, rows.shape[0], of=" (= n)")
        if self.approximation is not None:
            check_choice("approximation", self.approximation, ("auto", *APPROXIMATIONS))
        check_count("rank", self.rank, or_none=True)
        if self.landmarks is not None and (self.approximation != "nystroem" or self.rank is not None):
            raise ValueError('landmarks go with approximation="nystroem", and without rank.')

    def _keep(self, found: Found, rows: Rows) -> None:
        """Derive all attributes: the one place."""
        dtype, n = rows.dtype, rows.shape[0]
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
        self._keep_result(found.result)
        _warn_of(found, asked=isinstance(self.n_components, Integral))

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
            At least 0, but for rounding.
        """
        rows = self._open(X, reset=False)
        if self.kernel_ is None:
            raise ValueError('novelty needs k(x, x) of new rows, which kernel="precomputed" does not give.')
        state = (self._coefficients, self._offset, self._mean, self._mean_square, self.kernel_.centred)
        return self._of_features(rows, novelty, *state, width=1, own=True)[:, 0]

    def _of_features(self, rows: Rows, fn: Callable[..., Array], *state: Any, width: int, own: bool = False) -> Any:
        """Return ``fn(features, rows, *state)`` of each row, its own kernel value after the features if asked for."""
        features = Features(self._map(), self.kernel_ if own else None, self._about)
        given = (len(self._coefficients), features, (), fn)
        return self._finite(rows, rows.map(map_pieces, given, *state, width=width, dtype=rows.dtype))

    def _map(self) -> Callable[[Any], Array]:
        """Return the feature map of the fit."""
        if self._basis is None or self.kernel_ is None:
            return as_given
        if self.approximation_ == "fourier":
            return Fourier(self._basis.T, self._about)
        return Columns.of(self.kernel_.on(self._basis), self._basis, self._about)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what is accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


def _warn_of(found: Found, *, asked: bool) -> None:
    """Warn of what makes the answer less than the user expects; one warning at the most."""
    rank, k = int((found.values > 0).sum()), len(found.values)
    if rank == 0 and found.negative:
        warn("No eigenvalue of this kernel matrix is positive: there are no components, and every score is 0.")
    elif rank == 0:
        warn("All rows are alike to this kernel: every eigenvalue is 0, and so is every score.")
    elif asked and rank < k:
        what = "The kernel matrix has" if found.approximation == "exact" else "Features of this rank have"
        warn(f"{what} {rank} positive eigenvalues: scores of the components beyond are 0.")
    elif (found.kernel is None or isinstance(found.kernel, Function)) and (found.negative or 0.0) > NEGLIGIBLE:
        warn(
            f"This kernel is not positive semidefinite: its negative eigenvalues, {found.negative:.2g} of all in "
            "magnitude, are dropped (negative_share_)."
        )
