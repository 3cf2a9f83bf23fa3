"""Error of the eigenvalues when a large constant is added to the data.

The reference is computed from the values as stored: covariance in extended precision about the
exact mean, eigenvalues in double precision. Writes docs/benchmarks/offsets.md.

    python benchmarks/offsets.py
    python benchmarks/offsets.py --quick         a few offsets, nothing written
"""

from _objective import DOCS, machine, write

# isort: split
import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

SHAPE, K = (2000, 20), 5


def reference(X):
    """Leading eigenvalues of the covariance of the stored values."""
    wide = X.astype(np.longdouble)
    wide -= wide[0].copy()  # no rounding: the values lie close together
    wide -= wide.mean(axis=0)
    covariance = (wide.T @ wide / (len(X) - 1)).astype(np.float64)
    return np.linalg.eigvalsh(covariance)[::-1][:K]


def fit_princomp(solver):
    """Return a function X -> eigenvalues."""

    def fit(X):
        from princomp import PCA

        return PCA(K, solver=solver, random_state=0).fit(X).explained_variance_

    return fit


def fit_sklearn(solver):
    """Return a function X -> eigenvalues."""

    def fit(X):
        from sklearn.decomposition import PCA

        return PCA(K, svd_solver=solver).fit(X).explained_variance_

    return fit


COLUMNS = {
    "princomp eigh": fit_princomp("eigh"),
    "princomp svd": fit_princomp("svd"),
    "princomp krylov": fit_princomp("krylov"),
    "scikit-learn default": fit_sklearn("auto"),
    "scikit-learn full": fit_sklearn("full"),
}


def error(fit, X, truth):
    """Largest relative error of an eigenvalue, as a cell of the table."""
    found = np.asarray(fit(X), dtype=np.float64)
    with np.errstate(all="ignore"):
        worst = np.max(np.abs(found - truth) / truth)
    cell = f"{worst:.0e}"
    return cell if worst < 1e-4 else f"**{cell}**"


def table(dtype, offsets, seed):
    """Rows by offset, columns by solver; None where nothing but rounding is left of the data."""
    lines = [f"| offset | {' | '.join(COLUMNS)} |", "|---" + "|---:" * len(COLUMNS) + "|"]
    for offset in offsets:
        X = (np.random.default_rng(seed).standard_normal(SHAPE) + offset).astype(dtype)
        if len(np.unique(X[:, 0])) < 10:
            break  # the type cannot hold the data any more
        truth = reference(X)
        cells = " | ".join(error(fit, X, truth) for fit in COLUMNS.values())
        lines.append(f"| {offset:.0e} | {cells} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def main(arguments=None):
    """Parse, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    offsets = [1.0, 1e4, 1e8] if options.quick else [10.0**e for e in range(0, 13, 2)]
    head = (
        f"Largest relative error of the five leading eigenvalues: standard normal data, "
        f"{SHAPE[0]} x {SHAPE[1]}, plus an offset. Bold: wrong in the fourth digit or before. "
        f"{machine()}"
    )
    parts = [head]
    for dtype in (np.float64, np.float32):
        name = np.dtype(dtype).name
        print(f"\n{name}\n| offset | {' | '.join(COLUMNS)} |")
        parts.append(f"**{name}**\n\n{table(dtype, offsets, options.seed)}")
    path = options.output or (None if options.quick else DOCS / "offsets.md")
    if path:
        write(path, "\n\n".join(parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
