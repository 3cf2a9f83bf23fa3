"""The pictures of docs/probabilistic_pca.md, drawn by make_pictures.py."""

import numpy as np


def posterior(plt):
    """Scores of viruses with missing cells, as sure as they are; and these cells filled in, beside the truth."""
    from princomp import ProbabilisticPCA, plots
    from princomp.datasets import load_tobamovirus

    X = load_tobamovirus().X
    gaps = X.copy()
    gaps.ravel()[np.random.default_rng(0).choice(X.size, 136, replace=False)] = np.nan
    model = ProbabilisticPCA(2, random_state=0).fit(gaps)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained", width_ratios=(2, 3))
    plots.posterior_scores(model, gaps, axes=left)
    for drawn in (*left.patches, *left.collections):
        drawn.set_rasterized(True)  # as outlines they would make a large file
    left.set_title("38 viruses, ellipses of two deviations")
    plots.imputed_cells(model, gaps, truth=X, most=30, axes=right)
    right.set(title="imputed, with 90 % intervals", ylim=(None, 27))
    right.legend(fontsize=8, ncols=2, loc="upper right")
    return figure


def planted(rng, n=100, p=40):
    """Rows with five components in noise, for the fit and for checking it; a fifth of the cells missing."""
    W = rng.normal(size=(5, p)) * np.array([1.2, 1, 0.8, 0.7, 0.6])[:, None]
    X = rng.normal(size=(2 * n, 5)) @ W + rng.normal(size=(2 * n, p))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X[:n], X[n:]


def how_many(plt):
    """Likelihood of the data of the fit, of other data, and BIC, against the number of components."""
    from make_pictures import GREEN, GREY

    from princomp import ProbabilisticPCA, plots

    X, other = planted(np.random.default_rng(1))
    models = [ProbabilisticPCA(k, random_state=0).fit(X) for k in range(1, 13)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    plots.likelihood_path(models, other, axes=left)
    left.set_title("five components planted in 100 rows")
    left.legend(fontsize=8, loc="lower right")

    (n, p), counts = X.shape, np.array([model.n_components_ for model in models])
    free = p * counts - counts * (counts - 1) / 2 + p + 1  # W up to rotation, mean, noise
    criterion = np.array([model.log_likelihood_ for model in models]) - free / 2 * np.log(n)
    right.plot(counts, criterion / n, "^-", ms=4, color=GREEN)
    right.axvline(counts[criterion.argmax()], color=GREY, lw=1, ls=":")
    right.set(title="BIC", xlabel="components", ylabel="criterion per row", xticks=counts)
    return figure


def mixture(plt):
    """Heights and weights of two kinds of athletes: what PCA says of all together, and the mixture of each."""
    from make_pictures import BLUE, GREY, ORANGE, RED, line

    from princomp import PCA, ProbabilisticPCAMixture
    from princomp.datasets import make_height_weight

    people = make_height_weight(random_state=0)
    pca = PCA(1).fit(people.X)
    model = ProbabilisticPCAMixture(1, n_clusters=2, random_state=0).fit(people.X)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharex=True, sharey=True)
    left.scatter(*people.X.T, s=9, color=GREY, rasterized=True)
    line(left, pca.mean_, pca.components_[0], 26, color=RED, lw=2)
    left.set(title="PCA: the taller are lighter", xlabel="height, cm", ylabel="weight, kg", aspect="equal")
    clusters = model.predict(people.X)
    for cluster, colour in enumerate((BLUE, ORANGE)):
        right.scatter(*people.X[clusters == cluster].T, s=9, color=colour, alpha=0.5, lw=0, rasterized=True)
        line(right, model.means_[cluster], model.components_[cluster, 0], 18, color=colour, lw=2)
    right.set(title="mixture: in each group the taller are heavier", xlabel="height, cm", aspect="equal")
    return figure
