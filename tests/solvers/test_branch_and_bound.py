"""Branch and bound for sparse components: right, bounded, and bounded in time."""

import time
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from cardinality_problems import KINDS, constraints, good_support, matrix, optimum
from princomp import datasets
from princomp._compiled import loops
from princomp.certificates import nonnegative_value, verify
from princomp.certificates.nonnegative import nonnegative_bound
from princomp.solvers import branch_and_bound, cardinality_bounds
from princomp.solvers.branch_and_bound import prove

CONSTRAINTS = [
    "",
    "include",
    "exclude",
    "nonnegative",
    "groups",
    "include exclude groups",
    "exclude nonnegative groups",
]
PITPROPS = [1.0, 1.954, 2.475331, 2.937479, 3.406155, 3.77096, 3.99619, 4.068607, 4.138647, 4.172638, 4.208276]
PITPROPS += [4.218245, 4.218633]
WINE = {2: 1.864564, 3: 2.569721, 4: 3.082031, 5: 3.439778}


@pytest.fixture(params=[0, branch_and_bound.ENUMERATED], ids=["dual bounds", "enumeration too"])
def enumerated(request, monkeypatch):
    """Problems this small are mostly enumerated: once without."""
    monkeypatch.setattr(branch_and_bound, "ENUMERATED", request.param)


def check_against_all_supports(seed, names):
    S, k = matrix(seed, KINDS[seed % len(KINDS)])
    k, given = constraints(seed, len(S), k, names)
    best = optimum(S, k, **given)
    start = {"support": given.get("include") or [next(i for i in range(len(S)) if i not in given.get("exclude", ()))]}
    proof = prove(S, k, **start, **given)
    assert proof.lower == pytest.approx(best, rel=1e-9)
    assert proof.proved
    for limit in ({"node_limit": 0}, {"node_limit": 1}, {"time_limit": 1e-3}):
        cut_off = prove(S, k, **start, **given, **limit)
        assert cut_off.lower <= best * (1 + 1e-9)
        assert cut_off.upper >= best * (1 - 1e-14)
        assert verify(S, cut_off)
    assert proof.upper >= best * (1 - 1e-14)
    assert verify(S, proof)


@pytest.mark.parametrize("names", CONSTRAINTS)
def test_against_all_supports(names, monkeypatch):
    monkeypatch.setattr(branch_and_bound, "ENUMERATED", 0)
    for seed in range(5):
        check_against_all_supports(seed, names)


def test_against_all_supports_with_enumeration():
    for seed in range(10):
        check_against_all_supports(seed, "include exclude")


@pytest.mark.soak
@pytest.mark.parametrize("names", CONSTRAINTS)
def test_against_all_supports_often(names, enumerated):
    for seed in range(300):
        check_against_all_supports(seed, names)


def test_pitprops_in_all_sizes(enumerated):
    S = datasets.load_pitprops().correlation
    begin = time.process_time()
    proofs = [prove(S, k, support=range(k)) for k in range(1, 14)]
    assert time.process_time() - begin < 5
    assert all(proof.proved for proof in proofs)
    assert np.allclose([proof.lower for proof in proofs], PITPROPS, rtol=0, atol=1e-6)


def test_wine(enumerated):
    S = np.corrcoef(load_wine().data.T)
    for k, value in WINE.items():
        proof = prove(S, k, support=range(k))
        assert proof.proved
        assert proof.lower == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("k", [5, 10])
def test_digits(k):
    S = np.cov(load_digits().data.T)
    proof = prove(S, k, support=good_support(S, k), node_limit=200)
    assert proof.proved
    assert verify(S, proof)


def test_data_and_their_scatter_have_the_same_answer():
    X = np.random.default_rng(0).standard_normal((20, 60))
    X[:, :8] += np.random.default_rng(1).standard_normal((20, 1))
    of_data, of_scatter = prove(X, 6, support=range(6), data=True), prove(X.T @ X, 6, support=range(6))
    assert of_data.proved
    assert of_scatter.proved
    assert of_data.lower == pytest.approx(of_scatter.lower, rel=1e-10)
    assert of_data.support == of_scatter.support
    assert verify(X, of_data, data=True)
    assert verify(X.T @ X, of_data)


