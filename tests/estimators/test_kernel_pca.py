"""Kernel PCA: equal to PCA where it must be, to scikit-learn's where that is right, and honest about the rest."""

import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, load_iris, make_circles, make_moons
from sklearn.decomposition import KernelPCA as Peer

import princomp
from helpers import Allocated, only_user_warnings, smile, three_clouds
from princomp import PCA, KernelPCA
from princomp.data import budget
from princomp.kernels import Gaussian, Linear, Polynomial

IRIS = load_iris().data
DIGITS = load_digits().data[:400] / 16
X = np.random.default_rng(0).normal(size=(80, 4)) + 2 * np.random.default_rng(1).integers(0, 3, (80, 1))
NEW = np.random.default_rng(2).normal(size=(15, 4))


def up_to_sign(one, other, **tolerance):
    sign = np.sign((one * other).sum(axis=0))
    np.testing.assert_allclose(one * sign, other, **tolerance)


# --- what it must equal -------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_the_linear_kernel_is_pca(offset):
    rows = np.round(X * 2**20) / 2**20 + offset
    found, pca = KernelPCA(3, kernel="linear").fit(rows), PCA(3).fit(rows)
    up_to_sign(found.transform(rows), pca.transform(rows), atol=1e-8)
    np.testing.assert_allclose(found.explained_variance_, pca.explained_variance_, rtol=1e-8)
    np.testing.assert_allclose(found.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-8)
    new = np.round(NEW * 2**20) / 2**20 + offset
    up_to_sign(found.transform(new), pca.transform(new), atol=1e-8)


def test_degree_two_is_pca_on_the_explicit_feature_map():
    gamma, coef0 = 0.3, 0.7

    def explicit(rows):
        pairs = [gamma * rows[:, i] * rows[:, j] * (1 if i == j else 2**0.5) for i in range(4) for j in range(i + 1)]
        linear = np.sqrt(2 * gamma * coef0) * rows
        return np.column_stack([*pairs, linear, np.full(len(rows), coef0)])

    found = KernelPCA(5, kernel="poly", degree=2, gamma=gamma, coef0=coef0).fit(X)
    pca = PCA(5).fit(explicit(X))
    for rows in (X, NEW):
        up_to_sign(found.transform(rows), pca.transform(explicit(rows)), atol=1e-8)


def test_classical_scaling_of_euclidean_distances():
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    J = np.eye(80) - 1 / 80
    values, V = np.linalg.eigh(-J @ squares @ J / 2)
    up_to_sign(KernelPCA(3, kernel="linear").fit_transform(X), V[:, ::-1][:, :3] * np.sqrt(values[::-1][:3]), atol=1e-8)


@pytest.mark.parametrize("rows", [IRIS, DIGITS], ids=["iris", "digits"])
@pytest.mark.parametrize(
    ("kernel", "how"),
    [
        ("rbf", {"gamma": 0.05}),
        ("poly", {"gamma": 0.1, "degree": 3, "coef0": 1}),
        ("cosine", {}),
        ("sigmoid", {"gamma": 0.01, "coef0": 0.0}),
    ],
)
def test_agrees_with_scikit_learn(rows, kernel, how):
    found = KernelPCA(3, kernel=kernel, **how).fit(rows[::2])
    peer = Peer(3, kernel=kernel, eigen_solver="dense", **how).fit(rows[::2])
    np.testing.assert_allclose(found.eigenvalues_, peer.eigenvalues_, rtol=1e-8)
    for some in (rows[::2], rows[1::2]):
        theirs = peer.transform(some)
        up_to_sign(found.transform(some), theirs, atol=1e-8 * np.abs(theirs).max())


