"""``princomp denoise`` and ``princomp inpaint``: image files without noise or gaps, pictures of before and after."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from princomp._atomic import atomic_file
from princomp._text import printable
from princomp.cli.exits import BAD_DATA, OUTPUT, USAGE, Failure, reading, writing
from princomp.cli.options import force_option, quiet_option
from princomp.cli.show import Log, tell

if TYPE_CHECKING:
    from princomp._typing import Array

FORMATS = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF", ".jpg": "JPEG", ".jpeg": "JPEG"}
DENOISERS = (
    "local-pca", "ksvd", "online", "dct", "haar", "pca", "smoothness", "pixel-lasso", "total-variation", "wavelet"
)  # fmt: skip
SHADES = 16  # beside black: a mask may have some, for kinds of gaps or soft edges
LIGHT = 0.9  # of the lightest shade, up to which a pixel is neither black nor white
GAP = 8  # pixels between before and after
WINDOW, BAND = 7, 256  # pixels: of structural similarity, whose windows begin in so many rows at a time
FINE = {"quality": 95, "subsampling": 0}  # of JPEG: by default Pillow adds much of what was just taken away

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="File for the image: .png, .tif or .jpg; by default beside IMAGE, .png, or .tif for what a .png cannot hold.",
)
reference_option = click.option(
    "--reference", type=click.Path(), help="The true image, if there is one: prints PSNR and SSIM of the result."
)


@click.command()
@click.argument("image", type=click.Path())
@output_option
@click.option(
    "--sigma",
    type=click.FloatRange(min=0),
    help="Level of the noise, in the units of the pixels; estimated by default.",
)
@click.option("--method", type=click.Choice(DENOISERS), default="local-pca", show_default=True)
@click.option(
    "--recipe",
    type=click.Choice(["quick", "full"]),
    default="quick",
    show_default=True,
    help="How long atoms are learned.",
)
@reference_option
@force_option
@quiet_option
def denoise(
    image: str,
    output: str | None,
    sigma: float | None,
    method: str,
    recipe: str,
    reference: str | None,
    force: bool,
    quiet: bool,
) -> None:
    """Take the noise out of IMAGE: a PNG, JPEG or TIFF file.

    A picture of before and after is written beside the result.
    """
    from princomp.images import denoise, estimate_noise

    log = Log(quiet=quiet)
    pixels = read_image(image, log)
    path = _target(image, output, "denoised", pixels.dtype, force)
    true = None if reference is None else _read_reference(reference, image, pixels, log)
    with reading(image):
        level = estimate_noise(pixels) if sigma is None else sigma
        if sigma is None:
            log.tell(f"Noise of about {level:.3g} in the units of the pixels.")
        found = denoise(pixels, level, method, recipe=recipe, verbose=int(not quiet))
    kept = write_pictures(path, pixels, found, log)
    del found  # of a large photograph, the largest there is
    if true is not None:
        tell(f"Before: {_closeness(pixels, true)}")
        tell(f"After: {_closeness(kept, true)}")


@click.command()
@click.argument("image", type=click.Path())
@click.option("--mask", required=True, type=click.Path(), help="Image of the same size, black where all is there.")
@output_option
@click.option("--method", type=click.Choice(DENOISERS[:6]), default="local-pca", show_default=True)
@reference_option
@force_option
@quiet_option
def inpaint(
    image: str, mask: str, output: str | None, method: str, reference: str | None, force: bool, quiet: bool
) -> None:
    """Fill in what IMAGE, a PNG, JPEG or TIFF file, lacks where --mask is not black.

    A picture of before and after is written beside the result.
    """
    import numpy as np

    from princomp.images import inpaint

    log = Log(quiet=quiet)
    pixels = read_image(image, log)
    path = _target(image, output, "inpainted", pixels.dtype, force)
    missing = _read_mask(mask, pixels.shape[:2], log)
    true = None if reference is None else _read_reference(reference, image, pixels, log)
    with reading(image):
        found = inpaint(pixels, missing, method, verbose=int(not quiet))
    before = np.where(missing if pixels.ndim == 2 else missing[..., None], 0, pixels)
    kept = write_pictures(path, before, found, log)
    if true is not None:
        among = f", over the missing pixels {_peak(kept, true, missing)}" if missing.any() else ""
        tell(f"After: {_closeness(kept, true)}{among}")


def read_image(path: str, log: Log) -> Array:
    """Return the pixels of an image file, (height, width) or (height, width, 3)."""
    from princomp import read
    from princomp.data.layout import ImageLayout

    with reading(path):
        rows = read(path)
        if not isinstance(rows.layout, ImageLayout):
            raise ValueError("this is no image: give a PNG, JPEG or TIFF file.")
        if rows.shape[0] != 1:
            raise ValueError(f"these are {rows.shape[0]} images: give one of them.")
        for note in rows.notes:
            log.note(note)
        return rows.block(0).reshape(rows.layout.shape)


def _read_mask(path: str, shape: tuple[int, ...], log: Log) -> Array:
    """Return where an image is not black; complain, if it has the right shape, of a picture in place of a mask."""
    import numpy as np

    shades = read_image(path, log)
    shades = shades.max(axis=2) if shades.ndim == 3 else shades
    found = np.unique(shades[shades != 0])
    between = np.mean((shades != 0) & (shades < LIGHT * shades.max()))
    if shades.shape == shape and len(found) > SHADES and between > 0.5:
        raise Failure(
            f"{printable(path)} looks like a picture, not like a mask: {between:.0%} of its pixels, in {len(found)} "
            "shades, are neither black nor white. Draw a mask of the same size, black where the image is whole and "
            "white where it is to be filled in.",
            BAD_DATA,
        )
    if len(found) > 1:
        what = f"{printable(path)} has {len(found)} shades beside black: all of them count as missing"
        log.note(f"{what}. If it should have one, do not save it as JPEG, which adds some.")
    log.tell(f"{np.mean(shades != 0):.1%} of the pixels are missing.")
    return np.asarray(shades != 0)


def _read_reference(path: str, image: str, pixels: Array, log: Log) -> Array:
    """Return the true image; complain before any work if it cannot be compared."""
    with reading(path):
        try:
            from skimage import metrics  # noqa: F401
        except ImportError as error:
            raise ImportError('--reference needs scikit-image: pip install "princomp[images]"') from error
    found = read_image(path, log)
    if (found.shape, found.dtype) != (pixels.shape, pixels.dtype):
        these, those = (f"{each.shape} of {each.dtype}" for each in (found, pixels))
        raise Failure(f"{printable(path)} has pixels {these}, but {printable(image)} {those}.", BAD_DATA)
    return found


def _closeness(found: Array, true: Array) -> str:
    """Return how close an image is to the true one, in words, as scikit-image measures it."""
    words = f"PSNR {_peak(found, true)}"
    return words if min(true.shape[:2]) < WINDOW else f"{words}, SSIM {_similarity(found, true):.4f}"


def _similarity(found: Array, true: Array) -> float:
    """Return the structural similarity, in bands of rows: of a whole photograph it takes gigabytes."""
    from skimage.metrics import structural_similarity

    how = {"data_range": _range(true), "channel_axis": 2 if true.ndim == 3 else None, "win_size": WINDOW}
    total, windows = 0.0, len(true) - WINDOW + 1
    for top in range(0, windows, BAND):
        many = min(BAND, windows - top)
        rows = slice(top, top + many + WINDOW - 1)
        total += many * float(structural_similarity(true[rows], found[rows], **how))
    return total / windows


def _peak(found: Array, true: Array, where: Any = ...) -> str:
    import numpy as np
    from skimage.metrics import peak_signal_noise_ratio

    if np.array_equal(found[where], true[where]):
        return "inf dB"
    return f"{peak_signal_noise_ratio(true[where], found[where], data_range=_range(true)):.2f} dB"


def _range(true: Array) -> float:
    """Return from black to white: all that such pixels may be, or, of no such kind, what they are."""
    import numpy as np

    if true.dtype in (np.uint8, np.uint16):
        return float(np.iinfo(true.dtype).max)
    return float(true.max()) - float(true.min()) or 1.0


def write_pictures(path: Path, before: Array, after: Array, log: Log) -> Array:
    """Write an image, in the kind of pixels that it had, and one of before and after beside each other, 8 bits.

    Returns the pixels that were written.
    """
    import numpy as np
    from PIL import Image

    kept = _as_stored(after, before.dtype, log)
    both = np.concatenate([before, np.full((len(before), GAP, *before.shape[2:]), before.max()), kept], axis=1)
    if both.dtype != np.uint8:
        low, high = float(before.min()), float(before.max())
        both = np.clip((both - low) * (255 / (high - low or 1.0)), 0, 255).astype(np.uint8)
    for target, pixels in ((path, kept), (beside(path), both)):
        with writing(target), atomic_file(target) as file:
            kind = FORMATS[target.suffix.lower()]
            Image.fromarray(pixels).save(file, kind, **(FINE if kind == "JPEG" else {}))
    log.tell(f"Written: {printable(path)} and, before and after, {printable(beside(path))}")
    return kept


def _as_stored(found: Array, dtype: Any, log: Log) -> Array:
    """Return pixels as a file has them: whole numbers are rounded and cut off, of which the log hears."""
    import numpy as np

    from princomp.data.reading import plural

    if dtype.kind == "f":
        return found.astype(np.float32)
    limits = np.iinfo(dtype)
    out = int(((found < limits.min - 0.5) | (found > limits.max + 0.5)).sum())
    if out:
        log.tell(
            f"Cut off, since the file cannot hold them: {plural(out, 'value')} beyond {limits.min} to {limits.max}."
        )
    return np.clip(np.rint(found), limits.min, limits.max).astype(dtype)


def beside(path: Path) -> Path:
    """Return where the picture of before and after goes."""
    return path.with_name(f"{path.stem}-before-after.png")


def _target(image: str, output: str | None, word: str, dtype: Any, force: bool) -> Path:
    """Return where the result goes; complain before any work about what cannot be written."""
    held = {"TIFF", *{"uint8": ("PNG", "JPEG"), "uint16": ("PNG",)}.get(str(dtype), ())}
    kind = ".png" if "PNG" in held else ".tif"
    path = Path(output) if output is not None else Path(image).with_name(f"{Path(image).stem}-{word}{kind}")
    if path.suffix.lower() not in FORMATS:
        raise Failure(f"-o must end in {', '.join(FORMATS)}; got {printable(path)}.", USAGE)
    if (into := FORMATS[path.suffix.lower()]) not in held:
        raise Failure(f"Pixels of {dtype} do not go into a {into} file: end -o in {kind}.", USAGE)
    if not path.parent.is_dir():
        raise Failure(f"{printable(path.parent)} is no folder: make it first.", OUTPUT)
    for each in (path, beside(path)):
        if os.path.lexists(each) and not force:
            raise Failure(f"{printable(each)} is there already. Replace it with --force.", OUTPUT)
    return path
