"""Rank-1 dictionary learning: a step beside two bare products, and planted pairs found again.

A step finds u for v and v for u. It is timed beside `X @ v` and `X.T @ u` of the same float32 matrix, in memory and
from a memory map whose pages are in memory, in CPU seconds on one BLAS thread; products and steps take turns. Planted
pairs count as found if a v has a correlation above 0.9 with one of those found. Beside both stands the algorithm of the
public code of R1DL, written anew with NumPy: it keeps the largest entries by their signed value, passes over the data
twice in a step, and takes each pair off a copy of the data.

python benchmarks/rank_one.py                    needs 4 GB, a few minutes; writes docs/benchmarks/rank-one.md
python benchmarks/rank_one.py --quick            small sizes, seconds: does everything run?
python benchmarks/rank_one.py --only steps --seed 1 --stretch 1.2
python benchmarks/rank_one.py --only steps --rows 500 --features 50000
"""

from _objective import DOCS, machine, write

# isort: split
import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

PAIRS, STEPS, SWEEPS = 20, 8, 4
SHARE = 0.07  # of the features: nonzeros of a v
FOUND = 0.9  # |correlation| from which on a v counts as found


# The public algorithm, written anew


def signed_step(S, u, count):
    """Return the v of the largest *signed* entries, its places, and u: two passes over S."""
    v = u @ S
    places = np.argpartition(-v, count)[:count]
    u = S[:, places] @ v[places]
    kept = np.zeros_like(v)
    kept[places] = v[places]
    return kept, u / np.linalg.norm(u)


def signed_pairs(X, k, count, rng, tol=1e-4, max_iter=100, tell=lambda what: None):
    """Return U (n, k) and V (k, p); S = X less pairs is formed."""
    S, U, V = X.copy(), np.zeros((len(X), k), X.dtype), np.zeros((k, X.shape[1]), X.dtype)
    for j in range(k):
        u = rng.random(len(X)).astype(X.dtype)
        u -= u.mean()
        u /= np.linalg.norm(u)
        for _ in range(max_iter):
            before = u
            V[j], u = signed_step(S, before, count)
            tell(("step", j))
            if np.linalg.norm(u - before) < tol:
                break
        U[:, j] = u
        S = S - np.outer(u, V[j])
        tell(("deflation", j))
    return U, V


# Seconds of a step


class Clock:
    """CPU seconds of each step, as multiples of two bare products that follow it."""

    def __init__(self, X, seed):
        rng = np.random.default_rng(seed)
        self.X, self.v, self.u = X, *(rng.standard_normal(side).astype(X.dtype) for side in X.shape[::-1])
        self.ratios, self.bare = {}, []
        self.last = time.process_time()

    def tell(self, what, steps=1):
        """Note what has just ended, then time the bare products."""
        begin = time.process_time()
        self.X @ self.v
        self.X.T @ self.u
        self.bare.append(time.process_time() - begin)
        self.ratios.setdefault(what, []).append((begin - self.last) / steps / self.bare[-1])
        self.last = time.process_time()

    def state(self, state):
        """Take part in a fit as its callback."""
        if sweeps := int(state.value["sweeps"]):
            return self.tell(("sweep", sweeps), len(state.value["captured"]))
        done = len(state.value["captured"])
        # With the last step of a pair the count has gone up: the state belongs to the pair before.
        return self.tell(("step", done if len(state.value["v"]) else done - 1))

    def of(self, kind):
        """Return all ratios of a kind."""
        return [ratio for (name, _), ratios in self.ratios.items() if name == kind for ratio in ratios]

    def row(self, k):
        """Return the bare seconds, and the medians at the first pair, at the last, and in a sweep."""
        first = self.ratios[("step", 0)][1:]  # what comes before the first step is no part of it
        each = (first, self.ratios[("step", k - 1)], self.of("sweep") or [np.nan])
        return float(np.median(self.bare)), [float(np.median(ratios)) for ratios in each]


def time_princomp(X, k, seed, **more):
    """Time steps of a fit that makes as many as it may."""
    from princomp import RankOneDictionary

    fit = {"nonzeros": SHARE, "refine": SWEEPS, "tol": 0, "max_iter": STEPS, "random_state": seed, **more}
    RankOneDictionary(1, **fit).fit(X[:, :500])  # imports are not the subject
    clock = Clock(X, seed)
    RankOneDictionary(k, callback=clock.state, **fit).fit(X)
    return clock.row(k)


def time_signed(X, k, seed):
    """Time steps of the public algorithm, and what it costs to take a pair off."""
    clock = Clock(X, seed)
    signed_pairs(X, k, round(SHARE * X.shape[1]), starts(seed), 0.0, STEPS, clock.tell)
    return clock.row(k), float(np.median(clock.of("deflation")))


def starts(seed):
    """Return the generator of starts."""
    return np.random.default_rng([seed, 1])


