"""The liars' bench: hard problems, and judges that ask whether an answer that says it is right, is right.

    python tests/liars.py --seed 123 --fits 500 [--family NAME] [--verbose]

prints a table by family and the liars, each to be had again by ``liars.problem(family, seed)``. The rule is *holds
implies right*. What is right is found here by LAPACK, by a slow likelihood or by trying all supports, from the data as
they are stored, and never by princomp, of which nothing is used but the public classes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from helpers import centered_longdouble

# --- what counts as an ordinary problem -----------------------------------------------------------
# Fixed before anything was mended. Of ordinary problems 99 in 100 must hold; of the others none must, but those that
# do must be right.

ORDINARY_SCALES = (1e-3, 1e3)  # standard deviations of columns; of one column, the ID, they may be anything
ORDINARY_OFFSET = 1e6  # |mean| / standard deviation of a column, for float64: ten digits of the spread are stored
ORDINARY_OFFSET_FLOAT32 = 1e3  # four digits
EXACT_TIE = 1e-12  # two variances closer than this, relatively, are tied as far as float64 can tell
ORDINARY_SHARE = 0.99  # of the ordinary problems that hold


def ordinary_table(X, spectrum, k):
    """Whether PCA of X (n, p; dense) to k components is a problem as people have them.

    Column scales within 10^-3..10^3, but for one ID column; constant columns have no scale and are allowed. Offsets
    that leave digits to the data. No exact ties among the variances kept, nor of the last kept with the first left out.
    And k at most the numerical rank, sigma_k > max(n, p) eps sigma_1, so that each component is one of the data.
    """
    deviations = np.asarray(np.std(X, axis=0, dtype=float))
    offsets = np.abs(np.mean(X, axis=0, dtype=float))
    varies = deviations > 4 * np.finfo(X.dtype).eps * offsets
    odd = (deviations < ORDINARY_SCALES[0]) | (deviations > ORDINARY_SCALES[1])
    limit = ORDINARY_OFFSET_FLOAT32 if X.dtype == np.float32 else ORDINARY_OFFSET
    far = offsets > limit * deviations
    return bool(
        np.count_nonzero(odd & varies) <= 1
        and not np.any(far & varies)
        and well_posed(spectrum, k, max(X.shape) * np.finfo(float).eps)
    )


def ordinary_matrix(S, spectrum, k):
    """The same for a given covariance: its diagonal holds the squared scales, and its rank is to the digits it has."""
    deviations = np.sqrt(np.maximum(np.diagonal(S).astype(float), 0))
    odd = (deviations < ORDINARY_SCALES[0]) | (deviations > ORDINARY_SCALES[1])
    digits = np.sqrt(len(S) * np.finfo(S.dtype).eps)  # of singular values: variances are their squares
    return bool(np.count_nonzero(odd & (deviations > 0)) <= 1 and well_posed(spectrum, k, digits))


def well_posed(spectrum, k, digits):
    """No exact ties among the first k + 1 values, and the k-th singular value above ``digits`` of the first."""
    values = spectrum[: k + 1]
    tied = np.any(values[:-1] - values[1:] <= EXACT_TIE * values[:-1])
    return not tied and spectrum[k - 1] > digits**2 * spectrum[0]


def ordinary_gaps(X, k):
    """Whether probabilistic PCA of X (n, p; NaN = missing) to k components is a problem as people have them.

    Scales as above. Under half of the cells are missing; every two columns are seen together, in at least 5 (k + 1)
    rows, so that their covariance is in the data; and there are twice as many cells as the scores and W take, k for
    each row and (k + 1) p, so that there is noise to tell from signal.
    """
    seen = np.isfinite(X)
    deviations = np.nanstd(X, axis=0)
    together = seen.T.astype(int) @ seen
    odd = (deviations < ORDINARY_SCALES[0]) | (deviations > ORDINARY_SCALES[1])
    parameters = k * len(X) + (k + 1) * X.shape[1]
    return bool(seen.mean() > 0.5 and together.min() >= 5 * (k + 1) and not odd.any() and seen.sum() > 2 * parameters)


# --- what counts as right -------------------------------------------------------------------------

ORTHONORMAL = 1e-8  # largest entry of |V'V - I|
VARIANCE = 1e-5  # relative error of each variance
LEFT_OUT_LIMIT = 0.10  # the most that may be stated as possibly left out, relative to the last kept
MISS_LIMIT = 1e-3  # the largest probability of a miss that may be stated
FLOOR_LIMIT = 1e-10  # the largest floor that may be stated, relative to the leading variance; sums are in float64
FLOOR_LIMIT_FLOAT32_MATRIX = 1e-4  # of a covariance that is given in float32: a thousand of its eps


def gain_allowed(cells, tol=1e-6):
    """Nats by which a local maximum of the likelihood of so many cells may be missed.

    ``tol`` bounds the gain that is left for each observed cell. It is an estimate, so ten times as much is let pass.
    """
    return 10 * tol * cells + 1e-4


@dataclass
class Table:
    """A table and what PCA is asked of it; the truth about it by LAPACK, found once."""

    X: np.ndarray  # (n, p), dense, as stored; or with matrix=True a covariance (p, p)
    k: int
    center: bool = True
    scale: bool = False
    matrix: bool = False

    @cached_property
    def rows(self):
        """C (m, p), C'C = (n - 1) S: the stored values, centred in long double and only then rounded to float64."""
        if not self.center:
            C = self.X.astype(np.longdouble)
        else:
            C = centered_longdouble(self.X)
        if self.scale:
            about_mean = centered_longdouble(self.X)
            C = C / np.sqrt(np.einsum("ij,ij->j", about_mean, about_mean) / (len(C) - 1))
        return C.astype(float)

    @cached_property
    def spectrum(self):
        """All variances, decreasing, (min(n, p),)."""
        if self.matrix:
            return np.maximum(np.linalg.eigvalsh(self.X.astype(float))[::-1], 0)
        return np.linalg.svd(self.rows, compute_uv=False) ** 2 / (len(self.rows) - 1)

    @cached_property
    def is_ordinary(self):
        return (ordinary_matrix if self.matrix else ordinary_table)(self.X, self.spectrum, self.k)

    @cached_property
    def total(self):
        if self.matrix:
            return float(np.trace(self.X.astype(float)))
        return float(np.sum(self.rows**2) / (len(self.rows) - 1))

    def doubt(self, variances):
        """What LAPACK itself does not know of these variances, (k,).

        Its singular values are those of a matrix within some eps sigma_1 of C, sigma +- d, so that variances are known
        to 2 sigma d + d^2; of a covariance its eigenvalues, to some eps lambda_1. Nothing finer is held against anyone.
        """
        eps = 4 * np.sqrt(min(self.X.shape)) * np.finfo(float).eps
        if self.matrix:
            return np.full(len(variances), eps * self.spectrum[0])
        distance = eps * np.sqrt(self.spectrum[0])
        return 2 * np.sqrt(np.abs(variances)) * distance + distance**2

    def along(self, V):
        """The variances of the data along the columns of V (p, k)."""
        if self.matrix:
            return np.einsum("ij,ij->j", V, self.X.astype(float) @ V)
        return np.sum((self.rows @ V) ** 2, axis=0) / (len(self.rows) - 1)

    def largest_across(self, V):
        """The largest variance of the data in the directions orthogonal to all columns of V."""
        Q = np.linalg.qr(V)[0]
        if self.matrix:
            S = self.X.astype(float)
            S = S - Q @ (Q.T @ S)
            return float(np.linalg.eigvalsh(S - (S @ Q) @ Q.T)[-1])
        D = self.rows - (self.rows @ Q) @ Q.T
        D -= (D @ Q) @ Q.T  # what rounding left along Q, eps of the leading value, may be more than all the rest
        size = np.abs(D).max(initial=0.0) or 1.0
        D /= size
        gram = D.T @ D if D.shape[0] >= D.shape[1] else D @ D.T
        return float(np.linalg.eigvalsh(gram)[-1] * size**2 / (len(D) - 1))


