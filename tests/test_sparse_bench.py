"""Sparse components under hostile trial: proved bounds hold, genuine proofs are accepted, tampered ones are not.

The judge is `sparse_judge`, exact and without our code; the liar is `sparse_tampering`. A few hundred trials here, the
full number (5000 fits, 30 000 tampered proofs) in soak.
"""

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import sparse_judge as judge
import sparse_tampering as tampering
from princomp import SparsePCA
from princomp.certificates import recheck, verify
from princomp.solvers import branch_and_bound

AT_A_TIME = 500  # seeds of a soak test: they take a minute or two
ALL_FITS, ALL_TAMPERED = 5000, 30_000
TAMPERED_EACH = 60  # with each certificate, of which a third stay true, or as they were


def fitted(seed, **more):
    """(estimator, S, S exactly, restrictions) of an awkward problem: a matrix, or for one in four data."""
    S, how, restrictions = judge.problem(seed)
    given = judge.table(seed, len(S)) if seed % 4 == 3 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that nothing was left, or varies, is no news here
        sparse = SparsePCA(**how, **more)
        sparse = sparse.fit_covariance(S) if given is None else sparse.fit(given)
    if given is None:
        return sparse, S, judge.exact(S), restrictions
    return sparse, np.cov(given.T).reshape(S.shape), judge.covariance(given), restrictions


def limits(seed):
    """How a proof is made: problems this small are enumerated, if nothing is said; half of them are cut off."""
    rng = np.random.default_rng([seed, 14])
    node_limit = int(rng.integers(1, 5)) if rng.random() < 0.3 else None
    return int(rng.choice([0, branch_and_bound.ENUMERATED])), {"certify": True, "node_limit": node_limit}


def judged(seed):
    """What went wrong with a fit: a count of kinds of failure."""
    enumerated, how = limits(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branch_and_bound, "ENUMERATED", enumerated)
        sparse, S, exactly, restrictions = fitted(seed, **(how if seed % 5 else {}))
    c, V, wrong = sparse.certificate_, sparse.result_.value["V"].T, Counter(fits=1)
    for j, upper in enumerate(c.upper):
        left = judge.deflated(exactly, V[:j], sparse.deflation)
        best = judge.best(left, sparse.nonzeros, **restrictions)
        wrong["upper bound below the optimum"] += judge.exact(upper).item() < best
    if c.proofs:
        wrong["genuine certificate refused"] += not verify(S, c)
    for j, proof in enumerate(c.proofs):
        refused = proof is not None and not verify(sparse.deflated_covariance(S, j), proof)
        wrong["genuine proof refused"] += refused
    return +wrong


def check_fits(seeds):
    found = sum((judged(seed) for seed in seeds), Counter())
    assert found == Counter(fits=len(seeds))


def test_bounds_hold_and_proofs_are_accepted():
    check_fits(range(120))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, ALL_FITS, AT_A_TIME))
def test_bounds_hold_and_proofs_are_accepted_often(first):
    check_fits(range(first, first + AT_A_TIME))


# --- tampering ----------------------------------------------------------------------------------------


def adapted(S, proof):
    """A tampered proof with the numbers that the recheck itself finds: its tree and points alone could betray it."""
    found, leaf_bound = {}, recheck.leaf_bound

    def noted(matrix, tree, node, *rest):
        tree.bound[node] = found[node] = leaf_bound(matrix, tree, node, *rest)
        return found[node]

    v = np.asarray(proof.vector)
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(recheck, "leaf_bound", noted)
        proof = replace(proof, lower=float(v @ S @ v / (v @ v)) - proof.rounding)
        verify(S, proof)
    if not found:
        return proof
    bound = np.array(proof.leaves.bound, dtype=float)
    bound[list(found)] = list(found.values())
    upper = max(proof.lower, max(found.values()) + proof.rounding)
    return replace(proof, leaves=replace(proof.leaves, bound=bound), upper=upper)


def tried(seed, count):
    """What became of tampered certificates of a fit: counts of those refused, accepted but true, accepted and false."""
    enumerated, how = limits(seed)
    rng, outcome = np.random.default_rng([seed, 15]), Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(branch_and_bound, "ENUMERATED", enumerated)
        sparse, S, exactly, _ = fitted(4 * (seed // 3) + seed % 3, **how)  # matrices: exactly S is what is claimed of
    c = sparse.certificate_
    proved = [j for j, proof in enumerate(c.proofs) if proof is not None]
    for _ in range(count if proved else 0):
        if rng.random() < 0.5:
            tamper = tampering.OF_ALL[rng.integers(len(tampering.OF_ALL))]
            claim, given, is_false = tamper(rng, c), S, judge.is_false
        else:
            tamper, j = tampering.OF_A_PROOF[rng.integers(len(tampering.OF_A_PROOF))], int(rng.choice(proved))
            given, claim, is_false = sparse.deflated_covariance(S, j), tamper(rng, c.proofs[j]), judge.proof_is_false
            claim = adapted(given, claim) if hasattr(claim, "leaves") and rng.random() < 0.5 else claim
        if claim is None and tamper is not tampering.no_proof:
            continue
        accepted = verify(given, claim)
        wrong = accepted and is_false(exactly if given is S else judge.exact(given), claim)
        said = f"accepted: {tamper.__name__}, {wrong}" if wrong else "accepted, but true"
        outcome[said if accepted else "refused"] += 1
    return outcome


def check_tampered(seeds, least):
    found = sum((tried(seed, TAMPERED_EACH) for seed in seeds), Counter())
    assert not [outcome for outcome in found if outcome not in ("refused", "accepted, but true")], found
    assert found["refused"] >= least, found


def test_no_tampered_proof_is_accepted():
    check_tampered(range(20), 500)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_no_tampered_proof_is_accepted_often(part):
    check_tampered(range(100 * part, 100 * (part + 1)), ALL_TAMPERED // 10)
