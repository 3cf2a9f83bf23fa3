"""Denoising by PCA of all patches of an image. Deledalle, Salmon and Dalalyan, BMVC 2011 (patch-based global PCA).

With V the principal components of all patches, m their mean, a patch y becomes

    m + sum_k h(v_k' (y - m)) v_k,    h(t) = t where |t| > `ABOVE` sigma, else 0,

and a pixel the average over the patches it is in.
"""

from collections.abc import Callable

import numpy as np

from princomp._typing import Array
from princomp.images.bands import from_patches, some_patches

SIDE = 8
ABOVE = 2.75  # the paper's
MANY = 200_000  # patches whose components are taken


def global_pca(y: Array, tell: Callable[[int, int], None] = lambda done, of: None) -> Array:
    """Return y (height, width), whose noise has variance 1, without it.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.global_pca import global_pca
    >>> clean = 9.0 * np.add.outer(np.arange(20) > 9, np.arange(30) > 14)
    >>> y = clean + np.random.default_rng(0).normal(size=clean.shape)
    >>> bool(np.std(global_pca(y) - clean) < 0.5)
    True
    """
    size = (min(SIDE, y.shape[0]), min(SIDE, y.shape[1]))
    rows = some_patches(y, size, MANY, np.random.default_rng(0))
    mean = rows.mean(axis=0)
    rows = rows - mean
    V = np.linalg.eigh(rows.T @ rows)[1]

    def estimate(patches: Array) -> Array:
        scores = (patches - mean) @ V
        return np.asarray((scores * (np.abs(scores) > ABOVE)) @ V.T + mean)

    return from_patches(y, size, estimate, tell=tell)
