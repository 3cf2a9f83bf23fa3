"""Sparse PCA by number of features, through the estimator: published numbers, n < p, certificates, files, errors."""

import tracemalloc
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import sparse_judge as judge
from princomp import SparsePCA, certificates, load, save
from princomp.datasets import load_pitprops, load_wine
from princomp.estimators.sparse import cardinality as formulation

# Exact components, deflated: cumulative % by Zou's adjusted, subspace and reconstruction variance.
DEFLATED = {
    (7, 4, 4, 1, 1, 1): {
        "hotelling": (75.20, 80.18, 83.76),
        "projection": (75.64, 80.11, 83.75),
        "schur": (75.51, 80.70, 85.24),
    },
    (6, 2, 2, 1, 1, 1): {
        "hotelling": (72.30, 77.05, 82.80),
        "projection": (73.49, 77.05, 84.90),
        "schur": (73.67, 76.93, 84.77),
    },
    (7, 2, 4, 3, 5, 4): {
        "hotelling": (77.64, 83.59, 86.20),
        "projection": (79.76, 84.03, 86.56),
        "schur": (80.23, 84.44, 86.66),
    },
    (5, 5, 5, 5): {
        "hotelling": (58.87, 66.83, 71.00),
        "projection": (63.04, 67.67, 71.69),
        "schur": (64.99, 66.29, 72.44),
    },
}


@pytest.fixture(scope="module")
def pitprops():
    return load_pitprops().correlation


@pytest.fixture(scope="module")
def wine():
    return load_wine().X


