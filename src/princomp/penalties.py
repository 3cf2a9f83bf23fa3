"""Penalties: small frozen dataclasses with a ``value`` and a ``prox``.

What a penalty must provide, for an array ``w``, one vector (p,) or columns (p, k) that are penalised one by one and
added up:

``value(w)``
    h(w), a float.
``prox(w, step)``
    the minimiser of 1/2 |z - w|^2 + step h(z) over z, an array like ``w``; ``step`` is a number above 0, or, for
    columns, an array (k,) of them.
``times(number)``
    the penalty number * h.

`as_penalty` chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Step = float | Array
Groupings = Sequence[Sequence[int]]

LARGEST = float(np.finfo(np.float64).max)
TINY = float(np.finfo(np.float64).tiny)
# The prox of overlapping groups is found to this share of |w|. Block descent comes closer and closer, but in hard cases
# ever more slowly: after so many sweeps Newton's method takes over.
CLOSE = 1e-10
SWEEPS = 200
MEMORY = 6  # sweeps that the extrapolation looks back on
NEWTON_STEPS = 30  # for each width of the smoothing, at the most


class Penalty(Protocol):
    """What solvers ask of a penalty."""

    def value(self, w: Array) -> float:
        """Return h(w)."""

    def prox(self, w: Array, step: Step) -> Array:
        """Return the minimiser of 1/2 |z - w|^2 + step h(z)."""

    def times(self, number: float) -> Penalty:
        """Return the penalty number * h."""


@dataclass(frozen=True)
class Zero:
    """No penalty: h(w) = 0."""

    def value(self, w: Array) -> float:
        """Return 0."""
        return 0.0

    def prox(self, w: Array, step: Step) -> Array:
        """Return ``w`` itself."""
        return w

    def times(self, number: float) -> Zero:
        """Return no penalty."""
        return self


@dataclass(frozen=True)
class L1:
    """h(w) = alpha sum |w_i|, which sets small entries to zero.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import L1
    >>> L1(0.5).prox(np.array([2.0, -0.3, -1.0]), 1.0).tolist()
    [1.5, 0.0, -0.5]
    """

    alpha: float

    def __post_init__(self) -> None:
        """Refuse a weight that is no weight."""
        _check_weight(self.alpha)

    def value(self, w: Array) -> float:
        """Return alpha |w|_1."""
        return float(self.alpha * np.abs(w).sum())

    def prox(self, w: Array, step: Step) -> Array:
        """Return the soft threshold sign(w) max(|w| - step alpha, 0)."""
        size = np.maximum(np.abs(w) - step * self.alpha, 0.0)
        return np.where(size > 0, np.copysign(size, w), 0.0)

    def times(self, number: float) -> L1:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return L1(min(number * self.alpha, LARGEST))


@dataclass(frozen=True)
class NonNegative:
    """h(w) + 0 where w >= 0, infinity elsewhere, for a penalty h that depends on |w_i| alone and grows with each.

    All penalties here are of that kind. The prox is then that of h at max(w, 0): entries below zero are better off
    at zero, and those above stay above.

    Parameters
    ----------
    penalty : Penalty
        h; none by default.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import L1, NonNegative
    >>> NonNegative(L1(0.5)).prox(np.array([2.0, -3.0, 0.2]), 1.0).tolist()
    [1.5, 0.0, 0.0]
    """

    penalty: Penalty = field(default_factory=Zero)

    def value(self, w: Array) -> float:
        """Return h(w), or infinity if some entry is below 0."""
        return self.penalty.value(w) if (w >= 0).all() else np.inf

    def prox(self, w: Array, step: Step) -> Array:
        """Return the prox of h at max(w, 0)."""
        return self.penalty.prox(np.maximum(w, 0.0), step)

    def times(self, number: float) -> NonNegative:
        """Return number * h, where w >= 0."""
        return NonNegative(self.penalty.times(number))


class _Family(NamedTuple):
    """Groups of indices that do not meet, one after the other."""

    indices: NDArray[np.intp]  # (m,) of all groups
    first: NDArray[np.intp]  # (g,) where each group begins in `indices`
    group: NDArray[np.intp]  # (m,) the group of each index
    weights: Array  # (g, 1)

    def norms(self, entries: Array) -> Array:
        """Return the Euclidean norm of each group, (g, k), of entries (m, k)."""
        return np.sqrt(np.add.reduceat(entries**2, self.first, axis=0))

    def shrink(self, W: Array, step: Step) -> None:
        """Replace the groups of W (p, k) by their prox: w_g max(0, 1 - step weight / |w_g|)."""
        entries = W[self.indices]
        norms, bound = self.norms(entries), step * self.weights
        outside = norms > bound
        factor = np.where(outside, 1.0 - bound / np.where(outside, norms, 1.0), 0.0)
        W[self.indices] = entries * factor[self.group]


def _family(groups: Iterable[tuple[tuple[int, ...], float]]) -> _Family:
    groups = list(groups)
    sizes = np.array([len(group) for group, _ in groups])
    return _Family(
        np.concatenate([np.array(group) for group, _ in groups]),
        np.cumsum(sizes) - sizes,
        np.repeat(np.arange(len(groups)), sizes),
        np.array([[weight] for _, weight in groups]),
    )


@dataclass(frozen=True)
class _Grouped:
    """h(w) = alpha sum_g weight_g |w_g|_2: what the group penalties share."""

    alpha: float
    groups: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what is no penalty, and write groups and weights as tuples."""
        _check_weight(self.alpha)
        groups = as_groups(self.groups)
        weights = [len(group) ** 0.5 for group in groups] if self.weights is None else list(self.weights)
        if len(weights) != len(groups) or not (np.isfinite(weights).all() and min(weights) >= 0):
            raise ValueError(f"weights must hold {len(groups)} finite numbers of at least 0, one for each group.")
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "weights", tuple(map(float, weights)))

    @cached_property
    def _pairs(self) -> list[tuple[tuple[int, ...], float]]:
        return list(zip(self.groups, self.weights or ()))

    @cached_property
    def _all(self) -> _Family:
        return _family(self._pairs)

    def _columns(self, w: Array) -> Array:
        """Return a copy of w as columns of floats."""
        highest = int(self._all.indices.max())
        if len(w) <= highest:
            raise ValueError(f"A group names the feature {highest}, but there are only {len(w)}, counted from 0.")
        return np.array(w, dtype=np.result_type(w, np.float32)).reshape(len(w), -1)

    def value(self, w: Array) -> float:
        """Return alpha sum_g weight_g |w_g|_2."""
        return float(self.alpha * (self._all.weights * self._all.norms(self._columns(w)[self._all.indices])).sum())

    def times(self, number: float) -> Any:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return replace(self, alpha=min(number * self.alpha, LARGEST))


