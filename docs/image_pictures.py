"""The pictures of docs/images.md, drawn by make_pictures.py (they need scikit-image)."""

import numpy as np


def crops(plt, images):
    """Grey images beside each other, with titles."""
    figure, panels = plt.subplots(1, len(images), figsize=(2.6 * len(images), 2.9), layout="constrained")
    for axes, (title, image) in zip(panels, images.items(), strict=True):
        axes.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.set_title(title, fontsize=9)
        axes.spines[:].set_visible(False)
    return figure


def ratio(image, clean, where=...):
    """Peak signal-to-noise ratio, in words."""
    return f"{10 * np.log10(255**2 / np.mean((image - clean)[where] ** 2)):.1f} dB"


def denoised(plt):
    """A crop of a photograph with noise, and without."""
    from skimage import data

    from princomp.images import denoise

    clean = data.camera()[70:198, 170:298].astype(float)
    noisy = clean + 25 * np.random.default_rng(0).normal(size=clean.shape)
    found = {method: denoise(noisy, 25, method) for method in ("local-pca", "ksvd")}
    images = {"without noise": clean, f"noise of 25, {ratio(noisy, clean)}": noisy}
    return crops(plt, images | {f"{name}, {ratio(image, clean)}": image for name, image in found.items()})


def inpainted(plt):
    """A wall of bricks of which every other pixel is missing, at random."""
    from skimage import data
    from skimage.restoration import inpaint_biharmonic

    from princomp.images import inpaint

    clean = data.brick()[100:228, 100:228].astype(float)
    mask = np.random.default_rng(0).random(clean.shape) < 0.5
    start, found = inpaint_biharmonic(np.where(mask, 0.0, clean), mask), inpaint(clean, mask)
    images = {"half is missing": np.where(mask, 0.0, clean), f"biharmonic, {ratio(start, clean, mask)}": start}
    return crops(plt, images | {f"local-pca, {ratio(found, clean, mask)}": found, "the original": clean})
