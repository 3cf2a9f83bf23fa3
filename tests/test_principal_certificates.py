"""Certificates of principal components: what was once called right and was wrong, and what can be forged.

Answers are judged by LAPACK, in `truth`, never by princomp.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from helpers import data_with_spectrum
from princomp import PCA, certificates
from princomp.certificates import floor_of_data, principal_components, taken_off
from princomp.certificates import left_out as left_out_module
from princomp.data import Centered, as_rows, statistics

G = np.random.default_rng(0).standard_normal((2000, 1200))


def truth(X, k, *, center=True):
    """The k largest variances and their directions, (k,) and (k, p)."""
    X = X - X.mean(axis=0) if center else X
    _, s, Vt = np.linalg.svd(X, full_matrices=False)
    return s[:k] ** 2 / (len(X) - 1), Vt[:k]


def assert_right(pca, X, *, center=True, rtol=1e-9):
    """Variances as LAPACK has them, orthonormal components that capture them, and a certificate that says so."""
    k = pca.n_components_
    variances, _ = truth(X, k, center=center)
    np.testing.assert_allclose(pca.explained_variance_, variances, rtol=rtol)
    V = pca.components_.astype(float)
    np.testing.assert_allclose(V @ V.T, np.eye(k), atol=1e-7 if pca.components_.dtype == np.float32 else 1e-12)
    scores = (X - X.mean(axis=0) if center else X) @ V.T
    assert np.sum(scores**2) / (len(X) - 1) >= (1 - 1e-6) * variances.sum()
    assert pca.explained_variance_ratio_.sum() <= 1 + 1e-6
    assert pca.certificate_.holds
    assert pca.certificate_.dominant


# --- columns of very different size ---------------------------------------------------------------


def table_with_an_id():
    return np.c_[np.arange(2000) * 1e3, np.random.default_rng(1).random((2000, 1100))]


def test_an_id_column_hides_nothing():
    X = table_with_an_id()
    pca = PCA(10, random_state=0).fit(X)
    assert_right(pca, X)
    assert pca.solver_ == "krylov"
    assert pca.n_iter_ <= 60  # once it was 473
    assert pca.certificate_.details["known"].max() <= 1e-6


@pytest.mark.parametrize("p", [300, 600])
def test_an_id_column_makes_auto_leave_the_covariance(p):
    X = table_with_an_id()[:, :p]
    pca = PCA(5).fit(X)
    assert pca.solver_ != "eigh"
    assert_right(pca, X)
    told = PCA(5, solver="eigh").fit(X)
    assert told.certificate_.holds
    assert "components 2 to 5 are " in str(told.certificate_)
    error = np.abs(told.explained_variance_ - truth(X, 5)[0])
    assert np.all(error <= told.certificate_.details["floor"])


def test_three_giant_columns():
    X = G.copy()
    X[:, :3] *= 1e6
    assert_right(PCA(10, random_state=0).fit(X), X)


def test_a_giant_column_in_single_precision():
    X = G.astype(np.float32)
    X[:, 0] *= 1e6
    assert_right(PCA(10, random_state=0).fit(X), X.astype(float), rtol=1e-6)


def test_a_giant_column_of_a_sparse_matrix():
    scale = np.r_[1e6, np.ones(1499)]
    X = sp.random_array((3000, 1500), density=0.01, format="csr", rng=0) * scale
    assert_right(PCA(10, random_state=0).fit(sp.csr_array(X)), X.toarray())


def test_an_offset_without_centring():
    X = G + 1e3
    assert_right(PCA(5, center=False, random_state=0).fit(X), X, center=False)


@pytest.mark.parametrize("n_components", [5, 0.5, None])
def test_ratios_are_shares_of_the_true_total(n_components):
    X = table_with_an_id()[:, :40]
    pca = PCA(n_components).fit(X)
    expected = pca.explained_variance_ / np.var(X, axis=0, ddof=1).sum()
    np.testing.assert_allclose(pca.explained_variance_ratio_, expected, rtol=1e-12)


# --- ties, clusters, one giant value --------------------------------------------------------------


@pytest.mark.parametrize("below", [1.9, 1.99, 1.999])
def test_more_ties_than_a_block_holds(below):
    X = np.diag(np.sqrt(np.r_[[2.0] * 12, np.linspace(below, 0, 888)]))
    pca = PCA(12, solver="krylov", center=False, random_state=0).fit(X)
    assert_right(pca, X, center=False)
    np.testing.assert_allclose(pca.explained_variance_, 2 / 899)


def test_the_history_has_all_attempts():
    X = np.diag(np.sqrt(np.r_[[2.0] * 12, np.linspace(1.9, 0, 888)]))
    pca = PCA(12, solver="krylov", center=False, random_state=0).fit(X)
    iterations = pca.result_.history.iteration
    assert iterations == sorted(set(iterations))
    assert iterations[0] <= 12
    assert iterations[-1] == pca.n_iter_
    assert pca.result_.history.seconds == sorted(pca.result_.history.seconds)


@pytest.mark.parametrize("solver", ["svd", "krylov", "optimize"])
def test_small_components_are_not_called_rounding_if_they_are_known(solver):
    X = np.c_[np.arange(300) * 1e6, np.random.default_rng(0).random((300, 8))]
    pca = PCA(4, solver=solver, random_state=0).fit(X)  # a warning would be an error
    assert pca.rank_ == 4
    assert_right(pca, X)


@pytest.mark.parametrize("solver", ["auto", "krylov"])
def test_ties_far_below_one_giant_value(solver):
    values = np.r_[1e8, [1.0] * 19, np.linspace(0.99, 0, 880)]
    pca = PCA(20, solver=solver, center=False, random_state=0).fit(sp.diags_array(np.sqrt(values)).tocsr())
    np.testing.assert_allclose(pca.explained_variance_, values[:20] / 899, rtol=1e-9)
    assert pca.certificate_.holds


@pytest.mark.parametrize("solver", ["eigh", "svd", "krylov"])
@pytest.mark.parametrize("decades", [4, 8, 12])
def test_graded_values_are_held_to_their_own_size(solver, decades):
    """A residual relative to the leading value would let the last ones be anything."""
    values = np.logspace(0, -decades, 40)
    X = data_with_spectrum(300, 200, np.sqrt(values))
    pca = PCA(12, solver=solver, random_state=0).fit(X)
    expected = truth(X, 12)[0]
    details = pca.certificate_.details
    assert pca.certificate_.holds
    assert np.all(np.abs(pca.explained_variance_ - expected) <= np.maximum(1e-5 * expected, details["floor"]))
    assert details["floor"].max() <= 1e-12 * expected[0]


# --- stopped early --------------------------------------------------------------------------------


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_krylov_stopped_early_has_all_components_that_were_asked_for(max_iter):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        pca = PCA(100, solver="krylov", max_iter=max_iter, random_state=0).fit(G)
    assert pca.components_.shape == (100, 1200)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(100), atol=1e-12)
    assert not pca.certificate_.holds
    scores = (G - G.mean(axis=0)) @ pca.components_.T
    np.testing.assert_allclose(pca.explained_variance_, scores.var(axis=0, ddof=1), rtol=1e-9)


# --- forged answers -------------------------------------------------------------------------------


def small():
    X = np.random.default_rng(3).normal(size=(80, 20)) * np.linspace(9, 1, 20)
    return X, *truth(X, 20)


def turned(Vt, i, j, angle):
    """Rows i and j turned by an angle in their plane."""
    Vt = Vt.copy()
    Vt[[i, j]] = np.cos(angle) * Vt[[i, j]] + np.sin(angle) * np.array([[1.0], [-1.0]]) * Vt[[j, i]]
    return Vt


FORGERIES = {
    "the last instead of the first": lambda v, V: (v[-3:], V[-3:]),
    "one skipped": lambda v, V: (v[[0, 1, 3]], V[[0, 1, 3]]),
    "a variance a little large": lambda v, V: (v[:3] * [1, 1, 1 + 1e-5], V[:3]),
    "a variance a little small": lambda v, V: (v[:3] * [1, 1, 1 - 1e-5], V[:3]),
    "two turned within the span": lambda v, V: (v[:3], turned(V, 1, 2, 1e-4)[:3]),
    "one turned out of the span": lambda v, V: (v[:3], turned(V, 2, 3, 1e-4)[:3]),
    "one twice": lambda v, V: (v[[0, 0, 1]], V[[0, 0, 1]]),
    "too long": lambda v, V: (v[:3], V[:3] * 1.001),
    "not orthogonal": lambda v, V: (v[:3], V[:3] + 1e-4 * V[[1, 2, 0]]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_components_are_rejected(name):
    X, variances, Vt = small()
    assert principal_components(X, Vt[:3], variances[:3]).holds
    forged_variances, forged = FORGERIES[name](variances, Vt)
    assert not principal_components(X, forged, forged_variances).holds


def test_small_components_are_not_excused_by_a_large_one():
    """Two small components turned by a thousandth of a radian: beside the first one, that is nothing."""
    X = data_with_spectrum(100, 10, np.sqrt(np.r_[1e8, np.linspace(2, 1, 9)]))
    variances, Vt = truth(X, 3)
    assert principal_components(X, Vt, variances).holds
    forged = principal_components(X, turned(Vt, 1, 2, 1e-3), variances)
    assert not forged.holds
    assert forged.residual * variances[1] < 1e-11 * variances[0]


def test_rounding_of_a_matrix_that_is_not_that_of_the_data_is_seen(monkeypatch):
    """Once X'X has gone wrong, no eigenvector can tell; the vector that went through the same pass can."""
    X = np.random.default_rng(0).normal(size=(600, 30))
    made = statistics._scatter

    def faulty(block, rows, w):
        sums, squares = made(block, rows, w)
        squares[3, 4] = squares[4, 3] = squares[3, 4] + 0.01 * squares[3, 3]
        return sums, squares

    assert PCA(3, solver="eigh").fit(X).certificate_.holds
    monkeypatch.setattr(statistics, "_scatter", faulty)
    assert not PCA(3, solver="eigh").fit(X).certificate_.holds


