"""What the tests of HDF5 and Zarr share: a matrix, all rows of a source, and memory measured in another process."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

# Run in a process of its own, so that its peak memory can be read, and a crash would be seen.
MEASURE = """
    import sys
    import numpy, princomp.data, {library}
    from princomp.data import DataError, read

    def peak():
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))

    before = peak()
    try:
        rows = read(sys.argv[1], memory_limit=int(sys.argv[2]))
        outcome = sum(rows.block(i).sum() for i in range(len(rows.offsets) - 1))
    except (DataError, MemoryError) as error:
        outcome = f"{{type(error).__name__}}: {{error}}"
    print(peak() - before, outcome, sep="|")
"""

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peak memory is read from /proc")


def measured(path, memory_limit, library):
    """(MiB of memory beyond the start, what came out) of reading a file in a process of its own."""
    code = textwrap.dedent(MEASURE).format(library=library)
    done = subprocess.run(
        [sys.executable, "-c", code, path, str(memory_limit)], capture_output=True, text=True, check=True
    )
    grown, outcome = done.stdout.strip().split("|")
    return int(grown), outcome


def without(library, path):
    """What is said, at last, where a library is missing."""
    code = f"import sys; sys.modules[{library!r}] = None; from princomp.data import read; read(sys.argv[1])"
    return subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True).stderr.splitlines()[-1]


def numbers(n=60, p=5, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) + 0.1 * rng.normal(size=(n, p))).round(3)


def whole(rows):
    """All rows as one array."""
    return np.concatenate([rows.block(i) for i in range(len(rows.offsets) - 1)])
