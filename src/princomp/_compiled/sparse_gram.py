"""X'(X V - 1 b') for a sparse X in CSR form: each row is read once, and is still in the cache when it is used again.

Eight columns of V and the same eight of the result lie side by side, in float32 in one cache line, so that an index
costs one line from memory. Twin: ``X.T @ (X @ V - b)``.
"""

from typing import Any

import numpy as np

from princomp._compiled import compiled
from princomp._compiled.lanes import COUNT, fused, load, spread, store
from princomp._typing import Array

CACHE_LINE = 64


@compiled
def _accumulate(indptr: Array, indices: Array, data: Array, pairs: Array, ends: Array, scores: Array) -> None:
    """Add to pairs (p, 2, 8), V at [:, 0], X'Z at [:, 1], where Z = X V + 1 b', b at ends[0]; put Z'1 into ends[1].

    Z is kept in scores (n, 8), unless these are empty.
    """
    keep = len(scores) > 0
    one = spread(data.dtype.type(1))
    total = spread(data.dtype.type(0))
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        score = load(ends, 0)
        for j in range(begin, end):
            score = fused(spread(data[j]), load(pairs, 2 * COUNT * np.intp(indices[j])), score)
        total = fused(one, score, total)
        if keep:
            store(scores, COUNT * i, score)
        for j in range(begin, end):
            at = 2 * COUNT * np.intp(indices[j]) + COUNT
            store(pairs, at, fused(spread(data[j]), score, load(pairs, at)))
    store(ends, COUNT, total)


def sparse_gram(X: Any, V: Array, along: Array, scores: Array | None = None) -> tuple[Array, Array]:
    """Return X'Z (p, b) and Z'1 (b,), with Z = X V - 1 along', for CSR X (n, p), V (p, b), ``along`` (b,) of one dtype.

    Indices must lie within 0 and p. ``scores`` (n, b), if given, receives Z.
    """
    p, b = V.shape
    out, sums = np.empty((p, b), V.dtype), np.empty(b, V.dtype)
    ends = np.empty((2, COUNT), V.dtype)
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
        ends[0] = 0
        ends[0, :width] = -along[begin : begin + width]
        _accumulate(*parts, pairs, ends, kept)
        out[:, begin : begin + width], sums[begin : begin + width] = pairs[:, 1, :width], ends[1, :width]
        if scores is not None:
            scores[:, begin : begin + width] = kept[:, :width]
    return out, sums


def warm_up() -> None:
    """Compile for single and double precision."""
    from scipy.sparse import csr_array

    for dtype in (np.float32, np.float64):
        sparse_gram(csr_array(np.eye(2, dtype=dtype)), np.eye(2, dtype=dtype), np.zeros(2, dtype))
