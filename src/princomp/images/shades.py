"""Atoms as shades: each on a scale of its own, since a code may have any size, and its sign is free."""

import numpy as np

from princomp._typing import Array

SCALES = (
    "An atom with entries of both signs has 0 in the middle grey, darker below and lighter above; one with entries of "
    "one sign goes from its least one, black, to its largest one, white."
)


def shades(atoms: Array) -> Array:
    """Return atoms (K, p) as shades from -1 to 1, each as far as its own entries go: see ``SCALES``.

    On a scale about 0 an atom of one sign that is nearly constant, as those of patches with their mean are, would be
    one shade.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.shades import shades
    >>> shades(np.array([[1.0, -2.0, 0.5, 0.0], [5.0, 4.0, 5.0, 4.5]])).tolist()
    [[0.5, -1.0, 0.25, 0.0], [1.0, -1.0, 1.0, 0.0]]
    """
    low, high = atoms.min(axis=1, keepdims=True), atoms.max(axis=1, keepdims=True)
    signed = (low < 0) & (high > 0)
    middle = np.where(signed, 0.0, (low + high) / 2)
    reach = np.where(signed, np.maximum(-low, high), (high - low) / 2)
    return np.clip((atoms - middle) / np.where(reach > 0, reach, 1.0), -1.0, 1.0)  # rounding might lead beyond
