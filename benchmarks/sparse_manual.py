"""`princomp.manual.spca` beside the function of that name in the `sparsepca` package, on real data.

One BLAS thread, arguments of the manual, default tolerances. Columns are centred and scaled to length 1 before, as the
manual means it: the package would scale rows. It is run from the true singular vectors, which it is given, and from its
own start; we find ours. All take turns, the median of some runs counts. "ratio" is the CPU time of the faster of its
starts over ours. F is recomputed here from the factors: for finite lambda2 from A and loadings that are scaled back,
column by column, to where F is least, on both sides. Writes docs/benchmarks/sparse-manual.md.

If the environment variable PRINCOMP_DATA names a folder that holds lfw_subset.npz, colon.npz, olivetti.npz and
nci60.npz, these are problems, too.

    python benchmarks/sparse_manual.py
    python benchmarks/sparse_manual.py --only digits
    python benchmarks/sparse_manual.py --quick          small sizes, nothing written
"""

import _one_thread  # noqa: F401  isort: skip

import argparse
import gc
import os
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from sklearn import datasets

from princomp.manual import normalize, spca

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
LAMBDA1 = 0.1
LIMITS = (1.0, np.inf)
SLACK = 1e-9  # of F, relatively: what rounding may make of an F that is the same


def tables():
    """Name, data and number of components."""
    yield "breast cancer", datasets.load_breast_cancer().data, 5
    yield "digits", datasets.load_digits().data, 5
    folder = Path(os.environ.get("PRINCOMP_DATA", ""))
    for name, k, of in (
        ("lfw_subset", 5, lambda file: file["X"].reshape(len(file["X"]), -1)),
        ("colon", 4, lambda file: file["X"]),
        ("olivetti", 4, lambda file: file["X_uint8"][:200]),
        ("nci60", 4, lambda file: file["X"]),
    ):
        if os.environ.get("PRINCOMP_DATA") and (folder / f"{name}.npz").exists():
            with np.load(folder / f"{name}.npz") as file:
                yield name, np.asarray(of(file), dtype=np.float64), k


def objective(Z, A, loadings, lambda2):
    """F of A and of the loadings, each column as long as is best for it (the l1 norm and signs are kept)."""
    ZB, ZA = Z @ loadings, Z @ A
    linear = 2 * (ZA * ZB).sum(axis=0) - LAMBDA1 * np.abs(loadings).sum(axis=0)
    square = (loadings**2).sum(axis=0)
    square = square if np.isinf(lambda2) else (ZB**2).sum(axis=0) + lambda2 * square
    best = np.maximum(linear, 0.0) / np.where(square > 0, 2 * square, 1.0)
    return float((best**2 * square - best * linear).sum())


def peer(Z, lambda2, k, V):
    from sparsepca import spca as theirs

    start = {} if V is None else {"x0": V.copy(), "y0": V.copy()}
    return theirs(Z.copy(), np.full((k, 1), LAMBDA1), lambda2, k=k, normalize=False, **start)


def compare(name, X, k, lambda2, rounds):
    Z = normalize(X)
    V = np.linalg.svd(Z, full_matrices=False)[2][:k].T
    runs = {
        "ours": partial(spca, Z, LAMBDA1, lambda2, k=k, normalize=False),
        "singular vectors": partial(peer, Z, lambda2, k, V),
        "own start": partial(peer, Z, lambda2, k, None),
    }
    seconds, F = {each: [] for each in runs}, {}
    for _ in range(rounds):
        for each, run in runs.items():
            gc.collect()
            begin = time.process_time()
            found = run()
            seconds[each].append(time.process_time() - begin)
            F[each] = objective(Z, np.real(found["x"]), np.real(found["loadings"]), lambda2)
    ours, *theirs = (float(np.median(each)) for each in seconds.values())
    least = min(F["singular vectors"], F["own start"])
    higher = F["ours"] > least + SLACK * abs(least)
    print(f"{name}, {lambda2}: {min(theirs) / ours:.1f}{', F IS HIGHER' if higher else ''}", flush=True)
    return (
        f"| {name}, {Z.shape[0]} x {Z.shape[1]}, k = {k} | {lambda2:g} | {1e3 * ours:.1f} | {1e3 * theirs[0]:.1f} | "
        f"{1e3 * theirs[1]:.1f} | {min(theirs) / ours:.1f} | {F['ours']:.5f} | {F['singular vectors']:.5f} | "
        f"{F['own start']:.5f} |"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", help="part of a problem's name")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    if options.quick:
        problems = [("wine", datasets.load_wine().data, 3)]
    else:
        problems = [each for each in tables() if (options.only or "") in each[0]]
    if not problems:
        parser.error(f"no problem is called {options.only!r}")
    spca(datasets.load_wine().data, LAMBDA1, 1.0, k=2)  # loads what is loaded once
    rounds = 1 if options.quick else options.rounds
    lines = [
        f"lambda1 = {LAMBDA1}, one BLAS thread, CPU milliseconds.",
        "",
        "| problem | lambda2 | princomp | sparsepca, singular vectors | sparsepca, own start | ratio | F, princomp | "
        "F, singular vectors | F, own start |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(compare(*problem, lambda2, rounds) for problem in problems for lambda2 in LIMITS),
    ]
    print("\n".join(lines))
    path = options.output or (None if options.quick or options.only else DOCS / "sparse-manual.md")
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
