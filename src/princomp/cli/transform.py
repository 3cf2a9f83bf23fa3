"""``princomp transform``: scores of new data under a fitted model."""

import io
import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from princomp._atomic import atomic_file
from princomp._text import listed, printable
from princomp.cli.exits import OUTPUT, Failure, reading, writing
from princomp.cli.fit import limits, require_extras, score_columns
from princomp.cli.maps import check_pixels, check_voxels, mask_beside
from princomp.cli.options import (
    as_options,
    as_read,
    force_option,
    memory_option,
    quiet_option,
    raw_option,
    reading_options,
)
from princomp.cli.show import Log
from princomp.cli.tables import write_table

LARGEST_CONFIG = 2**20  # bytes that are read of a config.toml


@click.command()
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    type=click.Path(allow_dash=True),
    default="-",
    show_default=True,
    help="File for the scores, .csv or .parquet; - for CSV on standard output.",
)
@reading_options
@raw_option
@force_option
@memory_option
@quiet_option
def transform(model: str, data: str, output: str, quiet: bool, force: bool, **options: Any) -> None:
    """Write the scores of DATA under MODEL, a .princomp file.

    The features are found by their names, where the model has names; other columns are ignored.
    """
    from princomp import load, read
    from princomp.estimators.description import describe, describe_scores

    if options["normalize"] == "median":
        raise click.UsageError(
            "--normalize median would be the median of these cells, not of those that were fitted. Give the number "
            "that princomp fit told: it is in the notes of its summary.json."
        )
    require_extras("pyarrow")
    log = Log(quiet=quiet)
    path = Path(output)
    if output != "-":
        if path.suffix not in (".csv", ".parquet"):
            raise click.UsageError(f"-o must end in .csv or .parquet, or be -; got {printable(output)}.")
        if os.path.lexists(path) and not force:
            raise Failure(f"{printable(path)} is there already. Replace it with --force.", OUTPUT)
    with limits(options["memory_limit"], None):
        with reading(model):
            estimator = load(model)
        with reading(data):
            given = as_read(options)
            rows = read(data, **given | {"mask": mask_beside(model, data, given["mask"])})
            side = describe(estimator).sides[0]
            check_voxels(model, rows, side)
            check_pixels(model, rows)
            of_data = [note for note in rows.notes if not (side.named and "mask_var=" in note)]  # it has its genes
            for note in (*prepared_otherwise(model, data, options), *map(as_options, of_data)):
                log.note(note)
            scores = describe_scores(estimator, *_sides(estimator, rows, log))
    table = score_columns(rows, scores)
    kind = "parquet" if path.suffix == ".parquet" else "csv"
    if output == "-":
        text = io.BytesIO()
        write_table(text, table, raw=options["raw_csv"])
        _print(text.getvalue())
        return
    with writing(path), atomic_file(path) as file:
        write_table(file, table, kind=kind, raw=options["raw_csv"])
    log.tell(f"Written: {printable(path)}")


def prepared_otherwise(model: str, data: str, options: dict[str, Any]) -> list[str]:
    """Say how the fit of a model read its AnnData file, as told beside it, if this command reads one in another way.

    Not of --mask-var: the model finds its genes by their names.
    """
    try:
        with Path(model).with_name("config.toml").open("rb") as file:
            fitted = tomllib.loads(file.read(LARGEST_CONFIG).decode())
    except (OSError, ValueError):  # none, or not one of ours
        return []
    if not data.lower().endswith(".h5ad"):
        return []
    told = []
    for name in ("layer", "normalize", "log1p"):
        then, now = fitted.get(name), options[name]
        as_median = then == "median" and now is not None  # a number, which is the median most likely
        if then and then != now and not as_median:
            value = f"{then:.15g}" if isinstance(then, float) else shlex.quote(str(then))
            told.append(f"--{name}" if then is True else f"--{name} {value}")
    return [f"The fit read its data with {' '.join(told)}; this command does not."] if told else []


def _sides(estimator: Any, rows: Any, log: Log) -> list[Any]:
    """Return the columns that the model takes; those of a second side if they are there."""
    from princomp.data.wrapped import columns
    from princomp.estimators.description import describe

    first, *others = describe(estimator).sides
    if not first.named and rows.names is not None:
        log.note("The model has no feature names: columns are taken in their order.")
    found = [columns(rows, first.features) if first.named else rows]
    for side in others:
        there = set(rows.names or ()) - set(first.features)
        missing = [name for name in side.features if name not in there]
        if side.named and not missing:
            found.append(columns(rows, side.features))
        else:
            log.note(f"Scores of one side only: of the other, these columns are not there: {listed(missing)}.")
    return found


def _print(content: bytes) -> None:
    """Write all of it to standard output, which, without a buffer, may take only a part at a time."""
    stream = sys.stdout.buffer
    left = memoryview(content)
    while left:
        left = left[stream.write(left) :]
