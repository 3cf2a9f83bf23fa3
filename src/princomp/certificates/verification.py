"""The recheck of certificates of sparse components: of one by its proof, of several each on what those before it left.

What a certificate says is checked against its proofs, and these from the matrix alone: how many features are counted,
which are forced in or out, the bounds, the residual. Numbers are compared to nine digits, as those of another computer
would be.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates.leaf_bounds import largest_eigenvalue, noise_in
from princomp.certificates.proof import PROVED, CardinalityCertificate, relative_gap
from princomp.certificates.reading import (
    AGREE,
    WrongError,
    distinct,
    integer,
    number,
    read_matrix,
    real,
    require,
    same,
    whole,
)
from princomp.certificates.recheck import recheck
from princomp.certificates.remainder import remainder

UNREADABLE = (AttributeError, IndexError, ValueError, TypeError, OverflowError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Verification:
    """The outcome of a recheck: true or false, and why."""

    holds: bool
    reason: str

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        return self.reason


def verify(S: Any, certificate: Any, *, data: bool = False) -> Verification:
    """Recheck a certificate of sparse PCA from the matrix alone, without the solver.

    Checked are: the vector (unit, few entries, as constrained, its value), the tree (its leaves cover every support),
    each leaf's bound (computed again from S and the stored numbers), and that ``upper`` is the largest of them.

    Parameters
    ----------
    S : (p, p) array
        The matrix that the certificate is about, or with ``data`` the (n, p) matrix X, S = X'X.
    certificate : CardinalityCertificate, or the ``certificate_`` of a SparsePCA
        What is claimed of one component, or of all: then S is the covariance that was fitted, and each component is
        checked on what those before it leave.
    data : bool, default False
        Whether X is given in place of S.

    Returns
    -------
    Verification
        True or false, with a sentence.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from princomp import certificates, datasets
    >>> from princomp.solvers.branch_and_bound import prove
    >>> S = datasets.load_pitprops().correlation
    >>> proof = prove(S, 5, support=[0, 1, 6, 8, 9])
    >>> bool(certificates.verify(S, proof)), round(proof.upper, 6)
    (True, 3.406155)
    >>> print(certificates.verify(S, replace(proof, upper=3.3, lower=3.3)))
    The vector's value is 3.406..., not the claimed 3.3.
    """
    try:
        if hasattr(certificate, "proofs"):
            rechecked = f"the proofs of all {_recheck_all(S, certificate, data)} components"
        else:
            rechecked = f"all {len(recheck(read_matrix(S, data), certificate, data).leaves)} leaves"
    except WrongError as wrong:
        return Verification(False, str(wrong))
    except UNREADABLE as error:
        return Verification(False, f"The certificate cannot be read: {error}.")
    return Verification(True, f"The certificate holds: {rechecked} were rechecked.")


def _recheck_all(S: Any, certificate: Any, data: bool) -> int:
    """Recheck component after component, each on what those before it left; return how many there are."""
    proofs = certificate.proofs
    require(proofs, "There are no proofs: fit with certify=True.")
    given = read_matrix(S, data)
    _check_summary(certificate)
    given = _without(given, distinct(certificate.exclude, "features of exclude", given.shape[1]), data)
    V = np.zeros((given.shape[1], 0))
    worst = 0.0
    try:
        for j, proof in enumerate(proofs):
            if j == 1 and data:
                given, data = given.T @ given, False
            left, rounding = remainder(given, V, certificate.deflation)
            if proof is None:
                _check_nothing_left(left, certificate, j, rounding, data)
                V = np.column_stack([V, np.zeros(len(V))])
                continue
            read = recheck(left, proof, data, rounding)
            _check_same_claim(certificate, j, read)
            V = np.column_stack([V, read.vector])
            worst = max(worst, _least_residual(left, read, rounding, data))
        claimed = number(certificate.residual, "residual")
        require(claimed >= worst * (1 - AGREE) - AGREE, f"The residual is {worst:.3g}, not the claimed {claimed:.3g}.")
    except WrongError as wrong:
        raise WrongError(f"Component {j + 1}: {wrong}") from None
    return len(proofs)


def _without(given: Array, exclude: Array, data: bool) -> Array:
    """Return the matrix, or data, with zeros for features that no component uses: so they add no rounding."""
    given = given.copy()
    given[:, exclude] = 0.0
    if not data:
        given[exclude] = 0.0
    return given


def _check_summary(c: Any) -> None:
    """Check what is claimed of all components together."""
    k = len(c.proofs)
    lower, upper = real(c.lower, "lower bounds"), real(c.upper, "upper bounds")
    features = whole(c.features, "numbers of features")
    require(lower.shape == upper.shape == features.shape == (k,), "There are not as many bounds as proofs.")
    require(np.isfinite(lower).all() and np.isfinite(upper).all(), "The bounds are not finite.")
    closed = all(relative_gap(*bounds) <= PROVED for bounds in zip(lower, upper))
    require(c.scope == "local" or (closed and c.scope == "global"), f"The scope is not {c.scope!r}: gaps are left.")
    require(c.dominant is None, "dominant says nothing of sparse components.")
    require(c.unit in ("feature", "group"), f"{c.unit!r} is nothing that could be counted.")
    require(isinstance(c.nonnegative, bool | np.bool_), "nonnegative is neither true nor false.")


def _check_same_claim(c: Any, j: int, proof: CardinalityCertificate) -> None:
    """Check that what the certificate says of component j is what its proof is about."""
    same(float(c.lower[j]), proof.lower, "lower is {claimed:.10g}, but its proof says {found:.10g}.")
    same(float(c.upper[j]), proof.upper, "upper is {claimed:.10g}, but its proof says {found:.10g}.")
    require(int(c.features[j]) == proof.nonzeros, f"The proof is for {proof.nonzeros} {c.unit}s, not {c.features[j]}.")
    first = next(other for other in c.proofs if other is not None)
    groups = None if first.groups is None else tuple(first.groups)
    require(proof.groups == groups, "Not all proofs are about the same groups.")
    counted = "feature" if proof.groups is None else "group"
    require(c.unit == counted, f"The proof counts {counted}s.")
    p = len(proof.vector)
    for name in ("include", "exclude"):
        said, proved = set(distinct(getattr(c, name), f"features of {name}", p).tolist()), set(getattr(proof, name))
        require(said == proved, f"The proof is about components with {name}={sorted(proved)}, not {sorted(said)}.")
    require(bool(c.nonnegative) == bool(proof.nonnegative), "Proof and certificate differ in what signs are allowed.")


def _check_nothing_left(left: Array, c: Any, j: int, rounding: float, data: bool) -> None:
    """Check that a component of zeros is right: no vector at all has more variance than ``upper``."""
    allowed = np.ones(left.shape[1], dtype=bool)
    allowed[distinct(c.exclude, "features of exclude", len(allowed))] = False
    require(float(c.lower[j]) == 0, "There is no proof: fit with certify=True, in one go.")
    integer(int(c.features[j]), "The number of features", len(allowed))
    block, exponent = _block(left, allowed, data)
    found = float(np.ldexp(largest_eigenvalue(block), exponent)) + rounding
    upper = float(c.upper[j])
    require(found <= upper * (1 + AGREE), f"There may be {found:.10g} left, but upper is {upper:.10g}.")


def _least_residual(left: Array, c: CardinalityCertificate, rounding: float, data: bool) -> float:
    """Return how far the vector is at least, relative to its value, from an eigenvector on the features it uses."""
    used = np.flatnonzero(c.vector)
    block, exponent = _block(left, used, data)
    v = c.vector[used]
    image = block @ v
    value = float(v @ image)
    noise = 4 * float(np.ldexp(rounding, -exponent)) + noise_in(block)
    off = float(np.linalg.norm(image - value * v)) - noise
    return off / (abs(value) + noise) if off > 0 else 0.0


def _block(left: Array, features: Array, data: bool) -> tuple[Array, int]:
    """Return S on some features divided by a power of two, so that no square overflows or vanishes, and which one."""
    part = left[:, features]
    exponent = int(np.frexp(np.abs(part).max(initial=0.0))[1])
    part = np.ldexp(part, -exponent)
    return (part.T @ part, 2 * exponent) if data else (part[features], exponent)
