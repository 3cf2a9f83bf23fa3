"""The pictures of docs/dictionary_learning.md, drawn by make_pictures.py."""

import numpy as np


def patches(side=8, most=8000):
    """Grey patches of a photograph that comes with scikit-learn, less their means, of root mean square length 1."""
    from sklearn.datasets import load_sample_image

    from princomp.images import extract_patches

    grey = load_sample_image("china.jpg").mean(axis=2)[::2, ::2]
    rows = extract_patches(grey, side, stride=2)
    rows = rows[np.random.default_rng(0).permutation(len(rows))[:most]]
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / np.sqrt((rows**2).sum(axis=1).mean())


def planted(seed=0, n=1500, p=20, atoms=50, nonzeros=3, noise=0.1):
    """Signals of three of fifty unit atoms each, with noise of 20 dB."""
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(atoms, p))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    codes = np.zeros((n, atoms))
    for code in codes:
        code[rng.choice(atoms, nonzeros, replace=False)] = rng.normal(size=nonzeros)
    X = codes @ D
    errors = rng.normal(size=X.shape)
    return X + noise * np.linalg.norm(X) / np.linalg.norm(errors) * errors, D


def likeness(found, true):
    """The largest |cos| of each true atom with an atom that was found."""
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return np.abs(true @ (found / np.where(lengths > 0, lengths, 1.0)).T).max(axis=1)


def atoms(plt):
    """Atoms of a photograph's patches by a penalty, by K-SVD, and by nonnegative factors."""
    from princomp import DictionaryLearning, plots

    X = patches()
    models = {
        "online, l1": DictionaryLearning(100, alpha=0.15, random_state=0),
        "K-SVD, 4 nonzeros": DictionaryLearning(100, method="ksvd", nonzeros=4, max_iter=20, random_state=0),
        "online, l1, atoms ≥ 0": DictionaryLearning(100, alpha=0.15, positive_dict=True, random_state=0),
    }
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
    for axes, (name, model) in zip(panels, models.items(), strict=True):
        plots.atoms(model.fit(X), shape=(8, 8), usage=model.atom_counts_, axes=axes)
        axes.set_title(name)
    return figure


def from_image(plt):
    """A photograph, atoms of its patches, and what three of them make of each patch."""
    from sklearn.datasets import load_sample_image

    from princomp import DictionaryLearning, plots, sparse_encode
    from princomp.images import assemble, extract_patches

    image = load_sample_image("china.jpg").mean(axis=2)[::2, ::2] / 255
    rows = extract_patches(image, 8, stride=2)
    means = rows.mean(axis=1, keepdims=True)
    length = np.sqrt(((rows - means) ** 2).sum(axis=1).mean())
    model = DictionaryLearning(100, alpha=0.2 * length, max_iter=2, random_state=0).fit(rows - means)
    codes = sparse_encode(rows - means, model.components_, nonzeros=3)
    back = assemble(codes @ model.components_ + means, image.shape, 8, stride=2)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9, 2.4), layout="constrained", width_ratios=(3, 2, 3))
    for axes, each, title in ((left, image, "image"), (right, back, "three atoms for each patch")):
        axes.imshow(each, cmap="gray", vmin=0, vmax=1)
        axes.set(title=title, xticks=[], yticks=[])
    plots.atoms(model, usage=model.atom_counts_, axes=middle)
    middle.set_title("atoms")
    return figure


def wild_cells(plt):
    """How like the planted atoms those are that l2 and Huber find, without and with five per cent of wild cells."""
    from princomp import DictionaryLearning, plots

    X, D = planted(atoms=30, n=2000)
    rng = np.random.default_rng(1)
    wild = np.where(rng.random(X.shape) < 0.05, rng.choice([-3.0, 3.0], size=X.shape), X)
    figure, panels = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained", sharey=True)
    for axes, data, title in zip(panels, (X, wild), ("as they are", "5 % of the cells are ±3"), strict=True):
        for loss, name, colour in (("l2", "l2", plots.COLOURS[3]), ("huber", "Huber", plots.COLOURS[0])):
            model = DictionaryLearning(30, alpha=0.15, loss=loss, max_iter=15, random_state=0).fit(data)
            alike = np.sort(likeness(model.components_, D))[::-1]
            axes.plot(np.arange(1, len(alike) + 1), alike, color=colour, lw=2, label=name)
        axes.axhline(0.99, color=plots.GREY, lw=1, ls=":")
        axes.set(title=title, xlabel="planted atoms, the best found first", ylim=(0.4, 1.01))
    panels[0].set(ylabel="|cos| with the nearest atom found")
    panels[0].legend(loc="lower left")
    return figure


def sparsities(plt):
    """Squared error against the mean number of nonzeros: l0, l_p and l1, on patches and one dictionary."""
    from princomp import DictionaryLearning, plots, sparse_encode
    from princomp.penalties import Lp

    X = patches(most=4000)
    D = DictionaryLearning(100, alpha=0.15, random_state=0).fit(X[:3000]).components_
    test = X[3000:]
    ways = {
        "l0": [{"penalty": "l0", "alpha": alpha} for alpha in np.geomspace(0.002, 0.08, 7)],
        "l_p, p = 0.3": [{"penalty": Lp(alpha, 0.3)} for alpha in np.geomspace(0.005, 0.12, 7)],
        "l_p, p = 0.7": [{"penalty": Lp(alpha, 0.7)} for alpha in np.geomspace(0.012, 0.2, 7)],
        "l1": [{"alpha": alpha} for alpha in np.geomspace(0.03, 0.5, 7)],
    }
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for colour, (name, settings) in zip(plots.COLOURS, ways.items(), strict=False):
        codes = [sparse_encode(test, D, **how) for how in settings]
        counts = [each.nnz / len(test) for each in codes]
        errors = [((test - each @ D) ** 2).sum() / (test**2).sum() for each in codes]
        axes.plot(counts, errors, "o-", ms=4, color=colour, label=name)
    axes.set(xlabel="nonzeros of a code, on average", ylabel="share of the squares left", yscale="log", xlim=(0, 16))
    axes.legend()
    return figure
