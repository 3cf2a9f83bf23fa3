"""Spherical PCA (Locantore et al., Test 1999): components of rows that are brought to one distance from the centre.

Objective: maximise tr(V'U'UV) over orthonormal V (p, k), where U has the rows of X less their spatial median, each
divided by its length: of a row far out, nothing is left but where it points. For elliptical data the eigenvectors are
those of the covariance, in the same order (Marden, Stat. Probab. Lett. 1999); variances are those of the scores, by
their MAD.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.certificates import Images, floor_of_matrix
from princomp.data import Centered
from princomp.solvers.leading import Operator

Change = tuple[Any, slice]


def unit_rows(block: Array, rows: slice) -> Change:
    """Return rows divided by their lengths; those of length 0 stay."""
    lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
    return block / np.where(lengths > 0, lengths, 1.0).astype(block.dtype)[:, None], rows


def on_sphere(X: Centered) -> Centered:
    """Return X, rows less their centre, with rows of length 1; tiles are dense."""
    return X.changed(unit_rows)


# Sparse rows would not stay so: products with U are made of those with X.


def _shares(block: Any) -> Array:
    squares = block.row_squares()
    return np.divide(1.0, squares, out=np.zeros(len(squares)), where=squares > 0)[:, None]


def _unit_gram_apply(block: Any, rows: slice, V: Array) -> Array:
    return np.asarray(block.T @ ((block @ V) * _shares(block)))


def _unit_images(block: Any, rows: slice, V: Array) -> tuple[Array, Array]:
    scores = block @ V
    weighted = scores * _shares(block)
    return np.asarray(block.T @ weighted), scores.T @ weighted


def _images(X: Centered, V: Array) -> Images:
    images, gram = X.reduce(_unit_images, V)
    return Images(images, (gram + gram.T) / 2)


def operator(X: Centered, count: int) -> Operator:
    """Return U'U for sparse rows, of which ``count`` are not at the centre."""
    apply: Callable[[Array], Array] = partial(X.reduce, _unit_gram_apply)
    return Operator(
        apply, X.shape[1], float(count), partial(floor_of_matrix, X.shape[1]), partial(_images, X), sparse=True
    )