@dataclass(frozen=True)
class Groups(_Grouped):
    """h(w) = alpha sum_g weight_g |w_g|_2 over groups that do not meet: a group is zero or not as a whole.

    Yuan & Lin, J. R. Stat. Soc. B 2006. The prox of a group is w_g max(0, 1 - step alpha weight_g / |w_g|).

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : sequence of sequences of int
        Indices of each group. A feature in no group is not penalised.
    weights : sequence of float, optional
        One for each group, at least 0; by default the square root of its size.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import Groups
    >>> Groups(1.0, [[0, 1], [2]], [2.5, 2.0]).prox(np.array([3.0, 4.0, 1.0]), 1.0).tolist()
    [1.5, 2.0, 0.0]
    """

    def __post_init__(self) -> None:
        """Refuse groups that meet."""
        super().__post_init__()
        if not _disjoint(self.groups):
            raise ValueError("Two groups share a feature: use Tree if they are nested, else OverlappingGroups.")

    def prox(self, w: Array, step: Step) -> Array:
        """Return each group shrunk towards zero."""
        W = self._columns(w)
        self._all.shrink(W, self.alpha * step)
        return W.reshape(np.shape(w))


@dataclass(frozen=True)
class Tree(_Grouped):
    """h(w) = alpha sum_g weight_g |w_g|_2 over groups of which any two are nested or do not meet.

    A group that is zero takes all groups inside it along: features enter from the root of the tree. The prox shrinks
    group after group, from the leaves to the root (Jenatton, Mairal, Obozinski & Bach, JMLR 2011).

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : sequence of sequences of int
        Indices of each group. A feature in no group is not penalised.
    weights : sequence of float, optional
        One for each group, at least 0; by default the square root of its size.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import Tree
    >>> Tree(1.0, [[0, 1], [1]], [2.5, 1.0]).prox(np.array([3.0, 5.0]), 1.0).tolist()
    [1.5, 2.0]
    """

    def __post_init__(self) -> None:
        """Refuse groups that are not nested."""
        super().__post_init__()
        if not _nested(self.groups):
            raise ValueError("Two groups overlap without being nested: use OverlappingGroups.")

    @cached_property
    def _levels(self) -> list[_Family]:
        """Families of groups of one height: each group comes after those inside it."""
        height = np.zeros(int(self._all.indices.max()) + 1, dtype=int)
        levels: dict[int, list[tuple[tuple[int, ...], float]]] = {}
        for group, weight in sorted(self._pairs, key=lambda pair: len(pair[0])):
            level = int(height[list(group)].max())
            height[list(group)] = level + 1
            levels.setdefault(level, []).append((group, weight))
        return [_family(levels[level]) for level in sorted(levels)]

    def prox(self, w: Array, step: Step) -> Array:
        """Return the groups shrunk, those inside others first."""
        W = self._columns(w)
        for family in self._levels:
            family.shrink(W, self.alpha * step)
        return W.reshape(np.shape(w))


