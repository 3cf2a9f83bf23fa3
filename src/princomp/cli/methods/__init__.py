"""The methods of ``princomp fit``. A file here that defines ``METHOD`` is one: nothing else needs to be told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True)
class Method:
    """What the command line knows of a method.

    Attributes
    ----------
    name : str
        As given to ``--method``.
    estimator : str
        The public class, by name: it is imported when it is used.
    summary : str
        For ``--help``.
    options : tuple of click.Option
        Named as the parameters of the class; None means the class's own default.
    at_most_rank : bool
        Whether there can be no more components than rows or features.
    tables : callable or None
        ``tables(estimator, rows)`` returns further tables to write: columns by name, by the name of the file.
    """

    name: str
    estimator: str
    summary: str
    options: tuple[click.Option, ...]
    at_most_rank: bool = True  # no more components than rows or features
    tables: Callable[[Any, Any], dict[str, dict[str, Any]]] | None = None

    def make(self, options: dict[str, Any]) -> Any:
        """Return the estimator with the options that were given."""
        import princomp

        return getattr(princomp, self.estimator)(
            **{name: value for name, value in options.items() if value is not None}
        )


@cache
def methods() -> dict[str, Method]:
    """Return all methods by name, plain PCA first."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    found = [import_module(f"{__name__}.{name}").METHOD for name in files]
    return {method.name: method for method in sorted(found, key=lambda method: (method.name != "pca", method.name))}
