"""Codes of `princomp.coders.lasso`: for each row a working set of atoms, solved exactly, until the gap is small.

All slopes c - a G are taken in one go over rows of G; on the way each of a few lanes keeps the atom that violates most
among those it has seen. These enter one by one, each only if it still violates after the others have. Twin:
`princomp.coders.lasso.slow_codes`.

Arrays are handed on one by one, and several vectors share one: taking an array out of a tuple counts a reference,
which costs more than a step on a small support does. They are

    measure (3, K)        rows LIMIT, FACTOR, SHIFT of `princomp._compiled.coding_terms.Terms`
    support (room,)       the atoms of the working set, in any order
    numbers (5, room)     of each of these: rows CODE; SIGN of its slope, 0 where it has no limit and may change its
                          sign; COLUMN, its product with an entering atom, and ALONG, how its code moves with that;
                          PIVOT, scratch
    inverse (room, room)  of the Gram matrix of the support; zero from the last atom to the end of its lanes
    slopes (K,)           c - a G
    pool (2, POOL)        rows WORST and ATOM: candidates, and by how much they violate
"""

import numpy as np

from princomp._compiled import compiled
from princomp._compiled.coding_terms import SLACK, VANISHING, Terms
from princomp._compiled.lanes import COUNT, choose, fused, load, spread, store
from princomp._typing import Array

LIMIT, FACTOR, SHIFT = 0, 1, 2
CODE, SIGN, ALONG, COLUMN, PIVOT = 0, 1, 2, 3, 4
WORST, ATOM = 0, 1
WIDTH = 4 * COUNT  # columns of G in registers at a time
POOL = 2 * COUNT  # lanes, each with a candidate
ROOM = 32  # atoms in a working set, before it has to grow
SHARE = 0.2  # of the largest violation lets another atom in before the next scan (.05 to .5 are as fast, on patches)
DEPENDENT = 1e-11  # share of its square that an atom must have outside the others, else it lies in their span
SETTLED, STUCK, FULL = 1, 0, -1  # how a search can end: the gap is small, rounding is in the way, no room is left
WORK = 1e8  # multiplications in a call, roughly and at the most: a call cannot be interrupted
SWEEPS = 1000  # of coordinate descent, at the most


@compiled
def _scan(
    G: Array,
    c: Array,
    measure: Array,
    both: float,
    support: Array,
    numbers: Array,
    count: int,
    slopes: Array,
    pool: Array,
) -> float:
    """Put c - a G into the slopes, the largest violations and their atoms into the pool; return the largest."""
    K, zero = len(c), spread(0.0)
    sign, best0, best1, at0, at1 = spread(both), zero, zero, zero, zero
    for begin in range(0, K, WIDTH):
        here = min(begin, K - WIDTH)
        s0, s1, s2, s3 = load(c, here), load(c, here + COUNT), load(c, here + 2 * COUNT), load(c, here + 3 * COUNT)
        for j in range(count):
            minus, row = spread(-numbers[CODE, j]), support[j] * K + here
            s0 = fused(minus, load(G, row), s0)
            s1 = fused(minus, load(G, row + COUNT), s1)
            s2 = fused(minus, load(G, row + 2 * COUNT), s2)
            s3 = fused(minus, load(G, row + 3 * COUNT), s3)
        for part in range(4):
            slope = s0 if part == 0 else s1 if part == 1 else s2 if part == 2 else s3
            first = here + part * COUNT
            store(slopes, first, slope)
            other = fused(slope, sign, zero)
            size = choose(slope, other, slope, other)
            violation = fused(size, load(measure, FACTOR * K + first), load(measure, SHIFT * K + first))
            if part % 2 == 0:
                at0 = choose(violation, best0, spread(float(first)), at0)
                best0 = choose(violation, best0, violation, best0)
            else:
                at1 = choose(violation, best1, spread(float(first)), at1)
                best1 = choose(violation, best1, violation, best1)
    store(pool, 0, best0)
    store(pool, COUNT, best1)
    store(pool, POOL, at0)
    store(pool, POOL + COUNT, at1)
    top = 0.0
    for lane in range(POOL):
        pool[ATOM, lane] += lane % COUNT
        top = max(top, pool[WORST, lane])
    return top


@compiled
def _drop(support: Array, numbers: Array, inverse: Array, j: int, count: int) -> None:
    """Take entry j of the support out: the last one takes its place."""
    last, room = count - 1, len(support)
    for i in range(0, count, COUNT):
        store(numbers, PIVOT * room + i, load(inverse, j * room + i))
        store(inverse, j * room + i, load(inverse, last * room + i))
    pivot, numbers[PIVOT, j], numbers[PIVOT, last] = numbers[PIVOT, j], numbers[PIVOT, last], 0.0
    support[j] = support[last]
    for row in (CODE, SIGN, COLUMN):
        numbers[row, j] = numbers[row, last]
    for i in range(last):
        inverse[i, j], inverse[i, last] = inverse[i, last], 0.0
        share = spread(-numbers[PIVOT, i] / pivot)
        for block in range(0, count, COUNT):
            at = i * room + block
            store(inverse, at, fused(share, load(numbers, PIVOT * room + block), load(inverse, at)))


