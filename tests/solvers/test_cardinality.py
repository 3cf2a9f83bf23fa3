"""max v'Sv with few features: published optima, brute force, the exact test of exchanges, bounds, restarts."""

import itertools
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from princomp._compiled import loops
from princomp.certificates.remainder import remainder, remainder_of_rows
from princomp.datasets import load_pitprops, load_wine
from princomp.result import run
from princomp.solvers import cardinality as solver
from princomp.solvers import exchange
from princomp.solvers.deflation import deflated
from princomp.solvers.exchange import Units
from princomp.solvers.scatter import Data, Matrix, Scatter

KINDS = ("schur", "projection", "generalised", "hotelling")
# All supports enumerated: Berk & Bertsimas, Math. Prog. Comput. 2019, Table 8; Li & Xie 2024.
PITPROPS = [
    *(1.000000, 1.954000, 2.475331, 2.937479, 3.406155, 3.770960, 3.996190),
    *(4.068607, 4.138647, 4.172638, 4.208276, 4.218245, 4.218633),
]
WINE = {2: 1.864564, 3: 2.569721, 4: 3.082031, 5: 3.439778}


def plain(p, forced=()):
    return Units(None, np.isin(np.arange(p), forced))


class ByProducts(Scatter):
    """The least that a view of S must have."""

    def __init__(self, S):
        self.S, self.features = S, len(S)

    @property
    def diagonal(self):
        return np.diag(self.S)

    def apply(self, V, *, roughly=False):
        return self.S @ V


def solve(S, counts, *, k=1, units=None, kind="schur", way="matrix", start=None, **how):
    """States, by one of the ways that S is given."""
    p, scatter = len(S), Matrix(S) if way == "matrix" else ByProducts(S)
    if way == "data":
        values, vectors = np.linalg.eigh(S)
        scatter = Data((vectors * np.sqrt(np.maximum(values, 0))).T)
    counts = counts if isinstance(counts, float) else np.broadcast_to(counts, k)
    how = {"counts": counts, "k": k, "units": units or plain(p), "deflation": kind} | how
    return partial(solver.cardinality, scatter, **how), solver.start(p) if start is None else start


def fit(S, counts, **how):
    return run(*solve(S, counts, **how), tol=1e-9, max_iter=10**6)


def best(S, count, allowed=None):
    """The optimum, by enumeration."""
    subsets = np.array(list(itertools.combinations(range(len(S)) if allowed is None else allowed, count)))
    return np.linalg.eigvalsh(S[subsets[:, :, None], subsets[:, None, :]])[:, -1].max()


def problem(kind, seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(8, 13))
    if kind == "full":
        X = rng.normal(size=(3 * p, p))
        S = X.T @ X
    elif kind == "low rank":
        X = rng.normal(size=(3, p))
        S = X.T @ X
    elif kind == "tied diagonal":
        S = np.corrcoef(rng.normal(size=(3, p)).T @ rng.normal(size=(3, 2 * p)) + rng.normal(size=(p, 2 * p)))
    elif kind == "negative":
        S = -np.abs(rng.normal(size=(p, p)))
        S = (S + S.T) / 2
        np.fill_diagonal(S, 0.0)
        np.fill_diagonal(S, 0.1 - np.linalg.eigvalsh(S)[0])
    else:  # nearly equal optima
        X = rng.normal(size=(p, p))
        S = np.eye(p) + 1e-3 * X @ X.T / p
    return (S + S.T) / 2, int(rng.integers(2, p))


PROBLEMS = ("full", "low rank", "tied diagonal", "negative", "nearly equal")


# --- published numbers --------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(1, 14))
def test_pitprops(count):
    result = fit(load_pitprops().correlation, count)
    assert result.value["captured"][0] == pytest.approx(PITPROPS[count - 1], abs=1e-6)
    assert result.value["upper"][0] >= result.value["captured"][0]
    assert (result.value["found"] != 0).sum() <= count


@pytest.mark.parametrize("count", WINE)
def test_wine(count):
    X = load_wine().X
    assert fit(np.corrcoef(X.T), count).value["captured"][0] == pytest.approx(WINE[count], abs=1e-6)
    if count == 5:
        found = fit(np.cov(X.T), 5).value
        assert found["captured"][0] == pytest.approx(99201.309, abs=1e-3)
        assert np.flatnonzero(found["found"][:, 0]).tolist() == [0, 3, 4, 9, 12]


