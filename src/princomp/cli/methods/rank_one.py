"""Rank-1 dictionary learning on the command line."""

from collections.abc import Mapping
from typing import Any

import click

from princomp._text import printable
from princomp.cli.methods import Method
from princomp.cli.options import CENTER, IMAGE_SHAPE, MAX_ITER, SCALE, TIME_LIMIT, TOL, as_images
from princomp.cli.tables import sample_column

MIXED = 0.1  # planted pairs of 30 features each that are found as they are: .03; networks that are mixed: .15 to .35


class Nonzeros(click.ParamType):  # type: ignore[type-arg]
    """A count, a share of the features, or one of either for each pair, by commas: 100, 0.07, 100,50,20."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return an int, a float, or a list of them."""
        try:
            found = [int(text) if text.strip().isdigit() else float(text) for text in str(value).split(",")]
        except ValueError:
            found = [0]
        if not all(each >= 1 if isinstance(each, int) else 0 < each <= 1 for each in found):
            self.fail(f"{printable(value)!r} is neither a count, nor a share such as 0.07, nor a list of them.", param)
        return found if len(found) > 1 else found[0]


def tables(estimator: Any, rows: Any, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return atoms.csv: the course of each pair over the samples, of length 1."""
    return {"atoms.csv": sample_column(rows) | {f"atom_{j + 1}": atom for j, atom in enumerate(estimator.atoms_.T)}}


def notes(estimator: Any, rows: Any) -> list[str]:
    """Say that pairs may be mixed, where each was found without those after it and these would move it."""
    share = 0.0 if estimator.refine else pull(estimator.atoms_, estimator.components_)
    if share <= MIXED:
        return []
    return [
        f"Pairs were found one after the other, without those after them, which would move one by {share:.0%} or so: "
        "early ones may hold parts of several. Sweeps over all of them take these apart: --refine 20."
    ]


def pull(U: Any, V: Any) -> float:
    """Return what pairs, at most, take off a u or v before them, relative to its length: 0 if none moves another."""
    import numpy as np

    held = V.any(axis=1)
    U, V = U[:, held].astype(np.float64), V[held].astype(np.float64)
    V /= np.abs(V).max(initial=1e-300)
    lengths = np.linalg.norm(V, axis=1)
    V /= lengths[:, None]
    alike = np.maximum(np.abs(U.T @ U), np.abs(V @ V.T)) * lengths / lengths[:, None]
    return float(np.triu(alike, 1).max(initial=0.0))


METHOD = Method(
    name="rank-one",
    estimator="RankOneDictionary",
    summary="pairs of a course over the samples and the few features that follow it (R1DL)",
    options=(
        click.Option(
            ["--nonzeros"],
            type=Nonzeros(),
            help="Features of a pair: a count, a share, or one for each pair, by commas. [default: 0.07]",
        ),
        click.Option(["--refine"], type=click.IntRange(min=0), help="Sweeps over all pairs afterwards. [default: 0]"),
        click.Option(["--n-init"], type=click.IntRange(min=1), help="Starts of each pair. [default: 1]"),
        click.Option(["--nonnegative"], is_flag=True, default=None, help="No negative loadings."),
        CENTER,
        SCALE,
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    defaults={"center": True},  # files of scans have a baseline, in which pairs would drown
    shares=True,
    at_most_rank=False,
    reading=(IMAGE_SHAPE,),
    sides=as_images,
    files=("atoms.csv",),
    tables=tables,
    notes=notes,
)
