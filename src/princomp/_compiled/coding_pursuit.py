"""Greedy pursuit on the Gram matrix, row by row: the recursion of `princomp.coders.pursuit`, which is its twin.

What is left of the atoms after orthogonalisation is never formed: only its products with all atoms, one row of Q for
each atom taken, and these stay in the cache.
"""

from typing import NamedTuple

import numpy as np

from princomp._compiled import compiled
from princomp._typing import Array

WORK = 2e8  # multiplications in a call, at the most: a call cannot be interrupted
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


class Row(NamedTuple):
    """The state of a row: with unit atoms, and |x| between 1 and 2."""

    unit: Array  # (K, K) products of unit atoms
    given: Array  # (K,) correlations at first, float64
    c: Array  # (K,) of the residual with the atoms
    left: Array  # (K,) squared norms of what is left of the atoms
    Q: Array  # (limit, K)
    support: Array  # (limit,)
    b: Array  # (limit,) x = sum_j b_j (j-th direction) + residual
    a: Array  # (limit,) coefficients of unit atoms
    work: Array  # (2, limit)


class Code(NamedTuple):
    """Where codes are written."""

    indices: Array
    data: Array


@compiled
def _normalise(G: Array, inverse: Array, unit: Array) -> None:
    """Put 1 / |d_k| into ``inverse``, 0 where the atom is zero, and products of unit atoms into ``unit``."""
    for k in range(len(G)):
        inverse[k] = 1.0 / np.sqrt(G[k, k]) if G[k, k] > 0.0 else 0.0
    for k in range(len(G)):
        for other in range(len(G)):
            unit[k, other] = (G[k, other] * inverse[k]) * inverse[other]


@compiled
def _begin(row: Row) -> None:
    """Forget all atoms taken."""
    for k in range(len(row.given)):
        row.c[k] = row.given[k]
        row.left[k] = row.unit[k, k]


@compiled
def _best(row: Row, how: Rule, floor: float, noise: float) -> int:
    """Return the atom to take, -1 if there is none."""
    best, most = -1, 0.0
    for k in range(len(row.given)):
        c, left = row.c[k], row.left[k]
        if left > floor and (c > noise or (c < -noise and not how.nonnegative)):
            gain = c * c / left if how.ols else c * c
            if gain > most:
                best, most = k, gain
    return best


@compiled
def _take(row: Row, at: int, k: int) -> None:
    """Take atom k as the one at this place: orthogonalise, and take its direction out of the correlations."""
    q, unit = row.Q[at], row.unit
    q[:] = unit[k]
    for j in range(at):
        share = row.Q[j, k]
        for other in range(len(q)):
            q[other] -= share * row.Q[j, other]
    length = np.sqrt(row.left[k])
    b = row.c[k] / length
    over = q.dtype.type(1.0) / length
    for other in range(len(q)):
        q[other] *= over
        row.c[other] -= b * q[other]
        row.left[other] -= q[other] * q[other]
    row.support[at], row.b[at] = k, b


@compiled
def _triangle(row: Row, count: int, a: Array) -> None:
    """Solve R a = a, R_ij = Q[i, k_j], in place."""
    for i in range(count - 1, -1, -1):
        value = a[i]
        for j in range(i + 1, count):
            value -= row.Q[i, row.support[j]] * a[j]
        a[i] = value / row.Q[i, row.support[i]]


@compiled
def _triangle_across(row: Row, count: int, a: Array) -> None:
    """Solve R'a = a, in place."""
    for i in range(count):
        value = a[i]
        for j in range(i):
            value -= row.Q[j, row.support[i]] * a[j]
        a[i] = value / row.Q[i, row.support[i]]


@compiled
def _dependent(row: Row, count: int, k: int, floor: float) -> bool:
    """Whether what is left of atom k may be rounding; it is then never taken."""
    w = row.work[0]
    for j in range(count):
        w[j] = row.Q[j, k]
    _triangle(row, count, w)
    total = 1.0
    for j in range(count):
        total += abs(w[j])
    if row.left[k] > floor * total * total:
        return False
    row.left[k] = 0.0
    return True


