"""Images as rows: folders and patterns, what pixels are, and what becomes of damaged and hostile images."""

import os
import struct
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest

from princomp import PCA
from princomp.data import DataError, read
from princomp.data.layout import ImageLayout
from princomp.data.stored import FileRows

pytestmark = pytest.mark.needs("pillow")


def pixels(seed=0, shape=(4, 6), high=255, dtype="u1"):
    return np.random.default_rng(seed).integers(0, high, shape, endpoint=True).astype(dtype)


def save(path, image, mode=None, **how):
    from PIL import Image

    made = image if isinstance(image, Image.Image) else Image.fromarray(image)
    (made.convert(mode) if mode else made).save(path, **how)
    return path


def whole(rows):
    return np.concatenate([rows.block(i) for i in range(len(rows.offsets) - 1)])


@pytest.fixture
def frames(tmp_path):
    """A folder of twelve grey images."""
    folder = tmp_path / "frames"
    folder.mkdir()
    for i in range(12):
        save(folder / f"frame{i}.png", pixels(i))
    return folder


# --- folders and patterns -------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 1000])
def test_a_folder_is_a_row_for_each_image_in_the_order_of_their_numbers(frames, limit):
    X = np.array([pixels(i).ravel() for i in range(12)])
    for path in (frames, f"{frames}/", frames / "*.png"):
        rows = read(path, memory_limit=limit)
        assert isinstance(rows, FileRows) == (limit is not None)
        assert np.array_equal(whole(rows), X)
        assert rows.layout == ImageLayout((4, 6))
        assert rows.sample_names == tuple(f"frame{i}.png" for i in range(12))
        assert (rows.names, rows.notes) == (None, ())
    assert np.allclose(PCA(2).fit(rows).components_, PCA(2).fit(X).components_)
    assert read(frames / "frame3.png").shape == (1, 24)


def test_other_files_of_a_folder_are_left_out_with_a_note(frames):
    (frames / "notes.txt").write_text("no image")
    (frames / ".hidden").write_text("nothing to say of")
    (frames / "old").mkdir()
    os.symlink(frames / "frame1.png", frames / "link.png")
    os.mkfifo(frames / "pipe.png")
    save(frames / "more.BMP", pixels(12))
    rows = read(frames)
    assert rows.shape == (13, 24)
    assert rows.sample_names[-1] == "more.BMP"
    assert rows.notes == (f"Left out what is no image file in {frames}: link.png, notes.txt, old, pipe.png.",)


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"is a folder without images \(\.png, .*\): name a file, or several by a pattern"
    ):
        read(tmp_path)
    (tmp_path / "x.svg").write_text("<svg/>")
    with pytest.raises(DataError, match=r"SVG files are drawings: save them as \.png\."):
        read(tmp_path)
    with pytest.raises(DataError, match="there is no such file"):
        read(tmp_path / "nowhere")


def test_images_must_be_of_one_size_and_kind(frames):
    save(frames / "frame5.png", pixels(shape=(6, 4)))
    with pytest.raises(DataError, match=r"frame5\.png is 4 x 6 pixels, but .*frame0\.png is 6 x 4 pixels: bring all"):
        read(frames)
    save(frames / "frame5.png", pixels(shape=(4, 6, 3)))
    with pytest.raises(DataError, match=r"frame5\.png is 6 x 4 pixels in colour, but .*frame0\.png is 6 x 4 pixels: "):
        read(frames)
    np.save(frames / "x.npy", pixels())
    with pytest.raises(DataError, match=r"x\.npy is not a \.png file as "):
        read(frames / "*")
    with pytest.raises(DataError, match=r"is no table: drop and index are for"):
        read(frames, index="name")


# --- pixels ---------------------------------------------------------------------------------------

