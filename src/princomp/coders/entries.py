"""Greedy coordinate descent for l0 and l_p, 0 < p < 1: as matching pursuit, but each step minimises the objective.

    min F(a) = 1/2 |x - a D|^2 + alpha sum_k |a_k|^p      (p = 0: the number of nonzeros; a >= 0)

From zero, or a given code, the entry enters, changes or leaves whose best value lowers F most; then the entries that
are not zero are settled by sweeps over them. F never rises. At the end no change of a single entry lowers F, up to
1e-14 |x|^2; slopes of the nonzero entries are zero up to ``tol`` max |c|. This is local, but stronger than being fixed
under proximal gradient steps: an entry alone moves farther, its curvature |d_k|^2 is less than all have together.

Mazumder, Friedman & Hastie, J. Am. Stat. Assoc. 2011 (coordinate descent with such penalties).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from princomp._compiled.coding_terms import Price
from princomp._typing import Array
from princomp.penalties import L0, Lp, NonNegative

AT_ONCE = 4  # rows


def price_of(penalty: Any) -> Price | None:
    """Return what an entry costs, None for penalties of another kind, and where nothing costs anything."""
    inner = penalty.penalty if isinstance(penalty, NonNegative) else penalty
    if not isinstance(inner, L0 | Lp) or inner.alpha == 0:
        return None
    return Price(float(inner.alpha), float(getattr(inner, "p", 0.0)), inner is not penalty)


def descend(
    price: Price, gram: Array, correlations: Array, squares: Array, start: Array | None, tol: float
) -> tuple[Array, Array]:
    """Return codes (m, K), and which of them are settled."""
    from princomp._compiled.coding_entries import entry_codes  # here: numba takes long to load

    given = [np.ascontiguousarray(each, dtype=np.float64) for each in (gram, correlations, squares)]
    codes = np.zeros(correlations.shape) if start is None else np.array(start, dtype=np.float64, order="C")
    if price.nonnegative:
        np.maximum(codes, 0.0, out=codes)
    settled = np.zeros(len(codes), dtype=bool)
    for rows in few_rows(len(codes)):
        own = given[0] if len(given[0]) == 1 else given[0][rows]
        entry_codes(own, given[1][rows], given[2][rows], price, codes[rows], settled[rows], tol)
    return codes, settled


def few_rows(m: int) -> Iterator[slice]:
    """Yield a few rows at a time: a compiled loop cannot be interrupted, and some rows take long."""
    yield from (slice(first, first + AT_ONCE) for first in range(0, m, AT_ONCE))