@compiled
def _slope(row: Row, G: Array, inverse: Array, count: int, slope: Array) -> float:
    """Put c - G a on the support into ``slope``, and return its largest size."""
    most = 0.0
    for i in range(count):
        k = row.support[i]
        total = 0.0
        for j in range(count):
            total += G[k, row.support[j]] * inverse[row.support[j]] * row.a[j]
        slope[i] = row.given[k] - total * inverse[k]
        most = max(most, abs(slope[i]))
    return most


@compiled
def _solve(row: Row, G: Array, inverse: Array, count: int, accurate: float) -> None:
    """Put the least-squares coefficients on the support into ``a``: by the recursion, then refined."""
    a, slope, better = row.a, row.work[0], row.work[1]
    for i in range(count):
        a[i] = row.b[i]
    _triangle(row, count, a)
    worst = _slope(row, G, inverse, count, slope)
    for _ in range(3):
        if not worst > accurate:
            return
        for i in range(count):
            better[i] = slope[i]
        _triangle_across(row, count, better)
        _triangle(row, count, better)
        for i in range(count):
            a[i] += better[i]
        now = _slope(row, G, inverse, count, slope)
        if not now < worst:
            for i in range(count):
                a[i] -= better[i]
            return
        worst = now


@compiled
def _enough(row: Row, G: Array, inverse: Array, count: int, square: float, how: Rule, most: float) -> bool:
    """Whether the residual is small enough beyond what rounding may hide."""
    if count == 0:
        return square <= most
    _solve(row, G, inverse, count, how.noise / 4.0)
    _slope(row, G, inverse, count, row.work[0])
    left, total = square, 0.0
    for i in range(count):
        left -= row.a[i] * (row.given[row.support[i]] + row.work[0, i])
        total += row.a[i] * row.a[i]
    return left + how.margin * (square + total) <= most


@compiled
def _stay_nonnegative(row: Row, before: Array, count: int) -> int:
    """Drop atoms as Lawson and Hanson do until the least-squares solution is not negative; return how many are left.

    ``before`` has the coefficients without the last atom; in the end, those with it.
    """
    before[count - 1] = 0.0
    while True:
        for i in range(count):
            row.a[i] = row.b[i]
        _triangle(row, count, row.a)
        step, first = 1.0, -1
        for i in range(count):
            if row.a[i] <= 0.0:
                part = before[i] / (before[i] - row.a[i]) if before[i] > 0.0 else 0.0
                if first < 0 or part < step:
                    step, first = part, i
        if first < 0:
            before[:count] = row.a[:count]
            return count
        kept = 0
        for i in range(count):
            value = before[i] + step * (row.a[i] - before[i])
            if i != first and value > 0.0:
                row.support[kept] = row.support[i]
                before[kept] = value
                kept += 1
        count = kept
        _begin(row)
        for i in range(count):
            _take(row, i, row.support[i])


@compiled
def _pursue_row(row: Row, G: Array, inverse: Array, square: float, most: float, how: Rule, before: Array) -> int:
    """Take atoms one after the other; return how many. Their coefficients are in ``a``."""
    count, least, left = 0, 1.0, square
    _begin(row)
    for _ in range(3 * how.limit):
        if left <= most and _enough(row, G, inverse, count, square, how, most):
            return count
        if count == how.limit:
            break
        k = _best(row, how, how.rest, how.noise / np.sqrt(least))
        while k >= 0 and row.left[k] <= how.rest / least and _dependent(row, count, k, how.rest):
            k = _best(row, how, how.rest, how.noise / np.sqrt(least))
        if k < 0:
            break
        least = min(least, row.left[k])
        _take(row, count, k)
        count += 1
        if how.nonnegative:
            count = _stay_nonnegative(row, before, count)
        left = square
        for i in range(count):
            left -= row.b[i] * row.b[i]
    _solve(row, G, inverse, count, how.noise / 4.0)
    if how.nonnegative:
        for i in range(count):
            row.a[i] = max(row.a[i], 0.0)
    return count


