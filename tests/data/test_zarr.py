"""Zarr: what is read of folders and zip files, in which blocks; arrays of zarr as X; what hostile folders come to."""

import gzip
import json
import os
import shutil
import time
import zipfile

import numpy as np
import pytest

from containers import measured, needs_proc, numbers, whole, without
from princomp import PCA, ProbabilisticPCA, SparsePCA
from princomp.data import DataError, as_rows, read
from princomp.data.stored import FileRows
from princomp.data.zarr_chunks import ZSTD_BLOCK, _zstd
from running import princomp

pytestmark = pytest.mark.needs("zarr")

SMALL = 2**13  # a memory limit under which the matrix is read in blocks, but a block of it still fits


def write(path, X, name=None, zarr_format=3, **how):
    import zarr

    how = {"chunks": (14, 3), "dtype": X.dtype, "shape": X.shape} | how
    if name is None:
        array = zarr.create_array(path, zarr_format=zarr_format, **how)
    else:
        array = zarr.open_group(path, mode="a", zarr_format=zarr_format).create_array(name, **how)
    array[:] = X


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.zarr"


def packers():
    """Name: (format, what packs)."""
    import numcodecs
    from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

    return {
        "2 plain": (2, None),
        "2 blosc": (2, numcodecs.Blosc(cname="zstd")),
        "2 zstd": (2, numcodecs.Zstd()),
        "2 gzip": (2, numcodecs.GZip()),
        "2 zlib": (2, numcodecs.Zlib()),
        "2 lz4": (2, numcodecs.LZ4()),
        "3 plain": (3, None),
        "3 blosc": (3, BloscCodec()),
        "3 zstd, checked": (3, [ZstdCodec(checksum=True), Crc32cCodec()]),
        "3 gzip": (3, GzipCodec()),
    }


PACKERS = [
    *("2 plain", "2 blosc", "2 zstd", "2 gzip", "2 zlib", "2 lz4"),
    *("3 plain", "3 blosc", "3 zstd, checked", "3 gzip"),
]


# --- what is read -----------------------------------------------------------------------------------


@pytest.mark.parametrize("packer", PACKERS)
def test_every_packing_gives_the_matrix(path, packer):
    zarr_format, packs = packers()[packer]
    X = numbers()
    write(path, X, zarr_format=zarr_format, compressors=packs)
    assert np.array_equal(whole(read(path)), X)
    rows = read(f"{path}/", memory_limit=SMALL, block_rows=11)
    assert isinstance(rows, FileRows)
    assert np.array_equal(whole(rows), X)


@pytest.mark.parametrize("memory_limit", [None, SMALL])
@pytest.mark.parametrize("where", ["start", "end"])
def test_shards(path, where, memory_limit):
    X = numbers()
    write(path, X, chunks=(7, 5), shards={"shape": (14, 5), "index_location": where})
    assert np.array_equal(whole(read(path, memory_limit=memory_limit)), X)


TYPES = ["f8", "f4", "f2", "i4", "i2", "u8", "?"]


@pytest.mark.parametrize(
    ("dtype", "zarr_format"),
    [(dtype, zarr_format) for dtype in TYPES for zarr_format in (2, 3)] + [(">f8", 2), (">i4", 2)],
)
def test_numbers_of_any_type(path, dtype, zarr_format):
    X = numbers() > 0 if dtype == "?" else (10 * abs(numbers())).astype(dtype)
    write(path, X, zarr_format=zarr_format)
    rows = read(path)
    assert np.array_equal(whole(rows), X)
    assert rows.dtype == (np.float32 if dtype == "f4" else np.float64)


def test_other_names_of_chunks_and_another_order(path):
    X = numbers()
    write(path, X, zarr_format=2, order="F", chunk_key_encoding={"name": "v2", "separator": "/"})
    assert np.array_equal(whole(read(path)), X)
    shutil.rmtree(path)
    write(path, X, chunk_key_encoding={"name": "default", "separator": "."})
    assert np.array_equal(whole(read(path)), X)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_only_matrix_is_found_and_one_of_several_asked_for(path, zarr_format):
    X = numbers()
    write(path, X, "deep/er/x", zarr_format)
    write(path, np.arange(3), "count", zarr_format, chunks=(3,))
    for name in ("", "::deep/er/x", "::deep", "::/deep/./er/"):
        assert np.array_equal(whole(read(f"{path}{name}")), X)
    write(path, -X, "other", zarr_format)
    with pytest.raises(
        DataError, match=r"x\.zarr holds several matrices \(other, deep/er/x\): pick one, as in .*::other"
    ):
        read(path)
    assert np.array_equal(whole(read(f"{path}::other")), -X)
    with pytest.raises(DataError, match=r"x\.zarr has no array or group missing; it holds count, deep, other\."):
        read(f"{path}::missing")
    with pytest.raises(DataError, match=r"array count, holds an array of shape \(3,\): expected two dimensions"):
        read(f"{path}::count")


