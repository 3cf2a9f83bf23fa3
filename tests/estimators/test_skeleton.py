"""What all estimators have from one skeleton: counts that are refused in words, warnings that point at the user."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import princomp
from methods import METHODS
from princomp import (
    PCA,
    DictionaryLearning,
    ProbabilisticPCA,
    ProbabilisticPCAMixture,
    RankOneDictionary,
    SparseCCA,
    SparsePCA,
)
from princomp._kinds import Number, declared
from princomp.persistence import schema

ESTIMATORS = [getattr(princomp, name) for name in princomp.estimators.__all__]
OF_ONE_TABLE = {getattr(princomp, method.estimator) for method in METHODS.values() if not method.two_tables}
UP_TO_ROWS = {getattr(princomp, method.estimator) for method in METHODS.values() if method.up_to_rows}
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 6)), RNG.normal(size=(40, 5))
HOLED = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
SPLIT = np.where(np.arange(40)[:, None] % 2 == np.arange(6) // 3, np.nan, X)  # no row has columns 0 and 5
TWINS = np.repeat(X[:, :2], 2, axis=1)  # columns that come and go together
EQUAL = np.ones((20, 4))


# --- warnings -------------------------------------------------------------------------------------

# With so few features, or a step for each component; or with as many passes as are asked for, which is no surprise.
DONE_AT_ONCE = ("pca, krylov", "sparse, cardinality", "dictionary, online", "dictionary, ksvd", "rank one, refined")
# A pursuit, which is what robust PCA does by default, and pairs of rank one take X as it is.
CENTRE = {
    kind for kind in ESTIMATORS if kind.__name__ not in {m.estimator for m in METHODS.values() if not m.ignores_offset}
}
WARNERS = {
    f"{name}, cut off": (method.make(max_iter=1, tol=1e-14), X)
    for name, method in METHODS.items()
    if method.iterates and name not in DONE_AT_ONCE
}
WARNERS |= {f"{kind.__name__} of equal rows": (kind(2), EQUAL) for kind in ESTIMATORS if kind in OF_ONE_TABLE & CENTRE}
WARNERS |= {
    "PCA, cut off": (PCA(2, solver="krylov", max_iter=1, tol=1e-14, random_state=0), RNG.normal(size=(60, 50))),
    "PPCA with gaps, cut off": (ProbabilisticPCA(2, max_iter=2, random_state=0), HOLED),
    "PPCA, scaled, of columns apart": (ProbabilisticPCA(1, scale=True, random_state=0), SPLIT),
    "mixture of columns apart": (ProbabilisticPCAMixture(1, n_clusters=1, random_state=0), SPLIT),
    "sparse PCA of nothing": (SparsePCA(2, formulation="dictionary", alpha_share=1.0, random_state=0), X),
    "sparse PCA, nonzeros missed": (SparsePCA(1, formulation="regression", nonzeros=1, scale=True), TWINS),
}


def assert_warns_of(call):
    """A function of one line warns, and each warning is said to be of that line."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        call()
    assert {(each.filename, each.lineno) for each in warned} == {(__file__, call.__code__.co_firstlineno)}


@pytest.mark.parametrize("name", WARNERS)
def test_a_warning_points_at_the_line_that_called(name):
    estimator, data = WARNERS[name]
    assert_warns_of(lambda: estimator.fit(data, Y))


@pytest.mark.parametrize("name", ["PCA of equal rows", "sparse, regression, cut off", "mixture, cut off"])
def test_also_through_scikit_learn(name):
    estimator, data = WARNERS[name]
    assert_warns_of(lambda: make_pipeline(estimator).fit_transform(data))


@pytest.mark.parametrize("kind", [PCA, ProbabilisticPCA, SparsePCA])
def test_also_from_a_covariance(kind):
    assert_warns_of(lambda: kind(2).fit_covariance(np.zeros((4, 4))))


def test_every_estimator_warns_here():
    assert {type(estimator) for estimator, _ in WARNERS.values()} == set(ESTIMATORS)


# --- how many components --------------------------------------------------------------------------

DICTIONARIES = (DictionaryLearning, RankOneDictionary)  # which may have more than rows or columns
WORDS = {PCA: 'a share in (0, 1], "mle", or None', ProbabilisticPCA: "one of ard, bic, evidence, held-out, or None"}


@pytest.mark.parametrize("asked", ["two", "", True, False, np.True_, [2], (2,), 0, -1, 7, 41, 2.0, 1.5, np.nan, {}])
@pytest.mark.parametrize("kind", [kind for kind in ESTIMATORS if kind not in DICTIONARIES])
def test_a_number_of_components_that_means_nothing_is_refused_in_words(kind, asked):
    """Also lists, which compare with numbers one by one, and True, which is the integer 1 to Python."""
    if kind in UP_TO_ROWS and asked == 7:  # of which there are 40
        assert kind(asked).fit(X).n_components_ == 7
        return
    with pytest.raises(ValueError, match=r"^n_components must be an integer from 1 to (5|6|40)\b.*[;,] got ") as error:
        kind(asked).fit(X, Y)
    assert str(error.value).endswith(f"got {asked!r}.")
    assert WORDS.get(kind, "") in str(error.value)
    assert ("None" in str(error.value)) == (kind not in (ProbabilisticPCAMixture, SparseCCA))


