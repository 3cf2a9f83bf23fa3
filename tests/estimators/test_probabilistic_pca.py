"""ProbabilisticPCA: published numbers, theory, missing cells against a slow twin, edge cases, storages, files."""

import csv
import json
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.utils import get_tags

import princomp
from helpers import Allocated, orthonormal, orthonormality_error, shards, signs_follow_the_rule, subspace_sine
from princomp import PCA, SparsePCA
from princomp.datasets import load_tobamovirus, load_wine
from princomp.estimators.probabilistic_pca import ProbabilisticPCA
from princomp.solvers.probabilistic_choice import freedom
from running import princomp as command

NORMAL_90 = 1.6448536269514722  # half of a 90 % interval, in standard deviations


def virus():
    return load_tobamovirus().X


def holes(X, share, seed):
    out = np.array(X, dtype=float)
    out[np.random.default_rng(seed).random(out.shape) < share] = np.nan
    return out


def low_rank(n, p, k, *, noise=1.0, missing=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k)) @ rng.normal(size=(k, p)) + noise * rng.normal(size=(n, p)) + 3.0
    return holes(X, missing, seed + 1000)


def covariance(X):
    return np.cov(X.T, bias=True)


# --- published numbers --------------------------------------------------------------------------------------

NOISE = (3.089799214, 1.626908851, 1.239142914, 0.947191402, 0.702931578)
LIKELIHOOD = (-1400.096577, -1245.932486, -1197.230123, -1153.469916, -1107.748115)


@pytest.mark.parametrize("method", ["closed-form", "em"])
@pytest.mark.parametrize("q", [1, 2, 3, 4, 5])
def test_tobamovirus(q, method):
    model = ProbabilisticPCA(q, method=method).fit(virus())
    assert model.method_ == method
    assert model.noise_variance_ == pytest.approx(NOISE[q - 1], abs=1e-6)
    assert model.log_likelihood_ == pytest.approx(LIKELIHOOD[q - 1], abs=1e-6)
    assert 38 * model.score(virus()) == pytest.approx(LIKELIHOOD[q - 1], abs=1e-6)


@pytest.mark.parametrize("q", [1, 2, 3, 4, 5])
def test_closed_form_and_em_agree(q):
    """To the digits below, from any start: the default tol leaves scores that far off for one start in a hundred."""
    X = virus()
    one, other = (ProbabilisticPCA(q, method=method, tol=1e-14).fit(X) for method in ("closed-form", "em"))
    assert other.noise_variance_ == pytest.approx(one.noise_variance_, rel=1e-6)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(other.transform(X), one.transform(X), atol=1e-5)


def test_likelihood_has_divisor_n_not_n_minus_1():
    """PCA's own score has n - 1 in it: -32.79087 a row against the maximum, -32.78770."""
    X = virus()
    model = ProbabilisticPCA(2).fit(X)
    values = np.linalg.eigvalsh(covariance(X))[::-1]
    np.testing.assert_allclose(model.explained_variance_, values[:2])
    assert model.noise_variance_ == pytest.approx(values[2:].mean())
    assert model.score(X) == pytest.approx(-32.78770, abs=1e-5)
    assert PCA(2).fit(X).score(X) == pytest.approx(-32.79087, abs=1e-5)


# --- theory: complete data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(80, 12), (12, 80), (400, 600)])
@pytest.mark.parametrize("method", ["closed-form", "em"])
def test_subspace_is_that_of_pca(shape, method):
    X = low_rank(*shape, 3, missing=0.0)
    model = ProbabilisticPCA(3, method=method).fit(X)
    assert subspace_sine(model.components_, PCA(3).fit(X).components_) < 1e-5
    assert orthonormality_error(model.components_) < 1e-12
    assert signs_follow_the_rule(model.components_)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=1e-6)


def test_weights_are_scaled_by_the_square_root():
    X = virus()
    model = ProbabilisticPCA(3).fit(X)
    values, U = np.linalg.eigh(covariance(X))
    values, U = values[::-1], U[:, ::-1]
    noise = values[3:].mean()
    np.testing.assert_allclose(np.linalg.norm(model.weights_, axis=0), np.sqrt(values[:3] - noise))
    expected = U[:, :3] * np.sqrt(values[:3] - noise)
    np.testing.assert_allclose(np.abs(model.weights_), np.abs(expected), atol=1e-10)


@pytest.mark.parametrize("k", [17, 18])
@pytest.mark.parametrize("method", ["closed-form", "em"])
def test_all_but_one_or_all_components_give_the_covariance_itself(k, method):
    X = virus()
    model = ProbabilisticPCA(k, method=method, tol=1e-9).fit(X)
    np.testing.assert_allclose(model.get_covariance(), covariance(X), atol=2e-3 if method == "em" else 1e-10)
    np.testing.assert_allclose(
        model.score_samples(X),
        multivariate_normal(X.mean(axis=0), covariance(X)).logpdf(X),
        rtol=1e-4 if method == "em" else 1e-8,
    )


@pytest.mark.parametrize("method", ["closed-form", "em"])
def test_as_noise_vanishes_scores_are_whitened(method):
    """The posterior mean tends to L^-1/2 U'(x - mean), not to U'(x - mean); W z + mean to PCA's reconstruction."""
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(300, 3)) * [5, 3, 2] @ orthonormal(rng, 10, 3).T
    noise = rng.normal(size=(300, 10))
    errors = []
    for size in (1e-1, 1e-2, 1e-3, 1e-4):
        X = signal + size * noise
        model, pca = ProbabilisticPCA(3, method=method).fit(X), PCA(3).fit(X)
        projected = (X - X.mean(axis=0)) @ model.components_.T
        whitened = projected / np.sqrt(model.explained_variance_)
        scores = model.transform(X)
        errors.append(np.abs(scores - whitened).max())
        assert np.abs(scores - projected).max() > 1
        back = np.abs(model.inverse_transform(scores) - pca.inverse_transform(pca.transform(X))).max()
        assert back <= 100 * size**2
    assert errors[-1] < 1e-6
    assert errors[0] > 100 * errors[1] / 2 > 0  # with the square of the noise


def test_posterior_mean_shrinks():
    X = virus()
    model = ProbabilisticPCA(2).fit(X)
    W, noise = model.weights_, model.noise_variance_
    M = W.T @ W + noise * np.eye(2)
    np.testing.assert_allclose(model.transform(X), (X - X.mean(axis=0)) @ W @ np.linalg.inv(M), atol=1e-12)
    mean, spread = model.posterior(X[:3])
    np.testing.assert_allclose(mean, model.transform(X[:3]))
    np.testing.assert_allclose(spread, [noise * np.linalg.inv(M)] * 3, atol=1e-12)


