"""Pictures hold what the models say: points, ellipses and bars are read back from the drawn axes."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from princomp import PCA, KernelPCA, ProbabilisticPCA, ProbabilisticPCAMixture, RobustPCA, plots
from princomp.data.layout import VoxelLayout
from princomp.datasets import load_tobamovirus, make_circles
from princomp.images.slices import slices

pytestmark = pytest.mark.needs("matplotlib")


@pytest.fixture(autouse=True)
def no_figure_is_left():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture
def axes():
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


@pytest.fixture(scope="module")
def model():
    return ProbabilisticPCA(3).fit(load_tobamovirus().X)


def test_ellipses_are_those_of_the_posterior(model, axes):
    X = load_tobamovirus().X
    X[4, ::2] = np.nan
    labels = np.arange(len(X)) % 3
    assert plots.posterior_scores(model, X, components=(0, 2), labels=labels, deviations=3.0, axes=axes) is axes
    mean, covariance = model.posterior(X)
    drawn = np.vstack([points.get_offsets() for points in axes.collections])
    order = np.argsort(labels, kind="stable")
    assert np.allclose(drawn, mean[order][:, [0, 2]])
    for patch, row in zip(axes.patches, order, strict=True):
        away = patch.get_xy()[:-1] - mean[row, [0, 2]]
        distance = np.einsum("ij,ij->i", away @ np.linalg.inv(covariance[row][np.ix_([0, 2], [0, 2])]), away)
        assert np.allclose(distance, 9.0)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["0", "1", "2"]


def test_bars_are_the_deviations(model, axes):
    truth = load_tobamovirus().X
    X = truth.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    plots.imputed_cells(model, X, truth=truth, deviations=2.0, most=20, axes=axes)
    filled, deviation = model.impute(X, return_std=True)
    i, j = (part[:20] for part in np.nonzero(np.isnan(X)))
    points = next(line for line in axes.lines if line.get_marker() == "o")
    assert np.allclose(points.get_ydata(), filled[i, j])
    bars = np.array([segment[:, 1] for segment in axes.collections[0].get_segments()])
    assert np.allclose(np.diff(bars, axis=1)[:, 0], 4 * deviation[i, j])
    assert np.allclose(axes.collections[1].get_offsets()[:, 1], truth[i, j])


def test_likelihoods_along_a_path(axes):
    X = load_tobamovirus().X
    models = [ProbabilisticPCA(k).fit(X[::2]) for k in (3, 1, 2)]
    plots.likelihood_path(models, X[1::2], axes=axes)
    seen, unseen = axes.lines[:2]
    assert seen.get_xdata().tolist() == [1, 2, 3]
    assert np.allclose(seen.get_ydata(), [m.score(X[::2]) for m in (models[1], models[2], models[0])])
    assert np.allclose(unseen.get_ydata(), [m.score(X[1::2]) for m in (models[1], models[2], models[0])])


def test_wrong_components(model):
    with pytest.raises(ValueError, match=r"two different numbers from 0 to 2, got \(0, 3\)"):
        plots.posterior_scores(model, load_tobamovirus().X, components=(0, 3))


def test_wrong_labels_and_truth(model):
    X = load_tobamovirus().X
    with pytest.raises(ValueError, match="labels must have one entry per row, 38, got 2"):
        plots.posterior_scores(model, X, labels=[0, 1])
    with pytest.raises(ValueError, match=r"truth must have the shape of X, \(38, 18\), got \(2, 2\)"):
        plots.imputed_cells(model, X, truth=np.zeros((2, 2)))


def test_models_that_cannot_be_drawn(model):
    X = load_tobamovirus().X
    with pytest.raises(ValueError, match="one component"):
        plots.posterior_scores(ProbabilisticPCA(1).fit(X), X)
    for other in (PCA(2).fit(X), ProbabilisticPCAMixture(2, random_state=0).fit(X)):
        with pytest.raises(TypeError, match=f"a fitted ProbabilisticPCA, got {type(other).__name__}"):
            plots.posterior_scores(other, X)
    for draw in (plots.posterior_scores, plots.imputed_cells, lambda model, X: plots.likelihood_path([model])):
        with pytest.raises(NotFittedError):
            draw(ProbabilisticPCA(2), X)
    with pytest.raises(ValueError, match="give fit_covariance the number of samples"):
        plots.likelihood_path([model, ProbabilisticPCA(2).fit_covariance(np.cov(X.T))])
    with pytest.raises(ValueError, match="no model to draw"):
        plots.likelihood_path([])


def test_only_some_of_the_cells(model, axes):
    X = load_tobamovirus().X
    X[:25, :2] = np.nan
    assert plots.imputed_cells(model, X, most=5, axes=axes).get_xlabel() == "5 of 50 missing cells, row by row"


@pytest.mark.needs("pandas")
def test_frames_keep_their_names(axes):
    """Else scikit-learn warns that names are missing, and warnings are errors here."""
    import pandas

    frame = pandas.DataFrame(load_tobamovirus().X, columns=[f"acid {j}" for j in range(18)])
    frame.iloc[3, 4] = np.nan
    model = ProbabilisticPCA(2).fit(frame)
    plots.imputed_cells(model, frame, truth=frame.fillna(0.0), axes=axes)
    assert axes.get_xlabel() == "1 missing cell, row by row"
    plots.posterior_scores(model, frame, axes=axes)
    assert np.allclose(axes.collections[-1].get_offsets(), model.transform(frame))


def test_likelihoods_of_weighted_rows(axes):
    X = load_tobamovirus().X
    weight = np.arange(38) % 3
    models = [ProbabilisticPCA(k).fit(X, sample_weight=weight) for k in (1, 2)]
    repeated = np.repeat(X, weight, axis=0)
    plots.likelihood_path(models, axes=axes)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [model.score(repeated) for model in models])
    assert [model.total_weight_ for model in models] == [len(repeated)] * 2


def test_without_matplotlib(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "princomp\[plot\]"'):
        plots.imputed_cells(model, load_tobamovirus().X)


def test_points_are_the_scores_in_the_colours_of_their_groups(axes):
    data = make_circles(60, random_state=0)
    model = KernelPCA(3, gamma=2.0).fit(data.X)
    assert plots.score_scatter(model, data.X, components=(2, 0), labels=data.groups, axes=axes) is axes
    scores = model.transform(data.X)[:, [2, 0]]
    for points, group in zip(axes.collections, (0, 1), strict=True):
        np.testing.assert_array_equal(points.get_offsets(), scores[data.groups == group])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["0", "1"]
    shares = [f"{100 * share:.0f}\xa0%" for share in model.explained_variance_ratio_]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (f"component 3 ({shares[2]})", f"component 1 ({shares[0]})")


def test_points_on_a_scale_of_colours(axes):
    data = make_circles(60, random_state=0)
    plots.score_scatter(PCA(2).fit(data.X), data.X, values=data.angle, axes=axes)
    np.testing.assert_array_equal(axes.collections[0].get_array(), data.angle)
    assert len(axes.figure.axes) == 2  # the scale itself


@pytest.mark.parametrize("draw", [plots.score_scatter, plots.kernel_contours])
def test_wrong_labels_of_scores(draw):
    X = make_circles(60, random_state=0).X
    with pytest.raises(ValueError, match="labels must have one entry per row, 60, got 2"):
        draw(PCA(2).fit(X), X, labels=[0, 1])


def test_wrong_colours_of_points():
    X = make_circles(60, random_state=0).X
    with pytest.raises(ValueError, match="give labels or values, not both"):
        plots.score_scatter(PCA(2).fit(X), X, labels=X[:, 0], values=X[:, 0])
    with pytest.raises(ValueError, match="values must have one entry per row, 60, got 1"):
        plots.score_scatter(PCA(2).fit(X), X, values=[0.0])
    with pytest.raises(ValueError, match="one component"):
        plots.score_scatter(PCA(1).fit(X), X)


def lines_of(axes):
    """Contours without a filling: levels, and the points on each."""
    from matplotlib.contour import ContourSet

    (lines,) = (drawn for drawn in axes.collections if isinstance(drawn, ContourSet) and not drawn.filled)
    return [(level, path.vertices) for level, path in zip(lines.levels, lines.get_paths(), strict=True)]


@pytest.mark.parametrize(("model", "error"), [(PCA(2), 1e-9), (KernelPCA(8, gamma=2.0), 0.02)])
def test_the_score_is_the_same_along_a_contour(model, error):
    X = make_circles(120, random_state=0).X
    panels = plots.kernel_contours(model.fit(X), X, grid=120)
    assert len(panels) == model.n_components
    for j, panel in enumerate(panels):
        crossed = [(level, points) for level, points in lines_of(panel) if len(points)]
        assert len(crossed) >= 4
        largest = max(abs(level) for level, _ in lines_of(panel))
        for level, points in crossed:
            np.testing.assert_allclose(model.transform(points)[:, j], level, atol=error * largest)


def test_contours_where_the_user_wants_them():
    import matplotlib.pyplot as plt

    data = make_circles(60, random_state=0)
    model = KernelPCA(4, gamma=2.0).fit(data.X)
    mine = plt.subplots(1, 2)[1]
    drawn = plots.kernel_contours(model, data.X, components=[3, 1], labels=data.groups, axes=mine, grid=20)
    assert list(drawn) == list(mine)
    assert [axes.get_title()[:11] for axes in drawn] == ["component 4", "component 2"]
    outer, inner = drawn[0].collections[-2:]
    np.testing.assert_array_equal(outer.get_offsets(), data.X[data.groups == 0])
    np.testing.assert_array_equal(inner.get_offsets(), data.X[data.groups == 1])
    with pytest.raises(ValueError, match="axes must be as many as components are drawn, 3, got 2"):
        plots.kernel_contours(model, data.X, components=3, axes=mine, grid=20)


def test_five_components_need_two_rows_of_panels():
    X = make_circles(60, random_state=0).X
    drawn = plots.kernel_contours(KernelPCA(5, gamma=2.0).fit(X), X, grid=10)
    assert list(drawn[0].figure.axes) == list(drawn)
    assert drawn[0].get_subplotspec().get_gridspec().get_geometry() == (2, 4)


@pytest.mark.parametrize(
    ("components", "message"), [(0, "at least 1, got 0"), ([2], r"from 0 to 1, got \[2\]"), ([], "from 0 to 1")]
)
def test_components_that_have_no_contours(components, message):
    X = make_circles(60, random_state=0).X
    with pytest.raises(ValueError, match=message):
        plots.kernel_contours(PCA(2).fit(X), X, components=components)


def test_data_that_have_no_contours():
    X = load_tobamovirus().X
    with pytest.raises(ValueError, match=r"two columns, got data of shape \(38, 18\)"):
        plots.kernel_contours(PCA(2).fit(X), X)
    with pytest.raises(NotFittedError):
        plots.kernel_contours(KernelPCA(2), X)
    with pytest.raises(TypeError, match="a fitted estimator with transform, got int"):
        plots.kernel_contours(3, X)


@pytest.mark.filterwarnings("ignore:All rows are alike")
def test_contours_of_scores_that_are_all_0():
    X = np.ones((5, 2))
    (panel,) = plots.kernel_contours(KernelPCA(1).fit(X), X, grid=10)
    np.testing.assert_array_equal(panel.collections[-1].get_offsets(), X)


@pytest.mark.needs("pandas", "polars")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_contours_of_frames_keep_their_names(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame(dict(zip("ab", make_circles(60, random_state=0).X.T, strict=True)))
    panels = plots.kernel_contours(KernelPCA(2, gamma=2.0).fit(frame), frame, grid=10)
    np.testing.assert_array_equal(panels[0].collections[-1].get_offsets(), frame.to_numpy())


def test_images_stand_in_rows_on_one_grey_scale(axes):
    first, second = np.arange(18.0).reshape(3, 6), np.full((2, 6), 99.0)
    plots.image_mosaic({"original": first, "noisy": second}, shape=(2, 3), axes=axes)
    (picture,) = axes.images
    drawn = picture.get_array()
    assert drawn.shape == (5, 7)  # two images each, 2 x 3, a gap between them
    np.testing.assert_array_equal(drawn[:2, :3], first[0].reshape(2, 3))
    np.testing.assert_array_equal(drawn[:2, 4:], first[1].reshape(2, 3))
    np.testing.assert_array_equal(drawn[3:, :3], second[0].reshape(2, 3))
    assert drawn.mask[2].all()
    assert drawn.mask[:, 3].all()
    assert picture.get_clim() == (0.0, 11.0)
    assert [text.get_text() for text in axes.get_yticklabels()] == ["original", "noisy"]
    assert axes.get_yticks().tolist() == [0.5, 3.5]


def test_fewer_images(axes):
    plots.image_mosaic({"faces": np.arange(90.0).reshape(10, 9)}, most=4, limits=(-1.0, 2.0), axes=axes)
    assert axes.images[0].get_array().shape == (3, 15)
    assert axes.images[0].get_clim() == (-1.0, 2.0)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ({}, {}, "no image to draw: give a mapping"),
        ({"a": np.zeros((0, 9))}, {}, "no image to draw: an array has no row"),
        ({"a": np.zeros((2, 8))}, {}, "8 pixels, which is no square: give shape"),
        ({"a": np.zeros((2, 8))}, {"shape": (3, 3)}, "8 pixels, which is not 3 x 3"),
        ({"a": np.zeros((2, 9)), "b": np.zeros((2, 4))}, {}, r"got arrays of shapes a: \(2, 9\), b: \(2, 4\)"),
        ({"a": np.zeros((2, 3, 3))}, {}, r"rows of equally many numbers, got arrays of shapes a: \(2, 3, 3\)"),
    ],
)
def test_images_that_cannot_be_drawn(rows, options, message):
    with pytest.raises(ValueError, match=message):
        plots.image_mosaic(rows, **options)


def test_atoms_stand_side_by_side_each_on_its_own_scale(axes):
    dictionary = np.array([[1.0, -2.0, 0.5, 0.0], [0.0, 0.0, 0.0, 0.0], [30.0, 10.0, -10.0, 0.0]])
    assert plots.atoms(dictionary, axes=axes) is axes
    (picture,) = axes.images
    drawn = picture.get_array()
    assert drawn.shape == (5, 5)
    np.testing.assert_allclose(drawn[:2, :2], [[0.5, -1.0], [0.25, 0.0]])
    np.testing.assert_allclose(drawn[:2, 3:], 0.0)
    np.testing.assert_allclose(drawn[3:, :2], [[1.0, 1 / 3], [-1 / 3, 0.0]])
    assert drawn.mask[2].all()
    assert drawn.mask[:, 2].all()
    assert drawn.mask[3:, 3:].all()
    assert picture.get_clim() == (-1.0, 1.0)


def test_atoms_that_are_used_most_come_first(axes):
    plots.atoms(np.diag([1.0, -2.0, 3.0]), shape=(1, 3), usage=[1, 7, 7], columns=1, axes=axes)
    shades = axes.images[0].get_array()[::2].filled()
    np.testing.assert_array_equal(shades, [[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0], [1.0, -1.0, -1.0]])


def test_atoms_of_one_sign_are_drawn_from_their_least_to_their_largest_entry(axes):
    """As raw patches are: on a scale about 0 they would be white on white."""
    plots.atoms(
        np.array([[0.5, 0.51, 0.49, 0.5], [-3.0, -1.0, -2.0, -2.0], [0.7, 0.7, 0.7, 0.7]]), columns=3, axes=axes
    )
    drawn = axes.images[0].get_array()
    np.testing.assert_allclose(drawn[:, :2], [[0.0, 1.0], [-1.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(drawn[:, 3:5], [[-1.0, 1.0], [0.0, 0.0]])
    np.testing.assert_allclose(drawn[:, 6:], 0.0)


def test_atoms_of_a_model_and_in_colours(axes):
    pca = PCA(5).fit(np.random.default_rng(0).normal(size=(30, 12)))
    plots.atoms(pca, shape=(2, 2, 3), axes=axes)
    drawn = axes.images[0].get_array()
    assert drawn.shape == (5, 8, 3)
    first = pca.components_[0].reshape(2, 2, 3)
    np.testing.assert_allclose(drawn[:2, :2], 0.5 + first / np.abs(first).max() / 2)
    np.testing.assert_array_equal(drawn[2], 1.0)


@pytest.mark.parametrize(
    ("dictionary", "options", "message"),
    [
        (np.zeros((3, 8)), {}, "8 pixels, which is no square: give shape"),
        (np.zeros((0, 4)), {}, "no atom to draw"),
        (np.zeros((3, 4)), {"usage": [1.0]}, "usage must have one entry per row, 3, got 1"),
        (np.zeros((3, 12)), {"shape": (2, 3, 2)}, r"Coloured atoms have a shape \(height, width, 3\)"),
        (np.zeros((3, 12)), {"shape": (2, 1, 3)}, r"got shape=\(2, 1, 3\) and an array of shape \(3, 12\)"),
    ],
)
def test_atoms_that_cannot_be_drawn(dictionary, options, message):
    with pytest.raises(ValueError, match=message):
        plots.atoms(dictionary, **options)


def test_atoms_of_what_has_none():
    with pytest.raises(NotFittedError):
        plots.atoms(PCA(2))
    with pytest.raises(TypeError, match="KernelPCA has no components_"):
        plots.atoms(KernelPCA(2).fit(make_circles(30, random_state=0).X))


def test_images_in_colours(axes):
    images = np.arange(36.0).reshape(2, 18)
    plots.image_mosaic({"a": images}, shape=(2, 3, 3), limits=(0.0, 35.0), axes=axes)
    drawn = axes.images[0].get_array()
    assert drawn.shape == (2, 7, 3)
    np.testing.assert_allclose(drawn[:, :3], images[0].reshape(2, 3, 3) / 35)
    np.testing.assert_array_equal(drawn[:, 3], 1.0)  # white between
    with pytest.raises(ValueError, match=r"have a shape \(height, width, 3\), got shape=\(3, 3, 2\)"):
        plots.image_mosaic({"a": images}, shape=(3, 3, 2))
    with pytest.raises(ValueError, match="18 pixels, which is not 2 x 6"):
        plots.image_mosaic({"a": images}, shape=(2, 2, 3))


# Robust PCA


@pytest.fixture(scope="module")
def robust():
    """A model by cells, and its rows: some cells are wild or missing, and one row has nothing but wild ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 9)) + 0.1 * rng.normal(size=(60, 9))
    X[[3, 20], [5, 1]] += [9.0, -9.0]
    X[40] += rng.choice([-8.0, 8.0], 9) * rng.uniform(1, 2, 9)
    X[7, 2] = np.nan
    return RobustPCA(2, method="cellwise", random_state=0).fit(X), X


