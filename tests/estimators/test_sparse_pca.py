"""Sparse PCA by penalties: published numbers, agreement of inputs, edges, and scikit-learn's common checks."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import SparsePCA as Theirs
from sklearn.exceptions import ConvergenceWarning

from princomp import PCA, SparsePCA, load, save
from princomp.datasets import load_pitprops, load_wine

FORMULATIONS = ("dictionary", "regression", "constrained")
ZOU = [0.06, 0.16, 0.1, 0.5, 0.5, 0.5]


@pytest.fixture(scope="module")
def wine():
    X = load_wine().X
    return (X - X.mean(axis=0)) / X.std(axis=0)


# --- numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "objective", "nonzeros"),
    [(1, 479.444115258, [6, 9, 4, 8]), (3, 738.829618547, [5, 5, 3, 4]), (6, 990.076494476, [5, 3, 2, 2])],
)
def test_wine_dictionary(wine, alpha, objective, nonzeros):
    sparse = SparsePCA(4, alpha=alpha, tol=1e-8, random_state=0).fit(wine)
    assert sparse.result_.objective == pytest.approx(objective, rel=1e-9)
    assert sparse.nonzeros_.tolist() == nonzeros
    Y, D = sparse.result_.value["Y"], sparse.result_.value["D"]
    recomputed = 0.5 * np.sum((wine - Y @ D.T) ** 2) + alpha * np.abs(D).sum()
    assert recomputed == pytest.approx(objective, rel=1e-9)
    assert np.abs(np.linalg.norm(Y, axis=0) - 1).max() <= 1e-12
    theirs = Theirs(4, alpha=alpha, tol=1e-10, max_iter=3000, random_state=0).fit(wine)
    assert recomputed <= theirs.error_[-1] * (1 + 1e-9)


def test_breast_cancer_regression():
    """From the leading eigenvectors alone -20.2966 would be reached, a saddle's worth above."""
    X = load_breast_cancer().data
    X = (X - X.mean(axis=0)) / np.linalg.norm(X - X.mean(axis=0), axis=0)
    sparse = SparsePCA(5, formulation="regression", alpha=0.1, ridge=1.0).fit(X)
    A, B = sparse.result_.value["A"], sparse.result_.value["B"]
    Z = X @ B
    recomputed = (Z**2).sum() - 2 * ((X @ A) * Z).sum() + (B**2).sum() + 0.1 * np.abs(B).sum()
    assert recomputed <= -20.3228
    assert sparse.certificate_.holds


@pytest.mark.parametrize("solver", ["block", "amanpg"])
@pytest.mark.parametrize(
    ("ridge", "value"), [(1e-6, -9.110125982), (0.01, -9.062528493), (1, -6.302189283), (np.inf, -25.717683258)]
)
def test_pitprops_regression(ridge, value, solver):
    S = load_pitprops().correlation
    before = S.copy()
    how = {"solver": solver, "tol": 1e-7, "max_iter": 100_000, "random_state": 0}
    sparse = SparsePCA(6, alpha=ZOU, ridge=ridge, **how).fit_covariance(S)
    assert (before == S).all()
    A, B = sparse.result_.value["A"], sparse.result_.value["B"]
    assert np.abs(A.T @ A - np.eye(6)).max() <= 1e-12
    penalty = (np.abs(B).sum(axis=0) * ZOU).sum()
    if np.isinf(ridge):
        F = -2 * np.trace(A.T @ S @ B) + np.sum(B**2) + penalty
    else:
        F = np.trace(B.T @ S @ B) - 2 * np.trace(A.T @ S @ B) + ridge * np.sum(B**2) + penalty
    assert pytest.approx(value, abs=1e-6) == F
    assert sparse.result_.objective == pytest.approx(F, abs=1e-9)
    if ridge == 1e-6:
        assert sparse.nonzeros_.tolist() == [7, 4, 4, 1, 1, 1]
        shares = 100 * sparse.explained_variance_ratio_
        assert np.abs(shares - [28.01, 13.97, 13.31, 7.44, 6.80, 6.23]).max() <= 0.006


