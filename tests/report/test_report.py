"""The report without a browser: numbers, words, escaping, bounds. What a browser makes of it: test_browser.py."""

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from sklearn.decomposition import PCA as SklearnPCA
from sklearn.decomposition import FastICA, KernelPCA, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from helpers import data_with_spectrum, shards
from princomp import (
    PCA,
    DictionaryLearning,
    ProbabilisticPCA,
    ProbabilisticPCAMixture,
    RobustPCA,
    SparseCCA,
    certificates,
    report,
)
from princomp.data import as_rows
from princomp.estimators.probabilistic_pca import likelihood_in_words
from princomp.report.collect import (
    ATOMS,
    CATEGORIES,
    CELL_COLUMNS,
    CELL_ROWS,
    COMPONENTS,
    FEATURES,
    NUMBERS,
    PLACES,
    POINTS,
    ROWS,
    Density,
    Points,
    collect,
    shown,
)
from princomp.report.render import POLICY, render

pytestmark = pytest.mark.needs("jinja2")

KINDS = {"f4": "<f4", "f8": "<f8", "u1": "<u1", "u2": "<u2", "u4": "<u4"}


class Page(HTMLParser):
    """The page as a parser sees it: elements with attributes, visible text, scripts."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.texts, self.scripts, self.inside = [], [], [], ""
        self.feed(source)
        self.data = json.loads(next(text for text in self.scripts if text.startswith("{")))
        self.sections = self.data["sections"]

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, text):
        (self.scripts if self.inside in ("script", "style") else self.texts).append(text)


def unpack(packed):
    return np.frombuffer(base64.b64decode(packed["bdata"]), KINDS[packed["dtype"]])


def normal(n=60, p=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)) * np.linspace(p, 1, p)


def page_of(estimator, X, **options):
    return Page(render(collect(estimator, X, **options)))


# --- numbers ------------------------------------------------------------------------------------------


def test_numbers_are_the_estimators():
    X = normal()
    pca = PCA(4).fit(X)
    page = page_of(pca, X)
    np.testing.assert_array_equal(unpack(page.sections["variance"]["bars"]), pca.explained_variance_ratio_)
    np.testing.assert_array_equal(unpack(page.sections["variance"]["line"]), np.cumsum(pca.explained_variance_ratio_))
    columns = [unpack(column) for column in page.sections["scores"]["columns"]]
    np.testing.assert_array_equal(columns, pca.transform(X).T.astype(np.float32))
    weights = [unpack(column) for column in page.sections["loadings"]["weights"]]
    np.testing.assert_array_equal(weights, pca.components_)
    assert page.sections["loadings"]["features"] == ["x0", "x1", "x2", "x3", "x4"]


def test_tables_to_download_hold_every_digit():
    X = normal()
    pca = PCA(3).fit(X)
    tables = page_of(pca, X).data["files"]
    variance = np.genfromtxt(tables["variance.csv"].splitlines(), delimiter=",", skip_header=1)
    np.testing.assert_array_equal(variance[:, 1], pca.explained_variance_)
    np.testing.assert_array_equal(variance[:, 2], pca.explained_variance_ratio_)
    loadings = np.genfromtxt(tables["loadings.csv"].splitlines(), delimiter=",", skip_header=1)
    np.testing.assert_array_equal(loadings[:, 1:], pca.components_.T)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (
            [0.5, 0.2, 0.1, 0.1, 0.06, 0.04],
            "2 components hold 70\xa0% of the variance, 3 hold 80\xa0%, 5 hold 96\xa0%.",
        ),
        ([0.9997, 0.0003], "1 component holds over 99.9\xa0% of the variance, 2 hold 100\xa0%."),
        ([0.1, 0.05], "2 components hold 15\xa0% of the variance."),
        ([0.3], "1 component holds 30\xa0% of the variance."),
        ([0.0, 0.0], "The data do not vary: every variance is 0, and the components are arbitrary."),
    ],
)
def test_summary_in_words(ratio, words):
    pca = PCA(1).fit(normal(60, 1))
    pca.explained_variance_ = pca.explained_variance_ratio_ = np.array(ratio)
    found = collect(pca, None, scores=np.zeros((20_000, 1))).summary
    assert found == f"20\u202f000 samples of 1 feature. {words}"


def test_the_features_that_matter_are_shown():
    """Of many features: the largest of every component, in the order of the columns."""
    components = np.zeros((3, 1000))
    components[0, [900, 5]], components[1, [700, 6]], components[2, 300] = (0.9, -0.4), (-0.9, 0.4), 1
    pca = PCA(3).fit(normal(50, 1000))
    pca.components_ = components
    found = collect(pca, normal(50, 1000)).section("loadings")
    assert {"x5", "x6", "x300", "x700", "x900"} <= set(found.features)
    assert len(found.in_heat_map) == FEATURES
    assert found.features[0] == "x0"
    in_map = [found.features[i] for i in found.in_heat_map]
    assert in_map == sorted(in_map, key=lambda name: int(name[1:]))
    np.testing.assert_array_equal(found.weights[found.features.index("x700")], [0, -0.9, 0])


def test_many_points_are_counted():
    n = POINTS + 1
    X = data_with_spectrum(n, 4, [4, 2, 1, 0.5])
    pca = PCA(3).fit(X)
    scores = pca.transform(X)
    found = collect(pca, X, labels=["a"] * n).section("scores")
    assert isinstance(found, Density)
    assert found.counts.shape[:2] == (1, 3)
    edges = [np.linspace(low, high, 81) for low, high in zip(found.low, found.high)]
    expected = np.histogram2d(scores[:, 1], scores[:, 0], bins=(edges[1], edges[0]))[0]
    assert found.counts[0, 0].sum() == n
    assert np.abs(found.counts[0, 0] - expected).sum() <= 4  # rounding may move a point on an edge
    page = page_of(pca, X, labels=["a"] * n)
    assert "More than 20\u202f000 samples are not drawn one by one" in " ".join(page.texts)
    assert "Labels are not shown" in " ".join(page.texts)
    np.testing.assert_array_equal(unpack(page.sections["scores"]["counts"][0]["0 1"]), found.counts[0, 0].ravel())


def test_values_beyond_single_precision():
    X = normal() * 1e200
    with pytest.warns(UserWarning, match="larger than"):
        pca = PCA(2).fit(X)
    first = unpack(page_of(pca, X).sections["scores"]["columns"][0])
    np.testing.assert_array_equal(first, pca.transform(X)[:, 0])


# --- what X and the estimator may be ------------------------------------------------------------------


def without_date(page):
    return re.sub(r"Written by princomp on [^.]*\.", "", page)


@pytest.mark.parametrize("kind", ["shards", "blocks", "sparse", "pandas", "polars", "dask"])
def test_any_kind_of_data_gives_the_same_page(kind):
    X = normal(200, 4)
    if kind in ("pandas", "polars"):
        frames = pytest.importorskip(kind)
        given = frames.DataFrame(X, **({"schema": list("abcd")} if kind == "polars" else {"columns": list("abcd")}))
    elif kind == "dask":
        given = pytest.importorskip("dask.array").from_array(X, chunks=(50, 4))
    elif kind == "sparse":
        import scipy.sparse

        given = scipy.sparse.csr_array(X)
    else:
        given = shards(X) if kind == "shards" else as_rows(X, block_rows=7)
    pca = PCA(3).fit(given)
    found = collect(pca, given)
    np.testing.assert_allclose(
        found.section("scores").columns, pca.transform(X if kind not in ("pandas", "polars") else given).T
    )
    names = tuple("abcd") if kind in ("pandas", "polars") else ("x0", "x1", "x2", "x3")
    assert found.section("loadings").features == names
    assert "<h2" in render(found)


def test_scores_that_are_there_are_not_computed_again():
    X = normal()
    pca = PCA(3).fit(X)
    given = collect(pca, None, scores=pca.transform(X))
    assert without_date(render(given)) == without_date(render(collect(pca, X)))


@pytest.mark.parametrize(
    ("estimator", "parts"),
    [
        (SklearnPCA(3), {"variance", "scores", "loadings"}),
        (TruncatedSVD(3, random_state=0), {"variance", "scores", "loadings"}),
        (FastICA(3, random_state=0, tol=0.1), {"scores", "loadings"}),
        (KernelPCA(3), {"scores"}),
        (SklearnPCA(0), set()),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "",
)
def test_estimators_that_lack_something_get_a_page_without_it(estimator, parts):
    X = normal()
    page = page_of(estimator.fit(X), X)
    assert set(page.sections) == parts
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert {part for part in ("variance", "scores", "loadings") if f"{part}-title" in ids} == parts
    assert "ertified" not in " ".join(page.texts)


def test_one_component_is_drawn_against_the_order_of_samples():
    X = normal()
    pca = PCA(1).fit(X)
    found = collect(pca, X).section("scores")
    assert found.axes[0] == "Sample number"
    np.testing.assert_array_equal(found.columns, [np.arange(1, 61), pca.transform(X)[:, 0]])


@pytest.mark.parametrize(
    ("X", "k", "words"),
    [
        (normal(60, 1), 1, "1 component holds 100\xa0% of the variance"),
        (normal(60, 2), 2, "2 components"),
        (np.ones((5, 3)), 2, "The data do not vary"),
        (normal(60, 2) @ np.ones((2, 6)), 3, "Components 2 to 3 are rounding, and arbitrary."),
        (normal(2, 3), 1, "2 samples of 3 features"),
    ],
    ids=["one feature", "two components", "constant", "rank one", "two samples"],
)
@pytest.mark.filterwarnings("ignore:X ")
def test_small_and_degenerate_data(X, k, words):
    page = page_of(PCA(k).fit(X), X)
    assert words in " ".join(page.texts)


def test_new_data_are_told_from_those_of_the_fit():
    pca = PCA(2).fit(normal())
    assert "The components were found on 60 samples" in collect(pca, normal(10)).notes[0]
    assert collect(pca, normal()).notes == ()


# --- labels -------------------------------------------------------------------------------------------


def labelled(labels):
    X = normal(len(labels))
    return collect(PCA(2).fit(X), X, labels=labels, label_name="kind").section("scores").labels


def test_categories():
    found = labelled(["b", "a", None, "b"])
    assert found.categories == ("a", "b", "missing")
    assert found.n_coloured == 2
    assert found.values.tolist() == [1, 0, 2, 1]


def test_rare_categories_are_put_together():
    found = labelled([str(i) for i in range(20) for _ in range(20 - i)])
    assert found.n_coloured == CATEGORIES - 1
    assert found.categories == (*sorted(map(str, range(CATEGORIES - 1))), "other")
    assert (found.values == CATEGORIES - 1).sum() == sum(20 - i for i in range(CATEGORIES - 1, 20))


def test_numbers_as_labels():
    found = labelled([1, 2.5, None, float("nan"), 4])
    assert found.categories is None
    np.testing.assert_array_equal(found.values, [1, 2.5, np.nan, np.nan, 4])
    assert labelled([True, False, True]).categories == ("False", "True")


@pytest.mark.needs("pandas")
def test_labels_of_a_frame():
    import pandas as pd

    assert labelled(pd.Series(["x", pd.NA, "y"], dtype="string")).categories == ("x", "y", "missing")
    assert labelled(pd.Series(["x", "y", "y"], dtype="category")).categories == ("x", "y")
    np.testing.assert_array_equal(labelled(pd.Series([1, pd.NA, 3], dtype="Int64")).values, [1, np.nan, 3])


@pytest.mark.parametrize("name", ["labels", "sample_names"])
def test_wrong_number_of_names(name, tmp_path):
    X, path = normal(), tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match=f"{name} must have one entry per sample, 60 in all, got 3"):
        report.write(PCA(2).fit(X), X, path, **{name: ["a", "b", "c"]})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors():
    with pytest.raises(NotFittedError):
        collect(PCA(2), normal())
    with pytest.raises(ValueError, match=r"one column, got shape \(3, 2\)"):
        labelled(np.ones((3, 2)))
    with pytest.raises(ValueError, match=r"must be a table, .*, got shape \(3,\)"):
        collect(PCA(2).fit(normal()), None, scores=np.ones(3))


# --- words of the certificate -------------------------------------------------------------------------


def test_a_certified_answer():
    X = normal()
    text = " ".join(page_of(PCA(2).fit(X), X).texts)
    assert "Certified: these are the leading components." in text
    assert "Nothing larger was left out" in text


def test_an_answer_that_did_not_converge():
    X = normal(200, 30)
    with pytest.warns(ConvergenceWarning):
        pca = PCA(2, solver="optimize", max_iter=1, random_state=0).fit(X)
    text = " ".join(page_of(pca, X).texts)
    assert "Not certified" in text
    assert "Not converged after" in text


def test_components_that_are_not_the_leading_ones():
    X = normal()
    pca = PCA(5).fit(X)
    found = certificates.principal_components(X, pca.components_[2:4], pca.explained_variance_[2:4])
    assert found.verdict() == "Not certified: something larger was left out."
    assert "Fit again" in found.assurance()[1]


def test_a_model_with_a_likelihood():
    X = normal()
    X[::7, 1] = np.nan
    model = ProbabilisticPCA(2).fit(X)
    text = " ".join(page_of(model, X).texts)
    assert f"Method “em”, {model.n_iter_} steps." in text
    assert likelihood_in_words(model.log_likelihood_, float(model.noise_variance_)) in text
    assert "Log-likelihood" not in " ".join(page_of(PCA(2).fit(normal()), normal()).texts)


@pytest.mark.parametrize(("scope", "words"), [("local", "no small step"), ("global", "no better answer")])
def test_certificates_of_other_problems(scope, words):
    from princomp.result import Certificate

    found = Certificate(1e-9, 1e-6, scope)
    assert words in found.verdict()
    assert words in " ".join(found.assurance())


# --- groups, and two sides -----------------------------------------------------------------------------


def grouped(k=2, m=3, n=300, p=5):
    """Data of m groups far apart, and a mixture fitted to them."""
    X = normal(n, p, seed=1) + 20 * np.random.default_rng(2).normal(size=(m, p))[np.arange(n) % m]
    return X, ProbabilisticPCAMixture(k, n_clusters=m, random_state=0).fit(X)


def scores_by_formula(model, X, c):
    """Posterior means of the latent scores, if all rows belonged to group c."""
    W, noise = model.weights_[c], model.noise_variance_[c]
    return (X - model.means_[c]) @ W @ np.linalg.inv(W.T @ W + noise * np.eye(W.shape[1]))


@pytest.mark.parametrize("k", [1, 2])
def test_samples_of_a_mixture_are_shown_within_their_groups(k):
    X, model = grouped(k)
    groups = model.predict(X)
    found = collect(model, X).section("scores")
    expected = np.array([scores_by_formula(model, X, c) for c in range(3)])[groups, np.arange(len(X))]
    np.testing.assert_allclose(found.columns[-k:].T, expected, atol=1e-9)
    assert (np.abs(model.transform(X)) < 1e-6).mean() > 0.6  # where probabilities are multiplied in, most are at 0
    assert (np.abs(found.columns) > 1e-6).all()
    np.testing.assert_array_equal(found.panels.codes, groups)
    assert found.panels.names == tuple(f"Group {c + 1}: {(groups == c).sum()} samples" for c in range(3))
    assert found.labels.categories == ("Group 1", "Group 2", "Group 3")
    np.testing.assert_array_equal(found.labels.values, groups)


def test_a_page_on_a_mixture():
    X, model = grouped()
    page = page_of(model, X)
    text = " ".join(page.texts)
    assert list(page.sections) == ["groups", "scores", "loadings"]
    np.testing.assert_array_equal(unpack(page.sections["groups"]["bars"]), model.shares_)
    assert "3 groups, of 33\xa0%, 33\xa0% and 33\xa0% of the samples" in text
    assert "was not looked at" in text  # whether it is a maximum
    assert "no small step" not in text
    assert page.sections["loadings"]["marks"] == ["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"]
    weights = [unpack(column) for column in page.sections["loadings"]["weights"]]
    np.testing.assert_array_equal(weights, model.components_.reshape(6, -1))
    assert "Group 3, component 2 (" in text
    W, noise = model.weights_[1], model.noise_variance_[1]
    covariance = W @ W.T + noise * np.eye(5)
    held = np.trace(model.components_[1] @ covariance @ model.components_[1].T) / np.trace(covariance)
    assert f"{100 * held:.2f}\xa0%" in text


def test_labels_colour_a_mixture_that_stays_in_panels():
    X, model = grouped()
    found = collect(model, X, labels=["a", "b"] * 150).section("scores")
    assert found.labels.categories == ("a", "b")
    assert len(found.panels.names) == 3


def test_scores_of_a_mixture_that_are_there_are_said_to_be_multiplied():
    X, model = grouped()
    given = model.transform(X)
    found = collect(model, None, scores=given).section("scores")
    np.testing.assert_array_equal(found.columns, given.T)
    assert found.axes[3] == "Group 2, component 2"
    assert "times the probability" in found.text
    assert found.panels is None


def test_many_points_of_a_mixture_are_counted_in_their_groups():
    X, model = grouped()
    many = np.resize(X, (POINTS + 100, X.shape[1]))
    page = page_of(model, many)
    counts = page.sections["scores"]["counts"]
    assert [unpack(each["0 1"]).sum() for each in counts] == np.bincount(model.predict(many)).tolist()


@pytest.mark.parametrize(("m", "axes"), [(1, 10), (2, 7), (12, 3)])
def test_the_more_panels_the_fewer_pairs_of_axes_are_counted(m, axes):
    from princomp.estimators.description import Groups
    from princomp.report.collect import CELLS, PAIRS, _density

    columns = np.random.default_rng(0).normal(size=(10, 500))
    panels = Groups("groups", ("name",) * m, np.arange(500) % m)
    found = _density("", columns, tuple("abcdefghij"), panels, has_labels=False)
    assert len(found.axes) == axes
    assert found.counts.shape[2:] == (CELLS, CELLS)
    assert found.counts.shape[0] * found.counts.shape[1] <= PAIRS
    assert (found.counts.sum(axis=(2, 3)) == np.bincount(panels.codes)[:, None]).all()


def test_points_without_a_place_are_not_counted():
    from princomp.report.collect import _density

    columns = np.random.default_rng(0).normal(size=(3, 500))
    columns[0, :7], columns[1, 5:10], columns[2, 20] = np.nan, np.inf, -np.inf
    found = _density("", columns, ("a", "b", "c"), None, has_labels=False)
    assert found.n_samples == 500 - 11
    assert (found.counts.sum(axis=(2, 3)) == 500 - 11).all()
    there = columns[:, np.isfinite(columns).all(axis=0)]
    np.testing.assert_array_equal([found.low, found.high], [there.min(axis=1), there.max(axis=1)])


def test_many_groups():
    X, model = grouped(k=2, m=14, n=700)
    content = collect(model, X)
    found, loadings = content.section("scores"), content.section("loadings")
    assert len(found.panels.names) == CATEGORIES
    assert found.labels.categories == (*(f"Group {c + 1}" for c in range(CATEGORIES - 1)), "other")
    assert f"Of 14 groups, the first {CATEGORIES} are shown." in found.text
    assert loadings.marks == tuple(f"{c + 1}.1" for c in range(COMPONENTS))
    assert "Only 10 of 28 components are shown, the first of each group." in loadings.text
    assert "14 groups, of" in content.summary
    assert " down to " in content.summary


def two_sides(k=2):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 6)), rng.normal(size=(100, 4))
    Y[:, 1] += 3 * X[:, 2]
    Y[:, 3] -= 2 * X[:, 5]
    return X, Y, SparseCCA(k).fit(X, Y)


def test_a_page_on_two_sides():
    X, Y, model = two_sides()
    page = page_of(model, X, y=Y)
    text = " ".join(page.texts)
    assert list(page.sections) == ["correlations", "scores", "loadings-x", "loadings-y"]
    assert page.sections["scores"]["axes"] == ["Pair 1, X", "Pair 1, Y", "Pair 2, X", "Pair 2, Y"]
    columns = np.array([unpack(column) for column in page.sections["scores"]["columns"]])
    x, y = model.transform(X, Y)
    np.testing.assert_array_equal(columns, np.array([x[:, 0], y[:, 0], x[:, 1], y[:, 1]], np.float32))
    np.testing.assert_array_equal(unpack(page.sections["correlations"]["bars"]), model.correlations_)
    for side, weights in (("x", model.x_weights_), ("y", model.y_weights_)):
        drawn = page.sections[f"loadings-{side}"]
        np.testing.assert_array_equal([unpack(column) for column in drawn["weights"]], weights.T)
        assert drawn["features"] == [f"{side}{j}" for j in range(len(weights))]
        assert f"loadings-{side}.csv" in page.data["files"]
    assert "100 samples of 6 and 4 features." in text
    assert f"{np.count_nonzero(model.x_weights_.any(axis=1))} of 6 features of X" in text


def test_one_of_two_sides():
    X, _, model = two_sides(1)
    page = page_of(model, X)
    assert page.sections["scores"]["axes"] == ["Sample number", "Pair 1, X"]
    assert "the other was not given here" in " ".join(page.texts)


# --- hostile names ------------------------------------------------------------------------------------


def test_hostile_names_are_text(hostile_names, hostile_page, observe):
    """S9a, as a parser sees it."""
    page = Page(hostile_page)
    assert [tag for tag, _ in page.elements].count("script") == 3
    assert not [tag for tag, _ in page.elements if tag in ("img", "b")]
    for name in set(hostile_names):
        assert page.texts.count(shown(name)) >= hostile_names.count(name)  # in the table
        assert page.texts.count(shown(name, 500)) >= hostile_names.count(name)  # in the notes
    assert page.sections["loadings"]["features"] == [shown(name) for name in hostile_names]
    assert page.sections["scores"]["names"] == [shown(name, 40) for name in hostile_names * 2]
    assert not set("\u202e\u2028\x1b") & set(html.unescape(hostile_page))
    assert len(hostile_page.encode()) < 2e6
    observe("S9a", f"{len(hostile_names)} hostile names in a report", "escaped, one text each; 1 MB name shortened")


def test_shown():
    assert shown("a\tb") == "a\\u0009b"
    assert shown("e\u0301 日本 👩\u200d🔬") == "e\u0301 日本 👩\u200d🔬"  # nothing that people write is changed
    assert shown("  ") == "(empty)"
    assert len(shown("x" * 2**20)) == 121
    shown("\udfff").encode()


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\u00a0=1", "\u200b=1", "＝1"])
def test_downloaded_tables_hold_no_formula(name, observe):
    X = normal(20, 2)
    pca = PCA(2).fit(X)
    scores = pca.transform(X)
    pca.feature_names_in_ = np.array([name, 'plain, "quoted"'], dtype=object)
    lines = page_of(pca, None, scores=scores).data["files"]["loadings.csv"].split("\r\n")
    assert lines[1].startswith(f"'{name},")
    assert lines[2].startswith('"plain, ""quoted""",')
    assert any(line.split(",")[-1].startswith("-") for line in lines[1:3])  # numbers stay numbers
    observe("S10", "formulae as feature names, CSV from a report", "prefixed with '")