def test_zip_files(path):
    X = numbers()
    write(path, X, "deep/x")
    write(path, np.arange(3), "count", chunks=(3,))
    shutil.make_archive(path, "zip", path)
    for memory_limit in (None, SMALL):
        assert np.array_equal(whole(read(f"{path}.zip", memory_limit=memory_limit)), X)
        assert np.array_equal(whole(read(f"{path}.zip::deep/x", memory_limit=memory_limit)), X)
    with pytest.raises(DataError, match=r"x\.zarr\.zip has no array or group nix; it holds count, deep\."):
        read(f"{path}.zip::nix")


def test_a_pattern_is_shards_in_sorted_order(tmp_path):
    X = numbers()
    for i in (2, 0, 1):
        write(tmp_path / f"part-{i}.zarr", X[20 * i : 20 * i + 20], "a")
        write(tmp_path / f"part-{i}.zarr", X[:2], "b")
    for memory_limit in (None, SMALL):
        assert np.array_equal(whole(read(f"{tmp_path}/part-*.zarr::a", memory_limit=memory_limit)), X)
    write(tmp_path / "part-3.zarr", X[:, :3], "a")
    with pytest.raises(DataError, match=r"part-3.* has 3 columns, but .*part-0.* has 5\."):
        read(f"{tmp_path}/part-*.zarr::a")


def test_chunks_that_are_missing_hold_the_fill_value(path):
    X = numbers()
    write(path, X, chunks=(30, 5), fill_value=2.5)
    os.unlink(path / "c/1/0")
    expected = np.concatenate([X[:30], np.full((30, 5), 2.5)])
    for memory_limit in (None, SMALL):
        assert np.array_equal(whole(read(path, memory_limit=memory_limit)), expected)


def test_what_is_no_such_folder(tmp_path):
    (tmp_path / "x.zarr").write_text("{}")
    with pytest.raises(DataError, match=r"x\.zarr is not a folder"):
        read(tmp_path / "x.zarr")
    (tmp_path / "y.zarr").mkdir()
    with pytest.raises(DataError, match=r"y\.zarr holds no matrix of numbers \(it holds nothing\)"):
        read(tmp_path / "y.zarr")
    with pytest.raises(DataError, match=r"^s3://bucket/x\.zarr: there is no such file"):
        read("s3://bucket/x.zarr")
    (tmp_path / "x.zarr.zip").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"x\.zarr\.zip is not a whole zip file"):
        read(tmp_path / "x.zarr.zip")


@pytest.mark.parametrize("change", ["a chunk", "a chunk that comes", "a chunk that goes", "the shape"])
def test_P5_changed_while_it_is_read(path, observe, change):
    import zarr

    write(path, numbers(1000), chunks=(10, 5))
    if change == "a chunk that comes":
        os.rename(path / "c/3/0", path / "c/aside")
    rows = read(path, memory_limit=2**15)
    whole(rows)
    if change == "a chunk that comes":
        os.rename(path / "c/aside", path / "c/3/0")
    elif change == "a chunk that goes":
        os.unlink(path / "c/3/0")
    elif change == "a chunk":
        zarr.open_array(path)[55] = 7
    else:
        zarr.open_array(path).resize((900, 5))
    with pytest.raises(DataError, match=r"x\.zarr changed while it was read") as caught:
        PCA(2).fit(rows)
    observe("P5", f"Zarr: {change} changed during the fit", str(caught.value).replace(f"{path.parent}/", ""))


# --- arrays of zarr as X ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", [PCA, SparsePCA, ProbabilisticPCA])
def test_an_array_is_taken_as_the_numpy_array_is(path, method):
    import zarr

    X = numbers(200)
    write(path, X, chunks=(20, 5), shards=(40, 5))
    how = {"nonzeros": 3} if method is SparsePCA else {}
    expected = method(2, **how).fit(X)
    array = zarr.open_array(path, mode="r")
    for given in (array, as_rows(array, block_rows=17), as_rows(array, block_bytes=40 * 60)):
        found = method(2, **how).fit(given)
        assert np.allclose(found.components_, expected.components_, atol=1e-8)
        assert np.allclose(found.transform(given), expected.transform(X), atol=1e-8)
    assert as_rows(array, block_bytes=40 * 60).offsets.tolist() == [0, 40, 80, 120, 160, 200]  # shards
    assert np.array_equal(whole(as_rows([array, array])), np.concatenate([X, X]))


