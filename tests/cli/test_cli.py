"""The command line as a user types it."""

import csv
import importlib.util
import json
import re
import subprocess
import sys
import tomllib

import click
import numpy as np
import pytest
from click.testing import CliRunner

from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture, SparseCCA, load
from princomp.cli.methods import Method, methods
from princomp.cli.options import as_options
from princomp.datasets import load_tobamovirus, load_wine, make_height_weight
from running import princomp

FILES = {"config.toml", "loadings.csv", "model.princomp", "report.html", "scores.csv", "summary.json"}


def table(path):
    """Columns of a CSV file by name."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    """A folder with wine.csv and, in out/, the results of a fit."""
    folder = tmp_path_factory.mktemp("wine")
    (folder / "wine.csv").write_bytes(load_wine().path.read_bytes())
    done = princomp("fit", "wine.csv", "-k", 3, "--scale", "--label", "cultivar", "--index", "wine", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_fit_writes_the_results_of_the_library(wine):
    folder, done = wine
    out = folder / "out"
    assert {path.name for path in out.iterdir()} == FILES
    data = load_wine()
    expected = PCA(3, scale=True).fit(data.X)

    scores = table(out / "scores.csv")
    assert scores["cultivar"] == list(data.cultivar)
    assert scores["sample"][0] == "Barolo 1"
    Z = np.array([scores[f"component_{j}"] for j in (1, 2, 3)], float).T
    assert (expected.transform(data.X) == Z).all()  # numbers in files are whole

    loadings = table(out / "loadings.csv")
    assert loadings["feature"] == list(data.names)
    assert (np.array(loadings["component_2"], float) == expected.components_[1]).all()

    model = load(out / "model.princomp")
    assert (model.components_ == expected.components_).all()
    assert list(model.feature_names_in_) == list(data.names)
    assert model.verbose == 0  # it speaks on the command line alone

    summary = json.loads((out / "summary.json").read_text())
    assert summary["explained_variance_ratio"] == expected.explained_variance_ratio_.tolist()
    assert summary["certificate"]["holds"] is True
    assert set(summary["files"]) == FILES - {"summary.json"}
    assert "component" in done.stdout
    assert "36.2%" in done.stdout
    assert "out/report.html" in done.stdout
    assert "Read wine.csv: 178 rows, 13 features." in done.stderr


def test_effective_configuration_runs_again_to_the_same_results(wine, tmp_path):
    folder, _ = wine
    config = folder / "out" / "config.toml"
    values = tomllib.loads(config.read_text())
    assert values["scale"] is True
    assert values["components"] == 3
    done = princomp("fit", "--config", config, "-o", tmp_path / "again", "--no-report", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "scores.csv").read_bytes() == (folder / "out" / "scores.csv").read_bytes()
    assert (tmp_path / "again" / "model.princomp").read_bytes() == (folder / "out" / "model.princomp").read_bytes()
    assert not (tmp_path / "again" / "report.html").exists()  # the command line wins


def test_transform_finds_columns_by_name_and_prints_scores(wine):
    folder, _ = wine
    rows = table(folder / "wine.csv")
    shuffled = ["proline", "wine", *[name for name in load_wine().names if name != "proline"]]
    with (folder / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*shuffled, "further"])
        writer.writerows([*[rows[name][i] for name in shuffled], i] for i in range(5))
    done = princomp("transform", "out/model.princomp", "new.csv", "--index", "wine", cwd=folder)
    assert done.returncode == 0, done.stderr
    printed = list(csv.reader(done.stdout.splitlines()))
    fitted = table(folder / "out" / "scores.csv")
    assert printed[0] == ["sample", "component_1", "component_2", "component_3"]
    assert printed[1][0] == "Barolo 1"
    Z = np.array([row[1:] for row in printed[1:]], float)
    expected = np.array([fitted[f"component_{j}"][:5] for j in (1, 2, 3)], float).T
    assert np.abs(Z - expected).max() <= 1e-13

    done = princomp("transform", "out/model.princomp", "-", "-o", "z.parquet", cwd=folder, stdin=folder / "new.csv")
    assert done.returncode == 0, done.stderr
    import pyarrow.parquet

    assert pyarrow.parquet.read_table(folder / "z.parquet").num_rows == 5

    done = princomp("transform", "out/model.princomp", "out/loadings.csv", cwd=folder)
    assert done.returncode == 3
    assert "alcohol, malic_acid" in done.stderr
    assert "missing" in done.stderr


def test_inspect(wine):
    folder, _ = wine
    done = princomp("inspect", "out/model.princomp", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "PCA(n_components=3, random_state=0, scale=True)" in done.stdout
    assert "178 rows and 13 features: alcohol, malic_acid" in done.stdout
    facts = json.loads(princomp("inspect", "out/model.princomp", "--json", cwd=folder).stdout)
    assert facts["features"] == list(load_wine().names)
    assert facts["parameters"] == {"n_components": 3, "random_state": 0, "scale": True}


def test_json_streams_and_dry_run(wine, tmp_path):
    folder, _ = wine
    done = princomp("fit", "wine.csv", "-k", "0.9", "--json", "--scores", "parquet", "-o", tmp_path / "o", cwd=folder)
    summary = json.loads(done.stdout)
    assert summary["n_components"] == 1  # proline alone, unscaled
    assert summary["notes"] == ["Left out 2 text columns: wine, cultivar."]
    assert "Left out 2 text columns" in done.stderr
    assert (tmp_path / "o" / "scores.parquet").exists()
    done = princomp("fit", "wine.csv", "--dry-run", "--json", "-o", tmp_path / "dry", cwd=folder)
    plan = json.loads(done.stdout)
    assert plan.pop("available_bytes") > 0
    assert plan == {
        "rows": 178,
        "features": 13,
        "method": "pca",
        "data_bytes": 178 * 13 * 8,
        "work_bytes": 24 * 13**2,
        "scores_bytes": 8 * 178 * 10,
    }
    assert not (tmp_path / "dry").exists()
    done = princomp("fit", "wine.csv", "--dry-run", cwd=folder)
    assert "178 rows, 13 features" in done.stdout


def test_demo_and_warmup(tmp_path):
    done = princomp("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "out" / "demo").iterdir()} == FILES | {"wine.csv"}
    assert "report.html" in done.stdout.splitlines()[-1]
    assert princomp("demo", cwd=tmp_path).returncode == 5  # nothing is replaced unasked
    assert princomp("demo", "--force", cwd=tmp_path).returncode == 0
    done = princomp("warmup", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sparse_gram" in done.stdout


HELP = """
import sys
sys.argv = ["princomp", *{args!r}]
from princomp.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
heavy = {{"numpy", "scipy", "sklearn", "numba", "matplotlib", "plotly", "pyarrow", "jinja2", "rich"}} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize("args", [["--help"], ["fit", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(args):
    done = subprocess.run([sys.executable, "-c", HELP.format(args=args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_method_is_a_file_of_its_own():
    import princomp

    assert next(iter(methods())) == "pca"
    for method in methods().values():
        parameters = set(getattr(princomp, method.estimator)().get_params())
        assert {method.renamed.get(option.name, option.name) for option in method.options} <= parameters


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """A folder with a CSV of empty cells, and its data."""
    folder = tmp_path_factory.mktemp("gaps")
    virus = load_tobamovirus()
    X = virus.X
    X.ravel()[np.random.default_rng(0).choice(X.size, 136, replace=False)] = np.nan
    with (folder / "gaps.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["virus", *virus.names])
        writer.writerows([f"virus {i}", *("" if np.isnan(x) else x for x in row)] for i, row in enumerate(X))
    return folder, X


def test_results_speak_of_likelihood_and_missing_cells(gaps):
    folder, X = gaps
    done = princomp("fit", "gaps.csv", "--method", "probabilistic", "-k", 2, "--index", "virus", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (folder / "out").iterdir()} == FILES | {"imputed.csv"}
    model = ProbabilisticPCA(2, random_state=0).fit(X)
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["log_likelihood"] == model.log_likelihood_
    assert summary["noise_variance"] == model.noise_variance_
    note = "136 of 684 cells (19.9%) are missing"
    assert summary["notes"][0].startswith(note)
    assert note in done.stderr
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert note in page
    assert f"Log-likelihood {model.log_likelihood_:.2f}" in page


def test_units_do_not_matter_with_scale(gaps):
    folder, X = gaps
    fit = ("fit", "gaps.csv", "--method", "probabilistic", "-k", 2, "--scale", "--index", "virus", "--no-report")
    done = princomp(*fit, "-o", "scaled", cwd=folder)
    assert done.returncode == 0, done.stderr
    model = ProbabilisticPCA(2, scale=True, random_state=0).fit(X)
    assert json.loads((folder / "scaled" / "summary.json").read_text())["log_likelihood"] == model.log_likelihood_
    filled, deviation = model.impute(X, return_std=True)
    with open(folder / "scaled" / "imputed.csv", newline="", encoding="utf-8") as file:
        written = np.array([row[1:] for row in csv.reader(file)][1:], dtype=float)
    assert np.allclose(written, np.hstack([filled, deviation]), rtol=1e-12)


def test_complete_data_have_no_note_of_missing_cells(wine):
    folder, _ = wine
    fit = ("fit", "wine.csv", "--method", "probabilistic", "-k", "evidence", "--no-report", "-o", "p", "--json")
    done = princomp(*fit, cwd=folder)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["n_components"] == ProbabilisticPCA("evidence").fit(load_wine().X).n_components_
    assert not any("missing" in note for note in summary["notes"])


# --- groups, and two sides -----------------------------------------------------------------------------


def run(folder, *words):
    """Run a command in this folder, and return what it printed; an error is an error."""
    done = princomp(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


def numbers(columns, *names):
    return np.array([columns[name] for name in names], float).T


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """A folder with heights and weights of two hidden groups, some cells empty, and the results of a fit."""
    folder = tmp_path_factory.mktemp("people")
    found = make_height_weight(random_state=0)
    X = np.where(np.random.default_rng(0).random(found.X.shape) < 0.02, np.nan, found.X)
    with (folder / "people.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["height", "weight", "sex"])
        writer.writerows([*("" if np.isnan(x) else x for x in row), "ab"[g]] for row, g in zip(X, found.groups))
    return folder, X, run(folder, "fit", "people.csv", "--method", "mixture", "-k", 1, "--groups", 2)


def test_a_mixture_writes_groups_and_scores_within_them(people):
    folder, X, done = people
    out = folder / "out"
    assert {path.name for path in out.iterdir()} == FILES | {"imputed.csv"}
    model = ProbabilisticPCAMixture(1, n_clusters=2, random_state=0).fit(X)
    scores = table(out / "scores.csv")
    assert list(scores) == ["sample", "sex", "group", "probability_1", "probability_2", "component_1"]
    assert (np.array(scores["group"], int) == model.predict(X) + 1).all()
    shares = model.responsibilities(X)
    assert (numbers(scores, "probability_1", "probability_2") == shares).all()
    own = np.arange(len(X)), model.predict(X)
    np.testing.assert_allclose(numbers(scores, "component_1")[:, 0], model.transform(X)[own] / shares[own])
    loadings = table(out / "loadings.csv")
    assert list(zip(loadings["group"], loadings["feature"], strict=True))[1:3] == [("1", "weight"), ("2", "height")]
    assert (numbers(loadings, "component_1")[:, 0] == model.components_.ravel()).all()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["shares"] == model.shares_.tolist()
    assert summary["log_likelihood"] == model.log_likelihood_
    assert "group  samples  component" in done.stdout
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Most probable group" in page  # not the text column, which nobody asked for
    assert "cells (" in page  # are missing


def test_a_mixture_from_its_configuration_and_from_its_file(people):
    folder, _, _ = people
    run(folder, "fit", "--config", "out/config.toml", "people.csv", "-o", "again", "--no-report")
    assert (folder / "again" / "scores.csv").read_bytes() == (folder / "out" / "scores.csv").read_bytes()
    printed = run(folder, "transform", "out/model.princomp", "people.csv", "-q").stdout
    written = (folder / "out" / "scores.csv").read_text(encoding="utf-8")
    assert printed.splitlines()[0] == written.splitlines()[0]
    scores = np.array([[line.split(",")[j] for j in (0, 2, 5)] for line in printed.splitlines()[1:]], float)
    np.testing.assert_allclose(scores, numbers(table(folder / "out" / "scores.csv"), "sample", "group", "component_1"))
    share = load(folder / "out" / "model.princomp").shares_[0]
    assert f"    1  {share:7.1%}          1  " in run(folder, "inspect", "out/model.princomp").stdout


def test_a_label_that_was_asked_for_colours_a_mixture(people):
    folder, _, _ = people
    run(folder, "fit", "people.csv", "--method", "mixture", "--label", "sex", "-o", "labelled")
    page = (folder / "labelled" / "report.html").read_text(encoding="utf-8")
    assert 'aria-label="sex"' in page


def test_the_first_text_column_of_twelve_values_at_the_most_colours_the_report(tmp_path):
    lines = [f"{j},{j * j % 7},m{j % 13},l{j % 12},{'ab'[j % 2]}" for j in range(39)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,thirteen,twelve,two", *lines]), encoding="utf-8")
    run(tmp_path, "fit", "table.csv", "-k", 2)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert [f'aria-label="{name}"' in page for name in ("thirteen", "twelve", "two")] == [False, True, False]


@pytest.fixture(scope="module")
def two_sides(tmp_path_factory):
    """A folder with a table of genes and metabolites, and its data."""
    folder = tmp_path_factory.mktemp("sides")
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 6)), rng.normal(size=(100, 3))
    Y[:, 1] += 2 * X[:, 3]
    X, Y = X.round(6), Y.round(6)
    with (folder / "table.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["m[0]", *(f"gene_{j}" for j in range(6)), "m[1]", "m[2]", "site"])
        writer.writerows([y[0], *x, *y[1:], "here"] for x, y in zip(X, Y, strict=True))
    return folder, X, Y


@pytest.mark.parametrize("other", [["m*"], ["m[0]", "m[1]", "m[2]"], ["m[[]*", "m[1]"]])
def test_two_sides_by_names_or_patterns(two_sides, tmp_path, other):
    folder, X, Y = two_sides
    words = [word for name in other for word in ("--other", name)]
    done = run(folder, "fit", "table.csv", "--method", "cca", *words, "-o", tmp_path / "out")
    model = SparseCCA(1).fit(X, Y)
    scores = table(tmp_path / "out" / "scores.csv")
    assert list(scores) == ["sample", "site", "x_component_1", "y_component_1"]
    expected = np.hstack(model.transform(X, Y))
    np.testing.assert_allclose(numbers(scores, "x_component_1", "y_component_1"), expected, atol=1e-12)
    loadings = table(tmp_path / "out" / "loadings.csv")
    assert loadings["side"] == ["x"] * 6 + ["y"] * 3
    assert loadings["feature"] == [*(f"gene_{j}" for j in range(6)), "m[0]", "m[1]", "m[2]"]
    weights = np.vstack([model.x_weights_, model.y_weights_])
    np.testing.assert_allclose(numbers(loadings, "component_1"), weights, atol=1e-12)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["correlations"] == pytest.approx(model.correlations_.tolist())
    assert summary["features_y"] == ["m[0]", "m[1]", "m[2]"]
    assert "gene_3 +" in done.stdout
    assert tomllib.loads((tmp_path / "out" / "config.toml").read_text())["other"] == other


def test_two_sides_from_a_file(two_sides):
    folder, X, _ = two_sides
    run(folder, "fit", "table.csv", "--method", "cca", "--other", "m*", "--no-report")
    both = run(folder, "transform", "out/model.princomp", "table.csv", "-q")
    assert both.stdout.splitlines()[0] == '"sample","site","x_component_1","y_component_1"'
    np.savetxt(folder / "genes.csv", X, delimiter=",", header=",".join(f"gene_{j}" for j in range(6)), comments="")
    one = run(folder, "transform", "out/model.princomp", "genes.csv")
    assert '"sample","x_component_1"\n' in one.stdout
    assert "Scores of one side only: of the other, these columns are not there: m[0], m[1], m[2]." in one.stderr
    shown = run(folder, "inspect", "out/model.princomp").stdout
    assert "Fitted to 100 rows and 6 features: gene_0" in shown
    assert "and 3 features: m[0], m[1], m[2]" in shown


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([], 2, "The method cca needs --other COLUMN"),
        (["--other", "n*"], 3, "--other 'n*' is none of the columns: m[0], gene_0"),
        (["--other", "site"], 3, "--other 'site' holds text"),
        (["--other", "*"], 3, "--other names all columns"),
        (["--other", "m*", "-k", "4"], 2, "-k 4 is more than 100 rows and 6 features and 3 features have: at most 3."),
    ],
)
def test_sides_that_are_none_are_refused(two_sides, words, code, sentence):
    folder, _, _ = two_sides
    done = princomp("fit", "table.csv", "--method", "cca", *words, "-o", "refused", cwd=folder)
    assert done.returncode == code, done.stderr
    assert sentence in done.stderr
    assert not (folder / "refused").exists()


def test_two_sides_need_names(tmp_path):
    np.save(tmp_path / "table.npy", np.eye(4))
    done = princomp("fit", "table.npy", "--method", "cca", "--other", "x1", cwd=tmp_path)
    assert done.returncode == 3
    assert "table.npy: The data have no column names, which --other needs" in done.stderr


def test_options_of_one_name_mean_what_their_method_says(monkeypatch):
    """A count for one method and a share for the other; the help has both."""
    from princomp.cli import fit as command

    def method(name, kind, text):
        option = click.Option(["--size"], type=kind, help=text)
        return Method(name=name, estimator="PCA", summary=name, options=(option,))

    both = [method("pca", click.IntRange(min=1), "A count."), method("other", click.FloatRange(0, 1), "A share.")]
    monkeypatch.setattr(command, "methods", lambda: {each.name: each for each in both})

    @click.command()
    @command._with_methods
    @click.option("--seed", default=0)
    @click.pass_context
    def show(ctx, method, **options):
        found = command._parameters(ctx, command.methods()[method], {"components": 2, **options})
        click.echo(repr(found["size"]))

    def said(*words):
        return CliRunner().invoke(show, words).output

    assert "pca: A count. other: A share." in said("--help")
    assert said("--size", "3") == "3\n"
    assert said("--size", "0.5", "--method", "other") == "0.5\n"
    assert said("--method", "other") == "None\n"
    assert "Invalid value for '--size': '0.5' is not a valid integer range." in said("--size", "0.5")
    assert "3.0 is not in the range 0<=x<=1." in said("--size", "3", "--method", "other")


def test_an_option_of_one_name_and_two_helps_is_otherwise_the_same():
    from princomp.cli.fit import _one_option
    from princomp.cli.methods import columns_option

    pairs = [
        lambda text: click.Option(["--robust"], is_flag=True, default=None, help=text),
        lambda text: click.Option(["--center/--no-center"], default=None, help=text),
        lambda text: click.Option(["--groups", "--n-clusters", "n_clusters"], type=int, help=text),
        lambda text: columns_option("--include", text),
    ]
    both = [_one_option({"a": make("This"), "b": make("That")}) for make in pairs]

    @click.command(params=both)
    def show(**options):
        click.echo(repr(options))

    given = CliRunner().invoke(show, ["--robust", "--no-center", "--groups", "3", "--include", "x"]).output
    assert given == "{'robust': True, 'center': False, 'n_clusters': 3, 'include': ['x']}\n"
    with pytest.raises(ValueError, match=r"--size of a, b must be a flag, or several times, for all or none"):
        _one_option({"a": click.Option(["--size"]), "b": click.Option(["--size"], is_flag=True)})


def test_kernels_of_two_columns_have_ten_components(tmp_path):
    """As many as rows, if need be: the component that tells two rings apart may be the third."""
    from princomp.datasets import make_circles

    rows = [f"{x!r},{y!r}" for x, y in make_circles(40, random_state=0).X.tolist()]
    (tmp_path / "rings.csv").write_text("\n".join(["x,y", *rows]) + "\n", encoding="utf-8")
    done = princomp("fit", "rings.csv", "--method", "kernel", "--gamma", "2", "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "out" / "model.princomp").n_components_ == 10


@pytest.mark.parametrize(
    ("note", "shown"),
    [
        ("It marks 4: mask_var='variable' takes these.", "It marks 4: --mask-var variable takes these."),
        ("Others need normalize=1234.5.", "Others need --normalize 1234.5."),
        ("Read a.xlsx, 'Data'; sheet= picks another one: B.", "Read a.xlsx, 'Data'; --sheet picks another one: B."),
        ("If so, give index='my id'.", "If so, give --index 'my id'."),
        ("Left out 1 text column: a=b.", "Left out 1 text column: a=b."),
    ],
)
def test_notes_spell_parameters_as_options(note, shown):
    assert as_options(note) == shown


def test_a_column_of_numbers_is_named_by_the_option_for_it(tmp_path):
    lines = [f"{i},{i * i % 7},{i * i % 5}" for i in range(1, 60)]
    (tmp_path / "x.csv").write_text("\n".join(["my id,a,b", *lines]))
    done = princomp("fit", "x.csv", "-k", 1, "--no-report", cwd=tmp_path)
    assert "if it names the rows, give --index 'my id'." in " ".join(done.stderr.split())
    assert "--index 'my id'" in json.loads((tmp_path / "out" / "summary.json").read_text())["notes"][0]


def test_options_of_another_method_are_refused(wine):
    folder, _ = wine
    for option in ("--other", "--groups"):
        done = princomp("fit", "wine.csv", option, "3", "-o", "refused", cwd=folder)
        assert done.returncode == 2
        assert f"{option} is not an option of the method pca. Add --method" in done.stderr


def test_pairs_that_may_be_mixed_are_told_of_sweeps(tmp_path):
    from princomp.datasets import make_brain

    np.save(tmp_path / "brain.npy", make_brain(100, random_state=0).X)
    words = ("fit", "brain.npy", "--method", "rank-one", "-k", 6, "--nonzeros", 0.05, "--no-report", "--force")
    done = princomp(*words, cwd=tmp_path)
    assert "early ones may hold parts of several" in " ".join(done.stderr.split())
    assert "--refine 20" in json.loads((tmp_path / "out" / "summary.json").read_text())["notes"][0]
    for more in (("--refine", 2), ("-k", 1), ("--nonzeros", "1.0")):  # the last have nothing in common
        assert "parts of several" not in " ".join(princomp(*words, *more, cwd=tmp_path).stderr.split())


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_what_pairs_would_move_does_not_depend_on_units(size):
    from princomp.cli.methods.rank_one import pull

    U, V = np.eye(4)[:, :3], np.array([[4.0, 0, 0], [1, 2, 0], [0, 0, 0]])
    assert pull(U, size * V) == pytest.approx(1 / 4)  # of the second v, (1, 2) / sqrt 5, times sqrt 5 / 4
    assert pull(U[:, :1], size * V[:1]) == 0
    assert pull(U, 0 * V) == 0


@pytest.mark.parametrize("choice", ["ard", "bic", "held-out"])
def test_the_number_of_components_can_be_chosen(choice, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)) @ (2 * rng.normal(size=(3, 12))) + rng.normal(size=(150, 12))
    X[rng.random(X.shape) < 0.1] = np.nan
    np.save(tmp_path / "gaps.npy", X)
    done = princomp("fit", "gaps.npy", "--method", "probabilistic", "-k", choice, "--no-report", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["n_components"] == 3
    assert tomllib.loads((tmp_path / "out" / "config.toml").read_text())["components"] == choice


@pytest.mark.parametrize(
    ("method", "k", "takes"),
    [
        ("pca", "ard", "a number, a share of the variance between 0 and 1 or mle."),
        ("probabilistic", "mle", "a number, ard, bic, evidence or held-out."),
        ("probabilistic", "0.5", "a number, ard, bic, evidence or held-out."),
        ("sparse", "bic", "a number."),
        ("sparse", "0.5", "a number."),
    ],
)
def test_words_of_another_method_are_refused(wine, method, k, takes):
    folder, _ = wine
    done = princomp("fit", "wine.csv", "--method", method, "-k", k, "-o", "refused", cwd=folder)
    assert done.returncode == 2
    assert f"-k {k} is not for the method {method}, which takes {takes}" in done.stderr
    assert not (folder / "refused").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("fit", "wine.csv", "-k", "2", "--label", "cultivar", "--index", "wine", "--json"), 0),
        (("fit", "wine.csv", "--nonsense"), 2),
        (("fit", "missing.csv"), 3),
        (("fit", "wine.csv", "-o", "wine.csv"), 5),
        (("inspect", "wine.csv"), 3),
    ],
)
def test_a_process_of_its_own_says_the_same(arguments, code, wine, tmp_path):
    """Most tests run the command in their own process; here is what they take for granted."""
    said = []
    for apart in (False, True):
        folder = tmp_path / str(apart)
        folder.mkdir()
        (folder / "wine.csv").write_bytes((wine[0] / "wine.csv").read_bytes())
        said.append(princomp(*arguments, cwd=folder, apart=apart))
    here, there = said
    assert here.returncode == there.returncode == code
    seconds = re.compile(r'"(read|fit|write)": [\d.]+|"report.html": "\w+"')
    assert seconds.sub("", here.stdout) == seconds.sub("", there.stdout)
    assert here.stderr == there.stderr


@pytest.mark.parametrize("arguments", [("demo",), ("fit", "wine.csv", "--label", "cultivar")])
def test_what_is_not_installed_is_said_before_anything_is_written(arguments, wine, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    (tmp_path / "wine.csv").write_bytes((wine[0] / "wine.csv").read_bytes())
    done = princomp(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ('Error: pyarrow, jinja2 must be installed for this: pip install "princomp[io,report]"\n')
    assert [path.name for path in tmp_path.iterdir()] == ["wine.csv"]


# --- dictionaries ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def signals(tmp_path_factory):
    """A folder with signals.csv: 60 rows of 4 numbers, a group and a name, and in out/ the results of a fit."""
    folder = tmp_path_factory.mktemp("signals")
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.4)) @ rng.normal(size=(5, 4))
    with (folder / "signals.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "group", "a", "b", "c", "atom"])
        writer.writerows([f"s{i}", ("even", "odd")[i % 2], *row] for i, row in enumerate(X.tolist()))
    words = ("--method", "dictionary", "-k", 5, "--alpha", 0.1, "--learning", "batch", "--image-shape", "2x2")
    done = princomp("fit", "signals.csv", *words, "--tol", 1e-3, "--index", "name", "--label", "group", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, X, done


def test_a_dictionary_as_tables(signals):
    """Atoms in rows, and of the codes what is not 0: together they give back what the model does."""
    folder, X, done = signals
    out = folder / "out"
    expected = FILES - {"loadings.csv", "scores.csv"} | {"atoms.csv", "codes.csv"}
    assert {path.name for path in out.iterdir()} == expected
    model, atoms, codes = load(out / "model.princomp"), table(out / "atoms.csv"), table(out / "codes.csv")
    assert list(atoms) == ["atom", "use", "a", "b", "c", "atom (feature)"]
    D = np.array([atoms[name] for name in ("a", "b", "c", "atom (feature)")], float).T
    assert (model.components_ == D).all()
    assert list(codes) == ["sample", "group", "atom", "coefficient"]
    dense = np.zeros((60, 5))
    rows = [int(name.removeprefix("s")) for name in codes["sample"]]
    dense[rows, np.array(codes["atom"], int) - 1] = np.array(codes["coefficient"], float)
    assert codes["group"] == [("even", "odd")[i % 2] for i in rows]
    np.testing.assert_allclose(dense, model.transform(load_rows(folder)), atol=1e-12)

    summary = json.loads((out / "summary.json").read_text())
    assert summary["mean_nonzeros"] == len(rows) / 60
    left = ((X - dense @ D) ** 2).sum() / (X**2).sum()
    assert summary["share_of_squares"] == pytest.approx(1 - left, abs=1e-9)
    assert summary["atom_use"] == np.array(atoms["use"], float).tolist()
    unit = D / np.linalg.norm(D, axis=1, keepdims=True)
    assert summary["coherence"] == pytest.approx(np.abs(unit @ unit.T - np.eye(5)).max())
    assert np.all(np.diff(summary["objective_history"]) <= 1e-12)
    assert "largest weights" in done.stdout


def load_rows(folder):
    from princomp import read

    return read(folder / "signals.csv", index="name", label="group")


def test_codes_of_new_data(signals):
    folder, _, _ = signals
    done = princomp("transform", "out/model.princomp", "signals.csv", "--index", "name", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    printed = list(csv.reader(done.stdout.splitlines()))
    codes = table(folder / "out" / "codes.csv")
    assert [row[0] for row in printed[1:]] == codes["sample"]
    found, there = (np.array(each, float) for each in ([row[-1] for row in printed[1:]], codes["coefficient"]))
    np.testing.assert_allclose(found, there, rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--nonzeros", 2, "--alpha", 1), "--alpha has no use with --nonzeros"),
        (("--error", 0.1, "--penalty", "l1"), "--penalty has no use with --error"),
        (("--learning", "ksvd"), "--learning ksvd needs --nonzeros or --error"),
        (("--update", "exact"), "--update has no use without --learning ksvd"),
        (("--learning", "batch", "--batch-size", 9), "--batch-size has no use without --learning online"),
        (("--selection", "omp"), "--selection has no use without --nonzeros or --error"),
        (("--penalty", "lp", "--l2", 1), "--l2 has no use without --penalty l1 or elastic-net"),
        (("--image-shape", "3x3"), "--image-shape 3x3 is 9 numbers, but rows have 4"),
        (("--image-shape", "four"), "'four' is not a shape"),
    ],
)
def test_options_of_a_dictionary_without_use_are_refused(signals, words, sentence):
    folder, _, _ = signals
    done = princomp("fit", "signals.csv", "--method", "dictionary", *words, "-o", "no", cwd=folder)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not (folder / "no").exists()


def test_images_are_for_dictionaries(signals):
    folder, _, _ = signals
    done = princomp("fit", "signals.csv", "--image-shape", "2x2", "-o", "no", cwd=folder)
    assert done.returncode == 2
    assert "Add --method dictionary?" in " ".join(done.stderr.split())
