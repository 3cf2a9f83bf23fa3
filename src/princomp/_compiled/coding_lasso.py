"""Codes of `princomp.coders.lasso`: for each row a working set of atoms, solved exactly, until the gap is small.

All slopes c - a G are taken in one go over rows of G; on the way each of a few lanes keeps the atom that violates most
among those it has seen. These enter one by one, each only if it still violates after the others have. Twin:
`princomp.coders.lasso.slow_codes`.
"""

from typing import NamedTuple

import numpy as np

from princomp._compiled import compiled
from princomp._compiled.coding_terms import Terms
from princomp._compiled.lanes import COUNT, choose, fused, load, spread, store
from princomp._typing import Array

WIDTH = 4 * COUNT  # columns of G in registers at a time
POOL = 2 * COUNT  # lanes, each with a candidate
ROOM = 32  # atoms in a working set, before it has to grow
SHARE = 0.3  # of the largest violation that lets another atom in before the next scan
DEPENDENT = 1e-11  # share of its square that an atom must have outside the others, else it lies in their span
REFINEMENTS = 4  # of the solution on the support, before coordinate descent is tried
SWEEPS = 1000  # of coordinate descent, at the most


class Work(NamedTuple):
    """The working set of one row."""

    inverse: Array  # (room, room) of the Gram matrix of the support
    support: Array  # (room,) atoms
    code: Array  # (room,)
    signs: Array  # (room,) of the slopes; 0 where an atom has no limit and may change its sign
    along: Array  # (room,) how the code moves with an entering atom
    column: Array  # (room,) of G, at the support
    place: Array  # (K,) in the support, or -1
    slopes: Array  # (K,)
    best: Array  # (POOL,) largest violations
    at: Array  # (POOL,) their atoms


@compiled
def new_work(K: int) -> Work:
    """Return an empty working set for K atoms."""
    parts = np.empty((4, ROOM))
    return Work(
        np.empty((ROOM, ROOM)), np.empty(ROOM, np.intp), parts[0], parts[1], parts[2], parts[3],
        np.full(K, -1), np.empty(K), np.empty(POOL), np.empty(POOL),
    )  # fmt: skip


@compiled
def _scan(G: Array, c: Array, work: Work, count: int, terms: Terms) -> float:
    """Put c - a G into the slopes, the largest violations and their atoms into best and at; return the largest."""
    K, zero = len(c), spread(0.0)
    both, best0, best1, at0, at1 = spread(terms.both), zero, zero, zero, zero
    for begin in range(0, K, WIDTH):
        here = min(begin, K - WIDTH)
        s0, s1, s2, s3 = load(c, here), load(c, here + COUNT), load(c, here + 2 * COUNT), load(c, here + 3 * COUNT)
        for j in range(count):
            minus, row = spread(-work.code[j]), work.support[j] * K + here
            s0 = fused(minus, load(G, row), s0)
            s1 = fused(minus, load(G, row + COUNT), s1)
            s2 = fused(minus, load(G, row + 2 * COUNT), s2)
            s3 = fused(minus, load(G, row + 3 * COUNT), s3)
        for part in range(4):
            slope = s0 if part == 0 else s1 if part == 1 else s2 if part == 2 else s3
            first = here + part * COUNT
            store(work.slopes, first, slope)
            other = fused(slope, both, zero)
            violation = fused(choose(slope, other, slope, other), load(terms.factors, first), load(terms.shifts, first))
            if part % 2 == 0:
                at0 = choose(violation, best0, spread(float(first)), at0)
                best0 = choose(violation, best0, violation, best0)
            else:
                at1 = choose(violation, best1, spread(float(first)), at1)
                best1 = choose(violation, best1, violation, best1)
    store(work.best, 0, best0)
    store(work.best, COUNT, best1)
    store(work.at, 0, at0)
    store(work.at, COUNT, at1)
    top = 0.0
    for lane in range(POOL):
        work.at[lane] += lane % COUNT
        top = max(top, work.best[lane])
    return top


