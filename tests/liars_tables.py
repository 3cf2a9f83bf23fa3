"""The problems of the liars' bench (tests/liars.py): tables, patterns of gaps, small covariances.

Nothing here imports princomp.
"""

import numpy as np

from helpers import data_with_spectrum

# --- tables for PCA -------------------------------------------------------------------------------
# Each is made from a generator of random numbers, and says what PCA is asked: X, k, and center, scale or matrix where
# these differ from the defaults. Whether it is ordinary is measured, not declared.


def _table(X, k, **asked):
    return {"X": X, "k": k, **asked}


def _size(rng, rows=(40, 400), columns=(20, 160)):
    """(n, p), tall, wide or square; every fourth beyond the 500 rows where "auto" turns from svd to eigh."""
    n, p = int(rng.integers(*rows)), int(rng.integers(*columns))
    return (int(rng.integers(510, 700)), p) if rng.random() < 0.25 else (n, p)


def _few(rng, *sizes):
    """k, from 1 to 12, at most a third of the smaller side."""
    return int(rng.integers(1, max(2, min(12, min(sizes) // 3) + 1)))


def _with_variances(rng, n, p, variances):
    return data_with_spectrum(n, p, np.sqrt(variances), seed=rng)


def graded(rng):
    n, p = _size(rng)
    side = min(n - 1, p)
    falls = 10.0 ** -np.linspace(0, rng.uniform(2, 14), side)
    return _table(_with_variances(rng, n, p, falls), _few(rng, n, p))


def _top_and_rest(rng, top):
    """Values, decreasing: these, and hundreds below that often begin right under them."""
    side = int(rng.integers(60, 520))
    return np.r_[top, np.linspace(rng.choice([0.99, 0.95, 0.5]) * top[-1], 0, side - len(top))]


def clustered(rng):
    if rng.random() < 0.3:  # a crowd larger than any block at the top, the rest close below
        times = int(rng.integers(9, 15))
        values = _top_and_rest(rng, 2 - 10.0 ** -rng.uniform(3, 10) * np.arange(times))
        extra = int(rng.integers(0, 100))
        return _table(_reflected(rng, len(values) + extra, len(values), values), times, center=False)
    n, p = _size(rng)
    side, k = min(n - 1, p), _few(rng, n, p)
    levels = np.sort(rng.uniform(0.5, 4, 1 + side // int(rng.integers(2, 15))))[::-1]
    values = np.resize(np.repeat(levels, -(-side // len(levels))), side)
    spread = 10.0 ** -rng.uniform(3, 10)
    return _table(_with_variances(rng, n, p, values * (1 - spread * np.arange(side) / side)), k)


def tied(rng):
    """Multiplicities above any block of vectors a solver may carry; k below, at and above them."""
    times = int(rng.integers(9, 15))
    k = times + int(rng.integers(-3, 4))
    kind = rng.integers(4)
    if kind == 0:  # exact: a diagonal
        values = _top_and_rest(rng, np.full(times, 2.0))
        return _table(np.diag(np.sqrt(values)), k, center=False)
    if kind == 1:  # exact: the same table again and again along the diagonal
        block = rng.standard_normal((int(rng.integers(3, 9)), int(rng.integers(3, 6))))
        return _table(np.kron(np.eye(times), block), k, center=False)
    if kind == 2:  # balanced one-hot columns
        return _table(np.tile(np.eye(times + 6), (int(rng.integers(3, 8)), 1)), k)
    n, p = _size(rng, columns=(40, 160))
    n = max(n, p + 2)
    return _table(_with_variances(rng, n, p, np.r_[[2.0] * times, np.linspace(1.9, 0.1, p - times)]), k)


def giant(rng):
    """One value far above all others, among which those kept are hardly above those left out."""
    if rng.random() < 0.3:
        k = int(rng.integers(2, 21))
        values = np.r_[10.0 ** rng.uniform(4, 13), _top_and_rest(rng, np.ones(k - 1))]
        return _table(np.diag(np.sqrt(values)), k, center=False)
    n, p = _size(rng)
    side, k = min(n - 1, p), _few(rng, n, p)
    edge = min(k + int(rng.integers(0, 3)), side - 1)
    rest = np.r_[np.ones(edge), np.linspace(0.99, 0.0, side - 1 - edge)] * (1 - 1e-7 * np.arange(side - 1))
    values = np.r_[10.0 ** rng.uniform(4, 13), rest]
    if rng.random() < 0.5:
        return _table(np.diag(np.sqrt(values)), k, center=False)
    return _table(_with_variances(rng, n, p, values), k)


def _id_column(rng, n):
    return [
        np.arange(n) * 1e3,
        np.arange(1.0, n + 1),
        rng.integers(0, 10**9, n).astype(float),
        1.7e9 + np.sort(rng.integers(0, 10**6, n)),
        rng.permutation(n) + 1e6,
    ][rng.integers(5)]


def ids(rng):
    """A table as it comes from a database: measurements, and one column that numbers the rows."""
    n, p = _size(rng)
    measured = [
        lambda: rng.random((n, p)),
        lambda: rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-2, 2, p),
        lambda: rng.poisson(3, (n, p)).astype(float),
    ][rng.integers(3)]()
    measured[:, rng.integers(p)] = _id_column(rng, n)
    return _table(measured, _few(rng, n, p))


def _scaled_columns(rng, decades):
    n, p = _size(rng)
    base = rng.standard_normal((n, 4)) @ rng.standard_normal((4, p)) + rng.standard_normal((n, p))
    base /= base.std(axis=0)
    return _table(base * 10.0 ** rng.uniform(-decades, decades, p), _few(rng, n, p))


def wild_columns(rng):
    return _scaled_columns(rng, 8)


def mild_columns(rng):
    return _scaled_columns(rng, 2.9)


def offsets(rng):
    """Means far from 0, subtracted or not."""
    n, p = _size(rng)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    size = 10.0 ** rng.uniform(1, 7)
    mean = size * (np.ones(p) if rng.random() < 0.5 else rng.standard_normal(p))
    return _table(X + mean, _few(rng, n, p), center=bool(rng.random() < 0.5))


def duplicates(rng):
    """Near-duplicate columns (of 1e-12 to 1e-2) and constant ones."""
    n, p = _size(rng)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    copies = rng.permutation(p)[: p // 2]
    X[:, copies] = X[:, [copies[0]]] + 10.0 ** rng.uniform(-12, -2) * rng.standard_normal((n, len(copies)))
    X[:, rng.permutation(p)[: p // 8]] = rng.choice([0.0, 0.1, 1e6])
    return _table(X, _few(rng, n, p))


def deficient(rng):
    """Rank below k."""
    n, p = _size(rng)
    rank = int(rng.integers(1, 9))
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p))
    if rng.random() < 0.3:
        X = np.round(3 * X)
    return _table(X, min(rank + int(rng.integers(1, 6)), min(n, p) // 2))


def noise(rng):
    """Nothing but noise: variances crowd at the edge (Marchenko & Pastur), and k cuts through the crowd."""
    n, p = _size(rng)
    return _table(rng.standard_normal((n, p)), _few(rng, n, p), scale=bool(rng.random() < 0.3))


def counts(rng):
    n, p = _size(rng)
    return _table(rng.poisson(rng.gamma(0.5, 4, p) + 0.05, (n, p)).astype(float), _few(rng, n, p))


def smooth(rng):
    """Spectra of a few substances: neighbouring columns hardly differ, and variances fall fast."""
    n, p = _size(rng)
    at = np.linspace(0, 1, p)
    peaks = np.exp(-(((at - rng.random((5, 1))) / rng.uniform(0.02, 0.2, (5, 1))) ** 2))
    X = rng.gamma(2, 1, (n, 5)) @ peaks + 10.0 ** rng.uniform(-8, -2) * rng.standard_normal((n, p))
    return _table(X, _few(rng, n, p), scale=bool(rng.random() < 0.2))


def diagonal(rng):
    side = int(rng.integers(60, 400))
    values = [np.linspace(1, 0, side), 1 / np.arange(1.0, side + 1), 0.8 ** np.arange(side)][rng.integers(3)]
    return _table(np.diag(np.sqrt(values)), _few(rng, side), center=False)


def covariance(rng):
    """A matrix for `fit_covariance`."""
    p = int(rng.integers(3, 60))
    n = int(rng.integers(2, 3 * p + 3))
    S = np.atleast_2d(
        np.cov(
            rng.standard_normal((n, p)) * 10.0 ** rng.uniform(*[(-2, 2), (0, 0.1)][rng.integers(2)], p), rowvar=False
        )
    )
    if rng.random() < 0.3:
        scale = np.sqrt(S.diagonal())
        S = S / np.outer(scale, scale)
    S = (S + S.T) / 2
    k = int(rng.integers(1, min(p, n + 2) + 1))
    return _table(S, k, matrix=True)


def _reflected(rng, n, p, values):
    """(n, p) with these squared singular values: a diagonal between reflections, which are cheap at any size."""
    X = np.zeros((n, p))
    np.fill_diagonal(X, np.sqrt(values))
    for side in range(2):
        for _ in range(3):
            v = rng.standard_normal(len(X))
            v /= np.linalg.norm(v)
            X -= np.outer(2 * v, v @ X)
        X = X.T.copy() if side == 0 else X.T
    return np.ascontiguousarray(X)


def large(rng):
    """Sizes from which a default call takes krylov."""
    n, p = int(rng.integers(1010, 1200)), int(rng.integers(1002, 1060))
    k, side = int(rng.integers(2, 16)), min(n, p)
    kind = rng.integers(10)
    if kind < 5:
        X = rng.random((n, p)) if rng.random() < 0.3 else rng.standard_normal((n, p))
        if kind == 0:
            X[:, 0] = _id_column(rng, n)
        elif kind == 1:
            X[:, : int(rng.integers(1, 5))] *= 10.0 ** rng.uniform(2, 7)
        elif kind == 2:
            return _table(X + 10.0 ** rng.uniform(1, 4), k, center=False)
        elif kind == 3:
            X *= 10.0 ** rng.uniform(-2.9, 2.9, p)
        return _table(X, k)
    if kind == 5:
        return _table(np.diag(np.sqrt(np.r_[[2.0] * 12, np.linspace(1.9, 0, side - 12)])), 12, center=False)
    if kind == 6:
        values = np.r_[1e8, np.ones(k), np.linspace(0.99, 0, side - k - 1)]
        return _table(np.diag(np.sqrt(values)), k + 1, center=False)
    if kind == 7:
        return _table(rng.poisson(rng.gamma(0.3, 1, p) + 0.02, (n, p)).astype(float), k)
    fall = 10.0 ** -np.linspace(0, rng.uniform(3, 12), side) if kind == 8 else np.arange(1.0, side + 1) ** -0.5
    return _table(_reflected(rng, n, p, fall), k, center=False)


PCA_FAMILIES = (
    graded,
    clustered,
    tied,
    giant,
    ids,
    wild_columns,
    mild_columns,
    offsets,
    duplicates,
    deficient,
    noise,
    counts,
    smooth,
    diagonal,
    covariance,
    large,
)
HARD_FOR_KRYLOV = (clustered, tied, giant, diagonal)


# --- gaps for probabilistic PCA -------------------------------------------------------------------
# Each marks in ``seen`` (n, p) which cells are there.


def scattered_gaps(rng, seen):
    seen[:] = rng.random(seen.shape) > rng.choice([0.0, 0.1, 0.3, 0.5, 0.65])


def half_gaps(rng, seen):
    """Half of the columns in some rows, the other half in the others: never together."""
    rows, columns = rng.integers(len(seen) // 4, 3 * len(seen) // 4), rng.integers(1, seen.shape[1])
    seen[:rows, :columns] = seen[rows:, columns:] = False


def batch_gaps(rng, seen):
    """One column was measured in a batch of its own."""
    rows = rng.integers(5, len(seen) // 2)
    seen[:rows, 1:] = seen[rows:, 0] = False


def single_gaps(rng, seen):
    """One cell in each row."""
    seen[:] = np.arange(seen.shape[1]) == rng.integers(0, seen.shape[1], (len(seen), 1))


def chain_gaps(rng, seen):
    """Blocks of neighbouring columns, one block in each row: those of different ends are never seen together."""
    width = int(rng.integers(2, max(3, seen.shape[1] // 2 + 1)))
    start = rng.integers(0, seen.shape[1] - width + 1, (len(seen), 1))
    column = np.arange(seen.shape[1])
    seen[:] = (column >= start) & (column < start + width)


GAPS_FAMILIES = (scattered_gaps, half_gaps, batch_gaps, single_gaps, chain_gaps)


def table_with_gaps(make, rng):
    """X (n, p; NaN = missing) of k components and noise, each row and column seen somewhere, and k."""
    n, p = int(rng.integers(40, 120)), int(rng.integers(4, 11))
    k = int(rng.integers(1, min(3, p - 2) + 1))
    seen = np.ones((n, p), dtype=bool)
    make(rng, seen)
    seen[np.arange(n), rng.integers(0, p, n)] |= ~seen.any(axis=1)
    signal = rng.standard_normal((n, k)) @ rng.standard_normal((k, p)) * rng.uniform(0.5, 2)
    scales = 10.0 ** rng.uniform(-0.5, 0.5, p) if rng.random() < 0.5 else 1.0
    X = np.where(seen, (signal + rng.standard_normal((n, p))) * scales + rng.normal(0, 3, p), np.nan)
    X = X[:, np.sum(seen, axis=0) >= 3]  # of a column seen once or twice the noise has no bound below
    return X[np.isfinite(X).any(axis=1)], k


# --- covariances for sparse components ------------------------------------------------------------

SPARSE_KINDS = ("random", "tied", "scaled", "low rank")


def small_covariance(rng, kind):
    """A covariance of p = 4 to 9 features."""
    p = int(rng.integers(4, 10))
    X = rng.standard_normal((2 * p, p))
    if kind == "tied":
        return [
            lambda: np.cov(np.tile(np.eye(p), (3, 1)), rowvar=False),  # balanced one-hot
            lambda: (1 + 1 / (p - 1)) * np.eye(p) - 1 / (p - 1),  # corners of a simplex
            lambda: np.eye(p) + rng.choice([0.0, 0.5, 1.0]) * (1 - np.eye(p)),  # all alike
            lambda: np.cov(X[:, rng.integers(0, p // 2, p)], rowvar=False),  # columns that come twice
        ][rng.integers(4)]()
    if kind == "scaled":
        X = X * 10.0 ** rng.uniform(-8, 8, p)
    if kind == "low rank":
        X = X[:, :2] @ rng.standard_normal((2, p))
    S = np.cov(X, rowvar=False)
    return (S + S.T) / 2
