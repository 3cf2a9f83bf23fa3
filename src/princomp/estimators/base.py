"""What all estimators share: opening data, checking names and counts, saying what is wrong with values."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from princomp._text import printable
from princomp._version import __version__
from princomp.checkpoint import Checkpoint
from princomp.data import Centered, Rows, as_rows, statistics
from princomp.data.frames import is_frame
from princomp.data.signature import Signature
from princomp.estimators.description import Described
from princomp.progress import CallbackSupport

Array = NDArray[Any]

MISSING = (
    "Drop or fill those rows first, or take ProbabilisticPCA (on the command line: --method probabilistic), which "
    "allows missing cells"
)


class Estimator(Described, ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupport, BaseEstimator):
    """Base of all estimators."""

    tol: float
    max_iter: int

    def _open(self, X: Any, *, reset: bool, least_rows: int = 1) -> Rows:
        """Return X as rows, its names and number of features learnt (``reset``) or compared with those of the fit."""
        if reset:
            Checkpoint(self.checkpoint)  # finds out whether it can be written
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
        if rows.names is not None and not is_frame(X):
            self._check_names(rows, reset)
            return rows
        # validate_data compares names and counts, and words the errors as scikit-learn's users know them.
        try:
            stand_in = X if is_frame(X) else np.broadcast_to(0.0, (1, rows.width))
            validate_data(self, stand_in, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise ValueError(f"{printable(error, lines=True)}{_first_difference(rows.names, self)}") from None
        return rows

    def _check_names(self, rows: Rows, reset: bool) -> None:
        """Do what validate_data does, for named rows that scikit-learn does not know as a frame."""
        if reset:
            self.n_features_in_ = rows.width
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        elif hasattr(self, "feature_names_in_") and rows.names != tuple(self.feature_names_in_):
            raise ValueError(
                "The feature names should match those that were passed during fit.\n"
                + _first_difference(rows.names, self)
            )
        elif rows.width != self.n_features_in_:
            raise ValueError(
                f"X has {rows.width} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put the estimator back as it was if a fit does not end: by an error, by Ctrl-C, by want of memory."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _generator(self) -> np.random.Generator:
        """Return a generator seeded by ``random_state`` (int, RandomState or None)."""
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _checkpoint(self, *data: Rows, weight: Array | None = None) -> Checkpoint:
        """Return the checkpoint of a fit of these data: it knows class, version, parameters, and every cell."""
        if self.checkpoint is None:
            return Checkpoint(None)
        parameters = self.get_params()
        for name in ("callback", "checkpoint", "verbose", "max_iter"):  # these do not change the course of a fit
            parameters.pop(name)
        if not isinstance(parameters["random_state"], Integral | None):
            parameters.pop("random_state")  # an object prints its address
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # arrays in full
            text = f"{type(self).__name__} {__version__} {parameters} {[rows.shape for rows in data]}"
        digest = hashlib.sha256(text.encode())
        if weight is not None:
            digest.update(weight.tobytes())
        return Checkpoint(self.checkpoint, digest.hexdigest(), signature=partial(_signature, data))

    def _check_limits(self) -> None:
        """Complain about a tol or max_iter that means nothing."""
        if not (isinstance(self.tol, Real) and self.tol >= 0):
            raise ValueError(f"tol must be a number of at least 0, got {self.tol!r}.")
        if not (isinstance(self.max_iter, Integral) and self.max_iter >= 1):
            raise ValueError(f"max_iter must be an integer of at least 1, got {self.max_iter!r}.")

    def _project(self, X: Any, V: Array) -> Any:
        """Return X, centred and scaled as in the fit, times V (p, k)."""
        rows = self._open(X, reset=False)
        if self.scale_ is not None:
            V = V / self.scale_.astype(np.float64)[:, None]
        centered = statistics.dense_enough(Centered(rows, self._mean if self._mean.any() else None))
        with np.errstate(over="ignore", invalid="ignore"):
            scores = statistics.apply(centered, V, dtype=rows.dtype)
        return self._finite(rows, scores)

    def _unproject(self, scores: Any, back: Array) -> Any:
        """Return scores times ``back`` (k, p), scaled and moved as the data of the fit were."""
        rows = as_rows(scores)
        k, p = back.shape
        if rows.width != k:
            raise ValueError(f"Scores must have {k} columns, one per component, got {rows.width}.")
        if self.scale_ is not None:
            back = back * self.scale_.astype(np.float64)
        return Centered(rows).map(_back, back, self._mean, width=p, dtype=rows.dtype)

    def _finite(self, rows: Rows, answer: Any) -> Any:
        """Return the answer; complain about X if it is not finite. What is lazy is not looked at."""
        if isinstance(answer, np.ndarray) and not np.isfinite(answer).all():
            check_values(rows, getattr(self, "feature_names_in_", None))
        return answer

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what is accepted and kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


def _signature(data: Sequence[Rows]) -> Signature:
    """Return one signature of one or more sets of data."""
    return reduce(Signature.and_of, map(statistics.signature, data))


def check_count(name: str, value: Any, most: int | None = None) -> None:
    """Complain about a parameter that is not an integer from 1 on, to ``most`` if that is given."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < 1 or (most is not None and value > most):
        bounds = "of at least 1" if most is None else f"from 1 to {most}"
        raise ValueError(f"{name} must be an integer {bounds}, got {value!r}.")


def _back(block: Array, rows: slice, back: Array, mean: Array) -> Array:
    return block @ back + mean


def _first_difference(names: tuple[str, ...] | None, estimator: Any) -> str:
    """Say where columns first differ from those of the fit, in a further line of scikit-learn's message."""
    fitted = getattr(estimator, "feature_names_in_", None)
    if names is None or fitted is None:
        return ""
    for j, (now, then) in enumerate(zip(names, fitted, strict=False)):
        if now != then:
            return f"The first difference: column {j} is {now!r}, but was {then!r} when fitted.\n"
    return ""


def check_values(rows: Rows, names: Any = None, *, center: bool = True) -> Array:
    """Raise ValueError if a value is NaN or infinite, naming its column; else return each column's largest deviation.

    It costs a pass, so it is called only when sums came out wrong.
    """
    nan, inf, largest = statistics.column_faults(rows, center=center)
    for kind, count in (("NaN", nan), ("inf", inf)):
        if count.any():
            j = int(np.argmax(count > 0))
            column = f"column {j}" if names is None else f"column {names[j]!r}"
            others = int((count > 0).sum()) - 1
            more = f" (and {others} more column{'s' if others > 1 else ''})" if others else ""
            hint = MISSING if kind == "NaN" else "Replace or drop those cells first"
            raise ValueError(f"Input X contains {kind} in {column}{more}, in {int(count[j])} row(s) of it. {hint}.")
    if not np.isfinite(largest).all():
        raise ValueError("Input X spans more than float64 holds (inf when centred). Divide it by a constant first.")
    return largest
