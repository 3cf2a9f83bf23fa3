"""The dictionary form of sparse PCA: published values, conditions of optimality written out, descent."""

import importlib.util
import itertools
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.ndimage import label
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import SparsePCA
from sklearn.exceptions import ConvergenceWarning

import princomp
import princomp.datasets
from helpers import for_each_component
from princomp import certificates
from princomp._compiled.dictionary_sweeps import lasso_rows
from princomp.data import as_rows, statistics
from princomp.penalties import L1, Groups, NonNegative, as_penalty
from princomp.result import run
from princomp.solvers import dictionary_blocks
from princomp.solvers.dictionary import dictionary
from princomp.solvers.dictionary_blocks import Terms, column_sweeps
from princomp.solvers.dictionary_start import alpha_max, alpha_max_of, factor_pays, recover, start
from princomp.solvers.scatter import Data, Factored, Passes, factor


def fit(X, k, *, tol=1e-8, max_iter=2000, Y=None, D=None, **how):
    terms = Terms(**for_each_component(k, **how))
    data = X if isinstance(X, Factored) else Data(X)
    begin = start(data, k, terms, np.random.default_rng(0), Y=Y, D=D)
    return run(partial(dictionary, data, terms=terms), begin, tol=tol, max_iter=max_iter)


def wine():
    X = load_wine().data
    return (X - X.mean(axis=0)) / X.std(axis=0)


def noise(n, p, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, p))
    X -= X.mean(axis=0)
    X.flags.writeable = False  # nobody may write into the data
    return X


def objective(X, Y, D, alpha=0.0, code_alpha=0.0):
    penalties = alpha * np.abs(D).sum(axis=0) + code_alpha * np.abs(Y).sum(axis=0)
    return 0.5 * np.sum((X - Y @ D.T) ** 2) + np.sum(penalties)


def l1_violation(slopes, A, alpha):
    """By the definition, entry by entry."""
    worst = 0.0
    for (_, j), slope, a in zip(np.ndindex(*A.shape), slopes.ravel(), A.ravel(), strict=True):
        weight = np.broadcast_to(alpha, A.shape[1])[j]
        wrong = max(abs(slope) - weight, 0.0) if a == 0 else abs(slope - weight * np.sign(a))
        worst = max(worst, wrong / weight)
    return worst


def ball_violation(slopes, Y, radius=1.0):
    """Codes inside the ball have no slope, those on the sphere have one that points straight outwards."""
    outwards = np.maximum(np.einsum("ij,ij->j", Y, slopes), 0.0) / radius**2
    on_sphere = np.linalg.norm(Y, axis=0) >= radius * (1 - 1e-12)
    return np.linalg.norm(slopes - Y * np.where(on_sphere, outwards, 0.0), axis=0).max()


# --- values ----------------------------------------------------------------------------------------

WINE = [(1, 479.444115258, [6, 9, 4, 8]), (3, 738.829618547, [5, 5, 3, 4]), (6, 990.076494476, [5, 3, 2, 2])]


@pytest.mark.parametrize(("alpha", "expected", "nonzeros"), WINE)
def test_wine(alpha, expected, nonzeros):
    X = wine()
    result = fit(X, 4, alpha=alpha)
    Y, D = result.value["Y"], result.value["D"]
    assert result.objective == pytest.approx(expected, rel=1e-10)
    assert objective(X, Y, D, alpha) == pytest.approx(result.objective, rel=1e-12)
    assert (D != 0).sum(axis=0).tolist() == nonzeros
    assert np.linalg.norm(Y, axis=0) == pytest.approx(1.0, abs=1e-12)
    by_scatter = fit(factor(X.T @ X), 4, alpha=alpha)
    assert by_scatter.objective == pytest.approx(result.objective, rel=1e-12)
    assert np.abs(np.abs(by_scatter.value["D"]) - np.abs(D)).max() <= 1e-6


