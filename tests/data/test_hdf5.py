"""HDF5: what is read, in which blocks, what datasets of h5py are as X, and what hostile files come to."""

import os
import subprocess
import sys
import textwrap
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from containers import measured, needs_proc, numbers, whole, without
from princomp import PCA, ProbabilisticPCA, SparsePCA
from princomp.data import DataError, as_rows, read
from princomp.data.hdf5 import member, opened
from princomp.data.reading import File
from princomp.data.stored import FileRows
from running import princomp

pytestmark = pytest.mark.needs("h5py")

SMALL = 2**13  # a memory limit under which the matrix is read in blocks, but a block of it still fits


def write(path, X, name="x", **how):
    import h5py

    with h5py.File(path, "a") as file:
        file.create_dataset(name, data=X, **how)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.h5"


# --- what is read -----------------------------------------------------------------------------------

LAYOUTS = {
    "one after the other": {},
    "chunks": {"chunks": (7, 2)},
    "gzip": {"chunks": (7, 5), "compression": "gzip"},
    "gzip, shuffle, fletcher32": {"chunks": (8, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "fletcher32": {"chunks": (60, 1), "fletcher32": True},
    "lzf": {"chunks": (100, 1), "compression": "lzf", "maxshape": (None, 5)},
}


@pytest.mark.parametrize("memory_limit", [None, SMALL])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_matrix(path, layout, memory_limit):
    X = numbers()
    write(path, X, **LAYOUTS[layout])
    rows = read(path, memory_limit=memory_limit, block_rows=memory_limit and 11)
    assert isinstance(rows, FileRows) == (memory_limit is not None)
    assert np.array_equal(whole(rows), X)
    assert np.allclose(PCA(2).fit(rows).explained_variance_, PCA(2).fit(X).explained_variance_, rtol=1e-12)


def test_scale_offset_of_whole_numbers(path):
    X = (numbers() * 100).astype(int)
    write(path, X, chunks=(9, 5), scaleoffset=0)
    assert np.array_equal(whole(read(path)), X)


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", ">f8", ">i4", "i2", "u8", "?"])
def test_numbers_of_any_type(tmp_path, dtype):
    X = numbers() > 0 if dtype == "?" else (10 * abs(numbers())).astype(dtype)
    write(tmp_path / "x.HDF5", X)
    rows = read(tmp_path / "x.HDF5")
    assert np.array_equal(whole(rows), X)
    assert rows.dtype == (np.float32 if dtype == "f4" else np.float64)


def test_the_only_matrix_is_found_and_one_of_several_asked_for(path):
    import h5py

    X = numbers()
    write(path, X, "deep/er/x")
    write(path, np.arange(3), "count")
    write(path, ["a", "b"], "words")
    with h5py.File(path, "a") as file:
        file["again"] = file["deep/er/x"]  # another name of the same dataset
        file["deep/round"] = file["deep"]  # a group that holds itself
        file["soft"] = h5py.SoftLink("/deep/er/x")
        file["deep/soft"] = h5py.SoftLink("er")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["nothing"] = h5py.Empty("f8")
    for name in ("", "::deep/er/x", "::/deep/er", "::soft", "::deep/soft/x", "::again", "::deep//./er/x"):
        assert np.array_equal(whole(read(f"{path}{name}")), X)
    write(path, -X, "other")
    with pytest.raises(
        DataError, match=r"x\.h5 holds several matrices \(again, other\): pick one, as in .*x\.h5::again"
    ):
        read(path)
    assert np.array_equal(whole(read(f"{path}::other")), -X)
    for name, says in {
        "missing": r"x\.h5, missing, is not there: its group holds again, count, ",
        "deep/x": r"x\.h5, deep/x, is not there: its group holds er, round, soft\.",
        "dangling": r"x\.h5, nowhere, is not there",
        "other/x": "has no other/x: other is no group",
        "count": r"dataset count, holds an array of shape \(3,\): expected two dimensions",
        "words": "dataset words, holds Python objects, which are never loaded",
        "nothing": "dataset nothing, is empty",
    }.items():
        with pytest.raises(DataError, match=says):
            read(f"{path}::{name}")


def test_the_shape_of_a_cube_is_said(path):
    write(path, np.zeros((4, 5, 6)), "cube")
    with pytest.raises(DataError, match=r"no matrix of numbers \(it holds cube of shape \(4, 5, 6\)\)"):
        read(path)


def test_what_is_no_matrix_of_numbers_is_said(path):
    import h5py

    write(path, np.zeros(4, [("a", "f8"), ("b", "i4")]), "records")
    write(path, np.zeros((2, 2), complex), "complex")
    with pytest.raises(DataError, match=r"x\.h5 holds no matrix .*\(it holds complex, records of shape \(4,\)\)"):
        read(path)
    with pytest.raises(DataError, match="dataset complex, holds complex128, not real numbers"):
        read(f"{path}::complex")
    with h5py.File(path, "a") as file:
        file.create_group("df").attrs["pandas_type"] = "frame"
        file["df/block0_values"] = numbers()
    with pytest.raises(DataError, match="holds a frame as pandas lays it out: write it with to_parquet"):
        read(path)


def test_names_that_are_not_utf8(path):
    import h5py

    with h5py.File(path, "w") as file:
        file[b"caf\xe9"] = numbers()
    assert read(path).shape == (60, 5)
    assert read(f"{path}::caf\udce9").shape == (60, 5)


def test_a_pattern_is_shards_in_sorted_order(tmp_path):
    X = numbers()
    for i in (2, 0, 1):
        write(tmp_path / f"part-{i}.h5", X[20 * i : 20 * i + 20], "a", chunks=(6, 5), compression="gzip")
        write(tmp_path / f"part-{i}.h5", np.zeros((2, 2)), "b")
    for memory_limit in (None, SMALL):
        assert np.array_equal(whole(read(f"{tmp_path}/part-*.h5::a", memory_limit=memory_limit)), X)
    with pytest.raises(DataError, match=r"part-0\.h5 holds several matrices"):
        read(tmp_path / "part-*.h5")
    write(tmp_path / "part-3.h5", X[:, :3], "a")
    with pytest.raises(DataError, match=r"part-3.* has 3 columns, but .*part-0.* has 5\."):
        read(f"{tmp_path}/part-*.h5::a")


def test_blocks_hold_whole_chunks_unless_these_are_far_too_large(path):
    X = np.zeros((4000, 4))
    for name, rows, packed in (("small", 30, True), ("large", 250, True), ("huge", 4000, True), ("plain", 4000, False)):
        write(path, X, name, chunks=(rows, 2), compression="gzip" if packed else None)
    found = {name: read(f"{path}::{name}", memory_limit=2**18, block_bytes=3200) for name in ("small", "large", "huge")}
    assert [int(rows.offsets[1]) for rows in found.values()] == [90, 250, 100]
    assert [len(rows.notes) for rows in found.values()] == [0, 0, 1]
    assert "dataset huge, is packed in chunks of 4000 rows, all of which are unpacked for" in found["huge"].notes[0]
    assert read(f"{path}::plain", memory_limit=2**18, block_bytes=3200).notes == ()
    assert read(f"{path}::small", memory_limit=2**18, block_rows=7).offsets[1] == 7  # as it is told


@needs_proc
def test_a_large_file_in_columns_is_read_in_bounded_memory(path):
    """160 MB in chunks of all rows and one column, of which a block is some rows of all columns."""
    import h5py

    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", (50_000, 400), "f8", chunks=(50_000, 1))
        data[:, ::40] = 1
    grown, outcome = measured(path, 2**26, "h5py")
    assert float(outcome) == 500_000
    assert grown < 64


def test_many_threads_read_at_once(path):
    """As those of a fit do: h5py guards what it does by a lock, but not the reading of packed chunks."""
    X = numbers(1000)
    write(path, X, chunks=(5, 5), compression="gzip")
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-5)
        with ThreadPoolExecutor(8) as pool:
            for _ in range(5):
                rows = read(path, memory_limit=2**16, block_rows=20)
                assert np.array_equal(np.concatenate(list(pool.map(rows.block, range(50)))), X)
    finally:
        sys.setswitchinterval(interval)


def open_files():
    """Where the descriptors of this process lead to."""
    return [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]


@needs_proc
def test_nothing_stays_open(path):
    X = numbers()
    write(path, X, chunks=(6, 5), compression="gzip")
    with path.open("rb"):
        assert str(path) in open_files()
    rows = read(path, memory_limit=SMALL, block_rows=3)
    PCA(2).fit(rows)
    for stop in (1, 5):  # what is asked for ends early

        def fail(block, rows, stop=stop):
            if rows.start >= stop:
                raise KeyboardInterrupt
            return block.sum(axis=0)

        with pytest.raises(KeyboardInterrupt):
            rows.reduce(fail)
    deadline = time.monotonic() + 10  # blocks that were under way are read to their end
    while str(path) in open_files():
        assert time.monotonic() < deadline


def test_a_file_that_is_locked_by_a_writer_is_read(path):
    """Nothing is locked, so that files on media without locks can be read; a change would be seen."""
    import h5py

    write(path, numbers())
    with h5py.File(path, "a", locking=True):
        assert read(path).shape == (60, 5)


@pytest.mark.parametrize("change", ["written to", "cut off", "replaced", "gone"])
def test_P5_changed_while_it_is_read(path, observe, change):
    write(path, numbers(1000), chunks=(10, 5))
    rows = read(path, memory_limit=2**15)
    assert isinstance(rows, FileRows)
    if change == "cut off":
        os.truncate(path, path.stat().st_size - 100)
    else:
        path.unlink()
        if change != "gone":
            write(path, numbers(1000, seed=1), chunks=(10, 5) if change == "written to" else None)
            os.utime(path, ns=(1, 1))
    with pytest.raises(DataError, match=r"x\.h5 changed while it was read|x\.h5: there is no such file") as caught:
        PCA(2).fit(rows)
    observe("P5", f"HDF5 {change} during the fit", str(caught.value).replace(f"{path.parent}/", ""))


# --- datasets of h5py as X --------------------------------------------------------------------------

FITS = {
    "PCA": lambda: PCA(2),
    "krylov": lambda: PCA(2, solver="krylov", random_state=0),
    "SparsePCA": lambda: SparsePCA(2, nonzeros=3),
    "ProbabilisticPCA": lambda: ProbabilisticPCA(2),
}


@pytest.mark.parametrize("method", FITS)
def test_a_dataset_is_taken_as_the_array_is(path, method):
    import h5py

    X = numbers(200)
    write(path, X, chunks=(30, 2), compression="gzip")
    with h5py.File(path) as file:
        expected = FITS[method]().fit(X)
        for given in (file["x"], as_rows(file["x"], block_rows=17), as_rows(file["x"], block_rows=30)):
            found = FITS[method]().fit(given)
            assert np.allclose(found.components_, expected.components_, atol=1e-8)
            assert np.allclose(found.transform(given), expected.transform(X), atol=1e-8)


def test_datasets_are_shards_and_what_is_no_matrix_is_refused(path):
    import h5py

    X = numbers()
    write(path, X[:40], "a")
    write(path, X[40:], "b")
    write(path, X[0], "row")
    write(path, ["word"], "word")
    with h5py.File(path) as file:
        rows = as_rows([file["a"], file["b"]])
        assert isinstance(rows, FileRows)
        assert rows.changeable
        assert np.array_equal(whole(rows), X)
        with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
            as_rows(file["row"])
        with pytest.raises((TypeError, ValueError), match=r"Expected 2D array|must hold numbers"):
            as_rows(file["word"])


def test_a_dataset_that_changes_during_the_fit_is_seen(path):
    import h5py

    write(path, numbers(300))
    with h5py.File(path, "a") as file:

        def change(state):
            file["x"][7] = 100.0

        with pytest.raises(ValueError, match="The data changed between two readings"):
            PCA(2, solver="krylov", random_state=0, callback=change).fit(file["x"])


# --- the command line -------------------------------------------------------------------------------


def test_fit_and_transform_on_the_command_line(path):
    X = numbers()
    write(path, X, "a/x")
    write(path, X, "b")
    done = princomp("fit", "x.h5::a/x", "-k", "2", "-o", "out", "--no-report", cwd=path.parent)
    assert done.returncode == 0, done.stderr
    assert "60 rows, 5 features" in done.stderr
    done = princomp("transform", "out/model.princomp", "x.h5::b", cwd=path.parent)
    scores = np.loadtxt(done.stdout.splitlines()[1:], delimiter=",", usecols=(1, 2))
    assert np.allclose(scores, PCA(2).fit(X).transform(X), atol=1e-6)
    done = princomp("fit", "x.h5", "-o", "other", cwd=path.parent)
    assert done.returncode == 3
    assert "pick one, as in x.h5::b" in done.stderr


def test_P9_without_h5py_the_line_to_type_is_said(path, observe):
    write(path, numbers())
    said = without("h5py", path)
    assert said.endswith('h5py, which is missing: pip install "princomp[hdf5]"')
    observe("P9", "h5py missing", said)


# --- hostile files ----------------------------------------------------------------------------------


def refused(path, says, observe, what, error=DataError, **how):
    with pytest.raises(error, match=says) as caught:
        whole(read(path, **how))
    said = str(caught.value)
    assert said.startswith(str(path).partition("::")[0])
    assert "\n" not in said
    observe("S7", f"HDF5: {what}", f"{error.__name__}: x.h5{said.partition('x.h5')[2]}")


def test_S7_an_external_link_is_not_followed(path, observe):
    import h5py

    write(path.parent / "secret.h5", numbers())
    with h5py.File(path, "w") as file:
        file["x"] = h5py.ExternalLink(str(path.parent / "secret.h5"), "/x")
        file["group/link"] = h5py.SoftLink("/x")
    for name in ("", "::x", "::x/y", "::group/link"):
        refused(f"{path}{name}", r"x\.h5, x, is a link to another file .*secret\.h5", observe, f"external link{name}")


def test_S7_numbers_in_another_file_are_not_read(path, observe):
    import h5py

    numbers().tofile(path.parent / "raw.bin")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", (60, 5), "f8", external=[(str(path.parent / "raw.bin"), 0, 2400)])
    refused(path, r"x\.h5, x, has its numbers in another file", observe, "external storage")


def test_S7_a_virtual_dataset_opens_no_other_file(path, observe):
    import h5py

    write(path.parent / "secret.h5", numbers(), maxshape=(None, 5))
    layout = h5py.VirtualLayout((60, 5), "f8")
    layout[:] = h5py.VirtualSource(str(path.parent / "secret.h5"), "x", (60, 5))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("x", layout)
    refused(path, r"x\.h5, x, is a virtual dataset", observe, "virtual dataset")


def test_S7_a_filter_is_not_loaded(path, observe):
    import h5py

    with h5py.File(path, "w") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((10, 5))
        plan.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, (1, 2))
        space = h5py.h5s.create_simple((60, 5))
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, plan)
    refused(path, r"x\.h5, x, is packed by the filter 32001 .*, which is not part of HDF5", observe, "plugin filter")