# --- what was left out ----------------------------------------------------------------------------


def leaving_out(values, k, rng, **how):
    """Probe a diagonal operator deflated by its first k axes."""
    V = np.eye(len(values), k)
    return certificates.probe(lambda W: values[:, None] * W, V, values[:k], 1e-6, rng, **how)


def test_the_bound_of_a_probe_is_missed_no_more_often_than_it_says(monkeypatch):
    """With a stated probability of one in five, misses can be counted: here 400 probes of one hidden direction."""
    monkeypatch.setattr(left_out_module, "MISS", 0.2)  # the most that may be asked for
    values = np.r_[1.0, np.full(299, 0.7), 1.25]
    missed = 0
    for seed in range(400):
        found = leaving_out(values, 1, np.random.default_rng(seed), miss=0.2)
        missed += found.found <= 1.0 and found.bound < 1.25
    assert missed <= 0.2 * 400


@pytest.mark.parametrize("vectors", [1, 4])
def test_after_one_product_the_bound_is_that_of_rank_one(vectors):
    """There a Ritz value is the eigenvalue times a squared cosine, whose distribution is known: no bound is smaller."""
    from scipy.stats import beta

    cosine = beta.ppf(1e-3, vectors / 2, (300 - vectors) / 2)
    assert left_out_module._excess(300, vectors, 1, 1e-3) == pytest.approx(1 / cosine, rel=1e-9)


