"""Random matrices with known components: spikes, slow decay, planted supports, gross errors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from princomp.datasets.base import Dataset, Floats, RandomState, at_least, not_negative


@dataclass(frozen=True, eq=False, repr=False)
class Spiked(Dataset):
    """A few strong directions in white noise (`make_spiked`)."""

    X: Floats  # (n_samples, n_features)
    components: Floats  # (rank, n_features), leading eigenvectors of the true covariance
    variances: Floats  # (rank,), their eigenvalues, noise included
    noise_variance: float  # every other eigenvalue
    mean: Floats  # (n_features,)


def make_spiked(
    n_samples: int = 1000,
    n_features: int = 200,
    *,
    rank: int = 60,
    strengths: Sequence[float] = (5.0, 0.5),
    noise: float = 1.0,
    offset: float = 0.0,
    random_state: RandomState = 0,
) -> Spiked:
    """Draw rows from a Gaussian whose covariance is `rank` spikes plus white noise.

    X = F (G * strengths[:, None]) + noise * E + offset, where F (n, rank), G (rank, p) and E (n, p) are standard
    normal, drawn in this order.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    rank : int, default=60
        Number of spikes, cut to `n_features`.
    strengths : sequence of floats, default=(5.0, 0.5)
        Two numbers: first and last strength, equally spaced between them. Otherwise one number per spike.
    noise : float, default=1.0
        Standard deviation of the white noise. With 0, X has rank `rank` exactly.
    offset : float, default=0.0
        Added to every cell: a large one is a test of centring.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    Spiked
        `X`, and the truth of the distribution it was drawn from: `components`, `variances`, `noise_variance`, `mean`.

    Examples
    --------
    >>> from princomp.datasets import make_spiked
    >>> spiked = make_spiked(500, 20, rank=3, strengths=(4, 2), random_state=0)
    >>> spiked.X.shape, spiked.components.shape
    ((500, 20), (3, 20))
    >>> bool(spiked.variances[0] > spiked.variances[2] > spiked.noise_variance)
    True
    """
    at_least(1, n_samples=n_samples, n_features=n_features, rank=rank)
    not_negative(noise=noise)
    rank = min(rank, n_features)
    spread = np.array(strengths, dtype=np.float64)
    if len(spread) == 2:
        spread = np.linspace(spread[0], spread[1], rank)
    if len(spread) != rank:
        raise ValueError(f"strengths: give 2 numbers or one per spike ({rank}), got {len(spread)}")
    rng = np.random.default_rng(random_state)
    scores = rng.standard_normal((n_samples, rank))
    loadings = rng.standard_normal((rank, n_features)) * spread[:, None]
    X = scores @ loadings
    X += noise * rng.standard_normal((n_samples, n_features))
    X += offset
    _, singular_values, components = np.linalg.svd(loadings, full_matrices=False)
    return Spiked(
        X=X,
        components=components,
        variances=singular_values**2 + noise**2,
        noise_variance=float(noise) ** 2,
        mean=np.full(n_features, float(offset)),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Decay(Dataset):
    """A matrix with prescribed singular values (`make_decay`)."""

    X: Floats  # (n_samples, n_features), columns of mean 0
    components: Floats  # (r, n_features), r = min(n_samples - 1, n_features)
    singular_values: Floats  # (r,)


def make_decay(
    n_samples: int = 200, n_features: int = 50, *, power: float = 0.5, random_state: RandomState = 0
) -> Decay:
    """Make a matrix whose singular values fall slowly, as i^-power, with random directions.

    X = U diag(1, 2^-power, 3^-power, ...) V', with U and V random and orthonormal, and U orthogonal to the constant
    vector, so that centring changes nothing and the answer of PCA is known exactly. A small `power` is hard for
    iterative solvers: there is no gap to find.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    power : float, default=0.5
        Speed of the decay; 0 is a flat spectrum.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    Decay
        `X`, `components` and `singular_values`, which are those of X itself.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.datasets import make_decay
    >>> decay = make_decay(30, 8, power=0.5)
    >>> np.linalg.svd(decay.X, compute_uv=False)[:4].round(3).tolist()
    [1.0, 0.707, 0.577, 0.5]
    """
    at_least(2, n_samples=n_samples)
    at_least(1, n_features=n_features)
    not_negative(power=power)
    rng = np.random.default_rng(random_state)
    r = min(n_samples - 1, n_features)
    left = rng.standard_normal((n_samples, r))
    left = np.linalg.qr(left - left.mean(axis=0))[0]
    right = np.linalg.qr(rng.standard_normal((n_features, r)))[0]
    singular_values = np.arange(1, r + 1, dtype=float) ** -power
    return Decay(
        X=np.ascontiguousarray((left * singular_values) @ right.T),
        components=np.ascontiguousarray(right.T),
        singular_values=singular_values,
    )


@dataclass(frozen=True, eq=False, repr=False)
class SparseComponents(Dataset):
    """Components with few non-zero loadings, in white noise (`make_sparse_components`)."""

    X: Floats  # (n_samples, n_features)
    components: Floats  # (n_components, n_features), unit rows with disjoint supports
    supports: tuple[tuple[int, ...], ...]  # columns used by each component
    variances: Floats  # (n_components,), true variance along each, noise included


def make_sparse_components(
    n_samples: int = 500,
    n_features: int = 1000,
    *,
    n_components: int = 10,
    nonzeros: int = 30,
    strengths: tuple[float, float] = (12.0, 6.0),
    noise: float = 1.0,
    random_state: RandomState = 0,
) -> SparseComponents:
    """Plant components that use `nonzeros` columns each, and add white noise.

    Component j has entries +-1/sqrt(nonzeros) on columns j*nonzeros ... (j+1)*nonzeros - 1;
    X = (F * strengths) @ components + noise * E with F and E standard normal.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    n_components, nonzeros : int
        Number of components, and of columns that each uses; their product is at most `n_features`.
    strengths : (float, float), default=(12.0, 6.0)
        Standard deviation of the scores of the first and the last component, equally spaced.
    noise : float, default=1.0
        Standard deviation of the white noise.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    SparseComponents
        `X`, and the truth: `components`, `supports`, `variances`.

    Examples
    --------
    >>> from princomp.datasets import make_sparse_components
    >>> planted = make_sparse_components(100, 40, n_components=2, nonzeros=3)
    >>> planted.supports
    ((0, 1, 2), (3, 4, 5))
    >>> (planted.components != 0).sum(axis=1).tolist()
    [3, 3]
    """
    at_least(1, n_samples=n_samples, n_components=n_components, nonzeros=nonzeros)
    at_least(n_components * nonzeros, n_features=n_features)
    not_negative(noise=noise)
    rng = np.random.default_rng(random_state)
    supports = np.arange(n_components * nonzeros).reshape(n_components, nonzeros)
    components = np.zeros((n_components, n_features))
    signs = rng.choice([-1.0, 1.0], size=supports.shape)
    np.put_along_axis(components, supports, signs / np.sqrt(nonzeros), axis=1)
    spread = np.linspace(*strengths, n_components)
    X = (rng.standard_normal((n_samples, n_components)) * spread) @ components
    X += noise * rng.standard_normal((n_samples, n_features))
    return SparseComponents(
        X=X,
        components=components,
        supports=tuple(tuple(row) for row in supports.tolist()),
        variances=spread**2 + noise**2,
    )


@dataclass(frozen=True, eq=False, repr=False)
class LowRankPlusSparse(Dataset):
    """A low-rank matrix with a few gross errors (`make_low_rank_plus_sparse`)."""

    X: Floats  # (n_samples, n_features) = low_rank + sparse + noise
    low_rank: Floats  # (n_samples, n_features)
    sparse: Floats  # (n_samples, n_features), zero but for the corrupted cells
    rank: int


def make_low_rank_plus_sparse(
    n_samples: int = 200,
    n_features: int | None = None,
    *,
    rank: int | None = None,
    share: float = 0.05,
    magnitude: float = 1.0,
    noise: float = 0.0,
    random_state: RandomState = 0,
) -> LowRankPlusSparse:
    """Add large errors of random sign to a few cells of a low-rank matrix.

    X = A B' + S, with A (n, rank) standard normal / sqrt(n), B (p, rank) standard normal / sqrt(p), and S = +-magnitude
    on a random `share` of the cells: the setting of Candes, Li, Ma and Wright (2011), Robust principal component
    analysis?, where L = A B' can be recovered exactly although the errors are larger than its entries.

    Parameters
    ----------
    n_samples : int, default=200
        Rows of X.
    n_features : int or None
        Columns of X; None: as many as rows.
    rank : int or None
        Rank of L; None: 5% of the smaller side, at least 1.
    share : float, default=0.05
        Share of the cells that are corrupted, 0 to 1.
    magnitude : float, default=1.0
        Size of each error.
    noise : float, default=0.0
        Standard deviation of white noise on all cells.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    LowRankPlusSparse
        `X`, and the truth: `low_rank`, `sparse`, `rank`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.datasets import make_low_rank_plus_sparse
    >>> mixed = make_low_rank_plus_sparse(100)
    >>> mixed.rank, int(np.count_nonzero(mixed.sparse))
    (5, 500)
    """
    n_features = n_samples if n_features is None else n_features
    at_least(1, n_samples=n_samples, n_features=n_features)
    smaller = min(n_samples, n_features)
    rank = max(1, round(0.05 * smaller)) if rank is None else rank
    if not 1 <= rank <= smaller:
        raise ValueError(f"rank must be 1 to {smaller}, got {rank}")
    if not 0 <= share <= 1:
        raise ValueError(f"share must be 0 to 1, got {share}")
    not_negative(magnitude=magnitude, noise=noise)
    rng = np.random.default_rng(random_state)
    left = rng.standard_normal((n_samples, rank)) / np.sqrt(n_samples)
    right = rng.standard_normal((n_features, rank)) / np.sqrt(n_features)
    low_rank = left @ right.T
    sparse = np.zeros(n_samples * n_features)
    cells = rng.choice(sparse.size, size=round(share * sparse.size), replace=False)
    sparse[cells] = magnitude * rng.choice([-1.0, 1.0], size=cells.size)
    sparse = sparse.reshape(low_rank.shape)
    X = low_rank + sparse
    if noise:
        X += noise * rng.standard_normal(X.shape)
    return LowRankPlusSparse(X=X, low_rank=low_rank, sparse=sparse, rank=rank)
