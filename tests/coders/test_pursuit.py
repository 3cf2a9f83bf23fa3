"""Pursuit takes the atoms that its definition says, and its codes are least squares on them."""

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import orthogonal_mp_gram

from princomp._compiled import loops
from princomp.coders import pursuit
from princomp.coders.pursuit import Pursuit


def problem(seed=0, rows=40, features=12, atoms=30, unit=True, dtype=np.float64):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((atoms, features))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    if not unit:
        D *= rng.uniform(0.01, 10, (atoms, 1))
    return rng.standard_normal((rows, features)).astype(dtype), D.astype(dtype)


def statistics(X, D):
    return (D @ D.T)[None], X @ D.T, (X.astype(np.float64) ** 2).sum(axis=1)


def encode(X, D, **parameters):
    return Pursuit(**parameters).code(*statistics(X, D))


def by_definition(x, D, count, selection):
    """Atoms one after the other, an explicit least-squares fit for each candidate."""
    support, residual = [], x
    for _ in range(count):
        best, most = None, -np.inf
        for k in range(len(D)):
            if k in support:
                continue
            if selection == "omp":
                merit = abs(D[k] @ residual) / np.linalg.norm(D[k])
            else:
                a = np.linalg.lstsq(D[[*support, k]].T, x)[0]
                merit = -np.linalg.norm(x - a @ D[[*support, k]])
            if merit > most:
                best, most = k, merit
        support.append(best)
        a = np.linalg.lstsq(D[support].T, x)[0]
        residual = x - a @ D[support]
    code = np.zeros(len(D))
    code[support] = a
    return code


