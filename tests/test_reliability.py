"""Bad, extreme and odd inputs: each test carries the code of the promise it checks.

The bounds are the promises. Each test notes what it saw; the table is printed when the run ends.
"""

import functools
import math
import re
import subprocess
import sys
import warnings

import hypothesis
import numpy as np
import pytest
import scipy.sparse
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from helpers import (
    Allocated,
    covariance_longdouble,
    data_with_spectrum,
    eigenvalues_longdouble,
    eigenvectors_reference,
    error_of_largest,
    only_user_warnings,
    orthonormality_error,
    relative_error,
    shards,
    signs_follow_the_rule,
    subspace_sine,
    value_or_error,
)
from princomp import PCA
from princomp.data import as_rows

EPS = np.finfo(float).eps
EXACT = ("eigh", "svd")
SOLVERS = ("eigh", "svd", "krylov", "optimize")
STORAGES = ("dense", "shards", "memmap", "frame", "csr", "dask")


@pytest.fixture
def stored(request, tmp_path):
    """stored(X, kind): the same rows in another kind of storage."""

    def store(X, kind):
        if kind == "dense":
            return X
        if kind == "shards":
            return shards(X)
        if kind == "memmap":
            np.save(tmp_path / "X.npy", X)
            return np.load(tmp_path / "X.npy", mmap_mode="r")
        if kind == "files":
            for i, piece in enumerate(np.array_split(X, 3)):
                np.save(tmp_path / f"part{i}.npy", piece)
            return [tmp_path / f"part{i}.npy" for i in range(3)]
        if kind == "frame":
            pandas = pytest.importorskip("pandas")
            return pandas.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
        if kind == "csr":
            return scipy.sparse.csr_array(X)
        request.getfixturevalue("dask_client")
        array = pytest.importorskip("dask.array")
        return array.from_array(X, chunks=(max(1, math.ceil(len(X) / 4)), X.shape[1]))

    return store


def small(n=40, p=6, seed=0):
    """Well-conditioned data with clear gaps: standard deviations p, p - 1, ..., 1."""
    return data_with_spectrum(n, p, np.arange(min(n - 1, p), 0, -1), seed=seed, offset=3.0)


def names(column, error):
    """The message names this column: in quotes, or as an item of scikit-learn's list."""
    message = str(error.value)
    return any(f"{mark}{column}{mark}" in message for mark in "'\"`") or f"- {column}\n" in message + "\n"


def sci(value):
    return f"{value:.1e}"


# --- F1, F2: missing and infinite cells -----------------------------------------------------------


@pytest.mark.parametrize("storage", STORAGES)
def test_F1_nan_cell_names_the_column(storage, stored, observe):
    X = small()
    X[17, 3] = np.nan
    with pytest.raises(ValueError, match="NaN") as error:
        PCA(2).fit(stored(X, storage))
    assert "column 3" in str(error.value)
    observe("F1", f"NaN in one cell, {storage}", f"ValueError: {str(error.value).splitlines()[0][:90]}")


@pytest.mark.parametrize("solver", SOLVERS)
def test_F1_nan_column_and_nan_in_every_solver(solver, observe):
    X = small()
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match="NaN") as error:
        PCA(2, solver=solver).fit(X)
    assert "column 3" in str(error.value)
    observe("F1", f"a whole NaN column, {solver}", "ValueError naming the column")


def test_F1_nan_names_the_feature_of_a_frame(observe):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(small(), columns=list("abcdef"))
    frame.loc[5, "d"] = np.nan
    with pytest.raises(ValueError, match="NaN") as error:
        PCA(2).fit(frame)
    assert names("d", error)
    observe("F1", "NaN in a named column", f"ValueError: {str(error.value).splitlines()[0][:90]}")


MORE = {(3,): "", (3, 5): " (and 1 more column)", (3, 4, 5): " (and 2 more columns)"}


@pytest.mark.parametrize("columns", MORE, ids=str)
def test_F1_nan_in_several_columns_counts_the_others(columns):
    X = small()
    X[17, columns] = np.nan
    with pytest.raises(ValueError, match=re.escape(f"NaN in column 3{MORE[columns]}, in 1 row(s) of it.")):
        PCA(2).fit(X)


def test_F1_nan_at_transform_names_the_column():
    X = small()
    pca = PCA(2).fit(X)
    X[0, 3] = np.nan
    with pytest.raises(ValueError, match="NaN") as error:
        pca.transform(X)
    assert "column 3" in str(error.value)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_F2_infinite_cell_names_the_column(storage, value, stored, observe):
    X = small()
    X[17, 3] = value
    with pytest.raises(ValueError, match="inf") as error:
        PCA(2).fit(stored(X, storage))
    assert "column 3" in str(error.value)
    observe("F2", f"{value} in one cell, {storage}", "ValueError naming the column, saying inf")


def test_F2_opposite_infinities_and_float32_do_not_cancel():
    # inf - inf is NaN: block sums alone would call this a NaN, or miss it in a product with zero
    X = small().astype(np.float32)
    X[3, 3], X[4, 3] = np.inf, -np.inf
    with pytest.raises(ValueError, match="inf") as error:
        PCA(2).fit(X)
    assert "column 3" in str(error.value)


def test_F2_large_finite_numbers_are_not_called_infinite():
    # a sum of finite numbers overflows: a finiteness check by sums must look again
    X = small() * 1e300
    X[:, 0] += 1.5e308
    with only_user_warnings():
        pca = PCA(2).fit(X)
    assert np.isfinite(pca.explained_variance_ratio_).all()


# --- F3 to F5: constant columns -------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("constant", [0.0, 7.3, 1e8 / 3])
def test_F3_constant_column_gets_no_loading(solver, constant, observe):
    X = small(60, 5)
    with_column = np.insert(X, 2, constant, axis=1)
    without = PCA(3, solver=solver, random_state=0).fit(X)
    found = PCA(3, solver=solver, random_state=0).fit(with_column)
    loading = np.abs(found.components_[:, 2]).max()
    observe("F3", f"constant column {constant:.3g}, {solver}", f"loading {sci(loading)}")
    assert loading <= 10 * EPS
    # the iterative solvers start elsewhere in a wider space and stop at tol
    bound = 1e-12 if solver in EXACT else 1e-6
    assert relative_error(found.explained_variance_, without.explained_variance_) <= bound
    assert subspace_sine(np.delete(found.components_, 2, axis=1), without.components_) <= 10 * bound