def test_reconstruction_shrunk_and_not():
    X = virus()
    model, pca = ProbabilisticPCA(2).fit(X), PCA(2).fit(X)
    scores = model.transform(X)
    np.testing.assert_allclose(model.inverse_transform(scores), scores @ model.weights_.T + model.mean_)
    plain = pca.inverse_transform(pca.transform(X))
    np.testing.assert_allclose(model.inverse_transform(scores, shrunk=False), plain, atol=1e-10)
    assert np.abs(model.inverse_transform(scores) - plain).max() > 0.1


def test_covariance_of_samples_converges():
    model = ProbabilisticPCA(2).fit(virus())
    errors = []
    for n in (1_000, 100_000):
        drawn = model.sample(n, random_state=0)
        errors.append(np.abs(covariance(drawn) - model.get_covariance()).max())
        assert np.abs(drawn.mean(axis=0) - model.mean_).max() < 6 * np.sqrt(30 / n)
    assert errors[1] < errors[0] / 4
    assert errors[1] < 0.3
    np.testing.assert_array_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))


def test_covariance_and_precision():
    model = ProbabilisticPCA(4).fit(virus())
    assert model.get_covariance().shape == (18, 18)
    np.testing.assert_allclose(model.get_covariance() @ model.get_precision(), np.eye(18), atol=1e-12)


def test_rotation_leaves_the_model_alone():
    X = virus()
    R = orthonormal(np.random.default_rng(0), 3, 3)
    plain, turned = ProbabilisticPCA(3).fit(X), ProbabilisticPCA(3, rotation=R).fit(X)
    np.testing.assert_allclose(turned.weights_, plain.weights_ @ R)
    np.testing.assert_allclose(turned.transform(X), plain.transform(X) @ R, atol=1e-12)
    np.testing.assert_allclose(turned.get_covariance(), plain.get_covariance(), atol=1e-12)
    np.testing.assert_allclose(turned.score_samples(X), plain.score_samples(X))
    np.testing.assert_array_equal(turned.components_, plain.components_)
    with pytest.raises(ValueError, match="orthogonal"):
        ProbabilisticPCA(3, rotation=np.ones((3, 3))).fit(X)


def test_the_result_holds_the_rotated_weights():
    R = orthonormal(np.random.default_rng(0), 3, 3)
    for X in (virus(), holes(virus(), 0.1, 0)):
        model = ProbabilisticPCA(3, rotation=R).fit(X)
        np.testing.assert_array_equal(model.result_.value["W"], model.weights_)


@pytest.mark.parametrize(
    ("rotation", "message"),
    [
        (np.full((2, 2), np.nan), "differs from I by nan"),
        (np.ones((2, 2)), "R R' = I; this R R' differs from I by 2"),
        (np.eye(3), r"shape \(2, 2\), got one of shape \(3, 3\)"),
    ],
)
def test_wrong_rotation(rotation, message):
    with pytest.raises(ValueError, match=message):
        ProbabilisticPCA(2, rotation=rotation).fit(virus())


def test_evidence_with_few_rows():
    with pytest.raises(ValueError, match=r'n_components="evidence" needs at least as many samples .* got 8 and 18'):
        ProbabilisticPCA("evidence").fit(virus()[:8])


def test_fit_covariance():
    X = virus()
    S = covariance(X)
    before = S.copy()
    model = ProbabilisticPCA(2).fit_covariance(S, n_samples=38)
    np.testing.assert_array_equal(S, before)
    assert model.noise_variance_ == pytest.approx(NOISE[1], abs=1e-6)
    assert model.log_likelihood_ == pytest.approx(LIKELIHOOD[1], abs=1e-6)
    assert not model.mean_.any()
    assert ProbabilisticPCA(2).fit_covariance(S).log_likelihood_ is None
    for given in ({"method": "em"}, {"n_components": "held-out"}, {"n_components": "bic"}):
        with pytest.raises(ValueError, match="need"):
            ProbabilisticPCA(**given).fit_covariance(S)


# --- missing cells ------------------------------------------------------------------------------------------


class Twin:
    """Exact EM by literal formulae, row by row and feature by feature, from PCA of the data filled with means."""

    def __init__(self, X, k, *, most=3000, enough=1e-9):
        self.mean = np.nanmean(X, axis=0)
        filled = np.where(np.isnan(X), 0.0, X - self.mean)
        values, U = np.linalg.eigh(filled.T @ filled / len(X))
        self.noise = values[:-k].mean()
        self.W = U[:, -k:] * np.sqrt(values[-k:] - self.noise)
        before = -np.inf
        for _ in range(most):
            found = [self.row(x) for x in X]
            likelihood = sum(value for *_, value in found)
            assert likelihood >= before - 1e-8 * abs(likelihood)
            if likelihood - before < enough * np.isfinite(X).sum():
                break
            before = likelihood
            self.step(X, np.array([z for z, *_ in found]), np.array([C for _, C, _ in found]))

    def row(self, x):
        o = ~np.isnan(x)
        W, r, k = self.W[o], (x - self.mean)[o], self.W.shape[1]
        M = W.T @ W + self.noise * np.eye(k)
        z = np.linalg.solve(M, W.T @ r)
        value = o.sum() * np.log(2 * np.pi) + (o.sum() - k) * np.log(self.noise) + np.linalg.slogdet(M)[1]
        return z, self.noise * np.linalg.inv(M), -0.5 * (value + (r @ r - r @ W @ z) / self.noise)

    def step(self, X, Z, C):
        k, left = self.W.shape[1], 0.0
        second = C + Z[:, :, None] * Z[:, None, :]
        for j, x in enumerate(X.T):
            o = ~np.isnan(x)
            s = Z[o].sum(axis=0)
            A = np.block([[second[o].sum(axis=0), s[:, None]], [s[None], np.array([[o.sum()]])]])
            answer = np.linalg.solve(A, np.append(x[o] @ Z[o], x[o].sum()))
            self.W[j], self.mean[j] = answer[:k], answer[k]
            r = x[o] - self.mean[j]
            left += (r**2 - 2 * r * (Z[o] @ self.W[j])).sum() + self.W[j] @ second[o].sum(axis=0) @ self.W[j]
        self.noise = left / np.isfinite(X).sum()

    def impute(self, X):
        return np.array([np.where(np.isnan(x), self.W @ self.row(x)[0] + self.mean, x) for x in X])


def without_cells(X, count, seed):
    gone = np.random.default_rng(seed).choice(X.size, count, replace=False)
    out = X.copy()
    out.ravel()[gone] = np.nan
    return out


