"""Penalties of a whole matrix: columns of different weights, and rows that are zero or not as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from princomp._typing import Array
from princomp.penalties.simple import Step, soft


@dataclass(frozen=True, eq=False)
class ColumnL1:
    """h(W) = sum_j alpha_j |W_j|_1 over columns.

    Parameters
    ----------
    alpha : (k,) array
        Weight of each column, at least 0.
    """

    alpha: Array

    def value(self, w: Array) -> float:
        """Return sum_j alpha_j |W_j|_1."""
        return float(self.alpha @ np.abs(w).sum(axis=0))

    def prox(self, w: Array, step: Step) -> Array:
        """Return the soft threshold of each column."""
        return soft(w, step * self.alpha)

    def times(self, number: float) -> ColumnL1:
        """Return the penalty of weights number * alpha."""
        return ColumnL1(number * self.alpha)


@dataclass(frozen=True)
class RowNorms:
    """h(W) = alpha sum_i |W_i|_2 over rows, which sets whole rows to zero.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    """

    alpha: float

    def value(self, w: Array) -> float:
        """Return alpha sum_i |W_i|_2."""
        return float(self.alpha * np.linalg.norm(w, axis=1).sum())

    def prox(self, w: Array, step: Step) -> Array:
        """Return rows shortened by step alpha, or zero."""
        size = np.linalg.norm(w, axis=1, keepdims=True)
        return w * np.maximum(1 - step * self.alpha / np.where(size > 0, size, 1.0), 0.0)

    def times(self, number: float) -> RowNorms:
        """Return the penalty of weight number * alpha."""
        return RowNorms(number * self.alpha)
