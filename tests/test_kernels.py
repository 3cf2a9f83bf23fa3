"""Kernels: each against a slow twin of two loops, on every kind of rows; offsets, precision, names and refusals."""

import numpy as np
import pytest
from scipy import sparse

from princomp.kernels import (
    NAMES,
    Cosine,
    Function,
    Gaussian,
    Laplacian,
    Linear,
    NearestNeighbors,
    Normalized,
    Polynomial,
    Sigmoid,
    resolve,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(23, 4)) * (RNG.random((23, 4)) < 0.7)
Y = RNG.normal(size=(9, 4)) * (RNG.random((9, 4)) < 0.7)


def l1_power(x, y, power):
    return float(np.abs(x - y).sum() ** power)


def distance(x, y):
    return np.sqrt(((x - y) ** 2).sum())


def once_per_row(fn):
    """A function of a row and more, remembered: two loops ask for it again and again."""
    known = {}

    def remembered(x, *more):
        key = (x.tobytes(), *more)
        if key not in known:
            known[key] = fn(x, *more)
        return known[key]

    return remembered


@once_per_row
def radius(x):
    """The distance to the third nearest training row, one at distance 0 not counted: by sorting."""
    distances = sorted(distance(x, t) for t in X)
    return distances[3] if distances[0] == 0 else distances[2]


def near(x, y):
    reach = max(radius(x), radius(y))
    return np.exp(-0.3 * distance(x, y) ** 2) if distance(x, y) <= reach * (1 + 1e-12) else 0.0


@once_per_row
def degree(x, affinity):
    return sum(affinity(x, t) for t in X)


def normalized(x, y, affinity):
    return affinity(x, y) / np.sqrt(degree(x, affinity) * degree(y, affinity))


def radial(x, y):
    return np.exp(-0.3 * ((x - y) ** 2).sum())


def cosine(x, y):
    lengths = np.linalg.norm(x) * np.linalg.norm(y)
    return x @ y / lengths if lengths else 0.0


KERNELS = {
    "linear": (Linear(), lambda x, y: x @ y),
    "gaussian": (Gaussian(0.3), radial),
    "laplacian": (Laplacian(0.3), lambda x, y: np.exp(-0.3 * np.abs(x - y).sum())),
    "polynomial": (Polynomial(0.3, 3, 0.5), lambda x, y: (0.3 * (x @ y) + 0.5) ** 3),
    "cosine": (Cosine(), cosine),
    "sigmoid": (Sigmoid(0.3, -0.2), lambda x, y: np.tanh(0.3 * (x @ y) - 0.2)),
    "function": (Function(l1_power, {"power": 2}), lambda x, y: l1_power(x, y, 2)),
    "sum": (Linear() + Gaussian(0.3), lambda x, y: x @ y + radial(x, y)),
    "product": (Linear() * Gaussian(0.3) * Cosine(), lambda x, y: (x @ y) * radial(x, y) * cosine(x, y)),
    "neighbours": (NearestNeighbors(0.3, 3).on(X), near),
    "normalized": (Normalized(Gaussian(0.3)).on(X), lambda x, y: normalized(x, y, radial)),
    "normalized neighbours": (Normalized(NearestNeighbors(0.3, 3)).on(X), lambda x, y: normalized(x, y, near)),
    "sum with neighbours": ((Linear() + NearestNeighbors(0.3, 3)).on(X), lambda x, y: x @ y + near(x, y)),
}
every_kernel = pytest.mark.parametrize(("kernel", "twin"), KERNELS.values(), ids=KERNELS)


def by_two_loops(twin, A, B):
    return np.array([[twin(x, y) for y in B] for x in A])


@every_kernel
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_every_kernel_is_its_formula(kernel, twin, kind):
    slow = by_two_loops(twin, X, Y)
    np.testing.assert_allclose(kernel.evaluate(kind(X), kind(Y)), slow, rtol=1e-12, atol=1e-13)
    whole = kernel.evaluate(kind(X))
    np.testing.assert_allclose(whole, by_two_loops(twin, X, X), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(kind(X)), np.diag(whole), rtol=1e-12, atol=1e-13)


