"""Block functions for tests on a cluster, whose workers import them from here."""

import numpy as np
import scipy.sparse


def row_numbers(block, rows):
    return np.arange(rows.start, rows.stop, dtype=float)[:, None]


def doubled(block, rows, factor):
    return block * factor


def sums_and_numbers(block, rows, factor):
    """Row sums in single precision, the block times a factor as CSR, and the row numbers as integers."""
    sums = block.sum(axis=1, keepdims=True)
    return sums, scipy.sparse.csr_array(block * factor), np.arange(rows.start, rows.stop)[:, None]


def positive_part(block, rows):
    return scipy.sparse.csr_array(np.maximum(block, 0.0))


def sum_by_row_number(block, rows):
    return np.arange(rows.start, rows.stop) @ block


def where_it_ran(block, rows):
    import os

    return np.full((block.shape[0], 1), os.getpid(), dtype=float)


def counted(block, rows, folder):
    """Two answers, and a new file in the folder for each call."""
    import tempfile

    tempfile.mkstemp(dir=folder)
    return block[:, :1], block[:, 1:2]


def times_weight(block, rows, weight):
    return block * weight[rows, None], rows


def reversed_and_moved(block, rows, shift):
    return block[:, ::-1] + shift, rows
