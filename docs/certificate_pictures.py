"""The pictures of docs/certificates.md, drawn by make_pictures.py."""

import numpy as np


def certificate(plt):
    """Variance of a component against its number of features: found, bounded, proved."""
    from make_pictures import BLUE, GREEN, GREY, ORANGE

    from princomp import SparsePCA
    from princomp.datasets import load_pitprops

    S = load_pitprops().correlation
    counts = np.arange(1, 14)
    fits = [SparsePCA(1, nonzeros=int(count)).fit_covariance(S).certificate_ for count in counts]
    proved = [SparsePCA(1, nonzeros=int(count), certify=True).fit_covariance(S).certificate_ for count in counts]
    values, vectors = np.linalg.eigh(S)
    order = np.argsort(-np.abs(vectors[:, -1]))
    kept = []
    for count in counts:
        v = np.where(np.isin(np.arange(13), order[:count]), vectors[:, -1], 0.0)
        kept.append(v @ S @ v / (v @ v))
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    upper = [each.upper[0] for each in fits]
    found = [each.lower[0] for each in fits]
    axes.fill_between(counts, found, upper, color=ORANGE, alpha=0.15, lw=0)
    axes.plot(counts, upper, color=ORANGE, marker="v", ms=5, label="bound without certify: no component has more")
    axes.plot(counts, found, color=BLUE, marker="o", ms=5, label="component found")
    closed = np.array([each.proved[0] for each in proved])
    best = np.array([each.upper[0] for each in proved])
    style = {"ls": "", "marker": "o", "ms": 10, "mfc": "none", "color": GREEN}
    axes.plot(counts[closed], best[closed], **style, label="bound with certify=True: proved best")
    axes.plot(counts, kept, color=GREY, marker="x", ms=5, ls=":", label="largest loadings of PCA kept")
    axes.axhline(values[-1], color="black", lw=1, ls="--", label="first principal component, all 13 features")
    axes.set(title="pit props", xlabel="features in the component", ylabel="variance", xticks=counts)
    axes.legend(fontsize=8, loc="lower right")
    return figure


def floors(plt):
    """Components of a table with an ID column: what was measured of each, and what rounding leaves to be known."""
    from make_pictures import BLUE, GREEN, RED

    from princomp import PCA

    rng = np.random.default_rng(0)
    table = np.c_[2e3 * np.arange(1000), rng.normal(size=(1000, 11)) * np.geomspace(3, 0.1, 11)]
    chosen, squared = PCA(8).fit(table), PCA(8, solver="eigh").fit(table)
    counts = np.arange(1, 9)
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for fit, color, marker in ((squared, RED, "v"), (chosen, GREEN, "s")):
        share = fit.certificate_.details["floor"] / fit.explained_variance_
        axes.plot(counts, share, color=color, marker=marker, ms=5, ls=":", label=f'floor of solver="{fit.solver_}"')
    residuals = chosen.certificate_.details["residuals"]
    axes.plot(
        counts, residuals, color=BLUE, marker="o", ms=5, ls="", label=f'residual of "auto", here "{chosen.solver_}"'
    )
    axes.axhline(chosen.tol, color="black", lw=1, ls="--")
    axes.annotate("tol", (8.4, chosen.tol), xytext=(0, 3), textcoords="offset points", ha="right")
    axes.set(title="a table with an ID column", xlabel="component", ylabel="relative to its own variance")
    axes.set(yscale="log", xticks=counts, xlim=(0.6, 8.4), ylim=(1e-17, 3))
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
