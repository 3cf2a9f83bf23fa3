"""From scores back to rows: the nearest row by definition, regressions, what peers get wrong, every storage."""

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA as Peer
from sklearn.exceptions import ConvergenceWarning

import princomp
from methods import TABLE
from princomp import PCA, KernelPCA
from princomp.cli.app import cli
from princomp.datasets import make_circles
from princomp.kernels import Gaussian
from princomp.solvers import preimage
from storages import NEEDS, STORAGES, as_array

X = np.random.default_rng(0).normal(size=(60, 4)) + 2 * np.random.default_rng(1).integers(0, 3, (60, 1))
NOISY = X[:15] + 0.4 * np.random.default_rng(2).normal(size=(15, 4))
GAMMA = 0.1
FITS = {
    "exact": {"approximation": None},
    "nystroem": {"approximation": "nystroem", "rank": 25},
    "rpcholesky": {"approximation": "rpcholesky", "rank": 25},
    "fourier": {"approximation": "fourier", "rank": 300},
}
each_fit = pytest.mark.parametrize("fit", FITS)


def fitted(fit="exact", k=5, **more):
    return KernelPCA(k, **{"gamma": GAMMA, "random_state": 0, **FITS[fit], **more}).fit(X)


def k_of(A, B):
    return np.exp(-GAMMA * ((A[:, None] - B) ** 2).sum(axis=2))


def exact_weights(k):
    """h of each noisy row with the training rows, from the definition: A b + (1 - sum) / n."""
    n = len(X)
    J = np.eye(n) - 1 / n
    values, V = np.linalg.eigh(J @ k_of(X, X) @ J)
    A = V[:, ::-1][:, :k] / np.sqrt(values[::-1][:k])
    rows, K = k_of(NOISY, X), k_of(X, X)
    centred = rows - rows.mean(axis=1, keepdims=True) - K.mean(axis=0) + K.mean()
    g = centred @ A @ A.T
    return g + (1 - g.sum(axis=1, keepdims=True)) / n


def landmark_weights(model):
    """The same of a fit by landmarks S: PCA of the rows of K(X, S) W^(-1/2), and the projection as a sum over S."""
    S = model._basis
    values, V = np.linalg.eigh(k_of(S, S))
    root = V / np.sqrt(values)
    F, f = k_of(X, S) @ root, k_of(NOISY, S) @ root
    axes = np.linalg.svd(F - F.mean(axis=0), full_matrices=False)[2][:5]
    return (F.mean(axis=0) + (f - F.mean(axis=0)) @ axes.T @ axes) @ root.T


def distance(z, weights, basis):
    """|phi(z) - sum h_i phi(x_i)|^2, and its gradient."""
    k = k_of(z[None], basis)[0]
    return 1 - 2 * k @ weights + weights @ k_of(basis, basis) @ weights, 4 * GAMMA * (k * weights) @ (z - basis)


# --- the nearest row ------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", ["exact", "nystroem", "rpcholesky"])
def test_the_nearest_row_by_definition(fit):
    """No slope at the answer, and scipy, from the same start, comes no nearer."""
    model = fitted(fit)
    weights = exact_weights(5) if fit == "exact" else landmark_weights(model)
    answer = model.denoise(NOISY)
    for x, z, h in zip(NOISY, answer, weights):
        here, slope = distance(z, h, model._basis)
        assert np.abs(slope).max() < 1e-6
        theirs = minimize(distance, x, (h, model._basis), jac=True, method="BFGS", options={"gtol": 1e-8})
        assert here <= theirs.fun + 1e-10
        assert here <= distance(x, h, model._basis)[0]
        assert all(here <= distance(row, h, model._basis)[0] + 1e-12 for row in model._basis)


def test_the_nearest_row_of_fourier_features():
    model = fitted("fourier")
    W = model._basis.T

    def F(rows):
        angles = (rows - X.mean(axis=0)) @ W
        return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(W.shape[1])

    mean = F(X).mean(axis=0)
    axes = np.linalg.svd(F(X) - mean, full_matrices=False)[2][:5]
    wanted = mean + (F(NOISY) - mean) @ axes.T @ axes
    for x, z, q in zip(NOISY, model.denoise(NOISY), wanted):
        here = np.square(F(z[None])[0] - q).sum()
        theirs = minimize(lambda z, q=q: np.square(F(z[None])[0] - q).sum(), x, method="BFGS", options={"gtol": 1e-7})
        assert here <= theirs.fun + 1e-9
        steps = np.eye(4) * 1e-4
        assert all(np.square(F((z + step)[None])[0] - q).sum() >= here - 1e-11 for step in (*steps, *-steps))


