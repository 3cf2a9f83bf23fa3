"""The recheck of one proof: the vector, the tree, and the bound of each leaf, from the matrix alone."""

from typing import Any

import numpy as np

from princomp._threads import single_blas_thread
from princomp._typing import Array
from princomp.certificates.leaf_bounds import UnitMatrix, leaf_bound, noise_in
from princomp.certificates.proof import CardinalityCertificate, scaled
from princomp.certificates.reading import AGREE, read_certificate, require, same

SAFE_EXPONENT = 150  # of two, of a standard deviation: up to this squares of variances are safe
BALANCED = 1000  # loadings by which rows are balanced differ by as much, and so then does rounding in them


def recheck(given: Array, certificate: Any, data: bool, rounding: float = 0.0) -> CardinalityCertificate:
    """Return the certificate as read, if it holds for all matrices within ``rounding`` of the one given."""
    with single_blas_thread(), np.errstate(all="ignore"):  # the matrices are small; what overflows is rejected
        read = read_certificate(certificate)
        given, claimed, rounding = _in_safe_units(given, read, data, rounding)
        _check_matrix(given, claimed, data)
        matrix = UnitMatrix(given, claimed, data)
        _check_vector(matrix, claimed, rounding)
        found, largest = _check_leaves(matrix, claimed)
    largest = max(claimed.lower, largest + claimed.rounding)
    enough = found + rounding <= claimed.upper + AGREE * max(abs(claimed.upper), abs(found))
    require(enough, f"upper is {claimed.upper:.10g}, but a leaf has the bound {found + rounding:.10g}.")
    # A bound too small to be a number is the smallest one there is.
    smallest = float(np.finfo(np.float64).tiny)
    if not (read.upper == smallest and claimed.upper >= largest):
        same(claimed.upper, largest, "upper is {claimed:.10g}, but the largest bound of a leaf is {found:.10g}.")
    return read


def _in_safe_units(
    given: Array, c: CardinalityCertificate, data: bool, rounding: float
) -> tuple[Array, CardinalityCertificate, float]:
    """Return matrix, certificate and rounding, divided by a power of four where squares could overflow or vanish."""
    exponent = int(np.frexp(np.abs(given).max())[1]) // (1 if data else 2)
    if abs(exponent) <= SAFE_EXPONENT:
        return given, c, rounding
    scaled_rounding = float(np.ldexp(rounding, -2 * exponent))
    return np.ldexp(given, -exponent if data else -2 * exponent), scaled(c, -exponent), scaled_rounding


def _check_matrix(given: Array, c: CardinalityCertificate, data: bool) -> None:
    p = len(c.vector)
    require(given.shape[1] == p, f"The certificate is about {p} features, the matrix is not.")
    if not data:
        asymmetry = np.abs(given - given.T).max()
        require(asymmetry <= AGREE * np.abs(given).max(), "The matrix is not symmetric.")


def _check_vector(matrix: UnitMatrix, c: CardinalityCertificate, rounding: float) -> None:
    v, support = c.vector, np.array(c.support, dtype=int)
    require(abs(float(v @ v) - 1) <= AGREE, "The vector is not of unit length.")
    outside = np.ones(matrix.p, dtype=bool)
    outside[support] = False
    require(not v[outside].any(), "The vector is not zero outside its support.")
    require(len(set(matrix.unit_of[support])) <= c.nonzeros, f"The support has more than {c.nonzeros} units.")
    require(matrix.allowed[support].all(), "The support uses a feature that is forced out.")
    missing = set(matrix.unit_of[list(c.include)]) - set(matrix.unit_of[support])
    require(not missing, "The support lacks a feature that is forced in.")
    require(not c.nonnegative or (v >= 0).all(), "The vector has negative entries.")
    used = np.flatnonzero(v)
    block = matrix.part(used, used)
    value, noise = float(v[used] @ block @ v[used]) / float(v @ v), noise_in(block)
    sentence = "The vector's value is {found:.10g}, not the claimed {claimed:.10g}."
    same(c.lower, value, sentence, 2 * c.rounding + noise)
    same(c.lower, min(c.lower, value - rounding), sentence, noise)  # rounding that is claimed raises no value


def _check_leaves(matrix: UnitMatrix, c: CardinalityCertificate) -> tuple[float, float]:
    """Walk through the tree; return the largest bound of a leaf as it is found, and as it is claimed to be."""
    tree = c.leaves
    count = len(tree.unit)
    x = matrix.loadings
    require(x.shape == (matrix.units,) and np.isfinite(x).all() and (x > 0).all(), "The loadings are not positive.")
    size = float(np.abs(matrix.variances() if matrix.data else matrix.given).max())
    available = np.unique(matrix.unit_of[matrix.allowed])
    forced = tuple(np.unique(matrix.unit_of[list(c.include)])) if c.include else ()
    largest, found, seen = -np.inf, -np.inf, 0
    todo: list[tuple[int, tuple[int, ...], Array]] = [(0, forced, np.setdiff1d(available, forced))]
    while todo:
        node, chosen, free = todo.pop()
        require(0 <= node < count and seen < count, "The tree lacks a node: its leaves do not cover every support.")
        seen += 1
        unit = int(tree.unit[node])
        if unit >= 0:
            rest = free[free != unit]
            require(len(rest) == len(free) - 1, f"A branch decides on unit {unit}, which was decided before.")
            todo += [(int(tree.outside[node]), chosen, rest), (int(tree.inside[node]), (*chosen, unit), rest)]
            continue
        if len(chosen) > c.nonzeros:
            continue  # no support is left
        bound, claimed = leaf_bound(matrix, tree, node, np.array(chosen, dtype=int), free), float(tree.bound[node])
        sentence = "The bound of a leaf is {found:.10g}, not the claimed {claimed:.10g}."
        # These are the numbers that it is from; what upper must be follows from the bound that is found.
        same(claimed, bound, sentence, AGREE * size + BALANCED * c.rounding)
        largest, found = max(largest, claimed), max(found, bound)
    require(seen == count, "The tree has nodes that hang nowhere.")
    return found, largest
