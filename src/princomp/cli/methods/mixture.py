"""Mixtures of probabilistic PCA on the command line."""

import click

from princomp.cli.methods import Method
from princomp.cli.methods.probabilistic import METHOD as PROBABILISTIC

METHOD = Method(
    name="mixture",
    estimator="ProbabilisticPCAMixture",
    summary="hidden groups of samples, each with components of its own; cells may be missing",
    options=(
        click.Option(
            ["--groups", "--n-clusters", "n_clusters"], type=click.IntRange(min=1), help="How many groups. [default: 2]"
        ),
        *PROBABILISTIC.some("n_init", "tol", "max_iter"),
    ),
    components=2,
    tables=PROBABILISTIC.tables,
    notes=PROBABILISTIC.notes,
)
