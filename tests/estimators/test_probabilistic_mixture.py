"""Mixtures of probabilistic PCA: against formulae written out row by row, and on groups that are known."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture
from princomp.data import as_rows
from princomp.datasets import make_height_weight
from princomp.solvers import probabilistic_mixture


def two_planes(n=300, p=6, missing=0.0, seed=0):
    """Two groups around different planes, some cells missing."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) % 2
    W = rng.normal(size=(2, p, 2)) * 2
    means = np.array([np.zeros(p), 3 + rng.normal(size=p)])
    X = np.einsum("npk,nk->np", W[groups], rng.normal(size=(n, 2))) + means[groups] + 0.3 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < missing] = np.nan
    return X, groups


def log_densities(model, X):
    """log share_c + log N(x_o; c), one row and one cluster at a time."""
    out = np.zeros((len(X), len(model.shares_)))
    for c, share in enumerate(model.shares_):
        W, noise = model.weights_[c], model.noise_variance_[c]
        C = W @ W.T + noise * np.eye(X.shape[1])
        for i, x in enumerate(X):
            o = ~np.isnan(x)
            density = multivariate_normal(model.means_[c][o], C[np.ix_(o, o)]).logpdf(x[o]) if o.any() else 0.0
            out[i, c] = np.log(share) + density
    return out


@pytest.mark.parametrize("seed", range(5))
def test_hidden_groups_of_height_and_weight(seed, observe):
    people = make_height_weight(random_state=seed)
    mixture = ProbabilisticPCAMixture(1, random_state=seed).fit(people.X)
    rand = adjusted_rand_score(people.groups, mixture.predict(people.X))
    observe("PPCA", f"mixture on height/weight, seed {seed}", f"adjusted Rand {rand:.3f}")
    assert rand > 0.9
    # PCA finds the groups' difference; each cluster's axis is the relation inside the groups.
    along = people.direction
    assert abs(PCA(1).fit(people.X).components_[0] @ along) < 0.5
    assert (np.abs(mixture.components_[:, 0] @ along) > 0.98).all()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_likelihood_and_responsibilities_are_the_formulae(missing):
    X, groups = two_planes(missing=missing)
    X[3] = np.nan
    model = ProbabilisticPCAMixture(2, random_state=0).fit(X)
    joint = log_densities(model, X)
    expected = np.logaddexp.reduce(joint, axis=1)
    assert np.allclose(model.score_samples(X), expected, rtol=1e-9, atol=1e-9)
    assert np.allclose(model.responsibilities(X), np.exp(joint - expected[:, None]), atol=1e-9)
    assert model.log_likelihood_ == pytest.approx(expected.sum(), rel=1e-9)
    assert model.score(X) == pytest.approx(expected.mean())
    assert np.array_equal(model.predict(X), joint.argmax(axis=1))
    assert adjusted_rand_score(np.delete(groups, 3), np.delete(model.predict(X), 3)) > 0.9


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_likelihood_never_falls_and_ends_at_a_maximum(missing):
    X, _ = two_planes(missing=missing, seed=1)
    model = ProbabilisticPCAMixture(2, random_state=0, n_init=1, tol=1e-10).fit(X)
    trace = np.array(model.result_.history.objective)
    assert len(trace) > 3
    assert (np.diff(trace) >= -1e-9 * abs(trace[-1])).all()
    assert model.certificate_.holds
    rng = np.random.default_rng(0)
    best = np.logaddexp.reduce(log_densities(model, X), axis=1).sum()
    for name in ("weights_", "means_", "noise_variance_", "shares_"):
        value = getattr(model, name)
        for _ in range(3):
            step = 1e-4 * np.abs(value).mean() * rng.normal(size=value.shape)
            if name == "shares_":
                step -= step.mean()
            for sign in (1, -1):
                setattr(model, name, value + sign * step)
                assert np.logaddexp.reduce(log_densities(model, X), axis=1).sum() < best + 1e-5
            setattr(model, name, value)


def test_one_cluster_is_probabilistic_pca():
    X, _ = two_planes(missing=0.1)
    one = ProbabilisticPCA(2, tol=1e-10).fit(X)
    model = ProbabilisticPCAMixture(2, n_clusters=1, random_state=0, tol=1e-10).fit(X)
    assert model.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-8)
    assert model.noise_variance_[0] == pytest.approx(one.noise_variance_, rel=1e-4)
    filled, deviation = model.impute(X, return_std=True)
    same, same_deviation = one.impute(X, return_std=True)
    assert np.allclose(filled, same, atol=1e-3)
    assert np.allclose(deviation, same_deviation, atol=1e-3)
    assert np.allclose(np.abs(model.transform(X)), np.abs(one.transform(X)), atol=1e-2)


