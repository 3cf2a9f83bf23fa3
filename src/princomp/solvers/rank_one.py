"""Rank-1 dictionary learning (Li et al., KDD 2016), and sweeps over its pairs (Ravishankar et al., IEEE TCI 2017).

Objective: minimise |X - sum_j u_j v_j'|^2 over |u_j| = 1 and v_j with at most ``counts[j]`` nonzeros; one pair after
the other, each on what those before it leave of X, then, in sweeps, each on what all others leave. With R what is left,
both steps are exact minimisers: v = R'u with all but the entries of largest magnitude set to zero; u = Rv/|Rv|.

Every u is kept as X w, so that nothing here is as long as the data have rows: with pairs (w_i, v_i) done

    R = X (I - W V'),  Rv = X z with z = v - W V'v,  R'u = h - V W'h with h = X'u = X'X z / |X z|,

so that a step is one product there and back with X (`Scatter.images`), and what is left of X is never formed.

A value holds, a row for each pair, "V", "W" and "H" (j, p), "norms" (j,), |Rv|/|v| at the end, "moves" (j,), by how
much u moved at last, and "captured" (j,), the squares of v; "worst", the largest move, "iteration" and "sweeps". Of the
pair under way, a row for each start: "v", "w" and "h" (m, p), "norm" and "moved" (m,); "steps"; "calm", whether nothing
moved at the step before, either. "begin" has the v's to begin with, as far as there are any, "seed" the others'. With
sweeps to come and one for each pair, sweeps begin there at once: pairs that have come apart, found again one after the
other, would be mixed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from princomp._typing import Array
from princomp.result import State, Value
from princomp.solvers.one_by_one import in_turn
from princomp.solvers.scatter import Scatter

NEAR = 30.0  # times tol: who moves by less is looked at
EACH_OTHER = 4.0  # times the largest move of a sweep: those after it moved each pair once more, by a little
CRUMBS = 4.0  # times what pairs are known to leave
FEW = 0.25  # of the features: v's of no more are multiplied by the entries that they have, each four times as dear
REPEATED = 1e-8  # of the largest singular value of v's of length 1: below, they repeat each other
NOTHING = 1e-26  # of |X|^2, as |Rv|^2 for |v| = 1: less is rounding, nothing is left to find


@dataclass(frozen=True)
class Pairs:
    """What is asked of pairs."""

    counts: Array  # (k,) nonzeros of each v, at the most
    total: float  # the squares of X
    tol: float  # a pair is done when u moves by no more
    max_iter: int  # or after so many steps
    starts: int = 1
    nonnegative: bool = False
    share: float = 1.0  # of the squares: pairs that hold it are enough
    sweeps: int = 0
    rounding: float = 1e-13  # of what was captured, relative to |X|^2

    def look(self, moved: Array) -> bool:
        """Tell whether u's that moved by so much may be so near the end that it is worth to measure how they move."""
        return bool((moved <= NEAR * self.tol).all())

    def is_crumbs(self, norm: Array, value: Value) -> bool:
        """Tell whether what is left is no more than what pairs leave that ended within ``tol``: nothing is left, then.

        A u that is off by its last move leaves as much of v. What is left is |X|^2 less what was captured, but for
        rounding; and |Rv|^2 of a random v of length 1 is |R|^2 / p on average, though it may be far less.
        """
        crumbs = CRUMBS * float(np.minimum(value["moves"], self.tol) ** 2 @ value["captured"])
        left = self.total - float(value["captured"].sum())
        return left <= crumbs + self.rounding * self.total and bool((norm**2 * value["V"].shape[1] <= crumbs).all())

    def kept(self, B: Array, count: int) -> Array:
        """Return the v's (m, p) of the v-step: the entries of B that are largest in magnitude, the others zero."""
        return largest(B, count, nonnegative=self.nonnegative)


