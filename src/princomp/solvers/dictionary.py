"""Sparse PCA in dictionary form, by block coordinate descent and then limited-memory BFGS on the codes.

Objective, over Y (n, k) and D (p, k), the centred X being (n, p):

    1/2 |X - Y D'|^2 + sum_j alpha_j |D_j|_1,    |Y_j| <= radius

or another penalty on the columns of D; with a penalty on Y instead, the ball is D's; with both, there is none. It is
the objective of scikit-learn's SparsePCA. Reference for the block steps: Mairal, Bach, Ponce & Sapiro, JMLR 11:19-60,
2010. Each lowers the objective, but slowly: turning Y one way and D the other hardly changes the fit. The best D for
given Y is cheap, and the objective it leaves, as a function of Y, has the gradient Y D'D - X D (variable projection,
Golub & Pereyra, SIAM J. Numer. Anal. 1973). A live column lies on its sphere, since a longer Y_j and a shorter D_j fit
as well and cost less: the second phase is descent over a product of spheres, without constraints.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.dictionary_blocks import Terms, on_spheres
from princomp.solvers.limited_memory import direction, useful
from princomp.solvers.scatter import Factored

# Block sweeps before the second phase: long steps from the start may lead to poorer minima. (On 80 x 40 to 200 x 100,
# and on noise, 10 or 20 led to the same ones, in half of the steps or less.)
SWEEPS = 100
# Pairs that limited-memory BFGS remembers, unless they would take more than so many bytes.
MEMORY = 5  # with 2 and 20 as many steps were taken there, as with 3 and 30 TRIES, and 0.1 and 1e-4 for INNER
MEMORY_BYTES = 2**27
TRIES = 10  # lengths of a step before a block sweep is made instead
SUFFICIENT = 1e-4  # share of the decrease that the slope promises
OBJECTIVE_ROUNDING = 4 * np.finfo(np.float64).eps  # of the objective, relative to |X|^2
RELEASE = 10  # steps after which codes that are held at zero may leave it: 50 took twice as many (80 x 40 to 200 x 100)
INNER = 1e-2  # accuracy of D for given Y, relative to the residual
REVIVAL = 1e-6  # margin, relative, by which a dead column must be worth reviving
# Steps that take less time than it takes to look at the residual are made several at a time: four fits there took 245
# of them, 237 one by one, which is no faster, and 280 by 20.
STEPS = 5
SMALL = 5e6  # multiplications in a product
EXCHANGED = {"Y": "D", "D": "Y", "XtY": "XD", "XD": "XtY"}


def dictionary(X: Factored, value: Value, *, terms: Terms) -> Iterator[State]:
    """Yield states that descend to a stationary point.

    ``X`` is the centred data, or any R with R'R = X'X, if ``terms.smooth``: Y carries nothing but the ball. A value has
    "Y" (n, k), "D" (p, k), and their products "XtY", "XD". The objective never rises, but for rounding; ``residual`` is
    the larger one of `certificates.dictionary_kkt`. A column of D that is zero could not be made to pay.
    """
    if terms.swapped:
        for state in dictionary(X.T, transposed(value), terms=terms.swap()):
            yield replace(state, value=transposed(state.value))
        return
    steps = STEPS if X.shape[0] * X.shape[1] * value["D"].shape[1] <= SMALL else 1
    here = dict(value)
    while True:
        for _ in range(steps):
            here = _step(X, here, terms)
        residual = terms.residual(here["XtY"], here["XD"], here["Y"], here["D"])
        here = here | {"residual": np.array(residual), "iteration": here["iteration"] + steps}
        yield State(here, float(here["objective"]), residual, int(here["iteration"]))


def _step(X: Factored, value: Value, terms: Terms) -> dict[str, Array]:
    sweeps = int(value["sweeps"])
    if sweeps > 0 or (not terms.smooth and sweeps % RELEASE == 0):
        moved = _block_step(X, value, terms)
    else:
        moved = _newton_step(X, value, terms) or _block_step(X, value, terms) | {"pairs": np.array(0)}
    return moved | {"sweeps": np.array(sweeps - 1)}


def transposed(value: Value) -> Value:
    """Return the value for X', in which Y and D change places."""
    return {EXCHANGED.get(name, name): array for name, array in value.items()}


def _objective(X: Factored, P: Array, Q: Array, Y: Array, D: Array, terms: Terms) -> float:
    """Return the objective from P = X'Y and Q = Y'Y."""
    fit = X.total - 2.0 * float(np.vdot(P, D)) + float(np.vdot(Q, D.T @ D))
    return max(0.5 * fit, 0.0) + terms.cost(Y, D)


