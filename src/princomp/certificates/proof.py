"""Proofs that no component with at most k features has more variance than so much.

A proof is a tree. Its root stands for all supports of k units (features, or groups of them); a branch splits them into
those with and those without one unit; each leaf has a bound on v'Sv over its supports, of one of these kinds:

==========  ==========================================================================================================
EXACT       the support is determined: the leading eigenvalue there (nonnegative: see `nonnegative_value`)
ENUMERATED  the same, over all supports that are left (few)
ROWS        largest row (Gershgorin): own variance, then, with stored loadings x > 0, |S_gh| x_h / x_g summed over
            the units in, and the largest of all others
TRACE       sum of the variances of the units in and of the largest others, and what negative eigenvalues may add
EIGENVALUE  leading eigenvalue of S on all units that are left
DUAL        for stored weights a and shifts b (any will do), D_gh = S_gh / |S_gh|, k the units to choose:
            lambda_max(S - [a_gh a_hg D_gh] + diag(h)) + (sum of the largest b, units in first),
            h_g = -b_g + (sum over h of a_gh^2 - b_h, units in first, then the largest, k - 1 in all)
SIGNED      the same for single features, D_gh = 1: the weights carry the signs, as those of covariances that are 0
            but for rounding are not the same on every computer
==========  ==========================================================================================================

The last holds because, for a unit vector x on the support Z, a_gh a_hg |x_g||x_h| is at most half of
a_gh^2 |x_g|^2 + a_hg^2 |x_h|^2, and b summed over Z is sum_g |x_g|^2 sum_{h in Z} b_h. If x may not be negative, what
raises an entry of S (a_gh a_hg D_gh < 0) costs nothing.

S may be what other components left (`remainder`), known but for rounding. Then ``upper`` is raised, and ``lower``
lowered, by as much (and more: whoever rechecks has rounding too). No bound is for semidefinite matrices only: what
"hotelling" leaves is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from princomp._typing import Array

PROVED = 1e-6  # a relative gap within this counts as closed


class Kind(IntEnum):
    """How the bound of a leaf was found."""

    EXACT = 0
    ROWS = 1
    TRACE = 2
    EIGENVALUE = 3
    DUAL = 4
    ENUMERATED = 5
    SIGNED = 6


@dataclass(frozen=True)
class Leaves:
    """A tree of supports, with a bound for each leaf, as flat arrays: entry i is node i, node 0 the root.

    Attributes
    ----------
    unit : (nodes,) array of int
        The unit that a branch decides on; -1 at leaves.
    inside, outside : (nodes,) array of int
        The nodes with and without it; -1 at leaves.
    kind, dual : (nodes,) array of int
        At leaves the `Kind` of bound, and for DUAL and SIGNED the number of its point.
    bound : (nodes,) array
        At leaves the bound.
    points : tuple of (units, weights, shift)
        The dual points: the units (m,) that each has weights (m, m) and shifts (m,) for.
    loadings : (units,) array or None
        Positive numbers by which bounds by ROWS are balanced.
    """

    unit: Array
    inside: Array
    outside: Array
    kind: Array
    dual: Array
    bound: Array
    points: tuple[tuple[Array, Array, Array], ...] = ()
    loadings: Array | None = None

    def __len__(self) -> int:
        """Return the number of leaves."""
        return int(np.sum(self.unit < 0))


def relative_gap(lower: float, upper: float) -> float:
    """Return (upper - lower) / |upper|, 0 if there is none."""
    if upper <= lower:
        return 0.0
    return (upper - lower) / abs(upper) if upper else float("inf")


@dataclass(frozen=True)
class CardinalityCertificate:
    """What is known of the best component with at most ``nonzeros`` units.

    Attributes
    ----------
    lower, upper : float
        The value v'Sv of ``vector``, and a bound that no vector exceeds, both moved apart by ``rounding``.
    vector : (p,) array
        Unit vector, zero outside ``support``.
    support : tuple of int
        The features it may use.
    nonzeros : int
        How many units (features, or groups) it may use.
    leaves : Leaves
        The proof, for `verify`.
    include, exclude : tuple of int
        Features forced into the support (their loadings may still be 0), and out of it.
    nonnegative : bool
        Whether only nonnegative vectors count.
    groups : tuple or None
        Group of each feature; a group counts as one.
    nodes : int
        Subproblems looked into.
    seconds : float
        Time taken.
    certifies : str
        What S was, in words.
    rounding : float
        By how much S may differ, in the spectral norm, from the matrix that the bounds are for.
    """

    lower: float
    upper: float
    vector: Array
    support: tuple[int, ...]
    nonzeros: int
    leaves: Leaves
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    nonnegative: bool = False
    groups: tuple[Any, ...] | None = None
    nodes: int = 0
    seconds: float = 0.0
    certifies: str = "the best component"
    rounding: float = 0.0

    @property
    def gap(self) -> float:
        """(upper - lower) / upper."""
        return relative_gap(self.lower, self.upper)

    @property
    def proved(self) -> bool:
        """Whether the gap is closed, but for rounding."""
        return self.gap <= PROVED

    def __str__(self) -> str:
        words = restriction(self.include, self.exclude, self.nonnegative, self.groups is not None)
        among = f" among components {words}" if words else ""
        if self.proved:
            largest = f"proved to be the largest{among}"
            return f"{self.certifies.capitalize()}: {self.lower:.6g}, {largest} ({self.nodes} nodes)."
        return (
            f"{self.certifies.capitalize()}: {self.lower:.6g}; no other{among} exceeds {self.upper:.6g}, so that at "
            f"most {100 * self.gap:.2g} % are missing ({self.nodes} nodes)."
        )


def restriction(
    include: Sequence[Any], exclude: Sequence[Any], nonnegative: bool, grouped: bool, *, plural: bool = True
) -> str:
    """Return in words what components a bound is about, to follow "components", or "component"; nothing if all.

    Examples
    --------
    >>> from princomp.certificates.proof import restriction
    >>> restriction([2], ["ash", "hue"], False, False)
    'that include feature 2, without ash and hue'
    >>> restriction([], range(9), True, True, plural=False)
    'of whole groups, without features 0, 1, 2, 3, 4 and 4 others, without negative loadings'
    """
    parts = [
        "of whole groups" if grouped else "",
        f"that include{'' if plural else 's'} {_listed(include)}" if len(include) else "",
        f"without {_listed(exclude)}" if len(exclude) else "",
        "without negative loadings" if nonnegative else "",
    ]
    return ", ".join(part for part in parts if part)


def _listed(features: Sequence[Any], most: int = 5) -> str:
    """Return features, by number or name, as a list of a few."""
    shown = [str(feature) if str(feature).isprintable() else repr(feature) for feature in features[:most]]
    if len(features) > most:
        shown.append(f"{len(features) - most} others" if len(features) > most + 1 else str(features[most]))
    what = "" if isinstance(features[0], str) else f"feature{'' if len(features) == 1 else 's'} "
    return what + (shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}")


def scaled(c: CardinalityCertificate, exponent: int) -> CardinalityCertificate:
    """Return the certificate for S times 4**exponent, or X times 2**exponent: exact unless it overflows or vanishes."""
    twice, leaves = 2 * exponent, c.leaves
    points = tuple(
        (units, np.ldexp(weights, exponent), np.ldexp(shift, twice)) for units, weights, shift in leaves.points
    )
    return replace(
        c,
        lower=float(np.ldexp(c.lower, twice)),
        upper=float(np.ldexp(c.upper, twice)),
        rounding=float(np.ldexp(c.rounding, twice)),
        leaves=replace(leaves, bound=np.ldexp(leaves.bound, twice), points=points),
    )


def units_of(groups: Sequence[Any] | None, p: int) -> Array:
    """Return the unit of each feature: units that are single features have their numbers, whatever their labels."""
    if groups is None:
        return np.arange(p)
    units: Array = np.unique(np.asarray(groups), return_inverse=True)[1]
    return np.arange(p) if units.max() + 1 == p else units
