"""`denoise`: an image without its noise, by the method of one's choice."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.estimators.checks import check_choice, check_count
from princomp.images.few_atoms import few_atoms
from princomp.images.global_pca import global_pca
from princomp.images.local_pca import local_pca, turned
from princomp.images.noise import estimate_noise
from princomp.images.patches import finite_image, largest
from princomp.images.priors import pixel_lasso, smoothness, total_variation, wavelet
from princomp.progress import share_line


def denoise(
    image: Any,
    sigma: float | None = None,
    method: str = "local-pca",
    *,
    recipe: str = "quick",
    random_state: int = 0,
    verbose: int = 0,
) -> Array:
    """Return an image without its noise.

    What is taken away is white Gaussian noise: the same in all pixels, and independent from one to the next.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array-like
        Grey or colour; integers, booleans or floats of any range.
    sigma : float, optional
        Standard deviation of the noise, in the units of the image. By default `estimate_noise` of it.
    method : str, default "local-pca"
        "local-pca": components of groups of similar patches, twice; the best of these. Patches of few atoms: "ksvd" and
        "online" learn them from the image, "dct" has overcomplete cosines, "haar" wavelets. "pca": components of all
        patches. Priors: "smoothness" (squared differences), "pixel-lasso" (an image that is 0 nearly everywhere),
        "total-variation" and "wavelet", for which scikit-image is needed (``pip install "princomp[images]"``).
    recipe : {"quick", "full"}, default "quick"
        How long "ksvd" and "online" learn. "full" is Elad and Aharon's: ten rounds over 65 000 patches.
    random_state : int, default 0
        Which patches "ksvd" and "online" learn from.
    verbose : int, default 0
        1 shows on a terminal how much is done.

    Returns
    -------
    array of the same shape
        In the units of the image, float32 if it is, else float64: neither rounded nor cut off, so that it may go a
        little beyond the range of what is stored as integers. Where ``sigma`` is 0, or so small that it is lost in the
        rounding of the pixels, the image itself.

    See Also
    --------
    estimate_noise : The level of the noise.
    inpaint : Pixels that are missing.

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
    check_choice("recipe", recipe, ("quick", "full"))
    check_count("random_state", random_state, least=0)
    level = _checked_level(sigma, pixels)
    if level <= np.finfo(np.float64).eps * largest(pixels):  # in such units pixels would overflow in the end
        return pixels.reshape(np.shape(image)).copy()
    with share_line(f"denoise, {method}", verbose) as tell:
        found = METHODS[method](Task(pixels, level, recipe, random_state, tell))
    return found.reshape(np.shape(image)).astype(pixels.dtype, copy=False)


@dataclass(frozen=True)
class Task:
    """What is to be done."""

    pixels: Array  # (height, width, channels)
    sigma: float
    recipe: str
    seed: int
    tell: Callable[[int, int], None]

    def alone(
        self,
        estimate: Callable[..., Array],
        centred: bool = True,
        turn: bool = True,
        tells: bool = False,
        **options: Any,
    ) -> Array:
        """Return what an estimate makes of each channel (height, width), in units of sigma.

        Channels are turned into uncorrelated ones, and ``centred`` about their means, unless told otherwise. An
        estimate that ``tells`` how much is done does so of all channels.
        """
        channels = self.pixels.shape[2]
        turning = turned(channels) if turn else np.eye(channels)
        middle = self.pixels.mean(axis=(0, 1), dtype=np.float64) if centred else np.zeros(channels)
        y = (self.pixels - middle) @ turning.T / self.sigma
        found = []
        for channel in range(channels):
            if tells:
                options["tell"] = partial(self._told, channel)
            found.append(estimate(np.ascontiguousarray(y[..., channel]), **options))
        return np.stack(found, axis=2) @ turning * self.sigma + middle

    def coded(self, method: str) -> Array:
        """Return the image made of few atoms."""
        return self.alone(few_atoms, tells=True, method=method, recipe=self.recipe, seed=self.seed)

    def _told(self, channel: int, done: int, of: int) -> None:
        self.tell(channel * of + done, self.pixels.shape[2] * of)


METHODS: dict[str, Callable[[Task], Array]] = {
    "local-pca": lambda task: local_pca(task.pixels, task.sigma, task.tell),
    "ksvd": lambda task: task.coded("ksvd"),
    "online": lambda task: task.coded("online"),
    "dct": lambda task: task.coded("dct"),
    "haar": lambda task: task.coded("haar"),
    "pca": lambda task: task.alone(global_pca, tells=True),
    "smoothness": lambda task: task.alone(smoothness),
    "pixel-lasso": lambda task: task.alone(pixel_lasso, centred=False, turn=False),
    "total-variation": lambda task: task.alone(total_variation),
    "wavelet": lambda task: task.alone(wavelet),
}


def _checked_level(sigma: Any, pixels: Array) -> float:
    if sigma is None:
        return estimate_noise(pixels)
    if isinstance(sigma, bool) or not isinstance(sigma, Real) or not (isfinite(float(sigma)) and float(sigma) >= 0):
        raise ValueError(f"sigma must be a number of at least 0, in the units of the image, or None; got {sigma!r}.")
    return float(sigma)
