"""Branch and bound for the best component with at most k features: the answer with a proof (Moghaddam et al. 2006).

max v'Sv over |v| = 1 with at most k units in use (features, or groups of them). A node has units that are in and units
that are free; its bound is that of `cardinality_bounds`, lowered from its parent's dual point. A unit is decided at
once where the other decision has a bound below the best value known; else the node splits on the unit that helps most.
The tree is kept: `princomp.certificates.verify` rechecks it without this module.
"""

import heapq
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import comb
from typing import Any, NamedTuple

import numpy as np

from princomp._threads import single_blas_thread
from princomp._typing import Array
from princomp.certificates.leaf_bounds import COLUMNS
from princomp.certificates.proof import CardinalityCertificate, Kind, Leaves, relative_gap
from princomp.result import Callback, State, Value, run
from princomp.solvers import cardinality_bounds as bounds
from princomp.solvers.cardinality_bounds import ROUNDING, Block, Dual
from princomp.solvers.cardinality_units import RowSums, SupportProblem

TOL = 1e-8  # relative gap at which a leaf is closed
CORE = 1000  # units up to which dual points are used: one then takes 8 MB, and its bound 0.07 s
# The pit props and correlations of noise, 20 to 26 features, components of 5 to 7, took 31 nodes in all: 34 with 30
# steps, 31 with 200; 31 to 33 with SHRUNK from 0.5 to 0.95 and PROGRESS from 0.25 to 0.8; 56, 44, 16 with 1, 3, 20
# candidates, in about the same time; 38 from the first of STARTS alone; 28 to 31 from any one of FLOORS.
STEPS = 90  # of a descent, after which it is tried what can be decided
SHRUNK, PROGRESS = 0.8, 0.5  # a node with fewer of its units left, or of its gap, is worth another descent
RISE = 1e-9  # of the value: an ascent that gains less ends
CANDIDATES = 8  # units on which splitting is tried
POINT_BYTES = 2**29  # that the dual points of a proof may take
STARTS = (1.0, 0.5, 0.25, 0.1)  # shares of S moved to the rows at the first dual point
FLOORS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.001)  # least loading assumed there, as a share of the largest
ENUMERATED = 3000  # supports up to which all are tried: a third faster there than with none, a fifth than with 30,000


def prove(
    S: Any,
    nonzeros: int,
    *,
    support: Sequence[int],
    include: Sequence[int] = (),
    exclude: Sequence[int] = (),
    nonnegative: bool = False,
    groups: Sequence[Any] | None = None,
    data: bool = False,
    node_limit: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    certifies: str = "the best component",
    rounding: float = 0.0,
) -> CardinalityCertificate:
    """Prove how good a sparse component is, and find a better one where there is one.

    ``S`` (p, p) is symmetric, or with ``data`` the (n, p) matrix X, S = X'X, which is not formed. ``support`` are
    features of a good component of at most ``nonzeros`` units, to begin with; those of ``include`` are forced into the
    support (their loadings may still be 0), those of ``exclude`` out of it; features with the same label in ``groups``
    (p,) count as one unit, and enter together. ``node_limit`` bounds the subproblems looked into, so that the answer
    does not depend on the computer's speed, ``time_limit`` the seconds; ``callback`` gets a `State` after each node,
    whose residual is the gap. S, which ``certifies`` names, may differ by ``rounding``, in the spectral norm, from the
    matrix that the bounds are to hold for.
    """
    begin = time.monotonic()
    deadline = np.inf if time_limit is None else begin + time_limit
    problem = SupportProblem.of(S, nonzeros, groups, include, exclude, nonnegative, data)
    search = _Search(problem, lambda: time.monotonic() >= deadline)
    search.offer(problem.unit_of[np.asarray(support, dtype=int)])
    from sklearn.exceptions import ConvergenceWarning

    with single_blas_thread(), warnings.catch_warnings():  # the matrices are small
        warnings.simplefilter("ignore", ConvergenceWarning)  # a gap that is left is an answer, not a failure
        most = 2**62 if node_limit is None else node_limit
        result = run(search.states, search.value(), tol=TOL, max_iter=most, callback=callback, scope="global")
    vector = np.asarray(result.value["vector"])
    leaves = search.tree.leaves(problem.scale, search.carried, problem.single)
    lower = problem.value(vector) - rounding
    return CardinalityCertificate(
        lower=lower,
        upper=max(lower, float(leaves.bound[leaves.unit < 0].max()) + rounding),
        vector=vector,
        support=tuple(sorted(int(i) for i in problem.features(search.best))),
        nonzeros=int(nonzeros),
        leaves=leaves,
        include=tuple(int(i) for i in include),
        exclude=tuple(int(i) for i in exclude),
        nonnegative=bool(nonnegative),
        groups=None if groups is None else tuple(np.asarray(groups).tolist()),
        nodes=search.nodes,
        seconds=time.monotonic() - begin,
        certifies=certifies,
        rounding=float(rounding),
    )