def assert_handled_as_zero_variance(pca, caught, X, k):
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert issubclass(caught[0].category, UserWarning)
    assert np.array_equal(pca.explained_variance_ratio_, np.zeros(k))
    assert pca.components_.shape == (k, X.shape[1])
    assert orthonormality_error(pca.components_) <= (1e-6 if X.dtype == np.float32 else 1e-14)
    assert np.isfinite(pca.transform(X)).all()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("constant", [7.3, 1e8 / 3, -2.5e-5])
def test_F4_all_columns_constant(solver, dtype, constant, observe):
    X = np.full((50, 4), constant, dtype=dtype) * np.array([1, 2, 3, 0.7], dtype=dtype)
    with only_user_warnings() as caught:
        pca = PCA(3, solver=solver).fit(X)
    observe(
        "F4",
        f"constant columns of about {constant:.1g}, {np.dtype(dtype)}, {solver}",
        f"ratio {pca.explained_variance_ratio_.max():.1g}, {len(caught)} warning(s)",
    )
    assert_handled_as_zero_variance(pca, caught, X, 3)
    assert np.allclose(pca.mean_, X[0], rtol=4 * np.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_F5_all_zeros(solver, dtype, observe):
    X = np.zeros((30, 4), dtype=dtype)
    with only_user_warnings() as caught:
        pca = PCA(3, solver=solver).fit(X)
    observe("F5", f"all zeros, {np.dtype(dtype)}, {solver}", f"ratio 0, {len(caught)} warning(s)")
    assert_handled_as_zero_variance(pca, caught, X, 3)


@pytest.mark.parametrize("storage", ["shards", "memmap", "csr", "dask", "frame"])
def test_F5_all_zeros_in_every_storage(storage, stored):
    with only_user_warnings() as caught:
        pca = PCA(3).fit(stored(np.zeros((30, 4)), storage))
    assert len(caught) == 1
    assert np.array_equal(pca.explained_variance_ratio_, np.zeros(3))


def test_F5_all_zeros_whitened_and_all_components():
    X = np.zeros((30, 4))
    for options in ({"whiten": True}, {"scale": True}, {"n_components": 0.9}, {"center": False}):
        with only_user_warnings() as caught:
            scores = PCA(**options).fit_transform(X)
        assert len(caught) == 1, options
        assert np.isfinite(scores).all(), options


# --- F6, F7: repeated rows and columns ------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
def test_F6_rows_repeated_1000_times(solver, observe):
    X = small(20, 5)
    once = PCA(2, solver=solver, random_state=0).fit(X)
    many = PCA(2, solver=solver, random_state=0).fit(np.repeat(X, 1000, axis=0))
    population = [pca.explained_variance_ * (n - 1) / n for pca, n in ((once, 20), (many, 20000))]
    error, sine = relative_error(*population), subspace_sine(once.components_, many.components_)
    observe("F6", f"rows repeated 1000 times, {solver}", f"variance {sci(error)}, sine {sci(sine)}")
    assert error <= (1e-12 if solver in EXACT else 1e-6)
    assert sine <= (1e-8 if solver in EXACT else 1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_F7_duplicate_columns_share_their_loading(solver, observe):
    X = small(60, 5)
    X = np.hstack([X, X[:, [1]]])
    pca = PCA(3, solver=solver, random_state=0).fit(X)
    difference = np.abs(np.abs(pca.components_[:, 1]) - np.abs(pca.components_[:, 5])).max()
    observe("F7", f"a column twice, {solver}", f"difference of loadings {sci(difference)}")
    assert difference <= (1e-12 if solver in EXACT else 1e-6)


# --- F8: rank -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(100, 10), (10, 100)])
def test_F8_rank_below_k_is_flagged(solver, shape, observe):
    X = data_with_spectrum(*shape, [3.0, 2.0, 1.0], offset=5.0)
    with only_user_warnings() as caught:
        pca = PCA(6, solver=solver, random_state=0).fit(X)
    observe("F8", f"rank 3, k = 6, {shape[0]}x{shape[1]}, {solver}", f"rank_ = {pca.rank_}, {len(caught)} warning(s)")
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert pca.rank_ == 3
    assert pca.components_.shape == (6, shape[1])
    assert orthonormality_error(pca.components_) <= 1e-12
    assert np.all(pca.explained_variance_ >= 0)
    assert pca.explained_variance_[3:].max() <= 1e-12 * pca.explained_variance_[0]
    assert np.isfinite(pca.transform(X)).all()


@pytest.mark.parametrize("solver", EXACT)
def test_F8_a_small_singular_value_still_counts(solver):
    # 1e-6 of the largest: its square, 1e-12, is well above rounding even by the Gram route
    X = data_with_spectrum(200, 10, [1.0, 1e-3, 1e-6])
    assert PCA(3, solver=solver).fit(X).rank_ == 3


def test_F8_whitening_a_rank_deficient_fit_stays_finite():
    X = data_with_spectrum(100, 10, [3.0, 2.0, 1.0])
    with only_user_warnings():
        scores = PCA(6, whiten=True).fit_transform(X)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() < 100  # rounding noise divided by a noise deviation is not a score


def test_F8_no_components_asked_for_means_no_warning():
    # n <= p always has rank n - 1 after centring: warning there would be noise
    with only_user_warnings() as caught:
        PCA().fit(small(6, 10))
    assert not caught


# --- F9, F10: long and wide -----------------------------------------------------------------------


def test_F9_wide_data_need_no_square_matrix(observe):
    X = np.random.default_rng(0).normal(size=(20, 20_000))
    PCA(5).fit(X[:, :50])  # imports and caches are not the fit's memory
    with Allocated() as auto:
        PCA(5).fit(X)
    observe("F9", "20 x 20000, auto", f"peak {1 + auto.peak / X.nbytes:.2f} x input, the input included")
    assert X.nbytes + auto.peak < 3 * X.nbytes
    for solver in SOLVERS:
        with Allocated() as chosen:
            PCA(5, solver=solver, random_state=0, tol=1e-3).fit(X)
        observe("F9", f"20 x 20000, {solver}", f"peak {1 + chosen.peak / X.nbytes:.2f} x input, the input included")
        assert chosen.peak < 10 * X.nbytes, solver  # a p x p matrix would be 1000 x


WIDE = """
import resource
import numpy as np
from princomp import PCA
PCA(5).fit(np.random.default_rng(0).normal(size=(20, 50)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
X = np.random.default_rng(0).normal(size=(20, 1_000_000))
PCA(5).fit(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print((after - before) * 1024 / X.nbytes)
"""


@pytest.mark.soak
def test_F9_a_million_columns(observe):
    answer = subprocess.run([sys.executable, "-c", WIDE], capture_output=True, text=True, check=True)
    observe("F9", "20 x 1e6, auto", f"peak RSS {float(answer.stdout):.2f} x input")
    assert float(answer.stdout) < 3


@pytest.mark.parametrize("solver", EXACT)
def test_F10_tall_data_in_blocks(solver, observe):
    X = data_with_spectrum(100_000, 20, np.linspace(10, 1, 20), offset=100.0)
    expected = np.linalg.eigvalsh(covariance_longdouble(X).astype(float))[::-1]
    error = relative_error(PCA(solver=solver).fit(as_rows(X, block_rows=1000)).explained_variance_, expected)
    observe("F10", f"100000 x 20 in blocks, {solver}", sci(error))
    assert error <= 1e-12


def tall_piece(i, rows=100_000, p=20):
    rng = np.random.default_rng(i)
    return rng.normal(size=(rows, p)) * np.linspace(10, 1, p) + 100.0


@pytest.mark.soak
def test_F10_ten_million_rows(observe):
    pieces = [functools.partial(tall_piece, i) for i in range(100)]
    total, product, n = 0.0, 0.0, 0
    for piece in pieces:  # shifted by the known mean, so that one long-double pass is enough
        block = piece().astype(np.longdouble) - 100
        n, total, product = n + len(block), total + block.sum(axis=0), product + block.T @ block
    expected = np.linalg.eigvalsh(((product - np.outer(total, total) / n) / (n - 1)).astype(float))[::-1]
    error = relative_error(PCA().fit(pieces).explained_variance_, expected)
    observe("F10", "1e7 x 20 from callables", sci(error))
    assert error <= 1e-12


# --- F11: sizes and numbers of components -----------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((0, 5), r"0 sample"),
        ((1, 5), r"1 sample|one sample|n_samples ?= ?1"),
        ((5, 0), r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is required"),
    ],
)
@pytest.mark.parametrize("storage", ["dense", "shards", "csr"])
def test_F11a_too_small(shape, message, storage, stored, observe):
    X = np.ones(shape)
    given = [X] if storage == "shards" else stored(X, storage)
    with pytest.raises(ValueError, match=message) as error:
        PCA().fit(given)
    observe("F11a", f"shape {shape}, {storage}", f"ValueError: {str(error.value).splitlines()[0][:90]}")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(2, 1), (2, 5), (5, 1), (3, 3)])
