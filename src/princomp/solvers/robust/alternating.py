"""Alternating projections (Netrapalli et al., NeurIPS 2014): low rank plus sparse, for a rank that is known.

Objective: minimise the number of cells where L is not X, over L of rank k. It is not convex, and what is found may be
anything; `least_squares_dual` asks whether it is the minimum of |L|_* + alpha |X - L|, which the gap tells.

A step is

    L = the k leading directions of  L + relax (X - L) on good cells, L on all others,

where a cell is good if |X - L| is within a bound that falls, but stays between ``LEAST`` and ``MOST`` times the median
of |X - L|. The least of these are three standard deviations of normal cells; where L comes nearer fast, it does so on
some cells before others, which are not to be taken for bad. A bound that falls by a given factor alone (Cai, Cai & Wei,
JMLR 2019) fails where L does not come nearer at that rate, as with a tenth of all cells bad and a rank of a twentieth
of their side.

A value holds "U" (n, k) and "B" (k, p), L = UB; "V" (p, k), orthonormal, of the rows of B; "bound", and "iteration".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.robust.pursuit import orthogonal

# Tuned on L of rank .05 n and S of +-1, 100 times L's entries or as large as these, on 5, 10 and 20 % of cells, n = 200
# and 500, seed 0.
LEAST, MOST, FALL = 4.5, 400.0, 0.7
RELAX = 1.2
PASSES = 3  # of subspace iteration, in the first step
SAMPLE = 2**14  # cells, whose median stands for that of all
ROUNDING = 64.0  # times eps and the largest |L| of the sample: cells that leave less are good


def start(X: Array, k: int, rng: np.random.Generator) -> dict[str, Array]:
    """Return the value before the first step: L = 0."""
    n, p = X.shape
    sizes = np.abs(X).ravel()[_sample(X)]
    return {
        "U": np.zeros((n, k)),
        "B": np.zeros((k, p)),
        "V": np.linalg.qr(rng.standard_normal((p, k)))[0],
        "bound": np.array(LEAST * float(np.nanmedian(sizes))),
        "iteration": np.array(0),
    }


def alternating(X: Array, value: Value, *, alpha: float) -> Iterator[State]:
    """Yield states; the objective is |L|_* + alpha |X - L| on bad cells, the residual what good ones add, over it."""
    sample = _sample(X)
    while True:
        L = value["U"] @ value["B"]
        A, _ = _filled(X, L, float(value["bound"]), RELAX if value["iteration"] else 1.0)
        V = value["V"]
        for _ in range(1 if value["iteration"] else PASSES):
            U = orthogonal(A @ V)
            B = U.T @ A
            V = orthogonal(B.T)
        np.matmul(U, B, out=L)
        some = L.ravel()[sample]
        median = float(np.nanmedian(np.abs(X.ravel()[sample] - some)))
        rounding = ROUNDING * float(np.finfo(np.float64).eps) * float(np.abs(some).max())
        bound = max(min(max(FALL * float(value["bound"]), LEAST * median), MOST * median), rounding)
        _, (good, bad) = _filled(X, L, bound, 0.0)
        value = {"U": U, "B": B, "V": V, "bound": np.array(bound), "iteration": value["iteration"] + 1}
        cost = float(np.linalg.norm(V.T @ B.T, "nuc")) + alpha * float(bad)
        yield State(value, cost, alpha * float(good) / cost if cost else 0.0, int(value["iteration"]))


def _sample(X: Array) -> Array:
    """Return places of cells, the same for each step."""
    if X.size <= SAMPLE:
        return np.arange(X.size)
    return np.random.default_rng(0).integers(X.size, size=SAMPLE)


def _filled(X: Array, L: Array, bound: float, relax: float) -> tuple[Array, Array]:
    """Return L + relax (X - L) on good cells, L on others; and the sums of |X - L| of good cells and of bad ones."""
    if compiled := loops("alternating_cells"):
        A, sums = compiled.filled(X, L, bound, relax)
        return A, sums
    R = np.nan_to_num(X - L)
    near = np.abs(R) <= bound
    good, bad = np.abs(R[near]).sum(), np.abs(R[~near]).sum()
    return L + relax * np.where(near, R, 0.0), np.array([good, bad])