class _Tree:
    """The proof as it grows; node 0 is the root."""

    def __init__(self) -> None:
        self.unit, self.inside, self.outside = [-1], [-1], [-1]
        self.kind, self.dual, self.bound = [int(Kind.EIGENVALUE)], [-1], [np.inf]
        self.points: dict[int, tuple[Array, Dual]] = {}  # by number: units in order, and the dual point
        self.numbered, self.bytes = 0, 0
        self.loadings: Array | None = None

    def split(self, node: int, unit: int) -> tuple[int, int]:
        """Turn a leaf into a branch; return the nodes with and without the unit, bounded as the leaf was."""
        new = len(self.unit)
        self.unit += [-1, -1]
        self.inside += [-1, -1]
        self.outside += [-1, -1]
        self.kind += 2 * [self.kind[node]]
        self.dual += 2 * [self.dual[node]]
        self.bound += 2 * [self.bound[node]]
        self.unit[node], self.inside[node], self.outside[node] = unit, new, new + 1
        return new, new + 1

    def set(self, node: int, kind: Kind, bound: float, dual: int = -1) -> None:
        """Give a leaf its bound."""
        self.kind[node], self.bound[node], self.dual[node] = int(kind), bound, dual

    def keep(self, units: Array, dual: Dual) -> int:
        """Store a dual point; return its number."""
        number, self.numbered = self.numbered, self.numbered + 1
        self.points[number] = units, dual
        self.bytes += dual.weights.nbytes
        if self.bytes > POINT_BYTES:  # drop the points that no leaf uses (the last one is in use)
            used = {dual for dual, unit in zip(self.dual, self.unit) if unit < 0} | {number}
            self.points = {i: point for i, point in self.points.items() if i in used}
            self.bytes = sum(kept.weights.nbytes for _, kept in self.points.values())
        return number

    def leaves(self, scale: float, carried: Callable[[Array, Dual], Dual], single: bool) -> Leaves:
        """Return flat arrays, no longer scaled, with the points that are used, as ``carried`` has them."""
        unit, dual, kind = np.array(self.unit), np.array(self.dual), np.array(self.kind)
        dual[(unit >= 0) | (kind != Kind.DUAL)] = -1
        if single:
            kind[kind == Kind.DUAL] = Kind.SIGNED
        used, points = np.unique(dual[dual >= 0]), []
        for units, point in (self.points[i] for i in used):
            weights, shift = carried(units, point)
            points.append((units, weights * np.sqrt(scale), shift * scale))
        dual[dual >= 0] = np.searchsorted(used, dual[dual >= 0])
        bound = np.where(unit < 0, np.array(self.bound) * scale, np.nan)
        inside, outside = np.array(self.inside), np.array(self.outside)
        return Leaves(unit, inside, outside, kind, dual, bound, tuple(points), self.loadings)


class _Node(NamedTuple):
    """An open subproblem."""

    bound: float
    at: int  # its place in the tree
    chosen: tuple[int, ...]  # units in
    free: Array  # units to choose from
    point: int = -1  # number of the dual point; -1 before the first

    @property
    def units(self) -> Array:
        """All units, those in first."""
        return _joined(self.chosen, self.free)

    def __lt__(self, other: Any) -> bool:
        """The largest bound first; of equals the older."""
        return (-self.bound, self.at) < (-other.bound, other.at)


