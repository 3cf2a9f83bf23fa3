"""Robust rows, from one column up: univariate MCD, MCD, outlyingness, ROBPCA, the spatial median, spherical PCA."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.covariance import MinCovDet

from helpers import orthonormal, subspace_sine
from princomp.certificates.robust_rows import rows_residual
from princomp.data import Centered, as_rows, statistics
from princomp.estimators.robust import robpca, spherical
from princomp.estimators.robust.distances import distances, orthogonal_limit, score_limit
from princomp.estimators.robust.problem import open_problem
from princomp.progress import Tell
from princomp.result import run
from princomp.solvers.robust import covariance, outlyingness, spatial_median, univariate
from storages import NEEDS, STORAGES

METHODS = {"robpca": robpca, "spherical": spherical}
NOMINAL = 1 - 0.975**2


def posed(X, k=None, seed=0, tol=1e-6, max_iter=1000, **parameters):
    given = {"coverage": 0.75, "scale": False, "tol": tol, "max_iter": max_iter} | parameters
    return open_problem(
        as_rows(X),
        False,
        asked=k,
        parameters=given,
        rng=np.random.default_rng(seed),
        drive=partial(run, tol=tol, max_iter=max_iter),
        tell=Tell([]),
    )


def fit(X, k=None, method="robpca", **how):
    return METHODS[method].solve(posed(X, k, **how))


def judged(X, found):
    """Distances (n, 2) of rows, and which are outliers by either."""
    problem = posed(X)
    rows = Centered(problem.rows, found.mean / problem.unit, problem.unit / (1 if found.scale is None else found.scale))
    rows.factor = np.broadcast_to(rows.factor, problem.rows.shape[1:])
    size = float(np.linalg.norm(found.mean / (1 if found.scale is None else found.scale)))
    both = rows.gather(distances, found.V, found.variances, size, width=2)
    return both, (both[:, 0] > score_limit(found.rank)) | (both[:, 1] > orthogonal_limit(both[:, 1]))


def outliers(X, found):
    return set(np.flatnonzero(judged(X, found)[1]))


def classical(X, k):
    """PCA as it is, in the same clothes."""
    from types import SimpleNamespace

    mean = X.mean(axis=0)
    _, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    return SimpleNamespace(V=Vt[:k].T, variances=s[:k] ** 2 / (len(X) - 1), mean=mean, scale=None, rank=k)


def planted(n, p, bad=0.2, k=3, noise=0.05, far=8.0, seed=0):
    """Rows near a plane through a point far from zero; the first ones lie together, off the plane."""
    rng = np.random.default_rng(seed)
    V = orthonormal(rng, p, k + 1)
    X = rng.normal(size=(n, k)) * np.linspace(5, 3, k) @ V[:, :k].T + noise * rng.normal(size=(n, p)) + 10
    count = int(bad * n)
    X[:count] += far * V[:, k]
    return X, V[:, :k].T, set(range(count))


# --- one column -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "h"), [(9, 5), (9, 7), (10, 6), (8, 8)])
def test_the_narrowest_of_sorted_numbers_is_the_narrowest_of_all_subsets(n, h):
    X = np.random.default_rng(n).normal(size=(n, 20)) ** 3
    mean, variance = univariate.narrowest(np.sort(X, axis=0), h)
    for column, m, v in zip(X.T, mean, variance):
        best = min(itertools.combinations(column, h), key=np.var)
        np.testing.assert_allclose([m, v], [np.mean(best), np.var(best, ddof=1)], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [20, 50, 1000])
def test_scales_of_normal_numbers_are_their_standard_deviations(n):
    X = 3 + 2 * np.random.default_rng(0).normal(size=(n, 200_000 // n))
    location, scale = univariate.univariate_mcd(X, univariate.subset_size(n, 1, 0.75))
    assert np.mean(location) == pytest.approx(3, abs=0.02)
    assert np.mean(scale**2) == pytest.approx(4, rel=0.05)
    assert np.median(univariate.mad(X)) == pytest.approx(2, rel=1.5 / n)


@pytest.mark.parametrize("side", [-1e12, 1e12])
def test_numbers_far_out_cost_no_digits(side):
    X = np.random.default_rng(0).normal(size=(100, 5))
    X[:30] = -40.0
    near = univariate.univariate_mcd(X, 60)
    X[:30] = side
    np.testing.assert_allclose(univariate.univariate_mcd(X, 60), near, rtol=1e-10)


def test_numbers_far_from_zero_lose_only_what_they_have_not():
    X = np.random.default_rng(0).normal(size=(100, 5))
    location, scale = univariate.univariate_mcd(X, 75)
    there, same = univariate.univariate_mcd(X + 1e8, 75)
    np.testing.assert_allclose(there - 1e8, location, atol=1e-7)
    np.testing.assert_allclose(same, scale, rtol=1e-7)


def test_where_h_numbers_are_one_the_scale_is_zero_and_the_location_that_number():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[4:] = 1 / 3
    location, scale = univariate.univariate_mcd(X, 15)
    np.testing.assert_array_equal(location, np.full(3, 1 / 3))
    np.testing.assert_array_equal(scale, 0)
    assert (univariate.column_scales(X, 15) > 0).all()  # to divide by
    np.testing.assert_array_equal(univariate.column_scales(np.full((20, 2), 7.3), 15), 1)


def test_lengths_of_normal_rows_have_their_limit_and_their_mean_square():
    lengths = np.linalg.norm(np.random.default_rng(0).normal(size=(100_000, 18)), axis=1)
    assert np.mean(lengths > univariate.length_limit(lengths)) == pytest.approx(0.025, abs=0.002)
    assert univariate.mean_square(lengths) == pytest.approx(18, rel=0.01)
    lengths[:20_000] *= 100
    assert univariate.mean_square(lengths) == pytest.approx(18, rel=0.2)


# --- covariance -------------------------------------------------------------------------------------


def mcd(X, h, seed=0):
    Z = covariance.standardised(X, h)
    begin = covariance.start(Z, h, np.random.default_rng(seed))
    result = run(partial(covariance.concentrate, Z), begin, tol=0, max_iter=100)
    return covariance.reweighted(X, result.value["subsets"][0]), result


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "p", "h"), [(11, 2, 8), (12, 3, 9), (10, 1, 6)])
def test_no_subset_of_all_has_a_smaller_determinant(n, p, h, seed):
    X = np.random.default_rng(seed).normal(size=(n, p))
    X[:2] += 5
    found, _ = mcd(X, h, seed)
    least = min(np.linalg.det(np.atleast_2d(np.cov(X[list(rows)].T))) for rows in itertools.combinations(range(n), h))
    assert np.linalg.det(np.atleast_2d(np.cov(X[found.subset].T))) == pytest.approx(least, rel=1e-9)


def test_steps_never_raise_the_determinant_and_end_where_no_row_is_exchanged():
    X = planted(300, 6, k=2)[0]
    found, result = mcd(X, 200)
    assert (np.diff(result.history.objective) <= 1e-12).all()
    assert result.status.code == "converged"
    assert result.certificate.residual == 0
    some = X[found.subset]
    apart = X - some.mean(axis=0)
    lengths = np.einsum("ij,ij->i", apart @ np.linalg.inv(np.cov(some.T)), apart)
    assert set(np.argsort(lengths)[:200]) == set(np.flatnonzero(found.subset))


@pytest.mark.parametrize(("n", "p"), [(40, 3), (100, 5), (400, 8)])
def test_covariances_of_normal_rows_are_right_on_average(n, p):
    total = np.zeros((p, p))
    for seed in range(60 if n < 400 else 15):
        X = np.random.default_rng(seed).normal(size=(n, p))
        total += mcd(X, univariate.subset_size(n, p, 0.75), seed)[0].covariance
    assert np.trace(total) / p / (60 if n < 400 else 15) == pytest.approx(1, abs=0.06)


def test_it_turns_with_the_data():
    X, _, bad = planted(200, 4, k=2)
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(4, 4)), rng.normal(size=4)
    here, there = mcd(X, 150)[0], mcd(X @ A.T + b, 150)[0]
    np.testing.assert_array_equal(here.regular, there.regular)
    np.testing.assert_allclose(there.mean, A @ here.mean + b, rtol=1e-9)
    np.testing.assert_allclose(there.covariance, A @ here.covariance @ A.T, rtol=1e-8)
    assert not here.regular[list(bad)].any()


def test_the_determinant_is_about_as_small_as_scikit_learns():
    for seed in range(3):
        X = planted(150, 5, k=2, seed=seed)[0]
        theirs = MinCovDet(random_state=seed).fit(X).raw_support_
        found, _ = mcd(X, int(theirs.sum()))
        ours = np.linalg.slogdet(np.cov(X[found.subset].T))[1]
        assert ours <= np.linalg.slogdet(np.cov(X[theirs].T))[1] + 0.02


def test_rows_on_a_hyperplane_leave_no_variance_across_and_all_others_are_irregular():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 4)) + 5
    X[:10] += rng.normal(size=(10, 4))
    found, _ = mcd(X, 45)
    assert found.rank == 2
    assert set(np.flatnonzero(~found.regular)) >= set(range(10))
    np.testing.assert_allclose(np.linalg.eigvalsh(found.covariance)[:2], 0, atol=1e-12)
    X[10:] = X[10]
    found, _ = mcd(X, 45)
    assert found.rank == 0
    np.testing.assert_array_equal(found.regular, np.arange(60) >= 10)
    np.testing.assert_allclose(found.mean, X[10], rtol=1e-14)


def test_a_row_of_any_size_is_only_a_row():
    X = planted(100, 4, k=2)[0]
    expected, _ = mcd(X, 75)
    for size in (1e6, 1e12, 1e100):
        X[0] = size
        found, _ = mcd(X, 75)
        np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-8)


# --- distances --------------------------------------------------------------------------------------


def test_distances_are_what_they_are_defined_as():
    rng = np.random.default_rng(0)
    X, V, variances = rng.normal(size=(30, 6)), orthonormal(rng, 6, 3), np.array([4.0, 2.0, 1.0])
    found = distances(X, slice(0, 30), V, variances)
    scores = X @ V
    np.testing.assert_allclose(found[:, 0], np.sqrt((scores**2 / variances).sum(axis=1)), rtol=1e-13)
    np.testing.assert_allclose(found[:, 1], np.linalg.norm(X - scores @ V.T, axis=1), rtol=1e-13)


def test_what_lies_along_a_component_without_variance_counts_as_off_the_plane():
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(30, 6)), orthonormal(rng, 6, 3)
    found = distances(X, slice(0, 30), V, np.array([4.0, 2.0, 0.0]))
    np.testing.assert_allclose(found, distances(X, slice(0, 30), V[:, :2], np.array([4.0, 2.0])), rtol=1e-13)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_rounding_is_no_distance(offset):
    rng = np.random.default_rng(0)
    V = orthonormal(rng, 9, 2)
    X = rng.normal(size=(500, 2)) @ V.T + offset
    found = distances(X - offset, slice(0, 500), V, np.ones(2), offset * 3)[:, 1]
    assert (found == 0).all()
    assert orthogonal_limit(found) == 0
    assert not (found > orthogonal_limit(found)).any()


def test_sparse_rows_have_the_distances_of_dense_ones():
    S = scipy.sparse.random_array((80, 30), density=0.2, rng=np.random.default_rng(0), format="csr")
    rng = np.random.default_rng(1)
    mean, V, variances = rng.normal(size=30) / 10, orthonormal(rng, 30, 3), np.array([3.0, 2.0, 1.0])
    both = (Centered(as_rows(X), mean).gather(distances, V, variances, width=2) for X in (S, S.toarray()))
    np.testing.assert_allclose(*both, rtol=1e-10)


def test_limits_are_those_of_normal_rows():
    assert score_limit(2) == pytest.approx(np.sqrt(-2 * np.log(0.025)))
    assert score_limit(0) == 0


# --- ROBPCA -----------------------------------------------------------------------------------------

SHAPES = [(100, 5), (150, 30), (60, 400)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [0, None])
def test_rows_that_lie_together_off_the_plane_are_found_and_do_not_turn_it(shape, seed):
    X, V, bad = planted(*shape)
    found = fit(X, 3, seed=seed)
    _, flagged = judged(X, found)
    assert flagged[list(bad)].all()
    assert flagged.sum() - len(bad) <= 0.2 * len(X)  # wide data fit themselves
    assert np.degrees(np.arcsin(subspace_sine(found.V.T, V))) < 5
    assert found.result.certificate.holds
    assert found.result.certificate.scope == "local"
    assert np.degrees(np.arcsin(subspace_sine(classical(X, 3).V.T, V))) > 20


def test_pca_itself_does_not_see_them():
    X, _, bad = planted(100, 5)
    assert len(outliers(X, classical(X, 3)) & bad) < len(bad) / 4


@pytest.mark.parametrize(("n", "p", "first"), [(1000, 20, 0), (1200, 24, 500)])
def test_clean_rows_are_flagged_as_often_as_the_limits_say(n, p, first):
    deviations = np.r_[5, 3, np.ones(p - 2)]
    rates = []
    for seed in range(first, first + 10):
        X = np.random.default_rng(seed).normal(size=(n, p)) * deviations
        found = fit(X, 2, seed=None)
        rates.append(len(outliers(X, found)) / n)
        assert np.degrees(np.arcsin(subspace_sine(found.V.T, classical(X, 2).V.T))) < 5
        np.testing.assert_allclose(found.variances, [25, 9], rtol=0.3)
        assert found.total == pytest.approx(25 + 9 + p - 2, rel=0.1)
    assert np.mean(rates) == pytest.approx(NOMINAL, abs=0.01)


def test_how_many_components_are_kept_where_nobody_says():
    X = np.random.default_rng(0).normal(size=(150, 30)) * np.r_[5, 5, 5, 0.5 * np.ones(27)]
    for method in METHODS:
        assert fit(X, method=method).V.shape == (30, 3)
        assert fit(X[:, :8], method=method).V.shape == (8, 3)


def test_units_of_columns_do_not_matter_where_they_are_scaled():
    X, _, bad = planted(150, 30)
    units = np.geomspace(1e-3, 1e3, 30)
    one, other = fit(X, 3, scale=True), fit(X * units, 3, scale=True)
    assert outliers(X, one) == outliers(X * units, other)
    assert outliers(X, one) >= bad
    np.testing.assert_allclose(other.scale, one.scale * units, rtol=1e-10)
    np.testing.assert_allclose(other.V, one.V, atol=1e-8)
    np.testing.assert_allclose(other.mean, one.mean * units, rtol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_turns_and_moves_with_the_rows(shape):
    X, _, _ = planted(*shape)
    Q = orthonormal(np.random.default_rng(1), shape[1], shape[1])
    here, there = fit(X, 3), fit(X @ Q + 100, 3)
    assert subspace_sine((Q.T @ here.V).T, there.V.T) < 1e-6
    np.testing.assert_allclose(there.variances, here.variances, rtol=1e-6)
    np.testing.assert_allclose(there.mean, here.mean @ Q + 100, atol=1e-6)


def test_variances_far_below_the_first_keep_their_digits():
    X = np.random.default_rng(0).normal(size=(60, 4))
    X[:, 0] = 1e6 * np.arange(60)  # a column of numbers that identify rows
    found = fit(X, 3)
    assert found.rank == 3
    np.testing.assert_allclose(found.variances[1:], 1, rtol=0.6)
    assert found.result.certificate.holds


def tampered(value, **other):
    return {name: value[name] for name in ("V", "variances", "spanning", "regular", "subset")} | other


@pytest.mark.parametrize("shape", SHAPES)
def test_the_certificate_is_measured_on_the_answer_and_sees_another_one(shape):
    X, _, _ = planted(*shape)
    found = fit(X, 3)
    value, k = found.result.value, 3
    measure = partial(rows_residual, X, mean=found.mean, all_columns=shape[1] <= 10, tol=1e-6)
    assert measure(**tampered(value)).largest == pytest.approx(found.result.certificate.residual, abs=1e-12)
    V = value["V"] + 1e-3 * np.random.default_rng(0).normal(size=value["V"].shape)
    assert measure(**tampered(value, V=np.linalg.qr(V)[0])).plane > 1e-4
    assert measure(**tampered(value, V=value["V"] @ orthonormal(np.random.default_rng(0), k, k))).axes > 1e-2
    assert measure(**tampered(value, variances=value["variances"] * [1, 1.01, 1])).axes > 1e-3
    assert rows_residual(X, **tampered(value), mean=found.mean + 1e-2, tol=1e-6).mean > 1e-4
    inside, outside = np.flatnonzero(value["subset"]), np.flatnonzero(~value["regular"])
    other = value["subset"].copy()
    other[inside[0]], other[outside[0]] = False, True
    assert measure(**tampered(value, subset=other)).exchanged > 0
    last = np.linalg.svd(X[value["spanning"]] - X[value["spanning"]].mean(axis=0))[2][-3:].T
    assert measure(**tampered(value, V=last)).dominant is False  # an invariant subspace, but not the leading one


@pytest.mark.parametrize("seed", range(4))
def test_components_beyond_the_rank_of_exact_rows_exchange_none(seed):
    """Of rows on a line, what they are along a second component is rounding, and says of no row that it is far."""
    rng = np.random.default_rng(seed)
    X = np.outer(rng.normal(size=50), rng.normal(size=15)) + 3.0
    found = fit(X, 4)
    assert found.result.certificate.holds
    assert found.rank == 1


def test_a_limit_of_steps_is_said():
    X = np.random.default_rng(0).normal(size=(500, 6))
    with pytest.warns(UserWarning, match="max_iter=1 "):
        found = fit(X, 2, max_iter=1)
    assert found.result.status.code == "iteration limit"


# --- odd data, both methods -------------------------------------------------------------------------


def exact_plane():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30))


def some(n, p):
    return np.random.default_rng(0).normal(size=(n, p))


def repeated(p):
    X = some(60, p)
    X[:50] = X[0]
    return X


ODD = {  # data, components asked for, rank
    "two rows": (some(2, 5), None, 1),
    "two rows, two components": (some(2, 5), 2, 1),
    "two rows of one column": (some(2, 1), None, 1),
    "two rows that are one": (np.ones((2, 3)), None, 0),
    "three rows": (some(3, 2), 2, 2),
    "one column": (some(50, 1), None, 1),
    "constant": (np.full((30, 4), 7.3), None, 0),
    "a constant column": (np.column_stack([some(60, 3), np.full(60, 5.0)]), 3, 3),
    "rows that repeat": (repeated(4), 2, 0),
    "rows that repeat, wide": (repeated(30), 2, 0),
    "a plane": (exact_plane(), 2, 2),
    "a plane, far away": (exact_plane() + 1e8, 2, 2),
    "a line": (np.outer(np.random.default_rng(0).normal(size=101), np.arange(1.0, 8)) + 3, 2, 1),
    "all columns": (some(50, 6), 6, 6),
    "tiny": (some(50, 12) * 1e-200, 2, 2),
    "large": (some(50, 12) * 1e150, 2, 2),
    "zeros and ones": ((some(200, 12) > 0).astype(float), 2, 2),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ODD)
def test_odd_data_have_an_answer(name, method):
    X, k, rank = ODD[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(X, k, method)
    k = found.V.shape[1] if k is None else k
    np.testing.assert_allclose(found.V.T @ found.V, np.eye(k), atol=1e-13)
    assert found.variances.shape == (k,)
    assert found.rank == (found.variances > 0).sum() == rank
    assert (np.diff(found.variances) <= 0).all()
    assert found.total >= found.variances.sum()
    assert found.result.certificate.holds
    both, flagged = judged(X, found)
    assert np.isfinite(both).all()
    if rank == 0:  # whoever is not where most are
        np.testing.assert_array_equal(flagged, np.ptp(np.stack([X, 0 * X + np.median(X, axis=0)]), axis=0).any(axis=1))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e12, 1e100])
def test_a_row_of_any_size_is_flagged_and_does_nothing(method, size):
    X, _, bad = planted(200, 20, bad=0.05)
    before = fit(X, 3, method)
    X[0] = size
    found = fit(X, 3, method)
    unit = posed(X).unit
    assert bad <= outliers(X, found)
    assert found.result.certificate.holds
    assert subspace_sine(found.V.T, before.V.T) < 0.02
    np.testing.assert_allclose(found.variances / unit / unit, before.variances, rtol=0.15)


def test_more_components_than_rows_can_bear_are_warned_of():
    with pytest.warns(UserWarning, match="pass through any 17 rows"):
        found = fit(some(20, 100), 18)
    assert found.V.shape == (100, 18)
    assert found.rank == 16


def test_outlyingness_sees_rows_off_the_hyperplane_of_all_others():
    X = np.column_stack([some(12, 3), np.zeros(12)])
    X[0, 3] = 1.0
    far = outlyingness.outlyingness(X, 9, np.random.default_rng(0), np.full(12, 1e-15))
    assert np.argmax(far) == 0
    X[1:] = X[1]
    far = outlyingness.outlyingness(X, 9, np.random.default_rng(0), np.full(12, 1e-15))
    np.testing.assert_array_equal(far, np.where(np.arange(12) == 0, np.inf, 0.0))


# --- the spatial median -----------------------------------------------------------------------------


def median_of(X, begin=None, tol=1e-9):
    X = np.asarray(X, dtype=float)
    begin = spatial_median.start(np.median(X, axis=0) if begin is None else begin)
    return run(partial(spatial_median.spatial_median, partial(Centered, as_rows(X))), begin, tol=tol, max_iter=500)


def test_it_has_the_least_sum_of_distances():
    X = np.random.default_rng(0).standard_t(2, size=(80, 4)) + 3
    found = median_of(X)
    peer = scipy.optimize.minimize(lambda m: np.linalg.norm(X - m, axis=1).sum(), X.mean(axis=0), tol=1e-12)
    assert found.objective <= peer.fun + 1e-9
    np.testing.assert_allclose(found.value["median"], peer.x, atol=1e-5)
    assert (np.diff(found.history.objective) <= 0).all()


def test_a_row_that_is_the_median_is_found_at_once_and_not_only_approached():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:20] = [1, 2, 3]  # half of the rows pull no more than the others
    found = median_of(X, begin=np.zeros(3))
    np.testing.assert_array_equal(found.value["median"], [1, 2, 3])
    assert found.certificate.residual == 0
    corners = np.array([[0, 0], [4, 0], [0, 4], [1, 1.0]])  # a point within a triangle
    found = median_of(corners, begin=np.array([2.0, 0.5]))
    np.testing.assert_allclose(found.value["median"], [1, 1], atol=1e-15)
    assert found.n_iter < 30


def test_a_start_at_a_row_that_is_not_the_median_is_left():
    X = np.random.default_rng(0).normal(size=(50, 3))
    far = X[np.argmax(np.linalg.norm(X, axis=1))]
    np.testing.assert_allclose(median_of(X, begin=far).value["median"], median_of(X).value["median"], atol=1e-7)


def test_it_takes_few_passes():
    for p in (2, 10, 200):
        X = np.random.default_rng(0).normal(size=(300, p)) * np.geomspace(10, 0.1, p)
        assert median_of(X, begin=X[0], tol=1e-6).n_iter <= 25


# --- spherical --------------------------------------------------------------------------------------


def unit_rows(X, centre):
    apart = X - centre
    return apart / np.linalg.norm(apart, axis=1, keepdims=True)


@pytest.mark.parametrize("shape", [(100, 5), (700, 30), (60, 700), (1200, 1100)])
def test_components_are_those_of_unit_rows_and_variances_the_mads_of_scores(shape):
    X, _, _ = planted(*shape, bad=0.1)
    found = fit(X, 3, "spherical")
    centre = found.result.value["median"]
    U = unit_rows(X, centre)
    assert np.linalg.norm(U.sum(axis=0)) / len(X) < 1e-6
    np.testing.assert_allclose(found.V.T @ found.V, np.eye(3), atol=1e-13)
    assert subspace_sine(found.V.T, np.linalg.svd(U, full_matrices=False)[2][:3]) < 1e-4
    np.testing.assert_allclose(found.variances, univariate.mad(X @ found.V) ** 2, rtol=1e-9)
    np.testing.assert_allclose(np.median((X - found.mean) @ found.V, axis=0), 0, atol=1e-9)
    certificate = found.result.certificate
    assert certificate.holds
    assert certificate.dominant
    assert certificate.scope == "global"
    assert "spatial median" in str(certificate)


def test_shares_are_of_all_variance():
    X = np.random.default_rng(0).normal(size=(2000, 20)) * np.r_[5, 3, np.ones(18)]
    for k in (2, None):
        found = fit(X, k, "spherical")
        np.testing.assert_allclose(found.variances[:2] / found.total, [25 / 52, 9 / 52], rtol=0.1)
        assert len(outliers(X, found)) / 2000 == pytest.approx(NOMINAL, abs=0.015)


def test_rows_on_one_side_do_not_make_all_others_look_far():
    X, _, bad = planted(200, 500, noise=0.5, far=100.0)
    found = fit(X, 5, "spherical")
    flagged = outliers(X, found)
    assert flagged >= bad
    assert len(flagged - bad) < 30


def test_scaling_is_refused_in_words():
    with pytest.raises(ValueError, match="takes columns as they are"):
        fit(some(20, 3), 2, "spherical", scale=True)


@pytest.mark.parametrize("density", [0.05, 0.3])
def test_sparse_rows_stay_sparse(density, monkeypatch):
    S = scipy.sparse.random_array((400, 60), density=density, rng=np.random.default_rng(0), format="csr")
    expected = fit(S.toarray(), 2, "spherical", tol=1e-9)
    monkeypatch.setattr(spherical, "DENSE_WORK", 0.0)
    monkeypatch.setattr(spherical.spherical, "unit_rows", None)
    found = fit(S, 2, "spherical", tol=1e-9)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-7)
    np.testing.assert_allclose(found.V, expected.V, atol=1e-5)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-5)
    assert found.result.certificate.holds


@pytest.mark.parametrize("storage", STORAGES)
def test_spherical_runs_wherever_the_rows_are(storage, tmp_path, request):
    if storage in NEEDS:
        request.getfixturevalue(NEEDS[storage])
    X, _, bad = planted(1200, 8)
    expected = fit(X, 3, "spherical", tol=1e-8)
    found = fit(STORAGES[storage](X, tmp_path), 3, "spherical", tol=1e-8)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-6)
    np.testing.assert_allclose(found.V, expected.V, atol=1e-6)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-6)
    assert found.result.certificate.holds
    assert outliers(X, found) >= bad


def test_a_single_precision_table_is_seen_in_double():
    X, _, _ = planted(300, 12)
    X = X.astype(np.float32)
    for method in METHODS:
        one, other = fit(X, 3, method), fit(X.astype(float), 3, method)
        np.testing.assert_allclose(one.V, other.V, atol=1e-9)
        np.testing.assert_allclose(one.variances, other.variances, rtol=1e-9)


def test_row_squares_of_sparse_rows_are_those_of_dense_ones():
    S = scipy.sparse.random_array((50, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
    mean, factor = np.random.default_rng(1).random(20), np.random.default_rng(2).random(20)
    squares = Centered(as_rows(S), mean, factor).implicit(as_rows(S).block(0)).row_squares()
    np.testing.assert_allclose(squares, (((S.toarray() - mean) * factor) ** 2).sum(axis=1), rtol=1e-12)
    here = S.toarray()[7]
    assert Centered(as_rows(S), here).implicit(as_rows(S).block(0)).row_squares()[7] == 0
    assert statistics.whole(Centered(as_rows(S), here))[7].any() == 0
