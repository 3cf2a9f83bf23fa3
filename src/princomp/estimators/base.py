"""What all estimators share: opening data, checking names and counts, saying what is wrong with values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from princomp._version import __version__
from princomp.data import Centered, Rows, as_rows, statistics
from princomp.data.frames import is_frame
from princomp.progress import CallbackSupport

Array = NDArray[Any]


class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupport, BaseEstimator):
    """Base of all estimators."""

    def _open(self, X: Any, *, reset: bool, least_rows: int = 1) -> Rows:
        """Return X as rows, its names and number of features learnt (``reset``) or compared with those of the fit."""
        rows = as_rows(X)
        n, p = rows.shape
        name = type(self).__name__
        least = f"while a minimum of {least_rows} is required by {name}."
        if p < 1:
            raise ValueError(
                f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required by {name}."
            )
        if n < least_rows:
            raise ValueError(f"Found array with {n} sample(s) (shape=({n}, {p})) {least}")
        if rows.names is not None and not is_frame(X):
            self._check_names(rows, reset)
            return rows
        # validate_data compares names and counts, and words the errors as scikit-learn's users know them.
        try:
            validate_data(self, X if is_frame(X) else rows, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise ValueError(f"{error}{_first_difference(rows.names, self)}") from None
        return rows

    def _check_names(self, rows: Rows, reset: bool) -> None:
        """Do what validate_data does, for named rows that scikit-learn does not know as a frame."""
        if reset:
            self.n_features_in_ = rows.shape[1]
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        elif hasattr(self, "feature_names_in_") and rows.names != tuple(self.feature_names_in_):
            raise ValueError(
                "The feature names should match those that were passed during fit.\n"
                + _first_difference(rows.names, self)
            )
        elif rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
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

    def _fingerprint(self, rows: Rows) -> str:
        """Return a digest of class, version, parameters and a sample of the data: a checkpoint knows its fit by it."""
        parameters = self.get_params()
        for name in ("callback", "checkpoint", "verbose", "max_iter"):  # these do not change the course of a fit
            parameters.pop(name)
        if not isinstance(parameters["random_state"], Integral | None):
            parameters.pop("random_state")  # an object prints its address
        digest = hashlib.sha256(f"{type(self).__name__} {__version__} {parameters} {rows.shape}".encode())
        some = np.unique(np.linspace(0, rows.shape[0] - 1, 8).astype(int))
        digest.update(statistics.take(Centered(rows), some).tobytes())
        digest.update(statistics.moments(rows, by_column=True).mean.tobytes())
        return digest.hexdigest()

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


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
            hint = "Drop or fill those rows first" if kind == "NaN" else "Replace or drop those cells first"
            raise ValueError(f"Input X contains {kind} in {column}{more}, in {int(count[j])} row(s) of it. {hint}.")
    if not np.isfinite(largest).all():
        raise ValueError("Input X spans more than float64 holds (inf when centred). Divide it by a constant first.")
    return largest
