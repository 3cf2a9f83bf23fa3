"""Patches of images for the benchmarks of sparse codes and dictionaries, and what a code or a dictionary is worth.

Patches: all of five grey images, a random choice of them, each less its mean, all divided by the root of their mean
squared norm. Values are computed here, from patches, atoms and codes alone. Peers that are not installed are None.

Import this module before numpy: it sets the number of threads.
"""

import _one_thread  # noqa: F401  isort: skip

import contextlib
import importlib

import numpy as np
import scipy.sparse

from princomp.images import extract_patches

ALPHA = 0.15
BATCH = 512
BUNDLED = ("camera", "coins", "brick", "grass", "moon")  # grey images that come with scikit-image


def peer(name):
    """Return a module, or None where it is not installed."""
    with contextlib.suppress(ImportError):
        return importlib.import_module(name)
    return None


def left_out(*names):
    """Words for the page about peers that are not there."""
    missing = [name for name in names if peer(name) is None]
    return [f"Not installed, and so left out: {', '.join(missing)}.", ""] if missing else []


def images(path=None):
    """Return grey images: all of a .npz file, or those that scikit-image brings, or else scikit-learn."""
    if path is not None:
        with np.load(path) as file:
            found = [file[name] for name in file.files]
    elif peer("skimage") is not None:
        data = importlib.import_module("skimage.data")
        found = [getattr(data, name)() for name in BUNDLED]
    else:
        from sklearn.datasets import load_sample_images

        found = load_sample_images().images
    return [(image if image.ndim == 2 else image.mean(axis=2)).astype(np.float64) for image in found]


def patches(pictures, count, side, seed):
    """Return `count` patches (fewer if there are not so many), (n, side * side)."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([extract_patches(image, side) for image in pictures])
    rows = rows[rng.permutation(len(rows))[:count]]
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / np.sqrt(np.mean(np.sum(rows**2, axis=1)))


def start(X, atoms, seed):
    """Return atoms to begin with: patches that are not flat, of unit norm."""
    rng = np.random.default_rng(seed)
    norms = np.linalg.norm(X, axis=1)
    chosen = rng.choice(np.flatnonzero(norms > 0.1), atoms, replace=False)
    return X[chosen] / norms[chosen, None]


def learnt(X, atoms, seed):
    """Return a dictionary to code with, unit atoms: by SPAMS, 60 batches, or where it is missing by princomp."""
    begin = start(X, atoms, seed)
    spams = peer("spams")
    if spams is not None:
        how = {"lambda1": ALPHA, "iter": 60, "batchsize": BATCH, "numThreads": 1, "verbose": False}
        D = np.ascontiguousarray(spams.trainDL(np.asfortranarray(X.T), D=np.asfortranarray(begin.T), **how).T)
    else:
        from princomp import DictionaryLearning

        D = DictionaryLearning(atoms, alpha=ALPHA, dict_init=begin, random_state=seed).fit(X).components_
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def planted(seed, n=1500, atoms=50, p=20, nonzeros=3):
    """Return signals that are sums of few Gaussian atoms, with noise of a tenth of their size, and the atoms."""
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(atoms, p))
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    codes = np.zeros((n, atoms))
    places = rng.random((n, atoms)).argsort(axis=1)[:, :nonzeros]
    np.put_along_axis(codes, places, rng.normal(size=(n, nonzeros)), axis=1)
    clean, noise = codes @ D, rng.normal(size=(n, p))
    return clean + noise * (0.1 * np.linalg.norm(clean) / np.linalg.norm(noise)), D


def recovered(found, truth):
    """Return the share of the true atoms that some found atom is within 8 degrees of."""
    unit = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)
    return float(np.mean(np.abs(unit @ truth.T).max(axis=0) > 0.99))


def by_blocks(X, D, codes, value, rows=20_000):
    """Return value(x, residual, codes) of all rows, in blocks."""
    sparse = scipy.sparse.csr_array(codes)
    parts = []
    for begin in range(0, len(X), rows):
        some = slice(begin, begin + rows)
        parts.append(value(X[some], X[some] - sparse[some] @ D, sparse[some]))
    return np.concatenate(parts)


def squares(X, D, codes):
    """Return |x - a D|^2 of each row."""
    return by_blocks(X, D, codes, lambda x, residual, a: np.sum(residual**2, axis=1))


def lasso_values(X, D, codes, alpha=ALPHA):
    """Return 1/2 |x - a D|^2 + alpha |a|_1 of each row."""
    return by_blocks(X, D, codes, lambda x, residual, a: np.sum(residual**2, axis=1) / 2 + alpha * abs(a).sum(axis=1))


def lasso_gaps(X, D, codes, alpha=ALPHA):
    """Return how far each row's value is above its optimum at the most: by the residual, scaled until it is feasible.

    The dual is max |x|^2 / 2 - |x - u|^2 / 2 over |D u|_inf <= alpha.
    """

    def gap(x, residual, a):
        largest = np.abs(residual @ D.T).max(axis=1)
        u = residual * np.minimum(1.0, alpha / np.maximum(largest, 1e-300))[:, None]
        dual = np.sum(x**2, axis=1) / 2 - np.sum((x - u) ** 2, axis=1) / 2
        return np.sum(residual**2, axis=1) / 2 + alpha * abs(a).sum(axis=1) - dual

    return by_blocks(X, D, codes, gap)
