"""Mixtures of probabilistic PCA on the command line."""

import click

from princomp.cli.methods import Method
from princomp.cli.methods.probabilistic import METHOD as PROBABILISTIC
from princomp.cli.options import MAX_ITER, TIME_LIMIT, TOL

METHOD = Method(
    name="mixture",
    estimator="ProbabilisticPCAMixture",
    summary="hidden groups of samples, each with components of its own; cells may be missing",
    options=(
        click.Option(
            ["--groups", "--n-clusters", "n_clusters"], type=click.IntRange(min=1), help="How many groups. [default: 2]"
        ),
        click.Option(["--n-init"], type=click.IntRange(min=1), help="Starts, of which the best is kept. [default: 5]"),
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    components=2,
    files=PROBABILISTIC.files,
    tables=PROBABILISTIC.tables,
    notes=PROBABILISTIC.notes,
)
