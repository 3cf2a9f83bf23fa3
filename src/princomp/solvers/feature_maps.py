"""Feature maps F(x) with F(x)'F(y) near k(x, y), so that kernel PCA is PCA of features, on data of any storage.

Nystroem (Williams & Seeger, NeurIPS 2000): F(x) = k(x, S) W^(-1/2), S some rows, the landmarks, and W = k(S, S). Then
K^ = FF' is K projected on the landmarks, so that K - K^ is positive semidefinite if K is. Centring keeps that order:

    0 <= lambda_j(Kc) - lambda_j(K^c) <= tr(K - K^)

for each eigenvalue, by Weyl's inequalities, and tr(Kc) - tr(K^c) lies there too. What is computed is k(x, S) (W +
shift)^(-1/2): K^ is smaller by that, but stays below K in spite of rounding. For rounding adds E to k(X, S), and e I at
the most to W; and with e < shift the matrix [[K + E (shift - e)^-1 E', k(X, S) + E], [., W + shift]] is positive
semidefinite, so that K^ exceeds K by E E' / (shift - e) only: by eps of the trace, not by its square root, as it may
without the shift where landmarks are alike.

Random Fourier features (Rahimi & Recht, NeurIPS 2007): F(x) = [cos(w'x), sin(w'x)] / sqrt(m) over m random w. For
exp(-gamma |x - y|^2) the w are Gaussian of variance 2 gamma: E cos(w'd) = exp(-variance |d|^2 / 2). For
exp(-gamma |x - y|_1) their entries are Cauchy of scale gamma. Orthogonal ones (Yu et al., NeurIPS 2016), of Gaussian
lengths, differ from the kernel by less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.kernels import Gaussian, Kernel, Laplacian, Points
from princomp.kernels.base import moved

ROUNDING = 1e-12  # of tr(K): by which intervals are widened
SHIFT = 4.0  # units of rounding of W, sqrt(m) eps of its largest eigenvalue, by which its eigenvalues are raised


@dataclass(frozen=True)
class Columns:
    """F(x) = k(x, S), columns of a kernel matrix."""

    kernel: Kernel
    points: Points  # of S, m rows
    about: Array | None  # (p,), what rows are taken about

    @classmethod
    def of(cls, kernel: Kernel, rows: Any, about: Array | None) -> Columns:
        """Return those of some rows (m, p), an array or CSR."""
        return cls(kernel, kernel.points(rows.astype(np.float64, copy=False), about), about)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.kernel.own(self.points))

    def __call__(self, block: Any) -> Array:
        """Return k of rows with all in S, (n, m)."""
        P = self.kernel.points(block.astype(np.float64, copy=False), self.about)
        return self.kernel.between(P, self.points)


@dataclass(frozen=True)
class Nystroem:
    """F(x) = k(x, S) root, for landmarks S."""

    columns: Columns  # of the landmarks
    root: Array  # (m, r), W^(-1/2) on the eigenvectors of W that stand above rounding

    @property
    def width(self) -> int:
        """Number of features."""
        return self.root.shape[1]

    def __call__(self, block: Any) -> Array:
        """Return the features of rows, (n, r)."""
        return self.columns(block) @ self.root

    def rounding(self, coefficients: Array, trace: float) -> Array:
        """Return how long an error (k,) rounding makes in k(X, S) times coefficients (m, k); tr(K) is ``trace``.

        No k(x, s)^2 is more than k(x, x) k(s, s). Landmarks that are alike have large coefficients, which cancel.
        """
        own = np.abs(self.columns.kernel.own(self.columns.points)).sum()
        with np.errstate(over="ignore", invalid="ignore"):  # of a kernel so small or large, which is refused
            length = np.sqrt(abs(trace)) * np.sqrt(own) * np.linalg.norm(coefficients, axis=0)
        return np.asarray(np.finfo(float).eps * length)


def nystroem(columns: Columns) -> Nystroem:
    """Return the feature map of landmarks, as many features as their kernel matrix has rank, and one at the least."""
    values, vectors = np.linalg.eigh(columns.kernel.between(columns.points, columns.points))
    shift = SHIFT * np.sqrt(len(values)) * np.finfo(float).eps * max(float(values[-1]), 0.0)
    kept = values > shift
    if not kept.any():  # landmarks that are nothing to this kernel, as 0 is to the linear one
        return Nystroem(columns, np.zeros((len(values), 1)))
    # Largest first: landmarks that are alike leave fewer features than there are of them.
    root = (vectors[:, kept] / np.sqrt(values[kept] + shift))[:, ::-1]
    return Nystroem(columns, np.ascontiguousarray(root))


@dataclass(frozen=True)
class Fourier:
    """F(x) = [cos(w'x), sin(w'x)] / sqrt(m)."""

    frequencies: Array  # (p, m)
    about: Array | None  # (p,), what rows are taken about

    @property
    def width(self) -> int:
        """Number of features."""
        return 2 * self.frequencies.shape[1]

    def __call__(self, block: Any) -> Array:
        """Return the features of rows, (n, 2 m)."""
        # In double precision before anything is taken off: an angle may be many times a row.
        angles = np.asarray(moved(block.astype(np.float64, copy=False), self.about) @ self.frequencies)
        return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(self.frequencies.shape[1])

    @property
    def basis(self) -> Array:
        """The frequencies as rows, (m, p)."""
        return np.ascontiguousarray(self.frequencies.T)

    def along_mean(self, coefficients: Array, mean: Array) -> Array:
        """Return by frequency (m, k) what it adds to products of coefficients (2 m, k) with the mean feature (2 m,).

        Unlike coefficients, these numbers are the same wherever rows are taken about.
        """
        cosines, sines = np.split(coefficients * mean[:, None], 2)
        return np.asarray(cosines + sines)

    def rounding(self, coefficients: Array, trace: float) -> Array:
        """Return how long an error (k,) rounding makes in features times orthonormal coefficients; tr(K) is n."""
        return np.full(coefficients.shape[1], np.finfo(float).eps * np.sqrt(trace))


def fourier(
    kernel: Kernel, p: int, rank: int, rng: np.random.Generator, about: Array | None = None, *, orthogonal: bool = True
) -> Fourier:
    """Return ``rank`` random features (or one less, if that is odd) of the Gaussian or Laplacian kernel on p columns.

    ``orthogonal`` frequencies are for the Gaussian kernel; those of the other are independent.
    """
    m = max(rank // 2, 1)
    if isinstance(kernel, Gaussian):
        draw = _orthogonal(p, m, rng) if orthogonal else rng.standard_normal((p, m))
        return Fourier(np.sqrt(2 * kernel.gamma) * draw, about)
    if isinstance(kernel, Laplacian):
        return Fourier(kernel.gamma * rng.standard_cauchy((p, m)), about)
    raise ValueError(
        'approximation="fourier" is for the kernels "rbf" and "laplacian". Use "nystroem" or "rpcholesky".'
    )


def _orthogonal(p: int, m: int, rng: np.random.Generator) -> Array:
    """Return m columns (p, m), p at a time orthogonal, each as a Gaussian vector of p entries is alone."""
    blocks = [np.linalg.qr(rng.standard_normal((p, p)))[0] for _ in range(-(-m // p))]
    lengths = np.linalg.norm(rng.standard_normal((p, m)), axis=0)
    return np.hstack(blocks)[:, :m] * lengths


@dataclass(frozen=True)
class Intervals:
    """Where the eigenvalues of the centred kernel matrix lie, for sure, and their shares of its trace."""

    lower: Array  # (k,)
    upper: Array  # (k,)
    ratio_lower: Array  # (k,)
    ratio_upper: Array  # (k,)


def intervals(
    values: Array, total: float, trace: float, left: float, error: float = 0.0, hidden: Array | float = 0.0
) -> Intervals:
    """Return intervals around the eigenvalues of a positive semidefinite kernel.

    ``values`` (k,) are those of K^c and ``total`` is its trace; ``trace`` is that of K, and ``left`` tr(K - K^).
    ``error`` is what rounding may have done to each of these, beside ROUNDING, and ``hidden`` (k,) how much more a
    value may be that counts as 0 because rounding hides it.
    """
    slack = ROUNDING * trace + error
    left = max(left, 0.0) + slack
    lower, upper = np.maximum(values - slack, 0.0), values + hidden + left
    least, most = max(total - slack, 0.0), total + left
    # The share of one value among all grows with it and falls with the others.
    others = np.maximum(least - values - hidden, 0.0)
    ratio_upper = np.divide(upper, upper + others, out=np.ones_like(upper), where=upper > 0)
    ratio_lower = lower / most if most > 0 else np.zeros_like(lower)
    return Intervals(lower, upper, ratio_lower, ratio_upper)
