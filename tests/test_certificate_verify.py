"""`certificates.verify` accepts what was proved, and nothing that was tampered with."""

import ast
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from cardinality_problems import KINDS, constraints, matrix
from princomp import SparsePCA, certificates
from princomp.certificates import CardinalityCertificate, Kind, Leaves, verify
from princomp.certificates.leaf_bounds import UnitMatrix, leaf_bound
from princomp.certificates.proof import restriction
from princomp.certificates.reading import WrongError
from princomp.certificates.recheck import recheck
from princomp.datasets import load_pitprops
from princomp.solvers import branch_and_bound
from princomp.solvers.branch_and_bound import prove

K = 6


def proof_of(S, **given):
    """A proof by branching and dual points, cut off, so that upper and lower differ."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branch_and_bound, "ENUMERATED", 40)
        patch.setattr(branch_and_bound, "STEPS", 12)
        return prove(S, K, support=range(K), include=[2], exclude=[19], **given)


@pytest.fixture(scope="module")
def S():
    X = np.random.default_rng(11).standard_normal((60, 20))
    return X.T @ X


@pytest.fixture(scope="module")
def proof(S):
    found = proof_of(S, node_limit=12)
    kinds = set(found.leaves.kind[found.leaves.unit < 0])
    assert {Kind.SIGNED, Kind.ENUMERATED} <= kinds, "the proof must hold what is tampered with"
    assert not found.proved
    return found


def leaf(proof, kind=None):
    """The leaf, of some kind, with the largest bound."""
    leaves = proof.leaves
    mine = (leaves.unit < 0) & (True if kind is None else leaves.kind == kind)
    return int(np.argmax(np.where(mine, leaves.bound, -np.inf)))


def with_leaves(proof, **changes):
    return replace(proof, leaves=replace(proof.leaves, **changes))


def changed(array, at, value):
    array = np.array(array)
    array[at] = value
    return array


def missing_leaf(proof):
    parent = int(np.flatnonzero(proof.leaves.outside == leaf(proof))[0]) if leaf(proof) in proof.leaves.outside else 0
    return with_leaves(proof, outside=changed(proof.leaves.outside, parent, -1))


def branch_replaced_by_leaf(proof):
    """The root claims to be a leaf: all others hang nowhere."""
    return with_leaves(proof, unit=changed(proof.leaves.unit, 0, -1))


def one_child_twice(proof):
    return with_leaves(proof, inside=changed(proof.leaves.inside, 0, proof.leaves.outside[0]))


def children_exchanged(proof):
    leaves = proof.leaves
    return with_leaves(proof, inside=leaves.outside, outside=leaves.inside)


def unit_decided_twice(proof):
    leaves = proof.leaves
    child = next(int(i) for i in (leaves.inside[0], leaves.outside[0]) if leaves.unit[i] >= 0)
    return with_leaves(proof, unit=changed(leaves.unit, child, leaves.unit[0]))


def bound_lowered(proof):
    return with_leaves(proof, bound=changed(proof.leaves.bound, leaf(proof), proof.lower))


def bound_and_upper_lowered(proof):
    bound = np.where(proof.leaves.unit < 0, np.minimum(proof.leaves.bound, proof.lower), np.nan)
    return replace(with_leaves(proof, bound=bound), upper=proof.lower)


def bound_not_a_number(proof):
    return with_leaves(proof, bound=changed(proof.leaves.bound, leaf(proof), np.nan))


def leaf_added_with_another_bound(proof):
    leaves, at = proof.leaves, leaf(proof)
    names = ("unit", "inside", "outside", "kind", "dual", "bound")
    longer = {name: np.append(getattr(leaves, name), getattr(leaves, name)[at]) for name in names}
    longer["bound"][-1] = proof.lower
    return with_leaves(proof, **longer)


def kind_called_exact(proof):
    return with_leaves(proof, kind=changed(proof.leaves.kind, leaf(proof, Kind.SIGNED), Kind.EXACT))


def kind_called_eigenvalue(proof):
    return with_leaves(proof, kind=changed(proof.leaves.kind, leaf(proof, Kind.SIGNED), Kind.EIGENVALUE))


def kind_unknown(proof):
    return with_leaves(proof, kind=changed(proof.leaves.kind, leaf(proof), 17))


def point_of(proof, change):
    points = list(proof.leaves.points)
    at = int(proof.leaves.dual[leaf(proof, Kind.SIGNED)])
    points[at] = change(*(np.array(part) for part in points[at]))
    return with_leaves(proof, points=tuple(points))


def weights_changed(proof):
    return point_of(proof, lambda units, weights, shift: (units, 1.1 * weights, shift))


def shift_changed(proof):
    return point_of(proof, lambda units, weights, shift: (units, weights, shift + np.arange(len(shift))))


def units_of_point_exchanged(proof):
    return point_of(proof, lambda units, weights, shift: (units[::-1], weights, shift))


def point_without_a_unit(proof):
    return point_of(proof, lambda units, weights, shift: (units[:-1], weights[:-1, :-1], shift[:-1]))


def point_missing(proof):
    return with_leaves(proof, points=())


def loadings_not_positive(proof):
    return with_leaves(proof, loadings=-np.ones(20))


def lower_inflated(proof):
    return replace(proof, lower=proof.upper)


def upper_deflated(proof):
    return replace(proof, upper=0.5 * (proof.lower + proof.upper))


def upper_inflated(proof):
    return replace(proof, upper=1.01 * proof.upper)


def vector_too_dense(proof):
    vector = np.array(proof.vector)
    vector[[i for i in range(19) if i not in proof.support][:2]] = 1e-3
    return replace(proof, vector=vector / np.linalg.norm(vector))


def support_too_large(proof):
    return replace(proof, support=(*proof.support, next(i for i in range(19) if i not in proof.support)))


def vector_not_unit(proof):
    return replace(proof, vector=1.001 * proof.vector)


def vector_of_another_support(proof):
    return replace(proof, vector=np.roll(proof.vector, 1))


def include_forgotten(proof):
    return replace(proof, include=())


def include_violated(proof):
    return replace(proof, include=(2, next(i for i in range(19) if i not in proof.support)))


def exclude_forgotten(proof):
    return replace(proof, exclude=())


def exclude_violated(proof):
    return replace(proof, exclude=(19, proof.support[0]))


def more_nonzeros_claimed(proof):
    return replace(proof, nonzeros=proof.nonzeros + 1)


def fewer_nonzeros_claimed(proof):
    return replace(proof, nonzeros=proof.nonzeros - 1)


def called_nonnegative(proof):
    return replace(proof, nonnegative=True)


def groups_of_others(proof):
    return replace(proof, groups=(0, 1, 2))


def units_out_of_range(proof):
    return with_leaves(proof, unit=changed(proof.leaves.unit, 0, 99))


def groups_added(proof):
    return replace(proof, groups=(0, 0, *range(2, 20)))


def support_named_twice(proof):
    """Counted twice, an entry would raise the value."""
    support = (*proof.support[1:], proof.support[1])
    vector = np.zeros(20)
    vector[list(support[:-1])] = 1 / np.sqrt(len(support) - 1)
    return replace(proof, vector=vector, support=support, include=())


def support_from_the_end(proof):
    return replace(proof, support=(proof.support[0] - 20, *proof.support[1:]))


def support_not_whole(proof):
    return replace(proof, support=tuple(feature + 0.5 for feature in proof.support))


def exclude_as_a_mask(proof):
    return replace(proof, exclude=tuple(feature in proof.exclude for feature in range(20)))


def weights_complex(proof):
    return point_of(proof, lambda units, weights, shift: (units, weights + 0j, shift))


def weights_of_objects(proof):
    return point_of(proof, lambda units, weights, shift: (units, weights.astype(object), shift))


def units_of_point_not_whole(proof):
    return point_of(proof, lambda units, weights, shift: (units + 0.25, weights, shift))


def vector_complex(proof):
    return replace(proof, vector=proof.vector + 0j)


def unit_infinite(proof):
    return with_leaves(proof, unit=changed(proof.leaves.unit.astype(float), 0, np.inf))


def leaves_missing(proof):
    return replace(proof, leaves=None)


def units_that_wrap(proof):
    """The largest number there is, where -1 says that a node is a leaf."""
    return with_leaves(proof, unit=proof.leaves.unit.astype(np.uint64))


def lower_missing(proof):
    return replace(proof, lower=None)


def upper_infinite(proof):
    return replace(proof, upper=np.inf)


def nonzeros_not_whole(proof):
    return replace(proof, nonzeros=float(proof.nonzeros))


def groups_too_many(proof):
    return replace(proof, groups=(0, *range(20)))


def no_certificate(proof):
    return proof.upper


TAMPERED = [
    support_named_twice,
    support_from_the_end,
    support_not_whole,
    exclude_as_a_mask,
    weights_complex,
    weights_of_objects,
    units_of_point_not_whole,
    vector_complex,
    unit_infinite,
    leaves_missing,
    units_that_wrap,
    lower_missing,
    upper_infinite,
    nonzeros_not_whole,
    groups_too_many,
    no_certificate,
    missing_leaf,
    branch_replaced_by_leaf,
    one_child_twice,
    children_exchanged,
    unit_decided_twice,
    bound_lowered,
    bound_and_upper_lowered,
    bound_not_a_number,
    leaf_added_with_another_bound,
    kind_called_exact,
    kind_called_eigenvalue,
    kind_unknown,
    weights_changed,
    shift_changed,
    units_of_point_exchanged,
    point_without_a_unit,
    point_missing,
    loadings_not_positive,
    lower_inflated,
    upper_deflated,
    upper_inflated,
    vector_too_dense,
    support_too_large,
    vector_not_unit,
    vector_of_another_support,
    include_forgotten,
    include_violated,
    exclude_forgotten,
    exclude_violated,
    more_nonzeros_claimed,
    fewer_nonzeros_claimed,
    called_nonnegative,
    groups_of_others,
    units_out_of_range,
    groups_added,
]


def test_what_was_proved_is_accepted(S, proof):
    answer = verify(S, proof)
    assert answer
    assert f"all {len(proof.leaves)} leaves" in str(answer)


@pytest.mark.parametrize("tamper", TAMPERED, ids=lambda tamper: tamper.__name__)
def test_what_was_tampered_with_is_rejected(S, proof, tamper):
    answer = verify(S, tamper(proof))
    assert not answer
    assert str(answer).endswith(".")


@pytest.mark.parametrize(
    "change",
    [
        lambda S: 1.001 * S,
        lambda S: S + np.diag(np.arange(20) == 7) * 1e-3,
        lambda S: S[::-1, ::-1],
        lambda S: -S,
        lambda S: S + np.triu(np.ones((20, 20)), 1),
        lambda S: S[:19, :19],
        lambda S: S[:19],
        lambda S: S * np.nan,
    ],
    ids=["scaled", "one variance", "another order", "negative", "not symmetric", "smaller", "not square", "nan"],
)
def test_another_matrix_is_rejected(S, proof, change):
    assert not verify(change(S), proof)


def forged(S, k, weights, **how):
    """A certificate of one leaf, its bound as verify computes it from the weights as they are."""
    p = len(S)
    tree = Leaves(*(np.array([number]) for number in (-1, -1, -1, int(Kind.DUAL), 0, 0.0)))
    tree = replace(tree, points=((np.arange(p), weights, np.zeros(p)),))
    claim = CardinalityCertificate(float(S[0, 0]), 0.0, np.eye(p)[0], (0,), k, tree, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        bound = leaf_bound(UnitMatrix(S, claim, False), tree, 0, np.zeros(0, dtype=int), np.arange(p))
    return replace(claim, upper=max(bound, claim.lower), leaves=replace(tree, bound=np.array([bound])))


@pytest.mark.parametrize("kind", ["complex", "wrapping"])
def test_weights_that_are_no_real_numbers_forge_no_proof(kind):
    S = 5120 * load_pitprops().correlation
    p = len(S)
    if kind == "complex":  # the square of an imaginary weight is negative
        weights = 1j * (np.triu(np.sqrt(abs(S)), 1) - np.tril(np.sqrt(abs(S)), -1))
    else:  # 256 * 256 is 0 in 16 bits
        weights = np.where(np.tri(p, k=-1) > 0, np.round(abs(S) / 256), 256.0).astype(np.int16)
        np.fill_diagonal(weights, 0)
    best = prove(S, 3, support=[0, 1, 2]).lower
    claim = forged(S, 3, weights)
    assert claim.upper < 0.9 * best, "the claim must be false"
    assert not verify(S, claim)
    honest = forged(S, 3, np.sqrt(abs(S)))  # the same made from real weights is a proof
    assert honest.upper >= best
    assert verify(S, honest)


def test_a_covariance_below_zero_is_not_lowered_for_nothing():
    """Loadings that may not be negative pay nothing for what raises it; weights of opposite signs would lower it."""
    S = np.array([[1.0, 1.0, -0.01], [1.0, 1.0, 1.0], [-0.01, 1.0, 1.0]])
    weights = np.zeros((3, 3))
    weights[0, 2], weights[2, 0] = 1.0, -1.0
    best = prove(S, 3, support=[0, 1, 2], nonnegative=True)
    assert best.vector.all()
    assert forged(S, 3, weights, nonnegative=True).upper >= best.lower


def test_a_value_is_that_of_the_vector():
    S = load_pitprops().correlation
    proof = prove(S, 1, support=[0])
    twice = replace(proof, vector=np.eye(13)[0], support=(0, 0), lower=4.0, upper=4.0)
    assert not verify(S, twice)
    assert not verify(S, replace(twice, vector=np.eye(13)[12], support=(-1, 12)))


@pytest.mark.parametrize("size", [1e300, 1e160, 1e-160, 1e-300])
def test_of_any_size(S, size):
    proof = proof_of(size / 64 * S, node_limit=12)
    assert np.isfinite(proof.upper)
    assert verify(size / 64 * S, proof)
    assert not verify(size / 63 * S, proof)
    assert not verify(size / 64 * S, upper_deflated(proof))
    rounded = proof_of(size / 64 * S, node_limit=12, rounding=1e-5 * size)
    assert rounded.upper > proof.upper
    assert verify(size / 64 * S, rounded)


@pytest.mark.parametrize("given", [None, "S", 5.0, np.ones((20, 20)) + 0j, np.zeros((0, 20))])
def test_what_is_no_matrix_is_rejected(proof, given):
    assert not verify(given, proof)


def test_trace_needs_a_positive_semidefinite_matrix():
    S = np.diag([1.0, 1.0, -5.0, 1.0])
    S[0, 1] = S[1, 0] = 3.0
    proof = prove(S, 2, support=[0, 1])
    tree = proof.leaves
    root = {"unit": [-1], "inside": [-1], "outside": [-1], "dual": [-1]}
    trace = replace(
        tree, **{k: np.array(v) for k, v in root.items()}, kind=np.array([Kind.TRACE]), bound=np.array([2.0])
    )
    vector = np.array([1.0, 0.0, 0.0, 0.0])
    assert not verify(S, replace(proof, leaves=trace, upper=2.0, lower=1.0, vector=vector, support=(0, 3)))


def test_trace_counts_every_negative_eigenvalue():
    S = np.ones((3, 3)) - np.eye(3)  # of eigenvalues 2, -1 and -1
    tree = Leaves(*(np.array([number]) for number in (-1, -1, -1, int(Kind.TRACE), -1, 0.0)))
    claim = CardinalityCertificate(0.0, 0.0, np.eye(3)[0], (0,), 3, tree)
    assert leaf_bound(UnitMatrix(S, claim, False), tree, 0, np.zeros(0, dtype=int), np.arange(3)) >= 2


@pytest.mark.parametrize("names", ["", "nonnegative", "groups", "include exclude"])
def test_every_kind_of_problem_is_accepted(names, monkeypatch):
    monkeypatch.setattr(branch_and_bound, "ENUMERATED", 0)
    for seed in range(5):
        S, k = matrix(seed, KINDS[seed])
        k, given = constraints(seed, len(S), k, names)
        assert verify(S, prove(S, k, support=given.get("include") or [0], **given, node_limit=2))


LABELS = np.array([0, 0, 1, 2, 2, 2, 3, 4, 4])


def dual_by_definition(S, a, b, supports):
    """The bound DUAL as `princomp.certificates.proof` writes it, sums over the units "in first" by trying them all."""
    M, members = S.copy(), [np.flatnonzero(g == LABELS) for g in range(len(b))]
    for g, h in combinations(range(len(b)), 2):
        block, across = np.ix_(members[g], members[h]), np.ix_(members[h], members[g])
        size = np.hypot.reduce(S[block].ravel())  # which does not vanish where squares would
        M[block] -= a[g, h] * a[h, g] * (S[block] / size if size else 0.0)
        M[across] = M[block].T
    for g, mine in enumerate(members):
        with_g = [support - {g} for support in supports if g in support]
        h = max((sum(a[g, other] ** 2 - b[other] for other in others) for others in with_g), default=0.0) - b[g]
        M[mine, mine] += h
    return np.linalg.eigvalsh(M)[-1] + max(sum(b[g] for g in support) for support in supports)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("chosen", [[], [3], [0, 4]], ids=str)
def test_the_dual_bound_of_groups_is_what_it_says(chosen, nonnegative):
    """Any weights and shifts give a bound; blocks that vanish, or whose squares would, are no exception."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((12, 9))
    S = X.T @ X
    S[np.ix_(LABELS == 0, LABELS == 1)] = S[np.ix_(LABELS == 1, LABELS == 0)] = 0.0
    S[np.ix_(LABELS == 2, LABELS == 3)], S[np.ix_(LABELS == 3, LABELS == 2)] = 1e-170, 1e-170
    k, a, b = 3, rng.uniform(0, 2, (5, 5)), rng.standard_normal(5)
    free = np.setdiff1d(np.arange(5), chosen)
    tree = Leaves(*(np.array([number]) for number in (-1, -1, -1, int(Kind.DUAL), 0, 0.0)))
    claim = CardinalityCertificate(0.0, 0.0, np.eye(9)[2], (2,), k, tree, nonnegative=nonnegative, groups=tuple(LABELS))
    order = rng.permutation(5)  # a point may name its units in any order
    claim = with_leaves(claim, points=((order, a[np.ix_(order, order)], b[order]),))
    found = leaf_bound(UnitMatrix(S, claim, False), claim.leaves, 0, np.array(chosen, dtype=int), free)
    supports = [{*chosen, *more} for more in combinations(free.tolist(), k - len(chosen))]
    assert found == pytest.approx(dual_by_definition(S, a, b, supports), rel=1e-12)
    used = [np.flatnonzero(np.isin(LABELS, list(support))) for support in supports]
    assert found >= max(np.linalg.eigvalsh(S[np.ix_(here, here)])[-1] for here in used)


