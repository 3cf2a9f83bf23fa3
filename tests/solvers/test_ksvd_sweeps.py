"""A sweep of K-SVD improves atoms and coefficients in turn, exactly or nearly so, and leaves zeros alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from princomp._compiled import loops
from princomp.coders.pursuit import Pursuit
from princomp.solvers import ksvd_sweeps
from princomp.solvers.ksvd_sweeps import sweep


def problem(rows=300, features=10, atoms=20, seed=0):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((atoms, features))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    X = rng.standard_normal((rows, features))
    codes = Pursuit(nonzeros=3).code((D @ D.T)[None], X @ D.T, (X**2).sum(axis=1))
    return X, codes, D


def by_definition(X, codes, D, exact):
    """One atom after the other, with an explicit residual and an explicit SVD."""
    A, D = codes.toarray(), D.copy()
    for k in range(len(D)):
        w = A[:, k] != 0
        if not w.any():
            continue
        E = X[w] - A[w] @ D + np.outer(A[w, k], D[k])
        if exact:
            U, s, Vt = np.linalg.svd(E)
            sign = np.sign(Vt[0] @ D[k])
            D[k], A[w, k] = sign * Vt[0], sign * s[0] * U[:, 0]
        else:
            D[k] = A[w, k] @ E
            D[k] /= np.linalg.norm(D[k])
            A[w, k] = E @ D[k]
    return D, A


@pytest.fixture(params=["compiled", "slow twin"])
def both(request, monkeypatch):
    if request.param == "slow twin":
        monkeypatch.setattr(ksvd_sweeps, "loops", lambda name: None)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("rows", "features"), [(300, 10), (40, 33), (30, 1)])
def test_a_sweep_is_that_of_the_definition(both, exact, rows, features):
    X, codes, D = problem(rows, features)
    given = codes.toarray(), D.copy(), X.copy()
    new, moved = sweep(X, codes, D, exact=exact)
    expected, coefficients = by_definition(X, codes, D, exact)
    np.testing.assert_allclose(new, expected, atol=1e-9)
    np.testing.assert_allclose(moved.toarray(), coefficients, atol=1e-9)
    assert all((now == before).all() for now, before in zip((codes.toarray(), D, X), given))


@pytest.mark.parametrize("exact", [True, False])
def test_the_error_falls_atoms_are_unit_vectors_and_zeros_stay(both, exact):
    X, codes, D = problem(seed=1)
    error = np.linalg.norm(X - codes @ D)
    for _ in range(5):
        D, new = sweep(X, codes, D, exact=exact)
        assert (new.indices == codes.indices).all()
        codes = new
        np.testing.assert_allclose(np.linalg.norm(D, axis=1), 1, rtol=1e-12)
        now = np.linalg.norm(X - codes @ D)
        assert now < error
        error = now


@pytest.mark.parametrize("exact", [True, False])
def test_unused_atoms_lengths_units_and_rows_that_fit_exactly(both, exact):
    X, codes, D = problem(seed=2)
    keep = codes.toarray()
    keep[:, 4] = 0
    codes = sp.csr_array(keep)
    new, moved = sweep(X, codes, D, exact=exact)
    assert (new[4] == D[4]).all()
    lengths = np.linspace(0.5, 2, len(D))[:, None]
    longer, _ = sweep(X, sp.csr_array(keep / lengths[:, 0]), D * lengths, exact=exact)
    used = np.arange(len(D)) != 4
    np.testing.assert_allclose(longer[used], new[used], atol=1e-9)
    for unit in (1e-120, 1e120):
        same, scaled = sweep(X * unit, codes * unit, D, exact=exact)
        np.testing.assert_allclose(same, new, atol=1e-9)
        np.testing.assert_allclose(scaled.toarray() / unit, moved.toarray(), atol=1e-9)
    fit, _ = sweep(codes @ D, codes, D, exact=exact)
    np.testing.assert_allclose(fit, D, atol=1e-9)
    zero = codes.copy()
    zero.data[:] = 0.0  # stored, but nothing
    still, nothing = sweep(np.zeros_like(X), zero, D, exact=exact)
    assert (still == D).all()
    assert not nothing.data.any()


def test_large_atoms_are_found_by_iteration(monkeypatch):
    X, codes, D = problem(seed=3)
    expected, coefficients = sweep(X, codes, D, exact=True)
    monkeypatch.setattr(ksvd_sweeps, "LARGEST", 3)
    found, moved = sweep(X, codes, D, exact=True)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    np.testing.assert_allclose(moved.toarray(), coefficients.toarray(), atol=1e-9)


def test_single_precision_and_other_layouts_are_taken():
    X, codes, D = problem(seed=4)
    expected, _ = sweep(X, codes, D, exact=False)
    found, _ = sweep(np.asfortranarray(X, np.float32), codes.astype(np.float32), D.astype(np.float32), exact=False)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert loops("ksvd_pairs") is not None
