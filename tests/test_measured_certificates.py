"""Certificates of penalised components, canonical vectors and mixtures: numbers of data and answer, not the solver's.

Each residual is written out here once more, in plain NumPy, from X and what a fit returns. And solvers are made to lie.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from princomp import PCA, ProbabilisticPCAMixture, SparsePCA, certificates
from princomp.certificates import likelihood
from princomp.certificates.constrained import own_residuals
from princomp.data import Centered, as_rows
from princomp.estimators.sparse import constrained, dictionary, regression
from princomp.estimators.sparse_cca import SparseCCA
from princomp.losses import Huber, Squared
from princomp.penalties import L1, Zero
from princomp.result import measured
from princomp.solvers import canonical as canonical_solver
from princomp.solvers import constrained as constrained_solver
from princomp.solvers import one_by_one
from princomp.solvers import optimize as optimize_solver
from princomp.solvers import probabilistic_mixture as mixture_solver

N, P, K = 80, 12, 2


def table(seed=0, n=N, p=P):
    """Three hidden directions in noise."""
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(size=(n, 3)) @ rng.normal(size=(3, p)) + rng.normal(size=(n, p))


TABLES = {
    "plain": table(),
    "offset": table() + 1e6,
    "scales": table() * np.logspace(-2, 2, P),
    "wide": table(1, 15, 40),
    "sparse": np.where(np.abs(table(2)) > 1.5, table(2), 0.0),
}


def as_given(name):
    return sp.csr_array(TABLES[name]) if name == "sparse" else TABLES[name]


def centred(X):
    return X - X.mean(axis=0)


def soft(V, threshold):
    return np.sign(V) * np.maximum(np.abs(V) - threshold, 0.0)


def with_one_entry_changed(V):
    """The same with the largest entry of the first column one per cent larger."""
    V = np.array(V)
    V[np.argmax(np.abs(V[:, 0])), 0] *= 1.01
    return V


# --- the formulae ---------------------------------------------------------------------------------


def of_dictionary(Z, sparse, D=None):
    """Violation of the slopes that the penalty asks for, and of the best codes in the ball."""
    Y, D, alpha = sparse.result_.value["Y"], sparse.result_.value["D"] if D is None else D, sparse.alpha_
    G = Z.T @ Y - D @ (Y.T @ Y)
    violation = np.where(D == 0, np.maximum(np.abs(G) - alpha, 0), np.abs(G - alpha * np.sign(D)))
    curvature = (D**2).sum(axis=0)
    moved = Y + (Z @ D - Y @ (D.T @ D)) / curvature
    moved = moved / np.maximum(np.linalg.norm(moved, axis=0), 1.0)
    codes = np.linalg.norm((Y - moved) * curvature, axis=0).max() / np.linalg.norm(Z @ D, axis=0).max()
    return max((violation / alpha).max(), codes)


def of_regression(Z, sparse, B=None):
    """Proximal steps of both factors, each beside its gradient."""
    A, B, alpha = sparse.result_.value["A"], sparse.result_.value["B"] if B is None else B, sparse.alpha_
    SA, SB = Z.T @ (Z @ A), Z.T @ (Z @ B)
    values = np.linalg.svd(Z, compute_uv=False) ** 2
    ridge = 1e-6 * values[0] if sparse.ridge is None else sparse.ridge
    symmetric = (A.T @ SB + SB.T @ A) / 2
    step = 1 / (2 * np.linalg.norm(SA, axis=0).max() + 2 * ridge)
    moved = soft(B - 2 * step * (SB - SA + ridge * B), step * alpha)
    first = 0.0 if sparse.solver == "one-shot" else np.linalg.norm(SB - A @ symmetric) / np.linalg.norm(SB)
    second = np.linalg.norm(moved - B) / step / (2 * np.linalg.norm(SA))
    return np.hypot(first, second)


def highest(z, bound):
    """The unit vector of l1 norm at most ``bound`` that maximises z'v: a soft threshold, found by bisection."""
    low, high = 0.0, np.abs(z).max()
    if np.abs(z).sum() > bound * np.linalg.norm(z):
        for _ in range(200):
            middle = (low + high) / 2
            v = soft(z, middle)
            low, high = (middle, high) if np.abs(v).sum() > bound * np.linalg.norm(v) else (low, middle)
    v = soft(z, low)
    return v / np.linalg.norm(v)


