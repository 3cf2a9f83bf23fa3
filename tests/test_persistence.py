"""Model files: what is saved comes back bit by bit; what is damaged, hostile or half written does not come at all.

Hostile files are made from a good one, with all digests right again, so that only the fault in question is there.
"""

import dataclasses
import errno
import hashlib
import io
import json
import os
import pickle
import random
import signal
import stat
import struct
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import princomp
from helpers import Allocated, data_with_spectrum, fitted_attributes, value_or_error
from methods import METHODS
from princomp import PCA, DictionaryLearning
from princomp._kinds import Number, Numbers
from princomp.data.memory import MemoryRows
from princomp.datasets import make_height_weight
from princomp.losses import Absolute, Huber, Power, Squared
from princomp.penalties import (
    L0,
    L1,
    Box,
    ElasticNet,
    ElasticNetBall,
    GroupL2,
    Groups,
    L1Ball,
    L2Ball,
    Lp,
    NonNegative,
    OverlappingGroups,
    Sphere,
    Tree,
    Zero,
)
from princomp.persistence import ModelFileError, archive, load, save
from princomp.persistence.schema import MODELS
from princomp.persistence.values import Encoder, decode

X = data_with_spectrum(60, 8, np.arange(8, 0, -1), offset=3.0)
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")


def same(a, b):
    """Equal in type and in every bit, inside containers and dataclasses too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and a.dtype == object:
        return a.shape == b.shape and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        order = a.flags.f_contiguous == b.flags.f_contiguous
        return a.dtype == b.dtype and a.shape == b.shape and order and a.tobytes() == b.tobytes()
    if isinstance(a, float | np.floating):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a):
        return same(vars(a), vars(b))
    return bool(a == b)


def same_state(a, b):
    """Parameters and all that a fit left, and so everything that is computed from them."""
    return same(a.get_params(deep=False), b.get_params(deep=False)) and same(
        {name: vars(a)[name] for name in sorted(vars(a))}, {name: vars(b)[name] for name in sorted(vars(b))}
    )


@pytest.fixture(scope="module")
def model():
    return PCA(3, whiten=True).fit(X)


@pytest.fixture
def path(model, tmp_path):
    """A good model file."""
    save(model, tmp_path / "model.princomp")
    return tmp_path / "model.princomp"


# --- what is saved comes back ---------------------------------------------------------------------


def named(values, names):
    return MemoryRows(np.asarray(values), names=tuple(names))


def frame(values, names):
    return pytest.importorskip("pandas").DataFrame(values, columns=names)


ODD_NAMES = ["", "é", "e\u0301", "\u202e", "😀", '"\\', "a\nb\x00", "\ud83d\ude00 apart"]
FITS = {
    "svd": lambda: PCA(solver="svd").fit(X),
    "eigh": lambda: PCA(3, solver="eigh").fit(X),
    "eigh of rows": lambda: PCA(3, solver="eigh").fit(X.T),
    "krylov": lambda: PCA(2, solver="krylov", random_state=0).fit(X),
    "optimize": lambda: PCA(2, solver="optimize", random_state=np.int64(0)).fit(X),
    "optimize, Huber and L1": lambda: PCA(
        2, solver="optimize", loss=Huber(2.0), penalty=L1(0.5), random_state=0, max_iter=50
    ).fit(X),
    "whiten and scale": lambda: PCA(4, whiten=True, scale=True).fit(X),
    "not centred": lambda: PCA(4, center=False).fit(X),
    "a share": lambda: PCA(0.8).fit(X),
    "mle": lambda: PCA("mle").fit(X),
    "float32": lambda: PCA(3).fit(X.astype(np.float32)),
    "float32, offset 1e4, whiten and scale": lambda: PCA(3, whiten=True, scale=True).fit((X + 1e4).astype(np.float32)),
    "float32, krylov": lambda: PCA(3, solver="krylov", random_state=1).fit(X.astype(np.float32)),
    "odd names": lambda: PCA(3).fit(named(X, ODD_NAMES)),
    "names of a frame": lambda: PCA(3).fit(frame(X, [*ODD_NAMES[:-1], "x"])),
    "covariance": lambda: PCA(3).fit_covariance(np.cov(X.T)),
    "covariance, scaled": lambda: PCA(3, scale=True).fit_covariance(np.cov(X.T), n_samples=60),
    "nothing varies": lambda: PCA(2, solver="optimize").fit(np.ones((20, 8))),
    "variances overflow": lambda: PCA(2).fit(X * 1e300),
    "iteration limit": lambda: PCA(2, solver="optimize", max_iter=1, random_state=0).fit(X),
    "numbers of numpy": lambda: PCA(np.int64(3), tol=np.float32(1e-5), whiten=np.True_).fit(X),
}


def fitted(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FITS[name]()


@pytest.mark.parametrize("kind", ["arrays", "float32", "names"])
def test_N10_both_sides_of_a_canonical_model_keep_every_bit(kind, tmp_path):
    left, right = X, X[:, :3] @ np.diag([1.0, -2.0, 3.0]) + np.random.default_rng(0).normal(size=(60, 3))
    if kind == "float32":
        left, right = left.astype(np.float32), right.astype(np.float32)
    data = named(left, ODD_NAMES) if kind == "names" else left
    turned = named(right[:, ::-1], ODD_NAMES[2::-1])
    right = named(right, ODD_NAMES[:3]) if kind == "names" else right
    cca = princomp.SparseCCA(2, alpha_x=0.05, scale=kind != "arrays").fit(data, right)
    save(cca, tmp_path / "model.princomp")
    again = load(tmp_path / "model.princomp")
    assert same_state(cca, again)
    assert all(map(same, again.transform(data, right), cca.transform(data, right)))
    assert same(again.score(data, right), cca.score(data, right))
    if kind == "names":
        with pytest.raises(ValueError, match="column"):
            again.score(data, turned)


@pytest.mark.parametrize("kind", ["arrays", "float32", "names", "missing cells"])
def test_N10_a_mixture_keeps_every_bit(kind, tmp_path):
    people = make_height_weight(80, random_state=1).X
    third = people @ [[0.5], [-1.0]] + np.random.default_rng(0).normal(size=(80, 1))  # with noise of its own
    data = np.hstack([people, third]).astype(np.float32 if kind == "float32" else np.float64)
    if kind == "missing cells":
        data[::7, 1] = np.nan
    data = named(data, ODD_NAMES[:3]) if kind == "names" else data
    mixture = princomp.ProbabilisticPCAMixture(2, n_clusters=2, random_state=0).fit(data)
    save(mixture, tmp_path / "model.princomp")
    again = load(tmp_path / "model.princomp")
    assert same_state(mixture, again)
    for name in ("transform", "responsibilities", "predict", "score_samples", "score", "impute"):
        assert same(getattr(again, name)(data), getattr(mixture, name)(data)), name
    assert all(map(same, again.sample(5), mixture.sample(5)))


@pytest.mark.parametrize("name", FITS)
def test_N10_save_and_load_keep_every_bit(name, tmp_path, observe):
    pca = fitted(name)
    save(pca, tmp_path / "model.princomp")
    again = load(tmp_path / "model.princomp")
    assert same_state(pca, again)
    data = X[:7].astype(pca.components_.dtype)
    if name == "eigh of rows":
        data = X.T
    if hasattr(pca, "feature_names_in_"):
        data = named(data, pca.feature_names_in_)
    scores = pca.transform(data)
    assert same(again.transform(data), scores)
    assert same(again.inverse_transform(scores), pca.inverse_transform(scores))
    with np.errstate(all="ignore"):  # likelihoods of data of size 1e300
        outcomes = [value_or_error(each.score, data) for each in (pca, again)]
    assert same(*map(str, outcomes))
    assert same(again.loadings_, pca.loadings_)
    assert same(again.get_feature_names_out().tolist(), pca.get_feature_names_out().tolist())
    observe("N10", f"save and load, {name}", "state, transform, inverse_transform and score bit-equal")


@pytest.mark.parametrize("name", FITS)
def test_the_same_model_gives_the_same_bytes(name, tmp_path):
    first, second, third = (tmp_path / each for each in ("1.princomp", "2.princomp", "3.princomp"))
    pca = fitted(name)
    save(pca, first)
    save(pca, second)
    save(load(first), third)
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()


@pytest.mark.parametrize("estimator", [PCA(), PCA(0.5, solver="eigh", scale=True), PCA(2, loss=Squared(), tol=np.inf)])
def test_an_estimator_without_a_fit_keeps_its_parameters(estimator, tmp_path):
    save(estimator, tmp_path / "model.princomp")
    again = load(tmp_path / "model.princomp")
    assert fitted_attributes(again) == []
    assert same_state(estimator, again)


def test_what_belongs_to_a_session_is_not_saved(tmp_path):
    state = np.random.RandomState(0)
    pca = PCA(2, solver="krylov", callback=print, checkpoint=tmp_path / "x.npz", random_state=state)
    save(pca, tmp_path / "model.princomp")
    again = load(tmp_path / "model.princomp")
    assert again.callback is again.checkpoint is again.random_state is None
    assert again.solver == "krylov"
    assert pca.callback is print
    assert pca.random_state is state


def test_a_loaded_model_is_an_estimator_like_any_other(model, path):
    from sklearn.base import clone

    again = load(path)
    fresh = clone(again)
    assert fresh.get_params() == model.get_params()
    assert fitted_attributes(fresh) == []
    assert same_state(pickle.loads(pickle.dumps(again)), model)
    arrays = [value for value in vars(again).values() if isinstance(value, np.ndarray)]
    assert all(array.flags.writeable and array.flags.aligned for array in arrays)
    assert same(again.fit(X).components_, model.components_)


def test_the_path_is_used_as_it_is_given(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(model, "plain")
    save(model, Path("other.zip"))
    assert sorted(os.listdir()) == ["other.zip", "plain"]
    assert same_state(load("plain"), load("other.zip"))


def test_a_file_compressed_by_another_tool_loads(model, path):
    members = read_members(path)
    write_members(path, members, zipfile.ZIP_DEFLATED)
    assert same_state(load(path), model)


def test_numpy_and_json_alone_read_it(model, path):
    with zipfile.ZipFile(path) as file:
        manifest = json.loads(file.read("manifest.json"))
        for name, entry in manifest["arrays"].items():
            array = np.load(file.open(f"arrays/{name}.npy"), allow_pickle=False)
            assert [array.dtype.str, list(array.shape)] == [entry["dtype"], entry["shape"]]
            assert hashlib.sha256(file.read(f"arrays/{name}.npy")).hexdigest() == entry["sha256"]
            if name in vars(model):
                assert same(array, getattr(model, name))
        assert {info.compress_type for info in file.infolist()} == {zipfile.ZIP_STORED}


# --- values ---------------------------------------------------------------------------------------


def through_a_file(value, file):
    encoder = Encoder()
    content = {"value": encoder.encode(value, "value")}
    archive.write(file, content, encoder.arrays)
    with archive.opened(file, 2**30) as opened:
        return decode(opened.manifest["value"], opened.arrays(opened.manifest["arrays"]))


VALUES = [
    *(None, True, 0, -(2**70), "", "text", 0.1, -0.0, 5e-324, np.nan, np.inf, -np.inf),
    *(np.float32(0.1), np.float64(0.1), np.int32(7), np.int64(-(2**63)), np.bool_(True), np.float32(np.nan)),
    *((), (1, (2.5,)), [], [1, None, "a"], [0.5] * 100, list(range(100)), [2**70] * 100, [True] * 100, [1, 2.0] * 50),
    *([-1] * 99 + [number] for number in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1)),  # int64 ends in between
    *({}, {"array": "x", "list": 1, "": {"dict": {}}}, {"deep": [({"a": [{}]},)]}),
    *(np.zeros(0), np.zeros((0, 3)), np.array(1.5), np.arange(6.0).reshape(2, 3), np.eye(3, 2, order="F")),
    *(np.array([True, False]), np.arange(3, dtype="<i4"), np.array([np.nan, np.inf, -0.0], "<f4")),
    *([np.ones(2), np.zeros(2)], [np.ones(2), np.ones(3)], [np.array(1), np.array(2)], [np.zeros(0)] * 3),
    np.array(["a", "\udcff", ""], dtype=object),
    [Huber(0.1), {"x": Squared()}, Absolute(0.1), Power(1.5, 0.2, 3.0)],
    [Zero(), L1(0.1), NonNegative(), Groups(0.1, [[0, 1]], [2.0]), Tree(0.1, [[0, 1], [0]])],
    OverlappingGroups(0.1, [[0, 1], [1, 2]]),
    [L0(0.1), Lp(0.1, 0.3), ElasticNet(0.1, 0.2), Box(-np.inf, 2.0), NonNegative(Lp(0.1))],
    [L2Ball(2.0), L1Ball(2.0), Sphere(), NonNegative(Sphere(3.0)), ElasticNetBall(0.5, 2.0), GroupL2(0.1, [[0, 1]])],
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{value!r:.40}".replace("\n", " "))
def test_values_come_back(value, tmp_path):
    assert same(through_a_file(value, tmp_path / "x"), value)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.arange(3, dtype=">f8"), "<f8"),
        (np.arange(3, dtype=">i4"), "<i4"),
        (np.arange(3, dtype=np.float16), "<f4"),
        (np.arange(3, dtype=np.longdouble), "<f8"),
        (np.arange(3, dtype=np.int8), "<i4"),
        (np.arange(3, dtype=np.uint32), "<i8"),
        (np.arange(3, dtype=np.uint64), "<i8"),
        (np.arange(12.0).reshape(3, 4)[::2, ::-1], "<f8"),
        (np.broadcast_to(1.0, (2, 3)), "<f8"),
    ],
    ids=repr,
)
def test_other_numbers_become_those_of_the_format(given, dtype, tmp_path):
    again = through_a_file(given, tmp_path / "x")
    assert again.dtype.str == dtype
    assert np.array_equal(again, given)


@pytest.mark.parametrize(
    "value",
    [
        np.array([2**63], dtype=np.uint64),
        np.array([1 + 2j]),
        np.array([object()]),
        np.array(["a", 1], dtype=object),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        {1: 2},
        object(),
        print,
        set(),
        b"bytes",
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}",  # no addresses: workers must agree
)
def test_values_that_no_file_holds(value, tmp_path):
    with pytest.raises(ModelFileError, match=r"value\.inside"):
        through_a_file({"inside": value}, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(np.finfo(np.longdouble).eps == np.finfo(float).eps, reason="long double is float64 here")
def test_a_long_double_that_is_no_float64_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="cannot hold exactly"):
        through_a_file(np.array([1 / np.longdouble(3)]), tmp_path / "x")


def test_arrays_of_equal_names_do_not_mix(tmp_path):
    value = {
        key: np.full(2, i) for i, key in enumerate(["a b", "a_b", "A_B", "a/b", "a" * 300, "a" * 301, "nul", ".."])
    }
    assert same(through_a_file(value, tmp_path / "x"), value)


def test_one_array_in_two_places_is_written_once(tmp_path):
    array = np.ones(1000)
    first, second = through_a_file([array, {"again": array}], tmp_path / "x")[0::1]
    assert second["again"] is first
    assert (tmp_path / "x").stat().st_size < 12_000


# --- what cannot be saved -------------------------------------------------------------------------


class Own:
    """A loss of the user's own."""

    def value(self, residual):
        return float((residual**2).sum())

    def gradient(self, residual):
        return 2 * residual

    def in_units(self, unit):
        return self