def factor(n, p, seed=0, size=10):
    """Noise, and a factor that the first features share."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, :size] += 5 * rng.standard_normal((n, 1))
    return X


# --- numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hotelling", "projection", "schur"])
@pytest.mark.parametrize("nonzeros", DEFLATED)
def test_variance_by_deflation(pitprops, nonzeros, kind):
    sparse = SparsePCA(len(nonzeros), nonzeros=nonzeros, deflation=kind).fit_covariance(pitprops)
    found = [100 / 13 * sparse.explained_variance(each).sum() for each in ("adjusted", "subspace", "reconstruction")]
    assert np.abs(np.subtract(found, DEFLATED[nonzeros][kind])).max() <= 0.0051
    assert (sparse.nonzeros_ <= nonzeros).all()


def test_the_default_deflation_leaves_a_covariance(pitprops):
    assert SparsePCA().deflation == "schur"
    sparse = SparsePCA(4, nonzeros=5).fit_covariance(pitprops)
    # What a component adds is what it had in what was left.
    np.testing.assert_allclose(sparse.certificate_.lower, sparse.explained_variance_, rtol=1e-12)
    assert np.linalg.eigvalsh(sparse.deflated_covariance(pitprops, 4))[0] >= -1e-12


@pytest.mark.parametrize("shape", [(49, 50), (60, 100), (200, 500)])
@pytest.mark.parametrize("seed", [0, 1])
def test_fewer_rows_than_features(shape, seed):
    X = factor(*shape, seed)
    sparse = SparsePCA(1, nonzeros=10).fit(X)
    assert np.flatnonzero(sparse.components_[0]).tolist() == list(range(10))
    best = np.linalg.eigvalsh(np.cov(X[:, :10].T))[-1]
    assert sparse.explained_variance_[0] == pytest.approx(best, rel=1e-9)
    assert sparse.certificate_.lower[0] == pytest.approx(best, rel=1e-9)
    assert sparse.certificate_.upper[0] >= best


def test_without_a_square_matrix(monkeypatch):
    X = factor(60, 300)
    how = {"n_components": 2, "nonzeros": [10, 4], "exclude": [3]}
    square = SparsePCA(**how).fit(X)
    monkeypatch.setattr(formulation, "MOST_SQUARE", 100)
    rows = SparsePCA(**how).fit(X)
    np.testing.assert_allclose(rows.components_, square.components_, atol=1e-9)
    np.testing.assert_allclose(rows.certificate_.lower, square.certificate_.lower, rtol=1e-9)
    assert (rows.certificate_.upper >= rows.certificate_.lower).all()
    sparse = SparsePCA(**how).fit(sp.csr_array(X))  # nor a dense array
    np.testing.assert_allclose(sparse.components_, square.components_, atol=1e-9)


def test_memory_is_far_below_a_square_matrix():
    X = factor(200, 5000)
    tracemalloc.start()
    try:
        sparse = SparsePCA(1, nonzeros=20).fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(range(10)) <= set(np.flatnonzero(sparse.components_[0]))
    assert peak < 5000 * 5000 * 8 / 4


# --- inputs -------------------------------------------------------------------------------------------


def test_covariance_and_data_agree(wine):
    for how in ({"nonzeros": 4}, {"retain": 0.8}, {"nonzeros": 4, "nonnegative": True}):
        data = SparsePCA(3, scale=True, **how).fit(wine)
        covariance = SparsePCA(3, **how).fit_covariance(np.corrcoef(wine.T), n_samples=len(wine))
        np.testing.assert_allclose(data.components_, covariance.components_, atol=1e-9)
        np.testing.assert_allclose(data.certificate_.lower, covariance.certificate_.lower, rtol=1e-9)
        np.testing.assert_allclose(data.certificate_.upper, covariance.certificate_.upper, rtol=1e-9)
        assert data.result_.objective == pytest.approx(covariance.result_.objective, rel=1e-9)


def test_storages_agree(tmp_path):
    X = factor(80, 40)
    X[np.abs(X) < 1] = 0
    np.save(tmp_path / "x.npy", X)
    expected = SparsePCA(2, nonzeros=5).fit(X)
    shards, memmap = [X[:30], X[30:]], np.load(tmp_path / "x.npy", mmap_mode="r")
    for given in (sp.csr_array(X), shards, memmap, np.asfortranarray(X), X.astype(np.float32)):
        found = SparsePCA(2, nonzeros=5).fit(given)
        np.testing.assert_allclose(found.components_, expected.components_, atol=1e-5)
    assert found.components_.dtype == np.float32


@pytest.mark.parametrize("size", [1e150, 1e-150])
def test_scale_of_the_data(wine, size):
    usual, scaled = SparsePCA(2, nonzeros=4).fit(wine), SparsePCA(2, nonzeros=4).fit(size * wine)
    np.testing.assert_allclose(scaled.components_, usual.components_, atol=1e-9)
    np.testing.assert_allclose(scaled.certificate_.gap, usual.certificate_.gap, atol=1e-6)


@pytest.mark.parametrize("kind", ["schur", "projection", "generalised", "hotelling"])
@pytest.mark.parametrize("power", [77, 150, -77, -150])
def test_proofs_of_data_of_any_size(wine, kind, power):
    how = {"nonzeros": 3, "certify": True, "deflation": kind}
    X = (wine - wine.mean(axis=0)) / wine.std(axis=0)
    usual, sized = SparsePCA(3, **how).fit(X), SparsePCA(3, **how).fit(10.0**power * X)
    np.testing.assert_allclose(sized.components_, usual.components_, atol=1e-9)
    assert sized.certificate_.proved.all()
    S = np.cov((10.0**power * X).T)
    for j, proof in enumerate(sized.certificate_.proofs):
        assert certificates.verify(sized.deflated_covariance(S, j), proof)


@pytest.mark.parametrize("size", [1e300, 1e-300])
@pytest.mark.parametrize("scale", [False, True])
def test_covariances_of_any_size(pitprops, size, scale):
    how = {"nonzeros": 4, "certify": True, "scale": scale}
    usual, sized = SparsePCA(3, **how).fit_covariance(pitprops), SparsePCA(3, **how).fit_covariance(size * pitprops)
    np.testing.assert_allclose(sized.components_, usual.components_, atol=1e-9)
    factor = 1.0 if scale else size
    np.testing.assert_allclose(sized.certificate_.upper / factor, usual.certificate_.upper, rtol=1e-9)
    np.testing.assert_allclose(sized.explained_variance_ / factor, usual.explained_variance_, rtol=1e-9)
    for j, proof in enumerate(sized.certificate_.proofs):
        assert certificates.verify(sized.deflated_covariance(size * pitprops, j), proof)
    if not scale:
        assert certificates.verify(size * pitprops, sized.certificate_)


@pytest.mark.parametrize("certify", [False, True])
def test_variances_that_are_no_numbers(wine, certify, tmp_path):
    how = {"nonzeros": 3, "certify": certify}
    usual = SparsePCA(2, **how).fit(wine)
    large, less, small = (SparsePCA(2, **how).fit(size * wine) for size in (1e160, 1e-157, 1e-200))
    for sized in (large, less, small):
        np.testing.assert_allclose(sized.components_, usual.components_, atol=1e-9)
        assert not sized.certificate_.proved.any()  # no such thing can be said of these numbers
        save(sized, tmp_path / "m.princomp")
        assert str(load(tmp_path / "m.princomp").certificate_) == str(sized.certificate_)
    assert np.isinf(large.certificate_.upper).all()
    assert str(large.certificate_).startswith(
        "Component 1, variance inf: no bound is known, the numbers being too large"
    )
    assert not small.certificate_.lower.any()
    for sized in (less, small):
        assert (sized.certificate_.upper >= sized.certificate_.lower).all()
        assert (sized.certificate_.upper > 0).all()


# --- what may be chosen -------------------------------------------------------------------------------


def test_forced_in_and_out_by_name_and_number(wine):
    import pandas as pd

    names = load_wine().names
    frame = pd.DataFrame(wine, columns=names)
    how = {"nonzeros": 3, "scale": True}
    sparse = SparsePCA(2, include=["ash"], exclude=[6, "proline"], **how).fit(frame)
    ash, proline = names.index("ash"), names.index("proline")
    assert (sparse.components_[:, ash] != 0).all()
    assert not sparse.components_[:, [6, proline]].any()
    by_number = SparsePCA(2, include=[ash], exclude=[proline, 6], **how).fit(wine)
    assert (by_number.components_ == sparse.components_).all()
    free = SparsePCA(1, **how).fit(wine)
    assert free.certificate_.lower[0] > sparse.certificate_.lower[0]


def test_groups_and_signs(wine):
    groups = [[0, 1, 2], [3, 4], [5, 6, 7], [9, 10]]  # 8, 11 and 12 stand alone
    sparse = SparsePCA(2, nonzeros=2, groups=groups, scale=True).fit(wine)
    for component in sparse.components_:
        used = component != 0
        assert all(used[group].all() or not used[group].any() for group in groups)
        assert sum(used[group].any() for group in groups) + used[[8, 11, 12]].sum() == 2
    labels = [0, 0, 0, 3, 3, 5, 5, 5, 8, 9, 9, 11, 12]
    assert (SparsePCA(2, nonzeros=2, groups=labels, scale=True).fit(wine).components_ == sparse.components_).all()
    assert "groups can have" in str(sparse.certificate_)
    assert (SparsePCA(3, nonzeros=4, nonnegative=True, scale=True).fit(wine).components_ >= 0).all()


def best_nonnegative(S):
    """The best on every set of features on which the leading eigenvector has one sign."""
    best = 0.0
    for size in range(1, len(S) + 1):
        for which in combinations(range(len(S)), size):
            values, vectors = np.linalg.eigh(S[np.ix_(which, which)])
            if (vectors[:, -1] >= -1e-12).all() or (vectors[:, -1] <= 1e-12).all():
                best = max(best, values[-1])
    return best


def test_nonnegative_loadings_may_use_fewer_features():
    S = 2.5 * np.eye(4) - 0.5  # (1, 1, 1, 1) is an eigenvector, of the smallest eigenvalue
    for groups in (None, [0, 0, 1, 1], [0, 0, 0, 0]):
        how = {"nonzeros": 4 if groups is None else max(groups) + 1, "nonnegative": True, "groups": groups}
        assert SparsePCA(1, **how).fit_covariance(S).certificate_.lower[0] == pytest.approx(2.0)
    for seed in range(20):
        S = np.cov(np.random.default_rng(seed).standard_normal((40, 8)).T)
        found = SparsePCA(1, nonzeros=8, nonnegative=True).fit_covariance(S)
        assert found.certificate_.lower[0] == pytest.approx(best_nonnegative(S), rel=1e-9)
        assert (found.components_ >= 0).all()


def test_features_that_do_not_vary_forced_in():
    X = factor(20, 6, size=2)
    X[:, 3:5] = 1.0
    sparse = SparsePCA(1, nonzeros=2, include=[3, 4], nonnegative=True).fit(X)
    assert sparse.certificate_.lower[0] == 0.0
    sparse = SparsePCA(1, nonzeros=3, include=[3], certify=True).fit(X)
    assert sparse.components_[0, 3] == 0.0  # forced in, with a loading of 0
    assert 3 in sparse.certificate_.proofs[0].support
    assert np.count_nonzero(sparse.components_) == 2


def test_the_formulation_follows_from_the_parameters(wine):
    for parameters, expected in [
        ({}, "cardinality"),
        ({"nonzeros": 3}, "cardinality"),
        ({"nonzeros": 3, "groups": [[0, 1]]}, "cardinality"),
        ({"certify": True, "retain": 0.5}, "cardinality"),
        ({"alpha": 1.0, "nonnegative": True}, "dictionary"),
        ({"alpha_share": 0.2}, "dictionary"),
        ({"radius": 2.0}, "dictionary"),
        ({"nonzeros": 3, "ridge": 0.1}, "regression"),
        ({"nonzeros": 3, "solver": "amanpg"}, "regression"),
        ({"bound": 2.0}, "constrained"),
    ]:
        assert SparsePCA(1, scale=True, random_state=0, **parameters).fit(wine).formulation_ == expected


@pytest.mark.parametrize("retain", [0.5, 0.9, 1.0])
def test_retain(wine, retain):
    sparse = SparsePCA(3, retain=retain, scale=True).fit(wine)
    for j, count in enumerate(sparse.nonzeros_):
        left = sparse.deflated_covariance(np.cov(wine.T), j)
        top = np.linalg.eigvalsh(left)[-1]
        assert sparse.certificate_.lower[j] >= retain * top * (1 - 1e-9)
        if count > 1:
            fewer = SparsePCA(1, nonzeros=int(count) - 1).fit_covariance((left + left.T) / 2 + 1e-12 * np.eye(13))
            assert fewer.certificate_.lower[0] < retain * top
    assert (sparse.nonzeros_[0] == 13) == (retain == 1)


@pytest.mark.parametrize("shape", [(100, 400), (60, 1200), (40, 2500)])
def test_the_same_count_gives_the_same_component_however_it_was_asked_for(shape):
    """In noise searches end in many places, and the leading eigenvector is a start like no other."""
    X = np.random.default_rng(0).standard_normal(shape)
    share = SparsePCA(2).fit(X)
    given = SparsePCA(2, nonzeros=share.nonzeros_.tolist()).fit(X)
    assert (given.components_ == share.components_).all()
    assert (given.certificate_.lower == share.certificate_.lower).all()
    assert share.n_iter_ <= 2 * 12  # a handful of searches each


def test_the_status_says_where_the_search_for_the_fewest_ended_with_its_budget(wine):
    X = np.random.default_rng(0).standard_normal((60, 1200))
    share = SparsePCA(2).fit(X)
    counts = ", ".join(map(str, share.nonzeros_))
    assert share.result_.status.code == "converged"
    assert (
        f"In every component the search for the fewest features ended with its budget, at {counts}: that somewhat fewer"
        in share.result_.status.sentence
    )
    for sparse in (SparsePCA(2, nonzeros=100).fit(X), SparsePCA(2, scale=True).fit(wine)):
        assert "budget" not in sparse.result_.status.sentence


# --- certificates -------------------------------------------------------------------------------------


def test_proved_and_rechecked(pitprops):
    sparse = SparsePCA(3, nonzeros=[5, 4, 3], certify=True).fit_covariance(pitprops)
    certificate = sparse.certificate_
    assert certificate.proved.all()
    assert (certificate.gap <= 1e-6).all()
    assert (certificate.lower <= certificate.upper).all()
    assert certificate.scope == "global"
    assert len(certificate.nodes) == len(certificate.seconds) == 3
    for j, proof in enumerate(certificate.proofs):
        left = sparse.deflated_covariance(pitprops, j)
        assert certificates.verify(left, proof)
        assert (proof.lower, proof.upper) == (certificate.lower[j], certificate.upper[j])
        v = sparse.components_[j]
        assert v @ left @ v == pytest.approx(proof.lower, rel=1e-9)
    assert not certificates.verify(pitprops, certificate.proofs[1])  # that one is about what was left
    assert "given those before it" in str(certificate)


def test_a_proof_of_data_scaled_and_constrained(wine):
    how = {"scale": True, "certify": True, "include": [2], "exclude": [0], "nonnegative": True}
    sparse = SparsePCA(2, nonzeros=3, **how).fit(wine)
    for j, proof in enumerate(sparse.certificate_.proofs):
        assert certificates.verify(sparse.deflated_covariance(np.cov(wine.T), j), proof)
        assert (proof.include, proof.exclude, proof.nonnegative) == ((2,), (0,), True)
    groups = SparsePCA(1, nonzeros=2, scale=True, certify=True, groups=[[0, 1, 2], [5, 6]]).fit(wine)
    assert certificates.verify(groups.deflated_covariance(np.cov(wine.T), 0), groups.certificate_.proofs[0])


def test_a_proof_from_rows(monkeypatch):
    monkeypatch.setattr(formulation, "MOST_SQUARE", 20)
    X = factor(20, 60)
    sparse = SparsePCA(2, nonzeros=3, certify=True, node_limit=50).fit(X)
    S = np.cov(X.T)
    for j, proof in enumerate(sparse.certificate_.proofs):
        assert certificates.verify(sparse.deflated_covariance(S, j), proof)
    with pytest.raises(ValueError, match="needs the data in memory"):
        SparsePCA(2, nonzeros=3, certify=True, deflation="hotelling").fit(X)


@pytest.fixture(scope="module")
def noise():
    """A correlation matrix of noise: the hardest to prove anything of."""
    return np.corrcoef(np.random.default_rng(0).standard_normal((30, 45)))


def test_a_proof_cut_off_is_still_a_bound(noise):
    cheap = SparsePCA(1, nonzeros=8).fit_covariance(noise).certificate_
    cut = SparsePCA(1, nonzeros=8, certify=True, node_limit=1).fit_covariance(noise).certificate_
    timed = SparsePCA(1, nonzeros=8, certify=True, time_limit=1e-3).fit_covariance(noise).certificate_
    assert cut.nodes.tolist() == [1]
    assert cut.lower[0] < cut.upper[0] < cheap.upper[0]
    assert not cut.proved.any()
    assert cut.scope == "local"
    assert timed.upper[0] >= cut.lower[0]
    assert certificates.verify(noise, cut.proofs[0])
    assert certificates.verify(noise, timed.proofs[0])


def test_the_cheap_bound_holds(pitprops):
    for nonzeros in range(1, 14):
        best = SparsePCA(1, nonzeros=nonzeros, certify=True).fit_covariance(pitprops).certificate_
        cheap = SparsePCA(1, nonzeros=nonzeros).fit_covariance(pitprops).certificate_
        assert cheap.upper[0] >= best.lower[0] * (1 - 1e-12)
        assert cheap.proofs == ()
        assert cheap.nodes.tolist() == [0]
        assert cheap.proved[0] == (nonzeros in (1, 2, 13))
        gap = (cheap.upper - cheap.lower) / cheap.upper
        assert cheap.gap == pytest.approx(gap)


def test_scale_in_full_precision(wine, tmp_path):
    single = wine.astype(np.float32)
    sparse = SparsePCA(2, nonzeros=4, scale=True, certify=True).fit(single)
    assert sparse.scale_.dtype == np.float32
    S = np.cov(single.astype(np.float64).T)
    save(sparse, tmp_path / "m.princomp")
    for model in (sparse, load(tmp_path / "m.princomp")):
        for j, proof in enumerate(model.certificate_.proofs):
            assert certificates.verify(model.deflated_covariance(S, j), proof)


def test_data_that_do_not_vary_have_a_certificate():
    with pytest.warns(UserWarning, match="does not vary"):
        sparse = SparsePCA(2, nonzeros=2, certify=True).fit(np.ones((5, 3)))
    certificate = sparse.certificate_
    assert certificate.lower.tolist() == certificate.upper.tolist() == [0.0, 0.0]
    assert certificate.proved.all()
    assert certificate.scope == "global"


@pytest.mark.parametrize("certify", [False, True])
def test_nothing_left_but_rounding_is_not_proved(certify):
    S = np.diag([1.0, 1e-20])
    with pytest.warns(UserWarning, match="the others leave nothing"):
        sparse = SparsePCA(2, nonzeros=1, certify=certify).fit_covariance(S)
    certificate = sparse.certificate_
    assert certificate.proved.tolist() == [True, False]
    assert 1e-20 <= certificate.upper[1] <= 1e-12
    assert certificate.sentences()[1].startswith("Component 2, variance 0: no component of 1 feature has a variance")


def test_deflated_covariance_is_that_of_the_fit(pitprops, wine):
    sparse = SparsePCA(2, nonzeros=5, certify=True, deflation="projection").fit_covariance(pitprops)
    assert sparse.deflation_ == "projection"
    sparse.set_params(deflation="hotelling")
    assert certificates.verify(sparse.deflated_covariance(pitprops, 1), sparse.certificate_.proofs[1])
    for component in (-1, 3, 1.0, True, None):
        with pytest.raises(ValueError, match="component must be an integer from 0 to 2"):
            sparse.deflated_covariance(pitprops, component)
    with pytest.raises(ValueError, match=r"S must be the \(13, 13\) covariance"):
        sparse.deflated_covariance(pitprops[:5, :5], 1)
    together = SparsePCA(2, alpha_share=0.1, random_state=0).fit(wine)
    assert together.deflation_ is None
    with pytest.raises(ValueError, match='"dictionary" finds its components together'):
        together.deflated_covariance(np.cov(wine.T), 1)


def test_correlations_are_not_what_a_scaled_fit_deflates(wine):
    sparse = SparsePCA(2, nonzeros=4, scale=True, certify=True).fit(wine)
    for j, proof in enumerate(sparse.certificate_.proofs):
        assert certificates.verify(sparse.deflated_covariance(np.cov(wine.T), j), proof)
    with pytest.raises(ValueError, match=r"S is a correlation matrix.*give the covariance, np.cov\(X.T\)"):
        sparse.deflated_covariance(np.corrcoef(wine.T), 1)


@pytest.mark.parametrize("certify", [False, True])
def test_hotelling_leaves_covariances_where_no_variance_is(certify):
    """S - c x x' has negative eigenvalues: [[0, 1], [1, 0]] has nothing on its diagonal, and a variance of 1."""
    S = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1e-20]])
    sparse = SparsePCA(3, nonzeros=[1, 1, 2], deflation="hotelling", certify=certify).fit_covariance(S)
    np.testing.assert_allclose(sparse.certificate_.lower, [2.0, 2.0, 1.0], rtol=1e-9)
    assert sparse.certificate_.proved.all()
    np.testing.assert_allclose(abs(sparse.components_[2]), [np.sqrt(0.5), np.sqrt(0.5), 0.0], atol=1e-9)


