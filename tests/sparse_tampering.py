"""Ways to tamper with certificates of sparse components, as someone would who wants a false claim believed.

Each takes a generator and a certificate, or the proof of one component, and returns another, or None where there is
nothing to tamper with. Some leave the claim true, and even proved: `sparse_judge.is_false` tells.
"""

from dataclasses import replace

import numpy as np

# --- helpers ------------------------------------------------------------------------------------------


def changed(array, at, value):
    array = np.array(array)
    array[at] = value
    return array


def little(rng):
    """A factor near 1."""
    return 1 + 10.0 ** rng.uniform(-6, 0.5)


def with_leaves(proof, **changes):
    return replace(proof, leaves=replace(proof.leaves, **changes))


def any_leaf(rng, proof):
    return int(rng.choice(np.flatnonzero(proof.leaves.unit < 0)))


def any_features(rng, p):
    """Features, some of which may be twice there, or not at all."""
    least, most = -int(rng.random() < 0.1), p + int(rng.random() < 0.1)
    return tuple(int(i) for i in rng.integers(least, most, rng.integers(0, 4)))


def one_leaf(proof, kind, bound):
    numbers = {"unit": -1, "inside": -1, "outside": -1, "kind": kind, "dual": 0 if kind in (4, 6) else -1}
    return with_leaves(proof, bound=np.array([bound]), **{name: np.array([i]) for name, i in numbers.items()})


# --- a proof ------------------------------------------------------------------------------------------


def bounds_moved(rng, proof):
    name = rng.choice(["lower", "upper"])
    return replace(proof, **{name: getattr(proof, name) * little(rng) ** rng.choice([-1, 1])})


def lower_raised_to_upper(rng, proof):
    return replace(proof, lower=proof.upper)


def upper_lowered_to_lower(rng, proof):
    return replace(proof, upper=proof.lower)


def lowered_together(rng, proof):
    """Leaves and upper, as if more had been proved."""
    factor = little(rng)
    leaves = replace(proof.leaves, bound=proof.leaves.bound / factor)
    return replace(proof, leaves=leaves, upper=max(proof.lower, float(np.nanmax(leaves.bound)) + proof.rounding))


def proved_by_decree(rng, proof):
    bound = np.minimum(proof.leaves.bound, proof.lower)
    return replace(with_leaves(proof, bound=bound), upper=proof.lower + proof.rounding * rng.integers(2))


def one_bound_lowered(rng, proof):
    at = any_leaf(rng, proof)
    bound = changed(proof.leaves.bound, at, proof.leaves.bound[at] / little(rng))
    return replace(with_leaves(proof, bound=bound), upper=max(proof.lower, float(np.nanmax(bound)) + proof.rounding))


def rounding_claimed(rng, proof):
    """Rounding as an excuse: for a value that is larger, or a bound that is smaller."""
    size = abs(proof.upper) * (little(rng) - 1)
    way = rng.integers(4)
    if way == 0:
        return replace(proof, rounding=-size)
    if way == 1:
        return replace(proof, rounding=size, lower=proof.lower + size, upper=proof.upper + size)
    if way == 2:
        return replace(proof, rounding=size)
    lowered = with_leaves(proof, bound=proof.leaves.bound - size)
    return replace(lowered, rounding=size, lower=proof.lower + size)


def another_vector(rng, proof):
    p, v = len(proof.vector), np.array(proof.vector)
    way = rng.integers(7)
    if way == 0:
        v = rng.permutation(v)
    elif way == 1:
        v = v * little(rng)
    elif way == 2:
        v = v + rng.standard_normal(p) * 10.0 ** rng.uniform(-8, 0)
        v = v / np.linalg.norm(v)
    elif way == 3:
        v[list(proof.support)] += rng.standard_normal(len(proof.support)) * 10.0 ** rng.uniform(-6, 0)
        v = v / np.linalg.norm(v)
    elif way == 4:
        v = v * rng.choice([-1.0, 1.0], p)
    elif way == 5:
        v = np.eye(p)[rng.integers(p)]
    else:
        v = np.full(p, rng.choice([0.0, np.nan, np.inf]))
    return replace(proof, vector=v)


def another_support(rng, proof):
    support = any_features(rng, len(proof.vector))
    return replace(proof, support=support if rng.random() < 0.5 else (*proof.support, *support))


def support_named_twice(rng, proof):
    return replace(proof, support=(*proof.support, rng.choice(proof.support)))


def support_not_whole(rng, proof):
    return replace(proof, support=tuple(float(i) for i in proof.support))


