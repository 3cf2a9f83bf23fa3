"""Sparse coding on trial: what codes must be by their definitions, whoever finds them.

Optimality conditions, greedy choices made one by one with least squares, rows with cells taken out: each of these is
written down here anew, in a few slow lines.
"""

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import liars_codes
from helpers import only_user_warnings, shards
from princomp import sparse_encode
from princomp.coders.choice import as_coder
from princomp.coders.lasso import Lasso
from princomp.coders.proximal import Proximal
from princomp.coders.pursuit import Pursuit
from princomp.penalties import L0, L1, Box, ElasticNet, Groups, Lp, NonNegative, Tree

K, P = 30, 12


def atoms(seed=0, K=K, p=P, unit=True):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((K, p))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    return D if unit else D * rng.uniform(0.2, 3.0, (K, 1))


def signals(D, seed=1, m=40, nonzeros=3, noise=0.1):
    rng = np.random.default_rng(seed)
    codes = np.zeros((m, len(D)))
    for row in codes:
        row[rng.choice(len(D), min(nonzeros, len(D)), replace=False)] = rng.standard_normal(min(nonzeros, len(D)))
    return codes @ D + noise * rng.standard_normal((m, D.shape[1]))


def dense(codes):
    assert scipy.sparse.issparse(codes)
    assert codes.format == "csr"
    assert codes.has_sorted_indices
    assert np.all(codes.data != 0)  # nothing is stored that is not there
    return codes.toarray()


def encode(X, D, **how):
    return dense(sparse_encode(X, D, **how))


def squares(X, D, codes):
    """|x - a D|^2 of each row, cells that are missing left out."""
    return (np.nan_to_num(X - codes @ D) ** 2).sum(axis=1)


def objectives(X, D, codes, value):
    return squares(X, D, codes) / 2 + np.array([value(a) for a in codes])


def as_problem(D, X):
    """What a coder is given: one Gram matrix, correlations, squares."""
    return (D @ D.T)[None], X @ D.T, (X**2).sum(axis=1)


# --- lasso and elastic net ------------------------------------------------------------------------

LASSOS = {
    "lasso": {"alpha": 0.15},
    "lasso, small weight": {"alpha": 1e-3},
    "elastic net": {"alpha": 0.1, "l2": 0.3, "penalty": "elastic-net"},
    "weighted": {"alpha": 0.1, "weights": np.linspace(0.1, 3, K)},
    "weighted, some free": {"alpha": 0.1, "weights": np.repeat([0.0, 1.0], [3, K - 3])},
    "not negative": {"alpha": 0.1, "positive": True},
    "not negative, elastic, weighted": {
        "alpha": 0.1,
        "l2": 0.2,
        "penalty": "elastic-net",
        "positive": True,
        "weights": np.linspace(0.1, 3, K),
    },
}
lassos = pytest.mark.parametrize("how", LASSOS.values(), ids=LASSOS)


def judged(how):
    bounds = how["alpha"] * how.get("weights", np.ones(K))
    return liars_codes.Penalty(bounds, how.get("l2", 0.0), how.get("positive", False))


@lassos
@pytest.mark.parametrize("unit", [True, False], ids=["unit atoms", "atoms of any norm"])
def test_the_slope_is_the_weight_on_the_support_and_no_more_elsewhere(how, unit):
    """c - a G - l2 a = bound sign(a) where a is not 0, and within +-bound elsewhere (below it, if a >= 0)."""
    D = atoms(unit=unit)
    X = signals(D)
    codes = encode(X, D, tol=1e-13, **how)
    penalty = judged(how)
    slopes = (X - codes @ D) @ D.T - penalty.l2 * codes
    slack = 1e-5 * np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(D, axis=1)
    on = codes != 0
    assert on.any()
    assert not on.all()
    assert np.all(np.abs(slopes - penalty.bounds * np.sign(codes))[on] <= slack[on])
    outside = slopes if penalty.nonnegative else np.abs(slopes)
    assert np.all(outside <= penalty.bounds + slack)
    if penalty.nonnegative:
        assert codes.min() >= 0


@lassos
@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-10])
def test_the_duality_gap_is_within_tol(how, tol):
    D = atoms(3, unit=False)
    X = signals(D)
    codes = encode(X, D, tol=tol, **how)
    penalty = judged(how)
    for x, a in zip(X, codes):
        worth = liars_codes.objective(x, D, a, penalty)
        below = max(liars_codes.dual_bound(x, D, a, penalty), 0)
        if worth - below > tol * (x @ x) / 2 + 1e-14:  # the bound may be a poor one: is there anything to gain?
            gained = worth - liars_codes.climbed(x, D, a, penalty)
            assert gained <= tol * (x @ x) / 2 + 1e-14


def test_positive_codes_are_those_of_nonnegative_least_squares_as_the_weight_vanishes():
    D = atoms(K=8)
    X = signals(D, m=25)
    codes = encode(X, D, alpha=0.0, positive=True, tol=1e-13)
    assert codes.min() >= 0
    for x, a in zip(X, codes):
        expected, norm = scipy.optimize.nnls(D.T, x)
        np.testing.assert_allclose(a, expected, atol=1e-5)
        assert np.linalg.norm(x - a @ D) <= norm + 1e-9


