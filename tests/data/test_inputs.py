"""What is no table of numbers is refused by every estimator, in a sentence that says what to pass instead."""

import datetime
import decimal
import fractions

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import princomp
from princomp import PCA, ProbabilisticPCA, SparseCCA, SparsePCA
from princomp.data import Centered, as_rows, statistics
from princomp.estimators import __all__ as ESTIMATORS

ROWS = np.random.default_rng(0).standard_normal((30, 4))


@pytest.fixture(params=sorted(ESTIMATORS))
def fit(request):
    """fit(X): a small fit of some estimator."""
    model = getattr(princomp, request.param)(2)
    return lambda X: model.fit(X, ROWS[:, :3]) if isinstance(model, SparseCCA) else model.fit(X)


def cells(value):
    """Numbers, and one cell that is none, in an array of objects."""
    X = ROWS.astype(object)
    X[3, 2] = value
    return X


def lazy_frame():
    return pytest.importorskip("polars").DataFrame(ROWS).lazy()


NO_TABLES = {
    "None": (lambda: None, "X is None, not a table of numbers. Pass a 2-D array"),
    "dict": (lambda: {"a": [1.0, 2.0]}, r"X is a dict.*pass pandas.DataFrame\(X\)"),
    "set": (lambda: {1.0, 2.0}, "X is a set"),
    "generator": (lambda: (row for row in ROWS), r"X is a generator.*only once: pass list\(X\)"),
    "iterator": (lambda: map(list, ROWS), "X is a map.*only once"),
    "lazy frame": (lazy_frame, r"X is a LazyFrame.*Pass X.collect\(\)"),
    "path": (lambda: "table.csv", r"X is a str.*princomp.read\(X\)"),
    "anything": (object, "X is a object, not a table"),
    "function that returns nothing": (lambda: [lambda: None], "a shard is None, not a table"),
}


@pytest.mark.parametrize("kind", NO_TABLES)
def test_what_is_no_table(fit, kind):
    make, message = NO_TABLES[kind]
    with pytest.raises(TypeError, match=message):
        fit(make())