def test_what_is_left_out_may_be_larger_by_tol_and_rounding():
    """The last one kept is not known any better."""
    left_out = left_out_module.LeftOut(1.001, 1.001)
    assert left_out.dominated_by(1.0, tol=2e-3, floor=0.0)
    assert left_out.dominated_by(1.0, tol=0.0, floor=2e-3)
    assert not left_out.dominated_by(1.0, tol=5e-4, floor=4e-4)
    assert left_out_module.LeftOut(1.4, 1.4).dominated_by(1.0, tol=0.5, floor=0.0)


def test_a_probe_finds_what_was_left_out():
    values = np.r_[3.0, 2.0, np.linspace(1.9, 0, 500), 2.5]
    for seed in range(20):
        found = leaving_out(values, 2, np.random.default_rng(seed))
        assert found.found > 2.0
        assert not found.dominated_by(2.0, 1e-6, 0.0)
        assert np.abs(found.vectors[-1]).max() > 0.3  # the direction that was missed, to go on with


def test_a_probe_needs_few_products_where_the_gap_is_wide():
    products = []

    def apply(W):
        products.append(W.shape[1])
        return np.r_[5.0, np.full(999, 1.0)][:, None] * W

    found = certificates.probe(apply, np.eye(1000, 1), np.array([5.0]), 1e-6, np.random.default_rng(0))
    assert found.dominated_by(5.0, 1e-6, 0.0)
    assert len(products) <= 5
    assert found.miss <= 1e-3


def test_what_is_left_of_the_trace_needs_no_probe():
    found = leaving_out(np.r_[10.0, np.full(9, 0.1)], 1, np.random.default_rng(0), left=0.9)
    assert (found.bound, found.miss) == (0.9, 0.0)


