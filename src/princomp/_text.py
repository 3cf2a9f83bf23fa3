"""Names that come with data, made harmless: for a terminal, for a sentence, for a spreadsheet."""

from __future__ import annotations

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
