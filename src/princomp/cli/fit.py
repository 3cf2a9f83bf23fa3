"""``princomp fit``: from a file to a folder of results."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from princomp._text import listed, printable
from princomp._version import __version__
from princomp.cli import options as shared
from princomp.cli.exits import NOT_CONVERGED, USAGE, Failure, reading
from princomp.cli.folder import Results, results
from princomp.cli.frames import are_images
from princomp.cli.interrupts import held_back
from princomp.cli.maps import FILES as MAPS
from princomp.cli.maps import are_volumes, check_several, image_shape, mean_image, scans_apart, write_maps
from princomp.cli.methods import Method, methods
from princomp.cli.show import Log, component_table, tell
from princomp.cli.tables import sample_column, write_table

if TYPE_CHECKING:
    from princomp.estimators.description import Description, Scores

# All that a fit may write.
FILES = [
    "config.toml",
    "loadings.csv",
    *MAPS,
    "model.princomp",
    "report.html",
    "results.h5ad",
    "scores.csv",
    "scores.parquet",
    "summary.json",
    *dict.fromkeys(name for method in methods().values() for name in method.files),
]
Options = dict[str, Any]  # by name
USUAL = 10  # components, where a method chooses their number by itself
COLOURS = 12  # a text column with more values than this colours nothing
EXTRAS = {"pyarrow": "io", "jinja2": "report", "matplotlib": "plot"}


def _with_methods(command: Callable[..., None]) -> Callable[..., None]:
    """Add ``--method`` and the options of all methods."""
    of_name: dict[str, dict[str, click.Option]] = {}
    for method in methods().values():
        for option in (*method.options, *method.reading):
            of_name.setdefault(str(option.name), {})[method.name] = option
    # Click collects options from the last to the first, in this attribute.
    command.__click_params__ += reversed([*map(_one_option, of_name.values())])  # type: ignore[attr-defined]
    kinds = "; ".join(f"{method.name}: {method.summary}" for method in methods().values())
    choice = click.Choice(list(methods()))
    return click.option("--method", type=choice, default="pca", show_default=True, help=f"{kinds}.")(command)


def _one_option(by_method: dict[str, click.Option]) -> click.Option:
    """Return the option that stands for those of one name. Where types differ it takes any text: see `_parameters`."""
    first, *others = by_method.values()
    if all(option is first for option in others):
        return first
    for option in others:  # else nobody could tell how many words follow it
        if (option.is_flag, option.multiple, option.opts) != (first.is_flag, first.multiple, first.opts):
            raise ValueError(
                f"{first.opts[0]} of {', '.join(by_method)} must be a flag, or several times, for all or none"
            )
    one = copy(first)
    one.help = " ".join(f"{method}: {option.help}" for method, option in by_method.items())
    if len({repr(option.type) for option in by_method.values()}) > 1:
        one.type = click.STRING
    return one


@click.command()
@click.argument("data", type=click.Path(allow_dash=True))
@click.option(
    "-k",
    "--components",
    type=shared.Components(tuple(dict.fromkeys(word for method in methods().values() for word in method.choices))),
    help=f"How many components. {'; '.join(f'{each.name}: {each.counts}' for each in methods().values())}. "
    f"[default: {', '.join(f'{each.name} {each.usual}' for each in methods().values())}]",
)
@_with_methods
@click.option("-o", "--output", type=click.Path(), default="out", show_default=True, help="Folder for the results.")
@shared.reading_options
@click.option(
    "--scores",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="Kind of the file of scores.",
)
@click.option("--report/--no-report", default=True, help="Write report.html (default), or not.")
@click.option("--h5ad/--no-h5ad", default=True, help="Of .h5ad: write results.h5ad, DATA with the results (default).")
@shared.raw_option
@shared.force_option
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Of random starts.")
@click.option("--n-jobs", type=click.IntRange(min=1), help="Threads to use. [default: all]")
@shared.memory_option
@click.option("--strict", is_flag=True, help="Exit with code 4 if the fit did not converge.")
@click.option("--dry-run", is_flag=True, help="Print shape and memory, and stop.")
@shared.json_option
@shared.quiet_option
@shared.config_option
@click.pass_context
def fit(ctx: click.Context, /, **options: Any) -> None:
    """Fit DATA and write model, loadings, scores, summary and report.

    DATA is a .csv(.gz), .tsv, .parquet, .xlsx, .npy, .npz, .mtx, .h5, .zarr, .h5ad or .nii(.gz) file, a quoted glob of
    such files, a folder of images, or - for a CSV on standard input; file.h5::name picks one array of several. Text
    columns are left out, with a note; --label and --index give them a use.
    """
    method = methods()[options["method"]]
    parameters = _parameters(ctx, method, options)
    log = Log(quiet=options["quiet"])
    require_extras("pyarrow", *(["jinja2"] if options["report"] else []))
    with ExitStack() as stack:
        stack.enter_context(limits(options["memory_limit"], options["n_jobs"]))
        if options["dry_run"]:
            return _dry_run(_read(options, log), method, parameters, as_json=options["as_json"])
        place = stack.enter_context(results(Path(options["output"]), FILES, force=options["force"]))
        summary, files, table = _run(place, method, parameters, options, log)
    if options["as_json"]:
        click.echo(json.dumps(summary, indent=2, allow_nan=False))
    else:
        tell(f"{table}\n\nCertificate: {summary['certificate']['sentence']}")
        tell(f"\nWritten: {listed(files, len(files))}")
    if options["strict"] and summary["status"]["code"] not in ("exact", "converged"):
        raise Failure(summary["status"]["sentence"], NOT_CONVERGED)


def require_extras(*modules: str) -> None:
    """Import what a command needs; raise `Failure`, with the line to type, if an optional library is missing."""
    from importlib.util import find_spec

    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        extras = ",".join(dict.fromkeys(EXTRAS[module] for module in missing))
        raise Failure(f'{listed(missing)} must be installed for this: pip install "princomp[{extras}]"', USAGE)
    with held_back():
        for module in (*modules, "pyarrow.csv", "pyarrow.parquet", "princomp.estimators", "princomp.persistence"):
            import_module(module)


@contextmanager
def limits(memory: int | None, n_jobs: int | None) -> Iterator[None]:
    """Plan for no more memory and threads than this."""
    from threadpoolctl import threadpool_limits

    from princomp.data import budget

    with budget.limited(memory), threadpool_limits(n_jobs):
        yield


def _parameters(ctx: click.Context, method: Method, options: Options) -> dict[str, Any]:
    """Return the parameters of the method's class; an option that another method has is refused."""
    own = {option.name for option in (*method.options, *method.reading)}
    for other in methods().values():
        for option in (*other.options, *other.reading):
            asked = ctx.get_parameter_source(str(option.name)) is not ParameterSource.DEFAULT
            if asked and option.name not in own:
                message = f"{option.opts[0]} is not an option of the method {method.name}. Add --method {other.name}?"
                raise click.UsageError(message, ctx)
    k = options["components"]
    if not method.takes(k):
        raise click.UsageError(f"-k {k} is not for the method {method.name}, which takes {method.counts}.", ctx)
    given = {option.name: option.process_value(ctx, options[option.name]) for option in method.options}
    return given | {"n_components": k, "random_state": options["seed"]}


