"""`read`: what each format gives, what a table's cells mean, and what becomes of damaged, hostile and huge files."""

import contextlib
import csv
import glob
import gzip
import io
import os
import pickle
import subprocess
import sys
import textwrap
import time
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from princomp import PCA
from princomp.data import DataError, read
from princomp.data.stored import FileRows, Sink

pytestmark = pytest.mark.needs("pyarrow")

SMALL = 2**20  # a memory limit under which even small files are cut into pieces of 32 KiB


def whole(rows):
    """All rows as one dense array."""
    blocks = [rows.block(i) for i in range(len(rows.offsets) - 1)]
    return np.concatenate([block.toarray() if rows.sparse else block for block in blocks])


def numbers(n=12, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)).round(3)


def write_table(path, X, names=None, sep=","):
    lines = [sep.join(names or [f"x{j}" for j in range(X.shape[1])])]
    lines += [sep.join(map(repr, row)) for row in X.tolist()]
    text = "\n".join(lines).encode() + b"\n"
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def write_parquet(path, columns, **how):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, **how)


def read_text(text, **how):
    return read(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **how)


# --- formats --------------------------------------------------------------------------------------

WRITERS = {
    "x.npy": np.save,
    "x.npz": lambda path, X: np.savez(path, X=X, other=np.arange(3)),
    "packed.npz": lambda path, X: np.savez_compressed(path, X),
    "csr.npz": lambda path, X: sp.save_npz(path, sp.csr_matrix(X)),
    "csc.npz": lambda path, X: sp.save_npz(path, sp.csc_array(X)),
    "coo.npz": lambda path, X: sp.save_npz(path, sp.coo_array(X)),
    "bsr.npz": lambda path, X: sp.save_npz(path, sp.bsr_array(X)),
    "dia.npz": lambda path, X: sp.save_npz(path, sp.dia_array(X)),
    "dense.mtx": scipy.io.mmwrite,
    "sparse.mtx": lambda path, X: scipy.io.mmwrite(path, sp.coo_array(X)),
    "sparse.mtx.gz": lambda path, X: path.write_bytes(gzip.compress(_matrix_market(X))),
    "x.csv": write_table,
    "X.CSV": write_table,
    "x.csv.gz": write_table,
    "x.tsv": lambda path, X: write_table(path, X, sep="\t"),
    "x.tsv.gz": lambda path, X: write_table(path, X, sep="\t"),
    "x.parquet": lambda path, X: write_parquet(path, {f"x{j}": X[:, j] for j in range(X.shape[1])}),
}


def _matrix_market(X):
    text = io.BytesIO()
    scipy.io.mmwrite(text, sp.coo_array(X))
    return text.getvalue()


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_matrix(tmp_path, name):
    X = numbers()
    WRITERS[name](tmp_path / name, X)
    rows = read(tmp_path / name)
    assert np.array_equal(whole(rows), X)
    assert rows.sparse == name.startswith(("cs", "coo", "bsr", "dia", "sparse"))
    assert rows.names == (("x0", "x1", "x2", "x3") if name.lower().endswith((".csv", "v.gz", ".tsv", "quet")) else None)
    assert (rows.sample_names, dict(rows.labels), rows.notes) == (None, {}, ())
    fitted, expected = PCA(2).fit(rows), PCA(2).fit(X)
    assert np.allclose(fitted.explained_variance_, expected.explained_variance_, rtol=1e-12)


@pytest.mark.parametrize("kind", [".npy", ".npz", "sparse.npz", ".mtx", ".csv", ".csv.gz", ".parquet"])
def test_a_pattern_is_shards_in_sorted_order(tmp_path, kind):
    X = numbers(12)
    write = WRITERS[{"sparse.npz": "csr.npz", ".mtx": "sparse.mtx"}.get(kind, f"x{kind}")]
    for i in (2, 0, 1):
        write(tmp_path / f"part-{i}{kind}", X[4 * i : 4 * i + 4])
    assert np.array_equal(whole(read(tmp_path / "part-*")), X)
    write(tmp_path / f"part-3{kind}", X[:, :3])
    with pytest.raises(DataError, match=r"part-3.* has 3 columns, but .*part-0.* has 4\."):
        read(tmp_path / "part-*")


def test_dense_and_sparse_shards_are_not_mixed(tmp_path):
    np.savez(tmp_path / "a.npz", numbers(4, 3))
    sp.save_npz(tmp_path / "b.npz", sp.csr_array(numbers(4, 3)))
    with pytest.raises(DataError, match=r"b\.npz and .*a\.npz differ: one is sparse, the other dense"):
        read(tmp_path / "*.npz")


def test_shards_with_other_columns_are_named(tmp_path):
    write_table(tmp_path / "a.csv", numbers(2, 2), ["height", "weight"])
    write_table(tmp_path / "b.csv", numbers(2, 2), ["height", "wieght"])
    with pytest.raises(DataError, match=r"b\.csv has other columns than .*a\.csv: column 1 is 'wieght', not 'weight'"):
        read(tmp_path / "*.csv")
    (tmp_path / "b.csv").write_text("1,2\n3,4\n")
    with pytest.raises(DataError, match=r"b\.csv differs from .*a\.csv has column names, .*b\.csv has not"):
        read(tmp_path / "*.csv")
    np.save(tmp_path / "c.npy", numbers())
    with pytest.raises(DataError, match=r"c\.npy is not a \.csv file as .*a\.csv is"):
        read(tmp_path / "*")