def test_positive_codes_on_paths_where_variables_leave():
    """Where least angle regression with positive=True goes wrong: coefficients that enter and have to leave again."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        D = atoms(seed, K=20, p=6) + 0.7 * rng.standard_normal(6)
        X = signals(D, seed, m=5, noise=0.5)
        how = {"alpha": 0.05, "positive": True}
        codes = encode(X, D, tol=1e-12, **how)
        penalty = liars_codes.Penalty(np.full(20, 0.05), 0.0, True)
        for x, a in zip(X, codes):
            best = liars_codes.climbed(x, D, np.zeros(20), penalty, steps=3000)
            assert liars_codes.objective(x, D, a, penalty) <= best + 1e-9


def test_a_weight_at_which_all_codes_vanish():
    D = atoms(unit=False)
    X = signals(D)
    largest = np.abs(X @ D.T).max(axis=1)
    for i in range(5):
        assert sparse_encode(X[i : i + 1], D, alpha=largest[i] * (1 + 1e-9)).nnz == 0
        assert sparse_encode(X[i : i + 1], D, alpha=largest[i] * (1 - 1e-3), tol=1e-10).nnz > 0
    assert sparse_encode(X, D, alpha=1e300).nnz == 0


@pytest.mark.parametrize("shape", [(8, 12), (12, 12), (30, 12)], ids=["few atoms", "as many", "more than cells"])
def test_no_weight_at_all_is_least_squares(shape):
    D = atoms(4, *shape)
    X = signals(D, noise=0.5)
    expected = X - X @ np.linalg.pinv(D) @ D
    codes = encode(X, D, alpha=0.0, tol=1e-13)
    assert np.all(squares(X, D, codes) <= (expected**2).sum(axis=1) + 1e-9 * (X**2).sum(axis=1))


def test_unpenalised_atoms_are_least_squares_beside_the_others():
    D = atoms()
    X = signals(D) + 5.0
    D[0] = 1 / np.sqrt(P)  # the mean, for which nothing is paid
    weights = np.ones(K)
    weights[0] = 0
    codes = encode(X, D, alpha=0.1, weights=weights, tol=1e-12)
    np.testing.assert_allclose((X - codes @ D).sum(axis=1), 0, atol=1e-5)


def test_weights_are_scales_of_atoms():
    """alpha w |a| with atoms d is alpha |b| with atoms d / w and b = w a."""
    D, weights = atoms(), np.linspace(0.2, 3, K)
    X = signals(D)
    codes = encode(X, D, alpha=0.1, weights=weights, tol=1e-13)
    np.testing.assert_allclose(codes, encode(X, D / weights[:, None], alpha=0.1, tol=1e-13) / weights, atol=1e-5)


def test_an_elastic_net_is_a_lasso_with_more_cells():
    D = atoms()
    X = signals(D)
    codes = encode(X, D, penalty="elastic-net", alpha=0.1, l2=0.4, tol=1e-13)
    more = encode(np.c_[X, np.zeros((len(X), K))], np.c_[D, np.sqrt(0.4) * np.eye(K)], alpha=0.1, tol=1e-13)
    np.testing.assert_allclose(codes, more, atol=1e-6)


def test_orthonormal_atoms_take_the_soft_threshold():
    D = np.linalg.qr(np.random.default_rng(0).standard_normal((P, P)))[0]
    X = signals(D, noise=0.5)
    C = X @ D.T
    expected = np.sign(C) * np.maximum(np.abs(C) - 0.2, 0)
    np.testing.assert_allclose(encode(X, D, alpha=0.2, tol=1e-13), expected, atol=1e-6)
    np.testing.assert_allclose(encode(X, D, alpha=0.2, positive=True, tol=1e-13), np.maximum(C - 0.2, 0), atol=1e-6)


# --- greedy pursuit -------------------------------------------------------------------------------


def pursued(x, D, selection, nonzeros=None, error=0.0):
    """The code by definition, one atom after the other; each time all of the support is fitted anew."""
    support, residual, code = [], x, np.zeros(len(D))
    for _ in range(len(D) if nonzeros is None else nonzeros):
        if residual @ residual <= max(error**2, 1e-20 * (x @ x)):
            break
        others = [k for k in range(len(D)) if k not in support and D[k].any()]
        if not others:
            break
        if selection == "omp":
            scores = [-abs(D[k] @ residual) for k in others]
        else:
            scores = [_fitted(x, D, [*support, k])[1] for k in others]
        support.append(others[int(np.argmin(scores))])
        residual = x - _fitted(x, D, support)[0] @ D[support]
    code[support] = _fitted(x, D, support)[0] if support else 0
    return code


def _fitted(x, D, support):
    fit = np.linalg.lstsq(D[support].T, x, rcond=None)[0]
    residual = x - fit @ D[support]
    return fit, residual @ residual


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("nonzeros", [1, 2, 5, 10])
def test_greedy_codes_are_those_of_the_definition(selection, nonzeros):
    D = atoms(5)
    X = signals(D, m=15, noise=0.3)
    codes = encode(X, D, nonzeros=nonzeros, selection=selection)
    for x, a in zip(X, codes):
        np.testing.assert_allclose(a, pursued(x, D, selection, nonzeros), atol=1e-8)


@pytest.mark.parametrize("nonzeros", [1, 3, 6])
def test_ols_does_not_care_how_long_atoms_are(nonzeros):
    D, scale = atoms(6), np.random.default_rng(0).uniform(0.01, 50, (K, 1))
    X = signals(D, m=15, noise=0.3)
    codes = encode(X, scale * D, nonzeros=nonzeros)
    for x, a in zip(X, codes):
        np.testing.assert_allclose(a * scale[:, 0], pursued(x, D, "ols", nonzeros), atol=1e-8)


def test_omp_with_atoms_inside_the_ball_fits_its_support_by_least_squares():
    """Recursions written for unit atoms track a wrong error here, and with it stop at a wrong place."""
    D = atoms(7) * np.linspace(0.1, 0.9, K)[:, None]
    X = signals(D, m=15, noise=0.1)
    for selection, error in itertools.product(("omp", "ols"), (0.1, 0.3)):
        codes = encode(X, D, error=error, selection=selection)
        for x, a in zip(X, codes):
            support = np.flatnonzero(a)
            residual = x - a @ D
            np.testing.assert_allclose(D[support] @ residual, 0, atol=1e-9)
            assert residual @ residual <= error**2 * (1 + 1e-9) or len(support) >= P


def test_each_atom_of_ols_lowers_the_residual_at_least_as_much_as_any_other():
    D = atoms(8)
    X = signals(D, m=10, noise=0.5)
    before = (X**2).sum(axis=1)
    chosen = np.zeros((len(X), 0), int)
    for count in range(1, 6):
        codes = encode(X, D, nonzeros=count)
        now = squares(X, D, codes)
        for x, old, after, a in zip(X, chosen, now, codes):
            assert set(old) <= set(np.flatnonzero(a))  # nothing is taken back
            least = min(_fitted(x, D, [*old, k])[1] for k in range(K) if k not in old)
            assert after <= least * (1 + 1e-9)
        assert np.all(now <= before)
        before, chosen = now, np.array([np.flatnonzero(a) for a in codes])


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("error", [0.05, 0.5, 1.0])
def test_an_error_bound_is_met_with_no_atom_too_many(selection, error):
    D = atoms(9)
    X = signals(D, m=25, noise=0.2)
    codes = encode(X, D, error=error, selection=selection)
    assert np.all(squares(X, D, codes) <= error**2 * (1 + 1e-9))
    for x, a in zip(X, codes):
        np.testing.assert_allclose(a, pursued(x, D, selection, error=error), atol=1e-7)
        count = np.count_nonzero(a)
        if count:  # one atom fewer does not do
            fewer = pursued(x, D, selection, nonzeros=count - 1)
            assert squares(x[None], D, fewer[None])[0] > error**2


def test_rows_that_are_small_enough_need_no_atom():
    """The bound is looked at before the first atom is taken."""
    D = atoms()
    X = signals(D)
    X *= (np.linspace(0.5, 1.5, len(X)) / np.linalg.norm(X, axis=1))[:, None]
    codes = sparse_encode(X, D, error=1.0)
    small = np.linalg.norm(X, axis=1) <= 1
    counts = np.diff(codes.indptr)
    assert np.all(counts[small] == 0)
    assert np.all(counts[~small] > 0)


def test_whichever_bound_is_met_first_ends_the_pursuit():
    D = atoms(10)
    X = signals(D, m=25, noise=0.5)
    both, count, error = (
        encode(X, D, **how) for how in ({"nonzeros": 3, "error": 0.8}, {"nonzeros": 3}, {"error": 0.8})
    )
    shorter = np.count_nonzero(error, axis=1) <= 3
    assert shorter.any()
    assert not shorter.all()
    np.testing.assert_allclose(both[shorter], error[shorter], atol=1e-12)
    np.testing.assert_allclose(both[~shorter], count[~shorter], atol=1e-12)


@pytest.mark.parametrize("selection", ["ols", "omp"])
def test_an_error_that_cannot_be_reached_ends_with_least_squares(selection):
    D = atoms(K=5)
    X = signals(D, noise=1.0)
    codes = encode(X, D, error=1e-3, selection=selection)
    assert np.isfinite(codes).all()
    best = X - X @ np.linalg.pinv(D) @ D
    np.testing.assert_allclose(squares(X, D, codes), (best**2).sum(axis=1), rtol=1e-8)


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("nonzeros", [P, P + 1, 2 * P, K])
def test_more_nonzeros_than_cells_stop_when_nothing_is_left(selection, nonzeros):
    D = atoms(11)
    X = signals(D, noise=1.0)
    codes = encode(X, D, nonzeros=nonzeros, selection=selection)
    assert np.isfinite(codes).all()
    assert np.count_nonzero(codes, axis=1).max() <= P
    assert squares(X, D, codes).max() <= 1e-18 * (X**2).sum()
    assert np.abs(codes).max() < 1e6  # not by atoms that are all but dependent


@pytest.mark.parametrize("selection", ["ols", "omp"])
def test_twins_are_taken_once_and_zero_atoms_never(selection):
    D = atoms(12)
    X = signals(D, noise=0.3)
    twice = np.vstack([D, D, np.zeros((3, P)), -D])
    codes = encode(X, twice, nonzeros=6, selection=selection)
    assert np.all(codes[:, 2 * K : 2 * K + 3] == 0)
    folded = codes[:, :K] + codes[:, K : 2 * K] - codes[:, 2 * K + 3 :]
    np.testing.assert_allclose(folded, encode(X, D, nonzeros=6, selection=selection), atol=1e-8)
    assert np.count_nonzero(codes, axis=1).max() <= 6
    used = (codes[:, :K] != 0).astype(int) + (codes[:, K : 2 * K] != 0) + (codes[:, 2 * K + 3 :] != 0)
    assert used.max() == 1


def test_ols_leaves_less_than_omp_on_the_whole():
    D = atoms(13, K=64, p=16)
    X = signals(D, m=300, nonzeros=8, noise=0.3)
    left = {
        selection: squares(X, D, encode(X, D, nonzeros=5, selection=selection)).mean() for selection in ("ols", "omp")
    }
    assert left["ols"] < left["omp"]


@pytest.mark.parametrize("selection", ["ols", "omp"])
def test_positive_pursuit_is_least_squares_on_its_support_and_nowhere_negative(selection):
    D = atoms(14)
    X = signals(D, noise=0.3)
    codes = encode(X, D, nonzeros=4, positive=True, selection=selection)
    assert codes.min() >= 0
    assert np.count_nonzero(codes, axis=1).max() <= 4
    assert squares(X, D, codes).mean() < 0.7 * (X**2).sum(axis=1).mean()
    for x, a in zip(X, codes):
        np.testing.assert_allclose(D[a != 0] @ (x - a @ D), 0, atol=1e-8)
    one = encode(X, D, nonzeros=1, positive=True, selection=selection)
    np.testing.assert_array_equal(one.argmax(axis=1), (X @ D.T).argmax(axis=1))
    unseen = encode(-np.abs(X), np.abs(D), nonzeros=4, positive=True, selection=selection)
    assert not unseen.any()  # nothing positive helps


NASTY = ("twins", "near_twins", "zero_atoms", "norms", "many_atoms", "one_column", "low_rank", "empty_rows", "offsets")


def nasty(name, seed, dtype=float):
    """Rows and atoms of the liars' bench."""
    made = getattr(liars_codes, name)(np.random.default_rng(seed))
    return made["X"].astype(dtype), made["D"].astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("name", NASTY)
