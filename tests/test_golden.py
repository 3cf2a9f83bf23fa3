"""Model files written long ago load for ever, and give the numbers that were written down beside them.

They are in ``golden``, with the script that wrote them.
"""

import dataclasses
import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from golden.make import as_given, facts, named
from methods import METHODS
from princomp import certificates
from princomp.cli.app import cli
from princomp.cli.exits import Failure
from princomp.estimators.decompose import SOLVERS
from princomp.estimators.sparse_pca import FORMULATIONS
from princomp.penalties import L1
from princomp.persistence import ModelFileError, load, models, save, schema

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(GOLDEN.glob("*.princomp"))
MADE = [file for file in FILES if file.stem != "pca-1"]  # by the script
each_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
each_made_file = pytest.mark.parametrize("file", MADE, ids=lambda file: file.stem)


def expected_of(file):
    return json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))


def manifest_of(file):
    with zipfile.ZipFile(file) as opened:
        return opened.read("manifest.json").decode("utf-8", "surrogatepass")


def data_of(file, model):
    """The data, of the type that the model was fitted to."""
    dtype = getattr(model, "components_", np.zeros(0)).dtype
    return as_given(file.stem, [np.array(each, dtype=dtype) for each in expected_of(file)["data"]])


def close(found, expected):
    """Equal, but for the rounding of another BLAS."""
    for one, other in zip(found, expected, strict=True):
        other = np.array(other)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * np.abs(other).max())


# --- what they give -------------------------------------------------------------------------------


def test_pca_1():
    """On any Python and computer; components and data are short binary fractions, so that their products are exact."""
    expected = expected_of(GOLDEN / "pca-1.princomp")
    again = load(GOLDEN / "pca-1.princomp")
    assert {name: getattr(again, name) for name in expected["parameters"]} == expected["parameters"]
    assert again.penalty == L1(0.25)
    assert again.feature_names_in_.tolist() == expected["names"]
    for name, numbers in expected["attributes"].items():
        assert [x.hex() for x in np.ravel(getattr(again, name)).tolist()] == numbers, name
    assert len(again.trace_) == 2
    assert len(again.result_.history) == again.n_iter_
    given = named(expected["X"])
    assert again.transform(given).tolist() == expected["scores"]
    assert again.inverse_transform(expected["scores"]).tolist() == expected["back"]


@each_made_file
def test_they_give_the_numbers_that_were_written_down(file):
    expected = expected_of(file)
    again = load(file)
    found = facts(again, data_of(file, again))
    assert found["class"] == expected["class"]
    for part in ("parameters", "attributes"):  # there may be more by now
        assert {name: found[part][name] for name in expected.get(part, {})} == expected.get(part, {})
    assert found.get("ending") == expected.get("ending")
    close(found.get("scores", []), expected.get("scores", []))
    close([found.get("score", 0)], [expected.get("score", 0)])


@each_made_file
def test_saved_again_they_are_the_same_model(file, tmp_path):
    again = load(file)
    save(again, tmp_path / "model.princomp", parts=True)
    twice = load(tmp_path / "model.princomp")
    assert facts(twice, data_of(file, twice)) == facts(again, data_of(file, again))


@pytest.mark.parametrize("name", ["sparse-proved", "sparse-proved-groups", "sparse-forced"])
def test_their_proofs_still_hold(name):
    again = load(GOLDEN / f"{name}-1.princomp")
    S = np.cov(np.array(expected_of(GOLDEN / f"{name}-1.princomp")["data"][0]).T)
    for j, proof in enumerate(again.certificate_.proofs):
        assert certificates.verify(again.deflated_covariance(S, j), proof)


@each_file
def test_inspect_shows_them_and_obeys_none_of_their_names(file):
    shown = CliRunner().invoke(cli, ["inspect", str(file)], color=True)  # as to a terminal
    if file.stem.startswith("unfitted"):
        assert isinstance(shown.exception, Failure)
        return
    assert shown.exit_code == 0, shown.exception
    assert not set("\x1b\u202e") & set(shown.output)
    if "covariance" not in file.stem:
        assert "\\u202e" in shown.output  # it is there
    facts = json.loads(CliRunner().invoke(cli, ["inspect", str(file), "--json"]).output)
    assert facts["n_features"] == len(facts["features"])


