"""Spark DataFrames: the same answers as an array's, whatever their columns are called and wherever their rows lie."""

import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal

import numpy as np
import pytest

from helpers import data_with_spectrum
from princomp import PCA, ProbabilisticPCA, SparsePCA
from princomp.data import Centered, as_rows, statistics
from princomp.data import spark as module
from princomp.data.dask import PASS_SECONDS as DASK_SECONDS
from princomp.data.wrapped import scaled, subset
from princomp.estimators.costs import choose_solver

pytestmark = pytest.mark.needs("pyspark", "java", "pyarrow")

NAMES = [f"x{j}" for j in range(8)]


@pytest.fixture(scope="module")
def X():
    return data_with_spectrum(300, 8, np.arange(8, 0, -1), seed=1, offset=5.0)


@pytest.fixture(scope="module")
def pa():
    return pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def columns(spark, X, pa):
    """X as numeric columns, in two partitions, kept where they are."""
    return spark.createDataFrame(pa.table(dict(zip(NAMES, X.T)))).persist()


@pytest.fixture(scope="module")
def arrays(spark, X, pa):
    """X as one column of arrays, between a number of the row and a text."""
    table = {"id": np.arange(len(X)), "features": list(X), "text": [f"row {i}" for i in range(len(X))]}
    return spark.createDataFrame(pa.table(table)).persist()


def scores_by_id(frame):
    """The scores of a frame with an id, in the order of the ids."""
    table = frame.toArrow().sort_by("id")
    return np.array(table.column("scores").to_pylist())


# --- the same answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        PCA(3, solver="eigh"),
        PCA(3, solver="svd", scale=True),
        PCA(3, solver="krylov", tol=1e-10, random_state=0),
        ProbabilisticPCA(3),
        SparsePCA(2, nonzeros=3),
    ],
    ids=["eigh", "svd", "krylov", "probabilistic", "nonzeros"],
)
def test_same_answer_as_the_array(model, X, columns):
    expected = model.fit(X).components_.copy()
    mean = model.mean_.copy()
    model.fit(columns)
    np.testing.assert_allclose(model.components_, expected, atol=1e-8)
    np.testing.assert_allclose(model.mean_, mean, atol=1e-8)
    assert list(model.feature_names_in_) == NAMES


def test_blocks_are_numbered_through_all_partitions(X, columns, arrays):
    for frame in (columns, arrays):
        rows = as_rows(frame, block_rows=40)
        assert rows.shape == (300, 8)
        assert np.diff(rows.offsets).tolist() == [40, 40, 40, 30, 40, 40, 40, 30]
        assert not rows.local
        assert rows.changeable
        # The signature weighs rows by their numbers.
        weighted = statistics.weighted_sums(Centered(rows))
        np.testing.assert_allclose(weighted, statistics.weighted_sums(Centered(as_rows(X))), rtol=1e-12)
        np.testing.assert_array_equal(rows.block(5), X[rows.rows(5)])
        np.testing.assert_array_equal(
            statistics.take(Centered(rows), np.array([0, 149, 150, 299])), X[[0, 149, 150, 299]]
        )


def test_arrow_batches_do_not_change_the_answer(X, columns, spark):
    rows = as_rows(columns, block_rows=40)
    expected = statistics.scatter(Centered(rows))
    setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(setting)
    spark.conf.set(setting, 7)
    try:
        np.testing.assert_array_equal(statistics.scatter(Centered(rows)), expected)
    finally:
        spark.conf.set(setting, before)


def test_large_sums_are_added_by_the_workers(X, columns, monkeypatch):
    rows = as_rows(columns)
    expected = statistics.moments(rows, scatter=True)
    monkeypatch.setattr(module, "GATHER_BYTES", 100)
    asked = []
    original = module.SparkRows._added_by_pieces
    monkeypatch.setattr(module.SparkRows, "_added_by_pieces", lambda *how: asked.append(1) or original(*how))
    found = statistics.moments(rows, scatter=True)
    assert asked
    np.testing.assert_array_equal(found.squares, expected.squares)
    np.testing.assert_array_equal(found.mean, expected.mean)