def test_pursuit_with_nasty_atoms_is_least_squares_on_few_of_them(name, selection, dtype):
    """No more atoms than cells, none of zeros, a residual at right angles to those taken, and no larger than before."""
    digits = 1e-6 if dtype is np.float64 else 3e-3
    for seed in range(8):
        X, D = nasty(name, seed, dtype)
        for nonzeros in (1, 3, 2 * X.shape[1]):
            codes = encode(X, D, nonzeros=nonzeros, selection=selection).astype(float)
            assert np.isfinite(codes).all()
            assert np.count_nonzero(codes, axis=1).max() <= min(nonzeros, X.shape[1])
            assert not codes[:, ~D.any(axis=1)].any()
            size, norms = np.linalg.norm(X.astype(float), axis=1), np.linalg.norm(D.astype(float), axis=1)
            left = X - codes @ D
            assert np.all(np.linalg.norm(left, axis=1) <= size * (1 + digits))
            slopes = np.abs(left @ D.T.astype(float))
            assert np.all(slopes[codes != 0] <= (digits * np.outer(size, norms))[codes != 0])


@pytest.mark.parametrize("name", NASTY)
def test_the_first_atom_is_the_one_that_leaves_least_however_nasty_the_others(name):
    for seed in range(8):
        X, D = nasty(name, seed)
        norms = np.linalg.norm(D, axis=1)
        cosines = np.abs(X @ D.T) / np.where(norms > 0, norms, 1)
        taken = (cosines**2).max(axis=1)
        gone = (X**2).sum(axis=1) - squares(X, D, encode(X, D, nonzeros=1))
        np.testing.assert_allclose(gone, taken, rtol=1e-9, atol=1e-12 * (X**2).sum())


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("name", NASTY)
def test_a_bound_on_the_error_is_met_or_nothing_is_left_to_take(name, selection):
    for seed in range(8):
        X, D = nasty(name, seed)
        error = 0.1 * float(np.linalg.norm(X, axis=1).mean())
        codes = encode(X, D, error=error, selection=selection)
        assert np.isfinite(codes).all()
        left, size = X - codes @ D, np.linalg.norm(X, axis=1)
        unmet = np.linalg.norm(left, axis=1) > error * (1 + 1e-9)
        slopes = np.abs(left @ D.T) / np.where(D.any(axis=1), np.linalg.norm(D, axis=1), 1)
        assert np.all(slopes[unmet].max(axis=1, initial=0) <= 1e-5 * size[unmet])


