"""Dictionaries by formulae: each atom against its formula, and what they are as a whole."""

import itertools

import numpy as np
import pytest

from princomp.images import dct_dictionary, haar_dictionary


@pytest.mark.parametrize(("size", "atoms"), [(8, 256), (8, 64), (4, 9), (5, 121)])
def test_cosines_are_those_of_the_formula(size, atoms):
    dictionary = dct_dictionary(size, atoms)
    assert dictionary.shape == (atoms, size * size)
    side = round(atoms**0.5)
    for i, j in itertools.product(range(side), repeat=2):
        signals = []
        for k in (i, j):
            signal = np.array([np.cos(t * k * np.pi / side) for t in range(size)])
            signal -= signal.mean() if k > 0 else 0.0
            signals.append(signal / np.sqrt(np.sum(signal**2)))
        np.testing.assert_allclose(dictionary[i * side + j].reshape(size, size), np.outer(*signals), atol=1e-14)


@pytest.mark.parametrize("size", [2, 7, 8])
def test_overcomplete_cosines(size):
    dictionary = dct_dictionary(size)
    assert dictionary.shape == (4 * size**2, size**2)
    np.testing.assert_allclose(np.linalg.norm(dictionary, axis=1), 1.0)
    np.testing.assert_allclose(dictionary[0], 1 / size)
    np.testing.assert_allclose(dictionary[1:].sum(axis=1), 0.0, atol=1e-13)  # all but the first ignore the mean
    assert np.linalg.matrix_rank(dictionary) == size**2
    twins = np.abs(dictionary @ dictionary.T) - np.eye(len(dictionary))
    assert size == 2 or twins.max() < 0.999


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_haar_wavelets_are_an_orthonormal_basis(size):
    basis = haar_dictionary(size)
    assert basis.shape == (size**2, size**2)
    np.testing.assert_allclose(basis @ basis.T, np.eye(size**2), atol=1e-14)


def test_haar_wavelets_of_four_pixels():
    expected = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    np.testing.assert_allclose(haar_dictionary(2), expected)


def test_an_edge_at_a_boundary_of_squares_needs_two_haar_wavelets():
    patch = np.zeros((8, 8))
    patch[:, 4:] = 1.0
    codes = haar_dictionary(8) @ patch.ravel()
    assert np.count_nonzero(np.abs(codes) > 1e-12) == 2  # the mean, and left against right


def test_shifts_are_the_wavelets_at_every_place():
    size = 8
    dictionary = haar_dictionary(size, shifts=True)
    assert len(dictionary) == 1 + 3 * (1**2 + 5**2 + 7**2)
    np.testing.assert_allclose(np.linalg.norm(dictionary, axis=1), 1.0)
    found = {tuple(np.round(atom, 12)) for atom in dictionary}
    assert len(found) == len(dictionary)
    assert found >= {tuple(np.round(atom, 12)) for atom in haar_dictionary(size)}
    for atom in haar_dictionary(size)[-3 * 16 :: 16].reshape(3, size, size):  # one fine wavelet of each kind
        for down, across in itertools.product(range(7), repeat=2):
            assert tuple(np.round(np.roll(atom, (down, across), axis=(0, 1)).ravel(), 12)) in found


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dct_dictionary(8, 200), "a perfect square, got 200: the nearest are 196 and 225"),
        (lambda: dct_dictionary(1), "size must be an integer of at least 2"),
        (lambda: dct_dictionary(8, 0), "atoms must be an integer of at least 1"),
        (lambda: haar_dictionary(12), "a power of two, got 12: the nearest are 8 and 16"),
        (lambda: haar_dictionary(0), "size must be an integer of at least 1"),
    ],
)
def test_sizes_that_have_no_dictionary(call, message):
    with pytest.raises(ValueError, match=message):
        call()
