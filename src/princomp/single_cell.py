"""What a model found, written into AnnData, where scanpy looks for it."""

import os
import re
import sys
from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from princomp._text import listed
from princomp._typing import Array
from princomp.data import as_rows
from princomp.data.h5ad import VARIABLE, genes_of
from princomp.data.h5ad_writing import write_copy
from princomp.data.reading import File
from princomp.data.rows import Rows
from princomp.data.tables import unique_names
from princomp.data.wrapped import columns
from princomp.estimators.description import Side, describe

Slots = dict[str, dict[str, Any]]  # obsm, varm, uns: by key what is put there
SCANPY_KEYS = {"pca": ("X_pca", "PCs", "pca")}  # in obsm, varm, uns


def annotate(adata: Any, estimator: Any, X: Any = None) -> None:
    """Write what a fitted estimator found into an AnnData object, where scanpy looks for it.

    ===========  =====================  ============================  ===============================================
    estimator    scores, in ``obsm``    components, in ``varm``       in ``uns``
    ===========  =====================  ============================  ===============================================
    `PCA`        ``X_pca``              ``PCs``                       ``pca``: variance, variance_ratio, params
    `SparsePCA`  ``X_sparse_pca``       ``sparse_pca_components``     ``sparse_pca``: the same
    others       ``X_<name>``           ``<name>_components``         ``<name>``: what they have of it
    ===========  =====================  ============================  ===============================================

    The name is that of the class. Components are 0 for genes that the model was not given; they are left out if it was
    given features that are no genes of ``adata``. What was there under these keys is replaced.

    Parameters
    ----------
    adata : AnnData
        Changed in place, as scanpy's functions do.
    estimator : estimator
        Fitted to ``adata``, to some of its genes, or to rows that `read` made of its file.
    X : as in ``estimator.transform``, optional
        What the scores are of: cells by their names if X has names of rows, else in the order of ``adata``. By default
        ``adata`` itself, for an estimator that was fitted to its X. One that was fitted to rows that `read` normalised,
        or took the logarithm of, needs these rows here: nothing can tell that X of ``adata`` is something else.

    Raises
    ------
    TypeError
        If ``adata`` is no AnnData object.
    ValueError
        If X has other cells than ``adata``.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from princomp import PCA, annotate
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(30, 6)))
    >>> annotate(cells, PCA(2).fit(cells))
    >>> cells.obsm["X_pca"].shape, cells.varm["PCs"].shape, cells.uns["pca"]["variance_ratio"].shape
    ((30, 2), (6, 2), (2,))
    """
    if "anndata" not in sys.modules or not isinstance(adata, sys.modules["anndata"].AnnData):
        raise TypeError(f"adata must be an AnnData object, to write the results into, got {type(adata).__name__}.")
    found = describe(estimator)
    rows = as_rows(adata if X is None else X)
    order = _order(rows, adata)
    side = found.sides[0]
    scores = estimator.transform(columns(rows, side.features) if side.named else rows)
    scores = scores if order is None else scores[order]
    marked = adata.var[VARIABLE].to_numpy() if VARIABLE in adata.var else None
    names = unique_names([str(name) for name in adata.var_names])
    for place, held in slots(estimator, scores, names, marked).items():
        for key, value in held.items():
            getattr(adata, place)[key] = value


def _order(rows: Rows, adata: Any) -> Array | None:
    """Return which row each cell of ``adata`` is, by its name; None if they are in order, or rows have no names."""
    if rows.shape[0] != adata.n_obs:
        raise ValueError(f"X has {rows.shape[0]} rows, but adata has {adata.n_obs} cells.")
    cells = tuple(map(str, adata.obs_names))
    if rows.sample_names is None or rows.sample_names == cells:
        return None
    place = {name: i for i, name in enumerate(rows.sample_names)}
    if missing := [name for name in cells if name not in place]:
        raise ValueError(f"X has other cells than adata, by their names. It lacks {listed(missing)}.")
    if len(place) < len(cells) or len(set(cells)) < len(cells):
        raise ValueError(
            "The cells of X are in another order than those of adata, and some names are there twice, so it cannot be "
            "told which is which: make them unique with adata.obs_names_make_unique() before the file is written."
        )
    return np.array([place[name] for name in cells], dtype=np.intp)


def slots(estimator: Any, scores: Any, genes: Sequence[str], marked: Array | None) -> Slots:
    """Return what goes into ``obsm``, ``varm`` and ``uns``; ``marked`` (p,) are the genes that scanpy would take."""
    name = "_".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", type(estimator).__name__)).lower()
    in_obsm, in_varm, in_uns = SCANPY_KEYS.get(name, (f"X_{name}", f"{name}_components", name))
    found = describe(estimator)
    used = _places(found.sides[0], genes)
    components = getattr(estimator, "components_", None)
    varm = {}
    if used is not None and components is not None and components.ndim == 2:
        varm[in_varm] = np.zeros((len(genes), len(components)), components.dtype)
        varm[in_varm][used] = components.T
    variances = {key: getattr(estimator, f"explained_{key}_", None) for key in ("variance", "variance_ratio")}
    about = {
        "params": {"zero_center": bool(getattr(estimator, "center", True)), **_taken(used, len(genes), marked)},
        **{key: value for key, value in variances.items() if value is not None},
        "certificate": found.verdict,
    }
    return {"obsm": {in_obsm: scores}, "varm": varm, "uns": {in_uns: about}}


def _places(side: Side, genes: Sequence[str]) -> Array | None:
    """Return which of all genes each feature is; None if one is none of them."""
    if not side.named:
        return np.arange(len(genes)) if len(side.features) == len(genes) else None
    place = {name: j for j, name in enumerate(genes)}
    if not all(name in place for name in side.features):
        return None
    return np.array([place[name] for name in side.features], dtype=np.intp)


def _taken(used: Array | None, count: int, marked: Array | None) -> dict[str, Any]:
    """Return what scanpy would say of the genes that were taken."""
    variable = False
    if used is not None and marked is not None and len(used) < count:
        variable = np.array_equal(np.isin(np.arange(count), used), marked)
    return {"use_highly_variable": variable, **({"mask_var": VARIABLE} if variable else {})}


def write_h5ad(source: str | PathLike[str], target: str | PathLike[str], estimator: Any, scores: Any) -> list[str]:
    """Write an AnnData file anew, with what an estimator found in it as `annotate` puts it there; return notes on it.

    Not for a ``target`` that others look at already: it is not whole before this returns.
    """
    file = File(os.fspath(source))
    genes, marked = genes_of(file)
    found = slots(estimator, scores, genes, marked)
    write_copy(file, target, found)
    left_out = hasattr(estimator, "components_") and not found["varm"]
    return ["results.h5ad has no components: they are not those of the genes in its var."] if left_out else []
