"""The methods of ``princomp fit``. A file here that defines ``METHOD`` is one: nothing else needs to be told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True)
class Method:
    """What the command line knows of a method."""

    name: str  # as given to ``--method``
    estimator: str  # the public class, by name: it is imported when it is used
    summary: str  # for ``--help``
    options: tuple[click.Option, ...]  # named as the parameters of the class; None means the class's own default
    components: int | None = 10  # how many, unless asked for otherwise; None: as many as the class chooses
    shares: bool = False  # whether the number of components may be given as a share of the variance
    choices: tuple[str, ...] = ()  # words by which the class chooses the number of components
    at_most_rank: bool = True  # whether there can be no more components than rows or features
    up_to_rows: bool = False  # whether there can be as many as rows, however few features there are
    reading: tuple[click.Option, ...] = ()  # further options, which are no parameters of the class but for ``sides``
    # ``sides(rows, options)`` returns what ``fit`` is given, if that is not the rows alone.
    sides: Callable[[Any, Mapping[str, Any]], tuple[Any, ...]] | None = None
    files: tuple[str, ...] = ()  # names of the further tables, images and folders that the method may write
    # ``tables(estimator, rows, options)`` returns some of these: columns by name, by the name of the file.
    tables: Callable[[Any, Any, Mapping[str, Any]], dict[str, dict[str, Any]]] | None = None
    # ``pictures(place, estimator, rows)`` writes what is no table.
    pictures: Callable[[Any, Any, Any], None] | None = None
    # ``notes(estimator, rows)`` returns what the reader of the results should know of the data, in sentences.
    notes: Callable[[Any, Any], list[str]] | None = None
    # ``suits(rows, parameters)`` returns parameters that suit the data, by name: defaults where nothing is asked for.
    suits: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None
    # Parameters that have another default here than the class has.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)  # parameters by the options that have another name

    def most(self, *shapes: tuple[int, int]) -> int:
        """Return the largest number of components of data of these shapes that is chosen unasked."""
        return min(n if self.up_to_rows else min(n, p) for n, p in shapes)

    @property
    def usual(self) -> str:
        """How many components there are, unless asked for otherwise, in words."""
        return "by the data" if self.components is None else str(self.components)

    @property
    def counts(self) -> str:
        """What may say how many components, in words."""
        ways = ["a number", *(["a share of the variance between 0 and 1"] if self.shares else []), *self.choices]
        return " or ".join([", ".join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways)

    def takes(self, k: int | float | str | None) -> bool:
        """Tell whether the class can be asked for so many components."""
        if isinstance(k, str):
            return k in self.choices
        return self.shares or not isinstance(k, float)

    def make(self, options: dict[str, Any]) -> Any:
        """Return the estimator with the options that were given."""
        import princomp

        given = {self.renamed.get(name, name): value for name, value in options.items() if value is not None}
        return getattr(princomp, self.estimator)(**{**self.defaults, **given})


def columns_option(name: str, help: str) -> click.Option:
    """Return an option that may be given several times, a column each; None if it is not given."""
    how: dict[str, Any] = {"metavar": "COLUMN", "multiple": True, "help": f"{help}; several times for several."}
    return click.Option([name], callback=lambda ctx, param, value: list(value) or None, **how)


@cache
def methods() -> dict[str, Method]:
    """Return all methods by name, plain PCA first."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    found = [import_module(f"{__name__}.{name}").METHOD for name in files]
    return {method.name: method for method in sorted(found, key=lambda method: (method.name != "pca", method.name))}
