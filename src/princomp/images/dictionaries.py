"""Dictionaries of square patches by formulae: overcomplete cosines and Haar wavelets."""

import math

import numpy as np

from princomp._typing import Array
from princomp.estimators.checks import check_count


def dct_dictionary(size: int, atoms: int | None = None) -> Array:
    """Return an overcomplete dictionary of cosines.

    Along a side there are P = sqrt(``atoms``) signals

        c_k(t) = cos(t k pi / P),    t = 0 .. size - 1,    k = 0 .. P - 1,

    each but the first less its mean, of unit norm; atoms are all products of one down and one across. So the first
    atom is constant, and atom i P + j has the i-th signal down and the j-th across.

    Parameters
    ----------
    size : int
        Side of the patches, at least 2.
    atoms : int, optional
        How many: a perfect square. By default (2 ``size``)^2, four times as many as pixels.

    Returns
    -------
    (atoms, size * size) array
        Atoms of unit norm, as rows.

    References
    ----------
    Aharon, M., Elad, M. and Bruckstein, A. (2006). K-SVD: an algorithm for designing overcomplete dictionaries for
    sparse representation. IEEE Transactions on Signal Processing 54(11), 4311-4322.

    Examples
    --------
    >>> from princomp.images import dct_dictionary
    >>> dct_dictionary(8).shape
    (256, 64)
    >>> dct_dictionary(8, 441).shape
    (441, 64)
    """
    check_count("size", size, least=2)
    check_count("atoms", atoms, or_none=True)
    count = 4 * size**2 if atoms is None else int(atoms)
    side = math.isqrt(count)
    if side**2 != count:
        raise ValueError(
            f"atoms must be a perfect square, got {count}: the nearest are {side**2} and {(side + 1) ** 2}."
        )
    signals = np.cos(np.arange(side)[:, None] * np.arange(size) * (np.pi / side))
    signals[1:] -= signals[1:].mean(axis=1, keepdims=True)
    signals /= np.linalg.norm(signals, axis=1, keepdims=True)
    return np.kron(signals, signals)


def haar_dictionary(size: int, *, shifts: bool = False) -> Array:
    """Return the Haar wavelets of square patches: an orthonormal basis, or every shift of each.

    The first atom is constant. Then come, for squares of side ``size``, ``size`` / 2, ..., 2, the wavelets that are
    1 on one half of the square and -1 on the other: left and right, upper and lower, and along the diagonals, each at
    every place of the square; all of unit norm.

    Parameters
    ----------
    size : int
        Side of the patches, a power of two.
    shifts : bool, default False
        False: squares lie side by side, which makes ``size**2`` atoms, an orthonormal basis. True: squares lie
        everywhere inside the patch (nothing wraps around), which makes an overcomplete dictionary that holds the
        basis and does not prefer some places.

    Returns
    -------
    (atoms, size * size) array
        Atoms of unit norm, as rows.

    References
    ----------
    Mallat, S. (2009). A wavelet tour of signal processing, third edition. Academic Press.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images import haar_dictionary
    >>> basis = haar_dictionary(8)
    >>> bool(np.allclose(basis @ basis.T, np.eye(64)))
    True
    >>> haar_dictionary(8, shifts=True).shape
    (226, 64)
    """
    check_count("size", size)
    if size & (size - 1):
        lower = 1 << (int(size).bit_length() - 1)
        raise ValueError(f"size must be a power of two, got {size}: the nearest are {lower} and {2 * lower}.")
    atoms = [np.full((1, size * size), 1.0 / size)]
    side = int(size)
    while side > 1:
        starts = np.arange(0, size - side + 1, 1 if shifts else side)
        flat = _placed(np.full(side, 1.0), starts, size)
        step = _placed(np.repeat([1.0, -1.0], side // 2), starts, size)
        atoms += [np.kron(down, across) / side for down, across in ((flat, step), (step, flat), (step, step))]
        side //= 2
    return np.concatenate(atoms)


def _placed(signal: Array, starts: Array, length: int) -> Array:
    """The signal at each of these places, 0 elsewhere: (starts, length)."""
    rows = np.zeros((len(starts), length))
    rows[np.arange(len(starts))[:, None], starts[:, None] + np.arange(len(signal))] = signal
    return rows