def test_an_outlier_map_has_the_distances_the_limits_and_the_names_of_the_farthest(robust, axes):
    model, _ = robust
    assert plots.outlier_map(model, names=[f"row {i}" for i in range(60)], most=2, axes=axes) is axes
    inside, others, outside = (np.asarray(points.get_offsets()) for points in axes.collections)
    both = np.column_stack([model.score_distances_, model.orthogonal_distances_])
    beyond, out = (both > [model.score_limit_, model.orthogonal_limit_]).any(axis=1), model.outliers_
    np.testing.assert_array_equal(inside, both[~beyond & ~out])
    np.testing.assert_array_equal(others, both[beyond & ~out])
    np.testing.assert_array_equal(outside, both[out])
    upright, level = axes.lines
    assert upright.get_xdata()[0] == model.score_limit_
    assert level.get_ydata()[0] == model.orthogonal_limit_
    named = [text.get_text() for text in axes.texts]
    far = out * np.maximum(both[:, 0] / model.score_limit_, both[:, 1] / model.orthogonal_limit_)
    assert named == [f"row {i}" for i in np.argsort(-far)[: min(2, out.sum())]]
    assert (both <= [axes.get_xlim()[1], axes.get_ylim()[1]]).all()
    assert [text.get_text().split(":")[0] for text in axes.get_legend().get_texts()] == [
        "within both limits",
        "beyond a limit, no outliers",
        "outliers",
    ]


