"""Components of voxels seen as slices: which slices to show, and their colours over a grey image."""

from dataclasses import dataclass

import numpy as np

from princomp._typing import Array
from princomp.data.layout import VoxelLayout

# Colours of values from 0 to the limit, and to minus the limit; what is next to 0 lets the image beneath be seen.
HOT = np.array([[0.72, 0.04, 0.05], [0.93, 0.28, 0.06], [1.0, 0.62, 0.1], [1.0, 0.93, 0.45]])
COLD = np.array([[0.1, 0.1, 0.62], [0.08, 0.35, 0.85], [0.15, 0.66, 0.97], [0.66, 0.96, 1.0]])
CLEAR, FULL = 0.05, 0.5  # shares of the limit: a value is not seen below the first, and covers all from the second on
DARK, LIGHT = 0.22, 0.82  # greys of the image beneath
MOST = 0.998  # of the values are within the limit: a few voxels far out do not fade the others
MUCH = 0.1  # of the squares in the fullest slice: slices with less are shown only if no others are left
SCALES = (
    "Slices from above, left on the left, through the largest values. Warm colours are positive weights, cold ones "
    "negative; what is near 0 lets the grey image beneath be seen. Each has a scale of its own."
)


@dataclass(frozen=True)
class Slices:
    """Axial slices of one component."""

    numbers: tuple[int, ...]  # of slices of the upright volume, from below
    colours: Array  # (slices, height, width, 3), from 0 to 1: seen from above, the front up, left on the left
    limit: float  # the value of the brightest colours


def slices(layout: VoxelLayout, values: Array, *, background: Array | None = None, count: int = 6) -> Slices:
    """Return the slices of a component, (voxels,), that hold most of it, over an image, (voxels,), if there is one.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.data.layout import VoxelLayout
    >>> from princomp.images.slices import slices
    >>> layout = VoxelLayout(np.ones((5, 6, 7), bool), np.diag([2.0, 2.0, 3.0, 1.0]))
    >>> weights = np.zeros((5, 6, 7))
    >>> weights[2, 3, 4] = 1.0
    >>> found = slices(layout, weights.ravel(), count=2)
    >>> found.numbers, found.colours.shape, found.limit
    ((3, 4), (2, 6, 5, 3), 1.0)
    """
    values = np.asarray(values, np.float64)
    size = np.abs(values[values != 0])
    limit = float(np.quantile(size, MOST)) if len(size) else 1.0
    greys = _greys(np.zeros(len(values)) if background is None else background)
    mask, volume, grey = map(layout.upright, (layout.mask, layout.volume(values), layout.volume(greys)))
    frame = tuple(_around(mask.any(axis=axes)) for axes in ((1, 2), (0, 2)))
    mask, volume, grey = mask[frame], volume[frame], grey[frame]
    numbers = _fullest(mask, volume, count)
    seen = [np.where(mask[..., z, None], painted(volume[..., z] / limit, grey[..., z]), 1.0) for z in numbers]
    return Slices(tuple(numbers), np.array([each.transpose(1, 0, 2)[::-1] for each in seen]), limit)


def painted(values: Array, grey: Array) -> Array:
    """Return the colours, (..., 3), of values from -1 to 1 over greys from 0 to 1."""
    size = np.minimum(np.abs(values), 1.0)
    ramp = np.where((values < 0)[..., None], _ramp(size, COLD), _ramp(size, HOT))
    cover = np.clip((size - CLEAR) / (FULL - CLEAR), 0.0, 1.0)[..., None]
    return cover * ramp + (1.0 - cover) * grey[..., None]


def _around(inside: Array) -> slice:
    """Return the places from the first to the last one inside."""
    places = np.flatnonzero(inside)
    return slice(int(places[0]), int(places[-1]) + 1)


def _ramp(size: Array, colours: Array) -> Array:
    places = np.linspace(0.0, 1.0, len(colours))
    return np.stack([np.interp(size, places, channel) for channel in colours.T], axis=-1)


def _greys(image: Array) -> Array:
    """Return an image as greys; its darkest and lightest fiftieth are one grey each."""
    image = np.nan_to_num(np.asarray(image, np.float64), posinf=0.0, neginf=0.0)
    low, high = np.quantile(image, [0.02, 0.98])
    share = (image - low) / (high - low) if high > low else np.full(len(image), 0.6)
    return DARK + (LIGHT - DARK) * np.clip(share, 0.0, 1.0)


def _fullest(mask: Array, volume: Array, count: int) -> list[int]:
    """Return the slices that hold most, in order; if many hold much, some that lie apart from each other."""
    inside = np.flatnonzero(mask.any(axis=(0, 1))).tolist()
    held = np.square(volume / (np.abs(volume).max() or 1.0)).sum(axis=(0, 1))  # tiny values have squares, too
    middle = held @ np.arange(len(held)) / held.sum() if held.any() else len(held) / 2
    ranked = sorted(inside, key=lambda z: (-held[z], abs(z - middle)))
    much = [z for z in ranked if held[z] >= MUCH * held[ranked[0]]]
    if len(much) <= count:
        return sorted(ranked[:count])
    picked: list[int] = []
    apart = len(inside) // (2 * count)
    while len(picked) < count:
        free = [z for z in much if all(abs(z - other) > apart for other in picked)]
        if free:
            picked.append(free[0])
        else:
            apart -= 1
    return sorted(picked)
