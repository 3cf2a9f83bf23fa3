"""Denoising and inpainting beside scikit-image: peak signal-to-noise ratios, dB, and CPU seconds.

python benchmarks/images.py [--images FILE.npz --names house,peppers,...]     writes docs/benchmarks/images.md

Corners of 256 x 256 pixels, grey, Gaussian noise whose level all are told. scikit-image's wavelets are those of its
default, BayesShrink; total variation and non-local means have the best of a few strengths for each image, chosen with
the clean image at hand, which favours them. `bm3d`, whose licence forbids commercial use, is shown where installed.
"""

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import _patches  # noqa: F401  isort: skip
import numpy as np
from _objective import DOCS, machine, write
from _patches import BUNDLED, peer

from princomp.images import denoise, inpaint

SIGMAS, SHARES = (15, 25, 50), (0.25, 0.5, 0.75)
OURS = ("local-pca", "ksvd", "online", "dct", "haar", "pca", "smoothness")


def pictures(path, names, side):
    """Return grey images by name: those of a .npz file, or some that scikit-image brings."""
    if path is None:
        data = __import__("skimage.data", fromlist=["data"])
        found = {name: getattr(data, name)() for name in names or BUNDLED}
    else:
        with np.load(path) as file:
            found = {name: file[name] for name in names or file.files}
    return {name: image[:side, :side].astype(np.float64) for name, image in found.items()}


def ratio(image, clean, where=...):
    return 10 * np.log10(255**2 / np.mean((image - clean)[where] ** 2))


def best(clean, attempts):
    """Return the attempt that is nearest to the clean image."""
    return max((attempt() for attempt in attempts), key=lambda image: ratio(image, clean))


def peers(noisy, clean, sigma):
    """Yield names and functions of what others make of an image."""
    from skimage import restoration

    unit = noisy / 255
    variation = [partial(restoration.denoise_tv_chambolle, noisy, weight=f * sigma) for f in (0.6, 0.8, 1.0, 1.2)]
    means = [
        partial(restoration.denoise_nl_means, noisy, 5, 9, h=f * sigma, sigma=sigma, fast_mode=True)
        for f in (0.4, 0.6, 0.8)
    ]
    yield "skimage TV", lambda: best(clean, variation)
    yield "skimage wavelet", lambda: 255 * restoration.denoise_wavelet(unit, sigma=sigma / 255, rescale_sigma=False)
    yield "skimage NLM", lambda: best(clean, means)
    if (bm3d := peer("bm3d")) is not None:
        yield "bm3d", lambda: bm3d.bm3d(noisy, sigma)


def without_noise(images, sigmas, seed):
    """Yield a table of ratios, and what it says."""
    yield from ["### Noise", ""]
    seconds, above, cells = {}, 0, 0
    for name, clean in images.items():
        for sigma in sigmas:
            noisy = clean + sigma * np.random.default_rng(seed).normal(size=clean.shape)
            contestants = {method: partial(denoise, noisy, sigma, method) for method in OURS}
            contestants |= dict(peers(noisy, clean, sigma))
            found = {}
            for each, run in contestants.items():
                began = time.process_time()
                found[each] = ratio(run(), clean)
                seconds.setdefault(each, []).append(time.process_time() - began)
            if not cells:
                yield "| image | sigma | " + " | ".join(found) + " |"
                yield "|---|---:|" + "---:|" * len(found)
            yield f"| {name} | {sigma} | " + " | ".join(f"{value:.2f}" for value in found.values()) + " |"
            cells += 1
            above += found["local-pca"] > max(found[each] for each in found if each.startswith("skimage"))
    yield "| CPU seconds | | " + " | ".join(f"{np.mean(each):.2f}" for each in seconds.values()) + " |"
    yield from ["", f"local-pca is above all of scikit-image in {above} of {cells}.", ""]


def without_gaps(images, shares, seed):
    """Yield a table of ratios over the missing pixels."""
    from skimage.restoration import inpaint_biharmonic

    yield from ["### Missing pixels", "", "| image | missing | biharmonic | princomp | CPU seconds |"]
    yield "|---|---:|---:|---:|---:|"
    for name, clean in images.items():
        for share in shares:
            mask = np.random.default_rng(seed).random(clean.shape) < share
            start = inpaint_biharmonic(np.where(mask, 0, clean), mask)
            began = time.process_time()
            found = inpaint(clean, mask)
            spent = time.process_time() - began
            values = f"{ratio(start, clean, mask):.2f} | {ratio(found, clean, mask):.2f} | {spent:.1f}"
            yield f"| {name} | {share:.0%} | {values} |"


def sections(options):
    """Yield the lines of the page, as they are found."""
    images = pictures(options.images, options.names and options.names.split(","), 40 if options.quick else 256)
    if options.quick:
        images = dict([*images.items()][:1])
    yield from without_noise(images, SIGMAS[:1] if options.quick else SIGMAS, options.seed)
    yield from without_gaps(images, SHARES[:1] if options.quick else SHARES, options.seed)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--images", type=Path, help="a .npz file of grey images")
    parser.add_argument("--names", help="which of them, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    lines = [machine(), ""]
    for text in sections(options):
        print(text, flush=True)
        lines.append(text)
    complete = not (options.quick or options.images or options.names or options.seed)
    path = options.output or (DOCS / "images.md" if complete else None)
    if path:
        write(path, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
