"""`inpaint`: pixels that are missing, from those that are there. Venkatakrishnan, Bouman and Wohlberg, GlobalSIP 2013.

Missing pixels are filled, the image is denoised as if the fillings had noise of level s, missing pixels are filled with
what comes out, and so on, s falling:

    x <- y where it is observed, else denoised(x, s)_,     s from `LARGEST` e to `SMALLEST` e.

With patches of few atoms a step is one of those that lower the error of masked coding, sum over observed pixels of
|y - a D|^2, by turns: fill in what the codes say, learn and code anew. With groups of similar patches it is local PCA
with missing cells. The first fillings are biharmonic (Damelin and Hoang, SIAM J. Imaging Sciences 11, 2018), and e is
their error, measured on observed pixels that are held out. On these, too, it is seen how many steps help: where none
does, as in fine texture, the biharmonic image is the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.estimators.checks import check_choice, check_count
from princomp.images.denoising import denoise
from princomp.images.local_pca import one_pass
from princomp.images.patches import checked_image, largest
from princomp.images.priors import restoration
from princomp.progress import share_line

# Tried on starfish and cameraman with half of the pixels missing.
LARGEST, SMALLEST, STEPS = 1.2, 0.15, 6
HELD_OUT, MOST = 0.1, 2_000  # of the observed pixels, and in all: enough to tell, and groups about each take time
FEWEST = 20  # held out: with fewer nothing is compared
SMALL = 5  # a side, in pixels
Step = Callable[[Array, float, Array], Array]  # of an image, the level of its noise, and the pixels that are asked for
METHODS = ("local-pca", "ksvd", "online", "dct", "haar", "pca")


def inpaint(
    image: Any, mask: Any = None, method: str = "local-pca", *, random_state: int = 0, verbose: int = 0
) -> Array:
    """Return an image with its missing pixels filled in.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array-like
        Grey or colour, of any range. What missing pixels hold does not matter; it may be NaN.
    mask : (height, width) array-like of bool, optional
        True where a pixel is missing. By default where it is NaN, in any channel.
    method : {"local-pca", "ksvd", "online", "dct", "haar", "pca"}, default "local-pca"
        Of what patches are made: components of groups of similar ones; few atoms that are learned from the image, or
        cosines or wavelets; components of all of them. See `denoise`.
    random_state : int, default 0
        Which observed pixels are held out, to see whether the method is better than biharmonic inpainting, which is
        the answer if not; and which patches "ksvd" and "online" learn from.
    verbose : int, default 0
        1 shows on a terminal how much is done.

    Returns
    -------
    array of the same shape
        Observed pixels as they are; float32 if the image is, else float64. Nothing is rounded or cut off.

    See Also
    --------
    denoise : Noise in all pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images import inpaint
    >>> clean = 50.0 * np.sin(np.add.outer(np.arange(40), 2 * np.arange(40)) / 5)
    >>> mask = np.random.default_rng(0).random(clean.shape) < 0.5
    >>> found = inpaint(np.where(mask, np.nan, clean), mask)
    >>> bool(np.sqrt(np.mean((found - clean) ** 2)) < 1)  # of values from -50 to 50
    True
    """
    pixels = checked_image(image)
    check_choice("method", method, METHODS)
    check_count("random_state", random_state, least=0)
    missing = _checked_mask(mask, pixels)
    found = np.where(missing[..., None], 0, pixels)
    if missing.any():
        step = one_pass if method == "local-pca" else partial(_whole, method, random_state)
        observed = found[~missing].astype(np.float64)
        largest(observed)
        middle = observed.mean(axis=0)
        scale = float(np.abs(observed - middle).max()) or 1.0
        with share_line(f"inpaint, {method}", verbose) as tell:
            filled = _filled((found - middle) / scale, missing, step, random_state, tell)
        found = np.where(missing[..., None], filled * scale + middle, found).astype(pixels.dtype)
    return found.reshape(np.shape(image))


def _whole(method: str, seed: int, x: Array, sigma: float, where: Array) -> Array:
    return denoise(x, sigma, method, random_state=seed)


def _filled(y: Array, missing: Array, step: Step, seed: int, tell: Callable[[int, int], None]) -> Array:
    """Return y (height, width, channels) with what is missing filled in: as many steps as help held-out pixels."""
    here = np.flatnonzero(~missing)
    held = np.random.default_rng(seed).permutation(here)[: min(int(HELD_OUT * len(here)), MOST)]
    if len(held) < FEWEST:
        return biharmonic(y, missing)
    fewer = missing.copy()
    fewer.flat[held] = True
    rows = np.unravel_index(held, missing.shape)

    def error(x: Array) -> float:
        return float(np.sqrt(np.mean(np.square(x[rows] - y[rows]))))

    first = biharmonic(y, fewer)
    level = error(first)
    if level == 0:
        return biharmonic(y, missing)
    errors = [level]
    for done, x in enumerate(_steps(first, y, fewer, step, level), 1):
        errors.append(error(x))
        tell(done, 2 * STEPS)
    x, best = biharmonic(y, missing), int(np.argmin(errors))
    for done, x in zip(range(1, best + 1), _steps(x, y, missing, step, level)):  # noqa: B007, B020
        tell(STEPS + done, STEPS + best)
    return x


def _steps(x: Array, y: Array, missing: Array, step: Step, level: float) -> Iterator[Array]:
    for share in np.geomspace(LARGEST, SMALLEST, STEPS):
        x = np.where(missing[..., None], step(x, float(share * level), missing), y)
        yield x


def biharmonic(y: Array, missing: Array) -> Array:
    """Return y with what is missing filled in such that it bends least; of images too small for it, with means."""
    if min(missing.shape) < SMALL:
        return np.where(missing[..., None], y[~missing].mean(axis=0), y)
    return np.asarray(restoration().inpaint_biharmonic(y, missing, channel_axis=2))


def _checked_mask(mask: Any, pixels: Array) -> Array:
    """Return which pixels (height, width) are missing; complain if the others are not numbers."""
    missing = np.isnan(pixels).any(axis=2) if mask is None else np.asarray(mask)
    if missing.dtype != bool:
        raise TypeError(f"mask must be of booleans, True where a pixel is missing, got {missing.dtype}: compare first.")
    if missing.shape != pixels.shape[:2]:
        raise ValueError(f"mask must have the image's height and width, {pixels.shape[:2]}, got {missing.shape}.")
    if missing.all():
        raise ValueError("Every pixel is missing: there is nothing to fill them from.")
    if not np.isfinite(pixels[~missing]).all():
        raise ValueError("Pixels that are not missing are NaN or infinite: set mask to True there.")
    return missing
