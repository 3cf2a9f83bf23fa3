"""N1: the test ratios of LAPACK's own suite (xDRVBD, xDRVST), threshold 30, for the exact solvers.

With V the components as columns, Xc the centred data, S = Xc'Xc / (n - 1), ulp of the data's type:
    |Xc - scores V'| / (|Xc| max(n, p) ulp)      all components kept
    |I - V'V| / (k ulp)
    |S V - V Lambda| / (|S| p ulp)
and variances sorted and >= 0. Norms are 1-norms as in LAPACK. Everything is measured in long
double from the *stored* values, in units of a power of two, so that matrices scaled near overflow or
underflow are judged by the same numbers as the others: variances out of range are replaced by
squared singular values, which stay representable.
"""

import itertools

import numpy as np
import pytest

from helpers import centered_longdouble, only_user_warnings, orthonormal
from princomp import PCA

THRESHOLD = 30
SAMPLES = (2, 3, 10, 16, 30, 40)
FEATURES = (1, 2, 3, 10, 16, 30, 40)


def even(k, ulp):
    return np.linspace(1, ulp, k)


def geometric(k, ulp):
    return ulp ** (np.arange(k) / max(k - 1, 1))


def clustered_small(k, ulp):
    return np.r_[1.0, np.full(k - 1, ulp)]


def clustered_large(k, ulp):
    return np.r_[np.ones(k - 1), ulp][-k:] if k > 1 else np.ones(1)


def diagonal(spectrum, rng, n, p, ulp):
    X = np.zeros((n, p))
    k = min(n, p)
    X[range(k), range(k)] = spectrum(k, ulp) * rng.choice([-1, 1], k)
    return X


def dense(spectrum, rng, n, p, ulp):
    k = min(n, p)
    return orthonormal(rng, n, k) * spectrum(k, ulp) @ orthonormal(rng, p, k).T


def uniform(rng, n, p, ulp):
    return rng.uniform(-1, 1, size=(n, p))


def lower_triangle(rng, n, p, ulp):
    """Graded rows, strongly non-normal: LAPACK's band and Hessenberg types in spirit."""
    return np.tril(rng.normal(size=(n, p))) * geometric(n, ulp)[:, None]


# Name: (recipe, place of the scale: 0, or near over- (+1) or underflow (-1)).
TYPES = {
    "zero": (lambda rng, n, p, ulp: np.zeros((n, p)), 0),
    "identity": (lambda rng, n, p, ulp: np.eye(n, p), 0),
    "diagonal, even": (lambda *a: diagonal(even, *a), 0),
    "diagonal, geometric": (lambda *a: diagonal(geometric, *a), 0),
    "diagonal, clustered": (lambda *a: diagonal(clustered_small, *a), 0),
    "diagonal, geometric, near overflow": (lambda *a: diagonal(geometric, *a), 1),
    "diagonal, geometric, near underflow": (lambda *a: diagonal(geometric, *a), -1),
    "dense, even": (lambda *a: dense(even, *a), 0),
    "dense, geometric": (lambda *a: dense(geometric, *a), 0),
    "dense, clustered at ulp": (lambda *a: dense(clustered_small, *a), 0),
    "dense, clustered at one": (lambda *a: dense(clustered_large, *a), 0),
    "dense, even, near overflow": (lambda *a: dense(even, *a), 1),
    "dense, even, near underflow": (lambda *a: dense(even, *a), -1),
    "uniform entries": (uniform, 0),
    "uniform entries, near overflow": (uniform, 1),
    "graded lower triangle": (lower_triangle, 0),
}
# Powers of two that leave room for sums and singular values above, and for relative accuracy of
# scores and singular values below (denormals have none: they are tested under F12a).
EXPONENT = {np.float64: 1000, np.float32: 100}


def one_norm(A):
    return np.abs(A).sum(axis=0).max()


def ratios(X, pca, exponent):
    """The three ratios of one fit, in long double and in units of 2**exponent."""
    n, p = X.shape
    ulp = np.longdouble(np.finfo(X.dtype).eps)
    unit = np.ldexp(np.longdouble(1), -exponent)
    Xc = centered_longdouble(X.astype(np.longdouble) * unit)
    V = pca.components_.T.astype(np.longdouble)
    k = V.shape[1]
    orthogonality = one_norm(np.eye(k) - V.T @ V) / (k * ulp)
    if one_norm(Xc) == 0:
        return 0.0, float(orthogonality), 0.0
    scores = pca.transform(X).astype(np.longdouble) * unit
    singular = pca.singular_values_.astype(np.longdouble) * unit
    S = Xc.T @ Xc / (n - 1)
    reconstruction = one_norm(Xc - scores @ V.T) / (one_norm(Xc) * max(n, p) * ulp)
    residual = one_norm(S @ V - V * (singular**2 / (n - 1))) / (one_norm(S) * p * ulp)
    return float(reconstruction), float(orthogonality), float(residual)


def decreasing(values):
    return bool(np.all(values[:-1] >= values[1:]) and np.all(values >= 0))


@pytest.mark.parametrize("solver", ["eigh", "svd"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("kind", TYPES)
def test_N1_lapack_ratios(kind, dtype, solver, observe):
    recipe, side = TYPES[kind]
    exponent = side * EXPONENT[dtype]
    worst, beyond = np.zeros(3), {}
    for n, p in itertools.product(SAMPLES, FEATURES):
        plain = recipe(np.random.default_rng(100 * n + p), n, p, np.finfo(dtype).eps)
        X = np.ldexp(plain.astype(dtype), exponent)
        with only_user_warnings():  # zero variance and overflow of variances are said, rightly
            pca = PCA(solver=solver).fit(X)
        found = ratios(X, pca, exponent)
        worst = np.maximum(worst, found)
        sorted_ = decreasing(pca.explained_variance_) and decreasing(pca.singular_values_)
        if not (max(found) < THRESHOLD and sorted_):
            beyond[n, p] = (*found, sorted_)
    observe(
        "N1",
        f"{kind}, {np.dtype(dtype)}, {solver}",
        "reconstruction {:.2f}, orthogonality {:.2f}, residual {:.2f}".format(*worst),
    )
    assert not beyond


@pytest.mark.parametrize("solver", ["eigh", "svd"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_N1_variances_are_squared_singular_values(dtype, solver):
    """The ratios above use singular values; this ties the variances to them."""
    for n, p in itertools.product(SAMPLES, FEATURES):
        X = uniform(np.random.default_rng(n + p), n, p, None).astype(dtype)
        pca = PCA(solver=solver).fit(X)
        expected = pca.singular_values_.astype(float) ** 2 / (n - 1)
        assert np.allclose(pca.explained_variance_, expected, rtol=4 * np.finfo(dtype).eps, atol=0)
