"""Greedy pursuit on the Gram matrix, row by row: the recursion of `princomp.coders.pursuit`, which is its twin.

What is left of the atoms after orthogonalisation is never formed: only its products with all atoms, one row of Q for
each atom taken, and these stay in the cache. With unit atoms, and x in units in which |x| is about 1:

unit (K, W): products of the atoms (W: K, and zeros to fill up lanes)    given (K,): correlations with x, float64
c, left (W,): see the twin    Q (limit, W): a row for each atom taken    support (limit,): which atom it is of
b, a (limit,): x = sum_j b_j (j-th direction) + r = sum_j a_j u_j + r    slope, better, before, shares (limit,): to work

Functions get arrays one by one: taking them out of a tuple costs as much as a step does.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from princomp._compiled import compiled, part
from princomp._compiled.lanes import (
    WIDE,
    choose,
    counted,
    exchanged,
    first,
    fused,
    lessened,
    load_wide,
    spread_wide,
    store,
)
from princomp._typing import Array

WORK = 2e8  # multiplications in a call, at the most: a call cannot be interrupted
LOOK = 1e3  # see `princomp.coders.pursuit`
SMALLEST = 2.0**-1000  # a square with all its digits


class Rule(NamedTuple):
    """What is taken, and when it is enough; numbers as in `princomp.coders.pursuit`."""

    limit: int  # atoms, at the most
    error: float  # norm of the residual that is small enough; below 0: none is
    ols: bool
    nonnegative: bool
    rest: float  # see FLOOR
    noise: float  # see NOISE
    margin: float  # see MARGIN


@compiled
def _normalise(G: Array, inverse: Array, unit: Array, whole: Array) -> None:
    """Put 1 / |d_k| (0 for zero atoms), products of unit atoms and their squared norms into the others."""
    for k in range(len(G)):
        whole[k] = G[k, k] > 0.0
        inverse[k] = 1.0 / np.sqrt(G[k, k]) if G[k, k] > 0.0 else 0.0
    for k in range(len(G)):
        for other in range(len(G)):
            unit[k, other] = (G[k, other] * inverse[k]) * inverse[other]


@part
def _better(one: Any, other: Any, zero: Any) -> Any:
    """Return, lane by lane, whose gain is larger: (gain, over, place), the gain being gain / over."""
    mine, theirs = fused(one[0], other[1], zero), fused(other[0], one[1], zero)
    return (
        choose(mine, theirs, one[0], other[0]),
        choose(mine, theirs, one[1], other[1]),
        choose(mine, theirs, one[2], other[2]),
    )


@part
def _spread_rule(how: Rule, noise: float, number: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the rule as `_merit` wants it, of this type of numbers; ``noise`` is what c^2 may be by rounding."""
    return (
        spread_wide(number(how.rest)),
        spread_wide(number(noise)),
        spread_wide(number(how.ols)),
        spread_wide(number(not how.ols)),
        spread_wide(number(0 if how.nonnegative else -np.inf)),
    )


@part
def _merit(c: Any, left: Any, rule: Any, zero: Any, one: Any) -> tuple[Any, Any]:
    """Return what taking atoms would gain, as gain / over; 0 where they may not be taken."""
    floor, noise, by_left, by_one, least = rule
    size = choose(c, least, c, zero)
    gain = fused(size, size, zero)
    gain = choose(left, floor, choose(gain, noise, gain, zero), zero)
    return gain, choose(left, floor, fused(by_left, left, by_one), one)


@part
def _winner(found: Any, zero: Any, one: Any) -> int:
    """Return the place of the largest gain of all lanes, -1 if there is none."""
    found = (found[0], found[1], fused(one, counted(zero), found[2]))
    found = _better(found, (exchanged(found[0], 8), exchanged(found[1], 8), exchanged(found[2], 8)), zero)
    found = _better(found, (exchanged(found[0], 4), exchanged(found[1], 4), exchanged(found[2], 4)), zero)
    found = _better(found, (exchanged(found[0], 2), exchanged(found[1], 2), exchanged(found[2], 2)), zero)
    found = _better(found, (exchanged(found[0], 1), exchanged(found[1], 1), exchanged(found[2], 1)), zero)
    return int(first(found[2])) if first(found[0]) > 0.0 else -1