@compiled
def _append(support: Array, numbers: Array, inverse: Array, count: int, k: int, rest: float) -> None:
    """Let atom k in, ``rest`` of whose square is outside the support; ALONG has its coefficients there."""
    room, zero = len(support), spread(0.0)
    if count % COUNT == 0:  # rows are zero from ``count`` on, as far as they are read
        store(numbers, ALONG * room + count, zero)
        for i in range(count):
            store(inverse, i * room + count, zero)
    inward = spread(-1.0 / rest)
    for block in range(0, count + 1, COUNT):
        along = load(numbers, ALONG * room + block)
        for i in range(count):
            share, at = spread(numbers[ALONG, i] / rest), i * room + block
            store(inverse, at, fused(share, along, load(inverse, at)))
        store(inverse, count * room + block, fused(inward, along, zero))
    for i in range(count):
        inverse[i, count] = inverse[count, i]
    inverse[count, count] = 1.0 / rest
    support[count] = k


@compiled
def _project(numbers: Array, inverse: Array, room: int, count: int) -> None:
    """Put COLUMN times the inverse into ALONG: an atom's coefficients in the span of the support."""
    for block in range(0, count, COUNT):
        along = spread(0.0)
        for j in range(count):
            along = fused(spread(numbers[COLUMN, j]), load(inverse, j * room + block), along)
        store(numbers, ALONG * room + block, along)


@compiled
def _enter(
    k: int, square: float, slope: float, limit: float, both: float, support: Array, numbers: Array, inverse: Array,
    count: int,
) -> int:  # fmt: skip
    """Move the code of atom k away from 0 until its slope is at its limit, the others following; drop what gets to 0.

    ``square`` is G_kk, COLUMN has G_k at the support. Returns how many atoms there are then; -1 if nothing has changed.
    """
    sign, room, zero = 1.0 if slope > 0.0 else -1.0, len(support), spread(0.0)
    excess, value, moved = abs(slope) - limit, 0.0, False
    while True:
        _project(numbers, inverse, room, count)
        rest = square
        for j in range(count):
            rest -= numbers[COLUMN, j] * numbers[ALONG, j]
        step, first = np.inf if rest <= DEPENDENT * square else excess / rest, -1
        for j in range(count):
            toward = numbers[SIGN, j] * sign * numbers[ALONG, j]  # how fast the code of j gets to 0
            if abs(numbers[CODE, j]) < step * toward:
                step, first = abs(numbers[CODE, j]) / toward, j
        if step == np.inf:  # only rounding can say that an atom of the span would help
            if not moved:
                return -1
            step = 0.0
        move = spread(-sign * step)
        for block in range(0, count, COUNT):
            code = fused(move, load(numbers, ALONG * room + block), load(numbers, CODE * room + block))
            signed = fused(code, load(numbers, SIGN * room + block), zero)
            store(numbers, CODE * room + block, choose(zero, signed, zero, code))  # two at 0 at once, but for rounding
        value += sign * step
        moved = True
        if first < 0:
            _append(support, numbers, inverse, count, k, max(rest, DEPENDENT * square))
            numbers[CODE, count], numbers[SIGN, count] = value, sign if limit > 0.0 or both == 0.0 else 0.0
            return count + 1
        excess -= step * max(rest, 0.0)
        _drop(support, numbers, inverse, first, count)
        count -= 1


@compiled
def _try(
    G: Array, c: Array, measure: Array, both: float, support: Array, numbers: Array, inverse: Array, count: int, k: int,
    least: float,
) -> int:  # fmt: skip
    """Let atom k enter if it violates by more than ``least``; return how many there are then, -1 if nothing changes."""
    slope = c[k]
    for j in range(count):
        numbers[COLUMN, j] = G[k, support[j]]
        slope -= numbers[CODE, j] * numbers[COLUMN, j]
    if count == len(support) or max(slope, slope * both) * measure[FACTOR, k] + measure[SHIFT, k] <= least:
        return -1
    for j in range(count):
        if support[j] == k:
            return -1
    return _enter(k, G[k, k], slope, measure[LIMIT, k], both, support, numbers, inverse, count)


@compiled
def _worst(pool: Array) -> int:
    """Return the lane with the worst candidate."""
    lane = 0
    for other in range(1, POOL):
        if pool[WORST, other] > pool[WORST, lane]:
            lane = other
    return lane


