"""`princomp denoise` and `princomp inpaint`: files in, files out."""

import numpy as np
from PIL import Image
from skimage import data

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
