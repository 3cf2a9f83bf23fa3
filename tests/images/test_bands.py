"""An image from its patches, band by band: as from all patches at once."""

import numpy as np
import pytest

from princomp.images import assemble, bands, extract_patches
from princomp.images.global_pca import global_pca
from princomp.images.priors import WEIGHTS, pixel_lasso, smoothness


def twisted(patches):
    return patches**2 - patches.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize(("shape", "size"), [((20, 15), (8, 8)), ((9, 4), (8, 4)), ((8, 30), (8, 8)), ((6, 6), (1, 1))])
def test_bands_are_one_image(monkeypatch, rows, shape, size):
    image = np.random.default_rng(0).normal(size=shape)
    monkeypatch.setattr(bands, "BAND_BYTES", rows * 8 * (shape[1] - size[1] + 1) * size[0] * size[1])
    heard = []
    found = bands.from_patches(image, size, twisted, tell=lambda done, of: heard.append((done, of)))
    np.testing.assert_allclose(found, assemble(twisted(extract_patches(image, size)), shape, size), atol=1e-12)
    assert heard[-1] == (shape[0] - size[0] + 1,) * 2


def test_the_image_itself_has_a_weight():
    image = np.random.default_rng(0).normal(size=(10, 10))
    found = bands.from_patches(image, (1, 1), np.zeros_like, own=3.0)
    np.testing.assert_allclose(found, 0.75 * image)


def test_some_patches_are_patches():
    image = np.arange(200.0).reshape(10, 20)
    every = extract_patches(image, (3, 4))
    some = bands.some_patches(image, (3, 4), 25, np.random.default_rng(0))
    assert len(np.unique(some[:, 0])) == 25
    assert {tuple(row) for row in some} <= {tuple(row) for row in every}
    np.testing.assert_array_equal(bands.some_patches(image, (3, 4), 1000, np.random.default_rng(0)), every)


def test_an_image_of_few_components_keeps_them():
    clean = 30 * np.add.outer(np.sin(np.arange(40) / 3), np.cos(np.arange(50) / 4))
    np.testing.assert_allclose(global_pca(clean), clean, atol=1.0)


def test_the_smooth_image_solves_its_equation():
    """For one of the weights, and that one has the least estimate of the risk among its neighbours."""
    rng = np.random.default_rng(0)
    y = 20 * np.sin(np.arange(12)[:, None] / 3) + rng.normal(size=(12, 17))
    x = smoothness(y)
    padded = np.pad(x, 1, mode="edge")
    laplacian = 4 * x - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]
    weight = np.vdot(y - x, laplacian) / np.vdot(laplacian, laplacian)
    np.testing.assert_allclose(x + weight * laplacian, y, atol=1e-9)
    assert np.abs(WEIGHTS / weight - 1).min() < 1e-6


def test_the_lasso_of_pixels_is_soft_thresholding_by_the_least_risk():
    rng = np.random.default_rng(1)
    y = np.where(rng.random((9, 9)) < 0.2, 8.0, 0.0) + rng.normal(size=(9, 9))
    x = pixel_lasso(y)
    weight = np.max(np.abs(y - x))
    np.testing.assert_allclose(x, np.sign(y) * np.maximum(np.abs(y) - weight, 0))

    def risk(t):
        return np.minimum(y**2, t**2).sum() + 2 * np.sum(np.abs(y) > t)

    assert all(risk(weight) <= risk(t) + 1e-9 for t in np.linspace(0, 12, 500))