def test_the_recheck_knows_no_solver():
    for path in Path(certificates.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if "solvers" in name or "_compiled" in name], path.name


def test_sentences(S, proof):
    assert "no other among components that include feature 2, without feature 19 exceeds" in str(proof)
    assert "proved to be the largest" in str(prove(np.diag([3.0, 2.0, 1.0]), 1, support=[0]))
    assert proof.gap == pytest.approx((proof.upper - proof.lower) / proof.upper)
    assert f"at most {100 * (1 - proof.lower / proof.upper):.2g} % are missing" in str(proof)
    assert restriction(range(6), [], False, False) == "that include features 0, 1, 2, 3, 4 and 5"
    assert restriction(range(7), [], False, False) == "that include features 0, 1, 2, 3, 4 and 2 others"


@pytest.mark.parametrize("deflation", ["schur", "projection", "generalised", "hotelling"])
def test_all_components_of_a_fit_at_once(deflation):
    S = load_pitprops().correlation
    sparse = SparsePCA(3, nonzeros=[5, 4, 3], deflation=deflation, certify=True).fit_covariance(S)
    found = certificates.verify(S, sparse.certificate_)
    assert found, str(found)
    assert "all 3 components" in str(found)
    wrong = [
        {"proofs": sparse.certificate_.proofs[::-1]},
        {"proofs": sparse.certificate_.proofs[:2]},
        {"upper": sparse.certificate_.upper * 0.99},
        {"lower": sparse.certificate_.lower * 1.01},
        {"deflation": "none"},
        {"deflation": "schur" if deflation != "schur" else "hotelling"},
    ]
    for change in wrong:
        assert not certificates.verify(S, replace(sparse.certificate_, **change)), change
    assert not certificates.verify(S + 0.01 * np.eye(13), sparse.certificate_)
    quick = SparsePCA(2, nonzeros=5).fit_covariance(S)
    assert "certify=True" in str(certificates.verify(S, quick.certificate_))