@pytest.mark.parametrize("value", [0, -1, 2.5, np.nan])
def test_counts_of_nonzeros_are_counts(value):
    with pytest.raises(ValueError, match="nonzeros"):
        sparse_encode(signals(atoms()), atoms(), nonzeros=value)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_errors_are_norms(value):
    with pytest.raises(ValueError, match="error"):
        sparse_encode(signals(atoms()), atoms(), error=value)


def test_a_selection_that_is_none_is_named():
    with pytest.raises(ValueError, match="selection"):
        sparse_encode(signals(atoms()), atoms(), nonzeros=2, selection="lars")


# --- any penalty ----------------------------------------------------------------------------------

BLOCKS = [list(range(3 * block, 3 * block + 3)) for block in range(K // 3)]
NESTED = [list(range(at, at + 10)) for at in (0, 10, 20)]
NESTED += [[at + 1, at + 2] for at in (0, 3, 10, 13, 20, 23)]
NESTED += [[k] for k in range(K)]


def tree_prox(w, groups, bounds):
    """By definition of the algorithm: small groups first."""
    z = w.copy()
    for group, bound in sorted(zip(groups, bounds), key=lambda pair: len(pair[0])):
        size = np.linalg.norm(z[group])
        z[group] *= max(0.0, 1 - bound / size) if size > 0 else 0.0
    return z


def fixed_point(codes, X, D, prox):
    """Largest |a - prox_h(a - slope)|, which is 0 exactly where a is stationary, by rows' norms."""
    after = np.array([prox(a - (a @ D - x) @ D.T) for x, a in zip(X, codes)])
    return (np.abs(after - codes).max(axis=1) / np.linalg.norm(X, axis=1)).max()


def test_groups_of_atoms_are_zero_together_and_optimal():
    D = atoms(15, unit=False)
    X = signals(D)
    codes = encode(X, D, penalty=Groups(0.1, BLOCKS), tol=1e-12)
    root = np.sqrt(3.0)
    assert fixed_point(codes, X, D, lambda w: tree_prox(w, BLOCKS, np.full(len(BLOCKS), 0.1 * root))) < 1e-5
    together = (codes.reshape(len(X), -1, 3) != 0).sum(axis=2)
    assert set(np.unique(together)) == {0, 3}


def test_trees_of_atoms_are_optimal_and_enter_from_the_root():
    D = atoms(16)
    X = signals(D)
    penalty = Tree(0.05, NESTED, np.ones(len(NESTED)))
    codes = encode(X, D, penalty=penalty, tol=1e-12)
    assert fixed_point(codes, X, D, lambda w: tree_prox(w, NESTED, np.full(len(NESTED), 0.05))) < 1e-5
    assert 0 < np.count_nonzero(codes) < codes.size


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_finds_no_more_than_a_generic_convex_solver(seed):
    """Smoothed norms, by L-BFGS from several starts: an upper bound of the minimum that knows of no prox."""
    rng = np.random.default_rng(seed)
    D = atoms(seed, K=10, p=6)
    x = signals(D, seed, m=1)[0]
    groups, weights = [list(range(10)), [1, 2, 3], [2, 3], [5, 6], [9]], rng.uniform(0.02, 0.2, 5)
    a = encode(x[None], D, penalty=Tree(1.0, groups, weights), tol=1e-12)[0]

    def worth(z, smooth=0.0):
        sizes = np.array([np.sqrt((z[group] ** 2).sum() + smooth**2) - smooth for group in groups])
        return 0.5 * ((x - z @ D) ** 2).sum() + weights @ sizes

    found = np.zeros(10)
    for smooth in (1e-2, 1e-4, 1e-6):
        found = scipy.optimize.minimize(worth, found, args=(smooth,), method="L-BFGS-B", options={"maxiter": 5000}).x
    assert worth(a) <= worth(found) + 1e-9


@pytest.mark.parametrize("p", [0.3, 0.5, 0.8])
def test_lp_codes_are_stationary_and_nothing_small_is_left(p):
    D, alpha = atoms(17), 0.05
    X = signals(D)
    codes = encode(X, D, penalty=Lp(alpha, p), tol=1e-10)
    on = codes != 0
    assert 0 < on.sum() < on.size
    slopes = (X - codes @ D) @ D.T
    wanted = alpha * p * np.sign(codes[on]) * np.abs(codes[on]) ** (p - 1)
    np.testing.assert_allclose(slopes[on], wanted, atol=1e-4)
    length = np.linalg.norm(D, 2) ** 2  # of the slope: a prox step no longer than 1 / length leaves nothing below this
    assert np.abs(codes[on]).min() >= 0.99 * (2 * alpha * (1 - p) / length) ** (1 / (2 - p))
    worth = objectives(X, D, codes, lambda a: alpha * (np.abs(a[a != 0]) ** p).sum())
    assert np.all(worth <= (X**2).sum(axis=1) / 2)  # no worse than nothing


def test_l0_with_a_price_keeps_no_atom_that_is_not_worth_it():
    D, alpha = atoms(18), 0.05
    X = signals(D)
    codes = encode(X, D, penalty="l0", alpha=alpha)
    worth = objectives(X, D, codes, lambda a: alpha * np.count_nonzero(a))
    assert np.all(worth <= (X**2).sum(axis=1) / 2 + 1e-12)
    for x, a in zip(X, codes):
        np.testing.assert_allclose(D[a != 0] @ (x - a @ D), 0, atol=1e-4)


def test_lp_is_between_l0_and_l1_in_sparsity_at_equal_error():
    """The same data, the same squared error in all: the price at which it is reached is found by halving."""
    D = atoms(19, K=40, p=16)
    X = signals(D, m=150, noise=0.05)
    l1 = encode(X, D, alpha=0.1)
    level = squares(X, D, l1).sum()

    def count(price):
        low, high = 1e-4, 1.0
        for _ in range(12):
            alpha = np.sqrt(low * high)
            codes = encode(X, D, penalty=price(alpha))
            low, high = (low, alpha) if squares(X, D, codes).sum() > level else (alpha, high)
        return np.count_nonzero(encode(X, D, penalty=price(low)))

    l0, near_l0, between, near_l1 = count(L0), *(count(lambda alpha, p=p: Lp(alpha, p)) for p in (0.3, 0.6, 0.9))
    assert l0 <= 1.01 * near_l0  # each a local minimum
    assert near_l0 <= 1.01 * between
    assert between < near_l1 < np.count_nonzero(l1)


def test_a_box_and_signs_of_ones_own():
    D = atoms(20, K=6)
    X = signals(D, m=20, noise=0.5)
    codes = encode(X, D, penalty=Box(-0.3, 0.4), tol=1e-12)
    for x, a in zip(X, codes):
        expected = scipy.optimize.lsq_linear(D.T, x, bounds=(-0.3, 0.4), tol=1e-14).x
        np.testing.assert_allclose(a, expected, atol=1e-5)


@dataclasses.dataclass(frozen=True)
class Even:
    """A penalty of one's own: alpha sum |a_k| over even k, and no odd atom at all."""

    alpha: float

    def value(self, w):
        return float(self.alpha * np.abs(w[::2]).sum()) if not np.any(w[1::2]) else np.inf

    def prox(self, w, step):
        z = np.zeros_like(w)
        z[::2] = np.sign(w[::2]) * np.maximum(np.abs(w[::2]) - step * self.alpha, 0)
        return z

    def times(self, number):
        return Even(number * self.alpha)


def test_a_penalty_of_ones_own_codes():
    D = atoms(21)
    X = signals(D)
    codes = encode(X, D, penalty=Even(0.1), tol=1e-12)
    assert not codes[:, 1::2].any()
    np.testing.assert_allclose(codes[:, ::2], encode(X, D[::2], alpha=0.1, tol=1e-12), atol=1e-5)


@pytest.mark.parametrize(
    ("penalty", "how"),
    [
        (L1(0.1), {"alpha": 0.1}),
        (ElasticNet(0.1, 0.3), {"penalty": "elastic-net", "alpha": 0.1, "l2": 0.3}),
        (NonNegative(L1(0.1)), {"alpha": 0.1, "positive": True}),
    ],
    ids=["l1", "elastic net", "not negative"],
)
def test_an_object_and_a_name_are_the_same_penalty(penalty, how):
    D = atoms(22, unit=False)
    X = signals(D)
    np.testing.assert_allclose(encode(X, D, penalty=penalty, tol=1e-13), encode(X, D, tol=1e-13, **how), atol=1e-5)


# --- which coder ----------------------------------------------------------------------------------


def test_counts_and_errors_come_before_any_penalty():
    D = atoms(23)
    X = signals(D)
    expected = encode(X, D, nonzeros=2)
    for penalty in ("l1", "elastic-net", L1(5.0), Lp(0.3, 0.5)):
        np.testing.assert_array_equal(encode(X, D, penalty=penalty, alpha=7.0, nonzeros=2), expected)
    np.testing.assert_array_equal(encode(X, D, penalty=L1(5.0), error=0.5), encode(X, D, error=0.5))
    assert isinstance(as_coder("l1", 0.1, nonzeros=2), Pursuit)
    assert isinstance(as_coder("l1", 0.1, error=0.2), Pursuit)


def test_an_object_speaks_for_itself_and_alpha_is_for_names():
    D = atoms(24)
    X = signals(D)
    np.testing.assert_array_equal(encode(X, D, penalty=L1(0.2), alpha=77.0), encode(X, D, penalty=L1(0.2), alpha=0.0))
    assert not encode(X, D, penalty="l1", alpha=77.0).any()
    assert isinstance(as_coder("l1", 0.3), Lasso)
    assert as_coder("l1", 0.3).alpha == 0.3
    assert isinstance(as_coder("l0", 0.3), Proximal)
    assert as_coder("l0", 0.3).penalty == L0(0.3)
    assert isinstance(as_coder(Groups(0.3, BLOCKS)), Proximal)


def test_what_is_no_penalty_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="elastic-net"):
        sparse_encode(signals(atoms()), atoms(), penalty="ridge")
    with pytest.raises((ValueError, TypeError), match="penalty"):
        sparse_encode(signals(atoms()), atoms(), penalty=3.0)
    for alpha in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="alpha"):
            sparse_encode(signals(atoms()), atoms(), alpha=alpha)


