"""Names that come with data, made harmless for a terminal, a sentence, a spreadsheet; and numbers in words."""

import os
import re
from collections.abc import Sequence
from typing import Any

LONGEST = 60
# A cell that begins so, after spaces of any kind, is a formula to a spreadsheet.
_FORMULA = re.compile(r"[\s\u200b\ufeff]*[=+\-@＝＋－＠]|\s*?[\t\r]")


def printable(text: Any, *, lines: bool = False) -> str:
    r"""Return text without control characters, which could move the cursor or colour the screen: shown as \x1b.

    A path may hold bytes that are not text; they are shown as escapes too. ``lines`` keeps line breaks.

    >>> print(printable("\x1b[31mred"))
    \x1b[31mred
    """
    text = os.fsdecode(text) if isinstance(text, bytes | os.PathLike) else str(text)
    keep = "\n" if lines else ""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def shown(text: Any, longest: int | None = LONGEST) -> str:
    """Return printable text of bounded length.

    >>> shown("a long name", 7)
    'a long…'
    """
    if longest is None:
        return printable(text)
    whole = printable(str(text)[: longest + 1])
    return whole if len(whole) <= longest else whole[: longest - 1] + "…"


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Return names in a row, the first few of many.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def harmless(text: str) -> str:
    """Return the text of a cell, a ' before it if a spreadsheet would take it for a formula.

    >>> harmless("=1+1"), harmless("a=b")
    ("'=1+1", 'a=b')
    """
    return f"'{text}" if _FORMULA.match(text) else text


def count(number: int, thing: str = "") -> str:
    r"""Return a number with its digits in groups, and the thing counted in the right form.

    >>> count(1, "sample"), count(50_000, "sample")
    ('1 sample', '50\u202f000 samples')
    """
    digits = f"{number:,}".replace(",", "\u202f") if number >= 10_000 else str(number)
    return f"{digits} {thing}{'' if number == 1 else 's'}" if thing else digits


def percent(share: float) -> str:
    r"""Return a share in per cent; one that is not whole never reads as 100 %, one that is not nothing never as 0 %.

    >>> [percent(share) for share in (0.553, 0.0553, 0.99996, 1.0, 1e-9, 0.0)]
    ['55\xa0%', '5.5\xa0%', 'over 99.9\xa0%', '100\xa0%', 'under 0.1\xa0%', '0\xa0%']
    """
    if share == 0:  # also -0.0
        return "0\xa0%"
    if share >= 1 - 1e-6:
        return "100\xa0%"
    if share >= 0.9995:
        return "over 99.9\xa0%"
    if 0 < share < 0.0005:
        return "under 0.1\xa0%"
    return f"{100 * share:.0f}\xa0%" if 0.0995 <= share < 0.985 else f"{100 * share:.1f}\xa0%"