def of_constrained(Z, sparse, V=None):
    """Steps to the best vector for the linearised variance, on what the components before leave of the data."""
    V = sparse.result_.value["V"] if V is None else V
    lengths = []
    for v, bound in zip(V.T, sparse.alpha_, strict=True):
        lengths.append(np.linalg.norm(highest(Z.T @ (Z @ v), bound) - v))
        score = Z @ v / np.linalg.norm(Z @ v)
        Z = Z - np.outer(score, score @ Z)
    return max(lengths)


def of_optimize(Z, pca, V=None):
    """The next majorised step, from each component on what those before it leave."""
    lengths, squared = [], pca.loss is None
    penalty = Zero() if pca.penalty is None else pca.penalty
    for w in (pca.result_.value["V"] if V is None else V).T:

        def value(v, Z=Z):
            residual = Z - np.outer(Z @ v, v)
            return (residual**2).sum() if squared else pca.loss.value(residual)

        slope = 2 * (Z - np.outer(Z @ w, w)) if squared else pca.loss.gradient(Z - np.outer(Z @ w, w))
        g = -2 * Z.T @ (Z @ w) if squared else -Z.T @ (slope @ w) - slope.T @ (Z @ w)
        L = 0.0 if squared else 1e-3 * np.linalg.norm(g)
        while True:
            moved = penalty.prox(L * w - g, 1.0)
            step = moved / max(np.linalg.norm(moved), 1e-300) - w
            above = value(w) * (1 + 1e-15) + g @ step + L * (step @ step) / 2
            if squared or (np.linalg.norm(step) <= 0.1 and value(w + step) <= above):
                break
            L *= 4
        lengths.append(np.linalg.norm(step) / (0.01 if squared else 1.0))
        Z = Z - np.outer(Z @ w, w)
    return max(lengths)


def of_canonical(X, Y, cca, A=None):
    """Proximal steps in the tangent spaces, for one pair of vectors: the multiplier is a number, found by bisection."""
    A = cca.x_weights_ if A is None else A
    total = 0.0
    for U, V, a, b, alpha in (
        (X, Y, A[:, 0], cca.y_weights_[:, 0], cca.alpha_x_),
        (Y, X, cca.y_weights_[:, 0], A[:, 0], cca.alpha_y_),
    ):
        share = 1e-4 / (len(U) - 1)
        normal = (1 - share) * (U.T @ (U @ a)) / (len(U) - 1) + share * a
        gradient = -U.T @ (V @ b) / (len(U) - 1)
        step = min(1.0, 10 / alpha)

        def moved(L, a=a, normal=normal, gradient=gradient, step=step, alpha=alpha):
            return soft(a - step * (gradient - L * normal), step * alpha) - a

        low, high = -1e3, 1e3
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if normal @ moved(middle) < 0 else (low, middle)
        total += (np.linalg.norm(moved(low)) / step) ** 2
    return np.sqrt(total)


def log_likelihood(X, share, W, means, noise):
    """Of complete rows, with each row's probabilities of the clusters."""
    joint = np.column_stack(
        [
            np.log(share[c]) + multivariate_normal(means[c], W[c] @ W[c].T + noise[c] * np.eye(X.shape[1])).logpdf(X)
            for c in range(len(share))
        ]
    )
    rows = np.logaddexp.reduce(joint, axis=1)
    return rows.sum(), np.exp(joint - rows[:, None])