def test_a_given_matrix_is_the_computed_one():
    kernel = Gaussian(0.1)
    computed, given = KernelPCA(4, kernel=kernel).fit(X), KernelPCA(4, kernel="precomputed").fit(kernel.evaluate(X))
    np.testing.assert_allclose(given.eigenvalues_, computed.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(given.transform(kernel.evaluate(NEW, X)), computed.transform(NEW), atol=1e-10)
    with pytest.raises(ValueError, match="does not give"):
        given.novelty(kernel.evaluate(NEW, X))


# --- new rows -----------------------------------------------------------------------------------

KERNELS = [
    "linear",
    "rbf",
    "laplacian",
    "poly",
    "cosine",
    "sigmoid",
    "knn-rbf",
    "normalized-rbf",
    Linear() + Gaussian(0.1),
    lambda x, y: float(x @ y) ** 2,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: "a function" if callable(kernel) else str(kernel))
def test_training_rows_that_come_back_have_their_scores(kernel):
    model = KernelPCA(3, kernel=kernel, gamma=0.05, n_neighbors=7).fit(X)
    scores = model.result_.value["V"] * np.sqrt(model.eigenvalues_)
    np.testing.assert_allclose(model.transform(X), scores, atol=1e-10 * np.abs(scores).max())
    assert model.certificate_.holds
    again = KernelPCA(3, kernel=kernel, gamma=0.05, n_neighbors=7).fit_transform(X)
    np.testing.assert_allclose(again, scores, atol=1e-10 * np.abs(scores).max())


@pytest.mark.parametrize("approximation", ["nystroem", "rpcholesky", "fourier"])
def test_scores_of_training_rows_are_those_of_the_features(approximation):
    how = {"gamma": 0.1, "approximation": approximation, "rank": 30, "random_state": 0}
    model = KernelPCA(4, **how).fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(Z, KernelPCA(4, **how).fit_transform(X), atol=1e-10)
    np.testing.assert_allclose(Z.T @ Z, np.diag(model.eigenvalues_), atol=1e-10 * model.eigenvalues_[0])
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-10)


@pytest.mark.parametrize("copies", [1, 3])
def test_a_training_row_gets_its_row_of_the_neighbours_matrix(copies):
    """Also one of several equal rows; and a new row next to it gets other neighbours, as it is none of them."""
    rows = np.repeat(X[:30], copies, axis=0)
    model = KernelPCA(3, kernel="knn-rbf", gamma=0.1, n_neighbors=4).fit(rows)
    A = model.kernel_.on(rows)
    squares = ((rows[:, None] - rows) ** 2).sum(axis=2)
    radius = np.sort(squares, axis=1)[:, 4]  # the first is the row itself
    expected = np.where(squares <= np.maximum.outer(radius, radius), np.exp(-0.1 * squares), 0.0)
    np.testing.assert_allclose(A.evaluate(rows), expected, atol=1e-14)
    for i in (0, 7, 29):
        np.testing.assert_allclose(A.evaluate(rows[i : i + 1], rows)[0], expected[i], atol=1e-14)
    scores = model.result_.value["V"] * np.sqrt(model.eigenvalues_)
    np.testing.assert_allclose(model.transform(rows[5:6]), scores[5:6], atol=1e-12)
    near = rows[5:6] + 1e-9  # a new row counts the old one as its first neighbour
    assert np.count_nonzero(A.evaluate(near, rows)) <= np.count_nonzero(expected[5])


def test_new_rows_are_centred_by_the_training_means():
    """One row alone has the scores that it has among others, and an uncentred kernel row would not."""
    model = KernelPCA(3, gamma=0.1).fit(X)
    np.testing.assert_allclose(model.transform(NEW[:1]), model.transform(NEW)[:1], atol=1e-12)
    K, k = Gaussian(0.1).evaluate(X), Gaussian(0.1).evaluate(NEW, X)
    centred = k - k.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    V = model.result_.value["V"]
    np.testing.assert_allclose(model.transform(NEW), centred @ V / np.sqrt(model.eigenvalues_), atol=1e-11)


@pytest.mark.parametrize("approximation", [None, "nystroem", "rpcholesky", "fourier"])
def test_novelty_is_what_components_leave(approximation):
    model = KernelPCA(4, gamma=0.1, approximation=approximation, rank=40, random_state=0).fit(X)
    inside, far = model.novelty(X), model.novelty(X[:5] + 50)
    assert (inside > -1e-10).all()
    assert far.min() > np.median(inside)
    whole = KernelPCA(gamma=0.1, approximation=approximation, rank=40, random_state=0).fit(X)
    if approximation is None:
        np.testing.assert_allclose(whole.novelty(X), 0.0, atol=1e-9)
        np.testing.assert_allclose(inside.sum(), whole.eigenvalues_[4:].sum(), rtol=1e-8)


def test_novelty_of_the_linear_kernel_is_the_squared_distance_from_the_plane():
    model, pca = KernelPCA(2, kernel="linear").fit(X + 1e6), PCA(2).fit(X + 1e6)
    left = (NEW + 1e6 - pca.inverse_transform(pca.transform(NEW + 1e6))) ** 2
    np.testing.assert_allclose(model.novelty(NEW + 1e6), left.sum(axis=1), rtol=1e-6)


