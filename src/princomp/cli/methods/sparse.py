"""Sparse PCA on the command line."""

import click

from princomp.cli.methods import Method
from princomp.cli.methods.pca import METHOD as PCA

SHARED = ("scale", "center", "tol", "max_iter")

METHOD = Method(
    name="sparse",
    estimator="SparsePCA",
    summary="components of few features",
    options=(
        click.Option(["--nonzeros"], type=click.IntRange(min=1), help="Features that each component may use."),
        click.Option(["--alpha"], type=click.FloatRange(min=0), help="Weight of the penalty, instead of --nonzeros."),
        click.Option(["--alpha-share"], type=click.FloatRange(0, 1), help="The same as a share of the largest."),
        click.Option(
            ["--formulation"],
            type=click.Choice(["auto", "dictionary", "regression", "constrained"]),
            help="Which sparse PCA: see the documentation.",
        ),
        click.Option(["--ridge"], type=click.FloatRange(min=0), help='For "regression".'),
        click.Option(["--bound"], type=click.FloatRange(min=1), help='For "constrained": on the l1 norm.'),
        click.Option(["--nonnegative"], is_flag=True, default=None, help="No negative loadings."),
        *(option for option in PCA.options if option.name in SHARED),
    ),
    at_most_rank=False,
)
