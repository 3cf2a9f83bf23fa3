"""Online robust PCA: its loss, its scales, sums over rows, steps, restarts, and what its certificate says."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from helpers import only_user_warnings, orthonormal, subspace_sine
from princomp import RobustPCA
from princomp.data import Centered, as_rows
from princomp.solvers.robust import online
from princomp.solvers.robust.bounded import (
    NONE,
    WHOLE,
    cell_losses,
    cell_weights,
    excess_and_slope,
    expected_excess,
    judge,
)

EPS = float(np.finfo(np.float64).eps)
K, P = 3, 14


def table(n=200, seed=0, bad=0.1, missing=0.0, noise=0.2):
    rng = np.random.default_rng(seed)
    V = orthonormal(rng, P, K)
    X = rng.normal(size=(n, K)) * [6, 5, 4] @ V.T + noise * rng.normal(size=(n, P)) + np.linspace(-9, 9, P)
    wild = rng.random(X.shape) < bad
    X[wild] = 40.0
    X[rng.random(X.shape) < missing] = np.nan
    return X, V


def steps(X, k=K, n=100):
    rows = as_rows(X)
    model, _ = online.start(X[:80], k, EPS)
    yield from zip(range(n), online.passes(online.as_value(model), partial(Centered, rows), EPS))


# --- the loss and its scale -------------------------------------------------------------------------


def test_weights_are_slopes_of_the_loss():
    errors = np.linspace(-6, 6, 2401)
    slope = (cell_losses(errors + 1e-6) - cell_losses(errors - 1e-6)) / 2e-6
    np.testing.assert_allclose(cell_weights(errors) * errors, slope, atol=1e-5)
    assert (cell_weights(errors[np.abs(errors) <= WHOLE]) == 1).all()
    assert (cell_weights(errors[np.abs(errors) >= NONE]) == 0).all()
    assert np.ptp(cell_losses(errors[np.abs(errors) > NONE])) < 1e-12


def test_the_scale_of_normal_errors_is_one():
    points = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    chi, slope = excess_and_slope(points)
    assert chi.mean() == pytest.approx(0.5, abs=1e-4)
    for share in (1.0, 0.5, 0.1):
        found = excess_and_slope(np.sqrt(share) * points)[0].mean()
        assert expected_excess(share) == pytest.approx(found, abs=1e-4)
    larger = excess_and_slope(points / 1.001)[0].mean()
    assert (chi.mean() - larger) / np.log(1.001) == pytest.approx(slope.mean(), rel=1e-2)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_scores_are_where_the_loss_of_a_row_has_no_slope(missing):
    """Found again by a general minimiser that begins there, and by none of the directions tried is it lower nearby."""
    X, V = table(40, missing=missing)
    X = X - np.linspace(-9, 9, P)
    noise, prior = np.full(P, 0.2), 0.04 * np.diag([1 / 36, 1 / 25, 1 / 16])
    found = judge(X, V, noise, prior)

    def loss(z, x, t):
        left = (x - V @ z)[~np.isnan(x)]
        return (0.2 * t) ** 2 * cell_losses(left / (0.2 * t)).sum() + t**2 * z @ prior @ z / 2

    for x, z, t in zip(X, found.Z, found.scales):
        again = minimize(loss, z, args=(x, t), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
        assert again.fun >= loss(z, x, t) - 1e-9
        np.testing.assert_allclose(again.x, z, atol=1e-3)


def test_rows_whose_cells_are_all_wild_count_for_little():
    X, V = table(5, bad=0.0)
    X = X - np.linspace(-9, 9, P)
    X[2] = 1e6 * np.random.default_rng(0).normal(size=P)
    found = judge(X, V, np.full(P, 0.2), 1e-3 * np.eye(K))
    assert found.scales[2] > 1e6
    assert found.scales[[0, 1, 3, 4]].max() < 1.5


# --- sums, steps, restarts --------------------------------------------------------------------------


def test_sums_are_those_of_any_split_of_rows():
    X, _ = table(missing=0.1)
    model, _ = online.start(X[:80], K, EPS)
    whole = online.sums_of(Centered(as_rows(X), model.mean), model)
    parts = [online.sums_of(Centered(as_rows(part), model.mean), model) for part in (X[:7], X[7:90], X[90:])]
    for one, other in zip(whole, online.add(online.add(parts[0], parts[1]), parts[2])):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * np.abs(one).max())


def test_each_state_is_gone_on_from_bit_by_bit():
    X, _ = table(bad=0.15, missing=0.05)
    rows = as_rows(X)
    states = [state for _, state in steps(X, k=K + 2, n=25)]
    assert any(len(state.value["points"]) > 2 for state in states)
    for state, following in itertools.pairwise(states):
        again = next(online.passes(state.value, partial(Centered, rows), EPS))
        assert again.value.keys() == following.value.keys()
        for name, array in following.value.items():
            np.testing.assert_array_equal(again.value[name], array)
        assert (again.residual, again.objective) == (following.residual, following.objective)


def test_where_passes_end_each_column_is_its_own_regression_on_scores():
    """Column by column, by the textbook: outside the plane they have nothing, nor does the mean move."""
    X, V = table(300)
    *_, (_, state) = (found for found in steps(X, n=30))
    model = online.as_model(state.value, "answer_")
    assert state.residual < 1e-10
    assert subspace_sine(model.V.T, V.T) < 0.02
    found = judge(X - model.mean, model.V, model.noise, np.mean(model.noise**2) * np.linalg.inv(model.scatter))
    H = np.column_stack([found.Z, np.ones(len(X))])
    L = np.empty((P, K + 1))
    for j in range(P):
        w = found.weights[:, j] / found.scales**2
        A = (H * w[:, None]).T @ H
        A[:K, :K] += np.einsum("i,ikl->kl", w, found.doubt)
        L[j] = np.linalg.solve(A, (w * (X[:, j] - model.mean[j])) @ H)
    off = L[:, :K] - model.V @ (model.V.T @ L[:, :K])
    assert np.abs(off).max() < 1e-8
    np.testing.assert_allclose(model.V.T @ L[:, :K], np.eye(K), atol=0.05)  # K: rows are weighed in more than one way
    shift = L[:, K] - model.V @ (model.V.T @ L[:, K])
    assert np.abs(shift).max() < 1e-8


def test_without_wild_cells_it_is_nearly_pca():
    X, _ = table(1000, bad=0.0)
    C = X - X.mean(axis=0)
    model = RobustPCA(K, method="online", random_state=0).fit(X)
    _, values, rows = np.linalg.svd(C, full_matrices=False)
    assert subspace_sine(model.components_, rows[:K]) < 5e-3
    np.testing.assert_allclose(model.explained_variance_, values[:K] ** 2 / 999, rtol=0.1)
    assert model.cell_scale_.mean() == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("stream", [False, True])
def test_components_of_noise_do_not_count(share, stream):
    """They have some variance more than the noise, by chance."""
    rng = np.random.default_rng(1)
    V = np.linalg.qr(rng.normal(size=(20, 2)))[0]
    X = 4 * rng.normal(size=(1000, 2)) @ V.T + rng.normal(size=(1000, 20))
    X[rng.random(X.shape) < share] += 30
    model = RobustPCA(5, method="online", random_state=0)
    with only_user_warnings():
        for part in np.split(X, 10) if stream else [X]:
            model = model.partial_fit(part) if stream else model.fit(part)
    assert model.rank_ == 2


def test_components_beyond_those_there_are_do_not_follow_wild_cells():
    """Least absolute deviations would take a column's wild cells for a component of their own."""
    X, V = table(600)
    with only_user_warnings():  # half of all columns for components: it may not settle
        model = RobustPCA(K + 4, method="online", random_state=0).fit(X)
    assert subspace_sine(model.components_[:K], V.T) < 0.02
    assert model.rank_ == K
    assert model.explained_variance_[K:].max() < 0.2


@pytest.mark.parametrize("block", [1, 37, 600])
def test_a_stream_in_any_blocks_begins_with_the_same_start(block):
    """Up to as many rows as the start takes, the answer is that of all of them, however they come."""
    X, _ = table(290)
    whole, parts = (RobustPCA(K, method="online", random_state=0) for _ in range(2))
    whole.partial_fit(X)
    for begin in range(0 if block > 1 else 280, len(X), block):
        parts.partial_fit(X[:280] if begin == 280 and block == 1 else X[begin : begin + block])
    if block == 1:
        whole = RobustPCA(K, method="online", random_state=0).partial_fit(np.vstack([X[:280], X[281:]]))
    np.testing.assert_allclose(parts.components_, whole.components_, atol=1e-12)
    assert parts.n_samples_ == whole.n_samples_
