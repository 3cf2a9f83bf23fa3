"""Noisy digits, mended by PCA, probabilistic PCA, a mixture of it, and kernel PCA.

python examples/kernel_denoising.py                       prints the errors
python examples/kernel_denoising.py picture.png           draws some digits too (needs matplotlib)
python examples/kernel_denoising.py --data images.npz     images of your own: X_train and X_test, a row of pixels each

All numbers that a method needs are chosen on training images that it has not learnt from, with the same noise added.
"""

import argparse
import warnings
from itertools import product

import numpy as np
from sklearn.datasets import load_digits

from princomp import PCA, KernelPCA, ProbabilisticPCA, ProbabilisticPCAMixture

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
    model = ProbabilisticPCAMixture(n_components, n_clusters=n_clusters, n_init=1, tol=1e-4, random_state=0)
    with warnings.catch_warnings():
        # One that is not quite there mends as well; one with too many groups mends badly, and is not chosen.
        warnings.simplefilter("ignore")
        model.fit(rows)

    def mend(noisy):
        scores = model.transform(noisy).reshape(len(noisy), n_clusters, n_components)  # times probabilities already
        return model.responsibilities(noisy) @ model.means_ + np.einsum("nck,cpk->np", scores, model.weights_)

    return mend


def kernel_pca(train, noise):
    """Kernel PCA: the image whose place in feature space is nearest to the projection there. It chooses by itself."""
    model = KernelPCA("held-out", gamma="held-out", noise=noise, preimage="fixed-point", random_state=0).fit(train)
    return model.denoise, {"n_components": model.n_components_, "gamma": model.gamma_}


def settings(p):
    """For each other method what may be chosen, for images of p pixels."""
    parts = [max(int(p * share), 1) for share in (0.0625, 0.125, 0.1875, 0.25, 0.375, 0.5)]
    return {
        "PCA": (by_projection, {"n_components": parts}),
        "probabilistic PCA": (by_posterior_mean, {"n_components": parts, "with_noise": (False, True)}),
        "mixture": (by_mixture, {"n_components": parts[1::2], "n_clusters": (2, 4, 8), "with_noise": (False, True)}),
    }


def error(images, truth):
    """The mean squared error of a pixel."""
    return float(np.mean((images - truth) ** 2))


def learnt(fit, train, noisy, with_noise=False, **numbers):
    """Fit to clean images; or to noisy ones, which a model with noise of its own may prefer."""
    return fit(noisy if with_noise else train, **numbers)


def chosen(fit, grid, train, noisy, rng):
    """Return the numbers with which held-out images are mended best."""
    order = rng.permutation(len(train))
    cut = int(HELD_OUT * len(train))
    held_out, others = order[:cut], order[cut:]
    tried = []
    for values in product(*grid.values()):
        numbers = dict(zip(grid, values, strict=True))
        mend = learnt(fit, train[others], noisy[others], **numbers)
        tried.append((error(mend(noisy[held_out]), train[held_out]), numbers))
    return min(tried, key=lambda each: each[0])[1]


def compare(train, test, noise, seed):
    """Return for each method its mended images, and what it chose; the noisy images first."""
    rng = np.random.default_rng(seed)
    noisy_train, noisy_test = (images + noise * rng.normal(size=images.shape) for images in (train, test))
    found = {"noisy": (noisy_test, {})}
    for name, (fit, grid) in settings(train.shape[1]).items():
        numbers = chosen(fit, grid, train, noisy_train, rng)
        found[name] = learnt(fit, train, noisy_train, **numbers)(noisy_test), numbers
    denoise, numbers = kernel_pca(train, noise)
    found["kernel PCA"] = denoise(noisy_test), numbers
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


def draw(plt, test, found):
    """Draw the first digits: as they were, noisy, and mended by each method."""
    from princomp import plots

    figure, axes = plt.subplots(figsize=(8, 3.7), layout="constrained")
    rows = {"original": test} | {name: images for name, (images, _) in found.items()}
    plots.image_mosaic(rows, most=12, limits=(-1.5, 1.5), cmap="gray_r", axes=axes)
    return figure


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
    for name, (_, numbers) in found.items():
        words = ", ".join(f"{what}={value:.4g}" for what, value in numbers.items())
        print(f"  {name:18} mean squared error {errors[name]:.4f}   {words}".rstrip())
    best = min(errors, key=errors.get)
    print(f"{best} mends best; PCA has {errors['PCA'] / errors['kernel PCA']:.2f} times the error of kernel PCA")
    if given.picture:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot as plt

        draw(plt, test, found).savefig(given.picture, dpi=120)
        print(f"wrote {given.picture}")


if __name__ == "__main__":
    main()
