"""Images as rows: all of a folder, or those of a pattern, each a row of its pixels."""

import io
import os
import struct
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from princomp._text import listed, shown
from princomp.data.layout import ImageLayout
from princomp.data.reading import DataError, File, Request, brief, natural, plural
from princomp.data.rows import Rows
from princomp.data.stored import Sink

KINDS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".pgm", ".ppm")
DECODERS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "PPM")  # Pillow has others, which run other programs
# Modes of Pillow that are kept as they are, and the type of a pixel; all others become grey or colours.
KEPT = {"L": "u1", "I;16": "u2", "I;16L": "u2", "I;16B": "u2", "I;16N": "u2", "I": "i4", "F": "f4", "RGB": "u1"}
GREY = {"1": "L", "LA": "L", "La": "L"}
RESCALED = ("ppm", "ppm_plain")  # Pillow's decoders that bring pixels to 8 or 16 bits
OTHER_RANGE = "other range"
ORIENTATION = 0x0112  # of EXIF: how the camera was held
TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # what it says, as Pillow's `Image.Transpose`
SIDEWAYS = (2, 4, 5, 6)  # of these
SVG = "is a drawing (SVG), not an image of pixels: save it as .png."


def need_pillow() -> Any:
    """Return Pillow's module of images, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('Images are read with Pillow: pip install "princomp[io]"') from error
    return Image


@dataclass(frozen=True)
class _Seen:
    """What an image is, known without its pixels."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    without: tuple[str, ...]  # what of it is not read
    turn: Any = None  # of Pillow, that brings it upright

    @property
    def size(self) -> str:
        height, width, *colours = self.shape
        return f"{width} x {height} pixels{' in colour' if colours else ''}"


def read_images(files: Sequence[File], request: Request) -> Rows:
    """Read images of one size, one after the other."""
    need_pillow()
    files = sorted(files, key=lambda file: natural(file.path))
    seen = [_look(file, request) for file in files]
    for file, each in zip(files, seen):
        if each.shape != seen[0].shape:
            what = f"{file.name} is {each.size}, but {files[0].name} is {seen[0].size}"
            raise DataError(f"{what}: bring all images to one size, grey or in colour.")
        if each.dtype != seen[0].dtype:  # the same grey is another number there
            what = f"{file.name} has pixels of {each.dtype}, but {files[0].name} of {seen[0].dtype}"
            raise DataError(f"{what}: save all images with as many bits.")
    width = int(np.prod(seen[0].shape))
    sink = Sink(width, seen[0].dtype, request.kept)
    more: list[str] = []
    for file, each in zip(files, seen):
        with _opened(file) as image:
            kept = image if image.mode in KEPT else image.convert("RGB" if len(each.shape) == 3 else "L")
            pixels = np.asarray(kept if each.turn is None else kept.transpose(each.turn))
            if _has_more(image):
                more.append(os.path.basename(file.path))
        sink.append(pixels.reshape(1, width))
    rows = sink.finish(request.blocks)
    rows.layout = ImageLayout(seen[0].shape)
    rows.sample_names = tuple(shown(os.path.basename(file.path), None) for file in files)
    rows.notes = tuple(_notes(seen, more))
    return rows


def _look(file: File, request: Request) -> _Seen:
    with _opened(file) as image:
        (width, height), mode = image.size, image.mode
        grey = mode in GREY or (mode in KEPT and mode != "RGB")
        dtype = np.dtype(KEPT.get(mode, "u1"))
        without = ("transparency",) if mode.endswith(("A", "a")) or "transparency" in image.info else ()
        if not grey and any("16" in str(tile[3]) for tile in image.tile):
            without = (*without, "the lower 8 of 16 bits")
        if any(tile[0] in RESCALED and tile[3] not in (255, 65535) for tile in image.tile):
            without = (*without, OTHER_RANGE)
        turn = _turn(image)
        if turn in SIDEWAYS:
            width, height = height, width
        # As it is unpacked, converted, and as numbers.
        request.require(12 * width * height, f"{file.name}, {width} x {height} pixels,")
    if min(width, height) < 1:
        raise DataError(f"{file.name} has no pixels.")
    return _Seen((height, width) if grey else (height, width, 3), dtype, without, turn)


def _turn(image: Any) -> int | None:
    """Return how Pillow is to transpose a photograph whose camera was not held upright, or None.

    In TIFF files it does so by itself.
    """
    if image.format not in ("JPEG", "MPO"):
        return None
    try:
        return TURNS.get(image.getexif().get(ORIENTATION))
    except FAULTS:  # metadata that cannot be read say nothing
        return None


def _has_more(image: Any) -> bool:
    """Tell whether there are frames after the first one; damaged ones count as none."""
    try:
        image.seek(1)
    except (EOFError, *FAULTS):
        return False
    return True


def _notes(seen: Sequence[_Seen], more: Sequence[str]) -> Iterator[str]:
    for what in ("transparency", "the lower 8 of 16 bits"):
        if many := sum(what in each.without for each in seen):
            yield f"Left out {what} of {plural(many, 'image')}."
    if many := sum(OTHER_RANGE in each.without for each in seen):
        yield f"{plural(many, 'image')} of another range than 8 or 16 bits: Pillow brought the pixels to that."
    if more:
        yield f"Of {plural(len(more), 'image')} with several frames the first one was read: {listed(more)}."


FAULTS = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, OverflowError, struct.error, RuntimeError)


@contextmanager
def _opened(file: File) -> Iterator[Any]:
    """Yield an image whose pixels are not read yet; what goes wrong with it is a DataError."""
    Image = need_pillow()
    with file.open() as raw, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd metadata
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        stream = io.BufferedReader(cast(io.RawIOBase, raw))
        try:
            with Image.open(stream, formats=DECODERS) as image:
                yield image
        except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
            most = f"Pillow refuses more than {Image.MAX_IMAGE_PIXELS} pixels, which could fill the memory"
            raise DataError(f"{file.name} is too large: {most}. Make it smaller.") from error
        except Image.UnidentifiedImageError as error:
            raise DataError(f"{file.name} is damaged, or no image of a kind that can be read.") from error
        except (DataError, MemoryError):
            raise
        except FAULTS as error:
            raise DataError(f"{file.name} is damaged ({brief(error)}).") from error
        finally:
            stream.detach()


# --- folders ------------------------------------------------------------------------------------------


def images_in(folder: str) -> tuple[list[str], tuple[str, ...]]:
    """Return the images of a folder, and a note on what else is there; hidden files are passed over."""
    images, others = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and entry.name.lower().endswith(KINDS):
                images.append(entry.path)
            elif not entry.name.startswith("."):
                others.append(entry.name)
    others.sort(key=natural)
    name = shown(folder, None)
    if not images:
        drawn = " SVG files are drawings: save them as .png." if any(map(_is_svg, others)) else ""
        raise DataError(
            f"{name} is a folder without images ({', '.join(KINDS)}): name a file, or several by a pattern such as "
            f"{os.path.join(name, '*.csv')}.{drawn}"
        )
    note = f"Left out what is no image file in {name}: {listed(others)}."
    return sorted(images, key=natural), (note,) if others else ()


def _is_svg(name: str) -> bool:
    return name.lower().endswith((".svg", ".svgz"))