# --- the command line -------------------------------------------------------------------------------


def test_fit_on_the_command_line(path):
    write(path, numbers(), "a/x")
    done = princomp("fit", "x.zarr::a/x", "-k", "2", "-o", "out", "--no-report", cwd=path.parent)
    assert done.returncode == 0, done.stderr
    assert "60 rows, 5 features" in done.stderr


def test_P9_without_zarr_the_line_to_type_is_said(path, observe):
    write(path, numbers())
    said = without("zarr", path)
    assert said.endswith('zarr, which is missing: pip install "princomp[zarr]"')
    observe("P9", "zarr missing", said)


# --- hostile folders --------------------------------------------------------------------------------


def refused(path, says, observe, what, **how):
    with pytest.raises(DataError, match=says) as caught:
        whole(read(path, **how))
    said = str(caught.value)
    assert said.startswith(str(path).partition("::")[0])
    assert "\n" not in said
    observe("S7", f"Zarr: {what}", f"DataError: x.zarr{said.partition('x.zarr')[2]}")


def change(path, **values):
    """Other values in the metadata of an array."""
    file = path / ("zarr.json" if (path / "zarr.json").exists() else ".zarray")
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_S7_nothing_outside_of_the_folder_is_read(path, observe):
    write(path.parent / "secret.zarr", numbers())
    write(path, numbers(), "a")
    for name in ("../secret.zarr", "a/../../secret.zarr"):
        refused(f"{path}::{name}", r"lies outside of the folder, and is not read", observe, f"::{name}")
    os.symlink(path.parent / "secret.zarr", path / "link")
    refused(f"{path}::link", r"x\.zarr: link/zarr\.json lies outside of the folder", observe, "link to a folder")
    (path / "link").unlink()
    shutil.rmtree(path / "a/c")
    os.symlink(path.parent / "secret.zarr/c", path / "a/c")
    refused(path, r"x\.zarr: a/c/0/0 lies outside of the folder", observe, "chunks that are a link")
    (path / "a/c").unlink()
    shutil.copytree(path.parent / "secret.zarr/c", path / "chunks")
    os.symlink(path / "chunks", path / "a/c")  # inside of it is fine
    assert np.array_equal(whole(read(f"{path}::a")), numbers())


def test_S7_names_in_a_zip_file_that_lead_elsewhere(path, observe):
    write(path.parent / "secret.zarr", numbers())
    with zipfile.ZipFile(f"{path}.zip", "w") as archive:
        archive.write(path.parent / "secret.zarr/zarr.json", "../secret.zarr/zarr.json")
    assert not whole(read(f"{path}.zip::../secret.zarr")).any()  # described there, and its chunks are missing there
    observe("S7", "Zarr: ../ in a zip file", "a name like others: nothing outside is read")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", ["zarr.json", "c/0/0"])
def test_S7_a_pipe_is_not_waited_for(path, observe, name):
    write(path, numbers())
    (path / name).unlink()
    os.mkfifo(path / name)
    refused(path, rf"x\.zarr, {name}, is not a regular file", observe, f"a pipe for {name}")


def test_S7_links_in_a_circle(path, observe):
    write(path, numbers(), "a/b")
    os.symlink(path, path / "a/back")
    os.symlink(path / "a", path / "again")
    opened = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "scandir", lambda where, scan=os.scandir: opened.append(where) or scan(where))
        assert np.array_equal(whole(read(path)), numbers())
    assert len(opened) < 10
    observe("S7", "Zarr: links in a circle", "each folder is looked at once")


