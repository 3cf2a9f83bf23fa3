"""PCA by optimisation: F(w) = |X - X w w'|^2 + alpha |w|_1 over unit w, one component at a time with deflation.

References are made from the formula alone: on the unit sphere |X - X w w'|^2 = |X|^2 - w'X'Xw.
"""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers import (
    data_with_spectrum,
    error_of_largest,
    only_user_warnings,
    orthonormality_error,
    relative_error,
    subspace_sine,
)
from princomp import PCA
from princomp.losses import Huber, Squared
from princomp.penalties import L1

EPS = np.finfo(float).eps
PROBLEMS = {
    "tall": data_with_spectrum(200, 10, np.linspace(10, 1, 10), offset=5.0),
    "wide": data_with_spectrum(15, 60, np.linspace(10, 1, 10), offset=5.0),
    "offset": data_with_spectrum(200, 10, np.linspace(10, 1, 10), offset=1e6),
    "slow": data_with_spectrum(200, 30, np.linspace(3, 2, 30)),
    "spiked": data_with_spectrum(200, 10, [1000, 10, 1, 0.5, 0.1]),
}


def centred(X):
    return X - X.mean(axis=0)


def objective(Z, w, alpha=0.0):
    """F from scratch: the residual is formed, not its closed form."""
    return ((Z - np.outer(Z @ w, w)) ** 2).sum() + alpha * np.abs(w).sum()


def deflate(Z, w):
    return Z - np.outer(Z @ w, w)


def unit(directions):
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


def lowest_by_search(Z, alpha, seed=0):
    """Lowest F over many unit vectors, then by coordinate-wise random refinement of the best: no gradients."""
    rng = np.random.default_rng(seed)
    p = Z.shape[1]
    S, total = Z.T @ Z, (Z**2).sum()

    def value(W):
        return total - np.einsum("ij,jk,ik->i", W, S, W) + alpha * np.abs(W).sum(axis=1)

    W = rng.normal(size=(50_000, p)) * (rng.random((50_000, p)) < rng.uniform(0.1, 1, size=(50_000, 1)))
    W = np.vstack([np.eye(p), unit(W[np.abs(W).sum(axis=1) > 0])])
    W = W[np.argsort(value(W))[:20]]
    step = 0.3
    for _ in range(150):
        near = unit((W[:, None] + step * rng.normal(size=(len(W), 40, p)) * (W[:, None] != 0)).reshape(-1, p))
        W = np.vstack([W, near])
        W = W[np.argsort(value(W))[:20]]
        step *= 0.9
    return value(W).min()


# --- plain PCA ------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("seed", range(3))
def test_reaches_the_eigh_answer(problem, seed):
    X = PROBLEMS[problem]
    found = PCA(3, solver="optimize", random_state=seed).fit(X)
    expected = PCA(3, solver="eigh").fit(X)
    assert found.solver_ == "optimize"
    assert relative_error(found.explained_variance_, expected.explained_variance_) <= 1e-6
    assert np.abs(found.components_ - expected.components_).max() <= 1e-6
    assert found.certificate_.residual <= 1e-6
    assert found.certificate_.dominant
    assert found.result_.status


def test_all_components_of_a_small_problem():
    X = PROBLEMS["tall"]
    found, expected = PCA(solver="optimize", random_state=0).fit(X), PCA(solver="eigh").fit(X)
    assert relative_error(found.explained_variance_, expected.explained_variance_) <= 1e-6
    assert orthonormality_error(found.components_) <= 1e-12


@pytest.mark.parametrize("penalty", [None, L1(0.0), L1(30.0)], ids=["none", "zero", "L1"])
@pytest.mark.parametrize("problem", ["tall", "wide", "slow"])
def test_trace_is_monotone_and_keeps_losses_and_parameters(problem, penalty):
    X = PROBLEMS[problem]
    p = X.shape[1]
    pca = PCA(3, solver="optimize", penalty=penalty, random_state=0).fit(X)
    alpha = 0.0 if penalty is None else penalty.alpha
    assert len(pca.trace_) == 3
    Z = centred(X)
    for entry, component in zip(pca.trace_, pca.components_, strict=True):
        loss, parameters = np.asarray(entry["loss"]), np.asarray(entry["parameters"])
        assert loss.ndim == 1
        assert parameters.shape == (len(loss), p)
        assert np.allclose(np.linalg.norm(parameters, axis=1), 1, atol=1e-12)
        assert np.all(np.diff(loss) <= 10 * EPS * (X**2).sum())
        recomputed = [objective(Z, w, alpha) for w in parameters]
        assert np.allclose(loss, recomputed, rtol=1e-9, atol=1e-9 * (Z**2).sum())
        last = parameters[-1]
        assert min(np.abs(last - component).max(), np.abs(last + component).max()) <= 1e-9
        Z = deflate(Z, last)