def test_one_shot_regresses_the_scores(wine):
    pca = PCA(2).fit(wine)
    ridge = SparsePCA(2, solver="one-shot", alpha=0.0, ridge=5.0, tol=1e-10, max_iter=10_000, random_state=0).fit(wine)
    # The ridge regression of a principal component's scores is parallel to it.
    assert np.abs(np.abs(np.sum(ridge.components_ * pca.components_, axis=1)) - 1).max() <= 1e-9
    lasso = SparsePCA(2, solver="one-shot", alpha_share=0.3, random_state=0).fit(wine)
    assert (lasso.nonzeros_ < 13).all()
    with pytest.raises(ValueError, match="solver must be one of block, amanpg, one-shot"):
        SparsePCA(2, solver="fast").fit(wine)


def test_constrained_at_its_ends(wine):
    no_bound = SparsePCA(3, bound=np.sqrt(13), tol=1e-9).fit(wine)
    pca = PCA(3).fit(wine)
    assert np.abs(np.abs(no_bound.components_ @ pca.components_.T) - np.eye(3)).max() <= 1e-6
    assert (SparsePCA(3, bound=1.0).fit(wine).nonzeros_ == 1).all()
    some = SparsePCA(3, bound=2.0).fit(wine)
    assert np.abs(some.components_).sum(axis=1).max() <= 2 + 1e-9
    assert np.abs(np.linalg.norm(some.components_, axis=1) - 1).max() <= 1e-12


def test_no_penalty_is_pca(wine):
    pca = PCA(3).fit(wine)
    sparse = SparsePCA(3, formulation="regression", alpha=0.0, tol=1e-9, random_state=0).fit(wine)
    assert np.abs(np.abs(sparse.components_ @ pca.components_.T) - np.eye(3)).max() <= 1e-6
    for kind in ("adjusted", "subspace", "reconstruction"):
        assert np.allclose(sparse.explained_variance(kind), pca.explained_variance_, rtol=1e-6)


# --- inputs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_covariance_and_data_agree(wine, formulation):
    how = {"formulation": formulation, "tol": 1e-10, "random_state": 0}
    if formulation != "constrained":
        how["alpha_share"] = 0.3
    data = SparsePCA(3, **how).fit(wine)
    covariance = SparsePCA(3, **how).fit_covariance(np.cov(wine.T), n_samples=len(wine))
    assert np.abs(data.components_ - covariance.components_).max() <= 1e-8
    assert np.allclose(data.explained_variance_, covariance.explained_variance_, rtol=1e-8)
    assert data.result_.objective == pytest.approx(covariance.result_.objective, rel=1e-8)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_storages_agree(formulation, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5)) @ rng.standard_normal((5, 40)) + 0.5 * rng.standard_normal((300, 40))
    X[np.abs(X) < 1.5] = 0.0
    np.save(tmp_path / "x.npy", X)
    how = {"formulation": formulation, "tol": 1e-9, "random_state": 0, "max_iter": 5000}
    expected = SparsePCA(2, **how).fit(X)
    for given in (
        sp.csr_array(X),
        [X[:100], X[100:]],
        np.load(tmp_path / "x.npy", mmap_mode="r"),
        np.asfortranarray(X),
    ):
        found = SparsePCA(2, **how).fit(given)
        assert np.abs(found.components_ - expected.components_).max() <= 1e-6
    Z = expected.transform(X)
    assert np.allclose(expected.transform(X[:1]), Z[:1], rtol=1e-12, atol=1e-12)
    assert np.allclose(expected.transform(sp.csr_array(X)), Z)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_float32_names_and_scores(wine, formulation):
    import pandas as pd

    frame = pd.DataFrame(wine.astype(np.float32), columns=load_wine().names)
    sparse = SparsePCA(2, formulation=formulation, random_state=0).fit(frame)
    assert sparse.components_.dtype == np.float32
    assert sparse.transform(frame).dtype == np.float32
    assert list(sparse.feature_names_in_) == list(load_wine().names)
    V = sparse.components_.astype(float)
    projection = clone(sparse).set_params(scores="projection").fit(frame)
    squares = clone(sparse).set_params(scores="least-squares").fit(frame)
    assert np.allclose(projection.transform(frame), (wine - wine.mean(axis=0)) @ V.T, atol=1e-4)
    back = [est.inverse_transform(est.transform(frame)) for est in (projection, squares)]
    assert np.allclose(*back, atol=1e-4)