COLOURS = pixels(shape=(4, 6, 3))
GREY = pixels()
WIDE = pixels(high=65535, dtype="u2")
# name: (image to write, mode to write it in, what is read, note)
KINDS = {
    "grey.png": (GREY, None, GREY, ()),
    "grey.tif": (GREY, None, GREY, ()),
    "grey.tiff": (GREY, None, GREY, ()),
    "grey.bmp": (GREY, None, GREY, ()),
    "grey.pgm": (GREY, None, GREY, ()),
    "black and white.png": (GREY > 99, None, 255 * (GREY > 99), ()),
    "colour.png": (COLOURS, None, COLOURS, ()),
    "colour.ppm": (COLOURS, None, COLOURS, ()),
    "colour.bmp": (COLOURS, None, COLOURS, ()),
    "16 bits.png": (WIDE, None, WIDE, ()),
    "16 bits.tif": (WIDE, None, WIDE, ()),
    "32 bits.tif": (WIDE.astype("i4") * 9, None, WIDE.astype("i4") * 9, ()),
    "float.tif": ((GREY / 7).astype("f4"), None, (GREY / 7).astype("f4"), ()),
    "alpha.png": (np.dstack([COLOURS, GREY]), None, COLOURS, ("Left out transparency of 1 image.",)),
    "grey alpha.png": (np.dstack([GREY, GREY[::-1]]), None, GREY, ("Left out transparency of 1 image.",)),
}


@pytest.mark.parametrize("name", KINDS)
def test_pixels_are_as_they_are_stored(tmp_path, name):
    image, mode, expected, notes = KINDS[name]
    rows = read(save(tmp_path / name, image, mode))
    assert np.array_equal(whole(rows)[0], expected.ravel())
    assert rows.layout.shape == expected.shape
    assert rows.dtype == (np.float32 if expected.dtype == "f4" else np.float64)
    assert rows.notes == notes


@pytest.mark.parametrize(("name", "mode"), [("x.jpg", "RGB"), ("x.jpeg", "L"), ("x.jpg", "CMYK"), ("x.gif", "P")])
def test_other_ways_to_store_colours_become_red_green_and_blue(tmp_path, name, mode):
    from PIL import Image

    path = save(tmp_path / name, COLOURS, mode)
    with Image.open(path) as image:
        expected = np.asarray(image.convert("L" if mode == "L" else "RGB"))
    rows = read(path)
    assert rows.layout.shape == expected.shape
    assert np.array_equal(whole(rows)[0], expected.ravel())


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("name", ["x.jpg", "x.tif"])
def test_photographs_are_upright_however_the_camera_was_held(tmp_path, name, orientation):
    from PIL import Image, ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    path = save(tmp_path / name, np.repeat(pixels(shape=(16, 24)), 3).reshape(16, 24, 3), exif=exif)
    with Image.open(path) as stored:
        upright = np.asarray(ImageOps.exif_transpose(stored))
    rows = read(path)
    assert rows.layout == ImageLayout(upright.shape)
    assert upright.shape[:2] == ((24, 16) if orientation in (5, 6, 7, 8) else (16, 24))
    assert np.array_equal(whole(rows).reshape(upright.shape), upright)


