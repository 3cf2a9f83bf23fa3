"""NIfTI images: what rows and columns are, masks and grids, large files, and what becomes of damaged ones."""

import gzip
import io
import os
import struct
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from princomp import PCA
from princomp.data import DataError, read
from princomp.data.layout import VoxelLayout
from princomp.data.memory import MemoryRows
from princomp.data.nifti import VolumeRows, write_volumes
from princomp.data.stored import FileRows

pytestmark = pytest.mark.needs("nibabel")

AFFINE = np.array([[-2.0, 0, 0, 10], [0, 2, 0, -12], [0, 0, 3, -5], [0, 0, 0, 1]])
SHAPE = (5, 6, 4)


def volumes(n=7, dtype="f4", seed=0):
    return (100 * np.random.default_rng(seed).normal(size=(*SHAPE, n))).astype(dtype)


def inside(seed=1):
    return np.random.default_rng(seed).random(SHAPE) < 0.5


def save(path, data, affine=AFFINE, *, version=1, scaling=None, order="<"):
    import nibabel as nib

    kind = nib.Nifti1Image if version == 1 else nib.Nifti2Image
    image = kind(data, affine, header=kind.header_class(endianness=order), dtype=data.dtype)
    if scaling:
        image.header.set_slope_inter(*scaling)
    nib.save(image, path)
    return path


def whole(rows):
    return np.concatenate([rows.block(i) for i in range(len(rows.offsets) - 1)])


# --- rows and columns -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz", "X.NII.GZ"])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"dtype": "f8"},
        {"dtype": "i2"},
        {"dtype": "u1"},
        {"dtype": "i2", "scaling": (0.5, 3)},
        {"dtype": "f4", "order": ">"},
        {"version": 2},
    ],
    ids=str,
)
def test_rows_are_volumes_and_columns_the_voxels_of_the_mask(tmp_path, name, limited, how):
    import nibabel as nib

    how = dict(how)
    X = volumes(60, dtype=how.pop("dtype", "f4"))
    path, mask = save(tmp_path / name, X, **how), inside()
    expected = np.asarray(nib.load(path).dataobj)[mask].T
    save(tmp_path / "mask.nii.gz", mask.astype("u1"))
    limit = 3 * expected.nbytes if limited else None  # one volume in memory may take this, all of them not
    rows = read(path, mask=tmp_path / "mask.nii.gz", memory_limit=limit, block_rows=3)
    assert type(rows) is ((VolumeRows if name == "x.nii" else FileRows) if limited else MemoryRows)
    assert np.array_equal(whole(rows), expected)
    assert whole(rows).dtype == expected.dtype.newbyteorder("=")
    assert rows.dtype == (np.float32 if expected.dtype.kind == "f" and expected.dtype.itemsize == 4 else np.float64)
    assert rows.offsets.tolist() == [*range(0, 60, 3), 60]
    assert (rows.names, rows.sample_names, dict(rows.labels), rows.notes) == (None, None, {}, ())
    assert np.array_equal(
        rows.layout.volume(expected[2]), np.where(mask, np.asarray(nib.load(path).dataobj)[..., 2], 0)
    )


def test_a_fit_is_that_of_the_matrix_from_memory_or_from_the_file(tmp_path):
    X, mask = volumes(30), inside()
    save(tmp_path / "mask.nii", mask.astype("f4"))
    expected = PCA(3).fit(X[mask].T)
    for path in (save(tmp_path / "x.nii", X), save(tmp_path / "x.nii.gz", X)):
        rows = read(path, mask=tmp_path / "mask.nii", memory_limit=12_000, block_rows=8)
        assert isinstance(rows, VolumeRows | FileRows)
        assert np.allclose(PCA(3).fit(rows).explained_variance_, expected.explained_variance_, rtol=1e-5)


@pytest.mark.parametrize("limit", [None, 12_000])
@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_without_a_mask_all_voxels_are_columns_and_still_ones_are_counted(tmp_path, name, limit):
    X = volumes(20)
    X[0], X[1, 0, 0] = 0, np.nan
    rows = read(save(tmp_path / name, X), memory_limit=limit)
    assert np.array_equal(whole(rows), X.reshape(120, 20).T, equal_nan=True)
    assert rows.notes == (
        "25 of 120 voxels are the same in all volumes, outside of the head most likely: a mask leaves them out.",
    )
    assert read(save(tmp_path / "y.nii", volumes())).notes == ()


