"""K, the kernel matrix of training rows, as all solvers see it: its diagonal, some of its rows, products with it.

What is decomposed is (I - uu') K (I - uu'), u of length 1. With u = 1 / sqrt(n) that is the centred matrix, K less the
means of its rows and columns plus the mean of all; for a kernel that is not centred, u is its trivial eigenvector.

K is kept where memory allows, else its tiles are made anew for each product: then O(n b) numbers are held at a time, b
columns being multiplied. Either way a tile below the diagonal serves for the one above. ``entries`` counts the numbers
that the kernel was asked for.
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

# A product of 6000 rows of 20 with 8 columns, in tiles of 256, 512, 1024 and 2048: 0.10, 0.12, 0.14 and 0.21 s.
TILE = 256
KEEP_SHARE = 0.4  # of the memory that is left may go into K
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
        Whether to keep K; if not given, where memory allows.
    """

    def __init__(self, kernel: Kernel, X: Any, about: Array | None = None, *, keep: bool | None = None) -> None:
        self.kernel, self.n, self.entries = kernel, X.shape[0], 0
        self.points = kernel.points(X.astype(np.float64, copy=False), about)
        self.psd, self.centred = kernel.psd, kernel.centred
        size = 8.0 * self.n * self.n
        self.keep = size <= KEEP_SHARE * budget.available_bytes() if keep is None else keep
        self._kept: Array | None = None

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
        if self._kept is not None:
            return self._kept[indices]
        P = some(self.points, indices)
        out = np.empty((len(indices), self.n))
        parts = _parts(self.n)

        def fill(part: slice) -> None:
            out[:, part] = self.kernel.between(P, some(self.points, part))

        _each(fill, parts)
        self.entries += out.size
        return out

    def block(self, indices: Array) -> Array:
        """Return K between rows of these numbers, (m, m)."""
        if self._kept is not None:
            return self._kept[np.ix_(indices, indices)]
        P = some(self.points, indices)
        self.entries += len(indices) ** 2
        return self.kernel.between(P, P)

    def product(self, V: Array) -> Array:
        """Return K V, (n, b)."""
        if self.keep:
            # Long rows times long rows: BLAS is faster on this form of it than on K V with few columns.
            return (V.T @ self.whole()).T
        out = np.zeros((self.n, V.shape[1]))
        with closing(self._tiles(lambda i, j, tile: (tile @ V[j], None if i == j else tile.T @ V[i]))) as tiles:
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

    def whole(self) -> Array:
        """Return K, which is kept from then on and not to be written to."""
        if self._kept is None:
            budget.require(8.0 * self.n * self.n, f"The {self.n} x {self.n} kernel matrix", FEWER)
            out = np.empty((self.n, self.n))

            def fill(i: slice, j: slice, tile: Array) -> None:
                out[i, j] = tile
                if i != j:
                    out[j, i] = tile.T

            for _ in self._tiles(fill):
                pass
            self._kept, self.keep = out, True
        return self._kept

    def centred_whole(self) -> Array:
        """Return (I - uu') K (I - uu'), (n, n), a fresh array."""
        require_whole(self.n, FEWER)
        u, K = self.trivial, self.whole()
        image = (u @ K)[:, None]
        image -= u[:, None] * ((u @ image) / 2)
        out: Array = K - image * u
        out -= u[:, None] * image.T
        return out

    def _tiles(self, fn: Callable[[slice, slice, Array], Any]) -> Generator[tuple[slice, slice, Any], None, None]:
        """Yield ``fn`` of each tile of K on and below the diagonal, with its rows and columns, in a fixed order."""
        parts = _parts(self.n)
        pairs = [(i, j) for a, i in enumerate(parts) for j in parts[: a + 1]]

        def tile(pair: tuple[slice, slice]) -> tuple[slice, slice, Any]:
            i, j = pair
            return i, j, fn(i, j, self.kernel.between(some(self.points, i), some(self.points, j)))

        self.entries += sum((i.stop - i.start) * (j.stop - j.start) for i, j in pairs)
        yield from ordered_map(tile, pairs)


class GivenMatrix(KernelMatrix):
    """A kernel matrix that is there: "precomputed". Nobody knows whether it is positive semidefinite."""

    def __init__(self, K: Array) -> None:
        self.n, self.entries, self.psd, self.centred, self.keep = len(K), 0, False, True, True
        self._kept = K

    @cached_property
    def diagonal(self) -> Array:
        """The diagonal of K, (n,)."""
        return np.diag(self.whole()).copy()


def require_whole(n: int, instead: str) -> None:
    """Refuse the eigenproblem of a whole matrix if memory is too small for it; ``instead`` says what to do."""
    budget.require(24.0 * n * n, f"The eigenproblem of the {n} x {n} kernel matrix", instead)


def _parts(n: int) -> list[slice]:
    return [slice(begin, min(begin + TILE, n)) for begin in range(0, n, TILE)]


def _each(fn: Callable[[Any], None], items: list[Any]) -> None:
    for _ in ordered_map(fn, items):
        pass
