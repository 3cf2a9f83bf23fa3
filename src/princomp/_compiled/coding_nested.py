"""Codes with groups and trees of atoms by working sets, row by row: see `princomp.coders.nested`. Its own twin."""

from typing import Any

import numpy as np

from princomp._compiled import compiled_or_itself
from princomp._compiled.coding_terms import Nest
from princomp._typing import Array

ROUNDS = 200  # in which atoms may enter
STEPS = 20_000  # on a working set, in a round
ENTER = (
    32  # atoms, at the least, that may enter at once (of 8 to 64, on patches with 256 atoms); or a half of those there
)
INNER = 0.1  # of ``tol``: how exact a working set is solved
FINEST = 1e-14  # of the row's square: sums of float64 have no more digits


@compiled_or_itself
def _shrink(nest: Nest, z: Array, step: float) -> None:
    """Replace z by its prox: groups are shrunk, those inside others first."""
    if nest.nonnegative:
        for k in range(len(z)):
            z[k] = max(z[k], 0.0)
    for g in range(len(nest.bounds)):
        begin, end, square = nest.first[g], nest.first[g + 1], 0.0
        for i in range(begin, end):
            square += z[nest.members[i]] ** 2
        if square > 0.0:
            norm, bound = np.sqrt(square), step * nest.bounds[g]
            factor = 1.0 - bound / norm if norm > bound else 0.0
            for i in range(begin, end):
                z[nest.members[i]] *= factor


@compiled_or_itself
def _value(nest: Nest, a: Array) -> float:
    total = 0.0
    for g in range(len(nest.bounds)):
        square = 0.0
        for i in range(nest.first[g], nest.first[g + 1]):
            square += a[nest.members[i]] ** 2
        total += nest.bounds[g] * np.sqrt(square)
    return total


@compiled_or_itself
def _polar(nest: Nest, v: Array) -> float:
    """Return a bound on v'a / h(a): each atom is given to its heaviest group."""
    squares = np.zeros(len(nest.bounds))
    for k in range(len(v)):
        entry = max(v[k], 0.0) if nest.nonnegative else v[k]
        squares[nest.owner[k]] += entry * entry
    largest = 0.0
    for g in range(len(squares)):
        if squares[g] > 0.0:
            largest = max(largest, np.sqrt(squares[g]) / nest.bounds[g])
    return largest


@compiled_or_itself
def _part(nest: Nest, atoms: Array, K: int) -> Nest:
    """Return the groups as far as they are among these atoms, which are numbered anew."""
    place = np.full(K, -1)
    for i in range(len(atoms)):
        place[atoms[i]] = i
    members, first = np.empty(len(nest.members), dtype=np.int64), np.zeros(len(nest.bounds) + 1, dtype=np.int64)
    bounds, owner = np.empty(len(nest.bounds)), np.zeros(len(atoms), dtype=np.int64)
    count = some = 0
    for g in range(len(nest.bounds)):
        before = count
        for i in range(nest.first[g], nest.first[g + 1]):
            k = place[nest.members[i]]
            if k >= 0:
                members[count] = k
                count += 1
        if count > before:
            bounds[some] = nest.bounds[g]
            some += 1
            first[some] = count
    return Nest(members[:count], first[: some + 1], bounds[:some], owner, nest.nonnegative)


@compiled_or_itself
def _block(gram: Array, atoms: Array) -> Array:
    """Return the rows and columns of these atoms."""
    part = np.empty((len(atoms), len(atoms)))
    for i in range(len(atoms)):
        part[i] = gram[atoms[i]][atoms]
    return part


