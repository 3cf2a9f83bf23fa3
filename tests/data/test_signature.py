"""Weighted sums over rows: the same for the same data however they are read, others for other data."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from helpers import shards
from princomp import PCA, KernelPCA, ProbabilisticPCA, ProbabilisticPCAMixture, SparseCCA, SparsePCA
from princomp.data import Centered, as_rows, statistics
from princomp.data.signature import PERIOD, Signature, require_unchanged, row_weights, total_weight
from princomp.estimators.standardise import standardise

N = 2 * PERIOD + 500  # rows: the table of weights begins three times


@pytest.fixture(scope="module")
def X():
    """Columns of sizes from 1e-8 to 1e8, with offsets, in the order of the first: moments are taken far from it."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((N, 9)) + rng.uniform(-10, 10, 9)) * np.logspace(-8, 8, 9)
    return X[np.argsort(X[:, 0])]


def signature(X, **how):
    return statistics.moments(as_rows(X), by_column=True, **how).signature


def changed(X, *cells):
    X = X.copy()
    for row, column, by in cells:
        X[row, column] += by
    return X


# --- weights --------------------------------------------------------------------------------------


def test_a_weight_belongs_to_the_number_of_the_row():
    whole = row_weights(slice(0, N))
    for start, stop in [(0, 1), (5, 5), (PERIOD - 1, PERIOD + 1), (PERIOD, N), (100, 2 * PERIOD + 1)]:
        assert np.array_equal(row_weights(slice(start, stop)), whole[start:stop])


def test_weights_are_distinct_and_of_unit_size():
    weights = row_weights(slice(0, N))
    assert len(np.unique(weights)) == N
    assert np.abs(weights).min() > 0.3
    assert np.abs(weights).max() < 2
    assert abs(weights.mean()) < 3 / np.sqrt(N)


@pytest.mark.parametrize("n", [0, 1, PERIOD - 1, PERIOD, PERIOD + 1, N])
def test_the_sum_of_weights(n):
    assert np.isclose(total_weight(n), row_weights(slice(0, n)).sum(), rtol=1e-12, atol=1e-10)


# --- the same data --------------------------------------------------------------------------------


def test_it_is_the_weighted_sum_of_deviations_from_the_mean(X):
    found = statistics.moments(as_rows(X), by_column=True)
    weights = row_weights(slice(0, N)).astype(np.longdouble)
    exact = weights @ (X.astype(np.longdouble) - found.mean.astype(np.longdouble))
    assert (np.abs(exact - found.signature.sums) < 1e-3 * found.signature.slack).all()


READINGS = {
    "short blocks": lambda X: as_rows(X, block_rows=7),
    "one block": lambda X: as_rows(X, block_rows=N),
    "shards": shards,
    "columns first": np.asfortranarray,
    "CSR": scipy.sparse.csr_array,
}


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("form", ["by_column", "scatter"])
def test_the_same_data_read_in_another_way_agree(X, reading, form):
    found = statistics.moments(as_rows(READINGS[reading](X)), **{form: True})
    assert signature(X).agrees(found.signature.sums)


def test_chunks_of_dask_agree(X, dask_client):
    array = pytest.importorskip("dask.array")
    assert signature(X).agrees(signature(array.from_array(X, chunks=(3000, 9))).sums)


@pytest.mark.parametrize("offset", [1e4, 1e8, 1e12])
def test_a_mean_that_differs_in_its_last_digit_is_that_of_the_same_data(offset):
    """It is taken off each row, and so comes in as often as there is weight: a hundred times for so many rows."""
    X = np.random.default_rng(0).standard_normal((1349, 1)) + offset
    found, weights = statistics.moments(as_rows(X), by_column=True), row_weights(slice(0, 1349))
    for towards in (-np.inf, np.inf):
        assert found.signature.agrees(weights @ (X - np.nextafter(found.mean, towards)))


def test_without_centring_it_is_about_zero(X):
    found = signature(X, center=False)
    assert found.agrees(row_weights(slice(0, N)) @ X)
    assert not found.agrees(signature(X).sums)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("exponent", [0, -200, 200])
def test_standardised_data_read_again_agree(X, center, scale, exponent):
    found = standardise(as_rows(X * 10.0**exponent), center=center, scale=scale)
    again = found.X.reduce(weighted)
    require_unchanged(found.signature, again)
    again[3] += 1.01 * found.signature.slack[3] if scale else 1.01 * found.signature.slack.max()
    with pytest.raises(ValueError, match="changed between two readings, in column 3"):
        require_unchanged(found.signature, again)


def weighted(block, rows):
    return row_weights(rows) @ block


