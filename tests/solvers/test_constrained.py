"""max v'Sv with |v|_2 = 1 and |v|_1 <= bound: the exact threshold, the ascent, its certificate, and deflation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import data_with_spectrum
from princomp.data import as_rows, statistics
from princomp.datasets import load_pitprops
from princomp.estimators.explained import explained_variance, orthogonalised
from princomp.result import run
from princomp.solvers import constrained as solver
from princomp.solvers.deflation import deflated
from princomp.solvers.scatter import Matrix, Passes

KINDS = ("hotelling", "projection", "schur", "generalised")


def product(S):
    return lambda V: S @ V


def fit(S, bounds, *, kind="schur", tol=1e-9, starts=4):
    scatter, bounds = Matrix(S) if isinstance(S, np.ndarray) else S, np.asarray(bounds, dtype=float)
    return run(
        lambda value: solver.constrained(scatter, value, bounds=bounds, tol=tol, deflation=kind, starts=starts),
        solver.start(scatter.features),
        tol=tol,
        max_iter=5000,
    )


def covariance(seed, p, n=30):
    return np.cov(np.random.default_rng(seed).normal(size=(n, p)) @ np.diag(np.linspace(2, 1, p)), rowvar=False)


# --- the linear problem -------------------------------------------------------------------------


def by_bisection(z, bound):
    """The same threshold, slowly."""
    low, high = 0.0, np.abs(z).max()
    for _ in range(200):
        delta = (low + high) / 2
        v = np.maximum(np.abs(z) - delta, 0)
        if v.sum() > bound * np.linalg.norm(v):
            low = delta
        else:
            high = delta
    v = np.sign(z) * np.maximum(np.abs(z) - high, 0)
    return v / np.linalg.norm(v)


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32 - 1), p=st.integers(1, 30), share=st.floats(0, 1), ties=st.booleans())
def test_the_maximiser_is_feasible_and_none_is_better(seed, p, share, ties):
    rng = np.random.default_rng(seed)
    z = rng.integers(-3, 4, size=p).astype(float) if ties else rng.normal(size=p)
    bound = 1 + share * (np.sqrt(p) - 1)
    v = solver.maximiser(z, bound)
    if not z.any():
        assert not v.any()
        return
    assert np.linalg.norm(v) == pytest.approx(1, rel=1e-12)
    assert np.abs(v).sum() <= bound * (1 + 1e-12)
    assert (v * z >= 0).all()
    # Dual bound: for any delta >= 0, z'v <= |soft(z, delta)|_2 + delta bound.
    deltas = np.linspace(0, np.abs(z).max(), 2001)
    soft = np.maximum(np.abs(z)[:, None] - deltas, 0)
    upper = (np.linalg.norm(soft, axis=0) + deltas * bound).min()
    assert z @ v <= upper * (1 + 1e-12)
    assert z @ v >= upper * (1 - 1e-5)  # the grid of deltas is not finer


@pytest.mark.parametrize("bound", [1.001, 1.3, 2.0, 3.7, 5.4])
def test_the_threshold_is_that_of_bisection(bound):
    z = np.random.default_rng(0).normal(size=30)
    np.testing.assert_allclose(solver.maximiser(z, bound), by_bisection(z, bound), atol=1e-12)


def test_near_ties_keep_the_bound():
    z = np.array([1.0, 1.0 - 1e-15, 1.0 - 3e-15, 1.0, 0.5])
    for bound in (1.0, 1.2, 1.7, 2.0):
        v = solver.maximiser(z, bound)
        assert np.linalg.norm(v) == pytest.approx(1, rel=1e-12)
        assert np.abs(v).sum() <= bound * (1 + 1e-9)
        assert z @ v == pytest.approx(bound, rel=1e-9)


def test_equal_entries_beyond_the_bound_give_a_choice_among_them():
    v = solver.maximiser(np.array([0.5, 2.0, -2.0, 2.0, 2.0]), np.sqrt(2))
    np.testing.assert_allclose(v, [0, np.sqrt(0.5), -np.sqrt(0.5), 0, 0], atol=1e-12)


# --- components ---------------------------------------------------------------------------------


def test_a_bound_of_one_takes_the_variable_of_largest_variance():
    S = covariance(0, 8)
    V = solver.components(fit(S, [1.0]).value, 1)
    assert np.flatnonzero(V[:, 0]).tolist() == [int(np.argmax(np.diag(S)))]


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_bound_it_is_pca(kind):
    S = load_pitprops().correlation
    result = fit(S, [np.sqrt(13)] * 4, kind=kind, tol=1e-10)
    values, vectors = np.linalg.eigh(S)
    V = solver.components(result.value, 4)
    np.testing.assert_allclose(np.abs(np.sum(V * vectors[:, :-5:-1], axis=0)), 1, atol=1e-12)
    np.testing.assert_allclose(result.value["captured"], values[:-5:-1], rtol=1e-10)
    assert result.objective == pytest.approx(13 - values[-4:].sum(), rel=1e-10)


def best_of_many(S, bound, count=40):
    """SLSQP in v = a - b, a and b not negative, from many starts."""
    from scipy.optimize import minimize

    p, rng, best = len(S), np.random.default_rng(0), 0.0
    for _ in range(count):
        answer = minimize(
            lambda ab: -(ab[:p] - ab[p:]) @ S @ (ab[:p] - ab[p:]),
            rng.random(2 * p) / p,
            jac=lambda ab: np.concatenate([-2 * S @ (ab[:p] - ab[p:]), 2 * S @ (ab[:p] - ab[p:])]),
            bounds=[(0, None)] * (2 * p),
            constraints=[
                {"type": "ineq", "fun": lambda ab: bound - ab.sum()},
                {"type": "ineq", "fun": lambda ab: 1 - (ab[:p] - ab[p:]) @ (ab[:p] - ab[p:])},
            ],
            options={"maxiter": 300, "ftol": 1e-12},
        )
        v = answer.x[:p] - answer.x[p:]
        v = v / max(np.linalg.norm(v), np.abs(v).sum() / bound, 1e-9)
        best = max(best, v @ S @ v)
    return best


@pytest.mark.parametrize(("seed", "p", "bound"), [(0, 4, 1.3), (1, 5, 1.6), (2, 6, 1.2), (3, 6, 2.0), (4, 5, 1.4)])
def test_no_generic_solver_finds_more(seed, p, bound):
    S = covariance(seed, p)
    v = solver.components(fit(S, [bound]).value, 1)[:, 0]
    assert np.abs(v).sum() <= bound * (1 + 1e-12)
    assert np.linalg.norm(v) == pytest.approx(1, rel=1e-12)
    assert v @ S @ v >= best_of_many(S, bound) * (1 - 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_never_rises_and_is_that_of_the_answer(kind):
    S = load_pitprops().correlation
    bounds = np.array([2.4, 1.5, 1.7, 1.2])
    solve = solver.constrained(Matrix(S), solver.start(13), bounds=bounds, tol=1e-8, deflation=kind)
    states = list(solve)
    objectives = [state.objective for state in states]
    assert (np.diff(objectives) <= 1e-13 * 13).all()
    assert [state.residual for state in states[:-1]].count(np.inf) >= 3
    last = states[-1]
    V = solver.components(last.value, 4)
    assert (np.abs(V).sum(axis=0) <= bounds * (1 + 1e-12)).all()
    taken, left, residuals = 0.0, deflated(Matrix(S), kind), []
    for v, bound in zip(V.T, bounds):
        matrix = left.matrix
        taken += v @ matrix @ v
        if kind != "hotelling":  # whose steps are shorter, because its S is not positive semidefinite
            residuals.append(np.linalg.norm(solver.maximiser(matrix @ v, bound) - v))
        left = left.without(v)
    assert last.objective == pytest.approx(13 - taken, rel=1e-10)
    assert last.residual <= 1e-8
    if residuals:
        assert max(residuals) <= 1e-7


def pmd_with_orthogonal_scores(X, bounds, starts, tol=1e-12):
    """Witten et al. as written, slowly: u from X v less its parts in the u's before, v from X'u by bisection."""
    U, V = np.zeros((len(X), 0)), []
    for bound, v in zip(bounds, starts.T, strict=True):
        moved = 1.0
        while moved > tol:
            u = X @ v - U @ (U.T @ (X @ v))
            u /= np.linalg.norm(u)
            before, v = v, by_bisection(X.T @ u, bound)
            moved = np.abs(v - before).max()
        U, V = np.column_stack([U, u]), [*V, v]
    return U, np.column_stack(V)


@pytest.mark.parametrize(("seed", "shape"), [(0, (40, 10)), (1, (25, 60)), (2, (100, 30))])
def test_schur_is_pmd_with_orthogonal_scores(seed, shape):
    """The same fixed points, and orthogonal u's: what deflation leaves is what u is regressed on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) @ rng.normal(size=(shape[1], shape[1]))
    X -= X.mean(axis=0)
    bounds = np.array([0.6, 0.5, 0.7, 0.4]) * np.sqrt(shape[1])
    result = fit(X.T @ X, bounds, kind="schur", tol=1e-10)
    V = solver.components(result.value, 4)
    U, twin = pmd_with_orthogonal_scores(X, bounds, V)
    np.testing.assert_allclose(twin, V, atol=1e-6)
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-10)
    # The u's are the scores of V, made orthogonal one after the other; their variances are the adjusted ones.
    W, _ = orthogonalised(X.T @ (X @ V), V, scores=True)
    scores = X @ W
    lengths = np.linalg.norm(scores, axis=0)
    np.testing.assert_allclose(np.abs(np.sum(U * scores, axis=0)), lengths, rtol=1e-9)
    np.testing.assert_allclose(lengths**2, result.value["captured"], rtol=1e-9)
    np.testing.assert_allclose(explained_variance(X.T @ (X @ V), V, "adjusted"), lengths**2, rtol=1e-9)


