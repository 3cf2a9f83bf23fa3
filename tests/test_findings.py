"""Mistakes made once, so that they are not made again: small inputs that gave a wrong answer or a crash."""

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import data_with_spectrum
from princomp import PCA
from princomp.certificates import principal_components
from princomp.data import as_rows
from princomp.penalties import L1


def spiked(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)) * np.r_[np.linspace(30, 10, 10), np.ones(p - 10)]


@pytest.mark.parametrize("tol", [1e-3, 2e-5, 1e-5, 6e-6, 1e-6])
def test_krylov_has_components_wherever_it_stops(tol):
    pca = PCA(5, solver="krylov", tol=tol, random_state=0).fit(spiked(1200, 1100))
    assert pca.components_.shape == (5, 1100)
    assert pca.certificate_.residual <= tol


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("last", range(1, 8))
def test_krylov_has_components_after_any_number_of_iterations(last):
    X = spiked(1200, 1100)
    pca = PCA(5, solver="krylov", max_iter=last, random_state=0).fit(X)
    assert pca.components_.shape == (5, 1100)
    again = principal_components(X, pca.components_, pca.explained_variance_)
    assert pca.certificate_.dominant == again.dominant or not pca.certificate_.dominant


@pytest.mark.parametrize(("copies", "k"), [(10, 10), (30, 18)])
def test_krylov_finds_more_equal_eigenvalues_than_a_block_holds(copies, k):
    values = np.r_[np.full(copies, 10.0), np.sqrt(10), 3, np.linspace(0.3, 0.1, 288 - copies)]
    X = data_with_spectrum(400, 300, values)
    pca = PCA(k, solver="krylov", random_state=0).fit(X)
    np.testing.assert_allclose(pca.explained_variance_, PCA(k, solver="svd").fit(X).explained_variance_, rtol=1e-6)
    assert pca.certificate_.dominant


@pytest.mark.parametrize("solver", ["eigh", "svd", "krylov"])
@pytest.mark.parametrize("scale", [False, True])
def test_sparse_data_with_a_constant_column(solver, scale):
    D = sp.random_array((777, 6), density=0.3, rng=0).toarray()
    D[:, 0] = 0.1
    pca = PCA(2, solver=solver, scale=scale, random_state=0).fit(sp.csr_array(D))
    expected = PCA(2, solver="svd", scale=scale).fit(D)
    np.testing.assert_allclose(pca.explained_variance_, expected.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(pca.transform(sp.csr_array(D)), expected.transform(D), atol=1e-6)


def test_a_penalised_fit_of_tall_data_needs_no_square_of_the_rows():
    X = np.random.default_rng(0).normal(size=(200_000, 5)) * [3, 2, 1, 1, 1]
    pca = PCA(1, solver="optimize", penalty=L1(0.1)).fit(X)
    assert abs(pca.components_[0, 0]) > 0.99


def test_penalised_components_have_no_gaussian_model():
    X = np.random.default_rng(0).normal(size=(50, 5)) @ np.random.default_rng(1).normal(size=(5, 5))
    pca = PCA(3, solver="optimize", penalty=L1(60.0), random_state=0).fit(X)
    for ask in (lambda: pca.score(X), lambda: pca.score_samples(X), pca.get_covariance, pca.get_precision):
        with pytest.raises(ValueError, match="not orthogonal"):
            ask()


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("scale", [False, True])
def test_precision_is_the_inverse_of_the_covariance(k, scale):
    X = np.random.default_rng(0).normal(size=(50, 5)) * [5, 4, 3, 2, 1]
    pca = PCA(k, scale=scale).fit(X)
    np.testing.assert_allclose(pca.get_precision() @ pca.get_covariance(), np.eye(5), atol=1e-10)


def test_wide_sparse_data_stay_sparse():
    import tracemalloc

    X = sp.random_array((520, 40_000), density=0.002, format="csr", rng=0)
    tracemalloc.start()
    pca = PCA(3).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.3 * 520 * 40_000 * 8
    expected = PCA(3).fit(X.toarray())
    np.testing.assert_allclose(pca.explained_variance_, expected.explained_variance_, rtol=1e-10)


def test_sparse_rows_share_memory():
    X = sp.random_array((50, 20), density=0.2, format="csr", rng=0)
    assert np.shares_memory(as_rows(X).block(0).data, X.data)


def test_frames_with_numbers_for_names_and_mixed_types():
    import pandas as pd

    frame = pd.DataFrame({0: [1.0, 2, 3], 1: [1, 2, 4], 2: [True, False, True]})
    np.testing.assert_allclose(PCA(1).fit(frame).components_, PCA(1).fit(frame.to_numpy(float)).components_)


@pytest.mark.needs("dask")
def test_dask_frames_keep_their_names_and_filters_leave_empty_chunks(dask_client):
    import dask.array as da
    import pandas as pd

    X = np.random.default_rng(0).normal(size=(60, 3)) * [3, 2, 1]
    lazy = da.from_array(X, chunks=(20, 3))
    kept = lazy[da.from_array(np.repeat([True, False, True], 20), chunks=20)]
    np.testing.assert_allclose(
        PCA(2).fit(kept).explained_variance_, PCA(2).fit(np.delete(X, slice(20, 40), 0)).explained_variance_
    )
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=2)
    pca = PCA(2).fit(frame)
    assert list(pca.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="column 0 is 'c', but was 'a'"):
        pca.transform(frame[list("cba")])