def test_a_column_that_is_text_in_one_shard_is_text_in_all(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,y\n3,low\n")
    (tmp_path / "c.csv").write_text("x,y\n")  # a shard may have no rows
    rows = read(tmp_path / "?.csv")
    assert whole(rows).tolist() == [[1], [3]]
    assert rows.labels["y"].tolist() == ["2", "low"]
    write_parquet(tmp_path / "a.parquet", {"x": [1], "y": [2]})
    write_parquet(tmp_path / "b.parquet", {"x": [3], "y": ["low"]})
    assert read(tmp_path / "*.parquet").labels["y"].tolist() == ["2", "low"]


@pytest.mark.parametrize("memory_limit", [None, 64])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", "i2", "u8", "?", "g"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_any_type_and_order(tmp_path, dtype, order, memory_limit):
    X = np.asarray(numbers() * 4 > 1 if dtype == "?" else abs(numbers() * 50), dtype, order=order)
    np.save(tmp_path / "x.npy", X)
    rows = read(tmp_path / "x.npy", memory_limit=memory_limit, block_rows=5)
    assert isinstance(rows, FileRows) == (memory_limit is not None)
    assert np.array_equal(whole(rows), X)
    assert rows.dtype == (np.float32 if dtype == "f4" else np.float64)
    assert rows.offsets.tolist() == [0, 5, 10, 12]


def test_npz_with_several_matrices_asks_which(tmp_path):
    X = numbers()
    np.savez(tmp_path / "x.npz", train=X, test=-X, names=np.array(["a"]))
    with pytest.raises(
        DataError, match=r"x\.npz holds several matrices \(train, test\): pick one, as in .*x\.npz::train"
    ):
        read(tmp_path / "x.npz")
    assert np.array_equal(whole(read(f"{tmp_path}/x.npz::test")), -X)
    with pytest.raises(DataError, match="has no array tset; it has train, test, names"):
        read(f"{tmp_path}/x.npz::tset")
    with pytest.raises(DataError, match="array names, holds <U1, not real numbers"):
        read(f"{tmp_path}/x.npz::names")


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize(
    ("layout", "field"),
    [
        ("array", "real"),
        ("array", "integer"),
        ("coordinate", "real"),
        ("coordinate", "integer"),
        ("coordinate", "pattern"),
    ],
)
def test_mtx_as_scipy_reads_it(tmp_path, layout, field, symmetry):
    X = np.tril(np.arange(1, 26).reshape(5, 5)) % 7
    X = X - X.T if symmetry == "skew-symmetric" else X + X.T if symmetry == "symmetric" else X
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(
        path, X if layout == "array" else sp.coo_array(X), comment="of\nfives", field=field, symmetry=symmetry
    )
    expected = scipy.io.mmread(path, spmatrix=False)
    rows = read(path)
    assert rows.sparse == (layout == "coordinate")
    assert np.array_equal(whole(rows), expected.toarray() if rows.sparse else expected)


def test_mtx_with_other_space_than_one_blank(tmp_path):
    text = '%%MatrixMarket matrix coordinate real general\r\n%{"a": "b\r\n2\t 3 2\r\n 1  2   5\r\n\r\n2 3 -1e2 \r\n'
    (tmp_path / "x.mtx").write_bytes(text.encode())
    assert whole(read(tmp_path / "x.mtx")).tolist() == [[0, 5, 0], [0, 0, -100]]


@pytest.mark.parametrize("name", ["x.npy", "packed.npz", "csr.npz", "dense.mtx", "sparse.mtx", "x.csv", "x.parquet"])
@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.soak)])
def test_S1_flipped_bytes(tmp_path, observe, name, count):
    """A damaged file is refused, or gives some matrix (not all formats have checksums); nothing else happens."""
    path = tmp_path / name
    WRITERS[name](path, numbers(40, 5))
    good = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(0)
    messages = []
    for _ in range(count):
        bad = good.copy()
        bad[rng.integers(len(bad), size=2)] = rng.integers(256, size=2)
        path.write_bytes(bad[: rng.integers(len(bad)) if rng.random() < 0.2 else None].tobytes())
        try:
            whole(read(path, memory_limit=2**28))
        except (DataError, MemoryError) as error:
            messages.append(str(error))
    assert messages
    assert [text for text in messages if not text.startswith(str(path)) or "\n" in text] == []
    observe("S1", f"{name}, damaged in {count} ways", f"refused {len(messages)} times, else read; never a crash")


def test_parquet_types(tmp_path):
    import datetime

    import pyarrow as pa

    columns = {
        "whole": pa.array([1, None, 3], pa.int32()),
        "huge": pa.array([2**63, 1, 0], pa.uint64()),
        "truth": pa.array([True, None, False]),
        "decimal": pa.array([1, 2, None], pa.decimal128(5, 2)),
        "nothing": pa.nulls(3),
        "day": pa.array([datetime.date(2024, 2, 29), None, None]),
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "list": pa.array([[1], [2, 3], []]),
        "blob": pa.array([b"\xff", b"", None]),
    }
    write_parquet(tmp_path / "x.parquet", columns)
    rows = read(tmp_path / "x.parquet")
    expected = [[1, 2.0**63, 1, 1, np.nan], [np.nan, 1, np.nan, 2, np.nan], [3, 0, 0, np.nan, np.nan]]
    assert np.array_equal(whole(rows), expected, equal_nan=True)
    assert rows.names == ("whole", "huge", "truth", "decimal", "nothing")
    assert {name: cells.tolist() for name, cells in rows.labels.items()} == {
        "day": ["2024-02-29", "", ""],
        "kind": ["a", "b", "a"],
    }
    assert rows.notes == (
        "Left out 2 text columns: day, kind.",
        "Left out 2 columns of neither numbers nor text: list, blob.",
    )


def test_parquet_of_float32_stays_float32(tmp_path):
    X = numbers(1000).astype(np.float32)
    write_parquet(tmp_path / "x.parquet", {f"x{j}": X[:, j] for j in range(4)}, row_group_size=90)
    for memory_limit in (None, 1024):
        rows = read(tmp_path / "x.parquet", memory_limit=memory_limit)
        assert (rows.dtype, whole(rows).dtype) == (np.float32, np.float32)
        assert np.array_equal(whole(rows), X)


@pytest.mark.needs("pandas")
def test_the_index_that_pandas_stores_is_no_feature(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(numbers(3, 2), columns=["a", "b"], index=[10, 20, 30])
    frame.to_parquet(tmp_path / "x.parquet")
    frame.to_csv(tmp_path / "x.csv")
    for name in ("x.parquet", "x.csv"):
        rows = read(tmp_path / name)
        assert rows.names == ("a", "b")
        assert rows.sample_names == ("10", "20", "30")


@pytest.mark.parametrize(
    "said", ["{", "[" * 100_000, "[1]", '{"index_columns": 3}', '{"index_columns": [{}, "zzz", 3]}']
)
def test_odd_metadata_of_pandas(tmp_path, said):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"a": [1, 2]}).replace_schema_metadata({"pandas": said})
    pq.write_table(table, tmp_path / "x.parquet")
    if said[-1] in "{[":
        with pytest.raises(DataError, match=r"x\.parquet cannot be read as Parquet"):
            read(tmp_path / "x.parquet")
    else:
        assert read(tmp_path / "x.parquet").names == ("a",)


def test_parquet_columns_of_the_same_name(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([[1], [2], [3]], names=["a", "b", "a"]), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"x\.parquet has columns of the same name: a\."):
        read(tmp_path / "x.parquet")


# --- what a table's cells mean --------------------------------------------------------------------

