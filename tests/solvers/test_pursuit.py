"""Low rank plus sparse: the gap and what it does not believe, a dual point by least squares, a rank that is known."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import slow_pursuit
from helpers import only_user_warnings
from princomp import RobustPCA
from princomp.certificates.pursuit import norm_bound, pursuit_gap
from princomp.estimators.robust import low_rank
from princomp.solvers.robust import alternating, pursuit
from princomp.solvers.robust.least_squares_dual import least_squares_dual


def planted(n, p, rank, share, seed=0, size=1.0):
    """L, entries of variance 1, and S of +-size."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p)) / np.sqrt(rank)
    return L, (rng.random((n, p)) < share) * rng.choice([-size, size], (n, p))


# --- the gap --------------------------------------------------------------------------------------


def factors(L, rank):
    U, s, Vt = np.linalg.svd(L, full_matrices=False)
    return U[:, :rank], s[:rank], Vt[:rank]


def test_a_dual_point_whose_top_singular_vector_a_start_misses_proves_nothing():
    """Power iteration and Lanczos from any start without its last coordinate find a norm of 1; it is 3."""
    n = 30
    X = np.zeros((n, n))
    X[0, 0], X[-1, -1] = 1.0, 1e-3
    Y = np.zeros((n, n))
    Y[0, 0], Y[-1, -1] = 1.0, 3.0
    start = np.r_[np.ones(n - 1), 0.0]
    for _ in range(50):
        start = Y.T @ (Y @ start)
        start /= np.linalg.norm(start)
    assert np.linalg.norm(Y @ start) == pytest.approx(1)  # what a start that misses it says
    gap = pursuit_gap(X, (X[:, :1], np.eye(1, n)), np.zeros_like(X), Y, alpha=10.0)
    assert gap.excess >= 3
    assert gap.dual <= (1 + 3e-3) / 3 * (1 + 1e-12)
    assert gap.residual > 0.5
    # The same pair with a point that is within its bounds: all that is left is what L leaves.
    honest = pursuit_gap(X, (X[:, :1], np.eye(1, n)), np.zeros_like(X), np.minimum(Y, 1.0), alpha=10.0)
    assert honest.excess == pytest.approx(1, abs=1e-12)
    assert honest.dual == pytest.approx(1.001)


@pytest.mark.parametrize("seed", range(5))
def test_the_norm_is_bounded_from_above(seed):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(40, 25))
    Y /= np.linalg.norm(Y, 2)
    for factor in (0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1.1, 100.0):
        bound = norm_bound(factor * Y)
        assert bound >= factor * (1 - 1e-15)
        assert bound <= max(factor, 1.0) * (1 + 1e-6)
    Y[3, 4] = np.nan
    assert norm_bound(Y) == np.inf


@pytest.mark.parametrize("rows", [False, True])
def test_a_cell_or_row_beyond_its_bound_is_seen(rows):
    L, S = planted(20, 15, 2, 0.1)
    U, s, Vt = factors(L, 2)
    Y = 0.1 * np.sign(S)
    alpha = np.linalg.norm(Y, axis=1).max() if rows else 0.1
    assert pursuit_gap(L + S, (U * s, Vt), S, 2 * Y, alpha=alpha, rows=rows).excess >= 2 * (1 - 1e-12)


def generic(X, alpha):
    """The optimum by L-BFGS-B, from above: of smoothed objectives, each nearer to it and begun where the last ended."""

    def smooth(x, eps):
        L = x.reshape(X.shape)
        U, s, Vt = np.linalg.svd(L, full_matrices=False)
        values, cells = np.sqrt(s**2 + eps**2), np.sqrt((X - L) ** 2 + eps**2)
        return values.sum() + alpha * cells.sum(), ((U * (s / values)) @ Vt - alpha * (X - L) / cells).ravel()

    x, options = np.zeros(X.size), {"maxiter": 5000, "maxfun": 10**5, "ftol": 1e-15, "gtol": 1e-10, "maxcor": X.size}
    for eps in 10.0 ** -np.arange(0, 8, 0.25):
        x = minimize(smooth, x, args=(eps,), jac=True, method="L-BFGS-B", options=options).x
    return slow_pursuit.upper_bound(X, x.reshape(X.shape), alpha)


