"""Penalties of groups of entries that do not meet, that are nested, or that overlap; and which one is right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from princomp._compiled.group_layout import Layout, lay_out
from princomp._typing import Array
from princomp.penalties import interior
from princomp.penalties.simple import L1, LARGEST, NonNegative, Step, check_weight

Groupings = Sequence[Sequence[int]]


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
class Grouped:
    """h(w) = alpha sum_g weight_g |w_g|_2: what the group penalties share."""

    convex: ClassVar[bool] = True

    alpha: float
    groups: tuple[tuple[int, ...], ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what is no penalty, and write groups and weights as tuples."""
        check_weight(self.alpha)
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
        return float(self.values(w).sum())

    def values(self, w: Array) -> Array:
        """Return h of each column."""
        norms = self._all.norms(self._columns(w)[self._all.indices])
        sums: Array = self.alpha * (self._all.weights * norms).sum(axis=0)
        return sums.reshape(np.shape(w)[1:])

    @cached_property
    def _heaviest(self) -> tuple[_Family, Array]:
        """Give each feature to the heaviest group that it is in; return these groups, and the features of none."""
        best: dict[int, tuple[float, int]] = {}
        for i, (group, weight) in enumerate(self._pairs):
            for feature in group:
                best[feature] = max(best.get(feature, (0.0, -1)), (weight, i))
        owned: dict[int, list[int]] = {}
        for feature, (weight, i) in best.items():
            if weight > 0:
                owned.setdefault(i, []).append(feature)
        held = np.array(sorted(feature for features in owned.values() for feature in features), dtype=np.intp)
        return _family((tuple(features), self._pairs[i][1]) for i, features in owned.items()), held

    def polar(self, v: Array) -> Array:
        """Return, for each column, a number b with v'a <= b h(a) for all a, the smallest there is if no groups meet.

        Groups that meet: h(a) is at least the sum over groups without the features that a heavier one has. Features
        that are not penalised must be zero in v, or it is infinity.
        """
        V = self._columns(v)
        if self.alpha == 0 or not max(self.weights or (0.0,)):
            bounds = np.where(V.any(axis=0), np.inf, 0.0)
        else:
            family, held = self._heaviest
            free = np.delete(V, held, axis=0).any(axis=0)
            largest = (family.norms(V[family.indices]) / family.weights).max(axis=0) / self.alpha
            bounds = np.where(free, np.inf, largest)
        return bounds.reshape(np.shape(v)[1:])

    def times(self, number: float) -> Any:
        """Return the penalty of weight number * alpha (or the largest weight there is)."""
        return replace(self, alpha=min(number * self.alpha, LARGEST))


@dataclass(frozen=True)
class Groups(Grouped):
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
        super().__post_init__()
        if not disjoint(self.groups):
            raise ValueError("Two groups share a feature: use Tree if they are nested, else OverlappingGroups.")

    def prox(self, w: Array, step: Step) -> Array:
        """Return each group shrunk towards zero."""
        W = self._columns(w)
        self._all.shrink(W, self.alpha * step)
        return W.reshape(np.shape(w))


@dataclass(frozen=True)
class Tree(Grouped):
    """h(w) = alpha sum_g weight_g |w_g|_2 over groups of which any two are nested or do not meet.

    A group that is zero takes all groups inside it along: features enter from the root of the tree. The prox shrinks
    group after group, from the leaves to the root (Jenatton, Mairal, Obozinski & Bach, JMLR 2011).

    Parameters
    ----------
    alpha, groups, weights
        As in `Groups`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import Tree
    >>> Tree(1.0, [[0, 1], [1]], [2.5, 1.0]).prox(np.array([3.0, 5.0]), 1.0).tolist()
    [1.5, 2.0]
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not nested(self.groups):
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
class OverlappingGroups(Grouped):
    """h(w) = alpha sum_g weight_g |w_g|_2 over any groups: the zeros are a union of groups.

    Jenatton, Audibert & Bach, JMLR 2011. The prox is w - sum_g u_g, where the u_g, supported on their groups, minimise
    |w - sum_g u_g|^2 subject to |u_g| <= step alpha weight_g: by an interior-point method, to 1e-10 |w| by the duality
    gap, or as close as rounding lets it come where many groups are just about to vanish.

    Parameters
    ----------
    alpha, groups, weights
        As in `Groups`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import OverlappingGroups
    >>> OverlappingGroups(1.0, [[0, 1], [1, 2]], [0.5, 2.0]).prox(np.array([3.0, 1.0, -1.0]), 1.0).tolist()
    [2.5, 0.0, 0.0]
    """

    @cached_property
    def _layout(self) -> tuple[Layout, Array, Array] | None:
        """Groups that are penalised, neighbours close together, their weights, and their features; None if none are."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        pairs = [(group, weight) for group, weight in self._pairs if weight > 0]
        if not pairs:
            return None
        p = 1 + max(group[-1] for group, _ in pairs)
        apart = lay_out([group for group, _ in pairs], p)
        member = csr_array((np.ones(len(apart.indices)), apart.indices, apart.first), shape=(len(pairs), p))
        order = reverse_cuthill_mckee((member @ member.T).tocsr(), symmetric_mode=True)
        layout = lay_out([pairs[g][0] for g in order], p)
        return layout, np.array([pairs[g][1] for g in order]), np.unique(layout.indices)

    def prox(self, w: Array, step: Step) -> Array:
        """Return the minimiser, to 1e-10 |w|."""
        W = self._columns(w)
        if self._layout is not None:
            layout, weights, covered = self._layout  # features that are not penalised stay as they are
            padded = np.zeros(len(layout.starts) - 1)
            steps = np.broadcast_to(np.asarray(self.alpha * step, dtype=np.float64), W.shape[1:])
            with np.errstate(over="ignore"):
                bounds = np.multiply.outer(steps, weights)
            for column, each in zip(W.T, bounds):
                padded[covered] = column[covered]
                column[covered] = interior.solve(layout, padded, each)[0][covered]
        return W.reshape(np.shape(w))


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
        kind = Groups if disjoint(sets) else Tree if nested(sets) else OverlappingGroups
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
    given: list[Any] = list(groups) if np.iterable(groups) else []
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


def disjoint(groups: tuple[tuple[int, ...], ...]) -> bool:
    """Tell whether no two groups meet."""
    return len(set().union(*groups)) == sum(map(len, groups))


def nested(groups: tuple[tuple[int, ...], ...]) -> bool:
    """Tell whether any two groups are nested or do not meet."""
    inside = np.zeros(max(map(max, groups)) + 1, dtype=int)  # the smallest group so far that holds a feature
    for i, group in enumerate(sorted(groups, key=len, reverse=True), start=1):
        index = list(group)
        if (inside[index] != inside[index[0]]).any():
            return False
        inside[index] = i
    return True
