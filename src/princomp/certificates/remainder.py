"""What components leave of a covariance S (Mackey, NIPS 2008), and how far rounding may have moved it.

With x a component of unit length, S what it was found on, y = Sx and c = x'Sx, what is left is

============  ==========================================  ==========================================================
schur         S - y y' / c                                what X leaves when regressed on the score X x
hotelling     S - c x x'                                  may have negative eigenvalues: x is no eigenvector of S
projection    (I - x x') S (I - x x')                     that of PMD: of the data, X - X x x'
generalised   (I - q q') S (I - q q')                     q = x less its part in the q's before it, of unit length
============  ==========================================  ==========================================================

A component of zeros leaves everything; by "schur" one whose variance is rounding, too (at most 1e-13 of the length of
Sx), and by "generalised" one that is so close to those before it.

A bound on what is left holds for what is *exactly* left only with the distance of the two added to it, in the spectral
norm: that is ``rounding``. An error of size d in S becomes at most (1 + g)^2 d by "schur", g = |V| |(V'SV)^-1 V'S| for
all components V together, and d by the projections. For "hotelling" an error in the variance of a component goes into
those after it, as far as these overlap with it. "schur" commutes with scaling of features, and so does rounding: there
correlations may be looked at in place of covariances, which is better where scales differ much.
"""

import numpy as np

from princomp._typing import Array
from princomp.certificates.reading import require

ROUNDING = 4 * float(np.finfo(np.float64).eps)  # times the terms of a sum and its size: more than is lost
NOTHING = 1e-13  # of a length or of a variance: this share is rounding
KINDS = ("schur", "hotelling", "projection", "generalised")


def remainder(S: Array, components: Array, kind: str) -> tuple[Array, float]:
    """Return what the components (p, j) leave of S (p, p), and how far that may be from what they exactly leave.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates.remainder import remainder
    >>> S = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> left, rounding = remainder(S, np.array([[1.0], [0.0]]), "schur")
    >>> left.tolist(), rounding < 1e-13
    ([[0.0, 0.0], [0.0, 1.5]], True)
    """
    require(isinstance(kind, str) and kind in KINDS, f"{kind!r} is no deflation.")
    V = _unit(components)
    if not V.shape[1]:
        return S, 0.0
    exponent = int(np.frexp(np.abs(S).max())[1])  # in units in which no square overflows or vanishes
    S = np.ldexp(S, -exponent)
    left = _left(S, V, kind)
    rounding = _rounding(float(np.linalg.norm(S)), np.diag(S), V, S @ V, kind)
    return np.ldexp((left + left.T) / 2, exponent), float(np.ldexp(rounding, exponent))


def remainder_of_rows(X: Array, components: Array, kind: str) -> tuple[Array, float]:
    """Return X (n, p) such that X'X is what the components (p, j) leave of it, and the rounding in X'X.

    Not for "hotelling", which may leave no such X.
    """
    V = _unit(components)
    if not V.shape[1]:
        return X, 0.0
    squares = np.einsum("ij,ij->j", X, X)
    rounding = _rounding(float(squares.sum()), squares, V, X.T @ (X @ V), kind)
    if kind == "schur":
        for x in V.T[_schur_factors(V, X.T @ (X @ V))[1]]:
            score = X @ x
            score = score / np.linalg.norm(score)
            X = X - np.outer(score, score @ X)
        return X, rounding
    for x in _directions(V, kind):
        X = X - np.outer(X @ x, x)
    return X, rounding


def rounding_in(squares: Array, components: Array, images: Array, kind: str) -> float:
    """Return the rounding in what the components V (p, j) leave of S >= 0, from its diagonal and images = SV."""
    kept = np.flatnonzero(components.any(axis=0))
    lengths = np.linalg.norm(components[:, kept], axis=0)
    V, Y = components[:, kept] / lengths, images[:, kept] / lengths
    return _rounding(float(squares.sum()), squares, V, Y, kind) if len(kept) else 0.0


