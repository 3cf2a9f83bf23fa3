"""Frames of a clip, split by a fit: the background and what is left of each, as images, and a strip of some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from princomp.cli.folder import Results

if TYPE_CHECKING:
    from princomp._typing import Array

BACKGROUND, FOREGROUND, STRIP = FILES = ("background", "foreground", "strip.png")
IN_STRIP = 6  # frames
TAKEN_APART = ("pcp", "outlier-pursuit")  # methods that leave a low-rank part of the data themselves


def are_images(rows: Any) -> bool:
    """Tell whether rows are images, all of one size."""
    from princomp.data.layout import ImageLayout

    return isinstance(rows.layout, ImageLayout)


def write_frames(place: Results, estimator: Any, rows: Any) -> None:
    """Write background and foreground of each image under its own name, and the strip, if rows are images.

    The foreground is what the background leaves, signed: halved, about the middle grey.
    """
    import numpy as np
    from PIL import Image

    if not are_images(rows):
        return
    names = _names(rows)
    for folder in (BACKGROUND, FOREGROUND):
        place.path(folder).mkdir()
    many = min(IN_STRIP, rows.shape[0])
    chosen = set(((np.arange(many) + 0.5) * (rows.shape[0] / many)).astype(int).tolist())
    kept: list[list[Array]] = []
    for number, images in enumerate(_split(estimator, rows)):
        for folder, image in zip((BACKGROUND, FOREGROUND), images[1:], strict=True):
            Image.fromarray(image).save(place.path(folder) / names[number])
        if number in chosen:
            kept.append(images)
    _draw(place.path(STRIP), kept)


def _names(rows: Any) -> list[str]:
    """Return the names of the files, those of the frames, with a number before them if two would be the same."""
    stems = [Path(name).stem for name in rows.sample_names]
    if len(set(stems)) < len(stems):
        stems = [f"{number:0{len(str(len(stems)))}d}-{stem}" for number, stem in enumerate(stems, start=1)]
    return [f"{stem}.png" for stem in stems]


def _split(estimator: Any, rows: Any) -> Iterator[list[Array]]:
    """Yield frame, background and foreground, each as an image of as many bits as the frame has, 8 or 16."""
    import numpy as np

    low_rank = estimator.low_rank_ if estimator.method in TAKEN_APART else None
    bits, low, high = _range(rows)
    for i in range(len(rows.offsets) - 1):
        block = np.asarray(rows.block(i), np.float64)
        found = estimator.inverse_transform(estimator.transform(block)) if low_rank is None else low_rank[rows.rows(i)]
        found = np.asarray(found, np.float64)
        for frame, background in zip(np.where(np.isnan(block), found, block), found, strict=True):
            parts = (frame - low, background - low, (frame - background + high - low) / 2)
            yield [
                np.clip((part * ((2**bits - 1) / (high - low))).round(), 0, 2**bits - 1)
                .astype(f"u{bits // 8}")
                .reshape(rows.layout.shape)
                for part in parts
            ]


def _range(rows: Any) -> tuple[int, float, float]:
    """Return bits of a pixel, and the values of black and white: of pixels that are not 8 or 16 bits, the extremes."""
    import numpy as np

    kind = np.asarray(rows.block(0)).dtype
    if kind in (np.uint8, np.uint16):
        return 8 * kind.itemsize, 0.0, float(np.iinfo(kind).max)
    low, high = rows.reduce(_extremes, combine=_farther)
    return 8, float(low), float(high) if high > low else float(low) + 1.0


def _extremes(block: Array, rows: slice) -> tuple[Any, Any]:
    import numpy as np

    return np.nanmin(block), np.nanmax(block)


def _farther(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
    return min(one[0], other[0]), max(one[1], other[1])


def _draw(path: Path, kept: list[list[Array]]) -> None:
    import matplotlib
    import numpy as np

    from princomp import plots

    matplotlib.use("Agg")  # no window, whatever the settings are
    from matplotlib import pyplot

    frames, background, foreground = (np.array(images) for images in zip(*kept, strict=True))
    height, width = frames.shape[1:3]
    across = 1.8 * len(frames)
    figure, axes = pyplot.subplots(
        figsize=(across + 1, across / len(frames) * 3 * height / width + 0.2), layout="constrained"
    )
    rows = {"frame": frames, "background": background, "foreground": foreground}
    plots.image_mosaic(
        {name: each.reshape(len(each), -1) for name, each in rows.items()},
        shape=frames.shape[1:],
        most=IN_STRIP,
        limits=(0.0, float(np.iinfo(frames.dtype).max)),
        axes=axes,
    )
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
