"""``princomp demo``: the main job on bundled data."""

from pathlib import Path

import click

from princomp._text import printable
from princomp.cli.exits import writing
from princomp.cli.fit import FILES, fit, require_extras
from princomp.cli.folder import refuse_to_overwrite
from princomp.cli.options import force_option


@click.command()
@click.option(
    "-o", "--output", type=click.Path(), default="out/demo", show_default=True, help="Folder for the results."
)
@force_option
@click.pass_context
def demo(ctx: click.Context, output: str, force: bool) -> None:
    """Fit bundled data, 178 wines by 13 measurements, and write a report."""
    from princomp.datasets import load_wine

    folder = Path(output)
    data = folder / "wine.csv"
    require_extras("pyarrow", "jinja2")  # before anything is written
    refuse_to_overwrite(folder, FILES, force=force)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        data.write_bytes(load_wine().path.read_bytes())
    how = ["--scale", "--label", "cultivar", "--index", "wine", "-k", "13", "-o"]
    command = ["fit", str(data), *how, output, *["--force"] * force]
    click.echo(f"$ princomp {printable(' '.join(command))}\n")
    fit.main(command[1:], standalone_mode=False)
    click.echo(
        f"\nOpen {printable((folder / 'report.html').absolute().as_uri())} in a browser; then: princomp fit YOUR.csv"
    )
