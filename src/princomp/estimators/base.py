"""What all estimators share: opening data, checking names and counts, saying what is wrong with values."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from princomp._version import __version__
from princomp.data import Rows, as_rows, statistics
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
        if p < 1:
            raise ValueError(f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required by {name}.")
        if n < least_rows:
            raise ValueError(
                f"Found array with {n} sample(s) (shape=({n}, {p})) while a minimum of {least_rows} is required by {name}."
            )
        # validate_data compares names and counts, and words the errors as scikit-learn's users know them.
        validate_data(self, X if is_frame(X) else rows, reset=reset, skip_check_array=True)
        if reset and rows.names is not None and not is_frame(X):
            self.feature_names_in_ = np.array(rows.names, dtype=object)
        return rows

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

    def _fingerprint(self, *parts: Any) -> str:
        """Return a digest of class, version and the given parts, by which a checkpoint knows its fit."""
        digest = hashlib.sha256(f"{type(self).__name__} {__version__}".encode())
        for part in parts:
            digest.update(np.asarray(part).tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
        return digest.hexdigest()

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)


def check_values(rows: Rows, names: Any = None) -> float:
    """Raise ValueError if a value is NaN or infinite, naming its column; else return the largest deviation.

    It costs a pass, so it is called only when sums came out wrong.
    """
    nan, inf, largest = statistics.column_faults(rows)
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
    return float(largest.max())
