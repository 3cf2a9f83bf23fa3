"""Sparse PCA of data that live on workers: by products and sums, never by a copy here; and X'X is made once."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from princomp import SparsePCA
from princomp.data import statistics
from princomp.data.dask import DaskRows
from princomp.solvers import scatter

FORMULATIONS = {
    "regression": {"formulation": "regression", "alpha_share": 0.2},
    "dictionary": {"formulation": "dictionary", "alpha_share": 0.2},
    "constrained": {"formulation": "constrained"},
    "cardinality": {"formulation": "cardinality", "nonzeros": 10},
}


def planted(n, p, seed=0):
    """Three components of ten features each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for j in range(3):
        X[:, 10 * j : 10 * j + 10] += (4 - j) * rng.standard_normal((n, 1))
    return X


def as_dask(X, chunk):
    return pytest.importorskip("dask.array").from_array(X, chunks=(chunk, -1))


# --- once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["array", "csr", "dask"])
@pytest.mark.parametrize("name", FORMULATIONS)
@pytest.mark.parametrize("shape", [(300, 40), (40, 40), (50, 90)])
def test_the_scatter_matrix_is_made_once(name, storage, shape, monkeypatch):
    """X'X, whether by the tiles of a pass or by one product of a copy; no other matrix has as many rows and columns."""
    made, squared = [], scatter.of_array  # numbers of rows

    def counted(tile):
        def count(block, rows, *state):
            made.append(rows.stop - rows.start)
            return tile(block, rows, *state)

        return count

    def product(X):
        made.extend([len(X)] if len(X) >= X.shape[1] else [])
        return squared(X)

    for name_of_tile in ("_gram", "_scatter"):  # alone, and with the mean
        monkeypatch.setattr(statistics, name_of_tile, counted(getattr(statistics, name_of_tile)))
    monkeypatch.setattr("princomp.estimators.sparse.regression.of_array", product)
    X = planted(*shape)
    data = {"array": X, "csr": sp.csr_array(X), "dask": X}[storage]
    if storage == "dask":
        monkeypatch.setattr(DaskRows, "local", False)
        dask = pytest.importorskip("dask")
        with dask.config.set(scheduler="synchronous"):
            SparsePCA(2, random_state=0, **FORMULATIONS[name]).fit(as_dask(X, 25))
    else:
        SparsePCA(2, random_state=0, **FORMULATIONS[name]).fit(data)
    assert sum(made) in ((0, len(X)) if name == "dictionary" or shape[0] < shape[1] else (len(X),))


def on_workers(client, X, chunk):
    """A Dask array whose chunks are in the memory of the workers."""
    import dask.array as da
    from dask import delayed

    chunks = [X[begin : begin + chunk] for begin in range(0, len(X), chunk)]
    there = zip(client.scatter(chunks), chunks, strict=True)
    return da.concatenate([da.from_delayed(delayed(future), part.shape, part.dtype) for future, part in there])


# --- never here ---------------------------------------------------------------------------------


class Fetched:
    """What comes here from the workers, in numbers: the largest sum, the most of what goes with rows, whole copies."""

    def __init__(self, monkeypatch):
        self.sums, self.by_row, self.copies = 0, 0, 0
        reduce, mapped, take, whole = DaskRows.reduce, DaskRows.map, statistics.take, statistics.whole

        def counted_reduce(rows, *args, **kwargs):
            answer = reduce(rows, *args, **kwargs)
            self.sums = max(self.sums, *(np.size(part) for part in (answer if isinstance(answer, tuple) else [answer])))
            return answer

        def counted_map(rows, *args, width, **kwargs):
            self.by_row = max(self.by_row, rows.shape[0] * width)
            return mapped(rows, *args, width=width, **kwargs)

        def counted_take(X, wanted):
            self.by_row = max(self.by_row, len(wanted) * X.shape[1])
            return take(X, wanted)

        def counted_whole(X, *args):
            self.copies += 1
            return whole(X, *args)

        monkeypatch.setattr(DaskRows, "reduce", counted_reduce)
        monkeypatch.setattr(DaskRows, "map", counted_map)
        monkeypatch.setattr(statistics, "take", counted_take)
        monkeypatch.setattr(statistics, "whole", counted_whole)


