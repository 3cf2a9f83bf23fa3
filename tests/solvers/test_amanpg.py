"""A-ManPG in general: manifolds, tangent steps, the bound on iterations, sparse PCA as an instance."""

import itertools

import numpy as np
import pytest

from princomp.datasets import load_pitprops
from princomp.manifolds import Euclidean, Sphere, Stiefel
from princomp.penalties import L1, ColumnL1, RowNorms, Zero
from princomp.solvers import regression, scatter
from princomp.solvers.amanpg import Side, Smooth, amanpg, sparse_pca, tangent_step

METRIC = np.diag(np.linspace(0.5, 2, 8))
MANIFOLDS = {"Euclidean": Euclidean(), "Sphere": Sphere(2.0), "Stiefel": Stiefel(), "metric": Stiefel(METRIC)}


def point(manifold, rng):
    A = rng.normal(size=(8, 3))
    return A if isinstance(manifold, Euclidean) else manifold.retract(A, np.zeros_like(A))


def normals_of(manifold, A):
    return manifold.basis(A).reshape(-1, A.size)


@pytest.mark.parametrize("manifold", MANIFOLDS.values(), ids=MANIFOLDS)
def test_projection_and_retraction(manifold):
    rng = np.random.default_rng(0)
    A, G, other = point(manifold, rng), rng.normal(size=(8, 3)), rng.normal(size=(8, 3))
    D = manifold.project(A, G)
    normals = normals_of(manifold, A)
    assert np.allclose(normals @ D.ravel(), 0, atol=1e-12)
    assert np.allclose(manifold.project(A, D), D)
    assert np.vdot(G - D, manifold.project(A, other)) == pytest.approx(0, abs=1e-10)  # the nearest tangent
    for t in (1e-3, 1e-4):  # a retraction agrees with A + tD to first order
        assert np.linalg.norm(manifold.retract(A, t * D) - A - t * D) < 20 * t**2 * max(1, np.linalg.norm(D) ** 2)


@pytest.mark.parametrize("manifold", MANIFOLDS.values(), ids=MANIFOLDS)
def test_the_basis_spans_what_a_projection_takes_away(manifold):
    rng = np.random.default_rng(0)
    A, G = point(manifold, rng), rng.normal(size=(8, 3))
    normals = normals_of(manifold, A)
    assert np.linalg.matrix_rank(normals) == len(normals)
    away = (G - manifold.project(A, G)).ravel()
    coefficients = np.linalg.lstsq(normals.T, away)[0]
    assert np.allclose(normals.T @ coefficients, away, atol=1e-12)


@pytest.mark.parametrize("manifold", MANIFOLDS.values(), ids=MANIFOLDS)
@pytest.mark.parametrize("penalty", [Zero(), L1(0.3), RowNorms(0.5)], ids=["none", "l1", "rows"])
@pytest.mark.parametrize("step", [0.01, 1.0])
def test_the_tangent_step_is_a_minimiser(manifold, penalty, step):
    rng = np.random.default_rng(1)
    A, G = point(manifold, rng), rng.normal(size=(8, 3))
    D = tangent_step(Side(manifold, penalty, step), A, G)

    def model(D):
        return np.vdot(G, D) + penalty.value(A + D) + np.vdot(D, D) / (2 * step)

    assert np.allclose(normals_of(manifold, A) @ D.ravel(), 0, atol=1e-8)
    for size in (1e-3, 0.1, 1.0):
        for _ in range(50):
            move = size * manifold.project(A, rng.normal(size=(8, 3)))
            # strongly convex: the model rises by at least |move|^2 / (2 t)
            assert model(D + move) >= model(D) + np.vdot(move, move) / (2 * step) - 1e-7


S = load_pitprops().correlation
ALPHA = np.array([0.06, 0.16, 0.1, 0.5, 0.5, 0.5])


def pitprops(ridge):
    return Smooth(
        lambda A, B: np.vdot(B, S @ B) - 2 * np.vdot(A, S @ B) + ridge * np.vdot(B, B),
        lambda A, B: -2 * S @ B,
        lambda A, B: 2 * (S @ B - S @ A + ridge * B),
    )