@compiled
def _drop(work: Work, j: int, count: int) -> None:
    """Take entry j of the support out: the last one takes its place."""
    inverse, last = work.inverse, count - 1
    work.place[work.support[j]] = -1
    if j != last:
        for i in range(count):
            inverse[i, j], inverse[i, last] = inverse[i, last], inverse[i, j]
        for i in range(count):
            inverse[j, i], inverse[last, i] = inverse[last, i], inverse[j, i]
        work.support[j], work.code[j], work.signs[j] = work.support[last], work.code[last], work.signs[last]
        work.place[work.support[j]] = j
    for i in range(last):
        share = inverse[i, last] / inverse[last, last]
        for other in range(last):
            inverse[i, other] -= share * inverse[last, other]


@compiled
def _append(work: Work, k: int, count: int, rest: float, value: float, sign: float) -> None:
    """Let atom k in, ``rest`` of whose square is outside the support; ``along`` has its coefficients there."""
    inverse, along = work.inverse, work.along
    for i in range(count):
        share = along[i] / rest
        for j in range(count):
            inverse[i, j] += share * along[j]
        inverse[i, count] = inverse[count, i] = -share
    inverse[count, count] = 1.0 / rest
    work.support[count], work.code[count], work.signs[count] = k, value, sign
    work.place[k] = count


@compiled
def _enter(G: Array, k: int, slope: float, work: Work, count: int, terms: Terms) -> tuple[int, bool]:
    """Move the code of atom k away from 0 until its slope is at its limit, the others following; drop what gets to 0.

    Returns how many atoms there are in the support, and whether anything has changed.
    """
    sign = 1.0 if slope > 0.0 else -1.0
    excess, value, moved = abs(slope) - terms.limits[k], 0.0, False
    inverse, along, column, code, square = work.inverse, work.along, work.column, work.code, G[k, k]
    while True:
        for j in range(count):
            column[j] = G[k, work.support[j]]
            along[j] = 0.0
        for j in range(count):
            for i in range(count):
                along[i] += column[j] * inverse[j, i]
        rest = square
        for j in range(count):
            rest -= column[j] * along[j]
        within = rest <= DEPENDENT * square
        step, first = np.inf if within else excess / rest, -1
        for j in range(count):
            toward = work.signs[j] * sign * along[j]  # how fast the code of j gets to 0
            if toward > 0.0 and abs(code[j]) < step * toward:
                step, first = abs(code[j]) / toward, j
        if step == np.inf:  # only rounding can say that an atom of the span would help
            if not moved:
                return count, False
            step = 0.0
        for j in range(count):
            code[j] -= sign * step * along[j]
        value += sign * step
        moved = True
        if first < 0:
            limited = terms.limits[k] > 0.0 or terms.both == 0.0
            _append(work, k, count, max(rest, DEPENDENT * square), value, sign if limited else 0.0)
            return count + 1, True
        excess -= step * max(rest, 0.0)
        _drop(work, first, count)
        count -= 1


@compiled
def _room(work: Work, count: int) -> Work:
    """Return the working set, with room for one more atom."""
    room = len(work.support)
    if count < room:
        return work
    new = 2 * room
    inverse = np.empty((new, new))
    inverse[:room, :room] = work.inverse
    support, code, signs = np.empty(new, np.intp), np.empty(new), np.empty(new)
    support[:room], code[:room], signs[:room] = work.support, work.code, work.signs
    along, column = np.empty(new), np.empty(new)
    return Work(inverse, support, code, signs, along, column, work.place, work.slopes, work.best, work.at)


