"""Sparse components of known supports, beside scikit-learn, abess and PyPI's sparsepca: who finds the features?

Time is CPU time of the process on one BLAS thread; supports are compared here.

python benchmarks/sparse_supports.py                      all problems; writes docs/benchmarks/sparse-supports.md
python benchmarks/sparse_supports.py --quick              small sizes, seconds: does everything run?
python benchmarks/sparse_supports.py --only "seed 8"
"""

from _objective import DOCS, machine, write

# isort: split
import argparse
import gc
import importlib.util
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NOTES = """F1 is that of supports, each planted component beside the one found that is most like it, averaged over
components. princomp and abess are told how many features a component has. scikit-learn takes a penalty, here 3, and
sparsepca weights, here those that leave the right number in our regression formulation (finding them is not timed).
abess is given the covariance, since from data with fewer rows than columns it returns dense components, and one
component at a time, deflated here by Schur complements: asked for two of a covariance, it fails to allocate or to end.
"""

K = 10
SHARE = 0.03  # of the columns, in each component
PEERS = {"abess": 'pip install "princomp[bench-gpl]"', "sparsepca": 'pip install "princomp[bench]"'}


@dataclass(frozen=True)
class Problem:
    """Ten sparse directions of falling strength in white noise."""

    n: int
    p: int
    seed: int

    @property
    def name(self):
        return f"{self.n} x {self.p}, seed {self.seed}"

    @property
    def size(self):
        return round(SHARE * self.p)

    def make(self):
        """Return X and the planted directions, (K, p)."""
        rng = np.random.RandomState(self.seed)
        V = np.zeros((K, self.p))
        for j, row in enumerate(V):
            row[self.size * j : self.size * (j + 1)] = rng.choice([-1, 1], self.size) / np.sqrt(self.size)
        return (rng.randn(self.n, K) * np.linspace(12, 6, K)) @ V + rng.randn(self.n, self.p), V


PROBLEMS = [Problem(500, 1000, 7), Problem(500, 1000, 8), Problem(600, 1000, 7), Problem(500, 1200, 7)]


def f1(components, planted):
    """Return the mean F1 of supports; each planted component takes the one most like it."""
    scores = []
    for v in planted:
        best = max(components, key=lambda c: abs(c @ v) / max(np.linalg.norm(c), 1e-300))
        both = np.count_nonzero((best != 0) & (v != 0))
        scores.append(2 * both / (np.count_nonzero(best) + np.count_nonzero(v)))
    return float(np.mean(scores))


def ours(formulation):
    """Return a fit of ours, told the number of nonzeros."""

    def fit(X, size):
        from princomp import SparsePCA

        return SparsePCA(K, formulation=formulation, nonzeros=size).fit(X).components_

    return fit


def fit_sklearn(X, size):
    """Return scikit-learn's components; it takes a penalty, here 3, the same for all sizes."""
    from sklearn.decomposition import SparsePCA

    return SparsePCA(K, alpha=3, random_state=0).fit(X).components_


def fit_abess(X, size):
    """Return abess's components, one at a time, from the covariance."""
    from abess.decomposition import SparsePCA

    S = np.cov(X.T)
    found = []
    for _ in range(K):
        S = (S + S.T) / 2 + 1e-8 * np.eye(len(S))  # it takes rounding for a negative eigenvalue
        x = SparsePCA(support_size=size).fit(Sigma=S).coef_.ravel()
        x = x / np.linalg.norm(x)
        image = S @ x
        S = S - np.outer(image, image) / (x @ image)
        found.append(x)
    return np.array(found)


def fit_sparsepca(X, size):
    """Return sparsepca's components, with weights and ridge that leave the right number of nonzeros in ours."""
    import sparsepca

    weights, ridge = known_weights(X, size)
    centred = X - X.mean(axis=0)  # a copy: it writes into what it is given
    begin = time.process_time()
    found = sparsepca.spca(centred, weights[:, None], ridge, k=K, normalize=False)["loadings"].T
    return found, time.process_time() - begin


def known_weights(X, size):
    """Return the weights of our regression formulation, and its ridge."""
    from princomp import SparsePCA

    ridge = 1e-6 * np.linalg.norm(X - X.mean(axis=0), 2) ** 2
    return SparsePCA(K, formulation="regression", nonzeros=size, ridge=ridge).fit(X).alpha_, ridge


def contestants():
    """List everybody who takes part, by name, and the lines that install who is missing."""
    everybody = {
        "princomp dictionary": ours("dictionary"),
        "princomp regression": ours("regression"),
        "princomp constrained": ours("constrained"),
        "scikit-learn": fit_sklearn,
        "abess": fit_abess,
        "sparsepca": fit_sparsepca,
    }
    missing = {name: line for name, line in PEERS.items() if importlib.util.find_spec(name) is None}
    return {name: fit for name, fit in everybody.items() if name not in missing}, missing


def measure(problem, rounds):
    """Return {name: (best CPU seconds, worst F1, fewest and most nonzeros)}; rounds are interleaved."""
    X, planted = problem.make()
    fits, _ = contestants()
    rows = {}
    for _ in range(rounds):
        for name, fit in fits.items():
            gc.collect()
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = fit(X, problem.size)
            seconds = time.process_time() - begin
            if isinstance(found, tuple):  # who needs weights is not charged for finding them
                found, seconds = found
            counts = np.count_nonzero(found, axis=1)
            best, worst, _ = rows.get(name, (np.inf, np.inf, ""))
            rows[name] = (min(best, seconds), min(worst, f1(found, planted)), f"{counts.min()} to {counts.max()}")
    return rows


def table(rows):
    """Return a table, in the order of contestants."""
    lines = ["| solver | F1 of supports | CPU seconds | nonzeros |", "|---|---:|---:|---|"]
    for name, (seconds, score, counts) in rows.items():
        shown = f"**{name}**" if name.startswith("princomp") else name
        lines.append(f"| {shown} | {score:.4f} | {seconds:.2f} | {counts} |")
    return "\n".join(lines)


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="NAME", help="problems whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one small problem, one round")
    parser.add_argument("--output", type=Path, help="where to write (default: docs, full runs only)")
    options = parser.parse_args(arguments)
    problems = [Problem(80, 200, 7)] if options.quick else PROBLEMS
    chosen = [problem for problem in problems if not options.only or options.only in problem.name]
    if not chosen:
        parser.error(f"no problem is called like {options.only!r}: {[problem.name for problem in problems]}")
    for name, line in contestants()[1].items():
        print(f"{name} is not here and does not take part; to install it: {line}")
    warm_up = Problem(60, 100, 0)
    measure(warm_up, 1)  # imports and compilation are not timed
    sections = []
    for problem in chosen:
        rows = measure(problem, 1 if options.quick else options.rounds)
        title = f"### {problem.name}, {K} components of {problem.size} features"
        sections.append(f"{title}\n\n{table(rows)}\n")
        print(sections[-1], flush=True)
    path = options.output or (None if options.quick or options.only else DOCS / "sparse-supports.md")
    if path:
        write(path, "\n".join([f"{machine()} Best time and worst F1 of {options.rounds} rounds.\n", NOTES, *sections]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
