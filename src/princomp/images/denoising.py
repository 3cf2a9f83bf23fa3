"""`denoise`: an image without its noise, by the method of one's choice."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.estimators.checks import check_choice
from princomp.images.local_pca import local_pca
from princomp.images.noise import estimate_noise
from princomp.images.patches import finite_image
from princomp.progress import share_line


def denoise(image: Any, sigma: float | None = None, method: str = "local-pca", *, verbose: int = 0) -> Array:
    """Return an image without its noise.

    What is taken away is white Gaussian noise: the same in all pixels, and independent from one to the next.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array-like
        Grey or colour; integers, booleans or floats of any range.
    sigma : float, optional
        Standard deviation of the noise, in the units of the image. By default `estimate_noise` of it.
    method : str, default "local-pca"
        "local-pca": components of groups of similar patches, twice.
    verbose : int, default 0
        1 shows on a terminal how much is done.

    Returns
    -------
    array of the same shape
        In the units of the image, float32 if it is, else float64: neither rounded nor cut off, so that it may go a
        little beyond the range of what is stored as integers. Where ``sigma`` is 0, the image itself.

    See Also
    --------
    estimate_noise : The level of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images import denoise
    >>> rng = np.random.default_rng(0)
    >>> clean = 100 * np.kron(rng.integers(0, 2, (8, 8)), np.ones((8, 8)))
    >>> noisy = clean + 20 * rng.normal(size=clean.shape)
    >>> bool(np.std(denoise(noisy, 20) - clean) < 8)
    True
    """
    pixels = finite_image(image)
    check_choice("method", method, list(METHODS))
    level = _checked_level(sigma, pixels)
    if level == 0:
        return pixels.reshape(np.shape(image)).copy()
    with share_line(f"denoise, {method}", verbose) as tell:
        found = METHODS[method](Task(pixels, level, tell))
    return found.reshape(np.shape(image)).astype(pixels.dtype, copy=False)


@dataclass(frozen=True)
class Task:
    """What is to be done."""

    pixels: Array  # (height, width, channels)
    sigma: float
    tell: Callable[[int, int], None]


METHODS: dict[str, Callable[[Task], Array]] = {"local-pca": lambda task: local_pca(task.pixels, task.sigma, task.tell)}


def _checked_level(sigma: Any, pixels: Array) -> float:
    if sigma is None:
        return estimate_noise(pixels)
    if isinstance(sigma, bool) or not isinstance(sigma, Real) or not (isfinite(float(sigma)) and float(sigma) >= 0):
        raise ValueError(f"sigma must be a number of at least 0, in the units of the image, or None; got {sigma!r}.")
    return float(sigma)