@pytest.mark.parametrize("seed", range(2))
def test_a_generic_solver_finds_the_same_objective(seed):
    """One of scipy's, which knows nothing of this problem, and Douglas-Rachford to ten digits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2)) @ rng.normal(size=(2, 6)) + 3 * (rng.random((8, 6)) < 0.1)
    alpha = 1 / np.sqrt(8)
    with only_user_warnings():
        model = RobustPCA(1, tol=1e-8, max_iter=20_000, random_state=0).fit(X)
    truth = slow_pursuit.solve(X, alpha, tol=1e-9)
    assert model.certificate_.holds
    assert model.result_.objective == pytest.approx(truth.upper, rel=1e-6)
    assert model.result_.objective == pytest.approx(generic(X, alpha), rel=1e-6)
    value = model.result_.value
    np.testing.assert_allclose((value["U"] * value["values"]) @ value["V"].T, model.low_rank_, atol=1e-12)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-10])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_what_the_solver_says_of_itself_is_no_less_than_what_is_measured(rows, tol, shift):
    """Of a Y beyond its bounds a norm that is foretold once took away just what <X, Y> was above the least cost."""
    X = load_iris().data
    X = X - shift * X.mean()
    with only_user_warnings():
        model = RobustPCA(1, method="outlier-pursuit" if rows else "pcp", tol=tol, random_state=0).fit(X)
    assert model.result_.status.code == "converged"
    assert model.certificate_.residual <= model.result_.history.residual[-1] * (1 + 1e-3) <= tol * (1 + 1e-3)


@pytest.mark.parametrize("rows", [False, True])
def test_a_run_that_thinks_too_well_of_itself_goes_on(rows, monkeypatch):
    """Told a hundredth of its residual, so that it stops too early; what is measured has the last word."""
    honest = low_rank.pursuit

    def vain(parts, value, *, alpha, tol):
        for state in honest(parts, value, alpha=alpha, tol=100 * tol):
            yield replace(state, residual=state.residual / 100)

    X, how = load_iris().data, {"method": "outlier-pursuit" if rows else "pcp", "random_state": 0}
    usual = RobustPCA(1, **how).fit(X)
    monkeypatch.setattr(low_rank, "pursuit", vain)
    model = RobustPCA(1, **how).fit(X)
    assert model.result_.status.code == "converged"
    assert model.certificate_.holds
    assert model.n_iter_ == model.result_.history.iteration[-1] == len(model.result_.history)
    np.testing.assert_allclose(model.low_rank_, usual.low_rank_, atol=1e-3)
    short = int(np.argmax(np.array(model.result_.history.residual) <= 1e-6)) + 2  # one more than where it first stopped
    assert short < model.n_iter_
    with pytest.warns(ConvergenceWarning, match=f"max_iter={short}"):
        model = RobustPCA(1, max_iter=short, **how).fit(X)
    assert model.result_.status.code == "iteration limit"
    assert not model.certificate_.holds


@pytest.mark.parametrize("rows", [False, True])
def test_compiled_passes_are_those_of_numpy(rows, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 40))
    X[rng.random(X.shape) < 0.1 * (not rows)] = np.nan
    parts = pursuit.Rows(X) if rows else pursuit.Cells(X)
    runs = []
    for without in (False, True):
        if without:
            monkeypatch.setattr(pursuit, "loops", lambda name: None)
        steps = pursuit.pursuit(parts, pursuit.start(parts, 0), alpha=0.2, tol=1e-9)
        runs.append([next(steps) for _ in range(12)])
    for one, other in zip(*runs, strict=True):
        assert one.objective == pytest.approx(other.objective, rel=1e-10)
        np.testing.assert_allclose(one.value["M"], other.value["M"], atol=1e-9)


# --- a rank that is known -------------------------------------------------------------------------


def test_alternating_passes_are_those_of_numpy(monkeypatch):
    L, S = planted(70, 50, 3, 0.1, size=5.0)
    X = L + S
    X[2, 3] = np.nan
    runs = []
    for without in (False, True):
        if without:
            monkeypatch.setattr(alternating, "loops", lambda name: None)
        steps = alternating.alternating(X, alternating.start(X, 3, np.random.default_rng(0)), alpha=0.1)
        runs.append([next(steps) for _ in range(6)])
    for one, other in zip(*runs, strict=True):
        assert one.objective == pytest.approx(other.objective, rel=1e-9)
        np.testing.assert_allclose(one.value["U"] @ one.value["B"], other.value["U"] @ other.value["B"], atol=1e-9)


def test_the_dual_point_of_a_planted_pair_proves_it():
    L, S = planted(200, 150, 5, 0.05)
    U, s, Vt = factors(L, 5)
    alpha = 1 / np.sqrt(200)
    Y = least_squares_dual(L + S, U, Vt.T, S, alpha=alpha, tol=1e-9)
    np.testing.assert_allclose(U.T @ Y, Vt, atol=1e-7)
    np.testing.assert_allclose(Y @ Vt.T, U, atol=1e-7)
    assert np.array_equal(Y[S != 0], alpha * np.sign(S[S != 0]))
    assert np.abs(Y).max() <= alpha
    assert pursuit_gap(L + S, (U * s, Vt), S, Y, alpha=alpha).residual < 1e-7


def test_the_dual_point_of_another_pair_proves_nothing():
    """Of rank 4 where it is 5, the rest taken for bad cells; and of a pair with a bad cell left in L."""
    L, S = planted(200, 150, 5, 0.05)
    X, alpha = L + S, 1 / np.sqrt(200)
    U, s, Vt = factors(L, 4)
    T = X - (U * s) @ Vt
    Y = least_squares_dual(X, U, Vt.T, T, alpha=alpha, tol=1e-9)
    assert pursuit_gap(X, (U * s, Vt), T, Y, alpha=alpha).residual > 1e-3
    spoilt = L.copy()
    i, j = np.argwhere(S)[0]
    spoilt[i, j] += S[i, j]
    U, s, Vt = factors(spoilt, 6)
    T = X - spoilt
    Y = least_squares_dual(X, U, Vt.T, T, alpha=alpha, tol=1e-9)
    assert pursuit_gap(X, (U * s, Vt), T, Y, alpha=alpha).residual > 1e-4


def both(X, k, **how):
    """The fit by "alternating", what it warned of, and that by "convex"."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RobustPCA(k, solver="alternating", random_state=0, **how).fit(X)
    with only_user_warnings():
        convex = RobustPCA(k, random_state=0, **how).fit(X)
    return model, [str(warning.message) for warning in caught], convex


