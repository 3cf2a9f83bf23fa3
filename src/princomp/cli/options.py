"""Options that commands or methods share: sizes, counts of components, a configuration file."""

import json
import math
import re
import shlex
import tomllib
from collections.abc import Mapping
from math import prod
from typing import Any

import click

from princomp._text import listed, printable

UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


class Size(click.ParamType):  # type: ignore[type-arg]  # generic since Click 8.4
    """A number of bytes: 500M, 2G, 1.5GB, 2GiB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes."""
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", str(value).lower())
        if found is None or not (size := int(float(found[1]) * UNITS[found[2]])):
            self.fail(f"{printable(value)!r} is not a size. Write for example 500M or 2G.", param, ctx)
        return size


class Components(click.ParamType):  # type: ignore[type-arg]
    """How many components: a number, a share of the variance, or a word that says how to choose it."""

    name = "number"

    def __init__(self, words: tuple[str, ...]) -> None:
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float | str:
        """Return an int, a float in (0, 1), or one of the words."""
        if value in self.words:
            return str(value)
        try:
            number = -1.0 if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        if 1 <= number < 2**31 and number == int(number):
            return int(number)
        if not 0 < number < 1:
            words = f"nor one of {', '.join(self.words)}"
            self.fail(f"{printable(value)!r} is neither a count, nor a share between 0 and 1, {words}.", param, ctx)
        return number


class Total(click.ParamType):  # type: ignore[type-arg]
    """What the numbers of each cell add up to: a number, or the word median."""

    name = "total"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return a float above 0, or the word."""
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if value != "median" and not 0 < number < math.inf:
            self.fail(f"{printable(value)!r} is neither a number above 0 nor the word median.", param, ctx)
        return "median" if value == "median" else number


class ImageShape(click.ParamType):  # type: ignore[type-arg]
    """Height and width of an image, and 3 if it is coloured: 8x8, 8x12, 8x8x3."""

    name = "shape"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, checked: a configuration file holds it as it is."""
        if re.fullmatch(r"[1-9]\d{0,4}x[1-9]\d{0,4}(x3)?", str(value)) is None:
            self.fail(f"{printable(value)!r} is not a shape. Write for example 8x8, or 8x8x3 for colours.", param, ctx)
        return str(value)


def as_shape(text: str | None) -> tuple[int, ...] | None:
    """Return the shape of an image that `ImageShape` let through."""
    return None if text is None else tuple(int(side) for side in text.split("x"))


def as_images(rows: Any, options: Mapping[str, Any]) -> tuple[Any]:
    """Return the rows; complain now, before the work, if they cannot be images of the shape given."""
    shape = as_shape(options["image_shape"])
    if shape is not None and prod(shape) != rows.shape[1]:
        text = options["image_shape"]
        raise click.UsageError(f"--image-shape {text} is {prod(shape)} numbers, but rows have {rows.shape[1]}.")
    return (rows,)


