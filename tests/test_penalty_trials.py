"""Penalties on trial: each prox against all points of a grid, the tree against a generic convex solver.

What a penalty is worth is written here once more, from its formula: `value` and `prox` are asked of that. A point of a
grid that is better than the prox refutes it, whatever the penalty; so local minima of those that are not convex are
told from global ones.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from princomp.penalties import (
    L0,
    L1,
    Box,
    ElasticNet,
    ElasticNetBall,
    GroupL2,
    Groups,
    L1Ball,
    L2Ball,
    Lp,
    NonNegative,
    Sphere,
    Tree,
)

ROUNDING = 1e-12
STEPS = (0.1, 0.7, 2.5)


def allowed(condition):
    return np.where(condition, 0.0, np.inf)


def l1(z, alpha):
    return alpha * np.abs(z).sum(axis=-1)


def not_negative(z):
    return allowed((z >= 0).all(axis=-1))


def norms(z, groups, weights):
    return sum(weight * np.sqrt((z[..., group] ** 2).sum(axis=-1)) for group, weight in zip(groups, weights))


# --- one entry at a time --------------------------------------------------------------------------

SINGLE = {  # name: the penalty, and h of (..., p) by its formula
    "l1": (L1(0.8), lambda z: l1(z, 0.8)),
    "l0": (L0(0.8), lambda z: 0.8 * np.count_nonzero(z, axis=-1)),
    "elastic net": (ElasticNet(0.8, 0.6), lambda z: l1(z, 0.8) + 0.3 * (z**2).sum(axis=-1)),
    "elastic net, no l1": (ElasticNet(0.0, 0.6), lambda z: 0.3 * (z**2).sum(axis=-1)),
    **{f"lp, p = {p}": (Lp(0.8, p), lambda z, p=p: 0.8 * (np.abs(z) ** p).sum(axis=-1)) for p in (0.2, 0.5, 0.66, 0.9)},
    "not negative": (NonNegative(), not_negative),
    "l1, not negative": (NonNegative(L1(0.8)), lambda z: l1(z, 0.8) + not_negative(z)),
    "l0, not negative": (NonNegative(L0(0.8)), lambda z: 0.8 * np.count_nonzero(z, axis=-1) + not_negative(z)),
    "lp, not negative": (NonNegative(Lp(0.8, 0.5)), lambda z: 0.8 * (np.abs(z) ** 0.5).sum(axis=-1) + not_negative(z)),
    "box": (Box(-0.5, 1.25), lambda z: allowed(((z >= -0.5) & (z <= 1.25)).all(axis=-1))),
    "box, zero outside": (Box(0.5, 1.25), lambda z: allowed(((z >= 0.5) & (z <= 1.25)).all(axis=-1))),
}
single = pytest.mark.parametrize(("penalty", "formula"), SINGLE.values(), ids=SINGLE)


@single
def test_no_point_of_a_line_is_better_than_the_prox(penalty, formula):
    grid = np.union1d(np.linspace(-6, 6, 24_001), 0.0)[:, None]
    worth = formula(grid)
    for w, step in itertools.product(np.linspace(-5, 5, 101), STEPS):
        z = penalty.prox(np.array([w]), step)
        best = (0.5 * (grid[:, 0] - w) ** 2 + step * worth).min()
        assert 0.5 * (z[0] - w) ** 2 + step * formula(z) <= best + ROUNDING, (w, step, z)


@single
def test_entries_are_added_up(penalty, formula):
    w = np.random.default_rng(0).normal(size=7) * 3
    together = penalty.prox(w, 0.7)
    np.testing.assert_array_equal(together, [penalty.prox(w[j : j + 1], 0.7)[0] for j in range(7)])
    assert penalty.value(together) == pytest.approx(float(formula(together)), rel=1e-12)
    assert np.isfinite(penalty.value(together))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.66, 0.95])
@pytest.mark.parametrize("weight", [1e-3, 0.3, 7.0])
def test_lp_jumps_where_zero_is_as_good_as_the_other_minimum(p, weight):
    """At w* = (2 - p) / (2 - 2p) t, t = (2 weight (1 - p))^(1 / (2 - p)), both 0 and t are best."""
    t = (2 * weight * (1 - p)) ** (1 / (2 - p))
    edge = (2 - p) / (2 - 2 * p) * t
    below, above = Lp(weight, p).prox(np.array([edge * (1 - 1e-6), edge * (1 + 1e-6)]), 1.0)
    assert below == 0
    assert above == pytest.approx(t, rel=1e-3)
    assert Lp(weight, p).prox(np.array([-edge * (1 + 1e-6)]), 1.0)[0] == -above


@pytest.mark.parametrize("weight", [1e-3, 0.3, 7.0])
def test_l0_keeps_what_is_worth_its_price(weight):
    edge = np.sqrt(2 * weight)
    w = np.array([edge * (1 - 1e-9), edge * (1 + 1e-9), -edge * (1 + 1e-9)])
    np.testing.assert_array_equal(L0(weight).prox(w, 1.0), [0, w[1], w[2]])


def test_lp_far_from_zero_takes_away_what_its_slope_says():
    w = np.array([1e3, -1e5])
    z = Lp(0.8, 0.5).prox(w, 1.0)
    np.testing.assert_allclose(w - z, 0.4 * np.sign(z) * np.abs(z) ** -0.5, rtol=1e-6)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.5, 2.0, np.nan])
def test_lp_takes_powers_between_0_and_1(p):
    with pytest.raises(ValueError, match="p"):
        Lp(0.8, p)


# --- entries together -----------------------------------------------------------------------------

GROUPS, WEIGHTS = [[0, 1], [2]], [0.9, 0.4]
NESTED, NESTED_WEIGHTS = [[0, 1, 2], [1, 2], [2]], [0.5, 0.7, 0.3]
ANGLES = np.linspace(0, 2 * np.pi, 721)


def _ball_points():
    """Points of a cube, and the same pulled onto the unit spheres of l2 and l1 where they lie outside."""
    cube = np.stack(np.meshgrid(*3 * [np.linspace(-1.5, 1.5, 41)], indexing="ij"), axis=-1).reshape(-1, 3)
    points = [cube]
    for order in (1, 2):
        norm = np.linalg.norm(cube, ord=order, axis=1)
        points.append(cube[norm > 0] / norm[norm > 0, None])
    return np.vstack(points)


def _elastic_points(gamma):
    """The same, pulled onto |z|^2 + gamma |z|_1 = 1: along a ray a root of a quadratic."""
    cube = _ball_points()
    square, size = (cube**2).sum(axis=1), np.abs(cube).sum(axis=1)
    inside = square > 0
    scale = (-gamma * size + np.sqrt((gamma * size) ** 2 + 4 * square))[inside] / (2 * square[inside])
    return np.vstack([cube, cube[inside] * scale[:, None]])


CUBE = np.stack(np.meshgrid(*3 * [np.linspace(-3, 3, 61)], indexing="ij"), axis=-1).reshape(-1, 3)
EDGE = 1 + 1e-12  # what points on an edge may be outside of it by rounding
TOGETHER = {  # name: the penalty, h by its formula, points
    "groups": (Groups(1.0, GROUPS, WEIGHTS), lambda z: norms(z, GROUPS, WEIGHTS), CUBE),
    "groups by their other name": (GroupL2(1.0, GROUPS, WEIGHTS), lambda z: norms(z, GROUPS, WEIGHTS), CUBE),
    "groups, not negative": (
        NonNegative(Groups(1.0, GROUPS, WEIGHTS)),
        lambda z: norms(z, GROUPS, WEIGHTS) + not_negative(z),
        CUBE,
    ),
    "tree": (Tree(1.0, NESTED, NESTED_WEIGHTS), lambda z: norms(z, NESTED, NESTED_WEIGHTS), CUBE),
    "tree, not negative": (
        NonNegative(Tree(1.0, NESTED, NESTED_WEIGHTS)),
        lambda z: norms(z, NESTED, NESTED_WEIGHTS) + not_negative(z),
        CUBE,
    ),
    "l2 ball": (L2Ball(1.0), lambda z: allowed(np.linalg.norm(z, axis=-1) <= EDGE), _ball_points()),
    "l1 ball": (L1Ball(1.0), lambda z: allowed(np.abs(z).sum(axis=-1) <= EDGE), _ball_points()),
    "l2 ball, not negative": (
        NonNegative(L2Ball(1.0)),
        lambda z: allowed(np.linalg.norm(z, axis=-1) <= EDGE) + not_negative(z),
        np.vstack([_ball_points(), np.abs(_ball_points())]),
    ),
    "sphere": (Sphere(1.0), lambda z: allowed(np.abs(np.linalg.norm(z, axis=-1) - 1) <= 1e-12), _ball_points()),
    "elastic-net ball": (
        ElasticNetBall(0.7),
        lambda z: allowed((z**2).sum(axis=-1) + 0.7 * np.abs(z).sum(axis=-1) <= EDGE),
        _elastic_points(0.7),
    ),
}
together = pytest.mark.parametrize(("penalty", "formula", "points"), TOGETHER.values(), ids=TOGETHER)


@together
def test_no_point_of_a_cube_is_better_than_the_prox(penalty, formula, points):
    worth = formula(points)
    points, worth = points[np.isfinite(worth)], worth[np.isfinite(worth)]
    rng = np.random.default_rng(1)
    starts = [*(rng.normal(size=(25, 3)) * rng.choice([0.3, 1.0, 2.0], (25, 1))), np.array([0.2, 0.0, -0.1])]
    for w, step in itertools.product(starts, STEPS):
        z = penalty.prox(w, step)
        best = (0.5 * ((points - w) ** 2).sum(axis=1) + step * worth).min()
        assert 0.5 * ((z - w) ** 2).sum() + step * formula(z) <= best + 1e-10, (w, step, z)


@together
def test_values_are_those_of_the_formula(penalty, formula, points):
    for z in np.random.default_rng(2).normal(size=(40, 3)) * 0.8:
        if np.isfinite(formula(z)) or "phere" not in type(penalty).__name__:
            assert penalty.value(z) == pytest.approx(float(formula(z)), rel=1e-12)


BALLS = {"l2": L2Ball(1.0), "l1": L1Ball(1.0), "sphere": Sphere(1.0), "elastic net": ElasticNetBall(0.7)}
BALLS |= {"l2, not negative": NonNegative(L2Ball(1.0)), "l2 of another radius": L2Ball(0.3)}


@pytest.mark.parametrize("ball", BALLS.values(), ids=BALLS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_was_projected_lies_inside_to_the_penaltys_own_eye(ball, dtype):
    """Rounding must not put a point outside: the value of what prox returns is 0, never infinity."""
    rng = np.random.default_rng(3)
    for p in (1, 2, 7, 64):
        for scale in (1e-3, 1.0, 1e6):
            for w in (rng.normal(size=(20, p)) * scale).astype(dtype):
                z = ball.prox(w, 1.0)
                assert ball.value(z) == 0, (w, z)
                assert z.dtype == dtype


@pytest.mark.parametrize("ball", [ball for name, ball in BALLS.items() if name != "sphere"], ids=lambda b: str(b)[:20])
def test_what_is_inside_stays_and_the_step_does_not_matter(ball):
    rng = np.random.default_rng(4)
    inside = np.abs(rng.normal(size=6)) * 0.01
    np.testing.assert_array_equal(ball.prox(inside, 0.3), inside)
    far = np.abs(rng.normal(size=6)) * 10
    np.testing.assert_allclose(ball.prox(far, 0.01), ball.prox(far, 100.0), rtol=1e-14)
    assert ball.times(5.0).value(ball.prox(far, 1.0)) == 0


def test_the_sphere_takes_zero_somewhere_on_it():
    z = Sphere(1.0).prox(np.zeros(5), 1.0)
    assert np.linalg.norm(z) == pytest.approx(1.0, abs=1e-12)


# --- all of them ----------------------------------------------------------------------------------

ALL = {name: penalty for name, (penalty, *_) in (SINGLE | TOGETHER).items()}


@pytest.mark.parametrize("penalty", ALL.values(), ids=ALL)
def test_columns_each_with_its_step_and_the_argument_stays(penalty):
    W = np.random.default_rng(5).normal(size=(3, 4)) * 2
    before, steps = W.copy(), np.array([0.3, 1.0, 0.01, 2.0])
    Z = penalty.prox(W, steps)
    assert Z.shape == W.shape
    for w, z, step in zip(W.T, Z.T, steps):
        np.testing.assert_allclose(z, penalty.prox(w, float(step)), atol=1e-9)
    np.testing.assert_array_equal(W, before)
    assert penalty.value(Z) == pytest.approx(sum(penalty.value(z) for z in Z.T), rel=1e-12)


@pytest.mark.parametrize("penalty", ALL.values(), ids=ALL)
def test_weights_multiply_values_and_steps(penalty):
    w = np.random.default_rng(6).normal(size=3) * 2
    z = penalty.prox(w, 0.6)
    np.testing.assert_allclose(penalty.times(3.0).prox(w, 0.2), z, atol=1e-9)
    assert penalty.times(3.0).value(z) == pytest.approx(3 * penalty.value(z), rel=1e-9)


@pytest.mark.parametrize("penalty", ALL.values(), ids=ALL)
def test_single_precision_is_kept(penalty):
    w = (np.random.default_rng(7).normal(size=3) * 2).astype(np.float32)
    z = penalty.prox(w, 0.5)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z, penalty.prox(w.astype(float), 0.5), atol=1e-5)


# --- the tree against a generic convex solver -----------------------------------------------------


def random_tree(rng):
    """Groups of which any two are nested or do not meet: a random partition, cut again and again."""
    p = int(rng.integers(2, 16))
    groups, todo = [], [rng.permutation(p)]
    while todo:
        part = todo.pop()
        if rng.random() < 0.8:
            groups.append(sorted(map(int, part)))
        if len(part) > 1:
            cut = int(rng.integers(1, len(part)))
            todo += [part[:cut], part[cut:]] if rng.random() < 0.7 else [part[cut:]]
    groups = groups or [list(range(p))]
    return p, groups, rng.uniform(0.0, 1.0, len(groups)) * rng.choice([0.2, 1.0])


def generic_prox(w, groups, bounds, gap=1e-11):
    """(primal, dual): min over z of 1/2 |z - w|^2 + sum_g bound_g |z_g|, by accelerated projections in the dual.

    The dual is max 1/2 |w|^2 - 1/2 |w - sum u_g|^2 over u_g of norm at most bound_g: it knows of no tree.
    """
    member = np.zeros((len(groups), len(w)), bool)
    for g, group in enumerate(groups):
        member[g, group] = True
    u = v = np.zeros(member.shape)
    momentum, length = 1.0, member.sum(axis=0).max()
    for _ in range(100_000):
        ahead = np.where(member, v + (w - v.sum(axis=0)) / length, 0.0)
        norm = np.linalg.norm(ahead, axis=1)
        ahead *= np.minimum(1.0, bounds / np.where(norm > 0, norm, 1.0))[:, None]
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if ((v - ahead) * (ahead - u)).sum() > 0:  # it turned back: begin again
            following = momentum = 1.0
        u, v, momentum = ahead, ahead + (momentum - 1) / following * (ahead - u), following
        z = w - u.sum(axis=0)
        primal = 0.5 * ((z - w) ** 2).sum() + (bounds * np.linalg.norm(np.where(member, z, 0), axis=1)).sum()
        dual = 0.5 * (w @ w) - 0.5 * (z @ z)
        if primal - dual <= gap * (w @ w):
            return z, dual
    raise AssertionError("the generic solver did not converge")


@pytest.mark.parametrize("seed", range(50))
def test_the_prox_of_a_tree_is_what_a_generic_solver_finds(seed):
    rng = np.random.default_rng(seed)
    p, groups, weights = random_tree(rng)
    w, step = rng.normal(size=p) * 2, float(rng.uniform(0.2, 2))
    z = Tree(0.8, groups, weights).prox(w, step)
    expected, dual = generic_prox(w, groups, 0.8 * step * weights)
    np.testing.assert_allclose(z, expected, atol=1e-4 * np.linalg.norm(w))
    worth = 0.5 * ((z - w) ** 2).sum() + step * 0.8 * norms(z, groups, weights)
    assert worth - dual <= 1e-10 * (w @ w)  # no point whatever is better by more


# --- a penalty of one's own -----------------------------------------------------------------------


@dataclass(frozen=True)
class Capped:
    """h(w) = alpha sum min(|w_i|, 1): no more is paid for an entry beyond 1. Ten lines, as a user writes them."""

    alpha: float

    def value(self, w):
        return float(self.alpha * np.minimum(np.abs(w), 1.0).sum())

    def prox(self, w, step):
        small = np.clip(np.sign(w) * np.maximum(np.abs(w) - step * self.alpha, 0.0), -1.0, 1.0)
        large = np.where(np.abs(w) >= 1.0, w, np.sign(w))
        paid = [0.5 * (z - w) ** 2 + step * self.alpha * np.minimum(np.abs(z), 1.0) for z in (small, large)]
        return np.where(paid[0] <= paid[1], small, large)

    def times(self, number):
        return Capped(number * self.alpha)


def test_ten_lines_make_a_penalty():
    penalty, grid = Capped(0.8), np.linspace(-6, 6, 24_001)
    for w, step in itertools.product(np.linspace(-5, 5, 101), STEPS):
        z = penalty.prox(np.array([w]), step)[0]
        best = (0.5 * (grid - w) ** 2 + step * 0.8 * np.minimum(np.abs(grid), 1)).min()
        assert 0.5 * (z - w) ** 2 + step * 0.8 * min(abs(z), 1) <= best + ROUNDING
