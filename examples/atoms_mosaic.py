"""What a photograph is made of: atoms learned from its patches, in colour.

python examples/atoms_mosaic.py                 prints how they are used (needs pillow, which matplotlib brings)
python examples/atoms_mosaic.py picture.png     draws the photograph, the atoms, and what few of them make of it
"""

import sys

import numpy as np
from sklearn.datasets import load_sample_image

from princomp import DictionaryLearning, sparse_encode
from princomp.images import assemble, extract_patches

SIDE, ATOMS, NONZEROS = 8, 196, 5


def photograph():
    """A Chinese temple, every second pixel, from 0 to 1."""
    return load_sample_image("china.jpg")[::2, ::2] / 255


def main():
    """Learn, code, count, draw."""
    image = photograph()
    rows = extract_patches(image, SIDE, stride=3)
    colours = rows.reshape(len(rows), -1, 3).mean(axis=1)  # of each patch: atoms need not know them
    model = DictionaryLearning(ATOMS, alpha=0.3, random_state=0).fit(without_colour(rows, colours))
    side_by_side = extract_patches(image, SIDE, stride=4)
    colours = side_by_side.reshape(len(side_by_side), -1, 3).mean(axis=1)
    codes = sparse_encode(without_colour(side_by_side, colours), model.components_, nonzeros=NONZEROS)
    back = assemble(codes @ model.components_ + np.tile(colours, SIDE * SIDE), image.shape, SIDE, stride=4)
    ratio = -10 * np.log10(np.mean((back - image) ** 2))
    usage = np.bincount(codes.indices, minlength=ATOMS)
    print(f"{len(rows)} patches of {SIDE} x {SIDE} pixels in three colours, {ATOMS} atoms")
    print(f"{NONZEROS} atoms and the mean colour of a patch give the image back at {ratio:.1f} dB")
    most = usage.max() / codes.shape[0]
    print(f"the most used atom is in {most:.1%} of the patches, {np.sum(usage == 0)} atoms are in none")
    if len(sys.argv) > 1:
        draw(sys.argv[1], image, model, usage, back)


def without_colour(rows, colours):
    """Patches less their mean colours."""
    return rows - np.tile(colours, SIDE * SIDE)


def draw(path, image, model, usage, back):
    """Draw the photograph, the atoms, the most used ones first, and the photograph by few atoms."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from princomp import plots

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(15, 4.5), layout="constrained")
    for axes, each, title in ((left, image, "photograph"), (right, back, f"{NONZEROS} atoms of a patch")):
        axes.imshow(np.clip(each, 0, 1))
        axes.set(title=title, xticks=[], yticks=[])
    plots.atoms(model, shape=(SIDE, SIDE, 3), usage=usage, axes=middle)
    middle.set_title("atoms, the most used ones first")
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
