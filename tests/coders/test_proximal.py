"""Proximal: codes are minimisers, by a dual bound, by slow solvers and by brute force; local where nothing more is."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from princomp._compiled import coding_entries, coding_nested
from princomp.coders import nested, proximal
from princomp.coders.proximal import Proximal
from princomp.penalties import (
    L0,
    L1,
    Box,
    ElasticNet,
    Groups,
    L1Ball,
    L2Ball,
    Lp,
    NonNegative,
    OverlappingGroups,
    Sphere,
    Tree,
    Zero,
)

K, P = 12, 8
NESTED = [list(range(12)), [1, 2, 3, 4], [2, 3], [5, 6, 7, 8, 9], [6], [8, 9], [9], [0], [10], [11]]


class Own:
    """alpha |w|_1 as a user may write it: no values, no times."""

    def value(self, w):
        return 0.3 * np.abs(w).sum()

    def prox(self, w, step):
        return np.sign(w) * np.maximum(np.abs(w) - 0.3 * step, 0)


CONVEX = {
    "l1": L1(0.3),
    "elastic net": ElasticNet(0.3, 0.2),
    "groups": Groups(0.3, [[0, 1, 2], [3, 4], [5, 6, 7, 8], [9, 10, 11]]),
    "groups, some free": Groups(0.3, [[0, 1, 2], [3, 4]]),
    "tree": Tree(0.2, NESTED),
    "overlapping": OverlappingGroups(0.2, [[0, 1, 2], [2, 3, 4, 5], [5, 6, 7, 8, 9, 10, 11]]),
    "box": Box(-0.3, 0.5),
    "ball": L2Ball(0.7),
    "l1 ball": L1Ball(0.9),
}
CONVEX |= {f"{name}, not negative": NonNegative(CONVEX[name]) for name in ("l1", "tree", "ball")}
LOCAL = {"l0": L0(0.1), "lp": Lp(0.2, 0.5), "lp, not negative": NonNegative(Lp(0.2, 0.7)), "own": Own()}
LOCAL |= {"sphere": Sphere(1.0)}
any_penalty = pytest.mark.parametrize("name", [name for name in [*CONVEX, *LOCAL] if name != "overlapping"])


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    D = rng.normal(size=(K, P)) * rng.uniform(0.5, 2, (K, 1)) / np.sqrt(P)
    return D, rng.normal(size=(12, P))


def encode(coder, D, X, start=None):
    return coder.code((D @ D.T)[None], X @ D.T, (X**2).sum(axis=1), start)


def objectives(penalty, D, X, codes):
    A = codes.toarray() if sp.issparse(codes) else codes
    return 0.5 * ((X - A @ D) ** 2).sum(axis=1) + [penalty.value(a) for a in A]


def slow(penalty, D, X, steps=2000):
    """Plain proximal gradient, a step after the other."""
    L, A = np.linalg.norm(D, 2) ** 2, np.zeros((len(X), len(D)))
    for _ in range(steps):
        A = penalty.prox((A - (A @ D - X) @ D.T / L).T, 1 / L).T
    return A


@pytest.mark.parametrize("name", CONVEX)
def test_convex_codes_are_those_of_plain_steps_without_end(name, problem):
    D, X = problem
    X = X[:3]
    penalty = CONVEX[name]
    codes = encode(Proximal(penalty, tol=1e-10), D, X)
    expected = slow(penalty, D, X, 100 if "overlapping" in name else 2000)
    unit = 0.5 * (X**2).sum(axis=1)
    gap = objectives(penalty, D, X, codes) - objectives(penalty, D, X, expected)
    assert (gap <= 1e-9 * unit).all()
    usual = objectives(penalty, D, X, encode(Proximal(penalty), D, X))
    assert (usual - objectives(penalty, D, X, codes) <= 1e-6 * unit).all()


@pytest.mark.parametrize("name", LOCAL)
def test_local_codes_stay_under_steps_and_are_no_worse_than_the_start(name, problem):
    D, X = problem
    penalty, L = LOCAL[name], 2 * np.linalg.norm(D, 2) ** 2
    start = sp.csr_array(penalty.prox(np.random.default_rng(1).normal(size=(K, len(X))), 1.0).T)
    for begin in (None, start):
        codes = encode(Proximal(penalty, tol=1e-9), D, X, begin)
        A = codes.toarray()
        again = penalty.prox((A - (A @ D - X) @ D.T / L).T, 1 / L).T
        np.testing.assert_allclose(again, A, atol=1e-7)
        if begin is not None:
            assert (objectives(penalty, D, X, codes) <= objectives(penalty, D, X, start) + 1e-12).all()


@any_penalty
def test_a_gram_matrix_of_its_own_for_each_row_changes_nothing(name, problem):
    D, X = problem
    coder = Proximal((CONVEX | LOCAL)[name], tol=1e-9)
    c, squares = X @ D.T, (X**2).sum(axis=1)
    one = coder.code((D @ D.T)[None], c, squares)
    each = coder.code(np.repeat((D @ D.T)[None], len(X), axis=0), c, squares)
    np.testing.assert_allclose(
        objectives(coder.penalty, D, X, each), objectives(coder.penalty, D, X, one), rtol=1e-8, atol=1e-10
    )


def test_each_row_for_itself_in_tiles_of_any_size(problem, monkeypatch):
    D, X = problem
    coder = Proximal(CONVEX["tree"], tol=1e-12)
    whole = encode(coder, D, X).toarray()
    monkeypatch.setattr(proximal, "TILE", 3 * K)
    np.testing.assert_allclose(encode(coder, D, X).toarray(), whole, atol=1e-5)
    np.testing.assert_allclose(encode(coder, D, X[7:8]).toarray(), whole[7:8], atol=1e-5)


@any_penalty
def test_the_objective_never_rises(name, problem):
    D, X = problem
    penalty = (CONVEX | LOCAL)[name]
    work = proximal._Columns(penalty, (D @ D.T)[None], X @ D.T, (X**2).sum(axis=1), None)
    before = work.F
    for _ in range(60):
        work.step(0.0, look=False)
        assert (before >= work.F).all()
        np.testing.assert_allclose(work.F, objectives(penalty, D, X, work.A.T), rtol=1e-12)
        before = work.F


@pytest.mark.parametrize("name", ["l1", "groups", "tree", "overlapping"])
def test_the_gap_bounds_the_distance_to_the_minimum(name, problem):
    D, X = problem
    penalty = CONVEX[name]
    least = objectives(penalty, D, X, encode(Proximal(penalty, tol=1e-12), D, X))
    for tol in (0.1, 1e-2, 1e-3, 1e-5):
        found = objectives(penalty, D, X, encode(Proximal(penalty, tol=tol), D, X))
        assert (found - least <= tol * 0.5 * (X**2).sum(axis=1)).all()


def test_penalties_of_rows(problem):
    D, X = problem
    for name, penalty in (CONVEX | LOCAL).items():
        codes = encode(Proximal(penalty, tol=1e-3), D, X[:3])
        found = Proximal(penalty).penalties(codes)
        np.testing.assert_allclose(found, [penalty.value(a) for a in codes.toarray()], rtol=1e-12, err_msg=name)
        assert Proximal(penalty).optimal == (name in CONVEX)
    assert Proximal(L1(1.0)).penalties(sp.csr_array((0, 3))).shape == (0,)


def test_zeros_no_rows_zero_atoms_and_huge_weights(problem):
    D, X = problem
    tree = CONVEX["tree"]
    assert encode(Proximal(tree), D, np.zeros((3, P))).nnz == 0
    assert encode(Proximal(tree), D, X[:0]).shape == (0, K)
    assert encode(Proximal(tree), 0.0 * D, X).nnz == 0
    assert encode(Proximal(tree.times(1e9)), D, X).nnz == 0
    lame = np.where(np.arange(K)[:, None] == 9, 0.0, D)
    assert (encode(Proximal(tree), lame, X).toarray()[:, 9] == 0).all()
    least_squares = encode(Proximal(Zero(), tol=1e-12), D[:5], X).toarray()
    np.testing.assert_allclose(least_squares, np.linalg.lstsq(D[:5].T, X.T, rcond=None)[0].T, atol=1e-5)


def test_single_precision_rows_get_single_precision_codes(problem):
    D, X = problem
    codes = Proximal(CONVEX["tree"]).code(
        (D @ D.T)[None].astype(np.float32), (X @ D.T).astype(np.float32), (X**2).sum(axis=1).astype(np.float32)
    )
    assert codes.dtype == np.float32
    assert codes.has_sorted_indices
    double = objectives(CONVEX["tree"], D, X, encode(Proximal(CONVEX["tree"]), D, X))
    np.testing.assert_allclose(objectives(CONVEX["tree"], D, X, codes.astype(float)), double, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_units_do_not_matter(scale, problem):
    D, X = problem
    whole = encode(Proximal(CONVEX["tree"], tol=1e-10), D, X).toarray()
    other = encode(Proximal(CONVEX["tree"].times(scale), tol=1e-10), D, scale * X).toarray()
    np.testing.assert_allclose(other / scale, whole, atol=1e-5)


def test_too_few_steps_are_said(problem):
    D, X = problem
    with pytest.warns(ConvergenceWarning, match="of 12 codes are not as close as tol=1e-10 asks"):
        encode(Proximal(L1(0.1), tol=1e-10, max_iter=2), D, X)


def test_what_is_no_parameter_is_refused():
    with pytest.raises(TypeError, match=r"princomp\.penalties"):
        Proximal("l1")
    with pytest.raises(ValueError, match="tol"):
        Proximal(L1(1.0), tol=-1.0)
    with pytest.raises(ValueError, match="max_iter"):
        Proximal(L1(1.0), max_iter=0)


# --- l0 and l_p -------------------------------------------------------------------------------


ENTRIES = {"l0": L0(0.1), "lp": Lp(0.2, 0.5), "lp, p = .9": Lp(0.2, 0.9), "l0, not negative": NonNegative(L0(0.1))}


@pytest.mark.parametrize("name", ENTRIES)
def test_no_change_of_a_single_entry_lowers_the_objective(name, problem):
    D, X = problem
    penalty = ENTRIES[name]
    A = encode(Proximal(penalty, tol=1e-9), D, X).toarray()
    assert 0 < np.count_nonzero(A) < A.size
    least = objectives(penalty, D, X, A)
    for k in range(K):
        for entry in np.linspace(-3, 3, 61):
            other = A.copy()
            other[:, k] = entry
            assert (objectives(penalty, D, X, other) >= least - 1e-12).all()
    slopes = (X - A @ D) @ D.T
    power = getattr(penalty, "p", None)
    price = 0.2 * power * np.abs(np.where(A == 0, 1, A)) ** (power - 1) * np.sign(A) if power else 0.0
    np.testing.assert_allclose(np.where(A == 0, 0.0, slopes - price), 0.0, atol=1e-7)


@pytest.mark.parametrize("name", ENTRIES)
def test_loops_compiled_or_not_agree(name, problem, monkeypatch):
    D, X = problem
    coder = Proximal(ENTRIES[name])
    compiled = encode(coder, D, X).toarray()
    for loop in ("entry_codes", "_descend", "_settle", "_nearest", "_value"):
        monkeypatch.setattr(coding_entries, loop, getattr(coding_entries, loop).py_func)
    np.testing.assert_allclose(encode(coder, D, X).toarray(), compiled, atol=1e-9)


def test_a_start_that_costs_less_is_kept_and_atoms_of_zeros_are_left_out(problem):
    D, X = problem
    D = np.where(np.arange(K)[:, None] == 4, 0.0, D)
    start = np.zeros((len(X), K))
    start[:, 4], start[:, 2] = 1.0, 5.0
    codes = encode(Proximal(L0(0.1), tol=1e-12), D, X, sp.csr_array(start))
    assert not codes.toarray()[:, 4].any()
    again = encode(Proximal(L0(0.1), tol=1e-12), D, X, codes)
    np.testing.assert_allclose(again.toarray(), codes.toarray(), atol=1e-7)


@pytest.mark.parametrize("penalty", [L0(1e-9), Lp(1e-9, 0.5), L0(0.0)], ids=repr)
def test_hardly_any_price_leaves_least_squares(penalty, problem):
    D, X = problem
    codes = encode(Proximal(penalty), D[:6], X).toarray()
    np.testing.assert_allclose(codes, np.linalg.lstsq(D[:6].T, X.T, rcond=None)[0].T, atol=1e-4)


# --- groups and trees ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["groups", "tree", "tree, not negative"])
def test_working_sets_compiled_or_not_find_what_steps_over_all_atoms_find(name, problem, monkeypatch):
    D, X = problem
    penalty = CONVEX[name]
    given = ((D @ D.T)[None], X @ D.T, (X**2).sum(axis=1), None)
    expected, settled = proximal._Columns(penalty, *given).minimise(1e-12, 10_000)
    assert settled.all()
    for few in (32, 1):
        monkeypatch.setattr(coding_nested, "ENTER", few)  # seen by the loops that are not compiled
        for loop in ("", "_search", "_solve", "_gap", "_part", "_polar", "_value", "_shrink", "nested_codes"):
            if loop and few == 1:
                monkeypatch.setattr(coding_nested, loop, getattr(coding_nested, loop).py_func)
        codes, settled = nested.search(nested.nest_of(penalty, K), *given, 1e-12)
        assert settled.all()
        assert 0 < np.count_nonzero(codes) < codes.size
        np.testing.assert_allclose(codes, expected.T, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_codes_with_random_trees_have_a_small_gap(seed):
    """A dual point, by the definition: the residual, shortened until the prox of its slopes is zero."""
    rng = np.random.default_rng(seed)
    atoms, features = 40, 15
    groups = [list(range(a, min(atoms, a + size))) for size in (40, 20, 4, 2) for a in range(0, atoms, size)]
    tree = Tree(0.05, groups, rng.uniform(0.2, 2.0, len(groups)))
    D, X = rng.normal(size=(atoms, features)), rng.normal(size=(20, features))
    codes = encode(Proximal(tree), D, X)
    assert codes.nnz > 0
    for x, a, value in zip(X, codes.toarray(), objectives(tree, D, X, codes)):
        r = x - a @ D
        low, high = 0.0, 2.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if not tree.prox(middle * (D @ r), 1.0).any() else (low, middle)
        assert value - (low * x @ r - low**2 / 2 * r @ r) <= 1.0001e-6 * (x @ x) / 2