NAN = float("nan")
# text: (names, numbers, labels, notes)
TABLES = {
    "a,b\n1,2\n3,4": (("a", "b"), [[1, 2], [3, 4]], {}, []),
    "a\n1\n\n2\n\n": (("a",), [[1], [2]], {}, []),
    "\n\na,b\n1,2\n\n3,4\n": (("a", "b"), [[1, 2], [3, 4]], {}, []),
    "a,b\r\n1,2\r\n3,4\r\n": (("a", "b"), [[1, 2], [3, 4]], {}, []),
    "a,b\r1,2\r3,4\r": (("a", "b"), [[1, 2], [3, 4]], {}, []),
    "\ufeffa;b\n1;2\n": (("a", "b"), [[1, 2]], {}, []),
    "a\tb\n1\t2\n": (("a", "b"), [[1, 2]], {}, []),
    '"a, b","c ""d"""\n"1",2\n': (("a, b", 'c "d"'), [[1, 2]], {}, []),
    "a, b\n 1 , +2\n.5,-1.E+2\n": (("a", "b"), [[1, 2], [0.5, -100]], {}, []),
    "a,b\n1e999,-1e999\n1e-999,inf\n": (("a", "b"), [[np.inf, -np.inf], [0, np.inf]], {}, []),
    "a,b\n,NA\nN/A,nan\nnull,None\n?,-\n#N/A, NaN\n1,2\n": (("a", "b"), [[NAN, NAN]] * 5 + [[1, 2]], {}, []),
    "a,b\nTRUE,1\nfalse,2\n,3\n": (("a", "b"), [[1, 1], [0, 2], [NAN, 3]], {}, []),
    "a,b\ntrue,1\nmaybe,2\n": (("b",), [[1], [2]], {"a": ["true", "maybe"]}, ["Left out 1 text column: a."]),
    "a,b\n2024-01-02,1\n2024-01-03,2\n": (
        ("b",),
        [[1], [2]],
        {"a": ["2024-01-02", "2024-01-03"]},
        ["Left out 1 text column: a."],
    ),
    "a,b,c\nx,1,-\n?,2,+\n": (
        ("b",),
        [[1], [2]],
        {"a": ["x", "?"], "c": ["-", "+"]},
        ["Left out 2 text columns: a, c."],
    ),
    "a,b\n1,1\n2,2\n3,x1\n4,4\n": (
        ("a",),
        [[1], [2], [3], [4]],
        {"b": ["1", "2", "x1", "4"]},
        ["Left out the column b, though most of it is numbers: the stream, line 4 holds 'x1'."],
    ),
    "a,b\n1,2\n3,true\n4,5\n": (
        ("a",),
        [[1], [3], [4]],
        {"b": ["2", "true", "5"]},
        ["Left out the column b, though most of it is numbers: the stream, line 3 holds 'true'."],
    ),
    "a;b\n1,5;2\n-2,25;NA\n": (("a", "b"), [[1.5, 2], [-2.25, NAN]], {}, ["Numbers were read with a decimal comma."]),
    "1.5,2\n3,\n": (
        None,
        [[1.5, 2], [3, NAN]],
        {},
        ["The first line holds numbers only, so it was read as data; columns are numbered from 0."],
    ),
    "0,1,2\n3,4,5\n": (
        ("0", "1", "2"),
        [[3, 4, 5]],
        {},
        ["The first line only counts, 0, 1, 2 ..., so it was read as column names."],
    ),
    "a,a,,a.1\n1,2,3,4\n": (
        ("a", "a.2", "column 2", "a.1"),
        [[1, 2, 3, 4]],
        {},
        ["Named 1 column without a name: column 2.", "Renamed 1 column whose name came before: a.2."],
    ),
    "a;b\n1,5E+03;2\n-1,25e-2;NA\n": (
        ("a", "b"),
        [[1500, 2], [-0.0125, NAN]],
        {},
        ["Numbers were read with a decimal comma."],
    ),
    "a|b\n1|2\n": (("a", "b"), [[1, 2]], {}, []),
    "sep=;\na;b\n1;2\n": (("a", "b"), [[1, 2]], {}, []),
    "sep=:\r\na:b\r\n1:2\r\n": (("a", "b"), [[1, 2]], {}, []),
    "  \na,b\n \t\n1,2\n   \n3,4\n  ": (("a", "b"), [[1, 2], [3, 4]], {}, []),
    "a\n 1\n  \n2 \n \n": (("a",), [[1], [2]], {}, []),
    "a,b,t\n1,2,x\n,,\n3,4,y\n,,\n , ,\n": (
        ("a", "b"),
        [[1, 2], [NAN, NAN], [3, 4]],
        {"t": ["x", "", "y"]},
        ["Left out 1 text column: t.", "Skipped 2 rows of empty cells at the end."],
    ),
    '"a","b"\n"r1",1,2\n"r2",3,4\n': (
        ("a", "b"),
        [[1, 2], [3, 4]],
        {},
        ["The first column has no name, so it was read as sample names."],
    ),
    'a,b\n" 1 "," NA "\n" 2", TRUE\n': (("a", "b"), [[1, NAN], [2, 1]], {}, []),
    'a,b,c,d\n1,12,5%,1_000\n2,"1,234",-2.5 %,2_000\n': (
        ("a",),
        [[1], [2]],
        {"b": ["12", "1,234"], "c": ["5%", "-2.5 %"], "d": ["1_000", "2_000"]},
        [
            "Left out 3 text columns: b, c, d; b looks like numbers ('1,234'); c looks like numbers ('5%'); "
            "d looks like numbers ('1_000')."
        ],
    ),
    "a,b\n1,1\xa0234\n2,5\n3,6\n": (
        ("a",),
        [[1], [2], [3]],
        {"b": ["1\xa0234", "5", "6"]},
        [r"Left out the column b, though most of it is numbers: the stream, line 2 holds '1\xa0234'."],
    ),
    "a,b,\n1,2,\n3,4,\n": (
        ("a", "b"),
        [[1, 2], [3, 4]],
        {},
        ["Left out 1 column without a name and without a number."],
    ),
}


@pytest.mark.parametrize("text", TABLES)
def test_what_cells_mean(text):
    names, expected, labels, notes = TABLES[text]
    rows = read_text(text)
    assert rows.names == names
    assert np.array_equal(whole(rows), np.array(expected, float), equal_nan=True)
    assert {name: cells.tolist() for name, cells in rows.labels.items()} == labels
    assert list(rows.notes) == notes


@pytest.mark.parametrize("header", ["", "a"])
def test_a_hundred_thousand_columns_without_names_or_with_the_same(header):
    p = 100_000
    rows = read_text(",".join([header] * p) + "\n" + ",".join(["1"] * p) + "\n")
    assert rows.shape == (1, p if header else p - 1)
    assert len(set(rows.names)) == rows.shape[1]
    assert read_text("x" + "," * p + "\n1" + "," * p + "\n").shape == (1, 1)


# --- decimal marks --------------------------------------------------------------------------------


def test_a_point_is_no_number_where_commas_are_decimal():
    late = "".join(f"{i},5;{i}\n" for i in range(30)) + "30,5;1.234\n"
    rows = read_text("a;b\n" + late)
    assert rows.names == ("a",)
    assert whole(rows)[-1].tolist() == [30.5]
    assert rows.notes[1] == (
        "Left out the column b, though most of it is numbers: the stream, line 32 holds '1.234', "
        "but the file uses decimal commas."
    )
    rows = read_text("a;b;c\n1,5;1.234;1.234,5\n", decimal=",")
    assert (rows.names, whole(rows).tolist()) == (("a",), [[1.5]])
    assert rows.notes == (
        "Left out the column b: the stream, line 2 holds '1.234', but the file uses decimal commas.",
        "Left out 1 text column: c; c looks like numbers ('1.234,5').",
    )


def test_a_decimal_comma_after_the_first_lines_is_pointed_out():
    empty = "1.5;\n" * 30
    rows = read_text(f"a;b\n{empty}2.5;3,25\n")
    assert rows.names == ("a",)
    assert rows.notes == (
        "Left out the column b: the stream, line 32 holds '3,25', which looks like a decimal comma: give decimal=','.",
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a;b\n12,5;1.234\n", "line 2 holds '12,5', but line 2 holds '1.234'"),
        ("a;b\n\n1;1.234\n1.234,5;2\n", "line 4 holds '1.234,5', but line 3 holds '1.234'"),
        ("a\tb\n12,345\t1.5e3\n", "line 2 holds '12,345', but line 2 holds '1.5e3'"),
        ("sep=;\na;b\n12,345;1\n", "line 3 holds '12,345', which may mean 12345 or 12.345"),
    ],
)
def test_a_decimal_mark_in_doubt_is_asked_for(text, says):
    with pytest.raises(DataError) as caught:
        read_text(text)
    assert str(caught.value) == f'the stream, {says}: give decimal="," or decimal=".".'