def _rounding(size: float, squares: Array, V: Array, images: Array, kind: str) -> float:
    """Return the rounding after components V of unit length, from |S| <= size (Frobenius), its diagonal, and SV."""
    if kind == "hotelling":
        return _hotelling_growth(V) * _step(size, V)
    if kind != "schur":
        return min(_projection_growth(V, kind) * _step(size, V), 2 * size)
    kept = _schur_factors(V, images)[1]
    V, images = V[:, kept], images[:, kept]
    deviations = np.sqrt(np.maximum(squares, 0.0))
    scale = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    scaled, count = V * deviations[:, None], int((scale > 0).sum())
    lengths = np.linalg.norm(scaled, axis=0)
    scaled, scaled_images = scaled / lengths, images * scale[:, None] / lengths
    by_correlations = float(squares.max()) * _schur_growth(scaled, scaled_images) * _step(count, V)
    by_covariances = _schur_growth(V, images) * _step(size, V)
    return min(by_covariances, by_correlations, 2 * size)  # what is left is not larger than S


def _unit(components: Array) -> Array:
    """Return those components that are not zero, of unit length."""
    V = components[:, components.any(axis=0)]
    unit: Array = V / np.linalg.norm(V, axis=0)
    return unit


def _step(size: float, V: Array) -> float:
    """Return what taking away one component may lose: its sums have as many terms as it has features."""
    return ROUNDING * (int((V != 0).sum(axis=0).max(initial=0)) + V.shape[1] + 4) * size


def _left(S: Array, V: Array, kind: str) -> Array:
    if kind == "schur":
        factors, _ = _schur_factors(V, S @ V)
        return np.asarray(S - factors @ factors.T)
    if kind == "hotelling":
        return _hotelling(S, V)
    for x in _directions(V, kind):
        y = S @ x
        S = S - np.outer(x, y) - np.outer(y, x) + float(x @ y) * np.outer(x, x)
    return S


def _schur_factors(V: Array, images: Array) -> tuple[Array, list[int]]:
    """Return y / sqrt(c) of each component that has a variance to be taken away, (p, m), and which those are."""
    factors, kept = np.zeros((len(V), 0)), []
    for i, x in enumerate(V.T):
        y = images[:, i] - factors @ (factors.T @ x)
        c = float(x @ y)
        if c > NOTHING * float(np.linalg.norm(images[:, i])):
            factors = np.column_stack([factors, y / np.sqrt(c)])
            kept.append(i)
    return factors, kept


def _schur_growth(V: Array, images: Array) -> float:
    W = V.T @ images
    try:
        regression = np.linalg.solve((W + W.T) / 2, images.T)
    except np.linalg.LinAlgError:  # nothing is known
        return np.inf
    return (1.0 + float(np.linalg.norm(V, 2) * np.linalg.norm(regression, 2))) ** 2 if len(W) else 1.0


def _hotelling(S: Array, V: Array) -> Array:
    overlap = (V.T @ V) ** 2
    variances = np.einsum("ij,ij->j", V, S @ V)
    for i in range(len(variances)):
        variances[i] -= float(overlap[i, :i] @ variances[:i])
    left: Array = S - (V * variances) @ V.T
    return left


def _hotelling_growth(V: Array) -> float:
    overlap = (V.T @ V) ** 2
    errors = np.zeros(len(overlap))
    for i in range(len(errors)):
        errors[i] = 1.0 + float(overlap[i, :i] @ errors[:i])
    return 1.0 + float(errors.sum())


def _directions(V: Array, kind: str) -> Array:
    """Return what "projection" and "generalised" project along, one after the other, as rows."""
    return V.T if kind == "projection" else orthonormal_basis(V).T


def orthonormal_basis(V: Array) -> Array:
    """Return the q's of "generalised" as columns."""
    basis = np.zeros((len(V), 0))
    for x in V.T:
        basis = _outside(x, basis)[0]
    return basis


def _projection_growth(V: Array, kind: str) -> float:
    """Return how many times a single step's rounding adds up: directions are the less certain the more they overlap."""
    growth, uncertain, basis = 1.0, 0.0, np.zeros((len(V), 0))
    for x in V.T:
        error = 1.0
        if kind == "generalised":
            basis, length = _outside(x, basis)
            error = (1.0 + uncertain) / length if length > 0 else 0.0
            uncertain += error
        growth += 1.0 + 4.0 * error
    return growth


def _outside(x: Array, basis: Array) -> tuple[Array, float]:
    """Return the basis with what of x is outside it, of unit length, and how long that was; 0 if it is rounding."""
    for _ in range(2):  # once leaves what rounding put back
        x = x - basis @ (basis.T @ x)
    length = float(np.linalg.norm(x))
    return (np.column_stack([basis, x / length]), length) if length > NOTHING else (basis, 0.0)