@dataclass
class _Search:
    """The search: what is proved so far, and what is open."""

    problem: SupportProblem
    over: Callable[[], bool]
    tree: _Tree = field(default_factory=_Tree)
    open: list[_Node] = field(default_factory=list)
    lower: float = -np.inf  # scaled
    best: Array = field(default_factory=lambda: np.zeros(0, dtype=int))  # units
    vector: Array = field(default_factory=lambda: np.zeros(0))
    closed: float = -np.inf  # largest bound of a leaf that is done with
    nodes: int = 0
    core: Block = field(init=False)  # the units that the root leaves
    place: Array = field(init=False)  # unit -> place in the core

    @property
    def target(self) -> float:
        """A bound as low as this closes a leaf."""
        return self.lower + 0.5 * TOL * abs(self.lower)

    def value(self) -> Value:
        """Return what a state shows."""
        return {"vector": self.vector, "support": self.problem.features(self.best), "upper": np.array(self.upper())}

    def upper(self) -> float:
        """Return the bound proved so far, not scaled."""
        waiting = self.open[0].bound if self.open else -np.inf
        return max(self.lower, self.closed, waiting) * self.problem.scale

    def state(self) -> State:
        """Return where the search stands."""
        upper, lower = self.upper(), self.lower * self.problem.scale
        return State(self.value(), lower, relative_gap(lower, upper), self.nodes)

    def offer(self, units: Array) -> None:
        """Keep a set of units, made to fit the constraints, as the best known."""
        problem = self.problem
        units = np.setdiff1d(np.intersect1d(units, problem.available), problem.forced)
        units = _joined(problem.forced, units)[: problem.k]
        if len(units) == 0:
            here = np.flatnonzero(problem.allowed)
            units = problem.unit_of[here[[int(np.argmax(problem.diagonal(here)))]]]
        self.keep(units)

    def keep(self, units: Array) -> None:
        """Keep a support if it is the best, and ascend from it by truncated power steps."""
        while True:
            value, vector = self.problem.best_vector(units)
            if value <= self.lower:
                return
            rises = value > self.lower + RISE * abs(value)
            self.lower, self.best, self.vector = value, units, vector
            if not rises:
                return
            lengths = self.problem.lengths(vector)
            lengths[list(self.problem.forced)] = np.inf
            order = self.problem.available[np.argsort(-lengths[self.problem.available], kind="stable")]
            units = order[: self.problem.k]

    def states(self, _: Value) -> Iterator[State]:
        """Search, one state per node. A restart knows the best support, not the tree."""
        node = self.begin()
        if node is not None:
            heapq.heappush(self.open, node)
        yield self.state()
        while self.open and self.open[0].bound > self.target and self.tree.bytes <= POINT_BYTES and not self.over():
            self.nodes += 1
            self.look_into(heapq.heappop(self.open))
            yield self.state()

    # The root: cheap bounds, and units that no good support can have.

    def begin(self) -> _Node | None:
        """Bound the root, drop hopeless units; return the node that is left, if any."""
        problem = self.problem
        free = np.setdiff1d(problem.available, problem.forced)
        if self.determined(_Node(np.inf, 0, problem.forced, free)):
            return None
        if problem.by_data:
            self.tree.set(0, Kind.TRACE, problem.trace(problem.forced, free))
        rows = self.balanced_rows()
        if rows is None:
            self.closed = self.tree.bound[0]
            return None
        self.tree.loadings = rows.loadings
        if rows.bound(problem.available) < self.tree.bound[0]:
            self.tree.set(0, Kind.ROWS, rows.bound(problem.available))
        at, free = self.screen(rows, free)
        node = _Node(self.tree.bound[at], at, problem.forced, free)
        if len(node.units) > CORE or self.over():
            self.closed = max(self.closed, node.bound)
            return None
        live = np.sort(node.units)
        self.core, self.place = self.whole(live), np.zeros(problem.count, dtype=int)
        self.place[live] = np.arange(len(live))
        if self.determined(node):
            return None
        bound = self.eigenvalue(node)
        if bound >= node.bound:
            return node
        self.tree.set(at, Kind.EIGENVALUE, bound)
        return node._replace(bound=bound)

    def balanced_rows(self) -> RowSums | None:
        """Return row sums balanced by the loadings of the best vector known, with the best floor under them.

        None if time runs out before the first are made: then there is the trace, at least.
        """
        problem, best = self.problem, None
        for floor in FLOORS:
            rows = RowSums.made(problem, self.loadings(floor), self.over if problem.by_data or best else lambda: False)
            if rows is None:
                break
            if best is None or rows.bound(problem.available) < best.bound(problem.available):
                best = rows
        return best

    def loadings(self, floor: float) -> Array:
        """Return what Sv suggests for each unit, v the best vector known, but at least a share of the largest."""
        lengths = self.problem.lengths(self.vector)
        return np.maximum(lengths, floor * float(lengths.max())) if lengths.any() else np.ones(len(lengths))

    def screen(self, rows: RowSums, free: Array) -> tuple[int, Array]:
        """Drop, one after the other, the units with which every support has a bound below the target."""
        problem, node = self.problem, 0
        live = np.zeros(problem.count, dtype=bool)
        live[problem.available] = True
        for begin in range(0, len(free), COLUMNS):
            if self.over():
                break
            columns = free[begin : begin + COLUMNS]
            norms = rows.norms(columns)
            for unit, column in zip(columns, norms.T, strict=True):
                bound = rows.bound(np.flatnonzero(live), int(unit), column)
                if bound <= self.target and live.sum() > problem.k:
                    inside, node = self.tree.split(node, int(unit))
                    self.close(inside, Kind.ROWS, bound)
                    live[unit] = False
        free = free[live[free]]
        if node:
            self.tree.set(node, Kind.ROWS, rows.bound(np.flatnonzero(live)))
        return node, free

    def close(self, at: int, kind: Kind, bound: float, point: int = -1) -> None:
        """Give a leaf a bound with which it is done."""
        self.tree.set(at, kind, bound, point)
        self.closed = max(self.closed, bound)

    def eigenvalue(self, node: _Node) -> float:
        """Return the leading eigenvalue on all units of a node."""
        S = self.block(node.units).S
        return float(np.linalg.eigvalsh(S)[-1]) + ROUNDING * len(S) * float(np.linalg.norm(S))

    # The core: dual bounds.

    def whole(self, live: Array) -> Block:
        """Return the problem on all units left, for `block` to take parts of."""
        here = self.problem.features(live)
        S = self.problem.part(here, here)
        S = 0.5 * (S + S.T)
        owner = None if self.problem.single else np.searchsorted(live, self.problem.unit_of[here])
        raised = S < 0 if self.problem.nonnegative and owner is None else None
        return Block(S, bounds.directions(S, owner), owner, raised, 0, self.problem.k)

    def block(self, units: Array, chosen: int = 0) -> Block:
        """Return the subproblem of some units, of which the first ``chosen`` are in."""
        units, count = self.place[units], min(self.problem.k, len(units)) - chosen
        if self.core.owner is None:
            here, owner = units, None
        else:
            members = [np.flatnonzero(self.core.owner == unit) for unit in units]
            here, owner = np.concatenate(members), np.repeat(np.arange(len(units)), [len(m) for m in members])
        at = np.ix_(here, here)
        raised = None if self.core.raised is None else self.core.raised[np.ix_(units, units)]
        return Block(self.core.S[at], self.core.direction[at], owner, raised, chosen, count)

    def dual(self, node: _Node) -> Dual:
        """Return the dual point of a node for its units."""
        units, dual = self.tree.points[node.point]
        return dual.restricted(np.searchsorted(units, node.units))

    def carried(self, units: Array, dual: Dual) -> Dual:
        """Return a dual point of units in order as `verify` reads it."""
        return bounds.signed(self.block(units), dual)

    def first_dual(self, block: Block, units: Array) -> Dual:
        """Return the best of some simple points: a share of S moved to the rows, balanced by loadings.

        These are those of the best vector known, v; outside its support those that Sv suggests.
        """
        norms = np.sqrt(block.gathered(block.S**2))
        np.fill_diagonal(norms, 0.0)
        best, least = Dual(np.sqrt(norms), np.zeros(block.size)), np.inf
        for floor, share in product(FLOORS, STARTS):
            x = self.loadings(floor)[units]
            dual = Dual(np.sqrt(share * norms * x / x[:, None]), np.zeros(block.size))
            bound = np.inf if self.over() else bounds.dual_bound(block, dual)
            if bound < least:
                best, least = dual, bound
        return best

    def determined(self, node: _Node) -> bool:
        """Close a node that leaves no choice, or so little that all supports can be tried; tell whether it did."""
        count = self.problem.k - len(node.chosen)
        if 0 < count < len(node.free):
            return self.enumerated(node, count)
        units = node.units if count else node.units[: len(node.chosen)]
        self.keep(units)
        self.close(node.at, Kind.EXACT, self.problem.exact(units))
        return True

    def enumerated(self, node: _Node, count: int) -> bool:
        """Close a node by trying all its supports, if they are few; tell whether it did."""
        if self.problem.nonnegative or not self.problem.single or comb(len(node.free), count) > ENUMERATED:
            return False
        units, inside = node.units, len(node.chosen)
        more = np.array(list(combinations(range(inside, len(units)), count)))
        supports = np.concatenate([np.tile(np.arange(inside), (len(more), 1)), more], axis=1)  # places in units
        S = self.problem.part(units, units)
        values = np.linalg.eigvalsh(S[supports[:, :, None], supports[:, None, :]])[:, -1]
        self.keep(units[supports[int(np.argmax(values))]])
        bound = float(values.max()) + ROUNDING * len(S) * float(np.linalg.norm(S))
        self.close(node.at, Kind.ENUMERATED, bound)
        return True

    def look_into(self, node: _Node) -> None:
        """Lower the bound of a node, decide what can be decided, as long as this helps, and split the rest in two."""
        while True:
            before = node
            node, found = self.lower_bound(node)
            left, tried = self.decide(node, found)
            if left is None:
                return
            node = left
            if node.bound <= self.target or self.over():
                self.closed = max(self.closed, node.bound)
                return
            closer = node.bound - self.lower < PROGRESS * (before.bound - self.lower)
            if len(node.free) > SHRUNK * len(before.free) and not closer:
                self.branch(node, tried)
                return

    def lower_bound(self, node: _Node) -> tuple[_Node, dict[int, float]]:
        """Descend from the node's dual point; return the node with its new bound, and how far each free unit is in."""
        units, block = node.units, self.block(node.units, len(node.chosen))
        dual = self.first_dual(block, units) if node.point < 0 else self.dual(node)
        mu = float(np.clip(0.5 * (node.bound - self.lower), bounds.LAST_MU, bounds.FIRST_MU))
        found = bounds.improve(block, dual, self.target, mu=mu, steps=STEPS, over=self.over)
        order = np.argsort(units)
        if found.bound < node.bound:
            point = self.tree.keep(units[order], found.dual.restricted(order))
            self.tree.set(node.at, Kind.DUAL, found.bound, point)
            node = node._replace(bound=found.bound, point=point)
        best = np.argsort(-found.share[block.forced :], kind="stable")[: block.count]
        self.keep(_joined(node.chosen, node.free[best]))
        return node, dict(zip(units.tolist(), found.chosen.tolist()))

    def child(self, node: _Node, unit: int, inside: bool) -> _Node:
        """Return a child, bounded at the node's dual point; it has no place of its own yet."""
        chosen = (*node.chosen, unit) if inside else node.chosen
        child = node._replace(bound=-np.inf, chosen=chosen, free=node.free[node.free != unit])
        if not 0 < self.problem.k - len(chosen) < len(child.free):
            return child
        if node.point < 0:
            return child._replace(bound=self.eigenvalue(child))
        return child._replace(bound=bounds.dual_bound(self.block(child.units, len(chosen)), self.dual(child)))

    def decide(self, node: _Node, found: dict[int, float]) -> tuple[_Node | None, dict[int, float]]:
        """Decide on units one of whose sides is hopeless, the clearest first; return what is left and bounds tried."""
        tried: dict[int, float] = {}
        if node.bound <= self.target:
            return node, tried
        kind = Kind.DUAL if node.point >= 0 else Kind.EIGENVALUE
        units = sorted((int(unit) for unit in node.free), key=lambda unit: (-abs(found[unit] - 0.5), unit))
        for unit in units:
            if self.over():
                break
            inside = found[unit] < 0.5  # the side that seems hopeless
            hopeless = self.child(node, unit, inside)
            if hopeless.bound > self.target:
                tried[unit] = hopeless.bound
                continue
            with_it, without = self.tree.split(node.at, unit)
            at, left = (with_it, without) if inside else (without, with_it)
            if not self.determined(hopeless._replace(at=at)):
                self.close(at, kind, hopeless.bound, node.point)
            node = self.child(node, unit, not inside)._replace(at=left)
            if self.determined(node):
                return None, tried
            self.tree.set(left, kind, node.bound, node.point)
        return node, tried

    def branch(self, node: _Node, tried: dict[int, float]) -> None:
        """Split a node on the unit that lowers the bounds of both sides most."""
        left, splits = set(node.free.tolist()), []
        candidates = [unit for unit in sorted(tried, key=lambda unit: tried[unit]) if unit in left]
        for unit in candidates[:CANDIDATES] or [int(node.free[0])]:
            sides = self.child(node, unit, True), self.child(node, unit, False)
            fall = [max(node.bound - side.bound, 1e-12) for side in sides]
            splits.append((fall[0] * fall[1], unit, sides))
            if self.over():
                break
        _, unit, sides = max(splits, key=lambda split: split[0])
        for at, side in zip(self.tree.split(node.at, unit), sides, strict=True):
            if not self.determined(side._replace(at=at)):
                self.tree.set(at, Kind.DUAL if node.point >= 0 else Kind.EIGENVALUE, side.bound, node.point)
                heapq.heappush(self.open, side._replace(at=at))


def _joined(chosen: Sequence[int], free: Array) -> Array:
    return np.concatenate([np.array(chosen, dtype=int), free])