def test_S7_a_zip_file_of_many_groups(path, observe):
    write(path, numbers())
    group = '{"zarr_format": 3, "node_type": "group", "attributes": {}}'
    with zipfile.ZipFile(f"{path}.zip", "w") as archive:
        for name in ("", *(f"a-{i}/" for i in range(3000)), "a/"):
            archive.writestr(f"{name}zarr.json", group)
        for file in sorted(path.rglob("*")):
            archive.write(file, f"a/x/{file.relative_to(path)}")
    begin = time.process_time()
    assert np.array_equal(whole(read(f"{path}.zip")), numbers())
    seconds = time.process_time() - begin
    assert seconds < 5, "to go through all names for each of them took 40 seconds"
    observe("S7", "Zarr: 3000 groups in a zip file", f"{seconds:.1f} s")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "zarr.json, is not JSON"),
        (b"[" * 100_000, "zarr.json, is not JSON"),
        (b"\xff\xfe", "zarr.json, is not JSON"),
        (b"[1]", "not those of a Zarr array"),
        (b"{}", "not those of a Zarr array"),
        (
            b'{"zarr_format": 2, "dtype": "<f8", "shape": [2, 2], "chunks": 7, "compressor": null}',
            "not those of a Zarr",
        ),
        (b'{"zarr_format": 2, "dtype": "<f8", "shape": [-2, 2], "chunks": [1, 1], "compressor": null}', "not those of"),
    ],
)
def test_S7_metadata_that_are_none(path, observe, content, says):
    path.mkdir()
    (path / "zarr.json").write_bytes(content)
    refused(path, says, observe, f"metadata {content[:12].decode(errors='replace')}")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"dtype": "|O", "filters": [{"id": "pickle"}]}, r"holds \|O, not real numbers"),
        ({"filters": [{"id": "pickle"}]}, "is packed by pickle, which is not read"),
        ({"compressor": {"id": "lzma"}}, "is packed by lzma, which is not read"),
        ({"filters": [{"id": "zlib"}]}, "is packed twice"),
        ({"dtype": [["a", "<f8"]]}, "not real numbers"),
        ({"chunks": [5, 5, 5]}, "has chunks of 3 dimensions"),
        ({"chunks": [0, 5]}, "not those of a Zarr array"),
        ({"fill_value": {"a": 1}}, "cannot be read as Zarr"),
    ],
)
def test_S7_objects_and_unknown_packing_are_refused(path, observe, values, says):
    write(path, numbers(), zarr_format=2)
    change(path, **values)
    refused(path, says, observe, str(values))


def test_S7_objects_and_unknown_packing_of_format_3_are_refused(path, observe):
    write(path, numbers())
    said = json.loads((path / "zarr.json").read_text())
    for values, says in (
        ({"codecs": [*said["codecs"], {"name": "numcodecs.pickle"}]}, "is packed by numcodecs.pickle"),
        ({"codecs": [*said["codecs"], {"name": "gzip"}]}, "is packed twice"),
        ({"data_type": {"name": "struct"}}, "not real numbers"),
        ({"data_type": "string"}, "holds string, not real numbers"),
        ({"chunk_grid": {"name": "rectilinear"}}, "has chunks of a kind that is not read"),
        ({"storage_transformers": [{"name": "x"}]}, "has chunks of a kind that is not read"),
    ):
        change(path, **(said | values))
        refused(path, says, observe, str(values)[-60:])


def test_S7_a_trillion_rows_that_are_not_there(path, observe):
    import zarr

    array = zarr.create_array(path, shape=(10**12, 3), chunks=(1000, 3), dtype="f8")
    refused(
        path, r"claims the shape \(1000000000000, 3\), but nearly all of its 1000000000 chunks", observe, "1e12 rows"
    )
    array[5] = 1
    refused(path, "but nearly all of its 1000000000 chunks are missing", observe, "1e12 rows, one there")
    shutil.make_archive(path, "zip", path)
    with pytest.raises(DataError, match="but nearly all of its 1000000000 chunks are missing"):
        read(f"{path}.zip")


def test_S7_a_chunk_larger_than_memory_is_not_unpacked(path, observe):
    import zarr

    zarr.create_array(path, shape=(2**12, 2**13), chunks=(2**12, 2**13), dtype="f8")[:] = 1
    assert sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) < 2**18
    with pytest.raises(
        MemoryError, match=r"x\.zarr whose chunks are \(4096, 8192\), needs 0\.25 GiB of memory"
    ) as caught:
        read(path, memory_limit=2**26)
    observe(
        "S7", "Zarr: a chunk of 256 MiB, limit 64 MiB", f"MemoryError: x.zarr{str(caught.value).partition('x.zarr')[2]}"
    )


BOMBS = ["2 gzip", "2 zlib", "2 blosc", "2 lz4", "2 zstd", "3 gzip", "3 zstd, checked", "3 plain"]