def test_only_optimize_leaves_a_trace():
    X = PROBLEMS["tall"]
    pca = PCA(2, solver="optimize", random_state=0).fit(X)
    assert hasattr(pca, "trace_")
    assert not hasattr(pca.set_params(solver="eigh").fit(X), "trace_")


def test_a_limit_on_iterations_is_said():
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        pca = PCA(1, solver="optimize", max_iter=2, random_state=0).fit(PROBLEMS["slow"])
    assert pca.result_.status.code == "iteration limit"
    assert not pca.result_.status
    assert pca.n_iter_ <= 2


def test_squared_loss_is_the_default():
    X = PROBLEMS["tall"]
    plain, squared = (PCA(2, solver="optimize", loss=loss, random_state=0).fit(X) for loss in (None, Squared()))
    assert np.array_equal(plain.components_, squared.components_)


@pytest.mark.parametrize("solver", ["auto", "eigh", "svd", "krylov"])
@pytest.mark.parametrize("option", [{"loss": Squared()}, {"penalty": L1(1.0)}])
def test_loss_and_penalty_belong_to_optimize(solver, option):
    with pytest.raises(ValueError, match="optimize"):
        PCA(2, solver=solver, **option).fit(PROBLEMS["tall"])


# --- penalised ------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("p", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_penalised_objective_is_as_low_as_a_search_finds(p, share, seed):
    X = np.random.default_rng(seed).normal(size=(30, p)) @ np.random.default_rng(seed + 100).normal(size=(p, p))
    Z = centred(X)
    alpha = share * (Z**2).sum()
    pca = PCA(1, solver="optimize", penalty=L1(alpha), random_state=0).fit(X)
    w = pca.components_[0]
    assert np.isclose(np.linalg.norm(w), 1, atol=1e-12)
    assert objective(Z, w, alpha) <= lowest_by_search(Z, alpha) + 1e-9 * (Z**2).sum()
    assert np.isclose(pca.trace_[0]["loss"][-1], objective(Z, w, alpha), rtol=1e-9)


def test_second_penalised_component_is_that_of_the_deflated_data():
    X = np.random.default_rng(0).normal(size=(30, 4)) * [3, 2.5, 2, 1]
    alpha = 0.1 * (centred(X) ** 2).sum()
    pca = PCA(2, solver="optimize", penalty=L1(alpha), random_state=0).fit(X)
    Z = deflate(centred(X), pca.components_[0])
    assert objective(Z, pca.components_[1], alpha) <= lowest_by_search(Z, alpha) + 1e-9 * (Z**2).sum()


@pytest.mark.parametrize("problem", PROBLEMS)
def test_without_weight_the_penalty_changes_nothing(problem):
    X = PROBLEMS[problem]
    found, expected = PCA(3, solver="optimize", penalty=L1(0.0), random_state=0).fit(X), PCA(3, solver="eigh").fit(X)
    assert subspace_sine(found.components_, expected.components_) <= 1e-6
    assert relative_error(found.explained_variance_, expected.explained_variance_) <= 1e-6


@pytest.mark.parametrize("alpha", [1e6, 1e12, 1e100, 1e300])
@pytest.mark.parametrize("seed", range(3))
def test_a_huge_weight_gives_unit_coordinate_vectors(alpha, seed):
    X = np.random.default_rng(seed).normal(size=(50, 5)) * [1, 3, 2, 0.5, 1]
    pca = PCA(2, solver="optimize", penalty=L1(alpha), random_state=seed).fit(X)
    assert np.array_equal(np.sort(pca.components_, axis=1), [[0, 0, 0, 0, 1]] * 2)
    assert np.isfinite(pca.transform(X)).all()
    assert np.isfinite(pca.explained_variance_).all()
    assert all(np.isfinite(entry["loss"]).all() for entry in pca.trace_)


@pytest.mark.parametrize("seed", range(3))
def test_a_huge_weight_takes_the_columns_of_largest_variance(seed):
    # all coordinate vectors cost the same penalty, so the lowest objective has the most variance
    X = np.random.default_rng(seed).normal(size=(50, 5)) * [1, 3, 2, 0.5, 1]
    pca = PCA(2, solver="optimize", penalty=L1(1e6), random_state=seed).fit(X)
    assert list(pca.components_.argmax(axis=1)) == [1, 2]


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf])
def test_weights_that_mean_nothing_are_refused(alpha):
    with pytest.raises(ValueError, match="alpha"):
        PCA(1, solver="optimize", penalty=L1(alpha)).fit(PROBLEMS["tall"])


