"""What every method promises, asked of each in the list: any storage, any precision, files, pickles, names, stops."""

import inspect
import pickle
import re
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import princomp
from methods import METHODS, TABLE
from princomp.cli.methods import methods as commands
from princomp.estimators import __all__ as PUBLIC
from princomp.persistence.schema import MODELS
from storages import NEEDS, STORAGES, as_array

ROOT = Path(__file__).parents[1]
NAMES = [f"feature {j}" for j in range(TABLE.shape[1])]


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


def only(methods):
    """The names of some methods, for tests that the others have no part in."""
    return [name for name, method in METHODS.items() if methods(method)]


def fitted_state(model):
    """Every fitted attribute, the clock left out."""
    state = {name: value for name, value in vars(model).items() if name.endswith("_") or name.startswith("_")}
    return {name: value for name, value in state.items() if name not in ("result_", "certificate_")}


def assert_same_state(one, other):
    assert_equal(fitted_state(one), fitted_state(other))
    assert one.certificate_.residual == other.certificate_.residual
    assert one.result_.status == other.result_.status
    assert_equal(dict(one.result_.value), dict(other.result_.value))


def assert_equal(one, other):
    """Bit by bit, whatever is nested in what."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = ([each[key] for key in sorted(each)] for each in (one, other))
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for pair in zip(one, other):
            assert_equal(*pair)
    else:
        np.testing.assert_array_equal(one, other)


# --- the list itself ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
def test_every_estimator_is_everywhere(name):
    """A new estimator is in the list of methods, on the command line, in model files, the API page and the README."""
    places = {
        "tests/methods.py": name in {method.estimator for method in METHODS.values()},
        "princomp.cli.methods": name in {command.estimator for command in commands().values()},
        "princomp.persistence.schema.MODELS": name in MODELS,
        "docs/api.md": f"autoclass:: princomp.{name}\n" in (ROOT / "docs" / "api.md").read_text(encoding="utf-8"),
        "the table of README.md": bool(re.search(rf"^\| \[?`{name}`", (ROOT / "README.md").read_text(), re.MULTILINE)),
    }
    missing = [place for place, there in places.items() if not there]
    assert not missing, f"{name} is a public estimator, but it is missing from {', '.join(missing)}."


def test_every_public_name_is_on_the_api_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    missing = [name for name in princomp.__all__ if not re.search(rf"princomp\.{name}\b", page)]
    assert not missing, f"docs/api.md does not have {', '.join(missing)}."


def test_every_extra_has_code_that_uses_it():
    """What no code imports is not asked of users."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for name in set(extras) - {"test", "lint", "docs", "bench", "bench-gpl"}:
        packages = [re.match(r"[\w-]+", line)[0] for line in extras[name]]
        used = [package for package in packages if package == "princomp" or re.search(rf"\b{package}\b", source)]
        assert used, f"{name}: nothing uses {', '.join(packages)}"


# --- storages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "storage",
    [
        pytest.param(name, marks=pytest.mark.needs("pyspark", "java") if name == "spark" else ())
        for name in STORAGES
        if name != "array"
    ],
)
@pytest.mark.parametrize("name", METHODS)
def test_N3_every_storage_gives_the_same_answer(name, storage, request, tmp_path, observe):
    method = METHODS[name]
    if storage in NEEDS:
        request.getfixturevalue(NEEDS[storage])
    X = STORAGES[storage](TABLE, tmp_path)
    if storage in method.refuses:
        with pytest.raises(ValueError, match=method.refuses[storage]) as error:
            method.fit(X, **method.tight)
        return observe("N3", f"{name}, {storage}", str(error.value))
    expected, found = method.fit(TABLE, **method.tight), method.fit(X, **method.tight)
    assert expected.certificate_.holds
    assert found.certificate_.holds
    difference = float(np.abs(method.answer(found) - method.answer(expected)).max())
    scores = as_array(found.transform(X))
    size = np.abs(scores).max()
    np.testing.assert_allclose(scores, expected.transform(TABLE), rtol=0, atol=1e-8 * size)
    observe("N3", f"{name}, {storage}", f"components differ by {difference:.0e}")
    assert difference <= 1e-8
    return None


