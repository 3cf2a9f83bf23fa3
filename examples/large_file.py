"""PCA of data that stay on disk: one memory-mapped file, and the same rows in several files.

python examples/large_file.py               60 MB in a temporary folder, removed afterwards
python examples/large_file.py 4000          as many MB as you like
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from princomp import PCA
from princomp.data import as_rows

COLUMNS = 400


def write_file(path, megabytes, seed=0):
    """Write float32 rows with five strong directions, a little at a time."""
    rng = np.random.default_rng(seed)
    rows = int(megabytes * 1e6 / (4 * COLUMNS))
    directions = rng.standard_normal((5, COLUMNS)) * [[5], [4], [3], [2], [1]]
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, COLUMNS))
    for start in range(0, rows, 10_000):
        block = X[start : start + 10_000]
        block[:] = 100 + rng.standard_normal((len(block), 5)) @ directions + rng.standard_normal(block.shape)
    X.flush()
    return rows


def timed_fit(what, X):
    """Fit five components, say how long it took and what came out."""
    start = time.perf_counter()
    pca = PCA(5).fit(X)
    seconds = time.perf_counter() - start
    print(f"{what:24} {seconds:6.2f} s   solver {pca.solver_}, variances {pca.explained_variance_.round(1)}")
    return pca


def main(megabytes):
    """Fit one file, then the same rows as shards; compare."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        rows = write_file(path, megabytes)
        X = np.load(path, mmap_mode="r")
        print(f"{path.name}: {rows} x {COLUMNS} {X.dtype}, {path.stat().st_size / 1e6:.0f} MB\n")
        one = timed_fit("one file, mapped", X)

        shards = []
        for number, part in enumerate(np.array_split(np.arange(rows), 4)):
            shards.append(Path(folder) / f"part{number}.npy")
            np.save(shards[-1], X[part[0] : part[-1] + 1])
        many = timed_fit("four files", shards)
        small = timed_fit("blocks of 500 rows", as_rows(shards, block_rows=500))

        for other in (many, small):
            apart = np.abs(other.explained_variance_ / one.explained_variance_ - 1).max()
            print(f"largest relative difference of a variance: {apart:.1e}")
        print(f"\n{one.certificate_}")
        scores = one.transform(X[:3])
        print(f"scores of the first rows: {scores.dtype}, {scores.shape}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
