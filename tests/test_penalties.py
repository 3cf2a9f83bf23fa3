"""Penalties: each prox against its definition, by optimality conditions and by a generic solver."""

import dataclasses
import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from princomp import PCA, _compiled
from princomp._compiled import group_prox
from princomp._compiled.group_layout import Point, lay_out
from princomp.penalties import (
    L0,
    L1,
    Box,
    ColumnL1,
    ElasticNet,
    ElasticNetBall,
    GroupL2,
    Groups,
    L1Ball,
    L2Ball,
    Lp,
    NonNegative,
    OverlappingGroups,
    RowNorms,
    Sphere,
    Tree,
    Zero,
    as_groups,
    as_penalty,
    column_values,
    interior,
    is_convex,
)

P = 9
DISJOINT = [[0, 3, 4], [1], [2, 8], [5, 6]]  # 7 is in no group
NESTED = [[0, 1, 2, 3, 4, 5], [0, 1, 2], [1, 2], [4], [6, 7], [7], [7]]
OVERLAPPING = [[0, 1, 2], [1, 2, 3, 4], [4, 5, 6], [6, 7], [0, 7], [2, 5, 7]]

PENALTIES = {
    "zero": Zero(),
    "l1": L1(0.7),
    "groups": Groups(0.7, DISJOINT),
    "groups, weights": Groups(0.7, DISJOINT, [0.5, 2.0, 0.0, 1.0]),
    "tree": Tree(0.4, NESTED),
    "tree, weights": Tree(0.4, NESTED, [0.5, 2.0, 1.0, 1.0, 0.3, 0.0, 1.0]),
    "overlapping": OverlappingGroups(0.3, OVERLAPPING),
    "overlapping, weights": OverlappingGroups(0.4, OVERLAPPING, [1.0, 0.5, 2.0, 1.0, 0.0, 1.0]),
}
PENALTIES |= {f"{name}, not negative": NonNegative(penalty) for name, penalty in PENALTIES.items()}
any_penalty = pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
seeds = st.integers(0, 2**32 - 1)


def draw(seed, *shape):
    """Vectors of various sizes, some entries zero."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * 10 ** rng.uniform(-1, 1) * (rng.random(shape) < 0.8)


def objective(penalty, z, w, step):
    return 0.5 * ((z - w) ** 2).sum() + step * penalty.value(z)


# --- every penalty ------------------------------------------------------------------------------


@any_penalty
@settings(deadline=None, max_examples=30)
@given(seed=seeds, step=st.floats(0.05, 5))
def test_the_prox_satisfies_the_subgradient_inequality(penalty, seed, step):
    """(w - z) / step is a subgradient of h at z = prox(w): h(y) >= h(z) + (w - z)'(y - z) / step for all y."""
    w = draw(seed, P)
    z = penalty.prox(w, step)
    rng = np.random.default_rng(seed + 1)
    slack = 1e-8 * (1 + np.linalg.norm(w)) ** 2
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(10):
            y = z + size * rng.normal(size=P) * (rng.random(P) < 0.5)
            y = np.abs(y) if isinstance(penalty, NonNegative) else y
            assert step * (penalty.value(y) - penalty.value(z)) >= (w - z) @ (y - z) - slack * size
    # Conjugacy (Moreau): h is positively homogeneous, so h(z) = subgradient'z exactly.
    assert step * penalty.value(z) == pytest.approx((w - z) @ z, abs=slack)


@any_penalty
@settings(deadline=None, max_examples=30)
@given(seed=seeds, step=st.floats(0.05, 5))
def test_the_prox_does_not_expand(penalty, seed, step):
    a, b = draw(seed, P), draw(seed + 1, P)
    distance = np.linalg.norm(penalty.prox(a, step) - penalty.prox(b, step))
    assert distance <= np.linalg.norm(a - b) * (1 + 1e-8) + 1e-8 * np.linalg.norm(a)