# --- coders themselves ----------------------------------------------------------------------------

CODERS = {
    "lasso": Lasso(0.1),
    "elastic": Lasso(0.1, l2=0.2),
    "lasso, not negative": Lasso(0.1, nonnegative=True),
    "ols": Pursuit(nonzeros=3),
    "omp": Pursuit(nonzeros=3, selection="omp"),
    "error": Pursuit(error=0.5),
    "groups": Proximal(Groups(0.1, BLOCKS)),
    "lp": Proximal(Lp(0.05, 0.5)),
    "l0": Proximal(L0(0.05)),
}
coders = pytest.mark.parametrize("coder", CODERS.values(), ids=CODERS)


@coders
def test_one_gram_matrix_for_all_or_one_for_each(coder):
    D = atoms(25, unit=False)
    X = signals(D, m=7)
    gram, correlations, square = as_problem(D, X)
    together = dense(coder.code(gram, correlations, square))
    apart = dense(coder.code(np.repeat(gram, 7, axis=0), correlations, square))
    np.testing.assert_allclose(together, apart, atol=1e-5)
    alone = np.vstack([dense(coder.code(gram, c[None], s[None])) for c, s in zip(correlations, square)])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@coders
def test_arguments_of_coders_stay_as_they_are(coder):
    D = atoms(25)
    given = as_problem(D, signals(D, m=5))
    before = [array.copy() for array in given]
    for array in given:
        array.flags.writeable = False
    codes = coder.code(*given)
    coder.code(*given, start=codes)
    for array, old in zip(given, before):
        np.testing.assert_array_equal(array, old)


