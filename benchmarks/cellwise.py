"""Planes found among bad cells, bad rows and missing cells, by RobustPCA(method="cellwise") and by other methods.

Data: X = N(100, 2) @ N(2, p) + 0.1 N, p = 20 and 200. Bad cells are the mean of their column plus gamma standard
deviations; bad rows are shifted by gamma sqrt(p) times the root mean square deviation, along one direction at right
angles to the plane; then cells go missing. The number is the median, over draws, of the largest angle to the plane, for
the worst gamma, relative to that of classical PCA before anything was done to the data. PCA and ROBPCA are given
column medians for missing cells. One BLAS thread. Writes docs/benchmarks/cellwise.md, and draws
docs/pictures/cellwise_angles.svg.

    python benchmarks/cellwise.py
    python benchmarks/cellwise.py --quick                     small sizes, nothing written
    python benchmarks/cellwise.py --seeds 20 --gammas 1 2 3 4 5 6 7 8 9 10
    python benchmarks/cellwise.py --seed 1000 --stretch 1.2   other draws, each dimension 20% larger
"""

import _one_thread  # noqa: F401  isort: skip

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from _objective import DOCS, machine, write

from princomp import PCA, ProbabilisticPCA, RobustPCA

PICTURE = DOCS.parent / "pictures" / "cellwise_angles.svg"
K, ROWS, COLUMNS, NOISE = 2, 100, (20, 200), 0.1
MISSING = 0.2
BAD = {
    "10 % of cells": (0.1, 0.0),
    "10 % of rows": (0.0, 0.1),
    "10 % of both": (0.1, 0.1),
    "20 % of cells": (0.2, 0.0),
    "20 % of rows": (0.0, 0.2),
    "20 % of both": (0.2, 0.2),
}
COLOURS = {"cellwise": "#0072b2", "PCA": "#999999", "probabilistic": "#e69f00", "robpca": "#009e73", "pcp": "#d55e00"}


def draw_of(n, p, cells, rows, missing, gamma, seed):
    """Return the data, the plane (2, p), and the data before anything was done to them."""
    rng = np.random.default_rng(seed)
    plane = rng.standard_normal((K, p))
    clean = rng.standard_normal((n, K)) @ plane + NOISE * rng.standard_normal((n, p))
    X, deviations = clean.copy(), clean.std(axis=0)
    bad = rng.random((n, p)) < cells
    X[bad] = np.broadcast_to(clean.mean(axis=0) + gamma * deviations, X.shape)[bad]
    off = rng.standard_normal(p)
    off -= np.linalg.lstsq(plane.T, off, rcond=None)[0] @ plane
    shift = gamma * np.sqrt(p) * np.sqrt(np.mean(deviations**2)) * off / np.linalg.norm(off)
    X[rng.choice(n, round(rows * n), replace=False)] += shift
    X[rng.random((n, p)) < missing] = np.nan
    return X, plane, clean


def filled(X):
    """Return X with column medians for missing cells."""
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X)


METHODS = {
    "cellwise": lambda X, seed: RobustPCA(K, method="cellwise", random_state=seed).fit(X),
    "PCA": lambda X, seed: PCA(K).fit(filled(X)),
    "probabilistic": lambda X, seed: ProbabilisticPCA(K, random_state=seed).fit(X),
    "robpca": lambda X, seed: RobustPCA(K, method="robpca", random_state=seed).fit(filled(X)),
    "pcp": lambda X, seed: RobustPCA(K, method="pcp", random_state=seed).fit(X),
}


def degrees(rows, plane):
    """Return the largest angle between the spans of rows (2, p) both."""
    one, other = (np.linalg.qr(np.asarray(A, dtype=np.float64).T)[0] for A in (rows, plane))
    sine = np.linalg.norm(one - other @ (other.T @ one), 2)
    return float(np.degrees(np.arcsin(min(sine, 1.0))))