# --- the page -----------------------------------------------------------------------------------------


def test_the_page_asks_for_nothing():
    X = normal()
    page = page_of(PCA(3).fit(X), X)
    metas = [attributes for tag, attributes in page.elements if tag == "meta"]
    assert {"http-equiv": "Content-Security-Policy", "content": POLICY} in metas
    assert POLICY == "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
    for tag, attributes in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
        assert attributes.get("href", "#").startswith("#")


def test_every_chart_and_control_has_a_name():
    X = normal()
    page = page_of(PCA(3).fit(X), X, labels=["a"] * 60)
    charts = [attributes for _, attributes in page.elements if attributes.get("role") == "img"]
    assert len(charts) == 4
    assert all(attributes["aria-label"] for attributes in charts)
    labelled = {attributes["for"] for tag, attributes in page.elements if tag == "label"}
    assert {attributes["id"] for tag, attributes in page.elements if tag == "select"} == labelled


def test_parameters_and_versions():
    from princomp import __version__

    X = normal()
    found = collect(PCA(3, scale=True).fit(X), X)
    assert {parameter.name for parameter in found.parameters if parameter.changed} == {"n_components", "scale"}
    assert ("princomp", __version__) in found.versions


def test_title():
    X = normal()
    pca = PCA(2).fit(X)
    assert collect(pca, X).title == "PCA report"
    assert collect(pca, X, source="data/iris.csv").title == "PCA of iris.csv"
    assert collect(pca, X, source="data/iris.csv", title="Mine").title == "Mine"


