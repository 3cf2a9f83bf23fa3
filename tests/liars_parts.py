"""What the judges of the liars' bench share (tests/liars.py): limits, how data are given, what a certificate states."""

import numpy as np
import scipy.sparse

from helpers import shards

# --- what counts as right -------------------------------------------------------------------------

ORTHONORMAL = 1e-8  # largest entry of |V'V - I|
VARIANCE = 1e-5  # relative error of each variance
LEFT_OUT_LIMIT = 0.10  # the most that may be stated as possibly left out, relative to the last kept
MISS_LIMIT = 1e-3  # the largest probability of a miss that may be stated
FLOOR_LIMIT = 1e-12  # the largest floor that may be stated, relative to the leading variance: 4500 eps of float64
FLOOR_LIMIT_FLOAT32_MATRIX = 1e-4  # of a covariance that is given in float32: a thousand of its eps


def matched(spectrum, stated, floor, left_out, margin):
    """The true variance of each component (k,): the largest in their order.

    Where the certificate states that something may be left out, a true value between the last kept and that size may
    be passed over, and the component is compared with the next one.
    """
    spectrum, at, true = np.r_[spectrum, np.zeros(len(stated))], 0, []
    optional = stated[-1] * (1 + left_out) if left_out > 0 else -np.inf
    for value, its_floor in zip(stated, floor):
        while 0 < spectrum[at] <= optional and value < spectrum[at] - margin(spectrum[at], its_floor):
            at += 1
        true.append(spectrum[min(at, len(spectrum) - 1)])
        at = min(at + 1, len(spectrum) - 1)
    return np.array(true)


def statements(pca, k):
    """What the certificate states: the floor of each variance (k,), what may be left out, the probability of a miss."""
    details = pca.certificate_.details
    floor = np.broadcast_to(np.asarray(details.get("floor", 0.0), dtype=float), (k,))
    return floor, float(details.get("left out", 0.0)), float(details.get("miss", 0.0))


def worst(found, values):
    relative = np.abs(found - values) / np.where(values > 0, values, 1)
    j = int(np.argmax(relative))
    return f"{relative[j]:.1e} (component {j + 1} of {len(values)})"


# --- how a table is given -------------------------------------------------------------------------

FORMS = {  # name: what is given to fit, of the dense table
    "array": lambda X, rng: X,
    "columns": lambda X, rng: np.asfortranarray(X),
    "float32": lambda X, rng: X,  # the table itself is rounded first
    "csr": lambda X, rng: scipy.sparse.csr_array(X),
    "shards": lambda X, rng: shards(X, sizes=(1, 3, 50, 500)),
    "dask": lambda X, rng: as_dask(X, int(rng.integers(1, 4))),
}
FORM_SHARES = {"array": 0.52, "columns": 0.05, "float32": 0.18, "csr": 0.1, "shards": 0.1, "dask": 0.05}


def as_dask(X, blocks):
    import dask.array  # an optional part: the other forms do without

    dask.config.set(scheduler="synchronous")
    return dask.array.from_array(X, chunks=(-(-len(X) // blocks), -1))


def drawn(rng, shares):
    return str(rng.choice(list(shares), p=list(shares.values())))