def test_F11b_smallest_sizes_fit(solver, shape, observe):
    X = np.random.default_rng(1).normal(size=shape)
    pca = PCA(solver=solver, random_state=0).fit(X)
    assert pca.n_components_ == min(shape)
    assert orthonormality_error(pca.components_) <= 1e-12
    assert math.isclose(pca.explained_variance_.sum(), X.var(axis=0, ddof=1).sum(), rel_tol=1e-6)
    observe("F11b", f"{shape[0]}x{shape[1]}, {solver}", "fits")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_F11c_one_and_all_components(solver, shape, observe):
    X = small(*shape)
    for k in (1, min(shape)):
        with only_user_warnings():  # k = n exceeds the rank n - 1 of centred data
            pca = PCA(k, solver=solver, random_state=0).fit(X)
        assert pca.components_.shape == (k, shape[1])
        assert relative_error(pca.explained_variance_[0], eigenvalues_longdouble(X)[0]) <= 1e-6
    observe("F11c", f"k = 1 and min(n, p), {shape[0]}x{shape[1]}, {solver}", "fits")


@pytest.mark.parametrize("k", [0, -1, 7, 10**9, math.nan, 0.0, -0.5, 1.5, math.inf])
def test_F11d_impossible_numbers_of_components(k, observe):
    X = np.broadcast_to(np.arange(6.0), (2_000_000, 6))  # 96 MB that are nowhere
    with Allocated() as used, pytest.raises(ValueError, match="n_components") as error:
        PCA(k).fit(X)
    message = str(error.value)
    observe("F11d", f"n_components={k}", f"ValueError: {message.splitlines()[0][:90]}")
    assert "6" in message if isinstance(k, int) else "1" in message  # 1..min(n, p), or a share in (0, 1]
    assert used.peak < X.nbytes / 4  # refused before anything of the data's size is made


@pytest.mark.parametrize("solver", ["auto", *EXACT])
def test_F11e_share_is_the_smallest_k_that_reaches_it(solver, observe):
    X = small(60, 6)
    shares = np.cumsum(eigenvalues_longdouble(X)) / eigenvalues_longdouble(X).sum()
    for share in (0.1, 0.5, 0.95, 0.999999):
        pca = PCA(share, solver=solver).fit(X)
        assert pca.n_components_ == np.flatnonzero(shares >= share)[0] + 1
        assert len(pca.components_) == pca.n_components_
    observe("F11e", f"share 0.95, {solver}", "smallest k that reaches it")


def test_F11e_share_of_exactly_one_is_everything(observe):
    assert PCA(1.0).fit(small(60, 6)).n_components_ == 6
    assert PCA(1.0).fit(small(6, 20)).n_components_ == 6
    observe("F11e", "share 1.0", "all components")


def test_F11e_mle(observe):
    sklearn_pca = pytest.importorskip("sklearn.decomposition").PCA
    X = np.random.default_rng(0).normal(size=(300, 3)) @ np.random.default_rng(1).normal(size=(3, 10)) * 4
    X += np.random.default_rng(2).normal(size=X.shape)
    k = PCA("mle").fit(X).n_components_
    observe("F11e", '"mle", three factors', f"k = {k}")
    assert k == sklearn_pca("mle", svd_solver="full").fit(X).n_components_ == 3
    with pytest.raises(ValueError, match="mle"):
        PCA("mle").fit(X[:5])


# --- F12: scale -----------------------------------------------------------------------------------


