"""Whether codes take any atoms: what a fit warns of where alpha, or error, is too large for these data.

A row x has the l1 code 0 just where alpha >= max_k |x . d_k| (with a loss, of rho'(x) / 2 in place of x): from the
largest of these on nothing is coded, and nothing learnt.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._text import percent
from princomp._typing import Array
from princomp.coders.lasso import Lasso
from princomp.coders.pursuit import Pursuit
from princomp.data import Rows

FEW = 0.5  # atoms in a row, on average: with fewer, most rows are sure to have none
LEFT = 0.3  # share of the squares: where less is left, rows without atoms are those that hardly matter
TYPICAL = 0.2  # of the length of a row: an alpha that leaves a few atoms in each, as a rule


def hardly_used(per_row: float, left: float | None) -> bool:
    """Tell whether no row has an atom, or most have none and that matters; ``left`` is a share of squares."""
    return per_row == 0 or (per_row < FEW and (left is None or left > LEFT))


def how_little(per_row: float, left: float | None) -> str:
    """Say how little codes are."""
    if per_row == 0:
        return "Every code is 0, so nothing could be learnt"
    of = "" if left is None else f", and {percent(left)} of the squares are left"
    return f"Most rows have no atom in their codes, which have {per_row:.2g} on average{of}"


def advice(rows: Rows, D: Array, coder: Any, loss: Any, length: float) -> str:
    """Say what to change; ``length`` is that of a row, on average."""
    if length == 0:
        return "There is nothing but 0 in the rows."
    if isinstance(coder, Pursuit) and coder.error is None:
        return "No atom is like them."
    if isinstance(coder, Pursuit):
        return f"Rows have a length of {length:.2g} on average: make error a small part of that."
    if not isinstance(coder, Lasso):
        return "Give the penalty a smaller weight, or bring the rows to another scale."
    largest = largest_alpha(rows, D, coder, loss)
    # Rows of scattered entries are like no atom: they may need far less than a part of their length.
    proposed = min(TYPICAL * min(length, largest), coder.alpha / 3)
    return (
        f"With these atoms codes are all 0 from alpha={largest:.3g} on, and alpha is {coder.alpha:.3g}: make it "
        f"smaller, such as {proposed:.1g}, or bring the rows to another scale."
    )


def largest_alpha(rows: Rows, D: Array, coder: Lasso, loss: Any) -> float:
    """Return the largest |x . d_k| of these rows, from which on alpha makes all codes 0."""
    return float(rows.reduce(_largest, D, coder.nonnegative, loss, combine=np.maximum))


def _largest(block: Any, rows: slice, D: Array, nonnegative: bool, loss: Any) -> Array:
    if isinstance(block, np.ndarray):
        pull = _pull(block, loss) @ D.T
    else:
        block = block.tocsr()
        pull = type(block)((_pull(block.data, loss), block.indices, block.indptr), shape=block.shape) @ D.T
    return np.asarray((pull if nonnegative else np.abs(pull)).max(initial=0.0))


def _pull(cells: Array, loss: Any) -> Array:
    """Return rho'(x) / 2 of each cell, x itself for squares; cells that are missing pull at nothing."""
    return np.asarray(loss.gradient(np.nan_to_num(np.asarray(cells, dtype=np.float64))) / 2)
