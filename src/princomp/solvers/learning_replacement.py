"""Atoms that no longer serve: those hardly used, and twins of others, give way to the rows that are coded worst.

An atom is replaced if fewer rows use it than `HARDLY` of what the mean atom has, or if it is nearly parallel to an atom
that more rows use, |cos| > `TWIN` (Aharon, Elad & Bruckstein, IEEE Trans. Signal Processing 2006, do alike). In its
place comes a row of those with the largest error, normalised, that is not parallel to any atom either.
"""

from __future__ import annotations

import numpy as np

from princomp._typing import Array
from princomp.solvers.learning_atoms import Atoms
from princomp.solvers.learning_statistics import Coded

HARDLY = 0.01
TWIN = 0.99


def stale(D: Array, used: Array) -> Array:
    """Return the numbers of the atoms that are hardly used, or twins of others, those used least first."""
    hardly = used < HARDLY * used.mean()
    length = np.linalg.norm(D, axis=1)
    unit = D / np.where(length > 0, length, 1.0)[:, None]
    parallel = np.abs(unit @ unit.T) > TWIN
    order = np.argsort(-used, kind="stable")
    twin = np.zeros(len(D), dtype=bool)
    for place, k in enumerate(order):  # an atom is the twin of one that is used more, and stays itself
        earlier = order[:place]
        twin[k] = parallel[k, earlier[~(twin | hardly)[earlier]]].any()
    which = np.flatnonzero(hardly | twin)
    return which[np.argsort(used[which], kind="stable")]


def replaced(D: Array, coded: Coded, atoms: Atoms) -> tuple[Array, Array]:
    """Return atoms of which stale ones are replaced by the worst rows, and the numbers of those that are."""
    which = stale(D, coded.used)
    if not len(which):
        return D, which
    D, done, new = D.copy(), [], iter(coded.worst.rows)
    for k in which:
        for row in new:
            atom = atoms.allowed(row[None] / np.linalg.norm(row))[0]
            length = float(np.linalg.norm(atom))
            others = np.delete(D, k, axis=0)
            if length > 0 and not (np.abs(others @ atom) > TWIN * length * np.linalg.norm(others, axis=1)).any():
                D[k] = atom
                done.append(k)
                break
    return D, np.array(done, dtype=np.intp)
