"""Sparse PCA by number of features (truncated power: Yuan & Zhang, JMLR 2013; exchanges: `exchange`).

Objective: maximise v'Sv over |v| = 1 with at most ``count`` features (or groups of them), one component at a time, S
deflated by those before (`deflation`). Truncated power steps, v <- Sv with all but the largest entries set to zero,
begin at columns of S: at all of them, or, where these are many, at those whose largest entries s promise most, |s|^2 /
S_jj being a lower bound of what they lead to. They lead to sets of up to a quarter more features than are wanted, of
which the largest are kept; the leading eigenvector is one more start. Of the best ends features are swapped, where
they are many (`swaps`), and then exchanged one by one until no exchange helps (`exchange`).

Without a count, the fewest features are looked for that keep a share of the leading eigenvalue of the deflated S
(`fewest`). The search for each count is the same as if that were given.

Every component has an upper bound too. With A the deflated S, count features have no more variance than the largest
sum of count entries of a row of |A|, the largest eigenvalue, and, for A positive semidefinite, the count largest
entries of the diagonal together. What "hotelling" leaves has negative eigenvalues, and may have covariances where its
diagonal has nothing; and any A is known but for rounding, which is added.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from princomp._compiled import loops
from princomp._typing import Array
from princomp.certificates.remainder import rounding_in
from princomp.result import State, Value
from princomp.solvers import fewest, one_by_one
from princomp.solvers.cardinality_bounds import largest_sum
from princomp.solvers.deflation import Deflated
from princomp.solvers.exchange import MOST_COMPILED, Units, improved
from princomp.solvers.leading import leading_roughly
from princomp.solvers.scatter import Scatter
from princomp.solvers.swaps import swapped

# Two components of 12 features of noise, 60 x 80 to 150 x 100, have the same variance within 0.3 % with 5 to 200 steps,
# 8 to 512 starts, 1 to 30 sets to polish; spikes in 80 x 40 to 200 x 100 the same to seven decimals.
# 10 to 80 of 1100 and 2500 features had the same variance, in 0.7 to 1.2 of the time, with POWER_WORK a tenth or ten
# times as large, SCREEN_WORK a hundredth, EXCHANGE_WORK a twentieth, 8 and 256 FEW_STARTS; MOST_SPECTRAL 3000 took 1.4.
STEPS = 40  # truncated power steps from a start, at the most
RISE = 1e-4  # a start that rises by less, and keeps its features, has settled on them
STARTS, FEW_STARTS = 512, 64  # columns to start at, where S is at hand and where it is not
LEAST_STARTS = 16  # however long each takes
POWER_WORK = 1e9  # multiplications that the power steps may take
SCREEN_WORK = 2e10  # multiplications that the choice among columns may take
BLOCK = 2**20  # numbers of S made at a time
LEAST_POLISHED, POLISHED, MOST_SWAPPED = 4, 8, 16  # sets of features to improve by exchanges, or by swaps
EVERY_COUNT, COARSER = 16, 1.25  # up to so many units starts are made for each count, from there on in such steps
AT_ONCE, ROUGHLY = 12, 50  # counts looked at together, until they lie within such a part of the largest
FEWER = 0.8  # of a count: what that many have tells with which power of it the variance grows
EXCHANGE_WORK = 2e9  # multiplications that the exchanges of a component may take
SWAPPED, SWAPPED_WORK = 4, 4e8  # the same after swaps
FIRST = 5  # such a part of the starts tells how many features are needed
STATE_WORK = 1e8  # multiplications between two states
MOST_EXCHANGED = 1000  # features of a component; for more, an eigenproblem for each exchange takes too long
SETTLING_STEPS = 1000  # power steps of so large a component
# Of the leading eigenvector of a larger S: its eigenvalue is known to the square of the residual over the gap.
LEADING_RESIDUAL, LEADING_PRODUCTS = 1e-4, 40
MOST_SPECTRAL = 1000  # columns of an S whose eigenvalues are computed
WITH_VECTORS = 200  # and whose eigenvectors are: of 500 all of them take twice as long as the values and the first
TIED = 1e-12  # of the largest variance: two that differ by less are as good
NOTHING = 1e-13  # of the largest diagonal entry of S: less is rounding, nothing is left to find
RAISED = 1e-12  # of a bound, by which it is raised: eigenvalues and sums of up to MOST_SPECTRAL terms are known to less


@dataclass(frozen=True)
class Proof:
    """What a proof says of a component: the best vector it knows, and bounds on the best there is."""

    vector: Array  # (p,)
    value: float
    upper: float
    nodes: int
    seconds: float


Prover = Callable[[Array, int, Array], Proof]  # components before (p, j), count, component (p,) -> proof


def start(p: int) -> Value:
    """Return the value before the first step."""
    each = {
        "upper": np.zeros(0),  # bound on the variance of a component that is done
        "counts": np.zeros(0, dtype=np.int64),  # units that it may use
        "cut": np.zeros(0, dtype=bool),  # whether fewer were left untried
        "nodes": np.zeros(0, dtype=np.int64),  # of its proof
        "seconds": np.zeros(0),
    }
    return one_by_one.start(p, each | _forget(p))


def _forget(p: int) -> dict[str, Array]:
    """Return the state of a component that has not begun."""
    return {
        "lead": np.zeros(p),  # the leading eigenvector
        "origin": np.array(0),  # units that the starts have
        "starts": np.zeros((0, p)),  # what truncated power steps lead to, best first; the leading eigenvector
        **fewest.start(p),
        **_forget_search(p, p),
    }


def _forget_search(p: int, units: int) -> dict[str, Array]:
    """Return the state of a search that has not begun."""
    return {
        "V": np.zeros((0, p)),  # candidates
        "chosen": np.zeros((0, units), dtype=bool),  # their units
        "heights": np.zeros(0),  # their variances
        "settled": np.zeros(0, dtype=bool),  # no exchange helps, or none may be tried
        "work": np.array(0.0),  # multiplications spent on it
    }


def components(value: Value, k: int) -> Array:
    """Return the components, (p, k); those that are not begun, or for which nothing was left, are zero."""
    best = value["V"][int(np.argmax(value["heights"]))] if len(value["V"]) else value["best"]
    return one_by_one.components(value, k, best)


def cardinality(
    scatter: Scatter,
    value: Value,
    *,
    counts: Array | float,
    k: int,
    units: Units,
    deflation: str = "schur",
    largest: float = np.inf,
    prover: Prover | None = None,
) -> Iterator[State]:
    """Return an iterator of states that ascend, component after component (`one_by_one`).

    ``counts`` has the units that each of k components may use, (k,), or is the share of the leading eigenvalue that the
    fewest are to keep; ``largest`` is a bound on the eigenvalues of S, if known. ``prover`` is asked for a better
    bound, and a better component if there is one, before S is deflated by it. The residual of a state is infinite
    until the last component is done, then the largest |A_II v - (v'Av) v| / v'Av.
    """

    def step(A: Deflated, value: Value) -> tuple[Value, float, float]:
        value, p = dict(value), scatter.features
        if value["high"] < 0 and _is_nothing(A, NOTHING * float(scatter.diagonal.max())):
            value |= _nothing_left(p)
        elif value["high"] < 0:
            wanted = counts if isinstance(counts, float) else int(counts[value["found"].shape[1]])
            value |= _bracket(A, units, wanted)
        if len(value["V"]) == 0:
            value |= _search(A, units, value)
        elif not value["settled"].all():
            value |= _improve(A, units, value)
        height = float(value["heights"].max())
        if value["settled"].all():
            best, many = _first_best(value["heights"]), len(units.forced)
            value |= fewest.judged(value, value["V"][best], height, float(value["work"]), many)
            value |= _forget_search(p, many)
            if value["done"]:
                value |= _finish(A, units, value, largest, prover)
        return value, height, np.inf

    return one_by_one.one_by_one(scatter, value, step, k=k, deflation=deflation)


def _is_nothing(A: Deflated, least: float) -> bool:
    """Tell whether no vector has more variance than this."""
    if float(A.diagonal.max()) > least:
        return False
    return A.shift == 0 or _leading(A)[0] <= least  # indefinite: covariances may be left where variances are not


# How many


def _bracket(A: Deflated, units: Units, count: float | int) -> dict[str, Array]:
    """Return where the search for a count begins, and the leading eigenvector.

    What that leads to tells how many units are enough, and with which power of their number the variance grows.
    """
    top, lead = _leading(A)
    if np.linalg.norm(np.maximum(lead, 0.0)) < np.linalg.norm(np.minimum(lead, 0.0)):
        lead = -lead
    if isinstance(count, int):
        return {"lead": lead, **fewest.of_count(count)}
    target = count * top
    least, every = max(int(units.forced.sum()), 1), len(units.forced)
    if A.shift == 0:  # fewer than these do not have that much on the diagonal
        sums = np.cumsum(np.sort(units.total(A.diagonal[None])[0])[::-1])
        least = max(least, int(np.searchsorted(sums, target * (1 - RAISED))) + 1)
    least = min(least, every)
    most = _narrowed(A, units, lead, target, least)
    chosen, V, reached = _power(A, units, lead[None], most)
    fewer, power = int(FEWER * most), 1.0
    if fewer >= least and (less := float(_power(A, units, V, fewer)[2][0])) > 0:
        power = np.log(float(reached[0]) / less) / np.log(most / fewer)
    if units.simple and most > MOST_COMPILED:
        reached[0] = swapped(A, units, chosen[0], V[0])[2]
    return {"lead": lead, **fewest.of_share(target, least, most, power, float(reached[0]))}


def _narrowed(A: Deflated, units: Units, lead: Array, target: float, least: int) -> int:
    """Return about how many of the largest entries of the leading eigenvector are enough."""
    low, high = least, len(units.forced)
    while high - low > high // ROUGHLY:
        counts = np.unique(np.rint(np.geomspace(low, high, AT_ONCE)).astype(int))
        V = np.vstack([units.truncated(lead[None], int(count))[1] for count in counts])
        enough = np.flatnonzero(np.einsum("ij,ij->i", V, A.times(V)) >= target)
        first = int(enough[0]) if len(enough) else len(counts) - 1
        low, high = int(counts[first - 1]) + 1 if first else int(counts[first]), int(counts[first])
    return high


def _leading(A: Deflated) -> tuple[float, Array]:
    """Return the leading eigenvalue and eigenvector of A."""
    p = len(A.diagonal)
    if A.matrix is not None and p <= WITH_VECTORS:
        values, vectors = A.spectrum
        return float(values[-1]), vectors[:, -1]

    def apply(V: Array) -> Array:
        return A.times(V.T).T + A.shift * V

    v = leading_roughly(apply, p, 1, np.random.default_rng(0), tol=LEADING_RESIDUAL, most=LEADING_PRODUCTS)[1][:, 0]
    return float(v @ A.times(v[None])[0]), v


# The search for one component


def _search(A: Deflated, units: Units, value: Value) -> dict[str, Array]:
    """Return the candidates that the starts lead to, best first, and the starts, if they had to be made."""
    count, whole, p = int(value["count"]), bool(value["whole"]), len(A.diagonal)
    changes: dict[str, Array] = {}
    if int(value["origin"]) != _origin(count, len(units.forced)):
        changes = _starts(A, units, _origin(count, len(units.forced)), value)
        value = {**value, **changes}
    starts = value["starts"]
    if not whole:  # some of the best, and the leading eigenvector
        starts = np.vstack([starts[: max(1, len(starts) // FIRST)], starts[-1:]])
    chosen, V, heights = _stepped(A, units, starts, count)
    work = STEPS * len(starts) * A.product(count)
    swaps = units.simple and count > MOST_COMPILED
    for i in range(len(starts) if swaps else 0):
        chosen[i], V[i], heights[i], spent = swapped(A, units, chosen[i], V[i])
        work += spent
    kept = _distinct(chosen, heights)
    chosen, V, heights = chosen[kept], V[kept], heights[kept]
    if whole and count > MOST_EXCHANGED:
        chosen, V, heights = _settled(A, units, chosen[:1], V[:1])
    settled = np.ones(len(V), dtype=bool)
    if count <= MOST_EXCHANGED and (whole or not swaps):
        several = SWAPPED if float(count) ** 2 * p < STATE_WORK else 1
        settled[: several if swaps else None] = False
    return changes | {"V": V, "chosen": chosen, "heights": heights, "settled": settled, "work": np.array(work)}


def _origin(count: int, every: int) -> int:
    """Return how many units starts have for a search for so many: a few numbers serve all."""
    origin = count
    if count > EVERY_COUNT:
        steps = np.ceil(np.log(count / EVERY_COUNT) / np.log(COARSER) - 1e-9)
        origin = int(np.ceil(EVERY_COUNT * COARSER**steps - 1e-6))
    return min(origin, every)


def _distinct(chosen: Array, heights: Array) -> Array:
    """Return where different sets of units are, best first."""
    largest = max(float(np.abs(heights).max()), 1e-300)
    order = np.argsort(-np.rint(heights / (TIED * largest)), kind="stable")
    _, first = np.unique(np.packbits(chosen[order], axis=1), axis=0, return_index=True)
    kept: Array = order[np.sort(first)]
    return kept


def _first_best(heights: Array) -> int:
    """Return where the first of those is that are the largest but for rounding."""
    return int(np.argmax(heights >= heights.max() - TIED * np.abs(heights).max()))


def _starts(A: Deflated, units: Units, count: int, value: Value) -> dict[str, Array]:
    """Return the best that truncated power steps from columns lead to, best first, and the leading eigenvector."""
    p = len(A.diagonal)
    columns = _promising(A, units, count)
    begin = A.rows(columns)
    begin[np.arange(len(columns)), columns] += A.shift
    chosen, V, heights = _power(A, units, begin, count)
    most = MOST_SWAPPED if units.simple and count > MOST_COMPILED else POLISHED
    most = int(np.clip(EXCHANGE_WORK / (20.0 * count**2 * p), LEAST_POLISHED, most))
    starts = np.vstack([V[_distinct(chosen, heights)[:most]], value["lead"]])
    work = STEPS * len(columns) * A.product(count)
    return {"starts": starts, "origin": np.array(count), "begun": np.array(work)}


def _promising(A: Deflated, units: Units, count: int) -> Array:
    """Return columns to start at."""
    p = len(A.diagonal)
    variances = A.diagonal + A.shift
    columns = np.flatnonzero(variances > NOTHING * variances.max())
    most = STARTS if A.matrix is not None else FEW_STARTS
    most = int(np.clip(POWER_WORK / (STEPS * count * p), LEAST_STARTS, most))
    if len(columns) <= most:
        return columns
    if A.matrix is None:
        # Rows of A are made for as many columns as there is time for: those of largest variance.
        affordable = max(4 * most, int(SCREEN_WORK / (p * A.scatter.effort)))
        columns = np.sort(columns[np.argsort(-A.diagonal[columns], kind="stable")[:affordable]])
    sums = [largest_sum(units.total(A.rows(part) ** 2), count) for part in _parts(columns, p)]
    promise = np.concatenate(sums) / variances[columns]
    return np.sort(columns[np.argsort(-promise, kind="stable")[:most]])


def _parts(columns: Array, p: int) -> list[Array]:
    return np.array_split(columns, max(1, -(-len(columns) * p // BLOCK)))


def _power(A: Deflated, units: Units, begin: Array, count: int) -> tuple[Array, Array, Array]:
    """Return (chosen, V, variances) of truncated power steps from rows ``begin``, compiled where that is quicker."""
    small = A.matrix is not None and units.simple and count <= MOST_COMPILED
    compiled = loops("cardinality_search") if small else None
    if compiled is None:
        return _stepped(A, units, begin, count)
    how = {"shift": A.shift, "steps": STEPS, "rise": RISE}
    which, loadings, heights = compiled.power(A.matrix, begin, count, units.forced, **how)
    chosen, V = np.zeros(begin.shape, dtype=bool), np.zeros(begin.shape)
    each = np.arange(len(which))[:, None]
    chosen[each, which], V[each, which] = True, loadings
    return chosen, V, heights


def _stepped(A: Deflated, units: Units, begin: Array, count: int) -> tuple[Array, Array, Array]:
    """Return (chosen, V, variances) of truncated power steps from rows ``begin``: the twin of the compiled one."""
    chosen, V = units.truncated(begin, count)
    heights = np.full(len(V), -np.inf)
    moving = np.arange(len(V))
    for _ in range(STEPS):
        images = A.times(V[moving]) + A.shift * V[moving]
        reached = np.einsum("ij,ij->i", V[moving], images)
        rises = reached > heights[moving] + RISE * np.abs(reached)
        heights[moving] = reached
        following, W = units.truncated(images, count)
        moved = (following != chosen[moving]).any(axis=1) | rises
        moving = moving[moved]
        chosen[moving], V[moving] = following[moved], W[moved]
        if not len(moving):
            break
    heights = np.einsum("ij,ij->i", V, A.times(V))
    return chosen, V, heights


def _settled(A: Deflated, units: Units, chosen: Array, V: Array) -> tuple[Array, Array, Array]:
    """Return a single candidate of many features after power steps until it hardly moves."""
    V = V / np.linalg.norm(V)
    for _ in range(SETTLING_STEPS):
        image = A.times(V)
        before = V
        chosen, V = units.truncated(image + A.shift * V, chosen.sum())
        if float(np.linalg.norm(V - before)) <= 1e-8:
            break
    return chosen, V, np.array([float(np.vdot(V, A.times(V)))])


def _improve(A: Deflated, units: Units, value: Value) -> dict[str, Array]:
    """Return candidates after some exchanges; the work between two states is bounded, and so is all of it."""
    V, chosen = value["V"].copy(), value["chosen"].copy()
    heights, settled, spent = value["heights"].copy(), value["settled"].copy(), float(value["work"])
    swaps = units.simple and int(value["count"]) > MOST_COMPILED
    effort = float(units.features(chosen[0]).sum()) ** 2 * len(A.diagonal)
    begin, rounds = spent, int(np.clip(STATE_WORK / effort, 0 if swaps else 1, 200))
    for i in np.flatnonzero(~settled):
        if heights.max() >= value["target"] and not value["whole"]:  # enough is known
            settled[:] = True
            break
        chosen[i], V[i], heights[i], settled[i], made = improved(A, units, chosen[i], rounds)
        settled[i] |= rounds == 0
        spent += effort * (1 + made)
        if spent - begin >= STATE_WORK and not settled.all():
            break
    if spent >= (SWAPPED_WORK if swaps else EXCHANGE_WORK):
        settled[:] = True
    return {"V": V, "chosen": chosen, "heights": heights, "settled": settled, "work": np.array(spent)}


def _nothing_left(p: int) -> dict[str, Array]:
    """Return a component of zeros."""
    nothing = {"V": np.zeros((1, p)), "heights": np.zeros(1), "settled": np.ones(1, dtype=bool)}
    return nothing | fewest.of_count(1)


# Its end


def _finish(A: Deflated, units: Units, value: Value, largest: float, prover: Prover | None) -> dict[str, Array]:
    """Return what changes when the best that was found is the component."""
    count, squares, v = int(value["high"]), A.scatter.diagonal, value["best"]
    lower = upper = float(value["height"])
    nodes, seconds = 0, 0.0
    if v.any() and prover is not None:
        proof = prover(value["found"], count, v)
        v, lower, upper = proof.vector, proof.value, proof.upper
        nodes, seconds = proof.nodes, proof.seconds
    else:
        rounding = rounding_in(squares, value["found"], _images(A, value["found"]), A.kind)
        if v.any():
            # A negative variance taken away by "hotelling" would raise the eigenvalues.
            known = largest if (value["captured"] >= 0).all() else np.inf
            upper = upper_bound(A, units, count, known) + rounding
        else:  # what is left is rounding, but that is not nothing
            upper = len(v) * NOTHING * float(squares.max()) + rounding
    more = {"upper": max(lower, upper), "counts": count, "nodes": nodes, "seconds": seconds}
    more["cut"] = fewest.was_cut(value)
    each = {name: np.append(value[name], np.array([number], value[name].dtype)) for name, number in more.items()}
    return one_by_one.finished(A, value, v, lower, _residual(A, v), each | _forget(len(v)))


def _images(A: Deflated, found: Array) -> Array:
    """Return S times the components found, (p, j), from what "schur" has made of them: S is not read again."""
    left, right = A.left, A.right
    if A.kind != "schur":
        return found
    overlap = np.triu(right.T @ found, 1)  # with those before
    return right + left @ overlap


def _residual(A: Deflated, v: Array) -> float:
    used = np.flatnonzero(v)
    if not len(used):
        return 0.0
    image = A.times(v[None])[0]
    height = float(v @ image)
    return float(np.linalg.norm(image[used] - height * v[used]) / max(abs(height), 1e-300))


def upper_bound(A: Deflated, units: Units, count: int, largest: float = np.inf) -> float:
    """Return a number that no component of so many units exceeds."""
    p = len(A.diagonal)
    bounds = [largest]
    if A.shift == 0:
        bounds.append(float(np.sort(units.total(A.diagonal[None])[0])[::-1][:count].sum()))
    if A.matrix is not None and p <= MOST_SPECTRAL:
        values = A.spectrum[0] if p <= WITH_VECTORS else np.linalg.eigvalsh(A.matrix)
        bounds.append(float(values[-1]) + RAISED * max(0.0, -float(values[0])))
    least = min(bounds)
    if units.of is None and float(p) ** 2 * A.scatter.effort <= SCREEN_WORK:
        least = min(least, _row_sums(A, count, least))
    return least + RAISED * abs(least)


def _row_sums(A: Deflated, count: int, enough: float) -> float:
    """Return the largest sum of so many entries of a row of |A|; or, once it is enough, that of some rows."""
    p, largest = len(A.diagonal), 0.0
    for part in _parts(np.arange(p), p):
        largest = max(largest, float(largest_sum(np.abs(A.rows(part)), count).max()))
        if largest >= enough:
            break
    return largest
