"""Codes with a loss that wild cells do not rule, reweighted: Holland & Welsch, Communications in Statistics 1977.

    min F(a) = 1/2 sum_j rho(x_j - (a D)_j) + h(a).

A code is improved by a square that lies above the loss and touches it at the residual r of the last code:

- Huber, whose curvature is bounded: rho(s) <= rho(r) + rho'(r) (s - r) + (s - r)^2. That is plain coding of other rows,
  a D + rho'(r) / 2, in which what is wild is cut off; rows keep the Gram matrix that they share;
- others: rho(s) <= rho(r) + w (s^2 - r^2), w = rho'(r) / (2 r): coding with weights of cells (`cells`).

The coder begins with the code of squares. Each new code is taken where F falls, row by row, so F never rises, with
coders that only find local minima, too. A row is done when F falls by less than ``tol`` F (1e-6) in a round. Missing
cells (NaN) are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.coders.base import Coder
from princomp.coders.cells import code_cells
from princomp.losses import Huber, Squared

MOST_ROUNDS = 100


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
    codes = code_cells(X, atoms, coder, start=start) if start is None else start.astype(X.dtype)
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

    fit, start = codes @ atoms, sp.csr_array(codes)
    if isinstance(loss, Huber):
        return code_cells(fit + loss.gradient(X - fit) / 2, atoms, coder, start=start)
    residual = np.nan_to_num(X - fit, copy=False)
    return code_cells(X, atoms, coder, loss.weights(residual), start=start)