@compiled
def _enter_pool(G: Array, c: Array, work: Work, count: int, terms: Terms, top: float) -> tuple[Work, int, bool]:
    """Let candidates in, worst first, that still violate by some share of the largest violation."""
    moved = False
    while True:
        lane = 0
        for other in range(1, POOL):
            if work.best[other] > work.best[lane]:
                lane = other
        if work.best[lane] <= SHARE * top:
            return work, count, moved
        work.best[lane] = 0.0
        k = int(work.at[lane])
        if work.place[k] >= 0:
            continue
        slope = c[k]
        for j in range(count):
            slope -= work.code[j] * G[k, work.support[j]]
        if max(slope, slope * terms.both) * terms.factors[k] + terms.shifts[k] > SHARE * top:
            work = _room(work, count)
            count, changed = _enter(G, k, slope, work, count, terms)
            moved = moved or changed


@compiled
def _gap_is_small(c: Array, square: float, work: Work, count: int, terms: Terms, top: float) -> bool:
    """Say whether the duality gap, or the largest violation, is small enough, for slopes and violations of a scan."""
    penalty, inside, fit, off = 0.0, 0.0, 0.0, 0.0
    for j in range(count):
        k, a = work.support[j], work.code[j]
        penalty += terms.limits[k] * abs(a)
        inside += a * work.slopes[k]
        fit += a * c[k]
        off = max(off, abs(work.slopes[k] - work.signs[j] * terms.limits[k]) * terms.factors[k])
    if not terms.by_gap:
        return max(top, off) <= terms.tol * np.sqrt(square)
    scale = 1.0 / (1.0 + top)
    left = max(square - fit - inside, 0.0)
    return (1.0 - scale) ** 2 * left + 2.0 * (penalty - scale * inside) <= terms.tol * square


@compiled
def _refine(work: Work, count: int, terms: Terms) -> int:
    """Correct the code by what the slopes on the support lack; drop what gets to 0. Return how many atoms are left."""
    for j in range(count):
        k = work.support[j]
        work.column[j] = work.slopes[k] - work.signs[j] * terms.limits[k]
    for j in range(count):
        for i in range(count):
            work.code[i] += work.column[j] * work.inverse[j, i]
    for j in range(count - 1, -1, -1):
        if work.signs[j] * work.code[j] < 0.0:
            _drop(work, j, count)
            count -= 1
    return count


@compiled
def _solve(G: Array, c: Array, square: float, work: Work, terms: Terms, start: Array) -> tuple[Work, int, bool]:
    """Return the working set of one row, how many atoms it has, and whether the gap is small."""
    count, refinements = 0, 0
    for k in start:
        slope = c[k]
        for j in range(count):
            slope -= work.code[j] * G[k, work.support[j]]
        if work.place[k] < 0 and max(slope, slope * terms.both) * terms.factors[k] + terms.shifts[k] > 0.0:
            work = _room(work, count)
            count, _ = _enter(G, k, slope, work, count, terms)
    for _ in range(10 * len(c) + 100):
        top = _scan(G, c, work, count, terms)
        if _gap_is_small(c, square, work, count, terms, top):
            return work, count, True
        moved = False
        if top > 0.0:
            work, count, moved = _enter_pool(G, c, work, count, terms, top)
        if not moved:
            if refinements == REFINEMENTS:
                return work, count, False
            count = _refine(work, count, terms)
            refinements += 1
    return work, count, False


@compiled
def _descend(G: Array, c: Array, square: float, work: Work, count: int, terms: Terms) -> tuple[Array, bool]:
    """Return the code (K,) after coordinate descent from the working set's, and whether the gap is small."""
    K = len(c)
    dense = np.zeros(K)
    for j in range(count):
        dense[work.support[j]] = work.code[j]
    everything = Work(
        work.inverse, np.arange(K), dense, np.zeros(K), dense, dense, work.place, work.slopes, work.best, work.at
    )
    for sweep in range(SWEEPS):
        if sweep % 10 == 0:
            top = _scan(G, c, everything, K, terms)
            for k in range(K):
                everything.signs[k] = np.sign(dense[k])
            if _gap_is_small(c, square, everything, K, terms, top):
                return dense, True
        for k in range(K):
            target, value = work.slopes[k] + G[k, k] * dense[k], 0.0
            if G[k, k] > 0.0 and max(target, target * terms.both) > terms.limits[k]:
                value = (target - np.sign(target) * terms.limits[k]) / G[k, k]
            change = value - dense[k]
            if change != 0.0:
                dense[k] = value
                for other in range(K):
                    work.slopes[other] -= change * G[k, other]
    return dense, False


