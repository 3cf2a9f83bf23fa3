"""Mean and scatter matrix of rows that come batch after batch, each of which may be forgotten.

Two batches of n and m rows with means a and b and scatter matrices S and T, each about its own mean, have together

    mean = a + (b - a) m / (n + m)        scatter = S + T + (b - a)(b - a)' n m / (n + m)

(Chan, Golub & LeVeque, The American Statistician 1983). Rows may be taken about a point near them: then an offset of
the data, however large, costs no digits, and the batches may be cut in any way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import statistics
from princomp.data.rows import Rows
from princomp.data.wrapped import mapped


@dataclass(frozen=True)
class Running:
    """Count, mean and scatter matrix of the rows that were seen, less ``about``."""

    count: int
    mean: Array  # (p,), of rows less ``about``
    scatter: Array  # (p, p), about the mean
    about: Array | None = None  # (p,), a point near the rows; None for the origin

    @classmethod
    def nothing(cls, p: int, about: Array | None = None) -> Running:
        """Return those of no rows of p columns."""
        return cls(0, np.zeros(p), np.zeros((p, p)), about)

    @property
    def total(self) -> float:
        """The sum of all squared deviations from the mean."""
        return float(np.trace(self.scatter))

    def and_of(self, rows: Rows) -> Running:
        """Return those of the rows that were seen and these."""
        if self.about is not None:
            rows = mapped(rows, _less, self.about, width=rows.width)
        found = statistics.moments(rows, scatter=True)
        n, m = self.count, found.count
        away = found.mean - self.mean
        scatter = self.scatter + np.asarray(found.scatter)
        if n:
            scatter += np.outer(away * (n * m / (n + m)), away)
        return replace(self, count=n + m, mean=self.mean + away * (m / (n + m)), scatter=scatter)


def _less(block: Any, about: Array) -> Array:
    dense = block if isinstance(block, np.ndarray) else block.toarray()
    return np.asarray(dense - about)