@compiled
def _best(c: Array, left: Array, how: Rule, noise: float) -> int:
    """Return the atom to take, -1 if there is none."""
    number = c.dtype.type
    zero, one = spread_wide(number(0)), spread_wide(number(1))
    rule = _spread_rule(how, noise, c.dtype.type)
    found = (zero, one, zero)
    for here in range(0, len(c), WIDE):
        gain, over = _merit(load_wide(c, here), load_wide(left, here), rule, zero, one)
        found = _better((gain, over, spread_wide(number(here))), found, zero)
    return _winner(found, zero, one)


@compiled
def _take(unit: Array, Q: Array, c: Array, left: Array, shares: Array, at: int, k: int, how: Rule, noise: float) -> int:
    """Take atom k as the one at this place: orthogonalise, take its direction out of c; return the best to follow."""
    number = c.dtype.type
    width = len(c)
    over = number(1) / np.sqrt(left[k])
    for j in range(at):
        shares[j] = -Q[j, k]
    zero, one = spread_wide(number(0)), spread_wide(number(1))
    minus_b, over_length = spread_wide(-c[k] * over), spread_wide(over)
    rule = _spread_rule(how, noise, c.dtype.type)
    found = (zero, one, zero)
    for here in range(0, width, WIDE):
        q = load_wide(unit, k * width + here)
        for j in range(at):
            q = fused(spread_wide(shares[j]), load_wide(Q, j * width + here), q)
        q = fused(q, over_length, zero)
        now, rest = fused(minus_b, q, load_wide(c, here)), lessened(load_wide(left, here), q, q)
        store(Q, at * width + here, q)
        store(c, here, now)
        store(left, here, rest)
        gain, per = _merit(now, rest, rule, zero, one)
        found = _better((gain, per, spread_wide(number(here))), found, zero)
    return _winner(found, zero, one)


@compiled
def _restart(given: Array, whole: Array, c: Array, left: Array) -> None:
    """Forget all atoms taken."""
    for k in range(len(given)):
        c[k] = given[k]
        left[k] = whole[k]


@compiled
def _triangle(Q: Array, support: Array, count: int, a: Array) -> None:
    """Solve R a = a, R_ij = Q[i, k_j], in place."""
    for i in range(count - 1, -1, -1):
        value = a[i]
        for j in range(i + 1, count):
            value -= Q[i, support[j]] * a[j]
        a[i] = value / Q[i, support[i]]


@compiled
def _triangle_across(Q: Array, support: Array, count: int, a: Array) -> None:
    """Solve R'a = a, in place."""
    for i in range(count):
        value = a[i]
        for j in range(i):
            value -= Q[j, support[i]] * a[j]
        a[i] = value / Q[i, support[i]]


@compiled
def _dependent(
    Q: Array, support: Array, count: int, left: Array, k: int, floor: float, least: float, suspect: float, w: Array
) -> bool:
    """Whether what is left of atom k may be rounding; it is then never taken."""
    if left[k] > suspect and left[k] * least > LOOK * floor:
        return False
    for j in range(count):
        w[j] = Q[j, k]
    _triangle(Q, support, count, w)
    total = 1.0
    for j in range(count):
        total += abs(w[j])
    if left[k] > floor * total * total:
        return False
    left[k] = 0.0
    return True


@compiled
def _slope(G: Array, inverse: Array, given: Array, support: Array, count: int, a: Array, slope: Array) -> float:
    """Put c - G a on the support into ``slope``, and return its largest size."""
    most = 0.0
    for i in range(count):
        k = support[i]
        total = 0.0
        for j in range(count):
            total += G[k, support[j]] * inverse[support[j]] * a[j]
        slope[i] = given[k] - total * inverse[k]
        most = max(most, abs(slope[i]))
    return most


