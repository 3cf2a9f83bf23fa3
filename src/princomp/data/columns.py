"""Some columns of other rows, by name."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from princomp._text import listed
from princomp.data.rows import Rows
from princomp.data.wrapped import Wrapped


def columns(rows: Rows, names: Sequence[str]) -> Rows:
    """Return the columns of ``rows`` that have these names, in this order; ValueError lists those that are missing."""
    names = tuple(names)
    if rows.names is None:
        raise ValueError(f"The data have no column names, but these columns are needed: {listed(names)}.")
    if rows.names == names:
        return rows
    missing = [name for name in names if name not in set(rows.names)]
    if missing:
        text = [name for name in missing if name in rows.labels]
        why = f" ({listed(text)} is there, but holds text)" if text else ""
        raise ValueError(f"These columns are needed but missing: {listed(missing)}{why}.")
    place = {name: j for j, name in enumerate(rows.names)}
    some = Wrapped(rows, _columns, np.array([place[name] for name in names], dtype=np.intp))
    some.names, some.shape = names, (rows.shape[0], len(names))
    return some


def _columns(block: Any, rows: slice, places: Any) -> tuple[Any, slice]:
    return block[:, places], rows