def of_mixture(X, mixture, W=None):
    """The gain of one step of EM from complete rows, for each cell: rows are regressed on their posterior scores."""
    value = mixture.result_.value
    share, W, means, noise = value["share"], value["W"] if W is None else W, value["mean"], value["noise"]
    before, belongs = log_likelihood(X, share, W, means, noise)
    new_W, new_means, new_noise = np.zeros_like(W), np.zeros_like(means), np.zeros_like(noise)
    for c, r in enumerate(belongs.T):
        inverse = np.linalg.inv(W[c].T @ W[c] + noise[c] * np.eye(W.shape[2]))
        scores = np.c_[(X - means[c]) @ W[c] @ inverse, np.ones(len(X))]
        second = scores.T @ (r[:, None] * scores)
        second[:-1, :-1] += r.sum() * noise[c] * inverse
        both = np.linalg.solve(second, scores.T @ (r[:, None] * X)).T
        new_W[c], new_means[c] = both[:, :-1], both[:, -1]
        left = (r @ ((X - scores @ both.T) ** 2)).sum()
        left += r.sum() * noise[c] * np.trace(new_W[c] @ inverse @ new_W[c].T)
        new_noise[c] = left / r.sum() / X.shape[1]
    after, _ = log_likelihood(X, belongs.mean(axis=0), new_W, new_means, new_noise)
    return (after - before) / X.size


def of_cardinality(Z, sparse, V=None):
    """How far each component is from an eigenvector of what those before it leave, on its own features."""
    V = sparse.result_.value["V"] if V is None else V
    S, worst = Z.T @ Z, 0.0
    for j, v in enumerate(V.T):
        B = V[:, :j]
        left = S - S @ B @ np.linalg.solve(B.T @ S @ B, B.T @ S) if j else S
        used = v != 0
        part, height = (left @ v)[used], v @ left @ v
        worst = max(worst, np.linalg.norm(part - height * v[used]) / height)
    return worst


# --- what is reported is what data and answer say --------------------------------------------------

SPARSE = {
    "dictionary": (partial(SparsePCA, K, formulation="dictionary"), of_dictionary),
    "regression": (partial(SparsePCA, K, formulation="regression"), of_regression),
    "amanpg": (partial(SparsePCA, K, formulation="regression", solver="amanpg", max_iter=5000), of_regression),
    "one-shot": (partial(SparsePCA, K, formulation="regression", solver="one-shot", max_iter=5000), of_regression),
    "constrained": (partial(SparsePCA, K, formulation="constrained"), of_constrained),
    "cardinality": (partial(SparsePCA, K, nonzeros=4), of_cardinality),
}
FACTOR = {"dictionary": "D", "constrained": "V", "cardinality": "V"}  # where it is not B


def assert_the_same(reported, expected, rounding=3e-8):
    """Within a factor of ten, but for rounding."""
    assert reported <= 10 * expected + rounding
    assert expected <= 10 * reported + rounding


@pytest.mark.parametrize("data", TABLES)
@pytest.mark.parametrize("method", SPARSE)
def test_sparse_components(method, data):
    make, formula = SPARSE[method]
    Z = centred(TABLES[data])
    sparse = make(random_state=0).fit(as_given(data))
    assert sparse.certificate_.holds
    assert_the_same(sparse.certificate_.residual, formula(Z, sparse))
    changed = with_one_entry_changed(sparse.result_.value[FACTOR.get(method, "B")])
    assert formula(Z, sparse, changed) > 10 * sparse.tol


@pytest.mark.parametrize("method", SPARSE)
@pytest.mark.parametrize("scale", [False, True])
def test_a_matrix_in_place_of_rows(method, scale):
    make, formula = SPARSE[method]
    S = np.cov(table().T)
    sparse = make(random_state=0, scale=scale).fit_covariance(S, n_samples=N)
    assert sparse.certificate_.holds
    R = np.linalg.cholesky((N - 1) * S).T  # codes are those of R
    R = R / np.sqrt(np.diag(S)) if scale else R
    assert_the_same(sparse.certificate_.residual, formula(R, sparse))


