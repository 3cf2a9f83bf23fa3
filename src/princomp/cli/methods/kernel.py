"""Kernel PCA on the command line."""

from math import inf
from typing import Any

import click

from princomp.cli.methods import Method
from princomp.cli.options import MAX_ITER, TIME_LIMIT, TOL

# As in princomp.kernels, which is not imported before a command runs.
KERNELS = ("linear", "rbf", "laplacian", "polynomial", "cosine", "sigmoid", "knn-rbf", "normalized-rbf")


class Gamma(click.ParamType):  # type: ignore[type-arg]  # generic since Click 8.4
    """A number of at least 0, or a word by which it is found."""

    words = ("scale", "median", "held-out")
    name = f"number|{'|'.join(words)}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number or the word."""
        if isinstance(value, str) and value in self.words:
            return value
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not 0 <= number < inf:
            self.fail(f"{value!r} is neither a number of at least 0, nor one of {', '.join(self.words)}.", param, ctx)
        return number


METHOD = Method(
    name="kernel",
    estimator="KernelPCA",
    summary="curved directions: PCA in the feature space of a kernel",
    options=(
        click.Option(["--kernel"], type=click.Choice(KERNELS), help="[default: rbf]"),
        click.Option(["--gamma"], type=Gamma(), help="Width of the kernel. [default: 1 / number of features]"),
        click.Option(["--degree"], type=click.IntRange(min=1), help="Of the polynomial kernel. [default: 3]"),
        click.Option(["--coef0"], type=float, help="Of the polynomial and the sigmoid kernel. [default: 1]"),
        click.Option(["--n-neighbors"], type=click.IntRange(min=1), help="Of knn-rbf and normalized-rbf."),
        click.Option(
            ["--approximation"],
            type=click.Choice(["auto", "nystroem", "rpcholesky", "fourier"]),
            help="Landmarks or random features. [default: auto, exact up to 20,000 rows]",
        ),
        click.Option(["--rank"], type=click.IntRange(min=1), help="How many landmarks, or random features."),
        click.Option(
            ["--preimage"],
            type=click.Choice(["fixed-point", "ridge"]),
            help="How rows are found for scores. [default: the nearest row for rbf and linear, else ridge]",
        ),
        click.Option(
            ["--noise"],
            type=click.FloatRange(min=0, min_open=True),
            help="For held-out: how much noise is to be taken off, its standard deviation. [default: estimated]",
        ),
        TOL,
        MAX_ITER,
        TIME_LIMIT,
    ),
    choices=("held-out",),
    at_most_rank=False,
    up_to_rows=True,
)