@dataclass(frozen=True)
class OverlappingGroups(_Grouped):
    """h(w) = alpha sum_g weight_g |w_g|_2 over any groups: the zeros are a union of groups.

    Jenatton, Audibert & Bach, JMLR 2011. The prox is w - sum_g u_g, where the u_g, supported on their groups, minimise
    |w - sum_g u_g|^2 subject to |u_g| <= step alpha weight_g: by descent over families of groups that do not meet,
    to 1e-10 |w| by the duality gap. Hard cases are finished by Newton's method on the primal problem, with
    sqrt(|z_g|^2 + width^2) in place of |z_g| and the width lowered step by step to 1e-13 |w|.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : sequence of sequences of int
        Indices of each group. A feature in no group is not penalised.
    weights : sequence of float, optional
        One for each group, at least 0; by default the square root of its size.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import OverlappingGroups
    >>> OverlappingGroups(1.0, [[0, 1], [1, 2]], [0.5, 2.0]).prox(np.array([3.0, 1.0, -1.0]), 1.0).tolist()
    [2.5, 0.0, 0.0]
    """

    @cached_property
    def _families(self) -> list[_Family]:
        """Groups sorted into few families, first fit."""
        p = int(self._all.indices.max()) + 1
        taken: list[NDArray[np.bool_]] = []
        members: list[list[tuple[tuple[int, ...], float]]] = []
        for group, weight in self._pairs:
            index = list(group)
            place = next((i for i, features in enumerate(taken) if not features[index].any()), len(taken))
            if place == len(taken):
                taken.append(np.zeros(p, dtype=bool))
                members.append([])
            taken[place][index] = True
            members[place].append((group, weight))
        return [_family(family) for family in members]

    @cached_property
    def _in_order(self) -> _Family:
        """All groups, family after family."""
        families = self._families
        sizes = np.concatenate([np.bincount(family.group) for family in families])
        return _Family(
            np.concatenate([family.indices for family in families]),
            np.cumsum(sizes) - sizes,
            np.repeat(np.arange(len(sizes)), sizes),
            np.concatenate([family.weights for family in families]),
        )

    def prox(self, w: Array, step: Step) -> Array:
        """Return the minimiser, to 1e-10 |w|."""
        W = self._columns(w)
        steps = np.broadcast_to(np.asarray(self.alpha * step, dtype=np.float64), W.shape[1:])
        Z, settled = self._descend(W, steps)
        for j in np.flatnonzero(~settled):
            Z[:, j] = self._newton(W[:, j].astype(np.float64), float(steps[j]), Z[:, j].astype(np.float64))
        # Groups are zero or not: what is left of those that should be is the error of the method.
        vanished = self._all.norms(Z[self._all.indices]) <= 10 * CLOSE * np.linalg.norm(W, axis=0)
        row, column = np.nonzero(vanished[self._all.group])
        Z[self._all.indices[row], column] = 0.0
        return Z.reshape(np.shape(w))

    def _descend(self, W: Array, steps: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return z after block descent over the u_g, and in which columns it is as close as asked for."""
        family, bounds = self._in_order, steps * self._in_order.weights
        parts: Array = np.zeros((len(family.indices), W.shape[1]))
        close = CLOSE * np.linalg.norm(W, axis=0)
        Z, points, images = W, [parts], []
        for _ in range(SWEEPS):
            images.append(parts.copy())
            Z, outside = self._sweep(Z.copy(), images[-1], bounds)
            settled = np.sqrt(2 * _gap(family, Z, images[-1], bounds, outside)) <= close  # |z - minimiser|^2 <= 2 gap
            if settled.all():
                break
            points, images = points[-MEMORY:], images[-MEMORY:]
            parts, Z = self._extrapolate(np.array(points), np.array(images), W, Z, bounds)
            points.append(parts)
        return Z, settled

    def _sweep(self, Z: Array, parts: Array, bounds: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Minimise over the u_g of one family after the other, in place; tell which groups are left nonzero."""
        outside = np.zeros(bounds.shape, dtype=bool)
        entry, group = 0, 0
        for family in self._families:
            here = slice(entry, entry := entry + len(family.indices))
            these = slice(group, group := group + len(family.weights))
            entries = Z[family.indices] + parts[here]
            norms, bound = family.norms(entries), bounds[these]
            outside[these] = norms > bound
            factor = np.where(outside[these], bound / np.where(outside[these], norms, 1.0), 1.0)[family.group]
            parts[here] = entries * factor
            Z[family.indices] = entries * (1.0 - factor)
        return Z, outside

    def _extrapolate(self, points: Array, images: Array, W: Array, Z: Array, bounds: Array) -> tuple[Array, Array]:
        """Return u_g and z from Anderson's combination of the last sweeps, in the columns where it makes |z| less."""
        family, moves = self._in_order, images - points
        differences = np.diff(moves, axis=0)
        gram = np.einsum("imk,jmk->kij", differences, differences)
        gram += (1e-12 * np.trace(gram, axis1=1, axis2=2) + TINY)[:, None, None] * np.eye(len(differences))
        weights = np.linalg.solve(gram, np.einsum("imk,mk->ki", differences, moves[-1])[..., None])[..., 0]
        parts = images[-1] - np.einsum("imk,ki->mk", np.diff(images, axis=0), weights)
        norms = family.norms(parts)
        parts *= np.minimum(bounds / np.where(norms > 0, norms, 1.0), 1.0)[family.group]
        combined = W.copy()
        np.subtract.at(combined, family.indices, parts)
        better = np.einsum("ij,ij->j", combined, combined) < np.einsum("ij,ij->j", Z, Z)
        return np.where(better, parts, images[-1]), np.where(better, combined, Z)

    def _newton(self, w: Array, step: float, z: Array) -> Array:
        """Return the minimiser of 1/2 |z - w|^2 + step sum_g weight_g sqrt(|z_g|^2 + width^2), width close to 0."""
        from scipy.sparse import csr_array, diags_array
        from scipy.sparse.linalg import spsolve

        family, size = self._all, float(np.linalg.norm(w))
        bounds, first = step * family.weights[:, 0], np.append(family.first, len(family.indices))
        member = csr_array((np.ones(len(family.indices)), family.indices, first), shape=(len(bounds), len(w)))

        def smooth(z: Array) -> tuple[float, Array]:
            norms = np.sqrt(member @ z**2 + width**2)
            return 0.5 * float((z - w) @ (z - w)) + float(bounds @ norms), norms

        width = 0.1 * size
        while width > 1e-13 * size:
            width /= 10
            value, norms = smooth(z)
            for _ in range(NEWTON_STEPS):
                curvature = 1.0 + member.T @ (bounds / norms)
                gradient = curvature * z - w
                if np.linalg.norm(gradient) <= max(0.01 * width, 0.1 * CLOSE * size):
                    break
                # Scaled to a unit diagonal: curvatures differ by many orders of magnitude.
                scale = 1.0 / np.sqrt(curvature)
                across = diags_array(np.sqrt(bounds / norms**3)) @ member @ diags_array(z * scale)
                hessian = diags_array(np.ones(len(w))) - across.T @ across
                direction = -scale * spsolve(hessian.tocsc(), scale * gradient, permc_spec="MMD_AT_PLUS_A")
                slope, length = float(gradient @ direction), 1.0
                while length > CLOSE and smooth(z + length * direction)[0] > value + 0.1 * length * slope:
                    length /= 2
                z = z + length * direction
                value, norms = smooth(z)
        return z


def _gap(family: _Family, Z: Array, part: Array, bound: Array, outside: NDArray[np.bool_]) -> Array:
    """Return sum_g bound_g |z_g| - u_g'z_g for each column, as a sum of terms that are not negative.

    The plain difference would be lost in rounding before z has half of its digits.
    """
    entries = Z[family.indices]
    norms, sizes = family.norms(entries), np.where(outside, bound, family.norms(part))
    directions = entries / np.where(norms > 0, norms, 1.0)[family.group]
    apart = family.norms(directions - part / np.where(sizes > 0, sizes, 1.0)[family.group])
    gap: Array = (norms * (np.maximum(bound - sizes, 0.0) + sizes * apart**2 / 2)).sum(axis=0)
    return gap


def as_penalty(
    alpha: float, groups: Groupings | Sequence[int] | None = None, *, nonnegative: bool = False
) -> L1 | Groups | Tree | OverlappingGroups | NonNegative:
    """Return the cheapest penalty of weight ``alpha`` that is right.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : sequence of sequences of int, or (p,) integers, optional
        Index lists, or a label for each feature; without it each feature stands alone. Groups that do not meet make
        `Groups`, nested ones `Tree`, any others `OverlappingGroups`.
    nonnegative : bool
        Whether entries must not be below 0.

    Examples
    --------
    >>> from princomp.penalties import as_penalty
    >>> as_penalty(0.5)
    L1(alpha=0.5)
    >>> as_penalty(0.5, [7, 7, 9]).groups  # labels
    ((0, 1), (2,))
    >>> [type(as_penalty(0.5, groups)).__name__ for groups in ([[0, 1], [1]], [[0, 1], [1, 2]])]
    ['Tree', 'OverlappingGroups']
    """
    penalty: L1 | Groups | Tree | OverlappingGroups
    if groups is None:
        penalty = L1(alpha)
    else:
        sets = as_groups(groups)
        kind = Groups if _disjoint(sets) else Tree if _nested(sets) else OverlappingGroups
        penalty = kind(alpha, sets)
    return NonNegative(penalty) if nonnegative else penalty


def as_groups(groups: Groupings | Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return groups, given as index lists or as one label for each feature, as sorted tuples of indices.

    Examples
    --------
    >>> from princomp.penalties import as_groups
    >>> as_groups([1, 0, 1])
    ((1,), (0, 2))
    """
    given: list[Any] = list(groups)
    if given and all(isinstance(item, Integral) for item in given):
        labels = np.array(given)
        return tuple(tuple(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels))
    if not given or any(isinstance(group, str) or not np.iterable(group) for group in given):
        raise ValueError("groups must be a list of lists of feature numbers, or hold one integer label per feature.")
    found = []
    for i, group in enumerate(given):
        indices = list(group)
        if not indices or not all(isinstance(index, Integral) and int(index) >= 0 for index in indices):
            raise ValueError(f"Group {i} must hold feature numbers, integers of at least 0, and at least one of them.")
        if len(set(indices)) < len(indices):
            raise ValueError(f"Group {i} names a feature twice.")
        found.append(tuple(sorted(map(int, indices))))
    return tuple(found)


def _disjoint(groups: tuple[tuple[int, ...], ...]) -> bool:
    return len(set().union(*groups)) == sum(map(len, groups))


def _nested(groups: tuple[tuple[int, ...], ...]) -> bool:
    """Tell whether any two groups are nested or do not meet."""
    inside = np.zeros(max(map(max, groups)) + 1, dtype=int)  # the smallest group so far that holds a feature
    for i, group in enumerate(sorted(groups, key=len, reverse=True), start=1):
        index = list(group)
        if (inside[index] != inside[index[0]]).any():
            return False
        inside[index] = i
    return True


def _check_weight(alpha: float) -> None:
    if not (np.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha must be a finite number of at least 0, got {alpha!r}.")
