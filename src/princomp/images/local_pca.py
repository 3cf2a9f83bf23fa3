"""Denoising by PCA of groups of similar patches, twice. Zhang, Dong, Zhang and Shi, Pattern Recognition 43, 2010.

A patch of the image and those around it that are most like it are the rows of a matrix Y (m, d), X the same without
noise, with mean x and covariance C. Of linear estimates of X the best is

    X = x + (Y - x) C (C + sigma^2 I)^-1,

Wiener's. First, C is that of Y: components whose variance noise alone could have are left out, others kept,

    X = y + (Y - y) V_K V_K',    K = {i: l_i > `ABOVE` sigma^2 (1 + sqrt(d / m))^2},

l the eigenvalues, the bound the largest that noise has (Marchenko and Pastur 1967). Then all is done again, but groups
are found in the first result, and C and x are taken from there (as Lebrun, Buades and Morel do, SIAM J. Imaging
Sciences 6, 2013). The mean y of Y, whose noise is that of m patches, tells what x has lost:

    X = x + (Y - y) C (C + sigma^2 I)^-1 + (y - x) C (C + sigma^2 / m I)^-1.

Each pixel is the average over the patches it is in, of all groups, with weights 1 / (1 + the degrees of freedom
that the group's estimate has). Colours are first turned into uncorrelated ones, and groups are found in their mean.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from princomp._threads import ordered_map, single_blas_thread
from princomp._typing import Array
from princomp.images.groups import Pair, gather, nearest, scatter
from princomp.images.patches import patch_positions

# Tried on starfish, cameraman, ascent and coins at noise of 15, 25 and 50 on a scale of 255.
SIDE = 8  # of a patch
STEP = 4  # from group to group
REACH = 18  # pixels to either side in which patches are looked for
FIRST, SECOND = 90, 60  # patches of a group
ABOVE = 0.9
TOGETHER = 128  # groups at a time
EXACT = 2.0**13  # deviations from the mean in units of sigma, above which single precision would be too coarse


def local_pca(image: Array, sigma: float, tell: Callable[[int, int], None] = lambda done, of: None) -> Array:
    """Return an image (height, width, channels) without its noise; ``tell`` hears how many groups of all are done.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.local_pca import local_pca
    >>> rng = np.random.default_rng(0)
    >>> clean = np.kron(rng.integers(0, 2, (8, 8)), np.ones((8, 8)))[..., None]
    >>> noisy = clean + 0.2 * rng.normal(size=clean.shape)
    >>> bool(np.std(local_pca(noisy, 0.2) - clean) < 0.05)
    True
    """
    y, back = _turned_units(image, sigma)
    guide = None
    for done in range(2):
        guide = _pass(y, guide, partial(_told, tell, done))
    return back(guide)


def one_pass(image: Array, sigma: float, where: Array | None = None) -> Array:
    """Return an image (height, width, channels) after the first pass alone.

    With ``where`` (height, width), groups are those of patches that hold such a pixel; what no group holds stays.
    """
    y, back = _turned_units(image, sigma)
    return back(_pass(y, None, lambda done, of: None, where))


def _turned_units(image: Array, sigma: float) -> tuple[Array, Callable[[Any], Array]]:
    """Return (channels, height, width), colours turned, about their means, in units of sigma; and the way back."""
    middle = image.mean(axis=(0, 1), dtype=np.float64)
    turn = turned(image.shape[2])
    y = np.moveaxis((image - middle) @ turn.T / sigma, 2, 0)
    y = np.ascontiguousarray(y, np.float32 if np.abs(y).max() < EXACT else np.float64)
    return y, lambda x: np.moveaxis(x, 0, 2).astype(np.float64) @ turn * sigma + middle


def turned(channels: int) -> Array:
    """Return an orthogonal matrix whose first row is constant: of three colours, the others take differences."""
    from scipy.fft import dct

    return np.asarray(dct(np.eye(channels), axis=0, norm="ortho"))


def _told(tell: Callable[[int, int], None], passed: int, done: int, of: int) -> None:
    tell(passed * of + done, 2 * of)


def _pass(y: Array, guide: Array | None, tell: Callable[[int, int], None], where: Array | None = None) -> Array:
    """Return an estimate of y (channels, height, width), whose noise has variance 1; the second one has a guide."""
    size = (min(SIDE, y.shape[1]), min(SIDE, y.shape[2]))
    positions = patch_positions(y.shape[1:], size, stride=(min(STEP, size[0]), min(STEP, size[1])))
    if where is not None:
        asked = sliding_window_view(where, size)[positions[:, 0], positions[:, 1]]
        positions = positions[asked.any(axis=(1, 2))]
    sums, totals = np.zeros_like(y), np.zeros_like(y)
    batches = [positions[begin : begin + TOGETHER] for begin in range(0, len(positions), TOGETHER)]
    for done, (places, found) in enumerate(ordered_map(partial(_batch, y, guide, size), batches), 1):
        for channel, (patches, weights) in enumerate(found):
            scatter(patches, places, size, weights, sums[channel], totals[channel])
        tell(min(done * TOGETHER, len(positions)), len(positions))
    np.divide(sums, totals, out=sums, where=totals > 0)
    np.copyto(sums, y, where=totals == 0)
    return sums


def _batch(y: Array, guide: Array | None, size: Pair, positions: Array) -> tuple[Array, list[tuple[Array, Array]]]:
    """Return the places of some groups and, of each channel, their patches and weights."""
    tops, lefts = positions.T
    seen, count = (y, FIRST) if guide is None else (guide, SECOND)
    places = nearest(seen[0], np.ascontiguousarray(tops), np.ascontiguousarray(lefts), size, REACH, count)
    with single_blas_thread():  # matrices are small: threads of BLAS would wait for each other
        return places, list(_estimates(y, guide, places, size))


def _estimates(y: Array, guide: Array | None, places: Array, size: Pair) -> Iterator[tuple[Array, Array]]:
    for channel in range(len(y)):
        Y = gather(y[channel], places, size)
        yield first_estimate(Y) if guide is None else second_estimate(Y, gather(guide[channel], places, size))


def first_estimate(Y: Array) -> tuple[Array, Array]:
    """Return groups (groups, m, d) with the components that stand out of noise of variance 1, and weights (groups,)."""
    m, d = Y.shape[1:]
    mean = Y.mean(axis=1, keepdims=True)
    Z = Y - mean
    values, V = np.linalg.eigh(_covariance(Z))
    kept = (values > ABOVE * (1 + np.sqrt(d / m)) ** 2).astype(Y.dtype)
    X = np.matmul(Z, np.matmul(V * kept[:, None], V.mT)) + mean
    return X, (1 / (1 + kept.sum(axis=1))).astype(Y.dtype)


def second_estimate(Y: Array, guide: Array) -> tuple[Array, Array]:
    """Return Wiener's estimate of groups (groups, m, d) with the covariances of others, and weights (groups,)."""
    mean, first = Y.mean(axis=1, keepdims=True), guide.mean(axis=1, keepdims=True)
    C, one = _covariance(guide - first), np.eye(Y.shape[2], dtype=Y.dtype)
    shrink, of_mean = np.linalg.solve(C + one, C), np.linalg.solve(C + one / np.asarray(Y.shape[1], Y.dtype), C)
    X = np.matmul(Y - mean, shrink) + first + np.matmul(mean - first, of_mean)
    return X, (1 / (1 + np.trace(shrink, axis1=1, axis2=2))).astype(Y.dtype)


def _covariance(Z: Array) -> Array:
    return np.matmul(Z.mT, Z) / np.asarray(Z.shape[1], Z.dtype)