class Derived(PCA):
    """A class of the user's own."""


def spoilt(**attributes):
    pca = PCA(3).fit(X)
    vars(pca).update(attributes)
    return pca


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (PCA(2, solver="optimize", loss=Own()), "parameters.loss is of the class Own"),
        (Derived(2), "Derived is none of the estimators"),
        (object(), "object is none of the estimators"),
        (PCA(max_iter="many"), "the parameter max_iter has a value of the wrong type, 'many'"),
        (PCA([1, 2]), "the parameter n_components"),
        (spoilt(note_="mine"), "unknown attribute, 'note_'"),
        (spoilt(components_=np.full((3, 8), np.nan)), "the attribute components_"),
        (spoilt(mean_=np.zeros(5)), "the attribute mean_"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_saved_is_said_and_leaves_the_old_file(estimator, message, path):
    before = path.read_bytes()
    with pytest.raises(ModelFileError) as error:
        save(estimator, path)
    assert str(error.value).startswith(f"The model file {path} cannot be saved: ")
    assert message in str(error.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_more_than_the_limits_is_not_written(tmp_path):
    too_many = {str(i): np.ones(1) for i in range(5000)}
    too_deep = []
    for _ in range(100):
        too_deep = [too_deep]
    for value, message in ((too_many, "too many"), (too_deep, "nested"), ("x" * 2**26, "longer than")):
        with pytest.raises(ModelFileError, match=message):
            through_a_file(value, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


# --- hostile files --------------------------------------------------------------------------------


def read_members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    """A zip of (name or ZipInfo, content) pairs, with whatever names."""
    with zipfile.ZipFile(path, "w", compression) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of duplicates
        for name, content in dict(members).items() if isinstance(members, dict) else members:
            file.writestr(name, content)


def described(content, dtype="<f8", shape=(1,), order="C"):
    digest = hashlib.sha256(content).hexdigest()
    return {"dtype": dtype, "shape": list(shape), "order": order, "bytes": len(content), "sha256": digest}


def with_digest(members, text):
    """Members with this manifest and its right digest."""
    line = f"{hashlib.sha256(text).hexdigest()}  manifest.json\n".encode()
    return {**members, "manifest.json": text, "manifest.sha256": line}


def tampered(path, change):
    """Let change(manifest, members) do its worst, then make the digest right."""
    members = read_members(path)
    manifest = json.loads(members["manifest.json"])
    change(manifest, members)
    write_members(path, with_digest(members, json.dumps(manifest).encode()))


def refusal(path):
    """The message, of a file that must be refused; it names the file and is one short line."""
    with pytest.raises(ModelFileError) as error:
        load(path)
    message = str(error.value)
    assert message.startswith(f"The model file {path} cannot be loaded: ")
    assert message.endswith(".")
    assert "\n" not in message
    assert len(message) < len(str(path)) + 400
    return message.removeprefix(f"The model file {path} cannot be loaded: ")


def test_tampering_without_a_fault_is_no_fault(model, path):
    # the tests below would prove nothing if this did not load
    tampered(path, lambda manifest, members: None)
    assert same_state(load(path), model)


def flipped(whole, draw):
    place = draw.randrange(len(whole))
    changed = bytearray(whole)
    changed[place] ^= draw.randrange(1, 256)
    return bytes(changed)


def count_flips(model, path, flips, seed):
    whole, draw = path.read_bytes(), random.Random(seed)
    refused = 0
    for _ in range(flips):
        path.write_bytes(flipped(whole, draw))
        outcome = value_or_error(load, path)
        if isinstance(outcome, ModelFileError):
            refused += 1
        else:
            assert not isinstance(outcome, ValueError), seed
            assert same_state(outcome, model), seed
    assert refused > flips / 2, seed
    return refused


def test_S1_one_byte_changed(model, path, observe):
    seed = random.randrange(10**6)
    refused = count_flips(model, path, 50, seed)
    observe("S1", "one byte changed, 50 times", f"{refused} refused, {50 - refused} loaded an identical model")


@pytest.mark.soak
@pytest.mark.parametrize("name", ["svd", "optimize, Huber and L1", "odd names", "float32"])
def test_S1_one_byte_changed_2000_times(name, path, observe):
    model = fitted(name)
    save(model, path)
    refused = count_flips(model, path, 2000, random.randrange(10**6))
    observe("S1", f"one byte changed, 2000 times, {name}", f"{refused} refused, {2000 - refused} identical")


def test_S1_a_truncated_file(path, observe):
    whole = path.read_bytes()
    lengths = [*range(0, len(whole), 100), len(whole) - 1]
    for length in lengths:
        path.write_bytes(whole[:length])
        refusal(path)
    observe("S1", f"truncated at {len(lengths)} places", "refused each time")


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"\x93NUMPY", b"not a zip " * 1000, pickle.dumps(PCA()), b"PK\5\6" + bytes(18), os.urandom(5000)],
    ids=["empty", "two bytes", "npy", "text", "pickle", "empty zip", "noise"],
)
def test_S1_other_files(content, tmp_path, observe):
    path = tmp_path / "model.princomp"
    path.write_bytes(content)
    message = refusal(path)
    assert "no model file" in message
    observe("S1", "a file that is no model file", "refused: " + message[:60])


# S2: bombs


def compressed_zeros(path, length):
    header = archive.npy_header("<f8", (length // 8,), "C")

    def change(manifest, members):
        members["arrays/components_.npy"] = header + bytes(length)
        manifest["arrays"]["components_"] = described(members["arrays/components_.npy"], shape=(length // 8,))

    tampered(path, change)
    write_members(path, read_members(path), zipfile.ZIP_DEFLATED)


def nested_zip(path):
    compressed_zeros(path, 2**25)
    write_members(path, {**read_members(path), "arrays/inner.npy": path.read_bytes()}, zipfile.ZIP_DEFLATED)


def large_manifest(path):
    text = b'{"x": "' + bytes(2**27).replace(b"\0", b" ") + b'"}'
    write_members(path, with_digest(read_members(path), text), zipfile.ZIP_DEFLATED)


def directory_of(entries):
    """The directory of a zip with so many members of no content, and its end."""
    fixed = struct.Struct("<4s4B4HL2L5H2L")
    parts = []
    for i in range(entries):
        name = f"arrays/{i}.npy".encode()
        parts.append(fixed.pack(b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0) + name)
    return b"".join(parts)


def many_members(path):
    directory = directory_of(10**5)
    path.write_bytes(directory + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65535, 65535, len(directory), 0, 0))


def many_members_that_say_they_are_few(path):
    """The end of the directory speaks of two members, and a second end, for large files, of all of them."""
    directory = directory_of(10**5)
    large = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 10**5, 10**5, len(directory), 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 2, 2, 100, 0, 0)
    path.write_bytes(directory + large + locator + end)


def as_many_members_as_are_read(path):
    directory = directory_of(4300)
    path.write_bytes(directory + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 4300, 4300, len(directory), 0, 0))


def huge_shape(path, *, in_manifest, in_header):
    def change(manifest, members):
        header = archive.npy_header("<f8", (10**12,) if in_header else (3, 8), "C")
        members["arrays/components_.npy"] = content = header + bytes(192)
        manifest["arrays"]["components_"] = described(content, shape=(10**12,) if in_manifest else (3, 8))

    tampered(path, change)


def huge_declared_size(path):
    """The directory says 2^60 bytes, in the way of large files."""
    whole = path.read_bytes()
    name = b"arrays/components_.npy"
    entry = whole.rindex(b"PK\1\2", 0, whole.rindex(name))
    changed = bytearray(whole)
    changed[entry + 24 : entry + 28] = b"\xff" * 4  # the size: see the extra field
    extra = struct.pack("<2HQ", 1, 8, 2**60)
    changed[entry + 30 : entry + 32] = struct.pack("<H", len(extra))
    after = entry + 46 + len(name)
    changed[after:after] = extra
    size = struct.unpack_from("<L", whole, len(whole) - 10)[0]
    struct.pack_into("<L", changed, len(changed) - 10, size + len(extra))
    path.write_bytes(bytes(changed))


def list_of_nothing(path):
    """A list of 10^12 empty arrays takes no space in the file."""

    def change(manifest, members):
        members["arrays/x.npy"] = content = archive.npy_header("<f8", (10**12, 0), "C")
        manifest["arrays"]["x"] = described(content, shape=(10**12, 0))
        manifest["fitted"]["trace_"] = {"stack": "x"}

    tampered(path, change)


def one_list_many_times(path):
    """A million numbers, in a thousand lists: 8 MB in the file, 32 GB of Python's floats."""
    content = archive.npy_header("<f8", (10**6,), "C") + os.urandom(8 * 10**6)

    def change(manifest, members):
        members["arrays/x.npy"] = content
        manifest["arrays"]["x"] = described(content, shape=(10**6,))
        manifest["fitted"]["trace_"] = [{"list": "x"}] * 1000

    tampered(path, change)


BOMBS = {
    "zip bomb, 1000:1": (lambda path: compressed_zeros(path, 2**28), "would expand"),
    "zip bomb within a zip": (nested_zip, "would expand"),
    "manifest of 128 MiB in 128 kB": (large_manifest, "would expand"),
    "10^5 members": (many_members, "too many members"),
    "10^5 members that say they are 2": (many_members_that_say_they_are_few, "too many members|damaged"),
    "4300 members": (as_many_members_as_are_read, "overlaps|manifest.json"),
    "shape 10^12 in header and manifest": (lambda path: huge_shape(path, in_manifest=True, in_header=True), "as long"),
    "shape 10^12 in the header": (lambda path: huge_shape(path, in_manifest=False, in_header=True), "begin like"),
    "shape 10^12 in the manifest": (lambda path: huge_shape(path, in_manifest=True, in_header=False), "as long"),
    "a member of 2^60 bytes": (huge_declared_size, "max_bytes"),
    "a list of 10^12 empty arrays": (list_of_nothing, "is empty"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_S2_bombs_are_refused_before_they_go_off(name, path, observe):
    make, expected = BOMBS[name]
    make(path)
    refusal(path)  # first calls cost more
    begin = time.process_time()
    message = refusal(path)
    seconds = time.process_time() - begin
    with Allocated() as memory:
        refusal(path)
    observe("S2", name, f"refused in {seconds:.3f} s and {memory.peak / 1e6:.1f} MB: {message[:60]}")
    assert pytest.RaisesExc(ModelFileError, match=expected).matches(ModelFileError(message)), message
    assert seconds < 0.1
    assert memory.peak < 50e6


def test_a_large_file_is_no_bomb(model, path, monkeypatch):
    """It expands to no more than itself, however much that is."""
    monkeypatch.setattr(archive, "EXPANSION_FROM", 0)
    assert same_state(load(path), model)


def test_S2_a_list_is_not_multiplied(path, observe):
    one_list_many_times(path)
    with Allocated() as memory:
        message = refusal(path)
    assert "used up" in message
    observe("S2", "one list of 10^6 numbers used 1000 times", f"refused, {memory.peak / 1e6:.0f} MB")
    assert memory.peak < 100e6


def test_S2_the_limit_is_the_users(model, path, observe):
    size = path.stat().st_size
    with pytest.raises(ModelFileError, match="more than max_bytes=1000"):
        load(path, max_bytes=1000)
    assert same_state(load(path, max_bytes=size), model)
    observe("S2", "max_bytes=1000", "refused, and says how to allow it")


# S3: names of members


def linked(name):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def renamed(path, old, new):
    """Give a member another name of the same length, in both places where it stands."""
    path.write_bytes(path.read_bytes().replace(old, new))


NAMES = {
    "../x": "'../x'",
    "arrays/../../x.npy": "x.npy'",
    "/etc/x": "'/etc/x'",
    "arrays//x.npy": "'arrays//x.npy'",
    "C:\\x.npy": "x.npy'",
    "arrays\\x.npy": "x.npy'",
    "arrays/": "'arrays/'",
    "arrays/x.npy\n": "x.npy",
    "arrays/é.npy": "é.npy'",
    "arrays/con.npy": "con.npy'",
    "arrays/NUL.x.npy": "NUL.x.npy'",
    "arrays/com1.npy": "com1.npy'",
    "__proto__": "'__proto__'",
    "model.pkl": "'model.pkl'",
    "arrays/not_in_the_manifest.npy": "not both",
}


def outside(path):
    """What is in the folders around a file."""
    return sorted(str(each) for each in path.parent.rglob("*")), sorted(os.listdir(path.parent.parent))


@pytest.mark.parametrize("name", NAMES)
def test_S3_names_of_members(name, path, observe):
    write_members(path, [*read_members(path).items(), (name, b"x")])
    before = outside(path)
    message = refusal(path)
    assert NAMES[name] in message
    assert outside(path) == before
    observe("S3", f"a member named {name!r}", "refused by its name, nothing written")


def test_S3_a_name_with_nul(path, observe):
    # zipfile itself would call this member arrays/mean_
    tampered(path, lambda manifest, members: members.update({"arrays/mean_#.npy": b"x"}))
    renamed(path, b"arrays/mean_#.npy", b"arrays/mean_\0.npy")
    message = refusal(path)
    assert "mean_\\x00.npy" in message
    observe("S3", "a member with NUL in its name", "refused by its name")


@pytest.mark.parametrize("twin", ["arrays/mean_.npy", "arrays/MEAN_.npy", "manifest.json"])
def test_S3_duplicates(twin, path, observe):
    write_members(path, [*read_members(path).items(), (twin, b"x")])
    assert any(text in refusal(path) for text in ("two members", "no model file has"))
    observe("S3", f"two members named {twin}", "refused")


def test_S3_a_symbolic_link(path, tmp_path, observe):
    secret = tmp_path / "secret"
    secret.write_bytes(b"x")
    members = read_members(path)
    members.pop("arrays/mean_.npy")
    write_members(path, [*members.items(), (linked("arrays/mean_.npy"), str(secret).encode())])
    assert "is a link" in refusal(path)
    observe("S3", "a member that is a symbolic link", "refused")


def test_S3_members_that_overlap(path, observe):
    # two entries of the directory point to one place
    whole = bytearray(path.read_bytes())
    start = whole.index(b"PK\1\2")
    entries = [i for i in range(start, len(whole)) if whole[i : i + 4] == b"PK\1\2"]
    whole[entries[4] + 42 : entries[4] + 46] = whole[entries[3] + 42 : entries[3] + 46]
    path.write_bytes(bytes(whole))
    assert "overlaps" in refusal(path)
    observe("S3", "members that overlap", "refused")


def test_the_directory_may_list_members_in_any_order(path):
    """What lies where is asked of their places, not of the order in which they are listed."""
    whole, before = path.read_bytes(), load(path)
    start, end = whole.index(b"PK\1\2"), whole.rindex(b"PK\5\6")
    entries = [b"PK\1\2" + entry for entry in whole[start:end].split(b"PK\1\2")[1:]]
    path.write_bytes(whole[:start] + b"".join(reversed(entries)) + whole[end:])
    assert (load(path).components_ == before.components_).all()


def test_S3_a_member_that_goes_on_into_the_next(path, observe):
    # both sizes that the directory tells of one reach to the end of another
    whole = bytearray(path.read_bytes())
    start = whole.index(b"PK\1\2")
    entries = [i for i in range(start, len(whole)) if whole[i : i + 4] == b"PK\1\2"]
    with zipfile.ZipFile(path) as archive:
        one, other = archive.infolist()[3:5]
    longer = other.header_offset + other.compress_size - one.header_offset
    whole[entries[3] + 20 : entries[3] + 28] = 2 * longer.to_bytes(4, "little")
    path.write_bytes(bytes(whole))
    assert "overlaps" in refusal(path)
    observe("S3", "a member that goes on into the next", "refused")


@pytest.mark.parametrize(("place", "value"), [(8, 1), (10, 12), (10, 14), (10, 99)], ids=str)
def test_S3_encrypted_or_oddly_compressed(place, value, path, observe):
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"PK\1\2") + place] = value
    path.write_bytes(bytes(whole))
    assert "encrypted or compressed in an unknown way" in refusal(path)
    observe("S3", "a member encrypted, or compressed in an unknown way", "refused")


# S4: pickles


class Bad:
    """Whoever unpickles this writes a file."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return (open, (self.target, "w"))


@pytest.mark.parametrize("dtype", ["<f8", "|O", "O"])
def test_S4_a_pickle_in_an_array(dtype, path, tmp_path, observe):
    target = tmp_path / "code ran"
    np.save(tmp_path / "bad.npy", np.array([Bad(target)], dtype=object), allow_pickle=True)
    content = (tmp_path / "bad.npy").read_bytes()
    with pytest.raises(ValueError, match="Object arrays"):
        np.load(tmp_path / "bad.npy", allow_pickle=False)  # it is what it says

    def change(manifest, members):
        members["arrays/mean_.npy"] = content
        manifest["arrays"]["mean_"] = described(content, dtype=dtype)

    tampered(path, change)
    message = refusal(path)
    assert "mean_.npy" in message
    assert not target.exists()
    observe("S4", f"a pickle in .npy, called {dtype} in the manifest", "refused, no code ran")


def test_S4_a_pickle_instead_of_a_model_or_a_manifest(path, tmp_path, observe):
    target = tmp_path / "code ran"
    bad = pickle.dumps(Bad(target))
    write_members(path, with_digest(read_members(path), bad))
    refusal(path)
    path.write_bytes(bad)
    refusal(path)
    assert not target.exists()
    observe("S4", "a pickle in place of the manifest, or of the file", "refused, no code ran")


@pytest.mark.parametrize("dtype", ["<f2", ">f8", "<c16", "<U1", "|V8", "<M8[s]", "[('a', '<f8')]", "<f8, <f8", 8, None])
def test_S4_other_types_of_numbers(dtype, path, observe):
    tampered(path, lambda manifest, members: manifest["arrays"]["mean_"].update(dtype=dtype))
    assert "does not describe arrays/mean_.npy" in refusal(path)
    observe("S4", f"dtype {dtype}", "refused")


def test_S4_a_boolean_that_is_neither(path, observe):
    content = archive.npy_header("|b1", (2,), "C") + b"\1\2"

    def change(manifest, members):
        members["arrays/mean_.npy"] = content
        manifest["arrays"]["mean_"] = described(content, "|b1", (2,))

    tampered(path, change)
    assert "neither true nor false" in refusal(path)
    observe("S4", "a boolean of byte 2", "refused")


# S5: the manifest


def put(*keys, value):
    """A change of one entry of the manifest."""

    def change(manifest, members):
        node = manifest
        for key in keys[:-1]:
            node = node[key]
        node[keys[-1]] = value

    return change


def drop(*keys):
    def change(manifest, members):
        node = manifest
        for key in keys[:-1]:
            node = node[key]
        del node[keys[-1]]

    return change


def squared(**given):
    return {"object": ["Squared", given]}


certificate = ("fitted", "certificate_", "object", 1)
MANIFESTS = {
    "class outside the list": (put("class", value="os.system"), "holds a 'os.system'"),
    "class of another library": (put("class", value="sklearn.decomposition.PCA"), "none of the estimators"),
    "class that is no text": (put("class", value=["PCA"]), '"class" of its manifest is of the wrong type'),
    "version 999": (put("version", value=999), "format version 999, but this princomp"),
    "version 0": (put("version", value=0), "format version 0"),
    "version as text": (put("version", value="1"), "format version '1'"),
    "another format": (put("format", value="other"), "not that of a princomp model"),
    "an unknown entry": (put("code", value="x"), "unknown entry, 'code'"),
    "an entry missing": (drop("parameters"), "entry parameters is missing"),
    "an unknown parameter": (put("parameters", "__class__", value=1), "unknown parameter, '__class__'"),
    "a callback": (put("parameters", "callback", value="print"), "unknown parameter, 'callback'"),
    "text for a number": (put("parameters", "max_iter", value="9"), "parameter max_iter has a value of the wrong type"),
    "a number for text": (put("parameters", "solver", value=1), "parameter solver has"),
    "text for a bool": (put("parameters", "whiten", value="no"), "parameter whiten has"),
    "a list for a number": (put("parameters", "tol", value=[1e-6]), "parameter tol has"),
    "a penalty for a loss": (put("parameters", "loss", value={"object": ["L1", {"alpha": 1}]}), "parameter loss has"),
    "an unknown object": (put("parameters", "loss", value={"object": ["Popen", {"args": "x"}]}), "class 'Popen'"),
    "an object with unknown fields": (
        put("parameters", "loss", value=squared(x=1)),
        "its Squared has the field 'x', which princomp",
    ),
    "an object with bad fields": (put("parameters", "loss", value={"object": ["Huber", {"delta": -1}]}), "delta must"),
    "an object that is none": (put("parameters", "loss", value={"object": "Huber"}), 'expected as "object"'),
    "an object of one": (put("parameters", "loss", value={"object": ["Huber"]}), "no pair"),
    "an unknown kind of value": (put("parameters", "tol", value={"eval": "1"}), "unknown kind 'eval'"),
    "a value of two kinds": (put("parameters", "tol", value={"float": "inf", "x": 1}), "other than one key"),
    "a float that is none": (put("parameters", "tol", value={"float": "1e5"}), "\"float\" '1e5'"),
    "a numpy type outside the list": (put("parameters", "tol", value={"numpy": ["O", 1]}), "unknown type"),
    "a numpy number that is none": (put("parameters", "tol", value={"numpy": ["<f8", "1"]}), "is no number"),
    "a numpy number too large": (put("parameters", "tol", value={"numpy": ["<i4", 2**40]}), "damaged"),
    "an unknown attribute": (put("fitted", "transform", value=1), "unknown attribute, 'transform'"),
    "an attribute missing": (drop("fitted", "_mean"), "attribute _mean is missing"),
    "a field missing": (drop(*certificate, "tol"), "its Certificate lacks the field tol"),
    "a field of the wrong type": (put(*certificate, "residual", value="0"), "Certificate has a residual of the wrong"),
    "a word outside the list": (put(*certificate, "scope", value="cosmic"), "Certificate has a scope of the wrong"),
    "an array of another shape": (put("fitted", "mean_", value={"array": "components_"}), "attribute mean_ has"),
    "an array that is not there": (put("fitted", "mean_", value={"array": "x"}), "array 'x', which is missing"),
    "text for an array": (put("fitted", "mean_", value="0"), "attribute mean_ has"),
    "components that do not count": (put("fitted", "n_components_", value=4), "attribute n_components_ has"),
    "too few names": (put("fitted", "feature_names_in_", value={"strings": ["a"]}), "attribute feature_names_in_ has"),
    "names that are no text": (put("fitted", "feature_names_in_", value={"strings": [1] * 8}), 'as "strings"'),
    "an array without a member": (put("arrays", "x", value={}), "'arrays/x.npy' is a member or"),
    "a member missing": (
        lambda manifest, members: members.pop("arrays/mean_.npy"),
        "'arrays/mean_.npy' is a member or",
    ),
    "a negative shape": (put("arrays", "mean_", "shape", value=[-8]), "not as long"),
    "a shape of text": (put("arrays", "mean_", "shape", value="8"), "does not describe"),
    "a shape of many axes": (put("arrays", "mean_", "shape", value=[1] * 90_000), "damaged"),
    "another order": (put("arrays", "mean_", "order", value="F"), "begin like"),
    "another digest": (put("arrays", "mean_", "sha256", value="0" * 64), "the SHA-256 differs"),
    "arrays that are a list": (put("arrays", value=[]), '"arrays" of its manifest is of the wrong type'),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_S5_manifests(name, path, observe):
    change, expected = MANIFESTS[name]
    tampered(path, change)
    message = refusal(path)
    assert expected in message
    observe("S5", name, "refused: " + message[:70])


def test_a_parameter_that_is_newer_than_the_file_has_its_default(tmp_path):
    """As in files of an earlier princomp, whose class did not have it yet."""
    sparse = princomp.SparsePCA(2, retain=0.7, certify=True, scale=True).fit(X)
    save(sparse, tmp_path / "model.princomp")

    def without(manifest, members):
        for name in ("retain", "certify"):
            del manifest["parameters"][name]

    tampered(tmp_path / "model.princomp", without)
    again = load(tmp_path / "model.princomp")
    default = princomp.SparsePCA()
    assert (again.retain, again.certify) == (default.retain, default.certify) == (0.9, False)
    assert (again.n_components, again.scale) == (2, True)
    assert same(again.transform(X), sparse.transform(X))


def test_S5_numbers_that_are_not_finite(path, observe):
    def change(manifest, members):
        content = archive.npy_header("<f8", (8,), "C") + np.full(8, np.nan).tobytes()
        members["arrays/mean_.npy"] = content
        manifest["arrays"]["mean_"] = described(content, shape=(8,))

    tampered(path, change)
    assert "attribute mean_ must be finite, but holds nan" in refusal(path)
    observe("S5", "NaN in an array", "refused")


# S5: numbers out of their range


def put_number(name, number, *, all_of_it=True):
    """A change of a fitted attribute: the number takes the place of what is there, or of the first of it."""

    def change(manifest, members):
        node = manifest["fitted"][name]
        plain = number if np.isfinite(number) else {"float": str(number)}
        if isinstance(node, dict) and "array" in node:
            entry, member = manifest["arrays"][node["array"]], f"arrays/odd_{name}.npy"
            array = np.load(io.BytesIO(members[f"arrays/{node['array']}.npy"]))
            with np.errstate(all="ignore"):
                array[... if all_of_it else (0,) * array.ndim] = number
            header = archive.npy_header(entry["dtype"], array.shape, entry["order"])
            members[member] = header + array.tobytes(order=entry["order"])
            manifest["arrays"][f"odd_{name}"] = described(members[member], entry["dtype"], array.shape, entry["order"])
            manifest["fitted"][name] = {"array": f"odd_{name}"}
        elif isinstance(node, dict) and "numpy" in node:
            manifest["fitted"][name] = {"numpy": [node["numpy"][0], plain]}
        else:
            manifest["fitted"][name] = int(number) if isinstance(node, int) and np.isfinite(number) else plain

    return change


# name: (estimator, what it is fitted to): every method, and parameters that leave more attributes
MODELS_OF_ALL_KINDS = {name: (method.make(), method.tables(X)) for name, method in METHODS.items()} | {
    "PCA": (PCA(3, scale=True, whiten=True), (X,)),
    "ProbabilisticPCA": (princomp.ProbabilisticPCA(2, scale=True), (X,)),
    "ProbabilisticPCA, float32": (princomp.ProbabilisticPCA(2), (X.astype(np.float32),)),
    "SparsePCA, cardinality": (princomp.SparsePCA(2, nonzeros=3, scale=True), (X,)),
    "SparsePCA, dictionary": (princomp.SparsePCA(2, alpha=1.0, scale=True, random_state=0), (X,)),
}


@pytest.fixture(params=MODELS_OF_ALL_KINDS)
def any_model(request):
    """A fitted estimator, and what it was fitted to."""
    estimator, given = MODELS_OF_ALL_KINDS[request.param]
    return clone(estimator).fit(*given), given


def written(name, tmp_path):
    estimator, given = MODELS_OF_ALL_KINDS[name]
    save(clone(estimator).fit(*given), tmp_path / "model.princomp")
    return tmp_path / "model.princomp"


OUT_OF_RANGE = [
    ("ProbabilisticPCA", "_noise", -5.0, "must be finite and above 0, as its reciprocal, but holds -5"),
    ("ProbabilisticPCA", "_noise", np.nan, "must be finite and above 0, as its reciprocal, but holds nan"),
    ("ProbabilisticPCA", "_noise", 0.0, "must be finite and above 0, as its reciprocal, but holds 0"),
    ("ProbabilisticPCA", "noise_variance_", -5.0, "must be finite and at least 0, but holds -5"),
    ("ProbabilisticPCA", "_scale", 0.0, "must be finite and above 0, as its reciprocal, but holds 0"),
    ("ProbabilisticPCA", "_scale", 5e-324, "must be finite and above 0, as its reciprocal, but holds 4.94e-324"),
    ("ProbabilisticPCA", "weights_", 1e300, "must be so small that its square is finite, but holds 1e+300"),
    ("ProbabilisticPCA", "n_samples_", -5, "must be an integer from 1 to 2^63 - 1, but is -5"),
    ("ProbabilisticPCA", "log_likelihood_", np.nan, "must be finite, but holds nan"),
    ("mixture", "shares_", 0.0, "must add up to 1, but adds up to 0"),
    ("mixture", "shares_", -1.0, "must be from 0 to 1, but holds -1"),
    ("mixture", "_noise", -5.0, "must be finite and above 0, as its reciprocal, but holds -5"),
    ("PCA", "scale_", 0.0, "must be finite and above 0, as its reciprocal, but holds 0"),
    ("PCA", "_deviation", np.nan, "must be at least 0, but holds nan"),
    ("PCA", "components_", 0.0, "must hold vectors of length 1"),
    ("PCA", "components_", 1e300, "must be from -1 to 1, but holds 1e+300"),
    ("PCA", "explained_variance_ratio_", 7.0, "must be from 0 to 1, but holds 7"),
    ("PCA", "n_samples_", -5, "must be an integer from 1 to 2^63 - 1, but is -5"),
    ("PCA", "rank_", -1, "must be an integer from 0 to 2^63 - 1, but is -1"),
    ("SparsePCA, cardinality", "_scale", 0.0, "must be finite and above 0, as its reciprocal, but holds 0"),
    ("SparsePCA, cardinality", "components_", 0.5e-160, "must hold vectors of length 1 or 0"),
    ("SparsePCA, cardinality", "nonzeros_", -1, "must be finite and at least 0, but holds -1"),
    ("cca", "y_scale_", 0.0, "must be finite and above 0, as its reciprocal, but holds 0"),
    ("cca", "correlations_", 2.0, "must be from -1 to 1, but holds 2"),
]


@pytest.mark.parametrize(("model", "name", "number", "sentence"), OUT_OF_RANGE, ids=str)
def test_S5_numbers_out_of_their_range(model, name, number, sentence, tmp_path, observe):
    path = written(model, tmp_path)
    tampered(path, put_number(name, number))
    assert refusal(path) == f"the attribute {name} {sentence}."
    observe("S5", f"{model}: {name} = {number}", f"refused: {sentence}"[:90])


def test_S5_a_rounded_attribute_and_the_precise_one_agree(tmp_path, observe):
    """What scores are made of is the precise one; what is read, and may be looked at first, is the other."""
    path = written("ProbabilisticPCA, float32", tmp_path)
    whole = path.read_bytes()
    for name, number in (("_mean", 1e300), ("_noise", 7.0), ("mean_", 7.0), ("noise_variance_", 7.0)):
        path.write_bytes(whole)
        tampered(path, put_number(name, number))
        assert "is not what " in refusal(path)
    observe("S5", "a mean or a noise that differs from the rounded one", "refused")


CERTIFICATES = {
    "a residual below 0": (
        put(*certificate, "residual", value=-1e-9),
        "residual of its Certificate must be at least 0",
    ),
    "a tol that is none": (
        put(*certificate, "tol", value={"float": "nan"}),
        "tol of its Certificate must be at least 0",
    ),
    "a history out of step": (
        put("fitted", "result_", "object", 1, "history", "object", 1, "seconds", value=[1.0] * 3),
        "seconds of its History has 3 entries where 0 are expected",
    ),
    "steps below 0": (put("fitted", "result_", "object", 1, "n_iter", value=-1), "n_iter of its Result must be"),
    "a solver of its own": (put("fitted", "solver_", value="magic"), "solver_ must be one of eigh, svd, krylov"),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_S5_numbers_inside_a_result_out_of_their_range(name, path, observe):
    change, expected = CERTIFICATES[name]
    tampered(path, change)
    message = refusal(path)
    assert expected in message
    observe("S5", name, "refused: " + message[:70])


ODD_NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300)


def scores_of(model, given):
    scores = model.transform(*given)
    return np.hstack(scores) if isinstance(scores, tuple) else scores


def test_S5_no_odd_number_gives_scores_that_are_none(any_model, tmp_path, observe):
    """Each number in each attribute, in all of it or in its first place: refused, or the scores are finite."""
    model, given = any_model
    path = tmp_path / "model.princomp"
    save(model, path, parts=True)
    whole, refused, loaded = path.read_bytes(), 0, 0
    numeric = [name for name, value in vars(model).items() if is_numeric(name, value, model)]
    for name in numeric:
        counts = np.asarray(getattr(model, name)).dtype.kind == "i"
        for number in (-1, 0, 2**62) if counts else ODD_NUMBERS:
            for all_of_it in (True, False):
                path.write_bytes(whole)
                tampered(path, put_number(name, number, all_of_it=all_of_it))
                again = value_or_error(load, path)
                if isinstance(again, ModelFileError):
                    refused += 1
                    continue
                loaded += 1
                assert np.isfinite(scores_of(again, given)).all(), (name, number, all_of_it)
    assert len(numeric) > 8
    assert refused > loaded
    kind = type(model).__name__
    observe("S5", f"odd numbers in {kind}", f"{refused} refused, {loaded} loaded with finite scores")


def is_numeric(name, value, model):
    fitted = name in MODELS[type(model).__name__].fitted
    return fitted and value is not None and np.asarray(value).dtype.kind in "fi"


def test_every_attribute_has_a_range_or_a_type():
    """NaN is refused in each number and each array of numbers that a fit leaves."""
    for name, model in MODELS.items():
        for attribute, kind in model.fitted.items():
            assert getattr(kind, "hint", None) not in (float, int, np.ndarray), (name, attribute)
            if isinstance(kind, Number | Numbers):
                assert kind.range.stray(np.array([np.nan])) is not None, (name, attribute)


EXTREMES = {
    "nothing varies": np.ones((20, 8)),
    "of size 1e300": X * 1e300,
    "of size 1e-300": X * 1e-300,
    "float32 of size 1e30": (X * 1e30).astype(np.float32),
    "float32 of size 1e-42": (X * 1e-42).astype(np.float32),
    "of rank one": np.outer(X[:, 0], X[0]),
    "two rows": X[:2],
    "columns from 1e-160 to 1e120": X * 10.0 ** np.arange(-160, 160, 40),
    "two rows, many times": np.repeat(X[:2], 30, axis=0),
}
HARD = {name: method.make(max_iter=20) for name, method in METHODS.items()} | {
    "PCA, scaled": PCA(2, scale=True, whiten=True),
    "PCA, penalised": PCA(2, solver="optimize", penalty=L1(1e6), random_state=0, max_iter=20),
    "ProbabilisticPCA, all": princomp.ProbabilisticPCA(random_state=0),
    "ProbabilisticPCA, scaled": princomp.ProbabilisticPCA(2, scale=True, random_state=0),
    "SparsePCA, nothing left": princomp.SparsePCA(2, alpha=1e6, random_state=0, max_iter=20),
    "SparsePCA, infinite ridge": princomp.SparsePCA(2, ridge=np.inf, alpha=0.1, random_state=0, max_iter=20),
    "KernelPCA, all": princomp.KernelPCA(),
}


@pytest.mark.parametrize("name", HARD)
def test_N10_no_range_is_too_narrow_for_a_fit(name, tmp_path, observe):
    """Variances that overflow, components of zeros, noise at the rounding: what fits leave is saved and loads."""
    kept, first, second = 0, tmp_path / "1.princomp", tmp_path / "2.princomp"
    for X_ in EXTREMES.values():
        estimator = clone(HARD[name])
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            fitted_one = value_or_error(estimator.fit, X_, X_[:, ::-1])  # which one of them asks for
        if isinstance(fitted_one, Exception):
            continue  # some say that variances are too large or too small
        save(estimator, first)
        save(load(first), second)
        assert first.read_bytes() == second.read_bytes()
        kept += 1
    assert kept >= len(EXTREMES) // 2
    observe("N10", f"{name}, data at the limits", f"{kept} of {len(EXTREMES)} fits saved and loaded")


TEXTS = {
    "nested 10^5 deep": (b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}", "nested more than 64"),
    "nested 10^5 deep, objects": (b'{"a":' * 10**5 + b"1" + b"}" * 10**5, "nested more than 64"),
    "nested 10^5 deep, not closed": (b"[" * 10**5, "nested more than 64"),
    "nested 10^5 deep, after text": (b'["\\\\","\\"",' + b"[" * 10**5, "nested more than 64"),
    "10^6 empty lists": (b"[" + b"[]," * 10**6 + b"[]]", "more than 100000 objects"),
    "a key twice": (b'{"format": "princomp model", "version": 1, "version": 1}', "'version' twice"),
    "NaN": (b'{"format": NaN}', "holds NaN"),
    "Infinity": (b'{"format": -Infinity}', "holds -Infinity"),
    "1e999": (b'{"format": 1e999}', "holds 1e999"),
    "a number of 10^5 digits": (b'{"format": ' + b"9" * 10**5 + b"}", "damaged"),
    "no object": (b"[]", "not that of a princomp model"),
    "no JSON": (b"{'a': 1}", "damaged"),
    "text not closed": (b'{"' + b'\\"' * 10**6, "damaged"),
    "nothing": (b"", "damaged"),
    "no UTF-8": (b'{"a": "\xff"}', "damaged"),
    "two values": (b"{} {}", "damaged"),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("limit", [200, 10**6])
def test_S5_json(name, limit, path, observe):
    text, expected = TEXTS[name]
    write_members(path, with_digest(read_members(path), text))
    frames = len(list(_frames()))
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, frames + 100))  # whatever it is, neither RecursionError nor a crash
    try:
        begin = time.process_time()
        message = value_or_error(load, path)
        seconds = time.process_time() - begin
    finally:
        sys.setrecursionlimit(before)
    assert isinstance(message, ModelFileError)
    assert expected in str(message)
    assert seconds < 0.5
    observe("S5", f"JSON: {name}", "refused: " + str(message).removeprefix(f"The model file {path} ")[:70])


def keys(count, colon=b":"):
    return b",".join(b'"k%d"%b0' % (i, colon) for i in range(count))


LONG_TEXTS = {
    "3 million keys": (lambda: b"{" + keys(3 * 10**6) + b"}", "more than 100000 keys"),
    "3 million keys, not written by us": (lambda: b"{" + keys(3 * 10**6, b" \n: ") + b"}", "more than 100000 keys"),
    "3 million keys, after text": (
        lambda: b'["' + b'\\":' * 10**5 + b'",{' + keys(3 * 10**6) + b"}]",
        "more than 100000 keys",
    ),
    "3 million numbers": (lambda: b"[" + b"0," * (3 * 10**6) + b"0]", "more than 2000000 values"),
    "3 million texts": (lambda: b"[" + b'"",' * (3 * 10**6) + b'""]', "more than 2000000 values"),
    "quotes, and nothing else": (lambda: b'"' * 5 * 10**6, "damaged"),
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_S5_what_is_in_json_is_counted_before_it_is_made(name, path, observe):
    make, expected = LONG_TEXTS[name]
    text = make()
    write_members(path, with_digest(read_members(path), text))
    counted = min(process_seconds(value_or_error, archive.check_json, text) for _ in range(3))
    loaded = min(process_seconds(value_or_error, load, path) for _ in range(3))
    message = refusal(path)
    observe("S5", f"JSON: {name}", f"refused in {loaded:.2f} s, {counted:.3f} s of it for counting")
    assert expected in message
    assert counted < 0.25
    assert loaded < 0.5


def process_seconds(function, *args):
    begin = time.process_time()
    function(*args)
    return time.process_time() - begin


def test_colons_and_commas_in_names_count_as_nothing(tmp_path):
    """Ranges on a genome, say: as many of them as a manifest may not have keys."""
    names = np.array([f'chr1:{i},{i + 1}"' for i in range(archive.KEYS + 1)], dtype=object)
    assert same(through_a_file(names, tmp_path / "x"), names)


def _frames():
    frame = sys._getframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


# --- files and folders ----------------------------------------------------------------------------


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"the model is not loaded: .*nothing\.princomp"):
        load(tmp_path / "nothing.princomp")


def test_a_folder_is_no_model(tmp_path):
    assert "it is no file" in refusal(tmp_path)


@posix
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "it is no file" in refusal(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("target", "error"),
    [("missing/model.princomp", FileNotFoundError), ("folder", OSError), ("x" * 300, OSError)],
    ids=["no such folder", "a folder", "a name of 300 letters"],
)
def test_P4_a_place_that_cannot_be_written_to(target, error, model, tmp_path, observe):
    (tmp_path / "folder").mkdir()
    with pytest.raises(error) as caught:
        save(model, tmp_path / target)
    assert caught.value.filename == str(tmp_path / target)
    assert "the model is not saved" in str(caught.value)
    assert ".part" not in str(caught.value)
    assert os.listdir(tmp_path) == ["folder"]
    observe("P4", "save to a place that cannot be written to", f"OSError with path and cause: {caught.value.strerror}")


# --- save, interrupted ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    """A model of some 40 MB."""
    return PCA(solver="eigh").fit(np.random.default_rng(0).normal(size=(100, 25_000)))


def assert_nothing_but(path, *models):
    """The file is one of the models, whole, and alone in its folder."""
    assert os.listdir(path.parent) == [path.name]
    found = load(path)
    assert any(same_state(found, model) for model in models)


@posix
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # raised within open, it leaves nobody to close it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_P2_an_exception_at_any_moment_leaves_the_old_file(model, large, path, observe):
    class Interrupted(Exception):
        pass

    def interrupt(number, frame):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for moment in np.geomspace(0.0005, 0.15, 12):
            save(model, path)
            try:
                signal.setitimer(signal.ITIMER_REAL, float(moment))
                save(large, path)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                interrupted += 1
                assert_nothing_but(path, model, large)  # large: it came after the last step
            else:
                assert_nothing_but(path, large)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted >= 3
    observe("P2", f"an exception during save, {interrupted} moments", "old file intact, no temporary file")


CHILD = """
import sys
from princomp.persistence import load, save

pca = load(sys.argv[2])
print("ready", flush=True)
while True:
    save(pca, sys.argv[1])
"""


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(princomp.__file__).parents[1])}


def kill_while_saving(path, number, moment, large, elsewhere):
    """Start a process that saves a large model again and again, and end it after a moment."""
    save(large, elsewhere)  # the very model: fitted again, it might round differently
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), str(elsewhere)], env=environment(), text=True, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(moment)
        child.send_signal(number)
        child.wait(60)
    finally:
        child.kill()
        child.communicate()


def assert_whole_or_absent(path, *models):
    """Beside the file only hidden parts may be left."""
    left = [name for name in os.listdir(path.parent) if name != path.name]
    assert all(name.startswith(".princomp-") and name.endswith(".part") for name in left)
    if path.exists():
        found = load(path)
        assert any(same_state(found, model) for model in models)
    return len(left)


@posix
@pytest.mark.parametrize(
    ("name", "moment", "there"),
    [("SIGKILL", 0.05, True), ("SIGKILL", 0.4, True), ("SIGTERM", 0.1, True), ("SIGKILL", 0.1, False)],
)
def test_P2_killed_while_saving(name, moment, there, model, large, path, tmp_path_factory, observe):
    if not there:
        path.unlink()
    elsewhere = tmp_path_factory.mktemp("large") / "large.princomp"
    kill_while_saving(path, getattr(signal, name), moment, large, elsewhere)
    parts = assert_whole_or_absent(path, model, large)
    assert path.exists() or not there
    state = "absent" if not path.exists() else "the old one" if path.stat().st_size < 10**5 else "the new one"
    observe("P2", f"{name} after {moment} s of saving", f"file {state}, never half; {parts} hidden part left")
    save(model, path)  # and goes on
    assert same_state(load(path), model)


@posix
@pytest.mark.soak
def test_P2_killed_forty_times(model, large, path, tmp_path_factory, observe):
    parts = 0
    elsewhere = tmp_path_factory.mktemp("large") / "large.princomp"
    for _ in range(40):
        kill_while_saving(path, signal.SIGKILL, random.uniform(0, 0.6), large, elsewhere)
        parts = assert_whole_or_absent(path, model, large)
        assert path.exists()
    assert parts > 0  # some were killed in the middle
    observe("P2", "SIGKILL at 40 random moments of saving", f"never half a file; {parts} hidden parts left")


# --- disks that do not take it --------------------------------------------------------------------

LIMITED = """
import resource, sys
import numpy as np
from princomp import PCA
from princomp.persistence import save

resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
try:
    save(PCA(solver="eigh").fit(np.random.default_rng(0).normal(size=(20, 25_000))), sys.argv[1])
except OSError as error:
    print(error.errno, error.filename, error.strerror, sep="|")
"""


@posix
def test_P4_a_limit_on_the_size_of_files(model, path, observe):
    answer = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], env=environment(), text=True, capture_output=True, check=True
    )
    number, name, cause = answer.stdout.strip().split("|")
    assert (int(number), name) == (errno.EFBIG, str(path))
    assert answer.stderr == ""
    assert_nothing_but(path, model)
    observe("P4", "a limit of 1 MiB per file", f"OSError: {cause}; old file intact")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a file system needs the rights of root")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.soak
@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is of Linux")
def test_P4_a_full_disk(model, large, small_disk, observe):
    path = small_disk / "model.princomp"
    save(model, path)
    with pytest.raises(OSError, match="No space left on device, the model is not saved") as caught:
        save(large, path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert_nothing_but(path, model)
    observe("P4", "a full disk of 1 MiB", f"OSError: {caught.value.strerror}; old file intact")


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT], ids=errno.errorcode.get)
def test_P4_errors_that_come_late(number, model, large, path, monkeypatch, observe):
    """Disks and networks may say at the last moment only, when data are synchronised, that they did not keep them."""

    def fail(descriptor):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="the model is not saved") as caught:
            save(large, path)
    assert (caught.value.errno, caught.value.filename) == (number, str(path))
    assert_nothing_but(path, model)
    observe("P4", f"{errno.errorcode[number]} when synchronising", f"OSError: {caught.value.strerror}")


# --- what others write ------------------------------------------------------------------------------


class TwiceBelow:
    """A penalty of one's own: a negative entry costs twice as much as a positive one."""

    convex = True

    def value(self, w):
        return float(0.2 * np.maximum(w, -2 * w).sum())

    def prox(self, w, step):
        return np.maximum(w - 0.2 * step, 0) + np.minimum(w + 0.4 * step, 0)


def test_a_model_with_a_penalty_of_ones_own_is_kept_as_the_error_says(tmp_path):
    """By pickle, and what comes back codes alike; with another penalty it would be another model."""
    X = np.random.default_rng(0).normal(size=(60, 5))
    model = DictionaryLearning(4, penalty=TwiceBelow(), max_iter=2, random_state=0).fit(X)
    with pytest.raises(ModelFileError, match=r"parameters\.penalty is of the class TwiceBelow.* with pickle") as caught:
        save(model, tmp_path / "x.princomp")
    assert "None" not in str(caught.value)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
