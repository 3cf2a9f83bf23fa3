"""Mixtures of probabilistic PCA: against formulae written out row by row, and on groups that are known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture
from princomp.data import as_rows
from princomp.datasets import make_height_weight


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


@parametrize_with_checks([ProbabilisticPCAMixture(), ProbabilisticPCAMixture(1, n_clusters=3)])
def test_common_checks(estimator, check):
    check(estimator)