def test_wild_cells_neither_name_a_row_in_an_outlier_map_nor_press_the_others_together(axes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 9)) + 0.1 * rng.normal(size=(60, 9))
    X[[3, 20, 35, 50], 5] += 900.0
    X[40] += rng.choice([-8.0, 8.0], 9) * rng.uniform(1, 2, 9)
    model = RobustPCA(2, method="cellwise", random_state=0).fit(X)
    assert np.flatnonzero(model.outliers_).tolist() == [40]
    assert np.argsort(-model.orthogonal_distances_)[:4].max() != 40
    for given in (None, X):
        axes.clear()
        plots.outlier_map(model, given, axes=axes)
        assert [text.get_text() for text in axes.texts] == ["40"]
        assert axes.get_yscale() == "symlog"
        assert axes.get_xscale() == "linear"
    axes.figure.canvas.draw()
    bottom, line, top = (axes.transData.transform((0, y))[1] for y in (0, model.orthogonal_limit_, axes.get_ylim()[1]))
    assert (line - bottom) > 0.15 * (top - bottom)


def test_an_outlier_map_of_other_rows_by_groups(robust, axes):
    model, X = robust
    plots.outlier_map(model, X[:10], labels=np.arange(10) % 2, axes=axes)
    first, second = (np.asarray(points.get_offsets()) for points in axes.collections)
    expected = np.column_stack([model.score_distance(X[:10]), model.orthogonal_distance(X[:10])])
    np.testing.assert_allclose(first, expected[::2])
    np.testing.assert_allclose(second, expected[1::2])


