"""K, the kernel matrix of training rows, as all solvers see it: its diagonal, some of its rows, products with it.

What is decomposed is (I - uu') K (I - uu'), u of length 1. With u = 1 / sqrt(n) that is the centred matrix, K less the
means of its rows and columns plus the mean of all; for a kernel that is not centred, u is its trivial eigenvector.

Tiles on and below the diagonal stand for all of K: one below serves for the one above, while it is in the cache. They
are kept where memory allows: in single precision, in which an iteration may begin, and in double precision if it is
asked for more often than the end of such an iteration does, or the matrix is not large. Else they are made anew for
each product: then O(n b) numbers are held at a time, b columns being multiplied. Small matrices are kept whole.
``entries`` counts the numbers that the kernel was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from functools import cached_property
from typing import Any

import numpy as np

from princomp._threads import ordered_map
from princomp._typing import Array
from princomp.data import budget
from princomp.kernels import Kernel, some

# A tile, in single precision, that stays in the cache of a core, and whose product with 8 columns is small enough for
# BLAS not to copy it first. Products of 8192 rows with 8 columns, tiles of 192, 256, 320, 384 and 512: 0.034, 0.028,
# 0.026, 0.038 and 0.038 s; 0.040 with all of K.
TILE = 320
KEEP_SHARE = 0.4  # of the memory that is left may go into K
SMALL = 1000  # rows up to which K is kept whole, and single precision is not worth it
LARGE = 2**24  # entries: from then on to make them once more takes no longer than to get the memory to keep them
PASSES = 2  # in double precision over a large matrix: more, and it is kept
# What single precision can hold: diagonal entries, and what centring takes out, in units of what it leaves.
SINGLE_SIZES = (1e-20, 1e20)
SINGLE_TAKEN_OUT = 100.0
Precisions = tuple[type, ...]
BOTH: Precisions = (np.float64, np.float32)
FEWER = 'Use approximation="rpcholesky", or fewer rows.'


class KernelMatrix:
    """The matrix K (n, n) of a kernel on training rows.

    Parameters
    ----------
    kernel : Kernel
        It knows the training rows, if it needs to.
    X : (n, p) array or CSR
        The training rows. The matrix has float64 entries, whatever their precision.
    about : (p,) array, optional
        A point near the rows, see `princomp.kernels.Kernel.points`.
    keep : bool, optional
        Whether to keep K; if not given, as memory allows.
    """

    def __init__(self, kernel: Kernel, X: Any, about: Array | None = None, *, keep: bool | None = None) -> None:
        self.kernel, self.n, self.entries = kernel, X.shape[0], 0
        self._at_once = not isinstance(X, np.ndarray)  # products of few sparse rows cost little beside the call
        self.points = kernel.points(X.astype(np.float64, copy=False), about)
        self.psd, self.centred = kernel.psd, kernel.centred
        self.kept = kept_precisions(self.n) if keep is None else BOTH if keep else ()
        self._whole: Array | None = None  # (n, n)
        self._passes = 0  # times that all of it was made
        self._lower: dict[type, Array] = {}  # by precision, its tiles on and below the diagonal, (tiles, TILE, TILE)

    @cached_property
    def trivial(self) -> Array:
        """The vector u (n,), of length 1: what is taken out of K."""
        if self.centred:
            return np.full(self.n, 1.0 / np.sqrt(self.n))
        return np.asarray(self.kernel.trivial(self.points))  # type: ignore[attr-defined]

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of K, (n,)."""
        self.entries += self.n
        return self.kernel.own(self.points)

    @property
    def trace(self) -> float:
        """The sum of the diagonal of K."""
        return float(self.diagonal.sum())

    @cached_property
    def means(self) -> Array:
        """The means of the rows of K, (n,)."""
        return self.product(np.full((self.n, 1), 1.0 / self.n))[:, 0]

    @cached_property
    def taken_out(self) -> float:
        """u'Ku, by which the trace of K is more than that of the centred matrix."""
        if self.centred:
            return float(self.means.sum())
        return float(self.trivial @ self.product(self.trivial[:, None])[:, 0])

    @cached_property
    def size_taken_out(self) -> float:
        """How large the part of K is that centring takes off: u'Ku, or |Ku|, where it may be negative."""
        if self.psd:
            return self.taken_out
        image = self.means * np.sqrt(self.n) if self.centred else self.product(self.trivial[:, None])[:, 0]
        return float(np.linalg.norm(image))

    @property
    def centred_trace(self) -> float:
        """The trace of the centred matrix."""
        return self.trace - self.taken_out

    def rows(self, indices: Array) -> Array:
        """Return rows of K by their numbers, (m, n)."""
        if self._whole is not None:
            return self._whole[indices]
        P = some(self.points, indices)
        out = np.empty((len(indices), self.n))
        parts = _parts(self.n, TILE)

        def fill(part: slice) -> None:
            out[:, part] = self.kernel.between(P, some(self.points, part))

        _each(fill, parts)
        self.entries += out.size
        return out

    def block(self, indices: Array) -> Array:
        """Return K between rows of these numbers, (m, m)."""
        if self._whole is not None:
            return self._whole[np.ix_(indices, indices)]
        P = some(self.points, indices)
        self.entries += len(indices) ** 2
        return self.kernel.between(P, P)

    def product(self, V: Array) -> Array:
        """Return K V, (n, b)."""
        if self._whole is not None or (np.float64 in self.kept and self.n <= SMALL):
            # Long rows times long rows: BLAS is faster on this form of it than on K V with few columns.
            return (V.T @ self.whole()).T
        return self._by_tiles(V, np.float64)

    def product_in_single(self, V: Array) -> Array:
        """Return K V, (n, b), tile by tile in single precision."""
        return self._by_tiles(V, np.float32)

    def _by_tiles(self, V: Array, precision: type) -> Array:
        V = V.astype(precision, copy=False)
        out = np.zeros((self.n, V.shape[1]))
        work = self._tiles(lambda i, j, tile: (tile @ V[j], None if i == j else tile.T @ V[i]), precision)
        with closing(work) as tiles:
            for i, j, (below, above) in tiles:
                out[i] += below
                if above is not None:
                    out[j] += above
        return out

    def project(self, V: Array) -> Array:
        """Return V - u u'V, for V (n, b)."""
        return V - np.outer(self.trivial, self.trivial @ V)

    def centred_product(self, V: Array) -> Array:
        """Return (I - uu') K (I - uu') V, (n, b)."""
        return self.project(self.product(self.project(V)))

    def centred_product_in_single(self, V: Array) -> Array:
        """Return the same but for the rounding of single precision."""
        return self.project(self.product_in_single(self.project(V)))

    @property
    def may_begin_in_single(self) -> bool:
        """Whether single precision can make a beginning, and is kept for it."""
        size, left = self.trace / self.n, self.centred_trace
        sizes = SINGLE_SIZES[0] < size < SINGLE_SIZES[1] and self.taken_out <= SINGLE_TAKEN_OUT * left
        return np.float32 in self.kept and self.n > SMALL and sizes

    def whole(self) -> Array:
        """Return K, which is kept from then on and not to be written to."""
        if self._whole is None:
            budget.require(8.0 * self.n * self.n, f"The {self.n} x {self.n} kernel matrix", FEWER)
            out = np.empty((self.n, self.n))

            def fill(i: slice, j: slice, tile: Array) -> None:
                out[i, j] = tile
                if i != j:
                    out[j, i] = tile.T

            for _ in self._tiles(fill, np.float64, kept=()):
                pass
            self._whole, self._lower = out, {}
        return self._whole

    def centred_whole(self) -> Array:
        """Return (I - uu') K (I - uu'), (n, n), a fresh array."""
        require_whole(self.n, FEWER)
        u, K = self.trivial, self.whole()
        image = (u @ K)[:, None]
        image -= u[:, None] * ((u @ image) / 2)
        out: Array = K - image * u
        out -= u[:, None] * image.T
        return out

    def _tiles(
        self, fn: Callable[[slice, slice, Array], Any], precision: type, kept: Precisions | None = None
    ) -> Generator[tuple[slice, slice, Any], None, None]:
        """Yield ``fn`` of each tile of K on and below the diagonal, with its rows and columns, in a fixed order.

        Tiles that must be made are kept in the precisions of ``kept``, if it is not given those of the matrix.
        """
        parts = _parts(self.n, SMALL if self._at_once and self.n <= SMALL else TILE)
        pairs = [(i, j) for a, i in enumerate(parts) for j in parts[: a + 1]]
        there, wanted = self._lower.get(precision), (self._to_keep() if kept is None else kept)
        new: dict[type, Array] = {}
        if there is None:
            new = {each: np.empty((len(pairs), TILE, TILE), each) for each in wanted if each not in self._lower}

        def of_tile(number: int) -> tuple[slice, slice, Any]:
            i, j = pairs[number]
            inside = number, slice(i.stop - i.start), slice(j.stop - j.start)
            if there is not None:
                return i, j, fn(i, j, there[inside])
            tile = self.kernel.between(some(self.points, i), some(self.points, j))
            with np.errstate(over="ignore"):  # in single precision entries may be infinite: products show it
                for each in new.values():
                    each[inside] = tile
                told: Array = tile.astype(precision, copy=False)
            return i, j, fn(i, j, told)

        yield from ordered_map(of_tile, range(len(pairs)))
        if there is None:
            self.entries += sum((i.stop - i.start) * (j.stop - j.start) for i, j in pairs)
            self._lower |= new
            self._passes += 1

    def _to_keep(self) -> Precisions:
        """Return the precisions in which to keep tiles that are made now."""
        large = self.n**2 > LARGE and self._passes < PASSES
        return tuple(each for each in self.kept if not (large and each is np.float64))


