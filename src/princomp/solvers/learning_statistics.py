"""Rows coded tile by tile, wherever they are, and the sums that dictionary learning needs of them.

Whoever holds the rows codes them and returns `Coded`: the same on every storage, at any split into blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.coders.blocks import tiles
from princomp.data import Rows
from princomp.solvers.learning_cells import code_cells_of_tile
from princomp.solvers.learning_coded import Coded, Task, merge, worst_of


def code_all(rows: Rows, task: Task) -> Coded:
    """Code all rows, wherever they are, and return the sums."""
    coded: Coded = rows.reduce(code_block, task, combine=merge)
    return coded


def code_block(block: Any, rows: slice, task: Task) -> Coded:
    """Code a block of rows, dense or CSR."""
    return code_rows(block, np.arange(rows.start, rows.stop), task)


def code_rows(X: Any, numbers: Array, task: Task) -> Coded:
    """Code rows (m, p) that have these numbers, dense or CSR, tile by tile."""
    gram, total = task.gram, None
    for here, tile, correlations, squares in tiles(X, task.D):
        if task.by_cell:
            part = code_cells_of_tile(tile, numbers[here], task)
        else:
            part = code_tile(tile, numbers[here], task, gram, correlations, squares)
        total = part if total is None else total.and_of(part)
    return Coded.nothing(*task.D.shape, by_cell=task.by_cell) if total is None else total


def code_tile(X: Any, numbers: Array, task: Task, gram: Array, correlations: Array, squares: Array) -> Coded:
    """Code rows (m, p), float64, dense or CSR, with these row numbers, products X D' and |x|^2."""
    old = None if task.codes is None else task.codes[numbers]
    codes = task.coder.code(gram[None], correlations, squares, old)
    A, B, errors = sums(codes, X, gram, correlations, squares)
    penalties = task.coder.penalties(codes)
    if old is not None and not task.coder.optimal:
        codes, some = better(old, codes, 0.5 * errors + penalties, task.coder, gram, correlations, squares)
        if some:
            A, B, errors = sums(codes, X, gram, correlations, squares)
            penalties = task.coder.penalties(codes)
    return Coded(
        float(len(numbers)),
        A,
        B,
        float(squares.sum()),
        float(errors.sum()),
        float(penalties.sum()),
        np.bincount(codes.indices, minlength=len(gram)).astype(np.float64),
        worst_of(errors, numbers, X, task.worst),
        codes=(codes,) if task.keep else (),
    )


def better(
    old: Any, new: Any, objectives: Array, coder: Coder, gram: Array, correlations: Array, squares: Array
) -> tuple[Any, bool]:
    """Return, row by row, the new code or the old one, whichever has the smaller objective; and whether some are old.

    A greedy search may well find a code that is worse than the one it had found with other atoms.
    """
    from scipy.sparse import vstack

    before = 0.5 * code_errors(old, gram, correlations, squares) + coder.penalties(old)
    keep = before < objectives
    if not keep.any():
        return new, False
    both = vstack([new, old], format="csr")
    return both[np.arange(len(keep)) + np.where(keep, len(keep), 0)], True


def code_errors(codes: Any, gram: Array, correlations: Array, squares: Array) -> Array:
    """Return |x - a D|^2 of each row, (m,), from a alone."""
    dense = codes.toarray()
    return np.maximum(squares + np.einsum("ij,ij->i", dense, dense @ gram - 2.0 * correlations), 0.0)


def sums(codes: Any, X: Any, gram: Array, correlations: Array, squares: Array) -> tuple[Array, Array, Array]:
    """Return sum a'a (K, K), sum a'x (K, p) and |x - a D|^2 of each row, (m,)."""
    compiled = loops("learning_sums")
    if compiled is None:
        return sums_of_dense(codes, X, gram, correlations, squares)
    K, p = len(gram), X.shape[1]
    dense = isinstance(X, np.ndarray)
    A, B, errors = np.zeros((K, K)), np.zeros((K, p if dense else 0)), squares.copy()
    data = codes.data.astype(np.float64, copy=False)
    rows = np.ascontiguousarray(X) if dense else np.empty((X.shape[0], 0))
    compiled.add_codes((codes.indptr, codes.indices, data), rows, gram, correlations, (A, B, errors))
    return A, B if dense else (codes.T @ X).toarray(), np.maximum(errors, 0.0)


def sums_of_dense(codes: Any, X: Any, gram: Array, correlations: Array, squares: Array) -> tuple[Array, Array, Array]:
    """Do what `sums` does by products of dense matrices: the slow twin."""
    dense = codes.toarray().astype(np.float64, copy=False)
    return dense.T @ dense, np.asarray((X.T @ dense).T), code_errors(codes, gram, correlations, squares)