# --- against brute force ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("way", ["matrix", "data", "operator"])
def test_the_best_of_all_supports_is_found(kind, way):
    for seed in range(12):
        S, count = problem(kind, seed)
        optimum = best(S, count)
        value = fit(S, count, way=way).value
        v = value["found"][:, 0]
        assert np.linalg.norm(v) == pytest.approx(1, rel=1e-12)
        assert (v != 0).sum() <= count
        assert v @ S @ v == pytest.approx(optimum, rel=1e-9)
        assert value["captured"][0] == pytest.approx(optimum, rel=1e-9)
        assert value["upper"][0] >= optimum * (1 - 1e-14)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_exchanges_that_help_are_told_exactly(kind):
    for seed in range(5):
        S, count = problem(kind, seed)
        p = len(S)
        which = np.sort(np.random.default_rng(seed).permutation(p)[:count])
        A = deflated(Matrix(S), "schur")
        values, vectors = np.linalg.eigh(S[np.ix_(which, which)])
        reach = exchange._reach(A, plain(p), which, S[which], values, vectors)
        for out, into in itertools.product(range(count), range(p)):
            exchanged = np.where(np.arange(count) == out, into, which)
            truth = np.linalg.eigvalsh(S[np.ix_(exchanged, exchanged)])[-1]
            if into in which:
                assert reach[out, into] == -np.inf
            elif abs(truth - values[-1]) > 1e-8 * values[-1]:
                assert np.isfinite(reach[out, into]) == (truth > values[-1])
                assert reach[out, into] <= truth * (1 + 1e-9)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_compiled_search_equals_its_twins(kind):
    compiled = loops("cardinality_search")
    assert compiled is not None
    for seed in range(8):
        S, count = problem(kind, seed)
        p = len(S)
        units = plain(p, forced=[1])
        A = deflated(Matrix(S), "schur")
        which = np.unique(np.append(np.random.default_rng(seed).permutation(p)[:count], 1))
        value, features, loadings, settled, made = exchange.exchanged(A, units, which, 100)
        how = {"rounds": 100, "helps": exchange.HELPS, "small": exchange.SMALL}
        twin = compiled.improve(S, which, units.forced, **how)
        assert settled
        assert twin[3]
        assert (made == twin[4]) or kind in ("tied diagonal", "nearly equal")  # equal ones are taken in any order
        assert 1 in features
        assert 1 in twin[1]
        assert value == pytest.approx(twin[0], rel=1e-12)
        assert loadings @ S[np.ix_(features, features)] @ loadings == pytest.approx(value, rel=1e-12)
        how = {"shift": 0.5, "steps": solver.STEPS, "rise": solver.RISE}
        shifted = SimpleNamespace(times=S.__rmatmul__, shift=0.5)
        chosen, V, heights = solver._stepped(shifted, units, S + 0.5 * np.eye(p), count)
        features, weights, reached = compiled.power(S, S + 0.5 * np.eye(p), count, units.forced, **how)
        dense = np.zeros_like(V)
        np.put_along_axis(dense, features, weights, axis=1)
        same = (chosen == (dense != 0)).all(axis=1)  # equal sizes may be chosen among otherwise
        assert same.mean() >= 0.8
        np.testing.assert_allclose(dense[same], V[same], atol=1e-12)
        np.testing.assert_allclose(reached[same], heights[same], rtol=1e-12)


def test_forced_features_are_in():
    for seed in range(10):
        S, count = problem("tied diagonal", seed)
        forced = [0, len(S) - 1][:count]
        subsets = [each for each in itertools.combinations(range(len(S)), count) if set(forced) <= set(each)]
        optimum = max(np.linalg.eigvalsh(S[np.ix_(each, each)])[-1] for each in subsets)
        for way in ("matrix", "operator"):
            value = fit(S, count, units=plain(len(S), forced), way=way).value
            assert value["found"][forced, 0].all()
            assert value["captured"][0] == pytest.approx(optimum, rel=1e-9)


def test_forced_features_may_be_all():
    S = np.diag([1.0, 5.0, 2.0, 4.0, 3.0])
    for way in ("matrix", "operator"):
        value = fit(S, 2, units=plain(5, [0, 2]), way=way).value
        assert value["captured"].tolist() == [2.0]
        assert np.abs(value["found"][:, 0]).tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize("kind", ["full", "tied diagonal", "negative"])
