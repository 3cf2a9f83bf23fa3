"""Networks of a synthetic brain, found by rank-1 dictionary learning, PCA, sparse PCA and an online dictionary.

python examples/brain_networks.py                 prints how like the true networks those found are
python examples/brain_networks.py picture.png     draws them, slices through the brain (needs matplotlib)

Six networks of voxels, each with a course in time of its own; some overlap, courses are correlated, and one network has
parts of both signs. What is found is paired with what is true such that the correlations of maps add up to the most.
Methods with a number of voxels, or a penalty, are shown with a good one first, then with others: which one is good is
not known where the truth is not.
"""

import sys
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

from princomp import PCA, DictionaryLearning, RankOneDictionary, SparsePCA
from princomp.datasets import make_brain

SHARE, PENALTY = 0.05, 0.1  # of the voxels, as the networks have; of the penalty at which nothing, or little, is left


def rank_one(X, k, share=SHARE, refine=0):
    """Maps by RankOneDictionary."""
    return RankOneDictionary(k, nonzeros=share, refine=refine, random_state=0).fit(X).components_


def sparse(X, k, penalty=PENALTY):
    """Maps by SparsePCA."""
    return SparsePCA(k, alpha_share=penalty, random_state=0).fit(X).components_


def dictionary(X, k, penalty=PENALTY):
    """Maps by DictionaryLearning, of which a row is a voxel, an atom a course, and codes are few: a map is a column."""
    alpha = penalty * np.sqrt((X**2).sum(axis=0).mean())  # of the length of a row
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Most rows have no atom")  # most voxels are in no network
        return DictionaryLearning(k, alpha=alpha, random_state=0).fit_transform(X.T).T


def paired(found, true):
    """Maps that were found in the order, and with the signs, of the true ones, and the correlations."""
    k = len(true)
    alike = np.nan_to_num(np.corrcoef(found, true)[:k, k:])  # a map of zeros is like none
    places = linear_sum_assignment(-np.abs(alike.T))[1]
    signed = alike[places, range(k)]
    return found[places] * np.where(signed < 0, -1, 1)[:, None], np.abs(signed)


def compare(brain):
    """What each method finds, paired with the true networks, by name."""
    X, k = brain.X, len(brain.maps)
    maps = {
        "R1DL": rank_one(X, k),
        "R1DL, refined": rank_one(X, k, refine=30),
        "PCA": PCA(k).fit(X).components_,
        "sparse PCA": sparse(X, k),
        "dictionary": dictionary(X, k),
    }
    return {name: paired(found, brain.maps) for name, found in maps.items()}


def other_settings(brain):
    """Mean correlations with half of the number of voxels, or penalty, with all, and with twice as much."""
    X, k = brain.X, len(brain.maps)
    ways = {
        "R1DL, refined": lambda factor: rank_one(X, k, share=factor * SHARE, refine=30),
        "sparse PCA": lambda factor: sparse(X, k, penalty=factor * PENALTY),
        "dictionary": lambda factor: dictionary(X, k, penalty=factor * PENALTY),
    }
    return {name: [paired(find(each), brain.maps)[1].mean() for each in (0.5, 1, 2)] for name, find in ways.items()}


def main():
    """Find, pair, print, draw."""
    brain = make_brain(random_state=0)
    found = compare(brain)
    print("{} scans of {} voxels; |correlation| of maps with the true ones\n".format(*brain.X.shape))
    print(" " * 14 + "".join(f"{name:>11}" for name in brain.names))
    for name, (_, alike) in found.items():
        print(f"{name:14}" + "".join(f"{each:11.2f}" for each in alike))
    print("\nmean |correlation| with half of that number of voxels, or penalty, with that, and with twice as much")
    for name, alike in other_settings(brain).items():
        print(f"{name:14}" + "".join(f"{each:11.2f}" for each in alike))
    if len(sys.argv) > 1:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        draw(pyplot, brain, {"true": (brain.maps, None)} | found).savefig(sys.argv[1], dpi=120)
        print(f"wrote {sys.argv[1]}")


def draw(pyplot, brain, rows):
    """Draw maps, a row for each method: a horizontal slice and one from back to front, true networks outlined."""
    figure, panels = pyplot.subplots(len(rows), len(brain.names), figsize=(13, 7.6), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.05, h_pad=0.03)
    for axes, title in zip(panels[0], brain.names, strict=True):
        axes.set_title(title, fontsize=12)
    for line, (name, (maps, alike)) in zip(panels, rows.items(), strict=True):
        line[0].set_ylabel(name, fontsize=12)
        for j, axes in enumerate(line):
            one_map(axes, brain, maps[j], brain.maps[j])
            if alike is not None:
                axes.text(0.5, 0.02, f"{alike[j]:.2f}", transform=axes.transAxes, fontsize=9, ha="center", va="bottom")
    return figure


def one_map(axes, brain, values, true):
    """Draw two slices of a map side by side: those in which the true network is strongest."""
    volume, outline, inside = (slices(brain, each, true) for each in (values, true, np.ones(len(true))))
    limit = np.quantile(np.abs(values[values != 0]), 0.98) if values.any() else 1.0
    strong = np.clip(2 * np.abs(volume) / limit, 0, 1)  # what is weak lets the grey through
    axes.contourf(inside, levels=[0.5, 1.5], colors="#ececec", zorder=-1)
    axes.imshow(volume, cmap="RdBu_r", vmin=-limit, vmax=limit, alpha=strong, interpolation="nearest")
    axes.contour(inside, levels=[0.5], colors="#aaaaaa", linewidths=0.8)
    axes.contour(outline != 0, levels=[0.5], colors="#222222", linewidths=0.8)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def slices(brain, values, true):
    """Two slices of a map as one picture, seen from above and from the right."""
    volume, strength = np.zeros((2, *brain.mask.shape))
    volume[brain.mask], strength[brain.mask] = values, true**2
    above = volume[:, :, strength.sum(axis=(0, 1)).argmax()].T[::-1]
    side = volume[strength.sum(axis=(1, 2)).argmax()].T[::-1]
    missing = len(above) - len(side)
    side = np.pad(side, ((missing // 2, missing - missing // 2), (2, 0)))
    return np.pad(np.hstack([above, side]), 1)


if __name__ == "__main__":
    main()
