"""Low rank plus sparse: what `method="pcp"` and `method="outlier-pursuit"` share."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from princomp._typing import Array
from princomp.certificates.pursuit import pursuit_gap
from princomp.estimators.robust.problem import RobustFound, RobustProblem
from princomp.result import Result, State, Status, Value, measured, warn
from princomp.solvers.krylov import orthonormal
from princomp.solvers.robust.pursuit import Parts, Rows, dual_point, low_rank, pursuit, start
from princomp.solvers.signs import signs

ROUNDS = 4  # of steps and a measurement: a second one is rare, further ones only come of rounding


@dataclass(frozen=True)
class Pair:
    """L = left @ right and S, and how they were found; of data whose rows and columns have some cell each."""

    left: Array  # (n, r)
    right: Array  # (r, p), orthonormal rows
    S: Array  # (n, p)
    result: Result


def decomposed(problem: RobustProblem, parts: Parts, alpha: float) -> Pair:
    """Return the pair of least cost, with its gap; where that is above what the solver says of itself, it goes on."""
    value: Value = start(parts, int(problem.rng.integers(2**31)))
    before, factor = None, 1.0
    for _ in range(ROUNDS):
        steps = partial(_steps, parts, alpha=alpha, tol=problem.tol, factor=factor)
        result = problem.drive(steps, value, scope="global", warns=False).after(before)
        pair = _pair(parts, result, alpha)
        said, found = result.certificate.residual, pair.result.certificate.residual
        if not result.status or found <= problem.tol or not said or result.n_iter >= problem.max_iter:
            break
        value, before, factor = result.value, result, factor * found / said
    return told(pair)


def _steps(parts: Parts, value: Value, *, alpha: float, tol: float, factor: float) -> Iterator[State]:
    """Yield the states of `pursuit`, whose residuals are thought to be ``factor`` times what it says."""
    for state in pursuit(parts, value, alpha=alpha, tol=tol / factor):
        yield replace(state, residual=factor * state.residual)


def _pair(parts: Parts, result: Result, alpha: float) -> Pair:
    """Return what the last state holds, with the gap that its dual point proves."""
    S = parts.split(result.value["M"], alpha / float(result.value["mu"]))[1]
    return judged(parts, low_rank(result.value), S, dual_point(parts, result.value, alpha), alpha, result)


def judged(parts: Parts, L: tuple[Array, Array], S: Array, Y: Array, alpha: float, result: Result) -> Pair:
    """Return the pair with the gap that Y (n, p) proves, and S as all that L leaves of the cells where it is not 0.

    So L + S is X on these, and S costs no more than X - L, to which the gap refers.
    """
    X = parts.X
    S = _remainder(parts, L, S != 0, result.certificate.tol)
    gap = pursuit_gap(X, L, S, Y, alpha=alpha, rows=isinstance(parts, Rows))
    norms = np.linalg.norm(L[0], axis=0)
    value = {"U": L[0] / np.where(norms > 0, norms, 1.0), "values": norms, "V": L[1].T.copy()}
    objective = float(norms.sum()) + alpha * parts.penalty(S)
    certificate = replace(result.certificate, residual=gap.residual, details=gap.details())
    return Pair(*L, S, replace(result, value=value, objective=objective, certificate=certificate))


def _remainder(parts: Parts, L: tuple[Array, Array], bad: Array, tol: float) -> Array:
    """Return X - L on the cells that are bad, but for those that leave less than some good one: these are not.

    L = 0 has no error that good cells could show: all of X is left.
    """
    seen = ~np.isnan(parts.X)
    R = np.where(seen, parts.X - L[0] @ L[1], 0.0)
    if not len(L[1]):
        return R
    sizes = parts.sizes(R)
    larger = bad & (sizes > np.where(bad, 0.0, sizes).max(initial=0.0))
    near = np.linalg.norm(R[~larger]) <= tol * np.linalg.norm(parts.X[seen])
    return np.where(larger if near else bad, R, 0.0)


def told(pair: Pair) -> Pair:
    """Return the pair with a status that says what was measured of it, after a warning where that is too much."""
    early, certificate = pair.result.status, pair.result.certificate
    result = measured(pair.result, certificate.residual, certificate.details)
    if early.code != "converged":
        if certificate.holds:
            result = replace(result, status=Status("converged", f"Converged: {certificate}"))
        else:
            warn(early, certificate.tol)
    return replace(pair, result=result)


def found(problem: RobustProblem, pair: Pair, alpha: float) -> RobustFound:
    """Return components of L: its directions of largest variance, and further ones without any, if asked for more."""
    (n, _), seen = problem.rows.shape, ~np.isnan(problem.X).all(axis=1)
    rank, mean = len(pair.right), pair.left[seen].mean(axis=0)
    # On the factors, which are n x r and r x p. Rows without a cell are nowhere.
    _, values, turn = np.linalg.svd(np.where(seen[:, None], pair.left - mean, 0.0), full_matrices=False)
    variances = values**2 / max(int(seen.sum()) - 1, 1)
    variances[variances <= (n * np.finfo(np.float64).eps) ** 2 * variances.max(initial=0.0)] = 0.0
    k = max(rank, 1) if problem.asked is None else problem.count(variances)
    V, variances = _completed(pair.right.T @ turn.T, variances, k)
    return RobustFound(
        V=V * signs(V),
        variances=variances[:k],
        total=float(variances.sum()),
        mean=mean @ pair.right,
        scale=None,
        result=_in_units(pair.result, problem.unit),
        rank=rank,
        in_units={"low_rank_": pair.left @ pair.right, "sparse_": pair.S},
        more={"alpha_": alpha},
    )


def _completed(V: Array, variances: Array, k: int) -> tuple[Array, Array]:
    """Return the first k directions, those that are missing at right angles to all others, and all variances."""
    missing = k - V.shape[1]
    if missing <= 0:
        return V[:, :k], variances
    others = orthonormal(np.random.default_rng(0).standard_normal((len(V), missing)), V)
    return np.hstack([V, others]), np.append(variances, np.zeros(missing))


def _in_units(result: Result, unit: float) -> Result:
    """Return the result in the units of the user, of which ``unit`` times as many are those of the problem."""
    details = {**result.certificate.details}
    details |= {name: details[name] / unit for name in ("primal", "dual")}
    return replace(
        result,
        value={**result.value, "values": result.value["values"] / unit},
        objective=result.objective / unit,
        certificate=replace(result.certificate, details=details),
    )