def test_empty_partitions_are_passed_over(X, arrays, columns):
    rows = as_rows(arrays.repartition(5, arrays.id % 2).localCheckpoint())
    assert len(rows.offsets) - 1 < len(rows._blocks.first) - 1 == 5
    assert rows.shape == (300, 8)
    np.testing.assert_allclose(PCA(2).fit(rows).explained_variance_, PCA(2).fit(X).explained_variance_)
    with pytest.raises(ValueError, match=r"Found array with 0 sample"):
        PCA(2).fit(columns.where("x0 > 1e9"))


def test_wide_data_come_here_in_small_lots(X, arrays, monkeypatch):
    frame = arrays.where("id < 7").coalesce(1).persist()
    rows = as_rows(frame, block_rows=2)
    for size in (module.GATHER_BYTES, 200):  # of one block, and a little more
        monkeypatch.setattr(module, "GATHER_BYTES", size)
        np.testing.assert_array_equal(statistics.whole(Centered(rows)), X[:7])
    for solver in ("eigh", "svd"):
        np.testing.assert_allclose(
            PCA(2, solver=solver).fit(frame).components_, PCA(2).fit(X[:7]).components_, atol=1e-8
        )


def test_some_rows_in_other_units(X, columns):
    some = np.flatnonzero(np.arange(300) % 3)
    rows = scaled(subset(as_rows(columns, block_rows=40), some), np.ones(8), np.full(8, 4.0))
    right = (X[some] - 1) / 4
    assert not rows.local
    assert rows.pass_seconds == module.PASS_SECONDS
    np.testing.assert_allclose(statistics.whole(Centered(rows)), right, rtol=1e-15)
    np.testing.assert_allclose(PCA(2).fit(rows).components_, PCA(2).fit(right).components_, atol=1e-8)
    doubled = rows.map(lambda block, rows: 2 * block, width=8, dtype=np.float64).toArrow()
    np.testing.assert_allclose(np.array(doubled.column("scores").to_pylist()), 2 * right, rtol=1e-15)


@pytest.mark.parametrize(
    "model",
    [PCA(3, solver="eigh"), PCA(3), PCA(3, solver="svd"), ProbabilisticPCA(3), SparsePCA(2, nonzeros=3, scale=True)],
    ids=["eigh", "auto", "svd", "probabilistic", "nonzeros"],
)
def test_passes_over_a_frame(model, columns, observe, monkeypatch):
    """The row count is none: it is made once, whatever follows."""
    passes = []
    original = module.SparkRows._values
    monkeypatch.setattr(module.SparkRows, "_values", lambda *how: passes.append(how[1]) or original(*how))
    model.fit(columns)
    assert passes.pop(0) is module._count
    assert module._count not in passes
    observe("passes", f"{type(model).__name__}, {getattr(model, 'solver', 'auto')}, Spark", len(passes))
    assert len(passes) <= 3


@pytest.mark.parametrize(
    ("shape", "seconds", "solver"),
    [
        ((5000, 1500), 0.0, "krylov"),
        ((5000, 1500), DASK_SECONDS, "eigh"),
        ((5000, 3000), DASK_SECONDS, "krylov"),
        ((5000, 3000), module.PASS_SECONDS, "eigh"),
        ((20_000, 9000), module.PASS_SECONDS, "krylov"),
        ((3000, 5000), module.PASS_SECONDS, "krylov"),
        ((400, 30), module.PASS_SECONDS, "eigh"),
    ],
)
def test_few_passes_are_preferred_where_they_are_dear(shape, seconds, solver):
    assert choose_solver(*shape, 5, seconds) == solver


# --- cells ----------------------------------------------------------------------------------------


