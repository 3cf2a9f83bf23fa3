"""Tables for files: CSV that a spreadsheet can open without running anything, or Parquet."""

import re
from collections.abc import Mapping
from typing import IO, Any

from princomp._text import harmless

NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


def write_table(file: IO[bytes], columns: Mapping[str, Any], *, kind: str = "csv", raw: bool = False) -> None:
    """Write columns (arrays of numbers, or sequences of texts) to a binary file, as "csv" or "parquet".

    In CSV, texts that look like formulae are made harmless unless ``raw``; numbers are written so that they can be
    read back exactly, and a column of texts that all are numbers is one of numbers, left as it is spelt.
    """
    import numpy as np
    import pyarrow as pa

    guard = (lambda text: text) if raw or kind == "parquet" else harmless
    arrays, names = [], []
    for name, values in columns.items():
        if not isinstance(values, np.ndarray) or values.dtype.kind in "OUS":
            texts = [None if value is None else _text(value) for value in values]
            numbers = all(text is None or NUMBER.fullmatch(text) for text in texts)
            values = pa.array(texts if numbers else [text and guard(text) for text in texts], pa.string())
        arrays.append(pa.array(values))
        names.append(guard(_text(name)))
    table = pa.Table.from_arrays(arrays, names=names)
    if kind == "parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, file)
    else:
        import pyarrow.csv

        pyarrow.csv.write_csv(table, file)


def sample_column(rows: Any) -> dict[str, Any]:
    """Return the first column of a table of rows, by its name: their names, or numbers."""
    import numpy as np

    return {"sample": np.arange(1, rows.shape[0] + 1) if rows.sample_names is None else rows.sample_names}


def _text(value: Any) -> str:
    """Return text that UTF-8 can hold."""
    return str(value).encode("utf-8", "backslashreplace").decode()
