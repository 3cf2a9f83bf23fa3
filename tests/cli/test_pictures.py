"""`princomp denoise` and `princomp inpaint`: files in, files out."""

import numpy as np
import pytest
from PIL import Image
from skimage import data
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

from princomp.cli import pictures
from princomp.images import denoise, estimate_noise, inpaint
from running import princomp

CLEAN = data.camera()[80:144, 180:244]


def noisy(sigma=20):
    return np.clip(np.rint(CLEAN + sigma * np.random.default_rng(0).normal(size=CLEAN.shape)), 0, 255).astype(np.uint8)


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image)


def test_denoise(tmp_path):
    Image.fromarray(noisy()).save(tmp_path / "in.png")
    done = princomp("denoise", "in.png", "--method", "dct", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"Noise of about {estimate_noise(noisy()):.3g}" in done.stderr
    found = pixels(tmp_path / "in-denoised.png")
    np.testing.assert_array_equal(found, np.clip(np.rint(denoise(noisy(), method="dct")), 0, 255))
    both = pixels(tmp_path / "in-denoised-before-after.png")
    np.testing.assert_array_equal(both[:, :64], noisy())
    np.testing.assert_array_equal(both[:, -64:], found)
    again = princomp("denoise", "in.png", cwd=tmp_path)
    assert again.returncode == 5
    assert "is there already. Replace it with --force." in again.stderr


def test_denoise_sixteen_bits_and_colours(tmp_path):
    Image.fromarray(noisy().astype(np.uint16) * 257).save(tmp_path / "deep.tif")
    done = princomp("denoise", "deep.tif", "--sigma", 5000, "--method", "pca", "-o", "out.tif", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    found = pixels(tmp_path / "out.tif")
    assert found.dtype == np.uint16
    expected = denoise(noisy().astype(np.uint16) * 257, 5000, "pca")
    np.testing.assert_array_equal(found, np.clip(np.rint(expected), 0, 65535))
    refused = princomp("denoise", "deep.tif", "--method", "pca", "-o", "deep.jpg", cwd=tmp_path)
    assert refused.returncode == 2
    assert "do not go into a JPEG file" in refused.stderr
    Image.fromarray(np.dstack([noisy()] * 3)).save(tmp_path / "colour.png")
    done = princomp("denoise", "colour.png", "--method", "smoothness", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert pixels(tmp_path / "colour-denoised.png").shape == (64, 64, 3)


def test_inpaint(tmp_path):
    mask = np.random.default_rng(0).random(CLEAN.shape) < 0.3
    Image.fromarray(CLEAN).save(tmp_path / "in.png")
    Image.fromarray(mask).save(tmp_path / "mask.png")
    done = princomp("inpaint", "in.png", "--mask", "mask.png", "--method", "pca", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pixels(tmp_path / "in-inpainted.png")
    np.testing.assert_array_equal(found[~mask], CLEAN[~mask])
    np.testing.assert_array_equal(found, np.clip(np.rint(inpaint(CLEAN, mask, "pca")), 0, 255))
    assert (pixels(tmp_path / "in-inpainted-before-after.png")[:, :64][mask] == 0).all()


def test_what_is_no_image(tmp_path):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n3,4\n")
    done = princomp("denoise", "table.csv", cwd=tmp_path)
    assert done.returncode == 3
    assert "this is no image" in done.stderr
    Image.fromarray(CLEAN).save(tmp_path / "in.png")
    Image.fromarray(CLEAN[:9]).save(tmp_path / "mask.png")
    done = princomp("inpaint", "in.png", "--mask", "mask.png", cwd=tmp_path)
    assert done.returncode == 3
    assert "mask must have the image's height and width" in done.stderr
    done = princomp("denoise", "in.png", "-o", "out.gif", cwd=tmp_path)
    assert done.returncode == 2
    (tmp_path / "folder").mkdir()
    for name in ("a.png", "b.png"):
        Image.fromarray(CLEAN).save(tmp_path / "folder" / name)
    done = princomp("denoise", "folder", cwd=tmp_path)
    assert done.returncode == 3
    assert "these are 2 images: give one of them" in done.stderr


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (("deep.tif", "-o", "deep.jpg"), 2, "Pixels of uint16 do not go into a JPEG file: end -o in .png."),
        (("float.tif", "-o", "float.png"), 2, "Pixels of float32 do not go into a PNG file: end -o in .tif."),
        (("deep.tif", "-o", "none/deep.tif"), 5, "none is no folder: make it first."),
        (("deep.tif", "--sigma", -1), 2, "-1.0 is not in the range x>=0"),
        (("deep.tif", "--sigma", "nan"), 3, "sigma must be a number of at least 0"),
        (
            ("deep.tif", "--reference", "float.tif"),
            3,
            "float.tif has pixels (64, 64) of float32, but deep.tif (64, 64) of",
        ),
        (("deep.tif", "--reference", "none.tif"), 3, "none.tif: there is no such file"),
    ],
)
def test_what_cannot_be_written_or_compared_is_said_before_the_work(tmp_path, monkeypatch, options, code, says):
    from princomp.images import denoising

    monkeypatch.setattr(denoising, "METHODS", {"local-pca": None})  # which cannot work
    Image.fromarray(noisy().astype(np.uint16) * 257).save(tmp_path / "deep.tif")
    Image.fromarray(noisy().astype(np.float32)).save(tmp_path / "float.tif")
    done = princomp("denoise", *options, cwd=tmp_path)
    assert done.returncode == code
    assert says in done.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_what_a_png_cannot_hold_becomes_a_tiff(tmp_path, dtype):
    image = (1000.0 * noisy() - 7.25).astype(dtype)
    Image.fromarray(image).save(tmp_path / "in.tif")
    done = princomp("denoise", "in.tif", "--sigma", 20000, "--method", "pca", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    expected = denoise(image, 20000, "pca")
    np.testing.assert_array_equal(
        pixels(tmp_path / "in-denoised.tif"), np.rint(expected) if dtype is np.int32 else expected
    )
    assert pixels(tmp_path / "in-denoised-before-after.png").dtype == np.uint8


@pytest.mark.parametrize(
    ("mode", "name", "shape", "note"),
    [
        ("LA", "in.png", (64, 64), "Left out transparency"),
        ("RGBA", "in.png", (64, 64, 3), "Left out transparency"),
        ("P", "in.png", (64, 64, 3), None),
        ("1", "in.png", (64, 64), None),
        ("L", "in.jpg", (64, 64), None),
        ("RGB", "in.jpeg", (64, 64, 3), None),
        ("CMYK", "in.jpg", (64, 64, 3), None),
        ("CMYK", "in.tif", (64, 64, 3), None),
    ],
)
def test_all_kinds_of_pixels(tmp_path, mode, name, shape, note):
    image = Image.fromarray(np.dstack([noisy(), noisy()[::-1], noisy()]))
    (image.convert(mode) if mode != "P" else image.quantize()).save(tmp_path / name)
    done = princomp("denoise", name, "--sigma", 20, "--method", "pca", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pixels(tmp_path / "in-denoised.png")
    assert (found.shape, found.dtype) == (shape, np.uint8)
    assert ("Left out" in done.stderr) == (note is not None)
    assert note is None or note in done.stderr


def test_a_photograph_taken_sideways_is_written_upright(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(noisy()[:40]).save(tmp_path / "in.jpg", exif=exif)
    assert princomp("denoise", "in.jpg", "--method", "pca", cwd=tmp_path).returncode == 0
    assert pixels(tmp_path / "in-denoised.png").shape == (64, 40)


def test_little_is_lost_in_a_jpeg(tmp_path):
    Image.fromarray(data.chelsea()[:128, :128]).save(tmp_path / "in.png")
    for output in ("out.png", "out.jpg"):
        assert princomp("denoise", "in.png", "--method", "pca", "-o", output, "--force", cwd=tmp_path).returncode == 0
    apart = pixels(tmp_path / "out.png").astype(float) - pixels(tmp_path / "out.jpg")
    assert np.std(apart) < 2


def test_with_the_true_image_it_is_said_how_close_the_result_is(tmp_path):
    Image.fromarray(noisy()).save(tmp_path / "in.png")
    Image.fromarray(CLEAN).save(tmp_path / "clean.png")
    done = princomp("denoise", "in.png", "--reference", "clean.png", "--sigma", 20, "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word, image in (("Before", noisy()), ("After", pixels(tmp_path / "in-denoised.png"))):
        ratio, alike = peak_signal_noise_ratio(CLEAN, image), structural_similarity(CLEAN, image)
        assert f"{word}: PSNR {ratio:.2f} dB, SSIM {alike:.4f}\n" in done.stdout
    assert not done.stderr

    mask = np.random.default_rng(0).random(CLEAN.shape) < 0.3
    Image.fromarray(mask).save(tmp_path / "mask.png")
    how = ("--mask", "mask.png", "--method", "pca", "-q")
    done = princomp("inpaint", "clean.png", "--reference", "clean.png", *how, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = pixels(tmp_path / "clean-inpainted.png")
    among = peak_signal_noise_ratio(CLEAN[mask], found[mask])
    assert done.stdout.startswith(f"After: PSNR {peak_signal_noise_ratio(CLEAN, found):.2f} dB, SSIM ")
    assert done.stdout.endswith(f"over the missing pixels {among:.2f} dB\n")


@pytest.mark.parametrize("shape", [(1, 1), (6, 40), (20, 30), (20, 30, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_an_image_is_as_close_to_itself_as_can_be(tmp_path, shape, dtype):
    """Of a small one there is no SSIM, whose window has 7 x 7 pixels."""
    if len(shape) == 3 and dtype != np.uint8:
        pytest.skip("Pillow has no such images")
    Image.fromarray(np.full(shape, 7, dtype)).save(tmp_path / "in.tif")
    done = princomp("denoise", "in.tif", "--reference", "in.tif", "-q", cwd=tmp_path)
    alike = ", SSIM 1.0000" if min(shape[:2]) >= 7 else ""
    assert done.stdout == f"Before: PSNR inf dB{alike}\nAfter: PSNR inf dB{alike}\n"


def test_a_picture_in_place_of_a_mask_is_refused(tmp_path):
    Image.fromarray(CLEAN).save(tmp_path / "in.png")
    done = princomp("inpaint", "in.png", "--mask", "in.png", cwd=tmp_path)
    assert done.returncode == 3
    assert "in.png looks like a picture, not like a mask" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.png"]


@pytest.mark.parametrize("kind", ["soft", "kinds", "jpeg"])
def test_masks_of_many_shades_are_masks(kind, tmp_path):
    """With soft edges, with a shade for each kind of gap, or from a JPEG file."""
    down, across = np.indices(CLEAN.shape)
    mask = {
        "soft": np.clip(1000 - 40.0 * np.hypot(down - 30, across - 30), 0, 255),
        "kinds": np.where(down > 10, 20 * (across // 8), 0),
        "jpeg": np.where(across % 16 < 11, 255, 0),
    }[kind]
    name = "mask.jpg" if kind == "jpeg" else "mask.png"
    Image.fromarray(mask.astype(np.uint8)).save(tmp_path / name)
    Image.fromarray(CLEAN).save(tmp_path / "in.png")
    done = princomp("inpaint", "in.png", "--mask", name, "--method", "pca", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "shades beside black" in done.stderr


def test_what_a_mask_says(tmp_path):
    """All but black is missing; of shades, which JPEG adds, it warns."""
    mask = np.zeros(CLEAN.shape, np.uint8)
    mask[10:20, 10:20] = 255
    Image.fromarray(CLEAN).save(tmp_path / "in.png")
    Image.fromarray(mask).save(tmp_path / "mask.png")
    how = ("--method", "pca", "--force")
    done = princomp("inpaint", "in.png", "--mask", "mask.png", *how, cwd=tmp_path)
    assert f"{100 / 64**2:.1%} of the pixels are missing." in done.stderr
    assert "shades" not in done.stderr
    mask[15] //= 2
    Image.fromarray(mask).save(tmp_path / "mask.png")
    done = princomp("inpaint", "in.png", "--mask", "mask.png", "-q", *how, cwd=tmp_path)
    assert "mask.png has 2 shades beside black: all of them count as missing" in done.stderr
    Image.fromarray(np.full_like(mask, 255)).save(tmp_path / "mask.png")
    done = princomp("inpaint", "in.png", "--mask", "mask.png", *how, cwd=tmp_path)
    assert done.returncode == 3
    assert "Every pixel is missing" in done.stderr


@pytest.mark.parametrize("shape", [(300, 20), (40, 12, 3), (9, 7), (16, 9)])
def test_similarity_in_bands_is_that_of_the_whole(monkeypatch, shape):
    monkeypatch.setattr(pictures, "BAND", 10)
    rng = np.random.default_rng(0)
    true = rng.integers(0, 256, shape).astype(np.uint8)
    found = np.clip(true + rng.integers(-30, 31, shape), 0, 255).astype(np.uint8)
    whole = structural_similarity(true, found, data_range=255, channel_axis=2 if true.ndim == 3 else None)
    assert pictures._similarity(found, true) == pytest.approx(whole, rel=1e-12)