def test_imputation_is_the_mixture_of_conditional_normals():
    X, _ = two_planes(n=80, missing=0.25)
    model = ProbabilisticPCAMixture(2, random_state=0).fit(X)
    filled, deviation = model.impute(X, return_std=True)
    share = model.responsibilities(X)
    for i, x in enumerate(X[:20]):
        o, u = ~np.isnan(x), np.isnan(x)
        if not u.any():
            continue
        means, squares = [], []
        for c in range(2):
            C = model.weights_[c] @ model.weights_[c].T + model.noise_variance_[c] * np.eye(len(x))
            back = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, u)]).T
            mean = model.means_[c][u] + back @ (x[o] - model.means_[c][o])
            means.append(mean)
            squares.append(np.diag(C[np.ix_(u, u)] - back @ C[np.ix_(o, u)]) + mean**2)
        expected = share[i] @ np.array(means)
        assert np.allclose(filled[i, u], expected)
        assert np.allclose(deviation[i, u], np.sqrt(share[i] @ np.array(squares) - expected**2))
    assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_groups_help_imputation():
    whole, _ = two_planes(n=600)
    hidden = np.random.default_rng(3).random(whole.shape) < 0.15
    X = np.where(hidden, np.nan, whole)

    def error(model):
        return np.sqrt(np.mean((model.fit(X).impute(X) - whole)[hidden] ** 2))

    assert error(ProbabilisticPCAMixture(2, random_state=0)) < 0.8 * error(ProbabilisticPCA(2))


def test_weights_count_rows():
    X, _ = two_planes(n=120, missing=0.1)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    how = {"n_components": 2, "n_init": 1, "random_state": 0, "tol": 1e-9}
    weighted = ProbabilisticPCAMixture(**how).fit(X, sample_weight=weight)
    repeated = ProbabilisticPCAMixture(**how).fit(np.repeat(X, weight, axis=0))
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-5)


def test_storage_does_not_matter():
    X, _ = two_planes(missing=0.1)
    how = {"n_components": 2, "random_state": 0, "max_iter": 2000}
    whole = ProbabilisticPCAMixture(**how).fit(X)
    blocks = ProbabilisticPCAMixture(**how).fit([X[:100], X[100:130], X[130:]])
    assert np.allclose(whole.means_, blocks.means_, atol=1e-8)
    assert np.allclose(whole.responsibilities(X), blocks.responsibilities(as_rows([X[:7], X[7:]])), atol=1e-8)


def test_samples_are_those_of_the_model():
    X, _ = two_planes()
    model = ProbabilisticPCAMixture(2, random_state=0).fit(X)
    drawn, cluster = model.sample(200_000, random_state=1)
    for c in range(2):
        mine = drawn[cluster == c]
        C = model.weights_[c] @ model.weights_[c].T + model.noise_variance_[c] * np.eye(X.shape[1])
        assert len(mine) / len(drawn) == pytest.approx(model.shares_[c], abs=0.01)
        assert np.allclose(np.cov(mine.T), C, atol=0.03 * np.abs(C).max())
        assert np.allclose(mine.mean(axis=0), model.means_[c], atol=0.05)


def test_scale_and_single_precision():
    X, groups = two_planes(missing=0.1)
    plain = ProbabilisticPCAMixture(2, random_state=0).fit(X)
    for factor in (1e-120, 1e120):
        scaled = ProbabilisticPCAMixture(2, random_state=0).fit(X * factor)
        assert np.allclose(scaled.means_ / factor, plain.means_, rtol=1e-6, atol=1e-6)
        assert np.array_equal(scaled.predict(X * factor), plain.predict(X))
    single = ProbabilisticPCAMixture(2, random_state=0).fit(X.astype(np.float32))
    assert {array.dtype for array in (single.means_, single.weights_, single.transform(X.astype("f4")))} == {
        np.dtype(np.float32)
    }
    assert adjusted_rand_score(groups, single.predict(X.astype(np.float32))) > 0.9


# --- scales, collapse, crossing ------------------------------------------------------------------------------