@any_penalty
def test_columns_are_penalised_one_by_one_each_with_its_step(penalty):
    W = draw(0, P, 4)
    steps = np.array([0.3, 1.0, 0.01, 2.0])
    before = W.copy()
    Z = penalty.prox(W, steps)
    assert Z.shape == W.shape
    for w, z, step in zip(W.T, Z.T, steps):
        np.testing.assert_allclose(z, penalty.prox(w, float(step)), atol=1e-9)
    assert (before == W).all()
    apart = sum(penalty.value(z) for z in Z.T)
    assert penalty.value(Z) == pytest.approx(apart, rel=1e-12)


@any_penalty
def test_times_scales_value_and_prox(penalty):
    w = np.abs(draw(1, P))
    assert penalty.times(3.0).value(w) == pytest.approx(3 * penalty.value(w), rel=1e-12)
    np.testing.assert_allclose(penalty.times(3.0).prox(w, 0.2), penalty.prox(w, 0.6000000000000001), atol=1e-9)
    assert type(penalty.times(2.0)) is type(penalty)


@any_penalty
def test_zero_stays_and_nothing_else_is_needed(penalty):
    assert not penalty.prox(np.zeros(P), 1.0).any()
    assert penalty.value(np.zeros(P)) == 0
    assert hash(penalty) == hash(dataclasses.replace(penalty))
    assert penalty == dataclasses.replace(penalty)


@any_penalty
def test_scales_large_and_small(penalty):
    w = draw(2, P)
    for scale in (1e100, 1e-100):
        np.testing.assert_allclose(penalty.prox(scale * w, scale) / scale, penalty.prox(w, 1.0), atol=1e-9)


@any_penalty
def test_single_precision_stays(penalty):
    w = draw(3, P).astype(np.float32)
    z = penalty.prox(w, 0.5)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z, penalty.prox(w.astype(float), 0.5), atol=1e-5)


# --- whole matrices -----------------------------------------------------------------------------


@pytest.mark.parametrize("step", [0.1, 1.0])
def test_rows_of_a_matrix_are_groups_of_its_entries(step):
    W, rows = draw(0, P, 3), RowNorms(0.7)
    groups = Groups(0.7, np.arange(3 * P).reshape(P, 3), np.ones(P))
    assert rows.value(W) == pytest.approx(groups.value(W.ravel()), rel=1e-14)
    np.testing.assert_allclose(rows.prox(W, step), groups.prox(W.ravel(), step).reshape(P, 3), rtol=1e-14)
    assert rows.times(3.0) == RowNorms(0.7 * 3.0)


@pytest.mark.parametrize("step", [0.1, np.array([0.3, 1.0, 0.01])], ids=["one step", "a step for each column"])
def test_columns_of_a_matrix_have_weights_of_their_own(step):
    W, alpha = draw(0, P, 3), np.array([0.7, 0.0, 2.0])
    columns = ColumnL1(alpha)
    apart = [L1(a).prox(w, s) for a, w, s in zip(alpha, W.T, np.broadcast_to(step, 3))]
    assert (columns.prox(W, step) == np.array(apart).T).all()
    assert columns.value(W) == pytest.approx(sum(L1(a).value(w) for a, w in zip(alpha, W.T)), rel=1e-14)
    assert columns.times(3.0).value(W) == pytest.approx(3 * columns.value(W), rel=1e-14)


# --- against a generic solver -------------------------------------------------------------------


def generic_prox(penalty, w, step):
    """The dual problem, min |w - sum u_g|^2 with |u_g| <= step weight_g, by SLSQP."""
    from scipy.optimize import minimize

    bounds = [step * penalty.alpha * weight for weight in penalty.weights]
    sizes = np.cumsum([0] + [len(group) for group in penalty.groups])

    def rest(u):
        z = w.copy()
        for group, first, last in zip(penalty.groups, sizes, sizes[1:]):
            z[list(group)] -= u[first:last]
        return z

    flat = np.concatenate([np.array(group) for group in penalty.groups])
    answer = minimize(
        lambda u: 0.5 * rest(u) @ rest(u),
        np.zeros(sizes[-1]),
        jac=lambda u: -rest(u)[flat],
        constraints=[
            {
                "type": "ineq",
                "fun": lambda u, a=a, b=b, bound=bound: bound**2 - u[a:b] @ u[a:b],
                "jac": lambda u, a=a, b=b: np.concatenate([np.zeros(a), -2 * u[a:b], np.zeros(sizes[-1] - b)]),
            }
            for a, b, bound in zip(sizes, sizes[1:], bounds)
        ],
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-16},
    )
    return rest(answer.x)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["groups", "tree", "overlapping", "overlapping, weights"])
