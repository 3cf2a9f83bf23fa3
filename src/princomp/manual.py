"""`spca` and `normalize`: the functions of the A-ManPG manual, with its argument names, defaults and returned keys.

They are for those who know that manual; `SparsePCA(formulation="regression")` is the estimator. Where its text and
its meaning differ the meaning is done: columns, not rows, are centred and scaled; a covariance is used as it is; the
step sizes are at most 1 / L; ``x`` is the orthonormal factor A, and scores are ``z @ loadings``.

Manifold proximal steps are taken by turns, as there. H is linear in A, so that the step for A may go all the way, to
polar(S B); those for B have momentum; where signs and zeros have settled Newton steps go on, since a turn of A and B
together changes F by very little (`princomp.solvers.regression`). A turn may also lead to a lower minimum: on data of
up to some hundred columns turns of the singular vectors are starts, too (`princomp.solvers.regression_starts`); on
larger ones, unless columns are many times the rows, turns of the answer are tried. A given start is the only one there.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse

from princomp._threads import single_blas_thread
from princomp._typing import Array
from princomp.result import State, Value, run
from princomp.solvers import amanpg, regression
from princomp.solvers.scatter import Matrix, Scatter, of_array
from princomp.solvers.signs import signs

STANDSTILL = 1e-12  # a change of F that ends the iteration whatever f_palm says
# F is above its minimum by about this times the squared residual, relatively: so much flatter are valleys than slopes.
FLAT = 1e3
# A tol of more than this share of F is met within a few steps as they are published; momentum, rotations of the start
# and Newton steps would lead far below it.
COARSE = 1e-4


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
    x = _matrix(x, "x").copy()
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
        Where A and B start; by default the k leading right singular vectors, and, if all weights are the same, turns
        of them.
    k : int, default 0
        Number of components; 0 for min(n - 1, p).
    gamma : float, default 0.5
        By what a step that leads too high is multiplied, between 0 and 1.
    type : int, default 0
        0: z holds data. Else z is a covariance matrix.
    maxiter : int, default 1e4
        Bound on iterations; each is up to a hundred proximal steps, or some Newton steps.
    tol : float, default 1e-5
        Stop when F changes by less; with a tol of more than about 1e-4 of F an iteration is a step as published.
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
    (-4.88, (500, 4))
    >>> infinite = spca(a, lambda1, np.inf, k=4)
    >>> round(infinite["f_manpg"], 1)
    -17.4
    """
    begin = time.perf_counter()
    _check_numbers(lambda2, gamma, maxiter, tol, f_palm)
    scatter, count, p = _scatter(z, covariance=bool(type), normalise=normalize)
    k = _count(k, count, p)
    alpha, ridge = _weights(lambda1, k), float(lambda2)
    given = _given(x0, p, k, "x0"), _given(y0, p, k, "y0")
    with single_blas_thread():  # many small products
        value, size = _start(scatter, alpha, ridge, given)
        coarse = tol > COARSE * size
        steps = amanpg.sparse_pca if coarse else regression.block
        descend = partial(steps, scatter, alpha=alpha, ridge=ridge, gamma=gamma)
        turned = None if coarse else partial(regression.turned, scatter, alpha=alpha, ridge=ridge)
        solver = partial(_lowest, descend, turned, f_palm=f_palm, tol=tol, verbose=verbose)
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


def _check_numbers(lambda2: Any, gamma: Any, maxiter: Any, tol: Any, f_palm: Any) -> None:
    """Complain about numbers that have no meaning."""
    if not lambda2 >= 0:
        raise ValueError(f"lambda2 must be at least 0, or np.inf, got {lambda2}.")
    if not 0 < gamma < 1:
        raise ValueError(f"gamma must lie between 0 and 1, since it shortens steps that lead too high; got {gamma}.")
    if not 1 <= maxiter < np.inf:
        raise ValueError(f"maxiter must be at least 1, and finite: without a step there is no answer; got {maxiter}.")
    if not tol >= 0:
        raise ValueError(f"tol must be at least 0, got {tol}.")
    if np.isnan(f_palm):
        raise ValueError("f_palm is NaN. Give the value that F must be below, or leave it out.")


