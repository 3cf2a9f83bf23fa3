"""Inpainting: what is there stays, what is missing comes near, and never much worse than a biharmonic image."""

import numpy as np
import pytest
from skimage import data
from skimage.restoration import inpaint_biharmonic

from princomp.images import inpaint, inpainting, local_pca
from princomp.images.inpainting import METHODS


def holes(shape, share, seed=0):
    return np.random.default_rng(seed).random(shape) < share


def apart(image, clean, mask):
    return np.sqrt(np.mean((image - clean)[mask] ** 2))


STRIPES = 60 * np.sin(np.add.outer(np.arange(64), 2 * np.arange(64)) / 3) + 100
BRICK = data.brick()[100:196, 100:196].astype(float)


@pytest.mark.parametrize("method", METHODS)
def test_what_repeats_is_found_again(method):
    mask = holes(STRIPES.shape, 0.5)
    found = inpaint(np.where(mask, np.nan, STRIPES), mask, method)
    assert (found[~mask] == STRIPES[~mask]).all()
    start = inpaint_biharmonic(np.where(mask, 0, STRIPES), mask)
    gain = (
        1.02 if method in ("dct", "haar") else 0.9
    )  # atoms that are given need not suit stripes: no loss, up to noise
    assert apart(found, STRIPES, mask) < gain * apart(start, STRIPES, mask)


def test_a_wall_of_bricks():
    mask = holes(BRICK.shape, 0.5)
    start = inpaint_biharmonic(np.where(mask, 0, BRICK), mask)
    assert apart(inpaint(BRICK, mask), BRICK, mask) < 0.85 * apart(start, BRICK, mask)


def test_noise_is_left_to_the_biharmonic_image():
    """Nothing can be learned of it: held-out pixels say so, up to their own noise."""
    clean = np.random.default_rng(0).normal(size=(64, 64))
    mask = holes(clean.shape, 0.3)
    start = inpaint_biharmonic(np.where(mask, 0, clean), mask)
    assert apart(inpaint(clean, mask), clean, mask) <= 1.02 * apart(start, clean, mask)


def test_what_missing_pixels_hold_does_not_matter():
    mask = holes((40, 40), 0.4)
    image = STRIPES[:40, :40]
    found = inpaint(np.where(mask, 1e9, image), mask)
    np.testing.assert_array_equal(found, inpaint(np.where(mask, np.nan, image), mask))
    np.testing.assert_array_equal(found, inpaint(np.where(mask, np.nan, image)))


def test_units_kinds_and_colours():
    mask = holes((40, 40), 0.4)
    image = np.rint(STRIPES[:40, :40])
    plain = inpaint(image, mask)
    assert plain.dtype == np.float64
    np.testing.assert_array_equal(inpaint(image.astype(np.uint8), mask), plain)
    np.testing.assert_array_equal(inpaint(image.astype(np.uint16), mask), plain)
    np.testing.assert_allclose((inpaint(1e-3 * image - 5, mask) + 5) * 1e3, plain, atol=0.05)
    single = inpaint(image.astype(np.float32), mask)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, plain, atol=0.05)
    colour = inpaint(np.stack([image, image[::-1], image.T], axis=2), mask)
    assert colour.shape == (40, 40, 3)
    assert np.isfinite(inpaint(image > 100, mask)).all()


@pytest.mark.parametrize("shape", [(1, 2), (7, 5), (3, 40), (9, 8, 4)])
def test_small_images(shape):
    image = np.random.default_rng(0).normal(size=shape)
    mask = np.zeros(shape[:2], bool)
    mask[0, 0] = True
    found = inpaint(image, mask)
    assert found.shape == shape
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[~mask], image[~mask])


def test_a_constant_image_and_one_without_gaps():
    constant = np.full((20, 20), 4.5)
    np.testing.assert_allclose(inpaint(constant, holes((20, 20), 0.5)), constant)
    np.testing.assert_array_equal(inpaint(BRICK, np.zeros(BRICK.shape, bool)), BRICK)
    assert inpaint(np.ones((1, 1)))[0, 0] == 1


def test_what_cannot_be_filled():
    image = BRICK[:20, :20]
    with pytest.raises(ValueError, match="Every pixel is missing"):
        inpaint(image, np.ones(image.shape, bool))
    with pytest.raises(TypeError, match="mask must be of booleans"):
        inpaint(image, np.zeros(image.shape))
    with pytest.raises(ValueError, match="mask must have the image's height and width"):
        inpaint(image, np.zeros((3, 3), bool))
    with pytest.raises(ValueError, match="not missing are NaN or infinite"):
        inpaint(np.where(image > 100, np.nan, image), np.zeros(image.shape, bool))
    with pytest.raises(ValueError, match=r"pixels beyond 1e\+300"):
        inpaint(1e305 * image, holes(image.shape, 0.5))
    with pytest.raises(TypeError, match="masked array with masked pixels"):
        inpaint(np.ma.masked_greater(image, 100))
    with pytest.raises(ValueError, match="method must be one of local-pca"):
        inpaint(image, holes(image.shape, 0.5), "magic")


def test_a_scratch_is_looked_at_where_it_is(monkeypatch):
    """Groups are those of patches that hold one of its pixels, or of the pixels that are held out."""
    clean = np.tile(STRIPES, (3, 3))
    mask = np.zeros(clean.shape, bool)
    mask[50:52, 20:150] = True
    groups = []
    nearest = local_pca.nearest
    monkeypatch.setattr(
        local_pca, "nearest", lambda image, tops, *rest: groups.append(tops) or nearest(image, tops, *rest)
    )
    monkeypatch.setattr(inpainting, "MOST", 30)
    found = inpaint(clean, mask)
    assert sum(map(len, groups)) < 12 * (2 * 40 + 4 * 30)  # of 2209 patches of the whole image, twelve times
    start = inpaint_biharmonic(np.where(mask, 0, clean), mask)
    assert apart(found, clean, mask) < 0.8 * apart(start, clean, mask)


def test_pixels_that_no_group_holds_stay():
    y = np.random.default_rng(0).normal(size=(60, 60, 1))
    where = np.zeros((60, 60), bool)
    where[2, 3] = True
    found = local_pca.one_pass(y, 0.1, where)
    near = np.zeros((60, 60), bool)
    near[:45, :45] = True  # of 37 x 37 patches, as many as are compared at a corner
    np.testing.assert_allclose(found[~near], y[~near], rtol=1e-5)
    assert not np.allclose(found[:8, :8], y[:8, :8])
    every = local_pca.one_pass(y, 0.1, np.ones((60, 60), bool))
    np.testing.assert_array_equal(every, local_pca.one_pass(y, 0.1, None))
