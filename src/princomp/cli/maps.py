"""Components of voxels as maps: NIfTI files and a picture, written by a fit; and the mask that a transform takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from princomp._text import printable
from princomp._version import __version__
from princomp.cli.folder import Results

if TYPE_CHECKING:
    from princomp.estimators.description import Description, Side

MASK, MAPS, PICTURE = FILES = ("mask.nii.gz", "maps.nii.gz", "maps.png")
LARGEST_SUMMARY = 2**24  # bytes that are read of one
APART = 0.1  # of what varies: networks of a synthetic brain hold as much, all together
DRAWN = 20  # of more components, the first ones


def are_volumes(rows: Any) -> bool:
    """Tell whether columns are voxels."""
    from princomp.data.layout import VoxelLayout

    return isinstance(rows.layout, VoxelLayout)


def mean_image(rows: Any) -> Any:
    """Return the mean of all volumes, (voxels,); None if rows are no volumes."""
    return rows.reduce(_sum) / rows.shape[0] if are_volumes(rows) else None


def _sum(block: Any, rows: slice) -> Any:
    return block.sum(axis=0, dtype="f8")


def write_maps(place: Results, rows: Any, found: Description, background: Any) -> None:
    """Write mask, maps and their picture, if rows are volumes; a method without weights of voxels has no maps."""
    import numpy as np

    from princomp.data.nifti import write_volumes
    from princomp.estimators.description import Loadings

    if not are_volumes(rows):
        return
    layout, says = rows.layout, f"princomp {__version__}"
    with place.path(MASK).open("wb") as file:
        write_volumes(file, layout, np.ones((1, layout.size)), np.uint8, f"{says}: voxels of a fit")
    weights = [part for part in found.sections if isinstance(part, Loadings) and part.weights.shape[1] == layout.size]
    if not weights:
        return
    ordered = weights[0].in_order()
    with place.path(MAPS).open("wb") as file:
        write_volumes(file, layout, ordered.weights, np.float32, f"{says}: components of {found.model}")
    _draw(place.path(PICTURE), layout, ordered, background)


def _draw(path: Path, layout: Any, found: Any, background: Any) -> None:
    from matplotlib import pyplot

    figure = drawn(layout, found, background)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def drawn(layout: Any, found: Any, background: Any) -> Any:
    """Return a matplotlib Figure of the first components, which says so if there are more."""
    import matplotlib

    from princomp import plots

    matplotlib.use("Agg")  # no window, whatever the settings are
    axes = plots.maps(found.weights[:DRAWN], layout, background=background, names=found.components[:DRAWN])
    figure = axes[0, 0].figure
    if len(found.weights) > DRAWN:
        figure.suptitle(f"The first {DRAWN} of {len(found.weights)}; {MAPS} has all", fontsize=10)
    return figure


def mask_beside(model: str, data: str, mask: str | None) -> str | None:
    """Return the mask that a fit left beside its model, if volumes are read and no other one is given."""
    beside = Path(model).with_name(MASK)
    return str(beside) if mask is None and data.lower().endswith((".nii", ".nii.gz")) and beside.exists() else mask


def check_several(data: str, rows: Any) -> None:
    """Raise DataError if there is one volume only, which shows nothing that rises and falls."""
    from princomp.data import DataError

    if are_volumes(rows) and rows.shape[0] == 1:
        raise DataError(
            f"{printable(data)} holds one volume: give a 4-D scan, or several files by a pattern such as 'vol-*.nii'."
        )


def scans_apart(rows: Any) -> list[str]:
    """Say so if scans in a row differ in their means, by much of what varies: one mean for all does not centre them."""
    import numpy as np

    from princomp.data.wrapped import subset

    scans = rows.labels.get("file")
    if not are_volumes(rows) or scans is None:
        return []
    n, names = len(scans), [*dict.fromkeys(scans)]
    origin = np.asarray(rows.block(0)[0], np.float64)  # of sums, whose squares would lose their digits far from it
    total, squares, of_means = np.zeros(len(origin)), 0.0, 0.0
    for name in names:
        volumes = np.flatnonzero(scans == name)
        sums, more = subset(rows, volumes).reduce(_moments, origin)
        total, squares, of_means = total + sums, squares + more, of_means + sums @ sums / len(volumes)
    of_all = total @ total / n
    share = (of_means - of_all) / (squares - of_all) if squares > of_all else 0.0
    if not share > APART + (len(names) - 1) / (n - 1):  # the last by chance alone; NaN is missing voxels
        return []
    return [
        f"The {len(names)} scans differ in their means: that is {share:.0%} of what varies, and components may tell no "
        "more than which scan a volume is from. Take its own mean off each scan before, voxel by voxel, and bring all "
        "to one scale."
    ]


def _moments(block: Any, rows: slice, origin: Any) -> tuple[Any, Any]:
    import numpy as np

    apart = block - origin
    return apart.sum(axis=0), np.asarray(np.vdot(apart, apart))


def image_shape(rows: Any) -> dict[str, list[int]]:
    """Return what a summary says of images: height, width, and 3 for colours; nothing of other data."""
    from princomp.data.layout import ImageLayout

    return {"image_shape": list(rows.layout.shape)} if isinstance(rows.layout, ImageLayout) else {}


def check_pixels(model: str, rows: Any) -> None:
    """Raise DataError if images have another shape than those of the fit, of which the summary beside it tells."""
    from princomp.data import DataError

    now = image_shape(rows).get("image_shape")
    try:
        with Path(model).with_name("summary.json").open("rb") as file:
            fitted = json.loads(file.read(LARGEST_SUMMARY)).get("image_shape")
    except (OSError, ValueError, AttributeError):  # none, or not one of ours
        return
    if now and isinstance(fitted, list) and now != fitted:
        then, here = (" x ".join(map(printable, shape)) for shape in (fitted, now))
        raise DataError(f"The model was fitted to images of {then} pixels, but these have {here}.")


def check_voxels(model: str, rows: Any, side: Side) -> None:
    """Raise DataError if volumes are read with other voxels than those of the fit, which may be just as many."""
    from princomp import read
    from princomp.data import DataError

    beside = Path(model).with_name(MASK)
    if not are_volumes(rows):
        return
    if not beside.exists():
        fitted_to = len(side.features)
        if not side.named and fitted_to != rows.shape[1]:
            raise DataError(
                f"The model was fitted to {fitted_to} voxels, but these volumes have {rows.shape[1]}: give --mask, "
                f"the {MASK} that the fit wrote."
            )
        return
    fitted, layout = read(beside, mask=beside).layout, rows.layout
    how = fitted.differs(layout.mask.shape, layout.affine)  # type: ignore[union-attr]
    if how or (fitted.mask != layout.mask).any():  # type: ignore[union-attr]
        raise DataError(f"The model was fitted to other voxels, those of {beside}: {how or 'the mask is another one'}.")