def test_a_decimal_mark_given_is_used():
    assert whole(read_text("a;b\n12,345;1\n", decimal=",")).tolist() == [[12.345, 1]]
    rows = read_text("a;b\n12,345;1\n", decimal=".")
    assert rows.notes == ("Left out 1 text column: a; a looks like numbers ('12,345').",)
    assert whole(read_text('a,b\n"1,5",2\n', decimal=",")).tolist() == [[1.5, 2]]
    assert whole(read_text("a;b\n0,125;1\n")).tolist() == [[0.125, 1]]  # no thousands begin with 0
    assert read_text("1.5;2.5\n3,5;4,5\n", decimal=",").names == ("1.5", "2.5")


def test_the_decimal_mark_is_one_for_all_files(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n1;2\n")
    (tmp_path / "b.csv").write_text("x;y\n1,5;2\n")
    assert whole(read(tmp_path / "?.csv")).tolist() == [[1, 2], [1.5, 2]]
    (tmp_path / "c.csv").write_text("x;y\n1;2.5\n")
    with pytest.raises(DataError, match=r"b\.csv, line 2 holds '1,5', but .*c\.csv, line 2 holds '2\.5': give decimal"):
        read(tmp_path / "?.csv")


# --- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz", "x.csv", "x.tsv"])
@pytest.mark.parametrize("sep", [",", ";", "\t", "|", " ", "^"])
def test_delimiters(tmp_path, name, sep):
    X = numbers()
    write_table(tmp_path / name, X, sep=sep)
    given = sep if sep in " ^" or name == "x.tsv" else None
    assert np.array_equal(whole(read(tmp_path / name, delimiter=given)), X)


def test_header():
    named = read_text("1,2\n3,4\n", header=True)
    assert (named.names, whole(named).tolist(), named.notes) == (("1", "2"), [[3, 4]], ())
    data = read_text("0,1,2\n3,4,5\n", header=False)
    assert (data.names, whole(data).tolist(), data.notes) == (None, [[0, 1, 2], [3, 4, 5]], ())
    text = read_text("a,1\nb,2\n", header=False)
    assert (text.labels["0"].tolist(), whole(text).tolist()) == (["a", "b"], [[1], [2]])


@pytest.mark.parametrize(
    "wrong",
    [{"decimal": "x"}, {"decimal": ""}, {"header": "no"}]
    + [{"delimiter": sign} for sign in ("", ";;", "5", "e", "-", ".", '"', "\n", "é")],
)
def test_wrong_options(wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
        read_text("a,b\n1,2\n", **wrong)


@pytest.mark.parametrize("option", [{"decimal": "."}, {"delimiter": ","}])
def test_options_of_delimited_text_are_for_that(tmp_path, option):
    np.save(tmp_path / "x.npy", numbers())
    with pytest.raises(DataError, match=r"x\.npy is not delimited text: .* are for \.csv, \.tsv, \.txt\."):
        read(tmp_path / "x.npy", **option)


def test_drop():
    text = "id,kind,a,b\n1,x,1,2\n2,y,3,4\n"
    rows = read_text(text, drop=["id", "kind"])
    assert (rows.names, whole(rows).tolist(), dict(rows.labels), rows.notes) == (("a", "b"), [[1, 2], [3, 4]], {}, ())
    assert read_text(text, drop="b", index="id").names == ("a",)
    rows = read_text(",a\n1,2\n", drop="column 0")
    assert (rows.sample_names, rows.names, rows.notes) == (None, ("a",), ())
    with pytest.raises(DataError, match=r"no column 'kinds': did you mean kind\?"):
        read_text(text, drop="kinds")
    with pytest.raises(ValueError, match="drop names id, which label or index asks for"):
        read_text(text, drop="id", index="id")


@pytest.mark.needs("pandas")
def test_drop_from_parquet(tmp_path):
    import pandas as pd

    write_parquet(tmp_path / "x.parquet", {"id": [7, 8], "kind": ["x", "y"], "a": [1.0, 3.0]})
    rows = read(tmp_path / "x.parquet", drop=["id", "kind"])
    assert (rows.names, whole(rows).tolist(), dict(rows.labels), rows.notes) == (("a",), [[1], [3]], {}, ())
    pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["p", "q"], name="who")).to_parquet(tmp_path / "y.parquet")
    rows = read(tmp_path / "y.parquet", drop="who")
    assert (rows.names, rows.sample_names) == (("a",), None)


@pytest.mark.parametrize(("first", "step", "n", "noted"), [(1, 1, 10, 1), (7, 1, 5000, 1), (1, 1, 9, 0), (1, 2, 50, 0)])
def test_a_column_that_counts_rows_is_noted(first, step, n, noted):
    text = "id,x\n" + "".join(f"{first + step * i},{i % 7}\n" for i in range(n))
    rows = read_text(text, memory_limit=SMALL)
    assert rows.names == ("id", "x")
    assert rows.notes == ("Column id counts up by one: if it names the rows, give index='id'.",) * noted
    assert read_text(text + f"{first},0\n").notes == ()
    assert read_text("a,b\n" + "1e300,inf\n" * n).notes == ()