def test_size_is_bounded(observe):
    """L3 and L4; and the size that the documentation states."""
    rng = np.random.default_rng(0)
    sizes = {}

    def size(name, pca, scores, **options):
        page = render(collect(pca, None, scores=scores, **options))
        sizes[name] = len(page.encode()) / 1e6
        return page

    X = rng.normal(size=(50_000, 100))
    pca = PCA(COMPONENTS).fit(X)
    scores = pca.transform(X)
    size("50 000 x 100", pca, scores)
    size("20 000 points", pca, scores[:POINTS])
    size("20 000 points with names and labels", pca, scores[:POINTS], sample_names=range(POINTS), labels=X[:POINTS, 0])
    page = size("1e6 points", pca, np.repeat(scores, 20, axis=0))
    assert "samples are not drawn one by one" in page
    wide = PCA(3).fit(rng.normal(size=(20, 100_000)))
    size("1e5 features", wide, rng.normal(size=(20, 3)))
    many = PCA().fit(rng.normal(size=(400, 400)))
    size("400 components", many, rng.normal(size=(400, 400)))
    assert sizes["50 000 x 100"] < 3
    assert max(sizes.values()) < 3.5, sizes
    observe("L3", "1e5 features in the report", f"{sizes['1e5 features']:.1f} MB")
    observe("L4", "1e6 points in a scatter", f"counted in cells, page says so, {sizes['1e6 points']:.1f} MB")


