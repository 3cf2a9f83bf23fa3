"""Probabilistic PCA with missing cells: CPU seconds, error of imputation and coverage, beside statsmodels' fill-em.

One BLAS thread, defaults of both, cells missing at random. The error is that of the missing cells, whose truth is
known here alone; coverage is the share of them inside the 90 % intervals of `impute`. Both run by turns, the best of
some runs counts. Writes docs/benchmarks/probabilistic.md.

    python benchmarks/probabilistic.py
    python benchmarks/probabilistic.py --quick          small sizes, nothing written
"""

import _one_thread  # noqa: F401  isort: skip

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from princomp._compiled import loops
from princomp.estimators.probabilistic_pca import ProbabilisticPCA

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
MISSING = 0.2
NORMAL_90 = 1.6448536269514722  # half of the width of a 90 % interval, in standard deviations
PROBLEMS = [
    (5000, 200, 10, 2),
    (6000, 160, 10, 3),
    (4000, 240, 12, 4),
    (1000, 100, 5, 2),
    (1200, 80, 5, 3),
    (800, 120, 6, 4),
]
QUICK = [(200, 30, 3, 2), (150, 40, 3, 3)]


def data(n, p, k, seed):
    """Return the truth, and the same with cells missing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, k)) @ rng.standard_normal((k, p)) + 0.5 * rng.standard_normal((n, p))
    holes = X.copy()
    holes[rng.random((n, p)) < MISSING] = np.nan
    return X, holes


def timed(fn):
    begin = time.process_time()
    answer = fn()
    return time.process_time() - begin, answer


def ours(holes, k):
    model = ProbabilisticPCA(k, random_state=0).fit(holes)
    return model, *model.impute(holes, return_std=True)


def peer(holes, k):
    from statsmodels.multivariate.pca import PCA

    return PCA(holes, ncomp=k, standardize=False, normalize=False, missing="fill-em").projection


def compare(n, p, k, seed, repeats):
    X, holes = data(n, p, k, seed)
    gone = np.isnan(holes)
    mine, theirs = [], []
    for _ in range(repeats):
        seconds, (model, filled, deviation) = timed(partial(ours, holes, k))
        mine.append(seconds)
        seconds, other = timed(partial(peer, holes, k))
        theirs.append(seconds)
    away = np.abs(filled - X)[gone]
    error, error_of_peer = (float(np.sqrt(np.mean((each - X)[gone] ** 2))) for each in (filled, other))
    covered = float(np.mean(away <= NORMAL_90 * deviation[gone]))
    return (
        f"| {n} x {p}, k = {k}, seed {seed} | {min(mine):.3f} | {min(theirs):.3f} | {min(theirs) / min(mine):.1f} | "
        f"{error:.5f} | {error_of_peer:.5f} | {covered:.1%} | {model.n_iter_} |"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    if (compiled := loops("missing_em")) is not None:
        compiled.warm_up()
    lines = [
        f"{MISSING:.0%} of the cells missing at random, one BLAS thread, CPU seconds for fit and imputation.",
        "",
        "| problem | princomp | statsmodels | times ours | RMSE, princomp | RMSE, statsmodels | in 90 % | steps |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(compare(*problem, 1 if options.quick else 3) for problem in (QUICK if options.quick else PROBLEMS)),
    ]
    print("\n".join(lines))
    path = options.output or (None if options.quick else DOCS / "probabilistic.md")
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