def test_groups_count_as_one(kind):
    for seed in range(8):
        S, _ = problem(kind, seed)
        of = np.arange(len(S)) % 5
        optimum = max(
            np.linalg.eigvalsh(S[np.ix_(inside, inside)])[-1]
            for pair in itertools.combinations(range(5), 2)
            if len(inside := np.flatnonzero(np.isin(of, pair)))
        )
        value = fit(S, 2, units=Units(of, np.zeros(5, dtype=bool))).value
        assert len(set(of[value["found"][:, 0] != 0])) == 2
        assert value["captured"][0] == pytest.approx(optimum, rel=1e-9)
        assert value["upper"][0] >= optimum


def best_nonnegative(S, count):
    """On the features it uses the best is a leading eigenvector, all of one sign: all subsets are tried."""
    values = [S.diagonal().max()]
    for size in range(2, count + 1):
        for each in itertools.combinations(range(len(S)), size):
            height, vectors = np.linalg.eigh(S[np.ix_(each, each)])
            lead = vectors[:, -1] * (1 if vectors[:, -1].sum() >= 0 else -1)
            if (lead >= 0).all():
                values.append(height[-1])
    return max(values)


@pytest.mark.parametrize("kind", ["full", "low rank", "tied diagonal", "negative"])
def test_nonnegative(kind):
    for seed in range(8):
        S, count = problem(kind, seed)
        value = fit(S, count, units=Units(None, np.zeros(len(S), dtype=bool), nonnegative=True)).value
        v = value["found"][:, 0]
        assert (v >= 0).all()
        assert (v != 0).sum() <= count
        assert v @ S @ v == pytest.approx(best_nonnegative(S, count), rel=1e-9)


def test_the_fewest_features_that_keep_a_share():
    for kind, seed in itertools.product(("full", "tied diagonal", "low rank"), range(6)):
        S, _ = problem(kind, seed)
        top = np.linalg.eigvalsh(S)[-1]
        fewest = next(count for count in range(1, len(S) + 1) if best(S, count) >= 0.9 * top)
        for way in ("matrix", "data"):
            value = fit(S, 0.9, way=way).value
            assert value["counts"].tolist() == [fewest]
            assert value["captured"][0] == pytest.approx(best(S, fewest), rel=1e-9)


# --- several components, bounds -----------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_each_component_is_the_best_on_what_is_left(kind):
    S = load_pitprops().correlation
    result = fit(S, 5, k=4, kind=kind)
    left = deflated(Matrix(S), kind)
    for v, captured, upper in zip(result.value["found"].T, result.value["captured"], result.value["upper"]):
        A = left.matrix
        assert v @ A @ v == pytest.approx(captured, rel=1e-9)
        assert captured == pytest.approx(best(A, 5), rel=1e-9)
        assert upper >= best(A, 5)
        left = left.without(v)
    assert result.objective == pytest.approx(13 - result.value["captured"].sum(), rel=1e-12)
    assert result.certificate.residual <= 1e-12


def test_the_objective_never_rises():
    S = load_pitprops().correlation
    steps, begin = solve(S, 4, k=5)
    objectives = [state.objective for state in steps(begin)]
    assert len(objectives) >= 10
    assert (np.diff(objectives) <= 1e-12).all()


@pytest.mark.parametrize("kind", ["schur", "projection", "generalised"])
def test_deflated_data_are_those_of_the_deflated_matrix(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 7))
    found = rng.normal(size=(7, 3))
    found /= np.linalg.norm(found, axis=0)
    left = deflated(Matrix(X.T @ X), kind)
    for x in found.T:
        left = left.without(x)
    after, rounding = remainder_of_rows(X, found, kind)
    np.testing.assert_allclose(after.T @ after, left.matrix, atol=1e-12)
    np.testing.assert_allclose(remainder(X.T @ X, found, kind)[0], left.matrix, atol=1e-12)
    assert 0 < rounding < 1e-9