@compiled
def _enter(row: Row, inverse: Array, correlations: Array, square: float) -> float:
    """Put the correlations with unit atoms into the row, in units (a power of two) in which |x| is about 1.

    Return one over these units. Where |x|^2 cannot be written, the largest correlation stands for |x|.
    """
    most = 0.0
    for k in range(len(correlations)):
        row.given[k] = correlations[k] * inverse[k]
        most = max(most, abs(row.given[k]))
    size = np.sqrt(square) if SMALLEST < square < np.inf else most
    if not 0.0 < size < np.inf:
        return 1.0
    scale = 2.0 ** -np.floor(np.log2(size))
    for k in range(len(correlations)):
        row.given[k] *= scale
    return scale


@compiled
def _write(row: Row, inverse: Array, over: float, count: int, at: int, indices: Array, data: Array) -> int:
    """Write a code, sorted; return where the next one begins."""
    begin = at
    for i in range(count):
        k, value = row.support[i], row.a[i] * inverse[row.support[i]] * over
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
    grams: Array, row: Row, inverse: Array, correlations: Array, squares: Array, how: Rule, ends: Array, code: Code
) -> int:
    """Code rows until all are done, or so much was done that others may want to be heard; return how many."""
    before = np.zeros(how.limit)
    at, work = 0, 0
    for i in range(len(squares)):
        G = grams[i] if len(grams) > 1 else grams[0]
        if len(grams) > 1:
            _normalise(G, inverse, row.unit)
        scale = _enter(row, inverse, correlations[i], squares[i])
        square = (squares[i] * scale) * scale
        most = (how.error * scale) ** 2 if how.error >= 0.0 else -1.0
        count = _pursue_row(row, G, inverse, square, most, how, before)
        at = _write(row, inverse, 1.0 / scale, count, at, code.indices, code.data)
        ends[i] = at
        work += len(inverse) * (8 + count * (8 + count))
        if work > WORK:
            return i + 1
    return len(squares)


def pursue(grams: Array, correlations: Array, squares: Array, how: Rule) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data of the codes (m, K), CSR, from (1 or m, K, K), (m, K) and (m,)."""
    m, K = correlations.shape
    dtype = correlations.dtype
    grams, correlations, squares = (
        np.ascontiguousarray(part, kind).view()
        for part, kind in ((grams, np.float64), (correlations, dtype), (squares, np.float64))
    )
    for part in (grams, correlations, squares):
        part.flags.writeable = False  # one compiled form for all, be they maps of files or not
    inverse, counts = np.zeros(K), how.limit
    row = Row(
        unit=np.zeros((K, K), dtype),
        given=np.zeros(K),
        c=np.zeros(K, dtype),
        left=np.zeros(K, dtype),
        Q=np.empty((counts, K), dtype),
        support=np.zeros(counts, np.int64),
        b=np.zeros(counts),
        a=np.zeros(counts),
        work=np.zeros((2, counts)),
    )
    if len(grams) == 1:
        _normalise(grams[0], inverse, row.unit)
    indptr, done = np.zeros(m + 1, np.int64), 0
    parts = [Code(np.empty(0, np.int32), np.empty(0, dtype))]
    while done < m:
        here = slice(done, m)
        code = Code(np.empty((m - done) * counts, np.int32), np.empty((m - done) * counts, dtype))
        some = _pursue(
            grams if len(grams) == 1 else grams[here], row, inverse, correlations[here], squares[here], how,
            indptr[done + 1 :], code,
        )  # fmt: skip
        end = indptr[done + some]
        parts.append(Code(code.indices[:end], code.data[:end]))
        indptr[done + 1 : done + some + 1] += indptr[done]
        done += some
    return indptr, np.concatenate([part.indices for part in parts]), np.concatenate([part.data for part in parts])


def warm_up() -> None:
    """Compile for single and double precision."""
    how = Rule(1, 0.0, True, False, 0.0, 0.0, 0.0)
    for dtype in (np.float32, np.float64):
        pursue(np.eye(2)[None], np.eye(2, dtype=dtype), np.ones(2), how)
