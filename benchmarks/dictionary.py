"""Dictionary learning beside SPAMS, scikit-learn and dictlearn: what dictionaries are worth, against CPU seconds.

Curves: 20000 patches of 8 x 8 pixels (see `_patches.py`), 100 and 256 atoms, all begin with the same patches as atoms,
batches of 512, value of 5000 patches that nobody learnt from, 1/2 |x - a D|^2 + 0.15 |a|_1 at its least: codes are
found here, with their duality gap. K-SVD: ten sweeps, 5 nonzeros; the error is that of new codes with the atoms found.
Planted: 50 atoms in 20 dimensions, 1500 signals of 3, noise of 20 dB; an atom is found if |cos| > 0.99. One thread,
contestants take turns. Writes docs/benchmarks/dictionary.md and draws docs/pictures/dictionary_curves.svg.

    python benchmarks/dictionary.py
    python benchmarks/dictionary.py --quick              small sizes, nothing written
    python benchmarks/dictionary.py --only curves        or ksvd, planted
    python benchmarks/dictionary.py --images file.npz    grey images of your own
    python benchmarks/dictionary.py --seed 1 --stretch 1.2   other data, each dimension 20% larger
"""

from _patches import (  # isort: skip
    ALPHA,
    BATCH,
    images,
    lasso_gaps,
    lasso_values,
    left_out,
    patches,
    peer,
    planted,
    recovered,
    squares,
    start,
)

import argparse
import gc
import itertools
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _objective import DOCS, by_turns, machine, write

from princomp import DictionaryLearning, sparse_encode

PICTURE = DOCS.parent / "pictures" / "dictionary_curves.svg"
SIZES = {"learn": 20_000, "held_out": 5000, "side": 8, "curves": (100, 256), "ksvd": 256, "signals": 1500}
QUICK_SIZES = {"learn": 800, "held_out": 200, "side": 4, "curves": (24,), "ksvd": 30, "signals": 400}
STEPS = 200  # batches, after which SPAMS is the mark
GROWTH = 1.25  # from one step at which we look to the next
SWEEPS, NONZEROS = 10, 5
PLANTED_NONZEROS, PLANTED_SWEEPS = 3, 100  # dictlearn's default number of sweeps
OURS, OURS_BATCH, SPAMS, SKLEARN = "princomp online", "princomp batch", "SPAMS", "scikit-learn"
COLOURS = {OURS: "#0072b2", OURS_BATCH: "#56b4e9", SPAMS: "#d55e00", SKLEARN: "#e69f00"}


class Watch:
    """Keeps dictionaries with the CPU seconds they took, at steps that grow; its own time does not count."""

    def __init__(self, steps):
        self.steps, self.next, self.left = steps, 1.0, []
        self.begin = time.process_time()

    def __call__(self, step, D):
        """Look at a dictionary, and say whether that was the last step."""
        now = time.process_time()
        if step >= min(self.next, self.steps):
            self.left.append((now - self.begin, np.array(D)))
            self.next = step * GROWTH
        self.begin += time.process_time() - now
        return step >= self.steps


def ours(X, D, seed, steps, method):
    watch = Watch(steps)
    how = {"method": method, "alpha": ALPHA, "batch_size": BATCH, "dict_init": D, "tol": 0.0, "random_state": seed}

    def callback(state):
        return watch(int(state.value.get("step", state.iteration)), state.value["D"])

    DictionaryLearning(len(D), max_iter=10**6, callback=callback, **how).fit(X)
    return watch.left


