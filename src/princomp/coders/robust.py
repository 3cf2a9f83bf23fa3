"""Codes with a loss that wild cells do not rule, reweighted: Holland & Welsch, Communications in Statistics 1977.

    min F(a) = 1/2 sum_j rho(x_j - (a D)_j) + h(a).

A code is improved by a square that lies above the loss and touches it at the residual r of the last code,
rho(s) <= rho(r) + w (s^2 - r^2), w = rho'(r) / (2 r): coding with weights of cells (`cells`). The coder begins with the
code of squares. Each new code is taken where F falls, row by row, so F never rises, with coders that only find local
minima, too. A row is done when F falls by less than ``tol`` F (1e-6) in a round. Missing cells (NaN) are left out.

Huber's loss, or absolute values, and a lasso need no rounds: 1/2 rho(r) = min over o of 1/2 (r - o)^2 + delta |o|, so
what is wild is coded by atoms of its own, one for each cell, of weight delta (She & Owen, J. Am. Stat. Assoc. 2011).
The code is then a minimiser, and rows share a Gram matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.coders.cells import code_cells
from princomp.coders.lasso import Lasso
from princomp.losses import Absolute, Huber, Squared

MOST_ROUNDS = 100
WILD = 1e-3  # factor of ``tol``


def code_robust(
    X: Array, atoms: Array, coder: Coder, loss: Any, start: Any = None, *, tol: float = 1e-6, rounds: int = MOST_ROUNDS
) -> Any:
    """Return the codes (m, K), CSR, of rows X (m, p), in which NaN is missing, for a loss.

    Parameters
    ----------
    X : (m, p) array
        Rows.
    atoms : (K, p) array
        The dictionary, float64.
    coder : Coder
        How a row is coded by least squares.
    loss : Loss
        One with ``values`` and ``weights``: see `princomp.losses`.
    start : (m, K) CSR array, optional
        Codes to begin with; by default those of least squares.
    tol : float
        Rows are done when F falls by less than this share of it in a round.
    rounds : int
        The most there are.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.coders.pursuit import Pursuit
    >>> from princomp.coders.robust import code_robust
    >>> from princomp.losses import Absolute
    >>> X, D = np.array([[1.0, 1.0, 1.0, 1.0, 50.0]]), np.ones((1, 5))
    >>> code_robust(X, D, Pursuit(1), Absolute()).toarray().round(2).tolist()  # the median, not the mean
    [[1.0]]
    """
    if isinstance(coder, Lasso) and isinstance(loss, Huber):
        return _with_wild_cells(X, atoms, coder, loss.delta, 1.0)
    if isinstance(coder, Lasso) and isinstance(loss, Absolute):  # scale / (2 smoothing) times Huber's
        return _with_wild_cells(X, atoms, coder, loss.smoothing, 2 * loss.smoothing / loss.scale)
    codes = code_cells(X, atoms, coder) if start is None else start.astype(X.dtype)
    if isinstance(loss, Squared):
        return codes if start is None else code_cells(X, atoms, coder, start=start)
    dense, at_work = codes.toarray().astype(np.float64), np.arange(len(X))
    values = objectives(X, atoms, codes, coder, loss)
    for _ in range(rounds):
        if not len(at_work):
            break
        new = _improved(X[at_work], atoms, coder, loss, dense[at_work])
        found = objectives(X[at_work], atoms, new, coder, loss)
        gain = values[at_work] - found
        better = gain > 0
        dense[at_work[better]] = new.toarray()[better]
        values[at_work[better]] = found[better]
        at_work = at_work[gain > tol * np.abs(found)]
    import scipy.sparse as sp

    return sp.csr_array(dense.astype(codes.dtype))


def objectives(X: Array, atoms: Array, codes: Any, coder: Coder, loss: Any) -> Array:
    """Return F of each row."""
    residual = np.nan_to_num(X - codes.astype(np.float64) @ atoms, copy=False)
    total: Array = loss.values(residual).sum(axis=1) / 2 + coder.penalties(codes)
    return total


def _improved(X: Array, atoms: Array, coder: Coder, loss: Any, codes: Array) -> Any:
    """Return codes of the square that touches the loss at the residuals of these codes."""
    import scipy.sparse as sp

    weights = loss.weights(np.nan_to_num(X - codes @ atoms, copy=False))
    return code_cells(X, atoms, coder, weights, start=sp.csr_array(codes))


def _with_wild_cells(X: Array, atoms: Array, coder: Lasso, delta: float, factor: float) -> Any:
    """Return the codes of a lasso that has an atom for each cell, too, of weight delta; these are left out again.

    Those of the coder itself are multiplied by ``factor``.
    """
    (K, p), m = atoms.shape, len(X)
    cells = np.vstack([np.eye(p), -np.eye(p)]) if coder.nonnegative else np.eye(p)
    both = np.vstack([atoms, cells])
    if coder.l2:  # of the atoms alone: further columns, in which all rows are 0
        both = np.hstack([both, np.sqrt(factor * coder.l2) * np.eye(len(both), K)])
        X = np.hstack([X, np.zeros((m, K), dtype=X.dtype)])
    own = np.ones(K) if coder.weights is None else coder.weights
    weights = np.concatenate([factor * coder.alpha * own, np.full(len(cells), delta)])
    # Wild cells make |x|^2, which the gap is relative to, larger than all that matters.
    wide = Lasso(1.0, 0.0, weights, coder.nonnegative, WILD * min(1.0, factor) * coder.tol)
    return code_cells(X, both, wide)[:, :K]
