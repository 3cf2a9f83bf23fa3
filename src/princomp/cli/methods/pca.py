"""Plain PCA on the command line."""

import click

from princomp.cli.methods import Method
from princomp.cli.options import CENTER, MAX_ITER, SCALE, TOL

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
    ),
    shares=True,
    choices=("mle",),
)
