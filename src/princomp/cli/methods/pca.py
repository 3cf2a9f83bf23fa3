"""Plain PCA on the command line."""

import click

from princomp.cli.methods import Method

METHOD = Method(
    name="pca",
    estimator="PCA",
    summary="the directions of most variance",
    options=(
        click.Option(["--scale"], is_flag=True, default=None, help="Divide columns by their standard deviation."),
        click.Option(["--whiten"], is_flag=True, default=None, help="Divide scores by their standard deviation."),
        click.Option(
            ["--center/--no-center"], default=None, help="Subtract the mean (default), or leave the data as they are."
        ),
        click.Option(
            ["--solver"], type=click.Choice(["auto", "eigh", "svd", "krylov", "optimize"]), help="How to compute it."
        ),
        click.Option(["--tol"], type=click.FloatRange(min=0), help="Bound on the residual of the certificate."),
        click.Option(["--max-iter"], type=click.IntRange(min=1), help="Bound on iterations."),
    ),
    shares=True,
    choices=("mle",),
)
