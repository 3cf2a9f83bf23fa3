"""Sparse PCA as a regression: published values, certificates, restarts, and data in every form."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from princomp import SparsePCA
from princomp._compiled.regression_descent import two_products
from princomp.certificates.regression import weights
from princomp.data import as_rows, statistics
from princomp.datasets import load_pitprops
from princomp.penalties import L1
from princomp.result import run
from princomp.solvers import amanpg, one_shot, regression, scatter
from princomp.solvers.regression_reduced import ReducedObjective
from princomp.solvers.regression_starts import _SideBySide

PITPROPS = load_pitprops().correlation
ALPHA = np.array([0.06, 0.16, 0.1, 0.5, 0.5, 0.5])
VALUES = {1e-6: -9.110125982, 0.01: -9.062528493, 1.0: -6.302189283, np.inf: -25.717683258}
SOLVERS = {"block": regression.block, "amanpg": amanpg.sparse_pca}


def fit(data, k, alpha, ridge, *, solver="block", tol=1e-6, n_init=1, max_iter=20_000):
    alpha = np.broadcast_to(np.asarray(alpha, float), (k,)).copy()
    begin = regression.start(data, k, alpha=alpha, ridge=ridge, n_init=n_init, rng=np.random.default_rng(0))
    return run(partial(SOLVERS[solver], data, alpha=alpha, ridge=ridge), begin, tol=tol, max_iter=max_iter)


def objective(S, A, B, alpha, ridge):
    """Written again, from the formula."""
    penalty = (np.abs(B) * alpha).sum()
    if np.isinf(ridge):
        return -2 * np.trace(A.T @ S @ B) + (B**2).sum() + penalty
    return np.trace(B.T @ S @ B) - 2 * np.trace(A.T @ S @ B) + ridge * (B**2).sum() + penalty


def random_data(n, p, seed):
    X = np.random.RandomState(seed).randn(n, p)
    X -= X.mean(axis=0)
    return X / np.sqrt((X**2).sum(axis=0).max())


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("ridge", VALUES)
def test_pitprops_values(solver, ridge):
    found = fit(scatter.Matrix(PITPROPS), 6, ALPHA, ridge, solver=solver)
    A, B = found.value["A"], found.value["B"]
    assert found.status.code == "converged"
    assert found.objective == pytest.approx(VALUES[ridge], abs=1e-6)
    assert objective(PITPROPS, A, B, ALPHA, ridge) == pytest.approx(found.objective, abs=1e-10)
    assert np.abs(A.T @ A - np.eye(6)).max() < 1e-12


def test_published_loadings_of_pitprops_at_the_loose_stop():
    """Zou, Hastie & Tibshirani (2006), table 3: alternation from V until loadings move by less than 1e-3."""
    A = B = np.linalg.eigh(PITPROPS)[1][:, ::-1][:, :6]
    before = np.zeros_like(B)
    while True:
        B = np.column_stack([elastic_net(PITPROPS, A[:, j], ALPHA[j], 1e-6, B[:, j]) for j in range(6)])
        A = regression.polar(PITPROPS @ B, A)
        loadings = B / np.linalg.norm(B, axis=0)
        moved = np.minimum(np.abs(loadings - before).max(axis=0), np.abs(loadings + before).max(axis=0)).max()
        if moved < 1e-3:
            break
        before = loadings
    first = [0.477, 0.476, 0, 0, 0.177, 0, 0.250, 0.344, 0.416, 0.400, 0, 0, 0]
    second = [0, 0, 0.785, 0.619, 0, 0, 0, 0.021, 0, 0, 0, 0.013, 0]
    third = [0, 0, 0, 0, 0.641, 0.589, 0.492, 0, 0, 0, 0, 0, 0.016]
    assert np.abs(np.abs(loadings[:, :3]) - np.column_stack([first, second, third])).max() < 1.5e-3
    assert [np.flatnonzero(loadings[:, j]).tolist() for j in (3, 4, 5)] == [[10], [11], [12]]
    converged = fit(scatter.Matrix(PITPROPS), 6, ALPHA, 1e-6).value["B"]
    assert ((loadings != 0) == (converged != 0)).all()
    difference = np.abs(np.abs(converged / np.linalg.norm(converged, axis=0)) - np.abs(loadings)).max()
    assert 1e-4 < difference < 0.05  # what was published is not the minimum


def elastic_net(S, a, alpha, ridge, b):
    """Coordinate descent for b'(S + ridge I) b - 2 a'S b + alpha |b|_1."""
    b, target = b.copy(), S @ a
    for _ in range(2000):
        old = b.copy()
        for i in range(len(b)):
            q = target[i] - S[i] @ b + S[i, i] * b[i]
            b[i] = np.sign(q) * max(abs(q) - alpha / 2, 0) / (S[i, i] + ridge)
        if np.abs(b - old).max() < 1e-10:
            break
    return b


@pytest.mark.parametrize(
    ("mu", "ridge", "value"),
    [
        (0.1, 1.0, -4.00986535),
        (0.2, 1.0, -2.69248609),
        (0.3, 1.0, -2.17201659),
        (0.1, np.inf, -13.06518941),
        (0.2, np.inf, -7.11481295),
        (0.3, np.inf, -4.85415805),
    ],
)
def test_random_benchmark_as_published_or_lower(mu, ridge, value):
    found = fit(scatter.of_array(random_data(1000, 500, 10)), 4, mu, ridge, tol=1e-5)
    assert found.status
    assert found.objective <= value + 1e-6


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 1.0, np.inf])
@pytest.mark.parametrize("shape", [(60, 20), (30, 40), (15, 80)])
def test_data_covariance_and_products_agree(shape, ridge):
    X = random_data(*shape, seed=3)
    alpha = np.array([0.3, 0.2, 0.1])
    rows = as_rows(X)
    products = scatter.Passes(statistics.moments(rows).centered(rows))
    sparse = as_rows(sp.csr_array(X))
    found = [
        fit(kind, 3, alpha, ridge, tol=1e-9)
        for kind in (
            scatter.Matrix(X.T @ X),
            scatter.of_array(X),
            products,
            scatter.Passes(statistics.moments(sparse).centered(sparse)),
        )
    ]
    values = [objective(X.T @ X, one.value["A"], one.value["B"], alpha, ridge) for one in found]
    assert np.ptp(values) < 1e-8 * abs(values[0])
    for one in found:
        assert np.abs(one.value["A"].T @ one.value["A"] - np.eye(3)).max() < 1e-12


def test_parts_of_the_scatter_are_those_of_the_matrix():
    X = random_data(20, 50, seed=0)
    S, J, B = X.T @ X, np.array([1, 4, 30]), np.random.default_rng(0).normal(size=(3, 2))
    V = np.zeros((50, 2))
    V[J] = B
    rows = as_rows(X)
    for kind in (scatter.Matrix(S), scatter.of_array(X), scatter.Passes(statistics.moments(rows).centered(rows))):
        for roughly, tolerance in ((False, 1e-10), (True, 1e-4)):
            once, twice = kind.restrict(J, roughly=roughly)(B)
            assert np.allclose(once, (S @ V)[J], rtol=tolerance)
            assert np.allclose(twice, (S @ S @ V)[J], rtol=tolerance)
        assert np.allclose(kind.combine(J, B.T).T, S @ V)
        values, leading = kind.leading(3, np.random.default_rng(0))
        assert np.allclose(values, np.linalg.eigvalsh(S)[::-1][:3])
        assert np.allclose(S @ leading, leading * values)


def test_without_penalty_it_is_pca():
    X = random_data(50, 12, seed=1)
    found = fit(scatter.of_array(X), 3, 0.0, 0.5)
    V = np.linalg.svd(X)[2][:3].T
    A = found.value["A"]
    assert np.allclose(A @ A.T, V @ V.T, atol=1e-5)


@pytest.mark.parametrize("ridge", [0.0, 1.0, np.inf])
def test_a_penalty_that_is_too_large_gives_zero(ridge):
    X = random_data(50, 12, seed=1)
    found = fit(scatter.of_array(X), 3, 100.0, ridge)
    assert not found.value["B"].any()
    assert found.objective == 0
    assert found.status
    assert np.abs(found.value["A"].T @ found.value["A"] - np.eye(3)).max() < 1e-12


def test_one_component_may_die_alone():
    X = random_data(50, 12, seed=1)
    found = fit(scatter.of_array(X), 3, [0.1, 100.0, 0.1], 1.0)
    assert found.status
    assert found.value["B"].any(axis=0).tolist() == [True, False, True]
    assert np.abs(found.value["A"].T @ found.value["A"] - np.eye(3)).max() < 1e-12


def test_more_components_than_rank():
    X = random_data(4, 30, seed=1)
    found = fit(scatter.of_array(X), 6, 0.05, 1.0, tol=1e-5)
    assert found.status
    assert np.abs(found.value["A"].T @ found.value["A"] - np.eye(6)).max() < 1e-12


@pytest.mark.parametrize("ridge", [1.0, np.inf])
def test_residual_does_not_depend_on_units(ridge):
    rng = np.random.default_rng(0)
    X, A, B = random_data(30, 10, 0), np.linalg.qr(rng.normal(size=(10, 2)))[0], rng.normal(size=(10, 2))
    S, alpha, c = X.T @ X, np.array([0.1, 0.2]), 2.0**9
    one = regression.stationarity(A, B, S @ A, S @ B, alpha, ridge)
    big = B * c if np.isinf(ridge) else B
    other = regression.stationarity(A, big, c * S @ A, c * S @ big, c * alpha, ridge if np.isinf(ridge) else c * ridge)
    assert one == pytest.approx(other, rel=1e-12)
    assert one > 0.01


def test_objective_falls_and_inputs_are_not_changed():
    X = random_data(40, 100, seed=2)
    before = X.copy()
    found = fit(scatter.of_array(X), 4, 0.2, 1.0)
    assert (np.diff(found.history.objective) <= 1e-6 * abs(found.objective)).all()
    assert (before == X).all()
    assert np.median(found.history.iteration) < 60


def test_more_starts_are_no_worse():
    alone = fit(scatter.Matrix(PITPROPS), 4, 0.3, 0.1)
    best = fit(scatter.Matrix(PITPROPS), 4, 0.3, 0.1, n_init=10)
    assert best.objective <= alone.objective + 1e-9


@pytest.mark.parametrize("n_init", [1, 2, 5])
def test_as_many_starts_are_tried_as_asked_for_and_the_lowest_is_continued(n_init, monkeypatch):
    tried, screen = [], regression._screen

    def noted(*how):
        tried.append(screen(*how))
        return tried[-1]

    monkeypatch.setattr(regression, "_screen", noted)
    sparse = SparsePCA(4, formulation="regression", alpha=0.3, ridge=0.1, n_init=n_init, random_state=0)
    sparse.fit_covariance(PITPROPS)
    assert len(tried) == (n_init if n_init > 1 else 0)  # one alone has no rival
    starts = {state.value["B"].tobytes() for state in tried}
    assert len(starts) == len(tried)
    if tried:
        assert sparse.result_.objective <= min(state.objective for state in tried)


def test_what_several_starts_take_before_they_are_compared_is_no_iteration():
    for n_init in (1, 3):
        how = {"alpha": np.full(4, 0.3), "ridge": 0.1, "n_init": n_init, "rng": np.random.default_rng(0)}
        assert regression.start(scatter.Matrix(PITPROPS), 4, **how)["iteration"] == 0


def test_a_saddle_is_left_in_a_few_steps():
    X = random_data(60, 4800, seed=2)  # plain steps come to rest near a saddle here
    found = fit(scatter.of_array(X), 4, 0.2, 1.0, tol=1e-5)
    assert found.status
    assert found.objective < -161.06
    assert found.history.iteration[-1] <= 20


def test_rivals_lead_lower_on_average():
    alpha, gains = np.full(10, 0.2), []
    for seed in range(6):
        data = scatter.of_array(random_data(300, 600, seed))
        begin = regression.start(data, 10, alpha=alpha, ridge=1.0, rng=np.random.default_rng(0))
        assert begin["rivals"] == regression.RIVALS
        solve = partial(regression.block, data, alpha=alpha, ridge=1.0)
        tried = run(solve, begin, tol=1e-5, max_iter=1000)
        alone = run(solve, begin | {"rivals": np.array(0)}, tol=1e-5, max_iter=1000)
        assert tried.status
        assert tried.value["rivals"] == 0
        assert (np.diff(tried.history.objective) <= 1e-6 * abs(tried.objective)).all()
        gains.append(alone.objective - tried.objective)
    assert np.mean(gains) > 1e-3


@pytest.mark.parametrize("ridge", [0.01, 1.0, np.inf])
def test_starts_side_by_side_lead_lower_on_average(ridge):
    gains = []
    for seed, alpha in itertools.product(range(4), (0.05, 0.3)):
        data = scatter.Matrix(np.cov(random_data(80, 40, seed).T) * 80)
        how = {"alpha": np.full(4, alpha), "ridge": ridge}
        begin = regression.start(data, 4, **how, rng=np.random.default_rng(0))
        assert begin["settled"]
        assert begin["iteration"] == begin["rivals"] == 0
        values, V = data.leading(4, np.random.default_rng(0))
        alone = regression.begin_at(data, V, V, float(values[0]))
        ends = [run(partial(regression.block, data, **how), one, tol=1e-6, max_iter=500) for one in (begin, alone)]
        assert all(end.status for end in ends)
        gains.append(ends[1].objective - ends[0].objective)
    assert np.mean(gains) > 1e-4
    assert min(gains) > -0.05


def test_where_a_weight_leaves_nothing_no_start_does():
    data = scatter.Matrix(PITPROPS)
    begin = regression.start(data, 3, alpha=np.full(3, 1e3), ridge=1.0, rng=np.random.default_rng(0))
    assert not begin["B"].any()
    assert np.allclose(begin["A"].T @ begin["A"], np.eye(3))


@pytest.mark.parametrize("ridge", [0.01, 1.0, np.inf])
def test_starts_side_by_side_do_not_hang_on_signs(ridge):
    data = scatter.Matrix(PITPROPS)
    values, V = data.leading(4, np.random.default_rng(0))
    how = {"alpha": np.full(4, 0.3), "ridge": ridge, "rng": np.random.default_rng(0)}
    first, other = (regression.start(data, 4, **how, leading=(values, V * signs))["B"] for signs in (1, [1, -1, -1, 1]))
    assert np.allclose(first, other, atol=1e-8)


def test_objectives_side_by_side_are_those_of_one():
    """Twin: `ReducedObjective` evaluates one B at a time."""
    B, alpha = np.random.default_rng(0).normal(size=(3, 4, 13)), 0.2
    for ridge in (0.5, np.inf):
        side = _SideBySide(PITPROPS, alpha, ridge, 0.1)
        points = side.products(B)
        SA, slope = side.slope(points)
        after = side.proximal(points, slope, np.full(3, 0.1))
        part = scatter.Matrix(PITPROPS).restrict(np.arange(13))
        reduced = ReducedObjective(part, part, np.full(4, alpha), *weights(ridge), 0.1)
        for value, new, one in zip(side.value(points, SA, slope), after, B, strict=True):
            point = reduced.at(one.T)
            assert value == pytest.approx(point.value)
            assert np.allclose(new[:, :13].T, reduced.proximal(point).B)


def test_states_fall_where_products_have_not_full_rank():
    """In single precision the smallest roots of B'SSB, of no rank here, are noise, which F sums: it rose and fell."""
    X = np.random.default_rng(2).normal(size=(6, 12))
    data = scatter.of_array(X - X.mean(axis=0))
    values, V = data.leading(6, np.random.default_rng(0))
    largest, top = float(values[0]), 2 * np.abs(data.apply(V)).max()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        alpha, A = top * rng.uniform(0.001, 0.006, size=6), np.linalg.qr(rng.normal(size=(12, 6)))[0]
        solve = partial(regression.block, data, alpha=alpha, ridge=1e-6 * largest)
        found = run(solve, regression.begin_at(data, A, A, largest), tol=1e-6, max_iter=150)
        assert found.status
        assert (np.diff(found.history.objective) <= 1e-9 * abs(found.objective)).all()


