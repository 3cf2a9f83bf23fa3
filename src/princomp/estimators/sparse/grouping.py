"""What ``nonzeros`` counts where features enter in groups."""

from typing import Any

import numpy as np

from princomp._typing import Array
from princomp.penalties.groups import as_groups, disjoint


def labels(groups: Any, p: int) -> Array | None:
    """Return the group of each feature, as a number; features in no group are groups of their own.

    None if there are no groups, or if they share features: then features are what can be counted.

    Examples
    --------
    >>> from princomp.estimators.sparse.grouping import labels
    >>> labels([[0, 2], [3]], 5).tolist()
    [0, 2, 0, 1, 3]
    >>> labels([[0, 1], [1, 2]], 5) is None
    True
    """
    if groups is None:
        return None
    sets = as_groups(groups)
    members = np.concatenate([np.asarray(each, dtype=int) for each in sets])
    if members.min() < 0 or members.max() >= p:
        raise ValueError(f"groups must hold features from 0 to {p - 1}, got {members[(members < 0) | (members >= p)]}.")
    if not disjoint(sets):
        return None
    found = np.arange(p) + len(sets)
    for label, each in enumerate(sets):
        found[list(each)] = label
    numbers: Array = np.unique(found, return_inverse=True)[1]
    return numbers


def used(loadings: Array, of: Array | None) -> Array:
    """Return how many features, or groups of them, each column of loadings uses."""
    nonzero = loadings != 0
    if of is None:
        return np.asarray(nonzero.sum(axis=0))
    return np.array([len(np.unique(of[column])) for column in nonzero.T])