class GivenMatrix(KernelMatrix):
    """A kernel matrix that is there: "precomputed". Nobody knows whether it is positive semidefinite."""

    def __init__(self, K: Array) -> None:
        self.n, self.entries, self.psd, self.centred, self.kept = len(K), 0, False, True, BOTH
        self._whole, self._lower, self._at_once = K, {}, False

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of K, (n,)."""
        return np.diag(self.whole()).copy()


def require_whole(n: int, instead: str) -> None:
    """Refuse the eigenproblem of a whole matrix if memory is too small for it; ``instead`` says what to do."""
    budget.require(24.0 * n * n, f"The eigenproblem of the {n} x {n} kernel matrix", instead)


def kept_precisions(n: int) -> Precisions:
    """Return the precisions in which the matrix of n rows is kept: half of its entries in each."""
    entries = n * (n + TILE) / 2
    if 12.0 * entries < budget.SMALL:
        return BOTH
    most = KEEP_SHARE * budget.available_bytes()
    return BOTH if 12.0 * entries <= most else (np.float32,) if 4.0 * entries <= most else ()


def _parts(n: int, step: int) -> list[slice]:
    return [slice(begin, min(begin + step, n)) for begin in range(0, n, step)]


def _each(fn: Callable[[Any], None], items: list[Any]) -> None:
    for _ in ordered_map(fn, items):
        pass
