"""From whatever the user has to `Rows`: one table."""

import sys
from typing import Any

from princomp.data.chunked import is_opened, opened_rows
from princomp.data.frames import frame_to_array, is_frame
from princomp.data.memory import MemoryRows
from princomp.data.rows import BLOCK_BYTES, Rows
from princomp.data.shards import ShardRows, is_shards


def as_rows(X: Any, *, block_rows: int | None = None, block_bytes: int = BLOCK_BYTES) -> Rows:
    """Return X as `Rows`, without copying it where that can be avoided.

    ====================================================  ==========================================================
    X                                                     read as
    ====================================================  ==========================================================
    `Rows`                                                itself
    Dask array or frame                                   its own chunks, on its own cluster
    Spark DataFrame (numeric columns, or one of arrays)   its own partitions, on its own cluster
    SciPy sparse matrix or array                          CSR, never made dense
    AnnData                                               its X, with the names of genes and cells; backed: in blocks
    h5py dataset, zarr array, or a list of such           blocks of about whole chunks, read from where they are
    list of arrays, frames, ``.npy`` paths or callables   shards, one after the other; frames by column names
    pandas, polars, pyarrow or other frame                one array with feature names
    anything NumPy reads as a 2-D array of numbers        that array, in views
    ====================================================  ==========================================================

    Parameters
    ----------
    X : object
        The data, rows are samples.
    block_rows : int, optional
        Rows per block; by default as many as fit ``block_bytes``.
    block_bytes : int, default 32 MiB
        Memory of one block as float64.

    Returns
    -------
    Rows
        A view of the data that can be read again and again.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.data import as_rows
    >>> as_rows(np.ones((10, 3)), block_rows=4)
    <MemoryRows 10 x 3 float64 in 3 blocks>
    """
    how: dict[str, Any] = {"block_rows": block_rows, "block_bytes": block_bytes}
    if isinstance(X, Rows):
        return X
    library = type(X).__module__  # is there already if X comes from it, and is not imported else
    if library.partition(".")[0] in ("dask", "dask_expr"):
        from princomp.data.dask import DaskRows

        return DaskRows(X)
    if library.startswith("pyspark.sql.") and type(X).__name__ == "DataFrame":  # classic or Connect
        from princomp.data.spark import SparkRows

        return SparkRows(X, **how)
    if "anndata" in sys.modules and isinstance(X, sys.modules["anndata"].AnnData):
        from princomp.data.anndata import anndata_rows

        return anndata_rows(X, **how)
    if "scipy.sparse" in sys.modules and sys.modules["scipy.sparse"].issparse(X):
        from princomp.data.sparse import SparseRows

        return SparseRows(X, **how)
    if is_opened(X):
        return opened_rows(X, **how)
    if is_shards(X):
        return ShardRows(X, **how)
    if is_frame(X):
        array, names = frame_to_array(X)
        return MemoryRows(array, names=names, **how)
    return MemoryRows(X, **how)
