"""The penalty of groups that may overlap."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from princomp._compiled.group_layout import Layout, lay_out
from princomp._typing import Array
from princomp.penalties import interior
from princomp.penalties.groups import Grouped
from princomp.penalties.simple import Step


@dataclass(frozen=True)
class OverlappingGroups(Grouped):
    """h(w) = alpha sum_g weight_g |w_g|_2 over any groups: the zeros are a union of groups.

    Jenatton, Audibert & Bach, JMLR 2011. The prox is w - sum_g u_g, where the u_g, supported on their groups, minimise
    |w - sum_g u_g|^2 subject to |u_g| <= step alpha weight_g: by an interior-point method, to 1e-10 |w| by the duality
    gap, or as close as rounding lets it come where many groups are just about to vanish.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, at least 0.
    groups : sequence of sequences of int
        Indices of each group. A feature in no group is not penalised.
    weights : sequence of float, optional
        One for each group, at least 0; by default the square root of its size.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.penalties import OverlappingGroups
    >>> OverlappingGroups(1.0, [[0, 1], [1, 2]], [0.5, 2.0]).prox(np.array([3.0, 1.0, -1.0]), 1.0).tolist()
    [2.5, 0.0, 0.0]
    """

    @cached_property
    def _layout(self) -> tuple[Layout, Array, Array] | None:
        """Groups that are penalised, neighbours close together, their weights, and their features; None if none are."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        pairs = [(group, weight) for group, weight in self._pairs if weight > 0]
        if not pairs:
            return None
        p = 1 + max(group[-1] for group, _ in pairs)
        apart = lay_out([group for group, _ in pairs], p)
        member = csr_array((np.ones(len(apart.indices)), apart.indices, apart.first), shape=(len(pairs), p))
        order = reverse_cuthill_mckee((member @ member.T).tocsr(), symmetric_mode=True)
        layout = lay_out([pairs[g][0] for g in order], p)
        return layout, np.array([pairs[g][1] for g in order]), np.unique(layout.indices)

    def prox(self, w: Array, step: Step) -> Array:
        """Return the minimiser, to 1e-10 |w|."""
        W = self._columns(w)
        if self._layout is not None:
            layout, weights, covered = self._layout  # features that are not penalised stay as they are
            padded = np.zeros(len(layout.starts) - 1)
            steps = np.broadcast_to(np.asarray(self.alpha * step, dtype=np.float64), W.shape[1:])
            with np.errstate(over="ignore"):
                bounds = np.multiply.outer(steps, weights)
            for column, each in zip(W.T, bounds):
                padded[covered] = column[covered]
                column[covered] = interior.solve(layout, padded, each)[0][covered]
        return W.reshape(np.shape(w))
