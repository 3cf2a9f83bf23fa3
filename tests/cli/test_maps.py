"""`princomp fit` of volumes and images: maps, their picture, the report, and the transform of another scan."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from princomp import load, read
from princomp.cli.maps import scans_apart
from princomp.report.collect import Atoms, collect
from running import princomp

pytestmark = pytest.mark.needs("nibabel", "matplotlib", "pyarrow", "jinja2", "pillow")

FILES = ["config.toml", "maps.nii.gz", "maps.png", "mask.nii.gz", "model.princomp", "report.html", "summary.json"]
SHAPE = (10, 12, 8)
AFFINE = np.array([[-3.0, 0, 0, 15], [0, 3, 0, -18], [0, 0, 4, -16], [0, 0, 0, 1]])


def save(path, data, affine=AFFINE):
    import nibabel as nib

    nib.save(nib.Nifti1Image(data, affine), path)


@pytest.fixture(scope="module")
def brain(tmp_path_factory):
    """A folder with brain.nii.gz, two networks over an image, and its mask.nii.gz."""
    folder = tmp_path_factory.mktemp("brain")
    rng = np.random.default_rng(0)
    x, y, z = np.meshgrid(*(np.linspace(-1, 1, side) for side in SHAPE), indexing="ij")
    mask = x**2 + y**2 + z**2 < 1
    networks = [(np.abs(x) > 0.4) & (y > 0.2), (y < -0.3) & (z > 0)]
    time = np.arange(40)
    X = 100 * (2 + x)[..., None] + rng.normal(size=(*SHAPE, 40))
    for i, network in enumerate(networks):
        X += 9 * network[..., None] * np.sin(time / (2 + i)) / (1 + i)
    save(folder / "brain.nii.gz", (X * mask[..., None]).astype("f4"))
    save(folder / "mask.nii.gz", mask.astype("u1"))
    return folder, mask, [network & mask for network in networks]


def test_networks_are_found_over_a_baseline_unless_it_is_to_stay(brain, tmp_path):
    """Pairs of rank one: the command takes the means of voxels away, which the class does when it is asked to."""
    import nibabel as nib

    folder, mask, networks = brain
    words = ("fit", "brain.nii.gz", "--mask", "mask.nii.gz", "--method", "rank-one", "-k", 2, "--no-report")
    counts = ",".join(str(int(network.sum())) for network in networks)
    princomp(*words, "--nonzeros", counts, "--refine", 20, "-o", tmp_path / "out", cwd=folder)
    maps = nib.load(tmp_path / "out" / "maps.nii.gz").get_fdata()
    alike = np.abs(np.corrcoef([*maps[mask].T, *(network[mask] for network in networks)])[:2, 2:])
    assert alike.max(axis=0).min() > 0.9
    done = princomp(*words, "--no-center", "-o", tmp_path / "as it is", cwd=folder)
    assert "Nearly all squares of X are those of the means" in done.stderr
    assert load(tmp_path / "out" / "model.princomp").center
    assert not load(tmp_path / "as it is" / "model.princomp").center


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("-k", 2), ["loadings.csv", "scores.csv"]),
        (("--method", "sparse", "--nonzeros", 60, "-k", 2), ["loadings.csv", "scores.csv"]),
        (("--method", "dictionary", "-k", 3, "--nonzeros", 1), ["atoms.csv", "codes.csv"]),
        (("--method", "rank-one", "--nonzeros", 60, "-k", 2), ["atoms.csv", "loadings.csv", "scores.csv"]),
        (("--method", "mixture", "--groups", 2, "-k", 1), ["loadings.csv", "scores.csv"]),
    ],
    ids=lambda words: str(words[1]),
)
def test_every_method_with_weights_of_voxels_writes_maps(brain, tmp_path, words, more):
    import nibabel as nib
    from PIL import Image

    folder, mask, _ = brain
    done = princomp("fit", "brain.nii.gz", "--mask", "mask.nii.gz", *words, "-o", tmp_path / "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == sorted([*FILES, *more])
    components = load(out / "model.princomp").components_.reshape(-1, mask.sum())
    maps = nib.load(out / "maps.nii.gz")
    assert maps.shape == (*SHAPE, len(components))
    assert np.array_equal(maps.affine, AFFINE)
    assert np.array_equal(maps.get_fdata()[mask].T, components.astype(np.float32))  # in the model's own order
    assert not maps.get_fdata()[~mask].any()
    assert np.array_equal(np.asarray(nib.load(out / "mask.nii.gz").dataobj), mask)
    with Image.open(out / "maps.png") as picture:
        assert min(picture.size) > 300
    assert {"maps.nii.gz", "maps.png", "mask.nii.gz"} <= set(json.loads((out / "summary.json").read_text())["files"])


def test_maps_show_the_networks(brain, tmp_path):
    import nibabel as nib

    folder, mask, networks = brain
    words = ("--method", "sparse", "--nonzeros", int(networks[0].sum()), "-k", 1, "--no-report")
    princomp("fit", "brain.nii.gz", "--mask", "mask.nii.gz", *words, "-o", tmp_path / "out", cwd=folder)
    assert np.array_equal(nib.load(tmp_path / "out" / "maps.nii.gz").get_fdata() != 0, networks[0])
    assert mask.sum() > networks[0].sum()


def test_a_method_without_weights_of_voxels_has_no_maps(brain, tmp_path):
    folder, _, _ = brain
    words = ("--mask", "mask.nii.gz", "--method", "kernel", "-k", 2, "-o", tmp_path / "out")
    assert princomp("fit", "brain.nii.gz", *words, cwd=folder).returncode == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert "mask.nii.gz" in names
    assert names.isdisjoint({"maps.nii.gz", "maps.png"})


def test_other_data_have_no_maps(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20, 4)))
    assert princomp("fit", "x.npy", "-k", 2, "--no-report", cwd=tmp_path).returncode == 0
    assert not [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith("ma")]


def test_without_matplotlib_the_line_is_said_before_the_work(brain, tmp_path, monkeypatch):
    import importlib.util

    folder, _, _ = brain
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else found(name))
    done = princomp("fit", "brain.nii.gz", "--mask", "mask.nii.gz", "-o", tmp_path / "out", cwd=folder)
    assert done.returncode == 2
    assert 'matplotlib must be installed for this: pip install "princomp[plot]"' in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("k", "said"), [(2, ""), (3, "The first 2 of 3; maps.nii.gz has all")])
def test_a_picture_of_some_components_says_so(brain, monkeypatch, k, said):
    from matplotlib import pyplot

    from princomp import PCA
    from princomp.cli import maps
    from princomp.estimators.description import Loadings, describe

    folder, _, _ = brain
    rows = read(folder / "brain.nii.gz", mask=folder / "mask.nii.gz")
    monkeypatch.setattr(maps, "DRAWN", 2)
    (weights,) = (part for part in describe(PCA(k).fit(rows)).sections if isinstance(part, Loadings))
    a_little_lower = AFFINE.copy()
    a_little_lower[2, 3] -= 0.3
    figure = maps.drawn(replace(rows.layout, affine=a_little_lower), weights, None)
    assert figure.get_suptitle() == said
    assert len([axes for axes in figure.axes if axes.get_title(loc="left")]) == 2
    heights = {axes.get_xlabel() for axes in figure.axes}
    assert "z = 0 mm" in heights
    assert not any("−0 " in text or "-0 " in text for text in heights)
    pyplot.close(figure)


# --- the same model on another scan ---------------------------------------------------------------


def test_scans_whose_means_differ_are_told_of(brain, tmp_path):
    """A second scan of the same, a third brighter: a pair is which scan it is; centred, they are networks again."""
    import nibabel as nib

    folder, mask, networks = brain
    scan = nib.load(folder / "brain.nii.gz").get_fdata(dtype=np.float32)
    words = ("--mask", folder / "mask.nii.gz", "--method", "rank-one", "-k", 2, "--refine", 20, "--no-report")
    words += ("--nonzeros", ",".join(str(int(network.sum())) for network in networks))
    for kind, change in (("raw", lambda each: each), ("own", lambda each: each - each.mean(axis=3, keepdims=True))):
        for name, each in (("1", scan[..., :25]), ("2", 1.33 * scan[..., 25:])):
            save(tmp_path / f"{kind}-{name}.nii.gz", change(each))
    found = {
        kind: princomp("fit", f"{kind}-*.nii.gz", *words, "-o", tmp_path / kind, cwd=tmp_path)
        for kind in ("raw", "own")
    }
    assert "The 2 scans differ in their means" in " ".join(found["raw"].stderr.split())
    assert "scans differ" in json.loads((tmp_path / "raw" / "summary.json").read_text())["notes"][0]
    atoms = load(tmp_path / "raw" / "model.princomp").atoms_
    assert np.abs(np.corrcoef(atoms[:, 0], np.arange(40) < 25)[0, 1]) > 0.99
    assert "scans differ" not in found["own"].stderr
    maps = nib.load(tmp_path / "own" / "maps.nii.gz").get_fdata()
    alike = np.abs(np.corrcoef([*maps[mask].T, *(network[mask] for network in networks)])[:2, 2:])
    assert alike.max(axis=0).min() > 0.9


@pytest.mark.parametrize(("scans", "volumes"), [(2, 40), (20, 2)])
def test_means_that_differ_by_chance_are_not_told_of(scans, volumes, tmp_path):
    rng = np.random.default_rng(0)
    for i in range(scans):
        save(tmp_path / f"sub-{i}.nii.gz", (1000 + rng.normal(size=(5, 6, 4, volumes))).astype("f4"))
    assert scans_apart(read(tmp_path / "sub-*.nii.gz")) == []


@pytest.fixture(scope="module")
def fitted(brain):
    folder, mask, networks = brain
    done = princomp("fit", "brain.nii.gz", "--mask", "mask.nii.gz", "-k", 2, "--no-report", "-o", "fit", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, mask, networks


def test_transform_takes_the_mask_of_the_fit(fitted):
    folder, _, _ = fitted
    done = princomp("transform", "fit/model.princomp", "brain.nii.gz", "-q", cwd=folder)
    assert done.returncode == 0, done.stderr
    printed = np.array([row[1:] for row in list(csv.reader(done.stdout.splitlines()))[1:]], float)
    with (folder / "fit" / "scores.csv").open() as file:
        there = np.array([row[1:] for row in list(csv.reader(file))[1:]], float)
    np.testing.assert_allclose(printed, there, rtol=1e-5)
    given = princomp("transform", "fit/model.princomp", "brain.nii.gz", "--mask", "mask.nii.gz", "-q", cwd=folder)
    assert given.stdout == done.stdout


def test_transform_refuses_another_grid_and_another_mask(fitted):
    folder, mask, _ = fitted
    save(folder / "moved.nii.gz", np.ones((*SHAPE, 3), "f4"), AFFINE + np.eye(4, k=3))
    done = princomp("transform", "fit/model.princomp", "moved.nii.gz", cwd=folder)
    assert done.returncode == 3
    assert "is on another grid than moved.nii.gz: its voxels lie elsewhere" in " ".join(done.stderr.split())
    save(folder / "other.nii.gz", np.roll(mask, 1, axis=2).astype("u1"))  # as many voxels
    done = princomp("transform", "fit/model.princomp", "brain.nii.gz", "--mask", "other.nii.gz", cwd=folder)
    assert done.returncode == 3
    assert "fitted to other voxels, those of fit/mask.nii.gz: the mask is another one" in " ".join(done.stderr.split())


def test_transform_without_the_mask_of_the_fit_asks_for_it(fitted, tmp_path):
    folder, mask, _ = fitted
    (tmp_path / "model.princomp").write_bytes((folder / "fit" / "model.princomp").read_bytes())
    done = princomp("transform", tmp_path / "model.princomp", "brain.nii.gz", cwd=folder)
    assert done.returncode == 3
    said = f"The model was fitted to {mask.sum()} voxels, but these volumes have {mask.size}: give --mask, the mask"
    assert said in " ".join(done.stderr.split())
    done = princomp("transform", tmp_path / "model.princomp", "brain.nii.gz", "--mask", "mask.nii.gz", cwd=folder)
    assert done.returncode == 0, done.stderr


def test_one_volume_is_too_few_for_a_fit(brain, tmp_path):
    folder, _, _ = brain
    done = princomp("fit", "mask.nii.gz", "-o", tmp_path / "out", cwd=folder)
    assert done.returncode == 3
    said = "mask.nii.gz holds one volume: give a 4-D scan, or several files by a pattern such as 'vol-*.nii'."
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_mask_that_does_not_fit_is_code_3_and_leaves_nothing(brain, tmp_path):
    folder, _, _ = brain
    save(tmp_path / "mask.nii.gz", np.ones((3, 3, 3), "u1"))
    done = princomp("fit", "brain.nii.gz", "--mask", tmp_path / "mask.nii.gz", "-o", tmp_path / "out", cwd=folder)
    assert done.returncode == 3
    assert "is on another grid than brain.nii.gz: 3 x 3 x 3 voxels, not 10 x 12 x 8" in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


# --- the report -----------------------------------------------------------------------------------


def test_the_report_draws_maps_over_the_mean(brain):
    from princomp import PCA

    folder, mask, _ = brain
    rows = read(folder / "brain.nii.gz", mask=folder / "mask.nii.gz")
    model = PCA(3).fit(rows)
    drawn = collect(model, rows, background=model.mean_).section("loadings")
    assert isinstance(drawn, Atoms)
    assert drawn.shape == (20, 16, 3)  # four slices, as large as the mask
    assert (drawn.values.shape, drawn.values.dtype, drawn.left_out) == ((3, 20 * 16 * 3), np.uint8, 0)
    assert "Slices from above" in drawn.text
    many = collect(PCA(25).fit(rows), rows).section("loadings")
    assert (len(many.values), many.left_out) == (20, 5)
    whole = collect(model, rows.block(0)).section("loadings")  # an array says nothing of places
    assert not isinstance(whole, Atoms)
    assert mask.sum() == model.n_features_in_


@pytest.mark.parametrize("shape", [(8, 6), (8, 6, 3), (400, 400)])
def test_a_folder_of_images_is_drawn_as_images_without_being_told(tmp_path, shape):
    from PIL import Image

    (tmp_path / "frames").mkdir()
    for i in range(6):
        pixels = np.random.default_rng(i).integers(0, 256, shape).astype("u1")
        Image.fromarray(pixels).save(tmp_path / "frames" / f"{i}.png")
    done = princomp("fit", "frames", "-k", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out" / "scores.csv").open() as file:
        assert [row[0] for row in csv.reader(file)][1:] == [f"{i}.png" for i in range(6)]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "All components as small images, side by side" in page
    assert len(page) < 3e6
    assert ("Of rows and columns of pixels, one of 2 is drawn." in page) == (len(shape) == 2 and shape[0] == 400)


def test_transform_refuses_images_of_another_shape_with_as_many_pixels(tmp_path):
    from PIL import Image

    for folder, shape in (("frames", (4, 6)), ("others", (6, 4)), ("more", (4, 6))):
        (tmp_path / folder).mkdir()
        for i in range(4):
            pixels = np.random.default_rng(i).integers(0, 256, shape).astype("u1")
            Image.fromarray(pixels).save(tmp_path / folder / f"{i}.png")
    assert princomp("fit", "frames", "-k", 2, "--no-report", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["image_shape"] == [4, 6]
    done = princomp("transform", "out/model.princomp", "others", cwd=tmp_path)
    assert done.returncode == 3
    said = "The model was fitted to images of 4 x 6 pixels, but these have 6 x 4."
    assert said in " ".join(done.stderr.split())
    assert princomp("transform", "out/model.princomp", "more", cwd=tmp_path).returncode == 0
    for text in ("{", "[]", '{"image_shape": 3}'):  # not one of ours: nothing is known
        (tmp_path / "out" / "summary.json").write_text(text)
        assert princomp("transform", "out/model.princomp", "others", cwd=tmp_path).returncode == 0
