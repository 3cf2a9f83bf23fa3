"""Sparse PCA as a regression: CPU seconds and objective beside the `sparsepca` package, and sparse CCA.

One BLAS thread, default tolerances, compiled loops loaded before; the peer is given the true singular vectors to
start from, we find them. The objective is recomputed here from (A, B), the peer's own from what it reports. Both run by
turns, the best of some runs counts. Writes docs/benchmarks/sparse-regression.md.

    python benchmarks/sparse_regression.py
    python benchmarks/sparse_regression.py --quick          small sizes, nothing written
"""

import _one_thread  # noqa: F401  isort: skip

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from princomp import SparsePCA
from princomp.estimators.sparse_cca import SparseCCA

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
ALPHA, RIDGE = 0.2, 1.0
PROBLEMS = [
    (1000, 500, 4, 1),
    (1000, 2000, 10, 1),
    (50, 4000, 4, 1),
    (100, 20000, 4, 1),
    (1200, 600, 4, 2),
    (1200, 2400, 10, 2),
    (60, 4800, 4, 2),
    (800, 400, 4, 3),
    (800, 1600, 10, 3),
    (40, 3200, 4, 3),
]
QUICK = [(100, 50, 2, 1), (20, 80, 2, 1)]
PEER_FEATURES = 5000  # the peer makes p x p arrays
ROWS = {0, 5, 10, 15, 20}


def data(n, p, seed):
    X = np.random.RandomState(seed).randn(n, p)
    X -= X.mean(axis=0)
    return X / np.sqrt((X**2).sum(axis=0).max())


def objective(X, A, B):
    Z = X @ B
    return float((Z**2).sum() - 2 * ((X @ A) * Z).sum() + RIDGE * (B**2).sum() + ALPHA * np.abs(B).sum())


def timed(fn):
    begin = time.process_time()
    answer = fn()
    return time.process_time() - begin, answer


def ours(X, k):
    return SparsePCA(k, formulation="regression", alpha=ALPHA, ridge=RIDGE, random_state=0).fit(X).result_


def peer(X, k, V):
    from sparsepca import spca

    return spca(X.copy(), np.full((k, 1), ALPHA), RIDGE, x0=V.copy(), y0=V.copy(), k=k, normalize=False)


def compare(n, p, k, seed, repeats):
    X = data(n, p, seed)
    V = np.linalg.svd(X, full_matrices=False)[2][:k].T
    mine, theirs, found, value = [], [], None, float("nan")
    for _ in range(repeats):
        seconds, found = timed(partial(ours, X, k))
        mine.append(seconds)
        if p <= PEER_FEATURES:
            seconds, answer = timed(partial(peer, X, k, V))
            theirs.append(seconds)
            value = answer["f_manpg"]
    best, other = min(mine), min(theirs, default=float("nan"))
    F = objective(X, found.value["A"], found.value["B"])
    return (
        f"| {n} x {p}, k = {k}, seed {seed} | {best:.3f} | {other:.3f} | {other / best:.1f} | {F:.5f} | {value:.5f} | "
        f"{found.certificate.residual:.0e} |"
    )


def planted(rng, n, p, q):
    def vectors(d):
        while True:
            M = rng.integers(-2, 3, (5, 2)).astype(float)
            if M.any(axis=1).all() and np.linalg.matrix_rank(M) == 2:
                break
        U = np.zeros((d, 2))
        U[sorted(ROWS)] = np.linalg.qr(M)[0]
        return U

    U, V, rho = vectors(p), vectors(q), np.array([0.9, 0.8])

    def draw(n):
        X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
        return X, Y + ((X @ U) * rho + (Y @ V) * (np.sqrt(1 - rho**2) - 1)) @ V.T

    return draw(n), draw(2000)


def correlation(x, y):
    return np.mean([abs(np.corrcoef(x[:, j], y[:, j])[0, 1]) for j in range(x.shape[1])])


def support(*weights):
    """Right and wrong features."""
    found = [set(np.flatnonzero(np.linalg.norm(W, axis=1) > 1e-8)) for W in weights]
    return sum(len(one & ROWS) for one in found), sum(len(one - ROWS) for one in found)


def cca(draws, n, p, q):
    from sklearn.cross_decomposition import CCA

    table = {}
    for seed in range(draws):
        (X, Y), test = planted(np.random.default_rng(seed), n, p, q)
        for b in (0.4, 0.5, 0.6, 0.7, 0.8):
            alphas = {name: b * np.sqrt((2 + np.log(d)) / n) for name, d in (("alpha_x", p), ("alpha_y", q))}
            model = SparseCCA(2, scale=False, **alphas).fit(X, Y)
            row = (*support(model.x_weights_, model.y_weights_), correlation(*model.transform(*test)))
            table.setdefault(f"**princomp**, b = {b:.1f}", []).append(row)
        model = CCA(2, max_iter=2000).fit(X, Y)
        row = (*support(model.x_rotations_, model.y_rotations_), correlation(*model.transform(*test)))
        table.setdefault("scikit-learn CCA", []).append(row)
    for name, rows in table.items():
        right, wrong, test = np.array(rows).T
        yield f"| {name} | {np.median(right):.0f} | {np.median(wrong):.0f} | {test.mean():.3f} |"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    ours(data(400, 1100, 0), 2)  # loads what is loaded once
    lines = [
        f"alpha = {ALPHA}, ridge = {RIDGE:g}, one BLAS thread, CPU seconds.",
        "",
        "| problem | princomp | sparsepca | times ours | F, princomp | F, sparsepca | residual |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(compare(*problem, 1 if options.quick else 3) for problem in (QUICK if options.quick else PROBLEMS)),
        "",
        "Sparse canonical correlation, medians over draws of the features found (10 are there), and the mean "
        "correlation on new data (the true one is 0.85):",
        "",
        "| | right | wrong | test correlation |",
        "|---|---:|---:|---:|",
        *(cca(1, 60, 30, 40) if options.quick else cca(10, 200, 300, 600)),
    ]
    print("\n".join(lines))
    path = options.output or (None if options.quick else DOCS / "sparse-regression.md")
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