@coders
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_coders_keep_the_precision_and_a_start_changes_nothing_but_the_way(coder, dtype):
    D = atoms(26).astype(dtype)
    X = signals(D, m=9).astype(dtype)
    given = as_problem(D, X)
    codes = coder.code(*given)
    assert codes.dtype == dtype
    assert codes.shape == (9, K)
    if coder.optimal:
        again = coder.code(*given, start=codes)
        worth = [squares(X, D, c.toarray()) / 2 + coder.penalties(c) for c in (codes, again)]
        np.testing.assert_allclose(worth[0], worth[1], rtol=1e-4 if dtype == np.float32 else 1e-5)


def test_coders_say_what_their_codes_cost():
    a = scipy.sparse.csr_array(np.array([[0.0, -2.0, 0.5], [0.0, 0.0, 0.0]]))
    weights = np.array([1.0, 0.5, 3.0])
    np.testing.assert_allclose(Lasso(0.1, l2=0.2, weights=weights).penalties(a), [0.1 * 2.5 + 0.1 * 4.25, 0])
    np.testing.assert_allclose(Proximal(Lp(0.1, 0.5)).penalties(a), [0.1 * (2**0.5 + 0.5**0.5), 0])
    np.testing.assert_array_equal(Pursuit(nonzeros=2).penalties(a), [0, 0])
    assert Lasso(0.1).penalties(a).dtype == float


def test_coders_say_whether_they_find_minimisers():
    assert Lasso(0.1).optimal
    assert not Pursuit(nonzeros=2).optimal
    assert not Proximal(Lp(0.1, 0.5)).optimal
    assert not Proximal(L0(0.1)).optimal


# --- cells that are missing -----------------------------------------------------------------------

MISSING = {
    "lasso": {"alpha": 0.1},
    "elastic net": {"penalty": "elastic-net", "alpha": 0.1, "l2": 0.2},
    "not negative": {"alpha": 0.1, "positive": True},
    "weighted": {"alpha": 0.1, "weights": np.linspace(0.5, 2, K)},
    "ols": {"nonzeros": 3},
    "omp": {"nonzeros": 3, "selection": "omp"},
    "error": {"error": 0.4},
    "groups": {"penalty": Groups(0.1, BLOCKS)},
    "tree": {"penalty": Tree(0.05, NESTED)},
}