def test_S7_soft_links_in_a_circle(path, observe):
    import h5py

    with h5py.File(path, "w") as file:
        file["a"] = h5py.SoftLink("/b")
        file["b"] = h5py.SoftLink("a")
        file["c"] = h5py.SoftLink("c/c/c/c")
    for name in "abc":
        refused(f"{path}::{name}", rf"x\.h5: the soft links at {name} lead in a circle", observe, "soft-link loop")
    with pytest.raises(DataError, match="holds no matrix of numbers"):
        read(path)


@pytest.mark.parametrize("left", [0.99, 0.5, 0.01])
def test_S7_a_truncated_file(path, observe, left):
    write(path, numbers(1000), chunks=(100, 5), compression="gzip")
    os.truncate(path, int(left * path.stat().st_size))
    refused(path, r"x\.h5 cannot be read as HDF5 .*: write it again", observe, f"cut off at {left:.0%}")


# In a process of its own: HDF5 is C.
FLIP = """
    import os, sys
    import numpy as np
    from princomp.data import DataError, read

    path, count = sys.argv[1], int(sys.argv[2])
    good, rng, refused = np.fromfile(path, np.uint8), np.random.default_rng(0), 0
    for _ in range(count):
        bad = good.copy()
        bad[rng.integers(len(bad), size=2)] = rng.integers(256, size=2)
        bad.tofile(path + ".new")
        os.replace(path + ".new", path)
        try:
            rows = read(path, memory_limit=2**28)
            [rows.block(i) for i in range(len(rows.offsets) - 1)]
        except DataError as error:
            assert str(error).startswith(path), error
            refused += 1
        except MemoryError:
            refused += 1
    print(refused)
"""