@pytest.mark.parametrize("exponent", [-300, -200, 200, 300])
def test_units_of_data_and_penalty_go_together(exponent):
    # F(w) of (2^e X, 4^e alpha) is 4^e F(w) of (X, alpha): whatever rescaling goes on inside must not show
    X = np.random.default_rng(0).normal(size=(30, 4)) @ np.random.default_rng(1).normal(size=(4, 4))
    alpha = 0.02 * (centred(X) ** 2).sum()
    expected = PCA(1, solver="optimize", penalty=L1(alpha), random_state=0).fit(X)
    assert np.count_nonzero(expected.components_) > 1  # neither all nor nothing is left to the penalty
    scaled = L1(np.ldexp(alpha, 2 * exponent))
    found = PCA(1, solver="optimize", penalty=scaled, random_state=0).fit(np.ldexp(X, exponent))
    assert np.allclose(found.components_, expected.components_, atol=1e-6)


# --- Huber ----------------------------------------------------------------------------------------


def huber(residual, delta):
    """r^2 inside delta, linear outside, up to a common factor."""
    size = np.abs(residual)
    return np.where(size <= delta, size**2, delta * (2 * size - delta)).sum()


@pytest.mark.parametrize("delta", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("problem", ["tall", "wide"])
def test_huber_descends(problem, delta):
    X = PROBLEMS[problem]
    with only_user_warnings():  # whether it also converges is asked below
        pca = PCA(2, solver="optimize", loss=Huber(delta), random_state=0).fit(X)
    assert len(pca.trace_) == 2
    Z = centred(X)
    for entry in pca.trace_:
        loss, parameters = np.asarray(entry["loss"]), np.asarray(entry["parameters"])
        assert np.isfinite(loss).all()
        assert np.all(np.diff(loss) <= 10 * EPS * loss[0])
        ratio = [huber(deflate(Z, w), delta) / value for w, value in zip(parameters, loss, strict=True)]
        assert np.allclose(ratio, ratio[0], rtol=1e-9)
        Z = deflate(Z, parameters[-1])


@pytest.mark.parametrize("problem", ["tall", "wide"])
def test_huber_converges_by_default(problem):
    assert PCA(2, solver="optimize", loss=Huber(1.0), random_state=0).fit(PROBLEMS[problem]).result_.status


def test_huber_with_a_wide_middle_is_the_squared_loss():
    X = PROBLEMS["tall"]
    found, expected = PCA(2, solver="optimize", loss=Huber(1e6), random_state=0).fit(X), PCA(2, solver="eigh").fit(X)
    assert error_of_largest(found.components_, expected.components_) <= 1e-5


def test_huber_is_moved_less_by_wild_cells():
    rng = np.random.default_rng(0)
    true = np.array([[1, 1, 1, 1, 0, 0]]) / 2
    X = 3 * rng.normal(size=(200, 1)) @ true + 0.3 * rng.normal(size=(200, 6))
    X[:10, 5] = 25.0  # 6250 of squares against 1800 of the signal, but 250 against about 750 in absolute values
    robust = PCA(1, solver="optimize", loss=Huber(0.5), random_state=0).fit(X)
    assert huber(deflate(centred(X), robust.components_[0]), 0.5) <= 1.001 * huber(deflate(centred(X), true[0]), 0.5)
    assert subspace_sine(robust.components_, true) < 0.3 < subspace_sine(PCA(1).fit(X).components_, true)


def test_huber_and_penalty_together_descend():
    pca = PCA(1, solver="optimize", loss=Huber(1.0), penalty=L1(50.0), random_state=0).fit(PROBLEMS["tall"])
    loss = np.asarray(pca.trace_[0]["loss"])
    assert np.all(np.diff(loss) <= 10 * EPS * loss[0])


@pytest.mark.parametrize("delta", [0.0, -1.0, np.nan, np.inf])
def test_widths_that_mean_nothing_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        PCA(1, solver="optimize", loss=Huber(delta)).fit(PROBLEMS["tall"])


def test_a_component_that_took_too_long_counts_to_the_end(monkeypatch):
    """The last one, orthogonal to all others, is exact; but the first ones were left where they were."""
    monkeypatch.setattr("princomp.solvers.optimize.MAX_STEPS", 2)
    X = np.random.default_rng(0).standard_normal((60, 3)) * [1.05, 1.0, 0.95]
    with pytest.warns(ConvergenceWarning, match="No step leads further"):
        pca = PCA(3, solver="optimize", tol=1e-12, random_state=0).fit(X)
    assert pca.result_.history.residual[-1] > 0.01