@pytest.mark.parametrize("kind", judge.DEFLATIONS)
@pytest.mark.parametrize("certify", [False, True])
def test_bounds_of_columns_of_very_different_scale(kind, certify):
    """What is left of 1e16 is known to about 1: the bounds of later components must allow for it."""
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((30, 8)) * 10.0 ** np.linspace(-8, 8, 8)
        for nonzeros in (2, 3):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".* the others leave nothing", category=UserWarning)
                sparse = SparsePCA(4, nonzeros=nonzeros, deflation=kind, certify=certify).fit(X)
            V = sparse.result_.value["V"].T
            for j, upper in enumerate(sparse.certificate_.upper):
                left = judge.deflated(judge.covariance(X), V[:j], kind)
                assert judge.exact(upper).item() >= judge.best(left, nonzeros)
            if certify:
                assert certificates.verify(np.cov(X.T), sparse.certificate_)


def test_a_bound_below_zero_is_not_proved_by_that():
    """A gap is relative to the size of the bound, whatever its sign."""
    certificate = SparsePCA(1, nonzeros=2).fit_covariance(np.eye(3)).certificate_
    below = replace(certificate, lower=np.array([-5.0]), upper=np.array([-1.0]))
    assert below.gap.tolist() == [4.0]
    assert not below.proved.any()
    assert not replace(below, upper=np.array([0.0])).proved.any()