@pytest.mark.parametrize("share", [0.05, 0.1])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_alternating_finds_what_convex_finds_in_fewer_steps(share, missing):
    L, S = planted(240, 200, 6, share)
    X = L + S
    X[np.random.default_rng(1).random(X.shape) < missing] = np.nan
    model, said, convex = both(X, 6)
    assert not said
    assert model.certificate_.holds
    assert model.n_iter_ < convex.n_iter_
    assert model.rank_ == 6
    assert np.linalg.norm(model.low_rank_ - L) < 1e-5 * np.linalg.norm(L)
    seen = ~np.isnan(X)
    assert np.array_equal((model.sparse_ != 0)[seen], (S != 0)[seen])
    assert not (model.sparse_ != 0)[~seen].any()


def test_a_rank_that_is_too_high_is_found_out():
    L, S = planted(240, 200, 6, 0.05)
    model, _, _ = both(L + S, 9)
    assert model.rank_ == 6
    assert model.certificate_.holds
    assert np.linalg.norm(model.low_rank_ - L) < 1e-5 * np.linalg.norm(L)


def coherent():
    L, S = planted(120, 100, 4, 0.05)
    L[:3] *= 40.0  # three rows hold nearly all of it
    return L + S


def hard_ones():
    rng = np.random.default_rng(5)
    exact = planted(120, 100, 4, 0.1)
    return {
        "rank too low": (sum(exact), 3),
        "rank of one": (sum(exact), 1),
        "a fifth bad": (sum(planted(120, 100, 4, 0.2)), 4),
        "half bad": (sum(planted(120, 100, 4, 0.5)), 4),
        "all bad": (20 * rng.choice([-1.0, 1.0], (60, 40)), 2),
        "noise": (rng.normal(size=(80, 50)), 5),
        "noise on it": (sum(exact) + 0.1 * rng.normal(size=(120, 100)), 4),
        "little noise on it": (sum(exact) + 1e-4 * rng.normal(size=(120, 100)), 4),
        "coherent rows": (coherent(), 4),
        "bad cells small": (sum(planted(120, 100, 4, 0.1, size=0.05)), 4),
        "bad cells of one sign": (exact[0] + np.abs(exact[1]), 4),
        "a bad row": (exact[0] + 5.0 * (np.arange(120) == 7)[:, None], 4),
        "zeros": (np.zeros((20, 10)), 2),
        "constant": (np.full((20, 10), 3.0), 1),
        "two rows": (rng.normal(size=(2, 9)), 1),
        "one column": (rng.normal(size=(30, 1)), 1),
        "all of the rank": (rng.normal(size=(12, 8)), 8),
    }


@pytest.mark.parametrize("name", hard_ones())
def test_alternating_is_never_wrong_without_a_word(name):
    """What holds is the minimum, by the slow solver's bound; what is not proved "convex" has found, which is said."""
    X, k = hard_ones()[name]
    model, said, convex = both(X, k, max_iter=5000)
    alpha = 1 / np.sqrt(max(X.shape))
    value = slow_pursuit.objective(model.low_rank_, model.sparse_, alpha)
    assert value <= convex.result_.objective * (1 + 5e-6) + 1e-12
    assert value == pytest.approx(model.result_.objective, rel=1e-6, abs=1e-12)
    assert model.certificate_.holds or said
    if model.certificate_.holds and value:
        assert value - slow_pursuit.solve(X, alpha, tol=1e-5, limit=1000).lower <= 1e-3 * value
    assert all("alternating" in sentence or "converged" in sentence for sentence in said)


def test_alternating_that_fails_says_so_and_is_convex():
    X, k = hard_ones()["rank too low"]
    model, said, convex = both(X, k)
    assert len(said) == 1
    assert "rank 3" in said[0]
    assert "convex" in said[0]
    assert model.rank_ == convex.rank_ == 4
    np.testing.assert_allclose(model.low_rank_, convex.low_rank_, atol=1e-4)


def test_alternating_that_a_callback_stops_ends_there():
    L, S = planted(120, 100, 4, 0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = RobustPCA(4, solver="alternating", callback=lambda state: True).fit(L + S)
    assert model.result_.status.code == "stopped"
    assert [str(warning.message)[:7] for warning in caught] == ["Stopped"]
    assert model.n_iter_ == 1