def test_many_components():
    X = normal(150, 120)
    page = page_of(PCA().fit(X), X)
    assert len(unpack(page.sections["variance"]["bars"])) == ROWS
    assert f"first {ROWS} of 120 components" in re.sub(r"\s+", " ", " ".join(page.texts))
    assert len(page.sections["scores"]["columns"]) == COMPONENTS


def test_5000_by_5000():
    X = np.random.default_rng(0).standard_normal((5000, 5000), dtype=np.float32)
    pca = PCA(3, tol=0.5).fit(X)
    found = collect(pca, X)
    assert isinstance(found.section("scores"), Points)
    assert len(render(found).encode()) < 2e6


def test_written_quickly():
    X = np.random.default_rng(0).normal(size=(20_000, 100))
    pca = PCA(10).fit(X)
    begin = time.process_time()
    render(collect(pca, X, labels=X[:, 0] > 0))
    assert time.process_time() - begin < 1.5


def test_write(tmp_path):
    X, path = normal(), tmp_path / "-odd näme.html"
    assert report.write(PCA(2).fit(X), X, path) == path
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes().startswith(b"<!DOCTYPE html>")
    with pytest.raises(FileNotFoundError):
        report.write(PCA(2).fit(X), X, tmp_path / "nowhere" / "report.html")


