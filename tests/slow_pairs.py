"""Rank-one dictionary learning, slow and plain: the data are rewritten at each deflation, every product is made anew.

A start is a v for each pair. Nothing here imports princomp: a reference that uses the code under test proves nothing.
"""

import itertools

import numpy as np

# --- the two steps ------------------------------------------------------------------------------------


def largest(b, r, *, nonnegative=False):
    """b (p,) with all but the r entries of largest magnitude set to 0; of positive ones, if none may be negative."""
    size = np.maximum(b, 0) if nonnegative else np.abs(b)
    v = np.zeros_like(b)
    kept = np.argsort(-size, kind="stable")[:r]
    v[kept] = np.maximum(b[kept], 0) if nonnegative else b[kept]
    return v


def largest_signed(b, r):
    """The rule of the old public code: the r largest entries, so that the most negative one is the last to be kept."""
    v = np.zeros_like(b)
    kept = np.argsort(-b, kind="stable")[:r]
    v[kept] = b[kept]
    return v


def unit(x):
    length = np.sqrt((x * x).sum())
    return x / length if length > 0 else x


def step(R, v, r, rule=largest):
    """One alternation: the best u for v, then the best v for that u."""
    u = unit(R @ v)
    return u, rule(R.T @ u, r)


# --- whole fits ---------------------------------------------------------------------------------------


def others(X, U, V, j, *, swept):
    """What pair j is about: X less the pairs before it or, once pairs were swept, less all others."""
    which = [i for i in range(len(V)) if (i != j if swept else i < j)]
    return X - sum((np.outer(U[:, i], V[i]) for i in which), np.zeros_like(X))


def fit(X, starts, nonzeros, *, steps, refine=0, rule=largest):
    """Atoms (n, k) and components (k, p) after so many steps for each pair and so many sweeps over all of them.

    After sweeps each pair in turn has one more v-step: its v is the best one for the u's as they are at the end.
    """
    k = len(starts)
    U, V, R = np.zeros((len(X), k)), np.zeros((k, X.shape[1])), X.copy()
    for j in range(k):
        v = starts[j]
        for _ in range(steps):
            U[:, j], v = step(R, v, nonzeros[j], rule)
        V[j] = v
        R = R - np.outer(U[:, j], v)
    for _ in range(refine):
        for j in range(k):
            U[:, j], V[j] = step(others(X, U, V, j, swept=True), V[j], nonzeros[j], rule)
    for j in range(k if refine else 0):
        V[j] = rule(others(X, U, V, j, swept=True).T @ U[:, j], nonzeros[j])
    return turned(U, V)


def turned(U, V):
    """The same pairs, the entry of largest magnitude of each v positive."""
    entries = V[np.arange(len(V)), np.abs(V).argmax(axis=1)]
    signs = np.where(entries < 0, -1.0, 1.0)
    return U * signs, V * signs[:, None]


# --- how good a pair is -------------------------------------------------------------------------------


def errors(X, U, V, nonzeros, *, swept=False, nonnegative=False, ties=1e-9):
    """(k, 2): how far each u is from the u-step, and each v from the v-step, relative to |v|; 0 of a pair of zeros.

    Of the v-step all choices among entries that tie, to within ``ties`` of |v|, are right: v is compared with the one
    that keeps as many of the places of v as may be.
    """
    X, U, V = (np.asarray(a).astype(np.longdouble) for a in (X, U, V))
    found = np.zeros((len(V), 2))
    for j, (u, v, r, tie) in enumerate(zip(U.T, V, nonzeros, np.broadcast_to(ties, len(V)))):
        size = np.sqrt((v * v).sum())
        if size == 0:
            continue
        R = others(X, U, V, j, swept=swept)
        b = R.T @ u
        choice = (np.maximum(b, 0) if nonnegative else np.abs(b)) + tie * size * (v != 0)
        best = np.zeros_like(b)
        kept = np.argsort(-choice, kind="stable")[:r]
        best[kept] = np.maximum(b[kept], 0) if nonnegative else b[kept]
        found[j] = np.sqrt(((u - unit(R @ v)) ** 2).sum()), np.sqrt(((v - best) ** 2).sum()) / size
    return found


def best_of_all(R, r):
    """The largest |v|^2 that a pair can have: the largest squared singular value of r columns, all choices tried."""
    subsets = itertools.combinations(range(R.shape[1]), r)
    return max(np.linalg.svd(R[:, list(kept)], compute_uv=False)[0] ** 2 for kept in subsets)


# --- a planted problem --------------------------------------------------------------------------------


def planted(seed, n=200, p=5000, k=20, r=350, noise=0.3):
    """X (n, p), the v's in it (k, p), and the share of the noise in the squares of X.

    Unit Gaussian u's, r entries N(0, 10^2) of each v at random places.
    """
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((n, k))
    U /= np.linalg.norm(U, axis=0)
    V = np.zeros((k, p))
    for v in V:
        v[rng.choice(p, r, replace=False)] = 10 * rng.standard_normal(r)
    N = noise * rng.standard_normal((n, p))
    X = U @ V + N
    return X, V, float((N**2).sum() / (X**2).sum())


def recovered(V, found):
    """The share of the rows of V that some row found correlates with by more than .9, in magnitude."""
    centred = [rows - rows.mean(axis=1, keepdims=True) for rows in (V, found)]
    A, B = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300) for rows in centred)
    return float((np.abs(A @ B.T).max(axis=1) > 0.9).mean())
