"""`sparse_encode`: rows as combinations of few atoms of a given dictionary."""

from dataclasses import replace
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.coders.blocks import code_block
from princomp.coders.choice import as_coder
from princomp.coders.pursuit import Pursuit
from princomp.data import Rows, as_rows
from princomp.data.memory import checked
from princomp.estimators.errors_unit import unit_of_errors
from princomp.losses import Squared, as_loss
from princomp.penalties.trial import try_penalty

# Of rows in memory: small enough that threads share them evenly, large enough that Python's part is small.
BLOCK_BYTES = 2**21


def sparse_encode(
    X: Any,
    dictionary: Any,
    *,
    penalty: Any = "l1",
    alpha: float = 1.0,
    l2: float = 0.0,
    nonzeros: int | None = None,
    error: float | None = None,
    selection: str = "ols",
    weights: Any = None,
    positive: bool = False,
    loss: Any = "l2",
    start: Any = None,
    tol: float = 1e-6,
) -> Any:
    """Write each row of X as a combination of few atoms.

    The code a of a row x minimises 1/2 |x - a D|^2 + h(a). With ``penalty="l1"`` h(a) = alpha sum_k w_k |a_k| +
    l2/2 |a|^2.

    Parameters
    ----------
    X : (n, p) array-like, sparse matrix, data frame, memory map, Dask array, ...
        The rows; whatever an estimator takes. NaN is a missing cell: what is there is coded, and a row without any cell
        has the code 0.
    dictionary : (K, p) array-like
        The atoms, one in each row. They need not have unit norm.
    penalty : str or Penalty, default "l1"
        h: "l1", "elastic-net", "l0", "lp" (p = 1/2), an object such as those in `princomp.penalties`, or one's own with
        ``value`` and ``prox``, which speaks for itself. ``nonzeros`` and ``error``, where given, come first.
    alpha : float, default 1
        Weight of the penalty, for those that are named. With 0 the l1 code is a least squares solution of few atoms.
    l2 : float, default 0
        Weight of 1/2 |a|^2.
    nonzeros : int, optional
        The most atoms of a code.
    error : float, optional
        How long the rest x - a D may be.
    selection : {"ols", "omp"}, default "ols"
        Which atom enters next.
    weights : (K,) array-like, optional
        Weights of the atoms in the l1 penalty.
    positive : bool, default False
        Whether codes must not be negative.
    loss : {"l2", "huber", "l1"} or Loss, default "l2"
        How x - a D is measured: codes minimise 1/2 sum_j rho(x_j - (a D)_j) + h(a), rho(r) = r^2 by default. "huber"
        and "l1" have a width that is taken from the errors of up to 1000 of these rows; for codes that do not depend on
        the others give an object, such as `princomp.losses.Huber` (0.5), or ``loss_`` of a `DictionaryLearning`. With
        an l1 penalty and these two, codes are minimisers; else they are local: no round of reweighting lowers the
        objective by more than 1e-6 of it.
    start : (n, K) CSR array, optional
        Codes to begin with; where codes are optimal, they make no difference but in time. Not for data on workers.
    tol : float, default 1e-6
        Bound on the duality gap of each row, relative to 1/2 |x|^2.

    Returns
    -------
    (n, K) CSR array
        The codes, in the precision of X: float32 for float32, else float64. Of data on workers, what is lazy there.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp import sparse_encode
    >>> sparse_encode(np.array([[3.0, 0.5], [0.0, -2.0]]), np.eye(2), alpha=1.0).toarray().tolist()
    [[2.0, 0.0], [0.0, -1.0]]
    """
    atoms = as_atoms(dictionary)
    rows = as_rows(X, block_bytes=BLOCK_BYTES)
    if rows.width != atoms.shape[1]:
        raise ValueError(f"X has {rows.width} features, but the atoms of the dictionary have {atoms.shape[1]}.")
    try_penalty(penalty, len(atoms))
    coder = as_coder(
        penalty,
        alpha,
        l2=l2,
        nonzeros=nonzeros,
        error=error,
        selection=selection,
        weights=weights,
        positive=positive,
        tol=tol,
    )
    if isinstance(coder, Pursuit):  # which sees no columns: one atom more than these depends on the others
        coder = replace(coder, nonzeros=min(coder.nonzeros or rows.width, rows.width))
    with np.errstate(over="ignore"):
        gram = (atoms @ atoms.T)[None]
    if not np.isfinite(gram).all():
        raise ValueError("The atoms are so long that their squares overflow. Divide the dictionary by a constant.")
    found = as_loss(loss, unit_of_errors(rows, loss, atoms, coder) if rows.shape[0] else 1.0)
    how = (
        atoms,
        gram,
        coder,
        _start(start, rows, len(atoms)),
        rows.dtype,
        None if isinstance(found, Squared) else found,
    )
    return rows.map(code_block, *how, width=len(atoms), dtype=rows.dtype, sparse=True)


def as_atoms(dictionary: Any) -> Array:
    """Return the atoms (K, p) in float64; complain about what cannot be a dictionary."""
    if hasattr(dictionary, "tocsr"):
        dictionary = dictionary.toarray()
    atoms = np.ascontiguousarray(checked(dictionary, "dictionary"), dtype=np.float64)
    if not len(atoms):
        raise ValueError("The dictionary has no atoms: it needs at least one row.")
    if not np.isfinite(atoms).all():
        raise ValueError("The dictionary contains NaN or infinity: replace those cells first.")
    return atoms


def _start(start: Any, rows: Rows, K: int) -> Any:
    """Return codes to start from, CSR; complain if they are none of these rows."""
    if start is None:
        return None
    import scipy.sparse as sp

    if not rows.local:
        raise ValueError("start goes with data that are here, not with data on workers: leave it out.")
    codes = sp.csr_array(start)
    if codes.shape != (rows.shape[0], K):
        raise ValueError(f"start must have the shape of the codes, {(rows.shape[0], K)}, got {codes.shape}.")
    return codes