@compiled
def _solve(
    G: Array,
    inverse: Array,
    given: Array,
    Q: Array,
    support: Array,
    count: int,
    b: Array,
    a: Array,
    slope: Array,
    better: Array,
    accurate: float,
) -> None:
    """Put the least-squares coefficients on the support into ``a``: by the recursion, then refined."""
    for i in range(count):
        a[i] = b[i]
    _triangle(Q, support, count, a)
    worst = _slope(G, inverse, given, support, count, a, slope)
    for _ in range(3):
        if not worst > accurate:
            return
        for i in range(count):
            better[i] = slope[i]
        _triangle_across(Q, support, count, better)
        _triangle(Q, support, count, better)
        for i in range(count):
            a[i] += better[i]
        now = _slope(G, inverse, given, support, count, a, slope)
        if not now < worst:
            for i in range(count):
                a[i] -= better[i]
            return
        worst = now


@compiled
def _measured(given: Array, support: Array, count: int, a: Array, slope: Array, square: float, margin: float) -> float:
    """Return |x - a D|^2, and what rounding may hide of it on top."""
    left, total = square, square
    for i in range(count):
        left -= a[i] * (given[support[i]] + slope[i])
        total += a[i] * a[i]
    return left + margin * total if count > 0 else square


@compiled
def _keep_positive(Q: Array, support: Array, count: int, b: Array, a: Array, before: Array) -> int:
    """Step towards the least-squares solution as far as it stays positive; drop what has become zero.

    Return how many atoms are kept. ``before`` has the coefficients at the beginning, and in the end.
    """
    for i in range(count):
        a[i] = b[i]
    _triangle(Q, support, count, a)
    step, out = 1.0, -1
    for i in range(count):
        if a[i] <= 0.0:
            part = before[i] / (before[i] - a[i]) if before[i] > 0.0 else 0.0
            if out < 0 or part < step:
                step, out = part, i
    kept = 0
    for i in range(count):
        value = before[i] + step * (a[i] - before[i])
        if i != out and (out < 0 or value > 0.0):
            support[kept] = support[i]
            before[kept] = value
            kept += 1
    return kept


@compiled
def _pursue_row(
    G: Array,
    inverse: Array,
    unit: Array,
    whole: Array,
    given: Array,
    c: Array,
    left: Array,
    Q: Array,
    shares: Array,
    support: Array,
    b: Array,
    a: Array,
    slope: Array,
    better: Array,
    before: Array,
    square: float,
    most: float,
    how: Rule,
) -> int:
    """Take atoms one after the other; return how many. Their coefficients are in ``a``."""
    count, least, residual = 0, 1.0, square
    _restart(given, whole, c, left)
    noise, suspect = how.noise * how.noise, np.sqrt(np.sqrt(how.rest))
    k = _best(c, left, how, noise)
    for _ in range(3 * how.limit):
        if residual <= most:
            _solve(G, inverse, given, Q, support, count, b, a, slope, better, how.noise)
            _slope(G, inverse, given, support, count, a, slope)
            if _measured(given, support, count, a, slope, square, how.margin) <= most:
                break
        if count == how.limit:
            break
        while k >= 0 and _dependent(Q, support, count, left, k, how.rest, least, suspect, slope):
            k = _best(c, left, how, noise)
        if k < 0:
            break
        least = min(least, left[k])
        noise = how.noise * how.noise / least
        support[count], b[count], before[count] = k, c[k] / np.sqrt(left[k]), 0.0
        if count + 1 < how.limit or how.nonnegative:
            k = _take(unit, Q, c, left, shares, count, k, how, noise)
        else:  # no other will follow
            Q[count, k] = np.sqrt(left[k])
        count += 1
        while how.nonnegative:
            kept = _keep_positive(Q, support, count, b, a, before)
            if kept == count:
                break
            count = kept
            _restart(given, whole, c, left)
            for j in range(count):
                b[j] = c[support[j]] / np.sqrt(left[support[j]])
                _take(unit, Q, c, left, shares, j, support[j], how, noise)
            k = _best(c, left, how, noise)
        residual = square
        for i in range(count):
            residual -= b[i] * b[i]
    _solve(G, inverse, given, Q, support, count, b, a, slope, better, how.noise)
    return count


