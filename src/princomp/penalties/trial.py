"""Penalties of one's own, tried on a few vectors before they are used: what is wrong with one is said in a sentence.

A prox that is none would otherwise show as an error of NumPy's far inside, or as codes that mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from princomp import penalties
from princomp._typing import Array

CONTRACT = (
    "A penalty has value(w), the number h(w), and prox(w, step), the minimiser of 1/2 |z - w|^2 + step h(z) over z, an "
    "array like w; w is a vector, or has vectors as columns, and step is a number above 0, or one for each column."
)
STEPS = (0.1, 1.0, 10.0)
# Where to look for better points, as shares of the way from the prox to w, and to 0.
SHARES = (-0.1, 0.1, 0.5, 1.0)
SLACK = 1e-6  # of a prox that is found by steps of its own, relative to what is minimised


def try_penalty(penalty: Any, size: int, name: str = "penalty", *, vectors_only: bool = False) -> None:
    """Complain if an object is no penalty of ``size`` entries; those of this package, names and coders are known.

    ``vectors_only`` is for what never sees columns, and whose value may be infinite by rounding: constraints of atoms.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties.trial import try_penalty
    >>> class Wrong:
    ...     def value(self, w):
    ...         return np.abs(w).sum()
    ...
    ...     def prox(self, w, step):
    ...         return w[:1]
    >>> try_penalty(Wrong(), 5)
    Traceback (most recent call last):
    ...
    TypeError: penalty: Wrong.prox(w, step) must return numbers in the shape of w, (5,), got (1,). A penalty has ...
    """
    known = getattr(penalties, type(penalty).__name__, None) is type(penalty)
    if known or isinstance(penalty, str) or (hasattr(penalty, "code") and not isinstance(penalty, type)):
        return
    _Trial(penalty, name, allow_infinity=vectors_only).run(size, columns=not vectors_only)


class _Trial:
    """An object under trial."""

    def __init__(self, penalty: Any, name: str, *, allow_infinity: bool) -> None:
        self.penalty, self.name, self.allow_infinity = penalty, name, allow_infinity
        self.kind = penalty.__name__ if isinstance(penalty, type) else type(penalty).__name__

    def run(self, size: int, *, columns: bool) -> None:
        """Complain about the first thing that is wrong."""
        if isinstance(self.penalty, type):
            raise TypeError(f"{self.name} is the class {self.kind} itself: give an object of it, {self.kind}(...).")
        missing = [method for method in ("value", "prox") if not callable(getattr(self.penalty, method, None))]
        if missing:
            raise TypeError(f"{self.name}: {self.kind} has no method {' and no method '.join(missing)}. {CONTRACT}")
        W = 2.0 * np.random.default_rng(0).normal(size=(size, len(STEPS)))
        for w, step in zip(W.T, STEPS, strict=True):
            self.minimises(np.ascontiguousarray(w), step)
        if columns:
            self.takes_columns(W)

    def minimises(self, w: Array, step: float) -> None:
        """Complain if the prox of a vector is worse than points near it, w, or 0."""
        z = self.prox(w, step)
        least = 0.5 * float((z - w) @ (z - w)) + step * self.value(z, "prox(w, step)")
        for other in (*(z + share * (w - z) for share in SHARES), *(z - share * z for share in SHARES)):
            found = 0.5 * float((other - w) @ (other - w)) + step * self.value(other)
            if found < least - SLACK * (0.5 * float(w @ w) + abs(least)):
                raise self.wrong(
                    f"prox(w, step) is not where 1/2 |z - w|^2 + step value(z) is least: with step={step:g} it is "
                    f"{least:.4g} there, and {found:.4g} elsewhere"
                )

    def takes_columns(self, W: Array) -> None:
        """Complain if columns are not treated one by one."""
        together, steps = self.prox(W, np.array(STEPS)), STEPS
        alone = np.stack([self.prox(np.ascontiguousarray(w), step) for w, step in zip(W.T, steps, strict=True)], axis=1)
        if not np.allclose(together, alone, rtol=1e-5, atol=1e-6):
            raise self.wrong("prox(w, step) of columns, with a step for each, is not that of one after the other")
        if hasattr(self.penalty, "values"):
            values = self.numbers(
                "values(w)", lambda: self.penalty.values(together), (len(STEPS),), "a number a column"
            )
            if not np.allclose(values, [self.value(z) for z in alone.T], rtol=1e-5):
                raise self.wrong("values(w) is not value(w) of one column after the other")

    def prox(self, w: Array, step: Any) -> Array:
        """Return the prox; complain if it is no array of finite numbers like w."""
        shape = f"numbers in the shape of w, {w.shape}"
        found = self.numbers("prox(w, step)", lambda: self.penalty.prox(w.copy(), step), w.shape, shape)
        if not np.isfinite(found).all():
            raise self.wrong("prox(w, step) must return finite numbers, got NaN or infinity")
        return found

    def value(self, w: Array, of: str = "w") -> float:
        """Return the value of a vector, 0 of an infinite one that may be so; complain if it is none."""
        found = float(self.numbers(f"value({of})", lambda: self.penalty.value(w.copy()), (), "one number"))
        if np.isnan(found) or found == -np.inf:
            raise self.wrong(f"value({of}) must be a number, or infinity, got {found}")
        if found < np.inf or of == "w":
            return found
        if self.allow_infinity:
            return 0.0
        raise self.wrong("value(prox(w, step)) is infinite: let it be finite within rounding of where it should be")

    def numbers(self, what: str, ask: Callable[[], Any], shape: tuple[int, ...], must: str) -> Array:
        """Return an answer as an array of float64; complain if it is an error, or none of this shape."""
        try:
            found = np.asarray(ask())
        except Exception as error:
            raise self.wrong(f"{what} failed: {type(error).__name__}: {error}") from error
        if found.dtype.kind not in "biuf" or found.shape != shape:
            got = found.shape if found.dtype.kind in "biuf" else found.dtype
            raise self.wrong(f"{what} must return {must}, got {got}")
        return found.astype(np.float64)

    def wrong(self, what: str) -> TypeError:
        """Return the error that says so."""
        return TypeError(f"{self.name}: {self.kind}.{what}. {CONTRACT}")
