"""Which gamma, and how many components, restore rows best that the fit has not seen, and that noise was added to.

The error of a row that a model restores from itself says nothing: the more components, the smaller it is. So noise e
is added to rows x that are held out, and the error is that of ``denoise(x + e)``. With a given level of noise the x are
clean, and it is compared with x. Without, they have noise of their own, whose level is estimated, and it is compared
with x - e: the noise in x + e and that in x - e are independent then (Pang, Zheng, Quan & Ji, CVPR 2021), so that no
model is better for keeping the noise.

For a gamma there is one fit, with all components, of which the leading ones are tried: one, two, three, four, and then
two numbers in each doubling. gammas are tried from the median heuristic on, each twice the one before or half of it, as
long as the error falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Centered, Rows, as_rows, statistics
from princomp.estimators.checks import check_values
from princomp.estimators.kernel_fit import Found, Question, choose_approximation, find
from princomp.estimators.kernel_preimage import Model, feature_map, resolve_preimage, way_back
from princomp.kernels import bandwidth, resolve
from princomp.kernels.choice import NAMES, WITHOUT_GAMMA
from princomp.result import run

HELD_OUT = "held-out"
ROWS, BYTES = 4000, 2**28  # that the choice is made with at the most, evenly picked
SHARE, MOST = 0.2, 300  # of these rows that are held out, and how many at the most
RIDGE_ROWS = 500  # that a regression learns from, for each number of components anew
PATIENCE = 3  # numbers of components without a new best, after which the path ends
DOUBLINGS = 12  # of gamma, up or down
LEAST_NOISE = 0.1  # of the deviation of all cells, where rows have no noise that could be estimated


@dataclass(frozen=True)
class Wish:
    """What is to be chosen, and for which way back from noise of which level."""

    gamma: bool
    k: bool
    preimage: str | None
    noise: float | None


@dataclass(frozen=True)
class Chosen:
    """What was chosen, and all that was tried."""

    asked: Question  # with gamma and k as they were chosen
    tried: Array  # (m, 3): gamma (NaN if there is none), k, mean squared error
    noise: float


@dataclass(frozen=True)
class HeldOut:
    """Rows to fit, rows to restore, and what they are compared with."""

    seen: Array  # (n, p)
    noisy: Array  # (b, p)
    wanted: Array  # (b, p)
    noise: float


def choose(rows: Rows, asked: Question, wish: Wish) -> Chosen:
    """Return what is asked for, but with gamma, or the number of components, or both, as they restore rows best."""
    _check(asked, wish)
    problem = hold_out(rows, wish.noise, asked.generator(), asked.names)
    seen = as_rows(problem.seen)
    kernel = resolve(asked.kernel, seen, **asked.kernel_options)
    approximation = asked.approximation
    if approximation == "auto":
        approximation = choose_approximation(rows, kernel, asked.k)
    asked = replace(asked, approximation=approximation)
    paths: dict[int, Array] = {}

    def error(octave: int) -> float:
        here = replace(asked, kernel_options={**asked.kernel_options, "gamma": first * 2.0**octave})
        paths[octave] = _path(problem, here, wish)
        return float(paths[octave][:, 2].min())

    if wish.gamma:
        first = bandwidth("median", seen)
        descend(error, DOUBLINGS)
    else:
        paths[0] = _path(problem, asked, wish)
    tried = np.concatenate([paths[octave] for octave in sorted(paths)])
    gamma, k, _ = tried[int(np.argmin(tried[:, 2]))]
    if wish.gamma:
        asked = replace(asked, kernel_options={**asked.kernel_options, "gamma": float(gamma)})
    if wish.k:
        asked = replace(asked, k=int(k))
    return Chosen(asked, tried, problem.noise)


def _check(asked: Question, wish: Wish) -> None:
    """Refuse what leaves nothing to choose by, or from."""
    if isinstance(asked.kernel, str) and asked.kernel == "precomputed":
        raise ValueError('"held-out" compares rows, which kernel="precomputed" does not give. Give numbers.')
    named = isinstance(asked.kernel, str) and asked.kernel in NAMES and asked.kernel not in WITHOUT_GAMMA
    if wish.gamma and not named:
        raise ValueError('gamma="held-out" is for a kernel by name that has a gamma, such as "rbf".')
    if asked.landmarks is not None and np.asarray(asked.landmarks).ndim == 1:
        raise ValueError('"held-out" fits fewer rows, which have other numbers: give landmarks as rows, X[landmarks].')


def hold_out(rows: Rows, noise: float | None, rng: np.random.Generator, names: Any = None) -> HeldOut:
    """Return a split of the rows, or of some of them, with noise of a given level, or of that of the rows."""
    n, p = rows.shape
    most = max(min(n, ROWS, BYTES // (8 * p)), 2)
    sample = statistics.take(Centered(rows), np.linspace(0, n - 1, most).astype(int))
    if not np.isfinite(sample).all():
        check_values(rows, names)
    count = min(max(round(SHARE * len(sample)), 1), MOST, len(sample) - 2)
    if count < 1:
        raise ValueError(f'"held-out" needs at least 3 rows, got {n}.')
    hidden = np.isin(np.arange(len(sample)), rng.permutation(len(sample))[:count])
    seen, held = sample[~hidden], sample[hidden]
    level = estimated_noise(seen) if noise is None else float(noise)
    added = level * rng.standard_normal(held.shape)
    return HeldOut(seen, held + added, held - added if noise is None else held, level)


def estimated_noise(rows: Array) -> float:
    """Return the standard deviation of noise in rows: that along the median principal component.

    It is that of the noise if fewer than half of the components hold anything else.
    """
    centred = rows - rows[0]
    centred -= centred.mean(axis=0)
    values = np.linalg.svd(centred, compute_uv=False)
    largest = max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    values = values[: max(min(len(rows) - 1, rows.shape[1]), 1)]
    found = float(np.median(values)) / np.sqrt(max(rows.shape))
    if found > max(rows.shape) * np.finfo(float).eps * largest:
        return found
    return LEAST_NOISE * float(np.sqrt(np.mean(centred**2)))


def counts(most: int) -> list[int]:
    """Return numbers of components to try, up to ``most``: two in each doubling, and the largest."""
    doublings = [2**i for i in range(int(np.log2(most)) + 1)]
    return sorted({k for each in doublings for k in (each, 3 * each // 2) if k <= most} | {most})


def _path(problem: HeldOut, asked: Question, wish: Wish) -> Array:
    """Return (gamma, k, error) for numbers of components, as long as errors fall."""
    k = None if wish.k or asked.k is None else min(asked.k, len(problem.seen))
    drive = partial(run, tol=asked.tol, max_iter=asked.max_iter)
    found = find(as_rows(problem.seen), replace(asked, k=k, drive=drive))
    values = feature_map(found.approximation, found.kernel, found.basis, found.about)(problem.noisy)
    z = values @ found.coefficients - found.offset
    gamma = getattr(found.kernel, "gamma", 0.0)
    most = max(int((found.values > 0).sum()), 1)
    tried: list[tuple[float, float, float]] = []
    for k in counts(most) if wish.k else [most]:
        tried.append((gamma, k, _error(problem, found, z[:, :k], wish.preimage)))
        if len(tried) - 1 - int(np.argmin([error for *_, error in tried])) >= PATIENCE:
            break
    return np.array(tried)


def _error(problem: HeldOut, found: Found, z: Array, preimage: str | None) -> float:
    """Return the mean squared error of rows restored from their leading scores."""
    k = z.shape[1]
    features = feature_map(found.approximation, found.kernel, found.basis, found.about)
    known = problem.seen if found.approximation == "fourier" or preimage == "ridge" else found.basis
    model = Model(features, found.coefficients[:, :k], found.offset[:k], found.mean, found.about, known)
    way = way_back(resolve_preimage(preimage, found.kernel), model, found.kernel, ridge_rows=RIDGE_ROWS)
    return float(np.mean((way(z, problem.noisy)[0] - problem.wanted) ** 2))


def in_words(tried: Array, noise: float) -> str:
    """Say what was chosen, and from how much."""
    gamma, k, error = tried[int(np.argmin(tried[:, 2]))]
    what = f"{int(k)} component{'' if k == 1 else 's'}" + (f" with gamma {gamma:.3g}" if gamma > 0 else "")
    return (
        f"Of {len(tried)} models tried, {what} restored rows best that were held out: noise of standard deviation "
        f"{noise:.3g} was added to them, and the mean squared error is {error:.3g}."
    )


def descend(error: Callable[[int], float], most: int) -> int:
    """Return the integer, from -most to most, at which ``error`` has ceased to fall on both sides, begun at 0."""
    known = {0: error(0), 1: error(1), -1: error(-1)}
    best = min(known, key=known.__getitem__)
    step = best
    while step and abs(best + step) <= most:
        known[best + step] = error(best + step)
        if known[best + step] >= known[best]:
            break
        best += step
    return best