@pytest.mark.parametrize("how", MISSING.values(), ids=MISSING)
def test_a_missing_cell_is_a_column_less(how):
    D, rng = atoms(27, unit=False), np.random.default_rng(0)
    X = signals(D, m=12)
    X[rng.random(X.shape) < 0.3] = np.nan
    tight = {} if "nonzeros" in how or "error" in how else {"tol": 1e-12}
    codes = encode(X, D, **how, **tight)
    for x, a in zip(X, codes):
        seen = np.isfinite(x)
        alone = encode(x[None, seen], D[:, seen], **how, **tight)[0]
        np.testing.assert_allclose(a, alone, atol=1e-5)
    complete = np.isfinite(X).all(axis=1)
    assert not complete.all()


@pytest.mark.parametrize("how", MISSING.values(), ids=MISSING)
def test_rows_without_anything_have_the_code_zero(how):
    """All cells missing, all cells zero: nothing is to be explained. The rows around them do not notice."""
    D, how = atoms(28), {"tol": 1e-12} | how
    X = signals(D, m=6)
    plain = encode(X, D, **how)
    X[1], X[4] = np.nan, 0.0
    with only_user_warnings():
        codes = encode(X, D, **how)
    assert not codes[[1, 4]].any()
    np.testing.assert_allclose(codes[[0, 2, 3, 5]], plain[[0, 2, 3, 5]], atol=1e-5)


@pytest.mark.parametrize("how", MISSING.values(), ids=MISSING)
def test_a_constant_row_is_coded_like_any_other(how):
    D = atoms(29)
    row = np.full((1, P), 2.5)
    codes = encode(row, D, **how)
    assert np.isfinite(codes).all()
    assert squares(row, D, codes)[0] < (row**2).sum()
    D[3] = 1 / np.sqrt(P)  # an atom for it
    found = encode(row, D, nonzeros=1)
    np.testing.assert_allclose(found[0, 3], 2.5 * np.sqrt(P))
    assert np.count_nonzero(found) == 1


def test_infinite_cells_and_atoms_that_are_not_finite_are_refused():
    D = atoms()
    X = signals(D)
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="inf"):
        sparse_encode(X, D)
    for value in (np.nan, np.inf):
        spoilt = D.copy()
        spoilt[1, 1] = value
        with pytest.raises(ValueError, match="dictionary"):
            sparse_encode(signals(D), spoilt)
    with pytest.raises(ValueError, match=str(P)):
        sparse_encode(signals(D), D[:, :-1])


# --- robust losses --------------------------------------------------------------------------------


def huber(residual, delta):
    size = np.abs(residual)
    return np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))


def test_a_huber_loss_with_a_wide_parabola_is_least_squares():
    from princomp.losses import Huber

    D = atoms(30)
    X = signals(D)
    np.testing.assert_allclose(
        encode(X, D, alpha=0.1, loss=Huber(1e4), tol=1e-12), encode(X, D, alpha=0.1, tol=1e-12), atol=1e-5
    )


def test_huber_codes_are_stationary_for_the_huber_loss():
    """1/2 rho, rho = r^2 up to delta: the slope of the loss is the residual cut off at delta."""
    from princomp.losses import Huber

    D, rng = atoms(31, K=20), np.random.default_rng(2)
    X = signals(D)
    X[rng.random(X.shape) < 0.05] += 20
    codes = encode(X, D, alpha=0.1, loss=Huber(0.3), tol=1e-10)
    slopes = np.clip(X - codes @ D, -0.3, 0.3) @ D.T
    on = codes != 0
    assert np.abs(slopes[on] - 0.1 * np.sign(codes[on])).max() < 5e-3
    assert np.abs(slopes).max() < 0.1 + 5e-3


def test_one_wild_cell_does_not_move_a_robust_code_much():
    D = atoms(32, K=8, p=20)
    X = signals(D, noise=0.01)
    plain = encode(X, D, alpha=0.01)
    wild = X.copy()
    wild[:, 3] += 50
    moved = {loss: np.abs(encode(wild, D, alpha=0.01, loss=loss) - plain).max() for loss in ("l2", "huber", "l1")}
    assert moved["huber"] < 0.2 * moved["l2"]
    assert moved["l1"] < 0.2 * moved["l2"]


# --- the kinds of data ----------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"alpha": 0.1}, {"nonzeros": 3}], ids=["lasso", "pursuit"])
@pytest.mark.parametrize(
    "kind",
    {
        "columns": np.asfortranarray,
        "every second": lambda X: np.repeat(X, 2, axis=0)[::2],
        "shards": lambda X: shards(X, (1, 3, 20)),
        "sparse": scipy.sparse.csr_array,
        "list": lambda X: X.tolist(),
    }.items(),
    ids=lambda kind: kind[0],
)
def test_rows_are_the_same_however_they_are_kept(how, kind):
    D = atoms(33)
    X = signals(D)
    X[np.abs(X) < 0.2] = 0
    np.testing.assert_allclose(encode(kind[1](X), D, **how), encode(X, D, **how), atol=1e-6)


@pytest.mark.parametrize("how", [{"alpha": 0.1}, {"nonzeros": 3}], ids=["lasso", "pursuit"])
def test_read_only_memory_maps_of_rows_and_atoms_are_read(how, tmp_path):
    D = atoms(34)
    X = signals(D)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "d.npy", D)
    before = (tmp_path / "x.npy").read_bytes()
    codes = encode(np.load(tmp_path / "x.npy", mmap_mode="r"), np.load(tmp_path / "d.npy", mmap_mode="r"), **how)
    np.testing.assert_array_equal(codes, encode(X, D, **how))
    assert (tmp_path / "x.npy").read_bytes() == before


