"""cellPCA: the objective falls, is what is said, and has no slope where a fit ends; starts, edges, losses."""

import itertools
from functools import partial

import numpy as np
import pytest

from helpers import only_user_warnings, subspace_sine
from princomp import PCA, RobustPCA
from princomp.certificates.cellwise import CellwiseProblem, cellwise_residual, weighted_steps
from princomp.losses import HyperbolicTangent
from princomp.solvers.robust import cellwise
from princomp.solvers.robust.cellwise_start import ROUNDING, Table, begin
from princomp.solvers.robust.univariate import median_of


def planted(n=60, p=9, k=2, cells=0.08, rows=0.1, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(k, p))
    X = rng.normal(size=(n, k)) @ V + 0.1 * rng.normal(size=(n, p))
    X[rng.random(X.shape) < cells] += 4.0
    X[: round(rows * n)] += 5.0 * rng.normal(size=p)
    X[rng.random(X.shape) < missing] = np.nan
    return X, V


def posed(X, k=2, seed=0):
    middle = np.nanmedian(X, axis=0)
    table = Table.of(X - middle, ROUNDING * np.abs(middle))
    plane = begin(table, k, np.random.default_rng(seed))
    return table.problem(plane, regular=True), plane


def slow_loss(r, bend, end):
    """By its formulae (Hampel, Rousseeuw & Ronchetti 1981), twice what is usual: the integral of 2 psi."""
    r = abs(r)
    if r <= bend:
        return r * r
    steep = 2.15568275 / (end - bend)
    slope = bend / np.tanh(2.15568275)
    grid = np.linspace(bend, min(r, end), 2001)
    return bend**2 + 2 * np.trapezoid(slope * np.tanh(steep * (end - grid)), grid)


def slow_objective(problem, X, mean, V, Z):
    """Row by row and cell by cell."""
    total, (b, c) = 0.0, (problem.of_rows.bend, problem.of_rows.end)
    for x, z in zip(X, Z):
        left = x - mean - V @ z
        seen = np.flatnonzero(~np.isnan(left))
        if not len(seen):
            continue
        sizes = [problem.scales[j] ** 2 * slow_loss(left[j] / problem.scales[j], 1.5, 4.0) for j in seen]
        t = np.sqrt(sum(sizes) / len(seen))
        total += len(seen) * problem.row_scale**2 * slow_loss(t / problem.row_scale, b, c)
    return total


@pytest.mark.parametrize(("bend", "end"), [(1.5, 4.0), (1.2, 1.8), (0.1, 30.0)])
def test_the_loss_and_its_weights(bend, end):
    loss = HyperbolicTangent(bend, end)
    r = np.r_[0.0, np.linspace(-2 * end, 2 * end, 401)]
    np.testing.assert_allclose(loss.values(r), [slow_loss(each, bend, end) for each in r], rtol=1e-5, atol=1e-12)
    h = 1e-6 * end
    slope = (loss.values(r + h) - loss.values(r - h)) / (2 * h)
    np.testing.assert_allclose(loss.gradient(r), slope, atol=1e-4 * bend)
    np.testing.assert_allclose(2 * r * loss.weights(r), loss.gradient(r))
    assert (np.diff(loss.weights(np.linspace(0, 2 * end, 500))) <= 1e-12).all()  # concave in r^2
    assert loss.level == pytest.approx(loss.values(np.array([end, 1e9])).max())
    np.testing.assert_allclose(loss.in_units(3.0).values(3 * r), 9 * loss.values(r), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("bend", "end"), [(0.0, 1.0), (2.0, 1.0), (1.0, np.inf), (np.nan, 1.0)])
def test_a_loss_that_is_none_is_refused(bend, end):
    with pytest.raises(ValueError, match="bend"):
        HyperbolicTangent(bend, end)


def test_the_objective_is_what_is_said_and_falls():
    X, _ = planted()
    problem, plane = posed(X)
    steps = cellwise.cellwise(problem, cellwise.start(cellwise.packed(*plane)))
    states = list(itertools.islice(steps, 60))
    objective = [state.objective for state in states]
    assert (np.diff(objective) <= 1e-14 * objective[0]).all()
    assert states[-1].residual < 1e-6 < states[0].residual
    Y = X - np.nanmedian(X, axis=0)
    for state in states[:: len(states) // 3]:
        mean, V, Z = cellwise.parts(state.value["point"], *X.shape)
        assert state.objective == pytest.approx(slow_objective(problem, Y, mean, V, Z), rel=1e-5)
        assert state.residual == pytest.approx(cellwise_residual(problem, mean, V, Z), rel=1e-9)


def test_a_plain_step_never_raises_the_objective():
    X, _ = planted(seed=3)
    problem, plane = posed(X)
    rng = np.random.default_rng(1)
    for _ in range(20):
        at = (plane[0] + rng.normal(size=9), rng.normal(size=(9, 2)), rng.normal(size=(60, 2)))
        found = problem.at(*at)
        mean, V, Z, _ = cellwise.step(problem, found, *at)
        assert problem.at(mean, V, Z).value <= found.value * (1 + 1e-12)
        np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)


def test_where_a_fit_ends_no_small_step_is_lower():
    """By a slow objective of its own, in random directions of V, m and Z, of several lengths."""
    X, _ = planted(n=25, p=6)
    problem, plane = posed(X)
    steps = cellwise.cellwise(problem, cellwise.start(cellwise.packed(*plane)))
    state = next(state for state in steps if state.residual < 1e-7)
    point, Y, rng = state.value["point"], X - np.nanmedian(X, axis=0), np.random.default_rng(0)
    value = slow_objective(problem, Y, *cellwise.parts(point, *X.shape))
    for length in (1e-1, 1e-2, 1e-3):
        for _ in range(15):
            moved = point + length * rng.normal(size=len(point)) / np.sqrt(len(point))
            assert slow_objective(problem, Y, *cellwise.parts(moved, *X.shape)) >= value * (1 - 1e-7)


