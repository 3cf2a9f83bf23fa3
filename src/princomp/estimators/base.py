"""The skeleton of all estimators: opening data, driving a fit to its end, keeping and using what it found."""

import hashlib
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from princomp._kinds import POSITIVE, SHARE, VARIANCE, Count, Directions, Kind, Length, Names, Numbers, Of
from princomp._text import printable
from princomp._typing import Array
from princomp._version import __version__
from princomp.checkpoint import Checkpoint
from princomp.data import Centered, Rows, as_rows, statistics
from princomp.data.frames import is_frame
from princomp.data.signature import Signature
from princomp.estimators.checks import check_count, check_time_limit, check_values
from princomp.estimators.covariance import Covariance, open_covariance
from princomp.estimators.description import Described
from princomp.progress import CallbackSupport, Tell, watch, with_callbacks
from princomp.result import Certificate, Result, State, run


class Estimator(Described, ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupport, BaseEstimator):
    """Base of all estimators. A method of its own has ``__init__``, ``_fit``, ``transform``, and ``_fitted``."""

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "n_components_": Length("k"),
        "n_features_in_": Length("p"),
        "n_samples_": Count(1, or_none=True),
        "n_iter_": Count(),
        "result_": Of(Result),
        "certificate_": Of(Certificate),
        "feature_names_in_": Names("p", optional=True),
    }
    _missing_allowed: ClassVar[bool] = False
    _fit: Callable[..., None]  # of what `fit` is given, and of ``tell``, for `_drive`: finds and keeps

    def __init__(
        self,
        tol: float,
        max_iter: int,
        random_state: Any,
        verbose: int,
        callback: Callable[[State], Any] | None,
        checkpoint: str | PathLike[str] | None,
        time_limit: float | None = None,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint
        self.time_limit = time_limit

    # Fitting

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to X: find its components.

        Parameters
        ----------
        X : array-like, sparse, frame, list of shards, Dask array or Rows
            The data, rows are samples.
        y : None
            Ignored.

        Returns
        -------
        self
        """
        return self._all_or_nothing(self._fit, X)

    def _all_or_nothing(self, fit: Callable[..., None], X: Any, *more: Any) -> Self:
        """Fit, and put the estimator back as it was if that does not end: by an error, by Ctrl-C, by want of memory."""
        before = dict(self.__dict__)
        try:
            self._watched(fit, X, *more)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    @with_callbacks
    def _watched(self, fit: Callable[..., None], X: Any, *more: Any) -> None:
        with watch(self, X) as tell:
            fit(X, *more, tell)

    def _drive(self, tell: Tell, *data: Rows, weight: Array | None = None) -> Callable[..., Result]:
        """Return `run` for a fit of these data: within its limits, watched, its state kept in the checkpoint."""
        checkpoint = self._checkpoint(*data, weight=weight)
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "deadline": tell.deadline}
        return partial(run, **limits, callback=tell, checkpoint=checkpoint)

    def _checkpoint(self, *data: Rows, weight: Array | None) -> Checkpoint:
        """Return the checkpoint of a fit of these data: it knows class, version, parameters, and every cell."""
        if self.checkpoint is None:
            return Checkpoint(None)
        if not data:
            raise ValueError("checkpoint is for fit, not for fit_covariance.")
        parameters = self.get_params()
        for name in (
            "callback",
            "checkpoint",
            "verbose",
            "max_iter",
            "time_limit",
        ):  # these do not change the course of a fit
            parameters.pop(name)
        if not isinstance(parameters["random_state"], Integral | None):
            parameters.pop("random_state")  # an object prints its address
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # arrays in full
            text = f"{type(self).__name__} {__version__} {parameters} {[rows.shape for rows in data]}"
        digest = hashlib.sha256(text.encode())
        if weight is not None:
            digest.update(weight.tobytes())
        return Checkpoint(self.checkpoint, digest.hexdigest(), signature=partial(_signature, data))

    def _generator(self, random_state: Any = None) -> np.random.Generator:
        """Return a generator seeded by ``random_state`` (int or RandomState), or else that of the estimator."""
        seed = self.random_state if random_state is None else random_state
        return np.random.default_rng(check_random_state(seed).randint(2**31 - 1))

    def _check_limits(self) -> None:
        """Complain about a tol, max_iter or time_limit that means nothing."""
        if not (isinstance(self.tol, Real) and 0 <= self.tol < math.inf):
            raise ValueError(f"tol must be a number of at least 0, got {self.tol!r}.")
        check_time_limit(self.time_limit)
        check_count("max_iter", self.max_iter)

    def _keep_result(self, result: Result) -> None:
        self.result_, self.certificate_, self.n_iter_ = result, result.certificate, result.n_iter

    # Data

    def _open(self, X: Any, *, reset: bool, least_rows: int = 1) -> Rows:
        """Return X as rows, its names and number of features learnt (``reset``) or compared with those of the fit."""
        if reset:
            Checkpoint(self.checkpoint)  # finds out whether it can be written
        else:
            check_is_fitted(self)
        rows = as_rows(X)
        name = type(self).__name__
        least = f"while a minimum of {least_rows} is required by {name}."
        if rows.width < 1:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={rows.shape}) while a minimum of 1 is required by {name}."
            )
        # What is only transformed, lazily, is not counted.
        if (reset or rows.local) and rows.shape[0] < least_rows:
            raise ValueError(f"Found array with {rows.shape[0]} sample(s) (shape={rows.shape}) {least}")
        if not is_frame(X) and (reset or rows.names is not None):
            self._check_names(rows, reset)
            return rows
        # validate_data compares names and counts, and words the errors as scikit-learn's users know them.
        try:
            stand_in = X if is_frame(X) else np.broadcast_to(0.0, (1, rows.width))
            validate_data(self, stand_in, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise ValueError(f"{printable(error, lines=True)}{first_difference(rows.names, self._names)}") from None
        return rows

    def _check_names(self, rows: Rows, reset: bool) -> None:
        """Do what validate_data does, for what scikit-learn does not know as a frame."""
        if reset:
            self.n_features_in_ = rows.width
            if rows.names is not None:
                self.feature_names_in_ = np.array(rows.names, dtype=object)
            elif self._names is not None:
                del self.feature_names_in_
        elif self._names is not None and rows.names != tuple(self._names):
            raise ValueError(
                "The feature names should match those that were passed during fit.\n"
                + first_difference(rows.names, self._names)
            )
        elif rows.width != self.n_features_in_:
            raise ValueError(
                f"X has {rows.width} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )

    @property
    def _names(self) -> Array | None:
        """Names of the features, if they have any."""
        return getattr(self, "feature_names_in_", None)

    def _finite(self, rows: Rows, answer: Any) -> Any:
        """Return the answer; complain about X if it is not finite. What is lazy is not looked at."""
        if isinstance(answer, np.ndarray) and not np.isfinite(answer).all():
            check_values(rows, self._names, missing=self._missing_allowed)
        return answer

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what is accepted and kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._missing_allowed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


class FromCovariance(Estimator):
    """Base of estimators that can be fitted to a covariance matrix in place of data."""

    _fit_covariance: Callable[[Covariance, Tell], None]  # finds and keeps

    def fit_covariance(self, S: Any, n_samples: int | None = None) -> Self:
        """Find the components from a covariance (or correlation) matrix instead of data.

        Parameters
        ----------
        S : (p, p) array-like or frame
            Symmetric. It is used as it is: not squared, not centred, not changed. For likelihoods of data it is the one
            with divisor n.
        n_samples : int, optional
            How many samples it was computed from. What chooses a number of components needs it, and so do likelihoods;
            penalties and singular values refer to (n_samples - 1) S, without it to S itself.

        Returns
        -------
        self
            With ``mean_`` = 0.
        """
        return self._all_or_nothing(self._open_covariance, S, n_samples)

    def _open_covariance(self, S: Any, n_samples: int | None, tell: Tell) -> None:
        rows = self._open(S, reset=True)
        self._fit_covariance(open_covariance(rows, n_samples, self._names), tell)


class Components(Estimator):
    """Base of estimators whose components are directions (k, p) in which centred and scaled data vary."""

    _fitted: ClassVar[Mapping[str, Kind]] = {
        "components_": Directions("k p"),
        "mean_": Numbers("p", rounds="_mean"),
        "_mean": Numbers("p"),
        "scale_": Numbers("p", POSITIVE, or_none=True, rounds="_scale"),
        "explained_variance_": Numbers("k", VARIANCE),
        "explained_variance_ratio_": Numbers("k", SHARE),
    }

    def _keep_directions(
        self, V: Array, variances: Array, ratio: Array, mean: Array, scale: Array | None, dtype: Any
    ) -> None:
        """Keep directions V (p, k) with their variances, what columns are less by, and what they are divided by."""
        self.n_components_ = V.shape[1]
        self.components_ = np.ascontiguousarray(V.T).astype(dtype)
        with np.errstate(over="ignore"):
            self.explained_variance_ = variances.astype(dtype)
        self.explained_variance_ratio_ = ratio.astype(dtype)
        self.mean_ = mean.astype(dtype)
        self._mean = mean  # in full precision: rounded to float32 it would move data at a large offset
        self.scale_ = None if scale is None else scale.astype(dtype)

    @property
    def loadings_(self) -> Array:
        """Components times the square root of their variances, (k, p)."""
        check_is_fitted(self)
        return self.components_ * np.sqrt(self.explained_variance_)[:, None]

    def _unproject(self, scores: Any, back: Array) -> Any:
        """Return scores times ``back`` (k, p), plus the mean."""
        rows = as_rows(scores)
        k, p = back.shape
        if rows.shape[1] != k:
            raise ValueError(f"Scores must have {k} columns, one per component, got {rows.shape[1]}.")
        return Centered(rows).map(moved, back, self._mean, width=p, dtype=rows.dtype)


class Projection(Components):
    """Base of estimators whose scores are centred and scaled rows times a matrix, and back."""

    _to_scores: Callable[[], Array]  # what centred and scaled rows are multiplied by to be scores, (p, k)
    _from_scores: Callable[[], Array]  # what scores are multiplied by to be centred and scaled rows, (k, p)

    def transform(self, X: Any) -> Any:
        """Return the scores of X: centred, scaled and projected on the components.

        Parameters
        ----------
        X : as in `fit`
            New data, with the same columns.

        Returns
        -------
        (n, k) array
            In the kind of X: a Dask array stays lazy.
        """
        rows = self._open(X, reset=False)
        V = self._to_scores()
        if self.scale_ is not None:
            V = V / self.scale_.astype(np.float64)[:, None]
        centered = statistics.dense_enough(Centered(rows, self._mean if self._mean.any() else None))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = statistics.apply(centered, V, dtype=rows.dtype)
        return self._finite(rows, scores)

    def inverse_transform(self, X: Any) -> Any:
        """Return the data that scores stand for: on the span of the components, unscaled, plus the mean.

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
        return self._unproject(
            X, self._from_scores() * (1.0 if self.scale_ is None else self.scale_.astype(np.float64))
        )


def moved(block: Array, rows: slice, back: Array, mean: Array) -> Array:
    """Return rows times a matrix, plus a mean."""
    return block @ back + mean


def _signature(data: Sequence[Rows]) -> Signature:
    """Return one signature of one or more sets of data."""
    return reduce(Signature.and_of, map(statistics.signature, data))


def first_difference(names: tuple[str, ...] | None, fitted: Array | None) -> str:
    """Say where columns first differ from those of the fit, in a further line of scikit-learn's message."""
    for j, (now, then) in enumerate(zip(names or (), () if fitted is None else fitted)):
        if now != then:
            return f"The first difference: column {j} is {now!r}, but was {then!r} when fitted."
    return ""