@compiled
def _gap_is_small(
    c: Array, square: float, measure: Array, tol: float, by_gap: bool, support: Array, numbers: Array, count: int,
    slopes: Array, top: float,
) -> bool:  # fmt: skip
    """Say whether the duality gap, or the largest violation, is small enough, for slopes and violations of a scan."""
    penalty, inside, fit, off = 0.0, 0.0, 0.0, 0.0
    for j in range(count):
        k, a = support[j], numbers[CODE, j]
        penalty += measure[LIMIT, k] * abs(a)
        inside += a * slopes[k]
        fit += a * c[k]
        off = max(off, abs(slopes[k] - numbers[SIGN, j] * measure[LIMIT, k]) * measure[FACTOR, k])
    if not by_gap:
        return max(top, off) <= tol * np.sqrt(square)
    if square < VANISHING:
        return max(top, off) <= SLACK
    scale = 1.0 / (1.0 + top)
    left = max(square - fit - inside, 0.0)
    return (1.0 - scale) ** 2 * left + 2.0 * (penalty - scale * inside) <= tol * square


@compiled
def _refine(
    measure: Array, support: Array, numbers: Array, inverse: Array, count: int, slopes: Array, before: float
) -> tuple[int, float]:
    """Correct the code by what the slopes on the support lack; drop what gets to 0.

    Returns how many atoms are left, and the largest lack. Nothing is done if that is not far below what it was before:
    the inverse is not good enough.
    """
    lack = 0.0
    for j in range(count):
        k = support[j]
        numbers[COLUMN, j] = slopes[k] - numbers[SIGN, j] * measure[LIMIT, k]
        lack = max(lack, abs(numbers[COLUMN, j]) * measure[FACTOR, k])
    if lack > before / 2.0:
        return count, np.inf
    for j in range(count):
        for i in range(count):
            numbers[CODE, i] += numbers[COLUMN, j] * inverse[j, i]
    for j in range(count - 1, -1, -1):
        if numbers[SIGN, j] * numbers[CODE, j] < 0.0:
            _drop(support, numbers, inverse, j, count)
            count -= 1
    return count, lack


@compiled
def _solve(
    G: Array, c: Array, square: float, measure: Array, both: float, tol: float, by_gap: bool, start: Array,
    support: Array, numbers: Array, inverse: Array, slopes: Array, pool: Array,
) -> tuple[int, int]:  # fmt: skip
    """Find the code of one row; return how many atoms it has, and how that ended."""
    count, lack = 0, np.inf
    for k in start:
        new = _try(G, c, measure, both, support, numbers, inverse, count, k, 0.0)
        count = new if new >= 0 else count
    for _ in range(10 * len(c) + 100):
        top = _scan(G, c, measure, both, support, numbers, count, slopes, pool)
        if _gap_is_small(c, square, measure, tol, by_gap, support, numbers, count, slopes, top):
            return count, SETTLED
        if count == len(support):
            return count, FULL
        moved, worst = False, _worst(pool)
        for turn in range(-1, POOL):  # the worst first, others as they come
            lane = worst if turn < 0 else turn
            if pool[WORST, lane] > SHARE * top:
                pool[WORST, lane] = 0.0
                new = _try(G, c, measure, both, support, numbers, inverse, count, int(pool[ATOM, lane]), SHARE * top)
                if new >= 0:
                    moved, count = True, new
        if not moved:
            count, lack = _refine(measure, support, numbers, inverse, count, slopes, lack)
            if lack == np.inf:
                return count, STUCK
    return count, STUCK


@compiled
def _is_worse_than_nothing(c: Array, measure: Array, dense: Array, slopes: Array) -> bool:
    """Say whether the objective of a code is larger than that of 0, or no number at all."""
    value = 0.0
    for k in range(len(c)):
        value += measure[LIMIT, k] * abs(dense[k]) - dense[k] * (c[k] + slopes[k]) / 2.0
    return not value <= 0.0


@compiled
def _descend(
    G: Array, c: Array, square: float, measure: Array, both: float, tol: float, by_gap: bool, dense: Array
) -> bool:
    """Improve a code (K,) by coordinate descent; say whether the gap is small."""
    K = len(c)
    everything, numbers, slopes, pool = np.arange(K), np.zeros((5, K)), np.empty(K), np.empty((2, POOL))
    for sweep in range(SWEEPS):
        if sweep % 10 == 0:
            for k in range(K):
                numbers[CODE, k], numbers[SIGN, k] = dense[k], np.sign(dense[k])
            top = _scan(G, c, measure, both, everything, numbers, K, slopes, pool)
            if sweep == 0 and _is_worse_than_nothing(c, measure, dense, slopes):
                dense[:], slopes[:] = 0.0, c
                continue
            if _gap_is_small(c, square, measure, tol, by_gap, everything, numbers, K, slopes, top):
                return True
        for k in range(K):
            target, value = slopes[k] + G[k, k] * dense[k], 0.0
            if G[k, k] > 0.0 and max(target, target * both) > measure[LIMIT, k]:
                value = (target - np.sign(target) * measure[LIMIT, k]) / G[k, k]
            change = value - dense[k]
            if change != 0.0:
                dense[k] = value
                for other in range(K):
                    slopes[other] -= change * G[k, other]
    return False