def test_integers_decimals_truth_values_and_nulls(spark, pa):
    table = pa.table(
        {
            "whole": pa.array([1, 2, None, 4], pa.int64()),
            "small": pa.array([1, None, 3, 4], pa.int8()),
            "truth": [True, False, None, True],
            "money": [Decimal("1.50"), None, Decimal("-2.25"), Decimal("0.00")],
            "single": pa.array([1.5, 2.5, 3.5, None], pa.float32()),
            "a name. with `dots`": [1.0, 2.0, 3.0, float("inf")],
        }
    )
    rows = as_rows(spark.createDataFrame(table))
    nan = np.nan
    expected = [
        [1, 1, 1, 1.5, 1.5, 1],
        [2, nan, 0, nan, 2.5, 2],
        [nan, 3, nan, -2.25, 3.5, 3],
        [4, 4, 1, 0, nan, np.inf],
    ]
    np.testing.assert_array_equal(np.concatenate([rows.block(i) for i in range(len(rows.offsets) - 1)]), expected)
    assert rows.names == tuple(table.column_names)
    assert rows.dtype == np.float64
    with pytest.raises(ValueError, match=r"contains NaN in column 'whole' \(and 4 more columns\)"):
        PCA(1).fit(spark.createDataFrame(table))


def test_missing_cells_and_arrays(X, spark, pa):
    holes = X.copy()
    holes[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    holes[7] = np.nan
    cells = [None if i == 7 else [None if np.isnan(x) else x for x in row] for i, row in enumerate(holes)]
    frame = spark.createDataFrame(pa.table({"features": pa.array(cells, pa.list_(pa.float64()))}))
    expected = ProbabilisticPCA(2).fit(holes)
    found = ProbabilisticPCA(2).fit(frame)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)
    assert found.n_samples_ == expected.n_samples_


def test_single_precision_stays(X, spark, pa):
    single = X.astype(np.float32)
    frame = spark.createDataFrame(pa.table({"id": np.arange(300), "features": list(single)}))
    pca = PCA(2).fit(frame)
    assert pca.components_.dtype == np.float32
    scores = pca.transform(frame)
    assert scores.schema["scores"].dataType.elementType.typeName() == "float"
    np.testing.assert_allclose(scores_by_id(scores), PCA(2).fit(single).transform(single), atol=1e-4)


# --- transform ------------------------------------------------------------------------------------


def test_transform_keeps_the_other_columns_and_any_order(X, arrays):
    pca = PCA(3).fit(X)
    frame = pca.transform(arrays.orderBy("text"))
    assert frame.columns == ["id", "text", "scores"]
    np.testing.assert_allclose(scores_by_id(frame), pca.transform(X), atol=1e-12)
    back = pca.inverse_transform(frame)
    np.testing.assert_allclose(scores_by_id(back), pca.inverse_transform(pca.transform(X)), atol=1e-12)


def test_transform_is_lazy(X, spark):
    """Rows that cannot be computed do no harm until somebody asks for them."""
    from pyspark.sql import functions

    frame = spark.range(5).select(
        *(functions.raise_error(functions.lit("read")).cast("double").alias(n) for n in NAMES)
    )
    scores = PCA(2).fit(X).transform(frame)
    assert scores.columns == ["scores"]
    with pytest.raises(Exception, match="read"):
        scores.toArrow()


def test_transform_refuses_what_it_does_not_know(columns, arrays, X):
    pca = PCA(2).fit(columns)
    with pytest.raises(ValueError, match="column 0 is 'x1', but was 'x0'"):
        pca.transform(columns.select(*NAMES[1:], NAMES[0]))
    with pytest.raises(ValueError, match="X has 7 features"):
        PCA(2).fit(X).transform(arrays.selectExpr("slice(features, 1, 7) as features"))
    with pytest.raises(ValueError, match="has one already: rename it first"):
        PCA(2).fit(X).transform(arrays.withColumnRenamed("id", "scores"))