def solve(ridge, steps, **how):
    V = np.linalg.eigh(S)[1][:, ::-1][:, :6]
    penalties = (Zero(), ColumnL1(ALPHA))
    return amanpg(pitprops(ridge), V, V, steps=steps, manifolds=(Stiefel(), Euclidean()), penalties=penalties, **how)


@pytest.mark.parametrize(("ridge", "value"), [(0.01, -9.062528493), (1.0, -6.302189283)])
def test_sparse_pca_is_an_instance(ridge, value):
    found = solve(ridge, (0.1, 1 / (2 * np.linalg.eigvalsh(S)[-1] + 2 * ridge)), tol=1e-5)
    assert found.status.code == "converged"
    assert found.objective == pytest.approx(value, abs=1e-6)
    A = found.value["A"]
    assert np.abs(A.T @ A - np.eye(6)).max() < 1e-12
    assert (np.diff(found.history.objective) <= 1e-12).all()


@pytest.mark.parametrize("ridge", [1.0, np.inf])
def test_a_state_of_several_steps_is_where_as_many_lead(ridge):
    data = scatter.Matrix(S)
    begin = regression.start(data, 6, alpha=ALPHA, ridge=ridge, rng=np.random.default_rng(0))
    single = list(itertools.islice(sparse_pca(data, begin, alpha=ALPHA, ridge=ridge), 30))
    many = list(itertools.islice(sparse_pca(data, begin, alpha=ALPHA, ridge=ridge, steps=10), 3))
    assert [state.iteration for state in many] == [1, 2, 3]
    for state, expected in zip(many, single[9::10], strict=True):
        assert (state.objective, state.residual) == (expected.objective, expected.residual)
        assert all((state.value[name] == expected.value[name]).all() for name in ("A", "B", "lowest"))


@pytest.mark.parametrize("tol", [1.0, 0.3, 0.1, 0.01])
def test_the_bound_on_iterations_holds(tol):
    """At most 2 (F0 - F*) / ((gamma a1 t1 + gamma a2 t2) eps^2) steps; the bound is not empty either."""
    steps, gamma = (0.1, 1 / (2 * np.linalg.eigvalsh(S)[-1] + 2)), 0.5
    found = solve(1.0, steps, tol=tol, gamma=gamma)
    V = np.linalg.eigh(S)[1][:, ::-1][:, :6]
    first = pitprops(1.0).value(V, V) + ColumnL1(ALPHA).value(V)
    a1, a2 = found.value["lowest"]
    bound = 2 * (first - -6.302189283) / ((gamma * a1 * steps[0] + gamma * a2 * steps[1]) * tol**2)
    assert found.n_iter <= max(bound, 1)


def test_steps_that_are_too_long_are_cut():
    found = solve(1.0, (5.0, 1.0), tol=1e-4)
    assert found.status.code == "converged"
    assert found.value["lowest"].min() < 1
    assert found.objective == pytest.approx(-6.302189283, abs=1e-5)


def test_sparse_pca_with_the_penalty_on_the_stiefel_factor():
    """min -tr(A'SA) + mu |A|_1, A'A = I (ManPG), by two copies of A; the answer is stationary and sparse."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 30))
    X /= np.linalg.norm(X, axis=0)
    S = X.T @ X
    begin = np.linalg.eigh(S)[1][:, -2:]
    smooth = Smooth(lambda A, B: -np.vdot(A, S @ A), lambda A, B: -2 * S @ A, lambda A, B: np.zeros_like(B))
    found = amanpg(
        smooth,
        begin,
        np.zeros(1),
        steps=(1 / (2 * np.linalg.eigvalsh(S)[-1]), 1.0),
        manifolds=(Stiefel(), Euclidean()),
        penalties=(L1(0.5), Zero()),
        tol=1e-6,
    )
    A = found.value["A"]
    assert found.status.code == "converged"
    assert np.abs(A.T @ A - np.eye(2)).max() < 1e-12
    assert (np.abs(A) < 1e-12).mean() > 0.2
    assert found.objective < -np.vdot(begin, S @ begin) + 0.5 * np.abs(begin).sum()