def test_a_generic_solver_agrees(name, seed):
    penalty, w = PENALTIES[name], draw(seed, P)
    penalty = dataclasses.replace(penalty, weights=[max(weight, 0.1) for weight in penalty.weights])
    step = [0.1, 0.5, 1.0][seed % 3] * np.abs(w).max()
    z = penalty.prox(w, step)
    expected = generic_prox(penalty, w, step)
    assert objective(penalty, z, w, step) <= objective(penalty, expected, w, step) + 1e-12 * (w @ w)
    np.testing.assert_allclose(z, expected, atol=1e-6 * np.linalg.norm(w))


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_is_also_a_case_of_overlapping_groups(seed):
    w, tree = draw(seed, P, 3), PENALTIES["tree"]
    overlapping = OverlappingGroups(tree.alpha, tree.groups, tree.weights)
    np.testing.assert_allclose(tree.prox(w, 0.8), overlapping.prox(w, 0.8), atol=1e-9 * np.linalg.norm(w))


def windows(side, of=3):
    """All squares of ``of`` x ``of`` pixels in an image."""
    corners = [(i, j) for i in range(side - of + 1) for j in range(side - of + 1)]
    return [[side * (i + a) + j + b for a in range(of) for b in range(of)] for i, j in corners]


def chain(p, of=5):
    return [list(range(i, i + of)) for i in range(p - of + 1)]


SHAPES = {"windows": (windows(8), 64), "chain": (chain(60), 60), "halves": ([*chain(40, 30), *chain(40, 11)], 40)}


@pytest.mark.parametrize("scale", [0.3, 0.8])
@pytest.mark.parametrize("groups", [windows(5), chain(15)], ids=["windows", "chain"])
def test_a_generic_solver_agrees_where_every_feature_is_in_many_groups(groups, scale):
    p = 1 + max(map(max, groups))
    penalty, w = OverlappingGroups(scale, groups), draw(5, p)
    step = 0.2 * np.abs(w).max()
    z, expected = penalty.prox(w, step), generic_prox(penalty, w, step)
    assert z.any()
    np.testing.assert_allclose(z, expected, atol=1e-6 * np.linalg.norm(w))


@pytest.fixture(scope="module")
def plain():
    """The loops as they are where numba does not work."""

    def broken(function):
        raise ImportError("numba does not work")

    spec = importlib.util.find_spec("princomp._compiled.group_prox")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_compiled, "compiled", broken)
        spec.loader.exec_module(module)
    assert hasattr(group_prox.advance, "py_func")
    assert not hasattr(module.advance, "py_func")
    return module


@pytest.mark.parametrize("scale", [0.001, 0.02, 0.1, 0.2, 0.3])
@pytest.mark.parametrize("shape", SHAPES)
def test_loops_compiled_or_not_agree_and_the_gap_is_small(shape, scale, plain, monkeypatch):
    """Hard cases: many groups over each feature, and some that are just about to vanish."""
    groups, p = SHAPES[shape]
    w, penalty = np.random.default_rng(int(100 * scale)).normal(size=p), OverlappingGroups(scale, groups)
    layout, weights, _ = penalty._layout
    monkeypatch.setattr(interior, "MOST_STEPS", 40)  # it is quick
    z, error = interior.solve(layout, w, scale * weights)
    assert error <= 1e-10
    assert (penalty.prox(w, 1.0) == z).all()
    zero = np.flatnonzero(z == 0)  # a union of groups
    assert set(zero) == set().union(*(group for group in groups if set(group) <= set(zero)))
    monkeypatch.setattr(_compiled, "group_prox", plain)
    np.testing.assert_allclose(penalty.prox(w, 1.0), z, atol=1e-10 * np.linalg.norm(w))