def test_what_a_file_is_called_does_not_say_whether_it_is_packed(tmp_path):
    save(tmp_path / "x.nii", volumes())
    (tmp_path / "y.nii.gz").write_bytes((tmp_path / "x.nii").read_bytes())
    (tmp_path / "z.nii").write_bytes(gzip.compress((tmp_path / "x.nii").read_bytes()))
    for name in ("y.nii.gz", "z.nii"):
        assert np.array_equal(whole(read(tmp_path / name)), volumes().reshape(120, 7).T)


# --- several files --------------------------------------------------------------------------------


def test_single_volumes_by_a_pattern_are_a_row_each_in_the_order_of_their_numbers(tmp_path):
    X = volumes(12)
    for i in range(12):
        save(tmp_path / f"vol-{i}.nii{'.gz' if i % 2 else ''}", X[..., i])
    rows = read(tmp_path / "vol-*")
    assert np.array_equal(whole(rows), X.reshape(120, 12).T)
    assert rows.sample_names == tuple(f"vol-{i}.nii{'.gz' if i % 2 else ''}" for i in range(12))
    assert read(tmp_path / "vol-3.nii.gz").shape == (1, 120)


def test_several_subjects_are_stacked_in_time_and_labelled(tmp_path):
    X, Y = volumes(4), volumes(3, seed=5)
    save(tmp_path / "sub-1.nii.gz", X)
    save(tmp_path / "sub-2.nii.gz", Y)
    rows = read(tmp_path / "sub-*.nii.gz")
    assert np.array_equal(whole(rows), np.vstack([X.reshape(120, 4).T, Y.reshape(120, 3).T]))
    assert rows.labels["file"].tolist() == ["sub-1.nii.gz"] * 4 + ["sub-2.nii.gz"] * 3
    save(tmp_path / "sub-3.nii.gz", volumes(2), AFFINE + 0.5 * np.eye(4))
    with pytest.raises(DataError, match=r"sub-3.* is on another grid than .*sub-1.*: its voxels lie elsewhere"):
        read(tmp_path / "sub-*.nii.gz")
    save(tmp_path / "sub-3.nii.gz", volumes(2)[:4])
    with pytest.raises(DataError, match=r"sub-3.* than .*sub-1.*: 4 x 6 x 4 voxels, not 5 x 6 x 4\. Resample it first"):
        read(tmp_path / "sub-*.nii.gz")


# --- masks ----------------------------------------------------------------------------------------

WRONG_MASKS = {
    "another shape": (lambda: inside()[1:].astype("u1"), AFFINE, "is on another grid than .*: 4 x 6 x 4 voxels, not 5"),
    "elsewhere": (lambda: inside().astype("u1"), 1.01 * AFFINE, "is on another grid than .*: its voxels lie elsewhere"),
    "nothing inside": (lambda: np.zeros(SHAPE, "u1"), AFFINE, "has no voxel inside: all are 0"),
    "nothing but NaN": (lambda: np.full(SHAPE, np.nan), AFFINE, "has no voxel inside"),
    "several": (lambda: volumes(2), AFFINE, "has 2 volumes: a mask is one"),
}


@pytest.mark.parametrize("what", WRONG_MASKS)
def test_masks_that_do_not_fit(tmp_path, what):
    make, affine, says = WRONG_MASKS[what]
    save(tmp_path / "mask.nii.gz", make(), affine)
    with pytest.raises(DataError, match=rf"The mask .*mask\.nii\.gz {says}"):
        read(save(tmp_path / "x.nii.gz", volumes()), mask=tmp_path / "mask.nii.gz")


def test_a_mask_is_a_path(tmp_path):
    with pytest.raises(TypeError, match="mask must be the path of a NIfTI image, not 0 inside, got ndarray"):
        read(save(tmp_path / "x.nii.gz", volumes()), mask=inside())