def test_all_components_leave_training_rows_as_they_are():
    """Then P phi(x) = phi(x): only with the mean that centring has taken off is the nearest row x itself."""
    model = KernelPCA(gamma=GAMMA).fit(X)
    np.testing.assert_allclose(model.denoise(X), X, atol=1e-4)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-4)


@pytest.mark.parametrize("approximation", ["nystroem", "rpcholesky"])
def test_all_rows_as_landmarks_give_the_exact_answer(approximation):
    how = {"landmarks": np.arange(60)} if approximation == "nystroem" else {"rank": 60}
    near = KernelPCA(5, gamma=GAMMA, approximation=approximation, random_state=0, **how).fit(X)
    np.testing.assert_allclose(near.denoise(NOISY), fitted().denoise(NOISY), atol=1e-4)


def test_many_fourier_features_come_near_the_exact_answer():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(800, 4)) + 2 * rng.integers(0, 3, (800, 1))
    exact = KernelPCA(2, gamma=GAMMA).fit(rows).denoise(NOISY)
    near = KernelPCA(2, gamma=GAMMA, approximation="fourier", rank=800, random_state=0).fit(rows).denoise(NOISY)
    assert np.abs(near - exact).mean() < 0.1 * np.abs(NOISY - exact).mean()


def test_more_components_come_nearer():
    """The image of the answer, in feature space, against P phi(x): with the kernel's own numbers."""
    left = []
    for k in (2, 6, 20):
        model, weights = fitted(k=k), exact_weights(k)
        left.append(np.mean([distance(z, h, X)[0] for z, h in zip(model.denoise(NOISY), weights)]))
    assert left[0] > left[1] > left[2]


@each_fit
def test_scores_alone_lead_to_a_row_as_near(fit):
    model = fitted(fit)
    z = model.transform(NOISY)
    back = model.inverse_transform(z)
    again = model.denoise(NOISY)
    # Both are maxima of the same sum: near the same value, and mostly the same row.
    assert (np.abs(back - again).max(axis=1) < 1e-3).mean() > 0.8
    np.testing.assert_array_equal(model.inverse_transform(z[:1]).shape, (1, 4))


@each_fit
@pytest.mark.parametrize("offset", [1e3, 1e8])
def test_an_offset_moves_the_answer_and_nothing_else(fit, offset):
    rows, noisy = (np.round(each * 2**16) / 2**16 for each in (X, NOISY))
    for way in (None, "ridge"):
        how = {"gamma": GAMMA, "random_state": 0, "preimage": way, **FITS[fit]}
        near, far = KernelPCA(5, **how).fit(rows), KernelPCA(5, **how).fit(rows + offset)
        expected = near.denoise(noisy)
        np.testing.assert_allclose(far.denoise(noisy + offset) - offset, expected, atol=1e-5)
        back = far.inverse_transform(near.transform(noisy)) - offset
        np.testing.assert_allclose(back, near.inverse_transform(near.transform(noisy)), atol=1e-5)


def test_noise_across_a_ring_is_taken_off():
    clean = np.hstack([3 * make_circles(400, factor=0.5, noise=0.0, random_state=0).X, np.zeros((400, 8))])
    noise = 0.3 * np.random.default_rng(0).normal(size=clean.shape)
    for fit in FITS.values():
        model = KernelPCA(4, gamma=0.01, **{**fit, "rank": 200, "random_state": 0}).fit(clean[::2] + noise[::2])
        found = model.denoise((clean + noise)[1::2])
        assert np.mean((found - clean[1::2]) ** 2) < 0.35 * np.mean(noise[1::2] ** 2)