def test_several_outputs_sparse_ones_and_row_numbers(X, arrays):
    def both(block, rows):
        import scipy.sparse

        return np.int8(block[:, :2]), scipy.sparse.csr_array(block[:, 2:])

    rows = as_rows(arrays)
    first, second = rows.map(both, width=(2, 6), dtype=(np.int8, np.float64), sparse=(False, True))
    np.testing.assert_array_equal(scores_by_id(first), X[:, :2].astype(np.int8))
    np.testing.assert_array_equal(scores_by_id(second), X[:, 2:])
    weight = np.arange(300.0)
    with pytest.raises(Exception, match=r"rows have none|could not be broadcast"):
        rows.map(lambda block, rows: block * weight[rows, None], width=8, dtype=np.float64).toArrow()


# --- what is refused ------------------------------------------------------------------------------


def test_columns_that_are_no_numbers_are_named(arrays, columns):
    with pytest.raises(TypeError, match=r"hold no numbers: text\. Drop them, as in X\.drop\('text'\)"):
        PCA(1).fit(arrays.drop("features"))
    with pytest.raises(ValueError, match=r"several columns of arrays \(features, again\): drop all but one"):
        PCA(1).fit(arrays.selectExpr("features", "features as again"))
    with pytest.raises(ValueError, match=r"occur more than once: x0"):
        PCA(1).fit(columns.select("x0", "x1", "x0"))
    with pytest.raises(ValueError, match=r"arrays of the DataFrame differ: one has 8 numbers, another 5"):
        PCA(1).fit(arrays.selectExpr("if(id = 200, slice(features, 1, 5), features) as features"))


def test_a_partition_that_is_longer_or_shorter_than_it_was_is_found_out(pa):
    blocks = module.Blocks(np.array([0, 2, 4]), np.array([0, 2]), frozenset({0, 1}))

    def lengths(rows):
        batches = iter([pa.record_batch({"a": np.arange(float(rows))})])
        return [len(table) for table, _ in blocks.read(0, batches)]

    assert lengths(4) == [2, 2]
    for rows, how in ((3, "fewer"), (5, "more")):
        with pytest.raises(ValueError, match=f"partition 0 has {how} rows than it had"):
            lengths(rows)


@pytest.mark.parametrize("by_pieces", [False, True])
def test_partitions_that_are_gone_are_found_out(by_pieces, columns, monkeypatch):
    rows = as_rows(columns.union(columns))
    assert rows.shape == (600, 8)
    rows._frame = as_rows(columns)._frame
    if by_pieces:
        monkeypatch.setattr(module, "GATHER_BYTES", 100)
    with pytest.raises(ValueError, match="it has fewer partitions than it had"):
        statistics.moments(rows, scatter=True, center=False)


@pytest.mark.parametrize("what", ["cells", "rows"])
def test_rows_that_change_are_found_out(what, spark):
    def anew(batches):
        import pyarrow

        rng = np.random.default_rng()
        for batch in batches:
            n = batch.num_rows if what == "cells" else rng.integers(1, 1000)
            yield pyarrow.record_batch({name: rng.standard_normal(n) for name in "ab"})

    frame = module._in_arrow(spark.range(100), "a double, b double", anew)
    with pytest.raises(ValueError, match=r"changed between two readings.*\.persist\(\) or \.localCheckpoint\(\)"):
        PCA(1, solver="krylov").fit(frame)
    PCA(1, solver="krylov").fit(frame.localCheckpoint())


def test_what_is_missing_is_named(columns, monkeypatch):
    there = importlib.util.find_spec
    with monkeypatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyarrow" else there(name))
        with pytest.raises(ImportError, match=re.escape('pyspark wants pyarrow: pip install "princomp[spark]"')):
            PCA(1).fit(columns)

    def needs(block, rows):
        import no_such_module

        return no_such_module

    with pytest.raises(ImportError, match=r"workers of Spark cannot import no_such_module\. Install princomp there"):
        as_rows(columns).reduce(needs)


