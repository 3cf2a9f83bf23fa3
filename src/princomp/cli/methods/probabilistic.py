"""Probabilistic PCA on the command line."""

from collections.abc import Mapping
from typing import Any

import click

from princomp.cli.methods import Method
from princomp.cli.options import MAX_ITER, SCALE, TIME_LIMIT, TOL
from princomp.cli.tables import sample_column


def tables(estimator: Any, rows: Any, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return imputed.csv if cells are missing: the data with these filled in, then their standard deviations."""
    import numpy as np

    from princomp.data import statistics

    if not statistics.has_nan(rows):
        return {}
    filled, deviation = (np.asarray(part) for part in estimator.impute(rows, return_std=True))
    names = [f"x{j}" for j in range(rows.shape[1])] if rows.names is None else list(rows.names)
    columns = sample_column(rows)
    columns |= {f"{name} (column)" if name == "sample" else name: filled[:, j] for j, name in enumerate(names)}
    columns |= {f"{name} (sd)": deviation[:, j] for j, name in enumerate(names)}
    return {"imputed.csv": columns}


def notes(estimator: Any, rows: Any) -> list[str]:
    """Say how many cells are missing, and where to find what they may hold."""
    from princomp.data import statistics

    missing, cells = int(statistics.column_faults(rows, center=False)[0].sum()), rows.shape[0] * rows.shape[1]
    if not missing:
        return []
    return [
        f"{missing} of {cells} cells ({missing / cells:.1%}) are missing: the fit uses the others. What the missing "
        "ones probably hold, and how sure that is, is in imputed.csv."
    ]


METHOD = Method(
    name="probabilistic",
    estimator="ProbabilisticPCA",
    summary="a Gaussian model; cells may be missing and are filled in",
    options=(
        SCALE,
        TOL,
        MAX_ITER,
        TIME_LIMIT,
        click.Option(
            ["--n-init"],
            type=click.IntRange(min=1),
            help="Starts, of which the best is kept. [default: 5 if few cells are observed, else 1]",
        ),
    ),
    choices=("ard", "bic", "evidence", "held-out"),
    files=("imputed.csv",),
    tables=tables,
    notes=notes,
)
