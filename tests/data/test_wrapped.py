"""Rows that hold others, changed: some columns, some rows, other units; and what `map` gives on any storage."""

import os

import numpy as np
import pytest
import scipy.sparse

import row_functions
from princomp import PCA, ProbabilisticPCA
from princomp.data import Centered, as_rows, statistics
from princomp.data.outputs import Outputs, Together
from princomp.data.rows import Rows
from princomp.data.wrapped import Wrapped, columns, scaled, subset

N, P = 50, 5
STORAGES = ("array", "shards", "csr", "dask")


@pytest.fixture
def X():
    X = np.random.default_rng(0).normal(size=(N, P)) * [5, 4, 3, 2, 1] + [9, -3, 0, 1, 100]
    X[np.random.default_rng(1).random((N, P)) < 0.3] = 0.0
    return X


@pytest.fixture
def stored(request):
    """stored(X, kind): its rows, in blocks of seven at the most, with the names a, b, ..."""

    def store(X, kind):
        if kind == "dask":
            request.getfixturevalue("dask_client")
            rows = as_rows(pytest.importorskip("dask.array").from_array(X, chunks=(7, 2)))
        elif kind == "shards":
            rows = as_rows([X[:20], X[20:21], X[21:]], block_rows=7)
        else:
            rows = as_rows(scipy.sparse.csr_array(X) if kind == "csr" else X, block_rows=7)
        rows.names = tuple("abcdefgh"[: X.shape[1]])
        return rows

    return store


def whole(rows):
    """All blocks, one below the other, as `block` gives them."""
    blocks = [rows.block(i) for i in range(len(rows.offsets) - 1)]
    return np.concatenate([block if isinstance(block, np.ndarray) else block.toarray() for block in blocks])


WRAPPERS = {  # name: (rows, the same of an array)
    "columns": (lambda rows: columns(rows, ["e", "a"]), lambda X: X[:, [4, 0]]),
    "scaled": (lambda rows: scaled(rows, np.zeros(P), np.arange(1, P + 1)), lambda X: X / np.arange(1, P + 1)),
    "subset": (lambda rows: subset(rows, [49, 3, 4, 30, 3]), lambda X: X[[3, 4, 30, 49]]),
    "some columns of some rows, scaled": (
        lambda rows: scaled(columns(subset(rows, np.arange(1, N, 2)), ["b", "c"]), np.zeros(2), np.array([2.0, 4.0])),
        lambda X: X[1::2, 1:3] / [2, 4],
    ),
    "some of some rows": (lambda rows: subset(subset(rows, np.arange(5, 45)), [0, 20, 39]), lambda X: X[[5, 25, 44]]),
}


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_rows_are_those_of_the_changed_array(name, storage, X, stored):
    wrap, change = WRAPPERS[name]
    rows, right = wrap(stored(X, storage)), change(X)
    assert rows.shape == right.shape
    np.testing.assert_allclose(whole(rows), right, rtol=1e-15)
    dense = Centered(rows, dense_tiles=True)
    np.testing.assert_allclose(statistics.whole(Centered(rows)), right, rtol=1e-15)
    np.testing.assert_allclose(dense.reduce(row_functions.sum_by_row_number), np.arange(len(right)) @ right, rtol=1e-13)
    mapped = dense.map(row_functions.doubled, 2.0, width=right.shape[1], dtype=np.float64)
    assert (type(mapped) is np.ndarray) == (storage != "dask")
    assert mapped.shape == right.shape
    np.testing.assert_allclose(np.asarray(mapped), 2 * right, rtol=1e-15)
    last = [i for i in range(len(rows.offsets) - 1) if rows.offsets[i] < rows.offsets[i + 1]][-1]
    numbers = np.arange(rows.offsets[last], len(right))
    sums = dense.reduce(row_functions.sum_by_row_number, blocks=[last])
    np.testing.assert_allclose(sums, numbers @ right[numbers], rtol=1e-13)


