"""``princomp denoise`` and ``princomp inpaint``: image files without noise or gaps, pictures of before and after."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from princomp._atomic import atomic_file
from princomp._text import printable
from princomp.cli.exits import OUTPUT, USAGE, Failure, reading, writing
from princomp.cli.options import force_option, quiet_option
from princomp.cli.show import Log

if TYPE_CHECKING:
    from princomp._typing import Array

FORMATS = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF", ".jpg": "JPEG", ".jpeg": "JPEG"}
DENOISERS = (
    "local-pca", "ksvd", "online", "dct", "haar", "pca", "smoothness", "pixel-lasso", "total-variation", "wavelet"
)  # fmt: skip
GAP = 8  # pixels between before and after

output_option = click.option(
    "-o", "--output", type=click.Path(), help="File for the image: .png, .tif or .jpg; by default beside IMAGE, .png."
)


@click.command()
@click.argument("image", type=click.Path())
@output_option
@click.option("--sigma", type=float, help="Level of the noise, in the units of the pixels; estimated by default.")
@click.option("--method", type=click.Choice(DENOISERS), default="local-pca", show_default=True)
@click.option("--recipe", type=click.Choice(["quick", "full"]), default="quick", help="How long atoms are learned.")
@force_option
@quiet_option
def denoise(
    image: str, output: str | None, sigma: float | None, method: str, recipe: str, force: bool, quiet: bool
) -> None:
    """Take the noise out of IMAGE: a PNG, JPEG or TIFF file.

    A picture of before and after is written beside the result.
    """
    from princomp.images import denoise, estimate_noise

    log = Log(quiet=quiet)
    path = _target(image, output, "denoised", force)
    pixels = read_image(image, log)
    with reading(image):
        level = estimate_noise(pixels) if sigma is None else sigma
        if sigma is None:
            log.tell(f"Noise of about {level:.3g} in the units of the pixels.")
        found = denoise(pixels, level, method, recipe=recipe, verbose=int(not quiet))
    write_pictures(path, pixels, found, log)


@click.command()
@click.argument("image", type=click.Path())
@click.option("--mask", required=True, type=click.Path(), help="Image of the same size, black where all is there.")
@output_option
@click.option("--method", type=click.Choice(DENOISERS[:6]), default="local-pca", show_default=True)
@force_option
@quiet_option
def inpaint(image: str, mask: str, output: str | None, method: str, force: bool, quiet: bool) -> None:
    """Fill in what IMAGE, a PNG, JPEG or TIFF file, lacks where --mask is not black.

    A picture of before and after is written beside the result.
    """
    import numpy as np

    from princomp.images import inpaint

    log = Log(quiet=quiet)
    path = _target(image, output, "inpainted", force)
    pixels = read_image(image, log)
    missing = read_image(mask, log) != 0
    missing = missing.any(axis=2) if missing.ndim == 3 else missing
    with reading(image):
        found = inpaint(pixels, missing, method, verbose=int(not quiet))
    before = np.where(missing if pixels.ndim == 2 else missing[..., None], 0, pixels)
    write_pictures(path, before, found, log)


def read_image(path: str, log: Log) -> Array:
    """Return the pixels of an image file, (height, width) or (height, width, 3)."""
    from princomp import read
    from princomp.data.layout import ImageLayout

    with reading(path):
        rows = read(path)
        if not isinstance(rows.layout, ImageLayout):
            raise ValueError("this is no image: give a PNG, JPEG or TIFF file.")
        for note in rows.notes:
            log.note(note)
        return rows.block(0).reshape(rows.layout.shape)


def write_pictures(path: Path, before: Array, after: Array, log: Log) -> None:
    """Write an image, in the kind of pixels that it had, and one of before and after beside each other, 8 bits."""
    import numpy as np
    from PIL import Image

    kept = _as_stored(after, before.dtype, log)
    kind = FORMATS[path.suffix.lower()]
    if kept.dtype != np.uint8 and (kind == "JPEG" or (kind == "PNG" and kept.dtype != np.uint16)):
        raise Failure(f"Pixels of {kept.dtype} do not go into a {kind} file: end -o in .tif.", USAGE)
    both = np.concatenate([before, np.full((len(before), GAP, *before.shape[2:]), before.max()), kept], axis=1)
    if both.dtype != np.uint8:
        low, high = float(before.min()), float(before.max())
        both = np.clip((both - low) * (255 / (high - low or 1.0)), 0, 255).astype(np.uint8)
    for target, pixels in ((path, kept), (beside(path), both)):
        with writing(target), atomic_file(target) as file:
            Image.fromarray(pixels).save(file, FORMATS[target.suffix.lower()])
    log.tell(f"Written: {printable(path)} and, before and after, {printable(beside(path))}")


def _as_stored(found: Array, dtype: Any, log: Log) -> Array:
    """Return pixels as a file has them: whole numbers are rounded and cut off, of which the log hears."""
    import numpy as np

    if dtype.kind == "f":
        return found.astype(np.float32)
    limits = np.iinfo(dtype)
    out = int(((found < limits.min - 0.5) | (found > limits.max + 0.5)).sum())
    if out:
        log.tell(f"{out} values beyond {limits.min} to {limits.max}, which the file cannot hold, were cut off.")
    return np.clip(np.rint(found), limits.min, limits.max).astype(dtype)


def beside(path: Path) -> Path:
    """Return where the picture of before and after goes."""
    return path.with_name(f"{path.stem}-before-after.png")


def _target(image: str, output: str | None, word: str, force: bool) -> Path:
    """Return where the result goes; complain before any work about what cannot be written."""
    path = Path(output) if output is not None else Path(image).with_name(f"{Path(image).stem}-{word}.png")
    if path.suffix.lower() not in FORMATS:
        raise Failure(f"-o must end in {', '.join(FORMATS)}; got {printable(path)}.", USAGE)
    for each in (path, beside(path)):
        if os.path.lexists(each) and not force:
            raise Failure(f"{printable(each)} is there already. Replace it with --force.", OUTPUT)
    return path
