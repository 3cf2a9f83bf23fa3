"""Digits told apart by their patches: codes of small patches, summed over parts of the image, feed a classifier.

python examples/bag_of_patches.py                 prints the accuracies
python examples/bag_of_patches.py picture.png     draws the atoms too (needs matplotlib)

Atoms are learned from patches of 4 x 4 pixels without any label. A digit becomes the strength with which each atom,
and its negative, is used in each quarter of the image: so a stroke counts wherever it lies in there.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from princomp import DictionaryLearning
from princomp.images import extract_patches

SIDE, ATOMS = 4, 64
PLACES = 8 - SIDE + 1  # along a side of a digit


def patches(digits):
    """All patches less their means, (digits * places, pixels)."""
    # One tall image: only patches that lie inside of one digit are kept.
    tall = digits.reshape(-1, 8)
    rows = extract_patches(tall, SIDE).reshape(-1, PLACES, SIDE * SIDE)
    inside = np.arange(len(rows)) % 8 < PLACES
    rows = rows[inside].reshape(-1, SIDE * SIDE)
    return rows - rows.mean(axis=1, keepdims=True)


def features(model, digits):
    """Codes of both signs, summed over quarters: (digits, 4 * 2 * atoms)."""
    codes = model.transform(patches(digits))
    both = np.hstack([np.maximum(codes, 0), np.maximum(-codes, 0)]).reshape(-1, PLACES, PLACES, 2 * ATOMS)
    half = (PLACES + 1) // 2
    ends = (slice(None, half), slice(PLACES - half, None))
    return np.hstack([both[:, down, across].sum(axis=(1, 2)) for down in ends for across in ends])


def main():
    """Learn atoms, classify, print, draw."""
    digits = load_digits()
    few, test, few_labels, test_labels = train_test_split(
        digits.data / 16, digits.target, train_size=300, stratify=digits.target, random_state=0
    )
    model = DictionaryLearning(ATOMS, alpha=0.2, random_state=0).fit(patches(few))
    used = np.count_nonzero(model.transform(patches(test)), axis=1).mean()
    print(f"{ATOMS} atoms from the patches of {len(few)} digits; a new patch takes {used:.1f} of them")
    accuracies = {}
    for name, make in (("pixels", lambda rows: rows), ("bag of patches", lambda rows: features(model, rows))):
        steps = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        classifier = GridSearchCV(steps, {"logisticregression__C": [0.01, 0.1, 1.0]}, cv=3)
        accuracies[name] = classifier.fit(make(few), few_labels).score(make(test), test_labels)
        print(f"  {name:15} {accuracies[name]:.1%} of {len(test)} other digits are told right")
    if len(sys.argv) > 1:
        import matplotlib

        matplotlib.use("Agg")
        from princomp import plots

        plots.atoms(model).figure.savefig(sys.argv[1], dpi=120)
        print(f"wrote {sys.argv[1]}")


if __name__ == "__main__":
    main()
