"""Location and scale of columns: median and MAD (Hampel, JASA 1974), univariate MCD (Rousseeuw & Leroy, 1987, ch. 4).

The univariate MCD minimises the variance of h of the n numbers: they stand side by side once these are sorted, so that
all n - h + 1 candidates are looked at, O(n log n). It is then reweighted: mean and variance of all numbers whose
distance from it is within the 97.5 % point. Everything is by column, of arrays (n, m) without NaN.

Scales are those of normal data: variances are multiplied by a consistency factor (Croux & Haesbroeck, J. Multivariate
Anal. 1999) and by what small samples need on average (Pison, Van Aelst & Willems, Metrika 2002).
"""

from functools import cache

import numpy as np

from princomp._typing import Array

NORMAL = 1.482602218505602  # 1 / the 75 % point of the normal distribution: the MAD of normal data times this is sd
DEVIATIONS = 1.959963984540054  # 97.5 % point of the normal distribution
SHARE = 0.975  # of normal rows that distances find regular
# Pison, Van Aelst & Willems: a sample of n finds 1 - exp(a) / n^b of the variance, with a and b by dimension, and by
# coverage, 0.5 and 0.875; for more dimensions than two, 1 - f/p^g at n = 2p^2 and 3p^2.
RAW = {
    1: ((0.262024211897096, 0.604756680630497), (-0.351584646688712, 1.01646567502486)),
    2: ((0.673292623522027, 0.691365864961895), (0.446537815635445, 1.06690782995919)),
}
REWEIGHTED = {
    1: ((1.11098143415027, 1.5182890270453), (-0.66046776772861, 0.88939595831888)),
    2: ((3.11101712909049, 1.91401056721863), (0.79473550581058, 1.10081930350091)),
}
RAW_ABOVE = (
    ((1.42764571687802, 1.26263336932151), (1.06141115981725, 1.28907991440387)),
    ((0.455179464070565, 1.11192541278794), (0.294241208320834, 1.09649329149811)),
)
REWEIGHTED_ABOVE = (
    ((1.02842572724793, 1.67659883081926), (0.26800273450853, 1.35968562893582)),
    ((0.544482443573914, 1.25994483222292), (0.343791072183285, 1.25159004257133)),
)
LEAST_FOUND = 0.5  # of the variance: what these formulae say of samples that find less, of a few rows, is not used


def median(X: Array) -> Array:
    """Return the medians (m,) of columns."""
    return np.median(X, axis=0)


def mad(X: Array, about: Array | None = None) -> Array:
    """Return the median absolute deviations (m,) of columns from their medians, or from a point, times 1.4826."""
    return NORMAL * np.median(np.abs(X - (median(X) if about is None else about)), axis=0)


