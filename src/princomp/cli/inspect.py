"""``princomp inspect``: what a model file holds."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import click

from princomp._text import listed, printable, shown
from princomp.cli.exits import BAD_DATA, Failure, reading
from princomp.cli.fit import feature_names, summarise
from princomp.cli.methods import methods
from princomp.cli.options import json_option
from princomp.cli.show import tell, variance_table


@click.command()
@click.argument("model", type=click.Path())
@json_option
def inspect(model: str, as_json: bool) -> None:
    """Show what MODEL, a .princomp file, holds: method, parameters, variances, certificate.

    Its checksums are verified on the way.
    """
    from princomp import load

    with reading(model):
        estimator = load(model)
    kind = type(estimator).__name__
    if not hasattr(estimator, "components_"):
        raise Failure(f"{printable(model)} holds a {kind} that was not fitted: there is nothing to show.", BAD_DATA)
    name = next((method.name for method in methods().values() if method.estimator == kind), kind)
    names = feature_names(estimator)
    summary = summarise(estimator, name) | {"features": names}
    defaults = type(estimator)().get_params()
    # By what they look like: arrays have no truth value.
    changed = {key: value for key, value in estimator.get_params().items() if repr(value) != repr(defaults[key])}
    summary["parameters"] = {key: value if _in_json(value) else str(value) for key, value in changed.items()}
    if as_json:
        click.echo(json.dumps(summary, indent=2, allow_nan=False))
        return
    given = ", ".join(f"{key}={shown(repr(value))}" for key, value in changed.items())
    rows = "a covariance of" if summary["n_samples"] is None else f"{summary['n_samples']} rows and"
    tell(f"{kind}({given})")
    tell(f"Fitted to {rows} {summary['n_features']} features: {listed(names, 8)}\n")
    tell(_table(estimator, names))
    tell(f"\n{summary['status']['sentence']}\n{summary['certificate']['sentence']}")


def _in_json(value: Any) -> bool:
    return isinstance(value, int | str) or (isinstance(value, float) and isfinite(value))


def _table(estimator: Any, names: list[str]) -> str:
    """Return what a model says of each component, or of each cluster."""
    for attribute, words in (("correlations_", "Correlations of the pairs"), ("shares_", "Shares of the clusters")):
        if hasattr(estimator, attribute):
            return f"{words}: {', '.join(f'{number:.3g}' for number in getattr(estimator, attribute))}"
    return variance_table(estimator, names)
