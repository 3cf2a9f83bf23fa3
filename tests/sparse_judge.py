"""A judge of sparse components that owes nothing to the package: exact deflation, and the best component by trying all.

Numbers are integers, 2**-BITS each: what is left of a covariance after some components is known to hundreds of digits,
whatever the scales of its features. The best value is that of an actual vector, so that a bound below it is wrong, and
not only inaccurate. Nothing here imports princomp.
"""

import itertools

import numpy as np

BITS = 640
CLOSE = 1e-6  # supports within this of the best, relative, are compared exactly
NOTHING = 1e-13  # "generalised": a component with a smaller share outside those before it adds nothing to them

# --- exact numbers ------------------------------------------------------------------------------------


def exact(numbers):
    """Numbers as integers, 2**-BITS each."""

    def one(number):
        numerator, denominator = float(number).as_integer_ratio()
        return (numerator << BITS) // denominator

    numbers = np.asarray(numbers)
    out = np.empty(numbers.shape, dtype=object)
    for at in np.ndindex(numbers.shape):
        out[at] = one(numbers[at])
    return out


def rounded(numbers):
    """Integers of `exact` as floats."""
    return np.array([int(number) / 2**BITS for number in numbers.ravel()]).reshape(numbers.shape)


def times(a, b):
    return (a @ b) >> BITS


def over(a, b):
    return (a << BITS) // b


def covariance(X):
    """The covariance (n - 1) of data."""
    X, n = exact(X), len(X)
    centred = X - X.sum(axis=0) // n
    return times(centred.T, centred) // (n - 1)


def deflated(S, components, kind):
    """What components (rows, of any length but zero, which takes nothing away) leave of S: Mackey's four ways."""
    basis = []
    for row in components:
        if not np.any(row):
            continue
        x = exact(row)
        if kind == "generalised":
            whole = times(x, x)
            for q in basis:
                x = x - (q * over(times(q, x), times(q, q)) >> BITS)
            if times(x, x) <= over(whole, exact(NOTHING**-2).item()):
                continue
            basis.append(x)
        y, length = times(S, x), times(x, x)
        c = times(x, y)
        if kind == "schur":
            S = S - over(np.outer(y, y), c) // 2**BITS if c > 0 else S
        elif kind == "hotelling":
            S = S - (np.outer(x, x) * over(over(c, length), length) >> 2 * BITS)
        else:
            u = over(x, length)
            S = S - (np.outer(u, y) + np.outer(y, u) - (np.outer(u, u) * c >> BITS) >> BITS)
    return S


def value(S, v):
    """v'Sv / v'v, exactly."""
    v = exact(v)
    return over(times(v, times(S, v)), times(v, v))


# --- the best component -------------------------------------------------------------------------------


def supports(p, k, include=(), exclude=(), nonnegative=False, groups=None):
    """All sets of features that a component may use; nonnegative: also smaller ones, on which others may be best."""
    units = np.arange(p) if groups is None else np.asarray(groups)
    allowed = [i for i in range(p) if i not in set(exclude)]
    needed = {units[i] for i in include}
    if nonnegative:
        sets = itertools.chain.from_iterable(itertools.combinations(allowed, m) for m in range(1, len(allowed) + 1))
        return [here for here in sets if len({*units[list(here)], *needed}) <= k]
    available = sorted({units[i] for i in allowed})
    chosen = itertools.combinations(available, min(k, len(available)))
    return [tuple(i for i in allowed if units[i] in some) for some in map(set, chosen) if needed <= some]


def best(S, k, nonnegative=False, **restrictions):
    """The largest exact value of a vector on any of the supports; None if there is no support."""
    A = rounded(S)
    candidates, p = [], len(A)
    everywhere = supports(p, k, nonnegative=nonnegative, **restrictions)
    for _, some in itertools.groupby(sorted(everywhere, key=len), key=len):
        at = np.array(list(some))
        blocks = A[at[:, :, None], at[:, None, :]]
        scale = np.maximum(np.abs(blocks).max(axis=(1, 2)), 1e-300)
        lead = np.linalg.eigh(blocks / scale[:, None, None])[1][:, :, -1]
        for W in (np.maximum(lead, 0), np.maximum(-lead, 0)) if nonnegative else (lead,):
            lengths = np.maximum(np.einsum("ij,ij->i", W, W), 1e-300)
            heights = np.einsum("ij,ijk,ik->i", W, blocks, W) / lengths
            candidates += [(h, here, w) for h, here, w in zip(heights, at, W) if w.any()]
    if not candidates:
        return None
    top = max(height for height, _, _ in candidates)
    close = sorted((c for c in candidates if c[0] >= top - CLOSE * abs(top)), key=lambda c: -c[0])[:4]
    return max(value(S[np.ix_(here, here)], w) for _, here, w in close)