@pytest.mark.parametrize("name", WRAPPERS)
def test_the_data_of_wrapped_rows_stay_where_they_are(name, X, stored, monkeypatch):
    rows = WRAPPERS[name][0](stored(X, "dask"))

    def fetch(*_):
        raise AssertionError("a block came to the driver")

    monkeypatch.setattr("princomp.data.dask.DaskRows.block", fetch)
    assert not rows.local
    assert rows.changeable
    pids = np.asarray(rows.map(row_functions.where_it_ran, width=1, dtype=np.float64))
    assert os.getpid() not in pids
    rows.reduce(row_functions.sum_by_row_number)
    PCA(1, solver="eigh").fit(rows)
    with pytest.raises(AssertionError, match="came to the driver"):
        rows.block(0)


def test_wrapped_rows_keep_all_that_rows_say_of_themselves(X):
    """Whatever attribute `Rows` has, or gets: the loop is over all of them."""
    rows = as_rows(X, block_rows=7)
    told = {
        "names": tuple("abcde"),
        "sample_names": tuple(map(str, range(N))),
        "labels": {"kind": np.arange(N).astype(str)},
        "notes": ("a note",),
        "local": False,
        "changeable": True,
    }
    for name, value in told.items():
        setattr(rows, name, value)
    same = Wrapped(rows, _as_it_is)
    for name in Rows.__annotations__:
        assert getattr(same, name) is getattr(rows, name), name
    some = subset(rows, [3, 40])
    assert some.sample_names == ("3", "40")
    assert some.labels["kind"].tolist() == ["3", "40"]
    assert not some.local
    assert columns(rows, ["c", "a"]).labels is rows.labels


def _as_it_is(block, rows):
    return block, rows


@pytest.mark.parametrize("storage", STORAGES)
def test_dense_rows_are_moved_before_they_are_divided_and_sparse_ones_are_not(storage, X, stored):
    shift, scale = np.arange(P), np.arange(1.0, P + 1)
    right = (X if storage == "csr" else X - shift) / scale
    np.testing.assert_allclose(whole(scaled(stored(X, storage), shift, scale)), right, rtol=1e-15)


def test_rows_that_are_not_there_are_refused(X):
    for wanted in ([-1, 3], [3, N]):
        with pytest.raises(ValueError, match="numbered from 0 to 49"):
            subset(as_rows(X), wanted)


def test_a_fit_of_some_rows_is_that_of_their_array(X, stored):
    some = np.flatnonzero(np.arange(N) % 3)
    for storage in STORAGES:
        pca = PCA(2, solver="eigh").fit(subset(stored(X, storage), some))
        assert pca.n_samples_ == len(some)
        np.testing.assert_allclose(pca.explained_variance_, PCA(2).fit(X[some]).explained_variance_, rtol=1e-10)


def test_probabilistic_pca_of_scaled_columns_on_a_cluster(X, stored):
    X[3, 2] = np.nan
    there = ProbabilisticPCA(2, scale=True, tol=1e-2, random_state=0).fit(stored(X, "dask"))
    here = ProbabilisticPCA(2, scale=True, tol=1e-2, random_state=0).fit(as_rows(X, block_rows=7))
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-8)


@pytest.mark.parametrize("storage", STORAGES)
def test_changed_tiles_are_made_where_the_rows_are(storage, X, stored):
    """Weights first, then columns in reverse: `changed` goes on from what it was before."""
    mean, weight = np.arange(P), np.linspace(1, 2, N)
    once = Centered(stored(X, storage), mean).changed(row_functions.times_weight, weight)
    twice = once.changed(row_functions.reversed_and_moved, 3.0)
    right = (X - mean) * weight[:, None]
    np.testing.assert_allclose(statistics.scatter(once), right.T @ right, rtol=1e-12)
    right = right[:, ::-1] + 3.0
    np.testing.assert_allclose(statistics.whole(twice), right, rtol=1e-13)
    np.testing.assert_allclose(np.asarray(statistics.apply(twice, np.eye(P))), right, rtol=1e-13)
    np.testing.assert_allclose(statistics.scatter(twice), right.T @ right, rtol=1e-12)
    with pytest.raises(NotImplementedError, match="one by one"):
        statistics.take(once, np.arange(3))