def test_digits_with_noise_are_restored_better_than_by_pca():
    digits = load_digits().data / 8 - 1
    clean = digits[1000:1200]
    noisy = clean + 0.5 * np.random.default_rng(0).normal(size=clean.shape)

    def error(rows):
        return float(np.mean((rows - clean) ** 2))

    linear = [
        error(pca.inverse_transform(pca.transform(noisy))) for pca in (PCA(k).fit(digits[:700]) for k in (8, 16, 24))
    ]
    assert error(KernelPCA(300, gamma=0.02).fit(digits[:700]).denoise(noisy)) < min(linear) / 1.1


# --- the linear kernel ----------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e8])
@pytest.mark.parametrize("approximation", [None, "nystroem", "rpcholesky"])
def test_the_linear_kernel_restores_as_pca_does(offset, approximation):
    rows, noisy = (np.round(each * 2**16) / 2**16 + offset for each in (X, NOISY))
    model = KernelPCA(2, kernel="linear", approximation=approximation, rank=20, random_state=0).fit(rows)
    pca = PCA(2).fit(rows)
    expected = pca.inverse_transform(pca.transform(noisy))
    np.testing.assert_allclose(model.denoise(noisy), expected, atol=1e-7)
    np.testing.assert_allclose(model.inverse_transform(model.transform(noisy)), expected, atol=1e-7)


def test_a_regression_comes_near_the_linear_answer():
    ridge = KernelPCA(2, kernel="linear", preimage="ridge").fit(X)
    expected = KernelPCA(2, kernel="linear").fit(X).denoise(X)
    assert np.mean((ridge.denoise(X) - expected) ** 2) < 0.1 * np.mean((expected - X.mean(axis=0)) ** 2)


# --- ridge, and what peers get wrong --------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "cosine", "sigmoid", "knn-rbf", "normalized-rbf"])
def test_a_regression_brings_every_kernel_back(kernel):
    rows = X - X.mean(axis=0)
    model = KernelPCA(4, kernel=kernel, gamma=0.05, coef0=0.5).fit(rows)
    back = model.denoise(rows)
    assert np.mean((back - rows) ** 2) < 0.6 * np.mean(rows**2)
    np.testing.assert_array_equal(back, model.inverse_transform(model.transform(rows)))


def test_units_change_nothing_but_units():
    """The width among scores is their own: that of the rows would be another one in other units."""
    how = {"preimage": "ridge"}
    near = KernelPCA(5, gamma=GAMMA, **how).fit(X)
    far = KernelPCA(5, gamma=GAMMA / 1e4, **how).fit(100 * X)
    np.testing.assert_allclose(far.denoise(100 * NOISY), 100 * near.denoise(NOISY), rtol=1e-6)
    peers = [
        Peer(5, kernel="rbf", gamma=GAMMA / s**2, fit_inverse_transform=True, alpha=1e-2).fit(s * X) for s in (1, 100)
    ]
    one, other = (peer.inverse_transform(peer.transform(s * NOISY)) / s for peer, s in zip(peers, (1, 100)))
    assert np.abs(one - other).max() > 0.1  # so it can go wrong


def test_rows_are_centred_before_the_regression():
    """scikit-learn's are not: far from 0 its answer is another one, drawn towards 0."""
    peers = [Peer(5, kernel="rbf", gamma=GAMMA, fit_inverse_transform=True, alpha=1e-2).fit(X + o) for o in (0.0, 1e3)]
    one, other = (peer.inverse_transform(peer.transform(NOISY + o)) - o for peer, o in zip(peers, (0.0, 1e3)))
    assert np.abs(one - other).max() > 0.1
    ours = [KernelPCA(5, gamma=GAMMA, preimage="ridge").fit(X + o).denoise(NOISY + o) - o for o in (0.0, 1e3)]
    np.testing.assert_allclose(*ours, atol=1e-6)


