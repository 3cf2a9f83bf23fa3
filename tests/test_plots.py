"""Pictures hold what the models say: points, ellipses and bars are read back from the drawn axes."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture, plots
from princomp.datasets import load_tobamovirus

pytestmark = pytest.mark.needs("matplotlib")


@pytest.fixture
def axes():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


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
