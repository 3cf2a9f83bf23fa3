"""A dictionary that learns from a stream: batches come and go, and none is kept.

python examples/dictionary_stream.py

Signals are sums of three atoms of fifty, with noise, made as they are needed. The model sees each once, forgets a tenth
of what it knew with every batch, since it knew less when it began, and can be used at any time; in the middle it is
saved, and the stream goes on with the model that is loaded, as on another day.
"""

import tempfile
from pathlib import Path

import numpy as np

from princomp import DictionaryLearning, load, save

ATOMS, LENGTH, NONZEROS, BATCH = 50, 20, 3, 256
LOOKS = (1, 5, 20, 50, 100, 200)  # batches after which we look


def truth(rng):
    """Atoms, unit rows."""
    D = rng.normal(size=(ATOMS, LENGTH))
    return D / np.linalg.norm(D, axis=1, keepdims=True)


def signals(D, rng):
    """Batches without end."""
    while True:
        codes = np.zeros((BATCH, ATOMS))
        places = rng.random((BATCH, ATOMS)).argsort(axis=1)[:, :NONZEROS]
        np.put_along_axis(codes, places, rng.normal(size=(BATCH, NONZEROS)), axis=1)
        clean = codes @ D
        yield clean + 0.1 * clean.std() * rng.normal(size=clean.shape)


def found(model, D):
    """The share of true atoms that some learned atom is within 8 degrees of."""
    unit = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    return np.mean(np.abs(unit @ D.T).max(axis=0) > 0.99)


def error(model, rows):
    """The share of new signals that codes leave out."""
    return np.sum((rows - model.inverse_transform(model.transform(rows))) ** 2) / np.sum(rows**2)


def main():
    """Learn, look, save, load, and learn on."""
    rng = np.random.default_rng(0)
    D = truth(rng)
    new = next(signals(D, np.random.default_rng(1)))
    model = DictionaryLearning(ATOMS, alpha=0.15, forgetting=0.1, transform_nonzeros=NONZEROS, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        for count, batch in enumerate(signals(D, rng), start=1):
            model.partial_fit(batch)
            if count in LOOKS:
                share, left = found(model, D), error(model, new)
                print(f"after {count * BATCH:6} signals: {share:4.0%} of the atoms, error {left:.4f}")
            if count == LOOKS[-1] // 2:
                save(model, Path(folder, "stream.princomp"))
                model = load(Path(folder, "stream.princomp"))
                print("             saved, loaded, and on")
            if count == LOOKS[-1]:
                break


if __name__ == "__main__":
    main()
