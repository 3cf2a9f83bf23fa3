"""PCA: princomp beside every solver of scikit-learn, and beside bare BLAS and LAPACK.

python benchmarks/pca.py                     all problems; writes docs/benchmarks/pca.md and the README's table
python benchmarks/pca.py --quick             small sizes, seconds: does everything run?
python benchmarks/pca.py --only csr --seed 1 --stretch 1.2
"""

from _objective import DOCS, GOOD, Problem, Solver, machine, markdown, measure, ratio, write

# isort: split
import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.sparse

README = DOCS.parent.parent / "README.md"
OURS = "princomp"
BARE = "syrk + eigh"


def spiked(n, p, seed):
    """Sixty directions of falling strength in white noise."""
    from princomp.datasets import make_spiked

    return make_spiked(n, p, random_state=seed).X


def slow_decay(n, p, seed):
    """Singular values i^-0.5, random orthonormal factors."""
    from princomp.datasets import make_decay

    return make_decay(n, p, power=0.5, random_state=seed).X


def flat(n, p, seed):
    """White noise: no gap anywhere in the spectrum."""
    return np.random.default_rng(seed).standard_normal((n, p))


def csr(n, p, seed):
    """Sparse: one cell in a hundred, standard normal, no structure."""
    values = np.random.default_rng(seed).standard_normal
    return scipy.sparse.random(n, p, density=0.01, format="csr", rng=seed, data_rvs=values)


def csr_signals(n, p, seed):
    """Sparse: one cell in a hundred, standard normal, plus twenty sparse rank-one signals of falling strength."""
    rng = np.random.default_rng(seed + 1)
    parts = {"density": 0.01, "format": "csr", "data_rvs": rng.standard_normal}
    left = scipy.sparse.random(n, 20, rng=seed + 1, **parts)
    right = scipy.sparse.random(20, p, rng=seed + 2, **parts)
    signals = left @ scipy.sparse.diags(np.linspace(2, 0.5, 20)) @ right
    return (csr(n, p, seed) + signals).tocsr()


def problem(name, shape, k, make, seed, *tags):
    """Spell a problem on one line."""
    return Problem(name, shape, k, make, seed, frozenset(tags))


PROBLEMS = [
    problem("spiked 100000x200", (100_000, 200), 50, spiked, 5, "tall"),
    problem("spiked 20000x1000", (20_000, 1000), 50, spiked, 5, "tall"),
    problem("spiked 2000x5000", (2000, 5000), 50, spiked, 5, "wide"),
    problem("slow decay 2000x5000", (2000, 5000), 50, slow_decay, 5, "wide"),
    problem("flat 5000x2000", (5000, 2000), 10, flat, 0),
    problem("csr 100000x5000", (100_000, 5000), 20, csr, 0, "sparse"),
    problem("csr signals 100000x5000", (100_000, 5000), 20, csr_signals, 0, "sparse"),
]
QUICK = {"tall": (3000, 60), "wide": (150, 400), "sparse": (2000, 150)}


def fit_princomp(X, k):
    """Return what a user gets who sets nothing but the number of components."""
    from princomp import PCA

    return PCA(k).fit(X).components_


def fit_sklearn(X, k, solver):
    """scikit-learn, solver by name, all else default."""
    from sklearn.decomposition import PCA

    return PCA(k, svd_solver=solver, random_state=0).fit(X).components_


def fit_bare(X, k):
    """The least anyone can do on a tall matrix: X'X, less the means, and its top eigenvectors."""
    n, p = X.shape
    mean = np.ones(n) @ X / n
    gram = scipy.linalg.blas.dsyrk(1.0, X.T)
    gram = scipy.linalg.blas.dsyr(-float(n), mean, a=gram, overwrite_a=True)
    _, vectors = scipy.linalg.eigh(
        gram, lower=False, subset_by_index=(p - k, p - 1), overwrite_a=True, check_finite=False
    )
    return vectors.T[::-1]


def sklearn_accepts(solver, slow, problem):
    """Sparse input: only the solvers that centre, and the dense eigenproblem only on request."""
    if "sparse" not in problem.tags:
        return True
    return solver == "arpack" or (solver == "covariance_eigh" and slow)