@pytest.fixture(params=["compiled", "slow twin"])
def both(request, monkeypatch):
    if request.param == "slow twin":
        monkeypatch.setattr(pursuit, "loops", lambda name: None)


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("unit", [True, False])
def test_codes_are_those_of_the_definition(both, selection, unit):
    X, D = problem(1, unit=unit)
    codes = encode(X, D, nonzeros=5, selection=selection)
    assert codes.has_sorted_indices
    assert (np.diff(codes.indptr) == 5).all()
    expected = np.array([by_definition(x, D, 5, selection) for x in X])
    np.testing.assert_allclose(codes.toarray(), expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize(("features", "atoms"), [(10, 17), (40, 100)])
def test_omp_equals_scikit_learn(features, atoms):
    X, D = problem(2, 60, features, atoms)
    G, c, _ = statistics(X, D)
    for count in (1, 3, 8):
        expected = orthogonal_mp_gram(G[0], c.T, n_nonzero_coefs=count).T
        codes = encode(X, D, nonzeros=count, selection="omp").toarray()
        assert ((codes != 0) == (expected != 0)).all()
        np.testing.assert_allclose(codes, expected, atol=1e-12)


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize(
    ("dtype", "share"),
    [*((np.float32, share) for share in (0.9, 0.1, 1e-2, 1e-4)), *((np.float64, 10.0**-i) for i in range(10))],
)
def test_the_error_asked_for_is_that_of_the_data(both, dtype, selection, share):
    X, D = problem(3, dtype=dtype)
    error = share * float(np.linalg.norm(X, axis=1).min())
    codes = encode(X, D, error=error, selection=selection)
    residual = np.linalg.norm(X.astype(np.float64) - codes.astype(np.float64) @ D.astype(np.float64), axis=1)
    assert (residual <= error).all()
    counts = np.diff(codes.indptr)
    assert (counts <= X.shape[1]).all()
    if share >= 1e-2 and dtype == np.float64:  # with one atom fewer it would not have been enough
        for i in np.flatnonzero(counts > 1)[:10]:
            fewer = encode(X[i : i + 1], D, nonzeros=int(counts[i]) - 1, selection=selection)
            assert np.linalg.norm(X[i] - fewer @ D) > error


def test_what_comes_first_ends_it(both):
    X, D = problem(4)
    error = 0.4 * float(np.linalg.norm(X, axis=1).mean())
    free = encode(X, D, error=error)
    capped = encode(X, D, error=error, nonzeros=3)
    short = np.diff(free.indptr) <= 3
    assert short.any()
    assert not short.all()
    np.testing.assert_allclose(capped[short].toarray(), free[short].toarray(), atol=1e-12)
    np.testing.assert_allclose(capped[~short].toarray(), encode(X[~short], D, nonzeros=3).toarray(), atol=1e-12)


def test_rows_within_the_error_take_no_atom(both):
    X, D = problem(5)
    norms = np.linalg.norm(X, axis=1)
    codes = encode(X, D, error=float(np.sort(norms)[20]))
    assert ((np.diff(codes.indptr) == 0) == (norms <= np.sort(norms)[20])).all()
    assert encode(np.zeros((3, 12)), D, nonzeros=4).nnz == 0
    assert encode(np.zeros((3, 12)), D, error=0.0).nnz == 0
    assert encode(np.zeros((0, 12)), D, nonzeros=4).shape == (0, 30)


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_atoms_than_dimensions_are_never_taken(both, selection, dtype):
    X, D = problem(6, features=5, dtype=dtype)
    for count in (5, 6, 29, 1000):
        codes = encode(X, D, nonzeros=count, selection=selection)
        assert np.diff(codes.indptr).max() == 5
        # the Gram matrix squares the condition of the support, so some digits go
        assert np.abs(codes @ D - X).max() <= 1e5 * np.finfo(dtype).eps * np.abs(X).max()


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_twins_and_zero_atoms_are_not_taken(both, selection, nonnegative):
    X, D = problem(7)
    twins = np.vstack([D, D * 3, np.zeros((2, 12)), D * (1 + 1e-13), -D])
    codes = encode(X, twins, nonzeros=12, selection=selection, nonnegative=nonnegative)
    assert np.isfinite(codes.data).all()
    for row in codes:
        directions = twins[row.indices] / np.linalg.norm(twins[row.indices], axis=1, keepdims=True)
        cosines = np.abs(directions @ directions.T) - np.eye(len(directions))
        assert cosines.max() < 1 - 1e-9
    assert encode(X, np.zeros((4, 12)), nonzeros=3).nnz == 0


@pytest.mark.parametrize("seed", [50, 70, 72, 259, 266])  # of 400, those that once did
def test_near_twins_do_not_make_room_for_more_atoms_than_dimensions(both, seed):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((24, 12))
    D = np.vstack([D, D + 1e-7 * rng.standard_normal((24, 12))])
    codes = encode(rng.standard_normal((20, 12)), D, nonzeros=48)
    assert np.diff(codes.indptr).max() <= 12


def test_an_exact_signal_takes_its_atoms_and_no_more(both):
    _, D = problem(8, features=40, atoms=60)
    truth = np.zeros((20, 60))
    rng = np.random.default_rng(8)
    for row in truth:
        row[rng.choice(60, 2, replace=False)] = rng.choice([-1, 1], 2) * rng.uniform(1, 2, 2)
    for parameters in ({"nonzeros": 7}, {"error": 0.0}, {"error": 1e-12}):
        codes = encode(truth @ D, D, **parameters)
        np.testing.assert_allclose(codes.toarray(), truth, atol=1e-13)


@pytest.mark.parametrize("of_x", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("of_atoms", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("how", [{"nonzeros": 4}, {"error": 0.5}])
def test_units_do_not_matter(both, of_x, of_atoms, how):
    X, D = problem(9, rows=8)
    scaled = {name: value * of_x if name == "error" else value for name, value in how.items()}
    codes = encode(X * of_x, D * of_atoms, **scaled)
    expected = encode(X, D, **how).toarray()
    np.testing.assert_allclose(codes.toarray() / of_x * of_atoms, expected, rtol=1e-11)


@pytest.mark.parametrize("selection", ["ols", "omp"])
def test_nonnegative_codes_are_least_squares_on_their_support_and_fall_with_the_count(both, selection):
    X, D = problem(10, features=10, atoms=25)
    before = (X**2).sum(axis=1)
    for count in range(1, 9):
        codes = encode(X, D, nonzeros=count, selection=selection, nonnegative=True)
        assert (codes.data > 0).all()
        assert (np.diff(codes.indptr) <= count).all()
        residual = ((X - codes @ D) ** 2).sum(axis=1)
        assert (residual <= before + 1e-12).all()
        before = residual
        for x, code in zip(X, codes):
            if code.nnz:
                np.testing.assert_allclose(code.data, nnls(D[code.indices].T, x)[0], atol=1e-10)


def test_nonnegative_pursuit_without_a_limit_is_nonnegative_least_squares(both):
    X, D = problem(11, features=10, atoms=8)
    codes = encode(X, D, nonzeros=8, nonnegative=True).toarray()
    np.testing.assert_allclose(codes, [nnls(D.T, x)[0] for x in X], atol=1e-10)


def test_rows_may_have_gram_matrices_of_their_own(both):
    X, D = problem(12, rows=6)
    rng = np.random.default_rng(12)
    weights = (rng.random(X.shape) < 0.7).astype(float)
    weights[5, 3] = 0.0
    grams = np.einsum("kp,ip,lp->ikl", D, weights, D)
    codes = Pursuit(nonzeros=3).code(grams, (X * weights) @ D.T, (X**2 * weights).sum(axis=1))
    for x, seen, code in zip(X, weights > 0, codes):
        expected = by_definition(x[seen], D[:, seen], 3, "ols")
        np.testing.assert_allclose(code.toarray(), expected, atol=1e-10)


@pytest.mark.parametrize("selection", ["ols", "omp"])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("atoms", [1, 7, 8, 33, 100])
def test_the_compiled_loop_equals_its_twin(monkeypatch, selection, nonnegative, atoms):
    X, D = problem(13, features=16, atoms=atoms, unit=False)
    X[0] = 0.0
    parameters = {"nonzeros": 6, "error": 1.5, "selection": selection, "nonnegative": nonnegative}
    fast = encode(X, D, **parameters)
    single = encode(X.astype(np.float32), D.astype(np.float32), **parameters)
    monkeypatch.setattr(pursuit, "loops", lambda name: None)
    slow = encode(X, D, **parameters)
    assert (fast.indptr == slow.indptr).all()
    assert (fast.indices == slow.indices).all()
    np.testing.assert_allclose(fast.data, slow.data, rtol=1e-11)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), slow.toarray(), atol=1e-4 * np.abs(slow.data).max(initial=0))


def test_codes_are_accurate_where_atoms_are_nearly_dependent(both):
    rng = np.random.default_rng(14)
    base = rng.standard_normal((3, 20))
    D = np.vstack([base, base + 1e-4 * rng.standard_normal((3, 20))])
    X = rng.standard_normal((10, 6)) @ D
    codes = encode(X, D, nonzeros=6)
    slope = (X - codes @ D) @ D.T
    assert np.abs(slope).max() <= 1e-12 * np.abs(X).max() * np.abs(D).max() * 20


def test_a_call_ends_in_time_for_an_interrupt(monkeypatch):
    """Rows are coded in several calls where there is much to do; the answer is the same."""
    X, D = problem(15, rows=200)
    expected = encode(X, D, nonzeros=5)
    inner = loops("coding_pursuit")._pursue
    calls = []
    monkeypatch.setattr(loops("coding_pursuit"), "_pursue", lambda *given: calls.append(1) or min(inner(*given), 7))
    codes = encode(X, D, nonzeros=5)
    assert len(calls) == 29
    assert (codes != expected).nnz == 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "needs an end"),
        ({"nonzeros": 0}, "whole number"),
        ({"nonzeros": 2.5}, "whole number"),
        ({"error": -1.0}, "at least 0"),
        ({"error": np.nan}, "finite"),
        ({"nonzeros": 1, "selection": "mp"}, "'ols' or 'omp'"),
    ],
)
def test_what_makes_no_sense_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        Pursuit(**parameters)


def test_a_pursuit_promises_no_minimum_and_has_no_price():
    X, D = problem(16)
    assert not Pursuit(nonzeros=2).optimal
    assert not Pursuit(nonzeros=2).penalties(encode(X, D, nonzeros=2)).any()
