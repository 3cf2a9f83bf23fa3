"""The picture of docs/single_cell.md, drawn by make_pictures.py."""

import numpy as np

KINDS, CELLS, GENES = 4, 400, 500


def counts(seed=0):
    """Counts of four kinds of cells, some of which were read ten times as deep as others; and the kinds."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(0.2, 1.0, GENES) * np.exp(0.9 * rng.normal(size=(KINDS, GENES)))
    kinds = np.arange(CELLS) % KINDS
    shares = rates[kinds] / rates[kinds].sum(axis=1, keepdims=True)
    return rng.poisson(shares * 1000 * rng.lognormal(0, 1.0, (CELLS, 1))).astype(float), kinds


def preparations(plt):
    """Four kinds of cells by their first two components: of counts, of shares, of logarithms, of these scaled."""
    from princomp import PCA, plots

    X, kinds = counts()
    normal = 1e4 * X / X.sum(axis=1, keepdims=True)
    steps = {"counts": X, "normalised": normal, "log1p": np.log1p(normal), "log1p, scaled": np.log1p(normal)}
    figure, panels = plt.subplots(1, 4, figsize=(9, 2.4), layout="constrained")
    for axes, (name, step) in zip(panels, steps.items(), strict=True):
        scores = PCA(2, scale="scaled" in name).fit_transform(step)
        for kind, colour in enumerate(plots.COLOURS[:KINDS]):
            axes.scatter(*scores[kinds == kind].T, s=5, color=colour)
        axes.set(title=name, xticks=[], yticks=[])
    return figure
