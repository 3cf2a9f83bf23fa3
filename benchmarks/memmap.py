"""PCA of a file: peak memory of the process, and seconds beside numpy summing the same file.

Makes the file in a temporary folder (4 GB of float32 by default) and removes it. Two child
processes read it: one sums it with numpy, one fits PCA. Memory is what the process does not share
with the page cache (resident - shared, from /proc/self/statm), sampled by a thread, beyond the
moment before the fit. Linux only. Writes docs/benchmarks/memmap.md.

    python benchmarks/memmap.py
    python benchmarks/memmap.py --quick          40 MB, nothing written
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

COLUMNS, K, BLOCK = 1000, 20, 20_000
DOCS = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"


def make_file(path, gigabytes, seed=0):
    """Write spiked rows, float32, block by block; return the shape."""
    rng = np.random.default_rng(seed)
    rows = int(gigabytes * 1e9 / (4 * COLUMNS))
    spikes = rng.standard_normal((30, COLUMNS), dtype=np.float32)
    spikes *= np.linspace(3, 0.5, 30, dtype=np.float32)[:, None]
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, COLUMNS))
    for start in range(0, rows, BLOCK):
        block = out[start : start + BLOCK]
        block[:] = rng.standard_normal((len(block), 30), dtype=np.float32) @ spikes
        block += rng.standard_normal(block.shape, dtype=np.float32)
    out.flush()
    return out.shape


def unshared():
    """Bytes of this process that are neither file pages nor shared memory."""
    _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


class Peak:
    """Largest `unshared()` inside the `with`, beyond that at its start; seconds, CPU seconds."""

    def __enter__(self):
        self.done = threading.Event()
        self.start = self.top = unshared()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def _watch(self):
        while not self.done.wait(0.002):
            self.top = max(self.top, unshared())

    def __exit__(self, *exception):
        self.wall = time.perf_counter() - self.wall
        self.cpu = time.process_time() - self.cpu
        self.done.set()
        self.thread.join()
        self.top = max(self.top, unshared())


def child(job, path):
    """Read the file in this process, print what it cost as JSON."""
    X = np.load(path, mmap_mode="r")
    extra = {}
    if job == "sum":
        with Peak() as peak:
            X.sum()
    else:
        from princomp import PCA

        PCA(2).fit(np.eye(50, 8, dtype=np.float32))  # imports are not the subject
        with Peak() as peak:
            pca = PCA(K).fit(X)
        extra = {
            "solver": pca.solver_,
            "status": str(pca.result_.status),
            "dtype": str(pca.components_.dtype),
            "residual": float(pca.certificate_.residual),
        }
    cost = {"seconds": peak.wall, "cpu": peak.cpu, "megabytes": (peak.top - peak.start) / 1e6}
    print(json.dumps(cost | extra))


def run_child(job, path):
    """Start this file again as a child process."""
    command = [sys.executable, __file__, "--child", job, str(path)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def main(arguments=None):
    """Make the file, run both children, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--quick", action="store_true", help="40 MB")
    parser.add_argument("--folder", help="where the temporary file goes")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("JOB", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return child(*options.child)
    if not Path("/proc/self/statm").exists():
        sys.exit("benchmarks/memmap.py reads /proc/self/statm: Linux only")
    gigabytes = 0.04 if options.quick else options.gigabytes
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "X.npy"
        shape = make_file(path, gigabytes)
        size = path.stat().st_size / 1e9
        costs = {job: run_child(job, path) for job in ("sum", "pca")}
    pca = costs["pca"]
    lines = [
        f"File of {size:.2f} GB: {shape[0]} x {shape[1]} float32, read through `numpy.memmap`; "
        f"k = {K}, {os.cpu_count()} cores, all threads. Solver `{pca['solver']}`, components {pca['dtype']}: "
        f"{pca['status']}",
        "",
        "| | seconds | CPU seconds | peak unshared memory beyond the start |",
        "|---|---:|---:|---:|",
        *(
            f"| {name} | {cost['seconds']:.1f} | {cost['cpu']:.1f} | {cost['megabytes']:.0f} MB |"
            for name, cost in zip(("`X.sum()`", "`PCA(20).fit(X)`"), costs.values(), strict=True)
        ),
        "",
        f"PCA / sum: {pca['seconds'] / costs['sum']['seconds']:.1f} in seconds.",
    ]
    print("\n".join(lines))
    complete = not options.quick and options.gigabytes >= 4
    path = options.output or (DOCS / "memmap.md" if complete else None)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
