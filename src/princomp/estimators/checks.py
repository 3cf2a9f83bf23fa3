"""What users give, found to be what it should be, or refused in words: counts, numbers of components, values of X."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data import Rows, statistics

MISSING = (
    "Drop or fill those rows first, or take ProbabilisticPCA (on the command line: --method probabilistic), or "
    "RobustPCA by cells (--method robust --robust-method cellwise), which allow missing cells"
)
REPLACE = "Replace or drop those cells first"
WEIGHTS = (1e-100, 1e100)  # of the row that counts most: sums of squares must neither overflow nor vanish


def check_count(name: str, value: Any, most: int | None = None, *, least: int = 1, or_none: bool = False) -> None:
    """Complain about a parameter that is not an integer from ``least`` on, to ``most`` if that is given."""
    if not (or_none and value is None) and not _is_count(value, most, least):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be an integer {bounds}{', or None;' if or_none else ','} got {value!r}.")


def check_time_limit(seconds: Any) -> None:
    """Complain about a ``time_limit`` that is no number of seconds above 0, nor None."""
    if seconds is not None and not (isinstance(seconds, Real) and not isinstance(seconds, bool) and float(seconds) > 0):
        raise ValueError(f"time_limit must be a number above 0, of seconds, or None; got {seconds!r}.")


def check_choice(name: str, value: Any, words: Sequence[str]) -> None:
    """Complain about a parameter that is none of a few words."""
    if not (isinstance(value, str) and value in words):
        raise ValueError(f"{name} must be one of {', '.join(words)}; got {value!r}.")


def count_components(
    asked: Any,
    most: int,
    *,
    of: str = " (= min(n, p))",
    more: bool = False,
    share: bool = False,
    words: Sequence[str] = (),
    or_none: bool = True,
) -> int:
    """Return how many components to compute; complain if ``n_components`` asks for nothing that there is.

    An integer up to ``most``, unless there may be ``more``; and, where they mean something, a share of the variance,
    one of a few words or None, for which it is ``most``.
    """
    is_word = isinstance(asked, str) and asked in words
    is_share = share and isinstance(asked, Real) and not isinstance(asked, Integral) and 0 < float(asked) <= 1
    if (or_none and asked is None) or is_word or is_share:
        return most
    if _is_count(asked, None if more else most):
        return int(asked)
    ways = ["an integer of at least 1" if more else f"an integer from 1 to {most}{of}"]
    named = f"one of {', '.join(words)}" if len(words) > 1 else "".join(f'"{word}"' for word in words)
    ways += [way for way in ("a share in (0, 1]" * share, named, "None" * or_none) if way]
    last = f", or {ways.pop()};" if len(ways) > 1 else ","
    raise ValueError(f"n_components must be {', '.join(ways)}{last} got {asked!r}.")


def _is_count(value: Any, most: int | None, least: int = 1) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and least <= int(value) and (most is None or int(value) <= most)


def column(names: Any, j: int) -> str:
    """Return what a column is called in a message: its name, or its number."""
    return str(j) if names is None else repr(names[j])


def check_values(rows: Rows, names: Any = None, *, center: bool = True, missing: bool = False) -> Array:
    """Raise ValueError if a value is infinite, or NaN unless cells may be ``missing``; it names the column.

    Else return each column's largest deviation. It costs a pass, so it is called only when sums came out wrong.
    """
    nan, inf, largest = statistics.column_faults(rows, center=center)
    if center and inf.any():  # in the cells, or only in their distance from others
        inf = statistics.column_faults(rows, center=False)[1]
    replace = "Replace those cells, by NaN if they are to count as missing" if missing else REPLACE
    for kind, count, hint in (("NaN", 0 * nan if missing else nan, MISSING), ("inf", inf, replace)):
        if count.any():
            j = int(np.argmax(count > 0))
            others = int((count > 0).sum()) - 1
            more = f" (and {others} more column{'s' if others > 1 else ''})" if others else ""
            raise ValueError(
                f"Input X contains {kind} in column {column(names, j)}{more}, in {int(count[j])} row(s) of it. {hint}."
            )
    if not np.isfinite(largest).all():
        raise ValueError("Input X spans more than float64 holds (inf when centred). Divide it by a constant first.")
    return largest


def checked_weight(sample_weight: Any, n: int) -> Array | None:
    """Return weights of n rows as an array; None if there are none."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have one entry per row, shape ({n},), got {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("sample_weight must be finite and nowhere negative.")
    if not weight.any():
        raise ValueError("sample_weight must not be zero everywhere: sample weights must contain one non-zero number.")
    if not WEIGHTS[0] <= weight.max() <= WEIGHTS[1]:
        raise ValueError(
            f"sample_weight must have its largest entry from {WEIGHTS[0]:.0e} to {WEIGHTS[1]:.0e}, got "
            f"{weight.max():.0e}. Divide it by a constant."
        )
    return weight
