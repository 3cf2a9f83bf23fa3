"""PCA of the pit props (Jeffers 1967): variances, certificate, and a scree plot in out/scree.png.

python examples/demo.py [FOLDER]
"""

import importlib.util
import sys
from pathlib import Path

import numpy as np

from princomp import PCA
from princomp.datasets import load_pitprops


def scree_plot(variances, path):
    """Draw the variances as bars and save the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
    axes.bar(np.arange(len(variances)) + 1, variances)
    axes.axhline(1, color="black", linewidth=1, linestyle="--", label="variance of one variable")
    axes.set(xlabel="component", ylabel="variance", title="Pit props: 13 measurements of 180 pit props")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(folder="out"):
    """Fit, print, and save what there is to see."""
    data = load_pitprops()
    pca = PCA().fit_covariance(data.correlation, n_samples=data.n_samples)

    print("Pit props: 13 measurements of 180 pit props, from their correlations\n")
    print("component  variance   share  together  three largest loadings")
    together = np.cumsum(pca.explained_variance_ratio_)
    for j, variance in enumerate(pca.explained_variance_[:6]):
        largest = np.argsort(-np.abs(pca.components_[j]))[:3]
        names = ", ".join(f"{data.names[i]} {pca.components_[j, i]:+.2f}" for i in largest)
        print(f"{j + 1:9d} {variance:9.3f} {pca.explained_variance_ratio_[j]:7.1%} {together[j]:9.1%}  {names}")
    print(f"\n{pca.certificate_}")

    if importlib.util.find_spec("matplotlib") is None:
        print('\nNo picture: matplotlib is missing. To install it: pip install "princomp[plot]"')
        return
    path = Path(folder) / "scree.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    scree_plot(pca.explained_variance_, path)
    print(f"\nWritten: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:])