def by_spams(X, D, seed, steps):
    """Each number of steps is a run of its own: SPAMS tells nothing on the way."""
    spams, found = peer("spams"), []
    how = {"lambda1": ALPHA, "batchsize": BATCH, "numThreads": 1, "verbose": False}
    columns, begin = np.asfortranarray(X.T), np.asfortranarray(D.T)
    for count in sorted({max(steps // 20, 1), max(steps // 8, 1), max(steps // 3, 1), steps}):
        before = time.process_time()
        atoms = spams.trainDL(columns, D=begin, iter=count, **how)
        found.append((time.process_time() - before, np.ascontiguousarray(atoms.T)))
    return found


def by_sklearn(X, D, seed, epochs=1):
    from sklearn.decomposition import MiniBatchDictionaryLearning

    watch, count = Watch(epochs * -(-len(X) // BATCH)), itertools.count(1)
    how = {"alpha": ALPHA, "batch_size": BATCH, "fit_algorithm": "cd", "dict_init": D, "random_state": seed}
    stop = {"max_iter": epochs, "tol": 0.0, "max_no_improvement": None}

    def callback(where):
        watch(next(count), where["dictionary"])

    MiniBatchDictionaryLearning(len(D), callback=callback, **how, **stop).fit(X)
    return watch.left


def value(X, D):
    """Return the mean value of rows at their best codes, which is true to its duality gap."""
    codes = sparse_encode(X, D, alpha=ALPHA, tol=1e-8)
    found = lasso_values(X, D, codes).mean()
    gap = lasso_gaps(X, D, codes).mean()
    if not gap <= 1e-6 * found:
        raise SystemExit(f"A mean value of {found} is known to {gap} only.")
    return float(found)


def curves(X, held_out, atoms, seed, steps):
    """Return by name [(CPU seconds, held-out value), ...]."""
    D = start(X, atoms, seed)
    contestants = {OURS: partial(ours, method="online", steps=steps)}
    contestants[OURS_BATCH] = partial(ours, method="batch", steps=max(steps // 20, 2))
    if peer("spams") is not None:
        contestants[SPAMS] = partial(by_spams, steps=steps)
    contestants[SKLEARN] = by_sklearn
    found = {}
    for name, run in contestants.items():
        gc.collect()
        found[name] = [(seconds, value(held_out, each)) for seconds, each in run(X, D, seed)]
        print(f"    {atoms} atoms, seed {seed}, {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return found


def reached(curve, mark):
    """Return the CPU seconds after which a curve is at most at the mark for the first time; infinite if it is not."""
    return next((seconds for seconds, height in curve if height <= mark), np.inf)


def curve_lines(options, sizes, pictures):
    """Yield the table of the curves, and keep them for the picture."""
    stretch, steps = options.stretch, 10 if options.quick else STEPS
    learn, held_out = round(sizes["learn"] * stretch), round(sizes["held_out"] * stretch)
    grey, side = images(options.images), round(sizes["side"] * stretch)
    yield from ["| atoms | | CPU seconds | held-out value | princomp online is there after | times sooner |"]
    yield "|---:|---|---:|---:|---:|---:|"
    for atoms in (round(count * stretch) for count in sizes["curves"]):
        runs = []
        for seed in range(options.seed, options.seed + (1 if options.quick else options.seeds)):
            rows = patches(grey, learn + held_out, side, seed)
            runs.append(curves(rows[:learn], rows[learn:], atoms, seed, steps))
        pictures[atoms] = runs
        for name in runs[0]:
            ends = np.array([run[name][-1] for run in runs])
            ours_after = np.array([reached(run[OURS], run[name][-1][1]) for run in runs])
            cells = [f"{each:.3f}" for each in (np.median(ends[:, 0]), np.median(ours_after))]
            sooner = np.median(ends[:, 0] / ours_after)
            there = f"{cells[1]} | {sooner:.1f}" if name != OURS else " | "
            yield f"| {atoms} | {name} | {cells[0]} | {np.median(ends[:, 1]):.5f} | {there} |"


def ksvd_lines(options, sizes):
    """Yield the table of K-SVD."""
    stretch = options.stretch
    atoms, side = round(sizes["ksvd"] * stretch), round(sizes["side"] * stretch)
    X = patches(images(options.images), round(sizes["learn"] * stretch), side, options.seed)
    D = start(X, atoms, options.seed)
    contestants = {}
    for update in ("approximate", "exact"):
        how = {"method": "ksvd", "update": update, "nonzeros": NONZEROS, "max_iter": SWEEPS, "tol": 0.0}
        model = DictionaryLearning(atoms, dict_init=D, random_state=options.seed, **how)
        contestants[f"**princomp**, {update}"] = partial(model.fit, X)
    if (dictlearn := peer("dictlearn")) is not None:
        for name, update in (("aksvd", "approximate"), ("ksvd", "exact")):
            how = {"fit_algorithm": name, "n_nonzero_coefs": NONZEROS, "max_iter": SWEEPS}
            model = dictlearn.DictionaryLearning(atoms, dict_init=D, random_state=options.seed, **how)
            contestants[f"dictlearn, {update}"] = partial(model.fit, X)
    seconds, models = by_turns(contestants, 1 if options.quick else options.rounds)
    yield from ["| | CPU seconds | times ours | error, order recursive codes | error, matching pursuit |"]
    yield "|---|---:|---:|---:|---:|"
    for name, model in models.items():
        mine = seconds[f"**princomp**, {name.split(', ')[1]}"]
        errors = [
            np.sqrt(squares(X, D, sparse_encode(X, D, nonzeros=NONZEROS, selection=selection)).mean() / X.shape[1])
            for D in [model.components_]
            for selection in ("ols", "omp")
        ]
        cells = " | ".join(f"{error:.5f}" for error in errors)
        yield f"| {name} | {seconds[name]:.3f} | {seconds[name] / mine:.2f} | {cells} |"


def planted_lines(options, sizes):
    """Yield the table of planted atoms."""
    n, p, atoms = round(sizes["signals"] * options.stretch), round(20 * options.stretch), round(50 * options.stretch)
    found = {}
    for seed in range(options.seed, options.seed + (1 if options.quick else 2 * options.seeds)):
        X, truth = planted(seed, n, atoms, p, PLANTED_NONZEROS)
        few = {"nonzeros": PLANTED_NONZEROS}
        models = {
            "**princomp**, K-SVD": DictionaryLearning(atoms, method="ksvd", random_state=seed, **few),
            "**princomp**, online": DictionaryLearning(atoms, method="online", alpha=ALPHA, random_state=seed),
        }
        if (dictlearn := peer("dictlearn")) is not None:
            models["dictlearn, approximate K-SVD"] = dictlearn.DictionaryLearning(
                atoms, n_nonzero_coefs=PLANTED_NONZEROS, max_iter=PLANTED_SWEEPS, random_state=seed
            )
        seconds, fitted = by_turns({name: partial(model.fit, X) for name, model in models.items()}, 1)
        for name, model in fitted.items():
            found.setdefault(name, []).append((recovered(model.components_, truth), seconds[name]))
    yield from ["| | atoms found, median | least | CPU seconds, median |", "|---|---:|---:|---:|"]
    for name, each in found.items():
        shares, seconds = np.transpose(each)
        yield f"| {name} | {np.median(shares):.1%} | {shares.min():.1%} | {np.median(seconds):.3f} |"


def draw(pictures, path):
    """Draw the curves, every seed a line."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"svg.hashsalt": "princomp", "axes.spines.top": False, "axes.spines.right": False}):
        figure, panels = plt.subplots(1, len(pictures), figsize=(4.5 * len(pictures), 3.6), layout="constrained")
        for axes, (atoms, runs) in zip(np.atleast_1d(panels), pictures.items(), strict=True):
            for run in runs:
                for name, curve in run.items():
                    axes.plot(*np.transpose(curve), color=COLOURS[name], lw=1, alpha=0.7)
            for name in runs[0]:
                axes.plot([], [], color=COLOURS[name], label=name)
            axes.set(xscale="log", xlabel="CPU seconds", ylabel="held-out value", title=f"{atoms} atoms")
        np.atleast_1d(panels)[0].legend(frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
    print(f"wrote {path}")


PARTS = ("curves", "ksvd", "planted")


def sections(options, pictures):
    """Yield the lines of the page, as they are found."""
    sizes = QUICK_SIZES if options.quick else SIZES
    yield from left_out("spams", "dictlearn")
    if options.only in (None, "curves"):
        yield from ["### Held-out value against time", "", *curve_lines(options, sizes, pictures), ""]
    if options.only in (None, "ksvd"):
        yield from ["### Ten sweeps of K-SVD", "", *ksvd_lines(options, sizes), ""]
    if options.only in (None, "planted"):
        yield from ["### Planted atoms found again", "", *planted_lines(options, sizes), ""]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--images", type=Path, help="a .npz file of grey images")
    parser.add_argument("--seed", type=int, default=0, help="the first of them")
    parser.add_argument("--seeds", type=int, default=5, help="how many, for the curves; twice as many planted problems")
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on rows, atoms and sides")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # fits that are stopped say so
    X, _ = planted(0, 200, 12, 8, 2)  # compiled before it is timed
    for method in ("online", "batch", "ksvd"):
        DictionaryLearning(12, method=method, nonzeros=2 if method == "ksvd" else None, max_iter=2).fit(X)
    lines, pictures = [machine(), ""], {}
    for text in sections(options, pictures):
        print(text, flush=True)
        lines.append(text)
    complete = not (options.quick or options.only or options.images or options.stretch != 1 or options.seed != 0)
    path = options.output or (DOCS / "dictionary.md" if complete else None)
    if path:
        write(path, "\n".join(lines))
    if pictures and path and peer("matplotlib") is not None:
        draw(pictures, PICTURE if complete else path.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