NO_NUMBERS = {
    "datetime64": (np.datetime64("2020-01-01"), TypeError, "holds cells of type datetime64. Convert"),
    "timedelta64": (np.timedelta64(3, "s"), TypeError, "holds cells of type timedelta64. Convert"),
    "datetime": (datetime.datetime(2020, 1, 1), TypeError, "must hold numbers: .*datetime"),
    "text": ("1.5", TypeError, "holds text. Convert"),
    "complex64": (np.complex64(1 + 2j), ValueError, "Complex data not supported"),
    "complex128": (np.complex128(1), ValueError, "Complex data not supported"),
    "complex": (1 + 2j, ValueError, "Complex data not supported"),
    "list": ([1.0], TypeError, "must hold numbers"),
    "huge integer": (10**400, ValueError, "holds numbers that float64 cannot"),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_objects_that_are_no_numbers(fit, kind):
    value, error, message = NO_NUMBERS[kind]
    with pytest.raises(error, match=message):
        fit(cells(value))


@pytest.mark.parametrize("kind", ["datetime64", "complex64"])
def test_objects_that_are_no_numbers_in_a_column_of_a_frame(fit, kind):
    pandas = pytest.importorskip("pandas")
    value, error, _ = NO_NUMBERS[kind]
    frame = pandas.DataFrame({"a": ROWS[:, 0], "b": pandas.Series([value] * len(ROWS), dtype=object)})
    with pytest.raises(error, match="'b'"):
        fit(frame)


@pytest.mark.parametrize("number", [decimal.Decimal("0.25"), fractions.Fraction(1, 4), np.float32(0.25)])
def test_objects_that_are_numbers_are_taken(number):
    expected = ROWS.copy()
    expected[3, 2] = 0.25
    assert np.array_equal(PCA(2).fit(cells(number)).components_, PCA(2).fit(expected).components_)


def test_rows_of_different_lengths():
    with pytest.raises(ValueError, match="have its rows the same length"):
        PCA(1).fit([[1.0, 2.0], [3.0]])


def test_entries_of_a_sparse_matrix_for_one_cell_add_up():
    cells = np.repeat(np.tile(np.arange(4), 30), 2)
    twice = sp.csr_array((np.repeat(ROWS.ravel() / 2, 2), cells, 8 * np.arange(31)), shape=ROWS.shape)
    found, plain = PCA(2, scale=True).fit(twice), PCA(2, scale=True).fit(ROWS)
    np.testing.assert_allclose(found.explained_variance_, plain.explained_variance_)
    np.testing.assert_allclose(found.scale_, plain.scale_)
    assert twice.nnz == 2 * ROWS.size  # it stays as it was given


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_what_is_neither_moved_nor_scaled_is_summed_in_double_precision_too(dtype):
    X = (1.1 * np.random.default_rng(0).integers(-99, 99, (300, 4))).astype(dtype)
    found, exact = statistics.scatter(Centered(as_rows(X))), X.astype(float)
    np.testing.assert_allclose(found, exact.T @ exact, rtol=1e-12)


def test_the_other_side_of_a_pair_is_checked_alike():
    with pytest.raises(TypeError, match="holds text"):
        SparseCCA(1).fit(ROWS, np.array(["1"] * len(ROWS), dtype=object))
    with pytest.raises(ValueError, match="Complex data not supported"):
        SparseCCA(1).fit(ROWS, ROWS[:, 0] + 1j)
    with pytest.raises(TypeError, match="X is a generator"):
        SparseCCA(1).fit(ROWS, (row for row in ROWS))


@pytest.mark.parametrize(
    ("model", "missing", "advice"),
    [
        (PCA(2), 0.0, "Replace or drop those cells first"),
        (ProbabilisticPCA(2), np.nan, "Replace those cells, by NaN if they are to count as missing"),
    ],
    ids=["PCA", "ProbabilisticPCA"],
)
def test_infinite_cells_may_be_made_missing_where_others_are(model, missing, advice):
    X = ROWS.copy()
    X[3, 2], X[7, 1] = -np.inf, missing
    with pytest.raises(ValueError, match=rf"contains inf in column 2, in 1 row\(s\) of it. {advice}\."):
        clone(model).fit(X)


# --- columns too small to be divided by -----------------------------------------------------------

SCALED = {
    "PCA": PCA(2, scale=True),
    "krylov": PCA(2, scale=True, solver="krylov"),
    "eigh": PCA(2, scale=True, solver="eigh"),
    "SparsePCA": SparsePCA(2, scale=True, nonzeros=3),
    "ProbabilisticPCA": ProbabilisticPCA(2, scale=True),
    "ProbabilisticPCA by EM": ProbabilisticPCA(2, scale=True, method="em"),
    "SparseCCA": SparseCCA(2, scale=True),
}


def scaled_fit(name, X):
    model = clone(SCALED[name])
    if hasattr(model, "random_state"):
        model.set_params(random_state=0)
    return model.fit(X, ROWS[:, :3] + 0.1 * ROWS[:, 1:]) if isinstance(model, SparseCCA) else model.fit(X)


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("size", [1e-309, 1e-320])
def test_a_column_that_varies_by_less_than_float64_divides_by(name, size):
    with pytest.raises(ValueError, match=r"Column 1 varies by \de-3\d\d, too little .* Multiply the column"):
        scaled_fit(name, ROWS * [1, size, 1, 1])


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("size", [1e-290, 1e-180, 1e180, 1e290])
def test_any_other_size_of_a_column_is_divided_out(name, size):
    found, plain = scaled_fit(name, ROWS * [1, size, 1, 1]), scaled_fit(name, ROWS)
    values = "correlations_" if name == "SparseCCA" else "explained_variance_ratio_"
    assert np.allclose(getattr(found, values), getattr(plain, values), rtol=1e-5)


def test_blocks_have_at_least_one_row():
    assert list(as_rows(ROWS, block_rows=1).offsets) == list(range(31))
    with pytest.raises(ValueError, match="block_rows must be at least 1, got 0"):
        as_rows(ROWS, block_rows=0)


@pytest.mark.needs("dask")
def test_dask_arrays_are_tables_of_numbers():
    da = pytest.importorskip("dask.array")
    for values, error, message in (
        (ROWS[:, :, None], ValueError, "Expected 2D array, got 3D array instead"),
        (ROWS.astype("datetime64[s]"), TypeError, "its dtype is datetime64"),
        (ROWS.astype(complex), ValueError, "Complex data not supported"),
    ):
        with pytest.raises(error, match=message):
            PCA(2).fit(da.from_array(values, chunks=10))


# --- the memory that is left ------------------------------------------------------------------------


def test_a_container_may_leave_less_than_the_system(monkeypatch):
    """The files of a control group, as Linux writes them; "max" is no limit."""
    from princomp.data import budget

    plain = budget._system_bytes()
    for limit, used, left in (("5000\n", "2000\n", 3000), ("5000\n", "6000\n", 0), ("max\n", "2000\n", None)):
        files = {"/sys/fs/cgroup/memory.max": limit, "/sys/fs/cgroup/memory.current": used}
        monkeypatch.setattr(budget.Path, "read_text", lambda path, files=files: files[str(path)])
        found = budget.available_bytes()
        assert found == left if left is not None else found > plain / 2
        with budget.limited(1000):
            assert budget.available_bytes() == min(1000, found)


def test_where_the_system_does_not_say_half_of_all_memory_counts(monkeypatch):
    from princomp.data import budget

    def no_file(*args, **how):
        raise OSError

    monkeypatch.setattr(budget, "open", no_file, raising=False)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1001}
    monkeypatch.setattr(budget.os, "sysconf", sizes.__getitem__)
    assert budget.available_bytes() == 2050048
    monkeypatch.setattr(budget.os, "sysconf", no_file)
    assert budget.available_bytes() == 2 * 2**30


def test_what_needs_more_than_is_left_is_refused_in_gibibytes():
    from princomp.data import budget

    with budget.limited(2**30):
        budget.require(2.0**30, "A matrix", "Take fewer columns.")
        with pytest.raises(MemoryError, match=r"needs 2\.5 GiB, but only 1\.0 GiB can be had\. Take fewer columns"):
            budget.require(2.5 * 2**30, "A matrix", "Take fewer columns.")