def test_a_cell_map_is_white_warm_cool_or_grey(robust, axes):
    model, X = robust
    assert plots.cell_map(model, X, features=list("abcdefghi"), axes=axes) is axes
    colours = np.asarray(axes.images[0].get_array())
    residuals = model.cell_residuals(X)
    assert colours.shape == (60, 9, 3)
    np.testing.assert_array_equal(colours[np.abs(residuals) < 2.57], 1.0)
    red, _, blue = colours[3, 5]
    assert red > blue  # too high
    red, _, blue = colours[20, 1]
    assert blue > red
    np.testing.assert_allclose(colours[7, 2], plots.MISSING)
    (side,) = axes.child_axes
    marks = np.asarray(side.images[0].get_array())[:, 0, 3]
    assert np.flatnonzero(marks).tolist() == [40]
    assert [text.get_text() for text in axes.get_xticklabels()] == list("abcdefghi")


def test_a_cell_map_of_many_cells_puts_neighbours_together(axes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 50)) + 0.1 * rng.normal(size=(300, 50))
    X[100:110, 20:25] += 9.0
    model = RobustPCA(2, method="cellwise", random_state=0).fit(X)
    plots.cell_map(model, X, most=(30, 10), axes=axes)
    colours = np.asarray(axes.images[0].get_array())
    assert colours.shape == (30, 10, 3)
    red, _, blue = colours[10, 4]
    assert red > blue + 0.2
    assert [text.get_text() for text in axes.get_yticklabels()][:3] == ["0", "20", "40"]
    np.testing.assert_allclose(axes.get_yticks()[:3], [0, 2, 4])


