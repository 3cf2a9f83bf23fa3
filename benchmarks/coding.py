"""Sparse codes beside SPAMS, dictlearn and scikit-learn: CPU seconds on one thread, and what the codes are worth.

Patches of 8 x 8 pixels (see `_patches.py`), 256 atoms learnt from them. Lasso: 1/2 |x - a D|^2 + 0.15 |a|_1. Few
nonzeros: the least |x - a D|^2 with 5 or 10 atoms, by greedy pursuit: order recursive, which is what SPAMS computes, or
orthogonal matching pursuit, which is what dictlearn and scikit-learn compute. Values are recomputed from patches, atoms
and codes. Contestants take turns, the best of some rounds counts; scikit-learn, which is slow, gets the first tenth of
the patches, and its time is multiplied. Writes docs/benchmarks/coding.md.

    python benchmarks/coding.py
    python benchmarks/coding.py --quick              small sizes, nothing written
    python benchmarks/coding.py --only lasso         or few, matching, threads
    python benchmarks/coding.py --images file.npz    grey images of your own
    python benchmarks/coding.py --seed 1 --stretch 1.2   other patches, each dimension 20% larger
"""

from _patches import ALPHA, images, lasso_gaps, lasso_values, learnt, left_out, patches, peer, squares  # isort: skip

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse
from _objective import DOCS, by_turns, machine, write
from threadpoolctl import threadpool_limits

from princomp import sparse_encode

SIZES = (100_000, 256, 8)  # patches, atoms, side of a patch
QUICK_SIZES = (600, 36, 4)
COUNTS = (5, 10)
EQUAL = 1e-6  # relative difference of mean values that counts as none
SHARE = 10  # a slow contestant gets one row of so many
OURS = "**princomp**"
COUNTED = (
    "| nonzeros | | CPU seconds | times ours | mean squared residual | above ours | nonzeros at the most |",
    "|---:|---|---:|---:|---:|---:|---:|",
)


def by_spams(code, X, D, **how):
    """Call a function of SPAMS, whose rows are columns."""
    codes = code(np.asfortranarray(X.T), np.asfortranarray(D.T), numThreads=1, **how)
    return scipy.sparse.csr_array(codes.T)


def by_sklearn(X, D, **how):
    from sklearn.decomposition import sparse_encode as encode

    return encode(X, D, n_jobs=1, **how)


