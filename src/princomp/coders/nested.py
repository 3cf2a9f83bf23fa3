"""Codes with groups of atoms that are nested or do not meet: working sets (Jenatton, Mairal, Obozinski & Bach 2011).

    min 1/2 |x - a D|^2 + sum_g bound_g |a_g|     (a >= 0)

Few atoms are used, so proximal gradient steps are made among few: those at work, and those that a step over all atoms
would make nonzero enter, the largest first. It ends when the duality gap over all atoms is small enough. With the
slopes c - a G and z = prox(a + (c - a G) / L, 1 / L), the slopes less L (z - a) are in the dual ball (Moreau), so the
residual divided by 1 + polar(L (z - a)) is dual feasible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._compiled.coding_terms import Nest
from princomp._typing import Array
from princomp.coders.entries import few_rows
from princomp.penalties import Groups, NonNegative, Tree


def nest_of(penalty: Any, K: int) -> Nest | None:
    """Return groups as compiled loops take them; None for other penalties, and where some atom costs nothing."""
    inner = penalty.penalty if isinstance(penalty, NonNegative) else penalty
    if not isinstance(inner, Groups | Tree) or not np.isfinite(inner.polar(np.ones(K))):
        return None
    pairs = sorted(zip(inner.groups, inner.weights or ()), key=lambda pair: len(pair[0]))
    pairs = [(group, weight) for group, weight in pairs if weight > 0]
    owner, heaviest = np.zeros(K, dtype=np.int64), np.zeros(K)
    for g, (group, weight) in enumerate(pairs):
        mine = [k for k in group if weight > heaviest[k]]
        owner[mine], heaviest[mine] = g, weight
    members = np.concatenate([np.array(group, dtype=np.int64) for group, _ in pairs])
    first = np.append(0, np.cumsum([len(group) for group, _ in pairs])).astype(np.int64)
    bounds = inner.alpha * np.array([weight for _, weight in pairs])
    return Nest(members, first, bounds, owner, inner is not penalty)


def search(
    nest: Nest, gram: Array, correlations: Array, squares: Array, start: Array | None, tol: float
) -> tuple[Array, Array]:
    """Return codes (m, K), and which of them are as good as asked."""
    from princomp._compiled.coding_nested import nested_codes  # here: numba takes long to load

    given = [np.ascontiguousarray(each, dtype=np.float64) for each in (gram, correlations, squares)]
    codes = np.zeros(correlations.shape) if start is None else np.array(start, dtype=np.float64, order="C")
    if nest.nonnegative:
        np.maximum(codes, 0.0, out=codes)
    settled = np.zeros(len(codes), dtype=bool)
    for rows in few_rows(len(codes)):
        own = given[0] if len(given[0]) == 1 else given[0][rows]
        nested_codes(own, given[1][rows], given[2][rows], nest, codes[rows], settled[rows], tol)
    return codes, settled
