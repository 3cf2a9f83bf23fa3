"""Pre-images: objective and slope by definition, scipy from the same start, regressions refitted row by row."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from princomp.kernels import Gaussian
from princomp.solvers import ascent, preimage
from princomp.solvers.ascent import ascend
from princomp.solvers.preimage import Examples, Radial, Waves, preimages
from princomp.solvers.preimage_ridge import ALPHAS, fit_ridge, left_out_error

GAMMA = 0.4
BASIS = np.random.default_rng(0).normal(size=(25, 3))
START = np.random.default_rng(1).normal(size=(12, 3))
MIXED = np.random.default_rng(2).normal(size=(12, 25)) + 0.3  # weights of both signs
FREQUENCIES = np.sqrt(2 * GAMMA) * np.random.default_rng(3).normal(size=(3, 60))


def radial(weights):
    kernel = Gaussian(GAMMA)
    return Radial(kernel, kernel.points(BASIS), weights)


def by_definition(z, weights):
    """Sum of h_i exp(-gamma |z - x_i|^2)."""
    return float(weights @ np.exp(-GAMMA * ((z - BASIS) ** 2).sum(axis=1)))


def waves_by_definition(z, weights):
    features = np.concatenate([np.cos(z @ FREQUENCIES), np.sin(z @ FREQUENCIES)]) / np.sqrt(60)
    return float(features @ weights)


FOURIER = np.random.default_rng(4).normal(size=(12, 120)) / 10
BOTH = pytest.mark.parametrize(
    ("f", "definition", "weights"),
    [(radial(MIXED), by_definition, MIXED), (Waves(FREQUENCIES, FOURIER), waves_by_definition, FOURIER)],
    ids=["radial", "waves"],
)


@BOTH
def test_values_and_slopes_are_those_of_the_definition(f, definition, weights):
    values, gradients = f(START)
    for i, z in enumerate(START):
        assert values[i] == pytest.approx(definition(z, weights[i]), abs=1e-12)
        np.testing.assert_allclose(gradients[i], approx_fprime(z, definition, 1e-7, weights[i]), atol=1e-5)
    some = np.arange(12) % 3 == 0
    np.testing.assert_array_equal(f.of(some)(START[some])[0], values[some])


@BOTH
def test_the_answer_has_no_slope_and_scipy_finds_nothing_better_from_the_same_start(f, definition, weights):
    found = ascend(f, START, 2 * GAMMA, tol=1e-8, most=500)
    values, gradients = f(found.points)
    np.testing.assert_allclose(values, found.values, rtol=1e-13)
    up = found.residuals <= 1e-8
    assert up.sum() >= 10
    assert np.abs(gradients[up]).max() < 1e-7 * np.abs(weights).sum()
    better = 0
    for i in np.flatnonzero(up):
        theirs = minimize(lambda z, i=i: -definition(z, weights[i]), START[i], method="BFGS", options={"gtol": 1e-9})
        near = np.abs(theirs.x - found.points[i]).max() < 1e-3  # the same hill
        assert not near or -theirs.fun <= values[i] + 1e-12
        better += -theirs.fun > values[i] + 1e-12
    assert better <= 2  # another hill, from the same start


@BOTH
def test_values_never_fall(f, definition, weights):
    """With few rounds, one more never ends lower; and a row that has ended stays where it is."""
    before, done = f(START)[0], np.zeros(12, bool)
    points = START
    for most in range(1, 25):
        found = ascend(f, START, 2 * GAMMA, tol=1e-6, most=most)
        assert (found.values >= before).all()
        np.testing.assert_array_equal(found.points[done], points[done])
        before, done, points = found.values, found.residuals <= 1e-6, found.points


def test_the_first_step_is_the_fixed_point_of_mika():
    weights = np.abs(MIXED)
    K = np.exp(-GAMMA * ((START[:, None] - BASIS) ** 2).sum(axis=2)) * weights
    found = ascend(radial(weights), START, 2 * GAMMA, tol=0.0, most=1)
    np.testing.assert_allclose(found.points, K @ BASIS / K.sum(axis=1, keepdims=True), atol=1e-12)


def test_rows_do_not_know_of_each_other():
    f = radial(MIXED)
    together = ascend(f, START, 2 * GAMMA, tol=1e-8, most=100).points
    alone = [ascend(f.of(np.arange(12) == i), START[[i]], 2 * GAMMA, tol=1e-8, most=100).points[0] for i in range(12)]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_where_the_value_is_not_positive_the_way_is_still_up():
    weights = -np.abs(MIXED)
    found = ascend(radial(weights), START, 2 * GAMMA, tol=1e-6, most=50)
    assert np.isfinite(found.points).all()
    assert (found.values > radial(weights)(START)[0]).all()
    assert np.isinf(found.residuals).all()  # there is no maximum, and none is claimed


@pytest.mark.parametrize("start", [START, START + 1e4, START * 0 + 1e300, None], ids=["near", "far", "huge", "none"])
def test_no_answer_is_worse_than_any_example(start):
    f = radial(MIXED)
    values = np.array([[by_definition(x, weights) for x in BASIS] for weights in MIXED])
    best = BASIS[values.argmax(axis=1)], values.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        found, residuals = preimages(f, GAMMA, start, best)
    assert (f(found)[0] >= best[1] - 1e-12).all()
    assert residuals.max() <= preimage.TOL


def test_a_start_on_the_lower_of_two_hills_ends_on_the_higher_one():
    kernel, two = Gaussian(1.0), np.array([[0.0], [10.0]])
    f = Radial(kernel, kernel.points(two), np.array([[1.0, 0.5]]))
    assert ascend(f, np.array([[9.5]]), 2.0, tol=1e-8, most=100).points[0, 0] == pytest.approx(10.0)
    found, residuals = preimages(f, 1.0, np.array([[9.5]]), (two[:1], np.ones(1)))
    assert found[0, 0] == pytest.approx(0.0, abs=1e-6)
    assert residuals[0] <= preimage.TOL


def test_examples_know_their_values():
    scores, offsets, z = MIXED[:, :4], MIXED[:, 4], START[:5] @ np.ones((3, 4))
    rows, values = Examples(START, scores, offsets).best(z)
    every = np.array([[offsets[i] + scores[i] @ one for i in range(12)] for one in z])
    np.testing.assert_allclose(values, every.max(axis=1))
    np.testing.assert_array_equal(rows, START[every.argmax(axis=1)])


@BOTH
def test_a_point_with_a_slope_is_not_certified(f, definition, weights):
    found = ascend(f, START, 2 * GAMMA, tol=1e-8, most=500)
    off = ascent.Ascent(found.points + 1e-3, found.values, found.residuals)
    assert (preimage.certified(f, GAMMA, off) > 1e-5).all()


def test_a_slope_that_rounding_may_have_made_is_none():
    """Rows that are there twice, with weights that cancel but for 1: slopes near 1e-4 are rounding."""
    kernel = Gaussian(GAMMA)
    basis = np.repeat(BASIS[:5], 2, axis=0)
    weights = np.tile([1e12, -1e12], 5)[None] + np.eye(1, 10)
    f = Radial(kernel, kernel.points(basis), weights)
    at_peak = BASIS[:1] + 1e-9  # of the one weight that is left
    values, gradients = f(at_peak)
    raw = ascent.residual(values, gradients, 2 * GAMMA)
    assert raw[0] > preimage.TOL
    assert preimage.certified(f, GAMMA, ascent.Ascent(at_peak, values, raw))[0] == 0.0


# --- ridge --------------------------------------------------------------------------------------

SCORES = np.random.default_rng(5).normal(size=(30, 2))
ROWS = np.column_stack([np.sin(SCORES), SCORES[:, :1] * SCORES[:, 1:]]) + np.array([5.0, -3.0, 1.0])
ROWS = ROWS + 0.1 * np.random.default_rng(6).normal(size=ROWS.shape)


def ridge_by_definition(scores, rows, alpha, mean, gamma):
    """(L + alpha I)^-1 applied to centred rows, as a function of scores."""
    L = np.exp(-gamma * ((scores[:, None] - scores) ** 2).sum(axis=2))
    dual = np.linalg.solve(L + alpha * np.eye(len(L)), rows - mean)
    return lambda z: mean + np.exp(-gamma * ((z[:, None] - scores) ** 2).sum(axis=2)) @ dual


def test_the_regression_is_the_one_of_the_definition():
    ridge = fit_ridge(SCORES, ROWS)
    squares = ((SCORES[:, None] - SCORES) ** 2).sum(axis=2)[np.triu_indices(30, 1)]
    assert ridge.kernel.gamma == pytest.approx(0.5 / np.median(squares))
    expected = ridge_by_definition(SCORES, ROWS, ridge.alpha, ROWS.mean(axis=0), ridge.kernel.gamma)
    new = np.random.default_rng(7).normal(size=(6, 2))
    np.testing.assert_allclose(ridge(new), expected(new), rtol=1e-7)
    np.testing.assert_allclose(ridge(new + 1e3), np.tile(ROWS.mean(axis=0), (6, 1)), rtol=1e-12)  # unlike any seen


def test_alpha_has_the_least_error_of_rows_left_out_one_by_one():
    ridge = fit_ridge(SCORES, ROWS)
    mean, gamma = ROWS.mean(axis=0), ridge.kernel.gamma
    s, U = np.linalg.eigh(np.exp(-gamma * ((SCORES[:, None] - SCORES) ** 2).sum(axis=2)))
    errors = []
    for alpha in ALPHAS[4:]:
        missed = []
        for i in range(30):
            rest = np.arange(30) != i
            without = ridge_by_definition(SCORES[rest], ROWS[rest], alpha, mean, gamma)
            missed.append(ROWS[i] - without(SCORES[[i]])[0])
        errors.append(np.mean(np.square(missed)))
        shortcut = left_out_error(s, U, U.T @ (ROWS - mean), alpha)
        assert shortcut == pytest.approx(errors[-1], rel=1e-6)
    assert ridge.alpha == ALPHAS[4:][np.argmin(errors)]
    assert ALPHAS[4] < ridge.alpha < ALPHAS[-1]  # noise of 0.1 asks for some, and not for all


def test_rows_that_have_one_score_get_their_mean():
    ridge = fit_ridge(np.zeros((4, 2)), ROWS[:4])
    np.testing.assert_allclose(ridge(np.zeros((1, 2))), ROWS[:4].mean(axis=0)[None], rtol=1e-12)