@pytest.mark.parametrize("seed", range(3))
def test_large_images_where_noise_is_about_to_vanish(seed):
    """The hardest of all: on white noise, near the weight at which most groups vanish at once."""
    w, penalty = np.random.default_rng(seed).normal(size=28 * 28), OverlappingGroups(0.2, windows(28))
    layout, weights, _ = penalty._layout
    z, error = interior.solve(layout, w, 0.2 * weights)
    assert error <= 1e-5
    assert penalty.value(z) == pytest.approx(float((w - z) @ z), rel=1e-5)  # w - z is a subgradient
    assert objective(penalty, z, w, 1.0) <= min(objective(penalty, s * z, w, 1.0) for s in (0.0, 0.99, 1.01))


def test_steps_are_the_same_compiled_or_not(plain):
    groups, p = SHAPES["windows"]
    layout, rng = lay_out(groups, p), np.random.default_rng(0)
    w, bounds, live = rng.normal(size=p), np.full(len(groups), 0.9), np.ones(len(groups), dtype=bool)
    live[5], w[groups[5]] = False, 0.0  # a group that takes no part
    before = interior._start(layout, w, bounds, live)
    ends = []
    for tools in (group_prox, plain):
        point = Point(*(array.copy() for array in before))
        assert not tools.advance(layout, w, bounds, live, point, 1e-15, 4)
        ends.append((*point, *tools.answer(layout, w, bounds, live, point.parts)))
    for ours, twin in zip(*ends):
        np.testing.assert_allclose(ours, twin, atol=1e-11)
    assert (ends[0][2][live] > 0).all()
    assert not ends[0][0][layout.owner == 5].any()


def test_the_gap_is_that_of_its_definition():
    """After one sweep from anywhere: with groups on their bounds, and inside them although not zero."""
    (groups, p), rng = SHAPES["windows"], np.random.default_rng(0)
    layout, w, bounds = lay_out(groups, p), rng.normal(size=p), rng.uniform(0.5, 4, len(groups))
    parts = 0.3 * rng.normal(size=len(layout.indices))
    z, outside, gap = group_prox.answer(layout, w, bounds, np.ones(len(groups), dtype=bool), parts)
    np.testing.assert_allclose(w - np.bincount(layout.indices, parts), z, atol=1e-14)
    norms = np.array([np.linalg.norm(z[group]) for group in groups])
    assert outside.any()
    assert (norms[~outside] > 0).any()
    assert gap == pytest.approx(bounds @ norms - parts @ z[layout.indices], rel=1e-12)


# --- what zeros look like -----------------------------------------------------------------------


def test_patterns_of_zeros():
    w = np.array([1.0, 1, 1, 1, 0.1, 0.1, 1, 1, 1])
    assert np.flatnonzero(Groups(0.5, [[3, 4, 5], [0], [1, 2]]).prox(w, 1.0)).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert np.flatnonzero(Groups(0.7, [[3, 4, 5], [0], [1, 2]]).prox(w, 1.0)).tolist() == [0, 1, 2, 6, 7, 8]
    tree = Tree(1.0, [[0, 1, 2], [1, 2], [2]], [0.1, 2.0, 0.1]).prox(w[:3], 1.0)
    assert np.flatnonzero(tree).tolist() == [0]
    assert np.flatnonzero(OverlappingGroups(0.75, [[3, 4, 5], [4, 5, 6]], [1, 1]).prox(w, 1.0)).size == 9
    assert np.flatnonzero(OverlappingGroups(1.2, [[3, 4, 5], [4, 5, 6]], [1, 1]).prox(w, 1.0)).tolist() == [
        *range(3),
        7,
        8,
    ]