@pytest.mark.parametrize("packer", BOMBS)
def test_S7_a_chunk_that_unpacks_to_another_size_is_not_unpacked(path, observe, packer):
    zarr_format, packs = packers()[packer]
    X = numbers()
    write(path, X, zarr_format=zarr_format, compressors=packs, chunks=(30, 5))
    write(
        path.parent / "long.zarr", np.ones((30_000, 5)), zarr_format=zarr_format, compressors=packs, chunks=(30_000, 5)
    )
    chunk = "0.0" if zarr_format == 2 else "c/0/0"
    good = (path / chunk).read_bytes()
    shutil.copy(path.parent / "long.zarr" / chunk, path / chunk)
    refused(path, r"a chunk does not have the 1200 bytes|is longer than it may be", observe, f"{packer}, too long")
    (path / chunk).write_bytes(good[:-10])
    refused(path, r"x\.zarr", observe, f"{packer}, too short")


@needs_proc
def test_S7_a_bomb_of_gzip_members(path, observe):
    """Each of the right size, but there are many."""
    from zarr.codecs import GzipCodec

    write(path, np.ones((256, 1024)), chunks=(256, 1024), compressors=GzipCodec())
    (path / "c/0/0").write_bytes(gzip.compress(bytes(2**21)) * 200)
    grown, outcome = measured(path, 2**28, "zarr")
    assert outcome.startswith(f"DataError: {path} is damaged: a chunk does not have the 2097152 bytes")
    assert grown < 50
    observe("S7", "Zarr: 400 MiB of gzip members", f"DataError at {grown} MiB")


def test_S7_shards_whose_index_lies(path, observe):
    X = numbers()
    write(path, X, chunks=(15, 5), shards=(30, 5), compressors=None)
    good = (path / "c/0/0").read_bytes()
    for place, value, what in ((-36, 2**40, "offset"), (-28, 1200, "size"), (-28, 2**63, "huge size")):
        bad = bytearray(good)
        bad[len(bad) + place : len(bad) + place + 8] = value.to_bytes(8, "little")
        (path / "c/0/0").write_bytes(bytes(bad))
        refused(path, r"x\.zarr is damaged: a chunk does not have the 600 bytes", observe, f"index with a wrong {what}")
    (path / "c/0/0").write_bytes(good[:20])
    refused(path, "a shard is cut off", observe, "a shard that is cut off")


@pytest.mark.parametrize("count", [60, pytest.param(2000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("packer", ["2 blosc", "3 zstd, checked"])
def test_S7_flipped_bytes(path, observe, packer, count):
    zarr_format, packs = packers()[packer]
    X = numbers(30)
    write(path, X, zarr_format=zarr_format, compressors=packs, chunks=(30, 5))
    rng, messages = np.random.default_rng(0), []
    file = path / ("0.0" if zarr_format == 2 else "c/0/0")
    good = np.fromfile(file, np.uint8)
    for _ in range(count):
        bad = good.copy()
        bad[rng.integers(len(bad), size=2)] = rng.integers(256, size=2)
        bad.tofile(file)
        try:
            found = whole(read(path))
        except DataError as error:
            messages.append(str(error))
        else:
            assert found.shape == X.shape
            assert zarr_format == 2 or np.array_equal(found, X)  # which has a checksum
    assert messages
    assert all(message.startswith(str(path)) for message in messages)
    observe(
        "S7", f"Zarr ({packer}) damaged in {count} ways", f"refused {len(messages)} times, else read; never a crash"
    )


def test_sizes_of_zstd_are_told_without_unpacking():
    import numcodecs

    rng = np.random.default_rng(0)
    for size in (0, 1, 32, 255, 256, 257, 70_000, 10**6):
        for checksum in (False, True):
            packed = numcodecs.Zstd(checksum=checksum).encode(rng.integers(0, 200, size).astype(np.uint8))
            assert _zstd(packed, size) == (size, True)
            assert _zstd(packed + packed, 10**7) == (2 * size, True)
    # Frames that do not give their size, of blocks that repeat one byte, as a bomb has them.
    block = (ZSTD_BLOCK << 3) | 2
    frame = (
        b"\x28\xb5\x2f\xfd\x00\x50" + block.to_bytes(3, "little") + b"\0" + (block | 1).to_bytes(3, "little") + b"\0"
    )
    assert len(numcodecs.Zstd().decode(frame)) == 2 * ZSTD_BLOCK
    assert _zstd(frame, ZSTD_BLOCK) == (2 * ZSTD_BLOCK, False)
    assert _zstd(b"no zstd", 10) is None