@pytest.mark.parametrize("choice", ["weights", "held-out"])
def test_weights_and_hidden_cells_on_a_cluster(choice, X, stored):
    how = {"n_components": 2} if choice == "weights" else {"n_components": "held-out", "max_components": 2}
    weight = np.linspace(1, 2, N) if choice == "weights" else None
    models = [
        ProbabilisticPCA(**how, random_state=0, tol=1e-2).fit(given, sample_weight=weight)
        for given in (stored(X, "dask"), as_rows(X, block_rows=7))
    ]
    np.testing.assert_allclose(models[0].components_, models[1].components_, atol=1e-8)
    np.testing.assert_allclose(models[0].noise_variance_, models[1].noise_variance_, rtol=1e-8)


# --- what map gives -------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
def test_map_tells_the_numbers_of_rows_in_all_the_data(storage, X, stored):
    numbers = stored(X, storage).map(row_functions.row_numbers, width=1, dtype=np.float64)
    assert np.asarray(numbers)[:, 0].tolist() == list(range(N))


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("rows", ["all", "some"])
def test_map_with_several_answers_of_several_kinds(rows, storage, X, stored):
    some = np.arange(2, N, 3) if rows == "some" else np.arange(N)
    dense = Centered(subset(stored(X, storage), some), dense_tiles=True)
    how = {"width": (1, P, 1), "dtype": (np.float32, np.float64, np.int64), "sparse": (False, True, False)}
    answer = dense.map(row_functions.sums_and_numbers, 3.0, **how)
    assert isinstance(answer, tuple)
    if storage == "dask":
        dask = pytest.importorskip("dask")
        assert [part.shape for part in answer] == [(len(some), 1), (len(some), P), (len(some), 1)]
        assert [part.dtype for part in answer] == [np.float32, np.float64, np.int64]
        answer = dask.compute(*answer)
    sums, times, numbers = answer
    assert scipy.sparse.issparse(times)
    assert times.format == "csr"
    assert (times.toarray() == 3 * X[some]).all()
    assert sums.dtype == np.float32
    np.testing.assert_allclose(sums[:, 0], X[some].sum(axis=1), rtol=1e-6)
    assert numbers[:, 0].tolist() == list(range(len(some)))


@pytest.mark.parametrize("storage", STORAGES)
def test_map_with_one_sparse_answer(storage, X, stored):
    dense = Centered(stored(X, storage), dense_tiles=True)
    answer = dense.map(row_functions.positive_part, width=P, dtype=np.float64, sparse=True)
    if storage == "dask":
        assert isinstance(answer._meta, scipy.sparse.csr_array)
        answer = answer.compute()
    assert answer.format == "csr"
    assert (answer.toarray() == np.maximum(X, 0)).all()


def test_several_lazy_answers_are_computed_in_one_go(X, stored, tmp_path):
    answers = stored(X, "dask").map(row_functions.counted, str(tmp_path), width=(1, 1), dtype=np.float64)
    pytest.importorskip("dask").compute(*answers)
    assert len(list(tmp_path.iterdir())) == 8  # a file for each call, of which there is one for each chunk


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_sparse_answer_has_the_precision_that_was_asked_for(dtype, X, stored):
    answer = stored(X, "array").map(row_functions.positive_part, width=P, dtype=dtype, sparse=True)
    assert answer.dtype == dtype


def test_threads_may_finish_in_any_order(X):
    """Many small blocks on four threads: each part of the CSR answer lies where its rows are."""
    from threadpoolctl import threadpool_limits

    rows = as_rows(np.arange(2000.0).reshape(-1, 2), block_rows=3)
    with threadpool_limits(4, user_api="blas"):
        answer = rows.map(row_functions.positive_part, width=2, dtype=np.float64, sparse=True)
    assert (answer.toarray() == np.arange(2000.0).reshape(-1, 2)).all()