def rescaled(X, exponent):
    """X * 2**exponent, exact as long as the result is representable."""
    return np.ldexp(np.asarray(X, dtype=np.longdouble), exponent)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("scale", "exponent"), [(1e150, -498), (1e-150, 498), (1e300, -996), (1e-310, 1030)])
def test_F12a_global_scale(solver, scale, exponent, observe):
    X = small(60, 6) * scale
    reference = rescaled(X, exponent)  # of the stored values: digits lost in denormals are not our error
    expected = eigenvalues_longdouble(reference) / eigenvalues_longdouble(reference).sum()
    with only_user_warnings() as caught:
        pca = PCA(3, solver=solver, random_state=0).fit(X)
    error = relative_error(pca.explained_variance_ratio_, expected[:3])
    sine = subspace_sine(pca.components_, eigenvectors_reference(reference, 3))
    observe("F12a", f"scale {scale:.0e}, {solver}", f"ratio {sci(error)}, sine {sci(sine)}, {len(caught)} warning(s)")
    assert error <= 1e-10
    assert sine <= (1e-10 if solver in EXACT else 1e-5)
    assert np.isfinite(pca.singular_values_).all()
    assert np.isfinite(pca.transform(X)).all()
    singular = np.sqrt(eigenvalues_longdouble(reference)[:3] * 59).astype(np.longdouble) * np.longdouble(2) ** -exponent
    assert relative_error(pca.singular_values_, singular) <= 1e-9
    if scale == 1e300:
        assert np.isinf(pca.explained_variance_).all()
        assert len(caught) == 1  # overflow of the variance is said, once
    elif scale > 1e-310:
        assert not caught
        assert np.isfinite(pca.explained_variance_).all()


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-42])
def test_F12a_global_scale_float32(solver, scale, observe):
    X = (small(60, 6) * scale).astype(np.float32)
    expected = eigenvalues_longdouble(X.astype(np.longdouble) / np.longdouble(scale))
    with only_user_warnings() as caught:
        pca = PCA(3, solver=solver).fit(X)
    error = relative_error(pca.explained_variance_ratio_, expected[:3] / expected.sum())
    observe("F12a", f"float32, scale {scale:.0e}, {solver}", f"ratio {sci(error)}, {len(caught)} warning(s)")
    assert error <= 1e-5
    assert np.isfinite(pca.singular_values_).all()
    assert len(caught) == 1 if scale == 1e30 else True


@pytest.mark.parametrize("storage", ["shards", "csr", "dask"])
@pytest.mark.parametrize(("scale", "exponent"), [(1e300, -996), (1e-310, 1030)])
def test_F12a_global_scale_in_every_storage(storage, scale, exponent, stored):
    X = small(60, 6) * scale
    expected = eigenvalues_longdouble(rescaled(X, exponent))
    with only_user_warnings():
        pca = PCA(3).fit(stored(X, storage))
    assert relative_error(pca.explained_variance_ratio_, expected[:3] / expected.sum()) <= 1e-10


@pytest.mark.parametrize("solver", EXACT)
def test_F12b_mixed_column_scales(solver, observe):
    exponents = np.linspace(-150, 150, 7)
    plain = np.random.default_rng(0).normal(size=(60, 7))
    X = plain * 10.0**exponents
    with only_user_warnings() as caught:
        pca = PCA(7, solver=solver).fit(X)
    error = abs(pca.explained_variance_[0] / X[:, -1].var(ddof=1) - 1)
    observe("F12b", f"column scales 1e-150..1e150, {solver}", f"largest {sci(error)}, rank_ = {pca.rank_}")
    assert error <= 1e-12
    assert pca.rank_ == 1  # the others lie below eps times the largest
    assert len(caught) == 1
    assert "scal" in str(caught[0].message)  # says what to do
    assert np.isfinite(pca.components_).all()


@pytest.mark.parametrize("solver", EXACT)
def test_F12b_scaling_the_columns_mends_it(solver, observe):
    plain = np.random.default_rng(0).normal(size=(60, 7))
    X = plain * 10.0 ** np.linspace(-150, 150, 7)
    expected = PCA(scale=True, solver=solver).fit(plain).explained_variance_
    error = relative_error(PCA(scale=True, solver=solver).fit(X).explained_variance_, expected)
    observe("F12b", f"the same with scale=True, {solver}", sci(error))
    assert error <= 1e-10


# --- F13: large offsets ---------------------------------------------------------------------------

OFFSETS = (1e4, 1e6, 1e8, 1e10, 1e12)
BOUNDS = {
    np.float64: dict(zip(OFFSETS, (1e-12, 1e-12, 1e-12, 1e-11, 1e-8), strict=True)),
    np.float32: dict.fromkeys(OFFSETS, 1e-5),
}


@functools.cache
def offset_problem(dtype, offset):
    """2000 x 20 with variances 100..1 about an offset, and the eigenvalues of what is stored.

    float32 has no digits left for a spread of 1 at an offset above 1e8 (its spacing is 8 there), so
    the spread grows with the offset beyond that; the reference is of the stored values anyway.
    """
    spread = max(1.0, offset / 1e8) if dtype == np.float32 else 1.0
    X = (data_with_spectrum(2000, 20, np.linspace(10, 1, 20)) * spread + offset).astype(dtype)
    X.flags.writeable = False
    return X, eigenvalues_longdouble(X)