def forged(method, Z, sparse):
    """The residual that `certificates` gives an answer one of whose loadings was changed by one per cent."""
    S, value = Z.T @ Z, sparse.result_.value
    changed = with_one_entry_changed(value[FACTOR.get(method, "B")])
    if method == "dictionary":
        Y = value["Y"]
        return max(certificates.dictionary_kkt(Z.T @ Y, Z @ changed, Y, changed, alpha=sparse.alpha_))
    if method == "constrained":
        how = {"bounds": sparse.alpha_, "squares": np.diag(S)}
        return certificates.constrained_stationarity(lambda V: S @ V, changed, **how).max()
    if method == "cardinality":
        return own_residuals(lambda V: S @ V, changed, "schur")[1].max()
    A, fixed = value["A"], method == "one-shot"
    ridge = 1e-6 * np.linalg.eigvalsh(S)[-1]
    how = {"alpha": sparse.alpha_, "ridge": ridge, "fixed": fixed}
    return certificates.regression_stationarity(A, changed, S @ A, S @ changed, **how)


@pytest.mark.parametrize("method", SPARSE)
def test_a_loading_changed_by_one_per_cent_is_seen(method):
    Z = centred(table())
    sparse = SPARSE[method][0](random_state=0).fit(table())
    assert forged(method, Z, sparse) > 10 * sparse.tol


def test_axes_that_are_not_orthonormal_or_not_principal_are_seen():
    Z = centred(table())
    S = Z.T @ Z
    sparse = SparsePCA(K, formulation="regression", solver="one-shot", random_state=0).fit(table())
    A, B = sparse.result_.value["A"], sparse.result_.value["B"]
    measure = partial(certificates.regression_stationarity, alpha=sparse.alpha_, ridge=1e-6 * np.linalg.eigvalsh(S)[-1])
    for wrong in (1.01 * A, A @ np.array([[0.8, 0.6], [-0.6, 0.8]])):
        assert measure(wrong, B, S @ wrong, S @ B, fixed=True) > 1e-3
    assert measure(1.01 * A, B, S @ A * 1.01, S @ B) > 1e-3


def test_loadings_below_zero_are_no_nonnegative_answer():
    X = np.diag([3.0, 2.0])
    Y, D = -np.eye(2), -np.diag([2.0, 1.0])
    assert certificates.dictionary_kkt(X.T @ Y, X @ D, Y, D, alpha=1.0) == (0.0, 0.0)
    assert certificates.dictionary_kkt(X.T @ Y, X @ D, Y, D, alpha=1.0, nonnegative=True)[0] == np.inf


@pytest.mark.parametrize("kind", ["schur", "projection", "generalised", "hotelling"])
def test_what_components_leave_is_what_deflated_matrices_are(kind):
    S = np.cov(table().T)
    sparse = SparsePCA(4, formulation="constrained", deflation=kind, random_state=0).fit_covariance(S)
    V = sparse.result_.value["V"]
    images, taken, shifts = certificates.constrained.deflated_images(lambda V: S @ V, V, kind)
    for j in range(4):
        left = sparse.deflated_covariance(S, j)
        assert np.allclose(images[:, j], left @ V[:, j], atol=1e-12 * np.trace(S))
        assert np.trace(S) - taken[:j].sum() == pytest.approx(np.trace(left))
        assert np.linalg.eigvalsh(left)[0] + shifts[j] > -1e-12 * np.trace(S)


@pytest.mark.parametrize("kind", ["schur", "projection", "generalised", "hotelling"])
def test_zeros_are_an_answer_only_where_nothing_is_left(kind):
    x = np.array([3.0, -2.0, 1.0]) / np.sqrt(14)
    S, V = 5 * np.outer(x, x), np.column_stack([x, np.zeros(3)])
    measure = partial(certificates.constrained_stationarity, bounds=1.7, kind=kind)
    assert measure(lambda V: S @ V, V, squares=np.diag(S)).max() < 1e-7
    more = S + np.diag([0.0, 0.0, 1e-3])
    assert measure(lambda V: more @ V, V, squares=np.diag(more))[1] == 1.0