def faults(table, pca):
    """What is wrong with a fitted PCA, as sentences; none if it is right.

    Components are kept in the dtype of the data, and so rounded by u = eps / 2 relatively in each entry, after the
    certificate: 2^-24 in float32. That moves an inner product of two unit rows by 2 u at most, so that 1e-8 + 2 u
    (1.3e-7 in float32) is asked of V'V - I; a variance by u; and it turns the kept directions by u out of the stored
    span, so that u^2 times the sum of variances of what was kept appears among what was left out.
    """
    V, stated = np.asarray(pca.components_, dtype=float).T, np.asarray(pca.explained_variance_, dtype=float)
    if V.shape != (table.X.shape[1], table.k) or stated.shape != (table.k,):
        return [f"{V.shape[1]} components and {len(stated)} variances, not {table.k}"]
    if not (np.all(np.isfinite(V)) and np.all(np.isfinite(stated))):
        return ["components or variances that are not finite"]
    u = np.finfo(pca.components_.dtype).eps / 2
    kept = np.zeros(table.k)
    kept[: len(table.spectrum)] = table.spectrum[: table.k]
    turned = u**2 * kept.sum()
    floor, left_out, miss = statements(pca, table.k)
    error = np.abs(V.T @ V - np.eye(table.k)).max()
    doubt = table.doubt(kept) + turned
    known = np.maximum((VARIANCE + u) * kept, floor) + doubt
    across, last = table.largest_across(V), stated[-1]
    beyond = across - last * (1 + left_out) - (VARIANCE + u) * kept[-1] - floor[-1]
    limit = (FLOOR_LIMIT_FLOAT32_MATRIX if table.matrix and table.X.dtype == np.float32 else FLOOR_LIMIT) * kept[0]
    ratio = np.asarray(pca.explained_variance_ratio_, dtype=float) * table.total
    trials = {
        f"V'V - I has {error:.1e}": error > ORTHONORMAL + 2 * u,
        f"variances off by {_worst(stated - kept, kept)}": np.any(np.abs(stated - kept) > known),
        f"variances along components off by {_worst(table.along(V) - kept, kept)}": np.any(
            np.abs(table.along(V) - kept) > known
        ),
        f"ratios off by {_worst(ratio - kept, kept)}": np.any(np.abs(ratio - kept) > known),
        f"left out is {across:.3g}, the last kept {last:.3g}": beyond > table.doubt([max(across, last)])[0] + turned,
        f"a floor of {floor.max():.1e} is stated, the leading value is {kept[0]:.1e}": not np.all(floor <= limit),
        f"{left_out:.0%} may be left out with probability {miss:.1e}": not (
            0 <= left_out <= LEFT_OUT_LIMIT and 0 <= miss <= MISS_LIMIT
        ),
    }
    return [sentence for sentence, wrong in trials.items() if wrong]


def statements(pca, k):
    """What the certificate states: the floor of each variance (k,), what may be left out, the probability of a miss."""
    details = pca.certificate_.details
    floor = np.broadcast_to(np.asarray(details.get("floor", 0.0), dtype=float), (k,))
    return floor, float(details.get("left out", 0.0)), float(details.get("miss", 0.0))


def _worst(errors, values):
    relative = np.abs(errors) / np.where(values > 0, values, 1)
    j = int(np.argmax(relative))
    return f"{relative[j]:.1e} (component {j + 1} of {len(values)})"
