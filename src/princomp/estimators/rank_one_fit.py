"""What a fit of `RankOneDictionary` does around the solver: which products, atoms from their weights, measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from princomp._typing import Array
from princomp._warn import warn as warn_user
from princomp.certificates.rank_one import Measured, pair_residuals
from princomp.data import Centered, Rows, budget
from princomp.data.centered import GRAM_ROWS
from princomp.data.signature import ones_and_weights, require_unchanged
from princomp.estimators.standardise import Standardised, as_given, standardise
from princomp.result import Result, Status, Value, warn
from princomp.solvers import rank_one
from princomp.solvers.rank_one import Pairs, largest
from princomp.solvers.scatter import MATRIX_SIDE, Guarded, Matrix, Passes, Scatter
from princomp.solvers.signs import signs

# X'X is made where that takes less time than products with X. A pair takes some 30 steps, each of which reads X once;
# X'X takes as many multiplications as p/2 of them, but those of matrices are some ten times as fast.
STEPS_OF_PAIR = 30
FASTER = 10
SINGLE_TOTAL = (1e-30, 1e30)  # squares of X between which products in single precision neither overflow nor vanish
# Shares of |X|^2 |z|^2 below which |Xz|^2 is known to too few digits: by X'X, whose rounding is that of squares; and in
# single precision, where sums of many products of either sign lose less than the worst that could be.
COARSE_SQUARES = 1e-8
COARSE_SINGLE = 1e-7
IN_DOUBLE, IN_SINGLE = 1e-13, 1e-6  # of squares, relative to |X|^2: to how much they are known
LOST = 64 * float(np.finfo(np.float64).eps)  # of |X|^2, where what is left is a difference
MEAN_SHARE = 0.95  # of the squares, from which on the user is told that the mean rules
COPIES = 6  # of V, W and H, at a time, with a step under way


@dataclass(frozen=True)
class Found:
    """What was found, in the units and the precision of the user."""

    standard: Standardised
    U: Array  # (n, k)
    V: Array  # (k, p)
    shares: Array  # (k,)
    left: float
    result: Result


def find_pairs(
    rows: Rows,
    counts: Array,
    drive: Callable[..., Result],
    rng: np.random.Generator,
    *,
    share: float,
    sweeps: int,
    starts: int,
    nonnegative: bool,
    tol: float,
    max_iter: int,
    begin: Array | None,
    center: bool,
    scale: bool,
    names: Any,
) -> Found:
    """Return pairs, measured on the data: a pass before the steps, and two after them."""
    (n, p), k = rows.shape, len(counts)
    budget.require(8.0 * p * COPIES * (k if share == 1 else 1), f"{k} pairs of {p} features", "Take fewer pairs.")
    steps = min(k, n) * (STEPS_OF_PAIR + sweeps)
    square = p <= min(n, MATRIX_SIDE, 2 * FASTER * steps)
    standard = standardise(rows, center=center, scale=scale, scatter=square, names=names)
    quick, rounding = products(standard, rows)
    asked = Pairs(counts, standard.total, tol, max_iter, starts, nonnegative, share, sweeps, rounding)
    first = rank_one.start(p, int(rng.integers(2**31)), None if begin is None else begin * standard.unit)
    solver = partial(rank_one.rank_one, quick, asked=asked)
    result = drive(solver, first, max_iter=k * (max_iter + sweeps) + 1, warns=False)
    U, V = answer(standard.X, result.value, counts, nonnegative=nonnegative, alone=not sweeps)
    return concluded(standard, rows, asked, result, U, V, names)


def products(standard: Standardised, rows: Rows) -> tuple[Scatter, float]:
    """Return X'X as steps see it, made already, or by passes, in single precision if the data are; and its rounding."""
    X, total = standard.X, standard.total
    exact = Passes(X)
    if standard.scatter is not None:
        return Guarded(Matrix(standard.scatter), exact, total, COARSE_SQUARES), IN_DOUBLE
    if rows.dtype == np.float32 and SINGLE_TOTAL[0] < total < SINGLE_TOTAL[1]:
        return Guarded(Passes(X.in_single()), exact, total, COARSE_SINGLE), IN_SINGLE
    return exact, IN_DOUBLE


# After the solver


def answer(X: Centered, value: Value, counts: Array, *, nonnegative: bool, alone: bool) -> tuple[Array, Array]:
    """Return U (n, k), of length 1, and V (k, p): a last v-step of each pair for these U, in double precision."""
    V, W = rank_one.pairs(value)
    parts, XU = X.reduce(_atoms_and_back, W.T, combine=_merge, tile_rows=GRAM_ROWS)
    U = np.concatenate(parts)
    lengths = np.linalg.norm(U, axis=0)
    one = np.where(lengths > 0, lengths, 1.0)
    U, XU = U / one, XU / one
    of_u = U.T @ U
    np.fill_diagonal(of_u, 0.0)
    if alone:
        of_u = np.triu(of_u)
        V = np.zeros_like(V)  # those after it take nothing away
    for j in np.flatnonzero(lengths > 0):
        V[j] = largest((XU[:, j] - of_u[:, j] @ V)[None], int(counts[j]), nonnegative=nonnegative)[0]
    U[:, ~V.any(axis=1)] = 0.0
    sign = np.ones(len(V)) if nonnegative else signs(V.T)
    return U * sign + 0.0, V * sign[:, None] + 0.0  # without -0