@compiled
def _enter(correlations: Array, row: int, square: float, inverse: Array, given: Array) -> float:
    """Put a row's correlations with unit atoms into ``given``, in units (a power of two) in which |x| is about 1.

    Return one over these units. Where |x|^2 cannot be written, the largest correlation stands for |x|.
    """
    size = np.sqrt(square)
    if not SMALLEST < square < np.inf:
        size = 0.0
        for k in range(len(given)):
            size = max(size, abs(correlations[row, k] * inverse[k]))
    scale = math.ldexp(1.0, 1 - math.frexp(size)[1]) if 0.0 < size < np.inf else 1.0
    for k in range(len(given)):
        given[k] = correlations[row, k] * inverse[k] * scale
    return scale


@compiled
def _write(
    support: Array, a: Array, count: int, inverse: Array, over: float, at: int, indices: Array, data: Array
) -> int:
    """Write a code, sorted; return where the next one begins."""
    begin = at
    for i in range(count):
        k, value = support[i], a[i] * inverse[support[i]] * over
        if value == 0.0:
            continue
        place = at
        while place > begin and indices[place - 1] > k:
            indices[place], data[place] = indices[place - 1], data[place - 1]
            place -= 1
        indices[place], data[place] = k, value
        at += 1
    return at


@compiled
def _pursue(
    grams: Array, correlations: Array, squares: Array, how: Rule, ends: Array, indices: Array, data: Array
) -> int:
    """Code rows until all are done, or so much was done that others may want to be heard; return how many."""
    K, limit, dtype = correlations.shape[1], how.limit, correlations.dtype
    width = (K + WIDE - 1) // WIDE * WIDE
    inverse, given = np.zeros(K), np.zeros(K)
    unit, whole, Q = np.zeros((K, width), dtype), np.zeros(K, dtype), np.empty((limit, width), dtype)
    c, left, shares = np.zeros(width, dtype), np.zeros(width, dtype), np.zeros(limit, dtype)
    support, b, a = np.zeros(limit, np.int64), np.zeros(limit), np.zeros(limit)
    slope, better, before = np.zeros(limit), np.zeros(limit), np.zeros(limit)
    at, work, G = 0, 0, grams[0]
    for i in range(len(squares)):
        if i == 0 or len(grams) > 1:
            G = grams[i]
            _normalise(G, inverse, unit, whole)
        scale = _enter(correlations, i, squares[i], inverse, given)
        square = (squares[i] * scale) * scale
        most = (how.error * scale) ** 2 if how.error >= 0.0 else -1.0
        count = _pursue_row(
            G, inverse, unit, whole, given, c, left, Q, shares, support, b, a, slope, better, before, square, most, how
        )
        if how.nonnegative:
            for j in range(count):
                a[j] = max(a[j], 0.0)
        at = _write(support, a, count, inverse, 1.0 / scale, at, indices, data)
        ends[i] = at
        work += K * (8 + count * (8 + count))
        if work > WORK:
            return i + 1
    return len(squares)


def pursue(grams: Array, correlations: Array, squares: Array, how: Rule) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of the codes (m, K), CSR, from (1 or m, K, K), (m, K) and (m,)."""
    m, dtype = len(correlations), correlations.dtype
    grams, squares = np.ascontiguousarray(grams, np.float64).view(), np.ascontiguousarray(squares, np.float64).view()
    correlations = np.ascontiguousarray(correlations).view()
    for given in (grams, correlations, squares):
        given.flags.writeable = False  # one compiled form for all, be they maps of files or not
    indptr, done = np.zeros(m + 1, np.int64), 0
    indices, data = [np.empty(0, np.int32)], [np.empty(0, dtype)]
    while done < m:
        here = slice(done, m)
        more = (np.empty((m - done) * how.limit, np.int32), np.empty((m - done) * how.limit, dtype))
        own = grams[here] if len(grams) > 1 else grams
        some = _pursue(own, correlations[here], squares[here], how, indptr[done + 1 :], *more)
        end = indptr[done + some]
        indices.append(more[0][:end])
        data.append(more[1][:end])
        indptr[done + 1 : done + some + 1] += indptr[done]
        done += some
    return indptr, np.concatenate(indices), np.concatenate(data)


def warm_up() -> None:
    """Compile for single and double precision."""
    how = Rule(1, 0.0, True, False, 0.0, 0.0, 0.0)
    for dtype in (np.float32, np.float64):
        pursue(np.eye(2)[None], np.eye(2, dtype=dtype), np.ones(2), how)
