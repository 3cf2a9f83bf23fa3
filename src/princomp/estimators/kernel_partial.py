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

OTHER_KERNEL = (
    "partial_fit goes on with the kernel that the model has, {}, and {} is asked for now. Set that back to go on; fit "
    "begins anew."
)
OTHER_RANK = (
    "partial_fit goes on with the features that the model has: these are {} features, and rank={} asks for {}. Set "
    "rank={} to go on; fit begins anew."
)


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


def check_unchanged(seen: Seen, rows: Rows, asked: Question) -> None:
    """Refuse another kernel, or a smaller rank, than what is kept was made with.

    There may be fewer features than ``rank``: `fit` has no more than rows.
    """
    options = dict(asked.kernel_options)
    if isinstance(options["gamma"], str):  # what it was for all rows of a fit; these are some others
        options["gamma"] = getattr(seen.kernel, "gamma", None)
    kernel = resolve(asked.kernel, rows, **options)
    if kernel != seen.kernel:
        raise ValueError(OTHER_KERNEL.format(seen.kernel, kernel))
    width = seen.features.width
    if asked.rank is not None and (meant := 2 * max(asked.rank // 2, 1)) < width:
        raise ValueError(OTHER_RANK.format(width, asked.rank, meant, width))


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
    """Return training rows for a way back, ``most`` at the most, an even sample of all so far whatever the batches.

    They are those that come first in `evenly_ranked`, in the order of their numbers: of ``seen`` rows and how many of
    them are kept it follows which ones. Rows that `fit` has picked lie as evenly, and stand for these. Where fewer are
    kept than could be now, new ones are taken as seldom: rows that were dropped do not come again.
    """
    if before is None:
        before, seen = np.empty((0, rows.shape[1])), 0
    ranked = evenly_ranked(seen + rows.shape[0], most)
    wanted = np.sort(ranked[np.cumsum(ranked < seen) <= len(before)])
    kept = before[np.isin(np.sort(evenly_ranked(seen, len(before))), wanted)]
    new = wanted[wanted >= seen] - seen
    return np.vstack([kept, statistics.take(Centered(rows), new)]) if len(new) else kept


def evenly_ranked(n: int, most: int) -> Any:
    """Return the first ``most`` of the numbers i = 0, ..., n - 1, in the order of i g modulo 1, g = (sqrt(5) - 1) / 2.

    However many are taken, they lie evenly, and have no period in common with the rows. Numbers below n rank among each
    other as they do below any larger n.

    For i < b the order is that of i a modulo b, with a / b a quotient of successive Fibonacci numbers. Of every second
    pair, (2, 3), (5, 8), ..., a a = 1 modulo b: the j-th number is j a modulo b. No more than these are looked at.
    """
    a, b = 2, 3
    while b < n:
        a, b = a + b, a + 2 * b
    # More than one of 2.62 is below n, but for a few: b is at most so much larger.
    numbers = np.arange(min(b, 3 * most + 50)) * a % b
    return numbers[numbers < n][:most]