@compiled
def _sort(work: Work, count: int) -> None:
    """Sort the support, and the code with it."""
    for j in range(1, count):
        k, a, i = work.support[j], work.code[j], j
        while i > 0 and work.support[i - 1] > k:
            work.support[i], work.code[i] = work.support[i - 1], work.code[i - 1]
            i -= 1
        work.support[i], work.code[i] = k, a


@compiled
def _write(support: Array, code: Array, count: int, indices: Array, data: Array, end: int) -> tuple[Array, Array, int]:
    """Append the nonzeros of a code; return the arrays, longer if need be, and where they end."""
    if end + count > len(data):
        more_indices, more_data = np.empty(2 * len(data) + count, np.int32), np.empty(2 * len(data) + count)
        more_indices[:end], more_data[:end] = indices[:end], data[:end]
        indices, data = more_indices, more_data
    for j in range(count):
        if code[j] != 0.0:
            indices[end], data[end] = support[j], code[j]
            end += 1
    return indices, data, end


@compiled
def _codes(
    grams: Array, correlations: Array, squares: Array, terms: Terms, begins: Array, starts: Array
) -> tuple[Array, Array, Array, Array]:
    m, K = correlations.shape
    work = new_work(K)
    ends, settled = np.zeros(m + 1, np.int32), np.ones(m, np.bool_)
    indices, data, end = np.empty(ROOM * m // 4 + 1, np.int32), np.empty(ROOM * m // 4 + 1), 0
    for i in range(m):
        G, c = grams[i if len(grams) > 1 else 0], correlations[i]
        work, count, settled[i] = _solve(G, c, squares[i], work, terms, starts[begins[i] : begins[i + 1]])
        if settled[i]:
            _sort(work, count)
            indices, data, end = _write(work.support, work.code, count, indices, data, end)
        else:
            dense, settled[i] = _descend(G, c, squares[i], work, count, terms)
            indices, data, end = _write(np.arange(K), dense, K, indices, data, end)
        for j in range(count):
            work.place[work.support[j]] = -1
        ends[i + 1] = end
    return data[:end].copy(), indices[:end].copy(), ends, settled


def lasso_codes(
    grams: Array, correlations: Array, squares: Array, terms: Terms, begins: Array, starts: Array
) -> tuple[Array, Array, Array, Array]:
    """Return data, indices and indptr of the codes, and which rows are as good as asked.

    ``begins`` and ``starts`` are indptr and indices of atoms to begin with. All in float64, C order.
    """
    lacking = max(WIDTH - correlations.shape[1], 0)
    if lacking:
        grams = np.pad(grams, ((0, 0), (0, lacking), (0, lacking)))
        correlations = np.pad(correlations, ((0, 0), (0, lacking)))
    return _codes(grams, correlations, squares, padded(terms), begins, starts)


def padded(terms: Terms) -> Terms:
    """Return terms of as many atoms as fill registers; those added never violate."""
    lacking = max(WIDTH - len(terms.limits), 0)
    limits, factors, shifts = (np.pad(part, (0, lacking)) for part in terms[:3])
    return terms._replace(limits=limits, factors=factors, shifts=shifts)


def warm_up() -> None:
    """Compile."""
    terms = Terms(np.ones(2), np.ones(2), -np.ones(2), -1.0, 0.0, True)
    none = np.zeros(3, np.int32)
    lasso_codes(np.eye(2)[None], np.eye(2), np.ones(2), terms, none, none[:0])