def test_empty_rows_at_the_end_of_each_file_are_skipped(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x,t\n1,u\n" + ",\n" * 40_000 + "2,v\n" + ",\n" * 40_000)
    rows = read(tmp_path / "?.csv", memory_limit=4 * SMALL)
    assert rows.shape == (80_004, 1)
    assert np.flatnonzero(~np.isnan(whole(rows)[:, 0])).tolist() == [0, 40_001, 40_002, 80_003]
    assert len(rows.labels["t"]) == 80_004
    assert rows.notes[-1] == "Skipped 80000 rows of empty cells at the end."


def test_a_header_one_cell_short_as_R_writes_it(tmp_path):
    (tmp_path / "x.txt").write_text('"a" "kind"\n"r 1" 1.5 "u"\n"r 2" 2 "v"\n')
    rows = read(tmp_path / "x.txt", delimiter=" ")
    assert (rows.names, rows.sample_names, list(rows.labels)) == (("a",), ("r 1", "r 2"), ["kind"])
    (tmp_path / "y.csv").write_text('"a";"b"\n"r1";1,5;2\n"r2";2,5;3\n')
    rows = read(tmp_path / "y.csv")
    assert (rows.names, rows.sample_names, whole(rows).tolist()) == (("a", "b"), ("r1", "r2"), [[1.5, 2], [2.5, 3]])


# --- labels and names -----------------------------------------------------------------------------


def test_label_and_index():
    text = "id,group,a,b\n007,1,1,2\n008,2,3,4\n"
    rows = read_text(text, label="group", index="id")
    assert rows.names == ("a", "b")
    assert rows.sample_names == ("007", "008")
    assert list(rows.labels) == ["group"]
    assert rows.labels["group"].tolist() == ["1", "2"]
    assert rows.notes == ()
    rows = read_text(text, label=["id", "group"], index="id")
    assert rows.sample_names == ("007", "008")
    assert sorted(rows.labels) == ["group", "id"]
    with pytest.raises(DataError, match=r"no column 'gruop': did you mean group\?"):
        read_text(text, label="gruop")
    with pytest.raises(DataError, match=r"no column 'zzz': its columns are id, group, a, b\."):
        read_text(text, index="zzz")
    with pytest.raises(DataError, match="has no column of numbers"):
        read_text(text, label=["id", "group", "a", "b"])


def test_label_and_index_of_parquet(tmp_path):
    write_parquet(tmp_path / "x.parquet", {"id": [7, 8], "group": [1.5, None], "a": [1, 2]})
    rows = read(tmp_path / "x.parquet", label="group", index="id")
    assert (rows.names, rows.sample_names, rows.labels["group"].tolist()) == (("a",), ("7", "8"), ["1.5", ""])
    with pytest.raises(DataError, match=r"x\.parquet has no column 'grp': did you mean group\?"):
        read(tmp_path / "x.parquet", label="grp")


def test_arrays_have_no_named_columns(tmp_path):
    np.save(tmp_path / "x.npy", numbers())
    with pytest.raises(DataError, match=r"x\.npy has no named columns: label is for \.csv, \.tsv, \.txt, \.parquet, "):
        read(tmp_path / "x.npy", label="a")
    with pytest.raises(DataError, match=r"x\.npy is no table: drop and index are for \.csv, \.tsv, \.txt, \.parquet, "):
        read(tmp_path / "x.npy", drop="a")


@pytest.mark.parametrize("late", ["word", '"two\nlines"'])
def test_a_column_may_turn_to_text_at_the_end(tmp_path, late):
    """Its labels are as they were written from the first row on, though numbers were expected there."""
    n = 5000
    path = tmp_path / "x.csv"
    path.write_text("a,b\n" + "".join(f"{i},{i:05d}\n" for i in range(n)) + f"{n},{late}\n")
    rows = read(path, memory_limit=SMALL)
    assert rows.shape == (n + 1, 1)
    assert rows.labels["b"].tolist() == [f"{i:05d}" for i in range(n)] + [late.strip('"')]
    assert len(rows.notes) == 2
    assert f"x.csv, line {n + 2 + late.count(chr(10))} holds" in rows.notes[0]
    assert rows.notes[1] == "Column a counts up by one: if it names the rows, give index='a'."


def test_a_column_may_turn_out_true_or_false_or_not_after_many_empty_cells(tmp_path):
    empty = "1,,\n" * 5000
    (tmp_path / "x.csv").write_text(f"a,b,c\n{empty}2,true,true\n{empty}3,false,no\n")
    rows = read(tmp_path / "x.csv", memory_limit=SMALL)
    assert rows.names == ("a", "b")
    assert list(rows.labels) == ["c"]
    assert np.nansum(whole(rows), axis=0).tolist() == [10005, 1]


@contextlib.contextmanager
def pieces_of(size):
    """Files are read so many bytes at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("princomp.data.cells.PIECE_BYTES", size)
        yield


cells = st.text(st.sampled_from('ab1. ,;"\n\té\u202e'), max_size=6)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=40), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_quoted_text_is_read_as_the_csv_module_wrote_it(rows, newline, often):
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=newline, quoting=csv.QUOTE_ALL if often else csv.QUOTE_MINIMAL)
    writer.writerow(["p", "q", "x"])
    writer.writerows([(*row, i) for i, row in enumerate(rows)])
    for size in (2**20, 1, 7, 64):
        with pieces_of(size):
            found = read_text(text.getvalue(), label=["p", "q"])
        assert whole(found).ravel().tolist() == list(range(len(rows)))
        for name, expected in zip("pq", zip(*rows)):
            # Only the space around cells without quotes is lost.
            assert [cell.strip() for cell in found.labels[name]] == [cell.strip() for cell in expected]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.floats(), min_size=2, max_size=2), min_size=1, max_size=60), st.sampled_from(",;\t"))
def test_numbers_are_read_to_the_last_bit(values, sep):
    X = np.array(values)
    text = sep.join("xy") + "\n" + "".join(sep.join(map(repr, row)) + "\n" for row in values)
    for size in (2**20, 1, 64):
        with pieces_of(size):
            assert whole(read_text(text)).tobytes() == np.where(np.isnan(X), np.nan, X).tobytes()


# --- streams --------------------------------------------------------------------------------------


def test_standard_input():
    code = "from princomp.data import read; rows = read('-'); print(rows.shape, rows.labels['b'].tolist())"
    done = subprocess.run([sys.executable, "-c", code], input="a,b\n1,x\n2,y\n", capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(2, 1) ['x', 'y']\n", "")


def test_binary_and_compressed_streams_and_not_text(tmp_path):
    assert read_text(gzip.compress(b"a\n1\n")).shape == (1, 1)
    (tmp_path / "x.csv").write_text("a\n1\n")
    with open(tmp_path / "x.csv", "rb") as file:
        assert read(file).shape == (1, 1)
    with open(tmp_path / "x.csv") as file, pytest.raises(DataError, match=r"x\.csv gives text, not bytes"):
        read(file)
    with pytest.raises(TypeError, match="path must be a path or a binary file, got int"):
        read(3)
    with pytest.raises(DataError, match=r"is empty\.$"):
        read(io.BytesIO())


def assert_nameless(folder):
    """There is an open temporary file in the folder, and nothing to be seen."""
    assert list(folder.iterdir()) == []
    opened = [os.path.realpath(link) for link in glob.glob("/proc/self/fd/*")]
    if opened:
        assert [path for path in opened if path.startswith(f"{folder}/") and path.endswith(" (deleted)")]


def test_a_large_stream_is_spilled(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    X = numbers(5000, 3)
    text = "a,b,c\n" + "".join(",".join(map(repr, row)) + "\n" for row in X.tolist())
    rows = read_text(text, memory_limit=2**17)
    assert isinstance(rows, FileRows)
    assert np.array_equal(whole(rows), X)
    assert_nameless(tmp_path)


# --- damaged and hostile files ----------------------------------------------------------------------


def csv_file(text):
    return lambda path: path.write_bytes(text if isinstance(text, bytes) else text.encode())


def npy_header(shape, descr="<f8"):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def npz_of(**members):
    def write(path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(f"{name}.npy", content)

    return write


def cut(writer, keep):
    """What the writer writes, less its end."""

    def write(path):
        writer(path, numbers(300, 5))
        content = path.read_bytes()
        path.write_bytes(content[: int(keep * len(content))])

    return write


def wrong_sparse(path):
    np.savez(
        path, format=np.array(b"csr"), shape=np.array([2, 3]), data=np.ones(2), indices=[0, 10**9], indptr=[0, 1, 2]
    )


def other_sparse(kind, *shape):
    """A sparse array as scipy.sparse.save_npz would write it, of some format and shape."""
    return lambda path: np.savez(path, format=np.array(kind), shape=np.array(shape), data=np.ones(2))


def pyarrow_table(columns):
    return pytest.importorskip("pyarrow").table(columns)


def pickled(path):
    np.save(path, np.array([[print]], dtype=object), allow_pickle=True)


def not_there(path):
    pass


# what: (code, file name, how it is made, what the message says after naming the file)
FAULTS = {
    "missing file": ("P5", "x.csv", not_there, "there is no such file"),
    "missing file of no known kind": ("P5", "x", not_there, "there is no such file"),
    "nothing matches": ("P5", "y*.csv", not_there, "no file matches this pattern"),
    "a folder": ("P5", "x.csv", os.mkdir, "is a folder: name a file, or several by a pattern"),
    "a folder without extension": ("P5", "x", os.mkdir, r"is a folder without images \(.*\): name a file, or several"),
    "a pipe": ("P5", "x.csv", os.mkfifo, "is not a regular file"),
    "unknown kind": ("P5", "x.docx", csv_file(b"PK"), r"is of no kind that can be read: \.npy"),
    "empty csv": ("P5", "x.csv", csv_file(b""), "is empty"),
    "empty npy": ("P5", "x.npy", csv_file(b""), "is empty"),
    "blank csv": ("P5", "x.csv", csv_file(b"\n\n"), "holds blank lines only"),
    "header only": ("P5", "x.csv", csv_file(b"a,b\n"), "has no rows of data"),
    "text only": ("P5", "x.csv", csv_file(b"a,b\nx,y\n"), "has no column of numbers; its columns, .*, are a, b"),
    "npy cut off": ("P5", "x.npy", cut(np.save, 0.5), "is cut off: its header asks for 12128 bytes, it has 6064"),
    "npz cut off": ("P5", "x.npz", cut(np.savez, 0.5), r"is not a whole \.npz file"),
    "parquet cut off": ("P5", "x.parquet", cut(WRITERS["x.parquet"], 0.5), "cannot be read as Parquet"),
    "mtx cut off": ("P5", "x.mtx", cut(WRITERS["sparse.mtx"], 0.5), "is cut off|line 1...: expected 3 numbers"),
    "csv.gz cut off": ("P5", "x.csv.gz", cut(write_table, 0.5), "is cut off"),
    "csv cut off": ("P5", "x.csv", csv_file("a,b,c\n1,2,3\n4,5"), r"line 3 has 2 cells, but the first line has 3"),
    "npz damaged": (
        "S2",
        "x.npz",
        lambda path: csv_file(npz_bytes().replace(b"PK\x03\x04", b"PK\x03\x05", 1))(path),
        r"is not a whole \.npz file",
    ),
    "not an npy": ("S4", "x.npy", csv_file(b"hello, world, this is text"), "is not a NumPy array file"),
    "objects in npy": ("S4", "x.npy", pickled, "holds Python objects, which are never loaded"),
    "objects in npz": ("S4", "x.npz", lambda path: np.savez(path, np.array([[print]])), "holds no matrix of numbers"),
    "pickle": ("S4", "x.npy", csv_file(pickle.dumps(numbers())), "is not a NumPy array file"),
    "npy in 3-d": ("S4", "x.npy", lambda path: np.save(path, np.ones((2, 2, 2))), r"an array of shape \(2, 2, 2\)"),
    "complex npy": (
        "S4",
        "x.npy",
        lambda path: np.save(path, np.ones((2, 2), complex)),
        "complex128, not real numbers",
    ),
    "npy claims 1e12 rows": ("S2", "x.npy", csv_file(npy_header((10**12, 8))), "is cut off"),
    "npy claims -1 rows": ("S2", "x.npy", csv_file(npy_header((-1, 8))), r"claims the shape \(-1, 8\)"),
    "npz member claims 1e12 rows": ("S2", "x.npz", npz_of(x=npy_header((10**12, 8))), "contradict each other"),
    "sparse npz with wrong indices": ("S2", "x.npz", wrong_sparse, "is not a valid sparse matrix"),
    "sparse npz of an unknown format": ("S2", "x.npz", other_sparse(b"dok", 4, 3), "of the unknown kind dok"),
    "sparse npz in 3-d": ("S2", "x.npz", other_sparse("coo", 4, 3, 2), r"kind coo and shape \(4, 3, 2\)"),
    "parquet without numbers": (
        "P5",
        "x.parquet",
        lambda path: pytest.importorskip("pyarrow.parquet").write_table(pyarrow_table({"a": ["x", "y"]}), path),
        "has no column of numbers; its columns are a",
    ),
    "mtx of coordinates without their number": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix coordinate real general\n9 9\n1 1 1\n"),
        "the size of its matrix does not fit its kind",
    ),
    "mtx of an array with a number of entries": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix array real general\n1 1 1\n1\n"),
        "the size of its matrix does not fit its kind",
    ),
    "mtx that is symmetric and not square": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix array real symmetric\n2 1\n1\n2\n"),
        "the size of its matrix does not fit its kind",
    ),
    "mtx claims 1e6 entries": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix coordinate real general\n9 9 1000000\n1 1 1\n"),
        "is cut off: it has fewer entries than its header gives",
    ),
    "mtx entry outside": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix coordinate real general\n9 9 2\n1 1 1\n10 1 5\n"),
        "has an entry outside its 9 rows and 9 columns",
    ),
    "mtx entry before the first": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix coordinate real general\n9 9 2\n1 1 1\n0 1 5\n"),
        "has an entry whose place is not a whole number from 1 on",
    ),
    "mtx of other words": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix array real general\n% no\n\n2 1\n1.5\n1.739T1\n"),
        r"line 6: expected 1 number\.",
    ),
    "mtx of more entries": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix array real general\n1 1\n1.5\n2\n"),
        "has more entries than its header gives",
    ),
    "complex mtx": (
        "S2",
        "x.mtx",
        csv_file(b"%%MatrixMarket matrix array complex general\n1 1\n1 2\n"),
        "of a kind that is not read: array complex general",
    ),
    "not an mtx": ("S2", "x.mtx", csv_file(b"1 2 3\n"), "is not a Matrix Market file"),
    "ragged line": ("S6a", "x.csv", csv_file(b"a,b\n1,2\n\n3,4,5\n"), "line 4 has 3 cells, but the first line has 2"),
    "ragged line after a quoted one": (
        "S6a",
        "x.csv",
        csv_file(b'a,b\n"x\ny",2\n3\n'),
        "line 4 has 1 cell, but the first line has 2",
    ),
    "unclosed quote": (
        "S6a",
        "x.csv",
        csv_file(b'a,b\n1,2\n3,"4\n5,6\n'),
        "line 3: a quote is opened and never closed",
    ),
    "NUL": ("S6a", "x.csv", csv_file(b"a,b\n1,2\n3,\0\n"), "line 3: there is a NUL byte, so this is not a text file"),
    "binary": ("S6a", "x.csv", csv_file(npy_header((3, 3)) + bytes(72)), "line 1: there is a NUL byte|not UTF-8"),
    "UTF-16": ("S6a", "x.csv", csv_file("a,b\n1,2\n".encode("utf-16")), "is in UTF-16: save it as UTF-8"),
    "mixed encodings": (
        "S6a",
        "x.csv",
        csv_file("a,b\n1,é\n".encode() + "2,é\n".encode("latin1")),
        "line 3: the byte 0xe9 is not UTF-8",
    ),
}


def npz_bytes():
    content = io.BytesIO()
    np.savez(content, numbers())
    return content.getvalue()


@pytest.mark.parametrize("what", FAULTS)
def test_S6a_P5_faults_are_one_sentence_that_names_the_file(tmp_path, observe, what):
    code, name, make, expected = FAULTS[what]
    path = tmp_path / name
    make(path)
    with pytest.raises(DataError, match=expected) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    observe(code, what, f"DataError: {message.replace(f'{tmp_path}/', '')}")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    write_table(tmp_path / "x.csv", numbers())
    (tmp_path / "x.csv").chmod(0)
    with pytest.raises(DataError, match=r"x\.csv cannot be read \(Permission denied\)"):
        read(tmp_path / "x.csv")


def test_S6a_byte_order_mark_and_overflow(tmp_path, observe):
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbfa,b\n1,1e309\n2,3\n4,1e308\n")
    rows = read(tmp_path / "x.csv")
    assert rows.names == ("a", "b")
    assert whole(rows)[:, 1].tolist() == [np.inf, 3, 1e308]
    with pytest.raises(ValueError, match="inf in column 'b'") as caught:
        PCA(1).fit(rows)
    observe("S6a", "byte order mark", "read")
    observe("S6a", "1e309", f"inf; the fit says: {caught.value}")


def test_S6a_a_million_columns(tmp_path, observe):
    p = 10**6
    path = tmp_path / "x.csv"
    path.write_text(",".join(map(str, range(1, p + 1))) + "\n" + ",".join(["2.5"] * p) + "\n")
    rows = read(path)
    assert rows.shape == (2, p)
    assert rows.block(0)[:, -1].tolist() == [p, 2.5]
    observe("S6a", "1e6 columns", f"read: {rows}")


# Run in a process of its own, so that its peak memory can be read.
MEASURE = """
    import sys, time
    import pyarrow.compute, numpy, princomp.data
    from princomp.data import DataError, read

    def peak():
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

    before, begin = peak(), time.process_time()
    try:
        rows = read(sys.argv[1], memory_limit=int(sys.argv[2]))
        total = sum(numpy.nansum(rows.block(i)) for i in range(len(rows.offsets) - 1))
        outcome = f"{rows.shape} {total:.10g}"
    except (DataError, MemoryError) as error:
        outcome = f"{type(error).__name__}: {error}"
    print(peak() - before, round(time.process_time() - begin, 2), outcome, sep="|")
"""

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from /proc")


def measured(path, memory_limit):
    """(MiB of memory beyond the start, seconds, what came out) of reading a file in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(path), str(memory_limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, seconds, outcome = done.stdout.strip().split("|")
    return int(grown), float(seconds), outcome


def long_line(path, mebibytes):
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else open(path, "wb") as file:
        file.write(b"a,b\n1,2\n")
        for _ in range(mebibytes):
            file.write(b"1.25,3.5" * 2**17)


@needs_proc
@pytest.mark.parametrize("mebibytes", [100, pytest.param(1024, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
def test_S6b_one_long_line_is_refused_before_memory_grows(tmp_path, observe, name, mebibytes):
    path = tmp_path / name
    long_line(path, mebibytes)
    grown, seconds, outcome = measured(path, 2**28)
    assert outcome == f"MemoryError: {path}, line 3 is longer than 8 MiB: raise memory_limit to read it."
    assert grown < 128
    observe("S6b", f"{name}: one line of {mebibytes} MiB, limit 256 MiB", f"MemoryError at {grown} MiB, {seconds} s")


@needs_proc
def test_S6b_an_unclosed_quote_does_not_swallow_the_file(tmp_path, observe):
    path = tmp_path / "x.csv"
    path.write_bytes(b'a,b\n1,"2\n' + b"3,4\n" * 2**24)
    grown, seconds, outcome = measured(path, 2**28)
    assert outcome == f"DataError: {path}, line 2: a quote is opened and not closed within 8 MiB."
    assert grown < 256
    observe("S6b", "quote open for 64 MiB, limit 256 MiB", f"DataError at {grown} MiB, {seconds} s")


@needs_proc
def test_S6b_zeros_in_gzip(tmp_path, observe):
    path = tmp_path / "x.csv.gz"
    with gzip.open(path, "wb", 1) as file:
        for _ in range(256):
            file.write(bytes(2**20))
    grown, seconds, outcome = measured(path, 2**28)
    assert "there is a NUL byte" in outcome
    assert grown < 64
    observe("S6b", "256 MiB of zeros in .csv.gz", f"DataError at {grown} MiB, {seconds} s")


@needs_proc
def test_S6b_a_bomb_of_good_rows_is_spilled(tmp_path, observe):
    """100 MiB of rows, which are 200 MiB of numbers, from 0.5 MB of file: memory stays flat."""
    path = tmp_path / "x.csv.gz"
    with gzip.open(path, "wb", 6) as file:
        file.write(b"a,b\n")
        for _ in range(100):
            file.write(b"1,2.5678\n" * 116_000)
    grown, seconds, outcome = measured(path, 2**26)
    assert outcome.startswith("(11600000, 2) ")
    assert grown < 128
    observe(
        "S6b", f"{path.stat().st_size >> 10} kB of .csv.gz: 180 MB of rows, limit 64 MiB", f"{grown} MiB, {seconds} s"
    )


@needs_proc
@pytest.mark.parametrize("mebibytes", [30, pytest.param(300, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_large_tables_are_read_within_the_limit(tmp_path, kind, mebibytes):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    path, total, n = tmp_path / f"x.{kind}", 0.0, 0
    rng = np.random.default_rng(0)
    schema = pa.schema([*((f"x{j}", pa.float64()) for j in range(40)), ("kind", pa.string())])
    make = pa.csv.CSVWriter if kind == "csv" else pq.ParquetWriter
    with make(path, schema) as writer:
        for _ in range(mebibytes // 8):  # 8 MiB each as float64, twice that as text
            X = rng.normal(size=(26_000, 40))
            kinds = np.array(["one", "two"])[rng.integers(0, 2, len(X))]
            writer.write_table(pa.table([*X.T.copy(), kinds], schema=schema))
            total, n = total + X.sum(), n + len(X)
    grown, seconds, outcome = measured(path, 2**26)
    shape, _, found = outcome.rpartition(" ")
    assert shape == f"({n}, 40)"
    assert float(found) == pytest.approx(total, rel=1e-6)
    print(f"{path.stat().st_size >> 20} MiB of {kind}: {grown} MiB more memory, {seconds} s")
    assert grown < 256


@needs_proc
def test_S2_npz_bomb(tmp_path, observe):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, np.zeros((2**12, 2**13)))  # 256 MiB in 256 kB
    grown, seconds, outcome = measured(path, 2**26)
    assert outcome.startswith(f"MemoryError: {path}, array arr_0, needs 0.25 GiB of memory, but 0.0625 GiB may be used")
    assert grown < 50
    observe(
        "S2",
        f"{path.stat().st_size >> 10} kB of .npz: 256 MiB, limit 64 MiB",
        f"MemoryError at {grown} MiB, {seconds} s",
    )


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz"])
def test_S2_mtx_claims_a_trillion(tmp_path, observe, name):
    for size in ("9 9 1000000000000", "1000000000000 9 1", "1000000 1000000"):
        kind = b"coordinate" if size.count(" ") == 2 else b"array"
        text = b"%%MatrixMarket matrix " + kind + b" real general\n% a comment\n" + size.encode() + b"\n1 1 1\n"
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        with pytest.raises(MemoryError, match=rf"{name} needs .* GiB of memory"):
            read(tmp_path / name)
        observe("S2", f"{name}: {size}", "MemoryError")


def test_S2_sparse_npz_claims_a_trillion_rows(tmp_path):
    parts = {"format": np.array(b"csr"), "data": np.ones(1), "indices": [0], "indptr": [0, 1]}
    np.savez(tmp_path / "x.npz", shape=np.array([10**12, 3]), **parts)
    with pytest.raises(MemoryError, match=r"x\.npz, 1000000000000 x 3, needs"):
        read(tmp_path / "x.npz")


# --- files that change ------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["cut off", "written to", "replaced", "gone"])
def test_P5_npy_changed_while_it_is_read(tmp_path, observe, change):
    """The file is read in blocks during the fit: a change is an error, neither a crash nor a wrong answer."""
    path = tmp_path / "x.npy"
    np.save(path, numbers(1000))
    rows = read(path, memory_limit=1000)
    assert isinstance(rows, FileRows)
    if change == "cut off":
        os.truncate(path, 1000)
    elif change == "gone":
        path.unlink()
    else:
        if change == "replaced":
            path.unlink()
        np.save(path, numbers(1000, seed=1))
        os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match=r"x\.npy changed while it was read|x\.npy: there is no such file") as caught:
        PCA(2).fit(rows)
    observe("P5", f"npy {change} during the fit", f"DataError: {str(caught.value).replace(f'{tmp_path}/', '')}")


@pytest.mark.parametrize("change", ["grows", "cut off"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_P5_table_changed_while_it_is_read(tmp_path, monkeypatch, observe, kind, change):
    path = tmp_path / f"x.{kind}"
    WRITERS[f"x.{kind}"](path, numbers(20_000, 60))
    append = Sink.append

    def append_and_change(sink, rows):  # after the first of several parts
        append(sink, rows)
        with open(path, "r+b") as file:
            file.truncate(path.stat().st_size + (1 if change == "grows" else -1_000_000))

    monkeypatch.setattr(Sink, "append", append_and_change)
    with pytest.raises(DataError, match=rf"x\.{kind} changed while it was read") as caught:
        read(path)
    observe("P5", f"{kind} {change} while it is read", f"DataError: {str(caught.value).replace(f'{tmp_path}/', '')}")


# --- odd names ----------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not have such names")
@pytest.mark.parametrize("kind", [".csv", ".npy", ".npz", ".mtx", ".parquet"])
def test_P4c_file_names_that_are_not_utf8(tmp_path, observe, kind):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9" + kind.encode())
    plain = tmp_path / f"x{kind}"
    WRITERS.get(f"x{kind}", scipy.io.mmwrite)(plain, numbers())
    os.rename(plain, path)
    assert read(path).shape == (12, 4)
    assert read(os.fsencode(path).decode(errors="surrogateescape").replace("caf", "ca*")).shape == (12, 4)
    os.truncate(path, 10)
    with pytest.raises(DataError, match=r"caf\\udce9") as caught:
        read(path)
    str(caught.value).encode()  # can be printed anywhere
    observe("P4c", f"caf\\xe9{kind}", "read; errors show it escaped")


def test_P4c_names_that_begin_with_a_dash(tmp_path, monkeypatch, observe):
    monkeypatch.chdir(tmp_path)
    for name in ("-x.csv", "--.csv", "-.csv"):
        write_table(tmp_path / name, numbers())
        assert read(name).shape == (12, 4)
    assert read("-*.csv").shape == (36, 4)
    observe("P4c", "-x.csv", "read; only '-' alone is standard input")


def test_a_name_with_brackets_is_itself_first(tmp_path):
    write_table(tmp_path / "x[1].csv", numbers(3))
    write_table(tmp_path / "x1.csv", numbers(5))
    assert read(tmp_path / "x[1].csv").shape == (3, 4)
    (tmp_path / "x[1].csv").unlink()
    assert read(tmp_path / "x[1].csv").shape == (5, 4)


# --- memory ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [".csv", ".parquet", ".npy"])
def test_spilled_or_in_memory_the_fit_is_the_same(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "spill"))
    (tmp_path / "spill").mkdir()
    X = numbers(4000, 6)
    path = tmp_path / f"x{kind}"
    WRITERS[f"x{kind}"](path, X)
    rows = read(path, memory_limit=SMALL // 16, block_rows=300)
    assert isinstance(rows, FileRows)
    assert len(rows.offsets) == 15
    if kind != ".npy":  # which is read from where it is
        assert_nameless(tmp_path / "spill")
    fitted, expected = PCA(3).fit(rows), PCA(3).fit(X)
    assert np.allclose(fitted.components_, expected.components_, atol=1e-12)
    assert np.allclose(fitted.transform(rows), expected.transform(X), atol=1e-12)
    assert PCA(3, solver="krylov", random_state=0).fit(rows).result_.certificate.holds


def test_no_room_for_the_temporary_file(tmp_path, monkeypatch):
    """A disk is left with some room, whatever a file expands to."""
    write_table(tmp_path / "x.csv", numbers(5000))
    monkeypatch.setattr("princomp.data.stored.SPARE_SHARE", 1.0)
    with pytest.raises(OSError, match="has too little room for a temporary file: set TMPDIR") as caught:
        read(tmp_path / "x.csv", memory_limit=SMALL // 16)
    assert not isinstance(caught.value, DataError)


def test_text_is_let_go_of_before_it_fills_memory(tmp_path):
    n = 20_000
    (tmp_path / "x.csv").write_text(
        "id,kind,x\n" + "".join(f"sample number {i},{'ab'[i % 2]},{-i}\n" for i in range(n))
    )
    rows = read(tmp_path / "x.csv", memory_limit=2 * SMALL)
    assert rows.labels["kind"].tolist() == ["a", "b"] * (n // 2)
    assert "id" not in rows.labels
    assert rows.notes == (
        "Left out 2 text columns: id, kind.",
        "Did not keep the text of 1 column, to save memory: id.",
    )
    rows = read(tmp_path / "x.csv", index="id", memory_limit=2 * SMALL)
    assert rows.sample_names is None
    assert rows.notes[-1] == "Did not keep the text of 1 column, to save memory: id."


def test_many_text_columns(tmp_path):
    p = 300
    (tmp_path / "x.csv").write_text("x," + ",".join(f"t{j}" for j in range(p)) + "\n" + "1" + ",word" * p + "\n")
    rows = read(tmp_path / "x.csv", label="t250")
    assert len(rows.labels) == 100
    assert "t250" in rows.labels
    assert rows.notes[0].startswith("Left out 299 text columns: t0, t1, ")
    assert rows.notes[0].endswith(" and 289 more.")


@pytest.mark.parametrize("memory_limit", [0, -1])
def test_a_memory_limit_must_be_positive(memory_limit):
    with pytest.raises(ValueError, match="memory_limit must be at least 1 byte"):
        read_text("a\n1\n", memory_limit=memory_limit)


def test_speed(tmp_path):
    X = np.random.default_rng(0).normal(size=(20_000, 100))
    write_table(tmp_path / "x.csv", X)
    read_text("a\n1\n")  # imports
    begin = time.process_time()
    rows = read(tmp_path / "x.csv")
    seconds = time.process_time() - begin
    print(f"20000 x 100 CSV of {(tmp_path / 'x.csv').stat().st_size >> 20} MiB: {seconds:.2f} s of processor time")
    assert np.array_equal(whole(rows), X)
    assert seconds < 2


def test_P9_without_pyarrow_arrays_are_read_and_tables_say_what_is_missing(tmp_path, observe):
    np.save(tmp_path / "x.npy", numbers())
    scipy.io.mmwrite(tmp_path / "x.mtx", numbers())
    write_table(tmp_path / "x.csv", numbers())
    code = """
        import sys
        sys.modules["pyarrow"] = None
        from princomp.data import read
        print(read(sys.argv[1] + "/x.npy").shape, read(sys.argv[1] + "/x.mtx").shape)
        read(sys.argv[1] + "/x.csv")
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "(12, 4) (12, 4)\n"
    assert done.stderr.splitlines()[-1].endswith('pip install "princomp[io]"')
    observe("P9", "pyarrow missing", done.stderr.splitlines()[-1])
