"""Every estimator describes itself, however it was fitted; inspect, transform and the report show it, saved or not."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

import princomp
from methods import METHODS
from princomp import PCA, DictionaryLearning, ProbabilisticPCA, ProbabilisticPCAMixture, RobustPCA, SparsePCA, report
from princomp.data.memory import MemoryRows
from princomp.estimators.description import (
    Column,
    Described,
    Loadings,
    Scores,
    Table,
    basics,
    describe,
    describe_scores,
    marks,
    numbered,
)
from princomp.persistence.schema import MODELS
from princomp.report.collect import collect
from princomp.report.render import render
from running import princomp as command

pytestmark = pytest.mark.needs("jinja2", "pyarrow")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) @ RNG.normal(size=(3, 5)) + RNG.normal(size=(40, 5))
X[25:] += [8, -8, 0, 4, 0]
Y = X[:, :2] @ RNG.normal(size=(2, 3)) + RNG.normal(size=(40, 3))
GAPS = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
ROTATION = np.array([[0.0, 1.0], [1.0, 0.0]])
SECOND = ["a", "b", "c"]  # of the other side

# name: (estimator, what it is fitted to): every method, and what is harder to show, as arrays among parameters are
CASES = {name: (method.make(), "two sides" if method.two_tables else "data") for name, method in METHODS.items()}
for _name, _method in METHODS.items():
    if _method.from_covariance:
        CASES[f"{_name}, covariance"] = (_method.make(), "covariance of 40")
CASES |= {
    "DictionaryLearning, gaps": (DictionaryLearning(4, alpha=0.5, max_iter=2, random_state=0), "gaps"),
    "DictionaryLearning, array": (
        DictionaryLearning(method="ksvd", nonzeros=2, max_iter=2, dict_init=np.eye(5)[:4], random_state=0),
        "data",
    ),
    "ProbabilisticPCA, gaps": (ProbabilisticPCA(2), "gaps"),
    "PCA, covariance": (PCA(2), "covariance"),
    "ProbabilisticPCA, covariance": (ProbabilisticPCA(2), "covariance"),
    "ProbabilisticPCA, array": (ProbabilisticPCA(2, rotation=ROTATION), "data"),
    "ProbabilisticPCAMixture, gaps": (ProbabilisticPCAMixture(1, n_clusters=3, random_state=0), "gaps"),
    "SparsePCA, proved": (SparsePCA(2, nonzeros=2, certify=True), "covariance"),
    "SparsePCA, array": (SparsePCA(2, formulation="regression", alpha=np.array([1.0, 2.0])), "data"),
    "SparsePCA, groups": (SparsePCA(2, nonzeros=1, groups=np.array([0, 0, 1, 1, 1])), "data"),
}


def fitted(name, *, named=True):
    """The estimator of a case, fitted, and the arguments of its transform."""
    estimator, kind = CASES[name]
    estimator = type(estimator)(**estimator.get_params())
    given = MemoryRows(GAPS if kind == "gaps" else X, names=tuple("vwxyz") if named else None)
    if kind == "two sides":
        sides = given, MemoryRows(Y, names=tuple(SECOND) if named else None)
        return estimator.fit(*sides), sides
    if kind.startswith("covariance"):
        covariance = MemoryRows(np.cov(X.T), names=given.names)
        return estimator.fit_covariance(covariance, n_samples=40 if "40" in kind else None), (given,)
    return estimator.fit(given), (given,)


def run(*words):
    """What a command prints; it must not end in an error."""
    done = command(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without_date(page):
    return re.sub(r"Written by princomp on [^.]*\.", "", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_every_model_is_shown_everywhere(name, tmp_path, observe):
    """Rows of the table: fitted to data or a covariance, by inspect, transform and the report, from a file too."""
    model, given = fitted(name)
    path, data = tmp_path / "model.princomp", tmp_path / "data.csv"
    princomp.save(model, path)
    again = princomp.load(path)
    columns = [*"vwxyz", *SECOND][: sum(rows.shape[1] for rows in given)]
    cells = np.hstack([rows.block(0) for rows in given])
    np.savetxt(data, cells, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")

    inspected, facts = run("inspect", path), json.loads(run("inspect", path, "--json"))
    assert inspected.startswith(f"{type(model).__name__}(")
    assert str(model.certificate_) in inspected
    assert (facts["n_samples"] is None) == (CASES[name][1] == "covariance")
    assert facts["features"] == list("vwxyz")

    scores = describe_scores(again, *given)
    lines = [line.split(",") for line in run("transform", path, data, "-q").splitlines()]
    assert lines[0] == [f'"{column}"' for column in ("sample", *scores.columns)]
    cells = [[{"false": 0, "true": 1}.get(cell, cell) for cell in line] for line in lines[1:]]
    np.testing.assert_allclose(np.array(cells, float)[:, 1:].T, list(scores.columns.values()), rtol=1e-9, atol=1e-12)

    side = {"y": given[1]} if len(given) == 2 else {}
    page, from_file = (without_date(report.write(each, given[0], tmp_path / "page", **side)) for each in (model, again))
    assert page == from_file
    sections = ", ".join(section.name for section in collect(model, given[0], **side).sections)
    head = ", ".join(column.name for column in describe(model).lines)
    seen = f"inspect: {head}; transform: {len(scores.columns)} columns; report: {sections}; from a file: the same"
    observe("shown", f"{name} ({CASES[name][1]})", seen)


def test_no_estimator_and_no_way_to_fit_it_is_missing():
    assert {type(estimator).__name__ for estimator, _ in CASES.values()} == set(MODELS)
    by_covariance = {type(each).__name__ for each, kind in CASES.values() if kind.startswith("covariance")}
    assert by_covariance == {name for name, model in MODELS.items() if hasattr(model.estimator, "fit_covariance")}


def test_features_without_names_are_counted():
    assert describe(fitted("pca, eigh", named=False)[0]).loadings["feature"] == ("x0", "x1", "x2", "x3", "x4")
    found = describe(fitted("cca", named=False)[0])
    assert [(side.named, side.features[0]) for side in found.sides] == [(False, "x0"), (False, "y0")]


def test_loadings_as_a_file():
    """A row for each feature, of each group or side."""
    mixture, _ = fitted("mixture")
    found = describe(mixture).loadings
    assert list(found) == ["group", "feature", "component_1", "component_2"]
    assert list(zip(found["group"], found["feature"], strict=True))[4:6] == [(1, "z"), (2, "v")]
    np.testing.assert_array_equal(found["component_2"], mixture.components_[:, 1].ravel())
    cca, _ = fitted("cca")
    found = describe(cca).loadings
    assert list(zip(found["side"], found["feature"], strict=True))[4:6] == [("x", "z"), ("y", "a")]
    np.testing.assert_array_equal(found["component_1"], [*cca.x_weights_[:, 0], *cca.y_weights_[:, 0]])


def test_how_it_was_computed_is_said_first():
    assert describe(fitted("sparse, regression")[0]).computation[0].startswith("Formulation “regression”, ")
    assert describe(fitted("pca, eigh")[0]).computation[0] == "Solver “eigh”, 1 step."
    assert describe(fitted("kernel, exact")[0]).computation[0].startswith("Kernel rbf with gamma ")


def test_numbers_for_programs_are_json():
    for name in CASES:
        facts = describe(fitted(name)[0]).facts
        assert json.loads(json.dumps(facts, allow_nan=False)) == facts


@pytest.mark.parametrize(("k", "which"), [(4, "Component 4 is"), (5, "Components 4 to 5 are")])
def test_components_beyond_the_rank_are_named(k, which):
    with pytest.warns(UserWarning, match="rank 3"):
        model = PCA(k).fit(X[:, :3] @ np.random.default_rng(1).normal(size=(3, 5)))
    assert describe(model).notes == (f"The data have rank 3: {which} rounding, and arbitrary.",)


@pytest.mark.parametrize(("k", "which"), [(3, "component 3 is"), (4, "components 3 to 4 are")])
def test_components_of_a_stream_that_are_noise_are_no_rounding(k, which):
    rng = np.random.default_rng(0)
    rows = 5 * rng.normal(size=(500, 2)) @ rng.normal(size=(2, 20)) + rng.normal(size=(500, 20))
    model = RobustPCA(k, method="online", tol=1e-3, random_state=0).fit(rows)
    assert describe(model).notes == (f"2 components stand out: {which} noise or rounding, and arbitrary.",)


def test_only_what_is_fitted_is_described():
    for function in (describe, lambda model: describe_scores(model, X)):
        with pytest.raises(NotFittedError):
            function(PCA(2))


# --- a method that nobody knows ------------------------------------------------------------------------


class Halves(Described, TransformerMixin, BaseEstimator):
    """The mean of the first and of the last features: nothing has variances, and nothing is called components."""

    def __init__(self, first=2):
        self.first = first

    def fit(self, X, y=None):
        self.n_features_in_, self.n_samples_ = X.shape[1], len(X)
        self.halves_ = np.repeat([[1.0, 0.0], [0.0, 1.0]], [self.first, X.shape[1] - self.first], axis=1)
        return self

    def transform(self, X):
        return X @ self.halves_.T

    def _describe(self):
        found = basics(self, halves=self.halves_)
        features = found.sides[0].features
        number = Column("half", np.array([1, 2]), "count")
        size = Column("features", self.halves_.sum(axis=1))
        return replace(
            found,
            summary="Two halves.",
            sections=(
                Loadings("loadings", "Members", "Who is where.", features, self.halves_, ("A", "B"), marks(2), "Half"),
                "scores",
                Table("halves", "Sizes", "How many.", (number, size), bars="features", axis="Features"),
            ),
            lines=(number, size),
            loadings={"feature": features, **numbered(self.halves_)},
        )

    def _describe_scores(self, X, y, values):
        values = self.transform(X)
        return Scores({"first": values[:, 0], "last": values[:, 1]}, ("First half", "Last half"), values, "Sums.")


def test_a_new_method_is_shown_by_what_it_says():
    """Sections in the order in which it gives them; nothing in the report or the command line knows of it."""
    from princomp.cli.show import component_table

    model = Halves().fit(X)
    content = collect(model, X)
    assert [section.name for section in content.sections] == ["loadings", "scores", "halves"]
    assert content.summary == "40 samples of 5 features. Two halves."
    page = render(content)
    assert page.index("Members") < page.index("Sums.") < page.index("Sizes")
    assert component_table(describe(model)).splitlines()[:2] == [
        "half    features  largest members",
        "   1           2  x0 +1.00, x1 +1.00",
    ]


class Silent(Halves):
    """The same, with nothing to say but how many scores there are."""

    _describe = Described._describe
    _describe_scores = Described._describe_scores

    def get_feature_names_out(self):
        return ["silent0", "silent1"]


def test_a_method_without_components_and_variances_is_shown_too():
    from princomp.cli.show import component_table

    model = Silent().fit(X)
    found = describe(model)
    assert component_table(found).split() == ["component", "1", "2"]
    assert found.loadings == {}
    assert [section.name for section in collect(model, X).sections] == ["scores"]
    assert component_table(replace(found, lines=())) == ""


@pytest.mark.parametrize("part", ["cli", "report"])
def test_nothing_that_shows_models_guesses_what_they_have(part):
    for path in (Path(princomp.__file__).parent / part).rglob("*.py"):
        guesses = re.findall(
            r"(?:has|get)attr\((?:estimator|model|self\._?estimator|certificate)\b.*", path.read_text()
        )
        assert not guesses, f"{path}: {guesses}"


def test_a_dictionary_says_how_its_codes_were_made():
    sentences = {
        "Learnt by K-SVD, with codes of at most 2 atoms": {"method": "ksvd", "nonzeros": 2},
        "Learnt online, from mini-batches, with codes of at most 3 atoms or as many as leave no more than 0.5": {
            "nonzeros": 3,
            "error": 0.5,
        },
        "Learnt online, from mini-batches, with penalty “elastic-net” of weight 0.3, l2 0.1": {
            "penalty": "elastic-net",
            "alpha": 0.3,
            "l2": 0.1,
        },
    }
    for sentence, parameters in sentences.items():
        model = DictionaryLearning(3, max_iter=1, random_state=0, **parameters).fit(X)
        assert describe(model).computation[0].startswith(sentence)


def test_what_a_reader_of_a_dictionary_should_know():
    """Atoms without use, twins, and more atoms than samples are pointed out."""
    twins = np.vstack([np.eye(5)[:2], np.eye(5)[:1] + 1e-6])
    how = {"dict_init": twins, "replace": False, "alpha": 1e3, "max_iter": 1, "random_state": 0}
    with pytest.warns(UserWarning, match="Every code is 0"):
        unused = describe(DictionaryLearning(3, **how).fit(X))
    assert any("make alpha smaller" in note for note in unused.notes)
    assert unused.facts["coherence"] > 0.999
    codes = np.array([[1.0, 0.0], [2.0, 0.0], [1.5, 0.0]]) @ np.eye(2, 5)
    how = {"dict_init": np.eye(2, 5), "replace": False, "nonzeros": 1, "max_iter": 1}
    half = describe(DictionaryLearning(2, **how).fit(codes))
    assert "1 atom of 2 is in no code." in half.notes
    assert half.facts["share_of_squares"] == pytest.approx(1.0)
    many = describe(DictionaryLearning(50, nonzeros=1, max_iter=1, random_state=0).fit(X))
    assert any("as many atoms as samples" in note for note in many.notes)


def test_what_a_loss_keeps_is_no_share_of_squares():
    found = describe(DictionaryLearning(3, nonzeros=1, loss="huber", max_iter=1, random_state=0).fit(X))
    assert "share_of_squares" not in found.facts
    assert "squares" not in found.summary


def test_rows_of_a_dictionary_count_what_is_there():
    """The share of squares that is left of a row is that over its cells that are not missing."""
    model, (given,) = fitted("DictionaryLearning, gaps")
    scores = describe_scores(model, given)
    codes = model.transform(given)
    left = np.nansum((GAPS - codes @ model.components_) ** 2, axis=1) / np.nansum(GAPS**2, axis=1)
    np.testing.assert_allclose(scores.values[:, 1], left, atol=1e-12)
    dense = np.zeros_like(codes)
    dense[scores.rows, scores.columns["atom"] - 1] = scores.columns["coefficient"]
    np.testing.assert_array_equal(dense, codes)
