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

`as_penalty` chooses among them. Single entries: `simple`; groups: `groups`; a matrix whose columns
have weights of their own (`ColumnL1`), or whose rows are taken together (`RowNorms`): `matrices`.
"""

from princomp.penalties.groups import Groups, OverlappingGroups, Tree, as_groups, as_penalty
from princomp.penalties.matrices import ColumnL1, RowNorms
from princomp.penalties.simple import L1, NonNegative, Penalty, Zero

__all__ = [
    "L1",
    "ColumnL1",
    "Groups",
    "NonNegative",
    "OverlappingGroups",
    "Penalty",
    "RowNorms",
    "Tree",
    "Zero",
    "as_groups",
    "as_penalty",
]