def solvers(slow):
    """List everybody who takes part."""
    names = ("full", "covariance_eigh", "arpack", "randomized")
    return [
        Solver(OURS, fit_princomp),
        *(
            Solver(f"scikit-learn {name}", partial(fit_sklearn, solver=name), partial(sklearn_accepts, name, slow))
            for name in names
        ),
        Solver(BARE, fit_bare, lambda problem: "tall" in problem.tags),
    ]


def shape_of(problem, options):
    """Rows and columns after --quick and --stretch."""
    if options.quick:
        tag = next(iter(problem.tags & QUICK.keys()), None)
        n, p = QUICK.get(tag, (300, 120))
    else:
        n, p = problem.shape
    return round(n * options.stretch), round(p * options.stretch)


def summary(title, rows):
    """One line for the README: ours beside the fastest of scikit-learn that finds the components."""
    mine = next(row for row in rows if row.solver == OURS)
    others = [row for row in rows if row.solver.startswith("scikit") and not row.failure and row.captured >= GOOD]
    best = min(others, key=lambda row: row.best)
    name = best.solver.removeprefix("scikit-learn ")
    times = f"{mine.best:.2f} | {best.best:.2f} (`{name}`) | {mine.best / best.best:.2f}"
    return f"| {title} | {times} | {mine.captured:.5f} |"


def verdict(problem, rows):
    """Ratios, in words."""
    said = [f"princomp / fastest scikit-learn solver: {ratio(rows, OURS, 'scikit', 0):.2f}"]
    reaching = ratio(rows, OURS, "scikit")
    if reaching != ratio(rows, OURS, "scikit", 0):
        said.append(f"/ fastest that captures {GOOD}: {reaching:.2f}")
    if "tall" in problem.tags:
        said.append(f"/ bare {BARE}: {ratio(rows, OURS, BARE, 0):.2f}")
    return "; ".join(said)


def report(problem, options, contestants):
    """Run one problem; return its section of the page, its line of the summary, and whether princomp answered."""
    n, p = shape_of(problem, options)
    k = min(problem.n_components, 10) if options.quick else problem.n_components
    seed = problem.seed if options.seed is None else options.seed
    title = f"{problem.make.__name__.replace('_', ' ')} {n} x {p}, k = {k}"
    print(f"\n{title}, seed {seed}", flush=True)
    scaled = replace(problem, name=title, shape=(n, p), n_components=k)
    rows = measure(scaled, problem.make(n, p, seed), contestants, options.rounds)
    table, words = markdown(rows, OURS), verdict(problem, rows)
    print(f"{table}\n{words}", flush=True)
    section = f"### {title}\n\n{problem.make.__doc__} Seed {seed}.\n\n{table}\n\n{words}.\n"
    answered = not next(row.failure for row in rows if row.solver == OURS)
    return section, summary(title, rows), answered


SUMMARY = """| CPU seconds, one thread | princomp | fastest scikit-learn solver | ratio | variance captured / optimum |
|---|---:|---:|---:|---:|
"""


def write_readme(table):
    """Put the summary between its marks in the README."""
    text = README.read_text(encoding="utf-8")
    begin, end = "<!-- benchmarks: begin -->\n", "<!-- benchmarks: end -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    write(README, f"{before}{begin}{table}{end}{after}")


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="seed of the data (default: each problem's own)")
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on rows and columns")
    parser.add_argument("--only", metavar="NAME", help="problems whose name contains NAME")
    parser.add_argument("--rounds", type=int, default=9, help="at the most (default 9)")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument("--slow", action="store_true", help="also solvers that take minutes")
    parser.add_argument("--output", type=Path, help="where to write (default: docs, full runs only)")
    options = parser.parse_args(arguments)
    options.rounds = 1 if options.quick else options.rounds
    chosen = [x for x in PROBLEMS if not options.only or options.only in x.name]
    if not chosen:
        parser.error(f"no problem is called like {options.only!r}: {[x.name for x in PROBLEMS]}")
    reports = [report(problem, options, solvers(options.slow)) for problem in chosen]
    sections, lines, answers = zip(*reports, strict=True)
    complete = not (options.quick or options.only or options.stretch != 1 or options.seed is not None)
    path = options.output or (DOCS / "pca.md" if complete else None)
    table = SUMMARY + "\n".join(lines) + "\n"
    if path:
        head = f"{machine()} Best of up to {options.rounds} rounds.\n"
        write(path, "\n".join([head, table, *sections]))
    if complete and not options.output:
        write_readme(table)
    return 0 if all(answers) else 1


if __name__ == "__main__":
    sys.exit(main())