def test_features_in_no_group_stay_as_they_are():
    w = draw(4, P)
    for penalty in (Groups(0.7, [[4, 5]]), Tree(0.7, [[4, 5], [5]]), OverlappingGroups(0.7, [[4, 5], [5, 6]])):
        others = np.setdiff1d(np.arange(P), np.concatenate(penalty.groups))
        assert (penalty.prox(w, 2.0)[others] == w[others]).all()


def test_not_negative():
    penalty = NonNegative()
    assert penalty.prox(np.array([1.0, -2.0]), 1.0).tolist() == [1.0, 0.0]
    assert penalty.value(np.array([1.0, -2.0])) == np.inf
    assert penalty.value(np.array([1.0, 0.0])) == 0


# --- choosing -----------------------------------------------------------------------------------


def test_the_cheapest_right_class():
    assert as_penalty(0.5) == L1(0.5)
    assert as_penalty(0.5, nonnegative=True) == NonNegative(L1(0.5))
    assert as_penalty(0.5, DISJOINT) == Groups(0.5, DISJOINT)
    assert as_penalty(0.5, NESTED) == Tree(0.5, NESTED)
    assert as_penalty(0.5, OVERLAPPING, nonnegative=True) == NonNegative(OverlappingGroups(0.5, OVERLAPPING))
    assert as_penalty(0.5, np.array([3, 1, 3, -1])) == Groups(0.5, [[3], [1], [0, 2]])
    assert Groups(1.0, [[0, 1, 2, 3], [4]]).weights == (2.0, 1.0)


@settings(deadline=None, max_examples=100)
@given(groups=st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=5))
def test_nested_is_what_it_says(groups):
    meets = [(a, b) for i, a in enumerate(groups) for b in groups[:i] if a & b]
    kind = OverlappingGroups if any(a - b and b - a for a, b in meets) else Tree if meets else Groups
    assert type(as_penalty(1.0, groups)) is kind


@pytest.mark.parametrize("groups", [[], [[]], [[0], []], [[0, 0]], [[-1]], [[0.5]], ["ab"], [1.5, 2.0], [[0], 1]])
def test_groups_that_are_none_are_refused(groups):
    with pytest.raises(ValueError, match=r"groups must|Group \d"):
        as_groups(groups)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="Tree"):
        Groups(1.0, NESTED)
    with pytest.raises(ValueError, match="OverlappingGroups"):
        Tree(1.0, OVERLAPPING)
    with pytest.raises(ValueError, match="weights must hold 4"):
        Groups(1.0, DISJOINT, [1.0])
    with pytest.raises(ValueError, match="weights must hold 4"):
        Groups(1.0, DISJOINT, [1.0, -1, 1, 1])
    with pytest.raises(ValueError, match="alpha"):
        Groups(-1.0, DISJOINT)
    with pytest.raises(ValueError, match="feature 8, but there are only 3"):
        Groups(1.0, DISJOINT).prox(np.ones(3), 1.0)


# --- penalties that are not homogeneous, and sets, against all points of a grid -----------------

ENTRIES = {
    "zero": Zero(),
    "l1": L1(0.7),
    "l0": L0(0.7),
    "l0, weight of 0": L0(0.0),
    "lp": Lp(0.7, 0.5),
    "lp, p near 0": Lp(0.7, 0.01),
    "lp, p near 1": Lp(0.7, 0.99),
    "lp, weight of 0": Lp(0.0, 0.5),
    "elastic net": ElasticNet(0.7, 0.4),
    "ridge": ElasticNet(0.0, 0.4),
    "box": Box(-0.5, 1.5),
    "box without 0": Box(0.75, 1.5),
    "box, one bound": Box(-0.5, np.inf),
}
SETS = {
    "ball": L2Ball(1.5),
    "l1 ball": L1Ball(1.5),
    "elastic net ball": ElasticNetBall(0.6, 1.5),
    "elastic net ball, mostly l1": ElasticNetBall(6.0, 1.5),
    "elastic net ball, no l1": ElasticNetBall(0.0, 1.5),
    "sphere": Sphere(1.5),
    "box": Box(-0.5, 1.5),
}
PAIRS = {"groups": Groups(0.7, [[0, 1]]), "tree": Tree(0.7, [[0, 1], [1]]), **SETS}
EVERY = ENTRIES | SETS
EVERY |= {f"{name}, not negative": NonNegative(penalty) for name, penalty in EVERY.items()}
every_penalty = pytest.mark.parametrize("penalty", EVERY.values(), ids=EVERY)
GRID = np.linspace(-4, 4, 8001)
POINTS = [-3.0, -1.62, -1.2, -0.4, 0.0, 1e-3, 0.3, 1.0, 1.18, 1.19, 1.2, 1.7, 3.9]


