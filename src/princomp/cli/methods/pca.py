"""Plain PCA on the command line."""

import click

from princomp.cli.methods import Method
from princomp.cli.options import CENTER, MAX_ITER, SCALE, TIME_LIMIT, TOL

METHOD = Method(
    name="pca",
    estimator="PCA",
    summary="the directions of most variance",
    options=(
        SCALE,
        click.Option(["--whiten"], is_flag=True, default=None, help="Divide scores by their standard deviation."),
        CENTER,
        click.Option(
            ["--solver"], type=click.Choice(["auto", "eigh", "svd", "krylov", "optimize"]), help="How to compute it."
        ),
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    shares=True,
    choices=("mle",),
)
