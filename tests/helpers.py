"""Reference values and distances shared by the numerical tests.

Nothing here imports princomp: a reference that uses the code under test proves nothing.
"""

import contextlib
import itertools
import tracemalloc
import warnings

import numpy as np

# --- reference values -------------------------------------------------------------------------


def centered_longdouble(X):
    """Columns of the *stored* values minus their mean, in long double, shape (n, p).

    Subtracting the first row beforehand is exact when the spread is smaller than the offset
    (Sterbenz), so the mean of what is left has no cancellation even where long double is double.
    """
    X = np.asarray(X, dtype=np.longdouble)
    shifted = X - X[:1]
    return shifted - shifted.mean(axis=0)


def covariance_longdouble(X):
    """Sample covariance (n - 1) of the stored values in long double, shape (p, p)."""
    Xc = centered_longdouble(X)
    return Xc.T @ Xc / (len(Xc) - 1)


def eigenvalues_longdouble(X):
    """Eigenvalues of the covariance of the stored values, decreasing, far beyond double precision.

    LAPACK gives eigenvectors of the rounded covariance to about eps / gap; the Rayleigh quotient
    of the long-double covariance is then wrong by their *square* only. Within a cluster the error
    stays eps times the leading eigenvalue, which no bound in these tests comes near.
    """
    S = covariance_longdouble(X)
    scale = np.abs(S).max()
    if scale == 0:
        return np.zeros(len(S))
    V = np.linalg.eigh((S / scale).astype(float))[1].astype(np.longdouble)
    values = np.einsum("ij,ij->j", V, S @ V) / np.einsum("ij,ij->j", V, V)
    return np.sort(values)[::-1].astype(float)


def eigenvectors_reference(X, k):
    """Leading k right singular vectors of the centred data, as rows, shape (k, p)."""
    Xc = centered_longdouble(X)
    Xc = (Xc / max(np.abs(Xc).max(), np.finfo(float).tiny)).astype(float)
    return np.linalg.svd(Xc, full_matrices=False)[2][:k]


# --- distances --------------------------------------------------------------------------------


def subspace_sine(rows_a, rows_b):
    """Sine of the largest principal angle between the spans of two sets of orthonormal rows.

    The part of A outside B is formed explicitly: 1 - cos^2 could not see angles below 1e-8.
    """
    A, B = (np.linalg.qr(np.asarray(rows, dtype=float).T)[0] for rows in (rows_a, rows_b))
    return float(np.linalg.norm(A - B @ (B.T @ A), 2))


def relative_error(found, expected):
    """Largest elementwise |found - expected| / |expected|, in long double."""
    found, expected = (np.asarray(v, dtype=np.longdouble) for v in (found, expected))
    return float(np.max(np.abs(found - expected) / np.abs(expected)))


def error_of_largest(found, expected):
    """Largest |found - expected| relative to the largest expected value."""
    found, expected = (np.asarray(v, dtype=np.longdouble) for v in (found, expected))
    return float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def orthonormality_error(rows):
    """Largest entry of |V V' - I| for components stored as rows."""
    rows = np.asarray(rows, dtype=float)
    return float(np.abs(rows @ rows.T - np.eye(len(rows))).max())


def signs_follow_the_rule(rows):
    """The entry of largest magnitude in each row is positive; either of two entries tied up to rounding will do."""
    rows = np.asarray(rows)
    return bool(np.all(rows.max(axis=1) >= (1 - 100 * np.finfo(rows.dtype).eps) * np.abs(rows).max(axis=1)))


# --- data -------------------------------------------------------------------------------------


def orthonormal(rng, n, k):
    return np.linalg.qr(rng.normal(size=(n, k)))[0]


def for_each_component(k, *, alpha=0.0, code_alpha=None, **others):
    """Weights (k,) of numbers, one for each of k components; what else there is stays."""
    weights = {"alpha": alpha} if code_alpha is None else {"alpha": alpha, "code_alpha": code_alpha}
    return {name: np.array(np.broadcast_to(weight, k), float) for name, weight in weights.items()} | others


def data_with_spectrum(n, p, standard_deviations, seed=0, offset=0.0):
    """(n, p) data whose sample covariance has exactly the given square-root eigenvalues.

    Centred orthonormal scores times orthonormal components: up to rounding nothing is random but
    the directions, so gaps between eigenvalues are under control.
    """
    rng = np.random.default_rng(seed)
    standard_deviations = np.asarray(standard_deviations, dtype=float)
    scores = rng.normal(size=(n, len(standard_deviations)))
    scores = np.linalg.qr(scores - scores.mean(axis=0))[0]
    components = orthonormal(rng, p, len(standard_deviations)).T
    return scores * (standard_deviations * np.sqrt(n - 1)) @ components + offset


def shards(X, sizes=(1, 3, 500)):
    """X cut into row shards of cycling, deliberately uneven sizes."""
    pieces, row = [], 0
    for size in itertools.cycle(sizes):
        if row >= len(X):
            return pieces
        pieces.append(X[row : row + size])
        row += size


# --- sets for kernels ---------------------------------------------------------------------------


def smile(n, seed=0):
    """Two eyes of few points, a mouth, and a round face."""
    rng = np.random.default_rng(seed)
    eye, mouth = int(np.ceil(np.sqrt(n))), int(np.ceil(n / 10))
    angle, radius = rng.uniform(0, 2 * np.pi, 2 * eye), np.sqrt(rng.random(2 * eye))
    eyes = np.column_stack([radius * np.cos(angle), radius * np.sin(angle) + 4])
    eyes[:, 0] += np.repeat([-4.0, 4.0], eye)
    x = np.linspace(-5, 5, mouth)
    round_face = rng.uniform(0, 2 * np.pi, n - 2 * eye - mouth)
    face = 10 * np.column_stack([np.cos(round_face), np.sin(round_face)])
    return np.vstack([eyes, np.column_stack([x, x**2 / 16 - 5]), face])


def three_clouds(n):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 20)) + 3 * rng.integers(0, 3, (n, 1))


# --- measuring --------------------------------------------------------------------------------


@contextlib.contextmanager
def only_user_warnings():
    """Collect UserWarnings; any other warning (a numpy RuntimeWarning, say) is an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", UserWarning)
        yield caught


class Allocated:
    """Peak bytes allocated inside a `with` block (numpy reports its buffers to tracemalloc)."""

    peak = 0

    def __enter__(self):
        tracemalloc.start()
        return self

    def __exit__(self, *error):
        self.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


def fitted_attributes(estimator):
    """Names a fit may leave behind: they end with one underscore (scikit-learn's convention)."""
    return sorted(name for name in vars(estimator) if name.endswith("_") and not name.startswith("_"))


def value_or_error(function, *args):
    """What the function returns, or the ValueError it raises: for promises of the kind "refused, or right"."""
    try:
        return function(*args)
    except ValueError as error:
        return error