@every_kernel
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_precision_is_kept(kernel, twin, kind):
    for dtype, digits in ((np.float32, 2e-5), (np.float64, 1e-12)):
        A, B = X.astype(dtype), Y.astype(dtype)
        values = kernel.on(kind(A)).evaluate(kind(A), kind(B))
        assert values.dtype == dtype
        assert kernel.diagonal(kind(A)).dtype == dtype
        np.testing.assert_allclose(values, by_two_loops(twin, X, Y), rtol=digits, atol=digits)


@every_kernel
def test_what_is_said_to_be_positive_semidefinite_is(kernel, twin):
    smallest = np.linalg.eigvalsh(kernel.evaluate(X))[0]
    assert smallest > -1e-12 or not kernel.psd


def test_kernels_that_are_not_positive_semidefinite_say_so():
    for kernel in (Sigmoid(1.0), NearestNeighbors(1.0), Polynomial(1.0, 2, -1.0), Linear() + Sigmoid(1.0)):
        assert not kernel.psd
    assert (Linear() * Gaussian(1.0)).psd
    assert np.linalg.eigvalsh(Sigmoid(1.0, -1.0).evaluate(X))[0] < -0.1
    assert np.linalg.eigvalsh(KERNELS["neighbours"][0].evaluate(X))[0] < -1e-3


@pytest.mark.parametrize("offset", [1e4, 1e8])
@pytest.mark.parametrize("name", ["gaussian", "laplacian", "neighbours", "normalized"])
def test_an_offset_costs_no_digits(name, offset):
    kernel = KERNELS[name][0]
    # Whole multiples of 2^-24, which stay what they are at the offset.
    A = np.round(X * 2**24) / 2**24
    moved = A + offset
    assert (moved - offset == A).all()
    there = kernel.on(moved).evaluate(moved, moved[:5])
    np.testing.assert_allclose(there, kernel.on(A).evaluate(A, A[:5]), rtol=1e-12, atol=1e-13)


def test_float32_at_an_offset():
    A = RNG.normal(size=(20, 3)).astype(np.float32)
    moved = (np.round(A * 64) / 64 + 1e4).astype(np.float32)
    exact = Gaussian(0.7).evaluate(moved.astype(np.float64))
    np.testing.assert_allclose(Gaussian(0.7).evaluate(moved), exact, atol=2e-6)


def test_distant_clouds_cost_no_digits():
    """No one point is near both, so that distances must come from differences."""
    cloud = np.round(RNG.normal(size=(15, 3)) * 2**20) / 2**20
    both = np.vstack([cloud, cloud + 1e8])
    values = Gaussian(0.5).evaluate(both)
    np.testing.assert_allclose(values[:15, :15], Gaussian(0.5).evaluate(cloud), rtol=1e-12)
    np.testing.assert_allclose(values[15:, 15:], Gaussian(0.5).evaluate(cloud), rtol=1e-12)
    assert (values[:15, 15:] == 0).all()


def test_the_radial_kernel_has_its_minus_sign():
    values = Gaussian(1.0).evaluate(np.array([[0.0], [1.0], [30.0]]))
    np.testing.assert_allclose(values[0], [1.0, np.exp(-1), 0.0], atol=1e-300)


def test_a_training_row_that_comes_back_gets_its_row():
    grid = np.array([[i, j] for i in range(5) for j in range(5)], float)  # many distances tie
    rows = np.vstack([grid, grid[:4], grid[:2]])  # rows that are there twice, and three times
    for kernel in (NearestNeighbors(0.2, 3), Normalized(NearestNeighbors(0.2, 3)), Normalized(Gaussian(0.2))):
        trained = kernel.on(rows)
        whole = trained.evaluate(rows)
        np.testing.assert_allclose(whole, whole.T, rtol=1e-14)
        for i in (0, 3, 7, 26, 30):
            np.testing.assert_allclose(trained.evaluate(rows[[i]], rows)[0], whole[i], rtol=1e-14)
    # One copy is the row itself; the other two are its nearest neighbours.
    three = NearestNeighbors(0.0, 2).on(rows)
    assert three.evaluate(rows[[0]], rows).sum() < 25
    radii = three.points(rows[[0, 2, 9]])[1]
    np.testing.assert_array_equal(radii, [0.0, 1.0, 1.0])


def test_a_row_far_from_all_others_is_like_none():
    kernel = Normalized(Gaussian(1.0)).on(X)
    assert (kernel.evaluate(X[:1] + 1e6, X) == 0).all()