def test_a_component_that_is_there_twice_is_taken_away_once():
    """What the second one would take is rounding: it leaves what the first one left, which is known as well as then."""
    for seed in range(20):
        S, _ = problem("full", seed)
        x = np.random.default_rng(seed).standard_normal((len(S), 1))
        once, rounding = remainder(S, x, "schur")
        twice, more = remainder(S, np.hstack([x, x]), "schur")
        np.testing.assert_allclose(twice, once, rtol=0, atol=rounding)
        assert more <= 2 * rounding


def test_rounding_grows_with_the_square_of_what_a_component_is_regressed_with():
    """Of a matrix of rank one nothing is left; but a component that holds a millionth of it takes that from afar."""
    for seed in range(20):
        w, u = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 2)))[0].T
        left, rounding = remainder(np.outer(w, w), (u + 1e-3 * w)[:, None], "schur")
        assert np.linalg.norm(left, 2) <= rounding <= 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_the_sign_of_a_component_changes_nothing_of_what_it_leaves(kind):
    S, _ = problem("full", 0)
    V = np.random.default_rng(0).standard_normal((len(S), 3)) + 1.0
    (left, rounding), (other, as_much) = (remainder(S, V * signs, kind) for signs in ([1, 1, 1], [1, -1, 1]))
    np.testing.assert_allclose(other, left, rtol=0, atol=rounding)
    assert as_much == pytest.approx(rounding)


def test_nothing_left_is_zero():
    x = np.array([3.0, -4.0, 0.0, 12.0, 1.0])
    for counts in (5, 0.9):
        result = fit(np.outer(x, x), counts, k=3)
        assert (result.value["found"][:, 0] != 0).any()
        if counts == 5:
            assert not result.value["found"][:, 1:].any()
            assert (result.value["upper"][1:] > 0).all()  # rounding is not nothing
            assert (result.value["upper"][1:] <= 1e-12 * (x @ x)).all()
        assert result.status


def test_the_bound_holds_for_every_count_and_is_exact_at_the_ends():
    for kind, seed in itertools.product(PROBLEMS, range(3)):
        S, _ = problem(kind, seed)
        p = len(S)
        A = deflated(Matrix(S), "schur")
        bounds = [solver.upper_bound(A, plain(p), count) for count in range(1, p + 1)]
        assert all(bound >= best(S, count) * (1 - 1e-14) for count, bound in enumerate(bounds, start=1))
        assert bounds[0] == pytest.approx(S.diagonal().max(), rel=1e-11)
        assert bounds[-1] == pytest.approx(np.linalg.eigvalsh(S)[-1], rel=1e-11)


def test_a_negative_variance_taken_away_leaves_more_than_there_was():
    """Then eigenvalues of S bound nothing. Forced features may have such a variance after a few other components."""
    S, x = np.diag([1.0, 2.0, 3.0]) + 1.0, np.eye(3)[:, :1]
    before = {"found": x, "captured": np.array([-4.0]), "left": -4.0 * x, "right": x}
    each = {"upper": np.array([-4.0]), "counts": np.array([2]), "nodes": np.array([0]), "seconds": np.array([0.0])}
    start, largest = solver.start(3) | before | each, np.linalg.eigvalsh(S)[-1]
    value = fit(S, 2, k=2, kind="hotelling", start=start, largest=largest).value
    left = S + 4.0 * x @ x.T
    assert largest < best(left, 2) < np.linalg.eigvalsh(left)[-1]
    assert value["captured"][1] == pytest.approx(best(left, 2))
    assert value["upper"][1] == pytest.approx(np.linalg.eigvalsh(left)[-1])


# --- large problems, made small -----------------------------------------------------------------


def planted(p=120, n=60, size=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 40 : 40 + size] += 2 * rng.normal(size=(n, 1))
    X -= X.mean(axis=0)
    return X.T @ X


@pytest.mark.parametrize("way", ["matrix", "data"])
def test_few_starts_are_chosen_well(way, monkeypatch):
    monkeypatch.setattr(solver, "STARTS", 4)
    monkeypatch.setattr(solver, "FEW_STARTS", 4)
    monkeypatch.setattr(solver, "BLOCK", 1000)
    monkeypatch.setattr(solver, "SCREEN_WORK", 120 * 120 * 50)  # rows of S from 120 rows of data: 50 of them
    value = fit(planted(), 8, way=way).value
    assert np.flatnonzero(value["found"][:, 0]).tolist() == list(range(40, 48))


