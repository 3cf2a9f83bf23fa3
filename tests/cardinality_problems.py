"""Small sparse component problems whose best support is found by trying all."""

import itertools

import numpy as np

KINDS = ("full", "low rank", "tied diagonal", "negative entries", "nearly equal optima")


def matrix(seed, kind):
    """A (p, p) matrix, p = 8 .. 13, in any unit, and the number of nonzeros."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(8, 14))
    X = rng.standard_normal((3 if kind == "low rank" else 2 * p, p))
    if kind == "nearly equal optima":
        X[:, 1] = X[:, 0] + 1e-9 * X[:, 2]
        X[:, 4] = X[:, 3] + 1e-6 * X[:, 2]
    S = X.T @ X
    if kind == "tied diagonal":
        S = S / np.sqrt(np.outer(S.diagonal(), S.diagonal()))
        np.fill_diagonal(S, 1.0)
    if kind == "negative entries":  # not positive semidefinite
        S = np.where(np.eye(p) > 0, S, -np.abs(S))
    return S * 10.0 ** rng.integers(-6, 7), int(rng.integers(1, p + 1))


def constraints(seed, p, k, names):
    """Some of include, exclude, nonnegative, groups for a problem, and a k they allow."""
    rng = np.random.default_rng([seed, 1])
    order, given = rng.permutation(p).tolist(), {}
    if "groups" in names:
        given["groups"] = np.unique(rng.integers(0, p // 2 + 1, p), return_inverse=True)[1].tolist()
        k = min(k, max(given["groups"]) + 1)
    if "include" in names:
        given["include"] = order[: min(k, int(rng.integers(0, 3)))]
    if "exclude" in names:
        given["exclude"] = order[3 : 3 + int(rng.integers(0, 3))]
    if "nonnegative" in names:
        given["nonnegative"] = True
    return k, given


def optimum(S, k, include=(), exclude=(), nonnegative=False, groups=None):
    """The largest v'Sv, by trying all supports.

    A nonnegative vector that is best is a leading eigenvector on the features it uses: all sets of these are tried.
    """
    p = len(S)
    units = np.arange(p) if groups is None else np.asarray(groups)
    allowed = [i for i in range(p) if i not in exclude]
    needed = {units[i] for i in include}
    best = max(S[i, i] for i in allowed if len({units[i], *needed}) <= k)
    available = sorted({units[i] for i in allowed})
    if nonnegative:
        sets = itertools.chain.from_iterable(
            itertools.combinations(allowed, size) for size in range(1, len(allowed) + 1)
        )
        supports = (here for here in sets if len({*units[list(here)], *needed}) <= k)
    else:
        chosen = itertools.combinations(available, min(k, len(available)))
        supports = ([i for i in allowed if units[i] in set(some)] for some in chosen if needed <= set(some))
    for here in supports:
        values, vectors = np.linalg.eigh(S[np.ix_(here, here)])
        if values[-1] > best and (not nonnegative or len(set(np.sign(vectors[:, -1]))) == 1):
            best = values[-1]
    return best


def good_support(S, k):
    """A support by truncated power steps from every column."""
    best, support = -np.inf, None
    for v in S.T:
        for _ in range(30):
            here = np.argsort(-np.abs(v), kind="stable")[:k]
            values, vectors = np.linalg.eigh(S[np.ix_(here, here)])
            v = S[:, here] @ vectors[:, -1]
        if values[-1] > best:
            best, support = values[-1], here
    return support
