"""Choosing a penalty."""

from collections.abc import Sequence

from princomp.penalties.groups import Groupings, Groups, Tree, as_groups, disjoint, nested
from princomp.penalties.overlapping import OverlappingGroups
from princomp.penalties.simple import L1, NonNegative


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