def _matrix(x: Any, name: str) -> Array:
    """Return a matrix of finite numbers, in double precision."""
    if scipy.sparse.issparse(x):
        raise TypeError(
            f"{name} is a sparse matrix, and this function takes arrays. Give {name}.toarray(), if there is room for "
            'it, or fit SparsePCA(formulation="regression"), which takes sparse matrices as they are.'
        )
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got {x.ndim} dimension(s).")
    return x


def _scatter(z: Any, *, covariance: bool, normalise: bool) -> tuple[Scatter, int, int]:
    """Return S, the default number of components, and p."""
    z = _matrix(z, "z")
    if not np.isfinite(z).all():
        raise ValueError("z contains NaN or infinite values. Drop or fill those rows first.")
    n, p = z.shape
    if not covariance:
        if n < 2:
            raise ValueError(f"z has {n} row(s), of which nothing varies. Give samples as rows, at least two of them.")
        return of_array(normalize(z) if normalise else z), max(min(n - 1, p), 1), p
    if n != p or not np.allclose(z, z.T):
        raise ValueError(f"z must be symmetric, got shape {z.shape}. Use type=0 for data.")
    return Matrix(z), p, p


def _count(k: Any, default: int, p: int) -> int:
    if not isinstance(k, Integral) or not 0 <= int(k) <= p:
        raise ValueError(
            f"k must be a whole number from 1 to the number of columns, {p}, or 0 for all components; got {k}."
        )
    return int(k) or default


def _weights(lambda1: Any, k: int) -> Array:
    alpha = np.ravel(np.asarray(lambda1, dtype=np.float64))
    if len(alpha) not in (1, k) or not (np.isfinite(alpha).all() and alpha.min() >= 0):
        raise ValueError(f"lambda1 must hold one number, or one for each of the {k} components, of at least 0.")
    return np.broadcast_to(alpha, (k,)).copy()


def _given(start: Any, p: int, k: int, name: str) -> Array | None:
    if start is None:
        return None
    start = np.array(start, dtype=np.float64)
    if start.shape != (p, k):
        raise ValueError(f"{name} must have shape {(p, k)}, a column for each component, got {start.shape}.")
    if not np.isfinite(start).all():
        raise ValueError(f"{name} contains NaN or infinite values. Leave it out to start at the singular vectors.")
    return start


def _start(
    scatter: Scatter, alpha: Array, ridge: float, given: tuple[Array | None, Array | None]
) -> tuple[Value, float]:
    """Return the value before the first step, and how large F may become."""
    rng = np.random.default_rng(0)
    values, V = scatter.leading(len(alpha), rng)
    V = V * signs(V)  # so that what is turned at random is the same everywhere
    size = float((values ** (2 if np.isinf(ridge) else 1)).sum())
    if given[0] is None and given[1] is None:
        return regression.start(scatter, len(alpha), alpha=alpha, ridge=ridge, rng=rng, leading=(values, V)), size
    A, B = (V if one is None else one for one in given)
    return regression.begin_at(scatter, regression.polar(A, V), B, max(float(values[0]), 0.0)), size


def _lowest(
    descend: Callable[[Value], Iterator[State]],
    turned: Callable[..., Value] | None,
    value: Value,
    *,
    f_palm: float,
    tol: float,
    verbose: bool,
) -> Iterator[State]:
    """Yield the best states of a descent, and of others from where the answer is ``turned``, with the change of F."""
    best, iteration = State(value, np.inf, np.inf, 0), 0
    rivals = int(value["rivals"]) if turned and "rivals" in value else 0
    value = {**value, "rivals": np.array(0)}
    for left in reversed(range(rivals + 1)):
        before = np.inf
        for state in descend(value):
            change, finishing = abs(state.objective - before), bool(value.get("settled", True))
            before, value, iteration = state.objective, state.value, iteration + 1
            best = state if before < best.objective else best
            if verbose:
                print(f"iteration {iteration}: F = {before:.10g}, change {change:.1e}")  # noqa: T201
            near = change < tol or FLAT * state.residual**2 * abs(before) < tol
            # Before Newton steps are made, a small change says little.
            done = finishing and (change < STANDSTILL or (near and before < f_palm))
            yield State(best.value, best.objective, min(change, tol) if done and not left else np.inf, iteration)
            if done:
                break
        if left and turned:
            value = turned(best.value, seed=left - 1)
