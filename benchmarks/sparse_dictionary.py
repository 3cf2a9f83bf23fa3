"""Sparse PCA in dictionary form beside scikit-learn's SparsePCA, which has the same objective.

The objective is recomputed here from the two factors; scikit-learn keeps only one of them, so its own
last value counts. Time is CPU time of the process on one BLAS thread.

python benchmarks/sparse_dictionary.py                    all problems; writes docs/benchmarks/sparse-dictionary.md
python benchmarks/sparse_dictionary.py --quick            small sizes, seconds: does everything run?
python benchmarks/sparse_dictionary.py --only noise --seed 1 --stretch 1.2
"""

from _objective import DOCS, machine, write

# isort: split
import argparse
import gc
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

EQUAL = 1e-9  # objectives this close, relative, count as equal
SLOW = 20.0  # CPU seconds from which on a second run is not worth it


@dataclass(frozen=True)
class Problem:
    """A matrix to make, a number of components and a penalty."""

    name: str
    shape: tuple[int, int]
    k: int
    alpha: float
    make: Callable[[int, int, int], np.ndarray]  # (rows, columns, seed) -> X
    seed: int = 0


def digits(n, p, seed):
    """Handwritten digits; another size or seed draws rows with replacement and columns without."""
    from sklearn.datasets import load_digits

    X = load_digits().data
    if seed == 0 and X.shape == (n, p):
        return X
    rng = np.random.default_rng(seed)
    return X[rng.integers(0, len(X), n)][:, np.sort(rng.permutation(X.shape[1])[:p])]


def noise(n, p, seed):
    """Standard normal numbers."""
    return np.random.RandomState(seed).randn(n, p)


def planted(n, p, seed):
    """Ten sparse directions of falling strength, on 3% of the columns each, in white noise."""
    rng, size = np.random.RandomState(seed), round(0.03 * p)
    V = np.zeros((10, p))
    for j, row in enumerate(V):
        row[size * j : size * (j + 1)] = rng.choice([-1, 1], size) / np.sqrt(size)
    return (rng.randn(n, 10) * np.linspace(12, 6, 10)) @ V + rng.randn(n, p)


PROBLEMS = [
    Problem("digits", (1797, 64), 10, 1.0, digits),
    Problem("noise", (1000, 500), 10, 1.0, noise),
    Problem("planted supports", (500, 1000), 10, 3.0, planted, 7),
]


def fit_princomp(X, k, alpha):
    """Return (objective, note) of our fit with default settings."""
    from princomp import SparsePCA

    result = SparsePCA(k, formulation="dictionary", alpha=alpha).fit(X).result_
    Y, D = result.value["Y"], result.value["D"]
    note = f"{result.n_iter} iterations, residual {result.certificate.residual:.0e}"
    centred = X - X.mean(axis=0)
    return lambda: 0.5 * np.sum((centred - Y @ D.T) ** 2) + alpha * np.abs(D).sum(), note


def fit_sklearn(X, k, alpha, method):
    """Return (objective, note) of scikit-learn's fit with default settings."""
    from sklearn.decomposition import SparsePCA

    model = SparsePCA(k, alpha=alpha, method=method, random_state=0).fit(X)
    return lambda: model.error_[-1], f"{model.n_iter_} iterations"


def solvers(problem, slow):
    """List everybody who takes part, by name; scikit-learn's "lars" is the slower method on all problems."""
    arguments = {"k": problem.k, "alpha": problem.alpha}
    theirs = {
        f"scikit-learn {method}": lambda X, method=method: fit_sklearn(X, **arguments, method=method)
        for method in (("cd", "lars") if slow else ("cd",))
    }
    return {"princomp": lambda X: fit_princomp(X, **arguments)} | theirs


def measure(problem, X, rounds, slow):
    """Return {name: (best seconds, worst objective, note)}; rounds are interleaved."""
    rows = {}
    contestants = solvers(problem, slow)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fit in contestants.values():  # imports and compilation are not timed
            fit(X[:60, : X.shape[1] // 2])
        for _ in range(rounds):
            for name, fit in contestants.items():
                seconds, value, _ = rows.get(name, (np.inf, -np.inf, ""))
                if SLOW < seconds < np.inf:
                    continue
                gc.collect()
                begin = time.process_time()
                objective, note = fit(X)
                rows[name] = (min(seconds, time.process_time() - begin), max(value, objective()), note)
    return rows


def table(rows):
    """Return a table; ratios of times are theirs to ours."""
    ours = rows["princomp"][0]
    lines = ["| solver | CPU seconds | times ours | objective | |", "|---|---:|---:|---:|---|"]
    for name, (seconds, value, note) in sorted(rows.items(), key=lambda row: row[1][0]):
        shown = f"**{name}**" if name == "princomp" else name
        lines.append(f"| {shown} | {seconds:.3f} | {seconds / ours:.1f} | {value:.4f} | {note} |")
    return "\n".join(lines)


def verdict(rows):
    """Return the ratio to the faster method of scikit-learn, and how the objectives compare."""
    ours, value, _ = rows["princomp"]
    seconds, theirs, _ = min(row for name, row in rows.items() if name != "princomp")
    word = "no higher than" if value <= theirs * (1 + EQUAL) else "HIGHER than"
    return f"{seconds / ours:.0f} times faster; objective {word} scikit-learn's"


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="seed of the data (default: each problem's own)")
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on rows and columns")
    parser.add_argument("--only", metavar="NAME", help="problems whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--slow", action="store_true", help="also scikit-learn's slower method")
    parser.add_argument("--output", type=Path, help="where to write (default: docs, full runs only)")
    options = parser.parse_args(arguments)
    chosen = [problem for problem in PROBLEMS if not options.only or options.only in problem.name]
    if not chosen:
        parser.error(f"no problem is called like {options.only!r}: {[problem.name for problem in PROBLEMS]}")
    sections = []
    for problem in chosen:
        problem = replace(problem, k=3) if options.quick else problem
        n, p = (round(0.03 * side) + 40 for side in problem.shape) if options.quick else problem.shape
        n, p = round(n * options.stretch), round(p * options.stretch)
        seed = problem.seed if options.seed is None else options.seed
        X = problem.make(n, p, seed)
        title = f"{problem.name} {X.shape[0]} x {X.shape[1]}, k = {problem.k}, alpha = {problem.alpha:g}"
        rows = measure(problem, X, 1 if options.quick else options.rounds, options.slow)
        sections.append(f"### {title}\n\n{problem.make.__doc__} Seed {seed}.\n\n{table(rows)}\n\n{verdict(rows)}.\n")
        print(sections[-1], flush=True)
    complete = not (options.quick or options.only or options.stretch != 1 or options.seed is not None)
    path = options.output or (DOCS / "sparse-dictionary.md" if complete else None)
    if path:
        write(path, "\n".join([f"{machine()} Best of {options.rounds} rounds.\n", *sections]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
