"""Greedy coordinate descent for l0 and powers below 1, row by row: see `princomp.coders.entries`. Its own twin."""

from typing import Any

import numpy as np

from princomp._compiled import compiled_or_itself
from princomp._compiled.coding_terms import Price
from princomp._typing import Array

NEWTON = 100  # steps; see `princomp.penalties.entries.Lp`
SWEEPS = 2000  # over the support, at the end; some ten are usual
HASTY = 5  # while entries come and go
FAR = 1e18  # in units of the threshold: nothing that can be seen is taken away


@compiled_or_itself
def _value(price: Price, a: float) -> float:
    if a == 0.0:
        return 0.0
    return price.alpha if price.power == 0.0 else price.alpha * abs(a) ** price.power


@compiled_or_itself
def _nearest(price: Price, u: float, weight: float) -> float:
    """Return the minimiser of weight / 2 (z - u)^2 + price(z)."""
    if price.nonnegative and u <= 0.0:
        return 0.0
    p, size, t = price.power, abs(u), price.alpha / weight
    unit = t ** (1 / (2 - p))
    if size <= (2 - p) / (2 - 2 * p) * (2 - 2 * p) ** (1 / (2 - p)) * unit:
        return 0.0
    if p == 0.0 or size >= FAR * unit:
        return u
    v = size / unit
    z = v
    for _ in range(NEWTON):
        pull = p * z ** (p - 2)
        change = ((1.0 + pull) * z - v) / (1.0 - (1 - p) * pull)
        z -= change
        if not change > 1e-15 * z:
            break
    return z * unit if u > 0.0 else -z * unit


@compiled_or_itself
def _settle(gram: Array, price: Price, a: Array, support: Array, slopes: Array, tol: float, sweeps: int) -> bool:
    """Descend along the atoms of the support, one after the other, until slopes change by ``tol`` at the most.

    ``slopes`` is c - G a on the support; a and slopes are changed in place.
    """
    s = len(support)
    part = np.empty((s, s))
    for i in range(s):
        for j in range(s):
            part[i, j] = gram[support[i], support[j]]
    for _ in range(sweeps):
        largest = 0.0
        for i in range(s):
            k, weight = support[i], part[i, i]
            change = _nearest(price, a[k] + slopes[i] / weight, weight) - a[k]
            if change != 0.0:
                a[k] += change
                for j in range(s):
                    slopes[j] -= change * part[i, j]
                largest = max(largest, abs(change) * weight)
        if largest <= tol:
            return True
    return False


@compiled_or_itself
def _descend(gram: Array, c: Array, square: float, price: Price, a: Array, tol: float) -> bool:
    """Improve a code in place; say whether no change of one entry can lower the objective by anything to speak of."""
    K = len(c)
    most, steepest = 1e-14 * square, 0.0
    for k in range(K):
        steepest = max(steepest, abs(c[k]))
        if not gram[k, k] > 0.0:
            a[k] = 0.0  # an atom of zeros
    settled = thorough = True
    for _ in range(20 * K + 100):
        support = np.flatnonzero(a)
        slopes = c.copy()
        for i in support:
            slopes -= a[i] * gram[i]
        if len(support) > 0:
            settled = _settle(gram, price, a, support, slopes[support], tol * steepest, SWEEPS if thorough else HASTY)
            support = np.flatnonzero(a)
            slopes = c.copy()
            for i in support:
                slopes -= a[i] * gram[i]
        best, entry, gain = -1, 0.0, most
        for k in range(K):
            weight = gram[k, k]
            if not weight > 0.0:
                continue
            u = a[k] + slopes[k] / weight
            z = _nearest(price, u, weight)
            if z != a[k]:
                fall = weight / 2 * (a[k] - z) * (a[k] + z - 2 * u) + _value(price, a[k]) - _value(price, z)
                if fall > gain:
                    best, entry, gain = k, z, fall
        if best >= 0:
            a[best], thorough = entry, False
        elif settled or thorough:
            return settled
        else:
            thorough = True
    return False


@compiled_or_itself
def entry_codes(
    grams: Array, correlations: Array, squares: Array, price: Price, codes: Array, settled: Array, tol: float
) -> None:
    """Improve codes (m, K) in place, row by row; ``settled`` (m,) says which cannot be improved, to ``tol``."""
    for i in range(len(codes)):
        own = grams[i if len(grams) > 1 else 0]
        settled[i] = _descend(own, correlations[i], squares[i], price, codes[i], tol)


def warm_up() -> None:
    """Compile."""
    price: Any = Price(0.1, 0.5, False)
    entry_codes(np.eye(2)[None], np.ones((1, 2)), np.ones(1), price, np.zeros((1, 2)), np.zeros(1, dtype=bool), 1e-6)