def test_uncentred_data_may_be_large():
    pca = PCA(1, center=False).fit(np.full((5, 3), 1e100))
    np.testing.assert_allclose(pca.explained_variance_ratio_, [1.0])


def test_whitening_of_tiny_data():
    X = np.random.default_rng(0).normal(size=(50, 3)) * 1e-200
    np.testing.assert_allclose(PCA(2, whiten=True).fit_transform(X).std(axis=0, ddof=1), 1.0)


@pytest.mark.parametrize("S", [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
def test_an_indefinite_matrix_is_no_covariance(S):
    with pytest.raises(ValueError, match="negative eigenvalue"):
        PCA().fit_covariance(S)


def test_score_names_the_column_of_a_nan():
    X = np.random.default_rng(0).normal(size=(20, 3))
    pca = PCA(2).fit(X)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN in column 1"):
        pca.score(X)


def test_a_numpy_true_stops_too():
    seen = []

    def stop(state):
        seen.append(state.iteration)
        return np.bool_(True)

    with pytest.warns(UserWarning, match="Stopped by the callback"):
        PCA(3, solver="krylov", callback=stop, random_state=0).fit(np.random.default_rng(0).normal(size=(300, 200)))
    assert len(seen) == 1


def test_an_unfinished_descent_can_be_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr("princomp.solvers.optimize.MAX_STEPS", 5)
    X = np.random.default_rng(0).normal(size=(30, 4))
    for _ in range(2):
        with pytest.warns(UserWarning, match="No step leads further after 5 iterations"):
            PCA(1, solver="optimize", checkpoint=tmp_path / "c.npz", random_state=0).fit(X)


def test_scikit_learn_callbacks_are_torn_down_after_an_error():
    callback = pytest.importorskip("sklearn.callback")
    events = []

    class Recorder:
        def setup(self, estimator, context):
            events.append("setup")

        def on_fit_task_begin(self, estimator, context):
            events.append("begin")

        def on_fit_task_end(self, estimator, context):
            events.append("end")

        def teardown(self, estimator, context):
            events.append("teardown")

    assert callback
    pca = PCA(1)
    pca.set_callbacks(Recorder())
    with pytest.raises(ValueError, match="NaN"):
        pca.fit(np.full((5, 2), np.nan))
    assert events[0] == "setup"
    assert events[-1] == "teardown"
    pca.fit(np.random.default_rng(0).normal(size=(5, 2)))


@pytest.mark.parametrize("wrong", [{"loss": "huber"}, {"penalty": "l1"}])
def test_a_loss_or_penalty_is_an_object(wrong):
    with pytest.raises(TypeError, match="must be an object"):
        PCA(1, solver="optimize", **wrong).fit(np.eye(3))


def test_minka_with_ties():
    X = np.random.default_rng(0).permutation(np.repeat(np.vstack([np.eye(5), -np.eye(5)]), 10, axis=0))
    assert 1 <= PCA("mle").fit(X).n_components_ <= 4


def test_a_scatter_matrix_that_does_not_fit_is_refused_before_it_is_made():
    X = np.broadcast_to(np.float32(0), (600_000, 600_000))
    with pytest.raises(MemoryError, match=r"600000 x 600000 matrix X'X needs .*krylov"):
        PCA(2, solver="eigh").fit(X)