def test_a_point_that_was_moved_is_found_out():
    X, _ = planted()
    problem, plane = posed(X)
    state = next(s for s in cellwise.cellwise(problem, cellwise.start(cellwise.packed(*plane))) if s.residual < 1e-8)
    mean, V, Z = cellwise.parts(state.value["point"], *X.shape)
    assert cellwise_residual(problem, mean, V, Z) < 1e-8
    for moved in ((mean + 1e-3, V, Z), (mean, V + 1e-3, Z), (mean, V, Z + 1e-2)):
        assert cellwise_residual(problem, *moved) > 1e-4


def test_steps_continue_exactly_from_each_state():
    X, _ = planted(seed=1)
    problem, plane = posed(X)
    make = partial(cellwise.cellwise, problem)
    states = list(itertools.islice(make(cellwise.start(cellwise.packed(*plane))), 25))
    for number, state in enumerate(states[:-1]):
        following = next(make({name: np.array(array) for name, array in state.value.items()}))
        for name, array in states[number + 1].value.items():
            np.testing.assert_array_equal(following.value[name], array)


@pytest.mark.parametrize("pairs", [True, False])
def test_weighted_steps_are_least_squares(pairs, monkeypatch):
    from princomp.certificates import cellwise as measured

    monkeypatch.setattr(measured, "PAIR_BYTES", 2**30 if pairs else 0)
    monkeypatch.setattr(measured, "TILE_BYTES", 2000)
    rng = np.random.default_rng(0)
    A, W, R = rng.normal(size=(12, 3)), rng.random((40, 12)), rng.normal(size=(40, 12))
    W[5] = 0.0
    steps, gains = weighted_steps(A, W, R)
    for w, r, step, gain in zip(W, R, steps, gains):
        root = np.sqrt(w)[:, None]
        best = np.linalg.lstsq(root * A, root[:, 0] * r, rcond=None)[0]
        np.testing.assert_allclose(step, best, atol=1e-8)
        assert gain == pytest.approx(w @ r**2 - w @ (r - A @ best) ** 2, abs=1e-8)
    assert not steps[5].any()


def test_medians_of_what_is_there():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8):
        X = rng.normal(size=(n, 5))
        there = rng.random((n, 5)) < 0.7
        there[:, 0], there[:, 1] = True, False
        expected = [np.median(x[t]) if t.any() else 0.0 for x, t in zip(X.T, there.T)]
        np.testing.assert_array_equal(median_of(X, there), expected)
        np.testing.assert_array_equal(median_of(X, np.ones_like(there)), np.median(X, axis=0))


def test_clean_gaussian_data_lose_little():
    """Angles to the true plane beside classical PCA's."""
    ours, theirs = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        V = np.linalg.qr(rng.normal(size=(12, 2)))[0].T
        X = rng.normal(size=(150, 2)) * [4, 3] @ V + rng.normal(size=(150, 12))
        ours.append(subspace_sine(RobustPCA(2, method="cellwise", random_state=0).fit(X).components_, V))
        theirs.append(subspace_sine(PCA(2).fit(X).components_, V))
    assert np.median(ours) < 1.3 * np.median(theirs)


def test_a_fifth_of_cells_or_of_rows():
    """Beyond what the rows of a start have: none of them is without a bad cell."""
    for how in ({"cells": 0.2, "rows": 0.0}, {"cells": 0.0, "rows": 0.2}):
        X, V = planted(n=100, p=20, missing=0.0, seed=4, **how)
        assert subspace_sine(RobustPCA(2, method="cellwise", random_state=0).fit(X).components_, V) < 0.03


def test_mostly_one_value_is_not_all_there_is():
    """Where half of the cells of a column are the same, scales are those of the others."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) * np.array([3, 2, 1, 1, 1, 1])
    X[:, 2] = np.where(rng.random(80) < 0.8, 0.0, X[:, 2])
    X[:, 3] = 5.0
    with only_user_warnings():
        model = RobustPCA(2, method="cellwise", random_state=0).fit(X)
    assert model.certificate_.holds
    assert model.components_[:, 3] == pytest.approx(0, abs=1e-9)
    assert not model.outlying_cells_[:, 3].any()
    assert model.mean_[3] == pytest.approx(5)


def test_a_problem_without_cells_in_a_row():
    X, _ = planted(missing=0.0)
    X[3] = np.nan
    problem, plane = posed(X)
    assert isinstance(problem, CellwiseProblem)
    found = problem.at(*plane)
    assert found.rows[3] == 1
    assert not found.cells[3].any()
    assert np.isfinite(found.value)


def test_what_stays_is_the_answer():
    """By name, as the estimator has it; nothing of what extrapolation remembers."""
    X, _ = planted()
    model = RobustPCA(2, method="cellwise", random_state=0).fit(X)
    value = model.result_.value
    assert {name: part.shape for name, part in value.items()} == {
        "V": (9, 2),
        "mean": (9,),
        "scores": (60, 2),
        "scales": (9,),
        "row_scale": (),
    }
    np.testing.assert_allclose(np.abs(value["V"].T @ model.components_.T), np.eye(2), atol=1e-12)
    np.testing.assert_allclose(value["scales"], model.cell_scale_, rtol=1e-12)
    seen = np.sqrt((value["scores"] ** 2 / model.explained_variance_).sum(axis=1))
    assert np.mean(np.abs(seen - model.score_distances_) < 1e-3) > 0.8