def by_offset(values):
    return ", ".join(f"{offset:.0e}: {sci(value)}" for offset, value in values.items())


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("storage", ["dense", "shards", "files", "memmap", "dask"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_F13_large_offset(dtype, storage, solver, stored, observe):
    errors = {}
    for offset in OFFSETS:
        X, expected = offset_problem(dtype, offset)
        errors[offset] = relative_error(PCA(solver=solver).fit(stored(X, storage)).explained_variance_, expected)
    observe("F13", f"{np.dtype(dtype)} {storage}, {solver}, by offset", by_offset(errors))
    beyond = {offset: error for offset, error in errors.items() if not error <= BOUNDS[dtype][offset]}
    assert not beyond


@pytest.mark.parametrize("storage", ["dense", "shards", "memmap", "dask"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_F13_large_offset_krylov_within_its_reported_error(dtype, storage, stored, observe):
    errors, reported = {}, {}
    for offset in OFFSETS:
        X, expected = offset_problem(dtype, offset)
        pca = PCA(5, solver="krylov", random_state=0).fit(stored(X, storage))
        found = pca.explained_variance_.astype(float)
        bound = np.asarray(pca.certificate_.details["error"], dtype=float)
        assert bound.shape == (5,)
        errors[offset] = np.max(np.abs(found - expected[:5]) / bound)
        reported[offset] = np.max(bound) / expected[0]
    observe("F13", f"{np.dtype(dtype)} {storage}, krylov, error / reported error", by_offset(errors))
    assert max(errors.values()) <= 1
    assert max(reported.values()) <= 1e-5  # a bound so wide that it always holds says nothing


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix])
def test_F13_large_offset_sparse(make, observe):
    errors, bounds = {}, {}
    for offset in OFFSETS:
        X, expected = offset_problem(np.float64, offset)
        errors[offset] = error_of_largest(PCA(solver="eigh").fit(make(X)).explained_variance_, expected)
        bounds[offset] = 20 * EPS * np.max(np.abs(X.mean(axis=0)) / X.std(axis=0))
    observe("F13", f"float64 {make.__name__}, eigh, by offset", by_offset(errors))
    assert not {offset for offset in OFFSETS if not errors[offset] <= bounds[offset]}


def test_F13_large_offset_sparse_krylov(observe):
    errors = {}
    for offset in OFFSETS:
        X, expected = offset_problem(np.float64, offset)
        pca = PCA(5, solver="krylov", random_state=0).fit(scipy.sparse.csr_array(X))
        centring = 20 * EPS * np.max(np.abs(X.mean(axis=0)) / X.std(axis=0)) * expected[0]
        excess = np.abs(pca.explained_variance_ - expected[:5]) / (pca.certificate_.details["error"] + centring)
        errors[offset] = np.max(excess)
    observe("F13", "float64 csr, krylov, error / (reported + centring)", by_offset(errors))
    assert max(errors.values()) <= 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_F13_scores_are_centred_at_large_offsets(dtype, observe):
    """Scores of the training rows have mean zero; the bound is the rounding of one stored value."""
    means = {}
    for offset in OFFSETS:
        X, _expected = offset_problem(dtype, offset)
        scores = PCA(5).fit(X).transform(X).astype(float)
        means[offset] = np.abs(scores.mean(axis=0)).max()
        assert means[offset] <= math.sqrt(20) * np.spacing(dtype(offset))
    observe("F13", f"{np.dtype(dtype)} dense, mean of the scores by offset", by_offset(means))


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_F13_what_scikit_learn_does_by_default(dtype, observe):
    sklearn_pca = pytest.importorskip("sklearn.decomposition").PCA
    errors = {}
    for offset in OFFSETS:
        X, expected = offset_problem(dtype, offset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors[offset] = relative_error(sklearn_pca().fit(X).explained_variance_, expected)
    observe("F13", f"{np.dtype(dtype)} dense, scikit-learn's default, by offset", by_offset(errors))
    # What the docs say of it, beside our bounds: when this fails, their table is out of date.
    offset, ours = (1e8, 1e-12) if dtype is np.float64 else (1e4, 1e-5)
    assert errors[offset] > 1e3 * ours


# --- F14: ties ------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("gap", [0.0, 1e-14])
@pytest.mark.parametrize("shape", [(100, 8), (8, 100)])
def test_F14_tied_singular_values(solver, gap, shape, observe):
    X = data_with_spectrum(*shape, [4, 4 * (1 - gap), 4 * (1 + gap), 1, 1, 1])
    pca = PCA(3, solver=solver, random_state=0).fit(X)
    sine = subspace_sine(pca.components_, eigenvectors_reference(X, 3))
    observe("F14", f"three values tied, gap {gap:g}, {shape[0]}x{shape[1]}, {solver}", f"joint sine {sci(sine)}")
    assert sine <= (1e-8 if solver in EXACT else 1e-5)
    assert orthonormality_error(pca.components_) <= 1e-12


# --- F15: types of number -------------------------------------------------------------------------

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def limits(dtype):
    """30 x 4 integers, among them both limits of the type in each column."""
    info = np.iinfo(dtype)
    X = np.random.default_rng(0).integers(info.min, info.max, size=(30, 4), dtype=dtype, endpoint=True)
    X[0], X[1] = info.min, info.max
    return X


def assert_equals_the_float64_copy(X, observe, solver="auto"):
    with only_user_warnings() as caught:
        found, expected = (PCA(2, solver=solver).fit(Y) for Y in (X, np.asarray(X, dtype=float)))
    error = relative_error(found.explained_variance_, expected.explained_variance_)
    observe("F15", f"{X.dtype}, {solver}", f"differs from the float64 copy by {sci(error)}")
    assert not caught
    assert found.components_.dtype == found.explained_variance_.dtype == np.float64
    assert error <= 1e-12
    assert np.allclose(found.components_, expected.components_, atol=1e-12)
    assert np.allclose(found.transform(X), expected.transform(np.asarray(X, dtype=float)), rtol=1e-12)


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_F15_integers_at_their_limits(dtype, solver, observe):
    assert_equals_the_float64_copy(limits(dtype), observe, solver)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, np.bool_, object])
def test_F15_other_numbers(dtype, observe):
    X = small(30, 4)
    X = X > 3 if dtype == np.bool_ else X.astype(dtype)
    assert_equals_the_float64_copy(X, observe)


def test_F15_float16_sums_do_not_overflow(observe):
    X = (np.random.default_rng(0).normal(size=(500, 4)) * 10 + 60_000).astype(np.float16)
    assert_equals_the_float64_copy(X, observe)


def test_F15_a_longdouble_beyond_float64_is_refused(observe):
    if np.finfo(np.longdouble).maxexp <= 1024:
        pytest.skip("long double is double here")
    X = small(30, 4).astype(np.longdouble)
    X[3, 2] = np.longdouble("1e400")
    with pytest.raises(ValueError, match="inf") as error:
        PCA(2).fit(X)
    assert "column 2" in str(error.value)
    observe("F15", "longdouble 1e400", "ValueError naming the column")


def strings():
    pandas = pytest.importorskip("pandas")
    numeric = [["1", "2"], ["3", "5"], ["8", "1"]]
    dates = np.array([["2020-01-01", "2020-01-02"]] * 3, dtype="datetime64[D]")
    return {
        "numeric strings": np.array(numeric),
        "bytes": np.array(numeric, dtype="S"),
        "a list of numeric strings": numeric,
        "object strings": np.array(numeric, dtype=object),
        "one object string": np.array([[1.0, 2.0], [3.0, "4"], [5.0, 7.0]], dtype=object),
        "datetime64": dates,
        "timedelta64": dates - dates[0, 0],
        "a frame of strings": pandas.DataFrame(numeric, columns=["a", "b"]),
        "a frame with dates": pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": dates[:, 1]}),
    }


@pytest.mark.parametrize(
    "kind",
    [
        "numeric strings",
        "bytes",
        "a list of numeric strings",
        "object strings",
        "one object string",
        "datetime64",
        "timedelta64",
        "a frame of strings",
        "a frame with dates",
    ],
)
def test_F15b_strings_and_dates_are_refused(kind, observe):
    with pytest.raises(TypeError) as error:
        PCA(1).fit(strings()[kind])
    observe("F15b", kind, f"TypeError: {str(error.value).splitlines()[0][:90]}")


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array, lambda X: [X, X]], ids=["dense", "csr", "shards"])
def test_F15c_complex_numbers_are_refused(make, observe):
    for X in (small() + 1j, small() + 0j):
        with pytest.raises(ValueError, match="Complex data not supported"):
            PCA(2).fit(make(X))
    observe("F15c", f"complex, {make.__name__}", 'ValueError "Complex data not supported"')