def test_the_component_is_that_of_its_proof(pitprops):
    """Of components that are equally good, too: the next proof is about what this one leaves."""
    S = (6 * np.eye(6) - 1.0) / 5
    sparse = SparsePCA(3, nonzeros=3, certify=True).fit_covariance(S)
    for v, proof in zip(sparse.components_, sparse.certificate_.proofs, strict=True):
        assert abs(v @ proof.vector) == pytest.approx(1.0, abs=1e-12)
    for how in ({}, {"nonnegative": True}, {"groups": [[0, 1], [5, 6]]}):
        certified, quick = (SparsePCA(3, nonzeros=3, certify=c, **how).fit_covariance(pitprops) for c in (True, False))
        np.testing.assert_allclose(certified.components_, quick.components_, atol=1e-12)


def test_words_say_what_was_forced(wine):
    import pandas as pd

    frame = pd.DataFrame(wine, columns=load_wine().names)
    how = {"nonzeros": 3, "scale": True}
    for asked, words in [
        ({"include": ["ash"]}, "that include ash"),
        ({"exclude": ["proline", "ash"]}, "without ash and proline"),
        ({"nonnegative": True}, "without negative loadings"),
        ({"groups": [["ash", "alcohol"]]}, "of whole groups"),
        (
            {"include": ["ash"], "exclude": ["proline"], "nonnegative": True},
            "that include ash, without proline, without negative loadings",
        ),
    ]:
        proved = SparsePCA(2, certify=True, **how, **asked).fit(frame).certificate_
        assert str(proved) == f"All 2 components are proved best among components {words}, each given those before it."
        assert proved.sentences()[0].endswith(f": proved best among components {words}.")
        assert words in proved.verdict()
        by_number = str(proved.proofs[0])
        assert "among components" in by_number
        quick = SparsePCA(1, **how, **asked).fit(frame).certificate_
        if "groups" not in asked:
            assert f"no component of 3 features, {words.replace('include', 'includes')}, can have" in str(quick)
    numbered = SparsePCA(1, include=[2], exclude=[0, 6], certify=True, **how).fit(wine).certificate_
    assert "among components that include feature 2, without features 0 and 6" in str(numbered)
    plain = SparsePCA(1, certify=True, **how).fit(wine).certificate_
    assert "among" not in str(plain)


