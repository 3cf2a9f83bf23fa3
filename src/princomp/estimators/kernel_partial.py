"""Kernel PCA by random Fourier features of rows that come batch after batch.

Frequencies are drawn at the first batch. Of all rows nothing is kept but count, mean and scatter matrix of their
features (`princomp.data.running`), which determine the components: they are those of a fit to all rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, statistics
from princomp.data.running import Running
from princomp.estimators.kernel_fit import Found, Question, default_rank, moments_of, of_moments
from princomp.kernels import Kernel, resolve
from princomp.solvers.feature_maps import Fourier, fourier

ONLY_FOURIER = (
    'partial_fit goes with approximation="fourier": the other ones need all rows at once. Use that, or fit, which '
    "reads files, shards and Dask arrays block by block."
)
WIDTH = (
    'partial_fit needs gamma as a number, or None for 1 / n_features: "{}" would be that of the first batch alone. '
    "Take gamma_ of a fit to some of the rows."
)
NOT_BEGUN = "This model has no moments of features to go on with: it was fitted otherwise. Begin a new one."


@dataclass(frozen=True)
class Seen:
    """What is kept of the rows so far."""

    kernel: Kernel
    features: Fourier
    moments: Running

    def and_of(self, rows: Rows) -> Seen:
        """Return what is kept of these rows, too."""
        return replace(self, moments=moments_of(self.features, rows, self.moments))


def go_on(kernel: Kernel | None, basis: Array | None, about: Array | None, moments: Running | None) -> Seen:
    """Return what a model kept: kernel, frequencies (m, p), what rows are taken about, and moments of the features."""
    if kernel is None or basis is None or moments is None:
        raise ValueError(NOT_BEGUN)
    return Seen(kernel, Fourier(basis.T, about), moments)


def begin(rows: Rows, asked: Question, about: Array | None) -> Seen:
    """Return what is kept of no rows yet; features are of rows about a point near the first ones."""
    gamma = asked.kernel_options["gamma"]
    if isinstance(gamma, str):
        raise ValueError(WIDTH.format(gamma))
    kernel = resolve(asked.kernel, rows, **asked.kernel_options)
    rank = asked.rank or default_rank(asked.k or 0)
    made = fourier(kernel, rows.shape[1], rank, asked.generator(), about)
    return Seen(kernel, made, Running.nothing(made.width))


def components(seen: Seen, asked: Question) -> Found:
    """Return the components of all rows so far."""
    return of_moments(seen.features, seen.moments, seen.kernel, asked)


def more_examples(before: Array | None, seen: int, rows: Rows, most: int) -> Array:
    """Return training rows for a way back, ``most`` of all: each batch has as many among them as it has rows."""
    new = rows.shape[0]
    share = most if before is None else max(round(most * new / (seen + new)), 1)
    picked = statistics.take(Centered(rows), _evenly(new, share))
    return picked if before is None else np.vstack([before[_evenly(len(before), most - len(picked))], picked])


def _evenly(n: int, most: int) -> Any:
    return np.unique(np.linspace(0, n - 1, min(most, n)).astype(int))