@pytest.mark.needs("dask")
@pytest.mark.parametrize("name", FORMULATIONS)
def test_tall_data_on_workers_send_sums_alone(name, dask_client, monkeypatch):
    """60 MB in chunks of 6 MB: nothing comes here but X'X, the scores, and a few rows to take moments about."""
    n, p, k = 50_000, 150, 3
    X = planted(n, p)
    lazy = on_workers(dask_client, X, 5000)
    fetched = Fetched(monkeypatch)
    found = SparsePCA(k, random_state=0, **FORMULATIONS[name]).fit(lazy)
    assert fetched.copies == 0
    few = statistics.SHIFT_ROWS * p
    assert fetched.by_row <= max(n * k, few)
    assert fetched.sums <= max(p * p, few)
    here = SparsePCA(k, random_state=0, **FORMULATIONS[name]).fit(X)
    assert np.abs(found.components_ - here.components_).max() < 1e-4
    assert np.array_equal(found.components_ != 0, here.components_ != 0)


@pytest.mark.needs("dask")
@pytest.mark.parametrize("name", FORMULATIONS)
def test_wide_data_on_workers_are_multiplied_there(name, dask_client, monkeypatch):
    """With more features than X'X is made for, each product is a pass; few rows come here, to take moments about."""
    n, p, k = 500, 2000, 2
    X = planted(n, p)
    lazy = on_workers(dask_client, X, 125)
    monkeypatch.setattr("princomp.estimators.sparse.cardinality.MOST_SQUARE", 100)
    monkeypatch.setattr("princomp.estimators.sparse.cardinality.MOST_ROWS", 100)  # else XX' is made for a bound
    monkeypatch.setattr("princomp.solvers.cardinality.FEW_STARTS", 4)
    monkeypatch.setattr("princomp.solvers.cardinality.SCREEN_WORK", 1e4)
    how = {"max_iter": 20, "tol": 1e-2} | FORMULATIONS[name]
    fetched = Fetched(monkeypatch)
    found = SparsePCA(k, random_state=0, **how).fit(lazy)
    assert fetched.copies == 0
    assert fetched.by_row <= statistics.SHIFT_CELLS < n * p / 2
    here = SparsePCA(k, random_state=0, **how).fit(X)
    assert np.abs(found.components_ - here.components_).max() < 1e-2


DRIVER = """
import json, sys, warnings
import dask, distributed, numpy as np
import dask.array as da
from princomp import SparsePCA

def chunk(block_info=None):
    (begin, end), (_, p) = block_info[None]["array-location"]
    rng = np.random.default_rng(begin)
    X = rng.random((end - begin, p), dtype=np.float32).astype(np.float64) - 0.5
    for j in range(3):
        X[:, 10 * j : 10 * j + 10] += (2.0 - 0.5 * j) * rng.standard_normal((end - begin, 1))
    return X

def peak():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

if __name__ == "__main__":
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=None
    ) as cluster, distributed.Client(cluster):
        X = da.map_blocks(chunk, chunks=((8000,) * 31 + (2000,), (1000,)), dtype=float, meta=np.empty((0, 0)))
        answer = {"bytes": X.nbytes, "before": peak()}
        for name in ("regression", "dictionary"):
            found = SparsePCA(3, formulation=name, alpha_share=0.2, random_state=0).fit(X)
            answer[name] = {
                "peak": peak(),
                "supports": [np.flatnonzero(v).tolist() for v in found.components_],
                "holds": bool(found.certificate_.holds),
            }
    print(json.dumps(answer))
"""


@pytest.mark.soak
@pytest.mark.needs("dask")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
def test_two_gigabytes_on_workers_with_a_driver_of_700_megabytes(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(DRIVER))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["bytes"] == 2_000_000_000
    for name in ("regression", "dictionary"):
        assert answer[name]["holds"]
        assert sorted(answer[name]["supports"]) == [list(range(10 * j, 10 * j + 10)) for j in range(3)]
        assert answer[name]["peak"] <= 700, f"{name}: {answer[name]['peak']:.0f} MB, {answer['before']:.0f} before"