def another_count(rng, proof):
    many = int(proof.nonzeros + rng.choice([-2, -1, 1, 2]))
    return replace(proof, nonzeros=rng.choice([many, float(proof.nonzeros), True, 99], p=[0.7, 0.1, 0.1, 0.1]).item())


def other_features_forced(rng, proof):
    name, p = rng.choice(["include", "exclude"]), len(proof.vector)
    features = any_features(rng, p)
    return replace(proof, **{name: features if rng.random() < 0.7 else (*getattr(proof, name), *features)})


def other_signs(rng, proof):
    return replace(proof, nonnegative=not proof.nonnegative)


def other_groups(rng, proof):
    p = len(proof.vector)
    groups = tuple(rng.integers(0, p, p + (rng.random() < 0.1)).tolist())
    return replace(proof, groups=None if proof.groups is not None and rng.random() < 0.5 else groups)


def another_kind(rng, proof):
    at = any_leaf(rng, proof)
    leaves = {"kind": changed(proof.leaves.kind, at, rng.integers(-1, 8))}
    if rng.random() < 0.5:
        leaves["bound"] = np.minimum(proof.leaves.bound, proof.lower)
    found = with_leaves(proof, **leaves)
    return replace(found, upper=max(found.lower, float(np.nanmax(found.leaves.bound)) + proof.rounding))


def a_single_leaf(rng, proof):
    return replace(one_leaf(proof, int(rng.integers(0, 7)), proof.lower), upper=proof.lower + proof.rounding)


def tree_changed(rng, proof):
    name = rng.choice(["unit", "inside", "outside", "dual"])
    array = getattr(proof.leaves, name)
    at = rng.integers(len(array))
    most = max(len(array), len(proof.vector)) + 1
    return with_leaves(proof, **{name: changed(array, at, rng.integers(-1, most))})


def tree_cut(rng, proof):
    """Some nodes are gone, with or without a word of it."""
    names = ("unit", "inside", "outside", "kind", "dual", "bound")
    many = int(rng.integers(0, len(proof.leaves.unit)))
    cut = {name: getattr(proof.leaves, name)[:many] for name in names if rng.random() < 0.95}
    return with_leaves(proof, **cut)


def branch_called_leaf(rng, proof):
    branches = np.flatnonzero(proof.leaves.unit >= 0)
    if not len(branches):
        return None
    at = int(rng.choice(branches))
    leaves = proof.leaves
    bound, kind = changed(leaves.bound, at, proof.lower), changed(leaves.kind, at, rng.integers(0, 7))
    return with_leaves(proof, unit=changed(leaves.unit, at, -1), bound=bound, kind=kind)


def child_left_out(rng, proof):
    """A side of a branch is the other side once more, or a leaf that is known."""
    branches = np.flatnonzero(proof.leaves.unit >= 0)
    if not len(branches):
        return None
    at, leaves = int(rng.choice(branches)), proof.leaves
    other = leaves.outside[at] if rng.random() < 0.5 else any_leaf(rng, proof)
    return with_leaves(proof, inside=changed(leaves.inside, at, other))


def point_changed(rng, proof):
    points = list(proof.leaves.points)
    if not points:
        return None
    at = int(rng.integers(len(points)))
    units, weights, shift = (np.array(part) for part in points[at])
    way = rng.integers(6)
    if way == 0:
        weights = weights * little(rng) ** rng.choice([-1, 1])
    elif way == 1:
        shift = shift + rng.standard_normal(len(shift)) * abs(proof.upper) * 10.0 ** rng.uniform(-6, 0)
    elif way == 2:
        units = rng.permutation(units)
    elif way == 3:
        units, weights, shift = units[:-1], weights[:-1, :-1], shift[:-1]
    elif way == 4:
        weights = weights * rng.choice([1j, np.nan, -1.0])
    else:
        weights = weights * rng.choice([-1.0, 1.0], weights.shape)
    points[at] = units, weights, shift
    bound = np.minimum(proof.leaves.bound, proof.lower) if rng.random() < 0.5 else proof.leaves.bound
    found = with_leaves(proof, points=tuple(points), bound=bound)
    return replace(found, upper=max(found.lower, float(np.nanmax(bound)) + proof.rounding))


def loadings_changed(rng, proof):
    if proof.leaves.loadings is None:
        return None
    loadings = np.array(proof.leaves.loadings) * rng.choice([1e-6, -1.0, 0.0, 2.0, np.nan], len(proof.leaves.loadings))
    return with_leaves(proof, loadings=loadings)


