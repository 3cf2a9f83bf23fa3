"""Denoising by patches of few atoms. Elad and Aharon, IEEE Transactions on Image Processing 15(12), 2006.

Each patch, less its mean, is a combination of as few atoms as come within the noise,

    |x - a D| <= `GAIN` sigma sqrt(d),      d pixels,

and the image is the average of these, with its own noisy pixels at a small weight. D is a dictionary of overcomplete
cosines or Haar wavelets, or learned from the noisy patches themselves, where noise averages out: by K-SVD ("ksvd"), or
from mini-batches ("online": Mairal, Bach, Ponce and Sapiro, J. Machine Learning Research 11, 2010).

All is in units of sigma, and colours are turned into uncorrelated ones: see `princomp.images.local_pca`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from princomp._typing import Array
from princomp.images.bands import from_patches, some_patches
from princomp.images.dictionaries import dct_dictionary, haar_dictionary
from princomp.images.patches import Pair

SIDE = 8
ATOMS = 256
MOST = 32  # atoms of a patch
GAIN = 1.15
OWN = 0.5  # weight of the noisy image, times its standard deviation without noise over sigma: 30/sigma where that is 60
MANY = 200_000  # patches that are looked at
FEWEST = 2 * ATOMS  # patches to learn from: of fewer the first atoms are taken


@dataclass(frozen=True)
class Recipe:
    """How much is done to learn the atoms."""

    patches: int
    epochs: int


# The first as in the paper; the others were tried on starfish and cameraman at noise of 15, 25 and 50.
RECIPES = {
    "ksvd": {"full": Recipe(65_000, 10), "quick": Recipe(4_000, 8)},
    "online": {"full": Recipe(65_000, 4), "quick": Recipe(32_000, 2)},
}


def few_atoms(
    y: Array,
    method: str,
    recipe: str = "quick",
    seed: int = 0,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Array:
    """Return y (height, width), whose noise has variance 1, without it.

    ``method`` is "dct", "haar", "ksvd" or "online".

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.few_atoms import few_atoms
    >>> clean = 9.0 * np.add.outer(np.arange(20) > 9, np.arange(30) > 14)
    >>> y = clean + np.random.default_rng(0).normal(size=clean.shape)
    >>> bool(np.std(few_atoms(y, "dct") - clean) < 0.6)
    True
    """
    from princomp import sparse_encode

    size = (min(SIDE, y.shape[0]), min(SIDE, y.shape[1]))
    D = _fitting(haar_dictionary(SIDE, shifts=True) if method == "haar" else dct_dictionary(SIDE, ATOMS), size)
    if not len(D):  # of a single pixel, whose patch is its own mean
        return y
    error = GAIN * float(np.sqrt(size[0] * size[1]))
    if method in RECIPES:
        D = learned(y, D, size, error, method, RECIPES[method][recipe], seed)

    def estimate(patches: Array) -> Array:
        mean = patches.mean(axis=1, keepdims=True)
        codes = sparse_encode(patches - mean, D, error=error, nonzeros=MOST, selection="omp")
        return codes @ D + mean

    own = OWN * float(np.sqrt(max(y.var() - 1.0, 0.0)))
    return from_patches(y, size, estimate, own=own, tell=tell)


def learned(y: Array, D: Array, size: Pair, error: float, method: str, how: Recipe, seed: int) -> Array:
    """Return atoms learned from patches that are more than noise, of these atoms to begin with."""
    from princomp import DictionaryLearning

    rng = np.random.default_rng(seed)
    rows = some_patches(y, size, MANY, rng)
    rows = rows - rows.mean(axis=1, keepdims=True)
    rows = rows[np.linalg.norm(rows, axis=1) > error]  # others have no atoms
    if len(rows) < FEWEST:
        return D
    rows = rows[rng.permutation(len(rows))[: how.patches]]
    model = DictionaryLearning(
        len(D),
        method=method,
        error=error,
        nonzeros=MOST,
        selection="omp",
        dict_init=D,
        max_iter=how.epochs,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a few epochs are not the end, and where there is little to learn little is used
        return np.asarray(model.fit(rows).components_, np.float64)


def _fitting(atoms: Array, size: Pair) -> Array:
    """Return the atoms without a mean that patches of this size have: of smaller ones a corner of each."""
    D = atoms.reshape(-1, SIDE, SIDE)[:, : size[0], : size[1]].reshape(len(atoms), -1)
    D = D - D.mean(axis=1, keepdims=True)
    length = np.linalg.norm(D, axis=1)
    return np.asarray(D[length > 1e-6] / length[length > 1e-6, None])
