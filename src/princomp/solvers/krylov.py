"""Randomised block Krylov iteration (Musco & Musco, NeurIPS 2015) as block Lanczos with thick restarts.

Objective: maximise tr(V' S V) over orthonormal V (p, k), S = X'X, using only products with S. References: block
Lanczos, Golub & Underwood 1977; thick restart, Wu & Simon, SIAM J. Matrix Anal. Appl. 2000. With the basis B, its
images satisfy S B = B T + Q C E', Q orthonormal to B and E the last columns; a Ritz pair (t, B y) of T therefore has
the residual |S B y - t B y| = |C y_last|, known without another product, and some eigenvalue lies that close to t.
The iteration stops on that estimate: rounding does not keep the recurrence. What was found is to be measured anew, and
if it falls short, `again` takes it up, with products that are known and what else was found.

Values far below the leading one drown in its rounding. So each attempt holds components to their own value only down to
a share of the leading one (GRADE), and those that are found for good are locked: the rest is looked for in what they
leave.
"""

from collections.abc import Callable, Iterator

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.eigh import leading_eigenpairs

Apply = Callable[[Array], Array]

# Few vectors per product waste memory traffic, many waste the polynomial degree on which convergence rests: eight are
# best for k from 5 to 50 (2000 x 5000, 5000 x 2000, dense and sparse). With many more components there would be many
# steps, each of which takes its block out of all those before.
BLOCK = 8
COMPONENTS = 64  # to a block of eight, of dense data
# With p above this many times n the basis lives among rows, not columns: it is that much smaller.
WIDE = 8
# The small eigenproblem is solved again when the basis has grown by this share, or twice it at the most when the end is
# in sight: at each step it would cost more than the products. (Six fits, 60 x 2000 to 1500 x 800, took 118 products:
# 131 with 0.5; with 0.05 as many, in a sixth more time.)
GROWTH = 0.15
# Basis size from which to orthogonalise in single precision, where products are in single precision too.
MANY = 300
# Basis size at which to restart, unless k asks for more.
BASIS_COLUMNS = 1000
BASIS_BYTES = 2**30
PATIENCE = 8  # products between two looks, at the most: a callback should not wait for long
# Single precision is left when its residual is this, relative to a component's own value, and to the leading one (2e-7
# and 5e-6 took four products more there).
ROUGH = 8e-7
GRADE = 1e-4  # of the leading value: smaller ones are held to this much of it
UNEVEN = 1e-4  # of an image that is left by the basis: with less, rounding has taken its orthogonality
# What is worth it, and what single precision can square.
ROUGH_CELLS = 1e6
ROUGH_SQUARES = (1e-20, 1e20)
ROUGH_MEAN = 30.0  # of the average eigenvalue