def no_proof(rng, proof):
    return rng.choice([None, 3.0, "proved"])


OF_A_PROOF = [
    *(bounds_moved, lower_raised_to_upper, upper_lowered_to_lower, lowered_together, proved_by_decree),
    *(one_bound_lowered, rounding_claimed, another_vector, another_support, support_named_twice, support_not_whole),
    *(another_count, other_features_forced, other_signs, other_groups, another_kind, a_single_leaf, tree_changed),
    *(tree_cut, branch_called_leaf, child_left_out, point_changed, loadings_changed, no_proof),
]

# --- a certificate of all components ------------------------------------------------------------------


def in_its_proof(rng, c):
    """A proof tampered with; what the certificate says follows."""
    at = int(rng.integers(len(c.proofs)))
    if c.proofs[at] is None:
        return None
    proof = OF_A_PROOF[rng.integers(len(OF_A_PROOF))](rng, c.proofs[at])
    if not hasattr(proof, "leaves"):
        return None
    c = replace(c, proofs=tuple(proof if j == at else kept for j, kept in enumerate(c.proofs)))
    if rng.random() < 0.2:
        return c
    follows = {"lower": changed(c.lower, at, proof.lower), "upper": changed(c.upper, at, proof.upper)}
    if np.isscalar(proof.nonzeros) and 0 < proof.nonzeros < 90:
        follows["features"] = changed(c.features, at, int(proof.nonzeros))
    if len(c.proofs) == 1 and rng.random() < 0.8:
        follows |= {"include": proof.include, "exclude": proof.exclude, "nonnegative": proof.nonnegative}
        follows["unit"] = "feature" if proof.groups is None else "group"
    return replace(c, **follows)


def numbers_of_features(rng, c):
    k = len(c.proofs)
    way = rng.integers(4)
    if way == 0:
        return replace(c, features=[int(i) for i in rng.integers(1, 10, k)])
    if way == 1:
        return replace(c, features=np.asarray(c.features) + rng.choice([-1, 1]))
    if way == 2:
        return replace(c, features=np.append(c.features, 1) if rng.random() < 0.5 else c.features[:-1])
    return replace(c, features=np.asarray(c.features) + 0.5)


def bounds_of_one(rng, c):
    name, at = rng.choice(["lower", "upper"]), int(rng.integers(len(c.proofs)))
    bounds = getattr(c, name)
    return replace(c, **{name: changed(bounds, at, bounds[at] * little(rng) ** rng.choice([-1, 1]))})


def closed_gaps(rng, c):
    at = {"upper": c.lower} if rng.random() < 0.5 else {"lower": c.upper}
    return replace(c, scope="global", **at)


def called_global(rng, c):
    return replace(c, scope=rng.choice(["global", "everywhere"]))


def another_deflation(rng, c):
    return replace(c, deflation=rng.choice(["schur", "projection", "generalised", "hotelling", "none"]))


def proofs_of_others(rng, c):
    way = rng.integers(4)
    if way == 0:
        return replace(c, proofs=c.proofs[::-1])
    if way == 1:
        return replace(c, proofs=c.proofs[:-1])
    if way == 2:
        return replace(c, proofs=(c.proofs[0],) * len(c.proofs))
    gone = int(rng.integers(len(c.proofs)))
    return replace(
        c,
        proofs=tuple(None if j == gone else proof for j, proof in enumerate(c.proofs)),
        lower=changed(c.lower, gone, 0.0),
        upper=changed(c.upper, gone, 0.0 if rng.random() < 0.5 else c.upper[gone]),
    )


def restrictions_forgotten(rng, c):
    p = max(len(proof.vector) for proof in c.proofs if proof is not None)
    name = rng.choice(["include", "exclude", "nonnegative", "unit"])
    if name in ("include", "exclude"):
        return replace(c, **{name: () if getattr(c, name) and rng.random() < 0.5 else any_features(rng, p)})
    if name == "nonnegative":
        return replace(c, nonnegative=not c.nonnegative)
    return replace(c, unit="group" if c.unit == "feature" else "feature")


def residual_forgotten(rng, c):
    return replace(c, residual=rng.choice([-1.0, np.nan, -np.inf]))


def dominance_claimed(rng, c):
    return replace(c, dominant=True)


OF_ALL = [
    *(in_its_proof, in_its_proof, in_its_proof, numbers_of_features, bounds_of_one, closed_gaps, called_global),
    *(another_deflation, proofs_of_others, restrictions_forgotten, residual_forgotten, dominance_claimed),
]