def _atoms_and_back(block: Any, rows: slice, W: Array) -> tuple[list[Array], Array]:
    U = np.asarray(block @ W)
    return [U], np.asarray(block.T @ U)


def _measure(block: Any, rows: slice, V: Array, U: Array) -> tuple[list[Array], Array, Array, Array, Array]:
    """Return XV', X'U, sums by column and what the data are known by, squares by column, and |X - UV|^2, of a block."""
    some, XV = U[rows], np.asarray(block @ V.T)
    if isinstance(block, np.ndarray):
        apart, squares = block - some @ V, np.einsum("ij,ij->j", block, block)
        left = np.vdot(apart, apart)
    else:  # without making it dense
        squares = block.square_sums()
        left = max(squares.sum() - 2 * np.vdot(some, XV) + np.vdot(some.T @ some, V @ V.T), 0.0)
    return [XV], np.asarray(block.T @ some), ones_and_weights(rows) @ block, squares, np.asarray(left)


def _merge(total: Any, part: Any) -> Any:
    return total[0] + part[0], *(one + other for one, other in zip(total[1:], part[1:]))


def concluded(
    standard: Standardised, rows: Rows, asked: Pairs, result: Result, U: Array, V: Array, names: Any
) -> Found:
    """Return the answer as it is handed out, measured on the data once more, and what that means."""
    unit, dtype = standard.unit, rows.dtype
    with np.errstate(over="ignore", under="ignore"):
        U, given = U.astype(dtype), (V / unit).astype(dtype)
    wide, V = U.astype(np.float64), given.astype(np.float64) * unit
    parts, XU, sums, squares, left = standard.X.reduce(_measure, V, wide, combine=_merge, tile_rows=GRAM_ROWS)
    require_unchanged(standard.signature, sums[1], names)
    error = LOST * standard.total if rows.sparse and not standard.X.dense_tiles else 0.0
    found = Measured(np.concatenate(parts), XU, squares, float(left), error)
    how = {"nonnegative": asked.nonnegative, "alone": not result.value["sweeps"]}
    residuals = pair_residuals(found, wide, V, asked.counts, **how, tol=asked.tol, eps=float(np.finfo(dtype).eps))
    certificate = replace(
        result.certificate,
        residual=float(residuals.each.max()),
        tol=asked.tol,
        details={"u": float(residuals.directions.max()), "v": float(residuals.loadings.max())},
    )
    status = _status(result.status, asked, residuals.each, certificate.holds, int(result.value["sweeps"]))
    _warn_of(status, asked, V)
    if float(sums[0] @ sums[0]) / len(U) > MEAN_SHARE * standard.total > 0:
        warn_user(
            "Nearly all squares of X are those of the means of its columns, and pairs will be of these: center=True "
            "takes them away."
        )
    squares = np.einsum("ij,ij->i", V, V)
    result = replace(
        result,
        value={"U": U, "V": given},
        objective=float(as_given(found.left, unit)),
        certificate=certificate,
        status=status,
    )
    total = standard.total or 1.0
    return Found(standard, U, given, squares / total, found.left / total, result)


def _status(before: Status, asked: Pairs, residuals: Array, holds: bool, sweeps: int) -> Status:
    most = float(residuals.max())
    size = f"no pair would move by more than {most:.1e}"
    if before.cut_short:
        return before
    if holds:
        return Status("converged", f"Converged: {size}, within tol {asked.tol:.0e}.")
    if asked.tol == 0:
        steps = f"max_iter={asked.max_iter} steps for each pair, or as many as moved it"
        return Status("iteration limit", f"Made {steps}, as tol=0 asks: {size}.")
    if sweeps and before.code != "converged":
        return Status("iteration limit", f"Ended after {sweeps} sweeps, as asked: {size}.")
    accept = f"accept this accuracy with tol={2 * most:.0e}"
    if before.code == "converged":
        return Status(
            "no progress",
            f"Steps ended within tol {asked.tol:.0e}, but a pair would still move by {most:.1e}: rounding, as a rule. "
            f"Take center=True or double precision, or {accept}.",
        )
    far = np.flatnonzero(residuals > asked.tol)
    which = f"pair {far[0] + 1}" + (f" and {len(far) - 1} more" if len(far) > 1 else "")
    return Status(
        "iteration limit",
        f"Not converged after max_iter={asked.max_iter} steps of a pair: {which} would still move, by "
        f"{most:.1e} at most, above tol {asked.tol:.0e}. Raise max_iter, or {accept}.",
    )


def _warn_of(status: Status, asked: Pairs, V: Array) -> None:
    empty = int((~V.any(axis=1)).sum())
    held = len(V) - empty
    if empty and not held:
        warn_user("X is zero everywhere, and so are all pairs.")
    elif empty:
        warn_user(
            f"Nothing is left of X after {held} pair{'s' if held != 1 else ''}: the other{'s' if empty > 1 else ''} "
            f"{'are' if empty > 1 else 'is'} zero. Ask for fewer with n_components={held}."
        )
    if not status and not (asked.sweeps and status.code == "iteration limit"):
        warn(status, asked.tol)
