"""gamma and k by held-out rows: errors by definition, choices near the best, nothing gained by keeping noise."""

import numpy as np
import pytest
from click.testing import CliRunner

import princomp
from princomp import KernelPCA, plots
from princomp.cli.app import cli
from princomp.data import as_rows, budget
from princomp.datasets import make_circles
from princomp.estimators.description import describe
from princomp.estimators.kernel_choice import counts, descend, estimated_noise, hold_out
from princomp.kernels import Gaussian

CLEAN = np.hstack([3 * make_circles(240, factor=0.5, noise=0.0, random_state=0).X, np.zeros((240, 8))])
X = CLEAN + 0.3 * np.random.default_rng(0).normal(size=CLEAN.shape)
FITS = [
    {"approximation": None},
    {"approximation": "rpcholesky", "rank": 40},
    {"approximation": "nystroem", "rank": 40},
    {"approximation": "fourier", "rank": 100},
]


@pytest.mark.parametrize("noise", [None, 0.2])
def test_errors_are_those_of_models_fitted_without_the_rows(noise):
    model = KernelPCA("held-out", gamma="held-out", noise=noise, random_state=0).fit(X)
    problem = hold_out(as_rows(X), noise, model._generator())
    assert len(problem.noisy) == 48
    assert len(problem.seen) == 192
    for gamma, k, error in model.held_out_[::4]:
        one = KernelPCA(int(k), gamma=gamma).fit(problem.seen)
        assert error == pytest.approx(np.mean((one.denoise(problem.noisy) - problem.wanted) ** 2), rel=1e-4)
    for gamma in np.unique(model.held_out_[:, 0]):
        path = model.held_out_[model.held_out_[:, 0] == gamma]
        assert (np.diff(path[:, 1]) > 0).all()
        # It goes on three further, and no farther, unless there are no more components.
        assert len(path) - 1 - path[:, 2].argmin() == 3 or path[-1, 1] == 191
    best = model.held_out_[model.held_out_[:, 2].argmin()]
    assert (model.gamma_, model.n_components_) == (best[0], best[1])
    assert model.n_samples_ == 240
    assert model.noise_ == (problem.noise if noise is None else noise)


@pytest.mark.parametrize("fit", ["nystroem", "fourier"])
def test_errors_of_a_regression_are_those_with_the_rows_it_would_have(fit):
    how = {"kernel": "laplacian", "gamma": 0.05, "approximation": fit, "rank": 40, "preimage": "ridge"}
    model = KernelPCA("held-out", noise=0.2, random_state=0, **how).fit(X)
    problem = hold_out(as_rows(X), 0.2, model._generator())
    for _, k, error in model.held_out_[::3]:
        one = KernelPCA(int(k), random_state=0, **how).fit(problem.seen)
        assert len(one._examples) == 192
        assert error == pytest.approx(np.mean((one.denoise(problem.noisy) - problem.wanted) ** 2), rel=1e-6)


def test_rows_that_would_be_too_many_are_not_taken_for_few(monkeypatch):
    """What is exact for some of the rows is not for all: the choice is made among models like the one to be fitted."""
    monkeypatch.setattr("princomp.estimators.kernel_choice.ROWS", 50)
    rows = np.random.default_rng(0).normal(size=(700, 3))
    with budget.limited(3_000_000):
        model = KernelPCA("held-out", gamma=0.1, rank=10, noise=0.5, random_state=0).fit(rows)
    assert model.approximation_ == "rpcholesky"
    assert model.held_out_[-1, 1] <= 10


@pytest.mark.parametrize("how", FITS, ids=lambda how: str(how["approximation"]))
def test_the_choice_is_near_the_best_there_is(how):
    """By the rows without noise, which the choice never sees."""
    model = KernelPCA("held-out", gamma="held-out", random_state=0, **how).fit(X)
    fresh = CLEAN + 0.3 * np.random.default_rng(9).normal(size=CLEAN.shape)

    def error(gamma, k):
        one = KernelPCA(k, gamma=gamma, random_state=0, **how).fit(X)
        return np.mean((one.denoise(fresh) - CLEAN) ** 2)

    assert 0.25 < model.noise_ < 0.35
    assert 1 < model.n_components_ < 20
    best = min(error(gamma, k) for gamma in np.unique(model.held_out_[:, 0]) for k in (1, 2, 3, 4, 6, 8))
    assert error(model.gamma_, model.n_components_) < 1.3 * best < 0.5 * 0.3**2


