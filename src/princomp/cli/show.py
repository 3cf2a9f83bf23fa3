"""What a terminal shows: numbers in a table, lines of a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from princomp._text import printable, shown


def tell(text: str, *, err: bool = False) -> None:
    """Print text that others may have chosen, in a file or a name: control characters are shown, not obeyed."""
    import click

    click.echo(printable(text, lines=True), err=err)


def variance_table(estimator: Any, names: Sequence[Any], most: int = 10) -> str:
    """Return a table of components: variance, share, and the features that weigh most."""
    import numpy as np

    shares = np.asarray(estimator.explained_variance_ratio_, float)
    lines = ["component    variance   share  together  largest loadings"]
    for j, together in enumerate(np.cumsum(shares)[:most]):
        weights = np.asarray(estimator.components_[j], float)
        largest = np.argsort(-np.abs(weights), kind="stable")[:3]
        loadings = ", ".join(f"{shown(names[i], 24)} {weights[i]:+.2f}" for i in largest)
        variance = float(estimator.explained_variance_[j])
        lines.append(f"{j + 1:9d}  {variance:10.4g}  {shares[j]:6.1%}  {together:8.1%}  {loadings}")
    if len(shares) > most:
        lines.append(f"      ...  and {len(shares) - most} more, {shares.sum():.1%} together")
    return "\n".join(lines)


class Log:
    """Lines on standard error: what is being done, and what the user should know."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def note(self, sentence: str) -> None:
        """Say something that the user should know, quiet or not."""
        self._write(sentence)

    def tell(self, sentence: str) -> None:
        """Say how the work goes."""
        if not self._quiet:
            self._write(sentence)

    @contextmanager
    def busy(self, sentence: str) -> Iterator[None]:
        """Show that something is being done, on a terminal."""
        if self._quiet or not sys.stderr.isatty() or {"CI", "NO_COLOR"} & set(os.environ):
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(sentence):
            yield

    def _write(self, sentence: str) -> None:
        tell(sentence, err=True)
