"""The pictures of docs/neuroimaging.md, drawn by make_pictures.py."""

import numpy as np

SHAPE = (45, 54, 40)
CENTRES = (  # of the regions of each network, in a head that reaches from -1 to 1 each way
    ((-0.45, 0.5, 0.15), (0.45, 0.5, 0.15)),
    ((0.0, -0.62, 0.15), (0.0, 0.62, 0.35)),
    ((-0.6, -0.15, 0.4), (0.6, -0.15, 0.4)),
)


def brain(n=150, seed=0):
    """Volumes (n, voxels) of a head in which three networks rise and fall, and where its voxels lie."""
    from princomp.data.layout import VoxelLayout

    rng = np.random.default_rng(seed)
    x, y, z = np.meshgrid(*(np.linspace(-1, 1, side) for side in SHAPE), indexing="ij")
    wave = 0.04 * np.sin(7 * np.arctan2(y, x)) * np.cos(5 * z)
    depth = np.sqrt((x / 0.82) ** 2 + (y / 0.98) ** 2 + (z / 0.88) ** 2) + wave
    mask = depth < 1
    folds = np.sin(14 * x + 3 * np.sin(5 * y)) * np.sin(12 * y + 2 * np.sin(6 * z)) * np.sin(11 * z)
    grey = 1 / (1 + np.exp(-(depth + 0.12 * folds - 0.78) / 0.04))
    ventricles = np.exp(-(((np.abs(x) - 0.13) / 0.09) ** 2 + (y / 0.3) ** 2 + ((z - 0.1) / 0.18) ** 2))
    image = 650 - 200 * grey - 450 * ventricles + 25 * folds
    X = image[mask] + 12 * rng.normal(size=(n, int(mask.sum())))
    for number, centres in enumerate(CENTRES):
        network = sum(np.exp(-((x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2) / 0.03) for a, b, c in centres)
        X += np.outer(np.sin(np.arange(n) / (2.5 + number) + number), (22 - 4 * number) * network[mask])
    affine = np.array([[-3.5, 0, 0, 77], [0, 3.5, 0, -95], [0, 0, 3.5, -62], [0, 0, 0, 1]])
    return X.astype(np.float32), VoxelLayout(mask, affine)


def maps(plt):
    """Sparse components of a synthetic brain over its mean image."""
    from princomp import SparsePCA, plots

    X, layout = brain()
    model = SparsePCA(3, nonzeros=600).fit(X)
    names = [f"component {j}" for j in (1, 2, 3)]
    panels = plots.maps(model.components_, layout, background=X.mean(axis=0), names=names)
    return panels[0, 0].figure
