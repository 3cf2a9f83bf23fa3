"""K-SVD's sweep over atoms (Aharon, Elad & Bruckstein, IEEE Trans. Signal Processing 54, 2006), for rows in memory.

Objective: |X - A D|^2 over atoms d_k, |d_k| = 1, and over the coefficients that are not zero; zeros stay. With rows w
that use atom k, and E = X_w - A_w D + a_wk d_k what the other atoms leave of them, the exact step is the best matrix of
rank one: d_k = the leading right singular vector of E, a_wk = E d_k. The approximate step (Rubinstein, Zibulevsky and
Elad, Technion CS-2008-08) is one round of the power method: d_k = E'a_wk / |E'a_wk|, a_wk = E d_k. Either minimises in
turn, so the objective does not rise. The residual X - A D is kept, and only its rows w change.
"""

from typing import Any

import numpy as np
from scipy.linalg import eigh

from princomp._compiled import loops
from princomp._typing import Array

LARGEST = 1000  # of a matrix whose eigenvectors are computed at once; of a larger one, the leading one by iteration


def sweep(X: Array, codes: Any, D: Array, *, exact: bool) -> tuple[Array, Any]:
    """Return atoms (K, p) and codes (CSR, n x K, the same places) after each atom was improved once, in their order.

    ``X`` (n, p) is dense. Atoms that no row uses stay as they are.
    """
    D, codes = np.array(D, np.float64, order="C"), codes.astype(np.float64).tocsr(copy=True)
    R = np.ascontiguousarray(X - codes @ D, np.float64)
    rows = np.repeat(np.arange(codes.shape[0]), np.diff(codes.indptr))
    order = np.argsort(codes.indices, kind="stable")
    ends = np.cumsum(np.bincount(codes.indices, minlength=len(D)))
    fast = loops("ksvd_pairs")
    improve = exact_pair if exact else pair if fast is None else fast.pair
    for d, places in zip(D, np.split(order, ends[:-1])):
        if len(places):
            a = codes.data[places]
            improve(R, rows[places], a, d)
            codes.data[places] = a
    return D, codes


def pair(R: Array, rows: Array, a: Array, d: Array) -> None:
    """Improve an atom and its coefficients, in place, by a round of the power method: the slow twin."""
    E = R[rows] + np.outer(a, d)
    new = (a / (np.abs(a).max() or 1.0)) @ E
    most = np.abs(new).max()
    if most > 0:
        d[:] = new / most
        d /= np.linalg.norm(d)
        a[:] = E @ d
        R[rows] = E - np.outer(a, d)


def exact_pair(R: Array, rows: Array, a: Array, d: Array) -> None:
    """Put the leading singular vector of what the other atoms leave into d, in place, and what belongs to it into a."""
    E = R[rows] + np.outer(a, d)
    new = _leading(E, d)
    if new is not None:
        new = new if new @ d >= 0 else -new
        d[:] = new
        a[:] = E @ d
        R[rows] = E - np.outer(a, d)


def _leading(E: Array, d: Array) -> Array | None:
    """Return the leading right singular vector of E (m, p), None if E is zero; d is where to look first."""
    most = np.abs(E).max()
    if not most > 0:
        return None
    E = E / most  # so that squares can be written
    m, p = E.shape
    if min(m, p) > LARGEST:
        from scipy.sparse.linalg import svds

        return svds(E, k=1, v0=d if m >= p else E @ d, return_singular_vectors="vh")[2][0]
    if m >= p:
        return eigh(E.T @ E, subset_by_index=(p - 1, p - 1))[1][:, 0]
    v = eigh(E @ E.T, subset_by_index=(m - 1, m - 1))[1][:, 0] @ E
    return v / np.linalg.norm(v)
