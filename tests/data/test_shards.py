"""Shards: frames are put together by the names of their columns, and what cannot be put together is said."""

import numpy as np
import pytest
import scipy.sparse as sp

from princomp import PCA
from princomp.data import as_rows

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(params=["pandas", "polars", "pyarrow"])
def frame(request):
    """frame(X, names): X as a frame of some library."""
    library = pytest.importorskip(request.param)

    def make(X, names=NAMES):
        columns = {name: X[:, j] for j, name in enumerate(names)}
        return library.table(columns) if request.param == "pyarrow" else library.DataFrame(columns)

    return make


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((60, 4)) * [4, 3, 2, 1] + [10, 20, 30, 40]


def reordered(X, order, frame):
    return frame(X[:, order], [NAMES[j] for j in order])


@pytest.mark.parametrize("way", ["frames", "functions", "a tuple"])
def test_columns_in_another_order_are_put_in_order(X, frame, way):
    tables = [frame(X[:20]), reordered(X[20:50], [3, 1, 0, 2], frame), reordered(X[50:], [1, 0, 2, 3], frame)]
    given = {"frames": tables, "functions": [lambda t=t: t for t in tables], "a tuple": tuple(tables)}[way]
    pca, whole = PCA(3).fit(given), PCA(3).fit(X)
    assert np.allclose(pca.explained_variance_, whole.explained_variance_, rtol=1e-12)
    assert np.allclose(pca.mean_, whole.mean_, rtol=1e-14)
    assert list(pca.feature_names_in_) == NAMES
    assert np.allclose(pca.transform(given), whole.transform(X))


def test_names_of_the_fit_are_compared_with_those_of_later_shards(X, frame):
    pca = PCA(2).fit([frame(X)])
    with pytest.raises(ValueError, match="column 0 is 'b', but was 'a' when fitted"):
        pca.transform([reordered(X, [1, 0, 2, 3], frame)])


def test_other_columns_are_refused_by_name(X, frame):
    with pytest.raises(ValueError, match="shard 1 has not; it lacks c; it has e, which the first has not"):
        PCA(2).fit([frame(X), frame(X, ["a", "b", "e", "d"])])
    with pytest.raises(ValueError, match=r"shard 1 has not; it lacks d\.$"):
        PCA(2).fit([frame(X), frame(X[:, :3], NAMES[:3])])
    with pytest.raises(ValueError, match=r"shard 1 has not; it has d, which the first has not\.$"):
        PCA(2).fit([frame(X[:, :3], NAMES[:3]), frame(X)])


def test_frames_and_arrays_are_not_mixed(X, frame):
    with pytest.raises(TypeError, match="Shard 0 is a frame with labelled columns, but shard 1 is an array"):
        PCA(2).fit([frame(X), X])
    with pytest.raises(TypeError, match="Shard 2 is a frame with labelled columns, but shard 0 is an array"):
        PCA(2).fit([X, X, lambda: frame(X)])


def test_labels_that_are_no_names_are_looked_at_too(X):
    pandas = pytest.importorskip("pandas")
    rows = as_rows([pandas.DataFrame(X), pandas.DataFrame(X)[[3, 1, 0, 2]]])
    assert rows.names is None
    assert np.array_equal(rows.block(0), rows.block(1))


def test_what_one_shard_of_frames_may_not_hold_is_named(X):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"'c' is .*, not numeric"):
        PCA(2).fit([pandas.DataFrame(X, columns=NAMES), pandas.DataFrame(X, columns=NAMES).assign(c="text")])


def test_integers_of_frames_are_numbers(frame):
    numbers = np.arange(12).reshape(4, 3)
    rows = as_rows([frame(numbers, "abc"), frame(numbers[:, ::-1], "cba")])
    assert rows.dtype == np.float64
    assert np.array_equal(rows.block(1), numbers)


# --- functions ------------------------------------------------------------------------------------


def test_a_function_is_called_once_for_its_shape_and_once_for_each_block(X):
    calls = []

    def shard():
        calls.append(True)
        return X

    rows = as_rows([shard], block_rows=30)
    assert len(calls) == 1
    rows.block(0)
    rows.block(1)
    assert len(calls) == 3


@pytest.mark.parametrize("later", [lambda X: X[:-1], lambda X: X[:, :-1], lambda X: np.vstack([X, X])])
def test_a_shard_of_another_shape_is_an_error(X, later):
    answers = iter([X])
    with pytest.raises(ValueError, match="shards must not change while they are read"):
        PCA(2).fit([lambda: next(answers, later(X))])


def test_a_shard_whose_columns_change_is_an_error(X, frame):
    answers = iter([frame(X)])
    with pytest.raises(ValueError, match="it lacks d; it has e"):
        PCA(2).fit([lambda: next(answers, frame(X, ["a", "b", "c", "e"]))])


def test_arrays_of_other_widths_are_refused(X):
    with pytest.raises(ValueError, match=r"All shards must have the same number of columns, found \[3, 4\]"):
        PCA(2).fit([X, X[:, :3]])
    with pytest.raises(TypeError, match="is a sparse matrix, which is not taken here: put sparse parts together"):
        PCA(2).fit([sp.csr_array(X), sp.csr_array(X)])


def test_lists_beside_arrays_are_shards_or_rows_by_their_dimensions(X):
    for given in ([X[:20], X[20:].tolist()], [X[:20].tolist(), X[20:]], [X[0].tolist(), *X[1:]], X.tolist()):
        found = as_rows(given)
        assert found.shape == X.shape
        assert (np.vstack([found.block(i) for i in range(len(found.offsets) - 1)]) == X).all()
    with pytest.raises(ValueError, match="Expected 2D array, got 3D array instead"):
        as_rows([X.tolist(), X.tolist()])
