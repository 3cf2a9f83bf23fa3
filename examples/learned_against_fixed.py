"""How many coefficients an image takes: atoms learned from images like it, cosines, Haar wavelets.

python examples/learned_against_fixed.py                    prints the table (needs matplotlib, for its sample images)
python examples/learned_against_fixed.py picture.png        draws the images and the atoms too

A face and a slice of a head, cut into two halves: atoms are learned from all patches of one half; then patches of the
other half, side by side, are written as sums of as few atoms as keep its peak signal-to-noise ratio at 32, 36 and
40 dB. All dictionaries have the constant atom, are about as large, and are used by the same pursuit.
"""

import sys
import warnings

import numpy as np
from matplotlib import cbook, pyplot

from princomp import DictionaryLearning, sparse_encode
from princomp.images import assemble, dct_dictionary, extract_patches, haar_dictionary

SIDE, ATOMS = 8, 256
RATIOS = (32, 36, 40)  # dB


def pictures():
    """Two grey images from 0 to 1, which come with matplotlib."""
    colours = pyplot.imread(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))
    with cbook.get_sample_data("s1045.ima.gz") as file:
        head = np.frombuffer(file.read(), np.uint16).reshape(256, 256)
    return {"face": colours[120:344, 160:368].mean(axis=2) / 255, "slice": head[28:220, 24:216] / head.max()}


def halves(image):
    """The left half to learn from, and the right half to code, as wide as patches fit side by side."""
    middle = image.shape[1] // 2
    return image[:, :middle], image[:, middle : middle + SIDE * ((image.shape[1] - middle) // SIDE)]


def learned(image):
    """Atoms for all patches of an image less their means, and the constant atom for these."""
    rows = extract_patches(image, SIDE)
    rows = rows - rows.mean(axis=1, keepdims=True)
    cosines = dct_dictionary(SIDE, ATOMS)
    model = DictionaryLearning(ATOMS - 1, alpha=0.02, max_iter=3, dict_init=cosines[1:], random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three epochs are not the end, and nearly as good
        model.fit(rows)
    return np.vstack([cosines[:1], model.components_])


def coefficients(image, dictionary, ratio):
    """The least number of coefficients with which the image has this ratio, by halving what patches may differ."""
    rows = extract_patches(image, SIDE, stride=SIDE)
    allowed = 10 ** (-ratio / 20)  # root mean squared error of a pixel
    low, high = 0.0, 4 * SIDE * allowed  # of a patch
    for _ in range(12):
        error = (low + high) / 2
        codes = sparse_encode(rows, dictionary, error=error)
        back = assemble(codes @ dictionary, image.shape, SIDE, stride=SIDE)
        if np.sqrt(np.mean((back - image) ** 2)) <= allowed:
            low, best = error, codes.nnz
        else:
            high = error
    return best


def draw(path, images, dictionaries):
    """Images on the left, their learned atoms on the right."""
    from princomp import plots

    figure, panels = pyplot.subplots(len(images), 2, figsize=(8, 4 * len(images)), layout="constrained")
    for (left, right), (name, image) in zip(panels, images.items(), strict=True):
        left.imshow(image, cmap="gray")
        left.set(title=name, xticks=[], yticks=[])
        plots.atoms(dictionaries[name]["learned"], axes=right)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    """Learn, count, print, draw."""
    images, dictionaries = pictures(), {}
    print(f"{'coefficients of a pixel':24}" + "".join(f"{ratio:>8} dB" for ratio in RATIOS))
    for name, image in images.items():
        known, new = halves(image)
        dictionaries[name] = {
            "learned": learned(known),
            "cosines": dct_dictionary(SIDE, ATOMS),
            "Haar, shifted": haar_dictionary(SIDE, shifts=True),
            "Haar, basis": haar_dictionary(SIDE),
        }
        counts = {
            kind: [coefficients(new, each, ratio) for ratio in RATIOS] for kind, each in dictionaries[name].items()
        }
        for kind, each in counts.items():
            print(f"{name}, {kind:18}".ljust(24) + "".join(f"{count / new.size:11.4f}" for count in each))
        others = np.array([each for kind, each in counts.items() if kind != "learned"])
        saved = 1 - np.array(counts["learned"]) / others.min(axis=0)
        print(f"{name}: {', '.join(f'{share:.0%}' for share in saved)} fewer than the best of the others")
    if len(sys.argv) > 1:
        draw(sys.argv[1], images, dictionaries)


if __name__ == "__main__":
    main()