def test_components_that_are_weighted_differently_have_no_rival():
    begin = regression.start(scatter.Matrix(PITPROPS), 6, alpha=ALPHA, ridge=1.0, rng=np.random.default_rng(0))
    assert begin["rivals"] == 0


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_products_with_few_nonzeros_equal_their_twins(dtype, tolerance):
    rng = np.random.default_rng(0)
    S, T = (M + M.T for M in rng.standard_normal((2, 40, 40)).astype(dtype))
    B = np.where(rng.random((40, 3)) < 0.2, rng.standard_normal((40, 3)), 0.0).astype(dtype)
    SB, TB = two_products(S, T, B)
    assert SB.dtype == TB.dtype == dtype
    assert np.abs(SB - S @ B).max() <= tolerance
    assert np.abs(TB - T @ B).max() <= tolerance


@pytest.mark.parametrize("ridge", [1.0, np.inf])
@pytest.mark.parametrize("steps", [1, 7, 60])
def test_compiled_steps_equal_their_twins(ridge, steps, monkeypatch):
    S = scatter.of_array(random_data(300, 60, seed=3)).S
    B = np.where(np.arange(60)[:, None] % 5 < 2, regression.soft(np.linalg.eigh(S)[1][:, -4:], 0.05), 0.0)
    on_fit, on_ridge = (0.0, 1.0) if np.isinf(ridge) else (1.0, ridge)
    step = 1 / (2 * on_fit * np.linalg.norm(S, 2) + 2 * on_ridge)
    part = scatter.Squares(S, S @ S, 60)
    reduced = ReducedObjective(part, part, np.full(4, 0.1), on_fit, on_ridge, step)
    slow, settled = reduced.descend(reduced.at(B), steps)
    for name in ("LARGE", "MANY"):
        monkeypatch.setattr(scatter, name, 0)
    assert part.compiled(B) is not None
    fast, too = reduced.descend(reduced.at(B), steps)
    assert too == settled
    assert np.abs(fast.B - slow.B).max() <= 1e-9 * np.abs(slow.B).max()
    assert fast.value < reduced.at(B).value