def median_of(X: Array, there: Array) -> Array:
    """Return the medians (m,) of the numbers that are there in each column, 0 where none is."""
    counts = there.sum(axis=0)
    if (counts == len(X)).all():
        return median(X)
    ordered = np.sort(np.where(there, X, np.inf), axis=0)
    columns = np.arange(X.shape[1])
    middle = (ordered[np.maximum(counts - 1, 0) // 2, columns] + ordered[counts // 2, columns]) / 2
    return np.where(counts > 0, middle, 0.0)


def subset_size(n: int, p: int, coverage: float) -> int:
    """Return h, the rows of n that an MCD of p columns rests on: from (n + p + 1) / 2 at coverage 0.5 to n at 1."""
    half = min((n + p + 1) // 2, n)
    return min(max(int(2 * half - n + 2 * (n - half) * coverage), 1), n)


@cache
def limit(p: int, share: float = SHARE) -> float:
    """Return the point below which so large a share of a chi-squared distribution lies."""
    from scipy.special import gammaincinv

    return float(2 * gammaincinv(p / 2, share))


@cache
def consistency(p: int, share: float) -> float:
    """Return what the covariance of the innermost share of normal rows is multiplied by to be that of all."""
    from scipy.special import gammainc

    return share / float(gammainc(p / 2 + 1, limit(p, share) / 2)) if share < 1 else 1.0


@cache
def small_sample(n: int, p: int, coverage: float, *, reweighted: bool) -> float:
    """Return what an MCD of n rows and p columns is multiplied by, so that it is right on average."""
    known, above = (REWEIGHTED, REWEIGHTED_ABOVE) if reweighted else (RAW, RAW_ABOVE)
    curves = known[p] if p in known else tuple(_curve(p, points) for points in above)
    half, most = (1 - float(np.exp(a)) / n**b for a, b in curves)
    if coverage <= 0.875:
        found = half + (most - half) * (coverage - 0.5) / 0.375
    else:
        found = most + (1 - most) * (coverage - 0.875) / 0.125
    return 1 / found if found > LEAST_FOUND else 1.0


def _curve(p: int, points: tuple[tuple[float, float], ...]) -> tuple[float, float]:
    """Return a and b of 1 - exp(a) / n^b, which passes through what is known at n = 2p^2 and 3p^2."""
    first, second = (float(np.log(f / p**g)) for f, g in points)
    b = (first - second) / float(np.log(1.5))
    return first + b * float(np.log(2 * p * p)), b


def univariate_mcd(X: Array, h: int) -> tuple[Array, Array]:
    """Return the reweighted MCD location and scale (m,) of columns, h > n/2; scale 0 where h numbers are the same."""
    n = len(X)
    middle = median(X)
    away = np.sort(X - middle, axis=0)  # about the median, which lies within every candidate or next to it
    mean, variance = narrowest(away, h)
    variance = variance * (consistency(1, h / n) * small_sample(n, 1, _coverage(n, h), reweighted=False))
    inside = (away - mean) ** 2 <= limit(1) * variance
    counts = inside.sum(axis=0)
    location = np.where(inside, away, 0.0).sum(axis=0) / counts
    squares = np.where(inside, (away - location) ** 2, 0.0).sum(axis=0) / np.maximum(counts - 1, 1)
    factor = consistency(1, SHARE) * small_sample(n, 1, _coverage(n, h), reweighted=True)
    return middle + location, np.sqrt(np.where(variance > 0, factor * squares, 0.0))


def _coverage(n: int, h: int) -> float:
    return min(max(h / n, 0.5), 1.0)


def narrowest(away: Array, h: int) -> tuple[Array, Array]:
    """Return mean and variance of the h numbers of least variance, of sorted columns (n, m) about their medians.

    Every candidate has the numbers from n - h to h - 1. Sums are taken outwards from these: nothing is subtracted, so
    that numbers far out cost those that are not among them no digits.
    """
    n, m = away.shape
    spare = n - h
    sums = []
    for numbers in (away, away**2):
        outwards = np.zeros((spare + 1, m))
        outwards[:spare] = np.cumsum(numbers[:spare][::-1], axis=0)[::-1]  # from i to n - h - 1
        outwards[1:] += np.cumsum(numbers[h:], axis=0)  # from h to i + h - 1
        sums.append(outwards + numbers[spare:h].sum(axis=0))
    means = sums[0] / h
    variances = np.maximum(sums[1] - h * means**2, 0.0) / max(h - 1, 1)
    best = np.argmin(variances, axis=0)
    columns = np.arange(m)
    # Where all h are the same number, what is left of it is rounding.
    same = away[best + h - 1, columns] == away[best, columns]
    mean, variance = means[best, columns], variances[best, columns]
    return np.where(same, away[best, columns], mean), np.where(same, 0.0, variance)


def column_scales(X: Array, h: int) -> Array:
    """Return scales (p,) to divide columns by: reweighted MCD, or, where h cells are the same, standard deviations.

    1 where nothing varies.
    """
    _, scale = univariate_mcd(X, h)
    if (scale > 0).all():
        return scale
    spread = X.std(axis=0, ddof=min(1, len(X) - 1))
    rounding = 8 * np.finfo(np.float64).eps * np.abs(X).max(axis=0)
    scale = np.where(scale > 0, scale, spread)
    return np.where(scale > rounding, scale, 1.0)


def length_limit(lengths: Array) -> float:
    """Return (median + 1.96 MAD)^(3/2) of lengths^(2/3), which are nearly normal: 97.5 % of regular ones are within.

    Those are the lengths (n,) of what is left of rows (Hubert, Rousseeuw & Vanden Branden, Technometrics 2005).
    """
    bent = np.cbrt(lengths) ** 2
    return float((median(bent) + DEVIATIONS * mad(bent)) ** 1.5)


def mean_square(lengths: Array) -> float:
    """Return what the squares of regular lengths (n,) are on average, by the same law: E y^3 of a normal y."""
    bent = np.cbrt(lengths) ** 2
    middle = median(bent)
    return float(middle**3 + 3 * middle * mad(bent) ** 2)
