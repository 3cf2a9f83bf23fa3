"""The pictures of docs/kernel_pca.md, drawn by make_pictures.py."""

import sys
from pathlib import Path

import numpy as np


def three_clouds():
    """Three round clouds in the plane."""
    centres = np.array([[-0.5, -0.2], [0.0, 0.6], [0.5, 0.0]])
    return centres[np.arange(120) % 3] + 0.12 * np.random.default_rng(0).normal(size=(120, 2))


def contours(plt):
    """The first eight components over three clouds: where the score of each is large, small and the same."""
    from princomp import KernelPCA, plots

    X = three_clouds()
    figure, panels = plt.subplots(2, 4, figsize=(9, 4.4), layout="constrained", sharex=True, sharey=True)
    plots.kernel_contours(KernelPCA(8, gamma=10.0).fit(X), X, axes=panels)
    for axes in panels.flat:
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
    return figure


def radial_kernels(plt):
    """Two rings and a cloud in the plane, and their scores by four radial kernels."""
    from princomp import KernelPCA, plots
    from princomp.datasets import make_circles

    rings = make_circles(300, factor=0.5, noise=0.06, random_state=0)
    X = np.vstack([rings.X, 0.1 * np.random.default_rng(0).normal(size=(100, 2))])
    groups = np.concatenate([rings.groups, np.full(100, 2)])
    figure, panels = plt.subplots(1, 5, figsize=(9, 2.3), layout="constrained")
    for number, colour in enumerate(plots.COLOURS[:3]):
        panels[0].scatter(*X[groups == number].T, s=6, color=colour)
    panels[0].set(title="the data", aspect="equal")
    kernels = {"rbf": {}, "laplacian": {}, "knn-rbf": {"n_neighbors": 10}, "normalized-rbf": {"n_neighbors": 10}}
    for axes, (kernel, options) in zip(panels[1:], kernels.items(), strict=True):
        plots.score_scatter(KernelPCA(2, kernel=kernel, gamma=5.0, **options).fit(X), X, labels=groups, axes=axes)
        axes.get_legend().remove()
        axes.set(title=kernel)
    for axes in panels:
        axes.set(xticks=[], yticks=[])
    return figure


def widths(plt):
    """Gaussian kernels of several widths against distance, and the first component by each."""
    from princomp import KernelPCA, plots

    X = three_clouds()
    figure, (left, *panels) = plt.subplots(1, 5, figsize=(9, 2.3), layout="constrained", width_ratios=(3, 2, 2, 2, 2))
    away = np.linspace(0, 1.5, 200)
    for gamma, colour, axes in zip((0.1, 1.0, 10.0, 1000.0), plots.COLOURS, panels, strict=False):
        left.plot(away, np.exp(-gamma * away**2), color=colour, lw=2)
        plots.kernel_contours(KernelPCA(1, gamma=gamma).fit(X), X, components=1, axes=[axes])
        share = axes.get_title().split("(")[1].rstrip(")")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(True)
        axes.set_title(rf"$\gamma$ = {gamma:g}: {share}", color=colour)
    left.set(title="kernel", xlabel="distance of two rows", ylim=(0, 1.02), xlim=(0, 1.5))
    return figure


def swiss_roll(plt):
    """The rolled sheet, and scores by kernels of four widths: none unrolls it."""
    from princomp import KernelPCA
    from princomp.datasets import make_swiss_roll

    roll = make_swiss_roll(1000, random_state=0)
    figure, (left, *panels) = plt.subplots(1, 5, figsize=(9, 2.3), layout="constrained")
    left.scatter(roll.X[:, 0], roll.X[:, 2], s=4, c=roll.angle, cmap="viridis")
    left.set(title="from its side", xticks=[], yticks=[], aspect="equal")
    models = {rf"rbf, $\gamma$ = {gamma:g}": KernelPCA(2, gamma=gamma) for gamma in (0.0001, 0.01, 0.05)}
    models["normalized-rbf"] = KernelPCA(2, kernel="normalized-rbf", gamma=0.05, n_neighbors=10)
    for axes, (name, model) in zip(panels, models.items(), strict=True):
        axes.scatter(*model.fit_transform(roll.X).T, s=4, c=roll.angle, cmap="viridis")
        axes.set(title=name, xticks=[], yticks=[])
    return figure


def mosaic(plt):
    """Noisy digits, mended by four methods: what examples/kernel_denoising.py draws."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    from kernel_denoising import compare, draw, images_from

    train, test = images_from(None, 1000, 300, 0)
    return draw(plt, test, compare(train, test, 0.5, 0))