@pytest.mark.parametrize("k", [1, 4, 19, 20])
def test_cholesky_tells_what_a_matrix_leaves_out(k):
    X, variances, Vt = small()
    S = np.cov(X.T)
    kept = certificates.left_out_of_matrix(S, Vt[:k].T, variances[:k], 1e-6, 1e-12)
    assert kept.dominated_by(variances[k - 1], 1e-6, 1e-12)
    assert kept.miss == 0
    if k < 20:
        pick = [*range(k - 1), k]  # the k-th is skipped
        lost = certificates.left_out_of_matrix(S, Vt[pick].T, variances[pick], 1e-6, 1e-12)
        assert not lost.dominated_by(variances[k], 1e-6, 1e-12)
        assert lost.found == pytest.approx(variances[k - 1])


# --- what it says ---------------------------------------------------------------------------------


def test_the_sentence_says_how_sure_it_is():
    X = np.random.default_rng(0).normal(size=(300, 200))
    assert str(PCA(3, solver="svd").fit(X).certificate_).endswith("nothing larger was left out.")
    probed = PCA(3, solver="krylov", random_state=0).fit(X).certificate_
    stated = float(str(probed).partition("nothing more than ")[2].partition(" %")[0])
    assert 100 * probed.details["left out"] <= stated <= 100 * probed.details["left out"] + 0.1
    assert "but for a chance of 1e-03" in str(probed)
    assert probed.details["left out"] <= 0.1
    assert probed.details["miss"] <= 1e-3


# --- found by trying to break them ----------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-5, 1e-7])
def test_noise_far_below_a_few_strong_directions(noise):
    """What is missing of a strong direction is larger than all that is left, until it is found to the last digit."""
    draw = [np.random.default_rng(seed).standard_normal for seed in range(3)]
    X = draw[0]((1500, 3)) @ draw[1]((3, 1100)) + noise * draw[2]((1500, 1100))
    assert_right(PCA(10, random_state=0).fit(X), X, rtol=1e-5)


@pytest.mark.parametrize("power", [2, 4])
def test_many_components_of_a_spectrum_that_falls_without_a_gap(power):
    draw = np.random.default_rng(0)
    basis = np.linalg.qr(draw.standard_normal((1100, 1100)))[0]
    X = draw.standard_normal((1200, 1100)) * np.arange(1, 1101.0) ** -power @ basis
    assert_right(PCA(60, random_state=0).fit(X), X, rtol=1e-5)


@pytest.mark.parametrize(("density", "offset"), [(0.3, 0), (1, 3), (1, 200)])
def test_sparse_data_with_large_means(density, offset):
    X = sp.random_array((1500, 1200), density=density, rng=1, data_sampler=lambda size: np.ones(size)).toarray()
    if density == 1:
        X = np.random.default_rng(0).standard_normal((1500, 1200)) + offset
    assert_right(PCA(6, random_state=0).fit(sp.csr_array(X)), X, rtol=1e-6)


def test_ties_of_all_components_that_there_are():
    X = np.diag(np.r_[np.ones(15), 0.5])
    pca = PCA(16, solver="krylov", center=False, random_state=0).fit(X)
    assert_right(pca, X, center=False)


def test_components_beyond_the_rank_take_no_time():
    draw = np.random.default_rng(0)
    X = draw.standard_normal((2000, 30)) @ draw.standard_normal((30, 1100))
    with pytest.warns(UserWarning, match="numerical rank 30: components 31 to 50") as warned:
        pca = PCA(50, random_state=0).fit(X)
    assert len(warned) == 1
    assert pca.certificate_.holds
    assert pca.n_iter_ <= 30
    np.testing.assert_allclose(pca.explained_variance_[:30], truth(X, 30)[0], rtol=1e-9)


def test_no_warning_of_a_limit_that_did_no_harm():
    """The last attempt, for further copies of a tied value, is cut off; its answer is good enough all the same."""
    X = np.diag(np.sqrt(np.r_[[2.0] * 9, np.linspace(1.9, 0, 391)]))
    options = {"solver": "krylov", "center": False, "random_state": 0}
    assert PCA(12, **options).fit(X).n_iter_ > 75
    pca = PCA(12, max_iter=70, **options).fit(X)  # a warning would be an error
    assert_right(pca, X, center=False, rtol=1e-6)
    assert pca.result_.status


@pytest.mark.parametrize("solver", ["eigh", "svd", "krylov"])
def test_a_column_too_far_off_to_vary_does_not_count(solver):
    draw = np.random.default_rng(0)
    X = draw.standard_normal((300, 5))
    X[:, 0] = 1e15 + draw.integers(0, 4, 300)  # its deviation is in its last digits
    with pytest.warns(UserWarning, match="numerical rank 4"):
        pca = PCA(5, solver=solver, scale=True, random_state=0).fit(X)
    expected = np.linalg.eigvalsh(np.corrcoef(X[:, 1:].T))[::-1]
    np.testing.assert_allclose(pca.explained_variance_[:4], expected, rtol=1e-9)
    assert pca.explained_variance_ratio_.sum() == pytest.approx(1)