def root_mean_square(away):
    return float(np.sqrt(np.mean(away**2)))


def test_imputation_of_tobamovirus_is_that_of_the_twin(observe):
    """136 cells removed, 20 masks."""
    X, errors = virus(), []
    for seed in range(20):
        gaps = without_cells(X, 136, seed)
        gone = np.isnan(gaps)
        model, twin = ProbabilisticPCA(2).fit(gaps), Twin(gaps, 2)
        mine, slow = (root_mean_square((each.impute(gaps) - X)[gone]) for each in (model, twin))
        assert mine == pytest.approx(slow, rel=0.01)
        assert model.log_likelihood_ >= sum(twin.row(x)[2] for x in gaps) - 1e-6 * (~gone).sum()
        errors.append((mine, slow))
    mine, slow = np.mean(errors, axis=0)
    observe("M1", "Tobamovirus, 136 cells, 20 masks", f"RMSE {mine:.4f}, slow twin {slow:.4f}")


def test_imputation_of_wine_is_that_of_the_twin(observe):
    """20 % of the cells removed, columns in units of their observed standard deviations."""
    X, errors = load_wine().X, []
    for seed in range(3):
        gaps = holes(X, 0.2, seed)
        gone, scale = np.isnan(gaps), np.nanstd(gaps, axis=0)
        model, twin = ProbabilisticPCA(3).fit(gaps / scale), Twin(gaps / scale, 3, enough=1e-8)
        mine, slow = (root_mean_square((each.impute(gaps / scale) - X / scale)[gone]) for each in (model, twin))
        assert mine == pytest.approx(slow, rel=0.01)
        errors.append((mine, slow))
    mine, slow = np.mean(errors, axis=0)
    observe("M2", "wine, 20 % of cells, 3 masks", f"RMSE {mine:.4f}, slow twin {slow:.4f}")


def test_likelihood_of_observed_cells_is_that_of_the_marginal():
    X = holes(virus(), 0.3, 0)
    model = ProbabilisticPCA(2).fit(X)
    S = model.get_covariance()
    expected = []
    for x in X:
        o = ~np.isnan(x)
        expected.append(multivariate_normal(model.mean_[o], S[np.ix_(o, o)]).logpdf(x[o]))
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-9)
    assert model.log_likelihood_ == pytest.approx(sum(expected), rel=1e-10)
    assert model.score(X) == pytest.approx(np.mean(expected), rel=1e-10)


def test_imputation_is_the_conditional_distribution():
    X = holes(virus(), 0.3, 0)
    model = ProbabilisticPCA(2).fit(X)
    S, mean = model.get_covariance(), model.mean_
    filled, deviation = model.impute(X, return_std=True)
    for x, y, sd in zip(X, filled, deviation):
        o = ~np.isnan(x)
        weight = S[np.ix_(~o, o)] @ np.linalg.inv(S[np.ix_(o, o)])
        np.testing.assert_allclose(y[~o], mean[~o] + weight @ (x - mean)[o], atol=1e-9)
        conditional = S[np.ix_(~o, ~o)] - weight @ S[np.ix_(o, ~o)]
        np.testing.assert_allclose(sd[~o], np.sqrt(np.diag(conditional)), atol=1e-9)
        np.testing.assert_array_equal(y[o], x[o])
        assert not sd[o].any()
    np.testing.assert_array_equal(model.impute(X), filled)


def test_intervals_cover_what_they_say(observe):
    X = low_rank(1500, 60, 5, noise=0.5, missing=0.0)
    gaps = holes(X, 0.2, 1)
    gone = np.isnan(gaps)
    filled, deviation = ProbabilisticPCA(5).fit(gaps).impute(gaps, return_std=True)
    covered = np.mean(np.abs(filled - X)[gone] <= NORMAL_90 * deviation[gone])
    observe("M3", "90 % intervals of held-out cells", f"{covered:.1%} covered")
    assert 0.88 <= covered <= 0.92


def test_one_row_alone_is_as_among_others():
    X = holes(virus(), 0.3, 0)
    model = ProbabilisticPCA(2).fit(X)
    for method in (model.transform, model.score_samples, model.impute, lambda X: model.posterior(X).covariance):
        together = method(X)
        for i in (0, 7, 37):
            np.testing.assert_allclose(method(X[i : i + 1])[0], together[i], atol=1e-12)


def test_values_in_missing_cells_do_not_matter_and_the_caller_keeps_his_array():
    X = holes(virus(), 0.2, 0)
    before = X.copy()
    model = ProbabilisticPCA(2).fit(X)
    model.impute(X)
    model.transform(X)
    np.testing.assert_array_equal(X, before)


def test_trace_never_falls_and_ends_at_the_likelihood():
    model = ProbabilisticPCA(4).fit(holes(virus(), 0.4, 0))
    trace = np.array(model.result_.history.objective)
    assert len(trace) == model.n_iter_ > 3
    assert (np.diff(trace) >= -1e-9 * np.abs(trace[1:])).all()
    assert trace[-1] == model.log_likelihood_ == model.result_.objective
    assert model.certificate_.residual <= 1e-6
    assert model.certificate_.scope == "local"
    closed = ProbabilisticPCA(2).fit(virus()).result_
    assert closed.history.objective == [closed.objective]


# --- edge cases, as a table ---------------------------------------------------------------------------------


def test_row_without_cells(observe):
    X = holes(virus(), 0.2, 0)
    X[5] = np.nan
    model = ProbabilisticPCA(2).fit(X)
    without = ProbabilisticPCA(2).fit(np.delete(X, 5, axis=0))
    assert model.log_likelihood_ == pytest.approx(without.log_likelihood_, rel=1e-8)
    mean, spread = model.posterior(X[5:6])
    np.testing.assert_array_equal(mean, np.zeros((1, 2)))
    np.testing.assert_allclose(spread[0], np.eye(2), atol=1e-12)
    assert model.score_samples(X)[5] == pytest.approx(0.0, abs=1e-12)
    filled, deviation = model.impute(X, return_std=True)
    np.testing.assert_allclose(filled[5], model.mean_)
    np.testing.assert_allclose(deviation[5], np.sqrt(np.diag(model.get_covariance())))
    observe("M4", "a row without cells", "score 0, covariance I, likelihood 0, imputed by the mean; no say in the fit")


def test_column_without_cells(observe):
    X = holes(virus(), 0.2, 0)
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match="Column 3 has no observed cell: leave it out") as raised:
        ProbabilisticPCA(2).fit(X)
    observe("M5", "a column without cells", f"ValueError: {raised.value}")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"protein {j}" for j in range(18)])
    with pytest.raises(ValueError, match="'protein 3'"):
        ProbabilisticPCA(2).fit(frame)