def test_many_features_few_samples():
    """A planted support is proved without the (p, p) matrix; where proof is out of reach the gap is honest."""
    rng = np.random.default_rng(0)
    n, p, k = 100, 3000, 15
    X = rng.standard_normal((n, p))
    X[:, :k] += 1.5 * rng.standard_normal((n, 1))
    prove(X[:, :50], 2, support=[0, 1], data=True)  # imports, compiles
    tracemalloc.start()
    proof = prove(X, k, support=range(k), data=True, time_limit=60)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert proof.proved
    assert peak < 8 * p**2 / 2
    noise = prove(rng.standard_normal((n, p)), k, support=range(k), data=True, time_limit=1)
    assert not noise.proved
    assert 0 < noise.gap < 1


def test_time_limit_is_kept():
    X = np.random.default_rng(3).standard_normal((300, 250))
    prove(X.T @ X, 20, support=range(20), node_limit=0)
    begin = time.monotonic()
    proof = prove(X.T @ X, 20, support=range(20), time_limit=1.0)
    assert time.monotonic() - begin <= 1.2 + 2
    assert not proof.proved
    assert verify(X.T @ X, proof)


def test_time_limit_is_kept_where_one_look_at_all_pairs_takes_longer():
    X = np.random.default_rng(3).standard_normal((300, 12000))
    begin = time.monotonic()
    proof = prove(X, 5, support=range(5), data=True, time_limit=0.2)
    assert time.monotonic() - begin <= 0.24 + 2
    assert proof.upper == pytest.approx(np.sort((X**2).sum(axis=0))[-5:].sum())
    assert verify(X, proof, data=True)


def test_node_limit_is_deterministic():
    X = np.random.default_rng(4).standard_normal((60, 40))
    S = X.T @ X
    once, again = (prove(S, 12, support=range(12), node_limit=3) for _ in range(2))
    assert once.nodes == again.nodes == 3
    assert (once.lower, once.upper, once.support) == (again.lower, again.upper, again.support)
    more = prove(S, 12, support=range(12), node_limit=6)
    assert once.upper >= more.upper >= more.lower >= once.lower


def test_callback_sees_the_gap_close_and_may_stop():
    X = np.random.default_rng(4).standard_normal((60, 40))
    gaps = []
    proof = prove(X.T @ X, 12, support=range(12), callback=lambda state: gaps.append(state.residual) or len(gaps) == 4)
    assert len(gaps) == 4
    assert gaps == sorted(gaps, reverse=True)
    assert proof.gap == pytest.approx(gaps[-1], rel=1e-9)


def test_zero_matrix_and_one_feature():
    assert prove(np.zeros((3, 3)), 2, support=[0, 1]).gap == 0
    proof = prove(np.array([[4.0]]), 1, support=[0])
    assert (proof.lower, proof.vector.tolist()) == (4.0, [1.0])


