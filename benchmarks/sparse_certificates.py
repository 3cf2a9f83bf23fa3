"""Sparse components by count, with proof: value, bound, gap and time on real matrices.

`SparsePCA(1, nonzeros=k, certify=True, time_limit=60)`, one BLAS thread; each proof is rechecked by
`certificates.verify`, outside the time. Matrices that the project or scikit-learn ship and, where the environment
variable PRINCOMP_DATA names a folder, every symmetric matrix in its .npz files; of a covariance the correlation too,
features without variance left out. Writes docs/benchmarks/sparse-certificates.md.

    python benchmarks/sparse_certificates.py
    python benchmarks/sparse_certificates.py --quick          small matrices, nothing written
"""

import _one_thread  # noqa: F401  isort: skip

import argparse
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from _objective import machine

from princomp import SparsePCA, datasets
from princomp.certificates import verify

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
SIZES = (13, 300)  # features of a matrix from a folder
LARGE = (200, 5000, 20)  # samples, features, nonzeros of the data without a matrix
HEADER = (
    "| matrix | features | k | value | bound | gap | nodes | seconds | rechecked |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---|"
)


def correlation(S):
    """The correlation matrix of features that vary."""
    variances = S.diagonal()
    keep = variances > 1e-12 * variances.max()
    spread = np.sqrt(variances[keep])
    R = S[np.ix_(keep, keep)] / np.outer(spread, spread)
    np.fill_diagonal(R, 1.0)
    return R


def shipped(quick):
    """Yield names and matrices that need no file."""
    from sklearn.datasets import load_digits, load_wine

    yield "pitprops, correlation", datasets.load_pitprops().correlation
    yield "wine, correlation", np.corrcoef(load_wine().data.T)
    if not quick:
        S = np.cov(load_digits().data.T)
        yield "digits, covariance", S
        yield "digits, correlation", correlation(S)


def of_folder(folder):
    """Yield the symmetric matrices in a folder, with their correlations."""
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path) as file:
            for name in file.files:
                S = np.asarray(file[name])
                if S.ndim != 2 or S.shape[0] != S.shape[1] or not SIZES[0] <= len(S) <= SIZES[1]:
                    continue
                if S.dtype.kind != "f" or not np.isfinite(S).all() or np.abs(S - S.T).max() > 1e-9 * np.abs(S).max():
                    continue
                S = 0.5 * (S + S.T)
                if np.allclose(S.diagonal(), 1.0):
                    yield f"{path.stem} {name}, correlation", S
                elif S.diagonal().max() > 0:
                    yield f"{path.stem} {name}, covariance", S
                    yield f"{path.stem} {name}, correlation", correlation(S)


def large_data(quick):
    """Yield names, data and nonzeros where features outnumber samples."""
    n, p, k = (40, 300, 5) if quick else LARGE
    for name, strength in (("planted", 1.5), ("weak signal", 0.7), ("noise", 0.0)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, p))
        X[:, :k] += strength * rng.standard_normal((n, 1))
        yield f"{name}, {n} samples", X, k


def row(name, p, k, estimator, matrix, data, seconds):
    """Return a line of the table."""
    found = estimator.certificate_
    proof = found.proofs[0]
    checked = verify(matrix, proof, data=data)
    print(f"{name}, k={k}: {checked}", file=sys.stderr)
    gap = "proved" if proof.proved else f"{100 * proof.gap:.2f} %"
    return (
        f"| {name} | {p} | {k} | {proof.lower:.8g} | {proof.upper:.8g} | {gap} | {proof.nodes} | {seconds:.1f} | "
        f"{'yes' if checked else 'NO'} |"
    )


def fitted(k, limit, fit):
    """Return the estimator and wall seconds of a fit."""
    estimator = SparsePCA(1, formulation="cardinality", nonzeros=k, certify=True, time_limit=limit)
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(estimator)
    return estimator, time.monotonic() - begin


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small matrices, two seconds each at the most")
    parser.add_argument("--output", type=Path, help="where to write (default: docs, full runs only)")
    options = parser.parse_args(arguments)
    limit = 2.0 if options.quick else 60.0
    problems = list(shipped(options.quick))
    if not options.quick and os.environ.get("PRINCOMP_DATA"):
        problems += of_folder(os.environ["PRINCOMP_DATA"])
    fitted(2, limit, lambda estimator: estimator.fit_covariance(np.eye(30) + 0.1))  # imports and compilation
    lines = [HEADER]
    print(HEADER)
    for name, S in problems:
        for k in (5, 10):
            if k <= len(S):
                estimator, seconds = fitted(k, limit, lambda estimator, S=S: estimator.fit_covariance(S))
                lines.append(row(name, len(S), k, estimator, S, False, seconds))
                print(lines[-1], flush=True)
    for name, X, k in large_data(options.quick):
        estimator, seconds = fitted(k, limit, lambda estimator, X=X: estimator.fit(X))
        centred = (X - X.mean(axis=0)) / np.sqrt(len(X) - 1)
        lines.append(row(name, X.shape[1], k, estimator, centred, True, seconds))
        print(lines[-1], flush=True)
    path = options.output or (None if options.quick else DOCS / "sparse-certificates.md")
    if path:
        about = f"{machine()} `time_limit={limit:.0f}`; value and bound are v'Sv of the best component of k features."
        path.write_text(about + "\n\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