def test_metadata_that_cannot_be_read_say_nothing(tmp_path):
    path = save(tmp_path / "x.jpg", pixels(shape=(16, 24)), exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff")
    assert read(path).layout == ImageLayout((16, 24))


def test_of_several_frames_the_first_is_read(tmp_path):
    from PIL import Image

    first, second = Image.fromarray(GREY), Image.fromarray(GREY[::-1])
    for name in ("x.gif", "x.tif"):
        save(tmp_path / name, first, save_all=True, append_images=[second])
        rows = read(tmp_path / name)
        assert np.array_equal(whole(rows)[0].reshape(4, 6, -1)[..., 0], GREY)
        assert rows.notes == (f"Of 1 image with several frames the first one was read: {name}.",)


def png(width, height, bits=8, kind=0, data=b""):
    """A PNG that claims this size."""

    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">2I5B", width, height, bits, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def test_colours_of_16_bits_are_cut_to_8_with_a_note(tmp_path):
    lines = b"".join(b"\0" + WIDE[i, :2].astype(">u2").repeat(3).tobytes() for i in range(2))
    (tmp_path / "x.png").write_bytes(png(2, 2, bits=16, kind=2, data=lines))
    rows = read(tmp_path / "x.png")
    assert np.array_equal(whole(rows)[0], (WIDE[:2, :2] >> 8).repeat(3))
    assert rows.notes == ("Left out the lower 8 of 16 bits of 1 image.",)


# --- damaged and hostile images ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.png", b"hello", "is damaged, or no image of a kind that can be read"),
        ("x.jpg", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is damaged, or no image of a kind"),
        ("x.png", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "is damaged, or no image of a kind"),
        ("x.svg", b"<svg/>", r"is a drawing \(SVG\), not an image of pixels: save it as \.png\."),
        ("x.png", png(4, 4, data=b"\0"), r"is damaged \(image file is truncated"),
        ("x.png", b"", "is empty"),
    ],
)
def test_S8_what_is_no_image_is_one_sentence_that_names_it(tmp_path, observe, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    observe("S8", f"{name}: {content[:12]!r}", str(caught.value).replace(str(path), name))


@pytest.mark.parametrize("side", [10_000, 20_000])
def test_S8_image_bombs_are_refused_before_they_are_unpacked(tmp_path, observe, side):
    path = tmp_path / "x.png"
    path.write_bytes(png(side, side, data=bytes(1000)))
    begin = time.process_time()
    with pytest.raises(DataError, match=r"x\.png is too large: Pillow refuses more than \d+ pixels") as caught:
        read(path)
    assert time.process_time() - begin < 0.2
    observe("S8", f"image of {side} x {side}", str(caught.value).replace(str(path), "x.png"))


def test_S8_an_image_larger_than_the_limit_is_refused_before_it_is_unpacked(tmp_path):
    (tmp_path / "x.png").write_bytes(png(8000, 8000, data=bytes(1000)))
    with pytest.raises(MemoryError, match=r"x\.png, 8000 x 8000 pixels, needs 0\.\d+ GiB of memory, but 0\.0\d+ GiB"):
        read(tmp_path / "x.png", memory_limit=2**26)


def test_S8_a_truncated_image_among_others_is_named(frames):
    path = frames / "frame7.png"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(DataError, match=r"frame7\.png is damaged \("):
        read(frames)


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.tif", "x.gif", "x.bmp"])
@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.soak)])
def test_S1_flipped_bytes_of_pictures(tmp_path, observe, name, count):
    """A damaged image is refused, or gives some pixels; nothing else happens."""
    path = save(tmp_path / name, pixels(shape=(20, 30)))
    good, rng, refused = np.frombuffer(path.read_bytes(), np.uint8), np.random.default_rng(0), []
    for _ in range(count):
        bad = good.copy()
        bad[rng.integers(len(bad), size=2)] = rng.integers(256, size=2)
        path.write_bytes(bad[: rng.integers(1, len(bad)) if rng.random() < 0.2 else None].tobytes())
        try:
            whole(read(path, memory_limit=2**26))
        except (DataError, MemoryError) as error:
            refused.append(str(error))
    assert refused
    assert [text for text in refused if not text.startswith(str(path)) or "\n" in text] == []
    observe("S1", f"{name}, damaged in {count} ways", f"refused {len(refused)} times, else read; never a crash")


def test_P9_without_pillow_the_line_is_said(frames, observe):
    code = "import sys; sys.modules['PIL'] = None; from princomp.data import read; read(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(frames)], capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert said == 'ImportError: Images are read with Pillow: pip install "princomp[io]"'
    observe("P9", "pillow missing", said)


def test_images_of_other_bits_are_not_mixed(tmp_path):
    """The same grey is 200 in one and 51400 in the other."""
    folder = tmp_path / "frames"
    folder.mkdir()
    save(folder / "a.png", np.full((4, 6), 200, np.uint8))
    save(folder / "b.png", np.full((4, 6), 51400, np.uint16))
    with pytest.raises(DataError, match=r"b\.png has pixels of uint16, but .*a\.png of uint8: save all images"):
        read(folder)


def test_pixels_of_an_odd_range_are_said_to_be_changed(tmp_path):
    (tmp_path / "x.pgm").write_bytes(b"P2 2 1 1023\n258 0\n")
    assert read(tmp_path / "x.pgm").notes == (
        "1 image of another range than 8 or 16 bits: Pillow brought the pixels to that.",
    )