@pytest.mark.parametrize("kind", [PCA, ProbabilisticPCA, SparsePCA])
def test_so_it_is_from_a_covariance(kind):
    for asked in ("two", True, [2]):
        with pytest.raises(ValueError, match=r"^n_components must be an integer from 1 to 6 \(= min\(n, p\)\)"):
            kind(asked).fit_covariance(np.cov(X.T))


@pytest.mark.parametrize("asked", ["two", True, [2], 0, None])
@pytest.mark.parametrize("kind", [SparsePCA, *DICTIONARIES])
def test_a_dictionary_may_have_more_components_than_features(kind, asked):
    model = kind(asked, random_state=0, **({"nonzeros": 3} if kind is RankOneDictionary else {"alpha": 1.0}))
    if asked is None:
        assert model.set_params(n_components=8).fit(X).components_.shape == (8, 6)
        return
    ways = r"an integer of at least 1, (a share in \(0, 1\], )?or None"
    with pytest.raises(ValueError, match=rf"^n_components must be {ways}; got "):
        model.fit(X)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_integers_of_any_kind_will_do(kind):
    assert kind(np.int32(2)).fit(X, Y).n_components_ == 2


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_limits_that_mean_nothing_are_refused_in_words(kind):
    for limits, words in (
        ({"max_iter": 0}, "max_iter must be an integer"),
        ({"tol": -1}, "tol must be a number"),
        ({"tol": np.nan}, "tol must be a number"),
        ({"tol": np.inf}, "tol must be a number"),
    ):
        with pytest.raises(ValueError, match=words):
            kind(1, **limits).fit(X, Y)


# --- what a fit leaves ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_fit_that_fails_leaves_nothing(kind):
    before = dict(vars(kind(2)))
    estimator = kind(2)
    with pytest.raises(ValueError, match="contains inf"):
        estimator.fit(np.where(X.max() == X, np.inf, X), Y)
    assert vars(estimator) == before


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_fit_leaves_what_it_declares(kind):
    """Every attribute has a kind, and is of it; without that it could not be saved."""
    parameters = kind(2).get_params()
    left = {name: value for name, value in vars(kind(2).fit(X, Y)).items() if name not in parameters}
    kinds, lengths = declared(kind, "_fitted"), {}
    assert left.keys() <= kinds.keys()
    assert kinds.keys() - left.keys() == {name for name, each in kinds.items() if each.optional} - left.keys()
    assert [each.fault(left[name], lengths) for name, each in kinds.items() if name in left] == [None] * len(left)


def test_an_estimator_that_is_added_is_saved_without_being_told(tmp_path, monkeypatch):
    """Nothing but its own declaration: the table of model files is made from the estimators there are."""

    class Shifted(PCA):
        _fitted: ClassVar = {"shift_": Number()}

        def _fit(self, X, tell):
            super()._fit(X, tell)
            self.shift_ = 1.5

    monkeypatch.setattr(princomp.estimators, "Shifted", Shifted, raising=False)
    monkeypatch.setattr(princomp.estimators, "__all__", [*princomp.estimators.__all__, "Shifted"])
    models = schema.models()
    assert models.keys() == {*schema.MODELS, "Shifted"}
    monkeypatch.setitem(schema.MODELS, "Shifted", models["Shifted"])
    fitted = Shifted(2).fit(X)
    princomp.save(fitted, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    assert again.shift_ == 1.5
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    fitted.shift_ = np.nan
    with pytest.raises(princomp.persistence.ModelFileError, match="the attribute shift_ must be finite"):
        princomp.save(fitted, tmp_path / "model.princomp")


# --- what belongs to a fit --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PCA, ProbabilisticPCA, SparsePCA])
def test_scores_of_another_number_of_components_are_refused(kind):
    fitted = kind(3).fit(X)
    for columns in (2, 4):
        with pytest.raises(ValueError, match=f"Scores must have 3 columns, one per component, got {columns}"):
            fitted.inverse_transform(X[:, :columns])


def test_named_rows_of_another_width_are_refused_after_a_fit_without_names():
    """Shards of frames, which scikit-learn does not know as a frame."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X).add_prefix("x")
    fitted = PCA(2).fit(X)
    assert np.array_equal(fitted.transform([frame]), fitted.transform(X))
    with pytest.raises(ValueError, match=r"^X has 5 features, but PCA is expecting 6 features as input\.$"):
        fitted.transform([frame.iloc[:, :5]])


@pytest.mark.parametrize("kind", [kind for kind in ESTIMATORS if kind in CENTRE])
def test_what_spans_more_than_float64_holds_is_refused(kind):
    """Each number is finite, but not the distance of one row from the mean."""
    wide = np.where(np.arange(40)[:, None] == 3, -1.7e308, 1.7e308) * np.ones(6)
    with pytest.raises(ValueError, match=r"^Input X spans more than float64 holds"):
        kind(2).fit(wide, Y)