def test_what_a_regression_learns_from(monkeypatch):
    """Of landmarks these, unless it is asked for; then as many rows as it can use."""
    rows = np.random.default_rng(0).normal(size=(300, 3))
    how = {"kernel": "laplacian", "approximation": "nystroem", "rank": 20, "random_state": 0}
    assert KernelPCA(3, **how).fit(rows)._examples is None
    assert KernelPCA(3, preimage="ridge", **how).fit(rows)._examples.shape == (300, 3)
    assert KernelPCA(3, **{**how, "approximation": "fourier"}).fit(rows)._examples.shape == (20, 3)
    assert KernelPCA(3).fit(rows)._examples is None
    better = [KernelPCA(3, preimage=each, **how).fit(rows).denoise(rows) for each in (None, "ridge")]
    assert np.mean((better[1] - rows) ** 2) < np.mean((better[0] - rows) ** 2)
    monkeypatch.setattr("princomp.estimators.kernel_preimage.RIDGE_ROWS", 50)
    assert len(KernelPCA(3, preimage="ridge", **how).fit(rows)._examples) == 50
    model = KernelPCA(3, preimage="ridge").fit(rows)
    assert len(model._way().ridge.scores) == 50


# --- kinds, files, refusals -----------------------------------------------------------------------


@pytest.mark.parametrize("way", ["fixed-point", "ridge"])
@pytest.mark.parametrize(
    "storage",
    [pytest.param(name, marks=pytest.mark.needs("pyspark", "java") if name == "spark" else ()) for name in STORAGES],
)
def test_every_storage_gives_the_same_rows(storage, way, request, tmp_path):
    if storage in NEEDS:
        request.getfixturevalue(NEEDS[storage])
    data = STORAGES[storage](TABLE, tmp_path)
    for fit in ("nystroem",) if storage in NEEDS else FITS:  # workers take their time
        make = KernelPCA(3, gamma=0.02, preimage=way, random_state=0, **FITS[fit])
        known = clone(make).fit(TABLE)
        expected, model = known.denoise(TABLE), make.fit(data)
        found = as_array(model.denoise(data))
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(TABLE).max())
        if storage not in NEEDS:
            back = model.inverse_transform(model.transform(data))
            expected = known.inverse_transform(known.transform(TABLE))
            np.testing.assert_allclose(back, expected, atol=1e-4 * np.abs(TABLE).max())


def test_what_is_lazy_stays_lazy():
    dask = pytest.importorskip("dask.array")
    model = fitted()
    lazy = model.denoise(dask.from_array(NOISY, chunks=(4, 4)))
    assert isinstance(lazy, dask.Array)
    np.testing.assert_allclose(lazy.compute(), model.denoise(NOISY), atol=1e-6)
    scores = model.transform(dask.from_array(NOISY, chunks=(4, 4)))
    np.testing.assert_allclose(
        model.inverse_transform(scores).compute(), model.inverse_transform(model.transform(NOISY)), atol=1e-6
    )


@each_fit
@pytest.mark.parametrize("way", [None, "ridge"])
def test_single_precision_is_kept(fit, way):
    model = KernelPCA(5, gamma=GAMMA, random_state=0, preimage=way, **FITS[fit]).fit(X.astype(np.float32))
    rows = NOISY.astype(np.float32)
    assert model.denoise(rows).dtype == model.inverse_transform(model.transform(rows)).dtype == np.float32
    double = fitted(fit, preimage=way)
    np.testing.assert_allclose(model.denoise(rows), double.denoise(NOISY), atol=2e-3)


@each_fit
@pytest.mark.parametrize("how", [{}, {"preimage": "ridge"}, {"kernel": "laplacian"}])
def test_model_files_bring_the_same_rows_back(fit, how, tmp_path):
    model = fitted(fit, **how)
    princomp.save(model, tmp_path / "model.princomp")
    again = princomp.load(tmp_path / "model.princomp")
    np.testing.assert_array_equal(again.denoise(NOISY), model.denoise(NOISY))
    np.testing.assert_array_equal(*(each.inverse_transform(each.transform(NOISY)) for each in (again, model)))


