"""Sparse PCA by number of features beside abess: variance of the components found, and seconds.

Variances are recomputed here from the loadings. abess gets the covariance matrix, and, in a row of its own, the data.
Time is CPU time of the process on one BLAS thread. abess is under the GPL: pip install "princomp[bench-gpl]".

python benchmarks/sparse_cardinality.py                     all problems; writes docs/benchmarks/sparse-cardinality.md
python benchmarks/sparse_cardinality.py --quick             small sizes, seconds: does everything run?
python benchmarks/sparse_cardinality.py --only factor --seed 1 --stretch 1.2
"""

from _objective import DOCS, machine, version, write

# isort: split
import argparse
import gc
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

EQUAL = 1e-9  # variances this close, relative, count as equal
MOST_SQUARE = 2000  # columns up to which a competitor that forms the covariance takes part


@dataclass(frozen=True)
class Problem:
    """A matrix to make, a number of components and of features in each."""

    name: str
    shape: tuple[int, int]
    k: int
    nonzeros: int
    make: Callable[[int, int, int], np.ndarray]  # (rows, columns, seed) -> X
    generated: bool = False  # sizes can be changed


def digits(n, p, seed):
    """Handwritten digits; columns that do not vary are left out. Another seed draws rows with replacement."""
    from sklearn.datasets import load_digits

    return drawn(load_digits().data, seed)


def cancer(n, p, seed):
    """Breast cancer, columns divided by their standard deviation. Another seed draws rows with replacement."""
    from sklearn.datasets import load_breast_cancer

    X = drawn(load_breast_cancer().data, seed)
    return X / X.std(axis=0)


def drawn(X, seed):
    """Return X, or a sample of its rows, without columns that do not vary."""
    X = X if seed == 0 else X[np.random.default_rng(seed).integers(0, len(X), len(X))]
    return X[:, X.std(axis=0) > 0]


def factor(n, p, seed):
    """Standard normal numbers; ten columns share a factor of standard deviation 5."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[:, rng.permutation(p)[:10]] += 5 * rng.standard_normal((n, 1))
    return X


PROBLEMS = [
    Problem("digits", (1797, 61), 10, 10, digits),
    Problem("breast cancer", (569, 30), 1, 10, cancer),
    Problem("breast cancer, ten components", (569, 30), 10, 10, cancer),
    Problem("factor", (49, 50), 1, 10, factor, True),
    Problem("factor", (60, 100), 1, 10, factor, True),
    Problem("factor", (200, 500), 1, 10, factor, True),
    Problem("factor", (200, 5000), 1, 20, factor, True),
]


def covariance(X):
    """The covariance, symmetric to the last bit, and positive definite (abess refuses rounding below zero)."""
    S = np.cov(X.T)
    return (S + S.T) / 2 + 1e-10 * np.trace(S) / len(S) * np.eye(len(S))


def ours(X, S, problem):
    """Return loadings (p, k) and a note; from the covariance where it is at hand."""
    from princomp import SparsePCA

    model = SparsePCA(problem.k, nonzeros=problem.nonzeros)
    model = model.fit(X) if S is None else model.fit_covariance(S)
    return model.components_.T, f"gap of the first at most {100 * model.certificate_.gap[0]:.1f} %"


def abess(problem, **given):
    """Return loadings (p, k) of abess and a note."""
    from abess.decomposition import SparsePCA

    sizes = np.zeros((problem.nonzeros, problem.k), dtype=int)
    sizes[-1] = 1
    model = SparsePCA(support_size=sizes).fit(**given, number=problem.k)
    V = np.asarray(model.coef_).reshape(-1, problem.k)
    most = int((V != 0).sum(axis=0).max())
    return V / np.linalg.norm(V, axis=0), f"{most} nonzeros" if most > problem.nonzeros else ""


def adjusted(S, V):
    """Zou's adjusted variance of all components together: R of the QR of the scores."""
    values, vectors = np.linalg.eigh(S)
    root = (vectors * np.sqrt(np.maximum(values, 0))).T
    return float(np.sum(np.diag(np.linalg.qr(root @ V)[1]) ** 2))


def contestants(problem, X, S):
    """List everybody who takes part, by name."""
    if S is None:
        return {"princomp": lambda: ours(X, None, problem)}
    found = {"princomp": lambda: ours(X, S, problem)}
    if find_spec("abess") is not None:
        found["abess, covariance"] = lambda: abess(problem, Sigma=S)
        found["abess, data"] = lambda: abess(problem, X=X)
    return found


