"""Sparse canonical correlation on the command line: the columns of a file in two sides."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import click

from princomp._text import listed
from princomp.cli.methods import Method, columns_option
from princomp.cli.options import MAX_ITER, TIME_LIMIT, TOL


def sides(rows: Any, options: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the columns of X, and those that ``--other`` names."""
    from princomp.data.wrapped import columns

    if options["other"] is None:
        raise click.UsageError("The method cca needs --other COLUMN, the columns of the other side.")
    if rows.names is None:
        raise ValueError("The data have no column names, which --other needs: use a CSV or Parquet file.")
    for asked in options["other"]:
        if not any(_means(asked, name) for name in rows.names):
            text = "holds text" if asked in rows.labels else "is none of the columns"
            raise ValueError(f"--other {asked!r} {text}: {listed(rows.names)}.")
    other = [name for name in rows.names if any(_means(asked, name) for asked in options["other"])]
    if len(other) == len(rows.names):
        raise ValueError("--other names all columns: none is left for the first side.")
    return columns(rows, [name for name in rows.names if name not in set(other)]), columns(rows, other)


def _means(asked: str, name: str) -> bool:
    return name == asked or fnmatchcase(name, asked)


METHOD = Method(
    name="cca",
    estimator="SparseCCA",
    summary="what two sets of features have in common, by few of each",
    options=(
        click.Option(["--alpha-x"], type=click.FloatRange(min=0), help="Weight of the penalty on the first side."),
        click.Option(["--alpha-y"], type=click.FloatRange(min=0), help="Weight of the penalty on the other side."),
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    components=1,
    reading=(columns_option("--other", "For cca: column of the other side, or a pattern such as 'gene_*'"),),
    sides=sides,
)
