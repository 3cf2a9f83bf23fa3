"""Noisy digits, mended by PCA, probabilistic PCA, a mixture of it, and kernel PCA.

python examples/kernel_denoising.py                       prints the errors
python examples/kernel_denoising.py picture.png           draws some digits too (needs matplotlib)
python examples/kernel_denoising.py --data images.npz     images of your own: X_train and X_test, a row of pixels each

All numbers that a method needs are chosen on training images that it has not learnt from, with the same noise added.
"""

import argparse
from itertools import product

import numpy as np
from sklearn.datasets import load_digits

from princomp import PCA, KernelPCA, ProbabilisticPCA, ProbabilisticPCAMixture
from princomp.kernels import bandwidth

HELD_OUT = 0.2  # of the training images


def by_projection(rows, n_components):
    """PCA: a noisy image becomes its projection."""
    pca = PCA(n_components).fit(rows)
    return lambda noisy: pca.inverse_transform(pca.transform(noisy))


def by_posterior_mean(rows, n_components):
    """Probabilistic PCA: what the model expects of the image without noise."""
    model = ProbabilisticPCA(n_components).fit(rows)
    return lambda noisy: model.inverse_transform(model.transform(noisy))


def by_mixture(rows, n_components, n_clusters):
    """A mixture: what each group expects, weighed by how probable the group is."""
    model = ProbabilisticPCAMixture(n_components, n_clusters=n_clusters, n_init=2, tol=1e-5, random_state=0).fit(rows)

    def mend(noisy):
        scores = model.transform(noisy).reshape(len(noisy), n_clusters, n_components)  # times probabilities already
        return model.responsibilities(noisy) @ model.means_ + np.einsum("nck,cpk->np", scores, model.weights_)

    return mend


def by_kernel(rows, n_components, gamma):
    """Kernel PCA: the image whose place in feature space is nearest to the projection there."""
    return KernelPCA(n_components, gamma=gamma, preimage="fixed-point", random_state=0).fit(rows).denoise


def settings(train):
    """For each method what may be chosen, for images of p pixels."""
    n, p = train.shape
    width = bandwidth("median", train)
    parts = [max(int(p * share), 1) for share in (0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5)]
    more = [k for k in (p // 2, p, 2 * p, 3 * p) if k < (1 - HELD_OUT) * n / 2]
    return {
        "PCA": (by_projection, {"n_components": parts}),
        "probabilistic PCA": (by_posterior_mean, {"n_components": parts}),
        "mixture": (by_mixture, {"n_components": parts[:4], "n_clusters": [2, 4, 8]}),
        "kernel PCA": (by_kernel, {"n_components": more, "gamma": [width * factor for factor in (0.5, 1, 2, 4)]}),
    }


def error(images, truth):
    """The mean squared error of a pixel."""
    return float(np.mean((images - truth) ** 2))


def chosen(fit, grid, train, noisy, rng):
    """Return the numbers, and whether to learn from noisy images, that mend held-out images best."""
    order = rng.permutation(len(train))
    cut = int(HELD_OUT * len(train))
    held_out, others = order[:cut], order[cut:]
    tried = []
    for seen, values in product((train, noisy), product(*grid.values())):
        numbers = dict(zip(grid, values, strict=True))
        mended = fit(seen[others], **numbers)(noisy[held_out])
        tried.append((error(mended, train[held_out]), numbers, seen is noisy))
    return min(tried, key=lambda each: each[0])[1:]


def compare(train, test, noise, seed):
    """Return for each method its mended images, and its choice in words; the noisy images first."""
    rng = np.random.default_rng(seed)
    noisy_train, noisy_test = (images + noise * rng.normal(size=images.shape) for images in (train, test))
    found = {"noisy": (noisy_test, "")}
    for name, (fit, grid) in settings(train).items():
        numbers, with_noise = chosen(fit, grid, train, noisy_train, rng)
        mend = fit(noisy_train if with_noise else train, **numbers)
        words = ", ".join(f"{what} {value:.3g}" for what, value in numbers.items())
        found[name] = mend(noisy_test), f"{words}, learnt from {'noisy' if with_noise else 'clean'} images"
    return found


def images_from(path, n_train, n_test, seed):
    """Return images to learn from and images to mend: of a file, or scikit-learn's digits, from -1 to 1."""
    rng = np.random.default_rng(seed)
    if path is None:
        images = rng.permutation(load_digits().data) / 8 - 1
        return images[:n_train], images[n_train : n_train + n_test]
    with np.load(path) as file:
        pools = [file[name].astype(np.float64) for name in ("X_train", "X_test")]
    return [rng.permutation(pool)[:count] for pool, count in zip(pools, (n_train, n_test), strict=True)]


def draw(path, rows):
    """Draw the first digits: as they were, noisy, and mended by each method."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    from princomp import plots

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    plots.image_mosaic(rows, most=12, cmap="gray_r", axes=axes)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    """Mend, measure, print, draw."""
    parser = argparse.ArgumentParser(description="Noisy digits, mended by four methods.")
    parser.add_argument("picture", nargs="?", help="where to draw them")
    parser.add_argument("--data", help="a .npz file with X_train and X_test")
    parser.add_argument("--train", type=int, default=400, help="images to learn from")
    parser.add_argument("--test", type=int, default=100, help="images to mend")
    parser.add_argument("--noise", type=float, default=0.5, help="its standard deviation")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()

    train, test = images_from(given.data, given.train, given.test, given.seed)
    print(f"{len(train)} images of {train.shape[1]} pixels to learn from, {len(test)} to mend, noise {given.noise:g}")
    found = compare(train, test, given.noise, given.seed)
    errors = {name: error(images, test) for name, (images, _) in found.items()}
    for name, (_, words) in found.items():
        print(f"  {name:18} mean squared error {errors[name]:.4f}   {words}".rstrip())
    best = min(errors, key=errors.get)
    print(f"{best} mends best; PCA has {errors['PCA'] / errors['kernel PCA']:.2f} times the error of kernel PCA")
    if given.picture:
        draw(given.picture, {"original": test} | {name: images for name, (images, _) in found.items()})


if __name__ == "__main__":
    main()