@pytest.mark.parametrize("count", [100, pytest.param(3000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("layout", ["one after the other", "gzip, shuffle, fletcher32", "lzf"])
def test_S7_flipped_bytes(path, observe, layout, count):
    """An error, or some matrix (not all layouts have checksums); nothing else happens, and the process goes on."""
    write(path, numbers(40), **LAYOUTS[layout])
    command = [sys.executable, "-c", textwrap.dedent(FLIP), str(path), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert 0 < int(done.stdout) < count
    observe("S7", f"HDF5 ({layout}) damaged in {count} ways", f"refused {done.stdout.strip()} times; never a crash")


def test_S7_a_trillion_rows_that_are_not_there(path, observe):
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("none", (10**12, 3), "f8", chunks=(1000, 3), fillvalue=1.5)
        file.create_dataset("one", (10**12, 3), "f8", chunks=(1000, 3))[5] = 1
        file.create_dataset("wide", (3, 10**12), "f8", chunks=(3, 1000))
        file.create_dataset("few", (50, 3), "f8", chunks=(10, 3), fillvalue=1.5)
    refused(f"{path}::none", r"claims the shape \(1000000000000, 3\), but only 0 bytes", observe, "1e12 rows, no chunk")
    refused(f"{path}::one", "but only 24000 bytes of it are in the file", observe, "1e12 rows, one chunk")
    refused(f"{path}::wide", "dataset wide, claims the shape", observe, "1e12 columns")
    assert (whole(read(f"{path}::few")) == 1.5).all()  # a small one may hold the fill value only


@needs_proc
def test_S7_a_chunk_larger_than_memory_is_not_unpacked(path, observe):
    import h5py

    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", (2**12, 2**13), "f8", chunks=(2**12, 2**13), compression="gzip")
        data.id.write_direct_chunk((0, 0), zlib.compress(bytes(2**28)))
    grown, outcome = measured(path, 2**26, "h5py")
    assert outcome.startswith(
        f"MemoryError: {path}, dataset x, whose chunks are (4096, 8192), needs 0.25 GiB of memory"
    )
    assert grown < 50
    observe("S7", f"HDF5: 256 MiB in {path.stat().st_size >> 10} kB, limit 64 MiB", f"MemoryError at {grown} MiB")


@needs_proc
@pytest.mark.parametrize("stored", [2**28, 100])
def test_S7_a_chunk_that_unpacks_to_another_size_is_not_given_to_hdf5(path, observe, stored):
    """HDF5 would take all the memory that the longer one asks for, and give what lies in memory behind the shorter."""
    import h5py

    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", (2**7, 2**12), "f8", chunks=(2**7, 2**12), compression="gzip")
        data.id.write_direct_chunk((0, 0), zlib.compress(bytes(stored)))
    grown, outcome = measured(path, 2**28, "h5py")
    assert outcome.startswith(f"DataError: {path}, dataset x, is damaged: one of its chunks has another size")
    assert grown < 50
    observe("S7", f"HDF5: {stored} bytes in a chunk of 4 MiB", f"DataError at {grown} MiB")


def test_S7_settings_of_a_filter_that_lie(path):
    import h5py

    with h5py.File(path, "w") as file:
        plan = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plan.set_chunk((10, 5))
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((60, 5)), plan)
        file.create_dataset("lzf", data=numbers(), chunks=(10, 5), compression="lzf")
    content = path.read_bytes()
    settings = np.array([4, 261, 400], "<u4").tobytes()  # of lzf: two versions, and the size of a chunk
    assert content.count(settings) == 1
    path.write_bytes(content.replace(settings, np.array([4, 261, 80], "<u4").tobytes()))
    with pytest.raises(DataError, match=r"lzf, is packed by the filter 32000 .* settings do not fit its chunks"):
        read(f"{path}::lzf")


def test_what_other_readers_use(path):
    """`opened` and `member`, by which groups and datasets of any shape are found safely."""
    write(path, [1, 2, 3], "a/b")
    file = File(str(path))
    with opened(file) as h5:
        assert list(member(h5, "a", file.name)) == ["b"]
        assert member(member(h5, "a", file.name), "b", file.name)[:].tolist() == [1, 2, 3]
        assert member(h5, "/", file.name) == h5
