"""An image from few random measurements of its patches, in a dictionary learned from another part of it.

python examples/compressed_sensing.py

A face, cut into two halves. Atoms are learned from one. Of each 8 x 8 patch of the other, 64 pixels, only 24 or 32
numbers are kept: products with random directions, Phi x. If x = a D with few nonzeros in a, then Phi x = a (D Phi'), so
the code is found from the measurements alone, by pursuit with the measured atoms, and a D is the patch.
"""

import warnings

import numpy as np
from matplotlib import cbook, pyplot

from princomp import DictionaryLearning, sparse_encode
from princomp.images import assemble, dct_dictionary, extract_patches, haar_dictionary

SIDE, ATOMS = 8, 256
COUNTS = (24, 32)  # measurements of a patch
NONZEROS = 8


def halves():
    """A grey face from 0 to 1, which comes with matplotlib: what is known, and what is measured."""
    colours = pyplot.imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    image = colours[120:344, 160:368].mean(axis=2) / 255
    return image[:, :104], image[:, 104:]


def learned(image):
    """Atoms for patches less their means, and the constant atom."""
    rows = extract_patches(image, SIDE)
    rows = rows - rows.mean(axis=1, keepdims=True)
    cosines = dct_dictionary(SIDE, ATOMS)
    model = DictionaryLearning(ATOMS - 1, alpha=0.02, max_iter=3, dict_init=cosines[1:], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three epochs are not the end, and nearly as good
        model.fit(rows)
    return np.vstack([cosines[:1], model.components_])


def recovered(image, dictionary, count):
    """The image from so many measurements of each patch; patches lie side by side."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(count, SIDE**2)) / np.sqrt(count)
    measured = extract_patches(image, SIDE, stride=SIDE) @ directions.T  # all that is kept of the image
    codes = sparse_encode(measured, dictionary @ directions.T, nonzeros=NONZEROS, error=0.02)
    return assemble(codes @ dictionary, image.shape, SIDE, stride=SIDE)


def main():
    """Learn, measure, recover, print."""
    known, new = halves()
    dictionaries = {
        "learned": learned(known),
        "cosines": dct_dictionary(SIDE, ATOMS),
        "Haar, shifted": haar_dictionary(SIDE, shifts=True),
    }
    for count in COUNTS:
        for name, dictionary in dictionaries.items():
            error = np.mean((recovered(new, dictionary, count) - new) ** 2)
            print(f"{count} numbers of 64, {name:14}{-10 * np.log10(error):6.2f} dB")


if __name__ == "__main__":
    main()