def test_the_trivial_vector():
    for affinity in (Gaussian(0.3), NearestNeighbors(0.3, 3)):
        kernel = Normalized(affinity).on(X)
        vector = kernel.trivial(kernel.points(X))
        np.testing.assert_allclose(kernel.evaluate(X) @ vector, vector, atol=1e-13)


def test_gamma_zero_is_a_constant_kernel_and_a_huge_one_knows_only_itself():
    assert (Gaussian(0.0).evaluate(X) == 1).all()
    assert (Laplacian(0.0).evaluate(X) == 1).all()
    A = RNG.normal(size=(12, 4))
    np.testing.assert_array_equal(Gaussian(1e300).evaluate(A), np.eye(12))


def test_names():
    made = [resolve(name, X) for name in NAMES]
    assert made == [
        Linear(),
        Gaussian(0.25),
        Laplacian(0.25),
        Polynomial(0.25, 3, 1.0),
        Polynomial(0.25, 3, 1.0),
        Cosine(),
        Sigmoid(0.25, 1.0),
        NearestNeighbors(0.25, 10),
        Normalized(Gaussian(0.25)),
    ]
    assert resolve("normalized-rbf", X, n_neighbors=4) == Normalized(NearestNeighbors(0.25, 4))
    assert resolve("poly", X, gamma=2, degree=2, coef0=0) == Polynomial(2.0, 2, 0)
    mixed = Linear() + Gaussian(2.0)
    assert resolve(mixed, X) is mixed
    assert resolve(l1_power, X, kernel_params={"power": 2}) == Function(l1_power, {"power": 2})


def test_gamma_from_the_data():
    for rows in (X, sparse.csr_array(X), X + 1e8):
        cells = rows.toarray() if sparse.issparse(rows) else rows
        assert resolve("rbf", rows, gamma="scale").gamma == pytest.approx(1 / (4 * cells.var()), rel=1e-9)
        squares = [((a - b) ** 2).sum() for i, a in enumerate(cells) for b in cells[:i]]
        assert resolve("rbf", rows, gamma="median").gamma == pytest.approx(1 / (2 * np.median(squares)), rel=1e-9)
    for gamma in ("scale", "median"):
        assert resolve("rbf", np.ones((5, 3)), gamma=gamma).gamma == 1.0
        assert resolve("rbf", np.ones((1, 3)), gamma=gamma).gamma == 1.0
    many = RNG.normal(size=(5000, 2))
    assert resolve("rbf", many, gamma="median").gamma == pytest.approx(1 / (4 * 2 * np.log(2)), rel=0.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: resolve("rbf", X, gamma=np.inf), "finite number of at least 0"),
        (lambda: resolve("rbf", X, gamma=np.nan), "finite number of at least 0"),
        (lambda: resolve("rbf", X, gamma=-1.0), "finite number of at least 0"),
        (lambda: resolve("rbf", X, gamma="auto"), '"scale", "median" or None'),
        (lambda: resolve("rbf", X, gamma=[1.0]), '"scale", "median" or None'),
        (lambda: resolve("gauss", X), "must be one of 'linear', 'rbf'"),
        (lambda: resolve(3, X), "a function of two rows"),
        (lambda: resolve("poly", X, degree=0), "degree must be a whole number"),
        (lambda: resolve("poly", X, coef0=np.nan), "coef0 must be a finite number"),
        (lambda: resolve("rbf", X, kernel_params={"a": 1}), "go with a callable"),
        (lambda: resolve("knn-rbf", X, n_neighbors=0), "n_neighbors must be a whole number"),
        (lambda: NearestNeighbors(1.0, 23).on(X), "needs more than 23 training rows, got 23"),
        (lambda: NearestNeighbors(1.0, 3).evaluate(X), r"call its on\(X\) first"),
        (lambda: Normalized(Linear()), "must be Gaussian or NearestNeighbors"),
        (lambda: Normalized(Gaussian(1.0)) + Linear(), "stands alone"),
        (lambda: Function(np.add).evaluate(X), "returns one number"),
    ],
)
def test_refusals_say_what_to_do(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_other_operands_are_refused():
    with pytest.raises(TypeError):
        Linear() + 1