def test_nothing_is_gained_by_keeping_noise():
    """The error against x - e is that against rows without noise, and twice the noise, with any number of components.

    Against x itself it would fall below that, and more so with more components.
    """
    rng = np.random.default_rng(0)
    clean = np.hstack([3 * make_circles(3000, factor=0.5, noise=0.0, random_state=1).X, np.zeros((3000, 8))])
    x, e = (clean + 0.3 * rng.normal(size=clean.shape), 0.3 * rng.normal(size=clean.shape))
    for k in (2, 30):
        found = KernelPCA(k, gamma=0.01).fit(X).denoise(x + e)
        truth = np.mean((found - clean) ** 2)
        assert np.mean((found - (x - e)) ** 2) == pytest.approx(truth + 2 * 0.3**2, rel=0.02)
        assert np.mean((found - x) ** 2) < 0.93 * (truth + 0.3**2)


def test_noise_is_estimated():
    rng = np.random.default_rng(0)
    for n, p in ((500, 30), (60, 200)):
        rows = rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) * 4 + 0.5 * rng.normal(size=(n, p)) + 1e6
        assert estimated_noise(rows) == pytest.approx(0.5, rel=0.2)
    flat = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 10))
    assert estimated_noise(flat) == pytest.approx(0.1 * np.sqrt(np.mean((flat - flat.mean(axis=0)) ** 2)))
    assert estimated_noise(np.ones((5, 3))) == 0.0


def test_one_of_both():
    some = KernelPCA("held-out", gamma=0.02, noise=0.3, random_state=0).fit(X)
    assert some.gamma_ == 0.02
    assert set(some.held_out_[:, 0]) == {0.02}
    assert some.n_components_ == some.held_out_[some.held_out_[:, 2].argmin(), 1]
    other = KernelPCA(4, gamma="held-out", noise=0.3, random_state=0).fit(X)
    assert other.n_components_ == 4
    assert set(other.held_out_[:, 1]) == {4}
    ratios = np.unique(other.held_out_[:, 0])
    np.testing.assert_allclose(ratios[1:] / ratios[:-1], 2.0)
    assert ratios[0] < other.gamma_ < ratios[-1]  # errors rose on both sides
    assert KernelPCA(4, gamma=0.02).fit(X).held_out_ is None


@pytest.mark.parametrize(
    "how",
    [
        {"kernel": "linear"},
        {"kernel": "cosine"},
        {"kernel": "laplacian", "gamma": "held-out"},
        {"kernel": "poly", "gamma": "held-out", "degree": 2},
        {"kernel": "rbf", "gamma": 0.02, "preimage": "ridge"},
        {"kernel": Gaussian(0.02)},
        {"kernel": "laplacian", "gamma": 0.05, "approximation": "nystroem", "landmarks": X[:30, :3]},
    ],
    ids=lambda how: ", ".join(map(str, list(how.values())[:3])),
)
def test_every_kernel(how):
    rows = X[:, :3]
    model = KernelPCA("held-out", noise=0.3, random_state=0, **how).fit(rows)
    assert (model.held_out_[:, 0] == 0).all() == (how["kernel"] in ("linear", "cosine"))
    assert (model.held_out_[:, 2] > 0).all()
    assert np.isfinite(model.denoise(rows)).all()
    if how["kernel"] == "linear":
        assert set(model.held_out_[:, 1]) == {1, 2, 3}


def test_the_same_seed_and_any_offset_choose_the_same():
    rows = np.round(X * 2**16) / 2**16
    one, again, far = (
        KernelPCA("held-out", gamma="held-out", random_state=0).fit(each) for each in (rows, rows, rows + 1e8)
    )
    np.testing.assert_array_equal(one.held_out_, again.held_out_)
    np.testing.assert_allclose(far.held_out_, one.held_out_, rtol=1e-4)


def test_sparse_and_lazy_rows_choose_the_same():
    sparse, dask = pytest.importorskip("scipy.sparse"), pytest.importorskip("dask.array")
    how = {"gamma": 0.02, "noise": 0.3, "random_state": 0}
    expected = KernelPCA("held-out", **how).fit(X).held_out_
    for rows in (sparse.csr_array(X), dask.from_array(X, chunks=(100, 10))):
        np.testing.assert_allclose(KernelPCA("held-out", **how).fit(rows).held_out_, expected, rtol=1e-4)


def test_rows_beyond_some_are_left_out(monkeypatch):
    monkeypatch.setattr("princomp.estimators.kernel_choice.ROWS", 50)
    problem = hold_out(as_rows(X), 0.1, np.random.default_rng(0))
    assert (len(problem.seen), len(problem.noisy)) == (40, 10)
    every = np.vstack([problem.seen, problem.wanted])
    assert all(any(np.array_equal(row, one) for one in X) for row in every)
    assert len(np.unique(every, axis=0)) == 50


def test_numbers_of_components_to_try():
    assert counts(1) == [1]
    assert counts(7) == [1, 2, 3, 4, 6, 7]
    assert counts(100)[-5:] == [32, 48, 64, 96, 100]