@pytest.mark.parametrize("step", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("name", [name for name in EVERY if name.split(",")[0] in ENTRIES])
def test_no_point_of_a_line_is_better_than_the_prox(name, step):
    penalty = EVERY[name]
    heights = column_values(penalty, GRID[None])
    for w in POINTS:
        z = penalty.prox(np.array([w]), step)
        best = (0.5 * (GRID - w) ** 2 + step * heights).min()
        assert objective(penalty, z, np.array([w]), step) <= best + 1e-12
        nearest = GRID[np.argmin(0.5 * (GRID - w) ** 2 + step * heights)]  # and it is the same point
        assert abs(z[0] - nearest) <= 2e-3 or objective(penalty, z, w, step) >= best - 1e-6


@pytest.mark.parametrize("nonnegative", [False, True], ids=["", "not negative"])
@pytest.mark.parametrize("name", PAIRS)
def test_no_point_of_a_plane_is_better_than_the_prox(name, nonnegative):
    """Points of the boundary are drawn as well as a grid: a sphere hardly meets it."""
    penalty = NonNegative(PAIRS[name]) if nonnegative else PAIRS[name]
    square = np.stack(np.meshgrid(np.linspace(-2, 2, 401), np.linspace(-2, 2, 401))).reshape(2, -1)
    angles = np.linspace(0, 2 * np.pi, 4001)
    rim = np.stack([np.cos(angles), np.sin(angles)])
    rim = np.where(np.abs(rim) < 1e-15, 0.0, rim)
    rim /= np.linalg.norm(rim, axis=0)
    points = np.concatenate([square, 1.5 * rim], axis=1)
    heights = column_values(penalty, points)
    assert np.isfinite(heights).any()
    rng = np.random.default_rng(0)
    for w in [*rng.normal(0, 1.5, size=(25, 2)), [0.0, 0.0], [-1.0, -0.3], [-1.0, -1.0], [0.0, -1.0], [1.0, 1.0]]:
        w = np.array(w)
        z = penalty.prox(w, 0.8)
        assert penalty.value(z) < np.inf
        best = (0.5 * ((points - w[:, None]) ** 2).sum(axis=0) + 0.8 * heights).min()
        assert objective(penalty, z, w, 0.8) <= best + 1e-9


@every_penalty
def test_columns_with_steps_of_their_own_values_and_times(penalty):
    W, steps = draw(0, P, 5), np.array([0.3, 1.0, 0.01, 2.0, 0.5])
    W[:, 4], before = 0.0, W.copy()
    W[:, 4] = 0.0
    Z = penalty.prox(W, steps)
    for w, z, step in zip(W.T, Z.T, steps):
        np.testing.assert_allclose(z, penalty.prox(w, float(step)), rtol=1e-12, atol=1e-14)
    assert (before[:, :4] == W[:, :4]).all()
    apart = [penalty.value(z) for z in Z.T]
    np.testing.assert_allclose(column_values(penalty, Z), apart, rtol=1e-12)
    assert column_values(penalty, Z[:, 0]).shape == ()
    assert penalty.value(Z) == pytest.approx(sum(apart), rel=1e-12)
    assert np.isfinite(apart).all()
    three = penalty.times(3.0)
    assert three.value(Z) == pytest.approx(3 * penalty.value(Z), rel=1e-12)
    np.testing.assert_allclose(three.prox(W, 0.2), penalty.prox(W, 0.6000000000000001), rtol=1e-12, atol=1e-12)


@every_penalty
def test_single_precision_stays_and_is_inside(penalty):
    W = draw(3, P, 40).astype(np.float32)
    Z = penalty.prox(W, 0.5)
    assert Z.dtype == np.float32
    assert penalty.value(Z) < np.inf
    close = np.isclose(Z, penalty.prox(W.astype(float), 0.5), atol=1e-4)
    assert close.all()


SOLID = {name: penalty for name, penalty in EVERY.items() if name.split(",")[0] in SETS}


@pytest.mark.parametrize("penalty", SOLID.values(), ids=SOLID)
def test_points_of_a_set_stay_and_a_second_projection_changes_nothing(penalty):
    Z = penalty.prox(draw(5, P, 40), 1.0)
    np.testing.assert_allclose(penalty.prox(Z, 1.0), Z, rtol=1e-12, atol=1e-13)
    assert (penalty.times(7.0).value(Z), penalty.value(-3.0 - np.abs(Z))) == (0.0, np.inf)
    if "sphere" not in str(penalty).lower():
        inside = 0.5 * np.abs(Z)
        assert (penalty.prox(inside, 3.0) == inside).all()


@pytest.mark.parametrize("p", [2, 3, 30, 1000])
@pytest.mark.parametrize("gamma", [0.0, 1e-6, 0.3, 5.0, 1e6])
def test_the_elastic_net_ball_satisfies_the_conditions_of_the_nearest_point(p, gamma):
    """w - z = l (2 z + gamma sign(z)) where z is not zero, |w| <= l gamma where it is, with l >= 0."""
    for scale in (1e-3, 1.0, 1e3):
        w = scale * draw(p, p)
        z = ElasticNetBall(gamma, 2.0).prox(w, 1.0)
        if (w * w).sum() + gamma * np.abs(w).sum() <= 2.0:
            assert (z == w).all()
            continue
        assert (z * z).sum() + gamma * np.abs(z).sum() == pytest.approx(2.0, rel=1e-9)
        some = z != 0
        price = (w - z)[some] / (2 * z + gamma * np.sign(z))[some]
        np.testing.assert_allclose(price, price.mean(), rtol=1e-6)
        assert price.mean() >= 0
        assert (np.abs(w[~some]) <= price.mean() * gamma * (1 + 1e-9)).all()


@pytest.mark.parametrize("scale", [1e-200, 1e-100, 1e100, 1e200])
def test_balls_of_vectors_large_and_small(scale):
    w = draw(6, P)
    unit = w / np.linalg.norm(w)
    np.testing.assert_allclose(Sphere(2.0).prox(scale * w, 1.0), 2 * unit, rtol=1e-12)
    np.testing.assert_allclose(L2Ball(scale).prox(3 * scale * unit, 1.0) / scale, unit, rtol=1e-12)
    np.testing.assert_allclose(L1Ball(scale).prox(scale * w, 1.0) / scale, L1Ball(1.0).prox(w, 1.0), atol=1e-12)
    np.testing.assert_allclose(Lp(1.0, 0.5).prox(scale * w, scale**1.5) / scale, Lp(1.0, 0.5).prox(w, 1.0), rtol=1e-9)


def test_thresholds_are_where_both_minima_are_equal():
    assert L0(1.0).prox(np.array([1.2, 1.42]), 1.0).tolist() == [0.0, 1.42]  # the root of 2, not 1
    for p in (0.1, 0.5, 0.9):
        threshold = (2 - p) / (2 - 2 * p) * (2 - 2 * p) ** (1 / (2 - p))
        below, above = Lp(1.0, p).prox(threshold * np.array([1 - 1e-9, 1 + 1e-9]), 1.0)
        assert below == 0
        assert above == pytest.approx((2 - 2 * p) ** (1 / (2 - p)), rel=1e-4)
    # p = 1/2 has a closed form
    v = np.linspace(1.51, 9, 50)
    closed = 2 / 3 * v * (1 + np.cos(2 / 3 * np.arccos(-(3**1.5) / 4 * v**-1.5)))
    np.testing.assert_allclose(Lp(1.0, 0.5).prox(v, 1.0), closed, rtol=1e-12)


def test_zero_on_a_sphere_is_the_first_axis_and_negative_vectors_the_largest_entry():
    assert Sphere(2.0).prox(np.zeros((3, 2)), 1.0).tolist() == [[2, 2], [0, 0], [0, 0]]
    columns = np.array([[-1.0, -2.0, 0.0], [-0.5, -2.0, -1.0], [-3.0, -2.0, 0.0]])
    assert NonNegative(Sphere(2.0)).prox(columns, 1.0).tolist() == [[0, 2, 2], [2, 0, 0], [0, 0, 0]]
    assert Sphere().prox(np.array([1e-300, -1e-300]), 1.0).tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)])


