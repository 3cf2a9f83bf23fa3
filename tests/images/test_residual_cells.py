"""Cells as shades: what is white, what is put together, what is told of a block."""

import numpy as np

from princomp.images.residual_cells import FULL, LIMIT, residual_cells


def test_every_cell_alone():
    residuals = np.array([[0.0, 2.5, -2.5, 5.0], [-5.0, np.nan, 50.0, -0.1]])
    found = residual_cells(residuals)
    half = np.sqrt(5.0 / FULL)
    np.testing.assert_allclose(found.shades, [[0, 0, 0, half], [-half, 0, 1, 0]])
    np.testing.assert_array_equal(found.missing, [[0, 0, 0, 0], [0, 1, 0, 0]])
    np.testing.assert_array_equal(found.worst, residuals)
    np.testing.assert_array_equal(found.row, [[0] * 4, [1] * 4])
    np.testing.assert_array_equal(found.column, [[0, 1, 2, 3]] * 2)
    np.testing.assert_array_equal(found.bad_rows, [0, 1])  # two of three cells that are there


def test_neighbours_together():
    rng = np.random.default_rng(0)
    residuals = rng.uniform(-2, 2, (50, 33))
    residuals[12, 7], residuals[13, 8], residuals[40:, 30:] = 20.0, -30.0, np.nan
    found = residual_cells(residuals, (10, 11))
    assert found.shades.shape == (10, 11)
    np.testing.assert_array_equal(found.row_edges, np.arange(0, 51, 5))
    np.testing.assert_array_equal(found.column_edges, np.arange(0, 34, 3))
    assert found.shades[2, 2] == np.sqrt(1 / 15)  # of the side that weighs more, or of the high one
    assert (found.row[2, 2], found.column[2, 2], found.worst[2, 2]) == (13, 8, -30.0)
    assert np.count_nonzero(found.shades) == 1
    np.testing.assert_array_equal(found.missing[8:, 10], 1.0)
    assert np.isnan(found.worst[9, 10])
    assert found.missing.sum() == 2


def test_uneven_blocks_cover_all_cells():
    residuals = np.zeros((7, 5))
    residuals[6, 4] = 2 * LIMIT
    found = residual_cells(residuals, (3, 2))
    assert found.row_edges[[0, -1]].tolist() == [0, 7]
    assert np.diff(found.row_edges).sum() == 7
    assert found.worst[2, 1] == 2 * LIMIT
    assert np.count_nonzero(found.shades) == 1
