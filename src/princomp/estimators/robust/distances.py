"""How far rows lie from the centre within the span of the components, and from that span; and what is too far."""

import numpy as np
from scipy.stats import chi2

from princomp._typing import Array
from princomp.estimators.robust.scores import robust_scores

USUAL = 0.975  # the share of good rows that each limit leaves within


def distances(block: Array, rows: slice, V: Array, deviation: Array, noise: Array | None, robust: bool) -> Array:
    """Return score and orthogonal distance (n, 2) of centred and scaled rows."""
    scores = robust_scores(block, rows, V, noise) if robust else block @ V
    left = block - scores @ V.T
    there = ~np.isnan(left)
    share = there.mean(axis=1)
    od = np.sqrt(np.where(there, left, 0.0) ** 2 @ np.ones(len(V)) / np.where(share > 0, share, 1.0))
    flat = deviation <= np.finfo(float).eps * deviation.max(initial=0.0)
    sd = np.sqrt(((scores / np.where(flat, np.inf, deviation)) ** 2).sum(axis=1))
    return np.column_stack([sd, od])


def score_limit(k: int) -> float:
    """Return what score distances of good rows are within."""
    return float(np.sqrt(chi2.ppf(USUAL, k)))


def orthogonal_limit(od: Array) -> float:
    """Return what orthogonal distances of good rows are within: their power 2/3 is nearly normal."""
    root = od ** (2 / 3)
    middle = np.median(root)
    return float((middle + 1.96 * 1.4826 * np.median(np.abs(root - middle))) ** 1.5)
