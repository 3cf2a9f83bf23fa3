"""Kernel PCA beside scikit-learn: CPU seconds on one BLAS thread, and what the components capture.

Three clouds: X = N(n, p) + 3 * integers(0, 3, (n, 1)), radial kernel, gamma 0.02. Defaults of both sides. What is
captured is computed here, from the scores alone: an orthonormal basis Q of them, centred, and tr(Q' Kc Q) on the exact
centred kernel matrix, beside the optimum, the sum of its largest eigenvalues by ARPACK to the last digit. Contestants
take turns, the best of some rounds counts. Large data run in a process of their own, whose peak memory is read.
Writes docs/benchmarks/kernel.md.

    python benchmarks/kernel.py
    python benchmarks/kernel.py --quick          small sizes, nothing written
    python benchmarks/kernel.py --only exact     or landmarks, or large
    python benchmarks/kernel.py --seed 1 --stretch 1.2   other data, each dimension 20% larger
"""

import _one_thread  # noqa: F401  isort: skip

import argparse
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from _objective import by_turns, machine

from princomp import KernelPCA
from princomp.data import budget

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
GAMMA = 0.02
GOOD = 0.9999
EXACT = [(6000, 20, 10), (10_000, 20, 20), (12_000, 16, 16), (8000, 24, 24)]
QUICK_EXACT = [(600, 6, 4)]
LANDMARKS = [(10_000, 20, 10), (12_000, 16, 12)]
QUICK_LANDMARKS = [(1200, 6, 4)]
PEER_LANDMARKS = 500
# Name, rows, columns, components, parameters, bytes that may be planned for, whether rows come from a file.
LARGE = [
    ("landmarks at random, rank 500", 100_000, 20, 10, {"approximation": "nystroem", "rank": 500}, None, False),
    ("landmarks by Cholesky, rank 500", 100_000, 20, 10, {"approximation": "rpcholesky", "rank": 500}, None, False),
    ("landmarks by Cholesky, rank 300, memmap", 1_000_000, 20, 10, {"rank": 300}, None, True),
    ("exact, K not kept", 30_000, 20, 10, {"approximation": None}, 2**29, False),
    ("default", 20_000, 20, 10, {}, None, False),
    ("default", 40_000, 20, 10, {}, None, False),
]
QUICK_LARGE = [("landmarks by Cholesky, memmap", 5000, 5, 3, {"approximation": "rpcholesky", "rank": 50}, None, True)]