def _read(options: Options, log: Log) -> Any:
    from princomp import read

    data = options["data"]
    with reading(data), log.busy(f"Reading {printable(data)}"):
        rows = read(data, **shared.as_read(options))
        check_several(data, rows)
    rows.notes = tuple(map(shared.as_options, rows.notes))
    log.tell(f"Read {printable(data)}: {rows.shape[0]} rows, {rows.shape[1]} features.")
    for note in rows.notes:
        log.note(note)
    return rows


def _run(
    place: Results, method: Method, parameters: Options, options: Options, log: Log
) -> tuple[dict[str, Any], list[Path], str]:
    """Read, fit, write; return (summary, files, table for people)."""
    from princomp.estimators.description import describe, describe_fit_scores

    begin = time.perf_counter()
    rows = _read(options, log)
    if are_volumes(rows) or (method.pictures and are_images(rows)):
        require_extras("matplotlib")
    with reading(options["data"]):
        sides = (rows,) if method.sides is None else method.sides(rows, options)
    read_in = time.perf_counter()
    estimator = _fitted(sides, method, parameters, options, log)
    of_method = method.notes(estimator, rows) if method.notes else []
    further = [*scans_apart(rows), *of_method]
    for note in further:
        log.note(note)
    notes = [*rows.notes, *further]
    with reading(options["data"]):
        scores = describe_fit_scores(estimator, *sides)
    fitted = time.perf_counter()
    found = describe(estimator)
    with log.busy("Writing the results"):
        _write(place, rows, estimator, found, scores, notes, options)
        if options["h5ad"] and options["data"].lower().endswith(".h5ad"):
            notes += _write_h5ad(place, sides[0], estimator, scores, options["data"], log)
        for name, columns in (method.tables(estimator, rows, options) if method.tables else {}).items():
            with place.path(name).open("wb") as file:
                write_table(file, columns, raw=options["raw_csv"])
        if method.pictures:
            method.pictures(place, estimator, rows)
    seconds = {"read": read_in - begin, "fit": fitted - read_in, "write": time.perf_counter() - fitted}
    summary = {
        **summarise(found, method.name),
        "data": printable(options["data"]),
        **image_shape(rows),
        "notes": [printable(note) for note in notes],
        "seconds": {step: round(value, 3) for step, value in seconds.items()},
        "files": place.digests(),
    }
    place.path("summary.json").write_text(json.dumps(summary, indent=2, allow_nan=False), encoding="utf-8")
    return summary, place.publish(), component_table(found)