def test_ctrl_c_ends_a_pass(columns):
    def slow(block, rows):
        import time

        time.sleep(60)

    rows = as_rows(columns)
    assert rows.shape == (300, 8)
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        rows.reduce(slow)
    assert time.perf_counter() - start < 30
    assert PCA(1).fit(columns).n_samples_ == 300


# --- Spark Connect --------------------------------------------------------------------------------


CONNECT = """
import json, os, sys, warnings

os.environ["PYSPARK_PYTHON"] = sys.executable
import numpy as np
import pyarrow as pa
from helpers import data_with_spectrum
from pyspark.sql import SparkSession

from princomp import PCA, ProbabilisticPCA, SparsePCA
from princomp.data import spark as module

session = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
X = data_with_spectrum(300, 8, np.arange(8, 0, -1), seed=1, offset=5.0)
frame = session.createDataFrame(pa.table({"id": np.arange(len(X)), "features": list(X)}))
told = {"frame": type(frame).__module__}
for model in (PCA(3, solver="eigh"), PCA(3, solver="krylov", random_state=0), ProbabilisticPCA(2), SparsePCA(2)):
    expected = model.fit(X)
    components, scores = expected.components_, expected.transform(X)
    found = model.fit(frame)
    table = found.transform(frame).toArrow().sort_by("id")
    there = np.array(table.column("scores").to_pylist())
    told[repr(model)] = max(float(np.abs(found.components_ - components).max()), float(np.abs(there - scores).max()))
module.GATHER_BYTES = 100  # sums by pieces too
told["by pieces"] = float(np.abs(PCA(3).fit(frame).components_ - PCA(3).fit(X).components_).max())
print(json.dumps(told))
session.stop()
"""


def in_a_process(code, folder):
    """What a script prints last, as JSON: one Python has one kind of Spark session only."""
    paths = os.pathsep.join([str(pathlib.Path(__file__).parents[1]), *filter(None, sys.path)])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": paths},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.needs("grpc")
def test_the_same_on_spark_connect(tmp_path):
    told = in_a_process(CONNECT, tmp_path)
    assert told.pop("frame") == "pyspark.sql.connect.dataframe"
    assert len(told) == 5
    assert max(told.values()) <= 1e-8


# --- workers that die -----------------------------------------------------------------------------

KILLED = '''
import json, os, pathlib, signal, sys

import numpy as np
import pyarrow as pa
import pyspark
from conftest import spark_session
from helpers import data_with_spectrum

from princomp import PCA
from princomp.data import spark as module

os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
session = spark_session("local-cluster[2,1,1024]", **{"spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path)})
X = data_with_spectrum(4000, 60, 1 / np.arange(1, 61) ** 0.5, seed=0)
frame = session.createDataFrame(pa.table({"features": list(X)})).persist()


def executors():
    """Numbers of the processes that run the workers of each partition."""

    def above(batches):
        for _ in batches:
            pass
        stat = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
        yield pa.record_batch({"pid": pa.array([int(stat.rpartition(")")[2].split()[1])])})

    return set(module._in_arrow(frame, "pid long", above).toArrow().column("pid").to_pylist())


before = executors()


def kill_one(state):
    if state.iteration == 2:
        victim = min(before)
        assert "CoarseGrainedExecutorBackend" in pathlib.Path(f"/proc/{victim}/cmdline").read_text()
        os.kill(victim, signal.SIGKILL)


found = PCA(3, solver="krylov", tol=1e-10, random_state=0, callback=kill_one).fit(frame)
expected = PCA(3, solver="krylov", tol=1e-10, random_state=0).fit(X)
difference = float(np.abs(found.components_ - expected.components_).max())
print(json.dumps({"before": sorted(before), "after": sorted(executors()), "difference": difference}))
session.stop()
'''


@pytest.mark.soak
def test_a_worker_killed_in_mid_fit_does_not_change_the_answer(tmp_path):
    told = in_a_process(KILLED, tmp_path)
    assert len(told["before"]) == 2
    assert min(told["before"]) not in told["after"]
    assert told["difference"] <= 1e-8