@pytest.mark.parametrize("scores", ["projection", "least-squares"])
@pytest.mark.parametrize("formulation", [*FORMULATIONS, "cardinality"])
def test_what_inverse_transform_explains(wine, formulation, scores):
    """The projection on the span of the loadings, whichever the scores; the regression on the scores has more."""
    sparse = SparsePCA(3, formulation=formulation, scores=scores, random_state=0).fit(wine)
    centred, freedom = wine - wine.mean(axis=0), len(wine) - 1
    total = np.sum(centred**2) / freedom
    error = np.sum((wine - sparse.inverse_transform(sparse.transform(wine))) ** 2) / freedom
    assert error == pytest.approx(total - sparse.explained_variance("subspace").sum(), rel=1e-9)
    Q = np.linalg.qr(sparse.components_.T)[0]
    assert error == pytest.approx(np.sum((centred - centred @ Q @ Q.T) ** 2) / freedom, rel=1e-9)
    Z = sparse.transform(wine)
    regression = np.sum((centred - Z @ np.linalg.lstsq(Z, centred)[0]) ** 2) / freedom
    assert regression == pytest.approx(total - sparse.explained_variance("reconstruction").sum(), rel=1e-9)
    assert regression < error


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("size", [1e150, 1e-150])
def test_scale_of_the_data(wine, formulation, size):
    how = {"formulation": formulation, "random_state": 0}
    usual, scaled = SparsePCA(2, **how).fit(wine), SparsePCA(2, **how).fit(size * wine)
    assert np.abs(usual.components_ - scaled.components_).max() <= 1e-4
    assert np.allclose(usual.explained_variance_ratio_, scaled.explained_variance_ratio_, rtol=1e-4)


# --- sparsity -----------------------------------------------------------------------------------------


def planted(seed=7):
    rng = np.random.RandomState(seed)
    V = np.zeros((10, 1000))
    for j in range(10):
        V[j, 30 * j : 30 * j + 30] = rng.choice([-1, 1], 30) / np.sqrt(30)
    return (rng.randn(500, 10) * np.linspace(12, 6, 10)) @ V + rng.randn(500, 1000), V


def f1(components, V):
    """Of supports, components matched to the planted ones."""
    scores = []
    for v in V:
        best = max(components, key=lambda c: abs(c @ v))
        both = ((best != 0) & (v != 0)).sum()
        scores.append(2 * both / ((best != 0).sum() + (v != 0).sum()))
    return float(np.mean(scores))


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_planted_supports(formulation):
    X, V = planted()
    sparse = SparsePCA(10, formulation=formulation, nonzeros=30, random_state=0).fit(X)
    assert f1(sparse.components_, V) >= 0.99


def weaker(formulation, alpha, factor):
    """A weight that allows more by this share."""
    return {"bound": alpha * factor} if formulation == "constrained" else {"alpha": alpha / factor}


