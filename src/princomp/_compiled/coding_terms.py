"""What is asked of a penalised code: the view that compiled loops and their twins share."""

from typing import NamedTuple

from princomp._typing import Array

# Where |x|^2 is so small that a gap has no digits, violations are measured instead, relative to the limits.
VANISHING = 1e-290
SLACK = 1e-9


class Terms(NamedTuple):
    """Limits of slopes, how violations of them are measured, and how small they, or the gap, have to be.

    Atom k violates by |slope| * factor + shift, where that is above 0.
    """

    limits: Array  # (K,) weights of |a_k|
    factors: Array  # (K,)
    shifts: Array  # (K,)
    both: float  # -1: slopes of either sign count, 0: positive ones alone (codes are not negative)
    tol: float
    by_gap: bool  # tol bounds the relative gap, else the largest violation relative to |x|


class Price(NamedTuple):
    """alpha |a_k|^power of each entry, or alpha for each that is not zero, where the power is 0."""

    alpha: float
    power: float
    nonnegative: bool


class Nest(NamedTuple):
    """Groups of atoms of which any two are nested or do not meet, each after those inside it: sum_g bound_g |a_g|."""

    members: Array  # (M,) atoms of all groups, group after group
    first: Array  # (G + 1,) where each group begins
    bounds: Array  # (G,) alpha times the weights
    owner: Array  # (K,) the heaviest group that an atom is in
    nonnegative: bool