def largest(B: Array, count: int, *, nonnegative: bool = False) -> Array:
    """Return B (m, p) with all but the ``count`` entries of largest magnitude of each row set to zero."""
    sizes = np.maximum(B, 0.0) if nonnegative else np.abs(B)
    if count >= B.shape[1]:
        return sizes if nonnegative else B
    kept, p = np.zeros_like(B), B.shape[1]
    for row, size, out in zip(B, sizes, kept):
        places = np.argpartition(size, p - count)[p - count :]
        out[places] = size[places] if nonnegative else row[places]
    return kept


@dataclass(frozen=True)
class At:
    """Where u's are, a row for each."""

    w: Array  # (m, p) u = Xw
    h: Array  # (m, p) X'u
    norm: Array  # (m,) |Rv| of the v of length 1 that u was made of
    moved: Array  # (m,) by how much u moved


Entries = tuple[Array | slice, Array]


def entries(v: Array) -> Entries:
    """Return which entries of v (p,) are not zero, and what they are; all of it where these are many."""
    places = np.flatnonzero(v)
    return (places, v[places]) if len(places) <= FEW * len(v) else (slice(None), v)


@dataclass(frozen=True)
class Left:
    """R = X (I - W V'): what pairs, all or all but one, leave of X, by products with it."""

    scatter: Scatter
    total: float  # |X|^2
    V: Sequence[Entries]  # of v's, j of them: they are sparse, W is not
    W: Array  # (j, p)
    but: int | None = None  # the pair that takes nothing away

    def there_and_back(self, v: Array, before: At, *, look: bool, last: float = np.inf) -> At:
        """Return where u = Rv/|Rv| is, for rows of v (m, p) of length 1, and how far from where it was before.

        ``last`` is |Rv| of the pair before this one, which those that have just begun will hardly reach.

        With ``look`` that is accumulated, with n the norms, as |X (z - n_before w_before)|^2 = (n - n_before)^2 +
        n n_before |u - u_before|^2: 1 less a cosine would not know a distance below 1e-8. It takes a product more;
        else it is (w - w_before)'(h - h_before), which has lost the digits that both h's have in common.
        """
        shares = [v[:, places] @ some for places, some in self.V]
        z = v - self._others(np.reshape(shares, (len(self.V), len(v))).T) @ self.W
        likely = np.where(before.norm > 0, before.norm, last) ** 2
        apart = [(z - before.norm[:, None] * before.w).T] if look else []
        images, squares = self.scatter.images(z.T, *apart, likely=likely)
        nothing = squares[0] <= NOTHING * self.total * np.maximum(np.einsum("ij,ij->i", z, z), 1.0)
        norm = np.where(nothing, 0.0, np.sqrt(squares[0]))
        one = np.where(norm > 0, norm, np.inf)[:, None]
        w, h = z / one, images.T / one
        if look:
            moved = (squares[1] - (norm - before.norm) ** 2) / np.where(norm > 0, norm * before.norm, 1.0)
        else:
            moved = np.einsum("ij,ij->i", w - before.w, h - before.h)
            moved = np.where(before.norm > 0, moved, np.where(norm > 0, np.inf, 0.0))
        return At(w, h, norm, np.sqrt(np.maximum(moved, 0.0)))

    def back(self, h: Array) -> Array:
        """Return R'u for h = X'u, rows (m, p)."""
        shares, left = self._others(h @ self.W.T), h.copy()
        for share, (places, some) in zip(shares.T, self.V):
            left[:, places] -= share[:, None] * some
        return left

    def _others(self, shares: Array) -> Array:
        if self.but is not None:
            shares[:, self.but] = 0.0
        return shares


def start(p: int, seed: int, begin: Array | None = None) -> Value:
    """Return the value before the first step; ``begin`` (j, p) has v's to begin with."""
    empty = np.zeros((0, p))
    return {
        "V": empty,
        "W": empty,
        "H": empty,
        "norms": np.zeros(0),
        "moves": np.zeros(0),
        "captured": np.zeros(0),
        "worst": np.array(0.0),
        "iteration": np.array(0),
        "sweeps": np.array(0),
        "seed": np.array(seed),
        "begin": empty if begin is None else begin,
        **_forget(p),
    }


