"""Digits grouped without labels: two are alike if their codes use the same atoms.

python examples/clusters_of_codes.py                 prints how well groups agree with the digits
python examples/clusters_of_codes.py picture.png     draws the atoms that each group uses most (needs matplotlib)

A dictionary of digits, non-negative and overcomplete, in which every digit is the sum of about three atoms: most pairs
of digits share none of them. The cosines of codes are a graph, whose parts spectral clustering finds.
"""

import sys

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from princomp import DictionaryLearning

GROUPS = 10


def parts(rows):
    """Groups of a graph in which rows are joined by their cosine."""
    unit = normalize(rows)
    cosines = np.clip(unit @ unit.T, 0.0, 1.0)
    return SpectralClustering(GROUPS, affinity="precomputed", random_state=0).fit_predict(cosines)


def main():
    """Learn, group, compare, draw."""
    digits = load_digits()
    X = digits.data / 16
    model = DictionaryLearning(256, alpha=1.0, positive_code=True, positive_dict=True, random_state=0).fit(X)
    codes = model.transform(X)
    print(f"{len(X)} digits; a code has {np.count_nonzero(codes, axis=1).mean():.1f} of {codes.shape[1]} atoms")
    groups = {
        "k-means of pixels": KMeans(GROUPS, n_init=10, random_state=0).fit_predict(X),
        "graph of pixels": parts(X),
        "graph of codes": parts(codes),
    }
    for name, found in groups.items():
        print(f"  {name:18} adjusted Rand index {adjusted_rand_score(digits.target, found):.3f}")
    if len(sys.argv) > 1:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        from princomp import plots

        use = np.array([codes[groups["graph of codes"] == group].sum(axis=0) for group in range(GROUPS)])
        most = np.argsort(-use, axis=1)[:, :8]  # of each group
        figure, axes = pyplot.subplots(figsize=(5, 6), layout="constrained")
        plots.atoms(model.components_[most.ravel()], columns=8, cmap="gray_r", axes=axes)
        figure.savefig(sys.argv[1], dpi=120)
        print(f"wrote {sys.argv[1]}")


if __name__ == "__main__":
    main()
