"""`spca` and `normalize`: the functions of the A-ManPG manual, with its argument names, defaults and returned keys.

They are for those who know that manual; `SparsePCA(formulation="regression")` is the estimator. Where its text and
its meaning differ the meaning is done: columns, not rows, are centred and scaled; a covariance is used as it is; the
step sizes are at most 1 / L; ``x`` is the orthonormal factor A, and scores are ``z @ loadings``.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from princomp._threads import single_blas_thread
from princomp._typing import Array
from princomp.result import State, Value, run
from princomp.solvers import amanpg, regression
from princomp.solvers.scatter import Matrix, Scatter, of_array

STANDSTILL = 1e-12  # a change of F that ends the iteration whatever f_palm says


def normalize(x: Any, center: bool = True, scale: bool = True) -> Array:
    """Return the matrix with columns centred and scaled to Euclidean length 1.

    Parameters
    ----------
    x : (n, p) array-like
        Data; it is not changed.
    center : bool, default True
        Subtract the mean of each column.
    scale : bool, default True
        Divide each column by its Euclidean length; a column of zeros stays as it is.

    Returns
    -------
    (n, p) array

    Examples
    --------
    >>> from princomp.manual import normalize
    >>> normalize([[1.0, 5.0], [4.0, 5.0], [1.0, 5.0]]).round(3).tolist()
    [[-0.408, 0.0], [0.816, 0.0], [-0.408, 0.0]]
    """
    x = np.array(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"x must be a matrix, got {x.ndim} dimension(s).")
    if center:
        x -= x.mean(axis=0)
    if scale:
        length = np.linalg.norm(x, axis=0)
        x /= np.where(length > 0, length, 1.0)
    return x


def spca(
    z: Any,
    lambda1: Any,
    lambda2: float,
    x0: Any = None,
    y0: Any = None,
    k: int = 0,
    gamma: float = 0.5,
    type: int = 0,
    maxiter: float = 1e4,
    tol: float = 1e-5,
    f_palm: float = 1e5,
    normalize: bool = True,
    verbose: bool = False,
) -> dict[str, Any]:
    """Sparse principal components by the alternating manifold proximal gradient method.

    It minimises, over A (p, k) with A'A = I and B (p, k), S = z'z or z itself if it is a covariance,
    tr(B'SB) - 2 tr(A'SB) + lambda2 |B|^2 + sum_j lambda1_j |B_j|_1.

    Parameters
    ----------
    z : (n, p) or (p, p) array-like
        Data, or a covariance matrix (``type=1``); it is not changed.
    lambda1 : float or k floats
        Weight of the l1 norm of each component.
    lambda2 : float
        Weight of the squared norm; ``np.inf`` for the limit, in which tr(B'SB) + lambda2 |B|^2 becomes |B|^2.
    x0, y0 : (p, k) array-like, optional
        Where A and B start; by default the k leading right singular vectors.
    k : int, default 0
        Number of components; 0 for min(n - 1, p).
    gamma : float, default 0.5
        By what a step that leads too high is multiplied.
    type : int, default 0
        0: z holds data. Else z is a covariance matrix.
    maxiter : int, default 1e4
        Bound on iterations.
    tol : float, default 1e-5
        Stop when F changes by less.
    f_palm : float, default 1e5
        F must be below this before the iteration may stop.
    normalize : bool, default True
        Centre the columns of data and scale them to Euclidean length 1. A covariance is left alone.
    verbose : bool, default False
        Print F after each iteration.

    Returns
    -------
    dict
        "loadings" (p, k), unit columns of B; "f_manpg", F; "x", A; "iter"; "sparsity", the share of loadings that are
        zero; "time" in seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from princomp.manual import spca
    >>> k, d, m = 4, 500, 1000
    >>> lambda1 = 0.1 * np.ones((k, 1))
    >>> a = np.random.RandomState(10).normal(0, 1, size=(m, d))
    >>> finite = spca(a, lambda1, 1, k=k)
    >>> round(finite["f_manpg"], 2), finite["loadings"].shape
    (-4.83, (500, 4))
    >>> infinite = spca(a, lambda1, np.inf, k=4)
    >>> round(infinite["f_manpg"], 1)
    -17.4
    """
    begin = time.perf_counter()
    scatter, count, p = _scatter(z, covariance=bool(type), normalise=normalize)
    k = k or count
    if not 0 < k <= p:
        raise ValueError(f"k must be between 1 and the number of columns, {p}, got {k}.")
    alpha = _weights(lambda1, k)
    if not lambda2 >= 0:
        raise ValueError(f"lambda2 must be at least 0, got {lambda2}.")
    value = _start(scatter, k, x0, y0, p)
    solver = partial(amanpg.sparse_pca, scatter, alpha=alpha, ridge=float(lambda2), gamma=gamma)
    solver = partial(_by_change, solver, f_palm=f_palm, tol=tol, verbose=verbose)
    with single_blas_thread():  # many small products
        found = run(solver, value, tol=tol, max_iter=int(maxiter))
    A, B = found.value["A"], found.value["B"]
    length = np.linalg.norm(B, axis=0)
    return {
        "loadings": B / np.where(length > 0, length, 1.0),
        "f_manpg": found.objective,
        "x": A,
        "iter": found.n_iter,
        "sparsity": float(np.mean(B == 0)),
        "time": time.perf_counter() - begin,
    }


def _scatter(z: Any, *, covariance: bool, normalise: bool) -> tuple[Scatter, int, int]:
    """Return S, the default number of components, and p."""
    z = np.asarray(z, dtype=np.float64)
    if z.ndim != 2:
        raise ValueError(f"z must be a matrix, got {z.ndim} dimension(s).")
    if not np.isfinite(z).all():
        raise ValueError("z contains NaN or infinite values. Drop or fill those rows first.")
    n, p = z.shape
    if not covariance:
        return of_array(normalize(z) if normalise else z), max(min(n - 1, p), 1), p
    if n != p or not np.allclose(z, z.T):
        raise ValueError(f"z must be symmetric, got shape {z.shape}. Use type=0 for data.")
    return Matrix(z), p, p


def _weights(lambda1: Any, k: int) -> Array:
    alpha = np.ravel(np.asarray(lambda1, dtype=np.float64))
    if len(alpha) not in (1, k) or not (np.isfinite(alpha).all() and alpha.min() >= 0):
        raise ValueError(f"lambda1 must hold one number, or one for each of the {k} components, of at least 0.")
    return np.broadcast_to(alpha, (k,)).copy()


def _start(scatter: Scatter, k: int, x0: Any, y0: Any, p: int) -> Value:
    values, V = scatter.leading(k, np.random.default_rng(0))
    given = []
    for name, start in (("x0", x0), ("y0", y0)):
        start = V if start is None else np.array(start, dtype=np.float64)
        if start.shape != (p, k):
            raise ValueError(f"{name} must have shape {(p, k)}, got {start.shape}.")
        given.append(start)
    return regression.begin_at(scatter, regression.polar(given[0], V), given[1], max(float(values[0]), 0.0))


def _by_change(
    solver: Callable[[Value], Iterator[State]], value: Value, *, f_palm: float, tol: float, verbose: bool
) -> Iterator[State]:
    """Yield the solver's states with the change of F as residual."""
    before = np.inf
    for state in solver(value):
        change = abs(state.objective - before)
        before = state.objective
        if verbose:
            print(f"iteration {state.iteration}: F = {before:.10g}, change {change:.1e}")  # noqa: T201
        done = change < STANDSTILL or (change < tol and before < f_palm)
        yield State(state.value, state.objective, min(change, tol) if done else np.inf, state.iteration)