def test_masks_are_nifti_files_and_for_them(tmp_path):
    path = save(tmp_path / "x.nii", volumes())
    with pytest.raises(DataError, match=r"no\.nii: there is no such file"):
        read(path, mask=tmp_path / "no.nii")
    (tmp_path / "mask.txt").write_text("mask")
    with pytest.raises(DataError, match=r"mask\.txt is not a NIfTI image"):
        read(path, mask=str(tmp_path / "mask.txt"))
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    with pytest.raises(DataError, match=r"x\.npy has no voxels: mask is for \.nii\."):
        read(tmp_path / "x.npy", mask=path)
    with pytest.raises(DataError, match=r"x\.nii has no named columns"):
        read(path, label="a")


def test_a_mask_whose_affine_was_rounded_is_on_the_same_grid(tmp_path):
    save(tmp_path / "mask.nii", inside().astype("u1"), AFFINE * (1 + 1e-6))
    assert read(save(tmp_path / "x.nii", volumes()), mask=tmp_path / "mask.nii").shape[0] == 7


# --- layouts --------------------------------------------------------------------------------------


def test_volumes_are_turned_upright_as_nibabel_does(tmp_path):
    import nibabel as nib

    X = volumes(1)[..., 0]
    turned = np.array([[0, 0, -3.0, 9], [2, 0.1, 0, 4], [0, -2, 0, 8], [0, 0, 0, 1]])
    for affine in (AFFINE, np.eye(4), turned):
        layout = VoxelLayout(np.ones(SHAPE, bool), affine)
        expected = nib.as_closest_canonical(nib.Nifti1Image(X, affine))
        assert np.array_equal(layout.upright(X), expected.dataobj)
        assert np.allclose(layout.spacing(), nib.affines.voxel_sizes(expected.affine))
        middle = [*((np.array(expected.shape) - 1) / 2)[:2], 1, 1]
        assert layout.height(1) == pytest.approx((expected.affine @ middle)[2])


def test_what_is_written_is_read_back_and_by_nibabel(tmp_path):
    import nibabel as nib

    layout = VoxelLayout(inside(), AFFINE, 4)
    values = np.random.default_rng(0).normal(size=(3, layout.size))
    texts = []
    for _ in range(2):
        stream = io.BytesIO()
        write_volumes(stream, layout, values, np.float32, "a test")
        texts.append(stream.getvalue())
    assert texts[0] == texts[1]
    (tmp_path / "maps.nii.gz").write_bytes(texts[0])
    image = nib.load(tmp_path / "maps.nii.gz")
    assert (image.shape, image.get_data_dtype(), image.header.get_xyzt_units()) == (
        (*SHAPE, 3),
        np.float32,
        ("mm", "unknown"),
    )
    assert (image.header["descrip"].item(), int(image.header["sform_code"])) == (b"a test", 4)
    assert np.array_equal(image.affine, AFFINE)
    data = image.get_fdata()
    assert np.array_equal(data[layout.mask].T, values.astype(np.float32))
    assert not data[~layout.mask].any()
    assert np.array_equal(whole(read(tmp_path / "maps.nii.gz"))[:, layout.mask.ravel()], values.astype(np.float32))


def test_a_volume_with_a_long_side_is_written_as_the_second_version_of_nifti(tmp_path):
    import nibabel as nib

    layout = VoxelLayout(np.ones((40_000, 1, 2), bool), AFFINE)
    with open(tmp_path / "x.nii.gz", "wb") as file:
        write_volumes(file, layout, np.arange(80_000)[None], np.float32, "long")
    assert isinstance(nib.load(tmp_path / "x.nii.gz"), nib.Nifti2Image)
    assert np.array_equal(whole(read(tmp_path / "x.nii.gz"))[0], np.arange(80_000))


# --- damaged and hostile files ----------------------------------------------------------------------


def content_of(tmp_path, n=7):
    return bytearray(save(tmp_path / "good.nii", volumes(n)).read_bytes())


def with_shape(content, *sides, code=None):
    """The header, with other dimensions."""
    struct.pack_into("<8h", content, 40, len(sides), *sides, *[1] * (7 - len(sides)))
    if code is not None:
        struct.pack_into("<2h", content, 70, *code)
    return content


