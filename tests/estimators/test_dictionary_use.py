"""Atoms that hardly any code takes: a fit warns of that, says from where on alpha is too large, and what to try."""

import re
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse import random as sparse_random

from princomp import DictionaryLearning, sparse_encode
from princomp._text import percent
from princomp.estimators.description import describe
from princomp.losses import Huber
from princomp.penalties import L1

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(300, 12)) * (RNG.random((300, 12)) < 0.2)) @ RNG.normal(size=(12, 8))
X /= np.linalg.norm(X, axis=1, keepdims=True) + 1e-9
HOW = {"max_iter": 2, "random_state": 0}
NUMBER = r"([\d.e+-]*\d)"


def said(model, X):
    with pytest.warns(UserWarning, match=r"atom|code") as caught:
        model.fit(X)
    assert len(caught) == 1
    return str(caught[0].message)


def quiet(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(X)


@pytest.mark.parametrize(
    "how",
    [{}, {"penalty": L1(0.95)}, {"positive_code": True}, {"loss": Huber(0.3), "alpha": 0.7}],
    ids=["l1", "an object", "positive", "a loss"],
)
def test_the_alpha_it_names_is_where_codes_begin(how):
    how = {"alpha": 0.95, **how}
    model = DictionaryLearning(12, **how, **HOW)
    sentence = said(model, X)
    bound = float(re.search(f"all 0 from alpha={NUMBER} on", sentence)[1])
    asked = {"positive": model.positive_code, "loss": model.loss}
    assert sparse_encode(X, model.components_, alpha=1.01 * bound, **asked).nnz == 0
    assert sparse_encode(X, model.components_, alpha=0.99 * bound, **asked).nnz > 0


def test_what_it_proposes_lets_most_rows_have_atoms():
    sentence = said(DictionaryLearning(12, alpha=20.0, **HOW), X)
    proposed = float(re.search(rf"smaller, such as {NUMBER}, or", sentence)[1])
    model = quiet(DictionaryLearning(12, alpha=proposed, **HOW), X)
    assert describe(model).facts["mean_nonzeros"] > 1


def test_what_it_proposes_is_less_than_what_was_too_large():
    scattered = sparse_random(400, 100, density=0.02, rng=0, format="csr")
    sentence = said(DictionaryLearning(5, alpha=0.3, **HOW), scattered)
    assert float(re.search(rf"smaller, such as {NUMBER}, or", sentence)[1]) < 0.2


def test_it_says_how_little_codes_hold():
    model = DictionaryLearning(12, alpha=0.95, **HOW)
    sentence = said(model, X)
    few = (model.transform(X) != 0).sum() / len(X)
    left = ((X - model.transform(X) @ model.components_) ** 2).sum() / (X**2).sum()
    assert f"have {few:.2g} on average, and {percent(left)} of the squares are left" in sentence
    assert any(note.startswith(sentence.partition(".")[0]) for note in describe(model).notes)


def test_sparse_rows_and_missing_cells_are_counted_as_they_are():
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    for given, dense in ((csr_array(X), X), (gaps, np.nan_to_num(gaps))):
        model = DictionaryLearning(12, alpha=5.0, **HOW)
        bound = float(re.search(f"all 0 from alpha={NUMBER} on", said(model, given))[1])
        assert bound == pytest.approx(np.abs(dense @ model.components_.T).max(), rel=0.01)


@pytest.mark.parametrize(
    ("how", "X", "advice"),
    [
        ({"error": 9.0}, X, "make error a small part"),
        ({"penalty": "l0", "alpha": 9.0}, X, "a smaller weight"),
        ({"alpha": 0.1}, np.zeros((20, 8)), "nothing but 0 in the rows"),
        (
            {"nonzeros": 1, "dict_init": -np.eye(8), "positive_code": True, "replace": False},
            np.abs(X),
            "No atom is like",
        ),
    ],
    ids=["error", "l0", "zeros", "wrong side"],
)
def test_what_else_leaves_rows_without_atoms(how, X, advice):
    assert advice in said(DictionaryLearning(**how, **HOW), X)


def test_rows_that_are_nearly_0_may_have_no_atoms():
    background = np.vstack([X, 1e-3 * RNG.normal(size=(2000, 8))])
    model = quiet(DictionaryLearning(12, alpha=0.2, **HOW), background)
    assert model.atom_counts_.sum() < 0.5 * len(background)


def test_a_stream_may_have_rows_without_atoms_but_not_only_such():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DictionaryLearning(12, alpha=0.2, **HOW).partial_fit(X)
        model.partial_fit(0.01 * X[:5])
    with pytest.warns(UserWarning, match="Every code is 0"):
        DictionaryLearning(12, alpha=20.0, **HOW).partial_fit(X)