@pytest.mark.parametrize(("data", "k"), [("wine", 4), ("digits", 3), ("noise", 5)])
def test_never_above_scikit_learn(data, k):
    X = {"wine": wine, "digits": lambda: load_digits().data[:150], "noise": lambda: noise(120, 60)}[data]()
    X = X - X.mean(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = SparsePCA(k, alpha=1, method="cd", random_state=0).fit(X).error_[-1]
    ours = fit(X, k, alpha=1, tol=1e-5)
    assert objective(X, ours.value["Y"], ours.value["D"], 1) <= theirs * (1 + 1e-9)
    assert ours.n_iter <= 600  # a slow-down would show


def test_without_a_penalty_it_is_pca():
    X = noise(50, 20)
    s = np.linalg.svd(X, compute_uv=False)
    result = fit(X, 3)
    assert result.objective == pytest.approx(0.5 * (s[3:] ** 2).sum(), rel=1e-10)


# --- optimality --------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.3, [0.5, 1.0, 2.0]])
@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_conditions_of_the_ball(alpha, radius):
    X = noise(60, 25)
    result = fit(X, 3, alpha=alpha, radius=radius)
    Y, D = result.value["Y"], result.value["D"]
    assert l1_violation(X.T @ Y - D @ (Y.T @ Y), D, alpha) <= 2e-8
    assert ball_violation(X @ D - Y @ (D.T @ D), Y, radius) <= 2e-8 * np.linalg.norm(X @ D, axis=0).max()
    assert np.linalg.norm(Y, axis=0) == pytest.approx(radius, rel=1e-12)
    assert objective(X, Y, D, alpha) == pytest.approx(result.objective, rel=1e-12)
    weights = np.broadcast_to(alpha, 3)
    recomputed = certificates.dictionary_kkt(X.T @ Y, X @ D, Y, D, alpha=weights, radius=radius)
    assert max(recomputed) == pytest.approx(result.certificate.residual, abs=1e-10)


def test_the_radius_is_a_matter_of_scale():
    X = noise(60, 25)
    assert fit(X, 3, alpha=2.0, radius=2.0).objective == pytest.approx(fit(X, 3, alpha=1.0).objective, rel=1e-10)


def test_both_penalties_have_no_ball():
    X = wine()
    result = fit(X, 4, alpha=2.0, code_alpha=2.0)
    Y, D = result.value["Y"], result.value["D"]
    assert l1_violation(X.T @ Y - D @ (Y.T @ Y), D, 2.0) <= 2e-8
    assert l1_violation(X @ D - Y @ (D.T @ D), Y, 2.0) <= 2e-8
    assert np.abs(Y).sum(axis=0) == pytest.approx(np.abs(D).sum(axis=0), rel=1e-6)  # else a factor would gain
    assert np.linalg.norm(Y, axis=0).min() > 1.1
    assert objective(X, Y, D, 2.0, 2.0) == pytest.approx(result.objective, rel=1e-12)
    assert (Y == 0).any()


def test_a_penalty_on_the_codes_alone_is_the_problem_of_the_transpose():
    X = noise(40, 15)
    on_codes, swapped = fit(X, 3, code_alpha=1.0), fit(X.T, 3, alpha=1.0)
    assert on_codes.value["Y"].shape == (40, 3)
    assert on_codes.objective == pytest.approx(swapped.objective, rel=1e-10)
    assert np.linalg.norm(on_codes.value["D"], axis=0) == pytest.approx(1.0, abs=1e-12)
    assert (on_codes.value["Y"] == 0).any()


@pytest.mark.parametrize(("loadings", "codes"), [(True, False), (False, True), (True, True)])
def test_nonnegative(loadings, codes):
    X = wine()
    result = fit(X, 4, alpha=2.0, nonnegative=loadings, nonnegative_codes=codes)
    Y, D = result.value["Y"], result.value["D"]
    assert result.certificate.residual <= 1e-8
    assert not (loadings and (D < 0).any())
    assert not (codes and (Y < 0).any())
    assert D.any(axis=0).all()
    assert objective(X, Y, D, 2.0) > fit(X, 4, alpha=2.0).objective
    # No small feasible step leads lower.
    rng = np.random.default_rng(0)
    for _ in range(200):
        U, V = Y + 1e-4 * rng.standard_normal(Y.shape), D + 1e-4 * rng.standard_normal(D.shape) * (D != 0)
        U, V = np.maximum(U, 0) if codes else U, np.maximum(V, 0) if loadings else V
        U /= np.maximum(np.linalg.norm(U, axis=0), 1.0)
        assert objective(X, U, V, 2.0) >= result.objective * (1 - 1e-12)


def test_any_penalty_of_columns():
    X = wine()
    assert fit(X, 4, penalty=L1(2.0)).objective == pytest.approx(fit(X, 4, alpha=2.0).objective, rel=1e-9)
    groups = Groups(2.0, [range(5), range(5, 9), range(9, 13)])
    result = fit(X, 3, penalty=groups)
    Y, D = result.value["Y"], result.value["D"]
    by_group = np.array([D[list(group)].any(axis=0) for group in groups.groups])
    assert not by_group.all()
    value = 0.5 * np.sum((X - Y @ D.T) ** 2) + sum(groups.value(d) for d in D.T)
    assert value == pytest.approx(result.objective, rel=1e-12)
    G = X.T @ Y - D @ (Y.T @ Y)
    for group, weight in zip(groups.groups, np.sqrt([5, 4, 4]), strict=True):
        for slope, d in zip(G[list(group)].T, D[list(group)].T, strict=True):
            if d.any():
                assert np.abs(slope - 2.0 * weight * d / np.linalg.norm(d)).max() <= 1e-5
            else:
                assert np.linalg.norm(slope) <= 2.0 * weight + 1e-5


GROUPINGS = {
    "disjoint": [[0, 1, 2, 3], [4, 5], [6, 7, 8], [9, 10, 11]],
    "tree": [list(range(12)), [0, 1, 2, 3, 4, 5], [0, 1], [4], [6, 7, 8], [9, 10, 11]],
    "overlapping": [list(range(i, i + 4)) for i in range(9)],
}


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("name", GROUPINGS)
def test_groups_through_the_class(name, nonnegative):
    X, groups = noise(40, 12, seed=3) + 2 * np.outer(noise(40, 1, seed=4), np.arange(12) < 4), GROUPINGS[name]
    X = X - X.mean(axis=0)
    how = {"alpha_share": 0.15, "groups": groups, "nonnegative": nonnegative, "tol": 1e-7, "random_state": 0}
    model = princomp.SparsePCA(2, formulation="dictionary", **how).fit(X)
    Y, D, alpha = model.result_.value["Y"], model.result_.value["D"], model.alpha_[0]
    penalty = as_penalty(alpha, groups, nonnegative=nonnegative)
    assert model.certificate_.holds
    again = certificates.dictionary_kkt(X.T @ Y, X @ D, Y, D, nonnegative=nonnegative, penalty=penalty)
    assert max(again) <= 1.1e-7
    assert 0 < (D != 0).sum() < D.size
    assert not (nonnegative and (D < 0).any())
    value = 0.5 * np.sum((X - Y @ D.T) ** 2) + penalty.value(D)
    assert model.result_.objective == pytest.approx(value, rel=1e-12)
    assert ball_violation(X @ D - Y @ (D.T @ D), Y) <= 1e-6 * np.linalg.norm(X @ D, axis=0).max()
    rng = np.random.default_rng(0)
    for _ in range(200):  # no small step of the loadings leads lower: some entries, or a group at a time
        moved = rng.random(D.shape) < 0.3
        if rng.random() < 0.5:
            moved[:] = np.isin(np.arange(12), groups[rng.integers(len(groups))])[:, None]
        V = D + 10.0 ** rng.uniform(-4, 0) * rng.standard_normal(D.shape) * moved
        V = np.maximum(V, 0.0) if nonnegative else V
        assert 0.5 * np.sum((X - Y @ V.T) ** 2) + penalty.value(V) >= value * (1 - 1e-10)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("name", [*GROUPINGS, None])
def test_the_weight_from_which_on_nothing_is_left(name, nonnegative):
    X, groups = noise(50, 12, seed=5) + 2 * np.outer(noise(50, 1, seed=4), np.arange(12) < 4), GROUPINGS.get(name)
    X = X - X.mean(axis=0)
    limit = alpha_max_of(Data(X), as_penalty(1.0, groups, nonnegative=nonnegative), radius=2.0)
    for share, some in ((0.8, True), (1.2, False)):
        penalty = as_penalty(share * limit, groups, nonnegative=nonnegative)
        assert fit(X, 1, penalty=penalty, nonnegative=nonnegative, radius=2.0, tol=1e-2).value["D"].any() == some
    if groups is None:
        assert limit == pytest.approx(alpha_max(Data(X), radius=2.0), rel=2e-3)
    if name == "disjoint" and not nonnegative:
        exact = max(2 * np.linalg.norm(X[:, group], 2) / len(group) ** 0.5 for group in groups)
        assert limit == pytest.approx(exact, rel=5e-3)
    assert alpha_max_of(Data(X), as_penalty(1.0, [[3, 4], [4, 5]])) > 0  # most features are not penalised


@pytest.mark.parametrize(
    "how",
    [
        {"code_alpha": 0.3},
        {"code_alpha": 0.3, "alpha": 0.4},
        {"alpha": 0.4, "nonnegative": True},
        {"code_alpha": 0.3, "alpha": 0.4, "nonnegative": True},
        {"alpha": 1.0, "groups": GROUPINGS["overlapping"]},
    ],
    ids=str,
)
@pytest.mark.parametrize("k", [3, 17])
def test_certificates_through_the_class(how, k):
    """Each kind of term, also with more components than features: conditions recomputed from data and answer."""
    X = noise(30, 12, seed=6)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* components are zero")  # some of 17 may be: they are in excess
        model = princomp.SparsePCA(k, formulation="dictionary", tol=1e-7, random_state=0, **how).fit(X)
    Y, D = model.result_.value["Y"], model.result_.value["D"]
    assert model.certificate_.holds
    terms = {name: how[name] for name in ("alpha", "code_alpha", "nonnegative") if name in how}
    if "groups" in how:
        terms = {"penalty": as_penalty(how["alpha"], how["groups"])}
    arguments = (X.T @ Y, X @ D, Y, D)
    if "alpha" not in how:  # the ball is that of the loadings: Y and D change places
        arguments, terms = (X @ D, X.T @ Y, D, Y), {"alpha": how["code_alpha"]}
        assert np.linalg.norm(D, axis=0).max() <= 1 + 1e-9
    assert max(certificates.dictionary_kkt(*arguments, **terms)) <= 1.1e-7
    slopes, codes = X.T @ Y - D @ (Y.T @ Y), X @ D - Y @ (D.T @ D)
    if "alpha" in how and "groups" not in how and not how.get("nonnegative"):
        assert l1_violation(slopes, D, how["alpha"]) <= 1.1e-7
    if "code_alpha" in how:
        assert l1_violation(codes, Y, how["code_alpha"]) <= 1.1e-7
    else:
        # Along the sphere, not between projections: the two measures differ by a small factor.
        assert ball_violation(codes, Y) <= 3e-7 * np.linalg.norm(X @ D, axis=0).max()


def pictures():
    """The module that draws the pictures of the documentation."""
    path = Path(__file__).parents[2] / "docs" / "make_pictures.py"
    spec = importlib.util.spec_from_file_location("make_pictures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [0, 2])
def test_overlapping_windows_find_contiguous_parts(seed):
    """The picture of the documentation: every part in one piece, and closer to what was planted than with l1."""
    drawing = pictures()
    X, planted = drawing.planted_parts(seed=seed)
    pieces, overlaps = {}, {}
    for name, model in drawing.fit_parts(X).items():
        used = model.components_ != 0
        pieces[name] = [label(one.reshape(16, 16), np.ones((3, 3)))[1] for one in used]
        shared = [[(one & (part > 0)).sum() / (one | (part > 0)).sum() for one in used] for part in planted]
        overlaps[name] = np.max(shared, axis=1)
    assert pieces["sparse, overlapping windows"] == [1, 1, 1, 1]
    assert np.mean(pieces["sparse, l1"]) >= 3
    assert np.median(overlaps["sparse, overlapping windows"]) >= 0.85
    assert np.mean(overlaps["sparse, overlapping windows"]) >= np.mean(overlaps["sparse, l1"]) + 0.1


def test_most_variance_and_least_error_differ_as_the_documentation_says():
    curves = pictures().best_supports(princomp.datasets.load_pitprops().correlation)
    variance, error = curves["most variance"], curves["least error"]
    shown = [variance[3, 0], 13 - variance[3, 1], error[3, 0], 13 - error[3, 1]]
    page = (Path(__file__).parents[2] / "docs" / "sparse_pca.md").read_text(encoding="utf-8")
    assert all(f"{number:.2f}" in page for number in shown)
    assert variance[-1] == pytest.approx(error[-1], rel=1e-9)  # with all features: PCA


def test_the_certificate_sees_what_is_wrong():
    X = noise(30, 10)
    value = fit(X, 2, alpha=1.0).value
    Y, D = value["Y"], value["D"]

    def residuals(Y, D):
        return certificates.dictionary_kkt(X.T @ Y, X @ D, Y, D, alpha=1.0)

    assert max(residuals(Y, D)) <= 1e-8
    assert residuals(Y, 1.01 * D)[0] > 1e-3
    turned = Y + 0.01 * X[:, :2]
    assert residuals(turned / np.linalg.norm(turned, axis=0), D)[1] > 1e-3
    assert residuals(0.9 * Y, D)[1] > 1e-3  # inside the ball, and pulled outwards


# --- descent -------------------------------------------------------------------------------------------

VARIANTS = {
    "ball": {},
    "nonnegative": {"nonnegative": True},
    "nonnegative codes": {"nonnegative_codes": True},
    "both": {"code_alpha": 0.5},
    "codes": {"alpha": 0.0, "code_alpha": 0.5},
    "groups": {"penalty": Groups(0.5, [[0, 1], [2]])},
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(2, 12),
    st.integers(3, 12),
    st.integers(1, 15),
    st.floats(0.0, 4.0),
    st.sampled_from(sorted(VARIANTS)),
    st.integers(0, 10**6),
)
@example(n=2, p=3, k=13, alpha=0.0, variant="groups", seed=14)  # a step in columns that take no part
def test_the_objective_never_rises(n, p, k, alpha, variant, seed):
    X = Data(noise(n, p, seed) * 10 ** np.random.default_rng(seed).uniform(-2, 2))
    terms = Terms(**for_each_component(k, **{"alpha": alpha} | VARIANTS[variant]))
    begin = start(X, k, terms, np.random.default_rng(seed))
    states = list(itertools.islice(dictionary(X, begin, terms=terms), 25))
    objectives = np.array([state.objective for state in states])
    assert np.isfinite(objectives).all()
    assert (np.diff(objectives) <= 1e-12 * X.total).all()
    assert objectives[0] <= 0.5 * X.total * (1 + 1e-12) or terms.code_alpha is not None
    Y, D = (states[-1].value[name] for name in ("Y", "D"))
    if terms.code_alpha is None:
        assert np.linalg.norm(Y, axis=0).max() <= 1 + 1e-12
    assert not (terms.nonnegative and (D < 0).any())
    assert not (terms.nonnegative_codes and (Y < 0).any())


# --- columns that are zero -------------------------------------------------------------------------------


def test_from_alpha_max_on_everything_is_zero():
    X = wine()
    limit = alpha_max(Data(X))
    assert limit == pytest.approx(np.sqrt(178), rel=1e-12)
    above = fit(X, 4, alpha=limit * (1 + 1e-12))
    assert not above.value["D"].any()
    assert above.objective == pytest.approx(0.5 * np.sum(X**2), rel=1e-12)
    assert fit(X, 4, alpha=limit * (1 - 1e-3)).value["D"].any()
    assert alpha_max(Data(X), radius=2.0) == pytest.approx(2 * limit)
    assert not fit(X, 4, code_alpha=alpha_max(Data(X).T) * (1 + 1e-12)).value["Y"].any()


def test_a_dead_column_is_revived_if_that_pays():
    X = wine()
    first = fit(X, 4, alpha=3.0).value
    D, Y = first["D"].copy(), first["Y"].copy()
    D[:, 2] = Y[:, 2] = 0.0
    assert fit(X, 4, alpha=3.0, Y=Y, D=D).objective <= fit(X, 3, alpha=3.0).objective * (1 - 1e-3)
    # One feature explains all: a second column can only cost, and stays zero.
    single = np.outer(np.linspace(-1, 1, 30), [5.0, 0.0, 0.0])
    result = fit(single, 2, alpha=0.5)
    assert result.value["D"].any(axis=0).tolist() == [True, False]
    assert result.certificate.residual <= 1e-8


@pytest.mark.parametrize("how", [{"alpha": 0.5}, {"code_alpha": 0.5}, {"alpha": 0.3, "code_alpha": 0.3}])
def test_more_components_than_features(how):
    X = noise(30, 6)
    few, many = fit(X, 6, **how), fit(X, 11, **how)
    assert many.certificate.residual <= 1e-8
    assert many.value["D"].shape == (6, 11)
    assert many.objective <= few.objective * (1 + 1e-9)


def test_constant_data():
    result = fit(np.zeros((5, 3)), 2, alpha=1.0)
    assert (result.objective, result.certificate.residual) == (0.0, 0.0)


# --- other ways to hand over the data ----------------------------------------------------------------------


def test_a_factor_stands_for_the_data():
    X = noise(400, 12)
    X = np.hstack([X, X[:, :1]])  # singular, too
    direct = fit(X, 3, alpha=1.0)
    for R in (np.linalg.qr(X, mode="r"), factor(X.T @ X).X, X):
        result = fit(R, 3, alpha=1.0)
        Y, D = recover(Data(X), R, result.value["Y"], 1.0), result.value["D"]
        assert objective(X, Y, D, 1.0) == pytest.approx(direct.objective, rel=1e-10)
        assert max(certificates.dictionary_kkt(X.T @ Y, X @ D, Y, D, alpha=1.0)) <= 1e-6
        assert np.linalg.norm(Y, axis=0).max() <= 1 + 1e-12
    S = X.T @ X
    assert np.abs(factor(S).apply(np.eye(len(S))) - S).max() <= 1e-12 * np.abs(S).max()
    assert factor_pays(1797, 64, 10)
    assert not factor_pays(500, 1000, 10)


def test_sparse_rows_give_the_same():
    X = sp.random_array((80, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    rows = as_rows(X)
    centred = statistics.moments(rows).centered(rows)
    dense = X.toarray() - X.toarray().mean(axis=0)
    for how in ({"alpha": 0.5}, {"code_alpha": 0.2}):
        assert fit(Passes(centred), 3, **how).objective == pytest.approx(fit(dense, 3, **how).objective, rel=1e-9)


def test_warm_start():
    X = noise(100, 40)
    cold = fit(X, 4, alpha=1.0)
    warm = fit(X, 4, alpha=1.0, **{name: cold.value[name] for name in ("Y", "D")})
    assert warm.objective == pytest.approx(cold.objective, rel=1e-10)
    assert warm.n_iter <= 0.25 * cold.n_iter


# --- compiled loops --------------------------------------------------------------------------


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_compiled_loop_and_twin_agree(nonnegative, sweeps):
    rng = np.random.default_rng(sweeps)
    Y, X = rng.standard_normal((30, 6)), rng.standard_normal((30, 40))
    Y[:, 4] = 0.0
    P, Q, D, alpha = X.T @ Y, Y.T @ Y, rng.standard_normal((40, 6)), np.array([0, 1, 5, 2, 3, 30.0])
    nothing = np.zeros(6)
    before = D.copy()
    compiled = lasso_rows(P, Q, D, alpha, nonnegative=nonnegative, enough=nothing, sweeps=sweeps)
    each = [NonNegative(L1(weight)) if nonnegative else L1(weight) for weight in alpha]
    twin = column_sweeps(P, Q, D, each, enough=nothing, sweeps=sweeps)
    assert np.abs(compiled - twin).max() <= 1e-12
    assert ((compiled == 0) == (twin == 0)).all()
    assert np.array_equal(D, before)


def test_the_twin_alone_gives_the_same_fit(monkeypatch):
    compiled = fit(wine(), 4, alpha=3.0)
    monkeypatch.setattr(dictionary_blocks, "loops", lambda name: None)
    assert fit(wine(), 4, alpha=3.0).objective == pytest.approx(compiled.objective, rel=1e-10)
