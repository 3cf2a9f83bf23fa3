"""How overlapping groups are laid out: apart from `group_prox`, which loads numba."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from princomp._typing import Array


class Layout(NamedTuple):
    """G groups of p features, m entries in all: one for each feature of each group, group after group.

    A (G, G) matrix in which groups that share no feature have nothing in common is kept as its upper triangle, row g
    from column g to column last[g], beyond which all is zero: element (g, h) is number rows[g] + h.
    """

    indices: Array  # (m,) the feature of each entry
    first: Array  # (G + 1,) where each group begins
    owner: Array  # (m,) the group of each entry
    by_feature: Array  # (m,) the entries, sorted by feature and then by group
    starts: Array  # (p + 1,) where each feature begins in `by_feature`
    rows: Array  # (G,)
    last: Array  # (G,) not decreasing


class Point(NamedTuple):
    """Where the interior-point method is: z_g = scale_g u_g and slack_g = (bound_g^2 - |u_g|^2) / 2 in the end."""

    parts: Array  # (m,) u_g
    scale: Array  # (G,) above 0
    slack: Array  # (G,) above 0


def lay_out(groups: Sequence[Sequence[int]], p: int) -> Layout:
    """Return the layout of groups of features 0 ... p - 1, in the order given: neighbours had better stand together."""
    sizes = np.array([len(group) for group in groups])
    indices, owner = np.concatenate([np.array(group) for group in groups]), np.repeat(np.arange(len(sizes)), sizes)
    first, starts = np.zeros(len(sizes) + 1, dtype=np.int64), np.zeros(p + 1, dtype=np.int64)
    np.cumsum(sizes, out=first[1:])
    np.cumsum(np.bincount(indices, minlength=p), out=starts[1:])
    latest = np.zeros(p, dtype=np.int64)
    np.maximum.at(latest, indices, owner)
    last = np.maximum.accumulate(np.maximum.reduceat(latest[indices], first[:-1]))
    widths = last - np.arange(len(sizes)) + 1
    rows = np.cumsum(widths) - widths - np.arange(len(sizes))
    return Layout(indices, first, owner, np.argsort(indices, kind="stable"), starts, rows, last)
