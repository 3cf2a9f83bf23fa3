"""``princomp inspect``: what a model file holds."""

import json
from math import isfinite
from typing import Any

import click

from princomp._text import listed, printable, shown
from princomp.cli.exits import BAD_DATA, Failure, reading
from princomp.cli.fit import summarise
from princomp.cli.methods import methods
from princomp.cli.options import json_option
from princomp.cli.show import component_table, tell


@click.command()
@click.argument("model", type=click.Path())
@json_option
def inspect(model: str, as_json: bool) -> None:
    """Show what MODEL, a .princomp file, holds: method, parameters, variances, certificate.

    Its checksums are verified on the way.
    """
    from sklearn.exceptions import NotFittedError

    from princomp import load
    from princomp.estimators.description import describe

    with reading(model):
        estimator = load(model)
    try:
        found = describe(estimator)
    except NotFittedError as error:
        kind = f"{printable(model)} holds a {type(estimator).__name__}"
        raise Failure(f"{kind} that was not fitted: there is nothing to show.", BAD_DATA) from error
    name = next((method.name for method in methods().values() if method.estimator == found.model), found.model)
    changed = {each.name: each.value for each in found.parameters if each.changed}
    if as_json:
        summary = summarise(found, name) | {
            "features": list(found.sides[0].features),
            "parameters": {key: value if _in_json(value) else str(value) for key, value in changed.items()},
        }
        click.echo(json.dumps(summary, indent=2, allow_nan=False))
        return
    given = ", ".join(f"{key}={shown(repr(value))}" for key, value in changed.items())
    rows = "a covariance of" if found.n_samples is None else f"{found.n_samples} rows and"
    sides = [f"{len(side.features)} features: {listed(side.features, 8)}" for side in found.sides]
    tell(f"{found.model}({given})")
    tell("\nand ".join([f"Fitted to {rows} {sides[0]}", *sides[1:]]))
    tell(f"\n{component_table(found)}")
    tell("\n".join(["", " ".join(found.computation), str(found.certificate), *found.notes]))


def _in_json(value: Any) -> bool:
    return isinstance(value, int | str) or (isinstance(value, float) and isfinite(value))
