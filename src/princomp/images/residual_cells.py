"""Cells that do not follow the components, as a map: how bad a cell is as a shade, cells put together where many."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from princomp._typing import Array

# In standard deviations of good cells: 99 % of these are within the first; a cell at the second has the full shade.
LIMIT, FULL = 2.5758293035489004, 10.0
ALL = np.array([0, 1])  # of one column
WORDS = (
    "What the components leave of each cell. Cells without a colour are as they say; warm ones are too high, cool ones "
    "too low, the stronger the farther; grey ones are missing. 99 % of good cells, those within 2.58 standard "
    "deviations, have no colour. Bars on the left mark rows more than half of whose cells are coloured."
)


@dataclass(frozen=True)
class ResidualCells:
    """A map of at most so many rows and columns, each of which stands for some neighbours."""

    shades: Array  # (rows, columns), from -1, too low, to 1, too high: the root of the mean over the cells
    missing: Array  # (rows, columns), share
    worst: Array  # (rows, columns), the residual that is farthest from 0, NaN where all cells are missing
    row: Array  # (rows, columns), of the worst cell
    column: Array
    row_edges: Array  # (rows + 1,): rows[i]:rows[i + 1] are put together
    column_edges: Array
    bad_rows: Array  # (rows,), share: more than half of the cells of a bad row are


def residual_cells(residuals: Array, most: tuple[int, int] = (200, 100)) -> ResidualCells:
    """Return residuals (n, p) in standard deviations, NaN where cells are missing, as a map.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.residual_cells import residual_cells
    >>> residuals = np.array([[0.1, 10.0, np.nan], [-2.0, 0.3, -20.0]])
    >>> residual_cells(residuals).shades.tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, -1.0]]
    """
    residuals = np.asarray(residuals, np.float64)
    rows, columns = (_edges(length, limit) for length, limit in zip(residuals.shape, most, strict=True))
    there = ~np.isnan(residuals)
    size = np.where(there, np.abs(residuals), -1.0)
    bad = np.sign(residuals) * np.where(size > LIMIT, np.minimum(size / FULL, 1.0), 0.0)
    high, low = (_mean(np.where(there, np.maximum(part, 0.0), 0.0), rows, columns) for part in (bad, -bad))
    row, column = _largest(size, rows, columns)
    return ResidualCells(
        shades=np.where(high >= low, np.sqrt(high), -np.sqrt(low)) + 0.0,  # no -0.0
        missing=_mean(~there, rows, columns),
        worst=residuals[row, column],
        row=row,
        column=column,
        row_edges=rows,
        column_edges=columns,
        bad_rows=_mean((bad != 0).sum(axis=1, keepdims=True) > 0.5 * there.sum(axis=1, keepdims=True), rows, ALL)[:, 0],
    )


def _edges(length: int, most: int) -> Array:
    """Return where runs of neighbours begin, and the length: as equal in length as whole numbers allow."""
    return np.linspace(0, length, min(length, most) + 1).astype(int)


def _mean(cells: Array, rows: Array, columns: Array) -> Array:
    sums = np.add.reduceat(np.add.reduceat(cells, rows[:-1], axis=0, dtype=np.float64), columns[:-1], axis=1)
    return sums / np.outer(np.diff(rows), np.diff(columns))


def _largest(size: Array, rows: Array, columns: Array) -> tuple[Array, Array]:
    """Return row and column of the largest entry of each block."""
    i = np.empty((len(rows) - 1, len(columns) - 1), int)
    j = np.empty_like(i)
    for r, (top, bottom) in enumerate(pairwise(rows)):
        within = size[top:bottom].argmax(axis=0)  # of each column
        heights = size[top:bottom][within, np.arange(size.shape[1])]
        for c, (left, right) in enumerate(pairwise(columns)):
            j[r, c] = left + heights[left:right].argmax()
            i[r, c] = top + within[j[r, c]]
    return i, j
