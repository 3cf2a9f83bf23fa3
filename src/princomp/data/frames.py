"""Data frames of any library (pandas, polars, pyarrow ...) as one array with feature names, through narwhals."""

from typing import Any

import numpy as np

from princomp._typing import Array


def is_frame(X: Any) -> bool:
    """Tell whether X is a data frame in memory, without importing any frame library."""
    if isinstance(X, np.ndarray | list | tuple):
        return False
    import narwhals as nw

    return nw.dependencies.is_into_dataframe(X)


def frame_to_array(frame: Any) -> tuple[Array, tuple[str, ...] | None]:
    """Return (numbers, column names); nulls become NaN; a column that is not numeric is named in the TypeError."""
    import narwhals as nw

    names = labels(frame)
    if len(set(names)) < len(names):
        twice = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(f"Column names must be unique, but these occur more than once: {', '.join(twice)}.")
    table = nw.from_native(frame, eager_only=True)
    dtypes = table.schema.dtypes()
    if dtypes and all(dtype == dtypes[0] for dtype in dtypes) and dtypes[0] in (nw.Float64, nw.Float32):
        array = table.to_numpy()  # a view where the library can give one
    else:
        array = np.empty(table.shape, np.float64)
        for j, series in enumerate(table.iter_columns()):
            array[:, j] = _column(series)
    return array, tuple(names) if all(isinstance(name, str) for name in names) else None


def labels(frame: Any) -> list[Any]:
    """Return the labels of columns, names or others, as the frame holds them (pyarrow calls them column_names)."""
    names = getattr(frame, "column_names", None)
    return names if isinstance(names, list) else list(frame.columns)


def _column(series: Any) -> Array:
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        if series.null_count():
            series = series.cast(nw.Float64)
        return np.asarray(series.to_numpy(), dtype=np.float64)
    if dtype == nw.Object:
        from princomp.data.memory import checked

        return checked(np.asarray(series.to_numpy())[:, None], f"column {series.name!r}")[:, 0]
    raise TypeError(
        f"Column {series.name!r} is {dtype}, not numeric. Leave it out, or code it as numbers, before fitting."
    )
