"""The picture of docs/certificates.md, drawn by make_pictures.py."""

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