def changed(place, form, *values):
    def change(content):
        struct.pack_into(form, content, place, *values)
        return content

    return change


DAMAGE = {
    "cut off": (
        lambda content: content[:-1],
        r"is cut off, or its header wrong: that asks for 3712 bytes, it has 3711",
    ),
    "cut off in the header": (lambda content: content[:300], r"is not a NIfTI image"),
    "another file": (lambda content: b"hello" * 100, r"is not a NIfTI image"),
    "other magic": (changed(344, "4s", b"n+9\0"), r"is not a NIfTI image"),
    "one of two files": (changed(344, "4s", b"ni1\0"), r"is one of two files, \.hdr and \.img: save the image as one"),
    "no dimensions": (changed(40, "<h", 0), r"has a damaged header \(0 dimensions\)"),
    "99 dimensions": (changed(40, "<h", 99), r"has a damaged header"),
    "two dimensions": (lambda content: with_shape(content, 5, 6), r"has the shape 5 x 6: expected volumes of three"),
    "five dimensions": (
        lambda content: with_shape(content, 5, 6, 4, 1, 7),
        r"has the shape 5 x 6 x 4 x 1 x 7: expected",
    ),
    "a negative side": (lambda content: with_shape(content, 5, -6, 4), r"has the shape 5 x -6 x 4: expected"),
    "unknown numbers": (changed(70, "<h", 7), r"holds numbers of an unknown kind \(7\)"),
    "complex numbers": (changed(70, "<2h", 32, 64), r"holds complex64, not real numbers"),
    "colours": (changed(70, "<2h", 128, 24), r"holds .*, not real numbers"),
    "data within the header": (changed(108, "<f", 100), r"has a damaged header: it does not say where data are"),
    "data nowhere": (changed(108, "<f", np.nan), r"has a damaged header"),
    "data far away": (changed(108, "<f", 1e30), r"is cut off, or its header wrong"),
    "no place": (changed(280, "<f", np.nan), r"has a damaged header: it does not say where voxels are"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_P5_damaged_images_are_one_sentence_that_names_the_file(tmp_path, observe, what):
    damage, says = DAMAGE[what]
    path = tmp_path / "x.nii"
    path.write_bytes(damage(content_of(tmp_path)))
    with pytest.raises(DataError, match=says) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    observe("P5", f"NIfTI: {what}", str(caught.value).replace(str(path), "x.nii"))


@pytest.mark.parametrize(("keep", "says"), [(0.5, "is cut off: it ends before its data do"), (-6, "is cut off")])
def test_P5_a_packed_image_that_is_cut_off(tmp_path, keep, says):
    packed = gzip.compress(content_of(tmp_path, 30))
    (tmp_path / "x.nii.gz").write_bytes(packed[: int(keep * len(packed)) if keep > 0 else keep])
    with pytest.raises(DataError, match=says):
        read(tmp_path / "x.nii.gz")


def test_P5_a_packed_image_with_a_wrong_checksum(tmp_path):
    packed = bytearray(gzip.compress(content_of(tmp_path)))
    packed[-6] ^= 1
    (tmp_path / "x.nii.gz").write_bytes(packed)
    with pytest.raises(DataError, match=r"x\.nii\.gz cannot be read \(CRC check failed"):
        read(tmp_path / "x.nii.gz")


def test_P5_a_large_image_that_changes_is_an_error(tmp_path):
    path = save(tmp_path / "x.nii", volumes(20))
    rows = read(path, memory_limit=12_000)
    assert isinstance(rows, VolumeRows)
    save(path, volumes(21))
    with pytest.raises(DataError, match=r"x\.nii changed while it was read"):
        rows.block(0)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("sides", [(32767,) * 7, (32767,) * 4, (32767, 32767, 32767), (8, 8, 8, 32767)])
def test_S6b_a_header_that_claims_too_much_is_refused_before_anything_is_unpacked(tmp_path, observe, sides, packed):
    content = bytes(with_shape(content_of(tmp_path), *sides))
    path = tmp_path / ("x.nii.gz" if packed else "x.nii")
    path.write_bytes(gzip.compress(content) if packed else content)
    begin = time.process_time()
    with pytest.raises(
        DataError, match=r"has the shape 32767 x .*: expected|is cut off, or its header wrong"
    ) as caught:
        read(path)
    assert time.process_time() - begin < 0.2
    observe(
        "S6b", f"{path.name} that claims {' x '.join(map(str, sides))}", str(caught.value).replace(str(path), path.name)
    )


def test_S6b_one_volume_larger_than_memory_is_refused_by_the_header(tmp_path, observe):
    content = bytes(with_shape(content_of(tmp_path), 512, 512, 512, code=(2, 8)))[:352]
    (tmp_path / "x.nii.gz").write_bytes(gzip.compress(content) + gzip.compress(bytes(2**27)))  # honest, and small
    with pytest.raises(MemoryError, match=r"x\.nii\.gz, one volume of it, needs 6\.\d+ GiB of memory, but 1 GiB"):
        read(tmp_path / "x.nii.gz", memory_limit=2**30)
    observe("S6b", ".nii.gz of one volume of 512^3", "MemoryError before it is unpacked")


# Run in a process of its own, so that its peak memory can be read.
MEASURE = """
    import sys, time
    import nibabel, nibabel.arrayproxy
    from princomp.data import read

    def peak():
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

    before, begin = peak(), time.perf_counter()
    rows = read(sys.argv[1], mask=sys.argv[2], memory_limit=2**25)
    rows.block(0)
    print(peak() - before, round(time.perf_counter() - begin, 2), *rows.shape, type(rows).__name__)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from /proc")
@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_S6b_a_bomb_of_good_volumes_is_read_in_bounded_memory(tmp_path, observe, name):
    """256 MiB of zeros; the packed file has 256 kB."""
    import nibabel as nib

    header = nib.Nifti1Header()
    header.set_data_dtype("f4")
    header.set_data_shape((64, 64, 64, 256))
    header.set_sform(AFFINE, 1)
    header["magic"], header["vox_offset"] = b"n+1", 352
    path = tmp_path / name
    with gzip.open(path, "wb", 6) if name.endswith("gz") else open(path, "wb") as file:
        header.write_to(file)
        for _ in range(256):
            file.write(bytes(2**20))
    mask = np.zeros((64, 64, 64), "u1")
    mask[:32, :32, :32] = 1
    save(tmp_path / "mask.nii", mask)
    command = [sys.executable, "-c", textwrap.dedent(MEASURE), str(path), str(tmp_path / "mask.nii")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, seconds, n, p, kind = done.stdout.split()
    assert (n, p, kind) == ("256", str(2**15), "VolumeRows" if name == "x.nii" else "FileRows")
    assert int(grown) < 100
    observe("S6b", f"{path.stat().st_size >> 10} kB of {name}: 256 MiB", f"{grown} MiB, {seconds} s")


@pytest.mark.parametrize("count", [150, pytest.param(5000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", ["x.nii", "x.nii.gz"])
def test_S1_flipped_bytes_of_images(tmp_path, observe, name, count):
    """A damaged header is refused, or gives some matrix; nothing else happens."""
    good = content_of(tmp_path)
    path, rng, refused = tmp_path / name, np.random.default_rng(0), []
    for _ in range(count):
        bad = np.frombuffer(good, np.uint8).copy()
        bad[rng.integers(352, size=2)] = rng.integers(256, size=2)
        path.write_bytes(gzip.compress(bad.tobytes(), 1) if name.endswith("gz") else bad.tobytes())
        try:
            whole(read(path, memory_limit=2**26))
        except (DataError, MemoryError) as error:
            refused.append(str(error))
    assert refused
    assert [text for text in refused if not text.startswith(str(path)) or "\n" in text] == []
    observe("S1", f"{name}, header damaged in {count} ways", f"refused {len(refused)} times, else read; never a crash")


def test_P9_without_nibabel_the_line_is_said(tmp_path, observe):
    save(tmp_path / "x.nii", volumes())
    code = "import sys; sys.modules['nibabel'] = None; from princomp.data import read; read(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x.nii")], capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert said == 'ImportError: NIfTI images are read with nibabel: pip install "princomp[neuro]"'
    observe("P9", "nibabel missing", said)