@pytest.mark.parametrize("at", [-12, -5, -1, 0, 1, 7, 12, 30])
def test_descent_ends_at_the_least(at):
    asked = []

    def error(octave):
        asked.append(octave)
        return abs(octave - at)

    assert descend(error, 12) == min(at, 12)
    assert len(asked) == len(set(asked)) <= abs(at) + 3


def test_model_files_hold_what_was_tried(tmp_path):
    model = KernelPCA("held-out", gamma="held-out", random_state=0).fit(X)
    princomp.save(model, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    np.testing.assert_array_equal(again.held_out_, model.held_out_)
    assert again.noise_ == model.noise_
    assert again.get_params()["gamma"] == "held-out"


def test_the_picture():
    pytest.importorskip("matplotlib").use("Agg")
    model = KernelPCA("held-out", gamma="held-out", noise=0.3, random_state=0).fit(X)
    axes = plots.held_out_errors(model)
    *lines, ring = axes.get_lines()
    assert len(lines) == len(np.unique(model.held_out_[:, 0])) == len(axes.get_legend().get_texts())
    assert (ring.get_xdata()[0], ring.get_ydata()[0]) == (model.n_components_, model.held_out_[:, 2].min())
    one = plots.held_out_errors(KernelPCA("held-out", kernel="linear", noise=0.3, random_state=0).fit(X))
    assert one.get_legend() is None
    with pytest.raises(ValueError, match="Nothing was held out"):
        plots.held_out_errors(KernelPCA(2).fit(X))
    with pytest.raises(TypeError, match="is of a fitted KernelPCA"):
        plots.held_out_errors(princomp.PCA(2).fit(X))


def test_the_command_line_chooses(tmp_path):
    np.savetxt(tmp_path / "data.csv", X[:, :4], delimiter=",", header="a,b,c,d", comments="")
    how = ["--method", "kernel", "-k", "held-out", "--gamma", "held-out", "--noise", "0.3", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(cli, ["fit", str(tmp_path / "data.csv"), *how])
    assert done.exit_code == 0, done.output
    model = princomp.load(tmp_path / "out" / "model.princomp")
    assert model.noise_ == 0.3
    assert model.gamma_ in model.held_out_[:, 0]
    said = describe(model).computation[1]
    assert said.startswith(f"Of {len(model.held_out_)} models tried, {model.n_components_} components with gamma")


@pytest.mark.filterwarnings("ignore:All rows are alike", "ignore:Noise was taken")
@pytest.mark.parametrize(
    "how", [{}, {"gamma": "held-out"}, {"kernel": "linear"}, {"gamma": 0.0}, {"gamma": 1e9}], ids=str
)
@pytest.mark.parametrize("rows", [np.ones((12, 3)), X[:5], np.repeat(X[:2], 6, axis=0), X[:3]], ids=len)
def test_odd_data_have_a_choice(rows, how):
    model = KernelPCA("held-out", random_state=0, **how).fit(rows)
    assert np.isfinite(model.held_out_[:, 1:]).all()
    assert np.isfinite(model.denoise(rows)).all()


def test_noise_that_may_be_what_the_data_are_about_is_warned_of():
    """Of two columns, the median component is one of the two that draw the rings."""
    rings = make_circles(200, random_state=0).X
    with pytest.warns(UserWarning, match=r"Noise was taken to have a standard deviation of 0\.5.*Give noise="):
        KernelPCA("held-out", gamma=2.0, random_state=0).fit(rings)
    KernelPCA("held-out", gamma=2.0, noise=0.05, random_state=0).fit(rings)


def test_a_cell_that_is_no_number_is_named():
    rows = X.copy()
    rows[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN in column 2"):
        KernelPCA("held-out", gamma="held-out").fit(rows)


@pytest.mark.parametrize(
    ("how", "rows", "words"),
    [
        ({"kernel": "precomputed"}, np.eye(8), "does not give. Give numbers"),
        ({"kernel": "linear", "gamma": "held-out"}, X, "a kernel by name that has a gamma"),
        ({"kernel": Gaussian(1.0), "gamma": "held-out"}, X, "a kernel by name that has a gamma"),
        ({"approximation": "nystroem", "landmarks": [1, 2]}, X, "give landmarks as rows"),
        ({"noise": 0.0}, X, "noise must be a finite number above 0"),
        ({"noise": "much"}, X, "noise must be a finite number above 0"),
        ({"preimage": "fixed-point", "kernel": "poly"}, X, 'is for kernel="rbf"'),
        ({}, X[:2], "needs at least 3 rows, got 2"),
    ],
)
def test_refusals_say_what_to_do(how, rows, words):
    with pytest.raises(ValueError, match=words):
        KernelPCA("held-out", **how).fit(rows)
    with pytest.raises(ValueError, match="n_components must be"):
        KernelPCA("heldout", **how).fit(rows)