def _forget(p: int) -> dict[str, Array]:
    """Return the state of a pair that has not begun."""
    nothing, none = np.zeros((0, p)), np.zeros(0)
    search = {"v": nothing, "w": nothing, "h": nothing, "norm": none, "moved": none}
    return {**search, "steps": np.array(0), "calm": np.array(False)}


def rank_one(scatter: Scatter, value: Value, *, asked: Pairs) -> Iterator[State]:
    """Yield states of pairs one after the other, then of sweeps over all of them: the objective never rises.

    The residual of a state is infinite until the pairs are done; then it is the largest by which a u moved in its last
    step, and, after a sweep, a few times the largest by which one moved in it.
    """
    step, leave = partial(_step, asked), partial(_left, scatter, asked.total)
    if not value["iteration"] and asked.sweeps and len(value["begin"]) == len(asked.counts):
        together = _together(scatter, value, asked)
        if together is not None:
            value = together.value
            yield together
    if not enough(value, asked):
        for state in in_turn(value, step, leave, k=len(asked.counts), total=asked.total):
            value = state.value
            last = enough(value, asked)
            done = last and not asked.sweeps
            yield replace(state, residual=float(value["worst"]) if done else np.inf)
            if last:
                break
    while len(value["V"]) and value["sweeps"] < asked.sweeps:
        state = _sweep(scatter, value, asked)
        value = state.value
        yield state


def enough(value: Value, asked: Pairs) -> bool:
    """Tell whether these are the pairs that were asked for."""
    captured = value["captured"]
    held = asked.share < 1 and captured.sum() >= asked.share * asked.total
    return len(captured) == len(asked.counts) or bool(held)


def pairs(value: Value) -> tuple[Array, Array]:
    """Return the v's and w's, (j, p) each, of the pairs that are done and of the one that is under way."""
    best = int(np.argmax(np.einsum("ij,ij->i", value["v"], value["v"]))) if len(value["v"]) else 0
    V, W = (np.concatenate([value[name], value[name.lower()][best : best + 1]]) for name in ("V", "W"))
    return V, W


def _left(scatter: Scatter, total: float, value: Value) -> Left:
    return Left(scatter, total, [entries(v) for v in value["V"]], value["W"])


# Pair after pair


def _step(asked: Pairs, R: Left, value: Value) -> tuple[Value, float, float]:
    """Return what a step of all starts changes: u, then v, each the best there is for the other."""
    pair = len(value["captured"])
    if not len(value["v"]):
        value = {**value, **_begun(asked, value, pair)}
    v, before = value["v"], At(value["w"], value["h"], value["norm"], value["moved"])
    look = asked.look(before.moved)
    last = float(value["norms"][-1]) if pair else np.inf
    now = R.there_and_back(_normalised(v), before, look=look, last=last)
    if not value["steps"] and pair < len(value["begin"]) and not now.norm[0]:  # nothing there: begun at random instead
        value = {**value, **_begun(asked, {**value, "begin": value["begin"][:0]}, pair)}
        v = value["v"]
        now = R.there_and_back(_normalised(v), before, look=False, last=last)
    if not value["steps"] and asked.is_crumbs(now.norm, value):
        now = replace(now, w=np.zeros_like(now.w), h=np.zeros_like(now.h))
    found = asked.kept(R.back(now.h), int(asked.counts[pair]))
    still = look and bool((now.moved <= asked.tol).all())
    # A feature that has just come in, or gone, will move u: unless that is by a tie, and moves nothing.
    settled = still and (bool(value["calm"]) or np.array_equal(found != 0, v != 0))
    captured = np.einsum("ij,ij->i", found, found)
    best = int(np.argmax(captured))
    steps = value["steps"] + 1
    if not settled and steps < asked.max_iter and captured[best] > 0:
        search = {"v": found, "w": now.w, "h": now.h, "norm": now.norm, "moved": now.moved}
        return {**search, "steps": steps, "calm": np.array(still)}, float(captured[best]), np.inf
    done = {"V": found, "W": now.w, "H": now.h, "norms": now.norm, "moves": now.moved, "captured": captured}
    kept = {name: np.concatenate([value[name], rows[best : best + 1]]) for name, rows in done.items()}
    return {**kept, "worst": np.array(kept["moves"].max()), **_forget(v.shape[1])}, 0.0, np.inf