@pytest.fixture(scope="module")
def three():
    """A certificate of components of three features each, some forced."""
    return SparsePCA(2, nonzeros=3, include=[1], exclude=[0], certify=True).fit_covariance(load_pitprops().correlation)


@pytest.mark.parametrize(
    "change",
    [
        {"features": [8, 8]},
        {"features": np.array([3, 4])},
        {"features": [3, 3, 3]},
        {"features": [3]},
        {"features": [3.0, 3.0]},
        {"features": None},
        {"include": ()},
        {"include": (1, 1)},
        {"include": (99,)},
        {"exclude": ()},
        {"exclude": (0, 5)},
        {"nonnegative": True},
        {"nonnegative": "no"},
        {"unit": "group"},
        {"unit": "feature set"},
        {"scope": "everywhere"},
        {"dominant": True},
        {"residual": -1.0},
        {"residual": np.nan},
        {"proofs": ()},
        {"proofs": (None, None)},
        {"proofs": np.array([1, 2])},
    ],
    ids=str,
)
def test_a_certificate_says_what_its_proofs_are_about(three, change):
    S = load_pitprops().correlation
    assert verify(S, three.certificate_)
    assert not verify(S, replace(three.certificate_, **change))


def test_a_gap_is_not_global():
    X = np.random.default_rng(4).standard_normal((60, 40))
    cut = SparsePCA(1, nonzeros=12, certify=True, node_limit=1).fit(X).certificate_
    assert verify(np.cov(X.T), cut)
    assert not verify(np.cov(X.T), replace(cut, scope="global"))
    half = SparsePCA(2, nonzeros=[12, 1], certify=True, node_limit=1).fit(X).certificate_
    assert half.proved.tolist() == [False, True]
    assert verify(np.cov(X.T), half)
    assert not verify(np.cov(X.T), replace(half, scope="global"))


