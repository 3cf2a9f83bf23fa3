"""One objective scores every solver of PCA: the variance captured, as a share of the best possible.

The solver hands over its components and nothing else; mean, captured variance and optimum are
computed here. Time is CPU time of the process on one BLAS thread, the best of several rounds; in
each round every solver runs once, so that all see the same machine.

Import this module before numpy: it sets the number of threads.
"""

import _one_thread  # noqa: F401

# isort: split
import gc
import platform
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from threadpoolctl import threadpool_limits

DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
GOOD = 0.9999  # a solver below this share is shown, but does not count as the fastest
ENOUGH = 60.0  # CPU seconds on a problem after which three rounds will do


@dataclass(frozen=True)
class Problem:
    """A matrix to make and a number of components to find."""

    name: str
    shape: tuple[int, int]
    n_components: int
    make: Callable[[int, int, int], Any]  # (rows, columns, seed) -> X
    seed: int = 0
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Solver:
    """A way to get components (k, p) from X; `accepts` says on which problems it runs."""

    name: str
    fit: Callable[[Any, int], np.ndarray]
    accepts: Callable[[Problem], bool] = lambda problem: True


@dataclass
class Row:
    """What one solver did on one problem."""

    solver: str
    seconds: list[float] = field(default_factory=list)
    captured: float = float("inf")  # the worst of its rounds
    failure: str = ""

    @property
    def best(self) -> float:
        return min(self.seconds, default=float("inf"))


class Objective:
    """Captured variance of given components, relative to the optimum of that many components."""

    def __init__(self, X: Any, n_components: int) -> None:
        self.X, self.n_components = X, n_components
        self.mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
        self.optimum = self._optimum()

    def __call__(self, components: np.ndarray) -> float:
        if components.shape != (self.n_components, self.X.shape[1]):
            raise ValueError(f"components of shape {components.shape}")
        basis = np.linalg.qr(np.asarray(components, dtype=np.float64).T)[0]
        if scipy.sparse.issparse(self.X):
            scores = self.X @ basis - self.mean @ basis
        else:
            scores = np.vstack([block @ basis for block in self._centred_blocks()])
        return float(np.sum(scores**2) / self.optimum)

    def _centred_blocks(self, rows: int = 4096):
        return (self.X[i : i + rows] - self.mean for i in range(0, len(self.X), rows))

    def _optimum(self) -> float:
        """Sum of the leading squared singular values of the centred X, by a dense eigensolver."""
        n, p = self.X.shape
        if scipy.sparse.issparse(self.X):
            gram = (self.X.T @ self.X).toarray() - n * np.outer(self.mean, self.mean)
        elif n >= p:
            gram = sum(block.T @ block for block in self._centred_blocks())
        else:
            centred = self.X - self.mean
            gram = centred @ centred.T
        size = len(gram)
        wanted = (size - self.n_components, size - 1)
        return float(scipy.linalg.eigvalsh(gram, subset_by_index=wanted).sum())


def measure(problem: Problem, X: Any, solvers: Sequence[Solver], rounds: int) -> list[Row]:
    """Run every solver that accepts the problem; those ten times slower than the fastest run once."""
    solvers = [solver for solver in solvers if solver.accepts(problem)]
    rows = {solver.name: Row(solver.name) for solver in solvers}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objective = Objective(X, problem.n_components)
        warm_up(problem, solvers)
        begin = time.process_time()
        for number in range(rounds):
            if number >= 3 and time.process_time() - begin > ENOUGH:
                break
            fastest = min(row.best for row in rows.values())
            for solver in solvers:
                row = rows[solver.name]
                if row.failure or (row.seconds and row.best > 10 * fastest):
                    continue
                _once(solver, X, problem.n_components, objective, row)
    return list(rows.values())


def warm_up(problem: Problem, solvers: Sequence[Solver]) -> None:
    """Run everything once on a small matrix, so that imports and compilation are not timed."""
    small = problem.make(300, 40, 0)
    for solver in solvers:
        try:
            solver.fit(small, 2)
        except Exception as error:  # it will fail again, and be reported, in the first round
            print(f"    {solver.name}: {error!r}", flush=True)


def _once(solver: Solver, X: Any, k: int, objective: Objective, row: Row) -> None:
    gc.collect()
    start = time.process_time()
    try:
        components = solver.fit(X, k)
    except Exception as error:
        row.failure = type(error).__name__
        return
    row.seconds.append(time.process_time() - start)
    row.captured = min(row.captured, objective(components))
    print(f"    {solver.name:32} {row.seconds[-1]:8.3f} s   {row.captured:.6f}", flush=True)


def by_turns(
    contestants: Mapping[str, Callable[[], Any]], rounds: int, clock: Callable[[], float] = time.process_time
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return, by name, the least seconds of some rounds, in which all take turns, and the last answer."""
    seconds: dict[str, float] = {}
    answers = {}
    for _ in range(rounds):
        for name, run in contestants.items():
            gc.collect()
            begin = clock()
            answers[name] = run()
            seconds[name] = min(seconds.get(name, float("inf")), clock() - begin)
    return seconds, answers


def markdown(rows: Sequence[Row], ours: str) -> str:
    """Table of one problem, fastest first, with times relative to ours."""
    reference = next(row.best for row in rows if row.solver == ours)
    lines = ["| solver | CPU seconds | times ours | captured / optimum | runs |", "|---|---:|---:|---:|---:|"]
    for row in sorted(rows, key=lambda row: row.best):
        name = f"**{row.solver}**" if row.solver == ours else row.solver
        if row.failure:
            lines.append(f"| {name} | {row.failure} | | | |")
        else:
            lines.append(
                f"| {name} | {row.best:.3f} | {row.best / reference:.2f} | {row.captured:.6f} | {len(row.seconds)} |"
            )
    return "\n".join(lines)


def ratio(rows: Sequence[Row], ours: str, prefix: str, share: float = GOOD) -> float:
    """Our time / that of the fastest other solver with this prefix that captures the share."""
    mine = next(row.best for row in rows if row.solver == ours)
    others = [row.best for row in rows if row.solver.startswith(prefix) and not row.failure and row.captured >= share]
    return mine / min(others, default=float("nan"))


def machine() -> str:
    """Versions and processor, one sentence."""
    names = ("princomp", "scikit-learn", "numpy", "scipy")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return f"{processor()}; Python {platform.python_version()}, {versions}; one BLAS thread."


def version(name: str) -> str:
    """Version of an installed distribution; of a source tree on the path, its own word."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return getattr(__import__(name), "__version__", "(source tree)")


def processor() -> str:
    """Name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(x.split(":", 1)[1].strip() for x in lines if x.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def write(path: Path, text: str) -> None:
    """Write a generated fragment for the documentation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    print(f"wrote {path}")
