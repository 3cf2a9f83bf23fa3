"""Dictionary learning on the command line."""

from dataclasses import dataclass
from typing import Any

import click

from princomp.cli.methods import Method
from princomp.cli.options import IMAGE_SHAPE, MAX_ITER, TIME_LIMIT, TOL, as_images

PURSUIT = ("nonzeros", "error")
# Options that have a use with some values of others only, and which: None is what is not given.
NEEDS = {
    "update": ("--learning ksvd", "learning", ("ksvd",)),
    "batch_size": ("--learning online", "learning", (None, "online")),
    "forgetting": ("--learning online", "learning", (None, "online")),
    "l2": ("--penalty l1 or elastic-net", "penalty", (None, "l1", "elastic-net")),
}


@dataclass(frozen=True)
class Dictionary(Method):
    """A method whose options may clash."""

    def make(self, options: dict[str, Any]) -> Any:
        """Return the estimator; options that mean nothing together are no fault of the data."""
        wrong = clash(options)
        if wrong is not None:
            raise click.UsageError(wrong)
        return super().make(options)


def clash(given: dict[str, Any]) -> str | None:
    """Return what is wrong with options together, in a sentence; None if nothing is."""
    pursuit = [f"--{name}" for name in PURSUIT if given[name] is not None]
    for name in ("penalty", "alpha", "l2"):
        if pursuit and given[name] is not None:
            return f"--{name} has no use with {' and '.join(pursuit)}: codes are then found greedily, not by a penalty."
    if given["learning"] == "ksvd" and not pursuit:
        return "--learning ksvd needs --nonzeros or --error: its codes are found greedily."
    if given["selection"] is not None and not pursuit:
        return "--selection has no use without --nonzeros or --error."
    for name, (what, other, values) in NEEDS.items():
        if given[name] is not None and given[other] not in values:
            return f"--{name.replace('_', '-')} has no use without {what}."
    return None


METHOD = Dictionary(
    name="dictionary",
    estimator="DictionaryLearning",
    summary="samples as sums of few atoms, which are learnt",
    options=(
        click.Option(
            ["--learning"],
            type=click.Choice(["online", "batch", "ksvd"]),
            help="How atoms are learnt: from mini-batches, from all rows by turns, or by K-SVD. [default: online]",
        ),
        click.Option(
            ["--penalty"], type=click.Choice(["l1", "elastic-net", "l0", "lp"]), help="What codes cost. [default: l1]"
        ),
        click.Option(["--alpha"], type=click.FloatRange(min=0), help="Weight of the penalty. [default: 1]"),
        click.Option(["--l2"], type=click.FloatRange(min=0), help="Weight of half the squares of a code. [default: 0]"),
        click.Option(["--nonzeros"], type=click.IntRange(min=1), help="Atoms in a code, at most; greedy."),
        click.Option(
            ["--error"], type=click.FloatRange(min=0), help="Atoms until no more than this is left of a row; greedy."
        ),
        click.Option(
            ["--selection"], type=click.Choice(["ols", "omp"]), help="Which atom a greedy code takes. [default: ols]"
        ),
        click.Option(
            ["--loss"],
            type=click.Choice(["l2", "huber", "l1"]),
            help="How errors count; all but l2 resist wild cells. [default: l2]",
        ),
        click.Option(
            ["--constraint"], type=click.Choice(["ball", "sphere"]), help="Atoms of length at most 1, or of length 1."
        ),
        click.Option(["--positive-code"], is_flag=True, default=None, help="No negative coefficients."),
        click.Option(["--positive-dict"], is_flag=True, default=None, help="No negative entries of atoms."),
        click.Option(["--batch-size"], type=click.IntRange(min=1), help="Rows of a mini-batch. [default: 512]"),
        click.Option(
            ["--forgetting"], type=click.FloatRange(0, 1), help="Share of the past that a mini-batch makes forgotten."
        ),
        click.Option(
            ["--update"],
            type=click.Choice(["approximate", "exact"]),
            help="Of an atom by K-SVD: a step of the power method, or a singular vector. [default: approximate]",
        ),
        click.Option(
            ["--replace/--no-replace"], default=None, help="Replace atoms that hardly serve (default), or not."
        ),
        click.Option(["--max-seconds"], type=click.FloatRange(min=0, min_open=True), help="End learning after this."),
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    components=100,
    at_most_rank=False,
    up_to_rows=True,
    reading=(IMAGE_SHAPE,),
    sides=as_images,
    renamed={"learning": "method"},  # --method is taken
    files=("atoms.csv", "codes.csv", "codes.parquet"),
)
