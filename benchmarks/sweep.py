"""PCA on problems drawn at random, beside every solver of scikit-learn that captures .9999 of the optimum.

Nobody can tune to a list that is drawn anew with each seed. Medians of rounds in which all take turns.

python benchmarks/sweep.py --seed S          thirty problems of this seed
python benchmarks/sweep.py --shapes          a fixed list: shapes between those that other pages show
python benchmarks/sweep.py --quick           a few small ones, seconds: does everything run?
"""

from _objective import DOCS, GOOD, Objective, machine, write

# isort: split
import argparse
import gc
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

PROBLEMS = 30
DENSE_CELLS, SPARSE_ENTRIES = 5e7, 5e6
AUTO = ("auto", "full", "covariance_eigh", "arpack", "randomized")
ENOUGH = 10.0  # CPU seconds on a problem after which no further round begins
BRIEF = 0.3  # and until which rounds are added
HOPELESS = 5.0  # a solver with so many times the arithmetic of the leanest is not waited for
LARGE = 5e9  # multiplications, below which everybody runs
MOST_ROUNDS = 25
SLOW = 3.0  # times the fastest: such a solver runs once
EXACT_SIDE = 2500  # up to which the optimum is an eigenproblem; beyond, the most that anybody captures


@dataclass(frozen=True)
class Drawn:
    """A problem: what kind of spectrum, shape, components, precision, share of cells, offset in deviations."""

    kind: str
    shape: tuple[int, int]
    k: int
    dtype: str = "float64"
    layout: str = "dense"  # or csr, csc
    density: float = 1.0
    offset: float = 0.0
    ones: bool = False  # the last column is constant

    def __str__(self) -> str:
        n, p = self.shape
        stored = self.dtype if self.layout == "dense" else f"{self.layout} {self.density:.2%} {self.dtype}"
        extra = f", offset {self.offset:g}" if self.offset else ", a column of ones" if self.ones else ""
        return f"{self.kind} {n} x {p}, k = {self.k}, {stored}{extra}"


SHAPES = [
    Drawn("spiked", (100, 10), 3),
    Drawn("spiked", (300, 50), 10),
    Drawn("spiked", (450, 450), 10),
    Drawn("spiked", (5000, 50), 5),
    Drawn("spiked", (50_000, 300), 20),
    Drawn("spiked", (1000, 1000), 20),
    Drawn("spiked", (500, 20_000), 10),
    Drawn("spiked", (10_000, 3000), 10),
    *(
        Drawn("spiked", shape, k, "float32")
        for shape, k in [((450, 450), 10), ((5000, 50), 5), ((50_000, 300), 20), ((1000, 1000), 20)]
    ),
    Drawn("spiked", (500, 20_000), 10, "float32"),
    Drawn("spiked", (10_000, 3000), 10, "float32"),
    Drawn("noise", (20_000, 50_000), 30, layout="csr", density=0.002),
    Drawn("noise", (20_000, 50_000), 30, layout="csc", density=0.002),
    Drawn("noise", (6000, 2500), 10),
    Drawn("noise", (20_000, 3000), 10, layout="csr", density=0.01, ones=True),
]
QUICK = [
    Drawn("spiked", (100, 10), 3),
    Drawn("decay", (60, 90), 5, "float32", offset=10),
    Drawn("spiked", (300, 200), 5, layout="csr", density=0.05),
    Drawn("noise", (200, 100), 5, layout="csc", density=0.1, ones=True),
]