def medians(options, p, bad, missing):
    """Return the median angles of each method (gammas,), those of clean data (gammas,), and seconds of a fit."""
    n, p = round(ROWS * options.stretch), round(p * options.stretch)
    angles = {name: np.empty((len(options.gammas), options.seeds)) for name in options.methods}
    clean, seconds = np.empty((len(options.gammas), options.seeds)), []
    for i, gamma in enumerate(options.gammas):
        for j in range(options.seeds):
            X, plane, before = draw_of(n, p, *bad, missing, gamma, options.seed + j)
            clean[i, j] = degrees(PCA(K).fit(before).components_, plane)
            for name in options.methods:
                begin = time.process_time()
                angles[name][i, j] = degrees(METHODS[name](X, options.seed + j).components_, plane)
                if name == "cellwise":
                    seconds.append(time.process_time() - begin)
    return {name: np.median(found, axis=1) for name, found in angles.items()}, np.median(clean, axis=1), seconds


def draw(found, gammas, path):
    """Draw median angles against gamma."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    kinds = [key for key in found if key[2] == 0]
    columns = list(dict.fromkeys(key[1] for key in kinds))
    settings = {
        "svg.hashsalt": "princomp",
        "svg.fonttype": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with plt.rc_context(settings):
        sizes = list(dict.fromkeys(key[0] for key in kinds))
        shape = {"nrows": len(sizes), "ncols": len(columns), "figsize": (1.9 * len(columns), 2.3 * len(sizes))}
        figure, panels = plt.subplots(**shape, layout="constrained", sharex=True, sharey=True, squeeze=False)
        for p, row in zip(sizes, panels, strict=True):
            for name, axes in zip(columns, row, strict=True):
                angles, clean = found[p, name, 0]
                for method, values in angles.items():
                    wide = 2.2 if method == "cellwise" else 1.2
                    axes.plot(gammas, values, color=COLOURS[method], lw=wide, label=method, zorder=wide)
                    if method in ("cellwise", "pcp", "probabilistic") and (p, name, 1) in found:
                        other = found[p, name, 1][0][method]
                        axes.plot(gammas, other, color=COLOURS[method], lw=wide, ls=":", zorder=wide)
                axes.plot(gammas, clean, color="black", lw=0.8, ls="--", label="PCA of clean data")
                axes.set(yscale="log", title=name if p == sizes[0] else None)
                axes.minorticks_off()  # half of the file
                axes.title.set_fontsize(9)
            row[0].set_ylabel(f"{p} columns: degrees")
        figure.supxlabel("how far bad cells and rows are off; dotted: 20 % of the cells missing, too", fontsize=9)
        figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
        figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--seeds", type=int, default=3, help="how many draws")
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on rows and columns")
    parser.add_argument("--gammas", type=float, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # of robpca, of rows that are all alike in what was filled
    sizes, kinds = COLUMNS, BAD
    if options.quick:
        options.seeds, options.gammas, sizes, kinds = 1, [3.0], (12,), {"10 % of both": BAD["10 % of both"]}
    lines = [
        f"{machine()} {options.seeds} draws, gamma = {', '.join(f'{gamma:g}' for gamma in options.gammas)}.",
        "",
        "| columns | bad | missing | "
        + " | ".join(options.methods)
        + " | clean data, degrees | CPU seconds, cellwise |",
        "|---:|---|---:|" + "---:|" * (len(options.methods) + 2),
    ]
    print("\n".join(lines))
    found = {}
    for p in sizes:
        for name, bad in kinds.items():
            for number, missing in enumerate((0.0, MISSING)):
                angles, clean, seconds = medians(options, p, bad, missing)
                found[p, name, number] = angles, clean
                worst = [f"{np.max(angles[method] / clean):.2f}" for method in options.methods]
                taken = f"{np.median(seconds):.2f}" if seconds else ""
                share = f"{missing:.0%}"
                texts = [str(round(p * options.stretch)), name, share, *worst, f"{np.median(clean):.2f}", taken]
                lines.append(f"| {' | '.join(texts)} |")
                print(lines[-1], flush=True)
    complete = not options.quick and options.stretch == 1 and options.seed == 0 and len(options.methods) == len(METHODS)
    path = options.output or (DOCS / "cellwise.md" if complete else None)
    if path:
        write(path, "\n".join(lines))
    if complete:
        draw(found, options.gammas, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
