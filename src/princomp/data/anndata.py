"""AnnData objects: X as rows, with the names of genes and cells, and texts of ``obs`` as labels."""

from copy import copy
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.data.h5ad import checked_csr
from princomp.data.h5ad_frames import Labels, of_codes
from princomp.data.memory import working_dtype
from princomp.data.rows import Rows, block_offsets
from princomp.data.tables import unique_names

TEXTS = ("object", "str", "string")  # what pandas calls columns of text


def anndata_rows(adata: Any, **blocks: Any) -> Rows:
    """Return X of an AnnData object as rows; a backed one is read in blocks, each time."""
    from princomp.data.source import as_rows

    X = adata.X
    if X is None:
        raise ValueError('This AnnData object has no X: pass one of its layers, as in adata.layers["counts"].')
    sparse_on_disk = adata.isbacked and hasattr(X, "format") and not hasattr(X, "tocsr")
    rows = copy(BackedRows(X, **blocks) if sparse_on_disk else as_rows(X, **blocks))
    rows.names = tuple(unique_names([str(name) for name in adata.var_names]))
    rows.sample_names = tuple(map(str, adata.obs_names))
    rows.labels = Labels(
        {str(name): partial(_texts, adata.obs[name]) for name in adata.obs if _is_text(adata.obs[name])}
    )
    return rows


def _is_text(column: Any) -> bool:
    return str(column.dtype) in ("category", *TEXTS)


def _texts(column: Any) -> Array:
    if str(column.dtype) == "category":
        return of_codes([str(word) for word in column.cat.categories], column.cat.codes.to_numpy())
    return np.array([str(word) for word in column.where(column.notna(), "")], dtype=object)


class BackedRows(Rows):
    """Rows of a CSR matrix that an AnnData object keeps on disk."""

    sparse = changeable = True

    def __init__(self, X: Any, **blocks: Any) -> None:
        if X.format != "csr":
            raise ValueError(f"X is on disk as {X.format}, of which rows cannot be read: pass adata.to_memory().")
        self._X = X
        self.shape, self.dtype = (int(X.shape[0]), int(X.shape[1])), working_dtype(np.dtype(X.dtype))
        self.offsets = block_offsets(*self.shape, **blocks)

    def block(self, i: int) -> Any:
        """Return block i, read now."""
        block = self._X[self.rows(i)]
        return checked_csr(block.data, block.indices, block.indptr, self.shape[1], "X on disk")
