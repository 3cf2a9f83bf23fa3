"""Robust PCA on the command line: which rows and cells are bad, cleaned tables, frames of a clip."""

import csv
import json

import numpy as np
import pytest

from princomp import RobustPCA, load, read
from princomp.cli.frames import write_frames
from princomp.data.memory import MemoryRows
from princomp.datasets import load_wine, make_video
from running import princomp

COLUMNS = [*(f"c{j}" for j in range(29)), "sample"]
METHODS = ("pcp", "cellwise", "outlier-pursuit", "robpca", "spherical", "online")


def table(path):
    """Columns of a CSV file by name."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


def truths(texts):
    return np.array(texts) == "true"


def write(path, X, names):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["name", *names])
        writer.writerows(
            [f"row {i}", *("" if np.isnan(x) else repr(x) for x in row)] for i, row in enumerate(X.tolist())
        )


def run(folder, *words):
    done = princomp(*words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A folder with a CSV of rank 2, in which some cells are wrong by 20 and some are empty; the data and the truth."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(100, 2)) @ rng.normal(size=(2, 30))
    bad, missing = rng.random(truth.shape) < 0.04, rng.random(truth.shape) < 0.04
    X = np.where(missing, np.nan, truth + 20.0 * bad)
    folder = tmp_path_factory.mktemp("planted")
    write(folder / "cells.csv", X, COLUMNS)
    return folder, X, truth, bad & ~missing


def test_cells_that_are_bad_and_a_table_without_them(planted):
    folder, X, truth, bad = planted
    done = run(folder, "fit", "cells.csv", "--method", "robust", "--index", "name")
    out, model = folder / "out", RobustPCA(random_state=0).fit(X)
    assert model.n_components_ == 2  # as many as the data have
    cells = table(out / "cells.csv")
    assert list(cells) == ["sample", "column", "value", "expected", "residual"]
    places = [(int(name.removeprefix("row ")), COLUMNS.index(c)) for name, c in zip(cells["sample"], cells["column"])]
    assert sorted(places) == list(zip(*np.nonzero(bad), strict=True))
    np.testing.assert_allclose(np.array(cells["value"], float), [X[place] for place in places])
    np.testing.assert_allclose(np.array(cells["expected"], float), [truth[place] for place in places], atol=1e-3)
    sizes = np.abs(np.array(cells["residual"], float))
    assert (np.diff(sizes) <= 0).all()  # the worst first
    cleaned = table(out / "cleaned.csv")
    assert list(cleaned) == ["sample", *COLUMNS[:-1], "sample (column)"]
    found = np.array([cleaned[name] for name in (*COLUMNS[:-1], "sample (column)")], float).T
    np.testing.assert_allclose(found, truth, atol=1e-3)
    seen = ~np.isnan(X)
    assert (found[seen & ~bad] == X[seen & ~bad]).all()  # good cells are as they were
    notes = " ".join(json.loads((out / "summary.json").read_text())["notes"])
    assert f"{(~seen).sum()} of 3000 cells ({(~seen).mean():.1%}) are missing" in notes
    assert f"{bad.sum()} of 3000 cells ({bad.mean():.1%}) are bad, most of them in the column" in notes
    assert "None of 100 samples is an outlier." in notes
    assert notes in " ".join(done.stderr.split())


def test_rows_that_are_outliers(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 10)) + 0.1 * rng.normal(size=(80, 10))
    X[[7, 30, 31]] += rng.normal(size=10) * np.array([[3.0], [9.0], [6.0]])
    write(tmp_path / "rows.csv", X, [f"c{j}" for j in range(10)])
    words = ("--method", "robust", "--robust-method", "robpca", "-k", 2, "--index", "name")
    done = run(tmp_path, "fit", "rows.csv", *words, "--coverage", 0.6)
    out, model = tmp_path / "out", RobustPCA(2, method="robpca", coverage=0.6, random_state=0).fit(X)
    found = table(out / "outliers.csv")
    assert list(found) == [
        "sample",
        "score_distance",
        "orthogonal_distance",
        "beyond_score_limit",
        "beyond_orthogonal_limit",
        "outlier",
    ]
    assert (np.array(found["orthogonal_distance"], float) == model.orthogonal_distances_).all()
    assert (truths(found["outlier"]) == model.outliers_).all()
    assert truths(found["outlier"])[[7, 30, 31]].all()
    many = int(model.outliers_.sum())
    assert f"{many} of 80 samples ({many / 80:.1%}) are outliers" in done.stderr
    assert "row 30, row 31, row 7" in done.stderr  # the farthest first
    assert not (out / "cells.csv").exists()  # cells are not judged
    summary = json.loads((out / "summary.json").read_text())
    assert summary["method"] == "robust"
    assert summary["robust_method"] == "robpca"
    assert summary["outliers"] == many
    assert summary["orthogonal_limit"] == model.orthogonal_limit_
    assert f"{many} of 80 samples" in done.stdout

    printed = list(csv.reader(run(tmp_path, "transform", "out/model.princomp", "rows.csv", "-q").stdout.splitlines()))
    assert printed[0][2:] == ["component_1", "component_2", "score_distance", "orthogonal_distance", "outlier"]
    assert [row[-1] for row in printed[1:]] == found["outlier"]
    assert "RobustPCA(coverage=0.6, method='robpca'" in run(tmp_path, "inspect", "out/model.princomp").stdout


def test_new_rows_with_wild_and_empty_cells(planted, tmp_path):
    """A wild cell does not make its row an outlier, nor bend its scores; many do."""
    folder, _, truth, _ = planted
    run(folder, "fit", "cells.csv", "--method", "robust", "--index", "name", "-o", tmp_path / "out", "--no-report")
    new = truth[:4].copy()
    new[1, 3] += 50.0
    new[2, 4] = np.nan
    new[3, :20] += np.arange(10.0, 30.0)
    write(tmp_path / "new.csv", new, COLUMNS)
    done = run(tmp_path, "transform", "out/model.princomp", "new.csv", "--index", "name", "-o", "scores.csv")
    found, model = table(tmp_path / "scores.csv"), load(tmp_path / "out" / "model.princomp")
    assert "Written" in done.stderr
    assert found["bad_cells"][:3] == ["0", "1", "0"]
    assert found["outlier"][:3] == ["false"] * 3
    assert found["outlier"][3] == "true"
    scores = np.array([found["component_1"], found["component_2"]], float).T
    np.testing.assert_allclose(scores[:3], model.transform(MemoryRows(truth[:3], names=tuple(COLUMNS))), atol=1e-3)


def test_what_is_as_large_as_the_data_is_kept_if_asked_for(planted, tmp_path):
    folder, _, _, _ = planted
    words = ("fit", "cells.csv", "--method", "robust", "--index", "name", "--no-report")
    run(folder, *words, "-o", tmp_path / "few")
    run(folder, *words, "--parts", "-o", tmp_path / "all")
    few, whole = (load(tmp_path / name / "model.princomp") for name in ("few", "all"))
    assert not {"low_rank_", "sparse_", "outlying_cells_"} & set(vars(few))
    assert np.array_equal(
        few.transform(read(folder / "cells.csv", index="name")),
        whole.transform(read(folder / "cells.csv", index="name")),
    )
    low_rank, sparse = (table(tmp_path / "all" / f"{name}.csv") for name in ("low_rank", "sparse"))
    assert (np.array(low_rank["c3"], float) == whole.low_rank_[:, 3]).all()
    assert (np.array(sparse["c3"], float) == whole.sparse_[:, 3]).all()
    assert not (tmp_path / "few" / "low_rank.csv").exists()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_writes_its_tables(method, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 8)) + 0.05 * rng.normal(size=(50, 8))
    X[5, 2] += 10.0
    write(tmp_path / "x.csv", X, [f"c{j}" for j in range(8)])
    run(tmp_path, "fit", "x.csv", "--method", "robust", "--robust-method", method, "-k", 3, "--index", "name")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"outliers.csv", "scores.csv", "loadings.csv", "report.html", "model.princomp"} <= names
    assert ("cells.csv" in names) == ("cleaned.csv" in names) == (method in ("pcp", "cellwise", "online"))
    assert len(table(tmp_path / "out" / "outliers.csv")["sample"]) == 50
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Outlier map" in page
    assert ("Cell map" in page) == ("cells.csv" in names)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--scale",),
            "--scale has no use without --robust-method cellwise or robpca. For pcp divide the columns by scales of "
            "your own first.",
        ),
        (("--robust-method", "spherical", "--alpha", 1), "--alpha has no use without --robust-method pcp or outlier"),
        (("--coverage", 0.8), "--coverage has no use without --robust-method robpca"),
        (("--batch-size", 5), "--batch-size has no use without --robust-method online"),
        (("--robust-method", "robpca", "--solver", "convex"), "--solver has no use without --robust-method pcp"),
        (("--solver", "alternating"), "--solver alternating needs the rank: give -k"),
        (("--coverage", 0.3), "0.3 is not in the range"),
        (("--robust-method", "best"), "'best' is not one of"),
        (("--image-shape", "3x3"), "--image-shape 3x3 is 9 numbers, but rows have 30"),
    ],
)
def test_options_without_use_are_refused(planted, words, sentence):
    folder, _, _, _ = planted
    done = princomp("fit", "cells.csv", "--method", "robust", "--index", "name", *words, "-o", "no", cwd=folder)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not (folder / "no").exists()


def test_empty_cells_are_refused_by_methods_of_rows(planted):
    folder, _, _, _ = planted
    words = ("--method", "robust", "--robust-method", "robpca", "--index", "name", "-o", "no")
    done = princomp("fit", "cells.csv", *words, cwd=folder)
    assert done.returncode == 3
    assert "NaN" in done.stderr


def test_data_that_are_no_low_rank_plus_few_cells_are_told_so(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 8))
    write(tmp_path / "noise.csv", X, [f"c{j}" for j in range(8)])
    done = run(tmp_path, "fit", "noise.csv", "--method", "robust", "--index", "name", "--no-report")
    said = " ".join(done.stderr.split())
    assert "The low-rank part has rank" in said or "take --robust-method cellwise --scale" in said


def test_a_column_in_another_unit_is_told_of(tmp_path):
    """Proline, of which nearly all variance is: a third of its cells are called bad, unless columns are scaled."""
    wine = load_wine()
    write(tmp_path / "wine.csv", wine.X, wine.names)
    words = ("fit", "wine.csv", "--method", "robust", "--robust-method", "cellwise", "--index", "name", "--no-report")
    said = " ".join(run(tmp_path, *words, "-o", "as-it-is").stderr.split())
    assert "most of them in the column proline" in said
    assert "different units" in said
    assert "Take --scale." in said
    assert "different units" not in run(tmp_path, *words, "--scale", "-o", "scaled").stderr


@pytest.mark.parametrize("method", ["robpca", "spherical", "outlier-pursuit", "online"])
def test_methods_of_rows_tell_of_a_column_in_another_unit(method, tmp_path):
    wine = load_wine()
    write(tmp_path / "wine.csv", wine.X, wine.names)
    words = ("fit", "wine.csv", "--method", "robust", "--robust-method", method, "--index", "name", "--no-report")
    said = " ".join(run(tmp_path, *words, "-k", 1, "-o", "as-it-is").stderr.split())
    assert "of the variance along the components is in the column proline" in said
    assert "--scale" in said
    if method == "robpca":
        assert "different units" not in run(tmp_path, *words, "--scale", "-o", "scaled").stderr


def test_online_says_how_many_cells_are_bad(planted, tmp_path):
    folder, X, _, _ = planted
    words = ("--method", "robust", "--robust-method", "online", "-k", 2, "--index", "name", "--no-report")
    done = run(folder, "fit", "cells.csv", *words, "-o", tmp_path / "out")
    cells, outliers = table(tmp_path / "out" / "cells.csv"), table(tmp_path / "out" / "outliers.csv")
    many = len(cells["sample"])
    assert many > 50
    said = " ".join(done.stderr.split())
    assert f"{many} of {X.size} cells ({many / X.size:.1%}) are bad, most of them in the column" in said
    assert np.array(outliers["bad_cells"], int).sum() == many
    again = list(
        csv.DictReader(run(folder, "transform", tmp_path / "out/model.princomp", "cells.csv", "-q").stdout.splitlines())
    )
    assert [row["bad_cells"] for row in again] == outliers["bad_cells"]
    assert [row["outlier"] for row in again] == outliers["outlier"]


# --- frames ---------------------------------------------------------------------------------------

pillow = pytest.mark.needs("pillow", "matplotlib")


def save_frames(folder, X, shape, name="frame-{:02d}.png"):
    from PIL import Image

    folder.mkdir()
    for i, row in enumerate(X):
        Image.fromarray(row.reshape(shape).round().clip(0, 255).astype(np.uint8)).save(folder / name.format(i))


def pixels(path):
    from PIL import Image

    with Image.open(path) as image:
        return np.asarray(image).astype(float)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """A folder with the frames of a clip, and in out/ what the command makes of it; the clip."""
    folder = tmp_path_factory.mktemp("clip")
    clip = make_video(30, shape=(24, 32), n_shapes=2, random_state=0)
    save_frames(folder / "frames", clip.X, clip.shape)
    return folder, clip, run(folder, "fit", "frames", "--method", "robust")


@pillow
def test_frames_become_background_and_foreground(clip):
    folder, clip, done = clip
    out = folder / "out"
    names = [f"frame-{i:02d}.png" for i in range(30)]
    for part in ("background", "foreground"):
        assert sorted(path.name for path in (out / part).iterdir()) == names
    background, foreground = (
        np.array([pixels(out / part / name).ravel() for name in names]) for part in ("background", "foreground")
    )
    assert np.abs(background - clip.background).mean() < 1.0  # of 255 levels
    seen = np.abs(foreground - 127.5) > 8.0
    assert 2 * (seen & clip.moving).sum() / (seen.sum() + clip.moving.sum()) > 0.95
    # Together they are the frame, but for the rounding of three images.
    assert np.abs(background + 2 * (foreground - 127.5) - clip.X).max() <= 3.0
    assert (out / "strip.png").stat().st_size > 5000
    assert "in the folders of these names" in done.stderr
    assert "--tol" in done.stderr
    assert not (out / "cells.csv").exists()
    files = json.loads((out / "summary.json").read_text())["files"]
    assert "background/frame-07.png" in files
    assert "out/background" in done.stdout


@pillow
def test_folders_of_others_are_not_replaced(clip):
    folder, _, _ = clip
    fit = ("fit", "frames", "--method", "robust", "--no-report")
    run(folder, *fit, "-o", "twice")
    done = princomp(*fit, "-o", "twice", cwd=folder)
    assert done.returncode == 5
    assert "--force" in done.stderr
    run(folder, *fit, "-o", "twice", "--force")
    (folder / "twice" / "foreground" / "mine.png").write_bytes(b"")
    done = princomp(*fit, "-o", "twice", "--force", cwd=folder)
    assert done.returncode == 5
    assert "foreground holds what princomp did not write (mine.png)" in done.stderr
    assert (folder / "twice" / "foreground" / "mine.png").exists()
    (folder / "other" / "background").mkdir(parents=True)
    (folder / "other" / "background" / "holiday.png").write_bytes(b"")
    assert princomp(*fit, "-o", "other", "--force", cwd=folder).returncode == 5
    assert (folder / "other" / "background" / "holiday.png").exists()


@pillow
def test_frames_in_colour_and_of_equal_names(tmp_path):
    from princomp.cli.folder import Results

    rng = np.random.default_rng(0)
    X = 120 + 30 * rng.normal(size=(6, 1)) @ rng.normal(size=(1, 60))
    for j, end in enumerate(("png", "bmp")):
        save_frames(tmp_path / end, X[3 * j : 3 * j + 3], (4, 5, 3), "a{}." + end)
        for path in (tmp_path / end).iterdir():
            path.rename(tmp_path / path.name)
        (tmp_path / end).rmdir()
    rows = read(tmp_path)
    place = tmp_path / "out"
    place.mkdir()
    model = RobustPCA(1, method="spherical", random_state=0).fit(rows)
    write_frames(Results(place, place, [], force=False), model, rows)
    names = sorted(path.name for path in (place / "background").iterdir())
    assert names == ["1-a0.png", "2-a0.png", "3-a1.png", "4-a1.png", "5-a2.png", "6-a2.png"]
    assert pixels(place / "background" / names[0]).shape == (4, 5, 3)


@pillow
def test_frames_of_other_bits_are_brought_to_eight(tmp_path):
    from PIL import Image

    from princomp.cli.folder import Results

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) @ rng.normal(size=(1, 30))
    for i, row in enumerate(X.astype(np.float32)):
        Image.fromarray(row.reshape(5, 6)).save(tmp_path / f"{i}.tif")
    rows = read(tmp_path)
    place = tmp_path / "out"
    place.mkdir()
    write_frames(Results(place, place, [], force=False), RobustPCA(random_state=0).fit(rows), rows)
    found = pixels(place / "background" / "3.png").ravel()
    low, high = X.min(), X.max()
    np.testing.assert_allclose(found, 255 * (X[3] - low) / (high - low), atol=1.0)
    np.testing.assert_allclose(pixels(place / "foreground" / "3.png"), 127.5, atol=1.0)
