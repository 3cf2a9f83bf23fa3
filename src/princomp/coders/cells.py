"""Rows with missing cells, or with cells of different weights: each row has a Gram matrix of its own.

    min 1/2 sum_j w_j (x_j - (a D)_j)^2 + h(a),    w_j = 0 where x_j is missing,

is the usual problem with G = D diag(w) D' and c = D diag(w) x, so any coder serves. A norm of the residual, as
`Pursuit` takes it for ``error``, is that of the cells that are there, with their weights. Rows that lack the same cells
share a matrix. Others have theirs made from the columns of D that are fewer, those that are there or those that are
not, a few rows at a time: no more than about 8 MB of matrices are there at once. A row without any cell has the code 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.coders.base import Coder

GRAM_BYTES = 2**23  # of matrices at a time
SHARED = 4  # rows with one pattern that are coded together: fewer go with others, each with a copy of its matrix


def code_cells(X: Array, atoms: Array, coder: Coder, weights: Array | None = None, start: Any = None) -> Any:
    """Return the codes (m, K), CSR, of rows X (m, p) that may have NaN cells, which are left out.

    Parameters
    ----------
    X : (m, p) array
        Rows; NaN is missing.
    atoms : (K, p) array
        The dictionary, float64.
    coder : Coder
        How a row is coded.
    weights : (m, p) array, optional
        Of each cell, at least 0; 1 by default.
    start : (m, K) CSR array, optional
        Codes to begin with.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.coders.cells import code_cells
    >>> from princomp.coders.pursuit import Pursuit
    >>> code_cells(np.array([[3.0, np.nan], [np.nan, np.nan]]), np.array([[1.0, 1.0]]), Pursuit(1)).toarray().tolist()
    [[3.0], [0.0]]
    """
    import scipy.sparse as sp

    m, K = len(X), len(atoms)
    there = ~np.isnan(X)
    omega = there.astype(np.float64) if weights is None else np.where(there, weights, 0.0)
    rows = np.where(omega > 0, X, 0.0).astype(np.float64)
    weighted = rows * omega
    correlations, squares = weighted @ atoms.T, np.einsum("ij,ij->i", weighted, rows)
    if X.dtype == np.float32:
        correlations = correlations.astype(np.float32)
    parts, order = [sp.csr_array((0, K), dtype=correlations.dtype)], [np.zeros(0, dtype=np.intp)]
    for these, gram in _grams(omega, atoms, varied=weights is not None):
        first = None if start is None else start[these]
        parts.append(coder.code(gram, correlations[these], squares[these], first))
        order.append(these)
    empty = np.flatnonzero(~omega.any(axis=1))
    parts.append(sp.csr_array((len(empty), K), dtype=correlations.dtype))
    return sp.vstack(parts, format="csr")[np.argsort(np.concatenate([*order, empty]))] if m else parts[0]


def _grams(omega: Array, atoms: Array, *, varied: bool) -> Iterator[tuple[Array, Array]]:
    """Yield rows, and their Gram matrices, (1, K, K) or one for each; rows of zeros are left out."""
    K = len(atoms)
    full = atoms @ atoms.T
    alone = np.flatnonzero(omega.any(axis=1))
    if not varied:
        by_pattern, begins = _patterns(omega[alone] > 0)
        ends = np.append(begins[1:], len(alone))
        many = ends - begins >= SHARED
        for begin, end in zip(begins[many], ends[many]):
            these = alone[by_pattern[begin:end]]
            yield np.sort(these), gram_of(full, atoms, omega[these[0]])[None]
        alone = alone[by_pattern[np.repeat(~many, ends - begins)]]
    tile = max(1, GRAM_BYTES // (8 * K * K))
    compiled = loops("coding_cells")
    for first in range(0, len(alone), tile):
        these = alone[first : first + tile]
        if compiled is None:
            yield these, np.stack([gram_of(full, atoms, row) for row in omega[these]])
        else:
            yield these, compiled.grams(atoms, omega[these], full)


def gram_of(full: Array, atoms: Array, omega: Array) -> Array:
    """Return D diag(omega) D', from the product with all weights 1 and what differs, or from what is there."""
    differs = np.flatnonzero(omega != 1.0)
    if 2 * len(differs) < len(omega) or (omega > 0).all():
        some = atoms[:, differs]
        return full + (some * (omega[differs] - 1.0)) @ some.T
    there = np.flatnonzero(omega)
    some = atoms[:, there] * np.sqrt(omega[there])
    return np.asarray(some @ some.T)


def _patterns(there: Array) -> tuple[Array, Array]:
    """Return an order of rows in which equal ones come together, and where in it each pattern begins."""
    packed = np.packbits(there, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.argsort(inverse, kind="stable"), np.cumsum(counts) - counts
