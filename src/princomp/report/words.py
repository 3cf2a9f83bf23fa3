"""How the report shows names that others chose."""

import re
from typing import Any

LONGEST = 120  # characters of a name that are shown

# What would be invisible or break a line, turn the reading direction, or cannot be written as UTF-8.
UNSHOWABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def shown(text: Any, longest: int = LONGEST) -> str:
    r"""Return the text as the page shows it: shortened in the middle, control characters written out.

    >>> shown("a\u202eb"), shown("x" * 1000, 9), shown("")
    ('a\\u202eb', 'xxxxxx…xxx', '(empty)')
    """
    text = str(text)
    if len(text) > longest:
        tail = longest // 3
        text = f"{text[: longest - tail]}…{text[-tail:]}"
    return UNSHOWABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if text.strip() else "(empty)"
