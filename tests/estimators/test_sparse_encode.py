"""`sparse_encode`: any storage, threads and blocks give the same codes, and what is wrong is said in words."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import sparse_encode as peer
from threadpoolctl import threadpool_limits

from princomp import sparse_encode
from princomp.certificates import coding_gaps
from princomp.coders import blocks, cells
from princomp.data import as_rows
from princomp.estimators import sparse_coding
from storages import STORAGES


def problem(n=300, p=15, K=40, seed=0):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((K, p))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    A = rng.standard_normal((n, K)) * (rng.random((n, K)) < 0.1)
    return A @ D + 0.05 * rng.standard_normal((n, p)), D


def test_the_codes_are_certified_and_those_of_a_peer():
    X, D = problem()
    codes = sparse_encode(X, D, alpha=0.2)
    assert isinstance(codes, sp.csr_array)
    assert codes.shape == (300, 40)
    assert codes.has_sorted_indices
    assert coding_gaps(X, D, codes, alpha=0.2).max() <= 1e-6
    exact = sparse_encode(X, D, alpha=0.2, tol=1e-12).toarray()
    np.testing.assert_allclose(exact, peer(X, D, algorithm="lasso_lars", alpha=0.2, max_iter=1000), atol=1e-7)


def test_parameters_reach_the_coder():
    X, D = problem()
    how = {"alpha": 0.2, "l2": 0.3, "weights": np.linspace(0.5, 2.0, 40)}
    codes = sparse_encode(X, D, positive=True, **how)
    assert (codes.data > 0).all()
    assert coding_gaps(X, D, codes, nonnegative=True, **how).max() <= 1e-6
    few = sparse_encode(X, D, nonzeros=3)
    assert np.diff(few.indptr).max() == 3
    near = sparse_encode(X, D, error=0.3)
    assert np.linalg.norm(X - near @ D, axis=1).max() <= 0.3 * (1 + 1e-9)
    assert coding_gaps(X, D, codes, alpha=0.2).max() > 1e-3  # of another problem


@pytest.mark.parametrize("kind", [kind for kind in STORAGES if kind != "spark"])
def test_every_storage_gives_the_same_codes(kind, tmp_path):
    X, D = problem()
    usual = sparse_encode(X, D, alpha=0.2).toarray()
    found = sparse_encode(STORAGES[kind](X, tmp_path), D, alpha=0.2)
    if kind == "dask":
        assert hasattr(found, "compute")  # lazy
        found = sp.csr_array(found.compute(scheduler="synchronous"))
    np.testing.assert_allclose(found.toarray(), usual, atol=1e-9)


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(sparse_coding, "BLOCK_BYTES", 2**12)
    X, D = problem()
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            found.append(sparse_encode(X, D, alpha=0.2))
    for other in found[1:]:
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(other, part), getattr(found[0], part))


@pytest.mark.parametrize("how", [{}, {"nonzeros": 3}, {"penalty": "l1", "start": "itself"}])
def test_blocks_and_tiles_do_not_matter(how, monkeypatch):
    X, D = problem()
    usual = sparse_encode(X, D, alpha=0.2, **{key: value for key, value in how.items() if key != "start"})
    if "start" in how:
        how = {**how, "start": usual}
    for rows, tile in ((7, 16), (64, 20), (1000, 16)):
        monkeypatch.setattr(blocks, "TILE_ROWS", tile)
        monkeypatch.setattr(blocks, "TILE_BYTES", 1)
        found = sparse_encode(as_rows(X, block_rows=rows), D, alpha=0.2, **how)
        np.testing.assert_allclose(found.toarray(), usual.toarray(), atol=1e-9)


def test_sparse_rows_are_never_made_dense(monkeypatch):
    X, D = problem()
    X = sp.csr_array(X * (np.abs(X) > 0.3))
    usual = sparse_encode(X.toarray(), D, alpha=0.2).toarray()
    monkeypatch.setattr(sp.csr_array, "toarray", lambda self: pytest.fail("made dense"))
    found = sparse_encode(X, D, alpha=0.2)
    monkeypatch.undo()
    np.testing.assert_allclose(found.toarray(), usual, atol=1e-9)


def test_single_precision_and_whole_numbers():
    X, D = problem()
    exact = sparse_encode(X, D, alpha=0.2).toarray()
    single = sparse_encode(X.astype(np.float32), D.astype(np.float32), alpha=0.2)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.toarray(), exact, atol=1e-4)
    whole = np.rint(10 * X).astype(np.int8)
    np.testing.assert_array_equal(sparse_encode(whole, D).toarray(), sparse_encode(whole.astype(float), D).toarray())


def test_odd_rows_and_dictionaries():
    X, D = problem()
    X[4] = 0.0
    X[5] = 1.0
    codes = sparse_encode(X, D, alpha=0.2)
    assert codes[[4]].nnz == 0
    assert coding_gaps(X, D, codes, alpha=0.2).max() <= 1e-6
    assert sparse_encode(X, D, alpha=1e6).nnz == 0
    np.testing.assert_allclose(sparse_encode(X, D, alpha=0.0) @ D, X, atol=1e-4)  # 40 atoms span all 15 features
    assert sparse_encode(X[:0], D).shape == (0, 40)
    assert sparse_encode(X, D[:1]).shape == (300, 1)
    assert sparse_encode(X, np.zeros((3, 15))).nnz == 0
    np.testing.assert_array_equal(
        sparse_encode(X, sp.csr_array(D), alpha=0.2).toarray(), codes.toarray()
    )  # a dictionary of few nonzeros
    np.testing.assert_allclose(  # Haar's, say, times any constant
        sparse_encode(X, 100 * D, alpha=20.0).toarray() * 100, codes.toarray(), atol=1e-9
    )


def test_missing_cells_are_left_out():
    X, D = problem(n=40)
    X[:20, 3] = np.nan
    X[25] = np.nan
    codes = sparse_encode(X, D, alpha=0.2)
    there = np.arange(15) != 3
    np.testing.assert_allclose(
        codes[:20].toarray(), sparse_encode(X[:20, there], D[:, there], alpha=0.2).toarray(), atol=1e-6
    )
    assert codes[[25]].nnz == 0
    np.testing.assert_allclose(
        codes[26:].toarray(), cells.code_cells(X[26:], D, sparse_coding.as_coder(alpha=0.2)).toarray(), atol=1e-9
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"dictionary": np.ones((4, 3))}, ValueError, "X has 15 features, but the atoms of the dictionary have 3"),
        ({"dictionary": np.ones((0, 15))}, ValueError, "no atoms"),
        ({"dictionary": np.full((2, 15), np.nan)}, ValueError, "dictionary contains NaN or infinity"),
        ({"dictionary": np.full((2, 15), 1e200)}, ValueError, "Divide the dictionary by a constant"),
        ({"dictionary": np.ones(15)}, ValueError, "Expected 2D array"),
        ({"dictionary": None}, TypeError, "dictionary is None"),
        ({"X": np.full((2, 15), np.inf)}, ValueError, "X contains infinity"),
        ({"X": np.full((2, 15), 1e200)}, ValueError, "squares overflow"),
        ({"alpha": -1.0}, ValueError, "alpha must be a finite number"),
        ({"weights": np.ones(3)}, ValueError, "40 atoms, but 3 weights"),
        ({"penalty": "l3"}, ValueError, "penalty must be one of"),
        ({"start": np.ones((2, 2))}, ValueError, r"shape of the codes, \(300, 40\), got \(2, 2\)"),
    ],
)
def test_what_is_wrong_is_said(change, error, words):
    X, D = problem()
    given = {"X": X, "dictionary": D, "alpha": 0.2, **change}
    with pytest.raises(error, match=words):
        sparse_encode(given.pop("X"), given.pop("dictionary"), **given)


def test_a_start_is_not_for_data_on_workers(tmp_path):
    X, D = problem()
    with pytest.raises(ValueError, match="not with data on workers"):
        sparse_encode(STORAGES["dask"](X, tmp_path), D, start=sp.csr_array((300, 40)))
