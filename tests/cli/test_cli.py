"""The command line as a user types it."""

import csv
import importlib.util
import json
import re
import subprocess
import sys
import tomllib

import numpy as np
import pytest

from princomp import PCA, ProbabilisticPCA, load
from princomp.cli.methods import methods
from princomp.datasets import load_tobamovirus, load_wine
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
    assert json.loads(done.stdout)["rows"] == 178
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
        assert {option.name for option in method.options} <= parameters


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
