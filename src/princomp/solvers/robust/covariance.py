"""Minimum covariance determinant (Rousseeuw & Van Driessen, Technometrics 1999; Hubert, Rousseeuw & Verdonck, 2012).

Objective: minimise log det of the covariance of h of the n rows of X (n, p), over all subsets of h. A C-step takes the
h rows nearest to the mean of a subset, in the metric of its covariance: the determinant never grows. Steps begin from
the h rows nearest to deterministic estimates, those of Hubert, Rousseeuw & Verdonck (J. Comput. Graph. Stat. 2012) but
for the one by pairs of columns, and to means of a few rows drawn at random; after two steps the best go on until no row
is exchanged. Mean and covariance are then taken of all rows within the 97.5 % point of the distance (`reweighted`).

Columns are in units of their own robust scales, and a variance counts as at least `FLAT` there: a subset that lies on a
hyperplane has a determinant like any other, only far smaller, and rows off the hyperplane are far away.

A value holds "subsets" (s, h), row numbers; of each, "means" (s, p), "vectors" (s, p, p) and "values" (s, p) of its
covariance, "moved" (s,), the share of its rows that the last step exchanged; and "iteration".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.robust.univariate import (
    SHARE,
    column_scales,
    consistency,
    limit,
    mad,
    median,
    narrowest,
    small_sample,
)

FLAT = 1e-13  # of the variance of columns: less is none
ROUNDING = 8 * float(np.finfo(np.float64).eps)  # of the largest variance: what eigenvalues are known by
SAME = 1e-10  # log determinants that differ by less are the same
FIRST_STEPS = 2  # after which only the best subsets go on
BEST = 10
# Random beginnings: as many as Rousseeuw & Van Driessen take, or as this much work allows (of 1000 x 10: 200, 0.2 s).
DRAWN, DRAWN_LEAST, DRAWN_WORK = 500, 20, 2e7
TILE_BYTES = 2**24


@dataclass(frozen=True)
class Mcd:
    """A robust mean and covariance."""

    mean: Array  # (p,)
    covariance: Array  # (p, p)
    regular: Array  # (n,) of bool: the rows that these are of
    subset: Array  # (n,) of bool: the h rows whose determinant is least
    raw_mean: Array  # (p,) of the subset
    raw_covariance: Array  # (p, p) of it, made consistent
    factor: float  # what the covariance of the regular rows was multiplied by
    rank: int  # of it: directions in which they vary by more than rounding


def standardised(X: Array, h: int) -> Array:
    """Return columns less their medians, in units of their robust scales: an MCD turns with them."""
    return (X - median(X)) / column_scales(X, h)


# Beginnings


def start(Z: Array, h: int, rng: np.random.Generator, given: Sequence[Array] = ()) -> Value:
    """Return the value before the first step, of standardised rows Z; ``given`` are row numbers of further subsets.

    Of one column the answer is known: all candidates are looked at.
    """
    n, p = Z.shape
    if p == 1:
        mean, _ = narrowest(np.sort(Z, axis=0), h)
        return _value(Z, np.sort(np.argpartition(np.abs(Z[:, 0] - mean), h - 1)[:h])[None], None, 0)
    beginnings = [_nearest(_fit(Z, rows[None]), Z, h)[0] for rows in (*_deterministic(Z), *given)]
    m = min(p + 1, n)
    count = int(np.clip(DRAWN_WORK / (n * p * p), DRAWN_LEAST, DRAWN))
    drawn = np.argpartition(rng.random((count, n)), m - 1, axis=1)[:, :m]
    subsets = np.concatenate([np.stack(beginnings), _nearest(_fit(Z, drawn), Z, h)])
    return _value(Z, np.unique(np.sort(subsets, axis=1), axis=0), None, 0)


def _deterministic(Z: Array) -> Iterator[Array]:
    """Yield the half of the rows nearest to each of five estimates, by the scales of rows along its eigenvectors."""
    n, p = Z.shape
    half = max((n + 1) // 2, min(p + 1, n))
    for S in _estimates(Z, half):
        _, E = np.linalg.eigh(S)
        B = Z @ E
        middle = median(B)
        scale = np.maximum(mad(B, middle), np.sqrt(FLAT))
        yield np.argpartition((((B - middle) / scale) ** 2).sum(axis=1), half - 1)[:half]


def _estimates(Z: Array, half: int) -> Iterator[Array]:
    """Yield covariance matrices of which no single one need be right: each withstands some outliers."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    n = len(Z)
    ranks = rankdata(Z, axis=0)
    norms = np.linalg.norm(Z, axis=1)
    for bounded in (np.tanh(Z), ranks - (n + 1) / 2, ndtri((ranks - 1 / 3) / (n + 1 / 3))):
        centred = bounded - bounded.mean(axis=0)
        lengths = np.linalg.norm(centred, axis=0)
        centred /= np.where(lengths > 0, lengths, 1.0)
        yield centred.T @ centred
    signs = Z / np.where(norms > 0, norms, 1.0)[:, None]
    yield signs.T @ signs
    inner = Z[np.argpartition(norms, half - 1)[:half]]
    inner = inner - inner.mean(axis=0)
    yield inner.T @ inner


# Steps