def _fitted(sides: tuple[Any, ...], method: Method, parameters: Options, options: Options, log: Log) -> Any:
    from sklearn.exceptions import ConvergenceWarning

    from princomp.estimators.description import describe

    k, most = parameters["n_components"], method.most(*(side.shape for side in sides))
    if k is None and method.components is not None:
        parameters = parameters | {"n_components": min(method.components, most)}
    elif method.at_most_rank and isinstance(k, int) and k > most:
        size = " and ".join([f"{sides[0].shape[0]} rows", *(f"{side.shape[1]} features" for side in sides)])
        raise Failure(f"-k {k} is more than {size} have: at most {most}.", USAGE)
    if method.suits:
        better = method.suits(sides[0], parameters)
        parameters = parameters | {name: value for name, value in better.items() if parameters[name] is None}
    estimator = method.make(parameters)
    estimator.verbose = 0 if options["quiet"] else 1
    with reading(options["data"]), warnings.catch_warnings(record=True) as caught, log.busy("Fitting"):
        warnings.simplefilter("always", ConvergenceWarning)
        warnings.simplefilter("always", UserWarning)
        estimator.fit(*sides)
    for warning in caught:
        log.note(f"Note: {warning.message}")
    estimator.verbose = 0
    found = describe(estimator)
    log.tell(f"Fitted {found.model}. {' '.join(found.computation)}")
    for note in () if caught else found.notes:  # a warning has said it already
        log.note(f"Note: {note}")
    return estimator


def score_columns(rows: Any, scores: Scores) -> dict[str, Any]:
    """Return the columns of a table of scores: sample, labels, components."""
    columns = sample_column(rows)
    for name, values in rows.labels.items():
        columns[f"{name} (label)" if name in ("sample", *scores.columns) else name] = values
    if scores.rows is not None:  # the lines of a sample have its name and labels
        columns = {name: _at(values, scores.rows) for name, values in columns.items()}
    return columns | dict(scores.columns)


