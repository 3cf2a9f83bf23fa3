"""Explained variance by name: published figures, definitions computed another way, and degenerate loadings."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from princomp.datasets import load_pitprops
from princomp.estimators.explained import explained_variance, orthogonalised

KINDS = ("adjusted", "subspace", "reconstruction")


def variance(S, V, kind):
    return explained_variance(S @ V, V, kind)


def twin(S, V, kind):
    """The totals of the first 1, 2, ... k columns, each from its definition, by SVD."""
    values, vectors = np.linalg.eigh(S)
    X = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T  # X'X = S
    lengths = np.linalg.norm(V, axis=0)
    V = V / np.where(lengths > 0, lengths, 1)
    totals, adjusted = [], 0.0
    for j in range(1, V.shape[1] + 1):
        Z = X @ V[:, :j]
        if kind == "adjusted":
            before = Z[:, :-1]
            outside = Z[:, -1] - before @ (np.linalg.pinv(before, rcond=1e-7) @ Z[:, -1])
            adjusted += outside @ outside
            totals.append(adjusted)
            continue
        basis = V[:, :j] if kind == "subspace" else Z
        U, s, _ = np.linalg.svd(basis, full_matrices=False)
        Q = U[:, s > 1e-7]
        totals.append(np.trace(Q.T @ S @ Q) if kind == "subspace" else np.linalg.norm(Q.T @ X) ** 2)
    return np.array(totals)


# --- pitprops ---------------------------------------------------------------------------------

ZOU = {  # the six components of Zou, Hastie & Tibshirani (2006), table 3
    0: {
        "topdiam": -0.477,
        "length": -0.476,
        "ovensg": 0.177,
        "ringbut": -0.250,
        "bowmax": -0.344,
        "bowdist": -0.416,
        "whorls": -0.400,
    },
    1: {"moist": 0.785, "testsg": 0.620, "bowmax": -0.021, "knots": 0.013},
    2: {"ovensg": 0.641, "ringtop": 0.589, "ringbut": 0.492, "diaknot": -0.016},
    3: {"clear": 1.0},
    4: {"knots": 1.0},
    5: {"diaknot": 1.0},
}


def zou_loadings(names):
    V = np.zeros((13, 6))
    for j, entries in ZOU.items():
        for name, entry in entries.items():
            V[names.index(name), j] = entry
    return V


def test_published_shares_of_pitprops():
    pitprops = load_pitprops()
    shares = 100 * variance(pitprops.correlation, zou_loadings(pitprops.names), "adjusted") / 13
    np.testing.assert_allclose(shares, [28.03, 13.97, 13.30, 7.44, 6.80, 6.23], atol=0.02)
    assert shares.sum() == pytest.approx(75.8, abs=0.05)


def best_of(S, count):
    """The unit vector with `count` nonzeros of largest variance, all supports tried."""
    best, answer = -np.inf, None
    for support in itertools.combinations(range(len(S)), count):
        values, vectors = np.linalg.eigh(S[np.ix_(support, support)])
        if values[-1] > best + 1e-12:
            best, answer = values[-1], np.zeros(len(S))
            answer[list(support)] = vectors[:, -1]
    return answer


def schur(S, x):
    return S - np.outer(S @ x, S @ x) / (x @ S @ x)


def projection(S, x):
    P = np.eye(len(S)) - np.outer(x, x)
    return P @ S @ P


@pytest.mark.parametrize(
    ("counts", "deflate", "expected"),
    [
        ((7, 4, 4, 1, 1, 1), schur, (75.51, 80.70, 85.24)),
        ((6, 2, 2, 1, 1, 1), schur, (73.67, 76.93, 84.77)),
        ((7, 2, 4, 3, 5, 4), projection, (79.76, 84.03, 86.56)),
        ((5, 5, 5, 5), projection, (63.04, 67.67, 71.69)),
        ((5, 5, 5, 5), schur, (64.99, 66.29, 72.44)),
    ],
)
def test_totals_of_exact_sparse_components(counts, deflate, expected):
    S = load_pitprops().correlation
    deflated, columns = S, []
    for count in counts:
        columns.append(best_of(deflated, count))
        deflated = deflate(deflated, columns[-1])
    V = np.column_stack(columns)
    totals = [100 * variance(S, V, kind).sum() / 13 for kind in KINDS]
    np.testing.assert_allclose(totals, expected, atol=0.006)


# --- definitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_principal_components_explain_their_eigenvalues(kind):
    S = load_pitprops().correlation
    values, vectors = np.linalg.eigh(S)
    np.testing.assert_allclose(variance(S, vectors[:, ::-1], kind), values[::-1], rtol=1e-10)


@st.composite
def loadings(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p, k = draw(st.integers(1, 7)), draw(st.integers(1, 9))
    rank = draw(st.integers(1, p))
    X = rng.normal(size=(rank, p))
    V = rng.normal(size=(p, k)) * (rng.random((p, k)) < 0.6)
    for j in range(1, k):
        if rng.random() < 0.2:  # a column that those before it span
            V[:, j] = V[:, :j] @ rng.normal(size=j)
    return X.T @ X, V


@settings(deadline=None, max_examples=150)
@given(problem=loadings(), kind=st.sampled_from(KINDS))
def test_sums_are_those_of_the_definitions(problem, kind):
    S, V = problem
    increments = variance(S, V, kind)
    assert (increments >= 0).all()
    np.testing.assert_allclose(np.cumsum(increments), twin(S, V, kind), atol=1e-7 * np.trace(S))


@settings(deadline=None, max_examples=50)
@given(problem=loadings())
def test_the_kinds_are_ordered_and_within_the_total(problem):
    S, V = problem
    adjusted, subspace, reconstruction = (variance(S, V, kind).sum() for kind in KINDS)
    slack = 1e-9 * np.trace(S)
    assert adjusted <= subspace + slack
    assert subspace <= reconstruction + slack
    assert reconstruction <= np.trace(S) + slack


@pytest.mark.parametrize("kind", KINDS)
def test_length_and_sign_of_a_column_do_not_matter(kind):
    rng = np.random.default_rng(0)
    S = np.cov(rng.normal(size=(20, 6)), rowvar=False)
    V = rng.normal(size=(6, 3))
    np.testing.assert_allclose(variance(S, V * [-3.0, 1e-9, 1e9], kind), variance(S, V, kind), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_zero_repeated_and_surplus_columns_add_nothing(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3, 5))  # rank 3
    S = X.T @ X
    V = np.column_stack([np.zeros(5), rng.normal(size=(5, 5))])
    V = np.insert(V, 2, -2 * V[:, 1], axis=1)  # the first live column again
    increments = variance(S, V, kind)
    assert increments[0] == increments[2] == 0
    assert increments.sum() <= np.trace(S) * (1 + 1e-12)
    if kind != "subspace":  # three scores say all there is
        assert (increments[5:] == 0).all()
        assert (increments[[1, 3, 4]] > 0).all()
    assert (variance(S, np.zeros((5, 2)), kind) == 0).all()


def test_no_components():
    assert explained_variance(np.zeros((4, 0)), np.zeros((4, 0))).shape == (0,)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="adjusted, subspace, reconstruction"):
        explained_variance(np.eye(2), np.eye(2), "variance")


def test_nearly_dependent_columns_keep_their_digits():
    S = np.diag([3.0, 2.0, 1.0])
    V = np.array([[1.0, 1.0], [0.0, 1e-4], [0.0, 0.0]])
    assert variance(S, V, "subspace") == pytest.approx([3.0, 2.0], rel=1e-10)
    assert variance(S, V, "reconstruction") == pytest.approx([3.0, 2.0], rel=1e-7)
    assert variance(S, V, "adjusted") == pytest.approx([3.0, 2e-8], rel=1e-6)


def test_orthogonalised_scores_and_loadings():
    rng = np.random.default_rng(2)
    X, V = rng.normal(size=(30, 8)), rng.normal(size=(8, 4))
    V[:, 3] = V[:, 0] + V[:, 1]
    before = V.copy()
    for scores in (True, False):
        W, SW = orthogonalised(X.T @ (X @ V), V, scores=scores)
        gram = (X @ W).T @ (X @ W) if scores else W.T @ W
        assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-12 * gram.max()
        assert not W[:, 3].any()
        np.testing.assert_allclose(SW, X.T @ (X @ W), atol=1e-11)
    assert (before == V).all()