def test_nothing_that_is_given_is_changed():
    D = atoms(35)
    X = signals(D)
    X[0, 0] = np.nan
    given = X.copy(), D.copy(), np.linspace(1, 2, K)
    sparse_encode(X, D, alpha=0.1, weights=given[2])
    np.testing.assert_array_equal(X, given[0])
    np.testing.assert_array_equal(D, given[1])
    np.testing.assert_array_equal(given[2], np.linspace(1, 2, K))


def test_whole_numbers_are_numbers():
    D = np.array([[1, 0, 0], [0, 2, 0], [0, 0, 1], [1, 1, 1]])
    X = np.array([[3, 0, 0], [0, 4, 0], [2, 2, 2]])
    expected = [[3, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 2]]
    np.testing.assert_allclose(encode(X, D, nonzeros=1), expected)


@pytest.mark.parametrize("how", [{"alpha": 0.1}, {"nonzeros": 3}, {"error": 0.4}], ids=["lasso", "count", "error"])
def test_single_precision_finds_the_same_objective(how):
    D = atoms(36, K=64, p=16)
    X = signals(D, m=200)
    coder = as_coder(**how)
    worth = []
    for dtype in (np.float32, np.float64):
        codes = sparse_encode(X.astype(dtype), D.astype(dtype), **how)
        assert codes.dtype == dtype
        worth.append((squares(X, D, codes.toarray()) / 2 + coder.penalties(codes)).mean())
    assert worth[0] == pytest.approx(worth[1], rel=1e-4)


def test_no_rows_one_atom_one_column():
    D = atoms(37)
    assert sparse_encode(signals(D, m=1), D[:1], alpha=0.1).shape == (1, 1)
    x, d = np.array([[3.0], [-0.05], [-1.0]]), np.array([[2.0]])
    np.testing.assert_allclose(encode(x, d, alpha=0.2, tol=1e-12), [[1.45], [0], [-0.45]], atol=1e-6)
    np.testing.assert_allclose(encode(x, d, nonzeros=1), [[1.5], [-0.025], [-0.5]])
    np.testing.assert_allclose(encode(x, d, alpha=0.2, positive=True, tol=1e-12), [[1.45], [0], [0]], atol=1e-6)


def test_a_start_is_taken_and_leads_to_the_same_place():
    D = atoms(38)
    X = signals(D)
    cold = sparse_encode(X, D, alpha=0.1, tol=1e-12)
    warm = encode(X, D, alpha=0.1, tol=1e-12, start=cold)
    np.testing.assert_allclose(warm, cold.toarray(), atol=1e-6)
    elsewhere = scipy.sparse.csr_array(np.random.default_rng(0).standard_normal(cold.shape))
    np.testing.assert_allclose(encode(X, D, alpha=0.1, tol=1e-12, start=elsewhere), cold.toarray(), atol=1e-5)


def test_rows_do_not_see_each_other():
    D = atoms(39)
    X = signals(D, m=50)
    X[7] *= 1e8
    for how in ({"alpha": 0.1}, {"nonzeros": 3}, {"error": 0.3}):
        together = encode(X, D, **how)
        alone = np.vstack([encode(x[None], D, **how) for x in X])
        others = np.arange(50) != 7  # of whose own code not all digits are known
        np.testing.assert_allclose(together[others], alone[others], atol=1e-6)


def test_units_do_not_matter():
    """x -> c x with alpha -> c alpha: a -> c a. d -> c d with alpha -> c alpha: a -> a / c."""
    D = atoms(40)
    X = signals(D)
    codes = encode(X, D, alpha=0.1, tol=1e-12)
    for unit in (1e-30, 1e-6, 1e6, 1e30):
        np.testing.assert_allclose(encode(unit * X, D, alpha=0.1 * unit, tol=1e-12) / unit, codes, atol=1e-5)
        np.testing.assert_allclose(encode(X, unit * D, alpha=0.1 * unit, tol=1e-12) * unit, codes, atol=1e-5)
        np.testing.assert_allclose(encode(unit * X, D, nonzeros=3) / unit, encode(X, D, nonzeros=3), atol=1e-8)


# --- a million rows -------------------------------------------------------------------------------

MILLION = """
import sys, threading, time
import numpy as np
from princomp import sparse_encode

def own():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

path, how = sys.argv[1], eval(sys.argv[2])
D = np.random.default_rng(0).standard_normal((128, 64))
D /= np.linalg.norm(D, axis=1, keepdims=True)
top, done = [own()], threading.Event()

def watch():
    while not done.wait(0.01):
        top.append(own())

watcher = threading.Thread(target=watch)
watcher.start()
X = np.load(path, mmap_mode="r")
codes = sparse_encode(X, D, **how)
done.set()
watcher.join()
assert codes.shape == (len(X), 128), codes.shape
for i in (0, len(X) // 3, len(X) - 1):
    again = sparse_encode(np.array(X[i : i + 1]), D, **how).toarray()
    assert np.allclose(codes[i : i + 1].toarray(), again, atol=1e-5)
print(max(top))
"""


@pytest.mark.soak
@pytest.mark.skipif("not __import__('pathlib').Path('/proc/self/status').exists()", reason="memory is read from /proc")
@pytest.mark.parametrize("how", ["dict(alpha=1.5)", "dict(nonzeros=5)"])
def test_a_million_rows_of_a_memory_map_are_coded_within_a_gigabyte(tmp_path, how):
    import os
    import subprocess
    import sys
    from pathlib import Path

    import princomp

    path = tmp_path / "million.npy"
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(1_000_000, 64))
    for at in range(0, len(X), 100_000):
        X[at : at + 100_000] = np.random.default_rng(at).standard_normal((100_000, 64))
    X.flush()
    source = str(Path(princomp.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", MILLION, str(path), how],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1e9