@compiled
def _sort(support: Array, numbers: Array, count: int) -> None:
    """Sort the support, and the code with it."""
    for j in range(1, count):
        k, a, i = support[j], numbers[CODE, j], j
        while i > 0 and support[i - 1] > k:
            support[i], numbers[CODE, i] = support[i - 1], numbers[CODE, i - 1]
            i -= 1
        support[i], numbers[CODE, i] = k, a


@compiled
def _codes(
    grams: Array, correlations: Array, squares: Array, measure: Array, both: float, tol: float, by_gap: bool,
    begins: Array, starts: Array, begin: int, stop: int, data: Array, indices: Array, ends: Array, settled: Array,
) -> int:  # fmt: skip
    """Code rows from ``begin`` on; return ``stop``, or the row for which data and indices have no room."""
    K = correlations.shape[1]
    support, numbers, inverse = np.empty(ROOM, np.intp), np.zeros((5, ROOM)), np.zeros((ROOM, ROOM))
    slopes, pool = np.empty(K), np.empty((2, POOL))
    for i in range(begin, stop):
        end = ends[i]
        if end + K > len(data):
            return i
        G, c, start = grams[i if len(grams) > 1 else 0], correlations[i], starts[begins[i] : begins[i + 1]]
        while True:
            count, outcome = _solve(
                G, c, squares[i], measure, both, tol, by_gap, start, support, numbers, inverse, slopes, pool
            )
            if outcome != FULL:
                break
            room = 2 * len(support)
            support, numbers, inverse = np.empty(room, np.intp), np.zeros((5, room)), np.zeros((room, room))
        if outcome == SETTLED:
            _sort(support, numbers, count)
            for j in range(count):
                indices[end], data[end] = support[j], numbers[CODE, j]
                end += numbers[CODE, j] != 0.0
        else:
            dense = np.zeros(K)
            for j in range(count):
                dense[support[j]] = numbers[CODE, j]
            settled[i] = _descend(G, c, squares[i], measure, both, tol, by_gap, dense)
            for k in range(K):
                indices[end], data[end] = k, dense[k]
                end += dense[k] != 0.0
        ends[i + 1] = end
    return stop


def lasso_codes(
    grams: Array, correlations: Array, squares: Array, terms: Terms, begins: Array, starts: Array
) -> tuple[Array, Array, Array, Array]:
    """Return data, indices and indptr of the codes, and which rows are as good as asked.

    ``begins`` and ``starts`` are indptr and indices of atoms to begin with. All in float64, C order.
    """
    lacking = max(WIDTH - correlations.shape[1], 0)
    measure = np.array([terms.limits, terms.factors, terms.shifts])
    if lacking:  # atoms of zeros fill the registers; they never violate
        grams = np.pad(grams, ((0, 0), (0, lacking), (0, lacking)))
        correlations, measure = (np.pad(part, ((0, 0), (0, lacking))) for part in (correlations, measure))
    given = [part.view() for part in (grams, correlations, squares, begins, starts)]
    for part in given:
        part.flags.writeable = False  # one compiled form for all, be they maps of files or not
    how = (*given[:3], measure, terms.both, terms.tol, terms.by_gap, *given[3:])
    m, K = correlations.shape
    data, indices = np.empty(ROOM // 4 * m + K), np.empty(ROOM // 4 * m + K, np.int32)
    ends, settled = np.zeros(m + 1, np.int32), np.ones(m, np.bool_)
    # The loop fills arrays and returns a number: Ctrl-C while results are boxed would come out as another error.
    done, rows = 0, max(1, int(WORK / (WIDTH * K)))
    while done < m:
        if ends[done] + K > len(data):
            data, indices = (np.resize(part, 2 * len(part)) for part in (data, indices))
        done = _codes(*how, done, min(done + rows, m), data, indices, ends, settled)
    return data[: ends[m]].copy(), indices[: ends[m]].copy(), ends, settled


def warm_up() -> None:
    """Compile."""
    terms = Terms(np.ones(2), np.ones(2), -np.ones(2), -1.0, 0.0, True)
    none = np.zeros(3, np.int32)
    lasso_codes(np.eye(2)[None], np.eye(2), np.ones(2), terms, none, none[:0])
