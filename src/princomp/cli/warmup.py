"""``princomp warmup``: compile ahead of time."""

import time

import click

from princomp.cli.exits import USAGE, Failure


@click.command()
def warmup() -> None:
    """Compile the inner loops now, so that the first fit does not wait."""
    from princomp._compiled import NAMES, loops

    for name in NAMES:
        begin = time.perf_counter()
        module = loops(name)
        if module is None:
            raise Failure("numba does not work here; fits use slower twins. Try: pip install -U numba", USAGE)
        module.warm_up()
        click.echo(f"{name}: {time.perf_counter() - begin:.1f} s")