def income_and_age(seed, n=300):
    """Two groups in columns whose variances differ by 1e7."""
    rng = np.random.default_rng(seed)
    income = np.append(rng.normal(30_000, 8_000, n), rng.normal(90_000, 15_000, n))
    age = np.append(rng.normal(30, 4, n), rng.normal(55, 4, n))
    return np.column_stack([income, age]), np.repeat([0, 1], n)


@pytest.mark.parametrize("seed", range(3))
def test_columns_of_very_different_scales(seed):
    X, groups = income_and_age(seed)
    model = ProbabilisticPCAMixture(1, random_state=0).fit(X)
    assert adjusted_rand_score(groups, model.predict(X)) > 0.95
    assert (np.abs(np.sqrt(model.noise_variance_) - 4) < 0.6).all()  # of age
    thousands = ProbabilisticPCAMixture(1, random_state=0).fit(X * [1e-3, 1])
    same = thousands.log_likelihood_ - len(X) * np.log(1e3)
    assert model.log_likelihood_ == pytest.approx(same, abs=1e-5 * X.size)
    one = ProbabilisticPCAMixture(1, n_clusters=1, random_state=0).fit(X)
    assert one.log_likelihood_ == pytest.approx(ProbabilisticPCA(1).fit(X).log_likelihood_, rel=1e-7)


@pytest.mark.parametrize("gap", [1e3, 1e6, 1e8])
def test_clusters_far_apart(gap):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 1)) + 0.5 * rng.normal(size=(100, 3))
    parts = [ProbabilisticPCA(1).fit(rows) for rows in (X[:60], X[60:])]
    X[60:] += gap
    model = ProbabilisticPCAMixture(1, random_state=0).fit(X)
    assert np.allclose(model.noise_variance_, [part.noise_variance_ for part in parts], rtol=1e-3)
    gaps = X[[0, 99]]
    gaps[:, 0] = np.nan
    filled, deviation = model.impute(gaps, return_std=True)
    assert np.abs(filled - X[[0, 99]]).max() < 4
    assert np.allclose(deviation[:, 0], [part.impute(gaps[:1], return_std=True)[1][0, 0] for part in parts], rtol=1e-3)


@pytest.mark.parametrize("n_init", [5, 12])
def test_an_outlier_does_not_shrink_the_others_to_points(n_init):
    X, groups = two_planes()
    X = np.vstack([X, np.full(6, 1e5)])
    with pytest.warns(UserWarning, match="1 of 3 clusters"):
        model = ProbabilisticPCAMixture(2, n_clusters=3, n_init=n_init, random_state=0).fit(X)
    assert adjusted_rand_score(groups, model.predict(X)[:-1]) > 0.9
    assert np.allclose(model.noise_variance_[:2], 0.09, rtol=0.3)


def test_a_few_points_each_several_times_are_said_to_be_so():
    points = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    with pytest.warns(UserWarning, match="3 of 3 clusters have no noise left") as caught:
        model = ProbabilisticPCAMixture(1, n_clusters=3, random_state=0).fit(np.repeat(points, 10, axis=0))
    assert len(caught) == 1
    assert np.isfinite(model.score_samples(points)).all()


def crossing(seed, p=3, n=200):
    """Two groups with the same mean, long in different directions."""
    rng = np.random.default_rng(seed)
    scales = np.full((2, p), 0.3)
    scales[0, 0] = scales[1, 1] = 3.0
    return np.vstack([rng.normal(size=(n, p)) * scale for scale in scales]), np.repeat([0, 1], n), scales


@pytest.mark.parametrize(("seed", "p"), [(0, 3), (1, 3), (2, 3), (3, 3), (0, 10), (1, 30)])
def test_clusters_that_cross(seed, p):
    X, groups, scales = crossing(seed, p)
    densities = [multivariate_normal(np.zeros(p), np.diag(scale**2)).logpdf(X) for scale in scales]
    truth = np.logaddexp(*densities).sum() - len(X) * np.log(2)
    best = adjusted_rand_score(groups, np.argmax(densities, axis=0))  # that knowing the truth gives
    for random_state in range(3):
        model = ProbabilisticPCAMixture(1, random_state=random_state).fit(X)
        assert model.log_likelihood_ > truth
        assert adjusted_rand_score(groups, model.predict(X)) > best - 0.1