def test_few_rows_out_of_memory_take_one_pass(monkeypatch):
    X = random_data(20, 50, seed=0)
    rows = as_rows(X)
    data = scatter.Passes(statistics.moments(rows).centered(rows))
    J, B = np.array([1, 4, 30]), np.random.default_rng(0).normal(size=(3, 2))
    once, twice = data.restrict(J)(B)
    monkeypatch.setattr(scatter, "ONE_PASS", 2)
    for one, other in zip((once, twice), data.restrict(J)(B), strict=True):
        assert np.allclose(one, other, rtol=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 1e-2, 1.0, np.inf])
def test_one_shot_is_the_elastic_net_of_the_scores(ridge):
    X = random_data(60, 15, seed=4)
    S, alpha = X.T @ X, np.array([0.1, 0.3])
    data = scatter.of_array(X)
    begin = one_shot.start(data, 2, np.random.default_rng(0))
    found = run(partial(one_shot.one_shot, data, alpha=alpha, ridge=ridge), begin, tol=1e-9, max_iter=2000)
    V = begin["A"]
    for j in range(2):
        if np.isinf(ridge):
            expected = L1(alpha[j] / 2).prox(S @ V[:, j], 1.0)
        else:
            expected = elastic_net(S, V[:, j], alpha[j], ridge, np.zeros(15))
        assert np.allclose(found.value["B"][:, j], expected, atol=1e-6)


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_ridge_regression_of_scores_is_parallel_to_the_component(ridge):
    """Zou, Hastie & Tibshirani (2006), theorem 1."""
    X = random_data(60, 15, seed=4)
    data = scatter.of_array(X)
    begin = one_shot.start(data, 3, np.random.default_rng(0))
    found = run(partial(one_shot.one_shot, data, alpha=np.zeros(3), ridge=ridge), begin, tol=1e-10, max_iter=5000)
    B = found.value["B"]
    assert np.abs((B / np.linalg.norm(B, axis=0) * begin["A"]).sum(axis=0)) == pytest.approx(1.0, abs=1e-9)