# --- approximations -----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear", "cosine"])
def test_all_rows_as_landmarks_are_exact(kernel):
    exact = KernelPCA(3, kernel=kernel, gamma=0.1, approximation=None).fit(X)
    for how in ({"approximation": "rpcholesky", "rank": 80}, {"approximation": "nystroem", "landmarks": np.arange(80)}):
        found = KernelPCA(3, kernel=kernel, gamma=0.1, random_state=0, **how).fit(X)
        np.testing.assert_allclose(found.eigenvalues_, exact.eigenvalues_, rtol=1e-7)
        np.testing.assert_allclose(found.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-7)
        scale = np.abs(exact.transform(NEW)).max()
        up_to_sign(found.transform(NEW), exact.transform(NEW), atol=1e-5 * scale)


@pytest.mark.parametrize("approximation", ["nystroem", "rpcholesky"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
def test_intervals_hold_the_exact_eigenvalues(approximation, kernel):
    exact = KernelPCA(5, kernel=kernel, gamma=0.1, approximation=None).fit(X)
    for rank in (5, 15, 40):
        how = {"approximation": approximation, "rank": rank, "random_state": rank}
        found = KernelPCA(5, kernel=kernel, gamma=0.1, **how).fit(X)
        for intervals, values in (
            (found.eigenvalue_intervals_, exact.eigenvalues_),
            (found.ratio_intervals_, exact.explained_variance_ratio_),
        ):
            assert (intervals[:, 0] <= values).all()
            assert (values <= intervals[:, 1]).all()
        assert "approximation by landmarks, not of the kernel matrix itself" in str(found.certificate_)


def test_intervals_of_components_that_the_features_do_not_have():
    """Three landmarks have three features at the most; the exact matrix has more."""
    exact = KernelPCA(5, gamma=0.1).fit(X)
    with pytest.warns(UserWarning, match="Features of this rank have 3"):
        found = KernelPCA(5, gamma=0.1, approximation="nystroem", landmarks=[0, 1, 2]).fit(X)
    assert not found.eigenvalues_[3:].any()
    assert (found.eigenvalue_intervals_[:, 0] <= exact.eigenvalues_).all()
    assert (exact.eigenvalues_ <= found.eigenvalue_intervals_[:, 1]).all()
    assert (exact.explained_variance_ratio_ <= found.ratio_intervals_[:, 1]).all()


def test_fits_without_a_proof_have_no_intervals():
    for how in (
        {"approximation": None},
        {"approximation": "fourier"},
        {"kernel": "sigmoid", "approximation": "nystroem"},
        {"kernel": "knn-rbf"},
    ):
        model = KernelPCA(2, random_state=0, **how).fit(X)
        assert model.eigenvalue_intervals_ is None
        assert model.ratio_intervals_ is None


def test_landmarks_of_the_user():
    by_number = KernelPCA(2, approximation="nystroem", landmarks=[3, 50, 7, 21]).fit(X)
    by_row = KernelPCA(2, approximation="nystroem", landmarks=X[[3, 7, 21, 50]]).fit(X)
    np.testing.assert_allclose(by_number.transform(NEW), by_row.transform(NEW), atol=1e-12)


def test_auto_is_exact_while_the_matrix_fits():
    rows = np.random.default_rng(0).normal(size=(700, 3))
    assert KernelPCA(2).fit(rows).approximation_ == "exact"
    with budget.limited(3_000_000):
        model = KernelPCA(2, random_state=0).fit(rows)
        assert model.approximation_ == "rpcholesky"
        with pytest.raises(MemoryError, match="GiB"):
            KernelPCA(2, kernel="sigmoid").fit(rows)


def test_a_certificate_says_of_what_it_is():
    """An approximation is solved to the last digit, and what is said of it is not said of the kernel matrix."""
    for how, near in (
        ({"approximation": "nystroem", "rank": 20}, "of the trace of that out, whose eigenvalues are at most"),
        ({"approximation": "rpcholesky", "rank": 20}, "of the trace of that out, whose eigenvalues are at most"),
        ({"approximation": "nystroem", "rank": 20, "kernel": "sigmoid"}, "may have negative eigenvalues, is not known"),
        ({"approximation": "fourier", "rank": 20}, "how near it comes to that is not known"),
    ):
        model = KernelPCA(2, gamma=0.1, random_state=0, **how).fit(X)
        certificate = model.certificate_
        assert certificate.holds
        for said in (str(certificate), certificate.verdict(), " ".join(certificate.assurance())):
            assert "not of the kernel matrix itself" in said
        assert near in str(certificate)
        assert near in " ".join(certificate.assurance())
        assert "features" in str(model.result_.status)
    exact = KernelPCA(2, gamma=0.1).fit(X)
    assert exact.certificate_.verdict() == "Certified: these are the leading components."


def test_what_is_known_of_features_is_in_the_units_of_eigenvalues():
    """Of each component, also of those that the features do not have."""
    with pytest.warns(UserWarning, match="Features of this rank have 3"):
        model = KernelPCA(5, gamma=0.1, approximation="nystroem", landmarks=[0, 1, 2]).fit(X)
    details = model.certificate_.details
    for name in ("residuals", "floor", "error", "known"):
        assert details[name].shape == (5,)
    assert 1e-16 * model.eigenvalues_[0] < details["floor"][0] < 1e-12 * model.eigenvalues_[0]
    assert model.result_.objective == pytest.approx(0.0, abs=1e-12 * model.eigenvalues_[0])


@pytest.mark.parametrize("apart", [1e-3, 1e-7, 1e-12])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_intervals_hold_for_landmarks_that_are_nearly_alike(kernel, apart):
    """Coefficients of such landmarks are large and cancel: rounding must not lift the approximation above K."""
    rng, exact = np.random.default_rng(0), KernelPCA(3, kernel=kernel, gamma=0.01, approximation=None).fit(X)
    for _ in range(20):
        some = X[rng.integers(0, 80, 4)]
        landmarks = np.vstack([some, some + apart * rng.normal(size=some.shape)])
        model = KernelPCA(3, kernel=kernel, gamma=0.01, approximation="nystroem", landmarks=landmarks).fit(X)
        assert (model.eigenvalue_intervals_[:, 0] <= exact.eigenvalues_).all()
        assert (exact.eigenvalues_ <= model.eigenvalue_intervals_[:, 1]).all()


@pytest.mark.parametrize("n", [1000, pytest.param(10_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("rank", "published"), [(100, 1.3e-7), (150, 5.5e-12)])
def test_the_smile_is_left_out_by_no_more_than_published(rank, published, n):
    """The relative trace error of whole fits, median of five; the intervals are widened by 1e-12 beside it."""
    rows, widths = smile(n), []
    for seed in range(5):
        how = {"approximation": "rpcholesky", "rank": rank, "random_state": seed}
        model = KernelPCA(3, gamma=1 / 8, **how).fit(rows)
        widths.append(float(model.eigenvalue_intervals_[0, 1] - model.eigenvalues_[0]) / n)
    print(f"n = {n}, rank {rank}: {np.median(widths):.1e} of the trace, published {published:.1e}")
    assert np.median(widths) < 3 * published


@pytest.mark.parametrize("n", [300, pytest.param(6000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(("name", "gamma", "rank"), [("smile", 1 / 8, 60), ("three clouds", 0.02, 100)])
def test_exact_eigenvalues_lie_in_the_intervals_of_twenty_fits(name, gamma, rank, n):
    rows, k = {"smile": smile, "three clouds": three_clouds}[name](n), 10
    exact = KernelPCA(k, gamma=gamma, approximation=None, tol=1e-9, random_state=0).fit(rows)
    widths = {"rpcholesky": [], "nystroem": []}
    for seed in range(20):
        word = list(widths)[seed % 2]
        model = KernelPCA(k, gamma=gamma, approximation=word, rank=rank, random_state=seed).fit(rows)
        for intervals, values in (
            (model.eigenvalue_intervals_, exact.eigenvalues_),
            (model.ratio_intervals_, exact.explained_variance_ratio_),
        ):
            assert (intervals[:, 0] <= values).all()
            assert (values <= intervals[:, 1]).all()
        widths[word].append(float(np.diff(model.eigenvalue_intervals_).mean()))
    for word, found in widths.items():
        print(
            f"{name}, n = {n}, {word}: mean width {np.mean(found) / exact.eigenvalues_[0]:.1e} of the first eigenvalue"
        )


# --- curved data --------------------------------------------------------------------------------


def best_cut(score, groups):
    """The share of rows that the best threshold on one score puts on their side."""
    ordered = groups[np.argsort(score)]
    right = np.cumsum(ordered) + (1 - ordered).sum() - np.cumsum(1 - ordered)
    return max(right.max(), len(ordered) - right.min()) / len(ordered)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["circles", "moons"])
def test_what_no_straight_line_tells_apart(name, seed):
    """One linear component puts under 80 % on their side, the first radial one over 98 %."""
    rows, groups, gamma = {
        "circles": (*make_circles(400, factor=0.3, noise=0.05, random_state=seed), 3.0),
        "moons": (*make_moons(400, noise=0.05, random_state=seed), 20.0),
    }[name]
    straight = max(best_cut(score, groups) for score in KernelPCA(2, kernel="linear").fit_transform(rows).T)
    curved = best_cut(KernelPCA(1, gamma=gamma).fit_transform(rows)[:, 0], groups)
    print(f"{name}: linear {straight:.3f}, rbf {curved:.3f}")
    assert straight < 0.8
    assert curved > 0.98


def test_auto_is_exact_where_that_takes_seconds():
    from princomp.data import as_rows
    from princomp.estimators.kernel_fit import choose_approximation
    from princomp.kernels import Gaussian, Sigmoid

    def chosen(n, k, kernel):
        return choose_approximation(as_rows(np.zeros((n, 1))), kernel, k)

    rbf = Gaussian(1.0)
    assert chosen(20_000, 10, rbf) is None
    assert chosen(20_001, 10, rbf) == "rpcholesky"
    assert chosen(5_000, None, rbf) is None
    assert chosen(5_001, None, rbf) == chosen(6_000, 1_000, rbf) == "rpcholesky"
    assert chosen(30_000, 10, Sigmoid(1.0)) is None


# --- edges --------------------------------------------------------------------------------------

DUPLICATES = np.repeat(X[:20], 4, axis=0)
WITH_NAN = np.where(np.arange(320).reshape(80, 4) == 5, np.nan, X)
ASYMMETRIC = np.array([[2.0, 1.0], [0.0, 2.0]])
ODD = {  # what is given: parameters, rows, and what comes of it, a warning or an error
    "gamma = 0": ({"gamma": 0.0}, X, "every eigenvalue is 0"),
    "a huge gamma": ({"gamma": 1e12}, X, None),
    "gamma = inf": ({"gamma": np.inf}, X, "ValueError: gamma must be a finite number"),
    "gamma = NaN": ({"gamma": np.nan}, X, "ValueError: gamma must be a finite number"),
    "duplicate rows": ({"gamma": 0.1}, DUPLICATES, None),
    "duplicate rows, landmarks": ({"gamma": 0.1, "approximation": "rpcholesky"}, DUPLICATES, None),
    "constant data": ({}, np.ones((20, 4)), "every eigenvalue is 0"),
    "constant data, landmarks": (
        {"kernel": "linear", "approximation": "nystroem"},
        np.ones((20, 4)),
        "eigenvalue is 0",
    ),
    "constant data, pivots": ({"kernel": "linear", "approximation": "rpcholesky"}, np.ones((20, 4)), "eigenvalue is 0"),
    "an asymmetric matrix": ({"kernel": "precomputed"}, ASYMMETRIC, "ValueError: .* needs a symmetric matrix"),
    "an indefinite matrix": ({"kernel": "precomputed"}, np.diag([3.0, 2, 1, -2]), "negative eigenvalues, 0.21 of all"),
    "a negative matrix": ({"kernel": "precomputed"}, -np.eye(5), "No eigenvalue of this kernel matrix is positive"),
    "an indefinite function": ({"kernel": lambda x, y: -(abs(x - y).sum() ** 3)}, X, "is not positive semidefinite"),
    "NaN": ({}, WITH_NAN, "ValueError: .*NaN in column 1"),
}


def outcome(how, rows):
    """What a fit of two components says: its error, its warning, or nothing."""
    with only_user_warnings() as caught:
        try:
            model = KernelPCA(2, **how).fit(rows)
        except ValueError as error:
            return f"ValueError: {error}", None
        assert np.isfinite(model.transform(rows)).all()
    return "".join(str(warning.message) for warning in caught) or "nothing", model


def test_odd_data_have_the_results_that_are_stated():
    lines = []
    for name, (how, rows, expected) in ODD.items():
        said, model = outcome(how, rows)
        values = "" if model is None else f"{model.eigenvalues_.round(3)} {model.certificate_.holds}"
        lines.append(f"{name:26} {values:22} {said}")
        assert re.search(expected or "^nothing$", said), lines[-1]
        assert model is None or model.certificate_.holds
    print("\n".join(lines))
    assert not outcome(*ODD["gamma = 0"][:2])[1].eigenvalues_.any()
    np.testing.assert_allclose(outcome(*ODD["a huge gamma"][:2])[1].eigenvalues_, 1.0, rtol=1e-10)
    once = KernelPCA(2, gamma=0.1).fit(X[:20])
    for name in ("duplicate rows", "duplicate rows, landmarks"):
        found = outcome(*ODD[name][:2])[1]
        np.testing.assert_allclose(found.eigenvalues_, 4 * once.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize(
    ("how", "instead"),
    [
        ({"kernel": "knn-rbf"}, r"Use fewer rows\."),
        ({"kernel": "sigmoid", "n_components": 2}, 'Use approximation="nystroem", or fewer rows'),
        ({"approximation": None}, 'Use approximation="rpcholesky", fewer components, or fewer rows'),
    ],
)
def test_a_matrix_larger_than_memory_is_refused_before_anything_is_made(how, instead):
    """1e5 rows have a matrix of 75 GiB, and LAPACK takes three times as much: not one of its numbers is asked for."""
    rows = np.random.default_rng(0).normal(size=(100_000, 2))
    words = rf"100000 x 100000 kernel matrix needs 223\.5 GiB.*{instead}"
    with budget.limited(2**34), Allocated() as taken, pytest.raises(MemoryError, match=words):
        KernelPCA(**how).fit(rows)
    assert taken.peak < 5 * rows.nbytes


def test_the_units_of_a_given_matrix_are_of_no_account():
    K, new = Gaussian(0.1).evaluate(X), Gaussian(0.1).evaluate(NEW, X)
    plain = KernelPCA(3, kernel="precomputed").fit(K)
    for unit in (1e-290, 1e-150, 1e150, 1e290):
        found = KernelPCA(3, kernel="precomputed").fit(K * unit)
        assert found.certificate_.holds
        np.testing.assert_allclose(found.eigenvalues_ / unit, plain.eigenvalues_, rtol=1e-12)
        np.testing.assert_allclose(found.transform(new * unit) / np.sqrt(unit), plain.transform(new), atol=1e-11)
        np.testing.assert_allclose(
            found.certificate_.details["floor"] / unit, plain.certificate_.details["floor"], rtol=0.1
        )


def test_matrices_of_negative_eigenvalues_know_their_rounding():
    """Largest in magnitude, or taken out by centring: rounding is in units of these, and passes for no component."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    negative = -(Q * np.logspace(8, 0, 40)) @ Q.T
    taken_out = np.add.outer(*[1e8 * (Q[0] - Q[0].mean())] * 2)
    for K, count in ((negative, 0), (taken_out, 0), (taken_out + np.outer(Q[:, 1], Q[:, 1]), 1)):
        with pytest.warns(UserWarning, match="has 1 positive" if count else "igenvalue.* is 0|No eig"):
            model = KernelPCA(4, kernel="precomputed").fit((K + K.T) / 2)
        assert int((model.eigenvalues_ > 0).sum()) == count
        assert model.certificate_.holds


def test_shares_of_a_nearly_constant_kernel_are_shares():
    """The trace of its centred matrix is a small difference of large numbers: it must not be less than what it has."""
    for gamma in (1e-9, 1e-11, 1e-13):
        for n in (80, 510):
            rows = np.random.default_rng(3).normal(size=(n, 2))
            assert KernelPCA(2, gamma=gamma, random_state=0).fit(rows).explained_variance_ratio_.sum() <= 1


def test_eigenvalues_that_float32_does_not_hold():
    rows = X.astype(np.float32)
    with pytest.raises(ValueError, match="larger than float32 holds: give X as float64"):
        KernelPCA(2, kernel="poly", degree=30, coef0=1e3).fit(rows)
    assert np.isfinite(KernelPCA(2, kernel="poly", degree=30, coef0=1e3).fit(X).eigenvalues_).all()


@pytest.mark.parametrize("how", [{"gamma": 0.0}, {"kernel": "linear"}, {"gamma": 0.1, "approximation": "rpcholesky"}])
def test_rows_that_are_all_alike(how):
    rows = X if how.get("gamma") == 0 else np.ones((20, 4))
    with pytest.warns(UserWarning, match="every eigenvalue is 0"):
        model = KernelPCA(2, **how).fit(rows)
    assert not model.eigenvalues_.any()
    assert not model.transform(NEW).any()


def test_a_huge_gamma():
    np.testing.assert_allclose(KernelPCA(3, gamma=1e12).fit(X).eigenvalues_, 1.0, rtol=1e-10)


def test_negative_eigenvalues_are_told():
    model = KernelPCA(3, kernel="knn-rbf", gamma=0.1, n_neighbors=5).fit(X)
    assert model.negative_share_ > 0.01
    assert model.explained_variance_ratio_.sum() < 1
    indefinite = np.diag([4.0, 2.0, -3.0, 1.0])
    with pytest.warns(UserWarning, match="not positive semidefinite: its negative eigenvalues, 0.27 of all"):
        given = KernelPCA(kernel="precomputed").fit(indefinite)
    values = np.linalg.eigvalsh((np.eye(4) - 0.25) @ indefinite @ (np.eye(4) - 0.25))
    np.testing.assert_allclose(given.eigenvalues_, values[values > 1e-9][::-1], rtol=1e-10)
    assert given.negative_share_ == pytest.approx(-values.min() / np.abs(values).sum())


def test_none_is_all_positive_eigenvalues():
    assert KernelPCA(kernel="linear").fit(X).n_components_ == 4
    with pytest.warns(UserWarning, match="has 4 positive eigenvalues"):
        assert not KernelPCA(6, kernel="linear").fit(X).transform(NEW)[:, 4:].any()
    with pytest.warns(UserWarning, match="Features of this rank have 4 positive eigenvalues"):
        model = KernelPCA(6, kernel="linear", approximation="rpcholesky").fit(X)
    assert model.transform(NEW).shape == (15, 6)


@pytest.mark.parametrize(
    ("how", "rows", "words"),
    [
        ({"kernel": "precomputed"}, X, "needs a square matrix"),
        ({"kernel": "precomputed"}, np.arange(9.0).reshape(3, 3), "needs a symmetric matrix"),
        ({"kernel": "precomputed", "approximation": "nystroem"}, np.eye(3), "solved exactly"),
        ({"kernel": "knn-rbf", "approximation": "nystroem"}, X, "kernels of two rows alone"),
        ({"kernel": "sigmoid", "approximation": "rpcholesky"}, X, 'Use "nystroem" or None'),
        ({"kernel": "poly", "approximation": "fourier"}, X, 'Use "nystroem"'),
        ({"approximation": "exact"}, X, "approximation must be one of auto"),
        ({"rank": 0}, X, "rank must be an integer"),
        ({"landmarks": [1]}, X, 'go with approximation="nystroem"'),
        ({"landmarks": [99], "approximation": "nystroem"}, X, "row numbers from 0 to 79"),
        ({"landmarks": np.ones((2, 3)), "approximation": "nystroem"}, X, "finite rows of 4 columns"),
        ({"landmarks": np.ones((0, 4)), "approximation": "nystroem"}, X, "finite rows of 4 columns"),
        ({"gamma": -1.0}, X, "gamma must be a finite number"),
        ({"kernel": "knn-rbf", "n_neighbors": 80}, X, "needs more than 80 training rows"),
    ],
)
def test_refusals_say_what_to_do(how, rows, words):
    with pytest.raises(ValueError, match=words):
        KernelPCA(2, **how).fit(rows)


@pytest.mark.parametrize("approximation", [None, "nystroem", "rpcholesky"])
@pytest.mark.parametrize("size", [1e120, 1e170])
def test_a_kernel_that_overflows_is_refused(approximation, size):
    with pytest.raises(ValueError, match="is not finite: it overflows"):
        KernelPCA(2, kernel="poly", gamma=1.0, approximation=approximation).fit(X * size)


def test_a_function_that_gives_no_numbers_is_refused():
    with pytest.raises(ValueError, match="or is NaN"):
        KernelPCA(2, kernel=lambda x, y: np.nan).fit(X)


def test_the_iteration_for_many_rows_calls_back_and_goes_on_from_its_checkpoint(tmp_path):
    rows = np.random.default_rng(0).normal(size=(1100, 5))
    seen = []
    expected = KernelPCA(
        3, gamma=0.1, random_state=0, tol=1e-9, callback=lambda state: seen.append(state.residual)
    ).fit(rows)
    assert len(seen) == len(expected.result_.history) > 1
    assert expected.n_iter_ > 1

    def interrupt(state):
        if state.residual < seen[0]:
            raise KeyboardInterrupt

    again = KernelPCA(3, gamma=0.1, random_state=0, tol=1e-9, checkpoint=tmp_path / "state")
    with pytest.raises(KeyboardInterrupt):
        again.set_params(callback=interrupt).fit(rows)
    assert (tmp_path / "state").exists()
    again.set_params(callback=None).fit(rows)
    np.testing.assert_allclose(again.eigenvalues_, expected.eigenvalues_, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "knn-rbf", "normalized-rbf", "cosine"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_new_rows_that_are_no_numbers_are_refused(kernel, value):
    rows = NEW.copy()
    rows[2, 1] = value
    with pytest.raises(ValueError, match=f"{value} in column 1".replace("nan", "NaN")):
        KernelPCA(2, kernel=kernel).fit(X).transform(rows)


@pytest.mark.parametrize(
    "kernel", [*KERNELS[:8], Linear() + Gaussian(0.1), Polynomial(0.1, 2) * Gaussian(0.2)], ids=str
)
def test_model_files_hold_every_kernel(kernel, tmp_path):
    model = KernelPCA(2, kernel=kernel, gamma=0.05).fit(X)
    princomp.save(model, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    np.testing.assert_array_equal(again.transform(NEW), model.transform(NEW))


@pytest.mark.parametrize("approximation", ["nystroem", "rpcholesky"])
@pytest.mark.parametrize("apart", [40.0, 105.0, 1e4])
def test_intervals_of_dense_clouds_far_from_the_mean_hold(approximation, apart):
    """Their squares are large beside their distances: what rounds there, landmarks that are alike make larger."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        clouds = 0.1 * rng.normal(size=(240, 2)) + np.repeat([-apart, apart], 120)[:, None]
        exact = KernelPCA(5, gamma=1.0, approximation=None).fit(clouds)
        near = KernelPCA(5, gamma=1.0, approximation=approximation, rank=60, random_state=seed).fit(clouds)
        for intervals, truth in (
            (near.eigenvalue_intervals_, exact.eigenvalues_),
            (near.ratio_intervals_, exact.explained_variance_ratio_),
        ):
            assert (intervals[:, 0] <= truth).all()
            assert (truth <= intervals[:, 1]).all()


def test_landmarks_of_large_and_tiny_kernels():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    how = {"random_state": 0, "rank": 20, "approximation": "rpcholesky"}
    large = KernelPCA(2, kernel="poly", degree=10, **how).fit(rows * 1e8)
    lower, upper = large.eigenvalue_intervals_.T
    truth = KernelPCA(2, kernel="poly", degree=10, approximation=None).fit(rows * 1e8).eigenvalues_
    assert truth.min() > 1e160
    assert ((lower <= truth) & (truth <= upper)).all()
    with pytest.raises(ValueError, match="no digits so near 0"):
        KernelPCA(2, kernel="linear", **how).fit(rows * 1e-160)


@pytest.mark.parametrize("unit", [1e-120, 1e-82, 1e120])
def test_squares_of_tiny_or_huge_entries_are_not_lost_by_the_iteration(unit):
    rows = np.random.default_rng(0).normal(size=(1100, 2))
    model = KernelPCA(2, kernel="linear", approximation=None, random_state=0).fit(rows * unit)
    expected = np.linalg.svd(rows - rows.mean(axis=0))[1] ** 2
    np.testing.assert_allclose(model.eigenvalues_ / unit / unit, expected, rtol=1e-12)
    assert model.certificate_.holds


def test_a_sparse_kernel_matrix_may_be_given():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    given = KernelPCA(2, kernel="precomputed").fit(scipy.sparse.csr_array(rows @ rows.T))
    np.testing.assert_allclose(given.eigenvalues_, KernelPCA(2, kernel="linear").fit(rows).eigenvalues_, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("unit", [1e-310, 1e-165, 1e155, 1e305])
def test_cosines_do_not_depend_on_units(unit, kind):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    rtol = 1e-12 if unit > 1e-300 else 1e-5  # cells are rounded there
    expected = KernelPCA(2, kernel="cosine").fit(rows).eigenvalues_
    np.testing.assert_allclose(KernelPCA(2, kernel="cosine").fit(kind(rows * unit)).eigenvalues_, expected, rtol=rtol)