def test_the_floor_of_a_covariance_does_not_depend_on_the_number_of_samples():
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((30, 30)))[0]
    S = (basis * np.logspace(0, -18, 30)) @ basis.T
    floors = [PCA(12).fit_covariance(S, n).certificate_.details["floor"] for n in (None, 10**6)]
    np.testing.assert_allclose(*floors)
    assert floors[0].min() >= 1e-16


@pytest.mark.parametrize("solver", ["eigh", "svd", "krylov"])
def test_numbers_of_a_certificate_are_in_the_units_of_variances(solver):
    X = data_with_spectrum(200, 12, np.arange(12, 0, -1.0), seed=0)
    pca = PCA(3, solver=solver, random_state=0).fit(X)
    fourth = truth(X, 4)[0][3]
    details = pca.certificate_.details
    assert 0 <= details["deflated norm"] <= fourth * (1 + 1e-9)
    if solver == "svd":
        assert details["deflated norm"] == pytest.approx(fourth, rel=1e-9)
    assert (details["error"] >= details["floor"]).all()  # nothing is known better than rounding lets it be
    assert (details["floor"] > 0).all()


def test_a_rounded_mean_counts_in_every_row():
    X = Centered(as_rows(np.zeros((50, 2))), np.array([1e12, 0.0]))
    rounded = np.finfo(float).eps * 1e12
    assert floor_of_data(X, np.zeros(1))[0] == pytest.approx(50 * rounded**2)


def test_a_mean_that_is_taken_off_sparse_scores_counts_in_every_row():
    rows = as_rows(sp.csr_array((50, 2)))
    assert taken_off(Centered(rows, np.array([3.0, 4.0]))) == 50 * 25
    assert taken_off(Centered(rows, np.array([3.0, 4.0]), np.array([2.0, 0.5]))) == 50 * 40
    assert taken_off(Centered(rows, np.array([3.0, 4.0]), dense_tiles=True)) == 0


def test_the_order_of_components_is_not_trusted():
    X, variances, Vt = small()
    assert not principal_components(X, Vt[[4, 0]], variances[[4, 0]]).holds
    assert principal_components(X, Vt[[1, 0]], variances[[1, 0]]).holds


def test_components_beyond_the_rank_are_no_reason_to_refuse():
    draw = np.random.default_rng(0)
    X = draw.standard_normal((200, 3)) @ draw.standard_normal((3, 8))
    with pytest.warns(UserWarning, match="rank 3"):
        pca = PCA(5).fit(X)
    assert pca.certificate_.holds
    assert principal_components(X, pca.components_, pca.explained_variance_).holds


@pytest.mark.parametrize("seed", range(10))
def test_a_graded_covariance_holds(seed):
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((50, 50)))[0]
    S = (basis * np.logspace(0, -13, 50)) @ basis.T
    assert PCA(50).fit_covariance((S + S.T) / 2).certificate_.holds


@pytest.mark.parametrize(("claimed", "there"), [(1.0, False), (0.5, True)])
def test_what_single_precision_cannot_tell_is_asked_again_in_double(claimed, there):
    """Products that are a little too large make it look as if something had been left out: is it there?"""
    values = np.r_[1.2, 1.1, claimed, np.linspace(0.9, 0.1, 60)]
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((63, 63)))[0]
    S, V = (Q * values) @ Q.T, Q[:, :3]
    asked = []

    def exact(W):
        asked.append(W.shape[1])
        return S @ W

    found = left_out_module.probe(
        exact, V, values[:3], 1e-6, np.random.default_rng(1), rough=lambda W: 1.2 * (S @ W), miss=1e-3
    )
    assert asked
    assert 0.5 < found.found <= 0.9 + 1e-9
    assert found.dominated_by(claimed, tol=1e-6, floor=0.0) != there


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ([0.0, 1e-7], ""),
        ([0.0, 0.05], "; component 2 is known to 1 digit only, beside the rounding of the first one"),
        ([0.0, 0.005, 0.001], "; components 2 to 3 are known to 2 digits only, beside the rounding of the first one"),
        ([0.0, 1e-3, 2.0], "; components 2 to 3 are not known, beside the rounding of the first one"),
        ([0.0, np.nan], "; component 2 is not known, beside the rounding of the first one"),
    ],
)
def test_components_of_few_digits_are_named(known, said):
    from princomp.result import _digits

    assert _digits({"known": np.array(known)}, 1e-6) == said