def _point(X: Factored, P: Array, Y: Array, D: Array, terms: Terms, objective: float) -> dict[str, Array]:
    """Return what a value holds of Y and D, with zero columns of D revived where that pays."""
    if not D.any(axis=0).all() and terms.code_alpha is None:
        P, Y, D = _revived(X, P, Y, D, terms)
        objective = _objective(X, P, Y.T @ Y, Y, D, terms)
    T = X.times(D)
    gradient = terms.gradient(T, D.T @ D, Y)
    return {"Y": Y, "D": D, "XtY": P, "XD": T, "gradient": gradient, "objective": np.array(objective)}


def _accuracy(value: Value) -> float:
    return INNER * min(float(value["residual"]), 1.0)


def _block_step(X: Factored, value: Value, terms: Terms) -> dict[str, Array]:
    """Return the value after a step in Y and one in D."""
    Q, accuracy = value["D"].T @ value["D"], _accuracy(value)
    Y, D = terms.balanced(terms.codes(value["XD"], Q, value["Y"], accuracy), value["D"])
    P, Q = X.transpose_times(Y), Y.T @ Y
    D = terms.loadings(P, Q, D, accuracy)
    return dict(value) | _point(X, P, Y, D, terms, _objective(X, P, Q, Y, D, terms))


def _newton_step(X: Factored, value: Value, terms: Terms) -> dict[str, Array] | None:
    """Return the value after a step of limited-memory BFGS in Y, with the best D; None if none leads lower."""
    Y, D, gradient = value["Y"], value["D"], value["gradient"]
    count, capacity = int(value["pairs"]), min(MEMORY, max(2, MEMORY_BYTES // (2 * Y.nbytes)))
    slots = [i % capacity for i in range(max(0, count - capacity), count)]
    curvature = np.einsum("ij,ij->j", D, D)
    scale = np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > 0)
    towards = direction(gradient, [(value[f"step{i}"], value[f"change{i}"]) for i in slots], scale)
    slope = float(np.vdot(gradient, towards))
    highest = float(value["objective"]) + OBJECTIVE_ROUNDING * X.total
    length = 1.0
    for _ in range(TRIES if slope < 0 else 0):
        new = terms.retract(Y + length * towards, Y)
        P, Q = X.transpose_times(new), new.T @ new
        best = terms.loadings(P, Q, D, _accuracy(value))
        objective = _objective(X, P, Q, new, best, terms)
        if objective <= highest + SUFFICIENT * length * slope:
            break
        # The minimiser of the parabola through what is known, within reason.
        excess = objective - float(value["objective"]) - slope * length
        length *= float(np.clip(-0.5 * slope * length / excess, 0.1, 0.5))
    else:
        return None
    moved = dict(value) | _point(X, P, new, best, terms, objective)
    step, change = moved["Y"] - Y, moved["gradient"] - gradient
    if useful(step, change):
        slot = count % capacity
        moved |= {f"step{slot}": step, f"change{slot}": change, "pairs": value["pairs"] + 1}
    return moved


def _revived(X: Factored, P: Array, Y: Array, D: Array, terms: Terms) -> tuple[Array, Array, Array]:
    """Return P = X'Y, Y, D with each zero column of D begun anew at the feature that is fitted worst, if that pays.

    With the residual R of X, column j can lower the objective iff radius |R_i| > alpha_j for some feature i.
    """
    P, Y, D = P.copy(), Y.copy(), D.copy()
    negligible = REVIVAL * np.sqrt(X.total)
    for j in np.flatnonzero(~D.any(axis=0)):
        left = X.diagonal - 2.0 * np.einsum("ij,ij->i", P, D) + np.einsum("ij,ij->i", D @ (Y.T @ Y), D)
        worst = int(np.argmax(left))
        if terms.radius * np.sqrt(max(left[worst], 0.0)) <= (1 + REVIVAL) * terms.alpha[j] + terms.radius * negligible:
            continue
        axis = np.zeros((len(D), 1))
        axis[worst] = 1.0
        y = X.times(axis)[:, 0] - Y @ D[worst]
        if terms.nonnegative_codes:
            y = np.maximum(y, 0.0)
        y = on_spheres(y[:, None], terms.radius)
        images = X.transpose_times(y)
        slopes = images - D @ (Y.T @ y)
        d = replace(terms, alpha=terms.alpha[j : j + 1]).loadings(slopes, y.T @ y, np.zeros_like(slopes), 0.0)
        if not d.any():
            break
        P[:, j], Y[:, j], D[:, j] = images[:, 0], y[:, 0], d[:, 0]
    return P, Y, D