@pytest.mark.parametrize(
    ("formulation", "nonzeros"), [("dictionary", 4), ("dictionary", 6), ("regression", 6), ("constrained", 4)]
)
def test_the_loosest_weight_that_leaves_so_many(wine, formulation, nonzeros):
    how = {"formulation": formulation, "random_state": 0}
    sparse = SparsePCA(1, nonzeros=nonzeros, **how).fit(wine)
    assert sparse.nonzeros_[0] == nonzeros
    same = SparsePCA(1, **weaker(formulation, sparse.alpha_, 1.0), **how).fit(wine)
    assert same.nonzeros_[0] == nonzeros
    for factor in (1.03, 1.1, 1.3):
        assert SparsePCA(1, **weaker(formulation, sparse.alpha_, factor), **how).fit(wine).nonzeros_[0] > nonzeros


@pytest.mark.parametrize(("formulation", "variance"), [("constrained", 2.99), ("dictionary", 2.99)])
def test_four_features_of_the_wines(formulation, variance):
    """The best four features have 3.01; a weight tighter than it need be loses up to an eighth of that."""
    X = load_wine().X
    best = SparsePCA(1, nonzeros=4, scale=True, certify=True).fit(X).explained_variance_[0]
    sparse = SparsePCA(1, formulation=formulation, nonzeros=4, scale=True, random_state=0).fit(X)
    assert variance <= sparse.explained_variance_[0] <= best


@pytest.mark.parametrize("shape", [(500, 1000), (240, 480)])
def test_loose_weights_keep_the_variance_of_planted_parts(shape):
    """Regression shrinks: with the first weight that leaves 30 features it has a tenth less than the others."""
    rng = np.random.default_rng(shape[0])
    V = np.zeros((5, shape[1]))
    for j in range(5):
        V[j, 30 * j : 30 * j + 30] = rng.choice([-1, 1], 30) / np.sqrt(30)
    X = (rng.normal(size=(shape[0], 5)) * np.linspace(12, 6, 5)) @ V + rng.normal(size=shape)
    best = SparsePCA(5, nonzeros=30).fit(X).explained_variance_.sum()
    for formulation in FORMULATIONS:
        sparse = SparsePCA(5, formulation=formulation, nonzeros=30, random_state=0).fit(X)
        assert sparse.nonzeros_.tolist() == [30] * 5
        assert f1(sparse.components_, V) == 1
        assert sparse.explained_variance_.sum() >= 0.97 * best
        if formulation == "regression":
            assert (np.diff(sparse.explained_variance_) < 0).all()


def test_nonzeros_counts_disjoint_groups(wine):
    groups = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11, 12]]
    for formulation in ("dictionary", "cardinality"):
        sparse = SparsePCA(2, formulation=formulation, groups=groups, nonzeros=2, random_state=0).fit(wine)
        many = [sum(component[group].any() for group in groups) for component in sparse.components_]
        assert max(many) == 2
        with pytest.raises(ValueError, match="nonzeros must be an integer from 1 to 3"):
            SparsePCA(2, formulation=formulation, groups=groups, nonzeros=4).fit(wine)


def test_nonzeros_counts_features_of_overlapping_groups(wine):
    groups = [[j, j + 1] for j in range(12)] + [[0], [12]]
    sparse = SparsePCA(2, formulation="dictionary", groups=groups, nonzeros=4, random_state=0).fit(wine)
    assert sparse.nonzeros_.max() == 4
    assert sparse.alpha_[0] == sparse.alpha_[1]


def test_groups_by_name(wine):
    import pandas as pd

    names = list(load_wine().names)
    frame = pd.DataFrame(wine, columns=names)
    numbers = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11, 12]]
    by_name = [[names[j] for j in group] for group in numbers]
    for how in ({"alpha": 4.0}, {"nonzeros": 1}):
        named = SparsePCA(2, groups=by_name, random_state=0, **how).fit(frame)
        assert (named.components_ == SparsePCA(2, groups=numbers, random_state=0, **how).fit(frame).components_).all()
    with pytest.raises(ValueError, match=r"groups names the feature 'ashes'.*see feature_names_in_"):
        SparsePCA(2, groups=[["ashes", "hue"]], alpha=1.0).fit(frame)


