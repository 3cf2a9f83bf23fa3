"""The k leading eigenpairs of a symmetric operator: a kernel, ties, small values beside large ones, rivals left out."""

from functools import partial

import numpy as np
import pytest

from princomp.certificates import Images, images_by_product
from princomp.result import run
from princomp.solvers.extrapolation import MEMORY, anderson, remember
from princomp.solvers.krylov import PATIENCE
from princomp.solvers.leading import Operator, leading, leading_roughly


def orthogonal(size, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]


def with_values(values, seed=0):
    """A symmetric matrix with these eigenvalues, and the operator that it is."""
    Q = orthogonal(len(values), seed)
    S = (Q * values) @ Q.T
    S = (S + S.T) / 2
    return S, Operator(lambda V: S @ V, len(S), float(np.trace(S)))


def fit(S, k, *, tol=1e-8, max_iter=500, **how):
    return leading(S, k, tol=tol, max_iter=max_iter, rng=np.random.default_rng(0), **how)


@pytest.mark.parametrize("k", [1, 3, 12])
def test_a_kernel_matrix(k):
    """No data, no covariance: a Gaussian kernel of points in the plane, known by its products alone."""
    points = np.random.default_rng(0).standard_normal((400, 2))
    K = np.exp(-0.5 * ((points[:, None] - points) ** 2).sum(axis=2))
    found = fit(Operator(lambda V: K @ V, 400, 400.0), k)
    assert found.certificate.holds
    assert found.certificate.scope == "global"
    assert found.values == pytest.approx(np.linalg.eigvalsh(K)[::-1][:k], rel=1e-10)
    assert np.abs(found.V.T @ found.V - np.eye(k)).max() < 1e-13
    assert (np.linalg.norm(K @ found.V - found.V * found.values, axis=0) <= 1e-8 * found.values).all()


def test_more_copies_of_a_value_than_a_block_holds():
    values = np.concatenate([np.full(11, 5.0), np.linspace(4, 1, 189)])
    _, S = with_values(values)
    found = fit(S, 14)
    assert found.certificate.holds
    assert found.values == pytest.approx(values[:14], rel=1e-10)


def test_values_far_below_the_leading_one():
    """The rounding of the first hides the others, until it is locked."""
    values = np.concatenate([[1e9, 3.0, 2.0], np.linspace(1, 0.1, 97)])
    rows = np.diag(np.sqrt(values)) @ orthogonal(100).T  # products by a factor: S itself would have lost these digits

    def floor(found):
        distance = 1e-15 * np.sqrt(100 * found.max())
        return 2 * np.sqrt(found) * distance + distance**2

    def measure(V):
        scores = rows @ V
        return Images(rows.T @ scores, scores.T @ scores)

    found = fit(Operator(lambda V: rows.T @ (rows @ V), 100, values.sum(), floor, measure), 3, tol=1e-6)
    assert found.certificate.holds
    assert found.values == pytest.approx(values[:3], rel=1e-6)


def test_what_the_start_leaves_out_is_found():
    """Begun at eigenvectors, the iteration has nothing to do; the probe sees that larger ones were left out."""
    values = np.linspace(10, 1, 80)
    _, S = with_values(values)
    lower = orthogonal(80)[:, 3:6]
    found = fit(S, 3, start=lower)
    assert found.certificate.holds
    assert found.values == pytest.approx(values[:3], rel=1e-10)


def test_what_falls_short_says_so():
    _, S = with_values(np.linspace(2, 1, 300))
    with pytest.warns(UserWarning, match="iterations"):
        found = fit(S, 3, tol=1e-12, max_iter=2)
    assert not found.certificate.holds
    assert not found.result.status


def test_what_was_measured_has_the_last_word():
    """An iteration that takes itself for converged has not, if a better product does not bear it out."""
    S, _ = with_values(np.linspace(2, 1, 60))
    wrong = S + 1e-4 * np.diag(np.linspace(-1, 1, 60))
    measure = partial(images_by_product, lambda V: wrong @ V)
    with pytest.warns(UserWarning, match="No step leads further.*Accept this accuracy with a larger tol"):
        found = fit(Operator(lambda V: S @ V, 60, float(np.trace(S)), measure=measure), 3)
    assert not found.certificate.holds
    assert found.result.status.code == "no progress"


def test_who_has_stopped_it_is_not_asked_again():
    _, S = with_values(np.linspace(2, 1, 300))
    seen = []

    def stop(state):
        seen.append(state.iteration)
        return True

    with pytest.warns(UserWarning, match="Stopped by the callback"):
        found = fit(S, 3, tol=1e-12, drive=partial(run, callback=stop))
    assert seen == [found.result.n_iter]


@pytest.mark.parametrize("tol", [1e-2, 1e-10])
def test_a_rough_beginning_takes_no_more_products_than_allowed(tol):
    S, _ = with_values(np.linspace(2, 1, 200))
    products = []

    def apply(V):
        products.append(V.shape[1])
        return S @ V

    values, V = leading_roughly(apply, 200, 2, np.random.default_rng(0), tol=tol, most=12)
    assert len(products) <= 12 + PATIENCE
    assert V.shape == (200, 2)
    residual = np.linalg.norm(S @ V - V * values, axis=0).max()
    assert residual <= (0.03 if tol == 1e-2 else 0.3)


def test_a_rough_beginning_on_a_tiny_operator_ends():
    values, V = leading_roughly(lambda V: np.diag([2.0, 1.0]) @ V, 2, 2, np.random.default_rng(0), tol=0.0, most=50)
    assert values == pytest.approx([2, 1])
    assert np.abs(V) == pytest.approx(np.eye(2))


def test_anderson_solves_a_linear_fixed_point_in_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(0)
    A = 0.9 * orthogonal(4, 1) * np.linspace(1, 0.5, 4)
    b = rng.standard_normal(4)
    solution = np.linalg.solve(np.eye(4) - A, b)
    x, points, images = np.zeros(4), np.zeros((0, 4)), np.zeros((0, 4))
    for _ in range(6):
        points, images = remember(points, x), remember(images, A @ x + b)
        bold = anderson(points, images)
        x = images[-1] if bold is None else bold
    assert x == pytest.approx(solution, abs=1e-9)
    assert np.linalg.norm(images[-1] - solution) < 1e-6 * np.linalg.norm(solution)  # six plain steps leave a third


def test_anderson_has_nothing_to_say_of_one_point_or_of_numbers_that_are_none():
    assert anderson(np.ones((1, 3)), np.zeros((1, 3))) is None
    points, images = np.zeros((2, 2)), np.array([[1e300, 1.0], [-1e300, 1.0 + 1e-12]])
    with np.errstate(over="ignore"):
        assert anderson(points, images, np.array([0.0, 1.0])) is None  # a weight of 1e12 of 2e300
    assert len(remember(np.zeros((MEMORY, 2)), np.ones(2))) == MEMORY
