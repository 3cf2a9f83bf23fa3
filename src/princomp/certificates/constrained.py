"""Sparse PCA with a bound on the l1 norm: how far from a stationary point.

A component maximises v'Sv over C = {|v|_2 = 1, |v|_1 <= bound}, S being what those before it leave (`remainder`).
"""

from collections.abc import Callable

import numpy as np

from princomp._typing import Array
from princomp.certificates.remainder import NOTHING, orthonormal_basis

Operator = Callable[[Array], Array]  # V (p, k) -> S V (p, k)


def constrained_stationarity(
    gram: Operator, V: Array, *, bounds: Array | float, squares: Array, kind: str = "schur"
) -> Array:
    """Return how far each component is from a stationary point, given those before it.

    With z = Sv and v+ the maximiser of z'v over C it is |v+ - v|: 0 means that no small step within C leads higher.
    Where entries of z tie there are many maximisers; v is one of them if z'v = z'v+, so that sqrt(2 z'(v+ - v) / z'v+),
    which for a round C is the same length, counts if it is smaller. So does, in any case, by how much |v|_2 is not 1
    and |v|_1 is above the bound. What "hotelling" leaves may have negative eigenvalues; then S + sI is taken, which has
    none, and the same stationary points. A component of zeros is right if nothing but rounding is left, else its
    number is 1.

    Parameters
    ----------
    gram : callable
        V (p, k) -> S V: all that is needed of the data, asked for once.
    V : (p, k) array
        The answer.
    bounds : float or (k,) array
        Bounds on the l1 norms, from 1 on.
    squares : (p,) array
        The diagonal of S.
    kind : {"schur", "projection", "generalised", "hotelling"}
        Deflation.

    Returns
    -------
    (k,) array
        Lengths, beside a component's own of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import constrained_stationarity
    >>> S, squares = np.diag([3.0, 2.0, 1.0]), np.array([3.0, 2.0, 1.0])
    >>> constrained_stationarity(lambda V: S @ V, np.eye(3, 2), bounds=1.5, squares=squares).tolist()
    [0.0, 0.0]
    """
    bounds = np.broadcast_to(bounds, V.shape[1])
    images, taken, shifts = deflated_images(gram, V, kind)
    left = float(squares.sum()) - np.cumsum(taken) + taken
    lengths = np.zeros(V.shape[1])
    for j, v in enumerate(V.T):
        if v.any():
            lengths[j] = _step(images[:, j] + shifts[j] * v, v, float(bounds[j]))
        else:
            lengths[j] = float(left[j] > NOTHING * len(v) * float(squares.max()))
    return lengths


def own_residuals(gram: Operator, V: Array, kind: str) -> tuple[Array, Array]:
    """Return v'Sv of each component (k,), S being what those before it leave, and how far it is from an eigenvector.

    That is |(Sv - (v'Sv) v) on the features of v| / v'Sv: 0 means that no other weights of the same features do better
    nearby.
    """
    images, _, _ = deflated_images(gram, V, kind)
    heights = np.einsum("ij,ij->j", V, images)
    inside = np.where(V != 0, images - V * heights, 0.0)
    size = np.where(heights != 0, np.abs(heights), 1.0)
    return heights, np.linalg.norm(inside, axis=0) / size


def _step(z: Array, v: Array, bound: float) -> float:
    """Return the length of the step from v to a maximiser of z'v over C, and at least how far v is from C."""
    best = maximiser(z, bound)
    highest, length = float(z @ best), float(np.linalg.norm(best - v))
    if highest > 0:
        length = min(length, float(np.sqrt(2 * max(float(z @ (best - v)), 0.0) / highest)))
    return max(length, abs(float(np.linalg.norm(v)) - 1), float(np.abs(v).sum()) / bound - 1)


def deflated_images(gram: Operator, V: Array, kind: str) -> tuple[Array, Array, Array]:
    """Return S_j v_j (p, k), S_j being what the components before v_j leave of S, by one product with S.

    And what each takes from the trace, (k,), and a number that makes each S_j positive semidefinite when added to its
    diagonal, (k,).
    """
    if kind == "schur":
        return _by_schur(gram(V), V)
    return _by_hotelling(gram(V), V) if kind == "hotelling" else _by_projection(gram, V, kind)


def _by_schur(SV: Array, V: Array) -> tuple[Array, Array, Array]:
    images, taken, factors = SV.copy(), np.zeros(V.shape[1]), np.zeros((len(V), 0))
    for j, v in enumerate(V.T):
        images[:, j] -= factors @ (factors.T @ v)
        y, c = images[:, j], float(v @ images[:, j])
        if c > NOTHING * float(np.linalg.norm(SV[:, j])):
            factors = np.column_stack([factors, y / np.sqrt(c)])
            taken[j] = float(y @ y) / c
    return images, taken, np.zeros(V.shape[1])