def test_names_that_are_no_words_are_quoted(wine):
    import pandas as pd

    names = ["\x1b[2J", *load_wine().names[1:]]
    frame = pd.DataFrame(wine, columns=names)
    said = str(SparsePCA(1, nonzeros=3, exclude=[0], certify=True).fit(frame).certificate_)
    assert "\x1b" not in said
    assert "\\x1b[2J" in said


def test_words_of_a_fit_that_was_stopped(wine):
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        stopped = SparsePCA(2, nonzeros=4, scale=True, callback=lambda state: True).fit(wine)
    assert stopped.certificate_.sentences() == [
        "Component 1 was not finished: no bound is known.",
        "Component 2 was not finished: no bound is known.",
    ]


def test_words():
    S = np.array([[2.0, 1.0, 0.5], [1.0, 2.0, 0.9], [0.5, 0.9, 2.0]])
    certificate = SparsePCA(1, nonzeros=2).fit_covariance(S).certificate_
    assert str(certificate) == "Component 1, variance 3: proved best."
    certificate = SparsePCA(2, nonzeros=4).fit_covariance(load_pitprops().correlation).certificate_
    first = certificate.sentences()[0]
    more = certificate.upper[0] / certificate.lower[0] - 1
    assert more > 0.001
    shown = float(first.split(" more than ")[1].split(" %")[0])
    assert shown / 100 >= more  # a bound is rounded up
    assert shown / 100 <= 1.1 * more
    assert "of 4 features" in first


