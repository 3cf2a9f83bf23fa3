"""What kernel PCA says of itself: kernel and width, eigenvalues and where they lie, what components leave of rows."""

import json

import numpy as np
import pytest

from princomp import KernelPCA, load, save
from princomp.datasets import make_circles
from princomp.estimators.description import describe, describe_scores
from princomp.kernels import Gaussian, Linear
from princomp.report.collect import collect
from running import princomp as command

X = make_circles(120, random_state=0).X
LANDMARKS = {"approximation": "rpcholesky", "rank": 12, "random_state": 0}


def said(**options):
    return describe(KernelPCA(3, **{"gamma": 2.0, **options}).fit(X))


def table(found):
    return {column.name: np.asarray(column.values) for column in found.sections[0].columns}


def test_an_exact_fit_tells_its_kernel_and_has_no_bounds():
    model = KernelPCA(3, gamma=2.0).fit(X)
    found = describe(model)
    how = "Kernel rbf with gamma 2, between all 120 samples."
    assert found.computation == (how, str(model.result_.status))
    assert found.summary.endswith(" The variance is that in the feature space of the kernel rbf with gamma 2.")
    assert list(table(found)) == ["component", "eigenvalue", "share", "cumulative share"]
    assert found.sections[0].between == ()
    assert found.notes == ()
    assert (found.facts["kernel"], found.facts["gamma"], found.facts["approximation"]) == ("rbf", 2.0, "exact")


def test_a_width_that_was_found_is_told():
    model = KernelPCA(2, gamma="median").fit(X)
    assert f"gamma {model.gamma_:.4g}," in describe(model).computation[0]
    assert describe(model).facts["gamma"] == model.gamma_


def test_a_choice_on_held_out_rows_is_told():
    model = KernelPCA("held-out", gamma=2.0, noise=0.1, random_state=0).fit(X)
    found = describe(model)
    tried = len(model.held_out_)
    assert found.computation[1].startswith(f"Of {tried} models tried, {model.n_components_} components with gamma 2 ")
    assert found.facts["noise"] == 0.1
    assert "noise" not in said().facts


def test_landmarks_tell_how_large_shares_can_be():
    exact, model = KernelPCA(3, gamma=2.0).fit(X), KernelPCA(3, gamma=2.0, **LANDMARKS).fit(X)
    found = describe(model)
    assert found.sections[0].between == ("share", "at most")
    columns = table(found)
    np.testing.assert_array_equal(columns["eigenvalue"], model.eigenvalues_)
    assert (columns["share"] <= exact.explained_variance_ratio_ + 1e-12).all()
    assert (columns["at most"] >= exact.explained_variance_ratio_).all()
    assert found.facts["rank"] == 12
    np.testing.assert_array_equal(found.facts["eigenvalue_intervals"], model.eigenvalue_intervals_)
    assert "by 12 landmarks, each chosen as unlike those before" in found.computation[0]
    assert found.computation[1] == "The approximation itself was solved exactly, up to rounding."
    assert found.verdict == "Certified: these are the leading components of the approximation."
    assert f"none smaller by more than {np.diff(model.eigenvalue_intervals_)[0, 0]:.1e}" in found.assurance[-1]


def test_random_features_tell_that_nothing_is_known_of_the_matrix():
    found = said(approximation="fourier", rank=50, random_state=0)
    assert found.sections[0].between == ()
    assert found.assurance[-1] == "How far its eigenvalues are from those of the kernel matrix itself is not known."
    assert "by 50 random features (approximation “fourier”)" in found.computation[0]


def test_a_kernel_to_which_all_samples_differ_is_pointed_out():
    (note,) = said(gamma=1e6).notes
    assert note.startswith("To this kernel each sample is like itself alone")
    assert said(gamma=1e6, **LANDMARKS).notes == (note,)


@pytest.mark.filterwarnings("ignore:All rows are alike")
def test_a_kernel_to_which_all_samples_are_alike_is_pointed_out():
    found = said(gamma=0.0)
    assert found.summary == "All samples are alike to the kernel rbf with gamma 0."
    assert found.notes == ()


def test_negative_eigenvalues_are_pointed_out():
    found = said(kernel="knn-rbf", n_neighbors=5)
    (note,) = found.notes
    assert note.startswith("The kernel is not positive semidefinite: ")
    assert f"{100 * found.facts['negative_share']:.0f}\xa0%" in note


def test_a_rank_that_nobody_used_is_pointed_out():
    assert said(rank=30).notes == ("rank=30 was not used: the fit is exact. Name an approximation to have landmarks.",)


@pytest.mark.parametrize("kernel", [Linear() + Gaussian(0.5), "precomputed"])
def test_kernels_without_a_name(kernel):
    data = X @ X.T if kernel == "precomputed" else X
    found = describe(KernelPCA(2, kernel=kernel).fit(data))
    assert found.computation[0].startswith(f"Kernel {kernel}, between all 120 samples.")
    assert json.loads(json.dumps(found.facts, allow_nan=False)) == found.facts


