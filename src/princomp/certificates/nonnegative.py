"""The best component without negative loadings, for few features: exactly, and a bound."""

import numpy as np

from princomp._typing import Array

EXACT_NONNEGATIVE = 16  # features of a support up to which the best nonnegative vector is searched for exhaustively


def nonnegative_value(S: Array) -> tuple[float, Array]:
    """Return the largest v'Sv over nonnegative unit vectors, and such a vector, by exhaustion.

    The best vector is, on the features it uses, a leading eigenvector there. So either the leading eigenvector of S
    has one sign, or some feature is not used: all subsets are tried, but those whose `nonnegative_bound` is too small.

    Parameters
    ----------
    S : (m, m) array
        Symmetric; m up to about sixteen.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.certificates import nonnegative_value
    >>> value, v = nonnegative_value(np.array([[2.0, -1.0], [-1.0, 1.0]]))
    >>> value, v.tolist()
    (2.0, [1.0, 0.0])
    """
    m = len(S)
    first = int(np.argmax(S.diagonal()))
    best, vector = float(S[first, first]), np.eye(m)[first]
    todo, seen = [tuple(range(m))], set()
    while todo:
        here = todo.pop()
        if here in seen or not here:
            continue
        seen.add(here)
        block = S[np.ix_(here, here)]
        if nonnegative_bound(block) <= best:
            continue
        values, vectors = np.linalg.eigh(block)
        v = vectors[:, -1] * np.sign(vectors[np.argmax(np.abs(vectors[:, -1])), -1])
        if (v >= 0).all() and values[-1] > best:
            best, vector = float(values[-1]), np.zeros(m)
            vector[list(here)] = v
        else:
            todo += [here[:i] + here[i + 1 :] for i in np.argsort(-v)]  # the most negative one is dropped first
    return best, vector


def nonnegative_bound(S: Array) -> float:
    """Return a bound on v'Sv for nonnegative unit vectors: negative covariances can only lower it."""
    raised = np.maximum(S, 0.0)
    np.fill_diagonal(raised, S.diagonal())
    return min(float(np.linalg.eigvalsh(S)[-1]), float(np.linalg.eigvalsh(raised)[-1]))
