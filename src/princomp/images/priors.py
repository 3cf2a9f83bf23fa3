"""Denoising by what images are like in general: smooth, sparse, of small variation, sparse in wavelets.

Each is the x that minimises 1/2 |x - y|^2 + weight h(x), for an image y whose noise has variance 1:

    smoothness        h = 1/2 |grad x|^2, differences of neighbours        closed form, in the cosine basis
    pixel lasso       h = |x|_1                                            closed form, soft thresholding
    total variation   h = sum |grad x|  (Rudin, Osher and Fatemi 1992)     Chambolle's iteration, scikit-image
    wavelet           h = sum t_b |coefficients of band b|_1               soft thresholding, scikit-image (BayesShrink)

The weight of the first two is the one with the least unbiased estimate of the risk E |x - clean|^2 (Stein, Annals of
Statistics 9, 1981), which for an estimate x(y) is |x - y|^2 + 2 div x - n. That of the third is a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._typing import Array

# Of the smoothness that are tried: 12 % from one to the next; and none, for noise that is below all differences.
WEIGHTS = np.append(0.0, np.geomspace(1e-3, 1e4, 141))
VARIATION = 0.8  # weight of the total variation; tried on starfish, cameraman and coins at noise of 15, 25 and 50


def smoothness(y: Array) -> Array:
    """Return the smooth image next to y: (I + weight L) x = y, L the Laplacian with free borders.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.priors import smoothness
    >>> clean = np.add.outer(np.linspace(0, 9, 40), np.linspace(0, 9, 40))
    >>> bool(np.std(smoothness(clean + np.random.default_rng(0).normal(size=clean.shape)) - clean) < 0.3)
    True
    """
    from scipy.fft import dctn, idctn

    down, across = (2 - 2 * np.cos(np.pi * np.arange(length) / length) for length in y.shape)
    laplacian = down[:, None] + across
    squares = np.square(found := dctn(y, norm="ortho"))
    risks = []
    for weight in WEIGHTS:
        kept = 1 / (1 + weight * laplacian)
        risks.append(np.vdot(np.square(1 - kept), squares) + 2 * kept.sum())
    return np.asarray(idctn(found / (1 + WEIGHTS[int(np.argmin(risks))] * laplacian), norm="ortho"))


def pixel_lasso(y: Array) -> Array:
    """Return y with each pixel nearer to 0 by the weight, or 0.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.images.priors import pixel_lasso
    >>> pixel_lasso(np.array([[0.5, -0.5, 0.2, 90.0]])).round(1).tolist()
    [[0.0, -0.0, 0.0, 89.5]]
    """
    size = np.sort(np.abs(y), axis=None)
    n = len(size)
    below = np.arange(1, n + 1)  # pixels that are 0, if each of their sizes is the weight
    risks = np.cumsum(size**2) + (n - below) * size**2 + 2.0 * (n - below)
    weight = size[int(np.argmin(risks))] if risks.min() < 2.0 * n else 0.0
    return np.sign(y) * np.maximum(np.abs(y) - weight, 0.0)


def total_variation(y: Array) -> Array:
    """Return the image of small total variation next to y."""
    return np.asarray(restoration().denoise_tv_chambolle(y, weight=VARIATION, eps=1e-5, max_num_iter=500))


def wavelet(y: Array) -> Array:
    """Return y with the coefficients of its wavelets nearer to 0; as it is, where it is too small to have any."""
    from_skimage = restoration()
    import pywt

    if pywt.dwtn_max_level(y.shape, "db2") < 1:
        return y
    return np.asarray(from_skimage.denoise_wavelet(y, sigma=1.0, wavelet="db2", mode="soft", rescale_sigma=False))


def restoration() -> Any:
    """Return scikit-image's module; complain if it is not installed."""
    try:
        import pywt  # noqa: F401  which scikit-image asks for late
        from skimage import restoration
    except ImportError as error:
        raise ImportError('scikit-image is needed for this method: pip install "princomp[images]"') from error
    return restoration