def test_no_start_of_pmd_finds_more():
    """From each single variable, the literal steps end no higher than ours, component after component."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 10)) @ rng.normal(size=(10, 10))
    bounds = np.array([1.8, 1.5])
    found = fit(X.T @ X, bounds, kind="schur").value
    captured, V = found["captured"], solver.components(found, 2)
    for axis in np.eye(10):
        for done in range(2):
            starts = np.column_stack([*V.T[:done], axis])
            U, twin = pmd_with_orthogonal_scores(X, bounds[: done + 1], starts, tol=1e-4)
            assert (U[:, done] @ X @ twin[:, done]) ** 2 <= captured[done] * (1 + 1e-6)


def test_projection_is_the_penalised_matrix_decomposition():
    """PMD deflates the data: X - d u v'."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 8))
    V = solver.components(fit(X.T @ X, [1.5, 1.5, 1.5], kind="projection").value, 3)
    for v in V.T:
        u = X @ v / np.linalg.norm(X @ v)
        np.testing.assert_allclose(solver.maximiser(X.T @ u, 1.5), v, atol=1e-7)
        X = X - (u @ X @ v) * np.outer(u, v)


def test_products_with_data_are_enough():
    X = data_with_spectrum(25, 60, np.linspace(3, 1, 20), seed=3, offset=5.0)
    rows = as_rows(X)
    S = np.cov(X, rowvar=False) * 24
    a = fit(S, [3.0, 3.0])
    b = fit(Passes(statistics.moments(rows).centered(rows)), [3.0, 3.0])
    V, W = solver.components(a.value, 2), solver.components(b.value, 2)
    np.testing.assert_allclose(V, W * np.sign(np.sum(V * W, axis=0)), atol=1e-7)