# --- files, driver, errors ----------------------------------------------------------------------------


def test_model_files(wine, tmp_path):
    for how in ({"nonzeros": 4, "certify": True, "include": [1]}, {}):
        sparse = SparsePCA(2, scale=True, **how).fit(wine)
        save(sparse, tmp_path / "m.princomp")
        again = load(tmp_path / "m.princomp")
        assert (again.transform(wine) == sparse.transform(wine)).all()
        assert str(again.certificate_) == str(sparse.certificate_)
        for name in ("lower", "upper", "gap", "proved", "nodes", "seconds", "features"):
            assert (getattr(again.certificate_, name) == getattr(sparse.certificate_, name)).all()
        for j, proof in enumerate(again.certificate_.proofs):
            assert certificates.verify(again.deflated_covariance(np.cov(wine.T), j), proof)


def test_callback_stops_and_checkpoint_resumes(wine, tmp_path):
    how = {"nonzeros": 4, "scale": True}
    path = tmp_path / "c.npz"
    with pytest.warns(ConvergenceWarning, match="Stopped by the callback"):
        stopped = SparsePCA(3, callback=lambda state: True, checkpoint=path, **how).fit(wine)
    assert stopped.components_[0].any()
    assert not stopped.certificate_.proved.any()
    assert not stopped.certificate_.holds
    resumed = SparsePCA(3, checkpoint=path, **how).fit(wine)
    assert not path.exists()
    direct = SparsePCA(3, **how).fit(wine)
    assert (resumed.components_ == direct.components_).all()
    assert (resumed.certificate_.upper == direct.certificate_.upper).all()