# --- F16: layout in memory ------------------------------------------------------------------------


def unaligned(X):
    buffer = np.zeros(X.nbytes + 1, dtype=np.uint8)[1:]
    view = buffer.view(X.dtype).reshape(X.shape)
    view[...] = X
    assert not view.flags.aligned
    return view


LAYOUTS = {
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "unaligned": unaligned,
    "F-order": np.asfortranarray,
    "negative strides": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "strided": lambda X: np.repeat(np.repeat(X, 3, axis=0), 2, axis=1)[::3, ::2],
    "structured field": lambda X: np.rec.fromarrays([np.zeros(X.shape, "i1"), X], names="a,b")["b"],
    "read-only": lambda X: np.require(X.copy(), requirements="C"),
}


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_F16_layout_does_not_matter(layout, dtype, solver, observe):
    plain = small().astype(dtype)
    X = LAYOUTS[layout](plain)
    X.flags.writeable = layout != "read-only"
    before, strides = X.tobytes(), X.strides
    found, expected = PCA(3, solver=solver).fit(X), PCA(3, solver=solver).fit(plain)
    bound = 1e-12 if dtype == np.float64 else 1e-6
    error = relative_error(found.explained_variance_, expected.explained_variance_)
    observe("F16", f"{layout}, {np.dtype(dtype)}, {solver}", f"differs from a plain copy by {sci(error)}")
    assert error <= bound
    assert np.allclose(found.transform(X), expected.transform(plain), rtol=0, atol=100 * bound)
    assert found.components_.dtype == plain.dtype  # native byte order, too
    assert (X.tobytes(), X.strides) == (before, strides)


def test_F16_zero_strides(observe):
    column = np.random.default_rng(0).normal(size=(40, 1))
    pca = PCA(1).fit(np.broadcast_to(column, (40, 3)))
    expected = PCA(1).fit(np.tile(column, 3))
    assert np.allclose(pca.components_, expected.components_, atol=1e-12)
    assert relative_error(pca.explained_variance_, expected.explained_variance_) <= 1e-12
    with only_user_warnings() as caught:
        PCA(1).fit(np.broadcast_to(np.arange(3.0), (40, 3)))
    assert len(caught) == 1  # the same row 40 times: no variance
    observe("F16", "0-stride broadcast", "as a plain copy")


def test_F16_read_only_memory_map(tmp_path, observe):
    np.save(tmp_path / "X.npy", small())
    before = (tmp_path / "X.npy").read_bytes()
    for order in ("r", "c"):
        X = np.load(tmp_path / "X.npy", mmap_mode=order)
        assert np.array_equal(PCA(3).fit(X).components_, PCA(3).fit(small()).components_)
    assert (tmp_path / "X.npy").read_bytes() == before
    observe("F16", "read-only memory map", "as a plain copy, file unchanged")


def test_F16b_masked_array(observe):
    X = np.ma.masked_array(small())
    assert np.array_equal(PCA(3).fit(X).components_, PCA(3).fit(small()).components_)
    assert np.array_equal(PCA(3).fit(np.ma.masked_array(small(), mask=False)).components_, PCA(3).fit(X).components_)
    X[2, 3] = np.ma.masked
    with pytest.raises(TypeError, match="mask"):
        PCA(3).fit(X)
    observe("F16b", "masked array", "empty mask fits, otherwise TypeError")


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_F16b_matrix(observe):
    with pytest.raises(TypeError, match="matrix"):
        PCA(3).fit(np.matrix(small()))
    observe("F16b", "np.matrix", "TypeError")


# --- F17: frames ----------------------------------------------------------------------------------

NAMES = list("abcd")


def pandas_nullable(X):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=NAMES).astype({"a": "Float64", "b": "Float64"})


def pandas_arrow(X):
    pytest.importorskip("pyarrow")
    return pytest.importorskip("pandas").DataFrame(X, columns=NAMES).astype("double[pyarrow]")


def polars_frame(X):
    return pytest.importorskip("polars").DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})


def arrow_chunked(X):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table({name: pyarrow.chunked_array([X[:7, j], X[7:8, j], X[8:, j]]) for j, name in enumerate(NAMES)})


@pytest.mark.parametrize("make", [pandas_nullable, pandas_arrow, polars_frame, arrow_chunked])
def test_F17a_frames_without_nulls(make, observe):
    X = small(30, 4)
    pca, expected = PCA(2).fit(make(X)), PCA(2).fit(X)
    assert np.allclose(pca.components_, expected.components_, atol=1e-12)
    assert list(pca.feature_names_in_) == NAMES
    assert np.allclose(np.asarray(pca.transform(make(X))), expected.transform(X), atol=1e-12)
    observe("F17a", make.__name__.replace("_", " "), "as the array")


