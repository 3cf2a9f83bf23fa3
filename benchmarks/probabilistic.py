"""Probabilistic PCA with missing cells beside statsmodels' fill-em; mixtures of it beside GaussianMixture; choices.

One BLAS thread, defaults of both, cells missing at random. The error is that of the missing cells, whose truth is
known here alone; coverage is the share of them inside the 90 % intervals of `impute`. Both run by turns, the best of
some runs counts.

Mixtures have five starts, as scikit-learn's `GaussianMixture(covariance_type="full")` beside them, each with its own
`tol` and `max_iter`: medians over five seeds. With as many components as features less one they are the same model, so
that likelihoods, each by its own `score`, can be compared; with fewer ours is the more frugal one. Then the seconds of
`n_components="bic"`. Writes docs/benchmarks/probabilistic.md.

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
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.mixture import GaussianMixture

from princomp import PCA, ProbabilisticPCA, ProbabilisticPCAMixture
from princomp._compiled import loops

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
STARTS = 5
SHARES = (0.0, 0.05, 0.2)  # of cells that are missing where a number of components is chosen
SEEDS = range(5)
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


def clusters(n, p, m, k, seed):
    """Groups of rows around subspaces of their own."""
    rng = np.random.default_rng(seed)
    return np.vstack(
        [
            rng.standard_normal((n // m, k)) @ rng.standard_normal((k, p))
            + 0.5 * rng.standard_normal((n // m, p))
            + 2 * rng.standard_normal(p)
            for _ in range(m)
        ]
    )


def standardised(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def mixtures(quick):
    """(name, rows, clusters, components)."""
    if quick:
        return [("groups", clusters(200, 6, 2, 2, 0), 2, 5)]
    digits = PCA(20, solver="eigh").fit_transform(load_digits().data)
    iris, wine, cancer = load_iris().data, standardised(load_wine().data), standardised(load_breast_cancer().data)
    some, more, noise = clusters(2000, 20, 4, 3, 0), clusters(10_000, 10, 5, 2, 1), clusters(1000, 10, 1, 0, 2)
    return [
        ("iris", iris, 3, 2),
        ("iris", iris, 3, 3),
        ("wine, standardised", wine, 3, 4),
        ("wine, standardised", wine, 3, 12),
        ("breast cancer, standardised", cancer, 2, 5),
        ("breast cancer, standardised", cancer, 2, 29),
        ("digits on 20 components", digits, 10, 5),
        ("digits on 20 components", digits, 10, 19),
        ("four groups", some, 4, 3),
        ("four groups", some, 4, 19),
        ("five groups", more, 5, 2),
        ("five groups", more, 5, 9),
        ("wide groups", clusters(600, 60, 3, 4, 3), 3, 4),
        ("wide groups", clusters(600, 60, 3, 4, 3), 3, 59),
        ("noise", noise, 3, 3),
        ("noise", noise, 3, 9),
    ]


def compare_mixtures(name, X, m, k):
    mine, theirs, likelihood, likelihood_of_peer = [], [], [], []
    for seed in SEEDS:
        seconds, other = timed(partial(GaussianMixture(m, n_init=STARTS, random_state=seed).fit, X))
        theirs.append(seconds)
        likelihood_of_peer.append(other.score(X))
        mixture = ProbabilisticPCAMixture(k, n_clusters=m, n_init=STARTS, random_state=seed)
        seconds, model = timed(partial(mixture.fit, X))
        mine.append(seconds)
        likelihood.append(model.score(X))
    (n, p), ours, other = X.shape, np.median(mine), np.median(theirs)
    return (
        f"| {name}, {n} x {p}, {m} clusters, k = {k} | {ours:.3f} | {other:.3f} | {other / ours:.1f} | "
        f"{np.median(likelihood):.3f} | {np.median(likelihood_of_peer):.3f} |"
    )


def choose(share, scale):
    X = load_breast_cancer().data
    X = np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, standardised(X) if scale else X)
    seconds, model = timed(partial(ProbabilisticPCA("bic", random_state=0).fit, X))
    units = "standardised" if scale else "as it is"
    return f"| breast cancer, {units}, {share:.0%} missing | {seconds:.2f} | {model.n_components_} |"


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
        "",
        f"Mixtures with {STARTS} starts: CPU seconds and mean log-likelihood of a row, medians over seeds.",
        "",
        "| problem | princomp | GaussianMixture | times ours | likelihood, princomp | likelihood, GaussianMixture |",
        "|---|---:|---:|---:|---:|---:|",
        *(compare_mixtures(*problem) for problem in mixtures(options.quick)),
        "",
        'CPU seconds of `ProbabilisticPCA(n_components="bic")`, the fit with the number chosen included.',
        "",
        "| problem | princomp | components chosen |",
        "|---|---:|---:|",
        *(
            choose(share, scale)
            for share in ((0.05,) if options.quick else (0.0, 0.05, 0.2))
            for scale in (False, True)
        ),
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
