"""What is asked of a penalised code: the view that compiled loops and their twins share."""

from typing import NamedTuple

from princomp._typing import Array


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