def test_nonnegative_and_groups(wine):
    sparse = SparsePCA(3, alpha=2.0, nonnegative=True, random_state=0).fit(wine)
    assert (sparse.components_ >= 0).all()
    groups = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11, 12]]
    sparse = SparsePCA(3, alpha=4.0, groups=groups, random_state=0).fit(wine)
    for component in sparse.components_:
        used = component != 0
        assert all(used[group].all() or not used[group].any() for group in groups)
    assert (sparse.nonzeros_ < 13).any()


def test_more_components_than_features(wine):
    sparse = SparsePCA(20, alpha=1.0, random_state=0).fit(wine)
    assert sparse.components_.shape == (20, 13)
    assert sparse.certificate_.holds
    assert np.isfinite(sparse.explained_variance_).all()
    assert sparse.explained_variance_ratio_.sum() <= 1 + 1e-9


def test_codes_penalised_instead_or_as_well(wine):
    codes = SparsePCA(3, code_alpha=1.0, random_state=0).fit(wine)
    Y, D = codes.result_.value["Y"], codes.result_.value["D"]
    assert (Y == 0).any()
    assert np.linalg.norm(D, axis=0).max() <= 1 + 1e-9
    recomputed = 0.5 * np.sum((wine - Y @ D.T) ** 2) + np.abs(Y).sum()
    assert codes.result_.objective == pytest.approx(recomputed, rel=1e-9)
    both = SparsePCA(3, alpha=1.0, code_alpha=1.0, random_state=0).fit(wine)
    Y, D = both.result_.value["Y"], both.result_.value["D"]
    recomputed = 0.5 * np.sum((wine - Y @ D.T) ** 2) + np.abs(Y).sum() + np.abs(D).sum()
    assert both.result_.objective == pytest.approx(recomputed, rel=1e-9)


def test_alpha_max_leaves_nothing_and_says_so(wine):
    with pytest.warns(UserWarning, match="3 of 3 components are zero"):
        sparse = SparsePCA(3, alpha=13.35, random_state=0).fit(wine)  # alpha_max is sqrt(178) = 13.3417
    assert not sparse.components_.any()
    assert (sparse.explained_variance_ == 0).all()
    assert SparsePCA(1, alpha=13.33, random_state=0).fit(wine).components_.any()


# --- driver, files, errors ----------------------------------------------------------------------------


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_model_files(wine, formulation, tmp_path):
    sparse = SparsePCA(2, formulation=formulation, random_state=0).fit(wine)
    save(sparse, tmp_path / "m.princomp")
    again = load(tmp_path / "m.princomp")
    assert (again.transform(wine) == sparse.transform(wine)).all()
    assert (again.explained_variance("subspace") == sparse.explained_variance("subspace")).all()
    assert str(again.certificate_) == str(sparse.certificate_)


@pytest.mark.parametrize("formulation", ["dictionary", "regression", "constrained"])
def test_a_search_has_no_checkpoint(wine, formulation, tmp_path):
    with pytest.raises(ValueError, match="checkpoint is for one fit, and nonzeros makes many"):
        SparsePCA(2, formulation=formulation, nonzeros=4, checkpoint=tmp_path / "x").fit(wine)


@pytest.mark.parametrize(("n", "p", "seed"), [(400, 800, 9), (120, 240, 1)])
def test_constrained_components_of_given_sizes(n, p, seed):
    """The bound of each is looked for by itself."""
    rng = np.random.RandomState(seed)
    V = np.zeros((4, p))
    for j in range(4):
        V[j, 30 * j : 30 * j + 30] = rng.choice([-1, 1], 30) / np.sqrt(30)
    X = (rng.randn(n, 4) * np.linspace(12, 6, 4)) @ V + rng.randn(n, p)
    sparse = SparsePCA(4, formulation="constrained", nonzeros=[30, 30, 20, 7], random_state=0).fit(X)
    assert sparse.nonzeros_.tolist() == [30, 30, 20, 7]
    assert sparse.certificate_.holds
    assert (np.abs(sparse.components_).sum(axis=1) <= sparse.alpha_ + 1e-9).all()


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_callback_stops_and_checkpoint_resumes(wine, formulation, tmp_path):
    from sklearn.exceptions import ConvergenceWarning

    how = {"formulation": formulation, "random_state": 0, "tol": 1e-9, "max_iter": 20000}
    path = tmp_path / "c.npz"
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        SparsePCA(3, callback=lambda state: True, checkpoint=path, **how).fit(wine)
    assert path.exists()
    resumed = SparsePCA(3, checkpoint=path, **how).fit(wine)
    assert not path.exists()
    direct = SparsePCA(3, **how).fit(wine)
    assert (resumed.components_ == direct.components_).all()
    objectives = direct.result_.history.objective
    assert np.all(np.diff(objectives) <= 1e-9 * np.abs(objectives[0]))