def block_size(k: int, side: int, *, sparse: bool = False) -> int:
    """Return how many vectors to multiply at a time for k eigenvectors of a matrix of this side."""
    return min(BLOCK if sparse else BLOCK * -(-k // COMPONENTS), side)


def again(
    vectors: Array,
    locked: Array,
    known: tuple[Array, Array] | None = None,
    *,
    least: float = 0.0,
    extra: int = 0,
    iteration: int = 0,
    rough: bool = False,
) -> Value:
    """Return a value that multiplies these vectors first, from a basis whose products are known, if any, on.

    ``known`` are V (side, m) and their values, S V being V diag(values) but for what is among the vectors. ``locked``
    (side, q) are found for good, ``least`` is what an eigenvalue must be to be told from rounding, and ``extra``
    eigenpairs are to be found beyond those asked for.
    """
    V, values = (locked[:, :0], np.zeros(0)) if known is None else known
    begin = _begin(orthonormal(vectors, np.hstack([locked, V])), rough, iteration)
    begin |= {"basis": V, "projected": np.diag(values), "locked": locked}
    return begin | {"least": np.array(least), "extra": np.array(extra)}


def may_begin_roughly(n: int, p: int, total: float, taken_off: float = 0.0) -> bool:
    """Tell whether single precision can make a beginning for data (n, p) of this sum of squares.

    ``taken_off`` is the sum of squares of a mean that products take off only afterwards, with their rounding.
    """
    whole = n * p >= ROUGH_CELLS and ROUGH_SQUARES[0] < total / n < ROUGH_SQUARES[1]
    return whole and taken_off * min(n, p) <= ROUGH_MEAN * total


def start(side: int, k: int, rng: np.random.Generator, *, rough: bool = False, sparse: bool = False) -> Value:
    """Return the value before the first step: an empty basis and a random block; ``rough`` to begin roughly."""
    return _begin(rng.standard_normal((side, block_size(k, side, sparse=sparse))), rough, 0)


def _begin(vectors: Array, rough: bool, iteration: int) -> dict[str, Array]:
    return {
        "locked": np.zeros((len(vectors), 0)),
        "least": np.array(0.0),
        "extra": np.array(0),
        "basis": np.zeros((len(vectors), 0)),
        "recent": np.zeros((len(vectors), 0)),  # the block before this one
        "projected": np.zeros((0, 0)),
        "block": np.linalg.qr(vectors)[0],
        "values": np.zeros(0),
        "residuals": np.zeros(0),
        "next": np.array(0.0),
        "look": np.array(0),
        "before": np.array([0.0, np.inf]),
        "rough": np.array(rough),
        "iteration": np.array(iteration),
    }


def vectors(value: Value) -> Array:
    """Return the Ritz vectors, (side, k), of the values in a state."""
    if value["basis"].shape[1] < len(value["values"]):  # just gone over to double precision: the block holds them
        return value["block"][:, : len(value["values"])]
    _, Y = leading_eigenpairs(value["projected"], len(value["values"]))
    V, _ = np.linalg.qr(value["basis"] @ Y)  # orthonormal to the last digit
    return V * np.where(np.einsum("ij,ij->j", V, value["basis"] @ Y) < 0, -1.0, 1.0)


def krylov(
    apply: Apply,
    value: Value,
    *,
    k: int,
    total: float,
    rough: Apply | None = None,
    growth: float = GROWTH,
    columns: int = BASIS_COLUMNS,
) -> Iterator[State]:
    """Yield states that converge to the k leading eigenpairs of S, those that are locked included.

    ``total`` is the trace of S: the objective is what the k eigenvalues leave of it. ``rough`` is S V in single
    precision. A run that was started ``rough`` uses it until single precision has no more to give, and then begins
    again, in double precision, from the vectors found. ``growth`` is that of the basis between two looks at its values:
    0 where a look costs little beside a product. It begins again from ``columns`` on, unless k asks for more.

    A value has "values" (k,), descending, "residuals" (k,), "next", the largest Ritz value beyond those, and `vectors`
    gives the vectors. What is locked does not count among them.
    """
    given = {name: value[name] for name in ("locked", "extra", "least")}
    locked, least = value["locked"], float(value["least"])
    k += int(value["extra"]) - locked.shape[1]
    if locked.shape[1]:
        apply, rough = _without(locked, apply), _without(locked, rough) if rough else None
    B, T, P, Q = value["basis"], value["projected"], value["recent"], value["block"]
    roughly, iteration = bool(value["rough"]), int(value["iteration"])
    look, following = int(value["look"]), float(value["next"])  # basis size at which to look at Ritz values again
    room = len(Q) - locked.shape[1]
    capacity = min(room, max(min(columns, BASIS_BYTES // (8 * len(Q))), 6 * k))
    store, before, waiting = _Store(B, capacity, roughly), value["before"], 0
    while True:
        full = store.columns + Q.shape[1] > capacity and store.columns > 0
        if full:
            B, T = _restart(store.basis, T, k + Q.shape[1])
            P, store = Q[:, :0], _Store(B, capacity, roughly)
            look, before = 0, np.array([0.0, np.inf])
        m, b = store.columns, Q.shape[1]
        image = rough(Q) if roughly and rough is not None else apply(Q)
        store.append(Q)
        P, (T, Q, coupling) = Q, _extend(store, np.hstack([P, Q]), T, image, room, iteration)
        B = store.basis
        iteration += 1
        m += b
        exhausted = Q.shape[1] == 0
        waiting += 1
        if m < max(k, look) and waiting < PATIENCE and not exhausted and m + Q.shape[1] <= capacity:
            continue
        waiting = 0
        values, Y = leading_eigenpairs(T, min(k + 1, m))
        if len(values) > k:
            following, values, Y = values[k], values[:k], Y[:, :k]
        residuals = np.linalg.norm(coupling @ Y[m - b :], axis=0) if not exhausted else np.zeros(len(values))
        residual = _measure(values, residuals, least) if len(values) == k else np.inf
        found = {"values": values, "residuals": residuals, "next": np.array(following)}
        state = {
            **given,
            **found,
            "basis": B,
            "projected": T,
            "recent": P,
            "block": Q,
            "look": np.array(_next_look(m, b, residual, before, growth)),
            "before": np.array([m, residual]),
            "rough": np.array(roughly),
            "iteration": np.array(iteration),
        }
        if roughly and (residual <= ROUGH or exhausted or _drowned(values, residuals, k) or full):
            state = _begin(B @ Y, False, iteration) | given | found
            B, T, P, Q = state["basis"], state["projected"], state["recent"], state["block"]
            roughly, exhausted = False, False
            store = _Store(B, capacity, roughly)
        look, before = int(state["look"]), state["before"]
        yield State(state, max(total - float(values.sum()), 0.0), residual, iteration)
        if exhausted:
            return


def _next_look(m: int, b: int, residual: float, before: Array, growth: float) -> int:
    """Return the basis size at which the residual may be small enough, if it goes on falling as it does."""
    then, residual_then = before
    grow = growth * m
    if ROUGH < residual < residual_then < np.inf:
        needed = (m - then) * np.log(residual / ROUGH) / np.log(residual_then / residual)
        grow = np.clip(needed, 0, 2 * grow)
    return int(m + grow - b / 2)  # to the nearest block


def _measure(values: Array, residuals: Array, least: float) -> float:
    """Return the largest residual relative to its own value, or to GRADE of the leading one or ``least``, if larger."""
    leading = max(float(values[0]), np.finfo(float).tiny)
    return float((residuals / np.maximum(values, max(GRADE * leading, least))).max())


def _drowned(values: Array, residuals: Array, k: int) -> bool:
    """Tell whether single precision sees the leading components only: their rounding is larger than the others."""
    return len(values) == k and values[-1] < GRADE * values[0] and residuals[0] < ROUGH * values[0]


def _without(locked: Array, apply: Apply) -> Apply:
    """Return the operator on what is orthogonal to the locked vectors."""

    def deflated(V: Array) -> Array:
        image = apply(V - locked @ (locked.T @ V))
        return image - locked @ (locked.T @ image)

    return deflated


def orthonormal(W: Array, B: Array) -> Array:
    """Return an orthonormal basis of W, orthogonal to B."""
    W = W[:, : max(len(B) - B.shape[1], 0)]
    for _ in range(3):  # twice is enough, but where QR had to make up columns
        W = np.linalg.qr(W - B @ (B.T @ W))[0]
    return W


class _Store:
    """Room for the basis, column by column, and, roughly, for a copy in single precision.

    The copy serves to orthogonalise against many columns: that is a matter of memory traffic.
    """

    def __init__(self, B: Array, capacity: int, roughly: bool) -> None:
        side, self.columns = B.shape
        self._double = np.empty((side, capacity), order="F")
        self._fast = np.empty((side, capacity), np.float32, order="F") if roughly else self._double
        self._double[:, : self.columns] = self._fast[:, : self.columns] = B

    def append(self, Q: Array) -> None:
        here = slice(self.columns, self.columns + Q.shape[1])
        self._double[:, here] = self._fast[:, here] = Q
        self.columns = here.stop

    @property
    def basis(self) -> Array:
        return self._double[:, : self.columns]

    def remove(self, image: Array) -> tuple[Array, Array]:
        """Return (image without its part in the basis, coefficients of that part)."""
        B = (self._fast if self.columns > MANY else self._double)[:, : self.columns]
        inside = B.T @ image.astype(B.dtype, copy=False)
        return image - B @ inside, inside.astype(np.float64, copy=False)


def _extend(
    store: _Store, recent: Array, T: Array, image: Array, room: int, iteration: int
) -> tuple[Array, Array, Array]:
    """Return (T of the grown basis, next block, its coupling) from S times the last columns of the basis."""
    m, b = store.columns, image.shape[1]
    image = image.astype(np.float64, copy=False)
    # First against the last two blocks, where nearly all of it lies, then against all: once against all alone
    # would let the loss of orthogonality grow from step to step.
    length = float(np.linalg.norm(image, axis=0).max())
    local = recent.T @ image
    image, inside = store.remove(image - recent @ local)
    inside[m - recent.shape[1] :] += local
    grown = np.empty((m, m))
    grown[: m - b, : m - b] = T
    grown[:, m - b :] = inside
    grown[m - b :, : m - b] = inside[: m - b].T
    corner = inside[m - b :]
    grown[m - b :, m - b :] = (corner + corner.T) / 2
    size = float(np.abs(grown).max())
    return grown, *_next_block(store.basis, image, size, length, room - store.columns, iteration)


def _next_block(B: Array, image: Array, size: float, length: float, left: int, iteration: int) -> tuple[Array, Array]:
    """Return orthonormal Q, orthogonal to B, and C with image = Q C, for images that had this length before.

    ``size`` is that of the operator, and ``left`` the number of directions that there are at all.
    """
    Q, C = np.linalg.qr(image)
    negligible = 100 * np.finfo(np.float64).eps * max(size, np.finfo(np.float64).tiny)
    weakest = float(np.abs(np.diag(C)).min(initial=np.inf))
    if left >= image.shape[1] and weakest > negligible:
        if weakest < UNEVEN * length:  # then what rounding left along B has grown with it
            for _ in range(2):
                Q, R = np.linalg.qr(Q - B @ (B.T @ Q))
                C = R @ C
        return Q, C
    # The Krylov space is exhausted in some directions: put random ones, orthogonal to B, in their place.
    from scipy.linalg import qr

    Q, C, order = qr(image, mode="economic", pivoting=True)
    C = C[:, np.argsort(order)]
    strong = int((np.linalg.norm(C, axis=1) > negligible).sum())
    fresh = np.random.default_rng(iteration).standard_normal((len(B), image.shape[1] - strong))
    Q = np.concatenate([Q[:, :strong], fresh], axis=1)[:, : min(left, image.shape[1])]
    for _ in range(2):
        Q, R = np.linalg.qr(Q - B @ (B.T @ Q))
        Q *= np.where(np.diag(R) < 0, -1.0, 1.0)  # so that the strong columns stay what they were
    coupling = np.zeros((Q.shape[1], image.shape[1]))
    strong = min(strong, len(coupling))
    coupling[:strong] = C[:strong]
    return Q, coupling


def _restart(B: Array, T: Array, keep: int) -> tuple[Array, Array]:
    """Return the basis of the leading Ritz vectors and its projected matrix."""
    values, Y = leading_eigenpairs(T, min(keep, len(T)))
    return B @ Y, np.diag(values)