# --- precision ------------------------------------------------------------------------------------


def test_N2_single_precision_is_kept_and_close(method):
    X = TABLE.astype(np.float32)
    expected, found = method.fit(X.astype(np.float64)), method.fit(X)
    scores = found.transform(X)
    assert method.answer(found).dtype == scores.dtype == np.float32
    np.testing.assert_allclose(method.answer(found), method.answer(expected), rtol=0, atol=1e-4)


@pytest.mark.parametrize("offset", [1e4, 1e8])
@pytest.mark.parametrize("name", only(lambda method: method.ignores_offset))
def test_F13_an_offset_changes_nothing(name, offset):
    method = METHODS[name]
    X = np.round(TABLE * 2**16) / 2**16  # so that the offset costs the data no digit
    near, far = method.fit(X, **method.tight), method.fit(X + offset, **method.tight)
    np.testing.assert_allclose(method.answer(far), method.answer(near), rtol=0, atol=1e-7)


def test_N6_the_same_seed_gives_the_same_bits(method):
    assert_same_state(method.fit(TABLE), method.fit(TABLE))


def test_N9_fit_transform_is_fit_and_transform(method):
    at_once = method.make().fit_transform(*method.tables(TABLE))
    np.testing.assert_allclose(at_once, method.fit(TABLE).transform(TABLE), rtol=1e-12, atol=1e-12)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_F1_F2_a_cell_that_is_no_number_is_named_or_missing(method, value):
    X = TABLE.copy()
    X[3, 2] = value
    if np.isnan(value) and method.allows_missing:
        assert np.isfinite(method.fit(X).transform(X)).all()
        return
    model = method.make()
    sentence = r"NaN in column 2|missing cells \(NaN\), for which there is no closed form" if np.isnan(value) else "inf"
    with pytest.raises(ValueError, match=sentence):
        model.fit(*method.tables(X))
    assert not fitted_state(model), "a fit that failed leaves nothing"


@pytest.mark.parametrize("name", only(lambda method: method.by_feature))
def test_F3_a_constant_column_has_no_weight(name):
    method = METHODS[name]
    X = np.column_stack([TABLE, np.full(len(TABLE), 7.0)])
    found = method.fit(X, **method.tight)
    assert np.abs(method.answer(found)[..., -1]).max() <= 10 * np.finfo(float).eps


@pytest.mark.parametrize("k", [0, -1, True, "two", [2], 1.5, None.__class__, 10**9])
def test_F11_a_number_of_components_that_means_nothing(method, k):
    model = clone(method.make()).set_params(n_components=k)
    if k == 10**9 and not method.at_most_rank:
        return
    with pytest.raises(ValueError, match="n_components"):
        model.fit(*method.tables(TABLE))


@pytest.mark.parametrize("rows", [0, 1])
def test_F11_too_few_rows(method, rows):
    model = method.make()
    with pytest.raises(ValueError, match=rf"Found array with {rows} sample\(s\)"):
        model.fit(*method.tables(TABLE[:rows], rows))


def test_data_are_left_as_they_were(method):
    X = TABLE.copy()
    X.flags.writeable = False
    method.fit(X).transform(X)
    assert (X == TABLE).all()


# --- files, pickles, names ------------------------------------------------------------------------


def test_N10_saved_loaded_and_pickled_models_are_the_same(method, tmp_path):
    model = method.fit(TABLE)
    princomp.save(model, tmp_path / "model.princomp", parts=True)
    for again in (princomp.load(tmp_path / "model.princomp"), pickle.loads(pickle.dumps(model))):
        assert_same_state(model, again)
        np.testing.assert_array_equal(again.transform(TABLE), model.transform(TABLE))


@pytest.mark.needs("pandas")
def test_names_go_in_and_come_out(method):
    import pandas

    X = pandas.DataFrame(TABLE, columns=NAMES)
    model = method.fit(X).set_output(transform="pandas")
    assert list(model.feature_names_in_) == NAMES
    scores = model.transform(X)
    assert list(scores.columns) == list(model.get_feature_names_out())
    assert len(scores.columns) == scores.shape[1]
    np.testing.assert_allclose(scores, method.fit(TABLE).transform(TABLE), atol=1e-10)
    with pytest.raises(ValueError, match="feature 0"):
        model.transform(X[NAMES[::-1]])


