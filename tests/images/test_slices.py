"""Slices of volumes: which ones are shown, the right way up, in which colours."""

import numpy as np
import pytest

from princomp.data.layout import VoxelLayout
from princomp.images.slices import DARK, LIGHT, painted, slices

SHAPE = (7, 9, 30)


def layout(affine=None, mask=None):
    return VoxelLayout(np.ones(SHAPE, bool) if mask is None else mask, np.eye(4) if affine is None else affine)


def spots(*places):
    volume = np.zeros(SHAPE)
    for x, y, z, value in places:
        volume[x, y, z] = value
    return volume.ravel()


def test_slices_hold_the_largest_values_of_either_sign():
    found = slices(layout(), spots((1, 1, 4, 5.0), (1, 1, 5, 4.0), (2, 2, 20, -3.0), (3, 3, 27, 1.0)), count=3)
    assert found.numbers == (4, 5, 20)
    assert slices(layout(), spots((1, 1, 4, 5.0), (1, 1, 5, 4.0)), count=30).numbers == tuple(range(30))
    assert slices(layout(), spots((1, 1, 4, 5.0)), count=99).colours.shape == (30, 9, 7, 3)


def test_no_slice_is_empty_while_one_that_holds_something_is_left_out():
    held = [9, 10, 11, 12, 13, 14]
    for size in (1.0, 1e-200):
        values = spots(*((1, 1, z, size * value) for z, value in zip(held, (1, 0.5, 2, 3, 0.1, 1e-3), strict=True)))
        assert slices(layout(), values, count=6).numbers == tuple(held)
    found = slices(layout(), spots((1, 1, 12, 1.0), (1, 1, 29, 1e-9)), count=3).numbers
    assert {12, 29} < set(found)


def test_slices_with_little_are_left_out_for_neighbours_that_hold_much():
    values = np.full(SHAPE, 1e-3)
    values[..., 10:16] = 1.0
    assert slices(layout(), values.ravel(), count=6).numbers == tuple(range(10, 16))


def test_of_many_slices_that_hold_much_some_apart_are_shown():
    values = np.ones(SHAPE) * np.cos(np.linspace(-1, 1, SHAPE[2]))
    found = slices(layout(), values.ravel(), count=6).numbers
    assert np.diff(found).min() > 1
    assert found[-1] - found[0] > 12


def test_slices_are_within_the_mask_and_white_outside():
    mask = np.zeros(SHAPE, bool)
    mask[1:4, 2:6, 10:13] = True
    mask[1, 2, :] = True
    mask[1, 2, 12] = False
    inside = layout(mask=mask)
    found = slices(inside, np.zeros(inside.size), count=2)
    assert found.colours.shape == (2, 4, 3, 3)  # cut to the mask
    assert found.limit == 1.0
    found = slices(inside, np.ones(inside.size), count=30)
    corner = found.colours[found.numbers.index(12)][-1, 0]
    assert corner.tolist() == [1, 1, 1]


@pytest.mark.parametrize("flips", [(1, 1, 1), (-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1)])
def test_left_is_left_and_the_front_is_up_however_the_volume_is_stored(flips):
    affine = np.diag([*flips, 1.0])
    places = [0 if sign > 0 else side - 1 for side, sign in zip(SHAPE, flips, strict=True)]
    left_back_low = spots((*places, 1.0))
    found = slices(layout(affine), left_back_low, count=1)
    assert found.numbers == (0,)
    hot = np.argwhere(found.colours[0][..., 0] > found.colours[0][..., 2] + 0.1)
    assert hot.tolist() == [[SHAPE[1] - 1, 0]]  # the last row, the first column


def test_colours_are_warm_above_0_cold_below_and_grey_at_0():
    colours = painted(np.array([-1.0, -0.5, 0.0, 0.02, 0.5, 1.0]), np.full(6, 0.4))
    assert np.allclose(colours[2:4], 0.4)
    assert (colours[:2, 2] > colours[:2, 0]).all()
    assert (colours[4:, 0] > colours[4:, 2]).all()


def test_one_wild_voxel_does_not_fade_the_others():
    values = np.ones(layout().size)
    values[5] = 1e6
    assert slices(layout(), values, count=1).limit < 2


def test_greys_go_from_the_least_to_the_largest_but_for_a_few():
    image = np.arange(layout().size, dtype=float)
    image[0] = np.nan
    found = slices(layout(), np.zeros(layout().size), background=image, count=30)
    assert found.colours.min() == pytest.approx(DARK)
    assert found.colours.max() == pytest.approx(LIGHT)