@pytest.mark.parametrize("of", ["data", "covariance"])
@pytest.mark.parametrize("calls", [1, 3, 20])
@pytest.mark.parametrize(
    "how",
    [
        {"formulation": "dictionary"},
        {"formulation": "dictionary", "groups": [[0, 1], [2, 3]]},
        {"formulation": "regression"},
        {"formulation": "regression", "solver": "amanpg"},
        {"formulation": "regression", "solver": "one-shot"},
        {"formulation": "constrained"},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_a_search_for_nonzeros_stops_where_the_callback_asks(wine, how, calls, of):
    heard = []

    def stop(state):
        heard.append(state)
        return len(heard) >= calls  # and ever after, were it asked again

    sparse = SparsePCA(3, nonzeros=3, random_state=0, callback=stop, **how)
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        sparse.fit(wine) if of == "data" else sparse.fit_covariance(np.cov(wine.T))
    assert len(heard) == calls
    assert sparse.result_.status.code == "stopped"
    fits = 1 + sum(after.iteration <= before.iteration for before, after in pairwise(heard))  # each counts from 1 on
    said = f"in fit {fits} of the search for nonzeros, after {heard[-1].iteration} iterations of it"
    assert f"Stopped by the callback {said}" in sparse.result_.status.sentence
    assert np.isfinite(sparse.components_).all()
    assert np.shape(sparse.alpha_) == (3,)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_search_stops_even_if_the_fit_has_converged(wine, formulation):
    """That a fit of the search is at its end, too, is no reason to begin another."""
    after = []

    def stop(state):
        after.append(state.residual <= 1e-5)
        return after[-1]

    with pytest.warns(ConvergenceWarning, match="Stopped by the callback in fit 1 of the search"):
        sparse = SparsePCA(2, formulation=formulation, nonzeros=3, random_state=0, callback=stop).fit(wine)
    assert after.count(True) == 1
    assert sparse.result_.status.code == "stopped"


def test_errors_say_what_to_do(wine):
    for parameters, message in [
        ({"formulation": "magic"}, "formulation must be one of auto, cardinality"),
        ({"alpha": 1.0, "nonzeros": 3}, "alpha or nonzeros, not both"),
        ({"alpha": [1.0, 2.0]}, "list of 3"),
        ({"nonzeros": 0}, "from 1 to 13"),
        ({"nonzeros": 2.5}, "from 1 to 13"),
        ({"bound": 0.5}, "bound must be a finite number of at least 1"),
        ({"bound": -1}, "bound must be a finite number of at least 1"),
        ({"ridge": 1.0, "formulation": "dictionary"}, 'ridge is for formulation="regression"'),
        ({"scores": "best"}, "scores must be one of"),
        ({"n_components": 14, "formulation": "regression"}, r"an integer from 1 to 13 \(= min\(n, p\)\), or None; got"),
        ({"n_init": 0}, "n_init"),
        ({"radius": 0}, "radius must be a number above 0, got 0"),
        ({"radius": "wide"}, "radius must be a number above 0, got 'wide'"),
        ({"alpha": -1.0}, "alpha must be a finite number of at least 0"),
        ({"alpha_share": -0.1}, "alpha_share must be a finite number of at least 0"),
        ({"alpha_share": 2}, "alpha_share must be from 0 to 1.*got 2"),
        ({"code_alpha": -1}, "code_alpha must be a finite number of at least 0"),
        ({"alpha_share": 0.5, "nonzeros": 3}, "alpha_share or nonzeros, not both"),
        ({"alpha_share": 0.5, "alpha": 3.0}, "alpha or alpha_share, not both"),
        ({"bound": 1.5, "nonzeros": 3}, "bound or nonzeros, not both"),
        ({"scale": "yes"}, "scale must be True or False, got 'yes'"),
        ({"center": 0}, "center must be True or False, got 0"),
        ({"groups": 5}, "groups must be a list of lists"),
        ({"groups": 5, "alpha": 1.0}, "groups must be a list of lists"),
        ({"groups": [["ash", "hue"]], "alpha": 1.0}, "groups names the feature 'ash'.*no names here"),
        ({"groups": [[0, 1], [2, 3]], "alpha": [1.0, 2.0, 3.0]}, "With groups, alpha .* must be one number"),
        ({"groups": [[0, 1]], "formulation": "dictionary", "nonzeros": [1, 2, 1]}, "With groups, nonzeros must be one"),
    ]:
        with pytest.raises(ValueError, match=message):
            SparsePCA(**{"n_components": 3} | parameters).fit(wine)
    X = wine.copy()
    X[3, 5] = np.nan
    with pytest.raises(ValueError, match="NaN in column 5"):
        SparsePCA(2).fit(X)


def test_command_line(tmp_path):
    from running import princomp

    (tmp_path / "wine.csv").write_bytes(load_wine().path.read_bytes())
    fit = ("fit", "wine.csv", "--method", "sparse", "-k", "3", "--scale", "--formulation", "regression")
    done = princomp(*fit, "--nonzeros", "4", "--label", "cultivar", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    model = load(tmp_path / "out" / "model.princomp")
    assert type(model).__name__ == "SparsePCA"
    assert model.nonzeros_.tolist() == [4, 4, 4]
    assert (tmp_path / "out" / "report.html").exists()
    done = princomp("fit", "wine.csv", "--nonzeros", "4", "-o", "b", cwd=tmp_path)
    assert done.returncode == 2
    assert "--nonzeros is not an option of the method pca" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alpha", "20", "--nonzeros", "3"), "Error: Give alpha or nonzeros, not both"),
        (("--certify", "--formulation", "dictionary"), 'Error: certify is for formulation="cardinality"'),
        (("--node-limit", "3"), "Error: node_limit is for certify=True"),
    ],
)
def test_options_that_clash_are_no_fault_of_the_file(options, message, tmp_path):
    from running import princomp

    (tmp_path / "wine.csv").write_bytes(load_wine().path.read_bytes())
    done = princomp("fit", "wine.csv", "--method", "sparse", "-k", "2", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_only_components_by_number_have_bounds_and_proofs(wine):
    assert SparsePCA(1, nonzeros=3).fit(wine).certificate_.proofs == ()
    for formulation in FORMULATIONS:
        certificate = SparsePCA(1, formulation=formulation, random_state=0).fit(wine).certificate_
        assert not any(hasattr(certificate, name) for name in ("lower", "upper", "proofs"))


@pytest.mark.parametrize("formulation", ["dictionary", "regression", "constrained"])
@pytest.mark.parametrize("factor", [1e-200, 1e-155, 1e155])
def test_the_scale_of_data_does_not_matter(formulation, factor):
    """Even where squares are out of range: warnings are errors here."""
    X = np.random.default_rng(0).normal(size=(40, 8))
    plain = SparsePCA(2, formulation=formulation).fit(X)
    scaled = SparsePCA(2, formulation=formulation).fit(X * factor)
    assert np.allclose(scaled.components_, plain.components_, atol=1e-4)
