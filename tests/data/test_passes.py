"""How often a fit goes through data that live on workers: a pass costs 50 ms on Dask and half a second on Spark."""

import numpy as np
import pytest

from princomp import PCA, ProbabilisticPCA, SparsePCA
from princomp.data import Centered, as_rows, statistics

P = 30
N = 4800  # in chunks of 1200: the first rows, which are asked for alone, lie in the first of them
FIRST = 10  # rows whose mean is taken for that of all, in these tests
FORMS = {
    "tall": lambda X: X,
    "few rows": lambda X: X[:400],
    "far from zero": lambda X: X + 1e8,
    "a constant column": lambda X: np.where(np.arange(P) == 3, 7.0, X),
    # Their mean is of no use for the others: sums are taken again, about a better point.
    "the first rows far from the others": lambda X: X + 1e4 * (np.arange(N) < FIRST)[:, None],
    "wide": lambda X: X[:200].reshape(20, -1),
}
# The largest number of passes, row after row of the table. Jobs that ask a few chunks for a few rows count too.
LIMITS = {
    "PCA, eigh": (lambda: PCA(3, solver="eigh"), 3),
    "PCA, eigh, scaled": (lambda: PCA(3, solver="eigh", scale=True), 3),
    "PCA, eigh, not centred": (lambda: PCA(3, solver="eigh", center=False), 3),
    "PCA, auto": (lambda: PCA(3), 3),
    "PCA, svd": (lambda: PCA(3, solver="svd"), 5),
    "probabilistic PCA, closed form": (lambda: ProbabilisticPCA(3, method="closed-form"), 3),
    "probabilistic PCA, auto": (lambda: ProbabilisticPCA(3), 3),
    "sparse PCA by cardinality": (lambda: SparsePCA(3, nonzeros=5), 3),
    "sparse PCA by cardinality, scaled": (lambda: SparsePCA(2, nonzeros=5, scale=True), 3),
    "sparse PCA by cardinality, proved": (lambda: SparsePCA(1, nonzeros=3, certify=True), 3),
}


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, P)) @ (rng.normal(size=(P, P)) * np.linspace(3, 0.3, P)[:, None])


@pytest.mark.parametrize("first", [3.0, 3e7])
def test_one_column_whose_first_row_is_far_from_the_others_keeps_its_digits(first, monkeypatch):
    """About a row that is no farther than most one pass does; about the other one squares would lose six digits."""
    monkeypatch.setattr(statistics, "SHIFT_ROWS", 1)
    passes, reduce = [], Centered.reduce
    monkeypatch.setattr(Centered, "reduce", lambda *args, **how: passes.append(1) or reduce(*args, **how))
    X = np.random.default_rng(0).normal(np.arange(3), size=(300_000, 3))
    X[0, 1] = first
    exact = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    squares = (exact**2).sum(axis=0).astype(float)
    for form in ("by_column", "scatter"):
        found = statistics.moments(as_rows(X), **{form: True})
        np.testing.assert_allclose(found.squares, squares, rtol=3e-14)
        assert found.total == pytest.approx(squares.sum(), rel=3e-14)
    assert statistics.moments(as_rows(X)).total == pytest.approx(squares.sum(), rel=3e-14)
    assert len(passes) == 3 * (1 if first == 3.0 else 2)


@pytest.fixture
def counted(dask_client):
    """counted(X): rows on the cluster, whose ``passes`` are counted."""
    from princomp.data.dask import DaskRows

    class Counted(DaskRows):
        passes = 0

        def reduce(self, *args, **kwargs):
            self.passes += 1
            return super().reduce(*args, **kwargs)

        def map(self, *args, **kwargs):
            self.passes += 1
            return super().map(*args, **kwargs)

        def block(self, i):
            raise AssertionError("A block came to the driver.")

    array = pytest.importorskip("dask.array")
    return lambda X: Counted(array.from_array(X, chunks=(-(-len(X) // 4), X.shape[1])))


def test_wide_data_too_large_to_be_fetched_are_multiplied_by_pairs_of_blocks(dask_client, monkeypatch):
    array = pytest.importorskip("dask.array")
    X = np.random.default_rng(0).normal(size=(40, 8000)) * np.linspace(1, 3, 40)[:, None] + 5.0
    rows = as_rows(array.from_array(X, chunks=(10, 8000)))
    monkeypatch.setattr("princomp.data.budget._system_bytes", lambda: 30 * 2**20)
    assert statistics.here(rows) is rows  # 2.4 MiB of data, of which 2 may be fetched
    there, here = PCA(3, solver="eigh").fit(rows), PCA(3, solver="eigh").fit(X)
    assert there.certificate_.holds
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-10)
    np.testing.assert_allclose(there.explained_variance_, here.explained_variance_, rtol=1e-12)


def test_one_sum_comes_back_however_many_chunks_there_are(dask_client, monkeypatch):
    """Of 100 chunks: X'X is added up by the workers, and the same twice; the driver never holds two of them."""
    array = pytest.importorskip("dask.array")
    from princomp.data import dask as storage

    came = []
    monkeypatch.setattr(storage, "_writable", lambda part: came.append(part) or part)
    X = np.random.default_rng(0).normal(size=(1000, 7))
    rows = as_rows(array.from_array(X, chunks=(10, 7)))
    sums = [statistics.scatter(Centered(rows)) for _ in range(2)]
    assert [part.shape for part in came] == [(7, 7)] * 2
    assert (sums[0] == sums[1]).all()
    np.testing.assert_allclose(sums[0], X.T @ X, rtol=1e-13, atol=1e-12)


@pytest.mark.filterwarnings("ignore:X has numerical rank")
@pytest.mark.parametrize("method", LIMITS)
def test_passes_over_data_on_workers(method, data, counted, observe, monkeypatch):
    monkeypatch.setattr(statistics, "SHIFT_ROWS", FIRST)
    make, limit = LIMITS[method]
    for form, change in FORMS.items():
        X = change(data)
        rows = counted(X)
        fitted = make().fit(rows)
        observe("passes", f"{method}, {form}", rows.passes)
        assert rows.passes <= limit, f"{form}: {rows.passes} passes"
        expected = make().fit(as_rows(X)).explained_variance_
        np.testing.assert_allclose(fitted.explained_variance_, expected, rtol=1e-7, atol=1e-9 * expected[0])
