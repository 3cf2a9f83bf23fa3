"""Sparse PCA by a share of the variance beside the same counts given, and sparse rows beside the same rows dense.

Variances are recomputed here from the loadings, each on what those before it left. Time is CPU time of the process on
one BLAS thread; those that are compared are taken by turns.

python benchmarks/sparse_counts.py                      all problems; writes docs/benchmarks/sparse-counts.md
python benchmarks/sparse_counts.py --quick              small sizes, seconds: does everything run?
python benchmarks/sparse_counts.py --only noise --seed 1
"""

from _objective import DOCS, machine, write

# isort: split
import argparse
import gc
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

K = 2


def noise(n, p, seed):
    """Standard normal numbers."""
    return np.random.default_rng(seed).standard_normal((n, p))


def spiked(n, p, seed):
    """Standard normal numbers; five sets of thirty columns share a factor each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(5):
        X[:, rng.permutation(p)[:30]] += (3 - 0.3 * j) * rng.standard_normal((n, 1))
    return X


def digits(n, p, seed):
    """Handwritten digits."""
    from sklearn.datasets import load_digits

    return load_digits().data[:n, :p]


def cancer(n, p, seed):
    """Breast cancer, columns divided by their standard deviation."""
    from sklearn.datasets import load_breast_cancer

    X = load_breast_cancer().data[:n, :p]
    return X / X.std(axis=0)


def words(n, p, seed, density=0.02):
    """Counts of words in documents of ten topics, as CSR."""
    rng = np.random.default_rng(seed)
    likely = rng.permutation(1 / np.arange(1, p + 1) ** 0.8) * rng.gamma(0.3, size=(10, p))
    likely *= density * p / likely.sum(axis=1, keepdims=True)
    return sp.csr_array(rng.poisson(likely[rng.integers(0, 10, n)]).astype(float))


COUNTS = [
    (noise, 200, 1000),
    (noise, 200, 2000),
    (noise, 200, 5000),
    (noise, 1000, 300),
    (spiked, 300, 3000),
    (digits, 1797, 64),
    (cancer, 569, 30),
]
STORAGES = [(words, 2000, 800, 0.1), (words, 300, 3000, 0.05), (words, 2000, 4000, 0.015)]
FORMULATIONS = {
    "a count": {"nonzeros": 10},
    "a share of the variance": {},
    "regression": {"formulation": "regression"},
    "dictionary": {"formulation": "dictionary"},
    "constrained": {"formulation": "constrained"},
}


def fit(X, **how):
    """Return CPU seconds and the fitted model."""
    from princomp import SparsePCA

    gc.collect()
    begin = time.process_time()
    model = SparsePCA(K, **how).fit(X)
    return time.process_time() - begin, model


def by_turns(rounds, *fits):
    """Return the median seconds of each fit, and its model; the first round is for imports and compilation."""
    taken, models = [[] for _ in fits], [None] * len(fits)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for turn in range(rounds + 1):
            for i, each in enumerate(fits):
                seconds, models[i] = each()
                taken[i] += [seconds] if turn else []
    return [float(np.median(each)) for each in taken], models


def variances(X, V):
    """Variance of each component in what those before it left of X: projections of the scores."""
    X, found = X - X.mean(axis=0), []
    for v in V.T:
        score = X @ v
        found.append(float(score @ score) / (len(X) - 1))
        X = X - np.outer(score, score @ X) / max(float(score @ score), 1e-300)
    return np.array(found)


def counts_row(make, n, p, options):
    """One row: the share, and the counts that it led to, given."""
    X = make(n, p, options.seed)
    share = fit(X)[1]
    counts = share.nonzeros_.tolist()
    seconds, models = by_turns(options.rounds, lambda: fit(X), lambda: fit(X, nonzeros=counts))
    one, other = (variances(X, model.components_.T) for model in models)
    worst = float((one / other).min())
    shown = f"{seconds[0]:.3f} | {seconds[1]:.3f} | {seconds[0] / seconds[1]:.2f} | {worst:.9f}"
    return f"| {make.__name__} {X.shape[0]} x {X.shape[1]} | {', '.join(map(str, counts))} | {shown} |"


def storage_rows(make, n, p, density, options):
    """Rows of one matrix: each formulation, sparse and dense."""
    sparse = make(n, p, options.seed, density)
    sparse = sparse[:, np.flatnonzero(sparse.sum(axis=0))]
    dense, cells = sparse.toarray(), 100 * sparse.nnz / np.prod(sparse.shape)
    title = f"{make.__name__} {sparse.shape[0]} x {sparse.shape[1]}, {cells:.1f} %"
    for name, how in FORMULATIONS.items():
        seconds, models = by_turns(
            options.rounds, lambda how=how: fit(sparse, **how), lambda how=how: fit(dense, **how)
        )
        ratio = models[0].result_.objective / models[1].result_.objective
        shown = f"{seconds[0]:.3f} | {seconds[1]:.3f} | {seconds[0] / seconds[1]:.2f} | {ratio:.6f}"
        yield f"| {title} | {name} | {shown} |"


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.add_argument("--only", metavar="NAME", help="problems whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--output", type=Path, help="where to write (default: docs, full runs only)")
    options = parser.parse_args(arguments)
    most = 120 if options.quick else 10**9
    options.rounds = 1 if options.quick else options.rounds
    chosen = [problem for problem in COUNTS if not options.only or options.only in problem[0].__name__]
    stored = [problem for problem in STORAGES if not options.only or options.only in problem[0].__name__]
    if not (chosen or stored):
        parser.error(f"no problem is called like {options.only!r}.")
    lines = [
        "| problem | features of the two | seconds, by share | counts given | times those | variance / given |",
        "|---|---|---:|---:|---:|---:|",
    ]
    tables = [[], []]
    for make, n, p in chosen:
        tables[0].append(counts_row(make, min(n, most), min(p, most), options))
        print(tables[0][-1], flush=True)
    for make, n, p, density in stored:
        for row in storage_rows(make, min(n, most), min(p, most), density, options):
            tables[1].append(row)
            print(row, flush=True)
    second = ["| rows | formulation | seconds, CSR | dense | times dense | objective / dense |", lines[1]]
    page = [f"{machine()} Median of {options.rounds} rounds. Seed {options.seed}.", ""]
    page += ["### By a share of the variance, and the same counts given", "", *lines, *tables[0], ""]
    page += ["### Sparse rows, and the same rows dense", "", *second, *tables[1]]
    complete = not (options.quick or options.only or options.seed)
    path = options.output or (DOCS / "sparse-counts.md" if complete else None)
    if path:
        write(path, "\n".join(page))
    return 0


if __name__ == "__main__":
    sys.exit(main())
