"""A brain that does not exist: networks of voxels, each with a course in time, in noise."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from princomp.datasets.base import Dataset, Floats, Integers, RandomState, at_least, not_negative

# Balls of each network: centre (left to right, back to front, bottom to top, each from -1 to 1), radius, and sign. One
# that is not in the middle has a twin on the other side.
NETWORKS = {
    "visual": ((0.18, -0.72, -0.05, 0.30, 1),),
    "motor": ((0.50, -0.05, 0.55, 0.30, 1),),
    "auditory": ((0.72, -0.10, 0.00, 0.28, 1),),
    "default": ((0.00, 0.62, 0.10, 0.26, 1), (0.00, -0.45, 0.35, 0.26, 1), (0.52, -0.50, 0.28, 0.22, 1)),
    "attention": ((0.42, 0.40, 0.45, 0.26, 1), (0.00, -0.38, 0.30, 0.26, -1)),
    "salience": ((0.48, 0.42, -0.18, 0.24, 1), (0.00, 0.38, 0.42, 0.26, 1)),
}
SHIFT = 0.03  # standard deviation of a ball's place: no two brains are the same
WIDTH = 2.0  # scans: standard deviation of the window that makes courses smooth


@dataclass(frozen=True, eq=False, repr=False)
class Brain(Dataset):
    """Scans of a brain with known networks (`make_brain`)."""

    X: Floats  # (n_samples, p), a row for each scan, a column for each voxel of the mask
    mask: NDArray[np.bool_]  # `shape`, p voxels are in it: volume[mask] = row puts a row in its place
    maps: Floats  # (6, p), what each network adds to a voxel, zero for most
    courses: Floats  # (n_samples, 6), of mean square 1
    names: tuple[str, ...]  # of the networks
    subjects: Integers  # (n_samples,), of whom a scan is


def make_brain(
    n_samples: int = 200,
    *,
    shape: tuple[int, int, int] = (24, 28, 20),
    n_subjects: int = 1,
    strength: float = 1.5,
    correlation: float = 0.3,
    noise: float = 1.0,
    random_state: RandomState = 0,
) -> Brain:
    """Draw scans of an ellipsoid in which six networks are active, each in its own time.

    X = courses @ maps + noise * E, E standard normal. A network is two to four balls of voxels, mostly one on either
    side, strongest in the middle; some overlap, and "attention" has a part of the other sign, which lies in one of
    "default". Courses are smooth in time. Invented, not anatomy.

    Parameters
    ----------
    n_samples : int, default=200
        Number of scans, those of all subjects together.
    shape : (int, int, int), default=(24, 28, 20)
        Voxels from left to right, from back to front, from bottom to top. About half of them are in the mask.
    n_subjects : int, default=1
        Whose scans are stacked, one after the other: networks are the same, courses are each one's own.
    strength : float, default=1.5
        What a network adds to the voxel in the middle of a ball, as a standard deviation over time.
    correlation : float, default=0.3
        Correlation that the courses of two networks have, on average: 0 to less than 1.
    noise : float, default=1.0
        Standard deviation of the white noise.
    random_state : int, numpy.random.Generator or None, default=0
        Same integer, same data. None: new data at each call.

    Returns
    -------
    Brain
        `X`, `mask`, and the truth: `maps`, `courses`, `names`, `subjects`.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.datasets import make_brain
    >>> brain = make_brain(100, n_subjects=2, random_state=0)
    >>> brain.X.shape == (100, brain.mask.sum())
    True
    >>> volume = np.zeros(brain.mask.shape)
    >>> volume[brain.mask] = brain.maps[brain.names.index("visual")]
    >>> volume.shape
    (24, 28, 20)
    """
    at_least(1, n_subjects=n_subjects)
    at_least(2 * n_subjects, n_samples=n_samples)
    if len(shape) != 3 or min(shape) < 8:
        raise ValueError(f"shape must be three numbers of voxels, of at least 8, got {shape}")
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must be 0 to less than 1, got {correlation}")
    not_negative(strength=strength, noise=noise)
    rng = np.random.default_rng(random_state)
    sides = [(np.arange(side) + 0.5) / side * 2 - 1 for side in shape]
    places = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)
    mask = (places**2).sum(axis=-1) <= 1
    maps = strength * np.stack([_network(places[mask], balls, rng) for balls in NETWORKS.values()])
    subjects = np.arange(n_samples) * n_subjects // n_samples
    courses = np.concatenate([_courses(count, correlation, rng) for count in np.bincount(subjects).tolist()])
    X = courses @ maps
    X += noise * rng.standard_normal(X.shape)
    return Brain(X=X, mask=mask, maps=maps, courses=courses, names=tuple(NETWORKS), subjects=subjects)


def _network(places: Floats, balls: tuple[tuple[float, ...], ...], rng: np.random.Generator) -> Floats:
    """Return what a network is at each place: a ball is 1 in its middle and 0 from its radius on."""
    total = np.zeros(len(places))
    for x, y, z, radius, sign in balls:
        for side in (-x, x) if x else (x,):
            away = places - ((side, y, z) + SHIFT * rng.standard_normal(3))
            total += sign * np.maximum(1 - (away**2).sum(axis=1) / radius**2, 0.0)
    return total


def _courses(count: int, correlation: float, rng: np.random.Generator) -> Floats:
    """Return smooth courses of one subject, (count, networks), of mean square 1."""
    reach = round(3 * WIDTH)
    window = np.exp(-0.5 * (np.arange(-reach, reach + 1) / WIDTH) ** 2)
    white = rng.standard_normal((count + 2 * reach, len(NETWORKS) + 1))
    smooth = np.column_stack([np.convolve(column, window, mode="valid") for column in white.T])
    own, shared = smooth[:, :-1], smooth[:, -1:]
    mixed = np.sqrt(1 - correlation) * own + np.sqrt(correlation) * shared
    return np.asarray(mixed / np.sqrt((mixed**2).mean(axis=0)))