def test_the_residual_is_that_of_the_worst_component():
    """The first one is turned by a millionth, which changes neither its value nor what it leaves: nothing."""
    S = np.zeros((4, 4))
    S[:2, :2], S[2:, 2:] = 4.0, [[2.0, 1.0], [1.0, 2.0]]
    c = SparsePCA(2, nonzeros=2, certify=True).fit_covariance(S).certificate_
    turned = c.proofs[0].vector @ np.array([[1, 1e-6, 0, 0], [-1e-6, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    c = replace(c, proofs=(replace(c.proofs[0], vector=turned / np.linalg.norm(turned)), c.proofs[1]))
    assert verify(S, replace(c, residual=2e-6))
    assert "residual" in str(verify(S, replace(c, residual=1e-8)))


def test_a_feature_is_not_forced_in_and_out():
    S = load_pitprops().correlation
    groups = [0, 0, 1, 1, *range(2, 11)]
    proof = prove(S, 3, support=[0, 1], include=[0], exclude=[3], groups=groups)
    assert verify(S, proof)
    assert not verify(S, replace(proof, exclude=(3, 0)))
    other = prove(S, 3, support=[1], include=[1], exclude=[0], groups=groups)  # of whose group one is left
    assert verify(S, other)
    assert "in and out" in str(verify(S, replace(other, include=(0,))))


def test_a_component_without_what_is_forced_in_is_not_the_one_that_was_proved(S):
    """It is better than the best one with it, so that no bound is in its way."""
    best, forced = prove(S, 2, support=[0, 1]), prove(S, 2, support=[0, 1], include=[0])
    assert best.lower > forced.upper
    assert 0 not in best.support
    assert verify(S, forced)
    claim = replace(forced, vector=best.vector, support=best.support, lower=best.lower, upper=best.lower)
    assert "lacks a feature" in str(verify(S, claim))


@pytest.mark.parametrize("groups", [None, tuple(range(9))[::-1], tuple(LABELS)], ids=["features", "labels", "groups"])
@pytest.mark.parametrize("kind", [Kind.ROWS, Kind.TRACE, Kind.EIGENVALUE])
def test_a_feature_that_is_forced_out_takes_no_part_in_a_bound(kind, groups):
    """Feature 4, which has all the variance there is, may as well not be there."""
    X = np.random.default_rng(5).standard_normal((12, 9)) * np.where(np.arange(9) == 4, 100.0, 1.0)
    S = X.T @ X
    tree = Leaves(*(np.array([number]) for number in (-1, -1, -1, int(kind), -1, 0.0)))
    claim = CardinalityCertificate(0.0, 0.0, np.eye(9)[0], (0,), 3, tree, exclude=(4,), groups=groups)
    bounds = []
    for given in (S, S * (np.arange(9) != 4) * (np.arange(9) != 4)[:, None]):
        known = UnitMatrix(given, claim, False)
        free = np.unique(known.unit_of[known.allowed])
        bounds.append(leaf_bound(known, tree, 0, np.zeros(0, dtype=int), free))
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)
    assert bounds[0] < 1000


@pytest.mark.parametrize("groups", [[1, 2, 3, 0], ["d", "c", "b", "a"]], ids=["turned", "reversed"])
def test_groups_of_one_feature_each_may_have_any_labels(groups):
    S = np.diag([1.0, 5.0, 4.0, 3.0]) + 0.1
    for support, how in (([0], {"include": [0]}), ([0, 2], {"exclude": [1]})):
        found, plain = prove(S, 2, support=support, groups=groups, **how), prove(S, 2, support=support, **how)
        assert found.support == plain.support
        assert (found.lower, found.upper) == (plain.lower, plain.upper)
        assert verify(S, found)


def test_rounding_is_no_excuse(S, proof):
    """What a certificate calls rounding widens its gap; it raises no value, and lowers no bound."""
    size = proof.upper - proof.lower
    for change in (
        {"rounding": size, "lower": proof.lower + size, "upper": proof.upper + size},
        {"rounding": -size, "upper": proof.upper - size},
        {"rounding": size, "lower": proof.upper},
        {"rounding": np.inf},
    ):
        assert not verify(S, replace(proof, **change))
    assert verify(S, replace(proof, rounding=size, upper=proof.upper + size))


def test_rounding_of_the_matrix_lowers_the_value(S):
    """What holds for all matrices so close to the one given is less than the value on this one."""
    off = 1e-3
    known = proof_of(S, node_limit=12, rounding=off)
    assert recheck(S, known, False, off)
    with pytest.raises(WrongError, match="The vector's value is"):
        recheck(S, replace(known, lower=known.lower + off), False, off)


def one_hot(levels, rows):
    return np.cov(np.repeat(np.eye(levels), rows, axis=0).T)


def simplex(p):
    return (p * np.eye(p) - 1.0) / (p - 1)


def rounding_between(p):
    """Equal variances; covariances that are 0 but for rounding."""
    signs = np.triu(np.sign(np.random.default_rng(p).standard_normal((p, p))), 1)
    return np.eye(p) + 1e-16 * (signs + signs.T)


def rounding_among_covariances():
    """A covariance of which some entries are 0 but for rounding."""
    rng = np.random.default_rng(1)
    p = int(rng.integers(3, 9))
    rounding = np.triu(1e-16 * np.sign(rng.standard_normal((p, p))), 1)
    X = rng.standard_normal((p, p))
    S = np.where(rng.random((p, p)) < 0.5, np.abs(X @ X.T), 0.0)
    S = (S + S.T) / 2
    return np.where(S - np.diag(np.diag(S)) == 0, rounding + rounding.T, S) + 5 * p * np.eye(p)


@pytest.mark.parametrize("deflation", ["schur", "projection", "generalised", "hotelling"])
@pytest.mark.parametrize(
    ("matrix", "how"),
    [
        (one_hot(6, 4), {"nonzeros": 3}),
        (one_hot(6, 4), {"nonzeros": 2, "nonnegative": True}),
        (simplex(7), {"nonzeros": 3, "include": [2], "exclude": [0]}),
        (simplex(6), {"nonzeros": 3}),
        (simplex(8), {"nonzeros": 2, "groups": [0, 0, 1, 1, 2, 2, 3, 3]}),
        (np.diag([3.0, 2.0, 0.0, 0.0]), {"nonzeros": 2}),
        (np.diag([3.0, 2.0, 0.0, 0.0]), {"nonzeros": 1, "include": [2]}),
        (np.diag([3.0, 2.0, 0.0, 0.0]), {"nonzeros": 2, "include": [2, 3], "nonnegative": True}),
        (rounding_between(7), {"nonzeros": 3, "nonnegative": True}),
        (rounding_between(7), {"nonzeros": 3}),
        (rounding_among_covariances(), {"nonzeros": 1, "nonnegative": True}),
        (load_pitprops().correlation[:4, :4], {"nonzeros": 1, "include": [1], "groups": [3, 1, 0, 2]}),
    ],
    ids=lambda value: "" if isinstance(value, np.ndarray) else ",".join(value),
)
@pytest.mark.parametrize("enumerated", [0, branch_and_bound.ENUMERATED])
def test_genuine_certificates_of_ties_and_of_nothing(matrix, how, deflation, enumerated, monkeypatch):
    monkeypatch.setattr(branch_and_bound, "ENUMERATED", enumerated)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of components for which nothing was left
        sparse = SparsePCA(3, deflation=deflation, certify=True, **how).fit_covariance(matrix)
    said = verify(matrix, sparse.certificate_)
    assert said, str(said)
    for j, proof in enumerate(sparse.certificate_.proofs):
        if proof is not None:
            assert verify(sparse.deflated_covariance(matrix, j), proof)


def test_the_sign_of_rounding_does_not_matter(monkeypatch):
    """Covariances of 1e-16 have another sign on another computer."""
    monkeypatch.setattr(branch_and_bound, "ENUMERATED", 0)
    X = np.random.default_rng(0).standard_normal((60, 12))
    S = np.corrcoef(X.T)
    apart = np.zeros((12, 12), dtype=bool)
    apart[:6, 6:] = apart[6:, :6] = True
    for how in ({}, {"nonnegative": True}):
        one, other = (np.where(apart, sign * rounding_between(12), S) for sign in (1, -1))
        proof = prove(one, 4, support=range(4), node_limit=3, **how)
        assert proof.leaves.points, "a dual point is needed"
        assert verify(other, proof)


def test_data_that_do_not_vary_have_a_proof():
    with pytest.warns(UserWarning, match="does not vary"):
        sparse = SparsePCA(2, nonzeros=2, certify=True).fit(np.ones((5, 3)))
    assert verify(np.zeros((3, 3)), sparse.certificate_)
    assert not verify(np.eye(3), sparse.certificate_)


def test_nothing_left_must_be_so():
    S = np.diag([3.0, 2.0, 0.0])
    with pytest.warns(UserWarning, match="leave nothing"):
        c = SparsePCA(3, nonzeros=1, certify=True).fit_covariance(S).certificate_
    assert c.proofs[2] is None
    assert verify(S, c)
    assert not verify(np.diag([3.0, 2.0, 1e-9]), c)
    assert not verify(S, replace(c, upper=np.array([3.0, 2.0, 0.0])))
    assert not verify(S, replace(c, lower=np.array([3.0, 2.0, 1e-3])))
    assert not verify(S, replace(c, features=[1, 1, 0]))
    assert not verify(S, replace(c, proofs=(c.proofs[0], None, None)))


def test_nothing_left_may_be_rounding():
    """Of these numbers exactly 0 is left, which nobody knows who has rounded on the way."""
    S = np.diag([9.0, 1.0, 0.0])
    with pytest.warns(UserWarning, match="leave nothing"):
        c = SparsePCA(3, nonzeros=1, certify=True).fit_covariance(S).certificate_
    assert verify(S, c)
    assert not verify(S, replace(c, upper=np.array([*c.upper[:2], 0.0])))


def test_a_fit_of_data_is_checked_on_their_covariance():
    X = np.random.default_rng(0).normal(size=(40, 9)) * np.arange(1, 10)
    sparse = SparsePCA(2, nonzeros=3, certify=True).fit(X)
    assert certificates.verify(np.cov(X.T), sparse.certificate_)


@pytest.mark.parametrize("deflation", ["schur", "projection"])
def test_proofs_of_several_components_are_rechecked_from_data_too(deflation):
    X = np.random.default_rng(0).standard_normal((40, 8)) * np.linspace(3, 1, 8)
    X -= X.mean(axis=0)
    found = SparsePCA(3, nonzeros=3, certify=True, deflation=deflation).fit(X)
    divided = X / np.sqrt(39)
    for given, data in ((divided, True), (divided.T @ divided, False)):
        answer = verify(given, found.certificate_, data=data)
        assert answer
        assert "the proofs of all 3 components" in str(answer)
    assert not verify(divided[:, ::-1], found.certificate_, data=True)