def test_many_features_settle_by_power_steps(monkeypatch):
    monkeypatch.setattr(solver, "MOST_EXCHANGED", 5)
    S = planted()
    value = fit(S, 8).value
    assert np.flatnonzero(value["found"][:, 0]).tolist() == list(range(40, 48))
    assert value["captured"][0] == pytest.approx(np.linalg.eigvalsh(S[40:48, 40:48])[-1], rel=1e-9)


def test_the_work_of_exchanges_is_bounded(monkeypatch):
    monkeypatch.setattr(solver, "EXCHANGE_WORK", 1.0)
    monkeypatch.setattr(solver, "STATE_WORK", 1.0)
    result = fit(planted(seed=3), 12, k=2)
    assert result.status
    assert result.n_iter <= 2 * (1 + 2)


# --- restart ------------------------------------------------------------------------------------

RUNS = {
    "counts": {"counts": 4, "k": 3},
    "share": {"counts": 0.8, "k": 3},
    "share, data": {"counts": 0.8, "k": 2, "way": "data"},
    "hotelling": {"counts": 4, "k": 3, "kind": "hotelling", "way": "operator"},
    "generalised": {"counts": 4, "k": 3, "kind": "generalised"},
    "nonnegative": {"counts": 4, "k": 2, "units": Units(None, np.zeros(13, dtype=bool), nonnegative=True)},
    "groups": {"counts": 2, "k": 2, "units": Units(np.arange(13) // 3, np.arange(5) == 1)},
}


@pytest.mark.parametrize("name", RUNS)
def test_restart_from_every_state_is_exact(name, monkeypatch):
    monkeypatch.setattr(solver, "STATE_WORK", 100.0)  # many states
    steps, begin = solve(load_pitprops().correlation, **RUNS[name])
    states, copies = [], []
    for state in steps(begin):
        states.append(state)
        copies.append({key: np.array(array) for key, array in state.value.items()})
    assert len(states) >= 6
    for state, copy in zip(states, copies, strict=True):  # what was handed out is not changed by later steps
        assert all(np.array_equal(state.value[key], copy[key], equal_nan=True) for key in copy)
    for i, state in enumerate(states):
        given = {key: np.array(array, order="F") for key, array in state.value.items()}
        for again, expected in zip(steps(given), states[i + 1 :], strict=True):
            assert (again.objective, again.residual) == (expected.objective, expected.residual)
            assert all(again.value[key].tobytes() == np.asarray(expected.value[key]).tobytes() for key in given)
        assert all(np.array_equal(given[key], state.value[key], equal_nan=True) for key in given)


@pytest.mark.parametrize("size", [1e160, 1e300, 1e-300])
@pytest.mark.parametrize("kind", ["schur", "projection", "generalised", "hotelling"])
def test_deflation_of_any_size(kind, size):
    X = np.random.default_rng(0).standard_normal((30, 5))
    S = X.T @ X / 30
    x = np.array([0.6, 0.0, 0.8, 0.0, 0.0])
    usual, sized = (deflated(Matrix(times * S), kind).without(x).matrix for times in (1.0, size))
    np.testing.assert_allclose(sized / size, usual, atol=1e-12)
    if kind != "hotelling":
        assert abs(x @ sized @ x) <= 1e-12 * size


def test_searches_start_where_a_column_says_most_of_others_for_its_own_variance(monkeypatch):
    """A large variance alone is no promise: it is the squares of the largest covariances over it that count."""
    monkeypatch.setattr(solver, "STARTS", 5)
    monkeypatch.setattr(solver, "LEAST_STARTS", 5)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 30)) * np.geomspace(1, 30, 30)
    S = X.T @ X
    promise = [np.sort(row**2)[::-1][:4].sum() / variance for row, variance in zip(S, np.diag(S))]
    found = solver._promising(deflated(Matrix(S), "schur"), plain(30), 4)
    assert set(found) == set(np.argsort(promise)[-5:])
    assert set(found) != set(np.argsort(np.diag(S))[-5:])


def test_a_residual_is_in_units_of_the_height_whatever_its_sign():
    S = np.diag([3.0, 2.0, 1.0])
    v = np.array([0.8, 0.6, 0.0])
    assert solver._residual(deflated(Matrix(-S), "schur"), v) == pytest.approx(
        solver._residual(deflated(Matrix(S), "schur"), v), rel=1e-12
    )