def test_the_callback_hears_of_the_proof_and_stops_it(noise):
    heard = []

    def stop(state):
        heard.append("vector" in state.value)  # states of the proof
        return heard[-1]

    cut = SparsePCA(1, nonzeros=8, certify=True, callback=stop).fit_covariance(noise)
    assert heard.count(True) == 1
    assert cut.certificate_.nodes[0] <= 1
    assert cut.result_.status
    assert cut.certificate_.upper[0] > cut.certificate_.lower[0]


def test_many_components_need_no_more_iterations(wine):
    sparse = SparsePCA(13, nonzeros=3, scale=True, max_iter=10).fit(wine)
    assert sparse.result_.status
    assert sparse.n_iter_ > 10
    with pytest.warns(UserWarning, match="1 of 20 components are zero: the others leave nothing. Ask for fewer"):
        SparsePCA(nonzeros=30).fit(factor(20, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert SparsePCA(1, nonzeros=2).fit_covariance(np.eye(3)).certificate_.proved.all()
    with pytest.warns(UserWarning, match="does not vary"):
        SparsePCA(1, nonzeros=2).fit(np.ones((5, 3)))


class OnlySome(SparsePCA):
    """With parameters of its own."""

    def __init__(self, features=4, n_components=2):
        super().__init__(n_components, nonzeros=features)
        self.features = features


def test_a_subclass_may_have_other_parameters(wine):
    assert (OnlySome().fit(wine).components_ == SparsePCA(2, nonzeros=4).fit(wine).components_).all()


def test_errors_say_what_to_do(wine):
    for parameters, message in [
        ({"nonzeros": 0}, "from 1 to 13"),
        ({"nonzeros": 14}, "from 1 to 13"),
        ({"nonzeros": [1, 2]}, "list of 3"),
        ({"retain": 0.0}, "retain must be a number above 0, up to 1, got 0.0"),
        ({"retain": "much"}, "retain must be a number"),
        ({"retain": 0.5, "nonzeros": 3}, "Give nonzeros or retain, not both"),
        ({"nonzeros": 3, "alpha": 1.0, "formulation": "cardinality"}, 'alpha is for formulation="dictionary" or "reg'),
        ({"certify": True, "alpha": 1.0}, 'certify is for formulation="cardinality", but this fit is "dictionary"'),
        ({"include": [1], "ridge": 1.0}, 'include is for formulation="cardinality"'),
        ({"include": [1, 2], "exclude": [2]}, "Feature 2 is in include and in exclude"),
        ({"include": [1, 2], "nonzeros": 1}, "include forces 2 in, but nonzeros allows only 1"),
        ({"exclude": range(13)}, "exclude leaves no feature"),
        ({"include": [13]}, "include names the feature 13, which is none: give numbers from 0 to 12"),
        ({"exclude": ["ash"]}, "exclude names the feature 'ash'.*features have no names here"),
        ({"time_limit": 0, "certify": True}, "time_limit must be a number above 0"),
        ({"node_limit": 0, "certify": True}, "node_limit must be an integer of at least 1"),
        ({"node_limit": 1}, "node_limit is for certify=True"),
        ({"groups": [[0, 1], [1, 2]]}, "counts disjoint groups"),
        ({"groups": [[0, 13]]}, "features from 0 to 12"),
        ({"groups": [[0, 1]], "nonzeros": 13}, "from 1 to 12"),
        ({"n_components": 14, "nonzeros": 2}, r"an integer from 1 to 13 \(= min\(n, p\)\), or None; got 14"),
        ({"deflation": "wielandt", "nonzeros": 2}, "deflation must be one of"),
        ({"groups": [0, 0, 1]}, "one label for each of the 13 features, got 3"),
        ({"groups": [0] * 14, "alpha": 1.0}, "one label for each of the 13 features, got 14"),
        ({"nonzeros": True}, "nonzeros must be an integer, or a list of them; got True"),
        ({"retain": True}, "retain must be a number above 0, up to 1, got True"),
        ({"certify": "yes"}, "certify must be True or False, got 'yes'"),
        ({"nonnegative": 1}, "nonnegative must be True or False, got 1"),
        ({"alpha": "1"}, "alpha must be a finite number of at least 0, or a list of 3 of them; got '1'"),
        ({"alpha": np.inf}, "alpha must be a finite number"),
        ({"alpha": np.ones(3), "formulation": "cardinality"}, 'alpha is for formulation="dictionary" or "regression"'),
        ({"include": np.array([1, 2]), "alpha": 1.0}, 'include is for formulation="cardinality"'),
        ({"groups": np.zeros(13, dtype=int), "bound": 1.5}, 'groups is for formulation="dictionary" or "cardinality"'),
        ({"retain": np.array([0.5, 0.6])}, "retain must be a number"),
        ({"formulation": np.array(["auto", "auto"])}, "formulation must be one of"),
    ]:
        with pytest.raises(ValueError, match=message):
            SparsePCA(**{"n_components": 3} | parameters).fit(wine)


def test_command_line_and_report(tmp_path):
    import json

    from running import princomp

    (tmp_path / "wine.csv").write_bytes(load_wine().path.read_bytes())
    fit = ("fit", "wine.csv", "--method", "sparse", "-k", "2", "--scale", "--label", "cultivar", "--index", "wine")
    done = princomp(*fit, "--nonzeros", "5", "--certify", "--exclude", "ash", "--include", "hue", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    proved_best = "All 2 components are proved best among components that include hue, without ash, each given those "
    assert proved_best in done.stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())["certificate"]
    assert summary["proved"] == [True, True]
    assert len(summary["lower"]) == len(summary["upper"]) == len(summary["nodes"]) == 2
    model = load(tmp_path / "out" / "model.princomp")
    names = list(model.feature_names_in_)
    assert not model.components_[:, names.index("ash")].any()
    assert model.components_[:, names.index("hue")].all()
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "no better components that include hue, without ash, exist, each given those before it" in page
    first = f"Component 1, variance {model.certificate_.lower[0]:.4g}: proved best among components that include hue, "
    assert f"{first}without ash." in page
    again = princomp("fit", "wine.csv", "--config", "out/config.toml", "-o", "again", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert (load(tmp_path / "again" / "model.princomp").components_ == model.components_).all()

    done = princomp(*fit, "--retain", "0.8", "-o", "b", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "can have more than" in done.stdout
    assert "more variance given those before it." in (tmp_path / "b" / "report.html").read_text(encoding="utf-8")
    shown = princomp("inspect", "b/model.princomp", cwd=tmp_path)
    assert "can have more than" in shown.stdout
    done = princomp(*fit, "--exclude", "ashes", "-o", "c", cwd=tmp_path)
    assert done.returncode != 0
    assert "exclude names the feature 'ashes', which is none" in done.stderr


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0227, "2.3 %"), (0.5, "50 %"), (1.2345, "124 %"), (2e-6, "0.0002 %"), (0.1, "10 %"), (0.01, "1 %"), (0, "0 %")],
)
def test_shares_are_rounded_up_and_end_in_no_zeros(share, text):
    from princomp.estimators.sparse.certificate import percent

    assert percent(share) == text