# --- awkward covariances ------------------------------------------------------------------------------


def _random(rng, p):
    X = rng.standard_normal((int(rng.integers(2, 4 * p)), p))
    return X.T @ X / len(X)


def _one_hot(rng, p):
    """Balanced indicators of one or two factors."""
    first = p if p < 6 or rng.random() < 0.5 else int(rng.integers(2, p - 1))
    levels = [first] if first == p else [first, p - first]
    rows = np.array(list(itertools.product(*(range(m) for m in levels))))
    return np.cov(np.hstack([np.eye(m)[rows[:, i]] for i, m in enumerate(levels)]).T)


def _simplex(rng, p):
    return (p * np.eye(p) - 1.0) / (p - 1)


def _equicorrelated(rng, p):
    return np.eye(p) + (1 - np.eye(p)) * rng.choice([0.0, 0.5, 0.9, 1.0])


def _graded(rng, p):
    scale = 10.0 ** rng.permutation(np.linspace(-8, 8, p))
    return _random(rng, p) * np.outer(scale, scale)


def _zero_variance(rng, p):
    keep = rng.random(p) < 0.5
    return _random(rng, p) * np.outer(keep, keep)


def _duplicates(rng, p):
    which = rng.integers(0, max(p // 2, 1), p)
    return _random(rng, p)[np.ix_(which, which)]


def _low_rank(rng, p):
    X = rng.standard_normal((int(rng.integers(1, 3)), p))
    return X.T @ X


def _integers(rng, p):
    X = rng.integers(0, 3, (p + 6, p)).astype(float)
    X[0], X[1] = 0, 3  # every column varies
    return np.corrcoef(X.T)


def _noise(rng, p):
    """A multiple of the identity, with covariances that are rounding."""
    E = 1e-16 * np.sign(rng.standard_normal((p, p)))
    return np.eye(p) + (np.tril(E, -1) + np.tril(E, -1).T) * (1 - np.eye(p))


def _blocks(rng, p):
    return np.kron(np.eye(p), np.full((3, 3), 1.0) + np.eye(3) * rng.choice([0.0, 1.0]))[:p, :p]


MATRICES = {
    f.__name__[1:]: f
    for f in (
        *(_random, _one_hot, _simplex, _equicorrelated, _graded, _zero_variance),
        *(_duplicates, _low_rank, _integers, _noise, _blocks),
    )
}
DEFLATIONS = ("schur", "projection", "generalised", "hotelling")


def problem(seed, least=2, most=9):
    """(S, parameters of the estimator, those of them that say what may be chosen), p = 2 .. 9."""
    rng = np.random.default_rng([seed, 12])
    name = list(MATRICES)[seed % len(MATRICES)]
    p = int(rng.integers(least, most + 1))
    S = MATRICES[name](rng, p)
    S = (S + S.T) / 2
    given = {}
    if rng.random() < 0.3:
        given["groups"] = np.unique(rng.integers(0, p // 2 + 2, p), return_inverse=True)[1].tolist()
    order = rng.permutation(p).tolist()
    if rng.random() < 0.4 and p > 3:
        given["exclude"] = order[2 : 2 + int(rng.integers(1, 3))]
    of = given.get("groups", range(p))
    units = len({of[i] for i in range(p) if i not in given.get("exclude", ())})
    k = int(rng.integers(1, units + 1))
    if rng.random() < 0.4:
        given["include"] = order[: int(rng.integers(1, min(k, 2) + 1))]
    if rng.random() < 0.3:
        given["nonnegative"] = True
    components = int(rng.integers(1, min(p, 4) + 1))
    how = {"n_components": components, "nonzeros": k, "deflation": DEFLATIONS[int(rng.integers(4))], **given}
    return S, how, given


def table(seed, p):
    """Data of p columns whose covariance is awkward: ties, scales, repetitions, offsets."""
    rng = np.random.default_rng([seed, 13])
    X = rng.standard_normal((int(rng.integers(p + 1, 3 * p + 3)), p)) + 1000 * rng.integers(0, 2, p)
    way = seed % 5
    if way == 1:
        X = np.tile(np.eye(p), (int(rng.integers(1, 4)), 1))
    elif way == 2:
        X = rng.integers(0, 3, X.shape).astype(float)
    elif way == 3:
        X = X * 10.0 ** rng.permutation(np.linspace(-8, 8, p))
    elif way == 4:
        X = X[:, rng.integers(0, p, p)]
    return X


# --- what is claimed ----------------------------------------------------------------------------------

DIGITS = 2e-9  # relative: what `verify` says that it tells apart
LAST = 1e-14  # of the largest covariance: below, numbers are rounding


def is_false(S, c):
    """Whether a certificate of components of S (exact) claims what is not so; the first thing that is not, in words."""
    k, p = len(c.proofs), len(S)
    features = np.asarray(c.features)
    if features.shape != (k,) or features.dtype.kind not in "iu" or len(c.lower) != k or len(c.upper) != k:
        return "not as many numbers as components"
    if c.deflation not in DEFLATIONS or c.unit not in ("feature", "group") or c.dominant is not None:
        return "words that mean nothing"
    rows = np.array([np.zeros(p) if proof is None else proof.vector for proof in c.proofs])
    groups = next((proof.groups for proof in c.proofs if proof is not None), None)
    said = {"include": c.include, "exclude": c.exclude, "nonnegative": c.nonnegative}
    if (groups is None) != (c.unit == "feature") and any(proof is not None for proof in c.proofs):
        return "the wrong unit"
    for j, proof in enumerate(c.proofs):
        A = deflated(S, rows[:j], c.deflation)
        wrong = _false_of_one(A, c.lower[j], c.upper[j], int(features[j]), rows[j], groups=groups, **said)
        if not wrong and proof is not None:
            wrong = proof_is_false(A, proof)
        if wrong:
            return f"component {j + 1}: {wrong}"
    gaps = np.subtract(c.upper, c.lower) / np.abs(np.where(np.asarray(c.upper) == 0, 1e-300, c.upper))
    if c.scope not in ("local", "global") or (c.scope == "global" and (gaps > 1e-6).any()):
        return "a global scope with gaps"
    return "" if c.residual >= 0 else "a residual below 0"


def proof_is_false(A, proof):
    """Whether a proof is of what is not so, for the matrix A (exact)."""
    names = ("include", "exclude", "nonnegative", "groups", "support", "rounding")
    claim = {name: getattr(proof, name) for name in names}
    return _false_of_one(A, proof.lower, proof.upper, proof.nonzeros, proof.vector, **claim)


def _false_of_one(A, lower, upper, k, v, support=None, rounding=0.0, **restrictions):
    p = len(A)
    for features in (restrictions["include"], restrictions["exclude"], support if support is not None else ()):
        if len(set(features)) != len(features) or not all(isinstance(i, int) and 0 <= i < p for i in features):
            return "features that are none"
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= p or rounding < 0:
        return "numbers that are none"
    if set(restrictions["include"]) & set(restrictions["exclude"]):
        return "features both in and out"
    scale = np.abs(rounded(A)).max()
    units = np.arange(p) if restrictions["groups"] is None else np.asarray(restrictions["groups"])
    used = np.flatnonzero(v)
    if len(used):
        if not np.isfinite(v).all() or abs(v @ v - 1) > DIGITS:
            return "no unit vector"
        if lower > int(value(A, v)) / 2**BITS + DIGITS * abs(lower) + LAST * scale:
            return "a value that the vector has not"
        needed = {*units[used], *units[list(restrictions["include"])]}
        if len(needed) > k or set(used) & set(restrictions["exclude"]):
            return "a vector that is not allowed"
        if restrictions["nonnegative"] and (v < 0).any():
            return "negative loadings"
    if support is not None and not set(used) <= set(support):
        return "a support that is not the vector's"
    top = best(A, k, **restrictions)
    if top is None:
        return "no component at all"
    return "an upper bound that is exceeded" if exact(upper + DIGITS * abs(upper)).item() < top else ""