def test_the_command_line_keeps_what_a_regression_needs(tmp_path):
    np.savetxt(tmp_path / "data.csv", X, delimiter=",", header="a,b,c,d", comments="")
    how = ["--method", "kernel", "-k", "2", "--approximation", "fourier", "--preimage", "ridge"]
    done = CliRunner().invoke(cli, ["fit", str(tmp_path / "data.csv"), *how, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    model = princomp.load(tmp_path / "out" / "model.princomp")
    assert model.preimage == "ridge"
    assert model._examples.shape == X.shape


def test_files_of_versions_before_begin_at_the_mean():
    model = fitted("fourier")
    expected = model.denoise(NOISY)
    del model._examples
    np.testing.assert_allclose(model.denoise(NOISY), expected, atol=1e-5)
    assert np.isfinite(model.inverse_transform(model.transform(NOISY))).all()
    with pytest.raises(ValueError, match="keeps no rows"):
        model.set_params(preimage="ridge").denoise(NOISY)


def test_another_fit_and_another_way_are_not_mixed_up():
    model = fitted()
    first = model.denoise(NOISY)
    model.fit(X + 3.0)
    np.testing.assert_allclose(model.denoise(NOISY + 3.0), first + 3.0, atol=1e-5)
    ridge = model.set_params(preimage="ridge").denoise(NOISY + 3.0)
    np.testing.assert_array_equal(ridge, fitted(preimage="ridge").fit(X + 3.0).denoise(NOISY + 3.0))
    assert np.abs(ridge - first - 3.0).max() > 1e-3


@pytest.mark.parametrize("gamma", [0.0, 1e-9, 1e3, 1e12, 1e300])
@pytest.mark.parametrize("fit", ["exact", "nystroem", "fourier"])
@pytest.mark.filterwarnings("ignore:All rows are alike", "ignore:.*pre-images are not found", "ignore:Features of this")
def test_finite_rows_stay_finite(fit, gamma):
    if fit == "fourier" and gamma > 1e3:
        return
    rows = np.vstack([X, X[:10]])  # some twice
    model = KernelPCA(3, gamma=gamma, random_state=0, **FITS[fit]).fit(rows)
    for new in (NOISY, rows, NOISY + 1e6, NOISY * 0):
        assert np.isfinite(model.denoise(new)).all()
        assert np.isfinite(model.inverse_transform(model.transform(new))).all()
    for size in (1e10, 1e200):
        assert np.isfinite(model.inverse_transform(size * np.eye(3))).all()
    assert np.isfinite(model.set_params(preimage="ridge").denoise(NOISY)).all()


@pytest.mark.filterwarnings("ignore:All rows are alike")
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_rows_that_are_all_alike_come_back_as_they_are(kernel):
    model = KernelPCA(2, kernel=kernel, preimage="ridge" if kernel == "rbf" else None).fit(np.ones((20, 4)))
    np.testing.assert_allclose(model.denoise(NOISY), np.ones((15, 4)), atol=1e-12)


def test_rows_that_are_not_found_are_counted(monkeypatch):
    model = fitted()
    monkeypatch.setattr(preimage, "STEPS", 1)
    with pytest.warns(ConvergenceWarning, match=r"of 15 pre-images are not found .* of the kernel's width"):
        model.denoise(NOISY)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_refused(value):
    rows = NOISY.copy()
    rows[3, 2] = value
    for way in (None, "ridge"):
        model = fitted(preimage=way)
        with pytest.raises(ValueError, match="in column 2"):
            model.denoise(rows)
        scores = model.transform(NOISY)
        scores[4, 1] = value
        with pytest.raises(ValueError, match="in column 1"):
            model.inverse_transform(scores)


def test_refusals_say_what_to_do():
    with pytest.raises(ValueError, match='is for kernel="rbf"'):
        KernelPCA(2, kernel="poly", preimage="fixed-point").fit(X)
    with pytest.raises(ValueError, match="preimage must be one of fixed-point, ridge, or None; got 'mds'"):
        KernelPCA(2, preimage="mds").fit(X)
    with pytest.raises(ValueError, match="Scores must have 5 columns, one per component, got 3"):
        fitted().inverse_transform(np.zeros((2, 3)))
    given = KernelPCA(2, kernel="precomputed").fit(Gaussian(GAMMA).evaluate(X))
    for what in (given.inverse_transform, given.denoise):
        with pytest.raises(ValueError, match='which kernel="precomputed" does not give'):
            what(np.zeros((2, 2 if what == given.inverse_transform else 60)))
    with pytest.raises(ValueError, match="is not fitted yet"):
        KernelPCA(2).inverse_transform(np.zeros((2, 2)))