def race(X, D, contestants, slow, rounds):
    """Return seconds for all rows and (rows, codes) by name; the slow ones run once, on some of the rows."""
    some = X[: max(len(X) // SHARE, 1)]
    for run in (*contestants.values(), *slow.values()):
        run(X[:50], D)  # compiled, imported
    seconds, codes = by_turns({name: partial(run, X, D) for name, run in contestants.items()}, rounds)
    slow_seconds, slow_codes = by_turns({name: partial(run, some, D) for name, run in slow.items()}, 1)
    seconds |= {name: value * (len(X) / len(some)) for name, value in slow_seconds.items()}
    return seconds, {name: (X, each) for name, each in codes.items()} | {
        name: (some, each) for name, each in slow_codes.items()
    }


def line(name, seconds, *cells):
    return f"| {name} | {seconds[name]:.3f} | {seconds[name] / seconds[OURS]:.2f} | {' | '.join(cells)} |"


def lasso(X, D, rounds):
    """Yield the lines about l1."""
    contestants = {OURS: lambda X, D: sparse_encode(X, D, alpha=ALPHA)}
    if (spams := peer("spams")) is not None:
        contestants["SPAMS `lasso`"] = lambda X, D: by_spams(spams.lasso, X, D, lambda1=ALPHA, mode=2)
    slow = {"scikit-learn `lasso_cd`": partial(by_sklearn, algorithm="lasso_cd", alpha=ALPHA)}
    seconds, codes = race(X, D, contestants, slow, rounds)
    yield from ["| | CPU seconds | times ours | mean value | above ours | above the least by at most | nonzeros |"]
    yield "|---|---:|---:|---:|---:|---:|---:|"
    mine = lasso_values(X, D, codes[OURS][1])
    for name, (rows, each) in codes.items():
        value, gap = lasso_values(rows, D, each).mean(), lasso_gaps(rows, D, each).mean()
        nonzeros = scipy.sparse.csr_array(each).nnz / len(rows)
        above = value / mine[: len(rows)].mean() - 1
        yield line(name, seconds, f"{value:.8f}", f"{above:.1e}", f"{gap:.1e}", f"{nonzeros:.2f}")
        if above < -EQUAL:
            raise SystemExit(f"{name} has a value that is lower than princomp's by {-above:.1e}.")


def few(X, D, rounds):
    """Yield the lines about few nonzeros, each the best of those not taken."""
    yield from COUNTED
    for count in COUNTS:
        contestants = {OURS: lambda X, D, count=count: sparse_encode(X, D, nonzeros=count)}
        if (spams := peer("spams")) is not None:
            contestants["SPAMS `omp`"] = lambda X, D, count=count: by_spams(spams.omp, X, D, L=count)
        yield from counted(count, *race(X, D, contestants, {}, rounds), D)


def matching(X, D, rounds):
    """Yield the lines about orthogonal matching pursuit, and how far from scikit-learn's codes ours are."""
    yield from COUNTED
    said = []
    for count in COUNTS:
        contestants = {OURS: lambda X, D, count=count: sparse_encode(X, D, nonzeros=count, selection="omp")}
        if (dictlearn := peer("dictlearn")) is not None:
            contestants["dictlearn `omp`"] = lambda X, D, count=count: dictlearn.sparse_encode(
                X, D, n_nonzero_coefs=count
            )
        slow = {"scikit-learn `omp`": partial(by_sklearn, algorithm="omp", n_nonzero_coefs=count)}
        seconds, codes = race(X, D, contestants, slow, rounds)
        yield from counted(count, seconds, codes, D)
        rows, theirs = codes["scikit-learn `omp`"]
        apart = np.abs(codes[OURS][1][: len(rows)].toarray() - theirs).max(axis=1)
        same = np.mean(apart <= 1e-8 * np.abs(theirs).max(axis=1))
        said.append(f"- {count} nonzeros: {same:.4%} of the rows have scikit-learn's code to eight digits.")
    yield from ["", *said]


def counted(count, seconds, codes, D):
    """Yield lines of a race for few nonzeros; ours must not be worse than what chooses alike."""
    mine = squares(codes[OURS][0], D, codes[OURS][1])
    for name, (rows, each) in codes.items():
        residual = squares(rows, D, each).mean()
        most = int(np.diff(scipy.sparse.csr_array(each).indptr).max())
        above = residual / mine[: len(rows)].mean() - 1
        yield f"| {count} {line(name, seconds, f'{residual:.8f}', f'{above:.1e}', str(most))}"
        if most > count or above < -EQUAL:
            raise SystemExit(f"{name}: {most} nonzeros, residual lower than princomp's by {-above:.1e}.")


def threads(X, D, rounds):
    """Yield the lines about two threads: time by the clock on the wall, since CPU seconds are those of both."""
    yield from ["| | one thread, seconds | two threads | times | CPU seconds, one thread | both |"]
    yield "|---|---:|---:|---:|---:|---:|"
    for name, how in (("lasso", {"alpha": ALPHA}), ("5 nonzeros", {"nonzeros": 5}), ("10 nonzeros", {"nonzeros": 10})):

        def run(count, how=how):
            with threadpool_limits(count):
                sparse_encode(X, D, **how)

        both = {count: partial(run, count) for count in (1, 2)}
        wall, cpu = (by_turns(both, rounds, clock)[0] for clock in (time.perf_counter, time.process_time))
        yield f"| {name} | {wall[1]:.3f} | {wall[2]:.3f} | {wall[1] / wall[2]:.2f} | {cpu[1]:.3f} | {cpu[2]:.3f} |"
    if wall[1] > 1.2 * cpu[1]:
        yield from ["", "Others were at work on this machine, which is what the clock on the wall shows."]


PARTS = {
    "lasso": ("### Lasso", lasso),
    "few": ("### Few nonzeros, order recursive", few),
    "matching": ("### Few nonzeros, orthogonal matching pursuit", matching),
    "threads": ("### Two threads", threads),
}


def sections(options):
    """Yield the lines of the page, as they are found."""
    rounds = 1 if options.quick else options.rounds
    sizes = QUICK_SIZES if options.quick else SIZES
    count, atoms, side = (round(size * options.stretch) for size in sizes)
    X = patches(images(options.images), count, side, options.seed)
    D = learnt(X, atoms, options.seed)
    yield f"{X.shape[0]} patches of {side} x {side} pixels, {atoms} atoms, seed {options.seed}."
    yield ""
    yield from left_out("spams", "dictlearn")
    for name, (title, part) in PARTS.items():
        if options.only in (None, name):
            yield from [title, ""]
            yield from part(X, D, rounds)
            yield ""


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--images", type=Path, help="a .npz file of grey images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on patches, atoms and the side of a patch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # scikit-learn, of atoms that depend on each other
    lines = [machine(), ""]
    for text in sections(options):
        print(text, flush=True)
        lines.append(text)
    complete = not (options.quick or options.only or options.images or options.stretch != 1 or options.seed != 0)
    path = options.output or (DOCS / "coding.md" if complete else None)
    if path:
        write(path, "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