def concentrate(Z: Array, value: Value) -> Iterator[State]:
    """Yield states that fall to a local minimum; the first of the subsets of a value is the best."""
    h = value["subsets"].shape[1]
    while True:
        iteration = int(value["iteration"]) + 1
        stepped = _value(Z, np.sort(_nearest(value, Z, h), axis=1), value["subsets"], iteration)
        # Of equal distances any row may be taken: where nothing is gained, nothing has moved.
        better = _determinants(stepped) < _determinants(value) - SAME
        moved = np.where(better, stepped["moved"], 0.0)
        subsets = {
            name: np.where(better.reshape(-1, *[1] * (stepped[name].ndim - 1)), stepped[name], value[name])
            for name in ("subsets", "means", "vectors", "values")
        }
        order = np.argsort(_determinants(subsets), kind="stable")
        if iteration >= FIRST_STEPS:  # each of them once
            order = order[np.diff(_determinants(subsets)[order], prepend=-np.inf) > SAME][:BEST]
        value = {name: array[order] for name, array in (subsets | {"moved": moved}).items()}
        value["iteration"] = np.array(iteration)
        yield State(value, float(_determinants(value)[0]), float(value["moved"].max()), iteration)
        if not value["moved"].any():
            return


def _determinants(value: Value) -> Array:
    """Return log determinants (s,)."""
    return np.log(value["values"]).sum(axis=1)


def _value(Z: Array, subsets: Array, before: Array | None, iteration: int) -> Value:
    moved = np.ones(len(subsets))
    if before is not None:
        inside = np.zeros((len(subsets), len(Z)), dtype=bool)
        np.put_along_axis(inside, before, True, axis=1)
        moved = 1 - np.take_along_axis(inside, subsets, axis=1).mean(axis=1)
    return _fit(Z, subsets) | {"subsets": subsets, "moved": moved, "iteration": np.array(iteration)}


def _fit(Z: Array, subsets: Array) -> dict[str, Array]:
    """Return mean, eigenvectors and eigenvalues of the covariance of each subset (s, m)."""
    (s, m), p = subsets.shape, Z.shape[1]
    means, covariances = np.empty((s, p)), np.empty((s, p, p))
    step = max(TILE_BYTES // (8 * m * p), 1)
    for begin in range(0, s, step):
        here = slice(begin, begin + step)
        rows = Z[subsets[here]]
        means[here] = rows.mean(axis=1)
        rows -= means[here][:, None]
        covariances[here] = rows.transpose(0, 2, 1) @ rows / max(m - 1, 1)
    values, vectors = np.linalg.eigh(covariances)
    return {"means": means, "vectors": vectors, "values": np.maximum(values, _least(values))}


def _least(values: Array) -> Array:
    """Return what variances (s, p), rising, count as at least (s, 1): of those far below the last, rounding is left."""
    return np.maximum(ROUNDING * values[:, -1:], FLAT)


def _nearest(value: Value, Z: Array, h: int) -> Array:
    """Return the h rows (s, h) nearest to each mean."""
    return np.argpartition(_distances(value, Z), h - 1, axis=1)[:, :h]


def _distances(value: Value, Z: Array) -> Array:
    """Return squared distances (s, n) of rows."""
    (n, p), s = Z.shape, len(value["means"])
    out = np.empty((s, n))
    step = max(TILE_BYTES // (8 * n * p), 1)
    for begin in range(0, s, step):
        here = slice(begin, begin + step)
        whiten = value["vectors"][here] / np.sqrt(value["values"][here])[:, None]
        apart = Z @ whiten - (value["means"][here][:, None] @ whiten)
        out[here] = np.einsum("snp,snp->sn", apart, apart)
    return out


# The answer


def reweighted(X: Array, subset: Array) -> Mcd:
    """Return mean and covariance of the rows within the 97.5 % point, by an MCD that rests on some rows (h,).

    Directions in which these do not vary, up to rounding, have no variance, and rows that do are not regular.
    """
    n, p = X.shape
    h = len(subset)
    coverage = min(max(h / n, 0.5), 1.0)
    middle, scale = median(X), column_scales(X, h)
    Z = (X - middle) / scale
    raw = _fit(Z, subset[None])
    factor = consistency(p, h / n) * small_sample(n, p, coverage, reweighted=False)
    regular = _distances(raw, Z)[0] <= limit(p) * factor
    regular[subset] |= not regular.any()
    fitted = _fit(Z, np.flatnonzero(regular)[None])
    again = consistency(p, SHARE) * small_sample(n, p, coverage, reweighted=True)
    mask = np.zeros(n, dtype=bool)
    mask[subset] = True
    return Mcd(
        middle + scale * fitted["means"][0],
        _covariance(fitted, again, scale),
        regular,
        mask,
        middle + scale * raw["means"][0],
        _covariance(raw, factor, scale),
        again,
        int((fitted["values"] > _least(fitted["values"])).sum()),
    )


def _covariance(fitted: Value, factor: float, scale: Array) -> Array:
    """Return a covariance matrix (p, p) in the units of X; variances of no more than rounding are none."""
    values = np.where(fitted["values"] > _least(fitted["values"]), fitted["values"], 0.0)[0]
    half = fitted["vectors"][0] * np.sqrt(factor * values) * scale[:, None]
    return half @ half.T
