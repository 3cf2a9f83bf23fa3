"""cellPCA: a plane that bad cells, bad rows and missing cells do not bend (Centofanti, Hubert & Rousseeuw, 2024).

Objective: minimise over a centre m (p,), orthonormal V (p, k) and scores Z (n, k) a bounded loss of rows, of bounded
losses of their cells (arXiv 2408.13596; `princomp.certificates.cellwise` has it in full):

    F = sum_i n_i s^2 rho2(t_i / s),   t_i^2 = 1/n_i sum_j s_j^2 rho1((x_ij - m_j - z_i'v_j) / s_j).

A step is one of iteratively reweighted least squares: with the weights of the point, m and V by columns, then Z by
rows. F never grows by it. Steps are extrapolated (`princomp.solvers.extrapolation`); a point that lowers nothing is
given up for the plain step.

A value holds "point", the best one, and "plain", the step from there, both (n k + p k + p,): Z, V and m one after the
other; "next", the point to look at; "points" and "images", the last points and their steps; "objective", "residual" and
"iteration". V is orthonormal in "plain", about orthonormal in points that were extrapolated.
"""

from collections.abc import Iterator

import numpy as np

from princomp._typing import Array
from princomp.certificates.cellwise import CellwisePoint, CellwiseProblem, residual, weighted_steps
from princomp.result import State, Value
from princomp.solvers.extrapolation import anderson, remember

# Steps of scores, for one of directions. Of 1, 2, 3 and 5 all converged, on the wine data and 12 planted tables of 8 to
# 300 columns: 1 took 0.6 to 9 times the iterations of 3. In time, starts included, 1 and 2 took 0.8 to 1.2 times, and 5
# 1 to 1.6 times, what 3 took.
ROWS_STEPS = 3
SHORTER, LONGER = 0.25, 2.0  # of the way to an extrapolated point, after one that was not lower, and one that was
ROUNDING = 1e-14  # of the objective: a change that is no more is none


def packed(mean: Array, V: Array, Z: Array) -> Array:
    """Return the parts of a point one after the other."""
    return np.concatenate([Z.ravel(), V.ravel(), mean])


def parts(point: Array, n: int, p: int) -> tuple[Array, Array, Array]:
    """Return m (p,), V (p, k) and Z (n, k) of a point."""
    k = (len(point) - p) // (n + p)
    return point[(n + p) * k :], point[n * k : (n + p) * k].reshape(p, k), point[: n * k].reshape(n, k)


def start(point: Array) -> Value:
    """Return the value before the first step, which looks at the point."""
    return {
        "point": point,
        "plain": point,
        "next": point,
        "points": np.zeros((0, len(point))),
        "images": np.zeros((0, len(point))),
        "reach": np.array(1.0),
        "objective": np.array(np.inf),
        "residual": np.array(np.inf),
        "iteration": np.array(0),
    }


def cellwise(problem: CellwiseProblem, value: Value) -> Iterator[State]:
    """Yield states of falling objective that converge to a point where it has no slope."""
    n, p = problem.X.shape
    while True:
        at, iteration = value["next"], int(value["iteration"]) + 1
        mean, V, Z = parts(at, n, p)
        found = problem.at(mean, V, Z)
        (*following, of_columns) = step(problem, found, mean, V, Z)
        _, of_rows = weighted_steps(V, found.cells, found.R)
        slope = residual(found, float(found.rows @ of_rows + of_columns.sum()))
        plainly, lower = np.array_equal(at, value["plain"]), _is_lower(value, found.value, slope)
        if lower:
            value = _accepted(value, at, packed(*following), _metric(p, V, Z))
            value |= {"objective": np.array(found.value), "residual": np.array(slope)}
        else:  # the plain step, and from there not as far
            value = {**value, "next": value["plain"], "reach": np.array(value["reach"] * SHORTER)}
        value = {**value, "iteration": np.array(iteration)}
        yield State(value, float(value["objective"]), float(value["residual"]), iteration)
        if (not lower and plainly) or float(value["residual"]) == 0:
            return


def _is_lower(value: Value, objective: float, slope: float) -> bool:
    """Tell whether a point is better: by the objective, or, where rounding is all that differs, by the slope."""
    before = float(value["objective"])
    if not np.isfinite(before):
        return True
    change = objective - before
    known = ROUNDING * before
    return change < -known or (change <= known and slope < float(value["residual"]))


def _metric(p: int, V: Array, Z: Array) -> Array:
    """Return what moves are multiplied by: those of V and m move cells in proportion to the lengths of scores."""
    lengths = np.broadcast_to(np.linalg.norm(Z, axis=0), V.shape)
    return packed(np.full(p, np.sqrt(len(Z))), lengths, np.ones_like(Z))


def _accepted(value: Value, at: Array, plain: Array, metric: Array) -> dict[str, Array]:
    points, images = remember(value["points"], at), remember(value["images"], plain)
    beyond = anderson(points, images, metric)
    # As far as the last extrapolations were good for; on from one that was lower, farther again.
    farther = LONGER if not np.array_equal(at, value["plain"]) else 1.0
    reach = np.array(min(float(value["reach"]) * farther, 1.0))
    following = plain if beyond is None else plain + reach * (beyond - plain)
    memory = {"points": points, "images": images, "reach": reach}
    return {**value, "point": at, "plain": plain, "next": following, **memory}


def step(
    problem: CellwiseProblem, found: CellwisePoint, mean: Array, V: Array, Z: Array
) -> tuple[Array, Array, Array, Array]:
    """Return centre, directions and scores after a step of reweighted least squares, and what columns lost by it.

    What was found at the point is given.
    """
    ones = np.ones((len(Z), 1))
    moves, gains = weighted_steps(np.hstack([Z, ones]), found.weights.T, found.R.T)
    mean, V = mean + moves[:, -1], V + moves[:, :-1]
    for _ in range(ROWS_STEPS):
        R = problem.remainder(mean, V, Z)
        Z = Z + weighted_steps(V, problem.of_cells.weights(R / problem.scales) * problem.there, R)[0]
    return mean, *orthonormal_form(V, Z), gains


def orthonormal_form(V: Array, Z: Array) -> tuple[Array, Array]:
    """Return the orthonormal matrix nearest to V, and scores of the same fit: from step to step V does not turn."""
    left, lengths, right = np.linalg.svd(V, full_matrices=False)
    return left @ right, Z @ ((right.T * lengths) @ right)