# --- that there is one of each --------------------------------------------------------------------


def test_there_is_one_of_each_method():
    assert {re.sub(", | ", "-", name) for name in METHODS} <= {file.stem.removesuffix("-1") for file in FILES}


def test_there_is_one_of_each_estimator_and_object():
    manifests = [json.loads(manifest_of(file)) for file in FILES]
    fitted = [each for each in manifests if each["fitted"] is not None]
    assert {each["class"] for each in fitted} == set(schema.MODELS)
    for attribute, words in (("solver_", SOLVERS), ("formulation_", FORMULATIONS), ("method_", ("closed-form", "em"))):
        assert {each["fitted"][attribute] for each in fitted if attribute in each["fitted"]} == set(words)
    everything = " ".join(map(manifest_of, FILES))
    assert set(re.findall(r'"object": \[\s*"(\w+)"', everything)) == set(schema.OBJECTS)


def test_every_fitted_attribute_stands_in_one_of_them():
    for name, model in schema.MODELS.items():
        held = [json.loads(manifest_of(file)) for file in FILES]
        attributes = {key for each in held if each["class"] == name for key in each["fitted"] or {}}
        assert attributes == set(model.fitted), name


# --- what is added later --------------------------------------------------------------------------


def newer_class(kind):
    """The dataclass of a later version, which has one more field."""
    added = [("added", float, dataclasses.field(default=0.25))]
    return dataclasses.make_dataclass(kind.__name__, added, bases=(kind,), frozen=kind.__dataclass_params__.frozen)


def objects_in(value, found):
    """All small objects inside a value."""
    if dataclasses.is_dataclass(value):
        found.append(value)
        value = [getattr(value, each.name) for each in dataclasses.fields(value)]
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
        objects_in(item, found)
    return found


@pytest.mark.parametrize("name", schema.OBJECTS)
def test_a_field_added_to_a_nested_class_has_its_default(name, monkeypatch, observe):
    monkeypatch.setitem(schema.OBJECTS, name, newer_class(schema.OBJECTS[name]))
    held = 0
    for file in FILES:
        again = load(file)
        newer = [each for each in objects_in(vars(again), []) if type(each) is schema.OBJECTS[name]]
        assert all(each.added == 0.25 for each in newer)
        held += len(newer)
        if hasattr(again, "result_") and file in MADE:
            close(facts(again, data_of(file, again))["scores"], expected_of(file)["scores"])
    assert held > 0
    observe("N10", f"a field added to {name}", f"{len(FILES)} old files load, with its default")


@pytest.mark.parametrize("name", schema.OBJECTS)
def test_a_field_that_is_not_known_is_said(name, tmp_path, monkeypatch):
    """As in a file of a later version: what the field means is not known, so that nothing can be left out safely."""
    file = next(file for file in FILES if re.search(rf'"object": \[\s*"{name}"', manifest_of(file)))
    with monkeypatch.context() as later:
        later.setitem(schema.OBJECTS, name, newer_class(schema.OBJECTS[name]))
        save(load(file), tmp_path / "newer.princomp")
        load(tmp_path / "newer.princomp")
    with pytest.raises(ModelFileError, match=f"its {name} has the field 'added', which princomp .* does not know"):
        load(tmp_path / "newer.princomp")


@each_file
def test_a_parameter_added_to_a_class_has_its_default(file, monkeypatch):
    name = json.loads(manifest_of(file))["class"]
    old = schema.MODELS[name].estimator

    class Newer(old):
        def __init__(self, *args, added=7, **kwargs):
            super().__init__(*args, **kwargs)
            self.added = added

    monkeypatch.setattr(models, "_types", lambda estimator: {**types(old), "added": int})
    monkeypatch.setitem(schema.MODELS, name, dataclasses.replace(schema.MODELS[name], estimator=Newer))
    assert load(file).added == 7


types = models._types
