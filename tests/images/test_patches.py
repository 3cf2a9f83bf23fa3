"""Patches of images: the same numbers as slices of the image, in the stated places, and all the way back."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import Allocated
from princomp import PCA, DictionaryLearning
from princomp.images import assemble, denoise, estimate_noise, extract_patches, inpaint, patch_positions, patch_rows


def picture(*shape, dtype=np.float64, seed=0):
    """Values far outside of what a screen shows, of both signs."""
    return (300 * np.random.default_rng(seed).normal(size=shape)).astype(dtype)


def slow_patches(image, size, stride):
    """One slice after the other, by the words of the docstring."""
    starts = []
    for length in image.shape[:2]:
        places = list(range(0, length - size + 1, stride))
        starts.append(sorted({*places, length - size}))
    return np.array([image[top : top + size, left : left + size].ravel() for top in starts[0] for left in starts[1]]), [
        (top, left) for top in starts[0] for left in starts[1]
    ]


def slow_average(patches, shape, size, positions):
    """Sums and counts, patch by patch."""
    sums, counts = np.zeros(shape), np.zeros(shape)
    for patch, (top, left) in zip(patches, positions, strict=True):
        sums[top : top + size, left : left + size] += patch.reshape(size, size, *shape[2:])
        counts[top : top + size, left : left + size] += 1
    return sums / counts


@pytest.mark.parametrize("channels", [(), (1,), (3,)])
@pytest.mark.parametrize(("size", "stride"), [(1, 1), (4, 1), (4, 3), (5, 5), (4, 7), (11, 2)])
def test_patches_are_slices_of_the_image(channels, size, stride):
    image = picture(11, 17, *channels)
    rows, positions = slow_patches(image, size, stride)
    np.testing.assert_array_equal(extract_patches(image, size, stride=stride), rows)
    np.testing.assert_array_equal(patch_positions(image.shape, size, stride=stride), positions)


@given(
    height=st.integers(1, 14),
    width=st.integers(1, 14),
    channels=st.integers(0, 3),
    single=st.booleans(),
    numbers=st.data(),
)
def test_patches_give_the_image_back(height, width, channels, single, numbers):
    size = numbers.draw(st.integers(1, min(height, width)))
    stride = numbers.draw(st.integers(1, size))
    shape = (height, width, channels) if channels else (height, width)
    image = picture(*shape, dtype=np.float32 if single else np.float64)
    patches = extract_patches(image, size, stride=stride)
    back = assemble(patches, image.shape, size, stride=stride)
    assert patches.dtype == back.dtype == image.dtype
    # Sums of up to 14^2 equal numbers, in float64.
    np.testing.assert_allclose(back, image, rtol=1e-13 if not single else 1e-7)


@pytest.mark.parametrize("shape", [(9, 13), (9, 13, 2)])
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_overlaps_are_averaged(shape, stride):
    positions = patch_positions(shape, 4, stride=stride)
    patches = picture(len(positions), 16 * (shape[2] if len(shape) == 3 else 1))
    back = assemble(patches, shape, 4, stride=stride)
    np.testing.assert_allclose(back, slow_average(patches, shape, 4, positions), rtol=1e-12, atol=1e-12 * 300)


def test_no_other_image_has_patches_as_near():
    """The residual of least squares is orthogonal to the patches of every image."""
    shape = (8, 9)
    patches = picture(len(patch_positions(shape, 3, stride=2)), 9)
    residual = patches - extract_patches(assemble(patches, shape, 3, stride=2), 3, stride=2)
    for seed in range(5):
        other = extract_patches(picture(*shape, seed=seed + 1), 3, stride=2)
        assert abs(np.vdot(residual, other)) <= 1e-12 * np.linalg.norm(residual) * np.linalg.norm(other)


def test_patches_and_strides_that_are_not_square():
    image = picture(10, 12)
    rows = extract_patches(image, (2, 5), stride=(2, 3))
    positions = patch_positions(image.shape, (2, 5), stride=(2, 3))
    assert positions[:4].tolist() == [[0, 0], [0, 3], [0, 6], [0, 7]]
    np.testing.assert_array_equal(rows, [image[i : i + 2, j : j + 5].ravel() for i, j in positions])
    np.testing.assert_allclose(assemble(rows, image.shape, (2, 5), stride=(2, 3)), image, rtol=1e-14)


def test_whole_numbers_become_float64_and_are_not_cut():
    image = np.array([[0, 255], [300, -7]], dtype=np.int16)
    rows = extract_patches(image, 1)
    assert rows.dtype == np.float64
    assert rows.ravel().tolist() == [0.0, 255.0, 300.0, -7.0]
    assert assemble(rows * 1e6, image.shape, 1).tolist() == [[0.0, 255e6], [300e6, -7e6]]


def test_missing_pixels_stay_where_they_are():
    image = picture(6, 7)
    image[2, 3] = np.nan
    back = assemble(extract_patches(image, 3), image.shape, 3)
    np.testing.assert_array_equal(np.isnan(back), np.isnan(image))


def test_patches_are_a_copy_and_the_image_stays():
    image = picture(6, 7)
    image.flags.writeable = False
    before = image.copy()
    rows = extract_patches(image[::-1, ::-1], 3)
    rows[:] = 0.0
    np.testing.assert_array_equal(image, before)


def test_sums_of_float32_are_taken_in_float64():
    """Of 64 numbers in float32, added one by one, the last digits would be lost."""
    image = (1000 + np.random.default_rng(0).random((40, 40))).astype(np.float32)
    np.testing.assert_array_equal(assemble(extract_patches(image, 8), image.shape, 8), image)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: extract_patches(np.zeros((4, 4)), 5), "Patches of 5 x 5 pixels do not fit into an image of 4 x 4"),
        (lambda: extract_patches(np.zeros((4, 4)), 0), "size must be an integer of at least 1"),
        (lambda: extract_patches(np.zeros((4, 4)), 2, stride=0), "stride must be an integer of at least 1"),
        (lambda: extract_patches(np.zeros((4, 4)), 2.5), "size must be an integer"),
        (lambda: extract_patches(np.zeros(4), 2), r"\(height, width\) or \(height, width, channels\).*got \(4,\)"),
        (lambda: extract_patches(np.zeros((0, 4)), 2), "none of them 0"),
        (lambda: assemble(np.zeros((3, 4)), (4, 4), 2, stride=2), r"has patches of shape \(4, 4\).*got \(3, 4\)"),
        (lambda: assemble(np.zeros((4, 4)), (8, 8), 2, stride=3), "Pixels between patches"),
    ],
)
def test_what_cannot_be_cut_or_put_together(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("values", [np.full((4, 4), "a"), np.zeros((4, 4), complex)])
def test_only_real_numbers_are_pixels(values):
    with pytest.raises(TypeError, match="image must hold real numbers"):
        extract_patches(values, 2)


# Block by block


@pytest.mark.parametrize("path", ["photo.jpg", Path("photo.jpg")], ids=repr)
@pytest.mark.parametrize("function", [partial(extract_patches, size=8), denoise, inpaint, estimate_noise])
def test_a_path_is_no_image_but_a_file_to_be_read_first(function, path):
    with pytest.raises(TypeError, match=r"got the path .*photo\.jpg.*: read the file first, with numpy\.asarray"):
        function(path)


@pytest.mark.parametrize("channels", [(), (1,), (2,), (3,)])
@pytest.mark.parametrize(("size", "stride"), [(1, 1), ((4, 3), 1), (4, (3, 5)), (11, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_rows_of_patches_are_patches(channels, size, stride, dtype):
    image = np.abs(picture(11, 17, *channels)).astype(np.uint8).astype(dtype)
    rows, patches = patch_rows(image, size, stride=stride), extract_patches(image, size, stride=stride)
    assert rows.shape == patches.shape
    assert rows.dtype == patches.dtype
    rows.offsets = np.unique([0, 1, 7, len(patches) // 2, len(patches)].copy())
    rows.offsets = rows.offsets[rows.offsets <= len(patches)]
    blocks = [rows.block(i) for i in range(len(rows.offsets) - 1)]
    np.testing.assert_array_equal(np.vstack(blocks), patches)


def test_what_is_learned_of_rows_of_patches_is_what_is_learned_of_patches():
    image = picture(60, 70)
    image += np.roll(image, 1, axis=0) + np.roll(image, 1, axis=1)
    rows, patches = patch_rows(image, 6), extract_patches(image, 6)
    rows.offsets = np.append(np.arange(0, rows.shape[0], 500), rows.shape[0])
    found, expected = (PCA(5).fit(data) for data in (rows, patches))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-10)
    np.testing.assert_allclose(found.transform(rows), expected.transform(patches), atol=1e-8)
    how = {"n_components": 12, "nonzeros": 3, "method": "ksvd", "max_iter": 5, "random_state": 0}
    found, expected = (DictionaryLearning(**how).fit(data) for data in (rows, patches))
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)


def test_patches_of_an_image_are_never_all_there():
    """700 MB of them, of an image of 6 MB."""
    image = np.random.default_rng(0).normal(size=(1200, 1300)).astype(np.float32)
    PCA(2, solver="eigh").fit(patch_rows(image[:20, :20], 11))  # imports are not the subject
    with Allocated() as memory:
        rows = patch_rows(image, 11)
        pca = PCA(2, solver="eigh").fit(rows)
    assert pca.certificate_.holds
    assert rows.shape[0] * rows.shape[1] * 4 > 7e8
    assert memory.peak < 2e8


@pytest.mark.parametrize(("shape", "layout"), [((9, 9), (4, 5)), ((9, 9, 1), (4, 5)), ((9, 9, 3), (4, 5, 3))])
def test_columns_of_patches_are_pixels(shape, layout):
    assert patch_rows(np.zeros(shape), (4, 5)).layout.shape == layout
    assert patch_rows(np.zeros((9, 9, 2)), 4).layout is None


def test_patches_that_do_not_fit_are_no_rows():
    with pytest.raises(ValueError, match="do not fit into an image of 3 x 4"):
        patch_rows(np.zeros((3, 4)), 5)