def _normalised(v: Array) -> Array:
    lengths = np.linalg.norm(v, axis=1, keepdims=True)
    return v / np.where(lengths > 0, lengths, 1.0)


def _begun(asked: Pairs, value: Value, pair: int) -> dict[str, Array]:
    """Return the search for a pair at its beginning: at the v that is given, if one is, and at random."""
    m, p = asked.starts, value["V"].shape[1]
    v = np.random.default_rng([int(value["seed"]), pair]).standard_normal((m, p))
    if asked.nonnegative:
        v = np.abs(v)
    if pair < len(value["begin"]) and value["begin"][pair].any():
        v[0] = value["begin"][pair]
    nowhere = {"w": np.zeros((m, p)), "h": np.zeros((m, p)), "norm": np.zeros(m), "moved": np.full(m, np.inf)}
    return {"v": v, **nowhere}


# Sweeps over all pairs


def _together(scatter: Scatter, value: Value, asked: Pairs) -> State | None:
    """Return the state with all v's that are given, and the u's with which their sum comes closest to X.

    Up to lengths, which go into the v's, these are X times the pseudo-inverse of the v's: where sweeps have ended, the
    u's that they ended with. None where a pair is nothing.
    """
    begin = _normalised(value["begin"])
    k, p = begin.shape
    W = np.linalg.pinv(begin, rcond=REPEATED).T
    whole, nowhere = Left(scatter, asked.total, [], np.zeros((0, p))), np.zeros((k, p))
    now = whole.there_and_back(_normalised(W), At(nowhere, nowhere, np.zeros(k), np.zeros(k)), look=False)
    sizes = now.norm * np.linalg.norm(W, axis=1)
    kept = [asked.kept(v[None], int(count)) for v, count in zip(begin * sizes[:, None], asked.counts)]
    V = np.concatenate(kept)
    if not V.any(axis=1).all():
        return None
    # It may be the end: the first sweep measures exactly how u's move, as it does of u's that hardly moved before.
    done = {"V": V, "W": now.w, "H": now.h, "norms": np.linalg.norm(V, axis=1), "moves": np.zeros(k)}
    value = {**value, **done, "captured": np.einsum("ij,ij->i", V, V), "iteration": value["iteration"] + 1}
    return State(value, _objective(asked, V, now.w, now.h), np.inf, int(value["iteration"]))


def _sweep(scatter: Scatter, value: Value, asked: Pairs) -> State:
    """Return the state after a step of each pair on what all others leave."""
    V, W, H, norms, moves = (np.array(value[name], order="C") for name in ("V", "W", "H", "norms", "moves"))
    few = [entries(v) for v in V]
    for j in np.flatnonzero(V.any(axis=1)):
        one, R = slice(j, j + 1), Left(scatter, asked.total, few, W, but=int(j))
        before = At(W[one], H[one], norms[one], moves[one])
        now = R.there_and_back(_normalised(V[one]), before, look=asked.look(before.moved))
        if now.norm[0] > 0:
            W[one], H[one], norms[one], moves[one] = now.w, now.h, now.norm, now.moved
            V[one] = asked.kept(R.back(now.h), int(asked.counts[j]))
            few[j] = entries(V[j])
    value = {**value, "V": V, "W": W, "H": H, "norms": norms, "moves": moves}
    value |= {"captured": np.einsum("ij,ij->i", V, V), "worst": np.array(EACH_OTHER * moves.max())}
    value |= {"sweeps": value["sweeps"] + 1, "iteration": value["iteration"] + len(V)}
    return State(value, _objective(asked, V, W, H), float(value["worst"]), int(value["iteration"]))


def _objective(asked: Pairs, V: Array, W: Array, H: Array) -> float:
    """Return the squares that all pairs together leave."""
    return asked.total - 2 * float(np.vdot(V, H)) + float(np.vdot(V @ V.T, W @ H.T))
