"""DictionaryLearning: what it says of itself, what it refuses, and how calls go together."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from princomp import DictionaryLearning, sparse_encode
from princomp.data import budget
from princomp.losses import Huber

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(200, 6)) * (RNG.random((200, 6)) < 0.4)) @ RNG.normal(size=(6, 8))


def test_batch_warns_at_the_limit_and_the_others_end_there():
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        DictionaryLearning(4, method="batch", alpha=0.2, max_iter=1, tol=1e-9, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DictionaryLearning(4, alpha=0.2, max_iter=1, tol=1e-9, random_state=0).fit(X)
    assert "as online learning does" in str(model.result_.status)
    assert not model.certificate_.holds


def test_the_objective_and_the_score_are_means_over_rows():
    model = DictionaryLearning(4, alpha=0.2, random_state=0).fit(X)
    codes, D = model.transform(X), model.components_
    mean = (0.5 * ((X - codes @ D) ** 2).sum() + 0.2 * np.abs(codes).sum()) / len(X)
    assert model.result_.objective == pytest.approx(mean, rel=1e-6)
    assert model.score(X) == pytest.approx(-mean, rel=1e-6)


def test_what_does_not_go_together_is_refused_in_words():
    with pytest.raises(ValueError, match="give nonzeros, error, or both"):
        DictionaryLearning(4, method="ksvd").fit(X)
    with pytest.raises(AttributeError, match='method="online"'):
        _ = DictionaryLearning(4, method="batch").partial_fit
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    with pytest.raises(ValueError, match='Use update="approximate"'):
        DictionaryLearning(4, method="ksvd", nonzeros=1, update="exact").fit(gaps)
    with budget.limited(10_000), pytest.raises(MemoryError, match="fill missing cells"):
        DictionaryLearning(200, alpha=0.2).fit(gaps)


def test_a_stream_goes_on_where_cells_begin_to_be_missing():
    gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    model = DictionaryLearning(4, alpha=0.2, random_state=0).partial_fit(X).partial_fit(gaps).partial_fit(X)
    assert model.n_samples_ == 600
    assert model.n_iter_ == 3
    assert np.isfinite(model.components_).all()


def test_rows_that_come_after_a_batch_fit_are_few_among_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8)) * (rng.random((2000, 8)) < 0.3)
    model = DictionaryLearning(6, method="batch", alpha=0.1, tol=0.1, random_state=0).fit(X)
    model.set_params(method="online").partial_fit(X[:3])
    assert model.result_.value["count"] > 1000  # and not the three, and a 513th of what was before


def test_positive_atoms_are_refused_where_a_constraint_makes_them_negative():
    class NearMinusOne:
        def value(self, d):
            return 0.5 * float(np.sum((d + 1) ** 2))

        def prox(self, v, step):
            return (v - step) / (1 + step)

    X = np.abs(np.random.default_rng(0).normal(size=(200, 6)))
    with pytest.raises(ValueError, match="positive_dict"):
        DictionaryLearning(3, constraint=NearMinusOne(), positive_dict=True, alpha=0.1, random_state=0).fit(X)


@pytest.mark.parametrize("exponent", [-400, -300, 300, 400])
def test_a_fit_does_not_depend_on_units(exponent):
    X = np.random.default_rng(0).normal(size=(200, 20))
    model, other = (
        DictionaryLearning(5, alpha=float(np.ldexp(0.1, e)), random_state=0).fit(np.ldexp(X, e)) for e in (0, exponent)
    )
    np.testing.assert_allclose(other.components_, model.components_, atol=1e-8)
    assert other.certificate_.residual == pytest.approx(model.certificate_.residual, rel=1e-4)


def rows(n=200, p=8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.4)


def test_partial_fit_refuses_another_number_of_atoms():
    model = DictionaryLearning(5, alpha=0.1, random_state=0).partial_fit(rows())
    with pytest.raises(ValueError, match="The model has 5 atoms, but n_components=6"):
        model.set_params(n_components=6).partial_fit(rows(seed=1))
    assert model.n_samples_ == 200


def test_partial_fit_ends_when_its_time_is_over():
    model = DictionaryLearning(5, alpha=0.1, max_seconds=0.0, batch_size=1, random_state=0).partial_fit(rows())
    assert "max_seconds=0" in model.result_.status.sentence
    assert model.result_.value["step"] == 16, "at the first state that is looked at"


def test_nothing_can_be_learnt_from_cells_that_are_all_missing():
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match="nothing to learn from"):
            getattr(DictionaryLearning(2), method)(np.full((5, 3), np.nan))


def test_atoms_of_length_1_do_not_begin_with_one_of_zeros():
    D = np.eye(8)[:3]
    D[1] = 0
    for how in ({"constraint": "sphere"}, {"method": "ksvd", "nonzeros": 1}):
        with pytest.raises(ValueError, match="an atom of zeros, row 1"):
            DictionaryLearning(dict_init=D, replace=False, **how).fit(rows())
    assert np.isfinite(DictionaryLearning(dict_init=D, alpha=0.1, random_state=0).fit(rows()).components_).all()


def test_a_penalty_of_transform_by_name_keeps_l2():
    X = rows()
    model = DictionaryLearning(5, alpha=0.1, l2=0.7, transform_penalty="l1", random_state=0).fit(X)
    expected = sparse_encode(X, model.components_, alpha=0.1, l2=0.7).toarray()
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-8)
    model.set_params(transform_penalty="l0")
    expected = sparse_encode(X, model.components_, penalty="l0", alpha=0.1).toarray()
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-8)


def test_the_width_that_a_fit_found_is_there_to_code_with():
    X = 1e-3 * rows()
    model = DictionaryLearning(5, alpha=2e-5, loss="huber", random_state=0).fit(X)
    assert isinstance(model.loss_, Huber)
    assert 1e-4 < model.loss_.delta < 1e-2, "in the units of X"
    codes = sparse_encode(X, model.components_, alpha=2e-5, loss=model.loss_)
    np.testing.assert_allclose(model.transform(X), codes.toarray(), atol=1e-9)


@pytest.mark.parametrize("loss", ["huber", "l1"])
def test_codes_with_a_loss_by_name_do_not_depend_on_units(loss):
    rng = np.random.default_rng(0)
    X, D = rows() + 0.05 * rng.normal(size=(200, 8)), np.eye(8)[:6] + 0.1
    X[rng.random(X.shape) < 0.05] += 20
    # Squares, and Huber's loss, are in units of X^2, absolute errors in units of X; alpha |a| is in units of X.
    codes = [
        sparse_encode(X * unit, D, alpha=0.05 * (unit if loss == "huber" else 1), loss=loss).toarray() / unit
        for unit in (1.0, 1e-3)
    ]
    np.testing.assert_allclose(codes[1], codes[0], atol=1e-5)
    assert np.count_nonzero(codes[0])
