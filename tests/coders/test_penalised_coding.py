"""Certificates of codes with any penalty: gaps are bounds, and steps are zero where codes are stationary alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from princomp import sparse_encode
from princomp.certificates import coding_gaps, penalty_gaps, penalty_steps
from princomp.penalties import L0, L1, ElasticNet, Groups, Lp, NonNegative, OverlappingGroups, Tree

K, P, N = 12, 8, 9
NORMS = {
    "l1": L1(0.3),
    "groups": Groups(0.3, [[0, 1, 2], [3, 4], [5, 6, 7, 8], [9, 10, 11]]),
    "tree": Tree(0.2, [list(range(12)), [1, 2, 3, 4], [2, 3], [5, 6, 7, 8, 9], [6], [9], [11]]),
    "overlapping": OverlappingGroups(0.2, [[0, 1, 2], [2, 3, 4, 5], [5, 6, 7, 8, 9, 10, 11]]),
}
NORMS |= {f"{name}, not negative": NonNegative(NORMS[name]) for name in ("l1", "tree")}


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    return rng.normal(size=(K, P)) * rng.uniform(0.5, 2, (K, 1)) / np.sqrt(P), rng.normal(size=(N, P))


def values(penalty, D, X, A):
    return 0.5 * (np.nan_to_num(X - A @ D) ** 2).sum(axis=1) + [penalty.value(a) for a in A]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing cells"])
@pytest.mark.parametrize("name", NORMS)
def test_gaps_are_small_for_minimisers_and_bounds_for_all_others(name, missing, problem):
    D, X = problem
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.2 * missing, np.nan, X)
    penalty = NORMS[name]
    codes = sparse_encode(X, D, penalty=penalty, tol=1e-10)
    unit = 0.5 * np.nansum(X**2, axis=1)
    close = 1e-7 if name == "overlapping" else 1.01e-10  # its prox is good to 1e-10, a step to as many times L
    assert (penalty_gaps(X, D, codes, penalty) <= close).all()
    least = values(penalty, D, X, codes.toarray())
    rng = np.random.default_rng(2)
    for size in (1e-3, 0.1, 1.0):
        other = codes.toarray() + size * rng.normal(size=codes.shape)
        other = np.abs(other) if isinstance(penalty, NonNegative) else other
        gaps = penalty_gaps(X, D, sp.csr_array(other), penalty)
        assert (gaps * unit >= values(penalty, D, X, other) - least - 1e-9).all()
        assert np.isfinite(gaps).all()
    if isinstance(penalty, NonNegative):
        assert np.isinf(penalty_gaps(X, D, -1.0 - codes.toarray(), penalty)).all()


def test_the_gap_of_the_lasso_is_that_of_its_own_certificate(problem):
    D, X = problem
    A = sparse_encode(X, D, alpha=0.3).toarray() + 0.01
    np.testing.assert_allclose(penalty_gaps(X, D, A, L1(0.3)), coding_gaps(X, D, A, alpha=0.3), rtol=1e-9)


def test_no_gap_where_there_is_no_bound(problem):
    D, X = problem
    A = np.zeros((N, K))
    assert np.isinf(penalty_gaps(X, D, A, L0(0.1))).all()
    assert np.isinf(penalty_gaps(X, D, A, Groups(0.3, [[0, 1]]))).all()
    assert (penalty_gaps(0 * X, D, A, NORMS["tree"]) == 0).all()
    assert penalty_gaps(X[:0], D, A[:0], NORMS["tree"]).shape == (0,)


@pytest.mark.parametrize("penalty", [L0(0.1), Lp(0.2, 0.5), ElasticNet(0.2, 0.1), NORMS["tree"]], ids=repr)
def test_steps_tell_codes_that_stay_from_others(penalty, problem):
    D, X = problem
    codes = sparse_encode(X, D, penalty=penalty, tol=1e-10)
    assert (penalty_steps(X, D, codes, penalty) <= 1e-6).all()
    A = codes.toarray()
    for wrong in (0.99 * A, A + 0.3, np.roll(A, 1, axis=1)):
        assert (penalty_steps(X, D, wrong, penalty) > 1e-4).all()
    nonnegative = NonNegative(penalty)
    assert np.isinf(penalty_steps(X, D, -np.abs(A) - 1, nonnegative)).all()
