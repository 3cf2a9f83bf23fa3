"""Atoms that do not pay: dead ones, twins of others, and those that hardly serve, give way to the worst-coded rows.

Without atom k, what its codes stand for is at worst lost but for the part along the atom most nearly parallel to it:
the squared error grows by about A_kk |d_k|^2 (1 - cos^2), A_kk its summed squared coefficients, cos that of the two. A
new atom along a row brings at least that row's squared error. So atom k gives way to a row where

    A_kk |d_k|^2 (1 - cos^2)  <  `WORTH` times the squared error of the row,

and is less than a share of what the atom in the middle is worth: the cheapest atom to the worst row first, not more
than a share of the atoms at a time, and to no row that is itself nearly parallel to an atom. (Aharon, Elad and
Bruckstein, IEEE Trans. Signal Processing 2006, replace atoms by counts of uses and by cosines, each with a limit of its
own; in sums of squares one limit serves all sizes of data.)
"""

from __future__ import annotations

import numpy as np

from princomp._typing import Array
from princomp.solvers.learning_atoms import Atoms
from princomp.solvers.learning_coded import Worst

# A new atom serves more rows than the one it comes from. On 50 planted atoms and 1500 signals of three of them a median
# of 90 % was found without replacements, 93 % with 1, 96 % with 3, all with 10, and with 30 no atom stays.
WORTH = 8.0
HARDLY = 0.1  # of what the atom in the middle is worth: what is worth more stays
AT_ONCE = 0.1  # share of the atoms, at the most
TWIN = 0.9  # |cos| from which on a row is not new


def replaced(D: Array, weights: Array, worst: Worst, atoms: Atoms, hardly: float = HARDLY) -> tuple[Array, Array]:
    """Return atoms, some replaced by the worst rows, and the numbers of those that are; ``weights`` are the A_kk."""
    energy, unit, parallel = _parts(D, weights)
    done: list[int] = []
    D = D.copy()
    least = hardly * np.median(_cost(energy, parallel))
    for error, row in zip(worst.errors, worst.rows):
        cost = _cost(energy, parallel)
        cost[done] = np.inf
        k = int(np.argmin(cost))
        if not cost[k] < min(WORTH * error, least) or len(done) >= max(AT_ONCE * len(D), 1):
            break
        atom = atoms.allowed(row[None] / np.linalg.norm(row))[0]
        size = float(np.linalg.norm(atom))
        if not size > 0 or np.abs(np.delete(unit, k, axis=0) @ atom).max(initial=0.0) > TWIN * size:
            continue
        D[k], unit[k] = atom, atom / size
        parallel[k] = np.square(unit @ unit[k])
        parallel[k, k] = 0.0
        parallel[:, k] = parallel[k]
        done.append(k)
    return D, np.array(done, dtype=np.intp)


def worth(D: Array, weights: Array) -> Array:
    """Return by how much the squared error would grow without each atom, (K,); ``weights`` are the A_kk."""
    energy, _, parallel = _parts(D, weights)
    return _cost(energy, parallel)


def _parts(D: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return A_kk |d_k|^2 (K,), directions (K, p), and squared cosines between them (K, K), 0 with themselves."""
    length = np.linalg.norm(D, axis=1)
    unit = D / np.where(length > 0, length, 1.0)[:, None]
    parallel = np.square(unit @ unit.T)
    np.fill_diagonal(parallel, 0.0)
    return weights * length**2, unit, parallel


def _cost(energy: Array, parallel: Array) -> Array:
    return np.asarray(energy * (1.0 - np.minimum(parallel.max(axis=1), 1.0)))