def measure(problem, X, S, rounds):
    """Return {name: (best seconds, loadings, note)}; rounds are interleaved."""
    rows = {}
    everybody = contestants(problem, X, S)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rounds + 1):
            for name, fit in everybody.items():
                gc.collect()
                begin = time.process_time()
                V, note = fit()
                seconds = time.process_time() - begin
                # The first round is for imports and compilation.
                rows[name] = (min(seconds, rows[name][0]) if name in rows else np.inf, V, note)
    return rows


def table(rows, variance):
    """Return a table; ratios of times are theirs to ours."""
    mine = rows["princomp"][0]
    lines = [
        "| solver | CPU seconds | times ours | variance of the first | adjusted, all | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for name, (seconds, V, note) in rows.items():
        shown = f"**{name}**" if name == "princomp" else name
        first, all_of_them = variance(V)
        lines.append(f"| {shown} | {seconds:.4f} | {seconds / mine:.2f} | {first:.6g} | {all_of_them:.6g} | {note} |")
    return "\n".join(lines)


def on_the_same_matrices(problem, S, V):
    """Return our variance as a share of abess's, component by component, each on what ours before it left."""
    shares = []
    for v in V.T:
        A = (S + S.T) / 2 + 1e-10 * np.trace(S) / len(S) * np.eye(len(S))
        try:
            w = abess(Problem("", A.shape, 1, problem.nonzeros, problem.make), Sigma=A)[0][:, 0]
            shares.append(float(v @ A @ v) / float(w @ A @ w))
        except ValueError:  # it finds the matrix not positive semidefinite
            shares.append(np.nan)
        image = S @ v
        S = S - np.outer(image, image) / float(v @ image)
    return np.array(shares)


def verdict(problem, rows, S):
    """Say how values and seconds compare."""
    if "abess, covariance" not in rows:
        return "" if S is None else 'abess is not installed: pip install "princomp[bench-gpl]".'
    shares = on_the_same_matrices(problem, S, rows["princomp"][1])
    word = "never below" if (shares[np.isfinite(shares)] >= 1 - EQUAL).all() else "BELOW"
    ratio = rows["princomp"][0] / rows["abess, covariance"][0]
    return (
        f"Component by component, on the same deflated matrix: variance {word} that of abess "
        f"({np.nanmin(shares):.6f} to {np.nanmax(shares):.4f} times). {ratio:.1f} times its time."
    )


def section(problem, options):
    """Run a problem; return its part of the page."""
    n, p = problem.shape
    if options.quick:
        n, p = min(n, 60), min(p, 80)
    if problem.generated:
        n, p = round(n * options.stretch), round(p * options.stretch)
    X = problem.make(n, p, options.seed)
    S = covariance(X) if X.shape[1] <= MOST_SQUARE else None
    rows = measure(problem, X, S, 1 if options.quick else options.rounds)

    def variance(V):
        centred = X - X.mean(axis=0)
        first = float(np.sum((centred @ V[:, 0]) ** 2)) / (len(X) - 1)
        return first, first if problem.k == 1 else adjusted(S, V)

    title = f"{problem.name} {X.shape[0]} x {X.shape[1]}, {problem.k} of {problem.nonzeros} features"
    about = f"{problem.make.__doc__} Seed {options.seed}."
    return f"### {title}\n\n{about}\n\n{table(rows, variance)}\n\n{verdict(problem, rows, S)}\n"


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on rows and columns of generated data")
    parser.add_argument("--only", metavar="NAME", help="problems whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--output", type=Path, help="where to write (default: docs, full runs only)")
    options = parser.parse_args(arguments)
    chosen = [problem for problem in PROBLEMS if not options.only or options.only in problem.name]
    if not chosen:
        parser.error(f"no problem is called like {options.only!r}: {[problem.name for problem in PROBLEMS]}")
    sections = []
    for problem in chosen:
        sections.append(section(problem, options))
        print(sections[-1], flush=True)
    peers = f" abess {version('abess')}." if find_spec("abess") is not None else ""
    complete = not (options.quick or options.only or options.stretch != 1 or options.seed)
    path = options.output or (DOCS / "sparse-cardinality.md" if complete else None)
    if path:
        write(path, "\n".join([f"{machine()}{peers} Best of {options.rounds} rounds.\n", *sections]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