def test_words_about_columns_without_cells():
    X = virus()
    X[:5, 6] = np.nan
    weight = np.append(np.ones(5), np.zeros(33))
    with pytest.raises(ValueError, match="Column 6 has no observed cell in rows with a weight"):
        ProbabilisticPCA(2).fit(X, sample_weight=weight)
    with pytest.raises(ValueError, match="X has no observed cell: all are NaN"):
        ProbabilisticPCA(2).fit(np.full((5, 3), np.nan))


def test_all_components_there_are_with_a_missing_cell():
    """One is left for the noise; data of rank 2 have 2."""
    rng = np.random.default_rng(0)
    full, wide = low_rank(60, 6, 3, missing=0.0), rng.normal(size=(10, 20))
    full[0, 0] = wide[0, 0] = np.nan
    assert ProbabilisticPCA().fit(full).n_components_ == 5
    model = ProbabilisticPCA().fit(wide)
    assert model.n_components_ == 8
    assert model.noise_variance_ > 1e-3
    flat = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6))
    gaps = flat.copy()
    gaps[0, 0] = np.nan
    for random_state in range(4):
        with pytest.warns(UserWarning, match="2 components leave nothing of X"):
            model = ProbabilisticPCA(random_state=random_state).fit(gaps)
        assert model.n_components_ == 2
        np.testing.assert_allclose(model.impute(gaps), flat, atol=1e-10)


def test_nearly_all_cells_missing(observe):
    X = low_rank(4000, 20, 2, missing=0.99)
    with pytest.warns(UserWarning, match="No row has both of the columns"):
        model = ProbabilisticPCA(2).fit(X)
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.impute(X)).all()
    truth = low_rank(4000, 20, 2, missing=0.0)
    assert model.log_likelihood_ > np.isfinite(X).sum() * -3
    away = root_mean_square(model.mean_ - truth.mean(axis=0))
    observe("M6", "99 % of the cells missing, 4000 x 20", f"finite, {model.n_iter_} steps; mean off by {away:.2f}")


def test_one_row(observe):
    with pytest.raises(ValueError, match=r"1 sample.*minimum of 2") as raised:
        ProbabilisticPCA(1).fit(np.ones((1, 3)))
    observe("M7", "one row", f"ValueError: {raised.value}")


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_constant_column(missing, observe):
    X = low_rank(60, 6, 2, missing=missing)
    X[~np.isnan(X[:, 2]), 2] = 7.0
    model = ProbabilisticPCA(2).fit(X)
    assert np.abs(model.weights_[2]).max() < 1e-3
    assert model.mean_[2] == pytest.approx(7.0, abs=1e-4)
    filled = model.impute(X)
    np.testing.assert_allclose(filled[:, 2], 7.0, atol=1e-2)
    observe("M8", f"a constant column, {missing:.0%} missing", "weight 0, imputed by its constant")


