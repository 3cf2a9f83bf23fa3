"""Blocks of rows, coded in tiles: a tile's correlations with all atoms stay in the cache while it is coded."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.coders.cells import code_cells
from princomp.coders.robust import code_robust

TILE_BYTES = 2**20  # of correlations: 1 MiB was best, on 64 features and 256 atoms, of 1/4 to 8
TILE_ROWS = 16  # at least


def tiles(block: Any, atoms: Array) -> Iterator[tuple[slice, Any, Array, Array]]:
    """Yield (rows in the block, the rows, X D', |x|^2) of tiles of a block, dense or CSR, in float64.

    ``atoms`` is D (K, p), float64. The correlations are overwritten by those of the next tile.
    """
    n, K = block.shape[0], len(atoms)
    step = max(TILE_ROWS, TILE_BYTES // (8 * K))
    room = np.empty((min(step, n), K))
    for begin in range(0, n, step):
        here = slice(begin, min(begin + step, n))
        tile = block[here].astype(np.float64, copy=False)
        if isinstance(tile, np.ndarray):
            with np.errstate(invalid="ignore", over="ignore"):  # said later, in words
                correlations = np.matmul(tile, atoms.T, out=room[: len(tile)])
            squares = np.einsum("ij,ij->i", tile, tile)
        else:
            correlations = np.ascontiguousarray(tile @ atoms.T)
            owners = np.repeat(np.arange(tile.shape[0]), np.diff(tile.indptr))
            squares = np.bincount(owners, tile.data**2, tile.shape[0])
        yield here, tile, correlations, squares


def code_block(
    block: Any, rows: slice, atoms: Array, gram: Array, coder: Coder, start: Any, dtype: Any, loss: Any = None
) -> Any:
    """Return the codes of a block, CSR; a block function for `princomp.data.Rows.map`.

    ``atoms`` is D (K, p) and ``gram`` D D' (1, K, K), both float64; ``start`` None, or codes of all rows to begin with;
    ``loss`` another one than the square. Cells that are NaN are missing.
    """
    import scipy.sparse as sp

    parts = [sp.csr_array((0, len(atoms)), dtype=dtype)]
    for here, tile, correlations, squares in tiles(block, atoms):
        first = None if start is None else start[rows.start + here.start : rows.start + here.stop]
        lacking = not np.isfinite(squares).all() and check_cells(tile)
        if loss is None and not lacking:
            parts.append(coder.code(gram, correlations, squares, first))
            continue
        dense = tile if isinstance(tile, np.ndarray) else tile.toarray()
        if loss is None:
            parts.append(code_cells(dense, atoms, coder, start=first))
        else:
            parts.append(code_robust(dense, atoms, coder, loss, first))
    return sp.vstack(parts, format="csr", dtype=dtype)


def check_cells(tile: Any) -> bool:
    """Tell whether cells are missing; complain about infinite ones, and those whose squares are."""
    cells = tile if isinstance(tile, np.ndarray) else tile.data
    if np.isinf(cells).any():
        raise ValueError("X contains infinity. Replace or drop those cells first.")
    with np.errstate(over="ignore"):
        total = np.nansum(np.square(cells))
    if np.isinf(total):
        raise ValueError("X is so large that its squares overflow. Divide X, alpha and error by a constant.")
    return bool(np.isnan(cells).any())
