"""The level of white noise in an image, from what second differences leave of its flattest parts.

    y = x + sigma e,   e ~ N(0, 1),      sigma = median |m * y| / (.6745 |m|)   over pixels where little happens,

m = (1, -2, 1)' (1, -2, 1), which sees nothing of what is linear down or across (Immerkaer, Computer Vision and Image
Understanding 64, 1996), the median deviation as Donoho and Johnstone take it (Biometrika 81, 1994). Where little
happens is asked of another mask, the gradient of Sobel, (1, 2, 1)' (-1, 0, 1) and its transpose: at a pixel its noise
is uncorrelated with that of m, so flat parts are not those where the noise happens to be small.

What was cut off at black or white has lost some of its noise, and is the flattest of all: where several pixels of a
window have the least or the largest value of the image it is left out, if enough is left.

In an image that is textured everywhere, grass say, no part is flat, and texture is taken for noise.
"""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.images.patches import finite_image

# Tried on images of scikit-image (astronaut, chelsea, coins, moon) at noise of 5 to 50 on a scale of 255.
FLAT = 0.3  # share of the pixels that count as flat
WINDOW = 7  # pixels over which the gradient is averaged
CUT, LEFT = 0.05, 0.05  # share of a window at black or white from which on it is left out, and of the image to be left
NORMAL = 0.6744897501960817  # median |e|
NORM = 6.0  # |m|


def estimate_noise(image: Any) -> float:
    """Return the level of the noise in an image: the standard deviation of what is white and Gaussian in it.

    Second differences of the flattest 30 % of the pixels are looked at. Texture without any flat part, such as grass,
    is taken for noise; and noise that is not white, as that of a JPEG, is not seen for what it is.

    Parameters
    ----------
    image : (height, width) or (height, width, channels) array-like
        Grey or colour, of any range.

    Returns
    -------
    float
        In the units of the image; the root mean square over its channels. 0 if a side has fewer than 3 pixels, where
        there are no second differences, or if the image is constant.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images import estimate_noise
    >>> ramp = np.linspace(0, 100, 200)[:, None] + np.zeros(200)
    >>> round(estimate_noise(ramp + 5 * np.random.default_rng(0).normal(size=ramp.shape)))
    5
    """
    pixels = finite_image(image)
    if min(pixels.shape[:2]) < 3:
        return 0.0
    levels = [_level(pixels[..., channel].astype(np.float64)) for channel in range(pixels.shape[2])]
    largest = max(levels)
    return largest * float(np.sqrt(np.mean(np.square(np.divide(levels, largest))))) if largest > 0 else 0.0


def _level(y: Array) -> float:
    from scipy.ndimage import uniform_filter

    unit = float(np.abs(y).max())
    if unit == 0:
        return 0.0
    y = y / unit  # squares neither overflow nor vanish
    second = np.abs(np.diff(np.diff(y, 2, axis=0), 2, axis=1))
    smooth_down, smooth_across = y[:-2] + 2 * y[1:-1] + y[2:], y[:, :-2] + 2 * y[:, 1:-1] + y[:, 2:]
    across, down = smooth_down[:, 2:] - smooth_down[:, :-2], smooth_across[2:] - smooth_across[:-2]
    happens = uniform_filter(np.square(across) + np.square(down), WINDOW)
    alive = (happens > 1e-20) | (second > 1e-10)  # what is all black or white has no noise to see
    if not alive.any():
        return 0.0
    ends = ((y == y.min()) | (y == y.max()))[1:-1, 1:-1]
    whole = alive & (uniform_filter(ends.astype(np.float64), WINDOW) < CUT)
    if whole.sum() >= LEFT * alive.sum():
        alive = whole
    flat = happens <= np.quantile(happens[alive], FLAT)
    return float(np.median(second[alive & flat])) / (NORMAL * NORM) * unit
