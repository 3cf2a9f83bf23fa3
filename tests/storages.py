"""The kinds of storage that data come in: the same rows in each of them."""

import math

import numpy as np
import scipy.sparse

from helpers import shards

COLUMNS = "column {}"


def array(X, folder):
    return np.ascontiguousarray(X)


def fortran(X, folder):
    return np.asfortranarray(X)


def memmap(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def files(X, folder):
    for i, piece in enumerate(np.array_split(X, 3)):
        np.save(folder / f"part{i}.npy", piece)
    return [folder / f"part{i}.npy" for i in range(3)]


def csr(X, folder):
    return scipy.sparse.csr_array(X)


def in_shards(X, folder):
    return shards(X)


def pandas(X, folder):
    import pandas

    return pandas.DataFrame(X, columns=[COLUMNS.format(j) for j in range(X.shape[1])])


def dask(X, folder):
    from dask.array import from_array

    return from_array(X, chunks=(max(1, math.ceil(len(X) / 4)), X.shape[1]))


def spark(X, folder):
    import pyarrow
    from pyspark.sql import SparkSession

    columns = {COLUMNS.format(j): column for j, column in enumerate(X.T)}
    return SparkSession.active().createDataFrame(pyarrow.table(columns)).persist()


STORAGES = {
    "array": array,
    "fortran": fortran,
    "memmap": memmap,
    "csr": csr,
    "shards": in_shards,
    "files": files,
    "pandas": pandas,
    "dask": dask,
    "spark": spark,
}
NEEDS = {"dask": "dask_client", "spark": "spark"}  # storage: the fixture that starts its engine


def as_array(answer):
    """What a method gives back of its storage's kind, as an array."""
    if hasattr(answer, "toArrow"):
        return np.array(answer.toArrow().column("scores").to_pylist())
    return np.asarray(answer.compute() if hasattr(answer, "compute") else answer)