def clouds(n, p, seed):
    """Return three clouds along the diagonal."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) + 3 * rng.integers(0, 3, (n, 1))


class Judge:
    """The exact centred kernel matrix, and its k largest eigenvalues."""

    def __init__(self, X, k):
        from scipy.sparse.linalg import eigsh
        from sklearn.metrics.pairwise import rbf_kernel

        K = rbf_kernel(X - X.mean(axis=0), gamma=GAMMA)
        means = K.mean(axis=0)
        K -= means
        K -= (means - means.mean())[:, None]
        start = np.random.default_rng(0).normal(size=len(K))
        self.K, self.k = K, k
        self.optimum = float(eigsh(K, k, return_eigenvectors=False, v0=start).sum())

    def captured(self, scores):
        """Return tr(Q' Kc Q) of an orthonormal basis Q of the scores, which must be k columns at the most."""
        if scores.shape[1] > self.k:
            raise ValueError("More components than were asked for.")
        Q = np.linalg.qr(scores - scores.mean(axis=0))[0]
        return float(np.einsum("ij,ij->", Q, self.K @ Q))


def ours(X, k, **how):
    return KernelPCA(k, gamma=GAMMA, random_state=0, **how).fit(X)


def peer(X, k, solver):
    from sklearn.decomposition import KernelPCA as Peer

    return Peer(k, kernel="rbf", gamma=GAMMA, eigen_solver=solver, random_state=0).fit(X)


def pipeline(X, k):
    from sklearn.decomposition import PCA
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline

    features = Nystroem(kernel="rbf", gamma=GAMMA, n_components=PEER_LANDMARKS, random_state=0)
    return make_pipeline(features, PCA(k, random_state=0)).fit(X)


def exact(n, p, k, seed, rounds):
    X = clouds(n, p, seed)
    contestants = {"**princomp**": partial(ours, X, k)}
    for solver in ("arpack", "randomized"):
        contestants[f"scikit-learn `{solver}`"] = partial(peer, X, k, solver)
    seconds, models = by_turns(contestants, rounds)
    judge = Judge(X, k)
    shares = {name: judge.captured(model.transform(X)) / judge.optimum for name, model in models.items()}
    mine = seconds["**princomp**"]
    lines = [
        f"| {n} x {p}, k = {k}, seed {seed} | {name} | {seconds[name]:.2f} | {seconds[name] / mine:.2f} | {share:.7f} |"
        for name, share in shares.items()
    ]
    good = [seconds[name] for name, share in shares.items() if share >= GOOD and name != "**princomp**"]
    if not shares["**princomp**"] >= GOOD:
        raise SystemExit(f"princomp captures {shares['**princomp**']} of the optimum.")
    words = (
        "" if not good else f"the fastest scikit-learn solver that captures {GOOD} takes {min(good) / mine:.2f} times"
    )
    return lines, words


def landmarks(n, p, k, seed, rounds):
    X = clouds(n, p, seed)
    contestants = {
        '**princomp** `"nystroem"`': partial(ours, X, k, approximation="nystroem"),
        '**princomp** `"rpcholesky"`': partial(ours, X, k, approximation="rpcholesky"),
        f"scikit-learn `Nystroem({PEER_LANDMARKS})` + `PCA`": partial(pipeline, X, k),
    }
    seconds, models = by_turns(contestants, rounds)
    judge, first = Judge(X, k), next(iter(contestants))
    return [
        f"| {n} x {p}, k = {k}, seed {seed} | {name} | {seconds[name]:.2f} | {seconds[name] / seconds[first]:.2f} | "
        f"{judge.optimum - judge.captured(model.transform(X)):.3f} |"
        for name, model in models.items()
    ]


def peak_mebibytes():
    """Return the most that was ever resident of this process; what the one that began it held counts elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**10 if sys.platform != "darwin" else 2**20)


def large(problem, seed, folder):
    """Fit one large problem in this process and print CPU seconds and the peak of resident memory."""
    _, n, p, k, how, limit, in_file = problem
    if in_file:
        X = np.lib.format.open_memmap(Path(folder, "X.npy"), "w+", np.float64, (n, p))
        step = 50_000
        for begin in range(0, n, step):
            X[begin : begin + step] = clouds(min(step, n - begin), p, [seed, begin])
        X.flush()
        X = np.load(Path(folder, "X.npy"), mmap_mode="r")
    else:
        X = clouds(n, p, seed)
    begin = time.process_time()
    with budget.limited(limit):
        model = ours(X, k, **how)
    seconds = time.process_time() - begin
    peak = peak_mebibytes()
    print(f"{model.approximation_}|{seconds:.1f}|{peak:.0f}|{model.certificate_.residual:.0e}")


def run_large(number, seed, quick):
    problem = (QUICK_LARGE if quick else LARGE)[number]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--large", str(number), folder, "--seed", str(seed)]
        done = subprocess.run([*command, *(["--quick"] if quick else [])], capture_output=True, text=True, check=True)
    approximation, seconds, peak, residual = done.stdout.strip().split("|")
    name, n, p, k = problem[:4]
    return f"| {n} x {p}, k = {k} | {name} | {approximation} | {seconds} | {peak} | {residual} |"


def sections(options):
    """Yield the lines of the page, as they are found."""
    stretch, seed, rounds = options.stretch, options.seed, 1 if options.quick else options.rounds

    def sized(problems):
        return [(*(max(round(size * stretch), 2) for size in problem), seed, rounds) for problem in problems]

    if options.only in (None, "exact"):
        yield from ["### Exact", "", "| problem | | CPU seconds | times ours | captured / optimum |"]
        yield "|---|---|---:|---:|---:|"
        said = []
        for problem in sized(QUICK_EXACT if options.quick else EXACT):
            lines, words = exact(*problem)
            yield from lines
            said.append(f"- {problem[0]} x {problem[1]}, k = {problem[2]}: {words}.")
        yield from ["", *said, ""]
    if options.only in (None, "landmarks"):
        yield from [
            "### Landmarks",
            "",
            "The excess is the exact sum of the leading eigenvalues less what is captured.",
        ]
        yield from ["", "| problem | | CPU seconds | times the first | excess |", "|---|---|---:|---:|---:|"]
        for problem in sized(QUICK_LANDMARKS if options.quick else LANDMARKS):
            yield from landmarks(*problem)
        yield ""
    if options.only in (None, "large"):
        yield from ["### Large data", "", "Each in a process of its own; memory is all that it ever held, Python too."]
        yield from ["", "| problem | | | CPU seconds | peak resident MiB | residual |", "|---|---|---|---:|---:|---:|"]
        for number in range(len(QUICK_LARGE if options.quick else LARGE)):
            yield run_large(number, seed, options.quick)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stretch", type=float, default=1.0, help="factor on rows, columns and components")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["exact", "landmarks", "large"])
    parser.add_argument("--large", nargs=2, metavar=("NUMBER", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.large:
        number, folder = options.large
        large((QUICK_LARGE if options.quick else LARGE)[int(number)], options.seed, folder)
        return 0
    ours(clouds(300, 3, 0), 2)
    lines = [machine(), ""]
    for line in sections(options):
        print(line, flush=True)
        lines.append(line)
    complete = not (options.quick or options.only or options.stretch != 1 or options.seed != 0)
    path = options.output or (DOCS / "kernel.md" if complete else None)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
