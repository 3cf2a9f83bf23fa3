"""Digits grouped without labels: two are alike if their codes use the same atoms.

python examples/clusters_of_codes.py                 prints how well groups agree with the digits
python examples/clusters_of_codes.py picture.png     draws the atoms that each group uses most (needs matplotlib)

A dictionary of digits, nothing in it negative, of which every digit takes about two atoms: most pairs of digits share
none. The cosines of codes are a graph, whose parts spectral clustering finds. Learning begins with digits at random:
three starts are shown.
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


def learned(X, seed):
    """A dictionary of digits."""
    return DictionaryLearning(64, alpha=1.5, positive_code=True, positive_dict=True, random_state=seed).fit(X)


def main():
    """Learn, group, compare, draw."""
    digits = load_digits()
    X = digits.data / 16
    models = [learned(X, seed) for seed in range(3)]
    used = np.mean([np.count_nonzero(model.transform(X)) / len(X) for model in models])
    print(f"{len(X)} digits; a code has {used:.1f} of {models[0].n_components_} atoms")
    groups = {
        "k-means of pixels": [KMeans(GROUPS, n_init=10, random_state=0).fit_predict(X)],
        "graph of pixels": [parts(X)],
        "graph of codes": [parts(model.transform(X)) for model in models],
    }
    for name, found in groups.items():
        agreement = ", ".join(f"{adjusted_rand_score(digits.target, each):.3f}" for each in found)
        print(f"  {name:18} adjusted Rand index {agreement}")
    if len(sys.argv) > 1:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        from princomp import plots

        codes, found = models[0].transform(X), groups["graph of codes"][0]
        use = np.array([codes[found == group].sum(axis=0) for group in range(GROUPS)])
        most = np.argsort(-use, axis=1)[:, :8]  # of each group
        figure, axes = pyplot.subplots(figsize=(5, 6), layout="constrained")
        plots.atoms(models[0].components_[most.ravel()], columns=8, cmap="gray_r", axes=axes)
        figure.savefig(sys.argv[1], dpi=120)
        print(f"wrote {sys.argv[1]}")


if __name__ == "__main__":
    main()