def test_columns_that_tie_are_no_reason_to_move():
    """Which of the tied columns is chosen depends on the last digit of a product; all are as good."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(60, 1)), rng.normal(size=(60, 1))
    X = first + second * (np.arange(P) > 3)
    sparse = SparsePCA(1, formulation="constrained", bound=1.2, scale=True, random_state=0).fit(X)
    assert sparse.certificate_.holds


OPTIMISED = {
    "l1": {"penalty": L1(40.0)},
    "huber": {"loss": Huber(20.0)},
    "huber and l1": {"loss": Huber(20.0), "penalty": L1(10.0)},
}


@pytest.mark.parametrize("data", ["plain", "offset", "scales"])
@pytest.mark.parametrize("what", OPTIMISED)
def test_components_by_optimisation(what, data):
    X, how = TABLES[data], OPTIMISED[what]
    pca = PCA(K, solver="optimize", random_state=0, max_iter=5000, **how).fit(X)
    assert pca.certificate_.holds
    assert_the_same(pca.certificate_.residual, of_optimize(centred(X), pca))
    assert pca.certificate_.residual == pca.certificate_.details["residuals"].max()
    changed = with_one_entry_changed(pca.result_.value["V"])
    assert of_optimize(centred(X), pca, changed) > 10 * pca.tol
    terms = {"loss": how.get("loss", Squared()), "penalty": how.get("penalty", Zero())}
    rows, total = Centered(as_rows(X), X.mean(axis=0)), (centred(X) ** 2).sum()
    assert certificates.reconstruction_steps(rows, changed, total=total, **terms).max() > 10 * pca.tol


@pytest.mark.parametrize("data", ["plain", "offset", "scales"])
def test_canonical_vectors(data):
    X, Y = TABLES[data], table(5, p=9)
    Y[:, 2] += (centred(X) / X.std(axis=0))[:, 4]
    cca = SparseCCA(alpha_x=0.2, alpha_y=0.1).fit(X, Y)
    assert cca.certificate_.holds
    U, V = (centred(M) / M.std(axis=0, ddof=1) for M in (X, Y))
    assert_the_same(cca.certificate_.residual, of_canonical(U, V, cca))
    changed = with_one_entry_changed(cca.x_weights_)
    assert of_canonical(U, V, cca, changed) > 10 * cca.tol
    weights = {"alpha_x": 0.2, "alpha_y": 0.1}
    assert certificates.canonical_stationarity(U, V, changed, cca.y_weights_, **weights) > 10 * cca.tol


def two_groups(missing=0.0):
    rng = np.random.default_rng(3)
    groups = np.arange(200) % 2
    W = 2 * rng.normal(size=(2, 5, 1))
    X = W[groups, :, 0] * rng.normal(size=(200, 1)) + groups[:, None] + 0.8 * rng.normal(size=(200, 5))
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("units", [1.0, 1e-120])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_mixtures(offset, units):
    X = two_groups()
    mixture = ProbabilisticPCAMixture(1, random_state=0).fit((X + offset) * units)
    assert mixture.certificate_.holds
    assert "one further step" in str(mixture.certificate_)
    if units == 1.0:
        assert_the_same(mixture.certificate_.residual, of_mixture(X + offset, mixture), rounding=1e-12)
        changed = mixture.result_.value["W"].copy()
        changed[0, np.argmax(np.abs(changed[0, :, 0])), 0] *= 1.01
        assert of_mixture(X + offset, mixture, changed) > mixture.tol


def test_mixtures_with_missing_cells():
    X = two_groups(missing=0.2)
    mixture = ProbabilisticPCAMixture(1, random_state=0).fit(X)
    assert 0 <= mixture.certificate_.residual <= mixture.certificate_.details["estimated gain"] <= mixture.tol


def test_mixtures_that_were_ended_early_are_not_measured():
    """One step may gain little though many more would gain much: EM's own estimate stands."""
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        mixture = ProbabilisticPCAMixture(1, random_state=0, n_init=1, max_iter=2).fit(two_groups(missing=0.2))
    assert not mixture.certificate_.holds
    assert "as estimated" in str(mixture.certificate_)