@pytest.mark.parametrize(
    "options",
    [{}, LANDMARKS, {"approximation": "fourier"}, {"kernel": "knn-rbf"}, {"kernel": "normalized-rbf"}],
    ids=["exact", "landmarks", "fourier", "neighbours", "normalised"],
)
def test_what_components_leave_of_a_sample_stands_beside_its_scores(options):
    model = KernelPCA(2, gamma=2.0, **options).fit(X)
    found = describe_scores(model, X)
    assert list(found.columns) == ["component_1", "component_2", "novelty"]
    np.testing.assert_allclose(found.values[:, :2], model.transform(X), atol=1e-12)
    np.testing.assert_allclose(found.columns["novelty"], model.novelty(X), atol=1e-12)
    assert found.axes[-1] == "Novelty"


def test_novelty_is_among_the_axes_of_a_page_and_the_columns_of_a_file():
    model = KernelPCA(12, gamma=2.0).fit(X)
    drawn = collect(model, X).section("scores")
    assert [*drawn.axes[:2], drawn.axes[-1]] == ["Component 1 (25\xa0%)", "Component 2 (18\xa0%)", "Novelty"]
    assert len(drawn.axes) == 10
    np.testing.assert_allclose(drawn.columns[-1], model.novelty(X), atol=1e-12)
    assert len(describe_scores(model, X).columns) == 13


def test_given_matrices_and_given_scores_have_no_novelty():
    matrix = X @ X.T
    assert list(describe_scores(KernelPCA(2, kernel="precomputed").fit(matrix), matrix).columns)[-1] == "component_2"
    model = KernelPCA(2).fit(X)
    assert list(describe_scores(model, None, values=model.transform(X)).columns) == ["component_1", "component_2"]


@pytest.mark.parametrize("kernel", ["knn-rbf", "normalized-rbf"])
def test_novelty_by_kernels_that_ask_the_training_rows(kernel, tmp_path):
    """With all components there is left of a row what the negative eigenvalues take: of the matrix itself."""
    model = KernelPCA(kernel=kernel, gamma=2.0, n_neighbors=5).fit(X)
    save(model, tmp_path / "model.princomp")
    again = load(tmp_path / "model.princomp")
    K = model.kernel_.on(X - X.mean(axis=0)).evaluate(X - X.mean(axis=0))
    if kernel == "knn-rbf":
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = np.linalg.eigh(K)
    np.testing.assert_allclose(model.novelty(X), vectors**2 @ np.minimum(values, 0.0), atol=1e-9)
    np.testing.assert_array_equal(again.novelty(X), model.novelty(X))


@pytest.mark.needs("jinja2", "pyarrow")
def test_the_command_tells_the_same(tmp_path):
    path = tmp_path / "data.csv"
    np.savetxt(path, X, delimiter=",", header="a,b", comments="")
    words = ("--method", "kernel", "-k", "2", "--gamma", "median", "--approximation", "rpcholesky", "--rank", "9")
    done = command("fit", path, *words, "-o", tmp_path / "out", "--no-report")
    assert done.returncode == 0, done.stderr
    assert "Kernel rbf with gamma" in done.stderr
    assert "by 9 landmarks" in done.stderr
    assert done.stdout.split()[:5] == ["component", "eigenvalue", "share", "at", "most"]
    assert (tmp_path / "out" / "scores.csv").read_text().startswith('"sample","component_1","component_2","novelty"')
    inspected = command("inspect", tmp_path / "out" / "model.princomp").stdout
    assert "by 9 landmarks" in inspected
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["rank"] == 9
    assert len(summary["eigenvalue_intervals"]) == 2


@pytest.mark.needs("pyarrow")
def test_the_command_points_out_what_the_model_does(tmp_path):
    path = tmp_path / "data.csv"
    np.savetxt(path, 1000 * X, delimiter=",", header="a,b", comments="")
    done = command("fit", path, "--method", "kernel", "-k", "2", "-o", tmp_path / "out", "--no-report")
    assert "Note: To this kernel each sample is like itself alone" in done.stderr


@pytest.mark.parametrize("gamma", ["wide", "-1", "nan", "inf"])
def test_a_gamma_that_is_none(gamma, tmp_path):
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4\n")
    done = command("fit", tmp_path / "data.csv", "--method", "kernel", "--gamma", gamma)
    assert done.returncode == 2
    assert f"'{gamma}' is neither a number of at least 0, nor one of scale, median, held-out." in done.stderr


def test_spaces_of_a_page_are_plain_ones_on_a_terminal(capsys):
    from princomp.cli.show import tell

    tell("24\xa0% of 10\u202f000 samples")
    assert capsys.readouterr().out == "24 % of 10 000 samples\n"