@compiled_or_itself
def _solve(gram: Array, c: Array, nest: Nest, a: Array, small: float) -> bool:
    """Minimise over the atoms of a working set by accelerated proximal gradient steps, in place.

    It ends when |subgradient| |a| <= ``small``.
    """
    s = len(a)
    L = 0.0
    for k in range(s):
        L = max(L, gram[k, k])
    image = gram @ a
    y, y_image, t = a.copy(), image.copy(), 1.0
    for _ in range(STEPS):
        new = y - (y_image - c) / L
        _shrink(nest, new, 1.0 / L)
        new_image = gram @ new
        length = curve = slope = size = back = 0.0
        for k in range(s):
            step, step_image = new[k] - y[k], new_image[k] - y_image[k]
            length += step * step
            curve += step * step_image
            slope += (step_image - L * step) ** 2
            size += new[k] ** 2
            back += step * (new[k] - a[k])
        if curve > L * length * (1 + 1e-10) and length > 1e-28 * size:
            L *= 2.0
            y, y_image, t = a.copy(), image.copy(), 1.0
            continue
        done = np.sqrt(slope) * (np.sqrt(size) + np.sqrt(length)) <= small
        following = (1 + np.sqrt(1 + 4 * t * t)) / 2
        share = (t - 1) / following if back >= 0.0 else 0.0
        t = following if back >= 0.0 else 1.0
        y, y_image = new + share * (new - a), new_image + share * (new_image - image)
        a[:] = new
        image = new_image
        if done:
            return True
    return False


@compiled_or_itself
def _gap(nest: Nest, c: Array, square: float, a: Array, slopes: Array, z: Array, L: float) -> float:
    """Return the duality gap of a: slopes less L (z - a) are in the dual ball, z the prox gradient step from a."""
    share = 1.0 / (1.0 + _polar(nest, L * (z - a)))
    along = c @ a
    residual = max(square - along - slopes @ a, 0.0)
    return residual / 2 + _value(nest, a) - share * (square - along) + share * share / 2 * residual


@compiled_or_itself
def _search(gram: Array, c: Array, square: float, nest: Nest, a: Array, tol: float) -> bool:
    """Improve a code in place, atoms entering where a step wants them; say whether the gap is small enough."""
    K = len(c)
    L, inner = 0.0, max(INNER * tol / 2, FINEST) * square
    for k in range(K):
        L = max(L, gram[k, k])
    if not L > 0.0:
        a[:] = 0.0
        return True
    inside, last = a != 0.0, np.inf
    for _ in range(ROUNDS):
        slopes = c.copy()
        for i in np.flatnonzero(a):
            slopes -= a[i] * gram[i]
        z = a + slopes / L
        _shrink(nest, z, 1.0 / L)
        gap = _gap(nest, c, square, a, slopes, z, L)
        if gap <= tol * square / 2:
            return True
        stay = gap > last / 2
        if stay:
            inner = max(inner / 4, FINEST * square)  # not much was won: what enters may be what was solved too coarsely
        last = gap
        there = inside.sum()
        wanted = np.where(inside, 0.0, np.abs(z))
        order = np.argsort(-wanted)
        for k in order[: max(ENTER, there // 2)]:
            inside[k] |= wanted[k] > 0.0
        atoms = np.flatnonzero(inside)
        begin = a[atoms]
        if not _solve(_block(gram, atoms), c[atoms], _part(nest, atoms, K), begin, inner):
            return False
        a[atoms] = begin
        inside[atoms] = (begin != 0.0) | stay  # atoms may need others before they can be used
    return False


@compiled_or_itself
def nested_codes(
    grams: Array, correlations: Array, squares: Array, nest: Nest, codes: Array, settled: Array, tol: float
) -> None:
    """Improve codes (m, K) in place, row by row; ``settled`` (m,) says which have a relative gap of at most ``tol``."""
    for i in range(len(codes)):
        own = grams[i if len(grams) > 1 else 0]
        settled[i] = _search(own, correlations[i], squares[i], nest, codes[i], tol)


def warm_up() -> None:
    """Compile."""
    nest: Any = Nest(np.arange(2), np.arange(3), np.full(2, 0.1), np.arange(2), False)
    nested_codes(np.eye(2)[None], np.ones((1, 2)), np.ones(1), nest, np.zeros((1, 2)), np.zeros(1, dtype=bool), 1e-6)