@pytest.mark.parametrize("method", ["closed-form", "em"])
def test_nothing_varies(method, observe):
    with pytest.warns(UserWarning, match="does not vary"):
        model = ProbabilisticPCA(2, method=method).fit(np.full((10, 4), 3.0))
    X = np.full((2, 4), 3.0)
    assert not model.transform(X).any()
    assert np.isfinite(model.score_samples(X)).all()
    observe("M8", f"all rows equal, {method}", f"UserWarning; noise {float(model.noise_variance_):.0e}, scores 0")


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_too_many_components(missing, observe):
    X = low_rank(30, 6, 2, missing=missing)
    with pytest.raises(ValueError, match=r"integer from 1 to 6 \(= min\(n, p\)\).*got 7") as raised:
        ProbabilisticPCA(7).fit(X)
    observe("M9", "k > p", f"ValueError: {raised.value}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a likelihood that has no end, if cells are missing
        model = ProbabilisticPCA(6, max_iter=200).fit(X)
    assert model.weights_.shape == (6, 6)
    assert all(np.isfinite(each).all() for each in (model.weights_, model.transform(X), model.score_samples(X)))
    observe("M9", f"k = p, {missing:.0%} missing", "fitted, all finite")


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_infinite_cell(missing, observe):
    X = low_rank(30, 6, 2, missing=missing)
    good = X.copy()
    X[4, 2] = np.inf
    with pytest.raises(ValueError, match="contains inf in column 2") as raised:
        ProbabilisticPCA(2).fit(X)
    observe("M10", f"inf, {missing:.0%} missing", f"ValueError: {raised.value}")
    model = ProbabilisticPCA(2).fit(good)
    for method in (model.transform, model.impute, model.score_samples, model.posterior):
        with pytest.raises(ValueError, match="contains inf in column 2"):
            method(X)


@pytest.mark.parametrize("method", ["closed-form", "em"])
def test_data_without_noise_stay_finite(method, observe):
    """sigma = 0 is the limit of the model, not a model: everything stays finite there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 8))
    with pytest.warns(UserWarning, match="leave nothing of X"):
        model = ProbabilisticPCA(3, method=method).fit(X)
    assert 0 < model.noise_variance_ < 1e-8
    for each in (model.transform(X), model.score_samples(X), model.posterior(X).covariance, model.get_precision()):
        assert np.isfinite(each).all()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-5)
    gone = X.copy()
    gone[::3, 2] = np.nan
    np.testing.assert_allclose(model.impute(gone), X, atol=1e-4)
    observe("M11", f"rank 2, k = 3, {method}", f"UserWarning; noise {float(model.noise_variance_):.0e}, all finite")


def test_low_rank_without_noise_and_missing_cells(observe):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8))
    gaps = holes(X, 0.2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the likelihood, which has no end
        model = ProbabilisticPCA(2).fit(gaps)
    assert np.isfinite(model.log_likelihood_)
    enough = np.isfinite(gaps).sum(axis=1) > 3
    error = np.abs(model.impute(gaps) - X)[enough].max()
    assert error < 1e-3
    observe("M11", "rank 2, k = 2, 20 % missing", f"cells found again to {error:.0e}")


def test_rank_deficient_rows_fewer_than_features():
    X = low_rank(8, 40, 2, missing=0.0)
    model = ProbabilisticPCA(3).fit(X)
    assert model.weights_.shape == (40, 3)
    values = np.linalg.eigvalsh(covariance(X))[::-1]
    assert model.noise_variance_ == pytest.approx(values[3:].mean())
    with pytest.warns(UserWarning, match="leave nothing of X"):
        full = ProbabilisticPCA(8).fit(X)
    assert np.isfinite(full.score_samples(X)).all()


# --- parameters ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "magic"}, "method must be one of auto, closed-form, em"),
        ({"n_components": "mle"}, "one of ard, bic, evidence, held-out"),
        ({"n_components": 0}, "integer from 1"),
        ({"n_components": 0.9}, "integer from 1"),
        ({"n_components": True}, "integer from 1"),
        ({"max_components": 0}, "max_components"),
        ({"tol": -1}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
    ],
)
def test_parameters_that_mean_nothing(given, message):
    with pytest.raises(ValueError, match=message):
        ProbabilisticPCA(**given).fit(virus())


def test_methods_that_need_complete_data():
    X = holes(virus(), 0.1, 0)
    with pytest.raises(ValueError, match='use method="em"'):
        ProbabilisticPCA(2, method="closed-form").fit(X)
    with pytest.raises(ValueError, match='"evidence" needs complete data'):
        ProbabilisticPCA("evidence").fit(X)


@pytest.mark.parametrize(
    "weight", [np.full(38, 1e300), np.full(38, 1e-300), np.ones(3), -np.ones(38), np.zeros(38), np.full(38, np.nan)]
)
def test_weights_that_mean_nothing(weight):
    with pytest.raises(ValueError, match="sample_weight must"):
        ProbabilisticPCA(2).fit(virus(), sample_weight=weight)


def test_one_weight_is_that_of_every_row():
    one, each = (ProbabilisticPCA(2).fit(virus(), sample_weight=weight) for weight in (3.0, np.full(38, 3.0)))
    assert one.log_likelihood_ == each.log_likelihood_
    assert (one.components_ == each.components_).all()


# --- how many -----------------------------------------------------------------------------------------------


def planted(seed, n=300, p=40):
    rng = np.random.default_rng(seed)
    strength = np.array([4, 3, 2.5, 2, 1.5])[:, None]
    return rng.standard_normal((n, 5)) @ (rng.standard_normal((5, p)) * strength) + rng.standard_normal((n, p))


@pytest.mark.parametrize(("n", "p"), [(300, 40), (240, 48)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_relevance_finds_the_planted_rank(n, p, missing, observe):
    found = []
    for seed in range(10):
        X = holes(planted(seed, n, p), missing, seed)
        found.append(ProbabilisticPCA("ard", max_components=15, random_state=0).fit(X).n_components_)
    observe("M12", f"ard, rank 5, {n} x {p}, {missing:.0%} missing", f"found {found}")
    assert found.count(5) >= 9


@pytest.mark.parametrize("choice", ["bic", "held-out", "evidence"])
def test_other_choices_find_the_planted_rank(choice, observe):
    found = [ProbabilisticPCA(choice, random_state=0).fit(planted(seed)).n_components_ for seed in range(5)]
    observe("M12", f"{choice}, rank 5, 300 x 40", f"found {found}")
    assert found.count(5) >= 4


@pytest.mark.parametrize("choice", ["bic", "held-out"])
def test_choices_with_missing_cells(choice):
    X = holes(planted(1), 0.2, 0)
    assert ProbabilisticPCA(choice, max_components=8, random_state=0).fit(X).n_components_ == 5


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_what_was_chosen_is_fitted_by_maximum_likelihood(missing):
    X = holes(planted(1), missing, 0)
    chosen, told = ProbabilisticPCA("ard", max_components=15, random_state=0).fit(X), ProbabilisticPCA(5).fit(X)
    assert chosen.log_likelihood_ == pytest.approx(told.log_likelihood_, rel=1e-6)
    assert chosen.noise_variance_ == pytest.approx(told.noise_variance_, rel=1e-3)


@pytest.mark.parametrize("method", ["closed-form", "em"])
def test_noise_alone_keeps_one_component_and_says_so(method):
    X = np.random.default_rng(0).normal(size=(200, 20))
    with pytest.warns(UserWarning, match="nothing that stands out"):
        model = ProbabilisticPCA("ard", method=method, random_state=0).fit(X)
    assert model.n_components_ == 1


def test_a_choice_at_its_limit_says_so():
    rng = np.random.default_rng(0)
    X = 5 * rng.normal(size=(400, 60)) @ rng.normal(size=(60, 90)) + rng.normal(size=(400, 90))
    with pytest.warns(UserWarning, match="Raise max_components"):
        ProbabilisticPCA("ard").fit(X)
    assert ProbabilisticPCA("ard", max_components=80).fit(X).n_components_ == 60


@pytest.mark.parametrize(
    ("n", "p", "rank", "missing"), [(20, 50, 2, 0.001), (40, 100, 3, 0.1), (50, 200, 3, 0.05), (60, 48, 3, 0.1)]
)
def test_relevance_with_more_columns_than_rows(n, p, rank, missing):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = 3 * rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p)) + rng.normal(size=(n, p))
        gaps = holes(X, missing, seed)
        gaps[0, 0] = np.nan
        model = ProbabilisticPCA("ard", random_state=0).fit(gaps)
        assert model.n_components_ == ProbabilisticPCA("ard").fit(X).n_components_ == rank
        assert 0.7 < model.noise_variance_ < 1.1


@pytest.mark.parametrize("missing", [False, True])
def test_bic_does_not_take_a_model_without_noise(missing):
    for seed, shape in enumerate([(10, 30), (20, 100), (30, 200)]):
        X = np.random.default_rng(seed).normal(size=shape)
        if missing:
            X[0, 0] = np.nan
        model = ProbabilisticPCA("bic", random_state=0).fit(X)
        assert model.n_components_ == 1
        assert model.noise_variance_ > 0.5
    warning = "chose 1, the most that could be judged" if missing else "chose 3 for 5 rows"
    with pytest.warns(UserWarning, match=warning):
        assert ProbabilisticPCA("bic", random_state=0).fit(X[:5]).noise_variance_ > 0.01


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("choice", ["bic", "ard"])
def test_the_rank_of_data_without_noise_is_chosen(choice, missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 6))
    if missing:
        X[0, 0] = np.nan
    with pytest.warns(UserWarning, match="2 components leave nothing of X"):
        assert ProbabilisticPCA(choice, random_state=0).fit(X).n_components_ == 2


@pytest.mark.parametrize("choice", ["bic", "ard"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_rows_without_a_weight_have_no_say_in_a_choice(choice, missing):
    """A model is charged for what its rows cannot know: silent rows would make any structure certain."""
    X = holes(planted(0, 120, 20), missing, 0)
    silent = np.zeros((20_000, 20))
    weight = np.repeat([1e-4, 0.0], [120, 20_000])
    model = ProbabilisticPCA(choice, random_state=0).fit(np.vstack([X, silent]), sample_weight=weight)
    assert model.n_components_ == 5


@pytest.mark.parametrize("choice", ["bic", "ard", "held-out"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_weights_that_sum_to_less_than_one_are_relative(choice, missing):
    X = holes(planted(0, 120, 20), missing, 0)
    found = [
        ProbabilisticPCA(choice, random_state=0).fit(X, sample_weight=np.full(120, each)).n_components_
        for each in (1.0, 1e-4, 1e-20)
    ]
    assert found == [5, 5, 5]
    assert ProbabilisticPCA("bic", max_components=20).fit(planted(0, 120, 20)).n_components_ == 5


# --- missing cells and the number of components -------------------------------------------------------------


def coverage(model, gaps, X):
    """The share of missing cells that are within their 90 % intervals."""
    gone = np.isnan(gaps)
    filled, deviation = model.impute(gaps, return_std=True)
    return np.mean(np.abs(filled - X)[gone] <= NORMAL_90 * deviation[gone])


def without(X, count, seed):
    """X with so many cells taken out."""
    gaps = X.copy()
    gaps.ravel()[np.random.default_rng(seed).choice(X.size, count, replace=False)] = np.nan
    return gaps


@pytest.mark.parametrize(("choice", "least"), [("bic", 0.8), ("held-out", 0.85)])
def test_intervals_of_a_chosen_model_cover_what_is_missing(choice, least, observe):
    X = virus()
    gaps = without(X, 136, 0)
    model = ProbabilisticPCA(choice, random_state=0).fit(gaps)
    covered = coverage(model, gaps, X)
    observe("M12", f"{choice}, viruses, 20 % missing", f"k = {model.n_components_}, 90 % intervals cover {covered:.0%}")
    assert model.noise_variance_ > 0.5
    assert covered >= least


@pytest.mark.parametrize("choice", ["ard", "bic", "held-out"])
@pytest.mark.parametrize("missing", [0.1, 0.2, 0.3, 0.5, 0.6])
def test_no_choice_takes_a_model_that_has_collapsed(choice, missing):
    X = virus()
    # 13 components pass through all cells of rows with a fifth missing; of complete rows they leave this much.
    least, covered = ProbabilisticPCA(13).fit(X).noise_variance_, []
    for seed in range(3):
        gaps = without(X, int(missing * X.size), seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*the most that could be judged")
            model = ProbabilisticPCA(choice, random_state=0).fit(gaps)
        covered.append(coverage(model, gaps, X))
        assert model.noise_variance_ > least
    assert np.mean(covered) >= {"ard": 0.55, "bic": 0.75, "held-out": 0.75}[choice]


@pytest.mark.parametrize("choice", ["ard", "bic"])
@pytest.mark.parametrize(("n", "p", "rank"), [(38, 18, 2), (50, 20, 3), (30, 60, 3), (100, 18, 4), (60, 12, 6)])
@pytest.mark.parametrize("missing", [0.1, 0.3])
def test_planted_ranks_are_found_in_few_rows_with_gaps(choice, n, p, rank, missing):
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        W = rng.normal(size=(rank, p)) * np.linspace(4, 2, rank)[:, None]
        X = rng.normal(size=(n, rank)) @ W + rng.normal(size=(n, p))
        found.append(
            ProbabilisticPCA(choice, random_state=0).fit(without(X, int(missing * X.size), seed)).n_components_
        )
    assert found.count(rank) >= 4


def test_freedom_is_what_a_perfect_fit_leaves():
    """k components pass through all cells of noise exactly where no freedom is left."""
    X = without(np.random.default_rng(0).normal(size=(20, 8)), 40, 1)
    cells = np.bincount((~np.isnan(X)).sum(axis=1), minlength=9)
    free = [freedom(cells, k) for k in range(1, 8)]
    least = []
    for k in range(1, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            least.append(float(ProbabilisticPCA(k, max_iter=3000, random_state=0).fit(X).noise_variance_))
    assert free[0] > 0 > free[-1]
    assert all((noise < 1e-6) == (left <= 0) for noise, left in zip(least, free))


def test_other_methods_name_this_one_where_cells_are_missing(tmp_path):
    X = without(virus(), 1, 0)
    for estimator in (PCA(2), SparsePCA(2, nonzeros=3)):
        with pytest.raises(ValueError, match=r"take ProbabilisticPCA \(on the command line: --method probabilistic\)"):
            estimator.fit(X)
    np.save(tmp_path / "gaps.npy", X)
    done = command("fit", "gaps.npy", "--no-report", cwd=tmp_path)
    assert done.returncode != 0
    assert "--method probabilistic" in done.stderr


# --- scale --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_scale_is_the_model_of_divided_columns(missing, weighted, tmp_path):
    X = holes(load_wine().X, missing, 0)
    weight = np.arange(len(X)) % 3 + 1.0 if weighted else np.ones(len(X))
    counts = weight @ ~np.isnan(X)
    mean = weight @ np.nan_to_num(X) / counts
    deviation = np.sqrt(weight @ np.nan_to_num((X - mean) ** 2) / counts)
    how = {"sample_weight": weight if weighted else None}
    model = ProbabilisticPCA(3, scale=True, random_state=0).fit(X, **how)
    plain = ProbabilisticPCA(3, random_state=0).fit(X / deviation, **how)
    assert np.allclose(model.scale_, deviation, rtol=1e-12)
    assert np.allclose(model.components_, plain.components_, atol=1e-8)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-8)
    assert np.allclose(model.mean_, plain.mean_ * deviation, rtol=1e-8)
    assert np.allclose(model.transform(X), plain.transform(X / deviation), atol=1e-7)
    assert np.allclose(model.inverse_transform(np.eye(3)), plain.inverse_transform(np.eye(3)) * deviation, rtol=1e-6)
    assert np.allclose(model.sample(5, 1), plain.sample(5, 1) * deviation, rtol=1e-6)
    gaps = holes(X, 0.1, 1)
    for mine, other in zip(model.impute(gaps, return_std=True), plain.impute(gaps / deviation, return_std=True)):
        assert np.allclose(mine, other * deviation, rtol=1e-6)
    assert np.array_equal(model.impute(gaps)[~np.isnan(gaps)], gaps[~np.isnan(gaps)])
    princomp.save(model, tmp_path / "m.princomp")
    again = princomp.load(tmp_path / "m.princomp")
    assert np.array_equal(again.impute(gaps), model.impute(gaps))
    assert np.array_equal(again.scale_, model.scale_)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_with_scale_the_density_is_that_of_the_data(missing):
    X = holes(load_wine().X, missing, 0)
    model = ProbabilisticPCA(3, scale=True, random_state=0).fit(X)
    C = model.get_covariance()
    expected = [
        multivariate_normal(model.mean_[o], C[np.ix_(o, o)]).logpdf(x[o]) for x, o in zip(X, ~np.isnan(X)) if o.any()
    ]
    assert np.allclose(model.score_samples(X), expected, rtol=1e-8)
    assert model.log_likelihood_ == pytest.approx(np.sum(expected), rel=1e-9)
    assert model.result_.objective == model.result_.history.objective[-1] == model.log_likelihood_
    assert np.allclose(model.get_precision() @ C, np.eye(len(C)), atol=1e-7)
    # Columns of such different units have nothing like the same noise.
    assert model.log_likelihood_ > ProbabilisticPCA(3, random_state=0).fit(X).log_likelihood_


def test_with_scale_units_do_not_matter():
    X = holes(load_wine().X, 0.2, 0)
    units = 10.0 ** np.linspace(-60, 60, X.shape[1])
    model, other = (ProbabilisticPCA("bic", scale=True, random_state=0).fit(each) for each in (X, X * units))
    assert model.n_components_ == other.n_components_
    assert np.allclose(other.transform(X * units), model.transform(X), atol=1e-5)
    assert np.allclose(other.impute(X * units) / units, model.impute(X), rtol=1e-5)


def test_scale_of_a_covariance_constant_columns_and_other_storages():
    X = np.column_stack([load_wine().X, np.full(178, 0.1)])
    model = ProbabilisticPCA(2, scale=True).fit(X)
    assert model.scale_[-1] == 1
    given = ProbabilisticPCA(2, scale=True).fit_covariance(covariance(load_wine().X), 178)
    told = ProbabilisticPCA(2, scale=True).fit(load_wine().X)
    assert given.log_likelihood_ == pytest.approx(told.log_likelihood_, rel=1e-9)
    assert np.allclose(given.get_covariance(), told.get_covariance(), rtol=1e-6)
    for other in (sp.csr_array(X), shards(X), X.astype(np.float32)):
        again = ProbabilisticPCA(2, scale=True).fit(other)
        assert np.allclose(again.components_, model.components_, atol=1e-4)
        assert np.allclose(again.scale_, model.scale_, rtol=1e-5)


# --- storages, weights, precision ---------------------------------------------------------------------------


def memory_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


STORAGES = {
    "memmap": memory_map,
    "fortran": lambda X, folder: np.asfortranarray(X),
    "shards": lambda X, folder: shards(X, (1, 30, 50)),
    "sparse": lambda X, folder: sp.csr_array(X),
    "frame": lambda X, folder: pytest.importorskip("polars").DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_same_model_on_every_storage(storage, missing, tmp_path):
    X = low_rank(150, 12, 3, missing=missing)
    given = STORAGES[storage](X, tmp_path)
    one, other = ProbabilisticPCA(3, random_state=0).fit(X), ProbabilisticPCA(3, random_state=0).fit(given)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, rel=1e-10)
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e-8)
    np.testing.assert_allclose(np.asarray(other.transform(given)), one.transform(X), atol=1e-8)
    np.testing.assert_allclose(other.impute(given), one.impute(X), atol=1e-8)
    np.testing.assert_allclose(other.score_samples(given), one.score_samples(X), rtol=1e-8)


@pytest.mark.needs("dask")
@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_same_model_on_dask_and_answers_stay_lazy(missing, dask_client):
    import dask.array

    X = low_rank(150, 12, 3, missing=missing)
    lazy = dask.array.from_array(X, chunks=(40, 6))
    one, other = ProbabilisticPCA(3, random_state=0).fit(X), ProbabilisticPCA(3, random_state=0).fit(lazy)
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e-8)
    for method in ("transform", "impute", "score_samples"):
        answer = getattr(other, method)(lazy)
        assert isinstance(answer, dask.array.Array)
        np.testing.assert_allclose(answer.compute(), getattr(one, method)(X), atol=1e-7)
    np.testing.assert_allclose(other.posterior(lazy).covariance.compute(), one.posterior(X).covariance, atol=1e-8)
    assert other.score(lazy) == pytest.approx(one.score(X))


def test_missing_cells_of_a_sparse_matrix_are_not_its_zeros():
    X = low_rank(60, 8, 2, missing=0.0)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    X[3, 4] = X[10, 2] = np.nan
    dense, sparse = ProbabilisticPCA(2).fit(X), ProbabilisticPCA(2).fit(sp.csr_array(X))
    assert sparse.log_likelihood_ == pytest.approx(dense.log_likelihood_, rel=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("shape", [(60, 8), (8, 20)])
def test_weights_are_repetition(missing, shape):
    X = low_rank(*shape, 2, missing=missing)
    weight = np.random.default_rng(0).integers(1, 4, shape[0])
    weight[3] = 0
    weighted = ProbabilisticPCA(2, random_state=0, tol=1e-10).fit(X, sample_weight=weight)
    repeated = ProbabilisticPCA(2, random_state=0, tol=1e-10).fit(np.repeat(X, weight, axis=0))
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-8)
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-5)
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-4)
    halved = ProbabilisticPCA(2, random_state=0, tol=1e-10).fit(X, sample_weight=weight / 2)
    np.testing.assert_allclose(halved.weights_, weighted.weights_, atol=1e-4)
    assert weighted.certificate_.holds


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_single_precision_is_kept(missing):
    X = low_rank(80, 8, 2, missing=missing)
    single, double = ProbabilisticPCA(2).fit(X.astype(np.float32)), ProbabilisticPCA(2).fit(X)
    for name in ("weights_", "components_", "mean_", "explained_variance_", "explained_variance_ratio_"):
        assert getattr(single, name).dtype == np.float32
    assert single.noise_variance_.dtype == np.float32
    for method in (single.transform, single.impute, lambda X: single.posterior(X).covariance):
        assert method(X.astype(np.float32)).dtype == np.float32
    assert single.sample(2).dtype == np.float32
    np.testing.assert_allclose(single.transform(X), double.transform(X), atol=1e-3)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_offset_of_a_hundred_million(missing):
    X = low_rank(200, 8, 2, missing=missing)
    near, far = ProbabilisticPCA(2).fit(X), ProbabilisticPCA(2).fit(X + 1e8)
    assert far.noise_variance_ == pytest.approx(near.noise_variance_, rel=1e-5)
    np.testing.assert_allclose(far.transform(X + 1e8), near.transform(X), atol=1e-4)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("unit", [1e-120, 1e120])
def test_extreme_units(unit, missing):
    X = low_rank(100, 8, 2, missing=missing)
    usual, extreme = ProbabilisticPCA(2).fit(X), ProbabilisticPCA(2).fit(X * unit)
    cells = np.isfinite(X).sum()
    np.testing.assert_allclose(extreme.weights_ / unit, usual.weights_, rtol=1e-3, atol=1e-5)
    assert extreme.log_likelihood_ + cells * np.log(unit) == pytest.approx(usual.log_likelihood_, abs=1e-5 * cells)
    np.testing.assert_allclose(extreme.transform(X * unit), usual.transform(X), atol=1e-4)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_variance_that_overflows_is_refused(missing):
    with pytest.raises(ValueError, match="more than float64 holds"):
        ProbabilisticPCA(2).fit(low_rank(100, 8, 2, missing=missing) * 1e200)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    ("factor", "dtype", "message"),
    [
        (1e25, np.float32, "more than float32 holds.*or give it as float64"),
        (1e-25, np.float32, "too small for float32"),
        (1e-160, np.float64, "too small for float64. Multiply X by a constant"),
        (1e-300, np.float64, "too small for float64"),
    ],
)
def test_variance_out_of_range_is_refused(factor, dtype, message, missing):
    with pytest.raises(ValueError, match=message):
        ProbabilisticPCA(2).fit((low_rank(100, 8, 2, missing=missing) * factor).astype(dtype))


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_no_square_matrix_of_many_features(missing):
    X = low_rank(30, 20_000, 3, missing=missing)
    with Allocated() as allocated:
        model = ProbabilisticPCA(3, random_state=0).fit(X)
        model.transform(X)
        model.score_samples(X)
        model.sample(3)
    assert allocated.peak < 8 * 20_000**2 / 10


# --- files, callbacks, scikit-learn -------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_model_file(missing, tmp_path):
    X = holes(virus(), missing, 0)
    model = ProbabilisticPCA(2, rotation=orthonormal(np.random.default_rng(0), 2, 2)).fit(X)
    princomp.save(model, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    for method in ("transform", "impute", "score_samples"):
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
    np.testing.assert_array_equal(again.get_precision(), model.get_precision())
    assert again.result_.history.objective == model.result_.history.objective
    assert again.log_likelihood_ == model.log_likelihood_
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


def test_interrupted_fit_goes_on_from_its_checkpoint(tmp_path):
    X = low_rank(200, 30, 3, missing=0.5)
    path = tmp_path / "state"
    whole = ProbabilisticPCA(6, random_state=0).fit(X)
    assert whole.n_iter_ > 10

    def interrupt(state):
        if state.iteration == 7:
            raise KeyboardInterrupt

    model = ProbabilisticPCA(6, random_state=0, checkpoint=path, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not hasattr(model, "weights_")
    assert path.exists()
    seen = []
    resumed = clone(model).set_params(callback=lambda state: seen.append(state.iteration)).fit(X)
    assert seen[0] == 8
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    assert not path.exists()


def test_callback_can_stop_the_fit():
    with pytest.warns(UserWarning, match="Stopped by the callback"):
        model = ProbabilisticPCA(3, callback=lambda state: state.iteration >= 2).fit(holes(virus(), 0.2, 0))
    assert model.n_iter_ == 2


def test_closed_form_of_complete_data_takes_rows_with_gaps():
    X = virus()
    model = ProbabilisticPCA(2, method="closed-form").fit(X)
    gaps = holes(X, 0.2, 0)
    np.testing.assert_array_equal(model.impute(gaps), ProbabilisticPCA(2).fit(X).impute(gaps))


def test_nan_is_allowed_and_said_to_be():
    assert get_tags(ProbabilisticPCA()).input_tags.allow_nan
    assert not get_tags(PCA()).input_tags.allow_nan


def test_output_as_a_frame_keeps_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(holes(virus(), 0.1, 0), columns=[f"acid {j}" for j in range(18)])
    model = ProbabilisticPCA(2).set_output(transform="pandas").fit(frame)
    assert list(model.transform(frame).columns) == ["probabilisticpca0", "probabilisticpca1"]
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_scaled_columns_at_a_large_offset_lose_no_digits(missing):
    X = np.round(holes(virus(), missing, 0) * 2**10) / 2**10  # so that the offset costs the data none
    offset = 2.0**32
    near, far = (ProbabilisticPCA(2, scale=True).fit(each) for each in (X, X + offset))
    assert np.abs(near.components_ - far.components_).max() < 1e-12
    assert np.allclose(far.mean_ - offset, near.mean_, rtol=0, atol=4 * np.spacing(offset))


# --- command line -------------------------------------------------------------------------------------------


def table(path):
    """Columns of a CSV file by name."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


@pytest.mark.needs("pyarrow", "jinja2")
def test_command_line_fills_empty_cells(tmp_path):
    X = holes(virus(), 0.2, 0)
    names = [f"acid{j}" for j in range(18)]
    lines = [["virus", *names]] + [
        [f"virus {i}", *("" if np.isnan(cell) else str(int(cell)) for cell in row)] for i, row in enumerate(X)
    ]
    with (tmp_path / "gaps.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    done = command("fit", "gaps.csv", "--method", "probabilistic", "-k", 2, "--index", "virus", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "imputed.csv" in done.stdout
    found = table(tmp_path / "out" / "imputed.csv")
    filled, deviation = ProbabilisticPCA(2, random_state=0).fit(X).impute(X, return_std=True)
    assert list(found) == ["sample", *names, *(f"{name} (sd)" for name in names)]
    assert found["sample"][1] == "virus 1"
    np.testing.assert_allclose(np.array([found[name] for name in names], float).T, filled, rtol=1e-12)
    sd = np.array([found[f"{name} (sd)"] for name in names], float).T
    np.testing.assert_allclose(sd, deviation, rtol=1e-12)
    assert (sd[np.isnan(X)] > 0).all()
    assert not sd[~np.isnan(X)].any()
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["estimator"] == "ProbabilisticPCA"
    assert summary["status"]["code"] == "converged"
    assert (tmp_path / "out" / "report.html").stat().st_size > 1000
    again = command("transform", "out/model.princomp", "gaps.csv", "--index", "virus", "-o", "new.csv", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert table(tmp_path / "new.csv") == table(tmp_path / "out" / "scores.csv")


@pytest.mark.needs("pyarrow", "jinja2")
def test_command_line_without_empty_cells(tmp_path):
    path = load_tobamovirus().path
    done = command("fit", path, "--method", "probabilistic", "-k", 2, "--index", "virus", "-o", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "out" / "imputed.csv").exists()