def _at(values: Any, rows: Any) -> Any:
    """Return the value of each of these rows, as an array if it was one."""
    return values[rows] if hasattr(values, "dtype") else [values[i] for i in rows]


def _write(
    place: Results, rows: Any, estimator: Any, found: Description, scores: Scores, notes: list[str], options: Options
) -> None:
    """Write all files but the summary."""
    from princomp import report, save

    save(estimator, place.path("model.princomp"), parts=bool(options["parts"]))
    if found.loadings:
        with place.path(found.loadings_file).open("wb") as file:
            write_table(file, found.loadings, raw=options["raw_csv"])
    kind = options["scores"]
    with place.path(f"{scores.file}.{kind}").open("wb") as file:
        write_table(file, score_columns(rows, scores), kind=kind, raw=options["raw_csv"])
    hidden = ("config", "force", "dry_run", "as_json")
    used = {name: value for name, value in options.items() if name not in hidden and value != ()}
    place.path("config.toml").write_text(shared.as_toml(used), encoding="utf-8")
    background = mean_image(rows)
    write_maps(place, rows, found, background)
    if options["report"]:
        label = options["label"] or None
        if label is None and scores.groups is None:  # the first text column with few values colours the points
            label = next((name for name, values in rows.labels.items() if len(set(values)) <= COLOURS), None)
        report.write(
            estimator,
            rows,
            place.path("report.html"),
            labels=None if label is None else as_numbers(rows.labels[label]),
            label_name=label,
            sample_names=rows.sample_names,
            scores=scores,
            notes=notes,
            source=options["data"],
            image_shape=shared.as_shape(options["image_shape"]),
            background=background,
        )


def _write_h5ad(place: Results, rows: Any, estimator: Any, scores: Scores, data: str, log: Log) -> list[str]:
    """Write the data with what was found in them; return notes on what could not be."""
    from princomp.single_cell import write_h5ad

    if not os.path.isfile(data):
        notes = ["results.h5ad is not there: it is made of one file, not of several."]
    else:
        plain = scores.rows is None and scores.groups is None  # as `transform` gives them
        with reading(data):
            values = scores.values if plain else estimator.transform(rows)
            notes = write_h5ad(data, place.path("results.h5ad"), estimator, values)
    for note in notes:
        log.note(note)
    return notes


def as_numbers(texts: Any) -> Any:
    """Return labels as numbers if all of them are, else as they are."""
    import numpy as np

    try:
        return np.array([float(text) for text in texts])
    except (TypeError, ValueError):
        return texts


def summarise(found: Description, method: str) -> dict[str, Any]:
    """Return what a program would like to know of a fitted estimator, ready for JSON."""
    return {"princomp": __version__, "method": method, "estimator": found.model, **found.facts}


def _dry_run(rows: Any, method: Method, parameters: Options, *, as_json: bool) -> None:
    """Print what a fit would read, and about how much memory it would take."""
    from princomp.data import budget

    n, p = rows.shape
    k = parameters["n_components"]
    k = min(method.most(rows.shape), k if isinstance(k, int) else method.components or USUAL)
    small = min(n, p)
    plan = {
        "rows": n,
        "features": p,
        "method": method.name,
        "data_bytes": n * p * rows.dtype.itemsize,
        "work_bytes": int(24 * small * small if small <= 1000 else 16 * (n + p) * 10 * k),
        "scores_bytes": 8 * n * k,
        "available_bytes": budget.available_bytes(),
    }
    if as_json:
        click.echo(json.dumps(plan, indent=2))
        return
    sizes = {name[:-6]: f"{value / 2**20:.0f} MiB" for name, value in plan.items() if name.endswith("_bytes")}
    memory = ", ".join(f"{name} {size}" for name, size in sizes.items())
    click.echo(f"{n} rows, {p} features; method {method.name}. Memory, about: {memory}.")