def test_F17a_integer_and_boolean_columns():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).integers(0, 2, size=(30, 3))
    frame = pandas.DataFrame({"a": pandas.array(X[:, 0], dtype="Int64"), "b": X[:, 1].astype(bool), "c": X[:, 2] * 1.5})
    expected = PCA(2).fit(X * [1, 1, 1.5])
    assert np.allclose(PCA(2).fit(frame).components_, expected.components_, atol=1e-12)


def pandas_with_null(X):
    frame = pandas_nullable(X)
    frame.loc[4, "b"] = pytest.importorskip("pandas").NA
    return frame


def polars_with_null(X):
    polars = pytest.importorskip("polars")
    return polars_frame(X).with_columns(polars.Series("b", [None, *X[1:, 1]]))


def arrow_with_null(X):
    pyarrow = pytest.importorskip("pyarrow")
    return arrow_chunked(X).set_column(1, "b", [pyarrow.array([None, *X[1:, 1]], type=pyarrow.float64())])


@pytest.mark.parametrize("make", [pandas_with_null, polars_with_null, arrow_with_null])
def test_F17a_nulls_are_named_like_nan(make, observe):
    with pytest.raises(ValueError, match="NaN") as error:
        PCA(2).fit(make(small(30, 4)))
    assert names("b", error)
    observe("F17a", make.__name__.replace("_", " "), f"ValueError: {str(error.value).splitlines()[0][:90]}")


def pandas_categorical(X):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=NAMES)
    return frame.assign(b=frame["b"].round().astype("category"))