def test_order_and_repetition_do_not_matter_to_the_starts():
    X, _, _ = crossing(4)
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    order = np.random.default_rng(1).permutation(weight.sum())
    weighted = ProbabilisticPCAMixture(1, random_state=0).fit(X, sample_weight=weight)
    repeated = ProbabilisticPCAMixture(1, random_state=0).fit(np.repeat(X, weight, axis=0)[order])
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-9)
    assert np.allclose(weighted.responsibilities(X), repeated.responsibilities(X), atol=1e-6)
    tiny = ProbabilisticPCAMixture(1, random_state=0).fit(X, sample_weight=1e-9 * weight)
    assert np.allclose(tiny.responsibilities(X), weighted.responsibilities(X), atol=1e-4)


def test_variance_out_of_range():
    X, _ = two_planes(n=40)
    with pytest.raises(ValueError, match="more than float32 holds"):
        ProbabilisticPCAMixture().fit((1e25 * X).astype(np.float32))
    with pytest.raises(ValueError, match="too small for float64"):
        ProbabilisticPCAMixture().fit(1e-160 * X)
    with pytest.raises(ValueError, match="from 1e-100 to 1e\\+100, got 1e\\+300"):
        ProbabilisticPCAMixture().fit(X, sample_weight=np.full(40, 1e300))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer from 1 to 20, got 0"),
        ({"n_clusters": 21}, "n_clusters must be an integer from 1 to 20, got 21"),
        ({"n_components": 4}, "n_components must be an integer from 1 to 3, got 4"),
        ({"n_init": 1.5}, "n_init must be an integer of at least 1, got 1.5"),
    ],
)
def test_wrong_parameters(how, message):
    with pytest.raises(ValueError, match=message):
        ProbabilisticPCAMixture(**how).fit(np.random.default_rng(0).normal(size=(20, 3)))


def test_infinite_cells_and_empty_columns_are_named():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = ProbabilisticPCAMixture(random_state=0).fit(X)
    X[4, 1] = np.inf
    with pytest.raises(ValueError, match="inf in column 1"):
        model.score_samples(X)
    with pytest.raises(ValueError, match="inf in column 1"):
        ProbabilisticPCAMixture().fit(X)
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="Column 1 has no observed cell"):
        ProbabilisticPCAMixture().fit(X)


@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e5])
def test_a_cluster_of_equal_rows_keeps_as_much_noise_as_its_numbers_resolve(unit):
    """In any units; with none at all its density would have no bound."""
    rows = np.vstack([np.full((60, 5), 3.0), np.random.default_rng(0).normal(size=(60, 5)) + 8]) * unit
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has collapsed
        noise = ProbabilisticPCAMixture(1, n_clusters=2, random_state=0).fit(rows).noise_variance_
    assert 1e-30 < noise.min() / unit**2 < 1e-24


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_steps_that_hide_scores_too_end_where_those_of_cells_alone_do(missing, monkeypatch):
    X, _ = two_planes(missing=missing)
    found = []
    for alone in (True, False):
        monkeypatch.setattr(probabilistic_mixture, "cells_alone", lambda *size, alone=alone: alone)
        found.append(ProbabilisticPCAMixture(2, tol=1e-9, max_iter=5000, random_state=0).fit(X))
    assert found[0].log_likelihood_ == pytest.approx(found[1].log_likelihood_, abs=1e-4)
    np.testing.assert_allclose(found[0].means_, found[1].means_, atol=1e-3)


@pytest.mark.parametrize("d", [1, 2, 4, 5])
def test_distances_from_planes_are_those_of_their_projections(d):
    """Whether a plane is held by its directions or by all others."""
    rng = np.random.default_rng(0)
    rows, points, axes = rng.normal(size=(30, 6)), rng.normal(size=(3, 6)), rng.normal(size=(3, 6, d))
    planes = probabilistic_mixture.Planes.along(points, axes, d)
    left = planes.left(rows, (rows**2).sum(axis=1))
    for c in range(3):
        Q, _ = np.linalg.qr(axes[c])
        away = rows - points[c]
        np.testing.assert_allclose(left[:, c], ((away - away @ Q @ Q.T) ** 2).sum(axis=1), atol=1e-10)


def test_as_many_components_as_features_less_one_are_no_worse_than_full_covariances():
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5)) + 3 * rng.normal(size=5) for _ in range(4)])
    ours = ProbabilisticPCAMixture(4, n_clusters=4, random_state=0).fit(X).score(X)
    assert ours > GaussianMixture(4, n_init=5, random_state=0).fit(X).score(X) - 1e-3