def test_scale_does_not_matter():
    S, k = matrix(0, "full")
    plain = prove(S, k, support=range(k))
    for unit in (1e-250, 1e250):
        scaled = prove(S * unit, k, support=range(k))
        assert scaled.proved
        assert scaled.support == plain.support
        assert scaled.lower / unit == pytest.approx(plain.lower, rel=1e-9)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nonzeros": 0}, "nonzeros must be between 1 and 4"),
        ({"nonzeros": 5}, "nonzeros must be between 1 and 4"),
        ({"nonzeros": 1, "include": [0, 1]}, "between 2 and 4"),
        ({"nonzeros": 2, "include": [0], "exclude": [0]}, "forced in and out"),
        ({"nonzeros": 2, "exclude": [0, 1, 2, 3]}, "leaves no feature"),
        ({"nonzeros": 2, "groups": [0, 1]}, "one label per feature"),
        ({"nonzeros": 2, "S": np.ones((3, 4))}, "must be square"),
        ({"nonzeros": 2, "S": np.full((4, 4), np.nan)}, "not finite"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        prove(**({"S": np.eye(4), "support": [0]} | given))


# Bounds


def test_compiled_row_sums_equal_their_twin():
    compiled = loops("cardinality_nodes")
    rng = np.random.default_rng(0)
    for _ in range(200):
        m = int(rng.integers(1, 9))
        forced = int(rng.integers(0, m + 1))
        count = int(rng.integers(0, m - forced + 1))
        Q = rng.standard_normal((m, m)).round(int(rng.integers(0, 5)))  # with ties
        mu = 10.0 ** rng.uniform(-4, 0)
        sums, choices = compiled.row_sums(Q, forced, count, mu)
        sums_twin, choices_twin = cardinality_bounds.row_sums_twin(Q, forced, count, mu)
        assert np.allclose(sums, sums_twin, rtol=0, atol=1e-9)
        assert np.allclose(choices, choices_twin, rtol=0, atol=1e-6)
        exact = cardinality_bounds.row_sums(Q, forced, count)
        assert (sums <= exact + 1e-9).all()
        assert (exact - sums <= 0.5 * mu * m + 1e-9).all()


def test_without_compiled_loops(monkeypatch):
    S, k = datasets.load_pitprops().correlation, 7
    monkeypatch.setattr(branch_and_bound, "ENUMERATED", 0)
    compiled = prove(S, k, support=range(k))
    monkeypatch.setattr(cardinality_bounds, "loops", lambda name: None)
    plain = prove(S, k, support=range(k))
    assert plain.proved
    assert plain.support == compiled.support
    assert plain.leaves.points, "no dual point was needed: the compiled loops were not tried"


def small_block(groups=None, nonnegative=False):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((12, 7))
    S = X.T @ X / 12
    owner = None if groups is None else np.asarray(groups)
    raised = S < 0 if nonnegative else None
    return cardinality_bounds.Block(S, cardinality_bounds.directions(S, owner), owner, raised, 1, 2)


def random_dual(block, rng):
    weights = rng.standard_normal((block.size, block.size))
    np.fill_diagonal(weights, 0.0)
    return cardinality_bounds.Dual(weights, rng.standard_normal(block.size))


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("groups", [None, [0, 0, 1, 2, 3, 3, 3]])
def test_dual_bound_holds_at_any_point(groups, nonnegative):
    block = small_block(groups, nonnegative and groups is None)
    labels = list(range(7)) if groups is None else groups
    best = optimum(block.S, 3, include=[0], nonnegative=nonnegative, groups=labels)
    rng = np.random.default_rng(6)
    bounds = [cardinality_bounds.dual_bound(block, random_dual(block, rng)) for _ in range(300)]
    assert min(bounds) >= best
    start = cardinality_bounds.Dual(0.5 * np.ones((block.size, block.size)), np.zeros(block.size))
    np.fill_diagonal(start.weights, 0.0)
    improved = cardinality_bounds.improve(block, start, -np.inf, mu=0.1, steps=50)
    assert best <= improved.bound < cardinality_bounds.dual_bound(block, start)


def test_dual_bound_contains_the_simple_ones():
    """Leading eigenvalue, row sums of Gershgorin, and the l1 dual lambda_max(S + V) + k max |V|, V = -rho sign(S)."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((12, 7))
    S, k, rho = X.T @ X, 3, 2.0
    block = cardinality_bounds.Block(S, cardinality_bounds.directions(S, None), None, None, 0, k)
    off = np.abs(S) * (1 - np.eye(7))
    at = [cardinality_bounds.Dual(np.sqrt(A), np.zeros(7)) for A in (0 * off, off, rho * (1 - np.eye(7)))]
    largest, rows, l1 = (cardinality_bounds.dual_bound(block, dual) for dual in at)
    assert largest == pytest.approx(np.linalg.eigvalsh(S)[-1])
    assert rows == pytest.approx((S.diagonal() + np.sort(off)[:, -(k - 1) :].sum(axis=1)).max())
    V = -rho * np.sign(S)
    assert l1 == pytest.approx(np.linalg.eigvalsh(S + V)[-1] + k * rho)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 2, 3, 3, 3]])
def test_gradient_of_the_smoothed_bound(groups):
    block = small_block(groups)
    rng = np.random.default_rng(8)
    dual, way = random_dual(block, rng), random_dual(block, rng)
    step = 1e-6

    def along(t):
        moved = cardinality_bounds.Dual(dual.weights + t * way.weights, dual.shift + t * way.shift)
        return cardinality_bounds.smoothed(block, moved, 0.3)

    slope = along(0.0)
    expected = (along(step).value - along(-step).value) / (2 * step)
    assert np.sum(slope.weights * way.weights) + slope.shift @ way.shift == pytest.approx(expected, rel=1e-5)
    assert slope.share.sum() == pytest.approx(1)
    assert slope.chosen.sum() == pytest.approx(3)


def test_best_nonnegative_vector():
    rng = np.random.default_rng(9)
    S = rng.standard_normal((6, 6))
    S = S + S.T
    value, v = nonnegative_value(S)
    assert v @ S @ v == pytest.approx(value)
    assert (v >= 0).all()
    tried = np.abs(rng.standard_normal((6, 500))) * (rng.random((6, 500)) < 0.6)
    tried = tried[:, tried.any(axis=0)]
    for _ in range(3000):  # each ascends to a stationary point of its own
        tried = np.maximum(S @ tried + 10 * tried, 0)
        tried /= np.linalg.norm(tried, axis=0)
    assert np.einsum("ij,ik,kj->j", tried, S, tried).max() == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_negative_covariances_can_only_lower_what_a_nonnegative_vector_has(unit):
    S = np.array([[2.0, -1.0, 0.0], [-1.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    assert nonnegative_bound(S * unit) == pytest.approx(2.0 * unit, rel=1e-12)
    assert nonnegative_bound(np.abs(S) * unit) == pytest.approx(np.linalg.eigvalsh(np.abs(S))[-1] * unit, rel=1e-12)
    at_odds = np.array([[1.0, 1.0, -1.0], [1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]])  # raised it would have 1 + sqrt(2)
    assert nonnegative_bound(at_odds * unit) == pytest.approx(2.0 * unit, rel=1e-12)


def test_the_smoothing_of_a_bound_falls_until_the_target_is_reached():
    """From a smooth start a single stage ends at 2.05; the least bound is 1.858."""
    block = small_block()
    start = cardinality_bounds.Dual(0.5 * (1 - np.eye(block.size)), np.zeros(block.size))
    for mu in (3.0, 1.0, 0.1):
        assert cardinality_bounds.improve(block, start, 1.87, mu=mu, steps=2000).bound <= 1.87


def test_a_tree_drops_points_that_its_leaves_have_left(monkeypatch):
    monkeypatch.setattr(branch_and_bound, "POINT_BYTES", 1)
    tree, block = branch_and_bound._Tree(), small_block()
    for _ in range(4):
        number = tree.keep(np.arange(block.size), random_dual(block, np.random.default_rng(0)))
        tree.set(0, branch_and_bound.Kind.DUAL, 1.0, number)
    assert set(tree.points) == {2, 3}  # that of the root until now, and the new one


def test_points_that_no_leaf_uses_are_let_go_of(monkeypatch):
    X = np.random.default_rng(0).standard_normal((15, 30))
    S = X.T @ X
    whole = prove(S, 6, support=range(6))
    monkeypatch.setattr(branch_and_bound, "POINT_BYTES", 1)
    found = prove(S, 6, support=range(6))
    assert verify(S, found)
    assert found.upper == pytest.approx(whole.upper, rel=1e-12)
    assert len(found.leaves.points) == len(whole.leaves.points)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_directions_have_length_one_between_units_and_nothing_inside_them(unit):
    owner = np.array([0, 0, 1, 2, 3, 3, 3])
    S = small_block().S * unit
    S[:2, 3] = S[3, :2] = 1e-12 * unit  # that of a block beside which it is rounding
    D = cardinality_bounds.directions(S, owner)
    for g in range(4):
        for h in range(4):
            block, of_S = (matrix[np.ix_(owner == g, owner == h)] for matrix in (D, S))
            if g == h or {g, h} == {0, 2}:
                assert not block.any()
            else:
                assert np.linalg.norm(block) == pytest.approx(1.0, rel=1e-12)
                np.testing.assert_allclose(block, of_S / unit / np.linalg.norm(of_S / unit), rtol=1e-12)
    signs = cardinality_bounds.directions(S, None)
    assert (signs == np.where(S < 0, -1.0, 1.0) - np.eye(7)).all()
