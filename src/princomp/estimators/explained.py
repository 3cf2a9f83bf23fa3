"""Explained variance of loadings that need not be orthogonal, by name, from the loadings V and S V alone."""

from typing import Literal, get_args

import numpy as np

from princomp._typing import Array

Kind = Literal["adjusted", "subspace", "reconstruction"]

# What of a column lies outside those before it counts as rounding below this share, squared lengths compared.
NOTHING = 1e-12


def explained_variance(SV: Array, V: Array, kind: Kind = "adjusted") -> Array:
    """Return the variance that each component adds to that of the components before it.

    With Z = X V the scores, Z_j the first j of them and V_j the first j loadings, the first j numbers add up to

    ==================  ==============================================  =====================================
    kind                sum of the first j                              reference
    ==================  ==============================================  =====================================
    adjusted            sum of R_ii^2 / (n - 1), i <= j, for Z = QR     Zou, Hastie & Tibshirani, JCGS 2006
    subspace            tr(Q' S Q), Q an orthonormal basis of V_j       Shen & Huang, J. Multivar. Anal. 2008
    reconstruction      tr(S V_j (V_j' S V_j)^+ V_j' S)                 least squares of X on Z_j
    ==================  ==============================================  =====================================

    For principal components all three are the eigenvalues; in general the sums increase from the first kind to the
    last. All depend on the order of the components, the last two only through the increments, not in total.

    V (p, k) are the loadings, SV (p, k) is S V, S = X'X / (n - 1). Columns count by their direction, not their length;
    one that is zero, or that those before it span, adds nothing. There may be more columns than the rank of S. Divide
    the increments, which are at least 0, by tr S for shares.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.estimators.explained import explained_variance
    >>> S = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> V = np.eye(2)  # correlated scores: the second adds less than its variance of 2
    >>> [explained_variance(S @ V, V, kind).tolist() for kind in ("adjusted", "subspace", "reconstruction")]
    [[2.0, 1.5], [2.0, 2.0], [2.5, 1.5]]
    """
    if kind not in get_args(Kind):
        raise ValueError(f"The kind of explained variance must be one of {', '.join(get_args(Kind))}; got {kind!r}.")
    W, SW = orthogonalised(SV, V, scores=kind != "subspace")
    variances = np.einsum("ij,ij->j", W, SW)
    if kind == "adjusted":
        return np.maximum(variances, 0.0)
    if kind == "subspace":
        above, below = variances, np.einsum("ij,ij->j", W, W)
    else:
        above, below = np.einsum("ij,ij->j", SW, SW), variances
    return np.maximum(np.divide(above, below, out=np.zeros_like(above), where=below > 0), 0.0)


def orthogonalised(SV: Array, V: Array, *, scores: bool) -> tuple[Array, Array]:
    """Return (W, S W), W (p, k) = the unit columns of V less their parts in the columns before.

    The parts are those of orthogonal projection, of the scores X V if ``scores``, else of V itself: X W, or W, has
    orthogonal columns. Columns with nothing left are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.estimators.explained import orthogonalised
    >>> S = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> orthogonalised(S @ np.eye(2), np.eye(2), scores=True)[0].tolist()
    [[1.0, -0.5], [0.0, 1.0]]
    """
    V, SV = np.asarray(V, dtype=np.float64), np.asarray(SV, dtype=np.float64)
    lengths = np.linalg.norm(V, axis=0)
    lengths = np.where(lengths > 0, lengths, 1.0)
    W, SW = V / lengths, SV / lengths
    negligible = NOTHING * (max(np.linalg.norm(SW, axis=0), default=0.0) if scores else 1.0)
    images = SW if scores else W
    squares = np.zeros(V.shape[1])
    for j in range(V.shape[1]):
        kept = np.flatnonzero(squares)
        for _ in range(2):  # once leaves what rounding put back
            share = images[:, kept].T @ W[:, j] / squares[kept]
            W[:, j] -= W[:, kept] @ share
            SW[:, j] -= SW[:, kept] @ share
        square = float(images[:, j] @ W[:, j])
        if square > negligible:
            squares[j] = square
        else:
            W[:, j] = SW[:, j] = 0.0
    return W, SW