def steps(n, p, k, seed, folder=None):
    """Return the section on seconds."""
    X = np.random.default_rng(seed).standard_normal((n, p), dtype=np.float32)
    rows = {"**princomp**, in memory": time_princomp(X, k, seed)}
    rows["**princomp**, `center=True`"] = time_princomp(X, k, seed, center=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        np.save(path := Path(place) / "X.npy", X)
        mapped = np.load(path, mmap_mode="r")
        mapped.sum()  # its pages are in memory from now on
        rows["**princomp**, memory map"] = time_princomp(mapped, k, seed)
        rows["**princomp**, memory map, `center=True`"] = time_princomp(mapped, k, seed, center=True)
        del mapped
    rows["public algorithm"], deflation = time_signed(X, k, seed)
    lines = [
        f"### A step: {n} x {p} float32, {SHARE:.0%} of the features",
        "",
        f"CPU seconds of a step, relative to the two bare products `X @ v` and `X.T @ u`: medians of {STEPS} steps of "
        f"a pair, and of {SWEEPS} sweeps over {k} pairs. Standard normal numbers, seed {seed}.",
        "",
        f"| | two bare products, seconds | pair 1 | pair {k} | in a sweep |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, (bare, ratios) in rows.items():
        cells = " | ".join("" if np.isnan(ratio) else f"{ratio:.2f}" for ratio in ratios)
        lines.append(f"| {name} | {bare:.3f} | {cells} |")
    off = f"To take a pair off a copy, as the public algorithm does, costs {deflation:.1f} times the two products."
    return "\n".join([*lines, "", off, ""])


# Planted pairs


def planted(n, p, k, seed):
    """Return X, the v's (k, p), and the share of noise: unit u's, entries N(0, 10^2) of v, noise 0.3 N(0, 1)."""
    rng, count = np.random.default_rng(seed), round(SHARE * p)
    U = rng.standard_normal((n, k))
    U /= np.linalg.norm(U, axis=0)
    V = np.zeros((k, p))
    for row in V:
        row[rng.choice(p, count, replace=False)] = 10 * rng.standard_normal(count)
    noise = 0.3 * rng.standard_normal((n, p))
    X = U @ V + noise
    return X, V, float(np.vdot(noise, noise) / np.vdot(X, X))


def ways(k):
    """Return ways to find k pairs, (X, seed) -> (U, V), by name."""
    from princomp import RankOneDictionary

    def fit(X, seed, **more):
        model = RankOneDictionary(k, nonzeros=SHARE, random_state=seed, **more).fit(X)
        return model.atoms_, model.components_

    return {
        "public algorithm": lambda X, seed: signed_pairs(X, k, round(SHARE * X.shape[1]), starts(seed)),
        "**princomp**, one by one": fit,
        "**princomp**, `n_init=5`": lambda X, seed: fit(X, seed, n_init=5),
        "**princomp**, `refine=1`": lambda X, seed: fit(X, seed, refine=1),
        "**princomp**, `refine=5`": lambda X, seed: fit(X, seed, refine=5),
        "**princomp**, `refine=20`": lambda X, seed: fit(X, seed, refine=20),
    }


def recovered(found, true):
    """Return the share of the true v's that some v is like."""
    k = len(true)
    with np.errstate(invalid="ignore", divide="ignore"):
        alike = np.nan_to_num(np.corrcoef(true, found)[:k, k:])
    return float((np.abs(alike).max(axis=1) > FOUND).mean())


def recovery(n, p, k, seeds):
    """Return the section on planted pairs."""
    rows = {name: [] for name in ways(k)}
    floors = []
    for seed in seeds:
        X, V, floor = planted(n, p, k, seed)
        floors.append(floor)
        for name, find in ways(k).items():
            begin = time.process_time()
            U, found = find(X, seed)
            seconds = time.process_time() - begin
            left = X - U @ found
            rows[name].append((recovered(found, V), np.vdot(left, left) / np.vdot(X, X), seconds))
    lines = [
        f"### Planted pairs: {n} x {p}, {k} pairs of {round(SHARE * p)} features",
        "",
        f"u's Gaussian, of length 1; entries of v's N(0, 10²), at random places; noise 0.3 N(0, 1), which has "
        f"{np.median(floors):.4f} of the squares. Medians of seeds {seeds[0]} to {seeds[-1]}, "
        "and the least and the most of them.",
        "",
        f"| | v's found, correlation above {FOUND} | share of the squares left | CPU seconds |",
        "|---|---:|---:|---:|",
    ]
    for name, each in rows.items():
        found, left, seconds = np.transpose(each)
        lines.append(
            f"| {name} | {np.median(found):.0%} ({found.min():.0%} to {found.max():.0%}) | {np.median(left):.4f} | "
            f"{np.median(seconds):.2f} |"
        )
    return "\n".join([*lines, ""])


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000, help="of the matrix for steps")
    parser.add_argument("--features", type=int, default=200_000, help="of the matrix for steps")
    parser.add_argument("--seed", type=int, default=0, help="of the data, the first of the planted ones")
    parser.add_argument("--seeds", type=int, default=8, help="how many planted problems")
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on rows and columns")
    parser.add_argument("--only", choices=["steps", "planted"])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--folder", help="where the temporary file goes")
    parser.add_argument("--output", type=Path, help="where to write (default: docs, full runs only)")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    sizes = [(100, 3000), (60, 600)] if options.quick else [(options.rows, options.features), (200, 5000)]
    (n, p), small = ((round(side * options.stretch) for side in size) for size in sizes)
    k, seeds = (4, 2) if options.quick else (PAIRS, options.seeds)
    sections = []
    if options.only != "planted":
        sections.append(steps(n, p, k, options.seed, options.folder))
        print(sections[-1], flush=True)
    if options.only != "steps":
        sections.append(recovery(*small, k, range(options.seed, options.seed + seeds)))
        print(sections[-1], flush=True)
    usual = [parser.get_default(name) == getattr(options, name) for name in ("rows", "features", "seed", "seeds")]
    complete = all(usual) and not (options.quick or options.only or options.stretch != 1)
    path = options.output or (DOCS / "rank-one.md" if complete else None)
    if path:
        write(path, "\n".join([f"{machine()}\n", *sections]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
