"""Sparse PCA with a bound on the l1 norm (Jolliffe, Trendafilov & Uddin, JCGS 2003; Witten et al., Biostatistics 2009).

Objective: maximise v'Sv over C = {|v|_2 = 1, |v|_1 <= bound}, one component at a time, S deflated by those before
(`deflation`). Since v'Sv is convex it lies above its linearisation at v, so that the maximiser over C of z'(Sv) has at
least the objective of v. That maximiser is the soft threshold of Sv, normalised; with u = Xv/|Xv| it is PMD's pair of
steps, v <- soft(X'u, delta) / |soft(X'u, delta)|. The deflation "projection" makes it PMD, "schur" PMD with orthogonal
u's: that of a component is its score X v less the parts in the scores before, of unit length.

Steps are lengthened, z'(Sv + push (Sv - Sv_before)), as long as that leads higher. Several starts run side by side:
the leading eigenvector of the deflated S, and the columns that its pivoted Cholesky decomposition would take first.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from princomp._typing import Array
from princomp.certificates.constrained import maximiser
from princomp.result import State, Value
from princomp.solvers import one_by_one
from princomp.solvers.deflation import Deflated
from princomp.solvers.leading import leading_roughly
from princomp.solvers.scatter import Scatter

STEPS = 5  # per state: a single one takes a fraction of a millisecond
EXPLORE = 60  # steps after which only the best start goes on
MAX_STEPS = 2000  # after which a component is left where it is, so that the next can be found
# Four components of 80 x 40, 200 x 100 and 40 x 120 took 47 states: 94 without a push, 54 with 2 to begin with, as many
# with 1 or 200 at the most; with 10 steps for EXPLORE one ended lower, with 300 none ended higher.
PUSH, MAX_PUSH = 0.5, 16.0
HEIGHT_ROUNDING = 8 * np.finfo(np.float64).eps  # of v'Sv, relatively: a plain step that loses less has not lost
NOTHING = 1e-13  # of the variance of the largest column: less is rounding, nothing is left to find
# The leading eigenvector need not be found to more than this residual (0.1 and 1e-8 lead to as many states), nor with
# more than so many products.
START_RESIDUAL, START_PRODUCTS = 1e-4, 12


def start(p: int) -> Value:
    """Return the value before the first step."""
    return one_by_one.start(p, _forget(p))


def _forget(p: int) -> dict[str, Array]:
    """Return the state of a component that has not begun."""
    empty = np.zeros((p, 0))
    return {
        "V": empty,  # where each start stands
        "images": empty,  # S V
        "before": empty,  # S V of the step before
        "next": empty,  # maximisers of the linearisations at V
        "push": np.zeros(0),
        "still": np.zeros(0, dtype=bool),  # no step leads higher, in the digits that there are
        "steps": np.array(0),
    }


def components(value: Value, k: int) -> Array:
    """Return the components, (p, k); those that are not begun, or for which nothing was left, are zero."""
    return one_by_one.components(value, k, value["V"][:, _best(value)] if value["V"].shape[1] else None)


def constrained(
    scatter: Scatter, value: Value, *, bounds: Array, tol: float, deflation: str = "schur", starts: int = 4
) -> Iterator[State]:
    """Return an iterator of states that ascend, component after component (`one_by_one`).

    ``bounds`` (k,) are those on the l1 norms, from 1 (one variable) to sqrt(p) (no bound); ``starts`` columns are
    begun at, beside the leading eigenvector. A component is done when its residual, |v+ - v|, is within ``tol``, v+
    being the maximiser of z'(Sv) over C: 0 means that no small step within C leads higher. That of a state is the
    largest, infinite until the best start of the last component is alone.
    """

    def step(A: Deflated, value: Value) -> tuple[Value, float, float]:
        value, component = dict(value), value["found"].shape[1]
        bound = float(bounds[component])

        def apply(V: Array) -> Array:
            return A.apply(V) + A.shift * V

        if value["V"].shape[1] == 0:
            begin = _starts(A, bound, starts, component)
            m, images = begin.shape[1], apply(begin)
            value |= {"V": begin, "images": images, "before": images, "next": _maximisers(images, bound)}
            value |= {"push": np.full(m, PUSH), "still": np.zeros(m, dtype=bool)}
        done = False
        for _ in range(STEPS):
            value |= _step(apply, value, bound)
            keep, done = _keep(value, tol)
            value |= {name: value[name][..., keep] for name in ("V", "images", "before", "next", "push", "still")}
            if done:
                break
        best = _best(value)
        v, residual = value["V"][:, best], float(_residuals(value)[best])
        variance = float(v @ value["images"][:, best]) - A.shift * float(v @ v)
        if done:
            return one_by_one.finished(A, value, v, variance, residual, _forget(len(v))), variance, residual
        return value, variance, residual if value["V"].shape[1] == 1 else np.inf

    return one_by_one.one_by_one(scatter, value, step, k=len(bounds), deflation=deflation)


def _starts(A: Deflated, bound: float, count: int, component: int) -> Array:
    """Return feasible starting points, (p, m); a single zero one if nothing is left."""
    p, negligible = A.scatter.features, NOTHING * float(A.scatter.diagonal.max())
    if A.diagonal.max() <= negligible:
        return np.zeros((p, 1))
    _, lead = leading_roughly(A.apply, p, 1, np.random.default_rng(component), tol=START_RESIDUAL, most=START_PRODUCTS)
    columns, pivots = [maximiser(lead[:, 0], bound)], replace(A, kind="schur")
    for _ in range(min(count, p)):
        if pivots.diagonal.max() <= negligible:
            break
        axis = np.zeros(p)
        axis[int(np.argmax(pivots.diagonal))] = 1.0
        columns.append(axis)
        pivots = pivots.without(axis)
    return np.column_stack(columns)


def _maximisers(images: Array, bound: float) -> Array:
    return np.column_stack([maximiser(image, bound) for image in images.T])


def _step(apply: Callable[[Array], Array], value: Value, bound: float) -> dict[str, Array]:
    """Return the state after a step of each point: the long one where it leads higher, else the plain one, or none."""
    V, images, push = value["V"], value["images"], value["push"]
    heights = _heights(V, images)
    points = _maximisers(images + push * (images - value["before"]), bound)
    reached = apply(points)
    short = _heights(points, reached) < heights
    if short.any():
        points[:, short] = value["next"][:, short]
        reached[:, short] = apply(points[:, short])
    # The plain step never leads down, but for rounding, which must not end the ascent.
    still = _heights(points, reached) < (1 - HEIGHT_ROUNDING) * heights
    points[:, still], reached[:, still] = V[:, still], images[:, still]
    return {
        "V": points,
        "images": reached,
        "before": images,
        "next": _maximisers(reached, bound),
        "push": np.where(short, PUSH, np.minimum(2 * push, MAX_PUSH)),
        "still": still,
        "steps": value["steps"] + 1,
    }


def _heights(V: Array, images: Array) -> Array:
    return np.einsum("ij,ij->j", V, images)


def _best(value: Value) -> int:
    return int(np.argmax(_heights(value["V"], value["images"])))


def _residuals(value: Value) -> Array:
    return np.linalg.norm(value["next"] - value["V"], axis=0)


def _keep(value: Value, tol: float) -> tuple[Array, bool]:
    """Return the points that go on, and whether the best one is done: alone, and within tol or unable to move."""
    settled = (_residuals(value) <= tol) | value["still"]
    keep = ~settled if value["steps"] < EXPLORE else np.zeros(len(settled), dtype=bool)
    best = _best(value)
    keep[best] = True
    return keep, bool(keep.sum() == 1 and (settled[best] or value["steps"] >= MAX_STEPS))
