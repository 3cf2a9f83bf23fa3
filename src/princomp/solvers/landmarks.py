"""Landmarks: which rows of a kernel matrix stand for all, for Nystroem's features.

Selectors are small objects; ``select(K, rng)`` returns row numbers, at the most ``rank`` of them. `PivotedCholesky` is
randomly pivoted Cholesky factorisation (Chen, Epperly, Tropp & Webber, Comm. Pure Appl. Math. 2025), accelerated by
rejection sampling (Epperly, Tropp & Webber, arXiv 2410.03969). A row is drawn with the probability of what the rows
before it leave of its diagonal entry. Candidates are drawn many at a time, from probabilities that are then too large,
and rejected in the proportion in which they are: so the law of the answer is that of rows drawn one by one. It asks for
(rank + 1) n entries of K, and those between candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from princomp._typing import Array
from princomp.solvers.kernel_matrix import KernelMatrix

# Candidates at a time: a tenth of the rank, within these.
FEWEST, MOST = 10, 150
EXHAUSTED = 1e-15  # of the trace: what is left then is rounding


class Selector(Protocol):
    """What chooses landmarks."""

    def select(self, K: KernelMatrix, rng: np.random.Generator) -> Array:
        """Return row numbers."""


@dataclass(frozen=True)
class Fixed:
    """The rows with these numbers."""

    numbers: Array

    def select(self, K: KernelMatrix, rng: np.random.Generator) -> Array:
        """Return them."""
        return self.among(K.n)

    def among(self, n: int) -> Array:
        """Return them, each once, if they are numbers of n rows."""
        numbers = np.asarray(self.numbers)
        if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu":
            raise ValueError("landmarks must be row numbers, or rows with as many columns as X has.")
        if numbers.min() < 0 or numbers.max() >= n:
            raise ValueError(
                f"landmarks must be row numbers from 0 to {n - 1}, got {numbers.min()} to {numbers.max()}."
            )
        return np.unique(numbers)


@dataclass(frozen=True)
class Uniform:
    """Rows at random, each as likely as any other."""

    rank: int

    def select(self, K: KernelMatrix, rng: np.random.Generator) -> Array:
        """Return their numbers."""
        return np.sort(rng.choice(K.n, min(self.rank, K.n), replace=False))


@dataclass(frozen=True)
class PivotedCholesky:
    """Rows that are unlike those chosen before, by randomly pivoted Cholesky factorisation."""

    rank: int
    block: int | None = None  # candidates at a time

    def select(self, K: KernelMatrix, rng: np.random.Generator) -> Array:
        """Return their numbers, in the order in which they were chosen; fewer than ``rank`` where K is exhausted.

        There is one at the least: of a matrix of zeros any row does.
        """
        numbers = pivoted_cholesky(K, self.rank, rng, block=self.block)[0]
        return numbers if len(numbers) else np.zeros(1, int)


def pivoted_cholesky(
    K: KernelMatrix, rank: int, rng: np.random.Generator, *, block: int | None = None
) -> tuple[Array, Array]:
    """Return row numbers (r,), and a factor G (r, n) with G'G = K^, K projected on these rows."""
    rank = min(rank, K.n)
    block = block or min(max(rank // 10, FEWEST), MOST)
    left = K.diagonal.copy()
    least = EXHAUSTED * K.trace
    numbers, G, done = np.zeros(rank, int), np.zeros((rank, K.n)), 0
    while done < rank and left.sum() > least:
        candidates = rng.choice(K.n, block, p=left / left.sum())
        rest = K.block(candidates) - G[:done, candidates].T @ G[:done, candidates]
        accepted, L = _rejected(rest, rank - done, rng, least / K.n)
        if not len(accepted):
            left[candidates[rest.diagonal() <= least / K.n]] = 0.0  # rounding had left something of them
            continue
        chosen, now = candidates[accepted], slice(done, done + len(accepted))
        rows = K.rows(chosen) - G[:done, chosen].T @ G[:done]
        G[now] = _solve(L, rows)
        numbers[now] = chosen
        left = np.maximum(left - np.einsum("ij,ij->j", G[now], G[now]), 0.0)
        left[chosen] = 0.0
        done = now.stop
    return numbers[:done], G[:done]


def _rejected(rest: Array, room: int, rng: np.random.Generator, least: float) -> tuple[Array, Array]:
    """Return which candidates are accepted, and the Cholesky factor of what is left of K between them.

    ``rest`` (b, b) is what rows chosen before leave of K between the candidates. A candidate was drawn in proportion to
    its diagonal entry, and is accepted with the share of it that those accepted before it have left.
    """
    rest = rest.copy()
    before = rest.diagonal().copy()
    accepted: list[int] = []
    L = np.zeros_like(rest)
    for j in range(len(rest)):
        if len(accepted) == room:
            break
        if rest[j, j] > least and rng.random() * before[j] < rest[j, j]:
            L[j:, j] = rest[j:, j] / np.sqrt(rest[j, j])
            rest[j + 1 :, j + 1 :] -= np.outer(L[j + 1 :, j], L[j + 1 :, j])
            accepted.append(j)
    chosen = np.array(accepted, int)
    return chosen, L[np.ix_(chosen, chosen)]


def _solve(L: Array, rows: Array) -> Array:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(L, rows, lower=True, check_finite=False, overwrite_b=True))