# --- other data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("column", range(9))
def test_one_cell_that_changes_is_seen_in_any_column(X, column):
    by = 1e-6 * X[:, column].std()
    assert not signature(X).agrees(signature(changed(X, (N // 2, column, by))).sums)


@pytest.mark.parametrize("other", [1, PERIOD, 2 * PERIOD, 400])
def test_two_changes_of_a_column_do_not_cancel(X, other):
    """As they would in half of the cases if weights were signs."""
    by = X[:, 2].std()
    there = signature(X)
    for i in range(50):
        assert not there.agrees(signature(changed(X, (i, 2, by), (i + other, 2, -by))).sums)
        assert not there.agrees(signature(changed(X, (i, 2, by), (i + other, 2, by))).sums)


def test_rows_in_another_order_are_other_data(X):
    order = np.arange(N)
    order[[10, 20]] = 20, 10
    assert not signature(X).agrees(signature(X[order]).sums)


def test_a_column_moved_between_two_readings_is_seen(X):
    found = statistics.moments(as_rows(X), by_column=True)
    moved = X.copy()
    moved[:, 4] += 1e-3
    again = found.centered(as_rows(moved)).reduce(weighted)
    with pytest.raises(ValueError, match="in column 'e'"):
        require_unchanged(found.signature, again, list("abcdefghi"))


def test_numbers_that_are_none_agree_with_nothing():
    assert not Signature(np.array([np.nan]), np.array([1.0])).agrees(np.array([np.nan]))
    assert not Signature(np.zeros(2), np.ones(2)).agrees(np.zeros(3))


# --- data that change while they are read ---------------------------------------------------------

REREADERS = {
    "svd": PCA(2, solver="svd"),
    "krylov": PCA(2, solver="krylov"),
    "krylov, scaled": PCA(2, solver="krylov", scale=True),
    "krylov, not centred": PCA(2, solver="krylov", center=False),
    "optimize": PCA(2, solver="optimize"),
    "sparse, by number": SparsePCA(2, nonzeros=3),
    "sparse, dictionary": SparsePCA(2, formulation="dictionary", alpha=0.1),
    "sparse, regression": SparsePCA(2, formulation="regression", alpha=0.1, scale=True),
    "sparse, constrained": SparsePCA(2, formulation="constrained"),
    "probabilistic, EM": ProbabilisticPCA(2, method="em"),
    "probabilistic, EM, scaled": ProbabilisticPCA(2, method="em", scale=True),
    "mixture": ProbabilisticPCAMixture(2, n_clusters=2),
    "canonical": SparseCCA(2),
    "kernel, exact": KernelPCA(2, approximation=None),
    "kernel, nystroem": KernelPCA(2, approximation="nystroem", rank=20),
    "kernel, rpcholesky": KernelPCA(2, approximation="rpcholesky", rank=20),
    "kernel, fourier": KernelPCA(2, approximation="fourier", rank=20),
    "kernel, ridge": KernelPCA(2, approximation="fourier", rank=20, preimage="ridge"),
}
ROWS = np.random.default_rng(0).standard_normal((80, 6)) @ np.random.default_rng(1).standard_normal((6, 6))


@pytest.fixture(params=REREADERS)
def fit(request):
    model = clone(REREADERS[request.param]).set_params(random_state=0)
    return lambda X: model.fit(X, ROWS[:, :3] + 0.1) if isinstance(model, SparseCCA) else model.fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_other_data_at_each_call_are_an_error(fit):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"The data changed between two readings, in column .*load the data into"):
        fit([lambda: rng.standard_normal((80, 6))])


class Readings:
    """A shard that counts how often it is read, and from some reading on is another one."""

    def __init__(self, at=np.inf):
        self.count, self.at = 0, at

    def __call__(self):
        self.count += 1
        return ROWS if self.count < self.at else changed(ROWS, (33, 4, 1e-4))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("share", [0.75, 1.0])
def test_one_cell_that_changes_after_a_while_is_an_error(fit, share):
    whole = Readings()
    fit([whole])
    with pytest.raises(ValueError, match="The data changed between two readings, in column 4"):
        fit([Readings(max(share * whole.count, 4))])  # shape, first rows and moments are of the data as they were


def test_a_batch_that_changes_while_it_is_read_is_an_error():
    whole, model = Readings(), KernelPCA(2, approximation="fourier", rank=20, random_state=0)
    clone(model).partial_fit([whole])
    with pytest.raises(ValueError, match="The data changed between two readings, in column 4"):
        model.partial_fit([Readings(whole.count)])


@pytest.mark.parametrize("fit", ["probabilistic, EM", "mixture"], indirect=True)
def test_a_cell_that_goes_missing_is_an_error(fit):
    calls = []

    def shard():
        calls.append(True)
        return changed(ROWS, (7, 1, np.nan), (33, 4, np.nan if len(calls) > 6 else 0.0))

    with pytest.raises(ValueError, match="The data changed between two readings, in column 4"):
        fit([shard])


def answer(model):
    return model.transform(ROWS) if isinstance(model, KernelPCA) else model.components_


def test_data_that_stay_the_same_are_fitted_from_wherever_they_come(fit, tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    expected = np.abs(answer(fit(ROWS)))  # two entries may tie for the largest, which decides the sign
    for data in (
        [lambda: ROWS[:30], lambda: ROWS[30:]],
        [tmp_path / "rows.npy"],
        np.load(tmp_path / "rows.npy", mmap_mode="r"),
    ):
        np.testing.assert_allclose(np.abs(answer(fit(data))), expected, atol=1e-6)


@pytest.mark.parametrize("weights", [None, np.linspace(1e-3, 1e3, 80), np.full(80, 1e-30)])
def test_weights_of_rows_have_no_part_in_it(weights):
    with_holes = np.where(np.random.default_rng(2).random(ROWS.shape) < 0.3, np.nan, ROWS)
    ProbabilisticPCA(2, random_state=0).fit([lambda: with_holes], sample_weight=weights)
    ProbabilisticPCA(2, random_state=0).fit([lambda: ROWS], sample_weight=weights)
    found, plain = (statistics.observed_moments(as_rows(with_holes), w) for w in (weights, None))
    if weights is None:
        assert np.array_equal(found.signature.sums, plain.signature.sums)
    assert np.array_equal(found.signature.sums[1], plain.signature.sums[1])
    assert (found.signature.slack >= 0.99 * plain.signature.slack).all()  # of deviations that none are smaller than
    X = Centered(as_rows(with_holes, block_rows=7), found.mean)
    assert found.signature.agrees(statistics.observed_sums(X))
