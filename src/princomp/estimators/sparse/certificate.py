"""How good components of few features are: the variance of each, and a bound that no other exceeds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

import numpy as np

from princomp._kinds import ANY, NONNEGATIVE, Kind, Numbers, Word
from princomp._typing import Array
from princomp.certificates import CardinalityCertificate
from princomp.certificates.proof import PROVED, relative_gap, restriction
from princomp.result import Certificate
from princomp.solvers.deflation import Deflation

BOUNDS_MEAN = (
    "A bound holds for these data, and for a component given those before it: together other components may explain "
    "more, and another sample may choose other features."
)


def _nothing() -> Array:
    return np.zeros(0)


@dataclass(frozen=True)
class SparseCertificate(Certificate):
    """What is known of each component, given those before it.

    Attributes
    ----------
    lower : (k,) array
        Variance of each component, in what was left by those before it; with a proof, less what rounding in that may
        have added.
    upper : (k,) array
        No component of as many features has more, of those that are allowed.
    gap : (k,) array
        (upper - lower) / upper.
    proved : (k,) array of bool
        Whether the gap is closed, but for rounding: there is no better component.
    features : (k,) array of int
        How many features, or groups of them, each may use.
    nodes, seconds : (k,) array
        What the proof took; 0 without one.
    proofs : tuple
        With ``certify=True`` the proofs; None for a component of zeros, or one that was proved before a fit was
        resumed. `princomp.certificates.verify` rechecks one, or, given this certificate, all of them.
    unit : {"feature", "group"}
        What ``features`` counts.
    deflation : str
        What those before leave for a component.
    include, exclude : tuple of int
        Features that every component was to include, and that none was to use: nothing is said of other components.
    nonnegative : bool
        Whether only components without negative loadings were allowed.
    names : tuple of str
        Of the features in ``include`` and then in ``exclude``, where they have names.
    residual, tol, scope, dominant, details
        As in `Certificate`: the residual is that of each component as an eigenvector on its own features.
    """

    lower: Array = field(default_factory=_nothing)
    upper: Array = field(default_factory=_nothing)
    features: Array = field(default_factory=_nothing)
    nodes: Array = field(default_factory=_nothing)
    seconds: Array = field(default_factory=_nothing)
    proofs: tuple[CardinalityCertificate | None, ...] = ()
    unit: str = "feature"
    deflation: str = "schur"
    include: tuple[int, ...] = ()
    exclude: tuple[int, ...] = ()
    nonnegative: bool = False
    names: tuple[str, ...] = ()

    _kinds: ClassVar[Mapping[str, Kind]] = {
        **dict.fromkeys(("lower", "upper"), Numbers("k", ANY)),
        **dict.fromkeys(("features", "nodes"), Numbers("k", NONNEGATIVE, dtypes="i")),
        "seconds": Numbers("k", NONNEGATIVE),
        "deflation": Word(get_args(Deflation)),
    }

    @property
    def gap(self) -> Array:
        """Relative distance of the bounds, (k,); 1 where none is known."""
        bounds = zip(self.lower, self.upper, strict=True)
        return np.array([relative_gap(lower, upper) if np.isfinite(upper) else 1.0 for lower, upper in bounds])

    @property
    def proved(self) -> Array:
        """Whether nothing better exists, (k,)."""
        return self.gap <= PROVED

    def __str__(self) -> str:
        """Return what is known in a line: all proved, or component by component."""
        k, among = len(self.lower), self.restriction()
        if k > 1 and self.proved.all():
            best = f"proved best among components {among}" if among else "proved best"
            return f"All {k} components are {best}, each given those before it."
        return " ".join(self.sentences())

    def facts(self) -> dict[str, Any]:
        """Return what a program would like to know, the bounds of each component too."""
        names = ("lower", "upper", "gap", "proved", "nodes", "seconds")
        return super().facts() | {name: getattr(self, name) for name in names}

    def verdict(self) -> str:
        """Say in one line whether the answer is certified, and how many components are proved best."""
        proved, among = self.proved, self.restriction()
        if not self.holds:
            return super().verdict()
        if proved.all():
            better = f"no better components {among}," if among else "no better components"
            return f"Certified: {better} exist, each given those before it."
        if not proved.any():
            return "Certified within bounds: how much better a component could be is known."
        best = f"proved best among components {among}" if among else "proved best"
        return f"Certified: {int(proved.sum())} of {len(proved)} components are {best}, the others within bounds."

    def assurance(self) -> list[str]:
        """Say what is known of each of the first components, and what that means."""
        return [*self.sentences(), BOUNDS_MEAN]

    def restriction(self, *, plural: bool = True) -> str:
        """Return what components all this is about, in words to follow "components" or "component"; "" if any."""
        split = len(self.include)
        include, exclude = (self.names[:split], self.names[split:]) if self.names else (self.include, self.exclude)
        grouped = plural and self.unit == "group"  # a component is said to be of so many groups, anyway
        return restriction(include, exclude, self.nonnegative, grouped, plural=plural)

    def sentences(self, most: int = 10) -> list[str]:
        """Return a sentence for each of the first components."""
        k, proved = len(self.lower), self.proved
        said = [self._sentence(j) for j in range(min(k, most))]
        return [*said, f"Of all {k} components, {int(proved.sum())} are proved best."] if k > most else said

    def _sentence(self, j: int) -> str:
        lower, upper, given = self.lower[j], self.upper[j], " given those before it" if j else ""
        begin = f"Component {j + 1}, variance {max(lower, 0.0):.4g}"
        among, alone = self.restriction(), self.restriction(plural=False)
        if self.proved[j]:
            return f"{begin}: proved best{f' among components {among}' if among else ''}{given}."
        count = int(self.features[j])
        of = f"{count} {self.unit}{'' if count == 1 else 's'}{f', {alone},' if alone else ''}"
        if not np.isfinite(upper):
            begin = f"Component {j + 1} was not finished" if lower <= 0 else begin
            return f"{begin}: no bound is known{'' if np.isfinite(lower) else ', the numbers being too large'}."
        if lower <= 0:
            return f"{begin}: no component of {of} has a variance above {upper:.2g}{given}."
        return f"{begin}: no component of {of} can have more than {percent(upper / lower - 1)} more variance{given}."


def percent(share: float) -> str:
    """Return a share in per cent, rounded up: a bound must stay one.

    >>> [percent(share) for share in (0.0227, 0.5, 1.2345, 2e-6, 0.0)]
    ['2.3 %', '50 %', '124 %', '0.0002 %', '0 %']
    """
    if share <= 0:
        return "0 %"
    digits = max(1 - int(np.floor(np.log10(max(100 * share, 1e-300)))), 0)
    shown = f"{np.ceil(100 * share * 10**digits - 1e-9) / 10**digits:.{digits}f}"
    return (shown.rstrip("0").rstrip(".") if digits else shown) + " %"
