"""Sparse PCA on the command line."""

from dataclasses import dataclass
from typing import Any

import click

from princomp.cli.methods import Method, columns_option
from princomp.cli.options import CENTER, MAX_ITER, SCALE, TIME_LIMIT, TOL


@dataclass(frozen=True)
class Sparse(Method):
    """A method whose options may clash."""

    def make(self, options: dict[str, Any]) -> Any:
        """Return the estimator; options that mean nothing together are no fault of the data."""
        from princomp.estimators.sparse.clashes import clash

        estimator = super().make(options)
        wrong = clash(estimator.get_params())
        if wrong is not None:
            raise click.UsageError(wrong)
        return estimator


METHOD = Sparse(
    name="sparse",
    estimator="SparsePCA",
    summary="components of few features",
    options=(
        click.Option(["--nonzeros"], type=click.IntRange(min=1), help="Features that each component may use."),
        click.Option(
            ["--retain"],
            type=click.FloatRange(0, 1, min_open=True),
            help="Without --nonzeros: the fewest features that keep this share of the variance. [default: 0.9]",
        ),
        click.Option(["--certify"], is_flag=True, default=None, help="Prove how good each component is."),
        click.Option(["--node-limit"], type=click.IntRange(min=1), help="Subproblems for the proof of a component."),
        columns_option("--include", "Feature forced into each component"),
        columns_option("--exclude", "Feature that no component may use"),
        click.Option(["--alpha"], type=click.FloatRange(min=0), help="Weight of the penalty, instead of --nonzeros."),
        click.Option(["--alpha-share"], type=click.FloatRange(0, 1), help="The same as a share of the largest."),
        click.Option(
            ["--formulation"],
            type=click.Choice(["auto", "cardinality", "dictionary", "regression", "constrained"]),
            help="Which sparse PCA: see the documentation.",
        ),
        click.Option(["--ridge"], type=click.FloatRange(min=0), help='For "regression".'),
        click.Option(["--bound"], type=click.FloatRange(min=1), help='For "constrained": on the l1 norm.'),
        click.Option(["--nonnegative"], is_flag=True, default=None, help="No negative loadings."),
        SCALE,
        CENTER,
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    at_most_rank=False,
)
