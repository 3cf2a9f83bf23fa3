"""Which of v and -v to take: the one rule for all components."""

import numpy as np

from princomp._typing import Array

TIE = 32 * np.finfo(np.float64).eps  # entries this close may change places by rounding


def signs(V: Array) -> Array:
    """Return +-1 for each column such that its entry of largest magnitude becomes positive.

    Of entries that tie up to rounding the first decides, so that noise does not.
    """
    size = np.abs(V)
    first = np.argmax(size >= (1 - TIE) * size.max(axis=0), axis=0)
    return np.where(V[first, np.arange(V.shape[1])] < 0, -1.0, 1.0)