def polars_categorical(X):
    polars = pytest.importorskip("polars")
    return polars_frame(X).with_columns(polars.Series("b", ["x", "y"] * (len(X) // 2), dtype=polars.Categorical))


def arrow_dictionary(X):
    pyarrow = pytest.importorskip("pyarrow")
    words = pyarrow.array(["x", "y"] * (len(X) // 2)).dictionary_encode()
    return arrow_chunked(X).set_column(1, "b", words)


@pytest.mark.parametrize("make", [pandas_categorical, polars_categorical, arrow_dictionary])
def test_F17a_categorical_columns_are_named(make, observe):
    with pytest.raises(TypeError) as error:
        PCA(2).fit(make(small(30, 4)))
    assert names("b", error)
    observe("F17a", make.__name__.replace("_", " "), f"TypeError: {str(error.value).splitlines()[0][:90]}")


def test_F17b_duplicate_column_names(observe):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(small(30, 4), columns=["a", "b", "a", "c"])
    with only_user_warnings() as caught:
        outcome = value_or_error(PCA(2).fit, frame)
    if isinstance(outcome, ValueError):
        observe("F17b", "duplicate column names", f"ValueError: {str(outcome).splitlines()[0][:90]}")
        assert "duplicate" in str(outcome).lower() or "unique" in str(outcome).lower()
    else:
        observe("F17b", "duplicate column names", f"names dropped, {len(caught)} warning(s)")
        assert len(caught) == 1
        assert not hasattr(outcome, "feature_names_in_")


def test_F17b_empty_frames(observe):
    pandas = pytest.importorskip("pandas")
    for frame in (
        pandas.DataFrame(),
        pandas.DataFrame({"a": [], "b": []}, dtype=float),
        pandas.DataFrame(index=range(3)),
    ):
        with pytest.raises(ValueError, match=r"0 (sample|feature)"):
            PCA().fit(frame)
    observe("F17b", "empty frame", "ValueError")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_F17c_columns_reordered_or_missing_at_transform(library, observe):
    frames = pytest.importorskip(library)
    X = small(30, 4)
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(NAMES)})
    pca = PCA(2).fit(frame)
    with pytest.raises(ValueError, match="order") as reordered:
        pca.transform(frame[["a", "c", "b", "d"]])
    with pytest.raises(ValueError, match="missing") as missing:
        pca.transform(frame[["a", "b", "d"]])
    with pytest.raises(ValueError, match="names") as renamed:
        pca.transform(frame.rename(columns={"c": "zeta"}) if library == "pandas" else frame.rename({"c": "zeta"}))
    observe("F17c", f"columns reordered, {library}", " ".join(str(reordered.value).split())[:90])
    assert names("c", missing)
    assert names("zeta", renamed)
    assert names("b", reordered)
    assert names("c", reordered)


# --- F18: sparse matrices -------------------------------------------------------------------------


def sparse_problem(n=200, p=8):
    """30 % non-zero, columns of mean/std near 1, well-separated variances."""
    rng = np.random.default_rng(0)
    X = rng.normal(1, 1, size=(n, p)) * (rng.random((n, p)) < 0.3)
    return X * np.arange(1, p + 1)


def with_explicit_zeros(X):
    matrix = scipy.sparse.csr_array(X + 1e-3)
    matrix.data[::5] = 0
    return matrix


def with_unsorted_indices(X):
    matrix = scipy.sparse.csr_array(X)
    for i in range(len(X)):
        row = slice(matrix.indptr[i], matrix.indptr[i + 1])
        matrix.indices[row], matrix.data[row] = matrix.indices[row][::-1].copy(), matrix.data[row][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def with_duplicate_indices(X):
    """Each entry stored twice, as one third and two thirds."""
    matrix = scipy.sparse.csr_array(X)
    indices, data = np.repeat(matrix.indices, 2), np.repeat(matrix.data, 2)
    data[::2] /= 3
    data[1::2] *= 2 / 3
    twice = scipy.sparse.csr_array((data, indices, matrix.indptr * 2), shape=X.shape)
    twice.has_canonical_format = False
    return twice


def with_long_indices(X):
    matrix = scipy.sparse.csr_array(X)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


SPARSE = {
    **{
        f"{form}_{kind}": getattr(scipy.sparse, f"{form}_{kind}")
        for form in ("csr", "csc", "coo")
        for kind in ("matrix", "array")
    },
    "explicit zeros": with_explicit_zeros,
    "unsorted indices": with_unsorted_indices,
    "duplicate indices": with_duplicate_indices,
    "int64 indices": with_long_indices,
}


def stored_arrays(matrix):
    return [
        getattr(matrix, name).copy() for name in ("data", "indices", "indptr", "row", "col") if hasattr(matrix, name)
    ]


@pytest.mark.parametrize("solver", ["auto", "eigh", "krylov"])
@pytest.mark.parametrize("kind", SPARSE)
def test_F18_sparse_equals_dense(kind, solver, observe):
    matrix = SPARSE[kind](sparse_problem())
    dense, before = matrix.toarray(), stored_arrays(matrix)
    pca, expected = PCA(3, solver=solver, random_state=0).fit(matrix), PCA(3, solver="eigh").fit(dense)
    error = relative_error(pca.explained_variance_, expected.explained_variance_)
    observe("F18", f"{kind}, {solver}", f"differs from dense by {sci(error)}")
    exact = pca.solver_ in EXACT
    assert error <= (20 * EPS * np.max(np.abs(dense.mean(axis=0)) / dense.std(axis=0)) * 10 if exact else 1e-6)
    assert subspace_sine(pca.components_, expected.components_) <= (1e-10 if exact else 1e-5)
    assert np.allclose(pca.transform(matrix), expected.transform(dense), atol=1e-9 if exact else 1e-3)
    assert all(map(np.array_equal, stored_arrays(matrix), before))


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_array", "coo_array"])
def test_F18_nothing_stored(kind, observe):
    with only_user_warnings() as caught:
        pca = PCA(2).fit(getattr(scipy.sparse, kind)((30, 4)))
    assert len(caught) == 1
    assert np.array_equal(pca.explained_variance_ratio_, np.zeros(2))
    assert orthonormality_error(pca.components_) <= 1e-14
    observe("F18", f"nnz = 0, {kind}", "ratio 0, one warning")


@pytest.mark.parametrize("solver", ["auto", "eigh", "krylov"])
def test_F18_never_densified(solver, observe):
    X = scipy.sparse.random_array((50_000, 1000), density=1e-3, format="csr", rng=0)
    PCA(3, solver=solver).fit(scipy.sparse.random_array((100, 20), density=0.5, format="csr", rng=0))
    with Allocated() as used:
        PCA(3, solver=solver, tol=1e-2, random_state=0).fit(X)
    dense = 8 * X.shape[0] * X.shape[1]
    observe("F18", f"50000 x 1000 at 0.1 %, {solver}", f"peak {used.peak / 1e6:.0f} MB (dense: {dense / 1e6:.0f} MB)")
    assert used.peak < dense / 4


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_array", "coo_array"])
def test_F18b_nan_held_in_a_sparse_array(kind, observe):
    X = sparse_problem()
    X[11, 3] = np.nan
    with pytest.raises(ValueError, match="NaN") as error:
        PCA(2).fit(getattr(scipy.sparse, kind)(X))
    assert "column 3" in str(error.value)
    observe("F18b", f"NaN in a {kind}", "ValueError naming the column")


# --- F24: anything --------------------------------------------------------------------------------

ODD = [0.0, -0.0, 1.0, -1.0, 1e8, 1e16, 1e-16, 1e150, -1e150, 1e300, -1e300, 1e-310, 5e-324, 1 / 3]
SHAPES = st.tuples(st.integers(2, 8), st.integers(1, 8))
MATRICES = st.one_of(
    SHAPES.flatmap(lambda shape: hnp.arrays(float, shape, elements=st.floats(-1e3, 1e3))),
    SHAPES.flatmap(lambda shape: hnp.arrays(float, shape, elements=st.sampled_from(ODD))),
    SHAPES.flatmap(lambda shape: hnp.arrays(float, shape, elements=st.integers(-3, 3).map(float))),
    SHAPES.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=st.floats(-(2.0**60), 2.0**60, width=32))),
)


@pytest.mark.parametrize("solver", ["eigh", "svd", "krylov"])
def test_F12_the_mean_of_the_smallest_numbers_is_rounded(solver):
    """It is 0 or the number itself: variances are about the one that is taken off, and add up to all."""
    X = np.zeros((2, 3))
    X[0, 0] = 5e-324
    with only_user_warnings():
        assert PCA(2, solver=solver, random_state=0).fit(X).explained_variance_ratio_.tolist() == [1.0, 0.0]
        X[0, 1] = 1e-310
        assert PCA(2, solver=solver, random_state=0).fit(X).rank_ == 1
        X[:, 2] = 1.0  # whose rounding is larger than all that varies
        found = PCA(2, solver=solver, random_state=0).fit(X)
    assert found.explained_variance_ratio_[0] == pytest.approx(1.0)
    assert np.isfinite(found.certificate_.details["floor"]).all()


def check_invariants(X, solver):
    """What holds for every matrix of finite numbers, however odd."""
    n, p = X.shape
    with only_user_warnings():
        pca = PCA(solver=solver, random_state=0).fit(X)
        scores, back = pca.transform(X), pca.inverse_transform(pca.transform(X))
    eps, k = np.finfo(X.dtype).eps, min(n, p)
    ratio, variances = pca.explained_variance_ratio_, pca.explained_variance_
    assert pca.components_.shape == (k, p)
    assert orthonormality_error(pca.components_) <= 30 * k * eps
    assert np.isfinite(pca.singular_values_).all()
    assert np.all(pca.singular_values_ >= 0)
    assert np.all(variances[:-1] >= variances[1:])
    assert np.all(variances >= 0)
    assert np.isfinite(ratio).all()
    assert np.all(ratio >= 0)
    assert ratio.sum() <= 1 + 30 * k * eps
    assert ratio.sum() == 0 or abs(ratio.sum() - 1) <= 30 * k * eps
    assert 0 <= pca.rank_ <= min(n - 1, p)
    assert signs_follow_the_rule(pca.components_)
    assert np.isfinite(scores).all()
    # all components: nothing is lost beyond rounding of the largest number
    assert np.abs(np.longdouble(X) - back).max() <= 100 * max(n, p) * eps * np.abs(X).max() + np.finfo(X.dtype).tiny


@pytest.mark.parametrize("solver", EXACT)
def test_F24_any_small_matrix(solver, observe):
    @hypothesis.settings(max_examples=200, deadline=None, derandomize=True)
    @hypothesis.given(X=MATRICES)
    def check(X):
        check_invariants(X, solver)

    check()
    observe("F24", f"200 random small matrices, {solver}", "all invariants hold")


@pytest.mark.soak
@pytest.mark.parametrize("solver", EXACT)
def test_F24_ten_thousand_small_matrices(solver, observe):
    @hypothesis.settings(max_examples=10_000, deadline=None)
    @hypothesis.given(X=MATRICES)
    def check(X):
        check_invariants(X, solver)

    check()
    observe("F24", f"10000 random small matrices, {solver}", "all invariants hold")