def test_robust_pictures_of_what_has_none(robust):
    model, X = robust
    with pytest.raises(TypeError, match="a fitted RobustPCA, got PCA"):
        plots.outlier_map(PCA(2).fit(np.nan_to_num(X)))
    with pytest.raises(NotFittedError):
        plots.cell_map(RobustPCA(2), X)
    with pytest.raises(ValueError, match="names must have one entry per row, 60, got 2"):
        plots.outlier_map(model, names=["a", "b"])
    with pytest.raises(ValueError, match="features must have 9 entries, got 1"):
        plots.cell_map(model, X, features=["a"])
    by_rows = RobustPCA(2, method="robpca", random_state=0).fit(np.nan_to_num(X))
    with pytest.raises(ValueError, match='Cells are not judged by method="robpca"'):
        plots.cell_map(by_rows, np.nan_to_num(X))


# Maps of voxels


def voxels(k=3):
    rng = np.random.default_rng(0)
    mask = rng.random((6, 7, 8)) < 0.7
    layout = VoxelLayout(mask, np.diag([2.0, 3.0, 4.0, 1.0]))
    return layout, rng.normal(size=(k, layout.size))


def test_maps_are_slices_of_each_component_with_a_scale_of_its_own():
    layout, components = voxels()
    drawn = plots.maps(components, layout, background=components[0], slices=4)
    assert drawn.shape == (3, 4)
    assert [line[0].get_title(loc="left") for line in drawn] == ["component 1", "component 2", "component 3"]
    for line, component in zip(drawn, components, strict=True):
        found = slices(layout, component, background=components[0], count=4)
        for axes, colours, number in zip(line, found.colours, found.numbers, strict=True):
            assert np.array_equal(axes.images[0].get_array(), colours)
            assert axes.get_xlabel() == f"z = {4 * number} mm"
            assert axes.get_aspect() == 1.5
    scales = [axes for axes in drawn[0, 0].figure.axes if axes not in drawn.ravel()]
    assert [axes.get_ylim()[1] for axes in scales] == [slices(layout, row).limit for row in components]


def test_maps_of_a_model_and_on_a_figure():
    import matplotlib.pyplot as plt

    layout, components = voxels(20)
    figure = plt.figure()
    drawn = plots.maps(PCA(2).fit(components), layout, figure=figure)
    assert drawn[0, 0].figure is figure
    assert drawn[1, 0].get_title(loc="left").startswith("component 2 (")
    assert plots.maps(components[:1], layout, names=["one"], slices=99).shape == (1, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"components": np.ones((2, 5))}, "rows of [0-9]+ voxels, as the layout has, got shape"),
        ({"components": np.ones(5)}, "rows of [0-9]+ voxels"),
        ({"background": np.ones(5)}, "background must have [0-9]+ entries"),
        ({"names": ["one"]}, "names must have 3 entries"),
    ],
)
def test_maps_that_cannot_be_drawn(change, message):
    layout, components = voxels()
    given = {"components": components, "layout": layout} | change
    with pytest.raises(ValueError, match=message):
        plots.maps(**given)