@pytest.mark.needs("jinja2")
def test_a_report_can_be_written(method, tmp_path):
    model = method.fit(TABLE)
    page = princomp.report.write(model, TABLE, tmp_path / "report.html")
    assert type(model).__name__ in page.read_text(encoding="utf-8")


# --- stops ----------------------------------------------------------------------------------------

ITERATE = only(lambda method: method.iterates)


@pytest.mark.parametrize("name", ITERATE)
def test_P1_an_interrupted_fit_leaves_nothing(name):
    def interrupt(state):
        raise KeyboardInterrupt

    method = METHODS[name]
    model = method.make(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*method.tables(TABLE))
    assert not fitted_state(model)


@pytest.mark.parametrize("name", ITERATE)
def test_P1_a_callback_may_stop_a_fit(name):
    seen = []

    def stop(state):
        seen.append(state.iteration)
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = METHODS[name].fit(TABLE, callback=stop)
    assert seen
    assert model.result_.status.code in ("stopped", "converged")
    assert np.isfinite(model.transform(TABLE)).all()


@pytest.mark.parametrize("name", ITERATE)
def test_P1_every_method_that_iterates_stops_at_its_time_limit_and_says_so(name):
    """At the next state, with the best answer so far; a fit that had converged by then has."""
    method, begin = METHODS[name], time.monotonic()
    never = {**method.tight, "tol": 0.0, "max_iter": 10**9}
    with pytest.warns(ConvergenceWarning, match="time_limit=0.001 seconds"):
        model = method.fit(TABLE, **never, time_limit=1e-3)
    assert time.monotonic() - begin < 5.0  # some of it to compile
    assert model.result_.status.code == "time limit"
    assert not model.result_.status
    assert np.isfinite(model.transform(TABLE)).all()


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), "1", True])
def test_F11_a_time_limit_that_means_nothing(method, seconds):
    with pytest.raises(ValueError, match="time_limit must be a number above 0"):
        method.fit(TABLE, time_limit=seconds)


@pytest.mark.parametrize("name", ITERATE)
def test_P1_an_interrupted_fit_goes_on_from_its_checkpoint(name, tmp_path):
    """Interrupted after each of its states in turn, it still ends where an undisturbed fit ends."""
    method, path = METHODS[name], tmp_path / "state"
    expected = method.fit(TABLE, **method.tight)

    class Interruption:
        def __init__(self):
            self.left = 2

        def __call__(self, state):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt

    for _ in range(3):
        try:
            method.fit(TABLE, **method.tight, checkpoint=path, callback=Interruption())
        except KeyboardInterrupt:
            assert path.exists(), "an interrupted fit leaves its state"
    found = method.fit(TABLE, **method.tight, checkpoint=path)
    assert not path.exists(), "a fit that has ended leaves no state"
    np.testing.assert_allclose(method.answer(found), method.answer(expected), rtol=0, atol=1e-9)


# --- covariance -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", only(lambda method: method.from_covariance))
def test_a_covariance_gives_what_its_data_give(name):
    method = METHODS[name]
    X = TABLE - TABLE.mean(axis=0)
    S = X.T @ X / (len(X) - method.divisor)
    found = method.make(**method.tight).fit_covariance(S, n_samples=len(X))
    expected = method.fit(TABLE, **method.tight)
    np.testing.assert_allclose(method.answer(found), method.answer(expected), rtol=0, atol=1e-7)
    np.testing.assert_allclose(found.explained_variance_, expected.explained_variance_, rtol=1e-7)


# --- scikit-learn ---------------------------------------------------------------------------------


def test_parameters_are_documented_and_typed(method):
    cls = getattr(princomp, method.estimator)
    section = cls.__doc__.split("Parameters\n")[1].split("Attributes\n")[0]
    for name, parameter in inspect.signature(cls).parameters.items():
        assert re.search(rf"^\s*(\w+, )*{name}(, \w+)*( : |$)", section, re.MULTILINE), f"{name} is not documented"
        assert parameter.annotation is not inspect.Parameter.empty, f"{name} has no type"
