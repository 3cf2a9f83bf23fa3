"""X'(X V) for a sparse X in CSR form, row by row: each row is read once, and is still in the cache when used again.

Eight columns of V and the same eight of the result lie side by side, in float32 in one cache line, so that an index
costs one line from memory. Twin: ``X.T @ (X @ V)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from princomp._compiled import kernel
from princomp._compiled.lanes import COUNT, fused, load, spread, store

Array = NDArray[Any]
CACHE_LINE = 64


@kernel
def _accumulate(indptr: Array, indices: Array, data: Array, pairs: Array, scores: Array) -> None:
    """Add to pairs (p, 2, 8), V at [:, 0], X'(X V) at [:, 1]; keep X V in scores (n, 8), unless these are empty."""
    keep = len(scores) > 0
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        score = spread(data.dtype.type(0))
        for j in range(begin, end):
            score = fused(spread(data[j]), load(pairs, 2 * COUNT * np.intp(indices[j])), score)
        if keep:
            store(scores, COUNT * i, score)
        for j in range(begin, end):
            at = 2 * COUNT * np.intp(indices[j]) + COUNT
            store(pairs, at, fused(spread(data[j]), score, load(pairs, at)))


def sparse_gram(X: Any, V: Array, scores: Array | None = None) -> Array:
    """Return X'(X V) for CSR X (n, p) and V (p, b) of the same dtype; indices must lie within 0 and p.

    ``scores`` (n, b), if given, receives X V.
    """
    p, b = V.shape
    out = np.empty((p, b), V.dtype)
    kept = np.empty((0 if scores is None else X.shape[0], COUNT), V.dtype)
    room = np.empty(2 * COUNT * p + CACHE_LINE // V.itemsize, V.dtype)
    first = -room.ctypes.data % CACHE_LINE // V.itemsize
    pairs = room[first : first + 2 * COUNT * p].reshape(p, 2, COUNT)
    parts = [part.view() for part in (X.indptr, X.indices, X.data)]
    for part in parts:
        part.flags.writeable = False  # one compiled form for all, be they maps of files or not
    for begin in range(0, b, COUNT):
        width = min(COUNT, b - begin)
        pairs[...] = 0
        pairs[:, 0, :width] = V[:, begin : begin + width]
        _accumulate(*parts, pairs, kept)
        out[:, begin : begin + width] = pairs[:, 1, :width]
        if scores is not None:
            scores[:, begin : begin + width] = kept[:, :width]
    return out


def warm_up() -> None:
    """Compile for single and double precision."""
    from scipy.sparse import csr_array

    for dtype in (np.float32, np.float64):
        sparse_gram(csr_array(np.eye(2, dtype=dtype)), np.eye(2, dtype=dtype))
