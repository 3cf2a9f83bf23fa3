"""Penalties: small frozen dataclasses with a ``value`` and a ``prox``.

What a penalty must provide, for an array ``w``, one vector (p,) or columns (p, k) that are penalised one by one and
added up:

``value(w)``
    h(w), a float.
``prox(w, step)``
    the minimiser of 1/2 |z - w|^2 + step h(z) over z, an array like ``w``; ``step`` is a number above 0, or, for
    columns, an array (k,) of them.
``times(number)``
    the penalty number * h. Coders do without.

What it may provide:

``values(w)``
    h of each column, (k,): coders ask often, and call ``value`` for one column after the other where it is missing.
``convex``
    True if h is convex: then a code has a certificate of a global minimum, and otherwise only of a local one.
``polar(v)``
    for a norm or the like, for each column a number b with v'a <= b h(a) for all a, the smaller the better: then codes
    have a duality gap.
``homogeneous``
    False if h(t w) is not t h(w) for all t > 0; `PCA` needs this.
``prox_nonnegative(w, step)``
    the prox of h where w >= 0, if it is not the prox at max(w, 0).

A set is a penalty, too: zero inside, infinity outside, and the prox is the nearest point. `as_penalty` chooses among
them. Single entries: `simple` and `entries`; balls: `balls`; groups: `groups`; a matrix whose columns have weights of
their own (`ColumnL1`), or whose rows are taken together (`RowNorms`): `matrices`.
"""

from princomp.penalties.balls import ElasticNetBall, L1Ball, L2Ball, Sphere
from princomp.penalties.entries import L0, Box, ElasticNet, Lp
from princomp.penalties.groups import Groups, OverlappingGroups, Tree, as_groups, as_penalty
from princomp.penalties.matrices import ColumnL1, RowNorms
from princomp.penalties.simple import L1, NonNegative, Penalty, Zero, column_values, is_convex, is_penalty

GroupL2 = Groups  # the name by which others know it

__all__ = [
    "L0",
    "L1",
    "Box",
    "ColumnL1",
    "ElasticNet",
    "ElasticNetBall",
    "GroupL2",
    "Groups",
    "L1Ball",
    "L2Ball",
    "Lp",
    "NonNegative",
    "OverlappingGroups",
    "Penalty",
    "RowNorms",
    "Sphere",
    "Tree",
    "Zero",
    "as_groups",
    "as_penalty",
    "column_values",
    "is_convex",
    "is_penalty",
]