def draw(seed):
    """Draw thirty problems; sizes are uniform in their logarithms."""
    rng = np.random.default_rng(seed)
    drawn = []
    while len(drawn) < PROBLEMS:
        n, p = (int(np.exp(rng.uniform(*np.log(ends)))) for ends in [(50, 100_000), (5, 50_000)])
        sparse = rng.random() < 0.25 and n * p >= 1e5
        density = float(np.exp(rng.uniform(*np.log([0.001, 0.05])))) if sparse else 1.0
        if n * p * density > (SPARSE_ENTRIES if sparse else DENSE_CELLS) or n * p * density < 50:
            continue
        most = max(min(n, p) // 3, 1)
        if sparse:
            most = min(most, 100)
        k = int(np.exp(rng.uniform(0, np.log(most + 0.99))))
        kind = str(rng.choice(["spiked", "decay", "noise"]))
        offset = 0.0 if sparse else float(rng.choice([0, 0, 10, 1000]))
        layout = "csr" if sparse else "dense"
        drawn.append(Drawn(kind, (n, p), k, str(rng.choice(["float64", "float32"])), layout, density, offset))
    return drawn


def make(problem, seed):
    """Return the matrix of a problem."""
    from princomp.datasets import make_spiked

    (n, p), rng = problem.shape, np.random.default_rng([seed, *problem.shape])
    if problem.layout != "dense":
        return _sparse(problem, rng)
    if problem.kind == "spiked":
        X = make_spiked(n, p, rank=max(min(60, min(n, p) // 2), 1), random_state=rng).X
    else:
        X = rng.standard_normal((n, p))
        if problem.kind == "decay":  # of standard deviations, in directions turned by reflections
            X *= np.arange(1, p + 1) ** -0.5
            for _ in range(3):
                v = rng.standard_normal(p)
                X -= np.outer(X @ v, v * (2 / (v @ v)))
    if problem.offset:
        X += problem.offset * X[: min(n, 100)].std()
    return X.astype(problem.dtype)


def _sparse(problem, rng):
    """Return cells here and there; with signals, in factors for which more cells are there than by chance."""
    n, p = problem.shape
    values, density = rng.standard_normal, problem.density
    X = scipy.sparse.random(n, p, density=density, format="csr", rng=rng, data_rvs=values)
    if problem.kind != "noise":
        rank = min(20, max(min(n, p) // 2, 1))
        strengths = np.linspace(2, 0.5, rank) if problem.kind == "spiked" else np.arange(1, rank + 1) ** -0.5
        share = min(np.sqrt(density / rank), 1.0)
        left = scipy.sparse.random(n, rank, density=share, format="csr", rng=rng, data_rvs=values)
        right = scipy.sparse.random(rank, p, density=share, format="csr", rng=rng, data_rvs=values)
        X = X + left @ scipy.sparse.diags(strengths) @ right
    if problem.ones:
        X = scipy.sparse.hstack([X[:, :-1], np.ones((n, 1))])
    return X.asformat(problem.layout).astype(problem.dtype)


def arithmetic(solver, problem):
    """Return about how many multiplications a solver of scikit-learn makes; none is asked of "auto"."""
    (n, p), k = problem.shape, problem.k
    cells, small, large = n * p * problem.density, min(n, p), max(n, p)
    return {
        "auto": 0.0,
        "full": 6.0 * large * small**2,
        "covariance_eigh": n * p**2 + 6.0 * p**3,
        "arpack": 5 * (12.0 * cells * k + 12.0 * small * k**2),  # one vector at a time, which is as much slower
        "randomized": 2.0 * (8 if k < 0.1 * small else 5) * cells * (k + 10) + 16.0 * large * (k + 10) ** 2,
    }[solver]


def contestants(problem, X):
    """Return what takes part, by name; of sparse data, the solvers that centre them without filling them in."""
    from sklearn.decomposition import PCA as Theirs

    from princomp import PCA

    sparse = scipy.sparse.issparse(X)
    names = ("arpack", "covariance_eigh") if sparse else AUTO
    effort = {name: arithmetic(name, problem) for name in names}
    least = max(HOPELESS * min(value for value in effort.values() if value), LARGE)
    theirs = {
        name: partial(lambda name: Theirs(problem.k, svd_solver=name, random_state=0).fit(X), name)
        for name, value in effort.items()
        if value <= least
        and not (name == "arpack" and problem.k >= min(problem.shape))
        and not (sparse and name == "covariance_eigh" and problem.shape[1] > EXACT_SIDE)
    }
    return {"princomp": lambda: PCA(problem.k).fit(X)} | theirs


def measure(problem, X, rounds):
    """Return by name: the median of CPU seconds, the least that was captured; and the solver that princomp took."""
    everybody = contestants(problem, X)
    score = _score(problem, X)
    seconds, captured = {name: [] for name in everybody}, dict.fromkeys(everybody, np.inf)
    begin, solver = time.process_time(), ""
    for number in range(rounds if rounds == 1 else MOST_ROUNDS):
        if time.process_time() - begin > (ENOUGH if number < rounds else BRIEF) and number:
            break
        fastest = min((np.median(past) for name, past in seconds.items() if past), default=np.inf)
        for name, fit in everybody.items():
            if seconds[name] and name != "princomp" and np.median(seconds[name]) > SLOW * fastest:
                continue
            gc.collect()
            start = time.process_time()
            try:
                fitted = fit()
            except Exception as error:
                print(f"    {name}: {error!r}"[:200], flush=True)
                seconds[name].append(np.inf)
                captured[name] = -np.inf
                continue
            seconds[name].append(time.process_time() - start)
            captured[name] = min(captured[name], score(fitted.components_))
            solver = fitted.solver_ if name == "princomp" else solver
    best = 1.0 if problem_is_small(problem) else max(captured.values())
    return {name: (float(np.median(seconds[name])), captured[name] / best) for name in everybody}, solver


def problem_is_small(problem):
    """Tell whether the optimum itself is known."""
    return min(problem.shape) <= EXACT_SIDE and (problem.layout == "dense" or problem.shape[1] <= EXACT_SIDE)


def _score(problem, X):
    """Return a function of components that is the variance they capture, as a share of the optimum if that is known."""
    objective = Objective.__new__(Objective)
    objective.X, objective.n_components = X, problem.k
    objective.mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    objective.optimum = objective._optimum() if problem_is_small(problem) else 1.0
    return objective


def row_of(problem, found, solver):
    """Return a row of the table, and the ratio theirs / ours."""
    ours, share = found["princomp"]
    others = {name: value for name, value in found.items() if name != "princomp" and value[1] >= GOOD}
    if not others:
        return f"| {problem} | {solver} | {1e3 * ours:.2f} | nobody else | | {share:.6f} |", np.nan
    name = min(others, key=lambda name: others[name][0])
    theirs = others[name][0]
    line = f"| {problem} | {solver} | {1e3 * ours:.2f} | {1e3 * theirs:.2f} (`{name}`) | {theirs / ours:.2f} | "
    return f"{line}{share:.6f} |", theirs / ours


HEAD = """| problem | solver | ms | fastest of scikit-learn, ms | theirs / ours | captured / optimum |
|---|---|---:|---:|---:|---:|
"""


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="of the problems and their data (default 0)")
    parser.add_argument("--shapes", action="store_true", help="the fixed list in place of a drawn one")
    parser.add_argument("--only", metavar="TEXT", default="", help="problems whose line contains this")
    parser.add_argument("--rounds", type=int, default=5, help="at the most (default 5)")
    parser.add_argument("--quick", action="store_true", help="a few small problems, one round")
    parser.add_argument(
        "--output", type=Path, help="where to write (default: docs/benchmarks for whole runs of seed 0)"
    )
    options = parser.parse_args(arguments)
    problems = QUICK if options.quick else SHAPES if options.shapes else draw(options.seed)
    problems = [problem for problem in problems if options.only in str(problem)]
    if not problems:
        parser.error(f"no problem contains {options.only!r}")
    lines, ratios = [], []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for warm in QUICK:  # imports and compilation are not timed
            measure(warm, make(warm, 0), 1)
        for problem in problems:
            line, ratio = row_of(
                problem, *measure(problem, make(problem, options.seed), 1 if options.quick else options.rounds)
            )
            print(line, flush=True)
            lines.append(line)
            ratios.append(ratio)
    known = np.array([ratio for ratio in ratios if np.isfinite(ratio)])
    words = (
        f"Theirs / ours: median {np.median(known):.2f}, tenth percentile {np.quantile(known, 0.1):.2f}, "
        f"worst {known.min():.2f}; at least 1.5 in {np.mean(known >= 1.5):.0%}."
    )
    print(words, flush=True)
    path = options.output or (
        None if options.quick or options.only else DOCS / "sweep.md" if not options.shapes else None
    )
    if path:
        write(path, f"{machine()} Seed {options.seed}.\n\n{HEAD}" + "\n".join(lines) + f"\n\n{words}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