def _by_hotelling(SV: Array, V: Array) -> tuple[Array, Array, Array]:
    images, taken, shifts = SV.copy(), np.zeros(V.shape[1]), np.zeros(V.shape[1])
    for j, v in enumerate(V.T):
        before = V[:, :j]
        images[:, j] -= before @ (taken[:j] * (before.T @ v))
        taken[j] = v @ images[:, j]
        if j:  # S - sum c_i v_i v_i' has no eigenvalue below minus the largest of the sum
            shifts[j] = max(float(np.linalg.eigvals(before.T @ before * taken[:j]).real.max()), 0.0)
    return images, taken, shifts


def _by_projection(gram: Operator, V: Array, kind: str) -> tuple[Array, Array, Array]:
    k = V.shape[1]
    before = [V[:, :j] if kind == "projection" else orthonormal_basis(V[:, :j]) for j in range(k)]
    inner = np.column_stack([_without(v, Q[:, ::-1]) for v, Q in zip(V.T, before)])
    images, taken = gram(inner), np.zeros(k)
    for j, Q in enumerate(before):
        images[:, j] = _without(images[:, j], Q)
        length = 1.0 if kind == "projection" else float(inner[:, j] @ inner[:, j])
        taken[j] = V[:, j] @ images[:, j] / length if length > NOTHING**2 else 0.0
    return images, taken, np.zeros(k)


def _without(w: Array, directions: Array) -> Array:
    """Return w less its part along each direction (p, j), one after the other."""
    for q in directions.T:
        w = w - q * float(q @ w)
    return w


def maximiser(z: Array, bound: float) -> Array:
    """Return the v that maximises z'v subject to |v|_2 = 1 and |v|_1 <= bound, bound >= 1; 0 for z = 0.

    v is the soft threshold of z at delta, normalised, with the least delta >= 0 such that |v|_1 <= bound. Between two
    entries of |z| in sorted order |v|_1 is known in closed form, so that delta is exact. If more than bound^2 entries
    tie for the largest, no delta will do; then some of these are chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates.constrained import maximiser
    >>> maximiser(np.array([3.0, -4.0]), 2.0).tolist(), maximiser(np.array([3.0, -4.0]), 1.0).tolist()
    ([0.6, -0.8], [0.0, -1.0])
    """
    size = np.abs(z)
    largest = float(size.max(initial=0.0))
    if largest == 0:
        return np.zeros_like(z)
    size = size / largest
    if size.sum() > bound * float(np.linalg.norm(size)):
        size = _thresholded(size, bound)
    return np.where(size > 0, np.copysign(size / np.linalg.norm(size), z), 0.0)


def _thresholded(size: Array, bound: float) -> Array:
    """Return max(size - delta, 0) with |.|_1 = bound |.|_2, for a size that has a larger |.|_1."""
    order = np.argsort(-size, kind="stable")
    a = size[order]
    # |.|_1 and |.|_2^2 of max(a - delta, 0) at delta = a_1, ..., a_p; sums of what is not negative lose no digits.
    drop, count = -np.diff(a), np.arange(1, len(a))
    ones = np.concatenate([[0.0], np.cumsum(count * drop)])
    squares = np.concatenate([[0.0], np.cumsum(2 * drop * ones[:-1] + count * drop**2)])
    # The last of these knots at which |.|_1 is still below: delta lies between it and the next, or 0.
    m = int(np.flatnonzero(ones**2 <= bound**2 * squares)[-1]) + 1 if bound > 1 else 1
    result = np.zeros_like(size)
    L, N = ones[m - 1], squares[m - 1]
    missing, room = max(bound**2 * N - L**2, 0.0), m - bound**2
    if N == 0 or room <= 0:
        result[order[: len(_tied(m, bound))]] = _tied(m, bound)
        return result
    below = missing / (L * room + np.sqrt(room**2 * L**2 + m * room * missing))
    result[order[:m]] = (a[:m] - a[m - 1]) + below
    return result


def _tied(m: int, bound: float) -> Array:
    """Return the fewest numbers, at most m, all equal but the first, with |.|_2 = 1 and |.|_1 = bound."""
    few = min(max(int(np.ceil(bound**2 * (1 - 1e-15))), 1), m)
    spread = np.sqrt(max(1.0 - bound**2 / few, 0.0) / few)
    numbers = np.full(few, bound / few)
    if few > 1:
        numbers[1:] -= spread / np.sqrt(few - 1)
        numbers[0] += spread * np.sqrt(few - 1)
    return numbers