def test_a_step_of_em_from_a_worse_model_gains():
    def expect(mean):
        return 6.0, -0.5 * (mean - 3.0) ** 2

    assert likelihood.step_gain(expect, lambda total, mean: total / 2, 5.0, cells=4) == 0.5


# --- solvers that lie -----------------------------------------------------------------------------


def liar(solver):
    """The solver, but for its first state, which it calls the answer."""

    def solve(*args, **kwargs):
        yield replace(next(solver(*args, **kwargs)), residual=0.0)

    return solve


def fit_cca():
    rng = np.random.default_rng(0)
    return SparseCCA(2).fit(rng.normal(size=(60, 20)), rng.normal(size=(60, 30)))


LIARS = {
    "dictionary": (dictionary, "dictionary", lambda: SparsePCA(K, formulation="dictionary", random_state=0)),
    "constrained": (
        constrained_solver,
        "constrained",
        lambda: SparsePCA(1, formulation="constrained", random_state=0, bound=2.0),
    ),
    "canonical": (canonical_solver, "alternate", None),
    "l1": (optimize_solver, "optimize", lambda: PCA(1, solver="optimize", random_state=0, penalty=L1(40.0))),
    "huber": (optimize_solver, "optimize", lambda: PCA(1, solver="optimize", random_state=0, loss=Huber(2.0))),
    "mixture": (mixture_solver, "em", lambda: ProbabilisticPCAMixture(1, n_init=1, random_state=0)),
}


def assert_found_out(fitted):
    assert not fitted.certificate_.holds
    assert fitted.certificate_.residual > fitted.tol
    assert fitted.result_.status.code == "no progress"
    assert f"{fitted.certificate_.residual:.1e}, above tol" in fitted.result_.status.sentence


@pytest.mark.parametrize("method", LIARS)
def test_a_solver_that_lies_is_found_out(method, monkeypatch):
    module, name, make = LIARS[method]
    monkeypatch.setattr(module, name, liar(getattr(module, name)))
    X = two_groups(missing=0.3) if method == "mixture" else table()
    with pytest.warns(ConvergenceWarning, match="above tol"):
        fitted = fit_cca() if make is None else make().fit(X)
    assert_found_out(fitted)


@pytest.mark.parametrize("solver", ["block", "amanpg", "one-shot"])
def test_a_regression_that_lies_is_found_out(solver, monkeypatch):
    monkeypatch.setitem(regression.SOLVERS, solver, liar(regression.SOLVERS[solver]))
    # Of weights that differ no start leads to the answer within a state.
    how = {"alpha_share": np.linspace(0.1, 0.15, K), "solver": solver, "random_state": 0, "tol": 1e-9}
    with pytest.warns(ConvergenceWarning, match="above tol"):
        sparse = SparsePCA(K, formulation="regression", **how).fit(table())
    assert_found_out(sparse)


@pytest.mark.parametrize("formulation", ["regression", "constrained"])
def test_a_search_for_nonzeros_is_measured_once(formulation, monkeypatch):
    module, calls = {"regression": regression, "constrained": constrained}[formulation], []
    monkeypatch.setattr(module, "measured", lambda *args: calls.append(1) or measured(*args))
    sparse = SparsePCA(K, formulation=formulation, nonzeros=4, random_state=0).fit(table())
    assert sparse.certificate_.holds
    assert len(calls) == 1


def test_cardinality_does_not_take_the_solvers_word(monkeypatch):
    """The variances that a certificate states are those of the answer, whatever the search kept of them."""
    finished = one_by_one.finished

    def boasting(A, value, v, height, *more):
        return finished(A, value, v, height, *more) | {"captured": np.append(value["captured"], 2 * height)}

    monkeypatch.setattr(one_by_one, "finished", boasting)
    Z = centred(table())
    sparse = SparsePCA(1, nonzeros=4, random_state=0).fit(table())
    v = sparse.components_[0]
    assert np.isclose(sparse.certificate_.lower[0], v @ Z.T @ Z @ v / (N - 1), rtol=1e-12)
