"""Denoising by patches of few atoms. Elad and Aharon, IEEE Transactions on Image Processing 15(12), 2006.

Each patch, less its mean, is a combination of as few atoms as come within the noise,

    |x - a D| <= `GAIN` sigma sqrt(d),      d pixels,

and the image is the average of these, with its own noisy pixels at a small weight. D is a dictionary of overcomplete
cosines or Haar wavelets, or learned from the noisy patches themselves, where noise averages out: by K-SVD ("ksvd"), or
from mini-batches ("online": Mairal, Bach, Ponce and Sapiro, J. Machine Learning Research 11, 2010).

All is in units of sigma, and colours are turned into uncorrelated ones: see `princomp.images.local_pca`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from princomp._typing import Array
from princomp.coders.pursuit import Pursuit
from princomp.data import as_rows
from princomp.images.bands import from_patches, patches_at
from princomp.images.dictionaries import dct_dictionary, haar_dictionary
from princomp.images.patches import Pair, patch_positions
from princomp.solvers.learning_atoms import Atoms
from princomp.solvers.learning_coded import Task
from princomp.solvers.learning_ksvd import ksvd
from princomp.solvers.learning_online import online
from princomp.solvers.learning_rows import Batches

SIDE = 8
ATOMS = 256
MOST = 32  # atoms of a patch
GAIN = 1.15
OWN = 0.5  # weight of the noisy image, times its standard deviation without noise over sigma: 30/sigma where that is 60
MANY = 200_000  # patches that are looked at
BATCH = 512  # patches of a step of "online"
FEWEST = 2 * ATOMS  # patches to learn from: of fewer the first atoms are taken


@dataclass(frozen=True)
class Stage:
    """How much is done to learn the atoms, from those of the stage before."""

    patches: int
    epochs: int


# The first as in the paper; the others were tried on starfish and cameraman at noise of 15, 25 and 50, and those of
# "ksvd" on ascent, too. A few patches bring atoms near, as well as many do, for less.
RECIPES: dict[str, dict[str, tuple[Stage, ...]]] = {
    "ksvd": {"full": (Stage(65_000, 10),), "quick": (Stage(1_000, 7), Stage(4_000, 2))},
    "online": {"full": (Stage(65_000, 4),), "quick": (Stage(32_000, 2),)},
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
        rows, mean = centred(patches)
        found, longer = np.repeat(mean, patches.shape[1], axis=1), longer_than(error, rows)
        if len(longer):
            found[longer] += sparse_encode(rows[longer], D, error=error, nonzeros=MOST, selection="omp") @ D
        return found

    own = OWN * float(np.sqrt(max(y.var() - 1.0, 0.0)))
    return from_patches(y, size, estimate, own=own, tell=tell)


def learned(y: Array, D: Array, size: Pair, error: float, method: str, recipe: tuple[Stage, ...], seed: int) -> Array:
    """Return atoms learned from patches that are more than noise, of these atoms to begin with."""
    most = max(stage.patches for stage in recipe)
    rows = patches_to_learn(y, size, error, most, np.random.default_rng(seed))
    if len(rows) < FEWEST:
        return D
    coder, sphere = Pursuit(nonzeros=MOST, error=error, selection="omp"), Atoms("sphere")
    for stage in recipe:
        some = as_rows(rows[: stage.patches])
        if method == "ksvd":
            states = ksvd({"D": D}, some, Task(D, coder), sphere, replace=True)
        else:
            batches = Batches(some, BATCH, seed)
            states = online({"D": D}, batches, Task(D, coder), sphere, forgetting=None, replace=True)
        D = next(state for state in states if state.iteration == stage.epochs).value["D"]
    return D


def patches_to_learn(y: Array, size: Pair, error: float, most: int, rng: np.random.Generator) -> Array:
    """Return up to so many patches, less their means, drawn at random of those that are to have atoms."""
    positions = patch_positions(y.shape, size)
    positions = positions[rng.permutation(len(positions))[:MANY]]
    found = list[Array]()
    for begin in range(0, len(positions), most):
        rows, _ = centred(patches_at(y, size, positions[begin : begin + most]))
        found.append(rows[longer_than(error, rows)])
        if sum(map(len, found)) >= most:  # on photographs of millions of pixels, at once
            break
    return np.concatenate(found)[:most]


def centred(patches: Array) -> tuple[Array, Array]:
    """Return patches less their means, and the means (n, 1)."""
    mean = (patches @ np.full(patches.shape[1], 1 / patches.shape[1]))[:, None]
    return patches - mean, mean


def longer_than(error: float, rows: Array) -> Array:
    """Return which rows are longer than that: of others the mean is all there is, they have no atoms."""
    return np.flatnonzero(np.einsum("ij,ij->i", rows, rows) > error**2)


def _fitting(atoms: Array, size: Pair) -> Array:
    """Return the atoms without a mean that patches of this size have: of smaller ones a corner of each."""
    D = atoms.reshape(-1, SIDE, SIDE)[:, : size[0], : size[1]].reshape(len(atoms), -1)
    D = D - D.mean(axis=1, keepdims=True)
    length = np.linalg.norm(D, axis=1)
    return np.asarray(D[length > 1e-6] / length[length > 1e-6, None])