def read_config(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Take a TOML file's values as defaults: what is written on the command line wins."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{printable(path)} is not TOML: {printable(error)}.") from error
    except OSError as error:
        raise click.BadParameter(f"Cannot read {printable(path)}: {error.strerror}.") from error
    # By their long names, as on the command line; arguments by their own.
    known = {opt.lstrip("-").replace("-", "_"): each.name for each in ctx.command.params for opt in each.opts}
    values = {name.replace("-", "_"): value for name, value in values.items()}
    if unknown := sorted(set(values) - set(known) | {"config", "help"} & set(values)):
        raise click.BadParameter(f"{printable(path)} has unknown keys: {listed(unknown)}.")
    many = {each.name for each in ctx.command.params if each.multiple}
    nested = sorted(
        name
        for name, value in values.items()
        if not isinstance(value, (str, int, float, list) if known[name] in many else (str, int, float))
    )
    if nested:
        raise click.BadParameter(f"{printable(path)}: {listed(nested)} must be a text, a number, true or false.")
    ctx.default_map = {str(known[name]): value for name, value in values.items()}
    return path


config_option = click.option(
    "--config",
    is_eager=True,
    callback=read_config,
    type=click.Path(),
    help="A TOML file with options by their long names; the command line wins.",
)


def as_toml(values: dict[str, Any]) -> str:
    """Return values (texts, numbers, truth values, lists) as a TOML file; what is None is left out."""
    # JSON's spelling of these is TOML's too.
    return "".join(f"{name} = {json.dumps(_plain(value))}\n" for name, value in values.items() if value is not None)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return list(value) if isinstance(value, tuple) else value


def reading_options(command: Any) -> Any:
    """Add the options that say how a file is to be understood: those of `princomp.read`."""
    options = (
        click.option("--label", metavar="COLUMN", help="Column that colours the points; not a feature."),
        click.option("--index", metavar="COLUMN", help="Column of sample names; not a feature."),
        click.option("--drop", metavar="COLUMN", multiple=True, help="Column to leave out; several times for several."),
        click.option("--decimal", type=click.Choice([".", ","]), help="Decimal mark of a table. [default: found out]"),
        click.option("--delimiter", metavar="CHARACTER", help="What separates cells. [default: found out]"),
        click.option("--header/--no-header", default=None, help="Whether line 1 has names. [default: found out]"),
        click.option("--layer", metavar="NAME", help="Of .h5ad: the layer to read, or raw. [default: X]"),
        click.option("--mask-var", metavar="COLUMN", help="Of .h5ad: column of var, true for the genes to keep."),
        click.option("--normalize", type=Total(), help="Of .h5ad: total of each cell, such as 1e4, or median."),
        click.option("--log1p", is_flag=True, default=None, help="Of .h5ad: take log(1 + x), after --normalize."),
        click.option("--sheet", metavar="NAME", help="Sheet of an .xlsx file. [default: the first]"),
        click.option("--mask", metavar="FILE", help="NIfTI image: voxels where it is not 0 are the features."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def as_read(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `princomp.read` is given of a command's options."""
    names = ("label", "index", "decimal", "delimiter", "header", "layer", "mask_var", "log1p", "sheet", "mask")
    total = options["normalize"]
    changed = {"drop": list(options["drop"]), "normalize": True if total == "median" else total}
    return {name: options[name] for name in (*names, "memory_limit")} | changed


def as_options(note: str) -> str:
    """Return a note of `princomp.read` with its parameters spelled as on the command line."""
    return re.sub(r"(?<= )(index|mask_var|normalize|sheet)=('[^']*'|[\d.e+-]*\d)?", _as_option, note)


def _as_option(found: re.Match[str]) -> str:
    name = f"--{found[1].replace('_', '-')}"
    return f"{name} {shlex.quote(found[2].strip(chr(39)))}" if found[2] else name


memory_option = click.option("--memory-limit", type=Size(), help="Do not plan for more than this, for example 2G.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Say only what you should know.")
force_option = click.option("--force", is_flag=True, help="Replace results that are there.")
raw_option = click.option("--raw-csv", is_flag=True, help="Leave texts that look like formulae as they are.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")

# Parameters that several methods have

SCALE = click.Option(["--scale"], is_flag=True, default=None, help="Divide columns by their standard deviation.")
CENTER = click.Option(
    ["--center/--no-center"], default=None, help="Subtract the mean (default), or leave the data as they are."
)
TOL = click.Option(["--tol"], type=click.FloatRange(min=0), help="Bound on the residual of the certificate.")
MAX_ITER = click.Option(["--max-iter"], type=click.IntRange(min=1), help="Bound on iterations.")
TIME_LIMIT = click.Option(
    ["--time-limit"],
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End the fit after so long, with the best answer so far.",
)
IMAGE_SHAPE = click.Option(
    ["--image-shape"],
    type=ImageShape(),
    help="Rows are images of this shape, such as 8x8 or 8x8x3: the report draws components so.",
)