def test_what_is_no_number_stays_none():
    for penalty in (L0(1.0), Lp(1.0, 0.5), ElasticNet(1.0, 1.0), Box(-1.0, 1.0)):
        assert np.isnan(penalty.prox(np.array([np.nan, 3.0]), 1.0)).tolist() == [True, False]


def test_which_are_convex():
    assert all(
        map(is_convex, [*PENALTIES.values(), ElasticNet(1, 1), Box(0, 1), L2Ball(), L1Ball(), ElasticNetBall(1)])
    )
    assert not any(map(is_convex, [L0(1.0), Lp(1.0), Sphere(), NonNegative(L0(1.0)), object()]))
    assert GroupL2 is Groups


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Lp(1.0, 1.0), "p must be above 0 and below 1"),
        (lambda: Lp(-1.0, 0.5), "alpha must be"),
        (lambda: L0(np.nan), "alpha must be"),
        (lambda: ElasticNet(1.0, -1.0), "l2 must be"),
        (lambda: Box(1.0, 0.0), "low <= high"),
        (lambda: Box(np.nan, 0.0), "low <= high"),
        (lambda: NonNegative(Box(-2.0, -1.0)), "at least 0"),
        (lambda: L2Ball(0.0), "radius must be"),
        (lambda: Sphere(-1.0), "radius must be"),
        (lambda: L1Ball(np.inf), "radius must be"),
        (lambda: ElasticNetBall(-1.0), "gamma must be"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def random_tree(rng, p):
    """Groups by splitting the features again and again, some of them left out, with weights, some zero."""
    groups, parts = [], [rng.permutation(p)]
    while parts:
        part = parts.pop()
        if rng.random() < 0.8:
            groups.append(sorted(part.tolist()))
        if len(part) > 1:
            cut = np.sort(
                rng.choice(np.arange(1, len(part)), size=min(len(part) - 1, rng.integers(1, 3)), replace=False)
            )
            parts += [piece for piece in np.split(part, cut) if rng.random() < 0.9]
    return groups or [[0]]


@pytest.mark.parametrize("seed", range(50))
def test_the_prox_of_random_trees_equals_a_generic_solver(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(3, 12))
    groups = random_tree(rng, p)
    tree = Tree(1.0, groups, rng.uniform(0.05, 1.5, len(groups)))
    w = rng.normal(size=p)
    step = float(rng.uniform(0.1, 0.8))
    z, expected = tree.prox(w, step), generic_prox(tree, w, step)
    assert objective(tree, z, w, step) <= objective(tree, expected, w, step) + 1e-12
    np.testing.assert_allclose(z, expected, atol=2e-6)


@pytest.mark.parametrize("penalty", [L0(0.5), NonNegative(Lp(0.5, 0.3)), ElasticNet(0.1, 2.0), ElasticNetBall(0.5)])
def test_principal_components_refuse_what_does_not_grow_in_proportion(penalty):
    with pytest.raises(ValueError, match="grow in proportion"):
        PCA(1, solver="optimize", penalty=penalty).fit(draw(0, 20, 3))
