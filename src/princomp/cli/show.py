"""What a terminal shows: numbers in a table, lines of a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from princomp._text import printable, shown

if TYPE_CHECKING:
    from princomp.estimators.description import Column, Description, Loadings


NARROW = {0xA0: " ", 0x202F: " "}  # spaces of a page: `printable` would show them as escapes


def tell(text: str, *, err: bool = False) -> None:
    """Print text that others may have chosen, in a file or a name: control characters are shown, not obeyed."""
    import click

    click.echo(printable(text.translate(NARROW), lines=True), err=err)


def component_table(found: Description, most: int = 10) -> str:
    """Return what a model says of each of its first components, and the features that weigh most in them."""
    from princomp.estimators.description import Courses, Loadings

    drawn = [section for section in found.sections if isinstance(section, Loadings)]
    loadings = [section for section in drawn if not isinstance(section, Courses)]
    n_rows = len(found.lines[0].values) if found.lines else 0
    columns = [_column(column, most) for column in found.lines] + [_largest(each, most) for each in loadings]
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns)]
    if n_rows > most:
        together = [f", {column.values[-1]:.1%} together" for column in found.lines if column.name == "together"]
        lines.append(f"      ...  and {n_rows - most} more{''.join(together)}")
    return "\n".join([*lines, *(["", found.below] if found.below else [])])


def _column(column: Column, most: int) -> list[str]:
    form, least = {"count": ("d", 0), "number": (".4g", 10), "share": (".1%", 6)}[column.kind]
    width = max(least, len(column.name))
    return [f"{column.name:>{width}}", *(f"{number:{width}{form}}" for number in column.values[:most])]


def _largest(loadings: Loadings, most: int) -> list[str]:
    """Return a heading and the features that weigh most in each of the first components, padded."""
    import numpy as np

    from princomp.estimators.description import Atoms

    title = "Weights" if isinstance(loadings, Atoms) else loadings.title
    texts = [f"largest {title[0].lower()}{title[1:]}"]
    for weights in np.asarray(loadings.weights[:most], float):
        largest = [i for i in np.argsort(-np.abs(weights), kind="stable")[:3] if weights[i]]
        texts.append(", ".join(f"{shown(loadings.features[i], 24)} {weights[i]:+.2f}" for i in largest) or "none")
    width = max(map(len, texts))
    return [f"{text:<{width}}" for text in texts]


class Log:
    """Lines on standard error: what is being done, and what the user should know."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def note(self, sentence: str) -> None:
        """Say something that the user should know, quiet or not."""
        tell(sentence, err=True)

    def tell(self, sentence: str) -> None:
        """Say how the work goes."""
        if not self._quiet:
            tell(sentence, err=True)

    @contextmanager
    def busy(self, sentence: str) -> Iterator[None]:
        """Show that something is being done, on a terminal."""
        if self._quiet or not sys.stderr.isatty() or {"CI", "NO_COLOR"} & set(os.environ):
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(sentence):
            yield