def test_without_jinja2(observe):
    """P9: the message names the line, before any work is done."""
    code = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from princomp import report\n"
        "try:\n    report.write(None, None, 'never.html')\n"
        "except ImportError as error:\n    print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert 'pip install "princomp[report]"' in said
    observe("P9", "report without jinja2", said.strip())


# --- the vendored bundle ------------------------------------------------------------------------------


def test_bundle_is_the_recorded_one(observe):
    """S14: hash and version, and that it may stand inside a script element."""
    package = files("princomp.report")
    raw = package.joinpath("plotly-cartesian.min.js").read_bytes()
    recorded = dict(re.findall(r"(?m)^(\w+): (.+)$", package.joinpath("plotly-cartesian.txt").read_text("utf-8")))
    assert hashlib.sha256(raw).hexdigest() == recorded["sha256"]
    assert f"(cartesian - minified) v{recorded['version']}".encode() in raw[:200]
    assert recorded["licence"].startswith("MIT")
    assert b"</script" not in raw.lower()
    assert b"<!--" not in raw
    observe("S14", "vendored plotly.js", f"version {recorded['version']}, SHA-256 as recorded")


# --- dictionaries ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dictionary():
    """Data of 12 columns, a dictionary of 20 atoms of them, and its codes."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(150, 8)) * (rng.random((150, 8)) < 0.3)) @ rng.normal(size=(8, 12))
    model = DictionaryLearning(20, nonzeros=3, max_iter=3, random_state=0).fit(X)
    return X, model, model.transform(X)


def test_a_dictionary_is_shown_by_use_atoms_codes_and_objective(dictionary):
    X, model, codes = dictionary
    content = collect(model, X)
    assert [section.name for section in content.sections] == ["use", "atoms", "scores", "objective"]
    uses = (codes != 0).sum(axis=0)
    assert (model.atom_counts_ == uses).all()
    use, atoms, scores, objective = content.sections
    order = use.column("atom").values - 1
    assert (np.diff(uses[order]) <= 0).all()
    assert (use.column("share of samples").values == uses[order] / 150).all()
    assert atoms.marks == tuple(str(k + 1) for k in order)
    np.testing.assert_allclose(atoms.values, model.components_[order], rtol=1e-6)
    left = ((X - codes @ model.components_) ** 2).sum(axis=1) / np.maximum((X**2).sum(axis=1), 1e-300)
    assert scores.title == "Codes"
    assert scores.axes[:2] == ("Atoms used", "Share of squares left")
    assert (scores.columns[0] == (codes != 0).sum(axis=1)).all()
    np.testing.assert_allclose(scores.columns[1], left, atol=1e-12)
    assert objective.columns[1].values[-1] == model.result_.history.objective[-1]
    kept = 1 - ((X - codes @ model.components_) ** 2).sum() / (X**2).sum()
    assert f"{100 * kept:.0f}\xa0%" in content.summary or kept > 0.985


def test_codes_that_are_given_are_shown_without_reading_the_data(dictionary):
    _, model, codes = dictionary
    scores = collect(model, None, scores=codes).section("scores")
    assert scores.axes == ("Atoms used", "Length of what they stand for")
    np.testing.assert_allclose(scores.columns[1], np.linalg.norm(codes @ model.components_, axis=1))


def test_atoms_as_images(dictionary):
    """Of both signs: 0 is the middle, the largest magnitude an end; of one: from the least to the largest."""
    X, model, codes = dictionary
    order = np.argsort(-(codes != 0).sum(axis=0), kind="stable")
    D = model.components_[order]
    grey = collect(model, X, image_shape=(3, 4)).section("atoms")
    assert grey.shape == (3, 4)
    assert grey.values.dtype == np.uint8
    np.testing.assert_allclose(grey.values, 127.5 + 127.5 * D / np.abs(D).max(axis=1, keepdims=True), atol=0.51)
    assert "0 in the middle grey" in grey.text
    coloured = collect(model, X, image_shape=(2, 2, 3)).section("atoms").values
    np.testing.assert_array_equal(coloured, grey.values)
    raw = DictionaryLearning(5, nonzeros=1, positive_dict=True, max_iter=1, random_state=0).fit(np.abs(X) + 9)
    levels = collect(raw, X, image_shape=(3, 4)).section("atoms").values
    assert (levels.min(axis=1) == 0).all()
    assert (levels.max(axis=1) == 255).all()
    for shape in ((3, 3), (12,), (2, 3, 2), (1, 2, 2, 3)):
        with pytest.raises(ValueError, match="image_shape must be"):
            collect(model, X, image_shape=shape)


def test_components_of_any_model_as_images():
    X = normal(50, 6)
    section = collect(PCA(3).fit(X), X, image_shape=(2, 3)).section("loadings")
    assert section.values.shape == (3, 6)
    assert section.components[0].startswith("Component 1 (")


def test_many_atoms_and_features_are_bounded():
    """The largest of neighbours stands for them; so many numbers, and no more."""
    from princomp.estimators.description import Atoms
    from princomp.report.collect import _atoms

    rng = np.random.default_rng(0)
    weights = rng.normal(size=(ATOMS + 9, 5 * PLACES))
    weights[:, 7] = 100.0
    names = tuple(map(str, range(len(weights))))
    found = _atoms(Atoms("atoms", "Atoms", "", tuple(map(str, range(5 * PLACES))), weights, names, names), None)
    assert found.values.shape == (NUMBERS // PLACES, PLACES)
    assert found.left_out == len(weights) - NUMBERS // PLACES
    assert found.features[1] == "7"
    assert (found.values[:, 1] == 100.0).all()


def test_codes_that_are_all_zero_are_said_to_be():
    X = normal(30, 4)
    with pytest.warns(UserWarning, match="Every code is 0"):
        model = DictionaryLearning(3, alpha=1e6, max_iter=1, random_state=0).fit(X)
    content = collect(model, X)
    assert "No sample takes any atom" in content.summary
    assert any("make alpha smaller" in note for note in content.notes)


def test_the_page_of_a_dictionary(dictionary, tmp_path):
    X, model, _ = dictionary
    source = report.write(model, X, tmp_path / "page.html", image_shape=(3, 4)).read_text(encoding="utf-8")
    page = Page(source)
    assert page.sections["atoms"]["kind"] == "atoms"
    assert page.sections["objective"]["kind"] == "curve"
    assert len(unpack(page.sections["atoms"]["values"][0])) == 12
    assert set(page.data["files"]) == {"use.csv", "objective.csv"}
    text = " ".join(" ".join(page.texts).split())
    assert "Dictionaries have many local optima" in text
    assert "Codes were found greedily" in text


def test_learning_that_ends_by_design_is_no_fault_and_no_certificate(dictionary):
    X, model, _ = dictionary
    content = collect(model, X)
    assert not content.certificate.holds
    assert content.certificate.verdict.startswith("Ended after 3 passes, as “online” does")
    assert "not certified" in content.certificate.verdict
    assert any("dict_init=model.components_" in sentence for sentence in content.certificate.sentences)
    assert '<details class="certificate open"' in render(content)
    turns = DictionaryLearning(20, method="batch", nonzeros=3, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        turns.fit(X)
    assert '<details class="certificate bad"' in render(collect(turns, X))
    stopped = DictionaryLearning(20, nonzeros=3, callback=lambda state: True, random_state=0).fit(X)
    assert collect(stopped, X).certificate.verdict.startswith("Not certified")
    done = DictionaryLearning(20, nonzeros=3, max_iter=1, tol=10.0, random_state=0).fit(X)
    assert '<details class="certificate good"' in render(collect(done, X))


# --- robust PCA ---------------------------------------------------------------------------------------


def test_the_outlier_map_has_the_distances():
    X = normal()
    X[:6, 4] += 20.0
    model = RobustPCA(2, method="robpca", random_state=0).fit(X)
    page = page_of(model, X)
    found = page.sections["distances"]
    np.testing.assert_allclose(unpack(found["score"]), model.score_distances_, rtol=1e-6)
    np.testing.assert_allclose(unpack(found["orthogonal"]), model.orthogonal_distances_, rtol=1e-6)
    assert found["limits"] == [model.score_limit_, model.orthogonal_limit_]
    assert set(found["farthest"]) <= set(np.flatnonzero(model.outliers_).tolist())
    assert len(found["farthest"]) == 5
    assert "cells" not in page.sections  # which this method does not judge
    assert f"{model.outliers_.sum()} of 60 samples" in " ".join(page.texts)


def test_the_outlier_map_names_the_outliers_not_the_rows_with_a_wild_cell():
    X = normal()
    X[[3, 20, 35, 50, 51, 52], 2] += 900.0
    X[40] += 30.0 * np.where(np.arange(X.shape[1]) % 2, 1.0, -1.0)
    model = RobustPCA(2, method="cellwise", random_state=0).fit(X)
    assert np.flatnonzero(model.outliers_).tolist() == [40]
    page = page_of(model, X)
    assert page.sections["distances"]["farthest"] == [40]
    assert np.flatnonzero(unpack(page.sections["distances"]["outliers"])).tolist() == [40]
    assert "One wild cell takes a sample beyond the level line, and makes it no outlier." in " ".join(page.texts)


def test_of_very_many_samples_the_farthest_are_drawn():
    X = normal(POINTS + 500)
    X[700] += 100.0
    model = RobustPCA(2, method="spherical").fit(X)
    page = page_of(model, X)
    numbers = unpack(page.sections["distances"]["numbers"])
    assert len(numbers) == POINTS
    assert 700 in numbers
    assert (np.diff(numbers.astype(int)) > 0).all()
    assert "that lie farthest out are drawn" in " ".join(page.texts)


def test_scores_that_are_there_already_come_without_a_map():
    X = normal()
    model = RobustPCA(2, method="robpca", random_state=0).fit(X)
    assert "distances" not in page_of(model, None, scores=model.transform(X)).sections


def test_a_cell_map_has_a_bounded_size():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * CELL_ROWS + 7, 2)) @ rng.normal(size=(2, CELL_COLUMNS + 30))
    X += 0.1 * rng.normal(size=X.shape)
    X[31, 17] = 1000.0
    model = RobustPCA(2, method="spherical", scores="robust").fit(X)
    page = page_of(model, X, sample_names=[f"<{i}>" for i in range(len(X))])
    found = page.sections["cells"]
    assert found["shape"] == [CELL_ROWS, CELL_COLUMNS]
    worst, row, column = (unpack(found[name]) for name in ("worst", "row", "column"))
    place = np.argmax(np.abs(worst))
    assert (row[place], column[place]) == (31, 17)
    assert "stands for neighbours" in " ".join(page.texts)