def test_parts_without_rows_are_no_loss():
    """Of a block of which nothing is wanted comes a part without rows, that begins where the next one does."""
    part = scipy.sparse.csr_array([[1.0, 0.0], [0.0, 2.0]])
    out = Together(4, Outputs((2, 1), (np.float64, np.int64), (True, False)))
    for first, rows in ((2, part), (0, part), (0, part[:0]), (4, part[:0])):
        out.put(slice(first, first + rows.shape[0]), (rows, np.full((rows.shape[0], 1), first)))
    sparse, dense = out.answer()
    assert (sparse.toarray() == [[1, 0], [0, 2]] * 2).all()
    assert dense[:, 0].tolist() == [0, 0, 2, 2]
    nothing = Together(0, Outputs(3, np.float32, True)).answer()
    assert nothing.shape == (0, 3)
    assert nothing.dtype == np.float32


def test_transform_in_several_tiles_of_a_second_block():
    """Of wide rows a tile has 128: 300 of them are cut into three, in the first block and in those after it."""
    X = np.random.default_rng(0).normal(size=(700, 1000)) + 7.0
    rows = as_rows(X, block_rows=300)
    assert Centered(rows, np.zeros(1000)).tile_rows() < 150
    numbers = Centered(rows, np.ones(1000)).map(row_functions.row_numbers, width=1, dtype=np.float64)
    assert numbers[:, 0].tolist() == list(range(700))
    pca = PCA(3, solver="krylov", random_state=0).fit(rows)
    np.testing.assert_allclose(pca.transform(rows), (X - X.mean(axis=0)) @ pca.components_.T, atol=1e-10)


@pytest.mark.parametrize("cell", [1.0, np.nan])
def test_the_pass_that_looks_for_missing_cells_finds_the_mean_too(cell, dask_client):
    """Of chunks that differ in length: what is summed next is summed about it, and the first rows are not asked for."""
    array = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).normal(size=(50, P)) + np.arange(50)[:, None]
    X[41, 2] = cell
    rows = as_rows(array.from_array(X, chunks=((5, 30, 0, 13, 2), (P,))))
    assert statistics.has_nan(rows) == np.isnan(cell)
    assert np.isfinite(statistics.shift(rows)).all()
    if np.isfinite(cell):
        np.testing.assert_allclose(statistics.shift(rows), X.mean(axis=0), rtol=1e-14)


# --- what may come here ---------------------------------------------------------------------------


def test_a_whole_copy_of_data_on_workers_is_refused_with_its_size(dask_client, monkeypatch):
    array = pytest.importorskip("dask.array")
    from princomp import SparseCCA

    X = array.random.default_rng(0).normal(size=(3000, 800), chunks=(500, 800))
    monkeypatch.setattr("princomp.data.budget._system_bytes", lambda: 200 * 2**20)
    refused = r"3000 rows of 800 columns live on workers. .* would take 18 MiB, but 10 MiB at most"
    rows = as_rows(X)
    for ask in (
        lambda: statistics.whole(Centered(rows)),
        lambda: statistics.take(Centered(rows), np.arange(3000)),
        lambda: SparseCCA(1).fit(X, X[:, :3]),
    ):
        with pytest.raises(MemoryError, match=refused):
            ask()
    with pytest.raises(MemoryError, match=r'800 rows of 3000 columns .* Use solver="krylov"'):
        PCA(2, solver="svd").fit(X.T)
    assert statistics.take(Centered(rows), np.arange(7)).shape == (7, 800)


def test_a_small_copy_of_data_on_workers_is_made(X, stored):
    rows = stored(X, "dask")
    copy = statistics.here(rows)
    assert copy.local
    assert copy.names == rows.names
    assert (whole(copy) == X).all()
    assert statistics.here(copy) is copy
    np.testing.assert_array_equal(statistics.scores(Centered(rows), np.eye(P)[:, :2]), X[:, :2])


def test_sparse_cca_of_small_data_on_a_cluster(dask_client):
    array = pytest.importorskip("dask.array")
    from princomp import SparseCCA

    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    Y = X[:, :3] + 0.3 * rng.normal(size=(200, 3))
    lazy = SparseCCA(1).fit(array.from_array(X, chunks=(60, 3)), array.from_array(Y, chunks=(50, 3)))
    np.testing.assert_allclose(lazy.x_weights_, SparseCCA(1).fit(X, Y).x_weights_, atol=1e-8)
