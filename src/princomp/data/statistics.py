"""Sums over rows, written once for every storage: means, scatter matrices, and products with X.

Moments are taken about a shift close to the mean, in float64, so that an offset of 1e8 costs no digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from princomp._typing import Array
from princomp.data import budget
from princomp.data.centered import GRAM_ROWS, Centered
from princomp.data.memory import MemoryRows
from princomp.data.rows import Rows, centre, itself
from princomp.data.signature import Signature, ones_and_weights, row_weights, total_weight

# A tile of columns in XX': so many that what is added to XX' for each is little beside its product.
COLUMNS_BYTES = 2**22
LEAST_COLUMNS = 256
# A tile of a product there and back, X'(Xv), should still be in the cache on its way back; of fewer rows BLAS makes
# products with vectors slowly. At 1000 x 200 000 in float32 8 rows took the least time, 16 a quarter more.
FUSED_BYTES = 2**23
FUSED_ROWS = 8
# Of long rows a tile has this many, if they take no more, where a sum as long as a row is added up for each.
SUMMED_ROWS = 64
SUMMED_BYTES = 2**24
COPY_SHARE = 0.05  # of the memory that is left may go into a copy of data that live on workers
FEWER = "Take fewer rows, or columns, first, or load the data into memory."
# Rows (or cells, if rows are long) whose mean serves as the shift. The distance of the mean of m rows from that of all
# n is at most sqrt(n / m) standard deviations, so more than one row where that can be: a share of them with which that
# is within SHIFT_TOLERANCE.
SHIFT_ROWS = 1024
SHIFT_LEAST = 16
SHIFT_SHARE = 1 / 16
SHIFT_CELLS = 2**18
# The mean may be this many standard deviations from the shift before a second pass about the mean itself is made:
# the digits lost go with the square.
SHIFT_TOLERANCE = 10.0
MOST_CONSTANT = 64  # columns of sparse data beside whose mean their deviations vanish, of which it is found out why
# Share of the squares about the mean from which on it counts that the mean is rounded: that of numbers near 5e-324, or
# of data 1e16 times as far from zero as they spread.
COARSE = 0.01


@dataclass(frozen=True)
class Moments:
    """Mean and squared deviations of the columns of X, and a signature of these deviations."""

    count: int
    mean: Array  # (p,)
    total: float  # sum of all squared deviations from the mean
    signature: Signature  # of (X - mean) * factor, from the same pass
    squares: Array | None = None  # (p,) the same by column
    scatter: Array | None = None  # (p, p) X'X of the centred data
    discrepancy: Array | None = None  # (p,) (X'X)w - X'(Xw), w = `trial_vector`: what rounding, or worse, made of X'X
    dense_tiles: bool = False  # sparse data whose mean is too large for implicit centring

    @classmethod
    def of(cls, n: int, mean: Array, times: Any, weighted: Array, squares: Array, product: Any, **how: Any) -> Moments:
        """Make moments of squares in any of the three forms: a number, by column, a matrix (and its ``product``)."""
        by_column = np.diag(squares) if squares.ndim == 2 else squares
        signature = Signature.about(mean * times, weighted, by_column, n)
        if squares.ndim == 2:
            discrepancy = squares @ trial_vector(len(mean)) - product
            return cls(n, mean, float(np.trace(squares)), signature, by_column, squares, discrepancy, **how)
        return cls(n, mean, float(squares.sum()), signature, squares if squares.ndim else None, **how)

    @property
    def spread(self) -> Array:
        """Squared deviations, by column where known, never negative."""
        return np.maximum(self.total if self.squares is None else self.squares, 0.0)

    def centered(self, rows: Rows, factor: Array | None = None) -> Centered:
        """Return the rows less this mean, times ``factor``."""
        return Centered(rows, self.mean if self.mean.any() else None, factor, dense_tiles=self.dense_tiles)


# Block functions: pure, importable, additive over any split of rows; `block` is an array or a CenteredSparse.


@lru_cache(maxsize=4)
def trial_vector(p: int) -> Array:
    """Return w (p,), random, that is carried through the pass which makes X'X: X'(Xw) must be (X'X)w.

    Single precision holds its numbers, too.
    """
    w = np.random.default_rng(p).standard_normal(p).astype(np.float32).astype(np.float64)
    w.flags.writeable = False
    return w


def _sums_of(block: Any, *weights: Array) -> Array:
    """Return weights (m, rows) times a block, (m, p), in double precision.

    One after the other: OpenBLAS takes two to three times as long for a product with a matrix of so few rows.
    """
    if not isinstance(block, np.ndarray):
        return np.asarray(np.stack(weights) @ block)
    return np.stack([w.astype(block.dtype, copy=False) @ block for w in weights]).astype(np.float64, copy=False)


def _sums(block: Any, rows: slice) -> tuple[Array, Array]:
    squares = np.vdot(block, block) if isinstance(block, np.ndarray) else block.square_sums().sum()
    return _sums_of(block, *ones_and_weights(rows)), np.asarray(squares)


def _column_squares(block: Any, rows: slice) -> tuple[Array, Array]:
    squares = np.einsum("ij,ij->j", block, block) if isinstance(block, np.ndarray) else block.square_sums()
    return _sums_of(block, *ones_and_weights(rows)), squares


def _scatter(block: Any, rows: slice, w: Array) -> tuple[Array, Array]:
    """Return sums over the rows of a tile, in its own precision; what is added up is in double."""
    through = block @ w.astype(block.dtype, copy=False) if isinstance(block, np.ndarray) else block @ w
    sums = _sums_of(block, *ones_and_weights(rows), through)
    return sums, (block.T @ block).astype(np.float64, copy=False)


def _gram(block: Any, rows: slice) -> Array:
    return block.T @ block


def _gram_apply(block: Any, rows: slice, V: Array) -> Array:
    if isinstance(block, np.ndarray):
        return _there_and_back(block, V)[0]
    return block.gram_apply(V)


def _there_and_back(block: Array, V: Array) -> tuple[Array, Array]:
    """Return block'(block V) and block V.

    OpenBLAS is up to a third faster on one form in double precision and with about eight vectors, on the other in
    single with fewer or more (4 to 20 vectors, 300 to 20,000 columns, tiles of 16 to 1024 rows).
    """
    if block.dtype == np.float64 or 4 < V.shape[1] <= 12:
        scores = block @ V
        return block.T @ scores, scores
    scores = V.T @ block.T
    return (scores @ block).T, scores.T


def _gram_apply_and_scores(block: Any, rows: slice, V: Array) -> tuple[Array, Array, Array]:
    if isinstance(block, np.ndarray):
        images, scores = _there_and_back(block, V)
        return images, scores.T @ scores, row_weights(rows) @ block
    scores = np.empty((block.shape[0], V.shape[1]))
    images = block.gram_apply(V, scores)
    return images, scores.T @ scores, row_weights(rows) @ block


def _images_and_squares(block: Any, rows: slice, mean: Array | None, Z: Array, *others: Array) -> tuple[Array, Array]:
    every, m = (Z, *others), Z.shape[1]
    if not isinstance(block, np.ndarray):
        scores = np.empty((block.shape[0], m * len(every)), Z.dtype)
        images = block.gram_apply(np.hstack(every), scores)[:, :m]
        squares = np.einsum("ij,ij->j", scores, scores, dtype=np.float64)
        return images, squares.reshape(-1, m)
    from scipy.linalg import get_blas_funcs

    multiply = get_blas_funcs("gemm" if m > 1 else "gemv", (block,))
    images, squares = np.zeros((block.shape[1], m), block.dtype, order="F"), np.zeros((len(every), m))
    most, rest = (None, 0.0) if mean is None else _in_two(mean, block.dtype)
    shifts, sums = [rest @ V for V in every] if mean is not None else [0.0] * len(every), np.zeros(m)
    for tile in _fused_tiles(block, most):
        for V, shift, total in zip(every[::-1], shifts[::-1], squares[::-1]):  # Z last: its scores are needed once more
            scores = multiply(1.0, tile, V if m > 1 else V[:, 0], **{"trans_a" if m > 1 else "trans": 1}) - shift
            total += np.einsum("i...,i...->...", scores, scores, dtype=np.float64)
        _add_product(multiply, tile, scores, images)
        sums += scores.sum(axis=0, dtype=np.float64)
    if mean is not None:
        images -= np.outer(rest, sums.astype(block.dtype))
    return images, squares


def _in_two(mean: Array, dtype: Any) -> tuple[Array, Array]:
    """Return the mean as the sum of two arrays of this precision.

    To take the first off the data loses no digits, whatever the offset; the second is so small that products may be
    corrected for it.
    """
    most = mean.astype(dtype)
    return most, (mean - most).astype(dtype)


def _fused_tiles(block: Array, shift: Array | None) -> Iterator[Array]:
    """Yield tiles of a block less a shift, transposed (p, rows): in Fortran order, so that BLAS takes them as they are.

    One that is shifted lives in a buffer until the next one is asked for.
    """
    n, p = block.shape
    step = max(FUSED_BYTES // (p * block.itemsize) // FUSED_ROWS, 1) * FUSED_ROWS
    buffer = np.empty((0 if shift is None else min(step, n), p), block.dtype)
    for begin in range(0, n, step):
        tile = block[begin : begin + step]
        if shift is not None:
            tile = np.subtract(tile, shift, out=buffer[: len(tile)])
        yield tile.T


def _add_product(multiply: Any, tile: Array, scores: Array, images: Array) -> None:
    """Add tile @ scores to the images (p, m), in Fortran order, in place."""
    if images.shape[1] > 1:
        multiply(1.0, tile, scores, beta=1.0, c=images, overwrite_c=1)
    else:
        multiply(1.0, tile, scores, beta=1.0, y=images[:, 0], overwrite_y=1)


def _add_in_double(total: Any, part: Any) -> Any:
    """Add images, of either precision, and squares, in double precision."""
    images = total[0] if total[0].dtype == np.float64 else total[0].astype(np.float64)
    images += part[0]
    return images, total[1] + part[1]


def _apply(block: Any, rows: slice, V: Array) -> Array:
    return block @ V


def _apply_transpose(block: Any, rows: slice, U: Array) -> Array:
    if isinstance(block, np.ndarray):
        return (U[rows].T @ block).T  # in Fortran order, which LAPACK works on in place
    return block.T @ U[rows]


def _pick(block: Any, rows: slice, wanted: Array) -> Array:
    """Return some rows of a raw block, as they are stored but dense."""
    picked = block[wanted[(wanted >= rows.start) & (wanted < rows.stop)] - rows.start]  # by index: a copy
    return np.asarray(picked) if isinstance(picked, np.ndarray) else picked.toarray()


def _stack(total: Array, part: Array) -> Array:
    return np.concatenate([total, part])


def _faults(block: Array, rows: slice) -> tuple[Array, Array, Array]:
    """Count NaN and infinite cells, and find the largest deviation from the shift, column by column."""
    nan, inf = np.isnan(block), np.isinf(block)
    return nan.sum(axis=0), inf.sum(axis=0), np.where(nan, 0.0, np.abs(block)).max(axis=0)


def _merge_faults(total: Any, part: Any) -> Any:
    return total[0] + part[0], total[1] + part[1], np.maximum(total[2], part[2])


# What solvers and estimators call.


def whole(X: Centered, instead: str = FEWER) -> Array:
    """Return all of X as one dense float64 array.

    Of data on workers only if it is small: else MemoryError says how large it is, and what to do ``instead``.
    """
    _refuse_copy(X.rows, X.shape[0], instead)
    return X.in_dense_tiles().gather(itself, width=X.shape[1])


def here(rows: Rows) -> Rows:
    """Return the rows, or, of small data on workers, a copy: for what would take one pass after the other."""
    if rows.local or 8 * rows.shape[0] * rows.shape[1] > _most_bytes():
        return rows
    return MemoryRows(rows.gather(itself, width=rows.shape[1], dtype=rows.dtype), names=rows.names)


def _most_bytes() -> float:
    return max(COPY_SHARE * budget.available_bytes(), 8 * SHIFT_CELLS)


def _refuse_copy(rows: Rows, n: int, instead: str) -> None:
    """Raise MemoryError if n of these rows live on workers, and would take much of the memory here."""
    if rows.local or (size := 8 * n * rows.shape[1]) <= (most := _most_bytes()):
        return
    raise MemoryError(
        f"{n} rows of {rows.shape[1]} columns live on workers. A copy of them here would take {size / 2**20:.0f} MiB, "
        f"but {most / 2**20:.0f} MiB at most may go into one. {instead}"
    )


def take(X: Centered, wanted: Array) -> Array:
    """Return the given rows of X, sorted, as a dense float64 array; not of an X that is `Centered.changed`."""
    if X.changes:
        raise NotImplementedError("Rows of changed tiles cannot be taken one by one.")
    wanted = np.unique(wanted)
    _refuse_copy(X.rows, len(wanted), FEWER)
    blocks = np.unique(np.searchsorted(X.rows.offsets, wanted, side="right") - 1)
    picked: Array = X.rows.reduce(_pick, wanted, blocks=blocks.tolist(), combine=_stack)
    out = picked if picked.dtype == np.float64 else np.empty(picked.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        return centre(picked, X.mean, X.factor, out)


def shift(rows: Rows) -> Array:
    """Return the mean of the first rows: a point near the mean to take moments about.

    It is remembered, because to ask a cluster for a few rows takes as long as to ask for a sum.
    """
    if rows in _shifts:
        return _shifts[rows]
    n = min(max(round(SHIFT_SHARE * rows.shape[0]), SHIFT_LEAST), SHIFT_ROWS, max(SHIFT_CELLS // rows.shape[1], 1))
    n = min(n, rows.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        first = (
            np.asarray(rows.block(0)[:n], np.float64) if _first_is_here(rows, n) else take(Centered(rows), np.arange(n))
        )
        # About the first row: a plain mean of numbers near 1e10 costs digits. Differences may overflow, shares do not.
        near = first[0] + (first - first[0]).mean(axis=0)
        near = np.where(np.isfinite(near), near, (first / n).sum(axis=0))
    _shifts[rows] = np.nan_to_num(near, nan=0.0, posinf=0.0, neginf=0.0)
    return _shifts[rows]


def _first_is_here(rows: Rows, n: int) -> bool:
    return rows.local and not rows.sparse and bool(rows.offsets[1] >= n)


_shifts: WeakKeyDictionary[Rows, Array] = WeakKeyDictionary()


def moments(
    rows: Rows,
    *,
    center: bool = True,
    factor: Array | None = None,
    by_column: bool = False,
    scatter: bool = False,
    about: Array | None = None,
    dense_tiles: bool = False,
    second: bool = False,
) -> Moments:
    """Return mean and squared deviations of X times ``factor``, in one pass about a shift.

    ``mean`` is in the units of X, squares and signature are in those of X times ``factor``. If the shift proves too
    far from the mean, or the mean too large for the implicit centring of sparse data, a second, safe pass is made.
    With ``center=False`` the squares are about zero and the mean returned is zero. Numbers that are not finite come
    out as such: `column_faults` says where they are.
    """
    n, p = rows.shape
    if about is None:
        about = shift(rows) if center else np.zeros(p)
    X = Centered(rows, about, factor, dense_tiles=dense_tiles)
    times = 1.0 if factor is None else factor
    product, kind = None, {"dense_tiles": dense_tiles}
    with np.errstate(over="ignore", invalid="ignore"):
        if scatter:
            (sums, weighted, product), squares = X.reduce(_scatter, trial_vector(p), tile_rows=X.gram_rows())
        else:
            (sums, weighted), squares = X.reduce(_column_squares if by_column else _sums)
        if not center:
            return Moments.of(n, about, times, weighted, squares, product, **kind)
        distance = sums / n  # from the shift to the mean, times factor
        mean = about + distance / times
        lost = n * distance**2
        squares = squares - (np.outer(n * distance, distance) if scatter else lost if by_column else lost.sum())
        # About the mean as it was rounded, which is what later passes subtract.
        moved = (mean - about) * times
        weighted = weighted - total_weight(n) * moved
        if product is not None:
            product = product - n * distance * (distance @ trial_vector(p))
        found = Moments.of(n, mean, times, weighted, squares, product, **kind)
        rounded = distance - moved
        if n * float(rounded @ rounded) > COARSE * found.total:
            squares = squares + (
                np.outer(n * rounded, rounded) if scatter else n * rounded**2 if by_column else n * (rounded @ rounded)
            )
            if product is not None:
                product = product + n * rounded * (rounded @ trial_vector(p))
            found = Moments.of(n, mean, times, weighted, squares, product, **kind)
        if not (np.isfinite(mean).all() and np.isfinite(found.total)):
            return found
        again: dict[str, Any] = {}
        if np.any(lost > SHIFT_TOLERANCE**2 * found.spread) and not np.array_equal(mean, about):
            again["about"] = mean
        if rows.sparse and not dense_tiles:
            dwarfed = n * (mean * times) ** 2 > SHIFT_TOLERANCE**2 * found.spread
            if np.any(dwarfed):
                constant = _constant(rows, np.flatnonzero(dwarfed)) if found.squares is not None else {}
                if len(constant) == np.count_nonzero(dwarfed):
                    return _without_deviations(found, constant)
                again["dense_tiles"] = True
    if again and not second:
        again = {"about": about} | again
        how: dict[str, Any] = {"by_column": by_column, "scatter": scatter}
        return moments(rows, factor=factor, second=True, **how, **again)
    return found


def _ends(block: Any, rows: slice, columns: Array) -> tuple[Array, Array]:
    some = block[:, columns].toarray()
    return some.min(axis=0), some.max(axis=0)


def _merge_ends(total: Any, part: Any) -> Any:
    return np.minimum(total[0], part[0]), np.maximum(total[1], part[1])


def _constant(rows: Rows, columns: Array) -> dict[int, float]:
    """Return the value of those of some columns of sparse data that are constant; of many, of none."""
    if len(columns) > MOST_CONSTANT:
        return {}
    low, high = rows.reduce(_ends, columns, combine=_merge_ends)
    return {int(j): float(a) for j, a, b in zip(columns, low, high) if a == b}


def _without_deviations(found: Moments, constant: dict[int, float]) -> Moments:
    """Return the moments of columns that are constant as they are: implicit centring leaves rounding of them."""
    those = list(constant)
    mean, sums, squares = found.mean.copy(), found.signature.sums.copy(), np.array(found.squares)
    mean[those], sums[those], squares[those] = list(constant.values()), 0.0, 0.0
    how: dict[str, Any] = {"mean": mean, "squares": squares, "total": float(squares.sum())}
    how["signature"] = replace(found.signature, sums=sums)
    if found.scatter is not None and found.discrepancy is not None:
        S, off = found.scatter.copy(), found.discrepancy.copy()
        S[those], S[:, those], off[those] = 0.0, 0.0, 0.0
        how |= {"scatter": S, "discrepancy": off}
    return replace(found, **how)


def _weighted_sums(block: Any, rows: slice) -> Array:
    return row_weights(rows) @ block


def weighted_sums(X: Centered) -> Array:
    """Return the weighted sums (p,) of the signature of X, in one pass."""
    return X.reduce(_weighted_sums)


def signature(rows: Rows) -> Signature:
    """Return a signature of everything in X: its mean, deviations from it, and which cells are missing."""
    found = moments(rows, by_column=True)
    if np.isfinite(found.total) and found.squares is not None:
        return found.signature.and_of(Signature.of_mean(found.mean, found.squares, found.count))
    # Some cells are missing, or too large to be squared.
    n = rows.shape[0]
    exponent = np.frexp(column_faults(rows)[2])[1]
    unit = np.ldexp(1.0, -np.clip(exponent, -1000, 1000))
    about = shift(rows)
    weighted, places, squares = Centered(rows, about, unit, dense_tiles=True).reduce(_observed_weights)
    cells = _with_places(Signature.about(about * unit, weighted, squares, n), places, n)
    return cells.and_of(Signature.of_mean(about * unit, squares, n))


def _observed_weights(block: Array, rows: slice) -> tuple[Array, Array, Array]:
    observed, weights = ~np.isnan(block), row_weights(rows)
    filled = np.where(observed, block, 0.0)
    return weights @ filled, weights @ observed, np.einsum("ij,ij->j", filled, filled)


def column_faults(rows: Rows, *, center: bool = True) -> tuple[Array, Array, Array]:
    """Return, by column: how many NaN, how many infinite cells, and the largest distance from a shift (or from 0)."""
    dense = Centered(rows, shift(rows) if center else None, dense_tiles=True)
    return dense.reduce(_faults, combine=_merge_faults)


def dense_enough(X: Centered) -> Centered:
    """Return X, set to make sparse blocks dense tile by tile if their mean is too large for implicit centring."""
    if not X.rows.sparse or X.mean is None:
        return X
    return X.in_dense_tiles() if moments(X.rows, by_column=True).dense_tiles else X


def apply(X: Centered, V: Array, dtype: Any = np.float64) -> Any:
    """Return X V, (n, k), in the kind of X."""
    return X.map(_apply, V.astype(np.float32) if X.single else V, width=V.shape[1], dtype=dtype)


def scores(X: Centered, V: Array, dtype: Any = np.float64) -> Array:
    """Return X V, (n, k), as a NumPy array here."""
    return X.gather(_apply, V.astype(np.float32) if X.single else V, width=V.shape[1], dtype=dtype)


def apply_transpose(X: Centered, U: Array) -> Array:
    """Return X' U, (p, k)."""
    rows = max(X.tile_rows(U.shape[1]), min(SUMMED_ROWS, SUMMED_BYTES // (8 * max(X.rows.width, 1))))
    return X.reduce(_apply_transpose, U.astype(np.float32) if X.single else U, tile_rows=rows)


def gram_apply(X: Centered, V: Array) -> Array:
    """Return X'(X V), (p, k), in one pass; the mean of X must be that of its rows, or none."""
    V = V.astype(np.float32) if X.single else V
    return X.reduce(_gram_apply, V, tile_rows=X.tile_rows(V.shape[1]))


def images_and_squares(X: Centered, Z: Array, *others: Array) -> tuple[Array, Array]:
    """Return X'(XZ), (p, m), and the squares of the columns of XZ, and of XD for each other D, (1 + others, m).

    That is one pass. Of an X in single precision products are in single, and so are sums over the rows of a block; sums
    over blocks are in double.
    """
    X, mean, factor = X.apart()
    every = [np.asfortranarray(V * factor, np.float32 if X.single else np.float64) for V in (Z, *others)]
    images, squares = X.reduce(_images_and_squares, mean, *every, tile_rows=GRAM_ROWS, combine=_add_in_double)
    return images.astype(np.float64, copy=False) * factor, squares


def gram_apply_and_scores(X: Centered, V: Array) -> tuple[Array, Array, Array]:
    """Return X'(XV), (p, k), (XV)'(XV), (k, k), and the weighted sums (p,) of the signature of X, in one pass."""
    return X.reduce(_gram_apply_and_scores, V, tile_rows=X.tile_rows(V.shape[1]))


def scatter(X: Centered) -> Array:
    """Return X'X, (p, p)."""
    return X.reduce(_gram, tile_rows=X.gram_rows())


def row_gram(X: Centered) -> Array:
    """Return X X', (n, n): of an array here by tiles of columns, of others by pairs of blocks."""
    X = X.on(here(X.rows))
    if in_columns(X):
        return row_gram_of_columns(X)[0]
    out = np.empty((X.shape[0],) * 2)
    last = len(X.rows.offsets) - 1
    implicit = X.rows.sparse and not X.dense_tiles
    for j in range(last):
        rows = X.rows.rows(j)
        block = X.implicit(X.rows.block(j)) if implicit else take(X, np.arange(rows.start, rows.stop))
        below = X.reduce(_apply_block, block, blocks=range(j, last), combine=_stack, tile_rows=GRAM_ROWS)
        out[rows.start :, rows] = below
        out[rows, rows.start :] = below.T
    return out


def in_columns(X: Centered) -> bool:
    """Tell whether columns of X can be had as rows can: X is an array here."""
    return _array(X) is not None


def _array(X: Centered) -> MemoryRows | None:
    return X.rows if isinstance(X.rows, MemoryRows) and not (X.rows.changeable or X.changes) else None


def row_gram_of_columns(X: Centered, *, single: bool = False) -> tuple[Array, float]:
    """Return XX' of an array, summed over tiles of columns, and how far it was found to be off.

    Of a symmetric product BLAS makes one half. ``single``: products of a tile are in single precision, sums over tiles
    in double; the error is that of XX'w, w = `trial_vector`, times the side's square root: about a Frobenius norm.
    """
    from scipy.linalg.blas import dsyrk, ssyrk

    rows, (n, p) = _array(X), X.shape
    if rows is None:
        raise TypeError("Columns are those of an array here.")
    dtype, syrk = (np.float32, ssyrk) if single else (np.float64, dsyrk)
    step = max(COLUMNS_BYTES // (8 * n), LEAST_COLUMNS)
    out, buffer = np.zeros((n, n), order="F"), np.empty((n, min(step, p)), dtype)
    w: Array = trial_vector(n).astype(dtype)
    through: Array = np.zeros(n)
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, p, step):
            some = slice(begin, begin + step)
            mean, factor = (None if x is None else x[some] for x in (X.mean, X.factor))
            part = rows.columns(some)
            tile = centre(part, mean, factor, buffer if part.shape == buffer.shape else np.empty(part.shape, dtype))
            if single:
                out += syrk(1.0, tile.T, trans=1, lower=1)
                through += tile @ (w @ tile)
            else:
                syrk(1.0, tile.T, beta=1.0, c=out, trans=1, lower=1, overwrite_c=1)
    out = np.tril(out) + np.tril(out, -1).T
    return out, float(np.linalg.norm(out @ w - through) / np.linalg.norm(w) * np.sqrt(n)) if single else 0.0


def _apply_block(block: Any, rows: slice, other: Array) -> Array:
    return block @ other.T if isinstance(block, np.ndarray) else block.cross(other)


# Where cells are missing.


@dataclass(frozen=True)
class ObservedMoments:
    """Counts, means and squared deviations of the observed cells of X, rows counted by their weights."""

    total: float  # sum of the weights of all rows
    counts: Array  # (p,) of the rows that have a column
    mean: Array  # (p,)
    squares: Array  # (p,)
    signature: Signature  # (2, p) of (X - mean) * factor where it is observed, and of where that is

    @property
    def cells(self) -> float:
        """How many cells are observed."""
        return float(self.counts.sum())

    @property
    def variance(self) -> float:
        """The mean over columns of their variances, divisor n."""
        return float(np.mean(self.squares / np.where(self.counts > 0, self.counts, 1.0)))


def _has_nan(block: Any, rows: slice) -> Array:
    cells = block if isinstance(block, np.ndarray) else block.data
    # The minimum of cells of which one is NaN is NaN; no array of truth values is made.
    return np.asarray(int(cells.size > 0 and cells.dtype.kind == "f" and bool(np.isnan(cells.min()))))


def _has_nan_and_mean(block: Any, rows: slice) -> tuple[Array, int, Array]:
    with np.errstate(over="ignore", invalid="ignore"):
        return _has_nan(block, rows), block.shape[0], np.asarray(block.mean(axis=0, dtype=np.float64)).reshape(-1)


def _merge_means(total: Any, part: Any) -> Any:
    n, m = total[1], part[1]
    with np.errstate(over="ignore", invalid="ignore"):
        return total[0] + part[0], n + m, total[2] + (part[2] - total[2]) * (m / (n + m))


def has_nan(rows: Rows) -> bool:
    """Tell whether a cell is missing. Of data on workers the same pass finds the mean, which is the best `shift`."""
    if rows.local:
        return bool(rows.reduce(_has_nan))
    missing, _, mean = rows.reduce(_has_nan_and_mean, combine=_merge_means)
    if np.isfinite(mean).all():
        _shifts[rows] = mean
    return bool(missing)


def _observed_sums(block: Array, rows: slice, weight: Array | None) -> tuple[Array, Array, Array, Array]:
    weights = np.ones((3, len(block)))  # of each row, of the signature, and none
    weights[0] = 1.0 if weight is None else weight[rows]
    weights[1] = row_weights(rows)
    observed = ~np.isnan(block)
    filled = np.where(observed, block, 0.0)
    return np.asarray(weights[0].sum()), weights @ observed, weights @ filled, weights @ filled**2


def observed_moments(rows: Rows, weight: Array | None = None, factor: float | Array = 1.0) -> ObservedMoments:
    """Return moments of the observed cells of X, squares in the units of X times ``factor``, in two passes.

    The first finds the mean, the second deviations from it.
    """
    n, p = rows.shape
    mean = shift(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(2):
            X = Centered(rows, mean, np.full(p, factor), dense_tiles=True)
            total, counts, sums, squares = X.reduce(_observed_sums, weight)
            away = sums[0] / np.where(counts[0] > 0, counts[0], 1.0)
            before, mean = mean, mean + away / factor
        moved = (mean - before) * factor
        cells = Signature.about(mean * factor, sums[1] - counts[1] * moved, squares[2] + n * moved**2, n)
        signature = _with_places(cells, counts[1], n)
        return ObservedMoments(float(total), counts[0], mean, squares[0] - counts[0] * away**2, signature)


def _with_places(cells: Signature, places: Array, n: int) -> Signature:
    """Return a signature (2, p) of cells and of where they are, given the weights of the rows that have a column."""
    where = Signature.about(np.zeros(len(places)), places, float(n), n)
    return Signature(np.stack([cells.sums, where.sums]), np.stack([cells.slack, where.slack]))


def observed_sums(X: Centered) -> Array:
    """Return the weighted sums (2, p) of the signature of data with missing cells, in one pass."""
    weighted, places, _ = X.in_dense_tiles().reduce(_observed_weights)
    return np.stack([weighted, places])
