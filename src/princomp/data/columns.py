"""Some columns of other rows, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from princomp._text import listed
from princomp.data.rows import Rows


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
    return _Columns(rows, names)


class _Columns(Rows):
    def __init__(self, rows: Rows, names: tuple[str, ...]) -> None:
        self._rows, self.names = rows, names
        place = {name: j for j, name in enumerate(rows.names or ())}
        self._columns = np.array([place[name] for name in names], dtype=np.intp)
        self.shape = (rows.shape[0], len(names))
        self.dtype, self.sparse, self.offsets = rows.dtype, rows.sparse, rows.offsets
        self.changeable = rows.changeable
        self.sample_names, self.labels, self.notes = rows.sample_names, rows.labels, rows.notes

    def block(self, i: int) -> Any:
        """Return block i, a copy of these columns."""
        return self._rows.block(i)[:, self._columns]