def test_more_components_than_rank_are_zero():
    x = np.array([3.0, -4.0, 0.0, 12.0])
    result = fit(np.outer(x, x), [2.0, 2.0, 2.0])
    V = solver.components(result.value, 3)
    np.testing.assert_allclose(np.abs(V[:, 0]), np.abs(x) / 13, atol=1e-12)
    assert not V[:, 1:].any()
    assert result.certificate.holds


def test_planted_supports():
    rng = np.random.RandomState(7)
    V = np.zeros((5, 200))
    for j in range(5):
        V[j, 20 * j : 20 * j + 20] = rng.choice([-1, 1], 20) / np.sqrt(20)
    X = (rng.randn(150, 5) * np.linspace(12, 6, 5)) @ V + rng.randn(150, 200)
    X -= X.mean(axis=0)
    found = solver.components(fit(X.T @ X, [0.9 * np.sqrt(20)] * 5, tol=1e-6).value, 5)
    for v, planted in zip(found.T, V):
        assert np.linalg.norm(v[planted != 0]) > 0.999
        assert set(np.argsort(-np.abs(v))[:15]) <= set(np.flatnonzero(planted))


# --- deflation ----------------------------------------------------------------------------------


def deflated_twin(S, xs, kind):
    Q = np.zeros((len(S), 0))
    for x in xs:
        if kind == "hotelling":
            S = S - (x @ S @ x) * np.outer(x, x)
        elif kind == "schur":
            S = S - np.outer(S @ x, S @ x) / (x @ S @ x)
        else:
            q = x
            if kind == "generalised":
                q = x - Q @ (Q.T @ x)
                q = q / np.linalg.norm(q)
                Q = np.column_stack([Q, q])
            P = np.eye(len(S)) - np.outer(q, q)
            S = P @ S @ P
    return S


@pytest.mark.parametrize("kind", KINDS)
def test_deflation_is_that_of_the_formulae(kind):
    rng = np.random.default_rng(4)
    S = covariance(5, 9)
    xs = rng.normal(size=(4, 9))
    xs /= np.linalg.norm(xs, axis=1, keepdims=True)
    left = deflated(Matrix(S), kind)
    for x in xs:
        left = left.without(x)
    expected = deflated_twin(S, xs, kind)
    V = rng.normal(size=(9, 2))
    np.testing.assert_allclose(left.matrix, expected, atol=1e-12)
    np.testing.assert_allclose(left.apply(V), expected @ V, atol=1e-12)
    np.testing.assert_allclose(left.times(V.T), V.T @ expected, atol=1e-12)
    np.testing.assert_allclose(left.diagonal, np.diag(expected), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_deflation_by_nothing_changes_nothing(kind):
    S = np.diag([2.0, 1.0, 0.0])
    first = deflated(Matrix(S), kind).without(np.array([1.0, 0, 0]))
    for x in ([0.0, 0, 0], [0.0, 0, 1], [1.0, 0, 0]):
        again = first.without(np.array(x))
        assert np.isfinite(again.left).all()
        np.testing.assert_allclose(again.matrix, np.diag([0.0, 1, 0]), atol=1e-15)


def test_an_unknown_deflation_is_refused():
    with pytest.raises(ValueError, match="hotelling, projection, schur, generalised"):
        deflated(Matrix(np.eye(3)), "wielandt")
